// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tl-golden: compares the compiler's output with what is recorded, or records it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/data/file.h"
#include "harness/golden/golden.h"
#include "harness/golden/golden_text.h"
#include "tools/cli.h"

static const char usage[] =
    "Usage: tl-golden check | update | diff [options] [NAME …]\n"
    "Compiles every golden of the list and compares it with the files beside the list.\n\n"
    "  check                  a line for each that changed; exit 0: same, 1: changed, 2: could not tell\n"
    "  update                 write the files; refused when CI is set in the environment\n"
    "  diff                   as check, with a table of what changed and the differences of the text\n"
    "  --full                 diff: the whole text, not 200 lines for each golden\n"
    "  --list=FILE            default: test/golden/goldens.txt; its specs are relative to its directory\n"
    "  --require-ptxas        fail without ptxas\n"
    "  --ptxas=PATH           default: $TL_PTXAS, PATH, /usr/local/cuda/bin\n"
    "  --version --help\n";

enum { OPT_LIST = TL_OPT_TOOL, OPT_REQUIRE_PTXAS, OPT_PTXAS, OPT_FULL };
enum { MAX_DIFF_LINES = 200 };
enum { EXIT_SAME = 0, EXIT_CHANGED = 1, EXIT_UNKNOWN = 2 };

typedef struct golden_tool {
  tl_cli cli;
  enum { MODE_CHECK, MODE_UPDATE, MODE_DIFF } mode;
  const char *list_path;
  const char *ptxas_path;
  bool require_ptxas, has_ptxas, is_full;
  tl_ptxas ptxas;
  char **names;  // Borrowed. Only these; all when there are none.
  int num_names;
  uint32_t num_same, num_changed, num_unknown, num_written;
  uint32_t num_skipped_ptxas, num_skipped_texts;  // Comparisons that could not be made of goldens that could.
} golden_tool;

static void parse_options(golden_tool *g, int argc, char **argv) {
  static const struct option options[] = {TL_CLI_COMMON_OPTIONS,
                                          {"list", required_argument, NULL, OPT_LIST},
                                          {"require-ptxas", no_argument, NULL, OPT_REQUIRE_PTXAS},
                                          {"ptxas", required_argument, NULL, OPT_PTXAS},
                                          {"full", no_argument, NULL, OPT_FULL},
                                          {0}};
  int option;
  while (!g->cli.is_done && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    switch (option) {
      case OPT_LIST:
        g->list_path = optarg;
        break;
      case OPT_REQUIRE_PTXAS:
        g->require_ptxas = true;
        break;
      case OPT_PTXAS:
        g->ptxas_path = optarg;
        break;
      case OPT_FULL:
        g->is_full = true;
        break;
      default:
        tl_cli_common_option(&g->cli, option, optarg);
        break;
    }
  }
  if (g->cli.explain) tl_cli_take_input(&g->cli, argc, argv, "");
  if (g->cli.is_done) return;
  const char *verb = optind < argc ? argv[optind++] : "";
  if (strcmp(verb, "check") == 0) {
    g->mode = MODE_CHECK;
  } else if (strcmp(verb, "update") == 0) {
    g->mode = MODE_UPDATE;
  } else if (strcmp(verb, "diff") == 0) {
    g->mode = MODE_DIFF;
  } else {
    tl_cli_usage_error(&g->cli, "expected check, update or diff");
  }
  g->names = argv + optind;
  g->num_names = argc - optind;
}

// ---- files

// A path relative to the list's directory as one relative to ours. free() it.
static char *beside_list(const golden_tool *g, tl_str path) {
  const char *slash = strrchr(g->list_path, '/');
  int directory = slash && !tl_str_starts_with(path, "/") ? (int)(slash - g->list_path) + 1 : 0;
  char *result = NULL;
  if (asprintf(&result, "%.*s%.*s", directory, g->list_path, TL_STR_ARG(path)) < 0) abort();
  return result;
}

// "test/golden/NAME.TARGET.suffix". free() it.
static char *file_of(const golden_tool *g, tl_str name, const char *target, const char *suffix) {
  char *file = NULL;
  if (asprintf(&file, "%.*s.%s.%s", TL_STR_ARG(name), target, suffix) < 0) abort();
  char *path = beside_list(g, tl_str_from(file));
  free(file);
  return path;
}

// ---- making one golden

typedef struct made_golden {
  tl_strbuf ptx, facts;
} made_golden;

static tl_status facts_of(golden_tool *g, tl_compiled *compiled, made_golden *out) {
  const tl_manifest *manifest;
  TL_TRY(tl_backend_manifest(compiled->backend, &manifest));
  tl_ptxas_usage resources = {0};
  if (g->has_ptxas) {
    tl_strbuf cubin;
    tl_strbuf_init(&cubin);
    tl_status status =
        tl_ptxas_assemble(&g->ptxas, compiled->target->name, tl_strbuf_view(&out->ptx), &cubin, &resources);
    tl_strbuf_fini(&cubin);
    if (status) return status;
  }
  tl_golden_facts(tl_strbuf_view(&out->ptx), manifest, tl_backend_llvm_version(), g->has_ptxas ? &g->ptxas : NULL,
                  &resources, &out->facts);
  return TL_OK;
}

