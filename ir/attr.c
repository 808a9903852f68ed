// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attributes of ops.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "ir/ir.h"

// Position of the key among the sorted attributes, or where it would go.
static uint32_t find_key(const tl_op *op, tl_attr_key key) {
  uint32_t i = 0;
  while (i < op->num_attrs && op->attrs[i].key < key) i++;
  return i;
}

const tl_attr *tl_op_attr(const tl_op *op, tl_attr_key key) {
  uint32_t i = find_key(op, key);
  return i < op->num_attrs && op->attrs[i].key == key ? &op->attrs[i] : NULL;
}

bool tl_op_has(const tl_op *op, tl_attr_key key) {
  return tl_op_attr(op, key) != NULL;
}

int64_t tl_op_int(const tl_op *op, tl_attr_key key, int64_t fallback) {
  const tl_attr *attr = tl_op_attr(op, key);
  return attr ? attr->v.i : fallback;
}

const char *tl_op_str(const tl_op *op, tl_attr_key key) {
  const tl_attr *attr = tl_op_attr(op, key);
  return attr ? attr->v.s : NULL;
}

const tl_layout *tl_op_layout(const tl_op *op, tl_attr_key key) {
  const tl_attr *attr = tl_op_attr(op, key);
  return attr ? attr->v.layout : NULL;
}

const tl_instruction *tl_op_instruction(const tl_op *op) {
  const tl_attr *attr = tl_op_attr(op, TL_ATTR_INST);
  return attr ? attr->v.inst : NULL;
}

bool tl_gemm_clears(const tl_op *gemm) {
  const tl_value *acc = tl_op_arg(gemm, TL_GROUP_GEMM_acc);
  const tl_op *scalar = acc->def && acc->def->code == TL_OP_SPLAT ? tl_op_operand(acc->def, 0)->def : NULL;
  const tl_attr *value = scalar && scalar->code == TL_OP_CONST ? tl_op_attr(scalar, TL_ATTR_VALUE) : NULL;
  // Not -0.0, to which the products are added.
  bool is_zero = value && (value->is_float ? value->v.f == 0.0 && !signbit(value->v.f) : value->v.i == 0);
  return tl_op_has(gemm, TL_ATTR_CLEAR) || is_zero;
}

bool tl_gemm_is_promoted(const tl_op *gemm) {
  const tl_type *a = tl_op_arg(gemm, TL_GROUP_GEMM_a)->type;
  bool is_fp8 = tl_dtype_is_float(a->dtype) && tl_dtype_bits(a->dtype) == 8;
  int64_t k = a->dims[tl_op_has(gemm, TL_ATTR_TRANS_A) ? 0 : 1];
  // One part alone has nothing to be added to.
  if (tl_gemm_clears(gemm) && k <= TL_PROMOTED_K) return false;
  return is_fp8 && tl_op_int(gemm, TL_ATTR_ACCUMULATE, TL_ACCUMULATE_PROMOTED) == TL_ACCUMULATE_PROMOTED;
}

bool tl_value_const_int(const tl_value *value, int64_t *out) {
  if (value == NULL || value->def == NULL || value->def->code != TL_OP_CONST) return false;
  const tl_attr *attr = tl_op_attr(value->def, TL_ATTR_VALUE);
  if (attr == NULL || attr->is_float) return false;
  *out = attr->v.i;
  return true;
}

static const int64_t *copy_ints(tl_module *module, const int64_t *items, int32_t len) {
  int64_t *copy = TL_NEW_ARRAY(&module->arena, int64_t, len);
  if (len > 0) memcpy(copy, items, sizeof(*copy) * (size_t)len);
  return copy;
}

