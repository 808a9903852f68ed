// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts of shared tiles: which swizzle or padding keeps the readers free of bank conflicts.
#include "passes/memory_access.h"
#include "passes/select_copies.h"

// Shared memory has 32 banks of 4 bytes: 8 chunks of 16 bytes are one pass over them.
enum { CHUNK_BYTES = 16, CHUNKS_PER_PASS = 8 };

bool tl_swizzle_is_conflict_free(const tl_shared_layout *layout, int64_t row_bytes, int32_t row_step) {
  int64_t pitch = layout->pitch_bytes / CHUNK_BYTES;
  int64_t chunks = row_bytes / CHUNK_BYTES;
  for (int64_t start = 0; start < CHUNKS_PER_PASS; start++) {
    for (int64_t column = 0; column < chunks && column < CHUNKS_PER_PASS; column++) {
      unsigned seen = 0;
      for (int64_t i = 0; i < CHUNKS_PER_PASS; i++) {
        int64_t row = start * CHUNKS_PER_PASS + i * row_step;
        int64_t chunk = column ^ ((row >> layout->swizzle_shift) & layout->swizzle_mask);
        seen |= 1U << ((pitch * row + chunk) % CHUNKS_PER_PASS);
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

// Whether a gemm reads the alloc.
typedef struct gemm_use {
  const tl_op *alloc;
  bool found;
} gemm_use;

static void find_gemm(tl_op *op, void *user) {
  gemm_use *use = user;
  if (op->code != TL_OP_GEMM) return;
  for (uint32_t i = 1; i < 3; i++) {
    tl_value *operand = tl_op_operand(op, i);
    if (operand->type->kind == TL_TYPE_BUFFER && tl_buffer_root(operand) == use->alloc) use->found = true;
  }
}

// A view reads the same bytes under another shape, so that they must lie densely.
static bool has_view(const tl_value *buffer) {
  for (const tl_use *use = buffer->uses; use; use = use->next) {
    if (use->owner->code == TL_OP_VIEW) return true;
  }
  return false;
}

// Passes over the banks that the first registers of a warp need to move a tile to or from the shared layout.
static int bank_passes(const tl_layout *tile, const tl_type *type, const tl_shared_layout *shared) {
  enum { BANKS = 32, BANK_BYTES = 4, LANES = 32 };
  int32_t shape[TL_MAX_RANK], coord[TL_MAX_RANK];
  for (int32_t d = 0; d < type->rank; d++) shape[d] = (int32_t)type->dims[d];
  int64_t words[LANES];
  int most = 0, count[BANKS] = {0};
  for (int32_t lane = 0; lane < LANES; lane++) {
    tl_layout_coord(tile, 0, lane, 0, coord);
    words[lane] = tl_shared_layout_offset(shared, shape, type->rank, tl_dtype_bits(type->dtype), coord) / BANK_BYTES;
    bool seen = false;
    for (int32_t other = 0; other < lane; other++) seen |= words[other] == words[lane];
    int64_t bank = words[lane] % BANKS;
    if (!seen && ++count[bank] > most) most = count[bank];
  }
  return most;
}

typedef struct tile_use {
  const tl_op *alloc;
  const tl_shared_layout *layouts[2];
  int passes[2];
} tile_use;

static void count_passes(tl_op *op, void *user) {
  tile_use *use = user;
  if (op->code != TL_OP_TILE_LOAD && op->code != TL_OP_TILE_STORE) return;
  bool is_load = op->code == TL_OP_TILE_LOAD;
  const tl_value *tile = is_load ? tl_op_result(op, 0) : tl_op_arg(op, TL_GROUP_TILE_STORE_tile);
  tl_box box = is_load ? tl_box_source(op) : tl_box_destination(op);
  const tl_type *type = use->alloc->results[0].type;
  if (!tile->type->layout || tl_buffer_root(box.buffer) != use->alloc || box.tile_rank != type->rank) return;
  for (int32_t d = 0; d < box.tile_rank; d++) {
    if (box.dims[d] != d) return;
  }
  for (int i = 0; i < 2; i++) use->passes[i] += bank_passes(tile->type->layout, type, use->layouts[i]);
}

static tl_shared_layout choose_layout(const tl_op *kernel, tl_op *alloc) {
  const tl_value *buffer = tl_op_result(alloc, 0);
  int64_t row_bytes =
      (int64_t)tl_dtype_bytes(buffer->type->dtype, (uint64_t)buffer->type->dims[buffer->type->rank - 1]);
  tl_shared_layout plain = {.pitch_bytes = (int32_t)row_bytes};
  if (buffer->type->rank < 2 || has_view(buffer) || tl_dtype_bits(buffer->type->dtype) < 8) return plain;
  tl_shared_layout spread = tl_swizzle_for_rows(row_bytes, 1);
  gemm_use gemm = {.alloc = alloc};
  tile_use tiles = {.alloc = alloc, .layouts = {&plain, &spread}};
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    tl_walk(op, find_gemm, &gemm);
    tl_walk(op, count_passes, &tiles);
  }
  return gemm.found || tiles.passes[1] < tiles.passes[0] ? spread : plain;
}

void tl_select_shared_layouts(tl_pass_context *context, tl_op *kernel) {
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_ALLOC || tl_op_has(op, TL_ATTR_SHARED_LAYOUT)) continue;
    const tl_value *buffer = tl_op_result(op, 0);
    if (!tl_buffer_is_shared(buffer) || buffer->type->rank == 0) continue;
    tl_shared_layout layout = choose_layout(kernel, op);
    tl_op_set_shared(context->module, op, TL_ATTR_SHARED_LAYOUT, &layout);
    if (layout.swizzle_mask) {
      tl_diag_report(context->diags, TL_DIAG_REMARK_SHARED_LAYOUT, op->loc,
                     "'%s': rows of %d bytes, 16-byte chunk ^= (row >> %d) & %d: no bank conflicts",
                     tl_buffer_name(buffer), layout.pitch_bytes, layout.swizzle_shift, layout.swizzle_mask);
    } else {
      tl_diag_report(context->diags, TL_DIAG_REMARK_SHARED_LAYOUT, op->loc, "'%s': rows of %d bytes, no swizzle",
                     tl_buffer_name(buffer), layout.pitch_bytes);
    }
  }
}
