// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The check section of a spec: compile each case, run it, compare it with the reference.
#ifndef TL_HARNESS_CHECK_H
#define TL_HARNESS_CHECK_H

#include "harness/device/compile.h"
#include "harness/device/device.h"
#include "harness/device/run.h"
#include "harness/reference/reference.h"

typedef enum tl_check_outcome { TL_CHECK_PASSED, TL_CHECK_WRONG, TL_CHECK_ERROR } tl_check_outcome;

// What became of a case. Texts are borrowed for the call.
typedef struct tl_check_record {
  tl_str kernel;
  uint32_t number, total;  // 1-based; of the kernel's cases
  const char *bindings;    // "{M: 256}"
  tl_check_outcome outcome;
  const char *message;    // why it was not compared; NULL: it was
  const char *outputs;    // what was compared, as elements of a JSON array
  const char *log;        // the lines of the report
  const tl_diags *diags;  // of the case
  double seconds;
} tl_check_record;

typedef struct tl_check_options {
  tl_run_device *device;    // Borrowed.
  const tl_target *target;  // NULL: the device's, else the spec's
  tl_bindings bindings;     // -D options; a case's own values win
  unsigned required;        // a set of tl_requirement: what every compiled kernel must have got
  uint64_t seed;
  uint32_t repeat;        // launches more of each case that passed (harness/check/repeat.h); 0: none
  bool both_landings;     // in the emulator: late, then early
  const uint32_t *cases;  // 1-based numbers; NULL: all
  uint32_t num_cases;
  const char *directory;  // of the spec, for .npy inputs
  const char *dump_dir;   // failing cases write their arrays there, it is made when it does not exist; or NULL
  // Inputs named by --in, before those of the spec.
  const tl_named_expr *inputs;
  uint32_t num_inputs;
  tl_compile_hook scheduled;
  uint64_t max_memory;  // bytes of a case; 0: no limit
  // Called before each step of a case (compile, inputs, reference, launch on a GPU, comparison), as "the compile of
  // case 2", and with NULL after it: what limits their time. An emulated launch has its own limit. NULL: nobody asks.
  void (*step)(void *user, const char *what);
  // Called with each line of the report as it is known.
  void (*print)(void *user, const char *line);
  // Called when a case begins and when it has ended. NULL: nobody asks.
  void (*begin)(void *user, const tl_check_record *record);
  void (*end)(void *user, const tl_check_record *record);
  void *user;
} tl_check_options;

typedef struct tl_check_summary {
  uint32_t num_cases, num_failed;
} tl_check_summary;

// Runs every wanted case, also after one that failed, does not compile or is over a limit; only a bug or a lost device
// ends the check. CHECK_FAILED when a case failed; DIAGNOSTICS when the spec, its check section or a case has errors
// (in `diags`), or what else kept the first such case from running. After
// INTERNAL `out_compiled` holds the module where it failed, for the report; fini it in any case.
TL_MUST_USE tl_status tl_check_run(const tl_kernel_spec *kernel, const tl_check_options *options,
                                   const tl_sources *sources, tl_diags *diags, tl_check_summary *out,
                                   tl_compiled *out_compiled);

// Reports what is wrong with the sections check, bench and tune as far as it shows without running: outputs without a
// reference, generators, tolerances, index notation and figures, for the params of each case over `base`. Files are not
// read. To be called when the spec has no errors so far.
void tl_check_validate(const tl_kernel_spec *kernel, tl_bindings base, tl_diags *diags);

// ---- pieces of a check

// Reports the outputs that are neither assigned by the reference nor listed as unchecked.
void tl_check_coverage(const tl_kernel_spec *kernel, tl_diags *diags);
bool tl_check_is_unchecked(const tl_check *check, tl_str name);
// The tolerance of an output: for all outputs, then its own, then the case's (NULL: none). DIAGNOSTICS when it is
// wrong.
TL_MUST_USE tl_status tl_check_tolerance(const tl_kernel_spec *kernel, const tl_case *one_case, const tl_env *env,
                                         tl_str name, tl_diags *diags, double *rtol, double *atol);

// ---- pieces that running without a check uses too

typedef struct tl_input_request {
  const tl_kernel_spec *kernel;  // Borrowed. NULL for a bare PTX.
  const tl_case *one_case;       // its own generators; or NULL
  const tl_named_expr *inputs;   // before all others
  uint32_t num_inputs;
  const tl_env *env;  // Borrowed.
  const char *directory;
  tl_str kernel_name;  // for the seed
  uint64_t seed;
  bool ints_by_default;  // integers without a generator get 0 … 7 instead of an error
} tl_input_request;

// The generator of an argument, or NULL: by default. False when `derive` computes it.
bool tl_check_find_generator(const tl_input_request *request, tl_str name, const tl_expr **out);

// Fills the arrays of in and inout arguments that `derive` does not assign. DIAGNOSTICS when a generator is wrong.
TL_MUST_USE tl_status tl_check_make_inputs(const tl_input_request *request, tl_diags *diags, tl_run_args *args);

// The bindings that a compile gets: `base` with the case's overrides, without dynamic params; and all of them for the
// environment. Arrays live in `arena`.
void tl_check_case_bindings(tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings base, const tl_case *one_case,
                            tl_bindings *out_compile, tl_bindings *out_all);

// Evaluates `derive` of the reference's kernel: adds `args` and views to the reference and assigns, rounded to their
// dtypes, the arguments that `derive` computes. DIAGNOSTICS when it is wrong.
TL_MUST_USE tl_status tl_check_derive_inputs(tl_reference *reference, tl_run_args *args);

// Evaluates a condition of `where` in a tune section, which may name `threads`, `persistent` and `fast_math` too; where
// one that it names is auto, it holds. False after a report.
bool tl_check_where(tl_arena *arena, const tl_env *env, const tl_expr *condition, tl_diags *diags, bool *out_truth);

// The dynamic params of `env` that have values.
void tl_check_dynamics(tl_arena *arena, const tl_env *env, tl_mbinding **out, size_t *out_len);

#endif
