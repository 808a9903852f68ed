// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of an operand that decide nothing. A group of rows (those of one expert) ends at a limit of its own, and the
// copy engine knows the tensor's end only. But row i of A makes row i of A @ B alone, and where what comes of it is
// dropped by a store that begins and ends where the copy does, it does not matter what stands behind the limit:
//   copy X[lo:hi, …] -> A_s;  gemm acc += A_s @ B_s;  …;  copy acc -> Y[lo:hi, …]
#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"

typedef struct rows {
  const tl_value *offset, *limit;  // of the copy's rows
  TL_VEC(const tl_value *) seen;   // tiles whose rows are those of the copy
  bool ends;                       // some store drops them
  bool fails;
} rows;

static void follow(rows *self, const tl_value *tile);

// Whether two values are the same sum of the same values.
static bool is_same(const tl_value *a, const tl_value *b, int depth) {
  if (a == b) return true;
  int64_t left, right;
  if (tl_value_const_int(a, &left) && tl_value_const_int(b, &right)) return left == right;
  const tl_op *from = a->def, *to = b->def;
  if (!from || !to || depth == 0 || from->code != to->code || from->num_operands != to->num_operands) return false;
  bool is_sum = (tl_op_info_of(from->code)->flags & TL_OPFLAG_PURE) && from->num_operands > 0 && from->num_regions == 0;
  if (!is_sum || !tl_op_same_attrs(from, to) || a->type != b->type) return false;
  for (uint32_t i = 0; i < from->num_operands; i++)
    if (!is_same(tl_op_operand(from, i), tl_op_operand(to, i), depth - 1)) return false;
  return true;
}

// A store of the tile: rows from the limit on must be outside of it.
static void drop(rows *self, const tl_box *box) {
  enum { STEPS = 16 };
  if (tl_buffer_is_shared(box->buffer)) {
    int64_t first;
    bool is_whole =
        box->dims[0] == 0 && box->steps[0] == 1 && tl_value_const_int(tl_box_offset(box, 0), &first) && first == 0;
    if (is_whole && box->buffer->def && box->buffer->def->code == TL_OP_ALLOC)
      follow(self, box->buffer);
    else
      self->fails = true;
    return;
  }
  int32_t d = box->dims[0];
  const tl_value *limit = tl_box_limit(box, d);
  bool drops = limit && (tl_box_check(box, d) & TL_CHECK_UPPER) && box->steps[0] == 1 &&
               is_same(tl_box_offset(box, d), self->offset, STEPS) && is_same(limit, self->limit, STEPS);
  self->ends |= drops;
  self->fails |= !drops;
}

static void follow_yield(rows *self, const tl_op *yield, const tl_value *tile) {
  const tl_op *around = yield->parent->parent;
  for (uint32_t i = 0; i < yield->num_operands; i++) {
    if (tl_op_operand(yield, i) != tile) continue;
    bool is_known = around->code == TL_OP_FOR || around->code == TL_OP_IF;
    self->fails |= !is_known;
    if (around->code == TL_OP_FOR) follow(self, around->regions[0]->args[1 + i]);
    if (is_known) follow(self, &around->results[i]);
  }
}

// What a parallel does with a row that decides nothing must end and touch nothing: arithmetic, and loads that are
// checked.
static bool is_harmless(const tl_op *parallel) {
  for (const tl_op *op = parallel->regions[0]->first; op; op = op->next) {
    bool loads = op->code == TL_OP_LOAD && tl_buffer_is_global(tl_element_buffer(op));
    if (!loads && !(tl_op_info_of(op->code)->flags & (TL_OPFLAG_PURE | TL_OPFLAG_TERMINATOR))) return false;
    if (op->num_regions > 0) return false;
  }
  return true;
}

