// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// copy, clear and fill.
#include "frontend/elaborate/instantiate_internal.h"

// How a copy travels, as its options say.
typedef struct copy_way {
  int via, evict;  // -1: reported
  bool is_async;
  tl_value *barrier, *stage;  // that the bytes count on, or NULL
  int32_t across;             // the grid dim whose blocks of the cluster all get them; -1: none
} copy_way;

// Whether the side of a copy lies in `scope`; reports that `option` needs it.
static bool validate_side(tl_sema *sema, const tl_option *option, const tl_sema_region *region, int scope,
                          const char *what) {
  if (region->symbol->value->type->scope == scope) return true;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, option->loc,
                                 "%s moves from global to shared memory, and `%.*s` is no %s", what,
                                 TL_STR_ARG(region->symbol->name), scope == TL_SCOPE_GLOBAL ? "tensor" : "shared tile");
  tl_diag_add_note(sema->diags, diag, region->symbol->loc, "`%.*s` is declared here", TL_STR_ARG(region->symbol->name));
  return false;
}

// What needs no regions. False when it was reported.
static bool read_way(tl_sema *sema, const tl_stmt *stmt, copy_way *out) {
  const tl_option *multicast = tl_instantiate_option(stmt, "multicast"), *async = tl_instantiate_option(stmt, "async");
  const tl_option *barrier = tl_instantiate_option(stmt, "barrier");
  const tl_option *via = tl_instantiate_option(stmt, "via");
  bool ok = true;
  *out = (copy_way){.via = tl_instantiate_enum_option(sema, stmt, "via", TL_IR_ENUM_VIA, TL_VIA_AUTO),
                    .evict = tl_instantiate_enum_option(sema, stmt, "evict", TL_IR_ENUM_EVICT, TL_EVICT_NORMAL)};
  if (multicast && !barrier) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, multicast->loc,
                   "a copy for several blocks counts on a barrier: it needs the option `barrier`");
    ok = false;
  }
  ok = tl_instantiate_across(sema, multicast, &out->across) && ok;
  if (async) ok = tl_instantiate_flag(sema, async->value, "async", &out->is_async) && ok;
  if (out->is_async && (out->via == TL_VIA_VECTOR || out->via == TL_VIA_TMA)) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, via->loc, "an asynchronous copy goes by cp.async: `via: %s` %s",
                   out->via == TL_VIA_TMA ? "tma" : "vector",
                   out->via == TL_VIA_TMA ? "counts on a barrier of its own" : "goes through registers");
    ok = false;
  }
  if (!barrier) return ok && out->via >= 0 && out->evict >= 0;
  if (out->is_async || (out->via != TL_VIA_TMA && out->via != TL_VIA_AUTO)) {
    tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, barrier->loc,
                   "a copy that counts on a barrier goes by TMA: it takes neither `async` nor another `via`");
    return false;
  }
  out->via = TL_VIA_TMA;
  return tl_instantiate_barrier(sema, barrier->value, &out->barrier, &out->stage) && ok && out->evict >= 0;
}

// What is asked for by name must be possible between the two sides.
static bool validate_way(tl_sema *sema, const tl_stmt *stmt, const copy_way *way, const tl_sema_region *src,
                         const tl_sema_region *dst) {
  const tl_option *option = NULL;
  const char *what = "`via: cp_async`";
  if (way->via == TL_VIA_CP_ASYNC || way->via == TL_VIA_TMA) option = tl_instantiate_option(stmt, "via");
  if (way->via == TL_VIA_TMA) what = "`via: tma`";
  if (way->barrier) {
    option = tl_instantiate_option(stmt, "barrier");
    what = "a copy that counts on a barrier";
  }
  // By TMA also out: from a shared tile, or a fragment by way of one.
  if (way->via == TL_VIA_TMA && !way->barrier && dst->symbol->value->type->scope == TL_SCOPE_GLOBAL &&
      src->symbol->value->type->scope != TL_SCOPE_GLOBAL)
    return true;
  if (way->is_async) {
    option = tl_instantiate_option(stmt, "async");
    what = "an asynchronous copy";
  }
  return !option || (validate_side(sema, option, src, TL_SCOPE_GLOBAL, what) &&
                     validate_side(sema, option, dst, TL_SCOPE_SHARED, what));
}

