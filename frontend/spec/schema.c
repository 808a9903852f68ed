// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "frontend/spec/schema.h"

#include "frontend/expr/suggest.h"

static const tl_schema_key keys[] = {
#define TL_SCHEMA_KEY(place, key, state, value, section, doc) {TL_SCHEMA_##place, key, TL_SCHEMA_##state},
#include "frontend/spec/schema.def"
};

static const tl_schema_stmt statements[] = {
#define TL_SCHEMA_STMT(key, kind, state, value, form, doc) {key, TL_STMT_##kind, TL_SCHEMA_##state, form},
#include "frontend/spec/schema.def"
};

enum { OPTIONAL, REQUIRED };

static const tl_schema_option options[] = {
#define TL_SCHEMA_OPTION(statement, option, form, need, state, choices, doc) \
  {statement, option, TL_SCHEMA_FORM_##form, need == REQUIRED, TL_SCHEMA_##state, choices},
#include "frontend/spec/schema.def"
};

static const struct {
  tl_schema_place place;
  const char *key, *choices;
} key_choices[] = {
#define TL_SCHEMA_CHOICE(place, key, choices) {TL_SCHEMA_##place, key, choices},
#include "frontend/spec/schema.def"
};

static const tl_schema_setting settings[] = {
#define TL_SCHEMA_SETTING(name, state) {name, TL_SCHEMA_##state},
#include "frontend/spec/schema.def"
};

enum {
  NUM_KEYS = sizeof(keys) / sizeof(keys[0]),
  NUM_STATEMENTS = sizeof(statements) / sizeof(statements[0]),
  NUM_OPTIONS = sizeof(options) / sizeof(options[0]),
  NUM_KEY_CHOICES = sizeof(key_choices) / sizeof(key_choices[0]),
  NUM_SETTINGS = sizeof(settings) / sizeof(settings[0])
};
_Static_assert((int)NUM_SETTINGS <= (int)TL_SCHEMA_MAX_SETTINGS, "room for the names in suggestions");

const tl_schema_key *tl_schema_find_key(tl_schema_place place, tl_str key) {
  for (size_t i = 0; i < NUM_KEYS; i++)
    if (keys[i].place == place && tl_str_is(key, keys[i].key)) return &keys[i];
  return NULL;
}

const tl_schema_stmt *tl_schema_find_stmt(tl_str key) {
  for (size_t i = 0; i < NUM_STATEMENTS; i++)
    if (tl_str_is(key, statements[i].key)) return &statements[i];
  return NULL;
}

static bool belongs_to(const tl_schema_option *option, const tl_schema_stmt *statement) {
  return tl_str_is(tl_str_from(option->statement), statement->key);
}

const tl_schema_option *tl_schema_find_option(const tl_schema_stmt *statement, tl_str option) {
  for (size_t i = 0; i < NUM_OPTIONS; i++)
    if (belongs_to(&options[i], statement) && tl_str_is(option, options[i].option)) return &options[i];
  return NULL;
}

const tl_schema_option *tl_schema_required_option(const tl_schema_stmt *statement, size_t index) {
  for (size_t i = 0; i < NUM_OPTIONS; i++)
    if (belongs_to(&options[i], statement) && options[i].required && index-- == 0) return &options[i];
  return NULL;
}

uint32_t tl_schema_list_settings(tl_str *out_names) {
  uint32_t len = 0;
  for (size_t i = 0; i < NUM_SETTINGS; i++)
    if (settings[i].state == TL_SCHEMA_NOW) out_names[len++] = tl_str_from(settings[i].name);
  return len;
}

const tl_schema_setting *tl_schema_find_setting(tl_str name) {
  for (size_t i = 0; i < NUM_SETTINGS; i++)
    if (tl_str_is(name, settings[i].name)) return &settings[i];
  return NULL;
}

const char *tl_schema_key_choices(tl_schema_place place, tl_str key) {
  for (size_t i = 0; i < NUM_KEY_CHOICES; i++)
    if (key_choices[i].place == place && tl_str_is(key, key_choices[i].key)) return key_choices[i].choices;
  return "";
}

const char *tl_schema_suggest_key(tl_schema_place place, tl_str word) {
  const char *candidates[NUM_KEYS];
  size_t len = 0;
  for (size_t i = 0; i < NUM_KEYS; i++)
    if (keys[i].place == place) candidates[len++] = keys[i].key;
  return tl_suggest(word, candidates, len);
}

const char *tl_schema_suggest_stmt(tl_str word) {
  const char *candidates[NUM_STATEMENTS];
  for (size_t i = 0; i < NUM_STATEMENTS; i++) candidates[i] = statements[i].key;
  return tl_suggest(word, candidates, NUM_STATEMENTS);
}

const char *tl_schema_suggest_option(const tl_schema_stmt *statement, tl_str word) {
  const char *candidates[NUM_OPTIONS];
  size_t len = 0;
  for (size_t i = 0; i < NUM_OPTIONS; i++)
    if (belongs_to(&options[i], statement)) candidates[len++] = options[i].option;
  return tl_suggest(word, candidates, len);
}
