// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mma.sync: every dense shape and type. How many registers an operand takes follows from its size alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

typedef struct mma_op {
  const char *name;  // of the LLVM intrinsic, after "llvm.nvvm.mma."
  uint32_t m, n, k;
  rec_type a, b, sum;
  bool saturate;
  const char *layout;   // NULL: row.col
  const char *combine;  // of b1: what joins two bits
  uint32_t copies;      // multiplications by one warp, 0 for 1
  bool adds_f16;        // to what is added, while the sum is f32
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
#define VOLTA(LAYOUT)                                                                                                \
  {"m8n8k4." LAYOUT ".f32.f32", 8, 8, 4, REC_F16, REC_F16, REC_F32, .layout = LAYOUT, .copies = 4},                  \
      {"m8n8k4." LAYOUT ".f16.f16", 8, 8, 4, REC_F16, REC_F16, REC_F16, .layout = LAYOUT, .copies = 4}, {            \
    "m8n8k4." LAYOUT ".f32.f16", 8, 8, 4, REC_F16, REC_F16, REC_F32, .layout = LAYOUT, .copies = 4, .adds_f16 = true \
  }
    VOLTA("row.col"),
    VOLTA("row.row"),
    VOLTA("col.col"),
    VOLTA("col.row"),
#undef VOLTA
#define BITS(SHAPE, M, K)                                                                        \
  {"and.popc." SHAPE ".row.col.b1", M, 8, K, REC_B1, REC_B1, REC_S32, .combine = ".and.popc"}, { \
    "xor.popc." SHAPE ".row.col.b1", M, 8, K, REC_B1, REC_B1, REC_S32, .combine = ".xor.popc"    \
  }
    BITS("m8n8k128", 8, 128),
    BITS("m16n8k128", 16, 128),
    BITS("m16n8k256", 16, 256),
#undef BITS
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

static rec_type added(const mma_op *op) {
  return op->adds_f16 ? REC_F16 : op->sum;
}

// counts: registers of a, b, what is added, the sum.
static void write_op(const mma_op *op, const uint32_t counts[4], char *name, char *signature, char *body) {
  sprintf(name, "llvm.nvvm.mma.%s", op->name);
  uint32_t at = 0, operand = 0;
  for (uint32_t i = 0; i < counts[3]; i++) signature[at++] = letter(op->sum);
  signature[at++] = '(';
  for (uint32_t i = 0; i < counts[0]; i++) signature[at++] = letter(op->a);
  for (uint32_t i = 0; i < counts[1]; i++) signature[at++] = letter(op->b);
  for (uint32_t i = 0; i < counts[2]; i++) signature[at++] = letter(added(op));
  strcpy(signature + at, ")");
  sprintf(body, "mma.sync.aligned.m%un%uk%u.%s%s.%s.%s.%s.%s%s ", op->m, op->n, op->k,
          op->layout ? op->layout : "row.col", op->saturate ? ".satfinite" : "", rec_type_names[op->sum],
          rec_type_names[op->a], rec_type_names[op->b], rec_type_names[added(op)], op->combine ? op->combine : "");
  append(body, &operand, counts[3]);
  for (int i = 0; i < 3; i++) strcat(body, ","), append(body, &operand, counts[i]);
  strcat(body, ";");
}

static void record_set(const mma_op *op, rec_set set) {
  uint32_t copies = op->copies ? op->copies : 1;
  uint32_t counts[] = {registers(copies * op->m * op->k, op->a), registers(copies * op->k * op->n, op->b),
                       registers(copies * op->m * op->n, added(op)), registers(copies * op->m * op->n, op->sum)};
  char name[128], signature[64], body[512], setting[64];
  uint64_t in[32 * 64];
  write_op(op, counts, name, signature, body);
  sprintf(setting, "data=%s", rec_set_names[set]);
  rec_seed(name, (uint32_t)set);
  uint32_t at = 0;
  for (int lane = 0; lane < 32; lane++) {
    for (uint32_t i = 0; i < counts[0]; i++) in[at++] = rec_word(op->a, set);
    for (uint32_t i = 0; i < counts[1]; i++) in[at++] = rec_word(op->b, set);
    for (uint32_t i = 0; i < counts[2]; i++) in[at++] = rec_word(added(op), set);
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
