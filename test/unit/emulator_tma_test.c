// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor copies of one block, run as kernels: loads, stores and reductions of every rank against the definition.
#include <math.h>

#include "emulator/machine/elements.h"
#include "emulator_tma_kernels.h"
#include "support/dtype.h"

static tma_place places[TMA_MAX_ELEMENTS];
static const tl_tensormap_type all_types[] = {TL_TENSORMAP_U8,  TL_TENSORMAP_U16, TL_TENSORMAP_U32, TL_TENSORMAP_S32,
                                              TL_TENSORMAP_U64, TL_TENSORMAP_S64, TL_TENSORMAP_F16, TL_TENSORMAP_F32,
                                              TL_TENSORMAP_F64, TL_TENSORMAP_BF16};
enum { NUM_TYPES = sizeof all_types / sizeof all_types[0] };

// A tensor of random bytes that ends where its last element ends.
static uint8_t *make_tensor(tl_tensormap_params *map) {
  size_t bytes = tma_tensor_bytes(map);
  uint8_t *tensor = tl_emu_alloc((bytes + 15) / 16 * 16, 16);
  for (size_t i = 0; i < (bytes + 15) / 16 * 16; i++) tensor[i] = (uint8_t)tma_random(256);
  map->address = tensor;
  return tensor;
}

static void fill_random(uint8_t *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)tma_random(256);
}

static const tl_emu_options modes[] = {{.threads = 1},
                                       {.threads = 1, .landing = TL_LANDING_EARLY},
                                       {.threads = 1, .seed = 1},
                                       {.threads = 1, .seed = 2, .landing = TL_LANDING_EARLY},
                                       {.threads = 1, .seed = 3}};
enum { NUM_MODES = sizeof modes / sizeof modes[0] };

static void check_load(tl_emu_kernel *kernel, tma_case *c, int number) {
  static uint8_t want[TMA_SHARED];
  uint8_t *tensor = make_tensor(&c->map), *io = tl_emu_alloc(TMA_SHARED, 16);
  uint32_t n = tma_places(c, places), bytes = tl_tensormap_type_bytes(c->map.type);
  memset(want, 0xff, sizeof want);
  for (uint32_t i = 0; i < n; i++) {
    if (places[i].global < 0)
      memset(want + places[i].shared, 0, bytes);
    else
      memcpy(want + places[i].shared, tensor + places[i].global, bytes);
  }
  tma_launch launch = tma_launch_of(c, n * bytes, io);
  expect_ok(tma_run(kernel, &launch, &modes[number % NUM_MODES]));
  ck_assert_msg(!memcmp(want, io, TMA_SHARED), "rank %u, case %d", c->map.rank, number);
  tl_emu_free(tensor);
  tl_emu_free(io);
}

static void check_loads(const char *form, bool is_im2col) {
  for (uint32_t rank = is_im2col ? 3 : 1; rank <= 5; rank++) {
    tl_emu_kernel *kernel = tma_create(form, rank, is_im2col);
    for (int i = 0; i < 50; i++) {
      tl_tensormap_type type = all_types[i % NUM_TYPES];
      tma_case c = is_im2col ? tma_random_columns(rank, type) : tma_random_case(rank, type);
      check_load(kernel, &c, i);
    }
    tl_emu_kernel_destroy(kernel);
  }
}

START_TEST(tile_loads) {
  tma_checks = _i ? TMA_CHECK_LOADS : 0;
  check_loads("g2s", false);
  check_loads("g2s.cta", false);
}
END_TEST

START_TEST(column_loads) {
  tma_checks = _i ? TMA_CHECK_LOADS : 0;
  check_loads("g2s", true);
  check_loads("g2s.cta", true);
}
END_TEST

// ---- what loads do to elements

static tl_emu_kernel *elements_kernel;

