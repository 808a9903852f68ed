// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bulk copies and reductions of one block, and when they happen: groups, late and early landing.
#include <math.h>

#include "emulator_tma_kernels.h"
#include "llvm_backend/device/device_ops.h"
#include "support/dtype.h"

// The tests' global memory: the bytes that shared memory is filled with, of which the upper half is also a destination.
enum { DESTINATION = TMA_SHARED / 2 };

#define GLOBAL "%g = getelementptr i8, ptr addrspace(1) %io, i32 %c0\n "

static const tl_emu_options late = {.threads = 1}, early = {.threads = 1, .landing = TL_LANDING_EARLY};

// A tensor map is a parameter of all kernels, also of those that do not look at it.
static tma_launch make_launch(void) {
  tma_launch launch = {.io = tl_emu_alloc(TMA_SHARED, 128)};
  for (int i = 0; i < TMA_SHARED; i++) launch.io[i] = (uint8_t)tma_random(256);
  return launch;
}

static tl_emu_kernel *create(bool is_load, const char *call, const char *after) {
  const char *op = strstr(call, "call void @");
  tl_strbuf text = {0};
  tma_declare(op, &text);
  char *kernel =
      is_load ? tma_load_kernel(tl_strbuf_c(&text), call) : tma_store_kernel(tl_strbuf_c(&text), call, after);
  tl_strbuf_fini(&text);
  return tma_compile(kernel);
}

static const char *const loads[] = {
    GLOBAL
    "call void @llvm.nvvm.cp.async.bulk.global.to.shared.cluster(ptr addrspace(7) %dst7, ptr addrspace(3) @bar, "
    "ptr addrspace(1) %g, i32 %expect, i16 0, i64 0, i1 false, i1 false)",
    GLOBAL
    "call void @llvm.nvvm.cp.async.bulk.global.to.shared.cta(ptr addrspace(3) %dst, ptr addrspace(3) @bar, "
    "ptr addrspace(1) %g, i32 %expect, i64 0, i1 false)"};

