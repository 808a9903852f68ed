// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-run: runs kernels and checks them.
#include "tools/tl_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/check/repeat.h"
#include "harness/data/memory.h"

static const char usage[] =
    "Usage: tl-run [options] SPEC.yaml | KERNEL.ptx\n"
    "Runs a kernel once; with --check every case of its check section against the reference; with --bench times it.\n\n"
    "  --check                compile, run and compare every case; also of several specs\n"
    "  --case=N               only case N (from 1; repeatable)\n"
    "  --repeat=N             with --check: launch each case that passed N times more, on one stream, on two at once "
    "and\n"
    "                         from a graph, and compare every result with the first one's\n"
    "  --device=KIND          auto (default: the GPU when there is one), cuda, emu\n"
    "  --target=NAME          compile for this target (default: the GPU's; in the emulator the spec's)\n"
    "  -D NAME=VALUE          bind a param, a dynamic one too; repeatable\n"
    "  --kernel=NAME          the kernel of a file with several\n"
    "  --require=LIST         tma, wgmma, roles, overlap, no-spill, vector, no-bank-conflict: an error for each\n"
    "                         statement of the spec that did not get it\n"
    "  --seed=N               of inputs and of the emulator's order (default 1)\n"
    "  --in NAME=SOURCE       an input: FILE.npy, a generator such as 'normal(0, 1)', or a number\n"
    "  --out NAME=FILE.npy    write an output\n"
    "  --via=FORM             what the emulator runs: ir (default), the module before PTX; ptx, the text; both, and\n"
    "                         bits that differ fail\n"
    "  --landing=WHEN         late (default), early or both: asynchronous copies in the emulator\n"
    "  --threads=N            threads of the emulator (default: one a core)\n"
    "  --resident=N           blocks (clusters) that each of them runs at a time (default 1)\n"
    "  --sanitize=CHECKS      checks of the emulator, with commas: all (default with --check), none (default "
    "without),\n"
    "                         race, bounds, init, align, proxy, blocks, async\n"
    "  --findings=FILE        what the checks found as JSON; - is standard output, which then holds nothing else\n"
    "  --timeout=S            of each compile, inputs, reference and launch, in seconds (default 60)\n"
    "  --max-memory=SIZE      of a run, such as 8G (default: three quarters of the machine's)\n"
    "  --arg NAME=KIND        of a PTX without a manifest, in the order of the kernel's parameters: 'in f32[1024]',\n"
    "                         'out …', 'inout …' for a pointer, 'i32 1024' for a value; all checks are on\n"
    "  --grid=X[,Y[,Z]] --block=X[,Y[,Z]] --cluster=X[,Y[,Z]] --shared=BYTES\n"
    "                         of its launch\n"
    "  --launch=FILE.yaml     which says all that (default: the file beside the PTX, when there is one)\n"
    "  --contract=off|on|both whether the emulator fuses products and sums that leave it open\n"
    "  --json[=FILE]          with --check, --bench, --tune: the results as JSON; without FILE on standard output\n"
    "  --junit=FILE           with --check: the results as XML of JUnit; - is standard output\n"
    "  --bench                time every case of the bench section on the GPU\n"
    "  --tune                 try the configurations of the tune section: compile, check, and time them on a GPU\n"
    "  --budget=N             with --tune: try at most N (default: the spec's budget, else all)\n"
    "  --compare=OLD.json --fail-below=RATIO --peer=cublaslt --cublaslt=PATH\n"
    "  --rounds=N --no-check  with --bench, some also with --tune: see docs/cli.md\n"
    "  --dump-dir=DIR         with --check: write the arrays of failing cases there\n"
    "  --remarks[=json] --diagnostics=FORMAT --color=WHEN --explain CODE -W…\n"
    "  --version --help\n";

enum {
  OPT_CHECK = TL_OPT_TOOL,
  OPT_CASE,
  OPT_REPEAT,
  OPT_DEVICE,
  OPT_SEED,
  OPT_IN,
  OPT_OUT,
  OPT_LANDING,
  OPT_VIA,
  OPT_THREADS,
  OPT_RESIDENT,
  OPT_TIMEOUT,
  OPT_MAX_MEMORY,
  OPT_SANITIZE,
  OPT_FINDINGS,
  OPT_JUNIT,
  OPT_DUMP_DIR,
  OPT_REQUIRE
};

// Splits "NAME=REST".
static bool split(tl_run_tool *t, const char *option, const char *text, tl_run_pair *out) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || !equals[1]) {
    tl_cli_usage_error(&t->cli, "%s takes NAME=VALUE, not '%s'", option, text);
    return false;
  }
  *out = (tl_run_pair){{text, (size_t)(equals - text)}, equals + 1};
  return true;
}

