// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes of tensor maps: the emulator's walk over rows and chunks against the definition, element by element.
#include "emulator/ops/tma_box.h"
#include "emulator_tma_util.h"
#include "emulator_util.h"

static tma_place places[TMA_MAX_ELEMENTS];

typedef struct seen {
  const tma_case *c;
  const tma_place *at;  // the next place that must come
  uint32_t left;
} seen;

// One assertion a piece: there are millions of elements.
static void visit(void *user, const tl_emu_tma_piece *piece) {
  seen *s = user;
  uint32_t bytes = s->c->map.interleave ? 16 : tl_tensormap_type_bytes(s->c->map.type);
  uintptr_t start = (uintptr_t)s->c->map.address;
  bool good = piece->bytes > 0 && piece->bytes % bytes == 0 && piece->bytes / bytes <= s->left;
  for (uint32_t done = 0; good && done < piece->bytes; done += bytes, s->at++, s->left--) {
    uintptr_t global = s->at->global < 0 ? 0 : start + (uintptr_t)s->at->global;
    good = piece->shared + done == s->at->shared && (piece->global ? piece->global + done : 0) == global;
  }
  ck_assert_msg(good, "%u bytes at %zu of shared memory, element %zu", piece->bytes, (size_t)piece->shared,
                (size_t)(s->at - places));
}

static void check(const tma_case *c) {
  uint32_t n = tma_places(c, places);
  expect_ok(tl_tensormap_validate(&c->map));
  ck_assert_uint_eq(tl_emu_tma_box_bytes(&c->map), n * tl_tensormap_type_bytes(c->map.type));
  tl_emu_tma_box box = {.map = &c->map};
  memcpy(box.coords, c->coords, sizeof box.coords);
  for (int i = 0; i < 3; i++) box.offsets[i] = c->offsets[i];
  seen s = {c, places, n};
  tl_emu_tma_walk(&box, c->shared, false, visit, &s);
  ck_assert_uint_eq(s.left, 0);
  tma_extend_to_chunks(c, places, n);
  s = (seen){c, places, n};
  tl_emu_tma_walk(&box, c->shared, true, visit, &s);
  ck_assert_uint_eq(s.left, 0);
}

static const tl_tensormap_type box_types[] = {TL_TENSORMAP_U8, TL_TENSORMAP_BF16, TL_TENSORMAP_F32, TL_TENSORMAP_F64};

START_TEST(random_tiles) {
  for (int i = 0; i < 1000; i++) {
    tma_case c = tma_random_case(1 + tma_random(5), box_types[tma_random(4)]);
    c.map.address = (void *)0x10000000;
    check(&c);
  }
}
END_TEST

// Coordinates at the ends of their range must not wrap round into the tensor.
START_TEST(far_outside) {
  static const int32_t far[] = {INT32_MIN, INT32_MAX - 15, -1024, 1 << 20};
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 4; k++) {
      tma_case c = {.map = {.type = TL_TENSORMAP_U8,
                            .rank = 2,
                            .address = (void *)0x10000000,
                            .dims = {256, (uint64_t)1 << 32},
                            .strides = {256},
                            .box = {64, 8},
                            .element_strides = {1, 8}}};
      c.coords[0] = far[i] & ~15;
      c.coords[1] = far[k];
      check(&c);
    }
  }
}
END_TEST

START_TEST(random_columns) {
  for (int i = 0; i < 1000; i++) {
    tma_case c = tma_random_columns(3 + tma_random(3), box_types[tma_random(4)]);
    c.map.address = (void *)0x10000000;
    check(&c);
  }
}
END_TEST

