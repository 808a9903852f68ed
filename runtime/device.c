// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/arena.h"

tl_status tl_device_count(int *out_count) {
  TL_TRY(tl_status_not_null(out_count, "out_count"));
  const tl_cuda_driver *driver;
  *out_count = 0;
  TL_TRY(tl_cuda_driver_get(&driver));
  return TL_CUDA_CALL(driver, device_get_count, out_count);
}

static tl_status query(tl_device *device) {
  const tl_cuda_driver *driver = device->driver;
  int major = 0, minor = 0;
  TL_TRY(TL_CUDA_CALL(driver, device_get, &device->handle, device->ordinal));
  TL_TRY(TL_CUDA_CALL(driver, device_get_name, device->name, (int)sizeof device->name, device->handle));
  TL_TRY(TL_CUDA_CALL(driver, device_get_attribute, &major, TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                      device->handle));
  TL_TRY(TL_CUDA_CALL(driver, device_get_attribute, &minor, TL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                      device->handle));
  device->compute_capability = major * 10 + minor;
  TL_TRY(TL_CUDA_CALL(driver, device_get_attribute, &device->num_sms, TL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                      device->handle));
  TL_TRY(TL_CUDA_CALL(driver, device_get_attribute, &device->max_shared_bytes,
                      TL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device->handle));
  TL_TRY(TL_CUDA_CALL(driver, primary_ctx_retain, &device->context, device->handle));
  tl_cu_context current = NULL;
  if (driver->ctx_get_current && driver->ctx_get_current(&current) != TL_CU_SUCCESS) current = NULL;
  device->was_current = current == device->context;
  return TL_OK;
}

tl_status tl_device_open(int ordinal, tl_device **out_device) {
  TL_TRY(tl_status_not_null(out_device, "out_device"));
  *out_device = NULL;
  const tl_cuda_driver *driver;
  TL_TRY(tl_cuda_driver_get(&driver));
  return tl_device_open_on(driver, ordinal, out_device);
}

tl_status tl_device_open_on(const tl_cuda_driver *driver, int ordinal, tl_device **out_device) {
  int count = 0;
  *out_device = NULL;
  TL_TRY(TL_CUDA_CALL(driver, device_get_count, &count));
  if (count == 0) return tl_status_make(TL_STATUS_NO_DEVICE, "the driver finds no GPU");
  if (ordinal < 0 || ordinal >= count) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "there is no GPU %d: %d found, numbered from 0", ordinal, count);
  }
  tl_device *device = calloc(1, sizeof *device);
  if (!device) return tl_status_out_of_memory();
  device->ordinal = ordinal;
  device->driver = driver;
  tl_status status = query(device);
  if (status) {
    free(device);
    return status;
  }
  *out_device = device;
  return TL_OK;
}

// What `enter` left with the thread that closes the device.
static tl_status forget_current(const tl_device *device) {
  tl_cu_context current = NULL;
  if (!device->driver->ctx_get_current) return TL_OK;
  TL_TRY(TL_CUDA_CALL(device->driver, ctx_get_current, &current));
  if (current != device->context || device->was_current) return TL_OK;
  return TL_CUDA_CALL(device->driver, ctx_pop_current, &current);
}

tl_status tl_device_end(tl_device *device) {
  if (!device) return TL_OK;
  tl_status status = atomic_exchange(&device->untold, NULL);
  status = tl_status_join(status, forget_current(device));
  status = tl_status_join(status, TL_CUDA_CALL(device->driver, primary_ctx_release, device->handle));
  free(device);
  return status;
}

void tl_device_close(tl_device *device) {
  tl_status_free(tl_device_end(device));
}

const char *tl_device_name(const tl_device *device) {
  return device ? device->name : "";
}
int tl_device_compute_capability(const tl_device *device) {
  return device ? device->compute_capability : 0;
}
int tl_device_num_sms(const tl_device *device) {
  return device ? device->num_sms : 0;
}

tl_status tl_device_driver_version(const tl_device *device, int *out_version) {
  return TL_CUDA_CALL(device->driver, driver_get_version, out_version);
}

// For each `enter` of the thread that has not left, the last one lowest: whether it pushed a context that goes with it.
static _Thread_local uint64_t pushed;

tl_status tl_device_enter(tl_device *device) {
  const tl_cuda_driver *driver = device->driver;
  tl_cu_context current = NULL;
  if (atomic_load_explicit(&device->untold, memory_order_relaxed))
    TL_TRY(tl_status_annotate(atomic_exchange(&device->untold, NULL), "an earlier call"));
  // A launch after a push takes a microsecond longer than one in a context that stays.
  if (driver->ctx_get_current) TL_TRY(TL_CUDA_CALL(driver, ctx_get_current, &current));
  bool stays = driver->ctx_get_current && !current;
  if (current != device->context) TL_TRY(TL_CUDA_CALL(driver, ctx_push_current, device->context));
  pushed = pushed << 1 | (current != device->context && !stays);
  return TL_OK;
}

tl_status tl_device_leave(tl_device *device, tl_status status) {
  tl_cu_context context;
  bool is_pushed = pushed & 1;
  pushed >>= 1;
  return is_pushed ? tl_status_join(status, TL_CUDA_CALL(device->driver, ctx_pop_current, &context)) : status;
}

