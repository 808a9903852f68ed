// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomics on elements and tiles, and waiting for an element's value.
//
//   atomic: 1 -> count[b]     ⇒   alloc shared before[1]
//     into: old                   parallel 1 { before[0] = atomic add count[b], 1 };  old = before[0]
//     order: acq_rel              with a barrier ahead (what the block did before is released) and one behind
#include "frontend/elaborate/instantiate_internal.h"

// What the options say.
typedef struct atomic_options {
  int op, order;
  const tl_expr *into, *compare;  // or NULL
} atomic_options;

static bool fits(tl_dtype dtype, int op) {
  bool is_int = tl_dtype_is_int(dtype) && tl_dtype_bits(dtype) >= 32;
  bool is_float = dtype == TL_DTYPE_F64 || dtype == TL_DTYPE_F32 || dtype == TL_DTYPE_F16 || dtype == TL_DTYPE_BF16;
  switch ((tl_ir_enum_ATOMIC)op) {
    case TL_ATOMIC_ADD:
    case TL_ATOMIC_MAX:
    case TL_ATOMIC_MIN:
    case TL_ATOMIC_EXCH:
    case TL_ATOMIC_CAS:
      return is_int || is_float;
    case TL_ATOMIC_AND:
    case TL_ATOMIC_OR:
    case TL_ATOMIC_XOR:
    case TL_ATOMIC_COUNT:
      break;
  }
  return is_int;
}

static bool validate_atomic(tl_sema *sema, const tl_symbol *symbol, int op, tl_loc loc) {
  const tl_type *type = symbol->value->type;
  if (type->scope != TL_SCOPE_GLOBAL && type->scope != TL_SCOPE_SHARED) {
    tl_diag_report(sema->diags, TL_DIAG_ATOMIC_OP, loc, "atomics work on global and shared memory, `%.*s` is %s",
                   TL_STR_ARG(symbol->name), type->scope == TL_SCOPE_FRAGMENT ? "a fragment" : "local");
    return false;
  }
  if (fits(type->dtype, op)) return true;
  tl_diag_report(sema->diags, TL_DIAG_ATOMIC_OP, loc, "there is no atomic %s of %s",
                 tl_ir_enum_text(TL_IR_ENUM_ATOMIC, op), tl_dtype_name(type->dtype));
  return false;
}

static bool read_options(tl_sema *sema, const tl_stmt *stmt, atomic_options *out) {
  const tl_option *into = tl_instantiate_option(stmt, "into"), *compare = tl_instantiate_option(stmt, "compare");
  out->op = tl_instantiate_enum_option(sema, stmt, "op", TL_IR_ENUM_ATOMIC, TL_ATOMIC_ADD);
  out->order = tl_instantiate_enum_option(sema, stmt, "order", TL_IR_ENUM_MEMORY_ORDER, TL_MEMORY_ORDER_RELAXED);
  out->into = into ? into->value : NULL;
  out->compare = compare ? compare->value : NULL;
  if (out->op < 0 || out->order < 0) return false;
  if ((out->op == TL_ATOMIC_CAS) == (compare != NULL)) return true;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_ATOMIC_OP, compare ? compare->loc : stmt->loc,
                                 compare ? "`compare` goes with `op: cas`" : "`op: cas` needs `compare`");
  if (!compare)
    tl_diag_add_hint(sema->diags, diag, "`compare: value`: the element is replaced where it equals that value");
  return false;
}

// ---- order

// The parallel that the builder stands in, or NULL.
static tl_op *enclosing_parallel(const tl_sema *sema) {
  tl_op *found = NULL;
  for (tl_op *op = sema->builder.block->parent; op; op = op->parent ? op->parent->parent : NULL)
    if (op->code == TL_OP_PARALLEL) found = op;
  return found;
}

// What every thread of the block did before is released by whichever thread does the atomic, and what that one acquires
// every thread sees: barriers around it, or around the whole `parallel`.
static void build_barrier(tl_sema *sema, tl_op *parallel, bool before) {
  tl_builder builder = sema->builder;
  if (parallel && before) tl_builder_before(&builder, sema->module, parallel);
  if (parallel && !before) tl_builder_after(&builder, sema->module, parallel);
  builder.loc = sema->builder.loc;
  tl_build(&builder, TL_OP_BARRIER, NULL, NULL, 0);
}

static void open_order(tl_sema *sema, int order, tl_op *parallel) {
  if (order == TL_MEMORY_ORDER_RELEASE || order == TL_MEMORY_ORDER_ACQ_REL) build_barrier(sema, parallel, true);
}

