// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch of a chain: its arguments checked, its buffers sized, and what each step gives its kernel. Knows no driver;
// the GPU launcher and the emulator both run what this makes.
#ifndef TL_RUNTIME_CHAIN_H
#define TL_RUNTIME_CHAIN_H

#include "runtime/arguments.h"

// Where a buffer may begin in a workspace, and the workspace itself.
#define TL_CHAIN_ALIGN 256

typedef struct tl_chain_launch_plan {
  const tl_manifest_chain *chain;  // Borrowed.
  tl_launch_plan signature;        // the chain's arguments
  int64_t *buffer_bytes;           // one a buffer
  int64_t *buffer_offsets;         // one a buffer: its place in a workspace
  int64_t workspace_bytes;         // of all buffers together
  tl_argument *arguments;          // of the step at hand
  tl_arena step;                   // of its shapes
} tl_chain_launch_plan;

// INVALID_ARGUMENT names the argument, what was expected and what was given. On failure nothing is left to free.
TL_MUST_USE tl_status tl_chain_launch_plan_create(const tl_manifest_chain *chain, const tl_argument *arguments,
                                                  size_t num_arguments, const tl_launch_facts *facts,
                                                  tl_chain_launch_plan *out_plan);
void tl_chain_launch_plan_fini(tl_chain_launch_plan *plan);
// The arguments of step `index`, valid until the next call. `buffers` are the addresses of the chain's buffers.
TL_MUST_USE tl_status tl_chain_launch_plan_step(tl_chain_launch_plan *plan, uint32_t index, void *const *buffers,
                                                const tl_argument **out_arguments, size_t *out_num_arguments);

#endif
