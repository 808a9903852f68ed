// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier rules of gemms in flight. A flight's registers belong to the matrix unit until the gemms behind it have
// ended: it goes from gemm to gemm, around loops, and to the one gemm_wait that makes a tile of it.
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

static void verify_wait(tl_verifier *verifier, const tl_op *op) {
  uint32_t values = tl_op_group_len(op, TL_GROUP_GEMM_WAIT_values);
  int64_t pending = tl_op_int(op, TL_ATTR_PENDING, 0);
  if (pending < 0 || pending > 7) tl_verify_fail(verifier, op, "'pending' is not 0 to 7");
  if (pending > 0 && values > 0) tl_verify_fail(verifier, op, "a wait that leaves gemms in flight makes no tiles");
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
}
