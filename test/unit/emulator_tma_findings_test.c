// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels with asynchronous copies that lack one thing: what the checks, or the emulator without them, say.
#include "emulator_tma_kernels.h"

static const tl_emu_options late = {.threads = 1}, early = {.threads = 1, .landing = TL_LANDING_EARLY},
                            other = {.threads = 1, .seed = 5};

#define COMMIT "call void @llvm.nvvm.cp.async.bulk.commit.group()\n "
#define WAIT "call void @llvm.nvvm.cp.async.bulk.wait.group(i32 0)\n "
#define WAIT_READ "call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)\n "
#define OVERWRITE "store i64 2, ptr addrspace(3) %dst\n "
#define GLOBAL "%g = getelementptr i8, ptr addrspace(1) %io, i32 32768\n "
#define LOOK "%seen = load volatile i64, ptr addrspace(1) %g\n "
#define BULK_STORE                                                                                                    \
  GLOBAL                                                                                                              \
  "call void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1) %g, ptr addrspace(3) %dst, i32 %expect, " \
  "i64 0, i1 false)"
#define BULK_LOAD                                                                                              \
  "call void @llvm.nvvm.cp.async.bulk.global.to.shared.cta(ptr addrspace(3) %dst, ptr addrspace(3) @bar, ptr " \
  "addrspace(1) %io, i32 256, i64 0, i1 false)\n "
#define FENCE " call void @llvm.nvvm.fence.proxy.async.shared_cta()\n"

typedef struct mistake {
  bool is_load;
  const char *call, *after;
  const char *without;  // a text that is taken out of the kernel
  uint32_t expect;
  const char *texts[3];  // of what is found; none: nothing is
} mistake;

static const mistake mistakes[] = {
    {false, BULK_STORE, COMMIT WAIT, NULL, 256, {NULL}},
    {false, BULK_STORE, COMMIT WAIT_READ, NULL, 256, {NULL}},
    {false, BULK_STORE, COMMIT WAIT_READ OVERWRITE WAIT, NULL, 256, {NULL}},
    {false, BULK_STORE, COMMIT WAIT LOOK, NULL, 256, {NULL}},
    // The writes of the fill do not reach the async proxy.
    {false,
     BULK_STORE,
     COMMIT WAIT,
     FENCE,
     256,
     {"missing proxy fence", "llvm.nvvm.cp.async.bulk.shared.cta.to.global (call ",
      "missing: fence.proxy.async of thread 0 after its write, before what orders the two"}},
    // The source is overwritten while the copy may still read it.
    {false,
     BULK_STORE,
     COMMIT OVERWRITE WAIT,
     NULL,
     256,
     {"race: thread 0 (warp 0, lane 0) of block (0, 0, 0) writes 8 bytes at shared memory, byte 0, store",
      "the asynchronous operation of thread 0 (warp 0, lane 0) of block (0, 0, 0) read it before, "
      "llvm.nvvm.cp.async.bulk.shared.cta.to.global",
      "missing: a wait for the completion of the operation that the other side started"}},
    // The destination is read after the source was, not after the copy.
    {false,
     BULK_STORE,
     COMMIT WAIT_READ LOOK,
     NULL,
     256,
     {"race: thread 0 (warp 0, lane 0) of block (0, 0, 0) reads 8 bytes at byte 32768 of a buffer of 65536 bytes, load",
      "wrote it before, llvm.nvvm.cp.async.bulk.shared.cta.to.global",
      "missing: a wait for the completion of the operation that the other side started"}},
    // The thread ends while the copy may still read its shared memory.
    {false,
     BULK_STORE,
     COMMIT,
     NULL,
     256,
     {"unawaited operation: the asynchronous operation of thread 0 (warp 0, lane 0) of block (0, 0, 0)",
      "starts what nobody waits for, llvm.nvvm.cp.async.bulk.shared.cta.to.global (call ",
      "missing: a wait for it before the end of the block"}},
    {false,
     BULK_STORE,
     "",
     NULL,
     256,
     {"unawaited operation: the asynchronous operation of thread 0 (warp 0, lane 0) of block (0, 0, 0)",
      "starts what nobody waits for, llvm.nvvm.cp.async.bulk.shared.cta.to.global (call ",
      "missing: a wait for it before the end of the block"}},
    {true, BULK_LOAD, "", NULL, 256, {NULL}},
    // The destination is read before the mbarrier says that it is there.
    {true,
     BULK_LOAD "%seen = load volatile i64, ptr addrspace(3) %dst\n ",
     "",
     NULL,
     256,
     {"race: thread 0 (warp 0, lane 0) of block (0, 0, 0) reads 8 bytes at shared memory, byte 0, load",
      "wrote it before, llvm.nvvm.cp.async.bulk.global.to.shared.cta",
      "missing: a wait for the completion of the operation that the other side started"}},
    // It is overwritten before.
    {true,
     BULK_LOAD OVERWRITE,
     "",
     NULL,
     256,
     {"race: thread 0 (warp 0, lane 0) of block (0, 0, 0) writes 8 bytes at shared memory, byte 0, store", NULL, NULL}},
    // Two copies to one place.
    {true, BULK_LOAD BULK_LOAD, "", NULL, 512, {"race: the asynchronous operation of thread 0", NULL, NULL}},
};

