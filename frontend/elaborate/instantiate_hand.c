// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What authors synchronise by hand: mbarriers, arrivals, waits, expected bytes, and roles of their own.
//
//   barriers:                              %full = mbarrier {depth 4, arrivals 1, by_hand}
//     full: mbarrier[4] arrivals(1)        mbarrier_init(%full); barrier
//   - wait: full[s], phase            ⇒    mbarrier_wait(%full, %s, %phase) {each = thread}
//   - specialize:                          roles { role {name = "load", …} { … } … }
//
// Whether phases, counts and roles fit is verify-barriers' matter; here is what can be seen in one statement.
#include "frontend/elaborate/instantiate_internal.h"

enum {
  WARP_THREADS = 32,
  WARPGROUP_WARPS = 4,
  MAX_WARPS = 32,
  MAX_ROLES = 8,      // each has a named barrier of its own (PTX ISA, barrier: 16)
  MAX_DEPTH = 64,     // mbarriers of one name
  REGISTER_UNIT = 8,  // PTX ISA, setmaxnreg
  MIN_REGISTERS = 24,
  MAX_REGISTERS = 240,  // more are never handed over as long as another role has some
  FIRST_SM = 90         // mbarriers that can be waited for, and the copy engine
};
static const int64_t max_arrivals = (1 << 20) - 1;  // PTX ISA, "mbarrier: contents"

// Reports a target without mbarriers, once a kernel.
static void validate_target(tl_sema *sema, tl_loc loc, const char *what) {
  if (!sema->target || sema->target->sm >= FIRST_SM) return;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_BARRIER_TARGET, loc, "%s has no %s", sema->target->name, what);
  tl_diag_add_hint(sema->diags, diag, "sm_90 is the first target that has them");
}

// ---- barriers

static bool depth_of(tl_sema *sema, const tl_barrier_decl *decl, int64_t *out) {
  *out = 1;
  if (!decl->depth) return true;
  if (!tl_sema_const_int(sema, decl->depth, "the number of barriers", out)) return false;
  if (*out >= 1 && *out <= MAX_DEPTH) return true;
  tl_diag_report(sema->diags, TL_DIAG_DIM_RANGE, decl->depth->loc, "there are 1 to %d barriers of one name, not %lld",
                 MAX_DEPTH, (long long)*out);
  return false;
}

// PTX ISA, "barrier": 16, of which the block has one, each role one, and `turn` some.
enum { MAX_NAMED = 7 };

static tl_op *build_barrier(tl_sema *sema, const tl_barrier_decl *decl, int64_t depth, int64_t arrivals) {
  sema->builder.loc = decl->loc;
  const tl_type *type = tl_type_simple(sema->module, TL_TYPE_MBARRIER);
  tl_op *op = tl_build(&sema->builder, decl->is_named ? TL_OP_NAMED_BARRIER : TL_OP_MBARRIER, NULL, &type, 1);
  tl_op_set_str(sema->module, op, TL_ATTR_NAME, decl->name);
  tl_op_set_int(sema->module, op, TL_ATTR_ARRIVALS, arrivals);
  if (decl->is_named) return op;
  tl_op_set_int(sema->module, op, TL_ATTR_DEPTH, depth);
  tl_op_set_unit(sema->module, op, TL_ATTR_BY_HAND);
  return op;
}

static void declare_barrier(tl_sema *sema, const tl_barrier_decl *decl) {
  tl_symbol *symbol = tl_sema_define(sema, decl->name, decl->loc, TL_ROLE_BARRIER, TL_SYMBOL_POISON);
  int64_t depth = 1, arrivals = 1;
  bool ok = depth_of(sema, decl, &depth);
  ok = tl_sema_const_int(sema, decl->arrivals, "the arrivals of a phase", &arrivals) && ok;
  int64_t most = decl->is_named ? MAX_WARPS : max_arrivals;
  if (ok && (arrivals < 1 || arrivals > most)) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, decl->arrivals->loc,
                   decl->is_named ? "1 to %lld warps meet at a named barrier, not %lld"
                                  : "a phase ends after 1 to %lld arrivals, not %lld",
                   (long long)most, (long long)arrivals);
    ok = false;
  }
  if (!ok || !symbol) return;
  tl_op *op = build_barrier(sema, decl, depth, arrivals);
  symbol->kind = TL_SYMBOL_BARRIER;
  symbol->value = tl_op_result(op, 0);
  symbol->value->name = tl_module_intern(sema->module, decl->name);
}

