// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For emulator tests: kernels from test/emulator/*.ll, and buffers.
#ifndef TL_TEST_UNIT_EMULATOR_UTIL_H
#define TL_TEST_UNIT_EMULATOR_UTIL_H

#include <check.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/machine/emulator.h"

typedef struct kernel_shape {
  uint32_t num_params;
  int32_t threads;
  int64_t dynamic_bytes;
  uint32_t checks;
  int32_t cluster;  // blocks of a cluster along x; 0: 1
  const tl_debug_info *debug;
} kernel_shape;

static inline tl_status create_from_buffer(LLVMMemoryBufferRef text, const char *kernel, kernel_shape shape,
                                           tl_emu_kernel **out) {
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = NULL;
  char *message = NULL;
  int failed = LLVMParseIRInContext2(context, text, &module, &message);
  ck_assert_msg(!failed, "%s", message);
  LLVMDisposeMemoryBuffer(text);
  LLVMMemoryBufferRef bitcode = LLVMWriteBitcodeToMemoryBuffer(module);
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
  tl_manifest_param params[16] = {{0}};
  tl_manifest_kernel manifest = {.name = kernel,
                                 .params = params,
                                 .num_params = shape.num_params,
                                 .block_threads = shape.threads,
                                 .dynamic_shared_bytes = shape.dynamic_bytes,
                                 .cluster = {shape.cluster, 1, 1}};
  tl_status status = tl_emu_kernel_create_sanitized(LLVMGetBufferStart(bitcode), LLVMGetBufferSize(bitcode), &manifest,
                                                    shape.checks, shape.debug, out);
  LLVMDisposeMemoryBuffer(bitcode);
  return status;
}

// From a file of test/emulator. Tests run in the root of the source tree.
static inline tl_status create_kernel(const char *file, const char *kernel, kernel_shape shape, tl_emu_kernel **out) {
  char path[256];
  snprintf(path, sizeof path, "test/emulator/%s", file);
  LLVMMemoryBufferRef text = NULL;
  char *message = NULL;
  int failed = LLVMCreateMemoryBufferWithContentsOfFile(path, &text, &message);
  ck_assert_msg(!failed, "%s: %s", path, message);
  return create_from_buffer(text, kernel, shape, out);
}

static inline tl_status create_from_text(const char *text, const char *kernel, kernel_shape shape,
                                         tl_emu_kernel **out) {
  return create_from_buffer(LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "test"), kernel, shape, out);
}

static inline void expect_ok(tl_status status) {
  ck_assert_msg(!status, "%s", tl_status_message(status));
}

static inline tl_emu_kernel *must_create(const char *file, const char *kernel, kernel_shape shape) {
  tl_emu_kernel *made = NULL;
  expect_ok(create_kernel(file, kernel, shape, &made));
  return made;
}

// The launch must fail with `code` and a message that holds each of the texts (up to three, NULL ends).
static inline void expect_failure(tl_status status, tl_status_code code, const char *a, const char *b, const char *c) {
  ck_assert_msg(tl_status_code_of(status) == code, "%s: %s", tl_status_code_name(tl_status_code_of(status)),
                tl_status_message(status));
  const char *texts[] = {a, b, c};
  for (int i = 0; i < 3 && texts[i]; i++)
    ck_assert_msg(strstr(tl_status_message(status), texts[i]) != NULL, "no '%s' in: %s", texts[i],
                  tl_status_message(status));
  tl_status_free(status);
}

static inline int run_suite(const char *name, void (*add)(TCase *)) {
  Suite *suite = suite_create(name);
  TCase *cases = tcase_create(name);
  tcase_set_timeout(cases, 100);
  add(cases);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
