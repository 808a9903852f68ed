// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the first iteration of a loop may mask all elements that a reduction combines. The condition of the mask is
// looked at for the first and for the last element along the reduced axes, with the loop's index at its lower bound.
#include "passes/check/check_masks.h"

#include <math.h>

enum { MAX_DEPTH = 12, MAX_TILES = 4 };

bool tl_is_minus_inf(const tl_value *value) {
  const tl_op *op = value ? value->def : NULL;
  if (op && op->code == TL_OP_CAST) return tl_is_minus_inf(tl_op_operand(op, 0));
  if (!op || op->code != TL_OP_CONST) return false;
  const tl_attr *attr = tl_op_attr(op, TL_ATTR_VALUE);
  return attr->is_float && isinf(attr->v.f) && attr->v.f < 0;
}

// The element that is looked at: which indices of a parallel have which values.
typedef struct first_iteration {
  const tl_op *loop;
  const tl_op *parallel;      // NULL for a copy
  const int64_t *extents;     // of the parallel
  bool reduced[TL_MAX_RANK];  // per index of the parallel: whether the reduction runs along it
  bool last;                  // the last element along the reduced axes, else the first
} first_iteration;

static tl_affine constant_form(int64_t value) {
  return (tl_affine){.valid = true, .constant = value};
}

static tl_affine scaled(tl_affine form, int64_t factor) {
  bool bad = __builtin_mul_overflow(form.constant, factor, &form.constant);
  for (int32_t i = 0; i < form.num_terms; i++)
    bad = __builtin_mul_overflow(form.terms[i].coefficient, factor, &form.terms[i].coefficient) || bad;
  form.valid = form.valid && !bad;
  return form;
}

// The value of a symbol at the element; false when it stays a symbol.
static bool value_of(const first_iteration *iteration, const tl_value *symbol, tl_affine *out) {
  if (!symbol->block) return false;
  if (symbol->block == iteration->loop->regions[0] && symbol->index == 0) {
    *out = tl_affine_of(tl_op_arg(iteration->loop, TL_GROUP_FOR_lower));
    return out->valid;
  }
  if (iteration->parallel && symbol->block == iteration->parallel->regions[0] && iteration->reduced[symbol->index]) {
    *out = constant_form(iteration->last ? iteration->extents[symbol->index] - 1 : 0);
    return true;
  }
  return false;
}

static tl_affine at_element(const first_iteration *iteration, tl_value *value) {
  tl_affine form = tl_affine_of(value), sum = constant_form(form.constant);
  if (!form.valid) return form;
  for (int32_t i = 0; i < form.num_terms && sum.valid; i++) {
    tl_affine term = {.valid = true, .num_terms = 1}, known;
    term.terms[0].symbol = form.terms[i].symbol;
    term.terms[0].coefficient = 1;
    if (value_of(iteration, form.terms[i].symbol, &known)) term = known;
    term = scaled(term, form.terms[i].coefficient);
    sum = tl_affine_add(&sum, &term);
  }
  return sum;
}

// One value, or two reads of one element.
static bool is_same(tl_value *a, tl_value *b) {
  if (a == b) return true;
  const tl_op *x = a->def, *y = b->def;
  if (!x || !y || x->code != y->code) return false;
  if (x->code == TL_OP_CAST) return is_same(tl_op_operand(x, 0), tl_op_operand(y, 0));
  if (x->code != TL_OP_LOAD || x->num_operands != y->num_operands || tl_op_operand(x, 0) != tl_op_operand(y, 0))
    return false;
  for (uint32_t i = 1; i < x->num_operands; i++)
    if (tl_op_operand(x, i) != tl_op_operand(y, i) && !tl_prove_equal(tl_op_operand(x, i), tl_op_operand(y, i)))
      return false;
  return true;
}

// Whether the loop's bound depends on the value: then the loop's first iteration says that it is large enough.
static bool bounds_loop(tl_value *bound, tl_value *value, int depth) {
  if (is_same(bound, value)) return true;
  const tl_op *op = bound->def;
  if (!op || depth == 0 || !(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE)) return false;
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (bounds_loop(tl_op_operand(op, i), value, depth - 1)) return true;
  return false;
}

static bool not_negative(const first_iteration *iteration, const tl_affine *form, int depth) {
  if (!form->valid) return false;
  if (tl_affine_range(form).lo >= 0) return true;
  // The smaller of two: both must be large enough. What the loop runs to is, in its first iteration.
  for (int32_t i = 0; i < form->num_terms && depth > 0; i++) {
    tl_value *symbol = form->terms[i].symbol;
    if (form->terms[i].coefficient <= 0) continue;
    bool one = form->terms[i].coefficient == 1 && form->constant >= -1 && form->num_terms == 1;
    if (one && bounds_loop(tl_op_arg(iteration->loop, TL_GROUP_FOR_upper), symbol, MAX_DEPTH)) return true;
    if (!symbol->def || symbol->def->code != TL_OP_MIN) continue;
    tl_affine self = {.valid = true, .num_terms = 1};
    self.terms[0].symbol = symbol;
    self.terms[0].coefficient = form->terms[i].coefficient;
    tl_affine rest = tl_affine_sub(form, &self);
    bool both = true;
    for (uint32_t side = 0; side < 2 && both; side++) {
      tl_affine choice = scaled(at_element(iteration, tl_op_operand(symbol->def, side)), form->terms[i].coefficient);
      tl_affine with = tl_affine_add(&rest, &choice);
      both = choice.valid && not_negative(iteration, &with, depth - 1);
    }
    if (both) return true;
  }
  return false;
}

