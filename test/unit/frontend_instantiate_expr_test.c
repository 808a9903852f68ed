// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One expression a case: the typing rules of the language, and the tile IR it becomes.
#include "test/unit/frontend_instantiate_text.h"

static const body_case cases[] = {
    {"literal_adopts",
     "  - parallel: i, j in bm, bn\n"
     "    do:\n"
     "      - a[i, j] = a[i, j] * 2 + 0.5\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%a) index(%i, %j) : f16\n"
     "  %1 = mul %0, 2.0:f16 : f16\n"
     "  %2 = add %1, 0.5:f16 : f16\n"
     "  store value(%2) buffer(%a) index(%i, %j)\n"
     "}\n"},
    {"int_promotes",
     "  - parallel: i, j in bm, bn\n"
     "    do:\n"
     "      - q[i, j] = q[i, j] + 300\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%q) index(%i, %j) : u8\n"
     "  %1 = cast %0 : i32\n"
     "  %2 = add %1, 300:i32 : i32\n"
     "  %3 = cast %2 : u8\n"
     "  store value(%3) buffer(%q) index(%i, %j)\n"
     "}\n"},
    {"shift_mask",
     "  - parallel: i, j in bm, bn\n"
     "    do:\n"
     "      - q[i, j] = (q[i, j // 2] >> (j % 2 * 4)) & 15\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = floordiv %j, 2 : index\n"
     "  %1 = load buffer(%q) index(%i, %0) : u8\n"
     "  %2 = mod %j, 2 : index\n"
     "  %3 = mul %2, 4 : index\n"
     "  %4 = cast %1 : i32\n"
     "  %5 = cast %3 : i32\n"
     "  %6 = shr %4, %5 : i32\n"
     "  %7 = and %6, 15:i32 : i32\n"
     "  %8 = cast %7 : u8\n"
     "  store value(%8) buffer(%q) index(%i, %j)\n"
     "}\n"},
    {"float_const_with_int", "  - R[0, 0] = n * 0.5\n",
     "%0 = cast %n : f32\n"
     "%1 = mul %0, 0.5:f32 : f32\n"
     "store value(%1) buffer(%R) index(0, 0)\n"},
    {"int_quotient", "  - R[0, 0] = n / 2\n",
     "%0 = cast %n : f32\n"
     "%1 = div %0, 2.0:f32 : f32\n"
     "store value(%1) buffer(%R) index(0, 0)\n"},
    {"index_with_float", "  - R[0, 0] = bx * alpha\n",
     "%0 = cast %bx : f32\n"
     "%1 = mul %0, %alpha : f32\n"
     "store value(%1) buffer(%R) index(0, 0)\n"},
    {"mixed_index_data", "  - R[L[0] + bx, 0] = L[1] + bx\n",
     "%0 = load buffer(%L) index(0) : i32\n"
     "%1 = cast %0 : index\n"
     "%2 = add %1, %bx : index\n"
     "%3 = load buffer(%L) index(1) : i32\n"
     "%4 = cast %3 : index\n"
     "%5 = add %4, %bx : index\n"
     "%6 = cast %5 : f32\n"
     "store value(%6) buffer(%R) index(%2, 0)\n"},
    {"comparison_chain", "  - R[0, 0] = 1 if 0 <= n < 10 else alpha\n",
     "%0 = cmp 0:i32, %n {pred = le} : bool\n"
     "%1 = cmp %n, 10:i32 {pred = lt} : bool\n"
     "%2 = and %0, %1 : bool\n"
     "%3 = select %2, 1.0:f32, %alpha : f32\n"
     "store value(%3) buffer(%R) index(0, 0)\n"},
    {"lazy_conditional",
     "  - parallel: i, j in bm, bn\n"
     "    do:\n"
     "      - acc[i, j] = x[i, j - 1] if j > 0 else 0\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = cmp %j, 0 {pred = gt} : bool\n"
     "  %1 = if %0 : f32 do {\n"
     "    %2 = add %j, -1 : index\n"
     "    %3 = load buffer(%x) index(%i, %2) : f32\n"
     "    yield %3\n"
     "  } do {\n"
     "    yield 0.0:f32\n"
     "  }\n"
     "  store value(%1) buffer(%acc) index(%i, %j)\n"
     "}\n"},
    {"min_max_clamp", "  - R[0, 0] = clamp(max(alpha, n, 2), -1, 1)\n",
     "%0 = cast %n : f32\n"
     "%1 = max %alpha, %0 : f32\n"
     "%2 = max %1, 2.0:f32 : f32\n"
     "%3 = max %2, -1.0:f32 : f32\n"
     "%4 = min %3, 1.0:f32 : f32\n"
     "store value(%4) buffer(%R) index(0, 0)\n"},
    {"cast_bitcast", "  - R[0, 0] = bitcast(cast(alpha, i32) + 1, f32)\n",
     "%0 = cast %alpha : i32\n"
     "%1 = add %0, 1:i32 : i32\n"
     "%2 = bitcast %1 : f32\n"
     "store value(%2) buffer(%R) index(0, 0)\n"},
    {"powers", "  - R[0, 0] = alpha ** 3 + alpha ** 0.5\n",
     "%0 = mul %alpha, %alpha : f32\n"
     "%1 = mul %alpha, %0 : f32\n"
     "%2 = add %alpha, 0.0:f32 : f32\n"
     "%3 = math %2 {fn = sqrt} : f32\n"
     "%4 = cmp %alpha, -inf:f32 {pred = eq} : bool\n"
     "%5 = select %4, inf:f32, %3 : f32\n"
     "%6 = add %1, %5 : f32\n"
     "store value(%6) buffer(%R) index(0, 0)\n"},
    {"math", "  - R[0, 0] = exp(alpha) + rsqrt(n)\n",
     "%0 = math %alpha {fn = exp} : f32\n"
     "%1 = cast %n : f32\n"
     "%2 = math %1 {fn = rsqrt} : f32\n"
     "%3 = add %0, %2 : f32\n"
     "store value(%3) buffer(%R) index(0, 0)\n"},
    {"sign_abs", "  - R[0, 0] = abs(n) + sign(alpha)\n",
     "%0 = neg %n : i32\n"
     "%1 = max %n, %0 : i32\n"
     "%2 = neg 1.0:f32 : f32\n"
     "%3 = cmp %alpha, 0.0:f32 {pred = lt} : bool\n"
     "%4 = select %3, %2, %alpha : f32\n"
     "%5 = cmp %alpha, 0.0:f32 {pred = gt} : bool\n"
     "%6 = select %5, 1.0:f32, %4 : f32\n"
     "%7 = cast %1 : f32\n"
     "%8 = add %7, %6 : f32\n"
     "store value(%8) buffer(%R) index(0, 0)\n"},
    {"load_pad", "  - R[0, 0] = load(A[bx, 1], 7)\n",
     "%0 = load buffer(%A) index(%bx, 1) pad(7.0:f16) : f16\n"
     "%1 = cast %0 : f32\n"
     "store value(%1) buffer(%R) index(0, 0)\n"},
    {"in_bounds", "  - R[0, 0] = 1.5 if in_bounds(A[bx, 1]) else alpha\n",
     "%0 = in_bounds buffer(%A) index(%bx, 1) : bool\n"
     "%1 = select %0, 1.5:f32, %alpha : f32\n"
     "store value(%1) buffer(%R) index(0, 0)\n"},
    {"thread",
     "  - parallel: i in bm\n"
     "    do:\n"
     "      - m[i] = thread_id() + lane_id() * warp_id()\n",
     "parallel {extents = [16]} do(%i: index) {\n"
     "  %0 = thread_id : index\n"
     "  %1 = lane_id : index\n"
     "  %2 = warp_id : index\n"
     "  %3 = mul %1, %2 : index\n"
     "  %4 = add %0, %3 : index\n"
     "  %5 = cast %4 : f32\n"
     "  store value(%5) buffer(%m) index(%i)\n"
     "}\n"},
    {"bit_operations", "  - R[0, 0] = (n ^ 3 | 4) << 2 & ~n\n",
     "%0 = xor %n, 3:i32 : i32\n"
     "%1 = or %0, 4:i32 : i32\n"
     "%2 = shl %1, 2:i32 : i32\n"
     "%3 = not %n : i32\n"
     "%4 = and %2, %3 : i32\n"
     "%5 = cast %4 : f32\n"
     "store value(%5) buffer(%R) index(0, 0)\n"},
    {"logic", "  - R[0, 0] = select(not (n > 1 or alpha < 2), 1, alpha)\n",
     "%0 = cmp %n, 1:i32 {pred = gt} : bool\n"
     "%1 = cmp %alpha, 2.0:f32 {pred = lt} : bool\n"
     "%2 = or %0, %1 : bool\n"
     "%3 = not %2 : bool\n"
     "%4 = select %3, 1.0:f32, %alpha : f32\n"
     "store value(%4) buffer(%R) index(0, 0)\n"},
    {"composed_rounds_once",
     "  - parallel: i, j in bm, bn\n"
     "    do:\n"
     "      - a[i, j] = silu(a[i, j])\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%a) index(%i, %j) : f16\n"
     "  %1 = cast %0 : f32\n"
     "  %2 = math %1 {fn = sigmoid} : f32\n"
     "  %3 = mul %1, %2 : f32\n"
     "  %4 = cast %3 : f16\n"
     "  store value(%4) buffer(%a) index(%i, %j)\n"
     "}\n"},
    {"relu", "  - acc = relu(acc)\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%acc) index(%i, %j) : f32\n"
     "  %1 = max %0, 0.0:f32 : f32\n"
     "  store value(%1) buffer(%acc) index(%i, %j)\n"
     "}\n"},
    {"fma", "  - R[0, 0] = fma(alpha, n, 1)\n",
     "%0 = cast %n : f32\n"
     "%1 = fma %alpha, %0, 1.0:f32 : f32\n"
     "store value(%1) buffer(%R) index(0, 0)\n"},
    {"bool_is_0_or_1", "  - R[0, 0] = (n > 1) + (alpha > 2)\n",
     "%0 = cmp %n, 1:i32 {pred = gt} : bool\n"
     "%1 = cmp %alpha, 2.0:f32 {pred = gt} : bool\n"
     "%2 = cast %0 : i32\n"
     "%3 = cast %1 : i32\n"
     "%4 = add %2, %3 : i32\n"
     "%5 = cast %4 : f32\n"
     "store value(%5) buffer(%R) index(0, 0)\n"},
    {"f16_with_f32",
     "  - parallel: i, j in bm, bn\n"
     "    do:\n"
     "      - a[i, j] = a[i, j] * x[i, j]\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%a) index(%i, %j) : f16\n"
     "  %1 = load buffer(%x) index(%i, %j) : f32\n"
     "  %2 = cast %0 : f32\n"
     "  %3 = mul %2, %1 : f32\n"
     "  %4 = cast %3 : f16\n"
     "  store value(%4) buffer(%a) index(%i, %j)\n"
     "}\n"},
    {"negative_index",
     "  - parallel: i, j in bm, bn\n"
     "    do:\n"
     "      - x[i, j] = A[by * bm + i - 1, -j]\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = mul %by, 16 : index\n"
     "  %1 = add %0, %i : index\n"
     "  %2 = add %1, -1 : index\n"
     "  %3 = sub 0, %j : index\n"
     "  %4 = load buffer(%A) index(%2, %3) : f16\n"
     "  %5 = cast %4 : f32\n"
     "  store value(%5) buffer(%x) index(%i, %j)\n"
     "}\n"},
};

START_TEST(body_becomes_ir) {
  check_body(&cases[_i]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("frontend_instantiate_expr");
  TCase *tcase = tcase_create("body");
  tcase_add_loop_test(tcase, body_becomes_ir, 0, (int)(sizeof(cases) / sizeof(cases[0])));
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
