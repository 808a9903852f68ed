// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of tiles: copies and boxes, gemm, tile values, layouts.
#include "ir/verify/verify_internal.h"

enum { MAX_WARPS = 32 };  // of a gemm along m, n or k

// ---- layouts

void tl_verify_layout(tl_verifier *verifier, const tl_op *op, const tl_layout *layout, const int64_t *dims,
                      int32_t rank, const char *what) {
  bool same = layout->rank == rank;
  for (int32_t d = 0; same && d < rank; d++) same = layout->shape[d] == dims[d];
  if (!same) {
    tl_verify_fail(verifier, op, "%s is of another shape", what);
    return;
  }
  // Without a number of threads any number of warps is right.
  int32_t threads = tl_op_threads_known(op);
  if (threads == 0) threads = 32 * tl_layout_axis_size(layout, TL_AXIS_WARP);
  const char *problem = tl_layout_verify(layout, threads);
  if (problem) tl_verify_fail(verifier, op, "%s: %s", what, problem);
}

static void verify_thread_layout(tl_verifier *verifier, const tl_op *op, const int64_t *dims, int32_t rank) {
  const tl_layout *layout = tl_op_layout(op, TL_ATTR_THREAD_LAYOUT);
  if (layout) tl_verify_layout(verifier, op, layout, dims, rank, "the thread layout");
}

// ---- boxes: one side of a copy, tile_load or tile_store

typedef struct box {
  const char *name;
  const tl_value *buffer;
  int offsets, limits;  // groups
  tl_attr_key dims, step, check;
} box;

static void verify_box_ints(tl_verifier *verifier, const tl_op *op, const box *side, const tl_type *type,
                            int32_t rank) {
  const tl_attr *dims = tl_op_attr(op, side->dims);
  const tl_attr *step = tl_op_attr(op, side->step);
  const tl_attr *check = tl_op_attr(op, side->check);
  if (dims->v.ints.len != rank) {
    tl_verify_fail(verifier, op, "'%s' has %d entries for a tile of rank %d", tl_attr_key_text(side->dims),
                   dims->v.ints.len, rank);
  }
  for (int32_t i = 0; i < dims->v.ints.len; i++) {
    int64_t dim = dims->v.ints.items[i];
    bool repeated = false;
    for (int32_t j = 0; j < i; j++) repeated = repeated || dims->v.ints.items[j] == dim;
    if (dim < 0 || dim >= type->rank || repeated) {
      tl_verify_fail(verifier, op, "'%s' is no list of different dims of %s", tl_attr_key_text(side->dims),
                     tl_verify_type_text(verifier, type));
      break;
    }
  }
  if (step && step->v.ints.len != rank) {
    tl_verify_fail(verifier, op, "'%s' has %d entries for a tile of rank %d", tl_attr_key_text(side->step),
                   step->v.ints.len, rank);
  }
  if (check && check->v.ints.len != type->rank) {
    tl_verify_fail(verifier, op, "'%s' has %d entries for a buffer of rank %d", tl_attr_key_text(side->check),
                   check->v.ints.len, type->rank);
  }
}

// Tiles of the block have no bounds checks: what is constant must fit.
static void verify_box_fits(tl_verifier *verifier, const tl_op *op, const box *side, const tl_type *type,
                            const int64_t *extents) {
  const tl_attr *dims = tl_op_attr(op, side->dims), *step = tl_op_attr(op, side->step);
  if (type->scope == TL_SCOPE_GLOBAL || tl_op_group_len(op, side->limits) != 0) return;
  for (int32_t i = 0; i < dims->v.ints.len; i++) {
    int64_t dim = dims->v.ints.items[i], offset, span;
    int64_t by = step ? step->v.ints.items[i] : 1;
    if (!tl_value_const_int(tl_op_group_at(op, side->offsets, (uint32_t)dim), &offset)) continue;
    bool overflow = __builtin_mul_overflow(by, extents[i] - 1, &span) || __builtin_add_overflow(offset, span, &span);
    if (overflow || offset < 0 || span < 0 || offset >= type->dims[dim] || span >= type->dims[dim]) {
      tl_verify_fail(verifier, op, "%lld elements from %lld on leave dim %lld of %s", (long long)extents[i],
                     (long long)offset, (long long)dim, tl_verify_type_text(verifier, type));
    }
  }
}

