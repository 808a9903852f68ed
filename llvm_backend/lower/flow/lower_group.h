// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Control flow of the elements of a group that a parallel runs together.
#ifndef TL_LLVM_BACKEND_LOWER_GROUP_H
#define TL_LLVM_BACKEND_LOWER_GROUP_H

#include "llvm_backend/lower/state/lower.h"

// Whether the elements of the current group have values of their own.
bool tl_lower_varies(tl_lower *l, const tl_value *value);
// Lowers an IF or FOR once for each element of the current group.
void tl_lower_by_elements(tl_lower *l, tl_op *op);
// An IF whose condition varies within the current group.
void tl_lower_varying_if(tl_lower *l, tl_op *op);

#endif
