// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One function: its registers and variables, its blocks, the place of each instruction.
#include <inttypes.h>
#include <string.h>

#include "emulator/ptx/translator.h"

// ---- places

static uint32_t place_of(ptx_translator *t, const tl_ptx_statement *s) {
  uint32_t file = 0, line = s->line;
  for (uint32_t i = 0; s->source_line && i < t->module->num_files; i++)
    if (t->module->files[i].number == s->file) file = i + 1;
  if (file) line = s->source_line;
  if (t->places.len) {
    const ptx_place *last = &tl_vec_last(&t->places);
    if (last->function == t->function && last->file == file && last->line == line) return last->id;
  }
  tl_vec_push(&t->places, (ptx_place){t->function, file, line, t->next_metadata++});
  return tl_vec_last(&t->places).id;
}

// ---- instructions

static ptx_rule *rule_of(const tl_ptx_row *row) {
  static ptx_rule *const rules[] = {
#define TL_PTX_ROW(opcode, modifiers, operands, min_sm, min_ptx, rule, argument, section) tl_ptx_rule_##rule,
#include "ptx/table/instructions.def"
#undef TL_PTX_ROW
  };
  size_t count;
  return rules[row - tl_ptx_rows(&count)];
}

// A part is said for the next instruction alone.
static void apply_rule(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value part = t->part;
  rule_of(s->row)(t, s);
  if (part.text[0]) t->part.text[0] = '\0';
}

static void translate_instruction(ptx_translator *t, const tl_ptx_statement *s) {
  t->place = place_of(t, s);
  if (!s->symbol) {
    apply_rule(t, s);
    return;
  }
  uint32_t inside = tl_ptx_new_block(t), behind = tl_ptx_new_block(t);
  ptx_value guard = tl_ptx_register(t, s->symbol);
  tl_ptx_emit_void(t, "br i1 %s, label %%b%u, label %%b%u", guard.text, s->is_negated ? behind : inside,
                   s->is_negated ? inside : behind);
  t->ends = true;
  tl_ptx_open_block(t, inside);
  apply_rule(t, s);
  tl_ptx_open_block(t, behind);
}

static void translate_statement(ptx_translator *t, const tl_ptx_statement *s, uint32_t index) {
  t->statement = s;
  if (s->kind == TL_PTX_LABEL_HERE) {
    t->place = place_of(t, s);
    tl_ptx_open_block(t, index);
  } else if (s->kind == TL_PTX_INSTRUCTION) {
    // Behind a jump without a label: code that nobody reaches.
    if (t->ends) tl_ptx_open_block(t, tl_ptx_new_block(t));
    translate_instruction(t, s);
  }
}

// ---- variables

static void declare_variable(ptx_translator *t, const tl_ptx_symbol *s) {
  uint64_t bytes = s->elements * tl_ptx_type_bytes(s->type);
  if (s->space == TL_PTX_SPACE_LOCAL || s->space == TL_PTX_SPACE_PARAM) {
    if (s->is_array || s->elements > 1)
      tl_strbuf_appendf(&t->entry, "  %s = alloca [%" PRIu64 " x i8], align %u\n", tl_ptx_variable(s).text, bytes,
                        s->align);
    else
      tl_strbuf_appendf(&t->entry, "  %s = alloca i%u, align %u\n", tl_ptx_variable(s).text,
                        8 * tl_ptx_type_bytes(s->type), s->align);
  }
  if (s->space != TL_PTX_SPACE_LOCAL) return;
  tl_ptx_declare_function(t, "tl.ptx.local.begin", "void @tl.ptx.local.begin(ptr, i64)");
  tl_strbuf_appendf(&t->entry, "  call void @tl.ptx.local.begin(ptr %s, i64 %" PRIu64 ")\n", tl_ptx_variable(s).text,
                    bytes);
}

// Variables in local memory are checked: their begin is told where they are made, their end where the function returns.
static void enter_locals(ptx_translator *t) {
  const tl_ptx_function *f = t->function;
  t->has_locals = false;
  for (uint32_t i = 0; i < f->num_statements; i++) {
    const tl_ptx_statement *s = &f->statements[i];
    if (s->kind == TL_PTX_DECLARATION && s->symbol->space == TL_PTX_SPACE_LOCAL) t->has_locals = true;
    if (s->kind == TL_PTX_INSTRUCTION && tl_str_is(s->words[0], "alloca")) t->has_locals = true;
  }
  if (!t->has_locals) return;
  tl_ptx_declare_function(t, "tl.ptx.local.enter", "void @tl.ptx.local.enter()");
  tl_strbuf_append_c(&t->entry, "  call void @tl.ptx.local.enter()\n");
}

// ---- registers that are values

