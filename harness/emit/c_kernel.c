// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function that checks and launches one kernel.
#include <string.h>

#include "harness/emit/c_internal.h"
#include "support/dtype.h"

static void write_name_checks(const tl_manifest_kernel *kernel, tl_strbuf *out) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    if (param->kind != TL_MPARAM_DYNAMIC) continue;
    long long most = param->dtype == TL_DTYPE_I64 ? (long long)TL_WIDE_MAX : INT32_MAX;
    tl_strbuf_append_c(out, "  if ((tlk_code = tlk_range(");
    c_string(param->name, out);
    tl_strbuf_append_c(out, ", ");
    c_identifier(param->name, out);
    tl_strbuf_appendf(out, ", %lld, %lld))) return tlk_code;\n", most, (long long)param->divisor);
  }
}

// "with M = 5, N = 7" as a format and its values.
static void name_values(const tl_manifest_kernel *kernel, tl_strbuf *format, tl_strbuf *values) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (!c_is_name(&kernel->params[i])) continue;
    tl_strbuf_appendf(format, "%s%s = %%lld", format->len ? ", " : " with ", kernel->params[i].name);
    tl_strbuf_append_c(values, ", (long long)");
    c_identifier(kernel->params[i].name, values);
  }
}

static void write_requires(const tl_manifest_kernel *kernel, const c_scope *scope, tl_strbuf *out) {
  tl_strbuf format = {0}, values = {0};
  name_values(kernel, &format, &values);
  for (uint32_t i = 0; i < kernel->num_requires; i++) {
    const tl_manifest_require *require = &kernel->requires_[i];
    tl_strbuf_append_c(out, "  if (!");
    c_expr(require->condition, scope, out);
    tl_strbuf_append_c(out,
                       " && !tlk_bad)\n    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, \"'%s' requires %s, which "
                       "does not hold");
    tl_strbuf_append_c(out, format.len ? tl_strbuf_c(&format) : "");
    tl_strbuf_append_c(out, "\", ");
    c_string(kernel->name, out);
    tl_strbuf_append_c(out, ", ");
    c_string(require->text, out);
    tl_strbuf_appendf(out, "%s);\n", values.len ? tl_strbuf_c(&values) : "");
    c_bad(require->text, kernel->name, out);
  }
  tl_strbuf_fini(&format);
  tl_strbuf_fini(&values);
}

static bool needs_sum(const tl_mexpr *expr) {
  int64_t constant;
  return !tl_mexpr_is_int(expr, &constant) && !tl_mexpr_as_name(expr);
}

// "A && N * 2 > 0 && ": of an argument that is given and has elements.
static void write_has_elements(const tl_manifest_param *param, const c_scope *scope, tl_strbuf *out) {
  if (param->is_optional) {
    c_identifier(param->name, out);
    tl_strbuf_append_c(out, " && ");
  }
  for (int32_t d = 0; d < param->rank; d++) {
    int64_t constant;
    if (tl_mexpr_is_int(param->dims[d], &constant) && constant != 0) continue;
    c_expr(param->dims[d], scope, out);
    tl_strbuf_append_c(out, " > 0 && ");
  }
}

// Dims and strides that no tensor can have, because the sizes that they follow from overflow or make them negative.
// The stride of a dimension with at most one element is never used.
static void write_shape_check(const tl_manifest_param *param, const c_scope *scope, tl_strbuf *out) {
  for (int32_t d = 0; d < param->rank; d++) {
    if (!needs_sum(param->dims[d])) continue;
    tl_strbuf_append_c(out, "  if (");
    if (param->is_optional) c_identifier(param->name, out);
    if (param->is_optional) tl_strbuf_append_c(out, " && ");
    tl_strbuf_append_c(out, "(tlk_code = tlk_extent(");
    c_string(param->name, out);
    tl_strbuf_appendf(out, ", %d, ", d);
    c_expr(param->dims[d], scope, out);
    tl_strbuf_append_c(out, ", &tlk_bad))) return tlk_code;\n");
  }
  for (int32_t d = 0; d < param->rank; d++) {
    int64_t constant;
    if (!needs_sum(param->strides[d]) || (tl_mexpr_is_int(param->dims[d], &constant) && constant <= 1)) continue;
    tl_strbuf_append_c(out, "  if (");
    write_has_elements(param, scope, out);
    c_expr(param->dims[d], scope, out);
    tl_strbuf_append_c(out, " > 1) (void)");
    c_expr(param->strides[d], scope, out);
    tl_strbuf_append_c(out, ";\n");
  }
}

