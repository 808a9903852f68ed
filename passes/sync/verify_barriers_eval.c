// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Concrete evaluation of indices and conditions for verify-barriers. Index arithmetic is exact; what cannot be known
// (loads, floats, launch values) is a number drawn from the seed and the op with its operands, so that the same
// computation made twice, as pipelining does, has the same outcome.
#include "passes/sync/verify_barriers_internal.h"

#include <stdlib.h>

static size_t slot_of(const tl_run_env *env, const tl_value *value) {
  size_t at = ((uintptr_t)value >> 4) * 0x9E3779B97F4A7C15u & (env->capacity - 1);
  while (env->keys[at] && env->keys[at] != value) at = (at + 1) & (env->capacity - 1);
  return at;
}

static size_t count_values(const tl_op *op) {
  size_t count = op->num_results;
  for (uint32_t r = 0; r < op->num_regions; r++) {
    count += op->regions[r]->num_args;
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) count += count_values(inner);
  }
  return count;
}

void tl_run_env_init(tl_run_env *env, tl_op *kernel) {
  *env = (tl_run_env){0};
  env->capacity = 64;
  while (env->capacity < 2 * count_values(kernel) + 2) env->capacity *= 2;
  env->keys = tl_xcalloc(env->capacity, sizeof(*env->keys));
  env->values = tl_xcalloc(env->capacity, sizeof(*env->values));
  env->places = tl_xcalloc(env->capacity, sizeof(*env->places));
}

void tl_run_env_fini(tl_run_env *env) {
  free(env->keys);
  free(env->values);
  free(env->places);
  tl_vec_fini(&env->fixed);
}

void tl_run_env_clear(tl_run_env *env) {
  for (size_t i = 0; i < env->capacity; i++) env->values[i] = (tl_run_value){0};
  env->is_impossible = false;
}

tl_run_value *tl_run_env_at(tl_run_env *env, const tl_value *value) {
  size_t at = slot_of(env, value);
  env->keys[at] = value;
  return &env->values[at];
}

void tl_run_env_copy(tl_run_env *env, const tl_value *to, const tl_run_value *from) {
  size_t at = slot_of(env, to);
  env->keys[at] = to;
  env->values[at] = *from;
  if (env->places[at] == TL_RUN_SETTLED) env->values[at].drawn = false;
  if (env->places[at] == 0 || env->places[at] == TL_RUN_SETTLED) return;
  const tl_run_fixed *fixed = &env->fixed.items[env->places[at] - 1];
  env->values[at] = (tl_run_value){.number = fixed->number, .known = true, .drawn = fixed->drawn};
}

void tl_run_env_set(tl_run_env *env, const tl_value *value, int64_t number, bool drawn) {
  tl_run_value computed = {.number = number, .known = true, .drawn = drawn};
  tl_run_env_copy(env, value, &computed);
}

void tl_run_env_fix(tl_run_env *env, const tl_value *value, size_t place) {
  size_t at = slot_of(env, value);
  env->keys[at] = value;
  env->places[at] = place == TL_RUN_SETTLED ? TL_RUN_SETTLED : (uint32_t)place + 1;
}

bool tl_run_env_is_fixed(const tl_run_env *env, const tl_value *value) {
  return env->places[slot_of(env, value)] > 0;
}

int64_t tl_run_env_number(tl_run_env *env, const tl_value *value) {
  return tl_run_env_at(env, value)->number;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  hash *= 0xFF51AFD7ED558CCDu;
  return hash ^ (hash >> 33);
}

// A number that depends on the op, its attributes and its operands' values.
static uint64_t draw(tl_run_env *env, const tl_op *op) {
  uint64_t hash = mix(env->seed, op->code);
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_run_value *value = tl_run_env_at(env, tl_op_operand(op, i));
    hash = mix(mix(hash, (uint64_t)value->number), (uint64_t)value->slot);
  }
  for (uint32_t i = 0; i < op->num_attrs; i++) {
    tl_attr_kind kind = tl_attr_key_kind(op->attrs[i].key);
    if (kind == TL_ATTRKIND_INT || kind == TL_ATTRKIND_ENUM || kind == TL_ATTRKIND_VALUE) {
      hash = mix(hash, (uint64_t)op->attrs[i].v.i);
    }
  }
  return hash;
}

// Seeds 0 and 1 decide every unknown condition one way.
static int64_t draw_bool(tl_run_env *env, const tl_op *op) {
  if (env->seed < 2) return env->seed == 0;
  return (int64_t)(draw(env, op) & 1);
}

static int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

static int64_t compare(int pred, int64_t a, int64_t b) {
  switch ((enum tl_cmp)pred) {
    case TL_CMP_EQ:
      return a == b;
    case TL_CMP_NE:
      return a != b;
    case TL_CMP_LT:
      return a < b;
    case TL_CMP_LE:
      return a <= b;
    case TL_CMP_GT:
      return a > b;
    case TL_CMP_GE:
      return a >= b;
    case TL_CMP_COUNT:
      break;
  }
  return 0;
}