// a <= b, or a < b.
static bool ordered(const first_iteration *iteration, tl_value *a, tl_value *b, bool strict) {
  tl_affine x = at_element(iteration, a), y = at_element(iteration, b);
  if (!x.valid || !y.valid) return false;
  tl_affine difference = tl_affine_sub(&y, &x);
  if (!difference.valid || difference.constant == INT64_MIN) return false;
  difference.constant -= strict;
  return not_negative(iteration, &difference, MAX_DEPTH);
}

static bool compare_holds(const first_iteration *iteration, const tl_op *op, bool wanted) {
  tl_value *a = tl_op_operand(op, 0), *b = tl_op_operand(op, 1);
  bool integral =
      a->type->kind == TL_TYPE_INDEX || (a->type->kind == TL_TYPE_SCALAR && tl_dtype_is_int(a->type->dtype));
  if (!integral) return false;
  switch ((enum tl_cmp)tl_op_int(op, TL_ATTR_CMP, TL_CMP_COUNT)) {
    case TL_CMP_LT:
      return wanted ? ordered(iteration, a, b, true) : ordered(iteration, b, a, false);
    case TL_CMP_LE:
      return wanted ? ordered(iteration, a, b, false) : ordered(iteration, b, a, true);
    case TL_CMP_GT:
      return wanted ? ordered(iteration, b, a, true) : ordered(iteration, a, b, false);
    case TL_CMP_GE:
      return wanted ? ordered(iteration, b, a, false) : ordered(iteration, a, b, true);
    case TL_CMP_EQ:
      return wanted ? ordered(iteration, a, b, false) && ordered(iteration, b, a, false)
                    : ordered(iteration, a, b, true) || ordered(iteration, b, a, true);
    case TL_CMP_NE:
      return wanted ? ordered(iteration, a, b, true) || ordered(iteration, b, a, true)
                    : ordered(iteration, a, b, false) && ordered(iteration, b, a, false);
    case TL_CMP_COUNT:
      break;
  }
  return false;
}

// Whether the condition is provably `wanted` at the element, for every row and block.
static bool holds(const first_iteration *iteration, const tl_value *condition, bool wanted, int depth) {
  const tl_op *op = condition->def;
  int64_t constant;
  if (tl_value_const_int(condition, &constant)) return (constant != 0) == wanted;
  if (!op || depth == 0) return false;
  if (op->code == TL_OP_NOT) return holds(iteration, tl_op_operand(op, 0), !wanted, depth - 1);
  if (op->code == TL_OP_AND || op->code == TL_OP_OR) {
    bool a = holds(iteration, tl_op_operand(op, 0), wanted, depth - 1);
    bool both = (op->code == TL_OP_AND) == wanted;
    if (a != both) return a;
    return holds(iteration, tl_op_operand(op, 1), wanted, depth - 1);
  }
  return op->code == TL_OP_CMP && compare_holds(iteration, op, wanted);
}

// ---- the places that mask

// Marks the indices of the parallel around `store` that subscript the reduced axes of the tile.
static bool begin_iteration(first_iteration *iteration, const tl_op *store, const tl_op *reduce) {
  int32_t num_axes = 0, num_extents = 0;
  const int64_t *axes = tl_op_ints(reduce, TL_ATTR_AXES, &num_axes);
  iteration->parallel = tl_op_enclosing(store, TL_OP_PARALLEL);
  if (!iteration->parallel) return false;
  iteration->extents = tl_op_ints(iteration->parallel, TL_ATTR_EXTENTS, &num_extents);
  for (int32_t i = 0; i < num_axes; i++) {
    if ((uint32_t)axes[i] >= tl_element_rank(store)) return false;
    const tl_value *index = tl_element_index(store, (uint32_t)axes[i]);
    if (index->block == iteration->parallel->regions[0]) iteration->reduced[index->index] = true;
  }
  return true;
}

// s[i, j] = select(c, s[i, j], -inf), or -inf under conditions: whether an element certainly keeps its value.
static bool element_stays(first_iteration *iteration, const tl_op *store) {
  const tl_op *value = tl_op_arg(store, TL_GROUP_STORE_value)->def;
  if (value && value->code == TL_OP_SELECT) {
    bool masks_if = tl_is_minus_inf(tl_op_arg(value, TL_GROUP_SELECT_a));
    return holds(iteration, tl_op_arg(value, TL_GROUP_SELECT_condition), !masks_if, MAX_DEPTH);
  }
  for (const tl_op *op = store; op != iteration->parallel; op = op->parent->parent) {
    const tl_op *around = op->parent->parent;
    if (around->code != TL_OP_IF) continue;
    bool is_then = op->parent == around->regions[0];
    if (holds(iteration, tl_op_arg(around, TL_GROUP_IF_condition), !is_then, MAX_DEPTH)) return true;
  }
  return false;
}

