// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launching on a GPU: the checked plan, workspaces, cuLaunchKernel.
#include <stdatomic.h>

#include "runtime/program.h"
#include "runtime/versions.h"
#include "support/status.h"

typedef struct pointer_facts {
  unsigned int type, is_managed;
  int ordinal;
} pointer_facts;

// An address that CUDA does not know has the type 0. One call where the driver has it: a call costs as much as all
// other checks of an argument.
static tl_status ask_pointer(const tl_cuda_driver *driver, tl_cu_pointer address, pointer_facts *out) {
  *out = (pointer_facts){.ordinal = -1};
  tl_cu_pointer_attribute attributes[] = {TL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, TL_CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                          TL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *values[] = {&out->type, &out->is_managed, &out->ordinal};
  if (driver->pointer_get_attributes)
    return TL_CUDA_CALL(driver, pointer_get_attributes, 3, attributes, values, address);
  for (int i = 0; i < 3; i++) {
    tl_cu_result result = driver->pointer_get_attribute(values[i], attributes[i], address);
    if (i == 0 && result == TL_CU_ERROR_INVALID_VALUE) return TL_OK;
    TL_TRY(tl_cuda_status_of(driver, result, "cuPointerGetAttribute"));
  }
  return TL_OK;
}

static tl_status validate_facts(const tl_device *device, const char *name, const void *pointer,
                                const pointer_facts *facts) {
  if (facts->type == 0)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "argument '%s': expected device memory, given an address (0x%llx) that CUDA does not know",
                          name, (unsigned long long)(uintptr_t)pointer);
  if (facts->is_managed) return TL_OK;
  if (facts->type == TL_CU_MEMORYTYPE_HOST)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "argument '%s': expected device memory, given host memory", name);
  if (facts->ordinal != device->ordinal)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "argument '%s': expected memory of GPU %d, given memory of GPU %d", name, device->ordinal,
                          facts->ordinal);
  return TL_OK;
}

// What was found to be memory of the device before is not asked for again: host memory does not get such addresses.
tl_status tl_launch_validate_pointer(void *user, const char *name, const void *pointer) {
  tl_device *device = user;
  uintptr_t address = (uintptr_t)pointer;
  _Atomic(uintptr_t) *seen = tl_device_seen(device, pointer);
  if (atomic_load_explicit(seen, memory_order_relaxed) == address) return TL_OK;
  pointer_facts facts;
  TL_TRY(ask_pointer(device->driver, (tl_cu_pointer)address, &facts));
  TL_TRY(validate_facts(device, name, pointer, &facts));
  atomic_store_explicit(seen, address, memory_order_relaxed);
  return TL_OK;
}

static tl_launch_facts facts_of(const tl_kernel *kernel) {
  tl_device *device = kernel->program->device;
  return (tl_launch_facts){.num_sms = device->num_sms,
                           .resident_blocks = kernel->resident_blocks,
                           .validate_pointer = tl_launch_validate_pointer,
                           .user = device};
}

// The kernel's plan becomes one of these arguments. Its lock is held. `is_same`: it is of them already.
static tl_status plan_next(tl_kernel *kernel, bool is_same, const tl_argument *arguments, size_t num_arguments) {
  const tl_launch_facts facts = facts_of(kernel);
  if (is_same) return tl_launch_plan_renew(kernel->manifest, arguments, num_arguments, &facts, &kernel->plan);
  tl_launch_plan_fini(&kernel->plan);
  return tl_launch_plan_create(kernel->manifest, arguments, num_arguments, &facts, &kernel->plan);
}

// Plans the kernel's aligned version where the arguments allow it, and leaves it locked. `*out_failed`: they do, and it
// cannot be planned.
static bool plan_aligned(tl_kernel *aligned, const tl_argument *arguments, size_t num_arguments, bool *out_failed) {
  pthread_mutex_lock(&aligned->lock);
  const tl_manifest_kernel *manifest = aligned->manifest;
  bool is_same = tl_launch_plan_is_of(manifest, &aligned->plan, arguments, num_arguments);
  bool fits = is_same ? tl_launch_plan_has_alignments(manifest, &aligned->plan, arguments, num_arguments)
                      : tl_launch_has_divisors(manifest, arguments, num_arguments) &&
                            tl_launch_has_alignments(manifest, arguments, num_arguments);
  if (fits) {
    tl_status status = plan_next(aligned, is_same, arguments, num_arguments);
    if (!status) return true;
    tl_status_free(status);  // a tensor map that cannot be made, or what the kernel itself refuses
    *out_failed = true;
  }
  pthread_mutex_unlock(&aligned->lock);
  return false;
}

