// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reports of device ops with wrong operands that no other test provokes; test/meta/reports.sh sees that none is left
// out.
#include "emulator/sanitize/findings.h"
#include "emulator_util.h"

#define BAR "ptr addrspace(3) @bar"
#define INIT(count) " call void @llvm.nvvm.mbarrier.init.shared(" BAR ", i32 " #count ")\n"
#define ARRIVE(name) " %" name " = call i64 @llvm.nvvm.mbarrier.arrive.shared(" BAR ")\n"
#define EXPECT(bytes) " call void @llvm.nvvm.mbarrier.expect.tx.scope.cta.space.cta(" BAR ", i32 " #bytes ")\n"
// Thread 0 alone goes on.
#define FIRST " %f = icmp eq i32 %tid, 0\n br i1 %f, label %do, label %end\nend:\n ret void\ndo:\n"
#define PEER(what)                                                 \
  " %own = addrspacecast ptr addrspace(3) @" what                  \
  " to ptr\n"                                                      \
  " %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()\n" \
  " %other = xor i32 %rank, 1\n %peer = call ptr @llvm.nvvm.mapa(ptr %own, i32 %other)\n"
#define RET " ret void\n"
// A 64 x 8 x 16 product of what lies at the start of shared memory: stride 1024, 128-byte swizzle.
#define DESCRIPTOR "%d"
#define SUMS "{float, float, float, float}"
#define WGMMA(result, sums, b)                                                                                \
  " %" result " = call " SUMS " @tl.wgmma.m64n8k16.f32.f16.f16.ss(float " sums ", i64 " DESCRIPTOR ", i64 " b \
  ", i1 true)\n"
#define COMMIT " call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n"
#define VALUE(sums, name, i) " %" name #i " = extractvalue " SUMS " %" sums ", " #i "\n"
#define VALUES(sums, name) VALUE(sums, name, 0) VALUE(sums, name, 1) VALUE(sums, name, 2) VALUE(sums, name, 3)
#define FENCE " call void @llvm.nvvm.wgmma.fence.sync.aligned()\n"
#define IN_REGISTERS                                                                          \
  " %x = call " SUMS                                                                          \
  " @tl.wgmma.m64n8k16.f32.f16.f16.rs(float 0.0, float 0.0, float 0.0, float 0.0, i32 %tid, " \
  "i32 1, i32 2, i32 3, i64 " DESCRIPTOR ", i1 true)\n"
#define HELD(operands)                                                                      \
  " %y = call {float, float, float, float} @tl.wgmma.wait.n0.4xf32.4xb32(float %w0, float " \
  "%w1, float %w2, float %w3, i32 " operands ")\n"
#define WAITED(name, result)                                                                              \
  " %" result " = call " SUMS " @tl.wgmma.wait.n0.4xf32(float %" name "0, float %" name "1, float %" name \
  "2, float %" name "3)\n"

