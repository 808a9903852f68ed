// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/bench/bench_data.h"

#include <stdlib.h>
#include <string.h>

#include "harness/data/random.h"
#include "support/arena.h"
#include "support/status.h"

enum { ALIGN = 256, MAX_SETS = 4096, RANDOM_BYTES = 16 << 20 };

static uint64_t round_up(uint64_t bytes) {
  return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

uint32_t tl_bench_num_sets(uint64_t set_bytes, int64_t l2_bytes, uint64_t max_bytes, bool *out_partly_cold) {
  // Where the driver does not say, a large cache is assumed.
  uint64_t reach = 2 * (uint64_t)(l2_bytes > 0 ? l2_bytes : 64 << 20);
  if (set_bytes == 0) set_bytes = 1;
  uint64_t wanted = 1 + (reach + set_bytes - 1) / set_bytes, most = max_bytes / round_up(set_bytes);
  if (most > MAX_SETS) most = MAX_SETS;
  if (most < 1) most = 1;
  uint64_t num = wanted < most ? wanted : most;
  // A single set that is itself larger than that is as good as cold: its beginning is gone when its end is read.
  *out_partly_cold = num < wanted && set_bytes < reach;
  return (uint32_t)num;
}

static tl_status measure(tl_bench_sets *sets, const tl_run_args *args) {
  for (uint32_t i = 0; i < args->len; i++) {
    if (!args->items[i].is_tensor) continue;
    TL_TRY(tl_run_arg_image_bytes(&args->items[i], &sets->sizes[i]));
    sets->offsets[i] = sets->stride;
    sets->stride += round_up(sets->sizes[i]);
    sets->set_bytes += sets->sizes[i];
  }
  if (sets->stride == 0) sets->stride = ALIGN;
  return TL_OK;
}

static tl_status fill(const tl_bench_sets *sets, const tl_run_args *args) {
  for (uint32_t i = 0; i < args->len; i++) {
    if (sets->sizes[i] == 0) continue;
    void *image = tl_xmalloc(sets->sizes[i]);
    tl_run_arg_write_image(&args->items[i], image, sets->sizes[i]);
    tl_status status = tl_device_upload(sets->device, tl_bench_sets_pointer(sets, 0, i), image, sets->sizes[i]);
    free(image);
    TL_TRY(status);
  }
  for (uint32_t set = 1; set < sets->num_sets; set++) {
    TL_TRY(tl_device_copy_async(sets->device, sets->memory + set * sets->stride, sets->memory, sets->stride, NULL));
  }
  return tl_stream_synchronize(sets->device, NULL);
}

static void make_arguments(tl_bench_sets *sets, const tl_manifest_kernel *manifest, const tl_run_args *args,
                           const tl_mbinding *dynamics, size_t num_dynamics) {
  for (size_t i = 0; i < num_dynamics; i++) sets->num_arguments += tl_run_takes_dynamic(manifest, dynamics[i].name);
  sets->num_arguments += args->len;
  sets->arguments = tl_xcalloc((size_t)sets->num_sets * sets->num_arguments + 1, sizeof *sets->arguments);
  tl_argument *next = sets->arguments;
  for (uint32_t set = 0; set < sets->num_sets; set++) {
    for (uint32_t i = 0; i < args->len; i++) {
      *next++ = tl_run_arg_argument(&args->items[i], tl_bench_sets_pointer(sets, set, i));
    }
    for (size_t i = 0; i < num_dynamics; i++) {
      if (tl_run_takes_dynamic(manifest, dynamics[i].name)) {
        *next++ = tl_argument_int(dynamics[i].name, dynamics[i].value);
      }
    }
  }
}

tl_status tl_bench_sets_init(tl_bench_sets *sets, tl_device *device, const tl_manifest_kernel *manifest,
                             const tl_run_args *args, const tl_mbinding *dynamics, size_t num_dynamics,
                             int64_t l2_bytes, uint64_t max_bytes) {
  *sets = (tl_bench_sets){.device = device,
                          .num_args = args->len,
                          .offsets = tl_xcalloc(args->len + 1, sizeof(uint64_t)),
                          .sizes = tl_xcalloc(args->len + 1, sizeof(uint64_t))};
  void *memory = NULL;
  tl_status status = measure(sets, args);
  if (!status) {
    sets->num_sets = tl_bench_num_sets(sets->set_bytes, l2_bytes, max_bytes, &sets->is_partly_cold);
    status = tl_device_alloc(device, sets->num_sets * sets->stride, &memory);
    sets->memory = memory;
  }
  if (!status) status = fill(sets, args);
  if (status) {
    tl_bench_sets_fini(sets);
    return status;
  }
  make_arguments(sets, manifest, args, dynamics, num_dynamics);
  return TL_OK;
}

void tl_bench_sets_fini(tl_bench_sets *sets) {
  if (sets->memory) tl_status_free(tl_device_free(sets->device, sets->memory));
  free(sets->offsets);
  free(sets->sizes);
  free(sets->arguments);
  *sets = (tl_bench_sets){0};
}

void *tl_bench_sets_pointer(const tl_bench_sets *sets, uint32_t set, uint32_t arg) {
  return sets->memory + set * sets->stride + sets->offsets[arg];
}

const tl_argument *tl_bench_sets_arguments(const tl_bench_sets *sets, uint32_t set) {
  return sets->arguments + (size_t)set * sets->num_arguments;
}

// ---- copies

tl_status tl_bench_copies_init(tl_bench_copies *copies, tl_device *device, uint64_t bytes, uint32_t num) {
  *copies = (tl_bench_copies){.device = device, .num = num, .bytes = bytes};
  uint64_t total = 2 * bytes * num, filled = total < RANDOM_BYTES ? total : RANDOM_BYTES;
  void *memory = NULL;
  TL_TRY(tl_device_alloc(device, total, &memory));
  copies->memory = memory;
  uint64_t *random = tl_xmalloc(RANDOM_BYTES);
  for (uint64_t i = 0; i < RANDOM_BYTES / sizeof *random; i++) random[i] = tl_random_bits(1, i);
  tl_status status = tl_device_upload(device, copies->memory, random, filled);
  free(random);
  while (!status && filled < total) {
    uint64_t more = total - filled < filled ? total - filled : filled;
    status = tl_device_copy_async(device, copies->memory + filled, copies->memory, more, NULL);
    filled += more;
  }
  if (!status) status = tl_stream_synchronize(device, NULL);
  if (status) tl_bench_copies_fini(copies);
  return status;
}

void tl_bench_copies_fini(tl_bench_copies *copies) {
  if (copies->memory) tl_status_free(tl_device_free(copies->device, copies->memory));
  *copies = (tl_bench_copies){0};
}

tl_status tl_bench_copies_launch(void *user, uint32_t set, void *stream) {
  const tl_bench_copies *copies = user;
  char *from = copies->memory + 2 * copies->bytes * set;
  return tl_device_copy_async(copies->device, from + copies->bytes, from, copies->bytes, stream);
}
