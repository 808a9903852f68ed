// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What changed between two goldens, in terms of what the compiler chooses.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/golden/golden.h"
#include "harness/golden/golden_text.h"
#include "support/status.h"

// Instruction classes in the table's order. An opcode belongs to the first class with a prefix of it.
typedef struct class_info {
  const char *prefix, *label;
  bool by_width;  // One row for each number of bytes that a thread moves.
} class_info;
static const class_info class_infos[] = {
    {"wgmma.mma", "wgmma", false},
    {"wgmma.", "wgmma fences and waits", false},
    {"mma.", "mma", false},
    {"ldmatrix.", "ldmatrix", false},
    {"stmatrix.", "stmatrix", false},
    {"cp.async.bulk", "cp.async.bulk", false},
    {"cp.async.commit", "cp.async commits", false},
    {"cp.async.wait", "cp.async waits", false},
    {"cp.async.mbarrier", "cp.async arrivals", false},
    {"cp.async.", "cp.async", false},
    {"ld.global", "ld.global", true},
    {"st.global", "st.global", true},
    {"ld.shared", "ld.shared", true},
    {"st.shared", "st.shared", true},
    {"ld.local", "ld.local", true},
    {"st.local", "st.local", true},
    {"ld.param", "ld.param", false},
    {"shfl.", "shfl", false},
    {"vote.", "vote", false},
    {"redux.", "redux", false},
    {"bar", "barriers", false},
    {"mbarrier.", "mbarrier", false},
    {"atom.", "atomics", false},
    {"red.", "atomics", false},
    {"fence.", "fences", false},
    {"membar", "fences", false},
    {"fma.", "fma", false},
    {"cvt.", "cvt", false},
    {"mov.", "mov", false},
    {"bra", "branches", false},
};
enum { NUM_CLASS_INFOS = sizeof class_infos / sizeof class_infos[0] };
// Widths of accesses: index w stands for 1 << w bytes, up to 32.
enum { NUM_WIDTHS = 6 };

typedef struct instruction_counts {
  int64_t items[NUM_CLASS_INFOS][NUM_WIDTHS];
  int64_t other;
} instruction_counts;

typedef struct golden_row {
  char label[64];
  int64_t old_count, new_count;
} golden_row;
typedef TL_VEC(golden_row) golden_rows;

// The bits of a register type's name such as "b32" or "f16x2"; 0 when it is none.
static int64_t type_bits(tl_str name) {
  if (name.len < 2 || !strchr("busf", name.data[0])) return 0;
  int64_t bits = 0;
  size_t at = 1;
  while (at < name.len && at < 5 && name.data[at] >= '0' && name.data[at] <= '9')
    bits = bits * 10 + name.data[at++] - '0';
  if (at == name.len) return bits;
  return at + 2 == name.len && name.data[at] == 'x' && name.data[at + 1] == '2' ? 2 * bits : 0;
}

// How many bytes a load or store such as "ld.global.nc.v4.b32" moves for each thread, as its logarithm.
static size_t width_of(tl_str opcode) {
  int64_t elements = 1, bits = 8;
  while (opcode.len > 0) {
    size_t dot = tl_str_find(opcode, '.');
    size_t len = dot == SIZE_MAX ? opcode.len : dot;
    tl_str part = tl_str_sub(opcode, 0, len);
    opcode = tl_str_sub(opcode, len + (dot != SIZE_MAX), opcode.len - len - (dot != SIZE_MAX));
    if (part.len == 2 && part.data[0] == 'v' && part.data[1] >= '2' && part.data[1] <= '8')
      elements = part.data[1] - '0';
    if (type_bits(part) > 0) bits = type_bits(part);
  }
  size_t width = 0;
  while (width + 1 < NUM_WIDTHS && (int64_t)8 << width < elements * bits) width++;
  return width;
}

static void count_instructions(tl_str ptx, instruction_counts *out) {
  *out = (instruction_counts){0};
  for (tl_str instruction; (instruction = tl_golden_next_instruction(&ptx)).len > 0;) {
    tl_str opcode = tl_golden_next_word(&instruction);
    size_t at = 0;
    while (at < NUM_CLASS_INFOS && !tl_str_starts_with(opcode, class_infos[at].prefix)) at++;
    if (at == NUM_CLASS_INFOS) {
      out->other++;
    } else {
      out->items[at][class_infos[at].by_width ? width_of(opcode) : 0]++;
    }
  }
}

static void add_row(golden_rows *rows, const char *label, int64_t old_count, int64_t new_count) {
  if (rows->len > 0 && strcmp(rows->items[rows->len - 1].label, label) == 0) {
    rows->items[rows->len - 1].old_count += old_count;
    rows->items[rows->len - 1].new_count += new_count;
    return;
  }
  golden_row row = {.old_count = old_count, .new_count = new_count};
  snprintf(row.label, sizeof row.label, "%s", label);
  tl_vec_push(rows, row);
}