static void verify_box(tl_verifier *verifier, const tl_op *op, const box *side, const int64_t *extents, int32_t rank) {
  const tl_type *type = side->buffer->type;
  size_t errors = verifier->result->errors.len;
  uint32_t offsets = tl_op_group_len(op, side->offsets), limits = tl_op_group_len(op, side->limits);
  if (offsets != (uint32_t)type->rank) {
    tl_verify_fail(verifier, op, "%u offsets for '%s' of rank %d", offsets, side->name, type->rank);
  }
  if (limits != 0 && limits != (uint32_t)type->rank) {
    tl_verify_fail(verifier, op, "%u limits for '%s' of rank %d", limits, side->name, type->rank);
  }
  verify_box_ints(verifier, op, side, type, rank);
  if (verifier->result->errors.len == errors) verify_box_fits(verifier, op, side, type, extents);
}

static void verify_pad(tl_verifier *verifier, const tl_op *op, const tl_value *pad, const tl_type *buffer) {
  if (pad && !tl_type_is_scalar_of(pad->type, buffer->dtype)) {
    tl_verify_fail(verifier, op, "'pad' is %s, the source holds %s", tl_verify_type_text(verifier, pad->type),
                   tl_dtype_name(buffer->dtype));
  }
}

static void verify_copy(tl_verifier *verifier, const tl_op *op) {
  const tl_attr *extents = tl_op_attr(op, TL_ATTR_EXTENTS);
  int32_t rank = extents->v.ints.len;
  if (rank > TL_MAX_RANK) {
    tl_verify_fail(verifier, op, "a tile of rank %d", rank);
    return;
  }
  if (!tl_verify_elements(verifier, op, extents->v.ints.items, rank)) return;
  box src = {"src",
             tl_op_arg(op, TL_GROUP_COPY_src),
             TL_GROUP_COPY_src_offsets,
             TL_GROUP_COPY_src_limits,
             TL_ATTR_SRC_DIMS,
             TL_ATTR_SRC_STEP,
             TL_ATTR_SRC_CHECK};
  box dst = {"dst",
             tl_op_arg(op, TL_GROUP_COPY_dst),
             TL_GROUP_COPY_dst_offsets,
             TL_GROUP_COPY_dst_limits,
             TL_ATTR_DST_DIMS,
             TL_ATTR_DST_STEP,
             TL_ATTR_DST_CHECK};
  verify_box(verifier, op, &src, extents->v.ints.items, rank);
  verify_box(verifier, op, &dst, extents->v.ints.items, rank);
  verify_pad(verifier, op, tl_op_arg(op, TL_GROUP_COPY_pad), src.buffer->type);
  verify_thread_layout(verifier, op, extents->v.ints.items, rank);
  if (op->num_results > 1) tl_verify_fail(verifier, op, "'copy' has at most one result");
  if (op->num_results == 1 && op->results[0].type->kind != TL_TYPE_TOKEN) {
    tl_verify_fail(verifier, op, "the result of a copy is a token");
  }
  if (op->num_results == 1 && !tl_op_has(op, TL_ATTR_ASYNC)) {
    tl_verify_fail(verifier, op, "only an async copy has a token");
  }
}

static const tl_type *tile_result(tl_verifier *verifier, const tl_op *op) {
  const tl_type *type = op->results[0].type;
  if (type->kind == TL_TYPE_TILE) return type;
  tl_verify_fail(verifier, op, "the result is %s, not a tile", tl_verify_type_text(verifier, type));
  return NULL;
}

static void verify_tile_load(tl_verifier *verifier, const tl_op *op) {
  const tl_type *tile = tile_result(verifier, op);
  if (tile == NULL) return;
  box src = {"src",
             tl_op_arg(op, TL_GROUP_TILE_LOAD_src),
             TL_GROUP_TILE_LOAD_src_offsets,
             TL_GROUP_TILE_LOAD_src_limits,
             TL_ATTR_SRC_DIMS,
             TL_ATTR_SRC_STEP,
             TL_ATTR_SRC_CHECK};
  verify_box(verifier, op, &src, tile->dims, tile->rank);
  verify_pad(verifier, op, tl_op_arg(op, TL_GROUP_TILE_LOAD_pad), src.buffer->type);
}

