// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// canonicalize: the same program with less in it.
//
//   %a = add %x, 0   %b = mod %i, 128   if true { … }   →   %x, %i (where 0 <= %i < 128), the body of the branch
//
// Folds constants, simplifies index arithmetic with ranges and divisibility, decides comparisons that are provable,
// merges equal pure ops, drops dead code, decided branches and empty loops, and unrolls what the author asked for
// completely. Needs nothing; keeps effects and their order.
#include "passes/tile/canonicalize.h"

#include <stdlib.h>

#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"

// ---- simplification of single ops

// Ops that the builder made before `op` and that nothing uses now.
static void drop_unused_before(tl_op *op, const tl_op *first_kept) {
  while (op->prev && op->prev != first_kept) {
    tl_op *fresh = op->prev;
    bool used = false;
    for (uint32_t i = 0; i < fresh->num_results; i++) used |= tl_op_result(fresh, i)->uses != NULL;
    if (used) return;
    tl_op_erase(fresh);
  }
}

// in_bounds as comparisons of what is not proven: then a branch on it is a proof for the accesses inside.
static tl_value *expand_in_bounds(tl_builder *builder, const tl_op *op) {
  tl_value *buffer = tl_op_arg(op, TL_GROUP_IN_BOUNDS_buffer), *inside = NULL;
  for (int32_t d = 0; d < buffer->type->rank; d++) {
    tl_value *index = tl_op_group_at(op, TL_GROUP_IN_BOUNDS_index, (uint32_t)d);
    tl_value *limit = tl_buffer_dim_value(buffer, d);
    if (!limit) limit = tl_build_index(builder, buffer->type->dims[d]);
    tl_value *tests[2] = {NULL, NULL};
    if (!tl_prove_nonnegative(index)) tests[0] = tl_build_cmp(builder, TL_CMP_GE, index, tl_build_index(builder, 0));
    if (!tl_prove_lt(index, limit)) tests[1] = tl_build_cmp(builder, TL_CMP_LT, index, limit);
    for (int t = 0; t < 2; t++) {
      if (tests[t]) inside = inside ? tl_build_binary(builder, TL_OP_AND, inside, tests[t]) : tests[t];
    }
  }
  return inside ? inside : tl_build_bool(builder, true);
}

static bool simplify_op(tl_pass_context *context, tl_op *op) {
  if (op->num_results != 1 || op->num_regions > 0 || op->code == TL_OP_CONST) return false;
  int flags = tl_op_info_of(op->code)->flags;
  if (!(flags & TL_OPFLAG_PURE) || (flags & TL_OPFLAG_ONCE)) return false;
  tl_builder builder;
  tl_builder_before(&builder, context->module, op);
  builder.loc = op->loc;
  const tl_op *first_kept = op->prev;
  tl_value *result = tl_op_result(op, 0);
  tl_value *simple = tl_fold_op(&builder, op);
  if (!simple && op->code == TL_OP_IN_BOUNDS) simple = expand_in_bounds(&builder, op);
  if (!simple && result->type->kind == TL_TYPE_INDEX) {
    simple = tl_canonicalize_quotient(&builder, op);
  }
  if (!simple || simple == result) {
    drop_unused_before(op, first_kept);
    return false;
  }
  if (!simple->name && simple->def && simple->def->prev != NULL) simple->name = result->name;
  tl_value_replace_uses(result, simple);
  tl_op_erase(op);
  return true;
}

static bool simplify_block(tl_pass_context *context, tl_block *block) {
  bool changed = false;
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) changed |= simplify_block(context, op->regions[r]);
    }
    changed |= simplify_op(context, op);
  }
  return changed;
}

// ---- equal ops

// The pure ops of a block so far, by hash of what must agree. Lookups only, so that the order of addresses has no
// effect.
typedef struct common_scope {
  const struct common_scope *outer;
  tl_op **slots;  // Owned. Open addressing.
  size_t num_slots, num_ops;
} common_scope;

static bool same_op(const tl_op *a, const tl_op *b) {
  if (a->code != b->code || a->num_operands != b->num_operands || a->num_attrs != b->num_attrs ||
      a->num_results != b->num_results || tl_op_result(a, 0)->type != tl_op_result(b, 0)->type) {
    return false;
  }
  for (uint32_t i = 0; i < a->num_operands; i++) {
    if (tl_op_operand(a, i) != tl_op_operand(b, i)) return false;
  }
  int groups = tl_op_info_of(a->code)->num_groups;
  for (int g = 0; g < groups; g++) {
    if (a->group_sizes[g] != b->group_sizes[g]) return false;
  }
  return tl_op_same_attrs(a, b);
}

static bool may_share(const tl_op *op) {
  int flags = tl_op_info_of(op->code)->flags;
  return (flags & TL_OPFLAG_PURE) && !(flags & TL_OPFLAG_ONCE) && op->num_results == 1 && op->num_regions == 0;
}

