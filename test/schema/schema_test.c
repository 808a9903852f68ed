// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nothing of the language is ignored: every key, option, word and name of its tables has a row in coverage.txt, and the
// row's edit of a spec changes what comes out of the tools, or is refused with the code that the row names.
//   schema_test FOLDER TL_RUN FAKE_CUDA     FOLDER holds coverage.txt and the specs; one line a failure
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/strbuf.h"
#include "support/vec.h"
#include "tl/compiler.h"

typedef struct entry {
  char name[64];
  bool has_row;
  int args;  // of a function of one or two values: how many; else 0
} entry;

// One row of coverage.txt: "entry | spec | text => changed | outcome".
typedef struct row {
  int line;
  char entry[64], spec[64], outcome[512];
  tl_strbuf from, to;
} row;

// What a spec gives: its output, or its diagnostics when `failed`.
typedef struct result {
  bool failed;
  tl_strbuf text, diagnostics;
} result;

typedef struct tester {
  const char *folder, *run, *fake_cuda;
  char work[64];  // a folder for specs that tl-run reads
  TL_VEC(entry) entries;
  tl_compiler *compiler;
  char base_key[96];  // of what `base` was made
  result base;
  int failures;
} tester;

static void fail(tester *t, int line, const char *name, const char *problem) {
  if (line)
    printf("coverage.txt:%d: %s: %s\n", line, name, problem);
  else
    printf("%s: %s\n", name, problem);
  t->failures++;
}

// ---- what the tables have

static void add(tester *t, const char *place, const char *separator, const char *name) {
  entry e = {0};
  snprintf(e.name, sizeof e.name, "%s%s%s", place, separator, name);
  for (char *c = e.name; *c && *c != *separator; c++) *c = (char)tolower(*c);
  tl_vec_push(&t->entries, e);
}

// The words of `choices`, those behind the `|` too.
static void add_choices(tester *t, const char *place, const char *key, const char *choices) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "%s.%s", place, key);
  for (const char *c = choices; *c;) {
    size_t len = strcspn(c, " ");
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)len, c);
    if (strcmp(word, "|") != 0) add(t, prefix, "=", word);
    c += len + strspn(c + len, " ");
  }
}

static void add_settings(tester *t, const char *place) {
#define TL_SCHEMA_SETTING(name, state) add(t, place, ".", name);
#include "frontend/spec/schema.def"
}

