// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocked layouts for components that no strict op fixes: threads run along the dim that is contiguous in memory, each
// with as wide a vector as the accesses allow. Where they run along several dims, each of these is tried, and that
// layout taken under which all accesses together cost least.
#include "passes/analysis/memory_access.h"
#include "passes/layout/infer_layouts.h"

// What the accesses of a component want.
typedef struct blocked_vote {
  int32_t rank;
  bool wanted[TL_MAX_RANK];     // per dim: whether some access runs along it
  int32_t global[TL_MAX_RANK];  // per dim: widest vector (elements) of a global access along it
  int32_t other[TL_MAX_RANK];   // the same for shared accesses
  bool streamed[TL_MAX_RANK];   // per dim: whether a global access along it has another element in every iteration
  int32_t added[TL_MAX_RANK];   // per dim: elements that one instruction adds in global memory; 0: there are none
  int32_t stored[TL_MAX_RANK];  // per dim: those of the narrowest vector of 16 bytes that is stored there; 0: none
  int64_t wide[TL_MAX_RANK];    // per dim: bits of an element in all global accesses of 32 bits and more
  int64_t narrow[TL_MAX_RANK];  // the same of less
} blocked_vote;

static void add_vote(blocked_vote *vote, int32_t dim, int32_t vec, bool is_global) {
  if (dim < 0 || dim >= vote->rank) return;
  vote->wanted[dim] = true;
  int32_t *widest = is_global ? &vote->global[dim] : &vote->other[dim];
  if (vec > *widest) *widest = vec;
}

static int32_t vector_limit(const tl_value *buffer) {
  int bits = tl_dtype_bits(buffer->type->dtype);
  return 128 / bits;
}

static void vote_box(blocked_vote *vote, const tl_box *box) {
  int32_t dim = tl_box_contiguous_dim(box);
  add_vote(vote, dim, tl_box_vector(box, vector_limit(box->buffer), true), tl_buffer_is_global(box->buffer));
  if (dim >= 0 && dim < vote->rank) vote->streamed[dim] |= tl_buffer_is_global(box->buffer);
}

static void vote_value(blocked_vote *vote, tl_value *value) {
  if (value->def && value->def->code == TL_OP_TILE_LOAD) {
    tl_box box = tl_box_source(value->def);
    vote_box(vote, &box);
  }
  for (tl_use *use = value->uses; use; use = use->next) {
    if (use->owner->code != TL_OP_TILE_STORE) continue;
    tl_box box = tl_box_destination(use->owner);
    vote_box(vote, &box);
  }
}

// The loop dim along which an element access moves by one, or -1.
static int32_t element_dim(const tl_op *op, const tl_op *parallel) {
  const tl_block *body = parallel->regions[0];
  uint32_t rank = tl_element_rank(op);
  if (rank == 0 || !tl_buffer_is_row_contiguous(tl_element_buffer(op))) return -1;
  tl_value *last = tl_element_index(op, rank - 1);
  for (uint32_t a = body->num_args; a-- > 0;) {
    tl_lane_form form = tl_lane_form_of(last, body->args[a], 2);
    if (form.known && form.scale == 1) return (int32_t)a;
  }
  return -1;
}

// Additions find nothing in L1: each instruction of a warp adds in every sector that it touches. Lanes side by side
// hold what one instruction adds, so that a sector is touched once; loads that are narrower for it cost less.
static void vote_addition(blocked_vote *vote, const tl_op *op, const tl_op *parallel, int32_t sm) {
  tl_dtype dtype = tl_element_buffer(op)->type->dtype;
  int32_t dim = element_dim(op, parallel), most = tl_reduction_most(dtype, sm);
  bool adds =
      tl_op_int(op, TL_ATTR_ATOMIC, TL_ATOMIC_ADD) == TL_ATOMIC_ADD && tl_buffer_is_global(tl_element_buffer(op));
  if (!adds || dim < 0 || dim >= vote->rank) return;
  if (vote->added[dim] == 0 || most < vote->added[dim]) vote->added[dim] = most;
}

// Whether the access has an element of its own in every iteration, but for dims of one: what a loop reads again and
// again is soon in the L1 cache.
static bool walks_all(const tl_op *op, const tl_op *parallel) {
  int32_t rank = 0;
  const int64_t *extents = tl_op_ints(parallel, TL_ATTR_EXTENTS, &rank);
  for (int32_t a = 0; a < rank; a++) {
    bool walks = extents[a] == 1;
    for (uint32_t d = 0; d < tl_element_rank(op) && !walks; d++) {
      tl_affine index = tl_affine_of(tl_element_index(op, d));
      // What is no sum may depend on any of them.
      walks = !index.valid || tl_affine_coefficient(&index, parallel->regions[0]->args[a]) != 0;
      for (int32_t i = 0; i < index.num_terms && !walks; i++)
        walks = index.terms[i].symbol->def && tl_op_is_inside(index.terms[i].symbol->def, parallel);
    }
    if (!walks) return false;
  }
  return true;
}

