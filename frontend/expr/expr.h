// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions of the spec language: syntax trees with places, parsed without knowing any types.
#ifndef TL_FRONTEND_EXPR_H
#define TL_FRONTEND_EXPR_H

#include "support/arena.h"
#include "support/diag.h"
#include "support/strbuf.h"

typedef enum tl_expr_kind {
  TL_EXPR_INT,          // int_value (fits int64)
  TL_EXPR_FLOAT,        // float_value; `inf` and `nan` are floats too
  TL_EXPR_BOOL,         // int_value 0 or 1
  TL_EXPR_NONE,         // None: a new axis in a subscript
  TL_EXPR_STRING,       // text, quoted in the expression (messages, .npy paths)
  TL_EXPR_NAME,         // text; also dtype names
  TL_EXPR_UNARY,        // op: - + ~ not
  TL_EXPR_BINARY,       // op: + - * / // % ** & | ^ << >> and or @
  TL_EXPR_COMPARE,      // operands[0] ops[0] operands[1] ops[1] …: a chain
  TL_EXPR_CONDITIONAL,  // operands: value, condition, other (value if condition else other)
  TL_EXPR_CALL,   // text = function; operands = positional; keywords. A YAML list (check.inputs) is a call of `list`
  TL_EXPR_INDEX,  // operands[0] = base; subscripts
  TL_EXPR_TRANSPOSE,  // operands[0].T
  TL_EXPR_REDUCTION   // text = sum|prod|max|min|any|all|argmax|argmin; indices; operands[0] = body
} tl_expr_kind;

typedef enum tl_expr_op {
  TL_EXPR_OP_NONE,
  TL_EXPR_OP_NEG,
  TL_EXPR_OP_POS,
  TL_EXPR_OP_INVERT,
  TL_EXPR_OP_NOT,
  TL_EXPR_OP_ADD,
  TL_EXPR_OP_SUB,
  TL_EXPR_OP_MUL,
  TL_EXPR_OP_DIV,
  TL_EXPR_OP_FLOORDIV,
  TL_EXPR_OP_MOD,
  TL_EXPR_OP_POW,
  TL_EXPR_OP_BITAND,
  TL_EXPR_OP_BITOR,
  TL_EXPR_OP_BITXOR,
  TL_EXPR_OP_SHL,
  TL_EXPR_OP_SHR,
  TL_EXPR_OP_AND,
  TL_EXPR_OP_OR,
  TL_EXPR_OP_MATMUL,
  TL_EXPR_OP_EQ,
  TL_EXPR_OP_NE,
  TL_EXPR_OP_LT,
  TL_EXPR_OP_LE,
  TL_EXPR_OP_GT,
  TL_EXPR_OP_GE
} tl_expr_op;

typedef struct tl_expr tl_expr;

typedef enum tl_subscript_kind {
  TL_SUBSCRIPT_ELEMENT,  // x
  TL_SUBSCRIPT_RANGE,    // lo:hi:step, any of them NULL
  TL_SUBSCRIPT_COUNT,    // lo:+n
  TL_SUBSCRIPT_NEWAXIS   // None
} tl_subscript_kind;
typedef struct tl_subscript {
  tl_subscript_kind kind;
  tl_loc loc;
  tl_expr *lo;    // the element itself for ELEMENT
  tl_expr *hi;    // RANGE: end; COUNT: n
  tl_expr *step;  // RANGE only
} tl_subscript;

typedef struct tl_keyword {
  tl_str name;
  tl_loc loc;
  tl_expr *value;
} tl_keyword;

// One index of a reduction: `k` or `k in lo:hi`.
typedef struct tl_reduction_index {
  tl_str name;
  tl_loc loc;
  tl_expr *lo, *hi;  // NULL when the range is to be inferred
} tl_reduction_index;

struct tl_expr {
  tl_expr_kind kind;
  tl_expr_op op;
  tl_loc loc;  // the whole expression
  int64_t int_value;
  double float_value;
  tl_str text;  // Owned by the arena.
  tl_expr **operands;
  uint32_t num_operands;
  tl_expr_op *compare_ops;  // num_operands - 1
  tl_keyword *keywords;
  uint32_t num_keywords;
  tl_subscript *subscripts;
  uint32_t num_subscripts;
  tl_reduction_index *indices;
  uint32_t num_indices;
  uint32_t height;  // levels of the tree below and including this node; at most 1200
};

// Maps bytes of a scalar's text to places in its file (quotes, escapes and folded lines make this more than an offset).
typedef struct tl_text_map {
  uint32_t source;
  const uint32_t *offsets;  // one per byte of the text, plus one for its end. Borrowed.
} tl_text_map;

// A scalar's text together with where it stands.
typedef struct tl_located_text {
  tl_str text;
  tl_text_map map;
  tl_loc loc;
} tl_located_text;

// Limits: nesting at most 200 levels, at most 10 000 nodes in one expression.
// Every parser reports problems in `diags` and returns NULL (or false) on error.
tl_expr *tl_expr_parse(tl_arena *arena, tl_diags *diags, tl_located_text text);

// Assignment "X[i] += e" (ops: = += -= *= /= max= min=), also "v, i = argmax(…)".
typedef struct tl_assign {
  tl_expr **targets;
  uint32_t num_targets;
  tl_str op;  // "=", "+=", …, "max="
  tl_expr *value;
  tl_loc loc;
} tl_assign;
bool tl_expr_parse_assign(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_assign *out);
// "SRC -> DST".
bool tl_expr_parse_arrow(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_expr **out_from, tl_expr **out_to);
// "b[s], value": a barrier and what belongs to it.
bool tl_expr_parse_pair(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_expr **out_first,
                        tl_expr **out_second);
// "i, j in a, b" (parallel) and "k in n" / "k in range(lo, hi, step)" (loops): names and the expressions behind `in`.
typedef struct tl_in_clause {
  tl_str *names;
  tl_loc *name_locs;
  uint32_t num_names;
  tl_expr **extents;
  uint32_t num_extents;
} tl_in_clause;
bool tl_expr_parse_in(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_in_clause *out);

// Canonical text: parses back to an equal tree. Used by --emit=ast, the manifest and messages.
void tl_expr_print(const tl_expr *expr, tl_strbuf *out);
bool tl_expr_equal(const tl_expr *a, const tl_expr *b);

#endif
