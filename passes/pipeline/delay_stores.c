// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// delay-stores: stores by the copy engine overlap what follows them.
//
//   for … {tiles} {                             for … {tiles} {
//     (loop of a product)                         (loop of a product)
//     tile_store %acc -> %c                       bulk_wait {pending = 0, read}     the last tile's store has read %c
//     fence_proxy; barrier                        tile_store %acc -> %c
//     copy %c -> %C map(…)                  ⇒     fence_proxy; barrier
//     bulk_commit                                 copy %c -> %C map(…)
//     bulk_wait {pending = 0, read}               bulk_commit
//   }                                           }
//                                               bulk_wait {pending = 0, read}
//
// select-copies waits for a store where it stands. A wait until the engine has read a tile goes down to the next
// statement that writes the tile, past the end of a loop to the next iteration's (and once behind the loop), as groups
// end in the order of their commits: it counts those that it passes. Waits until the engine has written stay.
//
// A tile that a store still reads shares its memory with less: only where all tiles fit beside each other, in as many
// blocks on a multiprocessor as were planned.
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"
#include "passes/schedule/choose_schedule.h"

enum { MAX_PENDING = 64 };

typedef struct delaying {
  tl_module *module;
  TL_VEC(tl_op *) waits;
} delaying;

static bool is_engine_store(const tl_op *op) {
  return op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map) &&
         tl_buffer_is_shared(tl_op_arg(op, TL_GROUP_COPY_src));
}

static bool holds(const tl_op *op, tl_opcode code) {
  if (op->code == code) return true;
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next)
      if (holds(inner, code)) return true;
  return false;
}

// The tile that the wait is for, where it stands directly behind its store; else NULL.
static tl_value *stored_tile(const tl_op *wait) {
  const tl_op *commit = wait->prev, *copy = commit ? commit->prev : NULL;
  if (!commit || commit->code != TL_OP_BULK_COMMIT || !copy || !is_engine_store(copy)) return NULL;
  return tl_effect_root(tl_op_arg(copy, TL_GROUP_COPY_src), NULL, NULL);
}

// Where a wait for `tile` that may go down from before `op` has to be: before the op that is returned; NULL: the
// block's end, before its terminator. Adds the commits on the way.
static tl_op *find_place(tl_op *op, tl_value *tile, int64_t *pending) {
  for (; op; op = op->next) {
    bool is_end = (tl_op_info_of(op->code)->flags & TL_OPFLAG_TERMINATOR) != 0;
    if (is_end || tl_effects_write(op, tile)) return is_end ? NULL : op;
    if (op->code == TL_OP_BULK_COMMIT) {
      (*pending)++;
      continue;
    }
    if (holds(op, TL_OP_BULK_COMMIT) || *pending >= MAX_PENDING) return op;
  }
  return NULL;
}

static tl_op *build_wait(delaying *self, tl_block *block, tl_op *before, tl_loc loc, int64_t pending) {
  tl_builder builder;
  tl_op *end = tl_block_terminator(block);
  if (!before) before = end;
  // The barrier that lets the others write serves the wait, too.
  while (before && before != end && before->prev && before->prev->code == TL_OP_BARRIER) before = before->prev;
  if (before)
    tl_builder_before(&builder, self->module, before);
  else
    tl_builder_at_end(&builder, self->module, block);
  builder.loc = loc;
  tl_op *wait = tl_build(&builder, TL_OP_BULK_WAIT, NULL, NULL, 0);
  tl_op_set_int(self->module, wait, TL_ATTR_PENDING, pending);
  tl_op_set_unit(self->module, wait, TL_ATTR_READ);
  return wait;
}

static void place_wait(delaying *self, tl_block *block, tl_op *from, tl_value *tile, tl_loc loc, int64_t pending) {
  tl_op *place = find_place(from, tile, &pending), *loop = block->parent;
  bool goes_round = !place && loop->code == TL_OP_FOR && !tl_op_has(loop, TL_ATTR_WHILE);
  if (!goes_round) {
    build_wait(self, block, place, loc, pending);
    return;
  }
  int64_t around = pending;
  tl_op *first = find_place(block->first, tile, &around);
  if (!first || around >= MAX_PENDING) {
    build_wait(self, block, NULL, loc, pending);
    return;
  }
  build_wait(self, block, first, loc, around);
  place_wait(self, loop->parent, loop->next, tile, loc, pending);
}

static void collect(tl_op *op, void *user) {
  delaying *self = user;
  if (op->code == TL_OP_BULK_WAIT && tl_op_has(op, TL_ATTR_READ) && stored_tile(op)) tl_vec_push(&self->waits, op);
}

// Whether `other` has ended all that `wait` would wait for, `commits` groups before or (0) after it.
static bool covers(const tl_op *other, const tl_op *wait, int64_t commits) {
  return other && other->code == TL_OP_BULK_WAIT &&
         tl_op_int(other, TL_ATTR_PENDING, 0) + commits <= tl_op_int(wait, TL_ATTR_PENDING, 0) &&
         (tl_op_has(wait, TL_ATTR_READ) || !tl_op_has(other, TL_ATTR_READ));
}

static bool is_needless(const tl_op *wait) {
  int64_t commits = 0;
  if (covers(wait->next, wait, 0)) return true;
  for (const tl_op *op = wait->prev; op; op = op->prev) {
    commits += op->code == TL_OP_BULK_COMMIT;
    if (op->code == TL_OP_BULK_WAIT) return covers(op, wait, commits);
    if (op->num_regions > 0 && holds(op, TL_OP_BULK_COMMIT)) return false;
  }
  return false;
}

static void drop_needless(tl_op *op, void *user) {
  (void)user;
  if (op->code == TL_OP_BULK_WAIT && is_needless(op)) tl_op_erase(op);
}

tl_status tl_pass_delay_stores(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code != TL_OP_KERNEL || !context->target) continue;
    if (!tl_schedule_fits_apart(context->target, op, tl_op_int(op, TL_ATTR_MIN_BLOCKS, 1))) continue;
    delaying self = {.module = context->module};
    tl_walk(op, collect, &self);
    for (size_t i = self.waits.len; i-- > 0;) {
      tl_op *wait = self.waits.items[i];
      tl_value *tile = stored_tile(wait);
      place_wait(&self, wait->parent, wait->next, tile, wait->loc, tl_op_int(wait, TL_ATTR_PENDING, 0));
      tl_op_erase(wait);
    }
    tl_walk(op, drop_needless, NULL);
    tl_vec_fini(&self.waits);
  }
  return TL_OK;
}
