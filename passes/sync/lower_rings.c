// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower-rings: rings become groups of cp.async copies and stage counters.
//
//   %w = ring_wait(%r, %k) pending 1          async_wait pending 1
//   %t = ring_tile(%w, %A_s)              ⇒   %t = stage_tile(%A_s, %stage)
//   ring_commit(%r, %token)                   async_commit(%token)
//   ring_release(%w)                          (nothing: place-barriers made the barriers)
//
// A thread's groups complete in the order of their commits, whichever ring they belong to (PTX ISA,
// "cp.async.wait_group"), so a wait counts the commits of all rings between the slot's own commit and the wait: the
// fewest over all paths. The stage of iteration k is k mod depth: a constant in the prologue; in the loop a carried
// counter that wraps by compare and select. No ring op is left. Rings whose sides meet at mbarriers come first
// (lower_rings_barriers.c).
#include <limits.h>

#include "ir/index/affine.h"
#include "passes/analysis/dependence.h"
#include "passes/manager/passes.h"
#include "passes/sync/lower_rings.h"
#include "passes/tile/loop_rewrite.h"
#include "support/status.h"

// ---- counting groups

// A walk backwards from a wait to the commit that it waits for.
typedef struct commit_walk {
  const tl_value *ring;  // counts this ring's commits down; NULL: look for `target`
  const tl_op *target;
  int budget;  // ops left to visit, so that the walk ends on any input
} commit_walk;

enum { WALK_BUDGET = 200000, MAX_PENDING = INT_MAX };

static bool holds_commit(const tl_op *op, const tl_value *ring) {
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) {
      if (inner->code == TL_OP_ASYNC_COMMIT && ring == NULL) return true;
      if (inner->code == TL_OP_RING_COMMIT && (ring == NULL || tl_op_operand(inner, 0) == ring)) return true;
      if (holds_commit(inner, ring)) return true;
    }
  }
  return false;
}

static int smaller(int a, int b) {
  return a < b ? a : b;
}

// Fewest commits after the one looked for, walking back from before `op` (NULL: from the start of `block`); `need`
// commits of the ring are still to be met, `count` commits were passed.
static int walk_back(commit_walk *walk, const tl_block *block, const tl_op *op, int64_t need, int count) {
  for (; op; op = op->prev) {
    if (--walk->budget < 0) return MAX_PENDING;
    if (op == walk->target) return count;
    if (op->code == TL_OP_ASYNC_COMMIT) {
      count++;
    } else if (op->code == TL_OP_RING_COMMIT) {
      if (tl_op_operand(op, 0) == walk->ring && --need == 0) return count;
      count++;
    } else if (op->code == TL_OP_IF && holds_commit(op, NULL)) {
      int least = MAX_PENDING;
      for (uint32_t r = 0; r < op->num_regions; r++) {
        least = smaller(least, walk_back(walk, op->regions[r], op->regions[r]->last, need, count));
      }
      return least;
    } else if (op->code == TL_OP_FOR && walk->ring && holds_commit(op, walk->ring)) {
      // A loop without commits of this ring only adds to the count: as if it did not run.
      int through = walk_back(walk, op->regions[0], op->regions[0]->last, need, count);
      int around = walk_back(walk, op->parent, op->prev, need, count);
      return smaller(through, around);
    }
  }
  const tl_op *parent = block->parent;
  if (parent == NULL || parent->code == TL_OP_KERNEL) return MAX_PENDING;
  int least = walk_back(walk, parent->parent, parent->prev, need, count);
  if (parent->code == TL_OP_FOR && walk->ring && holds_commit(parent, walk->ring)) {
    least = smaller(least, walk_back(walk, block, block->last, need, count));
  }
  return least;
}

static int64_t pending_groups(const tl_op *wait) {
  commit_walk walk = {.budget = WALK_BUDGET};
  int pending;
  if (wait->code == TL_OP_RING_WAIT) {
    walk.ring = tl_op_operand(wait, 0);
    pending = walk_back(&walk, wait->parent, wait->prev, tl_op_int(wait, TL_ATTR_PENDING, 0) + 1, 0);
  } else {
    // A wait for copies outside of rings: their commit is the nearest before it.
    for (const tl_op *op = wait->prev; op && !walk.target; op = op->prev) {
      if (op->code == TL_OP_ASYNC_COMMIT) walk.target = op;
    }
    if (walk.target == NULL) return tl_op_int(wait, TL_ATTR_PENDING, 0);
    pending = walk_back(&walk, wait->parent, wait->prev, 0, 0);
  }
  // Waiting for everything is always right; so it is where paths were left out.
  return pending == MAX_PENDING || walk.budget < 0 ? 0 : pending;
}

// ---- stages

// A stage counter carried by a loop: iteration i of the loop has (start + i) mod depth.
typedef struct stage_counter {
  tl_op *loop;
  int64_t depth;
  int64_t start;
  uint32_t arg;  // region argument
} stage_counter;

