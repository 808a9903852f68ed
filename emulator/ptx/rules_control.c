// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Branches and calls (PTX ISA, Control Flow Instructions). Functions take and return everything by address.
#include <inttypes.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/ptx/translator.h"

void tl_ptx_rule_BRA(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_emit_void(t, "br label %%b%u", s->operands[0].label);
  t->ends = true;
}

void tl_ptx_rule_TRAP(ptx_translator *t, const tl_ptx_statement *s) {
  (void)s;
  tl_ptx_declare_function(t, "llvm.trap", "void @llvm.trap()");
  tl_ptx_emit_void(t, "call void @llvm.trap()");
  tl_ptx_emit_void(t, "unreachable");
  t->ends = true;
}

// An index outside of the list is the program's mistake: a trap.
void tl_ptx_rule_BRX(ptx_translator *t, const tl_ptx_statement *s) {
  const tl_ptx_statement *list = &t->function->statements[s->operands[1].label];
  if (list->kind != TL_PTX_BRANCHTARGETS) {
    tl_ptx_unsupported(t, s->operands[1].loc, "'%.*s' is no list of .branchtargets", TL_STR_ARG(s->operands[1].text));
    return;
  }
  ptx_value index = tl_ptx_read(t, &s->operands[0]);
  uint32_t outside = tl_ptx_new_block(t);
  tl_ptx_save_variables(t);
  tl_strbuf_appendf(&t->body, "  switch i32 %s, label %%b%u [", index.text, outside);
  for (uint32_t i = 0; i < list->num_operands; i++)
    tl_strbuf_appendf(&t->body, " i32 %u, label %%b%u", i, list->operands[i].label);
  tl_strbuf_append_c(&t->body, " ]\n");
  t->ends = true;
  tl_ptx_open_block(t, outside);
  tl_ptx_rule_TRAP(t, s);
}

static void leave(ptx_translator *t) {
  const tl_ptx_function *f = t->function;
  // What a function returns in registers goes to where the caller reads it.
  for (uint32_t i = 0; !f->is_entry && i < f->num_returns; i++) {
    const tl_ptx_symbol *symbol = f->returns[i];
    if (symbol->space != TL_PTX_SPACE_REG) continue;
    const char *llvm = tl_ptx_llvm_type(symbol->type);
    tl_ptx_operand operand = {.kind = TL_PTX_REGISTER, .symbol = symbol, .type = symbol->type};
    tl_ptx_emit_void(t, "store %s %s, ptr %%a%u", llvm, tl_ptx_read(t, &operand).text, i);
  }
  if (t->has_locals) {
    tl_ptx_declare_function(t, "tl.ptx.local.leave", "void @tl.ptx.local.leave()");
    tl_ptx_emit_void(t, "call void @tl.ptx.local.leave()");
  }
  tl_ptx_emit_void(t, "ret void");
  t->ends = true;
}

void tl_ptx_rule_RET(ptx_translator *t, const tl_ptx_statement *s) {
  (void)s;
  leave(t);
}

void tl_ptx_rule_EXIT(ptx_translator *t, const tl_ptx_statement *s) {
  (void)s;
  if (t->function->is_entry) {
    leave(t);
    return;
  }
  ptx_args none = {0};
  if (tl_ptx_call_op(t, "llvm.nvvm.exit", &none, NULL)) tl_ptx_emit_void(t, "unreachable");
  t->ends = true;
}

// ---- calls

// The address of an argument: a .param variable's own, or that of a copy.
static ptx_value address_of_argument(ptx_translator *t, const tl_ptx_operand *operand, const tl_ptx_symbol *formal,
                                     bool reads) {
  if (operand->kind == TL_PTX_VARIABLE) return tl_ptx_variable(operand->symbol);
  ptx_value place = tl_ptx_value("%%c%u", t->next_value++);
  const char *llvm = tl_ptx_llvm_type(formal->type);
  tl_strbuf_appendf(&t->entry, "  %s = alloca %s, align 16\n", place.text, llvm);
  if (reads)
    tl_ptx_emit_void(t, "store %s %s, ptr %s", llvm, tl_ptx_read_as(t, operand, formal->type).text, place.text);
  return place;
}