static void close_order(tl_sema *sema, int order, tl_op *parallel) {
  if (order == TL_MEMORY_ORDER_ACQUIRE || order == TL_MEMORY_ORDER_ACQ_REL) build_barrier(sema, parallel, false);
}

// ---- the op

// An atomic on the element at `indices`; its result when there is an `into`, else NULL.
static tl_value *build_atomic(tl_sema *sema, const tl_stmt *stmt, const atomic_options *options,
                              const tl_symbol *symbol, tl_value *const *indices, tl_value *element, tl_value *compare) {
  sema->builder.loc = stmt->loc;
  tl_group groups[4] = {TL_GROUP_OF(element),
                        TL_GROUP_OF(symbol->value),
                        {indices, (uint32_t)symbol->value->type->rank},
                        {&compare, compare ? 1 : 0}};
  tl_op *op = tl_build(&sema->builder, TL_OP_ATOMIC, groups, &element->type, options->into ? 1 : 0);
  tl_op_set_int(sema->module, op, TL_ATTR_ATOMIC, options->op);
  if (options->order != TL_MEMORY_ORDER_RELAXED) tl_op_set_int(sema->module, op, TL_ATTR_MEMORY_ORDER, options->order);
  return options->into ? tl_op_result(op, 0) : NULL;
}

static bool converted(tl_sema *sema, const tl_expr *expr, const tl_sema_value *value, tl_dtype dtype, tl_value **out) {
  *out = value->kind == TL_SEMA_POISON ? NULL : tl_sema_to_dtype(sema, value, dtype, expr->loc);
  return *out != NULL;
}

// ---- the previous value of one element

// Gives `into` the value: a new name becomes a let, a local scalar or an element is assigned.
static void put_into(tl_sema *sema, const tl_expr *into, tl_value *old) {
  if (into->kind == TL_EXPR_NAME && !tl_strmap_get(&sema->names, into->text)) {
    tl_symbol *symbol = tl_sema_define(sema, into->text, into->loc, TL_ROLE_BODY_LET, TL_SYMBOL_VALUE);
    if (!symbol) return;
    symbol->value = old;
    if (!old->name) old->name = tl_module_intern(sema->module, into->text);
    return;
  }
  tl_symbol *symbol = NULL;
  tl_value *indices[TL_MAX_RANK];
  if (into->kind == TL_EXPR_NAME) {
    symbol = tl_strmap_get(&sema->names, into->text);
    if (symbol->kind != TL_SYMBOL_BUFFER || !tl_sema_is_local_scalar(symbol)) symbol = NULL;
  } else if (tl_sema_is_element(into)) {
    symbol = tl_sema_buffer(sema, into);
    if (!symbol || !tl_sema_subscripts(sema, symbol, into, indices)) return;
  }
  if (!symbol) {
    tl_diag_report(sema->diags, TL_DIAG_ASSIGN_TARGET, into->loc,
                   "the previous value goes into a new name, a `local` scalar or an element, not into `%s`",
                   tl_sema_expr_text(sema, into));
    return;
  }
  if (!tl_instantiate_validate_element(sema, symbol, into->loc)) return;
  tl_sema_value value = tl_sema_of_value(old);
  tl_value *element;
  if (!converted(sema, into, &value, symbol->value->type->dtype, &element)) return;
  tl_group groups[3] = {
      TL_GROUP_OF(element), TL_GROUP_OF(symbol->value), {indices, (uint32_t)symbol->value->type->rank}};
  tl_build(&sema->builder, TL_OP_STORE, groups, NULL, 0);
}

