// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Floating point (PTX ISA, Floating-Point Instructions, Half Precision Floating-Point Instructions, Comparison and
// Selection). LLVM's operations round to nearest even; other directions are ops (emulator/ops/ops_ptx.c).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ptx/translator.h"

static ptx_value constant(tl_ptx_type type, double value) {
  float narrow = (float)value;
  uint32_t word;
  uint64_t bits;
  memcpy(&word, &narrow, sizeof word);
  memcpy(&bits, &value, sizeof bits);
  if (type == TL_PTX_F64) return tl_ptx_float_constant(type, bits);
  if (type == TL_PTX_BF16) return tl_ptx_float_constant(type, word >> 16);
  if (type == TL_PTX_F16) return tl_ptx_float_constant(type, value == 1 ? 0x3c00 : 0);
  return tl_ptx_float_constant(type, word);
}

// ---- values that are not subnormal, by the number in their names: they are not flushed again

static size_t number_of(ptx_value value) {
  return value.text[0] == '%' && value.text[1] == 't' ? strtoul(value.text + 2, NULL, 10) : SIZE_MAX;
}

static bool is_flushed(const ptx_translator *t, ptx_value value) {
  size_t number = number_of(value);
  return number < t->flushed.len && t->flushed.items[number];
}

static ptx_value mark_flushed(ptx_translator *t, ptx_value value) {
  size_t number = number_of(value);
  while (number != SIZE_MAX && t->flushed.len <= number) tl_vec_push(&t->flushed, (uint8_t)0);
  if (number != SIZE_MAX) t->flushed.items[number] = 1;
  return value;
}

// PTX ISA, add: "Subnormal numbers … NaN results are quiet NaNs"; of f32 0x7fffffff, of f16 and bf16 0x7fff.
ptx_value tl_ptx_canonical(ptx_translator *t, tl_ptx_type type, ptx_value value) {
  if (type == TL_PTX_F64) return value;
  const char *llvm = tl_ptx_llvm_type(type);
  ptx_value is_nan = tl_ptx_emit(t, "fcmp uno %s %s, %s", llvm, value.text, value.text);
  ptx_value nan = tl_ptx_float_constant(type, type == TL_PTX_F32 ? 0x7fffffff : 0x7fff);
  ptx_value result = tl_ptx_emit(t, "select i1 %s, %s %s, %s %s", is_nan.text, llvm, nan.text, llvm, value.text);
  return is_flushed(t, value) ? mark_flushed(t, result) : result;
}

// "bitcast (i32 1065353216 to float)" and the like, by its exponent.
static bool is_normal_constant(tl_ptx_type type, ptx_value value) {
  unsigned bits;
  if (type != TL_PTX_F32 || sscanf(value.text, "bitcast (i32 %u to float)", &bits) != 1) return false;
  return (bits & 0x7fffffff) == 0 || (bits >> 23 & 0xff) != 0;
}

ptx_value tl_ptx_flush(ptx_translator *t, tl_ptx_type type, ptx_value value) {
  if (is_flushed(t, value) || is_normal_constant(type, value)) return value;
  const char *llvm = tl_ptx_llvm_type(type);
  char name[48];
  snprintf(name, sizeof name, "llvm.is.fpclass.%s", tl_ptx_suffix(type));
  tl_ptx_declare_function(t, name, "i1 @%s(%s, i32 immarg)", name, llvm);
  enum { SUBNORMAL = 0x90 };  // LLVM's numbers: negative 0x10, positive 0x80
  ptx_value is_small = tl_ptx_emit(t, "call i1 @%s(%s %s, i32 %d)", name, llvm, value.text, SUBNORMAL);
  ptx_value zero[] = {constant(type, 0), value};
  ptx_value signed_zero = tl_ptx_intrinsic(t, "copysign", type, zero, 2);
  return mark_flushed(
      t, tl_ptx_emit(t, "select i1 %s, %s %s, %s %s", is_small.text, llvm, signed_zero.text, llvm, value.text));
}

