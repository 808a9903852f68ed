// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads IR text. After an error the rest of the op (with its regions) is skipped and its results count as known, so
// that one mistake is reported once and several in one run.
#include "ir/target.h"
#include "ir/text/parse_internal.h"
#include "ir/text/value_names.h"

// Stands for the results of ops that could not be read.
static tl_value poison;

// ---- names

static void define_name(tl_parser *parser, tl_str name, tl_value *value) {
  tl_strmap_put(&parser->names, name, value);
  tl_vec_push(&parser->scope, name);
}

static bool validate_free_name(tl_parser *parser, tl_str name) {
  if (tl_strmap_get(&parser->names, name) == NULL) return true;
  return tl_parser_error(parser, name.data - 1, name.data + name.len, "%%%.*s is already defined", TL_STR_ARG(name));
}

static void leave_scope(tl_parser *parser, size_t len) {
  while (parser->scope.len > len) tl_strmap_put(&parser->names, tl_vec_pop(&parser->scope), NULL);
}

static bool parse_value_use(tl_parser *parser, tl_value **out) {
  tl_str name;
  if (!tl_parser_expect_name(parser, &name)) return false;
  *out = tl_strmap_get(&parser->names, name);
  if (*out == &poison) {
    // The mistake was reported where it was made.
    parser->failed = true;
    return false;
  }
  return *out != NULL ||
         tl_parser_error(parser, name.data - 1, name.data + name.len, "unknown value %%%.*s", TL_STR_ARG(name));
}

// The name as a hint, unless the printer would have given it anyway.
static void name_result(tl_parser *parser, tl_value *value, tl_str name) {
  bool only_digits = true;
  for (size_t i = 0; i < name.len; i++) only_digits = only_digits && name.data[i] >= '0' && name.data[i] <= '9';
  if (only_digits) return;
  tl_strbuf usual;
  tl_strbuf_init(&usual);
  bool is_usual = value->def && tl_const_default_name(value->def, &usual) && name.len >= usual.len &&
                  tl_str_equal(tl_str_sub(name, 0, usual.len), tl_strbuf_view(&usual));
  if (is_usual && name.len > usual.len) {
    is_usual = name.data[usual.len] == '_' && name.len > usual.len + 1;
    for (size_t i = usual.len + 1; i < name.len; i++) is_usual = is_usual && name.data[i] >= '0' && name.data[i] <= '9';
  }
  if (!is_usual) value->name = tl_module_intern(parser->module, name);
  tl_strbuf_fini(&usual);
}

// ---- parts of an op

typedef TL_VEC(tl_value *) value_list;
typedef struct op_parts {
  tl_opcode code;
  const char *start;
  TL_VEC(tl_str) results;
  value_list *groups;  // one per group. Owned.
  int num_groups;
  TL_VEC(tl_attr) attrs;
  TL_VEC(const tl_type *) types;
} op_parts;

static void op_parts_fini(op_parts *parts) {
  for (int g = 0; g < parts->num_groups; g++) tl_vec_fini(&parts->groups[g]);
  free(parts->groups);
  tl_vec_fini(&parts->results);
  tl_vec_fini(&parts->attrs);
  tl_vec_fini(&parts->types);
}

static bool parse_results(tl_parser *parser, op_parts *parts) {
  if (tl_parser_peek(parser) != '%') return true;
  do {
    tl_str name;
    if (!tl_parser_expect_name(parser, &name)) return false;
    tl_vec_push(&parts->results, name);
    if (!validate_free_name(parser, name)) return false;
    for (size_t i = 0; i + 1 < parts->results.len; i++) {
      if (tl_str_equal(parts->results.items[i], name)) {
        return tl_parser_error(parser, name.data - 1, name.data + name.len, "%%%.*s is already defined",
                               TL_STR_ARG(name));
      }
    }
  } while (tl_parser_accept(parser, ','));
  return tl_parser_expect(parser, '=', "after the results");
}

static bool parse_use_list(tl_parser *parser, value_list *list) {
  do {
    tl_value *value;
    if (!parse_value_use(parser, &value)) return false;
    tl_vec_push(list, value);
  } while (tl_parser_accept(parser, ','));
  return true;
}

