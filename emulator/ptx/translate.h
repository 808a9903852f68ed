// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PTX to the device module that retargeting takes (docs/decisions/0020-ptx-front-end.md).
#ifndef TL_EMULATOR_PTX_TRANSLATE_H
#define TL_EMULATOR_PTX_TRANSLATE_H

#include "ptx/table/table.h"
#include "support/status.h"

// A part of a kernel's parameter that is launched as an argument of its own: a field of a struct, or the whole.
typedef struct tl_emu_ptx_field {
  uint32_t param, offset, bytes;
} tl_emu_ptx_field;

typedef struct tl_emu_ptx_options {
  uint32_t block[3];  // threads; how %tid is made of the number of a thread
  bool
      contracts;  // a product and a sum that leave it open are one fma (PTX ISA, add, mul: without a rounding modifier)
  const tl_emu_ptx_field
      *fields;  // one for each argument of the launch, by parameter and offset; NULL: parameters as they are
  uint32_t num_fields;
} tl_emu_ptx_options;

// The text of an LLVM module with the kernel `name` and the functions that it calls. `module` was checked.
// `addresses`: of the module's variables in .global and .const, by id. DIAGNOSTICS after reports of what cannot run.
TL_MUST_USE tl_status tl_emu_ptx_translate(const tl_ptx_module *module, tl_str name, const tl_emu_ptx_options *options,
                                           const void *const *addresses, tl_diags *diags, tl_strbuf *out);
// The text as an LLVMModuleRef in a context of its own, with registers as values. INTERNAL when LLVM refuses it.
TL_MUST_USE tl_status tl_emu_ptx_module(tl_str text, void **out_module);
// Disposes of the module and its context.
void tl_emu_ptx_dispose(void *module);

#endif
