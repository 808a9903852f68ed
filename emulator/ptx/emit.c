// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writing LLVM's text.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emulator/ptx/translator.h"

void tl_ptx_unsupported(ptx_translator *t, tl_loc loc, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tl_diag_report(t->diags, TL_DIAG_PTX_UNSUPPORTED, loc, "%s", text);
  t->failed = true;
}

static void append_v(tl_strbuf *out, const char *format, va_list args) {
  char text[512];
  int len = vsnprintf(text, sizeof text, format, args);
  tl_strbuf_append(out, (tl_str){text, len < (int)sizeof text ? (size_t)len : sizeof text - 1});
}

static void append_place(ptx_translator *t) {
  if (t->place) tl_strbuf_appendf(&t->body, ", !dbg !%u", t->place);
  tl_strbuf_append_char(&t->body, '\n');
}

ptx_value tl_ptx_next_value(ptx_translator *t) {
  char digits[12];
  unsigned n = 0;
  uint32_t number = t->next_value++;
  do digits[n++] = (char)('0' + number % 10);
  while (number /= 10);
  ptx_value value = {"%t"};
  for (unsigned i = 0; i < n; i++) value.text[2 + i] = digits[n - 1 - i];
  value.text[2 + n] = '\0';
  return value;
}

static ptx_value append_value(ptx_translator *t, const char *format, va_list args) {
  ptx_value value = tl_ptx_next_value(t);
  tl_strbuf_append_c(&t->body, "  ");
  tl_strbuf_append_c(&t->body, value.text);
  tl_strbuf_append_c(&t->body, " = ");
  append_v(&t->body, format, args);
  return value;
}

ptx_value tl_ptx_emit(ptx_translator *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ptx_value value = append_value(t, format, args);
  va_end(args);
  tl_strbuf_append_char(&t->body, '\n');
  return value;
}

ptx_value tl_ptx_emit_placed(ptx_translator *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ptx_value value = append_value(t, format, args);
  va_end(args);
  append_place(t);
  return value;
}

// What registers hold, and their variables do not yet, nobody will read.
static void drop_variables(ptx_translator *t) {
  for (size_t i = 0; i < t->unsaved.len; i++) t->values[t->unsaved.items[i]].is_unsaved = false;
  tl_vec_clear(&t->unsaved);
}

void tl_ptx_save_variables(ptx_translator *t) {
  for (size_t i = 0; i < t->unsaved.len; i++) {
    const ptx_register *r = &t->values[t->unsaved.items[i]];
    tl_strbuf_appendf(&t->body, "  store %s %s, ptr %%r%u\n", r->type, r->value.text, t->unsaved.items[i]);
  }
  drop_variables(t);
}

void tl_ptx_emit_void(ptx_translator *t, const char *format, ...) {
  if (!strncmp(format, "br ", 3)) tl_ptx_save_variables(t);
  if (!strcmp(format, "ret void") || !strcmp(format, "unreachable")) drop_variables(t);
  tl_strbuf_append_c(&t->body, "  ");
  va_list args;
  va_start(args, format);
  append_v(&t->body, format, args);
  va_end(args);
  append_place(t);
}

ptx_value tl_ptx_value(const char *format, ...) {
  ptx_value value;
  va_list args;
  va_start(args, format);
  vsnprintf(value.text, sizeof value.text, format, args);
  va_end(args);
  return value;
}

ptx_value tl_ptx_variable(const tl_ptx_symbol *symbol) {
  return tl_ptx_value("%%v%u", symbol->id);
}

ptx_value tl_ptx_float_constant(tl_ptx_type type, uint64_t bits) {
  if (type == TL_PTX_F16) return tl_ptx_value("0xH%04X", (unsigned)(bits & 0xffff));
  if (type == TL_PTX_BF16) return tl_ptx_value("0xR%04X", (unsigned)(bits & 0xffff));
  if (type == TL_PTX_F64) return tl_ptx_value("0x%016" PRIX64, bits);
  return tl_ptx_value("bitcast (i32 %u to float)", (unsigned)bits);
}

uint32_t tl_ptx_new_block(ptx_translator *t) {
  return t->next_block++;
}

