// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Local arrays stay in registers when every subscript is a constant in the end: short loops that index one are unrolled
// completely, and a remark tells of the arrays that will live in local memory all the same.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/tile/promote_locals.h"

enum { MAX_ITERATIONS = 32 };

// Whether `symbol` is the index of a loop that is, or from now on will be, unrolled completely.
static bool is_unrolled(tl_pass_context *context, const tl_value *symbol) {
  tl_op *loop = symbol->block ? symbol->block->parent : NULL;
  if (!loop || loop->code != TL_OP_FOR || symbol->index != 0 || tl_op_has(loop, TL_ATTR_WHILE)) return false;
  if (tl_op_int(loop, TL_ATTR_UNROLL, 0) == -1) return true;
  tl_constant_loop known;
  if (tl_op_has(loop, TL_ATTR_UNROLL) || !tl_loop_is_constant(loop, &known)) return false;
  bool is_short = known.trips <= MAX_ITERATIONS;
  if (is_short) tl_op_set_int(context->module, loop, TL_ATTR_UNROLL, -1);
  return is_short;
}

static bool is_constant_in_the_end(tl_pass_context *context, tl_value *index) {
  tl_affine form = tl_affine_of(index);
  bool constant = form.valid;
  for (int32_t i = 0; form.valid && i < form.num_terms; i++) {
    constant = is_unrolled(context, form.terms[i].symbol) && constant;
  }
  return constant;
}

typedef struct array_walk {
  tl_pass_context *context;
  TL_VEC(const tl_value *) reported;
} array_walk;

static void visit(tl_op *op, void *user) {
  array_walk *walk = user;
  if (op->code != TL_OP_LOAD && op->code != TL_OP_STORE) return;
  const tl_value *buffer = tl_element_buffer(op);
  if (buffer->type->scope != TL_SCOPE_LOCAL) return;
  bool constant = true;
  for (uint32_t d = 0; d < tl_element_rank(op); d++) {
    constant = is_constant_in_the_end(walk->context, tl_element_index(op, d)) && constant;
  }
  for (size_t i = 0; i < walk->reported.len; i++) constant = constant || walk->reported.items[i] == buffer;
  if (constant) return;
  tl_vec_push(&walk->reported, buffer);
  tl_diag *diag = tl_diag_report(walk->context->diags, TL_DIAG_REMARK_LOCAL, op->loc,
                                 "the local array '%s' lives in local memory: this subscript is not constant",
                                 tl_buffer_name(buffer));
  tl_diag_add_note(walk->context->diags, diag, buffer->def->loc, "it is declared here");
}

void tl_place_local_arrays(tl_pass_context *context, tl_op *kernel) {
  array_walk walk = {.context = context};
  tl_walk(kernel, visit, &walk);
  tl_vec_fini(&walk.reported);
}
