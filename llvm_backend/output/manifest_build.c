// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The manifest of a lowered kernel: parameters, conditions and grid as expressions of the dynamic names.
#include <stdio.h>
#include <string.h>

#include "llvm_backend/lower/kernel/grid.h"
#include "llvm_backend/output/backend_internal.h"

#define TL_MAX_EXPR_BYTES 65536

typedef struct tl_expr_writer {
  tl_strbuf text;
  const tl_op *failed;  // op that has no text
} tl_expr_writer;

static void write_value(tl_expr_writer *w, const tl_value *value);

static void write_infix(tl_expr_writer *w, const tl_op *op, const char *sign) {
  tl_strbuf_append_char(&w->text, '(');
  write_value(w, tl_op_operand(op, 0));
  tl_strbuf_appendf(&w->text, " %s ", sign);
  write_value(w, tl_op_operand(op, 1));
  tl_strbuf_append_char(&w->text, ')');
}

static void write_call(tl_expr_writer *w, const tl_op *op, const char *name) {
  tl_strbuf_appendf(&w->text, "%s(", name);
  for (uint32_t i = 0; i < op->num_operands; i++) {
    if (i > 0) tl_strbuf_append_c(&w->text, ", ");
    write_value(w, tl_op_operand(op, i));
  }
  tl_strbuf_append_char(&w->text, ')');
}

static void write_prefix(tl_expr_writer *w, const tl_op *op, const char *sign) {
  tl_strbuf_appendf(&w->text, "(%s", sign);
  write_value(w, tl_op_operand(op, 0));
  tl_strbuf_append_char(&w->text, ')');
}

static const char *compare_sign(int64_t pred) {
  switch ((tl_ir_enum_CMP)pred) {
    case TL_CMP_EQ:
      return "==";
    case TL_CMP_NE:
      return "!=";
    case TL_CMP_LT:
      return "<";
    case TL_CMP_LE:
      return "<=";
    case TL_CMP_GT:
      return ">";
    case TL_CMP_GE:
      return ">=";
    case TL_CMP_COUNT:
      break;
  }
  return "==";
}

static void write_op(tl_expr_writer *w, const tl_op *op) {
  const tl_attr *constant;
  switch (op->code) {
    case TL_OP_CONST:
      constant = tl_op_attr(op, TL_ATTR_VALUE);
      tl_strbuf_appendf(&w->text, constant->v.i < 0 ? "(%lld)" : "%lld", (long long)constant->v.i);
      return;
    case TL_OP_DYN_PARAM:
      tl_strbuf_append_c(&w->text, tl_op_str(op, TL_ATTR_NAME));
      return;
    case TL_OP_ADD:
      write_infix(w, op, "+");
      return;
    case TL_OP_SUB:
      write_infix(w, op, "-");
      return;
    case TL_OP_MUL:
      write_infix(w, op, "*");
      return;
    case TL_OP_FLOORDIV:
      write_infix(w, op, "//");
      return;
    case TL_OP_MOD:
      write_infix(w, op, "%");
      return;
    case TL_OP_AND:
      write_infix(w, op, "and");
      return;
    case TL_OP_OR:
      write_infix(w, op, "or");
      return;
    case TL_OP_CMP:
      write_infix(w, op, compare_sign(tl_op_int(op, TL_ATTR_CMP, 0)));
      return;
    case TL_OP_MIN:
      write_call(w, op, "min");
      return;
    case TL_OP_MAX:
      write_call(w, op, "max");
      return;
    case TL_OP_NEG:
      write_prefix(w, op, "-");
      return;
    case TL_OP_NOT:
      write_prefix(w, op, "not ");
      return;
    case TL_OP_CAST:
    case TL_OP_ASSUME:
    case TL_OP_LAUNCHED:
      write_value(w, tl_op_operand(op, 0));
      return;
    default:
      break;
  }
  w->failed = op;
}

static void write_value(tl_expr_writer *w, const tl_value *value) {
  if (w->failed || w->text.len > TL_MAX_EXPR_BYTES) return;
  if (value->def) write_op(w, value->def);
}

