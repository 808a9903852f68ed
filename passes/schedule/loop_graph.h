// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The statements of a loop as a graph, and how iterations may overlap.
//
// Nodes are the statements of the body and one more for each asynchronous gemm: its end. An edge u → v of distance d
// says that v in iteration i + d comes after u in iteration i. With a stage, 0 or 1, for each node, step k of the
// overlapped loop runs stage 0 of iteration k and stage 1 of iteration k - 1. An edge holds when stage(v) + d >
// stage(u), and when both are equal if u comes before v in the step.
//
// Ops that only compute scalars, indices and parts of buffers are no nodes: each stage has its own copies.
#ifndef TL_PASSES_LOOP_GRAPH_H
#define TL_PASSES_LOOP_GRAPH_H

#include "ir/ir.h"
#include "support/vec.h"

typedef struct tl_loop_node {
  tl_op *op;        // the statement; of an end the gemm
  bool is_end;      // of the asynchronous gemm `op`
  bool is_gemm;     // issued asynchronously; `other` is its end
  bool is_chained;  // of a gemm: it ends in the accumulator of another one
  int other;        // of a gemm its end, of an end its gemm
  int stage;
  int64_t pending;  // of a wait of a ring: its PENDING in an order of the graph; else -1
} tl_loop_node;

typedef struct tl_loop_edge {
  int from, to;
  int distance;  // iterations, 0 or 1; -1: no order, only tied
  bool is_tied;  // both nodes have the same stage: what goes from one to the other is no value of the loop
} tl_loop_edge;

typedef struct tl_loop_graph {
  tl_op *loop;
  TL_VEC(tl_loop_node) nodes;  // in program order, an end behind its gemm
  TL_VEC(tl_loop_edge) edges;
  const char *obstacle;  // why the statements must stay in their order; NULL: they need not. Static.
  tl_loc obstacle_at;
} tl_loop_graph;

void tl_loop_graph_build(tl_op *loop, tl_loop_graph *out);
void tl_loop_graph_fini(tl_loop_graph *graph);

// Whether each stage may have its own copy of the op.
bool tl_loop_is_replicable(const tl_op *op);
// The node of a statement of the loop's body; -1: it has none.
int tl_loop_node_of(const tl_loop_graph *graph, const tl_op *statement);

// Puts the gemm `node` (-1: none) into stage 1, with everything that must follow it there; all else into stage 0.
// False: nothing would be left in stage 0.
bool tl_loop_graph_divide(tl_loop_graph *graph, int node);
// Writes an order of the step, `out` having room for all nodes: gemms as early as they can, ends as late. False: there
// is none.
bool tl_loop_graph_order(const tl_loop_graph *graph, int *out);
// Clocks of a step in that order, or, with `order` NULL, of an iteration as it stands, in which every gemm is waited
// for at once. Rough: one unit multiplies, another does all else, one statement after the other.
double tl_loop_graph_clocks(const tl_loop_graph *graph, const int *order);

#endif
