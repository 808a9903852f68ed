// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// scan: the coordinate along the axis is a mixed radix number whose digits lie in registers and lanes. Digit by digit,
// from the fastest on, every element is combined with the totals of the smaller values of that digit: registers one
// after the other, lanes in log steps of shfl.sync. Warps come together outside (passes/layout/infer_layouts_scan.c).
#include <math.h>
#include <string.h>

#include "ir/reduction.h"
#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/tile/lower_reduce.h"

typedef struct tl_scan_job {
  const tl_layout *layout;
  tl_combiner combiner;
  int32_t axis, registers;
  int32_t run;  // digits of this stride and above are not scanned
  bool reverse, exclusive;
  LLVMValueRef *values;  // per register: what lies before it (and itself) among the digits done; NULL: nothing
  LLVMValueRef *totals;  // per register whose done digits are 0: the total of its block; elsewhere unused
  int32_t *blocks;       // per register: the one that holds its block's total
} tl_scan_job;

static LLVMValueRef combine(tl_lower *l, const tl_combiner *combiner, LLVMValueRef a, LLVMValueRef b) {
  if (!a || !b) return a ? a : b;
  return tl_lower_combine(l, combiner, (tl_element){.value = a}, (tl_element){.value = b}).value;
}

// How far one step of the mode moves the register or lane number.
static int32_t mode_step(const tl_layout *layout, int32_t mode) {
  int32_t step = 1;
  for (int32_t m = 0; m < mode; m++) {
    if (layout->modes[m].axis == layout->modes[mode].axis) step *= layout->modes[m].size;
  }
  return step;
}

static void scan_registers(tl_lower *l, tl_scan_job *job, int32_t mode) {
  int32_t size = job->layout->modes[mode].size, step = mode_step(job->layout, mode);
  LLVMValueRef *running = TL_NEW_ARRAY(&l->arena, LLVMValueRef, job->registers);
  for (int32_t i = 0; i < size; i++) {
    int32_t digit = job->reverse ? size - 1 - i : i;
    for (int32_t reg = 0; reg < job->registers; reg++) {
      if (reg / step % size != digit) continue;
      int32_t block = job->blocks[reg] - digit * step;
      if (running[block]) job->values[reg] = combine(l, &job->combiner, running[block], job->values[reg]);
    }
    for (int32_t reg = 0; reg < job->registers; reg++) {
      if (job->blocks[reg] != reg || reg / step % size != digit) continue;
      running[reg - digit * step] = combine(l, &job->combiner, running[reg - digit * step], job->totals[reg]);
    }
  }
  for (int32_t reg = 0; reg < job->registers; reg++) {
    job->blocks[reg] -= reg / step % size * step;
    if (running[reg]) job->totals[reg] = running[reg];
  }
}

// `is_last`: no digit above needs the new total.
static void scan_lanes(tl_lower *l, tl_scan_job *job, int32_t mode, bool is_last) {
  tl_session *s = l->session;
  int32_t size = job->layout->modes[mode].size, step = mode_step(job->layout, mode);
  int32_t mask = (size - 1) * step;  // lane modes are powers of two
  tl_device_op_id shift = job->reverse ? TL_DEVOP_SHFL_DOWN : TL_DEVOP_SHFL_UP;
  LLVMValueRef digits = LLVMBuildAnd(l->builder, l->lane, tl_session_i32(s, mask), "");
  if (job->reverse) digits = LLVMBuildXor(l->builder, digits, tl_session_i32(s, mask), "");
  LLVMValueRef last = job->reverse ? LLVMBuildAnd(l->builder, l->lane, tl_session_i32(s, ~mask), "")
                                   : LLVMBuildOr(l->builder, l->lane, tl_session_i32(s, mask), "");
  LLVMValueRef neutral = tl_lower_neutral(l, &job->combiner).value;
  LLVMValueRef *before = TL_NEW_ARRAY(&l->arena, LLVMValueRef, job->registers);
  for (int32_t reg = 0; reg < job->registers; reg++) {
    if (job->blocks[reg] != reg) continue;
    LLVMValueRef total = job->totals[reg];
    for (int32_t far = step; far < size * step; far *= 2) {
      LLVMValueRef by = tl_session_i32(s, far);
      LLVMValueRef reaches = LLVMBuildICmp(l->builder, LLVMIntUGE, digits, by, "");
      LLVMValueRef other = tl_lower_shuffle(l, shift, total, by);
      total = LLVMBuildSelect(l->builder, reaches, combine(l, &job->combiner, other, total), total, "");
    }
    LLVMValueRef has_any = LLVMBuildICmp(l->builder, LLVMIntNE, digits, tl_session_i32(s, 0), "");
    LLVMValueRef other = tl_lower_shuffle(l, shift, total, tl_session_i32(s, step));
    before[reg] = LLVMBuildSelect(l->builder, has_any, other, neutral, "");
    if (!is_last) job->totals[reg] = tl_lower_shuffle(l, TL_DEVOP_SHFL_IDX, total, last);
  }
  for (int32_t reg = 0; reg < job->registers; reg++) {
    job->values[reg] = combine(l, &job->combiner, before[job->blocks[reg]], job->values[reg]);
  }
}

