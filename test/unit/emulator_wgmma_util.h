// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel around one form of wgmma, with operands placed in shared memory and expected sums, from the words and
// figures of the PTX ISA (wgmma, "Shared Memory Matrix Layout" and "Register Fragments") and not from the emulator's
// code.
#ifndef TL_TEST_UNIT_EMULATOR_WGMMA_UTIL_H
#define TL_TEST_UNIT_EMULATOR_WGMMA_UTIL_H

#include "emulator_util.h"
#include "llvm_backend/device/wgmma.h"
#include "support/dtype.h"
#include "support/strbuf.h"

enum { WG_THREADS = 128, WG_SHARED_BYTES = 98304, WG_B_AT = 32768, WG_MAX_REGISTERS = 132 };

typedef enum wg_mistake {
  WG_NONE,
  WG_NO_WAIT,
  WG_NO_COMMIT,
  WG_NO_FENCE,
  WG_NO_PROXY_FENCE,
  WG_NO_BARRIER,
  WG_USE_BEFORE_WAIT,    // adds 1 to register 0 (integers and floats) between wgmma and wait, and stores that
  WG_OVERWRITE,          // a thread writes to B between wgmma and wait
  WG_CHANGE_THEN_AGAIN,  // after the wait: change a register, multiply again without a fence
  WG_AGAIN_UNCHANGED     // after the wait: multiply again, registers untouched: needs no fence
} wg_mistake;

typedef struct wg_run {
  tl_wgmma_form form;
  int span_a, span_b;  // bytes of the swizzle; 16: none
  int step;            // instruction number within a span of K-major operands
  bool ignore_old;     // scale-d is false
  int times;           // the wgmma is executed so often in a row; 0: once
  bool groups;         // each of them is a group of its own
  wg_mistake mistake;
  int32_t threads;  // 0: 128
  tl_emu_options options;
  uint64_t spoil_a, spoil_b;  // exclusive-ored into the descriptors
  double a[64][32], b[256][32], c[64][256];
  uint32_t out[WG_THREADS][WG_MAX_REGISTERS];
} wg_run;