static ptx_value flush_if(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, ptx_value value) {
  return tl_ptx_has(s, "ftz") && type != TL_PTX_F64 ? tl_ptx_flush(t, type, value) : value;
}

// Where `condition` holds `a`, else `b`.
static ptx_value choose(ptx_translator *t, ptx_value condition, tl_ptx_type type, ptx_value a, ptx_value b) {
  const char *llvm = tl_ptx_llvm_type(type);
  return tl_ptx_emit(t, "select i1 %s, %s %s, %s %s", condition.text, llvm, a.text, llvm, b.text);
}

ptx_value tl_ptx_saturate(ptx_translator *t, tl_ptx_type type, ptx_value value) {
  const char *llvm = tl_ptx_llvm_type(type);
  ptx_value zero = constant(type, 0), one = constant(type, 1);
  ptx_value is_positive = tl_ptx_emit(t, "fcmp ogt %s %s, %s", llvm, value.text, zero.text);
  value = choose(t, is_positive, type, value, zero);
  ptx_value is_large = tl_ptx_emit(t, "fcmp ogt %s %s, %s", llvm, value.text, one.text);
  return choose(t, is_large, type, one, value);
}

static ptx_value finish(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, ptx_value value) {
  value = flush_if(t, s, type, value);
  if (tl_ptx_has(s, "sat")) return tl_ptx_saturate(t, type, value);
  if (tl_ptx_has(s, "relu")) {
    ptx_value zero = constant(type, 0);
    ptx_value is_low = tl_ptx_emit(t, "fcmp ole %s %s, %s", tl_ptx_llvm_type(type), value.text, zero.text);
    value = choose(t, is_low, type, zero, value);
  }
  return tl_ptx_canonical(t, type, value);
}

// "rz", "rm", "rp"; NULL: to nearest even.
static const char *direction_of(const tl_ptx_statement *s) {
  return tl_ptx_has(s, "rz") ? "rz" : tl_ptx_has(s, "rm") ? "rm" : tl_ptx_has(s, "rp") ? "rp" : NULL;
}

static ptx_value directed(ptx_translator *t, const char *op, const char *direction, tl_ptx_type type,
                          const ptx_value *values, unsigned n) {
  char name[64];
  snprintf(name, sizeof name, "tl.ptx.%s.%s.%s", op, direction, tl_ptx_type_name(type));
  return tl_ptx_call_scalar(t, name, values, n);
}

typedef ptx_value lane_fn(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, const ptx_value *operands);

enum { MAX_VALUES = 4 };

// Each half of packed values, or the values themselves: calls `lane` and writes what it gives to operand 0.
static void lanes_of(ptx_translator *t, const tl_ptx_statement *s, const ptx_value *values, uint32_t n, lane_fn *lane) {
  tl_ptx_type type = s->operands[0].type;
  ptx_value lanes[MAX_VALUES];
  if (tl_ptx_type_class(type) != TL_PTX_CLASS_PACKED) {
    tl_ptx_write(t, &s->operands[0], lane(t, s, type, values));
    return;
  }
  tl_ptx_type part = type == TL_PTX_F16X2 ? TL_PTX_F16 : TL_PTX_BF16;
  const char *whole = tl_ptx_llvm_type(type), *half = tl_ptx_llvm_type(part);
  ptx_value result = tl_ptx_value("poison");
  for (int k = 0; k < 2; k++) {
    for (uint32_t i = 0; i < n; i++)
      lanes[i] = tl_ptx_emit(t, "extractelement %s %s, i32 %d", whole, values[i].text, k);
    ptx_value value = lane(t, s, part, lanes);
    result = tl_ptx_emit(t, "insertelement %s %s, %s %s, i32 %d", whole, result.text, half, value.text, k);
  }
  tl_ptx_write(t, &s->operands[0], result);
}

