// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Soundness of index analysis and simplification: random expressions inside a grid, a loop and a parallel are evaluated
// with random symbols; every range, divisor, proof and simplified value must agree.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/index/affine.h"
#include "ir/text/text.h"
#include "support/vec.h"

typedef struct env_entry {
  int64_t value;
  bool defined;  // false: overflow or division by zero on the way
  bool small;    // nothing on the way came near an overflow
} env_entry;

typedef struct lab {
  uint64_t state;
  tl_module *module;
  tl_builder b;
  TL_VEC(tl_value *) pool;   // index values
  TL_VEC(tl_value *) bools;  // conditions
  TL_VEC(const tl_value *) keys;
  TL_VEC(env_entry) env;  // of keys
  tl_value *dyn[2], *grid[2], *loop, *par[2], *byte;
} lab;

static uint32_t random_below(lab *l, uint32_t limit) {
  l->state = l->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(l->state >> 33) % limit;
}

static env_entry *lookup(lab *l, const tl_value *value) {
  for (size_t i = l->keys.len; i > 0; i--) {
    if (l->keys.items[i - 1] == value) return &l->env.items[i - 1];
  }
  return NULL;
}

static void bind(lab *l, const tl_value *value, int64_t number) {
  tl_vec_push(&l->keys, value);
  tl_vec_push(&l->env, (env_entry){number, true, true});
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static int64_t wrap(const tl_type *type, int64_t value) {
  if (type->kind != TL_TYPE_SCALAR) return value;
  int64_t store = 0;
  tl_dtype_store_int(type->dtype, &store, 0, value);
  return tl_dtype_load_int(type->dtype, &store, 0);
}

static bool compare(int64_t pred, int64_t a, int64_t b) {
  switch (pred) {
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
    default:
      return a >= b;
  }
}

// An index is a mathematical integer, the evaluation is not: simplified forms may pass through larger numbers.
static const int64_t small_limit = (int64_t)1 << 44;

static bool evaluate(lab *l, const tl_value *value, int64_t *out);

// What the op computes; false when it has no defined value.
static bool evaluate_op(lab *l, const tl_op *op, int64_t *out) {
  int64_t v[3] = {0};
  if (tl_value_const_int(op->results, out)) return true;
  for (uint32_t i = 0; i < op->num_operands; i++) {
    if (!evaluate(l, op->operands[i].value, &v[i])) return false;
  }
  int64_t a = v[0], b = v[1];
  switch (op->code) {
    case TL_OP_ADD:
      return !__builtin_add_overflow(a, b, out);
    case TL_OP_SUB:
      return !__builtin_sub_overflow(a, b, out);
    case TL_OP_MUL:
      return !__builtin_mul_overflow(a, b, out);
    case TL_OP_NEG:
      return !__builtin_sub_overflow(0, a, out);
    case TL_OP_FLOORDIV:
      if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
      *out = floor_div(a, b);
      return true;
    case TL_OP_MOD:
      if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
      *out = a - b * floor_div(a, b);
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
    case TL_OP_SHL:
      return b >= 0 && b < 62 && !__builtin_mul_overflow(a, (int64_t)1 << b, out);
    case TL_OP_SHR:
      *out = a >> (b & 63);
      return b >= 0 && b < 63;
    case TL_OP_CMP:
      *out = compare(tl_op_int(op, TL_ATTR_CMP, 0), a, b);
      return true;
    case TL_OP_SELECT:
      *out = a ? b : v[2];
      return true;
    case TL_OP_CAST:
      *out = a;
      return true;
    default:
      ck_abort_msg("%s", tl_op_info_of(op->code)->name);
  }
  return false;
}

static bool evaluate(lab *l, const tl_value *value, int64_t *out) {
  env_entry *known = lookup(l, value);
  if (known == NULL) {
    // No ck_assert for what is right: it costs a system call.
    if (value->def == NULL) ck_abort_msg("a symbol without a value");
    int64_t number = 0;
    bool defined = evaluate_op(l, value->def, &number), small = number >= -small_limit && number <= small_limit;
    for (uint32_t i = 0; i < value->def->num_operands; i++) {
      const env_entry *operand = lookup(l, value->def->operands[i].value);
      small = small && (operand == NULL || operand->small);
    }
    tl_vec_push(&l->keys, value);
    tl_vec_push(&l->env, (env_entry){wrap(value->type, number), defined, small});
    known = &tl_vec_last(&l->env);
  }
  *out = known->value;
  return known->defined;
}

static tl_value *pick(lab *l) {
  return l->pool.items[random_below(l, (uint32_t)l->pool.len)];
}

static tl_value *small_const(lab *l) {
  static const int64_t values[] = {1, 2, 3, 4, 7, 8, 16, 56, 64, 128, -1, -3, 0, 100};
  return tl_build_index(&l->b, values[random_below(l, sizeof(values) / sizeof(values[0]))]);
}

static const tl_opcode binary_codes[] = {TL_OP_ADD, TL_OP_SUB, TL_OP_MUL, TL_OP_FLOORDIV, TL_OP_MOD,      TL_OP_MIN,
                                         TL_OP_MAX, TL_OP_ADD, TL_OP_MUL, TL_OP_MOD,      TL_OP_FLOORDIV, TL_OP_SUB,
                                         TL_OP_AND, TL_OP_OR,  TL_OP_XOR, TL_OP_SHL,      TL_OP_SHR};

static tl_value *random_value(lab *l) {
  tl_value *a = pick(l), *b = random_below(l, 2) ? pick(l) : small_const(l);
  switch (random_below(l, 12)) {
    case 0:
      return tl_build_unary(&l->b, TL_OP_NEG, a);
    case 1: {
      tl_value *condition = tl_build_cmp(&l->b, (int)random_below(l, TL_CMP_COUNT), a, b);
      tl_vec_push(&l->bools, condition);
      return tl_build_select(&l->b, condition, pick(l), pick(l));
    }
    case 2: {
      static const tl_dtype dtypes[] = {TL_DTYPE_I8,  TL_DTYPE_U8,  TL_DTYPE_I32,
                                        TL_DTYPE_U32, TL_DTYPE_I64, TL_DTYPE_I16};
      const tl_type *type = tl_type_scalar(l->module, dtypes[random_below(l, 6)]);
      tl_value *x = tl_build_cast(&l->b, a, type), *y = tl_build_cast(&l->b, b, type);
      static const tl_opcode codes[] = {TL_OP_ADD, TL_OP_SUB, TL_OP_MUL, TL_OP_MIN};
      return tl_build_cast(&l->b, tl_build_binary(&l->b, codes[random_below(l, 4)], x, y), tl_type_index(l->module));
    }
    default:
      return tl_build_binary(&l->b, binary_codes[random_below(l, sizeof(binary_codes) / sizeof(binary_codes[0]))], a,
                             b);
  }
}

// A kernel with dynamic params, a grid, a loop and a parallel; l->b builds inside.
static void start_lab(lab *l) {
  l->module = tl_module_create();
  tl_builder b;
  tl_builder_at_end(&b, l->module, l->module->body);
  tl_op *kernel = tl_build(&b, TL_OP_KERNEL, NULL, NULL, 0);
  tl_op_set_str(l->module, kernel, TL_ATTR_NAME, TL_STR("lab"));
  tl_builder_at_end(&b, l->module, kernel->regions[0]);
  const tl_type *index = tl_type_index(l->module);
  static const int64_t divisors[] = {1, 8, 16, 64, 128, 3};
  for (int i = 0; i < 2; i++) {
    tl_op *dyn = tl_build(&b, TL_OP_DYN_PARAM, NULL, &index, 1);
    tl_op_set_str(l->module, dyn, TL_ATTR_NAME, i ? TL_STR("N") : TL_STR("M"));
    tl_op_set_int(l->module, dyn, TL_ATTR_DIVISOR, divisors[random_below(l, 6)]);
    l->dyn[i] = dyn->results;
  }
  static const int64_t blocks[] = {1, 16, 64, 128, 100};
  tl_value *block = tl_build_index(&b, blocks[random_below(l, 5)]);
  tl_value *extents[2] = {tl_index_ceildiv(&b, l->dyn[0], block), tl_build_index(&b, 1 + random_below(l, 9))};
  tl_op *grid = tl_build(&b, TL_OP_GRID, (tl_group[]){{extents, 2}}, (const tl_type *[]){index, index}, 2);
  tl_op_set_str(l->module, grid, TL_ATTR_NAMES, TL_STR("x,y"));
  const tl_type *u8 = tl_type_scalar(l->module, TL_DTYPE_U8);
  tl_op *arg = tl_build(&b, TL_OP_SCALAR_ARG, NULL, &u8, 1);
  tl_op_set_str(l->module, arg, TL_ATTR_NAME, TL_STR("byte"));
  tl_op_set_int(l->module, arg, TL_ATTR_ARG, 0);
  l->byte = arg->results;
  static const int64_t steps[] = {1, 1, 1, 16, 64, 7, -1, -16};
  int64_t step = steps[random_below(l, 8)];
  tl_value *lower = random_below(l, 2) ? tl_build_index(&b, 0) : tl_index_mul(&b, grid->results, block);
  tl_value *upper = random_below(l, 3) ? l->dyn[1] : tl_index_ceildiv(&b, l->dyn[1], block);
  if (step < 0) {
    tl_value *swap = lower;
    lower = upper;
    upper = tl_index_sub(&b, swap, tl_build_index(&b, 1));
  }
  tl_group groups[] = {{&lower, 1}, {&upper, 1}, {(tl_value *[]){tl_build_index(&b, step)}, 1}, {0}};
  tl_op *loop = tl_build(&b, TL_OP_FOR, groups, NULL, 0);
  l->loop = tl_block_add_arg(l->module, loop->regions[0], index, "k");
  tl_builder_at_end(&b, l->module, loop->regions[0]);
  tl_op *parallel = tl_build(&b, TL_OP_PARALLEL, NULL, NULL, 0);
  int64_t sizes[2] = {1 + random_below(l, 128), blocks[random_below(l, 5)]};
  tl_op_set_ints(l->module, parallel, TL_ATTR_EXTENTS, sizes, 2);
  for (int i = 0; i < 2; i++) l->par[i] = tl_block_add_arg(l->module, parallel->regions[0], index, i ? "j" : "i");
  tl_builder_at_end(&l->b, l->module, parallel->regions[0]);
  tl_value *seed[] = {l->dyn[0], l->dyn[1], grid->results, grid->results + 1,
                      l->loop,   l->par[0], l->par[1],     tl_build_cast(&l->b, l->byte, index),
                      block,     extents[0]};
  for (size_t i = 0; i < sizeof(seed) / sizeof(seed[0]); i++) tl_vec_push(&l->pool, seed[i]);
  // The usual index of a row or a column.
  tl_vec_push(&l->pool,
              tl_build_binary(&l->b, TL_OP_ADD, tl_build_binary(&l->b, TL_OP_MUL, grid->results, block), l->par[1]));
  tl_vec_push(&l->pool, tl_build_binary(&l->b, TL_OP_ADD, l->loop, l->par[1]));
  l->grid[0] = grid->results;
  l->grid[1] = grid->results + 1;
}

// Values for the symbols as a launch could have them; false when the drawn sizes leave nothing to run.
static bool draw_env(lab *l) {
  tl_vec_clear(&l->keys);
  tl_vec_clear(&l->env);
  for (int i = 0; i < 2; i++) {
    int64_t divisor = tl_op_int(l->dyn[i]->def, TL_ATTR_DIVISOR, 1);
    bind(l, l->dyn[i], (int64_t)random_below(l, 12) * divisor * (random_below(l, 2) ? 1 : 17));
  }
  const tl_op *grid = l->grid[0]->def;
  for (int i = 0; i < 2; i++) {
    int64_t extent;
    if (!evaluate(l, grid->operands[i].value, &extent) || extent <= 0) return false;
    bind(l, l->grid[i], random_below(l, 3) ? random_below(l, (uint32_t)extent) : extent - 1);
  }
  bind(l, l->byte, random_below(l, 256));
  const tl_op *loop = l->loop->block->parent;
  int64_t bounds[3];
  for (uint32_t i = 0; i < 3; i++) {
    if (!evaluate(l, loop->operands[i].value, &bounds[i])) return false;
  }
  int64_t span = bounds[2] > 0 ? bounds[1] - bounds[0] : bounds[0] - bounds[1];
  int64_t size = bounds[2] > 0 ? bounds[2] : -bounds[2];
  if (span <= 0) return false;
  int64_t count = (span + size - 1) / size;
  bind(l, l->loop, bounds[0] + bounds[2] * (random_below(l, 3) ? random_below(l, (uint32_t)count) : count - 1));
  const tl_attr *extents = tl_op_attr(l->par[0]->block->parent, TL_ATTR_EXTENTS);
  for (int i = 0; i < 2; i++) {
    int64_t extent = extents->v.ints.items[i];
    bind(l, l->par[i], random_below(l, 3) ? random_below(l, (uint32_t)extent) : extent - 1);
  }
  return true;
}

typedef struct claim {
  tl_value *a, *b;
  int64_t offset;
  bool lt, le, equal, lt_offset;
} claim;

// The module, the value and the symbols, on standard error: a message of Check is too short for them.
static void explain(lab *l, const tl_value *value) {
  tl_strbuf out;
  tl_strbuf_init(&out);
  tl_module_print(l->module, &out);
  tl_strbuf_append_c(&out, "value: ");
  if (value->def) tl_op_print(value->def, &out);
  for (size_t i = 0; i < 8 && i < l->keys.len; i++) {
    tl_strbuf_appendf(&out, "symbol %zu = %lld\n", i, (long long)l->env.items[i].value);
  }
  fputs(tl_strbuf_c(&out), stderr);
  tl_strbuf_fini(&out);
}

static void check_value(lab *l, tl_value *value, tl_range range, int64_t divisor) {
  int64_t number;
  if (!evaluate(l, value, &number)) return;
  bool inside = range.lo <= number && number <= range.hi;
  bool divides = divisor == 0 ? number == 0 : number % divisor == 0;
  if (inside && divides) return;
  explain(l, value);
  ck_abort_msg("%lld, but [%lld, %lld] and divisor %lld", (long long)number, (long long)range.lo, (long long)range.hi,
               (long long)divisor);
}

static void check_claim(lab *l, const claim *c) {
  int64_t a, b;
  if (!evaluate(l, c->a, &a) || !evaluate(l, c->b, &b)) return;
  bool good = (!c->lt || a < b) && (!c->le || a <= b) && (!c->equal || a == b) && (!c->lt_offset || a + c->offset < b);
  if (!good) {
    explain(l, c->a);
    ck_abort_msg("claims lt %d le %d equal %d of %lld and %lld", c->lt, c->le, c->equal, (long long)a, (long long)b);
  }
}

// Pairs of a plain value and what simplification made of it.
typedef struct pair {
  tl_value *plain, *simple;
} pair;

static void check_pair(lab *l, const pair *p) {
  int64_t plain, simple;
  if (!evaluate(l, p->plain, &plain) || !lookup(l, p->plain)->small) return;
  bool defined = evaluate(l, p->simple, &simple);
  if (defined && plain == simple) return;
  explain(l, p->plain);
  ck_abort_msg("%lld, simplified %lld (%d)", (long long)plain, (long long)simple, defined);
}

static tl_value *build_simple(tl_builder *b, tl_opcode code, tl_value *x, tl_value *y) {
  switch (code) {
    case TL_OP_ADD:
      return tl_index_add(b, x, y);
    case TL_OP_SUB:
      return tl_index_sub(b, x, y);
    case TL_OP_MUL:
      return tl_index_mul(b, x, y);
    case TL_OP_FLOORDIV:
      return tl_index_floordiv(b, x, y);
    case TL_OP_MOD:
      return tl_index_mod(b, x, y);
    case TL_OP_MIN:
      return tl_index_min(b, x, y);
    case TL_OP_MAX:
      return tl_index_max(b, x, y);
    default:
      return tl_build_binary(b, code, x, y);
  }
}

static int run_lab(uint64_t seed) {
  lab l = {.state = seed * 1000003};
  start_lab(&l);
  TL_VEC(claim) claims = {0};
  TL_VEC(pair) pairs = {0};
  TL_VEC(tl_range) ranges = {0};
  TL_VEC(int64_t) divisors = {0};
  for (int i = 0; i < 25; i++) {
    tl_value *value = random_value(&l);
    tl_vec_push(&l.pool, value);
  }
  int proven = 0;
  for (int i = 0; i < 60; i++) {
    claim c = {pick(&l), pick(&l), random_below(&l, 64), false, false, false, false};
    c.lt = tl_prove_lt(c.a, c.b);
    c.le = tl_prove_le(c.a, c.b);
    c.equal = tl_prove_equal(c.a, c.b);
    c.lt_offset = tl_prove_lt_offset(c.a, c.offset, c.b);
    proven += c.lt;
    tl_vec_push(&claims, c);
    tl_opcode code = binary_codes[random_below(&l, 12)];
    pair p = {tl_build_binary(&l.b, code, c.a, c.b), build_simple(&l.b, code, c.a, c.b)};
    tl_vec_push(&pairs, p);
    tl_value *folded = tl_fold_op(&l.b, p.plain->def);
    if (folded) tl_vec_push(&pairs, (pair){p.plain, folded});
    // With a constant on the right there is more to simplify.
    tl_value *constant = small_const(&l);
    tl_vec_push(&pairs, (pair){tl_build_binary(&l.b, code, c.a, constant), build_simple(&l.b, code, c.a, constant)});
  }
  for (size_t i = 0; i < l.bools.len; i++) {
    tl_value *folded = tl_fold_op(&l.b, l.bools.items[i]->def);
    if (folded) tl_vec_push(&pairs, (pair){l.bools.items[i], folded});
  }
  for (size_t i = 0; i < l.pool.len; i++) {
    tl_vec_push(&ranges, tl_value_range(l.pool.items[i]));
    tl_vec_push(&divisors, tl_value_divisor(l.pool.items[i]));
  }
  for (int round = 0; round < 30; round++) {
    if (!draw_env(&l)) continue;
    for (size_t i = 0; i < l.pool.len; i++) check_value(&l, l.pool.items[i], ranges.items[i], divisors.items[i]);
    for (size_t i = 0; i < claims.len; i++) check_claim(&l, &claims.items[i]);
    for (size_t i = 0; i < pairs.len; i++) check_pair(&l, &pairs.items[i]);
  }
  tl_vec_fini(&claims);
  tl_vec_fini(&pairs);
  tl_vec_fini(&ranges);
  tl_vec_fini(&divisors);
  tl_vec_fini(&l.pool);
  tl_vec_fini(&l.bools);
  tl_vec_fini(&l.keys);
  tl_vec_fini(&l.env);
  tl_module_destroy(l.module);
  return proven;
}

START_TEST(random_expressions) {
  int proven = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) proven += run_lab(seed);
  // The proofs are not sound for want of trying.
  ck_assert_int_gt(proven, 400);
}
END_TEST