START_TEST(swizzles_are_involutions_within_lines) {
  for (int s = 0; s < 4; s++) {
    for (uintptr_t byte = 0; byte < 4096; byte++) {
      uintptr_t there = tl_emu_tma_swizzle((tl_tensormap_swizzle)s, byte);
      ck_assert_uint_eq(there / 128, byte / 128);
      ck_assert_uint_eq(there % 16, byte % 16);
      ck_assert_uint_eq(tl_emu_tma_swizzle((tl_tensormap_swizzle)s, there), byte);
      if (s == 0) ck_assert_uint_eq(there, byte);
    }
  }
  // PTX ISA, swizzling modes: in line 1, 128B moves chunk 0 to 1; in line 7 to 7.
  ck_assert_uint_eq(tl_emu_tma_swizzle(TL_TENSORMAP_SWIZZLE_128B, 128), 144);
  ck_assert_uint_eq(tl_emu_tma_swizzle(TL_TENSORMAP_SWIZZLE_128B, 7 * 128), 7 * 128 + 112);
  ck_assert_uint_eq(tl_emu_tma_swizzle(TL_TENSORMAP_SWIZZLE_64B, 7 * 128), 7 * 128 + 48);
  ck_assert_uint_eq(tl_emu_tma_swizzle(TL_TENSORMAP_SWIZZLE_32B, 7 * 128), 7 * 128 + 16);
}
END_TEST

// Chunks of 16 bytes of an interleaved box: the pixels of one slice, row by row, plane by plane, image by image.
static uint32_t slice_places(const tma_case *c) {
  const tl_tensormap_params *map = &c->map;
  uint32_t chunks = map->interleave, slices = map->rank - 2, n = 0, extent[5], at[5] = {0};
  for (uint32_t i = 0; i < map->rank; i++) extent[i] = i == slices ? 1 : tma_extent(map, i);
  for (uint32_t row = 0;; row++) {
    for (at[0] = 0; at[0] < extent[0]; at[0]++) {
      bool is_in = true;
      int64_t global = 0;
      for (uint32_t i = 0; i < map->rank; i++) {
        int64_t index = c->coords[i] + (int64_t)at[i] * map->element_strides[i];
        is_in = is_in && index >= 0 && index < (int64_t)map->dims[i];
        global += index * (i ? (int64_t)map->strides[i - 1] : 16 * (int64_t)chunks);
      }
      for (uint32_t chunk = 0; chunk < chunks; chunk++, n++)
        places[n] = (tma_place){tma_swizzled(map->swizzle, c->shared + 16 * n), is_in ? global + 16 * chunk : -1};
    }
    uint32_t i = 1;
    while (i < map->rank && ++at[i] == extent[i]) at[i++] = 0;
    if (i == map->rank) return n;
  }
}

START_TEST(interleaved) {
  for (int i = 0; i < 1000; i++) {
    tma_case c = {.shared = 1024};
    tl_tensormap_params *map = &c.map;
    map->type = TL_TENSORMAP_F32;
    map->rank = 3 + tma_random(3);
    map->interleave = 1 + (tl_tensormap_interleave)tma_random(2);
    map->swizzle = map->interleave == 2 ? TL_TENSORMAP_SWIZZLE_32B : (tl_tensormap_swizzle)tma_random(4);
    map->address = (void *)0x10000000;
    uint64_t stride = 16 * (uint64_t)map->interleave;
    for (uint32_t d = 0; d < map->rank; d++) {
      map->dims[d] = 1 + tma_random(12);
      map->box[d] = d ? 1 + tma_random(4) : 4 + 4 * tma_random(3);
      map->element_strides[d] = 1 + tma_random(3);
      c.coords[d] = (int32_t)tma_random(16) - 4;
      if (d) map->strides[d - 1] = stride;
      stride *= map->dims[d];
    }
    expect_ok(tl_tensormap_validate(map));
    uint32_t n = slice_places(&c);
    ck_assert_uint_eq(tl_emu_tma_box_bytes(map), 16 * n);
    ck_assert_uint_eq(tl_emu_tma_shared_bytes(map), 16 * n);
    tl_emu_tma_box box = {.map = map};
    memcpy(box.coords, c.coords, sizeof box.coords);
    seen s = {&c, places, n};
    tl_emu_tma_walk(&box, c.shared, i % 2, visit, &s);
    ck_assert_uint_eq(s.left, 0);
  }
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_test(cases, random_tiles);
  tcase_add_test(cases, far_outside);
  tcase_add_test(cases, interleaved);
  tcase_add_test(cases, random_columns);
  tcase_add_test(cases, swizzles_are_involutions_within_lines);
}

int main(void) {
  return run_suite("emulator tma box", add_tests);
}
