// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct tl_status_payload {
  tl_status_code code;
  char *message;  // Owned.
};

// A failure that needs no memory. Never freed.
static struct tl_status_payload exhausted = {TL_STATUS_OUT_OF_MEMORY, (char *)"memory ran out"};

tl_status tl_status_out_of_memory(void) {
  return &exhausted;
}

// NULL when there is no memory for it.
static char *format_message(const char *format, va_list args) {
  va_list measure;
  va_copy(measure, args);
  int len = vsnprintf(NULL, 0, format, measure);
  va_end(measure);
  char *text = malloc((size_t)len + 1);
  if (text) vsnprintf(text, (size_t)len + 1, format, args);
  return text;
}

tl_status tl_status_make(tl_status_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *message = format_message(format, args);
  va_end(args);
  tl_status status = message ? malloc(sizeof(*status)) : NULL;
  if (!status) {
    free(message);
    return tl_status_out_of_memory();
  }
  *status = (struct tl_status_payload){code, message};
  return status;
}

tl_status tl_status_annotate(tl_status status, const char *format, ...) {
  if (!status || status == &exhausted) return status;
  va_list args;
  va_start(args, format);
  char *context = format_message(format, args), *joined = NULL;
  va_end(args);
  // Without memory it stays as it is.
  if (context && asprintf(&joined, "%s: %s", context, status->message) >= 0) {
    free(status->message);
    status->message = joined;
  }
  free(context);
  return status;
}

tl_status tl_status_not_null(const void *pointer, const char *what) {
  return pointer ? TL_OK : tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s is NULL", what);
}

tl_status tl_status_join(tl_status first, tl_status second) {
  if (!first) return second;
  tl_status_free(second);
  return first;
}

tl_status_code tl_status_code_of(tl_status status) {
  return status ? status->code : TL_STATUS_OK;
}

const char *tl_status_message(tl_status status) {
  return status ? status->message : "";
}

const char *tl_status_code_name(tl_status_code code) {
  switch (code) {
    case TL_STATUS_OK:
      return "OK";
    case TL_STATUS_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case TL_STATUS_NOT_FOUND:
      return "NOT_FOUND";
    case TL_STATUS_IO:
      return "IO";
    case TL_STATUS_DIAGNOSTICS:
      return "DIAGNOSTICS";
    case TL_STATUS_UNSUPPORTED:
      return "UNSUPPORTED";
    case TL_STATUS_LIMIT:
      return "LIMIT";
    case TL_STATUS_NO_DEVICE:
      return "NO_DEVICE";
    case TL_STATUS_DRIVER:
      return "DRIVER";
    case TL_STATUS_CHECK_FAILED:
      return "CHECK_FAILED";
    case TL_STATUS_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case TL_STATUS_INTERNAL:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

void tl_status_free(tl_status status) {
  if (!status || status == &exhausted) return;
  free(status->message);
  free(status);
}
