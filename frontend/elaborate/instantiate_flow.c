// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// while, break, continue and exit. The tile IR is structured, so leaving is a matter of flags: bools of the block (or,
// inside `parallel`, of the element) that promote-locals turns into values.
//
//   for: k in n                        live = true; for k … while live { iteration = true
//     do: - if: c  then: [break: ]  ⇒    if c { iteration = false; live = false }
//         - rest                         if iteration { rest } }
//
// `iteration` says that the rest of this iteration runs, `live` that another iteration follows; `alive` is the kernel's
// own.
#include "frontend/elaborate/instantiate_internal.h"

typedef enum leave_kind { LEAVE_BREAK = 1, LEAVE_CONTINUE = 2, LEAVE_EXIT = 4 } leave_kind;

static bool is_loop(const tl_stmt *stmt) {
  return stmt->kind == TL_STMT_FOR || stmt->kind == TL_STMT_UNROLL || stmt->kind == TL_STMT_PIPELINED ||
         stmt->kind == TL_STMT_WHILE;
}

// How the statements may leave the list around them: leave_kind bits. What stands in a `parallel` stays in it.
static int leaves_of(const tl_stmt_list *list) {
  int found = 0;
  for (uint32_t i = 0; i < list->len; ++i) {
    const tl_stmt *stmt = list->items[i];
    if (stmt->kind == TL_STMT_BREAK) found |= LEAVE_BREAK;
    if (stmt->kind == TL_STMT_CONTINUE) found |= LEAVE_CONTINUE;
    if (stmt->kind == TL_STMT_EXIT) found |= LEAVE_EXIT;
    if (stmt->kind == TL_STMT_IF) found |= leaves_of(&stmt->body) | leaves_of(&stmt->else_body);
    if (stmt->kind == TL_STMT_USE) found |= leaves_of(&stmt->body);
    if (is_loop(stmt)) found |= leaves_of(&stmt->body) & LEAVE_EXIT;
  }
  return found;
}

// ---- flags

static tl_value *new_flag(tl_sema *sema, const char *name) {
  tl_op *kernel = tl_module_kernel(sema->module);
  tl_builder builder = sema->builder;
  builder.block = kernel->regions[0];
  builder.before = builder.block->first;
  const tl_type *type = tl_type_buffer(sema->module, TL_SCOPE_LOCAL, TL_DTYPE_BOOL, NULL, 0);
  tl_op *alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(sema->module, alloc, TL_ATTR_NAME, tl_str_from(name));
  tl_value *flag = tl_op_result(alloc, 0);
  flag->name = tl_module_intern(sema->module, tl_str_from(name));
  return flag;
}

static void set_flag(tl_sema *sema, tl_value *flag, tl_value *value) {
  tl_group groups[3] = {TL_GROUP_OF(value), TL_GROUP_OF(flag), TL_GROUP_EMPTY};
  tl_build(&sema->builder, TL_OP_STORE, groups, NULL, 0);
}

static void set_flag_to(tl_sema *sema, tl_value *flag, bool value) {
  if (flag) set_flag(sema, flag, tl_build_bool(&sema->builder, value));
}

static tl_value *get_flag(tl_sema *sema, tl_value *flag) {
  const tl_type *type = tl_type_scalar(sema->module, TL_DTYPE_BOOL);
  tl_group groups[3] = {TL_GROUP_OF(flag), TL_GROUP_EMPTY, TL_GROUP_EMPTY};
  return tl_op_result(tl_build(&sema->builder, TL_OP_LOAD, groups, &type, 1), 0);
}

void tl_instantiate_kernel_body(tl_sema *sema, const tl_stmt_list *list) {
  if (leaves_of(list) & LEAVE_EXIT) {
    sema->alive = new_flag(sema, "alive");
    set_flag_to(sema, sema->alive, true);
  }
  tl_instantiate_stmts(sema, list);
}

bool tl_instantiate_begin_rest(tl_sema *sema, const tl_stmt *stmt, tl_builder *out_outer) {
  tl_stmt_list one = {(tl_stmt **)&stmt, 1};
  if (!leaves_of(&one)) return false;
  bool own_loop = sema->flow && sema->flow->in_parallel == sema->in_parallel;
  tl_value *flag = own_loop ? sema->flow->iteration : sema->in_parallel ? NULL : sema->alive;
  if (!flag) return false;
  sema->builder.loc = stmt->loc;
  tl_group group = TL_GROUP_OF(get_flag(sema, flag));
  tl_op *op = tl_build(&sema->builder, TL_OP_IF, &group, NULL, 0);
  *out_outer = tl_instantiate_enter(sema, op, 0);
  return true;
}

// ---- loops

