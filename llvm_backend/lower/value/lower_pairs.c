// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pairs of 16-bit floats. The hardware adds and multiplies two at once, and an integer below 2^10 (f16) or 2^7 (bf16)
// becomes a float by two bit operations and a subtraction: in the range from 2^10 (2^7) on one unit of the last place
// is 1, so that the bits of 1024 (128) with the integer in the mantissa are 1024 (128) plus the integer. An integer
// that starts at bit s of the mantissa does the same with 2^(10 - s) in the place of 1024.
#include "llvm_backend/lower/value/lower_pairs.h"

static LLVMValueRef i32(tl_lower *l, uint32_t value) {
  return LLVMConstInt(l->session->i32, value, 0);
}

static bool is_instruction(LLVMValueRef value, LLVMOpcode code) {
  return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == code;
}

static bool constant_of(LLVMValueRef value, uint64_t *out) {
  if (!LLVMIsAConstantInt(value)) return false;
  *out = LLVMConstIntGetZExtValue(value);
  return true;
}

// ---- pairs

static LLVMValueRef element_source(LLVMValueRef element, unsigned index) {
  if (!LLVMIsAExtractElementInst(element)) return NULL;
  LLVMValueRef vector = LLVMGetOperand(element, 0), at = LLVMGetOperand(element, 1);
  if (LLVMGetVectorSize(LLVMTypeOf(vector)) != 2 || !LLVMIsAConstantInt(at)) return NULL;
  return LLVMConstIntGetZExtValue(at) == index ? vector : NULL;
}

LLVMValueRef tl_lower_pair(tl_lower *l, LLVMValueRef low, LLVMValueRef high) {
  LLVMValueRef vector = element_source(low, 0);
  if (vector && vector == element_source(high, 1)) return vector;
  vector = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(low), 2));
  vector = LLVMBuildInsertElement(l->builder, vector, low, i32(l, 0), "");
  return LLVMBuildInsertElement(l->builder, vector, high, i32(l, 1), "");
}

void tl_lower_split_pair(tl_lower *l, LLVMValueRef pair, LLVMValueRef *out) {
  for (uint32_t i = 0; i < 2; i++) out[i] = LLVMBuildExtractElement(l->builder, pair, i32(l, i), "");
}

// The word whose lower or upper half, a bf16, was widened to `value` by a shift or a mask.
static LLVMValueRef widened_word(LLVMValueRef value, LLVMOpcode by, uint64_t with) {
  uint64_t constant = 0;
  if (!is_instruction(value, LLVMBitCast)) return NULL;
  LLVMValueRef bits = LLVMGetOperand(value, 0);
  if (!is_instruction(bits, by) || !constant_of(LLVMGetOperand(bits, 1), &constant) || constant != with) return NULL;
  return LLVMGetOperand(bits, 0);
}

LLVMValueRef tl_lower_widened_pair(tl_lower *l, LLVMValueRef low, LLVMValueRef high, tl_dtype *out_dtype) {
  LLVMTypeRef bf16 = tl_session_type(l->session, TL_DTYPE_BF16);
  LLVMValueRef word = widened_word(low, LLVMShl, 16);
  if (word && word == widened_word(high, LLVMAnd, UINT32_C(0xffff0000))) {
    *out_dtype = TL_DTYPE_BF16;
    return LLVMBuildBitCast(l->builder, word, LLVMVectorType(bf16, 2), "");
  }
  if (!is_instruction(low, LLVMFPExt) || !is_instruction(high, LLVMFPExt)) return NULL;
  LLVMValueRef vector = element_source(LLVMGetOperand(low, 0), 0);
  if (!vector || vector != element_source(LLVMGetOperand(high, 0), 1)) return NULL;
  *out_dtype = LLVMTypeOf(LLVMGetOperand(low, 0)) == bf16 ? TL_DTYPE_BF16 : TL_DTYPE_F16;
  return vector;
}

