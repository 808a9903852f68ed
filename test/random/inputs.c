// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inputs of random specs: dtype, shape, strides, generator, tile, and the ways to read them.
#include <stdio.h>
#include <string.h>

#include "test/random/shape.h"

// Index tensors are shared per dim: I<dim>_<rows>.
static void write_index_tensor(tl_rspec *spec, const tl_rspec_input *input) {
  tl_rspec_line(spec, TL_RSPEC_ARGS, "I%s: i32[D%d]", input->name, input->gather);
  // One before the first and one behind the last row are out of bounds and read as 0.
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "I%s: ints(-1, %lld)", input->name, (long long)input->gather_rows);
}

static void draw_values(tl_rspec *spec, tl_rspec_input *input) {
  if (tl_dtype_is_float(input->dtype)) {
    static const double lows[] = {-1, 0.25, -3, -4, -8}, highs[] = {1, 2, 3, 4, 8};
    uint32_t kind = tl_rspec_choose(spec->choices, 5);
    input->lo = lows[kind];
    input->hi = highs[kind];
    input->is_whole = kind >= 3;
  } else {
    int64_t least = tl_dtype_int_min(input->dtype);
    input->hi = (double)tl_rspec_pick(spec->choices, 7, 100, 3, 127);
    input->lo = tl_rspec_maybe(spec->choices, 60) && least < 0 ? -input->hi : 0;
    input->is_whole = true;
  }
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "%s: %s(%g, %g)", input->name, input->is_whole ? "ints" : "uniform", input->lo,
                input->hi);
}

// The dim as it stands at place `place` of the tensor, counted among the dims it has.
static int dim_at(const tl_rspec_shape *shape, const tl_rspec_input *input, int place) {
  int dims[TL_RSPEC_MAX_RANK], len = 0;
  for (int k = 0; k < shape->rank; k++) {
    if (input->mask >> k & 1) dims[len++] = k;
  }
  if (input->is_transposed) {
    int swap = dims[len - 1];
    dims[len - 1] = dims[len - 2];
    dims[len - 2] = swap;
  }
  return place < len ? dims[place] : -1;
}

static const char *size_text(tl_rspec *spec, const tl_rspec_input *input, int dim) {
  if (dim == input->gather) return tl_rspec_text(spec, "%lld", (long long)input->gather_rows);
  return tl_rspec_text(spec, "D%d", dim);
}

static void write_argument(tl_rspec *spec, const tl_rspec_shape *shape, const tl_rspec_input *input) {
  const char *dtype = tl_dtype_name(input->dtype);
  if (input->mask == 0) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "%s: %s", input->name, dtype);
    return;
  }
  const char *dims = "", *strides = "1";
  int len = __builtin_popcount(input->mask);
  for (int at = 0; at < len; at++) {
    dims = tl_rspec_text(spec, "%s%s%s", dims, at ? ", " : "", size_text(spec, input, dim_at(shape, input, at)));
  }
  const char *suffix = "";
  if (input->is_strided) {
    const char *last = tl_rspec_maybe(spec->choices, 30) ? "2" : "1";
    int pad = (int)tl_rspec_pick(spec->choices, 8, 1, 3, 16);
    strides = last;
    for (int at = len - 2; at >= 0; at--) {
      const char *inner = size_text(spec, input, dim_at(shape, input, at + 1));
      last = tl_rspec_text(spec, "(%s * %s + %d)", inner, last, pad);
      strides = tl_rspec_text(spec, "%s, %s", last, strides);
    }
    suffix = tl_rspec_text(spec, " strides(%s)", strides);
  }
  if (tl_rspec_maybe(spec->choices, 8)) {
    suffix = tl_rspec_text(spec, "%s align(%d)", suffix, (tl_dtype_bits(input->dtype) + 7) / 8);
  }
  tl_rspec_line(spec, TL_RSPEC_ARGS, "%s: in %s[%s]%s", input->name, dtype, dims, suffix);
}