// Loads 8 rows of 64 bytes from a tensor of five, of words that are `in`, into `out`.
static void load_elements(tl_tensormap_type type, tl_tensormap_fill fill, uint32_t in, uint32_t out[128]) {
  uint32_t *tensor = tl_emu_alloc(5 * 64, 16);
  uint8_t *io = tl_emu_alloc(TMA_SHARED, 16);
  for (int i = 0; i < 80; i++) tensor[i] = in;
  uint32_t bytes = tl_tensormap_type_bytes(type);
  tma_case c = {.map = {.type = type,
                        .rank = 2,
                        .address = tensor,
                        .dims = {64 / bytes, 5},
                        .strides = {64},
                        .element_strides = {1, 1},
                        .box = {64 / bytes, 8},
                        .fill = fill}};
  tma_launch launch = tma_launch_of(&c, 512, io);
  expect_ok(tma_run(elements_kernel, &launch, &modes[0]));
  memcpy(out, io, 512);
  tl_emu_free(tensor);
  tl_emu_free(io);
}

START_TEST(fills) {
  elements_kernel = tma_create("g2s", 2, false);
  uint32_t out[128];
  for (tl_tensormap_type type = 0; type < TL_TENSORMAP_NUM_TYPES; type++) {
    for (int fill = 0; fill <= tl_tensormap_type_is_float(type); fill++) {
      load_elements(type, (tl_tensormap_fill)fill, 0x3f800000, out);
      for (int i = 0; i < 128; i++) ck_assert_uint_eq(out[i], i < 80 ? 0x3f800000u : fill ? 0x7ff77ff7u : 0);
    }
  }
  tl_emu_kernel_destroy(elements_kernel);
}
END_TEST

// The first three were seen on an H200, and that f32.ftz keeps subnormal numbers.
START_TEST(conversions) {
  static const struct {
    uint32_t in, tf32;
  } values[] = {{0x33fc9fd9, 0x33fca000}, {0xe8b543dc, 0xe8b54000}, {0x0044f315, 0x00450000}, {0x3f801000, 0x3f800000},
                {0x3f803000, 0x3f804000}, {0x7f800000, 0x7f800000}, {0x7fc00001, 0x7fffe000}, {0x80000000, 0x80000000}};
  elements_kernel = tma_create("g2s", 2, false);
  uint32_t out[128];
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    load_elements(TL_TENSORMAP_TF32, TL_TENSORMAP_FILL_ZERO, values[i].in, out);
    ck_assert_uint_eq(out[7], values[i].tf32);
    load_elements(TL_TENSORMAP_TF32_FTZ, TL_TENSORMAP_FILL_ZERO, values[i].in, out);
    ck_assert_uint_eq(out[7], values[i].tf32);
    load_elements(TL_TENSORMAP_F32, TL_TENSORMAP_FILL_ZERO, values[i].in, out);
    ck_assert_uint_eq(out[7], values[i].in);
    load_elements(TL_TENSORMAP_F32_FTZ, TL_TENSORMAP_FILL_ZERO, values[i].in, out);
    ck_assert_uint_eq(out[7], values[i].in);
  }
  tl_emu_kernel_destroy(elements_kernel);
}
END_TEST

// ---- stores

static void check_store(tl_emu_kernel *kernel, tma_case *c, int number) {
  uint8_t *tensor = make_tensor(&c->map), *io = tl_emu_alloc(TMA_SHARED, 16);
  size_t size = (tma_tensor_bytes(&c->map) + 15) / 16 * 16;
  uint32_t n = tma_places(c, places), bytes = tl_tensormap_type_bytes(c->map.type);
  fill_random(io, TMA_SHARED);
  tma_extend_to_chunks(c, places, n);
  uint8_t *want = malloc(size);
  memcpy(want, tensor, size);
  for (uint32_t i = 0; i < n; i++)
    if (places[i].global >= 0) memcpy(want + places[i].global, io + places[i].shared, bytes);
  tma_launch launch = tma_launch_of(c, n * bytes, io);
  expect_ok(tma_run(kernel, &launch, &modes[number % NUM_MODES]));
  ck_assert_msg(!memcmp(want, tensor, size), "rank %u, case %d", c->map.rank, number);
  free(want);
  tl_emu_free(tensor);
  tl_emu_free(io);
}

