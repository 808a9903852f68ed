// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wgmma: the op's name is made from the words and the constants. Sums are handles until a wait, which exchanges them:
// in PTX it names no registers, so all that hold sums, or copies of sums, take part.
#include <string.h>

#include "emulator/ptx/translator.h"
#include "llvm_backend/device/wgmma.h"

// What a register holds that holds a sum.
static tl_wgmma_register kind_of(const tl_ptx_statement *s) {
  tl_str type = s->words[tl_ptx_has(s, "satfinite") ? 6 : 5];
  return tl_str_is(type, "f32") ? TL_WGMMA_SUM_F32 : tl_str_is(type, "f16") ? TL_WGMMA_SUM_F16 : TL_WGMMA_SUM_S32;
}

static bool mark(uint8_t *kinds, const tl_ptx_operand *operand, uint8_t kind) {
  if (operand->kind != TL_PTX_REGISTER || kinds[operand->symbol->id] || !kind) return false;
  kinds[operand->symbol->id] = kind;
  return true;
}

static void mark_moves(const tl_ptx_function *f, uint8_t *kinds) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < f->num_statements; i++) {
      const tl_ptx_statement *s = &f->statements[i];
      if (s->kind != TL_PTX_INSTRUCTION || !tl_str_is(s->words[0], "mov") || s->operands[1].kind != TL_PTX_REGISTER)
        continue;
      again = mark(kinds, &s->operands[0], kinds[s->operands[1].symbol->id]) || again;
    }
  }
}

uint8_t *tl_ptx_find_sums(const tl_ptx_function *f) {
  uint8_t *kinds = NULL;
  for (uint32_t i = 0; i < f->num_statements; i++) {
    const tl_ptx_statement *s = &f->statements[i];
    if (s->kind != TL_PTX_INSTRUCTION || !s->row || strcmp(s->row->rule, "WGMMA") != 0) continue;
    if (!kinds) kinds = tl_xcalloc(f->num_registers + 1, 1);
    for (uint32_t k = 0; k < s->operands[0].num_items; k++)
      mark(kinds, &s->operands[0].items[k], (uint8_t)(1 + kind_of(s)));
  }
  if (kinds) mark_moves(f, kinds);
  return kinds;
}

static bool constant_at(const tl_ptx_statement *s, uint32_t index, uint64_t wanted) {
  return index < s->num_operands && s->operands[index].value == wanted;
}

// "tl.wgmma.m64n128k16.f32.bf16.bf16.ss.ta.tb.na.nb"
static void append_form(tl_strbuf *name, const tl_ptx_statement *s) {
  bool saturates = tl_ptx_has(s, "satfinite"), in_registers = s->operands[1].kind == TL_PTX_VECTOR;
  uint32_t types = saturates ? 6 : 5, flags = 4;
  bool is_integer = tl_str_is(s->words[types], "s32");
  bool is_16_bits = tl_str_is(s->words[types + 1], "f16") || tl_str_is(s->words[types + 1], "bf16");
  tl_strbuf_appendf(name, "tl.wgmma.%.*s.%.*s.%.*s.%.*s.%s", TL_STR_ARG(s->words[4]), TL_STR_ARG(s->words[types]),
                    TL_STR_ARG(s->words[types + 1]), TL_STR_ARG(s->words[types + 2]), in_registers ? "rs" : "ss");
  uint32_t majors = is_integer ? flags : flags + 2;
  if (is_16_bits && !in_registers && constant_at(s, majors++, 1)) tl_strbuf_append_c(name, ".ta");
  if (is_16_bits && constant_at(s, majors, 1)) tl_strbuf_append_c(name, ".tb");
  if (!is_integer && constant_at(s, flags, (uint64_t)-1)) tl_strbuf_append_c(name, ".na");
  if (!is_integer && constant_at(s, flags + 1, (uint64_t)-1)) tl_strbuf_append_c(name, ".nb");
  if (saturates) tl_strbuf_append_c(name, ".sat");
}

static tl_ptx_type type_of(char letter) {
  return letter == 'f' ? TL_PTX_F32 : letter == 'l' ? TL_PTX_B64 : letter == 'b' ? TL_PTX_PRED : TL_PTX_B32;
}

static void run_form(ptx_translator *t, const tl_ptx_statement *s, const tl_wgmma_op *op) {
  const tl_ptx_operand *d = &s->operands[0];
  ptx_args *args = tl_xcalloc(2, sizeof *args), *results = args + 1;
  const char *letters = strchr(op->row.signature, '(') + 1;
  for (uint32_t o = 0; o < 4; o++) {
    const tl_ptx_operand *operand = &s->operands[o];
    uint32_t n = operand->kind == TL_PTX_VECTOR ? operand->num_items : 1;
    for (uint32_t i = 0; i < n && letters[args->n] != ')'; i++) {
      args->items[args->n] =
          tl_ptx_read_as(t, operand->kind == TL_PTX_VECTOR ? &operand->items[i] : operand, type_of(letters[args->n]));
      args->n++;
    }
  }
  tl_ptx_call_signature(t, op->row.name, op->row.signature, args, results);
  if (!t->failed && d->num_items != results->n)
    tl_ptx_unsupported(t, d->loc, "the sums are %u registers, not %u", results->n, d->num_items);
  for (uint32_t i = 0; !t->failed && i < results->n; i++)
    tl_ptx_write_as(t, &d->items[i], type_of(op->row.signature[i]), results->items[i]);
  free(args);
}

