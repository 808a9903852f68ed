// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clusters: which neighbours of the grid run together, and what statements say about all of them.
#include "frontend/elaborate/instantiate_internal.h"

enum { MAX_BLOCKS = 8, FIRST_SM = 90 };  // PTX ISA, "Cluster of Cooperative Thread Arrays": on every GPU

static int32_t grid_dim(const tl_sema *sema, tl_str name) {
  for (uint32_t d = 0; d < sema->kernel->num_grid; ++d)
    if (tl_str_equal(sema->kernel->grid[d].name, name)) return (int32_t)d;
  return -1;
}

// The blocks of a grid dim must fall into whole clusters: now, or when the launcher knows.
static bool validate_extent(tl_sema *sema, const tl_named_expr *named, int32_t dim, int64_t size, tl_value *extent) {
  int64_t constant;
  if (tl_value_const_int(extent, &constant)) {
    if (constant % size == 0) return true;
    tl_diag_report(sema->diags, TL_DIAG_CLUSTER, named->value->loc,
                   "%lld blocks along `%.*s` are no multiple of the cluster's %lld", (long long)constant,
                   TL_STR_ARG(named->name), (long long)size);
    return false;
  }
  if (tl_value_divisor(extent) % size == 0) return true;
  const char *text = tl_arena_printf(sema->arena, "(%s) %% %lld == 0",
                                     tl_sema_expr_text(sema, sema->kernel->grid[dim].value), (long long)size);
  sema->builder.loc = named->value->loc;
  tl_value *rest = tl_build_binary(&sema->builder, TL_OP_MOD, extent, tl_build_index(&sema->builder, size));
  tl_value *fits = tl_build_cmp(&sema->builder, TL_CMP_EQ, rest, tl_build_index(&sema->builder, 0));
  tl_group group = TL_GROUP_OF(fits);
  tl_op *op = tl_build(&sema->builder, TL_OP_REQUIRE, &group, NULL, 0);
  tl_op_set_str(sema->module, op, TL_ATTR_TEXT, tl_str_from(text));
  return true;
}

static bool read_size(tl_sema *sema, const tl_named_expr *named, int32_t *out_dim, int64_t *out_size) {
  *out_dim = grid_dim(sema, named->name);
  if (*out_dim < 0 || *out_dim >= TL_MAX_CLUSTER_DIMS) {
    tl_diag_report(sema->diags, TL_DIAG_CLUSTER, named->loc, "`%.*s` is none of the first %d indices of the grid",
                   TL_STR_ARG(named->name), TL_MAX_CLUSTER_DIMS);
    return false;
  }
  if (!tl_sema_const_int(sema, named->value, "the size of a cluster", out_size)) return false;
  if (*out_size >= 1 && *out_size <= MAX_BLOCKS) return true;
  tl_diag_report(sema->diags, TL_DIAG_CLUSTER, named->value->loc, "a cluster has 1 to %d blocks, not %lld", MAX_BLOCKS,
                 (long long)*out_size);
  return false;
}

static bool validate_kernel(tl_sema *sema, tl_loc loc) {
  if (sema->target && sema->target->sm < FIRST_SM) {
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_BARRIER_TARGET, loc, "%s has no clusters of blocks", sema->target->name);
    tl_diag_add_hint(sema->diags, diag, "sm_90 is the first target that has them");
    return false;
  }
  if (sema->env->persistent != TL_SWITCH_ON) return true;
  tl_diag_report(sema->diags, TL_DIAG_CLUSTER, loc, "the blocks of a persistent kernel form no clusters");
  return false;
}

void tl_instantiate_cluster(tl_sema *sema, tl_op *grid) {
  const tl_kernel_spec *kernel = sema->kernel;
  if (kernel->num_cluster == 0 || !grid || !validate_kernel(sema, kernel->cluster[0].loc)) return;
  int64_t sizes[TL_MAX_CLUSTER_DIMS] = {1, 1, 1}, blocks = 1;
  bool ok = true;
  for (uint32_t i = 0; i < kernel->num_cluster; ++i) {
    int32_t dim;
    int64_t size = 1;
    if (!read_size(sema, &kernel->cluster[i], &dim, &size) ||
        !validate_extent(sema, &kernel->cluster[i], dim, size, tl_op_operand(grid, (uint32_t)dim))) {
      ok = false;
      continue;
    }
    sizes[dim] = size;
    blocks *= size;
  }
  if (ok && blocks > MAX_BLOCKS) {
    tl_diag_report(sema->diags, TL_DIAG_CLUSTER, kernel->cluster[0].loc, "a cluster has 1 to %d blocks, not %lld",
                   MAX_BLOCKS, (long long)blocks);
    ok = false;
  }
  if (!ok || blocks == 1) return;
  sema->grid = grid;
  for (int d = 0; d < TL_MAX_CLUSTER_DIMS; ++d) sema->cluster[d] = sizes[d];
  tl_op_set_ints(sema->module, tl_module_kernel(sema->module), TL_ATTR_CLUSTER, sizes, TL_MAX_CLUSTER_DIMS);
}

static bool is_named(const tl_sema *sema, int32_t dim) {
  for (uint32_t i = 0; i < sema->kernel->num_cluster; ++i)
    if (grid_dim(sema, sema->kernel->cluster[i].name) == dim) return true;
  return false;
}

