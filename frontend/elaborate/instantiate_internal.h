// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts of instantiate: the document's head, and one function a family of statements.
#ifndef TL_FRONTEND_INSTANTIATE_INTERNAL_H
#define TL_FRONTEND_INSTANTIATE_INTERNAL_H

#include "frontend/sema/sema.h"

// instantiate_head.c: dynamic params, lets, args, requires, views, grid, tiles, in this order at the builder.
void tl_instantiate_head(tl_sema *sema, const bool *poisoned);
// A view of the document (`stmt` NULL) or of a body; defines its name.
void tl_instantiate_view(tl_sema *sema, const tl_view *view, const tl_stmt *stmt);

// instantiate_stmt.c: control flow and scopes.
void tl_instantiate_stmts(tl_sema *sema, const tl_stmt_list *list);

// instantiate_flow.c
// The body of the kernel, which `exit` may leave.
void tl_instantiate_kernel_body(tl_sema *sema, const tl_stmt_list *list);
// After a statement that may have left its list: puts the builder into the condition that it has not. False when the
// statement cannot leave; else the rest of the list follows and then `tl_instantiate_leave` with the outer builder.
bool tl_instantiate_begin_rest(tl_sema *sema, const tl_stmt *stmt, tl_builder *out_outer);
// A FOR over range[0] (lower), range[1] (upper), range[2] (step) for a loop statement, and the builder inside of it.
tl_op *tl_instantiate_begin_loop(tl_sema *sema, const tl_stmt *stmt, tl_value *const *range, tl_flow *flow);
void tl_instantiate_end_loop(tl_sema *sema, tl_flow *flow);
void tl_instantiate_while(tl_sema *sema, const tl_stmt *stmt);
void tl_instantiate_break(tl_sema *sema, const tl_stmt *stmt);
void tl_instantiate_continue(tl_sema *sema, const tl_stmt *stmt);
void tl_instantiate_exit(tl_sema *sema, const tl_stmt *stmt);

// instantiate_copy.c
void tl_instantiate_copy(tl_sema *sema, const tl_stmt *stmt);
void tl_instantiate_fill(tl_sema *sema, const tl_stmt *stmt);
// A whole tile as a region, and a copy between regions of the same extents that lie apart, as a part of `stmt`.
tl_sema_region tl_instantiate_whole(tl_sema *sema, tl_symbol *symbol, tl_loc loc);
void tl_instantiate_move(tl_sema *sema, const tl_stmt *stmt, const tl_sema_region *src, const tl_sema_region *dst);
// A copy from a shared tile by the copy engine that combines with the tensor by the atomic `kind`.
void tl_instantiate_engine_reduction(tl_sema *sema, const tl_stmt *stmt, const tl_sema_region *src,
                                     const tl_sema_region *dst, int kind);
// `commit_group:` and `wait_group: n`.
void tl_instantiate_copy_group(tl_sema *sema, const tl_stmt *stmt);
// Whether asynchronous copies, commits or waits by hand stand anywhere in the list.
bool tl_instantiate_holds_async(const tl_stmt_list *list);

// instantiate_hand.c: barriers and roles of the author.
// Declares the kernel's barriers and starts them.
void tl_instantiate_barriers(tl_sema *sema);
// The mbarriers and the stage that `b` or `b[s]` names; false after a report.
bool tl_instantiate_barrier(tl_sema *sema, const tl_expr *expr, tl_value **out_barrier, tl_value **out_stage);
// Reports a stage that is certainly none of the `count` that `symbol` has.
bool tl_instantiate_validate_stage(tl_sema *sema, const tl_symbol *symbol, tl_value *stage, int64_t count, tl_loc loc);
// `arrive`, `wait` and `expect`.
void tl_instantiate_barrier_stmt(tl_sema *sema, const tl_stmt *stmt);
// `sync` and `arrive` at a named barrier; false: the target is none, and nothing was said.
bool tl_instantiate_named(tl_sema *sema, const tl_stmt *stmt);
void tl_instantiate_roles(tl_sema *sema, const tl_stmt *stmt);
// Reports a statement behind `specialize`.
bool tl_instantiate_behind_roles(tl_sema *sema, const tl_stmt *stmt);
// Once the body is there: barriers that nobody arrives at or waits for, tiles in registers of two roles.
void tl_instantiate_validate_hand(tl_sema *sema);

