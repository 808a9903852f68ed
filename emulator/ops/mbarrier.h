// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbarrier objects (PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier). Private to the
// emulator.
#ifndef TL_EMULATOR_MBARRIER_H
#define TL_EMULATOR_MBARRIER_H

#include "emulator/machine/hooks.h"
#include "emulator/machine/machine.h"
#include "emulator/sanitize/sanitize.h"

// What a thread arrives with.
typedef struct tl_emu_arrival {
  uint32_t count;    // of arrivals
  int64_t tx;        // bytes that the phase expects on top
  bool drops;        // later phases expect so many arrivals less
  bool is_relaxed;   // orders nothing
  bool may_not_end;  // the phase must not complete by it
} tl_emu_arrival;

void tl_emu_mbarrier_init(void *address, uint32_t count, const tl_emu_site *site);
// The running thread fences the initialisations that it has made, so that the copy engine knows of them (PTX ISA,
// "membar / fence": fence.mbarrier_init; a fence between the proxies does, too).
void tl_emu_mbarrier_fence_init(void);
void tl_emu_mbarrier_invalidate(void *address, const tl_emu_site *site);
// The running thread arrives (count 0: only expects or completes transactions). `address`: of the mbarrier, in shared
// memory of any block of the cluster. Returns the state before: the number of the phase and, 32 bits up, the
// arrivals that it lacked.
uint64_t tl_emu_mbarrier_arrive(void *address, const tl_emu_arrival *arrival, const tl_emu_site *site);
// The phase of the running block's mbarrier that is not complete.
uint32_t tl_emu_mbarrier_phase(void *address, const tl_emu_site *site);
// How a wait asks for a phase.
typedef struct tl_emu_mbarrier_question {
  uint32_t phase;
  bool by_parity;   // the kernel names it so, which cannot tell it from the one after the next
  bool waits;       // the thread may be parked until the phase is complete
  bool is_relaxed;  // orders nothing
} tl_emu_mbarrier_question;

// Whether the phase is complete. Acquires what was released into it.
bool tl_emu_mbarrier_test(void *address, const tl_emu_mbarrier_question *question, const tl_emu_site *site);
// The running thread will arrive once the copies that it has issued so far have landed; releases them into the current
// phase. `adds`: the phase expects one arrival more for it.
void tl_emu_mbarrier_promise(void *address, bool adds, const tl_emu_site *site);
// The complete-tx operation of an asynchronous copy: `bytes` of it have arrived. `async` (NULL: nothing is checked)
// releases what it did into the phase that is current. Call it with the issuer as the running thread, as landing does
// (tl_emu_deferred). Reports misuse and gives the launch up: no mbarrier at `address`, more transactions than a phase
// can count.
void tl_emu_mbarrier_complete_tx(void *address, uint32_t bytes, tl_emu_async *async, const tl_emu_site *site);
// Looks whether there is an mbarrier that the copy engine knows of, for ops that will complete transactions on it
// later: reports if not.
void tl_emu_mbarrier_expect(const void *address, const tl_emu_site *site);
extern const tl_emu_hooks tl_emu_mbarrier_hooks;

#endif
