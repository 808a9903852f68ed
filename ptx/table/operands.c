// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands against the specs of a row (PTX ISA, Operand Type Checking).
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ptx/table/table.h"

static const tl_ptx_special specials[] = {
#define TL_PTX_SPECIAL(name, type, op, min_sm, min_ptx) {name, TL_PTX_##type, op, min_sm, min_ptx},
#include "ptx/table/special.def"
#undef TL_PTX_SPECIAL
};

const tl_ptx_special *tl_ptx_find_special(tl_str name) {
  for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
    if (tl_str_is(name, specials[i].name)) return &specials[i];
  return NULL;
}

typedef struct operand_check {
  const tl_ptx_row *row;
  const tl_str *terms;
  const tl_ptx_statement *statement;
  tl_ptx_problem *problem;
} operand_check;

// What a spec says.
typedef struct spec {
  bool is_written, is_relaxed, is_constant, is_optional;
  char shape;  // 0: a value; 'V', '{', 'M', '[', 't', 'L', 'F', '('
  tl_ptx_type type, second;
} spec;

static bool __attribute__((format(printf, 3, 4)))
refuse(const operand_check *c, const tl_ptx_operand *operand, const char *format, ...) {
  if (c->problem->text[0]) return false;  // the first row that nearly fits says it
  va_list args;
  va_start(args, format);
  vsnprintf(c->problem->text, sizeof c->problem->text, format, args);
  va_end(args);
  c->problem->loc = operand->loc;
  return false;
}

// ---- specs

static tl_ptx_type parse_type(const operand_check *c, tl_str text) {
  bool is_wide = text.len == 2 && text.data[0] == 'w';
  if (is_wide) text = tl_str_sub(text, 1, 1);
  tl_ptx_type type = text.len == 1 && text.data[0] >= '0' && text.data[0] <= '9'
                         ? tl_ptx_type_parse(c->terms[text.data[0] - '0'])
                         : tl_ptx_type_parse(text);
  return is_wide ? tl_ptx_type_wide(type) : type;
}

static spec parse_spec(const operand_check *c, tl_str text) {
  spec s = {0};
  if (text.data[text.len - 1] == '?') {
    s.is_optional = true;
    text.len--;
  }
  if (text.data[0] == '=') {
    s.is_written = true;
    text = tl_str_sub(text, 1, text.len);
  }
  if (text.data[0] == '~') {
    s.is_relaxed = true;
    text = tl_str_sub(text, 1, text.len);
  }
  if (strchr("V{M[LF(", text.data[0])) {
    s.shape = text.data[0];
    s.is_relaxed = s.shape == 'V';
    text = tl_str_sub(text, 1, text.len);
    if (s.shape == '[' && text.len) s.shape = 't';
    if (s.shape == '[' || s.shape == 't' || !text.len) return s;
  }
  if (text.data[text.len - 1] == '#') {
    s.is_constant = true;
    text.len--;
  }
  size_t bar = tl_str_find(text, '|');
  if (bar != SIZE_MAX) s.second = parse_type(c, tl_str_sub(text, bar + 1, text.len));
  s.type = parse_type(c, tl_str_sub(text, 0, bar));
  return s;
}

// ---- values

static bool is_integer(tl_ptx_class class) {
  return class == TL_PTX_CLASS_UNSIGNED || class == TL_PTX_CLASS_SIGNED;
}

static bool register_fits(tl_ptx_type has, tl_ptx_type wanted, bool is_relaxed) {
  tl_ptx_class a = tl_ptx_type_class(has), b = tl_ptx_type_class(wanted);
  unsigned have = tl_ptx_type_bits(has), want = tl_ptx_type_bits(wanted);
  if (has == wanted) return true;
  if (a == TL_PTX_CLASS_PRED || b == TL_PTX_CLASS_PRED) return false;
  if (is_relaxed ? have < want : have != want) return false;
  if (a == TL_PTX_CLASS_BITS || b == TL_PTX_CLASS_BITS) return true;
  if (b == TL_PTX_CLASS_PACKED) return is_integer(a);
  if (wanted == TL_PTX_TF32 || wanted == TL_PTX_BF16) return have == want && a != TL_PTX_CLASS_PACKED;
  return is_integer(a) && is_integer(b);
}

