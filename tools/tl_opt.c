// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-opt: tile IR in (or a spec), passes, tile IR out.
#include <stdio.h>
#include <string.h>

#include "harness/data/file.h"
#include "ir/text/text.h"
#include "tools/cli.h"

static const char usage[] =
    "Usage: tl-opt [options] SPEC.yaml | MODULE.tir | -\n"
    "Runs passes on tile IR and prints it. A spec gets the whole pipeline, IR text only what --passes names.\n"
    "Of a chain, and of a file with several modules, every module.\n\n"
    "  --passes=A,B           run these, in this order\n"
    "  -o FILE                write there (default: standard output)\n"
    "  -D NAME=VALUE --kernel=NAME          of a spec\n"
    "  --target=NAME          default: the spec's or the module's, else sm_80\n"
    "  --stop-after=PASS --pass-limit=N --print-before=A,B --print-after=A,B\n"
    "  --print-changed --verify-each --time-passes --list-passes --explore-limit=N\n"
    "  --remarks[=json] --diagnostics=FORMAT --color=WHEN --explain CODE -W…\n"
    "  --version --help\n";

enum { MAX_TEXT_BYTES = 64 << 20 };

static void parse_options(tl_cli *cli, int argc, char **argv) {
  static const struct option options[] = {TL_CLI_COMMON_OPTIONS, TL_CLI_PASS_OPTIONS, {0}};
  int option;
  while (!cli->is_done && (option = getopt_long(argc, argv, "o:D:W:", options, NULL)) != -1) {
    tl_cli_common_option(cli, option, optarg);
  }
  tl_cli_take_input(cli, argc, argv, "the spec or tile IR");
}

// Tile IR by its name, or by its first word where the name says nothing.
static bool is_tile_ir(const tl_cli *cli, tl_str text) {
  tl_str name = tl_str_from(cli->input);
  if (tl_str_ends_with(name, ".tir")) return true;
  if (tl_str_ends_with(name, ".yaml") || tl_str_ends_with(name, ".yml")) return false;
  text = tl_str_trim(text);
  while (tl_str_starts_with(text, "//")) {
    size_t end = tl_str_find(text, '\n');
    if (end == SIZE_MAX) return true;
    text = tl_str_trim(tl_str_sub(text, end, text.len - end));
  }
  return tl_str_starts_with(text, "module");
}

// One module of tile IR through the passes that were asked for.
static tl_status run_module(tl_cli *cli, uint32_t source, tl_compiled *compiled) {
  compiled->tile = tl_module_parse(&cli->sources, source, &cli->diags);
  if (!compiled->tile) return tl_status_make(TL_STATUS_DIAGNOSTICS, "the tile IR has errors");
  TL_TRY(tl_cli_target(cli, &compiled->target));
  if (!compiled->target)
    compiled->target = compiled->tile->target ? compiled->tile->target : tl_target_find(TL_STR("sm_80"));
  compiled->tile->target = compiled->target;
  tl_verify_result result = {0};
  bool is_valid = tl_module_verify(compiled->tile, &result);
  tl_status status = TL_OK;
  if (!is_valid) {
    tl_strbuf text;
    tl_strbuf_init(&text);
    tl_module_print_with_errors(compiled->tile, &result, &text);
    fputs(tl_strbuf_c(&text), stderr);
    tl_strbuf_fini(&text);
    status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s does not verify", cli->input);
  }
  tl_verify_result_fini(&result);
  cli->passes.is_hand_written = true;
  bool runs_passes = cli->passes.passes || cli->passes.stop_after || cli->passes.pass_limit >= 0;
  if (!status && runs_passes) status = tl_passes_run(compiled->tile, compiled->target, &cli->passes, &cli->diags);
  return status;
}

// Where the module after the one that begins at `start` begins; the text's length when there is none.
static size_t next_module(tl_str text, size_t start) {
  for (size_t i = start + 1; i < text.len; i++) {
    if (text.data[i - 1] == '\n' && tl_str_starts_with(tl_str_sub(text, i, text.len - i), "module ")) return i;
  }
  return text.len;
}