START_TEST(copies_to_shared) {
  tma_checks = TMA_CHECK_LOADS;
  static uint8_t want[TMA_SHARED];
  tl_emu_kernel *kernel = create(true, loads[_i], "");
  for (uint32_t i = 0; i < 40; i++) {
    tma_launch launch = make_launch();
    launch.expect = 16 * tma_random(1000);
    launch.offset = 16 * tma_random(1000);
    launch.coords[0] = (int32_t)(16 * tma_random(1000));
    memset(want, 0xff, sizeof want);
    memcpy(want + launch.offset, launch.io + launch.coords[0], launch.expect);
    expect_ok(tma_run(kernel, &launch, i % 2 ? &late : &early));
    ck_assert_mem_eq(want, launch.io, TMA_SHARED);
    tl_emu_free(launch.io);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

#define STORE                                                                                                         \
  GLOBAL                                                                                                              \
  "call void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1) %g, ptr addrspace(3) %dst, i32 %expect, " \
  "i64 0, i1 false)"

START_TEST(copies_to_global) {
  tma_checks = TL_EMU_SANITIZE_ALL;
  static uint8_t want[TMA_SHARED];
  tl_emu_kernel *kernel = create(false, STORE, TMA_WAIT_ALL);
  for (uint32_t i = 0; i < 40; i++) {
    tma_launch launch = make_launch();
    launch.expect = 16 * tma_random(1000);
    launch.offset = 16 * tma_random(1000);
    launch.coords[0] = DESTINATION + (int32_t)(16 * tma_random(1000));
    memcpy(want, launch.io, sizeof want);
    memcpy(want + launch.coords[0], launch.io + launch.offset, launch.expect);
    expect_ok(tma_run(kernel, &launch, i % 2 ? &late : &early));
    ck_assert_mem_eq(want, launch.io, TMA_SHARED);
    tl_emu_free(launch.io);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

// ---- reductions

typedef struct number_type {
  const char *name;
  uint32_t bytes;
  tl_dtype dtype;  // NONE: bits
} number_type;
static const number_type number_types[] = {
    {"u32", 4, TL_DTYPE_U32}, {"s32", 4, TL_DTYPE_I32}, {"u64", 8, TL_DTYPE_U64},   {"s64", 8, TL_DTYPE_I64},
    {"b32", 4, TL_DTYPE_U32}, {"b64", 8, TL_DTYPE_U64}, {"bf16", 2, TL_DTYPE_BF16}, {"f16", 2, TL_DTYPE_F16},
    {"f32", 4, TL_DTYPE_F32}, {"f64", 8, TL_DTYPE_F64}};

static void reduce_one(const char *op, const number_type *type, uint8_t *to, const uint8_t *from) {
  bool is_min = !strncmp(op, "min", 3), is_max = !strncmp(op, "max", 3), is_add = !strncmp(op, "add", 3);
  if (tl_dtype_is_float(type->dtype)) {
    double a = tl_dtype_load_float(type->dtype, to, 0), b = tl_dtype_load_float(type->dtype, from, 0);
    tl_dtype_store_float(type->dtype, to, 0, is_add ? a + b : is_min ? fmin(a, b) : fmax(a, b));
    return;
  }
  int64_t a = tl_dtype_load_int(type->dtype, to, 0), b = tl_dtype_load_int(type->dtype, from, 0);
  bool less = tl_dtype_is_signed_int(type->dtype) ? a < b : (uint64_t)a < (uint64_t)b;
  int64_t r = is_add                   ? (int64_t)((uint64_t)a + (uint64_t)b)
              : is_min                 ? (less ? a : b)
              : is_max                 ? (less ? b : a)
              : !strncmp(op, "inc", 3) ? (less ? a + 1 : 0)
              : !strncmp(op, "dec", 3) ? (a == 0 || a > b ? b : a - 1)
              : !strncmp(op, "and", 3) ? (a & b)
              : !strncmp(op, "or", 2)  ? (a | b)
                                       : (a ^ b);
  tl_dtype_store_int(type->dtype, to, 0, r);
}

static void fill_numbers(const number_type *type, uint8_t *to) {
  if (!tl_dtype_is_float(type->dtype)) return;
  for (uint32_t i = 0; i < TMA_SHARED / type->bytes; i++)
    tl_dtype_store_float(type->dtype, to, i, (double)tma_random(1 << 16) / 4096.0 - 8.0);
}

// The row's name ends in op and type: "add.noftz.f16".
static void check_reduction(const char *name) {
  const char *op = strstr(name, ".global.") + strlen(".global.");
  const number_type *type = NULL;
  for (size_t i = 0; i < sizeof number_types / sizeof number_types[0]; i++)
    if (!strcmp(strrchr(op, '.') + 1, number_types[i].name)) type = &number_types[i];
  ck_assert_msg(type != NULL, "%s", name);
  char call[400];
  snprintf(call, sizeof call, "%s call void @%s(ptr addrspace(1) %%g, ptr addrspace(3) %%dst, i32 %%expect)", GLOBAL,
           name);
  tl_emu_kernel *kernel = create(false, call, TMA_WAIT_ALL);
  for (int i = 0; i < 4; i++) {
    static uint8_t want[TMA_SHARED];
    tma_launch launch = make_launch();
    fill_numbers(type, launch.io);
    for (int k = 0; k < 64 && (!strncmp(op, "inc", 3) || !strncmp(op, "dec", 3)); k += 4)
      memset(launch.io + DESTINATION + 4096 + k, k % 8 ? 0 : (int)tma_random(256), 4);
    launch.expect = 4096;
    launch.offset = 16 * tma_random(100);
    launch.coords[0] = DESTINATION + 4096;
    memcpy(want, launch.io, sizeof want);
    for (uint32_t at = 0; at < launch.expect; at += type->bytes)
      reduce_one(op, type, want + launch.coords[0] + at, launch.io + launch.offset + at);
    expect_ok(tma_run(kernel, &launch, i % 2 ? &late : &early));
    ck_assert_msg(!memcmp(want, launch.io, TMA_SHARED), "%s", name);
    tl_emu_free(launch.io);
  }
  tl_emu_kernel_destroy(kernel);
}

START_TEST(reductions) {
  tma_checks = TL_EMU_SANITIZE_ALL;
  int seen = 0;
  for (int i = 0; i < TL_DEVOP_COUNT; i++) {
    const char *name = tl_device_op_of((tl_device_op_id)i)->name;
    if (strncmp(name, "tl.cp.reduce.async.bulk.global.", 31) != 0) continue;
    check_reduction(name);
    seen++;
  }
  ck_assert_int_eq(seen, 27);
}
END_TEST

// ---- when it happens

typedef struct timing {
  const char *after;     // the first store
  uint64_t late, early;  // what a load of the destination's first word then gives: see below
} timing;
// What words are: the source before and after the kernel overwrote it, poison, and the destination's old value.
enum { OLD = 1, NEW = 2, WAS = 3 };
#define POISON UINT64_MAX

#define COMMIT "call void @llvm.nvvm.cp.async.bulk.commit.group()\n "
#define WAIT(n) "call void @llvm.nvvm.cp.async.bulk.wait.group(i32 " #n ")\n "
#define WAIT_READ(n) "call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 " #n ")\n "
#define OVERWRITE "store i64 2, ptr addrspace(3) %dst\n "
#define LOOK                                                                                         \
  "%seen = load i64, ptr addrspace(1) %g\n %out = getelementptr i8, ptr addrspace(1) %io, i32 64\n " \
  "store i64 %seen, ptr addrspace(1) %out\n "
#define STORE_2                                                                                                       \
  "%g2 = getelementptr i8, ptr addrspace(1) %g, i32 16\n "                                                            \
  "call void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1) %g2, ptr addrspace(3) %dst, i32 16, i64 " \
  "0, i1 "                                                                                                            \
  "false)\n "
#define LOOK_2                                                                                        \
  "%seen = load i64, ptr addrspace(1) %g2\n %out = getelementptr i8, ptr addrspace(1) %io, i32 64\n " \
  "store i64 %seen, ptr addrspace(1) %out\n "

static const timing timings[] = {
    // Nobody waits: the destination is being written. Afterwards it is there.
    {COMMIT LOOK WAIT(0), POISON, OLD},
    {COMMIT WAIT_READ(0) LOOK WAIT(0), POISON, OLD},
    {COMMIT WAIT(0) LOOK, OLD, OLD},
    // The source is read at the wait: overwriting it before is a mistake that shows.
    {COMMIT OVERWRITE WAIT(0) LOOK, NEW, OLD},
    {COMMIT WAIT_READ(0) OVERWRITE WAIT(0) LOOK, OLD, OLD},
    // A group that is not committed is not waited for.
    {WAIT(0) LOOK COMMIT WAIT(0), POISON, OLD},
    // Of two groups the older one.
    {COMMIT STORE_2 COMMIT WAIT(1) LOOK WAIT(0), OLD, OLD},
    {COMMIT STORE_2 COMMIT WAIT(1) LOOK_2 WAIT(0), POISON, OLD},
    {COMMIT STORE_2 COMMIT WAIT(7) LOOK WAIT(0), POISON, OLD},
    {COMMIT STORE_2 COMMIT WAIT_READ(1) OVERWRITE WAIT(0) LOOK, OLD, OLD},
    {COMMIT STORE_2 COMMIT WAIT_READ(1) OVERWRITE WAIT(0) LOOK_2, NEW, OLD},
    {STORE_2 COMMIT WAIT(0) LOOK_2, OLD, OLD},
};

START_TEST(groups) {
  const timing *t = &timings[_i];
  tl_emu_kernel *kernel = create(false, STORE, t->after);
  for (int mode = 0; mode < 2; mode++) {
    tma_launch launch = make_launch();
    uint64_t *words = (uint64_t *)(void *)launch.io;
    words[0] = OLD;
    words[DESTINATION / 8] = words[DESTINATION / 8 + 2] = WAS;
    launch.expect = 16;
    launch.coords[0] = DESTINATION;
    expect_ok(tma_run(kernel, &launch, mode ? &early : &late));
    ck_assert_uint_eq(words[8], mode ? t->early : t->late);
    ck_assert_uint_ne(words[DESTINATION / 8], WAS);  // in the end it is there
    ck_assert_uint_ne(words[DESTINATION / 8], POISON);
    tl_emu_free(launch.io);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

// The kernel ends without a wait: the copy lands all the same.
START_TEST(end_without_wait) {
  static const char *const after[] = {"", COMMIT, COMMIT WAIT_READ(0)};
  tl_emu_kernel *kernel = create(false, STORE, after[_i]);
  tma_launch launch = make_launch();
  launch.expect = 256;
  launch.coords[0] = DESTINATION;
  expect_ok(tma_run(kernel, &launch, &late));
  ck_assert_mem_eq(launch.io, launch.io + DESTINATION, 256);
  tl_emu_free(launch.io);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

// A load that nobody waited for is poison, and so is one whose source was overwritten before it landed.
START_TEST(loads_are_late) {
  for (int i = 0; i < 2; i++) {
    char call[600];
    snprintf(call, sizeof call,
             "%s\n %%seen = load i64, ptr addrspace(3) %%dst\n store i64 %d, ptr addrspace(1) %%g\n"
             " %%out = getelementptr i8, ptr addrspace(3) @sm, i32 64\n store i64 %%seen, ptr addrspace(3) %%out",
             loads[i], NEW);
    tl_emu_kernel *kernel = create(true, call, "");
    for (int mode = 0; mode < 2; mode++) {
      tma_launch launch = make_launch();
      uint64_t *words = (uint64_t *)(void *)launch.io;
      words[0] = OLD;
      launch.expect = 16;
      launch.offset = 128;
      expect_ok(tma_run(kernel, &launch, mode ? &early : &late));
      ck_assert_uint_eq(words[8], mode ? OLD : POISON);
      ck_assert_uint_eq(words[16], mode ? OLD : NEW);
      tl_emu_free(launch.io);
    }
    tl_emu_kernel_destroy(kernel);
  }
}
END_TEST

// ---- mistakes

static void refused(bool is_load, const char *call, const tma_launch *like, const char *text) {
  tl_emu_kernel *kernel = create(is_load, call, "");
  tma_launch launch = *like;
  const char *op = strstr(call, "@") + 1;
  char name[80];
  snprintf(name, sizeof name, "thread 0 (warp 0, lane 0): %.*s (call ", (int)(strchr(op, '(') - op), op);
  expect_failure(tma_run(kernel, &launch, &late), TL_STATUS_CHECK_FAILED, text, name, NULL);
  tl_emu_kernel_destroy(kernel);
}

#define PREFETCH \
  GLOBAL "call void @llvm.nvvm.cp.async.bulk.prefetch.L2(ptr addrspace(1) %g, i32 %expect, i64 0, i1 false)"

START_TEST(prefetch) {
  tma_launch launch = make_launch();
  launch.expect = 64;
  tl_emu_kernel *kernel = create(false, PREFETCH, "");
  expect_ok(tma_run(kernel, &launch, &late));
  tl_emu_kernel_destroy(kernel);
  launch.expect = 65;
  refused(false, PREFETCH, &launch, "the size 65 is no multiple of 16");
  launch.expect = 64;
  launch.coords[0] = 2;
  refused(false, PREFETCH, &launch, "in global memory is no multiple of 16");
  tl_emu_free(launch.io);
}
END_TEST

START_TEST(mistakes) {
  tma_launch launch = make_launch();
  for (int i = 0; i < 2; i++) {
    launch.expect = 24;
    refused(true, loads[i], &launch, "the size 24 is no multiple of 16");
    launch.expect = 32;
    launch.coords[0] = 8;
    refused(true, loads[i], &launch, "in global memory is no multiple of 16");
    launch.coords[0] = 0;
    launch.offset = 8;
    refused(true, loads[i], &launch, "the destination, offset 8 of shared memory, is no multiple of 16");
    launch.offset = TMA_SHARED;
    refused(true, loads[i], &launch,
            "the destination, 32 bytes at offset 65536 of shared memory, is not within its 65544");
    launch.offset = 0;
  }
  launch.expect = 8;
  refused(false, STORE, &launch, "the size 8 is no multiple of 16");
  launch.expect = 16;
  launch.coords[0] = 4;
  refused(false, STORE, &launch, "in global memory is no multiple of 16");
  launch.coords[0] = 0;
  launch.offset = 4;
  refused(false, STORE, &launch, "the source, offset 4 of shared memory, is no multiple of 16");
  tl_emu_free(launch.io);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_loop_test(cases, copies_to_shared, 0, 2);
  tcase_add_test(cases, copies_to_global);
  tcase_add_test(cases, reductions);
  tcase_add_loop_test(cases, groups, 0, sizeof timings / sizeof timings[0]);
  tcase_add_loop_test(cases, end_without_wait, 0, 3);
  tcase_add_test(cases, loads_are_late);
  tcase_add_test(cases, prefetch);
  tcase_add_test(cases, mistakes);
}

int main(void) {
  return run_suite("emulator bulk copies", add_tests);
}