static void by_lanes(ptx_translator *t, const tl_ptx_statement *s, lane_fn *lane) {
  ptx_value values[MAX_VALUES];
  uint32_t n = s->num_operands - 1 < MAX_VALUES ? s->num_operands - 1 : MAX_VALUES;
  for (uint32_t i = 0; i < n; i++) values[i] = tl_ptx_read(t, &s->operands[i + 1]);
  lanes_of(t, s, values, n, lane);
}

// ---- sums, products, quotients

static ptx_value float2(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, const ptx_value *operands) {
  const char *op = s->row->argument, *direction = direction_of(s);
  ptx_value values[] = {flush_if(t, s, type, operands[0]), flush_if(t, s, type, operands[1])};
  ptx_value result = direction
                         ? directed(t, op, direction, type, values, 2)
                         : tl_ptx_emit(t, "f%s %s %s, %s", op, tl_ptx_llvm_type(type), values[0].text, values[1].text);
  return finish(t, s, type, result);
}

static ptx_value fma_lane(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, const ptx_value *operands) {
  const char *direction = direction_of(s);
  ptx_value values[3];
  for (int i = 0; i < 3; i++) values[i] = flush_if(t, s, type, operands[i]);
  bool is_half = tl_ptx_type_bits(type) == 16;
  ptx_value result = direction || is_half ? directed(t, "fma", direction ? direction : "rn", type, values, 3)
                                          : tl_ptx_intrinsic(t, "fma", type, values, 3);
  return finish(t, s, type, result);
}

void tl_ptx_rule_FMA(ptx_translator *t, const tl_ptx_statement *s) {
  by_lanes(t, s, fma_lane);
}

// ---- products and sums that may become one

static bool is_open_form(const tl_ptx_statement *s) {
  return !strcmp(s->row->rule, "FLOAT2") && strcmp(s->row->argument, "div") != 0 && !tl_ptx_has(s, "rn") &&
         !direction_of(s);
}

static const ptx_product *product_in(const ptx_translator *t, const tl_ptx_statement *s,
                                     const tl_ptx_operand *operand) {
  if (operand->kind != TL_PTX_REGISTER) return NULL;
  const ptx_product *p = &t->products[operand->symbol->id];
  return p->run == t->run && p->type == operand->type && p->flushes == tl_ptx_has(s, "ftz") ? p : NULL;
}

// a · b + c for a sum of which one operand is a product of the same run of code: ptxas may do so.
static bool fuse(ptx_translator *t, const tl_ptx_statement *s) {
  bool is_sub = !strcmp(s->row->argument, "sub");
  for (uint32_t which = 1; which <= 2; which++) {
    const ptx_product *p = product_in(t, s, &s->operands[which]);
    if (!p) continue;
    ptx_value values[] = {p->factors[0], p->factors[1], tl_ptx_read(t, &s->operands[3 - which])};
    ptx_value *negative = which == 1 ? &values[2] : &values[0];
    if (is_sub) *negative = tl_ptx_emit(t, "fneg %s %s", tl_ptx_llvm_type(p->type), negative->text);
    lanes_of(t, s, values, 3, fma_lane);
    return true;
  }
  return false;
}

void tl_ptx_rule_FLOAT2(ptx_translator *t, const tl_ptx_statement *s) {
  bool is_open = t->products && is_open_form(s), is_product = !strcmp(s->row->argument, "mul");
  if (is_open && !is_product && fuse(t, s)) return;
  ptx_value values[] = {tl_ptx_read(t, &s->operands[1]), tl_ptx_read(t, &s->operands[2])};
  lanes_of(t, s, values, 2, float2);
  if (is_open && is_product && !tl_ptx_has(s, "sat") && s->operands[0].kind == TL_PTX_REGISTER)
    t->products[s->operands[0].symbol->id] =
        (ptx_product){t->run, s->operands[0].type, tl_ptx_has(s, "ftz"), {values[0], values[1]}};
}

