// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies of expressions, with arguments in place of a macro's parameters. A parameter with subscripts whose argument is
// a region has those of both:
//
//   use: f(A[b, :, h, :])        X[i, j]  ⇒  A[b, i, h, j]        a slice `:` or `lo:` takes the subscript
//   use: f(A[r, c])              X[i, j]  ⇒  A[r + i, c + j]      a corner moves
#include <string.h>

#include "frontend/spec/macro.h"
#include "support/dtype.h"

tl_loc tl_macro_loc(const tl_macro_frame *frame, tl_loc loc) {
  if (frame && frame->macro && loc.source) loc.source = frame->source;
  return loc;
}

bool tl_macro_count(tl_macro_expander *x, const tl_macro_frame *frame, tl_loc loc) {
  if (x->full || (frame && !frame->macro)) return !x->full;
  if (++x->num_nodes <= TL_MACRO_MAX_NODES) return true;
  x->full = true;
  tl_diag_report(x->reader->diags, TL_DIAG_MACRO_LIMIT, loc, "the macros of this kernel expand to more than %d parts",
                 TL_MACRO_MAX_NODES);
  return false;
}

static const char *text_of(tl_macro_expander *x, const tl_expr *expr) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_expr_print(expr, &text);
  const char *copy =
      tl_arena_copy_bytes(x->reader->arena, tl_strbuf_c(&text), (size_t)tl_expr_shown(tl_strbuf_view(&text)));
  tl_strbuf_fini(&text);
  return copy;
}

// ---- subscripts on regions

static bool is_sliced(const tl_expr *region) {
  for (uint32_t i = 0; i < region->num_subscripts; i++)
    if (region->subscripts[i].kind != TL_SUBSCRIPT_ELEMENT) return true;
  return false;
}

// Why the region takes no further subscripts; NULL when it does. `count` subscripts that are no new axis are given.
static const char *why_not(const tl_expr *region, uint32_t count) {
  if (region->kind == TL_EXPR_TRANSPOSE) return "a transpose takes no subscripts";
  if (region->operands[0]->kind != TL_EXPR_NAME) return "it takes no subscripts";
  bool sliced = is_sliced(region);
  uint32_t axes = 0;
  for (uint32_t i = 0; i < region->num_subscripts; i++) {
    const tl_subscript *s = &region->subscripts[i];
    if (s->kind == TL_SUBSCRIPT_NEWAXIS) return "`None` takes no subscripts";
    if (s->kind == TL_SUBSCRIPT_COUNT || s->hi || s->step)
      return "a slice with an end or a step takes no subscripts: pass `lo:` or `:`, or the offset as an argument";
    axes += !sliced || s->kind == TL_SUBSCRIPT_RANGE;
  }
  return axes == count ? NULL : "the numbers of subscripts disagree";
}

// offset + value; NULL stands for 0.
static tl_expr *add(tl_macro_expander *x, tl_expr *offset, tl_expr *value) {
  if (!offset || !value) return offset ? offset : value;
  tl_expr *sum = TL_NEW(x->reader->arena, tl_expr);
  sum->kind = TL_EXPR_BINARY;
  sum->op = TL_EXPR_OP_ADD;
  sum->loc = value->loc;
  sum->num_operands = 2;
  sum->operands = TL_NEW_ARRAY(x->reader->arena, tl_expr *, 2);
  sum->operands[0] = offset;
  sum->operands[1] = value;
  sum->height = 1 + (offset->height > value->height ? offset->height : value->height);
  return sum;
}

static tl_subscript move(tl_macro_expander *x, tl_expr *offset, tl_subscript inner) {
  if (!offset) return inner;
  inner.lo = add(x, offset, inner.lo);
  if (inner.kind == TL_SUBSCRIPT_RANGE && inner.hi) inner.hi = add(x, offset, inner.hi);
  return inner;
}

// region[inner…], where both lists of subscripts are copies already.
static void compose(tl_macro_expander *x, const tl_expr *region, tl_expr *index) {
  uint32_t given = 0, used = 0, len = 0;
  for (uint32_t i = 0; i < index->num_subscripts; i++) given += index->subscripts[i].kind != TL_SUBSCRIPT_NEWAXIS;
  const char *problem = why_not(region, given);
  for (uint32_t i = 0; i < index->num_subscripts && !problem; i++)
    if (index->subscripts[i].step) problem = "a step cannot be applied to a part of a tensor or tile";
  if (problem) {
    tl_diag_report(x->reader->diags, TL_DIAG_MACRO_ARGUMENT, index->loc, "`%s` stands here for a parameter: %s",
                   text_of(x, region), problem);
    return;
  }
  bool sliced = is_sliced(region);
  tl_subscript *all = TL_NEW_ARRAY(x->reader->arena, tl_subscript, region->num_subscripts + index->num_subscripts);
  for (uint32_t i = 0; i < region->num_subscripts; i++) {
    const tl_subscript *outer = &region->subscripts[i];
    if (sliced && outer->kind == TL_SUBSCRIPT_ELEMENT) {
      all[len++] = *outer;
      continue;
    }
    while (index->subscripts[used].kind == TL_SUBSCRIPT_NEWAXIS) all[len++] = index->subscripts[used++];
    all[len++] = move(x, outer->lo, index->subscripts[used++]);
  }
  while (used < index->num_subscripts) all[len++] = index->subscripts[used++];
  index->operands[0] = region->operands[0];
  index->subscripts = all;
  index->num_subscripts = len;
}

// ---- copying

