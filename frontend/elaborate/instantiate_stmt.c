// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statements with bodies, and scopes: parallel, loops, if, let.
#include "frontend/elaborate/instantiate_internal.h"

static void emit_body(tl_sema *sema, const tl_stmt_list *list) {
  size_t mark = tl_sema_open_scope(sema);
  tl_instantiate_stmts(sema, list);
  tl_sema_close_scope(sema, mark);
}

// Defines a loop index as an index value, or as poison when `value` is NULL.
static void define_index(tl_sema *sema, tl_str name, tl_loc loc, tl_value *value) {
  tl_symbol *symbol = tl_sema_define(sema, name, loc, TL_ROLE_INDEX, value ? TL_SYMBOL_VALUE : TL_SYMBOL_POISON);
  if (symbol) symbol->value = value;
}

// ---- parallel

// Of extents that are known at run time only the largest value, and in `ends` what they are.
static bool parallel_extents(tl_sema *sema, const tl_stmt *stmt, int64_t *extents, tl_value **ends) {
  const tl_in_clause *in = &stmt->in;
  if (in->num_names != in->num_extents) {
    tl_diag_report(sema->diags, TL_DIAG_PARALLEL_EXTENTS, stmt->text_loc, "%u ind%s but %u extent%s", in->num_names,
                   in->num_names == 1 ? "ex" : "ices", in->num_extents, in->num_extents == 1 ? "" : "s");
    return false;
  }
  if (in->num_names == 0 || in->num_names > TL_MAX_RANK) {
    tl_diag_report(sema->diags, TL_DIAG_PARALLEL_EXTENTS, stmt->text_loc, "`parallel` has 1 to %d indices",
                   TL_MAX_RANK);
    return false;
  }
  bool ok = true;
  for (uint32_t i = 0; i < in->num_extents; ++i) {
    sema->builder.loc = in->extents[i]->loc;
    tl_value *value = tl_sema_index(sema, in->extents[i]);
    if (!value) {
      ok = false;
    } else if (!tl_value_const_int(value, &extents[i])) {
      ends[i] = value;
      extents[i] = tl_sema_most(value);
      if (extents[i] < 0) ok = tl_sema_report_no_maximum(sema, in->extents[i], "an extent of `parallel`");
    } else if (extents[i] < 0 || extents[i] > INT32_MAX) {
      tl_diag_report(sema->diags, TL_DIAG_PARALLEL_EXTENTS, in->extents[i]->loc,
                     "an extent of `parallel` is not negative and below 2^31, `%s` is %lld",
                     tl_sema_expr_text(sema, in->extents[i]), (long long)extents[i]);
      ok = false;
    }
  }
  return ok;
}

// Enters a condition that every index is below its end; the builder stays where there is no end.
static tl_builder enter_ends(tl_sema *sema, const tl_op *parallel, tl_value *const *ends) {
  tl_value *all = NULL;
  tl_builder outer = sema->builder;
  for (uint32_t i = 0; i < parallel->regions[0]->num_args; ++i) {
    if (!ends[i]) continue;
    tl_value *inside = tl_build_cmp(&sema->builder, TL_CMP_LT, parallel->regions[0]->args[i], ends[i]);
    all = all ? tl_build_binary(&sema->builder, TL_OP_AND, all, inside) : inside;
  }
  if (!all) return outer;
  tl_group group = TL_GROUP_OF(all);
  return tl_instantiate_enter(sema, tl_build(&sema->builder, TL_OP_IF, &group, NULL, 0), 0);
}

// `where`: the statements run under a condition.
static void emit_parallel_body(tl_sema *sema, const tl_stmt *stmt) {
  const tl_option *where = tl_instantiate_option(stmt, "where");
  tl_sema_value condition = tl_sema_of_const(tl_const_bool(true));
  if (where) condition = tl_sema_condition(sema, where->value);
  if (condition.kind != TL_SEMA_VALUE) {
    if (condition.kind == TL_SEMA_CONST && !condition.constant.i) return;
    emit_body(sema, &stmt->body);
    return;
  }
  sema->builder.loc = where->loc;
  tl_group group = TL_GROUP_OF(condition.value);
  tl_op *op = tl_build(&sema->builder, TL_OP_IF, &group, NULL, 0);
  tl_builder outer = tl_instantiate_enter(sema, op, 0);
  size_t present = sema->present.len;
  tl_sema_know_present(sema, where->value, true);
  emit_body(sema, &stmt->body);
  sema->present.len = present;
  tl_instantiate_leave(sema, outer);
}

