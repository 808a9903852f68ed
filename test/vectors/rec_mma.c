// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mma.sync: every shape and type. How many registers an operand takes follows from its size alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

typedef struct mma_op {
  const char *name;  // of the LLVM intrinsic, after "llvm.nvvm.mma."
  uint32_t m, n, k;
  rec_type a, b, sum;
  bool saturate;
} mma_op;

static const mma_op ops[] = {
    {"m16n8k16.row.col.f32.f32", 16, 8, 16, REC_F16, REC_F16, REC_F32},
    {"m16n8k8.row.col.f32.f32", 16, 8, 8, REC_F16, REC_F16, REC_F32},
    {"m16n8k16.row.col.f16.f16", 16, 8, 16, REC_F16, REC_F16, REC_F16},
    {"m16n8k8.row.col.f16.f16", 16, 8, 8, REC_F16, REC_F16, REC_F16},
    {"m16n8k16.row.col.bf16", 16, 8, 16, REC_BF16, REC_BF16, REC_F32},
    {"m16n8k8.row.col.bf16", 16, 8, 8, REC_BF16, REC_BF16, REC_F32},
    {"m16n8k8.row.col.tf32", 16, 8, 8, REC_TF32, REC_TF32, REC_F32},
    {"m16n8k4.row.col.tf32", 16, 8, 4, REC_TF32, REC_TF32, REC_F32},
    {"m8n8k4.row.col.f64", 8, 8, 4, REC_F64, REC_F64, REC_F64},
    {"m16n8k4.row.col.f64", 16, 8, 4, REC_F64, REC_F64, REC_F64},
    {"m16n8k8.row.col.f64", 16, 8, 8, REC_F64, REC_F64, REC_F64},
    {"m16n8k16.row.col.f64", 16, 8, 16, REC_F64, REC_F64, REC_F64},
#define FP8(A, B, NAME)                                                              \
  {"m16n8k32.row.col.f32." NAME ".f32", 16, 8, 32, REC_##A, REC_##B, REC_F32},       \
      {"m16n8k16.row.col.f32." NAME ".f32", 16, 8, 16, REC_##A, REC_##B, REC_F32},   \
      {"m16n8k32.row.col.f16." NAME ".f16", 16, 8, 32, REC_##A, REC_##B, REC_F16}, { \
    "m16n8k16.row.col.f16." NAME ".f16", 16, 8, 16, REC_##A, REC_##B, REC_F16        \
  }
    FP8(E4M3, E4M3, "e4m3.e4m3"),
    FP8(E4M3, E5M2, "e4m3.e5m2"),
    FP8(E5M2, E4M3, "e5m2.e4m3"),
    FP8(E5M2, E5M2, "e5m2.e5m2"),
#undef FP8
#define INT(A, B, NAME, SHAPE, M, K)                                           \
  {SHAPE ".row.col." NAME, M, 8, K, REC_##A, REC_##B, REC_S32}, {              \
    SHAPE ".row.col.satfinite." NAME, M, 8, K, REC_##A, REC_##B, REC_S32, true \
  }
#define INT8(SHAPE, M, K)                                                                               \
  INT(S8, S8, "s8", SHAPE, M, K), INT(S8, U8, "s8.u8", SHAPE, M, K), INT(U8, S8, "u8.s8", SHAPE, M, K), \
      INT(U8, U8, "u8", SHAPE, M, K)
#define INT4(SHAPE, M, K)                                                                               \
  INT(S4, S4, "s4", SHAPE, M, K), INT(S4, U4, "s4.u4", SHAPE, M, K), INT(U4, S4, "u4.s4", SHAPE, M, K), \
      INT(U4, U4, "u4", SHAPE, M, K)
    INT8("m16n8k32", 16, 32),
    INT8("m16n8k16", 16, 16),
    INT8("m8n8k16", 8, 16),
    INT4("m16n8k64", 16, 64),
    INT4("m16n8k32", 16, 32),
    INT4("m8n8k32", 8, 32),
#undef INT4
#undef INT8
#undef INT
};

// Registers a lane of 32 has for `elements` of a type, and their letter.
static uint32_t registers(uint32_t elements, rec_type type) {
  return elements * (uint32_t)rec_type_bits(type) / 32 / (type == REC_F64 ? 64 : 32);
}

static char letter(rec_type type) {
  return type == REC_F64 ? 'd' : type == REC_F32 ? 'f' : type == REC_F16 ? 'E' : 'i';
}

static void append(char *text, uint32_t *operand, uint32_t count) {
  strcat(text, "{");
  for (uint32_t i = 0; i < count; i++) sprintf(text + strlen(text), "%s$%u", i ? "," : "", (*operand)++);
  strcat(text, "}");
}

static void write_op(const mma_op *op, uint32_t counts[3], char *name, char *signature, char *body) {
  sprintf(name, "llvm.nvvm.mma.%s", op->name);
  uint32_t at = 0, operand = 0;
  for (uint32_t i = 0; i < counts[2]; i++) signature[at++] = letter(op->sum);
  signature[at++] = '(';
  for (uint32_t i = 0; i < counts[0]; i++) signature[at++] = letter(op->a);
  for (uint32_t i = 0; i < counts[1]; i++) signature[at++] = letter(op->b);
  for (uint32_t i = 0; i < counts[2]; i++) signature[at++] = letter(op->sum);
  strcpy(signature + at, ")");
  const char *sum = rec_type_names[op->sum];
  sprintf(body, "mma.sync.aligned.m%un%uk%u.row.col%s.%s.%s.%s.%s ", op->m, op->n, op->k,
          op->saturate ? ".satfinite" : "", sum, rec_type_names[op->a], rec_type_names[op->b], sum);
  append(body, &operand, counts[2]);
  for (int i = 0; i < 3; i++) strcat(body, ","), append(body, &operand, counts[i]);
  strcat(body, ";");
}

static void record_set(const mma_op *op, rec_set set) {
  uint32_t counts[] = {registers(op->m * op->k, op->a), registers(op->k * op->n, op->b),
                       registers(op->m * op->n, op->sum)};
  char name[128], signature[64], body[512], setting[64];
  uint64_t in[32 * 64];
  write_op(op, counts, name, signature, body);
  sprintf(setting, "data=%s", rec_set_names[set]);
  rec_seed(name, (uint32_t)set);
  uint32_t at = 0;
  for (int lane = 0; lane < 32; lane++) {
    for (uint32_t i = 0; i < counts[0]; i++) in[at++] = rec_word(op->a, set);
    for (uint32_t i = 0; i < counts[1]; i++) in[at++] = rec_word(op->b, set);
    for (uint32_t i = 0; i < counts[2]; i++) in[at++] = rec_word(op->sum, set);
  }
  rec_run(&(rec_vector){.name = name, .signature = signature, .body = body, .setting = setting, .in = in});
}

void rec_all_mma(void) {
  rec_file("mma");
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    record_set(&ops[i], REC_SMALL);
    record_set(&ops[i], REC_RANDOM);
    record_set(&ops[i], REC_SPECIAL);
  }
}
