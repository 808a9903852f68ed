// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of rings: an acquired slot is only written, a waited slot only read, a token is committed once.
#include "ir/verify/verify_internal.h"

// The alloc behind stage_tile, ring_tile and views; NULL when it is another buffer. Other ops than the one that is
// verified may be malformed: nothing is taken for granted here.
static const tl_op *alloc_of(const tl_value *buffer) {
  // Bounded: broken IR may run in circles.
  for (int steps = 0; steps < 64 && buffer && buffer->def; steps++) {
    const tl_op *op = buffer->def;
    switch (op->code) {
      case TL_OP_ALLOC:
        return op;
      case TL_OP_VIEW:
        buffer = tl_op_arg(op, TL_GROUP_VIEW_buffer);
        break;
      case TL_OP_RING_TILE:
        buffer = tl_op_arg(op, TL_GROUP_RING_TILE_tile);
        break;
      case TL_OP_STAGE_TILE:
        buffer = tl_op_arg(op, TL_GROUP_STAGE_TILE_tile);
        break;
      case TL_OP_PEER_TILE:
        buffer = tl_op_arg(op, TL_GROUP_PEER_TILE_tile);
        break;
      case TL_OP_PART_TILE:
        buffer = tl_op_arg(op, TL_GROUP_PART_TILE_tile);
        break;
      default:
        return NULL;
    }
  }
  return NULL;
}

// Which group of its op a use belongs to.
static int group_of(const tl_use *use) {
  uint32_t index = (uint32_t)(use - use->owner->operands);
  int group = 0;
  while (index >= use->owner->group_sizes[group]) index -= use->owner->group_sizes[group++];
  return group;
}

static bool is_write(const tl_use *use) {
  int group = group_of(use);
  switch (use->owner->code) {
    case TL_OP_COPY:
      return group == TL_GROUP_COPY_dst;
    case TL_OP_TILE_STORE:
      return group == TL_GROUP_TILE_STORE_dst;
    case TL_OP_STORE:
      return group == TL_GROUP_STORE_buffer;
    case TL_OP_FILL:
      return group == TL_GROUP_FILL_buffer;
    default:
      return false;
  }
}

static bool is_read(const tl_use *use) {
  int group = group_of(use);
  switch (use->owner->code) {
    case TL_OP_COPY:
      return group == TL_GROUP_COPY_src;
    case TL_OP_TILE_LOAD:
      return group == TL_GROUP_TILE_LOAD_src;
    case TL_OP_LOAD:
      return group == TL_GROUP_LOAD_buffer;
    case TL_OP_GEMM:
      return group == TL_GROUP_GEMM_a || group == TL_GROUP_GEMM_b || group == TL_GROUP_GEMM_meta;
    default:
      return false;
  }
}

static void verify_slot_uses(tl_verifier *verifier, const tl_value *tile, bool acquired, int depth) {
  for (const tl_use *use = tile->uses; use; use = use->next) {
    const tl_op *owner = use->owner;
    bool is_name = owner->code == TL_OP_VIEW || owner->code == TL_OP_PART_TILE;
    if (is_name && owner->num_results == 1 && depth < 64) {
      verify_slot_uses(verifier, &owner->results[0], acquired, depth + 1);
    } else if (owner->code == TL_OP_IN_BOUNDS) {
      continue;
    } else if (acquired ? !is_write(use) : !is_read(use)) {
      tl_verify_fail(verifier, owner, "'%s' may only %s a tile of %s slot", tl_op_info_of(owner->code)->name,
                     acquired ? "write" : "read", acquired ? "an acquired" : "a waited");
    }
  }
}

static void verify_ring_tile(tl_verifier *verifier, const tl_op *op) {
  const tl_value *slot = tl_op_arg(op, TL_GROUP_RING_TILE_slot), *tile = tl_op_arg(op, TL_GROUP_RING_TILE_tile);
  if (op->results[0].type != tile->type) {
    tl_verify_fail(verifier, op, "a slot's part of %s is not %s", tl_verify_type_text(verifier, tile->type),
                   tl_verify_type_text(verifier, op->results[0].type));
  }
  const tl_op *from = slot->def;
  bool acquired = from && from->code == TL_OP_RING_ACQUIRE;
  if (!acquired && (from == NULL || from->code != TL_OP_RING_WAIT)) {
    tl_verify_fail(verifier, op, "the slot comes from no ring_acquire or ring_wait");
    return;
  }
  const tl_value *ring = from->num_operands ? from->operands[0].value : NULL;
  const tl_op *alloc = alloc_of(tile);
  if (alloc == NULL || tl_op_int(alloc, TL_ATTR_DEPTH, 1) < 1) {
    tl_verify_fail(verifier, op, "the tile is no alloc");
  } else if (ring && ring->def && ring->def->code == TL_OP_RING &&
             tl_op_int(alloc, TL_ATTR_DEPTH, 1) != tl_op_int(ring->def, TL_ATTR_DEPTH, 1)) {
    tl_verify_fail(verifier, op, "the tile has depth %lld, the ring %lld",
                   (long long)tl_op_int(alloc, TL_ATTR_DEPTH, 1), (long long)tl_op_int(ring->def, TL_ATTR_DEPTH, 1));
  }
  verify_slot_uses(verifier, &op->results[0], acquired, 0);
}