static void emit_parallel(tl_sema *sema, const tl_stmt *stmt) {
  int64_t extents[TL_MAX_RANK] = {0};
  tl_value *ends[TL_MAX_RANK] = {0};
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`parallel`")) return;
  bool ok = parallel_extents(sema, stmt, extents, ends);
  uint32_t count = stmt->in.num_names;
  const char *names[TL_MAX_RANK] = {0};
  for (uint32_t i = 0; i < count && i < TL_MAX_RANK; ++i) {
    names[i] = tl_arena_copy_bytes(sema->arena, stmt->in.names[i].data, stmt->in.names[i].len);
  }
  bool is_empty = false;
  for (uint32_t i = 0; ok && i < count; ++i) is_empty = is_empty || extents[i] == 0;
  // With bad extents, or none, the body is still looked at for further errors.
  for (uint32_t i = 0; (!ok || is_empty) && i < TL_MAX_RANK; ++i) extents[i] = 1;
  int32_t rank = (int32_t)(count < TL_MAX_RANK ? count : TL_MAX_RANK);
  tl_parallel_scope scope = tl_instantiate_begin_parallel(sema, extents, rank, names, stmt->loc);
  size_t mark = tl_sema_open_scope(sema);
  for (uint32_t i = 0; i < count; ++i) {
    tl_value *value = ok ? scope.op->regions[0]->args[i] : NULL;
    define_index(sema, stmt->in.names[i], stmt->in.name_locs[i], value);
  }
  tl_builder outer = enter_ends(sema, scope.op, ends);
  emit_parallel_body(sema, stmt);
  tl_instantiate_leave(sema, outer);
  tl_sema_close_scope(sema, mark);
  tl_instantiate_end_parallel(sema, &scope);
  if (is_empty) tl_op_erase(scope.op);
}

// ---- loops

typedef struct loop_range {
  tl_value *lower, *upper, *step;
} loop_range;

// "n" or "range([lo,] hi [, step])".
static bool parse_loop_range(tl_sema *sema, const tl_stmt *stmt, loop_range *out) {
  if (stmt->in.num_names != 1 || stmt->in.num_extents != 1) {
    tl_diag_report(sema->diags, TL_DIAG_LOOP_RANGE, stmt->text_loc,
                   "a loop has one index: `k in n` or `k in range(lo, hi, step)`");
    return false;
  }
  const tl_expr *expr = stmt->in.extents[0];
  bool is_range = expr->kind == TL_EXPR_CALL && tl_str_is(expr->text, "range");
  if (is_range && (expr->num_operands < 1 || expr->num_operands > 3 || expr->num_keywords)) {
    tl_diag_report(sema->diags, TL_DIAG_LOOP_RANGE, expr->loc, "`range` takes 1 to 3 arguments: range(lo, hi, step)");
    return false;
  }
  const tl_expr *lower = is_range && expr->num_operands > 1 ? expr->operands[0] : NULL;
  const tl_expr *upper = !is_range ? expr : expr->operands[lower ? 1 : 0];
  const tl_expr *step = is_range && expr->num_operands == 3 ? expr->operands[2] : NULL;
  int64_t step_value = 1;
  sema->builder.loc = stmt->loc;
  out->lower = lower ? tl_sema_index(sema, lower) : tl_build_index(&sema->builder, 0);
  out->upper = tl_sema_index(sema, upper);
  bool ok = !step || tl_sema_const_int(sema, step, "a loop's step", &step_value);
  if (ok && step_value == 0) {
    tl_diag_report(sema->diags, TL_DIAG_LOOP_RANGE, step->loc, "the step of a loop must not be 0");
    ok = false;
  }
  sema->builder.loc = stmt->loc;
  out->step = tl_build_index(&sema->builder, step_value);
  return ok && out->lower && out->upper;
}

