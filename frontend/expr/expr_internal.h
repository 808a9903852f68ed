// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tokens and parser state shared by the files of the expression parser; not for use outside the front end.
#ifndef TL_FRONTEND_EXPR_INTERNAL_H
#define TL_FRONTEND_EXPR_INTERNAL_H

#include "frontend/spec/spec.h"

enum {
  TL_EXPR_MAX_NESTING = 200,
  TL_EXPR_MAX_CHAIN = 1000,
  TL_EXPR_MAX_NODES = 10000,
  // Every node needs a token of its own and at most a handful of separators.
  TL_EXPR_MAX_TOKENS = 6 * TL_EXPR_MAX_NODES
};

typedef enum tl_token_kind {
  TL_TOKEN_END,
  TL_TOKEN_INT,
  TL_TOKEN_FLOAT,
  TL_TOKEN_STRING,
  TL_TOKEN_NAME,
  TL_TOKEN_AND,
  TL_TOKEN_OR,
  TL_TOKEN_NOT,
  TL_TOKEN_IF,
  TL_TOKEN_ELSE,
  TL_TOKEN_IN,
  TL_TOKEN_LPAREN,
  TL_TOKEN_RPAREN,
  TL_TOKEN_LBRACKET,
  TL_TOKEN_RBRACKET,
  TL_TOKEN_COMMA,
  TL_TOKEN_COLON,
  TL_TOKEN_COLON_PLUS,
  TL_TOKEN_TRANSPOSE,  // .T
  TL_TOKEN_ARROW,
  TL_TOKEN_ASSIGN,           // =
  TL_TOKEN_COMPOUND_ASSIGN,  // += -= *= /=
  TL_TOKEN_OPERATOR          // op
} tl_token_kind;

typedef struct tl_token {
  tl_token_kind kind;
  tl_expr_op op;        // OPERATOR
  uint32_t start, end;  // bytes of the text
  uint32_t match;       // of an open bracket: index of the token that closes it, 0 when none does
  int64_t int_value;
  double float_value;
} tl_token;

typedef struct tl_expr_parser {
  tl_arena *arena;
  tl_diags *diags;
  tl_located_text text;
  tl_token *tokens;  // Owned by the arena. Ends with END.
  uint32_t num_tokens;
  uint32_t pos;
  uint32_t depth;
  uint32_t num_nodes;
  bool failed;  // something was reported; nothing more will be
  // With `ranges`, a subscript may be `k in lo:hi` (left sides of references); they are collected here.
  bool allow_ranges;
  TL_VEC(tl_reduction_index) ranges;
} tl_expr_parser;

// Splits the text into tokens. False (reported) on a malformed token or when the text is too large.
bool tl_expr_parser_init(tl_expr_parser *parser, tl_arena *arena, tl_diags *diags, tl_located_text text);
void tl_expr_parser_fini(tl_expr_parser *parser);

const tl_token *tl_expr_peek(const tl_expr_parser *parser);
// The token `ahead` places further on (END past the end).
const tl_token *tl_expr_peek_at(const tl_expr_parser *parser, uint32_t ahead);
// Consumes and returns the next token.
const tl_token *tl_expr_next(tl_expr_parser *parser);
bool tl_expr_accept(tl_expr_parser *parser, tl_token_kind kind);
// Consumes a token of `kind` or reports "expected <what>".
bool tl_expr_expect(tl_expr_parser *parser, tl_token_kind kind, const char *what);
bool tl_expr_expect_end(tl_expr_parser *parser);
tl_str tl_expr_token_text(const tl_expr_parser *parser, const tl_token *token);
bool tl_expr_token_is(const tl_expr_parser *parser, const tl_token *token, const char *name);
// The place of bytes [start, end) of the text.
tl_loc tl_expr_span(const tl_expr_parser *parser, uint32_t start, uint32_t end);
tl_loc tl_expr_token_loc(const tl_expr_parser *parser, const tl_token *token);
// Reports `code` at `token` unless something was reported before. The returned diagnostic takes hints; NULL when
// silent.
tl_diag *tl_expr_fail(tl_expr_parser *parser, tl_diag_code code, const tl_token *token, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Reports "expected <what>, found <token>"; at the end of the text also looks whether a comment cut it off.
void tl_expr_fail_expected(tl_expr_parser *parser, const char *what);

// One full expression (a conditional at the lowest precedence). NULL when reported.
tl_expr *tl_expr_parse_conditional(tl_expr_parser *parser);
// An operand with its postfixes: what may stand left of an assignment, around an arrow, or as a layout.
tl_expr *tl_expr_parse_postfix(tl_expr_parser *parser);
// A name that is declared here: an identifier that is not reserved.
bool tl_expr_parse_declared_name(tl_expr_parser *parser, tl_str *out_name, tl_loc *out_loc);

// Further entry points on a whole located text, for the spec parser.
// "dtype[dims]" with what may stand around it. Fills access, dtype, dims, strides, align.
bool tl_expr_parse_arg_type(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_arg *out);
// "dtype[dims] layout pad(8)".
bool tl_expr_parse_barrier(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_barrier_decl *out);
bool tl_expr_parse_tile_type(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_tile_decl *out);
// "dtype[dims]" of a view; dims are required.
bool tl_expr_parse_view_type(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_view *out);
// "base as dtype[dims]".
bool tl_expr_parse_view(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_view *out);
// "a, b, c": declared names.
bool tl_expr_parse_names(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_str **out_names, tl_loc **out_locs,
                         uint32_t *out_len);
// "name(a, b)", "name()" or "name": the head of a macro. Fills name and params.
bool tl_expr_parse_macro_head(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_macro *out);
// "C[m, k in 0:K] = …" of a reference: an assignment and the ranges given on its left.
bool tl_expr_parse_reference(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_reference_stmt *out);
// "t in 0:S".
bool tl_expr_parse_range(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_reduction_index *out);
// "dynamic", "dynamic(16)", "auto" or a value.
bool tl_expr_parse_param(tl_arena *arena, tl_diags *diags, tl_located_text text, tl_param *out);

// Prints what stands behind a colon: parenthesised where `:` and `+` would run together.
void tl_expr_print_bound(const tl_expr *expr, tl_strbuf *out);

// Whether `name` is reserved by the language (dtypes, their long names and the words of the expression language).
bool tl_expr_is_reserved(tl_str name);
// Says in a hint why `name` is reserved when that is not obvious (`half` is a dtype). `diag` may be NULL.
void tl_expr_hint_reserved(tl_diags *diags, tl_diag *diag, tl_str name);
bool tl_expr_is_identifier(tl_str text);
// How many bytes of `text` a message quotes: at most 60, never half a character. For "%.*s".
int tl_expr_shown(tl_str text);
// A copy of `len` elements of `size` bytes in `arena`, aligned for any type.
void *tl_expr_copy_items(tl_arena *arena, const void *items, size_t len, size_t size);

#endif
