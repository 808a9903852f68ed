// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The spec model: what each section and statement becomes, and the printed form.
#include "frontend/spec/spec.h"

#include "frontend/expr/suggest.h"
#include "frontend/spec/schema.h"
#include "frontend_test_util.h"

typedef struct spec_fixture {
  fixture fix;
  tl_spec *spec;
} spec_fixture;

static const tl_kernel_spec *spec_init(spec_fixture *spec, const char *text) {
  fixture_init(&spec->fix, tl_str_from(text));
  spec->spec = tl_spec_parse(&spec->fix.sources, spec->fix.source, &spec->fix.diags);
  ck_assert_msg(spec->fix.diags.list.len == 0, "%s",
                spec->fix.diags.list.len ? spec->fix.diags.list.items[0]->text : "");
  ck_assert_ptr_nonnull(spec->spec);
  return &spec->spec->kernels[0];
}

static void spec_fini(spec_fixture *spec) {
  tl_spec_destroy(spec->spec);
  fixture_fini(&spec->fix);
}

static void assert_expr(const tl_expr *expr, const char *expected) {
  ck_assert_ptr_nonnull(expr);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_expr_print(expr, &text);
  ck_assert_str_eq(tl_strbuf_c(&text), expected);
  tl_strbuf_fini(&text);
}

START_TEST(sections) {
  spec_fixture spec;
  const tl_kernel_spec *k =
      spec_init(&spec,
                "kernel: k\ndoc: a # note\ntarget: sm_80\n"
                "params:\n  M: dynamic\n  N: dynamic64(16)\n  b: auto\n  dtype: f16\n  x: -1\n"
                "let:\n  h: M // 2\n"
                "args:\n  A: dtype[M, N] strides(s, 1) align(32)\n  B: out f32[4]\n  C: inout i8[1]\n  s: i32\n"
                "views:\n  V: B as f16[2, 4]\n"
                "requires: M > 0\n"
                "grid:\n  bx: h\n  by: 2\n"
                "threads: auto\npersistent: auto\nfast_math: true\nrasterize: {panel: 8, order: column}\n"
                "shared:\n  a, b2: f16[4, 8] layout pad(8)\n"
                "fragment:\n  acc: f32[4]\n");
  ck_assert(tl_str_is(k->name, "k") && tl_str_is(k->doc, "a") && tl_str_is(k->target, "sm_80"));
  ck_assert_uint_eq(k->num_params, 5);
  ck_assert_int_eq(k->params[0].kind, TL_PARAM_DYNAMIC);
  ck_assert_ptr_null(k->params[0].divisor);
  assert_expr(k->params[1].divisor, "16");
  ck_assert(!k->params[0].is_wide && k->params[1].is_wide);
  ck_assert_int_eq(k->params[2].kind, TL_PARAM_AUTO);
  assert_expr(k->params[3].value, "f16");
  assert_expr(k->params[4].value, "-1");
  assert_expr(k->lets[0].value, "M // 2");
  ck_assert_uint_eq(k->num_args, 4);
  ck_assert_int_eq(k->args[0].access, TL_ARG_IN);
  ck_assert_uint_eq(k->args[0].num_strides, 2);
  assert_expr(k->args[0].align, "32");
  ck_assert_int_eq(k->args[1].access, TL_ARG_OUT);
  ck_assert_int_eq(k->args[2].access, TL_ARG_INOUT);
  ck_assert(!k->args[3].is_tensor);
  ck_assert(tl_str_is(k->views[0].base, "B"));
  ck_assert_uint_eq(k->views[0].num_dims, 2);
  ck_assert_uint_eq(k->num_requires, 1);
  ck_assert_uint_eq(k->num_grid, 2);
  assert_expr(k->threads, "auto");
  assert_expr(k->persistent, "auto");
  assert_expr(k->fast_math, "true");
  assert_expr(k->raster_panel, "8");
  ck_assert(tl_str_is(k->raster_order, "column"));
  ck_assert_uint_eq(k->num_tiles, 3);
  ck_assert(tl_str_is(k->tiles[1].name, "b2"));
  assert_expr(k->tiles[1].layout, "pad(8)");
  ck_assert_int_eq(k->tiles[2].scope, TL_TILE_FRAGMENT);
  spec_fini(&spec);
}
END_TEST

