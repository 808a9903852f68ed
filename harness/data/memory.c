// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/data/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// A number in a file of the kernel; UINT64_MAX when there is none ("max", no such file).
static uint64_t number_in(const char *path) {
  FILE *file = fopen(path, "re");
  unsigned long long value = 0;
  bool has_value = file && fscanf(file, "%llu", &value) == 1;
  if (file) fclose(file);
  return has_value ? value : UINT64_MAX;
}

uint64_t tl_memory_default_limit(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
  bytes = least(bytes, number_in("/sys/fs/cgroup/memory.max"));
  bytes = least(bytes, number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) bytes = least(bytes, limit.rlim_cur);
  return bytes == UINT64_MAX ? bytes : bytes / 4 * 3;
}

static const char units[] = "KMGT";

bool tl_memory_parse(const char *text, uint64_t *out) {
  char *end;
  double value = strtod(text, &end);
  if (end == text) return false;
  const char *unit = *end ? strchr(units, *end) : NULL;
  if (*end && (!unit || end[1])) return false;
  for (const char *u = units; unit && u <= unit; u++) value *= 1024;
  if (!(value >= 1 && value < 0x1p63)) return false;
  *out = (uint64_t)value;
  return true;
}

void tl_memory_print(uint64_t bytes, tl_strbuf *out) {
  double value = (double)bytes;
  int power = -1;
  while (value >= 1024 && power < 3) {
    value /= 1024;
    power++;
  }
  if (power < 0) {
    tl_strbuf_appendf(out, "%llu bytes", (unsigned long long)bytes);
  } else {
    tl_strbuf_appendf(out, "%.4g %ciB", value, units[power]);
  }
}
