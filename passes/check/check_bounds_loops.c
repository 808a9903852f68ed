// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two mistakes of loops over tiles that bounds checks would silently mask: a trip count that was not divided by the
// tile's size, and parts that are no multiple of it.
#include "passes/check/check_bounds.h"

// A loop index in an access: index = rest + coefficient * k.
typedef struct loop_term {
  const tl_op *loop;
  int64_t coefficient;
  int64_t lower, step;
  int64_t trips;  // -1: known only at launch
} loop_term;

// Sums of a few numbers that are small in this sense have 64 bits.
static bool is_small(int64_t value) {
  return value > -((int64_t)1 << 60) && value < (int64_t)1 << 60;
}

static bool is_product_small(int64_t a, int64_t b) {
  int64_t product;
  return !__builtin_mul_overflow(a, b, &product) && is_small(product);
}

static bool loop_term_of(const tl_op *loop, int64_t coefficient, loop_term *out) {
  *out = (loop_term){.loop = loop, .coefficient = coefficient, .trips = -1};
  int64_t upper = 0;
  if (!tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_lower), &out->lower) ||
      !tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &out->step) || out->step <= 0 ||
      !is_product_small(coefficient, out->lower) || !is_product_small(coefficient, out->step)) {
    return false;
  }
  if (tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_upper), &upper)) {
    if (!is_product_small(coefficient, upper)) return false;
    out->trips = tl_trip_count(out->lower, upper, out->step);
  }
  return coefficient > 0;
}

// ---- conditions: an access behind one that changes with the loop's iterations need not happen in all of them

// Only so many values of a condition's computation are followed; what is not may change.
enum { CONDITION_VISITS = 200, MAX_USES_DEPTH = 8 };

static bool varies(const tl_value *value, const tl_op *loop, int *visits);

static bool bounds_vary(const tl_op *inner, const tl_op *loop, int *visits) {
  return varies(tl_op_arg(inner, TL_GROUP_FOR_lower), loop, visits) ||
         varies(tl_op_arg(inner, TL_GROUP_FOR_upper), loop, visits) ||
         varies(tl_op_arg(inner, TL_GROUP_FOR_step), loop, visits);
}

static bool varies(const tl_value *value, const tl_op *loop, int *visits) {
  const tl_op *op = value->def, *place = op ? op : value->block->parent;
  if (!op && place == loop) return true;
  if (!tl_op_is_inside(place, loop)) return false;
  if (--*visits < 0) return true;
  if (!op && place->code == TL_OP_PARALLEL) return false;
  if (!op) return place->code != TL_OP_FOR || value->index != 0 || bounds_vary(place, loop, visits);
  bool computes = (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) != 0 && op->num_regions == 0;
  if (op->code == TL_OP_LOAD) {
    const tl_op *root = tl_buffer_root(tl_element_buffer(op));
    computes = root && root->code == TL_OP_TENSOR && tl_op_int(root, TL_ATTR_ACCESS, TL_ACCESS_INOUT) == TL_ACCESS_IN;
  }
  bool found = !computes;
  for (uint32_t i = 0; i < op->num_operands && !found; i++) found = varies(tl_op_operand(op, i), loop, visits);
  return found;
}

static bool is_varying(const tl_value *value, const tl_op *loop) {
  int visits = CONDITION_VISITS;
  return varies(value, loop, &visits);
}

// Whether whatever uses the value chooses first: `X[n] if n < 3 else 0`, `n < 3 and X[n] > 0`.
static bool is_chosen(const tl_value *value, const tl_op *loop, int depth) {
  if (!value->uses || depth == 0) return false;
  for (const tl_use *use = value->uses; use; use = use->next) {
    const tl_op *user = use->owner;
    bool is_choice = user->code == TL_OP_SELECT || user->code == TL_OP_AND || user->code == TL_OP_OR;
    const tl_value *other = is_choice ? tl_op_operand(user, 0) : NULL;
    if (other == value && user->code != TL_OP_SELECT) other = tl_op_operand(user, 1);
    if (other && other != value && is_varying(other, loop)) continue;
    bool computes = (tl_op_info_of(user->code)->flags & TL_OPFLAG_PURE) != 0 && user->num_results == 1;
    if (!computes || !is_chosen(tl_op_result(user, 0), loop, depth - 1)) return false;
  }
  return true;
}

