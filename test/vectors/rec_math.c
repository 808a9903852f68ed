// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions and approximate arithmetic of single threads.
#include <stdio.h>

#include "record.h"

typedef struct math_op {
  const char *name, *signature, *body;
  rec_type type;  // of the operands
} math_op;

#define CVT_PAIR(HALF, LETTER, ROUND, RELU) \
  { "llvm.nvvm.ff2" HALF "x2." ROUND RELU, LETTER "(ff)", "cvt." ROUND RELU "." HALF "x2.f32 $0,$1,$2;", REC_F32 }
#define CVT_PAIRS(HALF, LETTER)                                                                              \
  CVT_PAIR(HALF, LETTER, "rn", ""), CVT_PAIR(HALF, LETTER, "rn", ".relu"), CVT_PAIR(HALF, LETTER, "rz", ""), \
      CVT_PAIR(HALF, LETTER, "rz", ".relu")
#define CVT_F8(F8, RELU)                                                                                     \
  {"llvm.nvvm.ff.to." F8 "x2.rn" RELU, "s(ff)", "cvt.rn.satfinite" RELU "." F8 "x2.f32 $0,$1,$2;", REC_F32}, \
      {"llvm.nvvm." F8 "x2.to.f16x2.rn" RELU, "E(s)", "cvt.rn" RELU ".f16x2." F8 "x2 $0,$1;", REC_S8}, {     \
    "llvm.nvvm.f16x2.to." F8 "x2.rn" RELU, "s(E)", "cvt.rn.satfinite" RELU "." F8 "x2.f16x2 $0,$1;", REC_F16 \
  }
#define APPROX(NAME, PTX) \
  { "llvm.nvvm." NAME, "f(f)", PTX " $0,$1;", REC_F32 }

static const math_op ops[] = {
    CVT_PAIRS("f16", "E"),
    CVT_PAIRS("bf16", "Y"),
    CVT_F8("e4m3", ""),
    CVT_F8("e4m3", ".relu"),
    CVT_F8("e5m2", ""),
    CVT_F8("e5m2", ".relu"),
    {"llvm.nvvm.f2bf16.rn", "y(f)", "cvt.rn.bf16.f32 $0,$1;", REC_F32},
    {"llvm.nvvm.f2bf16.rn.relu", "y(f)", "cvt.rn.relu.bf16.f32 $0,$1;", REC_F32},
    {"llvm.nvvm.f2bf16.rz", "y(f)", "cvt.rz.bf16.f32 $0,$1;", REC_F32},
    {"llvm.nvvm.f2bf16.rz.relu", "y(f)", "cvt.rz.relu.bf16.f32 $0,$1;", REC_F32},
    {"llvm.nvvm.f2tf32.rn", "i(f)", "cvt.rn.tf32.f32 $0,$1;", REC_F32},
    {"llvm.nvvm.f2tf32.rn.relu", "i(f)", "cvt.rn.relu.tf32.f32 $0,$1;", REC_F32},
    {"llvm.nvvm.f2tf32.rz", "i(f)", "cvt.rz.tf32.f32 $0,$1;", REC_F32},
    {"llvm.nvvm.f2tf32.rz.relu", "i(f)", "cvt.rz.relu.tf32.f32 $0,$1;", REC_F32},
    {"llvm.nvvm.f2tf32.rna", "i(f)", "cvt.rna.tf32.f32 $0,$1;", REC_F32},
    APPROX("ex2.approx.f32", "ex2.approx.f32"),
    APPROX("ex2.approx.ftz.f32", "ex2.approx.ftz.f32"),
    APPROX("lg2.approx.f", "lg2.approx.f32"),
    APPROX("lg2.approx.ftz.f", "lg2.approx.ftz.f32"),
    APPROX("rcp.approx.ftz.f", "rcp.approx.ftz.f32"),
    APPROX("rsqrt.approx.f", "rsqrt.approx.f32"),
    APPROX("rsqrt.approx.ftz.f", "rsqrt.approx.ftz.f32"),
    APPROX("sqrt.approx.f", "sqrt.approx.f32"),
    APPROX("sqrt.approx.ftz.f", "sqrt.approx.ftz.f32"),
    APPROX("sin.approx.f", "sin.approx.f32"),
    APPROX("sin.approx.ftz.f", "sin.approx.ftz.f32"),
    APPROX("cos.approx.f", "cos.approx.f32"),
    APPROX("cos.approx.ftz.f", "cos.approx.ftz.f32"),
    {"llvm.nvvm.div.full", "f(ff)", "div.full.f32 $0,$1,$2;", REC_F32},
    {"llvm.nvvm.div.full.ftz", "f(ff)", "div.full.ftz.f32 $0,$1,$2;", REC_F32},
    {"tl.tanh.approx.f32", "f(f)", "tanh.approx.f32 $0,$1;", REC_F32},
    {"llvm.nvvm.idp4a.s.s", "i(iii)", "dp4a.s32.s32 $0,$1,$2,$3;", REC_S8},
    {"llvm.nvvm.idp4a.s.u", "i(iii)", "dp4a.s32.u32 $0,$1,$2,$3;", REC_S8},
    {"llvm.nvvm.idp4a.u.s", "i(iii)", "dp4a.u32.s32 $0,$1,$2,$3;", REC_S8},
    {"llvm.nvvm.idp4a.u.u", "i(iii)", "dp4a.u32.u32 $0,$1,$2,$3;", REC_S8},
    {"llvm.nvvm.ex2.approx.v2f16", "E(E)", "ex2.approx.f16x2 $0,$1;", REC_F16},
    {"llvm.nvvm.ex2.approx.ftz.v2bf16", "Y(Y)", "ex2.approx.ftz.bf16x2 $0,$1;", REC_BF16},
    {"tl.tanh.approx.f16x2", "E(E)", "tanh.approx.f16x2 $0,$1;", REC_F16},
    {"tl.tanh.approx.bf16x2", "Y(Y)", "tanh.approx.bf16x2 $0,$1;", REC_BF16},
};

enum { THREADS = 96 };

static void record(const math_op *op, rec_set set) {
  char setting[64];
  int arguments = rec_arguments(op->signature);
  uint64_t in[THREADS * 3];
  snprintf(setting, sizeof setting, "data=%s", rec_set_names[set]);
  rec_seed(op->name, set);
  for (int i = 0; i < THREADS * arguments; i++) in[i] = rec_word(op->type, set);
  rec_run(&(rec_vector){.name = op->name,
                        .signature = op->signature,
                        .body = op->body,
                        .setting = setting,
                        .threads = THREADS,
                        .in = in});
}

void rec_all_math(void) {
  rec_file("math");
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    record(&ops[i], REC_RANDOM);
    record(&ops[i], REC_SPECIAL);
    record(&ops[i], REC_BITS);
  }
}
