// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clusters in verify-barriers: where blocks arrive at each other's barriers, or copy into each other's memory, all
// blocks of one cluster are run, the roles of each by themselves. They run one program with the indices of the grid
// that are theirs; memory and mbarriers are a block's own. Where the kernel has no roles each block is one.
#include "passes/sync/verify_barriers_internal.h"

#include <stdlib.h>

static void look_across(tl_op *op, void *user) {
  bool *found = user;
  *found |= tl_op_has(op, TL_ATTR_ACROSS);
}

int32_t tl_run_count_blocks(tl_op *kernel) {
  bool reaches = false;
  tl_walk(kernel, look_across, &reaches);
  return reaches ? (int32_t)tl_kernel_cluster_blocks(kernel) : 1;
}

void tl_run_enter_block(tl_barrier_verifier *self, int32_t block) {
  if (self->num_blocks == 1) return;
  for (int32_t b = 0; b < self->num_blocks; b++) {
    if (self->values[b]) continue;
    bool is_current = b == self->block;
    self->values[b] = is_current ? self->env.values : tl_xcalloc(self->env.capacity, sizeof(*self->env.values));
  }
  self->block = block;
  self->env.values = self->values[block];
}

void tl_run_forget_blocks(tl_barrier_verifier *self) {
  for (int32_t b = 0; b < self->num_blocks; b++)
    if (b != self->block) free(self->values[b]);
}

tl_run_peers tl_run_peers_of(const tl_barrier_verifier *self, const tl_op *op) {
  if (!tl_op_has(op, TL_ATTR_ACROSS) || self->num_blocks == 1)
    return (tl_run_peers){.first = self->block, .stride = 1, .count = 1};
  int64_t stride, count = tl_kernel_cluster_size(self->kernel, tl_op_int(op, TL_ATTR_ACROSS, 0), &stride);
  int32_t place = self->block / (int32_t)stride % (int32_t)count;
  return (tl_run_peers){.first = self->block - place * (int32_t)stride, (int32_t)stride, (int32_t)count, place};
}

// What a block did before the meeting is in the past of all behind it, but for what is still under way.
static void meet(tl_barrier_verifier *self) {
  uint32_t everyone = self->roles[0].all;
  size_t kept = 0;
  for (size_t i = 0; i < self->records.len; i++) {
    tl_run_access *record = &self->records.items[i];
    bool is_flying = record->is_async && !record->has_landed;
    if (!is_flying && !record->is_engine) record->seen = everyone;
    if (!is_flying && record->is_fenced) record->fenced = everyone;
    if (is_flying || tl_run_is_of_interest(self, record))
      tl_run_keep(self, i, &kept);
    else
      tl_vec_fini(&record->releases);
  }
  self->records.len = kept;
}

bool tl_run_cluster_met(tl_barrier_verifier *self, const tl_op *op, bool *moved) {
  tl_run_role *role = &self->roles[self->role];
  if (role->syncs_at != op) {
    role->syncs_at = op;
    role->num_met++;
    *moved = true;
    bool is_last = true;
    for (int32_t r = 1; r <= self->num_roles; r++) is_last &= self->roles[r].num_met >= role->num_met;
    if (is_last) meet(self);
  }
  for (int32_t r = 1; r <= self->num_roles; r++)
    if (self->roles[r].num_met < role->num_met) return false;
  return true;
}

void tl_run_place_in_cluster(tl_barrier_verifier *self, const tl_op *grid) {
  for (uint32_t d = 0; d < grid->num_results && d < TL_MAX_CLUSTER_DIMS && self->num_blocks > 1; d++) {
    int64_t stride, size = tl_kernel_cluster_size(self->kernel, d, &stride);
    tl_run_value *index = tl_run_env_at(&self->env, &grid->results[d]);
    index->number = index->number - index->number % size + self->block / stride % size;
  }
}
