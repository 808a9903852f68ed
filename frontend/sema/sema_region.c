// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes of tensors and tiles as copies, atomics and tile assignments name them.
#include "frontend/sema/sema.h"
#include "ir/index/affine.h"

// The length of [lo, hi) when it is a constant, however the two are written; -1 otherwise.
static int64_t constant_length(tl_sema *sema, tl_value *lo, tl_value *hi, bool *out_is_const, tl_value **out_length) {
  tl_value *length = tl_index_sub(&sema->builder, hi, lo);
  *out_length = length;
  int64_t value;
  *out_is_const = true;
  if (tl_value_const_int(length, &value)) return value;
  tl_affine affine = tl_affine_of(length);
  if (affine.valid && affine.num_terms == 0) return affine.constant;
  *out_is_const = false;
  return -1;
}

static bool slice_error(tl_sema *sema, tl_loc loc, const char *text) {
  tl_diag_report(sema->diags, TL_DIAG_SLICE, loc, "%s", text);
  return false;
}

static void set_limit(tl_sema *sema, tl_sema_region *region, int32_t dim, tl_value *end) {
  region->has_limits = true;
  region->limits[dim] = tl_index_min(&sema->builder, end, tl_sema_dim(sema, region->symbol, dim));
}

// lo:hi:step of buffer dim `dim`.
static bool parse_range(tl_sema *sema, const tl_subscript *subscript, tl_sema_region *region, int32_t dim) {
  tl_sema_axis *axis = &region->axes[region->num_axes++];
  *axis = (tl_sema_axis){.dim = dim, .extent = -1, .step = 1};
  if (subscript->step && !tl_sema_const_int(sema, subscript->step, "a slice's step", &axis->step)) return false;
  if (axis->step == 0) return slice_error(sema, subscript->loc, "the step of a slice must not be 0");
  bool is_reversed = axis->step < 0;
  tl_value *size = tl_sema_dim(sema, region->symbol, dim);
  tl_value *one = tl_build_index(&sema->builder, 1);
  tl_value *lo = subscript->lo ? tl_sema_index(sema, subscript->lo)
                 : is_reversed ? tl_index_sub(&sema->builder, size, one)
                               : tl_build_index(&sema->builder, 0);
  tl_value *hi = subscript->hi ? tl_sema_index(sema, subscript->hi)
                 : is_reversed ? tl_build_index(&sema->builder, -1)
                               : size;
  if (!lo || !hi) return false;
  region->offsets[dim] = lo;
  bool is_const;
  tl_value *elements, *from = is_reversed ? hi : lo, *to = is_reversed ? lo : hi;
  int64_t length = constant_length(sema, from, to, &is_const, &elements);
  if (is_const) {
    if (length <= 0) return slice_error(sema, subscript->loc, "the slice is empty");
    int64_t stride = is_reversed ? -axis->step : axis->step;
    axis->extent = length / stride + (length % stride != 0);
    return true;
  }
  if (is_reversed) return slice_error(sema, subscript->loc, "a slice with a negative step must have a constant length");
  axis->length = elements;
  // A tile of run-time extent has memory behind its end.
  if (subscript->hi || region->symbol->value->type->dims[dim] >= 0) set_limit(sema, region, dim, hi);
  return true;
}

// lo:+n
static bool parse_count(tl_sema *sema, const tl_subscript *subscript, tl_sema_region *region, int32_t dim) {
  tl_sema_axis *axis = &region->axes[region->num_axes++];
  *axis = (tl_sema_axis){.dim = dim, .extent = -1, .step = 1};
  tl_value *lo = tl_sema_index(sema, subscript->lo), *count = tl_sema_index(sema, subscript->hi);
  if (!lo || !count) return false;
  region->offsets[dim] = lo;
  int64_t extent;
  if (tl_value_const_int(count, &extent)) {
    if (extent <= 0) return slice_error(sema, subscript->loc, "the slice is empty");
    axis->extent = extent;
    return true;
  }
  axis->length = count;
  set_limit(sema, region, dim, tl_index_add(&sema->builder, lo, count));
  return true;
}

