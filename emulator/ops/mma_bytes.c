// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mma.sync of tf32, 8-bit and 4-bit integers, bits and 8-bit floats: the words become rows of floats or integers, then
// plain loops that the compiler turns into vector instructions where the CPU has them. Products are exact; integers
// wrap as without .satfinite.
#include <pthread.h>
#include <string.h>

#include "emulator/ops/mma.h"
#include "emulator/ops/ops.h"
#include "llvm_backend/jit/host_libcalls.h"
#include "support/dtype.h"

enum { MAX_K = 64 };

// The value of every 8-bit float; tables[0] is e4m3, tables[1] e5m2.
static float tables[2][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_tables(void) {
  for (int i = 0; i < 256; i++) {
    uint8_t bits = (uint8_t)i;
    tables[0][i] = (float)tl_dtype_load_float(TL_DTYPE_F8E4M3, &bits, 0);
    tables[1][i] = (float)tl_dtype_load_float(TL_DTYPE_F8E5M2, &bits, 0);
  }
}

const float *tl_emu_f8_values(bool e5m2) {
  pthread_once(&tables_once, fill_tables);
  return tables[e5m2];
}

__attribute__((target_clones("avx2", "default"))) static void add_floats(float (*c)[8], const float *a, const float *b,
                                                                         uint32_t k) {
  for (uint32_t m = 0; m < 16; m++)
    for (uint32_t i = 0; i < k; i++)
      for (uint32_t n = 0; n < 8; n++) c[m][n] += a[m * MAX_K + i] * b[i * 8 + n];
}

__attribute__((target_clones("avx2", "default"))) static void add_integers(uint32_t (*c)[8], const int32_t *a,
                                                                           const int32_t *b, uint32_t k) {
  for (uint32_t m = 0; m < 16; m++)
    for (uint32_t i = 0; i < k; i++)
      for (uint32_t n = 0; n < 8; n++) c[m][n] += (uint32_t)(a[m * MAX_K + i] * b[i * 8 + n]);
}

// Byte i of a row of words.
static uint8_t byte_at(const uint32_t *words, uint32_t i) {
  return (uint8_t)(words[i / 4] >> i % 4 * 8);
}

static int32_t integer_at(const uint32_t *words, uint32_t i, tl_emu_mma_type type) {
  switch (type) {
    case TL_EMU_MMA_S8:
      return (int8_t)byte_at(words, i);
    case TL_EMU_MMA_S4:
      return (int8_t)(byte_at(words, i / 2) >> i % 2 * 4 << 4) >> 4;
    case TL_EMU_MMA_U4:
      return byte_at(words, i / 2) >> i % 2 * 4 & 15;
    default:
      return byte_at(words, i);
  }
}

static uint32_t saturated(uint32_t old, uint32_t change) {
  int64_t sum = (int64_t)(int32_t)old + (int32_t)change;
  return sum > INT32_MAX ? (uint32_t)INT32_MAX : sum < INT32_MIN ? (uint32_t)INT32_MIN : (uint32_t)sum;
}

static void multiply_integers(tl_emu_mma_tiles *t, uint32_t k, tl_emu_mma_type type_a, tl_emu_mma_type type_b,
                              bool saturate) {
  int32_t a[16 * MAX_K], b[MAX_K * 8];
  uint32_t c[16][8] = {{0}}, old[16][8];
  for (uint32_t m = 0; m < 16; m++)
    for (uint32_t i = 0; i < k; i++) a[m * MAX_K + i] = integer_at(t->a[m], i, type_a);
  for (uint32_t n = 0; n < 8; n++)
    for (uint32_t i = 0; i < k; i++) b[i * 8 + n] = integer_at(t->b[n], i, type_b);
  memcpy(old, t->c, sizeof old);
  add_integers(c, a, b, k);
  for (uint32_t i = 0; i < 16 * 8; i++)
    c[i / 8][i % 8] = saturate ? saturated(old[i / 8][i % 8], c[i / 8][i % 8]) : old[i / 8][i % 8] + c[i / 8][i % 8];
  memcpy(t->c, c, sizeof c);
}

// tf32: the hardware reads the upper 19 bits.
static float tf32_at(const uint32_t *words, uint32_t i) {
  uint32_t bits = words[i] & 0xffffe000u;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static float through_f16(float value) {
  return tl_host_f16_to_f32(tl_host_f32_to_f16(value));
}

static void multiply_floats(tl_emu_mma_tiles *t, uint32_t k, const float *a_table, const float *b_table,
                            bool f16_sums) {
  float a[16 * MAX_K], b[MAX_K * 8];
  for (uint32_t m = 0; m < 16; m++)
    for (uint32_t i = 0; i < k; i++) a[m * MAX_K + i] = a_table ? a_table[byte_at(t->a[m], i)] : tf32_at(t->a[m], i);
  for (uint32_t n = 0; n < 8; n++)
    for (uint32_t i = 0; i < k; i++) b[i * 8 + n] = b_table ? b_table[byte_at(t->b[n], i)] : tf32_at(t->b[n], i);
  if (!f16_sums) {
    add_floats(t->c, a, b, k);
    return;
  }
  // An H200 converts 8-bit floats to f16, multiplies the lower halves of all words, then the upper ones, and adds the
  // old sum last; all in f16, so that it can overflow in between.
  float sums[16][8] = {{0}};
  for (uint32_t half = 0; half < 2; half++) {
    float a_half[16 * MAX_K], b_half[MAX_K * 8];
    for (uint32_t i = 0; i < k / 2; i++) {
      uint32_t from = i / 2 * 4 + half * 2 + i % 2;
      for (uint32_t m = 0; m < 16; m++) a_half[m * MAX_K + i] = a[m * MAX_K + from];
      memcpy(&b_half[i * 8], &b[from * 8], 8 * sizeof *b);
    }
    add_floats(sums, a_half, b_half, k / 2);
    for (uint32_t i = 0; i < 16 * 8; i++) sums[i / 8][i % 8] = through_f16(sums[i / 8][i % 8]);
  }
  for (uint32_t i = 0; i < 16 * 8; i++) t->c[i / 8][i % 8] += sums[i / 8][i % 8];
}

// Of single bits: how many of a row and a column are set in both, or in one of the two.
static void count_bits(tl_emu_mma_tiles *t, uint32_t words, bool exclusive) {
  for (uint32_t m = 0; m < 16; m++) {
    for (uint32_t n = 0; n < 8; n++) {
      uint32_t sum;
      memcpy(&sum, &t->c[m][n], sizeof sum);
      for (uint32_t w = 0; w < words; w++) {
        uint32_t a = t->a[m][w], b = t->b[n][w];
        sum += (uint32_t)__builtin_popcount(exclusive ? a ^ b : a & b);
      }
      memcpy(&t->c[m][n], &sum, sizeof sum);
    }
  }
}

void tl_emu_mma_multiply_bytes(tl_emu_mma_tiles *t, int param) {
  tl_emu_mma_type a = (tl_emu_mma_type)(param & 15), b = (tl_emu_mma_type)(param >> 4 & 15);
  uint32_t bytes = param & TL_EMU_MMA_HALF_K ? 16 : 32;
  switch (a) {
    case TL_EMU_MMA_TF32:
      multiply_floats(t, bytes / 4, NULL, NULL, false);
      return;
    case TL_EMU_MMA_S8:
    case TL_EMU_MMA_U8:
      multiply_integers(t, bytes, a, b, param & TL_EMU_MMA_SATURATE);
      return;
    case TL_EMU_MMA_S4:
    case TL_EMU_MMA_U4:
      multiply_integers(t, 2 * bytes, a, b, param & TL_EMU_MMA_SATURATE);
      return;
    case TL_EMU_MMA_E4M3:
    case TL_EMU_MMA_E5M2:
      multiply_floats(t, bytes, tl_emu_f8_values(a == TL_EMU_MMA_E5M2), tl_emu_f8_values(b == TL_EMU_MMA_E5M2),
                      param & TL_EMU_MMA_F16_SUMS);
      return;
    case TL_EMU_MMA_AND:
    case TL_EMU_MMA_XOR:
      count_bits(t, bytes / 4, a == TL_EMU_MMA_XOR);
      return;
    case TL_EMU_MMA_F16:
    case TL_EMU_MMA_BF16:
      return;
  }
}
