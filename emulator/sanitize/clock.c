// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vector clocks. A barrier of all threads would cost a vector for each thread; since after it all of them know the same
// but for themselves, they share one vector, and joining a vector that a clock already covers costs one component.
#include <stdlib.h>
#include <string.h>

#include "emulator/sanitize/sanitizer.h"

static size_t vector_items(const tl_emu_sanitizer *checker) {
  return (size_t)checker->width + 2 * checker->num_threads;
}

static tl_emu_vector *allocate(tl_emu_sanitizer *checker) {
  tl_emu_vector *vector;
  if (checker->num_free)
    vector = checker->free_vectors[--checker->num_free];
  else
    vector = tl_xmalloc(sizeof *vector + vector_items(checker) * sizeof vector->items[0]);
  vector->refs = 1;
  vector->foreign = NULL;
  return vector;
}

tl_emu_vector *tl_emu_vector_create(tl_emu_sanitizer *checker) {
  tl_emu_vector *vector = allocate(checker);
  memset(vector->items, 0, vector_items(checker) * sizeof vector->items[0]);
  return vector;
}

void tl_emu_vector_drop(tl_emu_sanitizer *checker, tl_emu_vector *vector) {
  if (!vector || --vector->refs) return;
  tl_emu_foreign_drop(vector->foreign);
  if (checker->num_free == checker->free_capacity)
    checker->free_vectors = tl_vec_grow(checker->free_vectors, &checker->free_capacity, checker->num_free + 1,
                                        sizeof *checker->free_vectors);
  checker->free_vectors[checker->num_free++] = vector;
}

// `*vector`, for writing: a copy unless nobody else holds it.
static uint32_t *own_items(tl_emu_sanitizer *checker, tl_emu_vector **vector) {
  if ((*vector)->refs > 1) {
    tl_emu_vector *copy = allocate(checker);
    memcpy(copy->items, (*vector)->items, vector_items(checker) * sizeof copy->items[0]);
    copy->foreign = tl_emu_foreign_share((*vector)->foreign);
    (*vector)->refs--;
    *vector = copy;
  }
  return (*vector)->items;
}

static void join(tl_emu_sanitizer *checker, tl_emu_vector **into, const tl_emu_vector *from) {
  if (*into == from) return;
  uint32_t *to = own_items(checker, into);
  size_t n = vector_items(checker);
  for (size_t i = 0; i < n; i++) to[i] = from->items[i] > to[i] ? from->items[i] : to[i];
  if (!from->foreign || from->foreign == (*into)->foreign) return;
  tl_emu_foreign *joined = tl_emu_foreign_join((*into)->foreign, from->foreign, checker->num_threads);
  tl_emu_foreign_drop((*into)->foreign);
  (*into)->foreign = joined;
}

// `*vector` also knows what `foreign` says, of cluster `owner`, whose vector it is, too.
static void learn(tl_emu_sanitizer *checker, tl_emu_vector **vector, tl_emu_foreign *foreign, uint32_t owner) {
  uint32_t *items = own_items(checker, vector);
  tl_emu_foreign_read(foreign, owner, checker->num_threads, items);
  tl_emu_foreign *joined = tl_emu_foreign_join((*vector)->foreign, foreign, checker->num_threads);
  tl_emu_foreign_drop((*vector)->foreign);
  (*vector)->foreign = joined;
}

// Joins what was released at an address of global memory into `*into`, which is of `owner`. False: nothing was.
static bool acquire_global(tl_emu_sanitizer *checker, uint32_t owner, tl_emu_vector **into, const void *address) {
  tl_emu_foreign *released = tl_emu_released_at(checker, address);
  if (!released) return false;
  // What the thread itself or its cluster released comes back: it is ordered within the cluster too.
  learn(checker, into, released, owner);
  tl_emu_foreign_drop(released);
  return true;
}

// ---- atomics that order