// A tensor without elements may be anywhere.
static void write_pointer_check(const tl_manifest_param *param, const c_scope *scope, tl_strbuf *out) {
  tl_strbuf_append_c(out, "  if (");
  write_has_elements(param, scope, out);
  tl_strbuf_append_c(out, "(tlk_code = tlk_pointer(tlk_m, ");
  c_string(param->name, out);
  tl_strbuf_append_c(out, ", ");
  c_identifier(param->name, out);
  tl_strbuf_appendf(out, ", %lld))) return tlk_code;\n", (long long)(param->align > 1 ? param->align : 1));
}

void c_checks(const tl_manifest_kernel *kernel, const c_scope *scope, tl_strbuf *out) {
  write_name_checks(kernel, out);
  write_requires(kernel, scope, out);
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (kernel->params[i].kind != TL_MPARAM_TENSOR) continue;
    write_shape_check(&kernel->params[i], scope, out);
    write_pointer_check(&kernel->params[i], scope, out);
  }
  c_bad("the shapes", kernel->name, out);
}

static void make_grid(const tl_manifest_kernel *kernel, const c_scope *scope, tl_strbuf *out) {
  tl_strbuf_append_c(out, "  const int64_t tlk_blocks[3] = {");
  for (int axis = 0; axis < 3; axis++) {
    if (axis) tl_strbuf_append_c(out, ", ");
    c_expr(kernel->grid[axis], scope, out);
  }
  tl_strbuf_append_c(out, "};\n");
  c_bad("the grid", kernel->name, out);
  tl_strbuf_append_c(out, "  if ((tlk_code = tlk_grid(");
  c_string(kernel->name, out);
  tl_strbuf_append_c(out, ", tlk_blocks, tlk_variants[tlk_m->variant].kernels[");
  tl_strbuf_appendf(out, "%u].cluster))) return tlk_code;\n", scope->kernel);
  tl_strbuf_append_c(out, "  if (!tlk_blocks[0] || !tlk_blocks[1] || !tlk_blocks[2]) return 0;\n");
}

// "{1, 2}"
static void write_numbers(const int32_t *numbers, int32_t count, tl_strbuf *out) {
  tl_strbuf_append_char(out, '{');
  for (int32_t i = 0; i < count; i++) tl_strbuf_appendf(out, "%s%d", i ? ", " : "", numbers[i]);
  tl_strbuf_append_char(out, '}');
}

static void write_recipe(const tl_manifest_kernel *kernel, uint32_t index, tl_strbuf *out) {
  const tl_manifest_map *map = kernel->params[index].map;
  int32_t pixels = map->is_im2col ? map->rank - 2 : 0, step[TL_TENSORMAP_MAX_RANK];
  for (int32_t d = 0; d < map->rank; d++) step[d] = d >= 1 && d <= pixels ? map->step[d - 1] : 1;
  tl_strbuf_appendf(out, "  static const tlk_map tlk_map%u = {", index);
  c_string(kernel->params[map->tensor].name, out);
  tl_strbuf_appendf(out, ", %d, %d, %d, %d, %d, {", (int)map->type, (int)map->swizzle, (int)map->l2, (int)map->fill,
                    map->rank);
  for (int32_t d = 0; d < map->rank; d++) tl_strbuf_appendf(out, "%s%u", d ? ", " : "", map->box[d]);
  tl_strbuf_appendf(out, "}, %d, %d, ", map->is_written, map->is_im2col);
  write_numbers(pixels ? map->lower : (const int32_t[]){0}, pixels ? pixels : 1, out);
  tl_strbuf_append_c(out, ", ");
  write_numbers(pixels ? map->upper : (const int32_t[]){0}, pixels ? pixels : 1, out);
  tl_strbuf_append_c(out, ", ");
  write_numbers(step, map->rank, out);
  tl_strbuf_append_c(out, "};\n");
}

