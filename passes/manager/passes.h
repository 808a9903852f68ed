// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass manager and what passes see. The passes, in order, stand in passes.def.
#ifndef TL_PASSES_PASSES_H
#define TL_PASSES_PASSES_H

#include "ir/ir.h"
#include "ir/target.h"
#include "support/diag.h"
#include "support/status.h"

typedef struct tl_pass_options {
  const char *passes;        // comma list; NULL: all
  const char *print_before;  // comma list of pass names, "all", or NULL
  const char *print_after;
  bool print_changed;
  const char *stop_after;  // NULL: run all
  bool verify_each;
  bool time_passes;
  int pass_limit;         // -1: no limit
  int64_t explore_limit;  // statements that verify-barriers runs; 0: its own limit
  // A person wrote the module: what a pass says of it as of a bug of ours is an error in the module (TL0670).
  bool is_hand_written;
  // Set in the place of an error (TL0663) where a kernel in which the copy engine takes part is too large to be shown
  // right. Borrowed; NULL: an error.
  bool *is_unproven;
  bool no_engine;  // threads copy where the copy engine (TMA) could, and no warps are set apart for it
  tl_strbuf *log;  // prints and timings go here. Borrowed; may be NULL.
} tl_pass_options;

typedef struct tl_pass_context {
  tl_module *module;        // Borrowed.
  const tl_target *target;  // Borrowed.
  tl_diags *diags;          // Borrowed. Errors, warnings and remarks (tl_diag_report with a remark code).
  int64_t explore_limit;    // of the options
  bool *is_unproven;        // of the options
  bool no_engine;           // of the options; `target` is then without TMA
  tl_arena scratch;         // emptied after every pass
} tl_pass_context;

// A pass. TL_OK also when it reported errors in diags (the manager stops then); a failure is INTERNAL: a bug.
typedef tl_status tl_pass_fn(tl_pass_context *context);

typedef struct tl_pass_info {
  const char *name;
  const char *doc;
  tl_pass_fn *run;
  int level_after;  // module->level afterwards: 0 tile, 1 scheduled
} tl_pass_info;

// The passes in pipeline order; NULL past the end.
const tl_pass_info *tl_pass_at(int index);
const tl_pass_info *tl_pass_find(tl_str name);

// Runs the pipeline (or options->passes) and the verifier (always at the end; after each with verify_each).
// DIAGNOSTICS when a pass reported errors; INTERNAL (with pass name and the verifier's text) for our bugs.
TL_MUST_USE tl_status tl_passes_run(tl_module *module, const tl_target *target, const tl_pass_options *options,
                                    tl_diags *diags);

// One declaration a pass, from passes.def.
#define TL_PASS(id, name, level_after, doc) tl_status tl_pass_##id(tl_pass_context *context);
#include "passes/manager/passes.def"
#undef TL_PASS

#endif
