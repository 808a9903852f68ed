// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types of PTX values (types.def).
#ifndef TL_PTX_TYPES_H
#define TL_PTX_TYPES_H

#include <stdbool.h>

#include "support/strview.h"

typedef enum tl_ptx_type {
  TL_PTX_NONE,
#define TL_PTX_TYPE(ID, name, class, bits) TL_PTX_##ID,
#include "ptx/text/types.def"
#undef TL_PTX_TYPE
  TL_PTX_NUM_TYPES
} tl_ptx_type;

typedef enum tl_ptx_class {
  TL_PTX_CLASS_NONE,
  TL_PTX_CLASS_PRED,
  TL_PTX_CLASS_BITS,
  TL_PTX_CLASS_UNSIGNED,
  TL_PTX_CLASS_SIGNED,
  TL_PTX_CLASS_FLOAT,
  TL_PTX_CLASS_PACKED
} tl_ptx_class;

// TL_PTX_NONE when there is no type of that name.
tl_ptx_type tl_ptx_type_parse(tl_str name);
const char *tl_ptx_type_name(tl_ptx_type type);
tl_ptx_class tl_ptx_type_class(tl_ptx_type type);
unsigned tl_ptx_type_bits(tl_ptx_type type);
// Of memory: a whole number of bytes.
unsigned tl_ptx_type_bytes(tl_ptx_type type);
// The integer or float of twice the width with the same class; NONE when there is none.
tl_ptx_type tl_ptx_type_wide(tl_ptx_type type);

#endif
