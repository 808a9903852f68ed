// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of elements of global memory: which argument of the launch a buffer is, and where in the tensor a byte lies.
#include <stdlib.h>
#include <string.h>

#include "emulator/sanitize/sanitizer.h"

static const tl_mexpr *copy_expr(const tl_mexpr *expr, tl_arena *arena) {
  if (!expr) return NULL;
  tl_strbuf text = {0};
  tl_mexpr_print(expr, &text);
  const tl_mexpr *copy = NULL;
  tl_str kept = {tl_arena_copy_bytes(arena, text.data, text.len), text.len};
  tl_status status = tl_mexpr_parse(arena, kept, &copy);
  tl_strbuf_fini(&text);
  tl_status_free(status);  // without it the element has no coordinates
  return copy;
}

void tl_emu_copy_params(const tl_manifest_kernel *manifest, tl_arena *arena, tl_manifest_param **out) {
  tl_manifest_param *copies = TL_NEW_ARRAY(arena, tl_manifest_param, manifest->num_params + 1);
  for (uint32_t i = 0; i < manifest->num_params; i++) {
    const tl_manifest_param *from = &manifest->params[i];
    copies[i] = *from;
    copies[i].name = from->name ? tl_arena_copy_bytes(arena, from->name, strlen(from->name)) : NULL;
    copies[i].bytes = NULL;
    if (from->kind != TL_MPARAM_TENSOR || !from->dims || !from->strides) copies[i].rank = 0;
    copies[i].dims = copies[i].strides = NULL;
    copies[i].map = NULL;
    if (!copies[i].rank) continue;
    copies[i].dims = TL_NEW_ARRAY(arena, const tl_mexpr *, from->rank);
    copies[i].strides = TL_NEW_ARRAY(arena, const tl_mexpr *, from->rank);
    for (int32_t d = 0; d < from->rank; d++) {
      copies[i].dims[d] = copy_expr(from->dims[d], arena);
      copies[i].strides[d] = copy_expr(from->strides[d], arena);
    }
  }
  *out = copies;
}

// Strides of a tensor from the dynamic params and run-time strides of the launch. False: not to be told.
static bool find_strides(const tl_emu_launch_state *launch, const tl_manifest_param *param, int64_t *strides) {
  TL_VEC(tl_mbinding) bindings = {0};
  for (uint32_t i = 0; i < launch->num_params; i++) {
    const tl_manifest_param *other = &launch->param_infos[i];
    if (!other->name || (other->kind != TL_MPARAM_DYNAMIC && other->kind != TL_MPARAM_STRIDE)) continue;
    bool is_narrow = other->kind == TL_MPARAM_DYNAMIC && other->dtype != TL_DTYPE_I64;
    int64_t value = is_narrow ? *(const int32_t *)launch->params[i] : *(const int64_t *)launch->params[i];
    tl_vec_push(&bindings, (tl_mbinding){other->name, value});
  }
  bool known = true;
  for (int32_t d = 0; d < param->rank && known; d++) {
    tl_status status = param->strides[d] ? tl_mexpr_eval(param->strides[d], bindings.items, bindings.len, &strides[d])
                                         : tl_status_make(TL_STATUS_NOT_FOUND, "no stride");
    known = !status && strides[d] > 0 && (!d || strides[d] <= strides[d - 1]);
    tl_status_free(status);
  }
  tl_vec_fini(&bindings);
  return known;
}

static void print_element(const tl_emu_launch_state *launch, const tl_manifest_param *param, size_t offset,
                          tl_strbuf *out) {
  int64_t strides[TL_MAX_RANK], element = (int64_t)(offset * 8 / (size_t)tl_dtype_bits(param->dtype));
  if (!param->rank || param->rank > TL_MAX_RANK || !find_strides(launch, param, strides)) {
    tl_strbuf_appendf(out, "element %lld of %s", (long long)element, param->name);
    return;
  }
  tl_strbuf_append_c(out, param->name);
  for (int32_t d = 0; d < param->rank; d++) {
    tl_strbuf_appendf(out, "%s%lld", d ? ", " : "[", (long long)(element / strides[d]));
    element %= strides[d];
  }
  tl_strbuf_append_char(out, ']');
}

void tl_emu_describe_global(const tl_emu_launch_state *launch, const void *address, tl_strbuf *out) {
  for (uint32_t i = 0; i < launch->num_params; i++) {
    const tl_manifest_param *param = &launch->param_infos[i];
    if (!param->name || (param->kind != TL_MPARAM_TENSOR && param->kind != TL_MPARAM_WORKSPACE)) continue;
    const uint8_t *start = *(const uint8_t *const *)launch->params[i];
    size_t bytes = tl_emu_buffer_bytes(launch->global, start), offset = (size_t)((const uint8_t *)address - start);
    if (offset >= bytes) continue;
    if (param->kind == TL_MPARAM_WORKSPACE)
      tl_strbuf_append_c(out, param->name);
    else
      print_element(launch, param, offset, out);
    tl_strbuf_appendf(out, ", byte %zu of %zu", offset, bytes);
    return;
  }
  tl_emu_describe_address((uintptr_t)address, out);
}