static bool store_masks(const tl_op *store) {
  const tl_value *stored = tl_op_arg(store, TL_GROUP_STORE_value);
  const tl_op *value = stored->def;
  if (value && value->code == TL_OP_SELECT)
    return tl_is_minus_inf(tl_op_arg(value, TL_GROUP_SELECT_a)) || tl_is_minus_inf(tl_op_arg(value, TL_GROUP_SELECT_b));
  const tl_op *around = store->parent->parent;
  return tl_is_minus_inf(stored) && around->code == TL_OP_IF && tl_op_enclosing(around, TL_OP_PARALLEL);
}

static bool store_may_mask_all(const tl_op *store, const tl_op *reduce, const tl_op *loop) {
  first_iteration iteration = {.loop = loop};
  if (!store_masks(store) || !begin_iteration(&iteration, store, reduce)) return false;
  if (element_stays(&iteration, store)) return false;
  iteration.last = true;
  return !element_stays(&iteration, store);
}

// A copy whose `pad` is -inf: whether along a reduced axis even the first element may lie outside. Rows that are
// outside as a whole are not looked at: nothing of them is stored.
static bool copy_may_mask_all(tl_op *copy, const tl_op *reduce, const tl_op *loop) {
  tl_value *pad = tl_op_arg(copy, TL_GROUP_COPY_pad);
  if (!pad || !tl_is_minus_inf(pad)) return false;
  tl_box source = tl_box_source(copy), target = tl_box_destination(copy);
  first_iteration iteration = {.loop = loop};
  int32_t num_axes = 0;
  const int64_t *axes = tl_op_ints(reduce, TL_ATTR_AXES, &num_axes);
  for (int32_t i = 0; i < num_axes; i++) {
    int32_t t = axes[i] < target.buffer_rank ? target.tile_dim[axes[i]] : -1;
    if (t < 0) continue;
    int32_t d = source.dims[t];
    tl_affine first = at_element(&iteration, tl_box_offset(&source, d)), end = {0};
    tl_value *limit = tl_box_limit(&source, d);
    if (!limit) limit = tl_buffer_dim_value(source.buffer, d);
    int64_t dim = source.buffer->type->dims[d];
    end = limit ? at_element(&iteration, limit) : constant_form(dim);
    tl_affine room = tl_affine_sub(&end, &first);
    if (!first.valid || !end.valid || !room.valid || room.constant == INT64_MIN) return true;
    room.constant -= 1;
    if (!not_negative(&iteration, &first, MAX_DEPTH) || !not_negative(&iteration, &room, MAX_DEPTH)) return true;
  }
  return false;
}

// The tile that a store takes its values from when it only converts or scales them, or NULL.
static const tl_op *source_tile(const tl_op *store) {
  const tl_value *value = tl_op_arg(store, TL_GROUP_STORE_value);
  for (int i = 0; i < MAX_DEPTH && value->def; i++) {
    const tl_op *op = value->def;
    if (op->code == TL_OP_LOAD) return tl_buffer_root(tl_element_buffer(op));
    if (op->code != TL_OP_CAST && op->code != TL_OP_MUL && op->code != TL_OP_ADD) return NULL;
    value = tl_op_operand(op, 0);
  }
  return NULL;
}

static const tl_op *mask_of_tile(const tl_mask_ops *ops, const tl_op *tile, const tl_op *reduce, const tl_op *loop,
                                 int depth) {
  for (size_t i = 0; i < ops->copies.len; i++) {
    tl_op *copy = ops->copies.items[i];
    bool hits = tl_op_is_inside(copy, loop) && tl_buffer_root(tl_op_arg(copy, TL_GROUP_COPY_dst)) == tile;
    if (hits && copy_may_mask_all(copy, reduce, loop)) return copy;
  }
  for (size_t i = 0; i < ops->stores.len; i++) {
    const tl_op *store = ops->stores.items[i];
    if (!tl_op_is_inside(store, loop) || tl_buffer_root(tl_element_buffer(store)) != tile) continue;
    if (store_may_mask_all(store, reduce, loop)) return store;
    const tl_op *source = source_tile(store);
    if (!source || source == tile || depth == 0) continue;
    const tl_op *found = mask_of_tile(ops, source, reduce, loop, depth - 1);
    if (found) return found;
  }
  return NULL;
}

const tl_op *tl_find_whole_mask(const tl_mask_ops *ops, const tl_op *reduce, const tl_op *loop) {
  const tl_op *tile = tl_buffer_root(tl_op_group_at(reduce, TL_GROUP_REDUCE_src, 0));
  return tile ? mask_of_tile(ops, tile, reduce, loop, MAX_TILES) : NULL;
}