static void set_steps(tl_sema *sema, tl_op *op, const tl_sema_region *region, tl_attr_key dims_key,
                      tl_attr_key step_key) {
  int64_t dims[TL_MAX_RANK] = {0}, steps[TL_MAX_RANK] = {0};
  bool any_step = false;
  for (int32_t i = 0; i < region->num_axes; ++i) {
    dims[i] = region->axes[i].dim;
    steps[i] = region->axes[i].step;
    any_step = any_step || steps[i] != 1;
  }
  tl_op_set_ints(sema->module, op, dims_key, dims, region->num_axes);
  if (any_step) tl_op_set_ints(sema->module, op, step_key, steps, region->num_axes);
}

// Where two regions of one buffer meet: in the same elements in the same order, nowhere, elsewhere, or unknown.
typedef enum meeting { MEET_SAME, MEET_NOWHERE, MEET_ELSEWHERE, MEET_UNKNOWN } meeting;

static meeting regions_meet(const tl_sema_region *src, const tl_sema_region *dst) {
  if (src->has_limits || dst->has_limits) return MEET_UNKNOWN;
  bool same = true, known = true;
  for (int32_t d = 0; d < src->rank; ++d) {
    int64_t src_step = 0, dst_step = 0, src_reach = 0, dst_reach = 0;
    int32_t src_axis = -1, dst_axis = -1;
    for (int32_t i = 0; i < src->num_axes; ++i) {
      const tl_sema_axis *from = &src->axes[i], *to = &dst->axes[i];
      if (from->dim == d) src_axis = i, src_step = from->step, src_reach = (from->extent - 1) * from->step;
      if (to->dim == d) dst_axis = i, dst_step = to->step, dst_reach = (to->extent - 1) * to->step;
    }
    tl_affine from = tl_affine_of(src->offsets[d]), to = tl_affine_of(dst->offsets[d]);
    tl_affine distance = tl_affine_sub(&from, &to);
    if (!distance.valid || distance.num_terms > 0) {
      known = false;
      continue;
    }
    int64_t delta = distance.constant;
    if (delta > dst_reach || delta + src_reach < 0) return MEET_NOWHERE;
    if (src_step > 1 && src_step == dst_step && delta % src_step != 0) return MEET_NOWHERE;
    same = same && delta == 0 && src_axis == dst_axis && src_step == dst_step;
  }
  return !known ? MEET_UNKNOWN : same ? MEET_SAME : MEET_ELSEWHERE;
}

// Where two regions of one memory meet, which may have several names.
static meeting memories_meet(const tl_sema_region *src, const tl_sema_region *dst) {
  const tl_value *from = src->symbol->value, *to = dst->symbol->value;
  if (tl_buffer_root(from) != tl_buffer_root(to)) return MEET_NOWHERE;
  bool same_elements = from == to || (from->type->rank == to->type->rank &&
                                      tl_dtype_bits(from->type->dtype) == tl_dtype_bits(to->type->dtype));
  for (int32_t d = 0; from != to && same_elements && d < to->type->rank; ++d)
    same_elements = to->type->dims[d] >= 0 && from->type->dims[d] == to->type->dims[d];
  return same_elements ? regions_meet(src, dst) : MEET_UNKNOWN;
}

// Threads copy in any order: an element must not be read after another thread has overwritten it.
static void report_self_copy(tl_sema *sema, const tl_stmt *stmt, const tl_sema_region *src, const tl_sema_region *dst) {
  const tl_symbol *symbol = src->symbol;
  tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_SELF_READ, stmt->from->loc,
                                 "`%.*s` is read here at other elements than the copy writes at the same time",
                                 TL_STR_ARG(symbol->name));
  if (symbol != dst->symbol)
    tl_diag_add_note(sema->diags, diag, dst->symbol->loc, "`%.*s` is the same memory", TL_STR_ARG(dst->symbol->name));
  tl_diag_add_hint(sema->diags, diag, "copy to another tile first");
}

