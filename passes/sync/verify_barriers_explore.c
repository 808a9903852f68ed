// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which trip counts verify-barriers runs: it fixes what the bounds of loops follow from, and tries the numbers that
// make each loop as short and as long as a ring can notice. What two loops follow from together has one number for
// both.
#include "ir/index/affine.h"
#include "passes/sync/verify_barriers_internal.h"

enum { NUM_SEEDS = 6 };

// Whether the value's computation uses `what`.
static bool depends_on(const tl_value *value, const tl_value *what, int depth) {
  if (value == what) return true;
  if (value->def == NULL || depth == 0) return false;
  for (uint32_t i = 0; i < value->def->num_operands; i++) {
    if (depends_on(tl_op_operand(value->def, i), what, depth - 1)) return true;
  }
  return false;
}

static bool depends_on_fixed(const tl_run_env *env, const tl_value *value) {
  for (size_t i = 0; i < env->fixed_keys.len; i++) {
    if (depends_on(value, env->fixed_keys.items[i], 32)) return true;
  }
  return false;
}

// Where the trips of a loop with this bound stand among the fixed values; those of a new one start there.
static size_t find_fixed(const tl_barrier_verifier *self, const tl_value *upper) {
  for (size_t i = 0; self->num_roles > 0 && i < self->env.fixed_keys.len; i++)
    if (tl_run_is_same(self->env.fixed_keys.items[i], upper)) return self->env.fixed_at.items[i];
  return self->env.fixed_values.len;
}

// Upper bounds that a loop may have: pipeline starts copies of trips that it certainly makes without asking, and none
// of those that it cannot make.
static tl_range bounds_of(const tl_op *loop) {
  tl_value *lower = tl_op_operand(loop, 0), *upper = tl_op_operand(loop, 1);
  tl_range range = tl_value_range(upper);
  int64_t step, first = 0, trips = 0;
  bool counts = tl_value_const_int(tl_op_operand(loop, 2), &step) && step == 1 && !tl_op_has(loop, TL_ATTR_WHILE);
  if (!counts) return (tl_range){0, INT64_MAX};
  while (trips < TL_RUN_MAX_DEPTH && tl_prove_lt_offset(lower, trips, upper)) trips++;
  if (trips > 0 && tl_value_const_int(lower, &first)) trips += first;
  if (trips < range.lo) trips = range.lo < TL_RUN_MAX_DEPTH ? range.lo : TL_RUN_MAX_DEPTH;
  return (tl_range){trips, range.hi > trips ? range.hi : trips};
}

// Whether the value follows from one place of the grid alone, which `out` gets.
static bool follows_from_grid(tl_value *value, tl_value **out, int depth) {
  if (value->def == NULL || depth == 0) return false;
  if (value->def->code == TL_OP_GRID || value->def->code == TL_OP_TILE_INDEX) {
    if (*out && *out != value) return false;
    *out = value;
    return true;
  }
  if (!(tl_op_info_of(value->def->code)->flags & TL_OPFLAG_PURE)) return false;
  for (uint32_t i = 0; i < value->def->num_operands; i++) {
    if (!follows_from_grid(tl_op_operand(value->def, i), out, depth - 1)) return false;
  }
  return true;
}

// Whether the value is less the larger `place` is, as far as sums, quotients, minima and maxima tell: -1; 1: it is
// more; 0: neither.
static int direction_of(const tl_value *value, const tl_value *place, int depth) {
  const tl_op *op = value->def;
  if (value == place) return 1;
  if (!op || depth == 0 || op->num_operands != 2) return 0;
  int a = direction_of(tl_op_operand(op, 0), place, depth - 1),
      b = direction_of(tl_op_operand(op, 1), place, depth - 1);
  bool adds = op->code == TL_OP_ADD || op->code == TL_OP_MIN || op->code == TL_OP_MAX;
  bool scales = op->code == TL_OP_MUL || op->code == TL_OP_FLOORDIV;
  if (op->code == TL_OP_SUB) b = -b;
  if (!adds && !scales && op->code != TL_OP_SUB) return 0;
  return a + b > 0 ? 1 : a + b < 0 ? -1 : 0;
}

