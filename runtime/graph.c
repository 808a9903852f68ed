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
  return tl_device_leave(device, status);
}

tl_status tl_graph_end(tl_device *device, void *stream, tl_graph **out_graph) {
  *out_graph = NULL;
  tl_graph *graph = calloc(1, sizeof *graph);
  if (!graph) return tl_status_out_of_memory();
  tl_status entered = tl_device_enter(device);
  if (entered) {
    free(graph);
    return entered;
  }
  tl_cu_graph recorded = NULL;
  tl_cu_graph_exec executable = NULL;
  tl_status status = TL_CUDA_CALL(device->driver, stream_end_capture, stream, &recorded);
  if (!status) status = TL_CUDA_CALL(device->driver, graph_instantiate, &executable, recorded, 0);
  // The executable form does not need the recording.
  if (recorded) status = tl_status_join(status, TL_CUDA_CALL(device->driver, graph_destroy, recorded));
  status = tl_device_leave(device, status);
  if (status && executable) tl_device_note(device, TL_CUDA_CALL(device->driver, graph_exec_destroy, executable));
  if (status) {
    free(graph);
    return status;
  }
  *graph = (tl_graph){device, executable};
  *out_graph = graph;
  return TL_OK;
}

tl_status tl_graph_launch(tl_graph *graph, void *stream) {
  TL_TRY(tl_device_enter(graph->device));
  tl_status status = TL_CUDA_CALL(graph->device->driver, graph_launch, graph->executable, stream);
  return tl_device_leave(graph->device, status);
}

void tl_graph_destroy(tl_graph *graph) {
  if (!graph) return;
  tl_device *device = graph->device;
  tl_status status = tl_device_enter(device);
  bool is_entered = !status;
  tl_device_note(device, status);
  tl_device_note(device, TL_CUDA_CALL(device->driver, graph_exec_destroy, graph->executable));
  if (is_entered) tl_device_note(device, tl_device_leave(device, TL_OK));
  free(graph);
}