static void add_entries(tester *t) {
#define TL_SCHEMA_KEY(place, key, state, value, section, doc) add(t, #place, ".", key);
#define TL_SCHEMA_CHOICE(place, key, choices) add_choices(t, #place, key, choices);
#define TL_SCHEMA_STMT(key, kind, state, value, form, doc) add(t, "statement", ".", key);
#define TL_SCHEMA_OPTION(statement, option, form, need, state, choices, doc) \
  add(t, statement, ".", option);                                            \
  add_choices(t, statement, option, choices);
#include "frontend/spec/schema.def"
  add_settings(t, "case");
  add_settings(t, "tune");
  add_settings(t, "step");
  add_settings(t, "define");
#define TL_GENERATOR(ID, name, min_args, max_args) add(t, "generator", ".", name);
#include "frontend/spec/generators.def"
#undef TL_GENERATOR
#define TL_DTYPE(ID, name, bits, kind, mantissa_bits, exponent_bits, long_names) add(t, "dtype", ".", name);
#include "support/dtype.def"
#undef TL_DTYPE
#define TL_IR_ENUM_BEGIN(ID, c_name)
#define TL_IR_ENUM_VALUE(ID, VALUE, text) \
  if (strcmp(#ID, "REDUCTION") == 0) add(t, "reduction", ".", text);
#define TL_IR_ENUM_END(ID)
#include "ir/enums.def"
#define TL_FUNCTION(ID, text, min_args, max_args, kind, math, fold, group, arguments, doc) \
  add(t, "function", ".", text);                                                           \
  tl_vec_last(&t->entries).args = max_args <= 2 ? min_args : 0;
#include "frontend/sema/sema_functions.def"
}

// ---- rows

// The next field up to " | " or the end, `\n` standing for a line's end.
static const char *read_field(const char *c, tl_strbuf *out, const char *end) {
  for (; *c && *c != '\n' && strncmp(c, end, strlen(end)) != 0; c++) {
    bool is_break = c[0] == '\\' && c[1] == 'n';
    tl_strbuf_append_char(out, is_break ? '\n' : *c);
    c += is_break;
  }
  return strncmp(c, end, strlen(end)) == 0 ? c + strlen(end) : c;
}

static const char *read_short(const char *c, char *out, size_t size) {
  tl_strbuf field = {0};
  c = read_field(c, &field, " | ");
  snprintf(out, size, "%s", tl_strbuf_c(&field));
  tl_strbuf_fini(&field);
  return c;
}

static const char *read_row(const char *c, row *out) {
  c = read_short(c, out->entry, sizeof out->entry);
  c = read_short(c, out->spec, sizeof out->spec);
  c = read_field(c, &out->from, " => ");
  c = read_field(c, &out->to, " | ");
  c = read_short(c, out->outcome, sizeof out->outcome);
  return c + strcspn(c, "\n");
}

// ---- compiling and running

static char *read_text(tester *t, const char *name, size_t *out_len) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", t->folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = calloc(1, 1 << 20);
  *out_len = fread(text, 1, (1 << 20) - 1, file);
  fclose(file);
  return text;
}

static int find_include(void *user, const char *path, const char *from, tl_include *out) {
  tester *t = user;
  static char *text;
  (void)from;
  free(text);
  text = read_text(t, path, &out->text_bytes);
  out->text = text;
  return text != NULL;
}

static void compile(tester *t, tl_str spec, const char *bindings, result *out) {
  tl_compiler_clear_bindings(t->compiler);
  char name[32];
  const char *equals = strchr(bindings, '=');
  if (equals) {
    snprintf(name, sizeof name, "%.*s", (int)(equals - bindings), bindings);
    tl_status status = tl_compiler_bind(t->compiler, name, equals + 1);
    if (status) tl_strbuf_append_c(&out->diagnostics, tl_status_message(status));
    tl_status_free(status);
  }
  tl_compilation *made = NULL;
  tl_status status = tl_compiler_compile(t->compiler, "spec.yaml", spec.data, spec.len, &made);
  const char *ptx = tl_compilation_ptx(made, NULL);
  out->failed = status != TL_OK;
  tl_strbuf_append_c(&out->text, ptx ? ptx : "");
  tl_strbuf_append_c(&out->diagnostics, made ? tl_compilation_diagnostics(made, TL_DIAGNOSTICS_TEXT) : "");
  tl_status_free(status);
  tl_compilation_destroy(made);
}

// Runs tl-run on the spec; what it prints is the result, whatever its exit code.
static void run(tester *t, tl_str spec, const char *outcome, result *out) {
  char path[128], command[1024];
  snprintf(path, sizeof path, "%s/spec.yaml", t->work);
  FILE *file = fopen(path, "wb");
  fwrite(spec.data, 1, spec.len, file);
  fclose(file);
  bool is_check = strcmp(outcome, "check") == 0;
  snprintf(command, sizeof command, "TL_CUDA_DRIVER='%s' '%s' --%s %s '%s' 2>&1", t->fake_cuda, t->run, outcome,
           is_check ? "--device=emu --threads=1" : "--device=cuda --rounds=1 --no-check", path);
  FILE *pipe = popen(command, "r");
  char line[4096];
  while (fgets(line, sizeof line, pipe)) {
    char *time = strstr(line, " s)\n") ? strrchr(line, '(') : NULL;  // "passed (0.01 s)"
    if (time) strcpy(time, "\n");
    tl_strbuf_append_c(&out->text, line);
  }
  out->failed = WEXITSTATUS(pclose(pipe)) > 1;
}

static bool runs(const char *outcome) {
  return strcmp(outcome, "check") == 0 || strcmp(outcome, "bench") == 0 || strcmp(outcome, "tune") == 0;
}

static void result_fini(result *r) {
  tl_strbuf_fini(&r->text);
  tl_strbuf_fini(&r->diagnostics);
  *r = (result){0};
}

// ---- one row

// The spec with the row's only occurrence of `from` replaced. False when there is not exactly one.
static bool edit(const char *base, const row *r, tl_strbuf *out) {
  const char *from = tl_strbuf_c(&r->from), *at = strstr(base, from);
  if (!r->from.len || !at || strstr(at + 1, from)) return false;
  tl_strbuf_append(out, (tl_str){base, (size_t)(at - base)});
  tl_strbuf_append_c(out, tl_strbuf_c(&r->to));
  tl_strbuf_append_c(out, at + r->from.len);
  return true;
}

static void judge(tester *t, const row *r, const result *changed) {
  const char *outcome = r->outcome;
  bool is_same = strncmp(outcome, "same: ", 6) == 0, is_code = strncmp(outcome, "TL", 2) == 0;
  if (t->base.failed) {
    fail(t, r->line, r->entry, "the spec fails as it stands");
    printf("%.400s\n", tl_strbuf_c(t->base.diagnostics.len ? &t->base.diagnostics : &t->base.text));
  } else if (is_code) {
    char code[80];
    snprintf(code, sizeof code, "[%.70s]", outcome);
    const tl_strbuf *said = changed->failed ? &changed->diagnostics : &changed->text;
    if (!strstr(tl_strbuf_c(said), code)) {
      fail(t, r->line, r->entry, "is not refused so");
      printf("%.400s\n", tl_strbuf_c(said));
    }
  } else if (changed->failed) {
    fail(t, r->line, r->entry, "the edited spec fails");
    printf("%.400s\n", tl_strbuf_c(changed->diagnostics.len ? &changed->diagnostics : &changed->text));
  } else if (tl_str_equal(tl_strbuf_view(&t->base.text), tl_strbuf_view(&changed->text)) != is_same) {
    fail(t, r->line, r->entry, is_same ? "changes the output: it needs no reason any more" : "is ignored");
  }
}

static void make_base(tester *t, const row *r, tl_str spec) {
  if (!runs(r->outcome)) {
    compile(t, spec, "", &t->base);
    return;
  }
  // Reports that differ by themselves would show nothing.
  result again = {0};
  run(t, spec, r->outcome, &t->base);
  run(t, spec, r->outcome, &again);
  if (!tl_str_equal(tl_strbuf_view(&again.text), tl_strbuf_view(&t->base.text)))
    fail(t, r->line, r->entry, "two reports of the spec as it stands differ");
  result_fini(&again);
}

static void test_row(tester *t, const row *r) {
  bool is_ptx = strcmp(r->outcome, "ptx") == 0 || strncmp(r->outcome, "same: ", 6) == 0;
  bool is_code = r->outcome[0] == 'T' && r->outcome[1] == 'L' && strlen(r->outcome) == 6;
  if (!is_ptx && !is_code && !runs(r->outcome)) {
    fail(t, r->line, r->entry, "its outcome is none of ptx, check, bench, tune, a code, `same: reason`");
    return;
  }
  size_t len = 0;
  char *base = read_text(t, r->spec, &len);
  tl_strbuf changed = {0};
  // "-D" edits nothing: the text is a binding.
  bool is_binding = tl_str_is(tl_strbuf_view(&r->from), "-D");
  if (!base || (!is_binding && !edit(base, r, &changed))) {
    fail(t, r->line, r->entry, base ? "the text does not stand in the spec exactly once" : "there is no such spec");
  } else {
    const char *bindings = is_binding ? tl_strbuf_c(&r->to) : "";
    tl_str text = is_binding ? (tl_str){base, len} : tl_strbuf_view(&changed);
    char key[96];
    snprintf(key, sizeof key, "%.60s %.30s", r->spec, runs(r->outcome) ? r->outcome : "ptx");
    if (strcmp(key, t->base_key) != 0) {
      result_fini(&t->base);
      strcpy(t->base_key, key);
      make_base(t, r, (tl_str){base, len});
    }
    result made = {0};
    runs(r->outcome) ? run(t, text, r->outcome, &made) : compile(t, text, bindings, &made);
    // Cases are bound by tl-run only.
    if (is_code && !made.failed) {
      result_fini(&made);
      run(t, text, "check", &made);
      made.failed = false;
    }
    judge(t, r, &made);
    result_fini(&made);
  }
  tl_strbuf_fini(&changed);
  free(base);
}

static void find_entry(tester *t, const row *r) {
  bool is_known = false;
  for (size_t i = 0; i < t->entries.len; i++) {
    if (strcmp(t->entries.items[i].name, r->entry) != 0) continue;
    t->entries.items[i].has_row = is_known = true;
  }
  if (!is_known) fail(t, r->line, r->entry, "the language has no such entry");
}

static void test_rows(tester *t) {
  size_t len = 0;
  char *table = read_text(t, "coverage.txt", &len);
  int line = 1;
  for (const char *c = table ? table : ""; *c; c += *c == '\n', line++) {
    if (*c == '\n' || *c == '#') {
      c += strcspn(c, "\n");
      continue;
    }
    row r = {.line = line};
    c = read_row(c, &r);
    find_entry(t, &r);
    test_row(t, &r);
    tl_strbuf_fini(&r.from);
    tl_strbuf_fini(&r.to);
  }
  free(table);
}

// A function of one or two values needs no row of its own: in the row that follows from its table it has an effect.
static void test_function(tester *t, entry *e) {
  const char *name = strchr(e->name, '.') + 1;
  row r = {.spec = "functions.yaml", .outcome = "ptx"};
  snprintf(r.entry, sizeof r.entry, "%s", e->name);
  tl_strbuf_append_c(&r.from, "Y[i] = X[i]");
  tl_strbuf_appendf(&r.to, e->args == 1 ? "Y[i] = %s(X[i])" : "Y[i] = %s(X[i], 0.3)", name);
  test_row(t, &r);
  e->has_row = true;
  tl_strbuf_fini(&r.from);
  tl_strbuf_fini(&r.to);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  tester t = {.folder = argv[1], .run = argv[2], .fake_cuda = argv[3]};
  snprintf(t.work, sizeof t.work, "/tmp/tl-schema.XXXXXX");
  if (!mkdtemp(t.work) || tl_compiler_create(&t.compiler)) return 2;
  tl_compiler_set_include(t.compiler, find_include, &t);
  add_entries(&t);
  test_rows(&t);
  for (size_t i = 0; i < t.entries.len; i++)
    if (!t.entries.items[i].has_row && t.entries.items[i].args) test_function(&t, &t.entries.items[i]);
  for (size_t i = 0; i < t.entries.len; i++)
    if (!t.entries.items[i].has_row) fail(&t, 0, t.entries.items[i].name, "has no row in coverage.txt");
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", t.work);
  if (system(command) != 0) t.failures++;
  printf("%zu entries, %d failures\n", t.entries.len, t.failures);
  result_fini(&t.base);
  tl_vec_fini(&t.entries);
  tl_compiler_destroy(t.compiler);
  return t.failures != 0;
}
