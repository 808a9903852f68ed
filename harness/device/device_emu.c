// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The emulator behind the seam. Arguments go through the same checks as on a GPU.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ops/tensormap.h"
#include "harness/device/device_internal.h"
#include "harness/device/ptx_kernel.h"
#include "ir/index/elements.h"
#include "runtime/chain.h"
#include "runtime/versions.h"
#include "support/vec.h"

// What grids and workspaces that depend on the device see, unless the options say how many blocks are resident: few
// blocks, so that those of a persistent kernel have several tiles.
enum { EMU_NUM_SMS = 3, EMU_RESIDENT_BLOCKS = 3 };

typedef TL_VEC(void *) emu_memory;

static tl_status emu_close(tl_run_device *device) {
  (void)device;
  return TL_OK;
}

static tl_status emu_alloc(tl_run_device *device, uint64_t bytes, uint64_t align, void **out) {
  (void)device;
  *out = tl_emu_alloc(bytes, align > 16 ? align : 16);
  return TL_OK;
}
static tl_status emu_free(tl_run_device *device, void *pointer) {
  (void)device;
  tl_emu_free(pointer);
  return TL_OK;
}
static tl_status emu_copy(tl_run_device *device, void *to, const void *from, uint64_t bytes) {
  (void)device;
  if (bytes) memcpy(to, from, bytes);
  return TL_OK;
}

// What is shipped, with lines: the backend's PTX.
static tl_status create_via_ptx(const tl_manifest_kernel *info, tl_backend *backend, uint32_t checks,
                                tl_emu_kernel **out) {
  tl_strbuf ptx = {0};
  tl_status status = tl_backend_emit_ptx_lines(backend, &ptx);
  const tl_emu_ptx_options options = {.block = {(uint32_t)info->block_threads, 1, 1}};
  if (!status)
    status = tl_ptx_kernel_create(tl_strbuf_view(&ptx), "kernel.ptx", info, &options, checks,
                                  tl_backend_debug_info(backend), out);
  tl_strbuf_fini(&ptx);
  return status;
}

static tl_status create(tl_run_kernel *kernel, uint32_t index, tl_backend *backend, uint32_t checks,
                        tl_emu_kernel **out) {
  if (kernel->device->via == TL_VIA_PTX && checks != TL_EMU_SANITIZE_ELEMENTS)
    return create_via_ptx(&kernel->manifest.kernels[index], backend, checks, out);
  char *bitcode = NULL;
  size_t len = 0;
  TL_TRY(tl_backend_device_bitcode(backend, &bitcode, &len));
  tl_status status = tl_emu_kernel_create_sanitized(bitcode, len, &kernel->manifest.kernels[index], checks,
                                                    tl_backend_debug_info(backend), out);
  free(bitcode);
  return status;
}

// The kernel once more, lowered so that each access says which element makes it. What runs on a GPU stays what the
// other checks see.
static tl_status load_marked(tl_run_kernel *kernel, uint32_t index, const tl_compiled *compiled) {
  if (!(kernel->device->emu.checks & TL_EMU_SANITIZE_RACE) || !compiled->tile) return TL_OK;
  if (!tl_has_meeting_elements(tl_module_kernel(compiled->tile))) return TL_OK;
  const tl_backend_options options = {.opt_level = 1, .marks_elements = true};
  tl_diags diags;
  tl_diags_init(&diags, compiled->sources);
  tl_backend *marked = NULL;
  tl_status status = tl_backend_create(compiled->tile, compiled->target, &options, &diags, &marked);
  if (!status) status = create(kernel, index, marked, TL_EMU_SANITIZE_ELEMENTS, &kernel->emu_elements[index]);
  tl_backend_destroy(marked);
  tl_diags_fini(&diags);
  return status;
}

static tl_status load_one(tl_run_kernel *kernel, uint32_t index, const tl_compiled *compiled) {
  uint32_t checks = kernel->device->emu.checks;
  tl_backend *backend = compiled->alone ? compiled->alone : compiled->backend;
  TL_TRY(create(kernel, index, backend, checks, &kernel->emu_kernels[index]));
  if (kernel->device->via == TL_VIA_BOTH)
    TL_TRY(create_via_ptx(&kernel->manifest.kernels[index], backend, checks, &kernel->emu_ptx[index]));
  return load_marked(kernel, index, compiled);
}

