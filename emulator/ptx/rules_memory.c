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
  // PTX ISA, ld.volatile: the same memory synchronisation as ld.relaxed.sys.
  if (tl_ptx_has(s, "volatile")) return "monotonic";
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

// What a load and a store have in common: one access, or one for each lane where they are ordered.
typedef struct access {
  const tl_ptx_operand *values, *address;
  tl_ptx_type type;  // of a lane in memory
  uint32_t lanes, bytes;
  const char *order;  // NULL: an ordinary access
  ptx_window window;
} access;

static access access_of(const tl_ptx_statement *s, uint32_t values, uint32_t address) {
  access a = {.values = &s->operands[values], .address = &s->operands[address]};
  a.type = integer_type(a.values->type);
  a.lanes = lanes_of(a.values);
  a.bytes = tl_ptx_type_bytes(a.type);
  a.order = order_of(s);
  a.window = tl_ptx_window_of(s);
  return a;
}

static ptx_value pointer_to_lane(ptx_translator *t, const access *a, uint32_t lane) {
  return tl_ptx_pointer(t, a->address, a->window, (uint64_t)lane * a->bytes);
}

void tl_ptx_rule_PART(ptx_translator *t, const tl_ptx_statement *s) {
  t->part = tl_ptx_read(t, &s->operands[0]);
}

// The relaxed access to a word that is about a part of it (device_ops.def, atomics on a part of an aligned word).
static ptx_value access_part(ptx_translator *t, ptx_window window, const char *name, ptx_value pointer,
                             const ptx_value *values, unsigned n) {
  char op[64];
  snprintf(op, sizeof op, name, window == PTX_SHARED ? "shared" : "global");
  ptx_args args = {.n = n + 2, .items[0] = tl_ptx_value("%s", strrchr(pointer.text, ' ') + 1)}, result = {0};
  for (unsigned i = 0; i < n; i++) args.items[1 + i] = values[i];
  args.items[n + 1] = t->part;
  return tl_ptx_call_op(t, op, &args, &result) ? result.items[0] : tl_ptx_value("poison");
}

void tl_ptx_rule_LOAD(ptx_translator *t, const tl_ptx_statement *s) {
  access a = access_of(s, 0, 1);
  ptx_value memory = memory_type(a.type, a.lanes), all = {{0}};
  if (t->part.text[0])
    all = access_part(t, a.window, "tl.ld.relaxed.%s.part", pointer_to_lane(t, &a, 0), NULL, 0);
  else if (!a.order)
    all =
        tl_ptx_emit_placed(t, "load %s, %s, align %u", memory.text, pointer_to_lane(t, &a, 0).text, a.lanes * a.bytes);
  for (uint32_t i = 0; i < a.lanes; i++) {
    ptx_value lane = all;
    if (!all.text[0])
      lane = tl_ptx_emit_placed(t, "load atomic %s, %s%s %s, align %u", memory_type(a.type, 1).text,
                                pointer_to_lane(t, &a, i).text, scope_of(s, "").text, a.order, a.bytes);
    else if (a.lanes > 1)
      lane = tl_ptx_emit(t, "extractelement %s %s, i32 %u", memory.text, all.text, i);
    tl_ptx_write_as(t, lane_of(a.values, i), a.type, lane);
  }
}

// A constant is one of the instruction's type.
static ptx_value read_lane(ptx_translator *t, const access *a, uint32_t lane) {
  const tl_ptx_operand *from = lane_of(a->values, lane);
  if (from->kind != TL_PTX_FLOAT32 && from->kind != TL_PTX_FLOAT64) return tl_ptx_read_as(t, from, a->type);
  ptx_value value = tl_ptx_read_as(t, from, from->type);
  return tl_ptx_convert_bits(t, value, tl_ptx_llvm_type(from->type), memory_type(a->type, 1).text);
}

void tl_ptx_rule_STORE(ptx_translator *t, const tl_ptx_statement *s) {
  access a = access_of(s, 1, 0);
  ptx_value memory = memory_type(a.type, a.lanes), element = memory_type(a.type, 1), all = tl_ptx_value("poison");
  for (uint32_t i = 0; i < a.lanes; i++) {
    ptx_value lane = read_lane(t, &a, i);
    if (a.order)
      tl_ptx_emit_void(t, "store atomic %s %s, %s%s %s, align %u", element.text, lane.text,
                       pointer_to_lane(t, &a, i).text, scope_of(s, "").text, a.order, a.bytes);
    else if (a.lanes > 1)
      all = tl_ptx_emit(t, "insertelement %s %s, %s %s, i32 %u", memory.text, all.text, element.text, lane.text, i);
    else
      all = lane;
  }
  if (!a.order)
    tl_ptx_emit_void(t, "store %s %s, %s, align %u", memory.text, all.text, pointer_to_lane(t, &a, 0).text,
                     a.lanes * a.bytes);
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
                        ptx_value value, unsigned align) {
  const char *order = order_of(s);
  return tl_ptx_emit_placed(t, "atomicrmw %s %s, %s %s%s %s, align %u", update_of(s, type), pointer.text,
                            tl_ptx_llvm_type(type), value.text, scope_of(s, "device").text, order ? order : "monotonic",
                            align);
}

