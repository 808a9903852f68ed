// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// split-tails: full tiles pay no predicate.
//
//   copy %A[%r, %k] -> %s extents=[128, 64] src_check=[2, 0]
//   → if %r + 127 < %M uniform { copy … src_check=[0, 0] } else { copy … src_check=[2, 0] }
//
// For copies, tile loads and stores, and parallels whose bounds checks and branches have one answer for the whole block
// when the tile is full: the same op without checks and branches under that condition, and the op as it was otherwise.
// Tiles are yielded; the token of an asynchronous copy stays unused under the condition. Needs check-bounds; runs after
// `pipeline`, so that offsets are final.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"
#include "passes/manager/passes.h"
#include "passes/pipeline/branches.h"
#include "passes/tile/canonicalize.h"
#include "support/vec.h"

// Ops of a parallel that may be written twice.
enum { MAX_BODY_OPS = 256 };

// The conjunction of conditions built so far: NULL when nothing is left to test.
typedef struct full_condition {
  tl_builder builder;
  tl_value *value;
  bool impossible;  // no tile is ever full
} full_condition;

static void require(full_condition *full, tl_value *condition) {
  full->value = full->value ? tl_build_binary(&full->builder, TL_OP_AND, full->value, condition) : condition;
}

// Offsets of a peeled iteration can be more than check-bounds knew, so that a bound may be decided here.
static void require_within(full_condition *full, int64_t bits, tl_value *index, int64_t lo, int64_t hi,
                           tl_value *limit) {
  tl_builder *builder = &full->builder;
  if (bits & TL_CHECK_LOWER) {
    tl_value *lowest = tl_index_add(builder, index, tl_build_index(builder, lo));
    tl_value *zero = tl_build_index(builder, 0);
    if (tl_prove_lt(lowest, zero)) {
      full->impossible = true;
    } else if (!tl_prove_nonnegative(lowest)) {
      require(full, tl_build_cmp(builder, TL_CMP_GE, lowest, zero));
    }
  }
  if (bits & TL_CHECK_UPPER) {
    tl_value *highest = tl_index_add(builder, index, tl_build_index(builder, hi));
    if (tl_prove_le(limit, highest)) {
      full->impossible = true;
    } else if (!tl_prove_lt(highest, limit)) {
      require(full, tl_build_cmp(builder, TL_CMP_LT, highest, limit));
    }
  }
}

static tl_value *limit_of(full_condition *full, const tl_value *buffer, int32_t dim, tl_value *limit) {
  if (!limit) limit = tl_buffer_dim_value(buffer, dim);
  return limit ? limit : tl_build_index(&full->builder, buffer->type->dims[dim]);
}

static bool box_has_checks(const tl_box *box) {
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    if (tl_box_check(box, d)) return true;
  }
  return false;
}

static void require_box(full_condition *full, const tl_box *box) {
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    int64_t lo = 0, hi = 0, bits = tl_box_check(box, d);
    if (!bits) continue;
    tl_box_span(box, d, &lo, &hi);
    require_within(full, bits, tl_box_offset(box, d), lo, hi, limit_of(full, box->buffer, d, tl_box_limit(box, d)));
  }
}

static void clear_checks(tl_module *module, tl_op *op, tl_attr_key key, int32_t rank) {
  int64_t none[TL_MAX_RANK] = {0};
  tl_op_set_ints(module, op, key, none, rank);
}

// ---- writing the branch

typedef struct tail_splitter {
  tl_pass_context *context;
  tl_value_map dropped;  // tokens that came under a condition, to NULL
} tail_splitter;

