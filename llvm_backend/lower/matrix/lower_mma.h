// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the lowering of gemm to mma.sync keeps for one gemm, and what it shares with those to wgmma and to fma.
#ifndef TL_LLVM_BACKEND_LOWER_MMA_H
#define TL_LLVM_BACKEND_LOWER_MMA_H

#include "ir/layout/instruction.h"
#include "llvm_backend/lower/state/lower.h"

// An operand in shared memory.
typedef struct tl_mma_fragment {
  tl_mem_access access;    // this lane's row of an ldmatrix
  tl_mem_access elements;  // this lane's elements of register 0
  tl_dtype dtype;
  bool k_rows;  // the rows of the shared tile run along M or N
  bool uses_ldmatrix;
  bool whole_words;  // a register's elements along a row are one aligned word
  int32_t outer;     // buffer dim of M or N
  int32_t inner;     // buffer dim of K
  int32_t last;      // largest index along M or N
  bool overhangs;    // warps reach past the tile
  int32_t k;         // of the operand; a warp\'s share where warps share K out
  // Where the operand begins in its buffer along both dims; what is not known is in the accesses already.
  int64_t first_outer, first_inner;
  LLVMValueRef moved_outer, moved_inner;  // i32; NULL: 0
} tl_mma_fragment;

// One instruction's part of K.
typedef struct tl_mma_step {
  int32_t k;
  bool half;      // the short form
  bool whole;     // K has all of its elements
  int32_t words;  // registers of B; A has as many for each 8 rows
} tl_mma_step;

typedef struct tl_mma_gemm {
  tl_op *op;
  // What follows is seen from the instruction. With the gemm's B in registers (b_tile) its A is that, its rows are the
  // gemm's columns, and its B is the gemm's A: see ir/layout/instruction.h.
  const tl_mma_inst *inst;
  int32_t pack;     // elements of one operand register
  int32_t k;        // of A as it is there; a warp's share where warps share K out
  int32_t row_dim;  // dim of the accumulator along the instruction's rows, and along its columns
  int32_t column_dim;
  LLVMValueRef first_k;      // of this warp's share; NULL: 0
  int32_t tiles_m, tiles_n;  // of a warp
  tl_mma_fragment a, b;
  // A sparse A has half of the K of B, and metadata (lower_mma_sparse.c).
  bool is_sparse;
  tl_mem_access meta;  // this lane's first number
  int32_t meta_dims[2];
  int64_t meta_first[2];    // where it begins in its buffer
  LLVMValueRef meta_moved;  // along its rows, i32; NULL: 0
  int32_t meta_last;        // row
  tl_value *a_tile;         // A in registers; NULL: in shared memory
  tl_value *b_tile;         // the gemm's B in registers, in runs along K; NULL: in shared memory
  int32_t run;              // elements of a run
  LLVMValueRef *chunks;     // with b_tile, for each column of tiles: 16 bytes of this lane's run of the gemm's A
  int32_t *registers;       // [tile_m][tile_n][m / 4]: accumulator register of each result
  int32_t num_registers;
  LLVMValueRef *acc;
} tl_mma_gemm;

// lower_mma_sparse.c
void tl_lower_init_meta(tl_lower *l, tl_mma_gemm *mma, tl_value *meta, LLVMValueRef warp_row);
// The metadata of one row of tiles for the step, as lanes 0 and 1 of each four (of bytes all of them) give it.
LLVMValueRef tl_lower_load_meta(tl_lower *l, tl_mma_gemm *mma, int32_t tile, const tl_mma_step *step);
// The instruction that takes a sparse A; TL_DEVOP_COUNT: there is none.
tl_device_op_id tl_lower_sparse_op(const tl_mma_inst *inst);

// `pack` elements as one operand register: i32, or the f64 itself.
LLVMValueRef tl_lower_pack_operand(tl_lower *l, LLVMValueRef const *items, int32_t pack);

void tl_lower_fma_gemm(tl_lower *l, tl_op *op);
void tl_lower_wgmma_gemm(tl_lower *l, tl_op *op);
// Registers of a flight: those of wgmma's D, in which two f16 share one.
int32_t tl_lower_flight_len(const tl_type *flight);

#endif
