// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far the emulator may be from the GPU. Everything is equal to the bit, but for sums of products of floats and for
// approximate functions; a NaN that arithmetic makes equals any other.
//
// Sums. The GPU takes products exactly, shifts all terms to the exponent of the largest and drops what falls below a
// few bits more than the accumulator has; the emulator rounds after each term. Each error is below u × S, where S is
// the sum of the terms' magnitudes, so both differ by less than c × u × S. S comes out of the emulator itself, run with
// all signs cleared: no layout is needed for it. A product beyond the range of f32 is infinite in the emulator and
// exact on the GPU: where S is infinite, the emulator's infinities and NaNs pass for any number of the GPU.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/dtype.h"
#include "vector.h"

typedef enum kind { EXACT, SUM_F32, SUM_F16, SUM_F64, FUNCTION } kind;
typedef enum nan_type { NO_NAN, NAN_F16, NAN_BF16, NAN_F32, NAN_F64 } nan_type;

typedef struct rule {
  kind how;
  double bound;            // sums: of |difference| / S; functions: relative error
  double absolute, range;  // functions: absolute error; arguments beyond are not compared (0: all are)
  uint32_t sign_mask;      // of a register of the factors
} rule;

static struct {
  char key[96];
  unsigned vectors, failures;
  double worst;  // in units of the bound
} seen[512];
static unsigned num_seen;

static unsigned find_key(const tv_vector *v) {
  char key[96];
  const char *dot = strncmp(v->name, "wgmma.", 6) ? NULL : strchr(v->name + 6, '.');
  snprintf(key, sizeof key, "%s%s", dot ? "wgmma" : "", dot ? dot : v->name);
  for (unsigned i = 0; i < num_seen; i++)
    if (!strcmp(seen[i].key, key)) return i;
  if (num_seen == sizeof seen / sizeof seen[0]) abort();
  strcpy(seen[num_seen].key, key);
  return num_seen++;
}

void tv_print_errors(void) {
  for (unsigned i = 0; i < num_seen; i++) {
    printf("%-56s %3u vectors", seen[i].key, seen[i].vectors);
    if (seen[i].worst > 0) printf(", error %.4f of the bound", seen[i].worst);
    if (seen[i].failures) printf(", %u DIFFER", seen[i].failures);
    printf("\n");
  }
}

static const struct {
  const char *name;
  double relative, absolute, range;
} functions[] = {
    // PTX ISA, the sections of the instructions; and half an ulp for the C library's result.
    {"llvm.nvvm.ex2.approx", 0x1p-22 + 0x1p-24, 0, 0},  {"llvm.nvvm.lg2.approx", 0x1p-22 + 0x1p-24, 0x1p-22, 0},
    {"llvm.nvvm.rcp.approx", 0x1p-23 + 0x1p-24, 0, 0},  {"llvm.nvvm.rsqrt.approx", 0x1p-22 + 0x1p-24, 0, 0},
    {"llvm.nvvm.sqrt.approx", 0x1p-22 + 0x1p-24, 0, 0}, {"llvm.nvvm.sin.approx", 0, 0x1p-20, 3.1415926},
    {"llvm.nvvm.cos.approx", 0, 0x1p-20, 3.1415926},    {"llvm.nvvm.div.full", 0x1p-22 + 0x1p-24, 0, 0},
    {"tl.tanh.approx.f32", 0x1.03p-11 + 0x1p-24, 0, 0},
};

// The types in the instruction's name: D.A.B.
static void types_of(const tv_vector *v, char sum[8], char factor[8]) {
  const char *at = strchr(v->name + 6, '.');
  if (strncmp(v->name, "wgmma.", 6)) {
    at = strstr(v->ptx, ".aligned.m") + strlen(".aligned");
    for (int skip = 0; skip < 3; skip++) at = strchr(at + 1, '.');  // shape and layouts
    if (!strncmp(at, ".satfinite", 10)) at += 10;
  }
  if (sscanf(at, ".%7[a-z0-9].%7[a-z0-9]", sum, factor) != 2) abort();
}

static rule sum_rule(const char *sum, const char *factor, bool is_wgmma) {
  rule r = {.how = EXACT};
  bool bytes = factor[0] == 'e';
  if (strcmp(sum, "s32") == 0) return r;
  r.sign_mask = bytes ? 0x80808080u : strstr(factor, "f16") ? 0x80008000u : 0x80000000u;
  if (!strcmp(sum, "f64")) return r.how = SUM_F64, r.bound = 0x1p-49, r;
  // wgmma keeps 13 bits below the largest term for 8-bit floats; all others 23 or more.
  r.how = !strcmp(sum, "f16") ? SUM_F16 : SUM_F32;
  r.bound = bytes ? 33 * (is_wgmma ? 0x1p-14 : 0x1p-23) : 17 * 0x1p-23;
  if (r.how == SUM_F16) r.bound += 0x1p-10;
  return r;
}

