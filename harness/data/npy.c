// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/data/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/data/file.h"
#include "support/arena.h"

static const struct {
  const char *descr;  // without the byte order
  tl_dtype dtype;
} npy_types[] = {{"f8", TL_DTYPE_F64}, {"f4", TL_DTYPE_F32}, {"f2", TL_DTYPE_F16}, {"i8", TL_DTYPE_I64},
                 {"i4", TL_DTYPE_I32}, {"i2", TL_DTYPE_I16}, {"i1", TL_DTYPE_I8},  {"u8", TL_DTYPE_U64},
                 {"u4", TL_DTYPE_U32}, {"u2", TL_DTYPE_U16}, {"u1", TL_DTYPE_U8},  {"b1", TL_DTYPE_BOOL}};

static tl_status malformed(const char *what) {
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "not a .npy file: %s", what);
}

// The value behind 'key': in the header's Python dictionary; empty when absent.
static tl_str header_value(tl_str header, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "'%s':", key);
  const char *at = memmem(header.data, header.len, quoted, strlen(quoted));
  if (!at) return (tl_str){0};
  at += strlen(quoted);
  return tl_str_trim(tl_str_sub(header, (size_t)(at - header.data), header.len - (size_t)(at - header.data)));
}

static tl_status parse_type(tl_str header, tl_dtype *out, bool *out_big_endian) {
  tl_str value = header_value(header, "descr");
  if (value.len < 5 || value.data[0] != '\'') {
    return tl_status_make(TL_STATUS_UNSUPPORTED, "the .npy file holds structured elements");
  }
  value = tl_str_sub(value, 1, value.len - 1);
  size_t end = tl_str_find(value, '\'');
  if (end == SIZE_MAX || end < 2) return malformed("bad 'descr'");
  tl_str descr = tl_str_sub(value, 0, end);
  *out_big_endian = descr.data[0] == '>';
  if (strchr("<>|=", descr.data[0])) descr = tl_str_sub(descr, 1, descr.len - 1);
  for (size_t i = 0; i < sizeof npy_types / sizeof npy_types[0]; i++) {
    if (tl_str_is(descr, npy_types[i].descr)) {
      *out = npy_types[i].dtype;
      return TL_OK;
    }
  }
  return tl_status_make(TL_STATUS_UNSUPPORTED, "the .npy file's element type '%.*s' is unknown here",
                        TL_STR_ARG(descr));
}

static tl_status parse_shape(tl_str header, int32_t *out_rank, int64_t *shape) {
  tl_str value = header_value(header, "shape");
  if (value.len < 2 || value.data[0] != '(') return malformed("bad 'shape'");
  *out_rank = 0;
  size_t at = 1;
  while (at < value.len && value.data[at] != ')') {
    char c = value.data[at];
    if (c == ' ' || c == ',' || c == 'L') {
      at++;
      continue;
    }
    if (c < '0' || c > '9') return malformed("bad 'shape'");
    if (*out_rank == TL_ARRAY_MAX_RANK)
      return tl_status_make(TL_STATUS_LIMIT, "the .npy file has more than 8 dimensions");
    int64_t extent = 0;
    for (; at < value.len && value.data[at] >= '0' && value.data[at] <= '9'; at++) {
      if (extent > INT64_MAX / 16) return malformed("an extent is too large");
      extent = extent * 10 + (value.data[at] - '0');
    }
    shape[(*out_rank)++] = extent;
  }
  return at < value.len ? TL_OK : malformed("bad 'shape'");
}

static void swap_bytes(tl_array *array) {
  size_t size = (size_t)tl_dtype_bits(array->dtype) / 8;
  uint8_t *bytes = array->data;
  for (uint64_t i = 0; i < array->count; i++, bytes += size) {
    for (size_t b = 0; b < size / 2; b++) {
      uint8_t other = bytes[size - 1 - b];
      bytes[size - 1 - b] = bytes[b];
      bytes[b] = other;
    }
  }
}

// Column-major data into row-major order.
static void copy_fortran(tl_array *array, const uint8_t *from) {
  size_t size = (size_t)tl_dtype_bits(array->dtype) / 8;
  int64_t index[TL_ARRAY_MAX_RANK] = {0};
  for (uint64_t i = 0; i < array->count; i++) {
    uint64_t at = 0, stride = 1;
    for (int32_t d = 0; d < array->rank; d++) {
      at += (uint64_t)index[d] * stride;
      stride *= (uint64_t)array->shape[d];
    }
    memcpy((uint8_t *)array->data + i * size, from + at * size, size);
    for (int32_t d = array->rank - 1; d >= 0 && ++index[d] == array->shape[d]; d--) index[d] = 0;
  }
}

