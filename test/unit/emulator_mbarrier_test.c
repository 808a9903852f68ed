// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbarriers and the cluster's barrier: phases, counts, states and parities, across blocks, and mistakes.
#include "emulator_util.h"
#include "support/strbuf.h"

enum { THREADS = 96 };

static const tl_emu_options modes[] = {
    {.threads = 1}, {.threads = 1, .seed = 1}, {.threads = 1, .seed = 6}, {.threads = 2, .seed = 3}};
enum { NUM_MODES = sizeof modes / sizeof modes[0] };

// `body` has %tid, %warp, %rank, @bar[4], @cell[256] and may define blocks; it stores to %out and ends with a return.
static tl_emu_kernel *create(const char *body, int32_t cluster, uint32_t checks) {
  tl_strbuf text = {0};
  tl_strbuf_appendf(
      &text,
      "@bar = internal addrspace(3) global [4 x i64] undef, align 8\n"
      "@cell = internal addrspace(3) global [256 x i32] undef, align 16\n"
      "define internal void @wait(ptr addrspace(3) %%b, i32 %%parity) {\nentry:\n br label %%loop\nloop:\n"
      " %%ok = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) %%b, i32 "
      "%%parity)\n br i1 %%ok, label %%done, label %%loop\ndone:\n ret void\n}\n"
      "define ptx_kernel void @k(ptr addrspace(1) %%io) {\nentry:\n"
      " %%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %%warp = lshr i32 %%tid, 5\n"
      " %%rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()\n"
      " %%first = icmp eq i32 %%tid, 0\n"
      " %%base = mul i32 %%rank, %d\n %%place = add i32 %%base, %%tid\n"
      " %%out = getelementptr i32, ptr addrspace(1) %%io, i32 %%place\n"
      " %%bar1 = getelementptr i64, ptr addrspace(3) @bar, i32 1\n"
      " %%mine = getelementptr i32, ptr addrspace(3) @cell, i32 %%tid\n"
      " br i1 %%first, label %%init, label %%ready\ninit:\n"
      " call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 32)\n"
      " call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %%bar1, i32 1)\n"
      " br label %%ready\nready:\n"
      " call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
      " call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n"
      " call void @llvm.nvvm.barrier.cluster.wait.aligned()\n%s}\n",
      THREADS, body);
  tl_emu_kernel *kernel = NULL;
  tl_status status = create_from_text(tl_strbuf_c(&text), "k",
                                      (kernel_shape){1, THREADS, .checks = checks, .cluster = cluster}, &kernel);
  ck_assert_msg(!status, "%s\n%s", tl_status_message(status), tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return kernel;
}

static tl_status run(tl_emu_kernel *kernel, uint32_t blocks, const tl_emu_options *mode, uint32_t checks,
                     uint32_t *out) {
  uint32_t grid[3] = {blocks, 1, 1}, *io = tl_emu_alloc(4 * THREADS * sizeof *io, 16);
  tl_emu_options options = *mode;
  options.checks = checks;
  tl_status status = tl_emu_launch(kernel, grid, (void *[]){&io}, &options, NULL);
  if (out) memcpy(out, io, 4 * THREADS * sizeof *io);
  tl_emu_free(io);
  return status;
}

// Warp 0 produces, 32 arrivals a phase, warps 1 and 2 consume; one of them gives the place back through the other
// barrier.
static const char ring[] =
    " %producer = icmp eq i32 %warp, 0\n"
    " br i1 %producer, label %produce, label %consume\n"
    "produce:\n %i = phi i32 [ 0, %ready ], [ %i1, %produce ]\n"
    " %empty = xor i32 %i, 1\n %free = and i32 %empty, 1\n call void @wait(ptr addrspace(3) %bar1, i32 %free)\n"
    " %v = mul i32 %i, 100\n %w = add i32 %v, %tid\n store i32 %w, ptr addrspace(3) %mine\n"
    " %t = call i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3) @bar, i32 1)\n"
    " %i1 = add i32 %i, 1\n %more = icmp ult i32 %i1, 10\n br i1 %more, label %produce, label %over\n"
    "consume:\n %n = phi i32 [ 0, %ready ], [ %n1, %next ]\n %sum = phi i32 [ 0, %ready ], [ %sum1, %next ]\n"
    " %par = and i32 %n, 1\n call void @wait(ptr addrspace(3) @bar, i32 %par)\n"
    " %lane = and i32 %tid, 31\n %from = getelementptr i32, ptr addrspace(3) @cell, i32 %lane\n"
    " %got = load i32, ptr addrspace(3) %from\n %sum1 = add i32 %sum, %got\n"
    " call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)\n"
    " %gives = icmp eq i32 %tid, 40\n br i1 %gives, label %give, label %next\n"
    "give:\n %g = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) %bar1)\n br label %next\n"
    "next:\n %n1 = add i32 %n, 1\n %again = icmp ult i32 %n1, 10\n br i1 %again, label %consume, label %over\n"
    "over:\n %result = phi i32 [ 0, %produce ], [ %sum1, %next ]\n store i32 %result, ptr addrspace(1) %out\n ret "
    "void\n";

START_TEST(producer_and_consumers) {
  tl_emu_kernel *kernel = create(ring, 0, TL_EMU_SANITIZE_ALL);
  for (int m = 0; m < NUM_MODES; m++) {
    uint32_t out[4 * THREADS];
    expect_ok(run(kernel, 1, &modes[m], TL_EMU_SANITIZE_ALL, out));
    for (uint32_t t = 32; t < THREADS; t++) ck_assert_uint_eq(out[t], 4500 + 10 * (t % 32));
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

// Without the wait for the free place the producer runs ahead.
START_TEST(missing_wait) {
  char text[sizeof ring];
  strcpy(text, ring);
  char *wait = strstr(text, " call void @wait(ptr addrspace(3) %bar1");
  *wait = ';';
  tl_emu_kernel *kernel = create(text, 0, TL_EMU_SANITIZE_ALL);
  for (int m = 0; m < NUM_MODES; m++) {
    tl_status status = run(kernel, 1, &modes[m], TL_EMU_SANITIZE_RACE, NULL);
    ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_CHECK_FAILED);
    tl_status_free(status);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

// Every thread of block r writes to its cell of block r + 1 and arrives there; then it reads its own.
static const char to_neighbour[] =
    " %next = add i32 %rank, 1\n %size = call i32 @llvm.nvvm.read.ptx.sreg.cluster.nctarank()\n"
    " %peer = urem i32 %next, %size\n"
    " %theirs = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %mine, i32 %peer)\n"
    " %value = add i32 %place, 1000\n store i32 %value, ptr addrspace(7) %theirs\n"
    " %theirbar = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @bar, i32 %peer)\n"
    " %group = icmp ult i32 %tid, 32\n br i1 %group, label %arrive, label %leave\n"
    "arrive:\n call void @llvm.nvvm.mbarrier.arrive.scope.cluster.space.cluster(ptr addrspace(7) %theirbar, i32 1)\n"
    " call void @wait(ptr addrspace(3) @bar, i32 0)\n"
    " %got = load i32, ptr addrspace(3) %mine\n store i32 %got, ptr addrspace(1) %out\n br label %leave\n"
    "leave:\n call void @llvm.nvvm.barrier.cluster.arrive()\n call void @llvm.nvvm.barrier.cluster.wait()\n ret void\n";

START_TEST(across_blocks) {
  static const uint32_t sizes[] = {1, 2, 4};
  for (int s = 0; s < 3; s++) {
    uint32_t size = sizes[s], out[4 * THREADS];
    tl_emu_kernel *kernel = create(to_neighbour, (int32_t)size, TL_EMU_SANITIZE_ALL);
    for (int m = 0; m < NUM_MODES; m++) {
      expect_ok(run(kernel, size, &modes[m], TL_EMU_SANITIZE_ALL, out));
      for (uint32_t b = 0; b < size; b++)
        for (uint32_t t = 0; t < 32; t++)
          ck_assert_uint_eq(out[b * THREADS + t], 1000 + (b + size - 1) % size * THREADS + t);
    }
    tl_emu_kernel_destroy(kernel);
  }
}
END_TEST

// The wait may come to its time limit before the phase is complete: whoever does not look at the result is found by a
// seed.
START_TEST(single_try) {
  static const char body[] =
      " %alone = icmp ult i32 %tid, 64\n br i1 %alone, label %try, label %arrive\n"
      "try:\n %ok = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 0)\n"
      " %word = zext i1 %ok to i32\n store i32 %word, ptr addrspace(1) %out\n ret void\n"
      "arrive:\n %t = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) @bar)\n ret void\n";
  tl_emu_kernel *kernel = create(body, 0, 0);
  for (uint32_t seed = 0; seed < 2; seed++) {
    uint32_t out[4 * THREADS], passed = 0;
    expect_ok(run(kernel, 1, &(tl_emu_options){.threads = 1, .seed = seed}, 0, out));
    for (int t = 0; t < 64; t++) passed += out[t];
    ck_assert(seed ? passed < 64 : passed == 64);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

// A thread that counts its tries comes to an end although the phase never completes.
START_TEST(counted_tries) {
  static const char body[] =
      " br label %try\ntry:\n %i = phi i32 [ 0, %ready ], [ %j, %again ]\n"
      " %ok = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 0)\n"
      " br i1 %ok, label %over, label %again\nagain:\n %j = add i32 %i, 1\n %more = icmp ult i32 %j, 500\n"
      " br i1 %more, label %try, label %over\n"
      "over:\n %word = zext i1 %ok to i32\n store i32 %word, ptr addrspace(1) %out\n ret void\n";
  tl_emu_kernel *kernel = create(body, 0, 0);
  for (int m = 0; m < NUM_MODES; m++) {
    uint32_t out[4 * THREADS];
    expect_ok(run(kernel, 1, &modes[m], 0, out));
    for (int t = 0; t < THREADS; t++) ck_assert_uint_eq(out[t], 0);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(cluster_registers) {
  static const struct {
    const char *name;
    uint32_t of_block_5;  // of 8, in clusters of 2
  } registers[] = {{"cluster.ctarank", 1},  {"cluster.nctarank", 2}, {"cluster.ctaid.x", 1}, {"cluster.ctaid.y", 0},
                   {"cluster.nctaid.x", 2}, {"cluster.nctaid.z", 1}, {"clusterid.x", 2},     {"clusterid.z", 0},
                   {"nclusterid.x", 4},     {"nclusterid.y", 1}};
  for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++) {
    char body[400];
    snprintf(body, sizeof body,
             " %%v = call i32 @llvm.nvvm.read.ptx.sreg.%s()\n %%b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
             " %%is = icmp eq i32 %%b, 5\n br i1 %%is, label %%put, label %%end\n"
             "put:\n %%at = getelementptr i32, ptr addrspace(1) %%io, i32 %%tid\n"
             " store i32 %%v, ptr addrspace(1) %%at\n br label %%end\nend:\n ret void\n",
             registers[i].name);
    tl_emu_kernel *kernel = create(body, 2, 0);
    uint32_t out[4 * THREADS];
    expect_ok(run(kernel, 8, &modes[i % NUM_MODES], 0, out));
    ck_assert_msg(out[7] == registers[i].of_block_5, "%s: %u", registers[i].name, out[7]);
    tl_emu_kernel_destroy(kernel);
  }
}
END_TEST

#define LAST " store i32 1, ptr addrspace(1) %out\n ret void\n"
#define ONLY_FIRST(body) " br i1 %first, label %go, label %end\ngo:\n" body " br label %end\nend:\n" LAST
static const struct {
  const char *body, *text;  // NULL: it is right
} cases[] = {
    // A fresh barrier: the phase before the first is complete, the first is not.
    {ONLY_FIRST(
         " %a = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 1)\n"
         " %b = call i1 @llvm.nvvm.mbarrier.test.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 0)\n"
         " %c = xor i1 %a, %b\n br i1 %c, label %ok, label %bad\nbad:\n call void @llvm.trap()\n unreachable\nok:\n"),
     NULL},
    // States: complete once the count has arrived; a drop makes the next phase smaller.
    {ONLY_FIRST(" %s = call i64 @llvm.nvvm.mbarrier.arrive.noComplete.shared(ptr addrspace(3) @bar, i32 30)\n"
                " %d = call i64 @llvm.nvvm.mbarrier.arrive.drop.shared(ptr addrspace(3) @bar)\n"
                " %e = call i1 @llvm.nvvm.mbarrier.test.wait.shared(ptr addrspace(3) @bar, i64 %s)\n"
                " %f = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) @bar)\n"
                " %g = call i1 @llvm.nvvm.mbarrier.test.wait.shared(ptr addrspace(3) @bar, i64 %s)\n"
                " %h = call i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3) @bar, i32 31)\n"
                " %i = call i1 @llvm.nvvm.mbarrier.test.wait.shared(ptr addrspace(3) @bar, i64 %h)\n"
                " %j = xor i1 %e, true\n %k = and i1 %j, %g\n %l = and i1 %k, %i\n"
                " br i1 %l, label %ok, label %bad\nbad:\n call void @llvm.trap()\n unreachable\nok:\n"),
     NULL},
    {ONLY_FIRST(" %s = call i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3) @bar, i32 33)\n"),
     "33 arrivals at an mbarrier whose phase 0 lacks only 32 of 32"},
    {ONLY_FIRST(" %s = call i64 @llvm.nvvm.mbarrier.arrive.noComplete.shared(ptr addrspace(3) @bar, i32 32)\n"),
     "the arrival completes phase 0, which .noComplete promises not to do"},
    {ONLY_FIRST(" call void @llvm.nvvm.mbarrier.inval.shared(ptr addrspace(3) @bar)\n"
                " %s = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) @bar)\n"),
     "there is no mbarrier at offset 0 of shared memory of block (0, 0, 0)"},
    {ONLY_FIRST(" call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 0)\n"),
     "a count of 0 arrivals is not 1 to 1048575"},
    {ONLY_FIRST(" %m = getelementptr i8, ptr addrspace(3) @bar, i32 4\n"
                " call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %m, i32 1)\n"),
     "the mbarrier, offset 4 of shared memory, is no multiple of 8"},
    {" call void @wait(ptr addrspace(3) @bar, i32 0)\n" LAST,
     "warp 2 lanes 0-31 wait at mbarrier at offset 0 of shared memory, phase 0, 32 of 32 arrivals and 0 bytes are "
     "missing"},
    {" call void @llvm.nvvm.barrier.cluster.wait.aligned()\n" LAST, "the thread waits without having arrived"},
    {" call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n call void "
     "@llvm.nvvm.barrier.cluster.arrive.aligned()\n" LAST,
     "the thread arrived before and has not waited since"},
    {" %m = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @bar, i32 1)\n" LAST,
     "there is no block 1 in a cluster of 1"},
    // Threads that have exited are not waited for.
    {" br i1 %first, label %go, label %end\ngo:\n call void @llvm.nvvm.barrier.cluster.arrive()\n"
     " call void @llvm.nvvm.barrier.cluster.wait()\n br label %end\nend:\n" LAST,
     NULL}};

START_TEST(forms_and_mistakes) {
  tl_emu_kernel *kernel = create(cases[_i].body, 0, 0);
  for (int m = 0; m < NUM_MODES; m++) {
    tl_status status = run(kernel, 1, &modes[m], 0, NULL);
    if (cases[_i].text)
      expect_failure(status, TL_STATUS_CHECK_FAILED, cases[_i].text, NULL, NULL);
    else
      expect_ok(status);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

static void add_tests(TCase *tests) {
  tcase_add_test(tests, producer_and_consumers);
  tcase_add_test(tests, missing_wait);
  tcase_add_test(tests, across_blocks);
  tcase_add_test(tests, single_try);
  tcase_add_test(tests, counted_tries);
  tcase_add_test(tests, cluster_registers);
  tcase_add_loop_test(tests, forms_and_mistakes, 0, sizeof cases / sizeof cases[0]);
}

int main(void) {
  return run_suite("emulator mbarriers", add_tests);
}
