// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of values in IR text: hints made unique, numbers for the rest.
#ifndef TL_IR_VALUE_NAMES_H
#define TL_IR_VALUE_NAMES_H

#include "ir/op_internal.h"
#include "support/strbuf.h"
#include "support/vec.h"

typedef struct tl_value_names {
  tl_arena arena;
  tl_strmap taken;    // name → next suffix to try after it
  tl_ptr_map values;  // value → index into list
  TL_VEC(const char *) list;
  uint32_t next_number;
} tl_value_names;

// Names every value defined in `block` and inside it, in the order of printing.
void tl_value_names_init(tl_value_names *names, const tl_block *block);
void tl_value_names_fini(tl_value_names *names);
// Without the '%'; NULL for a value that was not named (its definition is elsewhere or gone).
const char *tl_value_names_get(const tl_value_names *names, const tl_value *value);
// The name that a constant without a hint asks for ("c64", "cm1", "true"); false when it gets a number.
bool tl_const_default_name(const tl_op *op, tl_strbuf *out);

#endif
