// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Making, annotating and propagating status values. The type itself is public (include/tl/status.h).
#ifndef TL_SUPPORT_STATUS_H
#define TL_SUPPORT_STATUS_H

#include "tl/status.h"

// Makes a failure. Never returns NULL. Owned by the caller.
TL_MUST_USE tl_status tl_status_make(tl_status_code code, const char *format, ...) TL_PRINTF_LIKE(2, 3);

// OUT_OF_MEMORY, without needing any.
TL_MUST_USE tl_status tl_status_out_of_memory(void);

// INVALID_ARGUMENT "WHAT is NULL" for a NULL pointer.
TL_MUST_USE tl_status tl_status_not_null(const void *pointer, const char *what);

// Puts "<context>: " before the message of a failure and returns it; success passes through untouched.
TL_MUST_USE tl_status tl_status_annotate(tl_status status, const char *format, ...) TL_PRINTF_LIKE(2, 3);

// Keeps `first` if it is a failure (and frees `second`), else returns `second`. For cleanup paths.
TL_MUST_USE tl_status tl_status_join(tl_status first, tl_status second);

// Returns from the enclosing function when `expression` fails. The only control-flow macro of the project.
#define TL_TRY(expression)                     \
  do {                                         \
    tl_status tl_try_status_ = (expression);   \
    if (tl_try_status_) return tl_try_status_; \
  } while (0)

#endif
