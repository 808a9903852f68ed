// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/versions.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/status.h"

static tl_arena arena;

// The version wants A at a multiple of 16 bytes, N a multiple of 8, and a map of A.
#define KERNEL(name, align, divisor, more)                                                                         \
  "{\"name\": \"" name                                                                                             \
  "\", \"params\": [{\"kind\": \"tensor\", \"name\": \"A\", \"access\": \"in\", "                                  \
  "\"dtype\": \"f16\", \"dims\": [\"M\", \"N\"], \"strides\": [\"ld\", 1], \"align\": " align                      \
  "},"                                                                                                             \
  "{\"kind\": \"dynamic\", \"name\": \"M\", \"divisor\": 1}, {\"kind\": \"dynamic\", \"name\": \"N\", "            \
  "\"divisor\": " divisor "}, {\"kind\": \"dynamic\", \"name\": \"ld\", \"dtype\": \"i64\", \"divisor\": " divisor \
  "}" more                                                                                                         \
  "], \"requires\": [], \"grid\": [\"min(M, resident_blocks)\", 1, 1], \"block_threads\": 128, \"math_threads\": " \
  "128, "                                                                                                          \
  "\"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 0, \"cluster\": [1, 1, 1]"
#define MAP                                                                                                      \
  ", {\"kind\": \"tensor_map\", \"name\": \"A_map\", \"access\": \"in\", \"tensor\": \"A\", \"type\": \"f16\", " \
  "\"dims\": [\"N\", \"M\"], "                                                                                   \
  "\"strides\": [\"ld * 2\"], \"box\": [64, 8], \"swizzle\": 128, \"l2\": 0, \"fill\": \"zero\"}"
#define HEAD "{\"abi\": 1, \"generator\": \"test\", \"target\": \"sm_90a\", \"ptx_version\": \"8.0\", \"kernels\": ["

static const char text[] =
    HEAD KERNEL("k", "2", "1", "") ", \"aligned\": \"k$aligned\"}, " KERNEL("k$aligned", "16", "8", MAP) "}]}";

static tl_manifest manifest;
static const tl_launch_facts facts = {.num_sms = 1, .resident_blocks = 2}, aligned_facts = {1, 3, NULL, NULL};

static tl_status read_text(const char *from, tl_manifest *out) {
  return tl_manifest_read(&arena, tl_str_from(from), out);
}

static void setup(void) {
  tl_arena_init(&arena);
  tl_status status = read_text(text, &manifest);
  ck_assert_msg(!status, "%s", tl_status_message(status));
}
static void teardown(void) {
  tl_arena_fini(&arena);
}

// The kernel that a launch takes.
static uint32_t taken(uintptr_t address, int64_t n, int64_t ld, const tl_launch_facts *of_version) {
  int64_t shape[] = {100, n}, strides[] = {ld, 1};
  tl_argument argument = tl_argument_tensor("A", (void *)address, "f16", 2, shape);
  argument.tensor.strides = strides;
  tl_launch_plan plan;
  uint32_t index;
  tl_status status = tl_launch_plan_version(&manifest, 0, &argument, 1, &facts, of_version, &plan, &index);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert_uint_eq(plan.grid[0], index ? 3 : 2);
  tl_launch_plan_fini(&plan);
  return index;
}

START_TEST(arguments_choose) {
  ck_assert_uint_eq(taken(0x1000, 64, 64, &aligned_facts), 1);
  ck_assert_uint_eq(taken(0x1000, 64, 64, NULL), 0);
  ck_assert_uint_eq(taken(0x1002, 64, 64, &aligned_facts), 0);
  ck_assert_uint_eq(taken(0x1008, 64, 64, &aligned_facts), 0);
  ck_assert_uint_eq(taken(0x1000, 63, 64, &aligned_facts), 0);
  ck_assert_uint_eq(taken(0x1000, 64, 68, &aligned_facts), 0);
  ck_assert_uint_eq(taken(0x1000, 8, 1 << 20, &aligned_facts), 1);
  // No map has such a stride.
  ck_assert_uint_eq(taken(0x1000, 8, INT64_C(1) << 40, &aligned_facts), 0);
}
END_TEST

