// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The document's head: dynamic params, lets, requires, args, views, grid and tiles.
#include "frontend/elaborate/instantiate_internal.h"

static const int64_t max_dim = TL_WIDE_MAX;                // elements
static const int64_t max_tensor_bytes = (int64_t)1 << 47;  // exclusive
static const int64_t max_shared_bytes = INT32_MAX;  // the target's own limit is checked when shared memory is planned
static const int64_t max_local_bytes = INT64_C(64) << 10;  // of each thread

static void emit_dyn_param(tl_sema *sema, const tl_param *param, tl_symbol *symbol) {
  int64_t divisor = 1;
  if (param->divisor && tl_sema_const_int(sema, param->divisor, "the divisor of a dynamic param", &divisor) &&
      (divisor < 1 || divisor > INT32_MAX)) {
    tl_diag_report(sema->diags, TL_DIAG_DIM_RANGE, param->divisor->loc, "the divisor of a dynamic param is at least 1");
    divisor = 1;
  }
  sema->builder.loc = param->loc;
  const tl_type *type = tl_type_index(sema->module);
  tl_op *op = tl_build(&sema->builder, TL_OP_DYN_PARAM, NULL, &type, 1);
  tl_op_set_str(sema->module, op, TL_ATTR_NAME, param->name);
  // A 1 says that there is no aligned version for its sake.
  if (param->divisor) tl_op_set_int(sema->module, op, TL_ATTR_DIVISOR, divisor);
  if (param->is_wide) tl_op_set_unit(sema->module, op, TL_ATTR_WIDE);
  symbol->value = tl_op_result(op, 0);
  symbol->value->name = tl_module_intern(sema->module, param->name);
}

// A let that depends on dynamic params: computed once, at the head of the kernel.
static void emit_dynamic_let(tl_sema *sema, const tl_named_expr *let, tl_symbol *symbol) {
  sema->launch_only = true;
  tl_sema_value value = tl_sema_expr(sema, let->value);
  sema->launch_only = false;
  symbol->value = value.value;
  symbol->constant = value.constant;
  if (symbol->value && !symbol->value->name) symbol->value->name = tl_module_intern(sema->module, let->name);
  symbol->kind = value.kind == TL_SEMA_VALUE   ? TL_SYMBOL_VALUE
                 : value.kind == TL_SEMA_CONST ? TL_SYMBOL_CONST
                                               : TL_SYMBOL_POISON;
}

// Defines the params and lets. Entries of the environment stand in the order of the spec; a refused one has none.
static void define_env(tl_sema *sema, const bool *poisoned) {
  const tl_kernel_spec *kernel = sema->kernel;
  uint32_t param = 0, let = 0;
  for (uint32_t i = 0; i < sema->env->len; ++i) {
    const tl_env_entry *entry = &sema->env->entries[i];
    while (param < kernel->num_params && !tl_str_equal(kernel->params[param].name, entry->name)) ++param;
    bool is_param = param < kernel->num_params;
    while (!is_param && let < kernel->num_lets && !tl_str_equal(kernel->lets[let].name, entry->name)) ++let;
    tl_loc loc = is_param ? kernel->params[param].loc : kernel->lets[let].loc;
    tl_symbol *symbol = tl_sema_define(sema, entry->name, loc, is_param ? TL_ROLE_PARAM : TL_ROLE_LET, TL_SYMBOL_CONST);
    if (!symbol) continue;
    symbol->constant = entry->value;
    if (poisoned[i]) {
      symbol->kind = TL_SYMBOL_POISON;
    } else if (entry->value.kind == TL_CONST_DYNAMIC) {
      symbol->kind = TL_SYMBOL_VALUE;
      symbol->at_launch = true;
      if (is_param) {
        emit_dyn_param(sema, &kernel->params[param], symbol);
      } else {
        emit_dynamic_let(sema, &kernel->lets[let], symbol);
      }
    }
    if (is_param) {
      ++param;
    } else {
      ++let;
    }
  }
}

