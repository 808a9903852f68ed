// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dependence analysis of pipelined loops.
//
// A write W of tile T may be issued ahead when
//   - what it needs is computable ahead: pure ops and loads of memory that the loop does not write, from the induction
//     variable and values of outside; the ifs around it likewise;
//   - its sources are not written in the loop;
//   - every writer of T in the loop is such a write, or one by threads that can be done ahead as well, and no two of
//     them touch one element in one iteration (tile_parts.h), unless threads write first;
//   - every read of T in the loop comes after writes of the same iteration that make up all it reads, on every path (so
//     no old content is used), and no write of the iteration comes after a read;
//   - reads of T outside of the loop see other writes (nothing reads what the loop left).
// Then T can have one copy per stage, and the iterations' copies do not disturb each other.
#include "passes/analysis/dependence.h"

#include "passes/analysis/memory_access.h"
#include "passes/analysis/tile_parts.h"

bool tl_op_list_has(const tl_op_list *list, const tl_op *op) {
  for (size_t i = 0; i < list->len; i++) {
    if (list->items[i] == op) return true;
  }
  return false;
}

tl_op *tl_op_in_block(tl_op *op, const tl_block *block) {
  while (op && op->parent != block) op = op->parent ? op->parent->parent : NULL;
  return op;
}

static bool comes_before(const tl_op *a, const tl_op *b) {
  for (const tl_op *op = a->next; op; op = op->next) {
    if (op == b) return true;
  }
  return false;
}

bool tl_op_may_follow(tl_op *a, tl_op *b) {
  for (tl_block *block = a->parent; block; block = block->parent ? block->parent->parent : NULL) {
    tl_op *in_a = tl_op_in_block(a, block);
    tl_op *in_b = tl_op_in_block(b, block);
    if (in_b == NULL) {
      // Not in this region; if a sibling region of the same if holds it, only one of the two runs.
      if (block->parent && block->parent->code == TL_OP_IF && tl_op_is_inside(b, block->parent)) return false;
      continue;
    }
    return in_a == in_b || comes_before(in_a, in_b);
  }
  return true;
}

// ---- candidates

// The shared tile that it writes: the alloc's value; NULL when it writes through a view or several buffers.
static tl_value *async_destination(tl_op *op) {
  tl_effect_list effects = {0};
  tl_effects_inside(op, &effects);
  tl_value *tile = NULL;
  bool single = true;
  for (size_t i = 0; i < effects.len; i++) {
    const tl_effect *effect = &effects.items[i];
    if (effect->kind == TL_EFFECT_READ) continue;
    if (tile && tile != effect->root) single = false;
    tile = effect->root;
    if (effect->buffer != effect->root || effect->kind == TL_EFFECT_ATOMIC) single = false;
  }
  tl_vec_fini(&effects);
  if (!single || tile == NULL || tile->type->scope != TL_SCOPE_SHARED) return NULL;
  return tile->def && tile->def->code == TL_OP_ALLOC ? tile : NULL;
}

bool tl_is_async_candidate(const tl_op *op) {
  if (op->code != TL_OP_COPY && op->code != TL_OP_PARALLEL) return false;
  int64_t via = tl_op_int(op, TL_ATTR_VIA, TL_VIA_AUTO);
  bool by_engine = via == TL_VIA_TMA && op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map) &&
                   !tl_op_arg(op, TL_GROUP_COPY_barrier) &&
                   tl_op_arg(op, TL_GROUP_COPY_src)->type->scope == TL_SCOPE_GLOBAL;
  return (via == TL_VIA_CP_ASYNC || by_engine) && !tl_op_has(op, TL_ATTR_ASYNC);
}

// Whether one run of the op writes every element of its tile.
static bool covers_tile(tl_op *op, const tl_value *tile) {
  tl_part whole = tl_part_whole(op, tile);
  tl_part_list parts = {0};
  bool covers = tl_parts_written(op, tile, op->parent, &parts) && tl_parts_cover(&parts, &whole, tile->type->rank);
  tl_vec_fini(&parts);
  return covers;
}

// ---- what can be computed ahead

