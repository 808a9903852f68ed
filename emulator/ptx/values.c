// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands: registers are variables of their width, floats bit casts at their use; addresses of shared memory are
// offsets in its window, all others addresses of the host.
#include <inttypes.h>
#include <string.h>

#include "emulator/ptx/translator.h"

static const char *integer_of(unsigned bits) {
  switch (bits) {
    case 1:
      return "i1";
    case 8:
      return "i8";
    case 16:
      return "i16";
    case 32:
      return "i32";
    case 64:
      return "i64";
    default:
      return "i128";
  }
}

ptx_value tl_ptx_convert_bits(ptx_translator *t, ptx_value value, const char *from, const char *to) {
  if (!strcmp(from, to)) return value;
  return tl_ptx_emit(t, "bitcast %s %s to %s", from, value.text, to);
}

// ---- what is read

// %tid and %ntid: blocks have one dimension in the machine.
static bool read_position(ptx_translator *t, tl_str name, ptx_value *out) {
  static const char *const names[] = {"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z"};
  int which = 0;
  while (which < 6 && !tl_str_is(name, names[which])) which++;
  const uint32_t *block = t->options->block;
  if (which == 6) return false;
  if (which >= 3) {
    *out = tl_ptx_value("%u", block[which - 3]);
    return true;
  }
  ptx_args none = {0}, result;
  if (!tl_ptx_call_op(t, "llvm.nvvm.read.ptx.sreg.tid.x", &none, &result)) return false;
  *out = result.items[0];
  if (which == 0 && block[1] * block[2] != 1) *out = tl_ptx_emit(t, "urem i32 %s, %u", out->text, block[0]);
  if (which > 0) *out = tl_ptx_emit(t, "udiv i32 %s, %u", out->text, which == 1 ? block[0] : block[0] * block[1]);
  if (which == 1 && block[2] != 1) *out = tl_ptx_emit(t, "urem i32 %s, %u", out->text, block[1]);
  return true;
}

static ptx_value read_special(ptx_translator *t, const tl_ptx_operand *operand, tl_ptx_type type) {
  const tl_ptx_special *special = tl_ptx_find_special(operand->text);
  ptx_value value;
  if (!read_position(t, operand->text, &value)) {
    ptx_args none = {0}, result = {0};
    if (!tl_ptx_call_op(t, special->op, &none, &result)) return tl_ptx_value("0");
    value = result.items[0];
  }
  unsigned have = tl_ptx_type_bits(special->type), want = tl_ptx_type_bits(type);
  if (have == want) return value;
  return tl_ptx_emit(t, "%s i%u %s to i%u", have < want ? "zext" : "trunc", have, value.text, want);
}

// The address of a variable, as mov gives it (i64).
static ptx_value address_of_variable(ptx_translator *t, const tl_ptx_symbol *symbol, uint64_t offset) {
  ptx_value base;
  switch (symbol->space) {
    case TL_PTX_SPACE_SHARED:
      base = tl_ptx_emit(t, "ptrtoint ptr addrspace(3) @s%u to i64", symbol->id);
      base = tl_ptx_emit(t, "and i64 %s, 4294967295", base.text);
      break;
    case TL_PTX_SPACE_LOCAL:
    case TL_PTX_SPACE_PARAM:
      base = tl_ptx_emit(t, "ptrtoint ptr %s to i64", tl_ptx_variable(symbol).text);
      break;
    default:
      return tl_ptx_value("%" PRIu64, (uint64_t)(uintptr_t)t->addresses[symbol->id] + offset);
  }
  return offset ? tl_ptx_emit(t, "add i64 %s, %" PRId64, base.text, (int64_t)offset) : base;
}

const char *tl_ptx_variable_type(const ptx_translator *t, const tl_ptx_symbol *symbol) {
  unsigned bits = tl_ptx_type_bits(symbol->type);
  if (t->leans[symbol->id] > 0 && bits == 32) return "float";
  return t->leans[symbol->id] > 0 && bits == 64 ? "double" : integer_of(bits);
}

