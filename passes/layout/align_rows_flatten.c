// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parallels over whole rows that no vector divides: their elements are one run of the tensor, and neighbours go on from
// row to row.
//
//   parallel(%i, %j) in 8, 77: %Y[%r + %i, %j] = f(%X[%r + %i, %j], %w[%j])
//   ⇒  parallel(%e) in 616: %flat_y[%r * 77 + %e] = f(%flat_x[%r * 77 + %e], %w[%e % 77])
//
// What depends on the row or the column alone is found by division.
#include "passes/layout/align_rows.h"
#include "support/vec.h"

enum { VECTOR_BITS = 128 };

// An access that goes along with the parallel's elements, and where in the tensor as one row it begins.
typedef struct run {
  tl_op *access;
  tl_affine base;
} run;

typedef struct flattening {
  tl_pass_context *context;
  tl_op *parallel;
  const tl_value *row, *column;
  int64_t rows, columns;
  TL_VEC(run) runs;
  size_t stores, others;  // of them, and accesses that are none
  int64_t vec;            // elements that all of them can move at once
  bool fits;
} flattening;

// The place of the access in the tensor as one row, but for the element's number in the parallel: the sum of what its
// subscripts add to the loop's own.
static tl_affine run_base(const flattening *self, const tl_op *access) {
  const tl_value *buffer = tl_element_buffer(access);
  tl_affine base = {.valid = true};
  for (int32_t d = 0; d < buffer->type->rank - 1; d++) {
    int64_t stride;
    tl_value *value = tl_op_group_at(buffer->def, TL_GROUP_TENSOR_strides, (uint32_t)d);
    tl_affine index = tl_affine_of(tl_element_index(access, (uint32_t)d));
    if (!tl_value_const_int(value, &stride) || !index.valid) return (tl_affine){0};
    for (int32_t i = 0; i < index.num_terms; i++)
      if (__builtin_mul_overflow(index.terms[i].coefficient, stride, &index.terms[i].coefficient))
        return (tl_affine){0};
    if (__builtin_mul_overflow(index.constant, stride, &index.constant)) return (tl_affine){0};
    base = tl_affine_add(&base, &index);
    if (!base.valid) return base;
  }
  // The row's own term is part of the element's number.
  int32_t len = 0;
  for (int32_t i = 0; i < base.num_terms; i++)
    if (base.terms[i].symbol != self->row) base.terms[len++] = base.terms[i];
  base.num_terms = len;
  return base;
}

static bool depends(const flattening *self, tl_value *index) {
  tl_affine form = tl_affine_of(index);
  if (!form.valid) return true;
  for (int32_t i = 0; i < form.num_terms; i++) {
    const tl_value *symbol = form.terms[i].symbol;
    if (tl_op_is_inside(symbol->def ? symbol->def : symbol->block->parent, self->parallel) && symbol != self->row &&
        symbol->block != self->parallel->regions[0])
      return true;
    if (symbol == self->column) return true;
  }
  return false;
}

// Whether the access takes element (row, column) of whole rows that follow each other.
static bool is_run(const flattening *self, const tl_op *access) {
  tl_value *buffer = tl_element_buffer(access);
  int32_t rank = buffer->type->rank;
  if (!tl_buffer_is_global(buffer) || rank < 2 || !tl_rows_are_dense(buffer)) return false;
  if (tl_element_index(access, (uint32_t)rank - 1) != self->column || buffer->type->dims[rank - 1] != self->columns)
    return false;
  // Bounds of rows are those of the run in the outermost dim only.
  for (int32_t d = 1; d < rank; d++)
    if (tl_element_check(access, d) != 0) return false;
  for (int32_t d = 0; d < rank - 1; d++) {
    tl_affine index = tl_affine_of(tl_element_index(access, (uint32_t)d));
    if (!index.valid || depends(self, tl_element_index(access, (uint32_t)d))) return false;
    if (tl_affine_coefficient(&index, self->row) != (d == rank - 2 ? 1 : 0)) return false;
  }
  return run_base(self, access).valid;
}

