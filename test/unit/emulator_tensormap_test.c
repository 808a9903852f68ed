// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps: the rules of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, and that nothing is lost in 128 bytes.
#include "emulator/ops/tensormap.h"
#include "emulator_util.h"

static tl_tensormap_params tiled(void) {
  return (tl_tensormap_params){.type = TL_TENSORMAP_F16,
                               .rank = 3,
                               .address = (void *)0x7f0000000010,
                               .dims = {64, 16, 4},
                               .strides = {128, 2048},
                               .element_strides = {1, 1, 1},
                               .box = {32, 8, 2}};
}

static tl_tensormap_params columns(void) {
  return (tl_tensormap_params){.type = TL_TENSORMAP_BF16,
                               .rank = 4,
                               .address = (void *)0x7f0000000020,
                               .dims = {64, 9, 7, 2},
                               .strides = {128, 1152, 8064},
                               .element_strides = {1, 1, 2, 1},
                               .is_im2col = true,
                               .lower = {-1, -128},
                               .upper = {127, -2},
                               .channels_per_pixel = 64,
                               .pixels_per_column = 1024,
                               .swizzle = TL_TENSORMAP_SWIZZLE_128B,
                               .l2 = TL_TENSORMAP_L2_256B,
                               .fill = TL_TENSORMAP_FILL_NAN};
}

static void refused(const tl_tensormap_params *map, const char *text) {
  tl_emu_tensormap out;
  expect_failure(tl_emu_tensormap_encode(map, &out), TL_STATUS_INVALID_ARGUMENT, text, NULL, NULL);
}

#define REFUSED(base, change, text)     \
  do {                                  \
    tl_tensormap_params map = base();   \
    map.change;                         \
    refused(&map, "tensor map: " text); \
  } while (0)
#define ACCEPTED(base, change)              \
  do {                                      \
    tl_tensormap_params map = base();       \
    map.change;                             \
    expect_ok(tl_tensormap_validate(&map)); \
  } while (0)

START_TEST(rules_of_tiles) {
  ACCEPTED(tiled, rank = 3);
  REFUSED(tiled, rank = 0, "rank is 0, not 1 to 5");
  REFUSED(tiled, rank = 6, "rank is 6, not 1 to 5");
  REFUSED(tiled, type = TL_TENSORMAP_NUM_TYPES, "type is 13, which is no type");
  REFUSED(tiled, address = NULL, "address is NULL");
  REFUSED(tiled, address = (void *)0x1008, "address 0x1008 is not a multiple of 16");
  REFUSED(tiled, dims[1] = 0, "dims[1] is 0, not 1 to 2^32");
  REFUSED(tiled, dims[2] = ((uint64_t)1 << 32) + 1, "dims[2] is 4294967297, not 1 to 2^32");
  ACCEPTED(tiled, dims[2] = (uint64_t)1 << 32);
  REFUSED(tiled, strides[0] = 136, "strides[0] is 136, not a multiple of 16");
  REFUSED(tiled, strides[0] = 0, "strides[0] is 0, but elements of a dim lie apart");
  ACCEPTED(tiled, strides[0] = 16);  // rows that overlap
  REFUSED(tiled, strides[1] = (uint64_t)1 << 40, "strides[1] is 1099511627776, not below 2^40");
  ACCEPTED(tiled, strides[1] = ((uint64_t)1 << 40) - 16);
  REFUSED(tiled, box[1] = 257, "box[1] is 257, not 1 to 256");
  REFUSED(tiled, box[2] = 0, "box[2] is 0, not 1 to 256");
  ACCEPTED(tiled, box[1] = 256);
  REFUSED(tiled, box[0] = 12, "box[0] is 12 elements, 24 bytes: not a multiple of 16");
  REFUSED(tiled, element_strides[2] = 9, "element_strides[2] is 9, not 1 to 8");
  REFUSED(tiled, element_strides[1] = 0, "element_strides[1] is 0, not 1 to 8");
  REFUSED(tiled, element_strides[0] = 0, "element_strides[0] is 0, not 1 to 8");  // although it has no effect
  REFUSED(tiled, swizzle = (tl_tensormap_swizzle)4, "swizzle is 4");
  REFUSED(tiled, swizzle = TL_TENSORMAP_SWIZZLE_32B,
          "box[0] is 32 elements, 64 bytes: more than the swizzle's span of 32");
  ACCEPTED(tiled, swizzle = TL_TENSORMAP_SWIZZLE_64B);
  REFUSED(tiled, interleave = (tl_tensormap_interleave)3, "interleave is 3");
  REFUSED(tiled, l2 = (tl_tensormap_l2)4, "l2 is 4");
  REFUSED(tiled, fill = (tl_tensormap_fill)2, "fill is 2");
  ACCEPTED(tiled, fill = TL_TENSORMAP_FILL_NAN);
}
END_TEST

