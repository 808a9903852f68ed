// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Params, lets and bindings: the compile-time environment of a kernel.
#include "frontend/expr/suggest.h"
#include "frontend/sema/sema.h"
#include "frontend/sema/sema_env.h"
#include "frontend/spec/schema.h"

typedef enum fold_status { FOLDED, FOLD_DYNAMIC, FOLD_FAILED } fold_status;

typedef struct folder {
  const tl_env *env;
  const bool *poisoned;    // of the entries; NULL: none
  const tl_strmap *index;  // name → 1 + position in the entries; NULL: search
  tl_diags *diags;
} folder;

static fold_status fold(const folder *f, const tl_expr *expr, tl_const *out);

static fold_status finish(const folder *f, tl_fold_result result, const tl_expr *expr, const char *what) {
  if (result == TL_FOLD_OK) return FOLDED;
  tl_sema_report_fold(f->diags, result, expr->loc, what);
  return FOLD_FAILED;
}

static const tl_env_entry *find_entry(const folder *f, tl_str name) {
  if (!f->index) return tl_env_find(f->env, name);
  uintptr_t position = (uintptr_t)tl_strmap_get(f->index, name);
  return position ? &f->env->entries[position - 1] : NULL;
}

static fold_status fold_name(const folder *f, const tl_expr *expr, tl_const *out) {
  tl_dtype dtype = tl_dtype_parse(expr->text);
  if (dtype != TL_DTYPE_NONE) {
    *out = tl_const_dtype(dtype);
    return FOLDED;
  }
  const tl_env_entry *entry = find_entry(f, expr->text);
  if (entry) {
    if (f->poisoned && f->poisoned[entry - f->env->entries]) return FOLD_FAILED;
    *out = entry->value;
    return entry->value.kind == TL_CONST_DYNAMIC ? FOLD_DYNAMIC : FOLDED;
  }
  tl_diag *diag =
      tl_diag_report(f->diags, TL_DIAG_NAME_UNKNOWN, expr->loc, "unknown param or let `%.*s`", TL_STR_ARG(expr->text));
  if (tl_function_parse(expr->text) != TL_FUNCTION_NONE) {
    tl_diag_add_hint(f->diags, diag, "`%.*s` is a function: write `%.*s(…)`", TL_STR_ARG(expr->text),
                     TL_STR_ARG(expr->text));
    return FOLD_FAILED;
  }
  if (tl_suggest_for_dtype(expr->text)) {
    tl_diag_add_hint(f->diags, diag, "%s", tl_suggest_for_dtype(expr->text));
    return FOLD_FAILED;
  }
  if (f->diags->num_errors > f->diags->max_errors) return FOLD_FAILED;  // the report is not kept: save the search
  tl_str *names = tl_xcalloc(f->env->len + 1, sizeof(*names));
  for (uint32_t i = 0; i < f->env->len; ++i) names[i] = f->env->entries[i].name;
  size_t nearest = tl_suggest_index(expr->text, names, f->env->len);
  if (nearest != SIZE_MAX) tl_diag_add_hint(f->diags, diag, "did you mean `%.*s`?", TL_STR_ARG(names[nearest]));
  free(names);
  return FOLD_FAILED;
}

static fold_status fold_truth(const folder *f, const tl_expr *expr, bool *out) {
  tl_const value;
  fold_status status = fold(f, expr, &value);
  if (status != FOLDED || tl_const_truth(&value, out)) return status;
  tl_diag_report(f->diags, TL_DIAG_CONDITION, expr->loc, "a condition is needed here");
  return FOLD_FAILED;
}

static fold_status worse(fold_status a, fold_status b) {
  return a > b ? a : b;
}

static fold_status fold_logical(const folder *f, const tl_expr *expr, tl_const *out) {
  bool is_and = expr->op == TL_EXPR_OP_AND, a = false, b = false;
  fold_status status = fold_truth(f, expr->operands[0], &a);
  if (status == FOLDED && a != is_and) {
    *out = tl_const_bool(a);
    return FOLDED;
  }
  status = worse(status, fold_truth(f, expr->operands[1], &b));
  *out = tl_const_bool(b);
  return status;
}

