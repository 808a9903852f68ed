// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PTX to the device module that retargeting takes (docs/decisions/0020-ptx-front-end.md).
#ifndef TL_EMULATOR_PTX_TRANSLATE_H
#define TL_EMULATOR_PTX_TRANSLATE_H

#include "ptx/table/table.h"
#include "support/status.h"

typedef struct tl_emu_ptx_options {
  uint32_t block[3];  // threads; how %tid is made of the number of a thread
} tl_emu_ptx_options;

// The text of an LLVM module with the kernel `name` and the functions that it calls. `module` was checked.
// `addresses`: of the module's variables in .global and .const, by id. DIAGNOSTICS after reports of what cannot run.
TL_MUST_USE tl_status tl_emu_ptx_translate(const tl_ptx_module *module, tl_str name, const tl_emu_ptx_options *options,
                                           const void *const *addresses, tl_diags *diags, tl_strbuf *out);
// The text as bitcode; free() the bytes. INTERNAL when LLVM refuses it.
TL_MUST_USE tl_status tl_emu_ptx_bitcode(tl_str text, char **out_bytes, size_t *out_len);

#endif
