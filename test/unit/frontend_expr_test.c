// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The expression language: precedence, forms, numbers, places of errors, limits, printing.
#include <math.h>

#include "frontend_test_util.h"

// Parses and prints; "" when there were diagnostics.
static char *reprint(const char *text) {
  fixture fix;
  fixture_init(&fix, tl_str_from(text));
  tl_expr *expr = tl_expr_parse(&fix.arena, &fix.diags, fixture_text(&fix));
  tl_strbuf out;
  tl_strbuf_init(&out);
  if (expr)
    tl_expr_print(expr, &out);
  else
    ck_assert_uint_gt(fix.diags.num_errors, 0);
  fixture_fini(&fix);
  tl_strbuf_append_c(&out, "");
  return tl_strbuf_take(&out);
}

// `text` means the same as `expected`, which is canonical and fully parenthesised where it matters.
static void assert_same(const char *text, const char *expected) {
  fixture a, b;
  fixture_init(&a, tl_str_from(text));
  fixture_init(&b, tl_str_from(expected));
  tl_expr *left = tl_expr_parse(&a.arena, &a.diags, fixture_text(&a));
  tl_expr *right = tl_expr_parse(&b.arena, &b.diags, fixture_text(&b));
  ck_assert_msg(left && right, "`%s` or `%s` does not parse", text, expected);
  ck_assert_msg(tl_expr_equal(left, right), "`%s` is not `%s`", text, expected);
  fixture_fini(&a);
  fixture_fini(&b);
}

START_TEST(precedence) {
  assert_same("a + b * c", "a + (b * c)");
  assert_same("a - b - c", "(a - b) - c");
  assert_same("a // b % c * d", "((a // b) % c) * d");
  assert_same("-a ** b", "-(a ** b)");
  assert_same("a ** -b ** c", "a ** (-(b ** c))");
  assert_same("-a * b", "(-a) * b");
  assert_same("~a & b | c ^ d", "((~a) & b) | (c ^ d)");
  assert_same("a << b + c", "a << (b + c)");
  assert_same("a & b == c", "(a & b) == c");
  assert_same("not a == b and c or d", "((not (a == b)) and c) or d");
  assert_same("a and not b", "a and (not b)");
  assert_same("a if b else c if d else e", "a if b else (c if d else e)");
  assert_same("a or b if c or d else e", "(a or b) if (c or d) else e");
  assert_same("a @ b.T", "a @ (b.T)");
  assert_same("True", "true");
  assert_same("0x10 + 0b11 + 0o7 + 1_000", "16 + 3 + 7 + 1000");
  assert_same("1.e3 + .5 + 1E-6", "1000.0 + 0.5 + 0.000001");
}
END_TEST

START_TEST(chained_comparison_is_one_node) {
  fixture fix;
  fixture_init(&fix, TL_STR("0 <= i < n != m"));
  tl_expr *expr = tl_expr_parse(&fix.arena, &fix.diags, fixture_text(&fix));
  ck_assert_ptr_nonnull(expr);
  ck_assert_int_eq(expr->kind, TL_EXPR_COMPARE);
  ck_assert_uint_eq(expr->num_operands, 4);
  ck_assert_int_eq(expr->compare_ops[0], TL_EXPR_OP_LE);
  ck_assert_int_eq(expr->compare_ops[2], TL_EXPR_OP_NE);
  fixture_fini(&fix);
}
END_TEST

