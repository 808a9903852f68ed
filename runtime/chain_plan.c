// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <stdlib.h>
#include <string.h>

#include "runtime/chain.h"
#include "support/status.h"

static tl_status eval(const tl_chain_launch_plan *plan, const tl_mexpr *expr, int64_t *out) {
  return tl_mexpr_eval(expr, plan->signature.bindings, plan->signature.num_bindings, out);
}

static tl_status size_buffers(tl_chain_launch_plan *plan) {
  const tl_manifest_chain *chain = plan->chain;
  plan->buffer_bytes = calloc(chain->num_buffers + 1, sizeof(int64_t));
  plan->buffer_offsets = calloc(chain->num_buffers + 1, sizeof(int64_t));
  if (!plan->buffer_bytes || !plan->buffer_offsets) return tl_status_out_of_memory();
  for (uint32_t i = 0; i < chain->num_buffers; i++) {
    int64_t *bytes = &plan->buffer_bytes[i];
    TL_TRY(tl_status_annotate(eval(plan, chain->buffers[i].bytes, bytes), "buffer '%s'", chain->buffers[i].name));
    int64_t padded;
    if (*bytes < 0 || __builtin_add_overflow(*bytes, TL_CHAIN_ALIGN - 1, &padded) ||
        __builtin_add_overflow(plan->workspace_bytes, padded / TL_CHAIN_ALIGN * TL_CHAIN_ALIGN, &padded))
      return tl_status_make(TL_STATUS_LIMIT, "buffer '%s' is too large", chain->buffers[i].name);
    plan->buffer_offsets[i] = plan->workspace_bytes;
    plan->workspace_bytes = padded;
  }
  return TL_OK;
}

tl_status tl_chain_launch_plan_create(const tl_manifest_chain *chain, const tl_argument *arguments,
                                      size_t num_arguments, const tl_launch_facts *facts,
                                      tl_chain_launch_plan *out_plan) {
  *out_plan = (tl_chain_launch_plan){.chain = chain};
  TL_TRY(tl_launch_plan_create(&chain->signature, arguments, num_arguments, facts, &out_plan->signature));
  tl_arena_init(&out_plan->step);
  tl_status status = size_buffers(out_plan);
  if (status) tl_chain_launch_plan_fini(out_plan);
  return status;
}

void tl_chain_launch_plan_fini(tl_chain_launch_plan *plan) {
  tl_launch_plan_fini(&plan->signature);
  tl_arena_fini(&plan->step);
  free(plan->buffer_bytes);
  free(plan->buffer_offsets);
  *plan = (tl_chain_launch_plan){0};
}

static tl_status make_memory(tl_chain_launch_plan *plan, const tl_manifest_given *given, void *const *buffers,
                             tl_argument *out) {
  int64_t *dims = TL_NEW_ARRAY(&plan->step, int64_t, given->rank + 1);
  int64_t *strides = TL_NEW_ARRAY(&plan->step, int64_t, given->rank + 1);
  for (int32_t i = 0; i < given->rank; i++) {
    TL_TRY(eval(plan, given->dims[i], &dims[i]));
    TL_TRY(eval(plan, given->strides[i], &strides[i]));
  }
  void *memory =
      given->kind == TL_MGIVEN_BUFFER ? buffers[given->index] : *(void **)plan->signature.params[given->index];
  *out = tl_argument_tensor(given->name, memory, tl_dtype_name(given->dtype), given->rank, dims);
  out->tensor.strides = strides;
  return TL_OK;
}

static tl_status make_argument(tl_chain_launch_plan *plan, const tl_manifest_given *given, void *const *buffers,
                               tl_argument *out) {
  const tl_manifest_param *param = &plan->chain->signature.params[given->index];
  const void *value = plan->signature.params[given->index];
  int64_t number = 0;
  switch (given->kind) {
    case TL_MGIVEN_ARGUMENT:
    case TL_MGIVEN_BUFFER:
      return make_memory(plan, given, buffers, out);
    case TL_MGIVEN_SCALAR:
      *out = tl_dtype_is_float(param->dtype)
                 ? tl_argument_float(given->name, tl_dtype_load_float(param->dtype, value, 0))
                 : tl_argument_int(given->name, tl_dtype_load_int(param->dtype, value, 0));
      return TL_OK;
    case TL_MGIVEN_INT:
      TL_TRY(eval(plan, given->value, &number));
      *out = tl_argument_int(given->name, number);
      return TL_OK;
    case TL_MGIVEN_FLOAT:
      *out = tl_argument_float(given->name, given->number);
      return TL_OK;
  }
  return TL_OK;
}

tl_status tl_chain_launch_plan_step(tl_chain_launch_plan *plan, uint32_t index, void *const *buffers,
                                    const tl_argument **out_arguments, size_t *out_num_arguments) {
  const tl_manifest_step *step = &plan->chain->steps[index];
  tl_arena_fini(&plan->step);
  tl_arena_init(&plan->step);
  plan->arguments = TL_NEW_ARRAY(&plan->step, tl_argument, step->num_given + 1);
  for (uint32_t i = 0; i < step->num_given; i++)
    TL_TRY(tl_status_annotate(make_argument(plan, &step->given[i], buffers, &plan->arguments[i]), "argument '%s'",
                              step->given[i].name));
  *out_arguments = plan->arguments;
  *out_num_arguments = step->num_given;
  return TL_OK;
}