static void emit_copy(tl_sema *sema, const tl_stmt *stmt, const tl_sema_region *src, const tl_sema_region *dst,
                      tl_value *pad, const copy_way *way) {
  int64_t extents[TL_MAX_RANK] = {0};
  for (int32_t i = 0; i < src->num_axes; ++i) extents[i] = src->axes[i].extent;
  if (!tl_instantiate_validate_extents(sema, extents, src->num_axes, stmt->text_loc)) return;
  sema->builder.loc = stmt->loc;
  tl_group groups[TL_GROUP_COPY_stage + 1] = {
      TL_GROUP_OF(src->symbol->value),
      {src->offsets, (uint32_t)src->rank},
      {src->limits, src->has_limits ? (uint32_t)src->rank : 0},
      TL_GROUP_OF(dst->symbol->value),
      {dst->offsets, (uint32_t)dst->rank},
      {dst->limits, dst->has_limits ? (uint32_t)dst->rank : 0},
      {&pad, pad ? 1 : 0},
  };
  tl_value *barrier = way->barrier, *stage = way->stage;
  groups[TL_GROUP_COPY_barrier] = (tl_group){&barrier, barrier ? 1 : 0};
  groups[TL_GROUP_COPY_stage] = (tl_group){&stage, barrier ? 1 : 0};
  tl_op *op = tl_build(&sema->builder, TL_OP_COPY, groups, NULL, 0);
  tl_op_set_ints(sema->module, op, TL_ATTR_EXTENTS, extents, src->num_axes);
  set_steps(sema, op, src, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP);
  set_steps(sema, op, dst, TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP);
  if (way->via != TL_VIA_AUTO) tl_op_set_int(sema->module, op, TL_ATTR_VIA, way->via);
  if (way->evict != TL_EVICT_NORMAL) tl_op_set_int(sema->module, op, TL_ATTR_EVICT, way->evict);
  if (barrier) tl_op_set_unit(sema->module, op, TL_ATTR_BY_HAND);
  if (way->across >= 0) tl_op_set_int(sema->module, op, TL_ATTR_ACROSS, way->across);
  if (!way->is_async) return;
  tl_op_set_unit(sema->module, op, TL_ATTR_ASYNC);
  tl_op_set_unit(sema->module, op, TL_ATTR_BY_HAND);
}

void tl_instantiate_engine_reduction(tl_sema *sema, const tl_stmt *stmt, const tl_sema_region *src,
                                     const tl_sema_region *dst, int kind) {
  copy_way way = {.via = TL_VIA_TMA, .evict = TL_EVICT_NORMAL, .across = -1};
  const tl_op *before = sema->builder.block->last;
  emit_copy(sema, stmt, src, dst, NULL, &way);
  tl_op *copy = sema->builder.block->last;
  if (copy != before) tl_op_set_int(sema->module, copy, TL_ATTR_ATOMIC, kind);
}

tl_sema_region tl_instantiate_whole(tl_sema *sema, tl_symbol *symbol, tl_loc loc) {
  tl_sema_region region = {.symbol = symbol, .loc = loc, .is_whole = true, .rank = symbol->value->type->rank};
  region.num_axes = region.rank;
  tl_value *zero = tl_build_const_int(&sema->builder, tl_type_index(sema->module), 0);
  for (int32_t d = 0; d < region.rank; ++d) {
    region.offsets[d] = zero;
    region.axes[d] = (tl_sema_axis){.dim = d, .step = 1, .extent = symbol->value->type->dims[d]};
  }
  return region;
}

void tl_instantiate_move(tl_sema *sema, const tl_stmt *stmt, const tl_sema_region *src, const tl_sema_region *dst) {
  copy_way way = {.via = TL_VIA_AUTO, .evict = TL_EVICT_NORMAL, .across = -1};
  emit_copy(sema, stmt, src, dst, NULL, &way);
}

