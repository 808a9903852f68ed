// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments against a manifest: checks, binding of dynamic names, grid. Knows no driver; the GPU launcher and the
// emulator both launch what this makes.
#ifndef TL_RUNTIME_ARGUMENTS_H
#define TL_RUNTIME_ARGUMENTS_H

#include <stdbool.h>

#include "support/manifest.h"
#include "tl/runtime.h"

// What the place of the launch adds to the arguments.
typedef struct tl_launch_facts {
  int64_t num_sms;
  int64_t resident_blocks;  // blocks of the kernel that run at once on the whole device
  // Checks that the pointer of argument `name` may be used there; NULL accepts all.
  tl_status (*validate_pointer)(void *user, const char *name, const void *pointer);
  void *user;
} tl_launch_facts;

// A tensor map to be made for a launch.
typedef struct tl_launch_map {
  tl_tensormap_params params;
  // The tensor has no elements: `params.address` is NULL, and the launcher puts that of 16 bytes there, which are zero
  // unless the map is written.
  bool is_empty;
} tl_launch_map;

// A checked launch.
typedef struct tl_launch_plan {
  tl_arena arena;
  uint32_t grid[3];          // blocks
  bool is_empty;             // a grid extent is 0: nothing to launch
  void **params;             // one pointer a manifest param, to its value; workspaces are still NULL, maps empty
  tl_launch_map **maps;      // one a manifest param; NULL where the param is no tensor map
  int64_t *workspace_bytes;  // one a manifest param; -1 where the param is no workspace
  tl_mbinding *bindings;     // dynamic names, strides, num_sms, resident_blocks
  size_t num_bindings;
  tl_argument *arguments;  // a copy of those that it was made for, but for what they point at in device memory
  uint32_t *param_of;      // one an argument
  size_t num_arguments;
} tl_launch_plan;

// INVALID_ARGUMENT names the argument, what was expected and what was given. On failure nothing is left to free.
TL_MUST_USE tl_status tl_launch_plan_create(const tl_manifest_kernel *kernel, const tl_argument *arguments,
                                            size_t num_arguments, const tl_launch_facts *facts,
                                            tl_launch_plan *out_plan);
// Whether these arguments differ from the plan's own in memory and in values of scalars only, as in most launches that
// follow each other: its grid, names and sizes are theirs, too. A zeroed plan is of none.
bool tl_launch_plan_is_of(const tl_manifest_kernel *kernel, const tl_launch_plan *plan, const tl_argument *arguments,
                          size_t num_arguments);
// Makes a plan that is of these arguments theirs. After a failure only tl_launch_plan_fini and another renewal may
// follow.
TL_MUST_USE tl_status tl_launch_plan_renew(const tl_manifest_kernel *kernel, const tl_argument *arguments,
                                           size_t num_arguments, const tl_launch_facts *facts, tl_launch_plan *plan);
// What is wrong with the map of param `index`, as an INVALID_ARGUMENT that names its argument. Launchers ask once the
// address of an empty one is there.
TL_MUST_USE tl_status tl_launch_plan_validate_map(const tl_manifest_kernel *kernel, const tl_launch_plan *plan,
                                                  uint32_t index);
void tl_launch_plan_fini(tl_launch_plan *plan);

#endif
