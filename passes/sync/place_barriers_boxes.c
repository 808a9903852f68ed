// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes that never meet, so that place-barriers need not order them.
#include "ir/index/affine.h"
#include "passes/analysis/dependence.h"
#include "passes/analysis/memory_access.h"
#include "passes/sync/place_barriers_internal.h"

static bool has_box(const tl_effect *effect) {
  return effect->op->code == TL_OP_COPY || effect->op->code == TL_OP_TILE_LOAD || effect->op->code == TL_OP_TILE_STORE;
}

static tl_box box_of(const tl_effect *effect) {
  return effect->kind == TL_EFFECT_READ ? tl_box_source(effect->op) : tl_box_destination(effect->op);
}

// The loops around an op, innermost first.
static tl_op *loop_around(const tl_op *op) {
  return tl_op_enclosing(op, TL_OP_FOR);
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

// Boxes at offsets whose difference is a constant, both fixed during any loop around.
static bool lie_apart(const tl_effect *before, const tl_effect *after, const tl_box *a, const tl_box *b) {
  const tl_op *loop_a = outermost_loop(before->op);
  const tl_op *loop_b = outermost_loop(after->op);
  for (int32_t d = 0; d < a->buffer_rank; d++) {
    tl_affine from = tl_affine_of(tl_box_offset(a, d));
    tl_affine to = tl_affine_of(tl_box_offset(b, d));
    tl_affine distance = tl_affine_sub(&to, &from);
    bool is_fixed = from.valid && to.valid && distance.valid && distance.num_terms == 0;
    for (int32_t t = 0; t < from.num_terms && is_fixed; t++) {
      is_fixed = is_invariant(from.terms[t].symbol, loop_a) && is_invariant(from.terms[t].symbol, loop_b);
    }
    if (!is_fixed) continue;
    int64_t a_lo, a_hi, b_lo, b_hi;
    tl_box_span(a, d, &a_lo, &a_hi);
    tl_box_span(b, d, &b_lo, &b_hi);
    if (distance.constant + b_lo > a_hi || distance.constant + b_hi < a_lo) return true;
  }
  return false;
}

// Whether `loop` moves both boxes, which start at one place, on by at least their size along some dim that no other
// loop around moves.
static bool loop_moves_on(const tl_op *loop, const tl_op *outermost, const tl_box *a, const tl_box *b) {
  int64_t step;
  if (!tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step)) return false;
  const tl_value *index = loop->regions[0]->args[0];
  for (int32_t d = 0; d < a->buffer_rank; d++) {
    tl_affine from = tl_affine_of(tl_box_offset(a, d));
    tl_affine to = tl_affine_of(tl_box_offset(b, d));
    tl_affine distance = tl_affine_sub(&to, &from);
    bool fits = from.valid && to.valid && distance.valid && distance.num_terms == 0 && distance.constant == 0;
    for (int32_t t = 0; t < from.num_terms && fits; t++) {
      fits = from.terms[t].symbol == index || is_invariant(from.terms[t].symbol, outermost);
    }
    if (!fits) continue;
    int64_t a_lo, a_hi, b_lo, b_hi;
    tl_box_span(a, d, &a_lo, &a_hi);
    tl_box_span(b, d, &b_lo, &b_hi);
    int64_t span = (a_hi > b_hi ? a_hi : b_hi) - (a_lo < b_lo ? a_lo : b_lo);
    int64_t coefficient = tl_affine_coefficient(&from, index);
    if (coefficient == 0 || step == 0 || coefficient > INT32_MAX || coefficient < -INT32_MAX || step > INT32_MAX)
      continue;
    int64_t moved = coefficient * step;
    if ((moved < 0 ? -moved : moved) > span) return true;
  }
  return false;
}

bool tl_accesses_never_meet(const tl_effect *before, const tl_effect *after) {
  if (!has_box(before) || !has_box(after) || before->buffer != after->buffer) return false;
  tl_box a = box_of(before);
  tl_box b = box_of(after);
  if (lie_apart(before, after, &a, &b)) return true;
  // Otherwise only different iterations may meet: one op, or two branches of which an iteration takes one.
  bool is_alone =
      before->op == after->op || (!tl_op_may_follow(before->op, after->op) && !tl_op_may_follow(after->op, before->op));
  if (!is_alone || loop_around(before->op) != loop_around(after->op)) return false;
  const tl_op *outermost = outermost_loop(after->op);
  for (const tl_op *loop = loop_around(after->op); loop; loop = loop_around(loop)) {
    if (!loop_moves_on(loop, outermost, &a, &b)) return false;
  }
  return true;
}
