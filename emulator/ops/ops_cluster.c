// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clusters: the barrier of all their threads, and addresses in each other's shared memory.
#include "emulator/machine/args.h"
#include "emulator/ops/bulk_ops.h"
#include "emulator/ops/ops.h"

// Of a cluster's threads, `leaving` of which are about to end.
static uint32_t num_live(const tl_emu_cluster *cluster, uint32_t leaving) {
  uint32_t live = 0;
  for (uint32_t i = 0; i < tl_emu_self->launch->cluster_size; i++) live += cluster->blocks[i].num_live;
  return live - leaving;
}

// PTX ISA, barrier.cluster: completes when all threads of the cluster that have not exited have arrived.
static void complete_if_done(tl_emu_cluster *cluster, uint32_t leaving) {
  uint32_t live = num_live(cluster, leaving);
  if (!live || cluster->arrived < live) return;
  cluster->arrived = 0;
  cluster->phase++;
  tl_emu_clock_reset(&cluster->clocks[cluster->phase & 1]);
  for (uint32_t i = 0; i < tl_emu_self->launch->cluster_size; i++)
    for (uint32_t t = 0; t < tl_emu_self->num_threads; t++)
      if (cluster->blocks[i].fibers[t].waits_for == cluster) tl_emu_wake(&cluster->blocks[i].fibers[t]);
}

void tl_emu_op_cluster_arrive(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  tl_emu_fiber *me = tl_emu_self->current;
  tl_emu_cluster *cluster = me->block->cluster;
  if (me->in_cluster_barrier) tl_emu_fail_at(site, "the thread arrived before and has not waited since");
  me->in_cluster_barrier = true;
  me->cluster_phase = cluster->phase;
  tl_emu_clock **clock = &cluster->clocks[cluster->phase & 1];
  if (site->binding->param)
    tl_emu_release_relaxed(me->thread, clock);
  else
    tl_emu_release(me->thread, clock);
  cluster->arrived++;
  complete_if_done(cluster, 0);
}

static void describe_wait(const tl_emu_fiber *fiber, tl_strbuf *out) {
  tl_strbuf_appendf(out, "the cluster's barrier, where %u threads arrived", fiber->block->cluster->arrived);
}

void tl_emu_op_cluster_wait(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  tl_emu_fiber *me = tl_emu_self->current;
  tl_emu_cluster *cluster = me->block->cluster;
  if (!me->in_cluster_barrier) tl_emu_fail_at(site, "the thread waits without having arrived");
  me->site = site;
  while (cluster->phase == me->cluster_phase) {
    tl_emu_set_wait(me, cluster, describe_wait);
    tl_emu_park();
    tl_emu_set_wait(me, NULL, NULL);
  }
  me->in_cluster_barrier = false;
  tl_emu_acquire(me->thread, &cluster->clocks[me->cluster_phase & 1]);
}

void tl_emu_op_mapa(void *result, const void *operands, const tl_emu_site *site) {
  tl_emu_args args = {operands, 0};
  uint8_t *address = tl_emu_args_pointer(&args);
  uint32_t rank = tl_emu_args_i32(&args), size = tl_emu_self->launch->cluster_size;
  const tl_emu_block *from = tl_emu_block_at(tl_emu_self, address);
  if (!from) tl_emu_fail_at(site, "the address is not in shared memory");
  if (rank >= size) tl_emu_fail_at(site, "there is no block %u in a cluster of %u", rank, size);
  *(uint8_t **)result = from->cluster->blocks[rank].shared + (address - from->shared);
}

void tl_emu_op_getctarank(void *result, const void *operands, const tl_emu_site *site) {
  tl_emu_args args = {operands, 0};
  const tl_emu_block *block = tl_emu_block_at(tl_emu_self, tl_emu_args_pointer(&args));
  if (!block) tl_emu_fail_at(site, "the address is not in shared memory");
  *(uint32_t *)result = block->rank;
}

void tl_emu_op_cluster_sreg(void *result, const void *args, const tl_emu_site *site) {
  (void)args;
  const uint32_t *size = tl_emu_self->launch->cluster;
  uint32_t rank = tl_emu_self->block->rank, value = 0;
  switch ((tl_emu_cluster_sreg)site->binding->param) {
    case TL_EMU_CLUSTER_RANK:
      value = rank;
      break;
    case TL_EMU_CLUSTER_SIZE:
      value = tl_emu_self->launch->cluster_size;
      break;
    case TL_EMU_CLUSTER_CTAID_X:
      value = rank % size[0];
      break;
    case TL_EMU_CLUSTER_CTAID_Y:
      value = rank / size[0] % size[1];
      break;
    case TL_EMU_CLUSTER_CTAID_Z:
      value = rank / size[0] / size[1];
      break;
    case TL_EMU_CLUSTER_NCTAID_X:
      value = size[0];
      break;
    case TL_EMU_CLUSTER_NCTAID_Y:
      value = size[1];
      break;
    case TL_EMU_CLUSTER_NCTAID_Z:
      value = size[2];
      break;
    case TL_EMU_CLUSTER_ID_X:
    case TL_EMU_CLUSTER_ID_Y:
    case TL_EMU_CLUSTER_ID_Z:
      value = tl_emu_self->block->cluster->position[site->binding->param - TL_EMU_CLUSTER_ID_X];
      break;
    case TL_EMU_CLUSTER_NID_X:
    case TL_EMU_CLUSTER_NID_Y:
    case TL_EMU_CLUSTER_NID_Z: {
      int i = site->binding->param - TL_EMU_CLUSTER_NID_X;
      value = tl_emu_self->launch->grid[i] / size[i];
      break;
    }
  }
  *(uint32_t *)result = value;
}

static void begin_cluster(tl_emu_cluster *cluster) {
  cluster->arrived = cluster->phase = 0;
  cluster->clocks[0] = cluster->clocks[1] = NULL;
  for (uint32_t i = 0; i < tl_emu_self->launch->cluster_size; i++)
    for (uint32_t t = 0; t < tl_emu_self->num_threads; t++) cluster->blocks[i].fibers[t].in_cluster_barrier = false;
}

static void end_thread(tl_emu_fiber *thread) {
  tl_emu_cluster *cluster = thread->block->cluster;
  if (!cluster->arrived) return;
  if (thread->in_cluster_barrier && thread->cluster_phase == cluster->phase) cluster->arrived--;
  if (cluster->arrived) complete_if_done(cluster, 1);
}

const tl_emu_hooks tl_emu_cluster_hooks = {.begin_cluster = begin_cluster, .end_thread = end_thread};
