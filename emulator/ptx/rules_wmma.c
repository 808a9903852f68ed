// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wmma (PTX ISA, Warp Level Matrix Load, Store, Multiply-and-Accumulate): which lane holds which element is opaque to a
// program. Here lane l of elements E each holds those from l × E on, row by row, and begins again behind the last
// where there are more places than elements (ops_wmma.c). Loads and stores are ordinary accesses of each lane.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/ptx/translator.h"

typedef struct matrix {
  uint32_t rows, columns, registers;
  tl_ptx_type part;       // an element, as memory has it
  tl_ptx_type register_;  // as registers have it
  uint32_t per_register;  // elements
  bool is_row;
  ptx_window window;
  ptx_value address, stride, first;  // i64, i64: elements from a row (or column) to the next, i32: the lane's first
} matrix;

static tl_ptx_type type_of(const tl_ptx_statement *s) {
  return tl_ptx_type_parse(s->words[s->num_words - 1]);
}

// The rows and columns of the operand that the word after load or store names, from "m16n16k16".
static void read_shape(const tl_ptx_statement *s, matrix *m) {
  uint32_t sizes[3] = {0};
  for (uint32_t i = 1; i < s->num_words; i++)
    if (s->words[i].data[0] == 'm' && s->words[i].len > 5) {
      char text[24];
      snprintf(text, sizeof text, "%.*s", TL_STR_ARG(s->words[i]));
      sscanf(text, "m%un%uk%u", &sizes[0], &sizes[1], &sizes[2]);
    }
  char which = s->words[2].data[0];
  m->rows = which == 'b' ? sizes[2] : sizes[0];
  m->columns = which == 'a' ? sizes[2] : sizes[1];
}

static bool is_whole_register(const tl_ptx_statement *s, tl_ptx_type type) {
  (void)s;
  return tl_ptx_type_bits(type) >= 32;
}

static matrix matrix_of(ptx_translator *t, const tl_ptx_statement *s, uint32_t values, uint32_t address) {
  matrix m = {.part = type_of(s), .is_row = tl_ptx_has(s, "row"), .window = tl_ptx_window_of(s)};
  read_shape(s, &m);
  m.per_register = is_whole_register(s, m.part) ? 1 : 32 / tl_ptx_type_bits(m.part);
  m.register_ = tl_ptx_type_bits(m.part) == 64 ? TL_PTX_B64 : TL_PTX_B32;
  m.registers = s->operands[values].kind == TL_PTX_VECTOR ? s->operands[values].num_items : 1;
  ptx_value pointer = tl_ptx_pointer(t, &s->operands[address], m.window, 0);
  m.address = tl_ptx_emit(t, "ptrtoint %s to i64", pointer.text);
  bool has_stride = s->num_operands > 2;
  m.stride =
      has_stride ? tl_ptx_read_as(t, &s->operands[2], TL_PTX_B32) : tl_ptx_value("%u", m.is_row ? m.columns : m.rows);
  m.stride = tl_ptx_emit(t, "zext i32 %s to i64", m.stride.text);
  ptx_args none = {0}, lane = {0};
  if (tl_ptx_call_op(t, "llvm.nvvm.read.ptx.sreg.laneid", &none, &lane)) {
    m.first = tl_ptx_emit(t, "mul i32 %s, %u", lane.items[0].text, m.registers * m.per_register);
    m.first = tl_ptx_emit(t, "urem i32 %s, %u", m.first.text, m.rows * m.columns);
  }
  return m;
}

// Registers that hold all elements, once or several times.
static bool has_places(ptx_translator *t, const tl_ptx_statement *s, const matrix *m, uint32_t values) {
  uint32_t places = 32 * m->registers * m->per_register, elements = m->rows * m->columns;
  uint32_t wanted = elements;  // of f16 every element is there as often as it fills eight registers
  if (s->words[2].data[0] <= 'b' && m->part == TL_PTX_F16) wanted = 32 * 8 * m->per_register;
  if (places == wanted) return true;
  tl_ptx_unsupported(t, s->operands[values].loc, "the fragment has %u registers, not %u",
                     wanted / (32 * m->per_register), m->registers);
  return false;
}