// The mode along the axis with the smallest stride from `from` on, below the run; -1 when there is none.
static int32_t next_mode(const tl_scan_job *job, int32_t from) {
  int32_t found = -1;
  for (int32_t m = 0; m < job->layout->num_modes; m++) {
    const tl_layout_mode *mode = &job->layout->modes[m];
    if (mode->dim != job->axis || mode->size == 1 || mode->stride < from || mode->stride >= job->run) continue;
    if (found < 0 || mode->stride < job->layout->modes[found].stride) found = m;
  }
  return found;
}

static void load_elements(tl_lower *l, tl_scan_job *job, const tl_value *source, const tl_op *op) {
  tl_place place = *tl_lower_place(l, job->layout, op);
  LLVMValueRef neutral = tl_lower_neutral(l, &job->combiner).value;
  job->values = TL_NEW_ARRAY(&l->arena, LLVMValueRef, job->registers);
  job->totals = TL_NEW_ARRAY(&l->arena, LLVMValueRef, job->registers);
  job->blocks = TL_NEW_ARRAY(&l->arena, int32_t, job->registers);
  for (int32_t reg = 0; reg < job->registers; reg++) {
    LLVMValueRef active = NULL;
    LLVMValueRef value = tl_lower_get(l, source, reg);
    value = tl_lower_reduced_value(l, &job->combiner, value, source->type->dtype);
    tl_lower_place_register(&place, reg);
    if (!tl_lower_place_inside(l, &place, &active)) value = LLVMBuildSelect(l->builder, active, value, neutral, "");
    job->totals[reg] = value;
    job->values[reg] = job->exclusive ? NULL : value;
    job->blocks[reg] = reg;
  }
}

static tl_combiner combiner_of(const tl_op *op) {
  return (tl_combiner){.reduction = (int)tl_op_int(op, TL_ATTR_REDUCTION, TL_REDUCTION_SUM),
                       .dtype = op->results[0].type->dtype};
}

static int32_t axis_of(const tl_op *op) {
  return (int32_t)tl_op_attr(op, TL_ATTR_AXES)->v.ints.items[0];
}

// Before the first element of an exclusive scan nothing lies. Running extremes of floats begin at the infinity that
// loses, not at the NaN that stands for it on the way.
static void set_results(tl_lower *l, const tl_combiner *combiner, bool exclusive, tl_value *result,
                        LLVMValueRef *values, int32_t count) {
  bool is_extreme = combiner->reduction == TL_REDUCTION_MAX || combiner->reduction == TL_REDUCTION_MIN;
  if (exclusive && is_extreme && tl_dtype_is_float(combiner->dtype)) {
    double infinity = combiner->reduction == TL_REDUCTION_MAX ? -(double)INFINITY : (double)INFINITY;
    LLVMValueRef start = LLVMConstReal(tl_session_type(l->session, combiner->dtype), infinity);
    for (int32_t reg = 0; reg < count; reg++) values[reg] = combine(l, combiner, values[reg], start);
  }
  tl_lower_set(l, result, values, count);
}

