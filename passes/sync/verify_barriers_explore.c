// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which numbers verify-barriers runs a kernel with. Bounds of loops are never set themselves, but what they follow from
// (their roots: params of the launch, places in the grid, elements of memory), so that all that follows from it agrees
// as it does on a GPU: the parts of a loop, copies that were taken out of it, other roles. Each loop has one of its
// roots set so that it becomes as short and as long as a ring can notice; what no loop sets is drawn.
#include <string.h>

#include "ir/index/affine.h"
#include "passes/sync/verify_barriers_internal.h"

enum { NUM_SEEDS = 6, MAX_OPS = 256, MAX_DEPTH = 64, NONE = -1 };

// ---- what bounds follow from

static bool is_bool(const tl_value *value) {
  return value->type->kind == TL_TYPE_SCALAR && value->type->dtype == TL_DTYPE_BOOL;
}

// Whether tl_run_scalar computes it from its operands.
static bool is_computed(const tl_op *op) {
  if (op->code == TL_OP_CONST) return true;
  bool is_place = op->code == TL_OP_GRID || op->code == TL_OP_TILE_INDEX;
  if (is_place || op->num_regions > 0 || op->num_results != 1 || op->num_operands == 0) return false;
  const tl_type *type = op->results[0].type;
  if (!(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) || (!tl_run_is_exact(type) && !is_bool(&op->results[0])))
    return false;
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_value *operand = tl_op_operand(op, i);
    if (op->code == TL_OP_CMP ? operand->type->kind != TL_TYPE_INDEX
                              : !tl_run_is_exact(operand->type) && !is_bool(operand))
      return false;
  }
  return true;
}

static const tl_value *extent_of(const tl_value *value) {
  const tl_op *op = value->def;
  int group = op->code == TL_OP_GRID ? TL_GROUP_GRID_extents : TL_GROUP_TILE_INDEX_extents;
  bool is_place = op->code == TL_OP_GRID || op->code == TL_OP_TILE_INDEX;
  return is_place && value->index < tl_op_group_len(op, group) ? tl_op_group_at(op, group, value->index) : NULL;
}

typedef struct tracing {
  tl_barrier_verifier *self;
  tl_run_ops ops;
  TL_VEC(size_t) roots;
} tracing;

static void trace(tracing *found, tl_value *value, int depth);

static size_t add_root(tl_barrier_verifier *self, tl_value *value) {
  for (size_t i = 0; i < self->bound_roots.len; i++) {
    const tl_value *known = self->bound_roots.items[i].value;
    if (known == value || (self->num_roles > 0 && tl_run_is_same(known, value))) return i;
  }
  size_t place = self->bound_roots.len;
  tl_run_root fresh = {.value = value, .extent = extent_of(value)};
  tl_vec_push(&self->bound_roots, fresh);
  tl_vec_push(&self->env.fixed, (tl_run_fixed){0});
  tl_run_env_fix(&self->env, value, place);
  if (!fresh.extent) return place;
  // What the extent follows from is known, too, if only to be drawn.
  tracing found = {.self = self};
  trace(&found, (tl_value *)fresh.extent, MAX_DEPTH);
  self->bound_roots.items[place].ops = found.ops;
  tl_vec_fini(&found.roots);
  return place;
}

static void note_root(tracing *found, tl_value *value) {
  size_t root = add_root(found->self, value);
  for (size_t i = 0; i < found->roots.len; i++)
    if (found->roots.items[i] == root) return;
  tl_vec_push(&found->roots, root);
}

// Adds the ops that compute the value, and its roots. What loops carry and count is neither.
static void trace(tracing *found, tl_value *value, int depth) {
  const tl_op *op = value->def;
  if (!op) return;
  for (size_t i = 0; i < found->ops.len; i++)
    if (found->ops.items[i] == op) return;
  if (!is_computed(op) || depth == 0 || found->ops.len >= MAX_OPS) {
    note_root(found, value);
    return;
  }
  for (uint32_t i = 0; i < op->num_operands; i++) trace(found, tl_op_operand(op, i), depth - 1);
  tl_vec_push(&found->ops, op);
}

