// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions that are device ops: names are made from the row's argument, operands go where the signature wants them.
#include <stdlib.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/ptx/translator.h"

static tl_ptx_type type_of_letter(char letter) {
  switch (letter) {
    case 'b':
    case 'B':
      return TL_PTX_PRED;
    case 's':
      return TL_PTX_B16;
    case 'i':
    case 'I':
      return TL_PTX_B32;
    case 'l':
    case 'L':
      return TL_PTX_B64;
    case 'e':
      return TL_PTX_F16;
    case 'y':
      return TL_PTX_BF16;
    case 'f':
      return TL_PTX_F32;
    case 'd':
      return TL_PTX_F64;
    case 'E':
      return TL_PTX_F16X2;
    case 'Y':
      return TL_PTX_BF16X2;
    default:
      return TL_PTX_NONE;
  }
}

static ptx_window window_of_letter(char letter) {
  return letter == 'g' ? PTX_GLOBAL : letter == 'p' ? PTX_SHARED : letter == 'P' ? PTX_CLUSTER : PTX_GENERIC;
}

static bool is_pointer(char letter) {
  return strchr("gpPG", letter) != NULL;
}

// ---- from operands to a signature

// The name of a row's op: "$1" is a word, "*2" the value of an operand.
static void append_name(tl_strbuf *out, const tl_ptx_statement *s, tl_str pattern) {
  tl_str terms[TL_PTX_MAX_TERMS] = {0};
  tl_ptx_match(s->row, s, terms);
  for (size_t i = 0; i < pattern.len; i++) {
    char c = pattern.data[i];
    if (c == '$' && i + 1 < pattern.len)
      tl_strbuf_append(out, terms[pattern.data[++i] - '0']);
    else if (c == '*' && i + 1 < pattern.len)
      tl_strbuf_appendf(out, "%llu", (unsigned long long)s->operands[pattern.data[++i] - '0'].value);
    else
      tl_strbuf_append_char(out, c);
  }
}

// One operand as a letter wants it. A generic address of the instruction is one also where the op wants shared memory.
static ptx_value operand_as(ptx_translator *t, const tl_ptx_statement *s, const tl_ptx_operand *operand, char letter) {
  if (!is_pointer(letter)) {
    return tl_ptx_read_as(t, operand, type_of_letter(letter));
  }
  ptx_window window = window_of_letter(letter);
  bool is_generic = tl_ptx_window_of(s) == PTX_GENERIC;
  ptx_value pointer;
  if (operand->kind == TL_PTX_ADDRESS) {
    pointer = tl_ptx_pointer(t, operand, is_generic ? PTX_GENERIC : window, 0);
  } else {
    ptx_value address = tl_ptx_read(t, operand);
    if (tl_ptx_type_bits(operand->type) == 32) address = tl_ptx_emit(t, "zext i32 %s to i64", address.text);
    pointer = tl_ptx_pointer_of(t, address, is_generic ? PTX_GENERIC : window);
  }
  // Only the name of the space is different: code of the host has one.
  const char *text = strrchr(pointer.text, ' ') + 1;
  bool is_same = !strncmp(pointer.text, tl_emu_letter_type(letter), (size_t)(text - pointer.text - 1)) &&
                 tl_emu_letter_type(letter)[text - pointer.text - 1] == '\0';
  if (is_same) return tl_ptx_value("%s", text);
  return tl_ptx_emit(t, "addrspacecast %s to %s", pointer.text, tl_emu_letter_type(letter));
}

// Appends an operand, or its items, for the letters that come next.
static void push_operand(ptx_translator *t, const tl_ptx_statement *s, const tl_ptx_operand *operand,
                         const char *letters, ptx_args *args) {
  uint32_t n = operand->kind == TL_PTX_VECTOR ? operand->num_items : 1;
  for (uint32_t i = 0; i < n; i++) {
    const tl_ptx_operand *item = operand->kind == TL_PTX_VECTOR ? &operand->items[i] : operand;
    if (args->n >= strcspn(letters, ")")) {
      args->n++;  // the call says how many there are
      return;
    }
    args->items[args->n] = operand_as(t, s, item, letters[args->n]);
    args->n++;
  }
}

static void push_constant(const char *letters, int value, ptx_args *args) {
  bool is_flag = letters[args->n] == 'B';
  args->items[args->n++] = is_flag ? tl_ptx_value(value ? "true" : "false") : tl_ptx_value("%d", value);
}

// The operands in the order of the argument's list; without one, all that are not written.
static void push_operands(ptx_translator *t, const tl_ptx_statement *s, const char *order, uint32_t first,
                          const char *letters, ptx_args *args) {
  while (*order == ' ') order++;
  for (uint32_t i = first; !*order && i < s->num_operands; i++) push_operand(t, s, &s->operands[i], letters, args);
  while (*order) {
    if (*order == '#')
      push_constant(letters, order[1] - '0', args);
    else
      push_operand(t, s, &s->operands[*order - '0'], letters, args);
    while (*order && *order != ' ') order++;
    while (*order == ' ') order++;
  }
}

