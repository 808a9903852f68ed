// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/tensormap.h"

#include <stddef.h>

typedef struct type_facts {
  const char *name;
  uint32_t bytes;
  bool is_float;
} type_facts;

static const type_facts types[TL_TENSORMAP_NUM_TYPES] = {
    [TL_TENSORMAP_U8] = {"u8", 1, false},           [TL_TENSORMAP_U16] = {"u16", 2, false},
    [TL_TENSORMAP_U32] = {"u32", 4, false},         [TL_TENSORMAP_S32] = {"s32", 4, false},
    [TL_TENSORMAP_U64] = {"u64", 8, false},         [TL_TENSORMAP_S64] = {"s64", 8, false},
    [TL_TENSORMAP_F16] = {"f16", 2, true},          [TL_TENSORMAP_F32] = {"f32", 4, true},
    [TL_TENSORMAP_F64] = {"f64", 8, true},          [TL_TENSORMAP_BF16] = {"bf16", 2, true},
    [TL_TENSORMAP_F32_FTZ] = {"f32.ftz", 4, true},  [TL_TENSORMAP_TF32] = {"tf32", 4, true},
    [TL_TENSORMAP_TF32_FTZ] = {"tf32.ftz", 4, true}};

uint32_t tl_tensormap_type_bytes(tl_tensormap_type type) {
  return types[type].bytes;
}

const char *tl_tensormap_type_name(tl_tensormap_type type) {
  return types[type].name;
}

bool tl_tensormap_type_is_float(tl_tensormap_type type) {
  return types[type].is_float;
}

uint32_t tl_tensormap_swizzle_span(tl_tensormap_swizzle swizzle) {
  return swizzle == TL_TENSORMAP_SWIZZLE_NONE ? 0 : 16u << swizzle;
}

uint32_t tl_tensormap_l2_bytes(tl_tensormap_l2 l2) {
  return l2 == TL_TENSORMAP_L2_NONE ? 0 : 32u << l2;
}

static tl_status invalid(const char *rule, const char *what, long long value) {
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "tensor map: %s is %lld, %s", what, value, rule);
}

static tl_status invalid_at(const char *rule, const char *array, uint32_t i, long long value) {
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "tensor map: %s[%u] is %lld, %s", array, i, value, rule);
}

static tl_status validate_choices(const tl_tensormap_params *p) {
  if ((unsigned)p->type >= TL_TENSORMAP_NUM_TYPES) return invalid("which is no type", "type", (long long)p->type);
  if ((unsigned)p->interleave > TL_TENSORMAP_INTERLEAVE_32B)
    return invalid("which is no interleave", "interleave", (long long)p->interleave);
  if ((unsigned)p->swizzle > TL_TENSORMAP_SWIZZLE_128B)
    return invalid("which is no swizzle of sm_90", "swizzle", (long long)p->swizzle);
  if ((unsigned)p->l2 > TL_TENSORMAP_L2_256B) return invalid("which is no promotion", "l2", (long long)p->l2);
  if ((unsigned)p->fill > TL_TENSORMAP_FILL_NAN) return invalid("which is no fill", "fill", (long long)p->fill);
  if (p->fill == TL_TENSORMAP_FILL_NAN && !types[p->type].is_float)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "tensor map: fill with NaN needs a type of float, not %s",
                          types[p->type].name);
  if (p->interleave == TL_TENSORMAP_INTERLEAVE_32B && p->swizzle != TL_TENSORMAP_SWIZZLE_32B)
    return invalid("but interleave 32B takes swizzle 32B (1)", "swizzle", (long long)p->swizzle);
  return TL_OK;
}