static bool parse_subscripts(tl_sema *sema, const tl_expr *expr, tl_sema_region *region) {
  bool ok = true;
  int32_t dim = 0, num_new = 0;
  region->is_corner = true;
  for (uint32_t i = 0; i < expr->num_subscripts; ++i) num_new += expr->subscripts[i].kind == TL_SUBSCRIPT_NEWAXIS;
  int64_t given = (int64_t)expr->num_subscripts - num_new;
  if (given != region->rank || region->rank + num_new > TL_MAX_RANK) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_SUBSCRIPT_COUNT, expr->loc,
                                   "`%.*s` has %d dim%s %s, %lld subscript%s given", TL_STR_ARG(region->symbol->name),
                                   (int)region->rank, region->rank == 1 ? "" : "s",
                                   tl_sema_buffer_shape(sema, region->symbol), (long long)given, given == 1 ? "" : "s");
    tl_diag_add_note(sema->diags, diag, region->symbol->loc, "declared here");
    return false;
  }
  // Bounds of slices are scalars: a tile's name in them does not stand for its element.
  const tl_tile_context *tile = sema->tile;
  sema->tile = NULL;
  for (uint32_t i = 0; i < expr->num_subscripts; ++i) {
    const tl_subscript *subscript = &expr->subscripts[i];
    region->is_corner = region->is_corner && subscript->kind == TL_SUBSCRIPT_ELEMENT;
    sema->builder.loc = subscript->loc;
    switch (subscript->kind) {
      case TL_SUBSCRIPT_ELEMENT:
        region->offsets[dim] = tl_sema_index(sema, subscript->lo);
        ok = region->offsets[dim] && ok;
        ++dim;
        break;
      case TL_SUBSCRIPT_RANGE:
        ok = parse_range(sema, subscript, region, dim++) && ok;
        break;
      case TL_SUBSCRIPT_COUNT:
        ok = parse_count(sema, subscript, region, dim++) && ok;
        break;
      case TL_SUBSCRIPT_NEWAXIS:
        if (tile) {
          region->axes[region->num_axes++] = (tl_sema_axis){.dim = -1, .extent = 1, .step = 1};
        } else {
          ok = slice_error(sema, subscript->loc, "`None` adds a dim in the right side of a tile assignment only");
        }
        break;
    }
  }
  sema->tile = tile;
  return ok;
}

bool tl_sema_parse_region(tl_sema *sema, const tl_expr *expr, tl_sema_region *out) {
  *out = (tl_sema_region){.loc = expr->loc};
  if (expr->kind == TL_EXPR_TRANSPOSE) {
    out->transposed = true;
    expr = expr->operands[0];
  }
  out->symbol = tl_sema_buffer(sema, expr);
  if (!out->symbol) return false;
  const tl_type *type = out->symbol->value->type;
  if (type->scope == TL_SCOPE_LOCAL) {
    tl_diag_report(sema->diags, TL_DIAG_LOCAL_PLACE, expr->loc,
                   "`%.*s` is local and no tile: its elements are read and assigned one by one",
                   TL_STR_ARG(out->symbol->name));
    return false;
  }
  out->rank = type->rank;
  sema->builder.loc = out->loc;
  int64_t size;
  if (expr->kind == TL_EXPR_INDEX) {
    if (!parse_subscripts(sema, expr, out)) return false;
  } else {
    out->is_whole = true;
    out->num_axes = type->rank;
    for (int32_t d = 0; d < type->rank; ++d) {
      out->offsets[d] = tl_build_index(&sema->builder, 0);
      out->axes[d] = (tl_sema_axis){.dim = d, .extent = type->dims[d], .step = 1};
      if (type->dims[d] < 0 || !out->symbol->dims[d] || tl_value_const_int(out->symbol->dims[d], &size)) continue;
      out->axes[d].extent = -1;
      out->axes[d].length = out->symbol->dims[d];
      set_limit(sema, out, d, out->symbol->dims[d]);
    }
  }
  if (out->has_limits) {
    for (int32_t d = 0; d < type->rank; ++d) {
      if (!out->limits[d]) out->limits[d] = tl_sema_dim(sema, out->symbol, d);
    }
  }
  if (out->transposed && !out->is_corner) {
    if (out->num_axes != 2) {
      tl_diag_report(sema->diags, TL_DIAG_SHAPE_MISMATCH, out->loc, "`.T` is of 2 dims, this has %d",
                     (int)out->num_axes);
      return false;
    }
    tl_sema_axis first = out->axes[0];
    out->axes[0] = out->axes[1];
    out->axes[1] = first;
  }
  return true;
}

int64_t tl_sema_most(tl_value *value) {
  int64_t most = tl_value_range(value).hi;
  return most > TL_MAX_RUN_TIME_EXTENT ? -1 : most < 1 ? 1 : most;
}

