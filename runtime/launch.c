// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launching on a GPU: the checked plan, workspaces, cuLaunchKernel.
#include "runtime/program.h"
#include "support/status.h"

tl_status tl_launch_validate_pointer(void *user, const char *name, const void *pointer) {
  const tl_device *device = user;
  const tl_cuda_driver *driver = device->driver;
  tl_cu_pointer address = (tl_cu_pointer)(uintptr_t)pointer;
  unsigned int type = 0, is_managed = 0;
  int ordinal = -1;
  tl_cu_result result = driver->pointer_get_attribute(&type, TL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (result == TL_CU_ERROR_INVALID_VALUE) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "argument '%s': expected device memory, given an address (0x%llx) that CUDA does not know",
                          name, address);
  }
  TL_TRY(tl_cuda_status_of(driver, result, "cuPointerGetAttribute"));
  TL_TRY(TL_CUDA_CALL(driver, pointer_get_attribute, &is_managed, TL_CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
  if (is_managed) return TL_OK;
  if (type == TL_CU_MEMORYTYPE_HOST) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "argument '%s': expected device memory, given host memory", name);
  }
  TL_TRY(TL_CUDA_CALL(driver, pointer_get_attribute, &ordinal, TL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
  if (ordinal != device->ordinal) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "argument '%s': expected memory of GPU %d, given memory of GPU %d", name, device->ordinal,
                          ordinal);
  }
  return TL_OK;
}

static tl_status make_plan(tl_kernel *kernel, const tl_argument *arguments, size_t num_arguments,
                           tl_launch_plan *plan) {
  tl_device *device = kernel->program->device;
  tl_launch_facts facts = {.num_sms = device->num_sms,
                           .resident_blocks = kernel->resident_blocks,
                           .validate_pointer = tl_launch_validate_pointer,
                           .user = device};
  return tl_launch_plan_create(kernel->manifest, arguments, num_arguments, &facts, plan);
}

tl_status tl_workspace_take(tl_device *device, tl_workspaces *workspaces, uint32_t param, int64_t bytes, void *stream,
                            void **out_memory, bool *out_is_new) {
  tl_workspace *found = NULL;
  for (size_t i = 0; i < workspaces->len; i++) {
    tl_workspace *candidate = &workspaces->items[i];
    if (candidate->param == param && candidate->stream == stream) found = candidate;
  }
  if (!found) {
    tl_vec_push(workspaces, (tl_workspace){.param = param, .stream = stream});
    found = &tl_vec_last(workspaces);
  }
  *out_is_new = found->bytes < bytes;
  if (*out_is_new) {
    TL_TRY(tl_stream_synchronize(device, stream));
    TL_TRY(tl_device_free(device, found->memory));
    found->memory = NULL;
    found->bytes = 0;
    TL_TRY(tl_device_alloc(device, (size_t)bytes, &found->memory));
    found->bytes = bytes;
  }
  *out_memory = found->memory;
  return TL_OK;
}

// Zeroed when it is new, or for each launch.
static tl_status take_workspace(tl_kernel *kernel, uint32_t param, int64_t bytes, void *stream, void **out_memory) {
  tl_device *device = kernel->program->device;
  bool is_new;
  TL_TRY(tl_workspace_take(device, &kernel->workspaces, param, bytes, stream, out_memory, &is_new));
  if (!is_new && !kernel->manifest->params[param].zero_each_launch) return TL_OK;
  return tl_device_fill(device, *out_memory, 0, (size_t)bytes, stream);
}

static tl_status launch_plan(tl_kernel *kernel, tl_launch_plan *plan, void *stream) {
  const tl_manifest_kernel *manifest = kernel->manifest;
  const tl_device *device = kernel->program->device;
  for (uint32_t i = 0; i < manifest->num_params; i++) {
    if (plan->workspace_bytes[i] < 0) continue;
    TL_TRY(tl_status_annotate(take_workspace(kernel, i, plan->workspace_bytes[i], stream, (void **)plan->params[i]),
                              "workspace '%s'", manifest->params[i].name));
  }
  TL_TRY(tl_launch_make_maps(kernel, plan, stream));
  return TL_CUDA_CALL(device->driver, launch_kernel, kernel->function, plan->grid[0], plan->grid[1], plan->grid[2],
                      (unsigned)manifest->block_threads, 1, 1, (unsigned)manifest->dynamic_shared_bytes, stream,
                      plan->params, NULL);
}

tl_status tl_launch_run(tl_kernel *kernel, tl_launch_plan *plan, void *stream) {
  pthread_mutex_lock(&kernel->lock);
  tl_status status = launch_plan(kernel, plan, stream);
  pthread_mutex_unlock(&kernel->lock);
  return status;
}

tl_status tl_kernel_check(tl_kernel *kernel, const tl_argument *arguments, size_t num_arguments) {
  TL_TRY(tl_status_not_null(kernel, "kernel"));
  TL_TRY(tl_status_not_null(num_arguments ? (const void *)arguments : kernel, "arguments"));
  tl_launch_plan plan;
  TL_TRY(tl_device_enter(kernel->program->device));
  tl_status status = make_plan(kernel, arguments, num_arguments, &plan);
  if (!status) tl_launch_plan_fini(&plan);
  return tl_device_leave(kernel->program->device, status);
}

tl_status tl_kernel_launch(tl_kernel *kernel, const tl_argument *arguments, size_t num_arguments, void *stream) {
  TL_TRY(tl_status_not_null(kernel, "kernel"));
  TL_TRY(tl_status_not_null(num_arguments ? (const void *)arguments : kernel, "arguments"));
  tl_launch_plan plan;
  TL_TRY(tl_device_enter(kernel->program->device));
  tl_status status = make_plan(kernel, arguments, num_arguments, &plan);
  if (!status) {
    if (!plan.is_empty) status = tl_launch_run(kernel, &plan, stream);
    tl_launch_plan_fini(&plan);
  }
  status = tl_device_leave(kernel->program->device, status);
  return tl_status_annotate(status, "launching '%s'", kernel->manifest->name);
}
