// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vector widths of loads and stores inside a parallel, and the gather that cp.async can do.
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"

bool tl_is_in_pipeline(const tl_op *op) {
  for (const tl_op *up = op->parent ? op->parent->parent : NULL; up; up = up->parent ? up->parent->parent : NULL) {
    if (up->code == TL_OP_FOR && tl_op_has(up, TL_ATTR_PIPELINED) && tl_op_int(up, TL_ATTR_STAGES, 2) != 1) return true;
  }
  return false;
}

int32_t tl_parallel_vector(const tl_op *parallel) {
  const tl_layout *layout = tl_op_layout(parallel, TL_ATTR_THREAD_LAYOUT);
  if (!layout) return 1;
  for (int32_t m = 0; m < layout->num_modes; m++) {
    if (layout->modes[m].axis != TL_AXIS_REGISTER || layout->modes[m].size == 1) continue;
    bool fits = layout->modes[m].dim == layout->rank - 1 && layout->modes[m].stride == 1;
    return fits ? layout->modes[m].size : 1;
  }
  return 1;
}

typedef struct vector_state {
  tl_pass_context *context;
  const tl_op *parallel;
  int32_t limit;
  int32_t widest;
} vector_state;

static int32_t largest_power_of_two_divisor(int32_t value) {
  return value & -value;
}

// Additions in global memory are one instruction for 2 or 4 neighbours of f32, and up to 8 of f16 and bf16 (PTX ISA,
// red: vectors from sm_90 on, each element for itself); of 16-bit floats at least for two, in a word.
static void choose_reduction(tl_op *op, vector_state *state) {
  int32_t limit = largest_power_of_two_divisor(state->limit);
  int32_t most = tl_reduction_most(tl_element_buffer(op)->type->dtype, state->context->target->sm);
  if (most > limit) most = limit;
  int32_t vec = tl_reduction_vector(op, state->parallel, most);
  tl_op_remove_attr(op, TL_ATTR_VEC);
  if (vec > 1) tl_op_set_int(state->context->module, op, TL_ATTR_VEC, vec);
  if (vec > state->widest) state->widest = vec;
}

static void choose_element(tl_op *op, void *user) {
  vector_state *state = user;
  if (op->code == TL_OP_ATOMIC) choose_reduction(op, state);
  if (op->code != TL_OP_LOAD && op->code != TL_OP_STORE) return;
  int32_t most = largest_power_of_two_divisor(state->limit);
  int32_t vec = tl_element_vector(op, state->parallel, most, false);
  tl_op_remove_attr(op, TL_ATTR_SHIFT);
  tl_shifted_load shifted = tl_element_shifted(op, state->parallel, most);
  if (shifted.shift > 0) {
    tl_op_set_int(state->context->module, op, TL_ATTR_SHIFT, shifted.shift);
    vec = shifted.vec;
  }
  if (vec <= 1) {
    tl_packed_load packed = tl_element_packed(op, state->parallel, most);
    tl_op_remove_attr(op, TL_ATTR_VEC);
    tl_op_remove_attr(op, TL_ATTR_REPEAT);
    if (packed.repeat == 1) return;
    if (packed.vec > 1) tl_op_set_int(state->context->module, op, TL_ATTR_VEC, packed.vec);
    tl_op_set_int(state->context->module, op, TL_ATTR_REPEAT, packed.repeat);
    if (packed.vec * packed.repeat > state->widest) state->widest = packed.vec * packed.repeat;
    return;
  }
  tl_op_set_int(state->context->module, op, TL_ATTR_VEC, vec);
  if (vec > state->widest) state->widest = vec;
}

// ---- cp.async gathers

typedef struct gather {
  tl_op *load, *store;
  tl_op *choice;         // a SELECT of what is loaded, or zero; NULL: it is stored in any case
  const char *obstacle;  // why it is no gather that an instruction can do; NULL: it is one
} gather;

static bool is_zero(const tl_value *value) {
  const tl_attr *attr = value->def && value->def->code == TL_OP_CONST ? tl_op_attr(value->def, TL_ATTR_VALUE) : NULL;
  return attr && (attr->is_float ? attr->v.f == 0.0 : attr->v.i == 0);
}

static tl_op *global_load(const tl_value *value, const tl_op *parallel) {
  tl_op *op = value->def;
  bool fits =
      op && op->code == TL_OP_LOAD && op->parent == parallel->regions[0] && tl_buffer_is_global(tl_element_buffer(op));
  return fits ? op : NULL;
}

