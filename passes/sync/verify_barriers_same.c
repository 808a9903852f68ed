// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What verify-barriers need not tell apart: values that are computed in the same way, and the two ways of a condition
// that touch the same memory in the same order, as where one of them leaves out the tests of bounds.
#include "passes/sync/verify_barriers_internal.h"

// Whether two roles compute a value in the same way, each from the same values of the kernel. What loops carry is the
// same where it begins the same and, that given, goes on the same.
typedef struct tl_run_same {
  const tl_value *assumed[2][32];  // pairs that are being compared
  int num_assumed;
  int steps;  // left
} tl_run_same;

static bool is_same(tl_run_same *self, const tl_value *a, const tl_value *b);

static bool are_same(tl_run_same *self, const tl_op *a, const tl_op *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!is_same(self, tl_op_operand(a, i), tl_op_operand(b, i))) return false;
  return true;
}

// What loops carry at these places, the condition of a `while` first.
static bool are_carried_same(tl_run_same *self, const tl_op *a, uint32_t at, const tl_op *b, uint32_t other) {
  const tl_op *yields[] = {tl_block_terminator(a->regions[0]), tl_block_terminator(b->regions[0])};
  const tl_value *args[] = {a->regions[0]->args[1 + at], b->regions[0]->args[1 + other]};
  for (int i = 0; i < self->num_assumed; i++)
    if (self->assumed[0][i] == args[0] && self->assumed[1][i] == args[1]) return true;
  if (self->num_assumed == (int)(sizeof(self->assumed[0]) / sizeof(*self->assumed[0]))) return false;
  self->assumed[0][self->num_assumed] = args[0];
  self->assumed[1][self->num_assumed++] = args[1];
  if (tl_op_has(a, TL_ATTR_WHILE) && !are_carried_same(self, a, 0, b, 0)) return false;
  return is_same(self, tl_op_operand(a, 3 + at), tl_op_operand(b, 3 + other)) &&
         is_same(self, tl_op_operand(yields[0], at), tl_op_operand(yields[1], other));
}

static bool is_same_result(tl_run_same *self, const tl_value *a, const tl_value *b) {
  const tl_op *from = a->def, *to = b->def;
  if (from->code == TL_OP_FOR)
    return are_same(self, from, to, 3) && are_carried_same(self, from, a->index, to, b->index);
  if (from->code == TL_OP_IF) {
    if (!are_same(self, from, to, 1)) return false;
    for (uint32_t r = 0; r < 2; r++) {
      const tl_op *yields[] = {tl_block_terminator(from->regions[r]), tl_block_terminator(to->regions[r])};
      if (!is_same(self, tl_op_operand(yields[0], a->index), tl_op_operand(yields[1], b->index))) return false;
    }
    return true;
  }
  if (a->index != b->index || from->num_regions > 0 || from->num_operands != to->num_operands) return false;
  return are_same(self, from, to, from->num_operands);
}

static bool is_same(tl_run_same *self, const tl_value *a, const tl_value *b) {
  if (a == b) return true;
  if (self->steps-- <= 0 || !a->def != !b->def) return false;
  const tl_op *from = a->def ? a->def : a->block->parent, *to = b->def ? b->def : b->block->parent;
  if (from->code != to->code || !tl_op_same_attrs(from, to)) return false;
  if (a->def) return is_same_result(self, a, b);
  // What stands for an element of a parallel; loops have the same bounds.
  if (from->code == TL_OP_PARALLEL) return a->index == b->index;
  if (from->code != TL_OP_FOR || !are_same(self, from, to, 3)) return false;
  if (a->index == 0 || b->index == 0) return a->index == b->index;
  return are_carried_same(self, from, a->index - 1, to, b->index - 1);
}

bool tl_run_is_same(const tl_value *a, const tl_value *b) {
  tl_run_same same = {.steps = 1000};
  return is_same(&same, a, b);
}

// ---- conditions

// Which of a box's bounds are tested, and in what pieces threads move it, is nothing to who touches it when.
static bool is_of_pieces(tl_attr_key key) {
  return key == TL_ATTR_CHECK || key == TL_ATTR_SRC_CHECK || key == TL_ATTR_DST_CHECK || key == TL_ATTR_VEC ||
         key == TL_ATTR_SRC_VEC || key == TL_ATTR_DST_VEC;
}

static bool has_attrs_of(const tl_op *a, const tl_op *b) {
  for (uint32_t i = 0; i < a->num_attrs; i++) {
    const tl_attr *attr = &a->attrs[i], *other = tl_op_attr(b, attr->key);
    if (!is_of_pieces(attr->key) && (!other || !tl_attr_equal(attr, other))) return false;
  }
  return true;
}

static bool are_blocks_alike(const tl_block *a, const tl_block *b);

static bool are_ops_alike(const tl_op *a, const tl_op *b) {
  if (a->code != b->code || a->num_operands != b->num_operands || a->num_regions != b->num_regions) return false;
  if (!has_attrs_of(a, b) || !has_attrs_of(b, a)) return false;
  for (uint32_t i = 0; i < a->num_operands; i++)
    if (!tl_run_is_same(tl_op_operand(a, i), tl_op_operand(b, i))) return false;
  for (uint32_t r = 0; r < a->num_regions; r++)
    if (!are_blocks_alike(a->regions[r], b->regions[r])) return false;
  return true;
}

// The op or one behind it that does more than compute a value.
static const tl_op *doing(const tl_op *op) {
  while (op && op->num_regions == 0 && (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE)) op = op->next;
  return op;
}

static bool are_blocks_alike(const tl_block *a, const tl_block *b) {
  const tl_op *one = doing(a->first), *other = doing(b->first);
  while (one && other && are_ops_alike(one, other)) {
    one = doing(one->next);
    other = doing(other->next);
  }
  return !one && !other;
}

bool tl_run_decides(tl_barrier_verifier *self, const tl_op *branch) {
  for (size_t i = 0; i < self->branches.len; i++)
    if (self->branches.items[i].op == branch) return self->branches.items[i].decides;
  bool decides = branch->num_regions < 2 || !are_blocks_alike(branch->regions[0], branch->regions[1]);
  tl_run_branch known = {branch, decides};
  tl_vec_push(&self->branches, known);
  return decides;
}
