// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The language as a JSON Schema (draft 7, what editors of YAML know), from the table of its keys. YAML's own typing
// plays no part in specs, so wherever an expression may stand a number and a truth value may, too. What stands inside
// of an expression only the compiler knows.
#include <string.h>

#include "frontend/spec/schema.h"

typedef enum value_form {
  VALUE_TEXT,
  VALUE_EXPR,
  VALUE_OPTIONAL,
  VALUE_NOTHING,
  VALUE_TARGET,
  VALUE_CHOICE,
  VALUE_EXPRS,
  VALUE_FILES,
  VALUE_NAMES,
  VALUE_VALUES,
  VALUE_BODY,
  VALUE_BODIES,
  VALUE_REFERENCE,
  VALUE_CASES,
  VALUE_SECTION,
  VALUE_SECTIONS
} value_form;

// A reference to the definition of what stands there.
static const char *const form_definitions[] = {
    [VALUE_TEXT] = "scalar",   [VALUE_EXPR] = "scalar",   [VALUE_OPTIONAL] = "optional",  [VALUE_NOTHING] = "nothing",
    [VALUE_EXPRS] = "scalars", [VALUE_FILES] = "scalars", [VALUE_NAMES] = "names",        [VALUE_VALUES] = "values",
    [VALUE_BODY] = "body",     [VALUE_BODIES] = "bodies", [VALUE_REFERENCE] = "formulas", [VALUE_CASES] = "cases",
};

enum { TL_SCHEMA_NONE = -1 };

typedef struct json_key {
  tl_schema_place place;
  const char *key;
  tl_schema_state state;
  value_form value;
  int section;  // a tl_schema_place, or NONE
  const char *doc;
} json_key;

static const json_key keys[] = {
#define TL_SCHEMA_KEY(place, key, state, value, section, doc) \
  {TL_SCHEMA_##place, key, TL_SCHEMA_##state, VALUE_##value, TL_SCHEMA_##section, doc},
#include "frontend/spec/schema.def"
};

typedef struct json_stmt {
  const char *key;
  tl_schema_state state;
  value_form value;
  const char *form, *doc;
} json_stmt;

static const json_stmt statements[] = {
#define TL_SCHEMA_STMT(key, kind, state, value, form, doc) {key, TL_SCHEMA_##state, VALUE_##value, form, doc},
#include "frontend/spec/schema.def"
};

typedef struct json_option {
  const char *statement, *option;
  tl_schema_form form;
  bool required;
  tl_schema_state state;
  const char *choices, *doc;
} json_option;

enum { OPTIONAL, REQUIRED };

static const json_option options[] = {
#define TL_SCHEMA_OPTION(statement, option, form, need, state, choices, doc) \
  {statement, option, TL_SCHEMA_FORM_##form, need == REQUIRED, TL_SCHEMA_##state, choices, doc},
#include "frontend/spec/schema.def"
};

enum {
  NUM_KEYS = sizeof keys / sizeof keys[0],
  NUM_STATEMENTS = sizeof statements / sizeof statements[0],
  NUM_OPTIONS = sizeof options / sizeof options[0]
};

static const char *const place_names[] = {
    [TL_SCHEMA_KERNEL] = "kernel",       [TL_SCHEMA_CHAIN] = "chain",
    [TL_SCHEMA_RASTERIZE] = "rasterize", [TL_SCHEMA_CHECK] = "check",
    [TL_SCHEMA_TOLERANCE] = "tolerance", [TL_SCHEMA_OUTPUT_TOLERANCE] = "output_tolerance",
    [TL_SCHEMA_RECUR] = "recur",         [TL_SCHEMA_BENCH] = "bench",
    [TL_SCHEMA_CASE] = "case",           [TL_SCHEMA_TUNE] = "tune"};

static void print_ref(const char *name, tl_strbuf *out) {
  tl_strbuf_appendf(out, "{\"$ref\": \"#/definitions/%s\"}", name);
}

// A number, or a word that YAML takes for a truth value, may come as what it is taken for.
static void print_word(tl_str word, bool *first, tl_strbuf *out) {
  static const struct {
    const char *word, *other;
  } typed[] = {{"on", "true"}, {"off", "false"}, {"true", "true"}, {"false", "false"}};
  tl_strbuf_append_c(out, *first ? "" : ", ");
  tl_strbuf_append_json(out, word);
  *first = false;
  bool is_number = word.len > 0;
  for (size_t i = 0; i < word.len; i++) is_number = is_number && word.data[i] >= '0' && word.data[i] <= '9';
  if (is_number) tl_strbuf_appendf(out, ", %.*s", TL_STR_ARG(word));
  for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++)
    if (tl_str_is(word, typed[i].word)) tl_strbuf_appendf(out, ", %s", typed[i].other);
}

// `choices` up to a `|`, behind which those stand that are refused.
static void print_choices(const char *choices, tl_strbuf *out) {
  bool first = true;
  tl_strbuf_append_c(out, "{\"enum\": [");
  for (const char *c = choices; *c && *c != '|';) {
    size_t len = strcspn(c, " |");
    print_word((tl_str){c, len}, &first, out);
    c += len + strspn(c + len, " ");
  }
  tl_strbuf_append_c(out, "]}");
}

static void print_targets(tl_strbuf *out) {
  static const char *const names[] = {
#define TL_TARGET(id, name, ...) name,
#include "ir/target.def"
  };
  bool first = true;
  tl_strbuf_append_c(out, "{\"enum\": [");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) print_word(tl_str_from(names[i]), &first, out);
  tl_strbuf_append_c(out, "]}");
}

