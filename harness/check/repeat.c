// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/check/repeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/check/check.h"
#include "harness/check/repeat_data.h"
#include "harness/check/repeat_judge.h"
#include "harness/check/repeat_report.h"
#include "harness/data/compare.h"
#include "harness/device/device_internal.h"
#include "runtime/device.h"
#include "runtime/graph.h"

enum { BATCH = 256 };
static const uint64_t most_kept = UINT64_C(64) << 20;  // bytes of results that wait for the host

typedef enum repeat_way { ON_ONE_STREAM, ON_TWO_STREAMS, FROM_A_GRAPH, NUM_WAYS } repeat_way;
static const char *const way_names[] = {"on one stream", "on two streams at once", "from a graph"};

typedef struct repeater {
  const tl_repeat_request *request;
  tl_run_device *device;  // with a driver; Owned where it is not the request's
  tl_run_kernel *kernel;  // on it; the same
  tl_repeat_sets sets;
  uint8_t *compared;       // Owned. A mask of the bits of a set's written part that count
  tl_run_args values;      // Owned. A scratch
  tl_repeat_judge *judge;  // Owned. Of bits; NULL: by the host, against the reference
  char *kept;              // Owned. Device memory: results of a batch, for the host; NULL with a judge
  uint8_t *taken;          // Owned. The same on the host
  uint32_t batch;          // launches of a batch at most
  tl_graph *graph;         // Owned. Of the last batch
  uint32_t graph_launches;
  repeat_way way;
  uint32_t first;  // launch of the last batch
  char last[120];  // what that batch is called
} repeater;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Emulated launches have a limit of their own.
static void step(const repeater *r, const char *what) {
  if (r->request->step) r->request->step(r->request->user, tl_run_device_is_gpu(r->request->device) ? what : NULL);
}

// Each line of `lines`.
static void say(const repeater *r, const tl_strbuf *lines) {
  tl_strbuf line = {0};
  for (tl_str rest = tl_strbuf_view(lines); rest.len;) {
    size_t end = tl_str_find(rest, '\n');
    tl_strbuf_clear(&line);
    tl_strbuf_append(&line, tl_str_sub(rest, 0, end));
    r->request->say(r->request->user, tl_strbuf_c(&line));
    rest = end < rest.len ? tl_str_sub(rest, end + 1, rest.len) : (tl_str){0};
  }
  tl_strbuf_fini(&line);
}

// ---- against the reference

static bool is_compared(const repeater *r, const tl_run_arg *arg) {
  return arg->access != 0 && arg->is_tensor && !arg->is_absent &&
         !tl_check_is_unchecked(&r->request->kernel->check, tl_str_from(arg->name));
}

// Compares the outputs of an image. What is wrong is printed to `out`, which stays empty otherwise.
static tl_status compare_reference(repeater *r, const uint8_t *image, tl_strbuf *out) {
  const tl_repeat_request *q = r->request;
  for (uint32_t i = 0; i < r->values.len; i++) {
    tl_run_arg *arg = &r->values.items[i];
    const tl_reference_buffer *buffer = tl_reference_find(q->reference, tl_str_from(arg->name));
    double rtol, atol;
    tl_compare_result result;
    if (!is_compared(r, &q->args->items[i]) || !buffer) continue;
    TL_TRY(tl_check_tolerance(q->kernel, q->one_case, q->env, tl_str_from(arg->name), q->diags, &rtol, &atol));
    tl_run_arg_read_image(arg, image + r->sets.places[i].offset);
    if (buffer->is_float)
      tl_compare_float(&arg->array, buffer->values, rtol, atol, &result);
    else
      tl_compare_int(&arg->array, buffer->values, rtol, atol, &result);
    if (!result.num_failed) continue;
    tl_strbuf_append_c(out, "  FAILED ");
    tl_compare_print(&result, arg->name, &arg->array, out);
    tl_strbuf_append_char(out, '\n');
  }
  return TL_OK;
}

// ---- one batch

static tl_status put_judgement(repeater *r, uint32_t set, uint32_t index) {
  if (r->judge) return tl_repeat_judge_put(r->judge, set, index);
  const tl_repeat_set *of = &r->sets.sets[set];
  uint64_t bytes = r->sets.written;
  TL_TRY(tl_device_copy_async(r->device->gpu, r->kept + index * bytes, of->memory, bytes, of->stream));
  return tl_device_copy_async(r->device->gpu, of->memory, r->sets.device_initial, bytes, of->stream);
}

static tl_status put_launches(repeater *r, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t set = r->way == ON_TWO_STREAMS ? i % TL_REPEAT_SETS : 0;
    const tl_repeat_set *on = &r->sets.sets[set];
    TL_TRY(tl_run_kernel_enqueue(r->kernel, on->arguments.items, on->arguments.len, on->stream));
    TL_TRY(put_judgement(r, set, i));
  }
  return TL_OK;
}

