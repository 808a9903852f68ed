// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts against brute force: every property is checked by walking all threads and registers.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ir/layout/layout.h"
#include "ir_layouts.h"
#include "support/arena.h"

static int64_t padded_index(const tl_layout *layout, const int32_t *coord) {
  int64_t index = 0;
  for (int32_t d = 0; d < layout->rank; d++) index = index * tl_layout_padded(layout, d) + coord[d];
  return index;
}

// Every padded element is held equally often (once apart from replication), and tl_layout_find is an inverse.
static void check_bijection(const tl_layout *layout, int32_t threads) {
  const char *problem = tl_layout_verify(layout, threads);
  ck_assert_msg(problem == NULL, "%s", problem ? problem : "");
  int64_t total = 1;
  for (int32_t d = 0; d < layout->rank; d++) total *= tl_layout_padded(layout, d);
  int32_t *count = tl_xcalloc((size_t)total, sizeof(*count));
  int32_t registers = tl_layout_num_registers(layout), warps = threads / 32;
  ck_assert_int_eq(tl_layout_axis_size(layout, TL_AXIS_LANE), 32);
  ck_assert_int_eq(tl_layout_axis_size(layout, TL_AXIS_WARP), warps);
  // One check at the end: each ck_assert costs a system call.
  bool good = true;
  size_t size = sizeof(int32_t) * (size_t)layout->rank;
  for (int32_t w = 0; w < warps; w++) {
    for (int32_t l = 0; l < 32; l++) {
      for (int32_t r = 0; r < registers; r++) {
        int32_t coord[TL_MAX_RANK], again[TL_MAX_RANK], reg = 0, lane = 0, warp = 0;
        bool inside = tl_layout_coord(layout, r, l, w, coord), expected = true;
        for (int32_t d = 0; d < layout->rank; d++) {
          good = good && coord[d] >= 0 && coord[d] < tl_layout_padded(layout, d);
          expected = expected && coord[d] < layout->shape[d];
        }
        if (!good) break;
        count[padded_index(layout, coord)]++;
        good = inside == expected && tl_layout_find(layout, coord, &reg, &lane, &warp) && reg == r;
        tl_layout_coord(layout, reg, lane, warp, again);
        good = good && memcmp(coord, again, size) == 0;
        // The coordinate is the sum of what the axes contribute.
        int32_t sum[TL_MAX_RANK] = {0}, part[TL_MAX_RANK];
        int32_t index[TL_AXIS_COUNT] = {r, l, w};
        for (int axis = 0; axis < TL_AXIS_COUNT; axis++) {
          tl_layout_axis_coord(layout, (tl_layout_axis)axis, index[axis], part);
          for (int32_t d = 0; d < layout->rank; d++) sum[d] += part[d];
        }
        good = good && memcmp(coord, sum, size) == 0;
      }
    }
  }
  ck_assert(good);
  int64_t copies = (int64_t)registers * threads / total;
  ck_assert_int_eq(tl_layout_is_replicated(layout), copies > 1);
  for (int64_t i = 0; i < total; i++) good = good && count[i] == copies;
  ck_assert(good);
  free(count);
}

static const struct shape_case {
  int32_t rank;
  int32_t shape[4];
} shapes[] = {
    {1, {24}},      {1, {96}},        {1, {176}},        {1, {1000}},   {2, {1, 1000}}, {2, {1000, 1}},
    {2, {7, 5000}}, {2, {128, 32}},   {2, {128, 128}},   {2, {24, 24}}, {2, {96, 176}}, {1, {1}},
    {3, {3, 5, 7}}, {3, {2, 64, 64}}, {4, {2, 3, 4, 5}}, {2, {33, 17}}, {0, {0}},       {2, {16, 8}},
};
enum { NUM_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };
static const int32_t thread_counts[] = {32, 64, 96, 128, 160, 256, 384, 1024};
enum { NUM_THREAD_COUNTS = sizeof(thread_counts) / sizeof(thread_counts[0]) };

