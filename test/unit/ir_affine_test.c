// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index analysis: known facts, and soundness on random expressions that are evaluated with random symbols.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/index/affine.h"
#include "ir/ir.h"
#include "ir/text/text.h"
#include "support/vec.h"

// ---- modules from text, values by name

static tl_module *parse(const char *text) {
  tl_sources sources;
  tl_sources_init(&sources);
  uint32_t source = tl_sources_add(&sources, "test.tir", tl_str_from(text));
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  tl_module *module = tl_module_parse(&sources, source, &diags);
  tl_strbuf errors;
  tl_strbuf_init(&errors);
  tl_diags_print_text(&diags, &errors, false);
  ck_assert_msg(module != NULL, "%s", tl_strbuf_c(&errors));
  tl_verify_result result;
  if (!tl_module_verify(module, &result)) {
    tl_module_print_with_errors(module, &result, &errors);
    ck_abort_msg("%s", tl_strbuf_c(&errors));
  }
  tl_verify_result_fini(&result);
  tl_strbuf_fini(&errors);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return module;
}

typedef struct finder {
  const char *name;
  tl_value *found;
} finder;

static void find_in_op(tl_op *op, void *user) {
  finder *f = user;
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (op->results[i].name && strcmp(op->results[i].name, f->name) == 0) f->found = &op->results[i];
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (uint32_t i = 0; i < op->regions[r]->num_args; i++) {
      tl_value *arg = op->regions[r]->args[i];
      if (arg->name && strcmp(arg->name, f->name) == 0) f->found = arg;
    }
  }
}

static tl_value *value_of(tl_module *module, const char *name) {
  finder f = {.name = name};
  tl_walk_module(module, find_in_op, &f);
  ck_assert_msg(f.found != NULL, "%s", name);
  return f.found;
}

// `body` stands in a kernel with constants %k0 … and a user of everything is not needed.
static tl_module *kernel_of(const char *body) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_appendf(&text, "module tile\nkernel {name = \"k\", threads = 128} do {\n%s}\n", body);
  tl_module *module = parse(tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return module;
}

#define CONSTANTS                                                                                                 \
  "%k0 = const {value = 0} : index\n%k1 = const {value = 1} : index\n%k8 = const {value = 8} : index\n"           \
  "%k64 = const {value = 64} : index\n%k63 = const {value = 63} : index\n%k127 = const {value = 127} : index\n"   \
  "%k128 = const {value = 128} : index\n%k4096 = const {value = 4096} : index\n%k2 = const {value = 2} : index\n" \
  "%m1 = const {value = -1} : index\n%k32 = const {value = 32} : index\n"

static void check_range(tl_module *module, const char *name, int64_t lo, int64_t hi) {
  tl_range range = tl_value_range(value_of(module, name));
  ck_assert_msg(range.lo == lo && range.hi == hi, "%s: [%lld, %lld]", name, (long long)range.lo, (long long)range.hi);
}

static void check_divisor(tl_module *module, const char *name, int64_t divisor) {
  ck_assert_msg(tl_value_divisor(value_of(module, name)) == divisor, "%s: %lld", name,
                (long long)tl_value_divisor(value_of(module, name)));
}

static bool lt(tl_module *module, const char *a, const char *b) {
  return tl_prove_lt(value_of(module, a), value_of(module, b));
}

static bool le(tl_module *module, const char *a, const char *b) {
  return tl_prove_le(value_of(module, a), value_of(module, b));
}

// ---- known facts

