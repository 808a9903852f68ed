// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The device ops of wgmma (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions), of which there are thousands: a
// name says everything, and texts are made from it on demand. Two families:
//
//   tl.wgmma.m64n128k16.f32.bf16.bf16.ss[.ta][.tb][.na][.nb][.sat]
//       D = A × B + D, types in the order of the PTX name. ss: A and B through descriptors; rs: A in four registers.
//       ta, tb: the operand is M- or N-major instead of K-major (16-bit types; ta only in ss). na, nb: it is negated
//       (floats). sat: the sum saturates (s32). Operands: the registers of D, which come back as results; A (i64
//       descriptor or 4 × i32); B (i64 descriptor); i1 scale-d: false ignores the old D. D is n / 2 floats or i32, or n
//       / 4 i32 with two f16 each.
//   tl.wgmma.wait.n1.64xf32.16xf16.4xb32
//       wgmma.wait_group 1. Takes and returns the registers of accumulators (f32; s32; f16: i32 with two each), so that
//       nothing that uses one can move in front of the wait, and takes, last, those of operands (b32: i32), which must
//       not be reused before.
//
// No LLVM types: the emulator parses the same names.
#ifndef TL_LLVM_BACKEND_WGMMA_H
#define TL_LLVM_BACKEND_WGMMA_H

#include "llvm_backend/device/device_ops.h"
#include "support/strbuf.h"

#define TL_WGMMA_PREFIX "tl.wgmma."

enum {
  TL_WGMMA_M = 64,
  TL_WGMMA_MAX_N = 256,
  TL_WGMMA_A_REGISTERS = 4,
  TL_WGMMA_K_BYTES = 32,     // of one row of A or column of B, whatever the type
  TL_WGMMA_MAX_RUNS = 8,     // of one wait
  TL_WGMMA_MAX_PINNED = 240  // registers of one wait; a thread has 255
};

typedef enum tl_wgmma_type {
  TL_WGMMA_F16,
  TL_WGMMA_BF16,
  TL_WGMMA_TF32,
  TL_WGMMA_E4M3,
  TL_WGMMA_E5M2,
  TL_WGMMA_S8,
  TL_WGMMA_U8,
  TL_WGMMA_NUM_TYPES
} tl_wgmma_type;

// What a register that a wait pins holds; the first three are also the types of D.
typedef enum tl_wgmma_register {
  TL_WGMMA_SUM_F32,
  TL_WGMMA_SUM_F16,  // a pair
  TL_WGMMA_SUM_S32,
  TL_WGMMA_OPERAND_B32,
  TL_WGMMA_NUM_REGISTERS
} tl_wgmma_register;

typedef struct tl_wgmma_form {
  tl_wgmma_register sum;  // type of D
  tl_wgmma_type a, b;
  int n;
  bool a_in_registers;
  bool transpose_a, transpose_b;  // M- or N-major in shared memory
  bool negate_a, negate_b;
  bool saturate;
} tl_wgmma_form;

typedef struct tl_wgmma_run {
  int count;  // registers
  tl_wgmma_register type;
} tl_wgmma_run;

typedef struct tl_wgmma_wait {
  int pending;  // groups that may stay in flight, 0 to 7
  int num_runs;
  tl_wgmma_run runs[TL_WGMMA_MAX_RUNS];
} tl_wgmma_wait;

// Why the hardware has no such form; NULL when it has.
const char *tl_wgmma_form_problem(const tl_wgmma_form *form);
int tl_wgmma_type_bits(tl_wgmma_type type);
// Elements of K that one instruction takes.
int tl_wgmma_k(const tl_wgmma_form *form);
// The PTX ISA version that has the form, times ten.
int tl_wgmma_min_ptx(const tl_wgmma_form *form);
// Registers of D in a thread.
int tl_wgmma_sum_registers(const tl_wgmma_form *form);
// Registers that a wait takes, and those of them that it returns, which come first.
int tl_wgmma_wait_registers(const tl_wgmma_wait *wait);
int tl_wgmma_wait_results(const tl_wgmma_wait *wait);

// The names. Parsing gives false for anything but exactly the name that the other function writes for a valid form.
void tl_wgmma_form_name(const tl_wgmma_form *form, tl_strbuf *out);
bool tl_wgmma_form_parse(tl_str name, tl_wgmma_form *out);
void tl_wgmma_wait_name(const tl_wgmma_wait *wait, tl_strbuf *out);
bool tl_wgmma_wait_parse(tl_str name, tl_wgmma_wait *out);

// A row like those of device_ops.def. `row` points into the buffers.
typedef struct tl_wgmma_op {
  tl_device_op row;
  tl_strbuf name, signature, asm_text, constraints;  // Owned.
} tl_wgmma_op;
// False, and nothing to free, when `name` is not one of the two families'. Else tl_wgmma_op_fini when done.
bool tl_wgmma_op_make(tl_str name, tl_wgmma_op *out);
void tl_wgmma_op_fini(tl_wgmma_op *op);

#endif