// Outside `parallel` one thread does the atomic and hands the previous value to the block in shared memory.
static tl_value *once_a_block(tl_sema *sema, const tl_stmt *stmt, const atomic_options *options,
                              const tl_symbol *symbol, tl_value *const *indices, tl_value *element, tl_value *compare) {
  static const int64_t one = 1;
  tl_builder head = sema->builder;
  head.block = tl_module_kernel(sema->module)->regions[0];
  head.before = head.block->first;
  head.loc = stmt->loc;
  const tl_type *type = tl_type_buffer(sema->module, TL_SCOPE_SHARED, element->type->dtype, &one, 1);
  tl_op *alloc = tl_build(&head, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(sema->module, alloc, TL_ATTR_NAME, tl_str_from("previous"));
  tl_value *place = tl_op_result(alloc, 0);
  tl_parallel_scope scope = tl_instantiate_begin_parallel(sema, &one, 1, tl_instantiate_index_names, stmt->loc);
  tl_value *at = scope.op->regions[0]->args[0];
  tl_value *old = build_atomic(sema, stmt, options, symbol, indices, element, compare);
  tl_group store[3] = {TL_GROUP_OF(old), TL_GROUP_OF(place), {&at, 1}};
  tl_build(&sema->builder, TL_OP_STORE, store, NULL, 0);
  tl_instantiate_end_parallel(sema, &scope);
  tl_value *first = tl_build_index(&sema->builder, 0);
  tl_group load[3] = {TL_GROUP_OF(place), {&first, 1}, TL_GROUP_EMPTY};
  return tl_op_result(tl_build(&sema->builder, TL_OP_LOAD, load, &element->type, 1), 0);
}

static void emit_element_atomic(tl_sema *sema, const tl_stmt *stmt, const atomic_options *options) {
  if (!tl_sema_is_element(stmt->to)) {
    tl_diag_report(sema->diags, TL_DIAG_ASSIGN_TARGET, stmt->to->loc,
                   "an atomic of one value needs an element such as `X[i, j]` to update");
    return;
  }
  tl_symbol *symbol = tl_sema_buffer(sema, stmt->to);
  tl_value *indices[TL_MAX_RANK], *element, *compare = NULL;
  bool ok = symbol && tl_sema_subscripts(sema, symbol, stmt->to, indices);
  tl_sema_value value = tl_sema_expr(sema, stmt->from), other = tl_sema_poison();
  if (options->compare) other = tl_sema_expr(sema, options->compare);
  if (!ok || !tl_instantiate_validate_writable(sema, symbol, stmt->to->loc) ||
      !validate_atomic(sema, symbol, options->op, stmt->to->loc)) {
    return;
  }
  tl_dtype dtype = symbol->value->type->dtype;
  if (!converted(sema, stmt->from, &value, dtype, &element)) return;
  if (options->compare && !converted(sema, options->compare, &other, dtype, &compare)) return;
  tl_op *parallel = enclosing_parallel(sema);
  sema->builder.loc = stmt->loc;
  open_order(sema, options->order, parallel);
  tl_value *old = options->into && !sema->in_parallel
                      ? once_a_block(sema, stmt, options, symbol, indices, element, compare)
                      : build_atomic(sema, stmt, options, symbol, indices, element, compare);
  if (old) put_into(sema, options->into, old);
  close_order(sema, options->order, parallel);
}

// ---- whole tiles

// One side of the statement as loop indices see it, with the condition that a bounded slice makes.
typedef struct tile_side {
  tl_sema_region region;
  tl_value *indices[TL_MAX_RANK];
  tl_op *guard;
  tl_builder outer;
} tile_side;

static void open_side(tl_sema *sema, tile_side *side, tl_value *const *loop) {
  tl_instantiate_region_indices(sema, &side->region, loop, side->indices);
  side->guard = tl_instantiate_open_limits(sema, &side->region, side->indices, &side->outer);
}

static void close_side(tl_sema *sema, const tile_side *side) {
  if (side->guard) tl_instantiate_leave(sema, side->outer);
}

static void store_previous(tl_sema *sema, tile_side *into, tl_value *const *loop, tl_value *old) {
  open_side(sema, into, loop);
  const tl_type *type = into->region.symbol->value->type;
  tl_value *element = tl_build_cast(&sema->builder, old, tl_type_scalar(sema->module, type->dtype));
  tl_group groups[3] = {
      TL_GROUP_OF(element), TL_GROUP_OF(into->region.symbol->value), {into->indices, (uint32_t)type->rank}};
  tl_build(&sema->builder, TL_OP_STORE, groups, NULL, 0);
  close_side(sema, into);
}

static bool parse_sides(tl_sema *sema, const tl_stmt *stmt, const atomic_options *options, tile_side *src,
                        tile_side *dst, tile_side *into) {
  bool ok = tl_sema_parse_region(sema, stmt->from, &src->region);
  ok = tl_sema_parse_region(sema, stmt->to, &dst->region) && ok;
  if (options->into) ok = tl_sema_parse_region(sema, options->into, &into->region) && ok;
  if (!ok || !tl_instantiate_validate_writable(sema, dst->region.symbol, stmt->to->loc) ||
      !validate_atomic(sema, dst->region.symbol, options->op, stmt->to->loc) ||
      !tl_sema_match_regions(sema, &src->region, &dst->region, stmt->text_loc)) {
    return false;
  }
  return !options->into || (tl_instantiate_validate_writable(sema, into->region.symbol, options->into->loc) &&
                            tl_sema_match_regions(sema, &src->region, &into->region, options->into->loc));
}

// PTX ISA, "cp.reduce.async.bulk".
static bool engine_has(int op, tl_dtype dtype) {
  bool is_word = dtype == TL_DTYPE_I32 || dtype == TL_DTYPE_U32,
       is_half = dtype == TL_DTYPE_F16 || dtype == TL_DTYPE_BF16;
  switch ((tl_ir_enum_ATOMIC)op) {
    case TL_ATOMIC_ADD:
      return is_word || is_half || dtype == TL_DTYPE_U64 || dtype == TL_DTYPE_F32;
    case TL_ATOMIC_MIN:
    case TL_ATOMIC_MAX:
      return is_word || is_half || dtype == TL_DTYPE_U64 || dtype == TL_DTYPE_I64;
    case TL_ATOMIC_AND:
    case TL_ATOMIC_OR:
    case TL_ATOMIC_XOR:
      return is_word || dtype == TL_DTYPE_U64 || dtype == TL_DTYPE_I64;
    case TL_ATOMIC_EXCH:
    case TL_ATOMIC_CAS:
    case TL_ATOMIC_COUNT:
      break;
  }
  return false;
}

// By the copy engine: a shared tile goes out as a whole, and nothing comes back.
static void emit_engine_atomic(tl_sema *sema, const tl_stmt *stmt, const atomic_options *options) {
  const tl_option *via = tl_instantiate_option(stmt, "via");
  tile_side src, dst, into;
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`via: tma`")) return;
  if (options->into || options->compare || options->order != TL_MEMORY_ORDER_RELAXED) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, via->loc,
                   "the copy engine gives nothing back and orders nothing: no `into`, `compare` or `order`");
    return;
  }
  if (!parse_sides(sema, stmt, options, &src, &dst, &into)) return;
  const tl_type *from = src.region.symbol->value->type, *to = dst.region.symbol->value->type;
  if (from->scope != TL_SCOPE_SHARED || to->scope != TL_SCOPE_GLOBAL || from->dtype != to->dtype) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, via->loc,
                                   "by TMA a shared tile is combined with a tensor of the same dtype");
    tl_diag_add_hint(sema->diags, diag, "copy it to a shared tile of the tensor's dtype first");
    return;
  }
  if (!engine_has(options->op, to->dtype)) {
    tl_diag_report(sema->diags, TL_DIAG_ATOMIC_OP, via->loc, "the copy engine has no `%s` of %s",
                   tl_ir_enum_text(TL_IR_ENUM_ATOMIC, options->op), tl_dtype_name(to->dtype));
    return;
  }
  tl_instantiate_engine_reduction(sema, stmt, &src.region, &dst.region, options->op);
}

