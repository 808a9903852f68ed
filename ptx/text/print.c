// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tree as text again. Constants are numbers by then, floats their bits; comments and sections are gone.
#include <inttypes.h>

#include "ptx/text/ptx.h"

static const char *const space_names[] = {
    [TL_PTX_SPACE_REG] = "reg",       [TL_PTX_SPACE_PARAM] = "param",   [TL_PTX_SPACE_LOCAL] = "local",
    [TL_PTX_SPACE_SHARED] = "shared", [TL_PTX_SPACE_GLOBAL] = "global", [TL_PTX_SPACE_CONST] = "const"};

static void print_value(tl_strbuf *out, const tl_ptx_symbol *of, const tl_ptx_initial *value) {
  if (value->symbol || value->function.len) {
    tl_str name = value->symbol ? value->symbol->name : value->function;
    tl_strbuf_appendf(out, value->is_generic ? "generic(%.*s)" : "%.*s", TL_STR_ARG(name));
    if (value->bits) tl_strbuf_appendf(out, "+%" PRId64, (int64_t)value->bits);
  } else if (tl_ptx_type_class(of->type) == TL_PTX_CLASS_FLOAT && tl_ptx_type_bits(of->type) == 64) {
    tl_strbuf_appendf(out, "0d%016" PRIX64, value->bits);
  } else if (of->type == TL_PTX_F32) {
    tl_strbuf_appendf(out, "0f%08" PRIX32, (uint32_t)value->bits);
  } else {
    tl_strbuf_appendf(out, "%" PRId64, (int64_t)value->bits);
  }
}

static void print_symbol(tl_strbuf *out, const tl_ptx_symbol *s) {
  tl_strbuf_appendf(out, ".%s ", space_names[s->space]);
  unsigned bytes = tl_ptx_type_bytes(s->type);
  if (s->space != TL_PTX_SPACE_REG && s->align != bytes) tl_strbuf_appendf(out, ".align %u ", s->align);
  uint64_t elements = s->elements;
  if (s->space != TL_PTX_SPACE_REG && !s->is_array && elements > 1) tl_strbuf_appendf(out, ".v%u ", (unsigned)elements);
  tl_strbuf_appendf(out, ".%s %.*s", tl_ptx_type_name(s->type), TL_STR_ARG(s->name));
  if (s->is_range) tl_strbuf_appendf(out, "<%" PRIu64 ">", elements);
  if (s->is_unsized)
    tl_strbuf_append_c(out, "[]");
  else if (s->is_array)
    tl_strbuf_appendf(out, "[%" PRIu64 "]", elements);
  if (!s->values) return;
  tl_strbuf_append_c(out, " = {");
  for (uint32_t i = 0; i < s->num_values; i++) {
    if (i) tl_strbuf_append_c(out, ", ");
    print_value(out, s, &s->values[i]);
  }
  tl_strbuf_append_char(out, '}');
}

static void print_operand(tl_strbuf *out, const tl_ptx_operand *operand);

static void print_items(tl_strbuf *out, const tl_ptx_operand *operand, const char *between) {
  for (uint32_t i = 0; i < operand->num_items; i++) {
    if (i) tl_strbuf_append_c(out, between);
    print_operand(out, &operand->items[i]);
  }
}

static void print_address(tl_strbuf *out, const tl_ptx_operand *operand) {
  tl_strbuf_append_char(out, '[');
  if (operand->symbol) tl_strbuf_append(out, operand->symbol->name);
  if (!operand->symbol || operand->value)
    tl_strbuf_appendf(out, "%s%" PRId64, operand->symbol ? "+" : "", (int64_t)operand->value);
  if (operand->num_items) tl_strbuf_append_c(out, ", ");
  print_items(out, operand, ", ");
  tl_strbuf_append_char(out, ']');
}

static void print_operand(tl_strbuf *out, const tl_ptx_operand *operand) {
  switch (operand->kind) {
    case TL_PTX_INTEGER:
      tl_strbuf_appendf(out, "%" PRId64, (int64_t)operand->value);
      break;
    case TL_PTX_FLOAT32:
      tl_strbuf_appendf(out, "0f%08" PRIX32, (uint32_t)operand->value);
      break;
    case TL_PTX_FLOAT64:
      tl_strbuf_appendf(out, "0d%016" PRIX64, operand->value);
      break;
    case TL_PTX_ADDRESS:
      print_address(out, operand);
      break;
    case TL_PTX_VECTOR:
      tl_strbuf_append_char(out, '{');
      print_items(out, operand, ", ");
      tl_strbuf_append_char(out, '}');
      break;
    case TL_PTX_LIST:
      tl_strbuf_append_char(out, '(');
      print_items(out, operand, ", ");
      tl_strbuf_append_char(out, ')');
      break;
    case TL_PTX_PAIR:
      print_items(out, operand, "|");
      break;
    case TL_PTX_VARIABLE:
      tl_strbuf_append(out, operand->text);
      if (operand->value) tl_strbuf_appendf(out, "+%" PRId64, (int64_t)operand->value);
      break;
    case TL_PTX_REGISTER:
    case TL_PTX_SPECIAL:
    case TL_PTX_LABEL:
    case TL_PTX_FUNCTION:
    case TL_PTX_SINK:
      if (operand->is_negated) tl_strbuf_append_char(out, '!');
      tl_strbuf_append(out, operand->text);
      break;
  }
}

