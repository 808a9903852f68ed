// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks and clusters of a worker: their start, the places they take, and the loop that fills places that became free.
#include <stdlib.h>
#include <string.h>

#include "emulator/machine/fiber.h"
#include "emulator/machine/hooks.h"
#include "emulator/machine/machine.h"

#ifdef TL_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// ---- start

#ifdef TL_SANITIZED
__attribute__((no_sanitize("address")))
#endif
static void
fiber_main(void) {
#ifdef TL_SANITIZED
  __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
  const tl_emu_launch_state *launch = tl_emu_self->launch;
  launch->entry(launch->params);
  tl_emu_exit();
}

// A small mixing function (the finaliser of MurmurHash3) for orders that depend on the seed.
static uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

// The same order for all blocks of a launch.
static void order_warps(tl_emu_worker *worker) {
  uint32_t seed = worker->launch->seed;
  for (uint32_t i = 0; i < worker->num_warps; i++) worker->warp_order[i] = (uint16_t)i;
  worker->context.meetings = seed ? 1 : INT32_MAX;
  if (!seed) return;
  uint32_t state = mix(seed);
  worker->landing_state = worker->meeting_state = state;
  worker->descending = state & 1;
  worker->round_robin = state & 2;
  for (uint32_t i = worker->num_warps; i-- > 1;) {
    state = mix(state + i);
    uint32_t k = state % (i + 1);
    uint16_t swapped = worker->warp_order[i];
    worker->warp_order[i] = worker->warp_order[k];
    worker->warp_order[k] = swapped;
  }
}

static void start_fiber(const tl_emu_worker *worker, tl_emu_fiber *fiber) {
  fiber->site = fiber->loop = NULL;
  tl_emu_set_wait(fiber, NULL, NULL);
  fiber->may_give_up = fiber->gave_up = false;
  uint8_t *stack = tl_emu_memory_stack(worker->memory, fiber->stack);
#ifdef TL_SANITIZED
  // A fiber that ended never returned from its last frames: their red zones are still there.
  __asan_unpoison_memory_region(stack + tl_emu_stack_bytes() - (16 << 10), 16 << 10);
#endif
  // Neighbouring stacks start at different cache sets.
  fiber->sp = tl_emu_fiber_prepare(stack + tl_emu_stack_bytes() - 64 * (size_t)(fiber->thread % 32), fiber_main);
}

static void start_block(tl_emu_worker *worker, tl_emu_block *block, const uint32_t position[3]) {
  const tl_emu_launch_state *launch = worker->launch;
  memcpy(block->position, position, sizeof block->position);
  block->index = position[0] + (uint64_t)launch->grid[0] * (position[1] + (uint64_t)launch->grid[1] * position[2]);
  block->num_live = worker->num_threads;
  if (launch->shared_bytes) memset(block->shared, 0xff, launch->shared_bytes);  // reads as NaN
  for (uint32_t w = 0; w < worker->num_warps; w++) {
    tl_emu_warp *warp = &block->warps[w];
    uint32_t lanes = worker->num_threads - w * TL_EMU_WARP;
    warp->exist = warp->runnable = lanes >= (uint32_t)TL_EMU_WARP ? ~0u : (1u << lanes) - 1;
    warp->exited = 0;
    for (int i = 0; i < TL_EMU_MAX_MEETINGS; i++) warp->meetings[i].arrived = 0;
  }
  for (uint32_t t = 0; t < worker->num_threads; t++) start_fiber(worker, &block->fibers[t]);
  TL_EMU_CALL_HOOKS(launch, begin_block, block);
}

// Ranks are linear in the cluster, x fastest. PTX ISA, %cluster_ctarank.
static void start_cluster(tl_emu_worker *worker, tl_emu_cluster *cluster, uint64_t number) {
  const tl_emu_launch_state *launch = worker->launch;
  const uint32_t *size = launch->cluster;
  tl_emu_cluster_position(launch, number, cluster->position);
  for (uint32_t rank = 0; rank < launch->cluster_size; rank++) {
    uint32_t position[3] = {cluster->position[0] * size[0] + rank % size[0],
                            cluster->position[1] * size[1] + rank / size[0] % size[1],
                            cluster->position[2] * size[2] + rank / size[0] / size[1]};
    start_block(worker, &cluster->blocks[rank], position);
  }
  TL_EMU_CALL_HOOKS(launch, begin_cluster, cluster);
  cluster->num_running = launch->cluster_size;
  worker->num_running++;
}

// ---- making

