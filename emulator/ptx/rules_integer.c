// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integers and bits (PTX ISA, Integer Arithmetic, Extended-Precision, Logic and Shift Instructions).
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ptx/translator.h"

static bool is_signed(tl_ptx_type type) {
  return tl_ptx_type_class(type) == TL_PTX_CLASS_SIGNED || type == TL_PTX_S16X2;
}

static ptx_value smaller(ptx_translator *t, const char *llvm, ptx_value a, ptx_value b, bool by_sign, bool larger) {
  ptx_value first =
      tl_ptx_emit(t, "icmp %s%s %s %s, %s", by_sign ? "s" : "u", larger ? "gt" : "lt", llvm, a.text, b.text);
  const char *condition = llvm[0] == '<' ? "<2 x i1>" : "i1";
  return tl_ptx_emit(t, "select %s %s, %s %s, %s %s", condition, first.text, llvm, a.text, llvm, b.text);
}

// The quotient of the least number and -1 has no result on the host: x / -1 is -x, x % -1 is 0.
static ptx_value divide(ptx_translator *t, const char *op, tl_ptx_type type, ptx_value a, ptx_value b) {
  const char *llvm = tl_ptx_llvm_type(type);
  bool is_div = !strcmp(op, "div");
  if (!is_signed(type)) return tl_ptx_emit_placed(t, "u%s %s %s, %s", op, llvm, a.text, b.text);
  ptx_value is_minus = tl_ptx_emit(t, "icmp eq %s %s, -1", llvm, b.text);
  ptx_value divisor = tl_ptx_emit(t, "select i1 %s, %s 1, %s %s", is_minus.text, llvm, llvm, b.text);
  ptx_value result = tl_ptx_emit_placed(t, "s%s %s %s, %s", op, llvm, a.text, divisor.text);
  if (!is_div) return result;
  ptx_value negative = tl_ptx_emit(t, "sub %s 0, %s", llvm, result.text);
  return tl_ptx_emit(t, "select i1 %s, %s %s, %s %s", is_minus.text, llvm, negative.text, llvm, result.text);
}

static ptx_value zero_of(tl_ptx_type type) {
  return tl_ptx_value(tl_ptx_type_class(type) == TL_PTX_CLASS_PACKED ? "zeroinitializer" : "0");
}

void tl_ptx_rule_BINARY(ptx_translator *t, const tl_ptx_statement *s) {
  const char *op = s->row->argument;
  tl_ptx_type type = s->operands[0].type;
  const char *llvm = tl_ptx_llvm_type(type);
  ptx_value args[] = {tl_ptx_read(t, &s->operands[1]), tl_ptx_read(t, &s->operands[2])}, result;
  if (!strcmp(op, "min") || !strcmp(op, "max"))
    result = smaller(t, llvm, args[0], args[1], is_signed(type), op[1] == 'a');
  else if (!strcmp(op, "div") || !strcmp(op, "rem"))
    result = divide(t, op, type, args[0], args[1]);
  else if (strchr(op, '.'))
    result = tl_ptx_intrinsic(t, op, type, args, 2);
  else
    result = tl_ptx_emit(t, "%s %s %s, %s", op, llvm, args[0].text, args[1].text);
  if (tl_ptx_has(s, "relu")) result = smaller(t, llvm, result, zero_of(type), true, true);
  tl_ptx_write(t, &s->operands[0], result);
}

void tl_ptx_rule_UNARY(ptx_translator *t, const tl_ptx_statement *s) {
  const char *op = s->row->argument, *llvm = tl_ptx_llvm_type(s->operands[0].type);
  ptx_value a = tl_ptx_read(t, &s->operands[1]), result;
  if (!strcmp(op, "neg")) {
    result = tl_ptx_emit(t, "sub %s 0, %s", llvm, a.text);
  } else if (!strcmp(op, "not")) {
    result = tl_ptx_emit(t, "xor %s %s, -1", llvm, a.text);
  } else if (!strcmp(op, "cnot")) {
    result = tl_ptx_emit(t, "zext i1 %s to %s", tl_ptx_emit(t, "icmp eq %s %s, 0", llvm, a.text).text, llvm);
  } else {
    result = tl_ptx_intrinsic(t, op, s->operands[0].type, &a, 1);
  }
  tl_ptx_write(t, &s->operands[0], result);
}

