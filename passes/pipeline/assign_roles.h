// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of assign-roles.
#ifndef TL_PASSES_ASSIGN_ROLES_H
#define TL_PASSES_ASSIGN_ROLES_H

#include "passes/analysis/dependence.h"
#include "passes/manager/passes.h"

// Statements of a kernel and what they need. Sets: the order is that of marking.
typedef struct tl_role_slice {
  tl_op_list ops;             // control included
  TL_VEC(tl_value *) values;  // results and carried values of that control which are needed
} tl_role_slice;

// Adds a statement of a role with all that it needs; what stands in front of the roles all have. Returns why the role
// could not compute that, or NULL; the slice then holds what was found until there.
const char *tl_role_slice_add(tl_role_slice *slice, tl_op *op);
// Copies what the slice holds of `from` to the end of `to`.
void tl_role_slice_clone(tl_module *module, const tl_role_slice *slice, const tl_block *from, tl_block *to);
void tl_role_slice_fini(tl_role_slice *slice);

// Why roles do not pay in a kernel whose author leaves it open, or NULL. `math_registers`: what each thread that
// computes would have; 0: registers are not shared out.
const char *tl_roles_choice_obstacle(tl_op *kernel, int64_t math_registers);
// Whether assign-roles will give rings of the kernel, which the pipeline has made, to warps of their own, as far as is
// known before the kernel's other loops are pipelined. What hangs on it pays or not, but is right in both cases.
bool tl_roles_expected(tl_pass_context *context, tl_op *kernel);
// Registers that a thread which computes has when one warpgroup loads; 0: those of the kernel's beginning.
int64_t tl_roles_math_registers(tl_pass_context *context, tl_op *kernel);
// Why blocks that stay for one tile of the grid after the other do not pay in a kernel of rings whose author leaves it
// open, or NULL. They pay where the next tile's loads and this one's stores overlap what is computed.
const char *tl_tiles_choice_obstacle(tl_pass_context *context, tl_op *kernel, const tl_op *grid);

#endif