// "%a, %b": one value a group, or all of the only group. They start on the op's line: a '%' on the next one is a
// result.
static bool parse_bare_operands(tl_parser *parser, op_parts *parts) {
  while (parser->at < parser->end && (*parser->at == ' ' || *parser->at == '\t')) parser->at++;
  if (parts->num_groups == 0 || parser->at == parser->end || *parser->at != '%') return true;
  if (parts->num_groups == 1) return parse_use_list(parser, &parts->groups[0]);
  const tl_op_info *info = tl_op_info_of(parts->code);
  for (int g = 0; g < parts->num_groups; g++) {
    if (info->groups[g].count == TL_COUNT_OPT && (parser->at == parser->end || *parser->at != ',')) return true;
    if (g > 0 && !tl_parser_expect(parser, ',', "between operands")) return false;
    tl_value *value;
    if (!parse_value_use(parser, &value)) return false;
    tl_vec_push(&parts->groups[g], value);
  }
  return true;
}

// "src(%a) src_offsets(%i, %j)"
static bool parse_named_operands(tl_parser *parser, op_parts *parts) {
  const tl_op_info *info = tl_op_info_of(parts->code);
  for (;;) {
    tl_str word = tl_parser_peek_word(parser);
    const char *after = word.data + word.len;
    if (word.len == 0 || after == parser->end || *after != '(' || tl_str_is(word, "do") || tl_str_is(word, "loc"))
      return true;
    int g = 0;
    while (g < info->num_groups && !tl_str_is(word, info->groups[g].name)) g++;
    if (g == info->num_groups) {
      return tl_parser_error_here(parser, "'%s' has no operands '%.*s'", info->name, TL_STR_ARG(word));
    }
    if (parts->groups[g].len) return tl_parser_error_here(parser, "operands '%.*s' are given twice", TL_STR_ARG(word));
    parser->at = after + 1;
    if (tl_parser_accept(parser, ')')) continue;
    if (!parse_use_list(parser, &parts->groups[g]) || !tl_parser_expect(parser, ')', "after the operands"))
      return false;
  }
}

static bool parse_attrs(tl_parser *parser, op_parts *parts) {
  if (!tl_parser_accept(parser, '{') || tl_parser_accept(parser, '}')) return true;
  do {
    tl_attr attr;
    tl_parser_skip_space(parser);
    const char *from = parser->at;
    if (!tl_parser_attr(parser, &attr)) return false;
    for (size_t i = 0; i < parts->attrs.len; i++) {
      if (parts->attrs.items[i].key == attr.key) {
        return tl_parser_error(parser, from, parser->at, "attribute '%s' is given twice", tl_attr_key_text(attr.key));
      }
    }
    tl_vec_push(&parts->attrs, attr);
  } while (tl_parser_accept(parser, ','));
  return tl_parser_expect(parser, '}', "after the attributes");
}

static bool parse_types(tl_parser *parser, op_parts *parts) {
  if (tl_parser_accept(parser, ':')) {
    do {
      const tl_type *type = tl_parser_type(parser);
      if (type == NULL) return false;
      tl_vec_push(&parts->types, type);
    } while (tl_parser_accept(parser, ','));
  }
  if (parts->types.len == parts->results.len) return true;
  return tl_parser_error(parser, parts->start, parser->at, "%zu results, but %zu types", parts->results.len,
                         parts->types.len);
}

static bool parse_loc(tl_parser *parser, tl_loc *loc) {
  tl_str word = tl_parser_peek_word(parser);
  if (!tl_str_is(word, "loc")) return true;
  parser->at += word.len;
  int64_t source, offset, length;
  if (!tl_parser_expect(parser, '(', "after 'loc'") || !tl_parser_expect_int(parser, &source) ||
      !tl_parser_expect(parser, ':', "in the place")) {
    return false;
  }
  // The '+' would be read as part of a number.
  tl_parser_skip_space(parser);
  offset = 0;
  while (parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9' && offset <= UINT32_MAX) {
    offset = offset * 10 + (*parser->at++ - '0');
  }
  if (!tl_parser_expect(parser, '+', "in the place") || !tl_parser_expect_int(parser, &length)) return false;
  if (source < 0 || source > UINT32_MAX || offset > UINT32_MAX || length < 0 || length > UINT32_MAX) {
    return tl_parser_error(parser, word.data, parser->at, "the place is out of range");
  }
  *loc = (tl_loc){(uint32_t)source, (uint32_t)offset, (uint32_t)length};
  return tl_parser_expect(parser, ')', "after the place");
}