bool tl_lower_has_pair_op(const tl_lower *l, tl_opcode code, tl_dtype dtype) {
  if (code != TL_OP_ADD && code != TL_OP_SUB && code != TL_OP_MUL) return false;
  return dtype == TL_DTYPE_F16 || (dtype == TL_DTYPE_BF16 && l->session->target->sm >= 90);
}

static LLVMValueRef build_pair_op(tl_lower *l, tl_opcode code, LLVMValueRef a, LLVMValueRef b) {
  // No contraction: every op rounds.
  if (code == TL_OP_ADD) return LLVMBuildFAdd(l->builder, a, b, "");
  if (code == TL_OP_SUB) return LLVMBuildFSub(l->builder, a, b, "");
  return LLVMBuildFMul(l->builder, a, b, "");
}

// ---- a constant added to converted integers

enum { MOST_BITS = 8 };  // of the integers that are converted here

// The exponent of the power of two of which the integers are the mantissa.
static uint32_t base_bits(tl_dtype dtype) {
  return dtype == TL_DTYPE_F16 ? 0x6400 : 0x4300;
}
static int32_t base_value(tl_dtype dtype) {
  return dtype == TL_DTYPE_F16 ? 1024 : 128;
}
static uint32_t mantissa_bits(tl_dtype dtype) {
  return dtype == TL_DTYPE_F16 ? 10 : 7;
}

// The upper byte of the power of two to which a field from bit `shift` of the mantissa on adds itself.
static uint32_t base_byte(tl_dtype dtype, uint32_t shift) {
  return (base_bits(dtype) - (shift << mantissa_bits(dtype))) >> 8;
}

// Whether the word is the base in both halves plus integers of at most MOST_BITS bits: `(x & mask) ^ base`.
static bool is_masked_and_based(LLVMValueRef word, tl_dtype dtype) {
  uint64_t mask = 0, flip = 0;
  if (!is_instruction(word, LLVMXor) || !constant_of(LLVMGetOperand(word, 1), &flip)) return false;
  LLVMValueRef masked = LLVMGetOperand(word, 0);
  if (!is_instruction(masked, LLVMAnd) || !constant_of(LLVMGetOperand(masked, 1), &mask)) return false;
  uint64_t below = dtype == TL_DTYPE_F16 ? 0x00ff00ff : 0x007f007f, base = base_bits(dtype) * UINT64_C(0x10001);
  return (mask & ~below) == 0 && (flip & ~below) == base;
}

// The same made by a byte permutation: bytes of x below a byte of the base each, perhaps masked and with bits flipped.
static bool is_permuted_and_based(LLVMValueRef word, tl_dtype dtype) {
  uint64_t below = dtype == TL_DTYPE_F16 ? 0x00ff00ff : 0x007f007f, flip = 0, mask = UINT64_C(0xffffffff), byte = 0;
  if (is_instruction(word, LLVMXor)) {
    if (!constant_of(LLVMGetOperand(word, 1), &flip) || (flip & ~below) != 0) return false;
    word = LLVMGetOperand(word, 0);
  }
  if (is_instruction(word, LLVMAnd)) {
    if (!constant_of(LLVMGetOperand(word, 1), &mask) || (mask | 0x00ff00ff) != UINT64_C(0xffffffff)) return false;
    word = LLVMGetOperand(word, 0);
  }
  if ((mask & 0x00ff00ff & ~below) != 0 || !is_instruction(word, LLVMBitCast)) return false;
  LLVMValueRef shuffle = LLVMGetOperand(word, 0);
  if (!is_instruction(shuffle, LLVMShuffleVector) || LLVMGetNumMaskElements(shuffle) != 4) return false;
  LLVMValueRef bases = LLVMGetOperand(shuffle, 1);
  for (uint32_t half = 0; half < 2; half++) {
    int pick = LLVMGetMaskValue(shuffle, 2 * half + 1);
    if (pick < 4 || !LLVMIsAConstant(bases)) return false;
    // Bits below the field would be fractions.
    uint32_t shift = 0, bits = (uint32_t)(mask >> 16 * half) & 0xff;
    while (shift < 8 && (bits >> shift & 1) == 0) shift++;
    if (!constant_of(LLVMGetAggregateElement(bases, (unsigned)pick - 4), &byte)) return false;
    if (byte < base_byte(dtype, shift) || byte > base_byte(dtype, 0)) return false;
  }
  return true;
}

