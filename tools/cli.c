// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cli.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/data/file.h"
#include "harness/device/require.h"
#include "ir/text/text.h"
#include "runtime/device.h"
#include "support/manifest.h"

void tl_cli_init(tl_cli *cli, const char *tool, const char *usage) {
  // A file that reaches the size limit is a failed write, reported as such, and leaves no temporary file.
  signal(SIGXFSZ, SIG_IGN);
  *cli = (tl_cli){.tool = tool, .usage = usage, .passes = {.pass_limit = -1}};
  tl_arena_init(&cli->arena);
  tl_sources_init(&cli->sources);
  tl_diags_init(&cli->diags, &cli->sources);
  tl_strbuf_init(&cli->pass_log);
  cli->passes.log = &cli->pass_log;
}

void tl_cli_fini(tl_cli *cli) {
  tl_vec_fini(&cli->defines);
  tl_vec_fini(&cli->bindings);
  tl_strbuf_fini(&cli->pass_log);
  tl_strbuf_fini(&cli->told);
  tl_diags_fini(&cli->diags);
  tl_sources_fini(&cli->sources);
  tl_arena_fini(&cli->arena);
}

static void done(tl_cli *cli, int exit_code) {
  if (!cli->is_done) cli->exit_code = exit_code;
  cli->is_done = true;
}

int tl_cli_usage_error(tl_cli *cli, const char *format, ...) {
  if (cli->is_done) return cli->exit_code;
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s: ", cli->tool);
  vfprintf(stderr, format, args);
  fprintf(stderr, "\nTry '%s --help'.\n", cli->tool);
  va_end(args);
  done(cli, TL_EXIT_USAGE);
  return TL_EXIT_USAGE;
}

static void print_version(const tl_cli *cli) {
  printf("%s %s (manifest ABI %d, LLVM %s)\n", cli->tool, TL_VERSION, TL_MANIFEST_ABI, tl_backend_llvm_version());
}

static void list_diagnostics(tl_cli *cli) {
  for (int code = TL_DIAG_NONE + 1; code < TL_DIAG_COUNT; code++) {
    const char *group = tl_diag_group((tl_diag_code)code);
    printf("%s  %s%s%s%s\n", tl_diag_code_text((tl_diag_code)code), tl_diag_summary((tl_diag_code)code),
           *group ? " (-W" : "", group, *group ? ")" : "");
  }
  done(cli, TL_EXIT_OK);
}

// In any case of letters.
static void explain(tl_cli *cli, const char *text) {
  char upper[8] = "";
  for (size_t i = 0; text[i] && i + 1 < sizeof upper; i++) upper[i] = (char)toupper((unsigned char)text[i]);
  tl_diag_code code = strlen(text) < sizeof upper ? tl_diag_code_parse(tl_str_from(upper)) : TL_DIAG_NONE;
  if (code == TL_DIAG_NONE) {
    tl_cli_usage_error(cli, "unknown diagnostic code '%s'; --explain without one lists them", text);
    return;
  }
  const char *group = tl_diag_group(code);
  printf("%s: %s\n", tl_diag_code_text(code), tl_diag_summary(code));
  if (group && *group) printf("Group: -W%s\n", group);
  printf("\n%s\n", tl_diag_explanation(code));
  done(cli, TL_EXIT_OK);
}

static void list_passes(tl_cli *cli) {
  for (int i = 0; tl_pass_at(i); i++) printf("%-20s %s\n", tl_pass_at(i)->name, tl_pass_at(i)->doc);
  done(cli, TL_EXIT_OK);
}

static void list_targets(tl_cli *cli) {
  for (int i = 0; tl_target_at(i); i++) {
    const tl_target *target = tl_target_at(i);
    printf("%-8s PTX %d.%d  shared %6d bytes a block  %-15s %s\n", target->name, target->ptx_floor / 10,
           target->ptx_floor % 10, target->shared_max_bytes, target->run_status, target->doc);
  }
  done(cli, TL_EXIT_OK);
}