START_TEST(statements) {
  spec_fixture spec;
  const tl_kernel_spec *k = spec_init(
      &spec,
      "kernel: k\nbody:\n"
      "  - clear: a\n"
      "  - fill: a\n    value: -inf\n"
      "  - copy: A[i, :] -> a.T\n    pad: 1\n    via: cp_async\n    evict: first\n"
      "  - gemm: c = a @ b.T\n    policy: full_row\n    mma: fma\n"
      "  - parallel: i, j in 4, 8\n    where: i < j\n    do: c[i, j] += 1\n"
      "  - pipelined: k in range(1, n)\n    stages: 3\n    specialize: off\n    overlap: 0\n    do:\n      - x = y\n"
      "  - for: k in n\n    unroll: true\n    do: []\n"
      "  - unroll: k in 4\n    do:\n      sync:\n"
      "  - if: a < b\n    then:\n      - x = y\n    else:\n      x = z\n"
      "  - if: a\n    do: x = y\n"
      "  - let:\n      p: 1\n      q: p + 1\n"
      "  - atomic: 1 -> A[0]\n"
      "  - atomic: x -> A[0]\n    op: and\n    order: acq_rel\n    into: old\n"
      "  - view: V = A\n    type: f32[4]\n"
      "  - set: x = y\n"
      "  - m max= y\n"
      "  - sync:\n");
  static const tl_stmt_kind kinds[] = {
      TL_STMT_CLEAR,  TL_STMT_FILL,   TL_STMT_COPY,   TL_STMT_GEMM,   TL_STMT_PARALLEL, TL_STMT_PIPELINED,
      TL_STMT_FOR,    TL_STMT_UNROLL, TL_STMT_IF,     TL_STMT_IF,     TL_STMT_LET,      TL_STMT_ATOMIC,
      TL_STMT_ATOMIC, TL_STMT_VIEW,   TL_STMT_ASSIGN, TL_STMT_ASSIGN, TL_STMT_SYNC};
  ck_assert_uint_eq(k->body.len, sizeof(kinds) / sizeof(kinds[0]));
  for (uint32_t i = 0; i < k->body.len; i++) ck_assert_int_eq(k->body.items[i]->kind, kinds[i]);
  tl_stmt *const *s = k->body.items;
  assert_expr(s[1]->options[0].value, "-inf");
  ck_assert_uint_eq(s[2]->num_options, 3);
  assert_expr(s[2]->from, "A[i, :]");
  assert_expr(s[3]->assign.value, "a @ b.T");
  ck_assert_uint_eq(s[4]->in.num_names, 2);
  ck_assert_uint_eq(s[4]->body.len, 1);
  assert_expr(s[5]->in.extents[0], "range(1, n)");
  ck_assert_uint_eq(s[6]->body.len, 0);
  ck_assert_int_eq(s[7]->body.items[0]->kind, TL_STMT_SYNC);
  ck_assert_uint_eq(s[8]->else_body.len, 1);
  ck_assert_uint_eq(s[9]->body.len, 1);
  ck_assert_uint_eq(s[10]->num_lets, 2);
  assert_expr(s[11]->options[0].value, "add");
  assert_expr(s[12]->options[0].value, "and");
  ck_assert(tl_str_is(s[13]->view.base, "A"));
  ck_assert(tl_str_is(s[15]->assign.op, "max="));
  // `loc` is the key, `text_loc` what stands behind it.
  ck_assert(tl_str_is(tl_loc_text(&spec.fix.sources, s[3]->loc), "gemm"));
  ck_assert(tl_str_is(tl_loc_text(&spec.fix.sources, s[3]->text_loc), "c = a @ b.T"));
  ck_assert(tl_str_is(tl_loc_text(&spec.fix.sources, s[3]->assign.value->operands[1]->loc), "b.T"));
  spec_fini(&spec);
}
END_TEST

