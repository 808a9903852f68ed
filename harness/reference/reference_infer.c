// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which values the indices of a statement take, and how a statement reads its own target.
#include "harness/reference/reference_internal.h"

const tl_ref_index *tl_ref_find_index(const tl_ref_code *code, tl_str name) {
  for (size_t i = code->scope.len; i-- > 0;) {
    if (tl_str_equal(code->scope.items[i].name, name)) return &code->scope.items[i];
  }
  return NULL;
}

tl_str tl_ref_base_name(const tl_expr *access) {
  const tl_expr *base = access->kind == TL_EXPR_INDEX ? access->operands[0] : access;
  return base->kind == TL_EXPR_NAME ? base->text : (tl_str){0};
}

void tl_ref_for_children(const tl_expr *expr, tl_ref_child_fn *visit, void *user) {
  for (uint32_t i = 0; i < expr->num_operands; i++) visit(expr->operands[i], user);
  for (uint32_t i = 0; i < expr->num_keywords; i++) visit(expr->keywords[i].value, user);
  for (uint32_t i = 0; i < expr->num_subscripts; i++) {
    const tl_subscript *subscript = &expr->subscripts[i];
    if (subscript->lo) visit(subscript->lo, user);
    if (subscript->hi) visit(subscript->hi, user);
    if (subscript->step) visit(subscript->step, user);
  }
  for (uint32_t i = 0; i < expr->num_indices; i++) {
    if (expr->indices[i].lo) visit(expr->indices[i].lo, user);
    if (expr->indices[i].hi) visit(expr->indices[i].hi, user);
  }
}

// ---- folding

typedef struct scope_query {
  const tl_ref_code *code;
  bool found;
} scope_query;

static void find_scope_name(const tl_expr *expr, void *user) {
  scope_query *query = user;
  if (expr->kind == TL_EXPR_NAME && tl_ref_find_index(query->code, expr->text)) query->found = true;
  if (!query->found) tl_ref_for_children(expr, find_scope_name, user);
}

bool tl_ref_names_index(const tl_ref_code *code, const tl_expr *expr) {
  scope_query query = {code, false};
  find_scope_name(expr, &query);
  return query.found;
}

bool tl_ref_fold_int(const tl_ref_code *code, const tl_expr *expr, int64_t *out) {
  if (expr->kind == TL_EXPR_INT) {
    *out = expr->int_value;
    return true;
  }
  if (tl_ref_names_index(code, expr)) return false;
  tl_diags silent;
  tl_diags_init(&silent, code->reference->diags->sources);
  tl_const value;
  bool ok = tl_env_eval(code->reference->env, expr, &silent, &value);
  tl_diags_fini(&silent);
  if (!ok || (value.kind != TL_CONST_INT && value.kind != TL_CONST_BOOL)) return false;
  *out = value.i;
  return true;
}

// ---- ranges

typedef struct dim_search {
  tl_ref_code *code;
  tl_str name;
  bool found, failed;
  bool is_left;  // what was found first is the left side's
  int64_t extent;
  tl_loc loc;  // where it was found first
} dim_search;

static void take_dim(dim_search *search, int64_t extent, tl_loc loc) {
  if (!search->found) {
    search->found = true;
    search->extent = extent;
    search->loc = loc;
  } else if (extent != search->extent && !search->failed) {
    search->failed = true;
    tl_diag *diag = tl_diag_report(search->code->reference->diags, TL_DIAG_REFERENCE_DIMS, loc,
                                   "index `%.*s` stands for a dim of %lld here and of %lld elsewhere",
                                   TL_STR_ARG(search->name), (long long)extent, (long long)search->extent);
    tl_diag_add_note(search->code->reference->diags, diag, search->loc, "a dim of %lld", (long long)search->extent);
    tl_diag_add_hint(search->code->reference->diags, diag,
                     "say which range is meant where it stands first: `%.*s in 0:%lld`", TL_STR_ARG(search->name),
                     (long long)(search->is_left || search->extent < extent ? search->extent : extent));
  }
}

static void find_dims(const tl_expr *expr, void *user) {
  dim_search *search = user;
  if (expr->kind == TL_EXPR_REDUCTION) {
    // An inner index of the same name hides this one.
    for (uint32_t i = 0; i < expr->num_indices; i++) {
      if (tl_str_equal(expr->indices[i].name, search->name)) return;
    }
  }
  if (expr->kind == TL_EXPR_INDEX) {
    const tl_reference_buffer *buffer = tl_reference_find(search->code->reference, tl_ref_base_name(expr));
    for (uint32_t d = 0; buffer && d < expr->num_subscripts && d < (uint32_t)buffer->rank; d++) {
      const tl_subscript *subscript = &expr->subscripts[d];
      if (subscript->kind != TL_SUBSCRIPT_ELEMENT || subscript->lo->kind != TL_EXPR_NAME) continue;
      if (tl_str_equal(subscript->lo->text, search->name)) take_dim(search, buffer->dims[d], subscript->loc);
    }
  }
  tl_ref_for_children(expr, find_dims, user);
}

