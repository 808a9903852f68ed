// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs one device op in every thread of a block, with operands and results in memory: a slot of 8 bytes each. The
// kernel is written from the op's signature (the letters of device_ops.def). Pointers to shared memory are given as
// byte offsets into a buffer that is filled before and read back after the op.
#ifndef TL_TEST_UNIT_EMULATOR_OP_RUNNER_H
#define TL_TEST_UNIT_EMULATOR_OP_RUNNER_H

#include "emulator/ops/ops.h"
#include "emulator_util.h"
#include "support/strbuf.h"

enum { OP_SLOTS = 12, OP_MAX_THREADS = 64, OP_SHARED_BYTES = 2048 };

typedef struct op_run {
  const char *name, *signature;
  uint32_t constant;  // value of a letter I
  int32_t threads;    // 0: 32
  tl_emu_options options;
  uint64_t in[OP_MAX_THREADS][OP_SLOTS];
  uint64_t out[OP_MAX_THREADS][OP_SLOTS];  // 0xff where there is no result
  uint8_t shared[OP_SHARED_BYTES];
} op_run;

static inline const char *op_type(char letter) {
  const char *type = tl_emu_letter_type(letter);
  ck_assert_msg(type != NULL, "letter %c", letter);
  return type;
}

static inline void op_write_loads(tl_strbuf *text, const char *args, uint32_t constant) {
  for (int i = 0; args[i] != ')'; i++) {
    tl_strbuf_appendf(text, " %%in%d = getelementptr i64, ptr addrspace(1) %%mine, i32 %d\n", i, i);
    if (args[i] == 'p') {
      tl_strbuf_appendf(text, " %%off%d = load i64, ptr addrspace(1) %%in%d\n", i, i);
      tl_strbuf_appendf(text, " %%a%d = getelementptr i8, ptr addrspace(3) @buffer, i64 %%off%d\n", i, i);
    } else if (args[i] == 'b') {
      tl_strbuf_appendf(text, " %%byte%d = load i8, ptr addrspace(1) %%in%d\n %%a%d = trunc i8 %%byte%d to i1\n", i, i,
                        i, i);
    } else if (args[i] == 'I') {
      tl_strbuf_appendf(text, " %%a%d = add i32 0, %u\n", i, constant);
    } else {
      tl_strbuf_appendf(text, " %%a%d = load %s, ptr addrspace(1) %%in%d\n", i, op_type(args[i]), i);
    }
  }
}

static inline void op_write_stores(tl_strbuf *text, const char *signature, int results) {
  for (int i = 0; i < results; i++) {
    tl_strbuf_appendf(text, " %%out%d = getelementptr i64, ptr addrspace(1) %%theirs, i32 %d\n", i, i);
    if (results > 1)
      tl_strbuf_appendf(text, " %%r%d = extractvalue %%result %%r, %d\n", i, i);
    else
      tl_strbuf_appendf(text, " %%r%d = bitcast %s %%r to %s\n", i, op_type(signature[i]), op_type(signature[i]));
    if (signature[i] == 'b')
      tl_strbuf_appendf(text, " %%wide%d = zext i1 %%r%d to i8\n store i8 %%wide%d, ptr addrspace(1) %%out%d\n", i, i,
                        i, i);
    else
      tl_strbuf_appendf(text, " store %s %%r%d, ptr addrspace(1) %%out%d\n", op_type(signature[i]), i, i);
  }
}

// Thread 0 moves OP_SHARED_BYTES between %io and shared memory.
static inline void op_write_move(tl_strbuf *text, const char *name, const char *from, const char *to) {
  tl_strbuf_appendf(text,
                    "define internal void @%s(ptr addrspace(1) %%io) {\nentry:\n"
                    " %%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %%first = icmp eq i32 %%tid, 0\n"
                    " call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
                    " br i1 %%first, label %%loop, label %%done\nloop:\n"
                    " %%i = phi i32 [ 0, %%entry ], [ %%j, %%loop ]\n"
                    " %%g = getelementptr i32, ptr addrspace(1) %%io, i32 %%i\n"
                    " %%s = getelementptr i32, ptr addrspace(3) @buffer, i32 %%i\n"
                    " %%v = load i32, ptr %s\n store i32 %%v, ptr %s\n"
                    " %%j = add i32 %%i, 1\n %%more = icmp ult i32 %%j, %d\n"
                    " br i1 %%more, label %%loop, label %%done\ndone:\n"
                    " call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n ret void\n}\n",
                    name, from, to, OP_SHARED_BYTES / 4);
}