// Values that a loop carries, simulated.
static void run_loop_lab(uint64_t seed) {
  lab l = {.state = seed * 7919};
  l.module = tl_module_create();
  tl_builder b;
  tl_builder_at_end(&b, l.module, l.module->body);
  tl_op *kernel = tl_build(&b, TL_OP_KERNEL, NULL, NULL, 0);
  tl_builder_at_end(&b, l.module, kernel->regions[0]);
  const tl_type *index = tl_type_index(l.module);
  int64_t count = 1 + random_below(&l, 20), init[2];
  for (int i = 0; i < 2; i++) init[i] = (int64_t)random_below(&l, 8) - 2;
  tl_value *bounds[] = {tl_build_index(&b, 0), tl_build_index(&b, count), tl_build_index(&b, 1)};
  tl_value *inits[] = {tl_build_index(&b, init[0]), tl_build_index(&b, init[1])};
  tl_group groups[] = {{&bounds[0], 1}, {&bounds[1], 1}, {&bounds[2], 1}, {inits, 2}};
  tl_op *loop = tl_build(&b, TL_OP_FOR, groups, (const tl_type *[]){index, index}, 2);
  tl_value *args[3];
  for (int i = 0; i < 3; i++) args[i] = tl_block_add_arg(l.module, loop->regions[0], index, NULL);
  tl_builder_at_end(&l.b, l.module, loop->regions[0]);
  for (int i = 0; i < 3; i++) tl_vec_push(&l.pool, args[i]);
  for (int i = 0; i < 6; i++) {
    // A counter that starts over, now and then.
    tl_value *value = random_value(&l);
    if (random_below(&l, 3) == 0) {
      tl_value *next = tl_build_binary(&l.b, TL_OP_ADD, args[1 + random_below(&l, 2)], small_const(&l));
      tl_value *wraps = tl_build_cmp(&l.b, (int)random_below(&l, TL_CMP_COUNT), next, small_const(&l));
      value = random_below(&l, 2) ? tl_build_select(&l.b, wraps, tl_build_index(&l.b, 0), next)
                                  : tl_build_select(&l.b, wraps, next, tl_build_index(&l.b, 0));
    }
    tl_vec_push(&l.pool, value);
  }
  tl_value *next[] = {l.pool.items[3 + random_below(&l, 6)], l.pool.items[8]};
  tl_build_yield(&l.b, next, 2);
  TL_VEC(tl_range) ranges = {0};
  for (size_t i = 0; i < l.pool.len; i++) tl_vec_push(&ranges, tl_value_range(l.pool.items[i]));
  tl_range results[] = {tl_value_range(&loop->results[0]), tl_value_range(&loop->results[1])};
  int64_t carried[2] = {init[0], init[1]};
  bool defined = true;
  for (int64_t k = 0; k < count && defined; k++) {
    tl_vec_clear(&l.keys);
    tl_vec_clear(&l.env);
    bind(&l, args[0], k);
    for (int i = 0; i < 2; i++) bind(&l, args[i + 1], carried[i]);
    for (size_t i = 0; i < l.pool.len; i++) check_value(&l, l.pool.items[i], ranges.items[i], 1);
    for (int i = 0; i < 2; i++) defined = defined && evaluate(&l, next[i], &carried[i]);
  }
  for (int i = 0; i < 2 && defined; i++) ck_assert(results[i].lo <= carried[i] && carried[i] <= results[i].hi);
  tl_vec_fini(&ranges);
  tl_vec_fini(&l.pool);
  tl_vec_fini(&l.bools);
  tl_vec_fini(&l.keys);
  tl_vec_fini(&l.env);
  tl_module_destroy(l.module);
}

START_TEST(random_loops) {
  for (uint64_t seed = 1; seed <= 3000; seed++) run_loop_lab(seed);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir_affine_random");
  TCase *tests = tcase_create("random");
  tcase_set_timeout(tests, 100);
  tcase_add_test(tests, random_expressions);
  tcase_add_test(tests, random_loops);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