// A variable is in memory until LLVM promotes it: what a block has written or loaded is not loaded again.
static ptx_value load_variable(ptx_translator *t, const tl_ptx_symbol *symbol) {
  ptx_register *last = &t->values[symbol->id];
  if (last->run == t->run) return last->value;
  last->value = tl_ptx_emit(t, "load %s, ptr %%r%u", tl_ptx_variable_type(t, symbol), symbol->id);
  last->run = t->run;
  return last->value;
}

enum { ALWAYS = UINT32_MAX };  // as bits_run: it was an integer from the beginning

ptx_value tl_ptx_register(ptx_translator *t, const tl_ptx_symbol *symbol) {
  int run = t->runs[symbol->id];
  // Not written: nowhere, or by what was reported.
  if (!run || (run > 0 && !t->values[symbol->id].type)) return tl_ptx_value("0");
  if (run > 0) {
    ptx_register *r = &t->values[symbol->id];
    if (r->bits_run == t->run || r->bits_run == ALWAYS) return r->bits;
    // Made in a block that may lie behind a guard: not there for others.
    r->bits = tl_ptx_convert_bits(t, r->value, r->type, integer_of(tl_ptx_type_bits(symbol->type)));
    r->bits_run = t->run;
    return r->bits;
  }
  return tl_ptx_convert_bits(t, load_variable(t, symbol), tl_ptx_variable_type(t, symbol),
                             integer_of(tl_ptx_type_bits(symbol->type)));
}

static ptx_value read_register(ptx_translator *t, const tl_ptx_operand *operand, tl_ptx_type type) {
  unsigned have = tl_ptx_type_bits(operand->symbol->type), want = tl_ptx_type_bits(type);
  const ptx_register *written = t->runs[operand->symbol->id] > 0 ? &t->values[operand->symbol->id] : NULL;
  if (written && written->type && have == want && !operand->is_negated &&
      !strcmp(written->type, tl_ptx_llvm_type(type)))
    return written->value;
  if (t->runs[operand->symbol->id] < 0 && have == want && !operand->is_negated &&
      !strcmp(tl_ptx_variable_type(t, operand->symbol), tl_ptx_llvm_type(type)))
    return load_variable(t, operand->symbol);
  ptx_value value = tl_ptx_register(t, operand->symbol);
  if (have > want) value = tl_ptx_emit(t, "trunc i%u %s to i%u", have, value.text, want);
  if (operand->is_negated) value = tl_ptx_emit(t, "xor i1 %s, true", value.text);
  return tl_ptx_convert_bits(t, value, integer_of(want), tl_ptx_llvm_type(type));
}

static ptx_value read_constant(const tl_ptx_operand *operand, tl_ptx_type type) {
  unsigned bits = tl_ptx_type_bits(type);
  uint64_t value = operand->value;
  if (bits < 64) value &= (UINT64_C(1) << bits) - 1;
  if (operand->kind == TL_PTX_FLOAT64 && bits == 32) {
    double wide;
    memcpy(&wide, &operand->value, sizeof wide);
    float narrow = (float)wide;
    uint32_t word;
    memcpy(&word, &narrow, sizeof word);
    value = word;
  }
  if (tl_ptx_type_class(type) == TL_PTX_CLASS_FLOAT && type != TL_PTX_TF32) return tl_ptx_float_constant(type, value);
  if (type == TL_PTX_PRED) return tl_ptx_value(value & 1 ? "true" : "false");
  if (tl_ptx_type_class(type) == TL_PTX_CLASS_PACKED && bits == 32)
    return tl_ptx_value("bitcast (i32 %u to %s)", (unsigned)value, tl_ptx_llvm_type(type));
  return tl_ptx_value("%" PRIu64, value);
}

static ptx_value read_parts(ptx_translator *t, const tl_ptx_operand *operand, tl_ptx_type type) {
  const char *whole = integer_of(tl_ptx_type_bits(type));
  ptx_value all = tl_ptx_value("0");
  for (uint32_t i = 0; i < operand->num_items; i++) {
    tl_ptx_type part = operand->items[i].type;
    unsigned bits = tl_ptx_type_bits(part);
    ptx_value value = tl_ptx_read(t, &operand->items[i]);
    value = tl_ptx_emit(t, "zext i%u %s to %s", bits, value.text, whole);
    if (i) value = tl_ptx_emit(t, "shl %s %s, %u", whole, value.text, i * bits);
    all = i ? tl_ptx_emit(t, "or %s %s, %s", whole, all.text, value.text) : value;
  }
  return tl_ptx_convert_bits(t, all, whole, tl_ptx_llvm_type(type));
}

