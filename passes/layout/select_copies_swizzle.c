// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts of shared tiles: which swizzle or padding keeps the readers free of bank conflicts.
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"

// Shared memory has 32 banks of 4 bytes: 8 chunks of 16 bytes are one pass over them.
enum { CHUNK_BYTES = 16, CHUNKS_PER_PASS = 8, MAX_SHIFT = 5 };

bool tl_swizzle_is_conflict_free(const tl_shared_layout *layout, int64_t row_bytes, int32_t row_step) {
  int64_t chunks = row_bytes / CHUNK_BYTES;
  int32_t shape[] = {(int32_t)(CHUNKS_PER_PASS * (CHUNKS_PER_PASS + row_step)), (int32_t)row_bytes};
  for (int64_t start = 0; start < CHUNKS_PER_PASS; start++) {
    for (int64_t column = 0; column < chunks && column < CHUNKS_PER_PASS; column++) {
      unsigned seen = 0;
      for (int64_t i = 0; i < CHUNKS_PER_PASS; i++) {
        int32_t coord[] = {(int32_t)(start * CHUNKS_PER_PASS + i * row_step), (int32_t)(column * CHUNK_BYTES)};
        int64_t offset = tl_shared_layout_offset(layout, shape, 2, 8, coord);
        seen |= 1U << (offset / CHUNK_BYTES % CHUNKS_PER_PASS);
      }
      if (seen != 0xFFU) return false;
    }
  }
  return true;
}

tl_shared_layout tl_swizzle_for_rows(int64_t row_bytes, int32_t row_step) {
  tl_shared_layout plain = {.pitch_bytes = (int32_t)row_bytes};
  // Rows start on chunks (ldmatrix reads rows of 16 aligned bytes), so what is left of the last one is padding.
  int64_t chunks = (row_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
  if (row_bytes % CHUNK_BYTES != 0) {
    plain.pitch_bytes = (int32_t)((chunks | 1) * CHUNK_BYTES);
    return plain;
  }
  static const int32_t masks[] = {0, 7, 3, 1};
  for (size_t m = 0; m < sizeof masks / sizeof masks[0]; m++) {
    // XOR with the mask must stay inside the row.
    if (chunks % (masks[m] + 1) != 0) continue;
    for (int32_t shift = 0; shift <= (masks[m] ? 5 : 0); shift++) {
      tl_shared_layout layout = plain;
      layout.swizzle_mask = masks[m];
      layout.swizzle_shift = shift;
      if (tl_swizzle_is_conflict_free(&layout, row_bytes, row_step)) return layout;
    }
  }
  // An odd number of chunks a row visits all banks.
  plain.pitch_bytes = (int32_t)((chunks | 1) * CHUNK_BYTES);
  return plain;
}

// Whether a gemm reads the alloc, and one by descriptors.
typedef struct gemm_use {
  const tl_op *alloc;
  bool found, by_wgmma;
} gemm_use;

static void find_gemm(tl_op *op, void *user) {
  gemm_use *use = user;
  if (op->code != TL_OP_GEMM) return;
  for (uint32_t i = 1; i < 3; i++) {
    tl_value *operand = tl_op_operand(op, i);
    if (operand->type->kind != TL_TYPE_BUFFER || tl_buffer_root(operand) != use->alloc) continue;
    const tl_instruction *inst = tl_op_instruction(op);
    use->found = true;
    use->by_wgmma |= inst && inst->family == TL_FAMILY_WGMMA;
  }
}

// A view reads the same bytes under another shape, so that they must lie densely.
static bool has_view(const tl_value *buffer) {
  for (const tl_use *use = buffer->uses; use; use = use->next) {
    if (use->owner->code == TL_OP_VIEW) return true;
  }
  return false;
}

// Of the layouts that keep chunks whole the one with the fewest passes over the banks; the plain one, and then the one
// that suits rows, when others are no better.
static tl_shared_layout least_passes(tl_op *kernel, const tl_op *alloc, const tl_shared_layout *plain,
                                     const tl_shared_layout *spread) {
  static const int32_t masks[] = {1, 3, 7};
  tl_shared_layout best = *plain;
  int least = tl_bank_passes(kernel, alloc, plain), passes = tl_bank_passes(kernel, alloc, spread);
  if (passes < least) {
    best = *spread;
    least = passes;
  }
  for (size_t m = 0; m < sizeof masks / sizeof masks[0]; m++) {
    // Whole groups of chunks, by padding where the row has none.
    int32_t group = (masks[m] + 1) * CHUNK_BYTES, pitch = (plain->pitch_bytes + group - 1) / group * group;
    if (pitch >= 2 * plain->pitch_bytes) continue;
    for (int32_t shift = 0; shift <= MAX_SHIFT; shift++) {
      tl_shared_layout layout = {pitch, masks[m], shift};
      passes = tl_bank_passes(kernel, alloc, &layout);
      if (passes >= least) continue;
      best = layout;
      least = passes;
    }
  }
  return best;
}

static tl_shared_layout choose_layout(tl_pass_context *context, tl_op *kernel, tl_op *alloc) {
  const tl_value *buffer = tl_op_result(alloc, 0);
  int64_t row_bytes =
      (int64_t)tl_dtype_bytes(buffer->type->dtype, (uint64_t)buffer->type->dims[buffer->type->rank - 1]);
  tl_shared_layout plain = {.pitch_bytes = (int32_t)row_bytes};
  if (tl_is_tile_of_tma(context, kernel, alloc))
    return tl_tma_layout(buffer, buffer->type->rank < 2 || has_view(buffer));
  gemm_use gemm = {.alloc = alloc};
  tl_walk(kernel, find_gemm, &gemm);
  bool is_narrow = tl_dtype_bits(buffer->type->dtype) < 8 && !gemm.found;
  if (buffer->type->rank < 2 || has_view(buffer) || is_narrow) return plain;
  tl_shared_layout spread = tl_swizzle_for_rows(row_bytes, 1);
  if (gemm.by_wgmma) return tl_shared_layout_panels(row_bytes);
  return gemm.found ? spread : least_passes(kernel, alloc, &plain, &spread);
}

void tl_select_shared_layouts(tl_pass_context *context, tl_op *kernel) {
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_ALLOC || tl_op_has(op, TL_ATTR_SHARED_LAYOUT)) continue;
    const tl_value *buffer = tl_op_result(op, 0);
    if (!tl_buffer_is_shared(buffer) || buffer->type->rank == 0) continue;
    tl_shared_layout layout = choose_layout(context, kernel, op);
    tl_op_set_shared(context->module, op, TL_ATTR_SHARED_LAYOUT, &layout);
    if (layout.panel_bytes) {
      tl_diag_report(context->diags, TL_DIAG_REMARK_SHARED_LAYOUT, op->loc,
                     "'%s': panels of %d bytes, swizzled as wgmma reads them", tl_buffer_name(buffer),
                     layout.panel_bytes);
    } else if (layout.swizzle_mask) {
      tl_diag_report(context->diags, TL_DIAG_REMARK_SHARED_LAYOUT, op->loc,
                     "'%s': rows of %d bytes, 16-byte chunk ^= (row >> %d) & %d against bank conflicts",
                     tl_buffer_name(buffer), layout.pitch_bytes, layout.swizzle_shift, layout.swizzle_mask);
    } else {
      tl_diag_report(context->diags, TL_DIAG_REMARK_SHARED_LAYOUT, op->loc, "'%s': rows of %d bytes, no swizzle",
                     tl_buffer_name(buffer), layout.pitch_bytes);
    }
  }
}