static bool is_conditional(const tl_op *op, const tl_op *loop) {
  for (const tl_op *around = op->parent->parent; around != loop; around = around->parent->parent) {
    if (around->code == TL_OP_IF && is_varying(tl_op_arg(around, TL_GROUP_IF_condition), loop)) return true;
    int visits = CONDITION_VISITS;
    if (around->code == TL_OP_FOR && (tl_op_has(around, TL_ATTR_WHILE) || bounds_vary(around, loop, &visits)))
      return true;
  }
  return op->code == TL_OP_LOAD && is_chosen(tl_op_result(op, 0), loop, MAX_USES_DEPTH);
}

// ---- warnings

static const char *loop_name(const tl_op *loop) {
  const char *name = loop->regions[0]->args[0]->name;
  return name ? name : "the loop index";
}

static void report_past(tl_pass_context *context, const tl_op *op, const tl_value *buffer, int32_t dim,
                        const loop_term *term, const char *first) {
  tl_diag *diag = tl_diag_report(context->diags, TL_DIAG_LOOP_PAST_TENSOR, op->loc,
                                 "the loop walks past dim %d of '%s': from %s = %s on every access is out of bounds",
                                 dim, tl_buffer_name(buffer), loop_name(term->loop), first);
  tl_diag_add_note(context->diags, diag, term->loop->loc, "the loop");
  long long move = term->coefficient * term->step;
  if (term->step > 1 && term->coefficient == term->step) {
    tl_diag_add_hint(context->diags, diag, "%s already moves by %lld and is multiplied by it again",
                     loop_name(term->loop), (long long)term->step);
  } else if (move > 1 || move < -1) {
    tl_diag_add_hint(context->diags, diag, "each iteration moves by %lld: is ceildiv(…, %lld) meant as trip count?",
                     move, move);
  }
}

// Constant dims: the first iteration for which even the smallest index lies past the end.
static void check_past(tl_pass_context *context, const tl_op *op, const tl_value *buffer, int32_t dim,
                       const loop_term *term, int64_t rest_low, tl_value *limit) {
  int64_t extent = buffer->type->dims[dim];
  if (limit && !tl_value_const_int(limit, &extent)) extent = -1;
  if (extent >= 0 && is_small(extent) && term->trips > 0 && is_small(rest_low)) {
    int64_t start = rest_low + term->coefficient * term->lower, move = term->coefficient * term->step;
    int64_t first = start >= extent ? 0 : (extent - start + move - 1) / move;
    long long at = term->lower + first * term->step;
    // Copies by hand run ahead of their use: the last few have nothing left to bring.
    enum { MAX_AHEAD = 8 };
    if (tl_op_has(op, TL_ATTR_BY_HAND) && term->trips - first <= MAX_AHEAD) return;
    if (first < term->trips && first > 0) {
      report_past(context, op, buffer, dim, term, tl_arena_printf(&context->scratch, "%lld", at));
    }
    return;
  }
  // Known only at launch: the loop runs to the dim itself although each iteration moves by more than one.
  if (limit && rest_low == 0 && term->lower == 0 && term->step == 1 && term->coefficient > 1 &&
      tl_op_arg(term->loop, TL_GROUP_FOR_upper) == limit) {
    report_past(context, op, buffer, dim, term,
                tl_arena_printf(&context->scratch, "ceildiv(%s, %lld)", limit->name ? limit->name : "the dim",
                                (long long)term->coefficient));
  }
}