void tl_instantiate_barriers(tl_sema *sema) {
  const tl_kernel_spec *kernel = sema->kernel;
  if (kernel->num_barriers == 0) return;
  uint32_t num_named = 0;
  for (uint32_t i = 0; i < kernel->num_barriers; ++i) {
    const tl_barrier_decl *decl = &kernel->barriers[i];
    if (!decl->is_named && num_named == i) validate_target(sema, decl->loc, "mbarriers that can be waited for");
    declare_barrier(sema, decl);
    num_named += decl->is_named;
    if (decl->is_named && num_named == MAX_NAMED + 1)
      tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, decl->loc,
                     "a block has at most %d named barriers for its author", MAX_NAMED);
  }
  TL_VEC(tl_value *) all = {0};
  for (size_t i = 0; i < sema->stack.len; ++i)
    if (sema->stack.items[i]->kind == TL_SYMBOL_BARRIER && sema->stack.items[i]->value->def->code == TL_OP_MBARRIER)
      tl_vec_push(&all, sema->stack.items[i]->value);
  if (all.len == 0) return;
  sema->builder.loc = kernel->barriers[0].loc;
  tl_group groups[] = {{all.items, (uint32_t)all.len}};
  tl_build(&sema->builder, TL_OP_MBARRIER_INIT, groups, NULL, 0);
  // Other blocks may arrive at once.
  tl_build(&sema->builder, sema->cluster[0] ? TL_OP_CLUSTER_BARRIER : TL_OP_BARRIER, NULL, NULL, 0);
  tl_vec_fini(&all);
  if (sema->env->persistent != TL_SWITCH_ON) return;
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_ROLES, kernel->barriers[0].loc,
                     "the blocks of a persistent kernel take several tiles, and barriers go on in the phase "
                     "where the tile before left them");
  tl_diag_add_hint(sema->diags, diag,
                   "loop over the tiles in the body, with a grid of as many blocks as there shall be");
}

bool tl_instantiate_barrier(tl_sema *sema, const tl_expr *expr, tl_value **out_barrier, tl_value **out_stage) {
  const tl_expr *base = expr->kind == TL_EXPR_INDEX ? expr->operands[0] : expr;
  const tl_symbol *symbol = tl_sema_lookup(sema, base->text, base->loc);
  if (!symbol || symbol->kind == TL_SYMBOL_POISON) return false;
  if (symbol->kind != TL_SYMBOL_BARRIER) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, base->loc, "a barrier is needed, `%.*s` is %s",
                                   TL_STR_ARG(base->text), tl_symbol_a_role(symbol->role));
    tl_diag_add_note(sema->diags, diag, symbol->loc, "defined here");
    return false;
  }
  if (symbol->value->def->code == TL_OP_NAMED_BARRIER) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, base->loc,
                                   "`%.*s` is a named barrier, for `sync` and `arrive`: it has no phases to wait for",
                                   TL_STR_ARG(base->text));
    tl_diag_add_note(sema->diags, diag, symbol->loc, "declared here");
    return false;
  }
  *out_barrier = symbol->value;
  int64_t depth = tl_op_int(symbol->value->def, TL_ATTR_DEPTH, 1);
  bool is_one = expr->kind == TL_EXPR_NAME;
  bool is_element = !is_one && expr->num_subscripts == 1 && expr->subscripts[0].kind == TL_SUBSCRIPT_ELEMENT;
  if (is_one != (depth == 1 && is_one) || (!is_one && !is_element)) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_SUBSCRIPT_COUNT, expr->loc,
                                   "`%.*s` is %lld barrier%s: one is named by one subscript", TL_STR_ARG(symbol->name),
                                   (long long)depth, depth == 1 ? "" : "s");
    tl_diag_add_note(sema->diags, diag, symbol->loc, "declared here");
    return false;
  }
  sema->builder.loc = expr->loc;
  *out_stage = is_one ? tl_build_index(&sema->builder, 0) : tl_sema_index(sema, expr->subscripts[0].lo);
  if (!*out_stage) return false;
  return tl_instantiate_validate_stage(sema, symbol, *out_stage, depth, expr->loc);
}

bool tl_instantiate_validate_stage(tl_sema *sema, const tl_symbol *symbol, tl_value *stage, int64_t count, tl_loc loc) {
  tl_range range = tl_value_range(stage);
  if (range.hi >= 0 && range.lo < count) return true;
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_OUT_OF_BOUNDS, loc, "`%.*s` has %lld, from 0 on: this is always outside",
                     TL_STR_ARG(symbol->name), (long long)count);
  tl_diag_add_note(sema->diags, diag, symbol->loc, "declared here");
  return false;
}

