// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands of instructions (PTX ISA, Instruction Operands).
#include "ptx/text/parser.h"

enum { MAX_OPERAND_DEPTH = 4, MAX_ITEMS = 512 };

typedef TL_VEC(tl_ptx_operand) operand_vec;

static bool parse_at(ptx_parser *p, uint32_t depth, tl_ptx_operand *out);

// Items up to `close`, which is taken.
static bool parse_items(ptx_parser *p, int close, uint32_t depth, tl_ptx_operand *out) {
  operand_vec items = {0};
  bool ok = depth <= MAX_OPERAND_DEPTH || tl_ptx_fail(p, tl_ptx_here(p), "an operand that is nested too deeply");
  while (ok && !tl_ptx_take_punct(p, close)) {
    tl_ptx_operand item;
    ok = parse_at(p, depth + 1, &item);
    if (ok) tl_vec_push(&items, item);
    if (ok && items.len > MAX_ITEMS) ok = tl_ptx_fail(p, out->loc, "an operand with more than %d items", MAX_ITEMS);
    if (ok && !tl_ptx_is_punct(p, close)) ok = tl_ptx_expect(p, ',', "the items of an operand");
  }
  out->num_items = (uint32_t)items.len;
  out->items = (tl_ptx_operand *)(void *)tl_vec_to_arena(&items, p->arena);
  tl_vec_fini(&items);
  return ok;
}

// "[%rd1+8]", "[tl_shared+%r1]" is none; "[%rd1, {%r1, %r2}]" names a tensor map and coordinates.
static bool parse_address(ptx_parser *p, uint32_t depth, tl_ptx_operand *out) {
  out->kind = TL_PTX_ADDRESS;
  if (p->token.kind == TL_PTX_TOKEN_WORD && !tl_str_is(p->token.text, "WARP_SZ")) {
    out->text = p->token.text;
    out->symbol = tl_ptx_lookup(p, p->token.text);
    if (!out->symbol) return tl_ptx_fail(p, tl_ptx_here(p), "'%.*s' is not declared", TL_STR_ARG(p->token.text));
    tl_ptx_next(p);
    if ((tl_ptx_is_punct(p, '+') || tl_ptx_is_punct(p, '-')) && !tl_ptx_integer(p, &out->value)) return false;
  } else if (!tl_ptx_integer(p, &out->value)) {
    return false;
  }
  if (tl_ptx_take_punct(p, ',')) return parse_items(p, ']', depth, out);
  return tl_ptx_expect(p, ']', "an address");
}

static bool parse_word(ptx_parser *p, tl_ptx_operand *out) {
  out->text = p->token.text;
  if (tl_str_is(out->text, "_")) {
    out->kind = TL_PTX_SINK;
    tl_ptx_next(p);
    return true;
  }
  uint32_t start = p->token.offset, end = start + p->token.length;
  out->symbol = tl_ptx_lookup(p, out->text);
  tl_ptx_next(p);
  if (p->token.kind == TL_PTX_TOKEN_DOT && p->token.is_glued) {
    if (out->symbol) return tl_ptx_fail(p, tl_ptx_here(p), "vector registers are not supported");
    end = p->token.offset + p->token.length;
    tl_ptx_next(p);
  }
  out->text = tl_str_sub(p->lexer.text, start, end - start);
  if (out->symbol && out->symbol->space == TL_PTX_SPACE_REG) {
    out->kind = TL_PTX_REGISTER;
  } else if (out->symbol) {
    out->kind = TL_PTX_VARIABLE;
    if ((tl_ptx_is_punct(p, '+') || tl_ptx_is_punct(p, '-')) && !tl_ptx_integer(p, &out->value)) return false;
  } else if (out->text.data[0] == '%') {
    out->kind = TL_PTX_SPECIAL;
  } else {
    out->kind = TL_PTX_LABEL;  // or a function, as the instruction says
    for (size_t i = 0; i < p->functions.len; i++)
      if (tl_str_equal(p->functions.items[i]->name, out->text)) out->kind = TL_PTX_FUNCTION;
  }
  return true;
}

static bool parse_number(ptx_parser *p, tl_ptx_operand *out) {
  tl_ptx_lexer before = p->lexer;
  tl_ptx_token token = p->token;
  bool is_negative = tl_ptx_is_punct(p, '-');
  if (is_negative || tl_ptx_is_punct(p, '+')) tl_ptx_next(p);
  if (p->token.kind == TL_PTX_TOKEN_FLOAT32 || p->token.kind == TL_PTX_TOKEN_FLOAT64) {
    bool is_single = p->token.kind == TL_PTX_TOKEN_FLOAT32;
    out->kind = is_single ? TL_PTX_FLOAT32 : TL_PTX_FLOAT64;
    out->value = tl_ptx_float_bits(&p->token, is_negative, is_single ? TL_PTX_F32 : TL_PTX_F64);
    tl_ptx_next(p);
    return true;
  }
  p->lexer = before;
  p->token = token;
  out->kind = TL_PTX_INTEGER;
  return tl_ptx_integer(p, &out->value);
}

static bool parse_single(ptx_parser *p, uint32_t depth, tl_ptx_operand *out) {
  *out = (tl_ptx_operand){.loc = tl_ptx_here(p)};
  if (tl_ptx_take_punct(p, '[')) return parse_address(p, depth, out);
  if (tl_ptx_take_punct(p, '{')) {
    out->kind = TL_PTX_VECTOR;
    return parse_items(p, '}', depth, out);
  }
  // A parenthesis is a list of a call, or begins an expression; only calls have lists, and they stand alone.
  if (tl_ptx_is_punct(p, '(') && !depth) {
    tl_ptx_lexer before = p->lexer;
    tl_ptx_token token = p->token;
    tl_ptx_next(p);
    if (p->token.kind == TL_PTX_TOKEN_WORD || tl_ptx_is_punct(p, ')')) {
      out->kind = TL_PTX_LIST;
      return parse_items(p, ')', depth, out);
    }
    p->lexer = before;
    p->token = token;
  }
  if (tl_ptx_is_punct(p, '!')) {
    tl_ptx_lexer before = p->lexer;
    tl_ptx_token token = p->token;
    tl_ptx_next(p);
    if (p->token.kind == TL_PTX_TOKEN_WORD) {
      out->is_negated = true;
      return parse_word(p, out) &&
             (out->kind == TL_PTX_REGISTER || tl_ptx_fail(p, out->loc, "'!' stands before a predicate register only"));
    }
    p->lexer = before;
    p->token = token;
  }
  if (p->token.kind == TL_PTX_TOKEN_WORD && !tl_str_is(p->token.text, "WARP_SZ")) return parse_word(p, out);
  return parse_number(p, out);
}

static bool parse_at(ptx_parser *p, uint32_t depth, tl_ptx_operand *out) {
  if (!parse_single(p, depth, out)) return false;
  if (!tl_ptx_is_punct(p, '|') || (out->kind != TL_PTX_REGISTER && out->kind != TL_PTX_SINK)) return true;
  tl_ptx_next(p);
  tl_ptx_operand *items = TL_NEW_ARRAY(p->arena, tl_ptx_operand, 2);
  items[0] = *out;
  *out = (tl_ptx_operand){.kind = TL_PTX_PAIR, .loc = items[0].loc, .items = items, .num_items = 2};
  return parse_single(p, depth, &items[1]);
}

bool tl_ptx_parse_operand(ptx_parser *p, tl_ptx_operand *out) {
  return parse_at(p, 0, out);
}
