// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gemm with wgmma: the four warps of a warpgroup issue instructions that read B, and A unless it is in registers, from
// shared memory by descriptors. PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions": "Matrix Descriptor
// Format", "Strides", "Register Fragments for wgmma".
//
// An operand's tile lies in panels of a swizzle's span (ir/layout/layout.h), so that its parts start where the
// swizzle's pattern does and differ from each other by constants: one address a tile, one addition an instruction.
#include <string.h>

#include "llvm_backend/device/wgmma.h"
#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/matrix/lower_mma.h"
#include "llvm_backend/lower/state/lower.h"
#include "llvm_backend/lower/value/lower_pairs.h"

// An operand in shared memory. `outer` is its index along M or N.
typedef struct descriptor {
  const tl_buffer *buffer;
  int64_t rows, columns;  // of the buffer
  bool transposed;        // the rows of the tile run along M or N
  LLVMValueRef start;     // i32: the address, over 16, of this warpgroup's part
  uint32_t low, high;     // the constant bits of both halves
} descriptor;

typedef struct wgmma_gemm {
  tl_op *op;
  const tl_instruction *inst;
  tl_wgmma_form form;
  int32_t k;                 // of the tiles
  int32_t tiles_m, tiles_n;  // instructions of a warpgroup
  int32_t rows, columns;     // of a warpgroup
  descriptor a, b;
  tl_value *a_tile;       // A in registers; NULL: in shared memory
  int32_t num_registers;  // of the accumulator, one an element
  LLVMValueRef *acc;
  TL_VEC(LLVMValueRef) pins;  // registers of A that instructions since the last wait read
} wgmma_gemm;

// ---- forms

static tl_wgmma_type type_of(tl_dtype dtype) {
  switch (dtype) {
    case TL_DTYPE_F16:
      return TL_WGMMA_F16;
    case TL_DTYPE_BF16:
      return TL_WGMMA_BF16;
    case TL_DTYPE_TF32:
      return TL_WGMMA_TF32;
    case TL_DTYPE_F8E4M3:
      return TL_WGMMA_E4M3;
    case TL_DTYPE_F8E5M2:
      return TL_WGMMA_E5M2;
    case TL_DTYPE_I8:
      return TL_WGMMA_S8;
    case TL_DTYPE_U8:
      return TL_WGMMA_U8;
    default:
      return TL_WGMMA_NUM_TYPES;
  }
}

static tl_wgmma_register sum_of(tl_dtype acc) {
  return acc == TL_DTYPE_F32 ? TL_WGMMA_SUM_F32 : acc == TL_DTYPE_F16 ? TL_WGMMA_SUM_F16 : TL_WGMMA_SUM_S32;
}

static tl_wgmma_form form_of(const tl_instruction *inst) {
  return (tl_wgmma_form){.sum = sum_of(inst->acc),
                         .a = type_of(inst->a),
                         .b = type_of(inst->b),
                         .n = inst->n,
                         .a_in_registers = inst->a_in_registers,
                         .transpose_a = inst->trans_a,
                         .transpose_b = inst->trans_b};
}

// ---- descriptors

// Bytes from the start of the tile to (outer, k), which starts a pattern of the swizzle along the rows.
static int64_t part_offset(const descriptor *d, int64_t outer, int64_t k) {
  const tl_buffer *buffer = d->buffer;
  int32_t shape[] = {(int32_t)d->rows, (int32_t)d->columns};
  int32_t coord[] = {(int32_t)(d->transposed ? k : outer), (int32_t)(d->transposed ? outer : k)};
  return tl_shared_layout_offset(&buffer->shared, shape, 2, tl_dtype_bits(buffer->dtype), coord);
}