START_TEST(known_ranges) {
  tl_module *module =
      kernel_of(CONSTANTS
                "%n = dyn_param {name = \"n\", divisor = 16} : index\n"
                "%g, %h = grid %n, %k32 {names = \"g,h\"} : index, index\n"
                "%t = thread_id : index\n%lane = lane_id : index\n%warp = warp_id : index\n"
                "%div = floordiv %t, %k8 : index\n%mod = mod %t, %k8 : index\n"
                "%neg = neg %t : index\n%ndiv = floordiv %neg, %k8 : index\n%nmod = mod %neg, %k8 : index\n"
                "%min = min %n, %k64 : index\n%max = max %t, %k64 : index\n"
                "%sq = mul %t, %t : index\n%and = and %n, %k63 : index\n%shl = shl %t, %k2 : index\n"
                "%byte = scalar_arg {name = \"b\", arg = 0} : u8\n%wide = cast %byte : index\n"
                "%two = add %byte, %byte : u8\n%back = cast %two : index\n"
                "%cond = cmp %t, %k8 {pred = lt} : bool\n%sel = select %cond, %t, %k64 : index\n"
                "%lin0 = mul %mod, %k64 : index\n%lin = sub %lin0, %mod : index\n"
                "for lower(%k8) upper(%k64) step(%k8) do(%i: index) {\n}\n"
                "for lower(%k64) upper(%m1) step(%m1) do(%j: index) {\n}\n"
                "parallel {extents = [7]} do(%p: index) {\n}\n");
  check_range(module, "n", 0, INT32_MAX / 16 * 16);
  check_range(module, "g", 0, INT32_MAX / 16 * 16 - 1);
  check_range(module, "h", 0, 31);
  check_range(module, "t", 0, 127);
  check_range(module, "lane", 0, 31);
  check_range(module, "warp", 0, 3);
  check_range(module, "div", 0, 15);
  check_range(module, "mod", 0, 7);
  check_range(module, "ndiv", -16, 0);
  check_range(module, "nmod", 0, 7);
  check_range(module, "min", 0, 64);
  check_range(module, "max", 64, 127);
  check_range(module, "sq", 0, 127 * 127);
  check_range(module, "and", 0, 63);
  check_range(module, "shl", 0, 508);
  check_range(module, "wide", 0, 255);
  check_range(module, "back", 0, 255);
  check_range(module, "sel", 0, 64);
  check_range(module, "lin", 0, 441);
  check_range(module, "i", 8, 56);
  check_range(module, "j", 0, 64);
  check_range(module, "p", 0, 6);
  check_divisor(module, "n", 16);
  check_divisor(module, "i", 8);
  check_divisor(module, "lin0", 64);
  check_divisor(module, "min", 16);
  check_divisor(module, "k0", 0);
  check_divisor(module, "and", 1);
  tl_module_destroy(module);
}
END_TEST