// The pointer to element `i` of the lane.
static ptx_value pointer_to(ptx_translator *t, const matrix *m, uint32_t i) {
  ptx_value element = tl_ptx_emit(t, "add i32 %s, %u", m->first.text, i);
  if (i) element = tl_ptx_emit(t, "urem i32 %s, %u", element.text, m->rows * m->columns);
  ptx_value row = tl_ptx_emit(t, "udiv i32 %s, %u", element.text, m->columns);
  ptx_value column = tl_ptx_emit(t, "urem i32 %s, %u", element.text, m->columns);
  row = tl_ptx_emit(t, "zext i32 %s to i64", row.text);
  column = tl_ptx_emit(t, "zext i32 %s to i64", column.text);
  ptx_value outer = m->is_row ? row : column, inner = m->is_row ? column : row;
  ptx_value offset = tl_ptx_emit(t, "mul i64 %s, %s", outer.text, m->stride.text);
  offset = tl_ptx_emit(t, "add i64 %s, %s", offset.text, inner.text);
  offset = tl_ptx_emit(t, "mul i64 %s, %u", offset.text, tl_ptx_type_bytes(m->part));
  offset = tl_ptx_emit(t, "add i64 %s, %s", offset.text, m->address.text);
  ptx_value pointer = tl_ptx_value("ptr addrspace(%d)", (int)m->window);
  if (m->window == PTX_GENERIC) pointer = tl_ptx_value("ptr");
  ptx_value made = tl_ptx_emit(t, "inttoptr i64 %s to %s", offset.text, pointer.text);
  return tl_ptx_value("%s %s", pointer.text, made.text);
}

static const tl_ptx_operand *register_of(const tl_ptx_operand *list, uint32_t i) {
  return list->kind == TL_PTX_VECTOR ? &list->items[i] : list;
}

void tl_ptx_rule_WMMA_LOAD(ptx_translator *t, const tl_ptx_statement *s) {
  matrix m = matrix_of(t, s, 0, 1);
  if (t->failed || !has_places(t, s, &m, 0)) return;
  unsigned bits = tl_ptx_type_bits(m.part), whole = tl_ptx_type_bits(m.register_);
  for (uint32_t r = 0; r < m.registers; r++) {
    ptx_value all = tl_ptx_value("0");
    for (uint32_t i = 0; i < m.per_register; i++) {
      ptx_value pointer = pointer_to(t, &m, r * m.per_register + i);
      ptx_value part = tl_ptx_emit_placed(t, "load i%u, %s, align %u", bits, pointer.text, bits / 8);
      if (bits == whole) {
        all = part;
        continue;
      }
      part = tl_ptx_emit(t, "zext i%u %s to i%u", bits, part.text, whole);
      part = tl_ptx_emit(t, "shl i%u %s, %u", whole, part.text, i * bits);
      all = tl_ptx_emit(t, "or i%u %s, %s", whole, all.text, part.text);
    }
    tl_ptx_write_as(t, register_of(&s->operands[0], r), m.register_, all);
  }
}

void tl_ptx_rule_WMMA_STORE(ptx_translator *t, const tl_ptx_statement *s) {
  matrix m = matrix_of(t, s, 1, 0);
  if (t->failed || !has_places(t, s, &m, 1)) return;
  unsigned bits = tl_ptx_type_bits(m.part), whole = tl_ptx_type_bits(m.register_);
  for (uint32_t r = 0; r < m.registers; r++) {
    ptx_value all = tl_ptx_read_as(t, register_of(&s->operands[1], r), m.register_);
    for (uint32_t i = 0; i < m.per_register; i++) {
      ptx_value part = i ? tl_ptx_emit(t, "lshr i%u %s, %u", whole, all.text, i * bits) : all;
      if (bits < whole) part = tl_ptx_emit(t, "trunc i%u %s to i%u", whole, part.text, bits);
      ptx_value pointer = pointer_to(t, &m, r * m.per_register + i);
      tl_ptx_emit_void(t, "store i%u %s, %s, align %u", bits, part.text, pointer.text, bits / 8);
    }
  }
}

// "tl.ptx.wmma.m16n16k16.f16.f32.f32": shape, type of A and B, of C, of D.
void tl_ptx_rule_WMMA(ptx_translator *t, const tl_ptx_statement *s) {
  static const char *const shapes[] = {"m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8", "m8n8k4"};
  const char *shape = "", *a = s->row->argument;
  for (int i = 0; i < 5; i++)
    if (tl_ptx_has(s, shapes[i])) shape = shapes[i];
  tl_str terms[TL_PTX_MAX_TERMS] = {0};
  tl_ptx_match(s->row, s, terms);
  enum { D = 6, OTHER = 7, LAST = 9 };
  bool is_f16 = !strcmp(a, "f16");
  char name[96];
  tl_str of_a = is_f16 ? TL_STR("f16") : terms[OTHER], of_c = is_f16 ? terms[OTHER] : terms[LAST];
  snprintf(name, sizeof name, "tl.ptx.wmma.%s.%.*s.%.*s.%.*s%s", shape, TL_STR_ARG(of_a), TL_STR_ARG(of_c),
           TL_STR_ARG(terms[D]), !is_f16 && tl_ptx_has(s, "satfinite") ? ".satfinite" : "");
  tl_ptx_run_op(t, s, name);
}