static const struct {
  const char *body, *report;
  uint32_t threads, cluster, checks;
} cases[] = {
    {FIRST INIT(1) INIT(1) RET, "there is one already, in phase 0; mbarrier.inval must end it first", 32, 1, 0},
    {FIRST INIT(1) " store i32 7, ptr addrspace(3) @bar\n" ARRIVE("a") RET,
     "of shared memory of block (0, 0, 0) was overwritten", 32, 1, 0},
    // Thread 1 fences what thread 0 initialised.
    {" %f = icmp eq i32 %tid, 0\n br i1 %f, label %init, label %made\ninit:\n" INIT(
         1) " br label %made\nmade:\n call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
            " br i1 %f, label %known, label %fence\nfence:\n call void "
            "@llvm.nvvm.fence.mbarrier_init.release.cluster()\n"
            " br label %known\nknown:\n call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
            " br i1 %f, label %load, label %end\nload:\n"
            " call void @llvm.nvvm.cp.async.bulk.global.to.shared.cta(ptr addrspace(3) @cell, ptr addrspace(3) @bar, "
            "ptr addrspace(1) %io, i32 256, i64 0, i1 false)\n" RET "end:\n" RET,
     "the copy engine does not know of the mbarrier", 2, 1, 0},
    {FIRST INIT(1) EXPECT(1048575) EXPECT(1048575) RET, "bytes pending on an mbarrier: more than it can count", 32, 1,
     0},
    {FIRST INIT(1048575) " call void @llvm.nvvm.cp.async.mbarrier.arrive.shared(" BAR ")\n" RET,
     "the phase lacks 1048575 arrivals, and cannot count one more", 32, 1, 0},
    {FIRST INIT(1) ARRIVE("a") ARRIVE("b") ARRIVE("c") " %t = call i1 @llvm.nvvm.mbarrier.test.wait.shared(" BAR
                                                       ", i64 %a)\n" RET,
     "a state of phase 0, but the mbarrier is in phase 3: it knows this one and the one before", 32, 1, 0},
    // Lane 0 waits for phase 0, lane 1 ends the mbarrier.
    {" %f = icmp eq i32 %tid, 0\n br i1 %f, label %wait, label %inval\nwait:\n" INIT(
         1) " %t = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(" BAR ", i32 0)\n" RET "inval:\n"
            " call void @llvm.nvvm.mbarrier.inval.shared(" BAR ")\n" RET,
     "thread 0 waits for phase 0 of the mbarrier", 2, 1, 0},
    // Nobody waits for phase 0 before phase 1 is complete as well: parity 0 then asks for phase 2.
    {" %f = icmp eq i32 %tid, 0\n br i1 %f, label %init, label %rest\ninit:\n" INIT(
         1) " br label %wait\nwait:\n"
            " %t = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(" BAR ", i32 0)\n"
            " br i1 %t, label %out, label %wait\nout:\n" RET "rest:\n" ARRIVE("a") ARRIVE("b") RET,
     "the phase behind the one waited for is complete too: a wait by parity may miss both", 2, 1,
     TL_EMU_SANITIZE_ASYNC},
    {PEER("bar")
         INIT(1) " call void @llvm.nvvm.barrier.cluster.arrive()\n call void @llvm.nvvm.barrier.cluster.wait()\n"
                 " %t = call i1 @llvm.nvvm.mbarrier.test.wait(ptr %peer, i64 0)\n" RET,
     "the mbarrier is in shared memory of another block", 1, 2, 0},
    {PEER("bar") " %stays = icmp eq i32 %rank, 0\n br i1 %stays, label %stay, label %leave\nleave:\n" RET
                 "stay:\n call void @llvm.nvvm.nanosleep(i32 9)\n call void @llvm.nvvm.nanosleep(i32 9)\n"
                 " call void @llvm.nvvm.mbarrier.init(ptr %peer, i32 1)\n" RET,
     "the mbarrier is in block 1 of the cluster, which has exited", 1, 2, 0},
    {" %g = addrspacecast ptr addrspace(1) %io to ptr\n call void @llvm.nvvm.mbarrier.init(ptr %g, i32 1)\n" RET,
     "the mbarrier is not in shared memory of", 32, 1, 0},
    {" %g = addrspacecast ptr addrspace(1) %io to ptr\n %r = call i32 @llvm.nvvm.getctarank(ptr %g)\n" RET,
     "the address is not in shared memory", 32, 1, 0},
    {" call void @llvm.nvvm.cp.async.ca.shared.global.16.s(ptr addrspace(3) @cell, ptr addrspace(1) %io, i32 17)\n" RET,
     "the source size 17", 32, 1, 0},
    {PEER("cell") " %p = addrspacecast ptr %peer to ptr addrspace(3)\n" FIRST
                  " call void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1) %io, ptr addrspace(3) %p, "
                  "i32 16, "
                  "i64 0, i1 false)\n" RET,
     "the source is in shared memory of another block", 32, 2, 0},
    {" call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 %tid)\n" RET, "name different barriers", 32, 1, 0},
    {" %m = call i32 @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16.p3(ptr addrspace(3) @cell)\n" RET,
     "the warp has fewer than 32 lanes", 16, 1, 0},
    {" %g = getelementptr i8, ptr addrspace(1) %io, i32 4\n"
     " call void @llvm.nvvm.discard.global.L2(ptr addrspace(1) %g, i64 128)\n" RET,
     "the address is no multiple of 128", 32, 1, 0},
    // One warp arrives twice at a barrier of one.
    {" call void @llvm.nvvm.barrier.cta.arrive.count(i32 1, i32 64)\n"
     " call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)\n"
     " call void @llvm.nvvm.barrier.cta.arrive.count(i32 2, i32 32)\n"
     " %f = icmp eq i32 %tid, 0\n br i1 %f, label %odd, label %even\nodd:\n"
     " call void @llvm.nvvm.barrier.cta.arrive.count(i32 3, i32 32)\n br label %even\neven:\n"
     " call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 3, i32 32)\n" RET,
     "33 threads arrived at barrier 3, which expects 32", 32, 1, 0},
    // Eight pairs of one warp: the second lane of each comes late.
    {" %group = lshr i32 %tid, 1\n %shift = shl i32 %group, 1\n %mask = shl i32 3, %shift\n"
     " %half = and i32 %tid, 1\n %is = icmp eq i32 %half, 0\n br i1 %is, label %meet, label %late\nlate:\n"
     " call void @llvm.nvvm.nanosleep(i32 100)\n br label %meet\nmeet:\n"
     " call void @llvm.nvvm.bar.warp.sync(i32 %mask)\n" RET,
     "more than 4 collectives of one warp are open at once", 32, 1, 0},
    {" %room = alloca i64\n %format = addrspacecast ptr addrspace(1) @format to ptr\n"
     " %n = call i32 @vprintf(ptr %format, ptr %room)\n" RET,
     "vprintf: the conversion at '%q'", 32, 1, 0},
    {" %later = icmp ne i32 %tid, 0\n %bit = zext i1 %later to i64\n %e = or i64 " DESCRIPTOR ", %bit\n"
     " call void @llvm.nvvm.wgmma.fence.sync.aligned()\n" WGMMA("x", "0.0, float 0.0, float 0.0, float 0.0", "%e") RET,
     "of the warpgroup has another ", 128, 1, 0},
    {" call void @llvm.nvvm.wgmma.fence.sync.aligned()\n" WGMMA("x", "0.0, float 0.0, float 0.0, float 0.0", DESCRIPTOR)
         COMMIT VALUES("x", "w") WAITED("w", "y") WGMMA("z", "1.0, float 1.0, float 1.0, float 1.0", DESCRIPTOR)
             COMMIT VALUES("z", "u") WAITED("u", "t") RET,
     "no wgmma.fence since its registers were accessed", 128, 1, TL_EMU_SANITIZE_ASYNC},
    {" call void @llvm.nvvm.wgmma.fence.sync.aligned()\n" WGMMA("x", "0.0, float 0.0, float 0.0, float 0.0", DESCRIPTOR)
         VALUES("x", "w") " %low = icmp ult i32 %tid, 32\n br i1 %low, label %one, label %all\none:\n" COMMIT
                          " br label %all\nall:\n" WGMMA("z", "0.0, float 0.0, float 0.0, float 0.0", DESCRIPTOR) RET,
     "the warps of the warpgroup have committed different numbers of groups", 128, 1, 0},
    // A in registers, one of which the wait does not hold.
    {FENCE IN_REGISTERS COMMIT VALUES("x", "w") HELD("%tid, i32 1, i32 2, i32 4") RET,
     "the first wait for it does not hold its A in registers", 128, 1, TL_EMU_SANITIZE_ASYNC},
    {FENCE IN_REGISTERS COMMIT " call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n" RET,
     "the first wait for it does not hold its A in registers", 128, 1, TL_EMU_SANITIZE_ASYNC},
    {FENCE IN_REGISTERS COMMIT VALUES("x", "w") HELD("%tid, i32 1, i32 2, i32 3") RET, NULL, 128, 1,
     TL_EMU_SANITIZE_ASYNC},
};