static tl_status load_versions(tl_run_kernel *kernel, uint32_t index, const tl_compiled *compiled) {
  TL_TRY(load_one(kernel, index, compiled));
  uint32_t aligned = kernel->manifest.kernels[index].aligned;
  return aligned ? load_one(kernel, aligned, &compiled->parts[0]) : TL_OK;
}

// The kernels of a chain come from their own backends: those know the sources for messages.
static tl_status emu_load(tl_run_kernel *kernel, const tl_compiled *compiled) {
  kernel->emu_kernels = tl_xcalloc(kernel->manifest.num_kernels, sizeof *kernel->emu_kernels);
  kernel->emu_ptx = tl_xcalloc(kernel->manifest.num_kernels, sizeof *kernel->emu_ptx);
  kernel->emu_elements = tl_xcalloc(kernel->manifest.num_kernels, sizeof *kernel->emu_elements);
  if (!kernel->chain) return load_versions(kernel, 0, compiled);
  for (uint32_t i = 0; i < compiled->num_parts; i++) TL_TRY(load_versions(kernel, i, &compiled->parts[i]));
  return TL_OK;
}

// All kernels of a chain, else the one that is wanted. Without .loc findings show lines of the text.
static tl_status emu_load_ptx(tl_run_kernel *kernel, const tl_run_ptx *ptx, const char *name) {
  const tl_manifest *manifest = &kernel->manifest;
  if (!kernel->info) return tl_status_make(TL_STATUS_NOT_FOUND, "the manifest has no kernel '%s'", name ? name : "");
  tl_debug_source source = {.name = ptx->name, .text = ptx->text};
  const tl_debug_info debug = {.sources = &source, .num_sources = 1};
  kernel->emu_kernels = tl_xcalloc(manifest->num_kernels, sizeof *kernel->emu_kernels);
  kernel->emu_ptx = tl_xcalloc(manifest->num_kernels, sizeof *kernel->emu_ptx);
  kernel->emu_elements = tl_xcalloc(manifest->num_kernels, sizeof *kernel->emu_elements);
  for (uint32_t i = 0; i < manifest->num_kernels; i++) {
    const tl_manifest_kernel *info = &manifest->kernels[i];
    bool is_wanted = kernel->chain || info == kernel->info || (kernel->info->aligned && i == kernel->info->aligned);
    if (!is_wanted) continue;
    tl_emu_ptx_options options = {.block = {(uint32_t)info->block_threads, 1, 1},
                                  .contracts = ptx->contracts,
                                  .fields = ptx->fields,
                                  .num_fields = ptx->num_fields};
    if (ptx->block[0]) memcpy(options.block, ptx->block, sizeof options.block);
    TL_TRY(tl_ptx_kernel_create(ptx->text, ptx->name, info, &options, kernel->device->emu.checks, &debug,
                                &kernel->emu_kernels[i]));
  }
  return TL_OK;
}

static void emu_unload(tl_run_kernel *kernel) {
  for (uint32_t i = 0; kernel->emu_kernels && i < kernel->manifest.num_kernels; i++) {
    if (kernel->emu_kernels[i]) tl_emu_kernel_destroy(kernel->emu_kernels[i]);
    if (kernel->emu_ptx && kernel->emu_ptx[i]) tl_emu_kernel_destroy(kernel->emu_ptx[i]);
    if (kernel->emu_elements && kernel->emu_elements[i]) tl_emu_kernel_destroy(kernel->emu_elements[i]);
  }
  free(kernel->emu_kernels);
  free(kernel->emu_ptx);
  free(kernel->emu_elements);
}

// What the harness put into outputs is nothing that a kernel may read.
static void mark_outputs(const tl_manifest_kernel *info, const tl_launch_plan *plan) {
  for (uint32_t i = 0; i < info->num_params; i++) {
    const tl_manifest_param *param = &info->params[i];
    if (param->kind == TL_MPARAM_TENSOR && param->access == TL_ACCESS_OUT && plan->workspace_bytes[i] < 0)
      tl_emu_mark_unwritten(*(void **)plan->params[i]);
  }
}

