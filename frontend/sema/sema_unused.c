// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Warnings for params, lets, tiles and args that nothing mentions. Mentions are counted in the text of the spec,
// dropped branches and the check and bench sections included, so that they do not depend on the values of params.
#include "frontend/sema/sema.h"

typedef struct mentions {
  tl_strmap names;
} mentions;

static void mention(mentions *m, tl_str name) {
  if (name.len && !tl_strmap_find(&m->names, name)) tl_strmap_put(&m->names, name, m);
}

static void scan_expr(mentions *m, const tl_expr *expr) {
  if (!expr) return;
  if (expr->kind == TL_EXPR_NAME) mention(m, expr->text);
  for (uint32_t i = 0; i < expr->num_operands; ++i) scan_expr(m, expr->operands[i]);
  for (uint32_t i = 0; i < expr->num_keywords; ++i) scan_expr(m, expr->keywords[i].value);
  for (uint32_t i = 0; i < expr->num_subscripts; ++i) {
    scan_expr(m, expr->subscripts[i].lo);
    scan_expr(m, expr->subscripts[i].hi);
    scan_expr(m, expr->subscripts[i].step);
  }
  for (uint32_t i = 0; i < expr->num_indices; ++i) {
    scan_expr(m, expr->indices[i].lo);
    scan_expr(m, expr->indices[i].hi);
  }
}

static void scan_exprs(mentions *m, tl_expr *const *items, uint32_t len) {
  for (uint32_t i = 0; i < len; ++i) scan_expr(m, items[i]);
}

static void scan_named(mentions *m, const tl_named_expr *items, uint32_t len) {
  for (uint32_t i = 0; i < len; ++i) scan_expr(m, items[i].value);
}

static void scan_assign(mentions *m, const tl_assign *assign) {
  scan_exprs(m, assign->targets, assign->num_targets);
  scan_expr(m, assign->value);
}

static void scan_view(mentions *m, const tl_view *view) {
  mention(m, view->base);
  scan_expr(m, view->stage);
  scan_expr(m, view->dtype);
  scan_exprs(m, view->dims, view->num_dims);
}

static void scan_stmts(mentions *m, const tl_stmt_list *list) {
  for (uint32_t i = 0; i < list->len; ++i) {
    const tl_stmt *stmt = list->items[i];
    scan_expr(m, stmt->target);
    scan_expr(m, stmt->from);
    scan_expr(m, stmt->to);
    scan_assign(m, &stmt->assign);
    scan_exprs(m, stmt->in.extents, stmt->in.num_extents);
    scan_expr(m, stmt->condition);
    scan_named(m, stmt->lets, stmt->num_lets);
    scan_view(m, &stmt->view);
    for (uint32_t k = 0; k < stmt->num_options; ++k) scan_expr(m, stmt->options[k].value);
    // What a macro does with its arguments stands in its expansion; what it ignores is used all the same.
    if (stmt->macro) scan_exprs(m, stmt->arguments, stmt->macro->num_params);
    scan_stmts(m, &stmt->body);
    scan_stmts(m, &stmt->else_body);
  }
}

static void scan_reference(mentions *m, const tl_reference_stmt *items, uint32_t len) {
  for (uint32_t i = 0; i < len; ++i) {
    scan_assign(m, &items[i].assign);
    for (uint32_t k = 0; k < items[i].num_ranges; ++k) {
      scan_expr(m, items[i].ranges[k].lo);
      scan_expr(m, items[i].ranges[k].hi);
    }
    scan_reference(m, items[i].body, items[i].num_body);
  }
}

// A step uses what it passes, and every param of its chain that its kernel has too.
static void scan_chain(mentions *m, const tl_chain_spec *chain) {
  for (uint32_t i = 0; i < chain->num_buffers; ++i) {
    scan_expr(m, chain->buffers[i].dtype);
    scan_exprs(m, chain->buffers[i].dims, chain->buffers[i].num_dims);
  }
  for (uint32_t i = 0; i < chain->num_views; ++i) scan_view(m, &chain->views[i]);
  for (uint32_t i = 0; i < chain->num_steps; ++i) {
    const tl_kernel_spec *kernel = chain->steps[i].kernel;
    scan_expr(m, chain->steps[i].call);
    for (uint32_t k = 0; kernel && k < kernel->num_params; ++k) mention(m, kernel->params[k].name);
  }
}

