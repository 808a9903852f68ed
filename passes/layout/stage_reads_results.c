// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a parallel makes of a stage's elements takes their places in it, for stage-reads.
//
//   parallel [512, 8, 10] { store f(load %stage[%i, %g, %c]) -> %Y[%b, %i, %g, %c] }
//   → parallel [512, 8, 10] { store f(load %stage[%i, %g, %c]) -> %stage[%i, %g, %c] }; copy %stage -> %Y[%b, 0, 0, 0]
//
// Rows that no vector divides are stored in pieces, by lanes of which some have nothing to do; from a tile that lies as
// densely as the tensor they go on from row to row, 16 bytes at a time. A tile of its own would take as much shared
// memory again, or a barrier with the results in registers before it.
#include "passes/analysis/effects.h"
#include "passes/layout/select_copies.h"
#include "passes/layout/stage_reads.h"

typedef struct result_search {
  const tl_op *parallel;
  tl_value *stage;
  tl_op *load, *store;  // of an element of the stage; of what is made of it, to global memory
  bool fits;
} result_search;

static bool is_in(const tl_op *op, const tl_op *parallel) {
  return op->parent == parallel->regions[0];
}

static bool same_index(const tl_op *a, const tl_op *b) {
  for (uint32_t d = 0; d < tl_element_rank(a); d++)
    if (!tl_prove_equal(tl_element_index(a, d), tl_element_index(b, d))) return false;
  return true;
}

static void look_at(tl_op *op, void *user) {
  result_search *self = user;
  if (op->code == TL_OP_ATOMIC || op->code == TL_OP_PRINT || op->code == TL_OP_ASSERT) self->fits = false;
  if (op->code == TL_OP_LOAD && tl_element_buffer(op) == self->stage) {
    self->fits &= !self->store && (!self->load || same_index(self->load, op));
    self->load = op;
  }
  if (op->code != TL_OP_STORE || tl_element_buffer(op)->type->scope == TL_SCOPE_LOCAL) return;
  self->fits &= !self->store && is_in(op, self->parallel);
  self->store = op;
}

// The dims of `op`'s buffer that the loop walks, each from 0 or a base on by one of its indices; `out_dims`: for each
// dim of the loop the buffer's, or -1. False: the op walks it in another way.
static bool walked_dims(const tl_op *op, const tl_op *parallel, int32_t *out_dims) {
  const tl_block *body = parallel->regions[0];
  for (uint32_t i = 0; i < body->num_args; i++) out_dims[i] = -1;
  for (uint32_t d = 0; d < tl_element_rank(op); d++) {
    tl_affine index = tl_affine_of(tl_element_index(op, d));
    if (!index.valid || tl_element_check(op, (int32_t)d)) return false;
    bool walks = false;
    for (int32_t i = 0; i < index.num_terms; i++) {
      const tl_value *symbol = index.terms[i].symbol;
      const tl_op *from = symbol->def ? symbol->def : symbol->block->parent;
      if (symbol->block != body) {
        if (tl_op_is_inside(from, parallel)) return false;
        continue;
      }
      if (walks || index.terms[i].coefficient != 1 || out_dims[symbol->index] >= 0) return false;
      walks = true;
      out_dims[symbol->index] = (int32_t)d;
    }
  }
  return true;
}

// Whether the loop has an element of the stage for each of its iterations and the other way round.
static bool walks_whole(const result_search *self, const int32_t *dims, const int32_t *to) {
  int32_t rank = 0;
  const int64_t *extents = tl_op_ints(self->parallel, TL_ATTR_EXTENTS, &rank);
  int64_t elements = 1, place;
  for (int32_t i = 0; i < rank; i++) {
    if (extents[i] == 1) continue;
    if (dims[i] < 0 || to[i] < 0 || self->stage->type->dims[dims[i]] != extents[i]) return false;
    elements *= extents[i];
    // Permuted they would not be rows.
    bool ends_stage = dims[i] == self->stage->type->rank - 1;
    if (ends_stage && to[i] != (int32_t)tl_element_rank(self->store) - 1) return false;
  }
  for (uint32_t d = 0; d < tl_element_rank(self->load); d++) {
    tl_value *index = tl_element_index(self->load, d);
    bool is_own = !index->def && index->block == self->parallel->regions[0];
    if (!is_own && (!tl_value_const_int(index, &place) || place != 0)) return false;
  }
  return elements == tl_type_num_elements(self->stage->type);
}

// Whether the stage and the tensor are not touched again: behind the parallel, nor the tensor in it.
static bool is_last(const result_search *self) {
  const tl_op *tensor = tl_buffer_root(tl_element_buffer(self->store)), *stage = tl_buffer_root(self->stage);
  tl_effect_list effects = {0};
  for (tl_op *op = (tl_op *)self->parallel; op; op = op->next) tl_effects_inside(op, &effects);
  size_t of_tensor = 0, written = 0;
  for (size_t i = 0; i < effects.len; i++) {
    of_tensor += effects.items[i].root->def == tensor;
    written += effects.items[i].root->def == stage && effects.items[i].kind != TL_EFFECT_READ;
  }
  tl_vec_fini(&effects);
  for (const tl_use *use = self->stage->uses; use; use = use->next) {
    for (const tl_op *op = self->parallel->next; op; op = op->next)
      if (tl_op_is_inside(use->owner, op)) return false;
  }
  return of_tensor == 1 && written == 0;
}

