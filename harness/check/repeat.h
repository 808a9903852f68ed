// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A case that passed, launched many times more: a third on one stream, a third on two at once with memory of their own,
// a third out of a graph. Before each launch memory is as it was before the first one.
#ifndef TL_HARNESS_REPEAT_H
#define TL_HARNESS_REPEAT_H

#include "harness/device/run.h"
#include "harness/reference/reference.h"

typedef struct tl_repeat_request {
  tl_run_device *device;        // Borrowed, as all that follows. The emulator runs the PTX, behind its driver
  tl_run_kernel *loaded;        // on the device
  const tl_compiled *compiled;  // what `loaded` was made of
  const tl_kernel_spec *kernel;
  const tl_case *one_case;  // its own tolerances; or NULL
  const tl_env *env;
  const tl_reference *reference;  // evaluated
  tl_diags *diags;
  const tl_run_args *args, *before;  // `args` after a launch; inout arguments before it
  const tl_mbinding *dynamics;
  size_t num_dynamics;
  uint32_t launches;  // at least TL_REPEAT_LEAST
  // Before launches of a GPU, as "launches 1 to 64 on one stream", and with NULL behind: what limits their time.
  void (*step)(void *user, const char *what);
  void (*say)(void *user, const char *line);  // a line of the report
  void *user;
} tl_repeat_request;

enum { TL_REPEAT_LEAST = 3, TL_REPEAT_MOST = 1000000000 };

// Launches and compares every result with the first launch's, bit for bit; where the kernel adds in the order in which
// threads come (tl_compiled_find_order) with the reference, within the case's tolerance. CHECK_FAILED says which launch
// gave another result, and how it was launched; a failure of a launch says likewise among which it was.
TL_MUST_USE tl_status tl_repeat_run(const tl_repeat_request *request);

// Whether results may differ from launch to launch by what the compiled module does: floats are added by atomics, or an
// atomic's previous value is used (tickets, locks). Then `out` says where: "additions of f32 at sum.yaml:12".
bool tl_compiled_find_order(const tl_compiled *compiled, tl_strbuf *out);

#endif