// Where the iterations begin that the loop goes on with: its own, or those of the loop that ends there.
static tl_value *first_lower(const tl_barrier_verifier *self, const tl_op *loop) {
  tl_value *lower = tl_op_operand(loop, 0);
  for (size_t i = self->loops.len; i-- > 0;)
    if (tl_op_operand(self->loops.items[i], 1) == lower && self->loops.items[i] != loop)
      lower = tl_op_operand(self->loops.items[i], 0);
  return lower;
}

static void add_bounds(tl_barrier_verifier *self, const tl_op *loop) {
  tl_value *upper = tl_op_operand(loop, 1), *lower = first_lower(self, loop);
  tracing found = {.self = self};
  tl_run_bounds bounds = {.loop = loop, .upper = upper, .lower = lower};
  if (tl_op_has(loop, TL_ATTR_TILES)) {
    bounds.lower = NULL;  // how many tiles, not which
    note_root(&found, upper);
  } else {
    trace(&found, lower, MAX_DEPTH);
    trace(&found, tl_op_operand(loop, 2), MAX_DEPTH);
    trace(&found, upper, MAX_DEPTH);
  }
  bounds.ops = found.ops;
  bounds.roots.items = found.roots.items;
  bounds.roots.len = found.roots.len;
  bounds.roots.capacity = found.roots.capacity;
  tl_vec_push(&self->bounds, bounds);
}

// ---- which root a loop sets

// Places first, params last, which others follow from, but for conditions.
static int preference(const tl_run_root *root) {
  if (is_bool(root->value)) return 3;
  return root->extent ? 0 : root->value->def->code == TL_OP_DYN_PARAM ? 2 : 1;
}

static size_t count_open(const tl_barrier_verifier *self, const tl_run_bounds *bounds) {
  size_t count = 0;
  for (size_t i = 0; i < bounds->roots.len; i++) count += !self->bound_roots.items[bounds->roots.items[i]].is_set;
  return count;
}

// What is set decides the bounds, whatever else was drawn.
static void decide_bound(tl_barrier_verifier *self, const tl_value *value) {
  if (!tl_run_env_is_fixed(&self->env, value)) tl_run_env_fix(&self->env, value, TL_RUN_SETTLED);
}

static void set_root(tl_barrier_verifier *self, tl_run_bounds *bounds) {
  const tl_run_root *best = NULL;
  bool any_open = count_open(self, bounds) > 0;
  for (size_t i = 0; i < bounds->roots.len; i++) {
    const tl_run_root *root = &self->bound_roots.items[bounds->roots.items[i]];
    if ((any_open && root->is_set) || (best && preference(root) >= preference(best))) continue;
    best = root;
    bounds->sets = bounds->roots.items[i];
  }
  if (any_open) tl_vec_push(&self->order, bounds->sets);
  self->bound_roots.items[bounds->sets].is_set = true;
}

// Whether a loop that sets the root follows from one that is set behind it, and not the other way round.
static bool comes_after(const tl_barrier_verifier *self, size_t root, size_t other) {
  bool needs = false, is_needed = false;
  for (size_t i = 0; i < self->bounds.len; i++) {
    const tl_run_bounds *bounds = &self->bounds.items[i];
    for (size_t r = 0; r < bounds->roots.len; r++) {
      needs |= bounds->sets == root && bounds->roots.items[r] == other;
      is_needed |= bounds->sets == other && bounds->roots.items[r] == root;
    }
  }
  return needs && !is_needed;
}

// What others follow from is set before them.
static void sort_roots(tl_barrier_verifier *self) {
  size_t *order = self->order.items;
  for (size_t i = 0; i + 1 < self->order.len; i++) {
    size_t first = i;
    for (size_t j = i + 1; j < self->order.len; j++)
      if (comes_after(self, order[first], order[j])) first = j;
    size_t root = order[first];
    for (size_t j = first; j > i; j--) order[j] = order[j - 1];
    order[i] = root;
  }
}

// What another role computes as a root is, it has that number, too, whether or not a loop of its own follows from it: a
// role may have no more than the iterations that were taken out of a loop.
static void fix_in_other_roles(tl_op *op, void *user) {
  tl_barrier_verifier *self = user;
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_value *value = &op->results[i];
    if (tl_run_env_is_fixed(&self->env, value)) continue;
    for (size_t r = 0; r < self->bound_roots.len; r++)
      if (tl_run_is_same(self->bound_roots.items[r].value, value)) tl_run_env_fix(&self->env, value, r);
  }
}