static void verify_stage_tile(tl_verifier *verifier, const tl_op *op) {
  const tl_value *tile = tl_op_arg(op, TL_GROUP_STAGE_TILE_tile);
  if (op->results[0].type != tile->type) {
    tl_verify_fail(verifier, op, "a stage of %s is not %s", tl_verify_type_text(verifier, tile->type),
                   tl_verify_type_text(verifier, op->results[0].type));
  }
  const tl_op *alloc = alloc_of(tile);
  int64_t stage, depth = alloc ? tl_op_int(alloc, TL_ATTR_DEPTH, 1) : 0;
  if (alloc == NULL) {
    tl_verify_fail(verifier, op, "the tile is no alloc");
  } else if (tl_value_const_int(tl_op_arg(op, TL_GROUP_STAGE_TILE_stage), &stage) && (stage < 0 || stage >= depth)) {
    tl_verify_fail(verifier, op, "stage %lld of %lld", (long long)stage, (long long)depth);
  }
}

static void verify_peer_tile(tl_verifier *verifier, const tl_op *op) {
  const tl_value *tile = tl_op_arg(op, TL_GROUP_PEER_TILE_tile);
  const tl_op *kernel = tl_op_enclosing(op, TL_OP_KERNEL);
  if (op->results[0].type != tile->type || alloc_of(tile) == NULL)
    tl_verify_fail(verifier, op, "the result is no shared tile as the operand is");
  if (kernel && tl_kernel_cluster_size(kernel, tl_op_int(op, TL_ATTR_ACROSS, 0), NULL) < 2)
    tl_verify_fail(verifier, op, "no blocks form a cluster along dim %lld of the grid",
                   (long long)tl_op_int(op, TL_ATTR_ACROSS, 0));
}

static void verify_part_tile(tl_verifier *verifier, const tl_op *op) {
  const tl_type *tile = tl_op_arg(op, TL_GROUP_PART_TILE_tile)->type, *part = op->results[0].type;
  const tl_attr *walked = tl_op_attr(op, TL_ATTR_SRC_DIMS);
  const int64_t *dims = walked->v.ints.items;
  if (tile->kind != TL_TYPE_BUFFER || tile->scope != TL_SCOPE_SHARED || part->kind != TL_TYPE_BUFFER ||
      part->scope != TL_SCOPE_SHARED || part->dtype != tile->dtype || part->rank != 2 || walked->v.ints.len != 2) {
    tl_verify_fail(verifier, op, "the result is no shared tile of 2 dims and of the operand's dtype");
    return;
  }
  if (tl_op_group_len(op, TL_GROUP_PART_TILE_offsets) != (uint32_t)tile->rank || dims[0] < 0 || dims[0] >= dims[1] ||
      dims[1] != tile->rank - 1) {
    tl_verify_fail(verifier, op, "an offset for each dim, and two of the dims, of which one is the last, are wanted");
    return;
  }
  for (int32_t d = 0; d < tile->rank; d++) {
    int64_t extent = d == dims[0] ? part->dims[0] : d == dims[1] ? part->dims[1] : 1;
    if (extent > tile->dims[d]) tl_verify_fail(verifier, op, "the part leaves dim %d of the tile", d);
  }
  for (const tl_use *use = op->results[0].uses; use; use = use->next)
    if (use->owner->code != TL_OP_GEMM || group_of(use) == TL_GROUP_GEMM_acc)
      tl_verify_fail(verifier, use->owner, "a part of a tile is an operand of gemm only");
}

// A token is committed once. A copy under a condition may leave its token unused: the commit takes what was started.
static void verify_token(tl_verifier *verifier, const tl_op *op) {
  const tl_value *token = &op->results[0];
  uint32_t count = 0;
  for (const tl_use *use = token->uses; use; use = use->next) {
    count++;
    if (use->owner->code != TL_OP_RING_COMMIT && use->owner->code != TL_OP_ASYNC_COMMIT &&
        use->owner->code != TL_OP_BULK_COMMIT) {
      tl_verify_fail(verifier, use->owner, "'%s' takes no token", tl_op_info_of(use->owner->code)->name);
    }
  }
  if (count > 1) tl_verify_fail(verifier, op, "the token is committed %u times", count);
  if (count == 0 && verifier->module->level && tl_op_enclosing(op, TL_OP_IF) == NULL) {
    tl_verify_fail(verifier, op, "the token is never committed");
  }
}

static void verify_result_kind(tl_verifier *verifier, const tl_op *op, tl_type_kind kind, const char *text) {
  if (op->results[0].type->kind != kind) tl_verify_fail(verifier, op, "the result is no %s", text);
}

void tl_verify_ring_op(tl_verifier *verifier, const tl_op *op) {
  switch (op->code) {
    case TL_OP_RING:
      verify_result_kind(verifier, op, TL_TYPE_RING, "ring");
      break;
    case TL_OP_RING_ACQUIRE:
      verify_result_kind(verifier, op, TL_TYPE_SLOT, "slot");
      break;
    case TL_OP_RING_WAIT:
      verify_result_kind(verifier, op, TL_TYPE_SLOT, "slot");
      break;
    case TL_OP_RING_RELEASE: {
      const tl_op *from = tl_op_arg(op, TL_GROUP_RING_RELEASE_slot)->def;
      if (from == NULL || from->code != TL_OP_RING_WAIT) {
        tl_verify_fail(verifier, op, "releases a slot that no ring_wait gave");
      }
      break;
    }
    case TL_OP_ASYNC_WAIT:
      break;
    case TL_OP_RING_TILE:
      verify_ring_tile(verifier, op);
      break;
    case TL_OP_STAGE_TILE:
      verify_stage_tile(verifier, op);
      break;
    case TL_OP_PART_TILE:
      verify_part_tile(verifier, op);
      break;
    case TL_OP_PEER_TILE:
      verify_peer_tile(verifier, op);
      break;
    case TL_OP_COPY:
      if (op->num_results == 1 && op->results[0].type->kind == TL_TYPE_TOKEN) verify_token(verifier, op);
      break;
    default:
      break;
  }
}