// Bits 62 and 63 of a descriptor: the span of the swizzle; 0 when the layout is none that wgmma reads.
static uint32_t swizzle_mode(const tl_buffer *buffer) {
  const tl_shared_layout *shared = &buffer->shared;
  int64_t row_bytes = buffer->dims[buffer->rank - 1] * tl_dtype_bits(buffer->dtype) / 8;
  int32_t span = 16 * (shared->swizzle_mask + 1);
  bool fits = shared->pitch_bytes == span && (shared->panel_bytes == span || row_bytes == span);
  if (fits && span == 128 && shared->swizzle_shift == 0) return 1;
  if (fits && span == 64 && shared->swizzle_shift == 1) return 2;
  if (fits && span == 32 && shared->swizzle_shift == 2) return 3;
  return 0;
}

// Where the operand begins in its buffer, in bytes from the base; -1: it begins inside of a pattern.
static int64_t first_byte(const descriptor *d, const tl_lower_matrix *matrix) {
  const tl_buffer *buffer = d->buffer;
  int64_t row = 0;
  for (int32_t i = 0; i < buffer->rank; i++) {
    if (matrix->moving[i]) return -1;
    if (i < buffer->rank - 1) row = row * buffer->dims[i] + matrix->fixed[i];
  }
  int32_t shape[] = {(int32_t)d->rows, (int32_t)d->columns};
  int32_t coord[] = {(int32_t)row, (int32_t)matrix->fixed[buffer->rank - 1]};
  int64_t panel = (int64_t)buffer->shared.pitch_bytes * 8 / tl_dtype_bits(buffer->dtype);
  if (row % TL_SHARED_PANEL_ROWS != 0 || coord[1] % panel != 0) return -1;
  return tl_shared_layout_offset(&buffer->shared, shape, 2, tl_dtype_bits(buffer->dtype), coord);
}

// `group`: this warpgroup's place along M or N, of parts of `size`.
static bool init_descriptor(tl_lower *l, const wgmma_gemm *gemm, descriptor *d, tl_value *tile, bool transposed,
                            LLVMValueRef group, int32_t size) {
  tl_session *s = l->session;
  tl_lower_matrix matrix;
  bool found = tl_lower_matrix_of(l, tile, &matrix);
  d->buffer = matrix.buffer;
  d->transposed = transposed;
  d->rows = 1;
  for (int32_t i = 0; found && i < d->buffer->rank - 1; i++) d->rows *= d->buffer->dims[i];
  d->columns = found ? d->buffer->dims[d->buffer->rank - 1] : 0;
  uint32_t mode = found ? swizzle_mode(d->buffer) : 0;
  int64_t first = mode ? first_byte(d, &matrix) : -1;
  if (first < 0) {
    tl_lower_internal(l, gemm->op, "an operand of wgmma lies in no layout that it reads");
    return false;
  }
  int64_t pitch = d->buffer->shared.pitch_bytes, stride = 8 * pitch;
  // Of a transposed operand the distance of panels; else it is not used.
  int64_t leading = transposed ? d->rows * pitch : 16;
  d->low = (uint32_t)(leading >> 4) << 16;
  d->high = (uint32_t)(stride >> 4) | mode << 30;
  LLVMValueRef address = LLVMBuildPtrToInt(l->builder, d->buffer->base, s->i64, "");
  address = LLVMBuildTrunc(l->builder, address, s->i32, "");
  LLVMValueRef part = LLVMBuildNUWMul(l->entry, group, tl_session_i32(s, part_offset(d, size, 0)), "");
  address = LLVMBuildNUWAdd(l->builder, address, part, "");
  if (first) address = LLVMBuildNUWAdd(l->builder, address, tl_session_i32(s, first), "");
  // In a cluster the block's rank stands above the 18 bits of an address.
  address = LLVMBuildAnd(l->builder, address, tl_session_i32(s, 0x3ffff), "");
  d->start = LLVMBuildLShr(l->builder, address, tl_session_i32(s, 4), "");
  return true;
}

