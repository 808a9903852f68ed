// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/device/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/data/file.h"

enum { MAX_LOG_BYTES = 1 << 20, MAX_CUBIN_BYTES = 1 << 30, DEFAULT_TIMEOUT_S = 120, VERSION_TIMEOUT_S = 20 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Reads the pipe until its end or the deadline. True at the end.
static bool drain(int fd, double deadline, tl_strbuf *out) {
  char chunk[4096];
  for (;;) {
    double left = deadline - now();
    if (left <= 0) return false;
    struct pollfd item = {.fd = fd, .events = POLLIN};
    int ready = poll(&item, 1, left > 1 ? 1000 : (int)(left * 1000) + 1);
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    ssize_t got = read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    // What a child floods us with beyond this is of no use to anybody.
    if (out->len < MAX_LOG_BYTES) tl_strbuf_append(out, (tl_str){chunk, (size_t)got});
  }
}

// Waits for a child whose pipe has ended: it may have closed its end and go on. False when time runs out.
static bool wait_until(pid_t child, double deadline, int *out_status) {
  const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
  for (;;) {
    pid_t ended = waitpid(child, out_status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (now() >= deadline) return false;
    nanosleep(&pause, NULL);
  }
}

// Runs a program with its output collected (both streams). LIMIT after `timeout_s` seconds; the exit status in
// `out_status`.
static tl_status run_child(const char *const *argv, double timeout_s, tl_strbuf *out_log, int *out_status) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return tl_status_make(TL_STATUS_IO, "pipe: %s", strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that what the child starts ends with it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  int error = posix_spawn(&child, argv[0], &actions, &attributes, (char *const *)argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    return tl_status_make(error == ENOENT ? TL_STATUS_NOT_FOUND : TL_STATUS_IO, "cannot start '%s': %s", argv[0],
                          strerror(error));
  }
  double deadline = now() + timeout_s;
  int status = 0;
  bool ended = drain(ends[0], deadline, out_log);
  close(ends[0]);
  ended = ended && wait_until(child, deadline, &status);
  if (!ended) {
    kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (!ended) return tl_status_make(TL_STATUS_LIMIT, "'%s' did not end within %g s", argv[0], timeout_s);
  *out_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return TL_OK;
}

// The first executable `ptxas` in PATH. free() it.
static char *find_in_path(void) {
  const char *path = getenv("PATH");
  while (path && *path) {
    size_t len = strcspn(path, ":");
    char *candidate = NULL;
    if (asprintf(&candidate, "%.*s/ptxas", (int)len, path) < 0) return NULL;
    if (len > 0 && access(candidate, X_OK) == 0) return candidate;
    free(candidate);
    path += len + (path[len] == ':');
  }
  return NULL;
}

// "Cuda compilation tools, release 13.0, V13.0.88" → "13.0.88".
static tl_status ask_version(tl_ptxas *ptxas) {
  const char *argv[] = {ptxas->path, "--version", NULL};
  tl_strbuf log;
  tl_strbuf_init(&log);
  int code = 0;
  double timeout_s = ptxas->timeout_s < VERSION_TIMEOUT_S ? ptxas->timeout_s : VERSION_TIMEOUT_S;
  tl_status status = run_child(argv, timeout_s, &log, &code);
  const char *at = status ? NULL : strstr(tl_strbuf_c(&log), ", V");
  if (!status && (code != 0 || !at))
    status = tl_status_make(TL_STATUS_NOT_FOUND, "'%s' is no working ptxas", ptxas->path);
  if (at && !status) ptxas->version = strndup(at + 3, strspn(at + 3, "0123456789."));
  tl_strbuf_fini(&log);
  return status;
}

tl_status tl_ptxas_find(const char *path, double timeout_s, tl_ptxas *out) {
  *out = (tl_ptxas){.timeout_s = timeout_s > 0 ? timeout_s : DEFAULT_TIMEOUT_S};
  static const char usual[] = "/usr/local/cuda/bin/ptxas";
  if (!path) path = getenv("TL_PTXAS");
  if (path && *path) {
    out->path = strdup(path);
  } else {
    out->path = find_in_path();
    if (!out->path && access(usual, X_OK) == 0) out->path = strdup(usual);
  }
  if (!out->path) {
    return tl_status_make(TL_STATUS_NOT_FOUND,
                          "ptxas is found neither in PATH nor as %s; name it by --ptxas or TL_PTXAS", usual);
  }
  tl_status status = ask_version(out);
  if (status) tl_ptxas_fini(out);
  return status;
}

void tl_ptxas_fini(tl_ptxas *ptxas) {
  free(ptxas->path);
  free(ptxas->version);
  *ptxas = (tl_ptxas){0};
}

// The largest number right before a phrase of ptxas' report, which has a part for each kernel; 0 when it is absent.
static int number_before(const char *log, const char *phrase) {
  int most = 0;
  for (const char *found = strstr(log, phrase); found; found = strstr(found + 1, phrase)) {
    const char *at = found;
    while (at > log && at[-1] >= '0' && at[-1] <= '9') at--;
    if (atoi(at) > most) most = atoi(at);
  }
  return most;
}

static void read_usage(const char *log, tl_ptxas_usage *usage) {
  usage->registers = number_before(log, " registers");
  usage->stack_bytes = number_before(log, " bytes stack frame");
  usage->spill_store_bytes = number_before(log, " bytes spill stores");
  usage->spill_load_bytes = number_before(log, " bytes spill loads");
}

static tl_status assemble_in(const tl_ptxas *ptxas, const char *directory, const char *target, tl_str ptx,
                             tl_strbuf *out_cubin, tl_ptxas_usage *out_usage) {
  char input[512], output[512], arch[64];
  snprintf(input, sizeof input, "%s/kernel.ptx", directory);
  snprintf(output, sizeof output, "%s/kernel.cubin", directory);
  snprintf(arch, sizeof arch, "-arch=%s", target);
  TL_TRY(tl_file_write(input, ptx));
  const char *argv[] = {ptxas->path, "-v", arch, "-o", output, input, NULL};
  tl_strbuf log;
  tl_strbuf_init(&log);
  int code = 0;
  tl_status status = run_child(argv, ptxas->timeout_s, &log, &code);
  if (!status && code != 0) {
    status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "ptxas failed with %d:\n%s", code, tl_strbuf_c(&log));
  }
  if (!status && access(output, F_OK) != 0)
    status = tl_status_make(TL_STATUS_IO, "'%s' ended with 0 but wrote no cubin", ptxas->path);
  if (!status) status = tl_file_read_regular(output, MAX_CUBIN_BYTES, out_cubin);
  if (!status && out_usage) read_usage(tl_strbuf_c(&log), out_usage);
  tl_strbuf_fini(&log);
  unlink(input);
  unlink(output);
  return status;
}

tl_status tl_ptxas_assemble(const tl_ptxas *ptxas, const char *target, tl_str ptx, tl_strbuf *out_cubin,
                            tl_ptxas_usage *out_usage) {
  const char *base = getenv("TMPDIR");
  char directory[256];
  snprintf(directory, sizeof directory, "%s/tl-ptxas-XXXXXX", base && *base ? base : P_tmpdir);
  if (!mkdtemp(directory)) return tl_status_make(TL_STATUS_IO, "cannot create '%s': %s", directory, strerror(errno));
  tl_status status = assemble_in(ptxas, directory, target, ptx, out_cubin, out_usage);
  rmdir(directory);
  return status;
}
