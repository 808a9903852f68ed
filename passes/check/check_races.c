// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check-races: refuses a `parallel` where elements certainly meet: one reads what another writes, or two write one
// place. The elements run in any order and on any thread, so the result would be chance.
//
//   parallel i in 64 { store(load(%s[i + 1]), %s[i]) }      error: element [0] reads %s[1], which element [1] writes
//
// Looks at accesses that every element makes (at most loops with constant bounds around them inside the parallel) at
// indices that are sums of loop indices, and tries pairs of elements at the corners of the box and as far apart as the
// indices' constants say, for so many pairs of accesses. Views of one memory are compared by bits where shapes differ.
// What it cannot show is left to the emulator. Atomics may meet. Changes nothing.
#include <string.h>

#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

enum { MAX_SAMPLES = 10, MAX_PAIRS = 1 << 18, MAX_ACCESS_PAIRS = 20000, MAX_VARIABLES = 2 * TL_MAX_RANK };

// An index that an access may use: of the parallel, or of a loop inside of it.
typedef struct variable {
  const tl_value *index;
  int64_t lower, extent;
} variable;

// An access whose place is known for every element.
typedef struct element_access {
  tl_op *op;
  int32_t rank;
  tl_affine index[TL_MAX_RANK];
  int64_t width;  // values of the last index that it takes
} element_access;

typedef struct race_search {
  tl_pass_context *context;
  const tl_op *parallel;
  int32_t loops;  // indices of the parallel: the first of the variables
  variable variables[MAX_VARIABLES];
  int32_t num_variables;
  TL_VEC(element_access) accesses;
  int64_t samples[MAX_VARIABLES][MAX_SAMPLES];  // values of each variable that are tried
  int32_t num_samples[MAX_VARIABLES];
} race_search;

static bool is_variable(const race_search *search, const tl_value *symbol) {
  for (int32_t v = 0; v < search->num_variables; v++) {
    if (search->variables[v].index == symbol) return true;
  }
  return false;
}

// Whether the form is made of variables and of values from outside of the parallel.
static bool is_simple(const race_search *search, const tl_affine *form) {
  if (!form->valid) return false;
  for (int32_t i = 0; i < form->num_terms; i++) {
    const tl_value *symbol = form->terms[i].symbol;
    if (is_variable(search, symbol)) continue;
    const tl_op *home = symbol->def ? symbol->def : symbol->block->parent;
    if (tl_op_is_inside(home, search->parallel)) return false;
  }
  return true;
}

// A loop that certainly runs through all of its range, as a variable.
static bool add_loop(race_search *search, const tl_op *loop) {
  int64_t extent;
  tl_constant_loop known;
  if (!tl_loop_is_constant(loop, &known) || known.step != 1) return false;
  if (tl_op_has(loop, TL_ATTR_WHILE) || search->num_variables == MAX_VARIABLES) return false;
  if (__builtin_sub_overflow(known.upper, known.lower, &extent) || extent < 1) return false;
  search->variables[search->num_variables++] = (variable){loop->regions[0]->args[0], known.lower, extent};
  return true;
}

// Collects the accesses that every element makes: not inside branches.
static void collect(race_search *search, const tl_block *block) {
  for (tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_FOR && add_loop(search, op)) collect(search, op->regions[0]);
    if (op->code != TL_OP_LOAD && op->code != TL_OP_STORE) continue;
    if (tl_element_buffer(op)->type->scope == TL_SCOPE_LOCAL) continue;
    element_access access = {.op = op, .rank = (int32_t)tl_element_rank(op), .width = 1};
    bool simple = true;
    for (int32_t d = 0; d < access.rank; d++) {
      access.index[d] = tl_affine_of(tl_element_index(op, (uint32_t)d));
      simple = simple && is_simple(search, &access.index[d]);
    }
    if (simple) tl_vec_push(&search->accesses, access);
  }
}

// `offset` from the variable's first value.
static void add_sample(race_search *search, int32_t v, int64_t offset) {
  if (offset < 0 || offset >= search->variables[v].extent) return;
  int64_t value = search->variables[v].lower + offset;
  for (int32_t i = 0; i < search->num_samples[v]; i++) {
    if (search->samples[v][i] == value) return;
  }
  if (search->num_samples[v] < MAX_SAMPLES) search->samples[v][search->num_samples[v]++] = value;
}

