// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/golden/golden.h"

#include <string.h>

#include "harness/golden/golden_text.h"
#include "ir/target.h"
#include "support/status.h"

// ---- the list

tl_str tl_golden_next_word(tl_str *line) {
  *line = tl_str_trim(*line);
  size_t len = 0;
  while (len < line->len && line->data[len] != ' ' && line->data[len] != '\t') len++;
  tl_str word = tl_str_sub(*line, 0, len);
  *line = tl_str_sub(*line, len, line->len - len);
  return word;
}

tl_str tl_golden_next_line(tl_str *text) {
  size_t end = tl_str_find(*text, '\n');
  size_t len = end == SIZE_MAX ? text->len : end;
  tl_str line = tl_str_sub(*text, 0, len);
  size_t used = end == SIZE_MAX ? len : len + 1;
  *text = tl_str_sub(*text, used, text->len - used);
  return line;
}

tl_str tl_golden_next_target(tl_str *targets) {
  size_t comma = tl_str_find(*targets, ',');
  tl_str name = tl_str_sub(*targets, 0, comma == SIZE_MAX ? targets->len : comma);
  size_t used = name.len + (comma != SIZE_MAX);
  *targets = tl_str_sub(*targets, used, targets->len - used);
  return name;
}

static void parse_words(tl_str line, tl_golden *out) {
  out->name = tl_golden_next_word(&line);
  out->spec = tl_golden_next_word(&line);
  for (tl_str word = tl_golden_next_word(&line); word.len > 0; word = tl_golden_next_word(&line)) {
    if (tl_str_starts_with(word, "targets=")) {
      out->targets = tl_str_sub(word, 8, word.len - 8);
    } else if (tl_str_starts_with(word, "kernel=")) {
      out->kernel = tl_str_sub(word, 7, word.len - 7);
    } else {
      tl_vec_push(&out->bindings, word);
    }
  }
}

static tl_status compare_golden(const char *path, const tl_golden *golden, const tl_goldens *before) {
  int line = golden->line;
  for (size_t i = 0; i < golden->bindings.len; i++) {
    tl_str word = golden->bindings.items[i];
    size_t equals = tl_str_find(word, '=');
    if (equals == 0 || equals == SIZE_MAX)
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s:%d: `%.*s` is not PARAM=VALUE", path, line,
                            TL_STR_ARG(word));
  }
  if (golden->spec.len == 0 || tl_str_find(golden->spec, '=') != SIZE_MAX || golden->targets.len == 0)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "%s:%d: expected NAME SPEC [PARAM=VALUE …] [kernel=K] targets=A,B", path, line);
  for (tl_str rest = golden->targets; rest.len > 0;) {
    tl_str name = tl_golden_next_target(&rest);
    const char *reason = tl_target_refusal(name);
    if (!tl_target_find(name))
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s:%d: %s target `%.*s`%s%s", path, line,
                            reason ? "refused" : "unknown", TL_STR_ARG(name), reason ? ": " : "", reason ? reason : "");
  }
  for (size_t i = 0; i < before->len; i++)
    if (tl_str_equal(before->items[i].name, golden->name))
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s:%d: a second golden `%.*s`; the first is on line %d", path,
                            line, TL_STR_ARG(golden->name), before->items[i].line);
  return TL_OK;
}

tl_status tl_goldens_parse(const char *path, tl_str text, tl_goldens *out) {
  *out = (tl_goldens){0};
  for (int number = 1; text.len > 0; number++) {
    tl_str line = tl_golden_next_line(&text);
    size_t comment = tl_str_find(line, '#');
    if (comment != SIZE_MAX) line = tl_str_sub(line, 0, comment);
    if (tl_str_trim(line).len == 0) continue;
    tl_golden golden = {.line = number};
    parse_words(line, &golden);
    tl_status status = compare_golden(path, &golden, out);
    tl_vec_push(out, golden);
    if (!status) continue;
    tl_goldens_fini(out);
    return status;
  }
  return TL_OK;
}

void tl_goldens_fini(tl_goldens *goldens) {
  for (size_t i = 0; i < goldens->len; i++) tl_vec_fini(&goldens->items[i].bindings);
  tl_vec_fini(goldens);
}

// ---- facts

// Instructions that the compiler chose, by how their names begin; the first match counts.
static const char *const classes[] = {"wgmma.mma",     "mma.",          "ldmatrix.", "stmatrix.", "cp.async.commit",
                                      "cp.async.wait", "cp.async.bulk", "cp.async.", "ld.global", "st.global",
                                      "ld.shared",     "st.shared",     "ld.local",  "st.local",  "atom.",
                                      "red.",          "bar",           "barrier",   "mbarrier.", "shfl.",
                                      "vote.",         "fence.",        "membar"};
enum { NUM_CLASSES = sizeof classes / sizeof classes[0] };

