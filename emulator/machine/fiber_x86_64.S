# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# void tl_emu_fiber_switch(void **save, void *load)
# Only callee-saved registers (System V psABI, x86-64, 3.2.1): the caller has saved the others. The order of the pushes is
# known to tl_emu_fiber_prepare.
  .text
  .globl tl_emu_fiber_switch
  .hidden tl_emu_fiber_switch
  .type tl_emu_fiber_switch, @function
tl_emu_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  .globl tl_emu_fiber_restore
  .hidden tl_emu_fiber_restore
  .type tl_emu_fiber_restore, @function
tl_emu_fiber_restore:
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size tl_emu_fiber_restore, . - tl_emu_fiber_restore
  .size tl_emu_fiber_switch, . - tl_emu_fiber_switch
  .section .note.GNU-stack, "", @progbits
