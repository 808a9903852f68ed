// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types and attribute values of the IR parser.
#include <string.h>

#include "ir/text/parse_internal.h"

// ---- types

// "128x32", "?x64"; nothing for rank 0.
static bool parse_dims(tl_parser *parser, int64_t *dims, int32_t *out_rank, bool allow_unknown) {
  *out_rank = 0;
  char c = tl_parser_peek(parser);
  if (c != '?' && (c < '0' || c > '9')) return true;
  for (;;) {
    const char *from = parser->at;
    if (*out_rank == TL_MAX_RANK) return tl_parser_error_here(parser, "there are more than %d dims", TL_MAX_RANK);
    if (parser->at < parser->end && *parser->at == '?') {
      parser->at++;
      if (!allow_unknown) return tl_parser_error(parser, from, parser->at, "a tile's dims are known");
      dims[(*out_rank)++] = -1;
    } else {
      int64_t value = 0;
      while (parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9') {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *parser->at - '0', &value)) {
          return tl_parser_error(parser, from, parser->at, "the dim does not fit 64 bits");
        }
        parser->at++;
      }
      if (parser->at == from) return tl_parser_error_here(parser, "expected a dim");
      dims[(*out_rank)++] = value;
    }
    if (parser->at == parser->end || *parser->at != 'x') return true;
    parser->at++;
  }
}

static bool parse_dtype(tl_parser *parser, tl_dtype *out) {
  tl_str word;
  if (!tl_parser_expect_word(parser, &word, "a dtype")) return false;
  *out = tl_dtype_parse(word);
  return *out != TL_DTYPE_NONE ||
         tl_parser_error(parser, word.data, word.data + word.len, "unknown dtype '%.*s'", TL_STR_ARG(word));
}

static const tl_type *parse_buffer_type(tl_parser *parser) {
  tl_str word;
  tl_dtype dtype;
  int64_t dims[TL_MAX_RANK];
  int32_t rank;
  if (!tl_parser_expect(parser, '<', "after 'buffer'") || !tl_parser_expect_word(parser, &word, "a scope")) return NULL;
  int scope = tl_ir_enum_parse(TL_IR_ENUM_SCOPE, word);
  if (scope < 0) {
    tl_parser_error(parser, word.data, word.data + word.len, "unknown scope '%.*s'", TL_STR_ARG(word));
    return NULL;
  }
  if (!parse_dtype(parser, &dtype) || !parse_dims(parser, dims, &rank, true)) return NULL;
  if (!tl_parser_expect(parser, '>', "at the end of the type")) return NULL;
  return tl_type_buffer(parser->module, scope, dtype, dims, rank);
}

// Of a tile, or (is_flight) of what becomes one.
static const tl_type *parse_tile_type(tl_parser *parser, bool is_flight) {
  tl_dtype dtype;
  int64_t dims[TL_MAX_RANK];
  int32_t rank;
  if (!tl_parser_expect(parser, '<', "after the type's name") || !parse_dtype(parser, &dtype)) return NULL;
  if (!parse_dims(parser, dims, &rank, false)) return NULL;
  tl_layout layout;
  bool has_layout = tl_parser_accept(parser, ',');
  if (has_layout) {
    tl_str text;
    if (!tl_parser_expect_hash_text(parser, &text)) return NULL;
    if (!tl_layout_parse(text, &layout)) {
      tl_parser_error(parser, text.data, text.data + text.len, "malformed layout");
      return NULL;
    }
  }
  if (!tl_parser_expect(parser, '>', "at the end of the type")) return NULL;
  const tl_type *tile = tl_type_tile(parser->module, dtype, dims, rank, has_layout ? &layout : NULL);
  return is_flight ? tl_type_flight(parser->module, tile) : tile;
}