// Plans the version that is to be launched, `*out`, which is locked.
static tl_status plan_version(tl_kernel *kernel, const tl_argument *arguments, size_t num_arguments, tl_kernel **out) {
  pthread_mutex_lock(&kernel->lock);
  tl_kernel *aligned = kernel->is_plain ? NULL : kernel->aligned;
  bool is_same = tl_launch_plan_is_of(kernel->manifest, &kernel->plan, arguments, num_arguments), failed = false;
  bool is_tried = aligned && !(is_same && kernel->plan_forbids_version);
  kernel->took_version = is_tried && plan_aligned(aligned, arguments, num_arguments, &failed);
  *out = kernel->took_version ? aligned : kernel;
  if (kernel->took_version) {
    pthread_mutex_unlock(&kernel->lock);
    return TL_OK;
  }
  if (is_tried)
    kernel->plan_forbids_version = failed || !tl_launch_has_divisors(aligned->manifest, arguments, num_arguments);
  return plan_next(kernel, is_same, arguments, num_arguments);
}

// Whether launches on `stream` are recorded, and into which recording; 0: the driver does not say.
static tl_status ask_recording(const tl_device *device, void *stream, bool *out, uint64_t *out_recording) {
  const tl_cuda_driver *driver = device->driver;
  unsigned int status = 0;
  *out_recording = 0;
  if (stream && driver->stream_get_capture_info)
    TL_TRY(TL_CUDA_CALL(driver, stream_get_capture_info, stream, &status, out_recording, NULL, NULL, NULL, NULL));
  else if (stream && driver->stream_is_capturing)
    TL_TRY(TL_CUDA_CALL(driver, stream_is_capturing, stream, &status));
  *out = status != 0;
  return TL_OK;
}

// Memory of a recording for good: its launches on one stream run one after the other. What allocates is refused while a
// thread records, unless it says that it knows; cuStreamGetId is refused in any case.
static tl_status take_recorded(tl_device *device, tl_workspaces *workspaces, const tl_workspace *wanted,
                               void **out_memory, bool *out_is_new) {
  for (size_t i = 0; wanted->recording && i < workspaces->len; i++) {
    const tl_workspace *had = &workspaces->items[i];
    bool is_it = had->is_recorded && had->recording == wanted->recording && had->stream == wanted->stream &&
                 had->param == wanted->param && had->bytes >= wanted->bytes;
    if (!is_it) continue;
    *out_memory = had->memory;
    *out_is_new = false;
    return TL_OK;
  }
  tl_cu_capture_mode mode = TL_CU_STREAM_CAPTURE_MODE_RELAXED;
  bool has_modes = device->driver->exchange_capture_mode != NULL;
  if (has_modes) TL_TRY(TL_CUDA_CALL(device->driver, exchange_capture_mode, &mode));
  tl_workspace made = *wanted;
  tl_status status = tl_device_alloc(device, (size_t)made.bytes, &made.memory);
  if (has_modes) status = tl_status_join(status, TL_CUDA_CALL(device->driver, exchange_capture_mode, &mode));
  if (!status) tl_vec_push(workspaces, made);
  *out_memory = made.memory;
  *out_is_new = true;
  return status;
}

tl_status tl_workspace_take(tl_device *device, tl_workspaces *workspaces, uint32_t param, int64_t bytes, void *stream,
                            void **out_memory, bool *out_is_new) {
  tl_workspace *found = NULL, wanted = {.param = param, .stream = (uintptr_t)stream, .bytes = bytes};
  TL_TRY(ask_recording(device, stream, &wanted.is_recorded, &wanted.recording));
  if (wanted.is_recorded) return take_recorded(device, workspaces, &wanted, out_memory, out_is_new);
  if (device->driver->stream_get_id) TL_TRY(TL_CUDA_CALL(device->driver, stream_get_id, stream, &wanted.stream));
  for (size_t i = 0; i < workspaces->len; i++) {
    tl_workspace *candidate = &workspaces->items[i];
    if (candidate->param == param && candidate->stream == wanted.stream && !candidate->is_recorded) found = candidate;
  }
  if (!found) {
    wanted.bytes = 0;
    tl_vec_push(workspaces, wanted);
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

static tl_status plan_and_launch(tl_kernel *kernel, const tl_argument *arguments, size_t num_arguments, bool launches,
                                 void *stream) {
  TL_TRY(tl_status_not_null(kernel, "kernel"));
  TL_TRY(tl_status_not_null(num_arguments ? (const void *)arguments : kernel, "arguments"));
  tl_device *device = kernel->program->device;
  TL_TRY(tl_device_enter(device));
  tl_kernel *version;
  tl_status status = plan_version(kernel, arguments, num_arguments, &version);
  if (!status && launches && !version->plan.is_empty) status = launch_plan(version, &version->plan, stream);
  pthread_mutex_unlock(&version->lock);
  return tl_device_leave(device, status);
}

tl_status tl_kernel_check(tl_kernel *kernel, const tl_argument *arguments, size_t num_arguments) {
  return plan_and_launch(kernel, arguments, num_arguments, false, NULL);
}

tl_status tl_kernel_launch(tl_kernel *kernel, const tl_argument *arguments, size_t num_arguments, void *stream) {
  tl_status status = plan_and_launch(kernel, arguments, num_arguments, true, stream);
  return status && kernel ? tl_status_annotate(status, "launching '%s'", kernel->manifest->name) : status;
}
