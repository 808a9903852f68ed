// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of mbarriers, tensor maps, copies by the copy engine and bulk groups.
#include "ir/verify/verify_internal.h"

enum {
  MAX_ARRIVALS = (1 << 20) - 1,  // PTX ISA, "mbarrier: contents": pending count, and expected bytes of a phase
  MAX_WARPS = 32,                // of a block
  MAX_MAP_RANK = 5,
  LEAST_PIXEL_RANK = 3,
  CHUNK_BYTES = 16  // the innermost dim of a box is made of such
};

// The MBARRIER op behind an operand, when it is known.
static const tl_op *mbarrier_of(const tl_value *barrier) {
  return barrier->def && barrier->def->code == TL_OP_MBARRIER ? barrier->def : NULL;
}

static void verify_constant(tl_verifier *verifier, const tl_op *op, const char *what, const tl_value *value,
                            int64_t least, int64_t most) {
  int64_t constant;
  if (value && tl_value_const_int(value, &constant)) tl_verify_range(verifier, op, what, constant, least, most);
}

static void verify_stage(tl_verifier *verifier, const tl_op *op, const tl_value *barrier, const tl_value *stage) {
  const tl_op *made = mbarrier_of(barrier);
  if (barrier->def && barrier->def->code == TL_OP_NAMED_BARRIER)
    tl_verify_fail(verifier, op, "a named barrier has no stages and phases");
  if (made) verify_constant(verifier, op, "stage", stage, 0, tl_op_int(made, TL_ATTR_DEPTH, 1) - 1);
}

static void verify_named(tl_verifier *verifier, const tl_op *op) {
  const tl_op *made = tl_op_operand(op, 0)->def;
  if (!made || made->code != TL_OP_NAMED_BARRIER) tl_verify_fail(verifier, op, "the barrier is no named one");
}

static void verify_mbarrier(tl_verifier *verifier, const tl_op *op) {
  if (op->results[0].type->kind != TL_TYPE_MBARRIER) tl_verify_fail(verifier, op, "the result is no mbarrier");
}

// What is done across the cluster needs one.
static void verify_across(tl_verifier *verifier, const tl_op *op) {
  const tl_op *kernel = tl_op_enclosing(op, TL_OP_KERNEL);
  if (!tl_op_has(op, TL_ATTR_ACROSS) || !kernel) return;
  if (tl_kernel_cluster_size(kernel, tl_op_int(op, TL_ATTR_ACROSS, 0), NULL) < 2)
    tl_verify_fail(verifier, op, "no blocks form a cluster along dim %lld of the grid",
                   (long long)tl_op_int(op, TL_ATTR_ACROSS, 0));
}

static void verify_arrive(tl_verifier *verifier, const tl_op *op) {
  const tl_value *bytes = tl_op_arg(op, TL_GROUP_MBARRIER_ARRIVE_bytes);
  verify_stage(verifier, op, tl_op_arg(op, TL_GROUP_MBARRIER_ARRIVE_barrier),
               tl_op_arg(op, TL_GROUP_MBARRIER_ARRIVE_stage));
  verify_constant(verifier, op, "bytes", bytes, 0, MAX_ARRIVALS);
  verify_across(verifier, op);
  if (bytes && tl_op_int(op, TL_ATTR_EACH, 0) != TL_EACH_ROLE)
    tl_verify_fail(verifier, op, "only the elected thread (each=role) expects bytes");
}

static void verify_wait(tl_verifier *verifier, const tl_op *op) {
  int64_t each = tl_op_int(op, TL_ATTR_EACH, 0);
  verify_stage(verifier, op, tl_op_arg(op, TL_GROUP_MBARRIER_WAIT_barrier),
               tl_op_arg(op, TL_GROUP_MBARRIER_WAIT_stage));
  verify_constant(verifier, op, "phase", tl_op_arg(op, TL_GROUP_MBARRIER_WAIT_phase), 0, 1);
  if (each != TL_EACH_THREAD && each != TL_EACH_ROLE)
    tl_verify_fail(verifier, op, "every thread or the elected one waits (each=thread, each=role)");
}

// ---- tensor maps

