// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TL_TOOLS_TL_RUN_H
#define TL_TOOLS_TL_RUN_H

#include "harness/check.h"
#include "tools/cli.h"

// "NAME=REST" of an option. Borrowed from the command line.
typedef struct tl_run_pair {
  tl_str name;
  const char *rest;
} tl_run_pair;

typedef struct tl_run_tool {
  tl_cli cli;
  bool check, both_landings;
  tl_run_kind device_kind;
  tl_emu_options emu;
  uint64_t seed;
  TL_VEC(uint32_t) cases;
  TL_VEC(tl_run_pair) in;
  TL_VEC(tl_run_pair) out;
  TL_VEC(tl_named_expr) inputs;  // `in` as generators
  const char *dump_dir;
  char *directory;  // Owned. Of the spec; NULL: the working directory.
  const tl_target *target;
  tl_run_device *device;  // Owned.
} tl_run_tool;

// Parses the --in options.
TL_MUST_USE tl_status tl_run_tool_inputs(tl_run_tool *t);
// One launch of a spec's kernel, or of a PTX file.
TL_MUST_USE tl_status tl_run_tool_spec(tl_run_tool *t, const tl_kernel_spec *kernel);
TL_MUST_USE tl_status tl_run_tool_ptx(tl_run_tool *t);

#endif