static void verify_tile_store(tl_verifier *verifier, const tl_op *op) {
  const tl_type *tile = tl_op_arg(op, TL_GROUP_TILE_STORE_tile)->type;
  box dst = {"dst",
             tl_op_arg(op, TL_GROUP_TILE_STORE_dst),
             TL_GROUP_TILE_STORE_dst_offsets,
             TL_GROUP_TILE_STORE_dst_limits,
             TL_ATTR_DST_DIMS,
             TL_ATTR_DST_STEP,
             TL_ATTR_DST_CHECK};
  verify_box(verifier, op, &dst, tile->dims, tile->rank);
  tl_matrix_form form;
  const tl_type *memory = dst.buffer->type;
  bool is_shared = memory->kind == TL_TYPE_BUFFER && memory->scope == TL_SCOPE_SHARED;
  bool is_matrix = is_shared && tl_dtype_bits(memory->dtype) == 16 && tile->layout;
  if (tl_op_has(op, TL_ATTR_MATRIX) && (!is_matrix || !tl_layout_matrix_form(tile->layout, &form)))
    tl_verify_fail(verifier, op, "only tiles that hold matrices go into shared tiles of 16-bit elements by 'matrix'");
}

// ---- gemm

static bool is_matrix(const tl_type *type) {
  return (type->kind == TL_TYPE_BUFFER || type->kind == TL_TYPE_TILE || type->kind == TL_TYPE_FLIGHT) &&
         type->rank == 2;
}

// The accumulator of `warps_k` warps, each with its own sum.
static bool is_sums(const tl_type *type, int64_t warps_k) {
  bool tile = type->kind == TL_TYPE_BUFFER || type->kind == TL_TYPE_TILE;
  return tile && type->rank == 3 && warps_k > 1 && type->dims[0] == warps_k;
}

// Pairs of different dtypes that the language lets multiply.
static bool is_mixed_pair(tl_dtype a, tl_dtype b) {
  bool fp8 = (a == TL_DTYPE_F8E4M3 || a == TL_DTYPE_F8E5M2) && (b == TL_DTYPE_F8E4M3 || b == TL_DTYPE_F8E5M2);
  bool int4 = (a == TL_DTYPE_I4 || a == TL_DTYPE_U4) && (b == TL_DTYPE_I4 || b == TL_DTYPE_U4);
  bool int8 = (a == TL_DTYPE_I8 || a == TL_DTYPE_U8) && (b == TL_DTYPE_I8 || b == TL_DTYPE_U8);
  return fp8 || int8 || int4;
}

static void verify_gemm_acc(tl_verifier *verifier, const tl_op *op, const tl_type *acc) {
  if (acc->kind == TL_TYPE_BUFFER) {
    if (acc->scope != TL_SCOPE_FRAGMENT) tl_verify_fail(verifier, op, "the accumulator is no fragment");
    if (op->num_results != 0) tl_verify_fail(verifier, op, "a gemm into a buffer has no result");
  } else if (op->num_results != 1 || op->results[0].type != acc) {
    tl_verify_fail(verifier, op, "a gemm into a tile has one result of the accumulator's type");
  }
}

// B is in shared memory, or in registers that are filled in whole runs of K.
static void verify_gemm_b(tl_verifier *verifier, const tl_op *op, const tl_type *a, const tl_type *b, int64_t k) {
  bool in_registers = b->kind == TL_TYPE_TILE || b->scope == TL_SCOPE_FRAGMENT;
  int64_t run = tl_op_int(op, TL_ATTR_B_RUN, 0);
  if (!in_registers) {
    if (b->scope != TL_SCOPE_SHARED) tl_verify_fail(verifier, op, "'b' is neither shared nor a fragment");
    if (run) tl_verify_fail(verifier, op, "'b_run' is for an operand in registers");
    return;
  }
  if (run <= 0 || k % (4 * run) != 0) tl_verify_fail(verifier, op, "'b_run' does not divide K among 4 lanes");
  if (a->kind != TL_TYPE_BUFFER || a->scope != TL_SCOPE_SHARED || tl_op_has(op, TL_ATTR_TRANS_A))
    tl_verify_fail(verifier, op, "beside a 'b' in registers 'a' is shared and not transposed");
}

