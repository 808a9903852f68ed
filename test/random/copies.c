// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `copies`: a tile from some place of a tensor (corners, slices, steps, run-time ends, padding, views), through
// one or two tiles (conversion, transposition, parts), to some place of another.
#include <stdio.h>
#include <string.h>

#include "test/random/families.h"
#include "test/random/value.h"

// A dim of the tile as it is read from or written to a tensor: element i lies at first + step * i.
typedef struct side {
  const char *subscript;  // in the body
  const char *position;   // of element `index`, in the reference
  const char *condition;  // or NULL: whether the element is read or written
} side;

typedef struct copying {
  tl_rspec *spec;
  int rank;             // of the tile
  int64_t extent[2];    // of the tile
  int64_t blocks;       // of the grid
  int num_limits;       // L0 …: run-time ends
  tl_rspec_value data;  // its dtype and error
  bool is_corner;
} copying;

static const char *const index_names[] = {"i", "j"};

static bool maybe(copying *c, uint32_t percent) {
  return tl_rspec_maybe(c->spec->choices, percent);
}

// A run-time end: a tensor of one value a block, which makes some blocks short and some longer than the tile.
static const char *new_limit(copying *c, int64_t most) {
  int number = c->num_limits++;
  tl_rspec_line(c->spec, TL_RSPEC_ARGS, "L%d: in i32[%lld]", number, (long long)c->blocks);
  tl_rspec_line(c->spec, TL_RSPEC_INPUTS, "L%d: ints(0, %lld)", number, (long long)most);
  return tl_rspec_text(c->spec, "L%d[g]", number);
}

// Draws where dim `d` of the tile lies in a source dim of the returned size.
static side draw_source(copying *c, int d, int64_t *out_size) {
  tl_rspec *spec = c->spec;
  long long extent = c->extent[d];
  const char *index = index_names[d];
  uint32_t kind = tl_rspec_choose(spec->choices, 6);
  long long offset = tl_rspec_pick(spec->choices, 0, 8, 1, 3, -2, 16);
  bool by_block = maybe(c, 50);
  const char *start =
      by_block ? tl_rspec_text(spec, "g * %lld + %lld", extent, offset) : tl_rspec_text(spec, "%lld", offset);
  // Mostly all of the blocks; sometimes the last one hangs over.
  long long last = by_block ? c->blocks * extent : extent;
  *out_size = last + offset - tl_rspec_pick(spec->choices, 0, -5, 2, extent / 2, 1);
  side s = {.position = tl_rspec_text(spec, "(%s + %s)", start, index)};
  if (c->is_corner) {
    s.subscript = start;
  } else if (kind == 2 || kind == 3) {
    long long step = tl_rspec_pick(spec->choices, 2, 3);
    s.subscript = tl_rspec_text(spec, "%lld:%lld:%lld", offset, offset + step * extent, step);
    s.position = tl_rspec_text(spec, "(%lld + %lld * %s)", offset, step, index);
    *out_size = offset + step * extent - tl_rspec_pick(spec->choices, 0, -7, 3);
    // A slice with constant bounds must lie inside.
    if (offset < 0) {
      s.subscript = tl_rspec_text(spec, "0:%lld:%lld", step * extent, step);
      s.position = tl_rspec_text(spec, "(%lld * %s)", step, index);
    }
    if (*out_size < offset + step * extent) *out_size = offset + step * extent;
  } else if (kind == 4) {
    s.subscript = tl_rspec_text(spec, "%lld:%s:-1", extent + 1, "1");
    s.position = tl_rspec_text(spec, "(%lld - %s)", extent + 1, index);
    *out_size = extent + 2 + tl_rspec_pick(spec->choices, 0, 5);
  } else if (kind == 5) {
    const char *limit = new_limit(c, last + 4);
    s.subscript = tl_rspec_text(spec, "%s:%s", start, limit);
    s.condition = tl_rspec_text(spec, "%s < %s", s.position, limit);
  } else {
    s.subscript = kind == 1 && !by_block && offset >= 0 ? tl_rspec_text(spec, "%lld:%lld", offset, offset + extent)
                                                        : tl_rspec_text(spec, "%s:+%lld", start, extent);
  }
  if (*out_size < 1) *out_size = 1;
  // Constant bounds must lie inside the tensor.
  if (!by_block && kind != 5 && !c->is_corner && *out_size < offset + extent) *out_size = offset + extent;
  const char *inside = tl_rspec_text(spec, "0 <= %s < %lld", s.position, (long long)*out_size);
  s.condition = s.condition ? tl_rspec_text(spec, "%s and %s", inside, s.condition) : inside;
  return s;
}

typedef struct source {
  const char *dims, *subscripts, *reference, *condition;
} source;

static void append(copying *c, const char **text, const char *separator, const char *more) {
  *text = **text ? tl_rspec_text(c->spec, "%s%s%s", *text, separator, more) : tl_rspec_text(c->spec, "%s", more);
}