static void write_result(ptx_translator *t, const tl_ptx_operand *operand, char letter, ptx_value value) {
  if (operand->kind == TL_PTX_SINK) return;
  if (is_pointer(letter)) {
    value = tl_ptx_address_of(t, value, window_of_letter(letter));
    if (tl_ptx_type_bits(operand->type) == 32) value = tl_ptx_emit(t, "trunc i64 %s to i32", value.text);
    tl_ptx_write(t, operand, value);
    return;
  }
  tl_ptx_write_as(t, operand, type_of_letter(letter), value);
}

static void write_results(ptx_translator *t, const tl_ptx_statement *s, const char *signature,
                          const ptx_args *results) {
  const tl_ptx_operand *first = &s->operands[0];
  bool is_list = first->kind == TL_PTX_VECTOR || first->kind == TL_PTX_PAIR;
  if (is_list && first->num_items != results->n) {
    tl_ptx_unsupported(t, first->loc, "%u registers are written, the instruction has %u results", first->num_items,
                       results->n);
    return;
  }
  for (unsigned i = 0; i < results->n; i++)
    write_result(t, is_list ? &first->items[i] : first, signature[i], results->items[i]);
}

// Calls the op that `name` says with the operands in the order of `order`.
static void run_op(ptx_translator *t, const tl_ptx_statement *s, const char *name, const char *order) {
  const tl_emu_binding *binding = tl_emu_find_binding(name);
  if (!binding) {
    tl_ptx_unsupported(t, s->loc, "the emulator has no binding for '%s'", name);
    return;
  }
  ptx_args *args = tl_xcalloc(2, sizeof *args), *results = args + 1;
  bool has_result = binding->signature[0] != '(';
  push_operands(t, s, order, has_result, strchr(binding->signature, '(') + 1, args);
  if (!t->failed) tl_ptx_call_signature(t, name, binding->signature, args, results);
  if (!t->failed && has_result) write_results(t, s, binding->signature, results);
  free(args);
}

void tl_ptx_run_op(ptx_translator *t, const tl_ptx_statement *s, const char *name) {
  run_op(t, s, name, "");
}

void tl_ptx_rule_DEVICE(ptx_translator *t, const tl_ptx_statement *s) {
  tl_str argument = tl_str_from(s->row->argument);
  size_t blank = tl_str_find(argument, ' ');
  tl_strbuf name = {0};
  append_name(&name, s, tl_str_sub(argument, 0, blank));
  run_op(t, s, tl_strbuf_c(&name), blank == SIZE_MAX ? "" : argument.data + blank);
  tl_strbuf_fini(&name);
}

void tl_ptx_rule_MMA(ptx_translator *t, const tl_ptx_statement *s) {
  tl_strbuf name = {0};
  tl_strbuf_append_c(&name, "llvm.nvvm.mma.");
  append_name(&name, s, tl_str_from(s->row->argument));
  run_op(t, s, tl_strbuf_c(&name), "");
  tl_strbuf_fini(&name);
}

// bar and barrier: "sync", "arrive", "red"; aligned unless it is barrier without .aligned.
void tl_ptx_rule_BARRIER(ptx_translator *t, const tl_ptx_statement *s) {
  bool aligned = tl_str_is(s->words[0], "bar") || tl_ptx_has(s, "aligned");
  bool is_red = !strcmp(s->row->argument, "red");
  uint32_t plain = is_red ? 3 : 1;  // operands without a count
  tl_strbuf name = {0};
  tl_strbuf_appendf(&name, "llvm.nvvm.barrier.cta.%s", s->row->argument);
  if (is_red) tl_strbuf_appendf(&name, ".%s", tl_ptx_has(s, "and") ? "and" : tl_ptx_has(s, "or") ? "or" : "popc");
  tl_strbuf_appendf(&name, "%s.%s", aligned ? ".aligned" : "", s->num_operands > plain ? "count" : "all");
  run_op(t, s, tl_strbuf_c(&name), "");
  tl_strbuf_fini(&name);
}

