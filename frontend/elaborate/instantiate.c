// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Spec + bindings → tile IR. This file opens the module and holds what the statement families share.
#include "frontend/elaborate/instantiate.h"

#include "frontend/elaborate/instantiate_internal.h"
#include "frontend/sema/sema_env.h"

tl_builder tl_instantiate_enter(tl_sema *sema, tl_op *op, uint32_t index) {
  tl_builder outer = sema->builder;
  tl_builder_at_end(&sema->builder, sema->module, op->regions[index]);
  return outer;
}

void tl_instantiate_leave(tl_sema *sema, tl_builder outer) {
  sema->builder = outer;
}

// Half of what int32 holds: a layout rounds every dim up to whole threads, and its coordinates must not wrap.
#define TL_MAX_BLOCK_ELEMENTS (INT64_C(1) << 30)

bool tl_instantiate_validate_extents(tl_sema *sema, const int64_t *extents, int32_t rank, tl_loc loc) {
  int64_t count = 1;
  for (int32_t i = 0; i < rank; ++i) {
    if (!__builtin_mul_overflow(count, extents[i], &count) && count <= TL_MAX_BLOCK_ELEMENTS) continue;
    tl_diag_report(sema->diags, TL_DIAG_EXTENTS_RANGE, loc, "%s are more than 2^30 elements for one block",
                   tl_sema_shape_text(sema->arena, extents, rank));
    return false;
  }
  return true;
}

tl_parallel_scope tl_instantiate_begin_parallel(tl_sema *sema, const int64_t *extents, int32_t rank,
                                                const char *const *names, tl_loc loc) {
  tl_parallel_scope scope = {.outer_in_parallel = sema->in_parallel};
  tl_instantiate_validate_extents(sema, extents, rank, loc);
  sema->builder.loc = loc;
  scope.op = tl_build(&sema->builder, TL_OP_PARALLEL, NULL, NULL, 0);
  tl_op_set_ints(sema->module, scope.op, TL_ATTR_EXTENTS, extents, rank);
  for (int32_t i = 0; i < rank; ++i) {
    tl_block_add_arg(sema->module, scope.op->regions[0], tl_type_index(sema->module), names ? names[i] : NULL);
  }
  scope.outer = tl_instantiate_enter(sema, scope.op, 0);
  sema->in_parallel = true;
  return scope;
}

void tl_instantiate_end_parallel(tl_sema *sema, tl_parallel_scope *scope) {
  sema->in_parallel = scope->outer_in_parallel;
  tl_instantiate_leave(sema, scope->outer);
}

const tl_option *tl_instantiate_option(const tl_stmt *stmt, const char *name) {
  for (uint32_t i = 0; i < stmt->num_options; ++i) {
    if (tl_str_is(stmt->options[i].name, name)) return &stmt->options[i];
  }
  return NULL;
}

int tl_instantiate_enum_option(tl_sema *sema, const tl_stmt *stmt, const char *name, tl_ir_enum which, int fallback) {
  const tl_option *option = tl_instantiate_option(stmt, name);
  if (!option) return fallback;
  const tl_expr *value = option->value;
  int member = value->kind == TL_EXPR_NAME ? tl_ir_enum_parse(which, value->text) : -1;
  // YAML authors write on and off; the expression language may have read them as bools.
  if (value->kind == TL_EXPR_BOOL) member = tl_ir_enum_parse(which, tl_str_from(value->int_value ? "on" : "off"));
  if (member >= 0) return member;
  tl_strbuf list;
  tl_strbuf_init(&list);
  for (int i = 0; tl_ir_enum_text(which, i); ++i) {
    tl_strbuf_appendf(&list, "%s%s", i ? ", " : "", tl_ir_enum_text(which, i));
  }
  tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, value->loc, "`%s` is one of %s, not `%s`", name, tl_strbuf_c(&list),
                 tl_sema_expr_text(sema, value));
  tl_strbuf_fini(&list);
  return -1;
}

bool tl_instantiate_refuse_in_parallel(tl_sema *sema, const tl_stmt *stmt, const char *what) {
  if (!sema->in_parallel) return false;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_STMT_PLACE, stmt->loc, "%s cannot stand inside `parallel`", what);
  tl_diag_add_hint(sema->diags, diag, "inside `parallel` each element is assigned: `X[i, j] = …`");
  return true;
}

