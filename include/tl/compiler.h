// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiling tile specs to PTX in the caller's process.
//
// Thread safety: different tl_compiler objects may be used from different threads at the same time; one object by one
// thread at a time. A finished tl_compilation is immutable and may be read by any thread.
//
// A NULL handle or place for a result is INVALID_ARGUMENT; functions without a status do nothing with it. Memory that
// runs out is OUT_OF_MEMORY: nothing is printed, the process goes on, and so does the next compile.
#ifndef TL_COMPILER_H
#define TL_COMPILER_H

#include <stddef.h>

#include "tl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What to compile for and with which values: options of a compile, reusable for many.
typedef struct tl_compiler tl_compiler;
// The outcome of one compile: PTX, manifest and diagnostics.
typedef struct tl_compilation tl_compilation;

typedef enum tl_diagnostics_format { TL_DIAGNOSTICS_TEXT, TL_DIAGNOSTICS_JSON } tl_diagnostics_format;

TL_API TL_MUST_USE tl_status tl_compiler_create(tl_compiler **out_compiler);
TL_API void tl_compiler_destroy(tl_compiler *compiler);

// Binds a param (or `threads`, `persistent`, `fast_math`) as -D does: tl_compiler_bind(c, "M", "8192"), (c, "dtype",
// "bf16"). `value` is an expression of the spec language. A later binding of the same name replaces it. Texts are
// copied.
TL_API TL_MUST_USE tl_status tl_compiler_bind(tl_compiler *compiler, const char *name, const char *value);
TL_API void tl_compiler_clear_bindings(tl_compiler *compiler);
// "sm_80", "sm_90a", …; NULL: the spec's own, else sm_80. INVALID_ARGUMENT when unknown.
TL_API TL_MUST_USE tl_status tl_compiler_set_target(tl_compiler *compiler, const char *target);
// The best known target for a device of this compute capability (90 for 9.0), as for tl_device_compute_capability.
TL_API TL_MUST_USE tl_status tl_compiler_set_target_for_device(tl_compiler *compiler, int compute_capability);
// The kernel of a file with several; NULL: the first.
TL_API void tl_compiler_set_kernel(tl_compiler *compiler, const char *name);
// 80 stands for PTX ISA 8.0; 0: the least that the target and the used instructions need.
TL_API void tl_compiler_set_ptx_version(tl_compiler *compiler, int ptx_version);
// A warning option without its "-W": "error", "no-bounds", "none", … INVALID_ARGUMENT when the group is unknown.
TL_API TL_MUST_USE tl_status tl_compiler_set_warning(tl_compiler *compiler, const char *option);
// What every statement of the spec that could must have got, words with commas: "tma", "wgmma", "roles", "overlap",
// "no-spill" (ptxas must be there: $TL_PTXAS, PATH or /usr/local/cuda/bin; else the compile is NOT_FOUND), "vector",
// "no-bank-conflict". Each that did not is an error among the diagnostics, with the remarks about it. NULL or "":
// nothing. INVALID_ARGUMENT for another word; what was set before stays then.
TL_API TL_MUST_USE tl_status tl_compiler_set_require(tl_compiler *compiler, const char *words);
// Nonzero keeps remarks (what the compiler decided) among the diagnostics.
TL_API void tl_compiler_set_remarks(tl_compiler *compiler, int keep);

// The text of a file that a spec includes.
typedef struct tl_include {
  const char *name;  // what diagnostics call it, and what tells files apart; NULL: the path as the spec has it
  const char *text;
  size_t text_bytes;
} tl_include;
// Finds the file `path` that the file called `from` includes. Returns nonzero when it has filled `*out_include`, whose
// texts must stay until the compile returns; 0 when there is no such file.
typedef int (*tl_include_function)(void *user, const char *path, const char *from, tl_include *out_include);
// Where `include` of a spec finds its files. NULL (the default): beside the file that includes them; a spec from memory
// then cannot include, which is a diagnostic.
TL_API void tl_compiler_set_include(tl_compiler *compiler, tl_include_function find, void *user);

// Compiles a spec. `name` stands for the file in diagnostics; relative .npy paths do not matter here. On success and on
// DIAGNOSTICS (the spec has errors) `*out_compilation` is set and must be destroyed; on other failures it is NULL.
TL_API TL_MUST_USE tl_status tl_compiler_compile(tl_compiler *compiler, const char *name, const char *text,
                                                 size_t text_bytes, tl_compilation **out_compilation);
// The same for a file of at most 16 MiB.
TL_API TL_MUST_USE tl_status tl_compiler_compile_file(tl_compiler *compiler, const char *path,
                                                      tl_compilation **out_compilation);

TL_API void tl_compilation_destroy(tl_compilation *compilation);
// PTX text with the manifest as its head; NUL-terminated, its length in `*out_bytes` (may be NULL). NULL when the spec
// had errors. A NULL compilation, as failures other than DIAGNOSTICS leave it, is one without any text. Borrowed from
// `compilation`, as all texts below.
TL_API const char *tl_compilation_ptx(const tl_compilation *compilation, size_t *out_bytes);
// The manifest alone, as JSON.
TL_API const char *tl_compilation_manifest(const tl_compilation *compilation, size_t *out_bytes);
// Errors, warnings and remarks; "" (text) or "[]" (JSON) when there are none.
TL_API const char *tl_compilation_diagnostics(const tl_compilation *compilation, tl_diagnostics_format format);
TL_API size_t tl_compilation_num_errors(const tl_compilation *compilation);
TL_API size_t tl_compilation_num_warnings(const tl_compilation *compilation);

#ifdef __cplusplus
}
#endif
#endif
