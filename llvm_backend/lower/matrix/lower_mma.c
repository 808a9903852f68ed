// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gemm with mma.sync. One k-step of every instruction but f64's is 32 bytes of a row (16 for the short form), so that
// ldmatrix brings operands of all dtypes whose rows run along K, and with .trans the 16-bit ones whose rows do not.
// What ldmatrix cannot bring (8- and 32-bit operands across rows, f64, a rest along K that fills no step) is read
// element by element, with zeros past K. A in registers is packed as it is. (PTX ISA, "Matrix Fragments for mma",
// "ldmatrix".)
#include "llvm_backend/lower/matrix/lower_mma.h"

#include <string.h>

#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/value/lower_pairs.h"

enum { MAX_PACK = 8 };  // elements of a register: of 4 bits
enum { MAX_B = 4 };     // registers of B that an instruction takes: beside a sparse A

static LLVMValueRef entry_and(tl_lower *l, LLVMValueRef a, int64_t mask) {
  return LLVMBuildAnd(l->entry, a, tl_session_i32(l->session, mask), "");
}
static LLVMValueRef entry_bits(tl_lower *l, LLVMValueRef a, int64_t shift, int64_t mask, int64_t scale) {
  LLVMValueRef bits = entry_and(l, LLVMBuildLShr(l->entry, a, tl_session_i32(l->session, shift), ""), mask);
  return LLVMBuildNUWMul(l->entry, bits, tl_session_i32(l->session, scale), "");
}

