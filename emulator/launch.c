// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch: blocks are handed out to OS threads, each of which runs one block at a time.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/kernel.h"
#include "emulator/machine.h"
#include "emulator/ops.h"

enum { MAX_OS_THREADS = 64 };

typedef struct job {
  tl_emu_launch_state *launch;
  pthread_t thread;
  tl_emu_memory *memory;
  bool failed;
  uint64_t failed_block;
  tl_strbuf report;  // empty although failed: stopped because another one failed
  tl_emu_stats stats;
} job;

#ifdef TL_SANITIZED
static void find_own_stack(tl_emu_worker *worker) {
  pthread_attr_t attributes;
  void *bottom = NULL;
  size_t size = 0;
  if (!pthread_getattr_np(pthread_self(), &attributes)) {
    pthread_attr_getstack(&attributes, &bottom, &size);
    pthread_attr_destroy(&attributes);
  }
  worker->main_bottom = bottom;
  worker->main_size = size;
}
#endif

// Short blocks never reach a poll, so the watchdog looks between blocks too.
static bool is_late(tl_emu_worker *worker, uint64_t num_begun) {
  const tl_emu_launch_state *launch = worker->launch;
  if (tl_emu_now_ns() <= launch->deadline_ns) return false;
  worker->failed = true;
  worker->block_index = num_begun;
  tl_strbuf_appendf(&worker->report, "%llu of %llu blocks were begun within %g s: the launch takes longer\n",
                    (unsigned long long)num_begun, (unsigned long long)launch->num_blocks, launch->timeout_s);
  return true;
}

static void *run_job(void *argument) {
  job *j = argument;
  tl_emu_launch_state *launch = j->launch;
  tl_emu_worker *worker = tl_xcalloc(1, sizeof *worker);
  worker->launch = launch;
  worker->memory = j->memory;
  worker->num_threads = launch->num_threads;
  worker->num_warps = (launch->num_threads + TL_EMU_WARP - 1) / TL_EMU_WARP;
  worker->fibers = tl_xcalloc(launch->num_threads, sizeof *worker->fibers);
  for (uint32_t t = 0; t < launch->num_threads; t++) {
    worker->fibers[t].thread = (uint16_t)t;
    worker->fibers[t].lane = (uint16_t)(t % TL_EMU_WARP);
    worker->fibers[t].warp = (uint16_t)(t / TL_EMU_WARP);
  }
#ifdef TL_SANITIZED
  find_own_stack(worker);
#endif
  uint8_t *shared = NULL;
  tl_status status = tl_emu_memory_set_shared(j->memory, launch->shared_bytes, launch->shared_align, &shared);
  if (status) {
    tl_strbuf_append_c(&worker->report, tl_status_message(status));
    tl_status_free(status);
    worker->failed = true;
  }
  worker->context.shared = shared;
  tl_emu_signal_stack signal_stack;
  tl_emu_signal_stack_begin(&signal_stack);
  tl_emu_self = worker;
  while (!worker->failed && !__atomic_load_n(&launch->stop, __ATOMIC_RELAXED)) {
    uint64_t i = __atomic_fetch_add(&launch->next_block, 1, __ATOMIC_RELAXED);
    if (i >= launch->num_blocks || is_late(worker, i)) break;
    // num_blocks < 2^32 or the launch would never end: the product cannot overflow.
    tl_emu_run_block(worker, (launch->block_start + i * launch->block_step) % launch->num_blocks);
  }
  tl_emu_self = NULL;
  tl_emu_signal_stack_end(&signal_stack);
  if (worker->failed) __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
  j->failed = worker->failed;
  j->failed_block = worker->block_index;
  j->report = worker->report;
  j->stats = worker->stats;
  for (uint32_t t = 0; t < launch->num_threads; t++) free(worker->fibers[t].copies);
  free(worker->fibers);
  free(worker);
  return NULL;
}