tl_status tl_backend_to_expr(tl_backend *backend, tl_lower *l, tl_op *op, const tl_value *value, const tl_mexpr **out) {
  int64_t constant;
  if (tl_value_const_int(value, &constant)) {
    *out = tl_mexpr_int(&backend->arena, constant);
    return TL_OK;
  }
  tl_expr_writer w = {0};
  write_value(&w, value);
  tl_status status = TL_OK;
  if (w.failed || w.text.len == 0 || w.text.len > TL_MAX_EXPR_BYTES) {
    tl_diag_report(l->diags, TL_DIAG_BACKEND_UNSUPPORTED, op->loc,
                   "the launcher cannot compute this: '%s' of run-time values has no manifest expression",
                   w.failed ? tl_op_info_of(w.failed->code)->name : "a very long expression");
    status = tl_status_make(TL_STATUS_DIAGNOSTICS, "the manifest cannot be written");
  } else {
    status = tl_mexpr_parse(&backend->arena, tl_strbuf_view(&w.text), out);
  }
  tl_strbuf_fini(&w.text);
  return status;
}

static const char *copied(tl_backend *backend, const char *text) {
  return text ? tl_arena_copy_bytes(&backend->arena, text, strlen(text)) : NULL;
}

static tl_status tensor_param(tl_backend *backend, tl_lower *l, tl_op *op, tl_manifest_param *param) {
  const tl_type *type = tl_op_result(op, 0)->type;
  param->kind = TL_MPARAM_TENSOR;
  param->rank = type->rank;
  param->access = (int)tl_op_int(op, TL_ATTR_ACCESS, TL_ACCESS_IN);
  param->align = tl_op_int(op, TL_ATTR_ALIGN, 16);
  param->is_optional = tl_op_has(op, TL_ATTR_OPTIONAL);
  param->dims = TL_NEW_ARRAY(&backend->arena, const tl_mexpr *, type->rank + 1);
  param->strides = TL_NEW_ARRAY(&backend->arena, const tl_mexpr *, type->rank + 1);
  for (int32_t d = 0; d < type->rank; d++) {
    TL_TRY(tl_backend_to_expr(backend, l, op, tl_op_group_at(op, TL_GROUP_TENSOR_dims, (uint32_t)d), &param->dims[d]));
    TL_TRY(tl_backend_to_expr(backend, l, op, tl_op_group_at(op, TL_GROUP_TENSOR_strides, (uint32_t)d),
                              &param->strides[d]));
  }
  return TL_OK;
}

static tl_status make_params(tl_backend *backend, tl_lower *l, tl_manifest_kernel *kernel) {
  tl_kernel_params params;
  tl_lower_collect_params(l, &params);
  uint32_t queue = (uint32_t)(params.args.len + params.dynamics.len + params.maps.len);
  kernel->num_params = queue + (params.queue ? 1 : 0);
  kernel->params = TL_NEW_ARRAY(&backend->arena, tl_manifest_param, kernel->num_params + 1);
  tl_status status = TL_OK;
  for (size_t i = 0; i < params.args.len && !status; i++) {
    tl_op *op = params.args.items[i];
    tl_manifest_param *param = &kernel->params[i];
    param->name = copied(backend, tl_op_str(op, TL_ATTR_NAME));
    param->dtype = tl_op_result(op, 0)->type->dtype;
    param->kind = TL_MPARAM_SCALAR;
    if (op->code == TL_OP_TENSOR) status = tensor_param(backend, l, op, param);
  }
  for (size_t i = 0; i < params.maps.len && !status; i++)
    status = tl_backend_make_map(backend, l, params.maps.items[i], kernel,
                                 (uint32_t)(params.args.len + params.dynamics.len + i));
  for (size_t i = 0; i < params.dynamics.len; i++) {
    tl_manifest_param *param = &kernel->params[params.args.len + i];
    param->kind = TL_MPARAM_DYNAMIC;
    param->name = copied(backend, tl_op_str(params.dynamics.items[i], TL_ATTR_NAME));
    param->dtype = tl_op_has(params.dynamics.items[i], TL_ATTR_WIDE) ? TL_DTYPE_I64 : TL_DTYPE_I32;
    param->divisor = tl_op_int(params.dynamics.items[i], TL_ATTR_DIVISOR, 1);
  }
  if (params.queue) {
    enum { COUNTER_BYTES = 8 };
    kernel->params[queue] = (tl_manifest_param){.kind = TL_MPARAM_WORKSPACE,
                                                .name = copied(backend, tl_op_str(params.queue, TL_ATTR_NAME)),
                                                .divisor = 1,
                                                .bytes = tl_mexpr_int(&backend->arena, COUNTER_BYTES),
                                                .zero_each_launch = true};
  }
  tl_kernel_params_fini(&params);
  return status;
}

