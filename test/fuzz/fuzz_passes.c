// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tile IR that is wrong in ways a person could write: the text cases of passes and verifier, with ops, types, numbers,
// operands, attributes and lines changed. What the verifier accepts must go through the passes of its case, and through
// every single pass: they may refuse it with a diagnostic, but never fail as by a bug of ours, and never crash.
// Usage: fuzz_passes ROUNDS SEED DIRECTORY…; --one=NUMBER runs and prints only that mutation; --keep-going reports all
// that fail, each in a process of its own.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ir/text/text.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

enum { SECONDS = 20 };  // that one mutation may take

typedef struct token {
  size_t at, len;
  char kind;  // 'n' number, 'v' value, 'w' word, '.' other
} token;
typedef TL_VEC(token) tokens;

static TL_VEC(char *) corpus;
static uint64_t state;

static uint32_t draw(uint32_t bound) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return bound ? (uint32_t)(state >> 33) % bound : 0;
}

// ---- mutation

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static void split(const char *text, tokens *out) {
  tl_vec_clear(out);
  for (size_t at = 0; text[at];) {
    size_t from = at;
    char c = text[at], kind = '.';
    if (c == '/' && text[at + 1] == '/') {  // a comment: the case's head
      at += strcspn(text + at, "\n");
      continue;
    }
    if (c == ' ' || c == '\n') {
      at++;
      continue;
    }
    if (c == '%' || is_word(c)) {
      kind = c == '%' ? 'v' : 'w';
      for (at++; is_word(text[at]) || is_digit(text[at]);) at++;
    } else if (is_digit(c) || (c == '-' && is_digit(text[at + 1]))) {
      kind = 'n';
      for (at++; is_digit(text[at]);) at++;
    } else {
      at++;
    }
    tl_vec_push(out, ((token){from, at - from, kind}));
  }
}

static const char *const op_names[] = {
#define TL_OP(ID, text, levels, flags, regions, results, doc) text,
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OPATTR
#undef TL_OPERAND
#undef TL_OP
};
static const char *const type_names[] = {"i8",     "u8",   "i16",   "u16",    "i32",    "u32",      "i64",  "u64",
                                         "f16",    "bf16", "f32",   "f64",    "bool",   "i4",       "u4",   "f8e4m3",
                                         "f8e5m2", "tf32", "index", "shared", "global", "fragment", "local"};
static const char *const numbers[] = {"0",
                                      "1",
                                      "2",
                                      "3",
                                      "7",
                                      "8",
                                      "16",
                                      "31",
                                      "32",
                                      "64",
                                      "127",
                                      "128",
                                      "255",
                                      "256",
                                      "1024",
                                      "-1",
                                      "-2",
                                      "100",
                                      "65536",
                                      "2147483647",
                                      "2147483648",
                                      "-2147483648",
                                      "4611686018427387904",
                                      "9223372036854775807"};

#define PICK(LIST) (LIST)[draw(sizeof(LIST) / sizeof(LIST)[0])]

static bool is_one_of(const char *text, const token *t, const char *const *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strlen(list[i]) == t->len && !memcmp(list[i], text + t->at, t->len)) return true;
  return false;
}

static char *replace(const char *text, size_t at, size_t len, const char *with, size_t with_len) {
  size_t size = strlen(text);
  char *made = tl_xmalloc(size - len + with_len + 1);
  memcpy(made, text, at);
  memcpy(made + at, with, with_len);
  memcpy(made + at + with_len, text + at + len, size - at - len + 1);
  return made;
}

// Another token of the same kind.
static const token *similar(const tokens *all, char kind) {
  for (int tries = 0; tries < 64; tries++) {
    const token *t = &all->items[draw((uint32_t)all->len)];
    if (t->kind == kind) return t;
  }
  return &all->items[0];
}