tl_status tl_emu_blocks_create(tl_emu_worker *worker) {
  const tl_emu_launch_state *launch = worker->launch;
  worker->num_threads = launch->num_threads;
  worker->num_warps = (launch->num_threads + TL_EMU_WARP - 1) / TL_EMU_WARP;
  worker->num_clusters = launch->resident;
  worker->num_blocks = launch->resident * launch->cluster_size;
  uint8_t *shared = NULL;
  TL_TRY(tl_emu_memory_set_shared(worker->memory, worker->num_blocks, launch->shared_bytes, launch->shared_align,
                                  &shared));
  worker->blocks = tl_xcalloc(worker->num_blocks, sizeof *worker->blocks);
  worker->clusters = tl_xcalloc(worker->num_clusters, sizeof *worker->clusters);
  order_warps(worker);
  for (uint32_t i = 0; i < worker->num_blocks; i++) {
    tl_emu_block *block = &worker->blocks[i];
    block->worker = worker;
    block->cluster = &worker->clusters[i / launch->cluster_size];
    block->slot = i;
    block->rank = i % launch->cluster_size;
    if (!block->rank) block->cluster->blocks = block;
    block->shared = shared + (size_t)i * TL_EMU_BLOCK_STRIDE;
    for (uint32_t w = 0; w < worker->num_warps; w++) {
      block->warps[w].index = (uint16_t)w;
      block->warps[worker->warp_order[w]].rank = (uint16_t)w;
    }
    block->fibers = tl_xcalloc(worker->num_threads, sizeof *block->fibers);
    for (uint32_t t = 0; t < worker->num_threads; t++) {
      tl_emu_fiber *fiber = &block->fibers[t];
      fiber->block = block;
      fiber->stack = i * worker->num_threads + t;
      fiber->thread = (uint16_t)t;
      fiber->lane = (uint16_t)(t % TL_EMU_WARP);
      fiber->warp = (uint16_t)(t / TL_EMU_WARP);
    }
  }
  for (uint32_t i = 0; i < worker->num_clusters; i++) TL_EMU_CALL_HOOKS(launch, create_cluster, &worker->clusters[i]);
  return TL_OK;
}

void tl_emu_blocks_destroy(tl_emu_worker *worker) {
  for (uint32_t i = 0; i < worker->num_blocks && worker->blocks; i++) {
    tl_emu_block *block = &worker->blocks[i];
    if (!block->fibers) continue;  // memory ran out before it was made
    TL_EMU_CALL_HOOKS(worker->launch, destroy_block, block);
    free(block->fibers);
  }
  for (uint32_t i = 0; i < worker->num_clusters && worker->clusters; i++)
    TL_EMU_CALL_HOOKS(worker->launch, destroy_cluster, &worker->clusters[i]);
  free(worker->blocks);
  free(worker->clusters);
}

// ---- running

// Short blocks never reach a poll, so the watchdog looks between blocks too.
static bool is_late(tl_emu_worker *worker, uint64_t num_begun) {
  const tl_emu_launch_state *launch = worker->launch;
  if (tl_emu_now_ns() <= launch->deadline_ns) return false;
  uint64_t size = launch->cluster_size;
  worker->failed = true;
  worker->failed_block = num_begun * size;
  tl_strbuf_appendf(&worker->report, "%llu of %llu blocks were begun within %g s: the launch takes longer\n",
                    (unsigned long long)num_begun * size, (unsigned long long)launch->num_clusters * size,
                    launch->timeout_s);
  return true;
}

// Gives every free place a cluster, as long as there are any.
static void fill_places(tl_emu_worker *worker) {
  tl_emu_launch_state *launch = worker->launch;
  for (uint32_t i = 0; i < worker->num_clusters && worker->num_running < worker->num_clusters; i++) {
    tl_emu_cluster *cluster = &worker->clusters[i];
    if (cluster->num_running) continue;
    if (__atomic_load_n(&launch->next_cluster, __ATOMIC_RELAXED) >= launch->num_clusters) return;
    uint64_t number = __atomic_fetch_add(&launch->next_cluster, 1, __ATOMIC_RELAXED);
    if (number >= launch->num_clusters || is_late(worker, number)) return;
    start_cluster(worker, cluster, number);
  }
}

// What threads that were given up leave behind.
static void clean_up(tl_emu_worker *worker) {
  for (uint32_t i = 0; i < worker->num_clusters; i++) {
    tl_emu_cluster *cluster = &worker->clusters[i];
    tl_emu_land_cluster(cluster, true);
    if (cluster->num_running) TL_EMU_CALL_HOOKS(worker->launch, end_cluster, cluster, false);
  }
#ifdef TL_SANITIZED
  for (uint32_t i = 0; i < worker->num_blocks * worker->num_threads; i++)
    __asan_unpoison_memory_region(tl_emu_memory_stack(worker->memory, i), tl_emu_stack_bytes());
#endif
}

void tl_emu_run_clusters(tl_emu_worker *worker) {
  const tl_emu_block *from = worker->blocks;
  while (!worker->failed && !__atomic_load_n(&worker->launch->stop, __ATOMIC_RELAXED)) {
    fill_places(worker);
    if (worker->failed || !worker->num_running) break;
    tl_emu_fiber *first = tl_emu_pick(worker, from);
    if (!first) {
      worker->block = &worker->blocks[0];
      tl_emu_report_deadlock(worker);
      worker->failed = true;
      break;
    }
    worker->context.budget = TL_EMU_POLL_INTERVAL;
    worker->fault.signal = 0;
    worker->access_site = NULL;
    tl_emu_run_fibers(worker, first);
    from = worker->block;
    if (worker->fault.signal) {
      worker->failed = true;
      worker->failed_block = worker->block->index;
      tl_emu_report_fault(worker);
    }
  }
  if (worker->num_running) clean_up(worker);
}

void *tl_emu_fiber_prepare(void *top, void (*entry)(void)) {
  // As if tl_emu_fiber_switch had been called: six registers, the address to return to, and above it the zero return
  // address of `entry`, which ends back traces. At entry the stack pointer is 8 modulo 16, as after a call.
  uintptr_t *sp = (uintptr_t *)top - 8;
  memset(sp, 0, 8 * sizeof *sp);
  sp[6] = (uintptr_t)entry;
  return sp;
}
