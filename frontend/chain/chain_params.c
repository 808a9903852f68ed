// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A step of a chain: what it gives the params and the arguments of its kernel.
#include <string.h>

#include "frontend/chain/chain_internal.h"
#include "frontend/expr/suggest.h"
#include "frontend/spec/schema.h"

static const tl_keyword *find_keyword(const tl_expr *call, tl_str name) {
  for (uint32_t i = 0; i < call->num_keywords; i++)
    if (tl_str_equal(call->keywords[i].name, name)) return &call->keywords[i];
  return NULL;
}

static bool is_param(const tl_kernel_spec *kernel, tl_str name) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (tl_str_equal(kernel->params[i].name, name)) return true;
  return false;
}

static const tl_param *find_param(const tl_kernel_spec *kernel, tl_str name) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (tl_str_equal(kernel->params[i].name, name)) return &kernel->params[i];
  return NULL;
}

static bool is_arg(const tl_kernel_spec *kernel, tl_str name) {
  for (uint32_t i = 0; i < kernel->num_args; i++)
    if (tl_str_equal(kernel->args[i].name, name)) return true;
  return false;
}

static bool is_setting(tl_str name) {
  const tl_schema_setting *setting = tl_schema_find_setting(name);
  return setting && setting->state == TL_SCHEMA_NOW;
}

// ---- arguments

static void report_arguments(tl_chain_planner *p, const tl_kernel_spec *kernel, tl_loc loc, const char *what) {
  tl_strbuf list = {0};
  for (uint32_t i = 0; i < kernel->num_args; i++)
    tl_strbuf_appendf(&list, "%s%.*s", i ? ", " : "", TL_STR_ARG(kernel->args[i].name));
  tl_diag *diag = tl_diag_report(p->diags, TL_DIAG_CHAIN_ARGUMENTS, loc, "`%.*s` takes %u argument%s (%s), %s",
                                 TL_STR_ARG(kernel->name), kernel->num_args, kernel->num_args == 1 ? "" : "s",
                                 list.len ? tl_strbuf_c(&list) : "none", what);
  tl_diag_add_note(p->diags, diag, kernel->loc, "`%.*s` is defined here", TL_STR_ARG(kernel->name));
  tl_strbuf_fini(&list);
}

static bool bind_positional(tl_chain_planner *p, tl_chain_call *call) {
  const tl_kernel_spec *kernel = call->step->kernel;
  const tl_expr *expr = call->step->call;
  if (expr->num_operands > kernel->num_args) {
    tl_strbuf what = {0};
    tl_strbuf_appendf(&what, "%u are given", expr->num_operands);
    report_arguments(p, kernel, expr->operands[kernel->num_args]->loc, tl_strbuf_c(&what));
    tl_strbuf_fini(&what);
    return false;
  }
  for (uint32_t i = 0; i < expr->num_operands; i++) call->passed[i].expr = expr->operands[i];
  return true;
}

static bool report_unknown(tl_chain_planner *p, const tl_kernel_spec *kernel, const tl_keyword *keyword) {
  if (tl_schema_find_setting(keyword->name)) {  // and not one that is compiled
    tl_diag_report(p->diags, TL_DIAG_NOT_SUPPORTED_YET, keyword->loc, "`%.*s` is not supported yet",
                   TL_STR_ARG(keyword->name));
    return false;
  }
  tl_diag *diag =
      tl_diag_report(p->diags, TL_DIAG_CHAIN_ARGUMENTS, keyword->loc, "`%.*s` has no argument or param `%.*s`",
                     TL_STR_ARG(kernel->name), TL_STR_ARG(keyword->name));
  uint32_t count = 0;
  tl_str *names = TL_NEW_ARRAY(p->arena, tl_str, kernel->num_args + kernel->num_params + TL_SCHEMA_MAX_SETTINGS);
  for (uint32_t i = 0; i < kernel->num_args; i++) names[count++] = kernel->args[i].name;
  for (uint32_t i = 0; i < kernel->num_params; i++) names[count++] = kernel->params[i].name;
  count += tl_schema_list_settings(names + count);
  size_t nearest = tl_suggest_index(keyword->name, names, count);
  if (nearest != SIZE_MAX) tl_diag_add_hint(p->diags, diag, "did you mean `%.*s`?", TL_STR_ARG(names[nearest]));
  return false;
}