static void emit_requires(tl_sema *sema) {
  if (sema->kernel->num_requires) tl_instantiate_as_launched(sema, true);
  for (uint32_t i = 0; i < sema->kernel->num_requires; ++i) {
    const tl_expr *expr = sema->kernel->requires_[i];
    sema->launch_only = true;
    tl_sema_value condition = tl_sema_condition(sema, expr);
    sema->launch_only = false;
    if (condition.kind == TL_SEMA_POISON) continue;
    const char *text = tl_sema_expr_text(sema, expr);
    if (condition.kind == TL_SEMA_CONST) {
      if (condition.constant.i) continue;
      tl_diag_report(sema->diags, TL_DIAG_REQUIREMENT, expr->loc, "kernel `%.*s` requires `%s`, which is false here",
                     TL_STR_ARG(sema->kernel->name), text);
      continue;
    }
    sema->builder.loc = expr->loc;
    tl_group group = TL_GROUP_OF(condition.value);
    tl_op *op = tl_build(&sema->builder, TL_OP_REQUIRE, &group, NULL, 0);
    tl_op_set_str(sema->module, op, TL_ATTR_TEXT, tl_str_from(text));
    tl_instantiate_requirement(sema, condition.value);
  }
  tl_instantiate_as_launched(sema, false);
}

// A dim of a tensor as index value and as type dim (-1 when dynamic).
static bool tensor_dim(tl_sema *sema, const tl_expr *expr, tl_value **out_value, int64_t *out_dim) {
  sema->launch_only = true;
  tl_value *value = tl_sema_index(sema, expr);
  sema->launch_only = false;
  *out_value = value;
  *out_dim = -1;
  if (!value) return false;
  int64_t dim;
  if (!tl_value_const_int(value, &dim)) return true;
  *out_dim = dim;
  if (dim >= 0 && dim <= max_dim) return true;
  tl_diag_report(sema->diags, TL_DIAG_DIM_RANGE, expr->loc, "a dim is 0 to 2^47 - 1, `%s` is %lld",
                 tl_sema_expr_text(sema, expr), (long long)dim);
  return false;
}

static bool dims_of(tl_sema *sema, tl_expr *const *exprs, uint32_t num_dims, tl_loc loc, tl_value **values,
                    int64_t *dims) {
  if (num_dims > TL_MAX_RANK) {
    tl_diag_report(sema->diags, TL_DIAG_DIM_RANGE, loc, "at most %d dims are possible, these are %u", TL_MAX_RANK,
                   num_dims);
    return false;
  }
  bool ok = true;
  for (uint32_t i = 0; i < num_dims; ++i) ok = tensor_dim(sema, exprs[i], &values[i], &dims[i]) && ok;
  return ok;
}

// Elements when every dim is constant, -1 when one is not, -2 when the product leaves int64.
static int64_t count_elements(const int64_t *dims, int32_t rank) {
  int64_t count = 1;
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return -1;
    if (__builtin_mul_overflow(count, dims[i], &count)) return -2;
  }
  return count;
}

static bool validate_bytes(tl_sema *sema, tl_str name, tl_dtype dtype, const int64_t *dims, int32_t rank, int64_t limit,
                           const char *limit_text, tl_loc loc) {
  int64_t known[TL_MAX_RANK] = {0};  // a dynamic dim may be 1
  for (int32_t i = 0; i < rank; ++i) known[i] = dims[i] < 0 ? 1 : dims[i];
  int64_t count = count_elements(known, rank);
  if (count >= 0 && count <= max_tensor_bytes && tl_dtype_bytes(dtype, (uint64_t)count) <= (uint64_t)limit) return true;
  tl_diag_report(sema->diags, TL_DIAG_TENSOR_SIZE, loc, "`%.*s` of %s %s is too large: the limit is %s bytes",
                 TL_STR_ARG(name), tl_dtype_name(dtype), tl_sema_shape_text(sema->arena, dims, rank), limit_text);
  return false;
}

