// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The metadata of products with a sparse A. The tile has a number of 16 bits for each 16 elements of a row: two bits
// for each element that is there, in their order. A register of mma.sp holds two such numbers (PTX ISA, "Sparse matrix
// storage"): of 16-bit elements those of rows g and g + 8, given by lanes 0 and 1 of each four; of bytes two neighbours
// of one row, g for even lanes and g + 8 for odd ones.
#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/matrix/lower_mma.h"

enum { ELEMENTS = 16 };  // of K for which a number tells

static LLVMValueRef bits_of_lane(tl_lower *l, int32_t shift, int32_t mask, int32_t scale) {
  tl_session *s = l->session;
  LLVMValueRef bits = LLVMBuildLShr(l->entry, l->lane, tl_session_i32(s, shift), "");
  bits = LLVMBuildAnd(l->entry, bits, tl_session_i32(s, mask), "");
  return scale == 1 ? bits : LLVMBuildNUWMul(l->entry, bits, tl_session_i32(s, scale), "");
}

static bool is_bytes(const tl_mma_gemm *mma) {
  return mma->pack == 4;
}

static LLVMValueRef sum_of(tl_lower *l, LLVMValueRef a, LLVMValueRef b) {
  return b ? LLVMBuildNUWAdd(l->builder, a, b, "") : a;
}

void tl_lower_init_meta(tl_lower *l, tl_mma_gemm *mma, tl_value *meta, LLVMValueRef warp_row) {
  tl_lower_matrix matrix;
  if (!tl_lower_matrix_of(l, meta, &matrix)) {
    tl_lower_internal(l, mma->op, "the metadata is no tile of 2 dims");
    return;
  }
  tl_lower_access_init(l, &mma->meta, mma->op, matrix.buffer);
  for (int32_t d = 0; d < matrix.buffer->rank; d++) {
    mma->meta.var[d] = matrix.moving[d];
    mma->meta.constant[d] = matrix.fixed[d];
  }
  for (int32_t i = 0; i < 2; i++) {
    mma->meta_dims[i] = matrix.dims[i];
    mma->meta_first[i] = matrix.fixed[matrix.dims[i]];
  }
  mma->meta_moved = matrix.moving[matrix.dims[0]];
  mma->meta_last = (int32_t)meta->type->dims[0] - 1;
  LLVMValueRef row = LLVMBuildNUWAdd(l->entry, bits_of_lane(l, 2, 7, 1), warp_row, "");
  if (is_bytes(mma)) row = LLVMBuildNUWAdd(l->entry, row, bits_of_lane(l, 0, 1, 8), "");
  LLVMValueRef column = is_bytes(mma) ? bits_of_lane(l, 1, 1, 2) : bits_of_lane(l, 0, 1, 1);
  mma->meta.var[matrix.dims[0]] = sum_of(l, row, mma->meta_moved);
  mma->meta.var[matrix.dims[1]] = sum_of(l, column, matrix.moving[matrix.dims[1]]);
}

// The number at (row, column) from this lane's first, as i32. Rows past the tile feed padding only, but must be the
// tile's.
static LLVMValueRef load_number(tl_lower *l, tl_mma_gemm *mma, int32_t row, int32_t column) {
  tl_mem_access at = mma->meta;
  int32_t rows = mma->meta_dims[0];
  LLVMValueRef index = LLVMBuildNUWAdd(l->builder, at.var[rows], tl_session_i32(l->session, row), "");
  LLVMValueRef most = sum_of(l, tl_session_i32(l->session, mma->meta_last), mma->meta_moved);
  at.fixed = true;
  at.var[rows] = tl_lower_intrinsic2(l, "llvm.umin", index, most);
  at.constant[rows] = mma->meta_first[0];
  at.constant[mma->meta_dims[1]] = mma->meta_first[1] + column;
  LLVMValueRef pointer = tl_lower_access_pointer(l, &at, NULL);
  LLVMValueRef number = LLVMBuildLoad2(l->builder, l->session->i16, pointer, "");
  return LLVMBuildZExt(l->builder, number, l->session->i32, "");
}

LLVMValueRef tl_lower_load_meta(tl_lower *l, tl_mma_gemm *mma, int32_t tile, const tl_mma_step *step) {
  int32_t row = tile * mma->inst->m, column = 2 * step->k / ELEMENTS;
  LLVMValueRef low = load_number(l, mma, row, column);
  LLVMValueRef high = is_bytes(mma) ? load_number(l, mma, row, column + 1) : load_number(l, mma, row + 8, column);
  high = LLVMBuildShl(l->builder, high, tl_session_i32(l->session, 16), "");
  return LLVMBuildOr(l->builder, low, high, "");
}

tl_device_op_id tl_lower_sparse_op(const tl_mma_inst *inst) {
  switch (inst->id) {
    case TL_MMA_INST_F16:
      return TL_DEVOP_MMA_SP_M16N8K32_F16;
    case TL_MMA_INST_F16_ACC_F16:
      return TL_DEVOP_MMA_SP_M16N8K32_F16_F16;
    case TL_MMA_INST_BF16:
      return TL_DEVOP_MMA_SP_M16N8K32_BF16;
    case TL_MMA_INST_I8:
      return TL_DEVOP_MMA_SP_M16N8K64_S8;
    case TL_MMA_INST_I8_U8:
      return TL_DEVOP_MMA_SP_M16N8K64_S8_U8;
    case TL_MMA_INST_U8_I8:
      return TL_DEVOP_MMA_SP_M16N8K64_U8_S8;
    case TL_MMA_INST_U8:
      return TL_DEVOP_MMA_SP_M16N8K64_U8;
    default:
      return TL_DEVOP_COUNT;
  }
}
