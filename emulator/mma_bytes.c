// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mma.sync of tf32, 8-bit integers and 8-bit floats: the words become rows of floats or integers, then plain loops that
// the compiler turns into vector instructions where the CPU has them. Products are exact; integers wrap as without
// .satfinite.
#include <pthread.h>
#include <string.h>

#include "emulator/mma.h"
#include "emulator/ops.h"
#include "support/dtype.h"

enum { MAX_K = 32 };

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

static int32_t integer_at(const uint32_t *words, uint32_t i, bool is_signed) {
  uint8_t byte = byte_at(words, i);
  return is_signed ? (int8_t)byte : byte;
}

static void multiply_integers(tl_emu_mma_tiles *t, uint32_t k, bool a_signed, bool b_signed) {
  int32_t a[16 * MAX_K], b[MAX_K * 8];
  uint32_t c[16][8];
  for (uint32_t m = 0; m < 16; m++)
    for (uint32_t i = 0; i < k; i++) a[m * MAX_K + i] = integer_at(t->a[m], i, a_signed);
  for (uint32_t n = 0; n < 8; n++)
    for (uint32_t i = 0; i < k; i++) b[i * 8 + n] = integer_at(t->b[n], i, b_signed);
  memcpy(c, t->c, sizeof c);
  add_integers(c, a, b, k);
  memcpy(t->c, c, sizeof c);
}

// tf32: the hardware reads the upper 19 bits.
static float tf32_at(const uint32_t *words, uint32_t i) {
  uint32_t bits = words[i] & 0xffffe000u;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void multiply_floats(tl_emu_mma_tiles *t, uint32_t k, const float *a_table, const float *b_table) {
  float a[16 * MAX_K], b[MAX_K * 8];
  for (uint32_t m = 0; m < 16; m++)
    for (uint32_t i = 0; i < k; i++) a[m * MAX_K + i] = a_table ? a_table[byte_at(t->a[m], i)] : tf32_at(t->a[m], i);
  for (uint32_t n = 0; n < 8; n++)
    for (uint32_t i = 0; i < k; i++) b[i * 8 + n] = b_table ? b_table[byte_at(t->b[n], i)] : tf32_at(t->b[n], i);
  add_floats(t->c, a, b, k);
}

void tl_emu_mma_multiply_bytes(tl_emu_mma_tiles *t, bool half, int kind) {
  pthread_once(&tables_once, fill_tables);
  uint32_t k = half ? 16 : 32;
  switch ((tl_emu_mma_kind)kind) {
    case TL_EMU_MMA_TF32:
      multiply_floats(t, half ? 4 : 8, NULL, NULL);
      return;
    case TL_EMU_MMA_S8:
      multiply_integers(t, k, true, true);
      return;
    case TL_EMU_MMA_S8_U8:
      multiply_integers(t, k, true, false);
      return;
    case TL_EMU_MMA_U8_S8:
      multiply_integers(t, k, false, true);
      return;
    case TL_EMU_MMA_U8:
      multiply_integers(t, k, false, false);
      return;
    case TL_EMU_MMA_E4M3:
      multiply_floats(t, k, tables[0], tables[0]);
      return;
    case TL_EMU_MMA_E4M3_E5M2:
      multiply_floats(t, k, tables[0], tables[1]);
      return;
    case TL_EMU_MMA_E5M2_E4M3:
      multiply_floats(t, k, tables[1], tables[0]);
      return;
    case TL_EMU_MMA_E5M2:
      multiply_floats(t, k, tables[1], tables[1]);
      return;
    case TL_EMU_MMA_F16:
    case TL_EMU_MMA_F16_F16:
    case TL_EMU_MMA_BF16:
    case TL_EMU_MMA_HALF:
      return;
  }
}
