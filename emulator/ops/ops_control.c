// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Special registers, barriers, traps.
#include <stdio.h>

#include "emulator/check/check.h"
#include "emulator/machine/args.h"
#include "emulator/ops/ops.h"

void tl_emu_op_sreg(void *result, const void *args, const tl_emu_site *site) {
  (void)args;
  const tl_emu_worker *worker = tl_emu_self;
  uint32_t value = 0;
  switch ((tl_emu_sreg)site->binding->param) {
    case TL_EMU_SREG_TID_X:
      value = worker->current->thread;
      break;
    case TL_EMU_SREG_CTAID_X:
      value = worker->block->position[0];
      break;
    case TL_EMU_SREG_CTAID_Y:
      value = worker->block->position[1];
      break;
    case TL_EMU_SREG_CTAID_Z:
      value = worker->block->position[2];
      break;
    case TL_EMU_SREG_NTID_X:
      value = worker->num_threads;
      break;
    case TL_EMU_SREG_NCTAID_X:
      value = worker->launch->grid[0];
      break;
    case TL_EMU_SREG_NCTAID_Y:
      value = worker->launch->grid[1];
      break;
    case TL_EMU_SREG_NCTAID_Z:
      value = worker->launch->grid[2];
      break;
    case TL_EMU_SREG_LANEID:
      value = worker->current->lane;
      break;
    case TL_EMU_SREG_WARPID:
      value = worker->current->warp;
      break;
    case TL_EMU_SREG_ZERO:
      value = 0;
      break;
    case TL_EMU_SREG_ONE:
      value = 1;
      break;
  }
  *(uint32_t *)result = value;
}

// What one thread says: which barrier, how many threads it expects, and its predicate. PTX ISA, barrier: counts are in
// threads, in whole warps.
static tl_emu_arrival_at_barrier read_barrier(const void *operands, const tl_emu_site *site) {
  uint32_t param = (uint32_t)site->binding->param;
  tl_emu_args args = {operands, 0};
  tl_emu_arrival_at_barrier own = {.site = site, .wait = !(param & TL_EMU_BARRIER_ARRIVE)};
  own.id = tl_emu_args_i32(&args);
  own.expected = param & TL_EMU_BARRIER_COUNT ? tl_emu_args_i32(&args) : tl_emu_self->num_warps * TL_EMU_WARP;
  own.reduction = param & (TL_EMU_BARRIER_RED_AND | TL_EMU_BARRIER_RED_OR | TL_EMU_BARRIER_RED_POPC);
  if (own.reduction) own.votes = tl_emu_args_bool(&args);
  return own;
}

static bool barrier_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  const tl_emu_site *site = meeting->site;
  tl_emu_arrival_at_barrier all = read_barrier(meeting->args[__builtin_ctz(meeting->mask)], site);
  all.votes = 0;
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    tl_emu_arrival_at_barrier own = read_barrier(meeting->args[lane], site);
    if (own.id != all.id || own.expected != all.expected)
      tl_emu_fail("%s: the lanes of warp %u name different barriers", site->op, warp->index);
    all.votes += own.votes;
  }
  return tl_emu_barrier_arrive(warp, meeting->mask, TL_EMU_WARP, &all);
}

void tl_emu_op_barrier(void *result, const void *args, const tl_emu_site *site) {
  if (site->binding->param & TL_EMU_BARRIER_ALONE) {
    tl_emu_arrival_at_barrier own = read_barrier(args, site);
    tl_emu_barrier_arrive_alone(&own);
  } else {
    tl_emu_meet_warp(result, args, site, barrier_work);
  }
  const tl_emu_fiber *me = tl_emu_self->current;
  if (site->binding->param & TL_EMU_BARRIER_RED_AND) *(uint8_t *)result = me->votes == me->voters;
  if (site->binding->param & TL_EMU_BARRIER_RED_OR) *(uint8_t *)result = me->votes != 0;
  if (site->binding->param & TL_EMU_BARRIER_RED_POPC) *(uint32_t *)result = me->votes;
}

static bool sync_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  tl_emu_check_meet(warp, meeting->mask);
  return true;
}

void tl_emu_op_warp_sync(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet(*(const uint32_t *)args, result, args, site, sync_work);
}

void tl_emu_op_trap(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  tl_strbuf where = {0};
  char text[128];
  tl_emu_describe_site(site, &where);
  snprintf(text, sizeof text, "%s", tl_strbuf_c(&where));
  tl_strbuf_fini(&where);
  tl_emu_fail("trap: %s", text);
}

// PTX ISA, exit: the thread ends, as by a return from the kernel.
void tl_emu_op_exit(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  (void)site;
  tl_emu_exit();
}

void tl_emu_op_nanosleep(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  (void)site;
  tl_emu_poll();
}

void tl_emu_op_nothing(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  (void)site;
}

void tl_emu_op_fence(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  tl_emu_fence((uint32_t)site->binding->param);
}