static tl_status make_requires(tl_backend *backend, tl_lower *l, tl_manifest_kernel *kernel) {
  uint32_t n = 0;
  for (tl_op *op = l->kernel->regions[0]->first; op; op = op->next) n += op->code == TL_OP_REQUIRE;
  kernel->requires_ = TL_NEW_ARRAY(&backend->arena, tl_manifest_require, n + 1);
  for (tl_op *op = l->kernel->regions[0]->first; op; op = op->next) {
    int64_t constant;
    if (op->code != TL_OP_REQUIRE) continue;
    tl_value *condition = tl_op_arg(op, TL_GROUP_REQUIRE_condition);
    if (tl_value_const_int(condition, &constant) && constant) continue;
    tl_manifest_require *require = &kernel->requires_[kernel->num_requires++];
    require->text = copied(backend, tl_op_str(op, TL_ATTR_TEXT));
    TL_TRY(tl_backend_to_expr(backend, l, op, condition, &require->condition));
  }
  return TL_OK;
}

// The product of all extents, for a folded grid.
static tl_status folded_extent(tl_backend *backend, tl_lower *l, tl_op *grid, const tl_mexpr **out) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_status status = TL_OK;
  uint32_t rank = tl_op_group_len(grid, TL_GROUP_GRID_extents);
  for (uint32_t d = 0; d < rank && !status; d++) {
    const tl_mexpr *extent = NULL;
    status = tl_backend_to_expr(backend, l, grid, tl_op_group_at(grid, TL_GROUP_GRID_extents, d), &extent);
    if (status) break;
    tl_strbuf_append_c(&text, d > 0 ? " * (" : "(");
    tl_mexpr_print(extent, &text);
    tl_strbuf_append_char(&text, ')');
  }
  if (!status) status = tl_mexpr_parse(&backend->arena, tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
  int64_t product = 1, extent;
  for (uint32_t d = 0; d < rank && !status; d++) {
    if (!tl_value_const_int(tl_op_group_at(grid, TL_GROUP_GRID_extents, d), &extent)) return TL_OK;
    product *= extent;
  }
  if (!status) *out = tl_mexpr_int(&backend->arena, product);
  return status;
}

// Blocks of a persistent kernel: as many as fit, not more than there are tiles.
static tl_status resident_extent(tl_backend *backend, const tl_mexpr *tiles, const tl_mexpr **out) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, "min(");
  tl_mexpr_print(tiles, &text);
  tl_strbuf_append_c(&text, ", resident_blocks)");
  tl_status status = tl_mexpr_parse(&backend->arena, tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
  return status;
}

static tl_status make_grid(tl_backend *backend, tl_lower *l, tl_manifest_kernel *kernel) {
  for (int i = 0; i < 3; i++) kernel->grid[i] = tl_mexpr_int(&backend->arena, 1);
  for (tl_op *op = l->kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_GRID) continue;
    if (kernel->persistent) {
      const tl_mexpr *tiles = NULL;
      TL_TRY(folded_extent(backend, l, op, &tiles));
      return resident_extent(backend, tiles, &kernel->grid[0]);
    }
    if (tl_grid_folds(op)) return folded_extent(backend, l, op, &kernel->grid[0]);
    for (uint32_t d = 0; d < tl_op_group_len(op, TL_GROUP_GRID_extents); d++)
      TL_TRY(tl_backend_to_expr(backend, l, op, tl_op_group_at(op, TL_GROUP_GRID_extents, d), &kernel->grid[d]));
  }
  return TL_OK;
}

tl_status tl_backend_make_manifest(tl_backend *backend, tl_lower *l) {
  tl_manifest *manifest = &backend->manifest;
  const char *name = tl_kernel_entry_name(&backend->arena, l->kernel);
  manifest->arena = &backend->arena;
  manifest->abi = TL_MANIFEST_ABI;
  manifest->generator = "tl-llc " TL_VERSION;
  manifest->target = l->session->target->name;
  manifest->num_kernels = 1;
  manifest->kernels = TL_NEW(&backend->arena, tl_manifest_kernel);
  tl_manifest_kernel *kernel = manifest->kernels;
  kernel->name = copied(backend, name);
  kernel->doc = "";
  kernel->math_threads = tl_op_threads(l->kernel);
  kernel->block_threads = tl_kernel_block_threads(l->kernel);
  kernel->persistent = l->persistent;
  kernel->dynamic_shared_bytes = tl_op_int(l->kernel, TL_ATTR_SHARED_BYTES, 0);
  for (int i = 0; i < 3; i++) kernel->cluster[i] = 1;
  kernel->cluster[0] = (int32_t)tl_kernel_cluster_blocks(l->kernel);
  TL_TRY(make_params(backend, l, kernel));
  TL_TRY(make_requires(backend, l, kernel));
  return make_grid(backend, l, kernel);
}
