// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of tl-llc share.
#ifndef TL_TOOLS_TL_LLC_H
#define TL_TOOLS_TL_LLC_H

#include "harness/device/ptxas.h"
#include "tools/cli.h"

typedef enum tl_llc_emit {
  EMIT_AST,
  EMIT_TILE,
  EMIT_SCHEDULED,
  EMIT_LLVM,
  EMIT_LLVM_OPT,
  EMIT_PTX,
  EMIT_MANIFEST,
  EMIT_CUBIN,
  EMIT_C,
  EMIT_TVM_FFI,
  EMIT_REPORT,
  EMIT_SCHEMA,
  EMIT_COUNT
} tl_llc_emit;

typedef struct tl_llc {
  tl_cli cli;
  tl_llc_emit emit;
  int ptx_version, opt_level;
  const char *ptxas_path;  // "none": as if there were none
  double ptxas_timeout_s;  // 0: the default
  const char *depfile;     // NULL: none
  const char *bench;       // results of tl-run --bench --json, for the report; NULL: none
  unsigned required;       // a set of tl_requirement
} tl_llc;

// Compiles for the target of the command line. `out` is to be freed in any case.
TL_MUST_USE tl_status tl_llc_compile(tl_llc *l, const tl_kernel_spec *kernel, tl_compiled *out);
// "dir/x.cubin" with another ending, ".json". free() it.
char *tl_llc_path_with(const char *path, const char *ending);
// The page (tl_llc_report.c).
TL_MUST_USE tl_status tl_llc_emit_report(tl_llc *l, const tl_compiled *compiled, tl_strbuf *out);
// Writes the C source to the output and the header beside it, for every target of the command line (tl_llc_c.c).
TL_MUST_USE tl_status tl_llc_emit_c(tl_llc *l, const tl_kernel_spec *kernel);

#endif
