// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A chain with values for its params: which kernels it launches, with which params, on which memory. Pure.
#ifndef TL_FRONTEND_CHAIN_H
#define TL_FRONTEND_CHAIN_H

#include "frontend/elaborate/instantiate.h"
#include "support/manifest.h"

// One kernel with one set of params. Steps that agree in both share it.
typedef struct tl_chain_instance {
  // The step's kernel under its entry's name (`matmul`, a second instance `matmul_2`), where params that the chain
  // leaves to the launch are dynamic.
  const tl_kernel_spec *kernel;
  tl_bindings bindings;  // to compile it with
} tl_chain_instance;

typedef struct tl_chain_plan {
  tl_chain_instance *instances;
  uint32_t num_instances;
  tl_manifest_chain chain;  // its steps' kernels are numbers of instances
} tl_chain_plan;

// Works out the launches of `unit`, a document with `chain`, and of the chains that it runs in turn. Reports what does
// not fit. False when there were errors. Everything lives in `arena` and borrows from the spec.
bool tl_chain_plan_create(tl_arena *arena, const tl_kernel_spec *unit, tl_bindings bindings, tl_diags *diags,
                          tl_chain_plan *out_plan);

#endif