// The tile that an atomic adds: a name or a slice gives the extents.
static void emit_tile_atomic(tl_sema *sema, const tl_stmt *stmt, const atomic_options *options) {
  tile_side src, dst, into;
  int64_t extents[TL_MAX_RANK] = {0};
  if (!parse_sides(sema, stmt, options, &src, &dst, &into)) return;
  if (!tl_instantiate_region_extents(sema, &src.region, extents)) return;
  tl_dtype dtype = dst.region.symbol->value->type->dtype;
  tl_sema_value other = options->compare ? tl_sema_expr(sema, options->compare) : tl_sema_poison();
  tl_value *element, *compare = NULL;
  if (options->compare && !converted(sema, options->compare, &other, dtype, &compare)) return;
  sema->builder.loc = stmt->loc;
  open_order(sema, options->order, NULL);
  tl_parallel_scope scope =
      tl_instantiate_begin_parallel(sema, extents, src.region.num_axes, tl_instantiate_index_names, stmt->loc);
  tl_value *const *loop = scope.op->regions[0]->args;
  open_side(sema, &dst, loop);
  open_side(sema, &src, loop);
  tl_sema_value value = tl_sema_load(sema, src.region.symbol, src.indices, NULL, stmt->from->loc);
  if (converted(sema, stmt->from, &value, dtype, &element)) {
    tl_value *old = build_atomic(sema, stmt, options, dst.region.symbol, dst.indices, element, compare);
    if (old) store_previous(sema, &into, loop, old);
  }
  close_side(sema, &src);
  close_side(sema, &dst);
  tl_instantiate_end_parallel(sema, &scope);
  close_order(sema, options->order, NULL);
}

// A name that an atomic with errors did not get to declare: its uses say nothing more.
static void poison_into(tl_sema *sema, const tl_stmt *stmt) {
  const tl_option *into = tl_instantiate_option(stmt, "into");
  if (!into || into->value->kind != TL_EXPR_NAME || tl_strmap_get(&sema->names, into->value->text)) return;
  tl_sema_define(sema, into->value->text, into->value->loc, TL_ROLE_BODY_LET, TL_SYMBOL_POISON);
}

