// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "llvm_backend/device/wgmma.h"

#include <string.h>

static const struct {
  const char *name;
  int bits;
} types[TL_WGMMA_NUM_TYPES] = {
    [TL_WGMMA_F16] = {"f16", 16},  [TL_WGMMA_BF16] = {"bf16", 16}, [TL_WGMMA_TF32] = {"tf32", 32},
    [TL_WGMMA_E4M3] = {"e4m3", 8}, [TL_WGMMA_E5M2] = {"e5m2", 8},  [TL_WGMMA_S8] = {"s8", 8},
    [TL_WGMMA_U8] = {"u8", 8},
};

static const struct {
  const char *name;
  char letter;      // in signatures
  char constraint;  // of LLVM's inline assembly
} registers[TL_WGMMA_NUM_REGISTERS] = {
    [TL_WGMMA_SUM_F32] = {"f32", 'f', 'f'},
    [TL_WGMMA_SUM_F16] = {"f16", 'i', 'r'},
    [TL_WGMMA_SUM_S32] = {"s32", 'i', 'r'},
    [TL_WGMMA_OPERAND_B32] = {"b32", 'i', 'r'},
};

static bool is_integer(tl_wgmma_type type) {
  return type == TL_WGMMA_S8 || type == TL_WGMMA_U8;
}

static bool is_f8(tl_wgmma_type type) {
  return type == TL_WGMMA_E4M3 || type == TL_WGMMA_E5M2;
}

// PTX ISA, wgmma.mma_async, the tables of shapes and types.
const char *tl_wgmma_form_problem(const tl_wgmma_form *form) {
  bool integers = is_integer(form->a), is_16_bit = types[form->a].bits == 16;
  if (form->a != form->b && !(integers && is_integer(form->b)) && !(is_f8(form->a) && is_f8(form->b)))
    return "A and B have types that do not go together";
  if (form->n < 8 || form->n > TL_WGMMA_MAX_N || form->n % 8) return "n is no multiple of 8 from 8 to 256";
  if (integers && form->n != 8 && form->n != 24 && form->n % 16) return "n of integers is 8, 24 or a multiple of 16";
  if (integers != (form->sum == TL_WGMMA_SUM_S32)) return "s32 sums belong to integers";
  if (form->sum == TL_WGMMA_SUM_F16 && form->a != TL_WGMMA_F16 && !is_f8(form->a))
    return "f16 sums belong to f16 and 8-bit floats";
  if (form->sum == TL_WGMMA_OPERAND_B32) return "b32 is no type of sums";
  if ((form->transpose_a || form->transpose_b) && !is_16_bit) return "only 16-bit types can be M- or N-major";
  if (form->transpose_a && form->a_in_registers) return "A in registers has no other major";
  if ((form->negate_a || form->negate_b) && integers) return "integers cannot be negated";
  if (form->saturate && !integers) return "only s32 sums saturate";
  return NULL;
}

static const char *wgmma_wait_problem(const tl_wgmma_wait *wait) {
  if (wait->pending < 0 || wait->pending > 7) return "0 to 7 groups may stay in flight";
  if (wait->num_runs < 1 || wait->num_runs > TL_WGMMA_MAX_RUNS) return "a wait pins 1 to 8 runs of registers";
  for (int i = 0; i < wait->num_runs; i++) {
    if (wait->runs[i].count < 1) return "a run has at least one register";
    if (i > 0 && wait->runs[i].type == wait->runs[i - 1].type) return "two runs of one type are one";
    if (i > 0 && wait->runs[i - 1].type == TL_WGMMA_OPERAND_B32) return "operands come behind sums";
  }
  if (tl_wgmma_wait_registers(wait) > TL_WGMMA_MAX_PINNED) return "a wait pins at most 240 registers";
  return NULL;
}

int tl_wgmma_type_bits(tl_wgmma_type type) {
  return types[type].bits;
}