static void print_key_value(const json_key *key, tl_strbuf *out) {
  if (key->value == VALUE_CHOICE) {
    print_choices(tl_schema_key_choices(key->place, tl_str_from(key->key)), out);
  } else if (key->value == VALUE_TARGET) {
    print_targets(out);
  } else if (key->value == VALUE_SECTION) {
    print_ref(place_names[key->section], out);
  } else if (key->value == VALUE_SECTIONS) {
    tl_strbuf_append_c(out, "{\"type\": \"object\", \"additionalProperties\": ");
    print_ref(place_names[key->section], out);
    tl_strbuf_append_char(out, '}');
  } else {
    print_ref(form_definitions[key->value], out);
  }
}

// "key": what it takes, with what editors show. A `$ref` alone hides what stands beside it in draft 7.
static void begin_property(const char *key, bool *first, tl_strbuf *out) {
  tl_strbuf_append_c(out, *first ? "\n    " : ",\n    ");
  *first = false;
  tl_strbuf_append_json_c(out, key);
  tl_strbuf_append_c(out, ": {\"allOf\": [");
}

static void end_property(const char *doc, tl_strbuf *out) {
  tl_strbuf_append_c(out, "], \"description\": ");
  tl_strbuf_append_json_c(out, doc);
  tl_strbuf_append_char(out, '}');
}

static void print_section(tl_schema_place place, tl_strbuf *out) {
  bool first = true;
  tl_strbuf_appendf(out, ",\n  \"%s\": {\"type\": \"object\", \"properties\": {", place_names[place]);
  for (size_t i = 0; i < NUM_KEYS; i++) {
    if (keys[i].place != place || keys[i].state != TL_SCHEMA_NOW) continue;
    begin_property(keys[i].key, &first, out);
    print_key_value(&keys[i], out);
    end_property(keys[i].doc, out);
  }
  tl_strbuf_append_c(out, "}, \"additionalProperties\": ");
  if (place == TL_SCHEMA_CASE)
    print_ref("scalar", out);
  else if (place == TL_SCHEMA_TUNE)
    tl_strbuf_append_c(out, "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/definitions/scalar\"}}");
  else
    tl_strbuf_append_c(out, "false");
  if (place == TL_SCHEMA_KERNEL || place == TL_SCHEMA_CHAIN)
    tl_strbuf_appendf(out, ", \"required\": [\"%s\"]", place_names[place]);
  if (place == TL_SCHEMA_RECUR) tl_strbuf_append_c(out, ", \"required\": [\"recur\", \"do\"]");
  tl_strbuf_append_char(out, '}');
}

static void print_option_value(const json_option *option, tl_strbuf *out) {
  if (option->form == TL_SCHEMA_FORM_CHOICE)
    print_choices(option->choices, out);
  else
    print_ref(option->form == TL_SCHEMA_FORM_BODY ? "body" : "scalar", out);
}

static void print_statement(const json_stmt *stmt, tl_strbuf *out) {
  bool first = true;
  tl_strbuf doc = {0}, required = {0};
  tl_strbuf_appendf(&doc, "%s", stmt->doc);
  // The form holds the quotes of messages where a statement has parts of its own.
  if (!strchr(stmt->form, '`')) tl_strbuf_appendf(&doc, " `%s`", stmt->form);
  tl_strbuf_appendf(out, ",\n  \"stmt_%s\": {\"type\": \"object\", \"properties\": {", stmt->key);
  begin_property(stmt->key, &first, out);
  print_ref(form_definitions[stmt->value], out);
  end_property(tl_strbuf_c(&doc), out);
  for (size_t i = 0; i < NUM_OPTIONS; i++) {
    if (strcmp(options[i].statement, stmt->key) != 0 || options[i].state != TL_SCHEMA_NOW) continue;
    begin_property(options[i].option, &first, out);
    print_option_value(&options[i], out);
    end_property(options[i].doc, out);
    if (options[i].required) tl_strbuf_appendf(&required, ", \"%s\"", options[i].option);
  }
  tl_strbuf_appendf(out, "}, \"additionalProperties\": false, \"required\": [\"%s\"%s]}", stmt->key,
                    tl_strbuf_c(&required));
  tl_strbuf_fini(&doc);
  tl_strbuf_fini(&required);
}

