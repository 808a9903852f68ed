// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mov, cvt, cvta (PTX ISA, Data Movement and Conversion Instructions).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emulator/ptx/translator.h"

void tl_ptx_rule_MOV(ptx_translator *t, const tl_ptx_statement *s) {
  // A value goes as it is, whatever kind of number it is.
  ptx_value value = tl_ptx_read(t, &s->operands[1]);
  tl_ptx_write(t, &s->operands[0], value);
}

void tl_ptx_rule_ZERO(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_write(t, &s->operands[0], tl_ptx_value("0"));
}

// Addresses of shared memory are offsets in its window; all other state spaces are where generic addresses are.
void tl_ptx_rule_CVTA(ptx_translator *t, const tl_ptx_statement *s) {
  if (tl_ptx_type_bits(s->operands[0].type) != 64) {
    tl_ptx_unsupported(t, s->loc, "addresses of 32 bits are not supported");
    return;
  }
  ptx_window window = tl_ptx_window_of(s);
  bool is_offset = window == PTX_SHARED || window == PTX_CLUSTER;
  ptx_value value = tl_ptx_read(t, &s->operands[1]);
  if (is_offset) value = tl_ptx_emit(t, "%s i64 %s, %%window", s->row->argument[0] ? "sub" : "add", value.text);
  tl_ptx_write(t, &s->operands[0], value);
}

// ---- cvt

typedef struct conversion {
  tl_ptx_type to, from;
  unsigned to_bits, from_bits;
  bool to_float, from_float, to_signed, from_signed;
} conversion;

static bool is_float(tl_ptx_type type) {
  return tl_ptx_type_class(type) == TL_PTX_CLASS_FLOAT;
}

static const char *integer_rounding(const tl_ptx_statement *s) {
  return tl_ptx_has(s, "rni")   ? "roundeven"
         : tl_ptx_has(s, "rzi") ? "trunc"
         : tl_ptx_has(s, "rmi") ? "floor"
         : tl_ptx_has(s, "rpi") ? "ceil"
                                : NULL;
}

static const char *rounding_of(const tl_ptx_statement *s) {
  return tl_ptx_has(s, "rz") ? "rz" : tl_ptx_has(s, "rm") ? "rm" : tl_ptx_has(s, "rp") ? "rp" : "rn";
}

// The limits of an integer type as text: of `bits`, signed or not.
static ptx_value limit(unsigned bits, bool is_signed, bool least) {
  if (least)
    return is_signed ? tl_ptx_value("%" PRId64, (int64_t)(-(INT64_C(1) << (bits - 2)) * 2)) : tl_ptx_value("0");
  uint64_t largest = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  return tl_ptx_value("%" PRIu64, is_signed ? largest >> 1 : largest);
}

// The value between the limits of the destination, which is as wide or narrower, or unsigned and the source is not.
static ptx_value clamp(ptx_translator *t, const conversion *c, ptx_value value) {
  // Both fit into 65 bits; 128 are at hand.
  value = tl_ptx_emit(t, "%s i%u %s to i128", c->from_signed ? "sext" : "zext", c->from_bits, value.text);
  for (int least = 0; least < 2; least++) {
    ptx_value bound = limit(c->to_bits, c->to_signed, least);
    ptx_value beyond = tl_ptx_emit(t, "icmp %s i128 %s, %s", least ? "slt" : "sgt", value.text, bound.text);
    value = tl_ptx_emit(t, "select i1 %s, i128 %s, i128 %s", beyond.text, bound.text, value.text);
  }
  return tl_ptx_emit(t, "trunc i128 %s to i%u", value.text, c->to_bits);
}

static ptx_value integer_to_integer(ptx_translator *t, const tl_ptx_statement *s, const conversion *c,
                                    ptx_value value) {
  if (tl_ptx_has(s, "sat")) return clamp(t, c, value);
  if (c->to_bits == c->from_bits) return value;
  const char *op = c->to_bits < c->from_bits ? "trunc" : c->from_signed ? "sext" : "zext";
  return tl_ptx_emit(t, "%s i%u %s to i%u", op, c->from_bits, value.text, c->to_bits);
}

