// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What instructions say of themselves: where in the source they come from, and the mark of those that carry shadows.
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "emulator/retarget/retarget.h"

char *tl_emu_file_of(LLVMValueRef instruction) {
  unsigned len = 0;
  const char *name = LLVMGetDebugLocLine(instruction) ? LLVMGetDebugLocFilename(instruction, &len) : NULL;
  if (!name || !len) return NULL;
  tl_strbuf file = {0};
  tl_strbuf_append(&file, (tl_str){name, len});
  return tl_strbuf_take(&file);
}

char *tl_emu_uses_of(LLVMValueRef instruction) {
  unsigned len = 0;
  const char *uses = LLVMGetDebugLocLine(instruction) ? LLVMGetDebugLocDirectory(instruction, &len) : NULL;
  if (!uses || !len) return NULL;
  tl_strbuf copy = {0};
  tl_strbuf_append(&copy, (tl_str){uses, len});
  return tl_strbuf_take(&copy);
}

static unsigned shadow_mark(const retarget *r) {
  static const char name[] = "tl.shadow";
  return LLVMGetMDKindIDInContext(r->context, name, sizeof name - 1);
}

void tl_emu_mark_shadow(const retarget *r, LLVMValueRef instruction) {
  LLVMValueRef empty = LLVMMetadataAsValue(r->context, LLVMMDNodeInContext2(r->context, NULL, 0));
  LLVMSetMetadata(instruction, shadow_mark(r), empty);
}

bool tl_emu_has_shadow_mark(const retarget *r, LLVMValueRef instruction) {
  return LLVMGetMetadata(instruction, shadow_mark(r)) != NULL;
}
