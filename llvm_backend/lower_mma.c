// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gemm with mma.sync: ldmatrix(.trans) of A and B fragments from shared memory, one mma.m16n8k16 a step, m16n8k8 for a
// rest of 8 along K. Accumulators are scalars. (PTX ISA, "Matrix Fragments for mma.m16n8k16", "ldmatrix".)
#include <string.h>

#include "llvm_backend/lower.h"

#define TL_MAX_TILES_M 16  // 16-row tiles of one warp
#define TL_MAX_TILES_N 32  // 8-column tiles of one warp

// Which lane names which row of the 8x8 matrices of one ldmatrix, and the box they cover.
typedef struct tl_fragment {
  tl_mem_access access;
  bool trans;      // the shared tile has K as rows: ldmatrix.trans
  int32_t outer;   // buffer dim of M or N
  int32_t inner;   // buffer dim of K
  int32_t last;    // largest index along M or N that may start a read
  bool overhangs;  // warps reach past the tile
} tl_fragment;

typedef struct tl_mma_gemm {
  tl_op *op;
  bool bf16;
  int32_t k, tiles_m, tiles_n;
  tl_fragment a, b;
  int32_t *registers;  // [tile_m][tile_n][4]: accumulator register of each mma result
  LLVMValueRef *acc;
} tl_mma_gemm;

static LLVMValueRef entry_and(tl_lower *l, LLVMValueRef a, int64_t mask) {
  return LLVMBuildAnd(l->entry, a, tl_session_i32(l->session, mask), "");
}
static LLVMValueRef entry_bits(tl_lower *l, LLVMValueRef a, int64_t shift, int64_t mask, int64_t scale) {
  LLVMValueRef bits = entry_and(l, LLVMBuildLShr(l->entry, a, tl_session_i32(l->session, shift), ""), mask);
  return LLVMBuildNUWMul(l->entry, bits, tl_session_i32(l->session, scale), "");
}

// Row part of a lane's ldmatrix address. Matrices 0..3 of an x4 belong to lanes 0-7, 8-15, 16-23, 24-31.
// `pair_first`: matrices 0 and 1 differ along the outer dim (A), else along K (B).
static void lane_offsets(tl_lower *l, bool pair_first, LLVMValueRef *out_outer, LLVMValueRef *out_inner, bool trans) {
  LLVMValueRef low = entry_and(l, l->lane, 7);
  LLVMValueRef bit3 = entry_bits(l, l->lane, 3, 1, 8), bit4 = entry_bits(l, l->lane, 4, 1, 8);
  LLVMValueRef outer_step = pair_first ? bit3 : bit4, inner_step = pair_first ? bit4 : bit3;
  // The 8 addresses of a matrix walk the rows of the shared tile: M or N, or K when transposed.
  *out_outer = trans ? outer_step : LLVMBuildNUWAdd(l->entry, outer_step, low, "");
  *out_inner = trans ? LLVMBuildNUWAdd(l->entry, inner_step, low, "") : inner_step;
}

static LLVMValueRef warp_offset(tl_lower *l, const tl_layout *layout, int32_t dim) {
  LLVMValueRef result = NULL;
  int32_t before = 1;
  for (int32_t m = 0; m < layout->num_modes; m++) {
    const tl_layout_mode *mode = &layout->modes[m];
    if (mode->axis != TL_AXIS_WARP) continue;
    LLVMValueRef digit = LLVMBuildUDiv(l->entry, l->warp, tl_session_i32(l->session, before), "");
    before *= mode->size;
    if (mode->dim != dim || mode->size == 1) continue;
    digit = LLVMBuildURem(l->entry, digit, tl_session_i32(l->session, mode->size), "");
    digit = LLVMBuildNUWMul(l->entry, digit, tl_session_i32(l->session, mode->stride), "");
    result = result ? LLVMBuildNUWAdd(l->entry, result, digit, "") : digit;
  }
  return result ? result : tl_session_i32(l->session, 0);
}

// The largest warp offset, for tiles that warps overhang.
static int32_t warp_offset_max(const tl_layout *layout, int32_t dim) {
  int32_t result = 0;
  for (int32_t m = 0; m < layout->num_modes; m++)
    if (layout->modes[m].axis == TL_AXIS_WARP && layout->modes[m].dim == dim)
      result += (layout->modes[m].size - 1) * layout->modes[m].stride;
  return result;
}