START_TEST(trip_counts) {
  static const struct {
    int64_t lower, upper, step, trips;
  } cases[] = {{0, 10, 3, 4},
               {0, 9, 3, 3},
               {0, 1, 5, 1},
               {0, 0, 1, 0},
               {5, 4, 1, 0},
               {10, 0, -3, 4},
               {9, 0, -3, 3},
               {0, 10, -1, 0},
               {0, 7, 0, 7},
               {1, INT64_MAX, INT64_MAX, 1},
               {INT64_MIN, INT64_MAX, INT64_MAX, 3},
               {INT64_MIN, INT64_MAX, 1, INT64_MAX},
               {INT64_MAX, INT64_MIN, INT64_MIN, 2},
               {INT64_MAX, INT64_MIN, -1, INT64_MAX}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    ck_assert_int_eq(tl_trip_count(cases[i].lower, cases[i].upper, cases[i].step), cases[i].trips);
}
END_TEST

START_TEST(grid_proofs) {
  // by * 128 + i < M holds when 128 divides M, and else not.
  for (int divisor = 1; divisor <= 256; divisor *= 2) {
    char body[1400];
    snprintf(body, sizeof(body),
             "%s"
             "%%M = dyn_param {name = \"M\", divisor = %d} : index\n%%a = add %%M, %%k127 : index\n"
             "%%e = floordiv %%a, %%k128 : index\n%%by = grid %%e {names = \"by\"} : index\n"
             "%%base = mul %%by, %%k128 : index\nparallel {extents = [128]} do(%%i: index) {\n"
             "%%row = add %%base, %%i : index\n%%next = add %%row, %%k1 : index\n}\n",
             CONSTANTS, divisor);
    tl_module *module = kernel_of(body);
    ck_assert_int_eq(lt(module, "row", "M"), divisor >= 128);
    ck_assert(!lt(module, "next", "M"));
    ck_assert_int_eq(le(module, "next", "M"), divisor >= 128);
    ck_assert(lt(module, "base", "M"));
    ck_assert_int_eq(tl_prove_lt_offset(value_of(module, "base"), divisor - 1, value_of(module, "M")), divisor <= 128);
    ck_assert(tl_prove_nonnegative(value_of(module, "row")));
    tl_module_destroy(module);
  }
  // Constant sizes.
  tl_module *module = kernel_of(CONSTANTS
                                "%by = grid %k32 {names = \"by\"} : index\n%base = mul %by, %k128 : index\n"
                                "parallel {extents = [128]} do(%i: index) {\n%row = add %base, %i : index\n}\n");
  ck_assert(lt(module, "row", "k4096"));
  tl_module_destroy(module);
}
END_TEST

START_TEST(loop_proofs) {
  tl_module *module = kernel_of(
      CONSTANTS
      "%K = dyn_param {name = \"K\", divisor = 64} : index\n%L = dyn_param {name = \"L\"} : index\n"
      "%e = floordiv %K, %k64 : index\n%a = add %L, %k63 : index\n%f = floordiv %a, %k64 : index\n"
      "for lower(%k0) upper(%e) step(%k1) do(%ko: index) {\n  %kb = mul %ko, %k64 : index\n"
      "  parallel {extents = [64]} do(%j: index) {\n  %kk = add %kb, %j : index\n}\n}\n"
      "for lower(%k0) upper(%f) step(%k1) do(%lo: index) {\n  %lb = mul %lo, %k64 : index\n"
      "  parallel {extents = [64]} do(%j2: index) {\n  %ll = add %lb, %j2 : index\n}\n}\n"
      "for lower(%k0) upper(%K) step(%k64) do(%ks: index) {\n  parallel {extents = [64]} do(%j3: index) {\n"
      "  %kks = add %ks, %j3 : index\n}\n}\n"
      // A chunk of a split loop, cut at the end.
      "%bz = grid %k8 {names = \"bz\"} : index\n%first = mul %bz, %k128 : index\n%past0 = add %first, %k128 : index\n"
      "%past = min %past0, %L : index\n"
      "for lower(%first) upper(%past) step(%k1) do(%s: index) {\n}\n"
      "for lower(%L) upper(%m1) step(%m1) do(%down: index) {\n}\n");
  ck_assert(lt(module, "kk", "K"));
  ck_assert(!lt(module, "ll", "L"));
  ck_assert(lt(module, "lb", "L"));
  ck_assert(lt(module, "kks", "K"));
  ck_assert(lt(module, "s", "L"));
  ck_assert(lt(module, "s", "past0"));
  ck_assert(le(module, "first", "s"));
  ck_assert(tl_prove_nonnegative(value_of(module, "down")));
  ck_assert(le(module, "down", "L"));
  ck_assert(!lt(module, "down", "L"));
  tl_module_destroy(module);
}
END_TEST

START_TEST(quotient_proofs) {
  tl_module *module = kernel_of(
      CONSTANTS
      // Flattened pixels of a convolution: p = (n * OH + oh) * OW + ow.
      "%k3584 = const {value = 3584} : index\n%k56 = const {value = 56} : index\n%t = thread_id : index\n"
      "%g = grid %k32 {names = \"g\"} : index\n%gb = mul %g, %k128 : index\n%p0 = add %gb, %t : index\n"
      "%p = min %p0, %k3584 : index\n"
      "%ow = mod %p, %k56 : index\n%q = floordiv %p, %k56 : index\n%qb = mul %q, %k56 : index\n%again = add %qb, %ow : "
      "index\n"
      "%OH = dyn_param {name = \"OH\"} : index\n%OW = dyn_param {name = \"OW\"} : index\n"
      "%size = mul %OH, %OW : index\n"
      "for lower(%k0) upper(%OH) step(%k1) do(%oh: index) {\n  for lower(%k0) upper(%OW) step(%k1) do(%x: index) {\n"
      "    %r = mul %oh, %OW : index\n    %lin = add %r, %x : index\n    %m = mod %lin, %OW : index\n  }\n}\n");
  ck_assert(lt(module, "ow", "k56"));
  ck_assert(le(module, "qb", "p"));
  ck_assert(tl_prove_equal(value_of(module, "again"), value_of(module, "p")));
  ck_assert(lt(module, "q", "k128"));
  ck_assert(lt(module, "lin", "size"));
  ck_assert(!lt(module, "size", "lin"));
  tl_module_destroy(module);
}
END_TEST

START_TEST(machine_integers_wrap) {
  tl_module *module = kernel_of(
      "%a = scalar_arg {name = \"a\", arg = 0} : i32\n%b = scalar_arg {name = \"b\", arg = 1} : i8\n"
      "%one = const {value = 1} : i32\n%next = add %a, %one : i32\n%x = cast %a : index\n%y = cast %next : index\n"
      "%wide = cast %b : i32\n%wide1 = add %wide, %one : i32\n%u = cast %wide : index\n%v = cast %wide1 : index\n");
  // a + 1 may wrap; the widened byte cannot.
  ck_assert(!lt(module, "x", "y"));
  ck_assert(lt(module, "u", "v"));
  check_range(module, "v", -127, 128);
  tl_module_destroy(module);
}
END_TEST

START_TEST(carried_ranges) {
  tl_module *module = kernel_of(
      CONSTANTS
      "%n = dyn_param {name = \"n\"} : index\n%k3 = add %k1, %k2 : index\n"
      // A stage counter, a countdown that stops, a sum, and a value that stays.
      "%r0, %r1, %r2, %r3 = for lower(%k0) upper(%n) step(%k1) inits(%k2, %k64, %k0, %k8) : index, index, index, index "
      "do(%i: index, %stage: index, %down: index, %sum: index, %same: index) {\n"
      "  %next = add %stage, %k1 : index\n  %wraps = cmp %next, %k3 {pred = eq} : bool\n"
      "  %stage1 = select %wraps, %k0, %next : index\n"
      "  %less = sub %down, %k8 : index\n  %down1 = max %less, %m1 : index\n  %sum1 = add %sum, %stage : index\n"
      "  yield %stage1, %down1, %sum1, %same\n}\n"
      "%c = cmp %n, %k8 {pred = lt} : bool\n%clipped = select %c, %n, %k8 : index\n"
      "%d = cmp %n, %k8 {pred = ge} : bool\n%at_least = select %d, %n, %k64 : index\n"
      "%branch = if %c : index do {\n  yield %k32\n} do {\n  yield %k8\n}\n");
  check_range(module, "stage", 0, 2);
  check_range(module, "r0", 0, 2);
  check_range(module, "down", -1, 64);
  check_range(module, "sum", 0, INT64_MAX);
  check_range(module, "r2", 0, INT64_MAX);
  check_range(module, "same", 8, 8);
  check_range(module, "clipped", 0, 8);
  check_range(module, "at_least", 8, INT32_MAX);
  check_range(module, "branch", 8, 32);
  tl_module_destroy(module);
}
END_TEST

// Chains where every step uses the two before it: paths are countless, values are few.
START_TEST(long_chains) {
  tl_strbuf body;
  tl_strbuf_init(&body);
  tl_strbuf_appendf(&body, "%s",
                    CONSTANTS
                    "%n = dyn_param {name = \"n\"} : index\n%m = dyn_param {name = \"m\"} : index\n"
                    "%a0 = mod %n, %k4096 : index\n%a1 = mod %m, %k4096 : index\n"
                    "%d0 = mul %n, %k8 : index\n%d1 = mul %m, %k64 : index\n");
  for (int i = 2; i < 3000; i++) {
    tl_strbuf_appendf(&body, "%%s%d = add %%a%d, %%a%d : index\n%%a%d = floordiv %%s%d, %%k2 : index\n", i, i - 1,
                      i - 2, i, i);
    tl_strbuf_appendf(&body, "%%d%d = min %%d%d, %%d%d : index\n", i, i - 1, i - 2);
  }
  tl_strbuf_appendf(&body, "%%last = mod %%a2999, %%k64 : index\n");
  tl_module *module = kernel_of(tl_strbuf_c(&body));
  tl_strbuf_fini(&body);
  check_range(module, "a100", 0, 4095);
  check_divisor(module, "d100", 8);
  ck_assert(lt(module, "a100", "k4096"));
  // Past what a query looks at nothing is known but what the nearest steps say.
  check_range(module, "a2999", INT64_MIN, INT64_MAX);
  check_range(module, "last", 0, 63);
  check_divisor(module, "d2999", 1);
  ck_assert(!lt(module, "a2999", "k4096"));
  tl_module_destroy(module);
}
END_TEST

// ---- builders and folding

static char *built_text(tl_value *value) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  if (value->def) {
    tl_op_print(value->def, &text);
  } else {
    tl_strbuf_append_c(&text, value->name);
  }
  char *copy = strdup(tl_strbuf_c(&text));
  copy[strcspn(copy, "\n")] = '\0';
  tl_strbuf_fini(&text);
  return copy;
}