// ---- statements

static void emit_arrive(tl_sema *sema, const tl_stmt *stmt, tl_value *barrier, tl_value *stage) {
  int each = tl_instantiate_enum_option(sema, stmt, "each", TL_IR_ENUM_EACH, TL_EACH_ROLE);
  const tl_option *option = tl_instantiate_option(stmt, "bytes");
  tl_value *bytes = option ? tl_sema_index(sema, option->value) : NULL;
  int32_t across;
  if (!tl_instantiate_across(sema, tl_instantiate_option(stmt, "cluster"), &across)) return;
  if (each < 0 || (option && !bytes)) return;
  if (bytes && across >= 0) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, option->loc,
                   "bytes are expected of the own block's barrier: without `cluster`");
    return;
  }
  if (bytes && each != TL_EACH_ROLE) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, option->loc,
                   "one thread expects bytes for all: `bytes` goes with `each: role`");
    return;
  }
  sema->builder.loc = stmt->loc;
  tl_group groups[] = {TL_GROUP_OF(barrier), TL_GROUP_OF(stage), {&bytes, bytes ? 1 : 0}};
  tl_op *op = tl_build(&sema->builder, TL_OP_MBARRIER_ARRIVE, groups, NULL, 0);
  tl_op_set_int(sema->module, op, TL_ATTR_EACH, each);
  if (across >= 0) tl_op_set_int(sema->module, op, TL_ATTR_ACROSS, across);
  int32_t threads = tl_op_threads_known(op);
  if (each != TL_EACH_WARPGROUP || threads % (WARPGROUP_WARPS * WARP_THREADS) == 0) return;
  tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, tl_instantiate_option(stmt, "each")->loc,
                 "`each: warpgroup` is of whole warpgroups of 128 threads, and here are %d", threads);
}

// The parity of a phase, proven to be one.
static tl_value *parity(tl_sema *sema, const tl_expr *expr) {
  tl_value *value = tl_sema_index(sema, expr);
  if (!value) return NULL;
  tl_range range = tl_value_range(value);
  if (range.lo >= 0 && range.hi <= 1) return value;
  bool never = range.hi < 0 || range.lo > 1;
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_PARITY, expr->loc, "a phase is told by its parity, 0 or 1: `%s` %s",
                     tl_sema_expr_text(sema, expr), never ? "is neither" : "may be another number");
  if (!never) tl_diag_add_hint(sema->diags, diag, "write `(%s) %% 2`", tl_sema_expr_text(sema, expr));
  return NULL;
}

static void emit_wait(tl_sema *sema, const tl_stmt *stmt, tl_value *barrier, tl_value *stage) {
  tl_value *phase = parity(sema, stmt->condition);
  if (!phase) return;
  sema->builder.loc = stmt->loc;
  tl_group groups[] = {TL_GROUP_OF(barrier), TL_GROUP_OF(stage), TL_GROUP_OF(phase)};
  tl_op *op = tl_build(&sema->builder, TL_OP_MBARRIER_WAIT, groups, NULL, 0);
  tl_op_set_int(sema->module, op, TL_ATTR_EACH, TL_EACH_THREAD);
}

static void emit_expect(tl_sema *sema, const tl_stmt *stmt, tl_value *barrier, tl_value *stage) {
  tl_value *bytes = tl_sema_index(sema, stmt->condition);
  int64_t constant;
  if (!bytes) return;
  if (tl_value_const_int(bytes, &constant) && (constant < 0 || constant > max_arrivals)) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, stmt->condition->loc, "a phase expects 0 to %lld bytes, not %lld",
                   (long long)max_arrivals, (long long)constant);
    return;
  }
  sema->builder.loc = stmt->loc;
  tl_group groups[] = {TL_GROUP_OF(barrier), TL_GROUP_OF(stage), TL_GROUP_OF(bytes)};
  tl_build(&sema->builder, TL_OP_MBARRIER_EXPECT, groups, NULL, 0);
}

