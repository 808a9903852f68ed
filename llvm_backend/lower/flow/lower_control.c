// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// for, if and yield.
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "llvm_backend/lower/flow/lower_group.h"
#include "llvm_backend/lower/flow/lower_tiles.h"
#include "llvm_backend/lower/matrix/lower_mma.h"
#include "llvm_backend/lower/memory/lower_memory.h"
#include "llvm_backend/lower/state/lower.h"
#include "llvm_backend/lower/value/lower_pairs.h"

// How many LLVM values stand for an IR value of this type that a branch or a loop makes.
static int32_t value_len(const tl_lower *l, const tl_type *type) {
  switch (type->kind) {
    case TL_TYPE_INDEX:
    case TL_TYPE_SCALAR:
      return l->parallel ? l->parallel->width : 1;
    case TL_TYPE_TILE:
      return type->layout ? tl_layout_num_registers(type->layout) : 0;
    case TL_TYPE_FLIGHT:
      return tl_lower_flight_len(type);
    case TL_TYPE_NONE:
    case TL_TYPE_BUFFER:
    case TL_TYPE_RING:
    case TL_TYPE_SLOT:
    case TL_TYPE_MBARRIER:
    case TL_TYPE_MAP:
    case TL_TYPE_TOKEN:
      return 0;
  }
  return 0;
}

// Item `i` of `from` in the LLVM type that `to` has.
static LLVMValueRef item_as(tl_lower *l, const tl_value *from, const tl_value *to, int32_t i) {
  LLVMValueRef item = tl_lower_get(l, from, i);
  return to->type->kind == TL_TYPE_INDEX ? tl_lower_index_as(l, l->builder, item, tl_lower_value_type(l, to)) : item;
}

typedef struct tl_loop {
  LLVMBasicBlockRef head, body, after;
  LLVMValueRef induction;
  LLVMValueRef *phis;  // of all carried items
  int32_t num_phis;
  LLVMValueRef iteration,
      end;  // of a loop that takes tiles from a queue: iterations before this one, and how many tiles
} tl_loop;

// Items of a carried value that go round in one register: two 16-bit floats of a tile, so that what takes them in pairs
// (a matrix instruction's operand) finds them so.
static int32_t phi_items(const tl_lower *l, const tl_type *type) {
  bool is_half = type->kind == TL_TYPE_TILE && tl_dtype_is_float(type->dtype) && tl_dtype_bits(type->dtype) == 16;
  return is_half && value_len(l, type) % 2 == 0 ? 2 : 1;
}

static LLVMValueRef phi_value(tl_lower *l, const tl_value *from, const tl_value *to, int32_t i) {
  LLVMValueRef first = item_as(l, from, to, i);
  return phi_items(l, to->type) == 2 ? tl_lower_pair(l, first, item_as(l, from, to, i + 1)) : first;
}

static void add_phis(tl_lower *l, tl_op *op, tl_loop *loop, LLVMBasicBlockRef entry) {
  uint32_t num_inits = tl_op_group_len(op, TL_GROUP_FOR_inits);
  const tl_block *body = op->regions[0];
  for (uint32_t i = 0; i < num_inits; i++)
    loop->num_phis += value_len(l, body->args[i + 1]->type) / phi_items(l, body->args[i + 1]->type);
  loop->phis = TL_NEW_ARRAY(&l->arena, LLVMValueRef, loop->num_phis + 1);
  LLVMValueRef *next = loop->phis;
  for (uint32_t i = 0; i < num_inits; i++) {
    const tl_value *arg = body->args[i + 1], *init = tl_op_group_at(op, TL_GROUP_FOR_inits, i);
    for (int32_t r = 0; r < value_len(l, arg->type); r += phi_items(l, arg->type)) {
      // Conversions of the initial value belong before the loop.
      LLVMPositionBuilderBefore(l->builder, LLVMGetBasicBlockTerminator(entry));
      LLVMValueRef start = phi_value(l, init, arg, r);
      LLVMPositionBuilderAtEnd(l->builder, loop->head);
      *next = LLVMBuildPhi(l->builder, LLVMTypeOf(start), "");
      LLVMAddIncoming(*next++, &start, &entry, 1);
    }
  }
}

