// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check-uniform: refuses tile operations under control flow that differs between the threads of a block.
//
//   if (thread_id() < 64) { copy … }      error: a tile operation under a condition that differs between threads
//
// A value is uniform when it is made of constants, params, block indices and uniform loop indices, of elements of `in`
// tensors and shared tiles at uniform indices, and of local scalars that only hold uniform values. Marks uniform
// branches (`uniform`) and uniform loads for the passes that follow.
#include <stdlib.h>

#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

// A value that may differ between threads, and the op where they first differ.
typedef struct divergent_value {
  const tl_value *value;
  const tl_op *source;
} divergent_value;

// The values that may differ between threads, found by following uses from where threads first differ.
typedef struct uniform_state {
  tl_pass_context *context;
  const tl_op *divergent;  // innermost divergent branch or loop around the current op, or NULL
  const tl_op *source;     // of the values that are being marked; of what makes `divergent` so
  divergent_value *slots;  // Owned. Open addressing.
  size_t num_slots, num_values;
  TL_VEC(const tl_value *) work;
} uniform_state;

static size_t slot_of(const uniform_state *state, const tl_value *value) {
  size_t slot = ((uintptr_t)value >> 4) * 0x9E3779B97F4A7C15u % state->num_slots;
  while (state->slots[slot].value && state->slots[slot].value != value) slot = (slot + 1) % state->num_slots;
  return slot;
}

static bool is_uniform(const uniform_state *state, const tl_value *value) {
  return state->num_slots == 0 || !state->slots[slot_of(state, value)].value;
}

static void mark(uniform_state *state, const tl_value *value) {
  if (!is_uniform(state, value)) return;
  if (state->num_values * 2 >= state->num_slots) {
    divergent_value *old = state->slots;
    size_t old_slots = state->num_slots;
    state->num_slots = old_slots ? old_slots * 2 : 256;
    state->slots = tl_xcalloc(state->num_slots, sizeof *state->slots);
    for (size_t i = 0; i < old_slots; i++) {
      if (old[i].value) state->slots[slot_of(state, old[i].value)] = old[i];
    }
    free(old);
  }
  state->slots[slot_of(state, value)] = (divergent_value){value, state->source};
  state->num_values++;
  tl_vec_push(&state->work, value);
}

static void mark_results(uniform_state *state, const tl_op *op) {
  for (uint32_t i = 0; i < op->num_results; i++) mark(state, tl_op_result(op, i));
}

static bool is_local(const tl_value *buffer) {
  return buffer->type->scope == TL_SCOPE_LOCAL;
}

// A local scalar that some threads write and others do not, or with different values, differs between threads.
static void mark_local_stores(uniform_state *state, const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_STORE && is_local(tl_element_buffer(op))) mark(state, tl_element_buffer(op));
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) mark_local_stores(state, op->regions[r]);
    }
  }
}

// Where threads first differ.
static void seed(tl_op *op, void *user) {
  uniform_state *state = user;
  state->source = op;
  switch (op->code) {
    case TL_OP_THREAD_ID:
    case TL_OP_LANE_ID:
    case TL_OP_WARP_ID:
    case TL_OP_EXTRACT:
      mark_results(state, op);
      break;
    case TL_OP_LOAD: {
      // What other blocks may write meanwhile can differ from thread to thread.
      const tl_value *buffer = tl_element_buffer(op);
      const tl_op *root = tl_buffer_root(buffer);
      bool constant = root && tl_op_int(root, TL_ATTR_ACCESS, TL_ACCESS_INOUT) == TL_ACCESS_IN;
      if (buffer->type->scope == TL_SCOPE_FRAGMENT || (tl_buffer_is_global(buffer) && !constant))
        mark_results(state, op);
      break;
    }
    case TL_OP_ATOMIC:
      // Outside a parallel an atomic runs once a block and every thread gets its result.
      if (tl_op_enclosing(op, TL_OP_PARALLEL)) mark_results(state, op);
      break;
    case TL_OP_PARALLEL:
      for (uint32_t a = 0; a < op->regions[0]->num_args; a++) mark(state, op->regions[0]->args[a]);
      mark_local_stores(state, op->regions[0]);
      break;
    default:
      break;
  }
}

// Threads take different ways through `op`: whatever it gives differs.
static void mark_region(uniform_state *state, const tl_op *op) {
  for (uint32_t r = 0; r < op->num_regions; r++) {
    if (!op->regions[r]) continue;
    for (uint32_t a = 0; a < op->regions[r]->num_args; a++) mark(state, op->regions[r]->args[a]);
    mark_local_stores(state, op->regions[r]);
  }
  mark_results(state, op);
}

