// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which version of a kernel a launch takes. Knows no driver; the GPU launcher and the emulator ask the same.
//
// The version that arguments allow is planned first, and the kernel itself where it is not taken: one plan a launch.
#ifndef TL_RUNTIME_VERSIONS_H
#define TL_RUNTIME_VERSIONS_H

#include "runtime/arguments.h"

// Whether the sizes in the arguments have the divisors of the version `aligned`. Of arguments that no launch takes it
// may say either.
bool tl_launch_has_divisors(const tl_manifest_kernel *aligned, const tl_argument *arguments, size_t num_arguments);
// Whether the pointers have its alignments.
bool tl_launch_has_alignments(const tl_manifest_kernel *aligned, const tl_argument *arguments, size_t num_arguments);
// The same of arguments that the version's plan is of.
bool tl_launch_plan_has_alignments(const tl_manifest_kernel *aligned, const tl_launch_plan *plan,
                                   const tl_argument *arguments, size_t num_arguments);

// Plans the aligned version of kernel `index` of the manifest where the arguments allow it, else the kernel itself:
// `*out_index` is the one to launch. `facts` are of the kernel, `aligned_facts` of its version (NULL: the version is
// not wanted). Failures are those of the kernel itself.
TL_MUST_USE tl_status tl_launch_plan_version(const tl_manifest *manifest, uint32_t index, const tl_argument *arguments,
                                             size_t num_arguments, const tl_launch_facts *facts,
                                             const tl_launch_facts *aligned_facts, tl_launch_plan *out_plan,
                                             uint32_t *out_index);

#endif