static int choose_threads(int wanted, uint64_t num_blocks) {
  if (wanted <= 0) {
    cpu_set_t cores;
    wanted = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
  }
  if (wanted > MAX_OS_THREADS) wanted = MAX_OS_THREADS;
  return (uint64_t)wanted > num_blocks ? (int)num_blocks : wanted;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Whether threads rest while they wait for something: for other blocks, which then must get their turn.
static bool waits(const tl_emu_kernel *kernel) {
  for (size_t i = 0; i < kernel->code.num_sites; i++)
    if (kernel->code.sites[i].binding->run == tl_emu_op_nanosleep) return true;
  return false;
}

// A permutation of the blocks that depends on the seed; the identity for seed 0, and where blocks wait for others: as
// many run at a time as there are OS threads, so that a block can wait for blocks before it only.
static void order_blocks(tl_emu_launch_state *launch, bool in_order) {
  launch->block_step = 1;
  launch->block_start = 0;
  uint64_t n = launch->num_blocks;
  if (!launch->seed || n < 2 || in_order) return;
  uint64_t state = launch->seed * 0x9e3779b97f4a7c15u;
  launch->block_start = (state >> 33) % n;
  launch->block_step = (state >> 17) % n;
  while (greatest_common_divisor(launch->block_step, n) != 1) launch->block_step = (launch->block_step + 1) % n;
}

// Runs the jobs; `*out_started` is how many OS threads there were.
static tl_status run_jobs(tl_emu_launch_state *launch, job *jobs, int num_threads) {
  tl_status status = TL_OK;
  int started = 0;
  for (; started < num_threads; started++) {
    job *j = &jobs[started];
    j->launch = launch;
    status = tl_emu_memory_acquire(launch->num_threads, &j->memory);
    if (status) break;
    if (pthread_create(&j->thread, NULL, run_job, j)) {
      tl_emu_memory_release(j->memory);
      status = tl_status_make(TL_STATUS_LIMIT, "emulator: cannot start a thread");
      break;
    }
  }
  if (status && started) {  // fewer threads do it as well
    tl_status_free(status);
    status = TL_OK;
  }
  for (int i = 0; i < started; i++) {
    pthread_join(jobs[i].thread, NULL);
    tl_emu_memory_release(jobs[i].memory);
  }
  return status;
}

static tl_status gather(const tl_emu_launch_state *launch, job *jobs, int num_threads, tl_emu_stats *stats) {
  const job *first = NULL;
  for (int i = 0; i < num_threads; i++) {
    stats->switches += jobs[i].stats.switches;
    stats->collectives += jobs[i].stats.collectives;
    stats->barriers += jobs[i].stats.barriers;
    bool tells = jobs[i].failed && jobs[i].report.len;
    if (tells && (!first || jobs[i].failed_block < first->failed_block)) first = &jobs[i];
  }
  tl_status status = TL_OK;
  if (first)
    status = tl_status_make(TL_STATUS_CHECK_FAILED, "emulator: kernel '%s': %s", launch->kernel_name,
                            tl_strbuf_c(&first->report));
  for (int i = 0; i < num_threads; i++) tl_strbuf_fini(&jobs[i].report);
  return status;
}

tl_status tl_emu_launch(tl_emu_kernel *kernel, const uint32_t grid[3], void **params, const tl_emu_options *options,
                        tl_emu_stats *out_stats) {
  static const tl_emu_options default_options = {0};
  if (!options) options = &default_options;
  tl_emu_stats stats = {.jit_seconds = kernel->jit_seconds};
  if (out_stats) *out_stats = stats;
  if (!grid[0] || !grid[1] || !grid[2]) return TL_OK;
  // CUDA C++ Programming Guide, technical specifications: maximum grid 2^31 - 1, 65535, 65535.
  if (grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "kernel '%s': grid %u × %u × %u is too large", kernel->name,
                          grid[0], grid[1], grid[2]);
  tl_emu_launch_state launch = {
      .entry = kernel->entry,
      .kernel_name = kernel->name,
      .params = params,
      .grid = {grid[0], grid[1], grid[2]},
      .num_blocks = (uint64_t)grid[0] * grid[1] * grid[2],
      .num_threads = kernel->block_threads,
      .shared_bytes = kernel->shared_bytes,
      .shared_align = kernel->shared_align,
      .landing = options->landing,
      .seed = options->seed,
      .timeout_s = options->timeout_s > 0 ? options->timeout_s : 60.0,
  };
  if (launch.num_blocks > 0xffffffffu)
    return tl_status_make(TL_STATUS_LIMIT, "kernel '%s': %llu blocks are too many to emulate", kernel->name,
                          (unsigned long long)launch.num_blocks);
  uint64_t start = tl_emu_now_ns();
  launch.deadline_ns = start + (uint64_t)(launch.timeout_s * 1e9);
  order_blocks(&launch, waits(kernel));
  int num_threads = choose_threads(options->threads, launch.num_blocks);
  job *jobs = tl_xcalloc((size_t)num_threads, sizeof *jobs);
  tl_emu_faults_begin();
  tl_status status = run_jobs(&launch, jobs, num_threads);
  tl_emu_faults_end();
  status = tl_status_join(status, gather(&launch, jobs, num_threads, &stats));
  free(jobs);
  stats.run_seconds = (double)(tl_emu_now_ns() - start) * 1e-9;
  if (out_stats) *out_stats = stats;
  tl_strbuf damage = {0};
  if (tl_emu_find_damage(&damage) && !status)
    status = tl_status_make(TL_STATUS_CHECK_FAILED, "emulator: kernel '%s': invalid write %s", kernel->name,
                            tl_strbuf_c(&damage));
  tl_strbuf_fini(&damage);
  return status;
}
