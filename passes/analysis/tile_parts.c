// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of tiles that statements write and read.
//
//   for %p = 0 to 4 { copy %K[%T[4 * %k + %p], …] -> %k[16 * %p …] extents=[16, 64] }   ⇒   rows 0 … 15, 16 … 31, …
//
// Loops with constant bounds are walked, so that a place may depend on their index. Everything is in whole numbers:
// what is not known when compiled is no part.
#include "passes/analysis/tile_parts.h"

#include "passes/analysis/memory_access.h"

enum { MOST_PARTS = 256, MOST_STEPS = 4096, MOST_LOOPS = 8 };

// The value of a loop's index, in its iteration of that number (loops around count, too).
typedef struct bound_index {
  const tl_op *loop;
  int64_t value, number;
  const struct bound_index *outer;
} bound_index;

static bool is_small(int64_t value) {
  return value >= INT32_MIN && value <= INT32_MAX;
}

static bool is_small_loop(const tl_op *loop, tl_constant_loop *out) {
  return loop->code == TL_OP_FOR && !tl_op_has(loop, TL_ATTR_WHILE) && tl_loop_is_constant(loop, out) &&
         is_small(out->lower) && is_small(out->upper) && is_small(out->step);
}

int64_t tl_constant_trips(const tl_op *loop) {
  tl_constant_loop known;
  return is_small_loop(loop, &known) ? known.trips : -1;
}

// ---- boxes

tl_part tl_part_whole(tl_op *op, const tl_value *tile) {
  tl_part part = {.op = op};
  for (int32_t d = 0; d < tile->type->rank; d++) part.hi[d] = tile->type->dims[d];
  return part;
}

// What lies outside of the tile is not written.
static void clip(tl_part *part, const tl_value *tile) {
  for (int32_t d = 0; d < tile->type->rank; d++) {
    if (part->lo[d] < 0) part->lo[d] = 0;
    if (part->hi[d] > tile->type->dims[d]) part->hi[d] = tile->type->dims[d];
  }
}

static bool is_empty(const tl_part *part, int32_t rank) {
  for (int32_t d = 0; d < rank; d++)
    if (part->lo[d] >= part->hi[d]) return true;
  return false;
}

static tl_part common(const tl_part *a, const tl_part *b, int32_t rank) {
  tl_part both = *a;
  for (int32_t d = 0; d < rank; d++) {
    if (b->lo[d] > both.lo[d]) both.lo[d] = b->lo[d];
    if (b->hi[d] < both.hi[d]) both.hi[d] = b->hi[d];
  }
  return both;
}

bool tl_parts_meet(const tl_part *a, const tl_part *b, int32_t rank) {
  tl_part both = common(a, b, rank);
  return !is_empty(&both, rank);
}

// Takes the parts from number `first` on out of `what`, one after the other: what is left of it on either side of the
// first that meets it must be held by those behind.
static bool covers_from(const tl_part_list *parts, size_t first, tl_part what, int32_t rank, int *steps) {
  if (is_empty(&what, rank)) return true;
  while (first < parts->len && !tl_parts_meet(&parts->items[first], &what, rank)) first++;
  if (first == parts->len || --*steps < 0) return false;
  const tl_part *part = &parts->items[first];
  for (int32_t d = 0; d < rank; d++) {
    tl_part below = what, above = what;
    below.hi[d] = part->lo[d] > what.lo[d] ? part->lo[d] : what.lo[d];
    above.lo[d] = part->hi[d] < what.hi[d] ? part->hi[d] : what.hi[d];
    if (!covers_from(parts, first + 1, below, rank, steps) || !covers_from(parts, first + 1, above, rank, steps))
      return false;
    what.lo[d] = below.hi[d];
    what.hi[d] = above.lo[d];
  }
  return true;
}

bool tl_parts_cover(const tl_part_list *parts, const tl_part *what, int32_t rank) {
  int steps = MOST_STEPS;
  return covers_from(parts, 0, *what, rank, &steps);
}

// ---- what one write touches