tl_op *tl_instantiate_begin_loop(tl_sema *sema, const tl_stmt *stmt, tl_value *const *range, tl_flow *flow) {
  int leaves = leaves_of(&stmt->body);
  *flow = (tl_flow){.outer = sema->flow, .in_parallel = sema->in_parallel};
  if (leaves) flow->iteration = new_flag(sema, "iteration");
  if (stmt->kind == TL_STMT_WHILE || (leaves & (LEAVE_BREAK | LEAVE_EXIT))) flow->live = new_flag(sema, "live");
  sema->flow = flow;
  sema->builder.loc = stmt->loc;
  set_flag_to(sema, flow->live, true);
  tl_value *first = flow->live ? tl_build_bool(&sema->builder, true) : NULL;
  const tl_type *type = tl_type_scalar(sema->module, TL_DTYPE_BOOL);
  tl_group groups[4] = {TL_GROUP_OF(range[0]), TL_GROUP_OF(range[1]), TL_GROUP_OF(range[2]), {&first, first ? 1 : 0}};
  tl_op *op = tl_build(&sema->builder, TL_OP_FOR, groups, &type, first ? 1 : 0);
  tl_block_add_arg(sema->module, op->regions[0], tl_type_index(sema->module), NULL);
  if (first) {
    tl_block_add_arg(sema->module, op->regions[0], type, NULL);
    tl_op_set_unit(sema->module, op, TL_ATTR_WHILE);
  }
  flow->before = tl_instantiate_enter(sema, op, 0);
  set_flag_to(sema, flow->iteration, true);
  return op;
}

void tl_instantiate_end_loop(tl_sema *sema, tl_flow *flow) {
  if (flow->live) {
    tl_value *live = get_flag(sema, flow->live);
    tl_build_yield(&sema->builder, &live, 1);
  }
  tl_instantiate_leave(sema, flow->before);
  sema->flow = flow->outer;
}

static void emit_list(tl_sema *sema, const tl_stmt_list *list) {
  size_t mark = tl_sema_open_scope(sema);
  tl_instantiate_stmts(sema, list);
  tl_sema_close_scope(sema, mark);
}

// Turns without an end, each of which asks for the condition first.
void tl_instantiate_while(tl_sema *sema, const tl_stmt *stmt) {
  sema->builder.loc = stmt->loc;
  tl_value *range[3] = {tl_build_index(&sema->builder, 0), tl_build_index(&sema->builder, TL_FOR_ENDLESS),
                        tl_build_index(&sema->builder, 1)};
  tl_flow flow;
  tl_instantiate_begin_loop(sema, stmt, range, &flow);
  tl_sema_value condition = tl_instantiate_block_condition(sema, stmt->condition);
  sema->builder.loc = stmt->loc;
  tl_value *more =
      condition.kind == TL_SEMA_VALUE ? condition.value : tl_build_bool(&sema->builder, condition.constant.i != 0);
  set_flag(sema, flow.live, more);
  tl_group group = TL_GROUP_OF(more);
  tl_op *op = tl_build(&sema->builder, TL_OP_IF, &group, NULL, 0);
  tl_builder outer = tl_instantiate_enter(sema, op, 0);
  emit_list(sema, &stmt->body);
  tl_instantiate_leave(sema, outer);
  tl_instantiate_end_loop(sema, &flow);
}

// ---- leaving

static tl_flow *innermost_loop(tl_sema *sema, const tl_stmt *stmt, const char *what) {
  tl_flow *flow = sema->flow;
  if (flow && flow->in_parallel == sema->in_parallel) return flow;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_STMT_PLACE, stmt->loc, "`%s` stands outside of a loop", what);
  if (flow) {
    tl_diag_add_hint(sema->diags, diag, "the loop around the `parallel` cannot be left from one of its elements");
  }
  return NULL;
}

void tl_instantiate_break(tl_sema *sema, const tl_stmt *stmt) {
  tl_flow *flow = innermost_loop(sema, stmt, "break");
  if (!flow) return;
  sema->builder.loc = stmt->loc;
  set_flag_to(sema, flow->iteration, false);
  set_flag_to(sema, flow->live, false);
}

void tl_instantiate_continue(tl_sema *sema, const tl_stmt *stmt) {
  tl_flow *flow = innermost_loop(sema, stmt, "continue");
  if (!flow) return;
  sema->builder.loc = stmt->loc;
  set_flag_to(sema, flow->iteration, false);
}

void tl_instantiate_exit(tl_sema *sema, const tl_stmt *stmt) {
  if (sema->in_role) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_STMT_PLACE, stmt->loc, "`exit` cannot stand in a role");
    tl_diag_add_hint(sema->diags, diag, "it ends the whole block, and the other roles are elsewhere");
    return;
  }
  if (sema->in_parallel) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_STMT_PLACE, stmt->loc, "`exit` cannot stand inside `parallel`");
    tl_diag_add_hint(sema->diags, diag, "it ends the whole block; for one element write `if` or the option `where`");
    return;
  }
  tl_sema_value condition = tl_sema_of_const(tl_const_bool(true));
  if (stmt->condition) condition = tl_sema_condition(sema, stmt->condition);
  bool never = condition.kind == TL_SEMA_CONST && !condition.constant.i;
  if (condition.kind == TL_SEMA_POISON || never) return;
  sema->builder.loc = stmt->loc;
  tl_builder outer = sema->builder;
  if (condition.kind == TL_SEMA_VALUE) {
    tl_group group = TL_GROUP_OF(condition.value);
    tl_op *op = tl_build(&sema->builder, TL_OP_IF, &group, NULL, 0);
    outer = tl_instantiate_enter(sema, op, 0);
  }
  set_flag_to(sema, sema->alive, false);
  for (tl_flow *flow = sema->flow; flow; flow = flow->outer) {
    set_flag_to(sema, flow->iteration, false);
    set_flag_to(sema, flow->live, false);
  }
  if (condition.kind == TL_SEMA_VALUE) tl_instantiate_leave(sema, outer);
}
