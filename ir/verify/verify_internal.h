// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the sources of the verifier.
#ifndef TL_IR_VERIFY_INTERNAL_H
#define TL_IR_VERIFY_INTERNAL_H

#include "ir/op_internal.h"
#include "ir/text/text.h"

typedef struct tl_verifier {
  const tl_module *module;
  tl_verify_result *result;
  tl_ptr_map visible;  // value → 1 while it may be used
  TL_VEC(const tl_value *) scope;
} tl_verifier;

// Adds a finding; returns false.
bool tl_verify_fail(tl_verifier *verifier, const tl_op *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Each of these may rely on what tl_module_verify checked before: counts and kinds of operands, number of results of a
// fixed number, presence and kinds of attributes, regions.
void tl_verify_scalar_op(tl_verifier *verifier, const tl_op *op);   // verify_scalar.c
void tl_verify_buffer_op(tl_verifier *verifier, const tl_op *op);   // verify_buffer.c
void tl_verify_tile_op(tl_verifier *verifier, const tl_op *op);     // verify_tile.c
void tl_verify_reduce_op(tl_verifier *verifier, const tl_op *op);   // verify_reduce.c
void tl_verify_control_op(tl_verifier *verifier, const tl_op *op);  // verify_control.c
void tl_verify_ring_op(tl_verifier *verifier, const tl_op *op);     // verify_ring.c
void tl_verify_async_op(tl_verifier *verifier, const tl_op *op);    // verify_async.c
void tl_verify_flights(tl_verifier *verifier, const tl_op *op);     // verify_flight.c
void tl_verify_roles_op(tl_verifier *verifier, const tl_op *op);    // verify_roles.c

// A layout of what has these dims, on the threads of the kernel around the op. `what` names it.
void tl_verify_layout(tl_verifier *verifier, const tl_op *op, const tl_layout *layout, const int64_t *dims,
                      int32_t rank, const char *what);
// Whether the number that `what` names is one from `least` to `most`; reports it otherwise.
bool tl_verify_range(tl_verifier *verifier, const tl_op *op, const char *what, int64_t value, int64_t least,
                     int64_t most);
// Whether a statement on elements of these dims is small enough to be counted in 32 bits; reports it otherwise.
bool tl_verify_elements(tl_verifier *verifier, const tl_op *op, const int64_t *dims, int32_t rank);
// Type text for messages. Owned by the result's arena.
const char *tl_verify_type_text(tl_verifier *verifier, const tl_type *type);
// Whether the type is a scalar of this dtype.
bool tl_type_is_scalar_of(const tl_type *type, tl_dtype dtype);

#endif
