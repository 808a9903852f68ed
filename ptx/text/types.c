// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ptx/text/types.h"

static const struct {
  const char *name;
  tl_ptx_class class;
  unsigned bits;
} rows[TL_PTX_NUM_TYPES] = {
    [TL_PTX_NONE] = {"none", TL_PTX_CLASS_NONE, 0},
#define TL_PTX_TYPE(ID, name, class, bits) [TL_PTX_##ID] = {name, TL_PTX_CLASS_##class, bits},
#include "ptx/text/types.def"
#undef TL_PTX_TYPE
};

tl_ptx_type tl_ptx_type_parse(tl_str name) {
  for (int i = TL_PTX_NONE + 1; i < TL_PTX_NUM_TYPES; i++)
    if (tl_str_is(name, rows[i].name)) return (tl_ptx_type)i;
  return TL_PTX_NONE;
}

const char *tl_ptx_type_name(tl_ptx_type type) {
  return rows[type].name;
}

tl_ptx_class tl_ptx_type_class(tl_ptx_type type) {
  return rows[type].class;
}

unsigned tl_ptx_type_bits(tl_ptx_type type) {
  return rows[type].bits;
}

unsigned tl_ptx_type_bytes(tl_ptx_type type) {
  return (rows[type].bits + 7) / 8;
}

tl_ptx_type tl_ptx_type_wide(tl_ptx_type type) {
  if (rows[type].class == TL_PTX_CLASS_PACKED || rows[type].class == TL_PTX_CLASS_PRED) return TL_PTX_NONE;
  for (int i = TL_PTX_NONE + 1; i < TL_PTX_NUM_TYPES; i++)
    if (rows[i].class == rows[type].class && rows[i].bits == 2 * rows[type].bits) return (tl_ptx_type)i;
  return TL_PTX_NONE;
}