bool tl_instantiate_validate_writable(tl_sema *sema, const tl_symbol *symbol, tl_loc loc) {
  if (symbol->access != TL_ACCESS_IN) return true;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_WRITE_TO_INPUT, loc,
                                 "`%.*s` is an `in` tensor and is written here", TL_STR_ARG(symbol->name));
  tl_diag_add_note(sema->diags, diag, symbol->loc, "declared here; declare it `out` or `inout`");
  return false;
}

static void report_auto(const tl_kernel_spec *kernel, tl_bindings bindings, tl_diags *diags) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_param *param = &kernel->params[i];
    const tl_binding *binding = NULL;
    for (uint32_t b = 0; b < bindings.len; b++)
      if (tl_str_equal(bindings.items[b].name, param->name)) binding = &bindings.items[b];
    if (param->kind == TL_PARAM_DYNAMIC || !tl_param_is_auto(param, binding)) continue;
    tl_diag *diag = tl_diag_report(diags, TL_DIAG_PARAM_AUTO, binding ? binding->loc : param->loc,
                                   "the compiler cannot choose `%.*s`", TL_STR_ARG(param->name));
    tl_diag_add_hint(diags, diag, "give it a value here or with -D %.*s=…", TL_STR_ARG(param->name));
  }
}

tl_module *tl_instantiate(const tl_kernel_spec *kernel, tl_bindings bindings, const tl_target *target,
                          const tl_sources *sources, tl_diags *diags) {
  size_t errors_before = diags->num_errors;
  report_auto(kernel, bindings, diags);
  if (diags->num_errors != errors_before) return NULL;
  tl_arena scratch;
  tl_arena_init(&scratch);
  tl_env env;
  bool *poisoned;
  tl_sema_env_create(&scratch, kernel, bindings, false, diags, &env, &poisoned);
  tl_sema sema;
  tl_sema_init(&sema, &scratch, diags);
  sema.sources = sources;
  sema.kernel = kernel;
  sema.target = target;
  sema.env = &env;
  sema.module = tl_module_create();
  sema.module->target = target;
  tl_builder_at_end(&sema.builder, sema.module, sema.module->body);
  sema.builder.loc = kernel->loc;
  tl_op *op = tl_build(&sema.builder, TL_OP_KERNEL, NULL, NULL, 0);
  tl_op_set_str(sema.module, op, TL_ATTR_NAME, kernel->name);
  if (env.threads) tl_op_set_int(sema.module, op, TL_ATTR_THREADS, env.threads);
  if (env.threads != env.threads_asked)
    tl_diag_report(diags, TL_DIAG_REMARK_THREADS, env.threads_loc, "%lld threads are rounded up to %lld, whole warps",
                   (long long)env.threads_asked, (long long)env.threads);
  if (env.occupancy) tl_op_set_int(sema.module, op, TL_ATTR_OCCUPANCY, env.occupancy);
  if (env.persistent != TL_SWITCH_AUTO) tl_op_set_int(sema.module, op, TL_ATTR_PERSISTENT, env.persistent);
  if (env.takes_tiles) tl_op_set_unit(sema.module, op, TL_ATTR_DYNAMIC);
  if (env.fast_math) tl_op_set_unit(sema.module, op, TL_ATTR_FAST_MATH);
  tl_instantiate_enter(&sema, op, 0);
  tl_instantiate_head(&sema, poisoned);
  sema.in_body = true;
  tl_instantiate_kernel_body(&sema, &kernel->body);
  tl_instantiate_validate_hand(&sema);
  tl_instantiate_validate_peers(&sema);
  // Beside an error they hide it, and some are only its consequence.
  if (diags->num_errors == errors_before) tl_sema_warn_unused(&scratch, kernel, diags);
  tl_module *module = sema.module;
  if (diags->num_errors != errors_before) {
    tl_module_destroy(module);
    module = NULL;
  }
  tl_sema_fini(&sema);
  tl_arena_fini(&scratch);
  return module;
}
