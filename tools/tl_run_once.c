// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One launch without a check: inputs from --in, outputs to --out.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/data/file.h"
#include "harness/data/npy.h"
#include "tools/tl_run.h"

tl_expr *tl_run_constant(tl_run_tool *t, tl_expr *value) {
  if (value->kind != TL_EXPR_INT && value->kind != TL_EXPR_FLOAT && value->kind != TL_EXPR_UNARY) return value;
  tl_expr *call = TL_NEW(&t->cli.arena, tl_expr);
  *call = (tl_expr){.kind = TL_EXPR_CALL, .loc = value->loc, .text = TL_STR("const"), .num_operands = 1};
  call->operands = TL_NEW_ARRAY(&t->cli.arena, tl_expr *, 1);
  call->operands[0] = value;
  return call;
}

// A path, as generators have no `.` and `/` in a file's place.
static bool is_other_file(const char *text) {
  return strpbrk(text, "./") && access(text, F_OK) == 0;
}

// A .npy path, relative to the working directory, becomes a string expression; a number a constant.
tl_status tl_run_tool_inputs(tl_run_tool *t) {
  for (size_t i = 0; i < t->in.len; i++) {
    const tl_run_pair *pair = &t->in.items[i];
    tl_named_expr named = {.name = pair->name};
    if (tl_str_ends_with(tl_str_from(pair->rest), ".npy")) {
      char *path = realpath(pair->rest, NULL);
      if (!path)
        return tl_status_make(TL_STATUS_NOT_FOUND, "--in %.*s: there is no file '%s'", TL_STR_ARG(pair->name),
                              pair->rest);
      named.value = TL_NEW(&t->cli.arena, tl_expr);
      named.value->kind = TL_EXPR_STRING;
      named.value->text = tl_str_from(tl_arena_copy_bytes(&t->cli.arena, path, strlen(path)));
      free(path);
    } else if (is_other_file(pair->rest)) {
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--in %.*s: '%s' is no .npy file by its name",
                            TL_STR_ARG(pair->name), pair->rest);
    } else {
      named.value = tl_cli_parse_expr(&t->cli, pair->rest);
      if (!named.value) return tl_status_make(TL_STATUS_DIAGNOSTICS, "an --in option has errors");
      named.value = tl_run_constant(t, named.value);
    }
    tl_vec_push(&t->inputs, named);
  }
  return TL_OK;
}

// Every --in and --out names an argument.
static tl_status validate_names(const tl_run_tool *t, const tl_run_args *args) {
  for (size_t i = 0; i < t->in.len; i++) {
    const tl_run_arg *arg = tl_run_args_find(args, t->in.items[i].name);
    if (arg && arg->access != 1) continue;
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--in %.*s: %s", TL_STR_ARG(t->in.items[i].name),
                          arg ? "it is an output" : "the kernel has no such argument");
  }
  for (size_t i = 0; i < t->out.len; i++) {
    const tl_run_arg *arg = tl_run_args_find(args, t->out.items[i].name);
    if (arg && arg->access != 0) continue;
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--out %.*s: %s", TL_STR_ARG(t->out.items[i].name),
                          arg ? "it is an input" : "the kernel has no such argument");
  }
  return TL_OK;
}

static void print_output(const tl_run_arg *arg) {
  char described[160];
  tl_array_describe(&arg->array, described, sizeof described);
  printf("%s: %s", arg->name, described);
  double least = INFINITY, most = -INFINITY, sum = 0;
  uint64_t nans = 0;
  for (uint64_t i = 0; i < arg->array.count; i++) {
    double value = tl_array_number(&arg->array, i);
    if (isnan(value)) {
      nans++;
      continue;
    }
    if (value < least) least = value;
    if (value > most) most = value;
    sum += value;
  }
  uint64_t numbers = arg->array.count - nans;
  if (numbers > 0) printf(", min %.6g, max %.6g, mean %.6g", least, most, sum / (double)numbers);
  if (nans > 0) printf(", %llu NaN", (unsigned long long)nans);
  printf("\n");
}

static tl_status write_outputs(const tl_run_tool *t, const tl_run_args *args) {
  for (uint32_t i = 0; i < args->len; i++) {
    if (args->items[i].access != 0) print_output(&args->items[i]);
  }
  for (size_t i = 0; i < t->out.len; i++) {
    TL_TRY(tl_npy_write(t->out.items[i].rest, &tl_run_args_find(args, t->out.items[i].name)->array));
  }
  return TL_OK;
}

