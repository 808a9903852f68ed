// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/device_internal.h"
#include "harness/device/emulated_driver.h"
#include "runtime/program.h"

enum { GUARD_BYTES = 256, GUARD_VALUE = 0xa5 };

static void describe(tl_run_device *device) {
  if (device->is_gpu) {
    snprintf(device->description, sizeof device->description, "%s (sm_%d, %d SMs)", tl_device_name(device->gpu),
             tl_device_compute_capability(device->gpu), tl_device_num_sms(device->gpu));
  } else {
    snprintf(device->description, sizeof device->description, "the emulator (%s landing)",
             device->emu.landing == TL_LANDING_LATE ? "late" : "early");
  }
}

tl_status tl_run_device_open(tl_run_kind kind, const tl_emu_options *emu, tl_run_device **out_device) {
  *out_device = NULL;
  tl_device *gpu = NULL;
  if (kind != TL_RUN_EMU) {
    tl_status status = tl_device_open(0, &gpu);
    // Without a GPU `auto` means the emulator; a GPU whose driver fails is an error.
    bool falls_back = kind == TL_RUN_AUTO && tl_status_code_of(status) == TL_STATUS_NO_DEVICE;
    if (status && !falls_back) return status;
    tl_status_free(status);
  }
  tl_run_device *device = tl_xcalloc(1, sizeof *device);
  device->gpu = gpu;
  device->is_gpu = gpu != NULL;
  device->ops = gpu ? &tl_run_cuda_ops : &tl_run_emu_ops;
  device->emu = *emu;
  *out_device = device;
  return TL_OK;
}

tl_status tl_run_device_open_emulated(const tl_run_device *device, const tl_target *target,
                                      tl_run_device **out_device) {
  const tl_emulated_gpu gpu = {.emu = device->emu, .compute_capability = target->sm};
  tl_device *opened;
  int ordinal;
  *out_device = NULL;
  TL_TRY(tl_emulated_gpu_add(&gpu, &ordinal));
  TL_TRY(tl_device_open_on(tl_emulated_driver(), ordinal, &opened));
  tl_run_device *made = tl_xcalloc(1, sizeof *made);
  *made = (tl_run_device){
      .ops = &tl_run_cuda_ops, .is_gpu = true, .gpu = opened, .emu = device->emu, .is_plain = device->is_plain};
  *out_device = made;
  return TL_OK;
}

tl_status tl_run_device_close(tl_run_device *device) {
  if (!device) return TL_OK;
  tl_status status = device->ops->close(device);
  free(device);
  return status;
}

bool tl_run_device_is_gpu(const tl_run_device *device) {
  return device->is_gpu;
}

bool tl_run_device_is_lost(const tl_run_device *device) {
  tl_status status = device->gpu ? tl_stream_synchronize(device->gpu, NULL) : TL_OK;
  bool is_lost = status != TL_OK;
  tl_status_free(status);
  return is_lost;
}

void tl_run_device_set_landing(tl_run_device *device, tl_landing landing) {
  device->emu.landing = landing;
}

void tl_run_device_set_ended(tl_run_device *device, void (*ended)(void *user, const tl_emu_launch_state *launch),
                             void *user) {
  device->emu.ended = ended;
  device->emu.user = user;
}

void tl_run_device_set_via(tl_run_device *device, tl_run_via via) {
  device->via = via;
}

void tl_run_device_set_plain(tl_run_device *device, bool is_plain) {
  device->is_plain = is_plain;
}

const char *tl_run_device_describe(tl_run_device *device) {
  describe(device);
  return device->description;
}

const tl_target *tl_run_device_target(const tl_run_device *device) {
  return device->is_gpu ? tl_target_for_device(tl_device_compute_capability(device->gpu)) : NULL;
}

// ---- buffers with canaries