static fold_status fold_comparison(const folder *f, const tl_expr *expr, tl_const *out) {
  tl_const left, right;
  bool truth = true;
  fold_status status = fold(f, expr->operands[0], &left);
  for (uint32_t i = 1; i < expr->num_operands; ++i) {
    tl_const link;
    fold_status one = fold(f, expr->operands[i], &right);
    if (status == FOLDED && one == FOLDED) {
      one = finish(f, tl_fold_compare(expr->compare_ops[i - 1], &left, &right, &link), expr,
                   tl_sema_op_text(expr->compare_ops[i - 1]));
      if (one == FOLDED) truth = truth && link.i;
    }
    status = worse(status, one);
    left = right;
  }
  *out = tl_const_bool(truth);
  return status;
}

static fold_status fold_call(const folder *f, const tl_expr *expr, tl_const *out) {
  enum { MAX_ARGS = 16 };
  tl_const args[MAX_ARGS];
  tl_function function = tl_sema_validate_call(f->diags, expr);
  if (function == TL_FUNCTION_NONE) return FOLD_FAILED;
  const tl_function_info *info = tl_function_info_of(function);
  if (info->kind == TL_FUNCTION_KIND_ACCESS || info->kind == TL_FUNCTION_KIND_THREAD) {
    return finish(f, TL_FOLD_NOT_CONST, expr, info->name);
  }
  fold_status status = FOLDED;
  for (uint32_t i = 0; i < expr->num_operands; ++i) status = worse(status, fold(f, expr->operands[i], &args[i]));
  if (status != FOLDED) return status;
  tl_fold_result result = tl_fold_call(function, args, expr->num_operands, out);
  if (result == TL_FOLD_OK) return FOLDED;
  tl_sema_report_fold_call(f->diags, result, expr->loc, info->name, args, expr->num_operands);
  return FOLD_FAILED;
}

static fold_status fold(const folder *f, const tl_expr *expr, tl_const *out) {
  tl_const a, b;
  fold_status status;
  bool condition = false;
  switch (expr->kind) {
    case TL_EXPR_INT:
      *out = tl_const_int(expr->int_value);
      return FOLDED;
    case TL_EXPR_FLOAT:
      *out = tl_const_float(expr->float_value);
      return FOLDED;
    case TL_EXPR_BOOL:
      *out = tl_const_bool(expr->int_value != 0);
      return FOLDED;
    case TL_EXPR_NAME:
      return fold_name(f, expr, out);
    case TL_EXPR_UNARY:
      status = fold(f, expr->operands[0], &a);
      return status == FOLDED ? finish(f, tl_fold_unary(expr->op, &a, out), expr, tl_sema_op_text(expr->op)) : status;
    case TL_EXPR_BINARY:
      if (expr->op == TL_EXPR_OP_AND || expr->op == TL_EXPR_OP_OR) return fold_logical(f, expr, out);
      status = fold(f, expr->operands[0], &a);
      status = worse(status, fold(f, expr->operands[1], &b));
      if (status != FOLDED) return status;
      return finish(f, tl_fold_binary(expr->op, &a, &b, out), expr, tl_sema_op_text(expr->op));
    case TL_EXPR_COMPARE:
      return fold_comparison(f, expr, out);
    case TL_EXPR_CONDITIONAL:
      status = fold_truth(f, expr->operands[1], &condition);
      return status == FOLDED ? fold(f, expr->operands[condition ? 0 : 2], out) : status;
    case TL_EXPR_CALL:
      return fold_call(f, expr, out);
    case TL_EXPR_NONE:
    case TL_EXPR_STRING:
    case TL_EXPR_INDEX:
    case TL_EXPR_TRANSPOSE:
    case TL_EXPR_REDUCTION:
      break;
  }
  tl_diag_report(f->diags, TL_DIAG_NOT_CONSTANT, expr->loc, "a compile-time value of params and lets is needed here");
  return FOLD_FAILED;
}

const tl_env_entry *tl_env_find(const tl_env *env, tl_str name) {
  for (uint32_t i = 0; i < env->len; ++i) {
    if (tl_str_equal(env->entries[i].name, name)) return &env->entries[i];
  }
  return NULL;
}

bool tl_env_eval(const tl_env *env, const tl_expr *expr, tl_diags *diags, tl_const *out) {
  folder f = {.env = env, .diags = diags};
  fold_status status = fold(&f, expr, out);
  if (status == FOLD_DYNAMIC) {
    tl_diag_report(diags, TL_DIAG_NOT_CONSTANT, expr->loc, "this depends on a dynamic param that has no value here");
  }
  return status == FOLDED;
}

// ---- creation