// ---- ops

static void parse_block(tl_parser *parser, tl_block *block);

// Skips a broken op from `from` on: the rest of that line, and the regions that open there.
static void recover(tl_parser *parser, const char *from) {
  int depth = 0;
  bool in_string = false;
  for (parser->at = from; parser->at < parser->end; parser->at++) {
    char c = *parser->at;
    if (in_string) {
      if (c == '\\' && parser->at + 1 < parser->end) parser->at++;
      if (c == '"' || c == '\n') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '/' && parser->at + 1 < parser->end && parser->at[1] == '/') {
      while (parser->at + 1 < parser->end && parser->at[1] != '\n') parser->at++;
    } else if (c == '{') {
      depth++;
    } else if (c == '}' && depth > 0) {
      depth--;
    }
    if (c == '\n' && depth == 0) return;
  }
}

static bool parse_region(tl_parser *parser, tl_op *op, uint32_t index) {
  tl_block *block = op->regions[index];
  size_t scope = parser->scope.len;
  bool good = true;
  if (tl_parser_accept(parser, '(')) {
    do {
      tl_str name = {0};
      const tl_type *type = NULL;
      good = tl_parser_expect_name(parser, &name) && validate_free_name(parser, name) &&
             tl_parser_expect(parser, ':', "after the argument") && (type = tl_parser_type(parser)) != NULL;
      if (!good) break;
      tl_value *arg = tl_block_add_arg(parser->module, block, type, NULL);
      name_result(parser, arg, name);
      define_name(parser, name, arg);
    } while (tl_parser_accept(parser, ','));
    good = good && tl_parser_expect(parser, ')', "after the arguments");
  }
  good = good && tl_parser_expect(parser, '{', "before the region");
  if (good) {
    if (parser->depth == TL_PARSE_MAX_DEPTH) {
      good = tl_parser_error_here(parser, "regions are nested too deeply");
    } else {
      parser->depth++;
      parse_block(parser, block);
      parser->depth--;
      good = tl_parser_expect(parser, '}', "at the end of the region");
    }
  }
  leave_scope(parser, scope);
  return good;
}

static bool parse_op_head(tl_parser *parser, op_parts *parts) {
  tl_str word;
  if (!parse_results(parser, parts) || !tl_parser_expect_word(parser, &word, "an op")) return false;
  parts->code = tl_opcode_parse(word);
  if (parts->code == TL_OPCODE_COUNT) {
    return tl_parser_error(parser, word.data, word.data + word.len, "unknown op '%.*s'", TL_STR_ARG(word));
  }
  parts->num_groups = tl_op_info_of(parts->code)->num_groups;
  parts->groups = tl_xcalloc((size_t)parts->num_groups + 1, sizeof(*parts->groups));
  bool good = tl_op_prints_bare(parts->code) ? parse_bare_operands(parser, parts) : parse_named_operands(parser, parts);
  return good && parse_attrs(parser, parts) && parse_types(parser, parts);
}

static tl_op *build_parts(tl_parser *parser, tl_block *block, const op_parts *parts) {
  tl_builder builder;
  tl_builder_at_end(&builder, parser->module, block);
  builder.loc = tl_parser_loc(parser, parts->start, parser->at);
  TL_VEC(tl_group) groups = {0};
  for (int g = 0; g < parts->num_groups; g++) {
    tl_vec_push(&groups, (tl_group){parts->groups[g].items, (uint32_t)parts->groups[g].len});
  }
  tl_op *op = tl_build(&builder, parts->code, groups.items, parts->types.items, (uint32_t)parts->types.len);
  for (size_t i = 0; i < parts->attrs.len; i++) tl_op_set_attr(parser->module, op, &parts->attrs.items[i]);
  for (uint32_t i = 0; i < op->num_results; i++) name_result(parser, &op->results[i], parts->results.items[i]);
  tl_vec_fini(&groups);
  return op;
}

