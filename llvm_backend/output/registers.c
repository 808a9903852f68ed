// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Liveness over PTX text. ptxas allocates anew and reorders, mostly to keep more values under way: the most values that
// live at once are what must fit, or, where they do not, what lives at once with each value computed when it is needed.
// Held against ptxas by test/kernels/registers.sh.
#include "llvm_backend/output/registers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/target.h"
#include "llvm_backend/output/registers_internal.h"

enum {
  MAX_SET_BITS = 1 << 27,  // of the sets of all blocks
  SPARE = 8,               // what ptxas needs beside the values: addresses, aligned groups for vectors
  SPARE_OF_ORDER = 16,     // in the order of registers_order.c, which ptxas comes near
  SPARE_OF_CALLS = 8       // the same around the subroutines of exact quotients and roots
};

// Registers by the letters of their names, with their size; predicates take none of these.
static const struct {
  const char *letters;
  int32_t size;
} classes[] = {{"r", 1}, {"rd", 2}, {"rs", 1}, {"f", 1}, {"fd", 2}, {"h", 1}, {"hh", 1}, {"rq", 4}};
_Static_assert(sizeof classes / sizeof *classes == TL_NUM_REGISTER_CLASSES, "one row a class");

// ---- reading

static bool starts_with(const char *at, const char *end, const char *what) {
  size_t len = strlen(what);
  return (size_t)(end - at) >= len && memcmp(at, what, len) == 0;
}

// A register at `at` (behind its "%"), or false. `*out_end`: behind its name.
static bool read_register(const char *at, const char *end, tl_ptx_operand *out, const char **out_end) {
  const char *digits = at;
  while (digits < end && islower((unsigned char)*digits)) digits++;
  size_t len = (size_t)(digits - at);
  *out_end = digits;
  out->number = 0;
  while (*out_end < end && isdigit((unsigned char)**out_end)) out->number = out->number * 10 + *(*out_end)++ - '0';
  for (out->class = 0; *out_end > digits && out->class < TL_NUM_REGISTER_CLASSES; out->class ++)
    if (strlen(classes[out->class].letters) == len && memcmp(classes[out->class].letters, at, len) == 0) return true;
  return false;
}

static void read_operands(tl_liveness *live, const char *at, const char *end) {
  while (at < end) {
    tl_ptx_operand found;
    if (*at++ != '%' || !read_register(at, end, &found, &at)) continue;
    tl_vec_push(&live->operands, found);
    if (found.number >= live->counts[found.class]) live->counts[found.class] = found.number + 1;
  }
}

static tl_ptx_block *current_block(tl_liveness *live) {
  return &tl_vec_last(&live->blocks);
}

static void begin_block(tl_liveness *live, tl_str label) {
  tl_ptx_block next = {.label = label, .from = live->instructions.len, .falls = true};
  if (live->blocks.len > 0) current_block(live)->to = next.from;
  tl_vec_push(&live->blocks, next);
}

static void read_branch(tl_liveness *live, const char *at, const char *end, bool is_conditional) {
  const char *label = at;
  while (label < end && *label != '$') label++;
  current_block(live)->target = tl_str_trim((tl_str){label, (size_t)(end - label)});
  current_block(live)->falls = is_conditional;
  live->unknown |= label == end;
}

// Where the first operand of an instruction ends: at a comma outside of brackets.
static const char *end_of_first(const char *at, const char *end) {
  int depth = 0;
  for (; at < end; at++) {
    depth += (*at == '{' || *at == '[' || *at == '(') - (*at == '}' || *at == ']' || *at == ')');
    if (*at == ',' && depth == 0) return at;
  }
  return at;
}

static bool starts_with_one_of(const char *at, const char *end, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (starts_with(at, end, words[i])) return true;
  }
  return false;
}
#define ONE_OF(at, end, words) starts_with_one_of(at, end, words, sizeof words / sizeof *words)