static bool verify_map_ints(tl_verifier *verifier, const tl_op *op, const tl_type *buffer) {
  const tl_attr *dims = tl_op_attr(op, TL_ATTR_MAP_DIMS), *box = tl_op_attr(op, TL_ATTR_BOX);
  int32_t rank = dims->v.ints.len, first = tl_op_has(op, TL_ATTR_PANEL) ? 1 : 0;
  if (rank < 1 + first || rank > MAX_MAP_RANK) return tl_verify_fail(verifier, op, "a map of rank %d", rank);
  if (box->v.ints.len != rank)
    return tl_verify_fail(verifier, op, "'box' has %d entries for a map of rank %d", box->v.ints.len, rank);
  unsigned walked = 0;
  for (int32_t i = 0; i < rank; i++) {
    int64_t dim = dims->v.ints.items[i];
    if (dim < 0 || dim >= buffer->rank)
      return tl_verify_fail(verifier, op, "dim %d of the map walks dim %lld of a buffer of rank %d", i, (long long)dim,
                            buffer->rank);
    if (i >= first && (walked >> dim & 1))
      return tl_verify_fail(verifier, op, "two dims of the map walk dim %lld", (long long)dim);
    if (i >= first) walked |= 1U << dim;
  }
  return true;
}

// A map of pixels: the dims of the buffer in their order, corners and steps of those between the first and the last
// (PTX ISA, "Tensors: im2col mode"; CUDA Driver API, cuTensorMapEncodeIm2col).
static void verify_pixels(tl_verifier *verifier, const tl_op *op, const tl_type *buffer) {
  static const tl_attr_key lists[] = {TL_ATTR_LOWER, TL_ATTR_UPPER, TL_ATTR_PIXEL_STEP};
  const tl_attr *dims = tl_op_attr(op, TL_ATTR_MAP_DIMS), *box = tl_op_attr(op, TL_ATTR_BOX);
  int32_t rank = dims->v.ints.len;
  if (rank < LEAST_PIXEL_RANK || rank != buffer->rank || tl_op_has(op, TL_ATTR_PANEL)) {
    tl_verify_fail(verifier, op, "a map of pixels has the buffer's dims, three at least, and no panels");
    return;
  }
  bool in_order = true, is_narrow = true;
  for (int32_t i = 0; i < rank; i++) {
    in_order &= dims->v.ints.items[i] == i;
    is_narrow &= i >= rank - 2 || box->v.ints.items[i] == 1;
  }
  if (!in_order) tl_verify_fail(verifier, op, "a map of pixels walks the buffer's dims in order");
  if (!is_narrow) tl_verify_fail(verifier, op, "a box of pixels is 1 wide but for its last two dims");
  for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
    const tl_attr *list = tl_op_attr(op, lists[k]);
    if (!list || list->v.ints.len != rank - 2)
      tl_verify_fail(verifier, op, "'%s' has an entry for each dim but the first and the last",
                     tl_attr_key_text(lists[k]));
  }
}

static bool is_of_pixels(const tl_op *map) {
  return tl_op_has(map, TL_ATTR_LOWER) || tl_op_has(map, TL_ATTR_UPPER) || tl_op_has(map, TL_ATTR_PIXEL_STEP);
}

static void verify_map(tl_verifier *verifier, const tl_op *op) {
  const tl_type *buffer = tl_op_arg(op, TL_GROUP_TENSOR_MAP_buffer)->type;
  if (op->results[0].type->kind != TL_TYPE_MAP) tl_verify_fail(verifier, op, "the result is no map");
  if (buffer->scope != TL_SCOPE_GLOBAL) tl_verify_fail(verifier, op, "a map is of a global buffer");
  if (!verify_map_ints(verifier, op, buffer)) return;
  const tl_attr *dims = tl_op_attr(op, TL_ATTR_MAP_DIMS), *box = tl_op_attr(op, TL_ATTR_BOX);
  int32_t rank = dims->v.ints.len;
  int64_t inner = box->v.ints.items[rank - 1], swizzle = tl_op_int(op, TL_ATTR_SWIZZLE, 0);
  int64_t bytes = inner * tl_dtype_bits(buffer->dtype) / 8;
  if (tl_dtype_bits(buffer->dtype) < 8 || bytes % CHUNK_BYTES != 0)
    tl_verify_fail(verifier, op, "%lld elements of %s along the last dim are no multiple of %d bytes", (long long)inner,
                   tl_dtype_name(buffer->dtype), CHUNK_BYTES);
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    tl_verify_fail(verifier, op, "'swizzle' is %lld, not 0, 32, 64 or 128", (long long)swizzle);
  if (swizzle != 0 && bytes > swizzle)
    tl_verify_fail(verifier, op, "%lld bytes along the last dim are more than the swizzle's %lld", (long long)bytes,
                   (long long)swizzle);
  int64_t panel = tl_op_int(op, TL_ATTR_PANEL, inner);
  if (tl_op_has(op, TL_ATTR_PANEL) && (panel != inner || dims->v.ints.items[0] != dims->v.ints.items[rank - 1]))
    tl_verify_fail(verifier, op, "the first dim counts panels of the last dim's box");
  if (is_of_pixels(op)) verify_pixels(verifier, op, buffer);
}

