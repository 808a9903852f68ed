// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the bulk and the tensor ops share: transfers to blocks of the cluster. Private to the
// emulator.
#ifndef TL_EMULATOR_BULK_OPS_H
#define TL_EMULATOR_BULK_OPS_H

#include "emulator/ops/bulk.h"
#include "emulator/ops/operand.h"
#include "support/tensormap.h"

// Where one copy of a load goes.
typedef struct tl_emu_target {
  uint8_t *to;
  void *mbarrier;
} tl_emu_target;

// The targets of a load of `bytes` to `to` that completes on `mbarrier`: one, or with `is_multicast` one for each block
// of `mask`, at the same offsets (room for TL_EMU_MAX_CLUSTER). Checks them and returns their number.
uint32_t tl_emu_bulk_targets(uint8_t *to, void *mbarrier, uint32_t bytes, size_t align, bool is_multicast,
                             uint32_t mask, const tl_emu_site *site, tl_emu_target *out);

// The parameters of the tensor map at `address`. Gives the launch up where there is none. ops_tensormap.c
void tl_emu_tensormap_read(const void *address, tl_tensormap_params *out, const tl_emu_site *site);

#endif
