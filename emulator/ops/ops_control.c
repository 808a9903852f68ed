// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Special registers, syncs of a warp, traps.
#include <stdio.h>

#include "emulator/machine/args.h"
#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"

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

static bool sync_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  tl_emu_sanitize_meet(warp, meeting->mask);
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
  tl_emu_poll(NULL);
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