bool tl_instantiate_named(tl_sema *sema, const tl_stmt *stmt) {
  const tl_expr *expr = stmt->target, *base = expr->kind == TL_EXPR_INDEX ? expr->operands[0] : expr;
  const tl_symbol *symbol = tl_strmap_get(&sema->names, base->text);
  bool is_barrier = symbol && symbol->kind == TL_SYMBOL_BARRIER;
  bool is_named = is_barrier && symbol->value->def->code == TL_OP_NAMED_BARRIER;
  bool syncs = stmt->kind == TL_STMT_SYNC;
  if (!is_named) {
    if (!syncs) return false;
    symbol = tl_sema_lookup(sema, base->text, base->loc);
    if (symbol && symbol->kind != TL_SYMBOL_POISON)
      tl_diag_report(sema->diags, TL_DIAG_NAME_MISUSED, base->loc, "`sync` is at a named barrier, and `%.*s` is %s",
                     TL_STR_ARG(base->text), is_barrier ? "an mbarrier" : tl_symbol_a_role(symbol->role));
    return true;
  }
  if (expr != base || stmt->num_options > 0) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, expr != base ? expr->loc : stmt->options[0].loc,
                   "a named barrier is one, and each warp arrives at it: no subscript and no options");
    return true;
  }
  sema->builder.loc = stmt->loc;
  tl_value *barrier = symbol->value;
  tl_group groups[] = {TL_GROUP_OF(barrier)};
  tl_build(&sema->builder, syncs ? TL_OP_NAMED_SYNC : TL_OP_NAMED_ARRIVE, groups, NULL, 0);
  return true;
}

void tl_instantiate_barrier_stmt(tl_sema *sema, const tl_stmt *stmt) {
  const char *what = stmt->kind == TL_STMT_ARRIVE ? "`arrive`" : stmt->kind == TL_STMT_WAIT ? "`wait`" : "`expect`";
  tl_value *barrier, *stage;
  if (tl_instantiate_refuse_in_parallel(sema, stmt, what)) return;
  if (stmt->kind == TL_STMT_ARRIVE && tl_instantiate_named(sema, stmt)) return;
  if (!tl_instantiate_barrier(sema, stmt->target, &barrier, &stage)) return;
  if (stmt->kind == TL_STMT_ARRIVE)
    emit_arrive(sema, stmt, barrier, stage);
  else if (stmt->kind == TL_STMT_WAIT)
    emit_wait(sema, stmt, barrier, stage);
  else
    emit_expect(sema, stmt, barrier, stage);
}

// ---- roles

static tl_diag *report_roles(tl_sema *sema, tl_loc loc, const char *problem) {
  return tl_diag_report(sema->diags, TL_DIAG_ROLES, loc, "%s", problem);
}

// What all threads of the block may do before they part.
static bool may_stand_before(const tl_op *op) {
  bool starts = op->code == TL_OP_MBARRIER_INIT || op->code == TL_OP_BARRIER || op->code == TL_OP_REQUIRE;
  bool is_of_thread = op->code == TL_OP_THREAD_ID || op->code == TL_OP_LANE_ID || op->code == TL_OP_WARP_ID;
  return starts || (!is_of_thread && (tl_op_info_of(op->code)->flags & (TL_OPFLAG_ONCE | TL_OPFLAG_PURE)));
}

static bool validate_place(tl_sema *sema, const tl_stmt *stmt) {
  const tl_op *kernel = tl_module_kernel(sema->module);
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`specialize`")) return false;
  if (sema->builder.block != kernel->regions[0]) {
    report_roles(sema, stmt->loc, "`specialize` stands directly in the body of a kernel");
    return false;
  }
  if (stmt->body.len == 0) {
    report_roles(sema, stmt->loc, "`specialize` has no role");
    return false;
  }
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (may_stand_before(op)) continue;
    tl_diag *diag =
        report_roles(sema, op->loc, "this stands in front of the roles, where all threads of the block are");
    tl_diag_add_note(sema->diags, diag, stmt->loc, "they part here");
    tl_diag_add_hint(sema->diags, diag, "move it into a role: only `let` and `view` may stand before `specialize`");
    return false;
  }
  return true;
}

// Warps and registers (0: as the kernel begins) of a role that has `first` warps before it.
static bool read_role(tl_sema *sema, const tl_stmt *role, int64_t first, int64_t *out_warps, int64_t *out_registers) {
  const tl_option *warps = tl_instantiate_option(role, "warps"), *registers = tl_instantiate_option(role, "registers");
  *out_registers = 0;
  if (!tl_sema_const_int(sema, warps->value, "`warps`", out_warps)) return false;
  if (*out_warps < 1 || *out_warps > MAX_WARPS) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, warps->value->loc, "a role has 1 to %d warps, not %lld",
                   MAX_WARPS, (long long)*out_warps);
    return false;
  }
  if (!registers) return true;
  if (!tl_sema_const_int(sema, registers->value, "`registers`", out_registers)) return false;
  if (*out_registers < MIN_REGISTERS || *out_registers > MAX_REGISTERS || *out_registers % REGISTER_UNIT != 0) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, registers->value->loc,
                   "`registers` is a multiple of %d from %d to %d, not %lld", REGISTER_UNIT, MIN_REGISTERS,
                   MAX_REGISTERS, (long long)*out_registers);
    return false;
  }
  if (first % WARPGROUP_WARPS == 0 && *out_warps % WARPGROUP_WARPS == 0) return true;
  report_roles(sema, registers->loc,
               "registers are handed over by whole warpgroups: the role must begin after, and have, a multiple of 4 "
               "warps");
  return false;
}

