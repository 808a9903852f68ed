// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/ops/bulk_ops.h"

#include <stdarg.h>
#include <stdio.h>

#include "emulator/ops/mbarrier.h"
#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"

void tl_emu_fail_at(const tl_emu_site *site, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  // With a checker it is a finding like others, but the last one: what the operation would do nobody can say.
  if (tl_emu_sanitize_wrong_use(text, site)) tl_emu_give_up();
  tl_strbuf where = {0};
  tl_emu_describe_site(site, &where);
  char place[256];
  snprintf(place, sizeof place, "%s", tl_strbuf_c(&where));
  tl_strbuf_fini(&where);
  tl_emu_fail("%s: %s", place, text);
}

tl_emu_block *tl_emu_bulk_locate(const void *address, size_t bytes, size_t align, const char *what,
                                 const tl_emu_site *site) {
  const tl_emu_worker *worker = tl_emu_self;
  tl_emu_block *block = tl_emu_block_at(worker, address);
  if (!block || block->cluster != worker->block->cluster)
    tl_emu_fail_at(site, "the %s is not in shared memory of %s", what,
                   worker->launch->cluster_size > 1 ? "the cluster" : "the block");
  ptrdiff_t offset = (const uint8_t *)address - block->shared;
  size_t size = worker->launch->shared_bytes;
  if ((uintptr_t)address % align)
    tl_emu_fail_at(site, "the %s, offset %td of shared memory, is no multiple of %zu", what, offset, align);
  if (offset < 0 || (size_t)offset > size || bytes > size - (size_t)offset)
    tl_emu_fail_at(site, "the %s, %zu bytes at offset %td of shared memory, is not within its %zu bytes", what, bytes,
                   offset, size);
  if (!block->num_live)
    tl_emu_fail_at(site, "the %s is in block %u of the cluster, which has exited", what, block->rank);
  return block;
}

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
