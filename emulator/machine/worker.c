// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The worker of an OS thread, where its blocks lie in the window of shared memory, and where clusters lie in the grid:
// what the scheduler, the reports and the start of blocks all ask.
#include "emulator/machine/machine.h"

_Thread_local tl_emu_worker *tl_emu_self __attribute__((tls_model("initial-exec"))) = NULL;

void tl_emu_cluster_position(const tl_emu_launch_state *launch, uint64_t number, uint32_t out_position[3]) {
  // num_clusters < 2^32 or the launch would never end: the product cannot overflow.
  uint64_t index = (launch->order_start + number * launch->order_step) % launch->num_clusters;
  uint64_t across = launch->grid[0] / launch->cluster[0], down = launch->grid[1] / launch->cluster[1];
  out_position[0] = (uint32_t)(index % across);
  out_position[1] = (uint32_t)(index / across % down);
  out_position[2] = (uint32_t)(index / across / down);
}

tl_emu_block *tl_emu_block_at(const tl_emu_worker *worker, const void *address) {
  uintptr_t offset = (uintptr_t)address - (uintptr_t)worker->memory->window;
  uintptr_t slot = offset / TL_EMU_BLOCK_STRIDE;
  return slot < worker->num_blocks ? &worker->blocks[slot] : NULL;
}