int tl_wgmma_k(const tl_wgmma_form *form) {
  return TL_WGMMA_K_BYTES * 8 / types[form->a].bits;
}

// ptxas wants 8.4 for "WGMMA with mixed integer types"; the rest came with sm_90a.
int tl_wgmma_min_ptx(const tl_wgmma_form *form) {
  return is_integer(form->a) && form->a != form->b ? 84 : 80;
}

int tl_wgmma_sum_registers(const tl_wgmma_form *form) {
  return form->sum == TL_WGMMA_SUM_F16 ? form->n / 4 : form->n / 2;
}

int tl_wgmma_wait_registers(const tl_wgmma_wait *wait) {
  int total = 0;
  for (int i = 0; i < wait->num_runs && total <= TL_WGMMA_MAX_PINNED; i++) total += wait->runs[i].count;
  return total;
}

int tl_wgmma_wait_results(const tl_wgmma_wait *wait) {
  const tl_wgmma_run *last = &wait->runs[wait->num_runs - 1];
  return tl_wgmma_wait_registers(wait) - (last->type == TL_WGMMA_OPERAND_B32 ? last->count : 0);
}

// ---- names

#define FORM_PREFIX TL_WGMMA_PREFIX
#define WAIT_PREFIX TL_WGMMA_PREFIX "wait.n"

// The optional parts of a name in their order.
static const struct {
  const char *text;
  size_t offset;  // of the bool in the form
} flags[] = {
    {".ta", offsetof(tl_wgmma_form, transpose_a)}, {".tb", offsetof(tl_wgmma_form, transpose_b)},
    {".na", offsetof(tl_wgmma_form, negate_a)},    {".nb", offsetof(tl_wgmma_form, negate_b)},
    {".sat", offsetof(tl_wgmma_form, saturate)},
};
enum { NUM_FLAGS = sizeof flags / sizeof flags[0] };

void tl_wgmma_form_name(const tl_wgmma_form *form, tl_strbuf *out) {
  tl_strbuf_appendf(out, FORM_PREFIX "m64n%dk%d.%s.%s.%s.%s", form->n, tl_wgmma_k(form), registers[form->sum].name,
                    types[form->a].name, types[form->b].name, form->a_in_registers ? "rs" : "ss");
  for (int i = 0; i < NUM_FLAGS; i++)
    if (*(const bool *)((const char *)form + flags[i].offset)) tl_strbuf_append_c(out, flags[i].text);
}

void tl_wgmma_wait_name(const tl_wgmma_wait *wait, tl_strbuf *out) {
  tl_strbuf_appendf(out, WAIT_PREFIX "%d", wait->pending);
  for (int i = 0; i < wait->num_runs; i++)
    tl_strbuf_appendf(out, ".%dx%s", wait->runs[i].count, registers[wait->runs[i].type].name);
}

static bool take(tl_str *text, const char *prefix) {
  if (!tl_str_starts_with(*text, prefix)) return false;
  *text = tl_str_sub(*text, strlen(prefix), text->len);
  return true;
}

// At most three digits without leading zeros; -1 when there are none.
static int take_number(tl_str *text) {
  int value = 0, digits = 0;
  while ((size_t)digits < text->len && digits < 3 && text->data[digits] >= '0' && text->data[digits] <= '9')
    value = value * 10 + (text->data[digits++] - '0');
  if (digits == 0 || (digits > 1 && text->data[0] == '0')) return -1;
  *text = tl_str_sub(*text, (size_t)digits, text->len);
  return value;
}

// What stands up to the next point or the end.
static tl_str take_word(tl_str *text) {
  size_t end = tl_str_find(*text, '.');
  if (end > text->len) end = text->len;
  tl_str word = tl_str_sub(*text, 0, end);
  *text = tl_str_sub(*text, end, text->len);
  return word;
}

