// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the blocks of a cluster reduce together, for spread-rows.
//
//   %z = reduce %e {sum}     →   %own = reduce %e {sum}; tile_store %own -> %mine; cluster_barrier
//                                parallel { %all[0, …] = load (peer_tile %mine, 0); %all[1, …] = load (peer_tile %mine,
//                                1) } %z = reduce (tile_load %all) {sum, axes = [0]}
//
// Every block combines the same numbers in the same order, so that all have the same bits. The tile that others read is
// written once: no second meeting is needed.
#include "ir/reduction.h"
#include "passes/layout/spread_rows.h"
#include "passes/tile/loop_rewrite.h"

enum { MAX_RESULTS = 2 };

static tl_value *make_shared(const tl_spread_cluster *cluster, tl_loc loc, const char *name, const int64_t *dims,
                             int32_t rank, tl_dtype dtype) {
  tl_module *module = cluster->context->module;
  tl_builder builder;
  tl_builder_before(&builder, module, cluster->kernel->regions[0]->first);
  builder.loc = loc;
  const tl_type *type = tl_type_buffer(module, TL_SCOPE_SHARED, dtype, dims, rank);
  tl_op *alloc = tl_build(&builder, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(module, alloc, TL_ATTR_NAME, tl_str_from(name));
  return tl_op_result(alloc, 0);
}

static void set_whole_box(tl_module *module, tl_op *op, tl_attr_key dims_key, tl_attr_key check_key, int32_t rank) {
  int64_t dims[TL_MAX_RANK], checks[TL_MAX_RANK] = {0};
  for (int32_t d = 0; d < rank; d++) dims[d] = d;
  tl_op_set_ints(module, op, dims_key, dims, rank);
  tl_op_set_ints(module, op, check_key, checks, rank);
}

// The region of a new parallel over `dims`, with its indices.
static tl_builder begin_parallel(tl_builder *builder, const int64_t *dims, int32_t rank, const tl_type *const *results,
                                 uint32_t num_results) {
  tl_module *module = builder->module;
  tl_op *parallel = tl_build(builder, TL_OP_PARALLEL, NULL, results, num_results);
  tl_op_set_ints(module, parallel, TL_ATTR_EXTENTS, dims, rank);
  for (int32_t d = 0; d < rank; d++) tl_block_add_arg(module, parallel->regions[0], tl_type_index(module), NULL);
  tl_builder inside;
  tl_builder_at_end(&inside, module, parallel->regions[0]);
  inside.loc = builder->loc;
  return inside;
}

// The place in the row, of one that a block knows in its part.
static tl_value *place_in_row(const tl_spread_cluster *cluster, tl_builder *builder, tl_value *places) {
  tl_module *module = builder->module;
  const tl_type *type = places->type, *element = tl_type_scalar(module, type->dtype);
  tl_builder inside = begin_parallel(builder, type->dims, type->rank, &type, 1);
  tl_op *parallel = inside.block->parent;
  int64_t maps[TL_MAX_RANK];
  for (int32_t d = 0; d < type->rank; d++) maps[d] = d;
  tl_op_set_ints(module, parallel, TL_ATTR_MAPS, maps, type->rank);
  tl_group groups[] = {TL_GROUP_OF(places), {inside.block->args, (uint32_t)type->rank}};
  tl_value *own = tl_op_result(tl_build(&inside, TL_OP_EXTRACT, groups, &element, 1), 0);
  tl_value *first = tl_build_cast(&inside, cluster->first, element);
  tl_value *place = tl_build_binary(&inside, TL_OP_ADD, own, first);
  tl_build_yield(&inside, &place, 1);
  return tl_op_result(parallel, 0);
}

static tl_value *leave(const tl_spread_cluster *cluster, tl_builder *builder, tl_value *part) {
  tl_module *module = builder->module;
  const tl_type *type = part->type;
  tl_value *zeros[TL_MAX_RANK];
  tl_value *own = make_shared(cluster, builder->loc, "own_part", type->dims, type->rank, type->dtype);
  for (int32_t d = 0; d < type->rank; d++) zeros[d] = tl_build_index(builder, 0);
  tl_group groups[] = {TL_GROUP_OF(part), TL_GROUP_OF(own), {zeros, (uint32_t)type->rank}, TL_GROUP_EMPTY};
  tl_op *store = tl_build(builder, TL_OP_TILE_STORE, groups, NULL, 0);
  set_whole_box(module, store, TL_ATTR_DST_DIMS, TL_ATTR_DST_CHECK, type->rank);
  return own;
}

// Element by element: what every block has in `own`, to a tile of the own block with a row for each of them.
static tl_value *gather(const tl_spread_cluster *cluster, tl_builder *builder, tl_value *own) {
  tl_module *module = builder->module;
  const tl_type *type = own->type, *element = tl_type_scalar(module, type->dtype);
  int32_t rank = type->rank;
  int64_t dims[TL_MAX_RANK] = {cluster->blocks}, checks[TL_MAX_RANK] = {0};
  for (int32_t d = 0; d < rank; d++) dims[d + 1] = type->dims[d];
  tl_value *all = make_shared(cluster, builder->loc, "all_parts", dims, rank + 1, type->dtype);
  tl_value *peers[TL_SPREAD_MAX_BLOCKS], *loaded[TL_SPREAD_MAX_BLOCKS];
  for (int64_t b = 0; b < cluster->blocks; b++) {
    tl_group groups[] = {TL_GROUP_OF(own), TL_GROUP_OF(tl_build_index(builder, b))};
    tl_op *peer = tl_build(builder, TL_OP_PEER_TILE, groups, &type, 1);
    tl_op_set_int(module, peer, TL_ATTR_ACROSS, cluster->across);
    peers[b] = tl_op_result(peer, 0);
  }
  tl_builder inside = begin_parallel(builder, type->dims, rank, NULL, 0);
  tl_value *const *index = inside.block->args;
  for (int64_t b = 0; b < cluster->blocks; b++) {
    tl_group groups[] = {TL_GROUP_OF(peers[b]), {index, (uint32_t)rank}, TL_GROUP_EMPTY};
    tl_op *load = tl_build(&inside, TL_OP_LOAD, groups, &element, 1);
    tl_op_set_ints(module, load, TL_ATTR_CHECK, checks, rank);
    loaded[b] = tl_op_result(load, 0);
  }
  for (int64_t b = 0; b < cluster->blocks; b++) {
    tl_value *place[TL_MAX_RANK] = {tl_build_index(&inside, b)};
    for (int32_t d = 0; d < rank; d++) place[d + 1] = index[d];
    tl_group groups[] = {TL_GROUP_OF(loaded[b]), TL_GROUP_OF(all), {place, (uint32_t)rank + 1}};
    tl_op *store = tl_build(&inside, TL_OP_STORE, groups, NULL, 0);
    tl_op_set_ints(module, store, TL_ATTR_CHECK, checks, rank + 1);
  }
  tl_build_yield(&inside, NULL, 0);
  return all;
}

static tl_value *load_whole(tl_builder *builder, tl_value *buffer) {
  tl_module *module = builder->module;
  const tl_type *type = tl_type_tile(module, buffer->type->dtype, buffer->type->dims, buffer->type->rank, NULL);
  tl_value *zeros[TL_MAX_RANK];
  for (int32_t d = 0; d < type->rank; d++) zeros[d] = tl_build_index(builder, 0);
  tl_group groups[] = {TL_GROUP_OF(buffer), {zeros, (uint32_t)type->rank}, TL_GROUP_EMPTY, TL_GROUP_EMPTY};
  tl_op *load = tl_build(builder, TL_OP_TILE_LOAD, groups, &type, 1);
  set_whole_box(module, load, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_CHECK, type->rank);
  return tl_op_result(load, 0);
}

typedef TL_VEC(tl_use *) use_list;

static void list_uses(const tl_value *value, use_list *out) {
  for (tl_use *use = value->uses; use; use = use->next) tl_vec_push(out, use);
}

void tl_spread_exchange(const tl_spread_cluster *cluster, tl_op *reduce) {
  tl_module *module = cluster->context->module;
  uint32_t count = reduce->num_results < MAX_RESULTS ? reduce->num_results : MAX_RESULTS;
  const tl_type *types[MAX_RESULTS];
  tl_value *shared[MAX_RESULTS], *tiles[MAX_RESULTS];
  use_list uses[MAX_RESULTS] = {{0}};
  tl_builder builder;
  tl_builder_after(&builder, module, reduce);
  builder.loc = reduce->loc;
  for (uint32_t r = 0; r < count; r++) {
    tl_value *part = tl_op_result(reduce, r);
    list_uses(part, &uses[r]);
    types[r] = part->type;
    shared[r] = leave(cluster, &builder, r == 1 ? place_in_row(cluster, &builder, part) : part);
  }
  tl_build(&builder, TL_OP_CLUSTER_BARRIER, NULL, NULL, 0);
  for (uint32_t r = 0; r < count; r++) shared[r] = gather(cluster, &builder, shared[r]);
  for (uint32_t r = 0; r < count; r++) tiles[r] = load_whole(&builder, shared[r]);
  tl_op *last = tl_build(&builder, TL_OP_REDUCE, (tl_group[]){{tiles, count}, TL_GROUP_EMPTY}, types, count);
  tl_op_copy_attrs(module, last, reduce);
  tl_op_remove_attr(last, TL_ATTR_KEEPDIMS);
  tl_op_set_ints(module, last, TL_ATTR_AXES, (int64_t[]){0}, 1);
  for (uint32_t r = 0; r < count; r++) {
    tl_op_result(last, r)->name = tl_op_result(reduce, r)->name;
    for (size_t i = 0; i < uses[r].len; i++) {
      const tl_use *use = uses[r].items[i];
      tl_op_set_operand(use->owner, (uint32_t)(use - use->owner->operands), tl_op_result(last, r));
    }
    tl_vec_fini(&uses[r]);
  }
}