// Row part of a lane's ldmatrix address. Matrices 0..3 of an x4 belong to lanes 0-7, 8-15, 16-23, 24-31.
// `pair_first`: matrices 0 and 1 differ along the outer dim (A), else along K (B). `inner`: elements of 16 bytes.
static void lane_offsets(tl_lower *l, bool pair_first, int32_t inner, bool trans, LLVMValueRef *out_outer,
                         LLVMValueRef *out_inner) {
  LLVMValueRef low = entry_and(l, l->lane, 7);
  LLVMValueRef outer_step = entry_bits(l, l->lane, pair_first ? 3 : 4, 1, 8);
  LLVMValueRef inner_step = entry_bits(l, l->lane, pair_first ? 4 : 3, 1, inner);
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

static LLVMValueRef sum_of(tl_lower *l, LLVMValueRef a, LLVMValueRef b) {
  return a && b ? LLVMBuildNUWAdd(l->builder, a, b, "") : a ? a : b;
}

// Both ways to reach the operand begin where its part of the tile does.
static void begin_at(tl_lower *l, tl_mma_fragment *fragment, const tl_lower_matrix *matrix) {
  fragment->first_outer = matrix->fixed[fragment->outer];
  fragment->first_inner = matrix->fixed[fragment->inner];
  fragment->moved_outer = matrix->moving[fragment->outer];
  fragment->moved_inner = matrix->moving[fragment->inner];
  tl_mem_access *both[] = {&fragment->access, &fragment->elements};
  for (int32_t i = 0; i < 2; i++)
    for (int32_t d = 0; d < matrix->buffer->rank; d++) {
      both[i]->var[d] = sum_of(l, both[i]->var[d], matrix->moving[d]);
      both[i]->constant[d] = matrix->fixed[d];
    }
}

static void init_fragment(tl_lower *l, tl_mma_gemm *mma, tl_mma_fragment *fragment, tl_value *tile, bool k_rows) {
  bool is_a = fragment == &mma->a;
  tl_lower_matrix matrix;
  if (!tl_lower_matrix_of(l, tile, &matrix)) {
    tl_lower_unsupported(l, mma->op, "mma.sync reads its operands from shared tiles here; operand %s is not one",
                         tile == tl_op_arg(mma->op, TL_GROUP_GEMM_a) ? "A" : "B");
    return;
  }
  const tl_layout *layout = tl_op_arg(mma->op, TL_GROUP_GEMM_acc)->type->layout;
  const tl_buffer *buffer = matrix.buffer;
  int32_t rows = matrix.dims[0], columns = matrix.dims[1];
  int32_t acc_dim = is_a ? mma->row_dim : mma->column_dim;
  int32_t bits = tl_dtype_bits(buffer->dtype);
  fragment->dtype = buffer->dtype;
  fragment->k_rows = k_rows;
  fragment->k = mma->k * (mma->is_sparse && !is_a ? 2 : 1);
  fragment->outer = k_rows ? columns : rows;
  fragment->inner = k_rows ? rows : columns;
  fragment->uses_ldmatrix = buffer->shared.pitch_bytes % 16 == 0 && (k_rows ? bits == 16 : bits <= 32) &&
                            matrix.column_divisor * bits % 128 == 0;
  fragment->whole_words = buffer->shared.pitch_bytes % 4 == 0 && matrix.column_divisor % mma->pack == 0;
  int32_t size = (int32_t)tile->type->dims[k_rows ? 1 : 0], unit = is_a ? mma->inst->m : 8;
  fragment->last = size - 1;
  fragment->overhangs = warp_offset_max(layout, acc_dim) + (is_a ? mma->tiles_m : mma->tiles_n) * unit > size;
  LLVMValueRef offset = warp_offset(l, layout, acc_dim), outer, inner;
  lane_offsets(l, is_a, 128 / bits, k_rows, &outer, &inner);
  tl_lower_access_init(l, &fragment->access, mma->op, buffer);
  fragment->access.var[fragment->outer] = LLVMBuildNUWAdd(l->entry, outer, offset, "");
  fragment->access.var[fragment->inner] = inner;
  tl_lower_access_init(l, &fragment->elements, mma->op, buffer);
  LLVMValueRef group = LLVMBuildLShr(l->entry, l->lane, tl_session_i32(l->session, 2), "");
  fragment->elements.var[fragment->outer] = LLVMBuildNUWAdd(l->entry, group, offset, "");
  LLVMValueRef along_k = entry_bits(l, l->lane, 0, 3, mma->b_tile ? mma->run : mma->pack);
  if (mma->first_k) along_k = LLVMBuildNUWAdd(l->entry, along_k, mma->first_k, "");
  fragment->elements.var[fragment->inner] = along_k;
  begin_at(l, fragment, &matrix);
}

// Pointer for the box at (outer, k). Rows past the tile feed only padding of the accumulator, but the addresses must be
// the tile's: they are clamped, along rows of ldmatrix.trans to whole groups of 8.
static LLVMValueRef box_pointer(tl_lower *l, tl_mma_fragment *fragment, tl_mem_access *access, int32_t outer, int32_t k,
                                int32_t last) {
  access->constant[fragment->inner] = fragment->first_inner + k;
  if (!fragment->overhangs) {
    access->constant[fragment->outer] = fragment->first_outer + outer;
    return tl_lower_access_pointer(l, access, NULL);
  }
  tl_mem_access clamped = *access;
  LLVMValueRef index = LLVMBuildNUWAdd(l->builder, access->var[fragment->outer], tl_session_i32(l->session, outer), "");
  LLVMValueRef most = sum_of(l, tl_session_i32(l->session, last), fragment->moved_outer);
  clamped.fixed = true;
  clamped.constant[fragment->outer] = fragment->first_outer;
  clamped.var[fragment->outer] = tl_lower_intrinsic2(l, "llvm.umin", index, most);
  return tl_lower_access_pointer(l, &clamped, NULL);
}

// Loads `count` 8x8 matrices (1, 2 or 4) as i32 values.
static void load_matrices(tl_lower *l, tl_mma_fragment *fragment, int32_t outer, int32_t k, int32_t count,
                          LLVMValueRef *out) {
  int32_t last = fragment->k_rows ? fragment->last / 8 * 8 : fragment->last;
  LLVMValueRef pointer = box_pointer(l, fragment, &fragment->access, outer, k, last);
  tl_device_op_id first = fragment->k_rows ? TL_DEVOP_LDMATRIX_X1_TRANS : TL_DEVOP_LDMATRIX_X1;
  tl_device_op_id id = (tl_device_op_id)(first + (count == 4 ? 2 : count - 1));
  LLVMValueRef result = tl_session_call_device(l->session, l->builder, id, &pointer, 1);
  if (count == 1) out[0] = result;
  for (int32_t i = 0; i < count && count > 1; i++) out[i] = LLVMBuildExtractValue(l->builder, result, (unsigned)i, "");
}

// Whether this lane's element at k + i of the step lies before the end of K; NULL: every lane's does.
static LLVMValueRef before_k(tl_lower *l, const tl_mma_gemm *mma, int32_t end, int32_t k) {
  if (k + 3 * mma->pack < end) return NULL;
  LLVMValueRef lane = entry_bits(l, l->lane, 0, 3, mma->pack);
  return LLVMBuildICmp(l->entry, LLVMIntSLT, lane, tl_session_i32(l->session, end - k), "");
}

LLVMValueRef tl_lower_pack_operand(tl_lower *l, LLVMValueRef const *items, int32_t pack) {
  LLVMTypeRef type = LLVMTypeOf(items[0]);
  if (pack == 1)
    return type == l->session->f64 ? items[0] : LLVMBuildBitCast(l->builder, items[0], l->session->i32, "");
  if (pack == 2) return LLVMBuildBitCast(l->builder, tl_lower_pair(l, items[0], items[1]), l->session->i32, "");
  LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(type, (unsigned)pack));
  for (int32_t i = 0; i < pack; i++)
    vector = LLVMBuildInsertElement(l->builder, vector, items[i], tl_session_i32(l->session, i), "");
  return LLVMBuildBitCast(l->builder, vector, l->session->i32, "");
}

