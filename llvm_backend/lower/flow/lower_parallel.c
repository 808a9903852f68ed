// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// parallel: every thread runs the body for the elements its layout gives it, in groups of `vec` consecutive registers
// whose loads and stores are vectors. Few groups are unrolled; many without tile operands become a loop over the
// registers.
#include <string.h>

#include "ir/index/elements.h"
#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/memory/lower_memory.h"
#include "llvm_backend/lower/state/lower.h"

#define TL_UNROLL_BUDGET 3000  // body ops times elements that are unrolled when a loop would do

typedef struct tl_body_facts {
  bool nested;    // uses local arrays: one element at a time
  bool branches;  // holds regions
  bool extracts;  // reads tile values: their registers have no run-time index
  bool narrows;   // rounds f32 to f16 or bf16: two elements are one instruction
  int32_t ops;
  tl_parallel *parallel;
} tl_body_facts;

static void add_array(tl_parallel *parallel, const tl_value *array) {
  for (size_t i = 0; i < parallel->arrays.len; i++)
    if (parallel->arrays.items[i] == array) return;
  tl_vec_push(&parallel->arrays, array);
}

static void look_at(tl_op *op, void *user) {
  tl_body_facts *facts = user;
  facts->ops++;
  if (op->code != TL_OP_PARALLEL && op->num_regions > 0) facts->branches = true;
  if (op->code == TL_OP_EXTRACT) facts->extracts = true;
  if (op->code == TL_OP_CAST && tl_op_operand(op, 0)->type->dtype == TL_DTYPE_F32) {
    tl_dtype to = tl_op_result(op, 0)->type->dtype;
    facts->narrows |= to == TL_DTYPE_F16 || to == TL_DTYPE_BF16;
  }
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_type *type = tl_op_operand(op, i)->type;
    if (type->kind != TL_TYPE_BUFFER || type->scope != TL_SCOPE_LOCAL) continue;
    facts->nested = true;
    add_array(facts->parallel, tl_op_operand(op, i));
  }
}

// Results while the groups are lowered: one array of registers a result.
typedef struct tl_results {
  LLVMValueRef **registers;
  const int64_t *maps;  // loop dim of each dim of each result in turn
} tl_results;

static void init_results(tl_lower *l, tl_op *op, tl_results *results) {
  const tl_attr *maps = tl_op_attr(op, TL_ATTR_MAPS);
  results->maps = maps ? maps->v.ints.items : NULL;
  results->registers = TL_NEW_ARRAY(&l->arena, LLVMValueRef *, op->num_results + 1);
  for (uint32_t r = 0; r < op->num_results; r++) {
    const tl_type *type = op->results[r].type;
    int32_t n = tl_layout_num_registers(type->layout);
    results->registers[r] = TL_NEW_ARRAY(&l->arena, LLVMValueRef, n);
    for (int32_t i = 0; i < n; i++) results->registers[r][i] = tl_lower_zero(l, type->dtype);
  }
}

static void store_results(tl_lower *l, tl_op *op, tl_results *results, const tl_guard *guard) {
  tl_parallel *parallel = l->parallel;
  tl_op *yield = tl_block_terminator(op->regions[0]);
  const int64_t *map = results->maps;
  for (uint32_t r = 0; r < op->num_results; r++) {
    const tl_type *type = op->results[r].type;
    for (int32_t e = 0; e < parallel->width; e++) {
      int32_t coord[TL_MAX_DIMS];
      for (int32_t d = 0; d < type->rank; d++) {
        int64_t dim = map ? map[d] : d;
        coord[d] = parallel->place.reg[dim] + (dim == parallel->vec_dim ? e : 0);
      }
      int32_t reg = tl_lower_tile_register(type->layout, coord);
      if (reg < 0) {
        tl_lower_internal(l, op, "a result's layout does not follow the loop's");
        return;
      }
      LLVMValueRef value = tl_lower_get(l, tl_op_operand(yield, r), e);
      results->registers[r][reg] = tl_lower_guard_phi(l, guard, value, tl_lower_zero(l, type->dtype));
    }
    if (map) map += type->rank;
  }
}

