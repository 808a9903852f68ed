// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One statement a case, and the head of a kernel: what tile IR they become.
#include "test/unit/frontend_instantiate_text.h"

static const body_case cases[] = {
    {"clear", "  - clear: acc\n", "fill %acc, 0.0:f32\n"},
    {"fill_inf",
     "  - fill: m\n"
     "    value: -inf\n",
     "fill %m, -inf:f32\n"},
    {"fill_int_inf",
     "  - fill: q\n"
     "    value: inf\n",
     "fill %q, 255:u8\n"},
    {"copy_corner", "  - copy: A[by * bm, bx * bn] -> a\n",
     "%0 = mul %by, 16 : index\n"
     "%1 = mul %bx, 32 : index\n"
     "copy src(%A) src_offsets(%0, %1) dst(%a) dst_offsets(0, 0) {extents = [16, 32], src_dims = [0, 1], dst_dims = "
     "[0, 1]}\n"},
    {"copy_back", "  - copy: acc -> C[by * bm, bx * bn]\n",
     "%0 = mul %by, 16 : index\n"
     "%1 = mul %bx, 32 : index\n"
     "copy src(%acc) src_offsets(0, 0) dst(%C) dst_offsets(%0, %1) {extents = [16, 32], src_dims = [0, 1], dst_dims = "
     "[0, 1]}\n"},
    {"copy_pad_options",
     "  - copy: A[by * bm, bx * bn] -> a\n"
     "    pad: -1\n"
     "    via: cp_async\n"
     "    evict: last\n",
     "%0 = mul %by, 16 : index\n"
     "%1 = mul %bx, 32 : index\n"
     "copy src(%A) src_offsets(%0, %1) dst(%a) dst_offsets(0, 0) pad(-1.0:f16) {extents = [16, 32], src_dims = [0, 1], "
     "dst_dims = [0, 1], via = cp_async, evict = last}\n"},
    {"copy_slices", "  - copy: B[by * bm:+bm, 0:bn] -> x\n",
     "%0 = mul %by, 16 : index\n"
     "copy src(%B) src_offsets(%0, 0) dst(%x) dst_offsets(0, 0) {extents = [16, 32], src_dims = [0, 1], dst_dims = [0, "
     "1]}\n"},
    {"copy_dropped_subscript", "  - copy: B[3, 0:bm] -> m\n",
     "copy src(%B) src_offsets(3, 0) dst(%m) dst_offsets(0) {extents = [16], src_dims = [1], dst_dims = [0]}\n"},
    {"copy_step", "  - copy: B[0:bm, 0:64:2] -> x\n",
     "copy src(%B) src_offsets(0, 0) dst(%x) dst_offsets(0, 0) {extents = [16, 32], src_dims = [0, 1], dst_dims = [0, "
     "1], src_step = [1, 2]}\n"},
    {"copy_reversed", "  - copy: B[0:bm, 31:-1:-1] -> x\n",
     "copy src(%B) src_offsets(0, 31) dst(%x) dst_offsets(0, 0) {extents = [16, 32], src_dims = [0, 1], dst_dims = [0, "
     "1], src_step = [1, -1]}\n"},
    {"copy_ragged", "  - copy: A[L[by]:L[by + 1], 0:bn] -> a\n",
     "%0 = load buffer(%L) index(%by) : i32\n"
     "%1 = cast %0 : index\n"
     "%2 = add %by, 1 : index\n"
     "%3 = load buffer(%L) index(%2) : i32\n"
     "%4 = cast %3 : index\n"
     "%5 = sub %4, %1 : index\n"
     "%6 = min %4, 256 : index\n"
     "copy src(%A) src_offsets(%1, 0) src_limits(%6, %N) dst(%a) dst_offsets(0, 0) {extents = [16, 32], src_dims = [0, "
     "1], dst_dims = [0, 1]}\n"},
    {"copy_run_time_count", "  - copy: A[by * bm:+n, 0:bn] -> a\n",
     "%0 = mul %by, 16 : index\n"
     "%1 = cast %n : index\n"
     "%2 = add %0, %1 : index\n"
     "%3 = min %2, 256 : index\n"
     "copy src(%A) src_offsets(%0, 0) src_limits(%3, %N) dst(%a) dst_offsets(0, 0) {extents = [16, 32], src_dims = [0, "
     "1], dst_dims = [0, 1]}\n"},
    {"copy_whole_dim", "  - copy: x -> R[by * bm:+bm, 0:bn]\n",
     "%0 = mul %by, 16 : index\n"
     "copy src(%x) src_offsets(0, 0) dst(%R) dst_offsets(%0, 0) {extents = [16, 32], src_dims = [0, 1], dst_dims = [0, "
     "1]}\n"},
    {"copy_transposed", "  - copy: b.T -> R[0:bn, 0:bn]\n",
     "copy src(%b) src_offsets(0, 0) dst(%R) dst_offsets(0, 0) {extents = [32, 32], src_dims = [1, 0], dst_dims = [0, "
     "1]}\n"},
    {"copy_transposed_corner", "  - copy: A[0, bx * bn].T -> b\n",
     "%0 = mul %bx, 32 : index\n"
     "copy src(%A) src_offsets(0, %0) dst(%b) dst_offsets(0, 0) {extents = [32, 32], src_dims = [1, 0], dst_dims = [0, "
     "1]}\n"},
    {"copy_fragment", "  - copy: acc -> a\n",
     "copy src(%acc) src_offsets(0, 0) dst(%a) dst_offsets(0, 0) {extents = [16, 32], src_dims = [0, 1], dst_dims = "
     "[0, 1]}\n"},
    {"copy_leading_ones", "  - copy: B[5:6, 0:bm] -> m\n",
     "copy src(%B) src_offsets(5, 0) dst(%m) dst_offsets(0) {extents = [16], src_dims = [1], dst_dims = [0]}\n"},
    {"gemm", "  - gemm: acc += a @ b\n", "gemm %acc, %a, %b\n"},
    {"gemm_clear_transposed",
     "  - gemm: acc = a @ b.T\n"
     "    policy: full_row\n"
     "    mma: mma\n",
     "gemm %acc, %a, %b {trans_b, clear, mma = mma, policy = full_row}\n"},
    {"parallel_where",
     "  - parallel: i, j in bm, bn\n"
     "    where: by * bm + i < M - 1\n"
     "    do:\n"
     "      - acc[i, j] = 1\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = mul %by, 16 : index\n"
     "  %1 = add %0, %i : index\n"
     "  %2 = cmp %1, 255 {pred = lt} : bool\n"
     "  if %2 do {\n"
     "    store value(1.0:f32) buffer(%acc) index(%i, %j)\n"
     "  }\n"
     "}\n"},
    {"pipelined",
     "  - pipelined: ko in ceildiv(N, bn)\n"
     "    stages: 3\n"
     "    do:\n"
     "      - copy: A[0, ko * bn] -> a\n",
     "%0 = add %N, 31 : index\n"
     "%1 = floordiv %0, 32 : index\n"
     "for lower(0) upper(%1) step(1) {stages = 3, pipelined} do(%ko: index) {\n"
     "  %2 = mul %ko, 32 : index\n"
     "  copy src(%A) src_offsets(0, %2) dst(%a) dst_offsets(0, 0) {extents = [16, 32], src_dims = [0, 1], dst_dims = "
     "[0, 1]}\n"
     "}\n"},
    {"for_range",
     "  - for: k in range(4, 0, -1)\n"
     "    unroll: 2\n"
     "    do:\n"
     "      - R[k, 0] = k\n",
     "for lower(4) upper(0) step(-1) {unroll = 2} do(%k: index) {\n"
     "  %0 = cast %k : f32\n"
     "  store value(%0) buffer(%R) index(%k, 0)\n"
     "}\n"},
    {"unroll",
     "  - unroll: k in 4\n"
     "    do:\n"
     "      - R[k, 0] = alpha\n",
     "for lower(0) upper(4) step(1) {unroll = -1} do(%k: index) {\n"
     "  store value(%alpha) buffer(%R) index(%k, 0)\n"
     "}\n"},
    {"if_else",
     "  - if: bx == 0 and n > 3\n"
     "    then:\n"
     "      - clear: acc\n"
     "    else:\n"
     "      - clear: m\n",
     "%0 = cmp %bx, 0 {pred = eq} : bool\n"
     "%1 = cmp %n, 3:i32 {pred = gt} : bool\n"
     "%2 = and %0, %1 : bool\n"
     "if %2 do {\n"
     "  fill %acc, 0.0:f32\n"
     "} do {\n"
     "  fill %m, 0.0:f32\n"
     "}\n"},
    {"if_folded",
     "  - if: dtype == f16\n"
     "    then:\n"
     "      - clear: acc\n"
     "    else:\n"
     "      - gemm: acc += acc @ acc\n",
     "fill %acc, 0.0:f32\n"},
    {"let_once",
     "  - let:\n"
     "      row: by * bm\n"
     "      v: alpha * 2\n"
     "      c: 3\n"
     "  - R[row, c] = v\n",
     "%row = mul %by, 16 : index\n"
     "%v = mul %alpha, 2.0:f32 : f32\n"
     "store value(%v) buffer(%R) index(%row, 3)\n"},
    {"atomic_element", "  - atomic: alpha -> R[bx, 0]\n",
     "atomic value(%alpha) buffer(%R) index(%bx, 0) {kind = add}\n"},
    {"atomic_tile", "  - atomic: acc -> R[by * bm, 0]\n",
     "%0 = mul %by, 16 : index\n"
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %1 = add %0, %i : index\n"
     "  %2 = load buffer(%acc) index(%i, %j) : f32\n"
     "  atomic value(%2) buffer(%R) index(%1, %j) {kind = add}\n"
     "}\n"},
    {"atomic_parallel",
     "  - parallel: i in bm\n"
     "    do:\n"
     "      - atomic: m[i] -> R[i, 1]\n"
     "        op: add\n",
     "parallel {extents = [16]} do(%i: index) {\n"
     "  %0 = load buffer(%m) index(%i) : f32\n"
     "  atomic value(%0) buffer(%R) index(%i, 1) {kind = add}\n"
     "}\n"},
    {"view_body",
     "  - view: f = a\n"
     "    type: f32[bm * bn // 2]\n"
     "  - f[3] = alpha\n",
     "%f = view buffer(%a) dims(256) {name = \"f\"} : buffer<shared f32 256>\n"
     "store value(%alpha) buffer(%f) index(3)\n"},
    {"tile_scalar", "  - acc = alpha + 1\n",
     "%0 = add %alpha, 1.0:f32 : f32\n"
     "fill %acc, %0\n"},
    {"tile_broadcast", "  - acc = x * m[:, None] + a\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%x) index(%i, %j) : f32\n"
     "  %1 = load buffer(%m) index(%i) : f32\n"
     "  %2 = mul %0, %1 : f32\n"
     "  %3 = load buffer(%a) index(%i, %j) : f16\n"
     "  %4 = cast %3 : f32\n"
     "  %5 = add %2, %4 : f32\n"
     "  store value(%5) buffer(%acc) index(%i, %j)\n"
     "}\n"},
    {"tile_compound", "  - a += x\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%x) index(%i, %j) : f32\n"
     "  %1 = load buffer(%a) index(%i, %j) : f16\n"
     "  %2 = cast %1 : f32\n"
     "  %3 = add %2, %0 : f32\n"
     "  %4 = cast %3 : f16\n"
     "  store value(%4) buffer(%a) index(%i, %j)\n"
     "}\n"},
    {"tile_slice", "  - x[:, 8:+8] = x[:, 0:+8] * 2\n",
     "parallel {extents = [16, 8]} do(%i: index, %j: index) {\n"
     "  %0 = add %j, 8 : index\n"
     "  %1 = load buffer(%x) index(%i, %j) : f32\n"
     "  %2 = mul %1, 2.0:f32 : f32\n"
     "  store value(%2) buffer(%x) index(%i, %0)\n"
     "}\n"},
    {"tile_max", "  - acc max= 0\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%acc) index(%i, %j) : f32\n"
     "  %1 = max %0, 0.0:f32 : f32\n"
     "  store value(%1) buffer(%acc) index(%i, %j)\n"
     "}\n"},
    {"tile_transposed", "  - x = R[0:bn, 0:bm].T\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%R) index(%j, %i) : f32\n"
     "  store value(%0) buffer(%x) index(%i, %j)\n"
     "}\n"},
    {"element_compound", "  - R[bx, 0] *= 2\n",
     "%0 = load buffer(%R) index(%bx, 0) : f32\n"
     "%1 = mul %0, 2.0:f32 : f32\n"
     "store value(%1) buffer(%R) index(%bx, 0)\n"},
    {"sync", "  - sync:\n", "barrier\n"},
    {"gather", "  - m = B[L[0], 0:bm]\n",
     "parallel {extents = [16]} do(%i: index) {\n"
     "  %0 = load buffer(%L) index(0) : i32\n"
     "  %1 = cast %0 : index\n"
     "  %2 = load buffer(%B) index(%1, %i) : f32\n"
     "  store value(%2) buffer(%m) index(%i)\n"
     "}\n"},
    {"slice_limits_in_tile_assignment", "  - R[0:bm, 0:bn] = x\n",
     "parallel {extents = [16, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%x) index(%i, %j) : f32\n"
     "  store value(%0) buffer(%R) index(%i, %j)\n"
     "}\n"},
    {"nested_control",
     "  - for: k in n\n"
     "    do:\n"
     "      - if: k % 2 == 0\n"
     "        then:\n"
     "          - pipelined: t in range(k, 8, 2)\n"
     "            do:\n"
     "              - copy: B[t, 0:bm] -> m\n",
     "%0 = cast %n : index\n"
     "for lower(0) upper(%0) step(1) do(%k: index) {\n"
     "  %1 = mod %k, 2 : index\n"
     "  %2 = cmp %1, 0 {pred = eq} : bool\n"
     "  if %2 do {\n"
     "    for lower(%k) upper(8) step(2) {pipelined} do(%t: index) {\n"
     "      copy src(%B) src_offsets(%t, 0) dst(%m) dst_offsets(0) {extents = [16], src_dims = [1], dst_dims = [0]}\n"
     "    }\n"
     "  }\n"
     "}\n"},
};