// The tensor's dims: those of the tile among others that are one element of the copy.
static source draw_tensor(copying *c) {
  source s = {"", "", "", ""};
  int extra = (int)tl_rspec_pick(c->spec->choices, 0, 1, 2, 0);
  int next = 0;
  c->is_corner = tl_rspec_choose(c->spec->choices, 2) == 0;
  while (next < c->rank || extra > 0) {
    // Corners align at the right: there the other dims come first.
    bool is_extra = extra > 0 && (next == c->rank || c->is_corner || maybe(c, 50));
    if (is_extra) {
      extra--;
      bool by_block = maybe(c, 50);
      int64_t size = by_block ? c->blocks : tl_rspec_pick(c->spec->choices, 2, 3);
      append(c, &s.dims, ", ", tl_rspec_text(c->spec, "%lld", (long long)size));
      append(c, &s.subscripts, ", ", by_block ? "g" : "1");
      append(c, &s.reference, ", ", by_block ? "g" : "1");
      continue;
    }
    int64_t size;
    side one = draw_source(c, next++, &size);
    append(c, &s.dims, ", ", tl_rspec_text(c->spec, "%lld", (long long)size));
    append(c, &s.subscripts, ", ", one.subscript);
    append(c, &s.reference, ", ", one.position);
    append(c, &s.condition, " and ", one.condition);
  }
  return s;
}

static const char *tile_dims(copying *c) {
  return c->rank == 1 ? tl_rspec_text(c->spec, "%lld", (long long)c->extent[0])
                      : tl_rspec_text(c->spec, "%lld, %lld", (long long)c->extent[0], (long long)c->extent[1]);
}

static const char *new_tile(copying *c, int number, tl_dtype dtype) {
  bool is_shared = number == 0 ? tl_rspec_choose(c->spec->choices, 3) < 2 : tl_rspec_choose(c->spec->choices, 2) == 0;
  static const char *const layouts[] = {"", " layout row", " layout pad(8)", " layout pad(4)"};
  const char *layout = is_shared ? layouts[(uint32_t)tl_rspec_pick(c->spec->choices, 0, 0, 0, 0, 1, 2, 3)] : "";
  tl_rspec_line(c->spec, is_shared ? TL_RSPEC_SHARED : TL_RSPEC_FRAGMENT, "s%d: %s[%s]%s", number, tl_dtype_name(dtype),
                tile_dims(c), layout);
  return tl_rspec_text(c->spec, "s%d", number);
}

static tl_dtype convert(copying *c, uint32_t percent) {
  static const tl_dtype floats[] = {TL_DTYPE_F32, TL_DTYPE_F16, TL_DTYPE_BF16};
  tl_dtype dtype = c->data.dtype;
  if (maybe(c, percent)) {
    if (tl_dtype_is_float(dtype)) {
      dtype = floats[tl_rspec_choose(c->spec->choices, 3)];
    } else {
      dtype = tl_rspec_choose(c->spec->choices, 2) ? TL_DTYPE_I64 : TL_DTYPE_I32;
    }
    c->data = tl_rspec_stored(c->data, dtype);
  }
  return dtype;
}

static void draw_data(copying *c) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F16, TL_DTYPE_F32, TL_DTYPE_BF16, TL_DTYPE_I32, TL_DTYPE_U8,
                                    TL_DTYPE_I8,  TL_DTYPE_I64, TL_DTYPE_F64,  TL_DTYPE_I16, TL_DTYPE_U16};
  tl_dtype dtype = dtypes[tl_rspec_choose(c->spec->choices, 10)];
  bool is_float = tl_dtype_is_float(dtype);
  c->data = tl_rspec_exact("", "", dtype, tl_dtype_is_unsigned_int(dtype) ? 0 : -100, 100, !is_float);
  tl_rspec_line(c->spec, TL_RSPEC_INPUTS, "S: %s(%g, %g)", is_float ? "uniform" : "ints", c->data.lo, c->data.hi);
}

