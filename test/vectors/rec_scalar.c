// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar arithmetic, comparisons, bits and conversions: every form of the table (rec_forms.h), forty to a kernel. Forms
// of one kernel take the same operands; approximate functions have a vector of their own.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rec_forms.h"
#include "record.h"

enum { THREADS = 64, MAX_FORMS = 12288, MAX_RESULTS = 48, MAX_BODY = 8192 };

typedef struct scalar {
  rec_form form;
  char key[96];  // types of the operands that are read
  int batch;     // its kernel
} scalar;

static scalar *scalars;
static int num_scalars;

// ---- which forms the PTX ISA has, where the table's terms depend on each other

static bool is_float(const char *type) {
  return type[0] == 'f' || !strncmp(type, "bf", 2);
}

static int bits_of(const char *type) {
  return atoi(type + strcspn(type, "0123456789"));
}

static bool is_one_of(const char *word, const char *list) {
  size_t length = strlen(word);
  for (const char *at = list; (at = strstr(at, word)); at++)
    if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
  return false;
}

// PTX ISA, setp: which comparisons a type has.
static bool has_comparison(const char *word, const char *type) {
  if (is_one_of(word, "eq ne")) return true;
  if (is_float(type)) return !is_one_of(word, "lo ls hi hs");
  if (is_one_of(word, "lo ls hi hs")) return type[0] == 'u';
  return type[0] != 'b' && is_one_of(word, "lt le gt ge");
}

// The first operand that is read.
static const char *source_of(const rec_form *f) {
  for (int i = 0; i < f->num_operands; i++)
    if (!f->operands[i].is_result) return f->operands[i].type;
  return "";
}

// PTX ISA, cvt: of integers, .sat is there where the result cannot hold them all.
static bool is_integer_conversion(const rec_form *f, const char *to, const char *from) {
  bool holds = to[0] == from[0] ? bits_of(to) >= bits_of(from) : to[0] == 's' && bits_of(to) > bits_of(from);
  return !rec_has(f, "ftz") && !(rec_has(f, "sat") && holds);
}

// PTX ISA, cvt: where a rounding modifier must be, may be, and must not be; .ftz belongs to f32, .sat not to bf16.
static bool is_conversion(const rec_form *f) {
  const char *to = f->operands[0].type, *from = source_of(f), *round = f->words[0];
  if (rec_has(f, "relu") || rec_has(f, "pack") || strstr(to, "x2") || !strcmp(f->words[1], "tf32")) return true;
  bool has_bf16 = !strcmp(to, "bf16") || !strcmp(from, "bf16"), is_whole = strlen(round) == 3;
  if (!is_float(to) && !is_float(from)) return !round[0] && is_integer_conversion(f, to, from);
  if (rec_has(f, "ftz") && strcmp(to, "f32") != 0 && strcmp(from, "f32") != 0) return false;
  if (has_bf16 && (rec_has(f, "sat") || bits_of(to) == 8 || bits_of(from) == 8)) return false;
  if (!is_float(to)) return is_whole;
  if (!is_float(from)) return round[0] && !is_whole;
  if (!strcmp(to, from)) return !round[0] || is_whole;
  bool narrows = bits_of(to) < bits_of(from) && strcmp(from, "bf16") != 0;
  bool is_open = has_bf16 && (!narrows || bits_of(from) == 16);
  return narrows ? round[0] && !is_whole : is_open ? !is_whole : !round[0];
}

// PTX ISA, set: .ftz belongs to f32 and f16; results of halves have the type that is compared.
static bool is_set(const rec_form *f) {
  const char *to = f->operands[0].type, *from = source_of(f);
  bool to_half = strstr(to, "f16"), is_half = strstr(from, "f16");
  if (rec_has(f, "ftz") && (strcmp(from, "f32") != 0 && strncmp(from, "f16", 3) != 0)) return false;
  if (!strcmp(to, "bf16") && !strcmp(from, "f16")) return !rec_has(f, "ftz");
  return to_half || is_half ? !strcmp(to, from) || (!to_half && strcmp(to, "f32") != 0) : true;
}

static bool is_form(const rec_form *f) {
  const char *from = source_of(f);
  bool is_half = !strcmp(from, "f16") || !strcmp(from, "bf16");
  if (!strcmp(f->opcode, "setp")) return has_comparison(f->words[0], from) && !(is_half && f->operands[1].is_second);
  if (!strcmp(f->opcode, "set")) return has_comparison(f->words[0], from) && is_set(f);
  if (!strcmp(f->opcode, "cvt")) return is_conversion(f);
  if (!strcmp(f->opcode, "slct")) return !rec_has(f, "ftz") || !strcmp(f->operands[3].type, "f32");
  return true;
}

