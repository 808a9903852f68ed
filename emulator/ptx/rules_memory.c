// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads, stores, atomics, fences (PTX ISA, Data Movement, Parallel Synchronization; Memory Consistency Model).
#include <stdio.h>
#include <string.h>

#include "emulator/ptx/translator.h"

// " syncscope(\"device\")" of the words; "" for the whole system. `otherwise`: without a word.
static ptx_value scope_of(const tl_ptx_statement *s, const char *otherwise) {
  const char *name = otherwise;
  if (tl_ptx_has(s, "cta")) name = "block";
  if (tl_ptx_has(s, "cluster")) name = "cluster";
  if (tl_ptx_has(s, "gpu") || tl_ptx_has(s, "gl")) name = "device";
  if (tl_ptx_has(s, "sys")) name = "";
  return tl_ptx_value(*name ? " syncscope(\"%s\")" : "%s", name);
}

// LLVM's order; NULL: an ordinary access.
static const char *order_of(const tl_ptx_statement *s) {
  if (tl_ptx_has(s, "relaxed")) return "monotonic";
  if (tl_ptx_has(s, "acquire")) return "acquire";
  if (tl_ptx_has(s, "release")) return "release";
  if (tl_ptx_has(s, "acq_rel")) return "acq_rel";
  return NULL;
}

static uint32_t lanes_of(const tl_ptx_operand *operand) {
  return operand->kind == TL_PTX_VECTOR ? operand->num_items : 1;
}

static const tl_ptx_operand *lane_of(const tl_ptx_operand *operand, uint32_t i) {
  return operand->kind == TL_PTX_VECTOR ? &operand->items[i] : operand;
}

// The integer that memory holds for a type.
static ptx_value memory_type(tl_ptx_type type, uint32_t lanes) {
  unsigned bits = 8 * tl_ptx_type_bytes(type);
  return lanes > 1 ? tl_ptx_value("<%u x i%u>", lanes, bits) : tl_ptx_value("i%u", bits);
}

// As which type the integer goes into a register: signed ones extend.
static tl_ptx_type integer_type(tl_ptx_type type) {
  bool is_signed = tl_ptx_type_class(type) == TL_PTX_CLASS_SIGNED;
  switch (tl_ptx_type_bits(type)) {
    case 8:
      return is_signed ? TL_PTX_S8 : TL_PTX_B8;
    case 16:
      return is_signed ? TL_PTX_S16 : TL_PTX_B16;
    case 32:
      return is_signed ? TL_PTX_S32 : TL_PTX_B32;
    case 64:
      return is_signed ? TL_PTX_S64 : TL_PTX_B64;
    default:
      return TL_PTX_B128;
  }
}

void tl_ptx_rule_LOAD(ptx_translator *t, const tl_ptx_statement *s) {
  const tl_ptx_operand *d = &s->operands[0];
  tl_ptx_type type = integer_type(d->type);
  uint32_t lanes = lanes_of(d), bytes = tl_ptx_type_bytes(type);
  const char *order = order_of(s), *volatile_ = tl_ptx_has(s, "volatile") ? "volatile " : "";
  ptx_window window = tl_ptx_window_of(s);
  if (order) {
    for (uint32_t i = 0; i < lanes; i++) {
      ptx_value pointer = tl_ptx_pointer(t, &s->operands[1], window, i * bytes);
      ptx_value value = tl_ptx_emit(t, "load atomic %s, %s%s %s, align %u", memory_type(type, 1).text, pointer.text,
                                    scope_of(s, "").text, order, bytes);
      tl_ptx_write_as(t, lane_of(d, i), type, value);
    }
    return;
  }
  ptx_value pointer = tl_ptx_pointer(t, &s->operands[1], window, 0), memory = memory_type(type, lanes);
  ptx_value value = tl_ptx_emit(t, "load %s%s, %s, align %u", volatile_, memory.text, pointer.text, lanes * bytes);
  for (uint32_t i = 0; i < lanes; i++) {
    ptx_value lane = lanes > 1 ? tl_ptx_emit(t, "extractelement %s %s, i32 %u", memory.text, value.text, i) : value;
    tl_ptx_write_as(t, lane_of(d, i), type, lane);
  }
}

void tl_ptx_rule_STORE(ptx_translator *t, const tl_ptx_statement *s) {
  const tl_ptx_operand *from = &s->operands[1];
  tl_ptx_type type = integer_type(from->type);
  uint32_t lanes = lanes_of(from), bytes = tl_ptx_type_bytes(type);
  const char *order = order_of(s), *volatile_ = tl_ptx_has(s, "volatile") ? "volatile " : "";
  ptx_window window = tl_ptx_window_of(s);
  ptx_value memory = memory_type(type, lanes), all = tl_ptx_value("poison"), element = memory_type(type, 1);
  for (uint32_t i = 0; i < lanes; i++) {
    // A constant is one of the instruction's type.
    const tl_ptx_operand *lane = lane_of(from, i);
    bool is_float = lane->kind == TL_PTX_FLOAT32 || lane->kind == TL_PTX_FLOAT64;
    ptx_value value = tl_ptx_read_as(t, lane, is_float ? lane->type : type);
    if (is_float) value = tl_ptx_convert_bits(t, value, tl_ptx_llvm_type(lane->type), element.text);
    if (order) {
      ptx_value pointer = tl_ptx_pointer(t, &s->operands[0], window, i * bytes);
      tl_ptx_emit_void(t, "store atomic %s %s, %s%s %s, align %u", element.text, value.text, pointer.text,
                       scope_of(s, "").text, order, bytes);
    }
    all = lanes > 1
              ? tl_ptx_emit(t, "insertelement %s %s, %s %s, i32 %u", memory.text, all.text, element.text, value.text, i)
              : value;
  }
  if (order) return;
  ptx_value pointer = tl_ptx_pointer(t, &s->operands[0], window, 0);
  tl_ptx_emit_void(t, "store %s%s %s, %s, align %u", volatile_, memory.text, all.text, pointer.text, lanes * bytes);
}