static bool take_type(tl_str *text, tl_wgmma_type *out) {
  tl_str word = take_word(text);
  for (int i = 0; i < TL_WGMMA_NUM_TYPES; i++) {
    if (!tl_str_is(word, types[i].name)) continue;
    *out = (tl_wgmma_type)i;
    return true;
  }
  return false;
}

static bool take_register(tl_str *text, tl_wgmma_register *out) {
  tl_str word = take_word(text);
  for (int i = 0; i < TL_WGMMA_NUM_REGISTERS; i++) {
    if (!tl_str_is(word, registers[i].name)) continue;
    *out = (tl_wgmma_register)i;
    return true;
  }
  return false;
}

bool tl_wgmma_form_parse(tl_str name, tl_wgmma_form *out) {
  tl_wgmma_form form = {0};
  if (!take(&name, FORM_PREFIX "m64n")) return false;
  form.n = take_number(&name);
  if (!take(&name, "k")) return false;
  int k = take_number(&name);
  if (!take(&name, ".") || !take_register(&name, &form.sum) || !take(&name, ".") || !take_type(&name, &form.a) ||
      !take(&name, ".") || !take_type(&name, &form.b))
    return false;
  if (take(&name, ".rs"))
    form.a_in_registers = true;
  else if (!take(&name, ".ss"))
    return false;
  for (int i = 0; i < NUM_FLAGS; i++) *(bool *)((char *)&form + flags[i].offset) = take(&name, flags[i].text);
  if (name.len || k != tl_wgmma_k(&form) || tl_wgmma_form_problem(&form)) return false;
  *out = form;
  return true;
}

bool tl_wgmma_wait_parse(tl_str name, tl_wgmma_wait *out) {
  tl_wgmma_wait wait = {0};
  if (!take(&name, WAIT_PREFIX)) return false;
  wait.pending = take_number(&name);
  while (name.len) {
    if (wait.num_runs == TL_WGMMA_MAX_RUNS || !take(&name, ".")) return false;
    tl_wgmma_run *run = &wait.runs[wait.num_runs++];
    run->count = take_number(&name);
    if (!take(&name, "x") || !take_register(&name, &run->type)) return false;
  }
  if (wgmma_wait_problem(&wait)) return false;
  *out = wait;
  return true;
}

// ---- texts

// "{$4, $5, $6, $7}"
static void append_list(tl_strbuf *out, int first, int count) {
  for (int i = 0; i < count; i++) tl_strbuf_appendf(out, "%s$%d", i ? ", " : "{", first + i);
  tl_strbuf_append_char(out, '}');
}

static void append_letters(tl_strbuf *out, char letter, int count) {
  for (int i = 0; i < count; i++) tl_strbuf_append_char(out, letter);
}

static void append_constraint(tl_strbuf *out, const char *constraint) {
  tl_strbuf_appendf(out, "%s%s", out->len ? "," : "", constraint);
}

static void append_outputs(tl_strbuf *out, tl_wgmma_register type, int count) {
  char constraint[] = {'=', registers[type].constraint, '\0'};
  for (int i = 0; i < count; i++) append_constraint(out, constraint);
}

// Inputs that share the registers of the outputs with the same numbers.
static void append_tied(tl_strbuf *out, int count) {
  for (int i = 0; i < count; i++) tl_strbuf_appendf(out, ",%d", i);
}

