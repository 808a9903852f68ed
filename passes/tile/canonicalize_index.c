// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Quotients and remainders of indices that are made of blocks: with 0 <= j < 32,
//
//   floordiv(32 * ko + j, 128) = floordiv(ko, 4)        mod(32 * ko + j, 128) = 32 * mod(ko, 4) + j
//
// so that what the elements of a tile have in common is computed once, and the rest is a plain sum.
#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/tile/canonicalize.h"

// The terms of an affine form in two parts: block * quotient + rest with 0 <= rest < block.
typedef struct block_split {
  int64_t block;
  tl_affine quotient;
  tl_affine rest;
} block_split;

static bool split_by(const tl_affine *form, int64_t block, block_split *out) {
  *out = (block_split){.block = block, .quotient = {.valid = true}, .rest = {.valid = true}};
  for (int32_t i = 0; i < form->num_terms; i++) {
    bool whole = form->terms[i].coefficient % block == 0;
    tl_affine *part = whole ? &out->quotient : &out->rest;
    part->terms[part->num_terms] = form->terms[i];
    if (whole) part->terms[part->num_terms].coefficient /= block;
    part->num_terms++;
  }
  if (!tl_fold_index(TL_OP_MOD, form->constant, block, &out->rest.constant)) return false;
  if (!tl_fold_index(TL_OP_FLOORDIV, form->constant, block, &out->quotient.constant)) return false;
  tl_range range = tl_affine_range(&out->rest);
  return out->quotient.num_terms > 0 && range.lo >= 0 && range.hi < block;
}

// The largest block that divides `divisor` and splits the form.
static bool find_split(const tl_affine *form, int64_t divisor, block_split *out) {
  bool found = false;
  for (int32_t i = 0; i < form->num_terms; i++) {
    int64_t block = tl_common_divisor(form->terms[i].coefficient, divisor);
    block_split split;
    if (block <= 1 || (found && block <= out->block) || !split_by(form, block, &split)) continue;
    *out = split;
    found = true;
  }
  return found;
}

static bool all_indices(const tl_affine *form) {
  for (int32_t i = 0; i < form->num_terms; i++) {
    if (form->terms[i].symbol->type->kind != TL_TYPE_INDEX) return false;
  }
  return true;
}

tl_value *tl_canonicalize_quotient(tl_builder *builder, const tl_op *op) {
  int64_t divisor = 0;
  if (op->code != TL_OP_FLOORDIV && op->code != TL_OP_MOD) return NULL;
  if (!tl_value_const_int(tl_op_operand(op, 1), &divisor) || divisor <= 1) return NULL;
  tl_affine form = tl_affine_of(tl_op_operand(op, 0));
  block_split split;
  if (!form.valid || !all_indices(&form) || !find_split(&form, divisor, &split)) return NULL;
  // Without a rest the plain op says the same.
  if (split.rest.num_terms == 0 && split.rest.constant == 0) return NULL;
  tl_value *quotient = tl_affine_build(builder, &split.quotient);
  tl_value *by = tl_build_index(builder, divisor / split.block);
  if (op->code == TL_OP_FLOORDIV) return tl_index_floordiv(builder, quotient, by);
  tl_value *block = tl_build_index(builder, split.block);
  tl_value *blocks = tl_index_mul(builder, tl_index_mod(builder, quotient, by), block);
  return tl_index_add(builder, blocks, tl_affine_build(builder, &split.rest));
}
