// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles that TMA fills once, outside of loops: rings of one slot.
//
//   copy %Q -> %Q_s map(%map)                  %r = ring {depth = 1, signal = barriers}
//   for … { gemm %s, %Q_s, … }                 %a = ring_acquire %r; copy %Q -> ring_tile(%a, %Q_s); ring_commit %r
//   …                                     ⇒    %w = ring_wait %r
//                                              for … { gemm %s, ring_tile(%w, %Q_s), … }
//                                              ring_release %w
//
// So warps of their own bring such a tile like any other (assign-roles), in a persistent kernel while the tile before
// still computes. The fill comes directly in front of the first reader: behind the first fills of the rings that loops
// have, which need not wait until the slot is free.
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"
#include "passes/pipeline/pipeline_internal.h"

// The first statement of the kernel's body that touches the tile behind the copy, or NULL.
static tl_op *first_reader(tl_op *copy, const tl_value *tile) {
  for (tl_op *op = copy->next; op; op = op->next)
    if (tl_effects_read(op, tile)) return op;
  return NULL;
}

typedef struct once_emitter {
  tl_module *module;
  tl_op *copy;
  tl_value *ring, *zero;
} once_emitter;

// Of another ring of the kernel, what its author says of roles.
static const tl_attr *wish_for_roles(const tl_op *kernel) {
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next)
    if (op->code == TL_OP_RING && tl_op_has(op, TL_ATTR_SPECIALIZE)) return tl_op_attr(op, TL_ATTR_SPECIALIZE);
  return NULL;
}

static void declare(once_emitter *self, tl_builder *builder, const tl_value *tile) {
  const tl_type *type = tl_type_simple(self->module, TL_TYPE_RING);
  const tl_attr *wish = wish_for_roles(tl_op_enclosing(self->copy, TL_OP_KERNEL));
  tl_op *ring = tl_build(builder, TL_OP_RING, NULL, &type, 1);
  tl_op_set_str(self->module, ring, TL_ATTR_NAME, tl_str_from(tl_buffer_name(tile)));
  tl_op_set_int(self->module, ring, TL_ATTR_DEPTH, 1);
  tl_op_set_int(self->module, ring, TL_ATTR_SIGNAL, TL_SIGNAL_BARRIERS);
  if (wish) tl_op_set_attr(self->module, ring, wish);
  self->ring = tl_op_result(ring, 0);
  self->zero = tl_build_index(builder, 0);
}

static tl_value *slot_of(once_emitter *self, tl_builder *builder, tl_opcode code) {
  const tl_type *type = tl_type_simple(self->module, TL_TYPE_SLOT);
  tl_group groups[] = {TL_GROUP_OF(self->ring), TL_GROUP_OF(self->zero)};
  tl_op *op = tl_build(builder, code, groups, &type, 1);
  if (code == TL_OP_RING_WAIT) tl_op_set_int(self->module, op, TL_ATTR_PENDING, 0);
  return tl_op_result(op, 0);
}

static tl_value *tile_in(tl_builder *builder, tl_value *slot, tl_value *tile) {
  tl_group groups[] = {TL_GROUP_OF(slot), TL_GROUP_OF(tile)};
  tl_value *part = tl_op_result(tl_build(builder, TL_OP_RING_TILE, groups, &tile->type, 1), 0);
  part->name = tile->name;
  return part;
}

static bool takes_any(const tl_op *op, const tl_op *from) {
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_value *value = tl_op_operand(op, i);
    if (value->type->kind == TL_TYPE_FLIGHT && value->def == from) return true;
  }
  return false;
}

// Where the gemms have ended that are in flight behind a statement: it is read until then.
static tl_op *end_of_flights(tl_op *from) {
  tl_op *last = from;
  for (tl_op *op = from->next; op; op = op->next)
    if (takes_any(op, last)) last = op;
  return last;
}

// Releases the slot behind the last statement of the body that reads it.
static void release(once_emitter *self, const tl_value *tile, tl_value *slot) {
  tl_op *last = slot->def;
  for (tl_op *op = slot->def; op; op = op->next)
    if (tl_effects_read(op, tile)) last = op;
  last = end_of_flights(last);
  tl_builder builder;
  tl_builder_after(&builder, self->module, last);
  builder.loc = self->copy->loc;
  tl_group groups[] = {TL_GROUP_OF(slot)};
  tl_build(&builder, TL_OP_RING_RELEASE, groups, NULL, 0);
}

static void make_ring(tl_pass_context *context, tl_op *copy) {
  once_emitter self = {.module = context->module, .copy = copy};
  tl_value *tile = tl_op_arg(copy, TL_GROUP_COPY_dst);
  tl_op *reader = first_reader(copy, tile);
  tl_builder builder;
  tl_builder_before(&builder, self.module, copy);
  builder.loc = copy->loc;
  declare(&self, &builder, tile);
  tl_builder_before(&builder, self.module, reader);
  builder.loc = copy->loc;
  tl_value *filled = tile_in(&builder, slot_of(&self, &builder, TL_OP_RING_ACQUIRE), tile);
  tl_op_move_before(copy, reader);
  const tl_type *token = tl_type_simple(self.module, TL_TYPE_TOKEN);
  tl_op_set_results(self.module, copy, &token, 1);
  tl_op_set_unit(self.module, copy, TL_ATTR_ASYNC);
  tl_builder_before(&builder, self.module, reader);
  builder.loc = copy->loc;
  tl_group commit[] = {TL_GROUP_OF(self.ring), TL_GROUP_OF(tl_op_result(copy, 0))};
  tl_build(&builder, TL_OP_RING_COMMIT, commit, NULL, 0);
  tl_value *slot = slot_of(&self, &builder, TL_OP_RING_WAIT);
  tl_value *readable = tile_in(&builder, slot, tile);
  tl_op_set_group(self.module, copy, TL_GROUP_COPY_dst, &filled, 1);
  release(&self, tile, slot);
  tl_value_replace_uses(tile, readable);
  enum { TILE = 1 };  // operand of ring_tile
  tl_op_set_operand(filled->def, TILE, tile);
  tl_op_set_operand(readable->def, TILE, tile);
  tl_diag_report(context->diags, TL_DIAG_PIPELINE_RING, copy->loc, "the copy into '%s' has a ring of one buffer",
                 tl_buffer_name(tile));
}

void tl_pipeline_once(tl_pass_context *context, tl_op *kernel) {
  for (tl_op *op = kernel->regions[0]->first, *next; op; op = next) {
    next = op->next;
    bool by_engine = op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map) && tl_is_async_candidate(op);
    if (tl_op_has(op, TL_ATTR_BY_HAND)) continue;
    if (by_engine && tl_copy_fills_once(op)) make_ring(context, op);
  }
}