// Elements of a parallel: what an iteration gets from the tile is of its own row, and it gives it to that row alone.
static void follow_element(rows *self, const tl_op *extract) {
  const tl_op *parallel = extract->parent->parent;
  int32_t len = 0, at = 0;
  const int64_t *maps = tl_op_ints(parallel, TL_ATTR_MAPS, &len);
  const tl_value *row = tl_op_group_at(extract, TL_GROUP_EXTRACT_index, 0);
  self->fails |= parallel->code != TL_OP_PARALLEL || !maps || row->block != parallel->regions[0] || row->index != 0 ||
                 !is_harmless(parallel);
  // The maps of the results follow each other, a dim of the tile each.
  for (uint32_t r = 0; !self->fails && r < parallel->num_results; r++) {
    const tl_value *result = &parallel->results[r];
    self->fails |= at >= len || result->type->rank == 0 || maps[at] != 0;
    at += result->type->rank;
    follow(self, result);
  }
}

static void follow_use(rows *self, const tl_op *user, const tl_value *tile) {
  switch (user->code) {
    case TL_OP_COPY:
      // What fills the tile is looked at where it is filled.
      if (tl_op_arg(user, TL_GROUP_COPY_dst) == tile) return;
      break;
    case TL_OP_TILE_STORE:
      if (tl_op_arg(user, TL_GROUP_TILE_STORE_dst) == tile) return;
      break;
    default:
      break;
  }
  bool is_rows = user->code == TL_OP_GEMM && tl_op_arg(user, TL_GROUP_GEMM_b) != tile && user->num_results == 1 &&
                 !(tl_op_arg(user, TL_GROUP_GEMM_a) == tile && tl_op_has(user, TL_ATTR_TRANS_A));
  int32_t num_axes = 0;
  const int64_t *axes = user->code == TL_OP_REDUCE ? tl_op_ints(user, TL_ATTR_AXES, &num_axes) : NULL;
  is_rows |= user->code == TL_OP_REDUCE && num_axes == 1 && axes[0] > 0 && !tl_op_has(user, TL_ATTR_PARTIAL);
  is_rows |= user->code == TL_OP_CONVERT_LAYOUT;
  if (is_rows) {
    for (uint32_t r = 0; r < user->num_results; r++) follow(self, &user->results[r]);
  } else if (user->code == TL_OP_YIELD) {
    follow_yield(self, user, tile);
  } else if (user->code == TL_OP_FOR) {
    for (uint32_t i = 3; i < user->num_operands; i++) {
      if (tl_op_operand(user, i) != tile) continue;
      follow(self, user->regions[0]->args[i - 2]);
      follow(self, &user->results[i - 3]);
    }
  } else if (user->code == TL_OP_EXTRACT) {
    follow_element(self, user);
  } else if (user->code == TL_OP_COPY || user->code == TL_OP_TILE_STORE) {
    tl_box box = tl_box_destination((tl_op *)user);
    if (user->code == TL_OP_COPY) {
      tl_box from = tl_box_source((tl_op *)user);
      self->fails |= from.dims[0] != 0 || from.steps[0] != 1;
    }
    drop(self, &box);
  } else {
    self->fails = true;
  }
}

static void follow(rows *self, const tl_value *tile) {
  for (size_t i = 0; i < self->seen.len; i++)
    if (self->seen.items[i] == tile) return;
  if (self->fails) return;
  tl_vec_push(&self->seen, tile);
  for (const tl_use *use = tile->uses; use && !self->fails; use = use->next) follow_use(self, use->owner, tile);
}

bool tl_rows_are_dropped(tl_op *copy, int32_t dim) {
  tl_box from = tl_box_source(copy), to = tl_box_destination(copy);
  const tl_value *limit = tl_box_limit(&from, dim);
  bool is_row = from.tile_rank == 2 && from.dims[0] == dim && from.steps[0] == 1 && to.dims[0] == 0 && limit;
  if (!is_row || !to.buffer->def || to.buffer->def->code != TL_OP_ALLOC) return false;
  rows self = {.offset = tl_box_offset(&from, dim), .limit = limit};
  follow(&self, to.buffer);
  tl_vec_fini(&self.seen);
  return self.ends && !self.fails;
}
