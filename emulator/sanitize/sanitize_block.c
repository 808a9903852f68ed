// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checker from cluster to cluster, and the life of asynchronous operations.
#include <stdlib.h>
#include <string.h>

#include "emulator/machine/args.h"
#include "emulator/sanitize/sanitizer.h"

static void create(tl_emu_cluster *cluster) {
  tl_emu_launch_state *launch = tl_emu_self->launch;
  if (!launch->checks) return;
  tl_emu_sanitizer *checker = tl_xcalloc(1, sizeof *checker);
  checker->launch = launch;
  checker->cluster = cluster;
  checker->checks = launch->checks;
  checker->num_threads = launch->num_threads * launch->cluster_size;
  checker->width = 2 * checker->num_threads + TL_EMU_ASYNC_SLOTS;
  checker->agents = tl_xcalloc(checker->num_threads, sizeof *checker->agents);
  checker->granule = launch->shared_granule;
  checker->granule_shift = (uint32_t)__builtin_ctz(launch->shared_granule);
  checker->num_cells = (launch->shared_bytes + checker->granule - 1) / checker->granule;
  checker->cells = tl_xcalloc(checker->num_cells * launch->cluster_size + 1, sizeof *checker->cells);
  checker->readers = tl_emu_readers_create(checker->num_cells * launch->cluster_size);
  checker->undefined = tl_emu_undefined_create(launch);
  checker->ends = tl_emu_ends_create(checker);
  cluster->checker = checker;
}

static void destroy(tl_emu_cluster *cluster) {
  tl_emu_sanitizer *checker = cluster->checker;
  if (!checker) return;
  tl_emu_hand_over(checker);
  for (size_t i = 0; i < checker->num_free; i++) free(checker->free_vectors[i]);
  free(checker->free_vectors);
  tl_vec_fini(&checker->atomics);
  tl_emu_undefined_forget(checker);
  tl_vec_fini(&checker->unwritten);
  free(checker->agents);
  free(checker->cells);
  tl_emu_readers_destroy(checker->readers);
  tl_emu_undefined_destroy(checker->undefined);
  tl_emu_ends_destroy(checker->ends);
  tl_emu_elements_destroy(checker->elements);
  free(checker);
}

static void begin(tl_emu_cluster *cluster) {
  tl_emu_sanitizer *checker = cluster->checker;
  if (!checker) return;
  tl_emu_vector *nothing = tl_emu_vector_create(checker);
  for (uint32_t i = 0; i < checker->num_threads; i++)
    checker->agents[i] = (tl_emu_agent){.known = tl_emu_vector_share(nothing), .now = 1};
  tl_emu_vector_drop(checker, nothing);
  memset(checker->slots, 0, sizeof checker->slots);
  checker->next_slot = 0;
  checker->has_tiles = false;
  checker->num_found = 0;
  tl_emu_undefined_forget(checker);
  checker->touched_from = SIZE_MAX;
  checker->touched_to = 0;
  tl_emu_undefined_begin(checker);
  tl_emu_elements_destroy(checker->elements);
  checker->elements = NULL;
}

static void drop_async(tl_emu_sanitizer *checker, tl_emu_async *async) {
  if (async->previous)
    async->previous->next = async->next;
  else
    checker->asyncs = async->next;
  if (async->next) async->next->previous = async->previous;
  tl_emu_vector_drop(checker, async->known);
  free(async);
}

static void end(tl_emu_cluster *cluster, bool finished) {
  tl_emu_sanitizer *checker = cluster->checker;
  if (!checker) return;
  tl_emu_ends_reset(checker);
  while (checker->asyncs) {
    if (finished) tl_emu_async_unawaited(checker, checker->asyncs);
    drop_async(checker, checker->asyncs);
  }
  tl_emu_clocks_fini(checker);
  for (uint32_t i = 0; i < checker->num_threads; i++) {
    tl_emu_agent *agent = &checker->agents[i];
    tl_emu_vector_drop(checker, agent->known);
    for (int s = 0; s < TL_EMU_NUM_SCOPES; s++) {
      tl_emu_vector_drop(checker, agent->at_fence[s]);
      tl_emu_vector_drop(checker, agent->observed[s]);
      agent->at_fence[s] = agent->observed[s] = NULL;
    }
    tl_emu_locals_destroy(agent->locals);
    agent->locals = NULL;
    agent->known = NULL;
  }
  tl_emu_readers_reset(checker->readers);
  if (checker->touched_to > checker->touched_from)
    memset(&checker->cells[checker->touched_from], 0,
           (checker->touched_to - checker->touched_from) * sizeof *checker->cells);
}

