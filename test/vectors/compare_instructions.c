// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Results of vectors with many instructions, one by one. They are equal to the bit, but for approximate functions,
// which keep the bounds of the PTX ISA, and NaNs of f64 and of atomics, of which the ISA says no bits.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/dtype.h"
#include "vector.h"

typedef struct instruction {
  char text[256];  // "add.sat.s32 $0,$1,$2"
  tl_dtype type;   // of the result's elements; NONE: bits
} instruction;

static const struct {
  const char *name;  // as the text begins
  const char *type;  // and its result
  double relative, absolute;
} bounds[] = {
    // PTX ISA, the sections of the instructions; and half an ulp for the C library's result.
    {"ex2.approx", "f32", 0x1p-22 + 0x1p-24, 0},
    {"lg2.approx", "f32", 0x1p-22 + 0x1p-24, 0x1p-22},
    {"rcp.approx", "f32", 0x1p-23 + 0x1p-24, 0},
    {"rsqrt.approx", "f32", 0x1p-22 + 0x1p-24, 0},
    {"sqrt.approx", "f32", 0x1p-22 + 0x1p-24, 0},
    {"sin.approx", "f32", 0, 0x1p-20},
    {"cos.approx", "f32", 0, 0x1p-20},
    {"div.full", "f32", 0x1p-22 + 0x1p-24, 0},
    {"div.approx", "f32", 0x1p-22 + 0x1p-24, 0},
    {"tanh.approx", "f32", 0x1.03p-11 + 0x1p-24, 0},
    {"rcp.approx", "f64", 0x1p-19, 0},
    {"rsqrt.approx.ftz", "f64", 0x1p-20, 0},
    {"rsqrt.approx.f64", "f64", 0x1p-51, 0},
    {"ex2.approx", "f16", 0x1.2p-10 + 0x1p-11, 0},
    {"ex2.approx", "bf16", 0x1p-7, 0},
    {"tanh.approx", "f16", 0x1p-11, 0x1.03p-11},
    {"tanh.approx", "bf16", 0x1p-8, 0x1p-8},
};

// The last word of the opcode, or, where that is the source's type, the one before.
static void set_type(instruction *i) {
  static const struct {
    const char *name;
    tl_dtype type;
  } types[] = {{"f64", TL_DTYPE_F64}, {"f32", TL_DTYPE_F32},     {"f16x2", TL_DTYPE_F16},
               {"f16", TL_DTYPE_F16}, {"bf16x2", TL_DTYPE_BF16}, {"bf16", TL_DTYPE_BF16}};
  char opcode[128];
  snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(i->text, " "), i->text);
  bool has_source = !strncmp(opcode, "cvt.", 4) || !strncmp(opcode, "set.", 4) || !strncmp(opcode, "slct.", 5);
  char *dot = strrchr(opcode, '.');
  if (dot && has_source) *dot = 0, dot = strrchr(opcode, '.');
  i->type = TL_DTYPE_NONE;
  for (size_t k = 0; dot && k < sizeof types / sizeof types[0]; k++)
    if (!strcmp(dot + 1, types[k].name)) i->type = types[k].type;
}

static instruction find_instruction(const tv_vector *v, int result) {
  instruction found = {{0}, TL_DTYPE_NONE};
  char name[16];
  int length = snprintf(name, sizeof name, "$%d", result);
  const char *at = strstr(v->ptx, name);
  while (at && at[length] >= '0' && at[length] <= '9') at = strstr(at + 1, name);
  if (!at) return found;
  const char *begin = at;
  while (begin > v->ptx && begin[-1] != ';') begin--;
  snprintf(found.text, sizeof found.text, "%.*s", (int)strcspn(begin, ";"), begin + strspn(begin, " "));
  set_type(&found);
  return found;
}

static double number_of(tl_dtype type, const void *bytes, size_t index) {
  double value;
  if (type != TL_DTYPE_F64) return tl_dtype_load_float(type, bytes, index);
  memcpy(&value, bytes, sizeof value);
  return value;
}

// The size of one f32 operand in its thread's arguments, for the ranges of functions.
static double argument_of(const tv_vector *v, size_t thread, int which) {
  float value = 0;
  int results = tv_results(v->signature), arguments = tv_arguments(v->signature);
  size_t at = 0, stride = 0;
  for (int i = 0; i < arguments; i++) {
    size_t bytes = (size_t)tv_letter_bytes(tv_letter(v->signature, results + i));
    if (i < which) at += bytes;
    stride += bytes;
  }
  memcpy(&value, v->in + thread * stride + at, sizeof value);
  return fabs((double)value);
}