// Between two labels code runs from its beginning only: a register that is written there before all its reads, which
// are there too, is the value that it was given last, and needs no variable. `runs`: by register, the number of that
// code; NEVER: it is a variable.
enum { NOT_WRITTEN = 0, NEVER = -1 };

static void see_operand(const ptx_translator *t, const tl_ptx_operand *operand, bool writes, int run) {
  int *runs = t->runs;
  if (operand->symbol && operand->symbol->space == TL_PTX_SPACE_REG) {
    int *at = &runs[operand->symbol->id];
    t->leans[operand->symbol->id] += tl_ptx_type_class(operand->type) == TL_PTX_CLASS_FLOAT ? 1 : -1;
    if (*at == NOT_WRITTEN && writes)
      *at = run;
    else if (*at != run)
      *at = NEVER;
  }
  for (uint32_t i = 0; i < operand->num_items; i++) see_operand(t, &operand->items[i], writes, run);
}

static void see_instruction(const ptx_translator *t, const tl_ptx_statement *s, int run) {
  int *runs = t->runs;
  bool writes = s->row->operands[0] == '=';
  for (uint32_t i = writes; i < s->num_operands; i++) see_operand(t, &s->operands[i], false, run);
  // Under a guard it may not be written: the value of before lives on.
  if (writes && s->num_operands) see_operand(t, &s->operands[0], true, s->symbol ? NEVER : run);
  if (s->symbol && runs[s->symbol->id] != run) runs[s->symbol->id] = NEVER;
  // Waits look at A in registers, wherever they stand.
  for (uint32_t i = 0; !strcmp(s->row->rule, "WGMMA") && i < s->operands[1].num_items; i++)
    if (s->operands[1].items[i].symbol) runs[s->operands[1].items[i].symbol->id] = NEVER;
}

static void find_runs(ptx_translator *t) {
  const tl_ptx_function *f = t->function;
  int *runs = t->runs = tl_xcalloc(f->num_registers + 1, sizeof *runs), run = 1;
  t->leans = tl_xcalloc(f->num_registers + 1, sizeof *t->leans);
  for (uint32_t i = 0; i < f->num_statements; i++) {
    if (f->statements[i].kind == TL_PTX_LABEL_HERE) run++;
    if (f->statements[i].kind == TL_PTX_INSTRUCTION) see_instruction(t, &f->statements[i], run);
  }
  // Waits read all sums, the end of a function what it returns.
  for (uint32_t i = 0; t->sums && i < f->num_registers; i++)
    if (t->sums[i]) runs[i] = NEVER;
  for (uint32_t i = 0; i < f->num_returns; i++)
    if (f->returns[i]->space == TL_PTX_SPACE_REG) runs[f->returns[i]->id] = NEVER;
  // Parameters come into their variables.
  for (uint32_t i = 0; i < f->num_params; i++)
    if (f->params[i]->space == TL_PTX_SPACE_REG) runs[f->params[i]->id] = NEVER;
}

static void declare_registers(ptx_translator *t) {
  find_runs(t);
  t->values = tl_xcalloc(t->function->num_registers + 1, sizeof *t->values);
  for (uint32_t i = 0; i < t->function->num_registers; i++) {
    if (t->runs[i] != NEVER) continue;
    const char *type = tl_ptx_variable_type(t, t->function->registers[i]);
    tl_strbuf_appendf(&t->entry, "  %%r%u = alloca %s\n  store %s zeroinitializer, ptr %%r%u\n", i, type, type, i);
  }
  tl_strbuf_append_c(&t->entry, "  %cc = alloca i32\n  store i32 0, ptr %cc\n");
  tl_strbuf_append_c(&t->entry,
                     "  %windowbase = ptrtoint ptr addrspace(3) @ptx.window to i64\n"
                     "  %window = and i64 %windowbase, -4294967296\n");
}

// Structs lie in memory of the thread; what comes by value goes to its place there.
static void declare_fields(ptx_translator *t, tl_strbuf *head) {
  const tl_emu_ptx_options *o = t->options;
  for (uint32_t i = 0; i < o->num_fields; i++) {
    const tl_emu_ptx_field *field = &o->fields[i];
    const tl_ptx_symbol *p = t->function->params[field->param];
    if (!i || o->fields[i - 1].param != field->param) declare_variable(t, p);
    tl_strbuf_appendf(head, "%si%u %%a%u", i ? ", " : "", 8 * field->bytes, i);
    tl_strbuf_appendf(&t->entry, "  %%field%u = getelementptr i8, ptr %s, i64 %u\n", i, tl_ptx_variable(p).text,
                      field->offset);
    tl_strbuf_appendf(&t->entry, "  store i%u %%a%u, ptr %%field%u, align 1\n", 8 * field->bytes, i, i);
  }
}

