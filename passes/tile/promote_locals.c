// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// promote-locals: local scalars become SSA values.
//
//   %n = alloc "n" : buffer<local i32>
//   store(0, %n)                                  %0 = const(0)
//   for … { store(load(%n) + 1, %n) }       ⇒     %1 = for … inits(%0) { ^(%k, %n): yield add(%n, 1) }
//
// Control flow is structured, so one walk in program order with the current value of every scalar does it: a loop
// carries the scalars written inside, an if yields those written in a branch. What a parallel writes stays in its
// elements. A loop with `while` keeps its condition as the first carried value.
//
// Needs the tile level. Local arrays stay buffers, private to each element of a parallel.
#include "passes/tile/promote_locals.h"

#include "passes/analysis/memory_access.h"
#include "passes/tile/loop_rewrite.h"

typedef struct promotion {
  tl_pass_context *context;
  tl_module *module;
  TL_VEC(tl_value *) scalars;  // in order of declaration
  TL_VEC(tl_op *) loads;       // replaced already
  bool *reported;              // per scalar, in scratch
} promotion;

// The current value of every scalar, and whether it was written on some way here.
typedef struct local_state {
  tl_value **values;  // NULL: never written
  bool *written;
} local_state;

static void promote_block(promotion *self, tl_block *block, local_state *state);

static local_state copy_state(const promotion *self, const local_state *from) {
  size_t count = self->scalars.len + 1;
  local_state state = {TL_NEW_ARRAY(&self->context->scratch, tl_value *, count),
                       TL_NEW_ARRAY(&self->context->scratch, bool, count)};
  for (size_t i = 0; from && i < self->scalars.len; i++) {
    state.values[i] = from->values[i];
    state.written[i] = from->written[i];
  }
  return state;
}

static int find_scalar(const promotion *self, const tl_value *buffer) {
  for (size_t i = 0; i < self->scalars.len; i++) {
    if (self->scalars.items[i] == buffer) return (int)i;
  }
  return -1;
}

// The current value before `op`; an undefined one where there is none yet.
static tl_value *current(promotion *self, local_state *state, size_t which, tl_op *op) {
  if (state->values[which]) return state->values[which];
  tl_builder builder;
  tl_builder_before(&builder, self->module, op);
  builder.loc = op->loc;
  const tl_type *type = tl_type_scalar(self->module, self->scalars.items[which]->type->dtype);
  state->values[which] = tl_op_result(tl_build(&builder, TL_OP_UNDEF, NULL, &type, 1), 0);
  state->values[which]->name = self->scalars.items[which]->name;
  return state->values[which];
}

static void set_current(promotion *self, local_state *state, size_t which, tl_value *value) {
  if (value->name == NULL) value->name = self->scalars.items[which]->name;
  state->values[which] = value;
}

static void mark_written(const promotion *self, const tl_block *block, bool *out_written) {
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_STORE) {
      int which = find_scalar(self, tl_element_buffer(op));
      if (which >= 0) out_written[which] = true;
    }
    if (op->code == TL_OP_PARALLEL) continue;  // its writes are its elements' own
    for (uint32_t r = 0; r < op->num_regions; r++) mark_written(self, op->regions[r], out_written);
  }
}

// Whether a region sets `scalar` before anything in it can read it: its first access is a store of its own list.
static bool sets_first(const tl_block *block, const tl_value *scalar, bool is_top, bool *out_found) {
  for (const tl_op *op = block->first; op && !*out_found; op = op->next) {
    bool accesses = (op->code == TL_OP_LOAD || op->code == TL_OP_STORE) && tl_element_buffer(op) == scalar;
    if (accesses) {
      *out_found = true;
      return is_top && op->code == TL_OP_STORE;
    }
    for (uint32_t r = 0; r < op->num_regions && !*out_found; r++) sets_first(op->regions[r], scalar, false, out_found);
  }
  return !*out_found;
}

// Whether what `op` leaves in `scalar` is read nowhere: every read is inside, after a write of the same iteration. So
// are the flags of inner loops.
static bool is_contained(const tl_op *op, const tl_value *scalar) {
  for (const tl_use *use = scalar->uses; use; use = use->next) {
    if (use->owner->code == TL_OP_LOAD && !tl_op_is_inside(use->owner, op)) return false;
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    bool found = false;
    if (!sets_first(op->regions[r], scalar, true, &found)) return false;
  }
  return true;
}

// The scalars that `op` writes and that must be passed on.
static bool *written_inside(promotion *self, const tl_op *op) {
  bool *written = TL_NEW_ARRAY(&self->context->scratch, bool, self->scalars.len + 1);
  for (uint32_t r = 0; r < op->num_regions; r++) mark_written(self, op->regions[r], written);
  for (size_t i = 0; i < self->scalars.len; i++) {
    written[i] = written[i] && !is_contained(op, self->scalars.items[i]);
  }
  return written;
}

static void promote_load(promotion *self, tl_op *op, local_state *state) {
  int which = find_scalar(self, tl_element_buffer(op));
  if (which < 0) return;
  if (!state->written[which] && !self->reported[which]) {
    self->reported[which] = true;
    tl_diag *diag = tl_diag_report(self->context->diags, TL_DIAG_READ_BEFORE_WRITE, op->loc,
                                   "'%s' is read before it is written", tl_buffer_name(self->scalars.items[which]));
    tl_diag_add_hint(self->context->diags, diag, "assign it first");
  }
  tl_value_replace_uses(tl_op_result(op, 0), current(self, state, (size_t)which, op));
  // It stays until the end: is_contained looks at all reads, also at those of an earlier part of a loop.
  tl_vec_push(&self->loads, op);
}