typedef struct env_builder {
  const tl_kernel_spec *kernel;
  tl_bindings bindings;
  bool bind_dynamic;
  bool ok;
  tl_env *env;
  bool *poisoned;
  tl_strmap index;  // as of folder
  tl_diags *diags;
} env_builder;

static folder folder_of(const env_builder *b) {
  return (folder){.env = b->env, .poisoned = b->poisoned, .index = &b->index, .diags = b->diags};
}

// The last binding of a name wins, as on a command line.
static const tl_binding *find_binding(const env_builder *b, tl_str name) {
  for (uint32_t i = b->bindings.len; i-- > 0;) {
    if (tl_str_equal(b->bindings.items[i].name, name)) return &b->bindings.items[i];
  }
  return NULL;
}

static bool is_known_binding(const env_builder *b, tl_str name) {
  for (uint32_t i = 0; i < b->kernel->num_params; ++i) {
    if (tl_str_equal(b->kernel->params[i].name, name)) return true;
  }
  const tl_schema_setting *setting = tl_schema_find_setting(name);
  return setting && setting->state == TL_SCHEMA_NOW;
}

static void report_unknown_binding(env_builder *b, const tl_binding *binding) {
  if (tl_schema_find_setting(binding->name)) {
    tl_diag_report(b->diags, TL_DIAG_NOT_SUPPORTED_YET, binding->loc, "`%.*s` is not supported yet",
                   TL_STR_ARG(binding->name));
    return;
  }
  tl_diag *diag = tl_diag_report(b->diags, TL_DIAG_BINDING_UNKNOWN, binding->loc, "kernel `%.*s` has no param `%.*s`",
                                 TL_STR_ARG(b->kernel->name), TL_STR_ARG(binding->name));
  for (uint32_t i = 0; i < b->kernel->num_lets; ++i) {
    if (!tl_str_equal(b->kernel->lets[i].name, binding->name)) continue;
    tl_diag_add_note(b->diags, diag, b->kernel->lets[i].loc, "`%.*s` is a let: it follows from the params",
                     TL_STR_ARG(binding->name));
    return;
  }
  uint32_t count = b->kernel->num_params;
  tl_str *names = tl_xcalloc(count + TL_SCHEMA_MAX_SETTINGS, sizeof(*names));
  for (uint32_t i = 0; i < count; ++i) names[i] = b->kernel->params[i].name;
  count += tl_schema_list_settings(names + count);
  size_t nearest = tl_suggest_index(binding->name, names, count);
  if (nearest != SIZE_MAX) tl_diag_add_hint(b->diags, diag, "did you mean `%.*s`?", TL_STR_ARG(names[nearest]));
  free(names);
}

static void add_entry(env_builder *b, tl_str name, tl_const value, bool is_dynamic, bool ok) {
  b->poisoned[b->env->len] = !ok;
  tl_strmap_put(&b->index, name, (void *)(uintptr_t)(b->env->len + 1));
  b->env->entries[b->env->len++] = (tl_env_entry){.name = name, .value = value, .is_dynamic = is_dynamic};
  b->ok = b->ok && ok;
}

// Whether a param or let of this name exists already; reports it.
static bool is_redefined(env_builder *b, tl_str name, tl_loc loc) {
  if (!tl_strmap_get(&b->index, name)) return false;
  tl_diag *diag = tl_diag_report(b->diags, TL_DIAG_NAME_REDEFINED, loc, "`%.*s` is defined twice", TL_STR_ARG(name));
  b->ok = false;
  for (uint32_t i = 0; i < b->kernel->num_params; ++i) {
    if (!tl_str_equal(b->kernel->params[i].name, name)) continue;
    tl_diag_add_note(b->diags, diag, b->kernel->params[i].loc, "first defined here");
    return true;
  }
  for (uint32_t i = 0; i < b->kernel->num_lets; ++i) {
    if (!tl_str_equal(b->kernel->lets[i].name, name)) continue;
    tl_diag_add_note(b->diags, diag, b->kernel->lets[i].loc, "first defined here");
    return true;
  }
  return true;
}

bool tl_param_is_auto(const tl_param *param, const tl_binding *binding) {
  if (!binding) return param->kind == TL_PARAM_AUTO;
  return binding->value->kind == TL_EXPR_NAME && tl_str_is(binding->value->text, "auto");
}