static ptx_value by_op(ptx_translator *t, const tl_ptx_statement *s, const conversion *c, ptx_value value) {
  char name[64];
  snprintf(name, sizeof name, "tl.ptx.cvt.%s.%s.%s", rounding_of(s), tl_ptx_type_name(c->to),
           tl_ptx_type_name(c->from));
  return tl_ptx_call_scalar(t, name, &value, 1);
}

static ptx_value integer_to_float(ptx_translator *t, const tl_ptx_statement *s, const conversion *c, ptx_value value) {
  // The host rounds to nearest; to bf16 it would round twice. The ops take 64 bits.
  bool is_exact = c->to == TL_PTX_F64 && c->from_bits < 64;
  ptx_value result;
  if (is_exact || (c->to != TL_PTX_BF16 && !strcmp(rounding_of(s), "rn"))) {
    result = tl_ptx_emit(t, "%s i%u %s to %s", c->from_signed ? "sitofp" : "uitofp", c->from_bits, value.text,
                         tl_ptx_llvm_type(c->to));
  } else {
    conversion wide = *c;
    wide.from = c->from_signed ? TL_PTX_S64 : TL_PTX_U64;
    if (c->from_bits < 64)
      value = tl_ptx_emit(t, "%s i%u %s to i64", c->from_signed ? "sext" : "zext", c->from_bits, value.text);
    result = by_op(t, s, &wide, value);
  }
  return tl_ptx_has(s, "sat") ? tl_ptx_saturate(t, c->to, result) : result;
}

static ptx_value flushed(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, ptx_value value) {
  return tl_ptx_has(s, "ftz") && type == TL_PTX_F32 ? tl_ptx_flush(t, type, value) : value;
}

// PTX ISA, cvt: out of range is clamped; NaN is 0, but the least or half of the largest number where one of the two
// types has 64 bits.
static ptx_value float_to_integer(ptx_translator *t, const tl_ptx_statement *s, const conversion *c, ptx_value value) {
  const char *llvm = tl_ptx_llvm_type(c->from), *name = c->to_signed ? "fptosi" : "fptoui";
  char full[64];
  static const char *const suffixes[TL_PTX_NUM_TYPES] = {
      [TL_PTX_F16] = "f16", [TL_PTX_BF16] = "bf16", [TL_PTX_F32] = "f32", [TL_PTX_F64] = "f64"};
  value = flushed(t, s, c->from, value);
  value = tl_ptx_intrinsic(t, integer_rounding(s), c->from, &value, 1);
  snprintf(full, sizeof full, "llvm.%s.sat.i%u.%s", name, c->to_bits, suffixes[c->from]);
  tl_ptx_declare_function(t, full, "i%u @%s(%s)", c->to_bits, full, llvm);
  ptx_value result = tl_ptx_emit(t, "call i%u @%s(%s %s)", c->to_bits, full, llvm, value.text);
  if (c->to_bits != 64 && c->from != TL_PTX_F64) return result;
  ptx_value is_nan = tl_ptx_emit(t, "fcmp uno %s %s, %s", llvm, value.text, value.text);
  return tl_ptx_emit(t, "select i1 %s, i%u %" PRIu64 ", i%u %s", is_nan.text, c->to_bits,
                     UINT64_C(1) << (c->to_bits - 1), c->to_bits, result.text);
}

