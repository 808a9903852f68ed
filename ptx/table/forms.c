// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the modifiers of an instruction depend on each other, and a row of the table cannot say how. What is a form is
// held against ptxas by test/vectors/rec_scalar.c and rec_access.c, which have these rules in their own words.
#include <string.h>

#include "ptx/table/table.h"

typedef struct number_kind {
  bool is_float, is_signed, is_bf16;
  unsigned bits;
} number_kind;

static number_kind kind_of(tl_str word) {
  number_kind kind = {0};
  for (int type = 0; type < TL_PTX_NUM_TYPES; type++) {
    if (!tl_str_is(word, tl_ptx_type_name((tl_ptx_type)type))) continue;
    tl_ptx_class class = tl_ptx_type_class((tl_ptx_type)type);
    kind.is_float = class == TL_PTX_CLASS_FLOAT || class == TL_PTX_CLASS_PACKED;
    kind.is_signed = class == TL_PTX_CLASS_SIGNED;
    kind.bits = tl_ptx_type_bits((tl_ptx_type)type);
  }
  kind.is_bf16 = tl_str_starts_with(word, "bf16");
  return kind;
}

static tl_str last_word(const tl_ptx_statement *s, uint32_t back) {
  return s->words[s->num_words - 1 - back];
}

// ---- cvt (PTX ISA, cvt)

static const char *conversion_of_floats(const tl_ptx_statement *s, const number_kind *to, const number_kind *from,
                                        bool has_whole, bool has_round) {
  bool is_same = tl_str_equal(last_word(s, 0), last_word(s, 1)), has_bf16 = to->is_bf16 || from->is_bf16;
  if (has_bf16 && tl_ptx_has(s, "sat")) return ".sat is not there for bf16";
  if (is_same) return has_round ? "between equal types only .rni, .rzi, .rmi and .rpi are there" : NULL;
  if (has_whole) return "a whole number is made of the type itself only";
  bool narrows = to->bits < from->bits;
  if (narrows) return has_round ? NULL : "a rounding modifier is missing";
  return has_round && !has_bf16 ? "nothing is rounded here" : NULL;
}

static const char *conversion(const tl_ptx_statement *s) {
  number_kind to = kind_of(last_word(s, 1)), from = kind_of(last_word(s, 0));
  bool has_whole = tl_ptx_has(s, "rni") || tl_ptx_has(s, "rzi") || tl_ptx_has(s, "rmi") || tl_ptx_has(s, "rpi");
  bool has_round = tl_ptx_has(s, "rn") || tl_ptx_has(s, "rz") || tl_ptx_has(s, "rm") || tl_ptx_has(s, "rp");
  bool has_f32 = (to.is_float && to.bits == 32) || (from.is_float && from.bits == 32);
  if (tl_ptx_has(s, "ftz") && !has_f32) return ".ftz belongs to f32";
  if ((to.is_bf16 && from.bits == 8) || (from.is_bf16 && to.bits == 8)) return "bf16 and 8 bits are not converted";
  if (to.is_float && from.is_float) return conversion_of_floats(s, &to, &from, has_whole, has_round);
  if (to.is_float) return has_round ? NULL : "a rounding modifier is missing";
  if (from.is_float && from.is_bf16 && tl_ptx_has(s, "sat")) return ".sat is not there for bf16";
  if (from.is_float) return has_whole ? NULL : "a rounding modifier such as .rzi is missing";
  if (has_whole || has_round) return "nothing is rounded here";
  bool holds = to.is_signed == from.is_signed ? to.bits >= from.bits : to.is_signed && to.bits > from.bits;
  return holds && tl_ptx_has(s, "sat") ? ".sat would do nothing here" : NULL;
}

// ---- comparisons (PTX ISA, setp, set)