START_TEST(stores) {
  tma_checks = _i ? TL_EMU_SANITIZE_ALL : 0;
  for (uint32_t rank = 1; rank <= 5; rank++) {
    for (int is_im2col = 0; is_im2col <= (rank >= 3); is_im2col++) {
      tl_emu_kernel *kernel = tma_create("s2g", rank, is_im2col);
      for (int i = 0; i < 50; i++) {
        tl_tensormap_type type = all_types[i % NUM_TYPES];
        tma_case c = is_im2col ? tma_random_columns(rank, type) : tma_random_case(rank, type);
        tma_make_storable(&c);
        check_store(kernel, &c, i);
      }
      tl_emu_kernel_destroy(kernel);
    }
  }
}
END_TEST

// ---- reductions

// One element, worked out as numbers.
static void reduce_integer(const char *op, tl_tensormap_type type, uint8_t *to, const uint8_t *from) {
  uint32_t bytes = tl_tensormap_type_bytes(type);
  bool is_signed = type == TL_TENSORMAP_S32 || type == TL_TENSORMAP_S64;
  uint64_t a = 0, b = 0;
  memcpy(&a, to, bytes);
  memcpy(&b, from, bytes);
  // Signed values order as unsigned ones do when the sign bit is flipped.
  uint64_t flip = is_signed ? (uint64_t)1 << (8 * bytes - 1) : 0;
  bool less = (a ^ flip) < (b ^ flip);
  uint64_t result = !strcmp(op, "add")   ? a + b
                    : !strcmp(op, "min") ? (less ? a : b)
                    : !strcmp(op, "max") ? (less ? b : a)
                    : !strcmp(op, "inc") ? (a < b ? a + 1 : 0)
                    : !strcmp(op, "dec") ? (a - 1 < b ? a - 1 : b)
                    : !strcmp(op, "and") ? (a & b)
                    : !strcmp(op, "or")  ? (a | b)
                                         : (a ^ b);
  memcpy(to, &result, bytes);
}

static tl_dtype float_dtype(tl_tensormap_type type) {
  return type == TL_TENSORMAP_F16    ? TL_DTYPE_F16
         : type == TL_TENSORMAP_BF16 ? TL_DTYPE_BF16
         : type == TL_TENSORMAP_F32  ? TL_DTYPE_F32
         : type == TL_TENSORMAP_F64  ? TL_DTYPE_F64
                                     : TL_DTYPE_NONE;
}

static void reduce_element(const char *op, tl_tensormap_type type, uint8_t *to, const uint8_t *from) {
  tl_dtype dtype = float_dtype(type);
  if (dtype == TL_DTYPE_NONE) {
    reduce_integer(op, type, to, from);
    return;
  }
  double a = tl_dtype_load_float(dtype, to, 0), b = tl_dtype_load_float(dtype, from, 0);
  tl_dtype_store_float(dtype, to, 0, !strcmp(op, "add") ? a + b : !strcmp(op, "min") ? fmin(a, b) : fmax(a, b));
}

static void fill_numbers(tl_tensormap_type type, uint8_t *to, size_t bytes) {
  tl_dtype dtype = float_dtype(type);
  fill_random(to, bytes);
  if (dtype == TL_DTYPE_NONE) return;
  for (size_t i = 0; i < bytes / tl_tensormap_type_bytes(type); i++)
    tl_dtype_store_float(dtype, to, i, (double)tma_random(1 << 16) / 4096.0 - 8.0);
}

static void check_reduction(tl_emu_kernel *kernel, const char *op, tma_case *c, int number) {
  uint8_t *tensor = make_tensor(&c->map), *io = tl_emu_alloc(TMA_SHARED, 16);
  size_t size = (tma_tensor_bytes(&c->map) + 15) / 16 * 16;
  uint32_t n = tma_places(c, places), bytes = tl_tensormap_type_bytes(c->map.type);
  fill_numbers(c->map.type, io, TMA_SHARED);
  fill_numbers(c->map.type, tensor, size);
  tma_extend_to_chunks(c, places, n);
  // Counters that are near their limits.
  for (uint32_t i = 0; i < n && (!strcmp(op, "inc") || !strcmp(op, "dec")); i++)
    if (places[i].global >= 0) memset(tensor + places[i].global, tma_random(2) ? 0 : (int)tma_random(256), 4);
  uint8_t *want = malloc(size);
  memcpy(want, tensor, size);
  for (uint32_t i = 0; i < n; i++)
    if (places[i].global >= 0) reduce_element(op, c->map.type, want + places[i].global, io + places[i].shared);
  tma_launch launch = tma_launch_of(c, n * bytes, io);
  expect_ok(tma_run(kernel, &launch, &modes[number % NUM_MODES]));
  ck_assert_msg(!memcmp(want, tensor, size), "%s of %s, rank %u", op, tl_tensormap_type_name(c->map.type), c->map.rank);
  free(want);
  tl_emu_free(tensor);
  tl_emu_free(io);
}

