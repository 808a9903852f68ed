// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl: tile specs to PTX (tl/compiler.h), PTX to running kernels (tl/runtime.h).
#ifndef TL_TL_H
#define TL_TL_H

#include "tl/compiler.h"
#include "tl/runtime.h"
#include "tl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The library's version, "0.1.0". Static.
TL_API const char *tl_version(void);
// The version of the manifest that it writes and reads.
TL_API int tl_manifest_abi(void);
// LLVM's version, "22.1.8". Static.
TL_API const char *tl_llvm_version(void);

#ifdef __cplusplus
}
#endif
#endif
