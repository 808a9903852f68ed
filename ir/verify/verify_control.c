// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of ops with regions: region arguments, yields and results.
#include "ir/verify/verify_internal.h"

// What the region yields; a region without a yield yields nothing. False when the number is wrong.
static bool verify_yield_count(tl_verifier *verifier, const tl_op *op, uint32_t region, uint32_t wanted) {
  const tl_op *yield = tl_block_terminator(op->regions[region]);
  uint32_t len = yield ? yield->num_operands : 0;
  if (len == wanted) return true;
  return tl_verify_fail(verifier, op, "region %u yields %u values, not %u", region, len, wanted);
}

static const tl_type *yielded_type(const tl_op *op, uint32_t region, uint32_t index) {
  const tl_op *yield = tl_block_terminator(op->regions[region]);
  return yield->operands[index].value ? yield->operands[index].value->type : NULL;
}

static void verify_yield_types(tl_verifier *verifier, const tl_op *op, uint32_t region) {
  if (!verify_yield_count(verifier, op, region, op->num_results)) return;
  for (uint32_t i = 0; i < op->num_results; i++) {
    const tl_type *type = yielded_type(op, region, i);
    if (type == NULL || type == op->results[i].type) continue;
    tl_verify_fail(verifier, op, "region %u yields %s for result %u of %s", region, tl_verify_type_text(verifier, type),
                   i, tl_verify_type_text(verifier, op->results[i].type));
  }
}

// PTX ISA, "Cluster of Cooperative Thread Arrays": at most 8 blocks on every GPU.
static void verify_cluster(tl_verifier *verifier, const tl_op *kernel) {
  enum { MAX_BLOCKS = 8 };
  const tl_attr *sizes = tl_op_attr(kernel, TL_ATTR_CLUSTER);
  int64_t blocks = 1;
  if (!sizes) return;
  bool fits = sizes->v.ints.len == TL_MAX_CLUSTER_DIMS;
  for (int32_t d = 0; d < sizes->v.ints.len && fits; d++) {
    fits = sizes->v.ints.items[d] >= 1 && sizes->v.ints.items[d] <= MAX_BLOCKS;
    blocks *= fits ? sizes->v.ints.items[d] : 1;
  }
  if (!fits || blocks > MAX_BLOCKS)
    tl_verify_fail(verifier, kernel, "'cluster' is no %d sizes of at most %d blocks", TL_MAX_CLUSTER_DIMS, MAX_BLOCKS);
}

static void verify_kernel(tl_verifier *verifier, const tl_op *op) {
  verify_cluster(verifier, op);
  if (op->regions[0]->num_args != 0) tl_verify_fail(verifier, op, "a kernel's region has no arguments");
  verify_yield_count(verifier, op, 0, 0);
  if (tl_op_int(op, TL_ATTR_THREADS, 0) % 32 != 0) tl_verify_fail(verifier, op, "'threads' is no multiple of 32");
}

static void verify_for(tl_verifier *verifier, const tl_op *op) {
  const tl_block *block = op->regions[0];
  uint32_t carried = tl_op_group_len(op, TL_GROUP_FOR_inits);
  int64_t step;
  if (tl_value_const_int(tl_op_arg(op, TL_GROUP_FOR_step), &step) && step == 0)
    tl_verify_fail(verifier, op, "the step is 0");
  if (block->num_args != carried + 1) {
    tl_verify_fail(verifier, op, "%u region arguments for an index and %u inits", block->num_args, carried);
    return;
  }
  if (block->args[0]->type->kind != TL_TYPE_INDEX)
    tl_verify_fail(verifier, op, "the first region argument is no index");
  if (op->num_results != carried) {
    tl_verify_fail(verifier, op, "%u results for %u inits", op->num_results, carried);
    return;
  }
  for (uint32_t i = 0; i < carried; i++) {
    const tl_type *init = tl_op_group_at(op, TL_GROUP_FOR_inits, i)->type;
    if (block->args[i + 1]->type == init && op->results[i].type == init) continue;
    tl_verify_fail(verifier, op, "init %u is %s, its region argument %s, its result %s", i,
                   tl_verify_type_text(verifier, init), tl_verify_type_text(verifier, block->args[i + 1]->type),
                   tl_verify_type_text(verifier, op->results[i].type));
  }
  bool has_condition = carried > 0 && tl_type_is_scalar_of(op->results[0].type, TL_DTYPE_BOOL);
  if (tl_op_has(op, TL_ATTR_WHILE) && !has_condition) {
    tl_verify_fail(verifier, op, "with 'while' the first carried value is a bool");
  }
  verify_yield_types(verifier, op, 0);
}