static LLVMValueRef build_descriptor(tl_lower *l, const descriptor *d, int64_t outer, int64_t k) {
  tl_session *s = l->session;
  LLVMValueRef low = d->start;
  int64_t offset = part_offset(d, outer, k) >> 4;
  if (offset) low = LLVMBuildNUWAdd(l->builder, low, tl_session_i32(s, offset), "");
  low = LLVMBuildOr(l->builder, low, tl_session_i32(s, (int32_t)d->low), "");
  return LLVMBuildOr(l->builder, LLVMBuildZExt(l->builder, low, s->i64, ""),
                     LLVMConstInt(s->i64, (unsigned long long)d->high << 32, 0), "");
}

// ---- one instruction

// The four registers of A in registers for the block of rows and the step.
static void tile_registers(tl_lower *l, const wgmma_gemm *gemm, int32_t tile_m, int32_t k, LLVMValueRef *out) {
  int32_t pack = tl_instruction_pack(gemm->inst);
  for (int32_t r = 0; r < TL_WGMMA_A_REGISTERS; r++) {
    LLVMValueRef items[4];
    for (int32_t i = 0; i < pack; i++) {
      int32_t coord[] = {tile_m * TL_WGMMA_ROWS + r % 2 * 8, k + r / 2 * 4 * pack + i};
      items[i] = tl_lower_get(l, gemm->a_tile, tl_lower_tile_register(gemm->a_tile->type->layout, coord));
    }
    out[r] = tl_lower_pack_operand(l, items, pack);
  }
}

// `elements` of an accumulator as registers of D, and back. f16 go in pairs.
static void pack_sums(tl_lower *l, tl_wgmma_register type, LLVMValueRef const *acc, int32_t elements,
                      LLVMValueRef *out) {
  for (int32_t i = 0; i < elements && type != TL_WGMMA_SUM_F16; i++) out[i] = acc[i];
  for (int32_t i = 0; i < elements && type == TL_WGMMA_SUM_F16; i += 2)
    out[i / 2] = LLVMBuildBitCast(l->builder, tl_lower_pair(l, acc[i], acc[i + 1]), l->session->i32, "");
}

static void unpack_sums(tl_lower *l, tl_wgmma_register type, LLVMValueRef const *sums, int32_t elements,
                        LLVMValueRef *acc) {
  for (int32_t i = 0; i < elements && type != TL_WGMMA_SUM_F16; i++) acc[i] = sums[i];
  for (int32_t i = 0; i < elements && type == TL_WGMMA_SUM_F16; i++) {
    LLVMValueRef pair = LLVMBuildBitCast(l->builder, sums[i / 2], l->session->v2f16, "");
    acc[i] = LLVMBuildExtractElement(l->builder, pair, tl_session_i32(l->session, i % 2), "");
  }
}

enum { MAX_SUMS = TL_WGMMA_MAX_N / 2 };

// The registers of D of one instruction, over all of K from `k_from` to `k_to`.
static void multiply(tl_lower *l, wgmma_gemm *gemm, int32_t tile_m, int32_t tile_n, int32_t k_from, int32_t k_to,
                     bool clears, LLVMValueRef *sums, unsigned num_sums) {
  LLVMValueRef args[MAX_SUMS + TL_WGMMA_A_REGISTERS + 2];
  for (int32_t k = k_from; k < k_to; k += gemm->inst->k) {
    unsigned n = num_sums;
    memcpy(args, sums, num_sums * sizeof *args);
    if (gemm->a_tile) {
      tile_registers(l, gemm, tile_m, k, args + n);
      for (int32_t i = 0; i < TL_WGMMA_A_REGISTERS; i++) tl_vec_push(&gemm->pins, args[n + i]);
      n += TL_WGMMA_A_REGISTERS;
    } else {
      args[n++] = build_descriptor(l, &gemm->a, (int64_t)tile_m * TL_WGMMA_ROWS, k);
    }
    args[n++] = build_descriptor(l, &gemm->b, (int64_t)tile_n * gemm->inst->n, k);
    args[n++] = tl_session_bool(l->session, !(clears && k == k_from));
    LLVMValueRef result = tl_session_call_wgmma_form(l->session, l->builder, &gemm->form, args, n);
    for (unsigned i = 0; i < num_sums; i++) sums[i] = LLVMBuildExtractValue(l->builder, result, i, "");
  }
}