// A copy under a condition leaves its token unused: the commit takes what was started. Takes such tokens out of all
// commits inside, each of which may have many.
static void drop_tokens(tl_pass_context *context, tl_block *block, const tl_value_map *dropped) {
  for (tl_op *op = block->first; op; op = op->next) {
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) drop_tokens(context, op->regions[r], dropped);
    }
    if (op->code != TL_OP_RING_COMMIT && op->code != TL_OP_ASYNC_COMMIT) continue;
    int group = op->code == TL_OP_RING_COMMIT ? TL_GROUP_RING_COMMIT_tokens : TL_GROUP_ASYNC_COMMIT_tokens;
    uint32_t all = tl_op_group_len(op, group), len = 0;
    tl_value **kept = TL_NEW_ARRAY(&context->scratch, tl_value *, all);
    for (uint32_t i = 0; i < all; i++) {
      tl_value *token = tl_op_group_at(op, group, i);
      if (tl_value_map_get(dropped, token)) kept[len++] = token;
    }
    if (len < all) tl_op_set_group(context->module, op, group, kept, len);
  }
}

static bool has_token(const tl_op *op) {
  return op->num_results == 1 && tl_op_result(op, 0)->type->kind == TL_TYPE_TOKEN;
}

static tl_op *wrap(tail_splitter *self, tl_op *op, tl_value *condition) {
  if (has_token(op)) tl_value_map_set(&self->dropped, tl_op_result(op, 0), NULL);
  return tl_branch_versions(self->context, op, condition);
}

static void remark(tl_pass_context *context, const tl_op *op, const char *what) {
  tl_diag_report(context->diags, TL_DIAG_REMARK_TAIL, op->loc, "this %s has a path without predicates for full tiles",
                 what);
}

static void split_boxes(tail_splitter *self, tl_op *op) {
  tl_pass_context *context = self->context;
  if (op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map)) return;  // the engine minds the bounds
  bool has_source = op->code == TL_OP_COPY || op->code == TL_OP_TILE_LOAD;
  bool has_destination = op->code == TL_OP_COPY || op->code == TL_OP_TILE_STORE;
  tl_box source = {0}, destination = {0};
  if (has_source) source = tl_box_source(op);
  if (has_destination) destination = tl_box_destination(op);
  bool source_checks = has_source && box_has_checks(&source);
  bool destination_checks = has_destination && box_has_checks(&destination);
  if (!source_checks && !destination_checks) return;
  full_condition full = {0};
  tl_builder_before(&full.builder, context->module, op);
  full.builder.loc = op->loc;
  if (source_checks) require_box(&full, &source);
  if (destination_checks) require_box(&full, &destination);
  if (full.impossible) return;
  tl_op *clone = full.value ? wrap(self, op, full.value) : op;
  if (has_source) clear_checks(context->module, clone, TL_ATTR_SRC_CHECK, source.buffer_rank);
  if (has_destination) clear_checks(context->module, clone, TL_ATTR_DST_CHECK, destination.buffer_rank);
  if (op->code == TL_OP_COPY) {
    tl_select_copy_width(context, clone);
  } else {
    tl_select_tile_access(context, clone);
  }
  if (full.value) remark(context, op, op->code == TL_OP_COPY ? "copy" : op->code == TL_OP_TILE_LOAD ? "load" : "store");
}

// ---- parallels: checks whose index is affine in the loop indices

// index = uniform part + sum of coefficient * loop index. Splits the two; false when the index is of another kind.
static bool split_index(full_condition *full, const tl_op *parallel, tl_value *index, tl_value **out_uniform,
                        int64_t *out_lo, int64_t *out_hi) {
  if (!tl_index_is_affine_in(index, parallel)) return false;
  tl_affine affine = tl_affine_of(index);
  const tl_block *body = parallel->regions[0];
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, NULL);
  tl_builder *builder = &full->builder;
  tl_value *uniform = tl_build_index(builder, affine.constant);
  *out_lo = *out_hi = 0;
  for (int32_t i = 0; i < affine.num_terms; i++) {
    tl_value *symbol = affine.terms[i].symbol;
    int64_t coefficient = affine.terms[i].coefficient;
    if (symbol->block == body) {
      int64_t reach = coefficient * (extents[symbol->index] - 1);
      *(reach < 0 ? out_lo : out_hi) += reach;
    } else {
      // The form looks through casts: its symbol may be an integer of another type.
      tl_value *factor = tl_build_cast(builder, symbol, tl_type_index(builder->module));
      tl_value *term = tl_index_mul(builder, factor, tl_build_index(builder, coefficient));
      uniform = tl_index_add(builder, uniform, term);
    }
  }
  *out_uniform = uniform;
  return true;
}

