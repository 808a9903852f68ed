// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A step of a chain: whether what it passes fits the arguments of its kernel.
#include "frontend/chain/chain_internal.h"
#include "frontend/expr/suggest.h"

static const tl_chain_symbol *find_symbol(const tl_chain_frame *frame, tl_str name) {
  for (size_t i = 0; i < frame->symbols->len; i++)
    if (tl_str_equal(frame->symbols->items[i].name, name)) return &frame->symbols->items[i];
  return NULL;
}

static void note_arg(tl_chain_planner *p, tl_diag *diag, const tl_arg *arg) {
  tl_diag_add_note(p->diags, diag, arg->loc, "`%.*s` is declared here", TL_STR_ARG(arg->name));
}

static bool report_no_tensor(tl_chain_planner *p, const tl_chain_frame *frame, const tl_chain_call *call,
                             tl_chain_passed *passed) {
  const tl_expr *expr = passed->expr;
  bool is_name = expr->kind == TL_EXPR_NAME;
  if (passed->symbol) {
    tl_diag *diag = tl_diag_report(p->diags, TL_DIAG_CHAIN_TYPE, expr->loc,
                                   "`%.*s` of `%.*s` is a tensor, `%.*s` a scalar", TL_STR_ARG(passed->arg->name),
                                   TL_STR_ARG(call->step->kernel->name), TL_STR_ARG(passed->symbol->name));
    note_arg(p, diag, passed->arg);
    passed->symbol = NULL;
    return false;
  }
  tl_diag *diag = tl_diag_report(p->diags, is_name ? TL_DIAG_NAME_UNKNOWN : TL_DIAG_CHAIN_TYPE, expr->loc,
                                 "`%.*s` of `%.*s` is a tensor: an argument, a buffer or a view of the chain",
                                 TL_STR_ARG(passed->arg->name), TL_STR_ARG(call->step->kernel->name));
  if (!is_name) return false;
  tl_str *names = TL_NEW_ARRAY(p->arena, tl_str, frame->symbols->len + 1);
  size_t count = 0;
  for (size_t i = 0; i < frame->symbols->len; i++)
    if (frame->symbols->items[i].type.is_tensor) names[count++] = frame->symbols->items[i].name;
  size_t nearest = tl_suggest_index(expr->text, names, count);
  if (nearest != SIZE_MAX) tl_diag_add_hint(p->diags, diag, "did you mean `%.*s`?", TL_STR_ARG(names[nearest]));
  return false;
}

static bool find_tensor(tl_chain_planner *p, const tl_chain_frame *frame, const tl_chain_call *call,
                        tl_chain_passed *passed) {
  passed->symbol = passed->expr->kind == TL_EXPR_NAME ? find_symbol(frame, passed->expr->text) : NULL;
  if (passed->symbol && passed->symbol->type.is_tensor) return true;
  return report_no_tensor(p, frame, call, passed);
}

// ---- dynamic params that the passed tensors tell

static void infer(tl_chain_call *call, const tl_expr *expr, const tl_mexpr *value) {
  if (expr->kind != TL_EXPR_NAME) return;
  const tl_env_entry *entry = tl_env_find(&call->scope.env, expr->text);
  if (!entry || !entry->is_dynamic) return;
  const tl_mexpr **known = &call->scope.dynamics[entry - call->scope.env.entries];
  if (!*known) *known = value;
}

static void infer_from(tl_chain_call *call, const tl_chain_passed *passed) {
  const tl_chain_type *type = &passed->symbol->type;
  if (type->rank != (int32_t)passed->arg->num_dims) return;
  for (uint32_t i = 0; i < passed->arg->num_dims; i++) infer(call, passed->arg->dims[i], type->dims[i]);
  for (uint32_t i = 0; i < passed->arg->num_strides && i < passed->arg->num_dims; i++)
    infer(call, passed->arg->strides[i], type->strides[i]);
}