// The parameters of a kernel come by value, structs in memory of the thread.
static void declare_kernel_parameters(ptx_translator *t, tl_strbuf *head) {
  for (uint32_t i = 0; i < t->function->num_params; i++) {
    const tl_ptx_symbol *p = t->function->params[i];
    uint64_t bytes = p->elements * tl_ptx_type_bytes(p->type);
    if (i) tl_strbuf_append_c(head, ", ");
    if (p->is_array) {
      tl_strbuf_appendf(head, "ptr byval([%" PRIu64 " x i8]) align %u %s", bytes, p->align, tl_ptx_variable(p).text);
      continue;
    }
    unsigned bits = 8 * tl_ptx_type_bytes(p->type);
    tl_strbuf_appendf(head, "i%u %%a%u", bits, i);
    declare_variable(t, p);
    tl_strbuf_appendf(&t->entry, "  store i%u %%a%u, ptr %s\n", bits, i, tl_ptx_variable(p).text);
  }
}

static void declare_function_parameters(ptx_translator *t, tl_strbuf *head) {
  const tl_ptx_function *f = t->function;
  for (uint32_t i = 0; i < f->num_returns + f->num_params; i++) {
    bool is_result = i < f->num_returns;
    const tl_ptx_symbol *p = is_result ? f->returns[i] : f->params[i - f->num_returns];
    if (i) tl_strbuf_append_c(head, ", ");
    if (p->space == TL_PTX_SPACE_PARAM) {
      tl_strbuf_appendf(head, "ptr %s", tl_ptx_variable(p).text);
      continue;
    }
    const char *type = tl_ptx_variable_type(t, p);
    tl_strbuf_appendf(head, "ptr %%a%u", i);
    if (!is_result)
      tl_strbuf_appendf(&t->entry, "  %%given%u = load %s, ptr %%a%u\n  store %s %%given%u, ptr %%r%u\n", i, type, i,
                        type, i, p->id);
  }
}

static void finish_function(ptx_translator *t, const tl_strbuf *head, bool is_kernel, uint32_t subprogram) {
  const tl_ptx_function *f = t->function;
  tl_strbuf_appendf(&t->functions, "define %svoid @\"%s%.*s\"(%s) ", is_kernel ? "" : "internal ",
                    is_kernel ? "" : "f.", TL_STR_ARG(f->name), tl_strbuf_c(head));
  if (f->maxnreg) tl_strbuf_appendf(&t->functions, "\"nvvm.maxnreg\"=\"%u\" ", f->maxnreg);
  if (f->minnctapersm) tl_strbuf_appendf(&t->functions, "\"nvvm.minctasm\"=\"%u\" ", f->minnctapersm);
  tl_strbuf_appendf(&t->functions, "!dbg !%u {\nentry:\n", subprogram);
  tl_strbuf_append(&t->functions, tl_strbuf_view(&t->entry));
  tl_strbuf_append(&t->functions, tl_strbuf_view(&t->body));
  tl_strbuf_append_c(&t->functions, "}\n");
}

bool tl_ptx_translate_function(ptx_translator *t, const tl_ptx_function *function, bool is_kernel) {
  tl_strbuf head = {0};
  tl_strbuf_clear(&t->entry);
  tl_strbuf_clear(&t->body);
  t->function = function;
  t->next_block = function->num_statements + 1;
  t->ends = false;
  t->place = 0;
  t->sums = tl_ptx_find_sums(function);
  t->run = 1;
  tl_vec_clear(&t->unsaved);
  if (t->options->contracts) t->products = tl_xcalloc(function->num_registers + 1, sizeof *t->products);
  uint32_t subprogram = t->next_metadata++;
  tl_vec_push(&t->places, (ptx_place){function, UINT32_MAX, 0, subprogram});
  declare_registers(t);
  enter_locals(t);
  if (is_kernel && t->options->fields)
    declare_fields(t, &head);
  else if (is_kernel)
    declare_kernel_parameters(t, &head);
  else
    declare_function_parameters(t, &head);
  for (uint32_t i = 0; i < function->num_statements; i++) {
    const tl_ptx_statement *s = &function->statements[i];
    if (s->kind == TL_PTX_DECLARATION)
      declare_variable(t, s->symbol);
    else
      translate_statement(t, s, i);
  }
  if (t->ends) tl_ptx_open_block(t, tl_ptx_new_block(t));
  tl_ptx_rule_RET(t, NULL);
  finish_function(t, &head, is_kernel, subprogram);
  tl_strbuf_fini(&head);
  free(t->sums);
  free(t->products);
  free(t->runs);
  free(t->leans);
  free(t->values);
  t->sums = NULL;
  t->products = NULL;
  return !t->failed;
}