static bool validate_role_name(tl_sema *sema, const tl_stmt *stmt, uint32_t i) {
  for (uint32_t k = 0; k < i; ++k) {
    if (!tl_str_equal(stmt->body.items[k]->role, stmt->body.items[i]->role)) continue;
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NAME_REDEFINED, stmt->body.items[i]->text_loc,
                                   "`%.*s` is already the name of a role", TL_STR_ARG(stmt->body.items[i]->role));
    tl_diag_add_note(sema->diags, diag, stmt->body.items[k]->text_loc, "first defined here");
    return false;
  }
  return true;
}

// What all roles have together.
static bool validate_block(tl_sema *sema, const tl_stmt *stmt, const int64_t *warps, const int64_t *registers) {
  int64_t all = 0, taken = 0, with_registers = 0;
  for (uint32_t i = 0; i < stmt->body.len; ++i) {
    all += warps[i];
    taken += warps[i] * WARP_THREADS * registers[i];
    with_registers += registers[i] != 0;
  }
  if (all > MAX_WARPS) {
    tl_diag_report(sema->diags, TL_DIAG_ROLES, stmt->loc, "the roles have %lld warps, a block at most %d",
                   (long long)all, MAX_WARPS);
    return false;
  }
  int64_t threads = all * WARP_THREADS, given = sema->env->threads;
  if (given && given != threads) {
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_ROLES, stmt->loc, "the roles have %lld threads, `threads` says %lld",
                       (long long)threads, (long long)given);
    tl_diag_add_hint(sema->diags, diag, "leave `threads` out: the roles say it");
    return false;
  }
  if (with_registers == 0) return true;
  if (with_registers != stmt->body.len) {
    report_roles(sema, stmt->loc, "some roles have `registers` and some have not: what one gives another one takes");
    return false;
  }
  int64_t begin = 65536 / threads / REGISTER_UNIT * REGISTER_UNIT;
  if (begin > MAX_REGISTERS) begin = MAX_REGISTERS;
  if (taken <= begin * threads) return true;
  tl_diag_report(sema->diags, TL_DIAG_ROLES, stmt->loc,
                 "the roles take %lld registers, the block has %lld: %lld for each of its %lld threads",
                 (long long)taken, (long long)begin * threads, (long long)begin, (long long)threads);
  return false;
}

static void emit_role(tl_sema *sema, tl_op *roles, const tl_stmt *stmt, int64_t first, int64_t warps,
                      int64_t registers) {
  tl_builder outer = tl_instantiate_enter(sema, roles, 0);
  sema->builder.loc = stmt->loc;
  tl_op *role = tl_build(&sema->builder, TL_OP_ROLE, NULL, NULL, 0);
  tl_op_set_str(sema->module, role, TL_ATTR_NAME, stmt->role);
  tl_op_set_int(sema->module, role, TL_ATTR_FIRST_WARP, first);
  tl_op_set_int(sema->module, role, TL_ATTR_NUM_WARPS, warps);
  if (registers) tl_op_set_int(sema->module, role, TL_ATTR_REGISTERS, registers);
  tl_instantiate_enter(sema, role, 0);
  size_t mark = tl_sema_open_scope(sema);
  sema->in_role = true;
  tl_instantiate_stmts(sema, &stmt->body);
  sema->in_role = false;
  tl_sema_close_scope(sema, mark);
  tl_instantiate_leave(sema, outer);
}