// What a divergent operand of `op` makes divergent.
static void follow(uniform_state *state, const tl_use *use) {
  const tl_op *op = use->owner;
  uint32_t position = (uint32_t)(use - op->operands);
  if (op->code == TL_OP_YIELD) {
    const tl_op *parent = op->parent->parent;
    if (position == 0 && tl_op_has(parent, TL_ATTR_WHILE)) mark_region(state, parent);
    if (parent->code == TL_OP_FOR) mark(state, parent->regions[0]->args[position + 1]);
    if (position < parent->num_results) mark(state, tl_op_result(parent, position));
  } else if (op->code == TL_OP_FOR && position >= 3) {
    if (position == 3 && tl_op_has(op, TL_ATTR_WHILE)) mark_region(state, op);
    mark(state, op->regions[0]->args[position - 3 + 1]);
    mark(state, tl_op_result(op, position - 3));
  } else if (op->code == TL_OP_FOR || op->code == TL_OP_IF) {
    mark_region(state, op);
  } else if (op->code == TL_OP_STORE) {
    if (is_local(tl_element_buffer(op)) && use->value != tl_element_buffer(op)) mark(state, tl_element_buffer(op));
  } else {
    mark_results(state, op);
  }
}

static void find_divergent(uniform_state *state, tl_op *kernel) {
  tl_walk(kernel, seed, state);
  while (state->work.len > 0) {
    const tl_value *value = tl_vec_pop(&state->work);
    state->source = state->slots[slot_of(state, value)].source;
    for (const tl_use *use = value->uses; use; use = use->next) follow(state, use);
  }
}

// ---- walking

static const char *tile_operation(const tl_op *op) {
  switch (op->code) {
    case TL_OP_COPY:
      return "copy";
    case TL_OP_FILL:
      return "fill";
    case TL_OP_GEMM:
      return "gemm";
    case TL_OP_REDUCE:
      return "reduction";
    case TL_OP_SCAN:
      return "scan";
    case TL_OP_PARALLEL:
      return "parallel";
    case TL_OP_BARRIER:
      return "barrier";
    case TL_OP_WAIT_UNTIL:
      return "wait_until";
    case TL_OP_GEMM_WAIT:
      return "wait_gemm";
    case TL_OP_NAMED_SYNC:
      return "sync";
    case TL_OP_NAMED_ARRIVE:
    case TL_OP_MBARRIER_ARRIVE:
      return "arrive";
    case TL_OP_MBARRIER_WAIT:
      return "wait";
    case TL_OP_MBARRIER_EXPECT:
      return "expect";
    case TL_OP_TILE_LOAD:
      return "tile load";
    case TL_OP_TILE_STORE:
      return "tile store";
    case TL_OP_LOAD:
    case TL_OP_STORE:
    case TL_OP_ATOMIC:
    case TL_OP_PRINT:
    case TL_OP_ASSERT:
      return NULL;
    default:
      break;
  }
  // What orders threads or moves data between them needs all of them.
  bool meets = (tl_op_info_of(op->code)->flags & (TL_OPFLAG_READ | TL_OPFLAG_WRITE | TL_OPFLAG_SYNC)) != 0;
  return meets ? tl_op_info_of(op->code)->name : NULL;
}

// `state->divergent` is set.
static void report(const uniform_state *state, const tl_op *op, const char *what) {
  const tl_op *branch = state->divergent;
  tl_diag *diag = tl_diag_report(state->context->diags, TL_DIAG_DIVERGENT, op->loc,
                                 "this %s stands under %s that differs between threads", what,
                                 branch->code == TL_OP_IF ? "a condition" : "a loop bound");
  tl_diag_add_note(state->context->diags, diag, branch->loc, branch->code == TL_OP_IF ? "the condition" : "the loop");
  if (state->source->code == TL_OP_LOAD && tl_buffer_is_global(tl_element_buffer(state->source))) {
    tl_diag_add_note(state->context->diags, diag, state->source->loc,
                     "each thread reads this element on its own, and it may be written meanwhile");
    tl_diag_add_hint(state->context->diags, diag,
                     "copy the element to a shared tile first, as in `copy: n[0:1] -> s`: all threads read one `s[0]`");
    return;
  }
  tl_diag_add_hint(state->context->diags, diag, "inside a `parallel` every element may decide for itself");
}

static void visit_block(uniform_state *state, tl_block *block);

// The value that makes threads take different ways through a branch or loop; NULL when they all take one.
static const tl_value *divergent_operand(const uniform_state *state, const tl_op *op) {
  uint32_t count = op->code == TL_OP_IF ? 1 : 3;
  for (uint32_t i = 0; i < count; i++) {
    if (!is_uniform(state, tl_op_operand(op, i))) return tl_op_operand(op, i);
  }
  bool is_while = op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_WHILE);
  return is_while && !is_uniform(state, op->regions[0]->args[1]) ? op->regions[0]->args[1] : NULL;
}

