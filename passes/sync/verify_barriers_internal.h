// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The evaluator of verify-barriers: runs a kernel's scalars concretely.
#ifndef TL_PASSES_VERIFY_BARRIERS_INTERNAL_H
#define TL_PASSES_VERIFY_BARRIERS_INTERNAL_H

#include "ir/ir.h"
#include "support/vec.h"

// The value of an SSA value during a run. Scalars and indices: `number` (floats stand for themselves as an opaque
// number that is the same for the same computation). Buffers: `number` is the root, `slot` the copy of a staged tile.
typedef struct tl_run_value {
  int64_t number;
  int64_t slot;
  bool known;  // was computed in this run
} tl_run_value;

typedef struct tl_run_env {
  const tl_value **keys;                // Owned. Open addressing over all values of the kernel.
  tl_run_value *values;                 // Owned.
  size_t capacity;                      // a power of two
  uint64_t seed;                        // what unknown values (loads, dynamic params, block indices) are drawn from
  TL_VEC(const tl_value *) fixed_keys;  // values that the exploration sets: upper bounds of loops
  TL_VEC(int64_t) fixed_values;
} tl_run_env;

void tl_run_env_init(tl_run_env *env, tl_op *kernel);
void tl_run_env_fini(tl_run_env *env);
void tl_run_env_clear(tl_run_env *env);
tl_run_value *tl_run_env_at(tl_run_env *env, const tl_value *value);
// Sets a result; a value that the exploration fixed keeps its fixed number.
void tl_run_env_set(tl_run_env *env, const tl_value *value, int64_t number);
int64_t tl_run_env_number(tl_run_env *env, const tl_value *value);
// Evaluates a pure scalar op or a load into its result.
void tl_run_scalar(tl_run_env *env, const tl_op *op);

#endif
