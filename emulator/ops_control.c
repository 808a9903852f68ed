// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Special registers, barriers, traps.
#include <stdio.h>

#include "emulator/check.h"
#include "emulator/ops.h"

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

typedef struct barrier_args {
  uint32_t id, count;  // count only in the forms that have one
} barrier_args;

// The barrier, and how many threads it expects. PTX ISA, barrier: counts are in threads, in whole warps.
static barrier_args read_barrier(const void *args, const tl_emu_site *site) {
  const uint32_t *words = args;
  bool has_count = site->binding->param & TL_EMU_BARRIER_COUNT;
  return (barrier_args){words[0], has_count ? words[1] : tl_emu_self->num_warps * TL_EMU_WARP};
}

static bool barrier_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  const tl_emu_site *site = meeting->site;
  barrier_args first = read_barrier(meeting->args[__builtin_ctz(meeting->mask)], site);
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    barrier_args own = read_barrier(meeting->args[lane], site);
    if (own.id != first.id || own.count != first.count)
      tl_emu_fail("%s: the lanes of warp %u name different barriers", site->op, warp->index);
  }
  bool wait = !(site->binding->param & TL_EMU_BARRIER_ARRIVE);
  return tl_emu_barrier_arrive(warp, meeting->mask, TL_EMU_WARP, first.id, first.count, wait, site);
}

void tl_emu_op_barrier(void *result, const void *args, const tl_emu_site *site) {
  if (site->binding->param & TL_EMU_BARRIER_ALONE) {
    barrier_args own = read_barrier(args, site);
    tl_emu_barrier_arrive_alone(own.id, own.count, !(site->binding->param & TL_EMU_BARRIER_ARRIVE), site);
    return;
  }
  tl_emu_meet_warp(result, args, site, barrier_work);
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
