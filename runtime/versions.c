// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/versions.h"

#include <string.h>

#include "support/status.h"

static const tl_argument *find_named(const char *name, const tl_argument *arguments, size_t num_arguments) {
  for (size_t i = 0; i < num_arguments; i++)
    if (arguments[i].name && strcmp(arguments[i].name, name) == 0) return &arguments[i];
  return NULL;
}

// What param `index` is given: the argument of its name, else the one whose turn it is among those without. NULL: none.
static const tl_argument *argument_of(const tl_manifest_kernel *kernel, uint32_t index, const tl_argument *arguments,
                                      size_t num_arguments) {
  const tl_argument *named = find_named(kernel->params[index].name, arguments, num_arguments);
  if (named) return named;
  size_t turn = 0;
  for (uint32_t i = 0; i < index; i++) {
    tl_manifest_param_kind kind = kernel->params[i].kind;
    bool is_visible = kind == TL_MPARAM_TENSOR || kind == TL_MPARAM_SCALAR;
    if (is_visible && !find_named(kernel->params[i].name, arguments, num_arguments)) turn++;
  }
  for (size_t i = 0; i < num_arguments; i++)
    if (!arguments[i].name && turn-- == 0) return &arguments[i];
  return NULL;
}

static bool names(const tl_mexpr *expr, const char *name) {
  const char *own = tl_mexpr_as_name(expr);
  return own && strcmp(own, name) == 0;
}

// Whether what the tensor gives the name, if it does, is a multiple of `divisor`; `*out_known` when it does.
static bool tensor_divides(const tl_manifest_param *param, const tl_argument *given, const tl_manifest_param *dynamic,
                           bool *out_known) {
  const tl_tensor *tensor = &given->tensor;
  if (given->kind != TL_ARGUMENT_TENSOR || tensor->rank != param->rank || !tensor->shape) return true;
  int64_t dense = 1;
  for (int32_t d = param->rank - 1; d >= 0; d--) {
    int64_t stride = tensor->strides ? tensor->strides[d] : dense;
    if (__builtin_mul_overflow(dense, tensor->shape[d], &dense)) dense = 0;
    for (int side = 0; side < 2; side++) {
      if (!names(side ? param->strides[d] : param->dims[d], dynamic->name)) continue;
      if (side && tensor->shape[d] <= 1) continue;  // nobody uses it, and it may be anything
      *out_known = true;
      if ((side ? stride : tensor->shape[d]) % dynamic->divisor != 0) return false;
    }
  }
  return true;
}

// A name has one value, or the launch is refused: it does not matter which tensor gives it.
static bool has_divisor(const tl_manifest_kernel *aligned, const tl_manifest_param *dynamic,
                        const tl_argument *arguments, size_t num_arguments) {
  const tl_argument *named = find_named(dynamic->name, arguments, num_arguments);
  if (named) return named->int_value % dynamic->divisor == 0;
  bool is_known = false;
  for (uint32_t i = 0; i < aligned->num_params && !is_known; i++) {
    const tl_manifest_param *param = &aligned->params[i];
    if (param->kind != TL_MPARAM_TENSOR) continue;
    const tl_argument *given = argument_of(aligned, i, arguments, num_arguments);
    if (given && !tensor_divides(param, given, dynamic, &is_known)) return false;
  }
  return is_known;
}

bool tl_launch_has_divisors(const tl_manifest_kernel *aligned, const tl_argument *arguments, size_t num_arguments) {
  for (uint32_t i = 0; i < aligned->num_params; i++) {
    const tl_manifest_param *param = &aligned->params[i];
    if (param->kind == TL_MPARAM_DYNAMIC && param->divisor > 1 &&
        !has_divisor(aligned, param, arguments, num_arguments))
      return false;
  }
  return true;
}

static bool is_aligned(const tl_manifest_param *param, const tl_argument *given) {
  if (param->kind != TL_MPARAM_TENSOR || param->align <= 1) return true;
  return (uintptr_t)given->tensor.data % (uintptr_t)param->align == 0;
}

bool tl_launch_has_alignments(const tl_manifest_kernel *aligned, const tl_argument *arguments, size_t num_arguments) {
  for (uint32_t i = 0; i < aligned->num_params; i++) {
    if (aligned->params[i].kind != TL_MPARAM_TENSOR) continue;
    const tl_argument *given = argument_of(aligned, i, arguments, num_arguments);
    if (given && given->kind == TL_ARGUMENT_TENSOR && !is_aligned(&aligned->params[i], given)) return false;
  }
  return true;
}

bool tl_launch_plan_has_alignments(const tl_manifest_kernel *aligned, const tl_launch_plan *plan,
                                   const tl_argument *arguments, size_t num_arguments) {
  for (size_t i = 0; i < num_arguments; i++)
    if (!is_aligned(&aligned->params[plan->param_of[i]], &arguments[i])) return false;
  return true;
}

tl_status tl_launch_plan_version(const tl_manifest *manifest, uint32_t index, const tl_argument *arguments,
                                 size_t num_arguments, const tl_launch_facts *facts,
                                 const tl_launch_facts *aligned_facts, tl_launch_plan *out_plan, uint32_t *out_index) {
  const tl_manifest_kernel *kernel = &manifest->kernels[index];
  const tl_manifest_kernel *aligned = kernel->aligned && aligned_facts ? &manifest->kernels[kernel->aligned] : NULL;
  if (aligned && tl_launch_has_divisors(aligned, arguments, num_arguments) &&
      tl_launch_has_alignments(aligned, arguments, num_arguments)) {
    *out_index = kernel->aligned;
    tl_status status = tl_launch_plan_create(aligned, arguments, num_arguments, aligned_facts, out_plan);
    if (!status) return TL_OK;
    tl_status_free(status);  // a tensor map that cannot be made, or what the kernel itself refuses below
  }
  *out_index = index;
  return tl_launch_plan_create(kernel, arguments, num_arguments, facts, out_plan);
}