// Instructions [from, to), in the order of the accumulator, over [k_from, k_to), added to `sums`, their registers, as
// one group.
static void issue(tl_lower *l, wgmma_gemm *gemm, int32_t from, int32_t to, int32_t k_from, int32_t k_to, bool clears,
                  LLVMValueRef *sums) {
  unsigned each = (unsigned)tl_wgmma_sum_registers(&gemm->form);
  tl_session_call_device(l->session, l->builder, TL_DEVOP_WGMMA_FENCE, NULL, 0);
  for (int32_t t = from; t < to; t++)
    multiply(l, gemm, t / gemm->tiles_n, t % gemm->tiles_n, k_from, k_to, clears, sums + (unsigned)(t - from) * each,
             each);
  tl_session_call_device(l->session, l->builder, TL_DEVOP_WGMMA_COMMIT_GROUP, NULL, 0);
}

// ---- waits

// Registers of a wait: sums, which may be used from then on, and operands, which stay until then.
typedef struct held_registers {
  TL_VEC(LLVMValueRef) sums;
  TL_VEC(tl_wgmma_run) runs;  // of the sums
  TL_VEC(LLVMValueRef) pins;
} held_registers;

static void add_sums(held_registers *held, tl_wgmma_register type, LLVMValueRef const *sums, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) tl_vec_push(&held->sums, sums[i]);
  tl_wgmma_run run = {(int)count, type};
  bool extends = held->runs.len > 0 && tl_vec_last(&held->runs).type == type;
  if (extends)
    tl_vec_last(&held->runs).count += run.count;
  else if (count)
    tl_vec_push(&held->runs, run);
}

// One wait, with `sums` and, behind them, `pins` of the given number.
static void wait_for(tl_lower *l, tl_wgmma_wait *wait, LLVMValueRef *sums, LLVMValueRef const *pins, int num_pins) {
  LLVMValueRef args[TL_WGMMA_MAX_PINNED];
  int count = wait->num_runs ? tl_wgmma_wait_registers(wait) : 0;
  for (int i = 0; i < count; i++) args[i] = sums[i];
  for (int i = 0; i < num_pins; i++) args[count + i] = pins[i];
  if (num_pins) wait->runs[wait->num_runs++] = (tl_wgmma_run){num_pins, TL_WGMMA_OPERAND_B32};
  LLVMValueRef result = tl_session_call_wgmma_wait(l->session, l->builder, wait, args, (unsigned)(count + num_pins));
  for (int i = 0; i < count; i++)
    sums[i] = count == 1 ? result : LLVMBuildExtractValue(l->builder, result, (unsigned)i, "");
  wait->num_runs = 0;
}

// The runs from *next on of which `room` registers hold the most.
static void take_runs(held_registers *held, size_t *next, int room, tl_wgmma_wait *wait) {
  while (*next < held->runs.len && room > 0 && wait->num_runs < TL_WGMMA_MAX_RUNS) {
    tl_wgmma_run *run = &held->runs.items[*next];
    int taken = run->count < room ? run->count : room;
    wait->runs[wait->num_runs++] = (tl_wgmma_run){taken, run->type};
    room -= taken;
    run->count -= taken;
    if (run->count == 0) ++*next;
  }
}

