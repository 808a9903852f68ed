// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gemm with fused multiply-adds: every thread multiplies a small outer product out of registers for each k; operands
// come from shared memory in vectors. Works with any accumulator layout.
#include <string.h>

#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/matrix/lower_mma.h"
#include "llvm_backend/lower/state/lower.h"
#include "llvm_backend/lower/value/lower_arith.h"

// A thread holds at most as many accumulators as registers.
#define TL_MAX_SIDE TL_MAX_REGISTERS_PER_THREAD

// One operand: the coordinates along M or N that a thread's registers need.
typedef struct tl_fma_operand {
  tl_mem_access access;
  int32_t outer, inner;                   // buffer dims of M or N, and of K
  bool along_k;                           // the columns run along K
  int64_t first_outer, first_inner;       // where the operand begins in the buffer: known,
  LLVMValueRef moved_outer, moved_inner;  // and not (i32; NULL: 0)
  int32_t offsets[TL_MAX_SIDE];           // register parts of the coordinates, ascending
  int32_t count;
  int32_t vec;   // elements of one read: along K when inner is the last dim, else along M or N
  int32_t last;  // largest index along M or N
  bool overhangs;
} tl_fma_operand;

typedef struct tl_fma {
  tl_op *op;
  tl_dtype acc_dtype;
  int32_t k, chunk;
  tl_fma_operand a, b;
  LLVMValueRef *acc;
  int32_t registers;
} tl_fma;

static bool add_offset(tl_fma_operand *operand, int32_t offset) {
  int32_t i = 0;
  while (i < operand->count && operand->offsets[i] < offset) i++;
  if (i < operand->count && operand->offsets[i] == offset) return true;
  if (operand->count == TL_MAX_SIDE) return false;
  memmove(&operand->offsets[i + 1], &operand->offsets[i], sizeof(int32_t) * (size_t)(operand->count - i));
  operand->offsets[i] = offset;
  operand->count++;
  return true;
}

// Whether all reads of `vec` elements along M or N are aligned: registers in whole runs, threads at multiples.
static bool runs_of(const tl_fma_operand *operand, const tl_layout *layout, int32_t dim, int32_t vec) {
  for (int32_t m = 0; m < layout->num_modes; m++)
    if (layout->modes[m].axis != TL_AXIS_REGISTER && layout->modes[m].dim == dim && layout->modes[m].stride % vec != 0)
      return false;
  if (operand->count % vec != 0) return false;
  for (int32_t i = 0; i < operand->count; i++)
    if (operand->offsets[i] % vec != i % vec || operand->offsets[i] != operand->offsets[i / vec * vec] + i % vec)
      return false;
  return true;
}

static LLVMValueRef sum_of(tl_lower *l, LLVMValueRef a, LLVMValueRef b) {
  return a && b ? LLVMBuildNUWAdd(l->builder, a, b, "") : a ? a : b;
}

static bool init_operand(tl_lower *l, tl_fma *fma, tl_fma_operand *operand, tl_value *tile, const tl_place *place,
                         int32_t dim, bool k_rows) {
  tl_lower_matrix matrix;
  if (!tl_lower_matrix_of(l, tile, &matrix) || tl_dtype_bits(matrix.buffer->dtype) < 8) {
    tl_lower_unsupported(l, fma->op, "the FMA gemm reads its operands from 2-D shared tiles; one of them is not");
    return false;
  }
  const tl_buffer *buffer = matrix.buffer;
  tl_lower_access_init(l, &operand->access, fma->op, buffer);
  operand->along_k = !k_rows;
  operand->outer = matrix.dims[k_rows ? 1 : 0];
  operand->inner = matrix.dims[k_rows ? 0 : 1];
  operand->first_outer = matrix.fixed[operand->outer];
  operand->first_inner = matrix.fixed[operand->inner];
  operand->moved_outer = matrix.moving[operand->outer];
  operand->moved_inner = matrix.moving[operand->inner];
  for (int32_t d = 0; d < buffer->rank; d++) {
    operand->access.var[d] = matrix.moving[d];
    operand->access.constant[d] = matrix.fixed[d];
  }
  operand->access.var[operand->outer] = sum_of(l, place->thread[dim], operand->moved_outer);
  for (int32_t r = 0; r < fma->registers; r++) {
    int32_t at[TL_MAX_DIMS];
    tl_layout_axis_coord(place->layout, TL_AXIS_REGISTER, r, at);
    if (!add_offset(operand, at[dim])) return false;
  }
  int32_t size = (int32_t)tile->type->dims[k_rows ? 1 : 0];
  operand->last = size - 1;
  operand->overhangs = place->thread_max[dim] + operand->offsets[operand->count - 1] >= size;
  int32_t bytes = tl_dtype_bits(buffer->dtype) / 8, most = k_rows ? 16 / bytes : fma->chunk;
  operand->vec = 1;
  for (int32_t vec = 2; vec <= most; vec *= 2) {
    if (vec * bytes > 16 || buffer->shared.pitch_bytes % (vec * bytes) != 0 || matrix.column_divisor % vec != 0) break;
    if (k_rows && (operand->overhangs || !runs_of(operand, place->layout, dim, vec))) break;
    operand->vec = vec;
  }
  return true;
}