START_TEST(body_becomes_ir) {
  check_body(&cases[_i]);
}
END_TEST

static const char head_spec[] =
    "kernel: h\n"
    "params:\n"
    "  M: dynamic(16)\n"
    "  N: 128\n"
    "  s: dynamic\n"
    "  dtype: bf16\n"
    "let:\n"
    "  rows: ceildiv(M, 64)\n"
    "  twice: N * 2\n"
    "args:\n"
    "  A: dtype[M, twice]\n"
    "  S: inout f32[M, N] strides(s, 1) align(4)\n"
    "  eps: f32\n"
    "  C: out dtype[rows, 64]\n"
    "views:\n"
    "  V: A as dtype[M, 2, N]\n"
    "requires:\n"
    "  - s >= N\n"
    "  - N % 64 == 0\n"
    "grid:\n"
    "  bx: rows\n"
    "  by: 2\n"
    "threads: 256\n"
    "fast_math: true\n"
    "rasterize: {panel: 4, order: column}\n"
    "shared:\n"
    "  p: f16[64, 40] layout pad(8)\n"
    "  w: f16[64, 64] layout swizzle(128)\n"
    "body:\n"
    "  - S[bx, by] = V[0, 1, 2] + eps + p[0, 0] + w[0, 0] + A[0, 0]\n"
    "  - C[bx, 0] = 1\n";