// Every name of a comma list must be a pass (or "all", where that is allowed).
static const char *pass_names(tl_cli *cli, const char *option, const char *list, bool allow_all) {
  const char *at = list;
  while (*at) {
    size_t len = strcspn(at, ",");
    tl_str name = {at, len};
    if (!tl_pass_find(name) && !(allow_all && tl_str_is(name, "all"))) {
      tl_cli_usage_error(cli, "%s: unknown pass '%.*s' (see --list-passes)", option, TL_STR_ARG(name));
      return list;
    }
    at += len + (at[len] == ',');
  }
  return list;
}

bool tl_cli_int(tl_cli *cli, const char *option, const char *text, long long least, long long most, long long *out) {
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (errno == 0 && end != text && *end == '\0' && *out >= least && *out <= most) return true;
  tl_cli_usage_error(cli, "%s takes an integer from %lld to %lld, not '%s'", option, least, most, text);
  return false;
}

bool tl_cli_seconds(tl_cli *cli, const char *option, const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  if (end != text && *end == '\0' && *out > 0 && *out < 1e6) return true;
  tl_cli_usage_error(cli, "%s takes a number of seconds, not '%s'", option, text);
  return false;
}

int tl_cli_one_of(tl_cli *cli, const char *option, const char *text, const char *const *words) {
  for (int i = 0; words[i]; i++) {
    if (strcmp(words[i], text) == 0) return i;
  }
  tl_strbuf list;
  tl_strbuf_init(&list);
  for (int i = 0; words[i]; i++) tl_strbuf_appendf(&list, "%s%s", i ? ", " : "", words[i]);
  tl_cli_usage_error(cli, "%s does not take '%s'; it takes one of %s", option, text, tl_strbuf_c(&list));
  tl_strbuf_fini(&list);
  return -1;
}

void tl_cli_require(tl_cli *cli, const char *list, unsigned *set) {
  tl_str unknown;
  if (tl_requirements_parse(tl_str_from(list), set, &unknown)) return;
  const char *words[8] = {NULL};
  for (int i = 0; tl_requirement_name(i); i++) words[i] = tl_requirement_name(i);
  tl_cli_one_of(cli, "--require", tl_arena_printf(&cli->arena, "%.*s", TL_STR_ARG(unknown)), words);
}

static bool pass_option(tl_cli *cli, int option, char *argument) {
  long long number;
  switch (option) {
    case TL_OPT_PASSES:
      cli->passes.passes = pass_names(cli, "--passes", argument, false);
      return true;
    case TL_OPT_STOP_AFTER:
      if (tl_pass_find(tl_str_from(argument))) {
        cli->passes.stop_after = argument;
      } else {
        tl_cli_usage_error(cli, "--stop-after takes one pass, not '%s' (see --list-passes)", argument);
      }
      return true;
    case TL_OPT_PASS_LIMIT:
      if (tl_cli_int(cli, "--pass-limit", argument, 0, 1000000, &number)) cli->passes.pass_limit = (int)number;
      return true;
    case TL_OPT_EXPLORE_LIMIT:
      if (tl_cli_int(cli, "--explore-limit", argument, 1, 1000000000, &number)) cli->passes.explore_limit = number;
      return true;
    case TL_OPT_PRINT_BEFORE:
      cli->passes.print_before = pass_names(cli, "--print-before", argument, true);
      return true;
    case TL_OPT_PRINT_AFTER:
      cli->passes.print_after = pass_names(cli, "--print-after", argument, true);
      return true;
    case TL_OPT_PRINT_CHANGED:
      cli->passes.print_changed = true;
      return true;
    case TL_OPT_VERIFY_EACH:
      cli->passes.verify_each = true;
      return true;
    case TL_OPT_TIME_PASSES:
      cli->passes.time_passes = true;
      return true;
    case TL_OPT_LIST_PASSES:
      list_passes(cli);
      return true;
    default:
      return false;
  }
}

