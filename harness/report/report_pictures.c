// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pictures as SVG: shared memory over the kernel's statements, rings, layouts of tiles and of shared tiles.
#include <stdlib.h>
#include <string.h>

#include "harness/report/report_internal.h"

enum { MAX_TILES = 64, MAX_LAYOUTS = 6, MAX_ROWS = 16, MAX_COLUMNS = 32 };

// A place in shared memory, and where in the order of ops it is used.
typedef struct placed {
  const tl_op *op;
  int64_t offset, bytes;
  uint32_t first, last;
} placed;

typedef struct walk {
  placed tiles[MAX_TILES];
  uint32_t num_tiles;
  const tl_layout *layouts[MAX_LAYOUTS];
  const tl_value *values[MAX_LAYOUTS];
  uint32_t num_layouts;
  uint32_t num_ops;
} walk;

static int64_t shared_bytes(const tl_op *op) {
  enum { MBARRIER_BYTES = 8 };
  int64_t depth = tl_op_int(op, TL_ATTR_DEPTH, 1);
  if (op->code == TL_OP_MBARRIER) return depth * MBARRIER_BYTES;
  const tl_type *type = tl_op_result(op, 0)->type;
  const tl_attr *shared = tl_op_attr(op, TL_ATTR_SHARED_LAYOUT);
  int32_t shape[TL_MAX_RANK];
  for (int32_t d = 0; d < type->rank; d++) shape[d] = (int32_t)type->dims[d];
  int32_t bits = tl_dtype_bits(type->dtype);
  int64_t one = shared ? tl_shared_layout_bytes(shared->v.shared, shape, type->rank, bits)
                       : (tl_type_num_elements(type) * bits + 7) / 8;
  return one * depth;
}

// The op that a buffer comes from.
static const tl_op *root_of(const tl_value *value) {
  const tl_op *op = value->def;
  while (op && op->code != TL_OP_ALLOC && op->code != TL_OP_MBARRIER && op->num_operands &&
         tl_op_operand(op, 0)->type->kind == value->type->kind && value->type->kind == TL_TYPE_BUFFER) {
    value = tl_op_operand(op, 0);
    op = value->def;
  }
  return op;
}

static void note_layout(walk *w, const tl_value *value) {
  if (value->type->kind != TL_TYPE_TILE || !value->type->layout || w->num_layouts == MAX_LAYOUTS) return;
  for (uint32_t i = 0; i < w->num_layouts; i++)
    if (tl_layout_equal(w->layouts[i], value->type->layout)) return;
  w->values[w->num_layouts] = value;
  w->layouts[w->num_layouts++] = value->type->layout;
}

static void visit(walk *w, const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next) {
    uint32_t number = w->num_ops++;
    bool is_placed = tl_op_has(op, TL_ATTR_OFFSET) && (op->code == TL_OP_ALLOC || op->code == TL_OP_MBARRIER);
    if (is_placed && w->num_tiles < MAX_TILES)
      w->tiles[w->num_tiles++] = (placed){op, tl_op_int(op, TL_ATTR_OFFSET, 0), shared_bytes(op), UINT32_MAX, 0};
    for (uint32_t i = 0; i < op->num_operands; i++) {
      const tl_op *root = root_of(tl_op_operand(op, i));
      for (uint32_t t = 0; root && t < w->num_tiles; t++) {
        if (w->tiles[t].op != root) continue;
        if (number < w->tiles[t].first) w->tiles[t].first = number;
        w->tiles[t].last = number;
      }
    }
    for (uint32_t i = 0; i < op->num_results; i++) note_layout(w, tl_op_result(op, i));
    uint32_t before = w->num_ops;
    for (uint32_t r = 0; r < op->num_regions; r++) visit(w, op->regions[r]);
    // What a loop uses is in use until its end.
    for (uint32_t t = 0; op->num_regions && t < w->num_tiles; t++)
      if (w->tiles[t].last >= before && w->tiles[t].first < w->num_ops) w->tiles[t].last = w->num_ops;
  }
}