// What the document itself uses; `check` and `bench` only count for params and lets.
static void scan_document(mentions *m, const tl_kernel_spec *kernel) {
  for (uint32_t i = 0; i < kernel->num_params; ++i) {
    scan_expr(m, kernel->params[i].value);
    scan_expr(m, kernel->params[i].divisor);
  }
  scan_named(m, kernel->lets, kernel->num_lets);
  for (uint32_t i = 0; i < kernel->num_args; ++i) {
    const tl_arg *arg = &kernel->args[i];
    scan_expr(m, arg->dtype);
    scan_exprs(m, arg->dims, arg->num_dims);
    scan_exprs(m, arg->strides, arg->num_strides);
    scan_expr(m, arg->align);
  }
  for (uint32_t i = 0; i < kernel->num_views; ++i) scan_view(m, &kernel->views[i]);
  scan_exprs(m, kernel->requires_, kernel->num_requires);
  scan_exprs(m, kernel->assumptions, kernel->num_assumptions);
  scan_named(m, kernel->grid, kernel->num_grid);
  scan_named(m, kernel->cluster, kernel->num_cluster);
  scan_expr(m, kernel->threads);
  scan_expr(m, kernel->occupancy);
  scan_expr(m, kernel->persistent);
  scan_expr(m, kernel->fast_math);
  scan_expr(m, kernel->raster_panel);
  for (uint32_t i = 0; i < kernel->num_tiles; ++i) {
    scan_expr(m, kernel->tiles[i].dtype);
    scan_exprs(m, kernel->tiles[i].dims, kernel->tiles[i].num_dims);
    scan_expr(m, kernel->tiles[i].stages);
    scan_expr(m, kernel->tiles[i].layout);
  }
  for (uint32_t i = 0; i < kernel->num_barriers; ++i) {
    scan_expr(m, kernel->barriers[i].depth);
    scan_expr(m, kernel->barriers[i].arrivals);
  }
  scan_stmts(m, &kernel->body);
  if (kernel->chain) scan_chain(m, kernel->chain);
}

static void scan_check(mentions *m, const tl_kernel_spec *kernel) {
  const tl_check *check = &kernel->check;
  scan_named(m, check->inputs, check->num_inputs);
  scan_reference(m, check->derive, check->num_derive);
  scan_reference(m, check->reference, check->num_reference);
  for (uint32_t i = 0; i < check->num_tolerances; ++i) {
    scan_expr(m, check->tolerances[i].rtol);
    scan_expr(m, check->tolerances[i].atol);
  }
  for (uint32_t i = 0; i < check->num_cases; ++i) {
    scan_named(m, check->cases[i].overrides, check->cases[i].num_overrides);
    scan_named(m, check->cases[i].inputs, check->cases[i].num_inputs);
    scan_expr(m, check->cases[i].rtol);
    scan_expr(m, check->cases[i].atol);
  }
  scan_expr(m, kernel->bench.flops);
  scan_expr(m, kernel->bench.bytes);
  scan_exprs(m, kernel->tune.where, kernel->tune.num_where);
}

static void warn(tl_diags *diags, const mentions *m, tl_diag_code code, tl_str name, tl_loc loc, const char *what) {
  if (tl_strmap_find(&m->names, name)) return;
  tl_diag_report(diags, code, loc, "the %s `%.*s` is never used", what, TL_STR_ARG(name));
}

void tl_sema_warn_unused(tl_arena *arena, const tl_kernel_spec *kernel, tl_diags *diags) {
  mentions m;
  tl_strmap_init(&m.names, arena);
  scan_document(&m, kernel);
  for (uint32_t i = 0; i < kernel->num_args; ++i) {
    warn(diags, &m, TL_DIAG_UNUSED_ARG, kernel->args[i].name, kernel->args[i].loc, "argument");
  }
  for (uint32_t i = 0; i < kernel->num_tiles; ++i) {
    warn(diags, &m, TL_DIAG_UNUSED_TILE, kernel->tiles[i].name, kernel->tiles[i].loc, "tile");
  }
  scan_check(&m, kernel);
  for (uint32_t i = 0; i < kernel->num_params; ++i) {
    warn(diags, &m, TL_DIAG_UNUSED_PARAM, kernel->params[i].name, kernel->params[i].loc, "param");
  }
  for (uint32_t i = 0; i < kernel->num_lets; ++i) {
    warn(diags, &m, TL_DIAG_UNUSED_LET, kernel->lets[i].name, kernel->lets[i].loc, "let");
  }
  tl_strmap_fini(&m.names);
}