START_TEST(printing_is_canonical) {
  static const char *const texts[][2] = {
      {"X[b,i:+n,h,:]", "X[b, i:+n, h, :]"},
      {"X[lo:hi:2, ::s, :hi, lo:, None]", "X[lo:hi:2, ::s, :hi, lo:, None]"},
      {"X[a:(+b)]", "X[a:(+b)]"},
      {"m[:, None]", "m[:, None]"},
      {"sum(p, axis=1)", "sum(p, axis=1)"},
      {"sum[k](A[m,k]*B[k,n])", "sum[k](A[m, k] * B[k, n])"},
      {"sum[r in 0:R, s in 0:S, c](x)", "sum[r in 0:R, s in 0:S, c](x)"},
      {"max[k] + 1", "max[k] + 1"},
      {"max(a, min(b, c))", "max(a, min(b, c))"},
      {"inf(i32)", "inf(i32)"},
      {"-inf", "-inf"},
      {"cast(x, f32)", "cast(x, f32)"},
      {"((a))", "a"},
      {"(a + b) * c", "(a + b) * c"},
      {"a - (b - c)", "a - (b - c)"},
      {"(a < b) == c", "(a < b) == c"},
      {"(a if b else c) + 1", "(a if b else c) + 1"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"1e300 * 1.0", "1e+300 * 1.0"},
      {"f('a\\'b')", "f('a\\'b')"},
      {"(-a) ** 2", "(-a) ** 2"},
      {"(a ** b) ** c", "(a ** b) ** c"},
      {"a ** b ** c", "a ** b ** c"},
      {"D ** 0.5", "D ** 0.5"},
      {"A.T[i, j]", "A.T[i, j]"},
  };
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    char *printed = reprint(texts[i][0]);
    ck_assert_str_eq(printed, texts[i][1]);
    char *again = reprint(printed);
    ck_assert_str_eq(again, printed);
    free(again);
    free(printed);
  }
}
END_TEST

typedef struct bad_expr {
  const char *text;
  const char *code;
  uint32_t column;
  const char *message;
} bad_expr;

static const bad_expr bad_exprs[] = {
    {"", "TL0201", 1, "expected a value"},
    {"a +", "TL0201", 4, "the expression ends here"},
    {"a b", "TL0201", 3, "found `b`"},
    {"(a", "TL0201", 3, "`)`"},
    {"a)", "TL0201", 2, "not opened"},
    {"X[]", "TL0201", 3, "a subscript"},
    {"X[:+n]", "TL0201", 3, "needs its start"},
    {"f(a=1, b)", "TL0201", 8, "positional"},
    {"a = b", "TL0201", 3, "found `=`"},
    {"a && b", "TL0201", 3, "`&&`"},
    {"!a", "TL0201", 1, "`!`"},
    {"1 + not a", "TL0201", 5, "`not`"},
    {"a if b", "TL0201", 7, "`else`"},
    {"99999999999999999999", "TL0203", 1, "64 bits"},
    {"9223372036854775808", "TL0203", 1, "64 bits"},
    {"0xFFFFFFFFFFFFFFFFF", "TL0203", 1, "64 bits"},
    {"1__0", "TL0203", 1, "malformed number"},
    {"2x", "TL0203", 1, "malformed number"},
    {"0x", "TL0203", 1, "malformed number"},
    {"1e", "TL0203", 1, "malformed number"},
    {"007", "TL0203", 1, "leading zeros"},
    {"1e999", "TL0203", 1, "float64"},
    {"a + \xC3\xA9", "TL0201", 5, "`\xC3\xA9`"},
    {"f('\xC3\xA9\xC3\xA9') + )", "TL0201", 11, "found `)`"},
    {"'abc", "TL0201", 1, "no closing"},
    {"a.b", "TL0201", 2, "`.`"},
    {"range + 1", "TL0206", 1, "reserved"},
    {"sum[in](x)", "TL0115", 5, "reserved"},
    {"f(x)(y)", "TL0201", 5, "called"},
};

START_TEST(errors_have_exact_places) {
  const bad_expr *bad = &bad_exprs[_i];
  fixture fix;
  fixture_init(&fix, tl_str_from(bad->text));
  ck_assert_ptr_null(tl_expr_parse(&fix.arena, &fix.diags, fixture_text(&fix)));
  assert_diag(&fix, 0, bad->code, 1, bad->column, bad->message);
  ck_assert_uint_eq(fix.diags.list.len, 1);
  fixture_fini(&fix);
}
END_TEST

static char *repeat(const char *before, const char *middle, const char *after, size_t count) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  for (size_t i = 0; i < count; i++) tl_strbuf_append_c(&text, before);
  tl_strbuf_append_c(&text, middle);
  for (size_t i = 0; i < count; i++) tl_strbuf_append_c(&text, after);
  return tl_strbuf_take(&text);
}