bool tl_cli_common_option(tl_cli *cli, int option, char *argument) {
  static const char *const formats[] = {[TL_CLI_TEXT] = "text", [TL_CLI_JSON] = "json", [TL_CLI_SARIF] = "sarif", NULL};
  int format;
  static const char *const colors[] = {"auto", "always", "never", NULL};
  switch (option) {
    case 'o':
      cli->output = argument;
      return true;
    case 'D':
      if (!strchr(argument, '=') || argument[0] == '=') {
        tl_cli_usage_error(cli, "-D takes NAME=VALUE, not '%s'", argument);
      } else {
        tl_vec_push(&cli->defines, argument);
      }
      return true;
    case 'W':
      if (!tl_diags_set_warning_option(&cli->diags, tl_str_from(argument))) {
        tl_strbuf groups = {0};
        tl_diag_list_groups(&groups);
        tl_cli_usage_error(cli, "unknown warning option -W%s; the groups are %s", argument, tl_strbuf_c(&groups));
        tl_strbuf_fini(&groups);
      }
      return true;
    case TL_OPT_KERNEL:
      cli->kernel_name = argument;
      return true;
    case TL_OPT_TARGET:
      cli->target_name = argument;
      return true;
    case TL_OPT_LIST_TARGETS:
      list_targets(cli);
      return true;
    case TL_OPT_DIAGNOSTICS:
      format = tl_cli_one_of(cli, "--diagnostics", argument, formats);
      if (format >= 0) cli->diagnostics = (tl_cli_format)format;
      return true;
    case TL_OPT_EXPLAIN:
      if (argument) {
        explain(cli, argument);
      } else {
        cli->explain = true;
      }
      return true;
    case TL_OPT_REMARKS:
      cli->diags.keep_remarks = true;
      format = argument ? tl_cli_one_of(cli, "--remarks", argument, formats) : 0;
      if (format > 0) cli->diagnostics = (tl_cli_format)format;
      return true;
    case TL_OPT_COLOR:
      cli->color = tl_cli_one_of(cli, "--color", argument, colors);
      return true;
    case TL_OPT_VERSION:
      print_version(cli);
      done(cli, TL_EXIT_OK);
      return true;
    case TL_OPT_HELP:
      fputs(cli->usage, stdout);
      done(cli, TL_EXIT_OK);
      return true;
    case '?':
    case ':':
      // getopt has said what is wrong.
      if (!cli->is_done) fprintf(stderr, "Try '%s --help'.\n", cli->tool);
      done(cli, TL_EXIT_USAGE);
      return true;
    default:
      return pass_option(cli, option, argument);
  }
}

void tl_cli_take_input(tl_cli *cli, int argc, char **argv, const char *what) {
  if (cli->is_done) return;
  if (cli->explain) {
    if (optind < argc) {
      explain(cli, argv[optind]);
    } else {
      list_diagnostics(cli);
    }
    return;
  }
  if (optind + 1 == argc) {
    cli->input = argv[optind];
  } else if (optind >= argc) {
    tl_cli_usage_error(cli, "%s is missing", what);
  } else {
    tl_cli_usage_error(cli, "one input at a time: '%s' and '%s' were given", argv[optind], argv[optind + 1]);
  }
}

// ---- specs, bindings, targets

tl_status tl_cli_load_spec(tl_cli *cli, tl_spec **out_spec) {
  uint32_t source = 0;
  *out_spec = NULL;
  TL_TRY(tl_spec_read(&cli->sources, cli->input, &cli->diags, &source));
  *out_spec = tl_spec_parse(&cli->sources, source, &cli->diags);
  if (*out_spec && !tl_diags_has_errors(&cli->diags)) return TL_OK;
  if (!tl_diags_has_errors(&cli->diags))
    return tl_status_make(TL_STATUS_INTERNAL, "the parser failed without a diagnostic");
  return tl_status_make(TL_STATUS_DIAGNOSTICS, "the spec has errors");
}

