// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tile IR as text: one op a line. docs/ir.md has the grammar; parse.c reads it back.
#include <string.h>

#include "ir/target.h"
#include "ir/text/text.h"
#include "ir/text/value_names.h"

typedef struct printer {
  tl_strbuf *out;
  tl_value_names names;
  const tl_verify_result *errors;  // may be NULL
  bool with_locs;
} printer;

static void print_indent(printer *p, int depth) {
  for (int i = 0; i < depth; i++) tl_strbuf_append_c(p->out, "  ");
}

static void print_value(printer *p, const tl_value *value) {
  const char *name = value ? tl_value_names_get(&p->names, value) : NULL;
  tl_strbuf_append_char(p->out, '%');
  // Only IR that the verifier refuses has such values; no parsable name, so that nobody mistakes it.
  tl_strbuf_append_c(p->out, name ? name : "<undefined>");
}

static void print_ints(const int64_t *items, int32_t len, tl_strbuf *out) {
  tl_strbuf_append_char(out, '[');
  for (int32_t i = 0; i < len; i++) tl_strbuf_appendf(out, i ? ", %lld" : "%lld", (long long)items[i]);
  tl_strbuf_append_char(out, ']');
}

static void print_dict(const tl_attr *attr, tl_strbuf *out) {
  tl_strbuf_append_char(out, '{');
  for (int32_t i = 0; i < attr->v.dict.len; i++) {
    const tl_dict_entry *entry = &attr->v.dict.entries[i];
    if (i) tl_strbuf_append_c(out, ", ");
    tl_strbuf_append_json(out, tl_str_from(entry->name));
    tl_strbuf_append_c(out, " = ");
    if (entry->kind == TL_ATTRKIND_STR) {
      tl_strbuf_append_json(out, tl_str_from(entry->s));
    } else if (entry->kind == TL_ATTRKIND_INTS) {
      print_ints(entry->items, entry->len, out);
    } else {
      tl_strbuf_appendf(out, "%lld", (long long)entry->i);
    }
  }
  tl_strbuf_append_char(out, '}');
}

static void print_attr(const tl_attr *attr, tl_strbuf *out) {
  tl_attr_kind kind = tl_attr_key_kind(attr->key);
  tl_strbuf_append_c(out, tl_attr_key_text(attr->key));
  if (kind == TL_ATTRKIND_UNIT) return;
  tl_strbuf_append_c(out, " = ");
  switch (kind) {
    case TL_ATTRKIND_UNIT:
      break;
    case TL_ATTRKIND_INT:
      tl_strbuf_appendf(out, "%lld", (long long)attr->v.i);
      break;
    case TL_ATTRKIND_VALUE:
      if (attr->is_float) {
        tl_strbuf_append_double(out, attr->v.f);
      } else {
        tl_strbuf_appendf(out, "%lld", (long long)attr->v.i);
      }
      break;
    case TL_ATTRKIND_STR:
      tl_strbuf_append_json(out, tl_str_from(attr->v.s));
      break;
    case TL_ATTRKIND_INTS:
      print_ints(attr->v.ints.items, attr->v.ints.len, out);
      break;
    case TL_ATTRKIND_LAYOUT:
      tl_layout_print(attr->v.layout, out);
      break;
    case TL_ATTRKIND_SWIZZLE:
      tl_shared_layout_print(attr->v.shared, out);
      break;
    case TL_ATTRKIND_INSTRUCTION:
      tl_instruction_print(attr->v.inst, out);
      break;
    case TL_ATTRKIND_DICT:
      print_dict(attr, out);
      break;
    case TL_ATTRKIND_ENUM: {
      const char *text = tl_ir_enum_text(tl_attr_key_enum(attr->key), (int)attr->v.i);
      tl_strbuf_append_c(out, text ? text : "?");
      break;
    }
  }
}

static void print_operands(printer *p, const tl_op *op) {
  bool bare = tl_op_prints_bare(op->code);
  uint32_t at = 0;
  for (int g = 0; g < tl_op_info_of(op->code)->num_groups; g++) {
    if (op->group_sizes[g] == 0) continue;
    if (bare) {
      tl_strbuf_append_c(p->out, g ? ", " : " ");
    } else {
      tl_strbuf_appendf(p->out, " %s(", tl_op_info_of(op->code)->groups[g].name);
    }
    for (uint32_t i = 0; i < op->group_sizes[g]; i++) {
      if (i) tl_strbuf_append_c(p->out, ", ");
      print_value(p, op->operands[at++].value);
    }
    if (!bare) tl_strbuf_append_char(p->out, ')');
  }
}