// ---- atomics

static const char *update_of(const tl_ptx_statement *s, tl_ptx_type type) {
  static const struct {
    const char *word, *op;
  } rows[] = {{"and", "and"},   {"or", "or"},         {"xor", "xor"},
              {"exch", "xchg"}, {"inc", "uinc_wrap"}, {"dec", "udec_wrap"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (tl_ptx_has(s, rows[i].word)) return rows[i].op;
  tl_ptx_class class = tl_ptx_type_class(type);
  if (tl_ptx_has(s, "add")) return class == TL_PTX_CLASS_FLOAT ? "fadd" : "add";
  bool is_max = tl_ptx_has(s, "max");
  return class == TL_PTX_CLASS_SIGNED ? (is_max ? "max" : "min") : (is_max ? "umax" : "umin");
}

static ptx_value update(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, ptx_value pointer,
                        ptx_value value) {
  const char *order = order_of(s);
  return tl_ptx_emit(t, "atomicrmw %s %s, %s %s%s %s, align %u", update_of(s, type), pointer.text,
                     tl_ptx_llvm_type(type), value.text, scope_of(s, "device").text, order ? order : "monotonic",
                     tl_ptx_type_bytes(type));
}

static void compare_and_swap(ptx_translator *t, const tl_ptx_statement *s, ptx_value pointer) {
  tl_ptx_type type = s->operands[0].type;
  const char *llvm = tl_ptx_llvm_type(type), *order = order_of(s) ? order_of(s) : "monotonic";
  bool acquires = !strcmp(order, "acquire") || !strcmp(order, "acq_rel");
  ptx_value expected = tl_ptx_read(t, &s->operands[2]), wanted = tl_ptx_read(t, &s->operands[3]);
  ptx_value pair =
      tl_ptx_emit(t, "cmpxchg %s, %s %s, %s %s%s %s %s, align %u", pointer.text, llvm, expected.text, llvm, wanted.text,
                  scope_of(s, "").text, order, acquires ? "acquire" : "monotonic", tl_ptx_type_bytes(type));
  tl_ptx_write(t, &s->operands[0], tl_ptx_emit(t, "extractvalue {%s, i1} %s, 0", llvm, pair.text));
}

// Pairs of halves and vectors of floats are updated element by element (PTX ISA, atom: "each element atomically").
static void update_elements(ptx_translator *t, const tl_ptx_statement *s, const tl_ptx_operand *address,
                            const tl_ptx_operand *from, ptx_window window) {
  tl_ptx_type type = from->type;
  bool is_packed = tl_ptx_type_class(type) == TL_PTX_CLASS_PACKED;
  tl_ptx_type part = type == TL_PTX_F16X2 ? TL_PTX_F16 : type == TL_PTX_BF16X2 ? TL_PTX_BF16 : type;
  const char *whole = tl_ptx_llvm_type(type), *llvm = tl_ptx_llvm_type(part);
  uint32_t lanes = is_packed ? 2 : lanes_of(from);
  ptx_value packed = is_packed ? tl_ptx_read(t, from) : tl_ptx_value("0"), old = tl_ptx_value("poison");
  for (uint32_t i = 0; i < lanes; i++) {
    ptx_value value = is_packed ? tl_ptx_emit(t, "extractelement %s %s, i32 %u", whole, packed.text, i)
                                : tl_ptx_read(t, lane_of(from, i));
    ptx_value before = update(t, s, part, tl_ptx_pointer(t, address, window, i * tl_ptx_type_bytes(part)), value);
    if (is_packed) old = tl_ptx_emit(t, "insertelement %s %s, %s %s, i32 %u", whole, old.text, llvm, before.text, i);
  }
  if (is_packed && tl_str_is(s->words[0], "atom")) tl_ptx_write(t, &s->operands[0], old);
}

void tl_ptx_rule_ATOMIC(ptx_translator *t, const tl_ptx_statement *s) {
  bool has_result = tl_str_is(s->words[0], "atom");
  const tl_ptx_operand *address = &s->operands[has_result], *from = &s->operands[has_result + 1u];
  ptx_window window = tl_ptx_window_of(s);
  if (tl_ptx_has(s, "cas")) {
    compare_and_swap(t, s, tl_ptx_pointer(t, address, window, 0));
  } else if (tl_ptx_type_class(from->type) == TL_PTX_CLASS_PACKED || from->kind == TL_PTX_VECTOR) {
    update_elements(t, s, address, from, window);
  } else {
    ptx_value value = tl_ptx_read(t, from);
    ptx_value before = update(t, s, from->type, tl_ptx_pointer(t, address, window, 0), value);
    if (has_result) tl_ptx_write(t, &s->operands[0], before);
  }
}

// fence without a kind is acq_rel; membar is sc (PTX ISA, membar, fence).
void tl_ptx_rule_FENCE(ptx_translator *t, const tl_ptx_statement *s) {
  const char *order = order_of(s);
  bool is_sc = tl_ptx_has(s, "sc") || tl_str_is(s->words[0], "membar");
  tl_ptx_emit_void(t, "fence%s %s", scope_of(s, "").text, is_sc ? "seq_cst" : order ? order : "acq_rel");
}

// Hints.
void tl_ptx_rule_NOTHING(ptx_translator *t, const tl_ptx_statement *s) {
  (void)t;
  (void)s;
}
