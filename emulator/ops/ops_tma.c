// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor copies, cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: a box of a tensor map between global and shared
// memory. The hardware takes malformed ones as illegal instructions; here the report says what is wrong.
#include "emulator/machine/args.h"
#include "emulator/ops/bulk_ops.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/tensormap.h"
#include "emulator/ops/tma_box.h"

enum { SHARED_ALIGN = 128, COORDINATE_BYTES = 16 };

// What all forms have: map and coordinates, and what the op's name says about them.
typedef struct tensor_op {
  tl_tensormap_params map;
  tl_emu_tma_box box;
  uint32_t bytes, shared_bytes;  // of the elements of the box, and of what they lie in
} tensor_op;

static void read_map(const void *address, tensor_op *op, const tl_emu_site *site) {
  tl_emu_tensormap_read(address, &op->map, site);
  uint32_t rank = (uint32_t)site->binding->param & TL_EMU_TMA_RANK;
  if (op->map.rank != rank)
    tl_emu_fail_at(site, "the op takes %u coordinates, the tensor map has %u dimensions", rank, op->map.rank);
  if (op->map.is_im2col != ((site->binding->param & TL_EMU_TMA_IM2COL) != 0))
    tl_emu_fail_at(site, "the tensor map is made for %s", op->map.is_im2col ? "im2col" : "tiles");
  op->box.map = &op->map;
  op->bytes = tl_emu_tma_box_bytes(&op->map);
  op->shared_bytes = tl_emu_tma_shared_bytes(&op->map);
}

// A column that is loaded starts at a pixel of the bounding box; outside of it the instruction is illegal (measured on
// an H200).
static void sanitize_first_pixel(const tensor_op *op, const tl_emu_site *site) {
  const tl_tensormap_params *map = &op->map;
  for (uint32_t corner = 0; map->is_im2col && corner + 2 < map->rank; corner++) {
    uint32_t i = tl_emu_tma_first_spatial(map) + corner;
    int64_t last = (int64_t)map->dims[i] - 1 + map->upper[corner];
    if (op->box.coords[i] < map->lower[corner] || op->box.coords[i] > last)
      tl_emu_fail_at(site, "coordinate %u is %d, outside of the bounding box of %d to %lld", i, op->box.coords[i],
                     map->lower[corner], (long long)last);
  }
}

static void read_coordinates(tl_emu_args *args, tensor_op *op, const tl_emu_site *site) {
  for (uint32_t i = 0; i < op->map.rank; i++) op->box.coords[i] = (int32_t)tl_emu_args_i32(args);
  if (op->map.interleave != TL_TENSORMAP_INTERLEAVE_NONE) return;  // it counts slices there
  int64_t first = (int64_t)op->box.coords[0] * tl_tensormap_type_bytes(op->map.type);
  if (first % COORDINATE_BYTES)
    tl_emu_fail_at(site, "coordinate 0 is %d, %lld bytes of %s: no multiple of %d", op->box.coords[0], (long long)first,
                   tl_tensormap_type_name(op->map.type), COORDINATE_BYTES);
}

static void add_loaded(void *user, const tl_emu_tma_piece *piece) {
  tl_emu_transfer_add(user, (void *)piece->shared, (const void *)piece->global, piece->bytes);
}

static void issue_load(const tensor_op *op, const tl_emu_target *target, const tl_emu_site *site) {
  tl_emu_transfer *transfer = tl_emu_transfer_create(site);
  transfer->type = op->map.type;
  transfer->fill = op->map.fill;
  transfer->mbarrier = target->mbarrier;
  transfer->tx_bytes = op->bytes;
  tl_emu_tma_walk(&op->box, (uintptr_t)target->to, false, add_loaded, transfer);
  transfer->writer = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, site);
  tl_emu_transfer_touch(transfer, transfer->writer, TL_EMU_SOURCE);
  tl_emu_transfer_touch(transfer, transfer->writer, TL_EMU_DESTINATION);
  tl_emu_transfer_issue(transfer);
}

