// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Switching between stacks (x86-64 System V). A suspended stack is its stack pointer; below it lie the callee-saved
// registers. Fibers never move between OS threads.
#ifndef TL_EMULATOR_FIBER_H
#define TL_EMULATOR_FIBER_H

#include <stddef.h>

// Saves the running stack in `*save` and continues the one suspended as `load`.
void tl_emu_fiber_switch(void **save, void *load);

// The second half of the switch: takes the registers from the present stack and returns. Not to be called; a signal
// handler that sets the stack pointer to a suspended stack and the instruction pointer to here abandons what it
// interrupted.
void tl_emu_fiber_restore(void);

// Prepares a stack whose memory ends at `top` (16-byte aligned) so that switching to the result enters `entry`, which
// must never return.
void *tl_emu_fiber_prepare(void *top, void (*entry)(void));

#endif
