// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measured cases beside what the hardware could do: operations a second over operations a byte, both logarithmic.
#include <math.h>

#include "harness/report/report_internal.h"

enum { WIDTH = 700, HEIGHT = 320, LEFT = 60, BOTTOM = 290, TOP = 10 };

typedef struct axes {
  double x_low, x_high, y_low, y_high;  // log10
} axes;

static double x_of(const axes *a, double intensity) {
  return LEFT + (log10(intensity) - a->x_low) / (a->x_high - a->x_low) * (WIDTH - LEFT - 40);
}

static double y_of(const axes *a, double rate) {
  return BOTTOM - (log10(rate) - a->y_low) / (a->y_high - a->y_low) * (BOTTOM - TOP);
}

static axes make_axes(const tl_report_point *points, uint32_t len) {
  axes a = {1e9, -1e9, 1e9, -1e9};
  for (uint32_t i = 0; i < len; i++) {
    const tl_report_point *p = &points[i];
    double x = log10(p->flops / p->bytes), ridge = log10(p->peak_flops / p->peak_bytes);
    a.x_low = fmin(a.x_low, fmin(x, ridge));
    a.x_high = fmax(a.x_high, fmax(x, ridge));
    a.y_low = fmin(a.y_low, log10(p->flops / p->seconds));
    a.y_high = fmax(a.y_high, log10(p->peak_flops));
  }
  a.x_low = floor(a.x_low - 0.3);
  a.x_high = ceil(a.x_high + 0.3);
  a.y_low = floor(a.y_low - 0.3);
  a.y_high = ceil(a.y_high + 0.1);
  return a;
}

static void write_roof(const axes *a, const tl_report_point *p, tl_strbuf *out) {
  double ridge = p->peak_flops / p->peak_bytes, low = pow(10, a->x_low), high = pow(10, a->x_high);
  double from = fmax(low, pow(10, a->y_low) / p->peak_bytes);
  tl_strbuf_appendf(
      out, "<polyline points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\" fill=\"none\" stroke=\"#36c\" stroke-width=\"2\"/>\n",
      x_of(a, from), y_of(a, from * p->peak_bytes), x_of(a, ridge), y_of(a, p->peak_flops), x_of(a, high),
      y_of(a, p->peak_flops));
}

static void write_grid(const axes *a, tl_strbuf *out) {
  for (double x = a->x_low; x <= a->x_high; x++)
    tl_strbuf_appendf(
        out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#eee\"/><text x=\"%.1f\" y=\"%d\">%g</text>\n",
        x_of(a, pow(10, x)), TOP, x_of(a, pow(10, x)), BOTTOM, x_of(a, pow(10, x)) - 6, BOTTOM + 14, pow(10, x));
  for (double y = a->y_low; y <= a->y_high; y++)
    tl_strbuf_appendf(
        out,
        "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#eee\"/><text x=\"2\" y=\"%.1f\">%g T</text>\n",
        LEFT, y_of(a, pow(10, y)), WIDTH - 40, y_of(a, pow(10, y)), y_of(a, pow(10, y)) + 4, pow(10, y - 12));
}

static void write_table(const tl_report *report, tl_strbuf *out) {
  tl_strbuf_append_c(
      out,
      "<table><tr><th></th><th>case</th><th>time</th><th>TFLOP/s</th><th>GB/s</th><th>of the roofline</th></tr>\n");
  for (uint32_t i = 0; i < report->num_points; i++) {
    const tl_report_point *p = &report->points[i];
    tl_strbuf_appendf(out, "<tr><td>%u</td><td>", i + 1);
    report_text_c(p->label, out);
    tl_strbuf_appendf(out, "</td><td>%.4g µs</td><td>", p->seconds * 1e6);
    if (p->flops > 0) tl_strbuf_appendf(out, "%.4g", p->flops / p->seconds * 1e-12);
    tl_strbuf_append_c(out, "</td><td>");
    if (p->bytes > 0) tl_strbuf_appendf(out, "%.4g", p->bytes / p->seconds * 1e-9);
    tl_strbuf_append_c(out, "</td><td>");
    if (p->roofline_seconds > 0) tl_strbuf_appendf(out, "%.1f %%", 100 * p->roofline_seconds / p->seconds);
    tl_strbuf_append_c(out, "</td></tr>\n");
  }
  tl_strbuf_append_c(out, "</table>\n");
}

static bool can_draw(const tl_report_point *p) {
  return p->flops > 0 && p->bytes > 0 && p->peak_flops > 0 && p->peak_bytes > 0;
}

void report_roofline(const tl_report *report, tl_strbuf *out) {
  if (!report->num_points) return;
  tl_strbuf_append_c(out, "<h2 id=\"roofline\">Roofline</h2>\n<p>Cold launches (burst) of an earlier run on ");
  report_text_c(report->bench_device, out);
  tl_strbuf_append_c(out, ".</p>\n");
  bool all = true;
  for (uint32_t i = 0; i < report->num_points; i++) all = all && can_draw(&report->points[i]);
  if (all) {
    axes a = make_axes(report->points, report->num_points);
    tl_strbuf_appendf(out,
                      "<figure class=\"wide\"><svg width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"roofline\">\n",
                      WIDTH, HEIGHT);
    write_grid(&a, out);
    for (uint32_t i = 0; i < report->num_points; i++) {
      const tl_report_point *p = &report->points[i];
      double x = x_of(&a, p->flops / p->bytes), y = y_of(&a, p->flops / p->seconds);
      write_roof(&a, p, out);
      tl_strbuf_appendf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"#c55\"><title>", x, y);
      report_text_c(p->label, out);
      tl_strbuf_appendf(out, "</title></circle><text x=\"%.1f\" y=\"%.1f\">%u</text>\n", x + 8, y + 4, i + 1);
    }
    tl_strbuf_append_c(out,
                       "</svg><figcaption>Operations a second over operations a byte. The line is what memory, then "
                       "arithmetic allow.</figcaption></figure>\n");
  }
  write_table(report, out);
}
