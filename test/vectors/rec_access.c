// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads, stores and atomics: forms of the table (rec_forms.h), many to a kernel. Each form has a place in memory of its
// own, each thread a part of that. Of what multiplies (hints, orders, scopes) a fixed choice is taken, in which each
// word is.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rec_forms.h"
#include "record.h"

enum {
  THREADS = 16,
  PART = 32,  // bytes of a thread: the widest access
  PLACE = THREADS * PART,
  MAX_ACCESSES = 8192,
  MAX_RESULTS = 48,
  MAX_PLACES = 48,
  MAX_BODY = 12288
};

typedef struct access {
  rec_form form;
  char key[48];
  int batch;
} access;

static access *accesses;
static int num_accesses;

// Arguments of every kernel, behind the results: the thread's part, then values by width.
static const char *const widths[] = {"s", "i", "l"};
enum { VALUES = 4 };

static bool is_space(const char *word) {
  return !strncmp(word, "shared", 6) || !strcmp(word, "global");
}

static const char *space_of(const rec_form *f) {
  for (int i = 0; i < f->num_terms; i++)
    if (is_space(f->words[i])) return f->words[i];
  return "";
}

static const char *type_of(const rec_form *f) {
  return f->words[f->num_terms - 1];
}

static int bits_of(const char *type) {
  int bits = atoi(type + strcspn(type, "0123456789"));
  return strstr(type, "x2") ? 32 : bits;
}

// An atomic takes a register of its width; other accesses may take a wider one.
static int width_of(const rec_form *f) {
  int bits = bits_of(type_of(f));
  return bits == 64 ? 2 : bits == 16 && !strcmp(f->rule, "ATOMIC") ? 0 : 1;
}

static rec_type data_type(const char *type) {
  if (!strncmp(type, "bf16", 4)) return REC_BF16;
  if (!strncmp(type, "f16", 3)) return REC_F16;
  return !strcmp(type, "f32") ? REC_F32 : !strcmp(type, "f64") ? REC_F64 : REC_S32;
}

// ---- which forms

static uint32_t hash_of(const char *text) {
  uint32_t hash = 2166136261u;
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 16777619u;
  return hash ^ hash >> 15;
}

static bool is_chosen(const rec_form *f) {
  int hints = f->hints - (space_of(f)[0] != 0);
  if (!strcmp(f->rule, "ATOMIC")) return hash_of(f->text) % 8 == 0;
  if (rec_has(f, "relaxed") || rec_has(f, "acquire") || rec_has(f, "release")) return hash_of(f->text) % 16 == 0;
  return hints == 0 || (hints == 1 && hash_of(f->text) % 16 == 0);
}

// PTX ISA, ld, st: halves move as bits, vectors have 128 bits at most.
static bool is_form(const rec_form *f) {
  static const char *const others[] = {"param", "param::entry", "param::func", "local", "const"};
  for (int i = 0; i < 5; i++)
    if (rec_has(f, others[i])) return false;
  if (!strcmp(f->rule, "ATOMIC")) return true;
  // Caches: hints are for global memory, one kind of them.
  bool has_operation = rec_has(f, "ca") || rec_has(f, "cg") || rec_has(f, "cs") || rec_has(f, "cv") ||
                       rec_has(f, "lu") || rec_has(f, "wb") || rec_has(f, "wt");
  if (strstr(f->text, ".L1") && has_operation) return false;
  if ((strstr(f->text, ".L1") || strstr(f->text, ".L2")) && space_of(f)[0] == 's') return false;
  if (f->lanes * bits_of(type_of(f)) > 128) return false;
  return strstr(type_of(f), "f16") == NULL && strcmp(type_of(f), "b128") != 0;
}

static void collect(const rec_form *f) {
  if (!strstr("LOAD STORE ATOMIC", f->rule) || !is_form(f) || !is_chosen(f)) return;
  if (num_accesses == MAX_ACCESSES) abort();
  access *a = &accesses[num_accesses++];
  *a = (access){.form = *f, .batch = -1};
  const char *space = space_of(f);
  bool is_atomic = !strcmp(f->rule, "ATOMIC");
  snprintf(a->key, sizeof a->key, "%s,%s,%s%s", f->opcode,
           !space[0]         ? "generic"
           : space[0] == 's' ? "shared"
                             : space,
           is_atomic ? type_of(f) : "", rec_has(f, "cas") ? ",cas" : "");
}

// ---- kernels

typedef struct body {
  char text[MAX_BODY], results[MAX_RESULTS + 1];
  int length, num_results, places;
} body;

__attribute__((format(printf, 2, 3))) static void put(body *b, const char *format, ...) {
  va_list args;
  va_start(args, format);
  b->length += vsnprintf(b->text + b->length, (size_t)(MAX_BODY - b->length), format, args);
  va_end(args);
  if (b->length >= MAX_BODY) abort();
}