static const char *op_blocks(const tl_op *loop, tl_op *op);

// Why the value cannot be had for a later iteration; NULL when it can.
static const char *value_blocks(const tl_op *loop, const tl_value *value, const tl_op *within) {
  tl_op *def = value->def ? value->def : value->block->parent;
  if (def == NULL || !tl_op_is_inside(def, loop)) return NULL;
  if (within && def != within && tl_op_is_inside(def, within)) return NULL;
  if (value->def == NULL) {
    if (def == within) return NULL;
    if (def->code == TL_OP_FOR && value->index > 0) return "it depends on a value carried from iteration to iteration";
    return def == loop || tl_constant_trips(def) >= 0 ? NULL : "it depends on an index of an inner loop";
  }
  return op_blocks(loop, def);
}

static void find_acquire(tl_op *op, void *user) {
  int64_t order = tl_op_int(op, TL_ATTR_MEMORY_ORDER, TL_MEMORY_ORDER_RELAXED);
  *(bool *)user |= op->code == TL_OP_WAIT_UNTIL || order == TL_MEMORY_ORDER_ACQUIRE || order == TL_MEMORY_ORDER_ACQ_REL;
}

// Whether the loop waits for other blocks, and those may write the buffer.
static bool may_change(const tl_op *loop, const tl_value *root) {
  if (root->type->scope != TL_SCOPE_GLOBAL || !root->def) return false;
  if (tl_op_int(root->def, TL_ATTR_ACCESS, TL_ACCESS_INOUT) == TL_ACCESS_IN) return false;
  bool acquires = false;
  tl_walk((tl_op *)loop, find_acquire, &acquires);
  return acquires;
}

static const char *op_blocks(const tl_op *loop, tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  if (op->code == TL_OP_LOAD) {
    tl_value *root = tl_effect_root(tl_op_arg(op, TL_GROUP_LOAD_buffer), NULL, NULL);
    if (tl_effects_write((tl_op *)loop, root)) return "it depends on memory that the loop writes";
    if (may_change(loop, root)) return "it depends on memory that other blocks write while the loop waits for them";
  } else if (!(info->flags & TL_OPFLAG_PURE) || op->num_regions > 0) {
    return "it depends on a result of the loop's own statements";
  }
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const char *why = value_blocks(loop, tl_op_operand(op, i), NULL);
    if (why) return why;
  }
  return NULL;
}

// Operands of `op` and of everything inside it.
static const char *operands_block(const tl_op *loop, tl_op *op, const tl_op *within) {
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const char *why = value_blocks(loop, tl_op_operand(op, i), within);
    if (why) return why;
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (tl_op *inner = op->regions[r]->first; inner; inner = inner->next) {
      const char *why = operands_block(loop, inner, within);
      if (why) return why;
    }
  }
  return NULL;
}

static const char *own_reason(tl_op *loop, tl_op *op, const tl_value *tile) {
  if (tile == NULL) return "it does not write one shared tile directly";
  if (op->num_results > 0) return "it also makes a tile value";
  for (tl_op *outer = op->parent->parent; outer != loop; outer = outer->parent->parent) {
    if (outer->code == TL_OP_FOR && tl_constant_trips(outer) >= 0) continue;
    if (outer->code != TL_OP_IF) return "it stands in an inner loop";
    const char *why = value_blocks(loop, tl_op_arg(outer, TL_GROUP_IF_condition), NULL);
    if (why) return why;
  }
  const char *why = operands_block(loop, op, op);
  if (why) return why;
  tl_effect_list effects = {0};
  tl_effects_inside(op, &effects);
  for (size_t i = 0; i < effects.len && !why; i++) {
    const tl_effect *effect = &effects.items[i];
    if (effect->kind != TL_EFFECT_READ) continue;
    if (tl_effects_write(loop, effect->root)) why = "the loop also writes its source";
    if (may_change(loop, effect->root)) why = "the loop waits for other blocks, which may write its source";
  }
  tl_vec_fini(&effects);
  return why;
}

// ---- reads outside of the loop

static bool defines_tile(tl_op *op, const tl_value *tile, const tl_op_list *writers);