// Writes the tile `from` to the output; `value` is the reference of element (i, j) of block g.
static void write_destination(copying *c, const char *from, const char *value) {
  tl_rspec *spec = c->spec;
  tl_dtype dtype = convert(c, 25);
  long long p = c->extent[0], q = c->extent[1];
  uint32_t kind = tl_rspec_choose(spec->choices, 6);
  // Smaller than the tile: what hangs over is dropped.
  long long cut = kind == 1 ? tl_rspec_pick(spec->choices, 1, 3, p / 2) : 0;
  long long rows = p > cut ? p - cut : p;
  const char *access = "out", *limit = NULL, *old = NULL;
  if (kind == 2) {
    access = "inout";
    limit = new_limit(c, p + 2);
    tl_rspec_line(spec, TL_RSPEC_INPUTS, "D: ints(%d, 5)", tl_dtype_is_unsigned_int(dtype) ? 0 : -5);
    old = c->rank == 1 ? "D[g, i]" : "D[g, i, j]";
  }
  const char *subscript = limit       ? tl_rspec_text(spec, "0:%s", limit)
                          : kind == 3 ? ":"
                          : kind == 4 ? tl_rspec_text(spec, "0:+%lld", p)
                                      : "0";
  bool transposes = kind == 5 && c->rank == 2;
  if (c->rank == 1) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "D: %s %s[%lld, %lld]", access, tl_dtype_name(dtype), (long long)c->blocks,
                  rows);
    tl_rspec_body(spec, "- copy: %s -> D[g, %s]", from, subscript);
  } else if (transposes) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "D: %s %s[%lld, %lld]", access, tl_dtype_name(dtype), (long long)c->blocks * q,
                  rows);
    tl_rspec_body(spec, "- copy: %s.T -> D[g * %lld, 0]", from, q);
  } else {
    bool by_columns = kind != 0 && kind != 1;
    tl_rspec_line(spec, TL_RSPEC_ARGS, "D: %s %s[%lld, %lld, %lld]", access, tl_dtype_name(dtype), (long long)c->blocks,
                  rows, q);
    tl_rspec_body(spec, "- copy: %s -> D[g, %s, %s]", from, subscript, by_columns ? ":" : "0");
  }
  if (limit) value = tl_rspec_text(spec, "select(i < %s, %s, %s)", limit, value, old);
  if (transposes) {
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- E[g in 0:%lld, i in 0:%lld, j in 0:%lld] = %s", (long long)c->blocks, p,
                  q, value);
    value = tl_rspec_text(spec, "E[n // %lld, m, n %% %lld]", q, q);
  }
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- D[%s] = %s",
                transposes     ? "n, m"
                : c->rank == 1 ? "g, i"
                               : "g, i, j",
                value);
  tl_rspec_tolerance(spec, "D", 0, c->data.err);
}

void tl_rspec_make_copies(tl_rspec *spec) {
  copying c = {.spec = spec};
  c.rank = 2 - (int)tl_rspec_choose(spec->choices, 2);
  c.extent[0] = c.rank == 1 ? tl_rspec_pick(spec->choices, 32, 64, 128, 40, 33, 7, 1, 256)
                            : tl_rspec_pick(spec->choices, 16, 8, 32, 5, 1, 64, 24);
  c.extent[1] = tl_rspec_pick(spec->choices, 32, 64, 16, 8, 33, 7, 40, 1, 128);
  c.blocks = tl_rspec_pick(spec->choices, 1, 2, 3);
  draw_data(&c);
  tl_rspec_line(spec, TL_RSPEC_GRID, "g: %lld", (long long)c.blocks);
  int64_t threads = tl_rspec_pick(spec->choices, 128, 32, 64, 256, 96, 192);
  // Tiles that are held in registers must fit.
  while (c.extent[0] * (c.rank == 2 ? c.extent[1] : 1) > 32 * threads) threads *= 2;
  tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %lld", (long long)threads);
  tl_dtype dtype = c.data.dtype;
  source s = draw_tensor(&c);
  tl_rspec_line(spec, TL_RSPEC_ARGS, "S: in %s[%s]%s", tl_dtype_name(dtype), s.dims,
                maybe(&c, 10) ? tl_rspec_text(spec, " align(%d)", (tl_dtype_bits(dtype) + 7) / 8) : "");
  const char *tile = new_tile(&c, 0, convert(&c, 20));
  tl_rspec_body(spec, "- copy: S[%s] -> %s", s.subscripts, tile);
  int pad = 0;
  if (maybe(&c, 30)) {
    pad = 1 + (int)tl_rspec_choose(spec->choices, 9);
    tl_rspec_body(spec, "  pad: %d", pad);
  }
  uint32_t option = tl_rspec_choose(spec->choices, 10);
  if (option == 8) tl_rspec_body(spec, "  via: vector");
  if (option == 9) tl_rspec_body(spec, "  evict: last");
  const char *value = tl_rspec_text(spec, "(S[%s] if %s else %d)", s.reference, s.condition, pad);
  if (maybe(&c, 30)) {
    tl_dtype next = convert(&c, 50);
    const char *second = new_tile(&c, 1, next);
    tl_rspec_body(spec, "- copy: %s -> %s", tile, second);
    tile = second;
  }
  if (c.extent[0] % 2 == 0 && maybe(&c, 20)) {
    // One half of the tile takes the place of the other.
    long long half = c.extent[0] / 2;
    const char *rest = c.rank == 2 ? ", :" : "";
    const char *third = new_tile(&c, 2, c.data.dtype);
    tl_rspec_body(spec, "- copy: %s -> %s", tile, third);
    tl_rspec_body(spec, "- %s[0:%lld%s] = %s[%lld:%lld%s]", third, half, rest, tile, half, 2 * half, rest);
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- H[g in 0:%lld, i in 0:%lld%s] = %s", (long long)c.blocks,
                  (long long)c.extent[0],
                  c.rank == 2 ? tl_rspec_text(spec, ", j in 0:%lld", (long long)c.extent[1]) : "", value);
    value = tl_rspec_text(spec, "H[g, %lld + i %% %lld%s]", half, half, c.rank == 2 ? ", j" : "");
    tile = third;
  }
  write_destination(&c, tile, value);
}
