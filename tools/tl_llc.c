// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-llc: specs to PTX and every stage on the way.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "frontend/spec/schema.h"
#include "harness/check/check.h"
#include "harness/data/file.h"
#include "harness/device/require.h"
#include "tools/tl_llc.h"

static const char usage[] =
    "Usage: tl-llc [options] SPEC.yaml\n"
    "Compiles a tile kernel to PTX.\n\n"
    "  --emit=KIND            ast, tile, scheduled, llvm, llvm-opt, ptx (default), manifest, cubin, c, tvm-ffi,\n"
    "                         report (a page of HTML), schema (of the language, without a SPEC)\n"
    "  -o FILE                write there (default: standard output)\n"
    "  -D NAME=VALUE          bind a param; repeatable\n"
    "  --kernel=NAME          the kernel of a file with several (default: the first)\n"
    "  --target=NAME          sm_80 … sm_120 (--list-targets), or native (asks the GPU); --emit=c: several, with "
    "commas\n"
    "  --ptx-version=M.N      raise the PTX ISA version\n"
    "  -O0 … -O3              LLVM's effort (default -O3)\n"
    "  --ptxas=PATH           the assembler for cubin and c (default: $TL_PTXAS, PATH, /usr/local/cuda/bin); none\n"
    "  --bench=FILE.json      with --emit=report: results of tl-run --bench --json, drawn beside the roofline\n"
    "  --depfile=FILE         write the files that were read, as a rule of make\n"
    "  --ptxas-timeout=S      its time limit in seconds (default 120)\n"
    "  --require=LIST         tma, wgmma, roles, overlap, no-spill, vector, no-bank-conflict: an error for each\n"
    "                         statement without\n"
    "  --remarks[=json]       say what the compiler decided\n"
    "  --diagnostics=FORMAT   text (default), json or sarif\n"
    "  --color=WHEN           auto (default), always, never\n"
    "  --explain CODE         explain a diagnostic\n"
    "  -W…                    -Werror, -Werror=GROUP, -WGROUP, -Wno-GROUP, -Wnone\n"
    "  --passes=A,B --stop-after=PASS --pass-limit=N --print-before=A,B --print-after=A,B\n"
    "  --print-changed --verify-each --time-passes --list-passes --list-targets\n"
    "  --version --help\n";

enum { OPT_EMIT = TL_OPT_TOOL, OPT_PTX_VERSION, OPT_PTXAS, OPT_PTXAS_TIMEOUT, OPT_DEPFILE, OPT_REQUIRE, OPT_BENCH };

static const char *const emit_names[EMIT_COUNT + 1] = {"ast",    "tile",     "scheduled", "llvm", "llvm-opt",
                                                       "ptx",    "manifest", "cubin",     "c",    "tvm-ffi",
                                                       "report", "schema",   NULL};

static bool is_c(const tl_llc *l) {
  return l->emit == EMIT_C || l->emit == EMIT_TVM_FFI;
}

static void parse_emit(tl_llc *l, const char *text) {
  int kind = tl_cli_one_of(&l->cli, "--emit", text, emit_names);
  if (kind >= 0) l->emit = (tl_llc_emit)kind;
}

static void parse_ptx_version(tl_llc *l, const char *text) {
  char *end;
  long major = strtol(text, &end, 10), minor = -1;
  if (end != text && *end == '.' && end[1] >= '0' && end[1] <= '9' && end[2] == '\0') minor = end[1] - '0';
  if (major < 6 || major > 99 || minor < 0) {
    tl_cli_usage_error(&l->cli, "--ptx-version takes MAJOR.MINOR, not '%s'", text);
    return;
  }
  l->ptx_version = (int)(major * 10 + minor);
}

