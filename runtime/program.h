// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the runtime's files share about a loaded program.
#ifndef TL_RUNTIME_PROGRAM_H
#define TL_RUNTIME_PROGRAM_H

#include <pthread.h>

#include "runtime/arguments.h"
#include "runtime/device.h"
#include "support/manifest.h"
#include "support/vec.h"

// Device memory of a workspace: one a kernel, param and stream, or a chain and stream, grown when a launch needs more.
// Launches that are recorded have their own for good, one a recording and stream: graphs run beside whatever is
// launched.
typedef struct tl_workspace {
  uint32_t param;  // of a kernel; 0 for a chain
  bool is_recorded;
  unsigned long long stream;  // its id, for handles come back; recorded: the handle, for ids cannot be asked for then
  uint64_t recording;         // of the driver; 0: it does not say which, and the launch has its own
  void *memory;               // Owned. Device memory.
  int64_t bytes;
} tl_workspace;
typedef TL_VEC(tl_workspace) tl_workspaces;

// A tensor map that was made for a launch.
typedef struct tl_made_map {
  uint32_t param;  // of the kernel
  tl_tensormap_params params;
  uint8_t bytes[TL_TENSORMAP_BYTES];
} tl_made_map;
typedef TL_VEC(tl_made_map) tl_made_maps;

struct tl_kernel {
  tl_program *program;                 // Borrowed.
  const tl_manifest_kernel *manifest;  // Borrowed from the program.
  tl_kernel *aligned;                  // Borrowed from the program: the version that may be launched instead, or NULL.
  bool is_plain;                       // the version is not wanted
  bool took_version;                   // the last launch did
  bool plan_forbids_version;           // the sizes of `plan` have not the version's divisors, or it cannot be planned
  tl_cu_function function;
  int registers;
  int local_bytes;
  int64_t resident_blocks;  // on the whole device
  pthread_mutex_t lock;     // of what follows
  tl_launch_plan plan;      // of the last launch; zeroed: there is none
  tl_workspaces workspaces;
  tl_made_maps maps;  // of the last launches
  size_t next_map;    // the one to be replaced once there are many
};

struct tl_chain {
  tl_program *program;                // Borrowed.
  const tl_manifest_chain *manifest;  // Borrowed from the program.
  pthread_mutex_t lock;               // of `workspaces`
  tl_workspaces workspaces;
};

struct tl_program {
  tl_device *device;  // Borrowed.
  tl_arena arena;
  tl_manifest manifest;
  tl_cu_module module;
  tl_kernel *kernels;  // Owned. manifest.num_kernels of them.
  tl_chain *chains;    // Owned. manifest.num_chains of them.
};

// ---- launch.c, for chains too

// The workspace of the stream, or of the recording, for `param`, at least `bytes` large; `*out_is_new` when its content
// is undefined. Work already on the stream may still use a smaller one, so that is freed only after the stream has come
// to its end.
TL_MUST_USE tl_status tl_workspace_take(tl_device *device, tl_workspaces *workspaces, uint32_t param, int64_t bytes,
                                        void *stream, void **out_memory, bool *out_is_new);
// Makes the tensor maps of a plan (tensor_maps.c). The kernel's lock is held.
TL_MUST_USE tl_status tl_launch_make_maps(tl_kernel *kernel, tl_launch_plan *plan, void *stream);
// Memory that kernels of `user` (a tl_device) cannot use is refused before the launch, not found by a fault in it.
tl_status tl_launch_validate_pointer(void *user, const char *name, const void *pointer);
// Lets launches take the kernel itself also where its aligned version could run: for comparing the two.
void tl_kernel_set_plain(tl_kernel *kernel, bool is_plain);
// Whether the kernel's last launch took its aligned version.
bool tl_kernel_took_version(const tl_kernel *kernel);
// Launches a checked plan that is not empty. Takes the kernel's lock.
TL_MUST_USE tl_status tl_launch_run(tl_kernel *kernel, tl_launch_plan *plan, void *stream);

#endif