static void check_const(tl_value *value, int64_t expected) {
  int64_t actual;
  char *text = built_text(value);
  ck_assert_msg(tl_value_const_int(value, &actual) && actual == expected, "%s", text);
  free(text);
}

START_TEST(index_builders) {
  tl_module *module = kernel_of(CONSTANTS
                                "%M = dyn_param {name = \"M\", divisor = 64} : index\n%t = thread_id : index\n"
                                "%b = mul %M, %k64 : index\n%c = add %b, %t : index\n");
  tl_value *M = value_of(module, "M"), *t = value_of(module, "t"), *c = value_of(module, "c");
  tl_builder b;
  tl_builder_at_end(&b, module, tl_module_kernel(module)->regions[0]);
  tl_value *k3 = tl_build_index(&b, 3), *k64 = tl_build_index(&b, 64), *k0 = tl_build_index(&b, 0),
           *k1 = tl_build_index(&b, 1), *m5 = tl_build_index(&b, -5), *k128 = tl_build_index(&b, 128);
  check_const(tl_index_add(&b, k3, k64), 67);
  check_const(tl_index_floordiv(&b, m5, k3), -2);
  check_const(tl_index_mod(&b, m5, k3), 1);
  check_const(tl_index_ceildiv(&b, k64, k3), 22);
  check_const(tl_index_ceildiv(&b, m5, k3), -1);
  check_const(tl_index_mul(&b, t, k0), 0);
  check_const(tl_index_sub(&b, t, t), 0);
  check_const(tl_index_floordiv(&b, t, k128), 0);
  check_const(tl_index_mod(&b, M, k64), 0);
  ck_assert_ptr_eq(tl_index_add(&b, t, k0), t);
  ck_assert_ptr_eq(tl_index_add(&b, k0, t), t);
  ck_assert_ptr_eq(tl_index_mul(&b, k1, t), t);
  ck_assert_ptr_eq(tl_index_mod(&b, t, k128), t);
  ck_assert_ptr_eq(tl_index_floordiv(&b, c, k1), c);
  ck_assert_ptr_eq(tl_index_min(&b, t, k128), t);
  ck_assert_ptr_eq(tl_index_max(&b, t, k128), k128);
  ck_assert_ptr_eq(tl_index_sub(&b, tl_index_add(&b, t, k3), k3), t);
  ck_assert_ptr_eq(tl_index_sub(&b, tl_index_add(&b, t, M), M), t);
  ck_assert_ptr_eq(tl_index_sub(&b, c, tl_index_mul(&b, M, k64)), t);
  // (t + 3) + 64 → t + 67; 64 M + t: quotient by 64 keeps M; M ceildiv 64 needs no rounding.
  tl_value *sum = tl_index_add(&b, tl_index_add(&b, k3, t), k64);
  ck_assert_ptr_eq(tl_op_operand(sum->def, 0), t);
  check_const(tl_op_operand(sum->def, 1), 67);
  tl_value *ceil = tl_index_ceildiv(&b, M, k64);
  ck_assert_int_eq(ceil->def->code, TL_OP_FLOORDIV);
  ck_assert_ptr_eq(tl_op_operand(ceil->def, 0), M);
  tl_value *rounded = tl_index_ceildiv(&b, t, k64);
  ck_assert_int_eq(tl_op_operand(rounded->def, 0)->def->code, TL_OP_ADD);
  check_const(tl_op_operand(tl_op_operand(rounded->def, 0)->def, 1), 63);
  // 128 M + t by 128 → M.
  tl_value *scaled = tl_index_add(&b, tl_index_mul(&b, tl_index_mul(&b, M, k64), tl_build_index(&b, 2)), t);
  ck_assert_ptr_eq(tl_index_floordiv(&b, scaled, k128), M);
  ck_assert_ptr_eq(tl_index_mod(&b, scaled, k128), t);
  // Overflow is never folded.
  tl_value *big = tl_build_index(&b, INT64_MAX);
  ck_assert_int_eq(tl_index_add(&b, big, k1)->def->code, TL_OP_ADD);
  ck_assert_int_eq(tl_index_mul(&b, big, k3)->def->code, TL_OP_MUL);
  ck_assert_int_eq(tl_index_floordiv(&b, tl_build_index(&b, INT64_MIN), tl_build_index(&b, -1))->def->code,
                   TL_OP_FLOORDIV);
  ck_assert_int_eq(tl_index_floordiv(&b, k3, k0)->def->code, TL_OP_FLOORDIV);
  tl_module_destroy(module);
}
END_TEST