// One total a run: that of the block of any register of the run.
static void set_totals(tl_lower *l, const tl_scan_job *job, const tl_op *op, tl_value *result) {
  const tl_layout *layout = result->type->layout;
  int32_t count = tl_layout_num_registers(layout);
  LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, count);
  for (int32_t reg = 0; reg < job->registers; reg++) {
    int32_t coord[TL_MAX_DIMS];
    tl_layout_axis_coord(job->layout, TL_AXIS_REGISTER, reg, coord);
    coord[job->axis] /= job->run;
    int32_t target = tl_lower_tile_register(layout, coord);
    if (target < 0) {
      tl_lower_internal(l, op, "the totals' layout does not follow the source's");
      return;
    }
    items[target] = job->totals[job->blocks[reg]];
  }
  tl_lower_set(l, result, items, count);
}

void tl_lower_op_SCAN(tl_lower *l, tl_op *op) {
  const tl_value *source = tl_op_arg(op, TL_GROUP_SCAN_src);
  if (op->num_results == 0 || !source->type->layout) {
    tl_lower_internal(l, op, "a tile without a layout");
    return;
  }
  bool partial = tl_op_has(op, TL_ATTR_PARTIAL);
  tl_scan_job job = {.layout = source->type->layout,
                     .combiner = combiner_of(op),
                     .axis = axis_of(op),
                     .reverse = tl_op_has(op, TL_ATTR_REVERSE),
                     .exclusive = tl_op_has(op, TL_ATTR_EXCLUSIVE)};
  if (!tl_session_type(l->session, source->type->dtype)) {
    tl_lower_unsupported(l, op, "a scan of %s has no lowering", tl_dtype_name(source->type->dtype));
    return;
  }
  job.run = tl_scan_run(job.layout, job.axis);
  job.registers = tl_layout_num_registers(job.layout);
  if (!partial && job.run < tl_layout_padded(job.layout, job.axis)) {
    tl_lower_internal(l, op, "several warps hold runs of one axis");
    return;
  }
  tl_lower_begin_groups(l);
  load_elements(l, &job, source, op);
  for (int32_t mode = next_mode(&job, 1); mode >= 0 && !tl_lower_failed(l);) {
    const tl_layout_mode *digit = &job.layout->modes[mode];
    int32_t next = next_mode(&job, digit->stride * digit->size);
    if (digit->axis == TL_AXIS_REGISTER) {
      scan_registers(l, &job, mode);
    } else {
      scan_lanes(l, &job, mode, !partial && next < 0);
    }
    mode = next;
  }
  tl_lower_end_groups(l);
  LLVMValueRef neutral = tl_lower_neutral(l, &job.combiner).value;
  for (int32_t reg = 0; reg < job.registers; reg++) {
    if (!job.values[reg]) job.values[reg] = neutral;
  }
  // The start of an exclusive scan is settled once, by the last op.
  set_results(l, &job.combiner, job.exclusive && !partial, tl_op_result(op, 0), job.values, job.registers);
  if (partial) set_totals(l, &job, op, tl_op_result(op, 1));
}

// ---- carry

typedef struct tl_carry {
  const tl_layout *layout;
  int32_t axis, run, num_runs;
  LLVMValueRef thread_run;  // the part of a run's number that the thread contributes
  LLVMValueRef *before;     // per register of the totals' other dims and per run: the total of all runs before
} tl_carry;

// Totals before each run, for the totals that stand `first` registers from the start.
static void accumulate_runs(tl_lower *l, const tl_combiner *combiner, const tl_value *totals, const tl_layout *layout,
                            const int32_t *coord, int32_t axis, bool reverse, LLVMValueRef *out) {
  int32_t num_runs = layout->shape[axis], at[TL_MAX_DIMS];
  memcpy(at, coord, sizeof at);
  LLVMValueRef running = tl_lower_neutral(l, combiner).value;
  for (int32_t i = 0; i < num_runs; i++) {
    int32_t run = reverse ? num_runs - 1 - i : i;
    out[run] = running;
    at[axis] = run;
    LLVMValueRef total = tl_lower_get(l, totals, tl_lower_tile_register(layout, at));
    running = i == 0 ? total : combine(l, combiner, running, total);
  }
}