// Waits until at most `pending` groups are in flight. One instruction holds so many registers: where there are more,
// the operands come with a first one, which ends the groups, and the sums with others, which find them ended.
static void land(tl_lower *l, held_registers *held, int64_t pending) {
  tl_wgmma_wait wait = {.pending = (int)pending};
  size_t total = held->sums.len + held->pins.len, next = 0;
  LLVMValueRef *sums = held->sums.items;
  if (total == 0) {
    LLVMValueRef left = tl_session_i64(l->session, pending);
    tl_session_call_device(l->session, l->builder, TL_DEVOP_WGMMA_WAIT_GROUP, &left, 1);
    return;
  }
  if (total <= TL_WGMMA_MAX_PINNED && held->runs.len < TL_WGMMA_MAX_RUNS) {
    take_runs(held, &next, TL_WGMMA_MAX_PINNED, &wait);
    wait_for(l, &wait, sums, held->pins.items, (int)held->pins.len);
    return;
  }
  for (size_t i = 0; i < held->pins.len; i += TL_WGMMA_MAX_PINNED) {
    size_t count = held->pins.len - i < TL_WGMMA_MAX_PINNED ? held->pins.len - i : TL_WGMMA_MAX_PINNED;
    wait_for(l, &wait, NULL, held->pins.items + i, (int)count);
  }
  while (next < held->runs.len) {
    take_runs(held, &next, TL_WGMMA_MAX_PINNED, &wait);
    int count = tl_wgmma_wait_registers(&wait);
    wait_for(l, &wait, sums, NULL, 0);
    sums += count;
  }
}

static void fini_held(held_registers *held) {
  tl_vec_fini(&held->sums);
  tl_vec_fini(&held->runs);
  tl_vec_fini(&held->pins);
}

// The same, waited for at once. `acc` holds the elements of all instructions.
static void run_group(tl_lower *l, wgmma_gemm *gemm, int32_t from, int32_t to, int32_t k_from, int32_t k_to,
                      bool clears, LLVMValueRef *acc) {
  int32_t elements = (to - from) * gemm->inst->n / 2;
  unsigned count = (unsigned)((to - from) * tl_wgmma_sum_registers(&gemm->form));
  LLVMValueRef *sums = TL_NEW_ARRAY(&l->arena, LLVMValueRef, count);
  acc += (size_t)from * (size_t)(gemm->inst->n / 2);
  pack_sums(l, gemm->form.sum, acc, elements, sums);
  issue(l, gemm, from, to, k_from, k_to, clears, sums);
  held_registers held = {0};
  for (size_t i = 0; i < gemm->pins.len; i++) tl_vec_push(&held.pins, gemm->pins.items[i]);
  add_sums(&held, gemm->form.sum, sums, count);
  land(l, &held, 0);
  unpack_sums(l, gemm->form.sum, held.sums.items, elements, acc);
  tl_vec_clear(&gemm->pins);
  fini_held(&held);
}

// 8-bit floats: partial sums of at most TL_PROMOTED_K products, added up in f32, one instruction's columns at a time,
// so that only those are there twice (choose-schedule counts their registers).
static void run_promoted(tl_lower *l, wgmma_gemm *gemm, bool clears) {
  int32_t each = gemm->inst->n / 2, instructions = gemm->tiles_m * gemm->tiles_n;
  LLVMValueRef *sums = TL_NEW_ARRAY(&l->arena, LLVMValueRef, each);
  for (int32_t k = 0; k < gemm->k; k += TL_PROMOTED_K)
    for (int32_t t = 0; t < instructions; t++) {
      LLVMValueRef *acc = gemm->acc + t * each;
      memcpy(sums, acc, (size_t)each * sizeof *sums);
      for (int32_t i = 0; i < each; i++) acc[i] = LLVMGetUndef(tl_session_type(l->session, gemm->inst->acc));
      int32_t end = k + TL_PROMOTED_K < gemm->k ? k + TL_PROMOTED_K : gemm->k;
      run_group(l, gemm, t, t + 1, k, end, true, gemm->acc);
      for (int32_t i = 0; i < each && !(clears && k == 0); i++) acc[i] = LLVMBuildFAdd(l->builder, sums[i], acc[i], "");
    }
}

// ---- the gemm

// The accumulator's registers are those of the instructions, one after the other: [tile_m][tile_n][n / 2].
static bool layout_fits(const wgmma_gemm *gemm, const tl_layout *layout, tl_gemm_warps warps) {
  int32_t shape[] = {layout->shape[0], layout->shape[1]};
  tl_layout wanted = tl_instruction_acc_layout(gemm->inst, shape, warps);
  return layout->rank == 2 && tl_layout_equal(layout, &wanted);
}

