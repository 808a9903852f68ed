// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/bench/bench_race.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/graph.h"
#include "runtime/timing.h"
#include "support/arena.h"
#include "support/status.h"

enum { MAX_BATCH = 4096 };  // launches, unless there are more sets

typedef struct runner {
  tl_bench_contestant *contestant;
  tl_graph *graph;             // Owned. NULL: launch by launch.
  double *bursts, *sustained;  // Owned. Seconds for one launch, one a round.
} runner;

typedef struct race {
  tl_device *device;
  const tl_bench_plan *plan;
  runner *runners;
  uint32_t len;
  void *stream;
  tl_timer *timer;
  uint32_t done, total;  // turns
} race;

tl_bench_plan tl_bench_plan_default(void) {
  return (tl_bench_plan){.burst_rounds = 9,
                         .sustained_rounds = 3,
                         .idle_s = 0.025,
                         .batch_s = 0.005,
                         .discard_s = 0.06,
                         .timed_s = 0.1,
                         .seed = 1};
}

static void idle(double seconds) {
  struct timespec time = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
  nanosleep(&time, NULL);
}

static tl_status launch_some(const tl_bench_contestant *contestant, uint32_t count, void *stream) {
  for (uint32_t i = 0; i < count; i++) {
    TL_TRY(contestant->launch(contestant->user, i % contestant->num_sets, stream));
  }
  return TL_OK;
}

// Seconds of `count` launches, one by one.
static tl_status time_launches(const race *r, const tl_bench_contestant *contestant, uint32_t count, double *out) {
  TL_TRY(tl_timer_start(r->timer, r->stream));
  TL_TRY(launch_some(contestant, count, r->stream));
  TL_TRY(tl_timer_stop(r->timer, r->stream));
  return tl_timer_elapsed(r->timer, out);
}

// Launches every set once, then as many as it takes for a figure that can be trusted.
static tl_status estimate(const race *r, const tl_bench_contestant *contestant, double *out_once) {
  TL_TRY(launch_some(contestant, contestant->num_sets, r->stream));
  TL_TRY(tl_stream_synchronize(r->device, r->stream));
  uint32_t count = 1;
  for (;;) {
    double seconds = 0;
    TL_TRY(time_launches(r, contestant, count, &seconds));
    *out_once = seconds / count;
    if (seconds >= 0.2 * r->plan->batch_s || count >= MAX_BATCH) break;
    count *= 4;
  }
  if (*out_once <= 0) *out_once = 1e-7;
  return TL_OK;
}

static tl_status prepare(const race *r, runner *run) {
  tl_bench_contestant *contestant = run->contestant;
  double once = 0;
  TL_TRY(estimate(r, contestant, &once));
  double wanted = ceil(r->plan->batch_s / once);
  uint32_t count = wanted > MAX_BATCH ? MAX_BATCH : (uint32_t)wanted, sets = contestant->num_sets;
  // Whole turns, so that the next batch does not begin with a set that has just been used.
  count = (count + sets - 1) / sets * sets;
  contestant->batch_launches = count;
  contestant->used_graph = !contestant->no_graph && tl_graph_is_available(r->device);
  if (!contestant->used_graph) return TL_OK;
  TL_TRY(tl_graph_begin(r->device, r->stream));
  tl_status launched = launch_some(contestant, count, r->stream);
  // The stream must leave recording whatever happened.
  tl_status ended = tl_graph_end(r->device, r->stream, &run->graph);
  TL_TRY(tl_status_join(launched, ended));
  // The first launch of a graph also uploads it.
  TL_TRY(tl_graph_launch(run->graph, r->stream));
  return tl_stream_synchronize(r->device, r->stream);
}

static tl_status run_batch(const race *r, const runner *run) {
  if (run->graph) return tl_graph_launch(run->graph, r->stream);
  return launch_some(run->contestant, run->contestant->batch_launches, r->stream);
}

static tl_status time_batches(const race *r, const runner *run, uint32_t count, double *out_once) {
  TL_TRY(tl_timer_start(r->timer, r->stream));
  for (uint32_t i = 0; i < count; i++) TL_TRY(run_batch(r, run));
  TL_TRY(tl_timer_stop(r->timer, r->stream));
  double seconds = 0;
  TL_TRY(tl_timer_elapsed(r->timer, &seconds));
  *out_once = seconds / count / run->contestant->batch_launches;
  return TL_OK;
}

static void say(race *r, const char *what) {
  if (r->plan->progress) r->plan->progress(r->plan->user, what, r->done, r->total);
  r->done++;
}

static tl_status burst(race *r, const runner *run, uint32_t round) {
  TL_TRY(tl_stream_synchronize(r->device, r->stream));
  idle(r->plan->idle_s);
  return time_batches(r, run, 1, &run->bursts[round]);
}