// Tiles are to each other what blocks are: nothing that one did is ordered before what the next does in global memory,
// or initialises its shared memory.
void tl_emu_op_tile(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  (void)site;
  tl_emu_args args = {operands, 0};
  uint64_t tile = tl_emu_args_i64(&args);
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  tl_emu_agent *agent = &checker->agents[tl_emu_agent_here(tl_emu_self->current->thread)];
  checker->has_tiles = true;
  tl_emu_global_owned_by_tiles(checker->launch->global);
  if (agent->now < TL_EMU_EPOCH_MAX_CLOCK) agent->now++;
  agent->tile = (uint32_t)tile + 1;
  agent->tiles++;
  agent->tile_start = agent->now;
  agent->tile_copies = agent->copies_issued;
}

// ---- asynchronous operations

tl_emu_async *tl_emu_async_begin(tl_emu_proxy proxy, const tl_emu_site *site) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return NULL;
  uint32_t index = tl_emu_agent_here(tl_emu_self->current->thread);
  tl_emu_agent *agent = &checker->agents[index];
  uint32_t slot = checker->next_slot;
  checker->next_slot = (slot + 1) % TL_EMU_ASYNC_SLOTS;
  checker->slots[slot].clock++;
  checker->slots[slot].issuer = index;
  tl_emu_async *async = tl_xmalloc(sizeof *async);
  *async = (tl_emu_async){.checker = checker,
                          .known = tl_emu_vector_share(agent->known),
                          .slot = 2 * checker->num_threads + slot,
                          .clock = checker->slots[slot].clock,
                          .issuer = index,
                          .issuer_now = agent->now,
                          .issuer_fenced = {agent->fenced[0], agent->fenced[1]},
                          .issuer_copies_done = agent->copies_done,
                          .proxy = proxy,
                          .site = site,
                          .next = checker->asyncs};
  if (async->next) async->next->previous = async;
  checker->asyncs = async;
  // What the thread does from here on is not before the operation.
  if (agent->now < TL_EMU_EPOCH_MAX_CLOCK) agent->now++;
  return async;
}

void tl_emu_async_end(tl_emu_async *async, bool awaited) {
  if (!async) return;
  if (!awaited) tl_emu_async_unawaited(async->checker, async);
  drop_async(async->checker, async);
}

// ---- cp.async

void tl_emu_copies_commit(void) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  tl_emu_agent *agent = &checker->agents[tl_emu_agent_here(tl_emu_self->current->thread)];
  agent->group_end[agent->group++ % TL_EMU_COPY_GROUPS] = agent->copies_issued;
}

void tl_emu_copies_wait(uint32_t pending) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  tl_emu_agent *agent = &checker->agents[tl_emu_agent_here(tl_emu_self->current->thread)];
  if (pending >= agent->group || pending >= TL_EMU_COPY_GROUPS) return;
  uint32_t done = agent->group_end[(agent->group - pending - 1) % TL_EMU_COPY_GROUPS];
  if (agent->copies_done < done) agent->copies_done = done;
}

void tl_emu_copies_wait_all(void) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  tl_emu_agent *agent = &checker->agents[tl_emu_agent_here(tl_emu_self->current->thread)];
  agent->copies_done = agent->copies_issued;
}

static void end_thread(tl_emu_fiber *thread) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  tl_emu_ends_thread(checker, tl_emu_self->block, thread->thread);
  uint32_t index = tl_emu_agent_here(thread->thread);
  const tl_emu_agent *agent = &checker->agents[index];
  if (!(checker->checks & TL_EMU_SANITIZE_ASYNC)) return;
  if (agent->copies_done == agent->copies_issued) return;
  tl_emu_actor actor = tl_emu_actor_of_agent(checker, index, agent->copy_site);
  tl_emu_found(checker, &(tl_emu_seen){TL_EMU_FINDING_ASYNC, TL_EMU_WRITE, &actor, 0, NULL, 0, 0});
}

const tl_emu_hooks tl_emu_sanitize_hooks = {.create_cluster = create,
                                            .begin_cluster = begin,
                                            .end_thread = end_thread,
                                            .end_cluster = end,
                                            .destroy_cluster = destroy};