void tl_run_fix_bounds(tl_barrier_verifier *self) {
  for (size_t i = 0; i < self->loops.len; i++) add_bounds(self, self->loops.items[i]);
  // First those that have the least choice.
  for (size_t done = 0; done < self->bounds.len; done++) {
    tl_run_bounds *next = NULL;
    for (size_t i = 0; i < self->bounds.len; i++) {
      tl_run_bounds *bounds = &self->bounds.items[i];
      size_t open = count_open(self, bounds);
      if (open > 0 && !bounds->is_decided && (!next || open < count_open(self, next))) next = bounds;
    }
    if (!next) break;
    next->is_decided = true;
    set_root(self, next);
  }
  for (size_t i = 0; i < self->bounds.len; i++)
    if (!self->bounds.items[i].is_decided && self->bounds.items[i].roots.len > 0)
      set_root(self, &self->bounds.items[i]);
  sort_roots(self);
  if (self->num_roles > 1) tl_walk(self->kernel, fix_in_other_roles, self);
  for (size_t i = 0; i < self->bounds.len; i++) {
    if (self->bounds.items[i].roots.len == 0) continue;
    for (uint32_t b = 0; b < 3; b++) decide_bound(self, tl_op_operand(self->bounds.items[i].loop, b));
  }
}

bool tl_run_is_explored(const tl_barrier_verifier *self, const tl_op *loop) {
  for (size_t i = 0; i < self->bounds.len; i++)
    if (self->bounds.items[i].loop == loop) return self->bounds.items[i].roots.len > 0;
  return false;
}

void tl_run_forget_bounds(tl_barrier_verifier *self) {
  for (size_t i = 0; i < self->bounds.len; i++) {
    tl_vec_fini(&self->bounds.items[i].ops);
    tl_vec_fini(&self->bounds.items[i].roots);
  }
  for (size_t i = 0; i < self->bound_roots.len; i++) tl_vec_fini(&self->bound_roots.items[i].ops);
  tl_vec_fini(&self->bounds);
  tl_vec_fini(&self->bound_roots);
  tl_vec_fini(&self->order);
  tl_vec_fini(&self->lengths);
}

// ---- numbers

static void compute(tl_barrier_verifier *self, const tl_run_ops *ops) {
  for (size_t i = 0; i < self->bound_roots.len; i++)
    tl_run_env_set(&self->env, self->bound_roots.items[i].value, 0, false);
  for (size_t i = 0; i < ops->len; i++) tl_run_scalar(&self->env, ops->items[i]);
}

// How many iterations the loop has; NONE where it ends before it begins, as what was taken out of it may notice.
static int64_t length_of(tl_barrier_verifier *self, const tl_run_bounds *bounds) {
  compute(self, &bounds->ops);
  int64_t upper = tl_run_env_number(&self->env, bounds->upper);
  int64_t lower = bounds->lower ? tl_run_env_number(&self->env, bounds->lower) : 0;
  int64_t step = bounds->lower ? tl_run_env_number(&self->env, tl_op_operand(bounds->loop, 2)) : 1;
  if (step == 0) step = 1;
  if (tl_op_has(bounds->loop, TL_ATTR_TILES)) return upper < TL_RUN_MAX_TILES ? upper : TL_RUN_MAX_TILES;
  bool is_none = step > 0 ? upper < lower : upper > lower;
  return is_none ? NONE : tl_trip_count(lower, upper, step);
}

static int64_t extent_now(tl_barrier_verifier *self, const tl_run_root *root) {
  compute(self, &root->ops);
  return tl_run_env_number(&self->env, root->extent);
}

// The numbers first, first + unit, …, `count` + 1 of them, that a root may be.
typedef struct choices {
  int64_t first, unit, count;
} choices;

// Whether places that were set before lie in the grid.
static bool are_places_right(tl_barrier_verifier *self, size_t root) {
  for (size_t i = 0; i < self->order.len && self->order.items[i] != root; i++) {
    const tl_run_root *place = &self->bound_roots.items[self->order.items[i]];
    if (place->extent && self->env.fixed.items[self->order.items[i]].number >= extent_now(self, place)) return false;
  }
  return true;
}

