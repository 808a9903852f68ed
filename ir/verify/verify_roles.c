// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of roles: which warps they have, how many registers, and what may stand beside them.
#include "ir/verify/verify_internal.h"

enum {
  WARP_THREADS = 32,
  WARPGROUP = 4,     // warps
  MAX_ROLES = 8,     // each has a named barrier of its own beside that of the block (PTX ISA, barrier: 16)
  MAX_WARPS = 32,    // of a block
  REGISTER_UNIT = 8  // PTX ISA, setmaxnreg: 24 to 256 in steps of 8; no thread has more than 255
};

static void verify_registers(tl_verifier *verifier, const tl_op *role) {
  if (!tl_op_has(role, TL_ATTR_REGISTERS)) return;
  int64_t registers = tl_op_int(role, TL_ATTR_REGISTERS, 0);
  if (registers % REGISTER_UNIT != 0)
    tl_verify_fail(verifier, role, "'registers' is %lld, no multiple of %d", (long long)registers, REGISTER_UNIT);
  // A part of a warpgroup waits for the rest of it.
  if (tl_op_int(role, TL_ATTR_FIRST_WARP, 0) % WARPGROUP != 0 || tl_op_int(role, TL_ATTR_NUM_WARPS, 0) % WARPGROUP != 0)
    tl_verify_fail(verifier, role, "a role with 'registers' has whole warpgroups");
}

static void verify_role(tl_verifier *verifier, const tl_op *op) {
  if (!op->parent->parent || op->parent->parent->code != TL_OP_ROLES)
    tl_verify_fail(verifier, op, "a role stands outside of 'roles'");
  if (op->regions[0]->num_args != 0) tl_verify_fail(verifier, op, "a role's region has no arguments");
  const tl_op *yield = tl_block_terminator(op->regions[0]);
  if (yield && yield->num_operands > 0) tl_verify_fail(verifier, op, "a role yields nothing");
  int64_t first = 0;
  for (const tl_op *before = op->prev; before; before = before->prev) first += tl_op_int(before, TL_ATTR_NUM_WARPS, 0);
  if (tl_op_int(op, TL_ATTR_FIRST_WARP, -1) != first)
    tl_verify_fail(verifier, op, "'first_warp' is %lld, %lld warps are before it",
                   (long long)tl_op_int(op, TL_ATTR_FIRST_WARP, -1), (long long)first);
  verify_registers(verifier, op);
}

// What all threads of the block do, in front of the roles.
static bool is_shared(const tl_op *op) {
  switch (op->code) {
    case TL_OP_THREAD_ID:
    case TL_OP_LANE_ID:
    case TL_OP_WARP_ID:
      return false;
    case TL_OP_BARRIER:
    case TL_OP_CLUSTER_BARRIER:
    case TL_OP_REQUIRE:
    case TL_OP_MBARRIER_INIT:
    case TL_OP_YIELD:
      return true;
    default:
      break;
  }
  int flags = tl_op_info_of(op->code)->flags;
  bool holds_tile = op->num_results == 1 && (op->results[0].type->kind == TL_TYPE_TILE);
  return (flags & TL_OPFLAG_ONCE) || ((flags & TL_OPFLAG_PURE) && !holds_tile);
}

static void verify_roles(tl_verifier *verifier, const tl_op *op) {
  const tl_op *kernel = op->parent->parent;
  if (!kernel || kernel->code != TL_OP_KERNEL) return;  // reported
  if (op->next && op->next->code != TL_OP_YIELD) tl_verify_fail(verifier, op, "something follows the roles");
  for (const tl_op *before = op->prev; before; before = before->prev) {
    if (!is_shared(before))
      tl_verify_fail(verifier, before, "'%s' stands in front of the roles, where all threads of the block are",
                     tl_op_info_of(before->code)->name);
  }
  int64_t count = 0, warps = 0, registers = 0, with_registers = 0, threads = tl_op_int(kernel, TL_ATTR_THREADS, 0);
  for (const tl_op *role = op->regions[0]->first; role; role = role->next) {
    if (role->code == TL_OP_YIELD) continue;
    if (role->code != TL_OP_ROLE) {
      tl_verify_fail(verifier, role, "'%s' stands among roles", tl_op_info_of(role->code)->name);
      return;
    }
    int64_t own = tl_op_int(role, TL_ATTR_NUM_WARPS, 0);
    if (count == 0 && threads > 0 && own != threads / WARP_THREADS)
      tl_verify_fail(verifier, role, "the first role has %lld warps, the kernel's math threads %lld", (long long)own,
                     (long long)(threads / WARP_THREADS));
    count++;
    warps += own;
    with_registers += tl_op_has(role, TL_ATTR_REGISTERS);
    registers += own * WARP_THREADS * tl_op_int(role, TL_ATTR_REGISTERS, 0);
  }
  if (count < 1 || count > MAX_ROLES)
    tl_verify_fail(verifier, op, "%lld roles, not 1 to %d", (long long)count, MAX_ROLES);
  if (warps > MAX_WARPS)
    tl_verify_fail(verifier, op, "%lld warps, a block has at most %d", (long long)warps, MAX_WARPS);
  if (with_registers != 0 && with_registers != count)
    tl_verify_fail(verifier, op, "some roles have 'registers' and some have not");
  // What the roles take is what the block has: the registers that its threads begin with.
  int64_t all = tl_kernel_entry_registers(kernel) * (warps * WARP_THREADS);
  if (with_registers && all == 0)
    tl_verify_fail(verifier, op, "'registers' of roles, and no 'min_blocks' of the kernel");
  else if (registers > all && warps <= MAX_WARPS)
    tl_verify_fail(verifier, op, "the roles take %lld registers, the block has %lld", (long long)registers,
                   (long long)all);
}

// wgmma is of whole warpgroups (PTX ISA, wgmma.mma_async: aligned).
static void verify_warpgroups(tl_verifier *verifier, const tl_op *gemm) {
  const tl_instruction *inst = tl_op_instruction(gemm);
  const tl_op *role = tl_op_enclosing(gemm, TL_OP_ROLE);
  if (!inst || inst->family != TL_FAMILY_WGMMA || !role) return;
  if (tl_op_int(role, TL_ATTR_FIRST_WARP, 0) % WARPGROUP != 0 || tl_op_int(role, TL_ATTR_NUM_WARPS, 0) % WARPGROUP != 0)
    tl_verify_fail(verifier, gemm, "wgmma in a role that has no whole warpgroups");
}

void tl_verify_roles_op(tl_verifier *verifier, const tl_op *op) {
  switch (op->code) {
    case TL_OP_ROLES:
      verify_roles(verifier, op);
      break;
    case TL_OP_ROLE:
      verify_role(verifier, op);
      break;
    case TL_OP_GEMM:
      verify_warpgroups(verifier, op);
      break;
    default:
      break;
  }
}