// The items of what the loop's phis, from `phis` on, carry as `value`. Returns the phis behind them.
static LLVMValueRef *set_carried(tl_lower *l, const tl_value *value, LLVMValueRef *phis) {
  int32_t len = value_len(l, value->type), each = phi_items(l, value->type);
  LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, len + 1);
  for (int32_t r = 0; r < len; r += each, phis++) {
    if (each == 2)
      tl_lower_split_pair(l, *phis, items + r);
    else
      items[r] = *phis;
    if (value->type->kind == TL_TYPE_INDEX)
      items[r] = tl_lower_index_as(l, l->builder, items[r], tl_lower_value_type(l, value));
  }
  tl_lower_set(l, value, items, len);
  return phis;
}

static void close_loop(tl_lower *l, tl_op *op, tl_loop *loop, LLVMValueRef step) {
  tl_op *yield = tl_block_terminator(op->regions[0]);
  LLVMValueRef next = loop->iteration ? tl_lower_next_tile(l, op, loop->iteration, loop->end)
                                      : LLVMBuildNSWAdd(l->builder, loop->induction, step, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->builder);
  if (loop->iteration) {
    LLVMValueRef iterations = LLVMBuildAdd(l->builder, loop->iteration, tl_session_i32(l->session, 1), "");
    LLVMAddIncoming(loop->iteration, &iterations, &latch, 1);
  }
  LLVMValueRef *phi = loop->phis;
  for (uint32_t i = 0; i < op->num_results; i++) {
    tl_value *arg = op->regions[0]->args[i + 1];
    for (int32_t r = 0; r < value_len(l, arg->type); r += phi_items(l, arg->type)) {
      LLVMValueRef value = phi_value(l, tl_op_operand(yield, i), arg, r);
      LLVMAddIncoming(*phi++, &value, &latch, 1);
    }
  }
  LLVMAddIncoming(loop->induction, &next, &latch, 1);
  LLVMValueRef branch = LLVMBuildBr(l->builder, loop->head);
  // Loops of the block stay as the schedule made them; what an element of a parallel does is LLVM's to decide.
  if (!l->parallel || tl_op_has(op, TL_ATTR_UNROLL)) tl_lower_set_unroll(l, branch, tl_op_int(op, TL_ATTR_UNROLL, 0));
}

static bool fits_i32(tl_range range) {
  return range.lo >= INT32_MIN && range.hi < INT32_MAX / 2;
}

// Whether the loop goes on, asked at its head.
static LLVMValueRef another_iteration(tl_lower *l, const tl_op *op, const tl_loop *loop, bool ascends,
                                      LLVMValueRef end) {
  int64_t bound;
  bool ends_itself = tl_op_has(op, TL_ATTR_WHILE);
  bool endless = tl_value_const_int(tl_op_arg(op, TL_GROUP_FOR_upper), &bound) && bound == TL_FOR_ENDLESS;
  if (ends_itself && endless) return loop->phis[0];
  LLVMValueRef inside = LLVMBuildICmp(l->builder, ascends ? LLVMIntSLT : LLVMIntSGT, loop->induction, end, "");
  return ends_itself ? LLVMBuildAnd(l->builder, loop->phis[0], inside, "") : inside;
}

// ---- loops that are written out

enum { MAX_TRIPS = 64, MAX_EXPANDED = 1024 };

typedef struct row_search {
  const tl_op *loop;
  int32_t ops;
  bool reads_row;  // an element after the other of global memory, one at a time
} row_search;

