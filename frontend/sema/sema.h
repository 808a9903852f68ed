// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Semantic analysis inside the front end: scopes, types and the translation of expressions and regions of tensors.
// Errors are reported where they are found and give poison, which every user of a value passes on silently.
#ifndef TL_FRONTEND_SEMA_H
#define TL_FRONTEND_SEMA_H

#include "frontend/sema/sema_fold.h"
#include "ir/index/affine.h"

// ---- names
typedef enum tl_symbol_kind {
  TL_SYMBOL_CONST,    // folded: adopts the type of what it meets
  TL_SYMBOL_VALUE,    // a scalar of the IR
  TL_SYMBOL_BUFFER,   // a tensor, tile or view
  TL_SYMBOL_TILES,    // several shared tiles of one name, of which a view names one
  TL_SYMBOL_BARRIER,  // mbarriers of the author
  TL_SYMBOL_POISON    // its definition had errors
} tl_symbol_kind;

typedef enum tl_symbol_role {
  TL_ROLE_PARAM,
  TL_ROLE_LET,
  TL_ROLE_ARG,
  TL_ROLE_GRID,
  TL_ROLE_TILE,
  TL_ROLE_TILES,
  TL_ROLE_BARRIER,
  TL_ROLE_LOCAL,
  TL_ROLE_VIEW,
  TL_ROLE_INDEX,
  TL_ROLE_BODY_LET
} tl_symbol_role;

// What the author knows of a value: bounds and a divisor.
typedef struct tl_sema_fact {
  tl_value *lower, *upper;  // inclusive, exclusive; NULL: none
  int64_t divisor;          // 1: none
  const char *text;
  tl_loc loc;
  const struct tl_sema_fact *next;
} tl_sema_fact;

typedef struct tl_symbol {
  tl_str name;
  tl_loc loc;
  tl_symbol_kind kind;
  tl_symbol_role role;
  tl_const constant;            // CONST
  tl_value *value;              // VALUE: a scalar; BUFFER: the buffer
  tl_value *exact;              // VALUE of a body let: the same text without wrapping, an index; NULL: as `value`
  bool at_launch;               // VALUE: made of dynamic params only, so the launcher can compute it
  tl_value *dims[TL_MAX_RANK];  // BUFFER: elements, as index values; NULL for tiles (their type has them)
  bool is_dense;                // BUFFER: row-major without gaps, so it can be viewed
  int access;                   // tl_access of tensors and their views; tiles are INOUT
  const tl_sema_fact *fact;     // BUFFER: of each of its elements, and of 0; NULL: none
  bool is_optional;             // BUFFER: it may be absent
  const tl_expr *text;          // VALUE of a body let: what it was given; else NULL
  struct tl_symbol *shadowed;   // what the name means outside of this scope
} tl_symbol;

// ---- values of expressions
typedef struct tl_sema_value {
  enum { TL_SEMA_POISON, TL_SEMA_CONST, TL_SEMA_VALUE } kind;
  tl_const constant;  // CONST: untyped
  tl_value *value;    // VALUE: index or a scalar
} tl_sema_value;

// Set while the right side of a tile assignment is translated: whole tiles then stand for their element at `indices`.
typedef struct tl_tile_context {
  const struct tl_tile_context *outer;  // of `(a * b)[:, None]`: the context around the value; else NULL
  int32_t rank;
  int64_t extents[TL_MAX_RANK];
  tl_value *indices[TL_MAX_RANK];
  const tl_symbol *target;                // what is assigned
  tl_value *target_indices[TL_MAX_RANK];  // its element in this iteration
} tl_tile_context;

// A loop around the current statement, and the flags by which statements leave it (instantiate_flow.c).
typedef struct tl_flow {
  struct tl_flow *outer;
  tl_value *live;       // local bool: another iteration follows; NULL when only the range ends the loop
  tl_value *iteration;  // local bool: the rest of this iteration runs; NULL when nothing skips it
  bool in_parallel;     // the loop stands inside `parallel`
  tl_builder before;    // where the statements around the loop go on
} tl_flow;