static inline uint32_t wg_random(void) {
  static uint32_t state = 99;
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

static inline tl_dtype wg_dtype(tl_wgmma_type type) {
  static const tl_dtype dtypes[] = {[TL_WGMMA_F16] = TL_DTYPE_F16,
                                    [TL_WGMMA_BF16] = TL_DTYPE_BF16,
                                    [TL_WGMMA_TF32] = TL_DTYPE_F32,
                                    [TL_WGMMA_E4M3] = TL_DTYPE_F8E4M3,
                                    [TL_WGMMA_E5M2] = TL_DTYPE_F8E5M2};
  return dtypes[type];
}

static inline void wg_encode(tl_wgmma_type type, double value, uint8_t *to) {
  if (type == TL_WGMMA_S8 || type == TL_WGMMA_U8)
    *to = (uint8_t)(int)value;
  else
    tl_dtype_store_float(wg_dtype(type), to, 0, value);
}

// Values whose sums are exact in every type, so that the order of adding does not matter.
static inline double wg_value(tl_wgmma_type type) {
  if (type == TL_WGMMA_S8) return (double)(wg_random() % 256) - 128;
  if (type == TL_WGMMA_U8) return (double)(wg_random() % 256);
  return (double)(wg_random() % 7) - 3;
}

static inline void wg_fill(wg_run *run) {
  int k = tl_wgmma_k(&run->form);
  for (int m = 0; m < 64; m++)
    for (int i = 0; i < k; i++) run->a[m][i] = wg_value(run->form.a);
  for (int n = 0; n < run->form.n; n++)
    for (int i = 0; i < k; i++) run->b[n][i] = wg_value(run->form.b);
  for (int m = 0; m < 64; m++)
    for (int n = 0; n < run->form.n; n++)
      run->c[m][n] =
          run->form.saturate ? (wg_random() & 1 ? 2147483000.0 : -2147483000.0) : (double)(wg_random() % 64) - 32;
}

// ---- shared memory

// A tensor copy with a swizzle lays row r of a box, `span` bytes, at r × span, its 16-byte pieces permuted: piece c of
// row r is at c ^ (r mod 8) for 128 bytes, c ^ (r / 2 mod 4) for 64, c ^ (r / 4 mod 2) for 32.
static inline int wg_piece(int span, int row, int piece) {
  return span == 128 ? piece ^ row % 8 : span == 64 ? piece ^ row / 2 % 4 : span == 32 ? piece ^ row / 4 % 2 : piece;
}

typedef struct wg_strides {
  int leading, stride;
} wg_strides;

static inline wg_strides wg_strides_of(int span, bool transposed, int extent) {
  int groups = extent / 8;
  if (span == 16 && !transposed) return (wg_strides){groups * 128 + 256, 128};  // halves of K behind all rows
  if (span == 16) return (wg_strides){128, 272};                                // eight k, then the next eight rows
  if (!transposed) return (wg_strides){16, 8 * span};
  return (wg_strides){16 * span, 8 * span};  // two groups of eight k, then the next rows
}

// Where element `row` (of A, or column of B), `k` of `bytes` bytes is, from the start of the operand's memory.
static inline int wg_place(int span, bool transposed, int extent, int row, int k, int bytes, int step) {
  wg_strides s = wg_strides_of(span, transposed, extent);
  if (span == 16 && !transposed) return row / 8 * s.stride + row % 8 * 16 + k * bytes / 16 * s.leading + k * bytes % 16;
  if (span == 16) return row / 8 * s.stride + k / 8 * s.leading + k % 8 * 16 + row % 8 * bytes;
  if (!transposed) {
    int at = step * 32 + k * bytes;
    return row / 8 * s.stride + row % 8 * span + wg_piece(span, row % 8, at / 16) * 16 + at % 16;
  }
  int across = span / bytes, at = row % across * bytes;
  return row / across * s.leading + k / 8 * s.stride + k % 8 * span + wg_piece(span, k % 8, at / 16) * 16 + at % 16;
}

static inline uint64_t wg_descriptor(int span, bool transposed, int extent, int start) {
  wg_strides s = wg_strides_of(span, transposed, extent);
  uint64_t mode = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
  return (uint64_t)start >> 4 | (uint64_t)s.leading >> 4 << 16 | (uint64_t)s.stride >> 4 << 32 | mode << 62;
}

static inline void wg_place_operands(const wg_run *run, uint8_t *image) {
  const tl_wgmma_form *f = &run->form;
  int bytes = tl_wgmma_type_bits(f->a) / 8, k = tl_wgmma_k(f);
  memset(image, 0, WG_SHARED_BYTES);
  for (int i = 0; i < k; i++) {
    for (int m = 0; m < 64 && !f->a_in_registers; m++)
      wg_encode(f->a, run->a[m][i], image + wg_place(run->span_a, f->transpose_a, 64, m, i, bytes, run->step));
    for (int n = 0; n < f->n; n++)
      wg_encode(f->b, run->b[n][i],
                image + WG_B_AT + wg_place(run->span_b, f->transpose_b, f->n, n, i, bytes, run->step));
  }
}

// ---- registers

// Who holds element (row, column) of D, and in which register. PTX ISA, figure "WGMMA .m64nNk16 register fragment
// layout for accumulator matrix D": a warp has 16 rows; a group of four lanes a row and the eighth below; pairs go
// along the row.
static inline void wg_owner(int row, int column, int *thread, int *element) {
  *thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  *element = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
}

static inline uint32_t wg_sum_bits(tl_wgmma_register type, double value) {
  if (type == TL_WGMMA_SUM_S32) return (uint32_t)(int64_t)value;
  uint32_t bits = 0;
  tl_dtype_store_float(type == TL_WGMMA_SUM_F16 ? TL_DTYPE_F16 : TL_DTYPE_F32, &bits, 0, value);
  return bits;
}

// Registers of all threads for the matrix: pairs of f16 in one.
static inline void wg_registers(const wg_run *run, double (*matrix)[256], uint32_t (*out)[WG_MAX_REGISTERS]) {
  for (int row = 0; row < 64; row++)
    for (int column = 0; column < run->form.n; column++) {
      int thread, element;
      wg_owner(row, column, &thread, &element);
      uint32_t bits = wg_sum_bits(run->form.sum, matrix[row][column]);
      if (run->form.sum == TL_WGMMA_SUM_F16)
        memcpy((uint16_t *)out[thread] + element, &bits, 2);
      else
        out[thread][element] = bits;
    }
}

// A in registers. Figures "register fragment layout for matrix A": bytes 4 q … of the lower half of the row's K are in
// register 0 of the lane q of the row's four, of the eighth row below in 1, of the upper half in 2 and 3.
static inline void wg_a_registers(const wg_run *run, uint32_t (*out)[WG_MAX_REGISTERS]) {
  int bytes = tl_wgmma_type_bits(run->form.a) / 8, k = tl_wgmma_k(&run->form), n = tl_wgmma_sum_registers(&run->form);
  for (int row = 0; row < 64; row++)
    for (int i = 0; i < k; i++) {
      int at = i * bytes, thread = row / 16 * 32 + row % 8 * 4 + at % 16 / 4, index = at / 16 * 2 + row % 16 / 8;
      wg_encode(run->form.a, run->a[row][i], (uint8_t *)&out[thread][n + index] + at % 4);
    }
}

static inline void wg_expected(const wg_run *run, double (*sums)[256]) {
  const tl_wgmma_form *f = &run->form;
  int times = run->times ? run->times : 1;
  double sign = (f->negate_a ? -1 : 1) * (f->negate_b ? -1 : 1);
  for (int m = 0; m < 64; m++)
    for (int n = 0; n < f->n; n++) {
      double sum = run->ignore_old ? 0 : run->c[m][n], product = 0;
      for (int i = 0; i < tl_wgmma_k(f); i++) product += run->a[m][i] * run->b[n][i];
      for (int t = 0; t < times; t++) {
        if (run->ignore_old) sum = 0;
        sum += sign * product;
        if (f->saturate) sum = sum > 2147483647.0 ? 2147483647.0 : sum < -2147483648.0 ? -2147483648.0 : sum;
      }
      sums[m][n] = sum;
    }
}

// ---- the kernel

static inline void wg_write_multiply(tl_strbuf *text, const wg_run *run, const char *type, const char *name,
                                     int round) {
  int n = tl_wgmma_sum_registers(&run->form);
  tl_strbuf_appendf(text, " %%d%d = call %%sums @%s(", round + 1, name);
  for (int i = 0; i < n; i++) tl_strbuf_appendf(text, "%s %%c%d_%d, ", type, round, i);
  if (run->form.a_in_registers)
    tl_strbuf_append_c(text, "i32 %a0, i32 %a1, i32 %a2, i32 %a3");
  else
    tl_strbuf_append_c(text, "i64 %da");
  tl_strbuf_appendf(text, ", i64 %%db, i1 %s)\n", run->ignore_old ? "false" : "true");
  for (int i = 0; i < n; i++)
    tl_strbuf_appendf(text, " %%c%d_%d = extractvalue %%sums %%d%d, %d\n", round + 1, i, round + 1, i);
}

static inline void wg_write_wait(tl_strbuf *text, const char *type, const char *wait, int n, int round) {
  tl_strbuf_appendf(text, " %%d%d = call %%sums @%s(", round + 1, wait);
  for (int i = 0; i < n; i++) tl_strbuf_appendf(text, "%s%s %%c%d_%d", i ? ", " : "", type, round, i);
  tl_strbuf_append_c(text, ")\n");
  for (int i = 0; i < n; i++)
    tl_strbuf_appendf(text, " %%c%d_%d = extractvalue %%sums %%d%d, %d\n", round + 1, i, round + 1, i);
}

static inline void wg_write_change(tl_strbuf *text, const wg_run *run, const char *type, int n, int round) {
  for (int i = 0; i < n; i++) {
    if (i)
      tl_strbuf_appendf(text, " %%c%d_%d = bitcast %s %%c%d_%d to %s\n", round + 1, i, type, round, i, type);
    else if (run->form.sum == TL_WGMMA_SUM_F32)
      tl_strbuf_appendf(text, " %%c%d_0 = fadd float %%c%d_0, 1.0\n", round + 1, round);
    else
      tl_strbuf_appendf(text, " %%c%d_0 = add i32 %%c%d_0, 1\n", round + 1, round);
  }
}

static inline void wg_write_head(tl_strbuf *text, const wg_run *run, const char *type, const char *name,
                                 const char *wait) {
  int n = tl_wgmma_sum_registers(&run->form);
  tl_strbuf_appendf(text, "@buffer = internal addrspace(3) global [%d x i8] undef, align 1024\n%%sums = type {",
                    WG_SHARED_BYTES);
  for (int i = 0; i < n; i++) tl_strbuf_appendf(text, "%s%s", i ? ", " : "", type);
  tl_strbuf_appendf(text, "}\ndeclare %%sums @%s(", name);
  for (int i = 0; i < n; i++) tl_strbuf_appendf(text, "%s, ", type);
  tl_strbuf_appendf(text, "%s, i64, i1)\ndeclare %%sums @%s(", run->form.a_in_registers ? "i32, i32, i32, i32" : "i64",
                    wait);
  for (int i = 0; i < n; i++) tl_strbuf_appendf(text, "%s%s", i ? ", " : "", type);
  tl_strbuf_append_c(text,
                     ")\ndeclare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
                     "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
                     "declare void @llvm.nvvm.fence.proxy.async.shared_cta()\n"
                     "declare void @llvm.nvvm.wgmma.fence.sync.aligned()\n"
                     "declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n"
                     "declare void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64)\n"
                     "define ptx_kernel void @k(ptr addrspace(1) %image, ptr addrspace(1) %in, ptr addrspace(1) %out, "
                     "i64 %sa, i64 %sb) {\nentry:\n"
                     " %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n br label %loop\nloop:\n"
                     " %i = phi i32 [ %tid, %entry ], [ %j, %loop ]\n"
                     " %g = getelementptr i32, ptr addrspace(1) %image, i32 %i\n"
                     " %s = getelementptr i32, ptr addrspace(3) @buffer, i32 %i\n"
                     " %v = load i32, ptr addrspace(1) %g\n store i32 %v, ptr addrspace(3) %s\n");
  tl_strbuf_appendf(text,
                    " %%j = add i32 %%i, %d\n %%more = icmp ult i32 %%j, %d\n"
                    " br i1 %%more, label %%loop, label %%done\ndone:\n",
                    run->threads ? run->threads : WG_THREADS, WG_SHARED_BYTES / 4);
}

static inline void wg_write_operands(tl_strbuf *text, const wg_run *run, const char *type) {
  int n = tl_wgmma_sum_registers(&run->form);
  tl_strbuf_appendf(text,
                    " %%base = ptrtoint ptr addrspace(3) @buffer to i64\n %%low = and i64 %%base, 262143\n"
                    " %%start = lshr i64 %%low, 4\n %%da = add i64 %%sa, %%start\n %%db = add i64 %%sb, %%start\n"
                    " %%first = mul i32 %%tid, %d\n %%mine = getelementptr i32, ptr addrspace(1) %%in, i32 %%first\n"
                    " %%theirs = getelementptr i32, ptr addrspace(1) %%out, i32 %%first\n",
                    WG_MAX_REGISTERS);
  for (int i = 0; i < n + (run->form.a_in_registers ? 4 : 0); i++) {
    tl_strbuf_appendf(text, " %%p%d = getelementptr i32, ptr addrspace(1) %%mine, i32 %d\n", i, i);
    if (i < n)
      tl_strbuf_appendf(text, " %%c0_%d = load %s, ptr addrspace(1) %%p%d\n", i, type, i);
    else
      tl_strbuf_appendf(text, " %%a%d = load i32, ptr addrspace(1) %%p%d\n", i - n, i);
  }
}

#define WG_COMMIT " call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n"

static inline char *wg_write_kernel(const wg_run *run) {
  const char *type = run->form.sum == TL_WGMMA_SUM_F32 ? "float" : "i32";
  int n = tl_wgmma_sum_registers(&run->form), times = run->times ? run->times : 1, at = 0;
  tl_strbuf text = {0}, name = {0}, wait = {0};
  tl_wgmma_form_name(&run->form, &name);
  tl_wgmma_wait pin = {.num_runs = 1, .runs = {{n, run->form.sum}}};
  tl_wgmma_wait_name(&pin, &wait);
  wg_write_head(&text, run, type, tl_strbuf_c(&name), tl_strbuf_c(&wait));
  if (run->mistake != WG_NO_PROXY_FENCE)
    tl_strbuf_append_c(&text, " call void @llvm.nvvm.fence.proxy.async.shared_cta()\n");
  if (run->mistake != WG_NO_BARRIER)
    tl_strbuf_append_c(&text, " call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n");
  wg_write_operands(&text, run, type);
  if (run->mistake != WG_NO_FENCE) tl_strbuf_append_c(&text, " call void @llvm.nvvm.wgmma.fence.sync.aligned()\n");
  for (int t = 0; t < times; t++) {
    wg_write_multiply(&text, run, type, tl_strbuf_c(&name), at++);
    if (run->groups) tl_strbuf_append_c(&text, WG_COMMIT);
  }
  if (!run->groups && run->mistake != WG_NO_COMMIT) tl_strbuf_append_c(&text, WG_COMMIT);
  if (run->groups) tl_strbuf_append_c(&text, " call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 1)\n");
  if (run->mistake == WG_USE_BEFORE_WAIT) wg_write_change(&text, run, type, n, at++);
  if (run->mistake == WG_OVERWRITE)
    tl_strbuf_appendf(&text,
                      " %%late = getelementptr i8, ptr addrspace(3) @buffer, i32 %d\n"
                      " store i32 0, ptr addrspace(3) %%late\n",
                      WG_B_AT);
  if (run->mistake != WG_NO_WAIT) wg_write_wait(&text, type, tl_strbuf_c(&wait), n, at++);
  if (run->mistake == WG_CHANGE_THEN_AGAIN) wg_write_change(&text, run, type, n, at++);
  if (run->mistake == WG_CHANGE_THEN_AGAIN || run->mistake == WG_AGAIN_UNCHANGED) {
    wg_write_multiply(&text, run, type, tl_strbuf_c(&name), at++);
    tl_strbuf_append_c(&text, WG_COMMIT);
    wg_write_wait(&text, type, tl_strbuf_c(&wait), n, at++);
  }
  for (int i = 0; i < n; i++)
    tl_strbuf_appendf(&text,
                      " %%q%d = getelementptr i32, ptr addrspace(1) %%theirs, i32 %d\n"
                      " store %s %%c%d_%d, ptr addrspace(1) %%q%d\n",
                      i, i, type, at, i, i);
  tl_strbuf_append_c(&text, " ret void\n}\n");
  tl_strbuf_fini(&name);
  tl_strbuf_fini(&wait);
  return tl_strbuf_take(&text);
}

static inline tl_status wg_try(wg_run *run, tl_emu_stats *stats) {
  char *text = wg_write_kernel(run);
  const tl_wgmma_form *f = &run->form;
  tl_emu_kernel *kernel = NULL;
  kernel_shape shape = {
      .num_params = 5, .threads = run->threads ? run->threads : WG_THREADS, .checks = run->options.checks};
  tl_status status = create_from_text(text, "k", shape, &kernel);
  free(text);
  if (status) return status;
  uint8_t *image = tl_emu_alloc(WG_SHARED_BYTES, 16);
  uint32_t(*in)[WG_MAX_REGISTERS] = tl_emu_alloc(sizeof run->out, 16),
  (*out)[WG_MAX_REGISTERS] = tl_emu_alloc(sizeof run->out, 16);
  memset(in, 0, sizeof run->out);
  memset(out, 0, sizeof run->out);
  wg_place_operands(run, image);
  wg_registers(run, run->c, in);
  if (f->a_in_registers) wg_a_registers(run, in);
  int start_a = run->span_a > 16 && !f->transpose_a ? run->step * 32 : 0;
  int start_b = WG_B_AT + (run->span_b > 16 && !f->transpose_b ? run->step * 32 : 0);
  uint64_t a = wg_descriptor(run->span_a, f->transpose_a, 64, start_a) ^ run->spoil_a;
  uint64_t b = wg_descriptor(run->span_b, f->transpose_b, f->n, start_b) ^ run->spoil_b;
  uint32_t grid[3] = {1, 1, 1};
  if (!run->options.threads) run->options.threads = 1;
  status = tl_emu_launch(kernel, grid, (void *[]){&image, &in, &out, &a, &b}, &run->options, stats);
  memcpy(run->out, out, sizeof run->out);
  tl_emu_free(image);
  tl_emu_free(in);
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
  return status;
}

// Whether the registers hold exactly the expected sums.
static inline bool wg_is_right(const wg_run *run) {
  static double sums[64][256];
  static uint32_t want[WG_THREADS][WG_MAX_REGISTERS];
  memset(want, 0, sizeof want);
  wg_expected(run, sums);
  wg_registers(run, sums, want);
  return !memcmp(want, run->out, sizeof want);
}

#endif
