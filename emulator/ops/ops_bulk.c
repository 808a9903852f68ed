// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bulk copies of consecutive bytes, cp.async.bulk and cp.reduce.async.bulk, and the groups of all bulk operations.
#include "emulator/machine/args.h"
#include "emulator/ops/bulk_ops.h"
#include "emulator/ops/ops.h"

// PTX ISA, cp.async.bulk: addresses and size are multiples of 16.
enum { BULK_ALIGN = 16 };

static void sanitize_size(uint32_t bytes, const tl_emu_site *site) {
  if (bytes % BULK_ALIGN) tl_emu_fail_at(site, "the size %u is no multiple of %d", bytes, BULK_ALIGN);
}

static void sanitize_global(const void *address, const char *what, const tl_emu_site *site) {
  if ((uintptr_t)address % BULK_ALIGN)
    tl_emu_fail_at(site, "the %s %p in global memory is no multiple of %d", what, address, BULK_ALIGN);
}

static void sanitize_source(const void *address, uint32_t bytes, const tl_emu_site *site) {
  if (tl_emu_bulk_locate(address, bytes, BULK_ALIGN, "source", site) != tl_emu_self->block)
    tl_emu_fail_at(site, "the source is in shared memory of another block");
}

static void issue_to_mbarrier(tl_emu_transfer *transfer, const tl_emu_target *target, const void *from,
                              uint32_t bytes) {
  transfer->mbarrier = target->mbarrier;
  transfer->tx_bytes = bytes;
  if (bytes) tl_emu_transfer_add(transfer, target->to, from, bytes);
  transfer->writer = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, transfer->deferred.site);
  tl_emu_transfer_touch(transfer, transfer->writer, TL_EMU_SOURCE);
  tl_emu_transfer_touch(transfer, transfer->writer, TL_EMU_DESTINATION);
  tl_emu_transfer_issue(transfer);
}

static void issue_to_group(tl_emu_transfer *transfer, void *to, const void *from, uint32_t bytes) {
  if (bytes) tl_emu_transfer_add(transfer, to, from, bytes);
  transfer->reader = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, transfer->deferred.site);
  transfer->writer = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, transfer->deferred.site);
  tl_emu_transfer_touch(transfer, transfer->reader, TL_EMU_SOURCE);
  tl_emu_transfer_touch(transfer, transfer->writer, TL_EMU_DESTINATION);
  tl_emu_transfer_issue(transfer);
}

void tl_emu_op_bulk_load(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  uint8_t *to = tl_emu_args_pointer(&args);
  void *mbarrier = tl_emu_args_pointer(&args);
  const void *from = tl_emu_args_pointer(&args);
  uint32_t bytes = tl_emu_args_i32(&args), mask = 0;
  bool is_multicast = false;
  if (!(site->binding->param & TL_EMU_TMA_CTA)) {
    mask = tl_emu_args_i16(&args);
    (void)tl_emu_args_i64(&args);  // cache policy
    is_multicast = tl_emu_args_bool(&args);
  }
  sanitize_size(bytes, site);
  sanitize_global(from, "source", site);
  tl_emu_target targets[TL_EMU_MAX_CLUSTER];
  uint32_t n = tl_emu_bulk_targets(to, mbarrier, bytes, BULK_ALIGN, is_multicast, mask, site, targets);
  for (uint32_t i = 0; i < n; i++) issue_to_mbarrier(tl_emu_transfer_create(site), &targets[i], from, bytes);
}

void tl_emu_op_bulk_to_cluster(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  uint8_t *to = tl_emu_args_pointer(&args);
  void *mbarrier = tl_emu_args_pointer(&args);
  const void *from = tl_emu_args_pointer(&args);
  uint32_t bytes = tl_emu_args_i32(&args);
  sanitize_size(bytes, site);
  sanitize_source(from, bytes, site);
  tl_emu_target target;
  tl_emu_bulk_targets(to, mbarrier, bytes, BULK_ALIGN, false, 0, site, &target);
  issue_to_mbarrier(tl_emu_transfer_create(site), &target, from, bytes);
}

static tl_emu_transfer *create_reduction(const tl_emu_site *site) {
  tl_emu_transfer *transfer = tl_emu_transfer_create(site);
  transfer->reduces = true;
  transfer->op = (tl_emu_reduce_op)(site->binding->param & TL_EMU_BULK_OP);
  transfer->type = (tl_tensormap_type)(site->binding->param >> TL_EMU_BULK_TYPE_SHIFT);
  return transfer;
}

// From shared to global memory, as a copy or a reduction.
static void to_global(const void *operands, tl_emu_transfer *(*create)(const tl_emu_site *site),
                      const tl_emu_site *site) {
  tl_emu_args args = {operands, 0};
  void *to = tl_emu_args_pointer(&args);
  const void *from = tl_emu_args_pointer(&args);
  uint32_t bytes = tl_emu_args_i32(&args);
  sanitize_size(bytes, site);
  sanitize_global(to, "destination", site);
  sanitize_source(from, bytes, site);
  issue_to_group(create(site), to, from, bytes);
}

void tl_emu_op_bulk_store(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  to_global(operands, tl_emu_transfer_create, site);
}

void tl_emu_op_bulk_reduce(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  to_global(operands, create_reduction, site);
}

void tl_emu_op_bulk_reduce_cluster(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  uint8_t *to = tl_emu_args_pointer(&args);
  const void *from = tl_emu_args_pointer(&args);
  uint32_t bytes = tl_emu_args_i32(&args);
  void *mbarrier = tl_emu_args_pointer(&args);
  sanitize_size(bytes, site);
  sanitize_source(from, bytes, site);
  tl_emu_target target;
  tl_emu_bulk_targets(to, mbarrier, bytes, BULK_ALIGN, false, 0, site, &target);
  issue_to_mbarrier(create_reduction(site), &target, from, bytes);
}

// Nothing to prefetch, but the operands must be right.
void tl_emu_op_bulk_prefetch(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  sanitize_global(tl_emu_args_pointer(&args), "source", site);
  sanitize_size(tl_emu_args_i32(&args), site);
}

void tl_emu_op_bulk_commit(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  (void)site;
  tl_emu_bulk_commit();
}

void tl_emu_op_bulk_wait(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  tl_emu_bulk_wait(*(const uint32_t *)args, site->binding->param != 0);
}