// The warps along m, n (and k), of which the block must have enough.
static bool verify_gemm_warps(tl_verifier *verifier, const tl_op *op, const tl_attr *warps) {
  int64_t threads = tl_op_threads_known(op), product = 1;
  if (!warps) return true;
  if (warps->v.ints.len != 2 && warps->v.ints.len != 3)
    return tl_verify_fail(verifier, op, "'warps' has two or three entries");
  for (int32_t i = 0; i < warps->v.ints.len; i++) product *= warps->v.ints.items[i];
  if (threads > 0 && product > threads / 32) return tl_verify_fail(verifier, op, "'warps' are more than the block has");
  return true;
}

// The instruction multiplies the operands' dtypes; with B in registers it is the one of the transposed product.
static void verify_gemm_instruction(tl_verifier *verifier, const tl_op *op, const tl_attr *warps) {
  const tl_instruction *inst = tl_op_instruction(op);
  if (!inst) return;
  const tl_type *acc = tl_op_arg(op, TL_GROUP_GEMM_acc)->type;
  const tl_type *a = tl_op_arg(op, TL_GROUP_GEMM_a)->type, *b = tl_op_arg(op, TL_GROUP_GEMM_b)->type;
  bool swapped = b->kind == TL_TYPE_TILE || b->scope == TL_SCOPE_FRAGMENT;
  if (inst->a != (swapped ? b : a)->dtype || inst->b != (swapped ? a : b)->dtype || inst->acc != acc->dtype)
    tl_verify_fail(verifier, op, "the instruction multiplies other dtypes");
  if ((acc->kind == TL_TYPE_FLIGHT) != tl_op_has(op, TL_ATTR_ASYNC))
    tl_verify_fail(verifier, op, "an asynchronous gemm, and no other, adds to a flight");
  if (tl_op_has(op, TL_ATTR_ASYNC) && !tl_instruction_is_async(inst))
    tl_verify_fail(verifier, op, "an asynchronous gemm is one of wgmma");
  if (inst->family != TL_FAMILY_WGMMA) return;
  bool in_registers = a->kind == TL_TYPE_TILE || a->scope == TL_SCOPE_FRAGMENT;
  if (swapped || inst->a_in_registers != in_registers)
    tl_verify_fail(verifier, op, "wgmma takes its operands from elsewhere");
  if (!in_registers && inst->trans_a != tl_op_has(op, TL_ATTR_TRANS_A))
    tl_verify_fail(verifier, op, "the instruction and 'trans_a' do not agree");
  if (inst->trans_b == tl_op_has(op, TL_ATTR_TRANS_B))
    tl_verify_fail(verifier, op, "the instruction and 'trans_b' do not agree");
  if (warps && (warps->v.ints.items[0] % TL_WGMMA_WARPS != 0 || warps->v.ints.len != 2))
    tl_verify_fail(verifier, op, "wgmma wants whole warpgroups along m");
}

// What says which elements of a sparse `a` are there; `k` as b has it.
static void verify_gemm_meta(tl_verifier *verifier, const tl_op *op, int64_t m, int64_t k) {
  const tl_type *meta = tl_op_arg(op, TL_GROUP_GEMM_meta)->type, *a = tl_op_arg(op, TL_GROUP_GEMM_a)->type;
  const tl_instruction *inst = tl_op_instruction(op);
  enum { ELEMENTS = 16 };  // of K for which a number tells
  bool is_shared = meta->kind == TL_TYPE_BUFFER && meta->scope == TL_SCOPE_SHARED;
  if (!is_shared || meta->dtype != TL_DTYPE_U16 || meta->rank != 2 || meta->dims[0] != m ||
      meta->dims[1] * ELEMENTS != k)
    tl_verify_fail(verifier, op, "'meta' is no shared tile of u16, M by K / 16");
  if (a->kind != TL_TYPE_BUFFER || a->scope != TL_SCOPE_SHARED || tl_op_has(op, TL_ATTR_TRANS_A) ||
      tl_op_has(op, TL_ATTR_B_RUN))
    tl_verify_fail(verifier, op, "a sparse 'a' is shared and not transposed");
  const tl_type *b = tl_op_arg(op, TL_GROUP_GEMM_b)->type, *acc = tl_op_arg(op, TL_GROUP_GEMM_acc)->type;
  if (tl_instruction_find(TL_FAMILY_MMA, a->dtype, b->dtype, acc->dtype).family == TL_FAMILY_NONE)
    tl_verify_fail(verifier, op, "no mma multiplies a sparse %s by %s into %s", tl_dtype_name(a->dtype),
                   tl_dtype_name(b->dtype), tl_dtype_name(acc->dtype));
  if (!inst) return;
  if (inst->family != TL_FAMILY_MMA) tl_verify_fail(verifier, op, "sparse products run on mma");
  if (k % (2 * inst->k) != 0) tl_verify_fail(verifier, op, "K of a sparse product is no multiple of %d", 2 * inst->k);
}

