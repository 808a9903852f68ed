// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loop nests of index notation: reductions, assignments, recurrences.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/reference/reference_calls.h"
#include "harness/reference/reference_internal.h"

enum { MAX_NEST = 16 };

// ---- loops. Induction variables live in memory; LLVM promotes them.

// Opens `for index in lo … hi` and puts the index in scope.
static tl_ref_loop loop_begin(tl_ref_code *code, tl_ref_index index, tl_ref_value lo, tl_ref_value hi) {
  tl_ref_loop loop = {.label = code->next_label++, .outer_work = code->loop_work};
  int n = loop.label;
  if (code->splits_outermost) {
    snprintf(lo.text, sizeof lo.text, "%%arg_lo");
    snprintf(hi.text, sizeof hi.text, "%%arg_hi");
    code->splits_outermost = false;
  }
  tl_strbuf_appendf(&code->allocas, "  %%i%d = alloca i64\n", n);
  tl_strbuf_appendf(&code->body, "  store i64 %s, ptr %%i%d\n  br label %%head%d\nhead%d:\n", lo.text, n, n, n);
  tl_ref_value value = tl_ref_op(code, TL_REF_INT, "load i64, ptr %%i%d", n);
  tl_ref_value more = tl_ref_op(code, TL_REF_BOOL, "icmp slt i64 %s, %s", value.text, hi.text);
  tl_strbuf_appendf(&code->body, "  br i1 %s, label %%loop%d, label %%done%d\nloop%d:\n", more.text, n, n, n);
  index.value = code->next_value - 2;
  tl_vec_push(&code->scope, index);
  // An unknown extent counts as a hundred.
  double extent = index.has_range ? (double)(index.hi > index.lo ? index.hi - index.lo : 0) : 100;
  code->loop_work *= extent;
  return loop;
}

static void loop_end(tl_ref_code *code, tl_ref_loop loop) {
  int n = loop.label;
  const tl_ref_index *index = &tl_vec_last(&code->scope);
  if (code->loop_work > 0) code->work += code->loop_work;
  code->loop_work = loop.outer_work;
  tl_ref_value next = tl_ref_op(code, TL_REF_INT, "add nsw i64 %%v%d, 1", index->value);
  tl_strbuf_appendf(&code->body, "  store i64 %s, ptr %%i%d\n  br label %%head%d\ndone%d:\n", next.text, n, n, n);
  (void)tl_vec_pop(&code->scope);
}

// The bounds of an index as values: its constants, or its expressions.
static bool emit_bounds(tl_ref_code *code, const tl_ref_index *index, tl_ref_value *lo, tl_ref_value *hi) {
  if (index->has_range) {
    *lo = tl_ref_const_int(index->lo);
    *hi = tl_ref_const_int(index->hi);
    return true;
  }
  return tl_ref_emit_int(code, index->lo_expr, lo) && tl_ref_emit_int(code, index->hi_expr, hi);
}

// ---- reductions

typedef enum reduction_kind {
  RED_SUM,
  RED_PROD,
  RED_MAX,
  RED_MIN,
  RED_ANY,
  RED_ALL,
  RED_ARGMAX,
  RED_ARGMIN,
  RED_COUNT
} reduction_kind;
static const char *const reduction_names[RED_COUNT] = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin"};

bool tl_ref_is_reduction(tl_str name) {
  for (int kind = 0; kind < RED_COUNT; kind++)
    if (tl_str_is(name, reduction_names[kind])) return true;
  return false;
}

static const char *type_of(int kind) {
  return kind == TL_REF_FLOAT ? "double" : kind == TL_REF_INT ? "i64" : "i1";
}

// Maxima and minima of floats begin as NaN, which they stay where there are no numbers; slot + 1 tells of elements.
static bool begins_as_nan(reduction_kind kind, bool is_float) {
  return is_float && (kind == RED_MAX || kind == RED_MIN);
}

