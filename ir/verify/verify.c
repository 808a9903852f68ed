// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The verifier: structure, visibility of values, and what ops.def says of operands, results, attributes and levels.
#include "ir/verify/verify_internal.h"

void tl_verify_result_fini(tl_verify_result *result) {
  tl_vec_fini(&result->errors);
  tl_arena_fini(&result->arena);
}

// ---- operands

static bool is_of_kind(const tl_type *type, int kind) {
  switch (kind) {
    case TL_OPERAND_INDEX:
      return type->kind == TL_TYPE_INDEX;
    case TL_OPERAND_SCALAR:
      return type->kind == TL_TYPE_SCALAR || type->kind == TL_TYPE_INDEX;
    case TL_OPERAND_BOOL:
      return tl_type_is_scalar_of(type, TL_DTYPE_BOOL);
    case TL_OPERAND_BUFFER:
      return type->kind == TL_TYPE_BUFFER;
    case TL_OPERAND_TILE:
      return type->kind == TL_TYPE_TILE;
    case TL_OPERAND_FLIGHT:
      return type->kind == TL_TYPE_FLIGHT;
    case TL_OPERAND_RING:
      return type->kind == TL_TYPE_RING;
    case TL_OPERAND_SLOT:
      return type->kind == TL_TYPE_SLOT;
    case TL_OPERAND_MBARRIER:
      return type->kind == TL_TYPE_MBARRIER;
    case TL_OPERAND_MAP:
      return type->kind == TL_TYPE_MAP;
    case TL_OPERAND_TOKEN:
      return type->kind == TL_TYPE_TOKEN;
    default:
      return true;
  }
}

static const char *const kind_texts[] = {"an index", "a scalar", "a bool",      "a buffer", "a tile",  "a flight",
                                         "a ring",   "a slot",   "an mbarrier", "a map",    "a token", "anything"};

static bool verify_group(tl_verifier *verifier, const tl_op *op, int group, uint32_t start) {
  const tl_operand_info *info = &tl_op_info_of(op->code)->groups[group];
  uint32_t len = op->group_sizes[group];
  if (info->count == TL_COUNT_ONE && len != 1) {
    return tl_verify_fail(verifier, op, "'%s' takes one value, not %u", info->name, len);
  }
  if (info->count == TL_COUNT_OPT && len > 1) {
    return tl_verify_fail(verifier, op, "'%s' takes at most one value, not %u", info->name, len);
  }
  bool good = true;
  for (uint32_t i = 0; i < len; i++) {
    const tl_use *use = &op->operands[start + i];
    const tl_value *value = use->value;
    uint64_t is_visible = 0;
    if (value == NULL) {
      good = tl_verify_fail(verifier, op, "'%s' has an operand without a value", info->name);
      continue;
    }
    if (use->owner != op || use->link == NULL || *use->link != use) {
      good = tl_verify_fail(verifier, op, "the uses of an operand of '%s' are broken", info->name);
    }
    if (!tl_ptr_map_get(&verifier->visible, value, &is_visible) || !is_visible) {
      good = tl_verify_fail(verifier, op, "'%s' uses a value that is not defined before it", info->name);
    }
    if (!is_of_kind(value->type, info->kind)) {
      good = tl_verify_fail(verifier, op, "'%s' takes %s, not %s", info->name, kind_texts[info->kind],
                            tl_verify_type_text(verifier, value->type));
    }
  }
  return good;
}

static bool verify_operands(tl_verifier *verifier, const tl_op *op) {
  bool good = true;
  uint32_t start = 0;
  for (int g = 0; g < tl_op_info_of(op->code)->num_groups; g++) {
    good = verify_group(verifier, op, g, start) && good;
    start += op->group_sizes[g];
  }
  if (start != op->num_operands) return tl_verify_fail(verifier, op, "the groups of operands do not add up");
  return good;
}

// ---- attributes

// Whatever computes with an attribute counts on its range, the rules of ops around it as well.
static bool verify_number(tl_verifier *verifier, const tl_op *op, tl_attr_key key, int64_t value) {
  int64_t least, most;
  tl_attr_key_range(key, &least, &most);
  return tl_verify_range(verifier, op, tl_attr_key_text(key), value, least, most);
}