static void copy_subscripts(tl_macro_expander *x, tl_macro_frame *frame, tl_expr *expr) {
  const tl_subscript *from = expr->subscripts;
  expr->subscripts = TL_NEW_ARRAY(x->reader->arena, tl_subscript, expr->num_subscripts + 1);
  for (uint32_t i = 0; i < expr->num_subscripts; i++) {
    tl_subscript *to = &expr->subscripts[i];
    to->kind = from[i].kind;
    to->loc = tl_macro_loc(frame, from[i].loc);
    to->lo = tl_macro_copy_expr(x, frame, from[i].lo);
    to->hi = tl_macro_copy_expr(x, frame, from[i].hi);
    to->step = tl_macro_copy_expr(x, frame, from[i].step);
  }
}

static void copy_keywords(tl_macro_expander *x, tl_macro_frame *frame, tl_expr *expr) {
  const tl_keyword *from = expr->keywords;
  expr->keywords = TL_NEW_ARRAY(x->reader->arena, tl_keyword, expr->num_keywords + 1);
  for (uint32_t i = 0; i < expr->num_keywords; i++) {
    expr->keywords[i] = (tl_keyword){from[i].name, tl_macro_loc(frame, from[i].loc), NULL};
    expr->keywords[i].value = tl_macro_copy_expr(x, frame, from[i].value);
  }
}

// The indices of a reduction are visible in the ranges behind them and in its body.
static void copy_indices(tl_macro_expander *x, tl_macro_frame *frame, tl_expr *expr) {
  const tl_reduction_index *from = expr->indices;
  expr->indices = TL_NEW_ARRAY(x->reader->arena, tl_reduction_index, expr->num_indices + 1);
  for (uint32_t i = 0; i < expr->num_indices; i++) {
    tl_reduction_index *to = &expr->indices[i];
    to->loc = tl_macro_loc(frame, from[i].loc);
    to->lo = tl_macro_copy_expr(x, frame, from[i].lo);
    to->hi = tl_macro_copy_expr(x, frame, from[i].hi);
    to->name = frame ? tl_macro_declare(x, frame, from[i].name, to->loc) : from[i].name;
  }
}

static uint32_t taller(uint32_t height, const tl_expr *child) {
  return child && child->height >= height ? child->height + 1 : height;
}

static uint32_t height_of(const tl_expr *expr) {
  uint32_t height = 1;
  for (uint32_t i = 0; i < expr->num_operands; i++) height = taller(height, expr->operands[i]);
  for (uint32_t i = 0; i < expr->num_keywords; i++) height = taller(height, expr->keywords[i].value);
  for (uint32_t i = 0; i < expr->num_subscripts; i++) {
    height = taller(height, expr->subscripts[i].lo);
    height = taller(height, expr->subscripts[i].hi);
    height = taller(height, expr->subscripts[i].step);
  }
  for (uint32_t i = 0; i < expr->num_indices; i++) {
    height = taller(height, expr->indices[i].lo);
    height = taller(height, expr->indices[i].hi);
  }
  return height;
}

// What the trees of one statement may be high, as the parser has it.
enum { MAX_HEIGHT = 1200 };

static void validate_height(tl_macro_expander *x, const tl_expr *expr) {
  if (expr->height <= MAX_HEIGHT || x->full) return;
  x->full = true;
  tl_diag_report(x->reader->diags, TL_DIAG_MACRO_LIMIT, expr->loc,
                 "with its arguments the expression has more than %d levels", MAX_HEIGHT);
}

static tl_expr *copy_name(tl_macro_expander *x, tl_macro_frame *frame, tl_expr *copy) {
  tl_expr *argument = NULL;
  if (!frame || tl_dtype_parse(copy->text) != TL_DTYPE_NONE) return copy;
  copy->text = tl_macro_find_name(x, frame, copy->text, copy->loc, &argument);
  return argument ? tl_macro_copy_expr(x, NULL, argument) : copy;
}

tl_expr **tl_macro_copy_exprs(tl_macro_expander *x, tl_macro_frame *frame, tl_expr *const *items, uint32_t len) {
  tl_expr **copies = TL_NEW_ARRAY(x->reader->arena, tl_expr *, len + 1);
  for (uint32_t i = 0; i < len; i++) copies[i] = tl_macro_copy_expr(x, frame, items[i]);
  return copies;
}

tl_expr *tl_macro_copy_expr(tl_macro_expander *x, tl_macro_frame *frame, const tl_expr *expr) {
  if (!expr) return NULL;
  if (!tl_macro_count(x, frame, tl_macro_loc(frame, expr->loc))) return (tl_expr *)expr;
  tl_expr *copy = TL_NEW(x->reader->arena, tl_expr);
  *copy = *expr;
  copy->loc = tl_macro_loc(frame, expr->loc);
  if (copy->kind == TL_EXPR_NAME) return copy_name(x, frame, copy);
  size_t scope = frame ? frame->visible.len : 0;
  if (copy->num_indices) copy_indices(x, frame, copy);
  if (copy->num_operands) copy->operands = tl_macro_copy_exprs(x, frame, expr->operands, expr->num_operands);
  if (copy->num_keywords) copy_keywords(x, frame, copy);
  if (copy->num_subscripts) copy_subscripts(x, frame, copy);
  if (frame) frame->visible.len = scope;
  if (copy->kind == TL_EXPR_INDEX && expr->operands[0]->kind == TL_EXPR_NAME) {
    const tl_expr *base = copy->operands[0];
    if (base->kind == TL_EXPR_INDEX || base->kind == TL_EXPR_TRANSPOSE) compose(x, base, copy);
  }
  // X.T of an argument that is a transpose itself.
  if (copy->kind == TL_EXPR_TRANSPOSE && copy->operands[0]->kind == TL_EXPR_TRANSPOSE &&
      expr->operands[0]->kind == TL_EXPR_NAME)
    return copy->operands[0]->operands[0];
  copy->height = height_of(copy);
  validate_height(x, copy);
  return copy;
}
