// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/ptx/translate.h"

#include <inttypes.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ptx/translator.h"

// Shared memory of the module: retargeting lays it out. The window begins where the address has 32 zero bits.
static void declare_shared(ptx_translator *t, tl_strbuf *out) {
  tl_strbuf_append_c(out, "@ptx.window = external addrspace(3) global [0 x i8], align 16\n");
  for (uint32_t i = 0; i < t->module->num_variables; i++) {
    const tl_ptx_symbol *s = t->module->variables[i];
    if (s->space != TL_PTX_SPACE_SHARED) continue;
    bool is_external = s->is_extern || s->is_unsized;
    tl_strbuf_appendf(out, "@s%u = %s addrspace(3) global [%" PRIu64 " x i8]%s, align %u\n", s->id,
                      is_external ? "external" : "internal", is_external ? 0 : s->elements * tl_ptx_type_bytes(s->type),
                      is_external ? "" : " undef", s->align);
  }
}

// ---- places

static void append_name(tl_strbuf *out, tl_str name) {
  for (size_t i = 0; i < name.len; i++) {
    unsigned char c = (unsigned char)name.data[i];
    if (c < 32 || c == '"' || c == '\\')
      tl_strbuf_appendf(out, "\\%02X", c);
    else
      tl_strbuf_append_char(out, (char)c);
  }
}

// A file of the compiler is "uses/name", where uses says which uses of macros led there ("spec.yaml:20, spec.yaml:31").
static void append_file(tl_strbuf *out, uint32_t id, tl_str name) {
  size_t slash = SIZE_MAX;
  for (size_t i = 0; i < name.len; i++) {
    bool is_number = false;
    for (size_t k = i; k-- > 0 && name.data[k] >= '0' && name.data[k] <= '9';)
      is_number = k > 0 && name.data[k - 1] == ':';
    if (name.data[i] == '/' && is_number) slash = i;
  }
  tl_strbuf_appendf(out, "!%u = !DIFile(filename: \"", id);
  append_name(out, slash == SIZE_MAX ? name : tl_str_sub(name, slash + 1, name.len));
  tl_strbuf_append_c(out, "\", directory: \"");
  if (slash != SIZE_MAX) append_name(out, tl_str_sub(name, 0, slash));
  tl_strbuf_append_c(out, "\")\n");
}

// The file of a place: one node for each of the module's files, from `first` on, that of the PTX itself the first.
static void append_places(ptx_translator *t, tl_str own_name, tl_strbuf *out) {
  uint32_t first = t->next_metadata, unit = first + t->module->num_files + 1, type = unit + 1, flag = type + 1;
  uint32_t next = flag + 1, subprogram = 0;
  append_file(out, first, own_name);
  for (uint32_t i = 0; i < t->module->num_files; i++) append_file(out, first + 1 + i, t->module->files[i].name);
  tl_strbuf_appendf(out, "!%u = distinct !DICompileUnit(language: DW_LANG_C, file: !%u, emissionKind: NoDebug)\n", unit,
                    first);
  tl_strbuf_appendf(out, "!%u = !DISubroutineType(types: !{})\n!%u = !{i32 2, !\"Debug Info Version\", i32 3}\n", type,
                    flag);
  tl_strbuf_appendf(out, "!llvm.dbg.cu = !{!%u}\n!llvm.module.flags = !{!%u}\n", unit, flag);
  // The scope of a file in the function, made for its first place.
  uint32_t *scopes = tl_xcalloc(t->module->num_files + 1, sizeof *scopes);
  for (size_t i = 0; i < t->places.len; i++) {
    const ptx_place *place = &t->places.items[i];
    if (place->file == UINT32_MAX) {
      subprogram = place->id;
      memset(scopes, 0, (t->module->num_files + 1) * sizeof *scopes);
      tl_strbuf_appendf(out, "!%u = distinct !DISubprogram(name: \"", subprogram);
      append_name(out, place->function->name);
      tl_strbuf_appendf(out, "\", scope: !%u, file: !%u, line: 1, type: !%u, spFlags: DISPFlagDefinition, unit: !%u)\n",
                        first, first, type, unit);
      continue;
    }
    if (!scopes[place->file]) {
      scopes[place->file] = next++;
      tl_strbuf_appendf(out, "!%u = !DILexicalBlockFile(scope: !%u, file: !%u, discriminator: 0)\n",
                        scopes[place->file], subprogram, first + place->file);
    }
    tl_strbuf_appendf(out, "!%u = !DILocation(line: %u, scope: !%u)\n", place->id, place->line, scopes[place->file]);
  }
  free(scopes);
}

