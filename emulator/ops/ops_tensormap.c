// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps in memory: reading one, and kernels that change one. What a thread changes by tensormap.replace, tensor
// copies see only after fence.proxy.tensormap::generic.acquire for that address; that there was one in the block is
// what is checked, not between whom it orders.
#include <stdio.h>

#include "emulator/machine/args.h"
#include "emulator/ops/bulk_ops.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/tensormap.h"
#include "emulator/sanitize/sanitize.h"
#include "support/vec.h"

enum { REPLACE_ALIGN = 128 };  // of the operand of tensormap.replace, an object of 1024 bits

static bool was_acquired(const tl_emu_block *block, const void *address) {
  for (size_t i = 0; i < block->acquired_maps.len; i++)
    if (block->acquired_maps.items[i] == address) return true;
  return false;
}

void tl_emu_tensormap_read(const void *address, tl_tensormap_params *out, const tl_emu_site *site) {
  if ((uintptr_t)address % TL_TENSORMAP_ALIGN)
    tl_emu_fail_at(site, "the tensor map's address is no multiple of %d", TL_TENSORMAP_ALIGN);
  tl_emu_access_begin(site, tl_emu_self->current->thread);
  bool is_map = tl_emu_tensormap_decode(address, out), is_replaced = tl_emu_tensormap_is_replaced(address);
  tl_emu_access_end();
  if (!is_map) tl_emu_fail_at(site, "the %d bytes at %p are no tensor map", TL_TENSORMAP_BYTES, address);
  if (!is_replaced) return;
  tl_status status = tl_tensormap_validate(out);
  if (status) {
    char text[256];
    snprintf(text, sizeof text, "%s", tl_status_message(status));
    tl_status_free(status);
    tl_emu_fail_at(site, "%s", text);
  }
  if (!was_acquired(tl_emu_self->block, address))
    tl_emu_sanitize_misuse("the tensor map was changed, and no fence.proxy.tensormap::generic.acquire followed", site);
}

// prefetch.tensormap: nothing to do, but the map must be one.
void tl_emu_op_tensormap_use(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  tl_tensormap_params map;
  tl_emu_tensormap_read(tl_emu_args_pointer(&args), &map, site);
}

// fence.proxy.tensormap::generic.acquire. Values are sequentially consistent here.
void tl_emu_op_tensormap_acquire(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  const void *address = tl_emu_args_pointer(&args);
  tl_emu_block *block = tl_emu_self->block;
  if (!was_acquired(block, address)) tl_vec_push(&block->acquired_maps, address);
  tl_tensormap_params map;
  tl_emu_tensormap_read(address, &map, site);
}

static void forget_acquired(tl_emu_block *block, const void *address) {
  for (size_t i = 0; i < block->acquired_maps.len; i++)
    if (block->acquired_maps.items[i] == address)
      block->acquired_maps.items[i] = block->acquired_maps.items[--block->acquired_maps.len];
}

void tl_emu_op_tensormap_replace(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  tl_emu_tensormap_field field = (tl_emu_tensormap_field)site->binding->param;
  uint8_t *address = tl_emu_args_pointer(&args);
  bool has_ordinal = field >= TL_EMU_TENSORMAP_BOX_DIM && field <= TL_EMU_TENSORMAP_ELEMENT_STRIDE;
  bool is_wide = field == TL_EMU_TENSORMAP_GLOBAL_ADDRESS || field == TL_EMU_TENSORMAP_GLOBAL_STRIDE;
  uint32_t ordinal = has_ordinal ? tl_emu_args_i32(&args) : 0;
  uint64_t value = is_wide ? tl_emu_args_i64(&args) : tl_emu_args_i32(&args);
  if ((uintptr_t)address % REPLACE_ALIGN)
    tl_emu_fail_at(site, "the tensor map's address is no multiple of %d", REPLACE_ALIGN);
  if (!tl_emu_touch(address, TL_TENSORMAP_BYTES, REPLACE_ALIGN, TL_EMU_READ, site) ||
      !tl_emu_touch(address, TL_TENSORMAP_BYTES, REPLACE_ALIGN, TL_EMU_WRITE, site))
    return;
  tl_emu_access_begin(site, tl_emu_self->current->thread);
  tl_status status = tl_emu_tensormap_replace(address, field, ordinal, value);
  tl_emu_access_end();
  forget_acquired(tl_emu_self->block, address);
  if (!status) return;
  char text[256];
  snprintf(text, sizeof text, "%s", tl_status_message(status));
  tl_status_free(status);
  tl_emu_fail_at(site, "%s", text);
}

static void begin_block(tl_emu_block *block) {
  tl_vec_clear(&block->acquired_maps);
}

static void destroy_block(tl_emu_block *block) {
  tl_vec_fini(&block->acquired_maps);
}

const tl_emu_hooks tl_emu_tensormap_hooks = {.begin_block = begin_block, .destroy_block = destroy_block};
