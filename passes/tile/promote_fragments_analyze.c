// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which fragment tiles can become values: those whose every access names its element by the indices of the parallel
// around it, one way where it is written, and whose written value is the same along the indices that do not name it.
#include <string.h>

#include "passes/analysis/memory_access.h"
#include "passes/tile/promote_fragments_internal.h"

int tl_fragment_find_any(const tl_fragments *fragments, const tl_value *buffer) {
  for (size_t i = 0; i < fragments->items.len; i++) {
    if (fragments->items.items[i].buffer == buffer) return (int)i;
  }
  return -1;
}

int tl_fragment_find(const tl_fragments *fragments, const tl_value *buffer) {
  int i = tl_fragment_find_any(fragments, buffer);
  return i >= 0 && fragments->items.items[i].demoted ? -1 : i;
}

static bool demote(tl_fragments *fragments, int which, const char *why, tl_loc loc) {
  tl_fragment *fragment = &fragments->items.items[which];
  if (fragment->demoted) return false;
  fragment->demoted = why;
  fragment->demoted_at = loc;
  return true;
}

// ---- copies

bool tl_copy_covers(const tl_op *copy, bool is_source) {
  int offsets = is_source ? TL_GROUP_COPY_src_offsets : TL_GROUP_COPY_dst_offsets;
  int limits = is_source ? TL_GROUP_COPY_src_limits : TL_GROUP_COPY_dst_limits;
  if (tl_op_group_len(copy, limits) > 0) return false;
  const tl_value *buffer = tl_op_arg(copy, is_source ? TL_GROUP_COPY_src : TL_GROUP_COPY_dst);
  int32_t rank = 0;
  const int64_t *extents = tl_op_ints(copy, TL_ATTR_EXTENTS, &rank);
  int32_t num_dims = 0;
  const int64_t *dims = tl_op_ints(copy, is_source ? TL_ATTR_SRC_DIMS : TL_ATTR_DST_DIMS, &num_dims);
  int32_t num_steps = 0;
  const int64_t *steps = tl_op_ints(copy, is_source ? TL_ATTR_SRC_STEP : TL_ATTR_DST_STEP, &num_steps);
  bool walked[TL_MAX_RANK] = {false};
  for (int32_t t = 0; t < rank && t < num_dims; t++) {
    if (walked[dims[t]] || extents[t] != buffer->type->dims[dims[t]]) return false;
    if (steps && t < num_steps && steps[t] != 1) return false;
    walked[dims[t]] = true;
  }
  for (int32_t d = 0; d < buffer->type->rank; d++) {
    int64_t offset = 0;
    const tl_value *value = tl_op_group_at(copy, offsets, (uint32_t)d);
    if (!tl_value_const_int(value, &offset) || offset != 0) return false;
    if (!walked[d] && buffer->type->dims[d] != 1) return false;
  }
  return true;
}

// ---- accesses inside a parallel

bool tl_fragment_access_map(const tl_op *access, const tl_op *parallel, int32_t *out_map) {
  const tl_type *type = tl_element_buffer(access)->type;
  const tl_block *body = parallel->regions[0];
  int32_t num_loops = 0;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &num_loops);
  bool used[TL_MAX_RANK] = {false};
  for (int32_t d = 0; d < type->rank; d++) {
    const tl_value *index = tl_element_index(access, (uint32_t)d);
    int32_t loop = -1;
    if (index->block == body && index->def == NULL && !used[index->index]) loop = (int32_t)index->index;
    if (type->dims[d] == 1 && loop >= 0 && extents[loop] != 1) loop = -1;
    if (loop < 0 && type->dims[d] != 1) return false;
    if (loop >= 0) used[loop] = true;
    out_map[d] = loop;
  }
  return true;
}

// One question about a parallel: can values differ between iterations that differ only in the marked loop indices?
typedef struct variance {
  const tl_block *body;  // of the parallel
  const bool *loops;     // those marked
  // Values asked about, by number: whoever asks again about one that varies has stopped, so it does not.
  TL_VEC(uint64_t) asked;
} variance;

// Whether this is the first time.
static bool ask(variance *v, const tl_value *value) {
  while (v->asked.len <= value->number / 64) tl_vec_push(&v->asked, 0);
  uint64_t *word = &v->asked.items[value->number / 64], bit = (uint64_t)1 << value->number % 64;
  bool is_first = (*word & bit) == 0;
  *word |= bit;
  return is_first;
}

static bool value_varies(variance *v, const tl_value *value);