// The text without its first `part`.
static void take_out(char *text, const char *part) {
  char *at = strstr(text, part);
  ck_assert(at != NULL);
  memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
}

static tl_status find(const mistake *m, const tl_emu_options *options) {
  tl_strbuf declaration = {0};
  tma_declare(strstr(m->call, "call void @"), &declaration);
  char *text = m->is_load ? tma_load_kernel(tl_strbuf_c(&declaration), m->call)
                          : tma_store_kernel(tl_strbuf_c(&declaration), m->call, m->after);
  tl_strbuf_fini(&declaration);
  if (m->without) take_out(text, m->without);
  tl_emu_kernel *kernel = tma_compile(text);
  tma_launch launch = {.io = tl_emu_alloc(TMA_SHARED, 128), .expect = m->expect};
  memset(launch.io, 1, TMA_SHARED);
  tl_status status = tma_run(kernel, &launch, options);
  tl_emu_free(launch.io);
  tl_emu_kernel_destroy(kernel);
  return status;
}

START_TEST(found) {
  const mistake *m = &mistakes[_i];
  const tl_emu_options *modes[] = {&late, &early, &other};
  tma_checks = m->is_load ? TMA_CHECK_LOADS : TL_EMU_SANITIZE_ALL;
  for (int i = 0; i < 3; i++) {
    tl_status status = find(m, modes[i]);
    if (m->texts[0])
      expect_failure(status, TL_STATUS_CHECK_FAILED, m->texts[0], m->texts[1], m->texts[2]);
    else
      expect_ok(status);
  }
}
END_TEST

// Without checks: the phase never completes, and the dump says what is missing.
START_TEST(transactions_that_do_not_come) {
  const mistake more = {true, BULK_LOAD, "", NULL, 272, {NULL}}, less = {true, BULK_LOAD, "", NULL, 240, {NULL}};
  const tl_emu_options *modes[] = {&late, &early, &other};
  for (int i = 0; i < 3; i++) {
    expect_failure(
        find(&more, modes[i]), TL_STATUS_CHECK_FAILED, "deadlock, no thread can go on",
        "wait at mbarrier at offset 65536 of shared memory, phase 0, 0 of 1 arrivals and 16 bytes are missing, "
        "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta (call ",
        "  warp 0 lanes 0-31 wait at mbarrier");
    expect_failure(find(&less, modes[i]), TL_STATUS_CHECK_FAILED, "deadlock, no thread can go on",
                   "phase 0, 0 of 1 arrivals and -16 bytes are missing", "warp 1 lanes 0-31");
  }
}
END_TEST

START_TEST(no_mbarrier) {
  mistake m = {true, BULK_LOAD, "", " call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)\n",
               256,  {NULL}};
  expect_failure(find(&m, &late), TL_STATUS_CHECK_FAILED,
                 "there is no mbarrier at offset 65536 of shared memory of block (0, 0, 0)", "llvm.nvvm.mbarrier.",
                 NULL);
}
END_TEST

START_TEST(mbarrier_unknown_to_the_engine) {
  mistake m = {true, BULK_LOAD, "", " call void @llvm.nvvm.fence.mbarrier_init.release.cluster()\n", 256, {NULL}};
  expect_failure(find(&m, &late), TL_STATUS_CHECK_FAILED,
                 "the copy engine does not know of the mbarrier at offset 65536 of shared memory",
                 "fence.mbarrier_init or fence.proxy.async lacks behind its initialisation", NULL);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_loop_test(cases, found, 0, sizeof mistakes / sizeof mistakes[0]);
  tcase_add_test(cases, transactions_that_do_not_come);
  tcase_add_test(cases, no_mbarrier);
  tcase_add_test(cases, mbarrier_unknown_to_the_engine);
}

int main(void) {
  return run_suite("emulator findings in asynchronous copies", add_tests);
}