static bool validate_dynamics(tl_chain_planner *p, const tl_chain_call *call) {
  bool ok = true;
  for (uint32_t i = 0; i < call->kernel->num_params; i++) {
    const tl_param *param = &call->kernel->params[i];
    if (param->kind != TL_PARAM_DYNAMIC) continue;
    const tl_mexpr *value = call->scope.dynamics[i];
    int64_t constant = 0;
    tl_const divisor = tl_const_int(1);
    if (!value) {
      tl_diag *diag = tl_diag_report(p->diags, TL_DIAG_CHAIN_PARAM, call->step->call->loc,
                                     "the dynamic param `%.*s` of `%.*s` has no value in this step",
                                     TL_STR_ARG(param->name), TL_STR_ARG(call->step->kernel->name));
      tl_diag_add_note(p->diags, diag, param->loc, "declared dynamic here");
      tl_diag_add_hint(p->diags, diag, "give it: `%.*s(…, %.*s=…)`", TL_STR_ARG(call->step->kernel->name),
                       TL_STR_ARG(param->name));
      ok = false;
    } else if (tl_mexpr_is_int(value, &constant) &&
               (constant < 0 || constant > (param->is_wide ? TL_WIDE_MAX : INT32_MAX))) {
      tl_diag *diag = tl_diag_report(p->diags, TL_DIAG_DIM_RANGE, call->step->call->loc,
                                     "the dynamic param `%.*s` is 0 to 2^%d - 1, not %lld", TL_STR_ARG(param->name),
                                     param->is_wide ? 47 : 31, (long long)constant);
      tl_diag_add_note(p->diags, diag, param->loc, "declared dynamic here");
      ok = false;
    } else if (tl_mexpr_is_int(value, &constant) && param->divisor &&
               tl_env_eval(&call->scope.env, param->divisor, p->diags, &divisor) && divisor.kind == TL_CONST_INT &&
               divisor.i > 0 && constant % divisor.i != 0) {
      tl_diag *diag =
          tl_diag_report(p->diags, TL_DIAG_REQUIREMENT, call->step->call->loc, "%.*s = %lld is not a multiple of %lld",
                         TL_STR_ARG(param->name), (long long)constant, (long long)divisor.i);
      tl_diag_add_note(p->diags, diag, param->loc, "declared dynamic(%lld) here", (long long)divisor.i);
      ok = false;
    }
  }
  return ok;
}

// ---- tensors

// What the kernel's argument and the passed tensor disagree in; NULL when they may agree.
static const char *disagreement(tl_arena *arena, const tl_chain_type *wanted, const tl_chain_type *given) {
  if (wanted->dtype != given->dtype) return "the dtypes differ";
  if (wanted->rank != given->rank) return tl_arena_printf(arena, "%d and %d dims", (int)wanted->rank, (int)given->rank);
  for (int32_t i = 0; i < wanted->rank; i++) {
    int64_t a = 0, b = 0;
    if (!tl_chain_differ(wanted->dims[i], given->dims[i])) continue;
    tl_mexpr_is_int(wanted->dims[i], &a);
    tl_mexpr_is_int(given->dims[i], &b);
    return tl_arena_printf(arena, "dim %d is %lld and %lld", (int)i, (long long)a, (long long)b);
  }
  for (int32_t i = 0; i < wanted->rank; i++) {
    int64_t extent = 2;
    tl_mexpr_is_int(wanted->dims[i], &extent);
    if (extent > 1 && tl_chain_differ(wanted->strides[i], given->strides[i]))
      return tl_arena_printf(arena, "the strides of dim %d differ", (int)i);
  }
  return NULL;
}