static void find_row(tl_op *op, void *user) {
  row_search *search = user;
  search->ops++;
  if (op->code != TL_OP_LOAD || tl_op_int(op, TL_ATTR_VEC, 1) > 1) return;
  uint32_t rank = tl_op_group_len(op, TL_GROUP_LOAD_index);
  if (rank == 0 || tl_op_arg(op, TL_GROUP_LOAD_buffer)->type->scope != TL_SCOPE_GLOBAL) return;
  tl_affine last = tl_affine_of(tl_op_group_at(op, TL_GROUP_LOAD_index, rank - 1));
  search->reads_row |= last.valid && tl_affine_coefficient(&last, search->loop->regions[0]->args[0]) == 1;
}

// Whether an element of a parallel goes through a row by a loop of few iterations: written out here, their addresses
// are one and a number each, of which it is known what they are multiples of, so that they become vectors.
static bool is_written_out(const tl_lower *l, const tl_op *op, tl_constant_loop *out) {
  if (!l->parallel || tl_op_has(op, TL_ATTR_WHILE) || tl_op_has(op, TL_ATTR_UNROLL)) return false;
  if (!tl_loop_is_constant(op, out) || out->trips < 2 || out->trips > MAX_TRIPS) return false;
  row_search search = {.loop = op};
  tl_walk((tl_op *)op, find_row, &search);
  return search.reads_row && search.ops * out->trips * l->parallel->width <= MAX_EXPANDED;
}

// What `values` stand for as items of the loop's carried values, from `first` on.
static void carry(tl_lower *l, tl_op *op, tl_value *(*value_at)(tl_op *, uint32_t),
                  tl_value *(*target)(tl_op *, uint32_t)) {
  LLVMValueRef **items = TL_NEW_ARRAY(&l->arena, LLVMValueRef *, op->num_results + 1);
  for (uint32_t i = 0; i < op->num_results; i++) {
    int32_t len = value_len(l, op->results[i].type);
    items[i] = TL_NEW_ARRAY(&l->arena, LLVMValueRef, len + 1);
    for (int32_t r = 0; r < len; r++) items[i][r] = item_as(l, value_at(op, i), target(op, i), r);
  }
  // All are read before one is set: the loop may exchange them.
  for (uint32_t i = 0; i < op->num_results; i++)
    tl_lower_set(l, target(op, i), items[i], value_len(l, op->results[i].type));
}

static tl_value *initial(tl_op *op, uint32_t i) {
  return tl_op_group_at(op, TL_GROUP_FOR_inits, i);
}

static tl_value *carried_by(tl_op *op, uint32_t i) {
  return op->regions[0]->args[i + 1];
}

static tl_value *yielded(tl_op *op, uint32_t i) {
  return tl_op_operand(tl_block_terminator(op->regions[0]), i);
}

static tl_value *result_of(tl_op *op, uint32_t i) {
  return &op->results[i];
}

static void write_out(tl_lower *l, tl_op *op, const tl_constant_loop *loop) {
  const tl_value *index = op->regions[0]->args[0];
  LLVMTypeRef type = tl_lower_value_type(l, index);
  carry(l, op, initial, carried_by);
  for (int64_t trip = 0; trip < loop->trips && !tl_lower_failed(l); trip++) {
    int64_t value = loop->lower + trip * loop->step;
    tl_lower_set_one(l, index, LLVMConstInt(type, (unsigned long long)value, 1));
    tl_lower_block(l, op->regions[0]);
    if (!tl_lower_failed(l)) carry(l, op, yielded, carried_by);
  }
  if (!tl_lower_failed(l)) carry(l, op, carried_by, result_of);
}

