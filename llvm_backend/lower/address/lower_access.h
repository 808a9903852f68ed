// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the elements lie that a thread handles, how it reaches them in a buffer, and how they travel.
#ifndef TL_LLVM_BACKEND_LOWER_ACCESS_H
#define TL_LLVM_BACKEND_LOWER_ACCESS_H

#include "llvm_backend/lower/state/lower.h"

// ---- layouts (lower_place.c)
const tl_place *tl_lower_place(tl_lower *l, const tl_layout *layout, const tl_op *op);
void tl_lower_place_register(tl_place *place, int32_t reg);
// Whether the current group (elements along vec_dim) lies in `shape` for every thread; else *out_active gets the
// condition.
bool tl_lower_place_inside(tl_lower *l, const tl_place *place, LLVMValueRef *out_active);
// Contiguous width starting at every multiple of it: registers r … r+width-1 run along one dim. At most `wanted`.
int32_t tl_lower_group_width(const tl_layout *layout, int32_t wanted, int32_t *out_dim);
// The register of a tile whose register part of the coordinate is `coord`, or -1.
int32_t tl_lower_tile_register(const tl_layout *layout, const int32_t *coord);

// ---- addresses and bounds (lower_access.c)
void tl_lower_access_init(tl_lower *l, tl_mem_access *access, const tl_op *op, const tl_buffer *buffer);
// Index operand of a load or store inside (or outside) a parallel.
void tl_lower_access_index(tl_lower *l, tl_mem_access *access, int32_t d, tl_value *index, int32_t e);
// Reads a CHECK attribute (absent: both bounds of global buffers).
void tl_lower_access_checks(tl_mem_access *access, const tl_op *op, tl_attr_key key);
// Pointer to the element at place->reg.
LLVMValueRef tl_lower_access_pointer(tl_lower *l, tl_mem_access *access, const tl_place *place);
// Bytes that this pointer is known to be a multiple of, at least those of the access, `bytes`: from the tensor's
// alignment, its strides and what divides the indices.
int32_t tl_lower_access_align(const tl_mem_access *access, const tl_place *place, int32_t bytes);
// Bounds of that element; NULL when nothing has to be tested.
LLVMValueRef tl_lower_access_inside(tl_lower *l, tl_mem_access *access, const tl_place *place);
// How many of the `bytes` of a vector that begins there lie inside, as an i32; NULL when all do.
LLVMValueRef tl_lower_access_bytes(tl_lower *l, tl_mem_access *access, const tl_place *place, int32_t bytes);
// Two 4-bit elements share a byte: 0 or 1 (i32) for the lower or upper half, when one such element is accessed alone.
// NULL for wider dtypes, and for `count` > 1 elements, which start at a byte.
LLVMValueRef tl_lower_access_half(tl_lower *l, const tl_mem_access *access, const tl_place *place, int32_t count);

// One side of a copy: offsets, limits, steps and checks of `op` for the buffer, distributed as `place`.
typedef struct tl_side {
  int offsets, limits;  // operand groups
  tl_attr_key dims, step, check;
} tl_side;
void tl_lower_access_side(tl_lower *l, tl_mem_access *access, const tl_op *op, const tl_buffer *buffer,
                          const tl_side *side, const tl_place *place);

// ---- raw memory traffic (lower_raw.c): `bytes` is 1, 2, 4, 8 or 16; raw values are i8, i16, i32 or vectors of i32.
// Where more is known of the pointer than `bytes`, `align` says so: accesses that lie beside each other become one.
LLVMValueRef tl_lower_load_raw(tl_lower *l, const tl_buffer *buffer, LLVMValueRef pointer, int32_t bytes, int32_t align,
                               LLVMValueRef inside, int evict);
// The same for what may be half a byte (`half` from tl_lower_access_half, or NULL); the raw value is then an i8 whose
// lower half counts. A half is stored with atomics, since the other one may be another thread's.
LLVMValueRef tl_lower_load_part(tl_lower *l, const tl_buffer *buffer, LLVMValueRef pointer, LLVMValueRef half,
                                int32_t bytes, int32_t align, LLVMValueRef inside, int evict);
void tl_lower_store_part(tl_lower *l, const tl_buffer *buffer, LLVMValueRef pointer, LLVMValueRef half,
                         LLVMValueRef raw, int32_t bytes, int32_t align, LLVMValueRef inside, int evict);
// Bytes that `count` elements take, at least one.
int32_t tl_lower_raw_bytes(tl_dtype dtype, int32_t count);
// `count` elements of `dtype` in registers (bool as i1) out of a raw value, and back.
void tl_lower_unpack(tl_lower *l, LLVMValueRef raw, tl_dtype dtype, int32_t count, LLVMValueRef *out);
LLVMValueRef tl_lower_pack(tl_lower *l, LLVMValueRef const *items, tl_dtype dtype, int32_t count);
// Elements one raw access moves: `vec` limited to 16 bytes.
int32_t tl_lower_raw_count(tl_dtype dtype, int32_t vec);

#endif