static const tl_dict_entry *copy_dict(tl_module *module, const tl_dict_entry *entries, int32_t len) {
  tl_dict_entry *copy = TL_NEW_ARRAY(&module->arena, tl_dict_entry, len);
  for (int32_t i = 0; i < len; i++) {
    copy[i] = entries[i];
    copy[i].name = tl_module_intern(module, tl_str_from(entries[i].name));
    if (entries[i].kind == TL_ATTRKIND_STR) copy[i].s = tl_module_intern(module, tl_str_from(entries[i].s));
    if (entries[i].kind == TL_ATTRKIND_INTS) copy[i].items = copy_ints(module, entries[i].items, entries[i].len);
  }
  return copy;
}

// What the attribute points at, copied into the module.
static tl_attr own_attr(tl_module *module, const tl_attr *attr) {
  tl_attr own = *attr;
  switch (tl_attr_key_kind(attr->key)) {
    case TL_ATTRKIND_STR:
      own.v.s = tl_module_intern(module, tl_str_from(attr->v.s));
      break;
    case TL_ATTRKIND_INTS:
      own.v.ints.items = copy_ints(module, attr->v.ints.items, attr->v.ints.len);
      break;
    case TL_ATTRKIND_LAYOUT:
      own.v.layout = tl_module_layout(module, attr->v.layout);
      break;
    case TL_ATTRKIND_SWIZZLE:
      own.v.shared = tl_module_shared_layout(module, attr->v.shared);
      break;
    case TL_ATTRKIND_INSTRUCTION:
      own.v.inst = tl_module_instruction(module, attr->v.inst);
      break;
    case TL_ATTRKIND_DICT:
      own.v.dict.entries = copy_dict(module, attr->v.dict.entries, attr->v.dict.len);
      break;
    case TL_ATTRKIND_UNIT:
      own.v.i = 1;
      break;
    case TL_ATTRKIND_INT:
    case TL_ATTRKIND_VALUE:
    case TL_ATTRKIND_ENUM:
      break;
  }
  return own;
}

void tl_op_set_attr(tl_module *module, tl_op *op, const tl_attr *attr) {
  tl_attr own = own_attr(module, attr);
  uint32_t at = find_key(op, attr->key);
  if (at < op->num_attrs && op->attrs[at].key == attr->key) {
    op->attrs[at] = own;
    return;
  }
  if (op->num_attrs == op->cap_attrs) {
    uint32_t capacity = op->cap_attrs ? 2 * op->cap_attrs : 2;
    tl_attr *attrs = TL_NEW_ARRAY(&module->arena, tl_attr, capacity);
    if (op->num_attrs) memcpy(attrs, op->attrs, sizeof(*attrs) * op->num_attrs);
    op->attrs = attrs;
    op->cap_attrs = capacity;
  }
  memmove(&op->attrs[at + 1], &op->attrs[at], sizeof(*op->attrs) * (op->num_attrs - at));
  op->attrs[at] = own;
  op->num_attrs++;
}

void tl_op_remove_attr(tl_op *op, tl_attr_key key) {
  uint32_t at = find_key(op, key);
  if (at == op->num_attrs || op->attrs[at].key != key) return;
  memmove(&op->attrs[at], &op->attrs[at + 1], sizeof(*op->attrs) * (op->num_attrs - at - 1));
  op->num_attrs--;
}

void tl_op_set_int(tl_module *module, tl_op *op, tl_attr_key key, int64_t value) {
  tl_attr attr = {.key = key, .v.i = value};
  tl_op_set_attr(module, op, &attr);
}

void tl_op_set_unit(tl_module *module, tl_op *op, tl_attr_key key) {
  tl_op_set_int(module, op, key, 1);
}

void tl_op_set_str(tl_module *module, tl_op *op, tl_attr_key key, tl_str value) {
  tl_attr attr = {.key = key, .v.s = tl_module_intern(module, value)};
  tl_op_set_attr(module, op, &attr);
}

void tl_op_set_ints(tl_module *module, tl_op *op, tl_attr_key key, const int64_t *items, int32_t len) {
  tl_attr attr = {.key = key, .v.ints = {items, len}};
  tl_op_set_attr(module, op, &attr);
}