// One operand register read without ldmatrix: elements k + pack * t … of row `outer` + g.
static LLVMValueRef load_register(tl_lower *l, const tl_mma_gemm *mma, tl_mma_fragment *fragment, int32_t outer,
                                  int32_t k) {
  const tl_buffer *buffer = fragment->elements.buffer;
  int32_t word = tl_dtype_bits(fragment->dtype) * mma->pack / 8;
  bool whole = k + 4 * mma->pack <= fragment->k;
  bool in_words = !fragment->k_rows && fragment->whole_words && buffer->shared.pitch_bytes % word == 0;
  if (whole && (mma->pack == 1 || in_words)) {
    LLVMValueRef pointer = box_pointer(l, fragment, &fragment->elements, outer, k, fragment->last);
    LLVMTypeRef type = word == 8 ? l->session->f64 : l->session->i32;
    return LLVMBuildLoad2(l->builder, type, pointer, "");
  }
  LLVMValueRef items[MAX_PACK];
  LLVMTypeRef type = tl_session_memory_type(l->session, fragment->dtype);
  for (int32_t i = 0; i < mma->pack; i++) {
    tl_mem_access at = fragment->elements;
    LLVMValueRef inside = before_k(l, mma, fragment->k, k + i);
    if (inside) {
      LLVMValueRef index = LLVMBuildNUWAdd(l->builder, at.var[fragment->inner], tl_session_i32(l->session, k + i), "");
      LLVMValueRef most = sum_of(l, tl_session_i32(l->session, fragment->k - 1), fragment->moved_inner);
      at.var[fragment->inner] = tl_lower_intrinsic2(l, "llvm.umin", index, most);
      at.fixed = true;
    }
    LLVMValueRef pointer = box_pointer(l, fragment, &at, outer, inside ? 0 : k + i, fragment->last);
    items[i] = LLVMBuildLoad2(l->builder, type, pointer, "");
    if (inside) items[i] = LLVMBuildSelect(l->builder, inside, items[i], LLVMConstNull(type), "");
  }
  return tl_lower_pack_operand(l, items, mma->pack);
}