static bool strides_of(tl_sema *sema, const tl_arg *arg, tl_value *const *dims, int32_t rank, tl_value **strides) {
  if (!arg->num_strides) {
    tl_value *stride = tl_build_index(&sema->builder, 1);
    for (int32_t i = rank; i-- > 0;) {
      strides[i] = stride;
      if (i > 0) stride = tl_index_mul(&sema->builder, stride, dims[i]);
    }
    return true;
  }
  if ((int64_t)arg->num_strides != rank) {
    tl_diag_report(sema->diags, TL_DIAG_STRIDES, arg->type_loc, "`%.*s` has %d dims but %u strides",
                   TL_STR_ARG(arg->name), (int)rank, arg->num_strides);
    return false;
  }
  bool ok = true;
  for (int32_t i = 0; i < rank; ++i) {
    sema->launch_only = true;
    strides[i] = tl_sema_index(sema, arg->strides[i]);
    sema->launch_only = false;
    int64_t stride;
    if (strides[i] && tl_value_const_int(strides[i], &stride) && (stride < 0 || stride >= max_tensor_bytes)) {
      tl_diag_report(sema->diags, TL_DIAG_STRIDES, arg->strides[i]->loc, "a stride is 0 to 2^47 elements, not %lld",
                     (long long)stride);
      ok = false;
    }
    ok = ok && strides[i];
  }
  return ok;
}

static int64_t align_of(tl_sema *sema, const tl_arg *arg, tl_dtype dtype) {
  enum { DEFAULT_ALIGN = 16, MAX_ALIGN = 4096 };
  int64_t align = DEFAULT_ALIGN, element = (tl_dtype_bits(dtype) + 7) / 8;
  if (!arg->align || !tl_sema_const_int(sema, arg->align, "an alignment", &align)) return DEFAULT_ALIGN;
  if (align >= element && align <= MAX_ALIGN && (align & (align - 1)) == 0) return align;
  tl_diag_report(sema->diags, TL_DIAG_ALIGN, arg->align->loc,
                 "an alignment is a power of two from %lld to %d bytes, not %lld", (long long)element, MAX_ALIGN,
                 (long long)align);
  return DEFAULT_ALIGN;
}

static void emit_scalar_arg(tl_sema *sema, const tl_arg *arg, uint32_t position) {
  tl_symbol *symbol = tl_sema_define(sema, arg->name, arg->loc, TL_ROLE_ARG, TL_SYMBOL_POISON);
  tl_dtype dtype;
  if (!tl_sema_dtype(sema, arg->dtype, &dtype) || !symbol) return;
  if (arg->access != TL_ARG_IN) {
    tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, arg->type_loc,
                   "the scalar argument `%.*s` is passed by value and cannot be written", TL_STR_ARG(arg->name));
    return;
  }
  sema->builder.loc = arg->loc;
  const tl_type *type = tl_type_scalar(sema->module, dtype);
  tl_op *op = tl_build(&sema->builder, TL_OP_SCALAR_ARG, NULL, &type, 1);
  tl_op_set_str(sema->module, op, TL_ATTR_NAME, arg->name);
  tl_op_set_int(sema->module, op, TL_ATTR_ARG, position);
  symbol->kind = TL_SYMBOL_VALUE;
  symbol->value = tl_op_result(op, 0);
  symbol->value->name = tl_module_intern(sema->module, arg->name);
}