static tl_emu_clock **atomic_clock(tl_emu_sanitizer *checker, const void *address, int32_t block) {
  for (size_t i = 0; i < checker->atomics.len; i++)
    if (checker->atomics.items[i].address == address && checker->atomics.items[i].block == block)
      return &checker->atomics.items[i].clock;
  tl_vec_push(&checker->atomics, (tl_emu_atomic){address, block, NULL});
  return &tl_vec_last(&checker->atomics).clock;
}

static tl_emu_clock *open_clock(tl_emu_sanitizer *checker, tl_emu_clock **clock) {
  if (*clock) return *clock;
  tl_emu_clock *made = tl_xcalloc(1, sizeof *made);
  made->next = checker->clocks;
  checker->clocks = made;
  return *clock = made;
}

static void clear_clock(tl_emu_sanitizer *checker, tl_emu_clock *clock) {
  tl_emu_vector_drop(checker, clock->value);
  tl_emu_vector_drop(checker, clock->base);
  clock->value = clock->base = NULL;
  clock->phase++;
}

// Joins a vector that is not changed any more.
static void join_into_clock(tl_emu_sanitizer *checker, tl_emu_clock *clock, tl_emu_vector *known) {
  if (!clock->value) {
    clock->value = tl_emu_vector_share(known);
  } else if (clock->base != known && clock->value != known) {
    join(checker, &clock->value, known);
  }
  if (clock->base == known) return;
  tl_emu_vector_drop(checker, clock->base);
  clock->base = tl_emu_vector_share(known);
}

static void raise(uint32_t *component, uint32_t to) {
  if (*component < to) *component = to;
}

static void raise_fenced(const tl_emu_sanitizer *checker, uint32_t *items, uint32_t index, const uint32_t fenced[2]) {
  raise(&items[checker->width + index], fenced[0]);
  raise(&items[checker->width + checker->num_threads + index], fenced[1]);
}

static void release(tl_emu_sanitizer *checker, uint32_t index, tl_emu_clock **clock) {
  tl_emu_agent *agent = &checker->agents[index];
  tl_emu_clock *to = open_clock(checker, clock);
  join_into_clock(checker, to, agent->known);
  uint32_t *items = own_items(checker, &to->value);
  raise(&items[index], agent->now);
  raise(&items[checker->num_threads + index], agent->copies_done);
  raise_fenced(checker, items, index, agent->fenced);
  agent->released = to;
  agent->released_phase = to->phase;
  if (agent->now < TL_EMU_EPOCH_MAX_CLOCK) agent->now++;
}

static void acquire(tl_emu_sanitizer *checker, uint32_t index, tl_emu_clock **clock) {
  if (!*clock || !(*clock)->value) return;
  tl_emu_agent *agent = &checker->agents[index];
  tl_emu_vector *value = (*clock)->value;
  if (agent->known == value) return;
  bool covered =
      (*clock)->base == agent->known || (agent->released == *clock && agent->released_phase == (*clock)->phase);
  agent->released = NULL;
  if (covered) {
    tl_emu_vector_drop(checker, agent->known);
    agent->known = tl_emu_vector_share(value);
  } else {
    join(checker, &agent->known, value);
  }
}

void tl_emu_release(uint32_t thread, tl_emu_clock **clock) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (checker) release(checker, tl_emu_agent_here(thread), clock);
}

void tl_emu_acquire(uint32_t thread, tl_emu_clock **clock) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (checker) acquire(checker, tl_emu_agent_here(thread), clock);
}

static bool in_window(const void *address) {
  return (uintptr_t)address - (uintptr_t)tl_emu_self->memory->window < (uintptr_t)1 << 32;
}

// What the thread knows, itself included. Owned.
static tl_emu_vector *published(tl_emu_sanitizer *checker, uint32_t index) {
  tl_emu_agent *agent = &checker->agents[index];
  tl_emu_vector *vector = tl_emu_vector_share(agent->known);
  uint32_t *items = own_items(checker, &vector);
  raise(&items[index], agent->now);
  raise(&items[checker->num_threads + index], agent->copies_done);
  raise_fenced(checker, items, index, agent->fenced);
  return vector;
}