// -1 for completely, 0 for not at all.
static int64_t unroll_factor(tl_sema *sema, const tl_stmt *stmt) {
  const tl_option *option = tl_instantiate_option(stmt, "unroll");
  if (!option) return 0;
  if (option->value->kind == TL_EXPR_BOOL) return option->value->int_value ? -1 : 0;
  int64_t factor = 0;
  if (tl_sema_const_int(sema, option->value, "`unroll`", &factor) && (factor < 1 || factor > 4096)) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, option->value->loc,
                   "`unroll` is true or a factor from 1 to 4096, not %lld", (long long)factor);
  }
  return factor;
}

static bool is_inside_unrolled(const tl_op *loop) {
  for (const tl_op *outer = tl_op_enclosing(loop, TL_OP_FOR); outer; outer = tl_op_enclosing(outer, TL_OP_FOR)) {
    if (tl_op_int(outer, TL_ATTR_UNROLL, 0) == -1) return true;
  }
  return false;
}

static void validate_unroll_bounds(tl_sema *sema, const tl_stmt *stmt, const loop_range *range, const tl_op *loop) {
  int64_t lower, upper, step, iterations;
  if (!tl_value_const_int(range->lower, &lower) || !tl_value_const_int(range->upper, &upper) ||
      !tl_value_const_int(range->step, &step)) {
    // An unrolled loop around it may make them constants: canonicalize knows.
    if (is_inside_unrolled(loop)) return;
    tl_diag_report(sema->diags, TL_DIAG_LOOP_RANGE, stmt->in.extents[0]->loc,
                   "a completely unrolled loop needs bounds known at compile time");
    return;
  }
  if (__builtin_sub_overflow(upper, lower, &iterations) || iterations / step > 4096) {
    tl_diag_report(sema->diags, TL_DIAG_LOOP_RANGE, stmt->in.extents[0]->loc,
                   "more than 4096 iterations cannot be unrolled");
  }
}

static void set_pipeline_options(tl_sema *sema, const tl_stmt *stmt, tl_op *op) {
  enum { MAX_STAGES = 64 };
  tl_op_set_unit(sema->module, op, TL_ATTR_PIPELINED);
  const tl_option *overlap = tl_instantiate_option(stmt, "overlap");
  if (overlap && !tl_str_is(overlap->value->text, "auto"))
    tl_op_set_int(sema->module, op, TL_ATTR_OVERLAP, tl_str_is(overlap->value->text, "1"));
  int64_t stages = 0;
  const tl_option *option = tl_instantiate_option(stmt, "stages");
  bool is_auto = option && option->value->kind == TL_EXPR_NAME && tl_str_is(option->value->text, "auto");
  if (option && !is_auto && tl_sema_const_int(sema, option->value, "`stages`", &stages)) {
    if (stages < 1 || stages > MAX_STAGES) {
      tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, option->value->loc, "`stages` is 1 to %d, not %lld", MAX_STAGES,
                     (long long)stages);
    } else {
      tl_op_set_int(sema->module, op, TL_ATTR_STAGES, stages);
    }
  }
  int roles = tl_instantiate_enum_option(sema, stmt, "specialize", TL_IR_ENUM_SWITCH, TL_SWITCH_AUTO);
  if (roles != TL_SWITCH_AUTO) tl_op_set_int(sema->module, op, TL_ATTR_SPECIALIZE, roles);
}