bool tl_sema_report_no_maximum(tl_sema *sema, const tl_expr *expr, const char *what) {
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_NOT_CONSTANT, expr->loc,
                                 "%s must be known when the kernel is compiled, or have a maximum; `%s` has none", what,
                                 tl_sema_expr_text(sema, expr));
  tl_diag_add_hint(sema->diags, diag, "say it: `assume: n <= 1024`, for up to %d", TL_MAX_RUN_TIME_EXTENT);
  return false;
}

int64_t tl_sema_axis_most(const tl_sema_region *region, int32_t i) {
  const tl_sema_axis *axis = &region->axes[i];
  int64_t size = region->symbol->value->type->dims[axis->dim], most = -1;
  if (axis->length) most = tl_sema_most(axis->length);
  int64_t first = tl_value_range(region->offsets[axis->dim]).lo;
  if (size >= 0 && first > 0) size = first < size ? size - first : 1;
  if (size >= 0 && size <= TL_MAX_RUN_TIME_EXTENT && (most < 0 || size < most)) most = size > 0 ? size : 1;
  return most < 0 ? -1 : (most + axis->step - 1) / axis->step;
}

static const char *region_shape(tl_sema *sema, const tl_sema_region *region) {
  if (region->is_corner) return tl_sema_buffer_shape(sema, region->symbol);
  int64_t shape[TL_MAX_RANK] = {0};
  for (int32_t i = 0; i < region->num_axes; ++i) shape[i] = region->axes[i].extent;
  return tl_sema_shape_text(sema->arena, shape, region->num_axes);
}

// `qs[0:8, :]`, where a slice fits into a part of a whole tile; else NULL.
static const char *fitting_part(tl_sema *sema, const tl_sema_region *whole, const tl_sema_region *slice) {
  if (!whole->is_whole || slice->is_whole || slice->is_corner || whole->num_axes != slice->num_axes) return NULL;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_str name = tl_loc_text(sema->sources, whole->loc);
  tl_strbuf_appendf(&text, "%.*s[", TL_STR_ARG(name));
  bool fits = true;
  for (int32_t i = 0; i < whole->num_axes; i++) {
    int64_t all = whole->axes[i].extent, part = slice->axes[i].extent;
    fits &= part > 0 && part <= all;
    if (i > 0) tl_strbuf_append_c(&text, ", ");
    if (part == all)
      tl_strbuf_append_c(&text, ":");
    else
      tl_strbuf_appendf(&text, "0:%lld", (long long)part);
  }
  tl_strbuf_append_c(&text, "]");
  const char *out = fits ? tl_arena_printf(sema->arena, "%s", tl_strbuf_c(&text)) : NULL;
  tl_strbuf_fini(&text);
  return out;
}

static bool report_mismatch(tl_sema *sema, const tl_sema_region *a, const tl_sema_region *b, tl_loc loc) {
  tl_diag *diag = tl_diag_report(
      sema->diags, TL_DIAG_SHAPE_MISMATCH, loc, "shapes disagree: `%s` is %s, `%s` is %s",
      tl_arena_copy_bytes(sema->arena, tl_loc_text(sema->sources, a->loc).data, tl_loc_text(sema->sources, a->loc).len),
      region_shape(sema, a),
      tl_arena_copy_bytes(sema->arena, tl_loc_text(sema->sources, b->loc).data, tl_loc_text(sema->sources, b->loc).len),
      region_shape(sema, b));
  bool swapped = a->num_axes == 2 && b->num_axes == 2 && a->axes[0].extent == b->axes[1].extent &&
                 a->axes[1].extent == b->axes[0].extent;
  if (swapped) tl_diag_add_hint(sema->diags, diag, "transpose one side with `.T`");
  const char *part = fitting_part(sema, a, b);
  if (!part) part = fitting_part(sema, b, a);
  if (part && !swapped) tl_diag_add_hint(sema->diags, diag, "`%s` is a part of this shape", part);
  const tl_sema_region *fewer = a->num_axes < b->num_axes ? a : b;
  if (a->num_axes != b->num_axes && !fewer->is_whole && fewer->num_axes > 0) {
    tl_diag_add_hint(sema->diags, diag, "beside a slice a scalar subscript drops its dim: write `i:+n` for n elements");
  }
  return false;
}

