// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// print and assert. A line names the block and the loop indices around the statement:
//
//   parallel: i in 64          ⇒   print %bx, %i, %value {text = "bx={} i={}: x[i] = {}"}
//     print: x[i]
//
// A whole tile goes through shared memory, where one thread reads its elements in order.
#include <string.h>

#include "frontend/elaborate/instantiate_internal.h"

// A line in the making.
typedef struct shown {
  tl_strbuf text;
  tl_value **values;  // of the module's arena: what is visible, the indices of an element, the element
  uint32_t len;
} shown;

// Text as it stands: braces stand for values.
static void append_words(tl_strbuf *out, tl_str words) {
  for (size_t i = 0; i < words.len; i++) {
    if (words.data[i] == '{') tl_strbuf_append_char(out, '{');
    tl_strbuf_append_char(out, words.data[i] == '\n' ? ' ' : words.data[i]);
  }
}

// "bx={} i={}: ", with the indices that are visible.
static void begin_line(tl_sema *sema, shown *line) {
  *line = (shown){.values = TL_NEW_ARRAY(&sema->module->arena, tl_value *, sema->stack.len + TL_MAX_RANK + 1)};
  tl_strbuf_init(&line->text);
  for (size_t i = 0; i < sema->stack.len; i++) {
    const tl_symbol *symbol = sema->stack.items[i];
    bool is_index = symbol->role == TL_ROLE_GRID || symbol->role == TL_ROLE_INDEX;
    if (!is_index || symbol->kind != TL_SYMBOL_VALUE || !symbol->value) continue;
    tl_strbuf_appendf(&line->text, "%s%.*s={}", line->len ? " " : "", TL_STR_ARG(symbol->name));
    line->values[line->len++] = symbol->value;
  }
  if (line->len) tl_strbuf_append_c(&line->text, ": ");
}

static void append_name(tl_sema *sema, const tl_stmt *stmt, tl_strbuf *out) {
  const tl_option *message = tl_instantiate_option(stmt, "message");
  append_words(out, message ? message->value->text : tl_str_from(tl_sema_expr_text(sema, stmt->condition)));
}

static void build_print(tl_sema *sema, const tl_stmt *stmt, shown *line) {
  sema->builder.loc = stmt->loc;
  tl_group group = {line->values, line->len};
  tl_op *op = tl_build(&sema->builder, TL_OP_PRINT, &group, NULL, 0);
  tl_op_set_str(sema->module, op, TL_ATTR_TEXT, tl_strbuf_view(&line->text));
  tl_strbuf_fini(&line->text);
}

// ---- whole tiles

// The elements of a tile expression, reductions included, as a fragment. NULL after errors.
static tl_value *tile_of(tl_sema *sema, const tl_expr *expr) {
  size_t mark = sema->reductions.len;
  if (tl_instantiate_has_reduction(expr)) tl_instantiate_reductions(sema, expr);
  tl_value *tile = tl_instantiate_operand(sema, expr);
  sema->reductions.len = mark;
  return tile;
}

static tl_value *load(tl_sema *sema, tl_value *buffer, tl_value *const *indices) {
  const tl_type *type = tl_type_scalar(sema->module, buffer->type->dtype);
  tl_group groups[3] = {TL_GROUP_OF(buffer), {indices, (uint32_t)buffer->type->rank}, TL_GROUP_EMPTY};
  return tl_op_result(tl_build(&sema->builder, TL_OP_LOAD, groups, &type, 1), 0);
}

