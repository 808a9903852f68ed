// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Look-up in the table of the language's keys (schema.def).
#ifndef TL_FRONTEND_SCHEMA_H
#define TL_FRONTEND_SCHEMA_H

#include "frontend/spec/spec.h"

typedef enum tl_schema_state { TL_SCHEMA_NOW, TL_SCHEMA_LATER } tl_schema_state;

typedef enum tl_schema_place {
  TL_SCHEMA_KERNEL,
  TL_SCHEMA_CHAIN,
  TL_SCHEMA_RASTERIZE,
  TL_SCHEMA_CHECK,
  TL_SCHEMA_TOLERANCE,
  TL_SCHEMA_OUTPUT_TOLERANCE,
  TL_SCHEMA_RECUR,
  TL_SCHEMA_BENCH,
  TL_SCHEMA_CASE,
  TL_SCHEMA_TUNE
} tl_schema_place;

typedef struct tl_schema_key {
  tl_schema_place place;
  const char *key;
  tl_schema_state state;
} tl_schema_key;

typedef struct tl_schema_stmt {
  const char *key;
  tl_stmt_kind kind;  // meaningless while LATER
  tl_schema_state state;
  const char *form;
} tl_schema_stmt;

typedef enum tl_schema_form {
  TL_SCHEMA_FORM_EXPR,
  TL_SCHEMA_FORM_TEXT,
  TL_SCHEMA_FORM_CHOICE,
  TL_SCHEMA_FORM_TYPE,
  TL_SCHEMA_FORM_BODY
} tl_schema_form;

typedef struct tl_schema_option {
  const char *statement;
  const char *option;
  tl_schema_form form;
  bool required;
  tl_schema_state state;
  const char *choices;  // CHOICE: separated by spaces; behind a `|` stand those that are refused by name
} tl_schema_option;

// What `-D`, cases, `tune` and steps of chains set besides params.
typedef struct tl_schema_setting {
  const char *name;
  tl_schema_state state;
} tl_schema_setting;

const tl_schema_setting *tl_schema_find_setting(tl_str name);
// The names of those that are compiled, as candidates of a suggestion; how many they are, at most
// TL_SCHEMA_MAX_SETTINGS.
uint32_t tl_schema_list_settings(tl_str *out_names);
enum { TL_SCHEMA_MAX_SETTINGS = 8 };

// The words that a key of a section takes, as those of an option.
const char *tl_schema_key_choices(tl_schema_place place, tl_str key);

// NULL when the language has no such key at the place. Static.
const tl_schema_key *tl_schema_find_key(tl_schema_place place, tl_str key);
const tl_schema_stmt *tl_schema_find_stmt(tl_str key);
const tl_schema_option *tl_schema_find_option(const tl_schema_stmt *statement, tl_str option);
// The required option with this index among the statement's required ones; NULL past the last.
const tl_schema_option *tl_schema_required_option(const tl_schema_stmt *statement, size_t index);

// The language as a JSON Schema, for editors (schema_json.c).
void tl_schema_print_json(tl_strbuf *out);

// The nearest key of the place, statement or option; NULL when none is near. Static.
const char *tl_schema_suggest_key(tl_schema_place place, tl_str word);
const char *tl_schema_suggest_stmt(tl_str word);
const char *tl_schema_suggest_option(const tl_schema_stmt *statement, tl_str word);

#endif