static bool constant_fits(const operand_check *c, const tl_ptx_operand *operand, tl_ptx_type wanted) {
  tl_ptx_class class = tl_ptx_type_class(wanted);
  bool is_float = operand->kind != TL_PTX_INTEGER;
  if (is_float ? class == TL_PTX_CLASS_FLOAT || class == TL_PTX_CLASS_BITS
               : class != TL_PTX_CLASS_FLOAT || tl_ptx_type_bits(wanted) == 16)
    return true;
  return refuse(
      c, operand,
      is_float ? "a float stands here for a value of type .%s" : "an integer stands here for a value of type .%s",
      tl_ptx_type_name(wanted));
}

static bool special_fits(const operand_check *c, tl_ptx_operand *operand, tl_ptx_type wanted) {
  const tl_ptx_special *special = tl_ptx_find_special(operand->text);
  if (!special)
    return refuse(c, operand, "'%.*s' is neither declared nor a known special register", TL_STR_ARG(operand->text));
  // A 64-bit one may be read as 32 bits (PTX ISA, %clock64: the lower half), and one of 32 as 64.
  if (special->type == TL_PTX_PRED && wanted == TL_PTX_PRED) return true;
  return (special->type != TL_PTX_PRED && tl_ptx_type_bits(wanted) >= 32) ||
         refuse(c, operand, "'%.*s' does not fit into a value of type .%s", TL_STR_ARG(operand->text),
                tl_ptx_type_name(wanted));
}

static bool validate_value(const operand_check *c, tl_ptx_operand *operand, const spec *s, tl_ptx_type type) {
  operand->type = type;
  if (operand->kind == TL_PTX_SINK && s->is_written) return true;
  if (operand->kind == TL_PTX_REGISTER) {
    if (s->is_constant) return refuse(c, operand, "a constant is expected here");
    if (register_fits(operand->symbol->type, type, s->is_relaxed)) return true;
    return refuse(c, operand, "'%.*s' is a register of type .%s; the instruction takes .%s here",
                  TL_STR_ARG(operand->text), tl_ptx_type_name(operand->symbol->type), tl_ptx_type_name(type));
  }
  if (s->is_written) return refuse(c, operand, "a register is expected here");
  switch (operand->kind) {
    case TL_PTX_INTEGER:
    case TL_PTX_FLOAT32:
    case TL_PTX_FLOAT64:
      return constant_fits(c, operand, type);
    case TL_PTX_SPECIAL:
      return special_fits(c, operand, type);
    case TL_PTX_FUNCTION:
    case TL_PTX_VARIABLE:
      if (s->shape == 'M' && tl_ptx_type_bits(type) >= 32) return true;
      return refuse(c, operand, "the address of a variable is taken by mov");
    default:
      return refuse(c, operand, "a value of type .%s is expected here", tl_ptx_type_name(type));
  }
}

// ---- the shapes

static uint32_t vector_length(const operand_check *c) {
  static const char *const names[] = {"v2", "v4", "v8"};
  for (uint32_t i = 0; i < 3; i++)
    if (tl_ptx_has(c->statement, names[i])) return 2u << i;
  return 1;
}

static bool validate_items(const operand_check *c, tl_ptx_operand *operand, const spec *s, tl_ptx_type type) {
  operand->type = s->type;
  for (uint32_t i = 0; i < operand->num_items; i++)
    if (!validate_value(c, &operand->items[i], s, type)) return false;
  return true;
}

// mov packs and unpacks: the parts together have the width of the type.
static bool validate_parts(const operand_check *c, tl_ptx_operand *operand, const spec *s) {
  unsigned bits = operand->num_items ? tl_ptx_type_bits(s->type) / operand->num_items : 0;
  static const tl_ptx_type parts[] = {TL_PTX_B8, TL_PTX_B16, TL_PTX_B32, TL_PTX_B64};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if ((operand->num_items == 2 || operand->num_items == 4) && tl_ptx_type_bits(parts[i]) == bits)
      return validate_items(c, operand, s, parts[i]);
  return refuse(c, operand, "a value of type .%s has no %u parts", tl_ptx_type_name(s->type), operand->num_items);
}

