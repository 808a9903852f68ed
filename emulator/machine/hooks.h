// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the machine calls of those that it does not know: the families of device ops and the checker, which keep
// something with threads, blocks and clusters. Not for single instructions: these call the machine. Private to the
// emulator.
#ifndef TL_EMULATOR_HOOKS_H
#define TL_EMULATOR_HOOKS_H

#include "emulator/machine/machine.h"

// Each may be NULL. Blocks and clusters are places of a worker, in which one after the other runs.
struct tl_emu_hooks {
  // The place is made; its blocks are there.
  void (*create_cluster)(tl_emu_cluster *cluster);
  // Before the first thread runs: forgets what the one before in that place left. First all blocks of a cluster begin.
  void (*begin_block)(tl_emu_block *block);
  void (*begin_cluster)(tl_emu_cluster *cluster);
  // The running thread has come to its end, and counts as live still; it is the last one of its block.
  void (*end_thread)(tl_emu_fiber *thread);
  void (*end_block)(tl_emu_block *block);
  // All threads have ended and everything has landed; or the launch was given up, and they are not `finished`.
  void (*end_cluster)(tl_emu_cluster *cluster, bool finished);
  // The place goes, in whatever state it is: frees what is kept with it. First all blocks.
  void (*destroy_block)(tl_emu_block *block);
  void (*destroy_cluster)(tl_emu_cluster *cluster);
};

// Calls the hook `member` of all that have it.
#define TL_EMU_CALL_HOOKS(launch, member, ...)                                            \
  do {                                                                                    \
    for (const tl_emu_hooks *const *tl_hooks_ = (launch)->hooks; *tl_hooks_; tl_hooks_++) \
      if ((*tl_hooks_)->member) (*tl_hooks_)->member(__VA_ARGS__);                        \
  } while (0)

#endif
