// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launching, parameters, special registers, shared memory, barriers, orders.
#include <pthread.h>

#include "emulator_util.h"

// Orders and thread counts that every correct kernel must give the same results under.
static const tl_emu_options variants[] = {
    {.threads = 1},
    {.threads = 1, .seed = 1},
    {.threads = 2, .seed = 2, .landing = TL_LANDING_EARLY},
    {.threads = 3, .seed = 3},
    {.threads = 0, .seed = 99},
};
enum { NUM_VARIANTS = sizeof variants / sizeof variants[0] };

START_TEST(registers) {
  tl_emu_kernel *kernel = must_create("basics.ll", "registers", (kernel_shape){1, 48, 0});
  for (int v = 0; v < NUM_VARIANTS; v++) {
    uint32_t grid[3] = {3, 2, 2}, *out = tl_emu_alloc(12 * 48 * 9 * 4, 4);
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &variants[v], NULL));
    for (uint32_t block = 0; block < 12; block++) {
      for (uint32_t t = 0; t < 48; t++) {
        uint32_t want[9] = {t, t % 32, 48, block % 3, block / 3 % 2, block / 6, 3, 2, 2};
        ck_assert_mem_eq(out + (block * 48 + t) * 9, want, sizeof want);
      }
    }
    tl_emu_free(out);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(parameters) {
  tl_emu_kernel *kernel = must_create("basics.ll", "parameters", (kernel_shape){6, 1, 0});
  void *out = tl_emu_alloc(32, 16);
  float f = 1.5f;
  double d = -2.25;
  int64_t l = 1ll << 40;
  uint16_t h = 0x3e00;  // 1.5
  int8_t b = -3;
  uint32_t grid[3] = {1, 1, 1};
  expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out, &f, &d, &l, &h, &b}, NULL, NULL));
  struct {
    float f, gap;
    double d;
    int64_t l;
    float h;
    int32_t b;
  } got;
  memcpy(&got, out, sizeof got);
  ck_assert(got.f == f && got.d == d && got.l == l && got.h == 1.5f && got.b == -3);
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(shared_exchange) {
  tl_emu_kernel *kernel = must_create("basics.ll", "reverse", (kernel_shape){1, 64, 0});
  for (int v = 0; v < NUM_VARIANTS; v++) {
    uint32_t grid[3] = {5, 1, 1}, *out = tl_emu_alloc(5 * 64 * 4, 4);
    tl_emu_stats stats;
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &variants[v], &stats));
    for (uint32_t i = 0; i < 5 * 64; i++) ck_assert_uint_eq(out[i], i / 64 * 64 + 63 - i % 64);
    ck_assert_uint_eq(stats.barriers, 5);
    ck_assert(stats.switches >= 5 * 64 && stats.jit_seconds > 0 && stats.run_seconds > 0);
    tl_emu_free(out);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(missing_barrier_shows) {
  tl_emu_kernel *kernel = must_create("basics.ll", "reverse_without_barrier", (kernel_shape){1, 64, 0});
  for (int v = 0; v < NUM_VARIANTS; v++) {
    uint32_t grid[3] = {1, 1, 1}, *out = tl_emu_alloc(64 * 4, 4), wrong = 0;
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &variants[v], NULL));
    for (uint32_t i = 0; i < 64; i++) {
      wrong += out[i] != 63 - i;
      ck_assert(out[i] == 63 - i || out[i] == 0xffffffffu);  // what is not written yet is poison
    }
    ck_assert_uint_ge(wrong, 32);
    tl_emu_free(out);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(dynamic_shared_memory) {
  tl_emu_kernel *kernel = must_create("basics.ll", "shared_layout", (kernel_shape){1, 1, 100});
  uint32_t grid[3] = {1, 1, 1}, *out = tl_emu_alloc(8, 4);
  expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, NULL, NULL));
  ck_assert_uint_eq(out[0], 256);  // behind the static part
  ck_assert_uint_eq(out[1], 0xffffffffu);
  tl_emu_kernel_destroy(kernel);

  // The last store goes past 96 dynamic bytes.
  kernel = must_create("basics.ll", "shared_layout", (kernel_shape){1, 1, 96});
  expect_failure(tl_emu_launch(kernel, grid, (void *[]){&out}, NULL, NULL), TL_STATUS_CHECK_FAILED,
                 "invalid write offset 352 of shared memory, which has 352 bytes", NULL, NULL);
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(named_barriers) {
  tl_emu_kernel *kernel = must_create("basics.ll", "named_barriers", (kernel_shape){1, 128, 0});
  for (int v = 0; v < NUM_VARIANTS; v++) {
    uint32_t grid[3] = {1, 1, 1}, *out = tl_emu_alloc(128 * 4, 4);
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &variants[v], NULL));
    for (uint32_t t = 0; t < 128; t++) ck_assert_uint_eq(out[t], t & 32 ? t - 32 : 0xffffffffu);
    tl_emu_free(out);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(many_barriers) {
  tl_emu_kernel *kernel = must_create("basics.ll", "many_barriers", (kernel_shape){1, 64, 0});
  for (int v = 0; v < NUM_VARIANTS; v++) {
    uint32_t grid[3] = {1, 1, 1}, *out = tl_emu_alloc(64 * 4, 4);
    tl_emu_stats stats;
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &variants[v], &stats));
    for (uint32_t t = 0; t < 64; t++) ck_assert_uint_eq(out[t], (t + 64 * 2 - 100) % 64);
    ck_assert_uint_eq(stats.barriers, 200);
    tl_emu_free(out);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(warp_exchange) {
  tl_emu_kernel *kernel = must_create("basics.ll", "warp_exchange", (kernel_shape){1, 64, 0});
  for (int v = 0; v < NUM_VARIANTS; v++) {
    uint32_t grid[3] = {1, 1, 1}, *out = tl_emu_alloc(64 * 4, 4);
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &variants[v], NULL));
    for (uint32_t t = 0; t < 64; t++) ck_assert_uint_eq(out[t], t ^ 31);
    tl_emu_free(out);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(empty_grid) {
  tl_emu_kernel *kernel = must_create("basics.ll", "registers", (kernel_shape){1, 48, 0});
  for (int i = 0; i < 3; i++) {
    uint32_t grid[3] = {3, 3, 3}, *out = NULL;
    grid[i] = 0;
    tl_emu_stats stats;
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, NULL, &stats));
    ck_assert_uint_eq(stats.switches, 0);
  }
  uint32_t large[3] = {1, 65536, 1}, *out = NULL;
  expect_failure(tl_emu_launch(kernel, large, (void *[]){&out}, NULL, NULL), TL_STATUS_INVALID_ARGUMENT, "too large",
                 NULL, NULL);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(the_same_again) {
  // Switch counts are a fingerprint of the order: the same options give the same, and seeds do make a difference.
  tl_emu_kernel *kernel = must_create("basics.ll", "reverse_without_barrier", (kernel_shape){1, 64, 0});
  uint32_t grid[3] = {1, 1, 1}, *out = tl_emu_alloc(64 * 4, 4), first[64], patterns = 0;
  for (uint32_t seed = 0; seed < 16; seed++) {
    tl_emu_options options = {.threads = 1, .seed = seed};
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &options, NULL));
    memcpy(first, out, sizeof first);
    patterns |= first[0] == 63 ? 1 : 2;
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &options, NULL));
    ck_assert_mem_eq(first, out, sizeof first);
  }
  ck_assert_uint_eq(patterns, 3);
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

