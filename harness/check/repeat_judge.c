// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/check/repeat_judge.h"

#include <stdlib.h>
#include <string.h>

#include "harness/device/device_internal.h"
#include "runtime/device.h"

// A word is judged and put back by one thread. Numbers of launches are `first`, which the host writes between batches,
// and `index`, which a graph holds.
static const char spec_text[] =
    "kernel: repeat_judge\n"
    "params:\n"
    "  N: dynamic\n"
    "  most: 4096\n"
    "args:\n"
    "  result: inout u32[N]\n"
    "  initial: in u32[N]\n"
    "  expected: in u32[N]\n"
    "  compared: in u32[N]\n"
    "  first: in u32[1]\n"
    "  index: u32\n"
    "  count: inout u32[1]\n"
    "  differences: inout u32[most, 3]\n"
    "grid:\n"
    "  b: ceildiv(N, 1024)\n"
    "threads: 256\n"
    "body:\n"
    "  - parallel: i in 1024\n"
    "    do:\n"
    "      - let: {w: b * 1024 + i}\n"
    "      - if: ((result[w] ^ expected[w]) & compared[w]) != 0\n"
    "        then:\n"
    "          - atomic: 1 -> count[0]\n"
    "            into: place\n"
    "          - differences[place, 0] = first[0] + index\n"
    "          - differences[place, 1] = w\n"
    "          - differences[place, 2] = result[w]\n"
    "      - result[w] = initial[w]\n";

enum { MOST = 4096, STATE_FIRST = 0, STATE_COUNT = 256, STATE_DIFFERENCES = 512 };
enum { STATE_BYTES = STATE_DIFFERENCES + MOST * (int)sizeof(tl_repeat_difference) };
enum {
  ARG_RESULT,
  ARG_INITIAL,
  ARG_EXPECTED,
  ARG_COMPARED,
  ARG_FIRST,
  ARG_INDEX,
  ARG_COUNT,
  ARG_DIFFERENCES,
  NUM_ARGS
};

struct tl_repeat_judge {
  tl_repeat_sets *sets;          // Borrowed.
  tl_run_kernel *kernel;         // Owned.
  char *images;                  // Owned. Device memory: the expected image, and the mask
  char *states[TL_REPEAT_SETS];  // Owned. Device memory
  int64_t words, one, shape[2];
  tl_argument arguments[TL_REPEAT_SETS][NUM_ARGS];
  TL_VEC(tl_repeat_difference) differences;  // of the last batch
};

static tl_status compile(tl_run_device *device, const tl_target *target, tl_run_kernel **out) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  uint32_t source = tl_sources_add(&sources, "repeat_judge.yaml", tl_str_from(spec_text));
  tl_spec *spec = tl_spec_parse(&sources, source, &diags);
  tl_status status = spec ? TL_OK : tl_status_make(TL_STATUS_INTERNAL, "the kernel that compares cannot be read");
  tl_compiled compiled = {0};
  if (!status) {
    tl_compile_request request = tl_compile_request_default(&spec->kernels[0]);
    request.target = target;
    status = tl_compile(&request, &sources, &diags, &compiled);
  }
  if (!status) status = tl_run_kernel_load(device, &compiled, out);
  tl_compiled_fini(&compiled);
  if (spec) tl_spec_destroy(spec);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return tl_status_annotate(status, "the kernel that compares results");
}

static tl_argument tensor(const char *name, char *memory, int32_t rank, const int64_t *shape) {
  return tl_argument_tensor(name, memory, "u32", rank, shape);
}

static void make_arguments(tl_repeat_judge *judge, uint32_t set) {
  const tl_repeat_sets *sets = judge->sets;
  tl_argument *to = judge->arguments[set];
  char *state = judge->states[set];
  to[ARG_RESULT] = tensor("result", sets->sets[set].memory, 1, &judge->words);
  to[ARG_INITIAL] = tensor("initial", sets->device_initial, 1, &judge->words);
  to[ARG_EXPECTED] = tensor("expected", judge->images, 1, &judge->words);
  to[ARG_COMPARED] = tensor("compared", judge->images + sets->written, 1, &judge->words);
  to[ARG_FIRST] = tensor("first", state + STATE_FIRST, 1, &judge->one);
  to[ARG_INDEX] = tl_argument_int("index", 0);
  to[ARG_COUNT] = tensor("count", state + STATE_COUNT, 1, &judge->one);
  to[ARG_DIFFERENCES] = tensor("differences", state + STATE_DIFFERENCES, 2, judge->shape);
}