START_TEST(blocked_is_bijective) {
  for (int s = 0; s < NUM_SHAPES; s++) {
    for (int t = 0; t < NUM_THREAD_COUNTS; t++) {
      for (int32_t vec = 1; vec <= 8; vec *= 2) {
        int32_t forward[4] = {0, 1, 2, 3}, backward[4];
        for (int32_t i = 0; i < shapes[s].rank; i++) backward[i] = shapes[s].rank - 1 - i;
        tl_layout a = tl_layout_blocked(shapes[s].shape, shapes[s].rank, backward, vec, thread_counts[t]);
        check_bijection(&a, thread_counts[t]);
        tl_layout b = tl_layout_blocked(shapes[s].shape, shapes[s].rank, forward, vec, thread_counts[t]);
        check_bijection(&b, thread_counts[t]);
        if (shapes[s].rank > 0) {
          ck_assert_int_ge(tl_layout_vector(&a, shapes[s].rank - 1), vec);
          ck_assert_int_ge(tl_layout_vector(&b, 0), vec);
        }
      }
    }
  }
}
END_TEST

START_TEST(blocked_known) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  // A 128 by 32 tile of f16 by 16-byte chunks: four threads a row, 32 rows a step.
  tl_layout layout = tl_layout_blocked((int32_t[]){128, 32}, 2, (int32_t[]){1, 0}, 8, 128);
  tl_layout_print(&layout, &text);
  ck_assert_str_eq(tl_strbuf_c(&text), "#layout<128x32: r8.d1s1 l4.d1s8 l8.d0s1 w4.d0s8 r4.d0s32>");
  tl_strbuf_clear(&text);
  layout = tl_layout_blocked((int32_t[]){1000}, 1, (int32_t[]){0}, 4, 128);
  tl_layout_print(&layout, &text);
  ck_assert_str_eq(tl_strbuf_c(&text), "#layout<1000: r4.d0s1 l32.d0s4 w4.d0s128 r2.d0s512>");
  ck_assert_int_eq(tl_layout_padded(&layout, 0), 1024);
  ck_assert(tl_layout_has_padding(&layout));
  tl_strbuf_clear(&text);
  // Fewer elements than threads: the rest hold copies.
  layout = tl_layout_blocked((int32_t[]){16}, 1, (int32_t[]){0}, 1, 128);
  tl_layout_print(&layout, &text);
  ck_assert_str_eq(tl_strbuf_c(&text), "#layout<16: l16.d0s1 l2.* w4.*>");
  tl_strbuf_fini(&text);
}
END_TEST

// PTX ISA, "Matrix Fragments for mma.m16n8k16", accumulator: row = groupID for c0, c1 and groupID + 8 for c2, c3;
// col = threadID_in_group * 2 + (i & 1).
START_TEST(mma_accumulator) {
  static const int32_t cases[][4] = {{128, 128, 2, 2}, {64, 96, 4, 1}, {16, 8, 1, 1},   {128, 256, 2, 4},
                                     {100, 20, 2, 2},  {64, 64, 1, 4}, {176, 24, 3, 1}, {16, 8, 2, 2}};
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
    int32_t m = cases[c][0], n = cases[c][1], warps_m = cases[c][2], warps_n = cases[c][3];
    tl_layout layout = mma_acc_layout((int32_t[]){m, n}, warps_m, warps_n);
    check_bijection(&layout, 32 * warps_m * warps_n);
    int32_t tiles_m = (m + 16 * warps_m - 1) / (16 * warps_m), tiles_n = (n + 8 * warps_n - 1) / (8 * warps_n);
    ck_assert_int_eq(tl_layout_num_registers(&layout), tiles_m * tiles_n * 4);
    bool good = true;
    for (int32_t w = 0; w < warps_m * warps_n; w++) {
      for (int32_t lane = 0; lane < 32; lane++) {
        for (int32_t reg = 0; reg < tiles_m * tiles_n * 4; reg++) {
          int32_t coord[TL_MAX_RANK];
          tl_layout_coord(&layout, reg, lane, w, coord);
          int32_t i = reg % 4, tile_n = reg / 4 % tiles_n, tile_m = reg / 4 / tiles_n;
          int32_t row = lane / 4 + (i >= 2 ? 8 : 0), col = lane % 4 * 2 + i % 2;
          good = good && coord[0] == (w % warps_m * tiles_m + tile_m) * 16 + row;
          good = good && coord[1] == (w / warps_m * tiles_n + tile_n) * 8 + col;
        }
      }
    }
    ck_assert(good);
  }
}
END_TEST