// Parts of `part` elements, each walked in tiles of `move`: the last tile sticks into the next part.
static void check_neighbour(tl_pass_context *context, const tl_box *box, int32_t dim, const tl_affine *affine,
                            const loop_term *term) {
  int64_t lo = 0, hi = 0;
  tl_box_span(box, dim, &lo, &hi);
  int64_t move = term->coefficient * term->step, extent = hi - lo + 1;
  if (term->trips <= 0 || extent != move || tl_box_limit(box, dim)) return;
  for (int32_t i = 0; i < affine->num_terms; i++) {
    tl_value *symbol = affine->terms[i].symbol;
    int64_t part = affine->terms[i].coefficient;
    bool is_part = symbol->def && symbol->def->code == TL_OP_GRID;
    tl_range range = tl_value_range(symbol);
    if (!is_part || part <= move || range.hi <= 0) continue;
    if (term->trips * move > part && (term->trips - 1) * move < part) {
      tl_diag *diag = tl_diag_report(context->diags, TL_DIAG_NEIGHBOUR_ROWS, box->op->loc,
                                     "dim %d of '%s' is cut into parts of %lld, which is no multiple of the tile's "
                                     "%lld: the last tile also covers "
                                     "%lld elements of the next part",
                                     dim, tl_buffer_name(box->buffer), (long long)part, (long long)move,
                                     (long long)(term->trips * move - part));
      tl_diag_add_hint(context->diags, diag, "bound the slice (lo:hi) or require the part to be a multiple of %lld",
                       (long long)move);
    }
  }
}

// Smallest value of the index without the loop's term; INT64_MIN when unknown.
static int64_t rest_low(const tl_affine *affine, const tl_value *loop_index) {
  tl_affine rest = *affine;
  int32_t len = 0;
  for (int32_t i = 0; i < rest.num_terms; i++) {
    if (rest.terms[i].symbol != loop_index) rest.terms[len++] = rest.terms[i];
  }
  rest.num_terms = len;
  return tl_affine_range(&rest).lo;
}

static void check_index(tl_pass_context *context, const tl_op *op, const tl_value *buffer, int32_t dim, tl_value *index,
                        int64_t span_low, tl_value *limit, const tl_box *box) {
  tl_affine affine = tl_affine_of(index);
  if (!affine.valid) return;
  for (const tl_op *up = op->parent->parent; up; up = up->parent ? up->parent->parent : NULL) {
    // A loop that ends itself need not reach its bound.
    if (up->code != TL_OP_FOR || tl_op_has(up, TL_ATTR_WHILE)) continue;
    const tl_value *loop_index = up->regions[0]->args[0];
    loop_term term;
    if (!loop_term_of(up, tl_affine_coefficient(&affine, loop_index), &term)) continue;
    if (is_conditional(op, up)) continue;
    int64_t low = rest_low(&affine, loop_index);
    check_past(context, op, buffer, dim, &term, low == INT64_MIN ? low : low + span_low, limit);
    if (box) check_neighbour(context, box, dim, &affine, &term);
  }
}

void tl_bounds_of_box_loops(tl_pass_context *context, const tl_box *box) {
  if (!tl_buffer_is_global(box->buffer)) return;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    int64_t lo = 0, hi = 0;
    tl_box_span(box, d, &lo, &hi);
    tl_value *limit = tl_box_limit(box, d);
    if (!limit) limit = tl_buffer_dim_value(box->buffer, d);
    check_index(context, box->op, box->buffer, d, tl_box_offset(box, d), lo, limit, box);
  }
}

void tl_bounds_of_element_loops(tl_pass_context *context, const tl_op *op) {
  tl_value *buffer = tl_element_buffer(op);
  if (!tl_buffer_is_global(buffer)) return;
  for (uint32_t d = 0; d < tl_element_rank(op); d++) {
    check_index(context, op, buffer, (int32_t)d, tl_element_index(op, d), 0, tl_buffer_dim_value(buffer, (int32_t)d),
                NULL);
  }
}
