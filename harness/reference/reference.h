// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluates index notation (`check: derive:` and `check: reference:`) on the CPU: floats in float64, integers in int64.
#ifndef TL_HARNESS_REFERENCE_H
#define TL_HARNESS_REFERENCE_H

#include "frontend/elaborate/instantiate.h"
#include "harness/data/array.h"
#include "support/vec.h"

// One tensor (or scalar, rank 0) of the reference's world.
typedef struct tl_reference_buffer {
  tl_str name;     // Borrowed from the spec.
  tl_dtype dtype;  // of the argument; f64 or i64 for results that are no argument
  bool is_float;
  int32_t rank;
  int64_t dims[TL_ARRAY_MAX_RANK];  // elements
  uint64_t count;
  void *values;  // Owned. `count` (at least 1) doubles or int64s, dense, row-major. Shared with the base by views.
  bool is_view;
  bool is_assigned;  // by a statement
} tl_reference_buffer;

typedef struct tl_reference {
  const tl_kernel_spec *kernel;  // Borrowed.
  const tl_env *env;             // Borrowed. Dynamic params must have values.
  tl_diags *diags;               // Borrowed.
  int threads;                   // OS threads for large statements; 0: one a core
  bool shapes_only;              // nothing is computed: statements are checked, buffers have no values
  uint64_t max_bytes;            // of values; 0: no limit
  uint64_t used_bytes;
  TL_VEC(tl_reference_buffer *) buffers;
} tl_reference;

void tl_reference_init(tl_reference *reference, const tl_kernel_spec *kernel, const tl_env *env, tl_diags *diags);
void tl_reference_fini(tl_reference *reference);

// Adds an argument with the values of `array` (rounded to its dtype already), or replaces its values.
TL_MUST_USE tl_status tl_reference_set(tl_reference *reference, tl_str name, const tl_array *array);
// Adds a buffer of zeros. The name may be empty. LIMIT when the values of all take more than `max_bytes`.
TL_MUST_USE tl_status tl_reference_declare(tl_reference *reference, tl_str name, tl_dtype dtype, int32_t rank,
                                           const int64_t *dims);
// Adds the kernel's views of arguments that have been set.
TL_MUST_USE tl_status tl_reference_add_views(tl_reference *reference);
// NULL when there is none. Borrowed.
tl_reference_buffer *tl_reference_find(const tl_reference *reference, tl_str name);
// Copies a buffer's values into an array, rounded to its dtype (integers wrap).
void tl_reference_get(const tl_reference_buffer *buffer, tl_array *array);

// Evaluates the statements in order (with `shapes_only`: checks them). DIAGNOSTICS when they are wrong (reported).
TL_MUST_USE tl_status tl_reference_run(tl_reference *reference, const tl_reference_stmt *stmts, uint32_t num_stmts);

#endif
