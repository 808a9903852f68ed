// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands that are wrong, and places in shared memory: what the families of ops share. Private to the emulator.
#ifndef TL_EMULATOR_OPERAND_H
#define TL_EMULATOR_OPERAND_H

#include "emulator/machine/machine.h"

// Gives the launch up: "<op> (call 3, line 12): <text>".
void tl_emu_fail_at(const tl_emu_site *site, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
// The running block's cluster has `bytes` of shared memory at `address`, a multiple of `align`: returns the block.
// `what`: "destination". Gives the launch up if not.
tl_emu_block *tl_emu_bulk_locate(const void *address, size_t bytes, size_t align, const char *what,
                                 const tl_emu_site *site);

#endif