void tl_rspec_make_input(tl_rspec *spec, const tl_rspec_shape *shape, int number, tl_rspec_input *out) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F32, TL_DTYPE_F16,  TL_DTYPE_BF16, TL_DTYPE_F32,
                                    TL_DTYPE_F16, TL_DTYPE_BF16, TL_DTYPE_I32,  TL_DTYPE_I8,
                                    TL_DTYPE_U8,  TL_DTYPE_I64,  TL_DTYPE_F64,  TL_DTYPE_I16};
  *out = (tl_rspec_input){.gather = -1};
  snprintf(out->name, sizeof(out->name), "X%d", number);
  snprintf(out->tile, sizeof(out->tile), "x%d", number);
  out->dtype = dtypes[tl_rspec_choose(spec->choices, 12)];
  uint32_t all = (1u << shape->rank) - 1;
  out->mask = all;
  uint32_t kind = tl_rspec_choose(spec->choices, 8);
  if (kind == 7) out->mask = 0;
  if (kind == 5 || kind == 6) out->mask &= 1 + tl_rspec_choose(spec->choices, all);
  uint32_t tiled = tl_rspec_tile_mask(shape);
  if (__builtin_popcount(out->mask & tiled) == 2 && !(out->mask & ~tiled)) {
    out->is_transposed = tl_rspec_maybe(spec->choices, 25);
  }
  if (out->mask) {
    out->is_strided = tl_rspec_maybe(spec->choices, 15);
    if (tl_rspec_maybe(spec->choices, 15)) {
      int dim = (int)tl_rspec_choose(spec->choices, (uint32_t)shape->rank);
      out->gather_rows = tl_rspec_pick(spec->choices, 4, 9, 30);
      if (out->mask >> dim & 1) {
        out->gather = dim;
        write_index_tensor(spec, out);
      }
    }
  }
  write_argument(spec, shape, out);
  draw_values(spec, out);
  if (out->gather >= 0) {
    out->lo = out->lo < 0 ? out->lo : 0;
    out->hi = out->hi > 0 ? out->hi : 0;
  }
}

// The subscripts of the input: one element of a parallel, the corner of a copy (slices: with extents), or the
// reference's indices.
typedef enum access_form { ELEMENT, CORNER, SLICES, REFERENCE } access_form;

static const char *subscripts(tl_rspec *spec, const tl_rspec_shape *shape, const tl_rspec_input *input,
                              access_form form) {
  const char *text = "";
  for (int at = 0; at < __builtin_popcount(input->mask); at++) {
    int dim = dim_at(shape, input, at);
    const char *one;
    if (form == REFERENCE) {
      one = tl_rspec_text(spec, "n%d", dim);
    } else if (!tl_rspec_is_tiled(shape, dim)) {
      one = tl_rspec_text(spec, "g%d", dim);
    } else if (form == ELEMENT) {
      one = tl_rspec_text(spec, "g%d * B%d + i%d", dim, dim, dim);
    } else if (form == CORNER) {
      one = tl_rspec_text(spec, "g%d * B%d", dim, dim);
    } else if (at % 2) {
      one = tl_rspec_text(spec, "g%d * B%d:+B%d", dim, dim, dim);
    } else {
      one = tl_rspec_text(spec, "g%d * B%d:(g%d + 1) * B%d", dim, dim, dim, dim);
    }
    if (dim == input->gather) one = tl_rspec_text(spec, "I%s[%s]", input->name, one);
    text = tl_rspec_text(spec, "%s%s%s", text, at ? ", " : "", one);
  }
  return text;
}

bool tl_rspec_load_input(tl_rspec *spec, const tl_rspec_shape *shape, tl_rspec_input *input) {
  uint32_t tiled = input->mask & tl_rspec_tile_mask(shape);
  bool gathers_tile = input->gather >= 0 && tl_rspec_is_tiled(shape, input->gather);
  if (!tiled || gathers_tile) return false;
  input->has_tile = true;
  input->is_shared = tl_rspec_choose(spec->choices, 2) == 0;
  input->tile_dtype = input->dtype;
  if (tl_rspec_maybe(spec->choices, 20) && tl_dtype_is_float(input->dtype)) {
    static const tl_dtype wider[] = {TL_DTYPE_F32, TL_DTYPE_F16, TL_DTYPE_BF16};
    input->tile_dtype = wider[tl_rspec_choose(spec->choices, 3)];
  }
  input->is_shared = input->is_shared && tl_rspec_take_shared(spec, shape, input->mask, input->tile_dtype);
  const char *layout = "";
  if (input->is_shared && tl_rspec_maybe(spec->choices, 10)) {
    static const char *const layouts[] = {" layout row", " layout pad(8)"};
    layout = layouts[tl_rspec_choose(spec->choices, 2)];
  }
  tl_rspec_line(spec, input->is_shared ? TL_RSPEC_SHARED : TL_RSPEC_FRAGMENT, "%s: %s[%s]%s", input->tile,
                tl_dtype_name(input->tile_dtype), tl_rspec_tile_dims(spec, shape, input->mask), layout);
  bool as_slices = tl_rspec_maybe(spec->choices, 25) && !input->is_transposed;
  tl_rspec_body(spec, "- copy: %s[%s]%s -> %s", input->name,
                subscripts(spec, shape, input, as_slices ? SLICES : CORNER), input->is_transposed ? ".T" : "",
                input->tile);
  uint32_t option = tl_rspec_choose(spec->choices, 12);
  if (option == 9) tl_rspec_body(spec, "  via: vector");
  if (option == 10) tl_rspec_body(spec, "  evict: first");
  if (option == 11 && input->gather < 0) tl_rspec_body(spec, "  pad: 2");
  return true;
}