// Whether lanes along the stage's rows, with a vector each, would be a power of two only with some that have nothing.
static bool leaves_lanes_idle(const tl_value *stage) {
  enum { VECTOR_BITS = 128, WARP = 32 };
  int64_t bits = stage->type->dims[stage->type->rank - 1] * tl_dtype_bits(stage->type->dtype);
  int64_t vectors = bits / VECTOR_BITS;
  return bits % VECTOR_BITS == 0 && vectors < WARP && (vectors & (vectors - 1)) != 0;
}

static tl_op *build_copy(tl_pass_context *context, const result_search *self, const int32_t *from, const int32_t *to) {
  tl_module *module = context->module;
  tl_value *target = tl_element_buffer(self->store), *offsets[TL_MAX_RANK], *zeros[TL_MAX_RANK];
  int32_t rank = target->type->rank, stage_rank = self->stage->type->rank, len = 0, loops = 0;
  int64_t extents[TL_MAX_RANK], src_dims[TL_MAX_RANK], dst_dims[TL_MAX_RANK], inside[TL_MAX_RANK] = {0};
  const int64_t *all = tl_op_ints(self->parallel, TL_ATTR_EXTENTS, &loops);
  tl_builder builder;
  tl_builder_after(&builder, module, (tl_op *)self->parallel);
  builder.loc = self->store->loc;
  for (int32_t d = 0; d < rank; d++) {
    tl_affine index = tl_affine_of(tl_element_index(self->store, (uint32_t)d)), base = {.valid = true};
    base.constant = index.constant;
    for (int32_t i = 0; i < index.num_terms; i++)
      if (index.terms[i].symbol->block != self->parallel->regions[0]) base.terms[base.num_terms++] = index.terms[i];
    offsets[d] = tl_affine_build(&builder, &base);
  }
  for (int32_t d = 0; d < stage_rank; d++) zeros[d] = tl_build_index(&builder, 0);
  for (int32_t i = 0; i < loops; i++) {
    if (all[i] == 1) continue;
    extents[len] = all[i];
    src_dims[len] = from[i];
    dst_dims[len++] = to[i];
  }
  tl_group groups[TL_GROUP_COPY_stage + 1] = {TL_GROUP_OF(self->stage),
                                              {zeros, (uint32_t)stage_rank},
                                              TL_GROUP_EMPTY,
                                              TL_GROUP_OF(target),
                                              {offsets, (uint32_t)rank}};
  tl_op *copy = tl_build(&builder, TL_OP_COPY, groups, NULL, 0);
  tl_op_set_ints(module, copy, TL_ATTR_EXTENTS, extents, len);
  tl_op_set_ints(module, copy, TL_ATTR_SRC_DIMS, src_dims, len);
  tl_op_set_ints(module, copy, TL_ATTR_DST_DIMS, dst_dims, len);
  tl_op_set_ints(module, copy, TL_ATTR_SRC_CHECK, inside, stage_rank);
  tl_op_set_ints(module, copy, TL_ATTR_DST_CHECK, inside, rank);
  return copy;
}

bool tl_stage_results(tl_pass_context *context, tl_op *parallel, tl_value *stage) {
  result_search self = {.parallel = parallel, .stage = stage, .fits = parallel->num_results == 0};
  int32_t from[TL_MAX_RANK], to[TL_MAX_RANK];
  tl_walk(parallel, look_at, &self);
  if (!self.fits || !self.load || !self.store) return false;
  tl_value *target = tl_element_buffer(self.store);
  if (!tl_buffer_is_global(target) || target->type->dtype != stage->type->dtype) return false;
  if (tl_op_has(self.store, TL_ATTR_EVICT) || tl_op_has(self.store, TL_ATTR_ATOMIC)) return false;
  if (!walked_dims(self.load, parallel, from) || !walked_dims(self.store, parallel, to)) return false;
  if (!walks_whole(&self, from, to) || !is_last(&self)) return false;
  tl_op *copy = build_copy(context, &self, from, to);
  if (!tl_copy_is_run(copy) && !leaves_lanes_idle(stage)) {
    tl_op_erase(copy);
    return false;
  }
  uint32_t rank = tl_element_rank(self.load);
  tl_value *index[TL_MAX_RANK];
  int64_t inside[TL_MAX_RANK] = {0};
  for (uint32_t d = 0; d < rank; d++) index[d] = tl_element_index(self.load, d);
  tl_op_set_group(context->module, self.store, TL_GROUP_STORE_buffer, &stage, 1);
  tl_op_set_group(context->module, self.store, TL_GROUP_STORE_index, index, rank);
  tl_op_set_ints(context->module, self.store, TL_ATTR_CHECK, inside, (int32_t)rank);
  tl_diag_report(context->diags, TL_DIAG_REMARK_RESULTS, self.store->loc,
                 "what is stored to '%s' takes the place of '%s' in shared memory first", tl_buffer_name(target),
                 tl_buffer_name(stage));
  return true;
}