// Converted integers (see tl_lower_fields_to_half) plus or minus the constant in `b` by one addition, when both that
// and the two of the source are exact. NULL otherwise.
static LLVMValueRef add_to_converted(tl_lower *l, tl_dtype dtype, LLVMValueRef vector, LLVMValueRef const *b,
                                     bool negative) {
  if (!is_instruction(vector, LLVMFAdd) || b[0] != b[1] || !LLVMIsAConstantFP(b[0])) return NULL;
  LLVMValueRef floats = LLVMGetOperand(vector, 0), addends = LLVMGetOperand(vector, 1), sums[2];
  if (!is_instruction(floats, LLVMBitCast) || !LLVMIsAConstant(addends)) return NULL;
  LLVMValueRef word = LLVMGetOperand(floats, 0);
  if (!is_masked_and_based(word, dtype) && !is_permuted_and_based(word, dtype)) return NULL;
  LLVMBool loses = 0;
  double more = LLVMConstRealGetDouble(b[0], &loses), limit = base_value(dtype);
  if (negative) more = -more;
  // All sums stay integers below twice the base, and those have all their bits in the mantissa.
  if (more < -limit / 2 || more > limit / 2 || more != (double)(int)more) return NULL;
  for (unsigned i = 0; i < 2; i++) {
    LLVMValueRef element = LLVMGetAggregateElement(addends, i);
    if (!element || !LLVMIsAConstantFP(element)) return NULL;
    double addend = LLVMConstRealGetDouble(element, &loses);
    if (addend != (double)(int)addend || addend > -1 || addend < -1.5 * limit) return NULL;
    sums[i] = LLVMConstReal(tl_session_type(l->session, dtype), addend + more);
  }
  return LLVMBuildFAdd(l->builder, floats, LLVMConstVector(sums, 2), "");
}

void tl_lower_pair_op(tl_lower *l, tl_opcode code, tl_dtype dtype, LLVMValueRef const *a, LLVMValueRef const *b,
                      LLVMValueRef *out) {
  LLVMValueRef x = tl_lower_pair(l, a[0], a[1]), result = NULL;
  if (code == TL_OP_SUB || code == TL_OP_ADD) result = add_to_converted(l, dtype, x, b, code == TL_OP_SUB);
  if (!result) {
    LLVMValueRef y = tl_lower_pair(l, b[0], b[1]);
    result = build_pair_op(l, code, x, y);
  }
  tl_lower_split_pair(l, result, out);
}

// ---- bit fields

// `width` bits of `word` (i32) from bit `shift` on, as an unsigned number.
typedef struct bit_field {
  LLVMValueRef word;
  uint32_t shift, width;
} bit_field;

enum { FIELD_STEPS = 8 };

static bool whole_word(tl_lower *l, LLVMValueRef value, bit_field *out) {
  if (LLVMTypeOf(value) != l->session->i32) return false;
  *out = (bit_field){.word = value, .width = 32};
  return true;
}

static bool find_field(tl_lower *l, LLVMValueRef value, int steps, bit_field *out);

static bool shifted_field(tl_lower *l, LLVMValueRef value, bool arithmetic, int steps, bit_field *out) {
  uint64_t by = 0;
  if (!constant_of(LLVMGetOperand(value, 1), &by)) return false;
  if (!find_field(l, LLVMGetOperand(value, 0), steps, out) || by >= out->width) return false;
  // The copies of a sign bit are not the field's: only a mask over the bits below makes it one.
  uint32_t bits = LLVMGetIntTypeWidth(LLVMTypeOf(value));
  if (arithmetic && out->width == bits) return false;
  out->shift += (uint32_t)by;
  out->width -= (uint32_t)by;
  return true;
}

