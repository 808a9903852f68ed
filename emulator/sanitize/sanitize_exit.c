// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks of a cluster that end while others may still access their shared memory. PTX ISA, mapa and barrier.cluster:
// the memory of a block is there only until the block has exited. Whether one has depends on who runs first; whether
// something orders an access before the end of the block does not.
#include <stdlib.h>
#include <string.h>

#include "emulator/sanitize/sanitizer.h"

// Of one block.
typedef struct block_end {
  tl_emu_epoch *accesses;  // Owned. The last one of each thread of the other blocks, by agent; 0: none
  tl_emu_vector *known;    // Owned (a reference). What its threads knew when they ended; NULL: none has
} block_end;

struct tl_emu_ends {
  uint32_t num_blocks, num_agents;
  block_end blocks[];
};

static const char what[] = "accesses the memory of a block that may have ended";

tl_emu_ends *tl_emu_ends_create(const tl_emu_sanitizer *checker) {
  uint32_t num_blocks = checker->launch->cluster_size;
  if (num_blocks < 2 || !(checker->checks & TL_EMU_SANITIZE_BOUNDS)) return NULL;
  tl_emu_ends *ends = tl_xcalloc(1, sizeof *ends + num_blocks * sizeof ends->blocks[0]);
  ends->num_blocks = num_blocks;
  ends->num_agents = checker->num_threads;
  for (uint32_t i = 0; i < num_blocks; i++)
    ends->blocks[i].accesses = tl_xcalloc(checker->num_threads, sizeof(tl_emu_epoch));
  return ends;
}

void tl_emu_ends_destroy(tl_emu_ends *ends) {
  for (uint32_t i = 0; ends && i < ends->num_blocks; i++) free(ends->blocks[i].accesses);
  free(ends);
}

void tl_emu_ends_reset(tl_emu_sanitizer *checker) {
  tl_emu_ends *ends = checker->ends;
  for (uint32_t i = 0; ends && i < ends->num_blocks; i++) {
    memset(ends->blocks[i].accesses, 0, ends->num_agents * sizeof(tl_emu_epoch));
    tl_emu_vector_drop(checker, ends->blocks[i].known);
    ends->blocks[i].known = NULL;
  }
}

static void tell(tl_emu_sanitizer *checker, const tl_emu_actor *actor, tl_emu_access_kind kind,
                 const tl_emu_block *block) {
  tl_strbuf place = {0};
  tl_strbuf_appendf(&place, "shared memory of block (%u, %u, %u)", block->position[0], block->position[1],
                    block->position[2]);
  tl_emu_found(
      checker,
      &(tl_emu_seen){
          .kind = TL_EMU_FINDING_BOUNDS, .access = kind, .actor = actor, .what = what, .place = tl_strbuf_c(&place)});
  tl_strbuf_fini(&place);
}

bool tl_emu_ends_access(tl_emu_sanitizer *checker, const tl_emu_actor *actor, const tl_emu_block *block,
                        tl_emu_access_kind kind) {
  if (tl_emu_epoch_agent(actor->when) >= checker->num_threads) return true;  // asynchronous: waited for, or told
  if (!block->num_live) {
    tell(checker, actor, kind, block);
    return false;
  }
  if (actor->agent / checker->launch->num_threads != block->rank)
    checker->ends->blocks[block->rank].accesses[actor->agent] = actor->when | tl_emu_site_bits(checker, actor->site);
  return true;
}

// The block's last thread ends: accesses that none of its threads knows of may come later just as well.
static void sanitize_block(tl_emu_sanitizer *checker, const tl_emu_block *block) {
  static const tl_emu_site unknown = {.op = "access"};
  const block_end *end = &checker->ends->blocks[block->rank];
  for (uint32_t i = 0; i < checker->num_threads; i++) {
    tl_emu_epoch access = end->accesses[i];
    if (!access || tl_emu_epoch_clock(access) <= end->known->items[i]) continue;
    uint32_t index = (uint32_t)(access >> TL_EMU_EPOCH_SITE_SHIFT) & TL_EMU_EPOCH_MAX_SITE;
    const tl_emu_site *site = index ? &checker->launch->sites[index - 1] : &unknown;
    tl_emu_actor actor = tl_emu_actor_of_agent(checker, i, site);
    tell(checker, &actor, site->access, block);
  }
}

void tl_emu_ends_thread(tl_emu_sanitizer *checker, const tl_emu_block *block, uint32_t thread) {
  if (!checker->ends) return;
  block_end *end = &checker->ends->blocks[block->rank];
  tl_emu_vector_gather(checker, &end->known, block->rank * checker->launch->num_threads + thread);
  if (block->num_live == 1) sanitize_block(checker, block);
}
