// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What checked launches found: records, their text and their JSON.
#ifndef TL_EMULATOR_FINDINGS_H
#define TL_EMULATOR_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "emulator/machine/emulator.h"
#include "support/strbuf.h"
#include "support/vec.h"

typedef enum tl_emu_finding_kind {
  TL_EMU_FINDING_RACE,           // two accesses, one a write, without an order
  TL_EMU_FINDING_PROXY,          // order, but no proxy fence
  TL_EMU_FINDING_UNINITIALISED,  // a read of what nobody wrote
  TL_EMU_FINDING_BOUNDS,
  TL_EMU_FINDING_ALIGNMENT,
  TL_EMU_FINDING_BLOCKS,  // a race between blocks, in global memory
  TL_EMU_FINDING_ASYNC,   // asynchronous work that nobody waited for
  TL_EMU_FINDING_MISUSE,  // an operation whose operands or surroundings the PTX ISA rules out
  TL_EMU_FINDING_COUNT
} tl_emu_finding_kind;

// "race,init": bits of TL_EMU_SANITIZE_…; "all", "none". False: `*out_unknown` is a part that names no check.
bool tl_emu_sanitize_parse(tl_str text, uint32_t *out_checks, tl_str *out_unknown);

// "race". Static.
const char *tl_emu_finding_kind_name(tl_emu_finding_kind kind);

// One of the two accesses of a finding. Texts are owned.
typedef struct tl_emu_finding_side {
  char *op;       // "load", "store" or the device op; NULL: there is no such side
  char *action;   // "reads 4 bytes"
  char *agent;    // "thread 37 (warp 1, lane 5)", "the cp.async copy of thread 3 (warp 0, lane 3)"
  uint32_t call;  // number among the module's device ops; 0 for plain accesses
  char *file;     // of the spec; NULL when not known
  uint32_t line;  // 0: not known
  char *text;     // that line of the spec; NULL when not known
  char *uses;     // of macros that led to the line, "spec.yaml:20, spec.yaml:31", the innermost first; or NULL
  uint32_t block[3];
  int64_t tile;    // of a persistent kernel; -1: not known, or none
  int32_t thread;  // of its block
} tl_emu_finding_side;

typedef struct tl_emu_finding {
  tl_emu_finding_kind kind;
  char *kernel;
  tl_emu_finding_side now, before;
  char *place;    // "tile As[3, 8] (shared memory, byte 1032)"
  char *missing;  // what would have ordered the two, or what else is wrong
  char *more;     // a few other places that the same lines touch so: "x[10, 3] (…), x[6, 3] (…)"; or NULL
  uint32_t num_more;
  uint64_t count;  // times that these two places did this
} tl_emu_finding;

// Zeroed: none. In the order of blocks, then of execution.
struct tl_emu_findings {
  TL_VEC(tl_emu_finding) list;
  uint64_t untold;  // findings at further places: a block keeps 1000
};

void tl_emu_findings_fini(tl_emu_findings *findings);
// Moves what `from` has to the end of `to`; equal findings (kind, kernel and places in the spec) become one.
void tl_emu_findings_merge(tl_emu_findings *to, tl_emu_findings *from);
// As a compiler prints its messages; at most `limit` of them (0: all).
void tl_emu_findings_print(const tl_emu_findings *findings, size_t limit, tl_strbuf *out);
// {"findings": [{"kind": …, "kernel": …, "count": …, "access": {…}, "earlier": {…}, "place": …, "missing": …}]}, with
// "also_at" and "untold" where there are any
void tl_emu_findings_print_json(const tl_emu_findings *findings, tl_strbuf *out);

#endif
