// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wgmma.mma_async. Matrix descriptors are numbers made of the fields of a case; shared memory holds the same elements
// for all cases of a type, so that whatever a descriptor means is visible in the sums.
#include <stdio.h>
#include <string.h>

#include "record.h"

// Where B begins and shared memory ends; the second pair for dense operands of few columns.
enum { THREADS = 128, A_BYTES = 8 * 1024, SHARED = 44 * 1024, DENSE_A_BYTES = 2 * 1024, DENSE_SHARED = 3 * 1024 };
enum { NONE = 0, SWIZZLE_128 = 1, SWIZZLE_64 = 2, SWIZZLE_32 = 3 };  // bits 62 and 63

typedef struct wgmma_type {
  rec_type sum, a, b;
  uint32_t k;
} wgmma_type;

static const wgmma_type types[] = {
    {REC_F32, REC_F16, REC_F16, 16},   {REC_F16, REC_F16, REC_F16, 16},   {REC_F32, REC_BF16, REC_BF16, 16},
    {REC_F32, REC_TF32, REC_TF32, 8},  {REC_F32, REC_E4M3, REC_E4M3, 32}, {REC_F32, REC_E4M3, REC_E5M2, 32},
    {REC_F32, REC_E5M2, REC_E4M3, 32}, {REC_F32, REC_E5M2, REC_E5M2, 32}, {REC_F16, REC_E4M3, REC_E4M3, 32},
    {REC_F16, REC_E4M3, REC_E5M2, 32}, {REC_F16, REC_E5M2, REC_E4M3, 32}, {REC_F16, REC_E5M2, REC_E5M2, 32},
    {REC_S32, REC_S8, REC_S8, 32},     {REC_S32, REC_S8, REC_U8, 32},     {REC_S32, REC_U8, REC_S8, 32},
    {REC_S32, REC_U8, REC_U8, 32},
};

// Fields of a descriptor; lbo and sbo in bytes.
typedef struct matrix {
  uint32_t offset, lbo, sbo, base, swizzle;
} matrix;

typedef struct wgmma_case {
  uint32_t n;
  matrix a, b;
  bool dense, a_in_registers, trans_a, trans_b, negate_a, negate_b, overwrite, saturate;
  rec_set set;
} wgmma_case;

static const uint32_t group_bytes[] = {256, 1024, 512, 256};  // eight rows of a span, by swizzle

static matrix rows(uint32_t swizzle, uint32_t offset) {
  return (matrix){.offset = offset, .lbo = swizzle ? 16 : 128, .sbo = group_bytes[swizzle], .swizzle = swizzle};
}

static uint64_t upper_bits(const matrix *m) {
  return (uint64_t)(m->lbo >> 4) << 16 | (uint64_t)(m->sbo >> 4) << 32 | (uint64_t)m->base << 49 |
         (uint64_t)m->swizzle << 62;
}

static bool sixteen_bits(const wgmma_type *t) {
  return t->a == REC_F16 || t->a == REC_BF16;
}

static uint32_t sum_registers(const wgmma_type *t, uint32_t n) {
  return n / 2 / (t->sum == REC_F16 ? 2 : 1);
}

// $r and the next operand to a descriptor in %w<to>.
static uint32_t put_descriptor(char *body, int to, uint32_t operand) {
  sprintf(body + strlen(body),
          "shr.u32 %%t0,$%u,4; and.b32 %%t0,%%t0,16383; cvt.u64.u32 %%w%d,%%t0; or.b64 %%w%d,%%w%d,$%u; ", operand, to,
          to, to, operand + 1);
  return operand + 2;
}