static void parse_word(tl_run_tool *t, int option, const char *text) {
  static const char *const devices[] = {[TL_RUN_AUTO] = "auto", [TL_RUN_CUDA] = "cuda", [TL_RUN_EMU] = "emu", NULL};
  static const char *const landings[] = {"late", "early", "both", NULL};
  if (option == OPT_DEVICE) {
    int kind = tl_cli_one_of(&t->cli, "--device", text, devices);
    if (kind >= 0) t->device_kind = kind;
    return;
  }
  if (option == OPT_VIA) {
    static const char *const forms[] = {[TL_VIA_IR] = "ir", [TL_VIA_PTX] = "ptx", [TL_VIA_BOTH] = "both", NULL};
    int via = tl_cli_one_of(&t->cli, "--via", text, forms);
    if (via >= 0) t->via = (tl_run_via)via;
    return;
  }
  int landing = tl_cli_one_of(&t->cli, "--landing", text, landings);
  t->both_landings = landing == 2;
  t->emu.landing = landing == 1 ? TL_LANDING_EARLY : TL_LANDING_LATE;
}

static void parse_checks(tl_run_tool *t, const char *text) {
  tl_str unknown;
  t->has_checks = true;
  if (!tl_emu_sanitize_parse(tl_str_from(text), &t->emu.checks, &unknown))
    tl_cli_usage_error(&t->cli, "--sanitize: there is no check '%.*s'", TL_STR_ARG(unknown));
}

static void parse_option(tl_run_tool *t, int option) {
  long long number;
  tl_run_pair pair;
  switch (option) {
    case OPT_CHECK:
      t->check = true;
      break;
    case OPT_CASE:
      if (tl_cli_int(&t->cli, "--case", optarg, 1, 1000000, &number)) tl_vec_push(&t->cases, (uint32_t)number);
      break;
    case OPT_REPEAT:
      if (tl_cli_int(&t->cli, "--repeat", optarg, TL_REPEAT_LEAST, TL_REPEAT_MOST, &number))
        t->repeat = (uint32_t)number;
      break;
    case OPT_DEVICE:
    case OPT_LANDING:
    case OPT_VIA:
      parse_word(t, option, optarg);
      break;
    case OPT_SEED:
      if (tl_cli_int(&t->cli, "--seed", optarg, 0, INT64_MAX, &number)) t->seed = (uint64_t)number;
      break;
    case OPT_IN:
      if (split(t, "--in", optarg, &pair)) tl_vec_push(&t->in, pair);
      break;
    case OPT_OUT:
      if (split(t, "--out", optarg, &pair)) tl_vec_push(&t->out, pair);
      break;
    case OPT_THREADS:
      if (tl_cli_int(&t->cli, "--threads", optarg, 0, 4096, &number)) t->emu.threads = (int)number;
      break;
    case OPT_RESIDENT:
      if (tl_cli_int(&t->cli, "--resident", optarg, 1, 256, &number)) t->emu.resident = (int)number;
      break;
    case OPT_TIMEOUT:
      tl_cli_seconds(&t->cli, "--timeout", optarg, &t->emu.timeout_s);
      break;
    case OPT_MAX_MEMORY:
      if (!tl_memory_parse(optarg, &t->max_memory))
        tl_cli_usage_error(&t->cli, "--max-memory takes a size such as 8G or 512M, not '%s'", optarg);
      break;
    case OPT_SANITIZE:
      parse_checks(t, optarg);
      break;
    case OPT_FINDINGS:
      t->findings_path = optarg;
      break;
    case OPT_JUNIT:
      t->junit_path = optarg;
      break;
    case OPT_REQUIRE:
      tl_cli_require(&t->cli, optarg, &t->required);
      break;
    case OPT_DUMP_DIR:
      t->dump_dir = optarg;
      break;
    default:
      if (!tl_run_bench_option(t, option, optarg) && !tl_run_tune_option(t, option, optarg) &&
          !tl_run_foreign_option(t, option, optarg))
        tl_cli_common_option(&t->cli, option, optarg);
      break;
  }
}

static bool is_standard_output(const char *path) {
  return path && strcmp(path, "-") == 0;
}

// What is to be alone on standard output.
static int num_apart(const tl_run_tool *t) {
  bool json = t->check && t->bench.json && (!t->bench.json_path || is_standard_output(t->bench.json_path));
  return json + is_standard_output(t->findings_path) + is_standard_output(t->junit_path);
}

