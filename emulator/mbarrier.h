// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbarrier objects (PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier), for the ops that
// arrive at them or complete transactions on them. Private to the emulator.
#ifndef TL_EMULATOR_MBARRIER_H
#define TL_EMULATOR_MBARRIER_H

#include "emulator/check.h"
#include "emulator/machine.h"

// The complete-tx operation of an asynchronous copy: `bytes` of it have arrived. `address`: of the mbarrier, in shared
// memory of any block of the running block's cluster. `async` (NULL: nothing is checked) releases what it did into the
// phase that is current. Call it with the issuer as the running thread, as landing does (tl_emu_deferred). Reports
// misuse and gives the launch up: no mbarrier at `address`, more transactions than a phase can count.
void tl_emu_mbarrier_complete_tx(void *address, uint32_t bytes, tl_emu_async *async, const tl_emu_site *site);
// Looks whether there is an mbarrier, for ops that will complete transactions on it later: reports if not.
void tl_emu_mbarrier_expect(const void *address, const tl_emu_site *site);

#endif
