// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dims, grids and the texts that address them.
#include "test/random/shape.h"

#include <stdio.h>

bool tl_rspec_is_tiled(const tl_rspec_shape *shape, int dim) {
  return dim >= shape->rank - shape->tile_rank;
}

uint32_t tl_rspec_tile_mask(const tl_rspec_shape *shape) {
  uint32_t mask = 0;
  for (int k = 0; k < shape->rank; k++) mask |= tl_rspec_is_tiled(shape, k) ? 1u << k : 0;
  return mask;
}

static int64_t draw_block(tl_rspec *spec, const tl_rspec_shape *shape, int dim) {
  int from_end = shape->rank - 1 - dim;
  if (from_end == 0) {
    return shape->tile_rank == 1 ? tl_rspec_pick(spec->choices, 32, 128, 256, 64, 100, 37, 1, 512, 8, 1000)
                                 : tl_rspec_pick(spec->choices, 32, 64, 16, 128, 33, 7, 40, 1, 100, 8);
  }
  if (from_end == 1) return tl_rspec_pick(spec->choices, 8, 16, 4, 32, 5, 1, 13, 2, 64);
  return tl_rspec_pick(spec->choices, 2, 4, 3, 1);
}

static int64_t draw_size(tl_rspec *spec, const tl_rspec_shape *shape, int dim) {
  if (!tl_rspec_is_tiled(shape, dim)) return tl_rspec_pick(spec->choices, 1, 2, 3, 5);
  int64_t block = shape->block[dim];
  int64_t whole = tl_rspec_pick(spec->choices, 1, 2, 0, 3), rest = tl_rspec_pick(spec->choices, 0, 1, 3, 8, 17);
  int64_t size = block * whole + rest % block;
  return size > 0 ? size : block;
}

static void write_grid(tl_rspec *spec, const tl_rspec_shape *shape) {
  bool done[TL_RSPEC_MAX_RANK] = {false};
  for (int left = shape->rank; left > 0; left--) {
    // The simplest order: the last dim varies fastest.
    uint32_t skip = tl_rspec_choose(spec->choices, (uint32_t)left);
    int dim = shape->rank - 1;
    while (done[dim] || skip-- > 0) dim--;
    done[dim] = true;
    if (tl_rspec_is_tiled(shape, dim)) {
      tl_rspec_line(spec, TL_RSPEC_GRID, "g%d: ceildiv(D%d, B%d)", dim, dim, dim);
    } else {
      tl_rspec_line(spec, TL_RSPEC_GRID, "g%d: D%d", dim, dim);
    }
  }
}

static void write_cases(tl_rspec *spec, const tl_rspec_shape *shape) {
  for (int c = 0; c < shape->num_cases; c++) {
    char text[128] = "";
    size_t len = 0;
    for (int k = 0; k < shape->rank; k++) {
      len += (size_t)snprintf(text + len, sizeof(text) - len, "%sD%d: %lld", k ? ", " : "", k,
                              (long long)shape->size[c][k]);
    }
    tl_rspec_line(spec, TL_RSPEC_CASES, "- {%s}", text);
  }
}

void tl_rspec_make_shape(tl_rspec *spec, tl_rspec_shape *shape) {
  *shape = (tl_rspec_shape){.num_cases = 1};
  shape->rank = (int)tl_rspec_pick(spec->choices, 1, 2, 2, 3, 4, 3);
  int most = shape->rank < 3 ? shape->rank : 3;
  shape->tile_rank = most - (int)tl_rspec_choose(spec->choices, (uint32_t)most);
  bool any_dynamic = tl_rspec_maybe(spec->choices, 30);
  if (tl_rspec_maybe(spec->choices, 25)) shape->num_cases = any_dynamic ? 3 : 2;
  for (int k = 0; k < shape->rank; k++) {
    shape->block[k] = tl_rspec_is_tiled(shape, k) ? draw_block(spec, shape, k) : 1;
    shape->is_dynamic[k] = any_dynamic && tl_rspec_maybe(spec->choices, 50);
    for (int c = 0; c < shape->num_cases; c++) shape->size[c][k] = draw_size(spec, shape, k);
    // A case may only change what it overrides: dynamic sizes, when there are any, so that one compile serves all.
    for (int c = 1; c < shape->num_cases && any_dynamic && !shape->is_dynamic[k]; c++) {
      shape->size[c][k] = shape->size[0][k];
    }
    if (shape->is_dynamic[k]) {
      tl_rspec_line(spec, TL_RSPEC_PARAMS, "D%d: dynamic", k);
    } else {
      tl_rspec_line(spec, TL_RSPEC_PARAMS, "D%d: %lld", k, (long long)shape->size[0][k]);
    }
    if (tl_rspec_is_tiled(shape, k)) {
      tl_rspec_line(spec, TL_RSPEC_PARAMS, "B%d: %lld", k, (long long)shape->block[k]);
    }
  }
  write_grid(spec, shape);
  write_cases(spec, shape);
}

void tl_rspec_make_options(tl_rspec *spec, const tl_rspec_shape *shape) {
  int64_t threads = tl_rspec_pick(spec->choices, 128, 32, 64, 256, 96, 512, 0);
  // Tiles that are held in registers must fit.
  int64_t elements = 1;
  for (int k = 0; k < shape->rank; k++) elements *= shape->block[k];
  while (threads && elements > 32 * threads) threads *= 2;
  if (threads) {
    tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %lld", (long long)threads);
  } else {
    tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: auto");
  }
  if (shape->rank > 1 && tl_rspec_maybe(spec->choices, 12)) {
    tl_rspec_line(spec, TL_RSPEC_OPTIONS, "rasterize: {panel: %d, order: %s}",
                  (int)tl_rspec_pick(spec->choices, 2, 3, 8), tl_rspec_choose(spec->choices, 2) ? "column" : "row");
  }
  if (tl_rspec_maybe(spec->choices, 12)) {
    spec->is_fast = true;
    tl_rspec_line(spec, TL_RSPEC_OPTIONS, "fast_math: true");
  }
}

