// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes that never meet, so that place-barriers need not order them.
#include "ir/index/affine.h"
#include "passes/analysis/dependence.h"
#include "passes/analysis/memory_access.h"
#include "passes/sync/place_barriers_internal.h"

// Where an access reaches along each dim of its buffer: from `start` + `lo` to `start` + `hi`, both inclusive. For
// elements inside a parallel: in all of its iterations.
typedef struct reach {
  int32_t rank;
  tl_affine start[TL_MAX_RANK];  // not valid: anywhere
  int64_t lo[TL_MAX_RANK], hi[TL_MAX_RANK];
} reach;

static bool has_box(const tl_op *op) {
  return op->code == TL_OP_COPY || op->code == TL_OP_TILE_LOAD || op->code == TL_OP_TILE_STORE;
}

static bool is_element(const tl_op *op) {
  return (op->code == TL_OP_LOAD || op->code == TL_OP_STORE) && tl_op_enclosing(op, TL_OP_PARALLEL);
}

// The op that names the part of a tile which a gemm reads, or NULL.
static const tl_op *part_of(const tl_effect *effect) {
  const tl_op *def = effect->buffer->def;
  return def && def->code == TL_OP_PART_TILE ? def : NULL;
}

// What an access names, a part of a tile as that tile.
static tl_value *named(const tl_effect *effect) {
  const tl_op *part = part_of(effect);
  return part ? tl_op_arg(part, TL_GROUP_PART_TILE_tile) : effect->buffer;
}

static bool has_reach(const tl_effect *effect) {
  return has_box(effect->op) || is_element(effect->op) || part_of(effect);
}

// Takes what the iterations of `parallel` add out of the index, as the span from `*out_lo` to `*out_hi`.
static tl_affine outside_of(const tl_op *parallel, tl_value *index, int64_t *out_lo, int64_t *out_hi) {
  tl_affine form = tl_affine_of(index), outside = {.valid = form.valid, .constant = form.constant};
  *out_lo = *out_hi = 0;
  for (int32_t t = 0; t < form.num_terms && outside.valid; t++) {
    tl_value *symbol = form.terms[t].symbol;
    const tl_op *owner = symbol->def ? symbol->def : symbol->block->parent;
    if (owner != parallel && !tl_op_is_inside(owner, parallel)) {
      outside.terms[outside.num_terms++] = form.terms[t];
      continue;
    }
    tl_range range = tl_value_range(symbol);
    int64_t by = form.terms[t].coefficient;
    bool small = range.lo >= -INT32_MAX && range.hi <= INT32_MAX && by >= -INT32_MAX && by <= INT32_MAX;
    outside.valid = small && range.lo <= range.hi;
    if (!small) break;
    *out_lo += by < 0 ? by * range.hi : by * range.lo;
    *out_hi += by < 0 ? by * range.lo : by * range.hi;
  }
  return outside;
}

static reach reach_of_part(const tl_op *part) {
  const tl_type *type = part->results[0].type;
  const int64_t *dims = tl_op_ints(part, TL_ATTR_SRC_DIMS, NULL);
  reach result = {.rank = tl_op_arg(part, TL_GROUP_PART_TILE_tile)->type->rank};
  for (int32_t d = 0; d < result.rank; d++)
    result.start[d] = tl_affine_of(tl_op_group_at(part, TL_GROUP_PART_TILE_offsets, (uint32_t)d));
  for (int32_t i = 0; i < 2; i++) result.hi[dims[i]] = type->dims[i] - 1;
  return result;
}

static reach reach_of(const tl_effect *effect) {
  reach result = {0};
  if (part_of(effect)) return reach_of_part(part_of(effect));
  if (is_element(effect->op)) {
    const tl_op *parallel = tl_op_enclosing(effect->op, TL_OP_PARALLEL);
    result.rank = (int32_t)tl_element_rank(effect->op);
    for (int32_t d = 0; d < result.rank; d++) {
      tl_value *index = tl_element_index(effect->op, (uint32_t)d);
      result.start[d] = outside_of(parallel, index, &result.lo[d], &result.hi[d]);
    }
    return result;
  }
  tl_box box = effect->kind == TL_EFFECT_READ ? tl_box_source(effect->op) : tl_box_destination(effect->op);
  result.rank = box.buffer_rank;
  for (int32_t d = 0; d < result.rank; d++) {
    result.start[d] = tl_affine_of(tl_box_offset(&box, d));
    tl_box_span(&box, d, &result.lo[d], &result.hi[d]);
  }
  return result;
}

// The loops around an op, innermost first.
static tl_op *loop_around(const tl_op *op) {
  return tl_op_enclosing(op, TL_OP_FOR);
}