// A compile of its own: fresh sources and diagnostics each time.
static tl_status make(golden_tool *g, const tl_golden *golden, const tl_target *target, made_golden *out) {
  tl_cli one;
  tl_cli_init(&one, "tl-golden", usage);
  char *path = beside_list(g, golden->spec);
  one.input = path;
  for (size_t i = 0; i < golden->bindings.len; i++) {
    tl_str binding = golden->bindings.items[i];
    tl_vec_push(&one.defines, tl_arena_copy_bytes(&one.arena, binding.data, binding.len));
  }
  if (golden->kernel.len) one.kernel_name = tl_arena_copy_bytes(&one.arena, golden->kernel.data, golden->kernel.len);
  tl_spec *spec = NULL;
  const tl_kernel_spec *kernel = NULL;
  tl_compiled compiled = {0};
  tl_status status = tl_cli_load_spec(&one, &spec);
  if (!status) status = tl_cli_pick_kernel(&one, spec, true, &kernel);
  if (!status) status = tl_cli_bindings(&one);
  if (!status) {
    tl_compile_request request = tl_compile_request_default(kernel);
    request.bindings = (tl_bindings){one.bindings.items, (uint32_t)one.bindings.len};
    request.target = target;
    status = tl_compile(&request, &one.sources, &one.diags, &compiled);
  }
  if (!status) status = tl_backend_emit_ptx(compiled.backend, &out->ptx);
  if (!status) status = facts_of(g, &compiled, out);
  if (tl_status_code_of(status) == TL_STATUS_DIAGNOSTICS) tl_cli_finish(&one, TL_OK);
  tl_compiled_fini(&compiled);
  if (spec) tl_spec_destroy(spec);
  free(path);
  tl_cli_fini(&one);
  return status;
}

// ---- comparing and writing

// The recorded files and what to compare them with.
typedef struct comparison {
  const char *label, *ptx_path;
  tl_str old_ptx, old_facts, new_ptx, new_facts;
  bool same_facts, same_text;
  const char *differing_facts;  // lines
} comparison;

static void report_change(const golden_tool *g, const comparison *c) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_appendf(&text, "%s: changed: %s%s%s", c->label, c->same_facts ? "" : "facts",
                    !c->same_facts && !c->same_text ? " and " : "", c->same_text ? "" : "text");
  if (g->mode != MODE_DIFF) {
    tl_strbuf_append_c(&text, " (");
    tl_golden_summarize(c->old_ptx, c->old_facts, c->new_ptx, c->new_facts, 3, &text);
    tl_strbuf_append_c(&text, ")\n");
  } else {
    tl_strbuf_append_char(&text, '\n');
    bool any = tl_golden_explain(c->old_ptx, c->old_facts, c->new_ptx, c->new_facts, &text);
    // Facts without a number of their own, such as the kernel's name.
    if (!any) tl_strbuf_appendf(&text, "  the same instructions, registers and bytes\n%s", c->differing_facts);
    if (!c->same_text) {
      tl_golden_diff(c->old_ptx, c->new_ptx, c->ptx_path, g->is_full ? 0 : MAX_DIFF_LINES, &text);
    }
  }
  fputs(tl_strbuf_c(&text), stdout);
  tl_strbuf_fini(&text);
}

static void compare(golden_tool *g, comparison *c) {
  tl_strbuf differences;
  tl_strbuf_init(&differences);
  c->same_facts = tl_golden_facts_compare(c->old_facts, c->new_facts, &g->num_skipped_ptxas, &differences);
  c->differing_facts = tl_strbuf_c(&differences);
  // The text is pinned under one version of LLVM only.
  bool same_llvm = tl_str_equal(tl_golden_fact(c->old_facts, "llvm"), tl_golden_fact(c->new_facts, "llvm"));
  c->same_text = !same_llvm || tl_str_equal(c->old_ptx, c->new_ptx);
  if (!same_llvm) g->num_skipped_texts++;
  if (c->same_facts && c->same_text) {
    g->num_same++;
  } else {
    g->num_changed++;
    report_change(g, c);
  }
  tl_strbuf_fini(&differences);
}

static tl_status store(golden_tool *g, const char *label, const char *path, tl_strbuf *content, tl_str old) {
  if (tl_str_equal(old, tl_strbuf_view(content))) return TL_OK;
  TL_TRY(tl_file_write(path, tl_strbuf_view(content)));
  printf("%s: wrote %s\n", label, path);
  g->num_written++;
  return TL_OK;
}