void tl_emu_vector_gather(tl_emu_sanitizer *checker, tl_emu_vector **vector, uint32_t index) {
  const tl_emu_agent *agent = &checker->agents[index];
  if (!*vector)
    *vector = tl_emu_vector_share(agent->known);
  else
    join(checker, vector, agent->known);
  raise(&own_items(checker, vector)[index], agent->now);
}

// ---- scopes (PTX ISA, Memory Consistency Model, Scope). What is of scope .cta or .cluster orders nothing with other
// blocks or clusters, also in global memory: it goes through a clock of the address in this block, or this cluster, as
// in shared memory. Where a module has such scopes, wider ones go through those, too.

enum { WHOLE_CLUSTER = -1 };

// A cluster of one block is that block.
static bool has_blocks(const tl_emu_sanitizer *checker) {
  return checker->launch->has_narrow && checker->launch->cluster_size > 1;
}

static tl_emu_scope scope_here(const tl_emu_sanitizer *checker, uint32_t scope) {
  if (scope == TL_EMU_SCOPE_BLOCK && !has_blocks(checker)) return TL_EMU_SCOPE_CLUSTER;
  return (tl_emu_scope)scope;
}

static uint32_t block_of(const tl_emu_sanitizer *checker, uint32_t index) {
  return index / checker->launch->num_threads;
}

static tl_emu_clock **block_clock(tl_emu_sanitizer *checker, uint32_t index, const void *address) {
  return atomic_clock(checker, address, (int32_t)block_of(checker, index));
}

bool tl_emu_is_excluded(const tl_emu_sanitizer *checker, const tl_emu_actor *actor, tl_emu_epoch epoch) {
  uint32_t other = tl_emu_epoch_agent(epoch);
  if (!has_blocks(checker) || other >= checker->num_threads || actor->agent >= checker->num_threads) return false;
  if (block_of(checker, other) == block_of(checker, actor->agent)) return false;
  const tl_emu_site *before = tl_emu_site_of(checker->launch, epoch);
  return actor->site->scope == TL_EMU_SCOPE_BLOCK || (before && before->scope == TL_EMU_SCOPE_BLOCK);
}

void tl_emu_release_atomic(tl_emu_sanitizer *checker, uint32_t index, const void *address, tl_emu_scope scope) {
  scope = scope_here(checker, scope);
  if (has_blocks(checker)) release(checker, index, block_clock(checker, index, address));
  if (scope == TL_EMU_SCOPE_BLOCK) return;
  bool is_own = in_window(address) || scope == TL_EMU_SCOPE_CLUSTER;
  if (is_own || checker->launch->has_narrow) release(checker, index, atomic_clock(checker, address, WHOLE_CLUSTER));
  if (is_own) return;
  tl_emu_vector *known = published(checker, index);
  tl_emu_release_global(checker, tl_emu_owner(checker, index), known, address);
  tl_emu_vector_drop(checker, known);
  tl_emu_agent *agent = &checker->agents[index];
  if (agent->now < TL_EMU_EPOCH_MAX_CLOCK) agent->now++;
}

void tl_emu_acquired(const void *address, uint32_t given) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  tl_emu_scope scope = scope_here(checker, given);
  uint32_t index = tl_emu_agent_here(tl_emu_self->current->thread);
  tl_emu_agent *agent = &checker->agents[index];
  if (has_blocks(checker)) acquire(checker, index, block_clock(checker, index, address));
  if (scope == TL_EMU_SCOPE_BLOCK) return;
  bool is_near = in_window(address) || checker->launch->has_narrow;
  if (is_near) acquire(checker, index, atomic_clock(checker, address, WHOLE_CLUSTER));
  if (in_window(address) || scope == TL_EMU_SCOPE_CLUSTER) return;
  if (acquire_global(checker, tl_emu_owner(checker, index), &agent->known, address)) agent->released = NULL;
}