static void emit_loop(tl_sema *sema, const tl_stmt *stmt) {
  loop_range range = {0};
  if (stmt->kind == TL_STMT_PIPELINED && tl_instantiate_refuse_in_parallel(sema, stmt, "`pipelined`")) return;
  bool ok = parse_loop_range(sema, stmt, &range);
  tl_op *op = NULL;
  // With a bad range the body is still looked at for further errors.
  tl_flow flow = {.outer = sema->flow, .in_parallel = sema->in_parallel};
  sema->flow = &flow;
  if (ok) {
    sema->flow = flow.outer;
    tl_value *bounds[3] = {range.lower, range.upper, range.step};
    op = tl_instantiate_begin_loop(sema, stmt, bounds, &flow);
    int64_t factor = stmt->kind == TL_STMT_UNROLL ? -1 : stmt->kind == TL_STMT_FOR ? unroll_factor(sema, stmt) : 0;
    if (factor == -1) validate_unroll_bounds(sema, stmt, &range, op);
    if (factor != 0) tl_op_set_int(sema->module, op, TL_ATTR_UNROLL, factor);
    if (stmt->kind == TL_STMT_PIPELINED && (sema->in_role || tl_instantiate_holds_async(&stmt->body))) {
      tl_diag_report(sema->diags, TL_DIAG_PIPELINE_IN_ORDER, stmt->loc,
                     sema->in_role ? "the loop runs in order: it stands in a role of the author"
                                   : "the loop runs in order: its asynchronous copies are the author's");
    } else if (stmt->kind == TL_STMT_PIPELINED) {
      set_pipeline_options(sema, stmt, op);
    }
    const tl_option *order = tl_instantiate_option(stmt, "order");
    if (order && tl_str_is(order->value->text, "any")) tl_op_set_unit(sema->module, op, TL_ATTR_ANY_ORDER);
    op->regions[0]->args[0]->name = tl_module_intern(sema->module, stmt->in.names[0]);
  }
  size_t mark = tl_sema_open_scope(sema);
  for (uint32_t i = 0; i < stmt->in.num_names; ++i) {
    define_index(sema, stmt->in.names[i], stmt->in.name_locs[i], op ? op->regions[0]->args[0] : NULL);
  }
  emit_body(sema, &stmt->body);
  tl_sema_close_scope(sema, mark);
  if (op) tl_instantiate_end_loop(sema, &flow);
  sema->flow = flow.outer;
}

// ---- if and let

static void emit_if(tl_sema *sema, const tl_stmt *stmt) {
  tl_sema_value condition = tl_instantiate_block_condition(sema, stmt->condition);
  if (condition.kind == TL_SEMA_CONST) {
    emit_body(sema, condition.constant.i ? &stmt->body : &stmt->else_body);
    return;
  }
  if (condition.kind == TL_SEMA_POISON) {
    emit_body(sema, &stmt->body);
    emit_body(sema, &stmt->else_body);
    return;
  }
  sema->builder.loc = stmt->loc;
  tl_group group = TL_GROUP_OF(condition.value);
  tl_op *op = tl_build(&sema->builder, TL_OP_IF, &group, NULL, 0);
  size_t present = sema->present.len;
  for (uint32_t r = 0; r < 2; ++r) {
    tl_builder outer = tl_instantiate_enter(sema, op, r);
    tl_sema_know_present(sema, stmt->condition, r == 0);
    emit_body(sema, r == 0 ? &stmt->body : &stmt->else_body);
    sema->present.len = present;
    tl_instantiate_leave(sema, outer);
  }
}

static void emit_let(tl_sema *sema, const tl_stmt *stmt) {
  for (uint32_t i = 0; i < stmt->num_lets; ++i) {
    const tl_named_expr *let = &stmt->lets[i];
    tl_sema_value value = tl_instantiate_block_value(sema, let->value);
    // In subscripts and comparisons the let means what its text would mean there.
    tl_sema_value exact = {.kind = TL_SEMA_POISON};
    if (tl_sema_may_wrap(sema, let->value, &value)) exact = tl_sema_exact(sema, let->value, TL_EXACT_ALL);
    tl_symbol *symbol = tl_sema_define(sema, let->name, let->loc, TL_ROLE_BODY_LET, TL_SYMBOL_POISON);
    if (!symbol || value.kind == TL_SEMA_POISON) continue;
    symbol->kind = value.kind == TL_SEMA_CONST ? TL_SYMBOL_CONST : TL_SYMBOL_VALUE;
    symbol->constant = value.constant;
    symbol->value = value.value;
    symbol->text = let->value;
    bool is_index = exact.kind == TL_SEMA_VALUE && exact.value->type->kind == TL_TYPE_INDEX;
    if (is_index) symbol->exact = exact.value;
    if (symbol->value && !symbol->value->name) symbol->value->name = tl_module_intern(sema->module, let->name);
  }
}

static void emit_sync(tl_sema *sema, const tl_stmt *stmt) {
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`sync`")) return;
  if (stmt->target) {
    tl_instantiate_named(sema, stmt);
    return;
  }
  sema->builder.loc = stmt->loc;
  tl_build(&sema->builder, TL_OP_BARRIER, NULL, NULL, 0);
}

