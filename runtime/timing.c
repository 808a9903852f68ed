// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/timing.h"

#include <stdlib.h>

#include "runtime/device.h"
#include "support/arena.h"

struct tl_timer {
  tl_device *device;  // Borrowed.
  tl_cu_event start, stop;
};

tl_status tl_timer_create(tl_device *device, tl_timer **out_timer) {
  *out_timer = NULL;
  TL_TRY(tl_device_enter(device));
  tl_timer *timer = tl_xcalloc(1, sizeof *timer);
  timer->device = device;
  tl_status status = TL_CUDA_CALL(device->driver, event_create, &timer->start, 0);
  if (!status) status = TL_CUDA_CALL(device->driver, event_create, &timer->stop, 0);
  status = tl_device_leave(device, status);
  if (status) {
    tl_timer_destroy(timer);
    return status;
  }
  *out_timer = timer;
  return TL_OK;
}

void tl_timer_destroy(tl_timer *timer) {
  if (!timer) return;
  tl_device *device = timer->device;
  tl_status status = tl_device_enter(device);
  bool is_entered = !status;
  tl_device_note(device, status);
  if (timer->start) tl_device_note(device, TL_CUDA_CALL(device->driver, event_destroy, timer->start));
  if (timer->stop) tl_device_note(device, TL_CUDA_CALL(device->driver, event_destroy, timer->stop));
  if (is_entered) tl_device_note(device, tl_device_leave(device, TL_OK));
  free(timer);
}

static tl_status record(tl_timer *timer, tl_cu_event event, void *stream) {
  TL_TRY(tl_device_enter(timer->device));
  tl_status status = TL_CUDA_CALL(timer->device->driver, event_record, event, stream);
  return tl_device_leave(timer->device, status);
}

tl_status tl_timer_start(tl_timer *timer, void *stream) {
  return record(timer, timer->start, stream);
}
tl_status tl_timer_stop(tl_timer *timer, void *stream) {
  return record(timer, timer->stop, stream);
}

tl_status tl_timer_elapsed(tl_timer *timer, double *out_seconds) {
  float milliseconds = 0;
  TL_TRY(tl_device_enter(timer->device));
  tl_status status = TL_CUDA_CALL(timer->device->driver, event_synchronize, timer->stop);
  if (!status) {
    status = TL_CUDA_CALL(timer->device->driver, event_elapsed_time, &milliseconds, timer->start, timer->stop);
  }
  status = tl_device_leave(timer->device, status);
  *out_seconds = (double)milliseconds * 1e-3;
  return status;
}
