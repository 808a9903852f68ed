// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// unroll-and-jam: iterations of a parallel that read the same elements go to one thread, side by side.
//
//   parallel {extents = [8, 256]} do(%w, %c) {          parallel {extents = [2, 256]} do(%v, %c) {
//     %a = load %X[%w, %c]                                %w0 = 4 * %v; %w1 = 4 * %v + 1; …
//     %b = load %X[%w + 1, %c]                    →       %a0 = load %X[%w0, %c]; %a1 = load %X[%w1, %c]; …
//     %k = load %K[%c]; … store                           %b0 is %a1, %b1 is %a2, …; one %k for all of them; … stores
//   }                                                   }
//
// A stencil's element is read once for each of its taps, and weights once for each pixel: that many loads and
// conversions are more than an element has time for at the memory's rate. Neighbours along the dim in which the reads
// overlap share them in registers. Each op stands beside its copies, so that a shared value lives for as long as they
// take and not for a whole iteration.
//
// Needs choose-schedule (threads are known); before infer-layouts. Parallels without results and synchronisation, whose
// dim divides, and of which enough is left for all threads.
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

enum {
  MAX_FACTOR = 4,
  MIN_LOADS = 4,      // of an iteration: what fewer cost goes by beside the memory
  MAX_LOADS = 64,     // that are compared with one another
  MAX_ELEMENTS = 32,  // of a thread at once, each with a register or two
  MIN_SAVED_PERCENT = 33
};

typedef TL_VEC(tl_op *) op_list;

typedef struct jamming {
  tl_pass_context *context;
  tl_op *parallel;
  op_list loads;   // in the parallel's own block
  int32_t vector;  // elements that a thread takes along the last dim
  bool fits;
} jamming;

// ---- what is there

static void look_at(tl_op *op, void *user) {
  jamming *self = user;
  const tl_op_info *info = tl_op_info_of(op->code);
  bool is_element = op->code == TL_OP_LOAD || op->code == TL_OP_STORE;
  bool is_plain = is_element || op->code == TL_OP_IF || op->code == TL_OP_YIELD || (info->flags & TL_OPFLAG_PURE) != 0;
  if (op == self->parallel) return;
  self->fits &= is_plain;
  if (!is_element) return;
  const tl_value *buffer = tl_element_buffer(op);
  self->fits &= buffer->type->scope != TL_SCOPE_LOCAL;
  int32_t vector = tl_element_vector(op, self->parallel, 128 / tl_dtype_bits(buffer->type->dtype), true);
  if (vector > self->vector) self->vector = vector;
  if (op->code == TL_OP_LOAD && op->parent->parent == self->parallel) tl_vec_push(&self->loads, op);
}

// Whether the body writes what it reads: an iteration's loads may not move over another's stores then.
static bool writes_what_it_reads(tl_op *parallel) {
  tl_effect_list effects = {0};
  tl_effects_inside(parallel, &effects);
  bool found = false;
  for (size_t i = 0; i < effects.len && !found; i++) {
    for (size_t j = 0; j < effects.len && !found; j++) {
      bool meet = effects.items[i].kind != TL_EFFECT_READ && effects.items[j].kind == TL_EFFECT_READ;
      found = meet && effects.items[i].root == effects.items[j].root;
    }
  }
  tl_vec_fini(&effects);
  return found;
}

// ---- what is saved

// Whether iteration `i` of load `a` and iteration `j` of load `b` read one element, `along` being the index that counts
// iterations.
static bool same_element(const tl_op *a, int64_t i, const tl_op *b, int64_t j, const tl_value *along) {
  if (tl_element_buffer(a) != tl_element_buffer(b)) return false;
  if (tl_op_arg(a, TL_GROUP_LOAD_pad) != tl_op_arg(b, TL_GROUP_LOAD_pad)) return false;
  for (uint32_t d = 0; d < tl_element_rank(a); d++) {
    tl_affine left = tl_affine_of(tl_element_index(a, d)), right = tl_affine_of(tl_element_index(b, d));
    if (!left.valid || !right.valid) return false;
    tl_affine rest = tl_affine_sub(&left, &right);
    int64_t by = tl_affine_coefficient(&left, along);
    if (!rest.valid || rest.num_terms > 0 || by > INT32_MAX || by < -INT32_MAX) return false;
    if (rest.constant + by * (i - j) != 0) return false;
  }
  return true;
}

// Loads that `factor` iterations side by side need.
static size_t distinct_loads(const jamming *self, int64_t factor, const tl_value *along) {
  size_t distinct = 0, all = self->loads.len * (size_t)factor;
  for (size_t n = 0; n < all; n++) {
    bool is_known = false;
    for (size_t m = 0; m < n && !is_known; m++) {
      is_known = same_element(self->loads.items[n / (size_t)factor], (int64_t)(n % (size_t)factor),
                              self->loads.items[m / (size_t)factor], (int64_t)(m % (size_t)factor), along);
    }
    distinct += !is_known;
  }
  return distinct;
}

typedef struct choice {
  int32_t dim;
  int64_t factor;
  size_t loads;  // of all of its iterations
} choice;

