// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of gemms in flight. A flight's registers belong to the matrix unit until the gemms behind it have
// ended: it goes from gemm to gemm, around loops, and to the one gemm_wait that makes a tile of it. So do the registers
// of A: the first wait that ends the gemm pins them.
#include "ir/verify/verify_internal.h"

static bool is_flight(const tl_value *value) {
  return value->type && value->type->kind == TL_TYPE_FLIGHT;
}

static bool may_use(const tl_use *use) {
  const tl_op *op = use->owner;
  switch ((tl_opcode)op->code) {
    case TL_OP_GEMM:
      return tl_op_has(op, TL_ATTR_ASYNC) && tl_op_arg(op, TL_GROUP_GEMM_acc) == use->value;
    case TL_OP_GEMM_WAIT:
    case TL_OP_FOR:
      return true;
    case TL_OP_YIELD:
      return op->parent->parent && op->parent->parent->code == TL_OP_FOR;
    default:
      return false;
  }
}

static void verify_value(tl_verifier *verifier, const tl_op *op, const tl_value *value) {
  if (!is_flight(value)) return;
  if (!value->type->layout) tl_verify_fail(verifier, op, "a flight has no layout");
  if (!value->uses || value->uses->next) tl_verify_fail(verifier, op, "a flight is used once");
  for (const tl_use *use = value->uses; use; use = use->next)
    if (!may_use(use)) tl_verify_fail(verifier, op, "'%s' uses a flight", tl_op_info_of(use->owner->code)->name);
}

static void verify_begin(tl_verifier *verifier, const tl_op *op) {
  const tl_type *flight = op->results[0].type, *tile = op->operands[0].value->type;
  if (flight->kind != TL_TYPE_FLIGHT || tl_type_landed((tl_module *)verifier->module, flight) != tile)
    tl_verify_fail(verifier, op, "%s becomes %s", tl_verify_type_text(verifier, tile),
                   tl_verify_type_text(verifier, flight));
}

static bool is_wgmma(const tl_op *op, bool async) {
  const tl_instruction *inst = op->code == TL_OP_GEMM ? tl_op_instruction(op) : NULL;
  return inst && inst->family == TL_FAMILY_WGMMA && tl_op_has(op, TL_ATTR_ASYNC) == async;
}

// Whether the wait, which leaves `pending` gemms in flight, ends the flight: its gemm stands in the same block, and
// that many others between. Those that stand deeper may not run.
static bool ends_flight(const tl_op *wait, const tl_value *flight, int64_t pending) {
  for (const tl_op *op = wait->prev; op; op = op->prev) {
    if (op == flight->def) return is_wgmma(op, true) && pending <= 0;
    pending -= is_wgmma(op, true);
  }
  return false;
}

static bool is_pinned(const tl_op *wait, const tl_value *tile) {
  for (uint32_t i = 0; i < tl_op_group_len(wait, TL_GROUP_GEMM_WAIT_pins); i++)
    if (tl_op_group_at(wait, TL_GROUP_GEMM_WAIT_pins, i) == tile) return true;
  return false;
}

// An asynchronous gemm with A in registers.
static void verify_pinned(tl_verifier *verifier, const tl_op *gemm) {
  const tl_value *a = tl_op_arg(gemm, TL_GROUP_GEMM_a);
  if (a->type->kind != TL_TYPE_TILE || !is_wgmma(gemm, true)) return;
  int64_t later = 0;
  for (const tl_op *op = gemm->next; op; op = op->next) {
    if (is_wgmma(op, false)) break;  // waits for all
    later += is_wgmma(op, true);
    if (op->code != TL_OP_GEMM_WAIT || tl_op_int(op, TL_ATTR_PENDING, 0) > later) continue;
    if (is_pinned(op, a)) return;
    break;
  }
  tl_verify_fail(verifier, gemm, "the first wait that ends it does not pin 'a'");
}

static void verify_wait(tl_verifier *verifier, const tl_op *op) {
  uint32_t values = tl_op_group_len(op, TL_GROUP_GEMM_WAIT_values);
  int64_t pending = tl_op_int(op, TL_ATTR_PENDING, 0);
  if (pending < 0 || pending > 7) tl_verify_fail(verifier, op, "'pending' is not 0 to 7");
  for (uint32_t i = 0; i < values && pending > 0; i++)
    if (!ends_flight(op, op->operands[i].value, pending))
      tl_verify_fail(verifier, op, "flight %u may still have a gemm under way", i);
  if (op->num_results != values) {
    tl_verify_fail(verifier, op, "%u results for %u flights", op->num_results, values);
    return;
  }
  for (uint32_t i = 0; i < values; i++) {
    const tl_type *flight = op->operands[i].value->type, *tile = op->results[i].type;
    if (tile->kind != TL_TYPE_TILE || tl_type_landed((tl_module *)verifier->module, flight) != tile)
      tl_verify_fail(verifier, op, "%s becomes %s", tl_verify_type_text(verifier, flight),
                     tl_verify_type_text(verifier, tile));
  }
}

void tl_verify_flights(tl_verifier *verifier, const tl_op *op) {
  for (uint32_t i = 0; i < op->num_results; i++) verify_value(verifier, op, &op->results[i]);
  for (uint32_t r = 0; r < op->num_regions; r++)
    for (uint32_t i = 0; i < op->regions[r]->num_args; i++) verify_value(verifier, op, op->regions[r]->args[i]);
  if (op->code == TL_OP_GEMM_BEGIN) verify_begin(verifier, op);
  if (op->code == TL_OP_GEMM_WAIT) verify_wait(verifier, op);
  if (op->code == TL_OP_GEMM) verify_pinned(verifier, op);
}