// Leaves out what is too small for those places: the larger a param is, the larger is the grid.
static void skip_wrong(tl_barrier_verifier *self, size_t root, choices *of) {
  int64_t low = 0, high = of->count + 1;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    self->env.fixed.items[root].number = of->first + middle * of->unit;
    if (are_places_right(self, root))
      high = middle;
    else
      low = middle + 1;
  }
  of->first += low * of->unit;
  of->count -= low;
}

static choices choices_of(tl_barrier_verifier *self, size_t place) {
  const int64_t most = (int64_t)1 << 24;
  const tl_run_root *root = &self->bound_roots.items[place];
  tl_range range = tl_value_range(root->value);
  choices out = {.unit = 1};
  if (root->value->def->code == TL_OP_DYN_PARAM) out.unit = tl_op_int(root->value->def, TL_ATTR_DIVISOR, 1);
  if (range.lo < 0) range.lo = range.hi < 0 ? range.hi : 0;
  if (root->extent && extent_now(self, root) - 1 < range.hi) range.hi = extent_now(self, root) - 1;
  out.first = (range.lo + out.unit - 1) / out.unit * out.unit;
  out.count = range.hi < out.first ? -1 : (range.hi - out.first) / out.unit;
  if (out.count > most) out.count = most;
  if (out.count >= 0) skip_wrong(self, place, &out);
  return out;
}

typedef struct numbers {
  TL_VEC(int64_t) items;
  TL_VEC(int64_t) lengths;  // of all loops of the root, a row for each number
} numbers;

static int64_t length_with(tl_barrier_verifier *self, const tl_run_bounds *bounds, const choices *of, int64_t choice) {
  self->env.fixed.items[bounds->sets].number = of->first + choice * of->unit;
  return length_of(self, bounds);
}

// Adds a choice unless all loops are as long with one that is there.
static void add_choice(tl_barrier_verifier *self, size_t root, const choices *of, int64_t choice, numbers *out) {
  if (choice < 0 || choice > of->count) return;
  size_t row = out->lengths.len, width = self->bounds.len;
  for (size_t i = 0; i < width; i++) {
    const tl_run_bounds *bounds = &self->bounds.items[i];
    bool is_of_root = bounds->roots.len > 0 && bounds->sets == root;
    tl_vec_push(&out->lengths, is_of_root ? length_with(self, bounds, of, choice) : 0);
  }
  for (size_t other = 0; other < row; other += width) {
    if (memcmp(&out->lengths.items[other], &out->lengths.items[row], width * sizeof(int64_t)) != 0) continue;
    out->lengths.len = row;
    return;
  }
  tl_vec_push(&out->items, of->first + choice * of->unit);
}

// Adds choices with which the loop has each number of iterations from the fewest up to what a ring can notice.
static void add_lengths(tl_barrier_verifier *self, const tl_run_bounds *bounds, const choices *of, numbers *out) {
  int64_t ends[] = {length_with(self, bounds, of, 0), length_with(self, bounds, of, of->count)};
  bool grows = ends[1] > ends[0];
  int64_t fewest = ends[!grows], most = fewest > self->max_depth ? fewest + 2 : self->max_depth + 2;
  for (int64_t wanted = fewest; wanted <= most; wanted++) {
    int64_t low = 0, high = of->count;
    while (low < high) {
      int64_t middle = low + (high - low) / 2, got = length_with(self, bounds, of, middle);
      if (grows ? got >= wanted : got <= wanted)
        high = middle;
      else
        low = middle + 1;
    }
    add_choice(self, bounds->sets, of, low - 1, out);
    add_choice(self, bounds->sets, of, low, out);
    if (wanted >= ends[grows]) break;  // there are no longer ones
  }
}

static void find_numbers(tl_barrier_verifier *self, size_t root, numbers *out) {
  choices of = choices_of(self, root);
  for (size_t i = 0; i < self->bounds.len && of.count >= 0; i++)
    if (self->bounds.items[i].roots.len > 0 && self->bounds.items[i].sets == root)
      add_lengths(self, &self->bounds.items[i], &of, out);
  // What neither grows nor shrinks has no such ends.
  for (int64_t choice = 0; choice < 3 && out->items.len < 3; choice++) add_choice(self, root, &of, choice, out);
}

