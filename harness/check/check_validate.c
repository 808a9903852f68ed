// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What can be wrong with the sections check, bench and tune, found without running anything: the compiler says it too.
#include <string.h>

#include "frontend/sema/sema_fold.h"
#include "harness/check/check.h"
#include "harness/data/generate.h"

static tl_str base_of(const tl_kernel_spec *kernel, tl_str name) {
  for (uint32_t i = 0; i < kernel->num_views; i++) {
    if (tl_str_equal(kernel->views[i].name, name)) return kernel->views[i].base;
  }
  return name;
}

static bool assigns(const tl_kernel_spec *kernel, const tl_reference_stmt *stmts, uint32_t num_stmts, tl_str name) {
  for (uint32_t i = 0; i < num_stmts; i++) {
    if (stmts[i].is_recur && assigns(kernel, stmts[i].body, stmts[i].num_body, name)) return true;
    for (uint32_t t = 0; !stmts[i].is_recur && t < stmts[i].assign.num_targets; t++) {
      const tl_expr *target = stmts[i].assign.targets[t];
      if (target->kind == TL_EXPR_INDEX) target = target->operands[0];
      if (target->kind == TL_EXPR_NAME && tl_str_equal(base_of(kernel, target->text), name)) return true;
    }
  }
  return false;
}

bool tl_check_is_unchecked(const tl_check *check, tl_str name) {
  for (uint32_t i = 0; i < check->num_unchecked; i++) {
    if (tl_str_equal(check->unchecked[i], name)) return true;
  }
  return false;
}

void tl_check_coverage(const tl_kernel_spec *kernel, tl_diags *diags) {
  const tl_check *check = &kernel->check;
  for (uint32_t i = 0; i < kernel->num_args; i++) {
    const tl_arg *arg = &kernel->args[i];
    if (arg->access == TL_ARG_IN || tl_check_is_unchecked(check, arg->name)) continue;
    if (assigns(kernel, check->reference, check->num_reference, arg->name)) continue;
    tl_diag *diag = tl_diag_report(diags, TL_DIAG_REFERENCE_UNASSIGNED, arg->loc, "the output `%.*s` has no reference",
                                   TL_STR_ARG(arg->name));
    tl_diag_add_hint(diags, diag, "assign it under `check: reference:` or list it under `unchecked:`");
  }
}

static tl_status read_number(const tl_env *env, const tl_expr *expr, tl_diags *diags, double *out) {
  if (!expr) return TL_OK;
  tl_const value;
  if (tl_env_eval(env, expr, diags, &value)) {
    if (value.kind == TL_CONST_INT) *out = (double)value.i;
    if (value.kind == TL_CONST_FLOAT) *out = value.f;
    if ((value.kind == TL_CONST_INT || value.kind == TL_CONST_FLOAT) && *out >= 0) return TL_OK;
    tl_diag_report(diags, TL_DIAG_CHECK_VALUE, expr->loc, "a tolerance is a number that is not negative");
  }
  return tl_status_make(TL_STATUS_DIAGNOSTICS, "a tolerance is wrong");
}

tl_status tl_check_tolerance(const tl_kernel_spec *kernel, const tl_case *one_case, const tl_env *env, tl_str name,
                             tl_diags *diags, double *rtol, double *atol) {
  *rtol = *atol = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < kernel->check.num_tolerances; i++) {
      const tl_tolerance *tolerance = &kernel->check.tolerances[i];
      bool applies =
          pass == 0 ? tolerance->output.len == 0 : tolerance->output.len > 0 && tl_str_equal(tolerance->output, name);
      if (!applies) continue;
      TL_TRY(read_number(env, tolerance->rtol, diags, rtol));
      TL_TRY(read_number(env, tolerance->atol, diags, atol));
    }
  }
  if (!one_case) return TL_OK;
  TL_TRY(read_number(env, one_case->rtol, diags, rtol));
  return read_number(env, one_case->atol, diags, atol);
}

// ---- all of it, for each case

