// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function __tvm_ffi_NAME: tensors with shapes to the pointers and sizes of NAME_launch.
#include <string.h>

#include "harness/emit/c_internal.h"
#include "support/status.h"

static const c_scope scope = {.prefix = ""};

// A dtype as DLPack has it (dlpack.h, DLDataTypeCode). False: it has none, or packs elements in another way.
static bool dlpack_dtype(tl_dtype dtype, int *out_code) {
  if (tl_dtype_bits(dtype) < 8) return false;
  *out_code = 2;
  if (dtype == TL_DTYPE_BF16) *out_code = 4;
  if (dtype == TL_DTYPE_F8E4M3) *out_code = 10;
  if (dtype == TL_DTYPE_F8E5M2) *out_code = 12;
  if (dtype == TL_DTYPE_BOOL) *out_code = 6;
  if (!tl_dtype_is_float(dtype) && dtype != TL_DTYPE_BOOL) *out_code = tl_dtype_int_min(dtype) < 0 ? 0 : 1;
  return true;
}

static bool is_bare(const tl_mexpr *expr, const char *name) {
  const char *have = tl_mexpr_as_name(expr);
  return have && strcmp(have, name) == 0;
}

static bool is_given(const tl_manifest_param *param) {
  return param->kind == TL_MPARAM_TENSOR && !param->is_optional;
}

static const tl_manifest_param *find_name(const tl_manifest_kernel *kernel, const char *name) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (strcmp(kernel->params[i].name, name) == 0) return &kernel->params[i];
  return NULL;
}

// "tlk_has_stride(tlk_t2, 0) ? tlk_stride(tlk_t2, 0) : tlk_unused_stride(…)": a stride that nobody uses may be
// anything.
static bool find_stride(const tl_manifest_kernel *kernel, const char *name, tl_strbuf *out) {
  const tl_manifest_param *bound = find_name(kernel, name);
  bool is_size = bound && bound->kind == TL_MPARAM_DYNAMIC;
  tl_strbuf rest = {0};
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    for (int32_t d = 0; is_given(param) && d < param->rank; d++) {
      if (!is_bare(param->strides[d], name)) continue;
      tl_strbuf_appendf(out, "tlk_has_stride(tlk_t%u, %d) ? tlk_stride(tlk_t%u, %d) : ", i, d, i, d);
      if (!rest.len)
        tl_strbuf_appendf(&rest, "tlk_unused_stride(tlk_t%u, %d, %lld, %s)", i, d,
                          (long long)(is_size && bound->divisor > 1 ? bound->divisor : 1),
                          is_size && bound->dtype != TL_DTYPE_I64 ? "INT32_MAX" : "INT64_MAX");
    }
  }
  bool is_told = rest.len > 0;
  tl_strbuf_append_c(out, tl_strbuf_c(&rest));
  tl_strbuf_fini(&rest);
  return is_told;
}

// "tlk_t2->shape[1]", where a tensor's shape or else strides tell the name. False: none does.
static bool find_value(const tl_manifest_kernel *kernel, const char *name, tl_strbuf *out) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    for (int32_t d = 0; is_given(param) && d < param->rank; d++) {
      if (!is_bare(param->dims[d], name)) continue;
      tl_strbuf_appendf(out, "tlk_t%u->shape[%d]", i, d);
      return true;
    }
  }
  return find_stride(kernel, name, out);
}

static void write_try(tl_strbuf *out, const char *call) {
  tl_strbuf_appendf(out, "  if ((tlk_code = %s", call);
}
static void write_end(tl_strbuf *out) {
  tl_strbuf_append_c(out, "))) return tlk_ffi_failed(tlk_code);\n");
}