static void make_map(const tl_manifest_kernel *kernel, uint32_t index, const c_scope *scope, tl_strbuf *out) {
  const tl_manifest_map *map = kernel->params[index].map;
  write_recipe(kernel, index, out);
  tl_strbuf_appendf(out, "  static _Thread_local tlk_made_maps tlk_maps%u;\n", index);
  tl_strbuf_appendf(out, "  tlk_made_map tlk_wanted%u = {.address = (void *)(uintptr_t)", index);
  c_identifier(kernel->params[map->tensor].name, out);
  tl_strbuf_append_c(out, ", .dims = {");
  for (int32_t d = 0; d < map->rank; d++) {
    tl_strbuf_append_c(out, d ? ", (uint64_t)" : "(uint64_t)");
    c_expr(map->dims[d], scope, out);
  }
  tl_strbuf_append_c(out, "}");
  if (map->rank > 1) tl_strbuf_append_c(out, ", .strides = {");
  for (int32_t d = 0; d + 1 < map->rank; d++) {
    tl_strbuf_append_c(out, d ? ", (uint64_t)" : "(uint64_t)");
    c_expr(map->strides[d], scope, out);
  }
  tl_strbuf_append_c(out, map->rank > 1 ? "}};\n" : "};\n");
  if (kernel->params[map->tensor].is_optional) {  // one of nothing, as of a tensor without elements
    tl_strbuf_append_c(out, "  if (!");
    c_identifier(kernel->params[map->tensor].name, out);
    tl_strbuf_appendf(out, ") tlk_wanted%u.dims[0] = 0;\n", index);
  }
  tl_strbuf_appendf(out, "  void *tlk_p%u = NULL;\n", index);
  c_bad("a tensor map", kernel->name, out);
  tl_strbuf_appendf(out,
                    "  if ((tlk_code = tlk_make_map(tlk_m, &tlk_map%u, &tlk_maps%u, &tlk_wanted%u, &tlk_p%u))) return "
                    "tlk_code;\n",
                    index, index, index, index);
}

// The value of a parameter in the width that the kernel takes.
static void make_param(const tl_manifest_kernel *kernel, uint32_t index, const c_scope *scope, tl_strbuf *out) {
  const tl_manifest_param *param = &kernel->params[index];
  const char *type = "int64_t", *convert = "";
  if (param->kind == TL_MPARAM_TENSOR_MAP) {
    make_map(kernel, index, scope, out);
    return;
  }
  if (param->kind == TL_MPARAM_WORKSPACE) {
    tl_strbuf_appendf(out, "  void *tlk_p%u = tlk_w;\n", index);
    return;
  }
  if (param->kind == TL_MPARAM_TENSOR) type = "const void *";
  if (param->kind == TL_MPARAM_DYNAMIC && param->dtype != TL_DTYPE_I64) type = "int32_t", convert = "(int32_t)";
  if (param->kind == TL_MPARAM_SCALAR) {
    type = c_scalar_type(param->dtype);
    if (param->dtype == TL_DTYPE_F16) type = "uint16_t", convert = "tlk_f16";
    if (param->dtype == TL_DTYPE_BF16) type = "uint16_t", convert = "tlk_bf16";
  }
  tl_strbuf_appendf(out, "  %s tlk_p%u = %s(", type, index, convert);
  c_identifier(param->name, out);
  tl_strbuf_append_c(out, ");\n");
}

static bool takes_name(const tl_manifest_kernel *kernel, const char *name) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (c_is_name(&kernel->params[i]) && strcmp(kernel->params[i].name, name) == 0) return true;
  return false;
}

// The kernel's aligned version, unless it takes a size that the kernel does not. NULL: there is none.
static const tl_manifest_kernel *version_of(const tl_manifest *manifest, const tl_manifest_kernel *kernel) {
  const tl_manifest_kernel *aligned = kernel->aligned ? &manifest->kernels[kernel->aligned] : NULL;
  for (uint32_t i = 0; aligned && i < aligned->num_params; i++)
    if (c_is_name(&aligned->params[i]) && !takes_name(kernel, aligned->params[i].name)) return NULL;
  return aligned;
}

// Whether the kernel asks for as much already.
static bool is_promised(const tl_manifest_kernel *kernel, const tl_manifest_param *param) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (strcmp(kernel->params[i].name, param->name) == 0)
      return kernel->params[i].align == param->align && kernel->params[i].divisor == param->divisor;
  return false;
}

