// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the files that turn index notation into LLVM IR text.
#ifndef TL_HARNESS_REFERENCE_INTERNAL_H
#define TL_HARNESS_REFERENCE_INTERNAL_H

#include "harness/reference/reference.h"
#include "support/strbuf.h"

// An index in scope while code is made.
typedef struct tl_ref_index {
  tl_str name;
  int value;                         // number of the SSA register (%vN) that holds it
  bool has_range;                    // lo and hi are known
  int64_t lo, hi;                    // the values are lo <= i < hi
  const tl_expr *lo_expr, *hi_expr;  // a range given by expressions that do not fold; else NULL
} tl_ref_index;

typedef TL_VEC(tl_ref_index) tl_ref_indices;

// A value in the making: an SSA register or a constant, printed as an operand.
typedef struct tl_ref_value {
  enum { TL_REF_FLOAT, TL_REF_INT, TL_REF_BOOL } kind;  // double, i64, i1
  char text[40];                                        // "%v12", "3", "0x3FF0000000000000", "true"
  tl_dtype dtype;                                       // in the kernel, where that is known; else NONE
  bool has_range;                                       // of an integer: lo <= value <= hi
  int64_t lo, hi;
} tl_ref_value;

// One callable piece of the compiled function: run(buffers, {unit, lo, hi}) computes a statement for lo <= i < hi of
// its outermost index.
typedef struct tl_ref_unit {
  bool can_split;  // the outermost loop may be cut between threads
  int64_t lo, hi;  // its range (when it can be split)
  double work;     // innermost iterations, estimated
} tl_ref_unit;

// A reduction whose value was computed before the loops that are open.
typedef struct tl_ref_hoisted {
  const tl_expr *expr;
  tl_ref_value value;
} tl_ref_hoisted;

typedef struct tl_ref_code {
  tl_reference *reference;
  tl_strbuf allocas;  // of the entry block
  tl_strbuf body;
  int next_value, next_label;
  bool splits_outermost;  // the next loop takes its range from run's second argument
  tl_ref_indices scope;
  TL_VEC(tl_ref_unit) units;
  TL_VEC(tl_ref_hoisted) hoisted;
  double loop_work;  // product of the extents of the loops that are open
  double work;       // of the unit
} tl_ref_code;

// Positions in run's first argument of the C helpers; buffers follow.
enum { TL_REF_SLOT_ROUND, TL_REF_SLOT_BITCAST, TL_REF_SLOT_CAST, TL_REF_SLOT_BUFFERS };

// ---- reference_infer.c
// Ranges of the indices of one assignment: explicit ones, then what the dims say. Reports and returns false when
// unknown.
bool tl_ref_infer_left(tl_ref_code *code, const tl_reference_stmt *stmt, const tl_expr *target, tl_ref_indices *out);
// The range of a reduction's index from where it stands alone in `body`.
bool tl_ref_infer_reduction(tl_ref_code *code, const tl_reduction_index *index, const tl_expr *body, tl_ref_index *out);
// How an assignment reads its own target.
typedef enum tl_ref_self_read {
  TL_REF_SELF_NONE,        // not, or only the element that it writes
  TL_REF_SELF_RECURRENCE,  // shifted down along index `*out_axis` of the left side
  TL_REF_SELF_OTHER        // elsewhere: the right side must be complete first
} tl_ref_self_read;
tl_ref_self_read tl_ref_self_reads(tl_ref_code *code, const tl_expr *target, const tl_expr *value, uint32_t *out_axis);
const tl_ref_index *tl_ref_find_index(const tl_ref_code *code, tl_str name);
// The statement's target as a buffer: the existing one, or a new one whose dims are the ranges of its subscripts.
bool tl_ref_declare_target(tl_ref_code *code, const tl_expr *target, const tl_ref_indices *left, bool is_float,
                           int *out_buffer);
// The buffer's name of a target or access.
tl_str tl_ref_base_name(const tl_expr *access);
// Whether `expr` reads the buffer `name`.
bool tl_ref_reads(const tl_expr *expr, tl_str name);
// Calls `visit` for every expression directly inside `expr`.
typedef void tl_ref_child_fn(const tl_expr *child, void *user);
void tl_ref_for_children(const tl_expr *expr, tl_ref_child_fn *visit, void *user);
// Whether an index that is in scope stands in `expr`.
bool tl_ref_names_index(const tl_ref_code *code, const tl_expr *expr);
// Whether `expr` folds to an integer of params and lets (and literals); never reports.
bool tl_ref_fold_int(const tl_ref_code *code, const tl_expr *expr, int64_t *out);

// ---- reference_kind.c
// Whether the value of an expression is an integer (or a bool), as the buffers it reads stand. Never reports.
bool tl_ref_is_integer(const tl_ref_code *code, const tl_expr *expr);

// ---- reference_hoist.c
// Emits the outermost reductions of `body` that depend on none of the indices (of loops about to be opened) and do not
// read the buffer `unwanted`, and appends them to `code->hoisted`; who closes the loops takes them from there again.
bool tl_ref_hoist(tl_ref_code *code, const tl_expr *body, const tl_str *indices, size_t num_indices, tl_str unwanted);
// NULL: not computed.
const tl_ref_value *tl_ref_find_hoisted(const tl_ref_code *code, const tl_expr *reduction);

// ---- reference_expr.c
bool tl_ref_emit(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out);
bool tl_ref_emit_int(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out);
tl_ref_value tl_ref_to_float(tl_ref_code *code, tl_ref_value value);
tl_ref_value tl_ref_to_int(tl_ref_code *code, tl_ref_value value);
tl_ref_value tl_ref_to_bool(tl_ref_code *code, tl_ref_value value);
// The dtype that the kernel computes an operation of two integers in. NONE where it is not known, and of an index,
// whose arithmetic has no width.
tl_dtype tl_ref_common_dtype(const tl_ref_value *a, const tl_ref_value *b);
tl_ref_value tl_ref_const_int(int64_t value);
tl_ref_value tl_ref_const_float(double value);
// "%vN = <format>" appended to the body; the register as a value.
tl_ref_value tl_ref_op(tl_ref_code *code, int kind, const char *format, ...) TL_PRINTF_LIKE(3, 4);

// ---- reference_access.c
// The address of an element and whether it is in bounds (`text` "true" when proven).
typedef struct tl_ref_address {
  int buffer;              // number of the buffer
  tl_ref_value offset;     // elements, 0 where out of bounds
  tl_ref_value in_bounds;  // BOOL
  const tl_reference_buffer *info;
} tl_ref_address;
bool tl_ref_emit_address(tl_ref_code *code, const tl_expr *access, tl_ref_address *out);
bool tl_ref_emit_load(tl_ref_code *code, const tl_expr *access, const tl_expr *otherwise, tl_ref_value *out);
void tl_ref_emit_store(tl_ref_code *code, const tl_ref_address *address, tl_ref_value value);
// -1 when there is no buffer of that name.
int tl_ref_buffer_number(const tl_ref_code *code, tl_str name);

// ---- reference_loop.c
typedef struct tl_ref_loop {
  int label;
  double outer_work;
} tl_ref_loop;
bool tl_ref_emit_reduction(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out);
bool tl_ref_emit_stmt(tl_ref_code *code, const tl_reference_stmt *stmt);

// Whether `name` is that of a reduction: "sum".
bool tl_ref_is_reduction(tl_str name);
// Returns the diagnostic, for hints.
tl_diag *tl_ref_error(tl_ref_code *code, tl_loc loc, const char *format, ...) TL_PRINTF_LIKE(3, 4);

#endif
