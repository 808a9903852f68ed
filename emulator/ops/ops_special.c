// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Special registers that are no positions, windows of addresses, and hints.
#include <string.h>

#include "emulator/machine/args.h"
#include "emulator/ops/operand.h"
#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"

enum {
  SMS = 132,          // of an H200; blocks go to them in turns
  SHARED_UNIT = 128,  // PTX ISA, %total_smem_size: allocation unit of targets of the sm_8x and sm_9x families
  CYCLES_OF_SWITCH = 64,
  CYCLES_OF_READ = 16
};

// Time passes with every change of thread and every look at the clock, the same in every run.
static uint64_t cycles(tl_emu_worker *worker) {
  return worker->stats.switches * CYCLES_OF_SWITCH + ++worker->clock_reads * CYCLES_OF_READ;
}

static uint32_t round_up(size_t bytes) {
  return (uint32_t)((bytes + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT);
}

static uint64_t special(tl_emu_special kind) {
  tl_emu_worker *worker = tl_emu_self;
  const tl_emu_launch_state *launch = worker->launch;
  uint32_t own = 1u << worker->current->lane, below = own - 1;
  switch (kind) {
    case TL_EMU_SPECIAL_CLOCK:
      return cycles(worker);
    case TL_EMU_SPECIAL_SMID:
      return worker->block->index % SMS;
    case TL_EMU_SPECIAL_NSMID:
      return SMS;
    case TL_EMU_SPECIAL_NWARPID:
      return TL_EMU_MAX_WARPS * 2;
    case TL_EMU_SPECIAL_WARPSIZE:
      return TL_EMU_WARP;
    case TL_EMU_SPECIAL_GRIDID:
      return 1;
    case TL_EMU_SPECIAL_DYNAMIC_SHARED:
      return launch->shared_bytes - launch->dynamic_offset;
    case TL_EMU_SPECIAL_TOTAL_SHARED:
      return round_up(launch->shared_bytes);
    case TL_EMU_SPECIAL_EXPLICIT_CLUSTER:
      return launch->cluster_size > 1;
    // Lanes that run other paths, or that have not come here yet, are not in it: only the lane itself is certain.
    case TL_EMU_SPECIAL_ACTIVEMASK:
    case TL_EMU_SPECIAL_LANEMASK_EQ:
      return own;
    case TL_EMU_SPECIAL_LANEMASK_LT:
      return below;
    case TL_EMU_SPECIAL_LANEMASK_LE:
      return below | own;
    case TL_EMU_SPECIAL_LANEMASK_GT:
      return ~(below | own);
    case TL_EMU_SPECIAL_LANEMASK_GE:
      return ~below;
  }
  return 0;
}

void tl_emu_op_special(void *result, const void *args, const tl_emu_site *site) {
  (void)args;
  uint64_t value = special((tl_emu_special)site->binding->param);
  char letter = site->binding->signature[0];
  memcpy(result, &value, letter == 'l' ? 8 : letter == 'b' ? 1 : 4);
}

// ---- windows

static bool is_local(const void *address) {
  const tl_emu_worker *worker = tl_emu_self;
  const uint8_t *stack = tl_emu_memory_stack(worker->memory, worker->current->stack);
  uintptr_t offset = (uintptr_t)address - (uintptr_t)stack;
  return offset < tl_emu_stack_bytes();
}

// PTX ISA, isspacep: .shared is what belongs to the own block, .shared::cluster that of all blocks of the cluster.
void tl_emu_op_isspacep(void *result, const void *operands, const tl_emu_site *site) {
  tl_emu_args args = {operands, 0};
  const void *address = tl_emu_args_pointer(&args);
  const tl_emu_block *block = tl_emu_block_at(tl_emu_self, address), *own = tl_emu_self->block;
  bool is_cluster = block && block->cluster == own->cluster, is_in = false;
  switch ((tl_emu_space)site->binding->param) {
    case TL_EMU_SPACE_CONST:  // constants lie in global memory
      is_in = false;
      break;
    case TL_EMU_SPACE_GLOBAL:
      is_in = !is_cluster && !is_local(address);
      break;
    case TL_EMU_SPACE_LOCAL:
      is_in = is_local(address);
      break;
    case TL_EMU_SPACE_SHARED:
      is_in = block == own;
      break;
    case TL_EMU_SPACE_CLUSTER:
      is_in = is_cluster;
      break;
  }
  *(uint8_t *)result = is_in;
}

// ---- hints

// PTX ISA, discard: what the bytes hold afterwards is not determined.
void tl_emu_op_discard(void *result, const void *operands, const tl_emu_site *site) {
  enum { BYTES = 128 };
  (void)result;
  tl_emu_args args = {operands, 0};
  uint8_t *address = tl_emu_args_pointer(&args);
  if ((uintptr_t)address % BYTES) tl_emu_fail_at(site, "the address is no multiple of %d", BYTES);
  if (!tl_emu_touch(address, BYTES, BYTES, TL_EMU_WRITE, site)) return;
  tl_emu_access_begin(site, tl_emu_self->current->thread);
  memset(address, 0xff, BYTES);
  tl_emu_access_end();
}