// A launch of the aligned version where the arguments are such. What it refuses then is a tensor map.
static void call_version(const tl_manifest_kernel *kernel, const tl_manifest_kernel *aligned, uint32_t variant,
                         tl_strbuf *out) {
  const char *before = "  if (";
  for (uint32_t i = 0; i < aligned->num_params; i++) {
    const tl_manifest_param *param = &aligned->params[i];
    bool is_tensor = param->kind == TL_MPARAM_TENSOR;
    if ((!is_tensor && param->kind != TL_MPARAM_DYNAMIC) || is_promised(kernel, param)) continue;
    tl_strbuf_appendf(out, "%s%s", before, is_tensor ? "(uintptr_t)" : "");
    c_identifier(param->name, out);
    tl_strbuf_appendf(out, " %% %lld == 0", (long long)(is_tensor ? param->align : param->divisor));
    before = " && ";
  }
  tl_strbuf_appendf(out, ") {\n    tlk_code = tlk_run_%u_%u(tlk_m, tlk_stream", variant, kernel->aligned);
  for (uint32_t i = 0; i < aligned->num_params; i++) {
    if (!c_is_argument(&aligned->params[i]) && !c_is_name(&aligned->params[i])) continue;
    tl_strbuf_append_c(out, ", ");
    c_identifier(aligned->params[i].name, out);
  }
  if (c_workspace(aligned)) tl_strbuf_append_c(out, ", tlk_w");
  tl_strbuf_append_c(out,
                     ", tlk_only_checks);\n    if (tlk_code != TL_KERNEL_INVALID_ARGUMENT) return tlk_code;\n  }\n");
}

static void write_kernel(const tl_manifest_kernel *kernel, const tl_manifest_kernel *aligned, uint32_t variant,
                         uint32_t index, tl_strbuf *out) {
  const c_scope scope = {.prefix = "", .kernel = index};
  tl_strbuf_appendf(out, "// '%s'\nstatic int tlk_run_%u_%u(tlk_module *tlk_m, tl_stream tlk_stream", kernel->name,
                    variant, index);
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (!c_is_argument(&kernel->params[i]) && !c_is_name(&kernel->params[i])) continue;
    tl_strbuf_append_c(out, ", ");
    c_parameter(&kernel->params[i], "", out);
  }
  const tl_manifest_param *workspace = c_workspace(kernel);
  if (workspace) tl_strbuf_append_c(out, ", void *tlk_w");
  tl_strbuf_append_c(out, ", int tlk_only_checks) {\n  int tlk_code = 0, tlk_bad = 0;\n");
  c_checks(kernel, &scope, out);
  if (aligned) call_version(kernel, aligned, variant, out);
  make_grid(kernel, &scope, out);
  for (uint32_t i = 0; i < kernel->num_params; i++) make_param(kernel, i, &scope, out);
  tl_strbuf_append_c(out, "  if (tlk_only_checks) return 0;\n");
  if (workspace) {
    tl_strbuf_append_c(out, "  if ((tlk_code = tlk_zero(tlk_w, ");
    tl_mexpr_print(workspace->bytes, out);
    tl_strbuf_append_c(out, ", tlk_stream))) return tlk_code;\n");
  }
  tl_strbuf_append_c(out, "  void *tlk_params[] = {");
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    bool is_map = kernel->params[i].kind == TL_MPARAM_TENSOR_MAP;
    tl_strbuf_appendf(out, "%s%stlk_p%u", i ? ", " : "", is_map ? "" : "(void *)&", i);
  }
  tl_strbuf_appendf(out, "%s};\n  return tlk_launch(tlk_m, %u, tlk_blocks, tlk_params, tlk_stream);\n}\n\n",
                    kernel->num_params ? "" : "NULL", index);
}

void c_kernel(const tl_manifest *manifest, uint32_t variant, uint32_t index, tl_strbuf *out) {
  const tl_manifest_kernel *kernel = &manifest->kernels[index], *aligned = version_of(manifest, kernel);
  if (aligned) write_kernel(aligned, NULL, variant, kernel->aligned, out);
  write_kernel(kernel, aligned, variant, index, out);
}