static bool is_access(const tl_op *op) {
  return op->code == TL_OP_LOAD || op->code == TL_OP_STORE || op->code == TL_OP_ATOMIC;
}

// Adds what access `op` needs to the condition and returns the bits that remain to be tested per dim in `out_bits`.
static bool require_element(full_condition *full, const tl_op *parallel, tl_op *op, int64_t *out_bits) {
  tl_value *buffer = tl_element_buffer(op);
  bool found = false;
  for (uint32_t d = 0; d < tl_element_rank(op); d++) {
    out_bits[d] = tl_element_check(op, (int32_t)d);
    if (!out_bits[d] || !tl_buffer_is_global(buffer)) continue;
    tl_value *dim = tl_buffer_dim_value(buffer, (int32_t)d);
    if (dim && dim->def && tl_op_is_inside(dim->def, parallel)) continue;
    tl_value *uniform = NULL;
    int64_t lo = 0, hi = 0;
    if (!split_index(full, parallel, tl_element_index(op, d), &uniform, &lo, &hi)) continue;
    require_within(full, out_bits[d], uniform, lo, hi, limit_of(full, buffer, (int32_t)d, NULL));
    out_bits[d] = 0;
    found = true;
  }
  return found;
}

static int count_ops(const tl_block *block) {
  int count = 0;
  for (const tl_op *op = block->first; op; op = op->next) {
    count++;
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) count += count_ops(op->regions[r]);
    }
  }
  return count;
}

// What stays of an access's checks, or of a comparison.
typedef struct remaining_checks {
  int64_t bits[TL_MAX_RANK];
  int32_t rank;
  bool is_true;  // the comparison
} remaining_checks;
typedef TL_VEC(remaining_checks) remaining_list;

static void find_global_access(tl_op *op, void *user) {
  if (is_access(op) && tl_buffer_is_global(tl_element_buffer(op))) *(bool *)user = true;
}

// Whether a condition, by itself or with others, decides about accesses to global memory.
static bool guards_accesses(const tl_value *condition) {
  bool found = false;
  for (const tl_use *use = condition->uses; use && !found; use = use->next) {
    if (use->owner->code == TL_OP_IF && use->owner->num_regions > 0) {
      tl_walk(use->owner, find_global_access, &found);
    } else if (use->owner->code == TL_OP_AND) {
      found = guards_accesses(tl_op_result(use->owner, 0));
    }
  }
  return found;
}

// Adds what makes a comparison of indices hold for every element; false where nothing does, or it is the same for all
// of them anyway.
static bool require_comparison(full_condition *full, const tl_op *parallel, tl_op *cmp) {
  int64_t pred = tl_op_int(cmp, TL_ATTR_CMP, TL_CMP_EQ);
  if (pred == TL_CMP_EQ || pred == TL_CMP_NE || tl_op_operand(cmp, 0)->type->kind != TL_TYPE_INDEX) return false;
  bool turned = pred == TL_CMP_GT || pred == TL_CMP_GE, strict = pred == TL_CMP_LT || pred == TL_CMP_GT;
  tl_value *lesser = NULL, *greater = NULL;
  int64_t lesser_lo = 0, lesser_hi = 0, greater_lo = 0, greater_hi = 0;
  if (!split_index(full, parallel, tl_op_operand(cmp, turned), &lesser, &lesser_lo, &lesser_hi) ||
      !split_index(full, parallel, tl_op_operand(cmp, !turned), &greater, &greater_lo, &greater_hi))
    return false;
  if (lesser_lo == lesser_hi && greater_lo == greater_hi) return false;
  tl_builder *builder = &full->builder;
  tl_value *highest = tl_index_add(builder, lesser, tl_build_index(builder, lesser_hi + strict));
  tl_value *lowest = tl_index_add(builder, greater, tl_build_index(builder, greater_lo));
  if (tl_prove_lt(lowest, highest)) return false;
  if (!tl_prove_le(highest, lowest)) require(full, tl_build_cmp(builder, TL_CMP_LE, highest, lowest));
  return true;
}