// ---- products

static ptx_value extend(ptx_translator *t, ptx_value value, unsigned from, unsigned to, bool by_sign) {
  // A constant that is the same either way.
  if (value.text[0] >= '0' && value.text[0] <= '9' && strtoull(value.text, NULL, 10) >> (from - 1) == 0) return value;
  return tl_ptx_emit(t, "%s i%u %s to i%u", by_sign ? "sext" : "zext", from, value.text, to);
}

// a × b with twice the bits.
static ptx_value wide_product(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type) {
  unsigned bits = tl_ptx_type_bits(type);
  ptx_value a = extend(t, tl_ptx_read(t, &s->operands[1]), bits, 2 * bits, is_signed(type));
  ptx_value b = extend(t, tl_ptx_read(t, &s->operands[2]), bits, 2 * bits, is_signed(type));
  return tl_ptx_emit(t, "mul i%u %s, %s", 2 * bits, a.text, b.text);
}

static ptx_value upper_half(ptx_translator *t, ptx_value wide, unsigned bits) {
  ptx_value high = tl_ptx_emit(t, "lshr i%u %s, %u", 2 * bits, wide.text, bits);
  return tl_ptx_emit(t, "trunc i%u %s to i%u", 2 * bits, high.text, bits);
}

void tl_ptx_rule_MUL_HIGH(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type type = s->operands[1].type;
  unsigned bits = tl_ptx_type_bits(type);
  ptx_value result = upper_half(t, wide_product(t, s, type), bits);
  if (s->num_operands > 3) {
    ptx_value args[] = {result, tl_ptx_read(t, &s->operands[3])};
    result = s->row->argument[0] ? tl_ptx_intrinsic(t, "sadd.sat", type, args, 2)
                                 : tl_ptx_emit(t, "add i%u %s, %s", bits, args[0].text, args[1].text);
  }
  tl_ptx_write(t, &s->operands[0], result);
}

void tl_ptx_rule_MUL_WIDE(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value result = wide_product(t, s, s->operands[1].type);
  if (s->num_operands > 3)
    result = tl_ptx_emit(t, "add %s %s, %s", tl_ptx_llvm_type(s->operands[0].type), result.text,
                         tl_ptx_read(t, &s->operands[3]).text);
  tl_ptx_write(t, &s->operands[0], result);
}

void tl_ptx_rule_MUL_ADD(ptx_translator *t, const tl_ptx_statement *s) {
  const char *llvm = tl_ptx_llvm_type(s->operands[0].type);
  ptx_value product =
      tl_ptx_emit(t, "mul %s %s, %s", llvm, tl_ptx_read(t, &s->operands[1]).text, tl_ptx_read(t, &s->operands[2]).text);
  tl_ptx_write(t, &s->operands[0],
               tl_ptx_emit(t, "add %s %s, %s", llvm, product.text, tl_ptx_read(t, &s->operands[3]).text));
}

// PTX ISA, mul24: products of the lower 24 bits; .hi gives bits 47 to 16.
void tl_ptx_rule_MUL24(ptx_translator *t, const tl_ptx_statement *s) {
  bool by_sign = is_signed(s->operands[1].type);
  ptx_value factors[2];
  for (int i = 0; i < 2; i++) {
    ptx_value low = tl_ptx_emit(t, "shl i32 %s, 8", tl_ptx_read(t, &s->operands[i + 1]).text);
    low = tl_ptx_emit(t, "%s i32 %s, 8", by_sign ? "ashr" : "lshr", low.text);
    factors[i] = extend(t, low, 32, 64, by_sign);
  }
  ptx_value product = tl_ptx_emit(t, "mul i64 %s, %s", factors[0].text, factors[1].text);
  if (tl_ptx_has(s, "hi")) product = tl_ptx_emit(t, "lshr i64 %s, 16", product.text);
  ptx_value result = tl_ptx_emit(t, "trunc i64 %s to i32", product.text);
  if (s->num_operands > 3) result = tl_ptx_emit(t, "add i32 %s, %s", result.text, tl_ptx_read(t, &s->operands[3]).text);
  tl_ptx_write(t, &s->operands[0], result);
}