static void parse_op(tl_parser *parser, tl_block *block) {
  op_parts parts = {.code = TL_OPCODE_COUNT};
  tl_parser_skip_space(parser);
  parts.start = parser->at;
  parser->failed = false;
  tl_op *op = parse_op_head(parser, &parts) ? build_parts(parser, block, &parts) : NULL;
  if (op) {
    bool good = true;
    uint32_t regions = 0;
    while (good && tl_parser_accept_word(parser, "do")) {
      if (regions == op->num_regions) {
        good = tl_parser_error_here(parser, "'%s' has no more than %u regions", tl_op_info_of(op->code)->name, regions);
      } else {
        good = parse_region(parser, op, regions++);
      }
    }
    // An `if` may leave out the second.
    if (good && op->num_regions && regions == 0) good = tl_parser_error_here(parser, "expected 'do' and a region");
    if (good) good = parse_loc(parser, &op->loc);
    if (!good) recover(parser, parser->at);
    for (uint32_t i = 0; i < op->num_results; i++) define_name(parser, parts.results.items[i], &op->results[i]);
  } else {
    recover(parser, parts.start);
    for (size_t i = 0; i < parts.results.len; i++) {
      if (tl_strmap_get(&parser->names, parts.results.items[i]) == NULL) {
        define_name(parser, parts.results.items[i], &poison);
      }
    }
  }
  parser->failed = false;
  op_parts_fini(&parts);
}

static void parse_block(tl_parser *parser, tl_block *block) {
  while (!tl_parser_at_end(parser) && tl_parser_peek(parser) != '}') {
    const char *before = parser->at;
    parse_op(parser, block);
    // Never stand still, whatever the text.
    if (parser->at == before) parser->at++;
  }
}

static void parse_header(tl_parser *parser) {
  tl_str word;
  parser->failed = false;
  if (!tl_parser_accept_word(parser, "module")) {
    tl_parser_error_here(parser, "expected 'module'");
    return;
  }
  if (!tl_parser_expect_word(parser, &word, "'tile' or 'scheduled'")) return;
  if (tl_str_is(word, "scheduled")) {
    parser->module->level = 1;
  } else if (!tl_str_is(word, "tile")) {
    tl_parser_error(parser, word.data, word.data + word.len, "expected 'tile' or 'scheduled'");
    return;
  }
  // A target, where the next word is no op.
  word = tl_parser_peek_word(parser);
  parser->module->target = tl_target_find(word);
  if (parser->module->target) {
    parser->at += word.len;
  } else if (tl_str_starts_with(word, "sm_")) {
    tl_parser_error_here(parser, "unknown target '%.*s'", TL_STR_ARG(word));
    parser->at += word.len;
  }
}

tl_module *tl_module_parse(const tl_sources *sources, uint32_t source, tl_diags *diags) {
  const tl_source *text = tl_sources_get(sources, source);
  if (text == NULL) return NULL;
  tl_parser parser = {.diags = diags, .source = source, .module = tl_module_create()};
  // Never NULL, so that an empty source needs no special case.
  parser.start = text->text.len ? text->text.data : "";
  parser.at = parser.start;
  parser.end = parser.start + text->text.len;
  tl_arena_init(&parser.scratch);
  tl_strmap_init(&parser.names, &parser.scratch);
  parse_header(&parser);
  parse_block(&parser, parser.module->body);
  while (!tl_parser_at_end(&parser)) {
    parser.failed = false;
    tl_parser_error_here(&parser, "'}' without a region");
    parser.at++;
    parse_block(&parser, parser.module->body);
  }
  tl_strmap_fini(&parser.names);
  tl_vec_fini(&parser.scope);
  tl_arena_fini(&parser.scratch);
  if (!parser.any_error) return parser.module;
  tl_module_destroy(parser.module);
  return NULL;
}
