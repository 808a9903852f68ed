// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The manifest as JSON: one key a line, one param a line, fixed key order.
#include "support/manifest.h"

typedef struct writer {
  tl_strbuf *out;
  const char *prefix;
} writer;

static void line(writer *w, int depth) {
  if (w->out->len > 0 && w->out->data[w->out->len - 1] != '\n') tl_strbuf_append_char(w->out, '\n');
  tl_strbuf_append_c(w->out, w->prefix);
  for (int i = 0; i < depth; i++) tl_strbuf_append_c(w->out, "  ");
}

// The code point that starts at `at`, whose bytes are valid UTF-8.
static uint32_t code_point(tl_str text, size_t *at) {
  uint8_t lead = (uint8_t)text.data[(*at)++];
  uint32_t point = lead < 0x80 ? lead : lead < 0xe0 ? lead & 0x1f : lead < 0xf0 ? lead & 0x0f : lead & 0x07;
  while (*at < text.len && ((uint8_t)text.data[*at] & 0xc0) == 0x80)
    point = point << 6 | ((uint8_t)text.data[(*at)++] & 0x3f);
  return point;
}

// In ASCII, so that a manifest may stand in PTX: "ptxas" refuses other characters even in comments.
static void write_text(writer *w, const char *text) {
  tl_strbuf json;
  tl_strbuf_init(&json);
  tl_strbuf_append_json(&json, tl_str_from(text ? text : ""));
  tl_str view = tl_strbuf_view(&json);
  for (size_t at = 0; at < view.len;) {
    uint32_t point = code_point(view, &at);
    if (point < 0x80) {
      tl_strbuf_append_char(w->out, (char)point);
    } else if (point < 0x10000) {
      tl_strbuf_appendf(w->out, "\\u%04x", point);
    } else {
      tl_strbuf_appendf(w->out, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10), 0xdc00 + (point & 0x3ff));
    }
  }
  tl_strbuf_fini(&json);
}

// A constant is a JSON integer, everything else the expression's text.
static void write_expr(writer *w, const tl_mexpr *expr) {
  int64_t value;
  if (!expr) {
    tl_strbuf_append_c(w->out, "null");
  } else if (tl_mexpr_is_int(expr, &value)) {
    tl_strbuf_appendf(w->out, "%lld", (long long)value);
  } else {
    tl_strbuf text;
    tl_strbuf_init(&text);
    tl_mexpr_print(expr, &text);
    tl_strbuf_append_json(w->out, tl_strbuf_view(&text));
    tl_strbuf_fini(&text);
  }
}

static void write_exprs(writer *w, const char *key, const tl_mexpr *const *exprs, int32_t count) {
  tl_strbuf_appendf(w->out, ", \"%s\": [", key);
  for (int32_t i = 0; i < count; i++) {
    if (i) tl_strbuf_append_c(w->out, ", ");
    write_expr(w, exprs[i]);
  }
  tl_strbuf_append_c(w->out, "]");
}

static const char *kind_text(tl_manifest_param_kind kind) {
  switch (kind) {
    case TL_MPARAM_TENSOR:
      return "tensor";
    case TL_MPARAM_SCALAR:
      return "scalar";
    case TL_MPARAM_DYNAMIC:
      return "dynamic";
    case TL_MPARAM_STRIDE:
      return "stride";
    case TL_MPARAM_TENSOR_MAP:
      return "tensor_map";
    case TL_MPARAM_WORKSPACE:
      return "workspace";
  }
  return "?";
}

static void write_spatial(writer *w, const char *key, const int32_t *values, int32_t count) {
  tl_strbuf_appendf(w->out, ", \"%s\": [", key);
  for (int32_t i = 0; i < count; i++) tl_strbuf_appendf(w->out, "%s%d", i ? ", " : "", values[i]);
  tl_strbuf_append_c(w->out, "]");
}

static void write_map(writer *w, const tl_manifest_kernel *kernel, const tl_manifest_map *map) {
  tl_strbuf_append_c(w->out, ", \"tensor\": ");
  write_text(w, kernel->params[map->tensor].name);
  tl_strbuf_appendf(w->out, ", \"access\": \"%s\", \"type\": \"%s\"", map->is_written ? "out" : "in",
                    tl_tensormap_type_name(map->type));
  write_exprs(w, "dims", map->dims, map->rank);
  write_exprs(w, "strides", map->strides, map->rank - 1);
  tl_strbuf_append_c(w->out, ", \"box\": [");
  for (int32_t d = 0; d < map->rank; d++) tl_strbuf_appendf(w->out, "%s%u", d ? ", " : "", map->box[d]);
  tl_strbuf_append_c(w->out, "]");
  if (map->is_im2col) {
    write_spatial(w, "lower", map->lower, map->rank - 2);
    write_spatial(w, "upper", map->upper, map->rank - 2);
    write_spatial(w, "step", map->step, map->rank - 2);
  }
  tl_strbuf_appendf(w->out, ", \"swizzle\": %u, \"l2\": %u, \"fill\": \"%s\"", tl_tensormap_swizzle_span(map->swizzle),
                    tl_tensormap_l2_bytes(map->l2), map->fill == TL_TENSORMAP_FILL_NAN ? "nan" : "zero");
}