static inline char *op_write_kernel(const op_run *run) {
  tl_strbuf text = {0};
  const char *args = strchr(run->signature, '(') + 1;
  int results = (int)(args - run->signature) - 1;
  tl_strbuf_appendf(&text, "@buffer = internal addrspace(3) global [%d x i8] undef, align 128\n", OP_SHARED_BYTES);
  if (results > 1) {
    tl_strbuf_append_c(&text, "%result = type {");
    for (int i = 0; i < results; i++) tl_strbuf_appendf(&text, "%s%s", i ? ", " : "", op_type(run->signature[i]));
    tl_strbuf_append_c(&text, "}\n");
  }
  const char *result = results > 1 ? "%result" : results ? op_type(run->signature[0]) : "void";
  tl_strbuf_appendf(&text, "declare %s @%s(", result, run->name);
  for (int i = 0; args[i] != ')'; i++)
    tl_strbuf_appendf(&text, "%s%s%s", i ? ", " : "", op_type(args[i]), args[i] == 'I' ? " immarg" : "");
  tl_strbuf_append_c(&text, ")\n");
  if (strcmp(run->name, "llvm.nvvm.read.ptx.sreg.tid.x"))
    tl_strbuf_append_c(&text, "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n");
  if (strcmp(run->name, "llvm.nvvm.barrier.cta.sync.aligned.all"))
    tl_strbuf_append_c(&text, "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n");
  op_write_move(&text, "fill", "addrspace(1) %g", "addrspace(3) %s");
  op_write_move(&text, "read_back", "addrspace(3) %s", "addrspace(1) %g");
  tl_strbuf_appendf(
      &text,
      "define ptx_kernel void @k(ptr addrspace(1) %%in, ptr addrspace(1) %%out, ptr addrspace(1) %%io) {\n"
      " call void @fill(ptr addrspace(1) %%io)\n"
      " %%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %%first = mul i32 %%tid, %d\n"
      " %%mine = getelementptr i64, ptr addrspace(1) %%in, i32 %%first\n"
      " %%theirs = getelementptr i64, ptr addrspace(1) %%out, i32 %%first\n",
      OP_SLOTS);
  op_write_loads(&text, args, run->constant);
  tl_strbuf_appendf(&text, " %scall %s @%s(", results ? "%r = " : "", result, run->name);
  for (int i = 0; args[i] != ')'; i++) {
    tl_strbuf_appendf(&text, "%s%s ", i ? ", " : "", op_type(args[i]));
    if (args[i] == 'I')
      tl_strbuf_appendf(&text, "%u", run->constant);
    else
      tl_strbuf_appendf(&text, "%%a%d", i);
  }
  tl_strbuf_append_c(&text, ")\n");
  op_write_stores(&text, run->signature, results);
  tl_strbuf_append_c(&text, " call void @read_back(ptr addrspace(1) %io)\n ret void\n}\n");
  return tl_strbuf_take(&text);
}

// Compiles once for run->name and launches; a second call with the same name and signature compiles again.
static inline tl_status op_try(op_run *run) {
  char *text = op_write_kernel(run);
  tl_emu_kernel *kernel = NULL;
  kernel_shape shape = {3, run->threads ? run->threads : 32, 0};
  tl_status status = create_from_text(text, "k", shape, &kernel);
  free(text);
  if (status) return status;
  uint64_t *in = tl_emu_alloc(sizeof run->in, 16), *out = tl_emu_alloc(sizeof run->out, 16);
  uint8_t *io = tl_emu_alloc(OP_SHARED_BYTES, 16);
  memcpy(in, run->in, sizeof run->in);
  memcpy(io, run->shared, OP_SHARED_BYTES);
  uint32_t grid[3] = {1, 1, 1};
  if (!run->options.threads) run->options.threads = 1;
  status = tl_emu_launch(kernel, grid, (void *[]){&in, &out, &io}, &run->options, NULL);
  memcpy(run->out, out, sizeof run->out);
  memcpy(run->shared, io, OP_SHARED_BYTES);
  tl_emu_free(in);
  tl_emu_free(out);
  tl_emu_free(io);
  tl_emu_kernel_destroy(kernel);
  return status;
}

static inline void op_must(op_run *run) {
  tl_status status = op_try(run);
  ck_assert_msg(!status, "%s: %s", run->name, tl_status_message(status));
}

static inline uint32_t op_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static inline float op_float(uint64_t slot) {
  uint32_t bits = (uint32_t)slot;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

// A fresh pseudo-random number; the same sequence in every run.
static inline uint32_t op_random(void) {
  static uint32_t state = 12345;
  state = state * 1664525u + 1013904223u;
  return state ^ state >> 15;
}

#endif