void tl_instantiate_roles(tl_sema *sema, const tl_stmt *stmt) {
  int64_t warps[MAX_ROLES], registers[MAX_ROLES], first = 0;
  bool ok = validate_place(sema, stmt);
  sema->lost_roles = true;
  if (stmt->body.len > MAX_ROLES) {
    tl_diag_report(sema->diags, TL_DIAG_ROLES, stmt->loc, "%u roles: a block has at most %d", stmt->body.len,
                   MAX_ROLES);
    return;
  }
  for (uint32_t i = 0; i < stmt->body.len; ++i) {
    bool is_right = read_role(sema, stmt->body.items[i], first, &warps[i], &registers[i]);
    if (is_right) first += warps[i];
    ok = validate_role_name(sema, stmt, i) && is_right && ok;
  }
  if (!ok || !validate_block(sema, stmt, warps, registers)) return;
  bool hands_over = registers[0] != 0;
  if (hands_over && sema->target && !(sema->target->features & TL_FEATURE_WGMMA)) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_BARRIER_TARGET, stmt->loc,
                                   "%s has no setmaxnreg, which `registers` of roles need", sema->target->name);
    tl_diag_add_hint(sema->diags, diag, "sm_90a is the first target that has it");
    return;
  }
  sema->builder.loc = stmt->loc;
  tl_op *kernel = tl_module_kernel(sema->module), *roles = tl_build(&sema->builder, TL_OP_ROLES, NULL, NULL, 0);
  tl_op_set_unit(sema->module, roles, TL_ATTR_BY_HAND);
  tl_op_set_int(sema->module, kernel, TL_ATTR_THREADS, warps[0] * WARP_THREADS);
  tl_op_set_int(sema->module, kernel, TL_ATTR_MIN_BLOCKS, 1);
  first = 0;
  for (uint32_t i = 0; i < stmt->body.len; ++i) {
    emit_role(sema, roles, stmt->body.items[i], first, warps[i], registers[i]);
    first += warps[i];
  }
  sema->roles = roles;
  sema->lost_roles = false;
}

bool tl_instantiate_behind_roles(tl_sema *sema, const tl_stmt *stmt) {
  if (!sema->roles || sema->in_role) return false;
  tl_diag *diag = report_roles(sema, stmt->loc, "nothing follows the roles: they end when the kernel does");
  tl_diag_add_note(sema->diags, diag, sema->roles->loc, "the roles");
  return true;
}

// ---- what only the whole body tells

// Tiles in registers, and scalars, are of the threads that run a role.
static void validate_owner(tl_sema *sema, const tl_op *alloc) {
  const tl_op *owner = NULL;
  for (const tl_use *use = alloc->results[0].uses; use; use = use->next) {
    const tl_op *role = tl_op_enclosing(use->owner, TL_OP_ROLE);
    if (!role || role == owner) continue;
    if (!owner) {
      owner = role;
      continue;
    }
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_ROLE_TILE, use->owner->loc,
                       "'%s' is used by the roles '%s' and '%s', and each thread has its own",
                       tl_op_str(alloc, TL_ATTR_NAME), tl_op_str(owner, TL_ATTR_NAME), tl_op_str(role, TL_ATTR_NAME));
    tl_diag_add_note(sema->diags, diag, alloc->loc, "declared here");
    tl_diag_add_hint(sema->diags, diag, "give each role one of its own, or hand it over in a shared tile");
    return;
  }
}

static void validate_barrier_uses(tl_sema *sema, const tl_op *made) {
  bool is_waited = false, is_arrived = false;
  for (const tl_use *use = made->results[0].uses; use; use = use->next) {
    bool syncs = use->owner->code == TL_OP_NAMED_SYNC;
    is_waited |= syncs || use->owner->code == TL_OP_MBARRIER_WAIT;
    is_arrived |= syncs || use->owner->code == TL_OP_MBARRIER_ARRIVE || use->owner->code == TL_OP_NAMED_ARRIVE;
  }
  if ((is_waited && is_arrived) || sema->lost_roles) return;
  tl_diag_report(sema->diags, TL_DIAG_BARRIER_UNUSED, made->loc, "nobody %s '%s'",
                 is_waited    ? "arrives at"
                 : is_arrived ? "waits for"
                              : "arrives at or waits for",
                 tl_op_str(made, TL_ATTR_NAME));
}

void tl_instantiate_validate_hand(tl_sema *sema) {
  const tl_op *kernel = tl_module_kernel(sema->module);
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    bool is_named = op->code == TL_OP_NAMED_BARRIER;
    if (is_named || (op->code == TL_OP_MBARRIER && tl_op_has(op, TL_ATTR_BY_HAND))) validate_barrier_uses(sema, op);
    if (op->code == TL_OP_ALLOC && op->results[0].type->scope != TL_SCOPE_SHARED) validate_owner(sema, op);
  }
}