// Reads the operand's values for k + 0 … chunk - 1: out[i * chunk + kk] for offsets[i].
static void load_operand(tl_lower *l, tl_fma *fma, tl_fma_operand *operand, LLVMValueRef k, LLVMValueRef *out) {
  tl_dtype dtype = operand->access.buffer->dtype;
  bool along_k = operand->along_k;
  int32_t outer_step = along_k ? 1 : operand->vec, inner_step = along_k ? operand->vec : 1;
  int32_t bytes = operand->vec * tl_dtype_bits(dtype) / 8;
  tl_mem_access access = operand->access;
  access.var[operand->inner] = sum_of(l, k, operand->moved_inner);
  for (int32_t i = 0; i < operand->count; i += outer_step) {
    tl_mem_access at = access;
    tl_mem_access *use = &access;
    access.constant[operand->outer] = operand->first_outer + operand->offsets[i];
    if (operand->overhangs) {
      LLVMValueRef index =
          LLVMBuildNUWAdd(l->builder, access.var[operand->outer], tl_session_i32(l->session, operand->offsets[i]), "");
      LLVMValueRef most = sum_of(l, tl_session_i32(l->session, operand->last), operand->moved_outer);
      at.var[operand->outer] = tl_lower_intrinsic2(l, "llvm.umin", index, most);
      at.constant[operand->outer] = operand->first_outer;
      at.fixed = true;
      use = &at;
    }
    for (int32_t kk = 0; kk < fma->chunk; kk += inner_step) {
      use->constant[operand->inner] = operand->first_inner + kk;
      LLVMValueRef pointer = tl_lower_access_pointer(l, use, NULL), values[TL_MAX_GROUP], wide[TL_MAX_GROUP];
      LLVMValueRef raw = tl_lower_load_raw(l, use->buffer, pointer, bytes, bytes, NULL, TL_EVICT_NORMAL);
      tl_lower_unpack(l, raw, dtype, operand->vec, values);
      tl_lower_convert(l, values, dtype, fma->acc_dtype, operand->vec, wide);
      for (int32_t v = 0; v < operand->vec; v++)
        out[(along_k ? i : i + v) * fma->chunk + (along_k ? kk + v : kk)] = wide[v];
    }
  }
}

static LLVMValueRef multiply_add(tl_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum) {
  if (LLVMGetTypeKind(LLVMTypeOf(sum)) != LLVMIntegerTypeKind) return tl_lower_intrinsic3(l, "llvm.fma", a, b, sum);
  return LLVMBuildAdd(l->builder, LLVMBuildMul(l->builder, a, b, ""), sum, "");
}

static void multiply_chunk(tl_lower *l, tl_fma *fma, LLVMValueRef k, const tl_layout *layout) {
  LLVMValueRef *a = TL_NEW_ARRAY(&l->arena, LLVMValueRef, fma->a.count * fma->chunk);
  LLVMValueRef *b = TL_NEW_ARRAY(&l->arena, LLVMValueRef, fma->b.count * fma->chunk);
  load_operand(l, fma, &fma->a, k, a);
  load_operand(l, fma, &fma->b, k, b);
  for (int32_t kk = 0; kk < fma->chunk; kk++)
    for (int32_t m = 0; m < fma->a.count; m++)
      for (int32_t n = 0; n < fma->b.count; n++) {
        int32_t coord[] = {fma->a.offsets[m], fma->b.offsets[n]};
        int32_t reg = tl_lower_tile_register(layout, coord);
        if (reg < 0) continue;
        fma->acc[reg] = multiply_add(l, a[m * fma->chunk + kk], b[n * fma->chunk + kk], fma->acc[reg]);
      }
}