static void put_values(body *b, const rec_form *f, const rec_operand *o, int first) {
  int lanes = o->is_vector ? f->lanes : 1, width = width_of(f);
  if (lanes > 1) put(b, "{");
  for (int i = 0; i < lanes; i++) {
    if (o->is_result) b->results[b->num_results] = widths[width][0];
    put(b, "%s$%d", i ? "," : "", o->is_result ? b->num_results++ : first + 1 + width * VALUES + i);
  }
  if (lanes > 1) put(b, "}");
}

static void put_form(body *b, const rec_form *f, int first) {
  int values = 0;
  put(b, "%s ", f->text);
  for (int i = 0; i < f->num_operands; i++) {
    const rec_operand *o = &f->operands[i];
    if (i) put(b, ",");
    if (o->is_address)
      put(b, "[$%d+%d]", first, b->places++ * PLACE);
    else if (rec_has(f, "L2::cache_hint") && i == f->num_operands - 1)
      put(b, "%%w1");
    else
      put_values(b, f, o, first + (o->is_result ? 0 : values++));
  }
  put(b, ";");
}

// The same in every place: recordings stay small.
static void fill(const access *a, uint8_t *memory, size_t bytes) {
  rec_type type = data_type(type_of(&a->form));
  for (size_t at = 0; at < PLACE; at += PART)
    rec_fill(memory + at, PART, type, rec_below(4) ? REC_RANDOM : REC_SPECIAL);
  // What compare-and-swap expects stands in every other part.
  for (size_t at = 0; strstr(a->key, "cas") && at < PLACE; at += 8)
    if (rec_below(2)) memset(memory + at, 0x5a, 8);
  for (size_t at = PLACE; at < bytes; at += PLACE) memcpy(memory + at, memory, PLACE);
}

static void set_arguments(const access *a, uint64_t *in) {
  for (int thread = 0; thread < THREADS; thread++) {
    *in++ = (uint64_t)thread * PART;
    for (int i = 0; i < 3 * VALUES; i++) {
      uint64_t value = rec_word(data_type(type_of(&a->form)), rec_below(3) ? REC_RANDOM : REC_SPECIAL);
      if (i / VALUES == 2 && data_type(type_of(&a->form)) != REC_F64) value |= rec_random() << 32;
      *in++ = strstr(a->key, "cas") && i % VALUES == 0 ? 0x5a5a5a5a5a5a5a5au : value;
    }
  }
}

static void record_batch(int batch) {
  static uint8_t memory[MAX_PLACES * PLACE];
  static uint64_t in[THREADS * (1 + 3 * VALUES)];
  body counted = {0}, made = {0};
  const access *one = NULL;
  for (int pass = 0; pass < 2; pass++) {
    body *b = pass ? &made : &counted;
    for (int i = 0; i < num_accesses; i++) {
      if (accesses[i].batch != batch) continue;
      if (!one) one = &accesses[i];
      if (rec_has(&accesses[i].form, "L2::cache_hint") && !strstr(b->text, "createpolicy"))
        put(b, "createpolicy.fractional.L2::evict_last.b64 %%w1,1.0;");
      put_form(b, &accesses[i].form, counted.num_results);
    }
  }
  bool is_shared = strstr(one->key, "shared");
  char signature[MAX_RESULTS + 32], name[64];
  snprintf(signature, sizeof signature, "%s(%cssssiiiillll)", made.results, is_shared ? 'p' : 'g');
  snprintf(name, sizeof name, "ptx.%s#%d", one->key, batch);
  rec_seed(type_of(&one->form), 0);
  set_arguments(one, in);
  uint32_t bytes = (uint32_t)made.places * PLACE;
  fill(one, memory, bytes);
  rec_run(&(rec_vector){.name = name,
                        .signature = signature,
                        .body = made.text,
                        .setting = "data=mixed",
                        .threads = THREADS,
                        .in = in,
                        .shared_bytes = is_shared ? bytes : 0,
                        .global_bytes = is_shared ? 0 : bytes,
                        .shared = memory,
                        .global = memory});
}

void rec_all_access(void) {
  rec_file("access");
  accesses = calloc(MAX_ACCESSES, sizeof *accesses);
  if (!accesses) abort();
  rec_each_form(collect);
  int batch = 0;
  for (int first = 0; first < num_accesses; first++) {
    if (accesses[first].batch >= 0) continue;
    int results = 0, places = 0;
    for (int i = first; i < num_accesses; i++) {
      if (accesses[i].batch >= 0 || strcmp(accesses[i].key, accesses[first].key) != 0) continue;
      int lanes = accesses[i].form.operands[0].is_result ? accesses[i].form.lanes : 0;
      if (results + lanes > MAX_RESULTS || places == MAX_PLACES) break;
      results += lanes, places++;
      accesses[i].batch = batch;
    }
    record_batch(batch++);
  }
  free(accesses);
}
