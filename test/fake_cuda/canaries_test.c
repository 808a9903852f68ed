// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes around a GPU's buffers that a kernel changed are found. Over the fake driver, whose device memory is the
// host's, so that the test can write where a kernel must not; test/gpu/canaries.sh lets a kernel do it on a GPU.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/device.h"

enum { BYTES = 1000 };

static tl_run_device *device;

static void setup(void) {
  const tl_emu_options unused = {0};
  ck_assert_ptr_null(tl_run_device_open(TL_RUN_CUDA, &unused, &device));
}

static void teardown(void) {
  tl_status_free(tl_run_device_close(device));
}

typedef struct overwrite {
  int64_t at;           // byte of the buffer
  const char *message;  // NULL: no canary may complain
} overwrite;

static const overwrite overwrites[] = {
    {0, NULL},
    {BYTES - 1, NULL},
    {-1, "the kernel wrote before 'x': byte -1"},
    {-17, "the kernel wrote before 'x': byte -17"},
    {BYTES, "the kernel wrote behind 'x': byte 1000"},
    {BYTES + 255, "the kernel wrote behind 'x': byte 1255"},
};

START_TEST(a_changed_byte_is_named) {
  const overwrite *row = &overwrites[_i];
  tl_run_buffer buffer;
  ck_assert_ptr_null(tl_run_device_alloc(device, BYTES, 16, &buffer));
  ((uint8_t *)buffer.pointer)[row->at] ^= 0xff;
  tl_status status = tl_run_device_release(device, &buffer, "x");
  ck_assert_int_eq(tl_status_code_of(status), row->message ? TL_STATUS_CHECK_FAILED : TL_STATUS_OK);
  if (row->message) ck_assert_str_eq(tl_status_message(status), row->message);
  tl_status_free(status);
  ck_assert_ptr_null(buffer.base);
}
END_TEST

START_TEST(a_buffer_that_no_kernel_used_is_not_checked) {
  tl_run_buffer buffer;
  ck_assert_ptr_null(tl_run_device_alloc(device, BYTES, 16, &buffer));
  ((uint8_t *)buffer.pointer)[-1] ^= 0xff;
  ck_assert_ptr_null(tl_run_device_release(device, &buffer, NULL));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("canaries");
  TCase *tcase = tcase_create("canaries");
  tcase_add_checked_fixture(tcase, setup, teardown);
  tcase_add_loop_test(tcase, a_changed_byte_is_named, 0, (int)(sizeof overwrites / sizeof *overwrites));
  tcase_add_test(tcase, a_buffer_that_no_kernel_used_is_not_checked);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