const char *tl_rspec_broadcast(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask) {
  const char *text = "";
  bool is_suffix = true, seen = false, is_full = true;
  for (int k = shape->rank - shape->tile_rank; k < shape->rank; k++) {
    bool has = mask >> k & 1;
    if (seen && !has) is_suffix = false;
    seen = seen || has;
    is_full = is_full && has;
    text = tl_rspec_text(spec, "%s%s%s", text, k > shape->rank - shape->tile_rank ? ", " : "", has ? ":" : "None");
  }
  if (is_full || (is_suffix && tl_rspec_choose(spec->choices, 2) == 0)) return "";
  return tl_rspec_text(spec, "[%s]", text);
}

const char *tl_rspec_tile_places(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask) {
  mask &= tl_rspec_tile_mask(shape);
  const char *text = "";
  for (int k = 0; k < shape->rank; k++) {
    if (!(mask >> k & 1)) continue;
    text = tl_rspec_text(spec, "%s%si%d", text, *text ? ", " : "", k);
  }
  return text;
}

// An element some places before or after along the first dim; out of bounds it is 0, or what `load` says.
static void read_beside(tl_rspec *spec, const tl_rspec_shape *shape, const tl_rspec_input *input, tl_rspec_value *out) {
  int dim = dim_at(shape, input, 0);
  int distance = (int)tl_rspec_pick(spec->choices, -1, 1, -3, 8);
  int other = (int)tl_rspec_pick(spec->choices, 0, 0, 2);
  const char *body = subscripts(spec, shape, input, ELEMENT), *reference = subscripts(spec, shape, input, REFERENCE);
  const char *rest = strchr(body, ','), *reference_rest = strchr(reference, ',');
  if (!rest) rest = reference_rest = "";
  body = tl_rspec_text(spec, "%s[%.*s + (%d)%s]", input->name, (int)strcspn(body, ","), body, distance, rest);
  reference = tl_rspec_text(spec, "%s[n%d + (%d)%s]", input->name, dim, distance, reference_rest);
  out->lo = out->lo < 0 ? out->lo : 0;
  out->hi = out->hi > other ? out->hi : other;
  out->body = body;
  out->reference = reference;
  if (other) {
    out->body = tl_rspec_text(spec, "load(%s, %d)", body, other);
    out->reference = tl_rspec_text(spec, "(%s if 0 <= n%d + (%d) < D%d else %d)", reference, dim, distance, dim, other);
  }
}

bool tl_rspec_input_value(tl_rspec *spec, const tl_rspec_shape *shape, const tl_rspec_input *input, bool is_tile_form,
                          tl_rspec_value *out) {
  uint32_t tiled = input->mask & tl_rspec_tile_mask(shape);
  if (input->mask == 0) {
    *out = tl_rspec_exact(tl_rspec_text(spec, "%s", input->name), tl_rspec_text(spec, "%s", input->name), input->dtype,
                          input->lo, input->hi, input->is_whole);
    return true;
  }
  const char *reference;
  if (input->gather >= 0) {
    const char *text = "";
    for (int at = 0; at < __builtin_popcount(input->mask); at++) {
      int dim = dim_at(shape, input, at);
      const char *one =
          dim == input->gather ? tl_rspec_text(spec, "I%s[n%d]", input->name, dim) : tl_rspec_text(spec, "n%d", dim);
      text = tl_rspec_text(spec, "%s%s%s", text, at ? ", " : "", one);
    }
    reference = tl_rspec_text(spec, "%s[%s]", input->name, text);
  } else {
    reference = tl_rspec_text(spec, "%s[%s]", input->name, subscripts(spec, shape, input, REFERENCE));
  }
  *out = tl_rspec_exact(NULL, reference, input->dtype, input->lo, input->hi, input->is_whole);
  bool use_tile = input->has_tile && (is_tile_form || tl_rspec_choose(spec->choices, 4) != 3);
  if (use_tile) {
    *out = tl_rspec_stored(*out, input->tile_dtype);
    out->body = is_tile_form ? tl_rspec_text(spec, "%s%s", input->tile, tl_rspec_broadcast(spec, shape, input->mask))
                             : tl_rspec_text(spec, "%s[%s]", input->tile, tl_rspec_tile_places(spec, shape, tiled));
    return true;
  }
  if (is_tile_form && tiled) return false;
  if (!is_tile_form && input->gather < 0 && tl_rspec_maybe(spec->choices, 15)) {
    read_beside(spec, shape, input, out);
    return true;
  }
  out->body = tl_rspec_text(spec, "%s[%s]", input->name, subscripts(spec, shape, input, ELEMENT));
  return true;
}
