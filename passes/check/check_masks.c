// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check-masks: warns of a running maximum that starts at -inf and of a tile that can be masked as a whole.
//
//   m = -inf;  for … { s = select(k < n, s, -inf);  m max= max(s, axis=1);  p = exp(s - m) }
//
// As long as all a row has seen is masked, m is -inf and s - m is -inf - -inf: NaN, which stays in the sums. A kernel
// is told unless the first iteration of the loop provably leaves an element of each row (a causal mask leaves the
// first), the exponential stands under a condition on m, or m is not what is subtracted. Changes nothing.
#include "passes/check/check_masks.h"

#include "passes/manager/passes.h"

enum { MAX_CHAIN = 8 };  // pure ops, or copies of tiles, that are followed

// Without the conversions and constant factors around a value.
static tl_value *stripped(tl_value *value) {
  for (int i = 0; i < MAX_CHAIN && value->def; i++) {
    const tl_op *op = value->def;
    bool scaled = op->code == TL_OP_MUL && tl_op_operand(op, 1)->def && tl_op_operand(op, 1)->def->code == TL_OP_CONST;
    if (!scaled && op->code != TL_OP_CAST) break;
    value = tl_op_operand(op, 0);
  }
  return value;
}

// The tile that a LOAD (under conversions and factors) reads, or NULL.
static const tl_op *loaded_tile(tl_value *value) {
  value = stripped(value);
  if (!value->def || value->def->code != TL_OP_LOAD) return NULL;
  return tl_buffer_root(tl_element_buffer(value->def));
}

static const tl_op *stored_tile(const tl_op *store) {
  return tl_buffer_root(tl_element_buffer(store));
}

static void collect_op(tl_op *op, void *user) {
  tl_mask_ops *ops = user;
  switch (op->code) {
    case TL_OP_STORE:
      tl_vec_push(&ops->stores, op);
      break;
    case TL_OP_FILL:
      tl_vec_push(&ops->fills, op);
      break;
    case TL_OP_COPY:
      tl_vec_push(&ops->copies, op);
      break;
    case TL_OP_REDUCE:
      tl_vec_push(&ops->reduces, op);
      break;
    case TL_OP_SUB:
      tl_vec_push(&ops->differences, op);
      break;
    default:
      break;
  }
}

// ---- the running maximum

// A maximum that a loop carries from iteration to iteration.
typedef struct running {
  const tl_op *loop;
  const tl_op *reduce;     // its other operand
  const tl_op *start;      // where it was set to -inf, or NULL: the loop's initial value
  const tl_op *tile;       // NULL: a scalar
  const tl_op *passed_on;  // an element in shared memory that a scalar goes through, or NULL
} running;

static const tl_op *max_into(const tl_mask_ops *ops, const tl_op *tile) {
  for (size_t i = 0; tile && i < ops->reduces.len; i++) {
    const tl_op *op = ops->reduces.items[i];
    if (tl_op_int(op, TL_ATTR_REDUCTION, 0) != TL_REDUCTION_MAX) continue;
    if (tl_buffer_root(tl_op_group_at(op, TL_GROUP_REDUCE_dst, 0)) == tile) return op;
  }
  return NULL;
}

// Where `tile` is set to -inf outside of `loop`.
static const tl_op *start_of(const tl_mask_ops *ops, const tl_op *tile, const tl_op *loop) {
  for (size_t i = 0; i < ops->fills.len; i++) {
    const tl_op *op = ops->fills.items[i];
    if (tl_buffer_root(tl_op_arg(op, TL_GROUP_FILL_buffer)) == tile && !tl_op_is_inside(op, loop) &&
        tl_is_minus_inf(tl_op_arg(op, TL_GROUP_FILL_value)))
      return op;
  }
  for (size_t i = 0; i < ops->stores.len; i++) {
    const tl_op *op = ops->stores.items[i];
    if (stored_tile(op) == tile && !tl_op_is_inside(op, loop) && tl_is_minus_inf(tl_op_arg(op, TL_GROUP_STORE_value)))
      return op;
  }
  return NULL;
}