// What has been demanded is known once the passes have run, all of them.
static void validate_require(tl_llc *l) {
  const tl_pass_options *passes = &l->cli.passes;
  bool has_code = l->emit != EMIT_AST && l->emit != EMIT_TILE && l->emit != EMIT_SCHEDULED;
  if (l->cli.is_done || !l->required) return;
  if (l->emit == EMIT_AST || l->emit == EMIT_TILE)
    tl_cli_usage_error(&l->cli, "--require looks at the passes' result: --emit=%s has none", emit_names[l->emit]);
  else if (passes->passes || passes->stop_after || passes->pass_limit >= 0)
    tl_cli_usage_error(&l->cli, "--require looks at the result of all passes");
  else if (!has_code && (l->required & TL_REQUIRE_NO_SPILL))
    tl_cli_usage_error(&l->cli, "--require=no-spill asks ptxas: --emit=%s has no code", emit_names[l->emit]);
}

static bool ends_with(const char *text, const char *ending) {
  size_t len = strlen(text), end = strlen(ending);
  return len >= end && strcmp(text + len - end, ending) == 0;
}

// What lies beside the output has a name of its own.
static void validate_output(tl_llc *l) {
  const char *output = l->cli.output;
  if (l->bench && l->emit != EMIT_REPORT)
    tl_cli_usage_error(&l->cli, "--bench=FILE.json goes with --emit=report; tl-run --bench measures");
  if (l->depfile && !output) tl_cli_usage_error(&l->cli, "--depfile needs -o FILE");
  if (l->emit == EMIT_CUBIN && !output)
    tl_cli_usage_error(&l->cli, "--emit=cubin needs -o FILE");
  else if (l->emit == EMIT_CUBIN && ends_with(output, ".json"))
    tl_cli_usage_error(&l->cli, "--emit=cubin: '%s' is where the manifest goes", output);
  else if (is_c(l) && (!output || !ends_with(output, ".c")))
    tl_cli_usage_error(&l->cli, "--emit=%s needs -o NAME.c, beside which NAME.h goes", emit_names[l->emit]);
}

static void parse_options(tl_llc *l, int argc, char **argv) {
  static const struct option options[] = {TL_CLI_COMMON_OPTIONS,
                                          TL_CLI_PASS_OPTIONS,
                                          {"list-targets", no_argument, NULL, TL_OPT_LIST_TARGETS},
                                          {"emit", required_argument, NULL, OPT_EMIT},
                                          {"ptx-version", required_argument, NULL, OPT_PTX_VERSION},
                                          {"ptxas", required_argument, NULL, OPT_PTXAS},
                                          {"require", required_argument, NULL, OPT_REQUIRE},
                                          {"bench", required_argument, NULL, OPT_BENCH},
                                          {"depfile", required_argument, NULL, OPT_DEPFILE},
                                          {"ptxas-timeout", required_argument, NULL, OPT_PTXAS_TIMEOUT},
                                          {0}};
  int option;
  while (!l->cli.is_done && (option = getopt_long(argc, argv, "o:D:W:O:", options, NULL)) != -1) {
    long long level;
    switch (option) {
      case OPT_EMIT:
        parse_emit(l, optarg);
        break;
      case OPT_PTX_VERSION:
        parse_ptx_version(l, optarg);
        break;
      case OPT_PTXAS:
        l->ptxas_path = optarg;
        break;
      case OPT_REQUIRE:
        tl_cli_require(&l->cli, optarg, &l->required);
        break;
      case OPT_BENCH:
        l->bench = optarg;
        break;
      case OPT_DEPFILE:
        l->depfile = optarg;
        break;
      case OPT_PTXAS_TIMEOUT:
        tl_cli_seconds(&l->cli, "--ptxas-timeout", optarg, &l->ptxas_timeout_s);
        break;
      case 'O':
        if (tl_cli_int(&l->cli, "-O", optarg, 0, 3, &level)) l->opt_level = (int)level;
        break;
      default:
        tl_cli_common_option(&l->cli, option, optarg);
        break;
    }
  }
  validate_require(l);
  if (l->emit == EMIT_SCHEMA && !l->cli.explain) {
    if (optind < argc) tl_cli_usage_error(&l->cli, "--emit=schema is of the language: it takes no spec");
    return;
  }
  tl_cli_take_input(&l->cli, argc, argv, "the spec");
  if (!l->cli.is_done) validate_output(l);
}

