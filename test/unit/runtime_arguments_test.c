// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/arguments.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/status.h"

static tl_arena arena;
static tl_manifest manifest;

// Two tensors share K; B is half as wide as its name says; alpha and flag are scalars; M and K are dynamic.
static const char text[] =
    "// {\"abi\": 1, \"generator\": \"test\", \"target\": \"sm_80\", \"ptx_version\": \"7.0\", \"kernels\": [\n"
    "// {\"name\": \"mm\", \"params\": [\n"
    "//  {\"kind\": \"tensor\", \"name\": \"A\", \"access\": \"in\", \"dtype\": \"f16\", \"dims\": [\"M\", \"K\"], "
    "\"strides\": [\"sA\", 1], \"align\": 16},\n"
    "//  {\"kind\": \"tensor\", \"name\": \"B\", \"access\": \"in\", \"dtype\": \"u8\", \"dims\": [\"K // 2\", 8], "
    "\"strides\": [8, 1], \"align\": 1},\n"
    "//  {\"kind\": \"scalar\", \"name\": \"alpha\", \"dtype\": \"f16\"},\n"
    "//  {\"kind\": \"scalar\", \"name\": \"flag\", \"dtype\": \"i8\"},\n"
    "//  {\"kind\": \"tensor\", \"name\": \"C\", \"access\": \"out\", \"dtype\": \"f32\", \"dims\": [\"M\"], "
    "\"strides\": [1], \"align\": 16},\n"
    "//  {\"kind\": \"dynamic\", \"name\": \"M\", \"divisor\": 1}, {\"kind\": \"dynamic\", \"name\": \"K\", "
    "\"divisor\": 8},\n"
    "//  {\"kind\": \"stride\", \"name\": \"sA\"},\n"
    "//  {\"kind\": \"workspace\", \"name\": \"w\", \"bytes\": \"M * 4 * num_sms\", \"zero_each_launch\": false}],\n"
    "// \"requires\": [{\"condition\": \"K >= 16 or M == 0\", \"text\": \"K >= 16\"}],\n"
    "// \"grid\": [\"ceildiv(M, 128)\", 1, 1], \"block_threads\": 128, \"math_threads\": 128,\n"
    "// \"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 0, \"cluster\": [1, 1, 1]}]}\n";

static int64_t shape_a[2], shape_b[2], shape_c[1], stride_a[2];
static tl_argument arguments[6];
static void *const good = (void *)0x1000;
static const tl_launch_facts facts = {.num_sms = 132, .resident_blocks = 264};

static void setup(void) {
  tl_arena_init(&arena);
  tl_status status = tl_manifest_read(&arena, (tl_str){text, sizeof text - 1}, &manifest);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  shape_a[0] = shape_c[0] = 300;
  shape_a[1] = 64;
  shape_b[0] = 32;
  shape_b[1] = 8;
  stride_a[0] = 72;
  stride_a[1] = 1;
  arguments[0] = tl_argument_tensor(NULL, good, "float16", 2, shape_a);
  arguments[0].tensor.strides = stride_a;
  arguments[1] = tl_argument_tensor(NULL, (void *)0x1001, "u8", 2, shape_b);
  arguments[2] = tl_argument_float(NULL, 0.5);
  arguments[3] = tl_argument_int(NULL, -128);
  arguments[4] = tl_argument_tensor(NULL, good, "f32", 1, shape_c);
}
static void teardown(void) {
  tl_arena_fini(&arena);
}

static void reset(void) {
  teardown();
  setup();
}

static void expect(size_t count, const char *message) {
  tl_launch_plan plan;
  tl_status status = tl_launch_plan_create(&manifest.kernels[0], arguments, count, &facts, &plan);
  ck_assert_msg(tl_status_code_of(status) == TL_STATUS_INVALID_ARGUMENT, "accepted; expected: %s", message);
  ck_assert_msg(strstr(tl_status_message(status), message) != NULL, "expected: %s\ngiven: %s", message,
                tl_status_message(status));
  tl_status_free(status);
}