// What the exploration sets for a loop's upper bound: the place in the grid that it follows from, what it adds a
// constant to, or the bound itself. Other bounds may follow from the same.
static const tl_value *key_of(const tl_op *loop, tl_run_bound *out) {
  tl_value *upper = tl_op_operand(loop, 1), *place = NULL;
  tl_affine sum = tl_affine_of(upper);
  *out = (tl_run_bound){.range = {0, INT64_MAX}};
  if (follows_from_grid(upper, &place, 32) && place) {
    out->range = tl_value_range(place);
    // Short loops come first.
    out->is_turned = out->range.hi < INT64_MAX && direction_of(upper, place, 32) < 0;
    if (out->is_turned) *out = (tl_run_bound){{0, out->range.hi - out->range.lo}, out->range.hi, true};
    return place;
  }
  if (!tl_op_has(loop, TL_ATTR_TILES)) out->range = bounds_of(loop);
  if (!sum.valid || sum.num_terms != 1 || sum.terms[0].coefficient != 1) return upper;
  out->added = sum.constant;
  return sum.terms[0].symbol;
}

// ---- what several bounds follow from

// The one value, no index of a loop, that integer arithmetic makes the value of; NULL where there is none.
static bool find_root(tl_value *value, tl_value **root, int depth) {
  int64_t constant;
  if (tl_value_const_int(value, &constant)) return true;
  if (!value->def || depth == 0) return false;
  bool is_sum = value->type->kind == TL_TYPE_INDEX && value->def->num_regions == 0 && value->def->num_operands > 0 &&
                (tl_op_info_of(value->def->code)->flags & TL_OPFLAG_PURE);
  if (!is_sum) {
    if (*root && *root != value) return false;
    *root = value;
    return true;
  }
  for (uint32_t i = 0; i < value->def->num_operands; i++)
    if (!find_root(tl_op_operand(value->def, i), root, depth - 1)) return false;
  return true;
}

static tl_value *root_of(const tl_op *loop) {
  tl_value *root = NULL;
  return find_root(tl_op_operand(loop, 1), &root, 32) ? root : NULL;
}

// Whether the value follows from `root` on a way that does not lead by `key`.
static bool leads_beside(const tl_value *value, const tl_value *root, const tl_value *key, int depth) {
  if (value == root) return true;
  if (value == key || !value->def || depth == 0) return false;
  for (uint32_t i = 0; i < value->def->num_operands; i++)
    if (leads_beside(tl_op_operand(value->def, i), root, key, depth - 1)) return true;
  return false;
}

typedef struct beside_search {
  const tl_value *root, *key;
  bool found;
} beside_search;

// Stages, phases and bytes at mbarriers.
static void look_beside(tl_op *op, void *user) {
  beside_search *search = user;
  if (op->code != TL_OP_MBARRIER_WAIT && op->code != TL_OP_MBARRIER_ARRIVE && op->code != TL_OP_MBARRIER_EXPECT) return;
  for (uint32_t i = 1; i < op->num_operands && !search->found; i++)
    search->found = leads_beside(tl_op_operand(op, i), search->root, search->key, 32);
}

static bool is_asked_beside(const tl_barrier_verifier *self, const tl_value *root, const tl_value *key) {
  beside_search search = {.root = root, .key = key};
  if (root && root != key) tl_walk(self->kernel, look_beside, &search);
  return search.found;
}

