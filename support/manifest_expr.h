// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files about expressions of the manifest share.
#ifndef TL_SUPPORT_MANIFEST_EXPR_H
#define TL_SUPPORT_MANIFEST_EXPR_H

#include "support/manifest.h"

typedef enum mexpr_op {
  OP_INT,
  OP_NAME,
  OP_NEG,
  OP_NOT,
  OP_ADD,
  OP_SUB,
  OP_MUL,
  OP_FLOORDIV,
  OP_MOD,
  OP_MIN,
  OP_MAX,
  OP_CEILDIV,
  OP_EQ,
  OP_NE,
  OP_LT,
  OP_LE,
  OP_GT,
  OP_GE,
  OP_AND,
  OP_OR
} mexpr_op;

struct tl_mexpr {
  mexpr_op op;
  int64_t value;     // INT
  const char *name;  // NAME. Owned by the arena.
  const tl_mexpr *a, *b;
};

// Binding strengths, weakest first, as in Python.
enum { PREC_OR = 1, PREC_AND, PREC_NOT, PREC_COMPARE, PREC_ADD, PREC_MUL, PREC_UNARY, PREC_ATOM };

#endif