static void compare_and_swap(ptx_translator *t, const tl_ptx_statement *s, ptx_value pointer) {
  tl_ptx_type type = s->operands[0].type;
  const char *llvm = tl_ptx_llvm_type(type), *order = order_of(s) ? order_of(s) : "monotonic";
  bool acquires = !strcmp(order, "acquire") || !strcmp(order, "acq_rel");
  ptx_value values[] = {tl_ptx_read(t, &s->operands[2]), tl_ptx_read(t, &s->operands[3])};
  if (t->part.text[0]) {
    tl_ptx_write(t, &s->operands[0],
                 access_part(t, tl_ptx_window_of(s), "tl.atom.relaxed.%s.cas.part", pointer, values, 2));
    return;
  }
  ptx_value pair = tl_ptx_emit_placed(t, "cmpxchg %s, %s %s, %s %s%s %s %s, align %u", pointer.text, llvm,
                                      values[0].text, llvm, values[1].text, scope_of(s, "").text, order,
                                      acquires ? "acquire" : "monotonic", tl_ptx_type_bytes(type));
  tl_ptx_write(t, &s->operands[0], tl_ptx_emit(t, "extractvalue {%s, i1} %s, 0", llvm, pair.text));
}

// Pairs of halves, and vectors of floats and of pairs, are updated element by element (PTX ISA, atom: "each element
// atomically").
static void update_elements(ptx_translator *t, const tl_ptx_statement *s, const tl_ptx_operand *address,
                            const tl_ptx_operand *from, ptx_window window) {
  tl_ptx_type type = from->type;
  bool is_packed = tl_ptx_type_class(type) == TL_PTX_CLASS_PACKED;
  tl_ptx_type part = type == TL_PTX_F16X2 ? TL_PTX_F16 : type == TL_PTX_BF16X2 ? TL_PTX_BF16 : type;
  const char *whole = tl_ptx_llvm_type(type), *llvm = tl_ptx_llvm_type(part);
  uint32_t each = is_packed ? 2 : 1, lanes = from->kind == TL_PTX_VECTOR ? lanes_of(from) : 1;
  ptx_value word = tl_ptx_value("0"), old = tl_ptx_value("poison");
  for (uint32_t i = 0; i < lanes * each; i++) {
    if (i % each == 0) word = tl_ptx_read(t, from->kind == TL_PTX_VECTOR ? lane_of(from, i / each) : from);
    ptx_value value = is_packed ? tl_ptx_emit(t, "extractelement %s %s, i32 %u", whole, word.text, i % each) : word;
    // The first element stands where all of them begin.
    unsigned align = tl_ptx_type_bytes(part) * (i ? 1 : lanes * each);
    ptx_value before =
        update(t, s, part, tl_ptx_pointer(t, address, window, i * tl_ptx_type_bytes(part)), value, align);
    if (is_packed)
      old = tl_ptx_emit(t, "insertelement %s %s, %s %s, i32 %u", whole, old.text, llvm, before.text, i % each);
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
    ptx_value before =
        update(t, s, from->type, tl_ptx_pointer(t, address, window, 0), value, tl_ptx_type_bytes(from->type));
    if (has_result) tl_ptx_write(t, &s->operands[0], before);
  }
}

// fence without a kind is acq_rel; membar is sc (PTX ISA, membar, fence).
void tl_ptx_rule_FENCE(ptx_translator *t, const tl_ptx_statement *s) {
  const char *order = order_of(s);
  bool is_sc = tl_ptx_has(s, "sc") || tl_str_is(s->words[0], "membar");
  tl_ptx_emit_void(t, "fence%s %s", scope_of(s, "").text, is_sc ? "seq_cst" : order ? order : "acq_rel");
}

// Memory of the thread until its function returns; the address is one of local memory, which is a generic one here.
void tl_ptx_rule_ALLOCA(ptx_translator *t, const tl_ptx_statement *s) {
  unsigned align = s->num_operands > 2 ? (unsigned)s->operands[2].value : 8;
  if (!align || (align & (align - 1)) || align > 4096) {
    tl_ptx_unsupported(t, s->operands[2].loc, "an alignment is a power of two up to 4096");
    return;
  }
  ptx_value bytes = tl_ptx_read(t, &s->operands[1]);
  ptx_value place = tl_ptx_emit(t, "alloca i8, i64 %s, align %u", bytes.text, align);
  tl_ptx_declare_function(t, "tl.ptx.local.begin", "void @tl.ptx.local.begin(ptr, i64)");
  tl_ptx_emit_void(t, "call void @tl.ptx.local.begin(ptr %s, i64 %s)", place.text, bytes.text);
  tl_ptx_write(t, &s->operands[0], tl_ptx_emit(t, "ptrtoint ptr %s to i64", place.text));
}

// Hints.
void tl_ptx_rule_NOTHING(ptx_translator *t, const tl_ptx_statement *s) {
  (void)t;
  (void)s;
}
