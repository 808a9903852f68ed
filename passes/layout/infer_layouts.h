// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of infer-layouts share: the graph of tile values and parallels, and the ways to convert.
#ifndef TL_PASSES_INFER_LAYOUTS_H
#define TL_PASSES_INFER_LAYOUTS_H

#include "passes/manager/passes.h"
#include "support/vec.h"

// A thing that has a layout: a tile value, or a parallel (its iteration space). Nodes with one layout form a component.
typedef struct tl_layout_node {
  tl_value *value;   // NULL for a parallel
  tl_op *parallel;   // NULL for a value
  int32_t parent;    // union-find; a root points at itself
  bool has_layout;   // of roots
  tl_layout layout;  // of roots
} tl_layout_node;

// The tile at `to` is indexed by the dims `dims` of the parallel at `from`, or is what `reduce` makes of the tile
// there.
typedef struct tl_layout_projection {
  int32_t from, to;
  const tl_op *reduce;  // or NULL
  int32_t dims[TL_MAX_RANK];
  int32_t rank;
} tl_layout_projection;

typedef struct tl_layout_graph {
  tl_pass_context *context;
  tl_op *kernel;
  tl_op *scope;  // whose statements these are: the kernel, or a role of its author
  int32_t threads;
  TL_VEC(tl_layout_node) nodes;
  TL_VEC(tl_layout_projection) projections;
  int32_t *slots;  // Owned. Open addressing from value or op to node + 1.
  size_t num_slots;
  bool over_registers;  // reported
} tl_layout_graph;

int32_t tl_layout_graph_root(tl_layout_graph *graph, int32_t node);
int32_t tl_layout_graph_node(tl_layout_graph *graph, tl_value *value, tl_op *parallel);

// Per index of an extract inside `parallel`: the loop dim that it is, in `out_dims`. False when an index is not simply
// a loop index that walks the whole tile dim.
bool tl_extract_dims(const tl_op *extract, const tl_op *parallel, int32_t *out_dims);

// A blocked layout for the component of `root` from the memory accesses that its nodes make.
tl_layout tl_layout_choose_blocked(tl_layout_graph *graph, int32_t root);
// infer_layouts_cost.c: what the accesses of the component of `root` cost, were `layout` its layout: a number to
// compare with that of another layout for the same threads.
int64_t tl_layout_cost(tl_layout_graph *graph, int32_t root, const tl_layout *layout);

// A new shared tile in the kernel for `type`'s elements.
tl_value *tl_scratch_alloc(tl_pass_context *context, tl_op *kernel, const tl_type *type, const char *name, tl_loc loc);
// Whether every register of `want` is one and the same register of `have` in all threads.
bool tl_is_renaming(const tl_layout *have, const tl_layout *want);
// Makes the fragment operand `a` of a gemm a shared tile.
void tl_spill_operand(tl_pass_context *context, tl_op *kernel, tl_op *gemm);
// Gives extracts at general indices, and fragment operands of gemms without matrix instructions, a shared tile to read
// from.
void tl_route_through_shared(tl_pass_context *context, tl_op *kernel);
// The whole of a shared tile stored from, and loaded to, registers.
void tl_build_tile_store(tl_builder *builder, tl_value *tile, tl_value *buffer);
tl_value *tl_build_tile_load(tl_builder *builder, tl_value *buffer, const tl_type *type);
// The tile with another layout, made before `before`.
tl_value *tl_convert_tile(tl_pass_context *context, tl_op *kernel, tl_value *tile, const tl_layout *layout,
                          tl_op *before);

// Where several threads handle an element and only the first of them computes it right, hands its results on to the
// others.
void tl_unify_replicas(tl_pass_context *context, tl_op *kernel, tl_op *scope);

// register_limit.c: an error when the tiles that must be held at once need more registers than a thread has.
void tl_validate_registers(tl_layout_graph *graph);

// infer_layouts_reduce.c: reductions. Relates sources and results; gives the results their layouts once the sources
// have theirs; and brings the warps together where several hold parts of one result.
void tl_layout_relate_reduce(tl_layout_graph *graph, tl_op *reduce);
tl_layout tl_layout_of_reduce(const tl_op *reduce, const tl_layout *source);
void tl_type_reductions(tl_layout_graph *graph);
void tl_split_reductions(tl_pass_context *context, tl_op *kernel, tl_op *scope);
// Registers that the parts which one thread reads from other warps may take.
enum { TL_MAX_GATHERED_REGISTERS = 64 };
// A shared tile, plain row-major, through which warps exchange.
tl_value *tl_exchange_alloc(tl_pass_context *context, tl_op *kernel, const tl_type *type, tl_loc loc);
// waiting_sums.c: lets sums over threads that loops carry wait for the loops' ends. Before reductions are taken apart.
void tl_let_sums_wait(tl_layout_graph *graph);
// infer_layouts_scan.c: the same for scans.
void tl_split_scans(tl_pass_context *context, tl_op *kernel, tl_op *scope);

#endif
