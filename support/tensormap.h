// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of a TMA tensor map, in the terms and with the numbers of cuTensorMapEncodeTiled and
// cuTensorMapEncodeIm2col (CUDA driver API, Tensor Map Object Management), and the rules that they must keep. The
// driver only says that a value is invalid; these checks say which and why.
#ifndef TL_SUPPORT_TENSORMAP_H
#define TL_SUPPORT_TENSORMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "support/status.h"

enum {
  TL_TENSORMAP_MAX_RANK = 5,
  TL_TENSORMAP_BYTES = 128,
  TL_TENSORMAP_ALIGN = 64,
  TL_TENSORMAP_STRIDE_UNIT = 16  // bytes: strides are multiples of it
};

// Types of elements. 8-bit floats go as U8.
typedef enum tl_tensormap_type {
  TL_TENSORMAP_U8,
  TL_TENSORMAP_U16,
  TL_TENSORMAP_U32,
  TL_TENSORMAP_S32,
  TL_TENSORMAP_U64,
  TL_TENSORMAP_S64,
  TL_TENSORMAP_F16,
  TL_TENSORMAP_F32,
  TL_TENSORMAP_F64,
  TL_TENSORMAP_BF16,
  TL_TENSORMAP_F32_FTZ,
  TL_TENSORMAP_TF32,
  TL_TENSORMAP_TF32_FTZ,
  TL_TENSORMAP_NUM_TYPES
} tl_tensormap_type;

typedef enum tl_tensormap_interleave {
  TL_TENSORMAP_INTERLEAVE_NONE,
  TL_TENSORMAP_INTERLEAVE_16B,
  TL_TENSORMAP_INTERLEAVE_32B
} tl_tensormap_interleave;

// 16-byte chunks change places within a span of so many bytes.
typedef enum tl_tensormap_swizzle {
  TL_TENSORMAP_SWIZZLE_NONE,
  TL_TENSORMAP_SWIZZLE_32B,
  TL_TENSORMAP_SWIZZLE_64B,
  TL_TENSORMAP_SWIZZLE_128B
} tl_tensormap_swizzle;

typedef enum tl_tensormap_l2 {
  TL_TENSORMAP_L2_NONE,
  TL_TENSORMAP_L2_64B,
  TL_TENSORMAP_L2_128B,
  TL_TENSORMAP_L2_256B
} tl_tensormap_l2;

// What loads give outside the tensor.
typedef enum tl_tensormap_fill { TL_TENSORMAP_FILL_ZERO, TL_TENSORMAP_FILL_NAN } tl_tensormap_fill;

typedef struct tl_tensormap_params {
  tl_tensormap_type type;
  uint32_t rank;                                    // 1 to 5; im2col: 3 to 5
  void *address;                                    // global memory, a multiple of 16 (interleave 32B: of 32)
  uint64_t dims[TL_TENSORMAP_MAX_RANK];             // elements, innermost first
  uint64_t strides[TL_TENSORMAP_MAX_RANK - 1];      // bytes from one index of dimension 1, 2, … to the next
  uint32_t element_strides[TL_TENSORMAP_MAX_RANK];  // every so many elements are taken
  tl_tensormap_interleave interleave;
  tl_tensormap_swizzle swizzle;
  tl_tensormap_l2 l2;
  tl_tensormap_fill fill;
  uint32_t box[TL_TENSORMAP_MAX_RANK];  // tiled: elements that are walked over
  bool is_im2col;  // dimensions are channels, W, H, D (as many as there are) and N; interleaved: W, H, D, slices and N
  int32_t lower[TL_TENSORMAP_MAX_RANK - 2], upper[TL_TENSORMAP_MAX_RANK - 2];  // corners of the box: W, H, D
  uint32_t channels_per_pixel, pixels_per_column;
} tl_tensormap_params;

// Bytes of one element.
uint32_t tl_tensormap_type_bytes(tl_tensormap_type type);
// "f16"
const char *tl_tensormap_type_name(tl_tensormap_type type);
bool tl_tensormap_type_is_float(tl_tensormap_type type);
// 32, 64 or 128; 0 without swizzle.
uint32_t tl_tensormap_swizzle_span(tl_tensormap_swizzle swizzle);

// 64, 128 or 256; 0 without promotion.
uint32_t tl_tensormap_l2_bytes(tl_tensormap_l2 l2);

// INVALID_ARGUMENT with the parameter, its value and the rule, for the first rule that is broken.
TL_MUST_USE tl_status tl_tensormap_validate(const tl_tensormap_params *params);

#endif