static void set_indices(tl_lower *l, tl_op *op) {
  tl_parallel *parallel = l->parallel;
  const tl_block *body = op->regions[0];
  for (uint32_t d = 0; d < body->num_args; d++) {
    LLVMValueRef items[TL_MAX_GROUP];
    int32_t len = (int32_t)d == parallel->vec_dim ? parallel->width : 1;
    LLVMTypeRef type = tl_lower_value_type(l, body->args[d]);
    for (int32_t e = 0; e < len; e++) {
      LLVMValueRef offset = tl_session_i32(l->session, parallel->place.reg[d] + e);
      LLVMValueRef index = LLVMBuildNSWAdd(l->builder, parallel->place.thread[d], offset, "");
      items[e] = tl_lower_index_as(l, l->builder, index, type);
    }
    tl_lower_set(l, body->args[d], items, len);
  }
}

static void one_group(tl_lower *l, tl_op *op, tl_results *results) {
  LLVMValueRef active = NULL;
  tl_lower_place_inside(l, &l->parallel->place, &active);
  tl_guard guard = tl_lower_guard_begin(l, active);
  set_indices(l, op);
  tl_lower_local_begin(l);
  tl_lower_block(l, op->regions[0]);
  tl_lower_guard_end(l, &guard);
  if (!tl_lower_failed(l)) store_results(l, op, results, &guard);
}

// ---- loads ahead of branches

// Up to its first branch or write an element loads and computes. Neither LLVM nor ptxas takes a load over what follows,
// so that each group would wait for its own; the loads of several groups start together, and then what is left of each.
typedef struct tl_ahead {
  tl_op *end;          // the first op that has to wait
  int32_t groups;      // that start together; 1: each runs alone
  int32_t num_ops;     // before `end`
  tl_lowered *values;  // of them, for each group
} tl_ahead;

static bool may_run_ahead(tl_lower *l, const tl_op *op) {
  if (op->num_regions > 0) return false;
  if (op->code != TL_OP_LOAD) return (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) && op->num_results == 1;
  const tl_buffer *buffer = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_LOAD_buffer));
  return buffer && buffer->read_only;
}

static bool is_in_the_way(const tl_op *op) {
  return op->num_regions > 0 || op->code == TL_OP_ATOMIC;
}

// Whether all threads have elements in every group.
static bool is_full(const tl_place *place) {
  for (int32_t d = 0; d < place->rank; d++) {
    int32_t most = 0;
    for (int32_t reg = 0; reg < tl_layout_num_registers(place->layout); reg++) {
      int32_t at[TL_MAX_DIMS];
      tl_layout_axis_coord(place->layout, TL_AXIS_REGISTER, reg, at);
      if (at[d] > most) most = at[d];
    }
    if (place->thread_max[d] + most >= place->layout->shape[d]) return false;
  }
  return true;
}

// Whether the registers that follow a multiple of `span` lie behind it as the first ones lie behind register 0.
static bool repeats(const tl_layout *layout, int32_t span) {
  int32_t before = 1;
  for (int32_t m = 0; m < layout->num_modes && before < span; m++) {
    if (layout->modes[m].axis != TL_AXIS_REGISTER) continue;
    int32_t behind = before * layout->modes[m].size;
    if (span % before != 0 || (span < behind && behind % span != 0)) return false;
    before = behind;
  }
  return true;
}

// How many groups go together, by the bytes that they load.
static tl_ahead find_ahead(tl_lower *l, const tl_op *parallel, const tl_body_facts *facts) {
  enum { BYTES_AT_ONCE = 64 };
  tl_ahead ahead = {.end = parallel->regions[0]->first, .groups = 1};
  int32_t bits = 0, registers = tl_layout_num_registers(l->parallel->place.layout), width = l->parallel->width;
  for (; ahead.end && may_run_ahead(l, ahead.end); ahead.end = ahead.end->next, ahead.num_ops++) {
    if (ahead.end->code != TL_OP_LOAD) continue;
    bits += tl_dtype_bits(tl_op_result(ahead.end, 0)->type->dtype) * (int32_t)tl_op_int(ahead.end, TL_ATTR_VEC, 1);
  }
  const tl_op *in_the_way = ahead.end;
  while (in_the_way && !is_in_the_way(in_the_way)) in_the_way = in_the_way->next;
  bool is_plain = !facts->nested && !l->parallel->marks && !l->parallel->cp_async;
  if (!in_the_way || bits == 0 || !is_plain || !is_full(&l->parallel->place)) return ahead;
  while (ahead.groups * 2 * bits <= BYTES_AT_ONCE * 8 && ahead.groups * 2 <= registers / width &&
         repeats(l->parallel->place.layout, ahead.groups * 2 * width))
    ahead.groups *= 2;
  ahead.values = tl_arena_alloc(&l->arena, sizeof *ahead.values * (size_t)(ahead.groups * ahead.num_ops), 8);
  return ahead;
}