void tl_instantiate_atomic(tl_sema *sema, const tl_stmt *stmt) {
  atomic_options options;
  const tl_expr *from = stmt->from;
  bool is_region = from->kind == TL_EXPR_NAME || from->kind == TL_EXPR_TRANSPOSE || from->kind == TL_EXPR_INDEX;
  if (read_options(sema, stmt, &options)) {
    int via = tl_instantiate_enum_option(sema, stmt, "via", TL_IR_ENUM_VIA, TL_VIA_AUTO);
    if (via == TL_VIA_TMA)
      emit_engine_atomic(sema, stmt, &options);
    else if (!sema->in_parallel && is_region && tl_sema_has_tile(sema, from))
      emit_tile_atomic(sema, stmt, &options);
    else
      emit_element_atomic(sema, stmt, &options);
  }
  poison_into(sema, stmt);
}

// ---- wait_until

static int comparison_of(tl_expr_op op, bool flipped) {
  switch (op) {
    case TL_EXPR_OP_EQ:
      return TL_CMP_EQ;
    case TL_EXPR_OP_NE:
      return TL_CMP_NE;
    case TL_EXPR_OP_LT:
      return flipped ? TL_CMP_GT : TL_CMP_LT;
    case TL_EXPR_OP_LE:
      return flipped ? TL_CMP_GE : TL_CMP_LE;
    case TL_EXPR_OP_GT:
      return flipped ? TL_CMP_LT : TL_CMP_GT;
    case TL_EXPR_OP_GE:
      return flipped ? TL_CMP_LE : TL_CMP_GE;
    default:
      return -1;
  }
}

static bool is_waited(tl_sema *sema, const tl_expr *expr) {
  if (expr->kind != TL_EXPR_INDEX || !tl_sema_is_element(expr) || expr->operands[0]->kind != TL_EXPR_NAME) return false;
  const tl_symbol *symbol = tl_strmap_get(&sema->names, expr->operands[0]->text);
  if (!symbol || symbol->kind != TL_SYMBOL_BUFFER) return false;
  const tl_type *type = symbol->value->type;
  return (type->scope == TL_SCOPE_GLOBAL || type->scope == TL_SCOPE_SHARED) && tl_dtype_is_int(type->dtype) &&
         tl_dtype_bits(type->dtype) >= 32;
}

// Whether copies by TMA may count on barriers of the author.
static bool counts_bytes(const tl_kernel_spec *kernel) {
  for (uint32_t i = 0; i < kernel->num_barriers; ++i)
    if (!kernel->barriers[i].is_named) return true;
  return false;
}

void tl_instantiate_wait_until(tl_sema *sema, const tl_stmt *stmt) {
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`wait_until`")) return;
  const tl_expr *condition = stmt->condition;
  bool is_pair = condition->kind == TL_EXPR_COMPARE && condition->num_operands == 2;
  bool left = is_pair && is_waited(sema, condition->operands[0]);
  if (!left && !(is_pair && is_waited(sema, condition->operands[1]))) {
    tl_diag_report(
        sema->diags, TL_DIAG_WAIT_CONDITION, condition->loc,
        "wait_until compares an element of a global or shared tensor of 32- or 64-bit integers with a value");
    return;
  }
  const tl_expr *element = condition->operands[left ? 0 : 1], *other = condition->operands[left ? 1 : 0];
  tl_symbol *symbol = tl_sema_buffer(sema, element);
  tl_value *indices[TL_MAX_RANK], *value;
  if (!symbol || !tl_sema_subscripts(sema, symbol, element, indices)) return;
  tl_sema_value wanted = tl_sema_expr(sema, other);
  if (!converted(sema, other, &wanted, symbol->value->type->dtype, &value)) return;
  sema->builder.loc = stmt->loc;
  tl_group groups[3] = {TL_GROUP_OF(symbol->value), {indices, (uint32_t)symbol->value->type->rank}, TL_GROUP_OF(value)};
  tl_op *op = tl_build(&sema->builder, TL_OP_WAIT_UNTIL, groups, NULL, 0);
  tl_op_set_int(sema->module, op, TL_ATTR_CMP, comparison_of(condition->compare_ops[0], !left));
  tl_build(&sema->builder, TL_OP_BARRIER, NULL, NULL, 0);
  if (!counts_bytes(sema->kernel)) return;
  // What was acquired is there for threads; the copy engine sees it behind a fence (PTX ISA, "Async proxy").
  tl_op *fence = tl_build(&sema->builder, TL_OP_FENCE_PROXY, NULL, NULL, 0);
  tl_op_set_int(sema->module, fence, TL_ATTR_SPACE, TL_SCOPE_GLOBAL);
}
