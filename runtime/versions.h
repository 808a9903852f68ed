// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which version of a kernel a launch takes. Knows no driver; the GPU launcher and the emulator ask the same.
#ifndef TL_RUNTIME_VERSIONS_H
#define TL_RUNTIME_VERSIONS_H

#include "runtime/arguments.h"

// Whether a launch of `kernel` as `plan` says has the divisors and alignments of its version `aligned`. Whether its
// tensor maps can be made shows when it is planned.
bool tl_launch_plan_is_aligned(const tl_manifest_kernel *kernel, const tl_launch_plan *plan,
                               const tl_manifest_kernel *aligned);

// Plans kernel `index` of the manifest, or the aligned version in its place where the arguments allow it: `*out_index`
// is the one to launch. `facts` are of the kernel, `aligned_facts` of its version (NULL: the version is not wanted).
// Failures are those of the kernel itself.
TL_MUST_USE tl_status tl_launch_plan_version(const tl_manifest *manifest, uint32_t index, const tl_argument *arguments,
                                             size_t num_arguments, const tl_launch_facts *facts,
                                             const tl_launch_facts *aligned_facts, tl_launch_plan *out_plan,
                                             uint32_t *out_index);

#endif
