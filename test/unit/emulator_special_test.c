// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Special registers, windows of addresses, hints, and setmaxnreg.
#include <math.h>

#include "emulator/sanitize/findings.h"
#include "emulator_op_runner.h"

static uint64_t of_thread(const char *name, const char *signature, uint32_t thread) {
  op_run run = {.name = name, .signature = signature, .threads = 64};
  op_must(&run);
  return signature[0] == 'l'   ? run.out[thread][0]
         : signature[0] == 'b' ? run.out[thread][0] & 1
                               : (uint32_t)run.out[thread][0];
}

START_TEST(registers) {
  static const struct {
    const char *name, *signature;
    uint64_t of_thread_40;
  } cases[] = {{"read.ptx.sreg.lanemask.eq", "i()", 0x100},
               {"read.ptx.sreg.lanemask.lt", "i()", 0xff},
               {"read.ptx.sreg.lanemask.le", "i()", 0x1ff},
               {"read.ptx.sreg.lanemask.gt", "i()", 0xfffffe00},
               {"read.ptx.sreg.lanemask.ge", "i()", 0xffffff00},
               {"read.ptx.sreg.warpsize", "i()", 32},
               {"read.ptx.sreg.nwarpid", "i()", 64},
               {"read.ptx.sreg.smid", "i()", 0},
               {"read.ptx.sreg.nsmid", "i()", 132},
               {"read.ptx.sreg.gridid", "l()", 1},
               {"read.ptx.sreg.dynamic_smem_size", "i()", 0},
               {"read.ptx.sreg.total_smem_size", "i()", 2048},
               {"read.ptx.sreg.aggr_smem_size", "i()", 2048},
               {"is_explicit_cluster", "b()", 0},
               {"activemask", "i()", 0x100}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char name[80];
    snprintf(name, sizeof name, "llvm.nvvm.%s", cases[i].name);
    uint64_t got = of_thread(name, cases[i].signature, 40);
    ck_assert_msg(got == cases[i].of_thread_40, "%s: %#llx", name, (unsigned long long)got);
  }
}
END_TEST

