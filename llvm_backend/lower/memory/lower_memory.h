// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the memory families of the lowering share.
#ifndef TL_LLVM_BACKEND_LOWER_MEMORY_H
#define TL_LLVM_BACKEND_LOWER_MEMORY_H

#include "llvm_backend/lower/state/lower.h"

// The access of a load, store, atomic or in_bounds for element e of the group; shared by all groups where the index
// allows it. NULL after a failure.
tl_mem_access *tl_lower_element_access(tl_lower *l, const tl_op *op, int buffer_group, int index_group, int32_t e);
// The current group's place moved to element e.
tl_place tl_lower_element_place(const tl_lower *l, int32_t e);
// Inside a parallel whose elements may meet, and in modules that mark that: the thread begins it; the current element
// makes the access of `op`, which is a load, store or atomic.
void tl_lower_mark_parallel(tl_lower *l);
void tl_lower_mark_element(tl_lower *l, const tl_op *op);
// cp.async of 4, 8 or 16 bytes where `active` (NULL: always) holds, of which it reads `reads` (i32; NULL: all); the
// others are zeros.
void tl_lower_cp_async(tl_lower *l, LLVMValueRef to, LLVMValueRef from, int32_t bytes, LLVMValueRef reads,
                       LLVMValueRef active);
// What it reads where all or nothing is `inside`.
LLVMValueRef tl_lower_bytes_if(tl_lower *l, LLVMValueRef inside, int32_t bytes);

// ---- local arrays (lower_local.c): one for each thread, used inside parallels of width 1
tl_buffer *tl_lower_local_array(tl_lower *l, const tl_type *type);
void tl_lower_local_load(tl_lower *l, tl_op *op);
void tl_lower_local_store(tl_lower *l, tl_op *op);

// The element that starts now has local arrays of its own, without content.
void tl_lower_local_begin(tl_lower *l);

// ---- asynchronous copies
// A COPY with a map: the elected thread hands its boxes to the copy engine.
void tl_lower_tma_copy(tl_lower *l, tl_op *op);
// Whether a COPY becomes cp.async instructions and nothing else.
bool tl_lower_copy_is_async(const tl_op *op);
// Where the block at `place` across a dim of the grid has what `pointer` points at in the own shared
// memory.
LLVMValueRef tl_lower_peer_pointer(tl_lower *l, LLVMValueRef pointer, int64_t dim, const tl_value *place);

#endif
