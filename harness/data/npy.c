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

// ---- the header: a Python dictionary of three entries

// What the header says; the values are texts of the dictionary.
typedef struct npy_header {
  tl_str descr, fortran_order, shape;
} npy_header;

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(tl_str *at) {
  while (at->len && is_blank(at->data[0])) *at = tl_str_sub(*at, 1, at->len - 1);
}

static bool skip_char(tl_str *at, char c) {
  skip_blanks(at);
  if (!at->len || at->data[0] != c) return false;
  *at = tl_str_sub(*at, 1, at->len - 1);
  return true;
}

// A quoted word without escapes; `out` is what stands between the quotes.
static bool take_word(tl_str *at, tl_str *out) {
  skip_blanks(at);
  if (!at->len || (at->data[0] != '\'' && at->data[0] != '"')) return false;
  tl_str rest = tl_str_sub(*at, 1, at->len - 1);
  size_t end = tl_str_find(rest, at->data[0]);
  if (end == SIZE_MAX) return false;
  *out = tl_str_sub(rest, 0, end);
  *at = tl_str_sub(rest, end + 1, rest.len - end - 1);
  return true;
}

// A value up to the comma or brace that ends it, with its quotes and brackets.
static bool take_value(tl_str *at, tl_str *out) {
  skip_blanks(at);
  size_t len = 0;
  int depth = 0;
  char quote = 0;
  for (; len < at->len; len++) {
    char c = at->data[len];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (depth == 0 && (c == ',' || c == '}')) {
      break;
    } else if (c == '(' || c == '[' || c == '{') {
      depth++;
    } else if (c == ')' || c == ']' || c == '}') {
      depth--;
    }
  }
  *out = tl_str_trim(tl_str_sub(*at, 0, len));
  *at = tl_str_sub(*at, len, at->len - len);
  return out->len > 0 && !quote && depth == 0 && at->len > 0;
}

// Exactly the keys that the format has, each once, and nothing but blanks behind the dictionary.
static tl_status parse_header(tl_str text, npy_header *out) {
  const struct {
    const char *name;
    tl_str *value;
  } keys[] = {{"descr", &out->descr}, {"fortran_order", &out->fortran_order}, {"shape", &out->shape}};
  enum { NUM_KEYS = sizeof keys / sizeof keys[0] };
  *out = (npy_header){0};
  if (!skip_char(&text, '{')) return malformed("the header is no dictionary");
  for (bool more = true; more && !skip_char(&text, '}');) {
    tl_str key, value;
    if (!take_word(&text, &key) || !skip_char(&text, ':') || !take_value(&text, &value))
      return malformed("the header is no dictionary");
    size_t i = 0;
    while (i < NUM_KEYS && !tl_str_is(key, keys[i].name)) i++;
    if (i == NUM_KEYS) return malformed("the header has an unknown key");
    if (keys[i].value->len) return malformed("the header has a key twice");
    *keys[i].value = value;
    more = skip_char(&text, ',');
    if (!more && !skip_char(&text, '}')) return malformed("the header is no dictionary");
  }
  skip_blanks(&text);
  if (text.len) return malformed("something follows the header's dictionary");
  for (size_t i = 0; i < NUM_KEYS; i++) {
    if (!keys[i].value->len) return malformed("the header lacks a key");
  }
  return TL_OK;
}

static tl_status parse_type(tl_str value, tl_dtype *out, bool *out_big_endian) {
  if (tl_str_starts_with(value, "["))
    return tl_status_make(TL_STATUS_UNSUPPORTED, "the .npy file holds structured elements");
  tl_str descr;
  if (!take_word(&value, &descr) || value.len || descr.len < 2) return malformed("bad 'descr'");
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

static tl_status parse_order(tl_str value, bool *out_is_fortran) {
  *out_is_fortran = tl_str_is(value, "True");
  return *out_is_fortran || tl_str_is(value, "False") ? TL_OK : malformed("'fortran_order' is neither True nor False");
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "()", "(3,)", "(3, 4)", with Python 2's L behind a number too.
static tl_status parse_shape(tl_str value, int32_t *out_rank, int64_t *shape) {
  *out_rank = 0;
  if (!skip_char(&value, '(')) return malformed("bad 'shape'");
  bool has_comma = true;
  while (!skip_char(&value, ')')) {
    if (!has_comma || !value.len || !is_digit(value.data[0])) return malformed("bad 'shape'");
    if (*out_rank == TL_ARRAY_MAX_RANK)
      return tl_status_make(TL_STATUS_LIMIT, "the .npy file has more than 8 dimensions");
    int64_t extent = 0;
    for (; value.len && is_digit(value.data[0]); value = tl_str_sub(value, 1, value.len - 1)) {
      if (extent > INT64_MAX / 16) return malformed("an extent is too large");
      extent = extent * 10 + (value.data[0] - '0');
    }
    skip_char(&value, 'L');
    shape[(*out_rank)++] = extent;
    has_comma = skip_char(&value, ',');
  }
  return value.len || (*out_rank == 1 && !has_comma) ? malformed("bad 'shape'") : TL_OK;
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
  tl_dtype dtype = TL_DTYPE_NONE;
  bool big_endian = false;
  int32_t rank = 0;
  int64_t shape[TL_ARRAY_MAX_RANK];
  bool is_fortran = false;
  npy_header header;
  TL_TRY(parse_header(tl_str_sub(bytes, start, header_len), &header));
  TL_TRY(parse_type(header.descr, &dtype, &big_endian));
  TL_TRY(parse_order(header.fortran_order, &is_fortran));
  TL_TRY(parse_shape(header.shape, &rank, shape));
  // The size in the header against the size of the file, before memory is taken.
  uint64_t left = bytes.len - start - header_len, need = (uint64_t)tl_dtype_bits(dtype) / 8;
  for (int32_t d = 0; d < rank; d++) {
    if (__builtin_mul_overflow(need, (uint64_t)shape[d], &need)) return malformed("the shape is too large");
  }
  if (left < need) return malformed("it is cut short");
  if (left > need) return malformed("something follows the data");
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

tl_status tl_npy_read(const char *path, uint64_t max_bytes, tl_array *out) {
  *out = (tl_array){0};
  tl_strbuf bytes;
  tl_strbuf_init(&bytes);
  tl_status status = tl_file_read_regular(path, max_bytes, &bytes);
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