static bool validate_tensor(tl_chain_planner *p, const tl_chain_call *call, tl_chain_passed *passed) {
  const tl_chain_symbol *symbol = passed->symbol;
  const char *reason = disagreement(p->arena, &passed->type, &symbol->type);
  if (reason) {
    tl_diag *diag = tl_diag_report(p->diags, TL_DIAG_CHAIN_TYPE, passed->expr->loc,
                                   "`%.*s` of `%.*s` is %s here, `%.*s` is %s: %s", TL_STR_ARG(passed->arg->name),
                                   TL_STR_ARG(call->step->kernel->name), tl_chain_type_text(p->arena, &passed->type),
                                   TL_STR_ARG(symbol->name), tl_chain_type_text(p->arena, &symbol->type), reason);
    note_arg(p, diag, passed->arg);
    tl_diag_add_note(p->diags, diag, symbol->loc, "`%.*s` is declared here", TL_STR_ARG(symbol->name));
    return false;
  }
  if (symbol->type.align < passed->type.align) {
    tl_diag *diag = tl_diag_report(
        p->diags, TL_DIAG_CHAIN_TYPE, passed->expr->loc, "`%.*s` of `%.*s` is aligned to %lld bytes, `%.*s` to %lld",
        TL_STR_ARG(passed->arg->name), TL_STR_ARG(call->step->kernel->name), (long long)passed->type.align,
        TL_STR_ARG(symbol->name), (long long)symbol->type.align);
    note_arg(p, diag, passed->arg);
    return false;
  }
  const tl_chain_memory *memory = &p->memories.items[symbol->memory];
  passed->given = (tl_manifest_given){.kind = memory->is_buffer ? TL_MGIVEN_BUFFER : TL_MGIVEN_ARGUMENT,
                                      .index = memory->index,
                                      .dtype = symbol->type.dtype,
                                      .rank = symbol->type.rank,
                                      .dims = symbol->type.dims,
                                      .strides = symbol->type.strides};
  return true;
}

// ---- scalars

static bool validate_scalar(tl_chain_planner *p, const tl_chain_frame *frame, const tl_chain_call *call,
                            tl_chain_passed *passed) {
  const tl_expr *expr = passed->expr;
  const tl_chain_symbol *symbol = expr->kind == TL_EXPR_NAME ? find_symbol(frame, expr->text) : NULL;
  bool wants_float = tl_dtype_is_float(passed->type.dtype), has_float = false;
  tl_const value;
  if (symbol && !symbol->type.is_tensor) {
    passed->given = symbol->scalar;
    has_float = tl_dtype_is_float(symbol->type.dtype);
  } else if (symbol) {
    tl_diag *diag =
        tl_diag_report(p->diags, TL_DIAG_CHAIN_TYPE, expr->loc, "`%.*s` of `%.*s` is a scalar, `%.*s` a tensor",
                       TL_STR_ARG(passed->arg->name), TL_STR_ARG(call->step->kernel->name), TL_STR_ARG(symbol->name));
    note_arg(p, diag, passed->arg);
    return false;
  } else if (tl_chain_is_dynamic(frame->scope, expr)) {
    passed->given =
        (tl_manifest_given){.kind = TL_MGIVEN_INT, .value = tl_chain_int(p->arena, frame->scope, expr, p->diags)};
    if (!passed->given.value) return false;
  } else if (!tl_env_eval(&frame->scope->env, expr, p->diags, &value)) {
    return false;
  } else {
    has_float = value.kind == TL_CONST_FLOAT;
    passed->given = wants_float ? (tl_manifest_given){.kind = TL_MGIVEN_FLOAT, .number = tl_const_to_double(&value)}
                                : (tl_manifest_given){.kind = TL_MGIVEN_INT, .value = tl_mexpr_int(p->arena, value.i)};
    if (!tl_const_is_number(&value)) {
      tl_diag_report(p->diags, TL_DIAG_CHAIN_TYPE, expr->loc, "`%.*s` of `%.*s` is a number",
                     TL_STR_ARG(passed->arg->name), TL_STR_ARG(call->step->kernel->name));
      return false;
    }
  }
  if (wants_float || !has_float) return true;
  tl_diag *diag = tl_diag_report(p->diags, TL_DIAG_CHAIN_TYPE, expr->loc, "`%.*s` of `%.*s` is %s, not a float",
                                 TL_STR_ARG(passed->arg->name), TL_STR_ARG(call->step->kernel->name),
                                 tl_dtype_name(passed->type.dtype));
  note_arg(p, diag, passed->arg);
  return false;
}