static bool collect_elements(full_condition *full, tl_op *parallel, const tl_block *block, remaining_list *list) {
  bool found = false;
  for (tl_op *op = block->first; op; op = op->next) {
    if (is_access(op)) {
      remaining_checks remaining = {.rank = (int32_t)tl_element_rank(op)};
      found |= require_element(full, parallel, op, remaining.bits);
      tl_vec_push(list, remaining);
    } else if (op->code == TL_OP_CMP) {
      remaining_checks remaining = {0};
      // What the pipeline placed stays as it is.
      remaining.is_true = !tl_op_has(parallel, TL_ATTR_ASYNC) && guards_accesses(tl_op_result(op, 0)) &&
                          require_comparison(full, parallel, op);
      found |= remaining.is_true;
      tl_vec_push(list, remaining);
    }
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) found |= collect_elements(full, parallel, op->regions[r], list);
    }
  }
  return found;
}

static void write_elements(tl_module *module, const tl_block *block, const remaining_list *list, size_t *next) {
  for (tl_op *op = block->first; op; op = op->next) {
    if (is_access(op)) {
      const remaining_checks *remaining = &list->items[(*next)++];
      tl_op_set_ints(module, op, TL_ATTR_CHECK, remaining->bits, remaining->rank);
    } else if (op->code == TL_OP_CMP && list->items[(*next)++].is_true) {
      tl_builder builder;
      tl_builder_before(&builder, module, op);
      tl_value_replace_uses(tl_op_result(op, 0), tl_build_bool(&builder, true));
    }
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) write_elements(module, op->regions[r], list, next);
    }
  }
}

static void split_parallel(tail_splitter *self, tl_op *op) {
  tl_pass_context *context = self->context;
  if (count_ops(op->regions[0]) > MAX_BODY_OPS) return;
  full_condition full = {0};
  tl_builder_before(&full.builder, context->module, op);
  full.builder.loc = op->loc;
  remaining_list list = {0};
  if (collect_elements(&full, op, op->regions[0], &list) && !full.impossible) {
    tl_op *clone = full.value ? wrap(self, op, full.value) : op;
    size_t next = 0;
    write_elements(context->module, clone->regions[0], &list, &next);
    tl_canonicalize_pure(context, clone->regions[0]);
    tl_canonicalize_decided(clone->regions[0]);
    // Without bounds a vector may be wider; what the pipeline already placed stays as it is.
    if (!tl_op_has(clone, TL_ATTR_ASYNC)) tl_select_vectors(context, clone);
    if (full.value) remark(context, op, "loop");
  }
  tl_vec_fini(&list);
}

static void split_block(tail_splitter *self, tl_block *block) {
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    if (op->code == TL_OP_COPY || op->code == TL_OP_TILE_LOAD || op->code == TL_OP_TILE_STORE) {
      split_boxes(self, op);
    } else if (op->code == TL_OP_PARALLEL) {
      split_parallel(self, op);
    } else {
      for (uint32_t r = 0; r < op->num_regions; r++) {
        if (op->regions[r]) split_block(self, op->regions[r]);
      }
    }
  }
}

tl_status tl_pass_split_tails(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code != TL_OP_KERNEL) continue;
    tail_splitter self = {.context = context};
    split_block(&self, op->regions[0]);
    if (self.dropped.len > 0) drop_tokens(context, op->regions[0], &self.dropped);
    tl_value_map_fini(&self.dropped);
    tl_canonicalize_pure(context, op->regions[0]);
  }
  return TL_OK;
}