// The values to try for two accesses: the ends, and what brings them together.
static void choose_samples(race_search *search, const element_access *a, const element_access *b) {
  for (int32_t v = 0; v < search->num_variables; v++) {
    bool used = v < search->loops;
    search->num_samples[v] = 0;
    add_sample(search, v, 0);
    for (int32_t d = 0; d < a->rank; d++) {
      int64_t apart, step = tl_affine_coefficient(&a->index[d], search->variables[v].index);
      if (step == 0) step = tl_affine_coefficient(&b->index[d], search->variables[v].index);
      used = used || step != 0;
      if (step == 0 || step == INT64_MIN) continue;
      if (__builtin_sub_overflow(a->index[d].constant, b->index[d].constant, &apart) || apart == INT64_MIN) continue;
      if (apart % step != 0 && a->width == 1 && b->width == 1) continue;
      int64_t distance = apart / step;
      add_sample(search, v, distance < 0 ? -distance : distance);
    }
    if (!used) continue;
    add_sample(search, v, 1);
    add_sample(search, v, search->variables[v].extent - 1);
  }
}

// The next combination of samples, like the digits of a number; false after the last.
static bool advance(const race_search *search, int32_t *digits) {
  for (int32_t v = search->num_variables - 1; v >= 0; v--) {
    if (++digits[v] < search->num_samples[v]) return true;
    digits[v] = 0;
  }
  return false;
}

// Part of an index that the variables make; false where it leaves 64 bits.
static bool own_part(const race_search *search, const tl_affine *form, const int32_t *digits, int64_t *out) {
  *out = form->constant;
  for (int32_t v = 0; v < search->num_variables; v++) {
    int64_t coefficient = tl_affine_coefficient(form, search->variables[v].index), term;
    if (__builtin_mul_overflow(coefficient, search->samples[v][digits[v]], &term) ||
        __builtin_add_overflow(*out, term, out))
      return false;
  }
  return true;
}

// Whether the parts from outside of the parallel are the same in both.
static bool same_outside(const race_search *search, const tl_affine *a, const tl_affine *b) {
  tl_affine difference = tl_affine_sub(a, b);
  if (!difference.valid) return false;
  for (int32_t i = 0; i < difference.num_terms; i++) {
    if (!is_variable(search, difference.terms[i].symbol)) return false;
  }
  return true;
}

static void print_element(const race_search *search, const int32_t *digits, tl_strbuf *out) {
  for (int32_t loop = 0; loop < search->loops; loop++) {
    tl_strbuf_appendf(out, "%s%lld", loop ? ", " : "", (long long)search->samples[loop][digits[loop]]);
  }
}

// Whether an element of the parallel that makes both accesses makes them in one place: it updates that place.
static bool is_one_element(const element_access *a, const element_access *b) {
  for (int32_t d = 0; d < a->rank; d++) {
    tl_affine difference = tl_affine_sub(&a->index[d], &b->index[d]);
    if (!difference.valid || difference.num_terms || difference.constant) return false;
  }
  return true;
}

static void report(race_search *search, const element_access *first, const int32_t *p, const element_access *second,
                   const int32_t *q) {
  tl_strbuf a, b;
  tl_strbuf_init(&a);
  tl_strbuf_init(&b);
  print_element(search, p, &a);
  print_element(search, q, &b);
  const char *name = tl_buffer_name(tl_element_buffer(first->op));
  tl_diags *diags = search->context->diags;
  bool reads = first->op->code == TL_OP_LOAD;
  tl_diag *diag = tl_diag_report(diags, TL_DIAG_PARALLEL_RACE, first->op->loc,
                                 reads ? "element (%s) of the parallel reads a place of '%s' that element (%s) writes"
                                       : "elements (%s) and (%s) of the parallel write one place of '%s'",
                                 tl_strbuf_c(&a), reads ? name : tl_strbuf_c(&b), reads ? tl_strbuf_c(&b) : name);
  const char *other = tl_buffer_name(tl_element_buffer(second->op));
  if (strcmp(name, other) != 0)
    tl_diag_add_note(diags, diag, second->op->loc, "written here as '%s', which is the same memory", other);
  else if (second->op != first->op)
    tl_diag_add_note(diags, diag, second->op->loc, "written here");
  bool updates = reads && is_one_element(first, second);
  const char *hint = "let one element write it, or use `atomic`";
  if (updates) hint = "elements run in any order: an update that they share is an `atomic: value -> X[…]`";
  if (reads && !updates) hint = "elements run in any order: read another tile, or split the parallel in two";
  tl_diag_add_hint(diags, diag, "%s", hint);
  tl_strbuf_fini(&a);
  tl_strbuf_fini(&b);
}

// ---- names of one memory

