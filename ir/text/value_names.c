// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of values in IR text. A name depends only on the values before it, so that text that was read in prints the
// same.
#include "ir/text/value_names.h"

#include <string.h>

bool tl_const_default_name(const tl_op *op, tl_strbuf *out) {
  int64_t value;
  if (op->code != TL_OP_CONST || op->num_results != 1 || !tl_value_const_int(op->results, &value)) return false;
  const tl_type *type = op->results[0].type;
  if (type->kind == TL_TYPE_SCALAR && type->dtype == TL_DTYPE_BOOL) {
    tl_strbuf_append_c(out, value ? "true" : "false");
  } else if (value < 0) {
    tl_strbuf_appendf(out, "cm%llu", -(unsigned long long)value);
  } else {
    tl_strbuf_appendf(out, "c%lld", (long long)value);
  }
  return true;
}

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The wish as an identifier.
static void append_identifier(tl_strbuf *out, const char *wish) {
  if (*wish >= '0' && *wish <= '9') tl_strbuf_append_char(out, '_');
  for (; *wish; wish++) tl_strbuf_append_char(out, is_name_char(*wish) ? *wish : '_');
}

// `base` or the first of base_1, base_2, … that is free.
static const char *take_name(tl_value_names *names, const char *base) {
  tl_strmap_entry *entry = tl_strmap_find(&names->taken, tl_str_from(base));
  if (entry == NULL) {
    return tl_strmap_put(&names->taken, tl_str_from(base), (void *)(uintptr_t)1)->key.data;
  }
  for (uintptr_t suffix = (uintptr_t)entry->value;; suffix++) {
    const char *name = tl_arena_printf(&names->arena, "%s_%llu", base, (unsigned long long)suffix);
    if (tl_strmap_find(&names->taken, tl_str_from(name))) continue;
    entry->value = (void *)(suffix + 1);
    tl_strmap_put(&names->taken, tl_str_from(name), (void *)(uintptr_t)1);
    return name;
  }
}

static void name_value(tl_value_names *names, const tl_value *value) {
  tl_strbuf wish;
  tl_strbuf_init(&wish);
  if (value->name && *value->name) {
    append_identifier(&wish, value->name);
  } else if (value->def) {
    tl_const_default_name(value->def, &wish);
  }
  const char *name;
  if (wish.len) {
    name = take_name(names, tl_strbuf_c(&wish));
    name = tl_arena_copy_bytes(&names->arena, name, strlen(name));
  } else {
    name = tl_arena_printf(&names->arena, "%u", names->next_number++);
  }
  tl_ptr_map_set(&names->values, value, names->list.len);
  tl_vec_push(&names->list, name);
  tl_strbuf_fini(&wish);
}

static void name_block(tl_value_names *names, const tl_block *block) {
  for (uint32_t i = 0; i < block->num_args; i++) name_value(names, block->args[i]);
  for (const tl_op *op = block->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->num_results; i++) name_value(names, &op->results[i]);
    for (uint32_t r = 0; r < op->num_regions; r++) name_block(names, op->regions[r]);
  }
}

void tl_value_names_init(tl_value_names *names, const tl_block *block) {
  memset(names, 0, sizeof(*names));
  tl_arena_init(&names->arena);
  tl_strmap_init(&names->taken, &names->arena);
  name_block(names, block);
}

void tl_value_names_fini(tl_value_names *names) {
  tl_ptr_map_fini(&names->values);
  tl_vec_fini(&names->list);
  tl_strmap_fini(&names->taken);
  tl_arena_fini(&names->arena);
}

const char *tl_value_names_get(const tl_value_names *names, const tl_value *value) {
  uint64_t index;
  return tl_ptr_map_get(&names->values, value, &index) ? names->list.items[index] : NULL;
}
