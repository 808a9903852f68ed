// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// setmaxnreg: warps give registers to the pool of their block and take them from it. PTX ISA, setmaxnreg.
#include "emulator/ops/operand.h"
#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"

enum { MIN_COUNT = 24, MAX_COUNT = 256, UNIT = 8, WARPGROUP = 4, REGISTERS_OF_SM = 65536, MAX_OF_THREAD = 255 };

uint32_t tl_emu_entry_registers(uint32_t maxnreg, uint32_t blocks_of_sm, uint32_t threads) {
  if (maxnreg) return maxnreg & ~(uint32_t)(UNIT - 1);
  if (!blocks_of_sm) return 0;
  uint32_t warps = (threads + TL_EMU_WARP - 1) / TL_EMU_WARP;
  uint32_t count = REGISTERS_OF_SM / (blocks_of_sm * warps * TL_EMU_WARP);
  return (count > MAX_OF_THREAD ? MAX_OF_THREAD : count) & ~(uint32_t)(UNIT - 1);
}

static void resume(tl_emu_block *block, tl_emu_warp *warp) {
  block->free_registers -= warp->wanted_registers;
  warp->wanted_registers = 0;
  TL_EMU_FOR_LANES(lane, warp->exist & ~warp->exited) {
    tl_emu_fiber *fiber = &block->fibers[warp->index * TL_EMU_WARP + lane];
    tl_emu_set_wait(fiber, NULL, NULL);
    tl_emu_wake(fiber);
  }
}

static void resume_all(tl_emu_block *block) {
  for (uint32_t w = 0; w < block->worker->num_warps; w++) {
    tl_emu_warp *warp = &block->warps[w];
    if (warp->wanted_registers && warp->wanted_registers <= block->free_registers) resume(block, warp);
  }
}

// How what the warp is about to do breaks the rules. NULL: it does not.
static const char *find_mistake(const tl_emu_block *block, const tl_emu_warp *warp, bool increases, uint32_t count) {
  if (!block->worker->launch->entry_registers)
    return "the kernel says neither .maxnreg nor .minnctapersm: ptxas ignores the instruction";
  if (increases && count < warp->registers) return "the warp has more registers than it asks for";
  if (!increases && count > warp->registers) return "the warp has fewer registers than it wants to keep";
  uint32_t first = warp->index / WARPGROUP * WARPGROUP;
  for (uint32_t w = first; w < first + WARPGROUP && w < block->worker->num_warps; w++)
    if (block->warps[w].num_setmaxnreg < warp->num_setmaxnreg)
      return "another warp of the warpgroup has not executed the one before";
  return NULL;
}

static void describe_wait(const tl_emu_fiber *fiber, tl_strbuf *out) {
  const tl_emu_block *block = fiber->block;
  tl_strbuf_appendf(out, "setmaxnreg for %u registers, %u are free", block->warps[fiber->warp].wanted_registers,
                    block->free_registers);
}

static bool setmaxnreg_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  const tl_emu_site *site = meeting->site;
  tl_emu_block *block = tl_emu_self->block;
  uint32_t count = *(const uint32_t *)meeting->args[__builtin_ctz(meeting->mask)];
  bool increases = site->binding->param;
  if (count < MIN_COUNT || count > MAX_COUNT || count % UNIT)
    tl_emu_fail_at(site, "%u registers are no multiple of %d from %d to %d", count, UNIT, MIN_COUNT, MAX_COUNT);
  const char *mistake = find_mistake(block, warp, increases, count);
  warp->num_setmaxnreg++;
  warp->setmaxnreg_site = site;
  if (mistake) {
    tl_emu_sanitize_misuse(mistake, site);
    return true;
  }
  uint32_t before = warp->registers;
  warp->registers = count;
  if (!increases) {
    block->free_registers += (before - count) * TL_EMU_WARP;
    resume_all(block);
    return true;
  }
  warp->wanted_registers = (count - before) * TL_EMU_WARP;
  if (warp->wanted_registers <= block->free_registers) {
    block->free_registers -= warp->wanted_registers;
    warp->wanted_registers = 0;
    return true;
  }
  TL_EMU_FOR_LANES(lane, meeting->mask)
  tl_emu_set_wait(&block->fibers[warp->index * TL_EMU_WARP + lane], &block->free_registers, describe_wait);
  return false;
}

void tl_emu_op_setmaxnreg(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, setmaxnreg_work);
}

static void begin_block(tl_emu_block *block) {
  block->free_registers = 0;
  for (uint32_t w = 0; w < block->worker->num_warps; w++) {
    tl_emu_warp *warp = &block->warps[w];
    warp->registers = block->worker->launch->entry_registers;
    warp->wanted_registers = warp->num_setmaxnreg = 0;
    warp->setmaxnreg_site = NULL;
  }
}

static void end_block(tl_emu_block *block) {
  for (uint32_t w = 0; w < block->worker->num_warps; w++) {
    const tl_emu_warp *warp = &block->warps[w], *first = &block->warps[w / WARPGROUP * WARPGROUP];
    if (warp->num_setmaxnreg == first->num_setmaxnreg && warp->registers == first->registers) continue;
    const tl_emu_site *site = warp->setmaxnreg_site ? warp->setmaxnreg_site : first->setmaxnreg_site;
    tl_emu_sanitize_misuse("the warps of a warpgroup did not all execute it", site);
  }
}

const tl_emu_hooks tl_emu_registers_hooks = {.begin_block = begin_block, .end_block = end_block};