ptx_value tl_ptx_read_as(ptx_translator *t, const tl_ptx_operand *operand, tl_ptx_type type) {
  switch (operand->kind) {
    case TL_PTX_REGISTER:
      return read_register(t, operand, type);
    case TL_PTX_SPECIAL:
      return tl_ptx_convert_bits(t, read_special(t, operand, type), integer_of(tl_ptx_type_bits(type)),
                                 tl_ptx_llvm_type(type));
    case TL_PTX_FUNCTION:
      return tl_ptx_value("%" PRIu64, tl_ptx_function_address(t->module, operand->text));
    case TL_PTX_VARIABLE: {
      ptx_value address = address_of_variable(t, operand->symbol, operand->value);
      return tl_ptx_type_bits(type) == 32 ? tl_ptx_emit(t, "trunc i64 %s to i32", address.text) : address;
    }
    case TL_PTX_VECTOR:
      return read_parts(t, operand, type);
    default:
      return read_constant(operand, type);
  }
}

ptx_value tl_ptx_read(ptx_translator *t, const tl_ptx_operand *operand) {
  return tl_ptx_read_as(t, operand, operand->type);
}

// ---- what is written

static void write_parts(ptx_translator *t, const tl_ptx_operand *operand, tl_ptx_type type, ptx_value value) {
  const char *whole = integer_of(tl_ptx_type_bits(type));
  value = tl_ptx_convert_bits(t, value, tl_ptx_llvm_type(type), whole);
  for (uint32_t i = 0; i < operand->num_items; i++) {
    unsigned bits = tl_ptx_type_bits(operand->items[i].type);
    ptx_value part = i ? tl_ptx_emit(t, "lshr %s %s, %u", whole, value.text, i * bits) : value;
    tl_ptx_write(t, &operand->items[i], tl_ptx_emit(t, "trunc %s %s to i%u", whole, part.text, bits));
  }
}

void tl_ptx_write_as(ptx_translator *t, const tl_ptx_operand *operand, tl_ptx_type type, ptx_value value) {
  if (operand->kind == TL_PTX_SINK) return;
  if (operand->kind == TL_PTX_VECTOR) {
    write_parts(t, operand, type, value);
    return;
  }
  if (t->products) t->products[operand->symbol->id].run = 0;
  unsigned have = tl_ptx_type_bits(type), want = tl_ptx_type_bits(operand->symbol->type);
  const char *llvm = tl_ptx_llvm_type(type);
  if (want > have) {
    const char *extend = tl_ptx_type_class(type) == TL_PTX_CLASS_SIGNED ? "sext" : "zext";
    value = tl_ptx_convert_bits(t, value, llvm, integer_of(have));
    value = tl_ptx_emit(t, "%s i%u %s to i%u", extend, have, value.text, want);
    llvm = integer_of(want);
  }
  if (t->runs[operand->symbol->id] > 0) {
    bool is_integer = !strcmp(llvm, integer_of(want));
    t->values[operand->symbol->id] = (ptx_register){value, llvm, value, is_integer ? ALWAYS : 0, 0};
    return;
  }
  const char *variable = tl_ptx_variable_type(t, operand->symbol);
  value = tl_ptx_convert_bits(t, value, llvm, variable);
  ptx_register *written = &t->values[operand->symbol->id];
  if (!written->is_unsaved) tl_vec_push(&t->unsaved, operand->symbol->id);
  *written = (ptx_register){.value = value, .type = variable, .run = t->run, .is_unsaved = true};
}

void tl_ptx_write(ptx_translator *t, const tl_ptx_operand *operand, ptx_value value) {
  tl_ptx_write_as(t, operand, operand->type, value);
}

// ---- addresses

