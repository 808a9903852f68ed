// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the command-line tools share: options, loading of specs, messages and exit codes (docs/cli.md).
#ifndef TL_TOOLS_CLI_H
#define TL_TOOLS_CLI_H

#include <getopt.h>

#include "frontend/spec/spec.h"
#include "harness/device/compile.h"
#include "support/vec.h"

enum { TL_EXIT_OK = 0, TL_EXIT_FAILURE = 1, TL_EXIT_USAGE = 2, TL_EXIT_INTERNAL = 70, TL_EXIT_NO_DEVICE = 77 };

typedef enum tl_cli_format { TL_CLI_TEXT, TL_CLI_JSON, TL_CLI_SARIF } tl_cli_format;

typedef struct tl_cli {
  const char *tool;   // "tl-llc"
  const char *usage;  // the text of --help
  tl_arena arena;
  tl_sources sources;
  tl_diags diags;
  tl_strbuf pass_log;
  TL_VEC(const char *) defines;  // "NAME=VALUE"
  TL_VEC(tl_binding) bindings;   // parsed from `defines` by tl_cli_bindings
  const char *kernel_name;       // --kernel, or NULL
  const char *target_name;       // --target, or NULL
  const char *output;            // -o, or NULL
  const char *input;             // the operand
  tl_cli_format diagnostics;     // how they are printed
  tl_strbuf told;                // JSON and SARIF: what inputs before the last one gave
  bool tells_check_failed;       // CHECK_FAILED has not been told by a report of cases
  bool list_passes;
  bool explain;  // --explain without `=`: the code is the operand, or there is none
  int color;     // 0 auto, 1 always, 2 never
  tl_pass_options passes;
  bool is_done;   // an option such as --help has done all there is to do
  int exit_code;  // when is_done
} tl_cli;

// Values of the shared long options; a tool's own start at TL_OPT_TOOL.
enum {
  TL_OPT_KERNEL = 1000,
  TL_OPT_TARGET,
  TL_OPT_DIAGNOSTICS,
  TL_OPT_EXPLAIN,
  TL_OPT_REMARKS,
  TL_OPT_COLOR,
  TL_OPT_VERSION,
  TL_OPT_HELP,
  TL_OPT_PASSES,
  TL_OPT_STOP_AFTER,
  TL_OPT_PASS_LIMIT,
  TL_OPT_EXPLORE_LIMIT,
  TL_OPT_PRINT_BEFORE,
  TL_OPT_PRINT_AFTER,
  TL_OPT_PRINT_CHANGED,
  TL_OPT_VERIFY_EACH,
  TL_OPT_TIME_PASSES,
  TL_OPT_LIST_PASSES,
  TL_OPT_LIST_TARGETS,
  TL_OPT_TOOL
};

// Rows for a tool's table of long options.
#define TL_CLI_COMMON_OPTIONS                                                                                     \
  {"kernel", required_argument, NULL, TL_OPT_KERNEL}, {"target", required_argument, NULL, TL_OPT_TARGET},         \
      {"diagnostics", required_argument, NULL, TL_OPT_DIAGNOSTICS},                                               \
      {"explain", optional_argument, NULL, TL_OPT_EXPLAIN}, {"remarks", optional_argument, NULL, TL_OPT_REMARKS}, \
      {"color", required_argument, NULL, TL_OPT_COLOR}, {"version", no_argument, NULL, TL_OPT_VERSION},           \
      {"help", no_argument, NULL, TL_OPT_HELP}, {                                                                 \
    "output", required_argument, NULL, 'o'                                                                        \
  }
#define TL_CLI_PASS_OPTIONS                                                                                           \
  {"passes", required_argument, NULL, TL_OPT_PASSES}, {"stop-after", required_argument, NULL, TL_OPT_STOP_AFTER},     \
      {"pass-limit", required_argument, NULL, TL_OPT_PASS_LIMIT},                                                     \
      {"explore-limit", required_argument, NULL, TL_OPT_EXPLORE_LIMIT},                                               \
      {"print-before", required_argument, NULL, TL_OPT_PRINT_BEFORE},                                                 \
      {"print-after", required_argument, NULL, TL_OPT_PRINT_AFTER},                                                   \
      {"print-changed", no_argument, NULL, TL_OPT_PRINT_CHANGED},                                                     \
      {"verify-each", no_argument, NULL, TL_OPT_VERIFY_EACH}, {"time-passes", no_argument, NULL, TL_OPT_TIME_PASSES}, \
  {                                                                                                                   \
    "list-passes", no_argument, NULL, TL_OPT_LIST_PASSES                                                              \
  }

// The tools; they return what their programs exit with.
int tl_llc_main(int argc, char **argv);
int tl_run_main(int argc, char **argv);
int tl_opt_main(int argc, char **argv);
int tl_golden_main(int argc, char **argv);

void tl_cli_init(tl_cli *cli, const char *tool, const char *usage);
void tl_cli_fini(tl_cli *cli);

// Handles what getopt_long returned when it is a shared option. False: it is not one. May set is_done.
bool tl_cli_common_option(tl_cli *cli, int option, char *argument);
// "tl-llc: message" and the hint at --help; sets is_done with exit code 2. Returns 2.
int tl_cli_usage_error(tl_cli *cli, const char *format, ...) TL_PRINTF_LIKE(2, 3);
// Takes the operand: exactly one of argv[optind...].
// With --explain it is the code to explain, or nothing: then all are listed.
void tl_cli_take_input(tl_cli *cli, int argc, char **argv, const char *what);
// Prints what was collected for cli->input and makes ready for another one, with the same options. Returns the exit
// code. Frees `status`.
int tl_cli_next_input(tl_cli *cli, tl_status status, const char *next);
// Parses a whole decimal number between `least` and `most`; a usage error otherwise.
bool tl_cli_int(tl_cli *cli, const char *option, const char *text, long long least, long long most, long long *out);
// Which word of a table (ended by NULL) `text` is; -1 with a usage error that lists them.
int tl_cli_one_of(tl_cli *cli, const char *option, const char *text, const char *const *words);
// --require=LIST: adds to the set of tl_requirement.
void tl_cli_require(tl_cli *cli, const char *list, unsigned *set);
bool tl_cli_seconds(tl_cli *cli, const char *option, const char *text, double *out);

// Reads and parses cli->input. NULL on failure (the status says why).
TL_MUST_USE tl_status tl_cli_load_spec(tl_cli *cli, tl_spec **out_spec);
// The kernel that --kernel names; else the only or, with `allow_first`, the first one.
TL_MUST_USE tl_status tl_cli_pick_kernel(tl_cli *cli, const tl_spec *spec, bool allow_first,
                                         const tl_kernel_spec **out_kernel);
// Parses the -D options into cli->bindings.
TL_MUST_USE tl_status tl_cli_bindings(tl_cli *cli);
// Parses text of the command line as an expression.
tl_expr *tl_cli_parse_expr(tl_cli *cli, const char *text);
// The target of --target: NULL without one; `native` asks the GPU.
TL_MUST_USE tl_status tl_cli_target(tl_cli *cli, const tl_target **out_target);

// Prints what was collected (pass log, diagnostics, the failure) and returns the exit code. Frees `status`.
int tl_cli_finish(tl_cli *cli, tl_status status);
// Prints the failure as tl_cli_finish would, when something else still works at cli->diags: without them.
void tl_cli_end_early(tl_cli *cli, tl_status status);
// For an internal error: writes the module to a file and prints the tl-opt line that reproduces it.
void tl_cli_report_internal(tl_cli *cli, const tl_compiled *compiled);

#endif