static void add_param(env_builder *b, const tl_param *param) {
  if (is_redefined(b, param->name, param->loc)) return;
  const tl_binding *binding = find_binding(b, param->name);
  folder f = folder_of(b);
  tl_const value = {.kind = TL_CONST_DYNAMIC};
  fold_status status = FOLDED;
  if (param->kind != TL_PARAM_DYNAMIC && tl_param_is_auto(param, binding)) {
    add_entry(b, param->name, value, false, true);
    return;
  }
  if (param->kind == TL_PARAM_DYNAMIC && !(binding && b->bind_dynamic)) {
    if (binding) {
      tl_diag *diag = tl_diag_report(b->diags, TL_DIAG_BINDING_DYNAMIC, binding->loc,
                                     "`%.*s` is dynamic: its value comes at launch", TL_STR_ARG(param->name));
      tl_diag_add_note(b->diags, diag, param->loc, "declared dynamic here");
    }
    add_entry(b, param->name, value, true, binding == NULL);
    return;
  }
  if (binding) {
    status = fold(&f, binding->value, &value);
  } else {
    status = fold(&f, param->value, &value);
  }
  bool is_dynamic = param->kind == TL_PARAM_DYNAMIC;
  if (status == FOLD_DYNAMIC) {
    tl_diag_report(b->diags, TL_DIAG_NOT_CONSTANT, binding ? binding->loc : param->loc,
                   "the value of a param must not depend on a dynamic param; use `let`");
    status = FOLD_FAILED;
  }
  int64_t most = param->is_wide ? TL_WIDE_MAX : INT32_MAX;
  if (status == FOLDED && is_dynamic && (value.kind != TL_CONST_INT || value.i < 0 || value.i > most)) {
    tl_diag *diag = tl_diag_report(b->diags, TL_DIAG_INDEX_EXPECTED, binding->loc,
                                   "the dynamic param `%.*s` is an integer from 0 to 2^%d - 1", TL_STR_ARG(param->name),
                                   param->is_wide ? 47 : 31);
    if (value.kind == TL_CONST_INT && value.i > most && !param->is_wide)
      tl_diag_add_hint(b->diags, diag, "declare it `dynamic64`");
    status = FOLD_FAILED;
  }
  tl_const divisor;
  if (status == FOLDED && is_dynamic && param->divisor && fold(&f, param->divisor, &divisor) == FOLDED &&
      divisor.kind == TL_CONST_INT && divisor.i > 0 && value.i % divisor.i != 0) {
    tl_diag *diag = tl_diag_report(b->diags, TL_DIAG_REQUIREMENT, binding->loc, "%.*s = %lld is not a multiple of %lld",
                                   TL_STR_ARG(param->name), (long long)value.i, (long long)divisor.i);
    tl_diag_add_note(b->diags, diag, param->loc, "declared dynamic(%lld) here", (long long)divisor.i);
    status = FOLD_FAILED;
  }
  add_entry(b, param->name, value, is_dynamic, status == FOLDED);
}

static void add_let(env_builder *b, const tl_named_expr *let) {
  if (is_redefined(b, let->name, let->loc)) return;
  folder f = folder_of(b);
  tl_const value = {.kind = TL_CONST_DYNAMIC};
  fold_status status = fold(&f, let->value, &value);
  if (status != FOLDED) value = (tl_const){.kind = TL_CONST_DYNAMIC};
  add_entry(b, let->name, value, false, status != FOLD_FAILED);
}

// What a binding of this name says, or else the document.
static const tl_expr *bound_key(const env_builder *b, tl_str name, const tl_expr *declared) {
  const tl_binding *binding = find_binding(b, name);
  if (tl_env_find(b->env, name)) binding = NULL;  // a param of that name took it
  return binding ? binding->value : declared;
}

static bool is_auto(const env_builder *b, const tl_expr *expr) {
  return !expr || (expr->kind == TL_EXPR_NAME && tl_str_is(expr->text, "auto") && !tl_env_find(b->env, expr->text));
}

// What a key was given, for a message.
static void print_folded(fold_status status, const tl_const *value, tl_strbuf *out) {
  if (status == FOLDED) {
    tl_const_print(value, out);
  } else {
    tl_strbuf_append_c(out, "what only the launch knows");
  }
}