static bool bind_arguments(tl_chain_planner *p, tl_chain_call *call) {
  const tl_kernel_spec *kernel = call->step->kernel;
  const tl_expr *expr = call->step->call;
  call->passed = TL_NEW_ARRAY(p->arena, tl_chain_passed, kernel->num_args + 1);
  for (uint32_t i = 0; i < kernel->num_args; i++) call->passed[i].arg = &kernel->args[i];
  bool ok = bind_positional(p, call);
  for (uint32_t k = 0; k < expr->num_keywords; k++) {
    const tl_keyword *keyword = &expr->keywords[k];
    for (uint32_t i = 0; i < k; i++) {
      if (!tl_str_equal(expr->keywords[i].name, keyword->name)) continue;
      tl_diag_report(p->diags, TL_DIAG_CHAIN_ARGUMENTS, keyword->loc, "`%.*s` is given twice",
                     TL_STR_ARG(keyword->name));
      ok = false;
    }
    if (!is_arg(kernel, keyword->name)) {
      bool is_known = is_param(kernel, keyword->name) || is_setting(keyword->name);
      ok = (is_known || report_unknown(p, kernel, keyword)) && ok;
      continue;
    }
    for (uint32_t i = 0; i < kernel->num_args; i++) {
      if (!tl_str_equal(kernel->args[i].name, keyword->name)) continue;
      if (i < expr->num_operands) {
        tl_diag_report(p->diags, TL_DIAG_CHAIN_ARGUMENTS, keyword->loc, "`%.*s` is given twice",
                       TL_STR_ARG(keyword->name));
        ok = false;
      }
      call->passed[i].expr = keyword->value;
    }
  }
  for (uint32_t i = 0; ok && i < kernel->num_args; i++) {
    if (call->passed[i].expr) continue;
    tl_strbuf what = {0};
    tl_strbuf_appendf(&what, "`%.*s` is missing", TL_STR_ARG(kernel->args[i].name));
    report_arguments(p, kernel, expr->loc, tl_strbuf_c(&what));
    tl_strbuf_fini(&what);
    ok = false;
  }
  return ok;
}

// ---- params

// What the chain gives a param of the kernel: the step's `name=value`, else its own param of that name; NULL: nothing.
static const tl_expr *given_value(tl_chain_planner *p, const tl_chain_frame *frame, const tl_expr *call, tl_str name) {
  const tl_keyword *keyword = find_keyword(call, name);
  if (keyword) return keyword->value;
  const tl_param *param = find_param(frame->scope->unit, name);
  if (!param) return NULL;
  tl_expr *expr = TL_NEW(p->arena, tl_expr);
  *expr = (tl_expr){.kind = TL_EXPR_NAME, .text = param->name, .loc = param->loc, .height = 1};
  return expr;
}

typedef struct binder {
  tl_chain_planner *planner;
  const tl_chain_frame *frame;
  tl_chain_call *call;
  tl_param *params;  // of the copy
  tl_binding *bindings;
  uint32_t num_bindings;
  const tl_mexpr **values;  // one a param: of those that the launch gets
} binder;

// What the outer chain knows of a dynamic value's divisor goes with it.
static tl_expr *divisor_of(const binder *b, const tl_expr *value) {
  const tl_param *param = value->kind == TL_EXPR_NAME ? find_param(b->frame->scope->unit, value->text) : NULL;
  tl_const divisor;
  if (!param || !param->divisor || !tl_env_eval(&b->frame->scope->env, param->divisor, b->planner->diags, &divisor))
    return NULL;
  return tl_chain_literal(b->planner->arena, &divisor, param->loc);
}

static bool bind_param(binder *b, uint32_t index) {
  tl_chain_planner *p = b->planner;
  tl_param *param = &b->params[index];
  const tl_expr *value = given_value(p, b->frame, b->call->step->call, param->name);
  if (!value) return true;
  if (tl_chain_is_dynamic(b->frame->scope, value)) {
    b->values[index] = tl_chain_int(p->arena, b->frame->scope, value, p->diags);
    if (param->kind != TL_PARAM_DYNAMIC) {
      param->divisor = divisor_of(b, value);
      param->is_wide = tl_chain_is_wide(b->frame->scope, value);
    }
    param->kind = TL_PARAM_DYNAMIC;
    return b->values[index] != NULL;
  }
  if (param->kind == TL_PARAM_DYNAMIC) {
    b->values[index] = tl_chain_int(p->arena, b->frame->scope, value, p->diags);
    return b->values[index] != NULL;
  }
  tl_const constant;
  if (!tl_env_eval(&b->frame->scope->env, value, p->diags, &constant)) return false;
  b->bindings[b->num_bindings++] =
      (tl_binding){param->name, tl_chain_literal(p->arena, &constant, value->loc), value->loc};
  return true;
}