// An f64 that is a NaN gives its sign and upper bits, and is quiet (an H200; the PTX ISA leaves it open).
static ptx_value narrow_nan(ptx_translator *t, const conversion *c, ptx_value from, ptx_value value) {
  const char *to = tl_ptx_llvm_type(c->to), *bits = c->to_bits == 32 ? "i32" : "i16";
  unsigned mantissa = c->to == TL_PTX_F32 ? 23 : c->to == TL_PTX_F16 ? 10 : 7;
  uint64_t quiet = ((UINT64_C(1) << (c->to_bits - 1)) - 1) >> (mantissa - 1) << (mantissa - 1);
  ptx_value is_nan = tl_ptx_emit(t, "fcmp uno double %s, %s", from.text, from.text);
  ptx_value word = tl_ptx_convert_bits(t, from, "double", "i64");
  ptx_value sign = tl_ptx_emit(t, "lshr i64 %s, 63", word.text);
  sign = tl_ptx_emit(t, "shl i64 %s, %u", sign.text, c->to_bits - 1);
  ptx_value low = tl_ptx_emit(t, "lshr i64 %s, %u", word.text, 52 - mantissa);
  low = tl_ptx_emit(t, "and i64 %s, %" PRIu64, low.text, (UINT64_C(1) << mantissa) - 1);
  low = tl_ptx_emit(t, "or i64 %s, %" PRIu64, low.text, quiet);
  low = tl_ptx_emit(t, "or i64 %s, %s", low.text, sign.text);
  low = tl_ptx_emit(t, "trunc i64 %s to %s", low.text, bits);
  ptx_value nan = tl_ptx_convert_bits(t, low, bits, to);
  return tl_ptx_emit(t, "select i1 %s, %s %s, %s %s", is_nan.text, to, nan.text, to, value.text);
}

// What goes as it is, NaNs too: an f32 to f32, the bits of a bf16.
static bool moves_bits(const tl_ptx_statement *s, const conversion *c) {
  bool changes = tl_ptx_has(s, "ftz") || tl_ptx_has(s, "sat") || integer_rounding(s);
  return c->to == TL_PTX_F32 && (c->from == TL_PTX_F32 || c->from == TL_PTX_BF16) && !changes;
}

static ptx_value float_to_float(ptx_translator *t, const tl_ptx_statement *s, const conversion *c, ptx_value value) {
  const char *to = tl_ptx_llvm_type(c->to), *from = tl_ptx_llvm_type(c->from);
  if (moves_bits(s, c) && c->from == TL_PTX_F32) return value;
  if (moves_bits(s, c)) {
    value = tl_ptx_emit(t, "zext i16 %s to i32", tl_ptx_convert_bits(t, value, from, "i16").text);
    return tl_ptx_convert_bits(t, tl_ptx_emit(t, "shl i32 %s, 16", value.text), "i32", to);
  }
  // An H200 rounds a subnormal f32 to f16 by its own value, whatever .ftz says.
  ptx_value given = value;
  if (c->to != TL_PTX_F16) value = flushed(t, s, c->from, value);
  bool is_nearest = !strcmp(rounding_of(s), "rn");
  if (c->to == c->from) {
    if (integer_rounding(s)) value = tl_ptx_intrinsic(t, integer_rounding(s), c->from, &value, 1);
  } else if (c->to_bits > c->from_bits) {
    value = tl_ptx_emit(t, "fpext %s %s to %s", from, value.text, to);
  } else if (c->to_bits == c->from_bits || !is_nearest || (c->from == TL_PTX_F64 && c->to_bits == 16)) {
    value = by_op(t, s, c, value);
  } else {
    value = tl_ptx_emit(t, "fptrunc %s %s to %s", from, value.text, to);
  }
  value = flushed(t, s, c->to, value);
  if (tl_ptx_has(s, "sat")) return tl_ptx_saturate(t, c->to, value);
  if (c->from == TL_PTX_F64 && c->to != TL_PTX_F64) return narrow_nan(t, c, given, value);
  return tl_ptx_canonical(t, c->to, value);
}

