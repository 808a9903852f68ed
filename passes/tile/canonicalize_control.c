// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of canonicalize that changes control flow: decided branches, loops that run never or once, complete
// unrolling, and branches that are cheaper as selects.
#include "ir/index/affine.h"
#include "passes/tile/canonicalize.h"

// Moves the ops of `block` (without its terminator) before `before` and replaces the results of `before` by what the
// terminator yields.
static void splice(tl_op *before, tl_block *block) {
  tl_op *yield = tl_block_terminator(block);
  while (block->first && block->first != yield) tl_op_move_before(block->first, before);
  for (uint32_t i = 0; yield && i < before->num_results; i++) {
    tl_value_replace_uses(tl_op_result(before, i), tl_op_operand(yield, i));
  }
}

static bool decide_if(tl_op *op) {
  int64_t truth = 0;
  if (!tl_value_const_int(tl_op_arg(op, TL_GROUP_IF_condition), &truth)) return false;
  tl_block *taken = op->regions[truth ? 0 : 1];
  if (taken && taken->first) splice(op, taken);
  tl_op_erase(op);
  return true;
}

// How often one thread does what an op says once: for its share of the elements of a parallel, a copy or a tile.
static int64_t share_of_thread(const tl_op *op, int64_t threads) {
  enum { COPIED_AT_ONCE = 4, MULTIPLIED_AT_ONCE = 64 };
  int64_t elements = 1, at_once = 1;
  const tl_attr *extents = tl_op_attr(op, TL_ATTR_EXTENTS);
  for (int32_t i = 0; extents && i < extents->v.ints.len; i++) elements *= extents->v.ints.items[i];
  if (op->code == TL_OP_COPY) at_once = COPIED_AT_ONCE;
  if (op->code == TL_OP_FILL || op->code == TL_OP_REDUCE || op->code == TL_OP_SCAN || op->code == TL_OP_GEMM)
    elements = tl_type_num_elements(tl_op_operand(op, 0)->type);
  if (op->code == TL_OP_GEMM) {
    const tl_type *a = tl_op_arg(op, TL_GROUP_GEMM_a)->type;
    elements *= a->dims[tl_op_has(op, TL_ATTR_TRANS_A) ? 0 : 1];
    at_once = MULTIPLIED_AT_ONCE;
  }
  int64_t share = (elements + threads * at_once - 1) / (threads * at_once);
  return share > INT32_MAX ? INT32_MAX : share > 1 ? share : 1;
}

// How often the body of a loop is written out: by the expansion of a loop inside another one that is expanded first, or
// by the backend for a factor.
static int64_t copies_of_body(const tl_op *loop) {
  tl_constant_loop known;
  int64_t factor = tl_op_int(loop, TL_ATTR_UNROLL, 0);
  bool is_constant = tl_loop_is_constant(loop, &known);
  if (factor > 1) return is_constant && known.trips < factor ? known.trips : factor;
  if (factor != -1 || is_constant) return 1;
  // Its bounds depend on the loops around it: at most as many iterations as they allow.
  int64_t step, distance;
  if (!tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step) || step == 0 || step == INT64_MIN) return 1;
  tl_range lower = tl_value_range(tl_op_arg(loop, TL_GROUP_FOR_lower));
  tl_range upper = tl_value_range(tl_op_arg(loop, TL_GROUP_FOR_upper));
  bool is_bounded = step > 0 ? !__builtin_sub_overflow(upper.hi, lower.lo, &distance)
                             : !__builtin_sub_overflow(lower.hi, upper.lo, &distance);
  int64_t most = is_bounded && distance > 0 ? distance / (step > 0 ? step : -step) : 1;
  return most < 1 ? 1 : most < TL_UNROLL_MAX_OPS ? most : TL_UNROLL_MAX_OPS;
}

// Operations that one thread does in a block, about: what is expanded once an iteration becomes as much code.
static int64_t count_code(const tl_block *block, int64_t threads) {
  int64_t count = 0;
  for (const tl_op *op = block ? block->first : NULL; op; op = op->next) {
    int64_t inside = 1;
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) inside += count_code(op->regions[r], threads);
    }
    if (op->code == TL_OP_FOR) inside *= copies_of_body(op);
    if (inside > INT32_MAX) return INT32_MAX;
    count += inside * share_of_thread(op, threads);
    if (count > INT32_MAX) return INT32_MAX;
  }
  return count;
}

