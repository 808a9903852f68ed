// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory effects of ops, read off their operands.
#include "passes/analysis/effects.h"

tl_value *tl_effect_root(tl_value *buffer, tl_value **out_slot, tl_value **out_stage) {
  tl_value *slot = NULL;
  tl_value *stage = NULL;
  while (buffer->def) {
    tl_op *op = buffer->def;
    if (op->code == TL_OP_VIEW) {
      buffer = tl_op_arg(op, TL_GROUP_VIEW_buffer);
    } else if (op->code == TL_OP_RING_TILE) {
      slot = tl_op_arg(op, TL_GROUP_RING_TILE_slot);
      buffer = tl_op_arg(op, TL_GROUP_RING_TILE_tile);
    } else if (op->code == TL_OP_STAGE_TILE) {
      stage = tl_op_arg(op, TL_GROUP_STAGE_TILE_stage);
      buffer = tl_op_arg(op, TL_GROUP_STAGE_TILE_tile);
    } else {
      break;
    }
  }
  if (out_slot) *out_slot = slot;
  if (out_stage) *out_stage = stage;
  return buffer;
}

static void add(tl_effect_list *out, tl_effect_kind kind, tl_op *op, tl_value *buffer) {
  if (buffer == NULL || buffer->type->kind != TL_TYPE_BUFFER) return;
  if (buffer->type->scope == TL_SCOPE_LOCAL) return;  // private to a thread
  tl_effect effect = {.kind = kind, .op = op, .buffer = buffer};
  effect.root = tl_effect_root(buffer, &effect.slot, &effect.stage);
  if (kind != TL_EFFECT_ATOMIC) {
    const tl_op *parallel = op->code == TL_OP_COPY ? NULL : tl_op_enclosing(op, TL_OP_PARALLEL);
    effect.is_async = tl_op_has(op, TL_ATTR_ASYNC) || (parallel && tl_op_has(parallel, TL_ATTR_ASYNC));
  }
  tl_vec_push(out, effect);
}

void tl_effects_of(tl_op *op, tl_effect_list *out) {
  int flags = tl_op_info_of(op->code)->flags;
  if (!(flags & (TL_OPFLAG_READ | TL_OPFLAG_WRITE))) return;
  switch ((int)op->code) {
    case TL_OP_LOAD:
      add(out, TL_EFFECT_READ, op, tl_op_arg(op, TL_GROUP_LOAD_buffer));
      return;
    case TL_OP_STORE:
      add(out, TL_EFFECT_WRITE, op, tl_op_arg(op, TL_GROUP_STORE_buffer));
      return;
    case TL_OP_ATOMIC:
      add(out, TL_EFFECT_ATOMIC, op, tl_op_arg(op, TL_GROUP_ATOMIC_buffer));
      return;
    case TL_OP_WAIT_UNTIL:
      add(out, TL_EFFECT_ATOMIC, op, tl_op_arg(op, TL_GROUP_WAIT_UNTIL_buffer));
      return;
    case TL_OP_FILL:
      add(out, TL_EFFECT_WRITE, op, tl_op_arg(op, TL_GROUP_FILL_buffer));
      return;
    case TL_OP_COPY:
      add(out, TL_EFFECT_READ, op, tl_op_arg(op, TL_GROUP_COPY_src));
      add(out, TL_EFFECT_WRITE, op, tl_op_arg(op, TL_GROUP_COPY_dst));
      return;
    case TL_OP_REDUCE:
      for (uint32_t i = 0; i < tl_op_group_len(op, TL_GROUP_REDUCE_src); i++)
        add(out, TL_EFFECT_READ, op, tl_op_group_at(op, TL_GROUP_REDUCE_src, i));
      for (uint32_t i = 0; i < tl_op_group_len(op, TL_GROUP_REDUCE_dst); i++)
        add(out, TL_EFFECT_WRITE, op, tl_op_group_at(op, TL_GROUP_REDUCE_dst, i));
      return;
    case TL_OP_SCAN:
      add(out, TL_EFFECT_READ, op, tl_op_arg(op, TL_GROUP_SCAN_src));
      add(out, TL_EFFECT_WRITE, op, tl_op_arg(op, TL_GROUP_SCAN_dst));
      return;
    case TL_OP_GEMM:
      add(out, TL_EFFECT_READ, op, tl_op_arg(op, TL_GROUP_GEMM_a));
      add(out, TL_EFFECT_READ, op, tl_op_arg(op, TL_GROUP_GEMM_b));
      add(out, TL_EFFECT_READ, op, tl_op_arg(op, TL_GROUP_GEMM_acc));
      add(out, TL_EFFECT_WRITE, op, tl_op_arg(op, TL_GROUP_GEMM_acc));
      return;
    case TL_OP_TILE_LOAD:
      add(out, TL_EFFECT_READ, op, tl_op_arg(op, TL_GROUP_TILE_LOAD_src));
      return;
    case TL_OP_TILE_STORE:
      add(out, TL_EFFECT_WRITE, op, tl_op_arg(op, TL_GROUP_TILE_STORE_dst));
      return;
    default:
      break;
  }
  // Any other op that touches memory: every buffer operand counts for what the op's flags say.
  for (uint32_t i = 0; i < op->num_operands; i++) {
    tl_value *value = tl_op_operand(op, i);
    if (flags & TL_OPFLAG_READ) add(out, TL_EFFECT_READ, op, value);
    if (flags & TL_OPFLAG_WRITE) add(out, TL_EFFECT_WRITE, op, value);
  }
}

void tl_effects_inside(tl_op *op, tl_effect_list *out) {
  tl_effects_of(op, out);
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (tl_op *inner = op->regions[r]->first; inner; inner = inner->next) tl_effects_inside(inner, out);
  }
}

static bool touches(tl_op *op, const tl_value *root, bool reads) {
  tl_effect_list effects = {0};
  tl_effects_inside(op, &effects);
  bool found = false;
  for (size_t i = 0; i < effects.len && !found; i++) {
    const tl_effect *effect = &effects.items[i];
    bool matches = effect->kind == TL_EFFECT_ATOMIC || (effect->kind == TL_EFFECT_READ) == reads;
    found = matches && effect->root == root;
  }
  tl_vec_fini(&effects);
  return found;
}

bool tl_effects_read(tl_op *op, const tl_value *root) {
  return touches(op, root, true);
}
bool tl_effects_write(tl_op *op, const tl_value *root) {
  return touches(op, root, false);
}