// ---- operands

static rec_type data_type(const char *type) {
  if (!strncmp(type, "bf16", 4)) return REC_BF16;
  if (!strncmp(type, "f16", 3)) return REC_F16;
  if (!strncmp(type, "e4m3", 4)) return REC_E4M3;
  if (!strncmp(type, "e5m2", 4)) return REC_E5M2;
  if (!strcmp(type, "f32")) return REC_F32;
  if (!strcmp(type, "f64")) return REC_F64;
  return REC_S32;
}

static uint64_t integer_value(int bits) {
  uint64_t top = (uint64_t)1 << (bits - 1), ends[] = {0, 1, top - 1, top, top + (top - 1)};
  switch (rec_below(3)) {
    case 0:
      return ends[rec_below(5)];
    case 1:
      return rec_below(72);
    default:
      return rec_random();
  }
}

static uint64_t operand_value(const char *type, int thread, bool nonzero) {
  if (!strcmp(type, "pred")) return rec_random() & 1;
  rec_type data = data_type(type);
  rec_set set = thread % 4 < 2 ? REC_SPECIAL : thread % 4 == 2 ? REC_RANDOM : REC_BITS;
  if (data != REC_S32) return rec_word(data, set);
  int bits = bits_of(type);
  uint64_t value = integer_value(bits);
  if (bits < 64) value &= ((uint64_t)1 << bits) - 1;
  return value || !nonzero ? value : 3;
}

static char letter_of(const char *type) {
  if (!strcmp(type, "pred")) return 'b';
  if (strstr(type, "x2")) return type[0] == 'e' ? 's' : 'i';
  return bits_of(type) == 64 ? 'l' : bits_of(type) == 16 ? 's' : 'i';
}

// ---- one form in a body

typedef struct body {
  char text[MAX_BODY], results[MAX_RESULTS + 1];
  int length, num_results;
} body;

__attribute__((format(printf, 2, 3))) static void put(body *b, const char *format, ...) {
  va_list args;
  va_start(args, format);
  b->length += vsnprintf(b->text + b->length, (size_t)(MAX_BODY - b->length), format, args);
  va_end(args);
  if (b->length >= MAX_BODY) abort();
}

// The carry goes in by an instruction before it and comes out by one behind it (PTX ISA, Extended-Precision Integer
// Arithmetic: CC is written by the one before).
static void put_carry(body *b, const rec_form *f, bool before, int first_argument) {
  if (strcmp(f->rule, "CARRY") != 0) return;
  const char *type = f->operands[0].type;
  bool subtracts = !strncmp(f->opcode, "sub", 3), wide = bits_of(type) == 64;
  if (before && f->opcode[strlen(f->opcode) - 1] == 'c')
    put(b, "%s.cc.u%d %%%s,$%d,$%d;", subtracts ? "sub" : "add", wide ? 64 : 32, wide ? "w1" : "t1", first_argument,
        first_argument + 1);
  if (!before && rec_has(f, "cc")) {
    put(b, "%s.u32 $%d,0,0;", subtracts ? "subc" : "addc", b->num_results);
    b->results[b->num_results++] = 'i';
  }
}

static void put_form(body *b, const rec_form *f, int first_argument, unsigned constant) {
  int argument = first_argument;
  put_carry(b, f, true, first_argument);
  put(b, "%s ", f->text);
  for (int i = 0; i < f->num_operands; i++) {
    const rec_operand *o = &f->operands[i];
    if (i) put(b, "%s", o->is_second ? "|" : ",");
    if (o->is_result) {
      put(b, "$%d", b->num_results);
      b->results[b->num_results++] = letter_of(o->type);
    } else if (o->is_constant) {
      put(b, "%u", constant);
    } else {
      put(b, "$%d", argument++);
    }
  }
  put(b, ";");
  put_carry(b, f, false, first_argument);
}

// How many results a form has in a body.
static int results_of(const rec_form *f) {
  int n = !strcmp(f->rule, "CARRY") && rec_has(f, "cc");
  for (int i = 0; i < f->num_operands; i++) n += f->operands[i].is_result;
  return n;
}

// ---- kernels