// ---- fences. A relaxed write releases what its thread knew at its last release fence; what a relaxed read sees is
// known from the next acquire fence on.

void tl_emu_fence(uint32_t sides) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  tl_emu_scope scope = scope_here(checker, sides / TL_EMU_FENCE_SCOPE);
  uint32_t index = tl_emu_agent_here(tl_emu_self->current->thread);
  tl_emu_agent *agent = &checker->agents[index];
  for (int s = scope; (sides & TL_EMU_FENCE_ACQUIRE) && s < TL_EMU_NUM_SCOPES; s++) {
    if (!agent->observed[s]) continue;
    join(checker, &agent->known, agent->observed[s]);
    tl_emu_vector_drop(checker, agent->observed[s]);
    agent->observed[s] = NULL;
    agent->released = NULL;
  }
  if (!(sides & TL_EMU_FENCE_RELEASE)) return;
  tl_emu_vector *now = published(checker, index);
  for (int s = scope; s < TL_EMU_NUM_SCOPES; s++) {
    tl_emu_vector_drop(checker, agent->at_fence[s]);
    agent->at_fence[s] = tl_emu_vector_share(now);
  }
  tl_emu_vector_drop(checker, now);
  if (agent->now < TL_EMU_EPOCH_MAX_CLOCK) agent->now++;
}

static void release_fenced(tl_emu_sanitizer *checker, uint32_t index, tl_emu_clock **clock, tl_emu_scope scope) {
  tl_emu_vector *at_fence = checker->agents[index].at_fence[scope];
  if (at_fence) join_into_clock(checker, open_clock(checker, clock), at_fence);
}

static void observe(tl_emu_sanitizer *checker, uint32_t index, const tl_emu_clock *clock, tl_emu_scope scope) {
  tl_emu_vector **observed = &checker->agents[index].observed[scope];
  if (!clock || !clock->value) return;
  if (*observed)
    join(checker, observed, clock->value);
  else
    *observed = tl_emu_vector_share(clock->value);
}

void tl_emu_release_relaxed(uint32_t thread, tl_emu_clock **clock) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (checker) release_fenced(checker, tl_emu_agent_here(thread), clock, TL_EMU_SCOPE_BLOCK);
}

void tl_emu_acquire_relaxed(uint32_t thread, tl_emu_clock **clock) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (checker) observe(checker, tl_emu_agent_here(thread), *clock, TL_EMU_SCOPE_BLOCK);
}

void tl_emu_release_atomic_relaxed(tl_emu_sanitizer *checker, uint32_t index, const void *address, tl_emu_scope scope) {
  const tl_emu_agent *agent = &checker->agents[index];
  scope = scope_here(checker, scope);
  if (!agent->at_fence[TL_EMU_SCOPE_BLOCK]) return;
  if (has_blocks(checker)) release_fenced(checker, index, block_clock(checker, index, address), TL_EMU_SCOPE_BLOCK);
  if (scope == TL_EMU_SCOPE_BLOCK) return;
  bool is_own = in_window(address) || scope == TL_EMU_SCOPE_CLUSTER;
  if (is_own || checker->launch->has_narrow)
    release_fenced(checker, index, atomic_clock(checker, address, WHOLE_CLUSTER), TL_EMU_SCOPE_CLUSTER);
  const tl_emu_vector *at_fence = agent->at_fence[TL_EMU_SCOPE_ALL];
  if (!is_own && at_fence) tl_emu_release_global(checker, tl_emu_owner(checker, index), at_fence, address);
}

void tl_emu_wrote_relaxed(const void *address) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  uint32_t index = tl_emu_agent_here(tl_emu_self->current->thread);
  tl_emu_release_atomic_relaxed(checker, index, address, TL_EMU_SCOPE_ALL);
}