// A reduction of the current statement: what the call `expr` stands for.
typedef struct tl_sema_reduction {
  const tl_expr *expr;
  tl_symbol *symbol;
} tl_sema_reduction;

// Which integer data becomes an index at once, so that the arithmetic on it does not wrap.
typedef enum tl_exactness {
  TL_EXACT_NOTHING,
  TL_EXACT_SIGNED,  // what arithmetic takes as i32: the sides of a comparison. u32 wraps there, as hashes want it
  TL_EXACT_ALL      // u32 too: what a subscript would make of the text
} tl_exactness;

typedef struct tl_sema {
  tl_arena *arena;  // Borrowed; scratch that lives as long as the analysis.
  tl_diags *diags;  // Borrowed.
  const tl_sources *sources;
  const tl_kernel_spec *kernel;
  const tl_target *target;  // may be NULL
  const tl_env *env;
  tl_module *module;
  tl_builder builder;
  tl_strmap names;  // visible names → tl_symbol
  TL_VEC(tl_symbol *) stack;
  const tl_tile_context *tile;
  TL_VEC(tl_sema_reduction) reductions;
  TL_VEC(const tl_symbol *) present;  // optional tensors that are there, by the conditions around
  tl_flow *flow;                      // innermost loop, or NULL
  int num_rests;    // conditions around the current statement that skip it after `break`, `continue` or `exit`
  tl_value *alive;  // local bool: the block has not left by `exit`; NULL without one
  bool in_parallel;
  bool in_body;                          // else in the document's head
  tl_op *grid;                           // of a kernel with clusters
  int64_t cluster[TL_MAX_CLUSTER_DIMS];  // blocks of one along each grid dim; 0 without
  bool in_role;                          // inside of a role of the author
  const tl_op *roles;                    // his roles, behind which nothing may stand; NULL: none so far
  bool lost_roles;                       // they were refused, and what stands in them was not looked at
  bool launch_only;                      // translating something that the launcher evaluates
  bool index_position;                   // translating a subscript, extent or bound
  tl_exactness exact;                    // which data becomes an index beside that
} tl_sema;

void tl_sema_init(tl_sema *sema, tl_arena *arena, tl_diags *diags);
void tl_sema_fini(tl_sema *sema);

// sema_scope.c
// Defines a name; reports and returns NULL when it is visible already. Reserved words were refused by the parser.
tl_symbol *tl_sema_define(tl_sema *sema, tl_str name, tl_loc loc, tl_symbol_role role, tl_symbol_kind kind);
// A copy of a visible symbol that stands for the name until the scope ends.
tl_symbol *tl_sema_shadow(tl_sema *sema, tl_str name);
// Reports unknown names with the nearest visible one; returns NULL.
tl_symbol *tl_sema_lookup(tl_sema *sema, tl_str name, tl_loc loc);
// The same of a name that is assigned as a whole: who writes `y = …` may want a `let`. Later uses are not reported.
tl_symbol *tl_sema_lookup_target(tl_sema *sema, tl_str name, tl_loc loc);
size_t tl_sema_open_scope(const tl_sema *sema);
void tl_sema_close_scope(tl_sema *sema, size_t mark);
// "param", "tile", "loop index", …; and with the article.
const char *tl_symbol_role_text(tl_symbol_role role);
const char *tl_symbol_a_role(tl_symbol_role role);
// Text of an expression as written in canonical form. Owned by the arena.
const char *tl_sema_expr_text(tl_sema *sema, const tl_expr *expr);
// "[128, 64]"; -1 is printed as "?". Owned by the arena.
const char *tl_sema_shape_text(tl_arena *arena, const int64_t *dims, int32_t rank);
const char *tl_sema_buffer_shape(tl_sema *sema, const tl_symbol *symbol);
// Warns of params, lets, tiles and args that nothing in the spec mentions (sema_unused.c).
void tl_sema_warn_unused(tl_arena *arena, const tl_kernel_spec *kernel, tl_diags *diags);

