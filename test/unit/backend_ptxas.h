// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Assembling PTX in tests, when ptxas is there.
#ifndef TL_TEST_BACKEND_PTXAS_H
#define TL_TEST_BACKEND_PTXAS_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TL_TEST_PTXAS "/usr/local/cuda/bin/ptxas"

typedef struct tl_test_cubin {
  bool ok;
  bool is_serialized;  // ptxas put waits between wgmmas that were meant to overlap (C7510 and its like)
  int registers, spill_bytes;
} tl_test_cubin;

static inline bool tl_test_has_ptxas(void) {
  return access(TL_TEST_PTXAS, X_OK) == 0;
}

// Assembles the text for `arch`. Prints ptxas' output when it refuses.
static inline tl_test_cubin tl_test_assemble(const char *ptx, const char *arch) {
  char path[] = "tl_test_ptx_XXXXXX", line[512];
  tl_test_cubin result = {.registers = -1};
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, ptx, strlen(ptx)), (ssize_t)strlen(ptx));
  close(fd);
  snprintf(line, sizeof line, TL_TEST_PTXAS " -v -arch=%s -o /dev/null %s 2>&1", arch, path);
  FILE *pipe = popen(line, "r");
  ck_assert(pipe != NULL);
  char text[8192] = "";
  size_t len = 0;
  while (fgets(line, sizeof line, pipe)) {
    const char *used = strstr(line, "Used "), *spill = strstr(line, "bytes stack frame, ");
    if (used) sscanf(used, "Used %d registers", &result.registers);
    if (spill) sscanf(spill, "bytes stack frame, %d bytes spill", &result.spill_bytes);
    if (strstr(line, "wgmma.mma_async instructions are serialized")) result.is_serialized = true;
    if (len + strlen(line) < sizeof text) len += (size_t)sprintf(text + len, "%s", line);
  }
  result.ok = pclose(pipe) == 0;
  unlink(path);
  if (!result.ok) printf("%s\n", text);
  return result;
}

#endif