static walk walk_kernel(const tl_report *report) {
  walk w = {0};
  const tl_op *kernel = tl_module_kernel(report->module);
  for (uint32_t r = 0; r < kernel->num_regions; r++) visit(&w, kernel->regions[r]);
  return w;
}

void report_memory(const tl_report *report, tl_strbuf *out) {
  enum { WIDTH = 1000, ROW = 3, LABEL = 14 };
  walk w = walk_kernel(report);
  const tl_manifest_kernel *kernel = &report->manifest->kernels[0];
  int64_t total = kernel->static_shared_bytes + kernel->dynamic_shared_bytes;
  tl_strbuf_append_c(out, "<h2 id=\"memory\">Shared memory over time</h2>\n");
  if (!w.num_tiles || total <= 0) {
    tl_strbuf_append_c(out, "<p>None is used.</p>\n");
    return;
  }
  double height = w.num_ops ? 360.0 / w.num_ops : 1;
  tl_strbuf_appendf(
      out, "<figure class=\"wide\"><svg width=\"%d\" height=\"400\" role=\"img\" aria-label=\"shared memory\">\n",
      WIDTH + 20);
  for (uint32_t i = 0; i < w.num_tiles; i++) {
    const placed *tile = &w.tiles[i];
    if (tile->first == UINT32_MAX) continue;
    double x = (double)tile->offset * WIDTH / (double)total, width = (double)tile->bytes * WIDTH / (double)total;
    double y = tile->first * height, tall = (tile->last - tile->first + 1) * height;
    tl_strbuf_appendf(out,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" fill-opacity=\".8\" "
                      "stroke=\"#555\"><title>",
                      x, y, width < 2 ? 2 : width, tall < ROW ? ROW : tall, report_color(i));
    report_text_c(report_name(tile->op), out);
    tl_strbuf_appendf(out, ": bytes %lld to %lld</title></rect>\n", (long long)tile->offset,
                      (long long)(tile->offset + tile->bytes - 1));
    if (width < 60) continue;
    tl_strbuf_appendf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + 4, y + LABEL);
    report_text_c(report_name(tile->op), out);
    int64_t depth = tl_op_int(tile->op, TL_ATTR_DEPTH, 1);
    if (depth > 1) tl_strbuf_appendf(out, " × %lld", (long long)depth);
    tl_strbuf_appendf(out, ", %lld bytes</text>\n", (long long)tile->bytes);
  }
  tl_strbuf_appendf(
      out,
      "</svg><figcaption>Left to right: %lld bytes. Top to bottom: the kernel's %u operations in their order; a "
      "loop holds what it uses to its end.</figcaption></figure>\n",
      (long long)total, w.num_ops);
}

// Which buffer holds which iteration, for as many iterations as show the turn.
static void write_ring(const tl_op *op, uint32_t number, tl_strbuf *out) {
  enum { CELL = 34, LEFT = 110 };
  int64_t depth = tl_op_int(op, TL_ATTR_DEPTH, 1), iterations = 2 * depth + 2;
  tl_strbuf_append_c(out, "<figure class=\"wide\"><figcaption>");
  report_text_c(report_name(op), out);
  tl_strbuf_appendf(out,
                    ": iteration i lies in buffer i mod %lld, %lld bytes each</figcaption>"
                    "<svg width=\"%lld\" height=\"%lld\" role=\"img\" aria-label=\"ring\">\n",
                    (long long)depth, (long long)shared_bytes(op) / depth, LEFT + CELL * (long long)iterations + 4,
                    CELL * (long long)depth + 4);
  for (int64_t slot = 0; slot < depth; slot++) {
    tl_strbuf_appendf(out, "<text x=\"0\" y=\"%lld\">buffer %lld</text>\n", (long long)slot * CELL + 20,
                      (long long)slot);
    for (int64_t i = slot; i < iterations; i += depth) {
      int64_t until = i + depth < iterations ? i + depth : iterations;
      tl_strbuf_appendf(out,
                        "<rect x=\"%lld\" y=\"%lld\" width=\"%lld\" height=\"%d\" fill=\"%s\" stroke=\"#555\"/>"
                        "<text x=\"%lld\" y=\"%lld\">i = %lld</text>\n",
                        LEFT + (long long)i * CELL, (long long)slot * CELL + 2, ((long long)until - i) * CELL, CELL - 4,
                        report_color(number), LEFT + (long long)i * CELL + 4, (long long)slot * CELL + 20,
                        (long long)i);
    }
  }
  tl_strbuf_append_c(out, "</svg></figure>\n");
}