// The total before the run of a thread's register: one of those that the lanes and warps along the axis can have.
static LLVMValueRef pick_run(tl_lower *l, const tl_carry *carry, const LLVMValueRef *before, int32_t register_run) {
  LLVMValueRef picked = NULL;
  for (int32_t run = register_run; run < carry->num_runs; run++) {
    // Whether lanes and warps reach run - register_run: their digits fill gaps between the registers'.
    int32_t rest = run - register_run;
    for (int32_t m = carry->layout->num_modes - 1; m >= 0; m--) {
      const tl_layout_mode *mode = &carry->layout->modes[m];
      if (mode->dim != carry->axis || mode->axis == TL_AXIS_REGISTER || mode->stride < carry->run) continue;
      rest -= rest / (mode->stride / carry->run) % mode->size * (mode->stride / carry->run);
    }
    if (rest != 0) continue;
    if (!picked) {
      picked = before[run];
      continue;
    }
    LLVMValueRef number = tl_session_i32(l->session, run - register_run);
    LLVMValueRef is_own = LLVMBuildICmp(l->builder, LLVMIntEQ, carry->thread_run, number, "");
    picked = LLVMBuildSelect(l->builder, is_own, before[run], picked, "");
  }
  return picked;
}

void tl_lower_op_SCAN_CARRY(tl_lower *l, tl_op *op) {
  const tl_value *tile = tl_op_arg(op, TL_GROUP_SCAN_CARRY_tile), *totals = tl_op_arg(op, TL_GROUP_SCAN_CARRY_totals);
  const tl_layout *runs = totals->type->layout;
  tl_combiner combiner = combiner_of(op);
  tl_carry carry = {.layout = tile->type->layout, .axis = axis_of(op)};
  if (!carry.layout || !runs) {
    tl_lower_internal(l, op, "a tile without a layout");
    return;
  }
  carry.run = tl_scan_run(carry.layout, carry.axis);
  carry.num_runs = tl_scan_num_runs(carry.layout, carry.axis);
  tl_place place = *tl_lower_place(l, carry.layout, op);
  carry.thread_run = LLVMBuildUDiv(l->entry, place.thread[carry.axis], tl_session_i32(l->session, carry.run), "");
  int32_t registers = tl_layout_num_registers(carry.layout), others = tl_layout_num_registers(runs);
  LLVMValueRef *values = TL_NEW_ARRAY(&l->arena, LLVMValueRef, registers);
  // Per register of the totals that is the first of its runs: the totals before each run.
  LLVMValueRef **before = TL_NEW_ARRAY(&l->arena, LLVMValueRef *, others);
  for (int32_t reg = 0; reg < registers && !tl_lower_failed(l); reg++) {
    int32_t coord[TL_MAX_DIMS];
    tl_layout_axis_coord(carry.layout, TL_AXIS_REGISTER, reg, coord);
    int32_t register_run = coord[carry.axis] / carry.run;
    coord[carry.axis] = 0;
    int32_t first = tl_lower_tile_register(runs, coord);
    if (first < 0) {
      tl_lower_internal(l, op, "the totals' layout does not follow the tile's");
      return;
    }
    if (!before[first]) {
      before[first] = TL_NEW_ARRAY(&l->arena, LLVMValueRef, carry.num_runs);
      accumulate_runs(l, &combiner, totals, runs, coord, carry.axis, tl_op_has(op, TL_ATTR_REVERSE), before[first]);
    }
    LLVMValueRef picked = pick_run(l, &carry, before[first], register_run);
    values[reg] = combine(l, &combiner, picked, tl_lower_get(l, tile, reg));
  }
  set_results(l, &combiner, tl_op_has(op, TL_ATTR_EXCLUSIVE), tl_op_result(op, 0), values, registers);
}