static rule rule_of(const tv_vector *v) {
  char sum[8], factor[8];
  if (!strncmp(v->name, "llvm.nvvm.mma.", 14) || !strncmp(v->name, "wgmma.", 6)) {
    types_of(v, sum, factor);
    rule r = sum_rule(sum, factor, v->name[0] == 'w');
    if (tv_setting_is(v, "data", "small")) r.how = EXACT;
    return r;
  }
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    if (!strncmp(v->name, functions[i].name, strlen(functions[i].name)))
      return (rule){FUNCTION, functions[i].relative, functions[i].absolute, functions[i].range, 0};
  return (rule){.how = EXACT};
}

// Element `i` of packed results as a number. E and Y have two elements a register.
static double number(kind how, const uint8_t *bytes, size_t i) {
  float f;
  double d;
  if (how == SUM_F64) return memcpy(&d, bytes + 8 * i, 8), d;
  if (how == SUM_F16) return tl_dtype_load_float(TL_DTYPE_F16, bytes, i);
  return memcpy(&f, bytes + 4 * i, 4), f;
}

static void clear_signs(uint8_t *bytes, size_t count, uint32_t mask) {
  for (size_t i = 0; i + 4 <= count; i += 4) {
    uint32_t word;
    memcpy(&word, bytes + i, 4);
    word &= ~mask;
    memcpy(bytes + i, &word, 4);
  }
}

// The sums of magnitudes, in the place of the results. Operands that are no floats (addresses, descriptors, predicates,
// the metadata of mma.sp) stay as they are.
static bool magnitudes(const tv_vector *v, const rule *r, uint8_t *out) {
  static const char letters[] = "fEdi";
  tv_vector positive = *v;
  char setting[160];
  snprintf(setting, sizeof setting, "%s", v->setting);
  for (char *at = setting; (at = strstr(at, "=-1")); at++) at[1] = '+';
  positive.setting = setting;
  uint8_t *in = malloc(v->in_bytes), *shared = malloc(v->shared_bytes + 1);
  if (!in || !shared) abort();
  memcpy(in, v->in, v->in_bytes);
  uint8_t *at = in;
  int results = tv_results(v->signature), arguments = tv_arguments(v->signature);
  int metadata = tv_setting(v, "selector", -1) >= 0 ? arguments - 1 : arguments;
  for (size_t thread = 0; thread < (size_t)v->threads * v->blocks; thread++) {
    for (int i = 0; i < arguments; i++) {
      char letter = tv_letter(v->signature, results + i);
      size_t bytes = (size_t)tv_letter_bytes(letter);
      if (letter == 'd')
        at[7] &= 0x7f;
      else if (strchr(letters, letter) && i < metadata)
        clear_signs(at, bytes, letter == 'f' ? 0x80000000u : letter == 'E' ? 0x80008000u : r->sign_mask);
      at += bytes;
    }
  }
  if (v->shared_bytes) memcpy(shared, v->shared_before, v->shared_bytes);
  clear_signs(shared, v->shared_bytes, r->sign_mask);
  positive.shared_before = shared;
  uint8_t *spare = malloc(v->shared_bytes + v->global_bytes + 1);
  tv_result result = {out, spare, spare + v->shared_bytes};
  // The setting is for IR; text of PTX has its signs in itself.
  bool via_ptx = tv_via_ptx;
  tv_via_ptx = false;
  tl_status status = tv_execute(&positive, in, &result);
  tv_via_ptx = via_ptx;
  bool ok = !status;
  tl_status_free(status);
  free(in), free(shared), free(spare);
  return ok;
}

static bool same_class(double a, double b) {
  return (isnan(a) && isnan(b)) || (isinf(a) && a == b);
}

// The largest error in units of the bound, or infinity.
static double sum_error(const tv_vector *v, const tv_result *result, const rule *r) {
  uint8_t *sums = malloc(v->out_bytes);
  double worst = 0;
  if (!sums || !magnitudes(v, r, sums)) return free(sums), INFINITY;
  size_t count = v->out_bytes / (r->how == SUM_F64 ? 8 : r->how == SUM_F16 ? 2 : 4);
  for (size_t i = 0; i < count; i++) {
    double want = number(r->how, v->out, i), got = number(r->how, result->out, i), of = number(r->how, sums, i);
    if (same_class(want, got) || want == got || (isinf(of) && !isnan(want) && !isfinite(got))) continue;
    double error = fabs(want - got) / (r->bound * of);
    if (!(error <= worst)) worst = isfinite(error) ? error : INFINITY;
  }
  free(sums);
  return worst;
}