// Whether `op`, or something inside, uses a value from outside of `top` that varies.
static bool subtree_varies(variance *v, const tl_op *op, const tl_op *top) {
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_value *operand = tl_op_operand(op, i);
    const tl_op *def = operand->def ? operand->def : operand->block->parent;
    // What is defined inside `top` varies only through values from outside of it.
    bool is_inner = op != top && def && tl_op_is_inside(def, top);
    if (!is_inner && value_varies(v, operand)) return true;
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) {
      if (subtree_varies(v, inner, top)) return true;
    }
  }
  return false;
}

static bool value_varies(variance *v, const tl_value *value) {
  if (value->block == v->body) return v->loops[value->index];
  if (!ask(v, value)) return false;
  const tl_op *op = value->def ? value->def : value->block->parent;
  bool inside = false;
  for (const tl_block *block = op->parent; block && !inside; block = block->parent ? block->parent->parent : NULL) {
    inside = block == v->body;
  }
  return inside && subtree_varies(v, op, op);
}

// Whether what a STORE writes, or whether it writes, can differ along the marked loops.
static bool store_varies(const tl_op *store, const tl_op *parallel, const bool *loops) {
  variance v = {.body = parallel->regions[0], .loops = loops};
  bool varies = value_varies(&v, tl_op_arg(store, TL_GROUP_STORE_value));
  for (const tl_op *op = store->parent->parent; op && op != parallel && !varies; op = op->parent->parent) {
    for (uint32_t i = 0; i < op->num_operands && !varies; i++) varies = value_varies(&v, tl_op_operand(op, i));
  }
  tl_vec_fini(&v.asked);
  return varies;
}

typedef struct access_list {
  TL_VEC(tl_op *) items;
} access_list;

static void collect_access(tl_op *op, void *user) {
  access_list *list = user;
  if (op->code == TL_OP_LOAD || op->code == TL_OP_STORE) tl_vec_push(&list->items, op);
}

// Extra leading indices of extent 1 that an access needs for dims named by a constant.
static int32_t extra_of(const int32_t *map, int32_t rank) {
  int32_t extra = 0;
  for (int32_t d = 0; d < rank; d++) extra += map[d] < 0;
  return extra;
}

bool tl_fragments_extents(tl_fragments *fragments, tl_op *parallel, bool blame, int64_t *out_extents,
                          int32_t *out_extra) {
  int32_t num_loops = 0;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &num_loops);
  memcpy(out_extents, extents, sizeof(*extents) * (size_t)num_loops);
  *out_extra = 0;
  access_list list = {0};
  tl_walk(parallel, collect_access, &list);
  // A loop takes its own extent when some fragment has it, else the largest dim that it walks.
  bool exact[TL_MAX_RANK] = {false};
  for (int round = 0; round < 2; round++) {
    for (size_t a = 0; a < list.items.len; a++) {
      const tl_value *buffer = tl_element_buffer(list.items.items[a]);
      int32_t map[TL_MAX_RANK];
      if (tl_fragment_find(fragments, buffer) < 0) continue;
      if (!tl_fragment_access_map(list.items.items[a], parallel, map)) continue;
      int32_t extra = extra_of(map, buffer->type->rank);
      if (extra > *out_extra) *out_extra = extra;
      for (int32_t d = 0; d < buffer->type->rank; d++) {
        if (map[d] < 0) continue;
        int64_t dim = buffer->type->dims[d];
        if (dim == extents[map[d]]) exact[map[d]] = true;
        if (round == 1 && !exact[map[d]] && dim > out_extents[map[d]]) out_extents[map[d]] = dim;
      }
    }
  }
  bool fits = num_loops + *out_extra <= TL_MAX_RANK;
  for (size_t a = 0; a < list.items.len; a++) {
    tl_op *access = list.items.items[a];
    const tl_value *buffer = tl_element_buffer(access);
    int which = tl_fragment_find(fragments, buffer);
    int32_t map[TL_MAX_RANK];
    if (which < 0 || !tl_fragment_access_map(access, parallel, map)) continue;
    bool clash = num_loops + *out_extra > TL_MAX_RANK && extra_of(map, buffer->type->rank) > 0;
    for (int32_t d = 0; d < buffer->type->rank; d++)
      clash |= map[d] >= 0 && buffer->type->dims[d] != out_extents[map[d]];
    if (!clash) continue;
    fits = false;
    if (blame) demote(fragments, which, "one parallel walks it beside tiles of other sizes", access->loc);
  }
  tl_vec_fini(&list.items);
  return fits;
}