START_TEST(binds_and_stores) {
  tl_launch_plan plan;
  tl_status status = tl_launch_plan_create(&manifest.kernels[0], arguments, 5, &facts, &plan);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert_uint_eq(plan.grid[0], 3);
  ck_assert(!plan.is_empty);
  ck_assert_ptr_eq(*(void **)plan.params[0], good);
  ck_assert_uint_eq(*(uint16_t *)plan.params[2], 0x3800);
  ck_assert_int_eq(*(int8_t *)plan.params[3], -128);
  ck_assert_int_eq(*(int32_t *)plan.params[5], 300);
  ck_assert_int_eq(*(int32_t *)plan.params[6], 64);
  ck_assert_int_eq(*(int64_t *)plan.params[7], 72);
  ck_assert_int_eq(plan.workspace_bytes[8], 300 * 4 * 132);
  ck_assert_int_eq(plan.workspace_bytes[0], -1);
  tl_launch_plan_fini(&plan);
}
END_TEST

START_TEST(takes_names_in_any_order) {
  tl_argument first = arguments[0];
  arguments[0] = arguments[4];
  arguments[0].name = "C";
  arguments[4] = first;
  arguments[4].name = "A";
  arguments[5] = tl_argument_int("M", 300);
  tl_launch_plan plan;
  tl_status status = tl_launch_plan_create(&manifest.kernels[0], arguments, 6, &facts, &plan);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  tl_launch_plan_fini(&plan);
}
END_TEST

START_TEST(zero_extents_launch_nothing) {
  shape_a[0] = shape_c[0] = 0;
  arguments[0].tensor.data = arguments[4].tensor.data = NULL;
  tl_launch_plan plan;
  tl_status status = tl_launch_plan_create(&manifest.kernels[0], arguments, 5, &facts, &plan);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert(plan.is_empty);
  tl_launch_plan_fini(&plan);
}
END_TEST

START_TEST(names_count_mistakes) {
  expect(4, "argument 'C' is missing; 'mm' takes the arguments: A, B, alpha, flag, C");
  arguments[5] = tl_argument_int(NULL, 1);
  expect(6, "too many arguments");
  arguments[5].name = "Q";
  expect(6, "unknown argument 'Q'");
  arguments[2].name = arguments[5].name = "alpha";
  expect(6, "argument 'alpha' is given twice");
  arguments[2].name = NULL;
  arguments[5].name = "w";
  expect(6, "unknown argument 'w'");
}
END_TEST

START_TEST(names_type_mistakes) {
  arguments[0].tensor.dtype = "bf16";
  expect(5, "argument 'A': expected dtype f16, given bf16");
  reset();
  arguments[0].tensor.rank = 1;
  expect(5, "argument 'A': expected 2 dimensions, given 1");
  reset();
  arguments[1] = tl_argument_int(NULL, 3);
  expect(5, "argument 'B': expected a tensor, given a number");
  reset();
  arguments[2] = arguments[4];
  expect(5, "argument 'alpha': expected a number, given a tensor");
  reset();
  arguments[3] = tl_argument_int(NULL, 128);
  expect(5, "argument 'flag': expected i8 (-128 to 127), given 128");
  arguments[3] = tl_argument_float(NULL, 1);
  expect(5, "argument 'flag': expected i8, given the floating-point number");
}
END_TEST

// The stride of a dimension of one element may be anything: it tells no size, and a name that only it tells gets a
// value that it can have.
START_TEST(strides_of_one_row_tell_nothing) {
  static const char one_row[] =
      "// {\"abi\": 1, \"generator\": \"test\", \"target\": \"sm_80\", \"ptx_version\": \"7.0\", \"kernels\": [\n"
      "// {\"name\": \"k\", \"params\": [\n"
      "//  {\"kind\": \"tensor\", \"name\": \"A\", \"access\": \"in\", \"dtype\": \"f32\", \"dims\": [\"M\", 4], "
      "\"strides\": [\"ld\", 1], \"align\": 4},\n"
      "//  {\"kind\": \"tensor\", \"name\": \"B\", \"access\": \"out\", \"dtype\": \"f32\", \"dims\": [\"M\", \"N\"], "
      "\"strides\": [\"N\", 1], \"align\": 4},\n"
      "//  {\"kind\": \"dynamic\", \"name\": \"M\", \"divisor\": 1}, {\"kind\": \"dynamic\", \"name\": \"N\", "
      "\"divisor\": 1}, {\"kind\": \"dynamic\", \"name\": \"ld\", \"divisor\": 8}],\n"
      "// \"requires\": [], \"grid\": [\"M\", \"N\", \"ld\"], \"block_threads\": 32, \"math_threads\": 32,\n"
      "// \"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 0, \"cluster\": [1, 1, 1]}]}\n";
  tl_status status = tl_manifest_read(&arena, (tl_str){one_row, sizeof one_row - 1}, &manifest);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  int64_t shape[] = {1, 4}, strides[] = {3, 1}, wide[] = {1, 100}, ones[] = {1, 1};
  arguments[0] = tl_argument_tensor(NULL, good, "f32", 2, shape);
  arguments[0].tensor.strides = strides;
  arguments[1] = tl_argument_tensor(NULL, good, "f32", 2, wide);
  arguments[1].tensor.strides = ones;
  for (int64_t given = 3; given <= 16; given += 13) {  // 3 is no multiple of 8, 16 is
    strides[0] = given;
    tl_launch_plan plan;
    status = tl_launch_plan_create(&manifest.kernels[0], arguments, 2, &facts, &plan);
    ck_assert_msg(!status, "%s", tl_status_message(status));
    ck_assert_uint_eq(plan.grid[1], 100);
    ck_assert_uint_eq(plan.grid[2], given == 16 ? 16 : 8);
    tl_launch_plan_fini(&plan);
  }
  shape[0] = wide[0] = 2;
  expect(2, "argument 'B': stride of dimension 0: expected 100 (N of argument 'B'), given 1");
}
END_TEST