static void promote_store(promotion *self, tl_op *op, local_state *state) {
  int which = find_scalar(self, tl_element_buffer(op));
  if (which < 0) return;
  state->values[which] = tl_op_arg(op, TL_GROUP_STORE_value);
  state->written[which] = true;
  tl_op_erase(op);
}

static void promote_for(promotion *self, tl_op *op, local_state *state) {
  bool *written = written_inside(self, op);
  TL_VEC(tl_value *) inits = {0};
  for (size_t i = 0; i < self->scalars.len; i++) {
    if (written[i]) tl_vec_push(&inits, current(self, state, i, op));
  }
  local_state inner = copy_state(self, state);
  uint32_t first = op->num_results;
  tl_op *loop = inits.len ? tl_for_add_carried(self->module, op, inits.items, (uint32_t)inits.len) : op;
  for (size_t i = 0, next = first; i < self->scalars.len; i++) {
    if (written[i]) set_current(self, &inner, i, loop->regions[0]->args[1 + next++]);
  }
  promote_block(self, loop->regions[0], &inner);
  if (inits.len) {
    tl_op *yield = tl_region_yield(self->module, loop->regions[0], loop->loc);
    for (size_t i = 0, next = first; i < self->scalars.len; i++) {
      if (!written[i]) continue;
      tl_yield_append(self->module, yield, &inner.values[i], 1);
      set_current(self, state, i, tl_op_result(loop, (uint32_t)next++));
      state->written[i] = true;
    }
  }
  tl_vec_fini(&inits);
}

static void promote_if(promotion *self, tl_op *op, local_state *state) {
  bool *written = written_inside(self, op);
  TL_VEC(const tl_type *) types = {0};
  for (size_t i = 0; i < self->scalars.len; i++) {
    if (written[i]) tl_vec_push(&types, current(self, state, i, op)->type);
  }
  local_state branches[2] = {copy_state(self, state), copy_state(self, state)};
  for (uint32_t r = 0; r < 2; r++) {
    promote_block(self, op->regions[r], &branches[r]);
    if (types.len == 0) continue;
    tl_op *yield = tl_region_yield(self->module, op->regions[r], op->loc);
    for (size_t i = 0; i < self->scalars.len; i++) {
      if (written[i]) tl_yield_append(self->module, yield, &branches[r].values[i], 1);
    }
  }
  if (types.len > 0) {
    uint32_t next = op->num_results;
    tl_op *fresh = tl_op_add_results(self->module, op, types.items, (uint32_t)types.len);
    for (size_t i = 0; i < self->scalars.len; i++) {
      if (!written[i]) continue;
      set_current(self, state, i, tl_op_result(fresh, next++));
      // Which branch was taken is the author's business.
      state->written[i] = true;
    }
  }
  tl_vec_fini(&types);
}

static void promote_parallel(promotion *self, tl_op *op, local_state *state) {
  local_state elements = copy_state(self, state);
  promote_block(self, op->regions[0], &elements);
}

// Each role has scalars of its own, and nothing follows.
static void promote_roles(promotion *self, tl_op *op, const local_state *state) {
  for (tl_op *role = op->regions[0]->first; role; role = role->next) {
    if (role->code != TL_OP_ROLE) continue;
    local_state own = copy_state(self, state);
    promote_block(self, role->regions[0], &own);
  }
}

static void promote_block(promotion *self, tl_block *block, local_state *state) {
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    switch (op->code) {
      case TL_OP_LOAD:
        promote_load(self, op, state);
        break;
      case TL_OP_STORE:
        promote_store(self, op, state);
        break;
      case TL_OP_FOR:
        promote_for(self, op, state);
        break;
      case TL_OP_IF:
        promote_if(self, op, state);
        break;
      case TL_OP_PARALLEL:
        promote_parallel(self, op, state);
        break;
      case TL_OP_ROLES:
        promote_roles(self, op, state);
        break;
      default:
        break;
    }
  }
}

static void promote_kernel(tl_pass_context *context, tl_op *kernel) {
  promotion self = {.context = context, .module = context->module};
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_ALLOC) continue;
    tl_value *buffer = tl_op_result(op, 0);
    if (buffer->type->scope == TL_SCOPE_LOCAL && buffer->type->rank == 0) tl_vec_push(&self.scalars, buffer);
  }
  if (self.scalars.len > 0) {
    self.reported = TL_NEW_ARRAY(&context->scratch, bool, self.scalars.len);
    local_state state = copy_state(&self, NULL);
    promote_block(&self, kernel->regions[0], &state);
    for (size_t i = 0; i < self.loads.len; i++) tl_op_erase(self.loads.items[i]);
    for (size_t i = 0; i < self.scalars.len; i++) tl_op_erase(self.scalars.items[i]->def);
    tl_prune_unused(context->module, kernel->regions[0]);
  }
  tl_vec_fini(&self.scalars);
  tl_vec_fini(&self.loads);
  tl_place_local_arrays(context, kernel);
}

tl_status tl_pass_promote_locals(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) promote_kernel(context, op);
  }
  return TL_OK;
}