// instantiate_cluster.c
// What the key `cluster` says of the kernel's GRID.
void tl_instantiate_cluster(tl_sema *sema, tl_op *grid);
// The grid dim that `multicast` or `cluster` of a statement names, -1 without the option; false after a report.
bool tl_instantiate_across(tl_sema *sema, const tl_option *option, int32_t *out_dim);
// Where `cluster` and `place` of a view say that another block has the tile: the grid dim (-1: they do not) and the
// place. False after a report.
bool tl_instantiate_peer(tl_sema *sema, const tl_stmt *stmt, int32_t *out_dim, tl_value **out_place);
// Once the body is there: tiles of other blocks are read only.
void tl_instantiate_validate_peers(tl_sema *sema);
// Whether all blocks of the cluster along `dim` need what the copy brings; reports.
bool tl_instantiate_validate_multicast(tl_sema *sema, const tl_option *option, int32_t dim, const tl_sema_region *src,
                                       const tl_sema_region *dst);

// instantiate_local.c
// A scalar of the block made of reductions of whole tiles: it goes through shared memory to every thread.
tl_sema_value tl_instantiate_reduced_scalar(tl_sema *sema, const tl_expr *expr);
// An expression of the block outside of a `parallel`: reductions of whole tiles may stand in it. As a condition.
tl_sema_value tl_instantiate_block_value(tl_sema *sema, const tl_expr *expr);
tl_sema_value tl_instantiate_block_condition(tl_sema *sema, const tl_expr *expr);
// Sets every element of a local array, or a local scalar.
void tl_instantiate_fill_local(tl_sema *sema, const tl_symbol *symbol, const tl_sema_value *value, tl_loc target,
                               tl_loc loc);

// instantiate_gemm.c
void tl_instantiate_gemm(tl_sema *sema, const tl_stmt *stmt);
void tl_instantiate_wait_gemm(tl_sema *sema, const tl_stmt *stmt);

// instantiate_reduce.c: `reduce:`, and the reductions inside an expression, which become tiles ahead of the statement.
void tl_instantiate_reduce(tl_sema *sema, const tl_stmt *stmt);
bool tl_instantiate_has_reduction(const tl_expr *expr);
// Afterwards tl_sema_find_reduction gives the tile behind each; the caller sets sema->reductions back to its length
// before.
void tl_instantiate_reductions(tl_sema *sema, const tl_expr *expr);
// A shared tile or fragment of our own, declared at the head of the kernel.
tl_value *tl_instantiate_tile(tl_sema *sema, int scope, const char *name, tl_dtype dtype, const int64_t *dims,
                              int32_t rank, tl_loc loc);
// What reductions and scans share. A fragment of our own.
tl_value *tl_instantiate_fragment(tl_sema *sema, const char *name, tl_dtype dtype, const int64_t *dims, int32_t rank,
                                  tl_loc loc);
// An expression of tiles as a fragment: the one it names, or a new one that its elements are computed into. NULL after
// errors.
tl_value *tl_instantiate_operand(tl_sema *sema, const tl_expr *operand);
// From now on `expr` stands for the fragment `value` (NULL: poison) in tile assignments.
void tl_instantiate_stand_for(tl_sema *sema, const tl_expr *expr, tl_value *value);
// Whether the target has the very shape of what `call` stands for; reports.
bool tl_instantiate_validate_result(tl_sema *sema, const tl_expr *target, const tl_expr *call);
// A flag that must be known at compile time; an axis of a tile, negative ones from the end. False after a report.
bool tl_instantiate_flag(tl_sema *sema, const tl_expr *value, const char *name, bool *out);
bool tl_instantiate_axis(tl_sema *sema, const tl_expr *value, const tl_type *tile, int32_t *out);