// x & (2^n - 1). Below a mask the bits that an arithmetic shift brings in do not show when the mask leaves them out.
static bool masked_field(tl_lower *l, LLVMValueRef value, int steps, bit_field *out) {
  uint64_t mask = 0, by = 0;
  LLVMValueRef from = LLVMGetOperand(value, 0);
  if (!constant_of(LLVMGetOperand(value, 1), &mask) || mask == 0 || (mask & (mask + 1)) != 0) return false;
  uint32_t width = (uint32_t)__builtin_popcountll(mask);
  if (is_instruction(from, LLVMAShr)) {
    if (!constant_of(LLVMGetOperand(from, 1), &by)) return false;
    if (!find_field(l, LLVMGetOperand(from, 0), steps, out) || by + width > out->width) return false;
    out->shift += (uint32_t)by;
    out->width = width;
    return true;
  }
  if (!find_field(l, from, steps, out)) return false;
  if (width < out->width) out->width = width;
  return true;
}

// An element of a word seen as a vector.
static bool element_field(tl_lower *l, LLVMValueRef value, bit_field *out) {
  uint64_t index = 0;
  LLVMValueRef vector = LLVMGetOperand(value, 0);
  if (!constant_of(LLVMGetOperand(value, 1), &index) || !is_instruction(vector, LLVMBitCast))
    return whole_word(l, value, out);
  if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind) return false;
  LLVMValueRef word = LLVMGetOperand(vector, 0);
  if (LLVMTypeOf(word) != l->session->i32) return whole_word(l, value, out);
  uint32_t width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
  *out = (bit_field){.word = word, .shift = (uint32_t)index * width, .width = width};
  return true;
}

static bool find_field(tl_lower *l, LLVMValueRef value, int steps, bit_field *out) {
  if (--steps < 0 || LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind) return false;
  if (!LLVMIsAInstruction(value)) return whole_word(l, value, out);
  switch (LLVMGetInstructionOpcode(value)) {
    case LLVMZExt:
      return find_field(l, LLVMGetOperand(value, 0), steps, out) || whole_word(l, value, out);
    case LLVMTrunc: {
      uint32_t width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
      if (!find_field(l, LLVMGetOperand(value, 0), steps, out)) return false;
      if (width < out->width) out->width = width;
      return true;
    }
    case LLVMLShr:
      return shifted_field(l, value, false, steps, out) || whole_word(l, value, out);
    case LLVMAShr:
      return shifted_field(l, value, true, steps, out) || whole_word(l, value, out);
    case LLVMAnd:
      return masked_field(l, value, steps, out) || whole_word(l, value, out);
    case LLVMExtractElement:
      return element_field(l, value, out);
    default:
      return whole_word(l, value, out);
  }
}

// ---- conversion

// The fields as the lower bits of the two halves of a word; other bits are undefined.
static LLVMValueRef spread_fields(tl_lower *l, const bit_field *fields) {
  LLVMTypeRef bytes = LLVMVectorType(l->session->i8, 4);
  LLVMValueRef words[2], picks[4];
  for (int i = 0; i < 2; i++) {
    words[i] = fields[i].word;
    if (fields[i].shift % 8) words[i] = LLVMBuildLShr(l->builder, words[i], i32(l, fields[i].shift % 8), "");
    words[i] = LLVMBuildBitCast(l->builder, words[i], bytes, "");
    picks[2 * i] = i32(l, (uint32_t)i * 4 + fields[i].shift / 8);
    picks[2 * i + 1] = LLVMGetPoison(l->session->i32);
  }
  LLVMValueRef mask = LLVMConstVector(picks, 4);
  LLVMValueRef spread = LLVMBuildShuffleVector(l->builder, words[0], words[1], mask, "");
  return LLVMBuildBitCast(l->builder, spread, l->session->i32, "");
}