static const char reverse_1024[] =
    "@numbers = external addrspace(3) global [0 x i32], align 16\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
    "define ptx_kernel void @k(ptr addrspace(1) %out) {\n"
    " %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    " %s = getelementptr i32, ptr addrspace(3) @numbers, i32 %tid\n store i32 %tid, ptr addrspace(3) %s\n"
    " call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
    " %other = sub i32 1023, %tid\n"
    " %t = getelementptr i32, ptr addrspace(3) @numbers, i32 %other\n %v = load i32, ptr addrspace(3) %t\n"
    " %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid\n store i32 %v, ptr addrspace(1) %o\n ret void\n}\n";

START_TEST(largest_block) {
  // As many threads as a block may have, and as much shared memory as an H200 gives one.
  tl_emu_kernel *kernel = NULL;
  expect_ok(create_from_text(reverse_1024, "k", (kernel_shape){1, 1024, 227 << 10}, &kernel));
  for (int v = 0; v < NUM_VARIANTS; v++) {
    uint32_t grid[3] = {2, 1, 1}, *out = tl_emu_alloc(4096, 4);
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &variants[v], NULL));
    for (uint32_t t = 0; t < 1024; t++) ck_assert_uint_eq(out[t], 1023 - t);
    tl_emu_free(out);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