// instantiate_scan.c
void tl_instantiate_scan(tl_sema *sema, const tl_stmt *stmt);

// instantiate_atomic.c
void tl_instantiate_atomic(tl_sema *sema, const tl_stmt *stmt);
void tl_instantiate_wait_until(tl_sema *sema, const tl_stmt *stmt);

// instantiate_print.c
void tl_instantiate_print(tl_sema *sema, const tl_stmt *stmt);
void tl_instantiate_assert(tl_sema *sema, const tl_stmt *stmt);

// instantiate_assume.c
// From `begin` to the end dynamic params are what the launcher has.
void tl_instantiate_as_launched(tl_sema *sema, bool begin);
// What a condition that the launcher tests says of single dynamic params becomes attributes of them.
void tl_instantiate_requirement(tl_sema *sema, const tl_value *condition);
// What the document's head assumes of arguments.
void tl_instantiate_assumptions(tl_sema *sema);
void tl_instantiate_assume(tl_sema *sema, const tl_stmt *stmt);

// instantiate_assign.c: element and tile assignments.
void tl_instantiate_assign(tl_sema *sema, const tl_stmt *stmt);
// An assignment to one target.
void tl_instantiate_assign_one(tl_sema *sema, const tl_assign *assign);
// Whether an element of the buffer may be written where the builder stands; reports.
bool tl_instantiate_validate_element(tl_sema *sema, const tl_symbol *symbol, tl_loc loc);
// Names for the indices of loops that stand for whole tiles.
extern const char *const tl_instantiate_index_names[TL_MAX_RANK];
// The extents of a region must be constant (reports); a run-time end becomes a condition.
bool tl_instantiate_region_extents(tl_sema *sema, const tl_sema_region *region, int64_t *extents);
// Buffer indices of the element of `region` that the loop indices name.
void tl_instantiate_region_indices(tl_sema *sema, const tl_sema_region *region, tl_value *const *loop, tl_value **out);
// Opens the condition that every index of a bounded slice is below its limit; NULL when there is none.
tl_op *tl_instantiate_open_limits(tl_sema *sema, const tl_sema_region *region, tl_value *const *indices,
                                  tl_builder *outer);

// A `parallel` over `extents` with unnamed indices, and the builder inside it; `tl_instantiate_end_parallel` leaves it.
typedef struct tl_parallel_scope {
  tl_op *op;
  tl_builder outer;
  bool outer_in_parallel;
} tl_parallel_scope;
tl_parallel_scope tl_instantiate_begin_parallel(tl_sema *sema, const int64_t *extents, int32_t rank,
                                                const char *const *names, tl_loc loc);
void tl_instantiate_end_parallel(tl_sema *sema, tl_parallel_scope *scope);
// Reports a statement over more than 2^31 - 1 elements.
bool tl_instantiate_validate_extents(tl_sema *sema, const int64_t *extents, int32_t rank, tl_loc loc);
// Enters region `index` of `op` and leaves it; the builder is restored.
tl_builder tl_instantiate_enter(tl_sema *sema, tl_op *op, uint32_t index);
void tl_instantiate_leave(tl_sema *sema, tl_builder outer);

// ---- options
const tl_option *tl_instantiate_option(const tl_stmt *stmt, const char *name);
// The member of an IR enumeration that an option names; `fallback` without the option, -1 after an error.
int tl_instantiate_enum_option(tl_sema *sema, const tl_stmt *stmt, const char *name, tl_ir_enum which, int fallback);
// Refuses what stands inside `parallel` but works on whole tiles; true when it was refused.
bool tl_instantiate_refuse_in_parallel(tl_sema *sema, const tl_stmt *stmt, const char *what);
// Whether the buffer may be written; reports.
bool tl_instantiate_validate_writable(tl_sema *sema, const tl_symbol *symbol, tl_loc loc);

#endif
