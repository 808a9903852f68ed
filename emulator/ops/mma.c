// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mma.sync with 16 rows, and m8n8k4 of f64. PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and
// its neighbours: with g = lane / 4 and p = lane % 4 and a row of A or column of B seen as 32-bit words, the registers
// hold
//   a0: A[g] word p   a1: A[g+8] word p   a2: A[g] word p+4   a3: A[g+8] word p+4
//   b0: B[.][g] word p   b1: B[.][g] word p+4
//   c0, c1: C[g][2p, 2p+1]   c2, c3: C[g+8][2p, 2p+1]; of f16 in two registers
// The forms with half of k have a0, a1, b0, those with 8 rows a0, b0, c0, c1. f64: one element a register, registers
// with row g and g+8 in turn, then the next four k. The sum is taken in k order in float; hardware orders and rounds
// differently.
#include <cpuid.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "emulator/ops/mma.h"
#include "emulator/ops/ops.h"
#include "llvm_backend/jit/host_libcalls.h"

static float widen(uint32_t word, int half, bool bf16) {
  uint16_t bits = (uint16_t)(word >> 16 * half);
  return bf16 ? tl_host_bf16_to_f32(bits) : tl_host_f16_to_f32(bits);
}

typedef struct mma_form {
  bool half_k, rows_8, f16_sums;
} mma_form;

static void gather(const tl_emu_meeting *meeting, mma_form form, tl_emu_mma_tiles *t) {
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    const uint32_t *words = meeting->args[lane];
    uint32_t g = lane / 4, p = lane % 4;
    t->a[g][p] = *words++;
    if (!form.rows_8) t->a[g + 8][p] = *words++;
    if (!form.half_k) {
      t->a[g][p + 4] = *words++;
      t->a[g + 8][p + 4] = *words++;
    }
    t->b[g][p] = *words++;
    if (!form.half_k) t->b[g][p + 4] = *words++;
    if (form.f16_sums) {
      for (int i = 0; i < 4; i++)
        t->c[g + (uint32_t)i / 2 * 8][2 * p + (uint32_t)i % 2] = widen(words[i / 2], i % 2, false);
      continue;
    }
    memcpy(&t->c[g][2 * p], words, 8);
    if (!form.rows_8) memcpy(&t->c[g + 8][2 * p], words + 2, 8);
  }
}

static void scatter(const tl_emu_meeting *meeting, mma_form form, const tl_emu_mma_tiles *t) {
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    uint8_t *result = meeting->result[lane];
    uint32_t g = lane / 4, p = lane % 4;
    if (form.f16_sums) {
      uint16_t halves[4];
      for (uint32_t i = 0; i < 4; i++) halves[i] = tl_host_f32_to_f16(t->c[g + i / 2 * 8][2 * p + i % 2]);
      memcpy(result, halves, sizeof halves);
      continue;
    }
    memcpy(result, &t->c[g][2 * p], 8);
    if (!form.rows_8) memcpy(result + 8, &t->c[g + 8][2 * p], 8);
  }
}

static void multiply_portable(tl_emu_mma_tiles *t, bool k8, bool bf16) {
  uint32_t words = k8 ? 4 : 8;
  float b[16][8];
  for (uint32_t n = 0; n < 8; n++)
    for (uint32_t w = 0; w < words; w++)
      for (int h = 0; h < 2; h++) b[2 * w + (uint32_t)h][n] = widen(t->b[n][w], h, bf16);
  for (uint32_t m = 0; m < 16; m++) {
    for (uint32_t w = 0; w < words; w++) {
      for (int h = 0; h < 2; h++) {
        float a = widen(t->a[m][w], h, bf16);
        // The products of 11-bit (or 8-bit) mantissas are exact in float: a fused sum gives the same.
        for (uint32_t n = 0; n < 8; n++) t->c[m][n] += a * b[2 * w + (uint32_t)h][n];
      }
    }
  }
}

TL_EMU_AVX2 static inline __m256 widen_row(const uint32_t *words, bool bf16) {
  __m128i packed = _mm_loadu_si128((const __m128i *)(const void *)words);
  if (bf16) return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(packed), 16));
  return _mm256_cvtph_ps(packed);
}