// The tensor maps of a launch; `memory` gets what stands in for tensors without elements.
static tl_status encode_maps(const tl_manifest_kernel *info, tl_launch_plan *plan, emu_memory *memory) {
  for (uint32_t i = 0; i < info->num_params; i++) {
    tl_launch_map *map = plan->maps[i];
    if (!map) continue;
    if (map->is_empty) {
      map->params.address = tl_emu_alloc(TL_TENSORMAP_STRIDE_UNIT, 256);
      memset(map->params.address, 0, TL_TENSORMAP_STRIDE_UNIT);
      tl_vec_push(memory, map->params.address);
    }
    tl_emu_tensormap encoded;
    TL_TRY(tl_launch_plan_validate_map(info, plan, i));
    TL_TRY(tl_emu_tensormap_encode(&map->params, &encoded));
    memcpy(plan->params[i], encoded.bytes, sizeof encoded.bytes);
  }
  return TL_OK;
}

static tl_emu_options options_of(const tl_run_kernel *kernel, const tl_manifest_kernel *info) {
  tl_emu_options options = kernel->device->emu;
  // The blocks of a persistent kernel may wait for each other, as on a GPU where all of them fit.
  if (info->persistent && options.resident == 0) options.resident = EMU_RESIDENT_BLOCKS;
  return options;
}

// What a launch may write, as it is now: a second launch begins with the same.
typedef struct saved_tensor {
  uint32_t param;
  void *original, *copy;
} saved_tensor;
typedef struct saved_tensors {
  TL_VEC(saved_tensor) items;
} saved_tensors;

static void save_tensors(const tl_manifest_kernel *info, const tl_launch_plan *plan, saved_tensors *saved) {
  for (uint32_t i = 0; i < info->num_params; i++) {
    const tl_manifest_param *param = &info->params[i];
    bool is_memory = param->kind == TL_MPARAM_TENSOR || plan->workspace_bytes[i] >= 0;
    if (!is_memory || (param->kind == TL_MPARAM_TENSOR && param->access == TL_ACCESS_IN)) continue;
    saved_tensor one = {.param = i, .original = *(void **)plan->params[i]};
    size_t bytes = one.original ? tl_emu_size(one.original) : 0;
    if (!bytes) continue;
    one.copy = tl_emu_alloc(bytes, 256);
    memcpy(one.copy, one.original, bytes);
    tl_vec_push(&saved->items, one);
  }
}

// Frees the copies.
static void forget_tensors(saved_tensors *saved) {
  for (size_t i = 0; i < saved->items.len; i++) tl_emu_free(saved->items.items[i].copy);
  tl_vec_fini(&saved->items);
}

// Parameters and tensor maps that hold the address `from` hold `to`.
static tl_status exchange_tensor(const tl_manifest_kernel *info, tl_launch_plan *plan, uint32_t param, const void *from,
                                 void *to) {
  *(void **)plan->params[param] = to;
  for (uint32_t i = 0; i < info->num_params; i++) {
    tl_launch_map *map = plan->maps[i];
    if (!map || map->params.address != from) continue;
    tl_emu_tensormap encoded;
    map->params.address = to;
    TL_TRY(tl_emu_tensormap_encode(&map->params, &encoded));
    memcpy(plan->params[i], encoded.bytes, sizeof encoded.bytes);
  }
  return TL_OK;
}

// Launches another form of the kernel on the saved copies.
static tl_status run_on_copies(tl_emu_kernel *other, const tl_manifest_kernel *info, tl_launch_plan *plan,
                               const tl_emu_options *options, const saved_tensors *saved) {
  tl_status status = TL_OK;
  for (size_t i = 0; !status && i < saved->items.len; i++) {
    const saved_tensor *one = &saved->items.items[i];
    status = exchange_tensor(info, plan, one->param, one->original, one->copy);
  }
  tl_emu_stats stats = {0};
  if (!status) status = tl_emu_launch(other, plan->grid, plan->params, options, &stats);
  for (size_t i = 0; i < saved->items.len; i++) {
    const saved_tensor *one = &saved->items.items[i];
    status = tl_status_join(status, exchange_tensor(info, plan, one->param, one->copy, one->original));
  }
  return status;
}