static void init_fragment(tl_lower *l, tl_mma_gemm *mma, tl_fragment *fragment, tl_value *tile, bool is_a,
                          bool k_rows) {
  tl_buffer *buffer = tl_lower_buffer(l, tile);
  if (!buffer || buffer->scope != TL_SCOPE_SHARED || buffer->rank < 2) {
    tl_lower_unsupported(l, mma->op, "mma.sync reads its operands from shared tiles here; operand %s is not one",
                         is_a ? "A" : "B");
    return;
  }
  if (buffer->shared.pitch_bytes % 16 != 0) {
    tl_lower_unsupported(l, mma->op, "ldmatrix needs rows of 16-byte multiples; operand %s has a pitch of %d bytes",
                         is_a ? "A" : "B", buffer->shared.pitch_bytes);
    return;
  }
  const tl_layout *layout = tl_op_arg(mma->op, TL_GROUP_GEMM_acc)->type->layout;
  int32_t rows = buffer->rank - 2, columns = buffer->rank - 1, acc_dim = is_a ? 0 : 1;
  LLVMValueRef outer, inner;
  lane_offsets(l, is_a, &outer, &inner, k_rows);
  outer = LLVMBuildNUWAdd(l->entry, outer, warp_offset(l, layout, acc_dim), "");
  tl_lower_access_init(l, &fragment->access, mma->op, buffer);
  fragment->trans = k_rows;
  fragment->outer = k_rows ? columns : rows;
  fragment->inner = k_rows ? rows : columns;
  int32_t size = (int32_t)buffer->dims[fragment->outer], tiles = is_a ? mma->tiles_m : mma->tiles_n;
  // Rows past the tile feed only padding of the accumulator, but the addresses must be the tile's.
  fragment->last = k_rows ? (size - 1) / 8 * 8 : size - 1;
  fragment->overhangs = warp_offset_max(layout, acc_dim) + tiles * (is_a ? 16 : 8) > size;
  fragment->access.var[fragment->outer] = outer;
  fragment->access.var[fragment->inner] = inner;
}

// Pointer of this lane for the box at (outer, k).
static LLVMValueRef fragment_pointer(tl_lower *l, tl_fragment *fragment, int32_t outer, int32_t k) {
  tl_mem_access *access = &fragment->access;
  access->constant[fragment->inner] = k;
  if (!fragment->overhangs) {
    access->constant[fragment->outer] = outer;
    return tl_lower_access_pointer(l, access, NULL);
  }
  tl_mem_access clamped = *access;
  LLVMValueRef index = LLVMBuildNUWAdd(l->builder, access->var[fragment->outer], tl_session_i32(l->session, outer), "");
  clamped.fixed = true;
  clamped.constant[fragment->outer] = 0;
  clamped.var[fragment->outer] = tl_lower_intrinsic2(l, "llvm.umin", index, tl_session_i32(l->session, fragment->last));
  return tl_lower_access_pointer(l, &clamped, NULL);
}

// Loads `count` 8x8 matrices (1, 2 or 4) as i32 values.
static void load_matrices(tl_lower *l, tl_fragment *fragment, int32_t outer, int32_t k, int32_t count,
                          LLVMValueRef *out) {
  LLVMValueRef pointer = fragment_pointer(l, fragment, outer, k);
  tl_device_op_id first = fragment->trans ? TL_DEVOP_LDMATRIX_X1_TRANS : TL_DEVOP_LDMATRIX_X1;
  tl_device_op_id id = (tl_device_op_id)(first + (count == 4 ? 2 : count - 1));
  LLVMValueRef result = tl_session_call_device(l->session, l->builder, id, &pointer, 1);
  if (count == 1) out[0] = result;
  for (int32_t i = 0; i < count && count > 1; i++) out[i] = LLVMBuildExtractValue(l->builder, result, (unsigned)i, "");
}

// A fragment of one 16-row tile: 4 registers for a k step of 16, 2 for one of 8.
static void load_a(tl_lower *l, tl_mma_gemm *mma, int32_t tile, int32_t k, bool half_step, LLVMValueRef *out) {
  load_matrices(l, &mma->a, tile * 16, k, half_step ? 2 : 4, out);
}

