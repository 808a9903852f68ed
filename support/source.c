// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/strbuf.h"

void tl_sources_init(tl_sources *sources) {
  *sources = (tl_sources){0};
  tl_arena_init(&sources->arena);
}

void tl_sources_fini(tl_sources *sources) {
  free(sources->items);
  tl_arena_fini(&sources->arena);
  *sources = (tl_sources){0};
}

static void index_lines(tl_sources *sources, tl_source *source) {
  uint32_t count = 1;
  for (size_t i = 0; i < source->text.len; i++) count += source->text.data[i] == '\n';
  source->line_starts = TL_NEW_ARRAY(&sources->arena, uint32_t, count);
  source->num_lines = count;
  uint32_t line = 1;
  for (size_t i = 0; i < source->text.len; i++) {
    if (source->text.data[i] == '\n') source->line_starts[line++] = (uint32_t)(i + 1);
  }
}

static uint32_t append(tl_sources *sources, tl_source *source) {
  if (sources->count == sources->capacity) {
    sources->capacity = sources->capacity ? 2 * sources->capacity : 8;
    sources->items = tl_xrealloc(sources->items, sources->capacity * sizeof(*sources->items));
  }
  sources->items[sources->count] = source;
  return ++sources->count;
}

uint32_t tl_sources_add(tl_sources *sources, const char *name, tl_str text) {
  tl_source *source = TL_NEW(&sources->arena, tl_source);
  source->name = tl_arena_copy_bytes(&sources->arena, name, strlen(name));
  source->text = (tl_str){tl_arena_copy_bytes(&sources->arena, text.data, text.len), text.len};
  index_lines(sources, source);
  return append(sources, source);
}

uint32_t tl_sources_add_expansion(tl_sources *sources, uint32_t source, tl_str macro, tl_loc used_at) {
  tl_source *expansion = TL_NEW(&sources->arena, tl_source);
  *expansion = *sources->items[source - 1];
  expansion->macro = tl_arena_copy_bytes(&sources->arena, macro.data, macro.len);
  expansion->used_at = used_at;
  return append(sources, expansion);
}

void tl_sources_set_used_at(tl_sources *sources, uint32_t source, tl_loc used_at) {
  sources->items[source - 1]->used_at = used_at;
}

// Reads all of `fd` into `buffer`, at most max_bytes.
static tl_status read_all(int fd, const char *path, size_t max_bytes, tl_strbuf *buffer) {
  char chunk[65536];
  for (;;) {
    ssize_t got = read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl_status_make(TL_STATUS_IO, "cannot read %s: %s", path, strerror(errno));
    if (got == 0) return TL_OK;
    if (buffer->len + (size_t)got > max_bytes) {
      return tl_status_make(TL_STATUS_LIMIT, "%s is larger than the limit of %zu bytes", path, max_bytes);
    }
    tl_strbuf_append(buffer, (tl_str){chunk, (size_t)got});
  }
}

static tl_status read_path(const char *path, size_t max_bytes, tl_strbuf *buffer) {
  if (strcmp(path, "-") == 0) return read_all(STDIN_FILENO, "standard input", max_bytes, buffer);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return tl_status_make(errno == ENOENT ? TL_STATUS_NOT_FOUND : TL_STATUS_IO, "cannot open %s: %s", path,
                          strerror(errno));
  }
  struct stat info;
  tl_status status = TL_OK;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size > max_bytes) {
    status = tl_status_make(TL_STATUS_LIMIT, "%s has %lld bytes; the limit is %zu", path, (long long)info.st_size,
                            max_bytes);
  } else {
    status = read_all(fd, path, max_bytes, buffer);
  }
  close(fd);
  return status;
}

tl_status tl_sources_read(tl_sources *sources, const char *path, size_t max_bytes, uint32_t *out_source) {
  tl_strbuf buffer;
  tl_strbuf_init(&buffer);
  tl_status status = read_path(path, max_bytes, &buffer);
  if (!status) {
    *out_source = tl_sources_add(sources, strcmp(path, "-") == 0 ? "<stdin>" : path, tl_strbuf_view(&buffer));
    sources->items[*out_source - 1]->is_file = true;
  }
  tl_strbuf_fini(&buffer);
  return status;
}

const tl_source *tl_sources_get(const tl_sources *sources, uint32_t source) {
  return source >= 1 && source <= sources->count ? sources->items[source - 1] : NULL;
}

// Last line that starts at or before `offset`, 0-based.
static uint32_t find_line(const tl_source *source, uint32_t offset) {
  uint32_t low = 0, high = source->num_lines;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (source->line_starts[middle] <= offset) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

const char *tl_sources_short_name(const tl_sources *sources, const tl_source *source) {
  const char *first = sources->items[0]->name, *first_slash = strrchr(first, '/');
  size_t directory = first_slash ? (size_t)(first_slash - first) + 1 : 0;
  if ((directory || source->name[0] != '/') && !strncmp(source->name, first, directory))
    return source->name + directory;
  const char *slash = strrchr(source->name, '/');
  return slash ? slash + 1 : source->name;
}

tl_line_column tl_source_position(const tl_source *source, uint32_t offset) {
  if (offset > source->text.len) offset = (uint32_t)source->text.len;
  uint32_t line = find_line(source, offset);
  uint32_t column = 1;
  uint32_t start = source->line_starts[line];
  // A byte-order mark is no character of the first line.
  if (start == 0 && tl_str_starts_with(source->text, "\xef\xbb\xbf")) start = 3;
  for (uint32_t i = start; i < offset; i++) column += ((unsigned char)source->text.data[i] & 0xc0) != 0x80;
  return (tl_line_column){line + 1, column};
}

tl_str tl_source_line(const tl_source *source, uint32_t line) {
  if (line < 1 || line > source->num_lines) return (tl_str){0};
  uint32_t start = source->line_starts[line - 1];
  uint32_t end = line < source->num_lines ? source->line_starts[line] - 1 : (uint32_t)source->text.len;
  tl_str text = {source->text.data + start, end - start};
  if (tl_str_ends_with(text, "\r")) text.len--;
  return text;
}

tl_loc tl_loc_join(tl_loc a, tl_loc b) {
  if (!a.source || a.source != b.source) return a.source ? a : b;
  uint32_t start = a.offset < b.offset ? a.offset : b.offset;
  uint32_t end_a = a.offset + a.length, end_b = b.offset + b.length;
  return (tl_loc){a.source, start, (end_a > end_b ? end_a : end_b) - start};
}

tl_str tl_loc_text(const tl_sources *sources, tl_loc loc) {
  const tl_source *source = tl_sources_get(sources, loc.source);
  return source ? tl_str_sub(source->text, loc.offset, loc.length) : (tl_str){0};
}
