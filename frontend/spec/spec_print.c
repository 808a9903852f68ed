// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The spec model as canonical spec YAML: reading it back and printing again gives the same text. Macros are printed
// as written, those of included files among the file's; what is refused for now is not part of the model.
#include <string.h>

#include "frontend/spec/spec_internal.h"
#include "frontend/spec/spec_print_part.h"

static void print_key(tl_str key, int indent, tl_strbuf *out) {
  tl_spec_print_indent(indent, out);
  tl_strbuf_append(out, key);
  tl_strbuf_append_c(out, ": ");
}

static void print_type(const tl_expr *dtype, tl_expr *const *dims, uint32_t num_dims, tl_strbuf *out) {
  tl_expr_print(dtype, out);
  if (!num_dims) return;
  tl_strbuf_append_char(out, '[');
  tl_spec_print_list(dims, num_dims, out);
  tl_strbuf_append_char(out, ']');
}

static void print_params(const tl_kernel_spec *kernel, tl_strbuf *out) {
  if (kernel->num_params) tl_strbuf_append_c(out, "params:\n");
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_param *param = &kernel->params[i];
    print_key(param->name, 2, out);
    switch (param->kind) {
      case TL_PARAM_VALUE:
        tl_spec_print_expr_value(param->value, out);
        break;
      case TL_PARAM_AUTO:
        tl_strbuf_append_c(out, "auto");
        break;
      case TL_PARAM_DYNAMIC:
        tl_strbuf_append_c(out, param->is_wide ? "dynamic64" : "dynamic");
        if (!param->divisor) break;
        tl_strbuf_append_char(out, '(');
        tl_expr_print(param->divisor, out);
        tl_strbuf_append_char(out, ')');
        break;
    }
    tl_strbuf_append_char(out, '\n');
  }
}

static void print_named(const char *section, const tl_named_expr *items, uint32_t len, tl_strbuf *out) {
  if (len) tl_strbuf_appendf(out, "%s:\n", section);
  for (uint32_t i = 0; i < len; i++) {
    print_key(items[i].name, 2, out);
    tl_spec_print_expr_value(items[i].value, out);
    tl_strbuf_append_char(out, '\n');
  }
}

static void print_args(const tl_kernel_spec *kernel, tl_strbuf *out) {
  if (kernel->num_args) tl_strbuf_append_c(out, "args:\n");
  for (uint32_t i = 0; i < kernel->num_args; i++) {
    const tl_arg *arg = &kernel->args[i];
    print_key(arg->name, 2, out);
    switch (arg->access) {
      case TL_ARG_IN:
        tl_strbuf_append_c(out, "in ");
        break;
      case TL_ARG_OUT:
        tl_strbuf_append_c(out, "out ");
        break;
      case TL_ARG_INOUT:
        tl_strbuf_append_c(out, "inout ");
        break;
    }
    print_type(arg->dtype, arg->dims, arg->num_dims, out);
    if (arg->strides) {
      tl_strbuf_append_c(out, " strides(");
      tl_spec_print_list(arg->strides, arg->num_strides, out);
      tl_strbuf_append_char(out, ')');
    }
    if (arg->align) {
      tl_strbuf_append_c(out, " align(");
      tl_expr_print(arg->align, out);
      tl_strbuf_append_char(out, ')');
    }
    if (arg->is_optional) tl_strbuf_append_c(out, " optional");
    tl_strbuf_append_char(out, '\n');
  }
}

static void print_views(const tl_kernel_spec *kernel, tl_strbuf *out) {
  const tl_view *views = kernel->chain ? kernel->chain->views : kernel->views;
  uint32_t num_views = kernel->chain ? kernel->chain->num_views : kernel->num_views;
  if (num_views) tl_strbuf_append_c(out, "views:\n");
  for (uint32_t i = 0; i < num_views; i++) {
    const tl_view *view = &views[i];
    print_key(view->name, 2, out);
    tl_strbuf_append(out, view->base);
    tl_strbuf_append_c(out, " as ");
    print_type(view->dtype, view->dims, view->num_dims, out);
    tl_strbuf_append_char(out, '\n');
  }
}

static void print_conditions(const char *key, tl_expr *const *conditions, uint32_t len, tl_strbuf *out) {
  if (len) tl_strbuf_appendf(out, "%s:\n", key);
  for (uint32_t i = 0; i < len; i++) {
    tl_strbuf_append_c(out, "  - ");
    tl_spec_print_expr_value(conditions[i], out);
    tl_strbuf_append_char(out, '\n');
  }
}