void report_rings(const tl_report *report, tl_strbuf *out) {
  walk w = walk_kernel(report);
  bool has_ring = false;
  tl_strbuf_append_c(out, "<h2 id=\"rings\">Pipeline</h2>\n");
  for (size_t i = 0; i < report->diags->list.len; i++) {
    const tl_diag *diag = report->diags->list.items[i];
    if (!strstr(diag->text, "iterations ahead") && !strstr(diag->text, "iteration ahead") &&
        !strstr(diag->text, "iteration later") && !strstr(diag->text, "warps of their own"))
      continue;
    tl_strbuf_append_c(out, "<p>");
    report_text_c(diag->text, out);
    tl_strbuf_append_c(out, "</p>\n");
  }
  int64_t most = 1;
  for (uint32_t i = 0; i < w.num_tiles; i++)
    if (tl_op_int(w.tiles[i].op, TL_ATTR_DEPTH, 1) > most) most = tl_op_int(w.tiles[i].op, TL_ATTR_DEPTH, 1);
  report_timeline(report, most, out);
  for (uint32_t i = 0; i < w.num_tiles; i++) {
    const tl_op *op = w.tiles[i].op;
    if (op->code != TL_OP_ALLOC || tl_op_int(op, TL_ATTR_DEPTH, 1) < 2) continue;
    has_ring = true;
    write_ring(op, i, out);
  }
  if (!has_ring) tl_strbuf_append_c(out, "<p>No tile has several buffers.</p>\n");
}

// ---- layouts

// A hue a warp, a lightness a lane.
static void write_thread_color(int32_t lane, int32_t warp, tl_strbuf *out) {
  tl_strbuf_appendf(out, "hsl(%d,60%%,%d%%)", warp * 67 % 360, 88 - lane);
}

static void write_layout(const tl_value *value, const tl_layout *layout, tl_strbuf *out) {
  enum { CELL_X = 38, CELL_Y = 18 };
  int32_t rows = layout->rank > 1 ? layout->shape[layout->rank - 2] : 1, columns = layout->shape[layout->rank - 1];
  if (rows > MAX_ROWS) rows = MAX_ROWS;
  if (columns > MAX_COLUMNS) columns = MAX_COLUMNS;
  tl_strbuf text = {0};
  tl_layout_print(layout, &text);
  tl_strbuf_append_c(out, "<figure class=\"wide\"><figcaption><code>");
  report_text_c(value->name ? value->name : "a tile", out);
  tl_strbuf_append_c(out, " ");
  report_text(tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
  tl_strbuf_appendf(out,
                    "</code>: thread and register of each element, the first %d × %d</figcaption>"
                    "<svg width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"layout\">\n",
                    rows, columns, columns * CELL_X + 2, rows * CELL_Y + 2);
  for (int32_t i = 0; i < rows; i++) {
    for (int32_t j = 0; j < columns; j++) {
      int32_t coord[TL_MAX_RANK] = {0}, reg, lane, warp;
      if (layout->rank > 1) coord[layout->rank - 2] = i;
      coord[layout->rank - 1] = j;
      if (!tl_layout_find(layout, coord, &reg, &lane, &warp)) continue;
      tl_strbuf_appendf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"", j * CELL_X + 1,
                        i * CELL_Y + 1, CELL_X - 1, CELL_Y - 1);
      write_thread_color(lane, warp, out);
      tl_strbuf_appendf(out,
                        "\"><title>element [%d, %d]: thread %d (warp %d, lane %d), register %d</title></rect>"
                        "<text x=\"%d\" y=\"%d\">%d:%d</text>\n",
                        i, j, warp * 32 + lane, warp, lane, reg, j * CELL_X + 3, i * CELL_Y + 13, warp * 32 + lane,
                        reg);
    }
  }
  tl_strbuf_append_c(out, "</svg></figure>\n");
}

