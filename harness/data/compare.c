// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/data/compare.h"

#include <math.h>

// How bad an element is: failures before passes, then by the share of what is allowed, then by the error itself.
typedef struct badness {
  bool failed;
  double share, error;
} badness;

static bool is_worse(badness a, badness b) {
  if (a.failed != b.failed) return a.failed;
  return a.share != b.share ? a.share > b.share : a.error > b.error;
}

static badness rate(bool failed, double error, double allowed) {
  return (badness){failed, error == 0 ? 0 : error / allowed, error};
}

static badness judge_float(double value, double reference, double rounded, double rtol, double atol) {
  // Equal infinities have no difference; an infinite reference allows nothing else.
  if (value == reference) return rate(false, 0, 1);
  if (isnan(value) || isnan(reference)) return rate(true, INFINITY, 1);
  double allowed = atol + rtol * fabs(reference), error = fabs(value - reference);
  // Beyond the dtype's range infinity is the right value, not infinitely wrong.
  if (value == rounded) return isinf(value) ? rate(false, 0, 1) : rate(false, error, allowed);
  if (isinf(value) || isinf(reference)) return rate(true, INFINITY, 1);
  return rate(!(error <= allowed), error, allowed);
}

void tl_compare_float(const tl_array *values, const double *reference, double rtol, double atol,
                      tl_compare_result *out) {
  *out = (tl_compare_result){.count = values->count};
  badness worst = {false, -1, 0};
  for (uint64_t i = 0; i < values->count; i++) {
    double value = tl_dtype_load_float(values->dtype, values->data, i);
    double rounded = tl_dtype_round(values->dtype, reference[i]);
    badness one = judge_float(value, reference[i], rounded, rtol, atol);
    out->num_failed += one.failed;
    if (i > 0 && !is_worse(one, worst)) continue;
    worst = one;
    out->worst = i;
    out->value = value;
    out->reference = isinf(value) && value == rounded ? rounded : reference[i];
  }
  out->error = out->value == out->reference ? 0 : fabs(out->value - out->reference);
}

// An integer of the dtype: the upper half of u64 is stored as negative numbers.
static long double to_real(tl_dtype dtype, int64_t value) {
  return dtype == TL_DTYPE_U64 ? (long double)(uint64_t)value : (long double)value;
}

static badness judge_int(tl_dtype dtype, int64_t value, int64_t reference, double rtol, double atol,
                         double *out_error) {
  long double expected = to_real(dtype, reference);
  *out_error = fabs((double)(to_real(dtype, value) - expected));
  double allowed = atol + rtol * fabs((double)expected);
  return rate(value != reference && !(*out_error <= allowed), *out_error, allowed);
}

void tl_compare_int(const tl_array *values, const int64_t *reference, double rtol, double atol,
                    tl_compare_result *out) {
  *out = (tl_compare_result){.count = values->count, .is_int = true};
  badness worst = {false, -1, 0};
  for (uint64_t i = 0; i < values->count; i++) {
    int64_t value = tl_dtype_load_int(values->dtype, values->data, i);
    double error;
    badness one = judge_int(values->dtype, value, reference[i], rtol, atol, &error);
    out->num_failed += one.failed;
    if (i > 0 && !is_worse(one, worst)) continue;
    worst = one;
    out->worst = i;
    out->error = error;
    out->int_value = value;
    out->int_reference = reference[i];
  }
}

uint64_t tl_compare_list(const tl_array *values, const void *reference, bool is_int, double rtol, double atol,
                         tl_compare_element *out, uint64_t max) {
  uint64_t len = 0;
  for (uint64_t i = 0; i < values->count && len < max; i++) {
    tl_compare_element one = {.index = i};
    badness how;
    double error;
    if (is_int) {
      one.int_value = tl_dtype_load_int(values->dtype, values->data, i);
      one.int_reference = ((const int64_t *)reference)[i];
      how = judge_int(values->dtype, one.int_value, one.int_reference, rtol, atol, &error);
    } else {
      one.value = tl_dtype_load_float(values->dtype, values->data, i);
      one.reference = ((const double *)reference)[i];
      how = judge_float(one.value, one.reference, tl_dtype_round(values->dtype, one.reference), rtol, atol);
    }
    if (how.failed) out[len++] = one;
  }
  return len;
}

void tl_compare_print_index(const tl_array *values, uint64_t flat, tl_strbuf *out) {
  int64_t index[TL_ARRAY_MAX_RANK];
  for (int32_t d = values->rank - 1; d >= 0; d--) {
    index[d] = (int64_t)(flat % (uint64_t)values->shape[d]);
    flat /= (uint64_t)values->shape[d];
  }
  tl_strbuf_append_char(out, '[');
  for (int32_t d = 0; d < values->rank; d++) tl_strbuf_appendf(out, "%s%lld", d ? ", " : "", (long long)index[d]);
  tl_strbuf_append_char(out, ']');
}

static void print_int(tl_dtype dtype, int64_t value, tl_strbuf *out) {
  if (dtype == TL_DTYPE_U64) {
    tl_strbuf_appendf(out, "%llu", (unsigned long long)value);
  } else {
    tl_strbuf_appendf(out, "%lld", (long long)value);
  }
}

void tl_compare_print_element(const tl_array *values, const tl_compare_element *element, bool is_int, tl_strbuf *out) {
  if (is_int) {
    tl_strbuf_append_c(out, ": ");
    print_int(values->dtype, element->int_value, out);
    tl_strbuf_append_c(out, ", expected ");
    print_int(values->dtype, element->int_reference, out);
  } else {
    tl_strbuf_appendf(out, ": %.9g, expected %.9g", element->value, element->reference);
  }
}

void tl_compare_print(const tl_compare_result *result, const char *name, const tl_array *values, tl_strbuf *out) {
  char described[160];
  tl_array_describe(values, described, sizeof described);
  tl_strbuf_appendf(out, "%s: %s", name, described);
  if (result->count == 0) {
    tl_strbuf_append_c(out, ", no elements");
    return;
  }
  if (result->num_failed) {
    tl_strbuf_appendf(out, ", %llu of %llu elements wrong", (unsigned long long)result->num_failed,
                      (unsigned long long)result->count);
  }
  tl_strbuf_appendf(out, ", worst error %.4g at ", result->error);
  tl_compare_print_index(values, result->worst, out);
  const tl_compare_element worst = {result->worst, result->value, result->reference, result->int_value,
                                    result->int_reference};
  tl_compare_print_element(values, &worst, result->is_int, out);
}