// Rows n of eight k become rows k of eight n.
TL_EMU_AVX2 static inline void transpose8(__m256 r[8]) {
  __m256 t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

TL_EMU_AVX2 static inline void multiply_half(tl_emu_mma_tiles *t, uint32_t word, bool bf16) {
  __m256 b[8];
  for (int n = 0; n < 8; n++) b[n] = widen_row(&t->b[n][word], bf16);
  transpose8(b);
  for (int m = 0; m < 16; m++) {
    float a[8];
    _mm256_storeu_ps(a, widen_row(&t->a[m][word], bf16));
    __m256 c = _mm256_loadu_ps(t->c[m]);
    for (int k = 0; k < 8; k++) c = _mm256_fmadd_ps(_mm256_broadcast_ss(&a[k]), b[k], c);
    _mm256_storeu_ps(t->c[m], c);
  }
}

TL_EMU_AVX2 static void multiply_avx2(tl_emu_mma_tiles *t, bool k8, bool bf16) {
  if (bf16) {
    multiply_half(t, 0, true);
    if (!k8) multiply_half(t, 4, true);
  } else {
    multiply_half(t, 0, false);
    if (!k8) multiply_half(t, 4, false);
  }
}

bool tl_emu_have_avx2(void) {
  static int known;  // 0: not asked; the answer is the same whoever asks
  int have = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!have) {
    unsigned eax, ebx, ecx = 0, edx;  // F16C is bit 29 of ecx in leaf 1; not every compiler knows its name
    bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx >> 29 & 1);
    have = f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 2;
    __atomic_store_n(&known, have, __ATOMIC_RELAXED);
  }
  return have == 1;
}

TL_EMU_AVX2 static void widen_f16_avx2(const uint8_t *halves, int count, float *out) {
  for (int i = 0; i < count; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(halves + 2 * i))));
}

void tl_emu_widen_f16(const void *halves, int count, float *out) {
  if (tl_emu_have_avx2()) {
    widen_f16_avx2(halves, count, out);
    return;
  }
  for (int i = 0; i < count; i++) {
    uint16_t bits;
    memcpy(&bits, (const uint8_t *)halves + 2 * i, sizeof bits);
    out[i] = tl_host_f16_to_f32(bits);
  }
}

void tl_emu_mma_multiply(tl_emu_mma_tiles *t, bool k8, bool bf16, bool portable) {
  if (!portable && tl_emu_have_avx2())
    multiply_avx2(t, k8, bf16);
  else
    multiply_portable(t, k8, bf16);
}

void tl_emu_mma_sanitize_full(const tl_emu_warp *warp, const tl_emu_meeting *meeting) {
  if (meeting->mask != ~0u) tl_emu_fail("%s: warp %u has fewer than 32 lanes", meeting->site->op, warp->index);
}

static bool mma_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  tl_emu_mma_sanitize_full(warp, meeting);
  int param = (int)meeting->site->binding->param, type = param & 15;
  mma_form form = {param & TL_EMU_MMA_HALF_K, param & TL_EMU_MMA_8_ROWS, param & TL_EMU_MMA_F16_SUMS};
  tl_emu_mma_tiles t;
  if (form.rows_8) memset(&t, 0, sizeof t);
  gather(meeting, form, &t);
  if (type <= TL_EMU_MMA_BF16)
    tl_emu_mma_multiply(&t, form.half_k, type == TL_EMU_MMA_BF16, false);
  else
    tl_emu_mma_multiply_bytes(&t, param);
  scatter(meeting, form, &t);
  return true;
}

void tl_emu_op_mma(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, mma_work);
}

static bool mma_f64_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  tl_emu_mma_sanitize_full(warp, meeting);
  uint32_t rows = (uint32_t)meeting->site->binding->param / 32, k = (uint32_t)meeting->site->binding->param % 32;
  uint32_t halves = rows / 8, num_a = halves * k / 4, num_b = k / 4;
  double a[16][16], b[16][8];
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    const double *operands = meeting->args[lane];
    uint32_t g = lane / 4, p = lane % 4;
    for (uint32_t i = 0; i < num_a; i++) a[g + i % halves * 8][p + i / halves * 4] = operands[i];
    for (uint32_t i = 0; i < num_b; i++) b[p + i * 4][g] = operands[num_a + i];
  }
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    const double *old = (const double *)meeting->args[lane] + num_a + num_b;
    double *sums = meeting->result[lane];
    for (uint32_t i = 0; i < 2 * halves; i++) {
      double sum = old[i];
      for (uint32_t at = 0; at < k; at++) sum = fma(a[lane / 4 + i / 2 * 8][at], b[at][lane % 4 * 2 + i % 2], sum);
      sums[i] = sum;
    }
  }
  return true;
}

void tl_emu_op_mma_f64(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, mma_f64_work);
}