char *tl_llc_path_with(const char *path, const char *ending) {
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  size_t len = dot && (!slash || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
  char *out = NULL;
  if (asprintf(&out, "%.*s%s", (int)len, path, ending) < 0) abort();
  return out;
}

// The manifest lies beside a cubin that is a file; a pipe or device has no place beside it.
static bool has_manifest_file(const char *output) {
  struct stat info;
  return strcmp(output, "-") != 0 && (stat(output, &info) != 0 || S_ISREG(info.st_mode));
}

static tl_status emit_cubin(tl_llc *l, tl_compiled *compiled, tl_strbuf *out) {
  tl_ptxas ptxas;
  TL_TRY(tl_ptxas_find(l->ptxas_path, l->ptxas_timeout_s, &ptxas));
  tl_strbuf ptx, json;
  tl_strbuf_init(&ptx);
  tl_strbuf_init(&json);
  tl_status status = tl_backend_emit_ptx(compiled->backend, &ptx);
  if (!status) status = tl_ptxas_assemble(&ptxas, compiled->target->name, tl_strbuf_view(&ptx), out, NULL);
  const tl_manifest *manifest = NULL;
  if (!status) status = tl_backend_manifest(compiled->backend, &manifest);
  if (!status && has_manifest_file(l->cli.output)) {
    tl_manifest_write(manifest, NULL, &json);
    char *path = tl_llc_path_with(l->cli.output, ".json");
    status = tl_file_write(path, tl_strbuf_view(&json));
    free(path);
  }
  tl_strbuf_fini(&ptx);
  tl_strbuf_fini(&json);
  tl_ptxas_fini(&ptxas);
  return status;
}

static tl_status emit_compiled(tl_llc *l, tl_compiled *compiled, tl_strbuf *out) {
  if (!compiled->backend) {  // the passes were told to stop early
    tl_compiled_print_tile(compiled, out);
    return TL_OK;
  }
  const tl_manifest *manifest;
  switch (l->emit) {
    case EMIT_AST:
    case EMIT_TILE:
      break;
    case EMIT_SCHEDULED:
      tl_compiled_print_tile(compiled, out);
      break;
    case EMIT_LLVM:
      return tl_backend_print_llvm(compiled->backend, out);
    case EMIT_LLVM_OPT:
      return tl_backend_print_llvm_opt(compiled->backend, out);
    case EMIT_PTX:
      return tl_backend_emit_ptx(compiled->backend, out);
    case EMIT_MANIFEST:
      TL_TRY(tl_backend_manifest(compiled->backend, &manifest));
      tl_manifest_write(manifest, NULL, out);
      break;
    case EMIT_CUBIN:
      return emit_cubin(l, compiled, out);
    case EMIT_REPORT:
      return tl_llc_emit_report(l, compiled, out);
    case EMIT_C:
    case EMIT_TVM_FFI:
    case EMIT_SCHEMA:
    case EMIT_COUNT:
      break;
  }
  return TL_OK;
}

// Mistakes in check and bench are mistakes of the spec, although only tl-run runs them.
static tl_status validate_sections(tl_llc *l, const tl_kernel_spec *kernel) {
  tl_check_validate(kernel, (tl_bindings){l->cli.bindings.items, (uint32_t)l->cli.bindings.len}, &l->cli.diags);
  if (!tl_diags_has_errors(&l->cli.diags)) return TL_OK;
  return tl_status_make(TL_STATUS_DIAGNOSTICS, "the check or bench section has errors");
}

tl_status tl_llc_compile(tl_llc *l, const tl_kernel_spec *kernel, tl_compiled *out) {
  *out = (tl_compiled){0};
  tl_compile_request request = tl_compile_request_default(kernel);
  request.bindings = (tl_bindings){l->cli.bindings.items, (uint32_t)l->cli.bindings.len};
  TL_TRY(tl_cli_target(&l->cli, &request.target));
  request.passes = l->cli.passes;
  request.backend = (tl_backend_options){.ptx_version = l->ptx_version, .opt_level = l->opt_level};
  if (l->emit == EMIT_TILE) request.passes.pass_limit = 0;
  // The scheduled level needs no backend: what the last pass leaves is printed.
  const char *last = tl_pass_at(0) ? tl_pass_at(0)->name : NULL;
  for (int i = 0; tl_pass_at(i); i++) last = tl_pass_at(i)->name;
  if (l->emit == EMIT_SCHEDULED && !request.passes.stop_after && !request.passes.passes)
    request.passes.stop_after = last;
  request.required = l->required;
  request.ptxas_path = l->ptxas_path;
  request.ptxas_timeout_s = l->ptxas_timeout_s;
  bool wants_remarks = l->cli.diags.keep_remarks;
  l->cli.diags.keep_remarks |= l->emit == EMIT_REPORT;
  tl_status status = tl_compile(&request, &l->cli.sources, &l->cli.diags, out);
  l->cli.diags.keep_remarks = wants_remarks;
  if (!status) status = validate_sections(l, kernel);
  if (!status && is_c(l) && !out->backend)
    status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--emit=c needs all passes");
  if (tl_status_code_of(status) == TL_STATUS_INTERNAL) tl_cli_report_internal(&l->cli, out);
  return status;
}

static tl_status compile(tl_llc *l, const tl_kernel_spec *kernel, tl_strbuf *out) {
  if (is_c(l)) return tl_llc_emit_c(l, kernel);
  tl_compiled compiled;
  tl_status status = tl_llc_compile(l, kernel, &compiled);
  if (!status) status = emit_compiled(l, &compiled, out);
  if (tl_status_code_of(status) == TL_STATUS_INTERNAL) tl_cli_report_internal(&l->cli, &compiled);
  tl_compiled_fini(&compiled);
  return status;
}

// A rule of make: blanks in names get a backslash, a dollar another one.
static tl_status write_depfile(const tl_llc *l) {
  tl_strbuf rule = {0};
  const char *name = l->cli.output;
  for (uint32_t i = 0; i <= l->cli.sources.count; i++) {
    const tl_source *source = i ? tl_sources_get(&l->cli.sources, i) : NULL;
    if (i && (!source->is_file || source->macro)) continue;
    if (i) name = source->name;
    tl_strbuf_append_c(&rule, i ? " \\\n  " : "");
    for (const char *p = name; *p; p++) {
      if (*p == ' ' || *p == '#') tl_strbuf_append_char(&rule, '\\');
      if (*p == '$') tl_strbuf_append_char(&rule, '$');
      tl_strbuf_append_char(&rule, *p);
    }
    if (!i) tl_strbuf_append_char(&rule, ':');
  }
  tl_strbuf_append_char(&rule, '\n');
  tl_status status = tl_file_write(l->depfile, tl_strbuf_view(&rule));
  tl_strbuf_fini(&rule);
  return status;
}

static tl_status run(tl_llc *l, tl_strbuf *out) {
  if (l->emit == EMIT_SCHEMA) {
    tl_schema_print_json(out);
    return tl_file_write(l->cli.output ? l->cli.output : "-", tl_strbuf_view(out));
  }
  tl_spec *spec = NULL;
  const tl_kernel_spec *kernel;
  tl_status status = tl_cli_load_spec(&l->cli, &spec);
  if (!status && l->emit == EMIT_AST) {
    tl_spec_print(spec, out);
  } else if (!status) {
    status = tl_cli_pick_kernel(&l->cli, spec, true, &kernel);
    if (!status) status = tl_cli_bindings(&l->cli);
    if (!status) status = compile(l, kernel, out);
  }
  if (!status && !is_c(l)) status = tl_file_write(l->cli.output ? l->cli.output : "-", tl_strbuf_view(out));
  if (!status && l->depfile) status = write_depfile(l);
  if (spec) tl_spec_destroy(spec);
  return status;
}

int tl_llc_main(int argc, char **argv) {
  tl_llc l = {.emit = EMIT_PTX, .opt_level = 3};
  tl_cli_init(&l.cli, "tl-llc", usage);
  parse_options(&l, argc, argv);
  tl_strbuf out;
  tl_strbuf_init(&out);
  tl_status status = l.cli.is_done ? TL_OK : run(&l, &out);
  int code = tl_cli_finish(&l.cli, status);
  tl_strbuf_fini(&out);
  tl_cli_fini(&l.cli);
  return code;
}