// Time goes on from look to look, and is the same in every run.
START_TEST(clocks) {
  static const struct {
    const char *name, *signature;
  } cases[] = {{"llvm.nvvm.read.ptx.sreg.clock", "i()"},
               {"llvm.nvvm.read.ptx.sreg.clock64", "l()"},
               {"llvm.nvvm.read.ptx.sreg.globaltimer", "l()"},
               {"llvm.nvvm.read.ptx.sreg.globaltimer.lo", "i()"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t early = of_thread(cases[i].name, cases[i].signature, 3);
    uint64_t late = of_thread(cases[i].name, cases[i].signature, 4);
    ck_assert_uint_lt(early, late);
    ck_assert_uint_eq(early, of_thread(cases[i].name, cases[i].signature, 3));
  }
}
END_TEST

static tl_status run_text(const char *text, kernel_shape shape, uint32_t blocks, uint32_t checks, uint32_t *out,
                          size_t words) {
  tl_emu_kernel *kernel = NULL;
  shape.num_params = 1;
  shape.checks = checks;
  tl_status status = create_from_text(text, "k", shape, &kernel);
  if (status) return status;
  uint32_t grid[3] = {blocks, 1, 1}, *io = tl_emu_alloc(words * sizeof *io, 128);
  memset(io, 0, words * sizeof *io);
  tl_emu_options options = {.threads = 1, .checks = checks};
  status = tl_emu_launch(kernel, grid, (void *[]){&io}, &options, NULL);
  if (out) memcpy(out, io, words * sizeof *io);
  tl_emu_free(io);
  tl_emu_kernel_destroy(kernel);
  return status;
}

// io[0..] of block r: which of const, global, local, shared, shared::cluster hold the addresses of io, of a local
// variable, of the block's shared variable, and of the peer's; a bit each, then the rank of the peer's address.
START_TEST(windows) {
  static const char head[] =
      "@cell = internal addrspace(3) global [4 x i32] undef, align 16\n"
      "define internal i32 @spaces(ptr %p) noinline {\n"
      " %c = call i1 @llvm.nvvm.isspacep.const(ptr %p)\n %g = call i1 @llvm.nvvm.isspacep.global(ptr %p)\n"
      " %l = call i1 @llvm.nvvm.isspacep.local(ptr %p)\n %s = call i1 @llvm.nvvm.isspacep.shared(ptr %p)\n"
      " %k = call i1 @llvm.nvvm.isspacep.shared.cluster(ptr %p)\n"
      " %c0 = zext i1 %c to i32\n %g0 = zext i1 %g to i32\n %g1 = shl i32 %g0, 1\n %l0 = zext i1 %l to i32\n"
      " %l1 = shl i32 %l0, 2\n %s0 = zext i1 %s to i32\n %s1 = shl i32 %s0, 3\n %k0 = zext i1 %k to i32\n"
      " %k1 = shl i32 %k0, 4\n %a = or i32 %c0, %g1\n %b = or i32 %l1, %s1\n %d = or i32 %a, %b\n"
      " %e = or i32 %d, %k1\n ret i32 %e\n}\n"
      "define ptx_kernel void @k(ptr addrspace(1) %io) {\n"
      " %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()\n %other = xor i32 %rank, 1\n"
      " %is = call i1 @llvm.nvvm.is_explicit_cluster()\n %explicit = zext i1 %is to i32\n"
      " %base = mul i32 %rank, 8\n %o0 = getelementptr i32, ptr addrspace(1) %io, i32 %base\n"
      " %local = alloca i32\n %gio = addrspacecast ptr addrspace(1) %io to ptr\n"
      " %own = addrspacecast ptr addrspace(3) @cell to ptr\n"
      " %peer = call ptr @llvm.nvvm.mapa(ptr %own, i32 %other)\n"
      " %v0 = call i32 @spaces(ptr %gio)\n %v1 = call i32 @spaces(ptr %local)\n %v2 = call i32 @spaces(ptr %own)\n"
      " %v3 = call i32 @spaces(ptr %peer)\n %v4 = call i32 @llvm.nvvm.getctarank(ptr %peer)\n"
      " store i32 %v0, ptr addrspace(1) %o0\n"
      " %o1 = getelementptr i32, ptr addrspace(1) %o0, i32 1\n store i32 %v1, ptr addrspace(1) %o1\n"
      " %o2 = getelementptr i32, ptr addrspace(1) %o0, i32 2\n store i32 %v2, ptr addrspace(1) %o2\n"
      " %o3 = getelementptr i32, ptr addrspace(1) %o0, i32 3\n store i32 %v3, ptr addrspace(1) %o3\n"
      " %o4 = getelementptr i32, ptr addrspace(1) %o0, i32 4\n store i32 %v4, ptr addrspace(1) %o4\n"
      " %o5 = getelementptr i32, ptr addrspace(1) %o0, i32 5\n store i32 %explicit, ptr addrspace(1) %o5\n"
      " ret void\n}\n";
  uint32_t out[32];
  expect_ok(run_text(head, (kernel_shape){.threads = 1, .cluster = 2}, 2, 0, out, 32));
  for (uint32_t rank = 0; rank < 2; rank++) {
    static const uint32_t spaces[] = {2, 4, 8 | 16, 16};
    for (int i = 0; i < 4; i++) ck_assert_uint_eq(out[8 * rank + (uint32_t)i], spaces[i]);
    ck_assert_uint_eq(out[8 * rank + 4], rank ^ 1);
    ck_assert_uint_eq(out[8 * rank + 5], 1);
  }
}
END_TEST

// Hints do nothing, but that discarded bytes are not determined.
START_TEST(hints) {
  static const char text[] =
      "define ptx_kernel void @k(ptr addrspace(1) %io) {\n"
      " %p = addrspacecast ptr addrspace(1) %io to ptr\n"
      " call void @llvm.nvvm.prefetch.global.L1(ptr addrspace(1) %io)\n"
      " call void @llvm.nvvm.prefetch.global.L2(ptr addrspace(1) %io)\n"
      " call void @llvm.nvvm.prefetch.global.L2.evict.last(ptr addrspace(1) %io)\n"
      " call void @llvm.nvvm.prefetch.global.L2.evict.normal(ptr addrspace(1) %io)\n"
      " call void @llvm.nvvm.prefetch.L1(ptr %p)\n call void @llvm.nvvm.prefetch.L2(ptr %p)\n"
      " call void @llvm.nvvm.prefetchu.L1(ptr %p)\n"
      " call void @llvm.nvvm.applypriority.global.L2.evict.normal(ptr addrspace(1) %io, i64 128)\n"
      " call void @llvm.nvvm.griddepcontrol.wait()\n call void @llvm.nvvm.griddepcontrol.launch.dependents()\n"
      " call void @llvm.nvvm.fence.acquire.sync_restrict.space.cluster.scope.cluster()\n"
      " call void @llvm.nvvm.fence.release.sync_restrict.space.cta.scope.cluster()\n"
      " call void @llvm.nvvm.fence.proxy.alias()\n"
      " %far = getelementptr i8, ptr addrspace(1) %io, i32 128\n"
      " call void @llvm.nvvm.discard.global.L2(ptr addrspace(1) %far, i64 128)\n"
      " ret void\n}\n";
  uint32_t out[96];
  for (int checked = 0; checked < 2; checked++) {
    expect_ok(run_text(text, (kernel_shape){.threads = 32}, 1,
                       checked ? TL_EMU_SANITIZE_ALL & ~(uint32_t)TL_EMU_SANITIZE_RACE : 0, out, 96));
    for (int i = 0; i < 96; i++) ck_assert_uint_eq(out[i], i / 32 == 1 ? 0xffffffffu : 0);
  }
}
END_TEST

START_TEST(match) {
  for (int wide = 0; wide < 2; wide++) {
    op_run run = {.name = wide ? "llvm.nvvm.match.any.sync.i64" : "llvm.nvvm.match.any.sync.i32",
                  .signature = wide ? "i(il)" : "i(ii)"};
    for (uint32_t t = 0; t < 32; t++) {
      run.in[t][0] = 0xffffffff;
      run.in[t][1] = wide ? (uint64_t)(t % 3) << 40 : t % 3;
    }
    op_must(&run);
    for (uint32_t t = 0; t < 32; t++) ck_assert_uint_eq((uint32_t)run.out[t][0], 0x49249249u << t % 3);
    op_run all = {.name = wide ? "llvm.nvvm.match.all.sync.i64p" : "llvm.nvvm.match.all.sync.i32p",
                  .signature = wide ? "ib(il)" : "ib(ii)"};
    // The lower half agrees, one lane of the upper half does not.
    for (uint32_t t = 0; t < 32; t++) {
      all.in[t][0] = t < 16 ? 0xffff : 0xffff0000;
      all.in[t][1] = t == 20 ? 8 : wide ? 7ull << 50 : 7;
    }
    op_must(&all);
    for (uint32_t t = 0; t < 32; t++) {
      ck_assert_uint_eq((uint32_t)all.out[t][0], t < 16 ? 0xffff : 0);
      ck_assert_uint_eq(all.out[t][1] & 0xff, t < 16);
    }
  }
}
END_TEST

START_TEST(redux_of_floats) {
  static const struct {
    const char *name;
    float want;          // of the first 16 lanes, no NaN
    uint32_t want_bits;  // of the others, which have one
  } cases[] = {{"fmin", -9, 0xc1100000},        {"fmax", 6, 0x40c00000},        {"fmin.abs", 0, 0},
               {"fmax.abs", 9, 0x41100000},     {"fmin.NaN", -9, 0x7fffffff},   {"fmax.NaN", 6, 0x7fffffff},
               {"fmin.abs.NaN", 0, 0x7fffffff}, {"fmax.abs.NaN", 9, 0x7fffffff}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char name[64];
    snprintf(name, sizeof name, "llvm.nvvm.redux.sync.%s", cases[i].name);
    op_run run = {.name = name, .signature = "f(fi)"};
    for (uint32_t t = 0; t < 32; t++) {
      run.in[t][0] = t == 19 ? 0x7fc00001 : op_bits((float)(t % 16) - 9);
      run.in[t][1] = t < 16 ? 0xffff : 0xffff0000;
    }
    op_must(&run);
    for (uint32_t t = 0; t < 32; t++)
      ck_assert_uint_eq((uint32_t)run.out[t][0], t < 16 ? op_bits(cases[i].want) : cases[i].want_bits);
  }
}
END_TEST

// ---- setmaxnreg. A producer and two consumer warpgroups, 168 registers a thread at entry.
#define KERNEL(attributes, body)                                \
  "define ptx_kernel void @k(ptr addrspace(1) %io) " attributes \
  " {\nentry:\n %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %warp = lshr i32 %tid, 5\n" body "}\n"
#define INC(n) " call void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32 " #n ")\n"
#define DEC(n) " call void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32 " #n ")\n"
#define ROLES(producer, consumer)                                                                               \
  " %is = icmp ult i32 %warp, 4\n br i1 %is, label %p, label %c\np:\n" producer " br label %end\nc:\n" consumer \
  " br label %end\nend:\n ret void\n"
#define ENTRY "\"nvvm.minctasm\"=\"1\""

static const struct {
  const char *text, *report;  // NULL: it is right
  uint32_t checks;
} warpgroups[] = {
    {KERNEL(ENTRY, ROLES(DEC(40), INC(232))), NULL, TL_EMU_SANITIZE_ALL},
    {KERNEL("\"nvvm.maxnreg\"=\"168\"", ROLES(DEC(24), INC(240))), NULL, TL_EMU_SANITIZE_ALL},
    // 128 × (168 - 40) registers do not let two warpgroups have 72 more each.
    {KERNEL(ENTRY, ROLES(DEC(40), INC(240))),
     "wait at setmaxnreg for 2304 registers, 256 are free, llvm.nvvm.setmaxnreg.inc.sync.aligned.u32 (call 3)", 0},
    {KERNEL(ENTRY, ROLES("", INC(232))), "wait at setmaxnreg for 2048 registers, 0 are free", 0},
    {KERNEL(ENTRY, ROLES(DEC(20), "")), "20 registers are no multiple of 8 from 24 to 256", 0},
    {KERNEL(ENTRY, ROLES(DEC(44), "")), "44 registers are no multiple of 8 from 24 to 256", 0},
    {KERNEL("", ROLES(DEC(40), INC(232))),
     "the kernel says neither .maxnreg nor .minnctapersm: ptxas ignores the instruction", TL_EMU_SANITIZE_ALL},
    {KERNEL(ENTRY, ROLES(DEC(232), "")), "the warp has fewer registers than it wants to keep", TL_EMU_SANITIZE_ALL},
    {KERNEL(ENTRY, ROLES(INC(40), "")), "the warp has more registers than it asks for", TL_EMU_SANITIZE_ALL},
    {KERNEL(ENTRY, " %is = icmp ult i32 %warp, 3\n br i1 %is, label %p, label %end\np:\n" DEC(
                       40) " br label %end\nend:\n ret void\n"),
     "the warps of a warpgroup did not all execute it", TL_EMU_SANITIZE_ALL},
    {KERNEL(ENTRY, ROLES(DEC(64) DEC(40), "")), "another warp of the warpgroup has not executed the one before",
     TL_EMU_SANITIZE_ALL},
    {KERNEL(ENTRY,
            ROLES(DEC(64) " call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 128)\n" DEC(40), INC(232))),
     NULL, TL_EMU_SANITIZE_ALL},
};

START_TEST(setmaxnreg) {
  tl_status status = run_text(warpgroups[_i].text, (kernel_shape){.threads = 384}, 2, warpgroups[_i].checks, NULL, 32);
  if (warpgroups[_i].report)
    expect_failure(status, TL_STATUS_CHECK_FAILED, warpgroups[_i].report, NULL, NULL);
  else
    expect_ok(status);
}
END_TEST

static void add(TCase *cases) {
  tcase_add_test(cases, registers);
  tcase_add_test(cases, clocks);
  tcase_add_test(cases, windows);
  tcase_add_test(cases, hints);
  tcase_add_test(cases, match);
  tcase_add_test(cases, redux_of_floats);
  tcase_add_loop_test(cases, setmaxnreg, 0, sizeof warpgroups / sizeof warpgroups[0]);
}

int main(void) {
  return run_suite("emulator_special", add);
}