static bool region_defines(tl_block *block, const tl_value *tile, const tl_op_list *writers) {
  for (tl_op *op = block->first; op; op = op->next) {
    if (defines_tile(op, tile, writers)) return true;
  }
  return false;
}

// Whether running `op` surely writes the whole tile.
static bool defines_tile(tl_op *op, const tl_value *tile, const tl_op_list *writers) {
  if (tl_op_list_has(writers, op)) return true;
  if (op->code != TL_OP_IF) return false;
  return region_defines(op->regions[0], tile, writers) && region_defines(op->regions[1], tile, writers);
}

// Whether a read outside of the loop may see what the loop wrote: unless a whole write lies between.
static bool sees_loop(tl_op *loop, tl_op *read, const tl_value *tile, const tl_op_list *covering) {
  for (tl_op *op = read; op; op = op->parent ? op->parent->parent : NULL) {
    // Both inside `op`: the loop may run after every write that comes before `op`.
    if (op != read && tl_op_is_inside(loop, op) && op->code != TL_OP_KERNEL) {
      bool before_read = tl_op_may_follow(loop, read);
      if (before_read || tl_op_enclosing(read, TL_OP_FOR)) return true;
    }
    for (tl_op *before = op->prev; before; before = before->prev) {
      if (defines_tile(before, tile, covering)) return false;
      if (tl_op_is_inside(loop, before)) return true;
    }
    if (op->code == TL_OP_KERNEL) break;
  }
  return false;  // the loop cannot come before the read
}

// ---- per tile

typedef struct tile_uses {
  tl_part_list reads;   // in the loop
  tl_op_list writers;   // in the loop
  tl_op_list covering;  // whole writes outside of the loop
  tl_op_list outside;   // readers outside of the loop
} tile_uses;

static void collect_uses(tl_op *loop, const tl_value *tile, tile_uses *uses) {
  tl_op *kernel = tl_op_enclosing(loop, TL_OP_KERNEL);
  tl_effect_list effects = {0};
  tl_effects_inside(kernel, &effects);
  for (size_t i = 0; i < effects.len; i++) {
    const tl_effect *effect = &effects.items[i];
    if (effect->root != tile) continue;
    // A store belongs to the parallel around it: that is what runs as a whole.
    tl_op *parallel = tl_op_enclosing(effect->op, TL_OP_PARALLEL);
    tl_op *op = parallel ? parallel : effect->op;
    bool inside = tl_op_is_inside(op, loop);
    bool reads = effect->kind != TL_EFFECT_WRITE;
    bool writes = effect->kind != TL_EFFECT_READ;
    if (reads && inside) tl_vec_push(&uses->reads, tl_part_read(effect, op));
    if (reads && !inside) tl_vec_push(&uses->outside, op);
    if (writes && inside && !tl_op_list_has(&uses->writers, op)) tl_vec_push(&uses->writers, op);
    if (writes && !inside && effect->buffer == tile && covers_tile(op, tile)) tl_vec_push(&uses->covering, op);
  }
  tl_vec_fini(&effects);
}

static void fini_uses(tile_uses *uses) {
  tl_vec_fini(&uses->reads);
  tl_vec_fini(&uses->writers);
  tl_vec_fini(&uses->covering);
  tl_vec_fini(&uses->outside);
}

static tl_producer *producer_of(const tl_dependence *dependence, const tl_op *op) {
  for (size_t i = 0; i < dependence->producers.len; i++) {
    if (dependence->producers.items[i].op == op) return &dependence->producers.items[i];
  }
  return NULL;
}

static const char *const another_writes = "another statement of the loop writes its tile too";

// Two writes of one iteration that may touch one element. Asynchronous ones land in any order; what threads write
// before may be written over behind a barrier, between statements of the loop.
static const char *order_writes(tl_dependence *dependence, const tl_part *one, const tl_part *other,
                                tl_op **out_blame) {
  tl_op *a = one->op, *b = other->op;
  if (a != b && tl_parts_exclude(one, other, dependence->loop)) return NULL;
  bool follows = tl_op_may_follow(a, b);
  tl_producer *first = producer_of(dependence, follows ? a : b), *second = producer_of(dependence, follows ? b : a);
  const tl_block *body = dependence->loop->regions[0];
  bool is_apart = tl_op_in_block(a, body) != tl_op_in_block(b, body);
  *out_blame = second->op;
  if (a == b || !is_apart || !first->by_threads) return "its tile is written twice in one iteration";
  second->after_barrier = true;
  return NULL;
}

