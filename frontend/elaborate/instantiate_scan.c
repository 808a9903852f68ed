// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// scan: running sums, products, maxima and minima along one axis. As with reductions the result is a fragment of its
// own, and the statement an assignment of it; so source and target may be one tile.
#include "frontend/elaborate/instantiate_internal.h"
#include "frontend/expr/suggest.h"
#include "ir/reduction.h"

static bool scan_axis(tl_sema *sema, const tl_expr *call, const tl_type *tile, int32_t *out) {
  bool has_axis = false, ok = true;
  for (uint32_t i = 0; i < call->num_keywords; ++i) {
    const tl_keyword *keyword = &call->keywords[i];
    if (tl_str_is(keyword->name, "axis")) {
      has_axis = true;
      ok = tl_instantiate_axis(sema, keyword->value, tile, out) && ok;
      continue;
    }
    tl_diag *diag = tl_diag_report(sema->diags, TL_DIAG_FUNCTION_ARGS, keyword->loc, "`%.*s` takes no argument `%.*s=`",
                                   TL_STR_ARG(call->text), TL_STR_ARG(keyword->name));
    if (tl_str_is(keyword->name, "reverse") || tl_str_is(keyword->name, "exclusive")) {
      tl_diag_add_hint(sema->diags, diag, "it is an option of the statement: `%.*s: true`", TL_STR_ARG(keyword->name));
    }
    const char *known = tl_suggest_for_keyword(keyword->name);
    if (known) tl_diag_add_hint(sema->diags, diag, "%s", known);
    has_axis = has_axis || known;
    ok = false;
  }
  if (has_axis || tile->rank == 1) return ok;
  tl_diag_report(sema->diags, TL_DIAG_REDUCTION_AXIS, call->loc, "a scan of a tile of shape %s needs an axis",
                 tl_sema_shape_text(sema->arena, tile->dims, tile->rank));
  return false;
}

void tl_instantiate_scan(tl_sema *sema, const tl_stmt *stmt) {
  const tl_assign *assign = &stmt->assign;
  const tl_expr *call = assign->value;
  if (tl_instantiate_refuse_in_parallel(sema, stmt, "`scan`")) return;
  bool reverse = false, exclusive = false, ok = true;
  for (uint32_t i = 0; i < stmt->num_options; ++i) {
    const tl_option *option = &stmt->options[i];
    bool *flag = tl_str_is(option->name, "reverse") ? &reverse : &exclusive;
    ok = tl_instantiate_flag(sema, option->value, flag == &reverse ? "reverse" : "exclusive", flag) && ok;
  }
  if (call->num_operands != 1) {
    tl_diag_report(sema->diags, TL_DIAG_REDUCTION, call->loc, "`%.*s` scans one tile, %u given", TL_STR_ARG(call->text),
                   call->num_operands);
    return;
  }
  size_t mark = sema->reductions.len;
  tl_instantiate_reductions(sema, call->operands[0]);
  tl_value *source = tl_instantiate_operand(sema, call->operands[0]);
  int32_t axis = 0;
  if (source && scan_axis(sema, call, source->type, &axis) && ok) {
    const tl_type *type = source->type;
    int kind = tl_sema_scan_kind(call->text);
    const char *name = kind == TL_REDUCTION_SUM    ? "cumsum"
                       : kind == TL_REDUCTION_PROD ? "cumprod"
                       : kind == TL_REDUCTION_MAX  ? "cummax"
                                                   : "cummin";
    tl_value *result =
        tl_instantiate_fragment(sema, name, tl_reduction_dtype(kind, type->dtype), type->dims, type->rank, call->loc);
    sema->builder.loc = stmt->loc;
    tl_group groups[2] = {TL_GROUP_OF(source), TL_GROUP_OF(result)};
    tl_op *op = tl_build(&sema->builder, TL_OP_SCAN, groups, NULL, 0);
    tl_op_set_int(sema->module, op, TL_ATTR_REDUCTION, kind);
    tl_op_set_ints(sema->module, op, TL_ATTR_AXES, &(int64_t){axis}, 1);
    if (reverse) tl_op_set_unit(sema->module, op, TL_ATTR_REVERSE);
    if (exclusive) tl_op_set_unit(sema->module, op, TL_ATTR_EXCLUSIVE);
    tl_instantiate_stand_for(sema, call, result);
    if (tl_instantiate_validate_result(sema, assign->targets[0], call)) tl_instantiate_assign_one(sema, assign);
  }
  sema->reductions.len = mark;
}
