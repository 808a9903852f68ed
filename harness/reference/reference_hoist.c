// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions inside loops that they do not depend on are computed before these loops: `max[q](X[m, q])` in
// `sum[k](exp(X[m, k] - max[q](X[m, q])))` once for each m. LLVM moves values out of loops, but no loops.
#include "harness/reference/reference_internal.h"

typedef struct name_search {
  const tl_str *names;
  size_t num_names;
  bool found;
} name_search;

static void find_free_name(const tl_expr *expr, void *user);

// The ranges of a reduction stand outside of its indices.
static void find_in_ranges(const tl_expr *reduction, name_search *search) {
  for (uint32_t i = 0; i < reduction->num_indices; i++) {
    if (reduction->indices[i].lo) find_free_name(reduction->indices[i].lo, search);
    if (reduction->indices[i].hi) find_free_name(reduction->indices[i].hi, search);
  }
}

static bool binds(const tl_expr *reduction, tl_str name) {
  for (uint32_t i = 0; i < reduction->num_indices; i++)
    if (tl_str_equal(reduction->indices[i].name, name)) return true;
  return false;
}

static void find_free_name(const tl_expr *expr, void *user) {
  name_search *search = user;
  for (size_t i = 0; expr->kind == TL_EXPR_NAME && i < search->num_names; i++)
    search->found = search->found || tl_str_equal(expr->text, search->names[i]);
  if (search->found) return;
  if (expr->kind != TL_EXPR_REDUCTION) {
    tl_ref_for_children(expr, find_free_name, search);
    return;
  }
  find_in_ranges(expr, search);
  for (size_t i = 0; !search->found && i < search->num_names; i++) {
    if (binds(expr, search->names[i])) continue;
    name_search one = {.names = &search->names[i], .num_names = 1};
    for (uint32_t k = 0; k < expr->num_operands; k++) find_free_name(expr->operands[k], &one);
    search->found = one.found;
  }
}

enum { MAX_NAMES = 64 };

typedef struct hoister {
  tl_ref_code *code;
  tl_str unwanted;  // a buffer that what is moved does not read; empty: none
  tl_str names[MAX_NAMES];
  size_t num_names;
  bool ok;
} hoister;

static void visit(const tl_expr *expr, void *user);

static void visit_inside(const tl_expr *reduction, hoister *h) {
  size_t before = h->num_names;
  if (before + reduction->num_indices > MAX_NAMES) return;
  for (uint32_t i = 0; i < reduction->num_indices; i++) h->names[h->num_names++] = reduction->indices[i].name;
  for (uint32_t i = 0; i < reduction->num_operands; i++) visit(reduction->operands[i], h);
  h->num_names = before;
}

static void visit(const tl_expr *expr, void *user) {
  hoister *h = user;
  if (!h->ok) return;
  if (expr->kind != TL_EXPR_REDUCTION) {
    tl_ref_for_children(expr, visit, h);
    return;
  }
  name_search search = {.names = h->names, .num_names = h->num_names};
  find_free_name(expr, &search);
  bool is_known = tl_ref_find_hoisted(h->code, expr) != NULL;
  if (is_known) return;
  if (search.found || (h->unwanted.len > 0 && tl_ref_reads(expr, h->unwanted))) {
    visit_inside(expr, h);
    return;
  }
  tl_ref_hoisted hoisted = {.expr = expr};
  h->ok = tl_ref_emit_reduction(h->code, expr, &hoisted.value);
  if (h->ok) tl_vec_push(&h->code->hoisted, hoisted);
}

bool tl_ref_hoist(tl_ref_code *code, const tl_expr *body, const tl_str *indices, size_t num_indices, tl_str unwanted) {
  hoister h = {.code = code, .unwanted = unwanted, .ok = true};
  if (num_indices > MAX_NAMES) return true;
  for (size_t i = 0; i < num_indices; i++) h.names[h.num_names++] = indices[i];
  visit(body, &h);
  return h.ok;
}

const tl_ref_value *tl_ref_find_hoisted(const tl_ref_code *code, const tl_expr *reduction) {
  for (size_t i = 0; i < code->hoisted.len; i++)
    if (code->hoisted.items[i].expr == reduction) return &code->hoisted.items[i].value;
  return NULL;
}