// `value` for the known indices, without its terms in indices of `parallel` (NULL: there is none).
static bool evaluate(tl_value *value, const tl_op *parallel, const bound_index *known, int64_t *out) {
  tl_affine form = tl_affine_of(value);
  *out = form.constant;
  if (!form.valid || !is_small(form.constant)) return false;
  for (int32_t t = 0; t < form.num_terms; t++) {
    const tl_value *symbol = form.terms[t].symbol;
    const bound_index *index = known;
    if (symbol->def) return false;
    if (parallel && symbol->block == parallel->regions[0]) continue;
    while (index && (symbol->block != index->loop->regions[0] || symbol->index != 0)) index = index->outer;
    if (!index || !is_small(form.terms[t].coefficient)) return false;
    *out += form.terms[t].coefficient * index->value;
  }
  return is_small(*out);
}

static bool part_of_copy(tl_op *copy, const bound_index *known, tl_part *out) {
  if (tl_op_group_len(copy, TL_GROUP_COPY_dst_limits) > 0) return false;
  tl_box box = tl_box_destination(copy);
  for (int32_t d = 0; d < box.buffer_rank; d++) {
    int32_t t = box.tile_dim[d];
    if (t >= 0 && box.steps[t] != 1) return false;
    if (!evaluate(tl_box_offset(&box, d), NULL, known, &out->lo[d])) return false;
    out->hi[d] = out->lo[d] + (t < 0 ? 1 : box.extents[t]);
  }
  return true;
}

// The indices of a parallel along one dim of what it stores.
typedef struct walked_terms {
  int64_t by[TL_MAX_RANK], extent[TL_MAX_RANK];
  int32_t len;
} walked_terms;

// Sorts by step: each must begin within what the smaller ones reach, so that nothing is left out.
static bool is_dense(walked_terms *terms, int64_t *out_reach) {
  *out_reach = 1;
  for (int32_t done = 0; done < terms->len; done++) {
    int32_t least = done;
    for (int32_t i = done; i < terms->len; i++)
      if (terms->by[i] < terms->by[least]) least = i;
    int64_t by = terms->by[least], extent = terms->extent[least];
    terms->by[least] = terms->by[done];
    terms->extent[least] = terms->extent[done];
    if (by > *out_reach || !is_small(by * (extent - 1) + *out_reach)) return false;
    *out_reach += by * (extent - 1);
  }
  return true;
}

static bool part_of_dim(const tl_op *parallel, tl_value *index, const bound_index *known, bool *used, int64_t *out_lo,
                        int64_t *out_hi) {
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, NULL);
  tl_affine form = tl_affine_of(index);
  walked_terms terms = {.len = 0};
  int64_t reach;
  if (!evaluate(index, parallel, known, out_lo)) return false;
  for (int32_t t = 0; t < form.num_terms; t++) {
    const tl_value *symbol = form.terms[t].symbol;
    int64_t by = form.terms[t].coefficient, extent;
    if (symbol->block != parallel->regions[0]) continue;
    extent = extents[symbol->index];
    if (!is_small(by) || used[symbol->index] || terms.len == TL_MAX_RANK) return false;
    used[symbol->index] = true;
    if (by < 0) *out_lo += by * (extent - 1);
    terms.by[terms.len] = by < 0 ? -by : by;
    terms.extent[terms.len++] = extent;
  }
  if (!is_dense(&terms, &reach)) return false;
  *out_hi = *out_lo + reach;
  return true;
}

static bool parts_of_parallel(tl_op *parallel, const tl_value *tile, const bound_index *known, tl_part_list *out) {
  bool any = false;
  for (tl_op *op = parallel->regions[0]->first; op; op = op->next) {
    if (op->num_regions > 0 && tl_effects_write(op, tile)) return false;  // not every element stores
    if (op->code != TL_OP_STORE || tl_element_buffer(op) != tile) continue;
    tl_part part = {.op = parallel, .loop = known ? known->loop : NULL, .number = known ? known->number : 0};
    bool used[TL_MAX_RANK] = {false};
    for (int32_t d = 0; d < tile->type->rank; d++) {
      tl_value *index = tl_element_index(op, (uint32_t)d);
      if (!part_of_dim(parallel, index, known, used, &part.lo[d], &part.hi[d])) return false;
    }
    clip(&part, tile);
    tl_vec_push(out, part);
    any = true;
  }
  return any;
}