static void instruction_rows(tl_str old_ptx, tl_str new_ptx, golden_rows *rows) {
  instruction_counts before, after;
  count_instructions(old_ptx, &before);
  count_instructions(new_ptx, &after);
  for (size_t i = 0; i < NUM_CLASS_INFOS; i++) {
    for (size_t w = 0; w < NUM_WIDTHS; w++) {
      char label[64];
      snprintf(label, sizeof label, "%s", class_infos[i].label);
      if (class_infos[i].by_width) snprintf(label, sizeof label, "%s %d B", class_infos[i].label, 1 << w);
      if (w == 0 || class_infos[i].by_width) add_row(rows, label, before.items[i][w], after.items[i][w]);
    }
  }
  add_row(rows, "other instructions", before.other, after.other);
}

// The integer after the word `key` in a line of facts; 0 when it is not there.
static int64_t number_after(tl_str line, const char *key) {
  while (line.len > 0) {
    if (!tl_str_is(tl_golden_next_word(&line), key)) continue;
    tl_str word = tl_golden_next_word(&line);
    int64_t value = 0;
    for (size_t i = 0; i < word.len && word.data[i] >= '0' && word.data[i] <= '9'; i++)
      value = value * 10 + word.data[i] - '0';
    return value;
  }
  return 0;
}

// Rows for the keys of the line of facts behind `fact`, labelled as asked.
static void fact_rows(tl_str old_facts, tl_str new_facts, const char *fact, const char *const (*keys)[2],
                      size_t num_keys, golden_rows *rows) {
  tl_str before = tl_golden_fact(old_facts, fact), after = tl_golden_fact(new_facts, fact);
  for (size_t i = 0; i < num_keys; i++)
    add_row(rows, keys[i][1], number_after(before, keys[i][0]), number_after(after, keys[i][0]));
}

static void make_rows(tl_str old_ptx, tl_str old_facts, tl_str new_ptx, tl_str new_facts, golden_rows *rows) {
  static const char *const ptxas_keys[][2] = {{"registers", "registers"},
                                              {"spill_stores", "spill stores (bytes)"},
                                              {"spill_loads", "spill loads (bytes)"},
                                              {"stack", "stack (bytes)"}};
  static const char *const kernel_keys[][2] = {
      {"threads", "threads"}, {"static_shared", "static shared (bytes)"}, {"dynamic_shared", "dynamic shared (bytes)"}};
  instruction_rows(old_ptx, new_ptx, rows);
  tl_str old_ptxas = tl_golden_fact(old_facts, "ptxas"), new_ptxas = tl_golden_fact(new_facts, "ptxas");
  tl_str old_version = tl_golden_next_word(&old_ptxas), new_version = tl_golden_next_word(&new_ptxas);
  // Figures of two versions of ptxas say nothing about the compiler.
  if (old_version.len > 0 && tl_str_equal(old_version, new_version))
    fact_rows(old_facts, new_facts, "ptxas", ptxas_keys, sizeof ptxas_keys / sizeof ptxas_keys[0], rows);
  fact_rows(old_facts, new_facts, "kernel", kernel_keys, sizeof kernel_keys / sizeof kernel_keys[0], rows);
}

bool tl_golden_explain(tl_str old_ptx, tl_str old_facts, tl_str new_ptx, tl_str new_facts, tl_strbuf *out) {
  golden_rows rows = {0};
  make_rows(old_ptx, old_facts, new_ptx, new_facts, &rows);
  bool any = false;
  for (size_t i = 0; i < rows.len; i++) {
    const golden_row *row = &rows.items[i];
    if (row->old_count == row->new_count) continue;
    any = true;
    tl_strbuf_appendf(out, "  %-24s %8lld → %8lld  %+8lld\n", row->label, (long long)row->old_count,
                      (long long)row->new_count, (long long)(row->new_count - row->old_count));
  }
  tl_vec_fini(&rows);
  return any;
}

void tl_golden_summarize(tl_str old_ptx, tl_str old_facts, tl_str new_ptx, tl_str new_facts, uint32_t max_items,
                         tl_strbuf *out) {
  golden_rows rows = {0};
  make_rows(old_ptx, old_facts, new_ptx, new_facts, &rows);
  uint32_t shown = 0, changed = 0;
  for (size_t i = 0; i < rows.len; i++) {
    const golden_row *row = &rows.items[i];
    if (row->old_count == row->new_count || ++changed > max_items) continue;
    tl_strbuf_appendf(out, "%s%s %lld → %lld", shown++ ? ", " : "", row->label, (long long)row->old_count,
                      (long long)row->new_count);
  }
  if (changed > shown) tl_strbuf_appendf(out, ", %u more", changed - shown);
  if (changed == 0) tl_strbuf_append_c(out, "the same counts");
  tl_vec_fini(&rows);
}