static tl_status run_golden(golden_tool *g, const tl_golden *golden, const tl_target *target, const char *label) {
  made_golden made = {0};
  tl_strbuf old_ptx = {0}, old_facts = {0};
  char *ptx_path = file_of(g, golden->name, target->name, "ptx"),
       *facts_path = file_of(g, golden->name, target->name, "facts");
  tl_status status = make(g, golden, target, &made);
  if (!status) {
    tl_status missing = tl_file_read(ptx_path, TL_FILE_MAX_TEXT_BYTES, &old_ptx);
    if (!missing) missing = tl_file_read(facts_path, TL_FILE_MAX_TEXT_BYTES, &old_facts);
    if (g->mode == MODE_UPDATE) {
      tl_status_free(missing);
      status = store(g, label, ptx_path, &made.ptx, tl_strbuf_view(&old_ptx));
      if (!status) status = store(g, label, facts_path, &made.facts, tl_strbuf_view(&old_facts));
    } else if (missing) {
      status = missing;
    } else {
      compare(g, &(comparison){.label = label,
                               .ptx_path = ptx_path,
                               .old_ptx = tl_strbuf_view(&old_ptx),
                               .old_facts = tl_strbuf_view(&old_facts),
                               .new_ptx = tl_strbuf_view(&made.ptx),
                               .new_facts = tl_strbuf_view(&made.facts)});
    }
  }
  free(ptx_path);
  free(facts_path);
  tl_strbuf_fini(&old_ptx);
  tl_strbuf_fini(&old_facts);
  tl_strbuf_fini(&made.ptx);
  tl_strbuf_fini(&made.facts);
  return status;
}

static void run_targets(golden_tool *g, const tl_golden *golden) {
  for (tl_str rest = golden->targets; rest.len > 0;) {
    tl_str name = tl_golden_next_target(&rest);
    char label[256];
    snprintf(label, sizeof label, "%.*s %.*s", TL_STR_ARG(golden->name), TL_STR_ARG(name));
    tl_status status = run_golden(g, golden, tl_target_find(name), label);
    if (!status) continue;
    printf("%s: could not tell: %s (%s:%d)\n", label, tl_status_message(status), g->list_path, golden->line);
    tl_status_free(status);
    g->num_unknown++;
  }
}

static bool is_wanted(const golden_tool *g, tl_str name) {
  for (int i = 0; i < g->num_names; i++) {
    if (tl_str_is(name, g->names[i])) return true;
  }
  return g->num_names == 0;
}

// Every name of the command line is on the list.
static tl_status validate_names(const golden_tool *g, const tl_goldens *goldens) {
  for (int n = 0; n < g->num_names; n++) {
    size_t at = 0;
    while (at < goldens->len && !tl_str_is(goldens->items[at].name, g->names[n])) at++;
    if (at == goldens->len)
      return tl_status_make(TL_STATUS_NOT_FOUND, "%s has no golden '%s'", g->list_path, g->names[n]);
  }
  return TL_OK;
}

static tl_status run(golden_tool *g) {
  const char *ci = getenv("CI");
  if (g->mode == MODE_UPDATE && ci && *ci) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "update refuses to run where CI is set: goldens change by hand");
  }
  tl_status status = tl_ptxas_find(g->ptxas_path, 0, &g->ptxas);
  g->has_ptxas = !status;
  if (status && (g->require_ptxas || g->ptxas_path)) return status;
  tl_status_free(status);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_goldens goldens = {0};
  status = tl_file_read(g->list_path, TL_FILE_MAX_TEXT_BYTES, &text);
  if (!status) status = tl_goldens_parse(g->list_path, tl_strbuf_view(&text), &goldens);
  if (!status) status = validate_names(g, &goldens);
  for (size_t i = 0; !status && i < goldens.len; i++) {
    if (is_wanted(g, goldens.items[i].name)) run_targets(g, &goldens.items[i]);
  }
  if (!status && goldens.len == 0) status = tl_status_make(TL_STATUS_NOT_FOUND, "%s is empty", g->list_path);
  tl_goldens_fini(&goldens);
  tl_strbuf_fini(&text);
  return status;
}

static void summarize(const golden_tool *g) {
  if (g->mode == MODE_UPDATE) {
    printf("%u files written, %u goldens failed\n", g->num_written, g->num_unknown);
    return;
  }
  printf("%u passed, %u failed, %u skipped", g->num_same, g->num_changed, g->num_unknown);
  if (g->num_skipped_texts > 0)
    printf("; %u texts not compared (recorded with another LLVM than %s)", g->num_skipped_texts,
           tl_backend_llvm_version());
  printf("; %u ptxas checks skipped", g->num_skipped_ptxas);
  if (g->num_skipped_ptxas > 0)
    printf(g->has_ptxas ? " (recorded with another LLVM or ptxas, or without)" : " (no ptxas)");
  putchar('\n');
}

int tl_golden_main(int argc, char **argv) {
  golden_tool g = {.list_path = "test/golden/goldens.txt"};
  tl_cli_init(&g.cli, "tl-golden", usage);
  parse_options(&g, argc, argv);
  int code = g.cli.exit_code;
  if (!g.cli.is_done) {
    tl_status status = run(&g);
    if (status) {
      tl_cli_finish(&g.cli, status);
      code = EXIT_UNKNOWN;
    } else {
      summarize(&g);
      code = g.num_unknown ? EXIT_UNKNOWN : g.num_changed ? EXIT_CHANGED : EXIT_SAME;
    }
  }
  tl_ptxas_fini(&g.ptxas);
  tl_cli_fini(&g.cli);
  return code;
}