// Elements of one parallel that meet.
static tl_status run_marked(tl_emu_kernel *marked, const tl_manifest_kernel *info, tl_launch_plan *plan,
                            tl_emu_options options, const saved_tensors *saved) {
  options.checks = TL_EMU_SANITIZE_ELEMENTS;
  return run_on_copies(marked, info, plan, &options, saved);
}

// Whether element `index` is a NaN in both: which one is nothing that a program may count on.
static bool are_nan(tl_dtype dtype, const void *a, const void *b, uint64_t index) {
  return tl_dtype_is_float(dtype) && isnan(tl_dtype_load_float(dtype, a, index)) &&
         isnan(tl_dtype_load_float(dtype, b, index));
}

// The PTX of the kernel on the copies, and whether it wrote the same.
static tl_status compare_ptx(tl_emu_kernel *ptx, const tl_manifest_kernel *info, tl_launch_plan *plan,
                             const tl_emu_options *options, const saved_tensors *saved) {
  for (size_t i = 0; i < saved->items.len; i++) {
    const saved_tensor *one = &saved->items.items[i];
    if ((options->checks & TL_EMU_SANITIZE_INIT) && info->params[one->param].access == TL_ACCESS_OUT)
      tl_emu_mark_unwritten(one->copy);
  }
  TL_TRY(tl_status_annotate(run_on_copies(ptx, info, plan, options, saved), "the PTX"));
  for (size_t i = 0; i < saved->items.len; i++) {
    const saved_tensor *one = &saved->items.items[i];
    const tl_manifest_param *param = &info->params[one->param];
    unsigned bytes = tl_dtype_bits(param->dtype) < 8 ? 1 : tl_dtype_bits(param->dtype) / 8;
    for (uint64_t e = 0; e < tl_emu_size(one->copy) / bytes; e++) {
      uint64_t at = e * bytes;
      const uint8_t *a = (const uint8_t *)one->original + at, *b = (const uint8_t *)one->copy + at;
      if (!memcmp(a, b, bytes) || are_nan(param->dtype, one->original, one->copy, e)) continue;
      return tl_status_make(
          TL_STATUS_CHECK_FAILED,
          "the PTX gives other bits than the module before it: '%s', byte %llu (float atomics add in the "
          "order in which blocks run: --threads=1 runs them in one)",
          param->name, (unsigned long long)at);
    }
  }
  return TL_OK;
}

static tl_status run_plan(tl_run_kernel *kernel, uint32_t index, tl_launch_plan *plan) {
  const tl_manifest_kernel *info = &kernel->manifest.kernels[index];
  const tl_emu_options options = options_of(kernel, info);
  emu_memory workspaces = {0};
  for (uint32_t i = 0; i < info->num_params; i++) {
    if (plan->workspace_bytes[i] < 0) continue;
    size_t bytes = (size_t)plan->workspace_bytes[i];
    void *memory = tl_emu_alloc(bytes, 256);
    memset(memory, 0, bytes);
    tl_vec_push(&workspaces, memory);
    *(void **)plan->params[i] = memory;
  }
  tl_emu_stats stats = {0};
  tl_status status = encode_maps(info, plan, &workspaces);
  tl_emu_kernel *marked = plan->is_empty ? NULL : kernel->emu_elements[index];
  tl_emu_kernel *ptx = plan->is_empty ? NULL : kernel->emu_ptx[index];
  saved_tensors saved = {0}, again = {0};
  if (marked) save_tensors(info, plan, &saved);
  if (ptx) save_tensors(info, plan, &again);
  if (!status && !plan->is_empty)
    status = tl_emu_launch(kernel->emu_kernels[index], plan->grid, plan->params, &options, &stats);
  if (!status && ptx) status = compare_ptx(ptx, info, plan, &options, &again);
  if (!status && marked) status = run_marked(marked, info, plan, options, &saved);
  forget_tensors(&saved);
  forget_tensors(&again);
  for (size_t i = 0; i < workspaces.len; i++) tl_emu_free(workspaces.items[i]);
  tl_vec_fini(&workspaces);
  return status;
}

