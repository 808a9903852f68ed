// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One statement or expression a case: the body, and the tile IR it becomes. To be readable the expected text has
// constants in place ("0.0:f32", indices without a type), unnamed values numbered anew, and nothing of the head.
#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/instantiate.h"
#include "ir/text.h"

static const char head[] =
    "kernel: t\n"
    "params:\n"
    "  M: 256\n"
    "  N: dynamic(8)\n"
    "  bm: 16\n"
    "  bn: 32\n"
    "  dtype: f16\n"
    "args:\n"
    "  A: in dtype[M, N]\n"
    "  B: in f32[M, 64]\n"
    "  L: in i32[M]\n"
    "  C: out f32[M, N]\n"
    "  R: inout f32[M, 64]\n"
    "  alpha: f32\n"
    "  n: i32\n"
    "grid:\n"
    "  bx: ceildiv(N, bn)\n"
    "  by: ceildiv(M, bm)\n"
    "threads: 128\n"
    "shared:\n"
    "  a: dtype[bm, bn]\n"
    "  b: dtype[bn, bn]\n"
    "  x: f32[bm, bn]\n"
    "  q: u8[bm, bn]\n"
    "fragment:\n"
    "  acc: f32[bm, bn]\n"
    "  m: f32[bm]\n"
    "body:\n";

typedef struct body_case {
  const char *name, *body, *expected;
} body_case;

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
     "    overlap: 1\n"
     "    do:\n"
     "      - copy: A[0, ko * bn] -> a\n",
     "%0 = add %N, 31 : index\n"
     "%1 = floordiv %0, 32 : index\n"
     "for lower(0) upper(%1) step(1) {stages = 3, pipelined, overlap = 1} do(%ko: index) {\n"
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
    {"tile_transposed", "  - b = b.T\n",
     "parallel {extents = [32, 32]} do(%i: index, %j: index) {\n"
     "  %0 = load buffer(%b) index(%j, %i) : f16\n"
     "  store value(%0) buffer(%b) index(%i, %j)\n"
     "}\n"},
    {"element_compound", "  - R[bx, 0] *= 2\n",
     "%0 = load buffer(%R) index(%bx, 0) : f32\n"
     "%1 = mul %0, 2.0:f32 : f32\n"
     "store value(%1) buffer(%R) index(%bx, 0)\n"},
    {"sync", "  - sync:\n", "barrier\n"},
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
     "%2 = math %alpha {fn = sqrt} : f32\n"
     "%3 = add %1, %2 : f32\n"
     "store value(%3) buffer(%R) index(0, 0)\n"},
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
    {"gather", "  - m = B[L[0], 0:bm]\n",
     "parallel {extents = [16]} do(%i: index) {\n"
     "  %0 = load buffer(%L) index(0) : i32\n"
     "  %1 = cast %0 : index\n"
     "  %2 = load buffer(%B) index(%1, %i) : f32\n"
     "  store value(%2) buffer(%m) index(%i)\n"
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
};

// ---- normal form

enum { MAX_NAMES = 512, NAME_SIZE = 64 };
typedef struct renaming {
  char from[MAX_NAMES][NAME_SIZE], to[MAX_NAMES][NAME_SIZE];
  int len, num_unnamed;
} renaming;

static const char *renamed(renaming *names, const char *name) {
  for (int i = 0; i < names->len; ++i) {
    if (strcmp(names->from[i], name) == 0) return names->to[i];
  }
  if (!isdigit((unsigned char)name[1])) return name;
  ck_assert_int_lt(names->len, MAX_NAMES);
  snprintf(names->from[names->len], NAME_SIZE, "%s", name);
  snprintf(names->to[names->len], NAME_SIZE, "%%%d", names->num_unnamed++);
  return names->to[names->len++];
}

// "%c1 = const {value = 1} : index": remembered instead of printed.
static bool take_constant(renaming *names, const char *line) {
  char name[NAME_SIZE], value[NAME_SIZE], type[NAME_SIZE];
  if (sscanf(line, " %63s = const {value = %63[^}]} : %63s", name, value, type) != 3) return false;
  ck_assert_int_lt(names->len, MAX_NAMES);
  snprintf(names->from[names->len], NAME_SIZE, "%s", name);
  bool is_index = strcmp(type, "index") == 0;
  int length = snprintf(names->to[names->len], NAME_SIZE, "%s%s%s", value, is_index ? "" : ":", is_index ? "" : type);
  ck_assert_int_lt(length, NAME_SIZE);
  ++names->len;
  return true;
}

static void normalise_line(renaming *names, const char *line, tl_strbuf *out) {
  for (const char *at = line; *at;) {
    if (*at != '%') {
      tl_strbuf_append_char(out, *at++);
      continue;
    }
    char name[NAME_SIZE];
    size_t len = 1;
    while (isalnum((unsigned char)at[len]) || at[len] == '_') ++len;
    ck_assert_uint_lt(len, NAME_SIZE);
    memcpy(name, at, len);
    name[len] = '\0';
    tl_strbuf_append_c(out, renamed(names, name));
    at += len;
  }
  tl_strbuf_append_char(out, '\n');
}

// The body of the printed kernel in normal form; the head ends with the last tile's alloc.
static void normalise(const char *text, tl_strbuf *out) {
  static renaming names;
  names.len = names.num_unnamed = 0;
  char *copy = strdup(text), *state = NULL;
  bool in_body = false;
  for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
    if (take_constant(&names, line)) continue;
    if (in_body && line[0] == ' ') normalise_line(&names, line + 2, out);
    in_body = in_body || strstr(line, "alloc {name = \"m\"}");
  }
  free(copy);
}

static void instantiate_body(const char *body, tl_strbuf *out, tl_strbuf *messages) {
  tl_sources sources;
  tl_diags diags;
  tl_strbuf text;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, head);
  tl_strbuf_append_c(&text, body);
  tl_spec *spec = tl_spec_parse(&sources, tl_sources_add(&sources, "t.yaml", tl_strbuf_view(&text)), &diags);
  tl_module *module = NULL;
  if (spec) module = tl_instantiate(&spec->kernels[0], (tl_bindings){0}, NULL, &sources, &diags);
  if (module) {
    tl_strbuf printed;
    tl_verify_result result;
    tl_strbuf_init(&printed);
    tl_module_print(module, &printed);
    normalise(tl_strbuf_c(&printed), out);
    if (!tl_module_verify(module, &result)) tl_module_print_with_errors(module, &result, messages);
    tl_verify_result_fini(&result);
    tl_strbuf_fini(&printed);
    tl_module_destroy(module);
  } else {
    tl_diags_print_text(&diags, messages, false);
  }
  tl_spec_destroy(spec);
  tl_strbuf_fini(&text);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

START_TEST(body_becomes_ir) {
  const body_case *one = &cases[_i];
  tl_strbuf out, messages;
  tl_strbuf_init(&out);
  tl_strbuf_init(&messages);
  instantiate_body(one->body, &out, &messages);
  ck_assert_msg(messages.len == 0, "%s: %s", one->name, tl_strbuf_c(&messages));
  ck_assert_msg(strcmp(tl_strbuf_c(&out), one->expected) == 0, "%s:\n%s\nexpected:\n%s", one->name, tl_strbuf_c(&out),
                one->expected);
  tl_strbuf_fini(&out);
  tl_strbuf_fini(&messages);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("frontend_instantiate");
  TCase *tcase = tcase_create("body");
  tcase_add_loop_test(tcase, body_becomes_ir, 0, (int)(sizeof(cases) / sizeof(cases[0])));
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
