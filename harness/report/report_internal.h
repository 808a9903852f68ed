// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TL_HARNESS_REPORT_INTERNAL_H
#define TL_HARNESS_REPORT_INTERNAL_H

#include "harness/report/report.h"

// report_part.c
// Text with the four characters that HTML takes for its own.
void report_text(tl_str text, tl_strbuf *out);
void report_text_c(const char *text, tl_strbuf *out);
// The number of the line in the main spec that a place is on; 0: none.
uint32_t report_line(const tl_report *report, tl_loc loc);
// A tile's name and place where messages have them: "A_s".
const char *report_name(const tl_op *op);
// A colour for a tile, a ring or an iteration.
const char *report_color(uint32_t i);

// report_pictures.c
void report_memory(const tl_report *report, tl_strbuf *out);
void report_layouts(const tl_report *report, tl_strbuf *out);
void report_rings(const tl_report *report, tl_strbuf *out);
// report_timeline.c: nothing where nothing is pipelined. `depth`: the most buffers that a ring has.
void report_timeline(const tl_report *report, int64_t depth, tl_strbuf *out);
// report_roofline.c: nothing without measured cases
void report_roofline(const tl_report *report, tl_strbuf *out);
// report_code.c
void report_code(const tl_report *report, tl_strbuf *out);

#endif