void tl_ptx_rule_SAD(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type type = s->operands[1].type;
  const char *llvm = tl_ptx_llvm_type(type);
  ptx_value a = tl_ptx_read(t, &s->operands[1]), b = tl_ptx_read(t, &s->operands[2]);
  ptx_value high = smaller(t, llvm, a, b, is_signed(type), true), low = smaller(t, llvm, a, b, is_signed(type), false);
  ptx_value distance = tl_ptx_emit(t, "sub %s %s, %s", llvm, high.text, low.text);
  tl_ptx_write(t, &s->operands[0],
               tl_ptx_emit(t, "add %s %s, %s", llvm, distance.text, tl_ptx_read(t, &s->operands[3]).text));
}

void tl_ptx_rule_DP4A(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value args[3];
  for (int i = 0; i < 3; i++) args[i] = tl_ptx_read(t, &s->operands[i + 1]);
  bool a = is_signed(s->operands[1].type), b = is_signed(s->operands[2].type);
  tl_ptx_write(t, &s->operands[0],
               tl_ptx_call_scalar(t,
                                  a ? (b ? "llvm.nvvm.idp4a.s.s" : "llvm.nvvm.idp4a.s.u")
                                    : (b ? "llvm.nvvm.idp4a.u.s" : "llvm.nvvm.idp4a.u.u"),
                                  args, 3));
}

// Bits `from` to from + width of an i32, extended to it.
static ptx_value field(ptx_translator *t, ptx_value value, unsigned from, unsigned width, bool by_sign) {
  value = tl_ptx_emit(t, "shl i32 %s, %u", value.text, 32 - from - width);
  return tl_ptx_emit(t, "%s i32 %s, %u", by_sign ? "ashr" : "lshr", value.text, 32 - width);
}

// PTX ISA, dp2a: halves of a by the lower or upper two bytes of b.
void tl_ptx_rule_DP2A(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value a = tl_ptx_read(t, &s->operands[1]), b = tl_ptx_read(t, &s->operands[2]);
  ptx_value sum = tl_ptx_read(t, &s->operands[3]);
  unsigned start = tl_ptx_has(s, "hi") ? 16 : 0;
  for (unsigned i = 0; i < 2; i++) {
    ptx_value x = field(t, a, 16 * i, 16, is_signed(s->operands[1].type));
    ptx_value y = field(t, b, start + 8 * i, 8, is_signed(s->operands[2].type));
    sum = tl_ptx_emit(t, "add i32 %s, %s", sum.text, tl_ptx_emit(t, "mul i32 %s, %s", x.text, y.text).text);
  }
  tl_ptx_write(t, &s->operands[0], sum);
}

// add.cc, addc, sub.cc, subc, mad.cc, madc: the carry goes from one to the next through CC.
void tl_ptx_rule_CARRY(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type type = s->operands[0].type;
  unsigned bits = tl_ptx_type_bits(type), wide = 2 * bits;
  bool is_sub = !strcmp(s->row->argument, "sub"), is_mad = !strcmp(s->row->argument, "mad");
  bool takes = tl_str_ends_with(s->words[0], "c") && !tl_str_is(s->words[0], "sub");
  ptx_value a = tl_ptx_read(t, &s->operands[1]), b = tl_ptx_read(t, &s->operands[2]);
  if (is_mad) {
    ptx_value product = wide_product(t, s, type);
    a = tl_ptx_has(s, "hi") ? upper_half(t, product, bits)
                            : tl_ptx_emit(t, "trunc i%u %s to i%u", wide, product.text, bits);
    b = tl_ptx_read(t, &s->operands[3]);
  }
  ptx_value x = extend(t, a, bits, wide, false), y = extend(t, b, bits, wide, false);
  if (takes) {
    ptx_value carry = extend(t, tl_ptx_emit(t, "load i32, ptr %%cc"), 32, wide == 32 ? 64 : wide, false);
    y = tl_ptx_emit(t, "add i%u %s, %s", wide, y.text, carry.text);
  }
  ptx_value result = tl_ptx_emit(t, "%s i%u %s, %s", is_sub ? "sub" : "add", wide, x.text, y.text);
  tl_ptx_write(t, &s->operands[0], tl_ptx_emit(t, "trunc i%u %s to i%u", wide, result.text, bits));
  if (!tl_ptx_has(s, "cc")) return;
  ptx_value out = tl_ptx_emit(t, "lshr i%u %s, %u", wide, result.text, bits);
  out = tl_ptx_emit(t, "and i32 %s, 1", tl_ptx_emit(t, "trunc i%u %s to i32", wide, out.text).text);
  tl_ptx_emit_void(t, "store i32 %s, ptr %%cc", out.text);
}