static void write_scalar(const tl_manifest_param *param, uint32_t index, uint32_t place, tl_strbuf *out) {
  bool is_float = tl_dtype_is_float(param->dtype);
  tl_strbuf_appendf(out, "  %s tlk_t%u = 0;\n", is_float ? "double" : "int64_t", index);
  write_try(out, is_float ? "tlk_ffi_float(" : "tlk_ffi_int(");
  tl_strbuf_appendf(out, "&tlk_args[%u], ", place);
  c_string(param->name, out);
  // A u64 beyond int64 travels as its bits.
  if (!is_float && tl_dtype_bits(param->dtype) == 64)
    tl_strbuf_append_c(out, ", INT64_MIN, INT64_MAX");
  else if (!is_float)
    tl_strbuf_appendf(out, ", %lld, %llu", (long long)tl_dtype_int_min(param->dtype),
                      (unsigned long long)tl_dtype_int_max(param->dtype));
  tl_strbuf_appendf(out, ", &tlk_t%u", index);
  write_end(out);
}

static void write_tensor(const tl_manifest_param *param, uint32_t index, uint32_t place, tl_strbuf *out) {
  int code = 0;
  dlpack_dtype(param->dtype, &code);
  tl_strbuf_appendf(out, "  const tlk_tensor *tlk_t%u = NULL;\n", index);
  if (param->is_optional)
    tl_strbuf_appendf(out, "  if (tlk_args[%u].type_index != TLK_FFI_NONE && (tlk_code = tlk_ffi_tensor(", place);
  else
    write_try(out, "tlk_ffi_tensor(");
  tl_strbuf_appendf(out, "&tlk_args[%u], ", place);
  c_string(param->name, out);
  tl_strbuf_appendf(out, ", %d, %u, %d, &tlk_t%u", code, (unsigned)tl_dtype_bits(param->dtype), param->rank, index);
  write_end(out);
  if (param->is_optional)
    tl_strbuf_appendf(out, "  if (tlk_t%u && (tlk_code = tlk_ffi_device(", index);
  else
    write_try(out, "tlk_ffi_device(");
  tl_strbuf_appendf(out, "tlk_t%u, ", index);
  c_string(param->name, out);
  tl_strbuf_append_c(out, ", &tlk_device");
  write_end(out);
}

// Names, then what the shapes and strides must be with them.
static void write_shapes(const tl_manifest_kernel *kernel, tl_strbuf *out) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    for (int32_t d = 0; param->kind == TL_MPARAM_TENSOR && d < 2 * param->rank; d++) {
      bool is_dim = d < param->rank;
      int32_t at = is_dim ? d : d - param->rank;
      tl_strbuf_append_c(out, "  if (");
      if (param->is_optional) tl_strbuf_appendf(out, "tlk_t%u && ", i);
      if (!is_dim) tl_strbuf_appendf(out, "tlk_has_stride(tlk_t%u, %d) && ", i, at);
      tl_strbuf_append_c(out, "(tlk_code = tlk_same(");
      c_string(param->name, out);
      tl_strbuf_appendf(out, ", \"%s\", %d, ", is_dim ? "dimension" : "stride of dimension", at);
      c_expr(is_dim ? param->dims[at] : param->strides[at], &scope, out);
      tl_strbuf_appendf(out, is_dim ? ", tlk_t%u->shape[%d]" : ", tlk_stride(tlk_t%u, %d)", i, at);
      write_end(out);
    }
  }
  tl_strbuf_append_c(out,
                     "  if (tlk_bad)\n    return tlk_ffi_failed(tlk_fail(TL_KERNEL_INVALID_ARGUMENT, \"these sizes "
                     "overflow, or divide by zero\"));\n");
}

static void write_launch(const c_signature *signature, const char *name, tl_strbuf *out) {
  const tl_manifest_kernel *kernel = signature->kernel;
  tl_strbuf_append_c(out,
                     "  int tlk_pushed;\n  if ((tlk_code = tlk_ffi_enter(tlk_device, &tlk_pushed))) return "
                     "tlk_ffi_failed(tlk_code);\n  tl_stream tlk_stream = tlk_ffi.get_stream ? "
                     "tlk_ffi.get_stream(TLK_DL_CUDA, tlk_device < 0 ? 0 : tlk_device) : NULL;\n");
  tl_strbuf_appendf(out, "  tlk_code = %s_launch(tlk_stream", name);
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    if (param->kind == TL_MPARAM_TENSOR)
      tl_strbuf_appendf(out, param->is_optional ? ", tlk_t%u ? tlk_data(tlk_t%u) : NULL" : ", tlk_data(tlk_t%u)", i, i);
    if (param->kind == TL_MPARAM_SCALAR) tl_strbuf_appendf(out, ", (%s)tlk_t%u", c_scalar_type(param->dtype), i);
  }
  for (uint32_t i = 0; i < signature->num_names; i++) {
    tl_strbuf_append_c(out, ", ");
    c_identifier(signature->names[i], out);
  }
  if (signature->has_workspace)
    tl_strbuf_append_c(out, ", tlk_data(tlk_workspace_tensor), (size_t)tlk_workspace_tensor->shape[0]");
  tl_strbuf_append_c(out, ");\n  tlk_ffi_leave(tlk_pushed);\n  return tlk_code ? tlk_ffi_failed(tlk_code) : 0;\n}\n");
}

