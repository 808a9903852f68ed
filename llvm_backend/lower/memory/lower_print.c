// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// print and assert: calls of functions of the device's runtime (vprintf and __assertfail of CUDA C++).
#include "llvm_backend/lower/memory/lower_print.h"

#include <string.h>

#include "llvm_backend/lower/value/lower_arith.h"

LLVMValueRef tl_lower_text(tl_lower *l, tl_str text) {
  tl_session *s = l->session;
  LLVMValueRef bytes = LLVMConstStringInContext2(s->context, text.data, text.len, false);
  LLVMValueRef global = LLVMAddGlobalInAddressSpace(s->module, LLVMTypeOf(bytes), "tl_text", TL_ADDRSPACE_GLOBAL);
  LLVMSetInitializer(global, bytes);
  LLVMSetGlobalConstant(global, true);
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  LLVMSetUnnamedAddress(global, LLVMGlobalUnnamedAddr);
  LLVMSetAlignment(global, 1);
  return LLVMConstAddrSpaceCast(global, s->generic_ptr);
}

// A value as vprintf takes it, 8 bytes wide, and its conversion.
static LLVMValueRef promoted(tl_lower *l, const tl_value *value, int32_t e, const char **out_conversion) {
  tl_session *s = l->session;
  LLVMValueRef item = tl_lower_get(l, value, e);
  *out_conversion = "%lld";
  if (value->type->kind == TL_TYPE_INDEX) return tl_lower_index_as(l, l->builder, item, s->i64);
  tl_dtype dtype = value->type->dtype;
  if (tl_dtype_is_float(dtype)) {
    // As many digits as tell two neighbours apart.
    *out_conversion = dtype == TL_DTYPE_F64 ? "%.17g" : dtype == TL_DTYPE_F32 ? "%.9g" : "%.5g";
    LLVMValueRef wide = item;
    if (dtype != TL_DTYPE_F64) tl_lower_convert(l, &item, dtype, TL_DTYPE_F32, 1, &wide);
    return dtype == TL_DTYPE_F64 ? wide : LLVMBuildFPExt(l->builder, wide, s->f64, "");
  }
  if (dtype == TL_DTYPE_U64) *out_conversion = "%llu";
  if (tl_dtype_bits(dtype) == 64) return item;
  return tl_dtype_is_signed_int(dtype) ? LLVMBuildSExt(l->builder, item, s->i64, "")
                                       : LLVMBuildZExt(l->builder, item, s->i64, "");
}

// The format of the op's text, with a conversion for each `{}`.
static void append_format(tl_strbuf *out, const char *text, const char *const *conversions) {
  for (const char *c = text; *c; c++) {
    if (*c == '%') {
      tl_strbuf_append_c(out, "%%");
    } else if (c[0] == '{' && c[1] == '}') {
      tl_strbuf_append_c(out, *conversions++);
      c++;
    } else {
      tl_strbuf_append_char(out, *c);
      if (c[0] == '{' && c[1] == '{') c++;
    }
  }
  tl_strbuf_append_char(out, '\n');
}

// CUDA C++ Programming Guide, "Formatted Output": "at most 32 arguments in addition to the format string".
enum { MAX_PRINTED_VALUES = 32 };

static void print_one(tl_lower *l, tl_op *op, int32_t e) {
  if (op->num_operands > MAX_PRINTED_VALUES) {
    tl_lower_unsupported(l, op, "one `print` writes at most 32 values, those of indices around it included");
    return;
  }
  tl_session *s = l->session;
  const char **conversions = TL_NEW_ARRAY(&l->arena, const char *, op->num_operands + 1);
  LLVMTypeRef slots = LLVMArrayType2(s->i64, op->num_operands ? op->num_operands : 1);
  LLVMValueRef memory = LLVMBuildAlloca(l->entry, slots, "");
  LLVMSetAlignment(memory, 8);
  for (uint32_t i = 0; i < op->num_operands; i++) {
    LLVMValueRef value = promoted(l, tl_op_operand(op, i), e, &conversions[i]), at = tl_session_i32(s, i);
    LLVMValueRef slot = LLVMBuildGEP2(l->builder, s->i64, memory, &at, 1, "");
    LLVMSetAlignment(LLVMBuildStore(l->builder, value, slot), 8);
  }
  tl_strbuf format;
  tl_strbuf_init(&format);
  append_format(&format, tl_op_str(op, TL_ATTR_TEXT), conversions);
  LLVMValueRef args[2] = {tl_lower_text(l, tl_strbuf_view(&format)), memory};
  tl_strbuf_fini(&format);
  tl_session_call_device(s, l->builder, TL_DEVOP_VPRINTF, args, 2);
}

// Who speaks: in a parallel the element's owner, outside one thread or each.
static LLVMValueRef speaker(tl_lower *l, const tl_op *op) {
  if (l->parallel) return l->parallel->place.owner;
  return tl_op_has(op, TL_ATTR_UNIFORM) ? tl_lower_is_first_thread(l) : NULL;
}

void tl_lower_op_PRINT(tl_lower *l, tl_op *op) {
  int32_t width = l->parallel ? l->parallel->width : 1;
  tl_guard guard = tl_lower_guard_begin(l, speaker(l, op));
  for (int32_t e = 0; e < width; e++) print_one(l, op, e);
  tl_lower_guard_end(l, &guard);
}

void tl_lower_op_ASSERT(tl_lower *l, tl_op *op) {
  tl_session *s = l->session;
  // One answer for the whole group is asked for once.
  int32_t count = tl_lower_len(l, tl_op_operand(op, 0));
  for (int32_t e = 0; e < count; e++) {
    LLVMValueRef fails = LLVMBuildNot(l->builder, tl_lower_get(l, tl_op_operand(op, 0), e), "");
    tl_guard guard = tl_lower_guard_begin(l, tl_lower_and(l, speaker(l, op), fails));
    LLVMValueRef args[5] = {tl_lower_text(l, tl_str_from(tl_op_str(op, TL_ATTR_TEXT))),
                            tl_lower_text(l, tl_str_from(tl_op_str(op, TL_ATTR_NAME))),
                            tl_session_i32(s, tl_op_int(op, TL_ATTR_LINE, 0)),
                            tl_lower_text(l, tl_str_from(tl_op_str(l->kernel, TL_ATTR_NAME))), tl_session_i64(s, 1)};
    tl_session_call_device(s, l->builder, TL_DEVOP_ASSERTFAIL, args, 5);
    tl_lower_guard_end(l, &guard);
  }
}
