// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the sources of the index analysis: one query's state, and its three mutually recursive questions.
#ifndef TL_IR_AFFINE_INTERNAL_H
#define TL_IR_AFFINE_INTERNAL_H

#include "ir/index/affine.h"

#define TL_RANGE_ALL ((tl_range){INT64_MIN, INT64_MAX})

// A range that is taken for granted while it is shown that a loop keeps it.
typedef struct tl_hypothesis {
  const tl_value *value;
  tl_range range;
  const struct tl_hypothesis *next;
} tl_hypothesis;

typedef struct tl_query_memory tl_query_memory;

// State of one query. It looks at the values nearest to those that it is about, and takes any other as unknown: what it
// answers depends on the IR and the question alone, not on the way that the answer took. The budget bounds the work
// beside that (hypotheses, proofs, comparisons): once it is spent every answer is "unknown".
typedef struct tl_query {
  int budget;
  int depth;
  uint32_t cuts;                    // how often the budget cut an answer short
  const tl_hypothesis *hypotheses;  // Borrowed. Innermost first.
  int num_hypotheses;
  uint64_t number;          // of this query in its thread
  tl_query_memory *memory;  // Borrowed: the thread's. Only the latest outer query of a thread may be asked.
} tl_query;

enum { TL_QUERY_MAX_HYPOTHESES = 2 };

// What a query has found for one of the values that it looks at.
typedef struct tl_query_answers {
  uint64_t form_of, range_of, divisor_of;  // number of the query that found it
  tl_affine form;
  tl_range range;
  int64_t divisor;
} tl_query_answers;

// query.c
void tl_query_init(tl_query *query);
// Names a value, or the symbols of a form, that the query is about. All before the first question.
void tl_query_about(tl_query *query, const tl_value *value);
void tl_query_about_form(tl_query *query, const tl_affine *form);
// A query inside `outer` that takes `hypothesis` for granted as well; tl_query_end_inner charges its work to `outer`.
void tl_query_init_inner(tl_query *inner, const tl_query *outer, const tl_hypothesis *hypothesis);
void tl_query_end_inner(const tl_query *inner, tl_query *outer);
// Spends a unit of the budget; false when there is none left.
bool tl_query_enter(tl_query *query);
void tl_query_leave(tl_query *query);
// Answers of the query for the value, to be read and filled: NULL when it does not look at the value. What the budget
// cut short must not be kept.
tl_query_answers *tl_query_answers_of(tl_query *query, const tl_value *value);

// affine.c
bool tl_type_is_integral(const tl_type *type);  // index or an integer dtype
tl_affine tl_query_affine(tl_query *query, tl_value *value);
tl_affine tl_affine_constant(int64_t value);
// a + scale * b
tl_affine tl_affine_combine(const tl_affine *a, int64_t scale, const tl_affine *b);
// Whether both are the same computation of the same values; false where that takes long to see.
bool tl_values_same(tl_value *a, tl_value *b);
// floordiv(x, c) for c > 0 as an affine form; invalid when it is none.
tl_affine tl_query_divide(tl_query *query, const tl_affine *x, int64_t c);

// range.c
tl_range tl_query_range(tl_query *query, tl_value *value);
tl_range tl_query_affine_range(tl_query *query, const tl_affine *affine);
bool tl_range_fits(tl_range range, const tl_type *type);
int64_t tl_query_affine_divisor(tl_query *query, const tl_affine *affine);
// x = g * y + k with an unknown integer y; g is 0 when x is the constant k.
void tl_query_residue(tl_query *query, const tl_affine *x, int64_t *out_g, int64_t *out_k);

// range_control.c
// Ranges of what control flow makes: the value that a for carries (argument `index`, from 1), a result of an if, and
// select.
tl_range tl_query_carried_range(tl_query *query, const tl_op *loop, uint32_t index);
tl_range tl_query_if_range(tl_query *query, const tl_op *op, uint32_t result);
tl_range tl_query_select_range(tl_query *query, const tl_op *op);

int64_t tl_floor_div(int64_t a, int64_t b);  // b not 0, no overflow: not INT64_MIN / -1
int64_t tl_floor_mod(int64_t a, int64_t b);

#endif
