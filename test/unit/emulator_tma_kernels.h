// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For tests of tensor and bulk copies: kernels as IR text around one op, and maps at random.
#ifndef TL_TEST_UNIT_EMULATOR_TMA_KERNELS_H
#define TL_TEST_UNIT_EMULATOR_TMA_KERNELS_H

#include <stdarg.h>

#include "emulator_tma_util.h"
#include "emulator_util.h"
#include "support/strbuf.h"

enum { TMA_SHARED = 1 << 16, TMA_THREADS = 64, TMA_PARAMS = 12 };

// Parameters of every kernel here.
typedef struct tma_launch {
  tl_emu_tensormap map;
  uint8_t *io;  // TMA_SHARED bytes: shared memory before or after
  uint32_t offset, expect;
  int32_t coords[5];
  uint32_t offsets[3];
} tma_launch;

// Declarations, the function's head, and in %dst, %dst7 the address in shared memory. Thread 0 has %first.
static inline void tma_write_head(tl_strbuf *text) {
  tl_strbuf_appendf(
      text,
      "@sm = internal addrspace(3) global [%d x i8] undef, align 1024\n"
      "@bar = internal addrspace(3) global i64 undef, align 8\n"
      "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
      "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
      "declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)\n"
      "declare void @llvm.nvvm.fence.mbarrier_init.release.cluster()\n"
      "declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)\n"
      "declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)\n"
      "declare void @llvm.nvvm.fence.proxy.async.shared_cta()\n"
      "declare void @llvm.nvvm.cp.async.bulk.commit.group()\n"
      "declare void @llvm.nvvm.cp.async.bulk.wait.group(i32 immarg)\n"
      "declare void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 immarg)\n"
      "define ptx_kernel void @k(ptr byval([128 x i8]) align 64 %%map, ptr addrspace(1) %%io, i32 %%off, i32 %%expect,"
      " i32 %%c0, i32 %%c1, i32 %%c2, i32 %%c3, i32 %%c4, i16 %%o0, i16 %%o1, i16 %%o2) {\nentry:\n"
      " %%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %%first = icmp eq i32 %%tid, 0\n"
      " %%dst = getelementptr i8, ptr addrspace(3) @sm, i32 %%off\n"
      " %%dst7 = addrspacecast ptr addrspace(3) %%dst to ptr addrspace(7)\n",
      TMA_SHARED);
}

// All threads move the bytes of @sm between `memory` and shared memory; from block <name>.before to block <name>.done.
static inline void tma_write_move(tl_strbuf *text, const char *name, const char *memory, bool to_shared) {
  const char *shared = "addrspace(3) %s.", *global = "addrspace(1) %g.";
  tl_strbuf_appendf(text,
                    " br label %%%s\n%s:\n %%i.%s = phi i32 [ %%tid, %%%s.before ], [ %%j.%s, %%%s ]\n"
                    " %%g.%s = getelementptr i64, ptr addrspace(1) %s, i32 %%i.%s\n"
                    " %%s.%s = getelementptr i64, ptr addrspace(3) @sm, i32 %%i.%s\n"
                    " %%v.%s = load i64, ptr %s%s\n store i64 %%v.%s, ptr %s%s\n"
                    " %%j.%s = add i32 %%i.%s, %d\n %%more.%s = icmp ult i32 %%j.%s, %d\n"
                    " br i1 %%more.%s, label %%%s, label %%%s.done\n%s.done:\n",
                    name, name, name, name, name, name, name, memory, name, name, name, name,
                    to_shared ? global : shared, name, name, to_shared ? shared : global, name, name, name, TMA_THREADS,
                    name, name, TMA_SHARED / 8, name, name, name, name);
}

// A load: `call` is the call of the op.
static inline char *tma_load_kernel(const char *declaration, const char *call) {
  tl_strbuf text = {0};
  tl_strbuf_appendf(&text, "%s\n", declaration);
  tma_write_head(&text);
  tl_strbuf_appendf(
      &text,
      " br i1 %%first, label %%init, label %%meet\ninit:\n"
      " call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)\n"
      " call void @llvm.nvvm.fence.mbarrier_init.release.cluster()\n br label %%meet\nmeet:\n"
      " call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
      " br i1 %%first, label %%issue, label %%wait\nissue:\n"
      " %%token = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @bar, i32 "
      "%%expect)\n"
      " %s\n br label %%wait\nwait:\n"
      " %%ok = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 0)\n"
      " br i1 %%ok, label %%copy.before, label %%wait\ncopy.before:\n",
      call);
  tma_write_move(&text, "copy", "%io", false);
  tl_strbuf_append_c(&text, " ret void\n}\n");
  return tl_strbuf_take(&text);
}

// A store: shared memory is filled first; `call` is the call of the op, `after` what follows it in thread 0.
static inline char *tma_store_kernel(const char *declaration, const char *call, const char *after) {
  tl_strbuf text = {0};
  tl_strbuf_appendf(&text, "%s\n", declaration);
  tma_write_head(&text);
  tl_strbuf_append_c(&text, " br label %fill.before\nfill.before:\n");
  tma_write_move(&text, "fill", "%io", true);
  tl_strbuf_appendf(&text,
                    " call void @llvm.nvvm.fence.proxy.async.shared_cta()\n"
                    " call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
                    " br i1 %%first, label %%issue, label %%done\nissue:\n %s\n %s\n br label %%done\ndone:\n"
                    " ret void\n}\n",
                    call, after);
  return tl_strbuf_take(&text);
}