static tl_status launch(tl_run_tool *t, tl_run_kernel *kernel, const tl_input_request *inputs, tl_run_args *args,
                        const tl_mbinding *dynamics, size_t num_dynamics) {
  TL_TRY(validate_names(t, args));
  tl_run_tool_step(t, "making the inputs");
  TL_TRY(tl_check_make_inputs(inputs, &t->cli.diags, args));
  tl_run_tool_step(t, NULL);
  TL_TRY(tl_run_launch(t->device, kernel, args, dynamics, num_dynamics));
  TL_TRY(write_outputs(t, args));
  return tl_run_foreign_compare(t, args);
}

// ---- shapes of .npy inputs determine dynamic names

// A dim of a spec that is a bare dynamic param, or of a manifest that is a bare name, takes the file's extent.
typedef struct shape_source {
  TL_VEC(tl_mbinding) found;
} shape_source;

static void add_name(shape_source *shapes, const char *name, int64_t value) {
  for (size_t i = 0; i < shapes->found.len; i++) {
    if (strcmp(shapes->found.items[i].name, name) == 0) return;  // a disagreement is found at the launch
  }
  tl_vec_push(&shapes->found, (tl_mbinding){name, value});
}

// Reads the .npy behind --in NAME, if there is one. The array is empty otherwise.
static tl_status read_input(const tl_run_tool *t, const char *name, tl_array *out) {
  *out = (tl_array){0};
  for (size_t i = 0; i < t->in.len; i++) {
    if (!tl_str_is(t->in.items[i].name, name) || !tl_str_ends_with(tl_str_from(t->in.items[i].rest), ".npy")) continue;
    return tl_npy_read(t->in.items[i].rest, t->max_memory, out);
  }
  return TL_OK;
}

static tl_status shapes_of_manifest(const tl_run_tool *t, const tl_manifest_kernel *kernel, shape_source *shapes) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    if (param->kind != TL_MPARAM_TENSOR) continue;
    tl_array file;
    TL_TRY(read_input(t, param->name, &file));
    for (int32_t d = 0; file.data && param->rank == file.rank && d < param->rank; d++) {
      const char *name = tl_mexpr_as_name(param->dims[d]);
      bool is_packed = tl_dtype_bits(param->dtype) == 4 && d == param->rank - 1;
      if (name) add_name(shapes, name, file.shape[d] * (is_packed ? 2 : 1));
    }
    tl_array_fini(&file);
  }
  return TL_OK;
}

// ---- specs

static bool is_dynamic(const tl_kernel_spec *kernel, tl_str name) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (tl_str_equal(kernel->params[i].name, name)) return kernel->params[i].kind == TL_PARAM_DYNAMIC;
  }
  return false;
}

// Bindings for dynamic params that no -D gives, from the shapes of .npy inputs.
static tl_status bind_shapes(tl_run_tool *t, const tl_kernel_spec *kernel) {
  for (uint32_t a = 0; a < kernel->num_args; a++) {
    const tl_arg *arg = &kernel->args[a];
    const char *name = tl_arena_copy_bytes(&t->cli.arena, arg->name.data, arg->name.len);
    tl_array file;
    TL_TRY(read_input(t, name, &file));
    if (file.data && arg->num_dims != (uint32_t)file.rank) {
      tl_status status =
          tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--in %s: the argument has %u dim%s, the file has %d", name,
                         arg->num_dims, arg->num_dims == 1 ? "" : "s", (int)file.rank);
      tl_array_fini(&file);
      return status;
    }
    for (uint32_t d = 0; file.data && d < arg->num_dims; d++) {
      if (arg->dims[d]->kind != TL_EXPR_NAME || !is_dynamic(kernel, arg->dims[d]->text)) continue;
      bool is_bound = false;
      for (size_t b = 0; b < t->cli.bindings.len; b++) {
        is_bound = is_bound || tl_str_equal(t->cli.bindings.items[b].name, arg->dims[d]->text);
      }
      if (is_bound) continue;
      tl_expr *value = TL_NEW(&t->cli.arena, tl_expr);
      *value = (tl_expr){.kind = TL_EXPR_INT, .int_value = file.shape[d], .loc = arg->dims[d]->loc};
      tl_vec_push(&t->cli.bindings, (tl_binding){arg->dims[d]->text, value, arg->dims[d]->loc});
    }
    tl_array_fini(&file);
  }
  return TL_OK;
}