static bool parts_of(tl_op *op, const tl_value *tile, const bound_index *known, tl_part_list *out) {
  if (out->len >= MOST_PARTS) return false;
  if (op->code == TL_OP_PARALLEL) return parts_of_parallel(op, tile, known, out);
  tl_part part = tl_part_whole(op, tile);
  part.loop = known ? known->loop : NULL;
  part.number = known ? known->number : 0;
  if (op->code == TL_OP_COPY ? !part_of_copy(op, known, &part) : op->code != TL_OP_FILL) return false;
  clip(&part, tile);
  tl_vec_push(out, part);
  return true;
}

// `loops` from the innermost on, of which `count` are left to walk.
static bool walk_loops(tl_op *op, const tl_value *tile, tl_op *const *loops, int32_t count, const bound_index *known,
                       tl_part_list *out) {
  tl_constant_loop loop;
  if (count == 0) return parts_of(op, tile, known, out);
  if (!is_small_loop(loops[count - 1], &loop)) return false;
  for (int64_t i = 0; i < loop.trips; i++) {
    bound_index index = {loops[count - 1], loop.lower + i * loop.step, (known ? known->number : 0) * loop.trips + i,
                         known};
    if (!walk_loops(op, tile, loops, count - 1, &index, out)) return false;
  }
  return true;
}

bool tl_parts_exclude(const tl_part *a, const tl_part *b, const tl_op *loop) {
  if (tl_op_may_follow(a->op, b->op) || tl_op_may_follow(b->op, a->op)) return false;
  // The innermost loop that runs both: it may take one branch first, and then the other one.
  const tl_op *around = tl_op_enclosing(a->op, TL_OP_FOR);
  while (around != loop && !tl_op_is_inside(b->op, around)) around = tl_op_enclosing(around, TL_OP_FOR);
  return around == loop || (a->loop == around && b->loop == around && a->number == b->number);
}

bool tl_parts_written(tl_op *op, const tl_value *tile, const tl_block *block, tl_part_list *out) {
  tl_op *loops[MOST_LOOPS];
  int32_t count = 0;
  for (tl_op *around = op; around->parent != block; around = around->parent->parent) {
    if (around->parent->parent->code != TL_OP_FOR) continue;
    if (count == MOST_LOOPS) return false;
    loops[count++] = around->parent->parent;
  }
  return walk_loops(op, tile, loops, count, NULL, out);
}

// ---- what a read touches

static void narrow(tl_part *part, int32_t d, tl_value *first, int64_t lo, int64_t hi) {
  tl_range range = tl_value_range(first);
  if (!is_small(range.lo) || !is_small(range.hi)) return;
  if (range.lo + lo > part->lo[d]) part->lo[d] = range.lo + lo;
  if (range.hi + hi + 1 < part->hi[d]) part->hi[d] = range.hi + hi + 1;
}

tl_part tl_part_read(const tl_effect *read, tl_op *statement) {
  tl_part part = tl_part_whole(statement, read->root);
  if (read->buffer != read->root) return part;
  if (read->op->code == TL_OP_LOAD) {
    for (uint32_t d = 0; d < tl_element_rank(read->op); d++)
      narrow(&part, (int32_t)d, tl_element_index(read->op, d), 0, 0);
  } else if (read->op->code == TL_OP_COPY || read->op->code == TL_OP_TILE_LOAD) {
    tl_box box = tl_box_source(read->op);
    for (int32_t d = 0; d < box.buffer_rank; d++) {
      int64_t lo = 0, hi = 0;
      tl_box_span(&box, d, &lo, &hi);
      narrow(&part, d, tl_box_offset(&box, d), lo, hi);
    }
  }
  return part;
}

// ---- what is surely written

typedef struct sure_writes {
  const tl_op *loop;
  const tl_value *tile;
  const tl_op_list *writers;
} sure_writes;

static void sure_of_block(const sure_writes *self, const tl_block *block, const bound_index *known, tl_part_list *out);