// What the instruction with this opcode does beside its operands.
static void classify(const char *at, const char *end, tl_ptx_instruction *out) {
  static const char *const pure[] = {"add.", "sub.", "mul.", "fma.", "mad.", "neg.", "abs.", "min.", "max.",    "ex2.",
                                     "rcp.", "div.", "lg2.", "cvt.", "mov.", "and.", "or.",  "xor.", "shl.",    "shr.",
                                     "not.", "lop",  "prmt", "selp", "set.", "rsq",  "sqr",  "tanh", "copysign"};
  static const char *const orders[] = {"st.shared", "bar", "cp.", "mbarrier.", "fence", "atom", "red", "st.async"};
  out->reads_shared = starts_with(at, end, "ld.shared");
  out->is_pure = out->reads_shared || ONE_OF(at, end, pure);
  out->orders_shared = ONE_OF(at, end, orders);
}

// One statement without its semicolon.
static void read_statement(tl_liveness *live, const char *at, const char *end) {
  static const char *const readers[] = {"st.", "red", "bar", "cp.", "prefetch", "mbarrier.", "fence", "call", "wgmma."};
  bool is_conditional = *at == '@', is_branch = false, only_reads = false;
  while (is_conditional && at < end && !isspace((unsigned char)*at)) at++;
  while (at < end && isspace((unsigned char)*at)) at++;
  if (at == end || *at == '.') return;
  const char *operands = at;
  while (operands < end && !isspace((unsigned char)*operands)) operands++;
  is_branch = starts_with(at, end, "bra") || starts_with(at, end, "ret") || starts_with(at, end, "exit");
  live->unknown |= starts_with(at, end, "brx");
  live->calls |= starts_with(at, end, "div.r") || starts_with(at, end, "sqrt.r") || starts_with(at, end, "rcp.r");
  only_reads = ONE_OF(at, end, readers);
  const char *first = end_of_first(operands, end);
  while (operands < end && isspace((unsigned char)*operands)) operands++;
  if (only_reads || (operands < end && *operands == '[')) first = operands;
  tl_ptx_instruction next = {.defs = live->operands.len, .keeps = is_conditional};
  if (!is_branch) read_operands(live, operands, first);
  next.uses = live->operands.len;
  if (!is_branch) read_operands(live, first, end);
  next.end = live->operands.len;
  classify(at, end, &next);
  tl_vec_push(&live->instructions, next);
  if (!is_branch) return;
  if (starts_with(at, end, "bra"))
    read_branch(live, operands, end, is_conditional);
  else
    current_block(live)->falls = is_conditional;
  begin_block(live, (tl_str){0});
}

static void read_line(tl_liveness *live, const char *at, const char *end) {
  for (const char *c = at; c + 1 < end; c++)
    if (c[0] == '/' && c[1] == '/') end = c;
  while (at < end && (isspace((unsigned char)*at) || *at == '{' || *at == '}')) at++;
  const char *name = at;
  while (name < end && (isalnum((unsigned char)*name) || *name == '_' || *name == '$')) name++;
  if (name > at && name < end && *name == ':') {
    begin_block(live, (tl_str){at, (size_t)(name - at)});
    at = name + 1;
  }
  while (at < end) {
    const char *stop = memchr(at, ';', (size_t)(end - at));
    if (!stop) stop = end;
    while (at < stop && isspace((unsigned char)*at)) at++;
    if (at < stop) read_statement(live, at, stop);
    at = stop + 1;
  }
}

// ---- sets

static bool has(const uint64_t *set, size_t bit) {
  return set[bit / 64] >> (bit % 64) & 1;
}

static int32_t size_of(const tl_liveness *live, const uint64_t *set) {
  int32_t size = 0;
  for (int32_t c = 0; c < TL_NUM_REGISTER_CLASSES; c++)
    for (size_t bit = (size_t)live->first[c], end = bit + (size_t)live->counts[c]; bit < end;)
      if (bit % 64 == 0 && bit + 64 <= end) {
        size += classes[c].size * __builtin_popcountll(set[bit / 64]);
        bit += 64;
      } else {
        size += has(set, bit++) ? classes[c].size : 0;
      }
  return size;
}