void tl_ptx_open_block(ptx_translator *t, uint32_t number) {
  if (!t->ends) tl_ptx_emit_void(t, "br label %%b%u", number);
  tl_strbuf_appendf(&t->body, "b%u:\n", number);
  t->ends = false;
  t->run++;
}

void tl_ptx_declare_function(ptx_translator *t, const char *name, const char *format, ...) {
  for (size_t i = 0; i < t->declared.len; i++)
    if (!strcmp(t->declared.items[i], name)) return;
  tl_strbuf copy = {0};
  tl_strbuf_append_c(&copy, name);
  tl_vec_push(&t->declared, tl_strbuf_take(&copy));
  tl_strbuf_append_c(&t->declarations, "declare ");
  va_list args;
  va_start(args, format);
  append_v(&t->declarations, format, args);
  va_end(args);
  tl_strbuf_append_char(&t->declarations, '\n');
}

const char *tl_ptx_llvm_type(tl_ptx_type type) {
  static const char *const names[TL_PTX_NUM_TYPES] = {[TL_PTX_PRED] = "i1",
                                                      [TL_PTX_B8] = "i8",
                                                      [TL_PTX_B16] = "i16",
                                                      [TL_PTX_B32] = "i32",
                                                      [TL_PTX_B64] = "i64",
                                                      [TL_PTX_B128] = "i128",
                                                      [TL_PTX_U8] = "i8",
                                                      [TL_PTX_U16] = "i16",
                                                      [TL_PTX_U32] = "i32",
                                                      [TL_PTX_U64] = "i64",
                                                      [TL_PTX_S8] = "i8",
                                                      [TL_PTX_S16] = "i16",
                                                      [TL_PTX_S32] = "i32",
                                                      [TL_PTX_S64] = "i64",
                                                      [TL_PTX_F16] = "half",
                                                      [TL_PTX_BF16] = "bfloat",
                                                      [TL_PTX_TF32] = "i32",
                                                      [TL_PTX_F32] = "float",
                                                      [TL_PTX_F64] = "double",
                                                      [TL_PTX_F16X2] = "<2 x half>",
                                                      [TL_PTX_BF16X2] = "<2 x bfloat>",
                                                      [TL_PTX_U16X2] = "<2 x i16>",
                                                      [TL_PTX_S16X2] = "<2 x i16>",
                                                      [TL_PTX_E4M3X2] = "i16",
                                                      [TL_PTX_E5M2X2] = "i16"};
  return names[type] ? names[type] : "void";
}

const char *tl_ptx_suffix(tl_ptx_type type) {
  switch (type) {
    case TL_PTX_F16:
      return "f16";
    case TL_PTX_BF16:
      return "bf16";
    case TL_PTX_F32:
      return "f32";
    case TL_PTX_F64:
      return "f64";
    default:
      return tl_ptx_llvm_type(type);
  }
}

ptx_value tl_ptx_intrinsic(ptx_translator *t, const char *name, tl_ptx_type type, const ptx_value *args, unsigned n) {
  const char *llvm = tl_ptx_llvm_type(type);
  char full[64];
  snprintf(full, sizeof full, "llvm.%s.%s", name, tl_ptx_suffix(type));
  // Counting zeros and the absolute value take a flag: that zero, and the least number, have a result.
  bool has_flag = !strcmp(name, "ctlz") || !strcmp(name, "abs");
  tl_ptx_declare_function(t, full, "%s @%s(%s%s%s%s%s%s)", llvm, full, llvm, n > 1 ? ", " : "", n > 1 ? llvm : "",
                          n > 2 ? ", " : "", n > 2 ? llvm : "", has_flag ? ", i1" : "");
  tl_strbuf operands = {0};
  for (unsigned i = 0; i < n; i++) tl_strbuf_appendf(&operands, "%s%s %s", i ? ", " : "", llvm, args[i].text);
  if (has_flag) tl_strbuf_append_c(&operands, ", i1 false");
  ptx_value result = tl_ptx_emit(t, "call %s @%s(%s)", llvm, full, tl_strbuf_c(&operands));
  tl_strbuf_fini(&operands);
  return result;
}
