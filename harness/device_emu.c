// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The emulator behind the seam. Arguments go through the same checks as on a GPU.
#include <stdlib.h>
#include <string.h>

#include "harness/device_internal.h"
#include "runtime/arguments.h"
#include "support/vec.h"

// What grids and workspaces that depend on the device see.
enum { EMU_NUM_SMS = 4, EMU_RESIDENT_BLOCKS = 8 };

static void emu_close(tl_run_device *device) {
  (void)device;
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

static tl_status emu_load(tl_run_kernel *kernel, tl_backend *backend) {
  char *bitcode = NULL;
  size_t len = 0;
  TL_TRY(tl_backend_device_bitcode(backend, &bitcode, &len));
  tl_status status = tl_emu_kernel_create_checked(bitcode, len, kernel->info, kernel->device->emu.checks,
                                                  tl_backend_debug_info(backend), &kernel->emu_kernel);
  free(bitcode);
  return status;
}

static tl_status emu_load_ptx(tl_run_kernel *kernel, tl_str ptx, const char *name) {
  (void)kernel;
  (void)ptx;
  (void)name;
  return tl_status_make(TL_STATUS_NO_DEVICE, "PTX text runs only on a GPU; the emulator runs specs");
}

static void emu_unload(tl_run_kernel *kernel) {
  if (kernel->emu_kernel) tl_emu_kernel_destroy(kernel->emu_kernel);
}

// What the harness put into outputs is nothing that a kernel may read.
static void mark_outputs(const tl_manifest_kernel *info, const tl_launch_plan *plan) {
  for (uint32_t i = 0; i < info->num_params; i++) {
    const tl_manifest_param *param = &info->params[i];
    if (param->kind == TL_MPARAM_TENSOR && param->access == TL_ACCESS_OUT && plan->workspace_bytes[i] < 0)
      tl_emu_mark_unwritten(*(void **)plan->params[i]);
  }
}

static tl_status emu_launch(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments) {
  const tl_launch_facts facts = {.num_sms = EMU_NUM_SMS, .resident_blocks = EMU_RESIDENT_BLOCKS};
  tl_launch_plan plan;
  TL_TRY(tl_launch_plan_create(kernel->info, arguments, num_arguments, &facts, &plan));
  TL_VEC(void *) workspaces = {0};
  for (uint32_t i = 0; i < kernel->info->num_params; i++) {
    if (plan.workspace_bytes[i] < 0) continue;
    size_t bytes = (size_t)plan.workspace_bytes[i];
    void *memory = tl_emu_alloc(bytes, 256);
    memset(memory, 0, bytes);
    tl_vec_push(&workspaces, memory);
    *(void **)plan.params[i] = memory;
  }
  if (kernel->device->emu.checks & TL_EMU_CHECK_INIT) mark_outputs(kernel->info, &plan);
  tl_emu_stats stats = {0};
  tl_status status = TL_OK;
  if (!plan.is_empty) status = tl_emu_launch(kernel->emu_kernel, plan.grid, plan.params, &kernel->device->emu, &stats);
  for (size_t i = 0; i < workspaces.len; i++) tl_emu_free(workspaces.items[i]);
  tl_vec_fini(&workspaces);
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