// Functions of the device's runtime are ops.
static void call_runtime(ptx_translator *t, const tl_ptx_statement *s, tl_str name, const tl_ptx_operand *returned,
                         const tl_ptx_operand *given) {
  char text[64];
  snprintf(text, sizeof text, "%.*s", TL_STR_ARG(name));
  const tl_emu_binding *binding = strchr(text, '.') ? NULL : tl_emu_find_binding(text);
  if (!binding) {
    tl_ptx_unsupported(t, s->loc, "the function '%s' has no body, and the emulator has none for it", text);
    return;
  }
  const char *letters = strchr(binding->signature, '(') + 1;
  ptx_args args = {0}, results = {0};
  for (uint32_t i = 0; given && i < given->num_items; i++) {
    if (given->items[i].kind != TL_PTX_VARIABLE || args.n >= strcspn(letters, ")")) {
      tl_ptx_unsupported(t, given->items[i].loc, "this argument of '%s' is not supported", text);
      return;
    }
    ptx_value place = tl_ptx_variable(given->items[i].symbol);
    const char *llvm = letters[i] == 'G' ? "ptr" : letters[i] == 'l' ? "i64" : "i32";
    args.items[args.n++] = tl_ptx_emit(t, "load %s, ptr %s", llvm, place.text);
  }
  if (!tl_ptx_call_op(t, text, &args, &results) || !results.n || !returned || !returned->num_items) return;
  if (returned->items[0].kind == TL_PTX_VARIABLE)
    tl_ptx_emit_void(t, "store i32 %s, ptr %s", results.items[0].text, tl_ptx_variable(returned->items[0].symbol).text);
}

static void want(ptx_translator *t, const tl_ptx_function *function) {
  for (size_t i = 0; i < t->wanted.len; i++)
    if (t->wanted.items[i] == function) return;
  tl_vec_push(&t->wanted, function);
}

// The operands of a call: whom, what comes back, what is handed over.
typedef struct call_parts {
  const tl_ptx_operand *callee, *returned, *given;  // the lists: NULL for none
  uint32_t num_returned, num_given;
} call_parts;

static call_parts parts_of(const tl_ptx_statement *s) {
  call_parts parts = {0};
  for (uint32_t i = 0; i < s->num_operands; i++) {
    const tl_ptx_operand *operand = &s->operands[i];
    if (operand->kind == TL_PTX_FUNCTION || operand->kind == TL_PTX_REGISTER)
      parts.callee = operand;
    else if (operand->kind == TL_PTX_LIST && parts.callee)
      parts.given = operand;
    else if (operand->kind == TL_PTX_LIST)
      parts.returned = operand;
  }
  parts.num_returned = parts.returned ? parts.returned->num_items : 0;
  parts.num_given = parts.given ? parts.given->num_items : 0;
  return parts;
}

static bool takes(const tl_ptx_function *callee, const call_parts *parts) {
  return !callee->is_entry && parts->num_returned == callee->num_returns && parts->num_given == callee->num_params;
}

