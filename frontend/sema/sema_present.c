// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors that may be absent at a launch: they are touched where a condition around has asked for them only.
#include "frontend/sema/sema.h"

static bool is_known(const tl_sema *sema, const tl_symbol *symbol) {
  for (size_t i = 0; i < sema->present.len; i++)
    if (sema->present.items[i] == symbol) return true;
  return false;
}

void tl_sema_know_present(tl_sema *sema, const tl_expr *condition, bool holds) {
  if (condition->kind == TL_EXPR_UNARY && condition->op == TL_EXPR_OP_NOT) {
    tl_sema_know_present(sema, condition->operands[0], !holds);
    return;
  }
  // Both sides of an `and` hold, both sides of an `or` do not.
  if (condition->kind == TL_EXPR_BINARY && condition->op == (holds ? TL_EXPR_OP_AND : TL_EXPR_OP_OR)) {
    tl_sema_know_present(sema, condition->operands[0], holds);
    tl_sema_know_present(sema, condition->operands[1], holds);
    return;
  }
  // A let means its text.
  const tl_symbol *let = condition->kind == TL_EXPR_NAME ? tl_strmap_get(&sema->names, condition->text) : NULL;
  if (let && let->text) {
    tl_sema_know_present(sema, let->text, holds);
    return;
  }
  bool asks = holds && condition->kind == TL_EXPR_CALL && tl_str_is(condition->text, "present");
  if (!asks || condition->num_operands != 1 || condition->operands[0]->kind != TL_EXPR_NAME) return;
  const tl_symbol *symbol = tl_strmap_get(&sema->names, condition->operands[0]->text);
  if (symbol && symbol->is_optional) tl_vec_push(&sema->present, symbol);
}

bool tl_sema_validate_present(tl_sema *sema, const tl_symbol *symbol, tl_loc loc) {
  if (!symbol->is_optional || is_known(sema, symbol)) return true;
  tl_diag *diag =
      tl_diag_report(sema->diags, TL_DIAG_OPTIONAL, loc, "`%.*s` may be absent here", TL_STR_ARG(symbol->name));
  tl_diag_add_note(sema->diags, diag, symbol->loc, "declared `optional` here");
  tl_diag_add_hint(sema->diags, diag, "ask first: `if: present(%.*s)`, or `… if present(%.*s) else …`",
                   TL_STR_ARG(symbol->name), TL_STR_ARG(symbol->name));
  return false;
}

tl_sema_value tl_sema_present(tl_sema *sema, const tl_expr *expr) {
  const tl_expr *name = expr->operands[0];
  const tl_symbol *symbol = name->kind == TL_EXPR_NAME ? tl_sema_lookup(sema, name->text, name->loc) : NULL;
  if (symbol && symbol->kind == TL_SYMBOL_POISON) return tl_sema_poison();
  if (!symbol || !symbol->is_optional) {
    if (symbol || name->kind != TL_EXPR_NAME)
      tl_diag_report(sema->diags, TL_DIAG_OPTIONAL, name->loc,
                     "`present` asks for a tensor that is declared `optional`");
    return tl_sema_poison();
  }
  if (sema->launch_only) {
    tl_diag_report(sema->diags, TL_DIAG_NOT_AT_LAUNCH, expr->loc,
                   "the kernel knows whether `%.*s` is there, not what is "
                   "evaluated before the launch",
                   TL_STR_ARG(symbol->name));
    return tl_sema_poison();
  }
  sema->builder.loc = expr->loc;
  const tl_type *type = tl_type_scalar(sema->module, TL_DTYPE_BOOL);
  tl_group group = TL_GROUP_OF(symbol->value);
  return tl_sema_of_value(tl_op_result(tl_build(&sema->builder, TL_OP_PRESENT, &group, &type, 1), 0));
}