static void replace_by_inits(tl_op *op) {
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_value_replace_uses(tl_op_result(op, i), tl_op_group_at(op, TL_GROUP_FOR_inits, i));
  }
  tl_op_erase(op);
}

// One iteration of a loop that may end itself: `if` it still runs, the body; else what was carried stays.
static void expand_iteration(tl_pass_context *context, tl_builder *builder, const tl_op *op, tl_value_map *map,
                             tl_value **carried) {
  const tl_type **types = TL_NEW_ARRAY(&context->scratch, const tl_type *, op->num_results);
  const tl_op *yield = tl_block_terminator(op->regions[0]);
  for (uint32_t i = 0; i < op->num_results; i++) types[i] = tl_op_result(op, i)->type;
  tl_group group = TL_GROUP_OF(carried[0]);
  tl_op *iteration = tl_build(builder, TL_OP_IF, &group, types, op->num_results);
  tl_builder inside;
  tl_builder_at_end(&inside, builder->module, iteration->regions[0]);
  for (const tl_op *inner = op->regions[0]->first; inner != yield; inner = inner->next)
    tl_op_clone(&inside, inner, map);
  tl_value **next = TL_NEW_ARRAY(&context->scratch, tl_value *, op->num_results);
  for (uint32_t i = 0; i < op->num_results; i++) next[i] = tl_value_map_get(map, tl_op_operand(yield, i));
  inside.loc = op->loc;
  tl_build_yield(&inside, next, op->num_results);
  tl_builder_at_end(&inside, builder->module, iteration->regions[1]);
  inside.loc = op->loc;
  tl_build_yield(&inside, carried, op->num_results);
  for (uint32_t i = 0; i < op->num_results; i++) carried[i] = tl_op_result(iteration, i);
}

// Writes the body out once for every iteration before the loop, then removes the loop.
static void expand_loop(tl_pass_context *context, tl_op *op, const tl_constant_loop *loop) {
  tl_block *body = op->regions[0];
  const tl_op *yield = tl_block_terminator(body);
  tl_value **carried = TL_NEW_ARRAY(&context->scratch, tl_value *, op->num_results + 1);
  for (uint32_t i = 0; i < op->num_results; i++) carried[i] = tl_op_group_at(op, TL_GROUP_FOR_inits, i);
  tl_builder builder;
  tl_builder_before(&builder, context->module, op);
  for (int64_t trip = 0; trip < loop->trips; trip++) {
    tl_value_map map = {0};
    builder.loc = op->loc;
    tl_value_map_set(&map, body->args[0], tl_build_index(&builder, loop->lower + trip * loop->step));
    for (uint32_t i = 0; i < op->num_results; i++) tl_value_map_set(&map, body->args[i + 1], carried[i]);
    if (tl_op_has(op, TL_ATTR_WHILE)) {
      expand_iteration(context, &builder, op, &map, carried);
    } else {
      for (const tl_op *inner = body->first; inner != yield; inner = inner->next) tl_op_clone(&builder, inner, &map);
      for (uint32_t i = 0; i < op->num_results; i++) carried[i] = tl_value_map_get(&map, tl_op_operand(yield, i));
    }
    tl_value_map_fini(&map);
  }
  for (uint32_t i = 0; i < op->num_results; i++) tl_value_replace_uses(tl_op_result(op, i), carried[i]);
  tl_op_erase(op);
}

// Loops inside one that stays, and that cannot be expanded without it, stay as well.
static void keep_dependent(tl_op *op, void *user) {
  (void)user;
  tl_constant_loop known;
  if (op->code == TL_OP_FOR && tl_op_int(op, TL_ATTR_UNROLL, 0) == -1 && !tl_loop_is_constant(op, &known))
    tl_op_remove_attr(op, TL_ATTR_UNROLL);
}

// To be expanded, but no loop around it made the bounds constant.
static void refuse_unknown_bounds(tl_op *op, void *user) {
  tl_pass_context *context = user;
  tl_constant_loop known;
  if (op->code != TL_OP_FOR || tl_op_int(op, TL_ATTR_UNROLL, 0) != -1 || tl_loop_is_constant(op, &known)) return;
  tl_diag_report(context->diags, TL_DIAG_LOOP_RANGE, op->loc,
                 "a completely unrolled loop needs bounds known at compile time");
  tl_op_remove_attr(op, TL_ATTR_UNROLL);
}

