// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch: clusters of blocks are handed out to OS threads, each of which holds some at a time.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/launch/kernel.h"
#include "emulator/machine/machine.h"
#include "emulator/ops/bulk.h"
#include "emulator/ops/mbarrier.h"
#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitizer.h"

enum { MAX_OS_THREADS = 64 };

// The checker comes last: when a thread ends, the families tell it first of what the thread leaves behind.
static const tl_emu_hooks *const all_hooks[] = {&tl_emu_barrier_hooks,  &tl_emu_cp_async_hooks,
                                                &tl_emu_bulk_hooks,     &tl_emu_cluster_hooks,
                                                &tl_emu_mbarrier_hooks, &tl_emu_tensormap_hooks,
                                                &tl_emu_wgmma_hooks,    &tl_emu_registers_hooks,
                                                &tl_emu_sanitize_hooks, NULL};

typedef struct job {
  tl_emu_launch_state *launch;
  pthread_t thread;
  tl_emu_memory *memory;
  bool failed, no_memory;
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

static void run_worker(void *user) {
  tl_emu_worker *worker = user;
  tl_status status = tl_emu_blocks_create(worker);
  if (status) {
    tl_strbuf_append_c(&worker->report, tl_status_message(status));
    tl_status_free(status);
    worker->failed = true;
  } else {
    tl_emu_signal_stack signal_stack;
    tl_emu_signal_stack_begin(&signal_stack);
    tl_emu_run_clusters(worker);
    tl_emu_signal_stack_end(&signal_stack);
  }
}

static void destroy_worker(void *user) {
  tl_emu_blocks_destroy(user);
}

// Memory that runs out ends the launch: in a fiber by giving it up, else by the guard.
static void *run_job(void *argument) {
  job *j = argument;
  tl_emu_launch_state *launch = j->launch;
  tl_emu_worker *worker = calloc(1, sizeof *worker);
  if (!worker) {
    j->failed = j->no_memory = true;
    __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
    return NULL;
  }
  worker->launch = launch;
  worker->memory = j->memory;
#ifdef TL_SANITIZED
  find_own_stack(worker);
#endif
  tl_emu_self = worker;
  tl_memory_set_handler(tl_emu_memory_ran_out);
  if (!tl_memory_guard(run_worker, worker)) worker->no_memory = true;
  worker->failed |= worker->no_memory;
  if (worker->failed) __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
  // What it found is handed over with its places.
  if (!tl_memory_guard(destroy_worker, worker)) worker->failed = worker->no_memory = true;
  tl_memory_set_handler(NULL);
  tl_emu_self = NULL;
  j->failed = worker->failed;
  j->no_memory = worker->no_memory;
  j->failed_block = worker->failed_block;
  j->report = worker->report;
  j->stats = worker->stats;
  free(worker);
  return NULL;
}

static int choose_threads(int wanted, uint64_t num_clusters) {
  if (wanted <= 0) {
    cpu_set_t cores;
    wanted = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
  }
  if (wanted > MAX_OS_THREADS) wanted = MAX_OS_THREADS;
  return (uint64_t)wanted > num_clusters ? (int)num_clusters : wanted;
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
    if (kernel->code.sites[i].binding && kernel->code.sites[i].binding->run == tl_emu_op_nanosleep) return true;
  return false;
}

// A permutation of the clusters that depends on the seed; the identity for seed 0, and where blocks wait for others:
// few run at a time, so that a block can wait for blocks before it only.
static void order_clusters(tl_emu_launch_state *launch, bool in_order) {
  launch->order_step = 1;
  launch->order_start = 0;
  uint64_t n = launch->num_clusters;
  if (!launch->seed || n < 2 || in_order) return;
  uint64_t state = launch->seed * 0x9e3779b97f4a7c15u;
  launch->order_start = (state >> 33) % n;
  launch->order_step = (state >> 17) % n;
  while (greatest_common_divisor(launch->order_step, n) != 1) launch->order_step = (launch->order_step + 1) % n;
}

typedef struct job_start {
  tl_emu_launch_state *launch;
  job *jobs;
  int wanted, started;
  tl_status status;
} job_start;

static void start_jobs(void *user) {
  job_start *s = user;
  size_t num_stacks = s->launch->num_threads * s->launch->cluster_size * s->launch->resident;
  for (; s->started < s->wanted; s->started++) {
    job *j = &s->jobs[s->started];
    j->launch = s->launch;
    s->status = tl_emu_memory_acquire(num_stacks, &j->memory);
    if (s->status) return;
    if (pthread_create(&j->thread, NULL, run_job, j)) {
      tl_emu_memory_release(j->memory);
      s->status = tl_status_make(TL_STATUS_LIMIT, "emulator: cannot start a thread");
      return;
    }
  }
}

// Runs the jobs. Memory that runs out meanwhile comes back here: nobody leaves while a thread runs, which uses the
// launch.
static tl_status run_jobs(tl_emu_launch_state *launch, job *jobs, int num_threads) {
  job_start s = {.launch = launch, .jobs = jobs, .wanted = num_threads};
  if (!tl_memory_guard(start_jobs, &s))
    s.status = tl_status_make(TL_STATUS_OUT_OF_MEMORY, "emulator: kernel '%s': memory ran out", launch->kernel_name);
  if (s.status && s.started) {  // fewer threads do it as well
    tl_status_free(s.status);
    s.status = TL_OK;
  }
  for (int i = 0; i < s.started; i++) {
    pthread_join(jobs[i].thread, NULL);
    tl_emu_memory_release(jobs[i].memory);
  }
  return s.status;
}

static tl_status gather(const tl_emu_launch_state *launch, job *jobs, int num_threads, tl_emu_stats *stats) {
  const job *first = NULL;
  bool no_memory = false;
  for (int i = 0; i < num_threads; i++) {
    stats->switches += jobs[i].stats.switches;
    stats->collectives += jobs[i].stats.collectives;
    stats->barriers += jobs[i].stats.barriers;
    no_memory |= jobs[i].no_memory;
    bool tells = jobs[i].failed && jobs[i].report.len;
    if (tells && (!first || jobs[i].failed_block < first->failed_block)) first = &jobs[i];
  }
  tl_status status = TL_OK;
  if (no_memory)
    status = tl_status_make(TL_STATUS_OUT_OF_MEMORY, "emulator: kernel '%s': memory ran out", launch->kernel_name);
  else if (first)
    status = tl_status_make(TL_STATUS_CHECK_FAILED, "emulator: kernel '%s': %s", launch->kernel_name,
                            tl_strbuf_c(&first->report));
  for (int i = 0; i < num_threads; i++) tl_strbuf_fini(&jobs[i].report);
  return status;
}

// What the checks found: to whoever asked for it, and behind what the launch failed with anyway.
static tl_status tell_findings(tl_emu_launch_state *launch, tl_status failed, tl_emu_findings *wanted) {
  enum { MAX_PRINTED = 20 };
  tl_emu_findings findings = {0};
  tl_emu_report_found(launch, &findings);
  tl_status status = failed;
  tl_status_code code = tl_status_code_of(failed);
  if (findings.list.len && (code == TL_STATUS_OK || code == TL_STATUS_CHECK_FAILED)) {
    tl_strbuf text = {0};
    if (failed)
      tl_strbuf_appendf(&text, "%s\nbefore that ", tl_status_message(failed));
    else
      tl_strbuf_appendf(&text, "emulator: kernel '%s': ", launch->kernel_name);
    tl_strbuf_appendf(&text, "%zu finding%s\n", findings.list.len, findings.list.len > 1 ? "s" : "");
    tl_emu_findings_print(&findings, MAX_PRINTED, &text);
    status = tl_status_make(TL_STATUS_CHECK_FAILED, "%.*s", (int)text.len - 1, tl_strbuf_c(&text));
    tl_status_free(failed);
    tl_strbuf_fini(&text);
  }
  if (wanted) tl_emu_findings_merge(wanted, &findings);
  tl_emu_findings_fini(&findings);
  return status;
}

// The shape of the launch. Fills in what follows from grid, cluster and options.
static tl_status shape_launch(tl_emu_launch_state *launch, const tl_emu_options *options) {
  const uint32_t *grid = launch->grid, *cluster = launch->cluster;
  const char *name = launch->kernel_name;
  // CUDA C++ Programming Guide, technical specifications: maximum grid 2^31 - 1, 65535, 65535.
  if (grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "kernel '%s': grid %u × %u × %u is too large", name, grid[0],
                          grid[1], grid[2]);
  if (grid[0] % cluster[0] || grid[1] % cluster[1] || grid[2] % cluster[2])
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "kernel '%s': grid %u × %u × %u is no multiple of the cluster of %u × %u × %u blocks", name,
                          grid[0], grid[1], grid[2], cluster[0], cluster[1], cluster[2]);
  uint64_t num_blocks = (uint64_t)grid[0] * grid[1] * grid[2];
  if (num_blocks > 0xffffffffu)
    return tl_status_make(TL_STATUS_LIMIT, "kernel '%s': %llu blocks are too many to emulate", name,
                          (unsigned long long)num_blocks);
  launch->cluster_size = cluster[0] * cluster[1] * cluster[2];
  launch->num_clusters = num_blocks / launch->cluster_size;
  uint64_t resident = options->resident > 0 ? (uint64_t)options->resident : 1;
  if (resident > launch->num_clusters) resident = launch->num_clusters;
  if (resident * launch->cluster_size > TL_EMU_MAX_BLOCKS ||
      resident * launch->cluster_size * launch->num_threads > TL_EMU_MAX_FIBERS)
    return tl_status_make(TL_STATUS_LIMIT,
                          "kernel '%s': %llu resident clusters of %u blocks of %u threads; the emulator holds up to %d "
                          "blocks and %d threads in one OS thread",
                          name, (unsigned long long)resident, launch->cluster_size, launch->num_threads,
                          TL_EMU_MAX_BLOCKS, TL_EMU_MAX_FIBERS);
  launch->resident = (uint32_t)resident;
  uint64_t shares = (launch->num_clusters + resident - 1) / resident;
  launch->num_workers = choose_threads(options->threads, shares);
  return TL_OK;
}