START_TEST(fma_accumulator) {
  static const int32_t cases[][3] = {{128, 128, 256}, {64, 64, 128}, {7, 5, 64},   {1, 1000, 96},
                                     {96, 176, 160},  {128, 4, 128}, {33, 1, 1024}};
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
    tl_layout layout = tl_layout_fma_acc((int32_t[]){cases[c][0], cases[c][1]}, cases[c][2]);
    check_bijection(&layout, cases[c][2]);
  }
  tl_layout layout = tl_layout_fma_acc((int32_t[]){128, 128}, 256);
  ck_assert_int_eq(tl_layout_num_registers(&layout), 64);
  ck_assert_int_eq(tl_layout_vector(&layout, 1), 4);
}
END_TEST

// The projection of what a thread holds is what the projected layout says it holds.
static void check_projection(const tl_layout *full, const int32_t *dims, int32_t rank, int32_t threads) {
  tl_layout part = tl_layout_project(full, dims, rank);
  check_bijection(&part, threads);
  int32_t registers = tl_layout_num_registers(full);
  bool good = true;
  for (int32_t t = 0; t < threads; t++) {
    for (int32_t r = 0; r < registers; r++) {
      int32_t coord[TL_MAX_RANK], projected[TL_MAX_RANK];
      tl_layout_coord(full, r, t % 32, t / 32, coord);
      int32_t reg = tl_layout_projected_register(full, &part, dims, r);
      good = good && reg >= 0 && reg < tl_layout_num_registers(&part);
      tl_layout_coord(&part, reg, t % 32, t / 32, projected);
      for (int32_t d = 0; d < rank; d++) good = good && projected[d] == coord[dims[d]];
    }
  }
  ck_assert(good);
}

START_TEST(projections) {
  tl_layout acc = mma_acc_layout((int32_t[]){96, 176}, 3, 2);
  check_projection(&acc, (int32_t[]){0}, 1, 192);
  check_projection(&acc, (int32_t[]){1}, 1, 192);
  check_projection(&acc, (int32_t[]){1, 0}, 2, 192);
  check_projection(&acc, (int32_t[]){0, 1}, 2, 192);
  check_projection(&acc, NULL, 0, 192);
  tl_layout blocked = tl_layout_blocked((int32_t[]){3, 24, 50}, 3, (int32_t[]){2, 1, 0}, 2, 128);
  check_projection(&blocked, (int32_t[]){2, 0}, 2, 128);
  check_projection(&blocked, (int32_t[]){1}, 1, 128);
  check_projection(&blocked, (int32_t[]){0, 2, 1}, 3, 128);
  // An equivalent layout with other factors gives the same registers.
  tl_layout split = blocked, part = tl_layout_project(&blocked, (int32_t[]){2, 0}, 2);
  ck_assert(tl_layout_equivalent(&split, &blocked));
  ck_assert_int_eq(tl_layout_projected_register(&split, &part, (int32_t[]){2, 0}, 1), 1);
}
END_TEST

static tl_layout parse_layout(const char *text) {
  tl_layout layout;
  ck_assert_msg(tl_layout_parse(tl_str_from(text), &layout), "%s", text);
  return layout;
}

START_TEST(equivalence) {
  tl_layout a = parse_layout("#layout<128x32: r8.d1s1 l4.d1s8 l8.d0s1 w4.d0s8 r4.d0s32>");
  tl_layout b = parse_layout("#layout<128x32: l4.d1s8 l8.d0s1 r2.d1s1 r4.d1s2 w2.d0s8 w2.d0s16 r1.d0s1 r4.d0s32>");
  tl_layout c = parse_layout("#layout<128x32: r8.d1s1 l4.d1s8 l8.d0s1 w2.d0s16 w2.d0s8 r4.d0s32>");
  tl_layout d = parse_layout("#layout<127x32: r8.d1s1 l4.d1s8 l8.d0s1 w4.d0s8 r4.d0s32>");
  ck_assert(tl_layout_equivalent(&a, &b) && tl_layout_equivalent(&b, &a));
  ck_assert(!tl_layout_equal(&a, &b));
  ck_assert(tl_layout_equal(&a, &a));
  ck_assert(!tl_layout_equivalent(&a, &c));
  ck_assert(!tl_layout_equivalent(&a, &d));
  for (int32_t t = 0; t < 128; t++) {
    for (int32_t r = 0; r < 32; r++) {
      int32_t x[TL_MAX_RANK], y[TL_MAX_RANK];
      tl_layout_coord(&a, r, t % 32, t / 32, x);
      tl_layout_coord(&b, r, t % 32, t / 32, y);
      ck_assert(x[0] == y[0] && x[1] == y[1]);
    }
  }
}
END_TEST

