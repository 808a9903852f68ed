// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Time between two points of a stream, by events of the GPU.
#ifndef TL_RUNTIME_TIMING_H
#define TL_RUNTIME_TIMING_H

#include "tl/runtime.h"

typedef struct tl_timer tl_timer;

TL_MUST_USE tl_status tl_timer_create(tl_device *device, tl_timer **out_timer);
void tl_timer_destroy(tl_timer *timer);
// Marks the start and the end on `stream`.
TL_MUST_USE tl_status tl_timer_start(tl_timer *timer, void *stream);
TL_MUST_USE tl_status tl_timer_stop(tl_timer *timer, void *stream);
// Waits for the end mark; seconds between the marks (resolution about half a microsecond).
TL_MUST_USE tl_status tl_timer_elapsed(tl_timer *timer, double *out_seconds);

#endif