static char *change_token(const char *text, const tokens *all) {
  const token *t = &all->items[draw((uint32_t)all->len)];
  for (int tries = 0; tries < 64 && t->kind == '.'; tries++) t = &all->items[draw((uint32_t)all->len)];
  const token *other = similar(all, t->kind);
  const char *with = text + other->at;
  size_t len = other->len;
  char number[32];
  if (t->kind == 'w' && draw(4)) {
    bool is_op = is_one_of(text, t, op_names, sizeof op_names / sizeof op_names[0]);
    bool is_type = is_one_of(text, t, type_names, sizeof type_names / sizeof type_names[0]);
    if (is_op || is_type) with = is_op ? PICK(op_names) : PICK(type_names), len = strlen(with);
  } else if (t->kind == 'n' && draw(4)) {
    with = PICK(numbers);
    if (!draw(3)) {
      long long near = strtoll(text + t->at, NULL, 10);
      near = draw(2) ? (long long)((unsigned long long)near + 1 - 2 * draw(2)) : near / 2;
      snprintf(number, sizeof number, "%lld", near);
      with = number;
    }
    len = strlen(with);
  }
  return replace(text, t->at, t->len, with, len);
}

// From the start of a line to that of the next.
static size_t line_at(const char *text, size_t *out_len) {
  size_t size = strlen(text), at = draw((uint32_t)size);
  while (at && text[at - 1] != '\n') at--;
  *out_len = strcspn(text + at, "\n") + 1;
  if (at + *out_len > size) *out_len = size - at;
  return at;
}

static char *change_line(const char *text) {
  size_t len, other_len, at = line_at(text, &len), from = line_at(text, &other_len);
  if (draw(2)) return replace(text, at, len, "", 0);
  return replace(text, at, draw(2) ? 0 : len, text + from, other_len);
}

// Removes an attribute, "key = value" up to the next comma or brace.
static char *drop_attribute(const char *text) {
  size_t size = strlen(text), start = draw((uint32_t)size);
  const char *equals = strstr(text + start, " = ");
  while (equals && (equals == text || !(is_word(equals[-1]) || is_digit(equals[-1]))))
    equals = strstr(equals + 1, " = ");
  if (!equals) return replace(text, 0, 0, "", 0);
  size_t at = (size_t)(equals - text), end = at + 3;
  while (at && (is_word(text[at - 1]) || is_digit(text[at - 1]))) at--;
  if (at && text[at - 1] == '%') return replace(text, 0, 0, "", 0);
  for (int depth = 0; text[end] && text[end] != '\n' && (depth || !strchr(",}", text[end])); end++)
    depth += (text[end] == '[' || text[end] == '<' || text[end] == '(') -
             (text[end] == ']' || text[end] == '>' || text[end] == ')');
  if (text[end] == ',') end += 1 + (text[end + 1] == ' ');
  return replace(text, at, end - at, "", 0);
}

static char *mutate(void) {
  char *text = replace(corpus.items[draw((uint32_t)corpus.len)], 0, 0, "", 0);
  tokens all = {0};
  uint32_t edits = 1 + draw(3);
  for (uint32_t i = 0; i < edits && *text; i++) {
    split(text, &all);
    if (!all.len) break;
    uint32_t how = draw(10);
    char *next = how < 7 ? change_token(text, &all) : how < 8 ? change_line(text) : drop_attribute(text);
    free(text);
    text = next;
  }
  tl_vec_fini(&all);
  return text;
}

// ---- running

static bool head_value(const char *text, const char *key, char *out, size_t size) {
  const char *at = strstr(text, key);
  if (!at) return false;
  at += strlen(key);
  snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
  return true;
}

// False: a pass failed as by a bug of ours; tells which.
static bool run_passes(const tl_module *module, const tl_target *target, const char *passes,
                       const tl_sources *sources) {
  tl_module *copy = tl_module_clone(module);
  tl_diags diags;
  tl_diags_init(&diags, sources);
  copy->target = target;
  tl_pass_options options = {.passes = passes, .pass_limit = -1, .verify_each = true, .is_hand_written = true};
  tl_status status = tl_passes_run(copy, target, &options, &diags);
  bool ours = tl_status_code_of(status) == TL_STATUS_INTERNAL;
  // Where a box lies may be arithmetic of constants, which the verifier does not do: folding shows that it leaves its
  // tile.
  if (ours && strstr(tl_status_message(status), "left invalid IR") && strstr(tl_status_message(status), " leave dim "))
    ours = false;
  if (ours) printf("passes %s: %s\n", passes, tl_status_message(status));
  tl_status_free(status);
  tl_diags_fini(&diags);
  tl_module_destroy(copy);
  return !ours;
}