// One register of A out of the tile's own registers.
static LLVMValueRef tile_register(tl_lower *l, tl_mma_gemm *mma, int32_t row, int32_t k) {
  LLVMValueRef items[MAX_PACK];
  for (int32_t i = 0; i < mma->pack; i++) {
    int32_t coord[] = {row, k + i};
    int32_t reg = tl_lower_tile_register(mma->a_tile->type->layout, coord);
    LLVMTypeRef type = tl_session_type(l->session, mma->inst->a);
    // Padding of the layout past K may hold anything.
    if (reg < 0) {
      items[i] = LLVMConstNull(type);
      continue;
    }
    items[i] = tl_lower_get(l, mma->a_tile, reg);
    LLVMValueRef inside = before_k(l, mma, mma->k, k + i);
    if (inside) items[i] = LLVMBuildSelect(l->builder, inside, items[i], LLVMConstNull(type), "");
  }
  return tl_lower_pack_operand(l, items, mma->pack);
}

// Where a step lies in the lanes' runs: the first element of the four lanes' runs, and the offset within each run.
static int32_t run_start(const tl_mma_gemm *mma, const tl_mma_step *step) {
  return step->k / (4 * mma->run) * (4 * mma->run);
}
static int32_t run_offset(const tl_mma_gemm *mma, const tl_mma_step *step) {
  return step->k % (4 * mma->run) / 4;
}

// The gemm's A for one column of tiles: two steps are 16 bytes of a lane's run of a row.
static void load_run(tl_lower *l, tl_mma_gemm *mma, int32_t tile, const tl_mma_step *step, LLVMValueRef *out) {
  int32_t word = run_offset(mma, step) / mma->pack;
  if (word % 4 == 0) {
    int32_t k = run_start(mma, step) + run_offset(mma, step);
    LLVMValueRef pointer = box_pointer(l, &mma->b, &mma->b.elements, tile * 8, k, mma->b.last);
    mma->chunks[tile] = LLVMBuildLoad2(l->builder, LLVMVectorType(l->session->i32, 4), pointer, "");
    LLVMSetAlignment(mma->chunks[tile], 16);
  }
  for (int32_t w = 0; w < step->words; w++)
    out[w] = LLVMBuildExtractElement(l->builder, mma->chunks[tile], tl_session_i32(l->session, word % 4 + w), "");
}

// One register of the gemm's B, column `column`, from element `k` on.
static LLVMValueRef run_register(tl_lower *l, tl_mma_gemm *mma, int32_t column, int32_t k) {
  LLVMValueRef items[MAX_PACK];
  for (int32_t i = 0; i < mma->pack; i++) {
    bool k_last = tl_op_has(mma->op, TL_ATTR_TRANS_B);
    int32_t coord[] = {k_last ? column : k + i, k_last ? k + i : column};
    items[i] = tl_lower_get(l, mma->b_tile, tl_lower_tile_register(mma->b_tile->type->layout, coord));
  }
  return tl_lower_pack_operand(l, items, mma->pack);
}

// A's registers of one row of tiles for a step.
static void load_a(tl_lower *l, tl_mma_gemm *mma, int32_t tile, const tl_mma_step *step, LLVMValueRef *out) {
  int32_t halves = mma->inst->m / 8, outer = tile * mma->inst->m, count = step->words * halves;
  for (int32_t r = 0; mma->b_tile && r < count; r++) {
    int32_t k = run_start(mma, step) + run_offset(mma, step) + r / halves * mma->pack;
    out[r] = run_register(l, mma, outer + r % halves * 8, k);
  }
  if (mma->b_tile) return;
  if (!mma->a_tile && mma->a.uses_ldmatrix && step->whole) {
    load_matrices(l, &mma->a, outer, step->k, count, out);
    return;
  }
  for (int32_t r = 0; r < count; r++) {
    int32_t row = outer + r % halves * 8, k = step->k + r / halves * 4 * mma->pack;
    out[r] = mma->a_tile ? tile_register(l, mma, row, k) : load_register(l, mma, &mma->a, row, k);
  }
}