tl_status tl_run_device_alloc(tl_run_device *device, uint64_t bytes, uint64_t align, tl_run_buffer *out) {
  *out = (tl_run_buffer){.bytes = bytes};
  if (device->is_gpu) out->guard_bytes = align > GUARD_BYTES ? align : GUARD_BYTES;
  TL_TRY(device->ops->alloc(device, bytes + 2 * out->guard_bytes, align, &out->base));
  out->pointer = (char *)out->base + out->guard_bytes;
  if (out->guard_bytes == 0) return TL_OK;
  void *guard = tl_xmalloc(out->guard_bytes);
  memset(guard, GUARD_VALUE, out->guard_bytes);
  tl_status status = device->ops->write(device, out->base, guard, out->guard_bytes);
  if (!status) status = device->ops->write(device, (char *)out->pointer + bytes, guard, out->guard_bytes);
  free(guard);
  return status;
}

// Names the changed byte that is nearest to the buffer.
static tl_status compare_guard(tl_run_device *device, const tl_run_buffer *buffer, bool is_behind, const char *name) {
  uint8_t *guard = tl_xmalloc(buffer->guard_bytes);
  const char *from = is_behind ? (char *)buffer->pointer + buffer->bytes : buffer->base;
  tl_status status = device->ops->read(device, guard, from, buffer->guard_bytes);
  for (uint64_t i = 0; !status && i < buffer->guard_bytes; i++) {
    uint64_t at = is_behind ? i : buffer->guard_bytes - 1 - i;
    if (guard[at] == GUARD_VALUE) continue;
    status = tl_status_make(
        TL_STATUS_CHECK_FAILED, "the kernel wrote %s '%s': byte %lld", is_behind ? "behind" : "before", name,
        is_behind ? (long long)(buffer->bytes + at) : (long long)at - (long long)buffer->guard_bytes);
  }
  free(guard);
  return status;
}

tl_status tl_run_device_release(tl_run_device *device, tl_run_buffer *buffer, const char *name) {
  if (!buffer->base) return TL_OK;
  bool is_checked = name && buffer->guard_bytes > 0;
  tl_status status = is_checked ? compare_guard(device, buffer, false, name) : TL_OK;
  if (!status && is_checked) status = compare_guard(device, buffer, true, name);
  status = tl_status_join(status, device->ops->free(device, buffer->base));
  *buffer = (tl_run_buffer){0};
  return status;
}

tl_status tl_run_device_write(tl_run_device *device, const tl_run_buffer *buffer, const void *from) {
  return device->ops->write(device, buffer->pointer, from, buffer->bytes);
}

tl_status tl_run_device_read(tl_run_device *device, const tl_run_buffer *buffer, void *to) {
  return device->ops->read(device, to, buffer->pointer, buffer->bytes);
}

// ---- kernels

static tl_run_kernel *new_kernel(tl_run_device *device) {
  tl_run_kernel *kernel = tl_xcalloc(1, sizeof *kernel);
  kernel->device = device;
  tl_arena_init(&kernel->arena);
  return kernel;
}

static tl_status finish_load(tl_run_kernel *kernel, tl_status status, tl_run_kernel **out_kernel) {
  *out_kernel = kernel;
  if (!status) return TL_OK;
  tl_run_kernel_destroy(kernel);
  *out_kernel = NULL;
  return status;
}

static void set_chain(tl_run_kernel *kernel, const tl_manifest_chain *chain) {
  kernel->chain = chain;
  kernel->info = &chain->signature;
}

// The kernel outlives its backend: it keeps the manifest as text read back.
static tl_status copy_manifest(tl_run_kernel *kernel, tl_backend *backend) {
  const tl_manifest *manifest;
  TL_TRY(tl_backend_manifest(backend, &manifest));
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_manifest_write(manifest, NULL, &text);
  tl_status status = tl_manifest_read(&kernel->arena, tl_strbuf_view(&text), &kernel->manifest);
  tl_strbuf_fini(&text);
  if (!status && kernel->manifest.num_kernels == 0)
    status = tl_status_make(TL_STATUS_INTERNAL, "the manifest has no kernel");
  if (status) return status;
  kernel->info = &kernel->manifest.kernels[0];
  if (kernel->manifest.num_chains > 0) set_chain(kernel, &kernel->manifest.chains[0]);
  return TL_OK;
}

