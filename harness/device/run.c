// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/device/run.h"

#include <stdlib.h>
#include <string.h>

#include "harness/data/memory.h"
#include "support/arena.h"
#include "support/vec.h"

// ---- arguments

static bool eval_dim(const tl_env *env, const tl_expr *expr, tl_diags *diags, int64_t *out) {
  tl_const value;
  if (!tl_env_eval(env, expr, diags, &value)) return false;
  if (value.kind == TL_CONST_INT && value.i >= 0) {
    *out = value.i;
    return true;
  }
  tl_diag_report(diags, TL_DIAG_CHECK_VALUE, expr->loc, "a dim or stride must be an integer that is not negative");
  return false;
}

bool tl_run_arg_type(const tl_arg *arg, const tl_env *env, tl_diags *diags, tl_dtype *out_dtype, int64_t *dims,
                     int64_t *strides) {
  tl_const dtype;
  if (!tl_env_eval(env, arg->dtype, diags, &dtype)) return false;
  if (dtype.kind != TL_CONST_DTYPE || arg->num_dims > TL_ARRAY_MAX_RANK) {
    tl_diag_report(diags, TL_DIAG_CHECK_VALUE, arg->type_loc, "the type of `%.*s` cannot be run",
                   TL_STR_ARG(arg->name));
    return false;
  }
  *out_dtype = dtype.dtype;
  for (uint32_t d = 0; d < arg->num_dims; d++) {
    if (!eval_dim(env, arg->dims[d], diags, &dims[d])) return false;
  }
  int64_t dense = 1;
  for (uint32_t d = arg->num_dims; d-- > 0;) {
    strides[d] = dense;
    if (d < arg->num_strides && !eval_dim(env, arg->strides[d], diags, &strides[d])) return false;
    if (__builtin_mul_overflow(dense, dims[d] > 0 ? dims[d] : 1, &dense)) dense = INT64_MAX;
  }
  return true;
}

// Bytes that a run takes for one argument.
static tl_status memory_of(const tl_arg *arg, const tl_env *env, bool in_emulator, bool with_reference, tl_diags *diags,
                           tl_run_arg *out, uint64_t *out_bytes) {
  *out = (tl_run_arg){.is_tensor = arg->is_tensor};
  int64_t dims[TL_ARRAY_MAX_RANK];
  tl_dtype dtype = TL_DTYPE_NONE;
  if (!tl_run_arg_type(arg, env, diags, &dtype, dims, out->strides))
    return tl_status_make(TL_STATUS_DIAGNOSTICS, "an argument has errors");
  TL_TRY(tl_array_init_shape(&out->array, dtype, (int32_t)arg->num_dims, dims));
  uint64_t image;
  TL_TRY(tl_run_arg_image_bytes(out, &image));
  // The array and its image; in the emulator its memory, and which bytes of an output were written.
  uint64_t images = !in_emulator ? 1 : arg->access == TL_ARG_OUT ? 3 : 2;
  // Of a check the reference, and who wrote each element (harness/check/writers.h).
  uint64_t each =
      (with_reference ? sizeof(double) : 0) + (with_reference && in_emulator && arg->access != TL_ARG_IN ? 8 : 0);
  *out_bytes = out->array.bytes + images * image + each * out->array.count;
  return TL_OK;
}

tl_status tl_run_validate_memory(const tl_kernel_spec *kernel, const tl_env *env, const tl_run_device *device,
                                 bool with_reference, uint64_t max_bytes, tl_diags *diags) {
  if (!max_bytes) return TL_OK;
  uint64_t total = 0, most = 0;
  char largest[160] = "";
  tl_str name = {0};
  for (uint32_t i = 0; i < kernel->num_args; i++) {
    tl_run_arg arg;
    uint64_t bytes = 0;
    TL_TRY(tl_status_annotate(
        memory_of(&kernel->args[i], env, !tl_run_device_is_gpu(device), with_reference, diags, &arg, &bytes),
        "argument '%.*s'", TL_STR_ARG(kernel->args[i].name)));
    total += bytes;
    if (bytes <= most) continue;
    most = bytes;
    name = kernel->args[i].name;
    tl_array_describe(&arg.array, largest, sizeof largest);
  }
  if (total <= max_bytes) return TL_OK;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, "the run takes ");
  tl_memory_print(total, &text);
  tl_strbuf_append_c(&text, " of memory, ");
  tl_memory_print(most, &text);
  tl_strbuf_appendf(&text, " of it for '%.*s', %s; the limit is ", TL_STR_ARG(name), largest);
  tl_memory_print(max_bytes, &text);
  tl_status status = tl_status_make(TL_STATUS_LIMIT, "%s (--max-memory)", tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return status;
}

