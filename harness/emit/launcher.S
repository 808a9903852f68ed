/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
   The text of the launcher, which goes into every generated file. */
  .section .rodata
  .globl tl_c_launcher_text
  .hidden tl_c_launcher_text
tl_c_launcher_text:
  .incbin "harness/emit/launcher.h"
  .incbin "harness/emit/launcher_checks.h"
  .byte 0
  .globl tl_c_launcher_ffi_text
  .hidden tl_c_launcher_ffi_text
tl_c_launcher_ffi_text:
  .incbin "harness/emit/launcher_ffi.h"
  .byte 0
  .section .note.GNU-stack,"",@progbits