// PTX ISA, mbarrier.*: scope .cta and the block's own memory unless said.
void tl_ptx_rule_MBARRIER(ptx_translator *t, const tl_ptx_statement *s) {
  tl_str op = s->words[1];
  bool is_cluster = tl_ptx_has(s, "shared::cluster");
  bool is_arrival = tl_str_starts_with(op, "arrive"), is_wait = tl_str_ends_with(op, "wait");
  tl_strbuf name = {0};
  tl_strbuf_append_c(&name, "llvm.nvvm.mbarrier.");
  for (size_t i = 0; i < op.len; i++) tl_strbuf_append_char(&name, op.data[i] == '_' ? '.' : op.data[i]);
  if (is_arrival && tl_ptx_has(s, "expect_tx")) tl_strbuf_append_c(&name, ".expect.tx");
  if (tl_ptx_has(s, "parity")) tl_strbuf_append_c(&name, ".parity");
  if (is_wait && s->num_operands == 4) tl_strbuf_append_c(&name, ".tl");
  if ((is_arrival || is_wait) && tl_ptx_has(s, "relaxed")) tl_strbuf_append_c(&name, ".relaxed");
  tl_strbuf_appendf(&name, ".scope.%s.space.%s", tl_ptx_has(s, "cluster") ? "cluster" : "cta",
                    is_cluster ? "cluster" : "cta");
  const char *order = !is_arrival ? "" : s->num_operands == 2 ? "1 #1" : "1 2";
  if (is_arrival && is_cluster && s->operands[0].kind != TL_PTX_SINK)
    tl_ptx_unsupported(t, s->operands[0].loc, "an arrival at another block gives no state: '_' is expected here");
  else
    run_op(t, s, tl_strbuf_c(&name), order);
  tl_strbuf_fini(&name);
}

// ---- tensor copies

// The value of an operand if the instruction has one, else 0, then whether it is used.
static const tl_ptx_operand *take_operand(const tl_ptx_statement *s, uint32_t *at, bool wanted) {
  return wanted && *at < s->num_operands ? &s->operands[(*at)++] : NULL;
}

static void push_optional(ptx_translator *t, const tl_ptx_statement *s, const tl_ptx_operand *operand,
                          const char *letters, ptx_args *args) {
  if (operand)
    push_operand(t, s, operand, letters, args);
  else
    args->items[args->n++] = tl_ptx_value("0");
}

static void push_flag(ptx_args *args, bool value) {
  args->items[args->n++] = tl_ptx_value(value ? "true" : "false");
}

// PTX: [destination,] [map, {coordinates}], [mbarrier or source], {offsets}, mask, policy. The op: destination,
// mbarrier (or source), map, coordinates, offsets, then mask, policy and whether they are used (device_ops.def).
static void tensor_operands(ptx_translator *t, const tl_ptx_statement *s, const char *letters, ptx_args *args) {
  bool is_load = tl_str_starts_with(tl_str_from(s->row->argument), "g2s"), is_prefetch = tl_ptx_has(s, "prefetch");
  uint32_t at = is_load;
  const tl_ptx_operand *map = &s->operands[at++];
  if (is_load) push_operand(t, s, &s->operands[0], letters, args);
  if (!is_prefetch) push_operand(t, s, &s->operands[at++], letters, args);
  tl_ptx_operand base = *map;
  base.num_items = 0;
  ptx_value pointer = tl_ptx_pointer(t, &base, PTX_GENERIC, 0);
  args->items[args->n++] = tl_ptx_value("%s", strrchr(pointer.text, ' ') + 1);
  push_operand(t, s, &map->items[0], letters, args);
  bool has_offsets = tl_ptx_has(s, "im2col"), is_cluster = tl_ptx_has(s, "shared::cluster");
  bool has_mask = tl_ptx_has(s, "multicast::cluster"), has_policy = tl_ptx_has(s, "L2::cache_hint");
  if (has_offsets) push_operand(t, s, take_operand(s, &at, true), letters, args);
  if (is_cluster) push_optional(t, s, take_operand(s, &at, has_mask), letters, args);
  push_optional(t, s, take_operand(s, &at, has_policy), letters, args);
  if (is_cluster) push_flag(args, has_mask);
  push_flag(args, has_policy);
  if (is_cluster) args->items[args->n++] = tl_ptx_value("0");  // cta_group
}

void tl_ptx_rule_TMA(ptx_translator *t, const tl_ptx_statement *s) {
  tl_strbuf name = {0};
  tl_strbuf_append_c(&name, "llvm.nvvm.cp.async.bulk.tensor.");
  append_name(&name, s, tl_str_from(s->row->argument));
  bool is_columns = tl_ptx_has(s, "im2col") || tl_ptx_has(s, "im2col_no_offs");
  const char *rank = "1d";
  static const char *const ranks[] = {"1d", "2d", "3d", "4d", "5d"};
  for (int i = 0; i < 5; i++)
    if (tl_ptx_has(s, ranks[i])) rank = ranks[i];
  tl_strbuf_appendf(&name, ".%s.%s", is_columns ? "im2col" : "tile", rank);
  const tl_emu_binding *binding = tl_emu_find_binding(tl_strbuf_c(&name));
  if (!binding) {
    tl_ptx_unsupported(t, s->loc, "the emulator has no binding for '%s'", tl_strbuf_c(&name));
  } else {
    ptx_args *args = tl_xcalloc(1, sizeof *args);
    tensor_operands(t, s, strchr(binding->signature, '(') + 1, args);
    if (!t->failed) tl_ptx_call_signature(t, tl_strbuf_c(&name), binding->signature, args, NULL);
    free(args);
  }
  tl_strbuf_fini(&name);
}
