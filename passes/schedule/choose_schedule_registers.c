// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared tiles that need not be shared: when every element is written and read by the thread of its own iteration only,
// the tile becomes a fragment. That saves the trip through shared memory and its barrier.
//
//   alloc shared X_s; copy %X -> X_s; parallel { load X_s[%i, %j] }   →   the same with a fragment X_s
#include "passes/analysis/memory_access.h"
#include "passes/schedule/choose_schedule.h"

// Registers a thread may spend on one such tile.
enum { MAX_REGISTERS = 64 };

static bool is_zero_index(const tl_value *value) {
  int64_t constant = -1;
  return tl_value_const_int(value, &constant) && constant == 0;
}

// Whether the box is the whole tile, element by element in order.
static bool is_whole_tile(const tl_box *box) {
  if (box->tile_rank != box->buffer_rank) return false;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    bool plain = box->dims[d] == d && box->steps[d] == 1 && box->extents[d] == box->buffer->type->dims[d];
    if (!plain || !is_zero_index(tl_box_offset(box, d)) || tl_box_limit(box, d)) return false;
  }
  return true;
}

// Whether the access names its element by the indices of its parallel, all of them in order, over the whole tile.
static bool is_own_element(const tl_op *op, const tl_value *buffer) {
  const tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
  if (!parallel || tl_element_rank(op) != parallel->regions[0]->num_args) return false;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, NULL);
  for (uint32_t d = 0; d < tl_element_rank(op); d++) {
    if (tl_element_index(op, d) != parallel->regions[0]->args[d] || extents[d] != buffer->type->dims[d]) return false;
  }
  return true;
}

static bool is_pipelined(const tl_op *op) {
  for (const tl_op *loop = tl_op_enclosing(op, TL_OP_FOR); loop;
       loop = tl_op_enclosing(loop->parent->parent, TL_OP_FOR)) {
    if (tl_op_has(loop, TL_ATTR_PIPELINED)) return true;
    if (!loop->parent || !loop->parent->parent) break;
  }
  return false;
}

// One use of the tile; `*reads` counts those by elements, which are what gains.
static bool use_allows(const tl_use *use, const tl_value *buffer, int *reads) {
  tl_op *op = use->owner;
  if (is_pipelined(op)) return false;
  if (op->code == TL_OP_LOAD) {
    (*reads)++;
    return is_own_element(op, buffer);
  }
  if (op->code == TL_OP_STORE) return is_own_element(op, buffer);
  if (op->code == TL_OP_FILL) return true;
  if (op->code != TL_OP_COPY) return false;
  // The author asks for the trip through shared memory, or waits for the bytes there; the copy engine adds up from
  // there.
  if (tl_op_arg(op, TL_GROUP_COPY_barrier) || tl_op_has(op, TL_ATTR_ATOMIC)) return false;
  if (tl_op_has(op, TL_ATTR_ASYNC) || tl_op_int(op, TL_ATTR_VIA, TL_VIA_AUTO) == TL_VIA_CP_ASYNC) return false;
  tl_box source = tl_box_source(op), destination = tl_box_destination(op);
  bool reads_it = source.buffer == buffer;
  const tl_box *own = reads_it ? &source : &destination;
  const tl_box *other = reads_it ? &destination : &source;
  return own->buffer == buffer && other->buffer != buffer && tl_buffer_is_global(other->buffer) && is_whole_tile(own);
}

void tl_schedule_registers(tl_schedule_problem *problem, int32_t threads) {
  tl_pass_context *context = problem->context;
  for (tl_op *op = problem->kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_ALLOC || tl_op_has(op, TL_ATTR_SHARED_LAYOUT)) continue;
    tl_value *buffer = tl_op_result(op, 0);
    const tl_type *type = buffer->type;
    int64_t most = (int64_t)MAX_REGISTERS * 32 * threads / tl_dtype_bits(type->dtype);
    if (!tl_buffer_is_shared(buffer) || type->rank == 0 || tl_type_num_elements(type) > most) continue;
    int reads = 0;
    bool allowed = buffer->uses != NULL;
    for (const tl_use *use = buffer->uses; use && allowed; use = use->next) allowed = use_allows(use, buffer, &reads);
    if (!allowed || reads == 0) continue;
    buffer->type = tl_type_buffer(context->module, TL_SCOPE_FRAGMENT, type->dtype, type->dims, type->rank);
    tl_diag_report(context->diags, TL_DIAG_REMARK_SCHEDULE, op->loc,
                   "'%s' stays in registers: every element is used by one thread only", tl_buffer_name(buffer));
  }
}