// Stores whose vectors are halves of what a lane has touch all sectors of a warp with each of them. Of loads L1 hides
// that; memory gets such stores in halves of sectors.
static void vote_store(blocked_vote *vote, const tl_op *op, const tl_op *parallel) {
  const tl_value *buffer = tl_element_buffer(op);
  int32_t dim = element_dim(op, parallel), most = vector_limit(buffer);
  if (!tl_buffer_is_global(buffer) || dim < 0 || dim >= vote->rank) return;
  int bits = tl_dtype_bits(buffer->type->dtype);
  *(bits >= 32 ? &vote->wide[dim] : &vote->narrow[dim]) += bits;
  bool is_whole = op->code == TL_OP_STORE && tl_element_vector(op, parallel, most, true) == most;
  if (is_whole && (vote->stored[dim] == 0 || most < vote->stored[dim])) vote->stored[dim] = most;
}

static void vote_block(blocked_vote *vote, const tl_block *block, const tl_op *parallel, int32_t sm) {
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_LOAD || op->code == TL_OP_STORE || op->code == TL_OP_ATOMIC) {
      tl_value *buffer = tl_element_buffer(op);
      int32_t vec = tl_element_vector(op, parallel, vector_limit(buffer), true);
      tl_shifted_load shifted = tl_element_shifted(op, parallel, vector_limit(buffer));
      if (shifted.vec > vec) vec = shifted.vec;
      int32_t dim = element_dim(op, parallel);
      add_vote(vote, dim, vec, tl_buffer_is_global(buffer));
      if (dim >= 0 && dim < vote->rank && tl_buffer_is_global(buffer)) vote->streamed[dim] |= walks_all(op, parallel);
      if (op->code == TL_OP_ATOMIC) vote_addition(vote, op, parallel, sm);
      if (op->code != TL_OP_ATOMIC) vote_store(vote, op, parallel);
    }
    for (uint32_t r = 0; r < op->num_regions; r++) {
      if (op->regions[r]) vote_block(vote, op->regions[r], parallel, sm);
    }
  }
}

static int64_t shape_of_node(const tl_layout_node *node, int32_t *out_shape, int32_t *out_rank) {
  int64_t elements = 1;
  if (node->parallel) {
    const int64_t *extents = tl_op_ints(node->parallel, TL_ATTR_EXTENTS, out_rank);
    for (int32_t d = 0; d < *out_rank; d++) out_shape[d] = (int32_t)extents[d];
  } else {
    *out_rank = node->value->type->rank;
    for (int32_t d = 0; d < *out_rank; d++) out_shape[d] = (int32_t)node->value->type->dims[d];
  }
  for (int32_t d = 0; d < *out_rank; d++) elements *= out_shape[d];
  return elements;
}

// With fewer vectors than threads, narrower ones put more threads to work, as long as that saves registers.
static bool narrower_is_better(int64_t elements, int32_t vec, int32_t threads) {
  int64_t half = elements / (vec / 2);
  return elements / vec < threads && (half + threads - 1) / threads < 2;
}

typedef struct stream_search {
  int32_t threads;
  bool streams;
} stream_search;

static void look_at_extract(tl_op *op, void *user) {
  stream_search *search = user;
  if (op->code == TL_OP_EXTRACT)
    search->streams &= tl_type_num_elements(tl_op_arg(op, TL_GROUP_EXTRACT_tile)->type) <= search->threads;
}

// Whether the component is parallels that hold no tiles: more elements than a thread has of its own cost it
// instructions, and no registers.
static bool streams(tl_layout_graph *graph, int32_t root) {
  stream_search search = {.threads = graph->threads, .streams = true};
  for (size_t n = 0; n < graph->nodes.len; n++) {
    const tl_layout_node *node = &graph->nodes.items[n];
    if (tl_layout_graph_root(graph, (int32_t)n) != root) continue;
    if (!node->parallel || node->parallel->num_results > 0) return false;
    tl_walk(node->parallel, look_at_extract, &search);
  }
  return search.streams;
}

// Lanes along a short row whose vectors are no power of two, some of them idle: a lane that has the whole row makes a
// warp touch as many sectors of global memory as it has lanes, with each of its accesses. 0: the row is none of those.
static int32_t lanes_of_short_row(int32_t row, int32_t vec) {
  enum { WARP = 32 };
  int32_t vectors = row / vec, lanes = 1;
  while (lanes < vectors) lanes *= 2;
  return lanes != vectors && lanes <= WARP && row % vec == 0 ? lanes : 0;
}