static tl_status make(tl_repeat_judge *judge, const uint8_t *compared, const tl_target *target) {
  const tl_repeat_sets *sets = judge->sets;
  tl_device *gpu = sets->device->gpu;
  void *memory = NULL;
  TL_TRY(compile(sets->device, target, &judge->kernel));
  TL_TRY(tl_device_alloc(gpu, 2 * sets->written, &memory));
  judge->images = memory;
  TL_TRY(tl_device_upload(gpu, judge->images, sets->expected, sets->written));
  TL_TRY(tl_device_upload(gpu, judge->images + sets->written, compared, sets->written));
  for (uint32_t i = 0; i < TL_REPEAT_SETS; i++) {
    TL_TRY(tl_device_alloc(gpu, STATE_BYTES, &memory));
    judge->states[i] = memory;
    TL_TRY(tl_device_fill(gpu, judge->states[i], 0, STATE_BYTES, NULL));
    make_arguments(judge, i);
  }
  return tl_stream_synchronize(gpu, NULL);
}

tl_status tl_repeat_judge_create(tl_repeat_sets *sets, const uint8_t *compared, const tl_target *target,
                                 tl_repeat_judge **out) {
  tl_repeat_judge *judge = tl_xcalloc(1, sizeof *judge);
  *judge = (tl_repeat_judge){.sets = sets,
                             .words = (int64_t)(sets->written / sizeof(uint32_t)),
                             .one = 1,
                             .shape = {MOST, sizeof(tl_repeat_difference) / sizeof(uint32_t)}};
  tl_status status = make(judge, compared, target);
  *out = judge;
  if (!status) return TL_OK;
  tl_repeat_judge_destroy(judge);
  *out = NULL;
  return status;
}

void tl_repeat_judge_destroy(tl_repeat_judge *judge) {
  if (!judge) return;
  tl_device *gpu = judge->sets->device->gpu;
  tl_run_kernel_destroy(judge->kernel);
  // After a launch that failed these fail, too, and say nothing new.
  tl_status_free(tl_device_free(gpu, judge->images));
  for (uint32_t i = 0; i < TL_REPEAT_SETS; i++) tl_status_free(tl_device_free(gpu, judge->states[i]));
  tl_vec_fini(&judge->differences);
  free(judge);
}

tl_status tl_repeat_judge_begin(tl_repeat_judge *judge, uint32_t first) {
  for (uint32_t i = 0; i < TL_REPEAT_SETS; i++)
    TL_TRY(tl_device_upload(judge->sets->device->gpu, judge->states[i] + STATE_FIRST, &first, sizeof first));
  return TL_OK;
}

tl_status tl_repeat_judge_put(tl_repeat_judge *judge, uint32_t set, uint32_t index) {
  tl_argument *arguments = judge->arguments[set];
  arguments[ARG_INDEX].int_value = index;
  return tl_run_kernel_enqueue(judge->kernel, arguments, NUM_ARGS, judge->sets->sets[set].stream);
}

static int compare_differences(const void *a, const void *b) {
  const tl_repeat_difference *x = a, *y = b;
  if (x->launch != y->launch) return x->launch < y->launch ? -1 : 1;
  return x->word < y->word ? -1 : x->word > y->word;
}

static tl_status take(tl_repeat_judge *judge, uint32_t set) {
  tl_device *gpu = judge->sets->device->gpu;
  char *state = judge->states[set];
  uint32_t count;
  TL_TRY(tl_device_download(gpu, &count, state + STATE_COUNT, sizeof count));
  if (!count) return TL_OK;
  if (count > MOST) count = MOST;
  tl_repeat_difference *taken = tl_xcalloc(count, sizeof *taken);
  tl_status status = tl_device_download(gpu, taken, state + STATE_DIFFERENCES, count * sizeof *taken);
  for (uint32_t i = 0; !status && i < count; i++) tl_vec_push(&judge->differences, taken[i]);
  free(taken);
  if (!status) status = tl_device_fill(gpu, state + STATE_COUNT, 0, sizeof count, NULL);
  return status ? status : tl_stream_synchronize(gpu, NULL);
}

tl_status tl_repeat_judge_end(tl_repeat_judge *judge, const tl_repeat_difference **out, size_t *out_len) {
  tl_vec_clear(&judge->differences);
  for (uint32_t i = 0; i < TL_REPEAT_SETS; i++) TL_TRY(take(judge, i));
  *out = judge->differences.items;
  *out_len = judge->differences.len;
  if (*out_len) qsort(judge->differences.items, *out_len, sizeof **out, compare_differences);
  return TL_OK;
}