static void print_tiles(const tl_kernel_spec *kernel, int scope, const char *section, tl_strbuf *out) {
  bool first = true;
  for (uint32_t i = 0; i < kernel->num_tiles; i++) {
    const tl_tile_decl *tile = &kernel->tiles[i];
    if ((int)tile->scope != scope) continue;
    if (first) tl_strbuf_appendf(out, "%s:\n", section);
    first = false;
    print_key(tile->name, 2, out);
    print_type(tile->dtype, tile->dims, tile->num_dims, out);
    if (tile->stages) {
      tl_strbuf_append_c(out, " stages(");
      tl_expr_print(tile->stages, out);
      tl_strbuf_append_char(out, ')');
    }
    if (tile->layout) {
      tl_strbuf_append_c(out, " layout ");
      tl_expr_print(tile->layout, out);
    }
    tl_strbuf_append_char(out, '\n');
  }
}

static void print_barriers(const tl_kernel_spec *kernel, tl_strbuf *out) {
  if (kernel->num_barriers) tl_strbuf_append_c(out, "barriers:\n");
  for (uint32_t i = 0; i < kernel->num_barriers; i++) {
    const tl_barrier_decl *barrier = &kernel->barriers[i];
    print_key(barrier->name, 2, out);
    tl_strbuf_append_c(out, barrier->is_named ? "named" : "mbarrier");
    if (barrier->depth) {
      tl_strbuf_append_char(out, '[');
      tl_expr_print(barrier->depth, out);
      tl_strbuf_append_char(out, ']');
    }
    tl_strbuf_append_c(out, " arrivals(");
    tl_expr_print(barrier->arrivals, out);
    tl_strbuf_append_c(out, ")\n");
  }
}

static void print_kernel(const tl_kernel_spec *kernel, tl_strbuf *out) {
  tl_strbuf_appendf(out, "%s: %.*s\n", kernel->chain ? "chain" : "kernel", TL_STR_ARG(kernel->name));
  if (kernel->doc.len) {
    tl_strbuf_append_c(out, "doc: ");
    tl_spec_print_value(kernel->doc, out);
    tl_strbuf_append_char(out, '\n');
  }
  if (kernel->target.len) {
    tl_strbuf_append_c(out, "target: ");
    tl_spec_print_value(kernel->target, out);
    tl_strbuf_append_char(out, '\n');
  }
  print_params(kernel, out);
  print_named("let", kernel->lets, kernel->num_lets, out);
  print_args(kernel, out);
  print_views(kernel, out);
  print_conditions("requires", kernel->requires_, kernel->num_requires, out);
  print_conditions("assume", kernel->assumptions, kernel->num_assumptions, out);
  print_named("grid", kernel->grid, kernel->num_grid, out);
  print_named("cluster", kernel->cluster, kernel->num_cluster, out);
  tl_spec_print_expr("threads", kernel->threads, 0, out);
  if (kernel->chain) tl_spec_print_chain(kernel->chain, out);
  if (kernel->raster_panel || (kernel->raster_order.len && !tl_str_is(kernel->raster_order, "row"))) {
    tl_strbuf_append_c(out, "rasterize:\n");
    tl_spec_print_expr("panel", kernel->raster_panel, 2, out);
    tl_strbuf_appendf(out, "  order: %.*s\n", TL_STR_ARG(kernel->raster_order));
  }
  tl_spec_print_expr("occupancy", kernel->occupancy, 0, out);
  tl_spec_print_expr("persistent", kernel->persistent, 0, out);
  tl_spec_print_expr("fast_math", kernel->fast_math, 0, out);
  print_tiles(kernel, TL_TILE_SHARED, "shared", out);
  print_tiles(kernel, TL_TILE_FRAGMENT, "fragment", out);
  print_tiles(kernel, TL_TILE_LOCAL, "local", out);
  print_barriers(kernel, out);
  tl_spec_print_macros(&kernel->macros, out);
  if (kernel->body.len) {
    tl_strbuf_append_c(out, "body:\n");
    tl_spec_print_body(&kernel->body, 2, out);
  }
  if (kernel->check.present) tl_spec_print_check(&kernel->check, out);
  if (kernel->bench.present) tl_spec_print_bench(&kernel->bench, out);
  if (kernel->tune.present) tl_spec_print_tune(&kernel->tune, out);
}

void tl_spec_print(const tl_spec *spec, tl_strbuf *out) {
  size_t start = out->len;
  tl_spec_print_macros(&spec->macros, out);
  for (uint32_t i = 0; i < spec->num_kernels; i++) {
    if (out->len > start) tl_strbuf_append_c(out, "---\n");
    print_kernel(&spec->kernels[i], out);
  }
}