static void begin_group(tl_lower *l, tl_op *op, int32_t reg) {
  l->parallel->first_register = reg;
  tl_lower_place_register(&l->parallel->place, reg);
  set_indices(l, op);
}

static void load_ahead(tl_lower *l, tl_op *parallel, const tl_ahead *ahead, int32_t group) {
  tl_op *first = parallel->regions[0]->first;
  tl_lower_ops(l, first, ahead->end);
  int32_t at = group * ahead->num_ops;
  for (tl_op *op = first; op != ahead->end && !tl_lower_failed(l); op = op->next, at++) {
    int32_t len = tl_lower_len(l, tl_op_result(op, 0));
    ahead->values[at].items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, len);
    ahead->values[at].len = len;
    for (int32_t e = 0; e < len; e++) ahead->values[at].items[e] = tl_lower_get(l, tl_op_result(op, 0), e);
  }
}

static void finish_group(tl_lower *l, tl_op *parallel, const tl_ahead *ahead, int32_t group) {
  int32_t at = group * ahead->num_ops;
  for (tl_op *op = parallel->regions[0]->first; op != ahead->end; op = op->next, at++)
    tl_lower_set(l, tl_op_result(op, 0), ahead->values[at].items, ahead->values[at].len);
  tl_lower_ops(l, ahead->end, NULL);
}

// The groups from register `first` to the one before `end`.
static void groups_ahead(tl_lower *l, tl_op *op, tl_results *results, const tl_ahead *ahead, int32_t first,
                         int32_t end) {
  tl_guard always = {0};
  int32_t width = l->parallel->width;
  for (; first < end; first += ahead->groups * width) {
    int32_t groups = (end - first) / width;
    if (groups > ahead->groups) groups = ahead->groups;
    for (int32_t g = 0; g < groups && !tl_lower_failed(l); g++) {
      begin_group(l, op, first + g * width);
      load_ahead(l, op, ahead, g);
    }
    for (int32_t g = 0; g < groups && !tl_lower_failed(l); g++) {
      begin_group(l, op, first + g * width);
      finish_group(l, op, ahead, g);
      if (!tl_lower_failed(l)) store_results(l, op, results, &always);
    }
  }
}

// Adds the coordinates of register `reg` (a run-time value) to the thread's part.
static void add_register_part(tl_lower *l, tl_place *place, LLVMValueRef reg) {
  int32_t before = 1, total = tl_layout_num_registers(place->layout);
  for (int32_t m = 0; m < place->layout->num_modes; m++) {
    const tl_layout_mode *mode = &place->layout->modes[m];
    if (mode->axis != TL_AXIS_REGISTER) continue;
    LLVMValueRef digit = LLVMBuildUDiv(l->builder, reg, tl_session_i32(l->session, before), "");
    before *= mode->size;
    if (before < total) digit = LLVMBuildURem(l->builder, digit, tl_session_i32(l->session, mode->size), "");
    if (mode->dim == TL_DIM_NONE) continue;
    digit = LLVMBuildNSWMul(l->builder, digit, tl_session_i32(l->session, mode->stride), "");
    place->thread[mode->dim] = LLVMBuildNSWAdd(l->builder, place->thread[mode->dim], digit, "");
    place->thread_max[mode->dim] += (mode->size - 1) * mode->stride;
    place->divisor[mode->dim] = (int32_t)tl_gcd(place->divisor[mode->dim], mode->stride);
  }
  memset(place->reg, 0, sizeof place->reg);
}