void tl_ptx_rule_CVT(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type to = s->operands[0].type, from = s->operands[1].type;
  conversion c = {.to = to,
                  .from = from,
                  .to_bits = tl_ptx_type_bits(to),
                  .from_bits = tl_ptx_type_bits(from),
                  .to_float = is_float(to),
                  .from_float = is_float(from),
                  .to_signed = tl_ptx_type_class(to) == TL_PTX_CLASS_SIGNED,
                  .from_signed = tl_ptx_type_class(from) == TL_PTX_CLASS_SIGNED};
  bool to_integer = c.from_float && (!c.to_float || to == from);
  bool needs_rounding = c.from_float != c.to_float || (c.from_float && c.to_bits < c.from_bits);
  bool has_integer = integer_rounding(s) != NULL, has_other = tl_ptx_has(s, "rn") || strcmp(rounding_of(s), "rn") != 0;
  if ((has_integer && !to_integer) || (has_other && (to == from || !c.to_float)) ||
      (needs_rounding && !has_integer && !has_other)) {
    tl_ptx_unsupported(t, s->loc, "the conversion from .%s to .%s takes %s rounding modifier", tl_ptx_type_name(from),
                       tl_ptx_type_name(to), needs_rounding ? "another" : "no such");
    return;
  }
  ptx_value value = tl_ptx_read(t, &s->operands[1]);
  if (!c.from_float)
    value = c.to_float ? integer_to_float(t, s, &c, value) : integer_to_integer(t, s, &c, value);
  else
    value = c.to_float ? float_to_float(t, s, &c, value) : float_to_integer(t, s, &c, value);
  tl_ptx_write(t, &s->operands[0], value);
}

static ptx_value not_below_zero(ptx_translator *t, tl_ptx_type type, ptx_value value) {
  const char *llvm = tl_ptx_llvm_type(type);
  ptx_value zero = tl_ptx_float_constant(type, 0);
  ptx_value is_low = tl_ptx_emit(t, "fcmp ole %s %s, %s", llvm, value.text, zero.text);
  return tl_ptx_emit(t, "select i1 %s, %s %s, %s %s", is_low.text, llvm, zero.text, llvm, value.text);
}

void tl_ptx_rule_CVT_RELU(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type to = s->operands[0].type;
  ptx_value given = tl_ptx_read(t, &s->operands[1]), value;
  const conversion c = {.to = to, .from = TL_PTX_F32};
  if (tl_ptx_has(s, "rz"))
    value = by_op(t, s, &c, given);
  else
    value = tl_ptx_emit(t, "fptrunc float %s to %s", given.text, tl_ptx_llvm_type(to));
  value = not_below_zero(t, to, value);
  tl_ptx_write(t, &s->operands[0], tl_ptx_canonical(t, to, value));
}

// Two floats of 8 bits as halves, not below zero.
static void widen_pair(ptx_translator *t, const tl_ptx_statement *s) {
  char name[64];
  ptx_args args = {.n = 1, .items = {tl_ptx_read(t, &s->operands[1])}}, result = {0};
  snprintf(name, sizeof name, "llvm.nvvm.%s.to.f16x2.rn", tl_ptx_type_name(s->operands[1].type));
  if (!tl_ptx_call_op(t, name, &args, &result)) return;
  ptx_value pair = tl_ptx_value("poison");
  for (int i = 0; i < 2; i++) {
    ptx_value half = tl_ptx_emit(t, "extractelement <2 x half> %s, i32 %d", result.items[0].text, i);
    half = tl_ptx_canonical(t, TL_PTX_F16, not_below_zero(t, TL_PTX_F16, half));
    pair = tl_ptx_emit(t, "insertelement <2 x half> %s, half %s, i32 %d", pair.text, half.text, i);
  }
  tl_ptx_write(t, &s->operands[0], pair);
}

