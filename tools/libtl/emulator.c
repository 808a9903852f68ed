// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libtl's emulator: a device whose driver is harness/device/emulated_driver.h.
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