static ptx_value float1(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, const ptx_value *operands) {
  const char *op = s->row->argument, *direction = direction_of(s), *llvm = tl_ptx_llvm_type(type);
  ptx_value value = flush_if(t, s, type, operands[0]);
  // An H200 makes one NaN of all here too; the PTX ISA leaves it open.
  if (!strcmp(op, "neg")) return tl_ptx_canonical(t, type, tl_ptx_emit(t, "fneg %s %s", llvm, value.text));
  if (!strcmp(op, "abs")) return tl_ptx_canonical(t, type, tl_ptx_intrinsic(t, "fabs", type, &value, 1));
  ptx_value result;
  if (direction)
    result = directed(t, op, direction, type, &value, 1);
  else if (!strcmp(op, "sqrt"))
    result = tl_ptx_intrinsic(t, "sqrt", type, &value, 1);
  else
    result = tl_ptx_emit(t, "fdiv %s %s, %s", llvm, constant(type, 1).text, value.text);
  return finish(t, s, type, result);
}

void tl_ptx_rule_FLOAT1(ptx_translator *t, const tl_ptx_statement *s) {
  by_lanes(t, s, float1);
}

static ptx_value approximate(ptx_translator *t, const char *op, bool ftz, ptx_value value) {
  char name[64];
  if (!strcmp(op, "rcp") && !ftz) return tl_ptx_emit(t, "fdiv float %s, %s", constant(TL_PTX_F32, 1).text, value.text);
  if (!strcmp(op, "tanh"))
    snprintf(name, sizeof name, "tl.tanh.approx.f32");
  else
    snprintf(name, sizeof name, "llvm.nvvm.%s.approx%s.%s", op, ftz ? ".ftz" : "", !strcmp(op, "ex2") ? "f32" : "f");
  return tl_ptx_call_scalar(t, name, &value, 1);
}

static ptx_value approx(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, const ptx_value *operands) {
  const char *llvm = tl_ptx_llvm_type(type);
  bool ftz = tl_ptx_has(s, "ftz");
  if (type == TL_PTX_F64 && !ftz) {  // rsqrt, which is exact but for its last bits
    ptx_value root = tl_ptx_intrinsic(t, "sqrt", type, operands, 1);
    return tl_ptx_emit(t, "fdiv double %s, %s", constant(type, 1).text, root.text);
  }
  if (type == TL_PTX_F64) {
    char name[64];
    snprintf(name, sizeof name, "tl.ptx.%.*s.approx.f64", (int)strcspn(s->row->argument, "."), s->row->argument);
    return tl_ptx_call_scalar(t, name, operands, 1);
  }
  if (type == TL_PTX_F32) return tl_ptx_canonical(t, type, approximate(t, s->row->argument, ftz, operands[0]));
  ptx_value wide = tl_ptx_emit(t, "fpext %s %s to float", llvm, operands[0].text);
  wide = approximate(t, s->row->argument, ftz, wide);
  return tl_ptx_canonical(t, type, tl_ptx_emit(t, "fptrunc float %s to %s", wide.text, llvm));
}

void tl_ptx_rule_APPROX(ptx_translator *t, const tl_ptx_statement *s) {
  by_lanes(t, s, approx);
}

// ---- extrema: one NaN gives the other operand, or with .NaN a NaN; -0 is less than +0