void tl_op_set_layout(tl_module *module, tl_op *op, tl_attr_key key, const tl_layout *layout) {
  tl_attr attr = {.key = key, .v.layout = layout};
  tl_op_set_attr(module, op, &attr);
}

void tl_op_set_shared(tl_module *module, tl_op *op, tl_attr_key key, const tl_shared_layout *layout) {
  tl_attr attr = {.key = key, .v.shared = layout};
  tl_op_set_attr(module, op, &attr);
}

void tl_op_set_instruction(tl_module *module, tl_op *op, const tl_instruction *inst) {
  tl_attr attr = {.key = TL_ATTR_INST, .v.inst = inst};
  tl_op_set_attr(module, op, &attr);
}

void tl_op_set_dict(tl_module *module, tl_op *op, tl_attr_key key, const tl_dict_entry *entries, int32_t len) {
  tl_attr attr = {.key = key, .v.dict = {entries, len}};
  tl_op_set_attr(module, op, &attr);
}

static bool same_ints(const int64_t *a, int32_t a_len, const int64_t *b, int32_t b_len) {
  return a_len == b_len && (a_len == 0 || memcmp(a, b, sizeof(*a) * (size_t)a_len) == 0);
}

static bool same_dict(const tl_attr *a, const tl_attr *b) {
  if (a->v.dict.len != b->v.dict.len) return false;
  for (int32_t i = 0; i < a->v.dict.len; i++) {
    const tl_dict_entry *x = &a->v.dict.entries[i], *y = &b->v.dict.entries[i];
    if (x->kind != y->kind || strcmp(x->name, y->name) != 0) return false;
    if (x->kind == TL_ATTRKIND_STR && strcmp(x->s, y->s) != 0) return false;
    if (x->kind == TL_ATTRKIND_INTS && !same_ints(x->items, x->len, y->items, y->len)) return false;
    if (x->kind == TL_ATTRKIND_INT && x->i != y->i) return false;
  }
  return true;
}

// Floats by their bits: 0.0 and -0.0 differ, a NaN equals itself.
static bool same_double(double a, double b) {
  uint64_t bits_a, bits_b;
  memcpy(&bits_a, &a, sizeof(bits_a));
  memcpy(&bits_b, &b, sizeof(bits_b));
  return bits_a == bits_b;
}

bool tl_attr_equal(const tl_attr *a, const tl_attr *b) {
  if (a->key != b->key) return false;
  switch (tl_attr_key_kind(a->key)) {
    case TL_ATTRKIND_VALUE:
      if (a->is_float != b->is_float) return false;
      return a->is_float ? same_double(a->v.f, b->v.f) : a->v.i == b->v.i;
    case TL_ATTRKIND_STR:
      return strcmp(a->v.s, b->v.s) == 0;
    case TL_ATTRKIND_INTS:
      return same_ints(a->v.ints.items, a->v.ints.len, b->v.ints.items, b->v.ints.len);
    case TL_ATTRKIND_LAYOUT:
      return tl_layout_equal(a->v.layout, b->v.layout);
    case TL_ATTRKIND_SWIZZLE:
      return memcmp(a->v.shared, b->v.shared, sizeof(*a->v.shared)) == 0;
    case TL_ATTRKIND_INSTRUCTION:
      return tl_instruction_equal(a->v.inst, b->v.inst);
    case TL_ATTRKIND_DICT:
      return same_dict(a, b);
    case TL_ATTRKIND_UNIT:
    case TL_ATTRKIND_INT:
    case TL_ATTRKIND_ENUM:
      return a->v.i == b->v.i;
  }
  return false;
}

bool tl_op_same_attrs(const tl_op *a, const tl_op *b) {
  if (a->num_attrs != b->num_attrs) return false;
  for (uint32_t i = 0; i < a->num_attrs; i++) {
    if (!tl_attr_equal(&a->attrs[i], &b->attrs[i])) return false;
  }
  return true;
}