START_TEST(names_shape_mistakes) {
  shape_c[0] = 299;
  expect(5, "argument 'C': dimension 0: expected 300 (M of argument 'A'), given 299");
  reset();
  shape_b[0] = 33;
  expect(5, "argument 'B': dimension 0: expected 32 (K // 2), given 33");
  reset();
  shape_b[1] = 9;
  expect(5, "argument 'B': dimension 1: expected 8, given 9");
  reset();
  stride_a[1] = 2;
  expect(5, "argument 'A': stride of dimension 1: expected 1, given 2");
  reset();
  shape_a[1] = 60;
  expect(5, "argument 'A': the dynamic name 'K' is 60, expected a multiple of 8");
  reset();
  shape_a[0] = INT64_C(1) << 31;
  expect(5, "the dynamic name 'M' is 2147483648, expected 0 to 2147483647");
  reset();
  // A wide one holds more, in 64 bits.
  tl_manifest_param *wide = &manifest.kernels[0].params[5];
  ck_assert_str_eq(wide->name, "M");
  wide->dtype = TL_DTYPE_I64;
  shape_a[0] = shape_c[0] = INT64_C(3000000000);
  tl_launch_plan plan;
  tl_status status = tl_launch_plan_create(&manifest.kernels[0], arguments, 5, &facts, &plan);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert_int_eq(*(const int64_t *)plan.params[5], INT64_C(3000000000));
  ck_assert_uint_eq(plan.grid[0], 23437500);
  tl_launch_plan_fini(&plan);
  shape_a[0] = INT64_C(1) << 47;
  expect(5, "the dynamic name 'M' is 140737488355328, expected 0 to 140737488355327");
  wide->dtype = TL_DTYPE_I32;
  reset();
  shape_a[0] = -1;
  expect(5, "argument 'A': dimension 0 is negative: -1");
  reset();
  arguments[5] = tl_argument_int("M", 301);
  expect(6, "argument 'A': dimension 0: expected 301 (M), given 300");
}
END_TEST

static tl_status refuse(void *user, const char *name, const void *pointer) {
  (void)user;
  (void)name;
  return pointer == good ? TL_OK : tl_status_make(TL_STATUS_INVALID_ARGUMENT, "argument '%s': not here", name);
}

START_TEST(names_pointer_mistakes) {
  arguments[0].tensor.data = NULL;
  expect(5, "argument 'A': expected a device pointer, given NULL");
  arguments[0].tensor.data = (void *)0x1008;
  expect(5, "argument 'A': expected a pointer aligned to 16 bytes, given 0x1008");
  arguments[0].tensor.data = good;
  tl_launch_facts strict = facts;
  strict.validate_pointer = refuse;
  tl_launch_plan plan;
  tl_status status = tl_launch_plan_create(&manifest.kernels[0], arguments, 5, &strict, &plan);
  ck_assert_str_eq(tl_status_message(status), "argument 'B': not here");
  tl_status_free(status);
}
END_TEST