START_TEST(reports) {
  static const char head[] =
      "@cell = internal addrspace(3) global [4096 x i32] undef, align 1024\n"
      "@format = internal addrspace(1) constant [3 x i8] c\"%q\\00\"\n"
      "declare {float, float, float, float} @tl.wgmma.m64n8k16.f32.f16.f16.ss(float, float, float, float, i64, i64, "
      "i1)\n"
      "declare {float, float, float, float} @tl.wgmma.wait.n0.4xf32(float, float, float, float)\n"
      "declare {float, float, float, float} @tl.wgmma.m64n8k16.f32.f16.f16.rs(float, float, float, float, i32, i32, "
      "i32, "
      "i32, i64, i1)\n"
      "declare {float, float, float, float} @tl.wgmma.wait.n0.4xf32.4xb32(float, float, float, "
      "float, "
      "i32, i32, i32, i32)\n"
      "declare i32 @vprintf(ptr, ptr)\n"
      "@bar = internal addrspace(3) global i64 undef, align 8\n"
      "define ptx_kernel void @k(ptr addrspace(1) %io) {\nentry:\n"
      " %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %start = ptrtoint ptr addrspace(3) @cell to i64\n"
      " %high = lshr i64 %start, 4\n %field = and i64 %high, 16383\n %d = or i64 %field, 4611686293305294848\n";
  char text[4096];
  snprintf(text, sizeof text, "%s%s}\n", head, cases[_i].body);
  tl_emu_kernel *kernel = NULL;
  expect_ok(create_from_text(text, "k",
                             (kernel_shape){.num_params = 1,
                                            .threads = (int32_t)cases[_i].threads,
                                            .cluster = (int32_t)cases[_i].cluster,
                                            .checks = cases[_i].checks},
                             &kernel));
  void *io = tl_emu_alloc(1024, 128);
  memset(io, 0, 1024);
  uint32_t grid[3] = {cases[_i].cluster, 1, 1};
  tl_emu_options options = {.threads = 1, .checks = cases[_i].checks};
  tl_status status = tl_emu_launch(kernel, grid, (void *[]){&io}, &options, NULL);
  if (cases[_i].report)
    expect_failure(status, TL_STATUS_CHECK_FAILED, cases[_i].report, NULL, NULL);
  else
    expect_ok(status);
  tl_emu_free(io);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

static void add_tests(TCase *tests) {
  tcase_add_loop_test(tests, reports, 0, sizeof cases / sizeof cases[0]);
}

int main(void) {
  return run_suite("emulator reports", add_tests);
}
