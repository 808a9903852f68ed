// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/device/ptx_kernel.h"

#include "support/status.h"

// What is wrong with a PTX, as a status.
static tl_status ptx_problem(const tl_diags *diags, tl_status status) {
  if (status && tl_status_code_of(status) != TL_STATUS_DIAGNOSTICS) return status;
  tl_status_free(status);
  tl_strbuf text = {0};
  tl_diags_print_text(diags, &text, false);
  while (text.len && text.data[text.len - 1] == '\n') text.len--;
  status = tl_status_make(TL_STATUS_UNSUPPORTED, "the PTX cannot be run by the emulator:\n%.*s", (int)text.len,
                          tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return status;
}

tl_status tl_ptx_kernel_create(tl_str ptx, const char *name, const tl_manifest_kernel *info,
                               const tl_emu_ptx_options *options, uint32_t checks, const tl_debug_info *debug,
                               tl_emu_kernel **out) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_ptx_module *module = tl_ptx_parse(&sources, tl_sources_add(&sources, name, ptx), &diags);
  tl_status status = TL_OK;
  bool ok = module && tl_ptx_check(module, tl_str_from(info->name), &diags);
  if (ok) status = tl_emu_kernel_create_ptx(module, info, options, checks, debug, &diags, out);
  if (!ok || status) status = ptx_problem(&diags, status);
  tl_ptx_destroy(module);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return status;
}