const tl_type *tl_parser_type(tl_parser *parser) {
  static const struct {
    const char *name;
    tl_type_kind kind;
  } simple[] = {{"index", TL_TYPE_INDEX},       {"ring", TL_TYPE_RING}, {"slot", TL_TYPE_SLOT},
                {"mbarrier", TL_TYPE_MBARRIER}, {"map", TL_TYPE_MAP},   {"token", TL_TYPE_TOKEN},
                {"none", TL_TYPE_NONE}};
  tl_str word;
  if (!tl_parser_expect_word(parser, &word, "a type")) return NULL;
  for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++) {
    if (tl_str_is(word, simple[i].name)) return tl_type_simple(parser->module, simple[i].kind);
  }
  if (tl_str_is(word, "buffer")) return parse_buffer_type(parser);
  if (tl_str_is(word, "tile") || tl_str_is(word, "flight")) return parse_tile_type(parser, tl_str_is(word, "flight"));
  tl_dtype dtype = tl_dtype_parse(word);
  if (dtype != TL_DTYPE_NONE) return tl_type_scalar(parser->module, dtype);
  tl_parser_error(parser, word.data, word.data + word.len, "unknown type '%.*s'", TL_STR_ARG(word));
  return NULL;
}

// ---- attribute values

static bool parse_ints(tl_parser *parser, const int64_t **out_items, int32_t *out_len) {
  TL_VEC(int64_t) items = {0};
  bool good = tl_parser_expect(parser, '[', "before a list of integers");
  if (good && !tl_parser_accept(parser, ']')) {
    do {
      int64_t item = 0;
      good = tl_parser_expect_int(parser, &item);
      tl_vec_push(&items, item);
    } while (good && tl_parser_accept(parser, ','));
    good = good && tl_parser_expect(parser, ']', "after a list of integers");
  }
  *out_items = (const int64_t *)tl_vec_to_arena(&items, &parser->module->arena);
  *out_len = (int32_t)items.len;
  tl_vec_fini(&items);
  return good;
}

static bool parse_dict_entry(tl_parser *parser, tl_dict_entry *entry) {
  tl_str name, text;
  if (tl_parser_peek(parser) == '"') {
    if (!tl_parser_expect_string(parser, &name)) return false;
  } else if (!tl_parser_expect_word(parser, &name, "a name")) {
    return false;
  }
  entry->name = tl_module_intern(parser->module, name);
  if (!tl_parser_expect(parser, '=', "after the name")) return false;
  char c = tl_parser_peek(parser);
  if (c == '"') {
    entry->kind = TL_ATTRKIND_STR;
    if (!tl_parser_expect_string(parser, &text)) return false;
    entry->s = tl_module_intern(parser->module, text);
    return true;
  }
  entry->kind = c == '[' ? TL_ATTRKIND_INTS : TL_ATTRKIND_INT;
  return c == '[' ? parse_ints(parser, &entry->items, &entry->len) : tl_parser_expect_int(parser, &entry->i);
}

static bool parse_dict(tl_parser *parser, tl_attr *out) {
  TL_VEC(tl_dict_entry) entries = {0};
  bool good = tl_parser_expect(parser, '{', "before the entries");
  if (good && !tl_parser_accept(parser, '}')) {
    do {
      tl_dict_entry entry = {0};
      good = parse_dict_entry(parser, &entry);
      tl_vec_push(&entries, entry);
    } while (good && tl_parser_accept(parser, ','));
    good = good && tl_parser_expect(parser, '}', "after the entries");
  }
  out->v.dict.entries = (const tl_dict_entry *)tl_vec_to_arena(&entries, &parser->module->arena);
  out->v.dict.len = (int32_t)entries.len;
  tl_vec_fini(&entries);
  return good;
}

static bool parse_enum(tl_parser *parser, tl_attr *out) {
  tl_str word;
  if (!tl_parser_expect_word(parser, &word, "a value")) return false;
  out->v.i = tl_ir_enum_parse(tl_attr_key_enum(out->key), word);
  return out->v.i >= 0 || tl_parser_error(parser, word.data, word.data + word.len, "'%.*s' is no value of '%s'",
                                          TL_STR_ARG(word), tl_attr_key_text(out->key));
}