// To tf32, whose lower 13 bits are zero, of a NaN too.
void tl_ptx_rule_CVT_TF32(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value value = tl_ptx_read(t, &s->operands[1]), bits;
  if (tl_ptx_has(s, "relu")) value = not_below_zero(t, TL_PTX_F32, value);
  if (tl_ptx_has(s, "rn")) {
    ptx_args args = {.n = 1, .items = {value}}, result = {0};
    if (!tl_ptx_call_op(t, "llvm.nvvm.f2tf32.rn", &args, &result)) return;
    bits = result.items[0];
  } else {
    bits = tl_ptx_emit(t, "and i32 %s, -8192", tl_ptx_convert_bits(t, value, "float", "i32").text);
    ptx_value is_nan = tl_ptx_emit(t, "fcmp uno float %s, %s", value.text, value.text);
    bits = tl_ptx_emit(t, "select i1 %s, i32 2147475456, i32 %s", is_nan.text, bits.text);
  }
  tl_ptx_write_as(t, &s->operands[0], TL_PTX_B32, bits);
}

// Pairs that no op of LLVM's makes. Of two operands the first is the upper half.
void tl_ptx_rule_CVT_PAIR(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type to = s->operands[0].type;
  ptx_value halves[2];  // the upper one first
  if (to == TL_PTX_F16X2 && s->num_operands == 2) {
    widen_pair(t, s);
    return;
  }
  if (s->num_operands == 2) {
    ptx_value pair = tl_ptx_read(t, &s->operands[1]);
    for (int i = 0; i < 2; i++) {
      halves[i] = tl_ptx_emit(t, "extractelement <2 x half> %s, i32 %d", pair.text, 1 - i);
      halves[i] = tl_ptx_emit(t, "fpext half %s to float", halves[i].text);
    }
    char name[64];
    ptx_args args = {.n = 2, .items = {halves[0], halves[1]}}, result = {0};
    snprintf(name, sizeof name, "llvm.nvvm.ff.to.%s.rn%s", tl_ptx_type_name(to), tl_ptx_has(s, "relu") ? ".relu" : "");
    if (tl_ptx_call_op(t, name, &args, &result)) tl_ptx_write(t, &s->operands[0], result.items[0]);
    return;
  }
  tl_ptx_type part = to == TL_PTX_F16X2 ? TL_PTX_F16 : TL_PTX_BF16;
  conversion c = {.to = part, .from = TL_PTX_F32};
  ptx_value result = tl_ptx_value("poison");
  for (int i = 0; i < 2; i++) {
    ptx_value half = tl_ptx_canonical(t, part, by_op(t, s, &c, tl_ptx_read(t, &s->operands[1 + i])));
    if (tl_ptx_has(s, "relu")) half = not_below_zero(t, part, half);
    result = tl_ptx_emit(t, "insertelement %s %s, %s %s, i32 %d", tl_ptx_llvm_type(to), result.text,
                         tl_ptx_llvm_type(part), half.text, 1 - i);
  }
  tl_ptx_write(t, &s->operands[0], result);
}

// PTX ISA, cvt.pack: a above b, of 8 bits both above what c had there.
void tl_ptx_rule_CVT_PACK(ptx_translator *t, const tl_ptx_statement *s) {
  bool is_bytes = s->num_operands > 3;
  conversion c = {.to_bits = is_bytes ? 8 : 16,
                  .from_bits = 32,
                  .from_signed = true,
                  .to_signed = tl_ptx_has(s, "s16") || tl_ptx_has(s, "s8")};
  ptx_value result = tl_ptx_value("0");
  if (is_bytes) result = tl_ptx_emit(t, "shl i32 %s, 16", tl_ptx_read(t, &s->operands[3]).text);
  for (unsigned i = 0; i < 2; i++) {
    ptx_value part = clamp(t, &c, tl_ptx_read(t, &s->operands[1 + i]));
    part = tl_ptx_emit(t, "zext i%u %s to i32", c.to_bits, part.text);
    part = tl_ptx_emit(t, "shl i32 %s, %u", part.text, i ? 0 : c.to_bits);
    result = tl_ptx_emit(t, "or i32 %s, %s", result.text, part.text);
  }
  tl_ptx_write(t, &s->operands[0], result);
}