tl_status tl_cli_pick_kernel(tl_cli *cli, const tl_spec *spec, bool allow_first, const tl_kernel_spec **out_kernel) {
  *out_kernel = NULL;
  uint32_t num_kernels = spec ? spec->num_kernels : 0;
  if (spec && cli->kernel_name) {
    *out_kernel = tl_spec_find(spec, tl_str_from(cli->kernel_name));
  } else if (num_kernels == 1 || (allow_first && num_kernels > 0)) {
    *out_kernel = &spec->kernels[0];
  }
  if (*out_kernel) return TL_OK;
  tl_strbuf list;
  tl_strbuf_init(&list);
  for (uint32_t i = 0; spec && i < num_kernels; i++) {
    tl_strbuf_appendf(&list, "%s%.*s", i ? ", " : "", TL_STR_ARG(spec->kernels[i].name));
  }
  tl_status status = tl_status_make(TL_STATUS_NOT_FOUND, "%s: %s%s%s; the file has: %s", cli->input,
                                    cli->kernel_name ? "no kernel '" : "name a kernel by --kernel",
                                    cli->kernel_name ? cli->kernel_name : "", cli->kernel_name ? "'" : "",
                                    list.len ? tl_strbuf_c(&list) : "none");
  tl_strbuf_fini(&list);
  return status;
}

static tl_located_text locate(tl_cli *cli, uint32_t source, size_t start) {
  tl_str whole = tl_sources_get(&cli->sources, source)->text;
  tl_str text = tl_str_sub(whole, start, whole.len - start);
  uint32_t *offsets = TL_NEW_ARRAY(&cli->arena, uint32_t, text.len + 1);
  for (size_t i = 0; i <= text.len; i++) offsets[i] = (uint32_t)(start + i);
  return (tl_located_text){text, {source, offsets}, {source, (uint32_t)start, (uint32_t)text.len}};
}

tl_expr *tl_cli_parse_expr(tl_cli *cli, const char *text) {
  uint32_t source = tl_sources_add(&cli->sources, "<command line>", tl_str_from(text));
  return tl_expr_parse(&cli->arena, &cli->diags, locate(cli, source, 0));
}

tl_status tl_cli_bindings(tl_cli *cli) {
  for (size_t i = 0; i < cli->defines.len; i++) {
    tl_str text = tl_str_from(cli->defines.items[i]);
    uint32_t source = tl_sources_add(&cli->sources, "<command line>", text);
    size_t equals = tl_str_find(text, '=');
    tl_binding binding = {.name = tl_str_sub(text, 0, equals), .loc = {source, 0, (uint32_t)equals}};
    binding.value = tl_expr_parse(&cli->arena, &cli->diags, locate(cli, source, equals + 1));
    // The last one of a name wins.
    size_t at = 0;
    while (at < cli->bindings.len && !tl_str_equal(cli->bindings.items[at].name, binding.name)) at++;
    if (at < cli->bindings.len) {
      cli->bindings.items[at] = binding;
    } else {
      tl_vec_push(&cli->bindings, binding);
    }
  }
  if (tl_diags_has_errors(&cli->diags)) return tl_status_make(TL_STATUS_DIAGNOSTICS, "a -D option has errors");
  return TL_OK;
}

static tl_status native_target(const tl_target **out_target) {
  tl_device *device = NULL;
  TL_TRY(tl_device_open(0, &device));
  int sm = tl_device_compute_capability(device);
  TL_TRY(tl_device_end(device));
  *out_target = tl_target_for_device(sm);
  if (!*out_target) return tl_status_make(TL_STATUS_UNSUPPORTED, "the GPU is sm_%d; tl-llc needs sm_80 or later", sm);
  return TL_OK;
}

