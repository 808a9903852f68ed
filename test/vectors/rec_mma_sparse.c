// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mma.sp.sync: every shape and type, with metadata in either form. Half of the rows of A is there (tf32: of two
// elements one, all others: of four elements or pairs two); which half, each lane says in 4 bits a group. PTX ISA,
// "Sparse matrix storage", says which 4 bits are allowed, and of which lanes they come for a selector.
#include <stdio.h>
#include <string.h>

#include "record.h"

typedef struct sparse_op {
  const char *types;  // as in the name of the LLVM intrinsic
  uint32_t k;
  rec_type a, b, sum;
  uint32_t selectors;
  bool saturate;
} sparse_op;

static const sparse_op ops[] = {
    {"f32.f32", 16, REC_F16, REC_F16, REC_F32, 4},
    {"f32.f32", 32, REC_F16, REC_F16, REC_F32, 2},
    {"f16.f16", 16, REC_F16, REC_F16, REC_F16, 4},
    {"f16.f16", 32, REC_F16, REC_F16, REC_F16, 2},
    {"bf16", 16, REC_BF16, REC_BF16, REC_F32, 4},
    {"bf16", 32, REC_BF16, REC_BF16, REC_F32, 2},
    {"tf32", 8, REC_TF32, REC_TF32, REC_F32, 4},
    {"tf32", 16, REC_TF32, REC_TF32, REC_F32, 2},
    {"f32.e4m3.e4m3.f32", 64, REC_E4M3, REC_E4M3, REC_F32, 1},
    {"f32.e4m3.e5m2.f32", 64, REC_E4M3, REC_E5M2, REC_F32, 1},
    {"f32.e5m2.e4m3.f32", 64, REC_E5M2, REC_E4M3, REC_F32, 1},
    {"f32.e5m2.e5m2.f32", 64, REC_E5M2, REC_E5M2, REC_F32, 1},
#define SIGNS(A, B, NAME, K, SELECTORS)                              \
  {NAME, K, REC_##A, REC_##B, REC_S32, SELECTORS}, {                 \
    "satfinite." NAME, K, REC_##A, REC_##B, REC_S32, SELECTORS, true \
  }
#define INTEGERS(S, U, s, u, K, SELECTORS)                                                              \
  SIGNS(S, S, s, K, SELECTORS), SIGNS(S, U, s "." u, K, SELECTORS), SIGNS(U, S, u "." s, K, SELECTORS), \
      SIGNS(U, U, u, K, SELECTORS)
    INTEGERS(S8, U8, "s8", "u8", 32, 2),
    INTEGERS(S8, U8, "s8", "u8", 64, 1),
    INTEGERS(S4, U4, "s4", "u4", 64, 2),
    INTEGERS(S4, U4, "s4", "u4", 128, 1),
#undef INTEGERS
#undef SIGNS
};

static uint64_t metadata(rec_type type) {
  static const uint8_t of_four[] = {0x4, 0x8, 0x9, 0xc, 0xd, 0xe}, of_two[] = {0x4, 0xe};
  uint64_t word = 0;
  for (int at = 0; at < 32; at += 4)
    word |= (uint64_t)(type == REC_TF32 ? of_two[rec_below(2)] : of_four[rec_below(6)]) << at;
  return word;
}

static char letter(rec_type type) {
  return type == REC_F32 ? 'f' : type == REC_F16 ? 'E' : 'i';
}

static void append(char *body, uint32_t first, uint32_t count) {
  strcat(body, "{");
  for (uint32_t i = 0; i < count; i++) sprintf(body + strlen(body), "%s$%u", i ? "," : "", first + i);
  strcat(body, "},");
}

// Arguments: a, b, what is added, metadata. The selector is an immediate.
static void record(const sparse_op *op, bool ordered, rec_set set, uint32_t selector) {
  uint32_t lanes_bits = 32 * 32, bits = (uint32_t)rec_type_bits(op->a), sum_bits = (uint32_t)rec_type_bits(op->sum);
  uint32_t a = 16 * op->k / 2 * bits / lanes_bits, b = 8 * op->k * bits / lanes_bits,
           sum = 16 * 8 * sum_bits / lanes_bits;
  char name[128], signature[64] = "", body[512], setting[64];
  sprintf(name, "llvm.nvvm.mma.sp%s.m16n8k%u.row.col.%s", ordered ? ".ordered.metadata" : "", op->k, op->types);
  memset(signature, letter(op->sum), sum);
  signature[sum] = '(';
  memset(signature + sum + 1, letter(op->a), a);
  memset(signature + sum + 1 + a, letter(op->b), b);
  memset(signature + sum + 1 + a + b, letter(op->sum), sum);
  strcat(signature, "i)");
  const char *sum_name = rec_type_names[op->sum];
  sprintf(body, "mma.sp%s.sync.aligned.m16n8k%u.row.col%s.%s.%s.%s.%s ", ordered ? "::ordered_metadata" : "", op->k,
          op->saturate ? ".satfinite" : "", sum_name, rec_type_names[op->a], rec_type_names[op->b], sum_name);
  append(body, 0, sum);
  append(body, sum, a);
  append(body, sum + a, b);
  append(body, sum + a + b, sum);
  sprintf(body + strlen(body), "$%u,%u;", 2 * sum + a + b, selector);
  sprintf(setting, "data=%s selector=%u", rec_set_names[set], selector);
  rec_seed(name, (uint32_t)set * 4 + selector);
  uint64_t in[32 * 24];
  uint32_t at = 0;
  for (int lane = 0; lane < 32; lane++) {
    for (uint32_t i = 0; i < a; i++) in[at++] = rec_word(op->a, set);
    for (uint32_t i = 0; i < b; i++) in[at++] = rec_word(op->b, set);
    for (uint32_t i = 0; i < sum; i++) in[at++] = rec_word(op->sum, set);
    in[at++] = metadata(op->a);
  }
  rec_run(&(rec_vector){.name = name, .signature = signature, .body = body, .setting = setting, .in = in});
}

void rec_all_mma_sparse(void) {
  rec_file("mma_sparse");
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    const sparse_op *op = &ops[i];
    uint32_t last = op->selectors - 1;
    for (uint32_t selector = 0; selector <= last; selector++) record(op, false, REC_SMALL, selector);
    if (!op->saturate) record(op, false, REC_RANDOM, (uint32_t)i & last);
    record(op, false, REC_SPECIAL, (uint32_t)(i + 1) & last);
    record(op, true, REC_SMALL, (uint32_t)i & last);
    record(op, true, op->saturate ? REC_SPECIAL : REC_RANDOM, (uint32_t)(i + 1) & last);
  }
}
