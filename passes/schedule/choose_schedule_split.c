// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Warps that share out K of a gemm: each adds up a part of the products, and the sums are added up after the loop.
//
//   for … { gemm %acc, %a, %b }   →   fill %sums, 0; for … { gemm %sums, %a, %b {warps = [1, 2, 2]} }
//                                     reduce %sums → %sum along dim 0; parallel { store load %acc + load %sum, %acc }
#include "passes/analysis/memory_access.h"
#include "passes/schedule/choose_schedule.h"

bool tl_schedule_can_split(const tl_op *gemm) {
  const tl_op *loop = tl_op_enclosing(gemm, TL_OP_FOR);
  const tl_value *acc = tl_op_arg(gemm, TL_GROUP_GEMM_acc);
  if (!loop || gemm->parent != loop->regions[0] || tl_op_has(gemm, TL_ATTR_CLEAR)) return false;
  if (acc->type->scope != TL_SCOPE_FRAGMENT || !acc->def || acc->def->code != TL_OP_ALLOC) return false;
  for (const tl_use *use = acc->uses; use; use = use->next)
    if (use->owner != gemm && tl_op_is_inside(use->owner, loop)) return false;
  return true;
}

static tl_value *build_fragment(tl_module *module, const tl_value *acc, const char *name, const int64_t *dims,
                                int32_t rank) {
  tl_builder builder;
  tl_builder_before(&builder, module, acc->def);
  const tl_type *type = tl_type_buffer(module, TL_SCOPE_FRAGMENT, acc->type->dtype, dims, rank);
  tl_op *alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(module, alloc, TL_ATTR_NAME, tl_str_from(name));
  return tl_op_result(alloc, 0);
}

static tl_value *build_load(tl_builder *builder, tl_value *buffer, tl_value *const *index, const int64_t *checks) {
  tl_group groups[] = {TL_GROUP_OF(buffer), {index, (uint32_t)buffer->type->rank}, TL_GROUP_EMPTY};
  const tl_type *type = tl_type_scalar(builder->module, buffer->type->dtype);
  tl_op *load = tl_build(builder, TL_OP_LOAD, groups, &type, 1);
  tl_op_set_ints(builder->module, load, TL_ATTR_CHECK, checks, buffer->type->rank);
  return tl_op_result(load, 0);
}

// acc += sum, element by element.
static void build_addition(tl_builder *builder, tl_value *acc, tl_value *sum) {
  static const int64_t checks[2] = {0, 0};
  tl_module *module = builder->module;
  tl_op *parallel = tl_build(builder, TL_OP_PARALLEL, NULL, NULL, 0);
  tl_op_set_ints(module, parallel, TL_ATTR_EXTENTS, acc->type->dims, 2);
  tl_value *index[2];
  for (int32_t d = 0; d < 2; d++)
    index[d] = tl_block_add_arg(module, parallel->regions[0], tl_type_index(module), d == 0 ? "i" : "j");
  tl_builder inside;
  tl_builder_at_end(&inside, module, parallel->regions[0]);
  inside.loc = builder->loc;
  tl_value *old = build_load(&inside, acc, index, checks), *more = build_load(&inside, sum, index, checks);
  tl_value *total = tl_build_binary(&inside, TL_OP_ADD, old, more);
  tl_group groups[] = {TL_GROUP_OF(total), TL_GROUP_OF(acc), {index, 2}};
  tl_op *store = tl_build(&inside, TL_OP_STORE, groups, NULL, 0);
  tl_op_set_ints(module, store, TL_ATTR_CHECK, checks, 2);
  tl_build_yield(&inside, NULL, 0);
}

void tl_schedule_split(tl_module *module, tl_op *gemm, int32_t warps_k) {
  tl_value *acc = tl_op_arg(gemm, TL_GROUP_GEMM_acc);
  tl_op *loop = tl_op_enclosing(gemm, TL_OP_FOR);
  int64_t dims[3] = {warps_k, acc->type->dims[0], acc->type->dims[1]};
  tl_value *sums = build_fragment(module, acc, "sums", dims, 3), *sum = build_fragment(module, acc, "sum", dims + 1, 2);
  tl_builder builder;
  tl_builder_before(&builder, module, loop);
  builder.loc = gemm->loc;
  tl_value *zero = tl_build_zero(&builder, acc->type->dtype);
  tl_build(&builder, TL_OP_FILL, (tl_group[]){TL_GROUP_OF(sums), TL_GROUP_OF(zero)}, NULL, 0);
  tl_op_set_group(module, gemm, TL_GROUP_GEMM_acc, &sums, 1);
  tl_builder_after(&builder, module, loop);
  builder.loc = gemm->loc;
  tl_op *reduce = tl_build(&builder, TL_OP_REDUCE, (tl_group[]){TL_GROUP_OF(sums), TL_GROUP_OF(sum)}, NULL, 0);
  tl_op_set_int(module, reduce, TL_ATTR_REDUCTION, TL_REDUCTION_SUM);
  tl_op_set_ints(module, reduce, TL_ATTR_AXES, &(int64_t){0}, 1);
  build_addition(&builder, acc, sum);
}