// The innermost loop around an access and the parallel that it stands in.
static tl_op *loop_outside(const tl_op *op) {
  const tl_op *parallel = is_element(op) ? tl_op_enclosing(op, TL_OP_PARALLEL) : op;
  return loop_around(parallel);
}

// Whether a symbol of an affine form has one value for the whole run of `loop`.
static bool is_invariant(const tl_value *symbol, const tl_op *loop) {
  const tl_op *def = symbol->def ? symbol->def : symbol->block->parent;
  return loop == NULL || !tl_op_is_inside(def, loop);
}

static tl_op *outermost_loop(tl_op *op) {
  tl_op *found = NULL;
  for (tl_op *loop = loop_around(op); loop; loop = loop_around(loop)) found = loop;
  return found;
}

// The difference of two starts; not valid where it is no constant.
static tl_affine distance_of(const tl_affine *from, const tl_affine *to) {
  tl_affine distance = {0};
  if (from->valid && to->valid) distance = tl_affine_sub(to, from);
  distance.valid &= distance.num_terms == 0;
  return distance;
}

// Accesses at starts whose difference is a constant, both fixed during any loop around.
static bool lie_apart(const tl_effect *before, const tl_effect *after, const reach *a, const reach *b) {
  const tl_op *loop_a = outermost_loop(before->op);
  const tl_op *loop_b = outermost_loop(after->op);
  for (int32_t d = 0; d < a->rank; d++) {
    tl_affine distance = distance_of(&a->start[d], &b->start[d]);
    bool is_fixed = distance.valid;
    for (int32_t t = 0; is_fixed && t < a->start[d].num_terms; t++) {
      const tl_value *symbol = a->start[d].terms[t].symbol;
      is_fixed = is_invariant(symbol, loop_a) && is_invariant(symbol, loop_b);
    }
    if (is_fixed && (distance.constant + b->lo[d] > a->hi[d] || distance.constant + b->hi[d] < a->lo[d])) return true;
  }
  return false;
}

// Whether `loop` moves both accesses, which start at one place, on by at least what they reach along some dim that no
// other loop around moves.
static bool loop_moves_on(const tl_op *loop, const tl_op *outermost, const reach *a, const reach *b) {
  int64_t step;
  if (!tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step)) return false;
  const tl_value *index = loop->regions[0]->args[0];
  for (int32_t d = 0; d < a->rank; d++) {
    const tl_affine *from = &a->start[d];
    tl_affine distance = distance_of(from, &b->start[d]);
    bool fits = distance.valid && distance.constant == 0;
    for (int32_t t = 0; fits && t < from->num_terms; t++)
      fits = from->terms[t].symbol == index || is_invariant(from->terms[t].symbol, outermost);
    if (!fits) continue;
    int64_t last = a->hi[d] > b->hi[d] ? a->hi[d] : b->hi[d];
    int64_t span = last - (a->lo[d] < b->lo[d] ? a->lo[d] : b->lo[d]);
    int64_t coefficient = tl_affine_coefficient(from, index);
    if (coefficient == 0 || step == 0 || coefficient > INT32_MAX || coefficient < -INT32_MAX || step > INT32_MAX)
      continue;
    int64_t moved = coefficient * step;
    if ((moved < 0 ? -moved : moved) > span) return true;
  }
  return false;
}

// Whether only different iterations of the loops around may order the two: one op, two branches of which an iteration
// takes one, or elements of one parallel, whose iterations are free of one another.
static bool are_alone(tl_op *before, tl_op *after) {
  if (before == after) return true;
  if (is_element(before) && is_element(after) &&
      tl_op_enclosing(before, TL_OP_PARALLEL) == tl_op_enclosing(after, TL_OP_PARALLEL))
    return true;
  return !tl_op_may_follow(before, after) && !tl_op_may_follow(after, before);
}

// Whether the buffer is a view that a loop around the access moves.
static bool is_moved(tl_value *buffer) {
  return buffer->def && buffer->def->code == TL_OP_VIEW && buffer->def->parent->parent->code != TL_OP_KERNEL;
}

bool tl_accesses_never_meet(const tl_effect *before, const tl_effect *after) {
  bool known = has_reach(before) && has_reach(after);
  if (!known || named(before) != named(after) || is_moved(named(after))) return false;
  reach a = reach_of(before), b = reach_of(after);
  if (lie_apart(before, after, &a, &b)) return true;
  const tl_op *around = loop_outside(after->op);
  if (!are_alone(before->op, after->op) || loop_outside(before->op) != around) return false;
  const tl_op *outermost = outermost_loop(after->op);
  for (const tl_op *loop = around; loop; loop = loop_around(loop)) {
    if (!loop_moves_on(loop, outermost, &a, &b)) return false;
  }
  return true;
}