static const char *writes_reason(tl_dependence *dependence, const tl_value *tile, const tl_op_list *writers,
                                 tl_op **out_blame) {
  tl_part_list parts = {0};
  const char *why = NULL;
  for (size_t w = 0; w < writers->len && !why; w++) {
    const tl_producer *producer = producer_of(dependence, writers->items[w]);
    *out_blame = writers->items[w];
    if (producer == NULL) why = another_writes;
    if (!why && producer->blocked) why = producer->by_threads ? another_writes : producer->blocked;
    if (!why && !tl_parts_written(producer->op, tile, dependence->loop->regions[0], &parts))
      why = producer->by_threads ? another_writes : "it writes a place of its tile that is not known when compiled";
  }
  for (size_t i = 0; i < parts.len && !why; i++) {
    for (size_t j = i + 1; j < parts.len && !why; j++) {
      if (tl_parts_meet(&parts.items[i], &parts.items[j], tile->type->rank))
        why = order_writes(dependence, &parts.items[i], &parts.items[j], out_blame);
    }
  }
  tl_vec_fini(&parts);
  return why;
}

// Why a read may see what an earlier iteration left, or NULL.
static const char *old_content_reason(const tl_dependence *dependence, const tl_value *tile, const tile_uses *uses,
                                      const tl_part *read, tl_op **out_blame) {
  tl_part_list before = {0}, all = {0};
  const char *why = NULL;
  tl_parts_before(dependence->loop, read->op, tile, &uses->writers, &before);
  if (!tl_parts_cover(&before, read, tile->type->rank)) {
    for (size_t w = 0; w < uses->writers.len; w++)
      tl_parts_written(uses->writers.items[w], tile, dependence->loop->regions[0], &all);
    why = "a read of its tile can see the content of an earlier iteration";
    if (!tl_parts_cover(&all, read, tile->type->rank)) {
      why = "it writes a part of the tile, and the rest may hold older content";
      *out_blame = NULL;
    }
  }
  tl_vec_fini(&before);
  tl_vec_fini(&all);
  return why;
}

static const char *tile_reason(tl_dependence *dependence, const tl_value *tile, const tile_uses *uses,
                               tl_op **out_blame) {
  tl_op *loop = dependence->loop;
  if (tl_op_has(tile->def, TL_ATTR_DEPTH)) return "its tile already has several copies";
  if (uses->reads.len == 0) return "nothing in the loop reads its tile";
  const char *why = writes_reason(dependence, tile, &uses->writers, out_blame);
  if (why) return why;
  for (size_t r = 0; r < uses->reads.len; r++) {
    tl_op *read = uses->reads.items[r].op;
    *out_blame = read;
    for (size_t w = 0; w < uses->writers.len; w++) {
      if (read == uses->writers.items[w]) return "it reads its own tile";
      if (tl_op_may_follow(read, uses->writers.items[w]))
        return "its tile is read before it is written in an iteration";
    }
    why = old_content_reason(dependence, tile, uses, &uses->reads.items[r], out_blame);
    if (why) return why;
  }
  for (size_t r = 0; r < uses->outside.len; r++) {
    *out_blame = uses->outside.items[r];
    if (sees_loop(loop, uses->outside.items[r], tile, &uses->covering)) return "its tile is read after the loop";
  }
  *out_blame = NULL;
  return NULL;
}

static tl_op *first_reader_of(const tl_dependence *dependence, const tile_uses *uses) {
  // Readers are in program order.
  return tl_op_in_block(uses->reads.items[0].op, dependence->loop->regions[0]);
}