typedef struct validation {
  const tl_kernel_spec *kernel;
  const tl_case *one_case;
  const tl_env *env;
  tl_diags *diags;
} validation;

static void validate_tolerances(const validation *v) {
  for (uint32_t i = 0; i < v->kernel->num_args; i++) {
    double rtol, atol;
    if (v->kernel->args[i].access == TL_ARG_IN) continue;
    tl_status status =
        tl_check_tolerance(v->kernel, v->one_case, v->env, v->kernel->args[i].name, v->diags, &rtol, &atol);
    bool ok = !status;
    tl_status_free(status);
    if (!ok) return;
  }
}

// Declares the argument for the reference and looks at its generator.
static bool validate_argument(const validation *v, tl_reference *reference, const tl_arg *arg) {
  tl_dtype dtype;
  tl_generate_request request = {.rank = (int32_t)arg->num_dims, .env = v->env, .name = arg->name, .loc = arg->loc};
  int64_t strides[TL_ARRAY_MAX_RANK];
  if (!tl_run_arg_type(arg, v->env, v->diags, &dtype, request.shape, strides)) return false;
  request.dtype = dtype;
  tl_status status = tl_reference_declare(reference, arg->name, dtype, request.rank, request.shape);
  if (status) tl_diag_report(v->diags, TL_DIAG_CHECK_VALUE, arg->type_loc, "%s", tl_status_message(status));
  bool ok = !status;
  tl_status_free(status);
  if (!ok || arg->access == TL_ARG_OUT) return ok;
  const tl_input_request inputs = {.kernel = v->kernel, .one_case = v->one_case};
  return !tl_check_find_generator(&inputs, arg->name, &request.generator) || tl_generate_validate(&request, v->diags);
}

static void validate_reference(const validation *v) {
  tl_reference reference;
  tl_reference_init(&reference, v->kernel, v->env, v->diags);
  reference.shapes_only = true;
  bool ok = true;
  for (uint32_t i = 0; i < v->kernel->num_args; i++) ok = validate_argument(v, &reference, &v->kernel->args[i]) && ok;
  const tl_check *check = &v->kernel->check;
  tl_status status = ok ? tl_reference_add_views(&reference) : TL_OK;
  if (ok && !status) status = tl_reference_run(&reference, check->derive, check->num_derive);
  if (ok && !status) status = tl_reference_run(&reference, check->reference, check->num_reference);
  tl_status_free(status);  // what it says is in the diagnostics
  tl_reference_fini(&reference);
}

// Evaluates the params of a case. False when it has errors, or (without a case) when dynamic params have no value.
static bool case_env(tl_arena *arena, validation *v, tl_bindings base, tl_env *env) {
  tl_bindings compile, all;
  tl_check_case_bindings(arena, v->kernel, base, v->one_case, &compile, &all);
  if (!tl_env_create(arena, v->kernel, all, true, v->diags, env)) return false;
  for (uint32_t i = 0; !v->one_case && i < env->len; i++) {
    if (env->entries[i].is_dynamic && env->entries[i].value.kind == TL_CONST_DYNAMIC) return false;
  }
  v->env = env;
  return true;
}

static void validate_number(const validation *v, const tl_expr *expr) {
  tl_const value;
  if (!expr || !tl_env_eval(v->env, expr, v->diags, &value)) return;
  if (value.kind == TL_CONST_INT || value.kind == TL_CONST_FLOAT) return;
  tl_diag_report(v->diags, TL_DIAG_CHECK_VALUE, expr->loc, "flops and bytes are numbers");
}

static bool names(const tl_expr *expr, tl_str name) {
  if (!expr) return false;
  if (expr->kind == TL_EXPR_NAME && tl_str_equal(expr->text, name)) return true;
  for (uint32_t i = 0; i < expr->num_operands; i++)
    if (names(expr->operands[i], name)) return true;
  return false;
}