static bool finish_search(dim_search *search, tl_loc loc, tl_ref_index *out) {
  if (search->failed) return false;
  if (!search->found) {
    tl_diags *diags = search->code->reference->diags;
    tl_diag *diag = tl_diag_report(diags, TL_DIAG_REFERENCE_RANGE, loc, "the range of index `%.*s` is unknown",
                                   TL_STR_ARG(search->name));
    tl_diag_add_hint(
        diags, diag,
        "it stands alone in no subscript of a tensor whose extents are known; say how far it goes where it "
        "stands first, as in `%.*s in 0:16`",
        TL_STR_ARG(search->name));
    return false;
  }
  *out = (tl_ref_index){.name = search->name, .has_range = true, .lo = 0, .hi = search->extent};
  return true;
}

bool tl_ref_infer_reduction(tl_ref_code *code, const tl_reduction_index *index, const tl_expr *body,
                            tl_ref_index *out) {
  *out = (tl_ref_index){.name = index->name};
  if (index->lo) {
    out->has_range = tl_ref_fold_int(code, index->lo, &out->lo) && tl_ref_fold_int(code, index->hi, &out->hi);
    out->lo_expr = index->lo;
    out->hi_expr = index->hi;
    return true;
  }
  dim_search search = {.code = code, .name = index->name};
  find_dims(body, &search);
  return finish_search(&search, index->loc, out);
}

// A name that is neither a value of the spec nor an index that is in scope already.
static bool is_new_index(const tl_ref_code *code, tl_str name) {
  return !tl_ref_find_index(code, name) && !tl_env_find(code->reference->env, name) &&
         !tl_reference_find(code->reference, name) && tl_dtype_parse(name) == TL_DTYPE_NONE;
}

typedef struct left_search {
  tl_ref_code *code;
  const tl_reference_stmt *stmt;
  const tl_expr *target;
  tl_ref_indices *out;
  bool failed;
} left_search;

static void add_left_index(const tl_expr *expr, void *user) {
  left_search *left = user;
  if (expr->kind != TL_EXPR_NAME) {
    tl_ref_for_children(expr, add_left_index, user);
    return;
  }
  if (!is_new_index(left->code, expr->text)) return;
  for (size_t i = 0; i < left->out->len; i++) {
    if (tl_str_equal(left->out->items[i].name, expr->text)) return;
  }
  tl_ref_index index = {.name = expr->text};
  bool ok = false;
  for (uint32_t i = 0; i < left->stmt->num_ranges; i++) {
    const tl_reduction_index *range = &left->stmt->ranges[i];
    if (!tl_str_equal(range->name, expr->text) || !range->lo) continue;
    ok = tl_ref_fold_int(left->code, range->lo, &index.lo) && tl_ref_fold_int(left->code, range->hi, &index.hi);
    index.has_range = ok;
    if (!ok)
      tl_ref_error(left->code, range->loc, "the range of `%.*s` must be known from params", TL_STR_ARG(range->name));
    if (!ok) left->failed = true;
    if (ok) tl_vec_push(left->out, index);
    return;
  }
  dim_search search = {.code = left->code, .name = expr->text};
  find_dims(left->target, &search);
  search.is_left = search.found;
  find_dims(left->stmt->assign.value, &search);
  ok = finish_search(&search, expr->loc, &index);
  if (ok) tl_vec_push(left->out, index);
  if (!ok) left->failed = true;
}

bool tl_ref_infer_left(tl_ref_code *code, const tl_reference_stmt *stmt, const tl_expr *target, tl_ref_indices *out) {
  left_search left = {code, stmt, target, out, false};
  for (uint32_t d = 0; target->kind == TL_EXPR_INDEX && d < target->num_subscripts; d++) {
    const tl_subscript *subscript = &target->subscripts[d];
    if (subscript->kind != TL_SUBSCRIPT_ELEMENT) {
      tl_ref_error(code, subscript->loc, "a subscript of index notation is one element, not a slice");
      return false;
    }
    add_left_index(subscript->lo, &left);
  }
  return !left.failed;
}

static const tl_ref_index *find_range(const tl_ref_code *code, const tl_ref_indices *left, tl_str name) {
  for (size_t i = 0; i < left->len; i++) {
    if (tl_str_equal(left->items[i].name, name)) return &left->items[i];
  }
  return tl_ref_find_index(code, name);
}