// Exact where the operands are integers; false when the op has no integer meaning here.
static bool run_integer(tl_run_env *env, const tl_op *op, int64_t *out) {
  int64_t a = op->num_operands > 0 ? tl_run_env_number(env, tl_op_operand(op, 0)) : 0;
  int64_t b = op->num_operands > 1 ? tl_run_env_number(env, tl_op_operand(op, 1)) : 0;
  switch (op->code) {
    case TL_OP_ADD:
      *out = (int64_t)((uint64_t)a + (uint64_t)b);
      return true;
    case TL_OP_SUB:
      *out = (int64_t)((uint64_t)a - (uint64_t)b);
      return true;
    case TL_OP_MUL:
      *out = (int64_t)((uint64_t)a * (uint64_t)b);
      return true;
    case TL_OP_FLOORDIV:
      *out = floor_div(a, b);
      return true;
    case TL_OP_MOD:
      *out = b == 0 ? 0 : a - floor_div(a, b) * b;
      return true;
    case TL_OP_MIN:
      *out = a < b ? a : b;
      return true;
    case TL_OP_MAX:
      *out = a > b ? a : b;
      return true;
    case TL_OP_AND:
      *out = a & b;
      return true;
    case TL_OP_OR:
      *out = a | b;
      return true;
    case TL_OP_XOR:
      *out = a ^ b;
      return true;
    case TL_OP_NEG:
      *out = (int64_t)(0 - (uint64_t)a);
      return true;
    case TL_OP_SHL:
      *out = b >= 0 && b < 63 ? (int64_t)((uint64_t)a << b) : 0;
      return true;
    case TL_OP_SHR:
      *out = b >= 0 && b < 63 ? a >> b : 0;
      return true;
    default:
      return false;
  }
}

// A value that a dynamic param may have, of about that size.
static int64_t launched(const tl_op *param, int64_t number) {
  int64_t divisor = tl_op_int(param, TL_ATTR_DIVISOR, 1), most = tl_op_int(param, TL_ATTR_MOST, INT64_MAX);
  number = (tl_op_int(param, TL_ATTR_LEAST, 0) + divisor - 1) / divisor * divisor + number * divisor;
  return number <= most ? number : most / divisor * divisor;
}

int64_t tl_run_draw(const tl_run_env *env, tl_value *value, uint64_t salt) {
  enum { TINY = 3, SMALL = 97, LARGE = 1 << 14 };
  tl_range range = tl_value_range(value);
  uint64_t hash = mix(mix(env->seed, value->def->code), salt);
  int64_t number = (int64_t)(hash % (env->seed == 2 ? TINY : SMALL)) + (env->seed < 2 ? LARGE : 0);
  if (value->type->kind == TL_TYPE_SCALAR && value->type->dtype == TL_DTYPE_BOOL)
    return env->seed < 2 ? env->seed == 0 : (int64_t)(hash & 1);
  if (value->def->code == TL_OP_DYN_PARAM) return launched(value->def, env->seed == 2 ? number : number * 8);
  return number < range.lo ? range.lo : number > range.hi ? range.hi : number;
}

// The number, or the nearest one that the author says it may be.
static int64_t as_assumed(tl_run_env *env, const tl_op *assume, int64_t number) {
  const tl_value *lower = tl_op_arg(assume, TL_GROUP_ASSUME_lower), *upper = tl_op_arg(assume, TL_GROUP_ASSUME_upper);
  int64_t divisor = tl_op_int(assume, TL_ATTR_DIVISOR, 1);
  if (upper && tl_run_env_number(env, upper) <= number) number = tl_run_env_number(env, upper) - 1;
  if (divisor > 1) number = floor_div(number, divisor) * divisor;
  if (lower && number < tl_run_env_number(env, lower)) {
    number = tl_run_env_number(env, lower);
    if (divisor > 1) number = -floor_div(-number, divisor) * divisor;
  }
  return number;
}

bool tl_run_is_exact(const tl_type *type) {
  bool is_wide = type->kind == TL_TYPE_SCALAR && tl_dtype_is_int(type->dtype) && tl_dtype_bits(type->dtype) >= 32;
  return type->kind == TL_TYPE_INDEX || is_wide;
}

void tl_run_scalar(tl_run_env *env, const tl_op *op) {
  if (op->num_results != 1) return;
  const tl_value *result = &op->results[0];
  const tl_type *type = result->type;
  bool is_bool = type->kind == TL_TYPE_SCALAR && type->dtype == TL_DTYPE_BOOL;
  bool is_exact = tl_run_is_exact(type);
  int64_t number = 0;
  bool drawn = false;
  for (uint32_t i = 0; i < op->num_operands; i++) drawn |= tl_run_env_at(env, tl_op_operand(op, i))->drawn;
  if (op->code == TL_OP_CONST) {
    const tl_attr *value = tl_op_attr(op, TL_ATTR_VALUE);
    number = value->v.i;
  } else if (op->code == TL_OP_SELECT) {
    number = tl_run_env_number(env, tl_op_operand(op, tl_run_env_number(env, tl_op_operand(op, 0)) ? 1 : 2));
  } else if ((op->code == TL_OP_CAST || op->code == TL_OP_ASSUME) && is_exact &&
             tl_run_is_exact(tl_op_operand(op, 0)->type)) {
    number = tl_run_env_number(env, tl_op_operand(op, 0));
    if (op->code == TL_OP_ASSUME) number = as_assumed(env, op, number);
  } else if (op->code == TL_OP_NOT && is_bool) {
    number = !tl_run_env_number(env, tl_op_operand(op, 0));
  } else if (op->code == TL_OP_CMP && tl_op_operand(op, 0)->type->kind == TL_TYPE_INDEX) {
    number = compare((int)tl_op_int(op, TL_ATTR_CMP, 0), tl_run_env_number(env, tl_op_operand(op, 0)),
                     tl_run_env_number(env, tl_op_operand(op, 1)));
  } else if ((!is_exact && !is_bool) || !run_integer(env, op, &number)) {
    // Loads, floats, launch values: small numbers, so that comparisons of indices go either way.
    number = is_bool ? draw_bool(env, op) : (int64_t)(draw(env, op) % 97);
    if (op->code == TL_OP_DYN_PARAM) number = tl_run_draw(env, tl_op_result(op, 0), 0);
    drawn = true;
  }
  tl_run_env_set(env, result, number, drawn);
}