// A key's number, a multiple of `unit` up to `most`; 0 without one. Reports `message` for anything else.
static int64_t key_number(env_builder *b, const tl_expr *expr, int64_t unit, int64_t most, tl_diag_code code,
                          const char *message) {
  folder f = folder_of(b);
  tl_const value;
  if (is_auto(b, expr)) return 0;
  fold_status status = fold(&f, expr, &value);
  bool is_number = status == FOLDED && value.kind == TL_CONST_INT;
  if (is_number && value.i >= unit && value.i <= most && value.i % unit == 0) return value.i;
  b->ok = false;
  if (status == FOLD_FAILED) return 0;
  tl_strbuf text;
  tl_strbuf_init(&text);
  print_folded(status, &value, &text);
  tl_diag_report(b->diags, code, expr->loc, "%s, not %s", message, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return 0;
}

static void set_threads(env_builder *b) {
  enum { WARP = 32, MAX_THREADS = 1024, MAX_BLOCKS = 32 };
  const tl_expr *threads = bound_key(b, TL_STR("threads"), b->kernel->threads);
  b->env->threads_asked =
      key_number(b, threads, 1, MAX_THREADS, TL_DIAG_THREADS, "threads is a number from 1 to 1024 or auto");
  b->env->threads = (b->env->threads_asked + WARP - 1) / WARP * WARP;
  if (threads) b->env->threads_loc = threads->loc;
  b->env->occupancy = key_number(b, b->kernel->occupancy, 1, MAX_BLOCKS, TL_DIAG_OCCUPANCY,
                                 "occupancy is a number of blocks from 1 to 32 or auto");
}

// The truth of a key's expression, which is a bool: a number is no answer. Reports `message` when it has none.
static bool key_truth(env_builder *b, const tl_expr *expr, const char *message, bool *out) {
  folder f = folder_of(b);
  tl_const value;
  fold_status status = fold(&f, expr, &value);
  if (status == FOLDED && value.kind == TL_CONST_BOOL) {
    *out = value.i != 0;
    return true;
  }
  b->ok = false;
  if (status == FOLD_FAILED) return false;
  tl_strbuf text;
  tl_strbuf_init(&text);
  print_folded(status, &value, &text);
  tl_diag_report(b->diags, TL_DIAG_CONDITION, expr->loc, "%s, not %s", message, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return false;
}

static void set_persistent(env_builder *b) {
  const tl_expr *expr = bound_key(b, TL_STR("persistent"), b->kernel->persistent);
  bool is_on;
  if (is_auto(b, expr)) return;
  b->env->takes_tiles =
      expr->kind == TL_EXPR_NAME && tl_str_is(expr->text, "dynamic") && !tl_env_find(b->env, expr->text);
  if (b->env->takes_tiles) {
    b->env->persistent = TL_SWITCH_ON;
    return;
  }
  if (!key_truth(b, expr, "persistent is true, false, dynamic or auto", &is_on)) return;
  b->env->persistent = is_on ? TL_SWITCH_ON : TL_SWITCH_OFF;
}

static void set_fast_math(env_builder *b) {
  const tl_expr *expr = bound_key(b, TL_STR("fast_math"), b->kernel->fast_math);
  if (expr) key_truth(b, expr, "fast_math is true or false", &b->env->fast_math);
}

bool tl_sema_env_create(tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings bindings, bool bind_dynamic,
                        tl_diags *diags, tl_env *out_env, bool **out_poisoned) {
  uint32_t capacity = kernel->num_params + kernel->num_lets + 1;
  *out_env = (tl_env){.entries = TL_NEW_ARRAY(arena, tl_env_entry, capacity)};
  *out_poisoned = TL_NEW_ARRAY(arena, bool, capacity);
  env_builder b = {.kernel = kernel,
                   .bindings = bindings,
                   .bind_dynamic = bind_dynamic,
                   .ok = true,
                   .env = out_env,
                   .poisoned = *out_poisoned,
                   .diags = diags};
  tl_strmap_init(&b.index, arena);
  for (uint32_t i = 0; i < bindings.len; ++i) {
    if (is_known_binding(&b, bindings.items[i].name)) continue;
    report_unknown_binding(&b, &bindings.items[i]);
    b.ok = false;
  }
  for (uint32_t i = 0; i < kernel->num_params; ++i) add_param(&b, &kernel->params[i]);
  for (uint32_t i = 0; i < kernel->num_lets; ++i) add_let(&b, &kernel->lets[i]);
  set_threads(&b);
  set_persistent(&b);
  set_fast_math(&b);
  tl_strmap_fini(&b.index);
  return b.ok;
}

bool tl_env_create(tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings bindings, bool bind_dynamic,
                   tl_diags *diags, tl_env *out_env) {
  bool *poisoned;
  return tl_sema_env_create(arena, kernel, bindings, bind_dynamic, diags, out_env, &poisoned);
}
