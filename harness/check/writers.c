// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/check/writers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, MAX_PLACES = 0xffff };

// ---- remembering

static uint16_t place_number(tl_writers *writers, const tl_emu_writer *writer) {
  if (!writer->file || !writer->line) return 0;
  char text[512];
  snprintf(text, sizeof text, "%s:%u", writer->file, writer->line);
  for (size_t i = 0; i < writers->places.len; i++)
    if (strcmp(writers->places.items[i], text) == 0) return (uint16_t)(i + 1);
  if (writers->places.len >= MAX_PLACES) return 0;
  tl_vec_push(&writers->places, strdup(text));
  return (uint16_t)writers->places.len;
}

// The element's address: 4-bit elements share a byte.
static const uint8_t *address_of(const tl_run_arg *arg, const int64_t *index) {
  int64_t at = 0;
  for (int32_t d = 0; d < arg->array.rank; d++) at += index[d] * arg->strides[d];
  return (const uint8_t *)arg->memory + at * tl_dtype_bits(arg->array.dtype) / 8;
}

static void next_index(const tl_array *array, int64_t *index) {
  for (int32_t d = array->rank - 1; d >= 0 && ++index[d] == array->shape[d]; d--) index[d] = 0;
}

// Lines are looked up when they change: neighbours mostly have one.
static void remember_output(tl_writers *writers, const tl_emu_launch_state *launch, uint32_t which) {
  const tl_run_arg *arg = &writers->args->items[which];
  int64_t index[TL_ARRAY_MAX_RANK] = {0};
  tl_emu_writer last = {0};
  uint16_t place = 0;
  for (uint64_t i = 0; i < arg->array.count; i++, next_index(&arg->array, index)) {
    tl_emu_writer writer;
    if (!tl_emu_find_writer(launch, address_of(arg, index), &writer)) continue;
    if (writer.file != last.file || writer.line != last.line) place = place_number(writers, &writer);
    last = writer;
    writers->has_tiles |= writer.is_tile;
    writers->of[which][i] =
        (tl_element_writer){.owner = (uint32_t)writer.owner + 1, .thread = (int16_t)writer.thread, .place = place};
  }
}

static void remember(void *user, const tl_emu_launch_state *launch) {
  tl_writers *writers = user;
  tl_emu_launch_grid(launch, writers->grid);
  for (uint32_t i = 0; i < writers->args->len; i++)
    if (writers->of[i] && writers->args->items[i].memory) remember_output(writers, launch, i);
}

void tl_writers_begin(tl_run_device *device, const tl_run_args *args, tl_writers *out) {
  *out = (tl_writers){.args = args, .of = tl_xcalloc(args->len + 1, sizeof *out->of)};
  if (tl_run_device_is_gpu(device)) return;
  for (uint32_t i = 0; i < args->len; i++) {
    const tl_run_arg *arg = &args->items[i];
    // Memory for it is no reason to fail.
    if (arg->access && arg->is_tensor) out->of[i] = calloc(arg->array.count + 1, sizeof **out->of);
  }
  tl_run_device_set_ended(device, remember, out);
}

void tl_writers_end(tl_run_device *device) {
  tl_run_device_set_ended(device, NULL, NULL);
}

void tl_writers_fini(tl_writers *writers) {
  for (uint32_t i = 0; writers->of && i < writers->args->len; i++) free(writers->of[i]);
  free(writers->of);
  for (size_t i = 0; i < writers->places.len; i++) free((char *)writers->places.items[i]);
  tl_vec_fini(&writers->places);
  *writers = (tl_writers){0};
}

// ---- finding

static void unflatten(const tl_array *array, uint64_t flat, int64_t *index) {
  for (int32_t d = array->rank - 1; d >= 0; d--) {
    index[d] = (int64_t)(flat % (uint64_t)array->shape[d]);
    flat /= (uint64_t)array->shape[d];
  }
}

static void widen(int64_t *low, int64_t *high, const int64_t *index, int32_t rank, bool is_first) {
  for (int32_t d = 0; d < rank; d++) {
    if (is_first || index[d] < low[d]) low[d] = index[d];
    if (is_first || index[d] > high[d]) high[d] = index[d];
  }
}

