// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the runtime's files share about a device.
#ifndef TL_RUNTIME_DEVICE_H
#define TL_RUNTIME_DEVICE_H

#include <stdbool.h>

#include "runtime/cuda_driver.h"
#include "tl/runtime.h"

enum { TL_DEVICE_SEEN = 256 };

struct tl_device {
  const tl_cuda_driver *driver;  // Borrowed; lives for ever.
  tl_cu_device handle;
  tl_cu_context context;  // the primary context, retained
  bool was_current;       // in the thread that opened the device, before it did
  int ordinal;
  int compute_capability;  // major * 10 + minor
  int num_sms;
  int max_shared_bytes;  // opt-in limit of one block
  char name[128];
  _Atomic(uintptr_t) seen[TL_DEVICE_SEEN];  // addresses of its memory that launches were given lately
  _Atomic(tl_status) untold;                // Owned. The first failure of what has no status: a destroy
};

// tl_device_open on the GPUs of `driver`, which is borrowed for the device's life.
TL_MUST_USE tl_status tl_device_open_on(const tl_cuda_driver *driver, int ordinal, tl_device **out_device);

// Makes the device's context current for the calling thread; every enter needs its leave, up to 64 within each other.
// A thread without a context keeps it, as with the CUDA runtime, until it closes the device. A failure that a destroy
// could not tell comes out here, once, and nothing is entered.
TL_MUST_USE tl_status tl_device_enter(tl_device *device);
// Where an address that launches were given is kept.
_Atomic(uintptr_t) *tl_device_seen(tl_device *device, const void *pointer);
// Ends what `enter` began. Returns `status`, or when that is a success whether leaving was one.
TL_MUST_USE tl_status tl_device_leave(tl_device *device, tl_status status);
// Keeps a failure that there is nobody to tell for the next call on the device. Takes `status`.
void tl_device_note(tl_device *device, tl_status status);
// tl_device_close with what the driver says about it, and what was not told before.
TL_MUST_USE tl_status tl_device_end(tl_device *device);

// What the driver says about speed and memory; 0 where it does not know.
typedef struct tl_device_facts {
  int clock_khz;         // highest SM clock
  int memory_clock_khz;  // highest DRAM clock; data moves on both edges
  int bus_bits;          // of DRAM
  int l2_bytes;
  size_t free_bytes, total_bytes;  // of device memory, now
} tl_device_facts;
TL_MUST_USE tl_status tl_device_query_facts(tl_device *device, tl_device_facts *out);

// Copies device memory on `stream` without waiting.
TL_MUST_USE tl_status tl_device_copy_async(tl_device *device, void *to, const void *from, size_t bytes, void *stream);

// Version of the driver's CUDA: 13000 is 13.0.
TL_MUST_USE tl_status tl_device_driver_version(const tl_device *device, int *out_version);

#endif