// A corner of [S, H, D] at (block * 64, h, 0) walks H and D, not S, with a tile of [64, D]: told where the dim is too
// short for that and one that stays steps by the tile's size.
static void warn_other_dim(tl_sema *sema, const tl_sema_region *corner) {
  const tl_type *type = corner->symbol->value->type;
  for (int32_t i = 0; i < corner->num_axes; ++i) {
    int32_t walked = corner->axes[i].dim;
    int64_t extent = corner->axes[i].extent, size = type->dims[walked];
    if (size < 0 || size >= extent || extent == 1) continue;
    for (int32_t d = 0; d < corner->rank - corner->num_axes; ++d) {
      int64_t constant;
      if (tl_value_const_int(corner->offsets[d], &constant) || tl_value_divisor(corner->offsets[d]) % extent != 0)
        continue;
      tl_diag *diag = tl_diag_report(
          sema->diags, TL_DIAG_CORNER_DIM, corner->loc,
          "%lld elements are taken along dim %d of `%.*s`, which has %lld, and none along dim "
          "%d, which steps by multiples of %lld",
          (long long)extent, walked, TL_STR_ARG(corner->symbol->name), (long long)size, d, (long long)extent);
      tl_diag_add_hint(sema->diags, diag,
                       "a corner walks the last dims of its tensor; slices name others, as in `X[i:+%lld, h, :]`",
                       (long long)extent);
      return;
    }
  }
}

// The corner walks the last dims of its buffer.
static bool complete_corner(tl_sema *sema, tl_sema_region *corner, const tl_sema_region *other, tl_loc loc) {
  int32_t count = other->num_axes;
  if (count > corner->rank) return report_mismatch(sema, corner, other, loc);
  if (corner->transposed && count != 2) {
    tl_diag_report(sema->diags, TL_DIAG_SHAPE_MISMATCH, corner->loc, "`.T` is of 2 dims, the other side has %d",
                   (int)count);
    return false;
  }
  corner->num_axes = count;
  for (int32_t i = 0; i < count; ++i) {
    int32_t dim = corner->rank - count + (corner->transposed ? count - 1 - i : i);
    corner->axes[i] = (tl_sema_axis){.dim = dim, .extent = other->axes[i].extent, .step = 1};
    tl_value *length = other->axes[i].length;
    if (corner->axes[i].extent >= 0 || !length || other->axes[i].step != 1) continue;
    corner->axes[i].length = length;
    set_limit(sema, corner, dim, tl_index_add(&sema->builder, corner->offsets[dim], length));
  }
  corner->is_corner = false;
  for (int32_t d = 0; corner->has_limits && d < corner->rank; ++d)
    if (!corner->limits[d]) corner->limits[d] = tl_sema_dim(sema, corner->symbol, d);
  warn_other_dim(sema, corner);
  return true;
}

// Drops leading axes of extent 1 until the region has at most `count`.
static void drop_leading(tl_sema_region *region, int32_t count) {
  while (region->num_axes > count && region->axes[0].extent == 1) {
    for (int32_t i = 1; i < region->num_axes; ++i) region->axes[i - 1] = region->axes[i];
    --region->num_axes;
  }
}

bool tl_sema_match_regions(tl_sema *sema, tl_sema_region *a, tl_sema_region *b, tl_loc loc) {
  if (a->is_corner && b->is_corner) {
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_COPY_EXTENTS, loc, "both sides are corners: the size is unknown");
    tl_diag_add_hint(sema->diags, diag, "give the size on one side: `X[i:+n, j:+m]`, or name a whole tile");
    return false;
  }
  drop_leading(a, b->is_corner ? b->rank : b->num_axes);
  drop_leading(b, a->is_corner ? a->rank : a->num_axes);
  if (a->is_corner && !complete_corner(sema, a, b, loc)) return false;
  if (b->is_corner && !complete_corner(sema, b, a, loc)) return false;
  if (a->num_axes != b->num_axes) return report_mismatch(sema, a, b, loc);
  for (int32_t i = 0; i < a->num_axes; ++i) {
    int64_t x = a->axes[i].extent, y = b->axes[i].extent;
    if (x >= 0 && y >= 0 && x != y) return report_mismatch(sema, a, b, loc);
    if (x < 0 && y < 0) {
      x = tl_sema_axis_most(a, i);
      y = tl_sema_axis_most(b, i);
      if (x < 0 || (y >= 0 && y < x)) x = y;
    }
    if (x < 0 && y < 0) {
      tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_COPY_EXTENTS, loc,
                                     "the extent of dim %d is known at run time only on both sides", (int)i);
      tl_diag_add_hint(sema->diags, diag,
                       "one side must be a part of a tile, or have a largest length of up to %d, as by "
                       "`assume: n <= 1024`",
                       TL_MAX_RUN_TIME_EXTENT);
      return false;
    }
    a->axes[i].extent = b->axes[i].extent = x >= 0 ? x : y;
  }
  return true;
}
