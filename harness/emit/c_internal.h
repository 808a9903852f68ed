// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TL_HARNESS_C_INTERNAL_H
#define TL_HARNESS_C_INTERNAL_H

#include "harness/emit/c_source.h"

// Of a kernel's workspace, wherever one stands: aligned as others.
enum { C_WORKSPACE_BYTES = 256 };

// Parameters of the C function: the arguments, then what no shape tells in C.
typedef struct c_signature {
  const tl_manifest_kernel *kernel;  // of the first image: name, doc and arguments
  const char **names;                // dynamic names and strides, of all images
  uint32_t num_names;
  bool has_workspace;
} c_signature;

// How names of expressions are found where an expression stands.
typedef struct c_scope {
  const char *prefix;  // of dynamic names
  uint32_t kernel;     // whose resident_blocks
} c_scope;

bool c_is_argument(const tl_manifest_param *param);
bool c_is_name(const tl_manifest_param *param);
// The kernel's workspace (of a queue of tiles), of the size of a constant. NULL: it has none.
const tl_manifest_param *c_workspace(const tl_manifest_kernel *kernel);
// A name of a spec as an identifier: "A.stride0" is A_stride0, and keywords get an underscore.
void c_identifier(const char *name, tl_strbuf *out);
// Text of a comment that ends with its line; `next` begins each further line of it.
void c_comment(const char *text, const char *next, tl_strbuf *out);
// "quoted", with escapes.
void c_string(const char *text, tl_strbuf *out);
// "float", of a scalar argument; NULL: C has none.
const char *c_scalar_type(tl_dtype dtype);
void c_expr(const tl_mexpr *expr, const c_scope *scope, tl_strbuf *out);
// "const void *A": one parameter of a function, with a prefix before its name.
void c_parameter(const tl_manifest_param *param, const char *prefix, tl_strbuf *out);
// "tl_stream tlk_stream, const void *A, int64_t N".
void c_parameters(const c_signature *signature, const char *stream, tl_strbuf *out);
// "if (tlk_bad) return …;"
void c_bad(const char *what, const char *kernel, tl_strbuf *out);

// c_kernel.c: checks of the arguments of a kernel or chain signature, each a statement that may return.
void c_checks(const tl_manifest_kernel *kernel, const c_scope *scope, tl_strbuf *out);
// The function tlk_run_VARIANT_KERNEL, and before it that of the kernel's aligned version, which it calls where the
// arguments are such.
void c_kernel(const tl_manifest *manifest, uint32_t variant, uint32_t index, tl_strbuf *out);
// c_chain.c: the function tlk_chain_VARIANT, and what it needs.
TL_MUST_USE tl_status c_chain(const tl_manifest *manifest, uint32_t variant, const c_signature *signature,
                              tl_strbuf *out);

// c_ffi.c: the function __tvm_ffi_NAME, behind launcher_ffi.h.
TL_MUST_USE tl_status c_ffi(const c_signature *signature, const char *name, tl_strbuf *out);

#endif