START_TEST(check_and_bench) {
  spec_fixture spec;
  const tl_kernel_spec *k =
      spec_init(&spec,
                "kernel: k\nparams:\n  M: 1\nargs:\n  A: f32[4]\n  B: out f32[4]\n  C: inout f32[4]\n"
                "  D: f32[4]\ncheck:\n"
                "  inputs:\n    A: normal(0, 1)\n    B: [1, [2, 3]]\n    C: data/x-y.npy\n    D: zeros\n"
                "  derive:\n    - m[i] = sum[j](A[i, j]) / N\n"
                "  reference:\n    - W[n, k in 0:K] = A[n, k]\n"
                "    - recur: t in 0:S\n      do:\n        - h[t] = h[t - 1]\n        - g[t] = h[t]\n"
                "  tolerance: {rtol: 1e-2, atol: 0, per: {C: {rtol: 0.5}}}\n"
                "  unchecked: [B, C]\n"
                "  cases:\n    - {M: 3, dtype: bf16, causal: true, threads: 64}\n"
                "    - M: 4\n      tolerance: {atol: 1}\n      inputs:\n        A: uniform(0, 1)\n"
                "bench:\n  flops: 2 * M\n  cases:\n    - {}\n"
                "tune:\n  M: [1, 2]\n  where: M > 1\n  budget: 3\n");
  const tl_check *c = &k->check;
  ck_assert(c->present);
  ck_assert_uint_eq(c->num_inputs, 4);
  assert_expr(c->inputs[1].value, "list(1, list(2, 3))");
  ck_assert_int_eq(c->inputs[2].value->kind, TL_EXPR_STRING);
  ck_assert(tl_str_is(c->inputs[2].value->text, "data/x-y.npy"));
  ck_assert_int_eq(c->inputs[3].value->kind, TL_EXPR_NAME);
  ck_assert_uint_eq(c->num_derive, 1);
  ck_assert_uint_eq(c->num_reference, 2);
  ck_assert_uint_eq(c->reference[0].num_ranges, 1);
  ck_assert(tl_str_is(c->reference[0].ranges[0].name, "k"));
  assert_expr(c->reference[0].assign.targets[0], "W[n, k]");
  ck_assert(c->reference[1].is_recur);
  ck_assert_uint_eq(c->reference[1].num_body, 2);
  assert_expr(c->reference[1].ranges[0].hi, "S");
  ck_assert_uint_eq(c->num_tolerances, 2);
  ck_assert_uint_eq(c->tolerances[0].output.len, 0);
  ck_assert(tl_str_is(c->tolerances[1].output, "C"));
  ck_assert_ptr_null(c->tolerances[1].atol);
  ck_assert_uint_eq(c->num_unchecked, 2);
  ck_assert_uint_eq(c->num_cases, 2);
  ck_assert_uint_eq(c->cases[0].num_overrides, 4);
  assert_expr(c->cases[1].atol, "1");
  ck_assert_uint_eq(c->cases[1].num_inputs, 1);
  ck_assert_uint_eq(k->bench.num_cases, 1);
  ck_assert_uint_eq(k->tune.num_params, 1);
  ck_assert_uint_eq(k->tune.params[0].num_values, 2);
  assert_expr(k->tune.params[0].values[1], "2");
  ck_assert_uint_eq(k->tune.num_where, 1);
  assert_expr(k->tune.where[0], "M > 1");
  assert_expr(k->tune.budget, "3");
  assert_expr(k->bench.flops, "2 * M");
  spec_fini(&spec);
}
END_TEST