static void put_instruction(char *body, const wgmma_type *t, const wgmma_case *c, uint32_t sums, uint32_t a_first,
                            uint32_t overwrite) {
  sprintf(body + strlen(body), "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n%uk%u%s.%s.%s.%s {", c->n,
          t->k, c->saturate ? ".satfinite" : "", rec_type_names[t->sum], rec_type_names[t->a], rec_type_names[t->b]);
  for (uint32_t i = 0; i < sums; i++) sprintf(body + strlen(body), "%s$%u", i ? "," : "", i);
  strcat(body, "},");
  if (c->a_in_registers)
    sprintf(body + strlen(body), "{$%u,$%u,$%u,$%u}", a_first, a_first + 1, a_first + 2, a_first + 3);
  else
    strcat(body, "%w0");
  sprintf(body + strlen(body), ",%%w1,$%u", overwrite);
  if (t->sum != REC_S32) sprintf(body + strlen(body), ",%d,%d", c->negate_a ? -1 : 1, c->negate_b ? -1 : 1);
  if (sixteen_bits(t) && !c->a_in_registers) sprintf(body + strlen(body), ",%d", c->trans_a);
  if (sixteen_bits(t)) sprintf(body + strlen(body), ",%d", c->trans_b);
  strcat(body, "; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
}

// Arguments: the sums, A (an address and the rest of a descriptor, or four registers), B, whether to add to the sums.
static void write_kernel(const wgmma_type *t, const wgmma_case *c, char *signature, char *body) {
  uint32_t sums = sum_registers(t, c->n), operand = 2 * sums;
  char letter = t->sum == REC_F32 ? 'f' : t->sum == REC_F16 ? 'E' : 'i';
  memset(signature, letter, sums);
  signature[sums] = '(';
  memset(signature + sums + 1, letter, sums);
  strcpy(signature + 2 * sums + 1, c->a_in_registers ? "iiiiplb)" : "plplb)");
  body[0] = 0;
  for (uint32_t i = 0; i < sums; i++) sprintf(body + strlen(body), "mov.b32 $%u,$%u; ", i, sums + i);
  uint32_t a_first = operand;
  operand = c->a_in_registers ? operand + 4 : put_descriptor(body, 0, operand);
  operand = put_descriptor(body, 1, operand);
  put_instruction(body, t, c, sums, a_first, operand);
}

static void fill_shared(const wgmma_type *t, rec_set set, uint8_t *shared, uint32_t a_bytes, uint32_t bytes) {
  rec_seed(rec_type_names[t->a], 100 + (uint32_t)set);
  rec_fill(shared, a_bytes, t->a, set);
  rec_seed(rec_type_names[t->b], 200 + (uint32_t)set);
  rec_fill(shared + a_bytes, bytes - a_bytes, t->b, set);
}

static void record(const wgmma_type *t, const wgmma_case *c) {
  static char body[16384];
  static uint64_t in[THREADS * 140];
  static uint8_t shared[SHARED];
  char name[64], signature[300], setting[128];
  sprintf(name, "wgmma.m64n%uk%u.%s.%s.%s", c->n, t->k, rec_type_names[t->sum], rec_type_names[t->a],
          rec_type_names[t->b]);
  sprintf(setting, "a=%s trans-a=%d trans-b=%d scale-a=%d scale-b=%d satfinite=%d data=%s",
          c->a_in_registers ? "registers" : "shared", c->trans_a, c->trans_b, c->negate_a ? -1 : 1,
          c->negate_b ? -1 : 1, c->saturate, rec_set_names[c->set]);
  write_kernel(t, c, signature, body);
  uint32_t a_bytes = c->dense ? DENSE_A_BYTES : A_BYTES, shared_bytes = c->dense ? DENSE_SHARED : SHARED;
  fill_shared(t, c->set, shared, a_bytes, shared_bytes);
  uint32_t sums = sum_registers(t, c->n), at = 0;
  for (uint32_t thread = 0; thread < THREADS; thread++) {
    rec_seed(rec_type_names[t->sum], 1000 * (1 + (uint32_t)c->set) + thread);
    for (uint32_t i = 0; i < sums; i++) in[at++] = rec_word(t->sum, c->set);
    rec_seed(rec_type_names[t->a], 10000 * (1 + (uint32_t)c->set) + thread);
    for (uint32_t i = 0; c->a_in_registers && i < 4; i++) in[at++] = rec_word(t->a, c->set);
    if (!c->a_in_registers) in[at++] = c->a.offset, in[at++] = upper_bits(&c->a);
    in[at++] = a_bytes + c->b.offset, in[at++] = upper_bits(&c->b);
    in[at++] = !c->overwrite;
  }
  rec_run(&(rec_vector){.name = name,
                        .signature = signature,
                        .body = body,
                        .setting = setting,
                        .threads = THREADS,
                        .in = in,
                        .shared_bytes = shared_bytes,
                        .shared = shared});
}

static wgmma_case plain(uint32_t n, rec_set set) {
  return (wgmma_case){.n = n, .a = rows(SWIZZLE_128, 0), .b = rows(SWIZZLE_128, 0), .set = set};
}

static void record_type(const wgmma_type *t) {
  static const uint32_t widths[] = {8, 32, 96};
  for (int i = 0; i < 3; i++)
    record(t, &(wgmma_case){.n = widths[i], .a = rows(SWIZZLE_128, 0), .b = rows(SWIZZLE_128, 0)});
  wgmma_case c;
  for (uint32_t n = 8; n <= 64; n *= 8) {
    c = plain(n, REC_SMALL), c.a_in_registers = true;
    record(t, &c);
  }
  for (int set = REC_RANDOM; set <= REC_SPECIAL; set++) {
    c = (wgmma_case){
        .n = set == REC_RANDOM ? 16 : 8, .a = rows(NONE, 0), .b = rows(NONE, 0), .dense = true, .set = (rec_set)set};
    record(t, &c);
    c.n = 8, c.a_in_registers = true;
    if (set == REC_RANDOM) record(t, &c);
  }
  c = plain(16, REC_SMALL), c.overwrite = true;
  record(t, &c);
  if (t->sum == REC_S32) {
    c = (wgmma_case){
        .n = 8, .a = rows(NONE, 0), .b = rows(NONE, 0), .dense = true, .saturate = true, .set = REC_SPECIAL};
    record(t, &c);
    return;
  }
  for (int negate = 1; negate < 4; negate++) {
    c = plain(16, REC_SMALL), c.negate_a = negate & 1, c.negate_b = negate & 2, c.a_in_registers = negate == 3;
    record(t, &c);
  }
}

// K-major operands: every swizzle, without one both strides apart, starts inside the span and inside the pattern.
static void record_rows(const wgmma_type *t) {
  for (uint32_t swizzle = NONE; swizzle <= SWIZZLE_32; swizzle++) {
    wgmma_case c = {.n = 32, .a = rows(swizzle, 0), .b = rows(swizzle, 0)};
    record(t, &c);
    c.b.sbo = swizzle ? 2 * c.b.sbo : 128, c.b.lbo = 2048;
    record(t, &c);
    c.a.sbo = swizzle ? c.a.sbo + group_bytes[swizzle] : 512, c.a.lbo = 64;
    record(t, &c);
    uint32_t span = swizzle ? group_bytes[swizzle] / 8 : 0;
    for (uint32_t start = 32; start < span; start += 32) {
      wgmma_case inner = {.n = 16, .a = rows(swizzle, start), .b = rows(swizzle, span - start)};
      record(t, &inner);
    }
  }
}

// Starts that are not at the pattern's beginning, with and without the base offset that says so.
static void record_bases(const wgmma_type *t) {
  for (uint32_t swizzle = SWIZZLE_128; swizzle <= SWIZZLE_32; swizzle++) {
    for (uint32_t row = 1; row < 8; row += 2) {
      for (int with_base = 0; with_base < 2; with_base++) {
        wgmma_case c = {.n = 16, .a = rows(swizzle, row * 128), .b = rows(swizzle, (8 - row) * 128)};
        c.a.base = with_base ? row : 0, c.b.base = with_base ? 8 - row : 0;
        record(t, &c);
      }
    }
  }
}

// Operands of which either index may run along the rows, 16-bit types only.
static void record_majors(const wgmma_type *t, bool all) {
  static const matrix columns[][2] = {
      {{.lbo = 256, .sbo = 128}, {.lbo = 128, .sbo = 2048}},     // no swizzle
      {{.lbo = 2048, .sbo = 1024}, {.lbo = 1024, .sbo = 4096}},  // 128 bytes
      {{.lbo = 1024, .sbo = 512}, {.lbo = 512, .sbo = 4096}},    // 64
      {{.lbo = 512, .sbo = 256}, {.lbo = 256, .sbo = 4096}},     // 32
  };
  for (uint32_t swizzle = NONE; swizzle <= SWIZZLE_32; swizzle++) {
    for (int variant = 0; variant < (all ? 2 : 1); variant++) {
      matrix column = columns[swizzle][variant];
      column.swizzle = swizzle;
      for (int form = 1; form < 4; form++) {
        wgmma_case c = {
            .n = all ? 64 : 32, .a = rows(swizzle, 0), .b = rows(swizzle, 0), .trans_a = form & 1, .trans_b = form & 2};
        if (form & 1) c.a = column;
        if (form & 2) c.b = column;
        record(t, &c);
      }
      wgmma_case wide = {.n = 136, .a = rows(SWIZZLE_128, 0), .b = column, .trans_b = true, .a_in_registers = true};
      if (all) record(t, &wide);
    }
  }
}

void rec_all_wgmma(void) {
  rec_file("wgmma_types");
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) record_type(&types[i]);
  rec_file("wgmma_operands");
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (types[i].a == types[i].b && types[i].a != REC_E5M2 && types[i].a != REC_U8) record_rows(&types[i]);
  for (int i = 0; i < 4; i++) record_bases(&types[i == 3 ? 12 : i]);
  for (int i = 0; i < 3; i++) record_majors(&types[i], i == 2);
  rec_file("wgmma_widths");
  for (uint32_t n = 8; n <= 256; n += 8) {
    wgmma_case c = plain(n, REC_SMALL);
    record(&types[2], &c);
  }
  wgmma_case widest = plain(256, REC_SMALL);
  record(&types[1], &widest);
  record(&types[4], &widest);
  record(&types[12], &widest);
}
