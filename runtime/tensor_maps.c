// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps of launches: encoded by the driver, kept for launches with the same memory, dims and strides. A launch
// (and a graph that records it) takes the bytes with it.
#include <string.h>

#include "runtime/program.h"
#include "support/status.h"

enum { MOST_MAPS = 64 };  // kept of one kernel

static bool is_same(const tl_made_map *made, uint32_t param, const tl_tensormap_params *wanted) {
  const tl_tensormap_params *had = &made->params;
  bool same = made->param == param && had->address == wanted->address;
  for (uint32_t d = 0; d < wanted->rank && same; d++) {
    same = had->dims[d] == wanted->dims[d];
    if (d + 1 < wanted->rank) same = same && had->strides[d] == wanted->strides[d];
  }
  return same;  // the rest is the manifest's
}

// Memory that stands for a tensor without elements: kept with the kernel's workspaces, under the map's own number.
static tl_status take_empty(tl_kernel *kernel, uint32_t param, void *stream, void **out) {
  tl_device *device = kernel->program->device;
  bool is_new;
  TL_TRY(tl_workspace_take(device, &kernel->workspaces, param, TL_TENSORMAP_STRIDE_UNIT, stream, out, &is_new));
  return is_new ? tl_device_fill(device, *out, 0, TL_TENSORMAP_STRIDE_UNIT, stream) : TL_OK;
}

static tl_status encode_tiled(const tl_cuda_driver *driver, const tl_tensormap_params *p, tl_cu_tensor_map *map) {
  if (!driver->tensor_map_encode_tiled)
    return tl_status_make(TL_STATUS_UNSUPPORTED,
                          "the driver is too old for tensor maps: it has no cuTensorMapEncodeTiled");
  return TL_CUDA_CALL(driver, tensor_map_encode_tiled, map, (unsigned)p->type, p->rank, p->address, p->dims, p->strides,
                      p->box, p->element_strides, (unsigned)p->interleave, (unsigned)p->swizzle, (unsigned)p->l2,
                      (unsigned)p->fill);
}

static tl_status encode_im2col(const tl_cuda_driver *driver, const tl_tensormap_params *p, tl_cu_tensor_map *map) {
  if (!driver->tensor_map_encode_im2col)
    return tl_status_make(TL_STATUS_UNSUPPORTED,
                          "the driver is too old for tensor maps: it has no cuTensorMapEncodeIm2col");
  return TL_CUDA_CALL(driver, tensor_map_encode_im2col, map, (unsigned)p->type, p->rank, p->address, p->dims,
                      p->strides, p->lower, p->upper, p->channels_per_pixel, p->pixels_per_column, p->element_strides,
                      (unsigned)p->interleave, (unsigned)p->swizzle, (unsigned)p->l2, (unsigned)p->fill);
}

static tl_status encode(const tl_kernel *kernel, const tl_tensormap_params *p, uint8_t *bytes) {
  const tl_cuda_driver *driver = kernel->program->device->driver;
  _Alignas(TL_TENSORMAP_ALIGN) uint8_t map[TL_TENSORMAP_BYTES] = {0};
  tl_cu_tensor_map *made = (tl_cu_tensor_map *)(void *)map;
  TL_TRY(p->is_im2col ? encode_im2col(driver, p, made) : encode_tiled(driver, p, made));
  memcpy(bytes, map, sizeof map);
  return TL_OK;
}

static tl_status make_map(tl_kernel *kernel, tl_launch_plan *plan, uint32_t param, void *stream) {
  tl_launch_map *map = plan->maps[param];
  if (map->is_empty) TL_TRY(take_empty(kernel, param, stream, &map->params.address));
  for (size_t i = 0; i < kernel->maps.len; i++) {
    if (!is_same(&kernel->maps.items[i], param, &map->params)) continue;
    memcpy(plan->params[param], kernel->maps.items[i].bytes, TL_TENSORMAP_BYTES);
    return TL_OK;
  }
  TL_TRY(tl_launch_plan_validate_map(kernel->manifest, plan, param));
  tl_made_map made = {.param = param, .params = map->params};
  TL_TRY(tl_status_annotate(encode(kernel, &map->params, made.bytes), "argument '%s'",
                            kernel->manifest->params[kernel->manifest->params[param].map->tensor].name));
  memcpy(plan->params[param], made.bytes, TL_TENSORMAP_BYTES);
  if (kernel->maps.len < MOST_MAPS)
    tl_vec_push(&kernel->maps, made);
  else
    kernel->maps.items[kernel->next_map++ % MOST_MAPS] = made;
  return TL_OK;
}

tl_status tl_launch_make_maps(tl_kernel *kernel, tl_launch_plan *plan, void *stream) {
  const tl_manifest_kernel *manifest = kernel->manifest;
  for (uint32_t i = 0; i < manifest->num_params; i++) {
    if (plan->maps[i]) TL_TRY(make_map(kernel, plan, i, stream));
  }
  return TL_OK;
}