// sema_types.c
tl_sema_value tl_sema_poison(void);
tl_sema_value tl_sema_of_const(tl_const constant);
tl_sema_value tl_sema_of_value(tl_value *value);
// "f16", "index", "the constant 3": what a message calls the type of a value.
const char *tl_sema_type_text(tl_sema *sema, const tl_sema_value *value);
bool tl_sema_is_integer(const tl_sema_value *value);  // index, integer dtypes, bool, integer and bool constants
bool tl_sema_is_float(const tl_sema_value *value);
// The type arithmetic happens in: narrow integers and bool become i32; f8, f4 and tf32 become f32.
tl_dtype tl_sema_arithmetic_dtype(tl_dtype dtype);
// The dtype that an index has where its bits are asked for: i64 where it is computed from data or dynamic params of 64
// bits, else i32.
tl_dtype tl_sema_index_dtype(const tl_value *index);
// The common type of two numbers, one of them at least no constant. NULL never.
const tl_type *tl_sema_common_type(tl_sema *sema, const tl_sema_value *a, const tl_sema_value *b);
// Converts to `type` (index or scalar). Constants are checked against the range of the type; NULL after a report.
tl_value *tl_sema_convert(tl_sema *sema, const tl_sema_value *value, const tl_type *type, tl_loc loc);
tl_value *tl_sema_to_dtype(tl_sema *sema, const tl_sema_value *value, tl_dtype dtype, tl_loc loc);
// A bool: constants keep being constants.
tl_sema_value tl_sema_to_bool(tl_sema *sema, const tl_sema_value *value, tl_loc loc);
// Reports why a constant expression does not fold.
void tl_sema_report_fold(tl_diags *diags, tl_fold_result result, tl_loc loc, const char *what);
// The same for a call of `function` with `args`: names the float that it does not take.
void tl_sema_report_fold_call(tl_diags *diags, tl_fold_result result, tl_loc loc, const char *function,
                              const tl_const *args, uint32_t num_args);
const char *tl_sema_op_text(tl_expr_op op);

// sema_ops.c
tl_sema_value tl_sema_binary(tl_sema *sema, tl_expr_op op, tl_sema_value a, tl_sema_value b, tl_loc loc);
tl_sema_value tl_sema_unary(tl_sema *sema, tl_expr_op op, tl_sema_value a, tl_loc loc);
tl_sema_value tl_sema_compare(tl_sema *sema, tl_expr_op op, tl_sema_value a, tl_sema_value b, tl_loc loc);
tl_sema_value tl_sema_select(tl_sema *sema, tl_sema_value condition, tl_sema_value a, tl_sema_value b, tl_loc loc);
// `then` if the condition (that of `asked`) holds, else `other`. Where a branch reads a tile at an index that is not
// proven inside it, only the chosen branch is evaluated; otherwise both are, without a branch.
tl_sema_value tl_sema_lazy_select(tl_sema *sema, tl_sema_value condition, const tl_expr *asked, const tl_expr *then,
                                  const tl_expr *other, tl_loc loc);
// The right side of `and` or `or`, a bool, when it is wanted.
typedef struct tl_sema_lazy tl_sema_lazy;
struct tl_sema_lazy {
  tl_sema_value (*evaluate)(tl_sema *sema, const tl_sema_lazy *lazy);
  const tl_expr *expr;
  uint32_t link;       // of a comparison: the first one of the rest
  tl_sema_value left;  // … and its left side
};
// `left and right`, or `left or right`. Where the right side reads a tile at an index that is not proven inside it, it
// is evaluated only when the left one does not decide; otherwise both are, without a branch.
tl_sema_value tl_sema_lazy_logical(tl_sema *sema, bool is_and, tl_sema_value left, const tl_sema_lazy *right,
                                   tl_loc loc);
