// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operands of gemm: what they name, and where they lie when the product reads them.
#ifndef TL_FRONTEND_INSTANTIATE_GEMM_H
#define TL_FRONTEND_INSTANTIATE_GEMM_H

#include "frontend/elaborate/instantiate_internal.h"

// A tile, or a slice of one that has two dims of constant size.
typedef struct tl_gemm_operand {
  tl_symbol *symbol;
  const tl_expr *expr;    // with its `.T`
  tl_sema_region region;  // without
  bool transposed;
  bool is_slice;
  int64_t rows, columns;  // as they enter the product
} tl_gemm_operand;

// The left operand `sparse(A, meta)`; `meta` has no symbol where it is another.
typedef struct tl_gemm_left {
  tl_gemm_operand a;  // `columns` of a sparse one count the elements that are not there, too
  tl_gemm_operand meta;
} tl_gemm_left;
bool tl_gemm_parse_left(tl_sema *sema, const tl_expr *expr, tl_gemm_left *out);
// Whether there is a product of a sparse A with B, and the metadata fits A; reports.
bool tl_gemm_validate_sparse(tl_sema *sema, const tl_gemm_left *left, const tl_gemm_operand *b, int mma, tl_loc loc);

bool tl_gemm_parse_operand(tl_sema *sema, const tl_expr *expr, tl_gemm_operand *out);

// The tile that a product reads: the one that the author names, its part, or a copy in shared memory, which a remark
// tells of. `in_registers`: the product takes it from registers, too. `widened`: why integers of 4 bits become 8 bits
// wide, or NULL.
tl_value *tl_gemm_read_operand(tl_sema *sema, const tl_stmt *stmt, tl_gemm_operand *operand, bool in_registers,
                               const char *widened);

// The fragment that a product adds to, and what brings it where its author has it. Where that is somewhere else than in
// a fragment of its own, sums are copied out of it before the product (unless that `clears`) and back behind it.
typedef struct tl_gemm_sums {
  tl_value *value;
  tl_gemm_operand *acc;
  tl_symbol symbol;  // of the copy
  bool is_copy;
} tl_gemm_sums;
void tl_gemm_begin_sums(tl_sema *sema, const tl_stmt *stmt, tl_gemm_operand *acc, bool clears, tl_gemm_sums *out);
void tl_gemm_end_sums(tl_sema *sema, const tl_stmt *stmt, tl_gemm_sums *sums);

#endif