// Whether the loop's bound has one root with that of another loop, though neither follows from the other: as where a
// part of a loop ends does from a length, and where all of it ends. Or with the place at which somebody waits: for what
// was started last, behind the loop.
static tl_value *shared_root(const tl_barrier_verifier *self, const tl_op *loop) {
  tl_value *root = root_of(loop);
  tl_run_bound none;
  if (is_asked_beside(self, root, key_of(loop, &none))) return root;
  for (size_t i = 0; root && i < self->loops.len; i++) {
    const tl_op *one = self->loops.items[i];
    const tl_value *key = key_of(one, &none), *of = root_of(one);
    if (!of || !tl_run_is_same(of, root)) continue;
    for (size_t j = 0; j < i; j++) {
      const tl_op *other = self->loops.items[j];
      const tl_value *beside = key_of(other, &none);
      if (root_of(other) == of && !depends_on(key, beside, 32) && !depends_on(beside, key, 32)) return root;
    }
  }
  return NULL;
}

static int64_t value_with(tl_run_env *env, const tl_value *value, const tl_value *root, int64_t number) {
  if (value == root) {
    tl_run_env_set(env, root, number, false);
  } else {
    for (uint32_t i = 0; i < value->def->num_operands; i++) value_with(env, tl_op_operand(value->def, i), root, number);
    tl_run_scalar(env, value->def);
  }
  return tl_run_env_number(env, value);
}

static void add_number(tl_value *root, tl_run_bound *out, int64_t number) {
  tl_range range = tl_value_range(root);
  int64_t divisor = root->def->code == TL_OP_DYN_PARAM ? tl_op_int(root->def, TL_ATTR_DIVISOR, 1) : 1;
  number = (number + divisor - 1) / divisor * divisor;
  if (number < range.lo || number > range.hi) return;
  for (size_t i = 0; i < out->numbers.len; i++)
    if (out->numbers.items[i] == number) return;
  tl_vec_push(&out->numbers, number);
}

// Numbers for the root with which the value is 0, 1, …: of each the first, and the one before it.
static void add_numbers(tl_barrier_verifier *self, tl_value *root, const tl_value *value, tl_run_bound *out) {
  const int64_t most = (int64_t)1 << 24;
  bool grows = value_with(&self->env, value, root, most) > value_with(&self->env, value, root, 0);
  for (int64_t wanted = 0; wanted <= self->max_depth + 2; wanted++) {
    int64_t low = 0, high = most;
    while (low < high) {
      int64_t middle = low + (high - low) / 2, got = value_with(&self->env, value, root, middle);
      if (grows ? got >= wanted : got <= wanted)
        high = middle;
      else
        low = middle + 1;
    }
    add_number(root, out, low - 1);
    add_number(root, out, low);
  }
}

static tl_run_bound bound_of_root(tl_barrier_verifier *self, tl_value *root) {
  tl_run_bound bound = {.range = {0, 0}};
  for (size_t i = 0; i < self->loops.len; i++)
    if (root_of(self->loops.items[i]) == root) add_numbers(self, root, tl_op_operand(self->loops.items[i], 1), &bound);
  if (bound.numbers.len == 0) add_number(root, &bound, tl_value_range(root).lo);
  bound.range.hi = (int64_t)bound.numbers.len - 1;
  return bound;
}

static void fix(tl_barrier_verifier *self, const tl_value *key, tl_run_bound bound) {
  size_t at = find_fixed(self, key);
  tl_vec_push(&self->env.fixed_keys, key);
  tl_vec_push(&self->env.fixed_at, at);
  if (at < self->env.fixed_values.len) {
    tl_vec_fini(&bound.numbers);
    return;
  }
  tl_vec_push(&self->env.fixed_values, 0);
  tl_vec_push(&self->bounds, bound);
}

static void fix_alike(tl_barrier_verifier *self, const tl_value *value) {
  for (size_t i = 0; i < self->env.fixed_keys.len; i++)
    if (self->env.fixed_keys.items[i] == value) return;
  size_t at = find_fixed(self, value);
  if (at == self->env.fixed_values.len) return;
  tl_vec_push(&self->env.fixed_keys, value);
  tl_vec_push(&self->env.fixed_at, at);
}