static tl_status launch_graph(repeater *r, uint32_t count) {
  void *stream = r->sets.sets[0].stream;
  if (r->graph_launches != count) {
    tl_graph_destroy(r->graph);
    r->graph = NULL;
    TL_TRY(tl_graph_begin(r->device->gpu, stream));
    tl_status status = put_launches(r, count);
    // The stream must leave recording whatever happened.
    TL_TRY(tl_status_join(status, tl_graph_end(r->device->gpu, stream, &r->graph)));
    r->graph_launches = count;
  }
  return tl_graph_launch(r->graph, stream);
}

static tl_status synchronize(const repeater *r) {
  for (int i = 0; i < TL_REPEAT_SETS; i++) TL_TRY(tl_stream_synchronize(r->device->gpu, r->sets.sets[i].stream));
  return TL_OK;
}

static tl_status fail(const repeater *r, uint32_t launch, const tl_strbuf *lines, const char *what) {
  static const char *const streams[] = {"on the first of two streams", "on the second of two streams"};
  const char *how = r->way == ON_TWO_STREAMS ? streams[(launch - r->first) % TL_REPEAT_SETS] : way_names[r->way];
  say(r, lines);
  return tl_status_make(TL_STATUS_CHECK_FAILED, "launch %u of %u, %s, %s", launch, r->request->launches, how, what);
}

// The first launch whose words differ, as its whole result would be seen.
static tl_status judge_bits(repeater *r) {
  const tl_repeat_difference *found;
  size_t len;
  TL_TRY(tl_repeat_judge_end(r->judge, &found, &len));
  if (!len) return TL_OK;
  uint8_t *image = tl_xmalloc(r->sets.written);
  memcpy(image, r->sets.expected, r->sets.written);
  uint32_t launches = 1;
  for (size_t i = 0; i < len; i++) {
    launches += i > 0 && found[i].launch != found[i - 1].launch;
    if (found[i].launch != found[0].launch) continue;
    memcpy(image + (uint64_t)found[i].word * sizeof found[i].value, &found[i].value, sizeof found[i].value);
  }
  tl_strbuf lines = {0};
  tl_repeat_print_differences(&r->sets, image, r->compared, &r->values, &lines);
  if (launches > 1) tl_strbuf_appendf(&lines, "    %u of %s differ\n", launches, r->last);
  tl_status status = fail(r, found[0].launch, &lines, "gave another result than the first");
  tl_strbuf_fini(&lines);
  free(image);
  return status;
}

// The results of the last batch.
static tl_status judge_values(repeater *r, uint32_t count) {
  tl_strbuf lines = {0};
  tl_status status = tl_device_download(r->device->gpu, r->taken, r->kept, count * r->sets.written);
  for (uint32_t i = 0; !status && i < count; i++) {
    status = compare_reference(r, r->taken + i * r->sets.written, &lines);
    if (!status && lines.len) status = fail(r, r->first + i, &lines, "gave a wrong result");
  }
  tl_strbuf_fini(&lines);
  return status;
}

static tl_status run_batch(repeater *r, uint32_t first, uint32_t count) {
  r->first = first;
  snprintf(r->last, sizeof r->last, "launches %u to %u %s", first, first + count - 1, way_names[r->way]);
  step(r, r->last);
  if (r->judge) TL_TRY(tl_repeat_judge_begin(r->judge, first));
  tl_status status = r->way == FROM_A_GRAPH ? launch_graph(r, count) : put_launches(r, count);
  if (!status) status = synchronize(r);
  if (status) return tl_status_annotate(status, "%s", r->last);
  return r->judge ? judge_bits(r) : judge_values(r, count);
}

// ---- all of it

static void make_mask(repeater *r) {
  r->compared = tl_xmalloc(r->sets.written);
  memset(r->compared, 0xff, r->sets.written);
  for (uint32_t i = 0; i < r->sets.args->len; i++) {
    const tl_run_arg *arg = &r->sets.args->items[i];
    if (arg->access && r->sets.places[i].bytes && !is_compared(r, arg))
      memset(r->compared + r->sets.places[i].offset, 0, r->sets.places[i].bytes);
  }
}