// A body, and what stands in one: an assignment or a statement.
static void print_bodies(tl_strbuf *out) {
  tl_strbuf_append_c(out, ",\n  \"statement\": {\"anyOf\": [{\"$ref\": \"#/definitions/scalar\"}");
  for (size_t i = 0; i < NUM_STATEMENTS; i++)
    if (statements[i].state == TL_SCHEMA_NOW)
      tl_strbuf_appendf(out, ", {\"$ref\": \"#/definitions/stmt_%s\"}", statements[i].key);
  tl_strbuf_append_c(out,
                     "]},\n  \"body\": {\"anyOf\": [{\"type\": \"null\"}, {\"$ref\": \"#/definitions/statement\"}, "
                     "{\"type\": \"array\", \"items\": {\"$ref\": \"#/definitions/statement\"}}]}");
  for (size_t i = 0; i < NUM_STATEMENTS; i++)
    if (statements[i].state == TL_SCHEMA_NOW) print_statement(&statements[i], out);
}

static const char fixed_definitions[] =
    "  \"scalar\": {\"type\": [\"string\", \"number\", \"boolean\"]},\n"
    "  \"optional\": {\"type\": [\"string\", \"number\", \"boolean\", \"null\"]},\n"
    "  \"nothing\": {\"type\": \"null\"},\n"
    "  \"scalars\": {\"anyOf\": [{\"$ref\": \"#/definitions/optional\"}, {\"type\": \"array\", \"items\": {\"$ref\": "
    "\"#/definitions/scalar\"}}]},\n"
    "  \"names\": {\"type\": [\"object\", \"null\"], \"additionalProperties\": {\"$ref\": \"#/definitions/scalar\"}},\n"
    "  \"list\": {\"type\": \"array\", \"items\": {\"anyOf\": [{\"$ref\": \"#/definitions/scalar\"}, {\"$ref\": "
    "\"#/definitions/list\"}]}},\n"
    "  \"values\": {\"type\": [\"object\", \"null\"], \"additionalProperties\": {\"anyOf\": [{\"$ref\": "
    "\"#/definitions/scalar\"}, {\"$ref\": \"#/definitions/list\"}]}},\n"
    "  \"bodies\": {\"type\": [\"object\", \"null\"], \"additionalProperties\": {\"$ref\": \"#/definitions/body\"}},\n"
    "  \"formula\": {\"anyOf\": [{\"$ref\": \"#/definitions/scalar\"}, {\"$ref\": \"#/definitions/recur\"}]},\n"
    "  \"formulas\": {\"anyOf\": [{\"$ref\": \"#/definitions/formula\"}, {\"type\": \"array\", \"items\": {\"$ref\": "
    "\"#/definitions/formula\"}}]},\n"
    "  \"cases\": {\"type\": [\"array\", \"null\"], \"items\": {\"$ref\": \"#/definitions/case\"}},\n"
    "  \"macros\": {\"type\": \"object\", \"properties\": {\"doc\": {\"$ref\": \"#/definitions/optional\"}, "
    "\"macros\": {\"$ref\": \"#/definitions/bodies\"}, \"include\": {\"$ref\": \"#/definitions/scalars\"}}, "
    "\"additionalProperties\": false, \"anyOf\": [{\"required\": [\"macros\"]}, {\"required\": [\"include\"]}]}";

void tl_schema_print_json(tl_strbuf *out) {
  tl_strbuf_append_c(out,
                     "{\n\"$schema\": \"http://json-schema.org/draft-07/schema#\",\n"
                     "\"title\": \"tl-llc tile kernels\",\n\"anyOf\": [{\"$ref\": \"#/definitions/kernel\"}, "
                     "{\"$ref\": \"#/definitions/chain\"}, {\"$ref\": \"#/definitions/macros\"}],\n"
                     "\"definitions\": {\n");
  tl_strbuf_append_c(out, fixed_definitions);
  for (size_t i = 0; i < sizeof place_names / sizeof place_names[0]; i++) print_section((tl_schema_place)i, out);
  print_bodies(out);
  tl_strbuf_append_c(out, "\n}\n}\n");
}