static ptx_value extremum(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, const ptx_value *operands) {
  const char *llvm = tl_ptx_llvm_type(type);
  bool is_max = !strcmp(s->row->argument, "max"), by_size = tl_ptx_has(s, "xorsign");
  unsigned bits = tl_ptx_type_bits(type);
  ptx_value a = flush_if(t, s, type, operands[0]), b = flush_if(t, s, type, operands[1]), x = a, y = b;
  if (by_size) {
    a = tl_ptx_intrinsic(t, "fabs", type, &x, 1);
    b = tl_ptx_intrinsic(t, "fabs", type, &y, 1);
  }
  ptx_value first = tl_ptx_emit(t, "fcmp %s %s %s, %s", is_max ? "ogt" : "olt", llvm, a.text, b.text);
  ptx_value result = choose(t, first, type, a, b);
  ptx_value same = tl_ptx_emit(t, "fcmp oeq %s %s, %s", llvm, a.text, b.text);
  ptx_value i = tl_ptx_emit(t, "bitcast %s %s to i%u", llvm, a.text, bits);
  ptx_value k = tl_ptx_emit(t, "bitcast %s %s to i%u", llvm, b.text, bits);
  ptx_value both = tl_ptx_emit(t, "%s i%u %s, %s", is_max ? "and" : "or", bits, i.text, k.text);
  both = tl_ptx_emit(t, "bitcast i%u %s to %s", bits, both.text, llvm);
  result = choose(t, same, type, both, result);
  ptx_value a_is_nan = tl_ptx_emit(t, "fcmp uno %s %s, %s", llvm, a.text, a.text);
  ptx_value b_is_nan = tl_ptx_emit(t, "fcmp uno %s %s, %s", llvm, b.text, b.text);
  bool keeps = tl_ptx_has(s, "NaN");
  result = choose(t, a_is_nan, type, keeps ? a : b, result);
  result = choose(t, b_is_nan, type, keeps ? b : a, result);
  if (by_size) {
    ptx_value sign =
        tl_ptx_emit(t, "xor i%u %s, %s", bits, tl_ptx_emit(t, "bitcast %s %s to i%u", llvm, x.text, bits).text,
                    tl_ptx_emit(t, "bitcast %s %s to i%u", llvm, y.text, bits).text);
    ptx_value args[] = {result, tl_ptx_emit(t, "bitcast i%u %s to %s", bits, sign.text, llvm)};
    result = tl_ptx_intrinsic(t, "copysign", type, args, 2);
  }
  return tl_ptx_canonical(t, type, result);
}

void tl_ptx_rule_EXTREMUM(ptx_translator *t, const tl_ptx_statement *s) {
  by_lanes(t, s, extremum);
}

// PTX ISA, copysign: the sign of a, the value of b.
void tl_ptx_rule_COPYSIGN(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value args[] = {tl_ptx_read(t, &s->operands[2]), tl_ptx_read(t, &s->operands[1])};
  tl_ptx_write(t, &s->operands[0], tl_ptx_intrinsic(t, "copysign", s->operands[0].type, args, 2));
}

void tl_ptx_rule_TESTP(ptx_translator *t, const tl_ptx_statement *s) {
  // The classes of llvm.is.fpclass: bits 0, 1 NaN, 2 and 9 infinite, 3 and 8 normal, 4 and 7 subnormal, 5 and 6 zero,
  // which counts as normal (PTX ISA, testp).
  static const struct {
    const char *word;
    unsigned classes;
  } tests[] = {{"finite", 0x1f8}, {"infinite", 0x204}, {"number", 0x3fc},
               {"notanumber", 3}, {"normal", 0x168},   {"subnormal", 0x90}};
  tl_ptx_type type = s->operands[1].type;
  const char *llvm = tl_ptx_llvm_type(type), *suffix = tl_ptx_type_name(type);
  char name[40];
  snprintf(name, sizeof name, "llvm.is.fpclass.%s", suffix);
  tl_ptx_declare_function(t, name, "i1 @%s(%s, i32 immarg)", name, llvm);
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    if (tl_ptx_has(s, tests[i].word))
      tl_ptx_write(t, &s->operands[0],
                   tl_ptx_emit(t, "call i1 @%s(%s %s, i32 %u)", name, llvm, tl_ptx_read(t, &s->operands[1]).text,
                               tests[i].classes));
}

// ---- comparisons