// What no elements give.
static tl_ref_value neutral(reduction_kind kind, bool is_float) {
  switch (kind) {
    case RED_SUM:
      return is_float ? tl_ref_const_float(0) : tl_ref_const_int(0);
    case RED_PROD:
      return is_float ? tl_ref_const_float(1) : tl_ref_const_int(1);
    case RED_MAX:
      return is_float ? tl_ref_const_float(-INFINITY) : tl_ref_const_int(INT64_MIN);
    case RED_MIN:
      return is_float ? tl_ref_const_float(INFINITY) : tl_ref_const_int(INT64_MAX);
    case RED_ANY:
      return (tl_ref_value){.kind = TL_REF_BOOL, .text = "false"};
    case RED_ALL:
      return (tl_ref_value){.kind = TL_REF_BOOL, .text = "true"};
    case RED_ARGMAX:
    case RED_ARGMIN:
      return is_float ? tl_ref_const_float(NAN) : tl_ref_const_int(0);
    case RED_COUNT:
      break;
  }
  return tl_ref_const_int(0);
}

static tl_ref_value load_slot(tl_ref_code *code, int slot, int kind) {
  return tl_ref_op(code, kind, "load %s, ptr %%acc%d", type_of(kind), slot);
}
static void store_slot(tl_strbuf *out, int slot, tl_ref_value value) {
  tl_strbuf_appendf(out, "  store %s %s, ptr %%acc%d\n", type_of(value.kind), value.text, slot);
}

// argmax and argmin: `slot` holds the best value, slot + 1 its position, slot + 2 the next position.
static void accumulate_arg(tl_ref_code *code, reduction_kind kind, int slot, tl_ref_value value) {
  tl_ref_value best = load_slot(code, slot, value.kind), where = load_slot(code, slot + 1, TL_REF_INT);
  tl_ref_value position = load_slot(code, slot + 2, TL_REF_INT), better;
  bool is_max = kind == RED_ARGMAX;
  if (value.kind == TL_REF_FLOAT) {
    // The best begins as NaN, which every number beats.
    tl_ref_value wins =
        tl_ref_op(code, TL_REF_BOOL, "fcmp %s double %s, %s", is_max ? "ogt" : "olt", value.text, best.text);
    tl_ref_value was_nan = tl_ref_op(code, TL_REF_BOOL, "fcmp uno double %s, 0.0", best.text);
    tl_ref_value is_number = tl_ref_op(code, TL_REF_BOOL, "fcmp ord double %s, 0.0", value.text);
    tl_ref_value first = tl_ref_op(code, TL_REF_BOOL, "and i1 %s, %s", was_nan.text, is_number.text);
    better = tl_ref_op(code, TL_REF_BOOL, "or i1 %s, %s", wins.text, first.text);
  } else {
    tl_ref_value wins =
        tl_ref_op(code, TL_REF_BOOL, "icmp %s i64 %s, %s", is_max ? "sgt" : "slt", value.text, best.text);
    tl_ref_value first = tl_ref_op(code, TL_REF_BOOL, "icmp eq i64 %s, 0", position.text);
    better = tl_ref_op(code, TL_REF_BOOL, "or i1 %s, %s", wins.text, first.text);
  }
  store_slot(&code->body, slot, tl_ref_select(code, better, value, best));
  store_slot(&code->body, slot + 1, tl_ref_select(code, better, position, where));
  store_slot(&code->body, slot + 2, tl_ref_op(code, TL_REF_INT, "add i64 %s, 1", position.text));
}

static void accumulate(tl_ref_code *code, reduction_kind kind, int slot, tl_ref_value value) {
  if (kind == RED_ARGMAX || kind == RED_ARGMIN) {
    accumulate_arg(code, kind, slot, value);
    return;
  }
  tl_ref_value sum = load_slot(code, slot, value.kind);
  bool is_float = value.kind == TL_REF_FLOAT;
  switch (kind) {
    case RED_SUM:
      sum = tl_ref_op(code, value.kind, "%s %s, %s", is_float ? "fadd double" : "add i64", sum.text, value.text);
      break;
    case RED_PROD:
      sum = tl_ref_op(code, value.kind, "%s %s, %s", is_float ? "fmul double" : "mul i64", sum.text, value.text);
      break;
    case RED_MAX:
      sum = tl_ref_min_max(code, true, sum, value);
      break;
    case RED_MIN:
      sum = tl_ref_min_max(code, false, sum, value);
      break;
    case RED_ANY:
      sum = tl_ref_op(code, TL_REF_BOOL, "or i1 %s, %s", sum.text, value.text);
      break;
    case RED_ALL:
      sum = tl_ref_op(code, TL_REF_BOOL, "and i1 %s, %s", sum.text, value.text);
      break;
    case RED_ARGMAX:
    case RED_ARGMIN:
    case RED_COUNT:
      break;
  }
  store_slot(&code->body, slot, sum);
  tl_ref_value yes = {.kind = TL_REF_BOOL, .text = "true"};
  if (begins_as_nan(kind, is_float)) store_slot(&code->body, slot + 1, yes);
}

