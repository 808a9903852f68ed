// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values of `auto` params for tests of stages that cannot ask the cost model: the first one that `tune` lists.
#ifndef TL_TEST_UNIT_AUTO_PARAMS_H
#define TL_TEST_UNIT_AUTO_PARAMS_H

#include "frontend/elaborate/instantiate.h"

// Appends a binding for each `auto` param of `kernel` that the `len` ones of `out` do not give; returns how many there
// are then. `out` has room for `max`; bindings past it are left out, and so are params that `tune` does not list.
static inline uint32_t bind_auto_params(const tl_kernel_spec *kernel, tl_binding *out, uint32_t len, uint32_t max) {
  for (uint32_t p = 0; p < kernel->num_params; p++) {
    const tl_param *param = &kernel->params[p];
    const tl_binding *given = NULL;
    for (uint32_t i = 0; i < len; i++)
      if (tl_str_equal(out[i].name, param->name)) given = &out[i];
    if (given || !tl_param_is_auto(param, NULL)) continue;
    for (uint32_t t = 0; t < kernel->tune.num_params && len < max; t++) {
      const tl_tune_param *tune = &kernel->tune.params[t];
      if (tl_str_equal(tune->name, param->name)) out[len++] = (tl_binding){param->name, tune->values[0], tune->loc};
    }
  }
  return len;
}

#endif
