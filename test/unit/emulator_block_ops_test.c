// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barriers that reduce, exit, what blocks leave behind, tensor maps that a kernel changes, metadata of mma.sp: what
// goes wrong, and what the vectors cannot show.
#include "emulator/ops/tensormap.h"
#include "emulator/sanitize/findings.h"
#include "emulator_util.h"

// `blocks` run one after the other in one place. The kernel gets a map by value, and io: `words` words, 128-byte
// aligned, the first 32 of which hold the map too.
static tl_status run_blocks(const char *body, uint32_t blocks, uint32_t threads, uint32_t checks, uint32_t *out,
                            size_t words) {
  static const char head[] =
      "@cell = internal addrspace(3) global [64 x i32] undef, align 128\n"
      "@bar = internal addrspace(3) global i64 undef, align 8\n"
      "declare void @llvm.nvvm.exit() noreturn\n"
      "define ptx_kernel void @k(ptr byval([128 x i8]) align 64 %map, ptr addrspace(1) %io) {\nentry:\n"
      " %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %mine = getelementptr i32, ptr addrspace(1) %io, i32 %tid\n";
  tl_strbuf text = {0};
  tl_strbuf_appendf(&text, "%s%s}\n", head, body);
  tl_emu_kernel *kernel = NULL;
  tl_status status = create_from_text(
      tl_strbuf_c(&text), "k", (kernel_shape){.num_params = 2, .threads = (int32_t)threads, .checks = checks}, &kernel);
  tl_strbuf_fini(&text);
  if (status) return status;
  uint32_t grid[3] = {blocks, 1, 1}, *io = tl_emu_alloc(words * sizeof *io, 128);
  memset(io, 0, words * sizeof *io);
  tl_tensormap_params params = {.type = TL_TENSORMAP_F32,
                                .rank = 2,
                                .address = io,
                                .dims = {16, 2},
                                .strides = {64},
                                .box = {8, 2},
                                .element_strides = {1, 1}};
  tl_emu_tensormap map;
  expect_ok(tl_emu_tensormap_encode(&params, &map));
  memcpy(io, &map, sizeof map);
  tl_emu_options options = {.threads = 1, .checks = checks};
  status = tl_emu_launch(kernel, grid, (void *[]){&map, &io}, &options, NULL);
  if (out) memcpy(out, io, words * sizeof *io);
  tl_emu_free(io);
  tl_emu_kernel_destroy(kernel);
  return status;
}

static tl_status run_text(const char *body, uint32_t threads, uint32_t checks, uint32_t *out, size_t words) {
  return run_blocks(body, 1, threads, checks, out, words);
}

#define STORE(value) " store i32 " value ", ptr addrspace(1) %mine\n ret void\n"

// 40 threads: the second warp is short, and its missing lanes have no vote.
START_TEST(reductions_of_short_warps) {
  static const struct {
    const char *body;
    uint32_t want;
  } cases[] = {
      {" %p = icmp ult i32 %tid, 40\n %r = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 %p)\n"
       " %v = zext i1 %r to i32\n" STORE("%v"),
       1},
      {" %p = icmp ult i32 %tid, 39\n %r = call i1 @llvm.nvvm.barrier.cta.red.and.all(i32 0, i1 %p)\n"
       " %v = zext i1 %r to i32\n" STORE("%v"),
       0},
      {" %p = icmp ugt i32 %tid, 38\n %r = call i1 @llvm.nvvm.barrier.cta.red.or.all(i32 0, i1 %p)\n"
       " %v = zext i1 %r to i32\n" STORE("%v"),
       1},
      {" %r = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.count(i32 2, i32 64, i1 true)\n" STORE("%r"), 40},
      {" %r = call i32 @llvm.nvvm.barrier.cta.red.popc.all(i32 2, i1 true)\n" STORE("%r"), 40},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t out[64];
    expect_ok(run_text(cases[i].body, 40, TL_EMU_SANITIZE_ALL, out, 64));
    for (int t = 0; t < 40; t++) ck_assert_uint_eq(out[t], cases[i].want);
  }
}
END_TEST

// A reduction orders as a barrier does, and each phase has a result of its own.
START_TEST(reductions_order) {
  static const char body[] =
      " %c = getelementptr i32, ptr addrspace(3) @cell, i32 %tid\n %w = xor i32 %tid, 32\n"
      " %d = getelementptr i32, ptr addrspace(3) @cell, i32 %w\n store i32 %tid, ptr addrspace(3) %c\n"
      " %p = icmp ult i32 %tid, 3\n %r = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %p)\n"
      " %q = icmp ult i32 %tid, 50\n %s = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %q)\n"
      " %o = load i32, ptr addrspace(3) %d\n %r1 = mul i32 %r, 10000\n %s1 = mul i32 %s, 100\n"
      " %a = add i32 %r1, %s1\n %b = add i32 %a, %o\n" STORE("%b");
  uint32_t out[64];
  expect_ok(run_text(body, 64, TL_EMU_SANITIZE_ALL, out, 64));
  for (uint32_t t = 0; t < 64; t++) ck_assert_uint_eq(out[t], 35000 + (t ^ 32));
}
END_TEST