// ---- bits

void tl_ptx_rule_COUNT(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type type = s->operands[1].type;
  ptx_value a = tl_ptx_read(t, &s->operands[1]), result = tl_ptx_intrinsic(t, s->row->argument, type, &a, 1);
  if (tl_ptx_type_bits(type) == 64) result = tl_ptx_emit(t, "trunc i64 %s to i32", result.text);
  tl_ptx_write(t, &s->operands[0], result);
}

// PTX ISA, bfind: the highest bit that is not the sign; all bits set when there is none.
void tl_ptx_rule_BFIND(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type type = s->operands[1].type;
  unsigned bits = tl_ptx_type_bits(type);
  ptx_value a = tl_ptx_read(t, &s->operands[1]);
  if (is_signed(type)) {
    ptx_value sign = tl_ptx_emit(t, "ashr i%u %s, %u", bits, a.text, bits - 1);
    a = tl_ptx_emit(t, "xor i%u %s, %s", bits, a.text, sign.text);
  }
  ptx_value zeros = tl_ptx_intrinsic(t, "ctlz", type, &a, 1);
  if (bits == 64) zeros = tl_ptx_emit(t, "trunc i64 %s to i32", zeros.text);
  ptx_value result = tl_ptx_emit(t, "sub i32 %u, %s", bits - 1, zeros.text);
  if (tl_ptx_has(s, "shiftamt")) {
    ptx_value none = tl_ptx_emit(t, "icmp eq i32 %s, %u", zeros.text, bits);
    result = tl_ptx_emit(t, "select i1 %s, i32 -1, i32 %s", none.text, zeros.text);
  }
  tl_ptx_write(t, &s->operands[0], result);
}

// An operand, at most `bits`, as an integer of twice that width. Of more than 8 bits (PTX ISA, bfe: 0 to 255) an H200
// takes the lowest 8 for fields of 32 bits, and all for those of 64.
static ptx_value position(ptx_translator *t, const tl_ptx_operand *operand, unsigned bits, bool whole) {
  ptx_value value = tl_ptx_read(t, operand);
  if (!whole) value = tl_ptx_emit(t, "and i32 %s, 255", value.text);
  value = smaller(t, "i32", value, tl_ptx_value("%u", bits), false, false);
  return extend(t, value, 32, 2 * bits == 32 ? 64 : 2 * bits, false);
}

void tl_ptx_rule_BFE(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type type = s->operands[0].type;
  unsigned bits = tl_ptx_type_bits(type), wide = 2 * bits;
  bool by_sign = is_signed(type);
  const char *shift = by_sign ? "ashr" : "lshr";
  ptx_value a = extend(t, tl_ptx_read(t, &s->operands[1]), bits, wide, by_sign);
  ptx_value from = position(t, &s->operands[2], bits, bits == 64),
            length = position(t, &s->operands[3], bits, bits == 64);
  ptx_value value = tl_ptx_emit(t, "%s i%u %s, %s", shift, wide, a.text, from.text);
  ptx_value empty = tl_ptx_emit(t, "icmp eq i%u %s, 0", wide, length.text);
  ptx_value rest = tl_ptx_emit(t, "sub i%u %u, %s", wide, wide, length.text);
  rest = tl_ptx_emit(t, "select i1 %s, i%u 0, i%u %s", empty.text, wide, wide, rest.text);
  value = tl_ptx_emit(t, "shl i%u %s, %s", wide, value.text, rest.text);
  value = tl_ptx_emit(t, "%s i%u %s, %s", shift, wide, value.text, rest.text);
  value = tl_ptx_emit(t, "select i1 %s, i%u 0, i%u %s", empty.text, wide, wide, value.text);
  tl_ptx_write(t, &s->operands[0], tl_ptx_emit(t, "trunc i%u %s to i%u", wide, value.text, bits));
}

