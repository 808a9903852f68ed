// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stands in the body of a function (PTX ISA, Syntax: statements).
#include "ptx/text/parser.h"

static void push(ptx_parser *p, tl_ptx_statement statement) {
  statement.file = p->file;
  statement.source_line =
      statement.kind == TL_PTX_INSTRUCTION || statement.kind == TL_PTX_SOURCE_LINE ? p->source_line : 0;
  tl_vec_push(&p->statements, statement);
  tl_vec_push(&p->statement_scopes, p->scope);
}

// ".loc 1 20 3", with ", function_name $L__info_string0, inlined_at 1 5 3" behind it.
static bool parse_loc(ptx_parser *p, tl_ptx_statement statement) {
  uint64_t numbers[3] = {0};
  uint32_t line = p->token.line;
  for (int i = 0; i < 3; i++)
    if ((i < 2 || p->token.kind == TL_PTX_TOKEN_INTEGER) && !tl_ptx_take_number(p, "a place", &numbers[i]))
      return false;
  if (numbers[0] > UINT32_MAX || numbers[1] > UINT32_MAX || numbers[2] > UINT32_MAX)
    return tl_ptx_fail(p, statement.loc, "a place that is out of range");
  // The rest, up to the end of the line, says from where it was inlined.
  while (p->token.line == line && p->token.kind != TL_PTX_TOKEN_END && p->token.kind != TL_PTX_TOKEN_WRONG)
    tl_ptx_next(p);
  p->file = (uint32_t)numbers[0];
  p->source_line = (uint32_t)numbers[1];
  statement.kind = TL_PTX_SOURCE_LINE;
  statement.column = (uint32_t)numbers[2];
  push(p, statement);
  return true;
}

static bool parse_pragma(ptx_parser *p, tl_ptx_statement statement) {
  statement.kind = TL_PTX_PRAGMA;
  statement.text = p->token.text;
  if (p->token.kind != TL_PTX_TOKEN_STRING) return tl_ptx_fail(p, tl_ptx_here(p), "a pragma is a string");
  tl_ptx_next(p);
  while (tl_ptx_take_punct(p, ',')) tl_ptx_next(p);
  push(p, statement);
  return tl_ptx_expect(p, ';', "a pragma");
}

static bool parse_directive(ptx_parser *p) {
  tl_ptx_statement statement = {.loc = tl_ptx_here(p), .line = p->token.line};
  tl_str word = p->token.text;
  tl_ptx_next(p);
  if (tl_str_is(word, "loc")) return parse_loc(p, statement);
  if (tl_str_is(word, "pragma")) return parse_pragma(p, statement);
  tl_ptx_space space = tl_ptx_space_of(word);
  if (space) return tl_ptx_parse_variables(p, space, TL_STR(""), true);
  if (tl_str_is(word, "extern") && p->token.kind == TL_PTX_TOKEN_DOT && tl_ptx_space_of(p->token.text)) {
    space = tl_ptx_space_of(p->token.text);
    tl_ptx_next(p);
    return tl_ptx_parse_variables(p, space, word, true);
  }
  return tl_ptx_fail(p, statement.loc, "'.%.*s' is not known in a function", TL_STR_ARG(word));
}

typedef TL_VEC(tl_ptx_operand) operand_vec;

static bool parse_operands(ptx_parser *p, tl_ptx_statement *statement) {
  operand_vec operands = {0};
  bool ok = true;
  while (ok && !tl_ptx_take_punct(p, ';')) {
    tl_ptx_operand operand;
    ok = tl_ptx_parse_operand(p, &operand);
    if (ok) tl_vec_push(&operands, operand);
    if (ok && !tl_ptx_is_punct(p, ';')) ok = tl_ptx_expect(p, ',', "an instruction");
  }
  statement->operands = (tl_ptx_operand *)(void *)tl_vec_to_arena(&operands, p->arena);
  statement->num_operands = (uint32_t)operands.len;
  tl_vec_fini(&operands);
  return ok;
}

static bool parse_guard(ptx_parser *p, tl_ptx_statement *statement) {
  if (!tl_ptx_take_punct(p, '@')) return true;
  statement->is_negated = tl_ptx_take_punct(p, '!');
  tl_ptx_symbol *guard = p->token.kind == TL_PTX_TOKEN_WORD ? tl_ptx_lookup(p, p->token.text) : NULL;
  if (!guard || guard->space != TL_PTX_SPACE_REG || guard->type != TL_PTX_PRED)
    return tl_ptx_fail(p, tl_ptx_here(p), "a predicate register is expected behind '@'");
  statement->symbol = guard;
  tl_ptx_next(p);
  return true;
}

// The first name is a function, unless a register says which; the last is then the label of a prototype.
static void find_callee(tl_ptx_statement *statement) {
  bool is_indirect = false;
  for (uint32_t i = 0; i < statement->num_operands; i++) {
    tl_ptx_operand *operand = &statement->operands[i];
    is_indirect |= operand->kind == TL_PTX_REGISTER;
    if (!is_indirect && operand->kind == TL_PTX_LABEL) operand->kind = TL_PTX_FUNCTION;
  }
}

