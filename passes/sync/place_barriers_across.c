// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arrivals at the barriers of other blocks of the cluster.
//
// Who arrives there releases to the cluster what its threads did: a fence of all memory of the GPU for each arrival,
// which in front of every slot of a product takes half of its speed. Where threads did nothing that another block might
// see, and products that have ended read all that is handed on, nothing is left to order (the matrix unit has read, and
// no write that comes later changes that), and the arrival need not order anything beyond its block.
#include "passes/sync/place_barriers_internal.h"

typedef struct across_search {
  tl_module *module;
  tl_op *kernel;
  TL_VEC(const tl_value *) shared;  // tiles that other blocks fill or read
} across_search;

static bool is_wgmma(const tl_op *op) {
  const tl_instruction *inst = op->code == TL_OP_GEMM ? tl_op_instruction(op) : NULL;
  return inst && inst->family == TL_FAMILY_WGMMA;
}

// What runs before: a condition's body is behind what stands before the condition.
static const tl_op *before(const tl_op *op) {
  while (!op->prev && op->parent && op->parent->parent && op->parent->parent->code == TL_OP_IF) op = op->parent->parent;
  return op->prev;
}

// Whether it stands behind a product that has ended, with no access of the threads between: a proxy fence would stand
// there, too.
static bool is_behind_products(const tl_op *arrival) {
  const int stops = TL_OPFLAG_READ | TL_OPFLAG_WRITE | TL_OPFLAG_SYNC | TL_OPFLAG_CONTROL;
  for (const tl_op *op = before(arrival); op; op = before(op)) {
    if (op->code == TL_OP_GEMM_WAIT) return true;
    if (op->code == TL_OP_GEMM) return is_wgmma(op) && !tl_op_has(op, TL_ATTR_ASYNC);
    if (op->code != TL_OP_MBARRIER_ARRIVE && tl_op_info_of(op->code)->flags & stops) return false;
  }
  return false;
}

static void find_shared(tl_op *op, void *user) {
  across_search *search = user;
  const tl_value *root = NULL;
  if (op->code == TL_OP_PEER_TILE) root = tl_effect_root(tl_op_result(op, 0), NULL, NULL);
  if (op->code == TL_OP_COPY && tl_op_has(op, TL_ATTR_ACROSS))
    root = tl_effect_root(tl_op_arg(op, TL_GROUP_COPY_dst), NULL, NULL);
  if (root) tl_vec_push(&search->shared, root);
}

static bool is_read_and_written(const tl_op *kernel, const tl_value *tensor) {
  return tl_effects_read((tl_op *)kernel, tensor) && tl_effects_write((tl_op *)kernel, tensor);
}

// Whether another block may have to see the access, or that it is over: of a tile that blocks share, or of a tensor
// that the kernel both reads and writes. What the engine brings has come before the product that reads it.
static bool is_seen_across(const across_search *search, const tl_effect *effect) {
  const tl_op *op = effect->op;
  if (effect->kind == TL_EFFECT_READ && is_wgmma(op)) return false;
  if (effect->kind == TL_EFFECT_WRITE && op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_barrier)) return false;
  if (effect->root->type->scope == TL_SCOPE_GLOBAL)
    return effect->kind == TL_EFFECT_ATOMIC || is_read_and_written(search->kernel, effect->root);
  for (size_t i = 0; i < search->shared.len; i++)
    if (search->shared.items[i] == effect->root) return true;
  return false;
}

static void mark(tl_op *op, void *user) {
  const across_search *search = user;
  if (op->code == TL_OP_MBARRIER_ARRIVE && tl_op_has(op, TL_ATTR_ACROSS) && is_behind_products(op))
    tl_op_set_unit(search->module, op, TL_ATTR_FINISHED);
}

// Of all roles: who arrives hands on what others handed to him.
void tl_arrivals_mark_finished(tl_module *module, tl_op *kernel) {
  across_search search = {.module = module, .kernel = kernel};
  tl_effect_list effects = {0};
  bool is_seen = false;
  tl_walk(kernel, find_shared, &search);
  if (search.shared.len > 0) tl_effects_inside(kernel, &effects);
  for (size_t i = 0; i < effects.len; i++) is_seen |= is_seen_across(&search, &effects.items[i]);
  if (search.shared.len > 0 && !is_seen) tl_walk(kernel, mark, &search);
  tl_vec_fini(&effects);
  tl_vec_fini(&search.shared);
}
