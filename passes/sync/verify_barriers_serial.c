// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A schedule that can be proven without exploring it: statements that touch memory which the kernel writes run one
// after the other.
//
//   copy %A … async via=cp_async        barrier
//   ring_commit                    ⇒    copy %A … async via=vector
//   …                                   ring_commit
//
// An asynchronous gemm is waited for where it stands.
#include "passes/sync/verify_barriers_internal.h"

typedef struct serial_rewrite {
  tl_barrier_verifier *self;
  bool *is_written;  // a root each
  bool needs;        // the statement that is looked at touches what is written
  int64_t num_barriers, num_copies;
} serial_rewrite;

static int64_t root_of(const serial_rewrite *rewrite, const tl_value *buffer) {
  if (buffer->type->kind != TL_TYPE_BUFFER || buffer->type->scope == TL_SCOPE_LOCAL) return -1;
  return tl_run_root_of(rewrite->self, buffer);
}

static void note_write(void *user, const tl_op *op, tl_run_kind kind, const tl_value *buffer) {
  serial_rewrite *rewrite = user;
  (void)op;
  int64_t root = root_of(rewrite, buffer);
  if (root >= 0 && kind != TL_RUN_READ) rewrite->is_written[root] = true;
}

static void look_for_written(void *user, const tl_op *op, tl_run_kind kind, const tl_value *buffer) {
  serial_rewrite *rewrite = user;
  (void)op;
  (void)kind;
  int64_t root = root_of(rewrite, buffer);
  for (size_t i = 0; root >= 0 && i < rewrite->self->roots.len; i++)
    if (rewrite->is_written[i] && tl_run_roots_meet(rewrite->self, root, (int64_t)i)) rewrite->needs = true;
}

static void end_flight(serial_rewrite *rewrite, tl_op *op) {
  if (op->code == TL_OP_GEMM && tl_op_has(op, TL_ATTR_ASYNC)) {
    tl_builder builder;
    tl_builder_after(&builder, rewrite->self->context->module, op);
    builder.loc = op->loc;
    tl_value *a = tl_op_arg(op, TL_GROUP_GEMM_a);
    tl_group groups[] = {TL_GROUP_EMPTY, {&a, a->type->kind == TL_TYPE_TILE}};
    tl_op *wait = tl_build(&builder, TL_OP_GEMM_WAIT, groups, NULL, 0);
    tl_op_set_int(rewrite->self->context->module, wait, TL_ATTR_PENDING, 0);
    return;
  }
  if (!tl_run_is_in_flight(op) || (op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map))) return;
  if (op->code == TL_OP_COPY)
    tl_op_set_int(rewrite->self->context->module, op, TL_ATTR_VIA, TL_VIA_VECTOR);
  else
    tl_op_remove_attr(op, TL_ATTR_VIA);
  rewrite->num_copies++;
}

// The op before `op`, but for those that compute values.
static const tl_op *effect_before(const tl_op *op) {
  const tl_op *prev = op->prev;
  while (prev && prev->num_regions == 0 && (tl_op_info_of(prev->code)->flags & TL_OPFLAG_PURE)) prev = prev->prev;
  return prev;
}

static void insert_barrier(serial_rewrite *rewrite, tl_op *before) {
  // What threads wrote is for the matrix unit once each of them has made a fence.
  bool fences = rewrite->self->uses_proxy;
  const tl_op *prev = effect_before(before);
  if (prev && prev->code == TL_OP_BARRIER) {
    const tl_op *fence = effect_before(prev);
    if (!fences || (fence && fence->code == TL_OP_FENCE_PROXY)) return;
  }
  tl_builder builder;
  tl_builder_before(&builder, rewrite->self->context->module, before);
  builder.loc = before->loc;
  if (fences) tl_build(&builder, TL_OP_FENCE_PROXY, NULL, NULL, 0);
  tl_build(&builder, TL_OP_BARRIER, NULL, NULL, 0);
  rewrite->num_barriers++;
}

static void serialise_block(serial_rewrite *rewrite, tl_block *block, bool may_meet) {
  for (tl_op *op = block->first; op; op = op->next) {
    end_flight(rewrite, op);
    bool is_uniform = op->code == TL_OP_FOR || (op->code == TL_OP_IF && tl_op_has(op, TL_ATTR_UNIFORM));
    if (is_uniform && may_meet) {
      for (uint32_t r = 0; r < op->num_regions; r++) serialise_block(rewrite, op->regions[r], true);
      continue;
    }
    // A branch that not all threads take holds no barriers: it counts as one statement.
    if (op->code == TL_OP_IF || op->code == TL_OP_FOR)
      for (uint32_t r = 0; r < op->num_regions; r++) serialise_block(rewrite, op->regions[r], false);
    rewrite->needs = false;
    if (may_meet) tl_run_each_access(rewrite->self, op, look_for_written, rewrite);
    if (rewrite->needs) insert_barrier(rewrite, op);
  }
}

void tl_run_serialise(tl_barrier_verifier *self) {
  serial_rewrite rewrite = {.self = self};
  rewrite.is_written = TL_NEW_ARRAY(&self->context->scratch, bool, self->roots.len + 1);
  for (const tl_op *op = self->kernel->regions[0]->first; op; op = op->next)
    tl_run_each_access(self, op, note_write, &rewrite);
  serialise_block(&rewrite, self->kernel->regions[0], true);
  tl_diag_report(self->context->diags, TL_DIAG_SERIALISED, self->kernel->loc,
                 "the schedule is too large to be explored; a simpler one runs the statements one after the other: "
                 "%lld more barriers, %lld asynchronous copies through registers",
                 (long long)rewrite.num_barriers, (long long)rewrite.num_copies);
}
