// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constructors of distributed layouts.
#include <string.h>

#include "ir/layout/layout.h"

static int32_t ceil_div(int32_t a, int32_t b) {
  return (int32_t)(((int64_t)a + b - 1) / b);
}

static void add_mode(tl_layout *layout, tl_layout_axis axis, int32_t size, int32_t dim, int32_t stride) {
  if (size == 1 || layout->num_modes == TL_LAYOUT_MAX_MODES) return;
  layout->modes[layout->num_modes++] =
      (tl_layout_mode){.axis = axis, .size = size, .dim = dim, .stride = dim == TL_DIM_NONE ? 0 : stride};
}

static tl_layout new_layout(const int32_t *shape, int32_t rank) {
  tl_layout layout;
  memset(&layout, 0, sizeof(layout));
  layout.rank = rank;
  for (int32_t d = 0; d < rank; d++) layout.shape[d] = shape[d];
  return layout;
}

// ---- blocked

enum { MAX_FACTORS = 16 };

// The block's threads as prime factors, fastest first: five twos for the lanes, then those of the warps.
typedef struct factor_list {
  int32_t count;
  int32_t values[MAX_FACTORS];
} factor_list;

static factor_list thread_factors(int32_t threads) {
  factor_list list = {5, {2, 2, 2, 2, 2}};
  int32_t warps = threads / 32;
  for (int32_t p = 2; warps > 1 && list.count < MAX_FACTORS;) {
    if (warps % p == 0) {
      list.values[list.count++] = p;
      warps /= p;
    } else {
      p++;
    }
  }
  return list;
}

// How the factors are distributed: dim number i of the order gets `taken[i]` of them, in the list's order.
typedef struct distribution {
  int64_t registers;
  int32_t taken[TL_MAX_RANK];
} distribution;

// The distribution with the fewest registers from dim `i` on; among equals the one with most threads along the earlier
// dims.
static distribution best_distribution(const factor_list *list, int32_t first, const int32_t *chunks, int32_t i,
                                      int32_t rank) {
  distribution best = {.registers = 1};
  if (i == rank) return best;
  best.registers = INT64_MAX;
  int32_t product = 1;
  for (int32_t taken = 0;; taken++) {
    distribution rest = best_distribution(list, first + taken, chunks, i + 1, rank);
    int64_t registers = rest.registers * ceil_div(chunks[i], product);
    if (registers <= best.registers) {
      best = rest;
      best.registers = registers;
      best.taken[i] = taken;
    }
    if (product >= chunks[i] || first + taken == list->count) return best;
    product *= list->values[first + taken];
  }
}

tl_layout tl_layout_blocked(const int32_t *shape, int32_t rank, const int32_t *order, int32_t vec, int32_t threads) {
  tl_layout layout = new_layout(shape, rank);
  factor_list list = thread_factors(threads);
  int32_t chunks[TL_MAX_RANK] = {0};
  int32_t stride[TL_MAX_RANK] = {0};
  for (int32_t i = 0; i < rank; i++) {
    stride[i] = i == 0 ? vec : 1;
    chunks[i] = ceil_div(shape[order[i]], stride[i]);
  }
  distribution plan = best_distribution(&list, 0, chunks, 0, rank);
  if (rank > 0) add_mode(&layout, TL_AXIS_REGISTER, vec, order[0], 1);
  int32_t at = 0;
  for (int32_t i = 0; i < rank; i++) {
    int32_t along[TL_AXIS_COUNT] = {1, 1, 1};
    for (int32_t end = at + plan.taken[i]; at < end; at++) {
      along[at < 5 ? TL_AXIS_LANE : TL_AXIS_WARP] *= list.values[at];
    }
    for (int axis = TL_AXIS_LANE; axis <= TL_AXIS_WARP; axis++) {
      add_mode(&layout, (tl_layout_axis)axis, along[axis], order[i], stride[i]);
      stride[i] *= along[axis];
      chunks[i] = ceil_div(chunks[i], along[axis]);
    }
  }
  int32_t idle[TL_AXIS_COUNT] = {1, 1, 1};
  for (; at < list.count; at++) idle[at < 5 ? TL_AXIS_LANE : TL_AXIS_WARP] *= list.values[at];
  add_mode(&layout, TL_AXIS_LANE, idle[TL_AXIS_LANE], TL_DIM_NONE, 0);
  add_mode(&layout, TL_AXIS_WARP, idle[TL_AXIS_WARP], TL_DIM_NONE, 0);
  for (int32_t i = 0; i < rank; i++) add_mode(&layout, TL_AXIS_REGISTER, chunks[i], order[i], stride[i]);
  return layout;
}

// What is still to be distributed over the threads: groups of elements along each dim of the order, and where the next
// begins.
typedef struct undistributed {
  tl_layout *layout;
  const int32_t *order;
  int32_t rank;
  int32_t chunks[TL_MAX_RANK], stride[TL_MAX_RANK];
} undistributed;