// The launch that others are compared with: right, and with whole guards.
static tl_status launch_first(repeater *r) {
  const tl_repeat_set *set = &r->sets.sets[0];
  step(r, "the first launch");
  tl_status status = tl_run_kernel_enqueue(r->kernel, set->arguments.items, set->arguments.len, set->stream);
  if (!status) status = synchronize(r);
  if (status) return tl_status_annotate(status, "the first launch");
  tl_device *gpu = r->device->gpu;
  TL_TRY(tl_device_download(gpu, r->sets.expected, set->memory, r->sets.written));
  TL_TRY(tl_device_upload(gpu, set->memory, r->sets.initial, r->sets.written));
  tl_strbuf wrong = {0};
  status = compare_reference(r, r->sets.expected, &wrong);
  say(r, &wrong);
  if (!status && wrong.len)
    status = tl_status_make(TL_STATUS_CHECK_FAILED, "the launch that others are to be compared with is wrong");
  tl_strbuf_fini(&wrong);
  return status;
}

static tl_status open_device(repeater *r) {
  const tl_repeat_request *q = r->request;
  r->device = q->device;
  r->kernel = q->loaded;
  if (tl_run_device_is_gpu(q->device)) return TL_OK;
  r->kernel = NULL;
  TL_TRY(tl_run_device_open_emulated(q->device, q->compiled->target, &r->device));
  return tl_run_kernel_load(r->device, q->compiled, &r->kernel);
}

static tl_status prepare(repeater *r, const tl_strbuf *order) {
  const tl_repeat_request *q = r->request;
  step(r, "the preparation of launches");
  TL_TRY(open_device(r));
  TL_TRY(tl_run_args_from_spec(q->kernel, q->env, q->diags, &r->values));
  TL_TRY(tl_repeat_sets_init(&r->sets, r->device, tl_run_kernel_manifest(r->kernel), q->args, q->before, q->dynamics,
                             q->num_dynamics));
  make_mask(r);
  TL_TRY(launch_first(r));
  r->batch = BATCH;
  if (!order->len) return tl_repeat_judge_create(&r->sets, r->compared, q->compiled->target, &r->judge);
  if (r->batch * r->sets.written > most_kept) r->batch = (uint32_t)(most_kept / r->sets.written);
  if (!r->batch) r->batch = 1;
  void *memory = NULL;
  TL_TRY(tl_device_alloc(r->device->gpu, r->batch * r->sets.written, &memory));
  r->kept = memory;
  r->taken = tl_xmalloc(r->batch * r->sets.written);
  return TL_OK;
}

static tl_status finish(repeater *r, tl_status status) {
  bool is_own = r->device && r->device != r->request->device;
  tl_graph_destroy(r->graph);
  tl_repeat_judge_destroy(r->judge);
  if (r->kept) status = tl_status_join(status, tl_device_free(r->device->gpu, r->kept));
  tl_repeat_sets_fini(&r->sets);
  free(r->compared);
  free(r->taken);
  tl_run_args_fini(&r->values);
  if (is_own) tl_run_kernel_destroy(r->kernel);
  if (is_own) status = tl_status_join(status, tl_run_device_close(r->device));
  step(r, NULL);
  return status;
}

// Launches of each way; what the first ones have too many of the last ones go without.
static void share_launches(const repeater *r, uint32_t *out) {
  for (uint32_t way = 0; way < NUM_WAYS; way++)
    out[way] = r->request->launches / NUM_WAYS + (way < r->request->launches % NUM_WAYS);
  if (tl_graph_is_available(r->device->gpu)) return;
  out[ON_ONE_STREAM] += out[FROM_A_GRAPH];
  out[FROM_A_GRAPH] = 0;
}

static void say_passed(const repeater *r, const uint32_t *shares, const tl_strbuf *order, double seconds) {
  tl_strbuf line = {0};
  tl_strbuf_appendf(&line, "  %u launches more %s: ", r->request->launches,
                    order->len ? "are right" : "gave the same bits");
  for (int way = 0; way < NUM_WAYS; way++)
    tl_strbuf_appendf(&line, "%s%u %s", way ? ", " : "", shares[way], way_names[way]);
  if (order->len) tl_strbuf_appendf(&line, "; bits may differ: %s", tl_strbuf_c(order));
  tl_strbuf_appendf(&line, " (%.2f s)", seconds);
  say(r, &line);
  tl_strbuf_fini(&line);
}

tl_status tl_repeat_run(const tl_repeat_request *request) {
  repeater r = {.request = request};
  double start = now();
  uint32_t shares[NUM_WAYS] = {0}, first = 1;
  tl_strbuf order = {0};
  tl_compiled_find_order(request->compiled, &order);
  tl_status status = prepare(&r, &order);
  if (!status) share_launches(&r, shares);
  for (r.way = 0; !status && r.way < NUM_WAYS; r.way++) {
    for (uint32_t left = shares[r.way]; !status && left;) {
      uint32_t count = left < r.batch ? left : r.batch;
      status = run_batch(&r, first, count);
      first += count;
      left -= count;
    }
  }
  status = finish(&r, status);
  if (!status) say_passed(&r, shares, &order, now() - start);
  tl_strbuf_fini(&order);
  return status;
}
