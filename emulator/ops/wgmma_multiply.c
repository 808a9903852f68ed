// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arithmetic of wgmma: rows of 32 bytes become floats or 16-bit integers, B turned so that its columns lie side by
// side, then products of eight columns at a time.
#include <immintrin.h>
#include <string.h>

#include "emulator/ops/mma.h"
#include "emulator/ops/wgmma.h"
#include "llvm_backend/jit/host_libcalls.h"

enum { MAX_K = 32 };

// ---- operands as numbers

static void widen_row(tl_wgmma_type type, const uint8_t *row, float *out) {
  uint16_t halves[TL_WGMMA_K_BYTES / 2];
  uint32_t words[TL_WGMMA_K_BYTES / 4];
  switch (type) {
    case TL_WGMMA_F16:
      tl_emu_widen_f16(row, 16, out);
      return;
    case TL_WGMMA_BF16:
      memcpy(halves, row, sizeof halves);
      for (int i = 0; i < 16; i++) out[i] = tl_host_bf16_to_f32(halves[i]);
      return;
    case TL_WGMMA_TF32:  // the hardware reads the upper 19 bits
      memcpy(words, row, sizeof words);
      for (int i = 0; i < 8; i++) words[i] &= 0xffffe000u;
      memcpy(out, words, sizeof words);
      return;
    case TL_WGMMA_E4M3:
    case TL_WGMMA_E5M2: {
      const float *table = tl_emu_f8_values(type == TL_WGMMA_E5M2);
      for (int i = 0; i < 32; i++) out[i] = table[row[i]];
      return;
    }
    case TL_WGMMA_S8:
    case TL_WGMMA_U8:
    case TL_WGMMA_NUM_TYPES:
      return;
  }
}

// out[row][k]
static void widen_a(const tl_wgmma_form *form, tl_emu_wgmma_rows *a, float *out) {
  int k = tl_wgmma_k(form);
  for (int row = 0; row < TL_WGMMA_M; row++, out += k) {
    widen_row(form->a, a[row], out);
    for (int i = 0; form->negate_a && i < k; i++) out[i] = -out[i];
  }
}

// out[k][column]
static void widen_b(const tl_wgmma_form *form, tl_emu_wgmma_rows *b, float *out) {
  int k = tl_wgmma_k(form), n = form->n;
  for (int column = 0; column < n; column++) {
    float row[MAX_K];
    widen_row(form->b, b[column], row);
    for (int i = 0; i < k; i++) out[i * n + column] = form->negate_b ? -row[i] : row[i];
  }
}

// ---- floats

typedef float __attribute__((may_alias)) sum_float;  // sums are kept as words

static void add_products_portable(sum_float *sums, const float *a, const float *b, int n, int k) {
  for (int m = 0; m < TL_WGMMA_M; m++)
    for (int i = 0; i < k; i++) {
      float factor = a[m * k + i];
      const float *row = b + i * n;
      // The products have at most 22 significant bits: rounding them changes nothing, so a fused sum gives the same.
      for (int c = 0; c < n; c++) sums[m * n + c] += factor * row[c];
    }
}

TL_EMU_AVX2 static void add_products_avx2(sum_float *sums, const float *a, const float *b, int n, int k) {
  enum { ROWS = 8 };
  for (int c = 0; c < n; c += 8)
    for (int m = 0; m < TL_WGMMA_M; m += ROWS) {
      __m256 sum[ROWS];
      for (int r = 0; r < ROWS; r++) sum[r] = _mm256_loadu_ps(sums + (m + r) * n + c);
      for (int i = 0; i < k; i++) {
        __m256 row = _mm256_loadu_ps(b + i * n + c);
        for (int r = 0; r < ROWS; r++) sum[r] = _mm256_fmadd_ps(_mm256_broadcast_ss(a + (m + r) * k + i), row, sum[r]);
      }
      for (int r = 0; r < ROWS; r++) _mm256_storeu_ps(sums + (m + r) * n + c, sum[r]);
    }
}

static void multiply_floats(const tl_wgmma_form *form, tl_emu_wgmma_rows *rows_a, tl_emu_wgmma_rows *rows_b,
                            uint32_t *words) {
  float a[TL_WGMMA_M * MAX_K], b[MAX_K * TL_WGMMA_MAX_N];
  sum_float *sums = (sum_float *)words;
  int n = form->n, k = tl_wgmma_k(form);
  widen_a(form, rows_a, a);
  widen_b(form, rows_b, b);
  if (tl_emu_have_avx2())
    add_products_avx2(sums, a, b, n, k);
  else
    add_products_portable(sums, a, b, n, k);
  if (form->sum != TL_WGMMA_SUM_F16) return;
  for (int i = 0; i < TL_WGMMA_M * n; i++) sums[i] = tl_host_f16_to_f32(tl_host_f32_to_f16(sums[i]));
}

// ---- integers

static int16_t integer_at(tl_wgmma_type type, uint8_t byte) {
  return type == TL_WGMMA_S8 ? (int16_t)(int8_t)byte : (int16_t)byte;
}

static int32_t clamped(int64_t value) {
  return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

__attribute__((target_clones("avx2", "default"))) static void dot_products(int32_t *out, const int16_t *a_row,
                                                                           const int16_t *b, int n) {
  memset(out, 0, (size_t)n * sizeof *out);
  for (int i = 0; i < MAX_K; i++)
    for (int c = 0; c < n; c++) out[c] += a_row[i] * b[i * n + c];
}

static void multiply_integers(const tl_wgmma_form *form, tl_emu_wgmma_rows *a, tl_emu_wgmma_rows *b, uint32_t *sums) {
  int16_t a_row[MAX_K], turned[MAX_K * TL_WGMMA_MAX_N];
  int32_t dot[TL_WGMMA_MAX_N];
  int n = form->n;
  for (int c = 0; c < n; c++)
    for (int i = 0; i < MAX_K; i++) turned[i * n + c] = integer_at(form->b, b[c][i]);
  for (int m = 0; m < TL_WGMMA_M; m++, sums += n) {
    for (int i = 0; i < MAX_K; i++) a_row[i] = integer_at(form->a, a[m][i]);
    dot_products(dot, a_row, turned, n);
    for (int c = 0; c < n; c++)
      sums[c] = form->saturate ? (uint32_t)clamped((int64_t)(int32_t)sums[c] + dot[c]) : sums[c] + (uint32_t)dot[c];
  }
}

void tl_emu_wgmma_multiply(const tl_wgmma_form *form, tl_emu_wgmma_rows *a, tl_emu_wgmma_rows *b, bool accumulate,
                           uint32_t *sums) {
  if (!accumulate) memset(sums, 0, (size_t)TL_WGMMA_M * (size_t)form->n * sizeof *sums);
  if (form->sum == TL_WGMMA_SUM_S32)
    multiply_integers(form, a, b, sums);
  else
    multiply_floats(form, a, b, sums);
}