static bool parse_layout(tl_parser *parser, tl_attr *out) {
  tl_str text;
  tl_layout layout;
  if (!tl_parser_expect_hash_text(parser, &text)) return false;
  if (!tl_layout_parse(text, &layout)) {
    return tl_parser_error(parser, text.data, text.data + text.len, "malformed layout");
  }
  out->v.layout = tl_module_layout(parser->module, &layout);
  return true;
}

static bool parse_shared_layout(tl_parser *parser, tl_attr *out) {
  tl_str text;
  tl_shared_layout layout;
  if (!tl_parser_expect_hash_text(parser, &text)) return false;
  if (!tl_shared_layout_parse(text, &layout)) {
    return tl_parser_error(parser, text.data, text.data + text.len, "malformed shared layout");
  }
  out->v.shared = tl_module_shared_layout(parser->module, &layout);
  return true;
}

static bool is_instruction_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
}

static bool parse_instruction(tl_parser *parser, tl_attr *out) {
  tl_parser_skip_space(parser);
  const char *from = parser->at, *to = from;
  while (to < parser->end && is_instruction_char(*to)) to++;
  tl_instruction inst;
  if (to == from || !tl_instruction_parse((tl_str){from, (size_t)(to - from)}, &inst))
    return tl_parser_error(parser, from, to == from ? from + 1 : to, "expected a matrix instruction");
  parser->at = to;
  out->v.inst = tl_module_instruction(parser->module, &inst);
  return true;
}

static bool parse_value(tl_parser *parser, tl_attr *out) {
  int64_t integer = 0;
  double real = 0;
  tl_attr_kind kind = tl_attr_key_kind(out->key);
  switch (kind) {
    case TL_ATTRKIND_UNIT:
      return true;
    case TL_ATTRKIND_INT:
      return tl_parser_expect_int(parser, &out->v.i);
    case TL_ATTRKIND_VALUE:
      if (!tl_parser_expect_number(parser, &integer, &real, &out->is_float)) return false;
      if (out->is_float) {
        out->v.f = real;
      } else {
        out->v.i = integer;
      }
      return true;
    case TL_ATTRKIND_STR: {
      tl_str text;
      if (!tl_parser_expect_string(parser, &text)) return false;
      out->v.s = tl_module_intern(parser->module, text);
      return true;
    }
    case TL_ATTRKIND_INTS:
      return parse_ints(parser, &out->v.ints.items, &out->v.ints.len);
    case TL_ATTRKIND_LAYOUT:
      return parse_layout(parser, out);
    case TL_ATTRKIND_SWIZZLE:
      return parse_shared_layout(parser, out);
    case TL_ATTRKIND_INSTRUCTION:
      return parse_instruction(parser, out);
    case TL_ATTRKIND_DICT:
      return parse_dict(parser, out);
    case TL_ATTRKIND_ENUM:
      return parse_enum(parser, out);
  }
  return false;
}

bool tl_parser_attr(tl_parser *parser, tl_attr *out) {
  tl_str word;
  if (!tl_parser_expect_word(parser, &word, "an attribute")) return false;
  memset(out, 0, sizeof(*out));
  int key = 0;
  while (key < TL_ATTR_COUNT && !tl_str_is(word, tl_attr_key_text((tl_attr_key)key))) key++;
  if (key == TL_ATTR_COUNT) {
    return tl_parser_error(parser, word.data, word.data + word.len, "unknown attribute '%.*s'", TL_STR_ARG(word));
  }
  out->key = (tl_attr_key)key;
  if (tl_attr_key_kind(out->key) == TL_ATTRKIND_UNIT) {
    out->v.i = 1;
    return true;
  }
  return tl_parser_expect(parser, '=', "after the attribute's name") && parse_value(parser, out);
}