START_TEST(quotes_requires_and_limits) {
  shape_a[1] = 8;
  shape_b[0] = 4;
  expect(5, "'mm' requires K >= 16, which does not hold with M = 300, K = 8, sA = 72");
  reset();
  manifest.kernels[0].cluster[0] = 2;
  expect(5, "grid of 'mm': x is 3, expected a multiple of the cluster's 2");
}
END_TEST

static bool renews(tl_launch_plan *plan, size_t count) {
  if (!tl_launch_plan_is_of(&manifest.kernels[0], plan, arguments, count)) return false;
  tl_status status = tl_launch_plan_renew(&manifest.kernels[0], arguments, count, &facts, plan);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  return true;
}

// Memory and scalars may differ; whatever else a plan depends on may not.
START_TEST(renews_for_the_same_shapes) {
  tl_launch_plan plan = {0};
  ck_assert(!renews(&plan, 5));
  ck_assert_ptr_null(tl_launch_plan_create(&manifest.kernels[0], arguments, 5, &facts, &plan));
  char dtype[] = "float16";
  int64_t shape[] = {300, 64}, strides[] = {72, 1};  // other memory with the same numbers
  arguments[0] = tl_argument_tensor(NULL, (void *)0x2000, dtype, 2, shape);
  arguments[0].tensor.strides = strides;
  arguments[2].float_value = -2;
  arguments[3].int_value = 5;
  ck_assert(renews(&plan, 5));
  ck_assert_ptr_eq(*(void **)plan.params[0], (void *)0x2000);
  ck_assert_uint_eq(*(uint16_t *)plan.params[2], 0xc000);
  ck_assert_int_eq(*(int8_t *)plan.params[3], 5);
  ck_assert(!renews(&plan, 4));
  shape[0] = 299;
  ck_assert(!renews(&plan, 5));
  shape[0] = 300;
  strides[0] = 80;
  ck_assert(!renews(&plan, 5));
  strides[0] = 72;
  arguments[0].tensor.strides = NULL;
  ck_assert(!renews(&plan, 5));
  arguments[0].tensor.strides = strides;
  dtype[5] = '3';
  ck_assert(!renews(&plan, 5));
  dtype[5] = '1';
  arguments[0].name = "A";
  ck_assert(!renews(&plan, 5));
  arguments[0].name = NULL;
  ck_assert(renews(&plan, 5));
  tl_launch_plan_fini(&plan);
  // A name that is given.
  arguments[5] = tl_argument_int("M", 300);
  ck_assert_ptr_null(tl_launch_plan_create(&manifest.kernels[0], arguments, 6, &facts, &plan));
  ck_assert(renews(&plan, 6));
  arguments[5].int_value = 301;
  ck_assert(!renews(&plan, 6));
  tl_launch_plan_fini(&plan);
}
END_TEST

START_TEST(renewals_are_checked) {
  tl_launch_plan plan;
  ck_assert_ptr_null(tl_launch_plan_create(&manifest.kernels[0], arguments, 5, &facts, &plan));
  static const struct {
    void *pointer;
    int64_t flag;
    const char *message;
  } wrong[] = {{(void *)0x1004, 1, "aligned to 16"}, {NULL, 1, "given NULL"}, {(void *)0x1000, 200, "given 200"}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    arguments[4].tensor.data = wrong[i].pointer;
    arguments[3].int_value = wrong[i].flag;
    tl_status status = tl_launch_plan_renew(&manifest.kernels[0], arguments, 5, &facts, &plan);
    ck_assert_msg(strstr(tl_status_message(status), wrong[i].message) != NULL, "%s", tl_status_message(status));
    tl_status_free(status);
  }
  arguments[4].tensor.data = good;
  arguments[3].int_value = 1;
  ck_assert(renews(&plan, 5));
  tl_launch_plan_fini(&plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("runtime_arguments");
  TCase *tests = tcase_create("arguments");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, binds_and_stores);
  tcase_add_test(tests, takes_names_in_any_order);
  tcase_add_test(tests, zero_extents_launch_nothing);
  tcase_add_test(tests, names_count_mistakes);
  tcase_add_test(tests, names_type_mistakes);
  tcase_add_test(tests, strides_of_one_row_tell_nothing);
  tcase_add_test(tests, names_shape_mistakes);
  tcase_add_test(tests, names_pointer_mistakes);
  tcase_add_test(tests, quotes_requires_and_limits);
  tcase_add_test(tests, renews_for_the_same_shapes);
  tcase_add_test(tests, renewals_are_checked);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