START_TEST(a_kernel_needs_only_its_name) {
  spec_fixture spec;
  const tl_kernel_spec *k = spec_init(&spec, "kernel: k\n");
  ck_assert_uint_eq(k->body.len + k->num_args + k->num_grid, 0);
  spec_fini(&spec);
}
END_TEST

START_TEST(printed_form_is_stable) {
  static const char *const files[] = {
      "kernels/conv2d.yaml",         "kernels/matmul.yaml",        "kernels/matmul_bias_relu.yaml",
      "kernels/matmul_dynamic.yaml", "kernels/matmul_splitk.yaml", "kernels/matmul_w4a16.yaml",
      "kernels/softplus.yaml",       "kernels/vector_add.yaml",    "test/spec/ok/check_sections.yaml"};
  tl_sources sources;
  tl_sources_init(&sources);
  uint32_t source;
  tl_status status = tl_sources_read(&sources, files[_i], TL_SPEC_MAX_BYTES, &source);
  ck_assert_msg(status == TL_OK, "%s", tl_status_message(status));
  tl_str texts[3] = {tl_sources_get(&sources, source)->text};
  tl_strbuf printed[2];
  for (int round = 0; round < 2; round++) {
    tl_diags diags;
    tl_diags_init(&diags, &sources);
    tl_spec *spec = tl_spec_parse(&sources, tl_sources_add(&sources, "round.yaml", texts[round]), &diags);
    ck_assert_msg(spec && !diags.list.len, "%s", diags.list.len ? diags.list.items[0]->text : "");
    tl_strbuf_init(&printed[round]);
    tl_spec_print(spec, &printed[round]);
    texts[round + 1] = tl_strbuf_view(&printed[round]);
    tl_spec_destroy(spec);
    tl_diags_fini(&diags);
  }
  ck_assert_str_eq(tl_strbuf_c(&printed[0]), tl_strbuf_c(&printed[1]));
  tl_strbuf_fini(&printed[0]);
  tl_strbuf_fini(&printed[1]);
  tl_sources_fini(&sources);
}
END_TEST

START_TEST(suggestions) {
  static const char *const words[] = {"params", "parallel", "pipelined", "pad", "M"};
  ck_assert_str_eq(tl_suggest(TL_STR("parms"), words, 5), "params");
  ck_assert_str_eq(tl_suggest(TL_STR("paralel"), words, 5), "parallel");
  ck_assert_str_eq(tl_suggest(TL_STR("PAD"), words, 5), "pad");
  ck_assert_str_eq(tl_suggest(TL_STR("m"), words, 5), "M");
  ck_assert_ptr_null(tl_suggest(TL_STR("N"), words, 5));
  ck_assert_ptr_null(tl_suggest(TL_STR("frobnicate"), words, 5));
  ck_assert_ptr_null(tl_suggest(TL_STR(""), words, 5));
}
END_TEST

START_TEST(every_option_belongs_to_a_statement) {
#define TL_SCHEMA_OPTION(statement, option, form, need, state, choices, doc) \
  ck_assert_ptr_nonnull(tl_schema_find_stmt(TL_STR(statement)));             \
  ck_assert_ptr_nonnull(tl_schema_find_option(tl_schema_find_stmt(TL_STR(statement)), TL_STR(option)));
#include "frontend/spec/schema.def"
}
END_TEST

int main(void) {
  Suite *suite = suite_create("frontend_spec");
  TCase *tests = tcase_create("spec");
  tcase_add_test(tests, sections);
  tcase_add_test(tests, statements);
  tcase_add_test(tests, check_and_bench);
  tcase_add_test(tests, a_kernel_needs_only_its_name);
  tcase_add_loop_test(tests, printed_form_is_stable, 0, 9);
  tcase_add_test(tests, suggestions);
  tcase_add_test(tests, every_option_belongs_to_a_statement);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
