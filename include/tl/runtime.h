// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading and launching compiled kernels. Needs the NVIDIA driver (libcuda.so.1, opened on first use) and nothing else.
//
// Every function may be called from any thread. Objects may be shared between threads; destroying one while another
// thread uses it is the caller's mistake. The primary context of the device is used, as the CUDA runtime and frameworks
// do, so pointers and streams of theirs can be passed in. It is current during a call; a thread that has no context
// keeps it afterwards, until it closes the device.
//
// A NULL handle, array or place for a result is INVALID_ARGUMENT; functions without a status do nothing with it and
// return 0, "" or NULL. Failures of the driver in a function without a status come out of the next call on the device.
#ifndef TL_RUNTIME_H
#define TL_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "tl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A GPU. Keeps the device's primary context alive until closed; close it after everything made from it.
typedef struct tl_device tl_device;
// A loaded PTX file or cubin with its manifest.
typedef struct tl_program tl_program;
// One kernel of a program. Borrowed from the program.
typedef struct tl_kernel tl_kernel;
// Kernels of a program launched in order, with memory between them. Borrowed from the program.
typedef struct tl_chain tl_chain;

// ---- devices

// Number of GPUs. NO_DEVICE when there is no usable driver.
TL_API TL_MUST_USE tl_status tl_device_count(int *out_count);
// Opens GPU number `ordinal` (from 0). Close it with tl_device_close.
TL_API TL_MUST_USE tl_status tl_device_open(int ordinal, tl_device **out_device);

// How the emulator runs kernels. Zeros are the defaults.
typedef struct tl_emulator_options {
  // What is checked while a kernel runs, as `tl-run --sanitize` takes it: "race,init", "none"; NULL: all.
  const char *checks;
  const char *landing;     // when asynchronous copies land: "late" (NULL), at the wait that covers them, or "early"
  uint32_t seed;           // order of warps and blocks
  int threads;             // of the host; 0: one per core
  double timeout_s;        // of a launch; 0: 60
  int compute_capability;  // what it takes for its own, so that kernels for that and older targets load; 0: 90
  int num_sms;             // 0: 3, so that blocks of persistent kernels have several tiles
} tl_emulator_options;
// Opens the emulator as a device, for tests without a GPU: memory is the host's, and a launch returns when the kernel
// has ended. PTX of tl-llc is loaded as on a GPU (no cubins). What the checks find, accesses outside of memory,
// deadlock and timeout are CHECK_FAILED of the launch, and the message is the report (docs/emulator.md). NULL: the
// defaults.
TL_API TL_MUST_USE tl_status tl_device_open_emulator(const tl_emulator_options *options, tl_device **out_device);
// A function of the driver API, as a loader of libraries gives it.
typedef void tl_cuda_function(void);
// The emulator's function in the place of the driver's `symbol` ("cuLaunchKernel"): what libtl_emulated_cuda.so
// exports, for programs that open the driver themselves. The first call makes its GPU 0, whose checks and compute
// capability the environment tells (TL_EMULATED_CHECKS, TL_EMULATED_CAPABILITY). NOT_FOUND: kernels are launched
// without that function.
TL_API TL_MUST_USE tl_status tl_emulated_cuda(const char *symbol, tl_cuda_function **out_function);
TL_API void tl_device_close(tl_device *device);
// "NVIDIA H200". Borrowed from `device`.
TL_API const char *tl_device_name(const tl_device *device);
// Major * 10 + minor: 90 for compute capability 9.0.
TL_API int tl_device_compute_capability(const tl_device *device);
TL_API int tl_device_num_sms(const tl_device *device);

// ---- device memory and streams. A stream is a CUstream; NULL is the default stream.

// `bytes` of device memory (256-byte aligned); 0 bytes give NULL. Free it with tl_device_free.
TL_API TL_MUST_USE tl_status tl_device_alloc(tl_device *device, size_t bytes, void **out_pointer);
TL_API TL_MUST_USE tl_status tl_device_free(tl_device *device, void *pointer);
// Copies host memory to the device, or back; returns when the copy is done.
TL_API TL_MUST_USE tl_status tl_device_upload(tl_device *device, void *to, const void *from, size_t bytes);
TL_API TL_MUST_USE tl_status tl_device_download(tl_device *device, void *to, const void *from, size_t bytes);
// Sets every byte to `value`; ordered on `stream`.
TL_API TL_MUST_USE tl_status tl_device_fill(tl_device *device, void *pointer, uint8_t value, size_t bytes,
                                            void *stream);
TL_API TL_MUST_USE tl_status tl_stream_create(tl_device *device, void **out_stream);
TL_API TL_MUST_USE tl_status tl_stream_destroy(tl_device *device, void *stream);
// Waits for all work of `stream`. Failures of kernels launched before may surface here.
TL_API TL_MUST_USE tl_status tl_stream_synchronize(tl_device *device, void *stream);

// ---- programs

// Loads PTX text that tl-llc wrote (its leading "// " lines are the manifest). Refused when the text is for another
// architecture or has no manifest. A failure holds the driver's JIT log.
TL_API TL_MUST_USE tl_status tl_program_load(tl_device *device, const char *ptx, size_t ptx_bytes,
                                             tl_program **out_program);
// Loads a cubin (or PTX without a manifest) with the manifest beside it.
TL_API TL_MUST_USE tl_status tl_program_load_image(tl_device *device, const void *image, size_t image_bytes,
                                                   const char *manifest, size_t manifest_bytes,
                                                   tl_program **out_program);
