// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/graph.h"

#include <stdlib.h>

#include "runtime/device.h"
#include "support/arena.h"

struct tl_graph {
  tl_device *device;            // Borrowed.
  tl_cu_graph_exec executable;  // Owned.
};

bool tl_graph_is_available(const tl_device *device) {
  const tl_cuda_driver *driver = device->driver;
  return driver->stream_begin_capture && driver->stream_end_capture && driver->graph_instantiate &&
         driver->graph_launch && driver->graph_exec_destroy && driver->graph_destroy;
}

tl_status tl_graph_begin(tl_device *device, void *stream) {
  if (!tl_graph_is_available(device)) return tl_status_make(TL_STATUS_UNSUPPORTED, "the driver has no graphs");
  TL_TRY(tl_device_enter(device));
  tl_status status = TL_CUDA_CALL(device->driver, stream_begin_capture, stream, TL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  tl_device_leave(device);
  return status;
}

tl_status tl_graph_end(tl_device *device, void *stream, tl_graph **out_graph) {
  *out_graph = NULL;
  TL_TRY(tl_device_enter(device));
  tl_cu_graph recorded = NULL;
  tl_cu_graph_exec executable = NULL;
  tl_status status = TL_CUDA_CALL(device->driver, stream_end_capture, stream, &recorded);
  if (!status) status = TL_CUDA_CALL(device->driver, graph_instantiate, &executable, recorded, 0);
  // The executable form does not need the recording.
  if (recorded) device->driver->graph_destroy(recorded);
  tl_device_leave(device);
  if (status) return status;
  *out_graph = tl_xcalloc(1, sizeof **out_graph);
  **out_graph = (tl_graph){device, executable};
  return TL_OK;
}

tl_status tl_graph_launch(tl_graph *graph, void *stream) {
  TL_TRY(tl_device_enter(graph->device));
  tl_status status = TL_CUDA_CALL(graph->device->driver, graph_launch, graph->executable, stream);
  tl_device_leave(graph->device);
  return status;
}

void tl_graph_destroy(tl_graph *graph) {
  if (!graph) return;
  tl_status status = tl_device_enter(graph->device);
  graph->device->driver->graph_exec_destroy(graph->executable);
  if (!status) tl_device_leave(graph->device);
  tl_status_free(status);
  free(graph);
}
