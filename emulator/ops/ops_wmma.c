// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wmma.mma (PTX ISA): fragments are opaque. Lane l holds, of each operand, the elements from l times the number of its
// places on, row by row; where there are more places than elements the first one counts (rules_wmma.c).
#include <math.h>
#include <string.h>

#include "emulator/ops/mma.h"
#include "emulator/ops/ops.h"
#include "llvm_backend/jit/host_libcalls.h"

static const struct {
  uint32_t m, n, k;
} shapes[] = {[TL_EMU_WMMA_16_16_16] = {16, 16, 16},
              [TL_EMU_WMMA_8_32_16] = {8, 32, 16},
              [TL_EMU_WMMA_32_8_16] = {32, 8, 16},
              [TL_EMU_WMMA_16_16_8] = {16, 16, 8},
              [TL_EMU_WMMA_8_8_4] = {8, 8, 4}};

enum { MAX_ELEMENTS = 512 };

typedef struct fragment {
  tl_emu_wmma_type type;
  uint32_t elements, places, bytes;  // of the matrix, of a lane, of an element
} fragment;

static fragment fragment_of(tl_emu_wmma_type type, uint32_t elements) {
  static const uint32_t bytes[] = {
      [TL_EMU_WMMA_F16] = 2, [TL_EMU_WMMA_BF16] = 2, [TL_EMU_WMMA_TF32] = 4, [TL_EMU_WMMA_F32] = 4,
      [TL_EMU_WMMA_F64] = 8, [TL_EMU_WMMA_S8] = 1,   [TL_EMU_WMMA_U8] = 1,   [TL_EMU_WMMA_S32] = 4};
  fragment f = {type, elements, elements / TL_EMU_WARP, bytes[type]};
  return f;
}

static double load(tl_emu_wmma_type type, const void *at) {
  uint16_t half;
  uint32_t word;
  int32_t integer;
  float single;
  double wide;
  switch (type) {
    case TL_EMU_WMMA_F16:
    case TL_EMU_WMMA_BF16:
      memcpy(&half, at, sizeof half);
      return type == TL_EMU_WMMA_F16 ? tl_host_f16_to_f32(half) : tl_host_bf16_to_f32(half);
    case TL_EMU_WMMA_TF32:
      memcpy(&word, at, sizeof word);
      word &= ~UINT32_C(0x1fff);  // the bits that tf32 has
      memcpy(&single, &word, sizeof single);
      return single;
    case TL_EMU_WMMA_F32:
      memcpy(&single, at, sizeof single);
      return single;
    case TL_EMU_WMMA_F64:
      memcpy(&wide, at, sizeof wide);
      return wide;
    case TL_EMU_WMMA_S8:
      return *(const int8_t *)at;
    case TL_EMU_WMMA_U8:
      return *(const uint8_t *)at;
    case TL_EMU_WMMA_S32:
      break;
  }
  memcpy(&integer, at, sizeof integer);
  return integer;
}

static void store(tl_emu_wmma_type type, void *at, double value) {
  float single = (float)value;
  int32_t integer = (int32_t)(uint32_t)(int64_t)value;
  uint16_t half;
  if (type == TL_EMU_WMMA_F16) {
    half = tl_host_f32_to_f16(single);
    memcpy(at, &half, sizeof half);
  } else if (type == TL_EMU_WMMA_F32) {
    memcpy(at, &single, sizeof single);
  } else if (type == TL_EMU_WMMA_F64) {
    memcpy(at, &value, sizeof value);
  } else {
    memcpy(at, &integer, sizeof integer);
  }
}

// All elements of a fragment that begins `skip` bytes into the operands of every lane.
static void gather(const tl_emu_meeting *meeting, const fragment *f, size_t skip, double *out) {
  for (uint32_t i = 0; i < f->elements; i++)
    out[i] = load(f->type, (const uint8_t *)meeting->args[i / f->places] + skip + i % f->places * f->bytes);
}

typedef struct product {
  uint32_t m, n, k;
  fragment a, b, c, d;
  bool saturates;
} product;

static double round_sum(const product *p, double sum) {
  if (p->a.type == TL_EMU_WMMA_F64) return sum;
  if (p->c.type != TL_EMU_WMMA_S32) return (float)sum;
  if (p->saturates) return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
  return sum;  // exact in 53 bits
}

static void multiply(const product *p, const double *a, const double *b, double *c) {
  for (uint32_t i = 0; i < p->m; i++)
    for (uint32_t j = 0; j < p->n; j++) {
      double sum = c[i * p->n + j];
      for (uint32_t k = 0; k < p->k; k++) {
        double x = a[i * p->k + k], y = b[k * p->n + j];
        sum = p->a.type == TL_EMU_WMMA_F64 ? fma(x, y, sum) : round_sum(p, sum + x * y);
      }
      c[i * p->n + j] = sum;
    }
}

static size_t bytes_of(const fragment *f) {
  return (size_t)f->places * f->bytes;
}

static bool run(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  tl_emu_mma_sanitize_full(warp, meeting);
  int param = (int)meeting->site->binding->param;
  uint32_t m = shapes[param & 0xf].m, n = shapes[param & 0xf].n, k = shapes[param & 0xf].k;
  tl_emu_wmma_type of_a = (tl_emu_wmma_type)(param >> 4 & 0xf), of_c = (tl_emu_wmma_type)(param >> 8 & 0xf);
  product p = {.m = m, .n = n, .k = k, .saturates = param >> 16 & 1};
  p.a = fragment_of(of_a, m * k);
  p.b = fragment_of(of_a, k * n);
  p.c = fragment_of(of_c, m * n);
  p.d = fragment_of((tl_emu_wmma_type)(param >> 12 & 0xf), m * n);
  if (of_a == TL_EMU_WMMA_F16) p.a.places = p.b.places = 16;  // eight registers, whatever the shape
  double a[MAX_ELEMENTS], b[MAX_ELEMENTS], c[MAX_ELEMENTS];
  gather(meeting, &p.a, 0, a);
  gather(meeting, &p.b, bytes_of(&p.a), b);
  gather(meeting, &p.c, bytes_of(&p.a) + bytes_of(&p.b), c);
  multiply(&p, a, b, c);
  for (uint32_t i = 0; i < p.d.elements; i++)
    store(p.d.type, (uint8_t *)meeting->result[i / p.d.places] + i % p.d.places * p.d.bytes, c[i]);
  return true;
}

void tl_emu_op_wmma(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, run);
}