// The dim and number of iterations with the fewest loads for each; a factor of 1: none is worth it.
static choice best_choice(const jamming *self, int32_t rank, const int64_t *extents, int64_t threads) {
  choice best = {.factor = 1, .loads = self->loads.len};
  int64_t elements = 1;
  for (int32_t d = 0; d < rank; d++) elements = elements > INT32_MAX / extents[d] ? INT32_MAX : elements * extents[d];
  for (int32_t d = 0; d + 1 < rank; d++) {
    for (int64_t factor = 2; factor <= MAX_FACTOR; factor *= 2) {
      bool enough = elements / self->vector / factor >= threads && factor * self->vector <= MAX_ELEMENTS;
      if (extents[d] % factor != 0 || !enough) break;
      size_t loads = distinct_loads(self, factor, self->parallel->regions[0]->args[d]);
      size_t before = self->loads.len * (size_t)factor;
      bool saves = (before - loads) * 100 >= before * MIN_SAVED_PERCENT;
      if (saves && loads * (size_t)best.factor < best.loads * (size_t)factor) best = (choice){d, factor, loads};
    }
  }
  return best;
}

// ---- rewriting

typedef struct rewriting {
  tl_builder builder;
  tl_value_map maps[MAX_FACTOR];  // of each iteration
  op_list loads;                  // made so far
} rewriting;

// The load made before that reads the same element; NULL: none.
static tl_op *find_load(const rewriting *self, const tl_op *load) {
  for (size_t i = 0; i < self->loads.len; i++) {
    if (same_element(self->loads.items[i], 0, load, 0, NULL)) return self->loads.items[i];
  }
  return NULL;
}

static void copy_op(rewriting *self, const tl_op *op, tl_value_map *map) {
  tl_op *copy = tl_op_clone(&self->builder, op, map);
  if (op->code != TL_OP_LOAD) return;
  tl_op *known = find_load(self, copy);
  if (!known) {
    tl_vec_push(&self->loads, copy);
    return;
  }
  tl_value_map_set(map, &op->results[0], &known->results[0]);
  tl_op_erase(copy);
}

static tl_op *make_parallel(jamming *self, tl_builder *builder, const int64_t *extents, int32_t rank) {
  tl_module *module = self->context->module;
  tl_op *jammed = tl_build(builder, TL_OP_PARALLEL, NULL, NULL, 0);
  tl_op_set_ints(module, jammed, TL_ATTR_EXTENTS, extents, rank);
  const tl_block *body = self->parallel->regions[0];
  for (uint32_t a = 0; a < body->num_args; a++)
    tl_block_add_arg(module, jammed->regions[0], body->args[a]->type, body->args[a]->name);
  return jammed;
}

static void jam(jamming *self, const choice *chosen, int32_t rank) {
  tl_module *module = self->context->module;
  rewriting work = {0};
  tl_builder_before(&work.builder, module, self->parallel);
  work.builder.loc = self->parallel->loc;
  int64_t extents[TL_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) extents[d] = tl_op_ints(self->parallel, TL_ATTR_EXTENTS, NULL)[d];
  extents[chosen->dim] /= chosen->factor;
  tl_op *jammed = make_parallel(self, &work.builder, extents, rank);
  const tl_block *from = self->parallel->regions[0];
  tl_block *to = jammed->regions[0];
  tl_builder_at_end(&work.builder, module, to);
  tl_value *factor = tl_build_index(&work.builder, chosen->factor);
  tl_value *first = tl_index_mul(&work.builder, to->args[chosen->dim], factor);
  for (int64_t k = 0; k < chosen->factor; k++) {
    for (uint32_t a = 0; a < from->num_args; a++) tl_value_map_set(&work.maps[k], from->args[a], to->args[a]);
    tl_value *offset = tl_build_index(&work.builder, k);
    tl_value_map_set(&work.maps[k], from->args[chosen->dim], tl_index_add(&work.builder, first, offset));
  }
  for (const tl_op *op = from->first; op; op = op->next) {
    bool is_end = op->code == TL_OP_YIELD;
    for (int64_t k = 0; k < (is_end ? 1 : chosen->factor); k++) copy_op(&work, op, &work.maps[k]);
  }
  for (int64_t k = 0; k < chosen->factor; k++) tl_value_map_fini(&work.maps[k]);
  tl_vec_fini(&work.loads);
}

static void visit(tl_op *op, void *user) {
  jamming self = {.context = user, .parallel = op, .vector = 1, .fits = true};
  if (op->code != TL_OP_PARALLEL || op->num_results > 0 || tl_op_has(op, TL_ATTR_ASYNC) || tl_op_has(op, TL_ATTR_VIA))
    return;
  int32_t rank = 0;
  const int64_t *extents = tl_op_ints(op, TL_ATTR_EXTENTS, &rank);
  tl_walk(op, look_at, &self);
  self.fits &= rank >= 2 && self.loads.len >= MIN_LOADS && self.loads.len <= MAX_LOADS;
  if (self.fits && !writes_what_it_reads(op)) {
    choice chosen = best_choice(&self, rank, extents, tl_op_threads(op));
    if (chosen.factor > 1) {
      jam(&self, &chosen, rank);
      tl_diag_report(self.context->diags, TL_DIAG_REMARK_ACCESS, op->loc,
                     "a thread takes %lld neighbours together, which need %zu loads in the place of %zu",
                     (long long)chosen.factor, chosen.loads, self.loads.len * (size_t)chosen.factor);
      tl_op_erase(op);
    }
  }
  tl_vec_fini(&self.loads);
}

tl_status tl_pass_unroll_and_jam(tl_pass_context *context) {
  tl_walk_module(context->module, visit, context);
  return TL_OK;
}