static tl_value *copy_to_shared(tl_sema *sema, tl_value *tile, tl_loc loc) {
  const tl_type *from = tile->type;
  tl_dtype dtype = tl_sema_arithmetic_dtype(from->dtype);
  tl_builder head;
  tl_builder_before(&head, sema->module, tl_module_kernel(sema->module)->regions[0]->first);
  head.loc = loc;
  const tl_type *type = tl_type_buffer(sema->module, TL_SCOPE_SHARED, dtype, from->dims, from->rank);
  tl_op *alloc = tl_build(&head, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(sema->module, alloc, TL_ATTR_NAME, TL_STR("printed"));
  tl_value *shared = tl_op_result(alloc, 0);
  tl_parallel_scope scope =
      tl_instantiate_begin_parallel(sema, from->dims, from->rank, tl_instantiate_index_names, loc);
  tl_value *const *indices = scope.op->regions[0]->args;
  tl_value *element = tl_build_cast(&sema->builder, load(sema, tile, indices), tl_type_scalar(sema->module, dtype));
  tl_group store[3] = {TL_GROUP_OF(element), TL_GROUP_OF(shared), {indices, (uint32_t)from->rank}};
  tl_build(&sema->builder, TL_OP_STORE, store, NULL, 0);
  tl_instantiate_end_parallel(sema, &scope);
  return shared;
}

// One thread goes through the elements in order.
static void print_elements(tl_sema *sema, const tl_stmt *stmt, tl_value *shared) {
  static const int64_t one = 1;
  int32_t rank = shared->type->rank;
  tl_parallel_scope scope = tl_instantiate_begin_parallel(sema, &one, 1, NULL, stmt->loc);
  tl_value *indices[TL_MAX_RANK];
  shown line;
  begin_line(sema, &line);
  append_name(sema, stmt, &line.text);
  if (stmt->condition->kind != TL_EXPR_NAME || tl_instantiate_option(stmt, "message"))
    tl_strbuf_append_char(&line.text, ' ');
  for (int32_t d = 0; d < rank; d++) {
    tl_value *lower = tl_build_index(&sema->builder, 0), *step = tl_build_index(&sema->builder, 1);
    tl_value *upper = tl_build_index(&sema->builder, shared->type->dims[d]);
    tl_group groups[4] = {TL_GROUP_OF(lower), TL_GROUP_OF(upper), TL_GROUP_OF(step), TL_GROUP_EMPTY};
    tl_op *loop = tl_build(&sema->builder, TL_OP_FOR, groups, NULL, 0);
    indices[d] = tl_block_add_arg(sema->module, loop->regions[0], tl_type_index(sema->module), NULL);
    tl_instantiate_enter(sema, loop, 0);
    sema->builder.loc = stmt->loc;
    tl_strbuf_append_c(&line.text, d ? ", {}" : "[{}");
    line.values[line.len++] = indices[d];
  }
  tl_strbuf_append_c(&line.text, "] = {}");
  line.values[line.len++] = load(sema, shared, indices);
  build_print(sema, stmt, &line);
  tl_instantiate_end_parallel(sema, &scope);
}

// ---- the statements

// Whether the value is one of whole tiles, outside `parallel`.
static bool is_tile(tl_sema *sema, const tl_expr *expr) {
  return !sema->in_parallel && (tl_sema_has_tile(sema, expr) || tl_instantiate_has_reduction(expr));
}

// A value that can be shown: constants take the type that they would have alone.
static tl_value *shown_value(tl_sema *sema, const tl_expr *expr) {
  tl_sema_value value = tl_sema_expr(sema, expr);
  if (value.kind != TL_SEMA_CONST) return value.kind == TL_SEMA_VALUE ? value.value : NULL;
  if (value.constant.kind == TL_CONST_DTYPE) {
    tl_diag_report(sema->diags, TL_DIAG_TYPE_MISMATCH, expr->loc, "a number can be printed, not a dtype");
    return NULL;
  }
  bool is_float = value.constant.kind == TL_CONST_FLOAT;
  return tl_sema_convert(
      sema, &value, is_float ? tl_type_scalar(sema->module, TL_DTYPE_F64) : tl_type_index(sema->module), expr->loc);
}

void tl_instantiate_print(tl_sema *sema, const tl_stmt *stmt) {
  sema->builder.loc = stmt->loc;
  if (is_tile(sema, stmt->condition)) {
    tl_value *tile = tile_of(sema, stmt->condition);
    if (tile) print_elements(sema, stmt, copy_to_shared(sema, tile, stmt->loc));
    return;
  }
  tl_value *value = shown_value(sema, stmt->condition);
  if (!value) return;
  shown line;
  begin_line(sema, &line);
  append_name(sema, stmt, &line.text);
  tl_strbuf_append_c(&line.text, " = {}");
  line.values[line.len++] = value;
  build_print(sema, stmt, &line);
}

static void build_assert(tl_sema *sema, const tl_stmt *stmt, tl_value *condition) {
  sema->builder.loc = stmt->loc;
  tl_group group = TL_GROUP_OF(condition);
  tl_op *op = tl_build(&sema->builder, TL_OP_ASSERT, &group, NULL, 0);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_c(&text, tl_sema_expr_text(sema, stmt->condition));
  const tl_option *message = tl_instantiate_option(stmt, "message");
  if (message) tl_strbuf_appendf(&text, ": %.*s", TL_STR_ARG(message->value->text));
  tl_op_set_str(sema->module, op, TL_ATTR_TEXT, tl_strbuf_view(&text));
  tl_strbuf_fini(&text);
  const tl_source *source = sema->sources ? tl_sources_get(sema->sources, stmt->loc.source) : NULL;
  tl_op_set_str(sema->module, op, TL_ATTR_NAME,
                tl_str_from(source ? tl_sources_short_name(sema->sources, source) : "spec"));
  tl_op_set_int(sema->module, op, TL_ATTR_LINE, source ? tl_source_position(source, stmt->loc.offset).line : 0);
}

// Every element of a condition on tiles is asked for.
static void assert_elements(tl_sema *sema, const tl_stmt *stmt) {
  tl_value *tile = tile_of(sema, stmt->condition);
  if (!tile) return;
  const tl_type *type = tile->type;
  tl_parallel_scope scope =
      tl_instantiate_begin_parallel(sema, type->dims, type->rank, tl_instantiate_index_names, stmt->loc);
  tl_value *element = load(sema, tile, scope.op->regions[0]->args);
  build_assert(sema, stmt, tl_build_cast(&sema->builder, element, tl_type_scalar(sema->module, TL_DTYPE_BOOL)));
  tl_instantiate_end_parallel(sema, &scope);
}

void tl_instantiate_assert(tl_sema *sema, const tl_stmt *stmt) {
  sema->builder.loc = stmt->loc;
  if (is_tile(sema, stmt->condition)) {
    assert_elements(sema, stmt);
    return;
  }
  tl_sema_value condition = tl_sema_condition(sema, stmt->condition);
  if (condition.kind == TL_SEMA_POISON || (condition.kind == TL_SEMA_CONST && condition.constant.i)) return;
  tl_value *value = condition.value;
  if (condition.kind == TL_SEMA_CONST) value = tl_build_bool(&sema->builder, false);
  build_assert(sema, stmt, value);
}
