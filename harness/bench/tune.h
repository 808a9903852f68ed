// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tune section of a spec: configurations are enumerated, compiled, checked and timed.
//
// A configuration gives every tuned param one value. They stand in the order of the lists, the last list varying
// fastest. What `where` and `requires` exclude and what needs more than the target has is counted, not tried. With a
// budget the seed chooses which configurations are tried.
#ifndef TL_HARNESS_TUNE_H
#define TL_HARNESS_TUNE_H

#include "harness/bench/bench.h"
#include "harness/check/check.h"

typedef enum tl_tune_outcome {
  TL_TUNE_TIMED,     // right (as far as checked), and `result` says how fast
  TL_TUNE_RIGHT,     // right; there is no GPU to time it
  TL_TUNE_COMPILED,  // compiles; neither checked nor timed
  TL_TUNE_REQUIRES,  // a condition of `requires` is false
  TL_TUNE_LIMIT,     // more shared memory or registers than the target has
  TL_TUNE_REFUSED,   // the compiler has another objection
  TL_TUNE_WRONG,     // wrong results
  TL_TUNE_FAILED,    // the driver or the launcher refused it
  TL_TUNE_OUTCOME_COUNT
} tl_tune_outcome;

// "timed", "requires", …: for JSON. Static.
const char *tl_tune_outcome_text(tl_tune_outcome outcome);

typedef struct tl_tune_row {
  char *configuration;  // Owned. "block_M=64 stages=3"
  char *flags;          // Owned. "-D block_M=64 -D stages=3"; empty for the spec as written
  bool is_written;      // the values that the spec has
  tl_tune_outcome outcome;
  uint64_t index;          // in the order of the lists; UINT64_MAX for the spec as written
  char *why;               // Owned. REFUSED and the like: what was said; or NULL
  bool is_checked;         // against the reference
  tl_bench_result result;  // TIMED: cold launches only
} tl_tune_row;

// One bench case of one kernel.
typedef struct tl_tune_result {
  char *kernel, *bindings;                 // Owned.
  uint32_t number, total;                  // case `number` of `total`
  uint64_t num_configurations;             // that the lists make
  uint64_t num_excluded;                   // by `where`
  uint64_t num_left_out;                   // by the budget
  uint64_t counts[TL_TUNE_OUTCOME_COUNT];  // of `rows`
  TL_VEC(tl_tune_row) rows;                // Owned. The spec as written, then what was tried, in the order of the lists
  uint32_t best;                           // of rows; UINT32_MAX when nothing was timed
} tl_tune_result;

typedef struct tl_tune_report {
  char *device;  // Owned.
  bool is_timed;
  tl_bench_machine machine;          // when timed
  TL_VEC(tl_tune_result *) results;  // Owned.
} tl_tune_report;

typedef struct tl_tune_options {
  tl_run_device *device;    // Borrowed. In the emulator configurations are compiled and checked only.
  const tl_target *target;  // NULL: the device's, else the spec's
  tl_bindings bindings;     // -D options; a tuned param that is bound keeps that value
  unsigned required;        // a set of tl_requirement: what every compiled kernel must have got
  uint64_t seed;
  const uint32_t *cases;  // 1-based numbers of bench cases; NULL: all
  uint32_t num_cases;
  uint64_t budget;              // 0: the spec's
  const char *directory;        // of the spec, for .npy inputs
  const tl_named_expr *inputs;  // inputs named by --in, before those of the spec
  uint32_t num_inputs;
  bool no_check;
  uint32_t rounds;  // of bursts of the last race; 0: the default
  // Called when the configurations of a case are known, with each row as it is known, and when the case is complete.
  void (*begin)(void *user, const tl_tune_result *result, uint64_t num_to_try);
  void (*row)(void *user, const tl_tune_result *result, const tl_tune_row *row);
  void (*end)(void *user, const tl_tune_report *report, const tl_tune_result *result);
  // For a terminal.
  void (*progress)(void *user, const char *kernel, uint64_t done, uint64_t of, const char *configuration);
  void *user;
} tl_tune_options;

TL_MUST_USE tl_status tl_tune_report_init(tl_tune_report *report, tl_run_device *device);
void tl_tune_report_fini(tl_tune_report *report);

// Tunes for every bench case (the params as they stand when there are none) and appends to `report`. CHECK_FAILED when
// a configuration gives wrong results, DIAGNOSTICS (told in `diags`) when none compiles. After INTERNAL `out_compiled`
// holds the module where it failed; fini it in any case.
TL_MUST_USE tl_status tl_tune_run(const tl_kernel_spec *kernel, const tl_tune_options *options,
                                  const tl_sources *sources, tl_diags *diags, tl_tune_report *report,
                                  tl_compiled *out_compiled);

// ---- tune_report.c
// The row alone, without its end of line.
void tl_tune_print_row(const tl_tune_result *result, const tl_tune_row *row, tl_strbuf *out);
// The fastest, what was not tried, and the flags of the best.
void tl_tune_print_result(const tl_tune_report *report, const tl_tune_result *result, tl_strbuf *out);
void tl_tune_write_json(const tl_tune_report *report, tl_strbuf *out);

// ---- tune_space.c: the configurations of a kernel
typedef struct tl_tune_space {
  const tl_kernel_spec *kernel;  // Borrowed.
  const tl_tune_param **params;  // In the arena; those that are not bound already
  uint32_t num_params;
  uint64_t size;
} tl_tune_space;

void tl_tune_space_init(tl_tune_space *space, tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings bound);
// `base` and the values of configuration `index`. In the arena.
tl_bindings tl_tune_space_bindings(const tl_tune_space *space, tl_arena *arena, tl_bindings base, uint64_t index);
// "block_M=64 stages=3", or with "-D " before each.
char *tl_tune_space_text(const tl_tune_space *space, uint64_t index, bool as_flags);
// A copy of the kernel whose check and bench cases do not set what the space sets. In the arena.
tl_kernel_spec *tl_tune_space_kernel(const tl_tune_space *space, tl_arena *arena);

#endif
