// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device.h"

// An attribute that a driver does not know is no reason to fail.
static int attribute(const tl_device *device, tl_cu_device_attribute which) {
  int value = 0;
  if (device->driver->device_get_attribute(&value, which, device->handle) != TL_CU_SUCCESS) return 0;
  return value > 0 ? value : 0;
}

tl_status tl_device_query_facts(tl_device *device, tl_device_facts *out) {
  *out = (tl_device_facts){.clock_khz = attribute(device, TL_CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
                           .memory_clock_khz = attribute(device, TL_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
                           .bus_bits = attribute(device, TL_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
                           .l2_bytes = attribute(device, TL_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)};
  if (!device->driver->mem_get_info) return TL_OK;
  TL_TRY(tl_device_enter(device));
  tl_status status = TL_CUDA_CALL(device->driver, mem_get_info, &out->free_bytes, &out->total_bytes);
  return tl_device_leave(device, status);
}

tl_status tl_device_copy_async(tl_device *device, void *to, const void *from, size_t bytes, void *stream) {
  if (bytes == 0) return TL_OK;
  TL_TRY(tl_device_enter(device));
  tl_status status = TL_CUDA_CALL(device->driver, memcpy_dtod_async, (tl_cu_pointer)(uintptr_t)to,
                                  (tl_cu_pointer)(uintptr_t)from, bytes, stream);
  return tl_device_leave(device, status);
}