#define TMA_WAIT_ALL                                    \
  "call void @llvm.nvvm.cp.async.bulk.commit.group()\n" \
  " call void @llvm.nvvm.cp.async.bulk.wait.group(i32 0)"

static const char *const tma_coordinates[] = {"",
                                              "i32 %c0",
                                              "i32 %c0, i32 %c1",
                                              "i32 %c0, i32 %c1, i32 %c2",
                                              "i32 %c0, i32 %c1, i32 %c2, i32 %c3",
                                              "i32 %c0, i32 %c1, i32 %c2, i32 %c3, i32 %c4"};
static const char *const tma_offsets[] = {"", "", "", ", i16 %o0", ", i16 %o0, i16 %o1", ", i16 %o0, i16 %o1, i16 %o2"};

// "declare void @name(types)" for a call text "call void @name(operands)", whose operands are "type value".
static inline void tma_declare(const char *call, tl_strbuf *out) {
  const char *at = strchr(call, '@'), *open = strchr(at, '(');
  tl_strbuf_appendf(out, "declare void %.*s(", (int)(open - at), at);
  const char *end = open + 1;
  for (int depth = 1; depth; end++) depth += *end == '(' ? 1 : *end == ')' ? -1 : 0;
  end--;
  for (const char *p = open + 1; p < end;) {
    // An operand ends at a comma outside parentheses; its value is the last word.
    const char *stop = p;
    for (int depth = 0; stop < end && (depth || *stop != ','); stop++)
      depth += *stop == '(' ? 1 : *stop == ')' ? -1 : 0;
    const char *value = stop;
    while (value[-1] != ' ') value--;
    tl_strbuf_appendf(out, "%s%.*s", p > open + 1 ? ", " : "", (int)(value - 1 - p), p);
    p = stop + 1;
    while (p < end && *p == ' ') p++;
  }
  tl_strbuf_append_c(out, ")");
}

// What kernels are checked for from here on. Those that load read all of shared memory in the end, also what nobody
// wrote.
enum { TMA_CHECK_LOADS = TL_EMU_SANITIZE_ALL & ~TL_EMU_SANITIZE_INIT };
static uint32_t tma_checks;

static inline tl_emu_kernel *tma_compile(char *text) {
  tl_emu_kernel *kernel = NULL;
  tl_status status =
      create_from_text(text, "k", (kernel_shape){TMA_PARAMS, TMA_THREADS, .checks = tma_checks}, &kernel);
  ck_assert_msg(!status, "%s\n%s", tl_status_message(status), text);
  free(text);
  return kernel;
}

// Tensor ops by rank. `form`: "g2s", "g2s.cta", "s2g", "reduce.add".
static inline tl_emu_kernel *tma_create(const char *form, uint32_t rank, bool is_im2col) {
  char call[512];
  const char *mode = is_im2col ? "im2col" : "tile", *offsets = is_im2col ? tma_offsets[rank] : "";
  bool is_load = !strncmp(form, "g2s", 3), is_cta = !strcmp(form, "g2s.cta");
  int n = snprintf(call, sizeof call, "call void @llvm.nvvm.cp.async.bulk.tensor.%s.%s.%ud(", form, mode, rank);
  const char *operands =
      is_cta ? "ptr addrspace(3) %dst, ptr addrspace(3) @bar" : "ptr addrspace(7) %dst7, ptr addrspace(3) @bar";
  if (!is_load) operands = "ptr addrspace(3) %dst";
  snprintf(call + n, sizeof call - (size_t)n, "%s, ptr %%map, %s%s, %s)", operands, tma_coordinates[rank],
           is_load ? offsets : "", is_load && !is_cta ? "i16 0, i64 0, i1 false, i1 false, i32 0" : "i64 0, i1 false");
  tl_strbuf declaration = {0};
  tma_declare(call, &declaration);
  char *text = is_load ? tma_load_kernel(tl_strbuf_c(&declaration), call)
                       : tma_store_kernel(tl_strbuf_c(&declaration), call, TMA_WAIT_ALL);
  tl_strbuf_fini(&declaration);
  return tma_compile(text);
}

static inline tl_status tma_run(tl_emu_kernel *kernel, tma_launch *launch, const tl_emu_options *options) {
  uint32_t grid[3] = {1, 1, 1};
  tl_emu_options checked = *options;
  checked.checks = tma_checks;
  int32_t *c = launch->coords;
  uint16_t o[3] = {(uint16_t)launch->offsets[0], (uint16_t)launch->offsets[1], (uint16_t)launch->offsets[2]};
  return tl_emu_launch(kernel, grid,
                       (void *[]){&launch->map, &launch->io, &launch->offset, &launch->expect, &c[0], &c[1], &c[2],
                                  &c[3], &c[4], &o[0], &o[1], &o[2]},
                       &checked, NULL);
}

static inline tma_launch tma_launch_of(const tma_case *c, uint32_t box_bytes, uint8_t *io) {
  tma_launch launch = {.io = io, .offset = c->shared, .expect = box_bytes};
  expect_ok(tl_emu_tensormap_encode(&c->map, &launch.map));
  memcpy(launch.coords, c->coords, sizeof launch.coords);
  for (int i = 0; i < 3; i++) launch.offsets[i] = c->offsets[i];
  return launch;
}

#endif