START_TEST(check_finds_problems) {
  static const char *const bad[][2] = {
      {"#layout<32: l16.d0s1 l2.d0s1>", "two modes move along one dim by the same stride"},
      {"#layout<64: l32.d0s2>", "the strides along a dim leave a gap"},
      {"#layout<64: l32.d0s1>", "the modes do not cover a dim"},
      {"#layout<16: l16.d0s1>", "the lane modes do not multiply to 32"},
      {"#layout<32: l32.d0s1 w2.*>", "the warp modes do not multiply to the block's warps"},
      {"#layout<32: l32.d0s1 r2.*>", "registers replicate an element"},
      {"#layout<32: l32.d1s1>", "a mode's dim is out of range"},
      {"#layout<32: l32.d0s0>", "a mode's stride is not positive"},
      {"#layout<32: l0.d0s1>", "a mode's size is not positive"},
      {"#layout<0: l32.d0s1>", "a dim is not positive"},
      {"#layout<8: l4.d0s1 r2.d0s2 l8.*>", "the strides along a dim overlap"},
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    tl_layout layout = parse_layout(bad[i][0]);
    const char *problem = tl_layout_verify(&layout, 32);
    ck_assert_msg(problem != NULL, "%s", bad[i][0]);
    ck_assert_str_eq(problem, bad[i][1]);
  }
}
END_TEST

START_TEST(layout_text) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  for (int s = 0; s < NUM_SHAPES; s++) {
    int32_t order[4] = {0, 1, 2, 3};
    tl_layout layout = tl_layout_blocked(shapes[s].shape, shapes[s].rank, order, 2, 96), again;
    tl_strbuf_clear(&text);
    tl_layout_print(&layout, &text);
    ck_assert(tl_layout_parse(tl_strbuf_view(&text), &again));
    ck_assert(tl_layout_equal(&layout, &again));
  }
  static const char *const bad[] = {"",
                                    "#layout<",
                                    "#layout<4",
                                    "#layout<4:",
                                    "#layout<4: q2.d0s1>",
                                    "#layout<4: r2.d0>",
                                    "#layout<4: r2.d0s1> ",
                                    "#layout<99999999999: r1.*>",
                                    "#layout<x4: >",
                                    "#layout<1x1x1x1x1x1x1x1x1: >"};
  tl_layout layout;
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) ck_assert(!tl_layout_parse(tl_str_from(bad[i]), &layout));
  tl_shared_layout shared = {128, 7, 1}, back;
  tl_strbuf_clear(&text);
  tl_shared_layout_print(&shared, &text);
  ck_assert_str_eq(tl_strbuf_c(&text), "#shared<pitch 128, xor 7 shift 1>");
  ck_assert(tl_shared_layout_parse(tl_strbuf_view(&text), &back));
  ck_assert_int_eq(back.pitch_bytes, 128);
  ck_assert_int_eq(back.swizzle_mask, 7);
  ck_assert_int_eq(back.swizzle_shift, 1);
  ck_assert(tl_shared_layout_parse(TL_STR("#shared<pitch 80>"), &back));
  ck_assert_int_eq(back.swizzle_mask, 0);
  tl_shared_layout panels = {128, 7, 0, 128};
  tl_strbuf_clear(&text);
  tl_shared_layout_print(&panels, &text);
  ck_assert_str_eq(tl_strbuf_c(&text), "#shared<pitch 128, panel 128, xor 7 shift 0>");
  ck_assert(tl_shared_layout_parse(tl_strbuf_view(&text), &back));
  ck_assert_mem_eq(&back, &panels, sizeof back);
  ck_assert(!tl_shared_layout_parse(TL_STR("#shared<pitch 80, panel>"), &back));
  ck_assert(!tl_shared_layout_parse(TL_STR("#shared<pitch 80, xor>"), &back));
  ck_assert(!tl_shared_layout_parse(TL_STR("#shared<80>"), &back));
  tl_strbuf_fini(&text);
}
END_TEST