// cast_up(x, dtype) and its kin; args[1] is a dtype.
tl_sema_value tl_sema_rounded_cast(tl_sema *sema, tl_function function, const tl_sema_value *args, tl_loc loc);
// A function of two floats (`math2`): of the common type, or f32 where that is no float.
tl_sema_value tl_sema_math2(tl_sema *sema, int function, const tl_sema_value *a, const tl_sema_value *b, tl_loc loc);
tl_sema_value tl_sema_min_max(tl_sema *sema, bool is_max, tl_sema_value a, tl_sema_value b, tl_loc loc);

// sema_call.c
tl_sema_value tl_sema_call(tl_sema *sema, const tl_expr *expr);
// philox(seed, counter, word, stream) of evaluated arguments.
tl_sema_value tl_sema_philox(tl_sema *sema, const tl_sema_value *args, const tl_expr *expr);
// False after a report: a constant that names none of the four words of a block.
bool tl_sema_validate_word(tl_sema *sema, const tl_sema_value *word, tl_loc loc);
// Whether the call reduces a tile: any of the reductions, of max and min those with one operand or a keyword.
bool tl_sema_is_reduction(const tl_expr *expr);
// The tl_reduction behind a function that scans: SUM for cumsum, PROD, MAX, MIN. -1 for other functions.
int tl_sema_scan_kind(tl_str function);
// The tile that a reduction of the current statement has become; NULL for other expressions.
tl_symbol *tl_sema_find_reduction(const tl_sema *sema, const tl_expr *expr);
// Checks the function's name and number of arguments; reports. NONE on errors.
tl_function tl_sema_validate_call(tl_diags *diags, const tl_expr *expr);

// sema_present.c: tensors that may be absent.
// Where `condition` holds (or not) these are there, beside those known already; the caller sets sema->present back to
// its length before.
void tl_sema_know_present(tl_sema *sema, const tl_expr *condition, bool holds);
// Whether the tensor is there; reports.
bool tl_sema_validate_present(tl_sema *sema, const tl_symbol *symbol, tl_loc loc);
// `present(X)`
tl_sema_value tl_sema_present(tl_sema *sema, const tl_expr *expr);

// sema_expr.c
tl_sema_value tl_sema_expr(tl_sema *sema, const tl_expr *expr);
// As tl_sema_expr, with data of at most 32 bits as indices. Reports nothing: for an expression that was translated
// before.
tl_sema_value tl_sema_exact(tl_sema *sema, const tl_expr *expr, tl_exactness exact);
// Whether wrapping could show in `value`, which `expr` gave: it is of 32 bits and made by arithmetic.
bool tl_sema_may_wrap(const tl_sema *sema, const tl_expr *expr, const tl_sema_value *value);
// In an index position: an index value, NULL after errors.
tl_value *tl_sema_index(tl_sema *sema, const tl_expr *expr);
// A compile-time integer; `what` names it in the message ("a tile's dim").
bool tl_sema_const_int(tl_sema *sema, const tl_expr *expr, const char *what, int64_t *out);
// A condition; POISON after errors.
tl_sema_value tl_sema_condition(tl_sema *sema, const tl_expr *expr);
// The dtype of elements that a declaration or cast names.
bool tl_sema_dtype(tl_sema *sema, const tl_expr *expr, tl_dtype *out);

// sema_sum.c: `sum[k in 0:n](…)` and its relatives.
tl_sema_value tl_sema_sum(tl_sema *sema, const tl_expr *expr);

// sema_shape.c
// Widens the shape by every whole tile and slice in the expression (NumPy broadcasting). False after a report.
bool tl_sema_add_shape(tl_sema *sema, const tl_expr *expr, tl_tile_context *tile);
// Whether slices or `None` are applied to a value that is no tile: `(a * b)[:, None]`.
bool tl_sema_is_reshaped(const tl_sema *sema, const tl_expr *expr);
// Such a value as the element of the current tile context.
tl_sema_value tl_sema_reshaped(tl_sema *sema, const tl_expr *expr);