static const char *const reductions[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

START_TEST(reductions_of_every_type) {
  tma_checks = TL_EMU_SANITIZE_ALL;
  char form[16];
  snprintf(form, sizeof form, "reduce.%s", reductions[_i]);
  for (uint32_t rank = 1; rank <= 5; rank++) {
    tl_emu_kernel *kernel = tma_create(form, rank, rank == 4);
    for (int i = 0; i < 30; i++) {
      tl_tensormap_type type = all_types[i % NUM_TYPES];
      tma_case c = rank == 4 ? tma_random_columns(rank, type) : tma_random_case(rank, type);
      tma_make_storable(&c);
      // Of pixels that a column takes twice, each time counts: the order does not matter for one of these.
      if (rank == 4 && strcmp(reductions[_i], "add") != 0) continue;
      if (rank == 4 && float_dtype(type) != TL_DTYPE_NONE) continue;
      if (tl_emu_reduce_exists((tl_emu_reduce_op)_i, type)) check_reduction(kernel, reductions[_i], &c, i);
    }
    tl_emu_kernel_destroy(kernel);
  }
}
END_TEST

// PTX ISA, cp.reduce.async.bulk.tensor: which types each operation takes.
START_TEST(reductions_that_do_not_exist) {
  static const char *const takes[] = {"u32 s32 u64 s64 f16 f32 f64 bf16",
                                      "u32 s32 u64 s64 f16 bf16",
                                      "u32 s32 u64 s64 f16 bf16",
                                      "u32",
                                      "u32",
                                      "u32 s32 u64 s64",
                                      "u32 s32 u64 s64",
                                      "u32 s32 u64 s64"};
  char form[16];
  snprintf(form, sizeof form, "reduce.%s", reductions[_i]);
  tl_emu_kernel *kernel = tma_create(form, 2, false);
  for (int i = 0; i < NUM_TYPES; i++) {
    tma_case c = tma_random_case(2, all_types[i]);
    tma_make_storable(&c);
    char text[64];
    snprintf(text, sizeof text, " %s ", tl_tensormap_type_name(all_types[i]));
    char list[80];
    snprintf(list, sizeof list, " %s ", takes[_i]);
    bool exists = strstr(list, text) != NULL;
    ck_assert(tl_emu_reduce_exists((tl_emu_reduce_op)_i, all_types[i]) == exists);
    if (exists) continue;
    uint8_t *tensor = make_tensor(&c.map), *io = tl_emu_alloc(TMA_SHARED, 16);
    tma_launch launch = tma_launch_of(&c, 0, io);
    snprintf(text, sizeof text, "there is no %s of %s", reductions[_i], tl_tensormap_type_name(all_types[i]));
    expect_failure(tma_run(kernel, &launch, &modes[0]), TL_STATUS_CHECK_FAILED, text, form, NULL);
    tl_emu_free(tensor);
    tl_emu_free(io);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_loop_test(cases, tile_loads, 0, 2);
  tcase_add_loop_test(cases, column_loads, 0, 2);
  tcase_add_test(cases, fills);
  tcase_add_test(cases, conversions);
  tcase_add_loop_test(cases, stores, 0, 2);
  tcase_add_loop_test(cases, reductions_of_every_type, 0, TL_EMU_REDUCE_NUM_OPS);
  tcase_add_loop_test(cases, reductions_that_do_not_exist, 0, TL_EMU_REDUCE_NUM_OPS);
}

int main(void) {
  return run_suite("emulator tensor copies", add_tests);
}
