// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions, and approximate arithmetic, which is as exact here as the C library: results agree with a GPU to the
// error bounds of the PTX ISA, not to the bit.
#include <math.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "llvm_backend/jit/host_libcalls.h"
#include "support/dtype.h"

// What conversions make of every NaN (recorded on an H200): of f16 and bf16, and of tf32.
enum { NAN_PAIR_HALF = 0x7fff, NAN_TF32 = 0x7fffe000 };

static float flush(float x) {
  return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

static float approximate(tl_emu_approx kind, float x) {
  switch (kind) {
    case TL_EMU_APPROX_EX2:
      return exp2f(x);
    case TL_EMU_APPROX_LG2:
      return log2f(x);
    case TL_EMU_APPROX_RCP:
      return 1.0f / x;
    case TL_EMU_APPROX_RSQRT:
      return (float)(1.0 / sqrt((double)x));
    case TL_EMU_APPROX_SQRT:
      return sqrtf(x);
    case TL_EMU_APPROX_TANH:
      return tanhf(x);
    case TL_EMU_APPROX_SIN:
      return sinf(x);
    case TL_EMU_APPROX_COS:
      return cosf(x);
    case TL_EMU_APPROX_FTZ:
      break;
  }
  return x;
}

void tl_emu_op_approx(void *result, const void *args, const tl_emu_site *site) {
  float x = *(const float *)args;
  bool ftz = site->binding->param & TL_EMU_APPROX_FTZ;
  float y = approximate((tl_emu_approx)(site->binding->param & ~TL_EMU_APPROX_FTZ), ftz ? flush(x) : x);
  *(float *)result = ftz ? flush(y) : y;
}

void tl_emu_op_div(void *result, const void *args, const tl_emu_site *site) {
  const float *x = args;
  bool ftz = site->binding->param & TL_EMU_APPROX_FTZ;
  float y = ftz ? flush(x[0]) / flush(x[1]) : x[0] / x[1];
  *(float *)result = ftz ? flush(y) : y;
}

// PTX ISA, dp4a: d = c; for each byte i: d += Va[i] * Vb[i], extended by the operand's type.
void tl_emu_op_dp4a(void *result, const void *args, const tl_emu_site *site) {
  const uint8_t *a = args, *b = a + 4;
  uint32_t sum;
  memcpy(&sum, a + 8, sizeof sum);
  for (int i = 0; i < 4; i++) {
    int x = site->binding->param & TL_EMU_DP4A_A_SIGNED ? (int8_t)a[i] : a[i];
    int y = site->binding->param & TL_EMU_DP4A_B_SIGNED ? (int8_t)b[i] : b[i];
    sum += (uint32_t)(x * y);
  }
  memcpy(result, &sum, sizeof sum);
}

// PTX ISA, cvt: "for .f16x2 … the converted value of a is in the upper half of d".
void tl_emu_op_cvt_pair(void *result, const void *args, const tl_emu_site *site) {
  const float *x = args;
  uint16_t *pair = result;
  for (int i = 0; i < 2; i++) {
    float value = x[1 - i];
    if ((site->binding->param & TL_EMU_CVT_RELU) && value <= 0) value = 0;  // -0 too
    if (isnan(value))
      pair[i] = NAN_PAIR_HALF;
    else
      pair[i] = site->binding->param & TL_EMU_CVT_BF16 ? tl_host_f32_to_bf16(value) : tl_host_f32_to_f16(value);
  }
}

// .satfinite, and NaN becomes 0x7f.
void tl_emu_op_cvt_to_f8(void *result, const void *args, const tl_emu_site *site) {
  const float *x = args;
  uint8_t *pair = result;
  for (int i = 0; i < 2; i++) {
    float value = x[1 - i];
    if (isnan(value)) {
      pair[i] = 0x7f;
      continue;
    }
    if ((site->binding->param & TL_EMU_F8_RELU) && !(value > 0)) value = 0;
    tl_dtype_store_float((tl_dtype)(site->binding->param & ~TL_EMU_F8_RELU), pair, (uint64_t)i, value);
  }
}

void tl_emu_op_cvt_from_f8(void *result, const void *args, const tl_emu_site *site) {
  uint16_t *pair = result;
  for (uint64_t i = 0; i < 2; i++) {
    float value = (float)tl_dtype_load_float((tl_dtype)site->binding->param, args, i);
    pair[i] = isnan(value) ? NAN_PAIR_HALF : tl_host_f32_to_f16(value);
  }
}

void tl_emu_op_cvt_tf32(void *result, const void *args, const tl_emu_site *site) {
  (void)site;
  float value = *(const float *)args;
  if (isnan(value))
    *(uint32_t *)result = NAN_TF32;
  else
    tl_dtype_store_float(TL_DTYPE_TF32, result, 0, value);
}