static tl_status run_step(tl_run_kernel *kernel, tl_chain_launch_plan *plan, uint32_t step, void *const *buffers,
                          const tl_launch_facts *facts) {
  uint32_t index = plan->chain->steps[step].kernel;
  const tl_launch_facts *aligned_facts = kernel->device->is_plain ? NULL : facts;
  const tl_argument *arguments;
  size_t num_arguments;
  tl_launch_plan one;
  TL_TRY(tl_chain_launch_plan_step(plan, step, buffers, &arguments, &num_arguments));
  TL_TRY(
      tl_launch_plan_version(&kernel->manifest, index, arguments, num_arguments, facts, aligned_facts, &one, &index));
  kernel->took_version |= kernel->manifest.kernels[index].is_version;
  tl_status status = run_plan(kernel, index, &one);
  tl_launch_plan_fini(&one);
  return status;
}

// Buffers end at unreadable pages, as arguments do, and hold nothing that a step may read before one has written it.
static tl_status launch_chain(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments,
                              const tl_launch_facts *facts) {
  enum { POISON = 0xff };
  tl_chain_launch_plan plan;
  TL_TRY(tl_chain_launch_plan_create(kernel->chain, arguments, num_arguments, facts, &plan));
  bool checks_init = kernel->device->emu.checks & TL_EMU_SANITIZE_INIT;
  if (checks_init) mark_outputs(kernel->info, &plan.signature);
  void **buffers = tl_xcalloc(kernel->chain->num_buffers + 1, sizeof *buffers);
  for (uint32_t i = 0; i < kernel->chain->num_buffers; i++) {
    size_t bytes = (size_t)plan.buffer_bytes[i];
    buffers[i] = tl_emu_alloc(bytes, TL_CHAIN_ALIGN);
    memset(buffers[i], POISON, bytes);
    if (checks_init) tl_emu_mark_unwritten(buffers[i]);
  }
  tl_status status = TL_OK;
  for (uint32_t i = 0; !status && i < kernel->chain->num_steps; i++) {
    status = tl_status_annotate(run_step(kernel, &plan, i, buffers, facts), "step %u, '%s'", i + 1,
                                kernel->manifest.kernels[kernel->chain->steps[i].kernel].name);
  }
  for (uint32_t i = 0; i < kernel->chain->num_buffers; i++) tl_emu_free(buffers[i]);
  free(buffers);
  tl_chain_launch_plan_fini(&plan);
  return status;
}

static tl_status emu_launch(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments) {
  int resident = kernel->device->emu.resident;
  const tl_launch_facts facts = {.num_sms = EMU_NUM_SMS,
                                 .resident_blocks = resident > 0 ? resident : EMU_RESIDENT_BLOCKS};
  kernel->took_version = false;
  if (kernel->chain) return launch_chain(kernel, arguments, num_arguments, &facts);
  tl_launch_plan plan;
  uint32_t index = (uint32_t)(kernel->info - kernel->manifest.kernels);
  TL_TRY(tl_launch_plan_version(&kernel->manifest, index, arguments, num_arguments, &facts,
                                kernel->device->is_plain ? NULL : &facts, &plan, &index));
  kernel->took_version = kernel->manifest.kernels[index].is_version && !kernel->info->is_version;
  if (kernel->device->emu.checks & TL_EMU_SANITIZE_INIT) mark_outputs(&kernel->manifest.kernels[index], &plan);
  tl_status status = run_plan(kernel, index, &plan);
  tl_launch_plan_fini(&plan);
  return status;
}

const tl_run_device_ops tl_run_emu_ops = {.close = emu_close,
                                          .alloc = emu_alloc,
                                          .free = emu_free,
                                          .write = emu_copy,
                                          .read = emu_copy,
                                          .load = emu_load,
                                          .load_ptx = emu_load_ptx,
                                          .unload = emu_unload,
                                          .launch = emu_launch};