static void verify_if(tl_verifier *verifier, const tl_op *op) {
  for (uint32_t r = 0; r < 2; r++) {
    if (op->regions[r]->num_args != 0) tl_verify_fail(verifier, op, "region %u of an if has arguments", r);
    verify_yield_types(verifier, op, r);
  }
}

// Result r of rank n takes the next n entries of `maps`: for each of its dims the loop dim that walks it, no two the
// same.
static void verify_parallel_results(tl_verifier *verifier, const tl_op *op, const tl_attr *extents) {
  const tl_attr *maps = tl_op_attr(op, TL_ATTR_MAPS);
  int32_t at = 0, num_maps = maps ? maps->v.ints.len : 0;
  if (!verify_yield_count(verifier, op, 0, op->num_results)) return;
  for (uint32_t r = 0; r < op->num_results; r++) {
    const tl_type *tile = op->results[r].type;
    if (tile->kind != TL_TYPE_TILE) {
      tl_verify_fail(verifier, op, "result %u is %s, not a tile", r, tl_verify_type_text(verifier, tile));
      return;
    }
    const tl_type *element = yielded_type(op, 0, r);
    if (element && !tl_type_is_scalar_of(element, tile->dtype)) {
      tl_verify_fail(verifier, op, "yields %s for an element of %s", tl_verify_type_text(verifier, element),
                     tl_verify_type_text(verifier, tile));
    }
    for (int32_t d = 0; d < tile->rank; d++, at++) {
      int64_t dim = at < num_maps ? maps->v.ints.items[at] : -1;
      if (dim < 0 || dim >= extents->v.ints.len || extents->v.ints.items[dim] != tile->dims[d]) {
        tl_verify_fail(verifier, op, "'maps' does not walk dim %d of result %u", d, r);
        return;
      }
      for (int32_t other = 1; other <= d; other++) {
        if (maps->v.ints.items[at - other] != dim) continue;
        tl_verify_fail(verifier, op, "'maps' walks dims %d and %d of result %u by one loop dim", d - other, d, r);
        return;
      }
    }
  }
  if (at != num_maps) tl_verify_fail(verifier, op, "'maps' has %d entries, %d are needed", num_maps, at);
}

static void verify_parallel(tl_verifier *verifier, const tl_op *op) {
  const tl_attr *extents = tl_op_attr(op, TL_ATTR_EXTENTS);
  const tl_block *block = op->regions[0];
  int32_t rank = extents->v.ints.len;
  if (rank > TL_MAX_RANK || block->num_args != (uint32_t)rank) {
    tl_verify_fail(verifier, op, "%u region arguments for %d extents", block->num_args, rank);
    return;
  }
  for (int32_t i = 0; i < rank; i++)
    if (block->args[i]->type->kind != TL_TYPE_INDEX) tl_verify_fail(verifier, op, "region argument %d is no index", i);
  if (!tl_verify_elements(verifier, op, extents->v.ints.items, rank)) return;
  verify_parallel_results(verifier, op, extents);
  const tl_layout *layout = tl_op_layout(op, TL_ATTR_THREAD_LAYOUT);
  if (layout) tl_verify_layout(verifier, op, layout, extents->v.ints.items, rank, "the thread layout");
}

void tl_verify_control_op(tl_verifier *verifier, const tl_op *op) {
  switch (op->code) {
    case TL_OP_KERNEL:
      verify_kernel(verifier, op);
      break;
    case TL_OP_FOR:
      verify_for(verifier, op);
      break;
    case TL_OP_IF:
      verify_if(verifier, op);
      break;
    case TL_OP_PARALLEL:
      verify_parallel(verifier, op);
      break;
    default:
      break;
  }
}