static void emit_tensor(tl_sema *sema, const tl_arg *arg, uint32_t position) {
  tl_symbol *symbol = tl_sema_define(sema, arg->name, arg->loc, TL_ROLE_ARG, TL_SYMBOL_POISON);
  tl_dtype dtype;
  tl_value *dims[TL_MAX_RANK], *strides[TL_MAX_RANK];
  int64_t sizes[TL_MAX_RANK];
  int32_t rank = (int32_t)arg->num_dims;
  bool ok = tl_sema_dtype(sema, arg->dtype, &dtype);
  sema->builder.loc = arg->loc;
  ok = dims_of(sema, arg->dims, arg->num_dims, arg->type_loc, dims, sizes) && ok;
  if (!ok || !symbol) return;
  sema->builder.loc = arg->loc;
  ok = validate_bytes(sema, arg->name, dtype, sizes, rank, max_tensor_bytes - 1, "2^47 - 1", arg->type_loc);
  ok = ok && strides_of(sema, arg, dims, rank, strides);
  if (!ok) return;
  int64_t align = align_of(sema, arg, dtype);
  sema->builder.loc = arg->loc;
  const tl_type *type = tl_type_buffer(sema->module, TL_SCOPE_GLOBAL, dtype, sizes, rank);
  tl_group groups[2] = {{dims, (uint32_t)rank}, {strides, (uint32_t)rank}};
  tl_op *op = tl_build(&sema->builder, TL_OP_TENSOR, groups, &type, 1);
  int access = arg->access == TL_ARG_IN ? TL_ACCESS_IN : arg->access == TL_ARG_OUT ? TL_ACCESS_OUT : TL_ACCESS_INOUT;
  tl_op_set_str(sema->module, op, TL_ATTR_NAME, arg->name);
  tl_op_set_int(sema->module, op, TL_ATTR_ARG, position);
  tl_op_set_int(sema->module, op, TL_ATTR_ACCESS, access);
  tl_op_set_int(sema->module, op, TL_ATTR_ALIGN, align);
  symbol->kind = TL_SYMBOL_BUFFER;
  symbol->value = tl_op_result(op, 0);
  symbol->value->name = tl_module_intern(sema->module, arg->name);
  symbol->is_dense = arg->num_strides == 0;
  symbol->is_optional = arg->is_optional;
  if (arg->is_optional) tl_op_set_unit(sema->module, op, TL_ATTR_OPTIONAL);
  symbol->access = access;
  for (int32_t i = 0; i < rank; ++i) symbol->dims[i] = dims[i];
}

// Sizes in bytes must agree where both are constant.
static bool validate_view_size(tl_sema *sema, const tl_view *view, const tl_symbol *base, tl_dtype dtype,
                               const int64_t *sizes) {
  const tl_type *type = base->value->type;
  int64_t base_count = count_elements(type->dims, type->rank);
  int64_t count = count_elements(sizes, (int32_t)view->num_dims);
  if (base_count < 0 || count == -1) return true;
  if (count >= 0 && tl_dtype_bytes(dtype, (uint64_t)count) == tl_dtype_bytes(type->dtype, (uint64_t)base_count)) {
    return true;
  }
  tl_diag_report(sema->diags, TL_DIAG_VIEW_SIZE, view->loc, "the view is %s %s, but `%.*s` is %s %s of another size",
                 tl_dtype_name(dtype), tl_sema_shape_text(sema->arena, sizes, (int32_t)view->num_dims),
                 TL_STR_ARG(view->base), tl_dtype_name(type->dtype), tl_sema_buffer_shape(sema, base));
  return false;
}

// `view: t = X[s]`: one of the tiles that X stands for.
static void emit_stage(tl_sema *sema, const tl_view *view, const tl_stmt *stmt) {
  tl_symbol *base = tl_sema_lookup(sema, view->base, view->base_loc);
  tl_value *stage = tl_sema_index(sema, view->stage);
  tl_symbol *symbol = tl_sema_define(sema, view->name, view->loc, TL_ROLE_VIEW, TL_SYMBOL_POISON);
  if (!base || !stage || !symbol || base->kind == TL_SYMBOL_POISON) return;
  if (base->kind != TL_SYMBOL_TILES) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_VIEW_BASE, view->base_loc,
                                   "`%.*s` is %s, not several tiles: `%.*s[…]` is no tile of it",
                                   TL_STR_ARG(view->base), tl_symbol_a_role(base->role), TL_STR_ARG(view->base));
    tl_diag_add_note(sema->diags, diag, base->loc, "declared here; `stages(n)` behind its type makes n tiles of it");
    return;
  }
  int64_t count = tl_op_int(base->value->def, TL_ATTR_DEPTH, 1);
  if (!tl_instantiate_validate_stage(sema, base, stage, count, view->stage->loc)) return;
  int32_t across;
  tl_value *peer = NULL;
  if (!tl_instantiate_peer(sema, stmt, &across, &peer)) return;
  sema->builder.loc = view->loc;
  tl_group groups[] = {TL_GROUP_OF(base->value), TL_GROUP_OF(stage)};
  tl_op *op = tl_build(&sema->builder, TL_OP_STAGE_TILE, groups, &base->value->type, 1);
  if (peer) {
    tl_group places[] = {TL_GROUP_OF(tl_op_result(op, 0)), TL_GROUP_OF(peer)};
    op = tl_build(&sema->builder, TL_OP_PEER_TILE, places, &base->value->type, 1);
    tl_op_set_int(sema->module, op, TL_ATTR_ACROSS, across);
  }
  symbol->kind = TL_SYMBOL_BUFFER;
  symbol->value = tl_op_result(op, 0);
  symbol->value->name = tl_module_intern(sema->module, view->name);
}