static uint32_t num_accepted;

static bool run(const char *text) {
  char passes[1024], target_name[64] = "sm_80";
  tl_sources sources;
  tl_sources_init(&sources);
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  uint32_t source = tl_sources_add(&sources, "fuzz", tl_str_from(text));
  tl_module *module = tl_module_parse(&sources, source, &diags);
  bool good = true;
  if (module) {
    tl_verify_result result;
    bool accepted = tl_module_verify(module, &result);
    tl_verify_result_fini(&result);
    if (head_value(text, "// target: ", target_name, sizeof target_name) && !tl_target_find(tl_str_from(target_name)))
      accepted = false;
    const tl_target *target = tl_target_find(tl_str_from(target_name));
    num_accepted += accepted;
    if (accepted && head_value(text, "// passes: ", passes, sizeof passes))
      good = run_passes(module, target, passes, &sources);
    for (int i = 0; accepted && good && tl_pass_at(i); i++)
      good = run_passes(module, target, tl_pass_at(i)->name, &sources);
  }
  if (module) tl_module_destroy(module);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return good;
}

// Each mutation depends on its number alone.
static char *mutation(uint64_t seed, uint32_t number) {
  state = (seed + 1) * 0x9e3779b97f4a7c15u + number * 0xbf58476d1ce4e5b9u;
  draw(2);
  return mutate();
}

static bool run_apart(const char *text) {
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    alarm(SECONDS);
    bool good = run(text);
    fflush(stdout);
    _exit(!good);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void read_corpus(const char *directory) {
  struct dirent **entries = NULL;
  int count = scandir(directory, &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
    tl_sources sources;
    tl_sources_init(&sources);
    uint32_t source;
    if (tl_str_ends_with(tl_str_from(path), ".tir")) {
      tl_status status = tl_sources_read(&sources, path, 1 << 20, &source);
      if (!status) {
        tl_str text = tl_sources_get(&sources, source)->text;
        const char *end = strstr(text.data, "// =====");
        char *copy = tl_xmalloc(text.len + 1);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        memcpy(copy, text.data, len);
        copy[len] = 0;
        tl_vec_push(&corpus, copy);
      }
      tl_status_free(status);
    }
    tl_sources_fini(&sources);
    free(entries[i]);
  }
  free(entries);
}

int main(int argc, char **argv) {
  bool keep_going = false;
  long one = -1;
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; at++) {
    if (!strcmp(argv[at], "--keep-going")) keep_going = true;
    if (!strncmp(argv[at], "--one=", 6)) one = strtol(argv[at] + 6, NULL, 10);
  }
  if (argc - at < 3) return 2;
  uint32_t rounds = (uint32_t)strtoul(argv[at], NULL, 10), failed = 0;
  uint64_t seed = strtoull(argv[at + 1], NULL, 10);
  for (int i = at + 2; i < argc; i++) read_corpus(argv[i]);
  if (!corpus.len) return 2;
  for (uint32_t i = one < 0 ? 0 : (uint32_t)one; i < (one < 0 ? rounds : (uint32_t)one + 1); i++) {
    char *text = mutation(seed, i);
    if (one >= 0) puts(text);
    bool good = keep_going ? run_apart(text) : run(text);
    if (!good) {
      printf("mutation %u of seed %llu fails\n", i, (unsigned long long)seed);
      failed++;
      if (!keep_going) i = rounds;
    }
    free(text);
  }
  printf("%u mutations of %zu files, %u accepted by the verifier, %u failed\n", rounds, corpus.len, num_accepted,
         failed);
  for (size_t i = 0; i < corpus.len; i++) free(corpus.items[i]);
  tl_vec_fini(&corpus);
  return failed != 0;
}
