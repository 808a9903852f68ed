// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams, events and graphs of the emulated driver: work is done when it is put on a stream, or recorded.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/device/emulated_internal.h"
#include "support/arena.h"

static _Thread_local struct {
  int recordings;  // that this thread began
  tl_cu_capture_mode mode;
} thread;

struct CUevent_st {
  struct timespec at;
};

bool tl_emulated_is_recording(void) {
  return thread.recordings > 0 && thread.mode != TL_CU_STREAM_CAPTURE_MODE_RELAXED;
}

static tl_cu_result do_work(const emulated_work *work) {
  if (work->function) return tl_emulated_run(work->function, work->grid, work->params);
  if (work->from)
    memmove(work->to, work->from, work->bytes);
  else
    memset(work->to, work->value, work->bytes);
  return tl_emu_mark_written(work->to, work->bytes), TL_CU_SUCCESS;
}

tl_cu_result tl_emulated_put(tl_cu_stream stream, emulated_work work) {
  if (stream && stream->recording) {
    tl_vec_push(&stream->recording->work, work);
    return TL_CU_SUCCESS;
  }
  tl_cu_result result = do_work(&work);
  free(work.params);
  return result;
}

tl_cu_result tl_emulated_stream_create(tl_cu_stream *stream, unsigned int flags) {
  static _Atomic unsigned long long streams;
  (void)flags;
  *stream = tl_xcalloc(1, sizeof **stream);
  return (*stream)->id = ++streams, TL_CU_SUCCESS;
}
// As the driver of a GPU: not while it is recorded.
tl_cu_result tl_emulated_stream_get_id(tl_cu_stream stream, unsigned long long *id) {
  if (stream && stream->recording) return TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return *id = stream ? stream->id : 0, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_stream_destroy(tl_cu_stream stream) {
  if (!stream) return TL_CU_ERROR_INVALID_HANDLE;
  if (stream->recording) tl_emulated_graph_destroy(stream->recording);
  return free(stream), TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_stream_synchronize(tl_cu_stream stream) {
  return (stream && stream->recording) || tl_emulated_is_recording() ? TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                                     : TL_CU_SUCCESS;
}

tl_cu_result tl_emulated_event_create(tl_cu_event *event, unsigned int flags) {
  (void)flags;
  return *event = tl_xcalloc(1, sizeof **event), TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_event_destroy(tl_cu_event event) {
  return free(event), TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_event_record(tl_cu_event event, tl_cu_stream stream) {
  (void)stream;
  return clock_gettime(CLOCK_MONOTONIC, &event->at), TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_event_synchronize(tl_cu_event event) {
  return (void)event, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_event_elapsed_time(float *milliseconds, tl_cu_event start, tl_cu_event end) {
  double seconds = (double)(end->at.tv_sec - start->at.tv_sec) + 1e-9 * (double)(end->at.tv_nsec - start->at.tv_nsec);
  return *milliseconds = (float)(1e3 * seconds), TL_CU_SUCCESS;
}

// ---- graphs

tl_cu_result tl_emulated_stream_begin_capture(tl_cu_stream stream, tl_cu_capture_mode mode) {
  if (!stream || stream->recording) return TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  static _Atomic uint64_t recordings;
  stream->recording = tl_xcalloc(1, sizeof *stream->recording);
  stream->recording->id = ++recordings;
  if (mode != TL_CU_STREAM_CAPTURE_MODE_RELAXED) thread.recordings++;
  return stream->is_thread_local = mode != TL_CU_STREAM_CAPTURE_MODE_RELAXED, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_stream_end_capture(tl_cu_stream stream, tl_cu_graph *graph) {
  *graph = NULL;
  if (!stream || !stream->recording) return TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->is_thread_local) thread.recordings--;
  *graph = stream->recording;
  return stream->recording = NULL, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_stream_is_capturing(tl_cu_stream stream, unsigned int *status) {
  return *status = stream && stream->recording, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_stream_get_capture_info(
    tl_cu_stream stream, unsigned int *status, uint64_t *id, tl_cu_graph *graph, struct CUgraphNode_st *const **nodes,
    const struct CUgraphEdgeData_st **edges,
    size_t *num_nodes) {  // NOLINT(readability-non-const-parameter): as the driver declares it
  if (graph || nodes || edges || num_nodes) return TL_CU_ERROR_INVALID_VALUE;
  *status = stream && stream->recording;
  return *id = *status ? stream->recording->id : 0, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_exchange_capture_mode(tl_cu_capture_mode *mode) {
  tl_cu_capture_mode had = thread.mode;
  thread.mode = *mode;
  return *mode = had, TL_CU_SUCCESS;
}
// The executable form is the graph itself: parameters belong to the one that was instantiated.
tl_cu_result tl_emulated_graph_instantiate(tl_cu_graph_exec *executable, tl_cu_graph graph, unsigned long long flags) {
  (void)flags;
  tl_cu_graph made = tl_xcalloc(1, sizeof *made);
  *made = *graph;
  *graph = (struct CUgraph_st){0};
  return *executable = (tl_cu_graph_exec)(void *)made, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_graph_launch(tl_cu_graph_exec executable, tl_cu_stream stream) {
  const struct CUgraph_st *graph = (const struct CUgraph_st *)(const void *)executable;
  tl_cu_result result = stream && stream->recording ? TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED : TL_CU_SUCCESS;
  for (size_t i = 0; !result && i < graph->work.len; i++) result = do_work(&graph->work.items[i]);
  return result;
}
tl_cu_result tl_emulated_graph_destroy(tl_cu_graph graph) {
  for (size_t i = 0; i < graph->work.len; i++) free(graph->work.items[i].params);
  tl_vec_fini(&graph->work);
  return free(graph), TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_graph_exec_destroy(tl_cu_graph_exec executable) {
  return tl_emulated_graph_destroy((tl_cu_graph)(void *)executable);
}
