// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ir/layout/mma.h"

#include <stddef.h>

static const tl_mma_inst insts[TL_MMA_INST_COUNT] = {
#define TL_MMA_INST(ID, a, b, acc, m, n, k, half_k, min_sm, rate) \
  [TL_MMA_INST_##ID] = {TL_MMA_INST_##ID, TL_DTYPE_##a, TL_DTYPE_##b, TL_DTYPE_##acc, m, n, k, half_k, min_sm, rate},
#include "ir/layout/mma.def"
#undef TL_MMA_INST
};

const tl_mma_inst *tl_mma_inst_find(tl_dtype a, tl_dtype b, tl_dtype acc) {
  for (int i = 0; i < TL_MMA_INST_COUNT; i++)
    if (insts[i].a == a && insts[i].b == b && insts[i].acc == acc) return &insts[i];
  return NULL;
}

const tl_mma_inst *tl_mma_inst_of(tl_mma_inst_id id) {
  return &insts[id];
}

int32_t tl_mma_inst_pack(const tl_mma_inst *inst) {
  int bits = tl_dtype_bits(inst->a);
  return bits < 32 ? 32 / bits : 1;
}

static int32_t ceil_div(int32_t a, int32_t b) {
  return (a + b - 1) / b;
}

static void add_mode(tl_layout *layout, tl_layout_axis axis, int32_t size, int32_t dim, int32_t stride) {
  if (size == 1) return;
  layout->modes[layout->num_modes++] =
      (tl_layout_mode){.axis = axis, .size = size, .dim = dim, .stride = dim == TL_DIM_NONE ? 0 : stride};
}

tl_layout tl_mma_inst_acc_layout(const tl_mma_inst *inst, const int32_t *shape, int32_t warps_m, int32_t warps_n,
                                 int32_t warps) {
  tl_layout layout = {.rank = 2, .shape = {shape[0], shape[1]}};
  int32_t tiles_m = ceil_div(shape[0], inst->m * warps_m), tiles_n = ceil_div(shape[1], 8 * warps_n);
  add_mode(&layout, TL_AXIS_REGISTER, 2, 1, 1);
  add_mode(&layout, TL_AXIS_REGISTER, inst->m / 8, 0, 8);
  add_mode(&layout, TL_AXIS_LANE, 4, 1, 2);
  add_mode(&layout, TL_AXIS_LANE, 8, 0, 1);
  add_mode(&layout, TL_AXIS_REGISTER, tiles_n, 1, 8);
  add_mode(&layout, TL_AXIS_REGISTER, tiles_m, 0, inst->m);
  add_mode(&layout, TL_AXIS_WARP, warps_m, 0, inst->m * tiles_m);
  add_mode(&layout, TL_AXIS_WARP, warps_n, 1, 8 * tiles_n);
  add_mode(&layout, TL_AXIS_WARP, warps / (warps_m * warps_n), TL_DIM_NONE, 0);
  return layout;
}

tl_layout tl_mma_inst_a_layout(const tl_mma_inst *inst, const int32_t *shape, int32_t warps_m, int32_t warps_n,
                               int32_t warps) {
  (void)warps_n;
  int32_t pack = tl_mma_inst_pack(inst);
  if (pack == 2) return tl_mma_inst_acc_layout(inst, shape, warps_m, 1, warps);
  tl_layout layout = {.rank = 2, .shape = {shape[0], shape[1]}};
  int32_t tiles_m = ceil_div(shape[0], inst->m * warps_m), steps = ceil_div(shape[1], inst->k);
  add_mode(&layout, TL_AXIS_REGISTER, pack, 1, 1);
  add_mode(&layout, TL_AXIS_REGISTER, inst->m / 8, 0, 8);
  add_mode(&layout, TL_AXIS_LANE, 4, 1, pack);
  add_mode(&layout, TL_AXIS_LANE, 8, 0, 1);
  add_mode(&layout, TL_AXIS_REGISTER, steps * (inst->k / (4 * pack)), 1, 4 * pack);
  add_mode(&layout, TL_AXIS_REGISTER, tiles_m, 0, inst->m);
  add_mode(&layout, TL_AXIS_WARP, warps_m, 0, inst->m * tiles_m);
  add_mode(&layout, TL_AXIS_WARP, warps / warps_m, TL_DIM_NONE, 0);
  return layout;
}

tl_layout tl_mma_swapped_acc_layout(const tl_mma_inst *inst, const int32_t *shape, tl_mma_warps warps) {
  // Dims of rows and columns of the sums: behind the one that counts the warps along K.
  int32_t m = warps.k > 1 ? 1 : 0, n = m + 1;
  tl_layout layout = {.rank = n + 1};
  for (int32_t d = 0; d <= n; d++) layout.shape[d] = shape[d];
  int32_t tiles_m = ceil_div(shape[m], 8 * warps.m), tiles_n = ceil_div(shape[n], inst->m * warps.n);
  add_mode(&layout, TL_AXIS_REGISTER, 2, m, 1);
  add_mode(&layout, TL_AXIS_REGISTER, inst->m / 8, n, 8);
  add_mode(&layout, TL_AXIS_LANE, 4, m, 2);
  add_mode(&layout, TL_AXIS_LANE, 8, n, 1);
  add_mode(&layout, TL_AXIS_REGISTER, tiles_m, m, 8);
  add_mode(&layout, TL_AXIS_REGISTER, tiles_n, n, inst->m);
  add_mode(&layout, TL_AXIS_WARP, warps.m, m, 8 * tiles_m);
  add_mode(&layout, TL_AXIS_WARP, warps.n, n, inst->m * tiles_n);
  add_mode(&layout, TL_AXIS_WARP, warps.k, 0, 1);
  add_mode(&layout, TL_AXIS_WARP, warps.all / (warps.m * warps.n * warps.k), TL_DIM_NONE, 0);
  return layout;
}

tl_layout tl_mma_b_layout(const tl_mma_inst *inst, const int32_t *shape, int32_t k_dim, int32_t run,
                          tl_mma_warps warps) {
  tl_layout layout = {.rank = 2, .shape = {shape[0], shape[1]}};
  int32_t n_dim = 1 - k_dim, tiles_n = ceil_div(shape[n_dim], inst->m * warps.n);
  int32_t runs = ceil_div(shape[k_dim], 4 * run * warps.k);
  add_mode(&layout, TL_AXIS_REGISTER, run, k_dim, 1);
  add_mode(&layout, TL_AXIS_LANE, 4, k_dim, run);
  add_mode(&layout, TL_AXIS_LANE, 8, n_dim, 1);
  add_mode(&layout, TL_AXIS_REGISTER, runs, k_dim, 4 * run);
  add_mode(&layout, TL_AXIS_REGISTER, tiles_n * (inst->m / 8), n_dim, 8);
  add_mode(&layout, TL_AXIS_WARP, warps.m, TL_DIM_NONE, 0);
  add_mode(&layout, TL_AXIS_WARP, warps.n, n_dim, inst->m * tiles_n);
  add_mode(&layout, TL_AXIS_WARP, warps.k, k_dim, 4 * run * runs);
  add_mode(&layout, TL_AXIS_WARP, warps.all / (warps.m * warps.n * warps.k), TL_DIM_NONE, 0);
  return layout;
}