static tl_symbol *view_base(tl_sema *sema, const tl_view *view) {
  tl_symbol *base = tl_sema_lookup(sema, view->base, view->base_loc);
  if (!base || base->kind == TL_SYMBOL_POISON || !tl_sema_validate_present(sema, base, view->base_loc)) return NULL;
  const char *problem = NULL;
  if (base->kind != TL_SYMBOL_BUFFER) {
    problem = "it is no tensor or tile";
  } else if (base->value->type->scope != TL_SCOPE_GLOBAL && base->value->type->scope != TL_SCOPE_SHARED) {
    problem = "a fragment has no bytes in memory";
  } else if (!base->is_dense) {
    problem = base->value->type->scope == TL_SCOPE_SHARED
                  ? "its layout is not dense, or an extent is known at launch only"
                  : "it has strides";
  }
  if (!problem) return base;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_VIEW_BASE, view->base_loc, "`%.*s` cannot be viewed: %s",
                                 TL_STR_ARG(view->base), problem);
  tl_diag_add_note(sema->diags, diag, base->loc, "declared here");
  if (base->kind == TL_SYMBOL_BUFFER && base->value->type->scope == TL_SCOPE_FRAGMENT)
    tl_diag_add_hint(
        sema->diags, diag,
        "which register has which element is the compiler's choice: pack elements in a `parallel`, or copy "
        "to a shared tile and view that");
  return NULL;
}

void tl_instantiate_view(tl_sema *sema, const tl_view *view, const tl_stmt *stmt) {
  if (view->stage) {
    emit_stage(sema, view, stmt);
    return;
  }
  for (uint32_t i = 0; stmt && i < stmt->num_options; i++) {
    const tl_option *option = &stmt->options[i];
    if (!tl_str_is(option->name, "cluster") && !tl_str_is(option->name, "place")) continue;
    tl_diag_report(sema->diags, TL_DIAG_CLUSTER, option->loc,
                   "what another block has is named as one of several tiles: `view: t = X[s]`");
    return;
  }
  tl_symbol *base = view_base(sema, view);
  tl_symbol *symbol = tl_sema_define(sema, view->name, view->loc, TL_ROLE_VIEW, TL_SYMBOL_POISON);
  tl_dtype dtype;
  tl_value *dims[TL_MAX_RANK];
  int64_t sizes[TL_MAX_RANK];
  bool ok = tl_sema_dtype(sema, view->dtype, &dtype);
  sema->builder.loc = view->loc;
  ok = dims_of(sema, view->dims, view->num_dims, view->loc, dims, sizes) && ok;
  if (!ok || !base || !symbol || !validate_view_size(sema, view, base, dtype, sizes)) return;
  int32_t rank = (int32_t)view->num_dims;
  int scope = base->value->type->scope;
  if (scope == TL_SCOPE_SHARED && count_elements(sizes, rank) < 0) {
    tl_diag_report(sema->diags, TL_DIAG_NOT_CONSTANT, view->loc, "the dims of a shared tile's view must be constant");
    return;
  }
  sema->builder.loc = view->loc;
  const tl_type *type = tl_type_buffer(sema->module, scope, dtype, sizes, rank);
  tl_group groups[2] = {TL_GROUP_OF(base->value), {dims, (uint32_t)rank}};
  tl_op *op = tl_build(&sema->builder, TL_OP_VIEW, groups, &type, 1);
  tl_op_set_str(sema->module, op, TL_ATTR_NAME, view->name);
  symbol->kind = TL_SYMBOL_BUFFER;
  symbol->value = tl_op_result(op, 0);
  symbol->value->name = tl_module_intern(sema->module, view->name);
  symbol->is_dense = true;
  symbol->access = base->access;
  if (scope != TL_SCOPE_GLOBAL) return;
  for (int32_t i = 0; i < rank; ++i) symbol->dims[i] = dims[i];
}

