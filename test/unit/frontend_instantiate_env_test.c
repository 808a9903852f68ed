// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Params, lets and bindings; folding of expressions.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/elaborate/instantiate.h"

static const char text[] =
    "kernel: k\n"
    "params:\n"
    "  M: 100\n"
    "  N: dynamic(8)\n"
    "  dtype: f16\n"
    "  fast: false\n"
    "  scale: 0.5\n"
    "let:\n"
    "  blocks: ceildiv(M, 32)\n"
    "  cols: N // 8\n"
    "  rows: blocks * 32 if fast else M\n"
    "args:\n"
    "  C: out dtype[M, N]\n"
    "grid:\n"
    "  bx: blocks\n"
    "threads: 64 if dtype == f16 else 128\n"
    "body:\n"
    "  - C[cols, rows] = scale\n";

static tl_sources sources;
static tl_diags diags;
static tl_arena arena;
static tl_spec *spec;

static void setup(void) {
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_arena_init(&arena);
  spec = tl_spec_parse(&sources, tl_sources_add(&sources, "k.yaml", tl_str_from(text)), &diags);
  ck_assert_ptr_nonnull(spec);
}

static void teardown(void) {
  tl_spec_destroy(spec);
  tl_arena_fini(&arena);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

static tl_expr *parse(const char *expression) {
  tl_str view = tl_str_from(expression);
  uint32_t source = tl_sources_add(&sources, "<expression>", view);
  uint32_t *offsets = TL_NEW_ARRAY(&arena, uint32_t, view.len + 1);
  for (size_t i = 0; i <= view.len; ++i) offsets[i] = (uint32_t)i;
  tl_located_text located = {view, {source, offsets}, {source, 0, (uint32_t)view.len}};
  return tl_expr_parse(&arena, &diags, located);
}

static tl_binding bind(const char *name, const char *value) {
  tl_expr *expr = parse(value);
  ck_assert_ptr_nonnull(expr);
  return (tl_binding){tl_str_from(name), expr, expr->loc};
}

static bool create(const tl_binding *items, uint32_t len, bool bind_dynamic, tl_env *env) {
  return tl_env_create(&arena, &spec->kernels[0], (tl_bindings){items, len}, bind_dynamic, &diags, env);
}

static int64_t int_of(const tl_env *env, const char *name) {
  const tl_env_entry *entry = tl_env_find(env, tl_str_from(name));
  ck_assert_ptr_nonnull(entry);
  ck_assert_int_eq(entry->value.kind, TL_CONST_INT);
  return entry->value.i;
}

START_TEST(defaults) {
  tl_env env;
  ck_assert(create(NULL, 0, false, &env));
  ck_assert_int_eq(int_of(&env, "M"), 100);
  ck_assert_int_eq(int_of(&env, "blocks"), 4);
  ck_assert_int_eq(int_of(&env, "rows"), 100);
  ck_assert_int_eq(env.threads, 64);
  ck_assert(!env.fast_math);
  const tl_env_entry *n = tl_env_find(&env, TL_STR("N")), *cols = tl_env_find(&env, TL_STR("cols"));
  ck_assert(n->is_dynamic && n->value.kind == TL_CONST_DYNAMIC);
  ck_assert(!cols->is_dynamic && cols->value.kind == TL_CONST_DYNAMIC);
  ck_assert_int_eq(tl_env_find(&env, TL_STR("dtype"))->value.dtype, TL_DTYPE_F16);
  ck_assert_double_eq(tl_env_find(&env, TL_STR("scale"))->value.f, 0.5);
  ck_assert_ptr_null(tl_env_find(&env, TL_STR("C")));
}
END_TEST

START_TEST(bindings_replace_params) {
  tl_env env;
  tl_binding items[] = {bind("M", "1"),       bind("M", "2 ** 6 + 1"),   bind("dtype", "bfloat16"),
                        bind("fast", "true"), bind("fast_math", "true"), bind("scale", "1 / 4")};
  ck_assert(create(items, 6, false, &env));
  ck_assert_int_eq(int_of(&env, "M"), 65);
  ck_assert_int_eq(int_of(&env, "blocks"), 3);
  ck_assert_int_eq(int_of(&env, "rows"), 96);
  ck_assert_int_eq(env.threads, 128);
  ck_assert(env.fast_math);
  ck_assert_double_eq(tl_env_find(&env, TL_STR("scale"))->value.f, 0.25);
  tl_binding threads = bind("threads", "256");
  ck_assert(create(&threads, 1, false, &env));
  ck_assert_int_eq(env.threads, 256);
  ck_assert_int_eq(env.persistent, TL_SWITCH_AUTO);
  tl_binding persistent = bind("persistent", "M > 50");
  ck_assert(create(&persistent, 1, false, &env));
  ck_assert_int_eq(env.persistent, TL_SWITCH_ON);
  persistent = bind("persistent", "false");
  ck_assert(create(&persistent, 1, false, &env));
  ck_assert_int_eq(env.persistent, TL_SWITCH_OFF);
  persistent = bind("persistent", "auto");
  ck_assert(create(&persistent, 1, false, &env));
  ck_assert_int_eq(env.persistent, TL_SWITCH_AUTO);
  threads = bind("threads", "auto");
  ck_assert(create(&threads, 1, false, &env));
  ck_assert_int_eq(env.threads, 0);
}
END_TEST

START_TEST(cases_bind_dynamic_params) {
  tl_env env;
  tl_binding n = bind("N", "24");
  ck_assert(create(&n, 1, true, &env));
  ck_assert_int_eq(int_of(&env, "N"), 24);
  ck_assert(tl_env_find(&env, TL_STR("N"))->is_dynamic);
  ck_assert_int_eq(int_of(&env, "cols"), 3);
  ck_assert(!tl_diags_has_errors(&diags));
  ck_assert(!create(&n, 1, false, &env));  // not at compile time
  n = bind("N", "12");
  ck_assert(!create(&n, 1, true, &env));  // no multiple of 8
  n = bind("N", "2 ** 31");
  ck_assert(!create(&n, 1, true, &env));
  ck_assert_uint_eq(diags.num_errors, 3);
}
END_TEST

START_TEST(bad_bindings) {
  tl_env env;
  tl_binding items[] = {
      bind("Mm", "1"),          bind("M", "1 // 0"), bind("scale", "undefined"), bind("threads", "1025"),
      bind("fast_math", "0.5"), bind("cols", "3"),   bind("persistent", "maybe")};
  for (uint32_t i = 0; i < 7; ++i) {
    size_t before = diags.num_errors;
    ck_assert(!create(&items[i], 1, false, &env));
    ck_assert_uint_eq(diags.num_errors, before + 1);
  }
}
END_TEST

typedef struct fold_case {
  const char *text;
  double value;  // NAN: must not fold
} fold_case;
static const fold_case folds[] = {
    {"M // 7", 14},
    {"-M // 7", -15},
    {"-M % 7", 5},
    {"M % -7", -5},
    {"7.5 // 2", 3},
    {"-7.5 % 2", 0.5},
    {"M / 8", 12.5},
    {"2 ** 62 + (2 ** 62 - 1)", 9223372036854775807.0},
    {"2 ** 62 + 2 ** 62", NAN},
    {"-9223372036854775807 - 1", -9223372036854775808.0},
    {"-(-9223372036854775807 - 1)", NAN},
    {"(-9223372036854775807 - 1) // -1", NAN},
    {"3037000500 * 3037000500", NAN},
    {"1 << 62", 4611686018427387904.0},
    {"1 << 63", NAN},
    {"-1 >> 70", -1},
    {"1 // 0", NAN},
    {"1 % 0", NAN},
    {"1.0 / 0", NAN},
    {"ceildiv(9223372036854775807, 2)", 4611686018427387904.0},
    {"ceildiv(-7, 2)", -3},
    {"min(M, 3, 99)", 3},
    {"max(1, 2.5)", 2.5},
    {"1 if fast else 2", 2},
    {"1 if fast else undefined", NAN},
    {"5 if not fast else undefined", 5},
    {"not fast and M == 100", 1},
    {"fast and undefined", 0},
    {"1 < 2 < 3", 1},
    {"1 < 3 < 2", 0},
    {"sizeof(dtype) * M", 200},
    {"dtype == float16", 1},
    {"dtype != f16", 0},
    {"dtype + 1", NAN},
    {"dtype < f32", NAN},
    {"inf(i8)", 127},
    {"inf(u32)", 4294967295.0},
    {"-inf(f32)", -INFINITY},
    {"inf(f8e4m3)", 448},
    {"cast(2.7, i32)", 2},
    {"cast(-2.7, i32)", -2},
    {"cast(1.0e10, i32)", 2147483647},
    {"cast(257, u8)", 1},
    {"cast(0.1, f16)", 0.0999755859375},
    {"exp2(3)", 8},
    {"softplus(0.0)", 0.69314718055994530942},
    {"gelu(0)", 0},
    {"sqrt(2.0) * sqrt(2.0)", 2.0000000000000004},
    {"N + 1", NAN},
    {"C", NAN},
    {"thread_id()", NAN},
    {"sum[k in 0:4](k)", NAN},
    {"M[0]", NAN},
    {"1.5 & 1", NAN},
    {"exp(1, 2)", NAN},
};

START_TEST(folding) {
  tl_env env;
  ck_assert(create(NULL, 0, false, &env));
  const fold_case *one = &folds[_i];
  tl_const value = {0};
  tl_expr *expr = parse(one->text);
  ck_assert_msg(expr != NULL, "%s does not parse", one->text);
  size_t before = diags.num_errors;
  bool ok = tl_env_eval(&env, expr, &diags, &value);
  ck_assert_msg(ok == !isnan(one->value), "%s: %s", one->text, ok ? "folds" : "does not fold");
  ck_assert_uint_eq(diags.num_errors, before + !ok);
  if (!ok) return;
  double actual = value.kind == TL_CONST_FLOAT ? value.f : (double)value.i;
  ck_assert_msg(actual == one->value, "%s is %.17g, expected %.17g", one->text, actual, one->value);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("frontend_instantiate_env");
  TCase *tcase = tcase_create("env");
  tcase_add_checked_fixture(tcase, setup, teardown);
  tcase_add_test(tcase, defaults);
  tcase_add_test(tcase, bindings_replace_params);
  tcase_add_test(tcase, cases_bind_dynamic_params);
  tcase_add_test(tcase, bad_bindings);
  tcase_add_loop_test(tcase, folding, 0, (int)(sizeof(folds) / sizeof(folds[0])));
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
