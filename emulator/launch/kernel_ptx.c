// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/launch/kernel_ptx.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/launch/kernel.h"

static bool is_buffer(const tl_ptx_symbol *symbol) {
  return symbol->space == TL_PTX_SPACE_GLOBAL || symbol->space == TL_PTX_SPACE_CONST;
}

// Variables without an initialiser are zero (PTX ISA, Initializers).
static void initialise(const tl_ptx_module *module, const tl_ptx_symbol *symbol, void *const *variables) {
  uint8_t *at = variables[symbol->id];
  unsigned bytes = tl_ptx_type_bytes(symbol->type);
  memset(at, 0, tl_emu_size(at));
  for (uint32_t i = 0; i < symbol->num_values; i++, at += bytes) {
    const tl_ptx_initial *value = &symbol->values[i];
    uint64_t bits = value->bits;
    // Of shared memory only the place in its window would be known, and that at the launch.
    if (value->symbol && variables[value->symbol->id]) bits += (uint64_t)(uintptr_t)variables[value->symbol->id];
    if (value->function.len) bits += tl_ptx_function_address(module, value->function);
    memcpy(at, &bits, bytes < sizeof bits ? bytes : sizeof bits);
  }
}

static void **make_variables(const tl_ptx_module *module) {
  enum { ALIGN = 16, MAX_ALIGN = 4096 };
  void **variables = tl_xcalloc(module->num_variables + 1, sizeof *variables);
  for (uint32_t i = 0; i < module->num_variables; i++) {
    const tl_ptx_symbol *symbol = module->variables[i];
    if (!is_buffer(symbol)) continue;
    uint64_t bytes = symbol->elements * tl_ptx_type_bytes(symbol->type);
    size_t align = symbol->align < ALIGN ? ALIGN : symbol->align > MAX_ALIGN ? MAX_ALIGN : symbol->align;
    variables[i] = tl_emu_alloc(bytes ? (size_t)bytes : 1, align);
  }
  for (uint32_t i = 0; i < module->num_variables; i++)
    if (is_buffer(module->variables[i])) initialise(module, module->variables[i], variables);
  return variables;
}

static void free_variables(void **variables, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) tl_emu_free(variables[i]);
  free(variables);
}

tl_status tl_emu_kernel_create_ptx(const tl_ptx_module *module, const tl_manifest_kernel *manifest,
                                   const tl_emu_ptx_options *options, uint32_t checks, const tl_debug_info *debug,
                                   tl_diags *diags, tl_emu_kernel **out) {
  *out = NULL;
  void **variables = make_variables(module);
  tl_strbuf text = {0};
  void *device = NULL;
  tl_status status =
      tl_emu_ptx_translate(module, tl_str_from(manifest->name), options, (const void *const *)variables, diags, &text);
  if (!status) status = tl_emu_ptx_module(tl_strbuf_view(&text), &device);
  if (!status) status = tl_emu_kernel_create_module(device, manifest, checks, debug, out);
  tl_strbuf_fini(&text);
  if (status) {
    free_variables(variables, module->num_variables);
    return status;
  }
  (*out)->variables = variables;
  (*out)->num_variables = module->num_variables;
  return TL_OK;
}