static void make_form(const tl_wgmma_form *form, tl_wgmma_op *op) {
  int n = tl_wgmma_sum_registers(form), num_a = form->a_in_registers ? TL_WGMMA_A_REGISTERS : 1;
  char letter = registers[form->sum].letter;
  append_letters(&op->signature, letter, n);
  tl_strbuf_append_char(&op->signature, '(');
  append_letters(&op->signature, letter, n);
  append_letters(&op->signature, form->a_in_registers ? 'i' : 'l', num_a);
  tl_strbuf_append_c(&op->signature, "lb)");
  append_outputs(&op->constraints, form->sum, n);
  append_tied(&op->constraints, n);
  for (int i = 0; i < num_a; i++) append_constraint(&op->constraints, form->a_in_registers ? "r" : "l");
  append_constraint(&op->constraints, "l");
  append_constraint(&op->constraints, "b");

  tl_strbuf *text = &op->asm_text;
  int at = 2 * n;
  tl_strbuf_appendf(text, "wgmma.mma_async.sync.aligned.m64n%dk%d%s.%s.%s.%s ", form->n, tl_wgmma_k(form),
                    form->saturate ? ".satfinite" : "", registers[form->sum].name, types[form->a].name,
                    types[form->b].name);
  append_list(text, 0, n);
  tl_strbuf_append_c(text, ", ");
  if (form->a_in_registers)
    append_list(text, at, num_a);
  else
    tl_strbuf_appendf(text, "$%d", at);
  at += num_a;
  tl_strbuf_appendf(text, ", $%d, $%d", at, at + 1);
  if (!is_integer(form->a)) tl_strbuf_appendf(text, ", %d, %d", form->negate_a ? -1 : 1, form->negate_b ? -1 : 1);
  if (types[form->a].bits == 16) {
    if (!form->a_in_registers) tl_strbuf_appendf(text, ", %d", form->transpose_a);
    tl_strbuf_appendf(text, ", %d", form->transpose_b);
  }
  tl_strbuf_append_char(text, ';');
}

static void make_wait(const tl_wgmma_wait *wait, tl_wgmma_op *op) {
  int results = tl_wgmma_wait_results(wait);
  for (int i = 0; i < wait->num_runs && wait->runs[i].type != TL_WGMMA_OPERAND_B32; i++) {
    append_letters(&op->signature, registers[wait->runs[i].type].letter, wait->runs[i].count);
    append_outputs(&op->constraints, wait->runs[i].type, wait->runs[i].count);
  }
  append_tied(&op->constraints, results);
  for (int i = results; i < tl_wgmma_wait_registers(wait); i++) append_constraint(&op->constraints, "r");
  tl_strbuf_append_char(&op->signature, '(');
  for (int i = 0; i < wait->num_runs; i++)
    append_letters(&op->signature, registers[wait->runs[i].type].letter, wait->runs[i].count);
  tl_strbuf_append_char(&op->signature, ')');
  tl_strbuf_appendf(&op->asm_text, "wgmma.wait_group.sync.aligned %d;", wait->pending);
}

bool tl_wgmma_op_make(tl_str name, tl_wgmma_op *out) {
  tl_wgmma_form form;
  tl_wgmma_wait wait;
  bool is_form = tl_wgmma_form_parse(name, &form);
  if (!is_form && !tl_wgmma_wait_parse(name, &wait)) return false;
  memset(out, 0, sizeof *out);
  tl_strbuf_append(&out->name, name);
  if (is_form)
    make_form(&form, out);
  else
    make_wait(&wait, out);
  out->row = (tl_device_op){.name = tl_strbuf_c(&out->name),
                            .signature = tl_strbuf_c(&out->signature),
                            .family = TL_DEVICE_FAMILY_WGMMA,
                            .scope = TL_DEVICE_SCOPE_WARPGROUP,
                            .effect = TL_DEVICE_EFFECT_ASYNC,
                            .min_sm = 90,
                            .min_ptx = is_form ? tl_wgmma_min_ptx(&form) : 80,
                            .asm_text = tl_strbuf_c(&out->asm_text),
                            .asm_constraints = tl_strbuf_c(&out->constraints),
                            .section = is_form ? "wgmma.mma_async" : "wgmma.wait_group"};
  return true;
}

void tl_wgmma_op_fini(tl_wgmma_op *op) {
  tl_strbuf_fini(&op->name);
  tl_strbuf_fini(&op->signature);
  tl_strbuf_fini(&op->asm_text);
  tl_strbuf_fini(&op->constraints);
}