static void write_param(writer *w, const tl_manifest_kernel *kernel, const tl_manifest_param *param) {
  static const char *const access_text[] = {"in", "out", "inout"};
  tl_strbuf_appendf(w->out, "{\"kind\": \"%s\", \"name\": ", kind_text(param->kind));
  write_text(w, param->name);
  switch (param->kind) {
    case TL_MPARAM_TENSOR:
      tl_strbuf_appendf(w->out, ", \"access\": \"%s\", \"dtype\": \"%s\"", access_text[param->access],
                        tl_dtype_name(param->dtype));
      write_exprs(w, "dims", param->dims, param->rank);
      write_exprs(w, "strides", param->strides, param->rank);
      tl_strbuf_appendf(w->out, ", \"align\": %lld", (long long)param->align);
      if (param->is_optional) tl_strbuf_append_c(w->out, ", \"optional\": true");
      break;
    case TL_MPARAM_SCALAR:
      tl_strbuf_appendf(w->out, ", \"dtype\": \"%s\"", tl_dtype_name(param->dtype));
      break;
    case TL_MPARAM_DYNAMIC:
      tl_strbuf_appendf(w->out, ", \"divisor\": %lld", (long long)param->divisor);
      if (param->dtype == TL_DTYPE_I64) tl_strbuf_append_c(w->out, ", \"dtype\": \"i64\"");
      break;
    case TL_MPARAM_STRIDE:
      break;
    case TL_MPARAM_TENSOR_MAP:
      write_map(w, kernel, param->map);
      break;
    case TL_MPARAM_WORKSPACE:
      tl_strbuf_append_c(w->out, ", \"bytes\": ");
      write_expr(w, param->bytes);
      tl_strbuf_appendf(w->out, ", \"zero_each_launch\": %s", param->zero_each_launch ? "true" : "false");
      break;
  }
  tl_strbuf_append_char(w->out, '}');
}

static void key(writer *w, int depth, const char *name) {
  line(w, depth);
  tl_strbuf_appendf(w->out, "\"%s\": ", name);
}

static void write_int(writer *w, int depth, const char *name, int64_t value) {
  key(w, depth, name);
  tl_strbuf_appendf(w->out, "%lld,", (long long)value);
}

// name, doc, params and requires: what kernels and chains have in common.
static void write_signature(writer *w, const tl_manifest_kernel *kernel) {
  tl_strbuf *out = w->out;
  line(w, 2);
  tl_strbuf_append_char(out, '{');
  key(w, 3, "name");
  write_text(w, kernel->name);
  tl_strbuf_append_char(out, ',');
  key(w, 3, "doc");
  write_text(w, kernel->doc);
  tl_strbuf_append_char(out, ',');
  key(w, 3, "params");
  tl_strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    line(w, 4);
    write_param(w, kernel, &kernel->params[i]);
    if (i + 1 < kernel->num_params) tl_strbuf_append_char(out, ',');
  }
  if (kernel->num_params) line(w, 3);
  tl_strbuf_append_c(out, "],");
  key(w, 3, "requires");
  tl_strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < kernel->num_requires; i++) {
    line(w, 4);
    tl_strbuf_append_c(out, "{\"condition\": ");
    write_expr(w, kernel->requires_[i].condition);
    tl_strbuf_append_c(out, ", \"text\": ");
    write_text(w, kernel->requires_[i].text);
    tl_strbuf_append_c(out, i + 1 < kernel->num_requires ? "}," : "}");
  }
  if (kernel->num_requires) line(w, 3);
  tl_strbuf_append_c(out, "],");
}

static void write_kernel(writer *w, const tl_manifest *manifest, const tl_manifest_kernel *kernel) {
  tl_strbuf *out = w->out;
  write_signature(w, kernel);
  key(w, 3, "grid");
  tl_strbuf_append_char(out, '[');
  for (int i = 0; i < 3; i++) {
    if (i) tl_strbuf_append_c(out, ", ");
    write_expr(w, kernel->grid[i]);
  }
  tl_strbuf_append_c(out, "],");
  if (kernel->persistent) {
    key(w, 3, "persistent");
    tl_strbuf_append_c(out, "true,");
  }
  if (kernel->aligned) {
    key(w, 3, "aligned");
    write_text(w, manifest->kernels[kernel->aligned].name);
    tl_strbuf_append_char(out, ',');
  }
  write_int(w, 3, "block_threads", kernel->block_threads);
  write_int(w, 3, "math_threads", kernel->math_threads);
  write_int(w, 3, "static_shared_bytes", kernel->static_shared_bytes);
  write_int(w, 3, "dynamic_shared_bytes", kernel->dynamic_shared_bytes);
  key(w, 3, "cluster");
  tl_strbuf_appendf(out, "[%d, %d, %d]", kernel->cluster[0], kernel->cluster[1], kernel->cluster[2]);
  line(w, 2);
  tl_strbuf_append_char(out, '}');
}