void tl_canonicalize_validate_unrolled(tl_pass_context *context, tl_op *kernel) {
  tl_walk(kernel, refuse_unknown_bounds, context);
}

static bool simplify_for(tl_pass_context *context, tl_op *op) {
  tl_constant_loop loop;
  if (!tl_loop_is_constant(op, &loop)) {
    // Bounds that are no constants may still be in order: lower >= upper never runs.
    int64_t step = 0;
    bool upwards = tl_value_const_int(tl_op_arg(op, TL_GROUP_FOR_step), &step) && step > 0;
    if (!upwards || !tl_prove_le(tl_op_arg(op, TL_GROUP_FOR_upper), tl_op_arg(op, TL_GROUP_FOR_lower))) return false;
    replace_by_inits(op);
    return true;
  }
  if (loop.trips == 0) {
    replace_by_inits(op);
    return true;
  }
  if (tl_op_int(op, TL_ATTR_UNROLL, 0) != -1) return false;
  int64_t code = count_code(op->regions[0], tl_op_threads(op));
  if (loop.trips > TL_UNROLL_MAX_TRIPS || loop.trips * code > TL_UNROLL_MAX_OPS) {
    tl_diag_report(
        context->diags, TL_DIAG_UNROLL_LIMIT, op->loc,
        "not unrolled: %lld iterations of about %lld operations a thread (the limit is %d iterations, and %d "
        "operations in all of them)",
        (long long)loop.trips, (long long)code, TL_UNROLL_MAX_TRIPS, TL_UNROLL_MAX_OPS);
    tl_op_remove_attr(op, TL_ATTR_UNROLL);
    tl_walk(op, keep_dependent, NULL);
    return true;
  }
  expand_loop(context, op, &loop);
  return true;
}

// Counts statements in `block` and below into `*count`; returns the first past the limit, or NULL.
static tl_op *find_excess(const tl_block *block, int *count) {
  for (tl_op *op = block->first; op; op = op->next) {
    bool is_parallel = op->code == TL_OP_PARALLEL;
    bool counts = is_parallel || (tl_op_info_of(op->code)->flags & (TL_OPFLAG_READ | TL_OPFLAG_WRITE));
    if (counts && ++*count > TL_MAX_STATEMENTS) return op;
    for (uint32_t r = 0; r < op->num_regions && !is_parallel; r++) {
      tl_op *excess = op->regions[r] ? find_excess(op->regions[r], count) : NULL;
      if (excess) return excess;
    }
  }
  return NULL;
}

void tl_canonicalize_validate_statements(tl_pass_context *context, tl_op *kernel) {
  int count = 0;
  const tl_op *excess = find_excess(kernel->regions[0], &count);
  if (!excess) return;
  tl_diag *diag = tl_diag_report(context->diags, TL_DIAG_STATEMENT_LIMIT, excess->loc,
                                 "statement %d on the kernel's memory, the limit is %d", count, TL_MAX_STATEMENTS);
  tl_diag_add_hint(context->diags, diag,
                   "a loop, `unroll` of a part, or a `parallel` over more elements says the same");
}

// ---- branches as selects

// Ops that may run although their branch is not taken: pure, and no division by what may be zero.
static bool may_speculate(const tl_op *op) {
  if (!(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) || op->num_regions > 0) return false;
  if (op->code != TL_OP_FLOORDIV && op->code != TL_OP_MOD) return true;
  int64_t divisor = 0;
  return tl_value_const_int(tl_op_operand(op, 1), &divisor) && divisor != 0;
}

// A branch of at most `limit` ops that only computes.
static bool is_small_and_pure(const tl_block *block, int limit) {
  int count = 0;
  const tl_op *yield = tl_block_terminator(block);
  for (const tl_op *op = block->first; op && op != yield; op = op->next) {
    if (!may_speculate(op) || ++count > limit) return false;
  }
  return true;
}

// The single store that ends a branch of otherwise pure ops, or NULL.
static tl_op *only_store(const tl_block *block, int limit) {
  const tl_op *yield = tl_block_terminator(block);
  tl_op *store = NULL;
  int count = 0;
  for (tl_op *op = block->first; op && op != yield; op = op->next) {
    if (op->code == TL_OP_STORE && !store) {
      store = op;
    } else if (store || !may_speculate(op)) {
      return NULL;
    }
    if (++count > limit) return NULL;
  }
  return store;
}