static void print_instruction(tl_strbuf *out, const tl_ptx_statement *s) {
  tl_strbuf_append_char(out, '\t');
  if (s->symbol) tl_strbuf_appendf(out, "@%s%.*s ", s->is_negated ? "!" : "", TL_STR_ARG(s->symbol->name));
  for (uint32_t i = 0; i < s->num_words; i++) tl_strbuf_appendf(out, "%s%.*s", i ? "." : "", TL_STR_ARG(s->words[i]));
  for (uint32_t i = 0; i < s->num_operands; i++) {
    tl_strbuf_append_c(out, i ? ", " : " ");
    print_operand(out, &s->operands[i]);
  }
  tl_strbuf_append_c(out, ";\n");
}

static void print_statement(tl_strbuf *out, const tl_ptx_statement *s) {
  switch (s->kind) {
    case TL_PTX_INSTRUCTION:
      print_instruction(out, s);
      break;
    case TL_PTX_LABEL_HERE:
      tl_strbuf_appendf(out, "%.*s:\n", TL_STR_ARG(s->text));
      break;
    case TL_PTX_SCOPE_BEGIN:
      tl_strbuf_append_c(out, "\t{\n");
      break;
    case TL_PTX_SCOPE_END:
      tl_strbuf_append_c(out, "\t}\n");
      break;
    case TL_PTX_DECLARATION:
      tl_strbuf_append_c(out, s->symbol->is_extern ? "\t.extern " : "\t");
      print_symbol(out, s->symbol);
      tl_strbuf_append_c(out, ";\n");
      break;
    case TL_PTX_SOURCE_LINE:
      tl_strbuf_appendf(out, "\t.loc %u %u %u\n", s->file, s->source_line, s->column);
      break;
    case TL_PTX_PRAGMA:
      tl_strbuf_appendf(out, "\t.pragma \"%.*s\";\n", TL_STR_ARG(s->text));
      break;
    case TL_PTX_PROTOTYPE:
      tl_strbuf_appendf(out, "%.*s: %.*s;\n", TL_STR_ARG(s->text), TL_STR_ARG(s->prototype));
      break;
    case TL_PTX_BRANCHTARGETS:
      tl_strbuf_appendf(out, "%.*s: .branchtargets ", TL_STR_ARG(s->text));
      for (uint32_t i = 0; i < s->num_operands; i++)
        tl_strbuf_appendf(out, "%s%.*s", i ? ", " : "", TL_STR_ARG(s->operands[i].text));
      tl_strbuf_append_c(out, ";\n");
      break;
  }
}

static void print_parameters(tl_strbuf *out, tl_ptx_symbol *const *symbols, uint32_t n) {
  tl_strbuf_append_c(out, "(");
  for (uint32_t i = 0; i < n; i++) {
    if (i) tl_strbuf_append_c(out, ", ");
    print_symbol(out, symbols[i]);
  }
  tl_strbuf_append_c(out, ")");
}

static void print_extent(tl_strbuf *out, const char *name, const uint32_t extent[3]) {
  if (extent[0]) tl_strbuf_appendf(out, "\n.%s %u, %u, %u", name, extent[0], extent[1], extent[2]);
}

static void print_number(tl_strbuf *out, const char *name, uint32_t number) {
  if (number) tl_strbuf_appendf(out, "\n.%s %u", name, number);
}

static void print_function(tl_strbuf *out, const tl_ptx_function *f) {
  if (f->linkage.len) tl_strbuf_appendf(out, ".%.*s ", TL_STR_ARG(f->linkage));
  tl_strbuf_append_c(out, f->is_entry ? ".entry " : ".func ");
  if (f->num_returns) print_parameters(out, f->returns, f->num_returns);
  if (f->num_returns) tl_strbuf_append_char(out, ' ');
  tl_strbuf_append(out, f->name);
  print_parameters(out, f->params, f->num_params);
  if (f->is_noreturn) tl_strbuf_append_c(out, "\n.noreturn");
  print_extent(out, "maxntid", f->maxntid);
  print_extent(out, "reqntid", f->reqntid);
  print_extent(out, "reqnctapercluster", f->cluster);
  if (f->is_explicit_cluster) tl_strbuf_append_c(out, "\n.explicitcluster");
  print_number(out, "maxclusterrank", f->maxclusterrank);
  print_number(out, "minnctapersm", f->minnctapersm);
  print_number(out, "maxnctapersm", f->maxnctapersm);
  print_number(out, "maxnreg", f->maxnreg);
  if (!f->has_body) {
    tl_strbuf_append_c(out, ";\n");
    return;
  }
  tl_strbuf_append_c(out, "\n{\n");
  for (uint32_t i = 0; i < f->num_statements; i++) print_statement(out, &f->statements[i]);
  tl_strbuf_append_c(out, "}\n");
}

void tl_ptx_print(const tl_ptx_module *module, tl_strbuf *out) {
  tl_strbuf_appendf(out, ".version %d.%d\n.target %.*s\n.address_size 64\n", module->version / 10, module->version % 10,
                    TL_STR_ARG(module->target));
  for (uint32_t i = 0; i < module->num_variables; i++) {
    const tl_ptx_symbol *symbol = module->variables[i];
    if (symbol->is_of_function) continue;
    if (symbol->is_extern) tl_strbuf_append_c(out, ".extern ");
    print_symbol(out, symbol);
    tl_strbuf_append_c(out, ";\n");
  }
  for (uint32_t i = 0; i < module->num_functions; i++) print_function(out, module->functions[i]);
  for (uint32_t i = 0; i < module->num_files; i++)
    tl_strbuf_appendf(out, ".file %u \"%.*s\"\n", module->files[i].number, TL_STR_ARG(module->files[i].name));
}
