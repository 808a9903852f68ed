// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/data/array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/arena.h"

tl_status tl_array_init_shape(tl_array *array, tl_dtype dtype, int32_t rank, const int64_t *shape) {
  *array = (tl_array){.dtype = dtype, .rank = rank, .count = 1};
  if (rank < 0 || rank > TL_ARRAY_MAX_RANK) {
    return tl_status_make(TL_STATUS_LIMIT, "an array of %d dimensions: at most %d are supported", rank,
                          TL_ARRAY_MAX_RANK);
  }
  for (int32_t d = 0; d < rank; d++) {
    if (shape[d] < 0)
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "an array with the negative extent %lld", (long long)shape[d]);
    array->shape[d] = shape[d];
    if (__builtin_mul_overflow(array->count, (uint64_t)shape[d], &array->count) || array->count > UINT64_C(1) << 40) {
      return tl_status_make(TL_STATUS_LIMIT, "an array of more than 2^40 elements");
    }
  }
  array->bytes = tl_dtype_bytes(dtype, array->count);
  return TL_OK;
}

tl_status tl_array_init(tl_array *array, tl_dtype dtype, int32_t rank, const int64_t *shape) {
  TL_TRY(tl_array_init_shape(array, dtype, rank, shape));
  array->data = calloc(array->bytes ? array->bytes : 1, 1);
  if (!array->data) {
    return tl_status_make(TL_STATUS_LIMIT, "no memory for an array of %llu bytes", (unsigned long long)array->bytes);
  }
  return TL_OK;
}

void tl_array_fini(tl_array *array) {
  free(array->data);
  *array = (tl_array){0};
}

void tl_array_describe(const tl_array *array, char *out, size_t size) {
  size_t at = (size_t)snprintf(out, size, "%s[", tl_dtype_name(array->dtype));
  for (int32_t d = 0; d < array->rank && at < size; d++) {
    at += (size_t)snprintf(out + at, size - at, "%s%lld", d ? ", " : "", (long long)array->shape[d]);
  }
  if (at < size) snprintf(out + at, size - at, "]");
}

double tl_array_number(const tl_array *array, uint64_t index) {
  if (tl_dtype_is_float(array->dtype)) return tl_dtype_load_float(array->dtype, array->data, index);
  int64_t value = tl_dtype_load_int(array->dtype, array->data, index);
  return array->dtype == TL_DTYPE_U64 ? (double)(uint64_t)value : (double)value;
}

static tl_status refuse(const tl_array *from, tl_dtype dtype) {
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "expected %s, given %s", tl_dtype_name(dtype),
                        tl_dtype_name(from->dtype));
}

// Whether arrays of `raw` hold the bits of `dtype` elements.
static bool is_raw(tl_dtype raw, tl_dtype dtype) {
  int bits = tl_dtype_bits(dtype);
  if (dtype == TL_DTYPE_BF16) return raw == TL_DTYPE_U16 || raw == TL_DTYPE_I16;
  if (bits == 4 || (bits == 8 && tl_dtype_is_float(dtype))) return raw == TL_DTYPE_U8 || raw == TL_DTYPE_I8;
  if (dtype == TL_DTYPE_BOOL) return raw == TL_DTYPE_U8;
  return false;
}

static tl_status copy_raw(const tl_array *from, tl_dtype dtype, tl_array *out) {
  int64_t shape[TL_ARRAY_MAX_RANK];
  memcpy(shape, from->shape, sizeof shape);
  if (tl_dtype_bits(dtype) == 4) {
    if (from->rank == 0) return refuse(from, dtype);
    shape[from->rank - 1] *= 2;
  }
  TL_TRY(tl_array_init(out, dtype, from->rank, shape));
  memcpy(out->data, from->data, from->bytes);
  if (dtype == TL_DTYPE_BOOL) {
    for (uint64_t i = 0; i < out->count; i++) ((uint8_t *)out->data)[i] = ((uint8_t *)out->data)[i] != 0;
  }
  return TL_OK;
}

static tl_status convert_ints(const tl_array *from, tl_dtype dtype, tl_array *out) {
  int64_t least = tl_dtype_int_min(dtype);
  uint64_t most = tl_dtype_int_max(dtype);
  for (uint64_t i = 0; i < from->count; i++) {
    int64_t value = tl_dtype_load_int(from->dtype, from->data, i);
    bool is_huge = from->dtype == TL_DTYPE_U64 && value < 0;  // beyond int64
    bool fits = is_huge ? dtype == TL_DTYPE_U64 : value >= least && (value < 0 || (uint64_t)value <= most);
    if (!fits) {
      return tl_status_make(
          TL_STATUS_INVALID_ARGUMENT,
          is_huge ? "element %llu is %llu, which does not fit %s" : "element %llu is %lld, which does not fit %s",
          (unsigned long long)i, (long long)value, tl_dtype_name(dtype));
    }
    tl_dtype_store_int(dtype, out->data, i, value);
  }
  return TL_OK;
}

tl_status tl_array_convert(const tl_array *from, tl_dtype dtype, tl_array *out) {
  *out = (tl_array){0};
  if (is_raw(from->dtype, dtype)) return copy_raw(from, dtype, out);
  bool from_float = tl_dtype_is_float(from->dtype);
  if (!tl_dtype_is_float(dtype) && from_float) return refuse(from, dtype);
  TL_TRY(tl_array_init(out, dtype, from->rank, from->shape));
  if (from->dtype == dtype) {
    memcpy(out->data, from->data, from->bytes);
  } else if (!tl_dtype_is_float(dtype)) {
    tl_status status = convert_ints(from, dtype, out);
    if (status) tl_array_fini(out);
    return status;
  } else {
    for (uint64_t i = 0; i < from->count; i++) {
      tl_dtype_store_float(dtype, out->data, i, tl_array_number(from, i));
    }
  }
  return TL_OK;
}