tl_status tl_run_args_from_spec(const tl_kernel_spec *kernel, const tl_env *env, tl_diags *diags, tl_run_args *out) {
  *out = (tl_run_args){.items = tl_xcalloc(kernel->num_args + 1, sizeof *out->items)};
  for (uint32_t i = 0; i < kernel->num_args; i++) {
    const tl_arg *arg = &kernel->args[i];
    tl_run_arg *made = &out->items[out->len];
    int64_t dims[TL_ARRAY_MAX_RANK], align = 16;
    tl_dtype dtype = TL_DTYPE_NONE;
    bool ok = tl_run_arg_type(arg, env, diags, &dtype, dims, made->strides) &&
              (!arg->align || eval_dim(env, arg->align, diags, &align));
    tl_status status = ok ? tl_array_init(&made->array, dtype, (int32_t)arg->num_dims, dims)
                          : tl_status_make(TL_STATUS_DIAGNOSTICS, "an argument has errors");
    if (status) {
      tl_run_args_fini(out);
      return tl_status_annotate(status, "argument '%.*s'", TL_STR_ARG(arg->name));
    }
    made->name = strndup(arg->name.data, arg->name.len);
    made->access = arg->access == TL_ARG_IN ? 0 : arg->access == TL_ARG_OUT ? 1 : 2;
    made->is_tensor = arg->is_tensor;
    made->is_optional = arg->is_optional;
    made->align = align;
    out->len++;
  }
  return TL_OK;
}

tl_status tl_run_args_from_manifest(const tl_manifest_kernel *kernel, const tl_mbinding *bindings, size_t num_bindings,
                                    tl_run_args *out) {
  *out = (tl_run_args){.items = tl_xcalloc(kernel->num_params + 1, sizeof *out->items)};
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    if (param->kind != TL_MPARAM_TENSOR && param->kind != TL_MPARAM_SCALAR) continue;
    tl_run_arg *made = &out->items[out->len];
    int64_t dims[TL_ARRAY_MAX_RANK];
    tl_status status = TL_OK;
    int32_t rank = param->kind == TL_MPARAM_TENSOR ? param->rank : 0;
    if (rank > TL_ARRAY_MAX_RANK)
      status = tl_status_make(TL_STATUS_LIMIT, "it has more than %d dims", TL_ARRAY_MAX_RANK);
    for (int32_t d = 0; !status && d < rank; d++) {
      status = tl_mexpr_eval(param->dims[d], bindings, num_bindings, &dims[d]);
      if (!status) status = tl_mexpr_eval(param->strides[d], bindings, num_bindings, &made->strides[d]);
    }
    if (!status) status = tl_array_init(&made->array, param->dtype, rank, dims);
    if (status) {
      tl_run_args_fini(out);
      return tl_status_annotate(
          status, "the shape of argument '%s' is unknown (no value bound and no input that has it)", param->name);
    }
    made->name = strdup(param->name);
    made->access = param->access;
    made->is_tensor = param->kind == TL_MPARAM_TENSOR;
    made->is_optional = param->is_optional;
    made->align = param->align > 0 ? param->align : 1;
    out->len++;
  }
  return TL_OK;
}

void tl_run_args_fini(tl_run_args *args) {
  for (uint32_t i = 0; i < args->len; i++) {
    free(args->items[i].name);
    tl_array_fini(&args->items[i].array);
  }
  free(args->items);
  *args = (tl_run_args){0};
}

tl_run_arg *tl_run_args_find(const tl_run_args *args, tl_str name) {
  for (uint32_t i = 0; i < args->len; i++) {
    if (tl_str_is(name, args->items[i].name)) return &args->items[i];
  }
  return NULL;
}

// ---- memory images: strided tensors have gaps

static bool is_dense(const tl_run_arg *arg) {
  int64_t dense = 1;
  for (int32_t d = arg->array.rank - 1; d >= 0; d--) {
    if (arg->array.shape[d] > 1 && arg->strides[d] != dense) return false;
    dense *= arg->array.shape[d] > 0 ? arg->array.shape[d] : 1;
  }
  return true;
}

tl_status tl_run_arg_image_bytes(const tl_run_arg *arg, uint64_t *out) {
  *out = arg->array.bytes;
  if (is_dense(arg) || arg->array.count == 0) return TL_OK;
  uint64_t last = 0;
  bool over = false;
  for (int32_t d = 0; d < arg->array.rank; d++) {
    uint64_t reach;
    over = over || __builtin_mul_overflow((uint64_t)(arg->array.shape[d] - 1), (uint64_t)arg->strides[d], &reach) ||
           __builtin_add_overflow(last, reach, &last);
  }
  if (over || last > UINT64_C(1) << 40)
    return tl_status_make(TL_STATUS_LIMIT, "argument '%s': the strides reach too far", arg->name);
  *out = tl_dtype_bytes(arg->array.dtype, last + 1);
  return TL_OK;
}

// Moves every element between the dense array and the image.
static void move_elements(const tl_run_arg *arg, uint8_t *image, bool to_image) {
  tl_dtype dtype = arg->array.dtype;
  void *dense = arg->array.data;
  int64_t index[TL_ARRAY_MAX_RANK] = {0};
  for (uint64_t i = 0; i < arg->array.count; i++) {
    uint64_t at = 0;
    for (int32_t d = 0; d < arg->array.rank; d++) at += (uint64_t)(index[d] * arg->strides[d]);
    if (to_image) {
      tl_dtype_store_bits(dtype, image, at, tl_dtype_load_bits(dtype, dense, i));
    } else {
      tl_dtype_store_bits(dtype, dense, i, tl_dtype_load_bits(dtype, image, at));
    }
    for (int32_t d = arg->array.rank - 1; d >= 0 && ++index[d] == arg->array.shape[d]; d--) index[d] = 0;
  }
}