// ---- copies

// Elements of a copy along dim `d` of its global side.
static int64_t extent_along(const tl_op *copy, tl_attr_key dims_key, int64_t d) {
  const tl_attr *dims = tl_op_attr(copy, dims_key), *extents = tl_op_attr(copy, TL_ATTR_EXTENTS);
  for (int32_t t = 0; t < dims->v.ints.len; t++)
    if (dims->v.ints.items[t] == d) return extents->v.ints.items[t];
  return 1;
}

// The boxes of the map must tile the copy's.
static void verify_boxes(tl_verifier *verifier, const tl_op *copy, const tl_op *map, tl_attr_key dims_key) {
  const tl_attr *dims = tl_op_attr(map, TL_ATTR_MAP_DIMS), *box = tl_op_attr(map, TL_ATTR_BOX);
  if (!dims || !box || dims->v.ints.len != box->v.ints.len) return;
  int32_t rank = dims->v.ints.len, first = tl_op_has(map, TL_ATTR_PANEL) ? 1 : 0;
  const tl_attr *walked = tl_op_attr(copy, dims_key);
  for (int32_t i = first; i < rank; i++) {
    int64_t size = box->v.ints.items[i], extent = extent_along(copy, dims_key, dims->v.ints.items[i]);
    if (first && i == rank - 1) size *= box->v.ints.items[0];
    if (size < 1 || extent % size != 0)
      tl_verify_fail(verifier, copy, "boxes of %lld do not fill %lld elements along dim %lld", (long long)size,
                     (long long)extent, (long long)dims->v.ints.items[i]);
  }
  for (int32_t t = 0; t < walked->v.ints.len; t++) {
    bool found = false;
    for (int32_t i = 0; i < rank; i++) found |= dims->v.ints.items[i] == walked->v.ints.items[t];
    if (!found) tl_verify_fail(verifier, copy, "the map does not walk dim %lld", (long long)walked->v.ints.items[t]);
  }
}