// m[i] = max(m[i], d[i]) in a loop, where d is a reduction.
static bool running_tile(const tl_mask_ops *ops, const tl_op *tile, running *out) {
  for (size_t i = 0; tile && i < ops->stores.len; i++) {
    const tl_op *store = ops->stores.items[i];
    if (stored_tile(store) != tile) continue;
    const tl_op *max = tl_op_arg(store, TL_GROUP_STORE_value)->def;
    const tl_op *loop = tl_op_enclosing(store->parent->parent, TL_OP_FOR);
    if (!max || max->code != TL_OP_MAX || !loop) continue;
    for (uint32_t side = 0; side < 2; side++) {
      if (loaded_tile(tl_op_operand(max, side)) != tile) continue;
      *out = (running){.loop = loop, .tile = tile};
      out->reduce = max_into(ops, loaded_tile(tl_op_operand(max, 1 - side)));
      out->start = start_of(ops, tile, loop);
      if (out->reduce && out->start && tl_op_is_inside(out->reduce, loop)) return true;
    }
  }
  return false;
}

// max(carried, d) where the loop starts the carried value at -inf.
static bool running_max(const tl_mask_ops *ops, const tl_op *max, running *out) {
  if (!max || max->code != TL_OP_MAX) return false;
  for (uint32_t side = 0; side < 2; side++) {
    const tl_value *carried = tl_op_operand(max, side);
    const tl_op *loop = carried->block ? carried->block->parent : NULL;
    if (!loop || loop->code != TL_OP_FOR || carried->index == 0) continue;
    if (!tl_is_minus_inf(tl_op_group_at(loop, TL_GROUP_FOR_inits, carried->index - 1))) continue;
    *out = (running){.loop = loop};
    out->reduce = max_into(ops, loaded_tile(tl_op_operand(max, 1 - side)));
    if (out->reduce && tl_op_is_inside(out->reduce, loop)) return true;
  }
  return false;
}

// A `local` scalar: an SSA value, which a reduction over all axes reaches through an element of shared memory.
static bool running_scalar(const tl_mask_ops *ops, tl_value *value, running *out) {
  if (running_max(ops, value->def, out)) return true;
  const tl_op *tile = loaded_tile(value);
  for (size_t i = 0; tile && i < ops->stores.len; i++) {
    const tl_op *store = ops->stores.items[i];
    if (stored_tile(store) != tile || !running_max(ops, tl_op_arg(store, TL_GROUP_STORE_value)->def, out)) continue;
    out->passed_on = tile;
    return true;
  }
  return false;
}

static bool running_of(const tl_mask_ops *ops, tl_value *value, running *out) {
  value = stripped(value);
  return running_tile(ops, loaded_tile(value), out) || running_scalar(ops, value, out);
}

// ---- its use

// Whether the value comes from the maximum: a condition on it is the author's care for -inf.
static bool asks_for(const tl_value *value, const running *max, int depth) {
  const tl_op *op = value->def;
  if (!op || depth == 0) return !op && !max->tile && value->block == max->loop->regions[0] && value->index > 0;
  if (op->code == TL_OP_LOAD) {
    const tl_op *tile = tl_buffer_root(tl_element_buffer(op));
    return tile && (tile == max->tile || tile == max->passed_on);
  }
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (asks_for(tl_op_operand(op, i), max, depth - 1)) return true;
  return false;
}

static bool is_exponential(const tl_op *op) {
  if (op->code != TL_OP_MATH) return false;
  int fn = (int)tl_op_int(op, TL_ATTR_MATH, TL_MATH_COUNT);
  return fn == TL_MATH_EXP || fn == TL_MATH_EXP2;
}

// Whether the difference reaches an exponential whose result counts whatever the maximum is.
static bool reaches_exponential(const tl_value *value, const running *max, bool seen, int depth) {
  if (depth == 0) return false;
  bool reaches = false;
  for (const tl_use *use = value->uses; use; use = use->next) {
    const tl_op *op = use->owner;
    if (op->code == TL_OP_SELECT && asks_for(tl_op_arg(op, TL_GROUP_SELECT_condition), max, MAX_CHAIN)) return false;
    bool pure = (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) != 0 && op->num_results == 1;
    bool now = seen || is_exponential(op);
    if (pure)
      reaches = reaches_exponential(tl_op_result(op, 0), max, now, depth - 1) || reaches;
    else
      reaches = reaches || now;
  }
  return reaches;
}