static tl_value *fold(tl_builder *b, tl_value *value) {
  tl_value *folded = tl_fold_op(b, value->def);
  ck_assert_ptr_nonnull(folded);
  return folded;
}

static void check_folds_to(tl_builder *b, tl_value *value, double expected) {
  tl_value *folded = fold(b, value);
  ck_assert_ptr_eq(folded->type, value->type);
  const tl_attr *attr = tl_op_attr(folded->def, TL_ATTR_VALUE);
  ck_assert_ptr_nonnull(attr);
  double actual = attr->is_float ? attr->v.f : (double)attr->v.i;
  ck_assert_msg(actual == expected || (isnan(actual) && isnan(expected)), "%g, not %g", actual, expected);
}

START_TEST(folding) {
  tl_module *module = kernel_of(CONSTANTS
                                "%t = thread_id : index\n%x = scalar_arg {name = \"x\", arg = 0} : f32\n"
                                "%i = scalar_arg {name = \"i\", arg = 1} : i32\n");
  tl_value *t = value_of(module, "t"), *x = value_of(module, "x"), *i = value_of(module, "i");
  tl_builder b;
  tl_builder_at_end(&b, module, tl_module_kernel(module)->regions[0]);
  const tl_type *f32 = tl_type_scalar(module, TL_DTYPE_F32), *f16 = tl_type_scalar(module, TL_DTYPE_F16);
  const tl_type *i8 = tl_type_scalar(module, TL_DTYPE_I8), *u8 = tl_type_scalar(module, TL_DTYPE_U8);
  const tl_type *i32 = tl_type_scalar(module, TL_DTYPE_I32), *u32 = tl_type_scalar(module, TL_DTYPE_U32);
  const tl_type *u64 = tl_type_scalar(module, TL_DTYPE_U64), *boolean = tl_type_scalar(module, TL_DTYPE_BOOL);
  tl_value *half = tl_build_const_float(&b, f32, 0.5), *zero = tl_build_const_float(&b, f32, 0.0);
  tl_value *minus_zero = tl_build_const_float(&b, f32, -0.0), *one = tl_build_const_float(&b, f32, 1.0);
  // Rounded to the dtype: 2048 + 1 is a tie in f16.
  check_folds_to(
      &b, tl_build_binary(&b, TL_OP_ADD, tl_build_const_float(&b, f16, 2048), tl_build_const_float(&b, f16, 1)), 2048);
  check_folds_to(&b, tl_build_binary(&b, TL_OP_DIV, one, tl_build_const_float(&b, f32, 3)), (double)(1.0f / 3.0f));
  check_folds_to(
      &b, tl_build_binary(&b, TL_OP_MOD, tl_build_const_float(&b, f32, -5.5), tl_build_const_float(&b, f32, 2)), 0.5);
  check_folds_to(&b, tl_build_binary(&b, TL_OP_MAX, tl_build_const_float(&b, f32, NAN), one), 1);
  check_folds_to(&b, tl_build_math(&b, TL_MATH_EXP2, one), 2);
  check_folds_to(&b, tl_build_math(&b, TL_MATH_ISINF, tl_build_const_float(&b, f32, INFINITY)), 1);
  check_folds_to(&b, tl_build_unary(&b, TL_OP_NEG, half), -0.5);
  ck_assert_ptr_eq(fold(&b, tl_build_binary(&b, TL_OP_MUL, x, one)), x);
  ck_assert_ptr_eq(fold(&b, tl_build_binary(&b, TL_OP_ADD, x, minus_zero)), x);
  ck_assert_ptr_null(tl_fold_op(&b, tl_build_binary(&b, TL_OP_ADD, x, zero)->def));
  ck_assert_ptr_null(tl_fold_op(&b, tl_build_binary(&b, TL_OP_MUL, x, zero)->def));
  ck_assert_ptr_null(tl_fold_op(&b, tl_build_binary(&b, TL_OP_SUB, x, x)->def));
  // Integers wrap.
  tl_value *b100 = tl_build_const_int(&b, i8, 100), *m128 = tl_build_const_int(&b, i8, -128);
  check_folds_to(&b, tl_build_binary(&b, TL_OP_ADD, b100, b100), -56);
  check_folds_to(&b, tl_build_binary(&b, TL_OP_FLOORDIV, m128, tl_build_const_int(&b, i8, -1)), -128);
  check_folds_to(&b, tl_build_binary(&b, TL_OP_FLOORDIV, tl_build_const_int(&b, i8, -7), tl_build_const_int(&b, i8, 2)),
                 -4);
  check_folds_to(&b, tl_build_binary(&b, TL_OP_MOD, tl_build_const_int(&b, i8, -7), tl_build_const_int(&b, i8, 2)), 1);
  check_folds_to(&b, tl_build_binary(&b, TL_OP_SHR, m128, tl_build_const_int(&b, i8, 9)), -1);
  check_folds_to(&b, tl_build_binary(&b, TL_OP_SHL, tl_build_const_int(&b, u8, 255), tl_build_const_int(&b, u8, 4)),
                 240);
  check_folds_to(&b, tl_build_binary(&b, TL_OP_SHL, b100, tl_build_const_int(&b, i8, 8)), 0);
  check_folds_to(&b, tl_build_unary(&b, TL_OP_NOT, tl_build_const_int(&b, u8, 1)), 254);
  check_folds_to(&b, tl_build_cmp(&b, TL_CMP_GT, tl_build_const_int(&b, u64, -1), tl_build_const_int(&b, u64, 1)), 1);
  ck_assert_ptr_null(tl_fold_op(&b, tl_build_binary(&b, TL_OP_FLOORDIV, i, tl_build_const_int(&b, i32, 0))->def));
  check_folds_to(&b, tl_build_binary(&b, TL_OP_SUB, i, i), 0);
  ck_assert_ptr_eq(fold(&b, tl_build_binary(&b, TL_OP_AND, i, tl_build_const_int(&b, i32, -1))), i);
  // Casts.
  check_folds_to(&b, tl_build_cast(&b, tl_build_const_float(&b, f32, 1e10), i32), INT32_MAX);
  check_folds_to(&b, tl_build_cast(&b, tl_build_const_float(&b, f32, -1.9), i32), -1);
  check_folds_to(&b, tl_build_cast(&b, tl_build_const_float(&b, f32, NAN), i32), 0);
  check_folds_to(&b, tl_build_cast(&b, tl_build_const_float(&b, f32, -3), u8), 0);
  check_folds_to(&b, tl_build_cast(&b, tl_build_const_int(&b, i32, 300), u8), 44);
  check_folds_to(&b, tl_build_cast(&b, tl_build_const_int(&b, i32, 300), boolean), 1);
  check_folds_to(&b, tl_build_cast(&b, tl_build_index(&b, 70000), f16), INFINITY);
  tl_value *bits = tl_op_result(tl_build(&b, TL_OP_BITCAST, (tl_group[]){TL_GROUP_OF(one)}, &u32, 1), 0);
  check_folds_to(&b, bits, 0x3F800000);
  tl_value *round_trip = tl_build_cast(&b, tl_build_cast(&b, t, i32), tl_type_index(module));
  ck_assert_ptr_eq(fold(&b, round_trip), t);
  // Comparisons that analysis decides.
  check_folds_to(&b, tl_build_cmp(&b, TL_CMP_LT, t, tl_build_index(&b, 128)), 1);
  check_folds_to(&b, tl_build_cmp(&b, TL_CMP_GE, t, tl_build_index(&b, 128)), 0);
  check_folds_to(&b, tl_build_cmp(&b, TL_CMP_EQ, t, tl_build_index(&b, 500)), 0);
  ck_assert_ptr_null(tl_fold_op(&b, tl_build_cmp(&b, TL_CMP_LT, t, tl_build_index(&b, 127))->def));
  ck_assert_ptr_eq(fold(&b, tl_build_select(&b, tl_build_bool(&b, false), x, half)), half);
  // What is as simple as it gets stays.
  ck_assert_ptr_null(tl_fold_op(&b, tl_build_binary(&b, TL_OP_ADD, t, tl_build_index(&b, 5))->def));
  ck_assert_ptr_null(tl_fold_op(&b, tl_build_binary(&b, TL_OP_MUL, t, tl_build_index(&b, 5))->def));
  tl_module_destroy(module);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir_affine");
  TCase *tests = tcase_create("affine");
  tcase_add_test(tests, known_ranges);
  tcase_add_test(tests, trip_counts);
  tcase_add_test(tests, grid_proofs);
  tcase_add_test(tests, loop_proofs);
  tcase_add_test(tests, quotient_proofs);
  tcase_add_test(tests, machine_integers_wrap);
  tcase_add_test(tests, carried_ranges);
  tcase_add_test(tests, long_chains);
  tcase_add_test(tests, index_builders);
  tcase_add_test(tests, folding);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