// Sums of bytes may have more than 32 bits, and what adds to them counts on some to spare.
static bool verify_dict(tl_verifier *verifier, const tl_op *op, const tl_attr *attr) {
  const int64_t MAX_DICT = (int64_t)1 << 48;
  bool good = true;
  for (int32_t i = 0; i < attr->v.dict.len; i++) {
    const tl_dict_entry *entry = &attr->v.dict.entries[i];
    int32_t count = entry->kind == TL_ATTRKIND_INTS ? entry->len : entry->kind == TL_ATTRKIND_INT;
    const int64_t *items = entry->kind == TL_ATTRKIND_INTS ? entry->items : &entry->i;
    for (int32_t k = 0; k < count && good; k++) good = items[k] >= -MAX_DICT && items[k] <= MAX_DICT;
  }
  return good || tl_verify_fail(verifier, op, "a number in '%s' has more than 48 bits", tl_attr_key_text(attr->key));
}

static bool verify_numbers(tl_verifier *verifier, const tl_block *block) {
  bool good = true;
  for (const tl_op *op = block->first; op; op = op->next) {
    for (uint32_t a = 0; a < op->num_attrs; a++) {
      const tl_attr *attr = &op->attrs[a];
      tl_attr_kind kind = tl_attr_key_kind(attr->key);
      if (kind == TL_ATTRKIND_INT) good = verify_number(verifier, op, attr->key, attr->v.i) && good;
      for (int32_t i = 0; kind == TL_ATTRKIND_INTS && i < attr->v.ints.len; i++)
        good = verify_number(verifier, op, attr->key, attr->v.ints.items[i]) && good;
      if (kind == TL_ATTRKIND_DICT) good = verify_dict(verifier, op, attr) && good;
    }
    for (uint32_t r = 0; r < op->num_regions; r++) good = verify_numbers(verifier, op->regions[r]) && good;
  }
  return good;
}

static bool verify_attr_value(tl_verifier *verifier, const tl_op *op, const tl_attr *attr) {
  const char *key = tl_attr_key_text(attr->key);
  switch (tl_attr_key_kind(attr->key)) {
    case TL_ATTRKIND_ENUM:
      if (tl_ir_enum_text(tl_attr_key_enum(attr->key), (int)attr->v.i)) return true;
      return tl_verify_fail(verifier, op, "'%s' has no value number %lld", key, (long long)attr->v.i);
    case TL_ATTRKIND_STR:
      return attr->v.s != NULL || tl_verify_fail(verifier, op, "'%s' has no text", key);
    case TL_ATTRKIND_LAYOUT:
      return attr->v.layout != NULL || tl_verify_fail(verifier, op, "'%s' has no layout", key);
    case TL_ATTRKIND_SWIZZLE:
      return attr->v.shared != NULL || tl_verify_fail(verifier, op, "'%s' has no layout", key);
    case TL_ATTRKIND_INSTRUCTION:
      return attr->v.inst != NULL || tl_verify_fail(verifier, op, "'%s' has no instruction", key);
    case TL_ATTRKIND_UNIT:
    case TL_ATTRKIND_INT:
    case TL_ATTRKIND_INTS:
    case TL_ATTRKIND_DICT:
    case TL_ATTRKIND_VALUE:
      return true;
  }
  return true;
}

static bool verify_attrs(tl_verifier *verifier, const tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  bool good = true;
  for (uint32_t i = 0; i < op->num_attrs; i++) {
    bool known = false;
    for (int a = 0; a < info->num_attrs; a++) known = known || info->attrs[a].key == op->attrs[i].key;
    if (!known) {
      good = tl_verify_fail(verifier, op, "'%s' has no attribute '%s'", info->name, tl_attr_key_text(op->attrs[i].key));
    }
    good = verify_attr_value(verifier, op, &op->attrs[i]) && good;
  }
  for (int a = 0; a < info->num_attrs; a++) {
    if (info->attrs[a].required && !tl_op_has(op, info->attrs[a].key)) {
      good = tl_verify_fail(verifier, op, "attribute '%s' is missing", tl_attr_key_text(info->attrs[a].key));
    }
  }
  return good;
}

// ---- results and place

static bool verify_tile_type(tl_verifier *verifier, const tl_op *op, const tl_type *type, const char *layout) {
  if (type->kind != TL_TYPE_TILE && type->kind != TL_TYPE_FLIGHT) return true;
  if (!tl_verify_elements(verifier, op, type->dims, type->rank)) return false;
  if (type->kind == TL_TYPE_TILE && type->layout)
    tl_verify_layout(verifier, op, type->layout, type->dims, type->rank, layout);
  return true;
}

