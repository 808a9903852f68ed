// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of a parallel stay apart when the place tells the element: every access to what is stored names the same
// buffer, and each index of the parallel can be read off a subscript that all of them share.
//
//   X[i, 8 * j + k]   with k < 8: i is the first subscript, j and k are digits of the second
//   X[i + j, j]       j is the second subscript, and with it i can be read off the first
#include "ir/index/elements.h"

#include "ir/index/affine.h"
#include "support/vec.h"

typedef struct element_access {
  const tl_op *op;
  tl_value *buffer;
  int group;  // of the subscripts
  bool stores, is_atomic;
} element_access;

typedef struct accesses {
  TL_VEC(element_access) items;
} accesses;

static void collect(tl_op *op, void *user) {
  accesses *found = user;
  element_access made = {.op = op};
  switch (op->code) {
    case TL_OP_LOAD:
      made.buffer = tl_op_arg(op, TL_GROUP_LOAD_buffer);
      made.group = TL_GROUP_LOAD_index;
      break;
    case TL_OP_STORE:
      made.buffer = tl_op_arg(op, TL_GROUP_STORE_buffer);
      made.group = TL_GROUP_STORE_index;
      made.stores = true;
      break;
    case TL_OP_ATOMIC:
      made.buffer = tl_op_arg(op, TL_GROUP_ATOMIC_buffer);
      made.group = TL_GROUP_ATOMIC_index;
      made.stores = made.is_atomic = true;
      break;
    default:
      return;
  }
  if (made.buffer->type->scope != TL_SCOPE_LOCAL) tl_vec_push(&found->items, made);
}

static bool is_inside(const tl_value *value, const tl_op *parallel) {
  const tl_op *home = value->def ? value->def : value->block->parent;
  return home == parallel || tl_op_is_inside(home, parallel);
}

// Which indices of a parallel are told by the place so far.
typedef struct told_indices {
  const tl_op *parallel;
  bool index[TL_MAX_RANK];
} told_indices;

// Whether the value may differ between elements that the place does not tell apart yet.
static bool is_open(const tl_value *value, const told_indices *told) {
  for (uint32_t p = 0; p < told->parallel->regions[0]->num_args; p++)
    if (told->parallel->regions[0]->args[p] == value) return !told->index[p];
  return is_inside(value, told->parallel);
}

// How many values a loop index takes, of the parallel or of a loop with constant bounds in it; 0: not known.
static int64_t extent_of(const tl_value *index, const tl_op *parallel) {
  if (index->def || !index->block) return 0;
  const tl_op *loop = index->block->parent;
  if (loop == parallel) {
    const tl_attr *extents = tl_op_attr(parallel, TL_ATTR_EXTENTS);
    for (uint32_t d = 0; d < parallel->regions[0]->num_args; d++)
      if (parallel->regions[0]->args[d] == index) return extents->v.ints.items[d];
  }
  int64_t extent;
  tl_constant_loop known;
  if (loop->code != TL_OP_FOR || index != loop->regions[0]->args[0] || tl_op_has(loop, TL_ATTR_WHILE)) return 0;
  if (!tl_loop_is_constant(loop, &known) || known.step != 1) return 0;
  return !__builtin_sub_overflow(known.upper, known.lower, &extent) && extent > 0 ? extent : 0;
}

// Whether the values of all open indices can be read off the sum: each coefficient is larger than
// what those of smaller magnitude can make together, as in a number's digits.
static bool is_digits(const tl_affine *form, const told_indices *told) {
  int64_t below = 0, last = 0;
  for (int32_t n = 0; n < form->num_terms; n++) {
    int32_t next = -1;
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < form->num_terms; i++) {
      int64_t size = form->terms[i].coefficient < 0 ? -form->terms[i].coefficient : form->terms[i].coefficient;
      if (size < 0) return false;
      if (!is_open(form->terms[i].symbol, told) || size <= last || size >= least) continue;
      next = i;
      least = size;
    }
    if (next < 0) break;
    int64_t extent = extent_of(form->terms[next].symbol, told->parallel), all;
    if (extent == 0 || least <= below) return false;
    if (__builtin_mul_overflow(least, extent - 1, &all) || __builtin_add_overflow(below, all, &below)) return false;
    last = least;
  }
  return true;
}

// Two indices with the same coefficient are never digits.
static bool has_equal_coefficients(const tl_affine *form, const told_indices *told) {
  for (int32_t i = 0; i < form->num_terms; i++)
    for (int32_t k = 0; k < i; k++) {
      int64_t a = form->terms[i].coefficient, b = form->terms[k].coefficient;
      bool open = is_open(form->terms[i].symbol, told) && is_open(form->terms[k].symbol, told);
      if (open && (a == b || a == -b)) return true;
    }
  return false;
}

// Adds the indices of the parallel that subscript `d` of all accesses to the memory of `store` tells. False: none.
static bool read_off(const accesses *found, const element_access *store, uint32_t d, told_indices *told) {
  tl_affine form = tl_affine_of(tl_op_group_at(store->op, store->group, d));
  if (!form.valid || has_equal_coefficients(&form, told) || !is_digits(&form, told)) return false;
  for (size_t i = 0; i < found->items.len; i++) {
    const element_access *other = &found->items.items[i];
    if (other->buffer != store->buffer) continue;
    tl_affine there = tl_affine_of(tl_op_group_at(other->op, other->group, d));
    tl_affine difference = tl_affine_sub(&form, &there);
    if (!there.valid || !difference.valid || difference.num_terms || difference.constant) return false;
  }
  bool adds = false;
  for (uint32_t p = 0; p < told->parallel->regions[0]->num_args; p++) {
    if (told->index[p] || !tl_affine_coefficient(&form, told->parallel->regions[0]->args[p])) continue;
    told->index[p] = adds = true;
  }
  return adds;
}

// Whether no access of another element reaches what the store writes.
static bool is_apart(const accesses *found, const element_access *store, const tl_op *parallel) {
  const tl_op *root = tl_buffer_root(store->buffer);
  bool only_atomics = true;
  for (size_t i = 0; i < found->items.len; i++) {
    const element_access *other = &found->items.items[i];
    if (tl_buffer_root(other->buffer) != root) continue;
    only_atomics = only_atomics && other->is_atomic;
    if (other->buffer != store->buffer) return false;
  }
  if (only_atomics) return true;
  told_indices told = {.parallel = parallel};
  uint32_t rank = tl_op_group_len(store->op, store->group);
  for (uint32_t d = 0; d < rank; d++)
    if (read_off(found, store, d, &told)) d = UINT32_MAX;  // what is known now may open a subscript before it
  const tl_attr *extents = tl_op_attr(parallel, TL_ATTR_EXTENTS);
  for (uint32_t p = 0; p < parallel->regions[0]->num_args; p++)
    if (!told.index[p] && extents->v.ints.items[p] > 1) return false;
  return true;
}

bool tl_elements_may_meet(const tl_op *parallel) {
  accesses found = {0};
  bool apart = true;
  tl_walk((tl_op *)parallel, collect, &found);
  for (size_t i = 0; i < found.items.len && apart; i++)
    if (found.items.items[i].stores) apart = is_apart(&found, &found.items.items[i], parallel);
  tl_vec_fini(&found.items);
  return !apart;
}

static void look_at(tl_op *op, void *user) {
  bool *meets = user;
  if (op->code == TL_OP_PARALLEL) *meets = *meets || tl_elements_may_meet(op);
}

bool tl_has_meeting_elements(tl_op *op) {
  bool meets = false;
  tl_walk(op, look_at, &meets);
  return meets;
}