static void assert_limited(const char *before, const char *middle, const char *after, size_t fits, size_t too_many) {
  char *good = repeat(before, middle, after, fits), *bad = repeat(before, middle, after, too_many);
  fixture fix;
  fixture_init(&fix, tl_str_from(good));
  ck_assert_msg(tl_expr_parse(&fix.arena, &fix.diags, fixture_text(&fix)) != NULL, "%zu times `%s`", fits, before);
  fixture_fini(&fix);
  fixture_init(&fix, tl_str_from(bad));
  ck_assert_ptr_null(tl_expr_parse(&fix.arena, &fix.diags, fixture_text(&fix)));
  ck_assert_uint_eq(fix.diags.list.len, 1);
  ck_assert_int_eq(fix.diags.list.items[0]->code, TL_DIAG_EXPR_LIMIT);
  fixture_fini(&fix);
  free(good);
  free(bad);
}

START_TEST(limits) {
  assert_limited("(", "1", ")", 199, 201);
  assert_limited("(", "1", ")", 199, 300000);
  assert_limited("a[", "1", "]", 199, 201);
  assert_limited("-", "1", "", 199, 500);
  assert_limited("not ", "1", "", 199, 100000);
  assert_limited("a ** ", "1", "", 199, 500);
  assert_limited("a if b else ", "1", "", 199, 500);
  assert_limited("a + ", "1", "", 1000, 1300);
  assert_limited("a + ", "1", "", 1000, 200000);
}
END_TEST

START_TEST(assignments) {
  static const char *const ops[] = {"=", "+=", "-=", "*=", "/=", "max=", "min="};
  for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
    char text[64];
    snprintf(text, sizeof(text), "X[i, j] %s a == b", ops[i]);
    fixture fix;
    fixture_init(&fix, tl_str_from(text));
    tl_assign assign;
    ck_assert(tl_expr_parse_assign(&fix.arena, &fix.diags, fixture_text(&fix), &assign));
    ck_assert(tl_str_is(assign.op, ops[i]));
    ck_assert_uint_eq(assign.num_targets, 1);
    ck_assert_int_eq(assign.value->kind, TL_EXPR_COMPARE);
    fixture_fini(&fix);
  }
  fixture fix;
  fixture_init(&fix, TL_STR("v, i = argmax(x, axis=1)"));
  tl_assign assign;
  ck_assert(tl_expr_parse_assign(&fix.arena, &fix.diags, fixture_text(&fix), &assign));
  ck_assert_uint_eq(assign.num_targets, 2);
  fixture_fini(&fix);
  fixture_init(&fix, TL_STR("max max= max(max, 1)"));
  ck_assert(tl_expr_parse_assign(&fix.arena, &fix.diags, fixture_text(&fix), &assign));
  ck_assert(tl_str_is(assign.op, "max="));
  fixture_fini(&fix);
  fixture_init(&fix, TL_STR("a + b = c"));
  ck_assert(!tl_expr_parse_assign(&fix.arena, &fix.diags, fixture_text(&fix), &assign));
  assert_diag(&fix, 0, "TL0201", 1, 3, "expected an assignment");
  fixture_fini(&fix);
  fixture_init(&fix, TL_STR("f(x) = c"));
  ck_assert(!tl_expr_parse_assign(&fix.arena, &fix.diags, fixture_text(&fix), &assign));
  assert_diag(&fix, 0, "TL0205", 1, 1, "cannot assign to `f(x)`");
  fixture_fini(&fix);
}
END_TEST