bool tl_ref_declare_target(tl_ref_code *code, const tl_expr *target, const tl_ref_indices *left, bool is_float,
                           int *out_buffer) {
  tl_str name = tl_ref_base_name(target);
  *out_buffer = tl_ref_buffer_number(code, name);
  if (*out_buffer >= 0) return true;
  int64_t dims[TL_ARRAY_MAX_RANK];
  uint32_t rank = target->kind == TL_EXPR_INDEX ? target->num_subscripts : 0;
  if (rank > TL_ARRAY_MAX_RANK) {
    tl_ref_error(code, target->loc, "`%.*s` has more than %d dims", TL_STR_ARG(name), TL_ARRAY_MAX_RANK);
    return false;
  }
  for (uint32_t d = 0; d < rank; d++) {
    const tl_expr *subscript = target->subscripts[d].lo;
    const tl_ref_index *index = subscript->kind == TL_EXPR_NAME ? find_range(code, left, subscript->text) : NULL;
    if (!index || !index->has_range || index->lo != 0) {
      tl_ref_error(code, target->subscripts[d].loc,
                   "`%.*s` is new here: each of its subscripts must be an index whose range starts at 0",
                   TL_STR_ARG(name));
      return false;
    }
    dims[d] = index->hi > 0 ? index->hi : 0;
  }
  tl_dtype dtype = is_float ? TL_DTYPE_F64 : TL_DTYPE_I64;
  tl_status status = tl_reference_declare(code->reference, name, dtype, (int32_t)rank, dims);
  if (status) tl_ref_error(code, target->loc, "%s", tl_status_message(status));
  bool ok = !status;
  tl_status_free(status);
  *out_buffer = tl_ref_buffer_number(code, name);
  return ok;
}

// ---- self-reads

typedef struct read_search {
  tl_str name;
  bool found;
} read_search;

static void find_read(const tl_expr *expr, void *user) {
  read_search *search = user;
  if (expr->kind == TL_EXPR_NAME && tl_str_equal(expr->text, search->name)) search->found = true;
  if (!search->found) tl_ref_for_children(expr, find_read, user);
}

bool tl_ref_reads(const tl_expr *expr, tl_str name) {
  read_search search = {name, false};
  find_read(expr, &search);
  return search.found;
}

enum { MAX_AXES = TL_ARRAY_MAX_RANK };

typedef struct self_search {
  tl_ref_code *code;
  const tl_expr *target;
  tl_str name;
  bool any_shifted;        // some read is not of the element itself
  bool all_known;          // every subscript of every read is the target's or shifted down from it
  bool axis_ok[MAX_AXES];  // every shifted read is shifted down along this subscript
} self_search;

// How far `subscript` lies below the index name `name`: 0 the same, positive shifted down, -1 anything else.
static int64_t shift_below(tl_ref_code *code, const tl_expr *subscript, tl_str name) {
  if (subscript->kind == TL_EXPR_NAME) return tl_str_equal(subscript->text, name) ? 0 : -1;
  int64_t constant;
  if (subscript->kind != TL_EXPR_BINARY || subscript->operands[0]->kind != TL_EXPR_NAME ||
      !tl_str_equal(subscript->operands[0]->text, name) || !tl_ref_fold_int(code, subscript->operands[1], &constant)) {
    return -1;
  }
  if (subscript->op == TL_EXPR_OP_SUB && constant >= 0) return constant;
  if (subscript->op == TL_EXPR_OP_ADD && constant <= 0) return -constant;
  return -1;
}

static void classify_read(self_search *search, const tl_expr *read) {
  int64_t shifts[MAX_AXES];
  bool is_same = true, is_earlier = false, is_known = true;
  for (uint32_t d = 0; d < read->num_subscripts && d < search->target->num_subscripts && d < MAX_AXES; d++) {
    const tl_expr *left = search->target->subscripts[d].lo, *right = read->subscripts[d].lo;
    if (left->kind == TL_EXPR_NAME && right) {
      shifts[d] = shift_below(search->code, right, left->text);
      // Along the index of an enclosing `recur` an earlier element is complete already.
      if (shifts[d] > 0 && tl_ref_find_index(search->code, left->text)) is_earlier = true;
    } else {
      shifts[d] = right && tl_expr_equal(left, right) ? 0 : -1;
    }
    is_same = is_same && shifts[d] == 0;
    is_known = is_known && shifts[d] >= 0;
  }
  if (is_same || is_earlier) return;
  search->any_shifted = true;
  search->all_known = search->all_known && is_known;
  for (uint32_t d = 0; d < MAX_AXES; d++) {
    bool is_axis = d < read->num_subscripts && d < search->target->num_subscripts && shifts[d] > 0;
    search->axis_ok[d] = search->axis_ok[d] && is_axis;
  }
}

static void find_self_reads(const tl_expr *expr, void *user) {
  self_search *search = user;
  if (expr->kind == TL_EXPR_INDEX && tl_str_equal(tl_ref_base_name(expr), search->name)) classify_read(search, expr);
  tl_ref_for_children(expr, find_self_reads, user);
}

tl_ref_self_read tl_ref_self_reads(tl_ref_code *code, const tl_expr *target, const tl_expr *value, uint32_t *out_axis) {
  self_search search = {.code = code, .target = target, .name = tl_ref_base_name(target), .all_known = true};
  for (int d = 0; d < MAX_AXES; d++) search.axis_ok[d] = true;
  find_self_reads(value, &search);
  *out_axis = UINT32_MAX;
  if (!search.any_shifted) return TL_REF_SELF_NONE;
  for (uint32_t d = 0; d < target->num_subscripts && d < MAX_AXES; d++) {
    if (!search.axis_ok[d]) continue;
    *out_axis = d;
    return TL_REF_SELF_RECURRENCE;
  }
  // Shifted along different subscripts: increasing order of all of them reads what is complete.
  return search.all_known ? TL_REF_SELF_RECURRENCE : TL_REF_SELF_OTHER;
}