static bool init_gemm(tl_lower *l, wgmma_gemm *gemm, tl_op *op) {
  tl_value *acc = tl_op_arg(op, TL_GROUP_GEMM_acc), *a = tl_op_arg(op, TL_GROUP_GEMM_a),
           *b = tl_op_arg(op, TL_GROUP_GEMM_b);
  const tl_attr *attr = tl_op_attr(op, TL_ATTR_WARPS);
  if (!attr || !acc->type->layout || l->threads % (32 * TL_WGMMA_WARPS) != 0) return false;
  tl_gemm_warps warps = {
      .m = (int32_t)attr->v.ints.items[0], .n = (int32_t)attr->v.ints.items[1], .k = 1, .all = l->threads / 32};
  gemm->op = op;
  gemm->inst = tl_op_instruction(op);
  gemm->form = form_of(gemm->inst);
  bool trans_a = tl_op_has(op, TL_ATTR_TRANS_A);
  int32_t groups_m = warps.m / TL_WGMMA_WARPS;
  gemm->k = (int32_t)a->type->dims[trans_a ? 0 : 1];
  gemm->rows = (int32_t)acc->type->dims[0] / groups_m;
  gemm->columns = (int32_t)acc->type->dims[1] / warps.n;
  gemm->tiles_m = gemm->rows / TL_WGMMA_ROWS;
  gemm->tiles_n = gemm->columns / gemm->inst->n;
  gemm->num_registers = tl_layout_num_registers(acc->type->layout);
  if (gemm->num_registers != gemm->tiles_m * gemm->tiles_n * gemm->inst->n / 2 || gemm->k % gemm->inst->k != 0 ||
      !layout_fits(gemm, acc->type->layout, warps))
    return false;
  LLVMValueRef group = LLVMBuildLShr(l->entry, l->warp, tl_session_i32(l->session, 2), "");
  LLVMValueRef along_m = LLVMBuildURem(l->entry, group, tl_session_i32(l->session, groups_m), "");
  LLVMValueRef along_n = LLVMBuildUDiv(l->entry, group, tl_session_i32(l->session, groups_m), "");
  along_n = LLVMBuildURem(l->entry, along_n, tl_session_i32(l->session, warps.n), "");
  if (a->type->kind == TL_TYPE_TILE)
    gemm->a_tile = a;
  else if (!init_descriptor(l, gemm, &gemm->a, a, gemm->inst->trans_a, along_m, gemm->rows))
    return false;
  return init_descriptor(l, gemm, &gemm->b, b, gemm->inst->trans_b, along_n, gemm->columns);
}

// ---- flights

int32_t tl_lower_flight_len(const tl_type *flight) {
  int32_t elements = flight->layout ? tl_layout_num_registers(flight->layout) : 0;
  return flight->dtype == TL_DTYPE_F16 ? elements / 2 : elements;
}

static LLVMTypeRef flight_type(const tl_lower *l, const tl_type *flight) {
  return flight->dtype == TL_DTYPE_F32 ? l->session->f32 : l->session->i32;
}

static LLVMValueRef *copy_items(tl_lower *l, const tl_value *value) {
  int32_t len = tl_lower_len(l, value);
  LLVMValueRef *items = TL_NEW_ARRAY(&l->arena, LLVMValueRef, len + 1);
  for (int32_t i = 0; i < len; i++) items[i] = tl_lower_get(l, value, i);
  return items;
}

void tl_lower_op_GEMM_BEGIN(tl_lower *l, tl_op *op) {
  const tl_type *type = tl_op_result(op, 0)->type;
  int32_t len = tl_lower_flight_len(type);
  LLVMValueRef *elements = copy_items(l, tl_op_operand(op, 0));
  LLVMValueRef *sums = TL_NEW_ARRAY(&l->arena, LLVMValueRef, len + 1);
  pack_sums(l, sum_of(type->dtype), elements, tl_layout_num_registers(type->layout), sums);
  tl_lower_set(l, tl_op_result(op, 0), sums, len);
}