static bool is_guarded(const tl_op *op, const running *max) {
  for (const tl_op *up = tl_op_enclosing(op, TL_OP_IF); up; up = tl_op_enclosing(up->parent->parent, TL_OP_IF))
    if (asks_for(tl_op_arg(up, TL_GROUP_IF_condition), max, MAX_CHAIN)) return true;
  return false;
}

// Whether the left side may be -inf too: the masked tile, or the maximum of the iteration before.
static bool may_be_minus_inf(const tl_mask_ops *ops, tl_value *value, const running *max) {
  value = stripped(value);
  const tl_op *tile = loaded_tile(value);
  if (!tile) return !max->tile && value->block == max->loop->regions[0];
  if (tile == tl_buffer_root(tl_op_group_at(max->reduce, TL_GROUP_REDUCE_src, 0))) return true;
  for (size_t i = 0; i < ops->stores.len; i++) {
    const tl_op *store = ops->stores.items[i];
    if (stored_tile(store) == tile && max->tile && loaded_tile(tl_op_arg(store, TL_GROUP_STORE_value)) == max->tile)
      return true;
  }
  return false;
}

static void report(tl_pass_context *context, const tl_op *op, const running *max, const tl_op *mask) {
  const char *name = max->tile ? tl_arena_printf(&context->scratch, "'%s'", tl_buffer_name(tl_op_result(max->tile, 0)))
                               : "the maximum";
  tl_diag *diag = tl_diag_report(context->diags, TL_DIAG_MASKED_MAXIMUM, op->loc,
                                 "NaN: %s starts at -inf, and where all elements are masked it stays there: "
                                 "-inf - -inf",
                                 name);
  tl_diag_add_note(context->diags, diag, mask->loc, "all elements of a row of the tile may be -inf from here");
  tl_diag_add_note(context->diags, diag, max->start ? max->start->loc : max->loop->loc, "the maximum starts at -inf");
  tl_diag_add_hint(context->diags, diag,
                   "start at a finite value such as -1.0e30, or take `select(%s == -inf, 0, …)` of the exponential",
                   max->tile ? tl_buffer_name(tl_op_result(max->tile, 0)) : "m");
}

static void check_difference(tl_pass_context *context, const tl_mask_ops *ops, const tl_op *op, const tl_op **told,
                             int32_t *num_told) {
  running max;
  enum { MOST = 16 };
  if (!running_of(ops, tl_op_operand(op, 1), &max)) return;
  for (int32_t i = 0; i < *num_told; i++)
    if (told[i] == max.reduce) return;
  if (*num_told == MOST || is_guarded(op, &max) || !may_be_minus_inf(ops, tl_op_operand(op, 0), &max)) return;
  if (!reaches_exponential(tl_op_result(op, 0), &max, false, MAX_CHAIN)) return;
  const tl_op *mask = tl_find_whole_mask(ops, max.reduce, max.loop);
  if (!mask) return;
  told[(*num_told)++] = max.reduce;
  report(context, op, &max, mask);
}

static void check_kernel(tl_pass_context *context, tl_op *kernel) {
  tl_mask_ops ops = {0};
  const tl_op *told[16];
  int32_t num_told = 0;
  tl_walk(kernel, collect_op, &ops);
  for (size_t i = 0; i < ops.differences.len; i++)
    check_difference(context, &ops, ops.differences.items[i], told, &num_told);
  tl_vec_fini(&ops.stores);
  tl_vec_fini(&ops.fills);
  tl_vec_fini(&ops.copies);
  tl_vec_fini(&ops.reduces);
  tl_vec_fini(&ops.differences);
}

tl_status tl_pass_check_masks(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) check_kernel(context, op);
  }
  return TL_OK;
}