static bool same_place(const tl_op *a, const tl_op *b) {
  uint32_t rank = tl_op_group_len(a, TL_GROUP_STORE_index);
  if (tl_op_arg(a, TL_GROUP_STORE_buffer) != tl_op_arg(b, TL_GROUP_STORE_buffer)) return false;
  for (uint32_t d = 0; d < rank; d++) {
    tl_value *x = tl_op_group_at(a, TL_GROUP_STORE_index, d), *y = tl_op_group_at(b, TL_GROUP_STORE_index, d);
    if (x != y && !tl_prove_equal(x, y)) return false;
  }
  return true;
}

// if c { store x, T[i] } else { store y, T[i] } stores select(c, x, y).
static bool merge_stores(tl_pass_context *context, tl_op *op, int limit) {
  if (op->num_results != 0 || !op->regions[0] || !op->regions[1]) return false;
  tl_op *then_store = only_store(op->regions[0], limit), *else_store = only_store(op->regions[1], limit);
  if (!then_store || !else_store || !same_place(then_store, else_store)) return false;
  tl_op *stores[] = {then_store, else_store};
  for (int r = 0; r < 2; r++) {
    while (op->regions[r]->first != stores[r]) tl_op_move_before(op->regions[r]->first, op);
  }
  tl_op_move_before(then_store, op);
  tl_builder builder;
  tl_builder_before(&builder, context->module, then_store);
  builder.loc = then_store->loc;
  tl_value *value =
      tl_build_select(&builder, tl_op_arg(op, TL_GROUP_IF_condition), tl_op_arg(then_store, TL_GROUP_STORE_value),
                      tl_op_arg(else_store, TL_GROUP_STORE_value));
  tl_op_set_operand(then_store, 0, value);
  tl_op_erase(op);
  return true;
}

static bool convert_if(tl_pass_context *context, tl_op *op) {
  enum { MAX_OPS = 8 };
  bool in_parallel = tl_op_enclosing(op->parent->parent, TL_OP_PARALLEL) || op->parent->parent->code == TL_OP_PARALLEL;
  if (in_parallel && merge_stores(context, op, MAX_OPS)) return true;
  // Branches of the block stay, except those that only choose between values.
  int limit = in_parallel ? MAX_OPS : 2;
  if (op->num_results == 0 || !op->regions[1] || !is_small_and_pure(op->regions[0], limit) ||
      !is_small_and_pure(op->regions[1], limit)) {
    return false;
  }
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_type_kind kind = tl_op_result(op, i)->type->kind;
    if (kind != TL_TYPE_SCALAR && kind != TL_TYPE_INDEX) return false;
  }
  for (int r = 0; r < 2; r++) {
    const tl_op *yield = tl_block_terminator(op->regions[r]);
    while (op->regions[r]->first != yield) tl_op_move_before(op->regions[r]->first, op);
  }
  tl_builder builder;
  tl_builder_before(&builder, context->module, op);
  builder.loc = op->loc;
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_value *a = tl_op_operand(op->regions[0]->first, i), *b = tl_op_operand(op->regions[1]->first, i);
    tl_value_replace_uses(tl_op_result(op, i), tl_build_select(&builder, tl_op_arg(op, TL_GROUP_IF_condition), a, b));
  }
  tl_op_erase(op);
  return true;
}

static bool is_empty(const tl_block *block) {
  return !block || !block->first || block->first->code == TL_OP_YIELD;
}

bool tl_canonicalize_control(tl_pass_context *context, tl_block *block) {
  bool changed = false;
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) changed |= tl_canonicalize_control(context, op->regions[r]);
    }
    if (op->code == TL_OP_IF) {
      if (op->num_results == 0 && is_empty(op->regions[0]) && is_empty(op->regions[1])) {
        tl_op_erase(op);
        changed = true;
      } else {
        changed |= decide_if(op) || convert_if(context, op);
      }
    } else if (op->code == TL_OP_FOR) {
      changed |= simplify_for(context, op);
    }
  }
  return changed;
}

bool tl_canonicalize_decided(tl_block *block) {
  bool changed = false;
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) changed |= tl_canonicalize_decided(op->regions[r]);
    }
    changed |= op->code == TL_OP_IF && decide_if(op);
  }
  return changed;
}