// The bytes [start, end) of a source as one of its own, with as many lines before them as there: places stay right.
static uint32_t add_part(tl_cli *cli, const tl_source *whole, size_t start, size_t end) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  for (size_t i = 0; i < start; i++)
    if (whole->text.data[i] == '\n') tl_strbuf_append_char(&text, '\n');
  tl_strbuf_append(&text, tl_str_sub(whole->text, start, end - start));
  uint32_t part = tl_sources_add(&cli->sources, whole->name, tl_strbuf_view(&text));
  tl_strbuf_fini(&text);
  return part;
}

// The file of a chain has a module for each kernel: they are the parts of what was compiled.
static tl_status run_ir(tl_cli *cli, uint32_t source, tl_compiled *compiled) {
  const tl_source *whole = tl_sources_get(&cli->sources, source);
  tl_str text = whole->text;
  uint32_t num_modules = 0;
  bool begins = tl_str_starts_with(text, "module ");
  size_t first = begins ? 0 : next_module(text, 0);  // after comments
  for (size_t at = first; at < text.len; at = next_module(text, at)) num_modules++;
  if (num_modules < 2) return run_module(cli, source, compiled);
  compiled->parts = tl_xcalloc(num_modules, sizeof *compiled->parts);
  tl_status status = TL_OK;
  // Before the first module may be comments, which are its own.
  for (size_t at = 0, end = next_module(text, first); !status && at < text.len; at = end, end = next_module(text, at))
    status = run_module(cli, add_part(cli, whole, at, end), &compiled->parts[compiled->num_parts++]);
  return status;
}

static tl_status run_spec(tl_cli *cli, uint32_t source, tl_compiled *compiled) {
  tl_spec *spec = tl_spec_parse(&cli->sources, source, &cli->diags);
  const tl_kernel_spec *kernel = NULL;
  tl_status status = TL_OK;
  if (!spec || tl_diags_has_errors(&cli->diags)) status = tl_status_make(TL_STATUS_DIAGNOSTICS, "the spec has errors");
  if (!status) status = tl_cli_pick_kernel(cli, spec, true, &kernel);
  if (!status) status = tl_cli_bindings(cli);
  if (!status) {
    tl_compile_request request = tl_compile_request_default(kernel);
    request.bindings = (tl_bindings){cli->bindings.items, (uint32_t)cli->bindings.len};
    request.passes = cli->passes;
    // Never the backend: it ends after the last pass.
    const char *last = NULL;
    for (int i = 0; tl_pass_at(i); i++) last = tl_pass_at(i)->name;
    if (!request.passes.stop_after && !request.passes.passes) request.passes.stop_after = last;
    status = tl_cli_target(cli, &request.target);
    if (!status) status = tl_compile(&request, &cli->sources, &cli->diags, compiled);
  }
  if (spec) tl_spec_destroy(spec);
  return status;
}

static tl_status run(tl_cli *cli) {
  uint32_t source = 0;
  tl_compiled compiled = {0};
  TL_TRY(tl_sources_read(&cli->sources, cli->input, MAX_TEXT_BYTES, &source));
  bool is_ir = is_tile_ir(cli, tl_sources_get(&cli->sources, source)->text);
  tl_status status = is_ir ? run_ir(cli, source, &compiled) : run_spec(cli, source, &compiled);
  if (!status) {
    tl_strbuf text;
    tl_strbuf_init(&text);
    tl_compiled_print_tile(&compiled, &text);
    status = tl_file_write(cli->output ? cli->output : "-", tl_strbuf_view(&text));
    tl_strbuf_fini(&text);
  }
  if (tl_status_code_of(status) == TL_STATUS_INTERNAL) tl_cli_report_internal(cli, &compiled);
  tl_compiled_fini(&compiled);
  return status;
}

int tl_opt_main(int argc, char **argv) {
  tl_cli cli;
  tl_cli_init(&cli, "tl-opt", usage);
  parse_options(&cli, argc, argv);
  tl_status status = cli.is_done ? TL_OK : run(&cli);
  int code = tl_cli_finish(&cli, status);
  tl_cli_fini(&cli);
  return code;
}