static bool verify_results(tl_verifier *verifier, const tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  bool good = true;
  if (info->num_results >= 0 && op->num_results != (uint32_t)info->num_results) {
    return tl_verify_fail(verifier, op, "'%s' has %d results, not %u", info->name, info->num_results, op->num_results);
  }
  for (uint32_t i = 0; i < op->num_results; i++) {
    const tl_value *value = &op->results[i];
    if (value->def != op || value->index != i || value->type == NULL || value->type->kind == TL_TYPE_NONE) {
      return tl_verify_fail(verifier, op, "result %u is malformed", i);
    }
    good = verify_tile_type(verifier, op, value->type, "the result's layout") && good;
  }
  return good;
}

static void verify_place(tl_verifier *verifier, const tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  const tl_op *around = op->parent->parent;
  int level = verifier->module->level ? TL_LEVEL_S : TL_LEVEL_T;
  if (!(info->levels & level)) {
    tl_verify_fail(verifier, op, "'%s' is not allowed at the %s level", info->name,
                   level == TL_LEVEL_S ? "scheduled" : "tile");
  }
  if ((op->code == TL_OP_KERNEL) != (around == NULL)) {
    tl_verify_fail(verifier, op, "'%s' stands %s", info->name, around ? "inside another op" : "outside a kernel");
  }
  if ((info->flags & TL_OPFLAG_ONCE) && around && around->code != TL_OP_KERNEL) {
    tl_verify_fail(verifier, op, "'%s' must stand directly in a kernel's body", info->name);
  }
  if ((info->flags & TL_OPFLAG_TERMINATOR) && op->next) {
    tl_verify_fail(verifier, op, "'%s' is not the last op of its region", info->name);
  }
}

// ---- walk

static void make_visible(tl_verifier *verifier, const tl_value *value) {
  tl_ptr_map_set(&verifier->visible, value, 1);
  tl_vec_push(&verifier->scope, value);
}

static void verify_op_rules(tl_verifier *verifier, const tl_op *op) {
  tl_verify_scalar_op(verifier, op);
  tl_verify_buffer_op(verifier, op);
  tl_verify_tile_op(verifier, op);
  tl_verify_reduce_op(verifier, op);
  tl_verify_control_op(verifier, op);
  tl_verify_ring_op(verifier, op);
  tl_verify_async_op(verifier, op);
  tl_verify_flights(verifier, op);
  tl_verify_roles_op(verifier, op);
}

static void verify_block(tl_verifier *verifier, const tl_block *block, const tl_op *around);

static void verify_op(tl_verifier *verifier, const tl_op *op) {
  const tl_op_info *info = tl_op_info_of(op->code);
  verify_place(verifier, op);
  bool good = verify_operands(verifier, op);
  good = verify_attrs(verifier, op) && good;
  good = verify_results(verifier, op) && good;
  if (op->num_regions != (uint32_t)info->num_regions) {
    good = tl_verify_fail(verifier, op, "'%s' has %d regions, not %u", info->name, info->num_regions, op->num_regions);
  }
  // The rules of single ops count on all that.
  if (good) verify_op_rules(verifier, op);
  for (uint32_t r = 0; r < op->num_regions; r++) verify_block(verifier, op->regions[r], op);
  for (uint32_t i = 0; i < op->num_results; i++) make_visible(verifier, &op->results[i]);
}

static void verify_block(tl_verifier *verifier, const tl_block *block, const tl_op *around) {
  size_t scope = verifier->scope.len;
  if (block->parent != around) tl_verify_fail(verifier, around, "a region does not know its op");
  for (uint32_t i = 0; i < block->num_args; i++) {
    const tl_value *arg = block->args[i];
    if (arg->block != block || arg->index != i || arg->def || arg->type == NULL) {
      tl_verify_fail(verifier, around, "region argument %u is malformed", i);
    }
    if (arg->type && around) verify_tile_type(verifier, around, arg->type, "a region argument's layout");
    make_visible(verifier, arg);
  }
  const tl_op *prev = NULL;
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->parent != block || op->prev != prev) {
      tl_verify_fail(verifier, op, "the list of ops is broken");
      break;
    }
    verify_op(verifier, op);
    prev = op;
  }
  if (block->last != prev) tl_verify_fail(verifier, around, "the list of ops is broken at its end");
  while (verifier->scope.len > scope) tl_ptr_map_set(&verifier->visible, tl_vec_pop(&verifier->scope), 0);
}

bool tl_module_verify(const tl_module *module, tl_verify_result *out_result) {
  *out_result = (tl_verify_result){0};
  tl_arena_init(&out_result->arena);
  tl_verifier verifier = {.module = module, .result = out_result};
  if (verify_numbers(&verifier, module->body)) verify_block(&verifier, module->body, NULL);
  tl_ptr_map_fini(&verifier.visible);
  tl_vec_fini(&verifier.scope);
  return out_result->errors.len == 0;
}