tl_status tl_cli_target(tl_cli *cli, const tl_target **out_target) {
  *out_target = NULL;
  if (!cli->target_name) return TL_OK;
  if (strcmp(cli->target_name, "native") == 0) return native_target(out_target);
  *out_target = tl_target_find(tl_str_from(cli->target_name));
  if (*out_target) return TL_OK;
  const char *reason = tl_target_refusal(tl_str_from(cli->target_name));
  if (reason) {
    tl_cli_usage_error(cli, "--target=%s is refused: %s", cli->target_name, reason);
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "refused target");
  }
  tl_strbuf list;
  tl_strbuf_init(&list);
  for (int i = 0; tl_target_at(i); i++) tl_strbuf_appendf(&list, "%s, ", tl_target_at(i)->name);
  tl_cli_usage_error(cli, "unknown target '%s'; there are %snative", cli->target_name, tl_strbuf_c(&list));
  tl_strbuf_fini(&list);
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "unknown target");
}

// ---- the end

static int exit_code_of(tl_status_code code) {
  switch (code) {
    case TL_STATUS_OK:
      return TL_EXIT_OK;
    case TL_STATUS_INTERNAL:
      return TL_EXIT_INTERNAL;
    case TL_STATUS_NO_DEVICE:
      return TL_EXIT_NO_DEVICE;
    case TL_STATUS_INVALID_ARGUMENT:
    case TL_STATUS_NOT_FOUND:
    case TL_STATUS_IO:
    case TL_STATUS_DIAGNOSTICS:
    case TL_STATUS_UNSUPPORTED:
    case TL_STATUS_LIMIT:
    case TL_STATUS_DRIVER:
    case TL_STATUS_CHECK_FAILED:
    case TL_STATUS_OUT_OF_MEMORY:
      return TL_EXIT_FAILURE;
  }
  return TL_EXIT_FAILURE;
}

// What was printed must have arrived: a full disk or a closed pipe is a failure too.
static int after_flush(const tl_cli *cli, int exit_code) {
  bool failed = fflush(stdout) != 0;
  const char *reason = failed ? strerror(errno) : "an earlier write failed";
  if (!failed && !ferror(stdout)) return exit_code;
  fprintf(stderr, "%s: cannot write the standard output: %s\n", cli->tool, reason);
  return exit_code == TL_EXIT_OK ? TL_EXIT_FAILURE : exit_code;
}

// A failure that is no diagnostic, in the form of one.
static void print_failure_json(tl_status status, tl_strbuf *out) {
  tl_strbuf_appendf(out,
                    "\n {\"file\": null, \"severity\": \"error\", \"code\": \"%s\", \"group\": \"\", \"message\": ",
                    tl_status_code_name(tl_status_code_of(status)));
  tl_strbuf_append_json(out, tl_str_from(tl_status_message(status)));
  tl_strbuf_append_c(out, ", \"notes\": [], \"hints\": []}");
}

// Adds what one input gave to what is printed at the end: one array or log, however many inputs there are.
static void tell(tl_cli *cli, tl_status failure) {
  tl_strbuf item = {0};
  if (cli->diagnostics == TL_CLI_SARIF) {
    tl_diags_print_sarif_run(&cli->diags, cli->tool, failure ? tl_status_code_name(tl_status_code_of(failure)) : NULL,
                             failure ? tl_status_message(failure) : NULL, &item);
  } else {
    tl_diags_print_json_items(&cli->diags, &item);
    if (failure && item.len) tl_strbuf_append_char(&item, ',');
    if (failure) print_failure_json(failure, &item);
  }
  if (item.len && cli->told.len) tl_strbuf_append_char(&cli->told, ',');
  tl_strbuf_append(&cli->told, tl_strbuf_view(&item));
  tl_strbuf_fini(&item);
}

static void print_told(const tl_cli *cli) {
  tl_strbuf text = {0};
  bool is_sarif = cli->diagnostics == TL_CLI_SARIF;
  if (is_sarif)
    tl_diags_begin_sarif(&text);
  else
    tl_strbuf_append_char(&text, '[');
  tl_strbuf_append(&text, tl_strbuf_view(&cli->told));
  if (is_sarif)
    tl_diags_end_sarif(&text);
  else
    tl_strbuf_append_c(&text, cli->told.len ? "\n]\n" : "]\n");
  fputs(tl_strbuf_c(&text), stderr);
  tl_strbuf_fini(&text);
}

