// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bindings and inputs of one case.
#include <string.h>

#include "harness/check/check.h"
#include "harness/data/generate.h"
#include "harness/data/random.h"

static bool is_dynamic(const tl_kernel_spec *kernel, tl_str name) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (tl_str_equal(kernel->params[i].name, name)) return kernel->params[i].kind == TL_PARAM_DYNAMIC;
  }
  return false;
}

void tl_check_case_bindings(tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings base, const tl_case *one_case,
                            tl_bindings *out_compile, tl_bindings *out_all) {
  uint32_t overrides = one_case ? one_case->num_overrides : 0;
  tl_binding *all = TL_NEW_ARRAY(arena, tl_binding, base.len + overrides + 1);
  tl_binding *compile = TL_NEW_ARRAY(arena, tl_binding, base.len + overrides + 1);
  *out_all = (tl_bindings){all, 0};
  *out_compile = (tl_bindings){compile, 0};
  for (uint32_t i = 0; i < base.len; i++) {
    bool is_replaced = false;
    for (uint32_t o = 0; o < overrides; o++) {
      is_replaced = is_replaced || tl_str_equal(one_case->overrides[o].name, base.items[i].name);
    }
    if (!is_replaced) all[out_all->len++] = base.items[i];
  }
  for (uint32_t o = 0; o < overrides; o++) {
    const tl_named_expr *override = &one_case->overrides[o];
    all[out_all->len++] = (tl_binding){override->name, override->value, override->loc};
  }
  for (uint32_t i = 0; i < out_all->len; i++) {
    if (!is_dynamic(kernel, all[i].name)) compile[out_compile->len++] = all[i];
  }
}

void tl_check_dynamics(tl_arena *arena, const tl_env *env, tl_mbinding **out, size_t *out_len) {
  *out = TL_NEW_ARRAY(arena, tl_mbinding, env->len + 1);
  *out_len = 0;
  for (uint32_t i = 0; i < env->len; i++) {
    const tl_env_entry *entry = &env->entries[i];
    if (!entry->is_dynamic || entry->value.kind != TL_CONST_INT) continue;
    (*out)[(*out_len)++] = (tl_mbinding){tl_arena_copy_bytes(arena, entry->name.data, entry->name.len), entry->value.i};
  }
}

// ---- inputs

static const tl_named_expr *find_named(const tl_named_expr *items, uint32_t len, tl_str name) {
  for (uint32_t i = 0; i < len; i++) {
    if (tl_str_equal(items[i].name, name)) return &items[i];
  }
  return NULL;
}

static const tl_named_expr *find_generator(const tl_input_request *request, tl_str name) {
  const tl_named_expr *found = find_named(request->inputs, request->num_inputs, name);
  if (!found && request->one_case) found = find_named(request->one_case->inputs, request->one_case->num_inputs, name);
  if (!found && request->kernel)
    found = find_named(request->kernel->check.inputs, request->kernel->check.num_inputs, name);
  return found;
}

static bool is_assigned(const tl_reference_stmt *stmts, uint32_t num_stmts, tl_str name) {
  for (uint32_t i = 0; i < num_stmts; i++) {
    if (stmts[i].is_recur) {
      if (is_assigned(stmts[i].body, stmts[i].num_body, name)) return true;
      continue;
    }
    for (uint32_t t = 0; t < stmts[i].assign.num_targets; t++) {
      const tl_expr *target = stmts[i].assign.targets[t];
      if (target->kind == TL_EXPR_INDEX) target = target->operands[0];
      if (target->kind == TL_EXPR_NAME && tl_str_equal(target->text, name)) return true;
    }
  }
  return false;
}

static tl_loc place_of(const tl_input_request *request, tl_str name) {
  for (uint32_t i = 0; request->kernel && i < request->kernel->num_args; i++) {
    if (tl_str_equal(request->kernel->args[i].name, name)) return request->kernel->args[i].loc;
  }
  return (tl_loc){0};
}

// 0 … 7 for integers and 0 or 1 for bools.
static void fill_ints(tl_array *array, uint64_t key) {
  for (uint64_t i = 0; i < array->count; i++) {
    uint64_t values = array->dtype == TL_DTYPE_BOOL ? 2 : 8;
    tl_dtype_store_int(array->dtype, array->data, i, (int64_t)tl_random_below(key, i, values));
  }
}

bool tl_check_find_generator(const tl_input_request *request, tl_str name, const tl_expr **out) {
  const tl_named_expr *named = find_generator(request, name);
  *out = named ? named->value : NULL;
  return named || !request->kernel ||
         !is_assigned(request->kernel->check.derive, request->kernel->check.num_derive, name);
}

tl_status tl_check_make_inputs(const tl_input_request *request, tl_diags *diags, tl_run_args *args) {
  tl_status status = TL_OK;
  for (uint32_t i = 0; i < args->len; i++) {
    tl_run_arg *arg = &args->items[i];
    tl_str name = tl_str_from(arg->name);
    const tl_expr *generator;
    bool is_made = tl_check_find_generator(request, name, &generator);
    arg->is_absent = generator && (generator->kind == TL_EXPR_CALL || generator->kind == TL_EXPR_NAME) &&
                     tl_str_is(generator->text, "absent");
    if (arg->is_absent && !arg->is_optional) {
      tl_diag_report(diags, TL_DIAG_OPTIONAL, generator->loc, "`%.*s` is not declared `optional`", TL_STR_ARG(name));
      status = tl_status_join(status, tl_status_make(TL_STATUS_DIAGNOSTICS, "an input is wrong"));
      continue;
    }
    if (arg->access == 1 || !is_made) continue;
    uint64_t key = tl_random_key(request->seed, request->kernel_name, name);
    if (!generator && request->ints_by_default && !tl_dtype_is_float(arg->array.dtype)) {
      fill_ints(&arg->array, key);
      continue;
    }
    tl_generate_request generate = {.generator = generator,
                                    .loc = place_of(request, name),
                                    .env = request->env,
                                    .directory = request->directory,
                                    .name = name,
                                    .key = key,
                                    .dtype = arg->array.dtype,
                                    .rank = arg->array.rank};
    memcpy(generate.shape, arg->array.shape, sizeof generate.shape);
    tl_array made = {0};
    tl_status one = tl_generate(&generate, diags, &made);
    if (!one) {
      tl_array_fini(&arg->array);
      arg->array = made;
    }
    // All wrong generators are reported, not only the first.
    status = tl_status_join(status, one);
  }
  return status;
}
