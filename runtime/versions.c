// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/versions.h"

#include <string.h>

#include "support/status.h"

static bool has_divisor(const tl_launch_plan *plan, const tl_manifest_param *param) {
  for (size_t i = 0; i < plan->num_bindings; i++)
    if (strcmp(plan->bindings[i].name, param->name) == 0) return plan->bindings[i].value % param->divisor == 0;
  return param->divisor <= 1;  // the kernel itself does not need it
}

bool tl_launch_plan_is_aligned(const tl_manifest_kernel *kernel, const tl_launch_plan *plan,
                               const tl_manifest_kernel *aligned) {
  for (uint32_t i = 0; i < aligned->num_params; i++)
    if (aligned->params[i].kind == TL_MPARAM_DYNAMIC && !has_divisor(plan, &aligned->params[i])) return false;
  // Arguments come first in both, in one order.
  for (uint32_t i = 0; i < aligned->num_params && i < kernel->num_params; i++) {
    const tl_manifest_param *param = &aligned->params[i];
    if (param->kind != TL_MPARAM_TENSOR || param->align <= 1) continue;
    if (kernel->params[i].kind != TL_MPARAM_TENSOR) return false;
    if ((uintptr_t) * (void **)plan->params[i] % (uintptr_t)param->align != 0) return false;
  }
  return true;
}

tl_status tl_launch_plan_version(const tl_manifest *manifest, uint32_t index, const tl_argument *arguments,
                                 size_t num_arguments, const tl_launch_facts *facts,
                                 const tl_launch_facts *aligned_facts, tl_launch_plan *out_plan, uint32_t *out_index) {
  const tl_manifest_kernel *kernel = &manifest->kernels[index];
  *out_index = index;
  TL_TRY(tl_launch_plan_create(kernel, arguments, num_arguments, facts, out_plan));
  if (!kernel->aligned || !aligned_facts) return TL_OK;
  const tl_manifest_kernel *aligned = &manifest->kernels[kernel->aligned];
  if (!tl_launch_plan_is_aligned(kernel, out_plan, aligned)) return TL_OK;
  tl_launch_plan plan;
  tl_status status = tl_launch_plan_create(aligned, arguments, num_arguments, aligned_facts, &plan);
  if (status) {  // a tensor map that cannot be made
    tl_status_free(status);
    return TL_OK;
  }
  tl_launch_plan_fini(out_plan);
  *out_plan = plan;
  *out_index = kernel->aligned;
  return TL_OK;
}