// B's registers of all column tiles for a step, from register `first` on.
static void load_b(tl_lower *l, tl_mma_gemm *mma, const tl_mma_step *step, int32_t first, LLVMValueRef (*out)[MAX_B]) {
  for (int32_t n = 0; n < mma->tiles_n; n++) {
    LLVMValueRef parts[4];
    if (mma->b_tile) {
      load_run(l, mma, n, step, out[n] + first);
      continue;
    }
    if (!mma->b.uses_ldmatrix || !step->whole) {
      for (int32_t r = 0; r < step->words; r++)
        out[n][first + r] = load_register(l, mma, &mma->b, n * 8, step->k + r * 4 * mma->pack);
      continue;
    }
    bool both = step->words == 2 && n + 1 < mma->tiles_n;
    load_matrices(l, &mma->b, n * 8, step->k, both ? 4 : step->words, parts);
    for (int32_t r = 0; r < step->words; r++) out[n][first + r] = parts[r];
    if (both) out[n + 1][first] = parts[2], out[n + 1][first + 1] = parts[3], n++;
  }
}

// ---- the instruction

// The device op of every instruction, and of its short form.
static const struct {
  tl_device_op_id full, half;
} device_ops[TL_MMA_INST_COUNT] = {
    [TL_MMA_INST_F16] = {TL_DEVOP_MMA_M16N8K16_F16, TL_DEVOP_MMA_M16N8K8_F16},
    [TL_MMA_INST_F16_ACC_F16] = {TL_DEVOP_MMA_M16N8K16_F16_F16, TL_DEVOP_MMA_M16N8K8_F16_F16},
    [TL_MMA_INST_BF16] = {TL_DEVOP_MMA_M16N8K16_BF16, TL_DEVOP_MMA_M16N8K8_BF16},
    [TL_MMA_INST_TF32] = {TL_DEVOP_MMA_M16N8K8_TF32, TL_DEVOP_MMA_M16N8K4_TF32},
    [TL_MMA_INST_I8] = {TL_DEVOP_MMA_M16N8K32_S8, TL_DEVOP_MMA_M16N8K16_S8},
    [TL_MMA_INST_I8_U8] = {TL_DEVOP_MMA_M16N8K32_S8_U8, TL_DEVOP_MMA_M16N8K16_S8_U8},
    [TL_MMA_INST_U8_I8] = {TL_DEVOP_MMA_M16N8K32_U8_S8, TL_DEVOP_MMA_M16N8K16_U8_S8},
    [TL_MMA_INST_U8] = {TL_DEVOP_MMA_M16N8K32_U8, TL_DEVOP_MMA_M16N8K16_U8},
    [TL_MMA_INST_I4] = {TL_DEVOP_MMA_M16N8K64_S4, TL_DEVOP_MMA_M16N8K32_S4},
    [TL_MMA_INST_I4_U4] = {TL_DEVOP_MMA_M16N8K64_S4_U4, TL_DEVOP_MMA_M16N8K32_S4_U4},
    [TL_MMA_INST_U4_I4] = {TL_DEVOP_MMA_M16N8K64_U4_S4, TL_DEVOP_MMA_M16N8K32_U4_S4},
    [TL_MMA_INST_U4] = {TL_DEVOP_MMA_M16N8K64_U4, TL_DEVOP_MMA_M16N8K32_U4},
    [TL_MMA_INST_E4M3] = {TL_DEVOP_MMA_M16N8K32_E4M3, TL_DEVOP_COUNT},
    [TL_MMA_INST_E4M3_E5M2] = {TL_DEVOP_MMA_M16N8K32_E4M3_E5M2, TL_DEVOP_COUNT},
    [TL_MMA_INST_E5M2_E4M3] = {TL_DEVOP_MMA_M16N8K32_E5M2_E4M3, TL_DEVOP_COUNT},
    [TL_MMA_INST_E5M2] = {TL_DEVOP_MMA_M16N8K32_E5M2, TL_DEVOP_COUNT},
    [TL_MMA_INST_F64] = {TL_DEVOP_MMA_M8N8K4_F64, TL_DEVOP_COUNT},
};