// The value that is stored: a loaded one, or one that a condition chooses beside zero.
static void find_source(gather *found, const tl_op *parallel) {
  const tl_value *value = tl_op_arg(found->store, TL_GROUP_STORE_value);
  found->load = global_load(value, parallel);
  tl_op *choice = value->def;
  if (found->load || !choice || choice->code != TL_OP_SELECT || choice->parent != parallel->regions[0]) return;
  for (uint32_t side = 1; side <= 2 && !found->load; side++)
    if (is_zero(tl_op_operand(choice, 3 - side))) found->load = global_load(tl_op_operand(choice, side), parallel);
  found->choice = choice;
}

// Why an op of the body is more than index arithmetic, also of numbers that are loaded (a list of rows), and one store.
static const char *op_obstacle(tl_op *op, gather *found) {
  int flags = tl_op_info_of(op->code)->flags;
  if (op->code == TL_OP_LOAD && tl_buffer_is_global(tl_element_buffer(op))) return NULL;
  if (op->num_regions > 0) return "its elements are under a condition or in a loop";
  if (op->code == TL_OP_STORE && found->store) return "it stores several elements";
  if (op->code == TL_OP_STORE) found->store = op;
  if (op->code == TL_OP_STORE || (flags & (TL_OPFLAG_PURE | TL_OPFLAG_TERMINATOR))) return NULL;
  return op->code == TL_OP_LOAD ? "it reads shared memory" : "it does more than to load and store";
}

static gather find_gather(const tl_op *parallel) {
  gather found = {.obstacle = parallel->num_results == 0 ? NULL : "it also makes a tile"};
  for (tl_op *op = parallel->regions[0]->first; op && !found.obstacle; op = op->next)
    found.obstacle = op_obstacle(op, &found);
  if (found.obstacle) return found;
  bool fills = found.store && tl_buffer_is_shared(tl_element_buffer(found.store));
  if (fills) find_source(&found, parallel);
  if (!found.load) found.obstacle = "it computes with what it loads";
  return found;
}

static bool stands_before(const tl_op *op, const tl_op *other) {
  while (op && op != other) op = op->next;
  return op != NULL;
}

// Sets the first subscript of a load, and its checks.
static void set_first(tl_module *module, tl_op *load, tl_value *index, int64_t check) {
  tl_value *indices[TL_MAX_RANK];
  int64_t checks[TL_MAX_RANK];
  uint32_t rank = tl_element_rank(load);
  for (uint32_t d = 0; d < rank; d++) {
    indices[d] = d == 0 ? index : tl_element_index(load, d);
    checks[d] = d == 0 ? check : tl_element_check(load, (int32_t)d);
  }
  tl_op_set_group(module, load, TL_GROUP_LOAD_index, indices, rank);
  tl_op_set_ints(module, load, TL_ATTR_CHECK, checks, (int32_t)rank);
}

static bool is_foldable(tl_pass_context *context, const tl_op *parallel, const gather *found) {
  if (found->obstacle || !found->choice || !(context->target->features & TL_FEATURE_CP_ASYNC)) return false;
  const tl_value *pad = tl_op_arg(found->load, TL_GROUP_LOAD_pad), *condition = tl_op_operand(found->choice, 0);
  bool is_known =
      !condition->def || condition->def->parent != found->load->parent || stands_before(condition->def, found->load);
  return is_known && tl_is_in_pipeline(parallel) && !found->load->results[0].uses->next &&
         tl_element_rank(found->load) >= 2 && (!pad || is_zero(pad));
}

// `X[i, j] if c else 0` is `X[i if c else -1, j]`: what lies outside of a tensor is zero, and cp.async brings that.
// A condition that cuts through vectors stays.
static void fold_choice(tl_pass_context *context, tl_op *parallel) {
  gather found = find_gather(parallel);
  if (!is_foldable(context, parallel, &found)) return;
  int32_t most = largest_power_of_two_divisor(tl_parallel_vector(parallel));
  int32_t before = tl_element_vector(found.load, parallel, most, false);
  tl_builder builder;
  tl_builder_before(&builder, context->module, found.load);
  builder.loc = found.load->loc;
  tl_value *index = tl_element_index(found.load, 0), *outside = tl_build_index(&builder, -1);
  int64_t check = tl_element_check(found.load, 0);
  bool is_first = tl_op_operand(found.choice, 1) == &found.load->results[0];
  tl_value *chosen =
      tl_build_select(&builder, tl_op_operand(found.choice, 0), is_first ? index : outside, is_first ? outside : index);
  set_first(context->module, found.load, chosen, check | TL_CHECK_LOWER);
  if (tl_element_vector(found.load, parallel, most, false) < before) {
    set_first(context->module, found.load, index, check);
    tl_op_erase(chosen->def);
    tl_op_erase(outside->def);
    return;
  }
  tl_value_replace_uses(&found.choice->results[0], &found.load->results[0]);
  tl_op_erase(found.choice);
}