// The body's type is known only after it was made, the accumulator must be set before: the text is put in there.
static void insert_text(tl_strbuf *text, size_t at, tl_str inserted) {
  tl_strbuf tail;
  tl_strbuf_init(&tail);
  tl_strbuf_append(&tail, tl_str_sub(tl_strbuf_view(text), at, text->len - at));
  text->len = at;
  tl_strbuf_append(text, inserted);
  tl_strbuf_append(text, tl_strbuf_view(&tail));
  tl_strbuf_fini(&tail);
}

static void begin_slot(tl_ref_code *code, tl_strbuf *init, int slot, tl_ref_value value) {
  tl_strbuf_appendf(&code->allocas, "  %%acc%d = alloca %s\n", slot, type_of(value.kind));
  store_slot(init, slot, value);
}

static bool emit_reduction_loops(tl_ref_code *code, const tl_expr *expr, reduction_kind kind, int slot, int *out_kind) {
  tl_ref_loop loops[MAX_NEST];
  uint32_t opened = 0;
  bool ok = expr->num_indices <= MAX_NEST;
  if (!ok) tl_ref_error(code, expr->loc, "a reduction over more than %d indices", MAX_NEST);
  for (uint32_t i = 0; ok && i < expr->num_indices; i++) {
    tl_ref_index index;
    tl_ref_value lo, hi;
    ok = tl_ref_infer_reduction(code, &expr->indices[i], expr->operands[0], &index) &&
         emit_bounds(code, &index, &lo, &hi);
    if (ok) loops[opened++] = loop_begin(code, index, lo, hi);
  }
  tl_ref_value value;
  ok = ok && tl_ref_emit(code, expr->operands[0], &value);
  if (ok) {
    if (kind == RED_ANY || kind == RED_ALL) {
      value = tl_ref_to_bool(code, value);
    } else if (value.kind == TL_REF_BOOL) {
      value = tl_ref_to_int(code, value);
    }
    accumulate(code, kind, slot, value);
    *out_kind = value.kind;
  }
  while (opened > 0) loop_end(code, loops[--opened]);
  return ok;
}

static bool hoist_from(tl_ref_code *code, const tl_expr *expr) {
  tl_str names[MAX_NEST];
  for (uint32_t i = 0; i < expr->num_indices && i < MAX_NEST; i++) names[i] = expr->indices[i].name;
  return expr->num_indices > MAX_NEST || tl_ref_hoist(code, expr->operands[0], names, expr->num_indices, (tl_str){0});
}