// The predicate of LLVM for a word, in each class; NULL: the class has none.
static const char *predicate_of(const tl_ptx_statement *s, tl_ptx_class class) {
  static const struct {
    const char *word, *is_signed, *is_unsigned, *of_floats;
  } rows[] = {{"eq", "eq", "eq", "oeq"},   {"ne", "ne", "ne", "one"},   {"lt", "slt", "ult", "olt"},
              {"le", "sle", "ule", "ole"}, {"gt", "sgt", "ugt", "ogt"}, {"ge", "sge", "uge", "oge"},
              {"lo", NULL, "ult", NULL},   {"ls", NULL, "ule", NULL},   {"hi", NULL, "ugt", NULL},
              {"hs", NULL, "uge", NULL},   {"equ", NULL, NULL, "ueq"},  {"neu", NULL, NULL, "une"},
              {"ltu", NULL, NULL, "ult"},  {"leu", NULL, NULL, "ule"},  {"gtu", NULL, NULL, "ugt"},
              {"geu", NULL, NULL, "uge"},  {"num", NULL, NULL, "ord"},  {"nan", NULL, NULL, "uno"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (!tl_str_is(s->words[1], rows[i].word)) continue;
    if (class == TL_PTX_CLASS_FLOAT) return rows[i].of_floats;
    if (class == TL_PTX_CLASS_SIGNED) return rows[i].is_signed;
    // Bits are only equal or not (PTX ISA, setp).
    return class == TL_PTX_CLASS_UNSIGNED || i < 2 ? rows[i].is_unsigned : NULL;
  }
  return NULL;
}

// A comparison of the words of setp or set: an i1.
static ptx_value compare(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, ptx_value a, ptx_value b) {
  tl_ptx_class class = tl_ptx_type_class(type);
  const char *predicate = predicate_of(s, class);
  bool is_float = class == TL_PTX_CLASS_FLOAT;
  if (!predicate) {
    tl_ptx_unsupported(t, s->loc, "there is no comparison '%.*s' of .%s", TL_STR_ARG(s->words[1]),
                       tl_ptx_type_name(type));
    return tl_ptx_value("false");
  }
  if (is_float) {
    a = flush_if(t, s, type, a);
    b = flush_if(t, s, type, b);
  }
  return tl_ptx_emit(t, "%scmp %s %s %s, %s", is_float ? "f" : "i", predicate, tl_ptx_llvm_type(type), a.text, b.text);
}

// With the predicate c and the word and, or, xor, if the instruction has them.
static ptx_value combine(ptx_translator *t, const tl_ptx_statement *s, ptx_value result) {
  static const char *const words[] = {"and", "or", "xor"};
  for (int i = 0; i < 3; i++)
    if (s->num_operands > 3 && tl_ptx_has(s, words[i]))
      return tl_ptx_emit(t, "%s i1 %s, %s", words[i], result.text, tl_ptx_read(t, &s->operands[3]).text);
  return result;
}

static ptx_value lane_of(ptx_translator *t, const tl_ptx_operand *operand, ptx_value value, int lane) {
  return tl_ptx_emit(t, "extractelement %s %s, i32 %d", tl_ptx_llvm_type(operand->type), value.text, lane);
}

void tl_ptx_rule_SETP(ptx_translator *t, const tl_ptx_statement *s) {
  const tl_ptx_operand *d = &s->operands[0];
  tl_ptx_type type = s->operands[1].type;
  ptx_value a = tl_ptx_read(t, &s->operands[1]), b = tl_ptx_read(t, &s->operands[2]);
  if (tl_ptx_type_class(type) == TL_PTX_CLASS_PACKED) {
    tl_ptx_type part = type == TL_PTX_F16X2 ? TL_PTX_F16 : TL_PTX_BF16;
    for (int i = 0; i < 2; i++)
      tl_ptx_write(t, &d->items[i],
                   compare(t, s, part, lane_of(t, &s->operands[1], a, i), lane_of(t, &s->operands[2], b, i)));
    return;
  }
  ptx_value result = compare(t, s, type, a, b);
  ptx_value first = combine(t, s, result);
  if (d->kind != TL_PTX_PAIR) {
    tl_ptx_write(t, d, first);
    return;
  }
  ptx_value second = combine(t, s, tl_ptx_emit(t, "xor i1 %s, true", result.text));
  tl_ptx_write(t, &d->items[0], first);
  tl_ptx_write(t, &d->items[1], second);
}

// True is all bits of an integer and 1 of a float.
static ptx_value truth(ptx_translator *t, tl_ptx_type type, ptx_value condition) {
  const char *llvm = tl_ptx_llvm_type(type);
  if (tl_ptx_type_class(type) == TL_PTX_CLASS_FLOAT)
    return choose(t, condition, type, constant(type, 1), constant(type, 0));
  return tl_ptx_emit(t, "sext i1 %s to %s", condition.text, llvm);
}

static ptx_value set_lane(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type type, const ptx_value *operands) {
  return truth(t, type, compare(t, s, type, operands[0], operands[1]));
}

// Two truths of 16 bits in one register.
static void set_masks(ptx_translator *t, const tl_ptx_statement *s, tl_ptx_type part) {
  ptx_value a = tl_ptx_read(t, &s->operands[1]), b = tl_ptx_read(t, &s->operands[2]), masks = tl_ptx_value("0");
  for (int i = 0; i < 2; i++) {
    ptx_value is_true = compare(t, s, part, lane_of(t, &s->operands[1], a, i), lane_of(t, &s->operands[2], b, i));
    ptx_value mask = tl_ptx_emit(t, "select i1 %s, i32 %u, i32 0", is_true.text, i ? 0xffff0000u : 0xffffu);
    masks = tl_ptx_emit(t, "or i32 %s, %s", masks.text, mask.text);
  }
  tl_ptx_write(t, &s->operands[0], masks);
}

void tl_ptx_rule_SET(ptx_translator *t, const tl_ptx_statement *s) {
  tl_ptx_type type = s->operands[0].type, from = s->operands[1].type;
  if (type == from && (type == TL_PTX_F16 || type == TL_PTX_BF16 || tl_ptx_type_class(type) == TL_PTX_CLASS_PACKED)) {
    by_lanes(t, s, set_lane);
    return;
  }
  if (tl_ptx_type_class(from) == TL_PTX_CLASS_PACKED) {
    set_masks(t, s, from == TL_PTX_F16X2 ? TL_PTX_F16 : TL_PTX_BF16);
    return;
  }
  ptx_value a = tl_ptx_read(t, &s->operands[1]), b = tl_ptx_read(t, &s->operands[2]);
  tl_ptx_write(t, &s->operands[0], truth(t, type, combine(t, s, compare(t, s, from, a, b))));
}

void tl_ptx_rule_SELP(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value a = tl_ptx_read(t, &s->operands[1]), b = tl_ptx_read(t, &s->operands[2]);
  tl_ptx_write(t, &s->operands[0], choose(t, tl_ptx_read(t, &s->operands[3]), s->operands[0].type, a, b));
}

// PTX ISA, slct: a where c is not negative (-0 is not), else b.
void tl_ptx_rule_SLCT(ptx_translator *t, const tl_ptx_statement *s) {
  ptx_value a = tl_ptx_read(t, &s->operands[1]), b = tl_ptx_read(t, &s->operands[2]),
            c = tl_ptx_read(t, &s->operands[3]);
  bool is_float = s->operands[3].type == TL_PTX_F32;
  if (is_float) c = flush_if(t, s, TL_PTX_F32, c);
  ptx_value condition = is_float ? tl_ptx_emit(t, "fcmp oge float %s, %s", c.text, constant(TL_PTX_F32, 0).text)
                                 : tl_ptx_emit(t, "icmp sge i32 %s, 0", c.text);
  tl_ptx_write(t, &s->operands[0], choose(t, condition, s->operands[0].type, a, b));
}
