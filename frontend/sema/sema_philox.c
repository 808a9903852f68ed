// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// philox(seed, counter, word, stream): the counter-based generator.
#include <inttypes.h>

#include "frontend/sema/sema.h"

enum { SEED, COUNTER, WORD, STREAM, ARGUMENTS, WORDS = 4 };

// 64 bits of an integer: signed ones are extended by their sign.
static tl_value *to_bits(tl_sema *sema, const tl_sema_value *a, tl_loc loc) {
  const tl_type *bits = tl_type_scalar(sema->module, TL_DTYPE_U64);
  bool is_literal = a->kind == TL_SEMA_CONST;
  tl_value *value = is_literal ? tl_sema_to_dtype(sema, a, TL_DTYPE_I64, loc) : a->value;
  if (!value) return NULL;
  sema->builder.loc = loc;
  return tl_build_cast(&sema->builder, value, bits);
}

bool tl_sema_validate_word(tl_sema *sema, const tl_sema_value *word, tl_loc loc) {
  if (word->kind != TL_SEMA_CONST || !tl_sema_is_integer(word)) return true;
  if (word->constant.i >= 0 && word->constant.i < WORDS) return true;
  tl_diag_report(sema->diags, TL_DIAG_FUNCTION_ARGS, loc, "a block of `philox` has the words 0 to 3, not %" PRId64,
                 word->constant.i);
  return false;
}

tl_sema_value tl_sema_philox(tl_sema *sema, const tl_sema_value *args, const tl_expr *expr) {
  tl_value *values[ARGUMENTS];
  tl_sema_value zero = tl_sema_of_const(tl_const_int(0));
  for (uint32_t i = 0; i < ARGUMENTS; ++i) {
    bool is_given = i < expr->num_operands;
    const tl_sema_value *argument = is_given ? &args[i] : &zero;
    tl_loc loc = is_given ? expr->operands[i]->loc : expr->loc;
    if (!tl_sema_is_integer(argument)) {
      tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, loc, "`philox` takes integers, not %s",
                     tl_sema_type_text(sema, argument));
      return tl_sema_poison();
    }
    values[i] = to_bits(sema, argument, loc);
    if (!values[i]) return tl_sema_poison();
  }
  const tl_type *word = tl_type_scalar(sema->module, TL_DTYPE_U32);
  sema->builder.loc = expr->loc;
  values[WORD] = tl_build_cast(&sema->builder, values[WORD], word);
  tl_group groups[ARGUMENTS];
  for (int i = 0; i < ARGUMENTS; ++i) groups[i] = (tl_group){&values[i], 1};
  return tl_sema_of_value(tl_op_result(tl_build(&sema->builder, TL_OP_PHILOX, groups, &word, 1), 0));
}