static void verify_gemm(tl_verifier *verifier, const tl_op *op) {
  const tl_type *acc = tl_op_arg(op, TL_GROUP_GEMM_acc)->type;
  const tl_type *a = tl_op_arg(op, TL_GROUP_GEMM_a)->type, *b = tl_op_arg(op, TL_GROUP_GEMM_b)->type;
  const tl_attr *warps = tl_op_attr(op, TL_ATTR_WARPS);
  // Warps that share K out have a sum each: the first dim of the accumulator.
  bool shares_k = warps && warps->v.ints.len == 3;
  if ((shares_k ? !is_sums(acc, warps->v.ints.items[2]) : !is_matrix(acc)) || !is_matrix(a) || !is_matrix(b)) {
    tl_verify_fail(verifier, op, "'gemm' takes tiles of rank 2");
    return;
  }
  verify_gemm_acc(verifier, op, acc);
  const int64_t *sums = acc->dims + (shares_k ? 1 : 0);
  bool trans_a = tl_op_has(op, TL_ATTR_TRANS_A), trans_b = tl_op_has(op, TL_ATTR_TRANS_B);
  int64_t m = a->dims[trans_a ? 1 : 0], k = a->dims[trans_a ? 0 : 1];
  bool is_sparse = tl_op_arg(op, TL_GROUP_GEMM_meta) != NULL;
  if (is_sparse) k *= 2;
  int64_t k_of_b = b->dims[trans_b ? 1 : 0], n = b->dims[trans_b ? 0 : 1];
  if (m != sums[0] || n != sums[1] || k != k_of_b) {
    tl_verify_fail(verifier, op, "a is %lld by %lld, b %lld by %lld, the accumulator %lld by %lld", (long long)m,
                   (long long)k, (long long)k_of_b, (long long)n, (long long)sums[0], (long long)sums[1]);
  }
  if (a->dtype != b->dtype && !is_mixed_pair(a->dtype, b->dtype)) {
    tl_verify_fail(verifier, op, "multiplies %s with %s", tl_dtype_name(a->dtype), tl_dtype_name(b->dtype));
  }
  if (a->kind == TL_TYPE_BUFFER && a->scope != TL_SCOPE_SHARED && a->scope != TL_SCOPE_FRAGMENT) {
    tl_verify_fail(verifier, op, "'a' is neither shared nor a fragment");
  }
  verify_gemm_b(verifier, op, a, b, k);
  if (is_sparse) verify_gemm_meta(verifier, op, m, k);
  if (!verify_gemm_warps(verifier, op, warps)) return;
  verify_gemm_instruction(verifier, op, warps);
  int64_t run = tl_op_int(op, TL_ATTR_B_RUN, 0);
  if (shares_k && (run <= 0 || run > k || k % (4 * run * warps->v.ints.items[2]) != 0))
    tl_verify_fail(verifier, op, "warps share K out in whole runs of 'b_run'");
}

// ---- tile values

static void verify_fill(tl_verifier *verifier, const tl_op *op) {
  const tl_type *buffer = tl_op_arg(op, TL_GROUP_FILL_buffer)->type, *value = tl_op_arg(op, TL_GROUP_FILL_value)->type;
  if (buffer->scope == TL_SCOPE_GLOBAL) tl_verify_fail(verifier, op, "fills a tile, not global memory");
  if (!tl_type_is_scalar_of(value, buffer->dtype)) {
    tl_verify_fail(verifier, op, "fills %s with %s", tl_verify_type_text(verifier, buffer),
                   tl_verify_type_text(verifier, value));
  }
  verify_thread_layout(verifier, op, buffer->dims, buffer->rank);
}

