// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a kernel runs: a GPU or the emulator, behind one seam.
#ifndef TL_HARNESS_DEVICE_H
#define TL_HARNESS_DEVICE_H

#include <stdbool.h>

#include "emulator/machine/emulator.h"
#include "emulator/ptx/translate.h"
#include "harness/device/compile.h"
#include "llvm_backend/output/backend.h"
#include "tl/runtime.h"

typedef enum tl_run_kind { TL_RUN_AUTO, TL_RUN_CUDA, TL_RUN_EMU } tl_run_kind;

typedef struct tl_run_device tl_run_device;
typedef struct tl_run_kernel tl_run_kernel;

// Memory of the device: on a GPU with canaries around it, in the emulator between unreadable pages.
typedef struct tl_run_buffer {
  void *pointer;  // for the kernel; aligned as asked
  uint64_t bytes;
  void *base;            // Owned by the device.
  uint64_t guard_bytes;  // on each side
} tl_run_buffer;

// Opens a device. AUTO: the GPU when there is a usable one, else the emulator. `emu` is used by the emulator only.
TL_MUST_USE tl_status tl_run_device_open(tl_run_kind kind, const tl_emu_options *emu, tl_run_device **out_device);
// The emulator `device` again behind its CUDA driver (emulated_driver.h): a device that launches as a GPU does, with
// streams and graphs, kernels for `target` as PTX.
TL_MUST_USE tl_status tl_run_device_open_emulated(const tl_run_device *device, const tl_target *target,
                                                  tl_run_device **out_device);
// What the driver says about the end, and failures that nothing could tell before; NULL is fine.
TL_MUST_USE tl_status tl_run_device_close(tl_run_device *device);
// Also of an emulated one.
bool tl_run_device_is_gpu(const tl_run_device *device);
// Whether a kernel left the GPU's context unusable (an illegal address, a trap, a failed assertion).
bool tl_run_device_is_lost(const tl_run_device *device);
// Changes how the emulator lands asynchronous copies; nothing on a GPU.
void tl_run_device_set_landing(tl_run_device *device, tl_landing landing);
// Calls `ended` at the end of each emulated launch (tl_emu_options); NULL: nobody. Nothing on a GPU.
void tl_run_device_set_ended(tl_run_device *device, void (*ended)(void *user, const tl_emu_launch_state *launch),
                             void *user);
// What the emulator runs of compiled kernels; nothing on a GPU.
typedef enum tl_run_via {
  TL_VIA_IR,   // the module before PTX
  TL_VIA_PTX,  // the PTX text
  TL_VIA_BOTH  // both, on the same memory; bits that differ fail the launch
} tl_run_via;
void tl_run_device_set_via(tl_run_device *device, tl_run_via via);
// Kernels run themselves also where their aligned versions could.
void tl_run_device_set_plain(tl_run_device *device, bool is_plain);
// "NVIDIA H200 (sm_90, 132 SMs)" or "the emulator (late landing)". Borrowed until the next call.
const char *tl_run_device_describe(tl_run_device *device);
// The target to compile for: the GPU's own, NULL in the emulator (any).
const tl_target *tl_run_device_target(const tl_run_device *device);

TL_MUST_USE tl_status tl_run_device_alloc(tl_run_device *device, uint64_t bytes, uint64_t align,
                                          tl_run_buffer *out_buffer);
// Checks the canaries and frees. CHECK_FAILED names `name` when bytes before or behind the buffer were changed.
TL_MUST_USE tl_status tl_run_device_release(tl_run_device *device, tl_run_buffer *buffer, const char *name);
TL_MUST_USE tl_status tl_run_device_write(tl_run_device *device, const tl_run_buffer *buffer, const void *from);
TL_MUST_USE tl_status tl_run_device_read(tl_run_device *device, const tl_run_buffer *buffer, void *to);

// Loads a compiled kernel or chain, which is used until this returns. A chain runs as a kernel of its arguments.
TL_MUST_USE tl_status tl_run_kernel_load(tl_run_device *device, const tl_compiled *compiled,
                                         tl_run_kernel **out_kernel);
// PTX text and how it is run.
typedef struct tl_run_ptx {
  tl_str text;
  const char *name;    // of the file, in messages
  const char *kernel;  // NULL: the only one
  tl_str manifest;     // JSON, of a text that has none in its head; empty: the head's
  uint32_t block[3];   // threads; 0: the manifest's in one dimension. More dimensions run in the emulator only
  bool contracts;      // products and sums that leave it open are fused (the emulator)
  // The parameters that the manifest's are parts of; NULL: they are the parameters. Borrowed. In the emulator only.
  const tl_emu_ptx_field *fields;
  uint32_t num_fields;
} tl_run_ptx;
// Loads PTX text.
TL_MUST_USE tl_status tl_run_kernel_load_ptx(tl_run_device *device, const tl_run_ptx *ptx, tl_run_kernel **out_kernel);
void tl_run_kernel_destroy(tl_run_kernel *kernel);
const tl_manifest_kernel *tl_run_kernel_manifest(const tl_run_kernel *kernel);
// The largest registers a thread and local memory of its kernels, as the driver says; 0 in the emulator.
void tl_run_kernel_resources(const tl_run_kernel *kernel, int *out_registers, int *out_local_bytes);
// Whether the last launch took the aligned version of a kernel.
bool tl_run_kernel_took_version(const tl_run_kernel *kernel);
// On a GPU: launches on `stream` without waiting.
TL_MUST_USE tl_status tl_run_kernel_enqueue(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments,
                                            void *stream);
// Launches and waits for the end. Arguments as tl_kernel_launch takes them, with pointers of tl_run_buffer.
TL_MUST_USE tl_status tl_run_kernel_launch(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments);

#endif