// B fragments of all column tiles: 2 registers each for a k step of 16, 1 for one of 8.
static void load_b(tl_lower *l, tl_mma_gemm *mma, int32_t k, bool half_step, LLVMValueRef (*out)[2]) {
  for (int32_t n = 0; n < mma->tiles_n; n += half_step ? 1 : 2) {
    LLVMValueRef parts[4];
    bool both = !half_step && n + 1 < mma->tiles_n;
    load_matrices(l, &mma->b, n * 8, k, half_step ? 1 : both ? 4 : 2, parts);
    out[n][0] = parts[0];
    if (!half_step) out[n][1] = parts[1];
    if (both) out[n + 1][0] = parts[2], out[n + 1][1] = parts[3];
  }
}

static LLVMValueRef operand(tl_lower *l, const tl_mma_gemm *mma, LLVMValueRef bits) {
  return mma->bf16 ? bits : LLVMBuildBitCast(l->builder, bits, l->session->v2f16, "");
}

static void multiply(tl_lower *l, tl_mma_gemm *mma, LLVMValueRef const *a, LLVMValueRef const *b,
                     const int32_t *registers, bool half_step) {
  LLVMValueRef args[10];
  unsigned n = 0;
  for (int i = 0; i < (half_step ? 2 : 4); i++) args[n++] = operand(l, mma, a[i]);
  for (int i = 0; i < (half_step ? 1 : 2); i++) args[n++] = operand(l, mma, b[i]);
  for (int i = 0; i < 4; i++) args[n++] = mma->acc[registers[i]];
  tl_device_op_id id = half_step ? (mma->bf16 ? TL_DEVOP_MMA_M16N8K8_BF16 : TL_DEVOP_MMA_M16N8K8_F16)
                                 : (mma->bf16 ? TL_DEVOP_MMA_M16N8K16_BF16 : TL_DEVOP_MMA_M16N8K16_F16);
  LLVMValueRef result = tl_session_call_device(l->session, l->builder, id, args, n);
  for (int i = 0; i < 4; i++) mma->acc[registers[i]] = LLVMBuildExtractValue(l->builder, result, (unsigned)i, "");
}

// Finds the accumulator registers of every 16x8 tile of a warp and checks that lanes hold what mma.m16n8 gives them.
static bool map_accumulator(tl_lower *l, tl_mma_gemm *mma, const tl_layout *layout) {
  for (int32_t lane = 0; lane < 32; lane++) {
    int32_t at[TL_MAX_DIMS];
    tl_layout_axis_coord(layout, TL_AXIS_LANE, lane, at);
    if (at[0] != lane / 4 || at[1] != lane % 4 * 2) return false;
  }
  int32_t registers = tl_layout_num_registers(layout);
  for (int32_t r = 0; r < registers; r++) {
    int32_t at[TL_MAX_DIMS];
    tl_layout_axis_coord(layout, TL_AXIS_REGISTER, r, at);
    if (at[0] / 16 + 1 > mma->tiles_m) mma->tiles_m = at[0] / 16 + 1;
    if (at[1] / 8 + 1 > mma->tiles_n) mma->tiles_n = at[1] / 8 + 1;
  }
  if (mma->tiles_m * mma->tiles_n * 4 != registers || mma->tiles_m > TL_MAX_TILES_M || mma->tiles_n > TL_MAX_TILES_N)
    return false;
  mma->registers = TL_NEW_ARRAY(&l->arena, int32_t, registers);
  for (int32_t tm = 0; tm < mma->tiles_m; tm++)
    for (int32_t tn = 0; tn < mma->tiles_n; tn++)
      for (int32_t i = 0; i < 4; i++) {
        int32_t coord[] = {tm * 16 + i / 2 * 8, tn * 8 + i % 2};
        int32_t reg = tl_lower_tile_register(layout, coord);
        if (reg < 0) return false;
        mma->registers[(tm * mma->tiles_n + tn) * 4 + i] = reg;
      }
  return true;
}

static void run_steps(tl_lower *l, tl_mma_gemm *mma) {
  for (int32_t k = 0; k < mma->k; k += 16) {
    bool half_step = mma->k - k < 16;
    LLVMValueRef a[TL_MAX_TILES_M][4] = {{0}}, b[TL_MAX_TILES_N][2] = {{0}};
    for (int32_t tm = 0; tm < mma->tiles_m; tm++) load_a(l, mma, tm, k, half_step, a[tm]);
    load_b(l, mma, k, half_step, b);
    for (int32_t tm = 0; tm < mma->tiles_m; tm++)
      for (int32_t tn = 0; tn < mma->tiles_n; tn++)
        multiply(l, mma, a[tm], b[tn], &mma->registers[(tm * mma->tiles_n + tn) * 4], half_step);
  }
}