// A kernel without a grid is one block.
static void emit_single_block(tl_sema *sema) {
  sema->builder.loc = sema->kernel->loc;
  tl_value *one = tl_build_index(&sema->builder, 1);
  const tl_type *type = tl_type_index(sema->module);
  tl_group group = TL_GROUP_OF(one);
  tl_op *op = tl_build(&sema->builder, TL_OP_GRID, &group, &type, 1);
  tl_op_set_str(sema->module, op, TL_ATTR_NAMES, TL_STR("block"));
  tl_instantiate_cluster(sema, op);  // it names no index
}

// Panels change the order along two dims.
static bool validate_raster(tl_sema *sema, const tl_kernel_spec *kernel, int64_t *out_panel) {
  if (!kernel->raster_panel) return true;
  if (!tl_sema_const_int(sema, kernel->raster_panel, "rasterize.panel", out_panel)) return false;
  if (*out_panel < 1 || *out_panel > INT32_MAX) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, kernel->raster_panel->loc, "panel is at least 1, not %lld",
                   (long long)*out_panel);
    return false;
  }
  if (kernel->num_grid >= 2) return true;
  tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, kernel->raster_panel->loc,
                 "`rasterize` orders blocks along two dims of the grid, this one has %u", kernel->num_grid);
  return false;
}

static void emit_grid(tl_sema *sema) {
  const tl_kernel_spec *kernel = sema->kernel;
  int64_t panel = 0;
  bool ok = validate_raster(sema, kernel, &panel);
  if (kernel->num_grid == 0) {
    emit_single_block(sema);
    return;
  }
  tl_value **extents = TL_NEW_ARRAY(sema->arena, tl_value *, kernel->num_grid + 1);
  const tl_type **types = TL_NEW_ARRAY(sema->arena, const tl_type *, kernel->num_grid + 1);
  tl_symbol **symbols = TL_NEW_ARRAY(sema->arena, tl_symbol *, kernel->num_grid + 1);
  tl_strbuf names;
  tl_strbuf_init(&names);
  for (uint32_t i = 0; i < kernel->num_grid; ++i) {
    const tl_named_expr *dim = &kernel->grid[i];
    int64_t extent = 0;
    sema->launch_only = true;
    extents[i] = tl_sema_index(sema, dim->value);
    sema->launch_only = false;
    if (extents[i] && tl_value_const_int(extents[i], &extent) && (extent < 0 || extent > max_dim)) {
      tl_diag_report(sema->diags, TL_DIAG_DIM_RANGE, dim->value->loc, "a grid extent is 0 to 2^47 - 1, not %lld",
                     (long long)extent);
      ok = false;
    }
    ok = ok && extents[i];
    types[i] = tl_type_index(sema->module);
    tl_strbuf_appendf(&names, "%s%.*s", i ? "," : "", TL_STR_ARG(dim->name));
  }
  for (uint32_t i = 0; i < kernel->num_grid; ++i) {
    symbols[i] = tl_sema_define(sema, kernel->grid[i].name, kernel->grid[i].loc, TL_ROLE_GRID, TL_SYMBOL_POISON);
  }
  if (ok) {
    sema->builder.loc = kernel->num_grid ? kernel->grid[0].loc : kernel->loc;
    tl_group group = {extents, kernel->num_grid};
    tl_op *op = tl_build(&sema->builder, TL_OP_GRID, &group, types, kernel->num_grid);
    tl_instantiate_cluster(sema, op);
    tl_op_set_str(sema->module, op, TL_ATTR_NAMES, tl_strbuf_view(&names));
    if (panel > 0) {
      bool by_column = tl_str_is(kernel->raster_order, "column");
      tl_op_set_int(sema->module, op, TL_ATTR_PANEL, panel);
      tl_op_set_int(sema->module, op, TL_ATTR_ORDER, by_column ? TL_ORDER_COLUMN : TL_ORDER_ROW);
    }
    for (uint32_t i = 0; i < kernel->num_grid; ++i) {
      if (!symbols[i]) continue;
      symbols[i]->kind = TL_SYMBOL_VALUE;
      symbols[i]->value = tl_op_result(op, i);
      symbols[i]->value->name = tl_module_intern(sema->module, kernel->grid[i].name);
    }
  }
  tl_strbuf_fini(&names);
}

