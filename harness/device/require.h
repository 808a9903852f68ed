// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// --require: whether every statement that could got what the caller insists on. Decides nothing: the code is the same
// without it.
#ifndef TL_HARNESS_REQUIRE_H
#define TL_HARNESS_REQUIRE_H

#include "ir/ir.h"
#include "ir/target.h"
#include "support/diag.h"

// A set of these.
typedef enum tl_requirement {
  TL_REQUIRE_TMA = 1,      // copies of pipelined loops from tensors into shared tiles
  TL_REQUIRE_WGMMA = 2,    // gemms
  TL_REQUIRE_ROLES = 4,    // pipelined loops with such copies: warps of their own bring the tiles
  TL_REQUIRE_OVERLAP = 8,  // gemms of pipelined loops: in flight while their threads do other things
  TL_REQUIRE_NO_SPILL = 16,
  TL_REQUIRE_VECTOR = 32,           // loads and stores of elements in global memory: 8 bytes or more at a time
  TL_REQUIRE_NO_BANK_CONFLICT = 64  // those in shared memory
} tl_requirement;

// The word of the command line, NULL behind the last. `index` counts from 0: requirement 1 << index.
const char *tl_requirement_name(int index);
// A list of such words with commas, added to `*set`. False: `*out_unknown` (in `list`) is none.
bool tl_requirements_parse(tl_str list, unsigned *set, tl_str *out_unknown);

typedef struct tl_required_statement {
  tl_requirement kind;
  tl_loc loc;
  tl_loc loop;  // the pipelined loop around it; of a loop itself
} tl_required_statement;

typedef struct tl_requirements {
  TL_VEC(tl_required_statement) statements;
} tl_requirements;

// The statements that a set of requirements is about, in a module before the passes. tl_requirements_fini frees them.
void tl_requirements_collect(tl_module *module, unsigned required, tl_requirements *out);
// Reports every one of them that did not get it in `module`, the same after the passes, with the remarks at its place
// as notes (where `diags` keeps remarks). What the passes removed is not missing.
void tl_requirements_report(const tl_requirements *requirements, tl_module *module, const tl_target *target,
                            tl_diags *diags);
void tl_requirements_fini(tl_requirements *requirements);

#endif