START_TEST(clauses) {
  fixture fix;
  tl_expr *from, *to;
  fixture_init(&fix, TL_STR("A[i, 0] -> B_s.T"));
  ck_assert(tl_expr_parse_arrow(&fix.arena, &fix.diags, fixture_text(&fix), &from, &to));
  ck_assert_int_eq(to->kind, TL_EXPR_TRANSPOSE);
  fixture_fini(&fix);
  tl_in_clause in;
  fixture_init(&fix, TL_STR("i, j in M, ceildiv(N, 2)"));
  ck_assert(tl_expr_parse_in(&fix.arena, &fix.diags, fixture_text(&fix), &in));
  ck_assert_uint_eq(in.num_names, 2);
  ck_assert_uint_eq(in.num_extents, 2);
  ck_assert_uint_eq(in.name_locs[1].offset, 3);
  fixture_fini(&fix);
  fixture_init(&fix, TL_STR("k in range(0, n, 2)"));
  ck_assert(tl_expr_parse_in(&fix.arena, &fix.diags, fixture_text(&fix), &in));
  ck_assert_int_eq(in.extents[0]->kind, TL_EXPR_CALL);
  fixture_fini(&fix);
  fixture_init(&fix, TL_STR("f32 in n"));
  ck_assert(!tl_expr_parse_in(&fix.arena, &fix.diags, fixture_text(&fix), &in));
  assert_diag(&fix, 0, "TL0115", 1, 1, "reserved");
  fixture_fini(&fix);
}
END_TEST

// Random trees: print, parse, compare.

typedef struct random_state {
  uint64_t state;
  tl_arena *arena;
} random_state;

static uint32_t draw(random_state *random, uint32_t bound) {
  random->state = random->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random->state >> 33) % bound;
}

static tl_expr *random_expr(random_state *random, int depth);

static tl_expr *random_node(random_state *random, tl_expr_kind kind, uint32_t num_operands, int depth) {
  tl_expr *expr = TL_NEW(random->arena, tl_expr);
  expr->kind = kind;
  expr->num_operands = num_operands;
  expr->operands = TL_NEW_ARRAY(random->arena, tl_expr *, num_operands + 1);
  for (uint32_t i = 0; i < num_operands; i++) expr->operands[i] = random_expr(random, depth - 1);
  return expr;
}

static tl_expr *random_leaf(random_state *random) {
  static const char *const names[] = {"a", "max", "sum", "block_M", "T", "e1"};
  static const double floats[] = {0.5, 1e-6, 1e300, 3.0, INFINITY, NAN, 0.1};
  tl_expr *expr = TL_NEW(random->arena, tl_expr);
  switch (draw(random, 5)) {
    case 0:
      expr->kind = TL_EXPR_INT;
      expr->int_value = draw(random, 3) ? draw(random, 1000) : INT64_MAX;
      break;
    case 1:
      expr->kind = TL_EXPR_FLOAT;
      expr->float_value = floats[draw(random, 7)];
      break;
    case 2:
      expr->kind = TL_EXPR_BOOL;
      expr->int_value = draw(random, 2);
      break;
    case 3:
      expr->kind = TL_EXPR_STRING;
      expr->text = TL_STR("it's \\ \"x\"\n");
      break;
    default:
      expr->kind = TL_EXPR_NAME;
      expr->text = tl_str_from(names[draw(random, 6)]);
  }
  return expr;
}

static void random_subscripts(random_state *random, tl_expr *expr, int depth) {
  expr->num_subscripts = 1 + draw(random, 3);
  expr->subscripts = TL_NEW_ARRAY(random->arena, tl_subscript, expr->num_subscripts);
  for (uint32_t i = 0; i < expr->num_subscripts; i++) {
    tl_subscript *subscript = &expr->subscripts[i];
    subscript->kind = (tl_subscript_kind)draw(random, 4);
    bool needs_lo = subscript->kind == TL_SUBSCRIPT_ELEMENT || subscript->kind == TL_SUBSCRIPT_COUNT;
    bool is_range = subscript->kind == TL_SUBSCRIPT_RANGE;
    if (needs_lo || (is_range && draw(random, 2))) subscript->lo = random_expr(random, depth - 1);
    if (subscript->kind == TL_SUBSCRIPT_COUNT || (is_range && draw(random, 2)))
      subscript->hi = random_expr(random, depth - 1);
    if (is_range && draw(random, 2)) subscript->step = random_expr(random, depth - 1);
  }
}