static bool parse_instruction(ptx_parser *p, tl_ptx_statement statement) {
  statement.kind = TL_PTX_INSTRUCTION;
  tl_str words[TL_PTX_MAX_WORDS];
  if (p->token.kind != TL_PTX_TOKEN_WORD) return tl_ptx_fail(p, tl_ptx_here(p), "an instruction is expected here");
  uint32_t end = 0;
  do {
    if (statement.num_words == TL_PTX_MAX_WORDS) return tl_ptx_fail(p, tl_ptx_here(p), "too many modifiers");
    words[statement.num_words++] = p->token.text;
    end = p->token.offset + p->token.length;
    tl_ptx_next(p);
  } while (p->token.kind == TL_PTX_TOKEN_DOT);
  statement.loc.length = end - statement.loc.offset;
  statement.words = (tl_str *)(void *)tl_arena_copy_bytes(p->arena, words, statement.num_words * sizeof(tl_str));
  if (!parse_operands(p, &statement)) return false;
  if (tl_str_is(words[0], "call")) find_callee(&statement);
  push(p, statement);
  return true;
}

// ".branchtargets L1, L2;" behind its label.
static bool parse_targets(ptx_parser *p, tl_ptx_statement statement) {
  tl_ptx_next(p);
  statement.kind = TL_PTX_BRANCHTARGETS;
  if (!parse_operands(p, &statement)) return false;
  for (uint32_t i = 0; i < statement.num_operands; i++)
    if (statement.operands[i].kind != TL_PTX_LABEL)
      return tl_ptx_fail(p, statement.operands[i].loc, "a label is expected here");
  push(p, statement);
  return true;
}

// ".callprototype (.param .b32 _) _ (.param .b32 _);" behind its label: what a call hands over says as much.
static bool parse_prototype(ptx_parser *p, tl_ptx_statement statement) {
  uint32_t start = p->token.offset, end = start;
  statement.kind = TL_PTX_PROTOTYPE;
  while (!tl_ptx_is_punct(p, ';')) {
    if (p->token.kind == TL_PTX_TOKEN_END || p->token.kind == TL_PTX_TOKEN_WRONG)
      return tl_ptx_fail(p, statement.loc, "a prototype that does not end");
    end = p->token.offset + p->token.length;
    tl_ptx_next(p);
  }
  tl_ptx_next(p);
  statement.prototype = tl_str_sub(p->lexer.text, start, end - start);
  push(p, statement);
  return true;
}

// A label, or an instruction that begins with a word.
static bool parse_word(ptx_parser *p) {
  tl_ptx_statement statement = {.loc = tl_ptx_here(p), .line = p->token.line};
  tl_ptx_lexer before = p->lexer;
  tl_ptx_token token = p->token;
  tl_ptx_next(p);
  if (!tl_ptx_take_punct(p, ':')) {
    p->lexer = before;
    p->token = token;
    return parse_instruction(p, statement);
  }
  statement.text = token.text;
  tl_vec_push(&p->labels, (ptx_label){token.text, p->scope, (uint32_t)p->statements.len});
  if (tl_ptx_is_dot(p, "branchtargets")) return parse_targets(p, statement);
  if (tl_ptx_is_dot(p, "callprototype") || tl_ptx_is_dot(p, "calltargets")) return parse_prototype(p, statement);
  statement.kind = TL_PTX_LABEL_HERE;
  push(p, statement);
  return true;
}

static bool parse_statement(ptx_parser *p) {
  tl_ptx_statement statement = {.loc = tl_ptx_here(p), .line = p->token.line};
  if (p->token.kind == TL_PTX_TOKEN_DOT) return parse_directive(p);
  if (tl_ptx_is_punct(p, '@')) {
    if (!parse_guard(p, &statement)) return false;
    statement.loc = tl_ptx_here(p);
    return parse_instruction(p, statement);
  }
  if (p->token.kind == TL_PTX_TOKEN_WORD) return parse_word(p);
  if (tl_ptx_take_punct(p, '{')) {
    if (p->depth >= PTX_MAX_SCOPES) return tl_ptx_fail(p, statement.loc, "braces that are nested too deeply");
    statement.kind = TL_PTX_SCOPE_BEGIN;
    push(p, statement);
    tl_ptx_open_scope(p);
    return true;
  }
  if (tl_ptx_take_punct(p, ';')) return true;
  return tl_ptx_fail(p, statement.loc, "a statement is expected here");
}

bool tl_ptx_parse_body(ptx_parser *p, tl_ptx_function *function) {
  uint32_t outside = p->depth;
  tl_vec_clear(&p->statements);
  tl_vec_clear(&p->statement_scopes);
  tl_vec_clear(&p->labels);
  p->file = p->source_line = 0;
  tl_ptx_open_scope(p);
  while (p->depth > outside) {
    if (tl_ptx_is_punct(p, '}')) {
      tl_ptx_statement statement = {.kind = TL_PTX_SCOPE_END, .loc = tl_ptx_here(p), .line = p->token.line};
      tl_ptx_next(p);
      tl_ptx_close_scope(p);
      if (p->depth > outside) push(p, statement);
    } else if (!parse_statement(p)) {
      return false;
    }
  }
  if (!tl_ptx_resolve_labels(p)) return false;
  function->has_body = true;
  function->statements = (tl_ptx_statement *)(void *)tl_vec_to_arena(&p->statements, p->arena);
  function->num_statements = (uint32_t)p->statements.len;
  return true;
}