void tl_lower_op_FOR(tl_lower *l, tl_op *op) {
  tl_value *lower = tl_op_arg(op, TL_GROUP_FOR_lower), *upper = tl_op_arg(op, TL_GROUP_FOR_upper);
  tl_value *step_value = tl_op_arg(op, TL_GROUP_FOR_step), *index = op->regions[0]->args[0];
  bool in_group = l->parallel && l->parallel->width > 1;
  if ((in_group && tl_op_has(op, TL_ATTR_WHILE)) || tl_lower_varies(l, lower) || tl_lower_varies(l, upper) ||
      tl_lower_varies(l, step_value)) {
    tl_lower_by_elements(l, op);
    return;
  }
  tl_constant_loop known;
  if (is_written_out(l, op, &known)) {
    write_out(l, op, &known);
    return;
  }
  tl_range steps = tl_value_range(step_value);
  if (steps.lo < 1 && (steps.lo != steps.hi || steps.lo == 0)) {
    tl_lower_internal(l, op, "the sign of the step is not known");
    return;
  }
  // The index may pass the upper bound by one step before the loop ends.
  bool narrow = fits_i32(tl_value_range(lower)) && fits_i32(tl_value_range(upper)) && steps.hi < INT32_MAX / 2 &&
                steps.lo > -(INT32_MAX / 2);
  LLVMTypeRef type = narrow ? l->session->i32 : l->session->i64;
  LLVMValueRef start = tl_lower_index_as(l, l->builder, tl_lower_get(l, lower, 0), type);
  LLVMValueRef end = tl_lower_index_as(l, l->builder, tl_lower_get(l, upper, 0), type);
  LLVMValueRef step = tl_lower_index_as(l, l->builder, tl_lower_get(l, step_value, 0), type);
  tl_loop loop = {tl_lower_new_block(l), tl_lower_new_block(l), tl_lower_new_block(l), .end = end};
  LLVMBasicBlockRef entry = LLVMGetInsertBlock(l->builder);
  LLVMBuildBr(l->builder, loop.head);
  LLVMPositionBuilderAtEnd(l->builder, loop.head);
  loop.induction = LLVMBuildPhi(l->builder, type, "");
  LLVMAddIncoming(loop.induction, &start, &entry, 1);
  if (tl_op_has(op, TL_ATTR_DYNAMIC)) {
    LLVMValueRef zero = tl_session_i32(l->session, 0);
    loop.iteration = LLVMBuildPhi(l->builder, l->session->i32, "");
    LLVMAddIncoming(loop.iteration, &zero, &entry, 1);
  }
  add_phis(l, op, &loop, entry);
  LLVMPositionBuilderAtEnd(l->builder, loop.head);
  LLVMValueRef *carried = loop.phis;
  for (uint32_t i = 0; i < op->num_results; i++) carried = set_carried(l, op->regions[0]->args[i + 1], carried);
  LLVMValueRef more = another_iteration(l, op, &loop, steps.lo > 0, end);
  LLVMBuildCondBr(l->builder, more, loop.body, loop.after);
  LLVMPositionBuilderAtEnd(l->builder, loop.body);
  tl_lower_set_one(l, index, tl_lower_index_as(l, l->builder, loop.induction, tl_lower_value_type(l, index)));
  tl_lower_block(l, op->regions[0]);
  if (tl_lower_failed(l)) return;
  close_loop(l, op, &loop, step);
  LLVMPositionBuilderAtEnd(l->builder, loop.after);
  carried = loop.phis;
  for (uint32_t i = 0; i < op->num_results; i++) carried = set_carried(l, &op->results[i], carried);
}

// Ends a branch of an `if`: its yielded items, in the types of the results.
static LLVMValueRef *branch_items(tl_lower *l, tl_op *op, const tl_block *region, int32_t total) {
  LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, total + 1);
  tl_op *yield = region ? tl_block_terminator(region) : NULL;
  int32_t n = 0;
  for (uint32_t i = 0; i < op->num_results && yield; i++)
    for (int32_t r = 0; r < value_len(l, op->results[i].type); r++)
      items[n++] = item_as(l, tl_op_operand(yield, i), &op->results[i], r);
  return items;
}

// Whether an op may run although the if around it is not taken: it computes, and cannot trap.
static bool is_speculatable(const tl_op *op) {
  if (op->code == TL_OP_YIELD) return true;
  if (!(tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE)) return false;
  int64_t divisor;
  switch (op->code) {
    case TL_OP_DIV:
    case TL_OP_FLOORDIV:
    case TL_OP_MOD:
      return tl_value_const_int(tl_op_operand(op, 1), &divisor) && divisor != 0;
    default:
      return true;
  }
}