static tl_expr *random_expr(random_state *random, int depth) {
  if (depth <= 0) return random_leaf(random);
  tl_expr *expr;
  switch (draw(random, 9)) {
    case 0:
      expr = random_node(random, TL_EXPR_UNARY, 1, depth);
      expr->op = (tl_expr_op)(TL_EXPR_OP_NEG + draw(random, 4));
      return expr;
    case 1:
    case 2:
      expr = random_node(random, TL_EXPR_BINARY, 2, depth);
      expr->op = (tl_expr_op)(TL_EXPR_OP_ADD + draw(random, TL_EXPR_OP_MATMUL - TL_EXPR_OP_ADD + 1));
      return expr;
    case 3:
      expr = random_node(random, TL_EXPR_COMPARE, 2 + draw(random, 2), depth);
      expr->compare_ops = TL_NEW_ARRAY(random->arena, tl_expr_op, expr->num_operands);
      for (uint32_t i = 0; i + 1 < expr->num_operands; i++)
        expr->compare_ops[i] = (tl_expr_op)(TL_EXPR_OP_EQ + draw(random, 6));
      return expr;
    case 4:
      return random_node(random, TL_EXPR_CONDITIONAL, 3, depth);
    case 5:
      expr = random_node(random, TL_EXPR_CALL, draw(random, 3), depth);
      expr->text = TL_STR("f");
      expr->num_keywords = draw(random, 2);
      expr->keywords = TL_NEW_ARRAY(random->arena, tl_keyword, 1);
      expr->keywords[0] = (tl_keyword){.name = TL_STR("axis"), .value = random_expr(random, depth - 1)};
      return expr;
    case 6:
      expr = random_node(random, TL_EXPR_INDEX, 1, depth);
      random_subscripts(random, expr, depth);
      return expr;
    case 7:
      return random_node(random, TL_EXPR_TRANSPOSE, 1, depth);
    default:
      expr = random_node(random, TL_EXPR_REDUCTION, 1, depth);
      expr->text = TL_STR("argmax");
      expr->num_indices = 1 + draw(random, 2);
      expr->indices = TL_NEW_ARRAY(random->arena, tl_reduction_index, 2);
      expr->indices[0] = (tl_reduction_index){.name = TL_STR("k")};
      expr->indices[1] = (tl_reduction_index){
          .name = TL_STR("d"), .lo = random_expr(random, depth - 1), .hi = random_expr(random, depth - 1)};
      return expr;
  }
}

START_TEST(random_trees_print_and_parse_back) {
  for (uint64_t seed = 1; seed <= 4000; seed++) {
    tl_arena arena;
    tl_arena_init(&arena);
    random_state random = {seed * 977, &arena};
    tl_expr *expr = random_expr(&random, 1 + (int)(seed % 5));
    tl_strbuf text;
    tl_strbuf_init(&text);
    tl_expr_print(expr, &text);
    fixture fix;
    fixture_init(&fix, tl_strbuf_view(&text));
    tl_expr *parsed = tl_expr_parse(&fix.arena, &fix.diags, fixture_text(&fix));
    ck_assert_msg(parsed != NULL, "`%s`: %s", tl_strbuf_c(&text),
                  fix.diags.list.len ? fix.diags.list.items[0]->text : "");
    ck_assert_msg(tl_expr_equal(expr, parsed), "`%s` parses to another tree", tl_strbuf_c(&text));
    fixture_fini(&fix);
    tl_strbuf_fini(&text);
    tl_arena_fini(&arena);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("frontend_expr");
  TCase *tests = tcase_create("expr");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, precedence);
  tcase_add_test(tests, chained_comparison_is_one_node);
  tcase_add_test(tests, printing_is_canonical);
  tcase_add_loop_test(tests, errors_have_exact_places, 0, sizeof(bad_exprs) / sizeof(bad_exprs[0]));
  tcase_add_test(tests, limits);
  tcase_add_test(tests, assignments);
  tcase_add_test(tests, clauses);
  tcase_add_test(tests, random_trees_print_and_parse_back);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
