// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/ops/operand.h"

#include <stdarg.h>
#include <stdio.h>

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