// What --findings, --json and --junit write goes to different places.
static void validate_files(tl_run_tool *t) {
  static const char *const options[] = {"--findings", "--json", "--junit"};
  const char *paths[] = {t->findings_path, t->bench.json ? t->bench.json_path : NULL, t->junit_path};
  if (!t->cli.is_done && num_apart(t) > 1)
    tl_cli_usage_error(&t->cli, "only one of --findings, --json and --junit can go to standard output");
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < i; j++)
      if (!t->cli.is_done && paths[i] && paths[j] && strcmp(paths[i], paths[j]) == 0)
        tl_cli_usage_error(&t->cli, "%s and %s write to the same file, '%s'", options[j], options[i], paths[i]);
}

static void parse_options(tl_run_tool *t, int argc, char **argv) {
  static const struct option options[] = {TL_CLI_COMMON_OPTIONS,
                                          TL_RUN_BENCH_OPTIONS,
                                          TL_RUN_TUNE_OPTIONS,
                                          TL_RUN_FOREIGN_OPTIONS,
                                          {"check", no_argument, NULL, OPT_CHECK},
                                          {"case", required_argument, NULL, OPT_CASE},
                                          {"repeat", required_argument, NULL, OPT_REPEAT},
                                          {"device", required_argument, NULL, OPT_DEVICE},
                                          {"seed", required_argument, NULL, OPT_SEED},
                                          {"in", required_argument, NULL, OPT_IN},
                                          {"out", required_argument, NULL, OPT_OUT},
                                          {"landing", required_argument, NULL, OPT_LANDING},
                                          {"via", required_argument, NULL, OPT_VIA},
                                          {"threads", required_argument, NULL, OPT_THREADS},
                                          {"resident", required_argument, NULL, OPT_RESIDENT},
                                          {"timeout", required_argument, NULL, OPT_TIMEOUT},
                                          {"max-memory", required_argument, NULL, OPT_MAX_MEMORY},
                                          {"sanitize", required_argument, NULL, OPT_SANITIZE},
                                          {"findings", required_argument, NULL, OPT_FINDINGS},
                                          {"junit", required_argument, NULL, OPT_JUNIT},
                                          {"dump-dir", required_argument, NULL, OPT_DUMP_DIR},
                                          {"require", required_argument, NULL, OPT_REQUIRE},
                                          {0}};
  int option;
  while (!t->cli.is_done && (option = getopt_long(argc, argv, "D:W:", options, NULL)) != -1) {
    if (option == 'o') {
      tl_cli_usage_error(&t->cli, "tl-run has no -o; outputs are written by --out NAME=FILE.npy");
    } else {
      parse_option(t, option);
    }
  }
  if (!t->cli.is_done && !t->check && t->both_landings) tl_cli_usage_error(&t->cli, "--landing=both goes with --check");
  if (t->check && !t->cli.explain && optind + 1 < argc) {
    t->cli.input = argv[optind];
    t->more_inputs = argv + optind + 1;
    t->num_more_inputs = argc - optind - 1;
  } else {
    tl_cli_take_input(&t->cli, argc, argv, "the spec or PTX file");
  }
  if (!t->cli.is_done && t->check && t->out.len > 0) tl_cli_usage_error(&t->cli, "--out goes without --check");
  if (!t->cli.is_done && !t->check && !t->bench.wanted && !t->tune.wanted && t->cases.len > 0) {
    tl_cli_usage_error(&t->cli, "--case goes with --check, --bench or --tune");
  }
  if (!t->cli.is_done && t->repeat && !t->check) tl_cli_usage_error(&t->cli, "--repeat goes with --check");
  if (!t->cli.is_done && t->junit_path && !t->check) tl_cli_usage_error(&t->cli, "--junit goes with --check");
  validate_files(t);
  tl_run_bench_validate_options(t);
  tl_run_tune_validate_options(t);
  t->emu.seed = (uint32_t)t->seed;
  t->cli.tells_check_failed = !t->check && !t->bench.wanted && !t->tune.wanted;
  bool is_foreign = t->foreign.grid[0] || t->foreign.args.len;
  if (!t->has_checks) t->emu.checks = t->check || t->tune.wanted || is_foreign ? TL_EMU_SANITIZE_ALL : 0;
  if (!t->has_checks && is_foreign) t->emu.checks |= TL_EMU_SANITIZE_LENIENT;
  t->emu.findings = &t->findings;
}

const char *tl_run_describe_device(const tl_run_tool *t) {
  bool both = t->both_landings && !tl_run_device_is_gpu(t->device);
  return both ? "the emulator (late and early landing)" : tl_run_device_describe(t->device);
}

void tl_run_set_directory(tl_run_tool *t) {
  const char *slash = strrchr(t->cli.input, '/');
  free(t->directory);
  t->directory = slash ? strndup(t->cli.input, (size_t)(slash - t->cli.input) + 1) : NULL;
}

