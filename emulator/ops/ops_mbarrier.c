// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The forms of mbarrier ops.
#include <stdlib.h>

#include "emulator/machine/args.h"
#include "emulator/ops/mbarrier.h"
#include "emulator/ops/ops.h"

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
  tl_emu_mbarrier_question question = {.phase = tl_emu_mbarrier_phase(address, site),
                                       .by_parity = (param & TL_EMU_MBARRIER_PARITY) != 0,
                                       .waits = (param & TL_EMU_MBARRIER_TRY) != 0,
                                       .is_relaxed = (param & TL_EMU_MBARRIER_RELAXED) != 0};
  if (question.by_parity)
    question.phase -= (question.phase & 1) != (tl_emu_args_i32(&args) & 1);
  else
    question.phase = (uint32_t)tl_emu_args_i64(&args);
  bool done = tl_emu_mbarrier_test(address, &question, site);
  *(uint8_t *)result = done;
}

// An arrival that waits for the copies before it.
typedef struct copies_arrival {
  tl_emu_deferred deferred;
  void *address;
  uint32_t num_issued;  // copies of the thread, when it came here
} copies_arrival;

static void land_arrival(tl_emu_deferred *operation, bool drop) {
  copies_arrival arrival = *(copies_arrival *)operation;
  free(operation);
  if (drop) return;
  tl_emu_copies_land(tl_emu_self->current, arrival.num_issued, arrival.deferred.site);
  tl_emu_arrival once = {.count = 1, .is_relaxed = true};  // what it releases is in the phase's clock already
  tl_emu_mbarrier_arrive(arrival.address, &once, arrival.deferred.site);
}

// PTX ISA, cp.async.mbarrier.arrive: the arrival happens when all cp.async that the thread issued before are complete.
// Without .noinc the phase expects one arrival more.
void tl_emu_op_cp_async_mbarrier(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  void *address = tl_emu_args_pointer(&args);
  tl_emu_mbarrier_promise(address, !site->binding->param, site);
  copies_arrival *arrival = tl_xcalloc(1, sizeof *arrival);
  *arrival = (copies_arrival){{.site = site, .land = land_arrival}, address, tl_emu_self->current->num_issued};
  tl_emu_defer(&arrival->deferred);
  if (tl_emu_self->launch->landing == TL_LANDING_EARLY) tl_emu_land(&arrival->deferred);
}

void tl_emu_op_fence_proxy_async(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  tl_emu_fence_proxy_async(tl_emu_self->current->thread, (uint32_t)site->binding->param);
  tl_emu_mbarrier_fence_init();
}

void tl_emu_op_fence_mbarrier_init(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  (void)site;
  tl_emu_fence(TL_EMU_FENCE_RELEASE);
  tl_emu_mbarrier_fence_init();
}
