// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pinned compiler output: PTX text, and facts about it that outlive a change of LLVM.
#ifndef TL_HARNESS_GOLDEN_H
#define TL_HARNESS_GOLDEN_H

#include <stdbool.h>

#include "harness/device/ptxas.h"
#include "support/manifest.h"
#include "support/strbuf.h"
#include "support/vec.h"

// One line of the list: "NAME SPEC [PARAM=VALUE …] [kernel=NAME] targets=sm_80,sm_90a". '#' starts a comment.
typedef struct tl_golden {
  tl_str name, spec, targets;
  tl_str kernel;  // or chain; empty: the file's first
  TL_VEC(tl_str) bindings;
  int line;  // of the list
} tl_golden;
typedef TL_VEC(tl_golden) tl_goldens;

// Parses the list; texts are borrowed from it. INVALID_ARGUMENT says what is wrong first, as "path:line: …": too few
// words, a word that is no NAME=VALUE, an unknown target, a second golden of one name (their files would be the same).
TL_MUST_USE tl_status tl_goldens_parse(const char *path, tl_str text, tl_goldens *out);
void tl_goldens_fini(tl_goldens *goldens);

// The facts of one PTX text, one "key value" a line:
//   llvm 22.1.8
//   threads 128, shared 49152
//   mma 64, ldmatrix 24, … (what the compiler chose: must not change with LLVM), other 512 (compared under one LLVM
//   only) ptxas 13.0.88: registers 122, spills 0, stack 0 (absent without ptxas)
void tl_golden_facts(tl_str ptx, const tl_manifest *manifest, const char *llvm_version, const tl_ptxas *ptxas,
                     const tl_ptxas_usage *usage, tl_strbuf *out);

// Compares recorded facts with new ones. Appends the lines that differ ("- old", "+ new"); true when none does. A ptxas
// line that cannot be compared (no ptxas, or another version) counts in `*skipped`.
bool tl_golden_facts_compare(tl_str recorded, tl_str made, uint32_t *skipped, tl_strbuf *out_differences);
// The value behind `key ` in facts; empty when absent.
tl_str tl_golden_fact(tl_str facts, const char *key);

// What changed between two PTX texts and their facts as a table, "class old → new difference", one line a class that
// changed: instructions (loads and stores by the bytes a thread moves), threads, shared bytes, and from ptxas, when
// both facts come from one version of it, registers and spills. False when no count differs.
bool tl_golden_explain(tl_str old_ptx, tl_str old_facts, tl_str new_ptx, tl_str new_facts, tl_strbuf *out);
// The same in few words for one line: up to `max_items` classes, "mma 64 → 32, registers 122 → 130, …".
void tl_golden_summarize(tl_str old_ptx, tl_str old_facts, tl_str new_ptx, tl_str new_facts, uint32_t max_items,
                         tl_strbuf *out);

// The difference of two texts in unified form. After `max_lines` lines of it (0: all) one more says how many follow.
void tl_golden_diff(tl_str old_text, tl_str new_text, const char *name, size_t max_lines, tl_strbuf *out);

#endif