tl_status tl_emu_launch(tl_emu_kernel *kernel, const uint32_t grid[3], void **params, const tl_emu_options *options,
                        tl_emu_stats *out_stats) {
  static const tl_emu_options default_options = {0};
  if (!options) options = &default_options;
  tl_emu_stats stats = {.jit_seconds = kernel->jit_seconds};
  if (out_stats) *out_stats = stats;
  if (!grid[0] || !grid[1] || !grid[2]) return TL_OK;
  tl_emu_raw_list found = {0};
  tl_emu_launch_state launch = {
      .hooks = all_hooks,
      .entry = kernel->entry,
      .kernel_name = kernel->name,
      .params = params,
      .grid = {grid[0], grid[1], grid[2]},
      .cluster = {kernel->cluster[0], kernel->cluster[1], kernel->cluster[2]},
      .num_threads = kernel->block_threads,
      .shared_bytes = kernel->shared_bytes,
      .shared_align = kernel->shared_align,
      .landing = options->landing,
      .checks = options->checks & kernel->checks,
      .sites = kernel->code.sites,
      .num_sites = kernel->code.num_sites,
      .debug = &kernel->debug,
      .param_infos = kernel->params,
      .num_params = kernel->num_params,
      .follows_undefined = kernel->code.follows_undefined,
      .has_narrow = kernel->code.has_narrow,
      .dynamic_offset = kernel->code.dynamic_offset,
      .entry_registers = kernel->code.entry_registers,
      .shared_granule = kernel->code.shared_granule,
      .found = &found,
      .seed = options->seed,
      .timeout_s = options->timeout_s > 0 ? options->timeout_s : 60.0,
  };
  TL_TRY(shape_launch(&launch, options));
  uint64_t start = tl_emu_now_ns();
  launch.deadline_ns = start + (uint64_t)(launch.timeout_s * 1e9);
  order_clusters(&launch, waits(kernel));
  launch.global = tl_emu_global_create(launch.checks, kernel->code.global_granule);
  if (!(launch.checks & TL_EMU_SANITIZE_INIT)) tl_emu_forget_written();
  job *jobs = tl_xcalloc((size_t)launch.num_workers, sizeof *jobs);
  tl_emu_faults_begin();
  tl_status status = run_jobs(&launch, jobs, launch.num_workers);
  tl_emu_faults_end();
  status = tl_status_join(status, gather(&launch, jobs, launch.num_workers, &stats));
  if (options->ended) options->ended(options->user, &launch);
  tl_emu_global_destroy(launch.global);
  tl_emu_released_fini(&launch.released);
  status = tell_findings(&launch, status, options->findings);
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

void tl_emu_launch_grid(const tl_emu_launch_state *launch, uint32_t out_grid[3]) {
  memcpy(out_grid, launch->grid, sizeof launch->grid);
}