// Prints what was collected for one input, or in a form for machines keeps it. Returns the exit code; frees `status`.
static int finish_input(tl_cli *cli, tl_status status) {
  fflush(stdout);
  fputs(tl_strbuf_c(&cli->pass_log), stderr);
  tl_status_code code = tl_status_code_of(status);
  bool is_told =
      !status || code == TL_STATUS_DIAGNOSTICS || (code == TL_STATUS_CHECK_FAILED && !cli->tells_check_failed);
  if (cli->diagnostics != TL_CLI_TEXT) {
    tell(cli, is_told ? TL_OK : status);
  } else {
    tl_strbuf text = {0};
    tl_diags_print_text(&cli->diags, &text, cli->color == 1 || (cli->color == 0 && isatty(STDERR_FILENO)));
    fputs(tl_strbuf_c(&text), stderr);
    tl_strbuf_fini(&text);
    if (!is_told)
      fprintf(stderr, "%s: %s%s\n", cli->tool, code == TL_STATUS_INTERNAL ? "internal error: " : "",
              tl_status_message(status));
  }
  tl_status_free(status);
  return exit_code_of(code);
}

int tl_cli_finish(tl_cli *cli, tl_status status) {
  if (cli->is_done) {
    tl_status_free(status);
    return after_flush(cli, cli->exit_code);
  }
  int code = finish_input(cli, status);
  if (cli->diagnostics != TL_CLI_TEXT) print_told(cli);
  return after_flush(cli, code);
}

void tl_cli_end_early(tl_cli *cli, tl_status status) {
  tl_cli alone = {.tool = cli->tool, .diagnostics = cli->diagnostics, .told = cli->told};
  tl_sources none;
  fflush(stdout);
  tl_sources_init(&none);
  tl_diags_init(&alone.diags, &none);
  if (cli->diagnostics == TL_CLI_TEXT) {
    fprintf(stderr, "%s: %s\n", cli->tool, tl_status_message(status));
  } else {
    tell(&alone, status);
    print_told(&alone);
  }
  tl_status_free(status);
}

int tl_cli_next_input(tl_cli *cli, tl_status status, const char *next) {
  int code = finish_input(cli, status);
  tl_vec_clear(&cli->bindings);
  tl_strbuf_clear(&cli->pass_log);
  tl_diags_clear(&cli->diags);
  tl_sources_fini(&cli->sources);
  tl_sources_init(&cli->sources);
  cli->input = next;
  return code;
}

static void print_quoted(const char *text) {
  fputs(" '", stderr);
  for (const char *c = text; *c; c++) fputs(*c == '\'' ? "'\\''" : (char[]){*c, '\0'}, stderr);
  fputs("'", stderr);
}

void tl_cli_report_internal(tl_cli *cli, const tl_compiled *compiled) {
  if (compiled->tile) {
    tl_strbuf text;
    tl_strbuf_init(&text);
    tl_module_print(compiled->tile, &text);
    const char *base = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/tl-internal-%ld.tir", base && *base ? base : P_tmpdir, (long)getpid());
    tl_status status = tl_file_write(path, tl_strbuf_view(&text));
    if (!status) fprintf(stderr, "%s: the tile IR at the failure is in %s\n", cli->tool, path);
    tl_status_free(status);
    tl_strbuf_fini(&text);
  }
  fprintf(stderr, "%s: to reproduce: tl-opt --verify-each", cli->tool);
  print_quoted(cli->input);
  // Cases and candidates of a search have params that the command line does not.
  if (compiled->defines) fputs(compiled->defines, stderr);
  for (size_t i = 0; i < cli->defines.len && !compiled->defines; i++) {
    fputs(" -D", stderr);
    print_quoted(cli->defines.items[i]);
  }
  if (cli->kernel_name && !compiled->defines) fprintf(stderr, " --kernel=%s", cli->kernel_name);
  if (compiled->target) fprintf(stderr, " --target=%s", compiled->target->name);
  if (cli->passes.passes) fprintf(stderr, " --passes=%s", cli->passes.passes);
  fputs("\n", stderr);
}
