// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Maps between values, and deep copies of ops and modules.
#include <stdlib.h>

#include "ir/ir.h"
#include "ir/op_internal.h"
#include "support/vec.h"

// ---- tl_ptr_map

static struct tl_ptr_map_entry *ptr_map_slot(const tl_ptr_map *map, const void *key) {
  size_t at = tl_ptr_hash(key) & (map->capacity - 1);
  while (map->entries[at].key && map->entries[at].key != key) at = (at + 1) & (map->capacity - 1);
  return &map->entries[at];
}

void tl_ptr_map_set(tl_ptr_map *map, const void *key, uint64_t value) {
  if (2 * (map->len + 1) > map->capacity) {
    tl_ptr_map old = *map;
    map->capacity = old.capacity ? 2 * old.capacity : 64;
    map->entries = tl_xcalloc(map->capacity, sizeof(*map->entries));
    for (size_t i = 0; i < old.capacity; i++) {
      if (old.entries[i].key) *ptr_map_slot(map, old.entries[i].key) = old.entries[i];
    }
    free(old.entries);
  }
  struct tl_ptr_map_entry *entry = ptr_map_slot(map, key);
  if (entry->key == NULL) map->len++;
  entry->key = key;
  entry->value = value;
}

bool tl_ptr_map_get(const tl_ptr_map *map, const void *key, uint64_t *out) {
  if (map->len == 0) return false;
  const struct tl_ptr_map_entry *entry = ptr_map_slot(map, key);
  if (entry->key == NULL) return false;
  *out = entry->value;
  return true;
}

void tl_ptr_map_fini(tl_ptr_map *map) {
  free(map->entries);
  *map = (tl_ptr_map){0};
}

// ---- tl_value_map: the same table with values on both sides

static struct tl_value_pair *value_map_slot(const tl_value_map *map, const tl_value *from) {
  size_t at = tl_ptr_hash(from) & (map->capacity - 1);
  while (map->items[at].from && map->items[at].from != from) at = (at + 1) & (map->capacity - 1);
  return &map->items[at];
}

void tl_value_map_set(tl_value_map *map, const tl_value *from, tl_value *to) {
  if (2 * (map->len + 1) > map->capacity) {
    tl_value_map old = *map;
    map->capacity = old.capacity ? 2 * old.capacity : 32;
    map->items = tl_xcalloc(map->capacity, sizeof(*map->items));
    for (size_t i = 0; i < old.capacity; i++) {
      if (old.items[i].from) *value_map_slot(map, old.items[i].from) = old.items[i];
    }
    free(old.items);
  }
  struct tl_value_pair *pair = value_map_slot(map, from);
  if (pair->from == NULL) map->len++;
  pair->from = from;
  pair->to = to;
}

tl_value *tl_value_map_get(const tl_value_map *map, tl_value *from) {
  if (map->len == 0 || from == NULL) return from;
  const struct tl_value_pair *pair = value_map_slot(map, from);
  return pair->from ? pair->to : from;
}

void tl_value_map_fini(tl_value_map *map) {
  free(map->items);
  *map = (tl_value_map){0};
}

// ---- cloning

typedef struct clone_context {
  tl_module *module;  // receives the copy
  tl_value_map *map;
  tl_ptr_map types;  // type of the source → index into type_list
  TL_VEC(const tl_type *) type_list;
} clone_context;

static const tl_type *clone_type(clone_context *context, const tl_type *type) {
  uint64_t index;
  if (tl_ptr_map_get(&context->types, type, &index)) return context->type_list.items[index];
  const tl_type *own = tl_type_import(context->module, type);
  tl_ptr_map_set(&context->types, type, context->type_list.len);
  tl_vec_push(&context->type_list, own);
  return own;
}

static const char *clone_name(clone_context *context, const char *name) {
  return name ? tl_module_intern(context->module, tl_str_from(name)) : NULL;
}

static tl_op *clone_op(clone_context *context, tl_builder *builder, const tl_op *op);

static void clone_block(clone_context *context, tl_block *to, const tl_block *from) {
  for (uint32_t i = 0; i < from->num_args; i++) {
    const tl_value *arg = from->args[i];
    tl_value *copy = tl_block_add_arg(context->module, to, clone_type(context, arg->type), arg->name);
    tl_value_map_set(context->map, arg, copy);
  }
  tl_builder builder;
  tl_builder_at_end(&builder, context->module, to);
  for (const tl_op *op = from->first; op; op = op->next) clone_op(context, &builder, op);
}

static tl_op *clone_op(clone_context *context, tl_builder *builder, const tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  TL_VEC(tl_value *) operands = {0};
  TL_VEC(const tl_type *) results = {0};
  TL_VEC(tl_group) groups = {0};
  tl_vec_reserve(&operands, op->num_operands + 1);
  for (uint32_t i = 0; i < op->num_operands; i++) {
    tl_vec_push(&operands, tl_value_map_get(context->map, op->operands[i].value));
  }
  uint32_t at = 0;
  for (int g = 0; g < info->num_groups; g++) {
    tl_vec_push(&groups, (tl_group){operands.items + at, op->group_sizes[g]});
    at += op->group_sizes[g];
  }
  for (uint32_t i = 0; i < op->num_results; i++) tl_vec_push(&results, clone_type(context, op->results[i].type));
  tl_op *copy = tl_build(builder, op->code, groups.items, results.items, op->num_results);
  copy->loc = op->loc;
  for (uint32_t i = 0; i < op->num_results; i++) {
    copy->results[i].name = clone_name(context, op->results[i].name);
    tl_value_map_set(context->map, &op->results[i], &copy->results[i]);
  }
  for (uint32_t i = 0; i < op->num_attrs; i++) tl_op_set_attr(context->module, copy, &op->attrs[i]);
  for (uint32_t r = 0; r < op->num_regions; r++) clone_block(context, copy->regions[r], op->regions[r]);
  tl_vec_fini(&operands);
  tl_vec_fini(&results);
  tl_vec_fini(&groups);
  return copy;
}

tl_op *tl_op_clone(tl_builder *builder, const tl_op *op, tl_value_map *map) {
  clone_context context = {.module = builder->module, .map = map};
  tl_op *copy = clone_op(&context, builder, op);
  tl_ptr_map_fini(&context.types);
  tl_vec_fini(&context.type_list);
  return copy;
}

tl_module *tl_module_clone(const tl_module *module) {
  tl_module *copy = tl_module_create();
  copy->level = module->level;
  copy->target = module->target;
  tl_value_map map = {0};
  clone_context context = {.module = copy, .map = &map};
  clone_block(&context, copy->body, module->body);
  tl_ptr_map_fini(&context.types);
  tl_vec_fini(&context.type_list);
  tl_value_map_fini(&map);
  return copy;
}
