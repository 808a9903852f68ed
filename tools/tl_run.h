// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TL_TOOLS_TL_RUN_H
#define TL_TOOLS_TL_RUN_H

#include "emulator/sanitize/findings.h"
#include "harness/check/check.h"
#include "harness/device/run.h"
#include "tools/cli.h"

// "NAME=REST" of an option. Borrowed from the command line.
typedef struct tl_run_pair {
  tl_str name;
  const char *rest;
} tl_run_pair;

// Options that go with --bench.
typedef struct tl_run_bench_options {
  bool wanted;
  bool json;              // --json; without a path to standard output, instead of text
  const char *json_path;  // NULL: standard output
  const char *compare_path, *cublaslt_path;
  double fail_below;  // 0: never
  bool cublaslt;      // --peer=cublaslt
  bool no_check;
  uint32_t rounds;  // of bursts; 0: the default
} tl_run_bench_options;

// Options of --tune; it shares --json, --rounds and --no-check with --bench.
typedef struct tl_run_tune_options {
  bool wanted;
  uint32_t budget;  // 0: the spec's
} tl_run_tune_options;

typedef struct tl_run_foreign_arg {
  tl_run_pair pair;
  tl_loc loc;      // in the launch file; source 0: of the command line
  uint32_t param;  // of the kernel: fields of a struct share it
  bool is_field;
} tl_run_foreign_arg;

typedef TL_VEC(tl_named_expr) tl_run_named_exprs;

typedef enum tl_run_contract { TL_CONTRACT_OFF, TL_CONTRACT_ON, TL_CONTRACT_BOTH } tl_run_contract;

// How PTX without a manifest is launched.
typedef struct tl_run_foreign_options {
  TL_VEC(tl_run_foreign_arg) args;         // in the order of the kernel's parameters
  uint32_t grid[3], block[3], cluster[3];  // 0: not given
  long long shared;                        // dynamic, bytes
  const char *launch_path;                 // the launch file; NULL: none
  tl_run_named_exprs expected;             // of outputs, as the launch file says
  double tolerance[2];                     // rtol, atol
  tl_run_contract contract;
  TL_VEC(tl_emu_ptx_field) fields;  // where each argument stands, when one of the parameters is a struct
} tl_run_foreign_options;

// One case of --check, or a spec that could not be checked.
typedef struct tl_run_case {
  char *spec, *kernel;     // Owned, as all texts. `kernel` of a spec is ""
  uint32_t number, total;  // 0: it is a spec
  tl_check_outcome outcome;
  double seconds;
  char *bindings, *message, *outputs, *log;  // as of tl_check_record; may be NULL
} tl_run_case;

// What became of the cases, and where the run is.
typedef struct tl_run_report {
  TL_VEC(tl_run_case) cases;
  uint32_t num_specs_failed;
  // Of the spec that is checked:
  uint32_t spec_number, spec_cases, spec_done;
  double spec_start;  // s
  // Of the kernel, and the case that runs; number 0: none.
  tl_check_record running;
  uint32_t kernel_cases, kernel_passed;
  double case_start;
} tl_run_report;

typedef struct tl_run_counts {
  uint32_t cases, passed, errors, kernels, specs_failed;
} tl_run_counts;

typedef struct tl_run_tool {
  tl_cli cli;
  bool check, both_landings;
  tl_run_via via;
  tl_run_kind device_kind;
  tl_emu_options emu;
  bool has_checks;            // --sanitize was given
  uint64_t max_memory;        // bytes
  const char *findings_path;  // of --findings
  const char *junit_path;     // of --junit; NULL: none
  int apart_fd;               // standard output that is kept for findings or a report, whose place standard error has
                              // taken; else -1
  tl_run_report report;       // of --check
  tl_emu_findings findings;   // of all launches
  uint64_t seed;
  uint32_t repeat;    // of --repeat; 0: none
  unsigned required;  // a set of tl_requirement
  TL_VEC(uint32_t) cases;
  TL_VEC(tl_run_pair) in;
  TL_VEC(tl_run_pair) out;
  tl_run_named_exprs inputs;  // `in` as generators
  const char *dump_dir;
  tl_run_bench_options bench;
  tl_run_tune_options tune;
  tl_run_foreign_options foreign;
  char *directory;     // Owned. Of the spec; NULL: the working directory.
  char **more_inputs;  // with --check: specs behind the first. Borrowed from the command line.
  int num_more_inputs;
  int exit_code;  // the largest of specs before the last
  const tl_target *target;
  tl_run_device *device;  // Owned.
} tl_run_tool;