// What another role computes as a fixed value is, it has that number, too, whether or not a loop of its own follows
// from it: a role may have no more than the iterations that were taken out of a loop.
static void fix_in_other_roles(tl_op *op, void *user) {
  tl_barrier_verifier *self = user;
  for (uint32_t i = 0; i < op->num_results; i++) fix_alike(self, &op->results[i]);
  for (uint32_t i = 0; op->code == TL_OP_FOR && i < op->regions[0]->num_args; i++)
    fix_alike(self, op->regions[0]->args[i]);
}

// First the keys from which others follow, as where a part of a loop ends does from where all of it does.
void tl_run_fix_bounds(tl_barrier_verifier *self) {
  for (size_t i = 0; i < self->loops.len; i++) {
    tl_value *root = shared_root(self, self->loops.items[i]);
    if (!root || depends_on_fixed(&self->env, root)) continue;
    tl_run_bound bound = bound_of_root(self, root);
    if (bound.numbers.len > 0) fix(self, root, bound);
  }
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < self->loops.len; i++) {
      const tl_op *loop = self->loops.items[i];
      tl_run_bound bound, none;
      const tl_value *key = key_of(loop, &bound);
      bool follows = depends_on_fixed(&self->env, key);
      for (size_t j = 0; j < self->loops.len && pass == 0; j++) {
        const tl_value *other = key_of(self->loops.items[j], &none);
        follows |= other != key && depends_on(key, other, 32);
      }
      if (!follows) fix(self, key, bound);
    }
  }
  if (self->num_roles > 1) tl_walk(self->kernel, fix_in_other_roles, self);
}

// ---- the runs

// Other seeds take other branches, where the first one came to some that it decides.
static void run_seeds(tl_barrier_verifier *self) {
  self->has_drawn = false;
  for (uint64_t seed = 0; seed < NUM_SEEDS && !self->status && self->budget > 0; seed++) {
    tl_run_once(self, seed);
    if (!self->has_drawn) return;
  }
}

static void set_bound(tl_barrier_verifier *self, size_t loop, int64_t bound) {
  const tl_run_bound *of = &self->bounds.items[loop];
  if (of->numbers.len > 0) {
    self->env.fixed_values.items[loop] = of->numbers.items[bound];
    return;
  }
  self->env.fixed_values.items[loop] = of->is_turned ? of->added - bound : bound - of->added;
}

// Upper bounds 0 … S + 2 of every dynamic loop, or from what it certainly has on, up to what it can have: all
// combinations for up to two loops, else one loop at a time.
void tl_run_explore(tl_barrier_verifier *self) {
  size_t loops = self->env.fixed_values.len;
  int64_t most = self->max_depth + 2;
  tl_run_bound *bounds = self->bounds.items;
  for (size_t i = 0; i < loops; i++) {
    if (bounds[i].range.lo + 2 > most) most = bounds[i].range.lo + 2;
  }
  for (size_t i = 0; i < loops; i++) {
    if (bounds[i].numbers.len == 0 && bounds[i].range.hi > most) bounds[i].range.hi = most;
  }
  if (loops == 0) {
    run_seeds(self);
    return;
  }
  for (size_t focus = 0; focus < loops && loops != 2; focus++) {
    for (size_t i = 0; i < loops; i++) {
      int64_t usual = bounds[i].range.lo > self->max_depth ? bounds[i].range.lo : self->max_depth;
      set_bound(self, i, usual > bounds[i].range.hi ? bounds[i].range.hi : usual);
    }
    for (int64_t own = bounds[focus].range.lo; own <= bounds[focus].range.hi; own++) {
      set_bound(self, focus, own);
      run_seeds(self);
    }
  }
  for (int64_t a = bounds[0].range.lo; loops == 2 && a <= bounds[0].range.hi; a++) {
    for (int64_t b = bounds[1].range.lo; b <= bounds[1].range.hi; b++) {
      set_bound(self, 0, a);
      set_bound(self, 1, b);
      run_seeds(self);
    }
  }
}
