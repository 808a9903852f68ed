// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TL_HARNESS_EMULATED_INTERNAL_H
#define TL_HARNESS_EMULATED_INTERNAL_H

#include <stdbool.h>

#include "harness/device/emulated_driver.h"
#include "support/vec.h"

// A GPU and its primary context, which is the only one it has.
struct CUctx_st {
  tl_emulated_gpu gpu;
  int ordinal;
  bool is_used;
  int retained;
};

// What a stream does, when it is not done at once but recorded.
typedef struct emulated_work {
  tl_cu_function function;  // NULL: a copy or a fill
  uint32_t grid[3];
  void **params;  // Owned, in one piece with the values.
  void *to;
  const void *from;  // NULL: a fill
  uint8_t value;
  size_t bytes;
} emulated_work;

struct CUgraph_st {
  uint64_t id;  // of its recording
  TL_VEC(emulated_work) work;
};
struct CUstream_st {
  unsigned long long id;
  tl_cu_graph recording;  // Owned. NULL: work is done at once
  bool is_thread_local;   // the recording; else no thread may do what a recording rules out
};

// Keeps the text for cuGetErrorString and returns the code. Takes `status`.
tl_cu_result tl_emulated_fail(tl_status status);
// The context that is current in the thread, or NULL.
tl_cu_context tl_emulated_current(void);
// Whether this thread may now allocate, wait and load, which a recording rules out (CUDA C++ Programming Guide,
// "Prohibited and Unhandled Operations").
bool tl_emulated_is_recording(void);
// Does the work or adds it to the stream's recording, which then takes its parameters; else they are freed.
tl_cu_result tl_emulated_put(tl_cu_stream stream, emulated_work work);
// Runs a kernel (emulated_modules.c).
tl_cu_result tl_emulated_run(tl_cu_function function, const uint32_t grid[3], void **params);

#define TL_CUDA_FN(field, symbol, parameters) tl_cu_result tl_emulated_##field parameters;
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN

#endif