static tl_status validate(const tl_manifest_kernel *kernel) {
  int code;
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    if (param->kind == TL_MPARAM_TENSOR && !dlpack_dtype(param->dtype, &code))
      return tl_status_make(TL_STATUS_UNSUPPORTED, "--emit=tvm-ffi: argument '%s' of '%s' has elements of %s",
                            param->name, kernel->name, tl_dtype_name(param->dtype));
  }
  return TL_OK;
}

tl_status c_ffi(const c_signature *signature, const char *name, tl_strbuf *out) {
  const tl_manifest_kernel *kernel = signature->kernel;
  tl_strbuf body = {0};
  uint32_t place = 0;
  TL_TRY(validate(kernel));
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (!c_is_argument(&kernel->params[i])) continue;
    if (kernel->params[i].kind == TL_MPARAM_SCALAR)
      write_scalar(&kernel->params[i], i, place++, &body);
    else
      write_tensor(&kernel->params[i], i, place++, &body);
  }
  for (uint32_t i = 0; i < signature->num_names; i++) {
    tl_strbuf value = {0};
    bool is_told = find_value(kernel, signature->names[i], &value);
    tl_strbuf_append_c(&body, "  int64_t ");
    c_identifier(signature->names[i], &body);
    tl_strbuf_appendf(&body, " = %s;\n", is_told ? tl_strbuf_c(&value) : "0");
    if (!is_told) {
      write_try(&body, "tlk_ffi_int(");
      tl_strbuf_appendf(&body, "&tlk_args[%u], ", place++);
      c_string(signature->names[i], &body);
      tl_strbuf_append_c(&body, ", INT64_MIN, INT64_MAX, &");
      c_identifier(signature->names[i], &body);
      write_end(&body);
    }
    tl_strbuf_fini(&value);
  }
  if (signature->has_workspace) {
    tl_strbuf_appendf(&body,
                      "  const tlk_tensor *tlk_workspace_tensor = NULL;\n  if ((tlk_code = "
                      "tlk_ffi_tensor(&tlk_args[%u], \"workspace\", 1, 8, 1, &tlk_workspace_tensor",
                      place++);
    write_end(&body);
  }
  write_shapes(kernel, &body);
  tl_strbuf_appendf(
      out,
      "\n// For tvm-ffi: the arguments in order, then sizes that no shape tells%s.\n"
      "__attribute__((visibility(\"default\"))) int __tvm_ffi_%s(void *tlk_self, const tlk_any *tlk_args, "
      "int32_t tlk_num_args, tlk_any *tlk_out);\n"
      "int __tvm_ffi_%s(void *tlk_self, const tlk_any *tlk_args, int32_t tlk_num_args, tlk_any *tlk_out) {\n"
      "  int tlk_code = 0, tlk_bad = 0;\n  int32_t tlk_device = -1;\n  (void)tlk_self;\n"
      "  memset(tlk_out, 0, sizeof *tlk_out);\n  pthread_once(&tlk_ffi_once, tlk_open_ffi);\n",
      signature->has_workspace ? ", then a workspace of u8" : "", name, name);
  write_try(out, "tlk_ffi_count(");
  c_string(name, out);
  tl_strbuf_appendf(out, ", tlk_num_args, %u", place);
  write_end(out);
  tl_strbuf_append_c(out, tl_strbuf_c(&body));
  write_launch(signature, name, out);
  tl_strbuf_fini(&body);
  return TL_OK;
}