// Operands as the device op wants them: pairs of half for f16, else as they are.
static LLVMValueRef operand(tl_lower *l, const tl_mma_gemm *mma, LLVMValueRef bits) {
  return mma->inst->a == TL_DTYPE_F16 ? LLVMBuildBitCast(l->builder, bits, l->session->v2f16, "") : bits;
}

// `meta`: of a sparse A, else NULL.
static void multiply(tl_lower *l, tl_mma_gemm *mma, const tl_mma_step *step, LLVMValueRef const *a,
                     LLVMValueRef const *b, LLVMValueRef meta, const int32_t *registers) {
  LLVMValueRef args[16];
  unsigned n = 0;
  int32_t results = mma->inst->m / 4;
  bool pairs = mma->inst->acc == TL_DTYPE_F16;
  for (int i = 0; i < step->words * (mma->inst->m / 8); i++) args[n++] = operand(l, mma, a[i]);
  for (int i = 0; i < step->words * (meta ? 2 : 1); i++) args[n++] = operand(l, mma, b[i]);
  for (int i = 0; i < results; i += pairs ? 2 : 1)
    args[n++] = pairs ? tl_lower_pair(l, mma->acc[registers[i]], mma->acc[registers[i + 1]]) : mma->acc[registers[i]];
  tl_device_op_id id = step->half ? device_ops[mma->inst->id].half : device_ops[mma->inst->id].full;
  if (meta) {
    id = tl_lower_sparse_op(mma->inst);
    args[n++] = meta;
    args[n++] = tl_session_i32(l->session, 0);
  }
  LLVMValueRef result = tl_session_call_device(l->session, l->builder, id, args, n);
  for (int i = 0; i < results; i++) {
    LLVMValueRef item = LLVMBuildExtractValue(l->builder, result, (unsigned)(pairs ? i / 2 : i), "");
    if (pairs) item = LLVMBuildExtractElement(l->builder, item, tl_session_i32(l->session, i % 2), "");
    mma->acc[registers[i]] = item;
  }
}

// Finds the accumulator registers of every tile of a warp and checks that lanes hold what the instruction gives them.
static bool map_accumulator(tl_lower *l, tl_mma_gemm *mma, const tl_layout *layout) {
  int32_t row = mma->row_dim, column = mma->column_dim;
  for (int32_t lane = 0; lane < 32; lane++) {
    int32_t at[TL_MAX_DIMS];
    tl_layout_axis_coord(layout, TL_AXIS_LANE, lane, at);
    if (at[row] != lane / 4 || at[column] != lane % 4 * 2) return false;
  }
  int32_t registers = tl_layout_num_registers(layout), m = mma->inst->m, each = m / 4;
  for (int32_t r = 0; r < registers; r++) {
    int32_t at[TL_MAX_DIMS];
    tl_layout_axis_coord(layout, TL_AXIS_REGISTER, r, at);
    if (at[row] / m + 1 > mma->tiles_m) mma->tiles_m = at[row] / m + 1;
    if (at[column] / 8 + 1 > mma->tiles_n) mma->tiles_n = at[column] / 8 + 1;
  }
  if (mma->tiles_m * mma->tiles_n * each != registers) return false;
  mma->num_registers = registers;
  mma->registers = TL_NEW_ARRAY(&l->arena, int32_t, registers);
  for (int32_t tm = 0; tm < mma->tiles_m; tm++)
    for (int32_t tn = 0; tn < mma->tiles_n; tn++)
      for (int32_t i = 0; i < each; i++) {
        int32_t coord[TL_MAX_DIMS] = {0};
        coord[row] = tm * m + i / 2 * 8;
        coord[column] = tn * 8 + i % 2;
        int32_t reg = tl_lower_tile_register(layout, coord);
        if (reg < 0) return false;
        mma->registers[(tm * mma->tiles_n + tn) * each + i] = reg;
      }
  return true;
}