void tl_emu_op_tma_load(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  uint8_t *to = tl_emu_args_pointer(&args);
  void *mbarrier = tl_emu_args_pointer(&args);
  tensor_op op = {0};
  read_map(tl_emu_args_pointer(&args), &op, site);
  read_coordinates(&args, &op, site);
  sanitize_first_pixel(&op, site);
  for (uint32_t i = 0; op.map.is_im2col && i + 2 < op.map.rank; i++) op.box.offsets[i] = tl_emu_args_i16(&args);
  bool is_multicast = false;
  uint32_t mask = 0;
  if (!(site->binding->param & TL_EMU_TMA_CTA)) {
    mask = tl_emu_args_i16(&args);
    (void)tl_emu_args_i64(&args);  // cache policy
    is_multicast = tl_emu_args_bool(&args);
    (void)tl_emu_args_bool(&args);
    uint32_t group = tl_emu_args_i32(&args);
    if (group) tl_emu_fail_at(site, "cta_group::%u needs sm_100", group);
  }
  tl_emu_target targets[TL_EMU_MAX_CLUSTER];
  uint32_t n = tl_emu_bulk_targets(to, mbarrier, op.shared_bytes, SHARED_ALIGN, is_multicast, mask, site, targets);
  for (uint32_t i = 0; i < n; i++) issue_load(&op, &targets[i], site);
}

// Bytes outside the tensor are not stored.
static void add_stored(void *user, const tl_emu_tma_piece *piece) {
  if (piece->global) tl_emu_transfer_add(user, (void *)piece->global, (const void *)piece->shared, piece->bytes);
}

// Loads take coordinates outside the tensor on all sides, stores only behind its end: a negative one is an illegal
// instruction on sm_90 (measured on an H200).
static void sanitize_stored_coordinates(const tensor_op *op, const tl_emu_site *site) {
  for (uint32_t i = 0; i < op->map.rank; i++)
    if (op->box.coords[i] < 0)
      tl_emu_fail_at(site, "coordinate %u is %d: stores cannot start before the tensor", i, op->box.coords[i]);
}

void tl_emu_op_tma_store(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  const uint8_t *from = tl_emu_args_pointer(&args);
  tensor_op op = {0};
  read_map(tl_emu_args_pointer(&args), &op, site);
  read_coordinates(&args, &op, site);
  sanitize_stored_coordinates(&op, site);
  if (tl_emu_bulk_locate(from, op.shared_bytes, SHARED_ALIGN, "source", site) != tl_emu_self->block)
    tl_emu_fail_at(site, "the source is in shared memory of another block");
  uint32_t reduction = (uint32_t)site->binding->param >> TL_EMU_TMA_REDUCE_SHIFT;
  tl_emu_reduce_op reduce_op = (tl_emu_reduce_op)(reduction ? reduction - 1 : 0);
  if (reduction && !tl_emu_reduce_exists(reduce_op, op.map.type))
    tl_emu_fail_at(site, "there is no %s of %s", tl_emu_reduce_op_name(reduce_op), tl_tensormap_type_name(op.map.type));
  tl_emu_transfer *transfer = tl_emu_transfer_create(site);
  transfer->type = op.map.type;
  transfer->reduces = reduction != 0;
  transfer->op = reduce_op;
  tl_emu_tma_walk(&op.box, (uintptr_t)from, true, add_stored, transfer);
  transfer->reader = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, site);
  transfer->writer = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, site);
  tl_emu_transfer_touch(transfer, transfer->reader, TL_EMU_SOURCE);
  tl_emu_transfer_touch(transfer, transfer->writer, TL_EMU_DESTINATION);
  tl_emu_transfer_issue(transfer);
}

// Nothing to prefetch, but the operands must be right.
void tl_emu_op_tma_prefetch(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  tensor_op op = {0};
  read_map(tl_emu_args_pointer(&args), &op, site);
  read_coordinates(&args, &op, site);
  sanitize_first_pixel(&op, site);
}
