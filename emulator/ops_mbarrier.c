// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The forms of mbarrier ops.
#include "emulator/args.h"
#include "emulator/mbarrier.h"
#include "emulator/ops.h"

void tl_emu_op_mbarrier_init(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  void *address = tl_emu_args_pointer(&args);
  tl_emu_mbarrier_init(address, tl_emu_args_i32(&args), site);
}

void tl_emu_op_mbarrier_inval(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  tl_emu_mbarrier_invalidate(tl_emu_args_pointer(&args), site);
}

void tl_emu_op_mbarrier_arrive(void *result, const void *operands, const tl_emu_site *site) {
  tl_emu_args args = {operands, 0};
  void *address = tl_emu_args_pointer(&args);
  int param = site->binding->param;
  tl_emu_arrival arrival = {.count = 1,
                            .drops = (param & TL_EMU_MBARRIER_DROP) != 0,
                            .is_relaxed = (param & TL_EMU_MBARRIER_RELAXED) != 0,
                            .may_not_end = (param & TL_EMU_MBARRIER_NO_COMPLETE) != 0};
  if (param & TL_EMU_MBARRIER_COUNT) arrival.count = tl_emu_args_i32(&args);
  if (param & TL_EMU_MBARRIER_TX) arrival.tx = tl_emu_args_i32(&args);
  uint64_t state = tl_emu_mbarrier_arrive(address, &arrival, site);
  if (result) *(uint64_t *)result = state;
}

// PTX ISA, mbarrier.pending_count: of the phase that the state is of, before the arrival that returned it.
void tl_emu_op_mbarrier_pending_count(void *result, const void *operands, const tl_emu_site *site) {
  (void)site;
  tl_emu_args args = {operands, 0};
  *(uint32_t *)result = (uint32_t)(tl_emu_args_i64(&args) >> 32);
}

// expect_tx, and complete_tx as an instruction.
void tl_emu_op_mbarrier_tx(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  void *address = tl_emu_args_pointer(&args);
  int64_t bytes = tl_emu_args_i32(&args);
  tl_emu_arrival arrival = {.tx = site->binding->param & TL_EMU_MBARRIER_COMPLETE ? -bytes : bytes, .is_relaxed = true};
  tl_emu_mbarrier_arrive(address, &arrival, site);
}

// A phase is named by its state or by its parity; with the latter the one that is not complete, or the one before.
void tl_emu_op_mbarrier_wait(void *result, const void *operands, const tl_emu_site *site) {
  tl_emu_args args = {operands, 0};
  void *address = tl_emu_args_pointer(&args);
  int param = site->binding->param;
  uint32_t phase = tl_emu_mbarrier_phase(address, site);
  if (param & TL_EMU_MBARRIER_PARITY)
    phase -= (phase & 1) != (tl_emu_args_i32(&args) & 1);
  else
    phase = (uint32_t)tl_emu_args_i64(&args);
  bool done = tl_emu_mbarrier_test(address, phase, (param & TL_EMU_MBARRIER_TRY) != 0,
                                   (param & TL_EMU_MBARRIER_RELAXED) != 0, site);
  *(uint8_t *)result = done;
}

void tl_emu_op_fence_proxy_async(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  (void)site;
  tl_emu_fence_proxy_async(tl_emu_self->current->thread);
}