static tl_status validate_memory(const tl_tensormap_params *p) {
  bool wide = p->interleave == TL_TENSORMAP_INTERLEAVE_32B;
  uintptr_t align = wide ? 32 : 16;
  const char *multiple = wide ? "not a multiple of 32 (interleave 32B)" : "not a multiple of 16";
  uint32_t lowest = p->is_im2col || p->interleave != TL_TENSORMAP_INTERLEAVE_NONE ? 3 : 1;
  if (p->rank < lowest || p->rank > TL_TENSORMAP_MAX_RANK)
    return invalid(lowest == 3 ? "not 3 to 5 (im2col and interleave need 3)" : "not 1 to 5", "rank", p->rank);
  if (!p->address) return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "tensor map: address is NULL");
  if ((uintptr_t)p->address % align)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "tensor map: address %p is %s", p->address, multiple);
  for (uint32_t i = 0; i < p->rank; i++)
    if (!p->dims[i] || p->dims[i] > (uint64_t)1 << 32)
      return invalid_at("not 1 to 2^32", "dims", i, (long long)p->dims[i]);
  for (uint32_t i = 0; i + 1 < p->rank; i++) {
    // The driver's documentation: each stride includes those of the dims before it.
    if (!p->strides[i] && p->dims[i + 1] > 1)
      return invalid_at("but elements of a dim lie apart", "strides", i, (long long)p->strides[i]);
    if (p->strides[i] % align) return invalid_at(multiple, "strides", i, (long long)p->strides[i]);
    if (p->strides[i] >= (uint64_t)1 << 40) return invalid_at("not below 2^40", "strides", i, (long long)p->strides[i]);
  }
  for (uint32_t i = 0; i < p->rank; i++) {
    if (!p->element_strides[i] || p->element_strides[i] > 8)
      return invalid_at("not 1 to 8", "element_strides", i, p->element_strides[i]);
  }
  return TL_OK;
}

// `inner`: elements of the innermost dimension that are copied.
static tl_status validate_inner(const tl_tensormap_params *p, const char *name, uint32_t inner) {
  uint32_t bytes = inner * types[p->type].bytes, span = tl_tensormap_swizzle_span(p->swizzle);
  // The driver asks this of interleaved tensors too, although their dimension 0 does not count elements (measured).
  if (bytes % 16)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "tensor map: %s is %u elements, %u bytes: not a multiple of 16",
                          name, inner, bytes);
  if (p->interleave != TL_TENSORMAP_INTERLEAVE_NONE) return TL_OK;
  if (span && bytes > span)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "tensor map: %s is %u elements, %u bytes: more than the swizzle's span of %u", name, inner,
                          bytes, span);
  return TL_OK;
}

static tl_status validate_tiled(const tl_tensormap_params *p) {
  for (uint32_t i = 0; i < p->rank; i++)
    if (!p->box[i] || p->box[i] > 256) return invalid_at("not 1 to 256", "box", i, p->box[i]);
  return validate_inner(p, "box[0]", p->box[0]);
}

static tl_status validate_im2col(const tl_tensormap_params *p) {
  static const int32_t lowest[] = {-32768, -128, -16}, highest[] = {32767, 127, 15};
  static const char *const ranges[] = {"not -32768 to 32767 (rank 3)", "not -128 to 127 (rank 4)",
                                       "not -16 to 15 (rank 5)"};
  uint32_t n = p->rank - 2, w = p->interleave == TL_TENSORMAP_INTERLEAVE_NONE ? 1 : 0;
  for (uint32_t i = 0; i < n; i++) {
    if (p->lower[i] < lowest[n - 1] || p->lower[i] > highest[n - 1])
      return invalid_at(ranges[n - 1], "lower", i, p->lower[i]);
    if (p->upper[i] < lowest[n - 1] || p->upper[i] > highest[n - 1])
      return invalid_at(ranges[n - 1], "upper", i, p->upper[i]);
    if ((int64_t)p->dims[w + i] + p->upper[i] <= p->lower[i])
      return invalid_at("which leaves an empty box", "upper", i, p->upper[i]);
  }
  if (!p->channels_per_pixel || p->channels_per_pixel > 256)
    return invalid("not 1 to 256", "channels_per_pixel", p->channels_per_pixel);
  if (!p->pixels_per_column || p->pixels_per_column > 1024)
    return invalid("not 1 to 1024", "pixels_per_column", p->pixels_per_column);
  return validate_inner(p, "channels_per_pixel", p->channels_per_pixel);
}

tl_status tl_tensormap_validate(const tl_tensormap_params *params) {
  TL_TRY(validate_choices(params));
  TL_TRY(validate_memory(params));
  return params->is_im2col ? validate_im2col(params) : validate_tiled(params);
}