void tl_emu_observed(const void *address, uint32_t given) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  tl_emu_scope scope = scope_here(checker, given);
  uint32_t index = tl_emu_agent_here(tl_emu_self->current->thread);
  if (has_blocks(checker)) observe(checker, index, *block_clock(checker, index, address), TL_EMU_SCOPE_BLOCK);
  if (scope == TL_EMU_SCOPE_BLOCK) return;
  if (in_window(address) || checker->launch->has_narrow)
    observe(checker, index, *atomic_clock(checker, address, WHOLE_CLUSTER), TL_EMU_SCOPE_CLUSTER);
  if (in_window(address) || scope == TL_EMU_SCOPE_CLUSTER) return;
  tl_emu_vector **observed = &checker->agents[index].observed[TL_EMU_SCOPE_ALL];
  if (!*observed) *observed = tl_emu_vector_create(checker);
  acquire_global(checker, tl_emu_owner(checker, index), observed, address);
}

void tl_emu_sanitize_meet(const tl_emu_warp *warp, uint32_t mask) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker || !(mask & (mask - 1))) return;
  uint32_t first = tl_emu_agent_here(warp->index * TL_EMU_WARP);
  TL_EMU_FOR_LANES(lane, mask) release(checker, first + lane, &checker->meeting);
  TL_EMU_FOR_LANES(lane, mask) acquire(checker, first + lane, &checker->meeting);
  clear_clock(checker, checker->meeting);
}

void tl_emu_clock_reset(tl_emu_clock **clock) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (checker && *clock) clear_clock(checker, *clock);
}

void tl_emu_fence_proxy_async(uint32_t thread, uint32_t spaces) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  tl_emu_agent *agent = &checker->agents[tl_emu_agent_here(thread)];
  if (spaces & TL_EMU_PROXY_SHARED) agent->fenced[0] = agent->now;
  if (spaces & TL_EMU_PROXY_GLOBAL) agent->fenced[1] = agent->now;
  if ((spaces & TL_EMU_PROXY_GLOBAL) && agent->known->foreign) {
    own_items(checker, &agent->known);
    tl_emu_foreign *fenced = tl_emu_foreign_fence(agent->known->foreign, checker->num_threads);
    tl_emu_foreign_drop(agent->known->foreign);
    agent->known->foreign = fenced;
    agent->released = NULL;
  }
  if (agent->now < TL_EMU_EPOCH_MAX_CLOCK) agent->now++;
}

void tl_emu_async_complete(tl_emu_async *async, tl_emu_clock **clock) {
  if (!async) return;
  tl_emu_sanitizer *checker = async->checker;
  tl_emu_clock *to = open_clock(checker, clock);
  join_into_clock(checker, to, async->known);
  uint32_t *items = own_items(checker, &to->value);
  raise(&items[async->slot], async->clock);
  raise(&items[async->issuer], async->issuer_now);
  raise(&items[checker->num_threads + async->issuer], async->issuer_copies_done);
  raise_fenced(checker, items, async->issuer, async->issuer_fenced);
}

void tl_emu_copies_complete(tl_emu_clock **clock) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  uint32_t index = tl_emu_agent_here(tl_emu_self->current->thread);
  tl_emu_agent *agent = &checker->agents[index];
  tl_emu_clock *to = open_clock(checker, clock);
  join_into_clock(checker, to, agent->known);
  raise(&own_items(checker, &to->value)[checker->num_threads + index], agent->copies_issued);
}

void tl_emu_clocks_fini(tl_emu_sanitizer *checker) {
  while (checker->clocks) {
    tl_emu_clock *next = checker->clocks->next;
    clear_clock(checker, checker->clocks);
    free(checker->clocks);
    checker->clocks = next;
  }
  checker->meeting = NULL;
  tl_vec_clear(&checker->atomics);
}