// `length` ones from bit `from` on, in `bits` bits.
static ptx_value ones(ptx_translator *t, ptx_value from, ptx_value length, unsigned bits) {
  unsigned wide = 2 * bits;
  ptx_value mask = tl_ptx_emit(t, "shl i%u 1, %s", wide, length.text);
  mask = tl_ptx_emit(t, "sub i%u %s, 1", wide, mask.text);
  mask = tl_ptx_emit(t, "shl i%u %s, %s", wide, mask.text, from.text);
  return tl_ptx_emit(t, "trunc i%u %s to i%u", wide, mask.text, bits);
}

void tl_ptx_rule_BFI(ptx_translator *t, const tl_ptx_statement *s) {
  unsigned bits = tl_ptx_type_bits(s->operands[0].type), wide = 2 * bits;
  ptx_value a = extend(t, tl_ptx_read(t, &s->operands[1]), bits, wide, false), b = tl_ptx_read(t, &s->operands[2]);
  ptx_value from = position(t, &s->operands[3], bits, bits == 64),
            length = position(t, &s->operands[4], bits, bits == 64);
  ptx_value mask = ones(t, from, length, bits);
  ptx_value moved = tl_ptx_emit(t, "shl i%u %s, %s", wide, a.text, from.text);
  moved = tl_ptx_emit(t, "and i%u %s, %s", bits, tl_ptx_emit(t, "trunc i%u %s to i%u", wide, moved.text, bits).text,
                      mask.text);
  ptx_value kept =
      tl_ptx_emit(t, "and i%u %s, %s", bits, b.text, tl_ptx_emit(t, "xor i%u %s, -1", bits, mask.text).text);
  tl_ptx_write(t, &s->operands[0], tl_ptx_emit(t, "or i%u %s, %s", bits, kept.text, moved.text));
}

static ptx_value wrapped(ptx_translator *t, const tl_ptx_statement *s, const tl_ptx_operand *operand) {
  if (tl_ptx_has(s, "clamp")) return position(t, operand, 32, true);
  return extend(t, tl_ptx_emit(t, "and i32 %s, 31", tl_ptx_read(t, operand).text), 32, 64, false);
}

void tl_ptx_rule_BMSK(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_write(t, &s->operands[0], ones(t, wrapped(t, s, &s->operands[1]), wrapped(t, s, &s->operands[2]), 32));
}

void tl_ptx_rule_SZEXT(ptx_translator *t, const tl_ptx_statement *s) {
  bool by_sign = is_signed(s->operands[0].type);
  ptx_value a = extend(t, tl_ptx_read(t, &s->operands[1]), 32, 64, false), n = wrapped(t, s, &s->operands[2]);
  ptx_value empty = tl_ptx_emit(t, "icmp eq i64 %s, 0", n.text);
  ptx_value rest = tl_ptx_emit(t, "sub i64 64, %s", n.text);
  rest = tl_ptx_emit(t, "select i1 %s, i64 0, i64 %s", empty.text, rest.text);
  ptx_value value = tl_ptx_emit(t, "shl i64 %s, %s", a.text, rest.text);
  value = tl_ptx_emit(t, "%s i64 %s, %s", by_sign ? "ashr" : "lshr", value.text, rest.text);
  value = tl_ptx_emit(t, "select i1 %s, i64 0, i64 %s", empty.text, value.text);
  tl_ptx_write(t, &s->operands[0], tl_ptx_emit(t, "trunc i64 %s to i32", value.text));
}