// ---- the whole

static void fini(ptx_translator *t) {
  for (size_t i = 0; i < t->declared.len; i++) free(t->declared.items[i]);
  for (size_t i = 0; i < t->structs.len; i++) free(t->structs.items[i]);
  tl_vec_fini(&t->declared);
  tl_vec_fini(&t->structs);
  tl_vec_fini(&t->flushed);
  tl_vec_fini(&t->wanted);
  tl_vec_fini(&t->unsaved);
  tl_vec_fini(&t->places);
  tl_strbuf_fini(&t->declarations);
  tl_strbuf_fini(&t->functions);
  tl_strbuf_fini(&t->entry);
  tl_strbuf_fini(&t->body);
}

tl_status tl_emu_ptx_translate(const tl_ptx_module *module, tl_str name, const tl_emu_ptx_options *options,
                               const void *const *addresses, tl_diags *diags, tl_strbuf *out) {
  const tl_ptx_function *kernel = tl_ptx_find_function(module, name);
  if (!kernel || !kernel->is_entry || !kernel->has_body)
    return tl_status_make(TL_STATUS_NOT_FOUND, "the PTX has no kernel '%.*s'", TL_STR_ARG(name));
  ptx_translator t = {.module = module, .options = options, .addresses = addresses, .diags = diags, .next_metadata = 1};
  const tl_source *source = diags->sources ? tl_sources_get(diags->sources, kernel->loc.source) : NULL;
  tl_ptx_translate_function(&t, kernel, true);
  for (size_t i = 0; i < t.wanted.len; i++) tl_ptx_translate_function(&t, t.wanted.items[i], false);
  if (!t.failed) {
    tl_strbuf_append_c(out, "target triple = \"nvptx64-nvidia-cuda\"\n");
    declare_shared(&t, out);
    tl_strbuf_append(out, tl_strbuf_view(&t.declarations));
    tl_strbuf_append(out, tl_strbuf_view(&t.functions));
    append_places(&t, tl_str_from(source ? tl_sources_short_name(diags->sources, source) : "ptx"), out);
  }
  bool failed = t.failed;
  fini(&t);
  return failed ? tl_status_make(TL_STATUS_DIAGNOSTICS, "the PTX cannot be run") : TL_OK;
}

// ---- the module

static tl_status llvm_failed(const char *what, char *message) {
  tl_status status = tl_status_make(TL_STATUS_INTERNAL, "the translation of PTX: %s: %s", what, message ? message : "");
  LLVMDisposeMessage(message);
  return status;
}

// Registers become values; nothing that reorders or removes accesses runs.
static tl_status promote(LLVMModuleRef module) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(module, "function(mem2reg)", NULL, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error) return TL_OK;
  char *message = LLVMGetErrorMessage(error);
  tl_status status = tl_status_make(TL_STATUS_INTERNAL, "the translation of PTX: %s", message);
  LLVMDisposeErrorMessage(message);
  return status;
}

void tl_emu_ptx_dispose(void *module) {
  LLVMContextRef context = LLVMGetModuleContext(module);
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
}

tl_status tl_emu_ptx_module(tl_str text, void **out_module) {
  LLVMContextRef context = LLVMContextCreate();
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text.data, text.len, "ptx");
  LLVMModuleRef module = NULL;
  char *message = NULL;
  *out_module = NULL;
  if (LLVMParseIRInContext(context, buffer, &module, &message)) {
    LLVMContextDispose(context);
    return llvm_failed("LLVM cannot read it", message);
  }
  // Half is gone when registers are values: what is left is verified.
  tl_status status = promote(module);
  if (!status && LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
    status = llvm_failed("LLVM refuses it", message);
  else if (!status)
    LLVMDisposeMessage(message);
  if (status)
    tl_emu_ptx_dispose(module);
  else
    *out_module = module;
  return status;
}