// Every dynamic param has a value, and every --in an argument.
static tl_status validate_spec_names(const tl_run_tool *t, const tl_kernel_spec *kernel) {
  for (size_t i = 0; i < t->in.len; i++) {
    bool is_known = false;
    for (uint32_t a = 0; a < kernel->num_args; a++)
      is_known = is_known || tl_str_equal(kernel->args[a].name, t->in.items[i].name);
    if (!is_known)
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--in %.*s: the kernel has no such argument",
                            TL_STR_ARG(t->in.items[i].name));
  }
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    tl_str name = kernel->params[i].name;
    bool is_bound = kernel->params[i].kind != TL_PARAM_DYNAMIC;
    for (size_t b = 0; b < t->cli.bindings.len; b++)
      is_bound = is_bound || tl_str_equal(t->cli.bindings.items[b].name, name);
    if (!is_bound)
      return tl_status_make(
          TL_STATUS_INVALID_ARGUMENT,
          "the dynamic param '%.*s' has no value: give -D %.*s=… or an input file whose shape tells it",
          TL_STR_ARG(name), TL_STR_ARG(name));
  }
  return TL_OK;
}

tl_status tl_run_tool_spec(tl_run_tool *t, const tl_kernel_spec *kernel) {
  TL_TRY(bind_shapes(t, kernel));
  TL_TRY(validate_spec_names(t, kernel));
  tl_bindings base = {t->cli.bindings.items, (uint32_t)t->cli.bindings.len}, compile, all;
  tl_check_case_bindings(&t->cli.arena, kernel, base, NULL, &compile, &all);
  tl_env env;
  if (!tl_env_create(&t->cli.arena, kernel, all, true, &t->cli.diags, &env)) {
    return tl_status_make(TL_STATUS_DIAGNOSTICS, "the params have errors");
  }
  tl_compile_request request = tl_compile_request_default(kernel);
  request.bindings = compile;
  request.required = t->required;
  request.target = t->target ? t->target : tl_run_device_target(t->device);
  tl_compiled compiled;
  tl_run_kernel *loaded = NULL;
  tl_run_args args = {0};
  tl_mbinding *dynamics;
  size_t num_dynamics;
  tl_check_dynamics(&t->cli.arena, &env, &dynamics, &num_dynamics);
  tl_input_request inputs = {.kernel = kernel,
                             .inputs = t->inputs.items,
                             .num_inputs = (uint32_t)t->inputs.len,
                             .env = &env,
                             .directory = t->directory,
                             .kernel_name = kernel->name,
                             .seed = t->seed,
                             .ints_by_default = true};
  tl_run_tool_step(t, "the compile");
  tl_status status = tl_compile(&request, &t->cli.sources, &t->cli.diags, &compiled);
  if (tl_status_code_of(status) == TL_STATUS_INTERNAL) tl_cli_report_internal(&t->cli, &compiled);
  if (!status) status = tl_run_kernel_load(t->device, &compiled, &loaded);
  tl_compiled_fini(&compiled);
  tl_run_tool_step(t, NULL);
  if (!status) status = tl_run_validate_memory(kernel, &env, t->device, false, t->max_memory, &t->cli.diags);
  if (!status) status = tl_run_args_from_spec(kernel, &env, &t->cli.diags, &args);
  if (!status) status = launch(t, loaded, &inputs, &args, dynamics, num_dynamics);
  tl_run_args_fini(&args);
  tl_run_kernel_destroy(loaded);
  return status;
}

// ---- bare PTX