static size_t hash_op(const tl_op *op) {
  uint64_t hash = (uint64_t)op->code * 0x9E3779B97F4A7C15u;
  for (uint32_t i = 0; i < op->num_operands; i++) {
    hash = (hash ^ ((uintptr_t)tl_op_operand(op, i) >> 4)) * 0x9E3779B97F4A7C15u;
  }
  const tl_attr *value = op->code == TL_OP_CONST ? tl_op_attr(op, TL_ATTR_VALUE) : NULL;
  if (value) hash = (hash ^ (uint64_t)value->v.i) * 0x9E3779B97F4A7C15u;
  return (size_t)(hash >> 20);
}

static tl_op *find_equal(const common_scope *scope, const tl_op *op) {
  size_t hash = hash_op(op);
  for (; scope; scope = scope->outer) {
    if (scope->num_slots == 0) continue;
    for (size_t slot = hash % scope->num_slots; scope->slots[slot]; slot = (slot + 1) % scope->num_slots) {
      if (same_op(scope->slots[slot], op)) return scope->slots[slot];
    }
  }
  return NULL;
}

static void add_op(common_scope *scope, tl_op *op) {
  if (scope->num_ops * 2 >= scope->num_slots) {
    common_scope grown = {.num_slots = scope->num_slots ? scope->num_slots * 2 : 64};
    grown.slots = tl_xcalloc(grown.num_slots, sizeof *grown.slots);
    for (size_t i = 0; i < scope->num_slots; i++) {
      if (scope->slots[i]) add_op(&grown, scope->slots[i]);
    }
    free(scope->slots);
    scope->slots = grown.slots;
    scope->num_slots = grown.num_slots;
  }
  size_t slot = hash_op(op) % scope->num_slots;
  while (scope->slots[slot]) slot = (slot + 1) % scope->num_slots;
  scope->slots[slot] = op;
  scope->num_ops++;
}

static bool share_block(tl_block *block, const common_scope *outer) {
  common_scope scope = {.outer = outer};
  bool changed = false;
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) changed |= share_block(op->regions[r], &scope);
    }
    if (!may_share(op)) continue;
    tl_op *equal = find_equal(&scope, op);
    if (!equal) {
      add_op(&scope, op);
      continue;
    }
    tl_value *kept = tl_op_result(equal, 0);
    if (!kept->name) kept->name = tl_op_result(op, 0)->name;
    tl_value_replace_uses(tl_op_result(op, 0), kept);
    tl_op_erase(op);
    changed = true;
  }
  free(scope.slots);
  return changed;
}

// One op for equal pure ops of a block and the blocks around it.
static bool canonicalize_common(tl_pass_context *context, tl_block *block) {
  (void)context;
  return share_block(block, NULL);
}

// ---- dead ops

static bool has_uses(const tl_op *op) {
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (tl_op_result(op, i)->uses) return true;
  }
  return false;
}

// Removes pure ops and loads without uses.
static bool canonicalize_dead(tl_block *block) {
  bool changed = false;
  for (tl_op *op = block->last, *prev; op; op = prev) {
    prev = op->prev;
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) changed |= canonicalize_dead(op->regions[r]);
    }
    int flags = tl_op_info_of(op->code)->flags;
    bool removable = ((flags & TL_OPFLAG_PURE) && !(flags & TL_OPFLAG_ONCE)) || op->code == TL_OP_LOAD;
    if (!removable || op->num_regions > 0 || has_uses(op)) continue;
    tl_op_erase(op);
    changed = true;
  }
  return changed;
}

enum { MAX_ROUNDS = 8 };

void tl_canonicalize_pure(tl_pass_context *context, tl_block *block) {
  bool changed = true;
  for (int round = 0; changed && round < MAX_ROUNDS; round++) {
    changed = simplify_block(context, block);
    changed |= canonicalize_common(context, block);
    changed |= canonicalize_dead(block);
  }
}

// Rounds until nothing changes; each kind of change makes room for the others.
tl_status tl_pass_canonicalize(tl_pass_context *context) {
  for (tl_op *kernel = context->module->body->first; kernel; kernel = kernel->next) {
    if (kernel->code != TL_OP_KERNEL) continue;
    tl_block *body = kernel->regions[0];
    bool changed = true;
    for (int round = 0; changed && round < MAX_ROUNDS; round++) {
      changed = simplify_block(context, body);
      changed |= tl_canonicalize_control(context, body);
      changed |= canonicalize_common(context, body);
      changed |= canonicalize_dead(body);
    }
    tl_canonicalize_validate_unrolled(context, kernel);
    tl_canonicalize_validate_statements(context, kernel);
  }
  return TL_OK;
}