// The 32-bit registers of a tile that gemms read, in order: neighbours along K share one.
static void pin_tile(tl_lower *l, held_registers *held, const tl_value *tile) {
  int32_t len = tl_lower_len(l, tile), pack = 32 / tl_dtype_bits(tile->type->dtype);
  LLVMValueRef *items = copy_items(l, tile);
  for (int32_t i = 0; i + pack <= len; i += pack) {
    LLVMValueRef word = tl_lower_pack_operand(l, items + i, pack);
    tl_vec_push(&held->pins, word);
  }
}

void tl_lower_op_GEMM_WAIT(tl_lower *l, tl_op *op) {
  held_registers held = {0};
  for (uint32_t i = 0; i < tl_op_group_len(op, TL_GROUP_GEMM_WAIT_pins); i++)
    pin_tile(l, &held, tl_op_group_at(op, TL_GROUP_GEMM_WAIT_pins, i));
  size_t first = 0;
  for (uint32_t v = 0; v < op->num_results; v++) {
    const tl_value *flight = tl_op_group_at(op, TL_GROUP_GEMM_WAIT_values, v);
    add_sums(&held, sum_of(flight->type->dtype), copy_items(l, flight), (uint32_t)tl_lower_flight_len(flight->type));
  }
  land(l, &held, tl_op_int(op, TL_ATTR_PENDING, 0));
  for (uint32_t v = 0; v < op->num_results; v++) {
    const tl_type *type = tl_op_result(op, v)->type;
    int32_t elements = tl_layout_num_registers(type->layout);
    LLVMValueRef *acc = TL_NEW_ARRAY(&l->arena, LLVMValueRef, elements + 1);
    unpack_sums(l, sum_of(type->dtype), held.sums.items + first, elements, acc);
    tl_lower_set(l, tl_op_result(op, v), acc, elements);
    first += (size_t)tl_lower_flight_len(tl_op_group_at(op, TL_GROUP_GEMM_WAIT_values, v)->type);
  }
  fini_held(&held);
}

void tl_lower_wgmma_gemm(tl_lower *l, tl_op *op) {
  wgmma_gemm *gemm = TL_NEW(&l->arena, wgmma_gemm);
  if (!init_gemm(l, gemm, op)) {
    tl_lower_internal(l, op, "the gemm does not fit its instruction");
    return;
  }
  bool clears = tl_gemm_clears(op);
  if (tl_op_has(op, TL_ATTR_ASYNC)) {
    const tl_type *flight = tl_op_result(op, 0)->type;
    LLVMValueRef *sums = copy_items(l, tl_op_arg(op, TL_GROUP_GEMM_acc));
    int32_t len = tl_lower_flight_len(flight);
    for (int32_t i = 0; i < len && clears; i++) sums[i] = LLVMGetUndef(flight_type(l, flight));
    issue(l, gemm, 0, gemm->tiles_m * gemm->tiles_n, 0, gemm->k, clears, sums);
    tl_lower_set(l, tl_op_result(op, 0), sums, len);
    tl_vec_fini(&gemm->pins);
    return;
  }
  gemm->acc = TL_NEW_ARRAY(&l->arena, LLVMValueRef, gemm->num_registers);
  // The old content of a cleared sum is ignored (scale-d is false): no instruction has to set it.
  LLVMValueRef any = LLVMGetUndef(tl_session_type(l->session, gemm->inst->acc));
  for (int32_t r = 0; r < gemm->num_registers; r++)
    gemm->acc[r] = clears ? any : tl_lower_get(l, tl_op_arg(op, TL_GROUP_GEMM_acc), r);
  if (tl_gemm_is_promoted(op))
    run_promoted(l, gemm, clears);
  else
    run_group(l, gemm, 0, gemm->tiles_m * gemm->tiles_n, 0, gemm->k, clears, gemm->acc);
  tl_lower_set(l, tl_op_result(op, 0), gemm->acc, gemm->num_registers);
  tl_vec_fini(&gemm->pins);
}