// PTX ISA, lop3: bit k of the table is the result for a = bit 2, b = bit 1, c = bit 0 of k.
void tl_ptx_rule_LOP3(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value given[3], inverse[3], result = tl_ptx_value("0");
  for (int i = 0; i < 3; i++) {
    given[i] = tl_ptx_read(t, &s->operands[i + 1]);
    inverse[i] = tl_ptx_emit(t, "xor i32 %s, -1", given[i].text);
  }
  for (unsigned k = 0; k < 8; k++) {
    if (!(s->operands[4].value >> k & 1)) continue;
    ptx_value term =
        tl_ptx_emit(t, "and i32 %s, %s", (k & 4 ? given : inverse)[0].text, (k & 2 ? given : inverse)[1].text);
    term = tl_ptx_emit(t, "and i32 %s, %s", term.text, (k & 1 ? given : inverse)[2].text);
    result = tl_ptx_emit(t, "or i32 %s, %s", result.text, term.text);
  }
  const tl_ptx_operand *d = &s->operands[0];
  tl_ptx_write(t, d->kind == TL_PTX_PAIR ? &d->items[0] : d, result);
  if (d->kind != TL_PTX_PAIR) return;
  ptx_value some = tl_ptx_emit(t, "icmp ne i32 %s, 0", result.text);
  tl_ptx_write(t, &d->items[1],
               tl_ptx_emit(t, "%s i1 %s, %s", tl_ptx_has(s, "and") ? "and" : "or", some.text,
                           tl_ptx_read(t, &s->operands[5]).text));
}

// Amounts beyond the width shift everything out.
void tl_ptx_rule_SHIFT(ptx_translator *t, const tl_ptx_statement *s) {
  const char *op = s->row->argument;
  unsigned bits = tl_ptx_type_bits(s->operands[0].type);
  ptx_value a = tl_ptx_read(t, &s->operands[1]), amount = tl_ptx_read(t, &s->operands[2]);
  bool by_sign = !strcmp(op, "ashr");
  if (s->operands[2].kind == TL_PTX_INTEGER && s->operands[2].value < bits) {
    tl_ptx_write(t, &s->operands[0], tl_ptx_emit(t, "%s i%u %s, %s", op, bits, a.text, amount.text));
    return;
  }
  ptx_value fits = tl_ptx_emit(t, "icmp ult i32 %s, %u", amount.text, bits);
  amount = tl_ptx_emit(t, "select i1 %s, i32 %s, i32 %u", fits.text, amount.text, by_sign ? bits - 1 : 0);
  if (bits != 32) amount = tl_ptx_emit(t, "%s i32 %s to i%u", bits < 32 ? "trunc" : "zext", amount.text, bits);
  ptx_value result = tl_ptx_emit(t, "%s i%u %s, %s", op, bits, a.text, amount.text);
  if (!by_sign) result = tl_ptx_emit(t, "select i1 %s, i%u %s, i%u 0", fits.text, bits, result.text, bits);
  tl_ptx_write(t, &s->operands[0], result);
}

static ptx_value joined(ptx_translator *t, ptx_value low, ptx_value high) {
  ptx_value upper = tl_ptx_emit(t, "shl i64 %s, 32", extend(t, high, 32, 64, false).text);
  return tl_ptx_emit(t, "or i64 %s, %s", upper.text, extend(t, low, 32, 64, false).text);
}

void tl_ptx_rule_FUNNEL(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value wide = joined(t, tl_ptx_read(t, &s->operands[1]), tl_ptx_read(t, &s->operands[2]));
  ptx_value amount = wrapped(t, s, &s->operands[3]);
  bool is_left = tl_ptx_has(s, "l");
  wide = tl_ptx_emit(t, "%s i64 %s, %s", is_left ? "shl" : "lshr", wide.text, amount.text);
  if (is_left) wide = tl_ptx_emit(t, "lshr i64 %s, 32", wide.text);
  tl_ptx_write(t, &s->operands[0], tl_ptx_emit(t, "trunc i64 %s to i32", wide.text));
}

// ---- prmt