static void call_function(ptx_translator *t, const tl_ptx_function *callee, const call_parts *parts) {
  const tl_ptx_operand *returned = parts->returned, *given = parts->given;
  uint32_t num_returned = parts->num_returned, num_given = parts->num_given;
  want(t, callee);
  ptx_args *args = tl_xcalloc(1, sizeof *args);
  for (uint32_t i = 0; i < num_returned + num_given && i < PTX_MAX_OP_OPERANDS; i++) {
    bool is_result = i < num_returned;
    args->items[args->n++] =
        is_result ? address_of_argument(t, &returned->items[i], callee->returns[i], false)
                  : address_of_argument(t, &given->items[i - num_returned], callee->params[i - num_returned], true);
  }
  tl_strbuf_appendf(&t->body, "  call void @\"f.%.*s\"(", TL_STR_ARG(callee->name));
  for (unsigned i = 0; i < args->n; i++) tl_strbuf_appendf(&t->body, "%sptr %s", i ? ", " : "", args->items[i].text);
  tl_strbuf_appendf(&t->body, "), !dbg !%u\n", t->place);
  for (uint32_t i = 0; i < num_returned; i++) {
    if (returned->items[i].kind != TL_PTX_REGISTER) continue;
    const char *llvm = tl_ptx_llvm_type(callee->returns[i]->type);
    tl_ptx_write_as(t, &returned->items[i], callee->returns[i]->type,
                    tl_ptx_emit(t, "load %s, ptr %s", llvm, args->items[i].text));
  }
  free(args);
}

void tl_ptx_rule_CALL(ptx_translator *t, const tl_ptx_statement *s) {
  call_parts parts = parts_of(s);
  const tl_ptx_function *callee = tl_ptx_find_function(t->module, parts.callee->text);
  if (!callee || !callee->has_body)
    call_runtime(t, s, parts.callee->text, parts.returned, parts.given);
  else if (takes(callee, &parts))
    call_function(t, callee, &parts);
  else
    tl_ptx_unsupported(t, s->loc, "'%.*s' takes %u arguments and returns %u", TL_STR_ARG(callee->name),
                       callee->num_params, callee->num_returns);
}

// ---- indirect calls

// Whether what the call hands over and gets back has the sizes that the function says.
static bool fits(const tl_ptx_operand *list, tl_ptx_symbol *const *formals, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const tl_ptx_operand *item = &list->items[i];
    if (!item->symbol) continue;
    uint64_t bytes = item->symbol->elements * tl_ptx_type_bytes(item->symbol->type);
    if (bytes != formals[i]->elements * tl_ptx_type_bytes(formals[i]->type)) return false;
  }
  return true;
}

static bool may_be_called(const ptx_translator *t, const tl_ptx_function *f, const call_parts *parts) {
  return f->has_body && takes(f, parts) && tl_ptx_takes_address(t->module, f->name) &&
         fits(parts->returned, f->returns, f->num_returns) && fits(parts->given, f->params, f->num_params);
}

// The address chooses among the functions of the module whose address is taken and that the call fits. Any other is the
// program's mistake: a trap.
void tl_ptx_rule_CALL_INDIRECT(ptx_translator *t, const tl_ptx_statement *s) {
  call_parts parts = parts_of(s);
  const tl_ptx_module *m = t->module;
  ptx_value address = tl_ptx_read(t, parts.callee);
  uint32_t behind = tl_ptx_new_block(t), outside = tl_ptx_new_block(t), first = t->next_block;
  tl_ptx_save_variables(t);
  tl_strbuf_appendf(&t->body, "  switch i64 %s, label %%b%u [", address.text, outside);
  for (uint32_t i = 0; i < m->num_functions; i++)
    if (may_be_called(t, m->functions[i], &parts))
      tl_strbuf_appendf(&t->body, " i64 %" PRIu64 ", label %%b%u", tl_ptx_function_address(m, m->functions[i]->name),
                        tl_ptx_new_block(t));
  tl_strbuf_append_c(&t->body, " ]\n");
  t->ends = true;
  for (uint32_t i = 0, block = first; i < m->num_functions; i++) {
    if (!may_be_called(t, m->functions[i], &parts)) continue;
    tl_ptx_open_block(t, block++);
    call_function(t, m->functions[i], &parts);
    tl_ptx_emit_void(t, "br label %%b%u", behind);
    t->ends = true;
  }
  tl_ptx_open_block(t, outside);
  tl_ptx_rule_TRAP(t, s);
  tl_ptx_open_block(t, behind);
}