// Whether the block starts asynchronous copies and does nothing else. They carry the condition as a predicate then:
// without a branch ptxas can schedule them between the matrix instructions around.
static bool only_copies(const tl_block *block) {
  bool found = false;
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_COPY) {
      if (!tl_lower_copy_is_async(op)) return false;
      found = true;
    } else if (!is_speculatable(op)) {
      return false;
    }
  }
  return found;
}

static bool asks_presence(const tl_value *condition) {
  const tl_op *op = condition->def;
  if (!op) return false;
  if (op->code == TL_OP_AND) return asks_presence(tl_op_operand(op, 0)) || asks_presence(tl_op_operand(op, 1));
  return op->code == TL_OP_PRESENT;
}

static bool is_global_load(const tl_op *op) {
  return op->code == TL_OP_LOAD && tl_op_arg(op, TL_GROUP_LOAD_buffer)->type->scope == TL_SCOPE_GLOBAL &&
         !tl_op_arg(op, TL_GROUP_LOAD_pad);
}

static bool is_bounded(const tl_op *load) {
  const tl_attr *check = tl_op_attr(load, TL_ATTR_CHECK);
  bool found = check == NULL;
  for (int32_t d = 0; check && d < check->v.ints.len; d++) found |= check->v.ints.items[d] != 0;
  return found;
}

// Whether an element's branch asks for an optional tensor, and loads within bounds and computes: the condition is a
// part of the loads' predicates then. With a branch around each of them what they share would be held over all of them.
static bool only_loads(const tl_lower *l, const tl_op *op) {
  if (!l->parallel || op->num_results == 0 || !asks_presence(tl_op_arg(op, TL_GROUP_IF_condition))) return false;
  for (const tl_op *in = op->regions[0]->first; in; in = in->next)
    if (!(is_global_load(in) && is_bounded(in)) && (in->num_regions > 0 || !is_speculatable(in))) return false;
  for (const tl_op *in = op->regions[1] ? op->regions[1]->first : NULL; in; in = in->next)
    if (in->num_regions > 0 || !is_speculatable(in)) return false;
  return op->regions[1] != NULL;
}

static void load_if(tl_lower *l, tl_op *op, LLVMValueRef condition) {
  LLVMValueRef around = l->loads_if;
  l->loads_if = tl_lower_and(l, around, condition);
  tl_lower_block(l, op->regions[0]);
  l->loads_if = around;
  tl_lower_block(l, op->regions[1]);
  for (uint32_t i = 0; i < op->num_results && !tl_lower_failed(l); i++) {
    tl_value *result = &op->results[i];
    const tl_value *taken = tl_op_operand(tl_block_terminator(op->regions[0]), i);
    const tl_value *other = tl_op_operand(tl_block_terminator(op->regions[1]), i);
    int32_t len = value_len(l, result->type);
    LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, len + 1);
    for (int32_t r = 0; r < len; r++) {
      LLVMValueRef yes = item_as(l, taken, result, r), no = item_as(l, other, result, r);
      items[r] = LLVMBuildSelect(l->builder, condition, yes, no, "");
    }
    tl_lower_set(l, result, items, len);
  }
}

static bool forks(LLVMBasicBlockRef block) {
  LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
  return end && LLVMGetNumSuccessors(end) > 1;
}

// Whether a block forks that was made after `last` was.
static bool any_forks_behind(LLVMBasicBlockRef last) {
  for (LLVMBasicBlockRef block = LLVMGetNextBasicBlock(last); block; block = LLVMGetNextBasicBlock(block))
    if (forks(block)) return true;
  return false;
}