// Both fields of one word lie where a byte permutation can leave them: below a byte of their base.
static bool fields_stay_in_place(const bit_field *fields, tl_dtype to) {
  if (fields[0].word != fields[1].word) return false;
  for (int i = 0; i < 2; i++) {
    uint32_t shift = fields[i].shift % 8;
    if (shift + fields[i].width > mantissa_bits(to)) return false;
    // The lowest bit of bf16's exponent is in the lower byte.
    if (to != TL_DTYPE_F16 && shift != 0) return false;
  }
  return true;
}

// The bases of the two halves plus the fields, which keep their place in their bytes.
static LLVMValueRef based_in_place(tl_lower *l, const bit_field *fields, uint32_t flip, tl_dtype to) {
  LLVMValueRef word = LLVMBuildBitCast(l->builder, fields[0].word, LLVMVectorType(l->session->i8, 4), "");
  LLVMValueRef picks[4], bases[4];
  uint32_t mask = 0, flips = 0;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t shift = fields[i].shift % 8;
    picks[2 * i] = i32(l, fields[i].shift / 8);
    picks[2 * i + 1] = i32(l, 4 + i);
    bases[i] = LLVMConstInt(l->session->i8, base_byte(to, shift), 0);
    bases[2 + i] = LLVMConstNull(l->session->i8);
    mask |= ((1u << fields[i].width) - 1) << shift << 16 * i;
    flips |= flip << shift << 16 * i;
  }
  LLVMValueRef above = LLVMConstVector(bases, 4), order = LLVMConstVector(picks, 4);
  word = LLVMBuildShuffleVector(l->builder, word, above, order, "");
  word = LLVMBuildBitCast(l->builder, word, l->session->i32, "");
  if (mask != 0x00ff00ff) word = LLVMBuildAnd(l->builder, word, i32(l, mask | 0xff00ff00), "");
  return flips ? LLVMBuildXor(l->builder, word, i32(l, flips), "") : word;
}

// The same for fields of any two words, shifted to the lowest bits.
static LLVMValueRef based_after_shifts(tl_lower *l, const bit_field *fields, uint32_t flip, tl_dtype to) {
  uint32_t mask = ((1u << fields[0].width) - 1) * 0x10001u;
  LLVMValueRef bits = LLVMBuildAnd(l->builder, spread_fields(l, fields), i32(l, mask), "");
  return LLVMBuildXor(l->builder, bits, i32(l, (base_bits(to) | flip) * 0x10001u), "");
}

bool tl_lower_fields_to_half(tl_lower *l, LLVMValueRef const *in, tl_dtype from, tl_dtype to, LLVMValueRef *out) {
  bit_field fields[2];
  if (!tl_lower_has_pair_op(l, TL_OP_ADD, to)) return false;
  for (int i = 0; i < 2; i++) {
    if (!find_field(l, in[i], FIELD_STEPS, &fields[i])) return false;
    if (fields[i].width > MOST_BITS || fields[i].width > mantissa_bits(to)) return false;
    if (fields[i].shift % 8 + fields[i].width > 8) return false;
  }
  uint32_t width = fields[0].width;
  if (fields[1].width != width) return false;
  // A field as wide as a signed type has its sign in the highest bit: flipped, it is the number plus 2^(width - 1).
  bool is_signed = tl_dtype_is_signed_int(from) && (uint32_t)tl_dtype_bits(from) == width;
  uint32_t flip = is_signed ? 1u << (width - 1) : 0;
  LLVMTypeRef half = tl_session_type(l->session, to);
  bool in_place = fields_stay_in_place(fields, to);
  LLVMValueRef word = (in_place ? based_in_place : based_after_shifts)(l, fields, flip, to), offsets[2];
  for (int i = 0; i < 2; i++) {
    int32_t base = base_value(to) >> (in_place ? fields[i].shift % 8 : 0);
    offsets[i] = LLVMConstReal(half, -(double)(base + (int32_t)flip));
  }
  LLVMValueRef floats = LLVMBuildBitCast(l->builder, word, LLVMVectorType(half, 2), "");
  tl_lower_split_pair(l, LLVMBuildFAdd(l->builder, floats, LLVMConstVector(offsets, 2), ""), out);
  return true;
}