// The next piece of PTX that a line's end, a semicolon or a comment ends. `text` becomes the rest.
static tl_str next_piece(tl_str *text) {
  size_t len = 0;
  while (len < text->len && text->data[len] != '\n' && text->data[len] != ';' &&
         !tl_str_starts_with(tl_str_sub(*text, len, 2), "//"))
    len++;
  tl_str piece = tl_str_sub(*text, 0, len);
  size_t used = len;
  if (used < text->len && text->data[used] == '/') {
    while (used < text->len && text->data[used] != '\n') used++;
  }
  if (used < text->len) used++;
  *text = tl_str_sub(*text, used, text->len - used);
  return piece;
}

tl_str tl_golden_next_instruction(tl_str *ptx) {
  while (ptx->len > 0) {
    tl_str piece = tl_str_trim(next_piece(ptx));
    if (tl_str_starts_with(piece, "{")) piece = tl_str_trim(tl_str_sub(piece, 1, piece.len - 1));
    if (tl_str_starts_with(piece, "@")) tl_golden_next_word(&piece);
    piece = tl_str_trim(piece);
    // LLVM breaks long instructions over lines; those that continue one start with a register or a list of them.
    if (piece.len > 0 && piece.data[0] >= 'a' && piece.data[0] <= 'z' && !tl_str_ends_with(piece, ":")) return piece;
  }
  return (tl_str){0};
}

void tl_golden_facts(tl_str ptx, const tl_manifest *manifest, const char *llvm_version, const tl_ptxas *ptxas,
                     const tl_ptxas_usage *usage, tl_strbuf *out) {
  uint32_t counts[NUM_CLASSES] = {0}, other = 0;
  for (tl_str instruction; (instruction = tl_golden_next_instruction(&ptx)).len > 0;) {
    size_t at = 0;
    while (at < NUM_CLASSES && !tl_str_starts_with(instruction, classes[at])) at++;
    if (at < NUM_CLASSES) counts[at]++;
    if (at == NUM_CLASSES) other++;
  }
  tl_strbuf_appendf(out, "llvm %s\n", llvm_version);
  for (uint32_t i = 0; i < manifest->num_kernels; i++) {
    const tl_manifest_kernel *kernel = &manifest->kernels[i];
    tl_strbuf_appendf(out, "kernel %s threads %d static_shared %lld dynamic_shared %lld\n", kernel->name,
                      kernel->block_threads, (long long)kernel->static_shared_bytes,
                      (long long)kernel->dynamic_shared_bytes);
  }
  for (size_t i = 0; i < NUM_CLASSES; i++) {
    if (counts[i]) tl_strbuf_appendf(out, "count %s %u\n", classes[i], counts[i]);
  }
  tl_strbuf_appendf(out, "other %u\n", other);
  if (ptxas && usage) {
    tl_strbuf_appendf(out, "ptxas %s registers %d spill_stores %d spill_loads %d stack %d\n", ptxas->version,
                      usage->registers, usage->spill_store_bytes, usage->spill_load_bytes, usage->stack_bytes);
  }
}

tl_str tl_golden_fact(tl_str facts, const char *key) {
  while (facts.len > 0) {
    tl_str line = tl_golden_next_line(&facts);
    if (!tl_str_starts_with(line, key) || line.len <= strlen(key) || line.data[strlen(key)] != ' ') continue;
    return tl_str_sub(line, strlen(key) + 1, line.len - strlen(key) - 1);
  }
  return (tl_str){0};
}

static bool has_line(tl_str text, tl_str wanted) {
  while (text.len > 0) {
    if (tl_str_equal(tl_golden_next_line(&text), wanted)) return true;
  }
  return false;
}

// Lines of `a` that `b` lacks, as far as they can be compared.
static bool missing_lines(tl_str a, tl_str b, bool same_llvm, bool same_ptxas, char mark, tl_strbuf *out) {
  bool none = true;
  while (a.len > 0) {
    tl_str line = tl_golden_next_line(&a);
    if (tl_str_starts_with(line, "llvm ") || (tl_str_starts_with(line, "other ") && !same_llvm)) continue;
    if (tl_str_starts_with(line, "ptxas ") && !same_ptxas) continue;
    if (has_line(b, line)) continue;
    tl_strbuf_appendf(out, "  %c %.*s\n", mark, TL_STR_ARG(line));
    none = false;
  }
  return none;
}

bool tl_golden_facts_compare(tl_str recorded, tl_str made, uint32_t *skipped, tl_strbuf *out_differences) {
  bool same_llvm = tl_str_equal(tl_golden_fact(recorded, "llvm"), tl_golden_fact(made, "llvm"));
  tl_str old_ptxas = tl_golden_fact(recorded, "ptxas"), new_ptxas = tl_golden_fact(made, "ptxas");
  tl_str old_version = tl_golden_next_word(&old_ptxas), new_version = tl_golden_next_word(&new_ptxas);
  // Registers depend on ptxas and, through the text, on LLVM.
  bool same_ptxas = same_llvm && new_version.len > 0 && tl_str_equal(old_version, new_version);
  if (!same_ptxas) ++*skipped;
  bool same = missing_lines(recorded, made, same_llvm, same_ptxas, '-', out_differences);
  return missing_lines(made, recorded, same_llvm, same_ptxas, '+', out_differences) && same;
}