// Whether an op of a reduction's loop gives every thread of the block the same, whichever of them runs it.
typedef struct reduction_body {
  const uniform_state *state;
  const tl_op *loop;
  bool is_same;
} reduction_body;

static void look_at_term(tl_op *op, void *user) {
  reduction_body *body = user;
  bool names_thread = op->code == TL_OP_THREAD_ID || op->code == TL_OP_LANE_ID || op->code == TL_OP_WARP_ID;
  bool is_control = op->code == TL_OP_FOR || op->code == TL_OP_IF || op->code == TL_OP_YIELD;
  bool is_read = op->code == TL_OP_LOAD && tl_element_buffer(op)->type->scope != TL_SCOPE_FRAGMENT;
  bool is_pure = (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) != 0;
  body->is_same = body->is_same && !names_thread && (is_control || is_read || is_pure);
  for (uint32_t i = 0; i < op->num_operands && body->is_same; i++) {
    const tl_value *value = tl_op_operand(op, i);
    bool is_inside = value->def ? tl_op_is_inside(value->def, body->loop) && value->def != body->loop
                                : tl_op_is_inside(value->block->parent, body->loop);
    body->is_same = is_inside || is_uniform(body->state, value);
  }
}

// The loop of a sum whose terms all threads would compute alike, where all of them stand: share-reductions may let
// each of them take a part.
static void mark_reduction(const uniform_state *state, tl_op *loop) {
  reduction_body body = {state, loop, true};
  tl_walk(loop, look_at_term, &body);
  if (body.is_same) tl_op_set_unit(state->context->module, loop, TL_ATTR_UNIFORM);
}

static void visit_control(uniform_state *state, tl_op *op) {
  const tl_value *operand = divergent_operand(state, op);
  if (op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_REDUCTION) && !operand && !state->divergent)
    mark_reduction(state, op);
  if (!operand && op->code == TL_OP_IF) tl_op_set_unit(state->context->module, op, TL_ATTR_UNIFORM);
  const tl_op *outer = state->divergent, *outer_source = state->source;
  if (operand) {
    state->divergent = op;
    state->source = state->slots[slot_of(state, operand)].source;
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    if (op->regions[r]) visit_block(state, op->regions[r]);
  }
  state->divergent = outer;
  state->source = outer_source;
}

// Whether the value is made of the thread's number. What memory holds does not count: all threads read one element.
static bool knows_thread(const tl_value *value, int depth) {
  const tl_op *op = value->def;
  if (!op || depth == 0) return false;
  if (op->code == TL_OP_THREAD_ID || op->code == TL_OP_LANE_ID || op->code == TL_OP_WARP_ID) return true;
  for (uint32_t i = 0; i < op->num_operands; i++) {
    if (knows_thread(tl_op_operand(op, i), depth - 1)) return true;
  }
  return false;
}

// print and assert: once a block where threads have nothing of their own to say.
static void mark_speaker(const uniform_state *state, tl_op *op) {
  enum { MAX_DEPTH = 16 };
  if (state->divergent) return;
  for (uint32_t i = 0; i < op->num_operands; i++) {
    if (knows_thread(tl_op_operand(op, i), MAX_DEPTH)) return;
  }
  tl_op_set_unit(state->context->module, op, TL_ATTR_UNIFORM);
}

static void visit_block(uniform_state *state, tl_block *block) {
  for (tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_IF || op->code == TL_OP_FOR) {
      visit_control(state, op);
      continue;
    }
    if (op->code == TL_OP_ROLES || op->code == TL_OP_ROLE) {
      visit_block(state, op->regions[0]);
      continue;
    }
    const char *what = tile_operation(op);
    if (what && state->divergent) report(state, op, what);
    // Outside a parallel, stores and atomics run once a block: which thread's value would count?
    if ((op->code == TL_OP_STORE || op->code == TL_OP_ATOMIC) && state->divergent &&
        tl_element_buffer(op)->type->scope != TL_SCOPE_LOCAL) {
      report(state, op, op->code == TL_OP_STORE ? "store" : "atomic");
    }
    if (op->code == TL_OP_PRINT || op->code == TL_OP_ASSERT) mark_speaker(state, op);
    if (op->code == TL_OP_LOAD && is_uniform(state, tl_op_result(op, 0))) {
      tl_op_set_unit(state->context->module, op, TL_ATTR_UNIFORM);
    }
  }
}

tl_status tl_pass_check_uniform(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code != TL_OP_KERNEL) continue;
    uniform_state state = {.context = context};
    find_divergent(&state, op);
    visit_block(&state, op->regions[0]);
    tl_vec_fini(&state.work);
    free(state.slots);
  }
  return TL_OK;
}