static int group_for(tl_dependence *dependence, tl_op *first_reader) {
  for (size_t g = 0; g < dependence->groups.len; g++) {
    if (dependence->groups.items[g].first_reader == first_reader) return (int)g;
  }
  tl_producer_group group = {first_reader};
  tl_vec_push(&dependence->groups, group);
  return (int)dependence->groups.len - 1;
}

typedef TL_VEC(tl_value *) tile_list;

static bool has_tile(const tile_list *list, const tl_value *tile) {
  for (size_t i = 0; i < list->len; i++)
    if (list->items[i] == tile) return true;
  return false;
}

// Tiles that threads may write beside: not those that the copy engine rounds on the way, which only it can.
static void find_tiles(tl_op *op, void *user) {
  tile_list *tiles = user;
  tl_value *tile = tl_is_async_candidate(op) ? async_destination(op) : NULL;
  bool rounds = op->code == TL_OP_COPY &&
                tl_op_arg(op, TL_GROUP_COPY_src)->type->dtype != tl_op_arg(op, TL_GROUP_COPY_dst)->type->dtype;
  if (tile && !rounds && !has_tile(tiles, tile)) tl_vec_push(tiles, tile);
}

// Whether the op does nothing but compute, read and write memory, so that it may as well be done earlier.
static bool only_writes(const tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  bool fits = op->code == TL_OP_LOAD || op->code == TL_OP_STORE || op->code == TL_OP_COPY || op->code == TL_OP_FILL ||
              op->code == TL_OP_PARALLEL || op->code == TL_OP_IF ||
              (info->flags & (TL_OPFLAG_PURE | TL_OPFLAG_TERMINATOR));
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (const tl_op *inner = op->regions[r]->first; inner && fits; inner = inner->next) fits = only_writes(inner);
  return fits;
}

// Whether threads write a part of a tile that asynchronous copies fill, too: zeros in the place of a page, a piece that
// is converted.
static bool writes_beside(tl_op *op, const tile_list *tiles) {
  bool fits = op->code == TL_OP_COPY || op->code == TL_OP_FILL || op->code == TL_OP_PARALLEL;
  if (!fits || tl_op_has(op, TL_ATTR_ASYNC) || tl_op_has(op, TL_ATTR_BY_HAND) || !only_writes(op)) return false;
  return has_tile(tiles, async_destination(op));
}

static void find_candidates(tl_dependence *dependence, tl_op *op, const tile_list *tiles) {
  tl_op *loop = dependence->loop;
  bool is_async = tl_is_async_candidate(op);
  if (is_async || writes_beside(op, tiles)) {
    tl_producer producer = {.op = op, .tile = async_destination(op), .by_threads = !is_async, .group = -1};
    producer.blocked = own_reason(loop, op, producer.tile);
    tl_vec_push(&dependence->producers, producer);
    return;
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (tl_op *inner = op->regions[r]->first; inner; inner = inner->next) find_candidates(dependence, inner, tiles);
  }
}

// Sorts groups by the position of their first readers and renumbers the producers.
static void sort_groups(tl_dependence *dependence) {
  for (size_t i = 1; i < dependence->groups.len; i++) {
    for (size_t j = i; j > 0; j--) {
      tl_producer_group *a = &dependence->groups.items[j - 1];
      tl_producer_group *b = &dependence->groups.items[j];
      if (!comes_before(b->first_reader, a->first_reader)) break;
      tl_producer_group swap = *a;
      *a = *b;
      *b = swap;
      for (size_t p = 0; p < dependence->producers.len; p++) {
        int *group = &dependence->producers.items[p].group;
        if (*group == (int)j) {
          *group = (int)j - 1;
        } else if (*group == (int)j - 1) {
          *group = (int)j;
        }
      }
    }
  }
}

// Whether the op leaves memory alone but for reading it: work in registers.
static bool stays_in_registers(tl_op *op) {
  if (op->code != TL_OP_PARALLEL) return (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) != 0;
  tl_effect_list effects = {0};
  tl_effects_inside(op, &effects);
  bool reads_only = true;
  for (size_t i = 0; i < effects.len; i++) reads_only = reads_only && effects.items[i].kind == TL_EFFECT_READ;
  tl_vec_fini(&effects);
  return reads_only;
}