// Where the PTX ISA gives a bound: sin and cos up to pi, div.approx for divisors of 2^-126 to 2^126.
static bool is_in_range(const tv_vector *v, const instruction *i, size_t thread) {
  if (!strncmp(i->text, "sin.", 4) || !strncmp(i->text, "cos.", 4)) return argument_of(v, thread, 0) <= 3.1415926;
  if (strncmp(i->text, "div.approx", 10) && strncmp(i->text, "div.full", 8)) return true;
  double divisor = argument_of(v, thread, 1);
  return divisor >= 0x1p-126 && divisor <= 0x1p126;
}

static bool is_close(const instruction *i, const char *type, double want, double got) {
  if ((isnan(want) && isnan(got)) || want == got) return true;
  for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++)
    if (!strncmp(i->text, bounds[k].name, strlen(bounds[k].name)) && !strcmp(bounds[k].type, type)) {
      double least = i->type == TL_DTYPE_F32 ? 0x1p-149 : i->type == TL_DTYPE_F16 ? 0x1p-24 : 0x1p-133;
      return fabs(want - got) <= bounds[k].relative * fabs(want) + bounds[k].absolute + least;
    }
  return false;
}

static bool are_equal(const tv_vector *v, const instruction *i, size_t thread, const uint8_t *want, const uint8_t *got,
                      size_t bytes) {
  if (!memcmp(want, got, bytes)) return true;
  if (i->type == TL_DTYPE_NONE || bytes * 8 < (size_t)tl_dtype_bits(i->type)) return false;
  bool is_approximate = strstr(i->text, ".approx") || strstr(i->text, ".full"),
       is_atomic = !strncmp(i->text, "atom.", 5);
  if (is_approximate && !is_in_range(v, i, thread)) return true;
  const char *type = i->type == TL_DTYPE_F64   ? "f64"
                     : i->type == TL_DTYPE_F32 ? "f32"
                     : i->type == TL_DTYPE_F16 ? "f16"
                                               : "bf16";
  for (size_t e = 0; e < bytes / ((size_t)tl_dtype_bits(i->type) / 8); e++) {
    double a = number_of(i->type, want, e), b = number_of(i->type, got, e);
    size_t size = (size_t)tl_dtype_bits(i->type) / 8;
    if (!memcmp(want + e * size, got + e * size, size)) continue;
    if ((is_atomic || i->type == TL_DTYPE_F64) && isnan(a) && isnan(b)) continue;
    if (!is_approximate || !is_close(i, type, a, b)) return false;
  }
  return true;
}

static uint64_t bits_of(const uint8_t *bytes, size_t size) {
  uint64_t value = 0;
  memcpy(&value, bytes, size);
  return value;
}

static void tell(const tv_vector *v, const instruction *i, size_t thread, uint64_t want, uint64_t got) {
  int results = tv_results(v->signature), arguments = tv_arguments(v->signature);
  size_t stride = 0;
  for (int k = 0; k < arguments; k++) stride += (size_t)tv_letter_bytes(tv_letter(v->signature, results + k));
  const uint8_t *in = v->in + thread * stride;
  printf("%s, thread %zu: 0x%llx, on the GPU 0x%llx, of", i->text, thread, (unsigned long long)got,
         (unsigned long long)want);
  for (int k = 0; k < arguments; k++) {
    size_t size = (size_t)tv_letter_bytes(tv_letter(v->signature, results + k));
    printf(" $%d = 0x%llx", results + k, (unsigned long long)bits_of(in, size));
    in += size;
  }
  printf("\n");
}

bool tv_compare_instructions(const tv_vector *v, const tv_result *result) {
  int results = tv_results(v->signature);
  size_t stride = 0, at = 0;
  bool same = true;
  for (int k = 0; k < results; k++) stride += (size_t)tv_letter_bytes(tv_letter(v->signature, k));
  for (int k = 0; k < results; k++) {
    size_t size = (size_t)tv_letter_bytes(tv_letter(v->signature, k));
    instruction i = find_instruction(v, k);
    for (size_t thread = 0; thread < (size_t)v->threads * v->blocks; thread++) {
      const uint8_t *want = v->out + thread * stride + at, *got = result->out + thread * stride + at;
      if (are_equal(v, &i, thread, want, got, size)) continue;
      tell(v, &i, thread, bits_of(want, size), bits_of(got, size));
      same = false;
      break;
    }
    at += size;
  }
  return same;
}