// `threads`, `fast_math` and `persistent`: of the step, else what the whole chain was given.
static bool bind_setting(binder *b, const char *name, tl_expr *inherited) {
  tl_chain_planner *p = b->planner;
  const tl_keyword *keyword = find_keyword(b->call->step->call, tl_str_from(name));
  if (is_param(b->call->step->kernel, tl_str_from(name)) || (!keyword && !inherited)) return true;
  tl_loc loc = keyword ? keyword->value->loc : b->call->step->call->loc;
  tl_expr *expr = keyword ? keyword->value : inherited;
  tl_const value;
  bool is_word =
      keyword && expr->kind == TL_EXPR_NAME &&
      (tl_str_is(expr->text, "auto") || (strcmp(name, "persistent") == 0 && tl_str_is(expr->text, "dynamic")));
  if (keyword && !is_word) {
    if (!tl_env_eval(&b->frame->scope->env, expr, p->diags, &value)) return false;
    expr = tl_chain_literal(p->arena, &value, loc);
  }
  b->bindings[b->num_bindings++] = (tl_binding){tl_str_from(name), expr, loc};
  return true;
}

// What the whole chain was given for `persistent`; NULL: nothing.
static tl_expr *persistent_of(tl_chain_planner *p, const tl_env *env, tl_loc loc) {
  tl_const truth = tl_const_bool(env->persistent == TL_SWITCH_ON);
  if (env->persistent == TL_SWITCH_AUTO) return NULL;
  if (!env->takes_tiles) return tl_chain_literal(p->arena, &truth, loc);
  tl_expr *expr = TL_NEW(p->arena, tl_expr);
  *expr = (tl_expr){.kind = TL_EXPR_NAME, .text = TL_STR("dynamic"), .loc = loc, .height = 1};
  return expr;
}

static bool bind_params(tl_chain_planner *p, const tl_chain_frame *frame, tl_chain_call *call) {
  const tl_kernel_spec *kernel = call->step->kernel;
  call->kernel = TL_NEW(p->arena, tl_kernel_spec);
  *call->kernel = *kernel;
  binder b = {.planner = p,
              .frame = frame,
              .call = call,
              .params = TL_NEW_ARRAY(p->arena, tl_param, kernel->num_params + 1),
              .bindings = TL_NEW_ARRAY(p->arena, tl_binding, kernel->num_params + 4),
              .values = TL_NEW_ARRAY(p->arena, const tl_mexpr *, kernel->num_params + 1)};
  call->kernel->params = b.params;
  bool ok = true;
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    b.params[i] = kernel->params[i];
    ok = bind_param(&b, i) && ok;
  }
  const tl_env *env = &frame->scope->env;
  tl_const threads = tl_const_int(env->threads), fast_math = tl_const_bool(true);
  tl_loc loc = call->step->call->loc;
  ok = bind_setting(&b, "threads", env->threads ? tl_chain_literal(p->arena, &threads, loc) : NULL) && ok;
  ok = bind_setting(&b, "fast_math", env->fast_math ? tl_chain_literal(p->arena, &fast_math, loc) : NULL) && ok;
  ok = bind_setting(&b, "persistent", persistent_of(p, env, loc)) && ok;
  call->bindings = (tl_bindings){b.bindings, b.num_bindings};
  call->scope.unit = call->kernel;
  if (!ok || !tl_env_create(p->arena, call->kernel, call->bindings, false, p->diags, &call->scope.env)) return false;
  // Entries stand in the order of params, then lets.
  call->scope.dynamics = TL_NEW_ARRAY(p->arena, const tl_mexpr *, call->scope.env.len + 1);
  for (uint32_t i = 0; i < kernel->num_params; i++) call->scope.dynamics[i] = b.values[i];
  return true;
}

bool tl_chain_call_bind(tl_chain_planner *planner, const tl_chain_frame *frame, tl_chain_call *call) {
  bool ok = bind_arguments(planner, call);
  return bind_params(planner, frame, call) && ok;
}