static void record_batch(int batch) {
  static const unsigned constants[] = {0xe8, 0x1b, 0x96};
  static uint64_t in[THREADS * REC_MAX_FORM_OPERANDS];
  body counted = {0}, made = {0};
  const scalar *one = NULL;
  // Arguments stand behind all results: their numbers are known when those are counted.
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < num_scalars; i++)
      if (scalars[i].batch == batch)
        one = &scalars[i], put_form(pass ? &made : &counted, &one->form, counted.num_results, constants[i % 3]);
  char signature[REC_MAX_OPERANDS + 8], name[160], types[REC_MAX_FORM_OPERANDS][8];
  int arguments = 0;
  snprintf(signature, sizeof signature, "%s(", made.results);
  for (int i = 0; i < one->form.num_operands; i++) {
    const rec_operand *o = &one->form.operands[i];
    if (o->is_result || o->is_constant) continue;
    strcpy(types[arguments++], o->type);
    snprintf(signature + strlen(signature), 2, "%c", letter_of(o->type));
  }
  strcat(signature, ")");
  bool is_single = !strcmp(one->form.rule, "APPROX") || !strcmp(one->form.opcode, "div");
  snprintf(name, sizeof name, is_single ? "ptx.%s" : "ptx.%s#%d", is_single ? one->form.text : one->key, batch);
  for (char *c = name; *c; c++)
    if (*c == ' ') *c = ',';
  rec_seed(name, 0);
  for (int thread = 0; thread < THREADS; thread++)
    for (int i = 0; i < arguments; i++)
      in[thread * arguments + i] = operand_value(types[i], thread, strstr(one->key, "!0") && i == 1) &
                                   (strstr(one->key, "<32") && i == 1 ? 31 : ~UINT64_C(0));
  rec_run(&(rec_vector){
      .name = name, .signature = signature, .body = made.text, .setting = "data=mixed", .threads = THREADS, .in = in});
}

static void set_key(scalar *s) {
  const rec_form *f = &s->form;
  for (int i = 0; i < f->num_operands; i++) {
    const rec_operand *o = &f->operands[i];
    if (!o->is_result && !o->is_constant) snprintf(s->key + strlen(s->key), 16, "%s%s", s->key[0] ? " " : "", o->type);
  }
  bool is_division = is_one_of(f->opcode, "div rem");
  if (is_division && !is_float(f->operands[0].type)) strcat(s->key, " !0");
  if (!strcmp(f->opcode, "fns")) strcat(s->key, " <32");  // PTX ISA, fns: the base is a bit's number
  // Each approximate one for itself.
  if (!strcmp(f->rule, "APPROX") || rec_has(f, "approx") || rec_has(f, "full"))
    snprintf(s->key, sizeof s->key, "%.90s", f->text);
}

static void collect(const rec_form *f) {
  static const char others[] =
      "ZERO NOTHING CVTA BARRIER MBARRIER TMA WGMMA WGMMA_WAIT MMA TRAP EXIT RET FENCE BRA BRX ALLOCA "
      "CALL_INDIRECT";
  static const char opcodes[] = "nanosleep activemask isspacep mapa getctarank cvta";
  if (is_one_of(f->rule, others) || is_one_of(f->opcode, opcodes) || rec_has(f, "sync") || !is_form(f)) return;
  if (!f->num_operands || !f->operands[0].is_result || rec_has(f, "pending_count")) return;
  for (int i = 0; i < f->num_operands; i++)
    if (f->operands[i].is_address || !strcmp(f->operands[i].type, "b128")) return;
  if (num_scalars == MAX_FORMS) abort();
  scalars[num_scalars] = (scalar){.form = *f, .batch = -1};
  set_key(&scalars[num_scalars++]);
}

void rec_all_scalar(void) {
  rec_file("scalar");
  scalars = calloc(MAX_FORMS, sizeof *scalars);
  if (!scalars) abort();
  rec_each_form(collect);
  int batch = 0;
  for (int first = 0; first < num_scalars; first++) {
    if (scalars[first].batch >= 0) continue;
    int results = 0;
    for (int i = first; i < num_scalars; i++) {
      if (scalars[i].batch >= 0 || strcmp(scalars[i].key, scalars[first].key) != 0) continue;
      if (results + results_of(&scalars[i].form) > MAX_RESULTS) break;
      results += results_of(&scalars[i].form);
      scalars[i].batch = batch;
    }
    record_batch(batch++);
  }
  free(scalars);
}