bool tl_rspec_take_shared(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask, tl_dtype dtype) {
  enum { MOST = 128 << 10 };  // sm_80 has 163 KiB; what is left is for padding and reductions
  int64_t bytes = (tl_dtype_bits(dtype) + 7) / 8;
  for (int k = 0; k < shape->rank; k++)
    if (mask & tl_rspec_tile_mask(shape) & 1u << k) bytes *= shape->block[k];
  if (spec->shared_bytes + bytes > MOST) return false;
  spec->shared_bytes += bytes;
  return true;
}

// ---- texts

typedef void write_dim(tl_strbuf *out, const tl_rspec_shape *shape, int dim);

static void write_name(tl_strbuf *out, const tl_rspec_shape *shape, int dim) {
  (void)shape;
  tl_strbuf_appendf(out, "D%d", dim);
}
static void write_range(tl_strbuf *out, const tl_rspec_shape *shape, int dim) {
  (void)shape;
  tl_strbuf_appendf(out, "n%d in 0:D%d", dim, dim);
}
static void write_index(tl_strbuf *out, const tl_rspec_shape *shape, int dim) {
  (void)shape;
  tl_strbuf_appendf(out, "n%d", dim);
}
static void write_corner(tl_strbuf *out, const tl_rspec_shape *shape, int dim) {
  tl_strbuf_appendf(out, tl_rspec_is_tiled(shape, dim) ? "g%d * B%d" : "g%d", dim, dim);
}
static void write_element(tl_strbuf *out, const tl_rspec_shape *shape, int dim) {
  tl_strbuf_appendf(out, tl_rspec_is_tiled(shape, dim) ? "g%d * B%d + i%d" : "g%d", dim, dim, dim);
}
static void write_local(tl_strbuf *out, const tl_rspec_shape *shape, int dim) {
  (void)shape;
  tl_strbuf_appendf(out, "i%d", dim);
}
static void write_block(tl_strbuf *out, const tl_rspec_shape *shape, int dim) {
  (void)shape;
  tl_strbuf_appendf(out, "B%d", dim);
}

static const char *join(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask, write_dim *write) {
  tl_strbuf out;
  tl_strbuf_init(&out);
  for (int k = 0; k < shape->rank; k++) {
    if (!(mask >> k & 1)) continue;
    if (out.len) tl_strbuf_append_c(&out, ", ");
    write(&out, shape, k);
  }
  const char *text = tl_rspec_text(spec, "%s", tl_strbuf_c(&out));
  tl_strbuf_fini(&out);
  return text;
}

const char *tl_rspec_dims(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask) {
  return join(spec, shape, mask, write_name);
}
const char *tl_rspec_ranges(tl_rspec *spec, const tl_rspec_shape *shape) {
  return join(spec, shape, ~0u, write_range);
}
const char *tl_rspec_indices(tl_rspec *spec, const tl_rspec_shape *shape) {
  return join(spec, shape, ~0u, write_index);
}
const char *tl_rspec_element(tl_rspec *spec, const tl_rspec_shape *shape, bool is_corner) {
  return join(spec, shape, ~0u, is_corner ? write_corner : write_element);
}
const char *tl_rspec_tile_element(tl_rspec *spec, const tl_rspec_shape *shape) {
  return join(spec, shape, tl_rspec_tile_mask(shape), write_local);
}
const char *tl_rspec_tile_dims(tl_rspec *spec, const tl_rspec_shape *shape, uint32_t mask) {
  return join(spec, shape, mask & tl_rspec_tile_mask(shape), write_block);
}
const char *tl_rspec_parallel(tl_rspec *spec, const tl_rspec_shape *shape) {
  return tl_rspec_text(spec, "%s in %s", tl_rspec_tile_element(spec, shape),
                       tl_rspec_tile_dims(spec, shape, tl_rspec_tile_mask(shape)));
}

void tl_rspec_index_values(tl_rspec *spec, const tl_rspec_shape *shape, bool is_tile_form, tl_rspec_values *out) {
  // Sizes stay below 3 blocks and 17; positions in tiles that hang over may be higher.
  for (int k = 0; k < shape->rank; k++) {
    if (!tl_rspec_is_tiled(shape, k)) {
      tl_rspec_add_value(
          out, tl_rspec_exact(tl_rspec_text(spec, "g%d", k), tl_rspec_text(spec, "n%d", k), TL_DTYPE_I32, 0, 8, true));
      continue;
    }
    tl_rspec_add_value(out, tl_rspec_exact(tl_rspec_text(spec, "g%d", k), tl_rspec_text(spec, "(n%d // B%d)", k, k),
                                           TL_DTYPE_I32, 0, 32, true));
    if (is_tile_form) continue;
    tl_rspec_add_value(out, tl_rspec_exact(tl_rspec_text(spec, "i%d", k), tl_rspec_text(spec, "(n%d %% B%d)", k, k),
                                           TL_DTYPE_I32, 0, (double)shape->block[k], true));
    tl_rspec_add_value(out,
                       tl_rspec_exact(tl_rspec_text(spec, "(g%d * B%d + i%d)", k, k, k), tl_rspec_text(spec, "n%d", k),
                                      TL_DTYPE_I32, 0, (double)shape->block[k] * 4 + 32, true));
  }
}
