// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "llvm_backend/device/device_ops.h"

static const tl_device_op rows[TL_DEVOP_COUNT] = {
#define TL_DEVICE_OP(ID, name, family, signature, scope, effect, min_sm, min_ptx, asm_text, constraints, section) \
  [TL_DEVOP_##ID] = {name,                                                                                        \
                     signature,                                                                                   \
                     TL_DEVICE_FAMILY_##family,                                                                   \
                     TL_DEVICE_SCOPE_##scope,                                                                     \
                     TL_DEVICE_EFFECT_##effect,                                                                   \
                     min_sm,                                                                                      \
                     min_ptx,                                                                                     \
                     asm_text,                                                                                    \
                     constraints,                                                                                 \
                     section},
#include "llvm_backend/device/device_ops.def"
#undef TL_DEVICE_OP
};

const tl_device_op *tl_device_op_of(tl_device_op_id id) {
  return &rows[id];
}

tl_device_op_id tl_device_op_find(tl_str name) {
  for (int i = 0; i < TL_DEVOP_COUNT; i++)
    if (tl_str_is(name, rows[i].name)) return (tl_device_op_id)i;
  return TL_DEVOP_COUNT;
}

bool tl_device_op_is_ours(const tl_device_op *op) {
  return tl_str_starts_with(tl_str_from(op->name), "tl.");
}

bool tl_device_op_is_arch_specific(const tl_device_op *op) {
  return op->family == TL_DEVICE_FAMILY_WGMMA || op->family == TL_DEVICE_FAMILY_REGISTERS;
}