START_TEST(shared_offsets) {
  static const struct {
    tl_shared_layout layout;
    int32_t shape[3];
    int32_t rank, bits;
  } cases[] = {
      {{64, 3, 1}, {64, 32, 0}, 2, 16},
      {{128, 7, 0}, {64, 64, 0}, 2, 16},
      {{144, 0, 0}, {16, 64, 0}, 2, 16},
      {{128, 7, 0}, {2, 16, 32}, 3, 32},
      {{512, 0, 0}, {128, 0, 0}, 1, 32},
      {{32, 1, 2}, {128, 16, 0}, 2, 16},
      // Panels: 4 of 64 halfs, 3 whose last is half empty, with padding behind each row, in 3-D, narrower ones.
      {{128, 7, 0, 128}, {64, 256, 0}, 2, 16},
      {{128, 7, 0, 128}, {16, 160, 0}, 2, 16},
      {{144, 0, 0, 128}, {8, 128, 0}, 2, 16},
      {{128, 7, 0, 128}, {2, 8, 64}, 3, 32},
      {{64, 3, 1, 64}, {32, 128, 0}, 2, 8},
      {{32, 1, 2, 32}, {16, 64, 0}, 2, 16}};
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
    const tl_shared_layout *layout = &cases[c].layout;
    int64_t bytes = tl_shared_layout_bytes(layout, cases[c].shape, cases[c].rank, cases[c].bits);
    char *seen = tl_xcalloc((size_t)bytes, 1);
    int64_t total = 1;
    for (int32_t d = 0; d < cases[c].rank; d++) total *= cases[c].shape[d];
    for (int64_t i = 0; i < total; i++) {
      int32_t coord[3];
      int64_t rest = i;
      for (int32_t d = cases[c].rank - 1; d >= 0; d--) {
        coord[d] = (int32_t)(rest % cases[c].shape[d]);
        rest /= cases[c].shape[d];
      }
      int64_t row = i / cases[c].shape[cases[c].rank - 1], column = coord[cases[c].rank - 1] * cases[c].bits / 8;
      int64_t rows = total / cases[c].shape[cases[c].rank - 1], panel = 0;
      if (layout->panel_bytes) {
        panel = column / layout->panel_bytes;
        column %= layout->panel_bytes;
      }
      int64_t chunk = column / 16 ^ ((row >> layout->swizzle_shift) & layout->swizzle_mask);
      int64_t offset = tl_shared_layout_offset(layout, cases[c].shape, cases[c].rank, cases[c].bits, coord);
      ck_assert_int_eq(offset, (panel * rows + row) * layout->pitch_bytes + chunk * 16 + column % 16);
      ck_assert(offset >= 0 && offset + cases[c].bits / 8 <= bytes);
      ck_assert(!seen[offset]);
      seen[offset] = 1;
    }
    free(seen);
  }
}
END_TEST

// Whatever part of a place is known: the split and the rest, put together as the lowering does, give the same offset.
START_TEST(split_offsets) {
  static const tl_shared_layout layouts[] = {{256, 7, 0},      {272, 0, 0},    {256, 3, 2},
                                             {128, 7, 0, 128}, {64, 3, 1, 64}, {144, 0, 0, 128}};
  enum { ROWS = 24, BYTES = 256 };
  for (size_t c = 0; c < sizeof(layouts) / sizeof(layouts[0]); c++) {
    const tl_shared_layout *layout = &layouts[c];
    for (int32_t row = 0; row < ROWS; row += 5) {
      for (int32_t byte = 0; byte < BYTES; byte += 12) {
        int32_t coord[] = {row, byte}, shape[] = {ROWS, BYTES};
        int64_t whole = tl_shared_layout_offset(layout, shape, 2, 8, coord);
        for (int64_t known_row = -9; known_row <= row; known_row += 3) {
          for (int64_t known = -160; known <= byte; known += 4) {
            tl_shared_split split = tl_shared_layout_split(layout, ROWS, known_row, known);
            int64_t r = row - known_row, b = byte - known;
            if (layout->swizzle_mask || layout->panel_bytes) b += split.bytes;
            int64_t panel = layout->panel_bytes ? b / layout->panel_bytes : 0;
            if (layout->panel_bytes) b %= layout->panel_bytes;
            b ^= (((r + split.row) >> layout->swizzle_shift) & layout->swizzle_mask) << 4;
            ck_assert_int_eq(split.offset + (panel * ROWS + r) * layout->pitch_bytes + b, whole);
          }
        }
      }
    }
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir_layout");
  TCase *tests = tcase_create("layout");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, blocked_is_bijective);
  tcase_add_test(tests, blocked_known);
  tcase_add_test(tests, mma_accumulator);
  tcase_add_test(tests, fma_accumulator);
  tcase_add_test(tests, projections);
  tcase_add_test(tests, equivalence);
  tcase_add_test(tests, check_finds_problems);
  tcase_add_test(tests, layout_text);
  tcase_add_test(tests, shared_offsets);
  tcase_add_test(tests, split_offsets);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