// for (k = 0; k < K; k += chunk), the accumulators as phis.
static void run_loop(tl_lower *l, tl_fma *fma, const tl_layout *layout) {
  tl_session *s = l->session;
  LLVMBasicBlockRef from = LLVMGetInsertBlock(l->builder), body = tl_lower_new_block(l), after = tl_lower_new_block(l);
  LLVMBuildBr(l->builder, body);
  LLVMPositionBuilderAtEnd(l->builder, body);
  LLVMValueRef k = LLVMBuildPhi(l->builder, s->i32, ""), zero = tl_session_i32(s, 0);
  LLVMAddIncoming(k, &zero, &from, 1);
  LLVMValueRef *phis = TL_NEW_ARRAY(&l->arena, LLVMValueRef, fma->registers);
  for (int32_t r = 0; r < fma->registers; r++) {
    phis[r] = LLVMBuildPhi(l->builder, LLVMTypeOf(fma->acc[r]), "");
    LLVMAddIncoming(phis[r], &fma->acc[r], &from, 1);
    fma->acc[r] = phis[r];
  }
  multiply_chunk(l, fma, k, layout);
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->builder);
  for (int32_t r = 0; r < fma->registers; r++) LLVMAddIncoming(phis[r], &fma->acc[r], &latch, 1);
  LLVMValueRef next = LLVMBuildNSWAdd(l->builder, k, tl_session_i32(s, fma->chunk), "");
  LLVMAddIncoming(k, &next, &latch, 1);
  LLVMBuildCondBr(l->builder, LLVMBuildICmp(l->builder, LLVMIntSLT, next, tl_session_i32(s, fma->k), ""), body, after);
  LLVMPositionBuilderAtEnd(l->builder, after);
}

void tl_lower_fma_gemm(tl_lower *l, tl_op *op) {
  tl_value *acc = tl_op_arg(op, TL_GROUP_GEMM_acc), *a = tl_op_arg(op, TL_GROUP_GEMM_a),
           *b = tl_op_arg(op, TL_GROUP_GEMM_b);
  const tl_layout *layout = acc->type->layout;
  if (a->type->kind == TL_TYPE_TILE) {
    tl_lower_unsupported(l, op,
                         "the FMA gemm with A in a fragment tile has no lowering; copy it to a shared tile first");
    return;
  }
  if (!layout) {
    tl_lower_internal(l, op, "the accumulator has no layout");
    return;
  }
  bool trans_a = tl_op_has(op, TL_ATTR_TRANS_A), trans_b = tl_op_has(op, TL_ATTR_TRANS_B);
  tl_fma *fma = TL_NEW(&l->arena, tl_fma);
  fma->op = op;
  // f16 accumulators are added up in f32 and rounded once.
  tl_dtype dtype = acc->type->dtype;
  fma->acc_dtype = dtype == TL_DTYPE_F16 ? TL_DTYPE_F32 : dtype;
  fma->k = (int32_t)a->type->dims[trans_a ? 0 : 1];
  fma->chunk = fma->k % 4 == 0 ? 4 : fma->k % 2 == 0 ? 2 : 1;
  fma->registers = tl_layout_num_registers(layout);
  const tl_place *place = tl_lower_place(l, layout, op);
  if (!init_operand(l, fma, &fma->a, a, place, 0, trans_a) || !init_operand(l, fma, &fma->b, b, place, 1, !trans_b)) {
    tl_lower_internal(l, op, "too many accumulator rows or columns in a thread");
    return;
  }
  fma->acc = TL_NEW_ARRAY(&l->arena, LLVMValueRef, fma->registers);
  bool clears = tl_op_has(op, TL_ATTR_CLEAR);
  for (int32_t r = 0; r < fma->registers; r++)
    fma->acc[r] = clears ? tl_lower_zero(l, fma->acc_dtype) : tl_lower_get(l, acc, r);
  if (!clears) tl_lower_convert(l, fma->acc, dtype, fma->acc_dtype, fma->registers, fma->acc);
  run_loop(l, fma, layout);
  tl_lower_convert(l, fma->acc, fma->acc_dtype, dtype, fma->registers, fma->acc);
  tl_lower_set(l, tl_op_result(op, 0), fma->acc, fma->registers);
}
