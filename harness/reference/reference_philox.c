// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The generator Philox4x32-10 in references: written down once more, after the paper's text, so that no mistake hides
// itself.
#include "harness/reference/reference_calls.h"

static tl_ref_value bits(tl_ref_code *code, const char *op, tl_ref_value a, const char *b) {
  return tl_ref_op(code, TL_REF_INT, "%s i64 %s, %s", op, a.text, b);
}

static tl_ref_value low(tl_ref_code *code, tl_ref_value a) {
  return bits(code, "and", a, "4294967295");
}

static tl_ref_value high(tl_ref_code *code, tl_ref_value a) {
  return bits(code, "lshr", a, "32");
}

// One round: a Feistel network on two pairs of words (L, R), with multiplications for S-boxes; all words in i64.
static void mix(tl_ref_code *code, tl_ref_value r[4], const tl_ref_value key[2]) {
  tl_ref_value first = bits(code, "mul", r[0], "3528531795"), second = bits(code, "mul", r[2], "3449720151");
  tl_ref_value left = bits(code, "xor", high(code, second), r[1].text);
  tl_ref_value right = bits(code, "xor", high(code, first), r[3].text);
  r[0] = bits(code, "xor", left, key[0].text);
  r[1] = low(code, second);
  r[2] = bits(code, "xor", right, key[1].text);
  r[3] = low(code, first);
}

// What 64 bits of a value are in two words.
static void split(tl_ref_code *code, tl_ref_value a, tl_ref_value out[2]) {
  a = tl_ref_to_int(code, a);
  out[0] = low(code, a);
  out[1] = high(code, a);
}

tl_ref_value tl_ref_philox(tl_ref_code *code, const tl_ref_value *args, uint32_t count) {
  tl_ref_value key[2], r[4];
  split(code, args[0], key);
  split(code, args[1], r);
  split(code, count > 3 ? args[3] : tl_ref_const_int(0), r + 2);
  for (int round = 0; round < 10; round++) {
    if (round > 0) {
      key[0] = low(code, bits(code, "add", key[0], "2654435769"));
      key[1] = low(code, bits(code, "add", key[1], "3144134277"));
    }
    mix(code, r, key);
  }
  // The word asked for comes down to the lowest place of two: the lower pair or the upper one, shifted by a word or
  // not.
  tl_ref_value number = tl_ref_to_int(code, args[2]);
  tl_ref_value pair[2];
  for (int i = 0; i < 2; i++) pair[i] = bits(code, "or", bits(code, "shl", r[2 * i + 1], "32"), r[2 * i].text);
  tl_ref_value is_upper = tl_ref_to_bool(code, bits(code, "and", number, "2"));
  tl_ref_value chosen = tl_ref_select(code, is_upper, pair[1], pair[0]);
  tl_ref_value shift = bits(code, "shl", bits(code, "and", number, "1"), "5");
  tl_ref_value out = low(code, bits(code, "lshr", chosen, shift.text));
  out.dtype = TL_DTYPE_U32;
  out.has_range = true;
  out.lo = 0;
  out.hi = UINT32_MAX;
  return out;
}
