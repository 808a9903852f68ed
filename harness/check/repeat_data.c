// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/check/repeat_data.h"

#include <stdlib.h>
#include <string.h>

#include "harness/device/device_internal.h"
#include "runtime/device.h"

enum { ALIGN = 256, GUARD = 256, GUARD_VALUE = 0xa5 };
static const uint64_t most_written = UINT64_C(1) << 33;  // words of it are numbered by an i32

// ---- places

// Arguments of `access` that are tensors, one behind the other from `*at` on, each with a guard behind.
static tl_status place_args(tl_repeat_sets *sets, bool is_written, uint64_t *at) {
  for (uint32_t i = 0; i < sets->args->len; i++) {
    const tl_run_arg *arg = &sets->args->items[i];
    if (!arg->is_tensor || arg->is_absent || (arg->access != 0) != is_written) continue;
    TL_TRY(tl_run_arg_image_bytes(arg, &sets->places[i].bytes));
    sets->places[i].offset = *at;
    *at += (sets->places[i].bytes + GUARD + ALIGN - 1) / ALIGN * ALIGN;
  }
  return TL_OK;
}

static tl_status place_all(tl_repeat_sets *sets) {
  for (uint32_t i = 0; i < sets->args->len; i++) {
    if (sets->args->items[i].align > ALIGN)
      return tl_status_make(TL_STATUS_UNSUPPORTED, "an alignment of %lld bytes", (long long)sets->args->items[i].align);
  }
  sets->written = GUARD;
  TL_TRY(place_args(sets, true, &sets->written));
  sets->bytes = sets->written;
  TL_TRY(place_args(sets, false, &sets->bytes));
  if (sets->written < most_written) return TL_OK;
  return tl_status_make(TL_STATUS_LIMIT, "more than 8 GiB of outputs are not launched again");
}

uint32_t tl_repeat_find(const tl_repeat_sets *sets, uint64_t at, int64_t *out_distance) {
  uint32_t found = UINT32_MAX, first = UINT32_MAX;
  for (uint32_t i = 0; i < sets->args->len; i++) {
    const tl_repeat_place *place = &sets->places[i];
    if (!place->offset) continue;
    if (place->offset <= at && (found == UINT32_MAX || place->offset > sets->places[found].offset)) found = i;
    if (first == UINT32_MAX || place->offset < sets->places[first].offset) first = i;
  }
  if (found == UINT32_MAX) found = first;
  *out_distance = found == UINT32_MAX ? 0 : (int64_t)at - (int64_t)sets->places[found].offset;
  return found;
}

// ---- memory

static void make_images(tl_repeat_sets *sets, const tl_run_args *before) {
  sets->initial = tl_xmalloc(sets->bytes);
  sets->expected = tl_xmalloc(sets->written);
  memset(sets->initial, GUARD_VALUE, sets->bytes);
  for (uint32_t i = 0; i < sets->args->len; i++) {
    const tl_run_arg *arg = &sets->args->items[i];
    const tl_repeat_place *place = &sets->places[i];
    if (place->offset)
      tl_run_arg_write_image(arg->access == 2 ? &before->items[i] : arg, sets->initial + place->offset, place->bytes);
  }
}

static tl_status make_set(tl_repeat_sets *sets, tl_repeat_set *set, const tl_manifest_kernel *manifest,
                          const tl_mbinding *dynamics, size_t num_dynamics) {
  tl_device *gpu = sets->device->gpu;
  void *memory = NULL;
  TL_TRY(tl_device_alloc(gpu, sets->bytes, &memory));
  set->memory = memory;
  TL_TRY(tl_device_upload(gpu, set->memory, sets->initial, sets->bytes));
  for (uint32_t i = 0; i < sets->args->len; i++)
    tl_vec_push(&set->arguments, tl_run_arg_argument(&sets->args->items[i], set->memory + sets->places[i].offset));
  for (size_t i = 0; i < num_dynamics; i++) {
    if (tl_run_takes_dynamic(manifest, dynamics[i].name))
      tl_vec_push(&set->arguments, tl_argument_int(dynamics[i].name, dynamics[i].value));
  }
  return tl_stream_create(gpu, &set->stream);
}

tl_status tl_repeat_sets_init(tl_repeat_sets *sets, tl_run_device *device, const tl_manifest_kernel *manifest,
                              const tl_run_args *args, const tl_run_args *before, const tl_mbinding *dynamics,
                              size_t num_dynamics) {
  *sets = (tl_repeat_sets){.device = device, .args = args, .places = tl_xcalloc(args->len + 1, sizeof *sets->places)};
  TL_TRY(place_all(sets));
  make_images(sets, before);
  void *memory = NULL;
  TL_TRY(tl_device_alloc(device->gpu, sets->written, &memory));
  sets->device_initial = memory;
  TL_TRY(tl_device_upload(device->gpu, sets->device_initial, sets->initial, sets->written));
  for (int i = 0; i < TL_REPEAT_SETS; i++) TL_TRY(make_set(sets, &sets->sets[i], manifest, dynamics, num_dynamics));
  return TL_OK;
}

void tl_repeat_sets_fini(tl_repeat_sets *sets) {
  tl_device *gpu = sets->device ? sets->device->gpu : NULL;
  for (int i = 0; gpu && i < TL_REPEAT_SETS; i++) {
    tl_repeat_set *set = &sets->sets[i];
    // After a launch that failed these fail, too, and say nothing new.
    if (set->stream) tl_status_free(tl_stream_destroy(gpu, set->stream));
    if (set->memory) tl_status_free(tl_device_free(gpu, set->memory));
    tl_vec_fini(&set->arguments);
  }
  if (gpu && sets->device_initial) tl_status_free(tl_device_free(gpu, sets->device_initial));
  free(sets->places);
  free(sets->initial);
  free(sets->expected);
  *sets = (tl_repeat_sets){0};
}
