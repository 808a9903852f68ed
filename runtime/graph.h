// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Work of a stream recorded once and launched as a whole (CUDA Driver API, "Graph Management"): launches inside have no
// gaps that the CPU makes.
#ifndef TL_RUNTIME_GRAPH_H
#define TL_RUNTIME_GRAPH_H

#include <stdbool.h>

#include "tl/runtime.h"

typedef struct tl_graph tl_graph;

// False when the driver is too old for graphs.
bool tl_graph_is_available(const tl_device *device);
// From here on work put on `stream` by this thread is recorded, not run. The default stream cannot be recorded. What
// allocates memory (the first launch of a kernel with workspaces) must have happened before.
TL_MUST_USE tl_status tl_graph_begin(tl_device *device, void *stream);
// Ends the recording; the graph can be launched. After a failure `*out_graph` is NULL and the recording is over too.
TL_MUST_USE tl_status tl_graph_end(tl_device *device, void *stream, tl_graph **out_graph);
TL_MUST_USE tl_status tl_graph_launch(tl_graph *graph, void *stream);
void tl_graph_destroy(tl_graph *graph);

#endif