static double function_error(const tv_vector *v, const tv_result *result, const rule *r) {
  double worst = 0;
  size_t arguments = (size_t)tv_arguments(v->signature);
  for (size_t i = 0; i < v->out_bytes / 4; i++) {
    double want = number(FUNCTION, v->out, i), got = number(FUNCTION, result->out, i);
    if (r->range > 0 && !(fabs(number(FUNCTION, v->in, i * arguments)) <= r->range)) continue;
    if (same_class(want, got) || want == got) continue;
    // The last term: the spacing of subnormal numbers.
    double error = fabs(want - got) / (r->bound * fabs(want) + r->absolute + 0x1p-149);
    if (!(error <= worst)) worst = isfinite(error) ? error : INFINITY;
  }
  return worst;
}

// What atomic additions work on: their NaNs are arithmetic's.
static nan_type atomic_type(const tv_vector *v) {
  static const struct {
    const char *suffix;
    nan_type type;
  } instructions[] = {{"bf16x2", NAN_BF16}, {"bf16", NAN_BF16}, {"f16x2", NAN_F16},
                      {"f16", NAN_F16},     {"f32", NAN_F32},   {"f64", NAN_F64}};
  bool is_instruction = !strncmp(v->name, "ptx.atom,", 9) || !strncmp(v->name, "ptx.red,", 8);
  for (size_t i = 0; is_instruction && i < sizeof instructions / sizeof instructions[0]; i++)
    if (strstr(v->name, instructions[i].suffix)) return instructions[i].type;
  bool is_atomic = !strcmp(v->name, "atomicrmw fadd");
  if (!is_atomic && strncmp(v->name, "tl.red.global.add.", 18)) return NO_NAN;
  char letter = v->signature[0];
  if (strstr(v->name, "bf16x2") || (is_atomic && strchr("yY", letter))) return NAN_BF16;
  if (strstr(v->name, "f16x2") || (is_atomic && strchr("eE", letter))) return NAN_F16;
  return is_atomic && letter == 'd' ? NAN_F64 : NAN_F32;
}

static bool is_nan(nan_type type, const uint8_t *bytes, size_t i) {
  static const uint64_t infinities[] = {0, 0x7c00, 0x7f80, 0x7f800000, 0x7ff0000000000000};
  static const uint8_t sizes[] = {0, 2, 2, 4, 8};
  uint64_t bits = 0, size = sizes[type];
  memcpy(&bits, bytes + i / size * size, size);
  return (bits & ~((uint64_t)1 << (8 * size - 1))) > infinities[type];
}

static bool equal_bytes(const tv_vector *v, const char *what, const uint8_t *want, const uint8_t *got, size_t count) {
  nan_type type = atomic_type(v);
  for (size_t i = 0; i < count; i++) {
    if (want[i] == got[i] || (type && is_nan(type, want, i) && is_nan(type, got, i))) continue;
    printf("%s (%s): %s byte %zu is %02x, on the GPU %02x\n", v->name, v->setting, what, i, got[i], want[i]);
    return false;
  }
  return true;
}

bool tv_compare(const tv_vector *v, const tv_result *result) {
  unsigned key = find_key(v);
  rule r = rule_of(v);
  bool same = true;
  double error = 0;
  bool is_function = tv_via_ptx && (strstr(v->ptx, ".approx") || strstr(v->ptx, ".full"));
  if (is_function || !strncmp(v->name, "ptx.", 4))
    same = tv_compare_instructions(v, result);
  else if (r.how == EXACT)
    same = equal_bytes(v, "result", v->out, result->out, v->out_bytes);
  else
    error = r.how == FUNCTION ? function_error(v, result, &r) : sum_error(v, result, &r);
  if (error > 1) printf("%s (%s): error %g of the bound\n", v->name, v->setting, error);
  same = same && error <= 1;
  const uint8_t *shared = v->shared_after ? v->shared_after : v->shared_before;
  const uint8_t *global = v->global_after ? v->global_after : v->global_before;
  same = equal_bytes(v, "shared", shared, result->shared, v->shared_bytes) && same;
  same = equal_bytes(v, "global", global, result->global, v->global_bytes) && same;
  seen[key].vectors++;
  seen[key].failures += !same;
  if (error > seen[key].worst) seen[key].worst = error;
  return same;
}
