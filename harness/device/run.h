// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments of a kernel as host arrays, and one launch of it: what checking, running and benchmarking share.
#ifndef TL_HARNESS_RUN_H
#define TL_HARNESS_RUN_H

#include "frontend/elaborate/instantiate.h"
#include "harness/data/array.h"
#include "harness/device/device.h"

// One argument of a launch.
typedef struct tl_run_arg {
  char *name;  // Owned.
  int access;  // 0 in, 1 out, 2 inout
  bool is_tensor;
  bool is_optional, is_absent;         // absent: not given to the launch; the array is zeros
  int64_t strides[TL_ARRAY_MAX_RANK];  // elements
  int64_t align;                       // bytes
  tl_array array;                      // Owned. Dense values: inputs before the launch, results after it.
  const void *memory;                  // of a tensor, while a launch runs; else NULL. Borrowed from the device
} tl_run_arg;

typedef struct tl_run_args {
  tl_run_arg *items;  // Owned.
  uint32_t len;
} tl_run_args;

// Dtype, dims and strides (elements; arrays of TL_ARRAY_MAX_RANK) of a spec's argument. False after a report.
bool tl_run_arg_type(const tl_arg *arg, const tl_env *env, tl_diags *diags, tl_dtype *out_dtype, int64_t *dims,
                     int64_t *strides);
// Refuses arguments for which a run takes more memory than `max_bytes` (0: no limit), before any is made: host arrays,
// the images that are copied, in the emulator its own copies and, `with_reference`, the values of the reference. LIMIT
// says how much and what for; DIAGNOSTICS when the arguments are wrong.
TL_MUST_USE tl_status tl_run_validate_memory(const tl_kernel_spec *kernel, const tl_env *env,
                                             const tl_run_device *device, bool with_reference, uint64_t max_bytes,
                                             tl_diags *diags);
// The arguments of a spec's kernel with zeroed arrays; shapes from `env` (dynamic params need values there).
TL_MUST_USE tl_status tl_run_args_from_spec(const tl_kernel_spec *kernel, const tl_env *env, tl_diags *diags,
                                            tl_run_args *out);
// The same from a manifest; `bindings` gives the dynamic names. INVALID_ARGUMENT names a dim that has no value.
TL_MUST_USE tl_status tl_run_args_from_manifest(const tl_manifest_kernel *kernel, const tl_mbinding *bindings,
                                                size_t num_bindings, tl_run_args *out);
void tl_run_args_fini(tl_run_args *args);
tl_run_arg *tl_run_args_find(const tl_run_args *args, tl_str name);

// ---- what a launch is made of

// Bytes of an argument in device memory: from element 0 to the end of the last one (strided tensors have gaps).
TL_MUST_USE tl_status tl_run_arg_image_bytes(const tl_run_arg *arg, uint64_t *out);
// Gives elements that the strides put on one place of memory (a stride of 0) one value: the last one's.
TL_MUST_USE tl_status tl_run_arg_share_elements(tl_run_arg *arg);
// Writes what device memory holds before a launch: inputs; 0xff (NaN as a float) for outputs and gaps.
void tl_run_arg_write_image(const tl_run_arg *arg, void *image, uint64_t bytes);
// Takes the values out of what device memory holds after a launch.
void tl_run_arg_read_image(tl_run_arg *arg, const void *image);
// The launch argument: a tensor at `pointer`, or the scalar's value. Borrows from `arg`.
tl_argument tl_run_arg_argument(const tl_run_arg *arg, void *pointer);
// Whether a dynamic name is one that the kernel takes.
bool tl_run_takes_dynamic(const tl_manifest_kernel *kernel, const char *name);

// Copies inputs to the device, poisons outputs (0xff: NaN as a float), launches, copies outputs back, checks canaries.
// `dynamics` gives dynamic names that no shape determines.
TL_MUST_USE tl_status tl_run_launch(tl_run_device *device, tl_run_kernel *kernel, tl_run_args *args,
                                    const tl_mbinding *dynamics, size_t num_dynamics);

#endif