tl_dtype tl_lower_gemm_dtype(const tl_op *op) {
  tl_dtype dtype = tl_op_arg(op, TL_GROUP_GEMM_acc)->type->dtype;
  return dtype == TL_DTYPE_F16 ? TL_DTYPE_F32 : dtype;
}

LLVMValueRef *tl_lower_gemm_begin(tl_lower *l, tl_op *op) {
  tl_value *acc = tl_op_arg(op, TL_GROUP_GEMM_acc);
  tl_dtype dtype = tl_lower_gemm_dtype(op);
  int32_t registers = tl_layout_num_registers(acc->type->layout);
  LLVMValueRef *values = TL_NEW_ARRAY(&l->arena, LLVMValueRef, registers);
  bool clears = tl_op_has(op, TL_ATTR_CLEAR);
  for (int32_t r = 0; r < registers; r++) values[r] = clears ? tl_lower_zero(l, dtype) : tl_lower_get(l, acc, r);
  if (!clears && dtype != acc->type->dtype) tl_lower_convert(l, values, acc->type->dtype, dtype, registers, values);
  return values;
}

void tl_lower_gemm_end(tl_lower *l, tl_op *op, LLVMValueRef *acc) {
  const tl_type *type = tl_op_result(op, 0)->type;
  int32_t registers = tl_layout_num_registers(type->layout);
  tl_dtype dtype = tl_lower_gemm_dtype(op);
  if (dtype != type->dtype) tl_lower_convert(l, acc, dtype, type->dtype, registers, acc);
  tl_lower_set(l, tl_op_result(op, 0), acc, registers);
}

void tl_lower_mma_gemm(tl_lower *l, tl_op *op) {
  tl_value *acc = tl_op_arg(op, TL_GROUP_GEMM_acc), *a = tl_op_arg(op, TL_GROUP_GEMM_a),
           *b = tl_op_arg(op, TL_GROUP_GEMM_b);
  const tl_layout *layout = acc->type->layout;
  tl_mma_gemm *mma = TL_NEW(&l->arena, tl_mma_gemm);
  mma->op = op;
  if (a->type->kind == TL_TYPE_TILE) {
    tl_lower_unsupported(l, op, "mma.sync with A in a fragment tile has no lowering; copy it to a shared tile first");
    return;
  }
  tl_dtype dtype = a->type->dtype;
  if ((dtype != TL_DTYPE_F16 && dtype != TL_DTYPE_BF16) || tl_lower_gemm_dtype(op) != TL_DTYPE_F32) {
    tl_lower_unsupported(l, op, "mma.sync of %s with %s accumulators has no lowering", tl_dtype_name(dtype),
                         tl_dtype_name(acc->type->dtype));
    return;
  }
  mma->bf16 = dtype == TL_DTYPE_BF16;
  bool trans_a = tl_op_has(op, TL_ATTR_TRANS_A), trans_b = tl_op_has(op, TL_ATTR_TRANS_B);
  mma->k = (int32_t)a->type->dims[a->type->rank - (trans_a ? 2 : 1)];
  if (mma->k % 8 != 0) {
    tl_lower_unsupported(l, op, "mma.sync needs K of the tile to be a multiple of 8, it is %d", mma->k);
    return;
  }
  if (!layout || !map_accumulator(l, mma, layout)) {
    tl_lower_internal(l, op, "the accumulator's layout is not that of mma.m16n8");
    return;
  }
  mma->acc = tl_lower_gemm_begin(l, op);
  init_fragment(l, mma, &mma->a, a, true, trans_a);
  init_fragment(l, mma, &mma->b, b, false, !trans_b);
  if (tl_lower_failed(l)) return;
  run_steps(l, mma);
  tl_lower_gemm_end(l, op, mma->acc);
}

void tl_lower_op_GEMM(tl_lower *l, tl_op *op) {
  switch ((tl_ir_enum_MMA)tl_op_int(op, TL_ATTR_MMA, TL_MMA_AUTO)) {
    case TL_MMA_MMA:
      tl_lower_mma_gemm(l, op);
      return;
    case TL_MMA_FMA:
      tl_lower_fma_gemm(l, op);
      return;
    case TL_MMA_WGMMA:
      tl_lower_unsupported(l, op, "wgmma has no lowering");
      return;
    case TL_MMA_AUTO:
    case TL_MMA_COUNT:
      break;
  }
  tl_lower_internal(l, op, "no instruction was chosen");
}