// sema_access.c
// All subscripts name one element: `X[i, j]`.
bool tl_sema_is_element(const tl_expr *expr);
// The tensor or tile that a NAME or INDEX is about; reports otherwise.
tl_symbol *tl_sema_buffer(tl_sema *sema, const tl_expr *expr);
// Index values of an element's subscripts (as many as dims); false after errors.
bool tl_sema_subscripts(tl_sema *sema, const tl_symbol *symbol, const tl_expr *expr, tl_value **out_indices);
bool tl_sema_is_local_scalar(const tl_symbol *symbol);
// Reports a local array used outside of `parallel`, and a local scalar assigned inside; true for every other buffer.
bool tl_sema_validate_local_place(tl_sema *sema, const tl_symbol *symbol, bool is_write, tl_loc loc);
tl_sema_value tl_sema_load(tl_sema *sema, const tl_symbol *symbol, tl_value *const *indices, tl_value *pad, tl_loc loc);
tl_sema_value tl_sema_load_element(tl_sema *sema, const tl_expr *expr, const tl_expr *pad);
// The value as one of which the fact is known, with its test in the emulator.
tl_value *tl_sema_assumed(tl_sema *sema, tl_value *value, const tl_sema_fact *fact);
// A whole tile or a slice as the element of the current tile context (NumPy broadcasting).
tl_sema_value tl_sema_broadcast(tl_sema *sema, const tl_expr *expr);
// Whether the expression names whole tiles or slices.
bool tl_sema_has_tile(tl_sema *sema, const tl_expr *expr);
tl_value *tl_sema_dim(tl_sema *sema, const tl_symbol *symbol, int32_t dim);

// One axis of a region: a buffer dim that is walked.
typedef struct tl_sema_axis {
  int32_t dim;
  int64_t extent;  // elements; -1: known at run time only, or taken from the other side
  int64_t step;
  tl_value *length;  // from the first to the end, where that is known at run time only; else NULL
} tl_sema_axis;

// A box of a buffer as statements name it: `X`, `X[i, j]`, `X[b, i:+n, :]`, `X.T`.
typedef struct tl_sema_region {
  tl_symbol *symbol;
  tl_loc loc;
  bool is_corner;  // axes are not known before the other side is
  bool is_whole;   // just the name
  bool transposed;
  bool has_limits;  // a slice with a run-time end
  int32_t rank;     // of the buffer
  tl_value *offsets[TL_MAX_RANK];
  tl_value *limits[TL_MAX_RANK];  // all set when has_limits
  int32_t num_axes;
  tl_sema_axis axes[TL_MAX_RANK];
} tl_sema_region;
bool tl_sema_parse_region(tl_sema *sema, const tl_expr *expr, tl_sema_region *out);
// The most elements that an extent of run time may be; what is larger takes no part in a maximum.
enum { TL_MAX_RUN_TIME_EXTENT = 65536 };
// The most that the value may be, from 1 on; -1: there is no such number up to TL_MAX_RUN_TIME_EXTENT.
int64_t tl_sema_most(tl_value *value);
// Reports that `what` is known at run time only and has no maximum. False.
bool tl_sema_report_no_maximum(tl_sema *sema, const tl_expr *expr, const char *what);
// The most elements that axis `i` may have, by the size of its tile or tensor and by what is known of its length; -1:
// there is no maximum.
int64_t tl_sema_axis_most(const tl_sema_region *region, int32_t i);
// Makes a corner walk its last dims with the axes' extents of `other`; drops leading axes of 1 where ranks differ.
// Then every axis of both has one constant extent. Reports and returns false when they cannot agree.
bool tl_sema_match_regions(tl_sema *sema, tl_sema_region *a, tl_sema_region *b, tl_loc loc);

#endif