// The set before the instruction from the one behind it.
static void step_back(const tl_liveness *live, uint64_t *set, const tl_ptx_instruction *at) {
  for (size_t i = at->defs; i < at->uses && !at->keeps; i++) {
    size_t bit = tl_ptx_register_bit(live, &live->operands.items[i]);
    set[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
  }
  for (size_t i = at->uses; i < at->end; i++) {
    size_t bit = tl_ptx_register_bit(live, &live->operands.items[i]);
    if (!has(live->is_free, bit)) set[bit / 64] |= UINT64_C(1) << (bit % 64);
  }
}

static size_t find_label(const tl_liveness *live, tl_str label) {
  size_t at = 0;
  while (at < live->blocks.len && !tl_str_equal(live->blocks.items[at].label, label)) at++;
  return at;
}

static void live_out(const tl_liveness *live, size_t number, const size_t *targets, uint64_t *set) {
  memset(set, 0, live->words * sizeof *set);
  const tl_ptx_block *at = &live->blocks.items[number];
  size_t next[] = {at->falls && number + 1 < live->blocks.len ? number + 1 : SIZE_MAX,
                   at->target.len ? targets[number] : SIZE_MAX};
  for (int i = 0; i < 2; i++)
    for (size_t w = 0; next[i] != SIZE_MAX && w < live->words; w++) set[w] |= live->live_in[next[i] * live->words + w];
}

static int32_t solve(tl_liveness *live, const size_t *targets, uint64_t *set) {
  int32_t most = 0;
  for (bool changed = true, last = false; changed || !last;) {
    last = !changed;
    changed = false;
    for (size_t b = live->blocks.len; b-- > 0;) {
      live_out(live, b, targets, set);
      for (size_t i = live->blocks.items[b].to; i-- > live->blocks.items[b].from;) {
        int32_t size = last ? size_of(live, set) : 0;
        if (size > most) most = size;
        step_back(live, set, &live->instructions.items[i]);
      }
      uint64_t *in = live->live_in + b * live->words;
      if (memcmp(in, set, live->words * sizeof *set) == 0) continue;
      memcpy(in, set, live->words * sizeof *set);
      changed = true;
    }
  }
  return most;
}

// What parameters bring is read where it is used, by any instruction (SASS: constant banks).
static void find_free(tl_liveness *live, tl_str body) {
  static const char param[] = "ld.param.", cast[] = "cvta.to.";
  for (int pass = 0; pass < 2; pass++)
    for (const char *at = body.data, *end = body.data + body.len; at < end; at++) {
      if (!starts_with(at, end, pass ? cast : param)) continue;
      const char *stop = memchr(at, ';', (size_t)(end - at));
      size_t before = live->operands.len;
      read_operands(live, at, stop ? stop : end);
      size_t count = live->operands.len - before;
      const tl_ptx_operand *found = live->operands.items + before;
      bool is_free = pass == 0 || (count == 2 && has(live->is_free, tl_ptx_register_bit(live, &found[1])));
      for (size_t i = 0; i < (pass ? 1 : count) && is_free; i++) {
        size_t bit = tl_ptx_register_bit(live, &found[i]);
        live->is_free[bit / 64] |= UINT64_C(1) << (bit % 64);
      }
      live->operands.len = before;
    }
}

// `by_need`: in the order of registers_order.c.
static int32_t count_registers(tl_liveness *live, tl_str body, bool by_need) {
  int32_t bits = 0;
  for (int32_t c = 0; c < TL_NUM_REGISTER_CLASSES; c++) {
    live->first[c] = bits;
    bits += live->counts[c];
  }
  live->words = (size_t)bits / 64 + 1;
  if (live->words * 64 * live->blocks.len > MAX_SET_BITS) return 0;
  size_t *targets = tl_xcalloc(live->blocks.len, sizeof *targets);
  for (size_t b = 0; b < live->blocks.len; b++) {
    if (live->blocks.items[b].target.len == 0) continue;
    targets[b] = find_label(live, live->blocks.items[b].target);
    live->unknown |= targets[b] == live->blocks.len;
  }
  live->live_in = tl_xcalloc(live->words * live->blocks.len, sizeof *live->live_in);
  live->is_free = tl_xcalloc(live->words, sizeof *live->is_free);
  uint64_t *set = tl_xcalloc(live->words, sizeof *set);
  find_free(live, body);
  if (by_need) tl_ptx_order_by_need(live);
  int32_t most = live->unknown ? 0 : solve(live, targets, set);
  free(set);
  free(targets);
  return most;
}

static int32_t needed_registers(tl_str body, bool by_need, bool *out_calls) {
  tl_liveness live = {0};
  begin_block(&live, (tl_str){0});
  for (const char *at = body.data, *end = body.data + body.len; at < end;) {
    const char *line = memchr(at, '\n', (size_t)(end - at));
    read_line(&live, at, line ? line : end);
    at = line ? line + 1 : end;
  }
  current_block(&live)->to = live.instructions.len;
  int32_t most = live.unknown ? 0 : count_registers(&live, body, by_need);
  *out_calls = live.calls;
  tl_vec_fini(&live.operands);
  tl_vec_fini(&live.instructions);
  tl_vec_fini(&live.blocks);
  free(live.live_in);
  free(live.is_free);
  return most;
}

int32_t tl_ptx_live_registers(tl_str body) {
  bool calls;
  return needed_registers(body, false, &calls);
}

int32_t tl_ptx_live_registers_by_need(tl_str body) {
  bool calls;
  return needed_registers(body, true, &calls);
}

// ---- blocks

static const char *find_text(const char *from, const char *end, const char *what) {
  const char *found = memmem(from, (size_t)(end - from), what, strlen(what));
  return found ? found : end;
}

void tl_ptx_fit_blocks(tl_str ptx, tl_strbuf *out) {
  static const char directive[] = "\n.minnctapersm ", threads_directive[] = "\n.reqntid ";
  const char *at = ptx.data, *end = ptx.data + ptx.len;
  while (at < end) {
    const char *entry = find_text(at, end, ".entry "), *body = find_text(entry, end, "\n{");
    const char *body_end = find_text(body, end, "\n}\n"), *wanted = find_text(entry, body, directive);
    const char *sizes = find_text(entry, body, threads_directive);
    if (wanted == body || sizes == body) {
      tl_strbuf_append(out, (tl_str){at, (size_t)(body_end - at)});
      at = body_end;
      continue;
    }
    char *behind;
    long blocks = strtol(wanted + strlen(directive), &behind, 10);
    int32_t threads = (int32_t)strtol(sizes + strlen(threads_directive), NULL, 10);
    bool calls;
    tl_str text = {body, (size_t)(body_end - body)};
    int32_t needed = needed_registers(text, false, &calls), limit = tl_target_registers(threads, blocks);
    needed += SPARE + (calls ? SPARE_OF_CALLS : 0);
    int32_t least = needed > limit ? needed_registers(text, true, &calls) : needed;
    if (needed > limit) least += SPARE + SPARE_OF_ORDER + (calls ? SPARE_OF_CALLS : 0);
    bool is_left = needed > limit && least <= limit;
    bool is_near = blocks > 1 && least <= limit * 4;
    // Where a thread has all that the hardware gives it, fewer blocks leave it no more.
    for (; blocks > 1; blocks--) {
      limit = tl_target_registers(threads, blocks);
      if (needed <= limit || limit == TL_MAX_REGISTERS_PER_THREAD) break;
    }
    // Told that one block is enough ptxas takes what there is to load ahead; left to itself it may find room for two.
    is_left |= blocks == 1 && is_near;
    tl_strbuf_append(out, (tl_str){at, (size_t)(wanted - at)});
    if (!is_left) tl_strbuf_appendf(out, "%s%ld", directive, blocks);
    tl_strbuf_append(out, (tl_str){behind, (size_t)(body_end - behind)});
    at = body_end;
  }
}