// What both branches write.
static void sure_of_if(const sure_writes *self, const tl_op *op, const bound_index *known, tl_part_list *out) {
  int32_t rank = self->tile->type->rank;
  tl_part_list one = {0}, other = {0};
  sure_of_block(self, op->regions[0], known, &one);
  if (one.len > 0) sure_of_block(self, op->regions[1], known, &other);
  for (size_t i = 0; i < one.len; i++) {
    for (size_t j = 0; j < other.len && out->len < MOST_PARTS; j++) {
      tl_part both = common(&one.items[i], &other.items[j], rank);
      if (!is_empty(&both, rank)) tl_vec_push(out, both);
    }
  }
  tl_vec_fini(&one);
  tl_vec_fini(&other);
}

static void sure_of(const sure_writes *self, tl_op *op, const bound_index *known, tl_part_list *out) {
  tl_constant_loop loop;
  if (tl_op_list_has(self->writers, op)) {
    size_t before = out->len;
    if (!parts_of(op, self->tile, known, out)) out->len = before;
  } else if (op->code == TL_OP_IF) {
    sure_of_if(self, op, known, out);
  } else if (is_small_loop(op, &loop) && tl_effects_write(op, self->tile)) {
    for (int64_t i = 0; i < loop.trips && out->len < MOST_PARTS; i++) {
      bound_index index = {op, loop.lower + i * loop.step, i, known};
      sure_of_block(self, op->regions[0], &index, out);
    }
  }
}

static void sure_of_block(const sure_writes *self, const tl_block *block, const bound_index *known, tl_part_list *out) {
  for (tl_op *op = block->first; op && out->len < MOST_PARTS; op = op->next) sure_of(self, op, known, out);
}

// Whether two values of one iteration are the same number: computed alike, from memory that the loop does not write.
static bool is_same(const tl_op *loop, const tl_value *a, const tl_value *b, int depth) {
  const tl_op *one = a->def, *other = b->def;
  if (a == b) return true;
  if (!one || !other || depth == 0 || one->code != other->code || a->index != b->index) return false;
  if (one->num_regions > 0 || one->num_operands != other->num_operands || !tl_op_same_attrs(one, other)) return false;
  if (one->code == TL_OP_LOAD) {
    const tl_value *root = tl_effect_root(tl_op_arg(one, TL_GROUP_LOAD_buffer), NULL, NULL);
    bool is_fixed = root->def && tl_op_int(root->def, TL_ATTR_ACCESS, TL_ACCESS_INOUT) == TL_ACCESS_IN;
    if (!is_fixed || tl_effects_write((tl_op *)loop, root)) return false;
  } else if (!(tl_op_info_of(one->code)->flags & TL_OPFLAG_PURE)) {
    return false;
  }
  for (uint32_t i = 0; i < one->num_operands; i++)
    if (!is_same(loop, tl_op_operand(one, i), tl_op_operand(other, i), depth - 1)) return false;
  return true;
}

// Of an earlier `if` under the very condition that guards the read, the branch that runs with it.
static void sure_of_guarded(const sure_writes *self, const tl_op *before, tl_op *read, tl_part_list *out) {
  enum { DEPTH = 8 };
  for (tl_op *guard = read->parent->parent; guard && guard != self->loop; guard = guard->parent->parent) {
    if (guard->code != TL_OP_IF || guard == before) continue;
    if (!is_same(self->loop, tl_op_operand(guard, 0), tl_op_operand(before, 0), DEPTH)) continue;
    int side = tl_op_in_block(read, guard->regions[0]) ? 0 : 1;
    sure_of_block(self, before->regions[side], NULL, out);
  }
}

void tl_parts_before(const tl_op *loop, tl_op *read, const tl_value *tile, const tl_op_list *writers,
                     tl_part_list *out) {
  sure_writes self = {loop, tile, writers};
  for (tl_op *op = read; op != loop; op = op->parent->parent) {
    for (tl_op *before = op->prev; before && out->len < MOST_PARTS; before = before->prev) {
      sure_of(&self, before, NULL, out);
      if (before->code == TL_OP_IF) sure_of_guarded(&self, before, read, out);
    }
  }
}
