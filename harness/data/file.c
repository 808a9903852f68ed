// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/arena.h"

static tl_status io_error(const char *verb, const char *path) {
  tl_status_code code = errno == ENOENT ? TL_STATUS_NOT_FOUND : TL_STATUS_IO;
  return tl_status_make(code, "cannot %s '%s': %s", verb, path, strerror(errno));
}

static tl_status too_large(const char *path, uint64_t max_bytes) {
  return tl_status_make(TL_STATUS_LIMIT, "'%s' is larger than the limit of %llu bytes", path,
                        (unsigned long long)max_bytes);
}

static tl_status read_all(int fd, const char *path, uint64_t max_bytes, tl_strbuf *out) {
  enum { CHUNK_BYTES = 1 << 16 };
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size > max_bytes)
    return too_large(path, max_bytes);
  char *chunk = tl_xmalloc(CHUNK_BYTES);
  tl_status status = TL_OK;
  for (uint64_t total = 0; !status;) {
    ssize_t got = read(fd, chunk, CHUNK_BYTES);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = io_error("read", path);
    if (got <= 0) break;
    total += (uint64_t)got;
    if (total > max_bytes) {
      status = too_large(path, max_bytes);
    } else {
      tl_strbuf_append(out, (tl_str){chunk, (size_t)got});
    }
  }
  free(chunk);
  return status;
}

tl_status tl_file_read(const char *path, uint64_t max_bytes, tl_strbuf *out) {
  if (strcmp(path, "-") == 0) return read_all(STDIN_FILENO, "standard input", max_bytes, out);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error("open", path);
  tl_status status = read_all(fd, path, max_bytes, out);
  close(fd);
  return status;
}

tl_status tl_file_read_regular(const char *path, uint64_t max_bytes, tl_strbuf *out) {
  // Looked at before it is opened: to open a pipe would wait for its writer.
  struct stat info;
  if (stat(path, &info) != 0) return io_error("open", path);
  if (!S_ISREG(info.st_mode)) return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "'%s' is no regular file", path);
  return tl_file_read(path, max_bytes, out);
}

static tl_status write_all(int fd, const char *path, tl_str content) {
  while (content.len > 0) {
    ssize_t written = write(fd, content.data, content.len);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("write", path);
    content = tl_str_sub(content, (size_t)written, content.len - (size_t)written);
  }
  return TL_OK;
}

static tl_status write_in_place(const char *path, tl_str content) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return io_error("open", path);
  tl_status status = write_all(fd, path, content);
  if (close(fd) != 0 && !status) status = io_error("close", path);
  return status;
}

tl_status tl_file_write(const char *path, tl_str content) {
  if (strcmp(path, "-") == 0) return write_all(STDOUT_FILENO, "standard output", content);
  struct stat info;
  bool exists = stat(path, &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) return write_in_place(path, content);
  // Through a symbolic link the file behind it is replaced, not the link.
  char *real = exists ? realpath(path, NULL) : NULL;
  const char *target = real ? real : path;
  tl_strbuf temporary;
  tl_strbuf_init(&temporary);
  tl_strbuf_appendf(&temporary, "%s.XXXXXX", target);
  char *name = tl_strbuf_take(&temporary);
  int fd = mkstemp(name);
  tl_status status = fd < 0 ? io_error("create", path) : TL_OK;
  if (!status) {
    mode_t mask = umask(0);
    umask(mask);
    status = write_all(fd, path, content);
    if (!status && fchmod(fd, exists ? info.st_mode & 07777 : 0666 & ~mask) != 0)
      status = io_error("set the mode of", path);
    if (close(fd) != 0 && !status) status = io_error("close", path);
    if (!status && rename(name, target) != 0) status = io_error("rename", path);
    if (status) unlink(name);
  }
  free(name);
  free(real);
  return status;
}

tl_status tl_file_make_directory(const char *path) {
  struct stat info;
  if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))) return TL_OK;
  return io_error("make the directory", path);
}

tl_status tl_file_write_to(int fd, const char *name, tl_str content) {
  return write_all(fd, name, content);
}