START_TEST(rules_that_depend) {
  tl_tensormap_params map = tiled();
  map.type = TL_TENSORMAP_S32;
  map.fill = TL_TENSORMAP_FILL_NAN;
  refused(&map, "tensor map: fill with NaN needs a type of float, not s32");
  map = tiled();
  map.interleave = TL_TENSORMAP_INTERLEAVE_16B;
  map.rank = 2;
  refused(&map, "tensor map: rank is 2, not 3 to 5");
  map = tiled();
  map.interleave = TL_TENSORMAP_INTERLEAVE_32B;
  refused(&map, "tensor map: swizzle is 0, but interleave 32B takes swizzle 32B");
  map.swizzle = TL_TENSORMAP_SWIZZLE_32B;
  refused(&map, "address 0x7f0000000010 is not a multiple of 32 (interleave 32B)");
  map.address = (void *)0x7f0000000020;
  map.strides[0] = 144;
  refused(&map, "tensor map: strides[0] is 144, not a multiple of 32");
  map.strides[0] = 128;
  tl_emu_tensormap out;
  expect_ok(tl_emu_tensormap_encode(&map, &out));
  map.box[0] = 4;
  refused(&map, "tensor map: box[0] is 4 elements, 8 bytes: not a multiple of 16");
}
END_TEST

START_TEST(rules_of_columns) {
  ACCEPTED(columns, rank = 4);
  REFUSED(columns, rank = 2, "rank is 2, not 3 to 5");
  REFUSED(columns, lower[1] = -129, "lower[1] is -129, not -128 to 127 (rank 4)");
  REFUSED(columns, upper[0] = 128, "upper[0] is 128, not -128 to 127 (rank 4)");
  REFUSED(columns, upper[0] = -10, "upper[0] is -10, which leaves an empty box");
  ACCEPTED(columns, upper[0] = -9);
  REFUSED(columns, channels_per_pixel = 257, "channels_per_pixel is 257, not 1 to 256");
  REFUSED(columns, channels_per_pixel = 60, "channels_per_pixel is 60 elements, 120 bytes: not a multiple of 16");
  REFUSED(columns, channels_per_pixel = 72,
          "channels_per_pixel is 72 elements, 144 bytes: more than the swizzle's span");
  REFUSED(columns, pixels_per_column = 1025, "pixels_per_column is 1025, not 1 to 1024");
  REFUSED(columns, pixels_per_column = 0, "pixels_per_column is 0, not 1 to 1024");
}
END_TEST

static void check_same(const tl_tensormap_params *a, const tl_tensormap_params *b) {
  ck_assert_int_eq(a->type, b->type);
  ck_assert_uint_eq(a->rank, b->rank);
  ck_assert_ptr_eq(a->address, b->address);
  for (uint32_t i = 0; i < a->rank; i++) {
    ck_assert_uint_eq(a->dims[i], b->dims[i]);
    ck_assert_uint_eq(a->element_strides[i], b->element_strides[i]);
    if (i) ck_assert_uint_eq(a->strides[i - 1], b->strides[i - 1]);
    if (!a->is_im2col) ck_assert_uint_eq(a->box[i], b->box[i]);
  }
  ck_assert_int_eq(a->interleave, b->interleave);
  ck_assert_int_eq(a->swizzle, b->swizzle);
  ck_assert_int_eq(a->l2, b->l2);
  ck_assert_int_eq(a->fill, b->fill);
  ck_assert(a->is_im2col == b->is_im2col);
  for (uint32_t i = 0; a->is_im2col && i + 2 < a->rank; i++) {
    ck_assert_int_eq(a->lower[i], b->lower[i]);
    ck_assert_int_eq(a->upper[i], b->upper[i]);
  }
  ck_assert_uint_eq(a->channels_per_pixel, b->channels_per_pixel);
  ck_assert_uint_eq(a->pixels_per_column, b->pixels_per_column);
}

START_TEST(nothing_is_lost) {
  tl_tensormap_params maps[] = {tiled(), columns(), tiled()};
  maps[2].dims[0] = (uint64_t)1 << 32;
  maps[2].strides[1] = ((uint64_t)1 << 40) - 16;
  maps[2].box[1] = maps[2].box[2] = 256;
  maps[2].element_strides[1] = 8;
  for (int i = 0; i < 3; i++) {
    tl_emu_tensormap map;
    tl_tensormap_params back;
    expect_ok(tl_emu_tensormap_encode(&maps[i], &map));
    ck_assert(tl_emu_tensormap_decode(map.bytes, &back));
    check_same(&maps[i], &back);
  }
}
END_TEST

START_TEST(damage_is_seen) {
  tl_tensormap_params params = tiled(), back;
  tl_emu_tensormap map;
  expect_ok(tl_emu_tensormap_encode(&params, &map));
  for (int i = 0; i < TL_TENSORMAP_BYTES; i++) {
    map.bytes[i] ^= 1;
    ck_assert_msg(!tl_emu_tensormap_decode(map.bytes, &back), "byte %d", i);
    map.bytes[i] ^= 1;
  }
  ck_assert(tl_emu_tensormap_decode(map.bytes, &back));
  memset(map.bytes, 0, sizeof map.bytes);
  ck_assert(!tl_emu_tensormap_decode(map.bytes, &back));
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_test(cases, rules_of_tiles);
  tcase_add_test(cases, rules_that_depend);
  tcase_add_test(cases, rules_of_columns);
  tcase_add_test(cases, nothing_is_lost);
  tcase_add_test(cases, damage_is_seen);
}

int main(void) {
  return run_suite("emulator tensor maps", add_tests);
}
