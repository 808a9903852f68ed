// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ldmatrix and stmatrix: 8 × 8 matrices of 16-bit elements between shared memory and fragments. PTX ISA, ldmatrix: lane
// 8 i + r gives the address of row r of matrix i; lane l holds elements 2 (l % 4) and the next of row l / 4, or with
// .trans of column l / 4.
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"

enum { ROW_BYTES = 16 };

// NULL: the checker says that the row must not be accessed.
static uint8_t *row_address(const tl_emu_warp *warp, const tl_emu_meeting *meeting, uint32_t lane,
                            tl_emu_access_kind kind) {
  const tl_emu_site *site = meeting->site;
  uint8_t *address;
  memcpy(&address, meeting->args[lane], sizeof address);
  uint32_t thread = warp->index * TL_EMU_WARP + lane;
  if (!tl_emu_touch_by(thread, address, ROW_BYTES, ROW_BYTES, kind, site)) return NULL;
  uintptr_t base = (uintptr_t)tl_emu_self->context.shared;
  if (__builtin_expect(!tl_emu_is_shared(address, 16), 0))
    tl_emu_fail("%s: lane %u of warp %u: 16 bytes at offset %lld of shared memory, which has %zu bytes", site->op, lane,
                warp->index, (long long)((uintptr_t)address - base), tl_emu_self->launch->shared_bytes);
  if (__builtin_expect((uintptr_t)address % 16, 0))
    tl_emu_fail("%s: lane %u of warp %u: the row address is no multiple of 16", site->op, lane, warp->index);
  return address;
}

static void sanitize_full(const tl_emu_meeting *meeting) {
  if (meeting->mask != ~0u) tl_emu_fail("%s: the warp has fewer than 32 lanes", meeting->site->op);
}

// Words of a row; matrix i starts at rows[8 × i]. Transposing swaps element (r, c) and (c, r).
typedef uint32_t rows_of_words[TL_EMU_WARP][4];

static void transpose(rows_of_words rows, uint32_t matrix) {
  uint16_t in[8][8], out[8][8];
  memcpy(in, rows[8 * matrix], sizeof in);
  for (int r = 0; r < 8; r++)
    for (int c = 0; c < 8; c++) out[c][r] = in[r][c];
  memcpy(rows[8 * matrix], out, sizeof out);
}

static bool load_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  sanitize_full(meeting);
  uint32_t count = (uint32_t)meeting->site->binding->param & ~(uint32_t)TL_EMU_MATRIX_TRANS;
  bool trans = meeting->site->binding->param & TL_EMU_MATRIX_TRANS;
  rows_of_words rows = {{0}};
  for (uint32_t lane = 0; lane < 8 * count; lane++) {
    const uint8_t *row = row_address(warp, meeting, lane, TL_EMU_READ);
    if (row)
      memcpy(rows[lane], row, ROW_BYTES);
    else
      memset(rows[lane], 0xff, ROW_BYTES);
  }
  for (uint32_t i = 0; trans && i < count; i++) transpose(rows, i);
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    uint32_t *result = meeting->result[lane];
    for (uint32_t i = 0; i < count; i++) result[i] = rows[8 * i + lane / 4][lane % 4];
  }
  return true;
}

void tl_emu_op_ldmatrix(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, load_work);
}

typedef struct stmatrix_args {
  uint8_t *row;
  uint32_t words[4];
} stmatrix_args;

static bool store_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  sanitize_full(meeting);
  uint32_t count = (uint32_t)meeting->site->binding->param & ~(uint32_t)TL_EMU_MATRIX_TRANS;
  rows_of_words rows = {{0}};
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++)
    for (uint32_t i = 0; i < count; i++)
      rows[8 * i + lane / 4][lane % 4] = ((const stmatrix_args *)meeting->args[lane])->words[i];
  for (uint32_t i = 0; (meeting->site->binding->param & TL_EMU_MATRIX_TRANS) && i < count; i++) transpose(rows, i);
  for (uint32_t lane = 0; lane < 8 * count; lane++) {
    uint8_t *row = row_address(warp, meeting, lane, TL_EMU_WRITE);
    if (row) memcpy(row, rows[lane], ROW_BYTES);
  }
  return true;
}

void tl_emu_op_stmatrix(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, store_work);
}