bool tl_instantiate_across(tl_sema *sema, const tl_option *option, int32_t *out_dim) {
  *out_dim = -1;
  if (!option) return true;
  const tl_expr *name = option->value;
  int32_t dim = name->kind == TL_EXPR_NAME ? grid_dim(sema, name->text) : -1;
  if (dim < 0 || dim >= TL_MAX_CLUSTER_DIMS || !is_named(sema, dim)) {
    tl_diag *diag =
        tl_diag_report(sema->diags, TL_DIAG_CLUSTER, name->loc,
                       "`%s` is no index of the grid along which blocks form a cluster", tl_sema_expr_text(sema, name));
    tl_diag_add_hint(sema->diags, diag, "the key `cluster` says along which they do: `cluster: {bx: 2}`");
    return false;
  }
  if (!sema->in_role) {
    tl_diag_report(sema->diags, TL_DIAG_CLUSTER, option->loc,
                   "what is for other blocks of the cluster stands in a role");
    return false;
  }
  if (sema->cluster[dim] > 1) *out_dim = dim;  // of one block there are no others
  return true;
}

bool tl_instantiate_peer(tl_sema *sema, const tl_stmt *stmt, int32_t *out_dim, tl_value **out_place) {
  const tl_option *cluster = stmt ? tl_instantiate_option(stmt, "cluster") : NULL;
  const tl_option *place = stmt ? tl_instantiate_option(stmt, "place") : NULL;
  *out_dim = -1;
  if (!cluster && !place) return true;
  if (!cluster || !place) {
    tl_diag_report(sema->diags, TL_DIAG_CLUSTER, (cluster ? cluster : place)->loc,
                   "`cluster` and `place` of a view go together: along which index, and which block there");
    return false;
  }
  if (!tl_instantiate_across(sema, cluster, out_dim)) return false;
  *out_place = tl_sema_index(sema, place->value);
  if (!*out_place) return false;
  tl_range range = tl_value_range(*out_place);
  int64_t size = *out_dim < 0 ? 1 : sema->cluster[*out_dim];
  if (range.lo >= 0 && range.hi < size) {
    if (*out_dim < 0) *out_place = NULL;  // the own tile
    return true;
  }
  const tl_expr *name = cluster->value;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_CLUSTER, place->value->loc,
                                 "a place along `%s` is 0 to %lld, and this may be another number",
                                 tl_sema_expr_text(sema, name), (long long)size - 1);
  tl_diag_add_hint(sema->diags, diag, "`(%s + 1) %% %lld` is the next block's", tl_sema_expr_text(sema, name),
                   (long long)size);
  return false;
}

static bool reads_into_registers(const tl_op *op, const tl_value *tile) {
  if (op->code == TL_OP_LOAD || op->code == TL_OP_TILE_LOAD) return true;
  return op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_src) == tile &&
         tl_op_arg(op, TL_GROUP_COPY_dst)->type->scope == TL_SCOPE_FRAGMENT;
}

static void validate_peer(tl_op *op, void *user) {
  tl_sema *sema = user;
  if (op->code != TL_OP_PEER_TILE) return;
  for (const tl_use *use = op->results[0].uses; use; use = use->next) {
    if (reads_into_registers(use->owner, &op->results[0])) continue;
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_CLUSTER, use->owner->loc,
                                   "the tile of another block can only be read into fragments, or element by element");
    tl_diag_add_note(sema->diags, diag, op->loc, "named here");
  }
}

void tl_instantiate_validate_peers(tl_sema *sema) {
  if (sema->grid) tl_walk(tl_module_kernel(sema->module), validate_peer, sema);
}

// Whether the value may differ between blocks of one cluster along the dim that `index` counts.
static bool varies(const tl_value *value, const tl_value *index, int64_t size, int depth) {
  if (value == index || depth == 0) return true;
  const tl_op *op = value->def;
  int64_t divisor;
  if (!op) return false;
  if (op->code == TL_OP_FLOORDIV && tl_op_operand(op, 0) == index &&
      tl_value_const_int(tl_op_operand(op, 1), &divisor) && divisor > 0 && divisor % size == 0)
    return false;
  for (uint32_t i = 0; i < op->num_operands; ++i)
    if (varies(tl_op_operand(op, i), index, size, depth - 1)) return true;
  return false;
}

bool tl_instantiate_validate_multicast(tl_sema *sema, const tl_option *option, int32_t dim, const tl_sema_region *src,
                                       const tl_sema_region *dst) {
  enum { MAX_STEPS = 24 };
  const tl_named_expr *index = &sema->kernel->grid[dim];
  int64_t size = sema->cluster[dim], rows = dst->symbol->value->type->dims[0];
  for (int32_t d = 0; d < src->rank; ++d) {
    if (!varies(src->offsets[d], tl_op_result(sema->grid, (uint32_t)dim), size, MAX_STEPS)) continue;
    tl_diag_report(sema->diags, TL_DIAG_CLUSTER, option->loc,
                   "the blocks along `%.*s` do not all need the same part of `%.*s`: it depends on `%.*s`",
                   TL_STR_ARG(index->name), TL_STR_ARG(src->symbol->name), TL_STR_ARG(index->name));
    return false;
  }
  if (rows % size == 0) return true;
  tl_diag_report(sema->diags, TL_DIAG_CLUSTER, option->loc,
                 "each of %lld blocks brings an equal share of the rows of `%.*s`, which has %lld", (long long)size,
                 TL_STR_ARG(dst->symbol->name), (long long)rows);
  return false;
}
