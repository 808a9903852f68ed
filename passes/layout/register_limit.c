// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The registers that tile values take. What one thread must hold at once can be more than it has; such a kernel would
// live in local memory, and the code for it would grow with the tile.
#include "passes/layout/infer_layouts.h"

typedef struct held_tiles {
  TL_VEC(const tl_value *) values;  // alive together
  int64_t registers;                // of one thread, at least
} held_tiles;

// 32-bit registers of one thread, at least: narrow elements are packed.
static int64_t registers_of(const tl_value *value) {
  int64_t bits = (int64_t)tl_layout_num_registers(value->type->layout) * tl_dtype_bits(value->type->dtype);
  return (bits + 31) / 32;
}

static void hold(held_tiles *held, const tl_value *value) {
  if (value->type->kind != TL_TYPE_TILE || !value->type->layout) return;
  tl_vec_push(&held->values, value);
  held->registers += registers_of(value);
}

static const char *name_of(const tl_value *value) {
  return value->name ? value->name : "a tile";
}

static void report(tl_layout_graph *graph, const tl_op *op, const held_tiles *held) {
  tl_diags *diags = graph->context->diags;
  tl_diag *diag = tl_diag_report(diags, TL_DIAG_REGISTER_LIMIT, op->loc,
                                 "the tiles held here take %lld registers of a thread, but there are %d",
                                 (long long)held->registers, TL_MAX_REGISTERS_PER_THREAD);
  const tl_value *largest = held->values.items[0];
  for (size_t i = 0; i < held->values.len; i++) {
    const tl_value *value = held->values.items[i];
    if (registers_of(value) > registers_of(largest)) largest = value;
    tl_diag_add_note(diags, diag, op->loc, "'%s' takes %lld registers in each of %d threads", name_of(value),
                     (long long)registers_of(value), graph->threads);
  }
  tl_diag_add_hint(diags, diag, "make '%s' smaller, or use more threads", name_of(largest));
}

// Values that are certainly alive together: what a loop carries, else each result of an op for itself.
static void check_op(tl_op *op, void *user) {
  tl_layout_graph *graph = user;
  held_tiles held = {0};
  if (graph->over_registers) return;
  if (op->code == TL_OP_FOR) {
    for (uint32_t i = 0; i < op->regions[0]->num_args; i++) hold(&held, op->regions[0]->args[i]);
  } else {
    for (uint32_t i = 0; i < op->num_results; i++) hold(&held, &op->results[i]);
  }
  if (held.registers > TL_MAX_REGISTERS_PER_THREAD) {
    report(graph, op, &held);
    graph->over_registers = true;
  }
  tl_vec_fini(&held.values);
}

void tl_check_registers(tl_layout_graph *graph) {
  tl_walk(graph->kernel, check_op, graph);
}