static void look_at(tl_op *op, void *user) {
  flattening *self = user;
  bool is_element = op->code == TL_OP_LOAD || op->code == TL_OP_STORE;
  bool is_plain = is_element || op->code == TL_OP_IF || op->code == TL_OP_YIELD;
  if (op == self->parallel) return;
  self->fits &= is_plain || ((tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) && op->code != TL_OP_EXTRACT);
  if (!is_element) return;
  const tl_value *buffer = tl_element_buffer(op);
  int bits = tl_dtype_bits(buffer->type->dtype);
  self->fits &= buffer->type->scope != TL_SCOPE_LOCAL && bits >= 8;
  if (!self->fits || !is_run(self, op)) {
    self->others++;
    return;
  }
  tl_affine base = run_base(self, op);
  int64_t vec = tl_common_divisor(VECTOR_BITS / bits, tl_buffer_align(buffer) * 8 / bits);
  vec = tl_common_divisor(vec, tl_affine_divisor(&base));
  self->vec = tl_common_divisor(self->vec, vec);
  tl_vec_push(&self->runs, ((run){op, base}));
  self->stores += op->code == TL_OP_STORE;
}

// ---- the rewrite

// Body and uses of the indices go to a parallel over elements.
static tl_op *move_body(flattening *self, tl_builder *builder) {
  tl_module *module = self->context->module;
  tl_block *body = self->parallel->regions[0];
  const int64_t extent = self->rows * self->columns;
  tl_op *flat = tl_build(builder, TL_OP_PARALLEL, NULL, NULL, 0);
  tl_op_set_ints(module, flat, TL_ATTR_EXTENTS, &extent, 1);
  tl_value *element = tl_block_add_arg(module, flat->regions[0], body->args[0]->type, "e");
  tl_builder inner;
  tl_builder_at_end(&inner, module, flat->regions[0]);
  inner.loc = self->parallel->loc;
  tl_value *columns = tl_build_index(&inner, self->columns);
  tl_value *row = tl_index_floordiv(&inner, element, columns), *column = tl_index_mod(&inner, element, columns);
  tl_value_replace_uses(body->args[0], row);
  tl_value_replace_uses(body->args[1], column);
  while (body->first) tl_op_move_to_end(body->first, flat->regions[0]);
  return flat;
}

static void set_run(flattening *self, const run *found, tl_builder *outside, tl_op *flat) {
  tl_module *module = self->context->module;
  tl_op *access = found->access;
  bool is_load = access->code == TL_OP_LOAD;
  const int64_t check = tl_element_check(access, 0);
  tl_value *view = tl_rows_as_one(self->context, tl_element_buffer(access));
  tl_value *base = tl_affine_build(outside, &found->base);
  tl_builder builder;
  tl_builder_before(&builder, module, access);
  tl_value *place = tl_index_add(&builder, base, flat->regions[0]->args[0]);
  tl_op_set_group(module, access, is_load ? TL_GROUP_LOAD_buffer : TL_GROUP_STORE_buffer, &view, 1);
  tl_op_set_group(module, access, is_load ? TL_GROUP_LOAD_index : TL_GROUP_STORE_index, &place, 1);
  tl_op_set_ints(module, access, TL_ATTR_CHECK, &check, 1);
}

void tl_rows_flatten(tl_pass_context *context, tl_op *parallel) {
  int32_t rank = 0;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &rank);
  if (rank != 2 || parallel->num_results > 0 || tl_op_has(parallel, TL_ATTR_ASYNC) || tl_op_has(parallel, TL_ATTR_VIA))
    return;
  flattening self = {.context = context, .parallel = parallel, .rows = extents[0], .columns = extents[1], .fits = true};
  self.row = parallel->regions[0]->args[0];
  self.column = parallel->regions[0]->args[1];
  if (self.columns > INT32_MAX / self.rows) return;
  self.vec = self.rows * self.columns;
  tl_walk(parallel, look_at, &self);
  int64_t before = self.columns & -self.columns;
  if (self.fits && self.stores > 0 && self.others <= self.runs.len && self.vec >= 2 * before) {
    tl_builder builder;
    tl_builder_before(&builder, context->module, parallel);
    builder.loc = parallel->loc;
    tl_op *flat = move_body(&self, &builder);
    tl_builder_before(&builder, context->module, flat);
    for (size_t i = 0; i < self.runs.len; i++) set_run(&self, &self.runs.items[i], &builder, flat);
    tl_diag_report(context->diags, TL_DIAG_REMARK_RUN, parallel->loc,
                   "rows of %lld elements are one run, in vectors of %lld", (long long)self.columns,
                   (long long)self.vec);
    tl_op_erase(parallel);
  }
  tl_vec_fini(&self.runs);
}