// Two groups become one when only work in registers lies between their first readers: waiting for both at once then
// costs nothing, and saves a barrier.
static void merge_groups(tl_dependence *dependence) {
  for (size_t g = 0; g + 1 < dependence->groups.len;) {
    tl_op *op = dependence->groups.items[g].first_reader, *until = dependence->groups.items[g + 1].first_reader;
    while (op != until && stays_in_registers(op)) op = op->next;
    if (op != until) {
      g++;
      continue;
    }
    for (size_t p = 0; p < dependence->producers.len; p++) {
      int *group = &dependence->producers.items[p].group;
      if (*group > (int)g) (*group)--;
    }
    for (size_t i = g + 1; i + 1 < dependence->groups.len; i++) {
      dependence->groups.items[i].first_reader = dependence->groups.items[i + 1].first_reader;
    }
    dependence->groups.len--;
  }
}

void tl_dependence_analyze(tl_op *loop, tl_dependence *out) {
  *out = (tl_dependence){.loop = loop};
  tile_list tiles = {0};
  tl_walk(loop, find_tiles, &tiles);
  for (tl_op *op = loop->regions[0]->first; op; op = op->next) find_candidates(out, op, &tiles);
  tl_vec_fini(&tiles);
  for (size_t p = 0; p < out->producers.len; p++) {
    tl_producer *producer = &out->producers.items[p];
    if (producer->blocked) continue;
    tile_uses uses = {0};
    collect_uses(loop, producer->tile, &uses);
    tl_op *blame = NULL;
    producer->blocked = tile_reason(out, producer->tile, &uses, &blame);
    if (producer->blocked) {
      if (blame) producer->blocked_at = blame->loc;
    } else {
      producer->group = group_for(out, first_reader_of(out, &uses));
    }
    fini_uses(&uses);
  }
  sort_groups(out);
  merge_groups(out);
}

void tl_dependence_fini(tl_dependence *dependence) {
  tl_vec_fini(&dependence->producers);
  tl_vec_fini(&dependence->groups);
}

// ---- slices

static void need_value(const tl_op *loop, tl_value *value, tl_op_list *out);

static void need_op(const tl_op *loop, tl_op *op, tl_op_list *out) {
  if (!tl_op_list_has(out, op)) tl_vec_push(out, op);
  for (uint32_t i = 0; i < op->num_operands; i++) need_value(loop, tl_op_operand(op, i), out);
  for (tl_op *outer = op->parent->parent; outer && outer != loop; outer = outer->parent->parent) {
    if (tl_op_list_has(out, outer)) continue;
    tl_vec_push(out, outer);
    // How often it runs.
    uint32_t scalars = outer->code == TL_OP_IF ? 1 : outer->code == TL_OP_FOR ? 3 : 0;
    for (uint32_t i = 0; i < scalars; i++) need_value(loop, tl_op_operand(outer, i), out);
  }
}

static void need_value(const tl_op *loop, tl_value *value, tl_op_list *out) {
  if (value->def == NULL || value->def == loop || !tl_op_is_inside(value->def, loop)) return;
  if (!tl_op_list_has(out, value->def)) need_op(loop, value->def, out);
}

static void need_inside(const tl_op *loop, tl_op *producer, tl_op *op, tl_op_list *out) {
  for (uint32_t i = 0; i < op->num_operands; i++) {
    tl_value *value = tl_op_operand(op, i);
    if (value->def && tl_op_is_inside(value->def, producer)) continue;
    need_value(loop, value, out);
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (tl_op *inner = op->regions[r]->first; inner; inner = inner->next) need_inside(loop, producer, inner, out);
  }
}

void tl_dependence_slice(const tl_dependence *dependence, int group, tl_op_list *out) {
  for (size_t p = 0; p < dependence->producers.len; p++) {
    const tl_producer *producer = &dependence->producers.items[p];
    if (producer->group != group) continue;
    need_op(dependence->loop, producer->op, out);
    need_inside(dependence->loop, producer->op, producer->op, out);
  }
}