static const char head_text[] =
    "%M = dyn_param {name = \"M\", divisor = 16} : index\n"
    "%s = dyn_param {name = \"s\", least = 128} : index\n"
    "%0 = add %M, 63 : index\n"
    "%rows = floordiv %0, 64 : index\n"
    "%A = tensor dims(%M, 256) strides(256, 1) {name = \"A\", arg = 0, access = in, align = 16} : buffer<global bf16 "
    "?x256>\n"
    "%S = tensor dims(%M, 128) strides(%s, 1) {name = \"S\", arg = 1, access = inout, align = 4} : buffer<global f32 "
    "?x128>\n"
    "%eps = scalar_arg {name = \"eps\", arg = 2} : f32\n"
    "%C = tensor dims(%rows, 64) strides(64, 1) {name = \"C\", arg = 3, access = out, align = 16} : buffer<global bf16 "
    "?x64>\n"
    "%1 = launched %M : index\n"
    "%2 = launched %s : index\n"
    "%3 = cmp %2, 128 {pred = ge} : bool\n"
    "require %3 {text = \"s >= N\"}\n"
    "%V = view buffer(%A) dims(%M, 2, 128) {name = \"V\"} : buffer<global bf16 ?x2x128>\n"
    "%bx, %by = grid %rows, 2 {names = \"bx,by\", panel = 4, order = column} : index, index\n"
    "%p = alloc {name = \"p\", shared = #shared<pitch 96>} : buffer<shared f16 64x40>\n"
    "%w = alloc {name = \"w\", shared = #shared<pitch 128, xor 7 shift 0>} : buffer<shared f16 64x64>\n"
    "%4 = load buffer(%V) index(0, 1, 2) : bf16\n"
    "%5 = cast %4 : f32\n"
    "%6 = add %5, %eps : f32\n"
    "%7 = load buffer(%p) index(0, 0) : f16\n"
    "%8 = cast %7 : f32\n"
    "%9 = add %6, %8 : f32\n"
    "%10 = load buffer(%w) index(0, 0) : f16\n"
    "%11 = cast %10 : f32\n"
    "%12 = add %9, %11 : f32\n"
    "%13 = load buffer(%A) index(0, 0) : bf16\n"
    "%14 = cast %13 : f32\n"
    "%15 = add %12, %14 : f32\n"
    "store value(%15) buffer(%S) index(%bx, %by)\n"
    "store value(1.0:bf16) buffer(%C) index(%bx, 0)\n";

START_TEST(head_becomes_ir) {
  tl_strbuf out, messages;
  tl_strbuf_init(&out);
  tl_strbuf_init(&messages);
  instantiate_text(tl_str_from(head_spec), true, &out, &messages);
  ck_assert_str_eq(tl_strbuf_c(&messages), "");
  ck_assert_str_eq(tl_strbuf_c(&out), head_text);
  tl_strbuf_fini(&out);
  tl_strbuf_fini(&messages);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("frontend_instantiate");
  TCase *tcase = tcase_create("body");
  tcase_add_loop_test(tcase, body_becomes_ir, 0, (int)(sizeof(cases) / sizeof(cases[0])));
  tcase_add_test(tcase, head_becomes_ir);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
