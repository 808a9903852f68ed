// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of device ops, by name or signature, with values as operands.
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/ptx/translator.h"

// "float", "void"; of several results the name of a struct.
static void append_result_type(ptx_translator *t, tl_strbuf *out, const char *signature, unsigned n) {
  if (n <= 1) {
    tl_strbuf_append_c(out, n ? tl_emu_letter_type(signature[0]) : "void");
    return;
  }
  tl_strbuf type = {0};
  for (unsigned i = 0; i < n; i++) tl_strbuf_appendf(&type, "%s%s", i ? ", " : "{", tl_emu_letter_type(signature[i]));
  tl_strbuf_append_char(&type, '}');
  size_t number = 0;
  while (number < t->structs.len && strcmp(t->structs.items[number], tl_strbuf_c(&type)) != 0) number++;
  tl_strbuf_appendf(out, "%%struct%zu", number);
  if (number < t->structs.len) {
    tl_strbuf_fini(&type);
    return;
  }
  tl_strbuf_appendf(&t->declarations, "%%struct%zu = type ", number);
  tl_strbuf_append(&t->declarations, tl_strbuf_view(&type));
  tl_strbuf_append_char(&t->declarations, '\n');
  tl_vec_push(&t->structs, tl_strbuf_take(&type));
}

// The call is too long for one line of tl_ptx_emit.
static ptx_value emit_call(ptx_translator *t, const char *name, const char *letters, const char *result,
                           const ptx_args *args) {
  ptx_value value = {{0}};
  tl_strbuf *out = &t->body;
  if (strcmp(result, "void") != 0) value = tl_ptx_next_value(t);
  tl_strbuf_appendf(out, value.text[0] ? "  %s = " : "  %s", value.text);
  tl_strbuf_appendf(out, "call %s @\"%s\"(", result, name);
  for (unsigned i = 0; i < args->n; i++) {
    if (i) tl_strbuf_append_c(out, ", ");
    tl_strbuf_append_c(out, tl_emu_letter_type(letters[i]));
    tl_strbuf_append_char(out, ' ');
    tl_strbuf_append_c(out, args->items[i].text);
  }
  tl_strbuf_append_char(out, ')');
  if (t->place) tl_strbuf_appendf(out, ", !dbg !%u", t->place);
  tl_strbuf_append_char(out, '\n');
  return value;
}

static void declare_op(ptx_translator *t, const char *name, const char *result, const char *letters, unsigned n) {
  for (size_t i = 0; i < t->declared.len; i++)
    if (!strcmp(t->declared.items[i], name)) return;
  tl_strbuf copy = {0};
  tl_strbuf_append_c(&copy, name);
  tl_vec_push(&t->declared, tl_strbuf_take(&copy));
  tl_strbuf_appendf(&t->declarations, "declare %s @\"%s\"(", result, name);
  for (unsigned i = 0; i < n; i++)
    tl_strbuf_appendf(&t->declarations, "%s%s", i ? ", " : "", tl_emu_letter_type(letters[i]));
  tl_strbuf_append_c(&t->declarations, ")\n");
}

void tl_ptx_call_signature(ptx_translator *t, const char *name, const char *signature, const ptx_args *args,
                           ptx_args *out) {
  unsigned results = (unsigned)strcspn(signature, "(");
  const char *letters = signature + results + 1;
  unsigned n = (unsigned)strcspn(letters, ")");
  if (n != args->n) {
    tl_ptx_unsupported(t, t->statement->loc, "'%s' takes %u operands, the instruction has %u", name, n, args->n);
    return;
  }
  tl_strbuf type = {0};
  append_result_type(t, &type, signature, results);
  declare_op(t, name, tl_strbuf_c(&type), letters, n);
  ptx_value value = emit_call(t, name, letters, tl_strbuf_c(&type), args);
  if (out) {
    out->n = results;
    out->items[0] = value;
    for (unsigned i = 0; results > 1 && i < results; i++) {
      out->items[i] = tl_ptx_next_value(t);
      tl_strbuf_append_c(&t->body, "  ");
      tl_strbuf_append_c(&t->body, out->items[i].text);
      tl_strbuf_append_c(&t->body, " = extractvalue ");
      tl_strbuf_append(&t->body, tl_strbuf_view(&type));
      tl_strbuf_appendf(&t->body, " %s, %u\n", value.text, i);
    }
  }
  tl_strbuf_fini(&type);
}

bool tl_ptx_call_op(ptx_translator *t, const char *name, const ptx_args *args, ptx_args *out) {
  const tl_emu_binding *binding = tl_emu_find_binding(name);
  if (!binding) {
    tl_ptx_unsupported(t, t->statement->loc, "the emulator has no binding for '%s'", name);
    return false;
  }
  tl_ptx_call_signature(t, name, binding->signature, args, out);
  return !t->failed;
}

ptx_value tl_ptx_call_scalar(ptx_translator *t, const char *name, const ptx_value *values, unsigned n) {
  ptx_args args = {.n = n}, result = {0};
  for (unsigned i = 0; i < n; i++) args.items[i] = values[i];
  return tl_ptx_call_op(t, name, &args, &result) ? result.items[0] : tl_ptx_value("poison");
}
