// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the rules of all ops share: findings, and questions of types.
#include <stdarg.h>
#include <stdio.h>

#include "ir/verify/verify_internal.h"

bool tl_verify_fail(tl_verifier *verifier, const tl_op *op, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  const char *copy = tl_arena_printf(&verifier->result->arena, "%s", text);
  tl_vec_push(&verifier->result->errors, (tl_verify_error){op, copy});
  return false;
}

const char *tl_verify_type_text(tl_verifier *verifier, const tl_type *type) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_type_print(type, &text);
  const char *copy = tl_arena_printf(&verifier->result->arena, "%s", tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return copy;
}

bool tl_type_is_scalar_of(const tl_type *type, tl_dtype dtype) {
  return type->kind == TL_TYPE_SCALAR && type->dtype == dtype;
}

bool tl_verify_range(tl_verifier *verifier, const tl_op *op, const char *what, int64_t value, int64_t least,
                     int64_t most) {
  return (value >= least && value <= most) || tl_verify_fail(verifier, op, "'%s' is %lld, not %lld to %lld", what,
                                                             (long long)value, (long long)least, (long long)most);
}

// Of one statement (TL0432): what a block does with a tile is counted in 32 bits.
bool tl_verify_elements(tl_verifier *verifier, const tl_op *op, const int64_t *dims, int32_t rank) {
  const int64_t most = (int64_t)1 << 30;
  int64_t elements = 1;
  for (int32_t d = 0; d < rank; d++) {
    int64_t dim = dims[d] > 0 ? dims[d] : 1;
    if (dim > most / elements) return tl_verify_fail(verifier, op, "more than 2^30 elements");
    elements *= dim;
  }
  return true;
}