TL_API void tl_program_destroy(tl_program *program);
TL_API size_t tl_program_num_kernels(const tl_program *program);
// NULL past the end.
TL_API tl_kernel *tl_program_kernel_at(tl_program *program, size_t index);
// The kernel called `name`; NULL stands for the only one. NOT_FOUND lists what there is.
TL_API TL_MUST_USE tl_status tl_program_kernel(tl_program *program, const char *name, tl_kernel **out_kernel);
TL_API const char *tl_kernel_name(const tl_kernel *kernel);
// Registers a thread, bytes of local memory a thread (spills and arrays), as the driver says.
TL_API int tl_kernel_registers(const tl_kernel *kernel);
TL_API int tl_kernel_local_bytes(const tl_kernel *kernel);

// ---- arguments

// A tensor in device memory. The descriptor and what it points at are borrowed for the duration of a call.
typedef struct tl_tensor {
  void *data;              // device pointer to element 0
  const char *dtype;       // "f16", "bf16", "f32", "i32", "u8", "bool", …; long names ("float16") too
  int32_t rank;            // number of dimensions
  const int64_t *shape;    // elements, `rank` of them
  const int64_t *strides;  // elements, `rank` of them; NULL: dense, row-major
} tl_tensor;

typedef enum tl_argument_kind { TL_ARGUMENT_TENSOR, TL_ARGUMENT_INT, TL_ARGUMENT_FLOAT } tl_argument_kind;

// One argument of a launch. Tensors and scalars of the kernel's `args` may be given by position (name NULL) or by name,
// in any order. A dynamic param is a name that shapes usually determine; it may also be given by name, as
// TL_ARGUMENT_INT.
typedef struct tl_argument {
  tl_argument_kind kind;
  const char *name;  // NULL: the next argument in order
  tl_tensor tensor;
  int64_t int_value;
  double float_value;
} tl_argument;

static inline tl_argument tl_argument_tensor(const char *name, void *data, const char *dtype, int32_t rank,
                                             const int64_t *shape) {
  tl_argument argument = {TL_ARGUMENT_TENSOR, name, {data, dtype, rank, shape, NULL}, 0, 0.0};
  return argument;
}
// No tensor, for an argument that the spec declares `optional`. So is any tensor whose `data` is NULL, and an argument
// that is left out.
static inline tl_argument tl_argument_absent(const char *name) {
  tl_argument argument = {TL_ARGUMENT_TENSOR, name, {NULL, NULL, 0, NULL, NULL}, 0, 0.0};
  return argument;
}
static inline tl_argument tl_argument_int(const char *name, int64_t value) {
  tl_argument argument = {TL_ARGUMENT_INT, name, {NULL, NULL, 0, NULL, NULL}, value, 0.0};
  return argument;
}
static inline tl_argument tl_argument_float(const char *name, double value) {
  tl_argument argument = {TL_ARGUMENT_FLOAT, name, {NULL, NULL, 0, NULL, NULL}, 0, value};
  return argument;
}

// Checks arguments against the manifest without launching: number, dtype, rank, shape, strides, alignment, device
// pointers, dynamic names (consistent, in range, divisible), `requires`, grid limits. INVALID_ARGUMENT names the
// argument, what was expected and what was given.
TL_API TL_MUST_USE tl_status tl_kernel_check(tl_kernel *kernel, const tl_argument *arguments, size_t num_arguments);
// Checks, then launches on `stream` and returns without waiting. A grid with a zero extent launches nothing and
// succeeds.
TL_API TL_MUST_USE tl_status tl_kernel_launch(tl_kernel *kernel, const tl_argument *arguments, size_t num_arguments,
                                              void *stream);

// ---- chains: several kernels in order on one stream

TL_API size_t tl_program_num_chains(const tl_program *program);
// NULL past the end.
TL_API tl_chain *tl_program_chain_at(tl_program *program, size_t index);
// The chain called `name`; NULL stands for the only one. NOT_FOUND lists what there is.
TL_API TL_MUST_USE tl_status tl_program_chain(tl_program *program, const char *name, tl_chain **out_chain);
TL_API const char *tl_chain_name(const tl_chain *chain);
TL_API size_t tl_chain_num_steps(const tl_chain *chain);

// Bytes of device memory that the chain's buffers need for these arguments; their pointers are not looked at and may
// be NULL. 0 when it has no buffers.
TL_API TL_MUST_USE tl_status tl_chain_workspace_bytes(tl_chain *chain, const tl_argument *arguments,
                                                      size_t num_arguments, size_t *out_bytes);
// Checks the arguments of the chain, and what its steps make of them, as tl_kernel_check does for a kernel.
TL_API TL_MUST_USE tl_status tl_chain_check(tl_chain *chain, const tl_argument *arguments, size_t num_arguments);
// Checks, then launches every step on `stream` and returns without waiting; when a check fails nothing is launched.
// `workspace` holds the buffers: `workspace_bytes` of device memory, 256-byte aligned, at least what
// tl_chain_workspace_bytes says and free until the stream has passed the chain. NULL: memory that the program keeps for
// the chain and the stream, or the recording of a stream, allocated (and grown, which waits for the stream) when a
// launch needs it.
TL_API TL_MUST_USE tl_status tl_chain_launch(tl_chain *chain, const tl_argument *arguments, size_t num_arguments,
                                             void *workspace, size_t workspace_bytes, void *stream);

#ifdef __cplusplus
}
#endif
#endif
