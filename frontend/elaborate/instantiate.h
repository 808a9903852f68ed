// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Spec + bindings → tile IR: names, types, shapes, folding and every diagnostic that needs them. Pure.
#ifndef TL_FRONTEND_INSTANTIATE_H
#define TL_FRONTEND_INSTANTIATE_H

#include "frontend/spec/spec.h"
#include "ir/ir.h"
#include "ir/target.h"

// One -D NAME=VALUE or one override of a case. `value` is parsed by the expression language.
typedef struct tl_binding {
  tl_str name;
  tl_expr *value;
  tl_loc loc;
} tl_binding;
typedef struct tl_bindings {
  const tl_binding *items;
  uint32_t len;
} tl_bindings;

// A compile-time value: a folded param or let.
typedef struct tl_const {
  enum { TL_CONST_INT, TL_CONST_FLOAT, TL_CONST_BOOL, TL_CONST_DTYPE, TL_CONST_DYNAMIC } kind;
  int64_t i;  // INT, BOOL
  double f;
  tl_dtype dtype;
  bool is_rounded;  // INT: from rounding a float, so that among floats it is `f`, whose zero has a sign
} tl_const;

// Whether the compiler is to choose the param: it is `auto`, here or by its binding (NULL: none).
bool tl_param_is_auto(const tl_param *param, const tl_binding *binding);

// Params and lets of a kernel with values: what check, bench and the reference see. DYNAMIC entries have no value
// unless a binding gives one (a case does); `auto` params have none.
typedef struct tl_env_entry {
  tl_str name;
  tl_const value;
  bool is_dynamic;  // declared dynamic; `value` is what a case binds it to, or kind DYNAMIC
} tl_env_entry;
typedef struct tl_env {
  tl_env_entry *entries;
  uint32_t len;
  int64_t threads;        // whole warps; 0: auto
  int64_t threads_asked;  // as the author has it
  tl_loc threads_loc;
  int64_t occupancy;  // blocks on a multiprocessor; 0: auto
  tl_ir_enum_SWITCH persistent;
  bool takes_tiles;  // persistent, and each block takes the next tile that nobody has
  bool fast_math;
} tl_env;

// Evaluates params and lets under `bindings`. False (and diagnostics) on errors.
// With `bind_dynamic`, bindings of dynamic params give them values in the environment (to run a case).
bool tl_env_create(tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings bindings, bool bind_dynamic,
                   tl_diags *diags, tl_env *out_env);
const tl_env_entry *tl_env_find(const tl_env *env, tl_str name);
// Folds an expression of params and lets (functions included). False with a diagnostic when it does not fold.
bool tl_env_eval(const tl_env *env, const tl_expr *expr, tl_diags *diags, tl_const *out);

// The tile-level module of one kernel (a chain has none: chain.h). NULL when there were errors. `bindings` may not bind
// dynamic params here, and must bind those that are `auto` (harness/device/choose_params.h does).
tl_module *tl_instantiate(const tl_kernel_spec *kernel, tl_bindings bindings, const tl_target *target,
                          const tl_sources *sources, tl_diags *diags);

#endif