enum { POISON = 0xff };

void tl_run_arg_write_image(const tl_run_arg *arg, void *image, uint64_t bytes) {
  memset(image, POISON, bytes);
  if (arg->access == 1) return;
  if (is_dense(arg)) {
    if (bytes) memcpy(image, arg->array.data, bytes);
  } else {
    move_elements(arg, image, true);
  }
}

void tl_run_arg_read_image(tl_run_arg *arg, const void *image) {
  if (is_dense(arg)) {
    if (arg->array.bytes) memcpy(arg->array.data, image, arg->array.bytes);
  } else {
    move_elements(arg, (uint8_t *)(uintptr_t)image, false);
  }
}

tl_status tl_run_arg_share_elements(tl_run_arg *arg) {
  if (is_dense(arg)) return TL_OK;
  uint64_t bytes;
  TL_TRY(tl_run_arg_image_bytes(arg, &bytes));
  void *image = tl_xmalloc(bytes + 1);
  move_elements(arg, image, true);
  move_elements(arg, image, false);
  free(image);
  return TL_OK;
}

static tl_status upload(tl_run_device *device, const tl_run_arg *arg, tl_run_buffer *buffer) {
  uint64_t bytes;
  if (arg->is_absent) return TL_OK;
  TL_TRY(tl_run_arg_image_bytes(arg, &bytes));
  TL_TRY(tl_run_device_alloc(device, bytes, (uint64_t)arg->align, buffer));
  void *image = tl_xmalloc(bytes + 1);
  tl_run_arg_write_image(arg, image, bytes);
  tl_status status = tl_run_device_write(device, buffer, image);
  free(image);
  return status;
}

static tl_status download(tl_run_device *device, tl_run_arg *arg, const tl_run_buffer *buffer) {
  if (arg->access == 0 || arg->is_absent) return TL_OK;
  uint8_t *image = tl_xmalloc(buffer->bytes + 1);
  tl_status status = tl_run_device_read(device, buffer, image);
  if (!status) tl_run_arg_read_image(arg, image);
  free(image);
  return status;
}

tl_argument tl_run_arg_argument(const tl_run_arg *arg, void *pointer) {
  if (arg->is_absent) return tl_argument_absent(arg->name);
  if (arg->is_tensor) {
    tl_argument argument =
        tl_argument_tensor(arg->name, pointer, tl_dtype_name(arg->array.dtype), arg->array.rank, arg->array.shape);
    argument.tensor.strides = arg->strides;
    return argument;
  }
  if (tl_dtype_is_float(arg->array.dtype)) {
    return tl_argument_float(arg->name, tl_dtype_load_float(arg->array.dtype, arg->array.data, 0));
  }
  return tl_argument_int(arg->name, tl_dtype_load_int(arg->array.dtype, arg->array.data, 0));
}

bool tl_run_takes_dynamic(const tl_manifest_kernel *kernel, const char *name) {
  for (uint32_t p = 0; p < kernel->num_params; p++) {
    if (kernel->params[p].kind == TL_MPARAM_DYNAMIC && strcmp(kernel->params[p].name, name) == 0) return true;
  }
  return false;
}

tl_status tl_run_launch(tl_run_device *device, tl_run_kernel *kernel, tl_run_args *args, const tl_mbinding *dynamics,
                        size_t num_dynamics) {
  tl_run_buffer *buffers = tl_xcalloc(args->len + 1, sizeof *buffers);
  TL_VEC(tl_argument) arguments = {0};
  tl_status status = TL_OK;
  for (uint32_t i = 0; !status && i < args->len; i++) {
    if (args->items[i].is_tensor) status = upload(device, &args->items[i], &buffers[i]);
    args->items[i].memory = buffers[i].pointer;
    tl_vec_push(&arguments, tl_run_arg_argument(&args->items[i], buffers[i].pointer));
  }
  for (size_t i = 0; !status && i < num_dynamics; i++) {
    if (!tl_run_takes_dynamic(tl_run_kernel_manifest(kernel), dynamics[i].name)) continue;
    tl_vec_push(&arguments, tl_argument_int(dynamics[i].name, dynamics[i].value));
  }
  if (!status) status = tl_run_kernel_launch(kernel, arguments.items, arguments.len);
  bool ran = !status;
  for (uint32_t i = 0; i < args->len; i++) {
    if (!args->items[i].is_tensor || args->items[i].is_absent) continue;
    args->items[i].memory = NULL;
    if (!status) status = download(device, &args->items[i], &buffers[i]);
    status = tl_status_join(status, tl_run_device_release(device, &buffers[i], ran ? args->items[i].name : NULL));
  }
  tl_vec_fini(&arguments);
  free(buffers);
  return status;
}