// ---- reading and writing

static bool validate_access(tl_chain_planner *p, const tl_chain_call *call, const tl_chain_passed *passed) {
  const tl_chain_symbol *symbol = passed->symbol;
  tl_chain_memory *memory = &p->memories.items[symbol->memory];
  int access = passed->arg->access;
  if (access != TL_ARG_IN && !symbol->is_written) {
    tl_diag *diag = tl_diag_report(p->diags, TL_DIAG_WRITE_TO_INPUT, passed->expr->loc,
                                   "`%.*s` is an `in` tensor and `%.*s` writes it", TL_STR_ARG(symbol->name),
                                   TL_STR_ARG(call->step->kernel->name));
    tl_diag_add_note(p->diags, diag, symbol->loc, "declared here; declare it `out` or `inout`");
    return false;
  }
  if (access == TL_ARG_OUT) return true;
  memory->is_read = true;
  if (memory->is_written) return true;
  tl_diag *diag = tl_diag_report(p->diags, TL_DIAG_CHAIN_UNWRITTEN, passed->expr->loc,
                                 "`%.*s` is read by `%.*s` before any step has written it", TL_STR_ARG(symbol->name),
                                 TL_STR_ARG(call->step->kernel->name));
  tl_diag_add_note(p->diags, diag, memory->loc, "`%s` is declared here", memory->name);
  memory->is_written = true;  // once is enough
  return false;
}

static bool validate_aliases(tl_chain_planner *p, const tl_chain_call *call) {
  for (uint32_t i = 0; i < call->kernel->num_args; i++) {
    const tl_chain_passed *a = &call->passed[i];
    for (uint32_t k = 0; k < i && a->symbol; k++) {
      const tl_chain_passed *b = &call->passed[k];
      if (!b->symbol || a->symbol->memory != b->symbol->memory) continue;
      if (a->arg->access == TL_ARG_IN && b->arg->access == TL_ARG_IN) continue;
      const tl_arg *written = a->arg->access == TL_ARG_IN ? b->arg : a->arg;
      tl_diag *diag = tl_diag_report(
          p->diags, TL_DIAG_CHAIN_ALIAS, a->expr->loc, "`%s` is both `%.*s` and `%.*s` of `%.*s`, which writes `%.*s`",
          p->memories.items[a->symbol->memory].name, TL_STR_ARG(b->arg->name), TL_STR_ARG(a->arg->name),
          TL_STR_ARG(call->step->kernel->name), TL_STR_ARG(written->name));
      note_arg(p, diag, written);
      return false;
    }
  }
  return true;
}

bool tl_chain_call_make(tl_chain_planner *p, const tl_chain_frame *frame, const tl_step *step, tl_chain_call *call) {
  *call = (tl_chain_call){.step = step};
  if (!tl_chain_call_bind(p, frame, call)) return false;
  uint32_t num_args = call->kernel->num_args;
  bool ok = true;
  for (uint32_t i = 0; i < num_args; i++)
    if (call->passed[i].arg->is_tensor) ok = find_tensor(p, frame, call, &call->passed[i]) && ok;
  for (uint32_t i = 0; ok && i < num_args; i++)
    if (call->passed[i].symbol) infer_from(call, &call->passed[i]);
  if (!ok || !validate_dynamics(p, call)) return false;
  for (uint32_t i = 0; i < num_args; i++) {
    tl_chain_passed *passed = &call->passed[i];
    bool fits = tl_chain_arg_type(p->arena, &call->scope, passed->arg, p->diags, &passed->type) &&
                (passed->symbol ? validate_tensor(p, call, passed) && validate_access(p, call, passed)
                                : validate_scalar(p, frame, call, passed));
    passed->given.name = tl_arena_copy_bytes(p->arena, passed->arg->name.data, passed->arg->name.len);
    ok = ok && fits;
  }
  return ok && validate_aliases(p, call);
}
