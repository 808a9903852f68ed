// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads of kernels and roles, and their registers.
#include "ir/ir.h"

enum { WARP_THREADS = 32, ALL_REGISTERS = 65536, MAX_OF_THREAD = 255, REGISTER_UNIT = 8 };

const tl_op *tl_kernel_roles(const tl_op *kernel) {
  for (const tl_op *op = kernel->regions[0]->last; op; op = op->prev) {
    if (op->code == TL_OP_ROLES) return op;
  }
  return NULL;
}

int64_t tl_kernel_cluster_size(const tl_op *kernel, int64_t dim, int64_t *out_stride) {
  const tl_attr *attr = tl_op_attr(kernel, TL_ATTR_CLUSTER);
  const int64_t *sizes = attr ? attr->v.ints.items : NULL;
  int32_t len = attr ? attr->v.ints.len : 0;
  int64_t stride = 1;
  for (int32_t d = 0; sizes && d < len && d < dim; d++) stride *= sizes[d];
  if (out_stride) *out_stride = stride;
  return sizes && dim < len ? sizes[dim] : 1;
}

int64_t tl_kernel_cluster_blocks(const tl_op *kernel) {
  int64_t stride;
  tl_kernel_cluster_size(kernel, TL_MAX_CLUSTER_DIMS, &stride);
  return stride;
}

static bool is_elected(const tl_op *op, bool counts_waits) {
  switch (op->code) {
    case TL_OP_FOR:
    case TL_OP_IF:
      for (uint32_t r = 0; r < op->num_regions; r++)
        if (!tl_block_is_elected(op->regions[r], counts_waits)) return false;
      return true;
    case TL_OP_MBARRIER_WAIT:
      return counts_waits || tl_op_int(op, TL_ATTR_EACH, TL_EACH_THREAD) == TL_EACH_ROLE;
    case TL_OP_MBARRIER_ARRIVE:
      return tl_op_int(op, TL_ATTR_EACH, TL_EACH_THREAD) == TL_EACH_ROLE;
    case TL_OP_COPY:
      return tl_op_arg(op, TL_GROUP_COPY_map) != NULL;
    case TL_OP_MBARRIER_EXPECT:
    case TL_OP_BULK_COMMIT:
    case TL_OP_BULK_WAIT:
    case TL_OP_LOAD:
    case TL_OP_YIELD:
      return true;
    case TL_OP_THREAD_ID:
    case TL_OP_LANE_ID:
    case TL_OP_WARP_ID:
      return false;
    default:
      return (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) != 0;
  }
}

bool tl_block_is_elected(const tl_block *block, bool counts_waits) {
  for (const tl_op *op = block->first; op; op = op->next)
    if (!is_elected(op, counts_waits)) return false;
  return true;
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
  const tl_op *roles = tl_kernel_roles(kernel);
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