// The number with which loops are longest, and not longer than as many iterations as there are slots.
static int64_t usual_number(const tl_barrier_verifier *self, const numbers *of) {
  int64_t best = of->items.items[0], longest = NONE;
  for (size_t n = 0; n < of->items.len; n++) {
    int64_t length = NONE;
    for (size_t i = 0; i < self->bounds.len; i++) {
      int64_t one = of->lengths.items[n * self->bounds.len + i];
      if (one > length) length = one;
    }
    if (length <= longest || length > self->max_depth) continue;
    longest = length;
    best = of->items.items[n];
  }
  return best;
}

// ---- the runs

// What no loop sets, or has not set yet.
static void draw_root(tl_barrier_verifier *self, size_t root) {
  const tl_run_root *of = &self->bound_roots.items[root];
  int64_t number = of->extent ? (int64_t)self->env.seed % 3 : tl_run_draw(&self->env, of->value, root);
  int64_t extent = of->extent ? extent_now(self, of) : 0;
  self->env.fixed.items[root] = (tl_run_fixed){extent > 0 ? number % extent : number, true};
}

enum { ALL_PAIRS = -1 };

// Whether a run of the seed had loops of these lengths; else there is one now.
static bool was_run(tl_barrier_verifier *self) {
  size_t row = self->lengths.len, width = self->bounds.len;
  for (size_t i = 0; i < width; i++) tl_vec_push(&self->lengths, length_of(self, &self->bounds.items[i]));
  for (size_t other = 0; other < row; other += width) {
    if (memcmp(&self->lengths.items[other], &self->lengths.items[row], width * sizeof(int64_t)) != 0) continue;
    self->lengths.len = row;
    return true;
  }
  return false;
}

// Sets the roots from place `at` of the order on, and runs: all numbers of the one at `focus`, and of the others a
// usual one; ALL_PAIRS: all of each.
static void explore_from(tl_barrier_verifier *self, size_t at, int64_t focus) {
  if (self->status || self->budget <= 0) return;
  if (at == self->order.len) {
    for (size_t i = 0; i < self->bound_roots.len; i++)
      if (self->bound_roots.items[i].extent && !self->bound_roots.items[i].is_set) draw_root(self, i);
    if (self->env.seed < 2 && was_run(self)) return;
    tl_run_once(self, self->env.seed);
    return;
  }
  size_t root = self->order.items[at];
  numbers found = {0};
  find_numbers(self, root, &found);
  bool all = focus == ALL_PAIRS || focus == (int64_t)at;
  for (size_t n = 0; n < found.items.len; n++) {
    int64_t number = all ? found.items.items[n] : usual_number(self, &found);
    self->env.fixed.items[root] = (tl_run_fixed){number, true};
    explore_from(self, at + 1, focus);
    if (!all) break;
  }
  tl_vec_fini(&found.items);
  tl_vec_fini(&found.lengths);
  draw_root(self, root);
}

static void explore_seed(tl_barrier_verifier *self, uint64_t seed) {
  self->env.seed = seed;
  tl_vec_clear(&self->lengths);
  for (int twice = 0; twice < 2; twice++)  // extents follow from others
    for (size_t i = 0; i < self->bound_roots.len; i++) draw_root(self, i);
  size_t count = self->order.len;
  if (count <= 2) explore_from(self, 0, ALL_PAIRS);
  for (size_t focus = 0; focus < count && count > 2; focus++) explore_from(self, 0, (int64_t)focus);
}

// All combinations for up to two roots, else one root at a time. Other seeds take other branches, where the first one
// came to some that it decides.
void tl_run_explore(tl_barrier_verifier *self) {
  self->has_drawn = false;
  for (uint64_t seed = 0; seed < NUM_SEEDS && !self->status && self->budget > 0; seed++) {
    explore_seed(self, seed);
    if (!self->has_drawn) break;
  }
  // Nothing was shown.
  if (self->num_runs == 0 && !self->status) self->budget = 0;
}