bool tl_check_where(tl_arena *arena, const tl_env *env, const tl_expr *condition, tl_diags *diags, bool *out_truth) {
  const struct {
    const char *name;
    bool is_auto;
    tl_const value;
  } keys[] = {{"threads", env->threads == 0, tl_const_int(env->threads)},
              {"persistent", env->persistent == TL_SWITCH_AUTO, tl_const_bool(env->persistent == TL_SWITCH_ON)},
              {"fast_math", false, tl_const_bool(env->fast_math)}};
  enum { NUM_KEYS = sizeof keys / sizeof keys[0] };
  tl_env extended = *env;
  extended.entries = TL_NEW_ARRAY(arena, tl_env_entry, env->len + NUM_KEYS);
  if (env->len) memcpy(extended.entries, env->entries, env->len * sizeof *env->entries);
  *out_truth = true;
  for (size_t i = 0; i < NUM_KEYS; i++) {
    tl_str name = tl_str_from(keys[i].name);
    if (tl_env_find(env, name)) continue;  // a param of that name
    if (keys[i].is_auto && names(condition, name)) return true;
    extended.entries[extended.len++] = (tl_env_entry){.name = name, .value = keys[i].value};
  }
  tl_const value;
  if (!tl_env_eval(&extended, condition, diags, &value)) return false;
  if (tl_const_truth(&value, out_truth)) return true;
  tl_diag_report(diags, TL_DIAG_TUNE, condition->loc, "`where` takes conditions");
  return false;
}

// The values, conditions and budget of `tune`, with the params as they stand.
static void validate_tune(tl_arena *arena, const validation *v) {
  const tl_tune *tune = &v->kernel->tune;
  tl_const value;
  bool truth;
  for (uint32_t i = 0; i < tune->num_params; i++) {
    // `threads` and its like may be `auto`, which is no value: the compiler says what is wrong with them.
    bool is_param = tl_env_find(v->env, tune->params[i].name) != NULL;
    for (uint32_t k = 0; is_param && k < tune->params[i].num_values; k++)
      tl_env_eval(v->env, tune->params[i].values[k], v->diags, &value);
  }
  for (uint32_t i = 0; i < tune->num_where; i++) tl_check_where(arena, v->env, tune->where[i], v->diags, &truth);
  if (tune->budget && tl_env_eval(v->env, tune->budget, v->diags, &value) &&
      (value.kind != TL_CONST_INT || value.i < 1))
    tl_diag_report(v->diags, TL_DIAG_TUNE, tune->budget->loc, "`budget` is a number of configurations, at least 1");
}

void tl_check_validate(const tl_kernel_spec *kernel, tl_bindings base, tl_diags *diags) {
  tl_arena arena;
  tl_arena_init(&arena);
  const tl_check *check = &kernel->check;
  if (check->present) tl_check_coverage(kernel, diags);
  // What is wrong in one case is mostly wrong in all: the first says it.
  uint32_t num_cases = check->num_cases > 0 ? check->num_cases : 1;
  for (uint32_t i = 0; check->present && i < num_cases && !tl_diags_has_errors(diags); i++) {
    validation v = {.kernel = kernel, .one_case = check->num_cases ? &check->cases[i] : NULL, .diags = diags};
    tl_env env;
    if (!case_env(&arena, &v, base, &env)) continue;
    validate_tolerances(&v);
    validate_reference(&v);
  }
  for (uint32_t i = 0; i < kernel->bench.num_cases && !tl_diags_has_errors(diags); i++) {
    validation v = {.kernel = kernel, .one_case = &kernel->bench.cases[i], .diags = diags};
    tl_env env;
    if (!case_env(&arena, &v, base, &env)) continue;
    validate_number(&v, kernel->bench.flops);
    validate_number(&v, kernel->bench.bytes);
  }
  if (kernel->tune.present && !tl_diags_has_errors(diags)) {
    validation v = {.kernel = kernel, .diags = diags};
    if (kernel->bench.num_cases) v.one_case = &kernel->bench.cases[0];
    tl_env env;
    if (case_env(&arena, &v, base, &env)) validate_tune(&arena, &v);
  }
  tl_arena_fini(&arena);
}
