// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Status values of the tl-llc C API: success is NULL, a failure owns a code and a message.
#ifndef TL_STATUS_H
#define TL_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TL_MUST_USE __attribute__((warn_unused_result))
#define TL_PRINTF_LIKE(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))
#define TL_API __attribute__((visibility("default")))
#else
#define TL_MUST_USE
#define TL_PRINTF_LIKE(format_index, first_arg)
#define TL_API
#endif

// What kind of failure a status reports.
typedef enum tl_status_code {
  TL_STATUS_OK = 0,            // success
  TL_STATUS_INVALID_ARGUMENT,  // the caller passed something that can never work
  TL_STATUS_NOT_FOUND,         // a file, kernel or symbol does not exist
  TL_STATUS_IO,                // reading or writing failed; the message holds errno's text
  TL_STATUS_DIAGNOSTICS,       // the spec has errors; they are in the diagnostics list
  TL_STATUS_UNSUPPORTED,       // valid, but this build, target or device cannot do it
  TL_STATUS_LIMIT,             // a stated limit (memory, size, count, time) was exceeded
  TL_STATUS_NO_DEVICE,         // no GPU or no usable driver
  TL_STATUS_DRIVER,            // a driver call failed; the message names it, its code and its log
  TL_STATUS_CHECK_FAILED,      // a kernel ran and its results are wrong
  TL_STATUS_INTERNAL,          // a bug of tl-llc
  TL_STATUS_OUT_OF_MEMORY      // memory ran out; what the call had allocated is given back
} tl_status_code;

// NULL is success. A failure is heap-allocated and owned by whoever holds it: free it with tl_status_free.
typedef struct tl_status_payload *tl_status;

#define TL_OK ((tl_status)0)

// The code of `status`; TL_STATUS_OK for NULL.
TL_API tl_status_code tl_status_code_of(tl_status status);
// The message of `status` ("" for NULL). Borrowed from `status`.
TL_API const char *tl_status_message(tl_status status);
// The stable name of a code, such as "INVALID_ARGUMENT". Static.
TL_API const char *tl_status_code_name(tl_status_code code);
// Frees `status`; NULL is fine.
TL_API void tl_status_free(tl_status status);

#ifdef __cplusplus
}
#endif
#endif