static void print_op(printer *p, const tl_op *op, int depth);

static void print_errors(printer *p, const tl_op *op, int depth) {
  if (p->errors == NULL) return;
  for (size_t i = 0; i < p->errors->errors.len; i++) {
    const tl_verify_error *error = &p->errors->errors.items[i];
    if (error->op != op) continue;
    print_indent(p, depth);
    tl_strbuf_appendf(p->out, "// error: %s\n", error->text);
  }
}

static void print_region(printer *p, const tl_op *op, uint32_t index, int depth) {
  const tl_block *block = op->regions[index];
  tl_strbuf_append_c(p->out, " do");
  for (uint32_t i = 0; i < block->num_args; i++) {
    tl_strbuf_append_c(p->out, i ? ", " : "(");
    print_value(p, block->args[i]);
    tl_strbuf_append_c(p->out, ": ");
    tl_type_print(block->args[i]->type, p->out);
  }
  tl_strbuf_append_c(p->out, block->num_args ? ") {\n" : " {\n");
  if (index == 0) print_errors(p, op, depth + 1);
  for (const tl_op *inner = block->first; inner; inner = inner->next) print_op(p, inner, depth + 1);
  print_indent(p, depth);
  tl_strbuf_append_char(p->out, '}');
}

static void print_op(printer *p, const tl_op *op, int depth) {
  print_indent(p, depth);
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (i) tl_strbuf_append_c(p->out, ", ");
    print_value(p, &op->results[i]);
  }
  if (op->num_results) tl_strbuf_append_c(p->out, " = ");
  tl_strbuf_append_c(p->out, tl_op_info_of(op->code)->name);
  print_operands(p, op);
  for (uint32_t i = 0; i < op->num_attrs; i++) {
    tl_strbuf_append_c(p->out, i ? ", " : " {");
    print_attr(&op->attrs[i], p->out);
  }
  if (op->num_attrs) tl_strbuf_append_char(p->out, '}');
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_strbuf_append_c(p->out, i ? ", " : " : ");
    tl_type_print(op->results[i].type, p->out);
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    // An empty last region of several is left out.
    bool is_empty = op->regions[r]->first == NULL && op->regions[r]->num_args == 0;
    if (r > 0 && r + 1 == op->num_regions && is_empty) continue;
    print_region(p, op, r, depth);
  }
  if (p->with_locs && op->loc.source != 0) {
    tl_strbuf_appendf(p->out, " loc(%u:%u+%u)", op->loc.source, op->loc.offset, op->loc.length);
  }
  tl_strbuf_append_char(p->out, '\n');
  if (op->num_regions == 0) print_errors(p, op, depth);
}

static void print_module(const tl_module *module, const tl_verify_result *errors, bool with_locs, tl_strbuf *out) {
  printer p = {.out = out, .errors = errors, .with_locs = with_locs};
  tl_value_names_init(&p.names, module->body);
  tl_strbuf_appendf(out, "module %s", module->level ? "scheduled" : "tile");
  if (module->target) tl_strbuf_appendf(out, " %s", module->target->name);
  tl_strbuf_append_char(out, '\n');
  for (const tl_op *op = module->body->first; op; op = op->next) print_op(&p, op, 0);
  tl_value_names_fini(&p.names);
}

void tl_module_print(const tl_module *module, tl_strbuf *out) {
  print_module(module, NULL, false, out);
}

void tl_module_print_with_locs(const tl_module *module, tl_strbuf *out) {
  print_module(module, NULL, true, out);
}

void tl_module_print_with_errors(const tl_module *module, const tl_verify_result *result, tl_strbuf *out) {
  print_module(module, result, false, out);
  // Findings without an op.
  for (size_t i = 0; i < result->errors.len; i++) {
    if (result->errors.items[i].op == NULL) tl_strbuf_appendf(out, "// error: %s\n", result->errors.items[i].text);
  }
}

void tl_op_print(const tl_op *op, tl_strbuf *out) {
  // Names are those that the whole module prints with.
  const tl_block *root = op->parent;
  while (root && root->parent && root->parent->parent) root = root->parent->parent;
  printer p = {.out = out};
  static const tl_block no_block;
  tl_value_names_init(&p.names, root ? root : &no_block);
  print_op(&p, op, 0);
  tl_value_names_fini(&p.names);
}