// The widest vector that some access along dim `fast` allows, as far as it suits the shape.
static int32_t vector_along(tl_layout_graph *graph, int32_t root, const blocked_vote *vote, int32_t fast) {
  int32_t shape[TL_MAX_RANK], rank = 0;
  int64_t elements = shape_of_node(&graph->nodes.items[root], shape, &rank);
  if (rank == 0) return 1;
  int32_t vec = vote->global[fast] > 0 ? vote->global[fast] : vote->other[fast] > 0 ? vote->other[fast] : 1;
  // Tiles that are added once were gathered by wider loads before.
  if (vote->added[fast] > 0 && vec > vote->added[fast] && streams(graph, root)) vec = vote->added[fast];
  // Where more is moved in wide elements than in others lanes have a vector of those that are stored.
  bool is_wide = vote->stored[fast] > 0 && vote->wide[fast] > vote->narrow[fast];
  if (is_wide && vec > vote->stored[fast] && streams(graph, root)) vec = vote->stored[fast];
  while (vec > 1 && (shape[fast] % vec != 0 || narrower_is_better(elements, vec, graph->threads))) vec /= 2;
  return vec;
}

// A layout with threads along dim `fast`, each with vectors of `vec` elements.
static tl_layout layout_along(tl_layout_graph *graph, int32_t root, const blocked_vote *vote, int32_t fast,
                              int32_t vec) {
  int32_t shape[TL_MAX_RANK], rank = 0;
  int64_t elements = shape_of_node(&graph->nodes.items[root], shape, &rank);
  int32_t order[TL_MAX_RANK];
  int32_t len = 0;
  order[len++] = fast;
  for (int32_t d = rank - 1; d >= 0; d--) {
    if (d != fast) order[len++] = d;
  }
  int32_t lanes = rank > 1 && vote->streamed[fast] ? lanes_of_short_row(shape[fast], vec) : 0;
  if (lanes > 1 && elements / shape[fast] * lanes >= graph->threads && streams(graph, root))
    return tl_layout_blocked_narrow(shape, rank, order, vec, lanes, graph->threads);
  // Rows of shared memory that are read element by element: a warp each, so that a reduction along them stays within
  // it.
  enum { WARP = 32 };
  bool is_by_element = vec == 1 && rank > 1 && vote->global[fast] == 0 && vote->other[fast] == 1;
  if (is_by_element && shape[fast] > WARP && elements / shape[fast] >= graph->threads / WARP)
    return tl_layout_blocked_narrow(shape, rank, order, vec, WARP, graph->threads);
  return tl_layout_blocked(shape, rank, order, vec, graph->threads);
}

// Of several dims along which accesses run, and the vectors along them, those under which all accesses together cost
// least; of nearly equal ones the later dim, whose elements vectors can hold, and the wider vector: accesses of few
// elements find in L1 what their neighbours brought.
static tl_layout cheapest_layout(tl_layout_graph *graph, int32_t root, const blocked_vote *vote) {
  enum { NEARLY = 4 };  // a quarter
  tl_layout best = {0};
  int64_t least = INT64_MAX;
  for (int32_t d = vote->rank - 1; d >= 0; d--) {
    for (int32_t vec = vote->wanted[d] ? vector_along(graph, root, vote, d) : 0; vec > 0; vec /= 2) {
      tl_layout layout = layout_along(graph, root, vote, d, vec);
      int64_t cost = tl_layout_cost(graph, root, &layout);
      if (cost >= least - least / NEARLY) continue;
      least = cost;
      best = layout;
    }
  }
  return best;
}

tl_layout tl_layout_choose_blocked(tl_layout_graph *graph, int32_t root) {
  int32_t shape[TL_MAX_RANK], rank = 0;
  shape_of_node(&graph->nodes.items[root], shape, &rank);
  blocked_vote vote = {.rank = rank};
  for (size_t n = 0; n < graph->nodes.len; n++) {
    if (tl_layout_graph_root(graph, (int32_t)n) != root) continue;
    const tl_layout_node *node = &graph->nodes.items[n];
    if (node->value) vote_value(&vote, node->value);
    if (node->parallel) vote_block(&vote, node->parallel->regions[0], node->parallel, graph->context->target->sm);
  }
  int32_t num_wanted = 0, fast = rank - 1;
  for (int32_t d = 0; d < rank; d++) {
    if (!vote.wanted[d]) continue;
    num_wanted++;
    fast = d;
  }
  if (num_wanted > 1) return cheapest_layout(graph, root, &vote);
  return layout_along(graph, root, &vote, fast, vector_along(graph, root, &vote, fast));
}
