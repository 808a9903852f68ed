// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Splits the text of an expression into tokens, matches brackets and reads numbers.
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#include "frontend/expr/expr_internal.h"
#include "frontend/expr/suggest.h"
#include "support/dtype.h"

typedef struct lexer {
  tl_expr_parser *parser;
  const char *text;
  uint32_t len;
  uint32_t at;
  TL_VEC(tl_token) tokens;
  uint32_t open[TL_EXPR_MAX_NESTING + 1];  // token indices of the brackets that are open
  uint32_t num_open;
} lexer;

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_char(char c) {
  return is_name_start(c) || is_digit(c);
}

static char char_at(const lexer *lex, uint32_t index) {
  return index < lex->len ? lex->text[index] : '\0';
}

static bool fail_span(lexer *lex, tl_diag_code code, uint32_t start, uint32_t end, const char *message) {
  tl_token token = {.start = start, .end = end};
  tl_expr_fail(lex->parser, code, &token, "%s: `%.*s`", message,
               tl_expr_shown((tl_str){lex->text + start, end - start}), lex->text + start);
  return false;
}

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void) {
  c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

// strtod of the C locale, whatever the process has set: the decimal point is a point.
static double parse_double(const char *text) {
  pthread_once(&c_locale_once, make_c_locale);
  return c_locale ? strtod_l(text, NULL, c_locale) : strtod(text, NULL);
}

static int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// Reads the digits [start, end) of base `base` (underscores allowed); false when 2^63 is exceeded. 2^63 itself comes
// back as INT64_MIN: the parser accepts it directly behind a minus.
static bool read_int(const char *text, uint32_t start, uint32_t end, uint64_t base, int64_t *out) {
  uint64_t value = 0;
  const uint64_t limit = (uint64_t)INT64_MAX + 1;
  for (uint32_t i = start; i < end; i++) {
    if (text[i] == '_') continue;
    uint64_t digit = (uint64_t)digit_value(text[i]);
    if (value > (limit - digit) / base) return false;
    value = value * base + digit;
  }
  *out = value == limit ? INT64_MIN : (int64_t)value;
  return true;
}

// Advances over digits and single underscores between them; false when an underscore is misplaced or no digit is there.
static bool skip_digits(lexer *lex, int base) {
  bool previous_digit = false;
  for (;; lex->at++) {
    char c = char_at(lex, lex->at);
    if (c == '_') {
      if (!previous_digit) return false;
      previous_digit = false;
    } else if (digit_value(c) < base) {
      previous_digit = true;
    } else {
      return previous_digit;
    }
  }
}

static void skip_malformed_number(lexer *lex) {
  while (is_name_char(char_at(lex, lex->at)) || char_at(lex, lex->at) == '.') lex->at++;
}

static bool lex_prefixed_int(lexer *lex, int base, tl_token *token) {
  lex->at += 2;
  uint32_t digits = lex->at;
  bool ok = skip_digits(lex, base);
  if (!ok || is_name_char(char_at(lex, lex->at))) {
    skip_malformed_number(lex);
    return fail_span(lex, TL_DIAG_EXPR_NUMBER, token->start, lex->at, "malformed number");
  }
  token->kind = TL_TOKEN_INT;
  if (!read_int(lex->text, digits, lex->at, (uint64_t)base, &token->int_value))
    return fail_span(lex, TL_DIAG_EXPR_NUMBER, token->start, lex->at, "the integer does not fit 64 bits signed");
  return true;
}

static bool finish_float(lexer *lex, tl_token *token) {
  char buffer[512];
  size_t used = 0;
  for (uint32_t i = token->start; i < lex->at; i++) {
    if (lex->text[i] == '_') continue;
    if (used + 1 >= sizeof(buffer))
      return fail_span(lex, TL_DIAG_EXPR_NUMBER, token->start, lex->at, "too many digits");
    buffer[used++] = lex->text[i];
  }
  buffer[used] = '\0';
  token->kind = TL_TOKEN_FLOAT;
  token->float_value = parse_double(buffer);
  if (isinf(token->float_value))
    return fail_span(lex, TL_DIAG_EXPR_NUMBER, token->start, lex->at, "the number does not fit float64");
  return true;
}

static bool lex_number(lexer *lex, tl_token *token) {
  char first = lex->text[lex->at], second = char_at(lex, lex->at + 1);
  if (first == '0' && (second == 'x' || second == 'X')) return lex_prefixed_int(lex, 16, token);
  if (first == '0' && (second == 'o' || second == 'O')) return lex_prefixed_int(lex, 8, token);
  if (first == '0' && (second == 'b' || second == 'B')) return lex_prefixed_int(lex, 2, token);
  bool is_float = false, ok = true;
  if (first != '.') ok = skip_digits(lex, 10);
  if (ok && char_at(lex, lex->at) == '.' && char_at(lex, lex->at + 1) != 'T') {
    is_float = true;
    lex->at++;
    if (is_digit(char_at(lex, lex->at))) ok = skip_digits(lex, 10);
  }
  char exponent = char_at(lex, lex->at);
  if (ok && (exponent == 'e' || exponent == 'E')) {
    is_float = true;
    lex->at++;
    if (char_at(lex, lex->at) == '+' || char_at(lex, lex->at) == '-') lex->at++;
    ok = skip_digits(lex, 10);
  }
  if (!ok || is_name_char(char_at(lex, lex->at))) {
    skip_malformed_number(lex);
    return fail_span(lex, TL_DIAG_EXPR_NUMBER, token->start, lex->at, "malformed number");
  }
  if (is_float) return finish_float(lex, token);
  token->kind = TL_TOKEN_INT;
  if (first == '0' && lex->at - token->start > 1)
    for (uint32_t i = token->start; i < lex->at; i++)
      if (lex->text[i] != '0' && lex->text[i] != '_')
        return fail_span(lex, TL_DIAG_EXPR_NUMBER, token->start, lex->at, "a decimal number has no leading zeros");
  if (!read_int(lex->text, token->start, lex->at, 10, &token->int_value))
    return fail_span(lex, TL_DIAG_EXPR_NUMBER, token->start, lex->at, "the integer does not fit 64 bits signed");
  return true;
}

static bool lex_string(lexer *lex, tl_token *token) {
  char quote = lex->text[lex->at++];
  while (lex->at < lex->len && lex->text[lex->at] != quote) lex->at += lex->text[lex->at] == '\\' ? 2 : 1;
  if (lex->at >= lex->len) {
    tl_expr_fail(lex->parser, TL_DIAG_EXPR_SYNTAX, token, "the text that starts here has no closing `%c`", quote);
    return false;
  }
  lex->at++;
  token->kind = TL_TOKEN_STRING;
  return true;
}

static void lex_name(lexer *lex, tl_token *token) {
  static const struct {
    const char *word;
    tl_token_kind kind;
  } words[] = {{"and", TL_TOKEN_AND}, {"or", TL_TOKEN_OR},     {"not", TL_TOKEN_NOT},
               {"if", TL_TOKEN_IF},   {"else", TL_TOKEN_ELSE}, {"in", TL_TOKEN_IN}};
  while (is_name_char(char_at(lex, lex->at))) lex->at++;
  token->kind = TL_TOKEN_NAME;
  tl_str text = {lex->text + token->start, lex->at - token->start};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (tl_str_is(text, words[i].word)) token->kind = words[i].kind;
}

typedef struct punctuation {
  const char *text;
  tl_token_kind kind;
  tl_expr_op op;
} punctuation;

// Longest first among those that share a start.
static const punctuation punctuations[] = {
    {"->", TL_TOKEN_ARROW, TL_EXPR_OP_NONE},
    {"**", TL_TOKEN_OPERATOR, TL_EXPR_OP_POW},
    {"//", TL_TOKEN_OPERATOR, TL_EXPR_OP_FLOORDIV},
    {"<<", TL_TOKEN_OPERATOR, TL_EXPR_OP_SHL},
    {">>", TL_TOKEN_OPERATOR, TL_EXPR_OP_SHR},
    {"<=", TL_TOKEN_OPERATOR, TL_EXPR_OP_LE},
    {">=", TL_TOKEN_OPERATOR, TL_EXPR_OP_GE},
    {"==", TL_TOKEN_OPERATOR, TL_EXPR_OP_EQ},
    {"!=", TL_TOKEN_OPERATOR, TL_EXPR_OP_NE},
    {"+=", TL_TOKEN_COMPOUND_ASSIGN, TL_EXPR_OP_NONE},
    {"-=", TL_TOKEN_COMPOUND_ASSIGN, TL_EXPR_OP_NONE},
    {"*=", TL_TOKEN_COMPOUND_ASSIGN, TL_EXPR_OP_NONE},
    {"/=", TL_TOKEN_COMPOUND_ASSIGN, TL_EXPR_OP_NONE},
    {":+", TL_TOKEN_COLON_PLUS, TL_EXPR_OP_NONE},
    {"+", TL_TOKEN_OPERATOR, TL_EXPR_OP_ADD},
    {"-", TL_TOKEN_OPERATOR, TL_EXPR_OP_SUB},
    {"*", TL_TOKEN_OPERATOR, TL_EXPR_OP_MUL},
    {"/", TL_TOKEN_OPERATOR, TL_EXPR_OP_DIV},
    {"%", TL_TOKEN_OPERATOR, TL_EXPR_OP_MOD},
    {"@", TL_TOKEN_OPERATOR, TL_EXPR_OP_MATMUL},
    {"&", TL_TOKEN_OPERATOR, TL_EXPR_OP_BITAND},
    {"|", TL_TOKEN_OPERATOR, TL_EXPR_OP_BITOR},
    {"^", TL_TOKEN_OPERATOR, TL_EXPR_OP_BITXOR},
    {"~", TL_TOKEN_OPERATOR, TL_EXPR_OP_INVERT},
    {"<", TL_TOKEN_OPERATOR, TL_EXPR_OP_LT},
    {">", TL_TOKEN_OPERATOR, TL_EXPR_OP_GT},
    {"(", TL_TOKEN_LPAREN, TL_EXPR_OP_NONE},
    {")", TL_TOKEN_RPAREN, TL_EXPR_OP_NONE},
    {"[", TL_TOKEN_LBRACKET, TL_EXPR_OP_NONE},
    {"]", TL_TOKEN_RBRACKET, TL_EXPR_OP_NONE},
    {",", TL_TOKEN_COMMA, TL_EXPR_OP_NONE},
    {":", TL_TOKEN_COLON, TL_EXPR_OP_NONE},
    {"=", TL_TOKEN_ASSIGN, TL_EXPR_OP_NONE},
};

static const char *attribute_hint(const lexer *lex) {
  uint32_t start = lex->at;
  while (start > 0 && is_name_char(lex->text[start - 1])) start--;
  const char *hint = tl_suggest_for_attribute((tl_str){lex->text + start, lex->at - start});
  return hint ? hint : "the only attribute is `.T`, the transpose";
}

// C operators and other things that authors of kernels type by habit.
static bool fail_unexpected(lexer *lex, tl_token *token) {
  uint32_t end = lex->at + 1;
  while (end < lex->len && ((unsigned char)lex->text[end] & 0xC0) == 0x80) end++;
  const char *hint = NULL;
  if (lex->text[lex->at] == '!') hint = "write `not x`, or `!=` to compare";
  if (lex->text[lex->at] == '?') {
    uint32_t before = lex->at;
    while (before > 0 && lex->text[before - 1] == ' ') before--;
    bool is_dim = before > 0 && (lex->text[before - 1] == '[' || lex->text[before - 1] == ',');
    hint = is_dim ? "a dim known only at launch is a param: `n: dynamic` under `params`, and here `n`"
                  : "a choice is written `a if condition else b`";
  }
  if (lex->text[lex->at] == '.') hint = attribute_hint(lex);
  if (lex->text[lex->at] == '#') hint = "put the comment at the end of the line, behind a space";
  if (!hint) hint = tl_suggest_for_character(lex->text + lex->at, end - lex->at);
  token->end = end;
  tl_diag *diag = tl_expr_fail(lex->parser, TL_DIAG_EXPR_SYNTAX, token, "unexpected character `%.*s`",
                               (int)(end - lex->at), lex->text + lex->at);
  if (diag && hint) tl_diag_add_hint(lex->parser->diags, diag, "%s", hint);
  return false;
}

static bool lex_punctuation(lexer *lex, tl_token *token) {
  char c = lex->text[lex->at], next = char_at(lex, lex->at + 1);
  if ((c == '&' && next == '&') || (c == '|' && next == '|')) {
    token->end = lex->at + 2;
    tl_diag *diag = tl_expr_fail(lex->parser, TL_DIAG_EXPR_SYNTAX, token, "unexpected operator `%c%c`", c, c);
    if (diag) tl_diag_add_hint(lex->parser->diags, diag, "write `%s`", c == '&' ? "and" : "or");
    return false;
  }
  if (c == '.' && next == 'T' && !is_name_char(char_at(lex, lex->at + 2))) {
    token->kind = TL_TOKEN_TRANSPOSE;
    lex->at += 2;
    return true;
  }
  for (size_t i = 0; i < sizeof(punctuations) / sizeof(punctuations[0]); i++) {
    const punctuation *entry = &punctuations[i];
    if (entry->text[0] != c || (entry->text[1] && entry->text[1] != next)) continue;
    token->kind = entry->kind;
    token->op = entry->op;
    lex->at += entry->text[1] ? 2 : 1;
    return true;
  }
  return fail_unexpected(lex, token);
}

static bool match_bracket(lexer *lex, const tl_token *token) {
  uint32_t index = (uint32_t)lex->tokens.len;
  if (token->kind == TL_TOKEN_LPAREN || token->kind == TL_TOKEN_LBRACKET) {
    if (lex->num_open > TL_EXPR_MAX_NESTING) return true;  // The parser reports the depth when it gets there.
    if (lex->num_open == TL_EXPR_MAX_NESTING) {
      tl_expr_fail(lex->parser, TL_DIAG_EXPR_LIMIT, token, "brackets are nested more than %d levels deep",
                   TL_EXPR_MAX_NESTING);
      return false;
    }
    lex->open[lex->num_open++] = index;
  } else if ((token->kind == TL_TOKEN_RPAREN || token->kind == TL_TOKEN_RBRACKET) && lex->num_open) {
    uint32_t open = lex->open[--lex->num_open];
    lex->tokens.items[open].match = index;
  }
  return true;
}

static bool lex_one(lexer *lex, tl_token *token) {
  char c = lex->text[lex->at];
  if (is_digit(c) || (c == '.' && is_digit(char_at(lex, lex->at + 1)))) {
    if (!lex_number(lex, token)) return false;
  } else if (is_name_start(c)) {
    lex_name(lex, token);
  } else if (c == '\'' || c == '"') {
    token->end = lex->at + 1;
    if (!lex_string(lex, token)) return false;
  } else if (!lex_punctuation(lex, token)) {
    return false;
  }
  token->end = lex->at;
  return true;
}

static bool run_lexer(lexer *lex) {
  for (;;) {
    while (lex->at < lex->len && strchr(" \t\r\n", lex->text[lex->at])) lex->at++;
    tl_token token = {.kind = TL_TOKEN_END, .start = lex->at, .end = lex->at};
    if (lex->at < lex->len) {
      if (lex->tokens.len >= TL_EXPR_MAX_TOKENS) {
        token.end = token.start + 1;
        tl_expr_fail(lex->parser, TL_DIAG_EXPR_LIMIT, &token, "the expression has more than %d parts",
                     TL_EXPR_MAX_NODES);
        return false;
      }
      if (!lex_one(lex, &token) || !match_bracket(lex, &token)) return false;
    } else {
      // The end stands right behind the last token, so that messages point there and not past trailing blanks.
      if (lex->tokens.len) token.start = token.end = tl_vec_last(&lex->tokens).end;
    }
    tl_vec_push(&lex->tokens, token);
    if (token.kind == TL_TOKEN_END) return true;
  }
}

bool tl_expr_parser_init(tl_expr_parser *parser, tl_arena *arena, tl_diags *diags, tl_located_text text) {
  *parser = (tl_expr_parser){.arena = arena, .diags = diags, .text = text};
  lexer lex = {.parser = parser, .text = text.text.data, .len = (uint32_t)text.text.len};
  bool ok = run_lexer(&lex);
  if (ok) {
    parser->tokens = tl_expr_copy_items(arena, lex.tokens.items, lex.tokens.len, sizeof(tl_token));
    parser->num_tokens = (uint32_t)lex.tokens.len;
  }
  tl_vec_fini(&lex.tokens);
  return ok;
}

void tl_expr_parser_fini(tl_expr_parser *parser) {
  tl_vec_fini(&parser->ranges);
}

void *tl_expr_copy_items(tl_arena *arena, const void *items, size_t len, size_t size) {
  size_t bytes = len * size;
  void *copy = tl_arena_alloc(arena, bytes > 0 ? bytes : 1, 16);
  if (bytes > 0) memcpy(copy, items, bytes);
  return copy;
}

const tl_token *tl_expr_peek_at(const tl_expr_parser *parser, uint32_t ahead) {
  uint32_t index = parser->pos + ahead;
  return &parser->tokens[index < parser->num_tokens ? index : parser->num_tokens - 1];
}

const tl_token *tl_expr_peek(const tl_expr_parser *parser) {
  return tl_expr_peek_at(parser, 0);
}

const tl_token *tl_expr_next(tl_expr_parser *parser) {
  const tl_token *token = tl_expr_peek(parser);
  if (token->kind != TL_TOKEN_END) parser->pos++;
  return token;
}

tl_str tl_expr_token_text(const tl_expr_parser *parser, const tl_token *token) {
  return tl_str_sub(parser->text.text, token->start, token->end - token->start);
}

bool tl_expr_token_is(const tl_expr_parser *parser, const tl_token *token, const char *name) {
  return token->kind == TL_TOKEN_NAME && tl_str_is(tl_expr_token_text(parser, token), name);
}

tl_loc tl_expr_span(const tl_expr_parser *parser, uint32_t start, uint32_t end) {
  const tl_text_map *map = &parser->text.map;
  if (!map->offsets) return parser->text.loc;
  uint32_t from = map->offsets[start], to = map->offsets[end];
  return (tl_loc){map->source, from, to > from ? to - from : 0};
}

tl_loc tl_expr_token_loc(const tl_expr_parser *parser, const tl_token *token) {
  return tl_expr_span(parser, token->start, token->end);
}

bool tl_expr_is_identifier(tl_str text) {
  if (!text.len || !is_name_start(text.data[0])) return false;
  for (size_t i = 1; i < text.len; i++)
    if (!is_name_char(text.data[i])) return false;
  return true;
}

int tl_expr_shown(tl_str text) {
  if (text.len <= 60) return (int)text.len;
  int len = 60;
  while (len > 0 && ((unsigned char)text.data[len] & 0xC0) == 0x80) len--;
  return len;
}

bool tl_expr_is_reserved(tl_str name) {
  static const char *const words[] = {"inf", "nan",   "and",  "or",   "not",   "if",   "else",
                                      "in",  "range", "None", "true", "false", "True", "False"};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (tl_str_is(name, words[i])) return true;
  return tl_dtype_parse(name) != TL_DTYPE_NONE;
}

void tl_expr_hint_reserved(tl_diags *diags, tl_diag *diag, tl_str name) {
  tl_dtype dtype = tl_dtype_parse(name);
  if (diag && dtype != TL_DTYPE_NONE && !tl_str_is(name, tl_dtype_name(dtype)))
    tl_diag_add_hint(diags, diag, "`%.*s` is another name of the dtype %s", TL_STR_ARG(name), tl_dtype_name(dtype));
}