// Regions that may overlap, as it turns out when the kernel runs: all elements are read before one is written. False:
// they are too many for registers.
static bool copy_through_registers(tl_sema *sema, const tl_stmt *stmt, const tl_sema_region *src,
                                   const tl_sema_region *dst, tl_value *pad, const copy_way *way) {
  enum { MAX_BYTES = 64 << 10 };  // of a block
  tl_dtype dtype = src->symbol->value->type->dtype;
  int64_t extents[TL_MAX_RANK] = {0}, bits = tl_dtype_bits(dtype);
  for (int32_t i = 0; i < src->num_axes; ++i) {
    extents[i] = src->axes[i].extent;
    if (__builtin_mul_overflow(bits, extents[i], &bits)) return false;
  }
  if (bits / 8 > MAX_BYTES) return false;
  if (bits == tl_dtype_bits(dtype)) {  // one element
    emit_copy(sema, stmt, src, dst, pad, way);
    return true;
  }
  tl_symbol symbol = {.name = TL_STR("copied"), .loc = stmt->loc, .role = TL_ROLE_TILE, .kind = TL_SYMBOL_BUFFER};
  symbol.access = TL_ACCESS_INOUT;
  symbol.value = tl_instantiate_fragment(sema, "copied", dtype, extents, src->num_axes, stmt->loc);
  tl_sema_region between = tl_instantiate_whole(sema, &symbol, stmt->loc);
  emit_copy(sema, stmt, src, &between, pad, way);
  emit_copy(sema, stmt, &between, dst, NULL, way);
  return true;
}

// A pad stands for elements that are not there: past a tensor's bounds, or past the run-time end of a slice.
static bool validate_pad(tl_sema *sema, const tl_option *option, const tl_sema_region *src) {
  if (src->symbol->value->type->scope == TL_SCOPE_GLOBAL || src->has_limits) return true;
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, option->value->loc,
                     "`pad` has no effect: every element of the tile `%.*s` is there", TL_STR_ARG(src->symbol->name));
  tl_diag_add_hint(sema->diags, diag, "it stands for elements past the bounds of a tensor that is read");
  return false;
}

void tl_instantiate_copy(tl_sema *sema, const tl_stmt *stmt) {
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`copy`")) return;
  tl_sema_region src, dst;
  copy_way way;
  bool ok = read_way(sema, stmt, &way);
  ok = tl_sema_parse_region(sema, stmt->from, &src) && ok;
  ok = tl_sema_parse_region(sema, stmt->to, &dst) && ok;
  if (!ok || !validate_way(sema, stmt, &way, &src, &dst)) return;
  ok = tl_instantiate_validate_writable(sema, dst.symbol, stmt->to->loc);
  tl_value *pad = NULL;
  const tl_option *option = tl_instantiate_option(stmt, "pad");
  if (option) {
    tl_sema_value value = tl_sema_expr(sema, option->value);
    pad = tl_sema_to_dtype(sema, &value, src.symbol->value->type->dtype, option->value->loc);
    ok = ok && pad;
    ok = ok && validate_pad(sema, option, &src);
  }
  sema->builder.loc = stmt->loc;
  if (!tl_sema_match_regions(sema, &src, &dst, stmt->text_loc) || !ok) return;
  const tl_option *multicast = tl_instantiate_option(stmt, "multicast");
  if (way.across >= 0 && !tl_instantiate_validate_multicast(sema, multicast, way.across, &src, &dst)) return;
  meeting meets = memories_meet(&src, &dst);
  if (meets == MEET_ELSEWHERE) {
    report_self_copy(sema, stmt, &src, &dst);
    return;
  }
  if (meets == MEET_UNKNOWN) {
    if (copy_through_registers(sema, stmt, &src, &dst, pad, &way)) return;
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_MAY_OVERLAP, stmt->from->loc,
                                   "`%.*s` may be read here at elements that the copy writes at the same time",
                                   TL_STR_ARG(src.symbol->name));
    tl_diag_add_hint(sema->diags, diag, "if the two can overlap, copy to another tile first");
  }
  emit_copy(sema, stmt, &src, &dst, pad, &way);
}

// ---- groups of asynchronous copies