tl_status tl_npy_parse(tl_str bytes, tl_array *out) {
  *out = (tl_array){0};
  if (bytes.len < 10 || memcmp(bytes.data, "\x93NUMPY", 6) != 0) return malformed("it does not begin with \\x93NUMPY");
  const uint8_t *u = (const uint8_t *)bytes.data;
  int version = u[6];
  if (version < 1 || version > 3) return tl_status_make(TL_STATUS_UNSUPPORTED, "unknown .npy version %d", version);
  size_t start = version == 1 ? 10 : 12;
  if (bytes.len < start) return malformed("it is cut short");
  size_t header_len = u[8] | (size_t)u[9] << 8;
  if (version > 1) header_len |= (size_t)u[10] << 16 | (size_t)u[11] << 24;
  if (bytes.len - start < header_len) return malformed("it is cut short");
  tl_str header = tl_str_sub(bytes, start, header_len);
  tl_dtype dtype = TL_DTYPE_NONE;
  bool big_endian = false;
  int32_t rank = 0;
  int64_t shape[TL_ARRAY_MAX_RANK];
  TL_TRY(parse_type(header, &dtype, &big_endian));
  TL_TRY(parse_shape(header, &rank, shape));
  bool is_fortran = tl_str_starts_with(header_value(header, "fortran_order"), "True");
  // The size in the header against the size of the file, before memory is taken.
  uint64_t left = bytes.len - start - header_len, need = (uint64_t)tl_dtype_bits(dtype) / 8;
  for (int32_t d = 0; d < rank; d++) {
    if (__builtin_mul_overflow(need, (uint64_t)shape[d], &need)) return malformed("the shape is too large");
  }
  if (left < need) return malformed("it is cut short");
  TL_TRY(tl_array_init(out, dtype, rank, shape));
  const char *data = bytes.data + start + header_len;
  if (is_fortran && rank > 1) {
    copy_fortran(out, (const uint8_t *)data);
  } else {
    memcpy(out->data, data, out->bytes);
  }
  if (big_endian) swap_bytes(out);
  return TL_OK;
}

tl_status tl_npy_read(const char *path, tl_array *out) {
  *out = (tl_array){0};
  tl_strbuf bytes;
  tl_strbuf_init(&bytes);
  tl_status status = tl_file_read(path, &bytes);
  if (!status) status = tl_status_annotate(tl_npy_parse(tl_strbuf_view(&bytes), out), "%s", path);
  tl_strbuf_fini(&bytes);
  return status;
}

tl_status tl_npy_print(const tl_array *array, tl_strbuf *out) {
  tl_dtype dtype = array->dtype;
  if (dtype == TL_DTYPE_BF16) dtype = TL_DTYPE_U16;
  if (dtype == TL_DTYPE_TF32) dtype = TL_DTYPE_F32;
  bool is_packed = tl_dtype_bits(dtype) == 4;
  if (is_packed || (tl_dtype_is_float(dtype) && tl_dtype_bits(dtype) == 8)) dtype = TL_DTYPE_U8;
  const char *descr = NULL;
  for (size_t i = 0; i < sizeof npy_types / sizeof npy_types[0]; i++) {
    if (npy_types[i].dtype == dtype) descr = npy_types[i].descr;
  }
  if (!descr) return tl_status_make(TL_STATUS_UNSUPPORTED, "no .npy type for %s", tl_dtype_name(array->dtype));
  if (is_packed && (array->rank == 0 || array->shape[array->rank - 1] % 2 != 0)) {
    return tl_status_make(TL_STATUS_UNSUPPORTED, "a .npy file of %s needs an even last extent",
                          tl_dtype_name(array->dtype));
  }
  tl_strbuf header;
  tl_strbuf_init(&header);
  tl_strbuf_appendf(&header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", descr[1] == '1' ? '|' : '<',
                    descr);
  for (int32_t d = 0; d < array->rank; d++) {
    int64_t extent = is_packed && d == array->rank - 1 ? array->shape[d] / 2 : array->shape[d];
    tl_strbuf_appendf(&header, "%s%lld", d ? ", " : "", (long long)extent);
  }
  tl_strbuf_append_c(&header, array->rank == 1 ? ",), }" : "), }");
  while ((10 + header.len + 1) % 64 != 0) tl_strbuf_append_char(&header, ' ');
  tl_strbuf_append_char(&header, '\n');
  const char magic[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(header.len & 255), (char)(header.len >> 8)};
  tl_strbuf_append(out, (tl_str){magic, sizeof magic});
  tl_strbuf_append(out, tl_strbuf_view(&header));
  tl_strbuf_append(out, (tl_str){array->data, array->bytes});
  tl_strbuf_fini(&header);
  return TL_OK;
}

tl_status tl_npy_write(const char *path, const tl_array *array) {
  tl_strbuf bytes;
  tl_strbuf_init(&bytes);
  tl_status status = tl_npy_print(array, &bytes);
  if (!status) status = tl_file_write(path, tl_strbuf_view(&bytes));
  tl_strbuf_fini(&bytes);
  return status;
}