static void verify_splat(tl_verifier *verifier, const tl_op *op) {
  const tl_type *tile = tile_result(verifier, op), *value = op->operands[0].value->type;
  if (tile && !tl_type_is_scalar_of(value, tile->dtype)) {
    tl_verify_fail(verifier, op, "a %s of %s", tl_verify_type_text(verifier, tile),
                   tl_verify_type_text(verifier, value));
  }
}

static void verify_extract(tl_verifier *verifier, const tl_op *op) {
  const tl_type *tile = tl_op_arg(op, TL_GROUP_EXTRACT_tile)->type;
  if (tl_op_group_len(op, TL_GROUP_EXTRACT_index) != (uint32_t)tile->rank) {
    tl_verify_fail(verifier, op, "%u subscripts of %s", tl_op_group_len(op, TL_GROUP_EXTRACT_index),
                   tl_verify_type_text(verifier, tile));
  }
  if (!tl_type_is_scalar_of(op->results[0].type, tile->dtype)) {
    tl_verify_fail(verifier, op, "an element of %s is no %s", tl_verify_type_text(verifier, tile),
                   tl_verify_type_text(verifier, op->results[0].type));
  }
  if (tl_op_enclosing(op, TL_OP_PARALLEL) == NULL) tl_verify_fail(verifier, op, "'extract' stands outside a parallel");
}

static void verify_convert_layout(tl_verifier *verifier, const tl_op *op) {
  const tl_type *to = tile_result(verifier, op), *from = tl_op_arg(op, TL_GROUP_CONVERT_LAYOUT_tile)->type;
  if (to == NULL) return;
  bool same = to->dtype == from->dtype && to->rank == from->rank;
  for (int32_t d = 0; same && d < to->rank; d++) same = to->dims[d] == from->dims[d];
  if (!same) {
    tl_verify_fail(verifier, op, "%s becomes %s", tl_verify_type_text(verifier, from),
                   tl_verify_type_text(verifier, to));
  }
}

void tl_verify_tile_op(tl_verifier *verifier, const tl_op *op) {
  switch (op->code) {
    case TL_OP_FILL:
      verify_fill(verifier, op);
      break;
    case TL_OP_COPY:
      verify_copy(verifier, op);
      break;
    case TL_OP_GEMM:
      verify_gemm(verifier, op);
      break;
    case TL_OP_UNDEF_TILE:
      tile_result(verifier, op);
      break;
    case TL_OP_SPLAT:
      verify_splat(verifier, op);
      break;
    case TL_OP_TILE_LOAD:
      verify_tile_load(verifier, op);
      break;
    case TL_OP_TILE_STORE:
      verify_tile_store(verifier, op);
      break;
    case TL_OP_EXTRACT:
      verify_extract(verifier, op);
      break;
    case TL_OP_CONVERT_LAYOUT:
      verify_convert_layout(verifier, op);
      break;
    default:
      break;
  }
  // What the whole block does together cannot stand where single elements run.
  bool is_block_op = false;
  switch (op->code) {
    case TL_OP_FILL:
    case TL_OP_COPY:
    case TL_OP_GEMM:
    case TL_OP_UNDEF_TILE:
    case TL_OP_SPLAT:
    case TL_OP_TILE_LOAD:
    case TL_OP_TILE_STORE:
    case TL_OP_CONVERT_LAYOUT:
    case TL_OP_PARALLEL:
    case TL_OP_BARRIER:
    case TL_OP_ASYNC_COMMIT:
    case TL_OP_ASYNC_WAIT:
    case TL_OP_RING_ACQUIRE:
    case TL_OP_RING_COMMIT:
    case TL_OP_RING_WAIT:
    case TL_OP_RING_RELEASE:
      is_block_op = true;
      break;
    default:
      break;
  }
  if (is_block_op && tl_op_enclosing(op, TL_OP_PARALLEL)) {
    tl_verify_fail(verifier, op, "'%s' stands inside a parallel", tl_op_info_of(op->code)->name);
  }
}
