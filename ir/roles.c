// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads of kernels and roles, and their registers.
#include "ir/ir.h"

enum { WARP_THREADS = 32, ALL_REGISTERS = 65536, MAX_OF_THREAD = 255, REGISTER_UNIT = 8 };

static const tl_op *find_roles(const tl_op *kernel) {
  for (const tl_op *op = kernel->regions[0]->last; op; op = op->prev) {
    if (op->code == TL_OP_ROLES) return op;
  }
  return NULL;
}

int32_t tl_op_threads_known(const tl_op *op) {
  const tl_op *role = op->code == TL_OP_ROLE ? op : tl_op_enclosing(op, TL_OP_ROLE);
  if (role) return WARP_THREADS * (int32_t)tl_op_int(role, TL_ATTR_NUM_WARPS, 1);
  const tl_op *kernel = op->code == TL_OP_KERNEL ? op : tl_op_enclosing(op, TL_OP_KERNEL);
  int64_t threads = kernel ? tl_op_int(kernel, TL_ATTR_THREADS, 0) : 0;
  return threads > 0 ? (int32_t)threads : 0;
}

int32_t tl_op_threads(const tl_op *op) {
  enum { UNSAID = 128 };
  int32_t threads = tl_op_threads_known(op);
  return threads ? threads : UNSAID;
}

int32_t tl_kernel_block_threads(const tl_op *kernel) {
  const tl_op *roles = find_roles(kernel);
  int32_t threads = 0;
  for (const tl_op *role = roles ? roles->regions[0]->first : NULL; role; role = role->next)
    if (role->code == TL_OP_ROLE) threads += tl_op_threads(role);
  return threads ? threads : tl_op_threads(kernel);
}

int32_t tl_kernel_entry_registers(const tl_op *kernel) {
  int64_t blocks = tl_op_int(kernel, TL_ATTR_MIN_BLOCKS, 0);
  if (blocks < 1) return 0;
  int64_t registers = ALL_REGISTERS / (blocks * tl_kernel_block_threads(kernel));
  return (int32_t)((registers > MAX_OF_THREAD ? MAX_OF_THREAD : registers) / REGISTER_UNIT * REGISTER_UNIT);
}
