// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which copies go by the copy engine where their author does not say: those that fill operands of wgmma in a pipelined
// loop and, in kernels whose loads have warps of their own, in front of it, and stores of what it leaves; where every
// launch of the tensors has a tensor map.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"
#include "passes/schedule/cost.h"

static bool is_wgmma(const tl_op *op) {
  const tl_instruction *inst = op->code == TL_OP_GEMM ? tl_op_instruction(op) : NULL;
  return inst && inst->family == TL_FAMILY_WGMMA;
}

// Whether `op` is a product by wgmma that reads the tile, or names a part that only such read.
static bool is_matrix_operand(const tl_op *op, const tl_value *tile) {
  if (op->code == TL_OP_PART_TILE) {
    bool all = true;
    for (const tl_use *use = op->results[0].uses; use; use = use->next)
      all &= is_matrix_operand(use->owner, &op->results[0]);
    return all;
  }
  if (!is_wgmma(op)) return false;
  return tl_op_arg(op, TL_GROUP_GEMM_a) == tile || tl_op_arg(op, TL_GROUP_GEMM_b) == tile;
}

// Why the tile is more than an operand, or NULL. Threads that read what the engine wrote fence before it may write
// again: that pays where all of the loop's copies can go to warps of their own.
static const char *readers_obstacle(const tl_value *tile, bool in_roles) {
  bool is_read = false;
  for (const tl_use *use = tile->uses; use; use = use->next) {
    bool is_filled = (use->owner->code == TL_OP_COPY && tl_op_arg(use->owner, TL_GROUP_COPY_dst) == tile) ||
                     use->owner->code == TL_OP_STORE;
    if (is_filled) continue;
    if (!in_roles && !is_matrix_operand(use->owner, tile)) return "threads read its tile, not only wgmma";
    is_read = true;
  }
  return is_read ? NULL : "nothing reads its tile";
}

static tl_value *stride_value(const tl_value *tensor, int32_t d) {
  const tl_op *op = tensor->def;
  bool has = op && op->code == TL_OP_TENSOR && tl_op_group_len(op, TL_GROUP_TENSOR_strides) > (uint32_t)d;
  return has ? tl_op_group_at(op, TL_GROUP_TENSOR_strides, (uint32_t)d) : NULL;
}

// Why a launch that is good for threads may have no tensor map, or NULL: sizes are of 32 bits and strides positive.
static const char *tensor_obstacle(const tl_value *tensor) {
  for (int32_t d = 0; d < tensor->type->rank; d++) {
    tl_value *size = tl_buffer_dim_value(tensor, d), *stride = stride_value(tensor, d);
    tl_range sizes = size ? tl_value_range(size) : (tl_range){tensor->type->dims[d], tensor->type->dims[d]};
    if (sizes.hi > (int64_t)UINT32_MAX) return "a dim of the tensor may need more than 32 bits";
    if (stride && tl_value_range(stride).lo < 0) return "a stride of the tensor may be negative";
  }
  const tl_op *op = tensor->def;
  return op && op->code == TL_OP_VIEW ? tensor_obstacle(tl_op_arg(op, TL_GROUP_VIEW_buffer)) : NULL;
}

// Whether something else than the next product, or the next iteration, takes what the product gives.
static void find_awaited(tl_op *op, void *user) {
  bool *is_awaited = user;
  if (!is_wgmma(op)) return;
  const tl_use *use = tl_op_result(op, 0)->uses;
  bool is_handed_on = use && !use->next && (use->owner->code == TL_OP_YIELD || is_wgmma(use->owner));
  *is_awaited |= !is_handed_on;
}

// Why the thread that starts the copies would hold up the matrix unit, or NULL. It does so in front of the products of
// its iteration, unless they stay in flight: where its warpgroup is the only one of its multiprocessor nobody
// multiplies meanwhile. Measured on an H200: 150 clocks an iteration (linear attention with 32 blocks), 5 to 8 % of it.
static const char *loop_obstacle(const tl_op *copy) {
  enum { WARPGROUP_THREADS = 128 };
  const tl_op *kernel = tl_op_enclosing(copy, TL_OP_KERNEL);
  tl_op *loop = tl_op_enclosing(copy, TL_OP_FOR);
  bool is_awaited = false;
  if (tl_op_threads(kernel) / WARPGROUP_THREADS * tl_cost_blocks_at_once(kernel) > 1) return NULL;
  for (; loop; loop = tl_op_enclosing(loop, TL_OP_FOR)) tl_walk(loop, find_awaited, &is_awaited);
  return is_awaited ? "products that are waited for at once would wait for the thread that starts it, and no other "
                      "warpgroup multiplies meanwhile"
                    : NULL;
}

static void find_product(tl_op *op, void *user) {
  bool *found = user;
  *found |= is_wgmma(op);
}

// Whether warps of their own may bring the tiles of the kernel's loops, as far as the plan tells (assign-roles).
static bool may_have_roles(tl_op *kernel) {
  enum { WARPGROUP_THREADS = 128 };
  bool multiplies = false;
  tl_walk(kernel, find_product, &multiplies);
  return multiplies && tl_op_threads(kernel) >= 2 * WARPGROUP_THREADS && tl_cost_planned(kernel, "resident", 1) == 1;
}

// Why a load outside of pipelined loops, which threads do as well, is nothing for warps of their own, or NULL.
static const char *once_obstacle(const tl_op *copy) {
  if (!tl_copy_fills_once(copy)) return "it stands in no pipelined loop of several stages";
  return may_have_roles(tl_op_enclosing(copy, TL_OP_KERNEL)) ? NULL
                                                             : "it runs once, and no warps of their own start it";
}

// Why threads do a store as well, or NULL: one that ends a tile, whose successor computes meanwhile.
static const char *store_obstacle(const tl_op *copy) {
  if (copy->parent->parent->code != TL_OP_KERNEL) return "it is no store at the end of the kernel";
  if (!may_have_roles(copy->parent->parent)) return "several blocks share a multiprocessor, or one warpgroup computes";
  return tensor_obstacle(tl_op_arg(copy, TL_GROUP_COPY_dst));
}

static const char *load_obstacle(const tl_op *load, const tl_value *src, const tl_value *dst) {
  bool is_loaded = load->code == TL_OP_COPY && tl_is_in_pipeline(load);
  const char *obstacle = readers_obstacle(dst, is_loaded && may_have_roles(tl_op_enclosing(load, TL_OP_KERNEL)));
  if (!obstacle) obstacle = tensor_obstacle(src);
  return obstacle ? obstacle : loop_obstacle(load);
}

const char *tl_tma_gather_choice_obstacle(const tl_op *parallel, const tl_value *src, const tl_value *dst) {
  if (!tl_is_in_pipeline(parallel)) return "it stands in no pipelined loop of several stages";
  return load_obstacle(parallel, src, dst);
}

const char *tl_tma_choice_obstacle(tl_pass_context *context, const tl_op *copy) {
  if (!(context->target->features & TL_FEATURE_TMA)) return "the target has none";
  const tl_value *src = tl_op_arg(copy, TL_GROUP_COPY_src), *dst = tl_op_arg(copy, TL_GROUP_COPY_dst);
  if (tl_buffer_is_shared(src) && tl_buffer_is_global(dst)) return store_obstacle(copy);
  if (!tl_buffer_is_global(src) || !tl_buffer_is_shared(dst)) return "it does not go between global and shared memory";
  const char *obstacle = tl_is_in_pipeline(copy) ? NULL : once_obstacle(copy);
  return obstacle ? obstacle : load_obstacle(copy, src, dst);
}