// The selectors of a mode for c = 0 to 3, 16 bits each; 0: c holds the selectors itself.
static uint64_t selectors_of(const tl_ptx_statement *s) {
  static const struct {
    const char *mode;
    uint64_t table;
  } modes[] = {{"f4e", 0x6543543243213210}, {"b4e", 0x0123701267015670}, {"rc8", 0x3333222211110000},
               {"ecl", 0x3333322232113210}, {"ecr", 0x3210221011100000}, {"rc16", 0x3232101032321010}};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
    if (tl_ptx_has(s, modes[i].mode)) return modes[i].table;
  return 0;
}

void tl_ptx_rule_PRMT(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value wide = joined(t, tl_ptx_read(t, &s->operands[1]), tl_ptx_read(t, &s->operands[2]));
  ptx_value control = extend(t, tl_ptx_read(t, &s->operands[3]), 32, 64, false), result = tl_ptx_value("0");
  uint64_t table = selectors_of(s);
  if (table) {
    ptx_value shift = tl_ptx_emit(t, "shl i64 %s, 4", tl_ptx_emit(t, "and i64 %s, 3", control.text).text);
    control = tl_ptx_emit(t, "lshr i64 %" PRIu64 ", %s", table, shift.text);
  }
  for (unsigned i = 0; i < 4; i++) {
    ptx_value selector = tl_ptx_emit(t, "lshr i64 %s, %u", control.text, 4 * i);
    ptx_value shift = tl_ptx_emit(t, "shl i64 %s, 3", tl_ptx_emit(t, "and i64 %s, 7", selector.text).text);
    ptx_value byte =
        tl_ptx_emit(t, "trunc i64 %s to i8", tl_ptx_emit(t, "lshr i64 %s, %s", wide.text, shift.text).text);
    // Bit 3 of a selector: the sign of the byte in all its bits.
    ptx_value sign = tl_ptx_emit(t, "ashr i8 %s, 7", byte.text);
    ptx_value replicates = tl_ptx_emit(t, "icmp ne i64 %s, 0", tl_ptx_emit(t, "and i64 %s, 8", selector.text).text);
    byte = tl_ptx_emit(t, "select i1 %s, i8 %s, i8 %s", replicates.text, sign.text, byte.text);
    ptx_value part = tl_ptx_emit(t, "shl i32 %s, %u", tl_ptx_emit(t, "zext i8 %s to i32", byte.text).text, 8 * i);
    result = tl_ptx_emit(t, "or i32 %s, %s", result.text, part.text);
  }
  tl_ptx_write(t, &s->operands[0], result);
}

// PTX ISA, SIMD video instructions: of each of four bytes how far a and b are apart; with .add their sum and c.
void tl_ptx_rule_ABSDIFF4(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value values[2], result = tl_ptx_has(s, "add") ? tl_ptx_read(t, &s->operands[3]) : tl_ptx_value("0");
  for (unsigned i = 0; i < 2; i++)
    values[i] = tl_ptx_emit(t, "bitcast i32 %s to <4 x i8>", tl_ptx_read(t, &s->operands[1 + i]).text);
  for (unsigned lane = 0; lane < 4; lane++) {
    ptx_value bytes[2];
    for (unsigned i = 0; i < 2; i++) {
      bytes[i] = tl_ptx_emit(t, "extractelement <4 x i8> %s, i32 %u", values[i].text, lane);
      bytes[i] = extend(t, bytes[i], 8, 32, is_signed(s->operands[1 + i].type));
    }
    ptx_value apart = tl_ptx_emit(t, "sub i32 %s, %s", bytes[0].text, bytes[1].text);
    apart = tl_ptx_intrinsic(t, "abs", TL_PTX_B32, &apart, 1);
    if (tl_ptx_has(s, "add")) {
      result = tl_ptx_emit(t, "add i32 %s, %s", result.text, apart.text);
      continue;
    }
    apart = tl_ptx_emit(t, "shl i32 %s, %u", tl_ptx_emit(t, "and i32 %s, 255", apart.text).text, 8 * lane);
    result = tl_ptx_emit(t, "or i32 %s, %s", result.text, apart.text);
  }
  tl_ptx_write(t, &s->operands[0], result);
}