// Compiles and launches in a loop; NULL when all went well.
static void *use_emulator(void *argument) {
  void *failed = argument;
  for (int i = 0; i < 3; i++) {
    tl_emu_kernel *kernel = NULL;
    if (create_from_text(reverse_1024, "k", (kernel_shape){1, 1024, 4096}, &kernel)) return failed;
    uint32_t grid[3] = {3, 1, 1}, *out = tl_emu_alloc(4096, 4), wrong = 0;
    tl_emu_options options = {.threads = 2, .seed = (uint32_t)i};
    if (tl_emu_launch(kernel, grid, (void *[]){&out}, &options, NULL)) return failed;
    for (uint32_t t = 0; t < 1024; t++) wrong += out[t] != 1023 - t;
    tl_emu_free(out);
    tl_emu_kernel_destroy(kernel);
    if (wrong) return failed;
  }
  return NULL;
}

START_TEST(launches_at_the_same_time) {
  pthread_t ids[4];
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&ids[i], NULL, use_emulator, ids), 0);
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(ids[i], &result);
    ck_assert_ptr_null(result);
  }
}
END_TEST

START_TEST(hints_do_nothing) {
  tl_emu_kernel *kernel = NULL;
  expect_ok(
      create_from_text("declare void @llvm.nvvm.membar.cta()\ndeclare void @llvm.nvvm.membar.gl()\n"
                       "declare void @llvm.nvvm.membar.sys()\ndeclare void @llvm.nvvm.fence.sc.cluster()\n"
                       "declare void @llvm.nvvm.nanosleep(i32)\n"
                       "define ptx_kernel void @k(ptr addrspace(1) %out) {\n"
                       " call void @llvm.nvvm.membar.cta()\n call void @llvm.nvvm.membar.gl()\n"
                       " call void @llvm.nvvm.membar.sys()\n call void @llvm.nvvm.fence.sc.cluster()\n"
                       " call void @llvm.nvvm.nanosleep(i32 100)\n store i32 9, ptr addrspace(1) %out\n"
                       " ret void\n}\n",
                       "k", (kernel_shape){1, 64, 0}, &kernel));
  uint32_t grid[3] = {1, 1, 1}, *out = tl_emu_alloc(4, 4);
  expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, NULL, NULL));
  ck_assert_uint_eq(*out, 9);
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(buffers) {
  static const size_t sizes[] = {0, 1, 2, 15, 16, 4095, 4096, 4097, 100000};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    for (size_t align = 1; align <= 256; align *= 4) {
      uint8_t *buffer = tl_emu_alloc(sizes[i], align);
      ck_assert_uint_eq((uintptr_t)buffer % align, 0);
      // The end is less than one alignment step below a page boundary.
      ck_assert_uint_lt((4096 - ((uintptr_t)buffer + sizes[i]) % 4096) % 4096, align);
      for (size_t k = 0; k < sizes[i]; k++) ck_assert_uint_eq(buffer[k], 0xff);
      tl_emu_free(buffer);
    }
  }
  tl_emu_free(NULL);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_test(cases, registers);
  tcase_add_test(cases, parameters);
  tcase_add_test(cases, shared_exchange);
  tcase_add_test(cases, missing_barrier_shows);
  tcase_add_test(cases, dynamic_shared_memory);
  tcase_add_test(cases, named_barriers);
  tcase_add_test(cases, many_barriers);
  tcase_add_test(cases, warp_exchange);
  tcase_add_test(cases, empty_grid);
  tcase_add_test(cases, the_same_again);
  tcase_add_test(cases, largest_block);
  tcase_add_test(cases, launches_at_the_same_time);
  tcase_add_test(cases, hints_do_nothing);
  tcase_add_test(cases, buffers);
}

int main(void) {
  return run_suite("emulator basics", add_tests);
}