static tl_affine scaled(tl_affine form, int64_t scale) {
  tl_affine sum = {.valid = true};
  for (; scale > 0; scale >>= 1, form = tl_affine_add(&form, &form))
    if (scale & 1) sum = tl_affine_add(&sum, &form);
  return sum;
}

// The access by bits from the start of its buffer, which is dense. False: a dim is not known, an index may leave its
// row, or the sum is too long.
static bool by_bits(const element_access *access, element_access *out) {
  const tl_type *type = tl_element_buffer(access->op)->type;
  int64_t bits = tl_dtype_bits(type->dtype), stride = bits;
  *out = (element_access){.op = access->op, .rank = 1, .width = bits, .index = {{.valid = true}}};
  for (int32_t d = access->rank - 1; d >= 0; d--) {
    tl_affine term = scaled(access->index[d], stride);
    out->index[0] = tl_affine_add(&out->index[0], &term);
    if (!out->index[0].valid) return false;
    if (d == 0) return true;
    tl_range range = tl_affine_range(&access->index[d]);
    if (range.lo < 0 || range.hi >= type->dims[d] || __builtin_mul_overflow(stride, type->dims[d], &stride))
      return false;
  }
  return true;
}

static bool has_same_elements(const tl_value *a, const tl_value *b) {
  if (a == b) return true;
  if (a->type->rank != b->type->rank || tl_dtype_bits(a->type->dtype) != tl_dtype_bits(b->type->dtype)) return false;
  for (int32_t d = 0; d < a->type->rank; d++)
    if (a->type->dims[d] < 0 || a->type->dims[d] != b->type->dims[d]) return false;
  return true;
}

// Whether the values that two accesses take of their index `d` certainly have one in common.
static bool overlap(const race_search *search, const element_access *a, const int32_t *p, const element_access *b,
                    const int32_t *q, int32_t d) {
  int64_t from, to, from_end, to_end;
  if (!own_part(search, &a->index[d], p, &from) || !own_part(search, &b->index[d], q, &to) ||
      __builtin_add_overflow(from, a->width, &from_end) || __builtin_add_overflow(to, b->width, &to_end))
    return false;
  return from < to_end && to < from_end;
}

// Whether two different elements certainly meet in the place that `a` and the store `b` name; reports.
static bool meet(race_search *search, const element_access *a, const element_access *b) {
  for (int32_t d = 0; d < a->rank; d++) {
    if (!same_outside(search, &a->index[d], &b->index[d])) return false;
  }
  choose_samples(search, a, b);
  int32_t p[MAX_VARIABLES] = {0};
  int64_t budget = MAX_PAIRS;
  do {
    int32_t q[MAX_VARIABLES] = {0};
    do {
      bool differ = false, same_place = true;
      for (int32_t loop = 0; loop < search->loops; loop++) differ = differ || p[loop] != q[loop];
      for (int32_t d = 0; d < a->rank && differ && same_place; d++) {
        same_place = overlap(search, a, p, b, q, d);
      }
      if (!differ || !same_place) continue;
      report(search, a, p, b, q);
      return true;
    } while (advance(search, q) && --budget > 0);
  } while (advance(search, p) && budget > 0);
  return false;
}

static void check_parallel(tl_op *op, void *user) {
  if (op->code != TL_OP_PARALLEL) return;
  race_search search = {.context = user, .parallel = op};
  const int64_t *extents = tl_op_ints(op, TL_ATTR_EXTENTS, &search.loops);
  for (int32_t v = 0; v < search.loops; v++) search.variables[v] = (variable){op->regions[0]->args[v], 0, extents[v]};
  search.num_variables = search.loops;
  collect(&search, op->regions[0]);
  int32_t left = MAX_ACCESS_PAIRS;
  for (size_t s = 0; s < search.accesses.len && left > 0; s++) {
    const element_access *store = &search.accesses.items[s];
    if (store->op->code != TL_OP_STORE) continue;
    for (size_t i = 0; i < search.accesses.len && left > 0; i++) {
      const element_access *other = &search.accesses.items[i];
      const tl_value *read = tl_element_buffer(other->op), *written = tl_element_buffer(store->op);
      // Two stores are one pair.
      if (tl_buffer_root(read) != tl_buffer_root(written) || (other->op->code != TL_OP_LOAD && i < s)) continue;
      left--;
      element_access a = *other, b = *store;
      if (!has_same_elements(read, written) && !(by_bits(other, &a) && by_bits(store, &b))) continue;
      if (meet(&search, &a, &b)) break;
    }
  }
  tl_vec_fini(&search.accesses);
}

tl_status tl_pass_check_races(tl_pass_context *context) {
  tl_walk_module(context->module, check_parallel, context);
  return TL_OK;
}