static uint32_t taken_of(const tl_argument *arguments, size_t num) {
  tl_launch_plan plan;
  uint32_t index;
  tl_status status = tl_launch_plan_version(&manifest, 0, arguments, num, &facts, &aligned_facts, &plan, &index);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  tl_launch_plan_fini(&plan);
  return index;
}

// Sizes come by name, too, and from strides that are not given.
START_TEST(names_choose) {
  static const int64_t even[] = {100, 64}, odd[] = {100, 63};
  tl_argument arguments[] = {tl_argument_int("N", 64), tl_argument_tensor(NULL, (void *)0x1000, "f16", 2, even)};
  ck_assert_uint_eq(taken_of(arguments, 2), 1);
  ck_assert_uint_eq(taken_of(arguments + 1, 1), 1);
  arguments[1].tensor.data = (void *)0x1008;
  ck_assert_uint_eq(taken_of(arguments, 2), 0);
  arguments[1] = tl_argument_tensor("A", (void *)0x1000, "f16", 2, odd);
  ck_assert_uint_eq(taken_of(arguments + 1, 1), 0);
  arguments[0].int_value = 63;
  ck_assert_uint_eq(taken_of(arguments, 2), 0);
}
END_TEST

START_TEST(mistakes_are_the_kernels_own) {
  int64_t shape[] = {100, 64};
  const tl_argument argument = tl_argument_tensor("A", (void *)0x1001, "f16", 2, shape);
  tl_launch_plan plan;
  uint32_t index;
  tl_status status = tl_launch_plan_version(&manifest, 0, &argument, 1, &facts, &aligned_facts, &plan, &index);
  ck_assert_str_eq(tl_status_message(status), "argument 'A': expected a pointer aligned to 2 bytes, given 0x1001");
  tl_status_free(status);
}
END_TEST

START_TEST(versions_stand_behind) {
  static const struct {
    const char *text, *message;
  } wrong[] = {
      {HEAD KERNEL("k", "2", "1", "") ", \"aligned\": \"k\"}]}", "aligned must name a kernel behind it"},
      {HEAD KERNEL("k", "2", "1", "") ", \"aligned\": \"none\"}]}", "aligned must name a kernel behind it"},
      {HEAD KERNEL("k", "2", "1", "") ", \"aligned\": 1}]}", "aligned"},
      {HEAD KERNEL("k", "2", "1", "") ", \"aligned\": \"v\"}, " KERNEL(
           "l", "2", "1", "") ", \"aligned\": \"v\"}, " KERNEL("v", "2", "1", "") "}]}",
       "which is no other's version"},
      {HEAD KERNEL("k", "2", "1", "") ", \"aligned\": \"v\"}, " KERNEL(
           "v", "2", "1", "") ", \"aligned\": \"w\"}, " KERNEL("w", "2", "1", "") "}]}",
       "which is no other's version"},
      {HEAD KERNEL("k", "2", "1", "") ", \"aligned\": \"v\"}, " KERNEL("v", "2", "1", "") "}, " KERNEL("l", "2", "1",
                                                                                                       "") "}]}",
       "behind versions of other kernels"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    tl_manifest read;
    tl_status status = read_text(wrong[i].text, &read);
    ck_assert_msg(status && strstr(tl_status_message(status), wrong[i].message), "%zu: %s", i,
                  status ? tl_status_message(status) : "read");
    tl_status_free(status);
  }
}
END_TEST

START_TEST(comes_back_from_text) {
  tl_strbuf written = {0};
  tl_manifest read;
  tl_manifest_write(&manifest, "// ", &written);
  tl_status status = read_text(tl_strbuf_c(&written), &read);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert_uint_eq(read.num_kernels, 2);
  ck_assert_uint_eq(tl_manifest_num_kernels(&read), 1);
  ck_assert_uint_eq(read.kernels[0].aligned, 1);
  ck_assert(read.kernels[1].is_version && !read.kernels[0].is_version && !read.kernels[1].aligned);
  tl_strbuf_fini(&written);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("runtime_versions");
  TCase *tests = tcase_create("versions");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, arguments_choose);
  tcase_add_test(tests, names_choose);
  tcase_add_test(tests, mistakes_are_the_kernels_own);
  tcase_add_test(tests, versions_stand_behind);
  tcase_add_test(tests, comes_back_from_text);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
