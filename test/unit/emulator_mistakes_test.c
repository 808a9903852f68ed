// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that hang, diverge, fault or trap end with a report that says who, where and why; the emulator works on.
#include <signal.h>
#include <time.h>

#include "emulator_util.h"

typedef struct run {
  const char *kernel;
  int32_t threads;
  uint32_t blocks;
  const int32_t *index;  // second parameter, when there is one
  tl_emu_options options;
  size_t bytes;  // of the buffer; 0: 4096
} run;

// Compiles and launches; the buffer's first word is left in `*first` when that is wanted.
static tl_status launch(run r, uint32_t *first) {
  tl_emu_kernel *kernel = must_create("mistakes.ll", r.kernel, (kernel_shape){r.index ? 2 : 1, r.threads, 0});
  uint32_t grid[3] = {r.blocks ? r.blocks : 1, 1, 1}, *out = tl_emu_alloc(r.bytes ? r.bytes : 4096, 4);
  int32_t index = r.index ? *r.index : 0;
  tl_status status = tl_emu_launch(kernel, grid, (void *[]){&out, &index}, &r.options, NULL);
  if (first) memcpy(first, out, 32 * sizeof *first);
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
  return status;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

START_TEST(deadlocks) {
  for (uint32_t seed = 0; seed < 4; seed++) {
    tl_emu_options options = {.threads = 2, .seed = seed};
    expect_failure(launch((run){"exit_before_barrier", 64, 3, NULL, options, 0}, NULL), TL_STATUS_CHECK_FAILED,
                   "deadlock", "warp 0 lanes 5-31 wait at llvm.nvvm.barrier.cta.sync.aligned.all (call ",
                   "for lanes 0-4");
    expect_failure(launch((run){"exit_before_barrier", 64, 1, NULL, options, 0}, NULL), TL_STATUS_CHECK_FAILED,
                   "kernel 'exit_before_barrier': block (0, 0, 0)", "warp 0 lanes 0-4 exited",
                   "warp 1 lanes 0-31 wait at barrier 0, 32 of 64 threads arrived");
    expect_failure(launch((run){"exit_before_shuffle", 32, 1, NULL, options, 0}, NULL), TL_STATUS_CHECK_FAILED,
                   "deadlock", "lanes 5-31 wait at llvm.nvvm.shfl.sync.bfly.i32", "lanes 0-4 exited");
  }
}
END_TEST

START_TEST(divergence) {
  for (uint32_t seed = 0; seed < 4; seed++) {
    tl_emu_options options = {.threads = 1, .seed = seed};
    expect_failure(launch((run){"diverge", 32, 1, NULL, options, 0}, NULL), TL_STATUS_CHECK_FAILED,
                   "the lanes of warp 0 diverged", "llvm.nvvm.bar.warp.sync", "llvm.nvvm.shfl.sync.bfly.i32");
    expect_failure(launch((run){"divergent_barrier", 32, 1, NULL, options, 0}, NULL), TL_STATUS_CHECK_FAILED,
                   "diverged", NULL, NULL);
    uint32_t out[32];
    expect_ok(launch((run){"two_halves", 32, 1, NULL, options, 0}, out));
    for (int i = 0; i < 32; i++) ck_assert_uint_eq(out[i], i < 16 ? 0x0000aaaau : 0xaaaa0000u);
  }
  expect_failure(launch((run){"not_in_mask", 32, 1, NULL, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "the executing lane is not in its own member mask 0000ffff", "(warp 0, lane 16)", NULL);
  expect_failure(launch((run){"shuffle_from_outside", 32, 1, NULL, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "reads lane 20, which is not in the member mask 0000ffff", NULL, NULL);
}
END_TEST

START_TEST(barrier_misuse) {
  expect_failure(launch((run){"count_mismatch", 128, 1, NULL, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "barrier 1 has threads waiting with count 128, this one says 64", NULL, NULL);
  expect_failure(launch((run){"odd_count", 64, 1, NULL, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "count 33 of barrier 1 is no multiple of 32", NULL, NULL);
  expect_failure(launch((run){"barrier_16", 32, 1, NULL, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "there is no barrier 16", NULL, NULL);
}
END_TEST

START_TEST(watchdog) {
  static const char *const endless[] = {"spin_forever", "count_forever", "barriers_forever"};
  for (int i = 0; i < 3; i++) {
    double start = now();
    expect_failure(launch((run){endless[i], 64, 2, NULL, {.threads = 2, .timeout_s = 0.2}, 0}, NULL),
                   TL_STATUS_CHECK_FAILED, "still running after 0.2 s", "warp 0 lanes", NULL);
    ck_assert_double_lt(now() - start, 10.0);
  }
}
END_TEST

START_TEST(honest_waits_end) {
  uint32_t out[32];
  for (uint32_t seed = 0; seed < 4; seed++) {
    expect_ok(
        launch((run){"spin_for_other_warp", 128, 1, NULL, {.threads = 1, .seed = seed, .timeout_s = 20}, 0}, out));
    ck_assert_uint_eq(out[0], 5);
    expect_ok(
        launch((run){"spin_for_other_block", 32, 2, NULL, {.threads = 2, .seed = seed, .timeout_s = 20}, 0}, out));
    ck_assert_uint_eq(out[0], 5);
  }
}
END_TEST

START_TEST(global_faults) {
  int32_t index = 1024;
  expect_failure(launch((run){"write_at", 64, 1, &index, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "kernel 'write_at': block (0, 0, 0), thread 37 (warp 1, lane 5): invalid write",
                 "0 bytes past the end of a buffer of 4096 bytes", NULL);
  index = 1030;
  expect_failure(launch((run){"read_at", 1, 1, &index, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "invalid read", "24 bytes past the end of a buffer of 4096 bytes", NULL);
  index = -1;
  expect_failure(launch((run){"read_at", 1, 1, &index, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "invalid read", "4 bytes before the start of a buffer of 4096 bytes", NULL);
  index = 1023;
  expect_ok(launch((run){"write_at", 64, 1, &index, {.threads = 1}, 0}, NULL));
  // The lower end of the page is no guard page: found afterwards.
  index = -3;
  expect_failure(launch((run){"write_at", 64, 1, &index, {.threads = 1}, 64}, NULL), TL_STATUS_CHECK_FAILED,
                 "invalid write 12 bytes before the start of a buffer of 64 bytes", NULL, NULL);
}
END_TEST

START_TEST(wild_pointers) {
  tl_emu_kernel *kernel = must_create("mistakes.ll", "read_at", (kernel_shape){2, 1, 0});
  uint32_t grid[3] = {1, 1, 1};
  int32_t index = 0;
  void *null = NULL, *odd = (void *)0x5a5a5a5a5a5a5a5a;
  expect_failure(tl_emu_launch(kernel, grid, (void *[]){&null, &index}, NULL, NULL), TL_STATUS_CHECK_FAILED,
                 "invalid read", "nowhere near a buffer", NULL);
  expect_failure(tl_emu_launch(kernel, grid, (void *[]){&odd, &index}, NULL, NULL), TL_STATUS_CHECK_FAILED,
                 "an address that is no address", NULL, NULL);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(alignment_slack_is_watched) {
  // 10 bytes, aligned to 16: six bytes between the buffer and the page that faults.
  tl_emu_kernel *kernel = must_create("mistakes.ll", "write_at", (kernel_shape){2, 64, 0});
  uint32_t grid[3] = {1, 1, 1};
  void *out = tl_emu_alloc(10, 16);
  ck_assert_uint_eq((uintptr_t)out % 16, 0);
  int32_t index = 3;
  expect_failure(tl_emu_launch(kernel, grid, (void *[]){&out, &index}, NULL, NULL), TL_STATUS_CHECK_FAILED,
                 "invalid write 2 bytes past the end of a buffer of 10 bytes", NULL, NULL);
  index = 1;
  expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out, &index}, NULL, NULL));  // reported once
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(shared_faults) {
  int32_t index = 256;
  expect_failure(launch((run){"shared_write_at", 1, 1, &index, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "invalid write offset 1024 of shared memory, which has 1024 bytes", NULL, NULL);
  index = -100000;
  expect_failure(launch((run){"shared_write_at", 1, 1, &index, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "below shared memory", NULL, NULL);
  index = 255;
  expect_ok(launch((run){"shared_write_at", 1, 1, &index, {.threads = 1}, 0}, NULL));
}
END_TEST

// What the host's own instructions would let pass.
START_TEST(misaligned_accesses) {
  static const char *const kernels[] = {"read_pair_at", "write_floats_at"};
  for (int32_t index = 1; index < 16; index++) {
    for (int k = 0; k < 2; k++) {
      tl_status status = launch((run){kernels[k], 1, 1, &index, {.threads = 1}, 0}, NULL);
      if (index % (k ? 8 : 4) == 0)
        expect_ok(status);
      else
        expect_failure(status, TL_STATUS_CHECK_FAILED, "misaligned access", NULL, NULL);
    }
  }
}
END_TEST

START_TEST(other_faults) {
  int32_t index = 1;
  expect_failure(launch((run){"read_vector_at", 1, 1, &index, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "misaligned", NULL, NULL);
  index = 0;
  expect_failure(launch((run){"divide", 1, 1, &index, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "division by zero", NULL, NULL);
  for (int threads = 1; threads < 4; threads++)
    expect_failure(launch((run){"trap_in_block_3", 32, 8, NULL, {.threads = threads}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                   "block (3, 0, 0), thread 0 (warp 0, lane 0): trap: llvm.trap (call ", NULL, NULL);
  expect_failure(launch((run){"large_frame", 1, 1, NULL, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "local memory overflow", NULL, NULL);
}
END_TEST

static volatile sig_atomic_t signals_seen;
static void count_signal(int signal) {
  (void)signal;
  signals_seen++;
}

START_TEST(handlers_are_restored) {
  struct sigaction mine = {.sa_handler = count_signal}, now_set;
  sigaction(SIGFPE, &mine, NULL);
  int32_t index = 0;
  expect_failure(launch((run){"divide", 1, 1, &index, {.threads = 1}, 0}, NULL), TL_STATUS_CHECK_FAILED,
                 "division by zero", NULL, NULL);
  sigaction(SIGFPE, NULL, &now_set);
  ck_assert(now_set.sa_handler == count_signal);
  raise(SIGFPE);
  ck_assert_int_eq(signals_seen, 1);
}
END_TEST

START_TEST(good_after_bad) {
  // Stacks and windows are kept between launches: what a failed one leaves behind must not matter.
  for (int i = 0; i < 5; i++) {
    int32_t bad = 5000, good = 3;
    tl_status status = launch((run){"write_at", 64, 1, &bad, {.threads = 1}, 0}, NULL);
    ck_assert_int_eq(tl_status_code_of(status), TL_STATUS_CHECK_FAILED);
    tl_status_free(status);
    uint32_t out[32];
    expect_ok(launch((run){"write_at", 64, 1, &good, {.threads = 1}, 0}, out));
    ck_assert_uint_eq(out[3], 37);
  }
}
END_TEST

START_TEST(refused_modules) {
  tl_emu_kernel *kernel = NULL;
  kernel_shape shape = {1, 32, 0};
  expect_failure(create_from_text("declare i32 @llvm.nvvm.read.ptx.sreg.envreg0()\n"
                                  "declare float @tl.no.such.op(float)\n"
                                  "define ptx_kernel void @k(ptr addrspace(1) %o) {\n"
                                  " %a = call i32 @llvm.nvvm.read.ptx.sreg.envreg0()\n"
                                  " %b = call float @tl.no.such.op(float 1.0)\n ret void\n}\n",
                                  "k", shape, &kernel),
                 TL_STATUS_UNSUPPORTED, "kernel 'k'", "llvm.nvvm.read.ptx.sreg.envreg0, tl.no.such.op", NULL);
  ck_assert_ptr_null(kernel);
  expect_failure(create_from_text("define ptx_kernel void @k(ptr addrspace(1) %o) {\n"
                                  " call void asm sideeffect \"nop\", \"\"()\n ret void\n}\n",
                                  "k", shape, &kernel),
                 TL_STATUS_UNSUPPORTED, "inline assembly", NULL, NULL);
  const char *plain = "define ptx_kernel void @k(ptr addrspace(1) %o) {\n ret void\n}\n";
  expect_failure(create_from_text(plain, "other", shape, &kernel), TL_STATUS_NOT_FOUND, "'other'", NULL, NULL);
  expect_failure(create_from_text(plain, "k", (kernel_shape){2, 32, 0}, &kernel), TL_STATUS_INTERNAL,
                 "has 1 parameters, its manifest 2", NULL, NULL);
  expect_failure(create_from_text(plain, "k", (kernel_shape){1, 0, 0}, &kernel), TL_STATUS_INVALID_ARGUMENT,
                 "0 threads", NULL, NULL);
  expect_failure(create_from_text(plain, "k", (kernel_shape){1, 1025, 0}, &kernel), TL_STATUS_INVALID_ARGUMENT,
                 "1025 threads", NULL, NULL);
  expect_failure(create_from_text("declare void @nowhere()\ndefine ptx_kernel void @k(ptr addrspace(1) %o) {\n"
                                  " call void @nowhere()\n ret void\n}\n",
                                  "k", shape, &kernel),
                 TL_STATUS_INTERNAL, "nowhere", NULL, NULL);
  tl_manifest_kernel manifest = {.name = "k", .block_threads = 32};
  expect_failure(tl_emu_kernel_create("garbage!", 8, &manifest, &kernel), TL_STATUS_INVALID_ARGUMENT, "cannot be read",
                 NULL, NULL);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_test(cases, deadlocks);
  tcase_add_test(cases, divergence);
  tcase_add_test(cases, barrier_misuse);
  tcase_add_test(cases, watchdog);
  tcase_add_test(cases, honest_waits_end);
  tcase_add_test(cases, global_faults);
  tcase_add_test(cases, wild_pointers);
  tcase_add_test(cases, alignment_slack_is_watched);
  tcase_add_test(cases, shared_faults);
  tcase_add_test(cases, misaligned_accesses);
  tcase_add_test(cases, other_faults);
  tcase_add_test(cases, handlers_are_restored);
  tcase_add_test(cases, good_after_bad);
  tcase_add_test(cases, refused_modules);
}

int main(void) {
  return run_suite("emulator mistakes", add_tests);
}