// Brings the lanes of a warp together where a branch that all threads take ends, if some of its code, which is in
// `begin` and the blocks behind `last`, was for single threads. Where such code ends the branch, LLVM makes its end
// that of both branches, or one block of equal ends of both: ptxas has no point of convergence for a place that other
// threads reach without having gone apart, and the warp would come to the next barrier or matrix instruction in parts,
// which those forbid (`.aligned`, PTX ISA, "barrier", "mma").
static void converge(tl_lower *l, const tl_op *op, LLVMBasicBlockRef begin, LLVMBasicBlockRef last) {
  if (l->parallel || l->is_elected || !tl_op_has(op, TL_ATTR_UNIFORM) || !(forks(begin) || any_forks_behind(last)))
    return;
  LLVMValueRef all = tl_session_i32(l->session, -1);
  tl_session_call_device(l->session, l->builder, TL_DEVOP_WARP_SYNC, &all, 1);
}

void tl_lower_op_IF(tl_lower *l, tl_op *op) {
  if (tl_lower_varies(l, tl_op_arg(op, TL_GROUP_IF_condition))) {
    tl_lower_varying_if(l, op);
    return;
  }
  LLVMValueRef condition = tl_lower_get(l, tl_op_arg(op, TL_GROUP_IF_condition), 0);
  if (only_loads(l, op)) {
    load_if(l, op, condition);
    return;
  }
  const tl_block *otherwise = op->regions[1];
  bool has_else = otherwise && otherwise->first && (otherwise->first->code != TL_OP_YIELD || op->num_results > 0);
  if (!has_else && op->num_results == 0 && only_copies(op->regions[0])) {
    LLVMValueRef around = l->copies_if;
    l->copies_if = tl_lower_and(l, around, condition);
    tl_lower_block(l, op->regions[0]);
    l->copies_if = around;
    return;
  }
  int32_t total = 0;
  for (uint32_t i = 0; i < op->num_results; i++) total += value_len(l, op->results[i].type);
  LLVMBasicBlockRef ends[2], then = tl_lower_new_block(l), after = tl_lower_new_block(l);
  LLVMBasicBlockRef other = has_else ? tl_lower_new_block(l) : after;
  LLVMBuildCondBr(l->builder, condition, then, other);
  LLVMBasicBlockRef last = LLVMGetLastBasicBlock(LLVMGetBasicBlockParent(then));
  LLVMPositionBuilderAtEnd(l->builder, then);
  tl_lower_block(l, op->regions[0]);
  if (tl_lower_failed(l)) return;
  converge(l, op, then, last);
  LLVMValueRef *items[2] = {branch_items(l, op, op->regions[0], total), NULL};
  ends[0] = LLVMGetInsertBlock(l->builder);
  LLVMBuildBr(l->builder, after);
  if (has_else) {
    last = LLVMGetLastBasicBlock(LLVMGetBasicBlockParent(other));
    LLVMPositionBuilderAtEnd(l->builder, other);
    tl_lower_block(l, otherwise);
    if (tl_lower_failed(l)) return;
    converge(l, op, other, last);
    items[1] = branch_items(l, op, otherwise, total);
    ends[1] = LLVMGetInsertBlock(l->builder);
    LLVMBuildBr(l->builder, after);
  }
  LLVMPositionBuilderAtEnd(l->builder, after);
  int32_t n = 0;
  for (uint32_t i = 0; i < op->num_results && has_else; i++) {
    int32_t len = value_len(l, op->results[i].type);
    LLVMValueRef *phis = TL_NEW_ARRAY(&l->arena, LLVMValueRef, len + 1);
    for (int32_t r = 0; r < len; r++, n++) {
      phis[r] = LLVMBuildPhi(l->builder, LLVMTypeOf(items[0][n]), "");
      LLVMValueRef values[] = {items[0][n], items[1][n]};
      LLVMAddIncoming(phis[r], values, ends, 2);
    }
    tl_lower_set(l, &op->results[i], phis, len);
  }
}

// The op around a yield reads its operands.
void tl_lower_op_YIELD(tl_lower *l, tl_op *op) {
  (void)l;
  (void)op;
}