// Of each owner the least index of its elements in each dim, where its tile begins.
typedef struct owners {
  int64_t *corners;  // Owned. TL_ARRAY_MAX_RANK a owner; NULL: nothing is known
  uint8_t *marks;    // Owned. HAS_CORNER, IS_COUNTED
  uint64_t count;
} owners;
enum { HAS_CORNER = 1, IS_COUNTED = 2 };

static void find_corners(const tl_element_writer *of, const tl_array *array, owners *out) {
  uint32_t most = 0;
  *out = (owners){0};
  for (uint64_t i = 0; i < array->count; i++)
    if (of[i].owner > most) most = of[i].owner;
  if (!most) return;
  out->marks = calloc((size_t)most + 1, 1);
  out->corners = out->marks ? malloc(((size_t)most + 1) * TL_ARRAY_MAX_RANK * sizeof *out->corners) : NULL;
  int64_t index[TL_ARRAY_MAX_RANK] = {0};
  for (uint64_t i = 0; out->corners && i < array->count; i++, next_index(array, index)) {
    uint32_t owner = of[i].owner;
    if (!owner) continue;
    int64_t *corner = &out->corners[(size_t)owner * TL_ARRAY_MAX_RANK];
    out->count += !out->marks[owner];
    for (int32_t d = 0; d < array->rank; d++)
      if (!out->marks[owner] || index[d] < corner[d]) corner[d] = index[d];
    out->marks[owner] = HAS_CORNER;
  }
}

static void describe_origin(const tl_writers *writers, const tl_element_writer *writer, const int64_t *index,
                            const int64_t *corner, int32_t rank, tl_element_origin *out) {
  *out = (tl_element_origin){.is_known = true, .owner = writer->owner - 1, .thread = writer->thread};
  const uint32_t *grid = writers->grid;
  if (!writers->has_tiles) {
    out->block[0] = out->owner % grid[0];
    out->block[1] = out->owner / grid[0] % grid[1];
    out->block[2] = out->owner / grid[0] / grid[1];
  }
  for (int32_t d = 0; d < rank; d++) out->tile[d] = index[d] - corner[d];
  if (writer->place) out->place = writers->places.items[writer->place - 1];
}

void tl_writers_find(const tl_writers *writers, const tl_run_arg *arg, uint32_t which,
                     const tl_compare_element *elements, uint64_t len, tl_element_origin *out_origins,
                     uint64_t num_origins, tl_where *out) {
  *out = (tl_where){0};
  int32_t rank = arg->array.rank;
  const tl_element_writer *of = writers && writers->of ? writers->of[which] : NULL;
  owners known = {0};
  if (of) find_corners(of, &arg->array, &known);
  out->num_owners = known.count;
  memset(out_origins, 0, num_origins * sizeof *out_origins);
  for (uint64_t i = 0; i < len; i++) {
    int64_t index[TL_ARRAY_MAX_RANK], within[TL_ARRAY_MAX_RANK];
    unflatten(&arg->array, elements[i].index, index);
    widen(out->low, out->high, index, rank, i == 0);
    const tl_element_writer *writer = known.corners ? &of[elements[i].index] : NULL;
    if (writer && !writer->owner) {
      out->num_unwritten++;
      if (i < num_origins) out_origins[i].is_unwritten = true;
    }
    if (!writer || !writer->owner) continue;
    const int64_t *corner = &known.corners[(size_t)writer->owner * TL_ARRAY_MAX_RANK];
    for (int32_t d = 0; d < rank; d++) within[d] = index[d] - corner[d];
    widen(out->tile_low, out->tile_high, within, rank, !out->is_known);
    out->is_known = true;
    out->is_async |= writer->thread < 0;
    if (writer->thread >= 0) {
      out->warps |= 1u << (writer->thread / WARP);
      out->lanes |= 1u << (writer->thread % WARP);
    }
    out->num_wrong_owners += !(known.marks[writer->owner] & IS_COUNTED);
    known.marks[writer->owner] |= IS_COUNTED;
    if (i < num_origins) describe_origin(writers, writer, index, corner, rank, &out_origins[i]);
  }
  free(known.corners);
  free(known.marks);
}
