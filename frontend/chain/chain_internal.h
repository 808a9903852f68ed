// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of the chain planner share.
#ifndef TL_FRONTEND_CHAIN_INTERNAL_H
#define TL_FRONTEND_CHAIN_INTERNAL_H

#include "frontend/chain/chain.h"
#include "frontend/sema/sema_env.h"
#include "support/vec.h"

// A document (a chain, or a step's kernel) with its params.
typedef struct tl_chain_scope {
  const tl_kernel_spec *unit;
  tl_env env;
  // One an entry of `env`, for dynamic params: its value in the dynamic names of the outermost chain; NULL: not known.
  const tl_mexpr **dynamics;
} tl_chain_scope;

// A tensor's dtype and shape in the dynamic names of the outermost chain.
typedef struct tl_chain_type {
  tl_dtype dtype;
  bool is_tensor;
  int32_t rank;
  const tl_mexpr **dims;     // elements
  const tl_mexpr **strides;  // elements
  int64_t align;             // bytes
} tl_chain_type;

// ---- chain_value.c: expressions of params and lets

// Whether the expression depends on a dynamic param without a compile-time value.
bool tl_chain_is_dynamic(const tl_chain_scope *scope, const tl_expr *expr);
// Whether a dynamic64 param takes part in the expression: what it is may need more than 31 bits.
bool tl_chain_is_wide(const tl_chain_scope *scope, const tl_expr *expr);
// An integer of the launcher: a constant, or an expression of dynamic names. NULL when reported.
const tl_mexpr *tl_chain_int(tl_arena *arena, const tl_chain_scope *scope, const tl_expr *expr, tl_diags *diags);
// Dtype, dims, strides and alignment of an argument, and of a buffer or view (`dims` dense). False when reported.
bool tl_chain_arg_type(tl_arena *arena, const tl_chain_scope *scope, const tl_arg *arg, tl_diags *diags,
                       tl_chain_type *out);
bool tl_chain_dense_type(tl_arena *arena, const tl_chain_scope *scope, const tl_expr *dtype, tl_expr *const *dims,
                         uint32_t num_dims, tl_diags *diags, tl_chain_type *out);
// Bytes of a dense tensor; NULL when the expression is too large.
const tl_mexpr *tl_chain_type_bytes(tl_arena *arena, const tl_chain_type *type);
// Whether the two are known to differ.
bool tl_chain_differ(const tl_mexpr *a, const tl_mexpr *b);
// "f16[512, K]", with strides where they are not dense.
const char *tl_chain_type_text(tl_arena *arena, const tl_chain_type *type);
// An expression that folds to the value.
tl_expr *tl_chain_literal(tl_arena *arena, const tl_const *value, tl_loc loc);

// ---- chain_step.c: what a step passes

// Memory of a chain: of one of its arguments, or a buffer.
typedef struct tl_chain_memory {
  const char *name;
  tl_loc loc;
  bool is_buffer;
  uint32_t index;  // of the outermost chain's params, or of all buffers
  bool is_written, is_read;
  int64_t align;  // bytes
} tl_chain_memory;

// What a name of a chain's steps stands for.
typedef struct tl_chain_symbol {
  tl_str name;
  tl_loc loc;
  uint32_t memory;  // of the plan; tensors only
  bool is_written;  // whether steps may write it: `out`, `inout`, buffers
  tl_chain_type type;
  tl_manifest_given scalar;  // what a scalar passes on
} tl_chain_symbol;

typedef TL_VEC(tl_chain_symbol) tl_chain_symbols;

typedef struct tl_chain_planner {
  tl_arena *arena;
  tl_diags *diags;
  const tl_kernel_spec *unit;  // the outermost chain
  TL_VEC(tl_chain_memory) memories;
  TL_VEC(tl_manifest_require) requirements;
  TL_VEC(tl_manifest_buffer) buffers;
  TL_VEC(tl_manifest_step) steps;
  TL_VEC(tl_chain_instance) instances;
  TL_VEC(const char *) instance_keys;
} tl_chain_planner;

// One chain while its steps are planned.
typedef struct tl_chain_frame {
  const tl_chain_scope *scope;
  const tl_chain_symbols *symbols;
} tl_chain_frame;

// What a step gives one argument of its kernel.
typedef struct tl_chain_passed {
  const tl_arg *arg;  // of the kernel
  const tl_expr *expr;
  const tl_chain_symbol *symbol;  // a tensor's
  tl_chain_type type;             // as the kernel wants it
  tl_manifest_given given;
} tl_chain_passed;

// A step's kernel with its params, and its arguments in the kernel's order.
typedef struct tl_chain_call {
  const tl_step *step;
  tl_kernel_spec *kernel;  // the copy of tl_chain_instance
  tl_bindings bindings;
  tl_chain_scope scope;
  tl_chain_passed *passed;  // kernel->num_args of them
} tl_chain_call;

// Binds params and arguments of a step and checks that they fit. False when reported.
bool tl_chain_call_make(tl_chain_planner *planner, const tl_chain_frame *frame, const tl_step *step,
                        tl_chain_call *out);

// chain_params.c: the params of a step's kernel, and its arguments by position and name. False when reported.
bool tl_chain_call_bind(tl_chain_planner *planner, const tl_chain_frame *frame, tl_chain_call *call);

#endif