static void loop_over_groups(tl_lower *l, tl_op *op, tl_results *results, const tl_ahead *ahead) {
  tl_session *s = l->session;
  tl_parallel *parallel = l->parallel;
  int32_t registers = tl_layout_num_registers(parallel->place.layout);
  LLVMBasicBlockRef from = LLVMGetInsertBlock(l->builder), head = tl_lower_new_block(l), after = tl_lower_new_block(l);
  LLVMBuildBr(l->builder, head);
  LLVMPositionBuilderAtEnd(l->builder, head);
  LLVMValueRef reg = LLVMBuildPhi(l->builder, s->i32, ""), zero = tl_session_i32(s, 0);
  LLVMAddIncoming(reg, &zero, &from, 1);
  add_register_part(l, &parallel->place, reg);
  tl_lower_begin_groups(l);
  if (ahead->groups > 1)
    groups_ahead(l, op, results, ahead, 0, ahead->groups * parallel->width);
  else
    one_group(l, op, results);
  tl_lower_end_groups(l);
  LLVMValueRef step = tl_session_i32(s, ahead->groups * parallel->width);
  LLVMValueRef next = LLVMBuildNSWAdd(l->builder, reg, step, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->builder);
  LLVMAddIncoming(reg, &next, &latch, 1);
  LLVMValueRef more = LLVMBuildICmp(l->builder, LLVMIntSLT, next, tl_session_i32(s, registers), "");
  LLVMBuildCondBr(l->builder, more, head, after);
  LLVMPositionBuilderAtEnd(l->builder, after);
}

void tl_lower_op_PARALLEL(tl_lower *l, tl_op *op) {
  const tl_layout *layout = tl_op_layout(op, TL_ATTR_THREAD_LAYOUT);
  if (!layout || l->parallel) {
    tl_lower_internal(l, op, layout ? "a parallel inside a parallel" : "no layout");
    return;
  }
  tl_parallel parallel = {.op = op, .place = *tl_lower_place(l, layout, op)};
  tl_body_facts facts = {.parallel = &parallel};
  tl_walk(op, look_at, &facts);
  int32_t vec = (int32_t)tl_op_int(op, TL_ATTR_VEC, 1);
  if (facts.narrows && !facts.branches && vec == 1) vec = 2;
  parallel.marks = l->marks_elements && tl_elements_may_meet(op);
  parallel.width = tl_lower_group_width(layout, facts.nested || parallel.marks ? 1 : vec, &parallel.vec_dim);
  parallel.cp_async = tl_op_has(op, TL_ATTR_ASYNC) && tl_op_int(op, TL_ATTR_VIA, TL_VIA_AUTO) == TL_VIA_CP_ASYNC;
  tl_results results = {0};
  init_results(l, op, &results);
  l->parallel = &parallel;
  if (parallel.marks) tl_lower_mark_parallel(l);
  int32_t registers = tl_layout_num_registers(layout);
  bool loop = op->num_results == 0 && !facts.extracts && registers / parallel.width > 4 &&
              (int64_t)facts.ops * registers > TL_UNROLL_BUDGET;
  tl_ahead ahead = find_ahead(l, op, &facts);
  if (loop && !tl_lower_failed(l)) {
    loop_over_groups(l, op, &results, &ahead);
  } else if (ahead.groups > 1) {
    tl_lower_begin_groups(l);
    groups_ahead(l, op, &results, &ahead, 0, registers);
    tl_lower_end_groups(l);
  } else {
    tl_lower_begin_groups(l);
    for (int32_t reg = 0; reg < registers && !tl_lower_failed(l); reg += parallel.width) {
      parallel.first_register = reg;
      tl_lower_place_register(&parallel.place, reg);
      one_group(l, op, &results);
    }
    tl_lower_end_groups(l);
  }
  l->parallel = NULL;
  tl_vec_fini(&parallel.accesses);
  tl_vec_fini(&parallel.arrays);
  for (uint32_t r = 0; r < op->num_results && !tl_lower_failed(l); r++)
    tl_lower_set(l, &op->results[r], results.registers[r], tl_layout_num_registers(op->results[r].type->layout));
}
