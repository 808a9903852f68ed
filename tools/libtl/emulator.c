// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl's emulator: a device whose driver is harness/device/emulated_driver.h.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/sanitize/findings.h"
#include "harness/device/emulated_driver.h"
#include "runtime/device.h"
#include "support/status.h"

static tl_status read_options(const tl_emulator_options *options, tl_emulated_gpu *out) {
  tl_str unknown;
  *out = (tl_emulated_gpu){.emu = {.threads = options->threads, .seed = options->seed, .timeout_s = options->timeout_s},
                           .compute_capability = options->compute_capability,
                           .num_sms = options->num_sms};
  if (!tl_emu_sanitize_parse(tl_str_from(options->checks ? options->checks : "all"), &out->emu.checks, &unknown))
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "checks: there is no check '%.*s'", TL_STR_ARG(unknown));
  const char *landing = options->landing ? options->landing : "late";
  if (strcmp(landing, "late") != 0 && strcmp(landing, "early") != 0)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "landing: expected late or early, given '%s'", landing);
  out->emu.landing = strcmp(landing, "late") == 0 ? TL_LANDING_LATE : TL_LANDING_EARLY;
  if (options->threads < 0 || options->num_sms < 0 || options->compute_capability < 0 || !(options->timeout_s >= 0))
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "threads, num_sms, compute_capability and timeout_s cannot be negative");
  return TL_OK;
}

tl_status tl_device_open_emulator(const tl_emulator_options *options, tl_device **out_device) {
  TL_TRY(tl_status_not_null(out_device, "out_device"));
  *out_device = NULL;
  tl_emulated_gpu gpu;
  int ordinal;
  TL_TRY(read_options(options ? options : &(tl_emulator_options){0}, &gpu));
  TL_TRY(tl_emulated_gpu_add(&gpu, &ordinal));
  return tl_device_open_on(tl_emulated_driver(), ordinal, out_device);
}

// ---- the driver as a library

static pthread_once_t once = PTHREAD_ONCE_INIT;
static tl_status no_gpu;  // kept for ever

// GPU 0 of the library. Its context is retained: it never goes.
static void add_gpu(void) {
  const char *capability = getenv("TL_EMULATED_CAPABILITY");
  tl_emulator_options options = {.checks = getenv("TL_EMULATED_CHECKS"),
                                 .compute_capability = capability ? atoi(capability) : 0};
  tl_emulated_gpu gpu;
  int ordinal = 0;
  tl_cu_context context;
  no_gpu = read_options(&options, &gpu);
  if (!no_gpu) no_gpu = tl_emulated_gpu_add(&gpu, &ordinal);
  if (!no_gpu && tl_emulated_driver()->primary_ctx_retain(&context, ordinal))
    no_gpu = tl_status_make(TL_STATUS_INTERNAL, "the emulated GPU has no context");
}

tl_status tl_emulated_cuda(const char *symbol, tl_cuda_function **out_function) {
  TL_TRY(tl_status_not_null(symbol, "symbol"));
  TL_TRY(tl_status_not_null(out_function, "out_function"));
  pthread_once(&once, add_gpu);
  if (no_gpu) return tl_status_make(tl_status_code_of(no_gpu), "%s", tl_status_message(no_gpu));
#define TL_CUDA_FN(field, exported, parameters)                      \
  if (strcmp(symbol, #exported) == 0) {                              \
    *out_function = (tl_cuda_function *)tl_emulated_driver()->field; \
    return TL_OK;                                                    \
  }
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN
  return tl_status_make(TL_STATUS_NOT_FOUND, "the emulated driver has no function '%s'", symbol);
}