void tl_ptx_rule_WGMMA(ptx_translator *t, const tl_ptx_statement *s) {
  tl_strbuf name = {0};
  append_form(&name, s);
  tl_wgmma_op op;
  if (tl_wgmma_op_make(tl_strbuf_view(&name), &op)) {
    run_form(t, s, &op);
    tl_wgmma_op_fini(&op);
  } else {
    tl_ptx_unsupported(t, s->loc, "there is no such form of wgmma");
  }
  tl_strbuf_fini(&name);
}

// Registers that wgmma takes as A, nearest in front of the wait first and on from the function's end: those in flight
// are among them. What they hold is what the operations took.
static uint32_t find_operands(const ptx_translator *t, const tl_ptx_statement *wait, uint32_t *out) {
  const tl_ptx_function *f = t->function;
  uint32_t n = 0, at = (uint32_t)(wait - f->statements);
  uint8_t *is_taken = tl_xcalloc(f->num_registers + 1, 1);
  for (uint32_t back = 1; back < f->num_statements; back++) {
    const tl_ptx_statement *s = &f->statements[(at + f->num_statements - back) % f->num_statements];
    if (s->kind != TL_PTX_INSTRUCTION || !s->row || strcmp(s->row->rule, "WGMMA") != 0) continue;
    const tl_ptx_operand *a = &s->operands[1];
    for (uint32_t i = 0; a->kind == TL_PTX_VECTOR && i < a->num_items && n < TL_WGMMA_MAX_PINNED; i++) {
      if (a->items[i].kind != TL_PTX_REGISTER || is_taken[a->items[i].symbol->id]) continue;
      is_taken[a->items[i].symbol->id] = 1;
      out[n++] = a->items[i].symbol->id;
    }
  }
  free(is_taken);
  return n;
}

// One wait of registers of one kind, `n` of them.
static void wait(ptx_translator *t, uint64_t pending, tl_wgmma_register kind, const uint32_t *registers, uint32_t n) {
  tl_wgmma_wait form = {.pending = pending > 7 ? 7 : (int)pending, .num_runs = 1, .runs = {{(int)n, kind}}};
  tl_strbuf name = {0};
  tl_wgmma_wait_name(&form, &name);
  tl_wgmma_op op;
  if (!tl_wgmma_op_make(tl_strbuf_view(&name), &op)) {
    tl_ptx_unsupported(t, t->statement->loc, "there is no such wait");
    tl_strbuf_fini(&name);
    return;
  }
  ptx_args *args = tl_xcalloc(2, sizeof *args), *results = args + 1;
  for (uint32_t i = 0; i < n; i++) {
    tl_ptx_operand operand = {.kind = TL_PTX_REGISTER, .symbol = t->function->registers[registers[i]]};
    args->items[args->n++] = tl_ptx_read_as(t, &operand, type_of(op.row.signature[0]));
  }
  tl_ptx_call_signature(t, op.row.name, op.row.signature, args, results);
  for (uint32_t i = 0; !t->failed && i < n && kind != TL_WGMMA_OPERAND_B32; i++) {
    tl_ptx_operand operand = {.kind = TL_PTX_REGISTER, .symbol = t->function->registers[registers[i]]};
    tl_ptx_write_as(t, &operand, type_of(op.row.signature[0]), results->items[i]);
  }
  free(args);
  tl_wgmma_op_fini(&op);
  tl_strbuf_fini(&name);
}

void tl_ptx_rule_WGMMA_WAIT(ptx_translator *t, const tl_ptx_statement *s) {
  uint32_t registers[TL_WGMMA_MAX_PINNED], n = 0;
  uint64_t pending = s->operands[0].value;
  bool any = false;
  uint32_t operands = t->sums ? find_operands(t, s, registers) : 0;
  if (operands) wait(t, pending, TL_WGMMA_OPERAND_B32, registers, operands);
  for (int kind = TL_WGMMA_SUM_F32; t->sums && kind <= TL_WGMMA_SUM_S32; kind++) {
    for (uint32_t i = 0; i < t->function->num_registers; i++) {
      if (t->sums[i] == kind + 1) registers[n++] = i;
      bool is_last = i + 1 == t->function->num_registers;
      if (!n || (n < TL_WGMMA_MAX_PINNED && !is_last)) continue;
      wait(t, pending, (tl_wgmma_register)kind, registers, n);
      any = true;
      n = 0;
    }
  }
  if (any) return;
  ptx_args args = {.n = 1};
  args.items[0] = tl_ptx_value("%llu", (unsigned long long)pending);
  tl_ptx_call_op(t, "llvm.nvvm.wgmma.wait_group.sync.aligned", &args, NULL);
}