static bool checks_nothing(const tl_op *op) {
  for (uint32_t d = 0; d < tl_element_rank(op); d++) {
    if (tl_element_check(op, (int32_t)d) != 0) return false;
  }
  return true;
}

typedef struct moved_memory {
  bool from_global, to_shared;
} moved_memory;

static void find_moved(tl_op *op, void *user) {
  moved_memory *moved = user;
  if (op->code == TL_OP_LOAD) moved->from_global |= tl_buffer_is_global(tl_element_buffer(op));
  if (op->code == TL_OP_STORE) moved->to_shared |= tl_buffer_is_shared(tl_element_buffer(op));
}

// What fills shared memory from global memory in a pipelined loop and cannot run ahead.
static void report_no_gather(tl_pass_context *context, tl_op *parallel, const char *obstacle) {
  moved_memory moved = {false, false};
  tl_walk(parallel, find_moved, &moved);
  if (moved.from_global && moved.to_shared)
    tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, parallel->loc, "this gather goes through registers: %s",
                   obstacle);
}

static void choose_gather(tl_pass_context *context, tl_op *parallel, int32_t widest) {
  gather found = find_gather(parallel);
  if (!(context->target->features & TL_FEATURE_CP_ASYNC) || !tl_is_in_pipeline(parallel)) return;
  if (!found.obstacle && found.choice) found.obstacle = "a condition chooses between its elements";
  if (found.obstacle) {
    report_no_gather(context, parallel, found.obstacle);
    return;
  }
  const tl_value *pad = tl_op_arg(found.load, TL_GROUP_LOAD_pad);
  int64_t vec = tl_op_int(found.load, TL_ATTR_VEC, 1);
  int64_t bytes = vec * tl_dtype_bits(tl_element_buffer(found.load)->type->dtype) / 8;
  const char *obstacle = NULL;
  if (pad && !is_zero(pad)) {
    obstacle = "it pads with another value than 0";
  } else if (tl_op_has(found.load, TL_ATTR_SHIFT)) {
    obstacle = "what it loads begins between two aligned vectors";
  } else if (vec != widest || tl_op_int(found.store, TL_ATTR_VEC, 1) != vec) {
    obstacle = "load and store allow different vectors";
  } else if (bytes != 4 && bytes != 8 && bytes != 16) {
    obstacle = "a vector has fewer than 4 bytes";
  } else if (!checks_nothing(found.store)) {
    obstacle = "the store is masked";
  }
  if (obstacle) {
    tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, parallel->loc, "this gather goes through registers: %s",
                   obstacle);
    return;
  }
  tl_op_set_int(context->module, parallel, TL_ATTR_VIA, TL_VIA_CP_ASYNC);
  // cp.async fills with zeros by itself (PTX ISA, "cp.async": bytes beyond src-size).
  tl_op_set_group(context->module, found.load, TL_GROUP_LOAD_pad, NULL, 0);
  const char *no_tma = context->target->features & TL_FEATURE_TMA ? tl_gather_tma_obstacle(context, parallel) : "";
  if (!no_tma) return;  // the pipeline sends it by TMA where it runs ahead, and says so
  tl_diag_report(context->diags, TL_DIAG_REMARK_COPY, parallel->loc, "gathered by cp.async, %lld bytes at a time%s%s",
                 (long long)bytes, *no_tma ? ": not by TMA, " : "", no_tma);
}

int32_t tl_select_vectors(tl_pass_context *context, tl_op *parallel) {
  vector_state state = {.context = context, .parallel = parallel, .limit = tl_parallel_vector(parallel), .widest = 1};
  for (tl_op *op = parallel->regions[0]->first; op; op = op->next) tl_walk(op, choose_element, &state);
  if (state.widest > 1) {
    tl_op_set_int(context->module, parallel, TL_ATTR_VEC, state.widest);
  } else {
    tl_op_remove_attr(parallel, TL_ATTR_VEC);
  }
  return state.widest;
}

void tl_select_parallel(tl_pass_context *context, tl_op *parallel) {
  tl_flatten_guard(context, parallel);
  fold_choice(context, parallel);
  choose_gather(context, parallel, tl_select_vectors(context, parallel));
  tl_report_accesses(context, parallel);
}