static void distribute(undistributed *d, tl_layout_axis axis, int32_t i, int32_t size) {
  add_mode(d->layout, axis, size, d->order[i], d->stride[i]);
  d->stride[i] *= size;
  d->chunks[i] = ceil_div(d->chunks[i], size);
}

static int32_t lanes_along(const undistributed *d, int32_t i, int32_t most) {
  int32_t lanes = 1;
  while (lanes * 2 <= most && lanes < d->chunks[i]) lanes *= 2;
  return lanes;
}

tl_layout tl_layout_blocked_narrow(const int32_t *shape, int32_t rank, const int32_t *order, int32_t vec, int32_t lanes,
                                   int32_t threads) {
  tl_layout layout = new_layout(shape, rank);
  undistributed d = {.layout = &layout, .order = order, .rank = rank};
  for (int32_t i = 0; i < rank; i++) {
    d.stride[i] = i == 0 ? vec : 1;
    d.chunks[i] = ceil_div(shape[order[i]], d.stride[i]);
  }
  add_mode(&layout, TL_AXIS_REGISTER, vec, order[0], 1);
  int32_t left = 32, first = lanes_along(&d, 0, lanes), idle = 1;
  distribute(&d, TL_AXIS_LANE, 0, first);
  left /= first;
  // Behind the others the first dim takes what nobody else does.
  for (int32_t n = 1; n <= rank; n++) {
    int32_t along = lanes_along(&d, n % rank, left);
    distribute(&d, TL_AXIS_LANE, n % rank, along);
    left /= along;
  }
  add_mode(&layout, TL_AXIS_LANE, left, TL_DIM_NONE, 0);
  factor_list list = thread_factors(threads);
  for (int32_t f = 5; f < list.count; f++) {
    int32_t longest = 0;
    for (int32_t i = 1; i < rank; i++)
      if (d.chunks[i] >= d.chunks[longest]) longest = i;
    if (d.chunks[longest] > 1)
      distribute(&d, TL_AXIS_WARP, longest, list.values[f]);
    else
      idle *= list.values[f];
  }
  add_mode(&layout, TL_AXIS_WARP, idle, TL_DIM_NONE, 0);
  for (int32_t i = 0; i < rank; i++) distribute(&d, TL_AXIS_REGISTER, i, d.chunks[i]);
  return layout;
}

// ---- accumulators

typedef struct fma_plan {
  int32_t vec, lanes_n, warps_n, reg_m, reg_n;
  int64_t registers;
} fma_plan;

static bool is_better_fma_plan(const fma_plan *a, const fma_plan *b) {
  if (a->registers != b->registers) return a->registers < b->registers;
  // Elements read from shared memory for each step of k.
  if (a->reg_m + a->reg_n != b->reg_m + b->reg_n) return a->reg_m + a->reg_n < b->reg_m + b->reg_n;
  if (a->vec != b->vec) return a->vec > b->vec;
  return a->lanes_n > b->lanes_n;
}

tl_layout tl_layout_fma_acc(const int32_t *shape, int32_t threads) {
  int32_t warps = threads / 32;
  fma_plan best = {.registers = INT64_MAX};
  for (int32_t vec = 4; vec >= 1; vec /= 2) {
    if (vec > shape[1]) continue;
    for (int32_t lanes_n = 32; lanes_n >= 1; lanes_n /= 2) {
      for (int32_t warps_n = 1; warps_n <= warps; warps_n++) {
        if (warps % warps_n != 0) continue;
        fma_plan plan = {.vec = vec, .lanes_n = lanes_n, .warps_n = warps_n};
        plan.reg_m = ceil_div(shape[0], 32 / lanes_n * (warps / warps_n));
        plan.reg_n = vec * ceil_div(shape[1], vec * lanes_n * warps_n);
        plan.registers = (int64_t)plan.reg_m * plan.reg_n;
        if (is_better_fma_plan(&plan, &best)) best = plan;
      }
    }
  }
  tl_layout layout = new_layout(shape, 2);
  int32_t lanes_m = 32 / best.lanes_n, warps_m = warps / best.warps_n;
  add_mode(&layout, TL_AXIS_REGISTER, best.vec, 1, 1);
  add_mode(&layout, TL_AXIS_LANE, best.lanes_n, 1, best.vec);
  add_mode(&layout, TL_AXIS_LANE, lanes_m, 0, 1);
  add_mode(&layout, TL_AXIS_WARP, best.warps_n, 1, best.vec * best.lanes_n);
  add_mode(&layout, TL_AXIS_WARP, warps_m, 0, lanes_m);
  add_mode(&layout, TL_AXIS_REGISTER, best.reg_n / best.vec, 1, best.vec * best.lanes_n * best.warps_n);
  add_mode(&layout, TL_AXIS_REGISTER, best.reg_m, 0, lanes_m * warps_m);
  return layout;
}