bool tl_ref_emit_reduction(tl_ref_code *code, const tl_expr *expr, tl_ref_value *out) {
  const tl_ref_value *known = tl_ref_find_hoisted(code, expr);
  if (known) {
    *out = *known;
    return true;
  }
  reduction_kind kind = RED_SUM;
  while (kind < RED_COUNT && !tl_str_is(expr->text, reduction_names[kind])) kind++;
  if (kind == RED_COUNT) {
    tl_ref_error(code, expr->loc, "unknown reduction `%.*s`", TL_STR_ARG(expr->text));
    return false;
  }
  bool is_arg = kind == RED_ARGMAX || kind == RED_ARGMIN;
  bool splits = code->splits_outermost;  // only the statement's own outermost loop is split
  code->splits_outermost = false;
  size_t num_hoisted = code->hoisted.len;
  if (!hoist_from(code, expr)) return false;
  int slot = code->next_label;
  code->next_label += 3;
  size_t start = code->body.len;
  int value_kind = TL_REF_INT;
  if (!emit_reduction_loops(code, expr, kind, slot, &value_kind)) return false;
  code->hoisted.len = num_hoisted;
  code->splits_outermost = splits;
  bool is_float = value_kind == TL_REF_FLOAT, from_nan = begins_as_nan(kind, is_float);
  tl_ref_value none = neutral(kind, is_float), no = {.kind = TL_REF_BOOL, .text = "false"};
  tl_strbuf init;
  tl_strbuf_init(&init);
  begin_slot(code, &init, slot, from_nan ? tl_ref_const_float(NAN) : none);
  if (from_nan) begin_slot(code, &init, slot + 1, no);
  for (int i = 1; is_arg && i < 3; i++) begin_slot(code, &init, slot + i, tl_ref_const_int(0));
  insert_text(&code->body, start, tl_strbuf_view(&init));
  tl_strbuf_fini(&init);
  *out = is_arg ? load_slot(code, slot + 1, TL_REF_INT) : load_slot(code, slot, value_kind);
  if (from_nan) *out = tl_ref_select(code, load_slot(code, slot + 1, TL_REF_BOOL), *out, none);
  return true;
}

// ---- assignments

typedef struct assignment {
  const tl_reference_stmt *stmt;
  const tl_expr *target;
  tl_ref_indices left;  // Owned.
  tl_ref_self_read self_read;
  bool in_recur;
} assignment;

static void order_recurrence(assignment *a, uint32_t axis) {
  // The index of the recurrence goes outermost, so that everything it reads is complete.
  if (axis == UINT32_MAX) return;
  tl_str name = a->target->subscripts[axis].lo->text;
  for (size_t i = 1; i < a->left.len; i++) {
    if (!tl_str_equal(a->left.items[i].name, name)) continue;
    tl_ref_index first = a->left.items[i];
    memmove(&a->left.items[1], &a->left.items[0], i * sizeof a->left.items[0]);
    a->left.items[0] = first;
  }
}

// Whether the outermost index stands alone as a subscript of the target: then threads write different elements.
static bool can_split(const assignment *a) {
  if (a->in_recur || a->left.len == 0 || a->self_read == TL_REF_SELF_RECURRENCE) return false;
  for (uint32_t d = 0; a->target->kind == TL_EXPR_INDEX && d < a->target->num_subscripts; d++) {
    const tl_expr *subscript = a->target->subscripts[d].lo;
    if (subscript->kind == TL_EXPR_NAME && tl_str_equal(subscript->text, a->left.items[0].name)) return true;
  }
  return false;
}

static void begin_unit(tl_ref_code *code, const assignment *a) {
  if (a->in_recur) return;
  tl_ref_unit unit = {.can_split = can_split(a)};
  if (unit.can_split) {
    unit.lo = a->left.items[0].lo;
    unit.hi = a->left.items[0].hi;
  }
  tl_strbuf_appendf(&code->body, "unit%zu:\n", code->units.len);
  tl_vec_push(&code->units, unit);
  code->splits_outermost = unit.can_split;
  code->work = 0;
  code->loop_work = 1;
}

static void end_unit(tl_ref_code *code, const assignment *a) {
  if (a->in_recur) return;
  tl_vec_last(&code->units).work = code->work;
  tl_strbuf_append_c(&code->body, "  ret void\n");
}

// `value`: what the nest evaluates; NULL: nothing that could be moved out of it.
static bool open_nest(tl_ref_code *code, const assignment *a, const tl_expr *value, tl_ref_loop *loops) {
  tl_str names[MAX_NEST];
  if (a->left.len > MAX_NEST) {
    tl_ref_error(code, a->target->loc, "more than %d indices", MAX_NEST);
    return false;
  }
  for (size_t i = 0; i < a->left.len; i++) names[i] = a->left.items[i].name;
  for (size_t i = 0; i < a->left.len; i++) {
    tl_ref_value lo, hi;
    // A reduction over the target's own values sees what the nest has stored.
    if (value && !tl_ref_hoist(code, value, names + i, a->left.len - i, tl_ref_base_name(a->target))) return false;
    if (!emit_bounds(code, &a->left.items[i], &lo, &hi)) return false;
    loops[i] = loop_begin(code, a->left.items[i], lo, hi);
  }
  return true;
}