// -D values of a PTX are the dynamic names; they must be integers.
static tl_status define_names(tl_run_tool *t, const tl_manifest_kernel *kernel, shape_source *shapes, tl_env *env) {
  env->entries = TL_NEW_ARRAY(&t->cli.arena, tl_env_entry, t->cli.bindings.len + 1);
  static const tl_env nothing;
  for (size_t i = 0; i < t->cli.bindings.len; i++) {
    const tl_binding *binding = &t->cli.bindings.items[i];
    tl_const value;
    if (!tl_env_eval(&nothing, binding->value, &t->cli.diags, &value))
      return tl_status_make(TL_STATUS_DIAGNOSTICS, "a -D has errors");
    bool is_known = false;
    for (uint32_t p = 0; p < kernel->num_params; p++) {
      bool is_name = kernel->params[p].kind == TL_MPARAM_DYNAMIC || kernel->params[p].kind == TL_MPARAM_STRIDE;
      is_known = is_known || (is_name && tl_str_is(binding->name, kernel->params[p].name));
    }
    if (!is_known || value.kind != TL_CONST_INT) {
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "-D %.*s: %s", TL_STR_ARG(binding->name),
                            is_known
                                ? "a dynamic name is an integer"
                                : "the kernel has no such dynamic name; other params were bound when it was compiled");
    }
    env->entries[env->len++] = (tl_env_entry){.name = binding->name, .value = value, .is_dynamic = true};
    add_name(shapes, tl_arena_copy_bytes(&t->cli.arena, binding->name.data, binding->name.len), value.i);
  }
  return TL_OK;
}

static tl_status run_ptx(tl_run_tool *t, tl_run_kernel *kernel, shape_source *shapes) {
  const tl_manifest_kernel *manifest = tl_run_kernel_manifest(kernel);
  tl_env env = {0};
  TL_TRY(define_names(t, manifest, shapes, &env));
  TL_TRY(shapes_of_manifest(t, manifest, shapes));
  tl_run_args args;
  TL_TRY(tl_run_args_from_manifest(manifest, shapes->found.items, shapes->found.len, &args));
  tl_input_request inputs = {.inputs = t->inputs.items,
                             .num_inputs = (uint32_t)t->inputs.len,
                             .env = &env,
                             .directory = t->directory,
                             .kernel_name = tl_str_from(manifest->name),
                             .seed = t->seed,
                             .ints_by_default = true};
  tl_status status = launch(t, kernel, &inputs, &args, shapes->found.items, shapes->found.len);
  tl_run_args_fini(&args);
  return status;
}

static bool is_foreign(const tl_run_tool *t) {
  return t->foreign.grid[0] || t->foreign.args.len;
}

static tl_status run_text(tl_run_tool *t, bool contracts) {
  tl_strbuf text = {0}, manifest = {0};
  tl_run_kernel *kernel = NULL;
  shape_source shapes = {0};
  tl_status status = tl_cli_bindings(&t->cli);
  if (!status) status = tl_file_read(t->cli.input, TL_FILE_MAX_TEXT_BYTES, &text);
  bool has_manifest = text.len && (text.data[0] == '{' || tl_str_starts_with(tl_strbuf_view(&text), "// "));
  if (!status && (is_foreign(t) || !has_manifest))
    status = tl_run_foreign_manifest(t, tl_strbuf_view(&text), &manifest);
  if (!status) status = tl_run_tool_inputs(t);
  const char *slash = strrchr(t->cli.input, '/');
  tl_run_ptx ptx = {.text = tl_strbuf_view(&text),
                    .name = slash ? slash + 1 : t->cli.input,
                    .kernel = t->cli.kernel_name,
                    .manifest = tl_strbuf_view(&manifest),
                    .contracts = contracts};
  memcpy(ptx.block, t->foreign.block, sizeof ptx.block);
  ptx.fields = t->foreign.fields.len ? t->foreign.fields.items : NULL;
  ptx.num_fields = (uint32_t)t->foreign.fields.len;
  if (!status) status = tl_run_kernel_load_ptx(t->device, &ptx, &kernel);
  if (!status) status = run_ptx(t, kernel, &shapes);
  tl_run_kernel_destroy(kernel);
  tl_vec_fini(&shapes.found);
  tl_strbuf_fini(&text);
  tl_strbuf_fini(&manifest);
  return status;
}

tl_status tl_run_tool_ptx_launch(tl_run_tool *t) {
  size_t given = t->in.len, inputs = t->inputs.len;
  if (t->foreign.contract != TL_CONTRACT_BOTH) return run_text(t, t->foreign.contract == TL_CONTRACT_ON);
  printf("products and sums apart:\n");
  tl_status apart = run_text(t, false);
  t->in.len = given;
  t->inputs.len = inputs;
  printf("fused where it is open:\n");
  return tl_status_join(apart, run_text(t, true));
}

tl_status tl_run_tool_ptx(tl_run_tool *t) {
  const char *path = t->foreign.launch_path;
  return path ? tl_run_launches(t, path) : tl_run_tool_ptx_launch(t);
}
