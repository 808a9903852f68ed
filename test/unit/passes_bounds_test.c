// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How index values vary over the lanes of a vector, and the vector widths that follow
// (passes/analysis/memory_access.h).
#include <check.h>
#include <stdlib.h>

#include "ir/text/text.h"
#include "passes/analysis/memory_access.h"

static tl_sources sources;
static tl_diags diags;
static tl_module *module;
static tl_op *parallel;
static tl_builder builder;

static const char source_text[] =
    "module scheduled\n"
    "kernel {name = \"k\", threads = 128} do {\n"
    "  %c1 = const {value = 1} : index\n"
    "  %c64 = const {value = 64} : index\n"
    "  %n = dyn_param {name = \"n\"} : index\n"
    "  %n8 = dyn_param {name = \"n8\", divisor = 8} : index\n"
    "  %A = tensor dims(%c64, %n8) strides(%n8, %c1) {name = \"A\", arg = 0, access = in, align = 16} : buffer<global "
    "f16 64x?>\n"
    "  %B = tensor dims(%c64, %n) strides(%n, %c1) {name = \"B\", arg = 1, access = in, align = 16} : buffer<global "
    "f16 "
    "64x?>\n"
    "  parallel {extents = [64, 64]} do(%i: index, %j: index) {\n"
    "    yield\n"
    "  }\n"
    "  yield\n"
    "}\n";

static void setup(void) {
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  module = tl_module_parse(&sources, tl_sources_add(&sources, "test.tir", tl_str_from(source_text)), &diags);
  ck_assert_ptr_nonnull(module);
  parallel = tl_module_kernel(module)->regions[0]->first;
  while (parallel->code != TL_OP_PARALLEL) parallel = parallel->next;
  tl_builder_before(&builder, module, parallel->regions[0]->first);
}

static void teardown(void) {
  tl_module_destroy(module);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

static tl_value *named(const char *name) {
  for (tl_op *op = tl_module_kernel(module)->regions[0]->first; op; op = op->next) {
    if (op->num_results && tl_op_result(op, 0)->name && tl_str_is(tl_str_from(tl_op_result(op, 0)->name), name)) {
      return tl_op_result(op, 0);
    }
  }
  return NULL;
}

static tl_value *row(void) {
  return parallel->regions[0]->args[0];
}
static tl_value *column(void) {
  return parallel->regions[0]->args[1];
}
static tl_value *number(int64_t value) {
  return tl_build_index(&builder, value);
}
static tl_value *binary(tl_opcode code, tl_value *a, tl_value *b) {
  return tl_build_binary(&builder, code, a, b);
}

START_TEST(sums_and_products) {
  tl_value *k = binary(TL_OP_ADD, binary(TL_OP_MUL, row(), number(32)), column());
  tl_lane_form form = tl_lane_form_of(k, column(), 8);
  ck_assert(form.known);
  ck_assert_int_eq(form.scale, 1);
  ck_assert_int_eq(form.divisor % 8, 0);
  form = tl_lane_form_of(binary(TL_OP_MUL, column(), number(3)), column(), 4);
  ck_assert(form.known);
  ck_assert_int_eq(form.scale, 3);
  form = tl_lane_form_of(row(), column(), 8);
  ck_assert(form.known);
  ck_assert_int_eq(form.scale, 0);
}
END_TEST

START_TEST(quotients_and_remainders) {
  tl_value *k = binary(TL_OP_ADD, binary(TL_OP_MUL, row(), number(64)), column());
  // Eight lanes do not cross a multiple of 16, or of 8.
  ck_assert_int_eq(tl_lane_form_of(binary(TL_OP_FLOORDIV, k, number(16)), column(), 8).scale, 0);
  ck_assert_int_eq(tl_lane_form_of(binary(TL_OP_MOD, k, number(16)), column(), 8).scale, 1);
  ck_assert_int_eq(tl_lane_form_of(binary(TL_OP_MOD, k, number(8)), column(), 8).scale, 1);
  // They do cross multiples of 4 and of 12.
  ck_assert(!tl_lane_form_of(binary(TL_OP_MOD, k, number(4)), column(), 8).known);
  ck_assert(!tl_lane_form_of(binary(TL_OP_MOD, k, number(12)), column(), 8).known);
  ck_assert_int_eq(tl_lane_form_of(binary(TL_OP_MOD, k, number(12)), column(), 4).scale, 1);
  // A divisor that is known only to be a multiple of 8 is enough.
  ck_assert_int_eq(tl_lane_form_of(binary(TL_OP_MOD, k, named("n8")), column(), 8).scale, 1);
  ck_assert(!tl_lane_form_of(binary(TL_OP_MOD, k, named("n")), column(), 8).known);
}
END_TEST

// The answers of tl_lane_form_of against the values themselves, for many expressions.
START_TEST(forms_agree_with_values) {
  for (int64_t factor = 1; factor <= 24; factor++) {
    for (int64_t divisor = 1; divisor <= 24; divisor++) {
      for (int32_t vec = 2; vec <= 8; vec *= 2) {
        tl_value *k = binary(TL_OP_ADD, binary(TL_OP_MUL, row(), number(factor)), column());
        tl_lane_form q = tl_lane_form_of(binary(TL_OP_FLOORDIV, k, number(divisor)), column(), vec);
        tl_lane_form r = tl_lane_form_of(binary(TL_OP_MOD, k, number(divisor)), column(), vec);
        for (int64_t i = 0; i < 8; i++) {
          for (int64_t j = 0; j < 32; j += vec) {
            int64_t base = i * factor + j;
            for (int64_t lane = 0; lane < vec; lane++) {
              if (q.known) ck_assert_int_eq((base + lane) / divisor, base / divisor + q.scale * lane);
              if (r.known) ck_assert_int_eq((base + lane) % divisor, base % divisor + r.scale * lane);
              if (q.known && q.divisor > 1) ck_assert_int_eq(base / divisor % q.divisor, 0);
              if (r.known && r.divisor > 1) ck_assert_int_eq(base % divisor % r.divisor, 0);
            }
          }
        }
      }
    }
  }
}
END_TEST

static tl_op *load(const char *tensor, tl_value *i, tl_value *j) {
  tl_group groups[] = {TL_GROUP_OF(named(tensor)), TL_GROUP_OF(i, j), TL_GROUP_EMPTY};
  const tl_type *type = tl_type_scalar(module, TL_DTYPE_F16);
  return tl_build(&builder, TL_OP_LOAD, groups, &type, 1);
}

START_TEST(widths_of_elements) {
  // Not analysed: both bounds count. Rows of a multiple of 8 elements allow 16 bytes.
  tl_op *op = load("A", row(), column());
  ck_assert_int_eq(tl_element_vector(op, parallel, 8, false), 8);
  ck_assert_int_eq(tl_element_vector(op, parallel, 4, false), 4);
  op = load("A", row(), binary(TL_OP_ADD, column(), number(4)));
  ck_assert_int_eq(tl_element_vector(op, parallel, 8, false), 4);
  op = load("A", column(), row());
  ck_assert_int_eq(tl_element_vector(op, parallel, 8, false), 1);
  // Rows of any length are not aligned.
  op = load("B", row(), column());
  ck_assert_int_eq(tl_element_vector(op, parallel, 8, false), 1);
  ck_assert_int_eq(tl_element_vector(op, parallel, 8, true), 1);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("passes bounds");
  TCase *tests = tcase_create("lanes");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, sums_and_products);
  tcase_add_test(tests, quotients_and_remainders);
  tcase_add_test(tests, forms_agree_with_values);
  tcase_add_test(tests, widths_of_elements);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