typedef struct lowering {
  tl_module *module;
  TL_VEC(stage_counter) counters;
} lowering;

static tl_value *counter_value(const stage_counter *counter) {
  return counter->loop->regions[0]->args[counter->arg];
}

static tl_value *next_stage(tl_builder *builder, tl_value *stage, int64_t depth) {
  tl_value *one = tl_build_index(builder, 1);
  if (depth == 2) return tl_build_binary(builder, TL_OP_SUB, one, stage);
  tl_value *next = tl_build_binary(builder, TL_OP_ADD, stage, one);
  tl_value *wraps = tl_build_cmp(builder, TL_CMP_EQ, next, tl_build_index(builder, depth));
  return tl_build_select(builder, wraps, tl_build_index(builder, 0), next);
}

static tl_value *find_counter(lowering *self, tl_op *loop, int64_t depth, int64_t start) {
  for (size_t i = 0; i < self->counters.len; i++) {
    const stage_counter *counter = &self->counters.items[i];
    if (counter->loop == loop && counter->depth == depth && counter->start == start) return counter_value(counter);
  }
  return NULL;
}

static tl_value *add_counter(lowering *self, tl_op *loop, int64_t depth, int64_t start) {
  tl_builder builder;
  tl_builder_before(&builder, self->module, loop);
  builder.loc = loop->loc;
  tl_value *init = tl_build_index(&builder, start);
  tl_op *fresh = tl_for_add_carried(self->module, loop, &init, 1);
  for (size_t i = 0; i < self->counters.len; i++) {
    if (self->counters.items[i].loop == loop) self->counters.items[i].loop = fresh;
  }
  stage_counter counter = {fresh, depth, start, fresh->regions[0]->num_args - 1};
  tl_vec_push(&self->counters, counter);
  tl_value *value = counter_value(&counter);
  value->name = tl_module_intern(self->module, TL_STR("stage"));
  tl_op *yield = tl_region_yield(self->module, fresh->regions[0], fresh->loc);
  tl_builder_before(&builder, self->module, yield);
  builder.loc = fresh->loc;
  tl_value *next = next_stage(&builder, value, depth);
  tl_yield_append(self->module, yield, &next, 1);
  return value;
}

// The loop whose induction variable, plus a constant, `k` is; NULL when it has another form.
static tl_op *counting_loop(tl_value *k, int64_t *out_first) {
  tl_affine affine = tl_affine_of(k);
  if (!affine.valid || affine.num_terms != 1 || affine.terms[0].coefficient != 1) return NULL;
  tl_value *symbol = affine.terms[0].symbol;
  if (symbol->def != NULL || symbol->index != 0) return NULL;
  tl_op *loop = symbol->block->parent;
  int64_t lower, step;
  if (loop->code != TL_OP_FOR || !tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_lower), &lower)) return NULL;
  if (!tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step) || step != 1) return NULL;
  *out_first = lower + affine.constant;
  return loop;
}

static tl_value *stage_of(lowering *self, tl_op *slot_op) {
  tl_value *k = tl_op_operand(slot_op, 1);
  int64_t depth = tl_op_int(tl_op_operand(slot_op, 0)->def, TL_ATTR_DEPTH, 1);
  tl_builder builder;
  tl_builder_before(&builder, self->module, slot_op);
  builder.loc = slot_op->loc;
  int64_t constant = 0;
  if (tl_value_const_int(k, &constant)) return tl_build_index(&builder, ((constant % depth) + depth) % depth);
  int64_t first = 0;
  tl_op *loop = counting_loop(k, &first);
  if (loop == NULL || !tl_op_is_inside(slot_op, loop))
    return tl_index_mod(&builder, k, tl_build_index(&builder, depth));
  int64_t start = ((first % depth) + depth) % depth;
  tl_value *stage = find_counter(self, loop, depth, start);
  return stage ? stage : add_counter(self, loop, depth, start);
}

// ---- rewriting

static void collect_ring_ops(tl_op *op, void *user) {
  tl_op_list *list = user;
  switch (op->code) {
    case TL_OP_RING:
    case TL_OP_RING_ACQUIRE:
    case TL_OP_RING_COMMIT:
    case TL_OP_RING_WAIT:
    case TL_OP_RING_RELEASE:
    case TL_OP_ASYNC_WAIT:
      tl_vec_push(list, op);
      break;
    default:
      break;
  }
}