static void close_nest(tl_ref_code *code, const assignment *a, const tl_ref_loop *loops) {
  for (size_t i = a->left.len; i-- > 0;) loop_end(code, loops[i]);
}

// A buffer of the target's shape that holds the right side until it is complete. Returns its number.
static int add_scratch(tl_ref_code *code, const tl_reference_buffer *like) {
  tl_dtype dtype = like->is_float ? TL_DTYPE_F64 : TL_DTYPE_I64;
  tl_status status = tl_reference_declare(code->reference, (tl_str){0}, dtype, like->rank, like->dims);
  bool ok = !status;
  tl_status_free(status);
  return ok ? (int)code->reference->buffers.len - 1 : -1;
}

// scratch[…] → target[…] for every element that was written.
static bool copy_back(tl_ref_code *code, const assignment *a, int scratch) {
  tl_ref_loop loops[MAX_NEST];
  tl_ref_address address;
  if (!open_nest(code, a, NULL, loops) || !tl_ref_emit_address(code, a->target, &address)) return false;
  const char *type = address.info->is_float ? "double" : "i64";
  tl_ref_value from =
      tl_ref_op(code, TL_REF_INT, "getelementptr inbounds %s, ptr %%buf%d, i64 %s", type, scratch, address.offset.text);
  tl_ref_value value =
      tl_ref_op(code, address.info->is_float ? TL_REF_FLOAT : TL_REF_INT, "load %s, ptr %s", type, from.text);
  tl_ref_emit_store(code, &address, value);
  close_nest(code, a, loops);
  return true;
}

// Whether what the nest stores is read by the target's own name only, and not through views.
static bool has_one_name(const tl_ref_code *code, const assignment *a) {
  const tl_kernel_spec *kernel = code->reference->kernel;
  tl_str name = tl_ref_base_name(a->target);
  for (uint32_t i = 0; i < kernel->num_views; i++)
    if (tl_str_equal(kernel->views[i].name, name) || tl_str_equal(kernel->views[i].base, name)) return false;
  return true;
}

static bool emit_nest(tl_ref_code *code, assignment *a) {
  const tl_assign *assign = &a->stmt->assign;
  tl_ref_loop loops[MAX_NEST];
  tl_ref_value value;
  int number;
  begin_unit(code, a);
  if (!open_nest(code, a, has_one_name(code, a) ? assign->value : NULL, loops)) return false;
  code->splits_outermost = false;
  if (!tl_ref_emit(code, assign->value, &value)) return false;
  code->hoisted.len = 0;
  // A result that is new here gets the type of its first value.
  if (!tl_ref_declare_target(code, a->target, &a->left, value.kind == TL_REF_FLOAT, &number)) return false;
  tl_reference_buffer *buffer = code->reference->buffers.items[number];
  buffer->is_assigned = true;
  int scratch = a->self_read == TL_REF_SELF_OTHER ? add_scratch(code, buffer) : -1;
  tl_ref_address address;
  if (!tl_ref_emit_address(code, a->target, &address)) return false;
  if (scratch >= 0) address.buffer = scratch;
  tl_ref_emit_store(code, &address, value);
  close_nest(code, a, loops);
  if (scratch < 0) {
    end_unit(code, a);
    return a->self_read != TL_REF_SELF_OTHER;
  }
  end_unit(code, a);
  begin_unit(code, a);
  bool ok = copy_back(code, a, scratch);
  end_unit(code, a);
  return ok;
}

// The type of a result that nothing was stored to yet. Elements of both types take eight bytes.
static void make_float(tl_ref_code *code, int number) {
  tl_reference_buffer *buffer = code->reference->buffers.items[number];
  buffer->is_float = true;
  buffer->dtype = TL_DTYPE_F64;
}

