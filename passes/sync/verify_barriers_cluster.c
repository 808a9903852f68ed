// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clusters in verify-barriers: where blocks arrive at each other's barriers, or copy into each other's memory, all
// blocks of one cluster are run, the roles of each by themselves. They run one program with the indices of the grid
// that are theirs; memory and mbarriers are a block's own.
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

void tl_run_place_in_cluster(tl_barrier_verifier *self, const tl_op *grid) {
  for (uint32_t d = 0; d < grid->num_results && d < TL_MAX_CLUSTER_DIMS && self->num_blocks > 1; d++) {
    int64_t stride, size = tl_kernel_cluster_size(self->kernel, d, &stride);
    tl_run_value *index = tl_run_env_at(&self->env, &grid->results[d]);
    index->number = index->number - index->number % size + self->block / stride % size;
  }
}