// A warp that exits, by itself or out of a function; the others meet at barriers that count without it.
START_TEST(exit_ends_threads) {
  static const char body[] =
      " %leaves = icmp ult i32 %tid, 32\n br i1 %leaves, label %out, label %stay\nout:\n"
      " store i32 7, ptr addrspace(1) %mine\n call void @llvm.nvvm.exit()\n unreachable\nstay:\n"
      " call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 32)\n" STORE("9");
  uint32_t out[64];
  expect_ok(run_text(body, 64, TL_EMU_SANITIZE_ALL, out, 64));
  for (int t = 0; t < 64; t++) ck_assert_uint_eq(out[t], t < 32 ? 7 : 9);
}
END_TEST

// ---- what a block leaves is not there for the next one

#define CTA " %cta = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n %first = icmp eq i32 %cta, 0\n"

START_TEST(blocks_begin_anew) {
  static const char *const bodies[] = {
      // An arrival at a barrier that stays open: the next block's says another count.
      CTA
      " %is = icmp ult i32 %tid, 32\n br i1 %is, label %do, label %end\ndo:\n %c = select i1 %first, i32 64, i32 96\n"
      " call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 1, i32 %c)\n br label %end\nend:\n ret void\n",
      // An arrival at the cluster's barrier, without a wait.
      " call void @llvm.nvvm.barrier.cluster.arrive()\n ret void\n",
      // An mbarrier that is not invalidated.
      (" %f = icmp eq i32 %tid, 0\n br i1 %f, label %do, label %end\ndo:\n"
       " call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)\n br label %end\nend:\n ret void\n")};
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) expect_ok(run_blocks(bodies[i], 2, 64, 0, NULL, 64));
}
END_TEST

// A copy that nobody waited for does not land in the next block.
START_TEST(copies_end_with_their_block) {
  static const char body[] = CTA
      " %c = getelementptr i32, ptr addrspace(3) @cell, i32 %tid\n br i1 %first, label %leave, label %stay\nleave:\n"
      " call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %c, ptr addrspace(1) %mine)\n ret void\n"
      "stay:\n store i32 5, ptr addrspace(3) %c\n call void @llvm.nvvm.cp.async.wait.all()\n"
      " %v = load volatile i32, ptr addrspace(3) %c\n" STORE("%v");
  uint32_t out[64];
  expect_ok(run_blocks(body, 2, 64, 0, out, 64));
  for (int t = 0; t < 64; t++) ck_assert_uint_eq(out[t], 5);
}
END_TEST

// ---- mistakes
#define FIRST(body) \
  " %f = icmp eq i32 %tid, 0\n br i1 %f, label %do, label %end\ndo:\n" body " br label %end\nend:\n ret void\n"
#define REPLACE(field, operands) \
  FIRST(" call void @llvm.nvvm.tensormap.replace." field ".p1(ptr addrspace(1) %io" operands ")\n")
#define RELEASE "call void @llvm.nvvm.fence.proxy.tensormap_generic.release.gpu()\n "
#define ACQUIRE "call void @llvm.nvvm.fence.proxy.tensormap_generic.acquire.gpu(ptr %far, i32 128)\n "
#define USE " %far = addrspacecast ptr addrspace(1) %io to ptr\n " RELEASE
#define LOAD "call void @llvm.nvvm.cp.async.bulk.tensor.prefetch.tile.2d(ptr %far, i32 0, i32 0, i64 0, i1 false)\n"

