// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mma.sync.m8n8k4 of f16: four multiplications at once, one for each pair of quads (lanes 4i … 4i + 3 and 16 + 4i … 19
// + 4i). PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type". Targets behind sm_70 have it for old
// programs' sake.
#include <string.h>

#include "emulator/ops/mma.h"
#include "emulator/ops/ops.h"
#include "llvm_backend/jit/host_libcalls.h"

enum { M = 8, N = 8, K = 4, LANES = 8 };

// Lane `i` of pair `quad`; i is also the row (or column) of the operands that it holds alone.
static uint32_t lane_of(uint32_t quad, uint32_t i) {
  return i / 4 * 16 + quad * 4 + i % 4;
}

// Where element `i` of a lane lies in a tile of sums.
static void place_of_sum(uint32_t lane, uint32_t i, bool f16, uint32_t *row, uint32_t *column) {
  *row = f16 ? lane : lane / 4 * 4 + (lane & 1) + (i & 2);
  *column = f16 ? i : (i & 4) + (lane & 2) + (i & 1);
}

static float half_at(const uint8_t *halves, uint32_t i) {
  uint16_t bits;
  memcpy(&bits, halves + 2 * i, sizeof bits);
  return tl_host_f16_to_f32(bits);
}

typedef struct tile {
  float a[M][K], b[K][N], c[M][N];
} tile;

static void gather(const tl_emu_meeting *meeting, uint32_t quad, int form, tile *t) {
  for (uint32_t lane = 0; lane < LANES; lane++) {
    const uint8_t *operands = meeting->args[lane_of(quad, lane)];
    for (uint32_t i = 0; i < K; i++) {
      float a = half_at(operands, i), b = half_at(operands + 8, i);
      if (form & TL_EMU_QUADS_COL_A)
        t->a[lane / 4 * 4 + i][lane % 4] = a;
      else
        t->a[lane][i] = a;
      if (form & TL_EMU_QUADS_ROW_B)
        t->b[lane % 4][lane / 4 * 4 + i] = b;
      else
        t->b[i][lane] = b;
    }
    for (uint32_t i = 0; i < 8; i++) {
      uint32_t row, column;
      bool f16 = form & TL_EMU_QUADS_F16_ADDED;
      place_of_sum(lane, i, f16, &row, &column);
      if (f16)
        t->c[row][column] = half_at(operands + 16, i);
      else
        memcpy(&t->c[row][column], operands + 16 + 4 * i, 4);
    }
  }
}

static void scatter(const tl_emu_meeting *meeting, uint32_t quad, int form, const tile *t) {
  for (uint32_t lane = 0; lane < LANES; lane++) {
    uint8_t *sums = meeting->result[lane_of(quad, lane)];
    for (uint32_t i = 0; i < 8; i++) {
      uint32_t row, column;
      bool f16 = form & TL_EMU_QUADS_F16_SUMS;
      place_of_sum(lane, i, f16, &row, &column);
      uint16_t half = f16 ? tl_host_f32_to_f16(t->c[row][column]) : 0;
      memcpy(sums + (f16 ? 2 : 4) * i, f16 ? (const void *)&half : &t->c[row][column], f16 ? 2 : 4);
    }
  }
}

static bool quads_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  tl_emu_mma_sanitize_full(warp, meeting);
  int form = meeting->site->binding->param;
  for (uint32_t quad = 0; quad < 4; quad++) {
    tile t;
    gather(meeting, quad, form, &t);
    for (uint32_t m = 0; m < M; m++)
      for (uint32_t n = 0; n < N; n++)
        for (uint32_t k = 0; k < K; k++) t.c[m][n] += t.a[m][k] * t.b[k][n];
    scatter(meeting, quad, form, &t);
  }
  return true;
}

void tl_emu_op_mma_quads(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, quads_work);
}