// "row", "pad(n)" in elements, "swizzle(bytes)".
static bool shared_layout(tl_sema *sema, const tl_expr *expr, const tl_type *type, tl_shared_layout *out) {
  int64_t last = type->dims[type->rank - 1];
  int64_t row_bytes = (int64_t)tl_dtype_bytes(type->dtype, (uint64_t)last), argument = 0;
  *out = (tl_shared_layout){.pitch_bytes = (int32_t)row_bytes};
  if (expr->kind == TL_EXPR_NAME && tl_str_is(expr->text, "row")) return true;
  bool is_call = expr->kind == TL_EXPR_CALL && expr->num_operands == 1 && !expr->num_keywords;
  if (is_call && !tl_sema_const_int(sema, expr->operands[0], "the argument of a layout", &argument)) return false;
  if (is_call && tl_str_is(expr->text, "pad") && argument >= 0 && argument <= 1024) {
    out->pitch_bytes = (int32_t)tl_dtype_bytes(type->dtype, (uint64_t)(last + argument));
    return true;
  }
  bool is_swizzle = is_call && tl_str_is(expr->text, "swizzle");
  if (is_swizzle && (argument == 32 || argument == 64 || argument == 128) && row_bytes % argument == 0) {
    // Rows of 128 bytes start at the same banks: each row turns its 16-byte chunks by its number; of shorter rows 2 or
    // 4 lie side by side in 128 bytes and share one turn.
    out->swizzle_mask = (int32_t)(argument / 16 - 1);
    out->swizzle_shift = argument == 128 ? 0 : argument == 64 ? 1 : 2;
    return true;
  }
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_TILE_LAYOUT, expr->loc, "`%s` is no layout of a tile with rows of %lld bytes",
                     tl_sema_expr_text(sema, expr), (long long)row_bytes);
  tl_diag_add_hint(sema->diags, diag,
                   "row, pad(n) in elements, or swizzle(32|64|128) where rows are a multiple of that");
  return false;
}

// A dim of a tile. A shared tile may have one that only the launch knows: memory is there for the largest value, and
// `out_size` is the value itself.
static bool tile_dim(tl_sema *sema, const tl_tile_decl *tile, int32_t i, int64_t *out_dim, tl_value **out_size) {
  const tl_expr *expr = tile->dims[i];
  if (tile->scope != TL_TILE_SHARED || tile->stages) {
    if (!tl_sema_const_int(sema, expr, "a tile's dim", out_dim)) return false;
  } else {
    sema->launch_only = true;
    sema->builder.loc = expr->loc;
    tl_value *size = tl_sema_index(sema, expr);
    sema->launch_only = false;
    if (!size) return false;
    if (!tl_value_const_int(size, out_dim)) {
      *out_size = size;
      *out_dim = tl_sema_most(size);
      if (*out_dim < 0) return tl_sema_report_no_maximum(sema, expr, "a tile's dim");
    }
  }
  if (*out_dim >= 1 && *out_dim <= INT32_MAX) return true;
  tl_diag_report(sema->diags, TL_DIAG_DIM_RANGE, expr->loc, "a tile's dim is 1 to 2^31 - 1, `%s` is %lld",
                 tl_sema_expr_text(sema, expr), (long long)*out_dim);
  return false;
}

