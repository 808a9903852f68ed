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

static void loop_over_groups(tl_lower *l, tl_op *op, tl_results *results) {
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
  one_group(l, op, results);
  tl_lower_end_groups(l);
  LLVMValueRef next = LLVMBuildNSWAdd(l->builder, reg, tl_session_i32(s, parallel->width), "");
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
  if (loop && !tl_lower_failed(l)) {
    loop_over_groups(l, op, &results);
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
