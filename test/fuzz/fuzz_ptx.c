// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as PTX: the reader survives and reports exactly when it refuses; what it accepts prints to a text that
// reads back and prints the same, and is known to the table or not in both cases.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/launch/kernel_ptx.h"
#include "fuzz.h"

// What is known is translated, or refused with a report; LLVM takes what comes out.
static void translate(const tl_ptx_module *module, const tl_ptx_function *kernel, tl_diags *diags) {
  const tl_emu_ptx_options options = {.block = {32, 1, 1}, .contracts = true};
  const void **addresses = tl_xcalloc(module->num_variables + 1, sizeof *addresses);
  tl_strbuf text = {0};
  void *made = NULL;
  tl_status status = tl_emu_ptx_translate(module, kernel->name, &options, addresses, diags, &text);
  if (!status) {
    status = tl_emu_ptx_module(tl_strbuf_view(&text), &made);
    if (status) {
      fprintf(stderr, "%s\n%s\n", tl_status_message(status), tl_strbuf_c(&text));
      abort();
    }
    tl_emu_ptx_dispose(made);
  } else if (tl_status_code_of(status) != TL_STATUS_DIAGNOSTICS) {
    abort();
  }
  tl_status_free(status);
  tl_strbuf_fini(&text);
  free(addresses);
}

// The printed text of what was read; "" when it was refused.
static tl_strbuf round_trip(tl_str text, bool *out_known) {
  tl_sources sources;
  tl_sources_init(&sources);
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  tl_ptx_module *module = tl_ptx_parse(&sources, tl_sources_add(&sources, "fuzz", text), &diags);
  if ((module == NULL) != tl_diags_has_errors(&diags)) abort();
  *out_known = module && tl_ptx_check(module, TL_STR(""), &diags);
  if (*out_known == tl_diags_has_errors(&diags)) abort();
  tl_strbuf printed = {0};
  if (module) tl_ptx_print(module, &printed);
  for (uint32_t i = 0; *out_known && i < module->num_functions; i++)
    if (module->functions[i]->is_entry && module->functions[i]->has_body)
      translate(module, module->functions[i], &diags);
  tl_ptx_destroy(module);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return printed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bool known, known_again;
  tl_strbuf once = round_trip((tl_str){(const char *)data, size}, &known);
  if (once.len) {
    tl_strbuf twice = round_trip(tl_strbuf_view(&once), &known_again);
    if (known != known_again || strcmp(tl_strbuf_c(&once), tl_strbuf_c(&twice)) != 0) {
      fprintf(stderr, "printed\n%s\nthen\n%s\n", tl_strbuf_c(&once), tl_strbuf_c(&twice));
      abort();
    }
    tl_strbuf_fini(&twice);
  }
  tl_strbuf_fini(&once);
  return 0;
}
