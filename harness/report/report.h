// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the compiler made of a kernel as one HTML page that needs nothing else: no network, no scripts.
#ifndef TL_HARNESS_REPORT_H
#define TL_HARNESS_REPORT_H

#include "harness/device/ptxas.h"
#include "ir/ir.h"
#include "support/diag.h"
#include "support/manifest.h"

// A measured case for the roofline. 0: not known.
typedef struct tl_report_point {
  const char *label;  // "{M: 8192} sm_90a"
  double flops, bytes, seconds;
  double peak_flops, peak_bytes;  // a second
  double roofline_seconds;
} tl_report_point;

typedef struct tl_report {
  const tl_module *module;  // at scheduled level
  const tl_sources *sources;
  const tl_diags *diags;  // with remarks
  const tl_manifest *manifest;
  tl_str ptx;                   // with lines (.loc)
  const tl_ptxas_usage *usage;  // NULL: ptxas was not found
  const char *ptxas_version;    // with `usage`
  const tl_report_point *points;
  uint32_t num_points;
  const char *bench_device;  // with points: what they were measured on
} tl_report;

// All of it borrowed.
void tl_report_write(const tl_report *report, tl_strbuf *out);

#endif