// Checks every access to fragment `which` in one parallel. True when it was demoted.
static bool validate_parallel_of(tl_fragments *fragments, int which, tl_op *parallel, const access_list *list) {
  const tl_value *buffer = fragments->items.items[which].buffer;
  int32_t rank = buffer->type->rank;
  int32_t num_loops = 0;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &num_loops);
  int32_t write_map[TL_MAX_RANK];
  bool is_written = false;
  for (size_t a = 0; a < list->items.len; a++) {
    tl_op *access = list->items.items[a];
    if (tl_element_buffer(access) != buffer) continue;
    int32_t map[TL_MAX_RANK];
    if (!tl_fragment_access_map(access, parallel, map)) {
      return demote(fragments, which, "an element is not named by the indices of the parallel alone", access->loc);
    }
    if (access->code != TL_OP_STORE) continue;
    if (is_written && memcmp(map, write_map, sizeof(*map) * (size_t)rank) != 0) {
      return demote(fragments, which, "one parallel writes it under two different indices", access->loc);
    }
    memcpy(write_map, map, sizeof(map));
    is_written = true;
    bool dropped[TL_MAX_RANK];
    for (int32_t l = 0; l < num_loops; l++) dropped[l] = extents[l] != 1;
    for (int32_t d = 0; d < rank; d++) {
      if (map[d] >= 0) dropped[map[d]] = false;
    }
    if (store_varies(access, parallel, dropped)) {
      return demote(fragments, which, "what is written differs along an index that does not name the element",
                    access->loc);
    }
  }
  for (size_t a = 0; a < list->items.len && is_written; a++) {
    tl_op *access = list->items.items[a];
    int32_t map[TL_MAX_RANK];
    if (tl_element_buffer(access) != buffer || !tl_fragment_access_map(access, parallel, map)) continue;
    if (memcmp(map, write_map, sizeof(*map) * (size_t)rank) != 0) {
      return demote(fragments, which, "one parallel writes and reads it under different indices", access->loc);
    }
  }
  return false;
}

typedef struct parallel_list {
  TL_VEC(tl_op *) items;
} parallel_list;

static void collect_parallel(tl_op *op, void *user) {
  parallel_list *list = user;
  if (op->code == TL_OP_PARALLEL) tl_vec_push(&list->items, op);
}

static bool validate_parallel(tl_fragments *fragments, tl_op *parallel) {
  access_list list = {0};
  tl_walk(parallel, collect_access, &list);
  bool changed = false;
  for (size_t f = 0; f < fragments->items.len; f++) {
    if (!fragments->items.items[f].demoted) changed |= validate_parallel_of(fragments, (int)f, parallel, &list);
  }
  tl_vec_fini(&list.items);
  int64_t extents[TL_MAX_RANK];
  int32_t extra;
  if (!tl_fragments_extents(fragments, parallel, true, extents, &extra)) changed = true;
  return changed;
}

// Uses that no value can serve, wherever they stand.
static void validate_use(tl_fragments *fragments, int which, const tl_use *use) {
  tl_op *op = use->owner;
  switch (op->code) {
    case TL_OP_FILL:
    case TL_OP_IN_BOUNDS:
    case TL_OP_REDUCE:
    case TL_OP_SCAN:
      return;
    case TL_OP_COPY: {
      const tl_value *src = tl_op_arg(op, TL_GROUP_COPY_src);
      const tl_value *dst = tl_op_arg(op, TL_GROUP_COPY_dst);
      bool both = src->type->scope == TL_SCOPE_FRAGMENT && dst->type->scope == TL_SCOPE_FRAGMENT;
      if (src == dst || (both && use->value == src && !(tl_copy_covers(op, true) && tl_copy_covers(op, false)))) {
        demote(fragments, which, "a part of it is copied to another fragment tile", op->loc);
      }
      return;
    }
    case TL_OP_GEMM:
      if (tl_op_arg(op, TL_GROUP_GEMM_b) == use->value && !tl_op_has(op, TL_ATTR_B_RUN))
        demote(fragments, which, "it is the second operand of a gemm", op->loc);
      return;
    case TL_OP_LOAD:
    case TL_OP_STORE:
      if (tl_op_enclosing(op, TL_OP_PARALLEL) == NULL) {
        demote(fragments, which, "an element is used outside of a parallel", op->loc);
      }
      return;
    default:
      demote(fragments, which, "it is used in a way that needs an address", op->loc);
      return;
  }
}

void tl_fragments_analyze(tl_fragments *fragments) {
  for (size_t f = 0; f < fragments->items.len; f++) {
    for (const tl_use *use = fragments->items.items[f].buffer->uses; use; use = use->next) {
      validate_use(fragments, (int)f, use);
    }
  }
  parallel_list list = {0};
  tl_walk(fragments->kernel, collect_parallel, &list);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < list.items.len; i++) {
      // Demoting one fragment can free the extents of another, so a clash is looked at again.
      changed |= validate_parallel(fragments, list.items.items[i]);
    }
  }
  tl_vec_fini(&list.items);
}