tl_status tl_run_kernel_load(tl_run_device *device, const tl_compiled *compiled, tl_run_kernel **out_kernel) {
  tl_run_kernel *kernel = new_kernel(device);
  tl_status status = copy_manifest(kernel, compiled->backend);
  if (!status) status = device->ops->load(kernel, compiled);
  return finish_load(kernel, status, out_kernel);
}

// The kernel or chain called `name`; without one the only chain, else the only kernel.
static void find_info(tl_run_kernel *kernel, const char *name) {
  const tl_manifest *manifest = &kernel->manifest;
  for (uint32_t i = 0; i < manifest->num_chains; i++) {
    bool is_only = !name && manifest->num_chains == 1;
    if (is_only || (name && strcmp(manifest->chains[i].signature.name, name) == 0))
      set_chain(kernel, &manifest->chains[i]);
  }
  for (uint32_t i = 0; !kernel->info && i < manifest->num_kernels; i++) {
    bool is_only = !name && tl_manifest_num_kernels(manifest) == 1;
    if (is_only || (name && strcmp(manifest->kernels[i].name, name) == 0)) kernel->info = &manifest->kernels[i];
  }
}

tl_status tl_run_kernel_load_ptx(tl_run_device *device, const tl_run_ptx *ptx, tl_run_kernel **out_kernel) {
  tl_run_kernel *kernel = new_kernel(device);
  tl_status status = tl_manifest_read(&kernel->arena, ptx->manifest.len ? ptx->manifest : ptx->text, &kernel->manifest);
  if (!status) {
    find_info(kernel, ptx->kernel);
    status = device->ops->load_ptx(kernel, ptx, kernel->info ? kernel->info->name : ptx->kernel);
  }
  return finish_load(kernel, status, out_kernel);
}

void tl_run_kernel_resources(const tl_run_kernel *kernel, int *out_registers, int *out_local_bytes) {
  *out_registers = *out_local_bytes = 0;
  size_t count = kernel->program ? tl_program_num_kernels(kernel->program) : 0;
  for (size_t i = 0; i < count; i++) {
    const tl_kernel *one = tl_program_kernel_at(kernel->program, i);
    if (kernel->gpu_kernel && one != kernel->gpu_kernel) continue;
    if (tl_kernel_registers(one) > *out_registers) *out_registers = tl_kernel_registers(one);
    if (tl_kernel_local_bytes(one) > *out_local_bytes) *out_local_bytes = tl_kernel_local_bytes(one);
  }
}

bool tl_run_kernel_took_version(const tl_run_kernel *kernel) {
  size_t count = kernel->program ? tl_program_num_kernels(kernel->program) : 0;
  bool took = kernel->took_version;
  for (size_t i = 0; i < count; i++) took |= tl_kernel_took_version(tl_program_kernel_at(kernel->program, i));
  return took;
}

// The kernels of a program as the device wants them launched.
static void set_plain(const tl_run_kernel *kernel) {
  size_t count = kernel->program ? tl_program_num_kernels(kernel->program) : 0;
  for (size_t i = 0; i < count; i++)
    tl_kernel_set_plain(tl_program_kernel_at(kernel->program, i), kernel->device->is_plain);
}

tl_status tl_run_kernel_enqueue(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments,
                                void *stream) {
  set_plain(kernel);
  if (kernel->gpu_chain) return tl_chain_launch(kernel->gpu_chain, arguments, num_arguments, NULL, 0, stream);
  return tl_kernel_launch(kernel->gpu_kernel, arguments, num_arguments, stream);
}

void tl_run_kernel_destroy(tl_run_kernel *kernel) {
  if (!kernel) return;
  kernel->device->ops->unload(kernel);
  tl_arena_fini(&kernel->arena);
  free(kernel);
}

const tl_manifest_kernel *tl_run_kernel_manifest(const tl_run_kernel *kernel) {
  return kernel->info;
}

tl_status tl_run_kernel_launch(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments) {
  set_plain(kernel);
  return kernel->device->ops->launch(kernel, arguments, num_arguments);
}