static tl_status run_spec(tl_run_tool *t) {
  tl_spec *spec = NULL;
  const tl_kernel_spec *kernel = NULL;
  tl_status status = tl_cli_load_spec(&t->cli, &spec);
  if (!status) status = tl_cli_bindings(&t->cli);
  if (!status) status = tl_run_tool_inputs(t);
  if (!status) status = tl_cli_pick_kernel(&t->cli, spec, false, &kernel);
  if (!status) status = tl_run_tool_spec(t, kernel);
  if (spec) tl_spec_destroy(spec);
  return status;
}

static tl_status run(tl_run_tool *t) {
  TL_TRY(tl_cli_target(&t->cli, &t->target));
  tl_str input = tl_str_from(t->cli.input);
  bool is_ptx = tl_str_ends_with(input, ".ptx");
  if (is_ptx && t->bench.wanted) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--bench needs the spec: a PTX file has no bench section");
  }
  if (is_ptx && t->tune.wanted) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--tune needs the spec: a PTX file has no tune section");
  }
  if (is_ptx && t->check) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--check needs the spec: a PTX file has no reference");
  }
  if (is_ptx && t->required) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--require needs the spec: a PTX file is compiled already");
  }
  if (is_ptx && access(t->cli.input, R_OK) != 0)
    return tl_status_make(TL_STATUS_IO, "cannot open '%s': %s", t->cli.input, strerror(errno));
  if (is_ptx) t->foreign.launch_path = tl_run_launch_file(t);
  if (t->foreign.launch_path && !is_ptx)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--launch goes with a PTX file");
  if (t->foreign.launch_path && !t->has_checks) t->emu.checks = TL_EMU_SANITIZE_ALL | TL_EMU_SANITIZE_LENIENT;
  // Nothing is timed in the emulator.
  bool needs_gpu = t->bench.wanted && t->device_kind == TL_RUN_AUTO;
  TL_TRY(tl_run_device_open(needs_gpu ? TL_RUN_CUDA : t->device_kind, &t->emu, &t->device));
  tl_run_device_set_via(t->device, t->via);
  if (!tl_run_bench_is_json_only(t)) printf("device: %s\n", tl_run_describe_device(t));
  fflush(stdout);
  if (t->bench.wanted) return tl_run_bench(t);
  if (t->tune.wanted) return tl_run_tune(t);
  if (is_ptx) return tl_run_tool_ptx(t);
  return t->check ? tl_run_all_specs(t) : run_spec(t);
}

// Standard output is for what is written there alone: everything else goes to standard error.
static tl_status set_apart(tl_run_tool *t) {
  fflush(stdout);
  t->apart_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (t->apart_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return tl_status_make(TL_STATUS_IO, "cannot write to standard output: %s", strerror(errno));
  return TL_OK;
}

static tl_status write_findings(const tl_run_tool *t) {
  FILE *file = t->apart_fd >= 0 ? fdopen(t->apart_fd, "w") : fopen(t->findings_path, "w");
  if (!file) return tl_status_make(TL_STATUS_IO, "cannot write '%s': %s", t->findings_path, strerror(errno));
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_emu_findings_print_json(&t->findings, &text);
  fputs(tl_strbuf_c(&text), file);
  tl_strbuf_fini(&text);
  bool failed = ferror(file);
  failed |= fclose(file) != 0;
  return failed ? tl_status_make(TL_STATUS_IO, "cannot write '%s'", t->findings_path) : TL_OK;
}

int tl_run_main(int argc, char **argv) {
  tl_run_tool t = {.seed = 1, .emu = {.timeout_s = 60}, .max_memory = tl_memory_default_limit(), .apart_fd = -1};
  tl_cli_init(&t.cli, "tl-run", usage);
  parse_options(&t, argc, argv);
  if (!t.cli.is_done) tl_run_set_directory(&t);
  tl_status status = TL_OK;
  if (!t.cli.is_done && num_apart(&t) > 0) status = set_apart(&t);
  if (!t.cli.is_done && !status) status = run(&t);
  if (!t.cli.is_done && t.findings_path) status = tl_status_join(status, write_findings(&t));
  status = tl_status_join(status, tl_run_device_close(t.device));
  int code = tl_cli_finish(&t.cli, status);
  if (t.exit_code > code) code = t.exit_code;
  tl_vec_fini(&t.cases);
  tl_vec_fini(&t.in);
  tl_vec_fini(&t.out);
  tl_vec_fini(&t.foreign.args);
  tl_vec_fini(&t.foreign.expected);
  tl_vec_fini(&t.foreign.fields);
  tl_vec_fini(&t.inputs);
  tl_emu_findings_fini(&t.findings);
  tl_run_report_fini(&t);
  free(t.directory);
  tl_cli_fini(&t.cli);
  return code;
}