static void emit_stmt(tl_sema *sema, const tl_stmt *stmt) {
  if (tl_instantiate_behind_roles(sema, stmt)) return;
  switch (stmt->kind) {
    case TL_STMT_CLEAR:
    case TL_STMT_FILL:
      tl_instantiate_fill(sema, stmt);
      break;
    case TL_STMT_COPY:
      tl_instantiate_copy(sema, stmt);
      break;
    case TL_STMT_GEMM:
      tl_instantiate_gemm(sema, stmt);
      break;
    case TL_STMT_PARALLEL:
      emit_parallel(sema, stmt);
      break;
    case TL_STMT_PIPELINED:
    case TL_STMT_FOR:
    case TL_STMT_UNROLL:
      emit_loop(sema, stmt);
      break;
    case TL_STMT_IF:
      emit_if(sema, stmt);
      break;
    case TL_STMT_WHILE:
      tl_instantiate_while(sema, stmt);
      break;
    case TL_STMT_BREAK:
      tl_instantiate_break(sema, stmt);
      break;
    case TL_STMT_CONTINUE:
      tl_instantiate_continue(sema, stmt);
      break;
    case TL_STMT_EXIT:
      tl_instantiate_exit(sema, stmt);
      break;
    case TL_STMT_LET:
      emit_let(sema, stmt);
      break;
    case TL_STMT_ATOMIC:
      tl_instantiate_atomic(sema, stmt);
      break;
    case TL_STMT_WAIT_UNTIL:
      tl_instantiate_wait_until(sema, stmt);
      break;
    case TL_STMT_COMMIT_GROUP:
    case TL_STMT_WAIT_GROUP:
      tl_instantiate_copy_group(sema, stmt);
      break;
    case TL_STMT_WAIT_GEMM:
      tl_instantiate_wait_gemm(sema, stmt);
      break;
    case TL_STMT_PRINT:
      tl_instantiate_print(sema, stmt);
      break;
    case TL_STMT_ASSERT:
      tl_instantiate_assert(sema, stmt);
      break;
    case TL_STMT_ASSUME:
      tl_instantiate_assume(sema, stmt);
      break;
    case TL_STMT_VIEW:
      tl_instantiate_view(sema, &stmt->view, stmt);
      break;
    case TL_STMT_ASSIGN:
      tl_instantiate_assign(sema, stmt);
      break;
    case TL_STMT_SCAN:
      tl_instantiate_scan(sema, stmt);
      break;
    case TL_STMT_REDUCE:
      tl_instantiate_reduce(sema, stmt);
      break;
    case TL_STMT_USE:
      emit_body(sema, &stmt->body);
      break;
    case TL_STMT_SYNC:
      emit_sync(sema, stmt);
      break;
    case TL_STMT_ARRIVE:
    case TL_STMT_WAIT:
    case TL_STMT_EXPECT:
      tl_instantiate_barrier_stmt(sema, stmt);
      break;
    case TL_STMT_SPECIALIZE:
      tl_instantiate_roles(sema, stmt);
      break;
    case TL_STMT_ROLE:
      tl_diag_report(sema->diags, TL_DIAG_ROLES, stmt->loc, "a role stands below `specialize`");
      break;
  }
}

// The rest of a list after a statement that may leave it is a level of nesting of its own.
enum { MAX_RESTS = 200 };

void tl_instantiate_stmts(tl_sema *sema, const tl_stmt_list *list) {
  for (uint32_t i = 0; i < list->len; ++i) {
    emit_stmt(sema, list->items[i]);
    tl_builder outer;
    if (i + 1 == list->len || !tl_instantiate_begin_rest(sema, list->items[i], &outer)) continue;
    tl_stmt_list rest = {list->items + i + 1, list->len - i - 1};
    bool deep = ++sema->num_rests > MAX_RESTS;
    if (deep) {
      tl_diag_report(sema->diags, TL_DIAG_STMT_PLACE, rest.items[0]->loc,
                     "more than %d statements before this one may have left it out", MAX_RESTS);
    } else {
      tl_instantiate_stmts(sema, &rest);
    }
    --sema->num_rests;
    tl_instantiate_leave(sema, outer);
    return;
  }
}