static void write_given(writer *w, const tl_manifest_chain *chain, const tl_manifest_given *given) {
  tl_strbuf_append_c(w->out, "{\"name\": ");
  write_text(w, given->name);
  switch (given->kind) {
    case TL_MGIVEN_ARGUMENT:
    case TL_MGIVEN_BUFFER:
      tl_strbuf_append_c(w->out, given->kind == TL_MGIVEN_BUFFER ? ", \"buffer\": " : ", \"argument\": ");
      write_text(w, given->kind == TL_MGIVEN_BUFFER ? chain->buffers[given->index].name
                                                    : chain->signature.params[given->index].name);
      tl_strbuf_appendf(w->out, ", \"dtype\": \"%s\"", tl_dtype_name(given->dtype));
      write_exprs(w, "dims", given->dims, given->rank);
      write_exprs(w, "strides", given->strides, given->rank);
      break;
    case TL_MGIVEN_SCALAR:
      tl_strbuf_append_c(w->out, ", \"scalar\": ");
      write_text(w, chain->signature.params[given->index].name);
      break;
    case TL_MGIVEN_INT:
      tl_strbuf_append_c(w->out, ", \"int\": ");
      write_expr(w, given->value);
      break;
    case TL_MGIVEN_FLOAT:
      // As text: JSON has no infinity.
      tl_strbuf_append_c(w->out, ", \"float\": \"");
      tl_strbuf_append_double(w->out, given->number);
      tl_strbuf_append_char(w->out, '"');
      break;
  }
  tl_strbuf_append_char(w->out, '}');
}

static void write_chain(writer *w, const tl_manifest *manifest, const tl_manifest_chain *chain) {
  write_signature(w, &chain->signature);
  key(w, 3, "buffers");
  tl_strbuf_append_char(w->out, '[');
  for (uint32_t i = 0; i < chain->num_buffers; i++) {
    line(w, 4);
    tl_strbuf_append_c(w->out, "{\"name\": ");
    write_text(w, chain->buffers[i].name);
    tl_strbuf_append_c(w->out, ", \"bytes\": ");
    write_expr(w, chain->buffers[i].bytes);
    tl_strbuf_append_c(w->out, i + 1 < chain->num_buffers ? "}," : "}");
  }
  if (chain->num_buffers) line(w, 3);
  tl_strbuf_append_c(w->out, "],");
  key(w, 3, "steps");
  tl_strbuf_append_char(w->out, '[');
  for (uint32_t i = 0; i < chain->num_steps; i++) {
    const tl_manifest_step *step = &chain->steps[i];
    line(w, 4);
    tl_strbuf_append_c(w->out, "{\"kernel\": ");
    write_text(w, manifest->kernels[step->kernel].name);
    tl_strbuf_append_c(w->out, ", \"given\": [");
    for (uint32_t k = 0; k < step->num_given; k++) {
      line(w, 5);
      write_given(w, chain, &step->given[k]);
      if (k + 1 < step->num_given) tl_strbuf_append_char(w->out, ',');
    }
    if (step->num_given) line(w, 4);
    tl_strbuf_append_c(w->out, i + 1 < chain->num_steps ? "]}," : "]}");
  }
  if (chain->num_steps) line(w, 3);
  tl_strbuf_append_char(w->out, ']');
  line(w, 2);
  tl_strbuf_append_char(w->out, '}');
}

uint32_t tl_manifest_num_kernels(const tl_manifest *manifest) {
  uint32_t num = 0;
  while (num < manifest->num_kernels && !manifest->kernels[num].is_version) num++;
  return num;
}

void tl_manifest_write(const tl_manifest *manifest, const char *line_prefix, tl_strbuf *out) {
  writer w = {out, line_prefix ? line_prefix : ""};
  line(&w, 0);
  tl_strbuf_append_char(out, '{');
  write_int(&w, 1, "abi", manifest->abi);
  key(&w, 1, "generator");
  write_text(&w, manifest->generator);
  tl_strbuf_append_char(out, ',');
  key(&w, 1, "target");
  write_text(&w, manifest->target);
  tl_strbuf_append_char(out, ',');
  key(&w, 1, "ptx_version");
  tl_strbuf_appendf(out, "\"%d.%d\",", manifest->ptx_version / 10, manifest->ptx_version % 10);
  key(&w, 1, "kernels");
  tl_strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < manifest->num_kernels; i++) {
    write_kernel(&w, manifest, &manifest->kernels[i]);
    if (i + 1 < manifest->num_kernels) tl_strbuf_append_char(out, ',');
  }
  if (manifest->num_kernels) line(&w, 1);
  tl_strbuf_append_char(out, ']');
  if (manifest->num_chains) {
    tl_strbuf_append_char(out, ',');
    key(&w, 1, "chains");
    tl_strbuf_append_char(out, '[');
    for (uint32_t i = 0; i < manifest->num_chains; i++) {
      write_chain(&w, manifest, &manifest->chains[i]);
      if (i + 1 < manifest->num_chains) tl_strbuf_append_char(out, ',');
    }
    line(&w, 1);
    tl_strbuf_append_char(out, ']');
  }
  line(&w, 0);
  tl_strbuf_append_c(out, "}\n");
}