// The step at k: a rest that the short form covers takes that one.
static tl_mma_step step_at(const tl_mma_gemm *mma, int32_t k) {
  int32_t rest = mma->k - k;
  tl_mma_step step = {.k = k, .half = mma->inst->half_k > 0 && rest <= mma->inst->half_k};
  int32_t covers = step.half ? mma->inst->half_k : mma->inst->k;
  step.whole = rest >= covers;
  step.words = covers / (4 * mma->pack);
  return step;
}

// Rows of tiles [from, to) over k in [k_from, k_to).
static void run_steps(tl_lower *l, tl_mma_gemm *mma, int32_t from, int32_t to, int32_t k_from, int32_t k_to) {
  int32_t each = mma->inst->m / 4;
  LLVMValueRef(*a)[4] = tl_arena_alloc(&l->arena, sizeof(*a) * (size_t)mma->tiles_m, _Alignof(LLVMValueRef));
  LLVMValueRef(*b)[MAX_B] = tl_arena_alloc(&l->arena, sizeof(*b) * (size_t)mma->tiles_n, _Alignof(LLVMValueRef));
  LLVMValueRef *meta = TL_NEW_ARRAY(&l->arena, LLVMValueRef, mma->tiles_m);
  for (int32_t k = k_from; k < k_to; k += mma->inst->k) {
    tl_mma_step step = step_at(mma, k);
    for (int32_t tm = from; tm < to; tm++) load_a(l, mma, tm, &step, a[tm]);
    for (int32_t tm = from; mma->is_sparse && tm < to; tm++) meta[tm] = tl_lower_load_meta(l, mma, tm, &step);
    // Beside a sparse A the step is twice as long in B.
    for (int32_t half = 0; half < (mma->is_sparse ? 2 : 1); half++) {
      tl_mma_step in_b = step;
      if (mma->is_sparse) in_b.k = 2 * k + half * mma->inst->k;
      load_b(l, mma, &in_b, half * step.words, b);
    }
    for (int32_t tm = from; tm < to; tm++)
      for (int32_t tn = 0; tn < mma->tiles_n; tn++)
        multiply(l, mma, &step, a[tm], b[tn], meta[tm], &mma->registers[(tm * mma->tiles_n + tn) * each]);
  }
}

// Tensor cores add products of 8-bit floats with fewer bits than f32 has: partial sums of at most TL_PROMOTED_K
// products, added up in f32. One row of tiles at a time, so that few partial sums are alive.
static void run_promoted(tl_lower *l, tl_mma_gemm *mma) {
  int32_t row = mma->num_registers / mma->tiles_m;
  LLVMValueRef *sums = TL_NEW_ARRAY(&l->arena, LLVMValueRef, row);
  for (int32_t k = 0; k < mma->k; k += TL_PROMOTED_K)
    for (int32_t tm = 0; tm < mma->tiles_m; tm++) {
      const int32_t *registers = &mma->registers[tm * row];
      for (int32_t i = 0; i < row; i++) {
        sums[i] = mma->acc[registers[i]];
        mma->acc[registers[i]] = tl_lower_zero(l, mma->inst->acc);
      }
      run_steps(l, mma, tm, tm + 1, k, k + TL_PROMOTED_K < mma->k ? k + TL_PROMOTED_K : mma->k);
      for (int32_t i = 0; i < row; i++) {
        if (LLVMIsConstant(sums[i]) && LLVMIsNull(sums[i])) continue;
        mma->acc[registers[i]] = LLVMBuildFAdd(l->builder, sums[i], mma->acc[registers[i]], "");
      }
    }
}