static bool validate_braces(const operand_check *c, tl_ptx_operand *operand, const spec *s) {
  bool is_vector = operand->kind == TL_PTX_VECTOR;
  if (s->shape == 'M') return is_vector ? validate_parts(c, operand, s) : validate_value(c, operand, s, s->type);
  if (s->shape == 'V') {
    uint32_t length = vector_length(c);
    if (length > 1 && (!is_vector || operand->num_items != length))
      return refuse(c, operand, "%u values in braces are expected here", length);
    if (length == 1 && is_vector && operand->num_items != 1) return refuse(c, operand, "one value is expected here");
  }
  return is_vector ? validate_items(c, operand, s, s->type) : validate_value(c, operand, s, s->type);
}

static bool validate_address(const operand_check *c, tl_ptx_operand *operand, const spec *s) {
  if (operand->kind != TL_PTX_ADDRESS) return refuse(c, operand, "an address in brackets is expected here");
  const tl_ptx_symbol *base = operand->symbol;
  if (base && base->space == TL_PTX_SPACE_REG && tl_ptx_type_bits(base->type) < 32)
    return refuse(c, operand, "an address is a register of 32 or 64 bits");
  if (s->shape == '[') return !operand->num_items || refuse(c, operand, "the address has no coordinates here");
  if (!operand->num_items) return refuse(c, operand, "coordinates are expected in the address");
  const spec coordinate = {0};
  for (uint32_t i = 0; i < operand->num_items; i++) {
    tl_ptx_operand *item = &operand->items[i];
    bool ok = item->kind == TL_PTX_VECTOR ? validate_items(c, item, &coordinate, TL_PTX_S32)
                                          : validate_value(c, item, &coordinate, TL_PTX_S32);
    if (!ok) return false;
  }
  return true;
}

static bool validate_pair(const operand_check *c, tl_ptx_operand *operand, const spec *s) {
  if (operand->kind != TL_PTX_PAIR) return refuse(c, operand, "two registers, d|p, are expected here");
  operand->type = s->type;
  return validate_value(c, &operand->items[0], s, s->type) && validate_value(c, &operand->items[1], s, s->second);
}

static bool validate_one(const operand_check *c, tl_ptx_operand *operand, const spec *s) {
  switch (s->shape) {
    case '[':
    case 't':
      return validate_address(c, operand, s);
    case 'L':
      return operand->kind == TL_PTX_LABEL || refuse(c, operand, "a label is expected here");
    case 'F':
      return operand->kind == TL_PTX_FUNCTION || refuse(c, operand, "a function is expected here");
    case '(':
      return operand->kind == TL_PTX_LIST || refuse(c, operand, "a list in parentheses is expected here");
    default:
      break;
  }
  if (!s->type) return refuse(c, operand, "there is no such type here");
  if (s->shape) return validate_braces(c, operand, s);
  if (s->second) return validate_pair(c, operand, s);
  return validate_value(c, operand, s, s->type);
}

// The next spec of a row; empty at the end.
static tl_str take_spec(const char **at) {
  while (**at == ' ') (*at)++;
  const char *start = *at;
  while (**at && **at != ' ') (*at)++;
  return (tl_str){start, (size_t)(*at - start)};
}

static bool count_fits(const operand_check *c) {
  uint32_t required = 0, all = 0;
  const char *at = c->row->operands;
  for (tl_str text = take_spec(&at); text.len; text = take_spec(&at), all++)
    if (text.data[text.len - 1] != '?') required++;
  return c->statement->num_operands >= required && c->statement->num_operands <= all;
}

bool tl_ptx_validate_operands(const tl_ptx_row *row, tl_ptx_statement *statement, const tl_str terms[TL_PTX_MAX_TERMS],
                              tl_ptx_problem *out_problem) {
  operand_check c = {row, terms, statement, out_problem};
  if (!count_fits(&c)) return false;
  const char *at = row->operands;
  for (uint32_t i = 0; i < statement->num_operands; i++) {
    spec s = parse_spec(&c, take_spec(&at));
    if (!validate_one(&c, &statement->operands[i], &s)) return false;
  }
  return true;
}
