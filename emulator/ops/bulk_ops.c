// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/ops/bulk_ops.h"

#include "emulator/ops/mbarrier.h"

static tl_emu_target sanitize_target(const tl_emu_target *target, uint32_t bytes, size_t align,
                                     const tl_emu_site *site) {
  const tl_emu_block *block = tl_emu_bulk_locate(target->to, bytes, align, "destination", site);
  const tl_emu_block *other = tl_emu_bulk_locate(target->mbarrier, 8, 8, "mbarrier", site);
  if (block != other)
    tl_emu_fail_at(site, "the destination is in block %u of the cluster, the mbarrier in block %u", block->rank,
                   other->rank);
  tl_emu_mbarrier_expect(target->mbarrier, site);
  return *target;
}

uint32_t tl_emu_bulk_targets(uint8_t *to, void *mbarrier, uint32_t bytes, size_t align, bool is_multicast,
                             uint32_t mask, const tl_emu_site *site, tl_emu_target *out) {
  tl_emu_target first = {to, mbarrier};
  if (!is_multicast) {
    out[0] = sanitize_target(&first, bytes, align, site);
    return 1;
  }
  const tl_emu_block *home = tl_emu_bulk_locate(to, bytes, align, "destination", site);
  const tl_emu_block *other = tl_emu_bulk_locate(mbarrier, 8, 8, "mbarrier", site);
  uint32_t n = 0, size = tl_emu_self->launch->cluster_size;
  if (!mask || mask >> size) tl_emu_fail_at(site, "mask %#x for a cluster of %u blocks", mask, size);
  TL_EMU_FOR_LANES(rank, mask) {
    const tl_emu_block *block = &home->cluster->blocks[rank];
    tl_emu_target target = {block->shared + (to - home->shared), block->shared + ((uint8_t *)mbarrier - other->shared)};
    out[n++] = sanitize_target(&target, bytes, align, site);
  }
  return n;
}