// Chunks of 16 bytes of a shared tile at their places: a row of the picture is 128 bytes, all banks once.
static void write_shared(const tl_op *op, tl_strbuf *out) {
  enum { CHUNK = 16, BANK_ROW = 128, CELL_X = 90, CELL_Y = 18 };
  const tl_type *type = tl_op_result(op, 0)->type;
  const tl_shared_layout *shared = tl_op_attr(op, TL_ATTR_SHARED_LAYOUT)->v.shared;
  int32_t shape[TL_MAX_RANK], bits = tl_dtype_bits(type->dtype);
  for (int32_t d = 0; d < type->rank; d++) shape[d] = (int32_t)type->dims[d];
  int32_t rows = type->rank > 1 ? shape[type->rank - 2] : 1, step = CHUNK * 8 / bits;
  tl_strbuf text = {0};
  tl_shared_layout_print(shared, &text);
  tl_strbuf_append_c(out, "<figure class=\"wide\"><figcaption><code>");
  report_text_c(report_name(op), out);
  tl_strbuf_append_c(out, " ");
  report_text(tl_strbuf_view(&text), out);
  tl_strbuf_fini(&text);
  tl_strbuf_appendf(out,
                    "</code>: which 16 bytes (row, first column) lie where; a line is 128 bytes, four banks a column"
                    "</figcaption><svg width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"shared tile\">\n",
                    CELL_X * 8 + 2, CELL_Y * MAX_ROWS + 2);
  for (int32_t i = 0; i < rows && i < MAX_ROWS; i++) {
    for (int32_t j = 0; step && j < shape[type->rank - 1]; j += step) {
      int32_t coord[TL_MAX_RANK] = {0};
      if (type->rank > 1) coord[type->rank - 2] = i;
      coord[type->rank - 1] = j;
      int64_t at = tl_shared_layout_offset(shared, shape, type->rank, bits, coord);
      int64_t line = at / BANK_ROW, column = at % BANK_ROW / CHUNK;
      if (line >= MAX_ROWS) continue;
      tl_strbuf_appendf(out,
                        "<rect x=\"%lld\" y=\"%lld\" width=\"%d\" height=\"%d\" fill=\"hsl(%d,60%%,82%%)\"><title>byte "
                        "%lld, banks %lld to %lld</title></rect><text x=\"%lld\" y=\"%lld\">%d, %d</text>\n",
                        (long long)column * CELL_X + 1, (long long)line * CELL_Y + 1, CELL_X - 1, CELL_Y - 1,
                        i * 47 % 360, (long long)at, (long long)column * 4, (long long)column * 4 + 3,
                        (long long)column * CELL_X + 5, (long long)line * CELL_Y + 13, i, j);
    }
  }
  tl_strbuf_append_c(out, "</svg></figure>\n");
}

void report_layouts(const tl_report *report, tl_strbuf *out) {
  walk w = walk_kernel(report);
  tl_strbuf_append_c(out, "<h2 id=\"layouts\">Layouts</h2>\n");
  for (uint32_t i = 0; i < w.num_layouts; i++) write_layout(w.values[i], w.layouts[i], out);
  for (uint32_t i = 0; i < w.num_tiles; i++) {
    const tl_op *op = w.tiles[i].op;
    if (op->code == TL_OP_ALLOC && tl_op_attr(op, TL_ATTR_SHARED_LAYOUT)) write_shared(op, out);
  }
  if (!w.num_layouts && !w.num_tiles) tl_strbuf_append_c(out, "<p>Each thread works on elements of its own.</p>\n");
}