void tl_instantiate_copy_group(tl_sema *sema, const tl_stmt *stmt) {
  bool is_commit = stmt->kind == TL_STMT_COMMIT_GROUP;
  if (tl_instantiate_refuse_in_parallel(sema, stmt, is_commit ? "`commit_group`" : "`wait_group`")) return;
  sema->builder.loc = stmt->loc;
  if (is_commit) {
    tl_group no_tokens[] = {{NULL, 0}};
    tl_build(&sema->builder, TL_OP_ASYNC_COMMIT, no_tokens, NULL, 0);
    return;
  }
  // PTX ISA, "cp.async.wait_group": an immediate. More groups than this are never in flight.
  enum { MAX_GROUPS = 1024 };
  tl_sema_value pending = tl_sema_expr(sema, stmt->condition);
  if (pending.kind == TL_SEMA_POISON) return;
  if (pending.kind != TL_SEMA_CONST || pending.constant.kind != TL_CONST_INT || pending.constant.i < 0 ||
      pending.constant.i > MAX_GROUPS) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_OPTION_VALUE, stmt->condition->loc,
                                   "`wait_group` takes a constant from 0 to %d", MAX_GROUPS);
    tl_diag_add_hint(sema->diags, diag, "it is the number of later groups that may still be in flight");
    return;
  }
  tl_op *wait = tl_build(&sema->builder, TL_OP_ASYNC_WAIT, NULL, NULL, 0);
  tl_op_set_int(sema->module, wait, TL_ATTR_PENDING, pending.constant.i);
  tl_op_set_unit(sema->module, wait, TL_ATTR_BY_HAND);
}

bool tl_instantiate_holds_async(const tl_stmt_list *list) {
  for (uint32_t i = 0; i < list->len; ++i) {
    const tl_stmt *stmt = list->items[i];
    if (stmt->kind == TL_STMT_COMMIT_GROUP || stmt->kind == TL_STMT_WAIT_GROUP) return true;
    if (stmt->kind == TL_STMT_ARRIVE || stmt->kind == TL_STMT_WAIT || stmt->kind == TL_STMT_EXPECT) return true;
    if (stmt->kind != TL_STMT_COPY) {
      // looked into below
    } else if (tl_instantiate_option(stmt, "async") || tl_instantiate_option(stmt, "barrier")) {
      return true;
    }
    if (tl_instantiate_holds_async(&stmt->body) || tl_instantiate_holds_async(&stmt->else_body)) return true;
  }
  return false;
}

// Of a slice, or an element: an assignment to it.
static void fill_part(tl_sema *sema, const tl_stmt *stmt, const tl_option *option) {
  tl_expr zero = {.kind = TL_EXPR_INT, .loc = stmt->loc, .height = 1};
  tl_expr *target = stmt->target;
  tl_assign assign = {.targets = &target, .num_targets = 1, .op = TL_STR("="), .value = &zero, .loc = stmt->loc};
  if (stmt->kind == TL_STMT_FILL && option) assign.value = option->value;
  tl_instantiate_assign_one(sema, &assign);
}

void tl_instantiate_fill(tl_sema *sema, const tl_stmt *stmt) {
  bool is_clear = stmt->kind == TL_STMT_CLEAR;
  const tl_option *option = tl_instantiate_option(stmt, "value");
  tl_sema_value value = tl_sema_of_const(tl_const_int(0));
  if (!is_clear && option) value = tl_sema_expr(sema, option->value);
  tl_symbol *symbol = tl_sema_buffer(sema, stmt->target);
  if (!symbol || value.kind == TL_SEMA_POISON) return;
  const tl_type *type = symbol->value->type;
  if (type->scope == TL_SCOPE_LOCAL && stmt->target->kind == TL_EXPR_NAME) {
    tl_loc value_loc = is_clear || !option ? stmt->loc : option->value->loc;
    tl_instantiate_fill_local(sema, symbol, &value, stmt->target->loc, value_loc);
    return;
  }
  if (tl_instantiate_refuse_in_parallel(sema, stmt, is_clear ? "`clear`" : "`fill`")) return;
  if (stmt->target->kind != TL_EXPR_NAME) {
    fill_part(sema, stmt, option);
    return;
  }
  if (type->scope == TL_SCOPE_GLOBAL) {
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_ASSIGN_TARGET, stmt->target->loc,
                                   "%s sets a tile or a slice, and every block would set all of this tensor",
                                   is_clear ? "clear" : "fill");
    tl_diag_add_hint(sema->diags, diag, "name the block's part: `%.*s[i:+n, :]`", TL_STR_ARG(symbol->name));
    return;
  }
  tl_loc loc = is_clear || !option ? stmt->loc : option->value->loc;
  tl_value *element = tl_sema_to_dtype(sema, &value, type->dtype, loc);
  if (!element) return;
  sema->builder.loc = stmt->loc;
  tl_group groups[2] = {TL_GROUP_OF(symbol->value), TL_GROUP_OF(element)};
  tl_build(&sema->builder, TL_OP_FILL, groups, NULL, 0);
}