_Atomic(uintptr_t) *tl_device_seen(tl_device *device, const void *pointer) {
  uintptr_t address = (uintptr_t)pointer;
  return &device->seen[(address >> 8 ^ address >> 16 ^ address >> 24) % TL_DEVICE_SEEN];
}

void tl_device_note(tl_device *device, tl_status status) {
  tl_status none = NULL;
  if (status && !atomic_compare_exchange_strong(&device->untold, &none, status)) tl_status_free(status);
}

// Device pointers are 64-bit numbers to the driver and void * to callers.
static tl_cu_pointer address_of(const void *pointer) {
  return (tl_cu_pointer)(uintptr_t)pointer;
}

tl_status tl_device_alloc(tl_device *device, size_t bytes, void **out_pointer) {
  TL_TRY(tl_status_not_null(out_pointer, "out_pointer"));
  *out_pointer = NULL;
  TL_TRY(tl_status_not_null(device, "device"));
  if (bytes == 0) return TL_OK;
  TL_TRY(tl_device_enter(device));
  tl_cu_pointer pointer = 0;
  tl_status status = TL_CUDA_CALL(device->driver, mem_alloc, &pointer, bytes);
  status = tl_device_leave(device, status);
  if (status && pointer) tl_device_note(device, TL_CUDA_CALL(device->driver, mem_free, pointer));
  if (status) return tl_status_annotate(status, "allocating %zu bytes of device memory", bytes);
  memcpy(out_pointer, &pointer, sizeof *out_pointer);
  return TL_OK;
}

tl_status tl_device_free(tl_device *device, void *pointer) {
  TL_TRY(tl_status_not_null(device, "device"));
  if (!pointer) return TL_OK;
  TL_TRY(tl_device_enter(device));
  _Atomic(uintptr_t) *seen = tl_device_seen(device, pointer);
  if (atomic_load(seen) == (uintptr_t)pointer) atomic_store(seen, 0);
  tl_status status = TL_CUDA_CALL(device->driver, mem_free, address_of(pointer));
  return tl_device_leave(device, status);
}

tl_status tl_device_upload(tl_device *device, void *to, const void *from, size_t bytes) {
  TL_TRY(tl_status_not_null(device, "device"));
  TL_TRY(tl_status_not_null(bytes ? to : device, "to"));
  TL_TRY(tl_status_not_null(bytes ? from : device, "from"));
  if (bytes == 0) return TL_OK;
  TL_TRY(tl_device_enter(device));
  tl_status status = TL_CUDA_CALL(device->driver, memcpy_htod, address_of(to), from, bytes);
  // From pageable memory the driver returns once it has read that, and streams that do not wait for the default stream
  // would be ahead of the rest (CUDA Driver API, API synchronization behavior).
  if (!status) status = TL_CUDA_CALL(device->driver, stream_synchronize, NULL);
  return tl_status_annotate(tl_device_leave(device, status), "copying %zu bytes to the device", bytes);
}

tl_status tl_device_download(tl_device *device, void *to, const void *from, size_t bytes) {
  TL_TRY(tl_status_not_null(device, "device"));
  TL_TRY(tl_status_not_null(bytes ? to : device, "to"));
  TL_TRY(tl_status_not_null(bytes ? from : device, "from"));
  if (bytes == 0) return TL_OK;
  TL_TRY(tl_device_enter(device));
  tl_status status = TL_CUDA_CALL(device->driver, memcpy_dtoh, to, address_of(from), bytes);
  return tl_status_annotate(tl_device_leave(device, status), "copying %zu bytes from the device", bytes);
}

tl_status tl_device_fill(tl_device *device, void *pointer, uint8_t value, size_t bytes, void *stream) {
  TL_TRY(tl_status_not_null(device, "device"));
  TL_TRY(tl_status_not_null(bytes ? pointer : device, "pointer"));
  if (bytes == 0) return TL_OK;
  TL_TRY(tl_device_enter(device));
  tl_status status = TL_CUDA_CALL(device->driver, memset_d8_async, address_of(pointer), value, bytes, stream);
  return tl_status_annotate(tl_device_leave(device, status), "filling %zu bytes of device memory", bytes);
}

tl_status tl_stream_create(tl_device *device, void **out_stream) {
  TL_TRY(tl_status_not_null(out_stream, "out_stream"));
  *out_stream = NULL;
  TL_TRY(tl_status_not_null(device, "device"));
  TL_TRY(tl_device_enter(device));
  tl_cu_stream stream = NULL;
  tl_status status = TL_CUDA_CALL(device->driver, stream_create, &stream, TL_CU_STREAM_NON_BLOCKING);
  status = tl_device_leave(device, status);
  if (status && stream) tl_device_note(device, TL_CUDA_CALL(device->driver, stream_destroy, stream));
  if (!status) *out_stream = stream;
  return status;
}

tl_status tl_stream_destroy(tl_device *device, void *stream) {
  TL_TRY(tl_status_not_null(device, "device"));
  if (!stream) return TL_OK;
  TL_TRY(tl_device_enter(device));
  tl_status status = TL_CUDA_CALL(device->driver, stream_destroy, stream);
  return tl_device_leave(device, status);
}

tl_status tl_stream_synchronize(tl_device *device, void *stream) {
  TL_TRY(tl_status_not_null(device, "device"));
  TL_TRY(tl_device_enter(device));
  tl_status status = TL_CUDA_CALL(device->driver, stream_synchronize, stream);
  return tl_device_leave(device, status);
}