static void verify_copy(tl_verifier *verifier, const tl_op *op) {
  const tl_value *map = tl_op_arg(op, TL_GROUP_COPY_map), *barrier = tl_op_arg(op, TL_GROUP_COPY_barrier);
  const tl_value *stage = tl_op_arg(op, TL_GROUP_COPY_stage);
  if (!map && tl_op_group_len(op, TL_GROUP_COPY_taps) > 0)
    tl_verify_fail(verifier, op, "taps belong to a map of pixels");
  if (!map && !barrier && !stage) return;
  const tl_value *src = tl_op_arg(op, TL_GROUP_COPY_src), *dst = tl_op_arg(op, TL_GROUP_COPY_dst);
  // A copy by hand gets its map when select-copies looks at it.
  bool is_planned = map || (barrier && tl_op_has(op, TL_ATTR_BY_HAND));
  if (!is_planned || tl_op_int(op, TL_ATTR_VIA, TL_VIA_AUTO) != TL_VIA_TMA)
    tl_verify_fail(verifier, op, "map, barrier and stage belong to a copy via tma");
  if (!barrier != !stage) tl_verify_fail(verifier, op, "barrier and stage go together");
  if (barrier && stage) verify_stage(verifier, op, barrier, stage);
  verify_across(verifier, op);
  if (!map) return;
  bool loads = src->type->scope == TL_SCOPE_GLOBAL && dst->type->scope == TL_SCOPE_SHARED;
  bool stores = src->type->scope == TL_SCOPE_SHARED && dst->type->scope == TL_SCOPE_GLOBAL;
  if (!loads && !stores) {
    tl_verify_fail(verifier, op, "the copy engine moves between global and shared memory");
    return;
  }
  if (loads && tl_op_has(op, TL_ATTR_ATOMIC)) tl_verify_fail(verifier, op, "only a copy out of shared memory combines");
  if (stores && barrier) tl_verify_fail(verifier, op, "a copy out of shared memory counts on no mbarrier");
  bool is_marked = map->def && tl_op_has(map->def, TL_ATTR_ROUNDS);
  bool rounds = is_marked && src->type->dtype == TL_DTYPE_F32 && dst->type->dtype == TL_DTYPE_TF32;
  if (src->type->dtype != dst->type->dtype && !rounds)
    tl_verify_fail(verifier, op, "the copy engine converts nothing but f32 to tf32, by a map that rounds");
  if (is_marked && !rounds) tl_verify_fail(verifier, op, "the map rounds f32 to tf32");
  if (!map->def || map->def->code != TL_OP_TENSOR_MAP) return;
  if (tl_op_operand(map->def, 0) != (loads ? src : dst)) tl_verify_fail(verifier, op, "the map is of another buffer");
  uint32_t taps = tl_op_group_len(op, TL_GROUP_COPY_taps), rank = (uint32_t)src->type->rank;
  if (is_of_pixels(map->def) ? !loads || taps + 2 != rank : taps != 0)
    tl_verify_fail(verifier, op,
                   "a load of pixels has a tap for each dim but the first and the last, and no other copy has");
  verify_boxes(verifier, op, map->def, loads ? TL_ATTR_SRC_DIMS : TL_ATTR_DST_DIMS);
}

void tl_verify_async_op(tl_verifier *verifier, const tl_op *op) {
  switch (op->code) {
    case TL_OP_MBARRIER:
      verify_mbarrier(verifier, op);
      break;
    case TL_OP_NAMED_BARRIER:
      if (op->results[0].type->kind != TL_TYPE_MBARRIER) tl_verify_fail(verifier, op, "the result is no mbarrier");
      tl_verify_range(verifier, op, "arrivals", tl_op_int(op, TL_ATTR_ARRIVALS, 0), 1, MAX_WARPS);
      break;
    case TL_OP_TILE_QUEUE:
      if (op->results[0].type->kind != TL_TYPE_MBARRIER) tl_verify_fail(verifier, op, "the result is no mbarrier");
      break;
    case TL_OP_NAMED_SYNC:
    case TL_OP_NAMED_ARRIVE:
      verify_named(verifier, op);
      break;
    case TL_OP_MBARRIER_ARRIVE:
      verify_arrive(verifier, op);
      break;
    case TL_OP_MBARRIER_EXPECT:
      verify_stage(verifier, op, tl_op_arg(op, TL_GROUP_MBARRIER_EXPECT_barrier),
                   tl_op_arg(op, TL_GROUP_MBARRIER_EXPECT_stage));
      verify_constant(verifier, op, "bytes", tl_op_arg(op, TL_GROUP_MBARRIER_EXPECT_bytes), 0, MAX_ARRIVALS);
      break;
    case TL_OP_MBARRIER_WAIT:
      verify_wait(verifier, op);
      break;
    case TL_OP_FENCE_PROXY: {
      int64_t space = tl_op_int(op, TL_ATTR_SPACE, TL_SCOPE_SHARED);
      if (space != TL_SCOPE_SHARED && space != TL_SCOPE_GLOBAL)
        tl_verify_fail(verifier, op, "a proxy fence is about shared or global memory");
      break;
    }
    case TL_OP_TENSOR_MAP:
      verify_map(verifier, op);
      break;
    case TL_OP_BULK_WAIT:
      break;
    case TL_OP_COPY:
      verify_copy(verifier, op);
      break;
    default:
      break;
  }
}
