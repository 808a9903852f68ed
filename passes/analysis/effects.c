// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory effects of ops, by the rows of ops.def.
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
    } else if (op->code == TL_OP_PEER_TILE) {
      buffer = tl_op_arg(op, TL_GROUP_PEER_TILE_tile);
    } else if (op->code == TL_OP_PART_TILE) {
      buffer = tl_op_arg(op, TL_GROUP_PART_TILE_tile);
    } else {
      break;
    }
  }
  if (out_slot) *out_slot = slot;
  if (out_stage) *out_stage = stage;
  return buffer;
}

static void add(tl_effect_list *out, tl_effect_kind kind, tl_op *op, tl_value *buffer) {
  if (buffer->type->kind != TL_TYPE_BUFFER) return;
  if (buffer->type->scope == TL_SCOPE_LOCAL) return;  // private to a thread
  tl_effect effect = {.kind = kind, .op = op, .buffer = buffer};
  effect.root = tl_effect_root(buffer, &effect.slot, &effect.stage);
  if (kind != TL_EFFECT_ATOMIC) {
    const tl_op *parallel = op->code == TL_OP_COPY ? NULL : tl_op_enclosing(op, TL_OP_PARALLEL);
    bool by_engine = op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map) && tl_op_arg(op, TL_GROUP_COPY_barrier);
    effect.is_async = by_engine || tl_op_has(op, TL_ATTR_ASYNC) || (parallel && tl_op_has(parallel, TL_ATTR_ASYNC));
  }
  tl_vec_push(out, effect);
}

static const struct effect_row {
  tl_opcode code;
  int group;
  tl_effect_kind kind;
} effect_rows[] = {
#define TL_OP(ID, text, levels, flags, regions, results, doc)
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need)
#define TL_OPEFFECT(ID, group, kind) {TL_OP_##ID, TL_GROUP_##ID##_##group, TL_EFFECT_##kind},
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};

bool tl_op_touches_memory(const tl_op *op) {
  return (tl_op_info_of(op->code)->flags & (TL_OPFLAG_READ | TL_OPFLAG_WRITE)) != 0;
}

void tl_effects_of(tl_op *op, tl_effect_list *out) {
  if (!tl_op_touches_memory(op)) return;
  for (size_t r = 0; r < sizeof(effect_rows) / sizeof(effect_rows[0]); r++) {
    const struct effect_row *row = &effect_rows[r];
    if (row->code != op->code) continue;
    for (uint32_t i = 0; i < tl_op_group_len(op, row->group); i++)
      add(out, row->kind, op, tl_op_group_at(op, row->group, i));
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