// Where the operands are; see tl_mma_gemm.
static void init_operands(tl_lower *l, tl_mma_gemm *mma, tl_value *a, tl_value *b) {
  bool trans_a = tl_op_has(mma->op, TL_ATTR_TRANS_A), trans_b = tl_op_has(mma->op, TL_ATTR_TRANS_B);
  if (mma->b_tile) {
    mma->run = (int32_t)tl_op_int(mma->op, TL_ATTR_B_RUN, 0);
    mma->chunks = TL_NEW_ARRAY(&l->arena, LLVMValueRef, mma->tiles_n);
    init_fragment(l, mma, &mma->b, a, trans_a);
    return;
  }
  if (a->type->kind == TL_TYPE_TILE)
    mma->a_tile = a;
  else
    init_fragment(l, mma, &mma->a, a, trans_a);
  init_fragment(l, mma, &mma->b, b, !trans_b);
  tl_value *meta = tl_op_arg(mma->op, TL_GROUP_GEMM_meta);
  const tl_layout *layout = tl_op_arg(mma->op, TL_GROUP_GEMM_acc)->type->layout;
  if (meta) tl_lower_init_meta(l, mma, meta, warp_offset(l, layout, mma->row_dim));
}

static void mma_gemm(tl_lower *l, tl_op *op) {
  tl_value *acc = tl_op_arg(op, TL_GROUP_GEMM_acc), *a = tl_op_arg(op, TL_GROUP_GEMM_a),
           *b = tl_op_arg(op, TL_GROUP_GEMM_b);
  const tl_layout *layout = acc->type->layout;
  tl_mma_gemm *mma = TL_NEW(&l->arena, tl_mma_gemm);
  mma->op = op;
  bool swapped = b->type->kind == TL_TYPE_TILE;
  int32_t rank = acc->type->rank;
  mma->b_tile = swapped ? b : NULL;
  mma->row_dim = swapped ? rank - 1 : rank - 2;
  mma->column_dim = swapped ? rank - 2 : rank - 1;
  mma->inst = tl_instruction_mma(tl_op_instruction(op));
  if (!mma->inst || mma->inst->min_sm > l->session->target->sm) {
    tl_lower_internal(l, op, "no mma.sync for these dtypes on this target");
    return;
  }
  mma->pack = tl_instruction_pack(tl_op_instruction(op));
  mma->is_sparse = tl_op_arg(op, TL_GROUP_GEMM_meta) != NULL;
  mma->k = (int32_t)a->type->dims[a->type->rank - (tl_op_has(op, TL_ATTR_TRANS_A) ? 2 : 1)];
  if (layout && rank == 3) {  // the first dim counts the warps along K
    mma->k /= (int32_t)acc->type->dims[0];
    mma->first_k = LLVMBuildNUWMul(l->entry, warp_offset(l, layout, 0), tl_session_i32(l->session, mma->k), "");
  }
  if (!layout || !map_accumulator(l, mma, layout)) {
    tl_lower_internal(l, op, "the accumulator's layout is not that of the instruction");
    return;
  }
  init_operands(l, mma, a, b);
  if (tl_lower_failed(l)) return;
  mma->acc = TL_NEW_ARRAY(&l->arena, LLVMValueRef, mma->num_registers);
  bool clears = tl_op_has(op, TL_ATTR_CLEAR);
  for (int32_t r = 0; r < mma->num_registers; r++)
    mma->acc[r] = clears ? tl_lower_zero(l, mma->inst->acc) : tl_lower_get(l, acc, r);
  if (tl_gemm_is_promoted(op))
    run_promoted(l, mma);
  else
    run_steps(l, mma, 0, mma->tiles_m, 0, mma->k);
  tl_lower_set(l, tl_op_result(op, 0), mma->acc, mma->num_registers);
}

void tl_lower_op_GEMM(tl_lower *l, tl_op *op) {
  const tl_instruction *inst = tl_op_instruction(op);
  switch (inst ? inst->family : TL_FAMILY_NONE) {
    case TL_FAMILY_MMA:
      mma_gemm(l, op);
      return;
    case TL_FAMILY_FMA:
      tl_lower_fma_gemm(l, op);
      return;
    case TL_FAMILY_WGMMA:
      tl_lower_wgmma_gemm(l, op);
      return;
    case TL_FAMILY_NONE:
    case TL_FAMILY_COUNT:
      break;
  }
  tl_lower_internal(l, op, "no instruction was chosen");
}