// Values of the long options of --bench.
enum {
  TL_RUN_OPT_BENCH = TL_OPT_TOOL + 100,
  TL_RUN_OPT_JSON,
  TL_RUN_OPT_COMPARE,
  TL_RUN_OPT_FAIL_BELOW,
  TL_RUN_OPT_PEER,
  TL_RUN_OPT_CUBLASLT,
  TL_RUN_OPT_ROUNDS,
  TL_RUN_OPT_NO_CHECK,
  TL_RUN_OPT_TUNE,
  TL_RUN_OPT_BUDGET,
  TL_RUN_OPT_ARG,
  TL_RUN_OPT_GRID,
  TL_RUN_OPT_BLOCK,
  TL_RUN_OPT_CLUSTER,
  TL_RUN_OPT_SHARED,
  TL_RUN_OPT_LAUNCH,
  TL_RUN_OPT_CONTRACT
};
// Rows for the table of long options.
#define TL_RUN_BENCH_OPTIONS                                                                                          \
  {"bench", no_argument, NULL, TL_RUN_OPT_BENCH}, {"json", optional_argument, NULL, TL_RUN_OPT_JSON},                 \
      {"compare", required_argument, NULL, TL_RUN_OPT_COMPARE},                                                       \
      {"fail-below", required_argument, NULL, TL_RUN_OPT_FAIL_BELOW},                                                 \
      {"peer", required_argument, NULL, TL_RUN_OPT_PEER}, {"cublaslt", required_argument, NULL, TL_RUN_OPT_CUBLASLT}, \
      {"rounds", required_argument, NULL, TL_RUN_OPT_ROUNDS}, {                                                       \
    "no-check", no_argument, NULL, TL_RUN_OPT_NO_CHECK                                                                \
  }
// Handles an option of --bench; false: it is not one.
bool tl_run_bench_option(tl_run_tool *t, int option, const char *argument);
// Usage errors of their combination, after all options.
void tl_run_bench_validate_options(tl_run_tool *t);
// Whether standard output is to hold JSON and nothing else.
bool tl_run_bench_is_json_only(const tl_run_tool *t);
// Benches the kernels of the spec.
TL_MUST_USE tl_status tl_run_bench(tl_run_tool *t);

// Rows for the table of long options.
#define TL_RUN_TUNE_OPTIONS                              \
  {"tune", no_argument, NULL, TL_RUN_OPT_TUNE}, {        \
    "budget", required_argument, NULL, TL_RUN_OPT_BUDGET \
  }
// As those of --bench.
bool tl_run_tune_option(tl_run_tool *t, int option, const char *argument);
void tl_run_tune_validate_options(tl_run_tool *t);
// Tunes the kernels of the spec.
TL_MUST_USE tl_status tl_run_tune(tl_run_tool *t);

#define TL_RUN_FOREIGN_OPTIONS                                                                                        \
  {"arg", required_argument, NULL, TL_RUN_OPT_ARG}, {"grid", required_argument, NULL, TL_RUN_OPT_GRID},               \
      {"block", required_argument, NULL, TL_RUN_OPT_BLOCK}, {"cluster", required_argument, NULL, TL_RUN_OPT_CLUSTER}, \
      {"shared", required_argument, NULL, TL_RUN_OPT_SHARED}, {"launch", required_argument, NULL, TL_RUN_OPT_LAUNCH}, \
  {                                                                                                                   \
    "contract", required_argument, NULL, TL_RUN_OPT_CONTRACT                                                          \
  }
// As those of --bench.
bool tl_run_foreign_option(tl_run_tool *t, int option, const char *argument);
// The manifest of a launch of PTX that has none, as the options say; values of scalars become --in. JSON.
TL_MUST_USE tl_status tl_run_foreign_manifest(tl_run_tool *t, tl_str ptx, tl_strbuf *out);

// Checks the specs of the command line (tl_run_check.c).
TL_MUST_USE tl_status tl_run_all_specs(tl_run_tool *t);
// Takes the directory of the spec from cli.input.
void tl_run_set_directory(tl_run_tool *t);
// "the emulator (late landing)", with both landings where both are run.
const char *tl_run_describe_device(const tl_run_tool *t);

// What became of a case (record->number 0: of a spec); `log` is what was said.
void tl_run_report_add(tl_run_tool *t, const tl_check_record *record, const char *log);
void tl_run_report_count(const tl_run_tool *t, tl_run_counts *out);
void tl_run_report_print_total(const tl_run_tool *t, tl_strbuf *out);
// Writes what --json and --junit ask for.
TL_MUST_USE tl_status tl_run_report_write(tl_run_tool *t);
void tl_run_report_fini(tl_run_tool *t);

// Forgets what a launch said: before the next one.
void tl_run_foreign_reset(tl_run_tool *t);
// The launch file: that of --launch, else the one beside PTX that neither has a manifest nor options of its own; NULL:
// none.
const char *tl_run_launch_file(tl_run_tool *t);
// Runs the launches of the file, those of --kernel or all. DIAGNOSTICS when it has errors; CHECK_FAILED when one
// failed.
TL_MUST_USE tl_status tl_run_launches(tl_run_tool *t, const char *path);
// Compares outputs with what the launch file expects, and prints how they compare. CHECK_FAILED when one differs.
TL_MUST_USE tl_status tl_run_foreign_compare(tl_run_tool *t, const tl_run_args *args);

// A number as a generator; other expressions as they are.
tl_expr *tl_run_constant(tl_run_tool *t, tl_expr *value);
// What the run does next, under the limit of --timeout; NULL: nothing that it limits. Takes a tl_run_tool.
void tl_run_tool_step(void *tool, const char *what);
// Parses the --in options.
TL_MUST_USE tl_status tl_run_tool_inputs(tl_run_tool *t);
// One launch of a spec's kernel, or of a PTX file.
TL_MUST_USE tl_status tl_run_tool_spec(tl_run_tool *t, const tl_kernel_spec *kernel);
TL_MUST_USE tl_status tl_run_tool_ptx(tl_run_tool *t);
// The same as its options say, without a launch file.
TL_MUST_USE tl_status tl_run_tool_ptx_launch(tl_run_tool *t);

#endif