static uint32_t batches_in(double seconds, double batch_s) {
  double count = ceil(seconds / (batch_s > 0 ? batch_s : 1e-6));
  return count < 1 ? 1 : count > 100000 ? 100000 : (uint32_t)count;
}

static tl_status sustain(race *r, const runner *run, uint32_t round) {
  double batch_s = run->contestant->burst.median * run->contestant->batch_launches;
  uint32_t discarded = batches_in(r->plan->discard_s, batch_s);
  for (uint32_t i = 0; i < discarded; i++) TL_TRY(run_batch(r, run));
  return time_batches(r, run, batches_in(r->plan->timed_s, batch_s), &run->sustained[round]);
}

static tl_status run_rounds(race *r) {
  const tl_bench_plan *plan = r->plan;
  uint32_t *order = tl_xcalloc(r->len + 1, sizeof *order);
  tl_status status = TL_OK;
  for (uint32_t round = 0; !status && round < plan->burst_rounds; round++) {
    tl_bench_shuffle(order, r->len, plan->seed, round);
    for (uint32_t i = 0; !status && i < r->len; i++) {
      say(r, r->runners[order[i]].contestant->name);
      status = burst(r, &r->runners[order[i]], round);
    }
  }
  for (uint32_t i = 0; i < r->len; i++) {
    r->runners[i].contestant->burst = tl_bench_stats_of(r->runners[i].bursts, plan->burst_rounds);
  }
  for (uint32_t round = 0; !status && round < plan->sustained_rounds; round++) {
    tl_bench_shuffle(order, r->len, plan->seed, plan->burst_rounds + round);
    for (uint32_t i = 0; !status && i < r->len; i++) {
      say(r, r->runners[order[i]].contestant->name);
      status = sustain(r, &r->runners[order[i]], round);
    }
  }
  for (uint32_t i = 0; i < r->len; i++) {
    r->runners[i].contestant->sustained = tl_bench_stats_of(r->runners[i].sustained, plan->sustained_rounds);
  }
  free(order);
  return status;
}

static tl_status open_race(tl_device *device, const tl_bench_plan *plan, race *r) {
  *r = (race){.device = device, .plan = plan};
  TL_TRY(tl_stream_create(device, &r->stream));
  return tl_timer_create(device, &r->timer);
}

static tl_status close_race(race *r) {
  tl_status status = TL_OK;
  if (r->stream) {
    status = tl_stream_synchronize(r->device, r->stream);
    status = tl_status_join(status, tl_stream_destroy(r->device, r->stream));
  }
  tl_timer_destroy(r->timer);
  return status;
}

tl_status tl_bench_race(tl_device *device, const tl_bench_plan *plan, tl_bench_contestant *contestants,
                        uint32_t num_contestants) {
  race r;
  tl_status status = open_race(device, plan, &r);
  r.runners = tl_xcalloc(num_contestants + 1, sizeof *r.runners);
  r.len = num_contestants;
  r.total = num_contestants * (plan->burst_rounds + plan->sustained_rounds);
  for (uint32_t i = 0; i < num_contestants; i++) {
    r.runners[i] = (runner){.contestant = &contestants[i],
                            .bursts = tl_xcalloc(plan->burst_rounds + 1, sizeof(double)),
                            .sustained = tl_xcalloc(plan->sustained_rounds + 1, sizeof(double))};
    if (!status) status = tl_status_annotate(prepare(&r, &r.runners[i]), "%s", contestants[i].name);
  }
  if (!status) status = run_rounds(&r);
  status = tl_status_join(status, close_race(&r));
  for (uint32_t i = 0; i < num_contestants; i++) {
    tl_graph_destroy(r.runners[i].graph);
    free(r.runners[i].bursts);
    free(r.runners[i].sustained);
  }
  free(r.runners);
  return status;
}

tl_status tl_bench_estimate(tl_device *device, const tl_bench_contestant *contestant, double batch_s,
                            double *out_seconds) {
  tl_bench_plan plan = tl_bench_plan_default();
  plan.batch_s = batch_s;
  race r;
  tl_status status = open_race(device, &plan, &r);
  double once = 0;
  if (!status) status = estimate(&r, contestant, &once);
  double wanted = ceil(batch_s / (once > 0 ? once : 1e-7));
  uint32_t count = wanted < 1 ? 1 : wanted > MAX_BATCH ? MAX_BATCH : (uint32_t)wanted;
  *out_seconds = INFINITY;
  for (int i = 0; !status && i < 3; i++) {
    double seconds = 0;
    status = time_launches(&r, contestant, count, &seconds);
    if (seconds / count < *out_seconds) *out_seconds = seconds / count;
  }
  return tl_status_join(status, close_race(&r));
}