static void lower_slot_tiles(lowering *self, tl_op *slot_op) {
  tl_value *slot = tl_op_result(slot_op, 0);
  int64_t depth = tl_op_int(tl_op_operand(slot_op, 0)->def, TL_ATTR_DEPTH, 1);
  bool has_tiles = false;
  for (const tl_use *use = slot->uses; use; use = use->next) has_tiles |= use->owner->code == TL_OP_RING_TILE;
  if (!has_tiles) return;
  tl_value *stage = depth > 1 ? stage_of(self, slot_op) : NULL;
  for (const tl_use *use = slot->uses, *next; use; use = next) {
    next = use->next;
    tl_op *part = use->owner;
    if (part->code != TL_OP_RING_TILE) continue;
    tl_value *tile = tl_op_arg(part, TL_GROUP_RING_TILE_tile);
    tl_value *with = tile;
    if (stage) {
      tl_builder builder;
      tl_builder_before(&builder, self->module, part);
      builder.loc = part->loc;
      tl_group groups[] = {TL_GROUP_OF(tile), TL_GROUP_OF(stage)};
      with = tl_op_result(tl_build(&builder, TL_OP_STAGE_TILE, groups, &tile->type, 1), 0);
      with->name = tl_op_result(part, 0)->name;
    }
    tl_value_replace_uses(tl_op_result(part, 0), with);
    tl_op_erase(part);
  }
}

static void lower_commit(lowering *self, tl_op *op) {
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  TL_VEC(tl_value *) tokens = {0};
  for (uint32_t i = 0; i < tl_op_group_len(op, TL_GROUP_RING_COMMIT_tokens); i++) {
    tl_vec_push(&tokens, tl_op_group_at(op, TL_GROUP_RING_COMMIT_tokens, i));
  }
  tl_group groups[] = {{tokens.items, (uint32_t)tokens.len}};
  tl_build(&builder, TL_OP_ASYNC_COMMIT, groups, NULL, 0);
  tl_vec_fini(&tokens);
}

// A wait directly before one that waits for no less.
static void drop_repeated(tl_op *op, void *user) {
  (void)user;
  if (op->code != TL_OP_ASYNC_WAIT || tl_op_has(op, TL_ATTR_BY_HAND)) return;
  const tl_op *next = op->next;
  while (next && next->num_regions == 0 && (tl_op_info_of(next->code)->flags & TL_OPFLAG_PURE)) next = next->next;
  bool covers = next && next->code == TL_OP_ASYNC_WAIT && !tl_op_has(next, TL_ATTR_BY_HAND) &&
                tl_op_int(next, TL_ATTR_PENDING, 0) <= tl_op_int(op, TL_ATTR_PENDING, 0);
  if (covers) tl_op_erase(op);
}

static void lower_kernel(tl_module *module, tl_op *kernel) {
  lowering self = {.module = module};
  tl_op_list ops = {0};
  tl_walk(kernel, collect_ring_ops, &ops);
  TL_VEC(int64_t) pending = {0};
  for (size_t i = 0; i < ops.len; i++) {
    tl_op *op = ops.items[i];
    bool waits = op->code == TL_OP_RING_WAIT || op->code == TL_OP_ASYNC_WAIT;
    // The author counts groups of his own, and stage-reads does; others between them only make the wait longer than
    // needed.
    bool is_counted = tl_op_has(op, TL_ATTR_BY_HAND) || tl_op_has(op, TL_ATTR_COUNTED);
    tl_vec_push(&pending, is_counted ? tl_op_int(op, TL_ATTR_PENDING, 0) : waits ? pending_groups(op) : 0);
  }
  for (size_t i = 0; i < ops.len; i++) {
    tl_op *op = ops.items[i];
    if (op->code == TL_OP_RING_WAIT || op->code == TL_OP_RING_ACQUIRE) lower_slot_tiles(&self, op);
    if (op->code == TL_OP_RING_COMMIT) lower_commit(&self, op);
    if (op->code == TL_OP_ASYNC_WAIT) tl_op_set_int(module, op, TL_ATTR_PENDING, pending.items[i]);
    if (op->code != TL_OP_RING_WAIT) continue;
    tl_builder builder;
    tl_builder_before(&builder, module, op);
    builder.loc = op->loc;
    tl_op *wait = tl_build(&builder, TL_OP_ASYNC_WAIT, NULL, NULL, 0);
    tl_op_set_int(module, wait, TL_ATTR_PENDING, pending.items[i]);
  }
  // Releases use slots, slots use rings.
  static const tl_opcode order[] = {TL_OP_RING_RELEASE, TL_OP_RING_COMMIT, TL_OP_RING_WAIT, TL_OP_RING_ACQUIRE,
                                    TL_OP_RING};
  for (size_t o = 0; o < sizeof(order) / sizeof(order[0]); o++) {
    for (size_t i = 0; i < ops.len; i++) {
      if (ops.items[i]->code == order[o]) tl_op_erase(ops.items[i]);
    }
  }
  tl_walk(kernel, drop_repeated, NULL);
  tl_vec_fini(&ops);
  tl_vec_fini(&pending);
  tl_vec_fini(&self.counters);
}

tl_status tl_pass_lower_rings(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code != TL_OP_KERNEL) continue;
    tl_lower_barrier_rings(context, op);
    lower_kernel(context->module, op);
  }
  return TL_OK;
}