static void emit_tile(tl_sema *sema, const tl_tile_decl *tile) {
  enum { MAX_STAGES = 64 };
  bool is_local = tile->scope == TL_TILE_LOCAL;
  tl_symbol *symbol =
      tl_sema_define(sema, tile->name, tile->loc, is_local ? TL_ROLE_LOCAL : TL_ROLE_TILE, TL_SYMBOL_POISON);
  tl_dtype dtype;
  int64_t dims[TL_MAX_RANK];
  bool ok = tl_sema_dtype(sema, tile->dtype, &dtype);
  if ((tile->num_dims == 0 && !is_local) || tile->num_dims > TL_MAX_RANK) {
    tl_diag_report(sema->diags, TL_DIAG_DIM_RANGE, tile->type_loc, "a tile has 1 to %d dims", TL_MAX_RANK);
    return;
  }
  int32_t rank = (int32_t)tile->num_dims;
  tl_value *sizes[TL_MAX_RANK] = {0};
  bool is_ragged = false;
  for (int32_t i = 0; i < rank; ++i) {
    ok = tile_dim(sema, tile, i, &dims[i], &sizes[i]) && ok;
    is_ragged = is_ragged || sizes[i];
  }
  int64_t most = is_local ? max_local_bytes : max_shared_bytes, stages = 1;
  if (tile->stages && !tl_sema_const_int(sema, tile->stages, "`stages`", &stages)) ok = false;
  if (ok && (stages < 1 || stages > MAX_STAGES)) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, tile->stages->loc, "`stages` is 1 to %d, not %lld", MAX_STAGES,
                   (long long)stages);
    ok = false;
  }
  if (!ok || !symbol ||
      !validate_bytes(sema, tile->name, dtype, dims, rank, most, is_local ? "65536" : "2^31 - 1", tile->type_loc)) {
    return;
  }
  sema->builder.loc = tile->loc;
  int scope = is_local ? TL_SCOPE_LOCAL : tile->scope == TL_TILE_SHARED ? TL_SCOPE_SHARED : TL_SCOPE_FRAGMENT;
  const tl_type *type = tl_type_buffer(sema->module, scope, dtype, dims, rank);
  tl_shared_layout layout = {0};
  if (tile->layout && scope == TL_SCOPE_SHARED && !shared_layout(sema, tile->layout, type, &layout)) return;
  tl_op *op = tl_build(&sema->builder, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(sema->module, op, TL_ATTR_NAME, tile->name);
  if (tile->layout && scope == TL_SCOPE_SHARED) {
    tl_op_set_shared(sema->module, op, TL_ATTR_SHARED_LAYOUT, tl_module_shared_layout(sema->module, &layout));
  }
  if (tile->stages) tl_op_set_int(sema->module, op, TL_ATTR_DEPTH, stages);
  symbol->kind = tile->stages ? TL_SYMBOL_TILES : TL_SYMBOL_BUFFER;
  if (tile->stages) symbol->role = TL_ROLE_TILES;
  symbol->value = tl_op_result(op, 0);
  symbol->value->name = tl_module_intern(sema->module, tile->name);
  for (int32_t i = 0; i < rank; ++i) symbol->dims[i] = sizes[i];
  symbol->is_dense = scope == TL_SCOPE_SHARED && !is_ragged &&
                     (!tile->layout || (tile->layout->kind == TL_EXPR_NAME && tl_str_is(tile->layout->text, "row")));
}

void tl_instantiate_head(tl_sema *sema, const bool *poisoned) {
  const tl_kernel_spec *kernel = sema->kernel;
  define_env(sema, poisoned);
  for (uint32_t i = 0; i < kernel->num_args; ++i) {
    if (kernel->args[i].is_tensor) {
      emit_tensor(sema, &kernel->args[i], i);
    } else {
      emit_scalar_arg(sema, &kernel->args[i], i);
    }
  }
  emit_requires(sema);  // after the args, so that one of their names is told from an unknown one
  tl_instantiate_assumptions(sema);
  for (uint32_t i = 0; i < kernel->num_views; ++i) tl_instantiate_view(sema, &kernel->views[i], NULL);
  emit_grid(sema);
  for (uint32_t i = 0; i < kernel->num_tiles; ++i) emit_tile(sema, &kernel->tiles[i]);
  tl_instantiate_barriers(sema);
}