static const char *comparison(const tl_ptx_statement *s) {
  static const char *const of_unsigned[] = {"lo", "ls", "hi", "hs"}, *const of_numbers[] = {"lt", "le", "gt", "ge"};
  static const char *const of_floats[] = {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  tl_str word = s->words[1], type = last_word(s, 0);
  number_kind kind = kind_of(type);
  bool is_bits = type.data[0] == 'b' && !kind.is_float, is_unsigned = type.data[0] == 'u';
  for (int i = 0; i < 8; i++) {
    if (i < 4 && tl_str_is(word, of_unsigned[i]) && !is_unsigned) return "that comparison is one of unsigned numbers";
    if (i < 4 && tl_str_is(word, of_numbers[i]) && is_bits) return "bits are equal or not";
    if (tl_str_is(word, of_floats[i]) && !kind.is_float) return "that comparison is one of floats";
  }
  bool is_half = tl_str_is(type, "f16") || tl_str_is(type, "bf16");
  if (tl_str_is(s->words[0], "setp"))
    return is_half && s->operands[0].kind == TL_PTX_PAIR ? "of one half there is one predicate" : NULL;
  bool may_flush = tl_str_is(type, "f32") || tl_str_starts_with(type, "f16");
  return tl_ptx_has(s, "ftz") && !may_flush ? ".ftz belongs to f32 and f16" : NULL;
}

// ---- memory (PTX ISA, ld, st: cache operators, eviction priorities)

static const char *access(const tl_ptx_statement *s) {
  static const char *const operators[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt"};
  bool is_shared = false, has_operator = false, has_hint = false, has_priority = false;
  for (uint32_t i = 1; i < s->num_words; i++) {
    is_shared |= tl_str_starts_with(s->words[i], "shared");
    has_priority |= tl_str_starts_with(s->words[i], "L1::");
    has_hint |= tl_str_starts_with(s->words[i], "L1::") || tl_str_starts_with(s->words[i], "L2::");
    for (int k = 0; k < 7; k++) has_operator |= tl_str_is(s->words[i], operators[k]);
  }
  if (is_shared && has_hint) return "hints for caches belong to global memory";
  return has_priority && has_operator ? "a cache operator and an eviction priority exclude each other" : NULL;
}

// Vectors (PTX ISA, ld, st): 16 bytes, and 32 in global memory, which rows of their own say.
static const char *vector(const tl_ptx_statement *s) {
  bool is_wide = tl_ptx_has(s, "v4") && kind_of(last_word(s, 0)).bits == 64;
  return is_wide && s->row->min_ptx < 88 ? "four values of 64 bits are there in global memory, without a cache operator"
                                         : NULL;
}

// ---- the order of modifiers

static int rank_of(tl_str opcode, tl_str word) {
  static const char *const orders[] = {"weak", "relaxed", "acquire", "release", "acq_rel", "volatile"};
  static const char *const scopes[] = {"cta", "cluster", "gpu", "sys"};
  static const char *const spaces[] = {"global", "shared", "shared::cta", "shared::cluster"};
  if (tl_str_is(opcode, "vote")) return tl_str_is(word, "sync") ? 0 : 1;
  if (tl_str_is(opcode, "min") || tl_str_is(opcode, "max")) return tl_str_is(word, "relu") ? 0 : 1;
  for (int i = 0; i < 6; i++) {
    if (tl_str_is(word, orders[i])) return 0;
    if (i < 4 && tl_str_is(word, scopes[i])) return 1;
    if (i < 4 && tl_str_is(word, spaces[i])) return 2;
  }
  return 3;
}

bool tl_ptx_put_in_order(tl_ptx_statement *s) {
  static const char *const opcodes[] = {"vote", "min", "max", "ld", "st", "atom", "red"};
  tl_str opcode = s->words[0];
  bool is_one = false, changes = false;
  for (int i = 0; i < 7; i++) is_one |= tl_str_is(opcode, opcodes[i]);
  for (uint32_t i = 2; is_one && i < s->num_words; i++) {
    tl_str word = s->words[i];
    uint32_t at = i;
    for (; at > 1 && rank_of(opcode, s->words[at - 1]) > rank_of(opcode, word); at--) s->words[at] = s->words[at - 1];
    s->words[at] = word;
    changes |= at < i;
  }
  return changes;
}

const char *tl_ptx_wrong_form(const tl_ptx_statement *s) {
  const char *rule = s->row->rule;
  if (!strcmp(rule, "CVT")) return conversion(s);
  if (!strcmp(rule, "SETP") || !strcmp(rule, "SET")) return comparison(s);
  if (!strcmp(rule, "LOAD") || !strcmp(rule, "STORE")) return access(s) ? access(s) : vector(s);
  if (!strcmp(rule, "SLCT") && tl_ptx_has(s, "ftz") && !tl_str_is(last_word(s, 0), "f32")) return ".ftz belongs to f32";
  return NULL;
}