static const struct {
  const char *body, *report;  // NULL: it is right
  uint32_t checks;
} mistakes[] = {
    {" %is = icmp ult i32 %tid, 32\n br i1 %is, label %a, label %b\na:\n"
     " %r = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 0, i1 true)\n br label %end\nb:\n"
     " call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n br label %end\nend:\n ret void\n",
     "barrier 0 has threads waiting at llvm.nvvm.barrier.cta.red.or.aligned.all, which does not reduce in the same way",
     0},
    {" %is = icmp ult i32 %tid, 32\n br i1 %is, label %a, label %b\na:\n"
     " %r = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 0, i1 true)\n br label %end\nb:\n"
     " %s = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 true)\n br label %end\nend:\n ret void\n",
     "which does not reduce in the same way", 0},
    // The first warp leaves: the barrier of all threads waits for it.
    {" %is = icmp ult i32 %tid, 32\n br i1 %is, label %a, label %b\na:\n"
     " call void @llvm.nvvm.exit()\n unreachable\nb:\n"
     " call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n ret void\n",
     "deadlock, no thread can go on", 0},
    {REPLACE("rank", ", i32 1"), NULL, TL_EMU_SANITIZE_ALL},
    {REPLACE("rank", ", i32 5"), "rank is 5, not 0 to 4", 0},
    {REPLACE("box.dim", ", i32 1, i32 0"), "box_dim is 0, not 1 to 256", 0},
    {REPLACE("box.dim", ", i32 5, i32 1"), "box_dim 5: there are 0 to 4", 0},
    {REPLACE("global.dim", ", i32 0, i32 0"), "global_dim is 0, not 1 to 4294967295", 0},
    {REPLACE("global.stride", ", i32 4, i64 64"), "global_stride 4: there are 0 to 3", 0},
    {REPLACE("element.stride", ", i32 0, i32 9"), "element_stride is 9, not 1 to 8", 0},
    {REPLACE("elemtype", ", i32 13"), "elemtype is 13, not 0 to 12", 0},
    {REPLACE("swizzle.mode", ", i32 4"), "swizzle_mode is 4, not 0 to 3", 0},
    {FIRST(" %g = getelementptr i8, ptr addrspace(1) %io, i32 64\n"
           " call void @llvm.nvvm.tensormap.replace.rank.p1(ptr addrspace(1) %g, i32 1)\n"),
     "the tensor map's address is no multiple of 128", 0},
    {FIRST(" %g = getelementptr i8, ptr addrspace(1) %io, i32 128\n"
           " call void @llvm.nvvm.tensormap.replace.rank.p1(ptr addrspace(1) %g, i32 1)\n"),
     "these bytes are no tensor map", 0},
    // The fields are looked at together when the map is used.
    {FIRST(
         " call void @llvm.nvvm.tensormap.replace.swizzle.mode.p1(ptr addrspace(1) %io, i32 1)\n"
         " call void @llvm.nvvm.tensormap.replace.box.dim.p1(ptr addrspace(1) %io, i32 0, i32 16)\n" USE ACQUIRE LOAD),
     "tensor map: box[0] is 16 elements, 64 bytes: more than the swizzle's span of 32", 0},
    {FIRST(" call void @llvm.nvvm.tensormap.replace.fill.mode.p1(ptr addrspace(1) %io, i32 1)\n" USE LOAD),
     "the tensor map was changed, and no fence.proxy.tensormap::generic.acquire followed", TL_EMU_SANITIZE_ALL},
    {FIRST(" call void @llvm.nvvm.tensormap.replace.fill.mode.p1(ptr addrspace(1) %io, i32 1)\n" USE ACQUIRE LOAD),
     NULL, TL_EMU_SANITIZE_ALL},
    // A change after the fence needs another one.
    {FIRST(USE ACQUIRE "call void @llvm.nvvm.tensormap.replace.fill.mode.p1(ptr addrspace(1) %io, i32 1)\n " LOAD),
     "the tensor map was changed, and no fence.proxy.tensormap::generic.acquire followed", TL_EMU_SANITIZE_ALL},
    {" %r = call {i32, i32, i32, i32} @llvm.nvvm.mma.sp.m16n8k32.row.col.s8(i32 1, i32 1, i32 1, i32 1, i32 0, i32 0, "
     "i32 0,"
     " i32 0, i32 -286331154, i32 1)\n ret void\n",
     NULL, TL_EMU_SANITIZE_ALL},
    {" %r = call {i32, i32, i32, i32} @llvm.nvvm.mma.sp.m16n8k32.row.col.s8(i32 1, i32 1, i32 1, i32 1, i32 0, i32 0, "
     "i32 0,"
     " i32 0, i32 1145324613, i32 0)\n ret void\n",
     "the metadata names no two units of a group in their order", TL_EMU_SANITIZE_ALL},
};

// The first block acquires the changed map, the second one does not.
START_TEST(maps_are_acquired_by_their_block) {
  static const char body[] = CTA FIRST(
      " br i1 %first, label %change, label %use\nchange:\n"
      " call void @llvm.nvvm.tensormap.replace.fill.mode.p1(ptr addrspace(1) %io, i32 1)\n" USE ACQUIRE LOAD
      " ret void\nuse:\n %near = addrspacecast ptr addrspace(1) %io to ptr\n"
      " call void @llvm.nvvm.cp.async.bulk.tensor.prefetch.tile.2d(ptr %near, i32 0, i32 0, i64 0, i1 false)\n");
  expect_failure(run_blocks(body, 2, 64, TL_EMU_SANITIZE_ALL, NULL, 64), TL_STATUS_CHECK_FAILED,
                 "the tensor map was changed, and no fence.proxy.tensormap::generic.acquire followed", NULL, NULL);
}
END_TEST

START_TEST(mistake) {
  tl_status status = run_text(mistakes[_i].body, 64, mistakes[_i].checks, NULL, 64);
  if (mistakes[_i].report)
    expect_failure(status, TL_STATUS_CHECK_FAILED, mistakes[_i].report, NULL, NULL);
  else
    expect_ok(status);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_test(cases, reductions_of_short_warps);
  tcase_add_test(cases, reductions_order);
  tcase_add_test(cases, exit_ends_threads);
  tcase_add_test(cases, blocks_begin_anew);
  tcase_add_test(cases, copies_end_with_their_block);
  tcase_add_test(cases, maps_are_acquired_by_their_block);
  tcase_add_loop_test(cases, mistake, 0, sizeof mistakes / sizeof mistakes[0]);
}

int main(void) {
  return run_suite("emulator block ops", add_tests);
}