ptx_window tl_ptx_window_of(const tl_ptx_statement *s) {
  static const struct {
    const char *word;
    ptx_window window;
  } windows[] = {
      {"global", PTX_GLOBAL},           {"const", PTX_GLOBAL}, {"shared", PTX_SHARED}, {"shared::cta", PTX_SHARED},
      {"shared::cluster", PTX_CLUSTER}, {"local", PTX_LOCAL},  {"param", PTX_PARAM},   {"param::entry", PTX_PARAM},
      {"param::func", PTX_PARAM}};
  for (uint32_t i = s->num_words; i-- > 1;)
    for (size_t k = 0; k < sizeof windows / sizeof windows[0]; k++)
      if (tl_str_is(s->words[i], windows[k].word)) return windows[k].window;
  return PTX_GENERIC;
}

static ptx_value typed(ptx_window window, ptx_value pointer) {
  if (window == PTX_GENERIC) return tl_ptx_value("ptr %s", pointer.text);
  return tl_ptx_value("ptr addrspace(%d) %s", (int)window, pointer.text);
}

ptx_value tl_ptx_pointer_of(ptx_translator *t, ptx_value address, ptx_window window) {
  bool is_offset = window == PTX_SHARED || window == PTX_CLUSTER;
  if (is_offset) address = tl_ptx_emit(t, "add i64 %s, %%window", address.text);
  if (window == PTX_GENERIC) return typed(window, tl_ptx_emit(t, "inttoptr i64 %s to ptr", address.text));
  return typed(window, tl_ptx_emit(t, "inttoptr i64 %s to ptr addrspace(%d)", address.text, (int)window));
}

ptx_value tl_ptx_address_of(ptx_translator *t, ptx_value pointer, ptx_window window) {
  bool is_offset = window == PTX_SHARED || window == PTX_CLUSTER;
  ptx_value typed_pointer = typed(window, pointer);
  ptx_value address = tl_ptx_emit(t, "ptrtoint %s to i64", typed_pointer.text);
  return is_offset ? tl_ptx_emit(t, "sub i64 %s, %%window", address.text) : address;
}

// A variable by its name: the pointer itself, where it is one of the window.
static ptx_value pointer_to_variable(ptx_translator *t, const tl_ptx_symbol *symbol, ptx_window window,
                                     uint64_t offset) {
  if (symbol->space == TL_PTX_SPACE_SHARED && (window == PTX_SHARED || window == PTX_CLUSTER)) {
    ptx_value pointer =
        tl_ptx_emit(t, "getelementptr i8, ptr addrspace(3) @s%u, i64 %" PRId64, symbol->id, (int64_t)offset);
    if (window == PTX_CLUSTER)
      pointer = tl_ptx_emit(t, "addrspacecast ptr addrspace(3) %s to ptr addrspace(7)", pointer.text);
    return typed(window, pointer);
  }
  if (symbol->space == TL_PTX_SPACE_PARAM)
    return typed(PTX_GENERIC, tl_ptx_emit(t, "getelementptr i8, ptr %s, i64 %" PRId64, tl_ptx_variable(symbol).text,
                                          (int64_t)offset));
  return tl_ptx_pointer_of(t, address_of_variable(t, symbol, offset), window);
}

ptx_value tl_ptx_pointer(ptx_translator *t, const tl_ptx_operand *operand, ptx_window window, uint64_t skip) {
  uint64_t offset = operand->value + skip;
  const tl_ptx_symbol *base = operand->symbol;
  if (!base) return tl_ptx_pointer_of(t, tl_ptx_value("%" PRIu64, offset), window);
  if (base->space != TL_PTX_SPACE_REG) return pointer_to_variable(t, base, window, offset);
  bool is_narrow = tl_ptx_type_bits(base->type) == 32;
  ptx_value address = tl_ptx_register(t, base);
  if (is_narrow && offset) address = tl_ptx_emit(t, "add i32 %s, %d", address.text, (int)(uint32_t)offset);
  if (is_narrow) address = tl_ptx_emit(t, "zext i32 %s to i64", address.text);
  if (!is_narrow && offset) address = tl_ptx_emit(t, "add i64 %s, %" PRId64, address.text, (int64_t)offset);
  return tl_ptx_pointer_of(t, address, window);
}