static bool emit_assignment(tl_ref_code *code, const tl_reference_stmt *stmt, bool in_recur) {
  const tl_assign *assign = &stmt->assign;
  if (assign->num_targets != 1) {
    tl_ref_error(code, stmt->loc, "a statement of a reference assigns one result");
    return false;
  }
  assignment a = {.stmt = stmt, .target = assign->targets[0], .in_recur = in_recur};
  tl_str name = tl_ref_base_name(a.target);
  bool ok = name.len > 0 && !tl_env_find(code->reference->env, name);
  if (!ok) tl_ref_error(code, a.target->loc, "the left side of a reference is a result with subscripts: `C[m, n] = …`");
  ok = ok && tl_ref_infer_left(code, stmt, a.target, &a.left);
  // A new result that reads itself (a recurrence) exists before its first element.
  int number;
  if (ok && tl_ref_buffer_number(code, name) < 0 && tl_ref_reads(assign->value, name)) {
    ok = tl_ref_declare_target(code, a.target, &a.left, false, &number);
    if (ok && !tl_ref_is_integer(code, assign->value)) make_float(code, number);
  }
  if (ok) {
    uint32_t axis;
    a.self_read = tl_ref_self_reads(code, a.target, assign->value, &axis);
    if (a.self_read == TL_REF_SELF_RECURRENCE) order_recurrence(&a, axis);
    ok = emit_nest(code, &a);
  }
  tl_vec_fini(&a.left);
  return ok;
}

// New results of a coupled recurrence may be read by statements before the one that assigns them. They are of integers
// unless one of them, or what they read, is not.
static bool declare_all(tl_ref_code *code, const tl_reference_stmt *stmts, uint32_t num_stmts) {
  size_t num_known = code->reference->buffers.len;
  for (uint32_t i = 0; i < num_stmts; i++) {
    if (stmts[i].is_recur || stmts[i].assign.num_targets != 1) continue;
    const tl_expr *target = stmts[i].assign.targets[0];
    tl_ref_indices left = {0};
    int number;
    bool ok = tl_ref_buffer_number(code, tl_ref_base_name(target)) >= 0 ||
              (tl_ref_infer_left(code, &stmts[i], target, &left) &&
               tl_ref_declare_target(code, target, &left, false, &number));
    tl_vec_fini(&left);
    if (!ok) return false;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < num_stmts; i++) {
      if (stmts[i].is_recur || stmts[i].assign.num_targets != 1) continue;
      int number = tl_ref_buffer_number(code, tl_ref_base_name(stmts[i].assign.targets[0]));
      bool is_new = number >= 0 && (size_t)number >= num_known;
      if (!is_new || code->reference->buffers.items[number]->is_float) continue;
      if (tl_ref_is_integer(code, stmts[i].assign.value)) continue;
      make_float(code, number);
      changed = true;
    }
  }
  return true;
}

static bool emit_recur(tl_ref_code *code, const tl_reference_stmt *stmt, bool in_recur) {
  if (stmt->num_ranges != 1 || !stmt->ranges[0].lo) {
    tl_ref_error(code, stmt->loc, "a recurrence needs one index with its range: `recur: t in 0:S`");
    return false;
  }
  tl_ref_index index;
  tl_ref_value lo, hi;
  if (!tl_ref_infer_reduction(code, &stmt->ranges[0], NULL, &index)) return false;
  const assignment unit = {.in_recur = in_recur};
  begin_unit(code, &unit);
  if (!emit_bounds(code, &index, &lo, &hi)) return false;
  tl_ref_loop loop = loop_begin(code, index, lo, hi);
  bool ok = declare_all(code, stmt->body, stmt->num_body);
  for (uint32_t i = 0; ok && i < stmt->num_body; i++) {
    ok = stmt->body[i].is_recur ? emit_recur(code, &stmt->body[i], true) : emit_assignment(code, &stmt->body[i], true);
  }
  loop_end(code, loop);
  end_unit(code, &unit);
  return ok;
}

bool tl_ref_emit_stmt(tl_ref_code *code, const tl_reference_stmt *stmt) {
  return stmt->is_recur ? emit_recur(code, stmt, false) : emit_assignment(code, stmt, false);
}
