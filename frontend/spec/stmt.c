// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bodies: list items → statements. The table in schema.def says which statements and options there are.
#include <string.h>

#include "frontend/expr/suggest.h"
#include "frontend/sema/sema.h"
#include "frontend/spec/spec_internal.h"

static const char list_item_hint[] = "each statement is its own list item: start it with `- `";

static tl_stmt *new_stmt(tl_spec_reader *reader, tl_stmt_kind kind, tl_loc loc, tl_loc text_loc) {
  tl_stmt *stmt = TL_NEW(reader->arena, tl_stmt);
  stmt->kind = kind;
  stmt->loc = loc;
  stmt->text_loc = text_loc;
  return stmt;
}

static bool fail_form(tl_spec_reader *reader, tl_loc loc, const tl_schema_stmt *schema, const char *problem) {
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_STMT_FORM, loc, "%s", problem);
  tl_diag_add_hint(reader->diags, diag, "it is written `%s`", schema->form);
  return false;
}

static bool read_target(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value,
                        tl_stmt *stmt) {
  stmt->target = tl_expr_parse(reader->arena, reader->diags, value->text);
  if (!stmt->target) return false;
  if (tl_spec_is_region(stmt->target)) return true;
  return fail_form(reader, stmt->target->loc, schema, "only a tile or a part of one can be set");
}

static bool read_copy(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value, tl_stmt *stmt) {
  if (!tl_expr_parse_arrow(reader->arena, reader->diags, value->text, &stmt->from, &stmt->to)) return false;
  const char *problem = "a side of `copy` is a name, a corner `X[i, j]` or slices `X[i:+n, :]`";
  if (!tl_spec_is_region(stmt->from)) return fail_form(reader, stmt->from->loc, schema, problem);
  if (!tl_spec_is_region(stmt->to)) return fail_form(reader, stmt->to->loc, schema, problem);
  return true;
}

static bool read_atomic(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value,
                        tl_stmt *stmt) {
  if (!tl_expr_parse_arrow(reader->arena, reader->diags, value->text, &stmt->from, &stmt->to)) return false;
  if (tl_spec_is_region(stmt->to)) return true;
  return fail_form(reader, stmt->to->loc, schema,
                   "an atomic operates on an element or a tile: a name or an indexed name");
}

static bool read_gemm(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value, tl_stmt *stmt) {
  if (!tl_expr_parse_assign(reader->arena, reader->diags, value->text, &stmt->assign)) return false;
  const tl_assign *assign = &stmt->assign;
  if (assign->num_targets != 1) return fail_form(reader, assign->loc, schema, "`gemm` has one accumulator");
  if (!tl_str_is(assign->op, "=") && !tl_str_is(assign->op, "+="))
    return fail_form(reader, assign->loc, schema, "`gemm` sets (`=`) or adds (`+=`)");
  const tl_expr *product = assign->value;
  if (product->kind != TL_EXPR_BINARY || product->op != TL_EXPR_OP_MATMUL)
    return fail_form(reader, product->loc, schema, "`gemm` takes exactly one matrix product `A @ B`");
  const tl_expr *left = product->operands[0];
  bool is_sparse = tl_spec_is_sparse(left);
  if (is_sparse && (left->num_operands != 2 || left->num_keywords || !tl_spec_is_region(left->operands[0]) ||
                    !tl_spec_is_region(left->operands[1])))
    return fail_form(reader, left->loc, schema,
                     "`sparse(A, meta)` takes the elements that are there, and the metadata");
  for (int side = is_sparse ? 1 : 0; side < 2; side++)
    if (!tl_spec_is_region(product->operands[side]))
      return fail_form(reader, product->operands[side]->loc, schema,
                       "an operand of `gemm` is a tile (or its transpose `X.T`)");
  return true;
}

static bool read_reduce(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value,
                        tl_stmt *stmt) {
  if (!tl_expr_parse_assign(reader->arena, reader->diags, value->text, &stmt->assign)) return false;
  const tl_expr *call = stmt->assign.value;
  if (tl_sema_is_reduction(call)) return true;
  return fail_form(reader, call->loc, schema, "`reduce` takes one reduction of a tile");
}

static bool read_scan(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value, tl_stmt *stmt) {
  if (!tl_expr_parse_assign(reader->arena, reader->diags, value->text, &stmt->assign)) return false;
  const tl_expr *call = stmt->assign.value;
  if (call->kind != TL_EXPR_CALL || tl_sema_scan_kind(call->text) < 0) {
    return fail_form(reader, call->loc, schema, "`scan` takes cumsum, cumprod, cummax or cummin of a tile");
  }
  if (stmt->assign.num_targets == 1) return true;
  return fail_form(reader, stmt->assign.targets[1]->loc, schema, "`scan` has one result");
}

static bool read_loop(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value, tl_stmt *stmt) {
  if (!tl_expr_parse_in(reader->arena, reader->diags, value->text, &stmt->in)) return false;
  const tl_in_clause *in = &stmt->in;
  if (stmt->kind != TL_STMT_PARALLEL && in->num_names != 1)
    return fail_form(reader, in->name_locs[1], schema, "this loop has one index");
  if (in->num_names == in->num_extents) return true;
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_STMT_FORM, value->loc, "%u %s but %u %s", in->num_names,
                                 in->num_names == 1 ? "index" : "indices", in->num_extents,
                                 in->num_extents == 1 ? "extent" : "extents");
  if (in->num_names == 1 && stmt->kind != TL_STMT_PARALLEL)
    tl_diag_add_hint(reader->diags, diag, "a range is written `%.*s in range(lo, hi)`", TL_STR_ARG(in->names[0]));
  else
    tl_diag_add_hint(reader->diags, diag, "it is written `%s`", schema->form);
  return false;
}

static bool read_view(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value, tl_stmt *stmt) {
  tl_assign assign;
  if (!tl_expr_parse_assign(reader->arena, reader->diags, value->text, &assign)) return false;
  const tl_expr *base = assign.value;
  // `X[s]`: one of the tiles that X stands for.
  bool is_stage =
      base->kind == TL_EXPR_INDEX && base->num_subscripts == 1 && base->subscripts[0].kind == TL_SUBSCRIPT_ELEMENT;
  if (is_stage) {
    stmt->view.stage = base->subscripts[0].lo;
    base = base->operands[0];
  }
  bool ok = assign.num_targets == 1 && assign.targets[0]->kind == TL_EXPR_NAME && tl_str_is(assign.op, "=") &&
            base->kind == TL_EXPR_NAME;
  if (!ok) return fail_form(reader, value->loc, schema, "a view gives a tensor or tile another name, shape or dtype");
  stmt->view.name = assign.targets[0]->text;
  stmt->view.loc = assign.targets[0]->loc;
  stmt->view.base = base->text;
  stmt->view.base_loc = base->loc;
  if (!tl_expr_is_reserved(stmt->view.name)) return true;
  tl_diag_report(reader->diags, TL_DIAG_BAD_NAME, stmt->view.loc, "`%.*s` is a reserved word and cannot be a name here",
                 TL_STR_ARG(stmt->view.name));
  return false;
}

// "b" or "b[s]"; for `wait` and `expect` with a second expression behind a comma.
static bool read_barrier(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value,
                         tl_stmt *stmt) {
  if (stmt->kind == TL_STMT_ARRIVE || stmt->kind == TL_STMT_SYNC) {
    stmt->target = tl_expr_parse(reader->arena, reader->diags, value->text);
    if (!stmt->target) return false;
  } else if (!tl_expr_parse_pair(reader->arena, reader->diags, value->text, &stmt->target, &stmt->condition)) {
    return false;
  }
  const tl_expr *base = stmt->target->kind == TL_EXPR_INDEX ? stmt->target->operands[0] : stmt->target;
  if (base->kind == TL_EXPR_NAME) return true;
  return fail_form(reader, stmt->target->loc, schema, "a barrier is named, or named with its stage: `full[s]`");
}

static bool read_role(tl_spec_reader *reader, const tl_yaml_node *value, tl_stmt *stmt) {
  return tl_spec_read_name(reader, value, &stmt->role);
}

// The roles of `specialize`.
static bool read_roles(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value, tl_stmt *stmt) {
  if (value->kind == TL_YAML_SCALAR && !tl_spec_is_empty(value))
    return fail_form(reader, value->loc, schema, "`specialize` has a list of roles");
  tl_spec_read_body(reader, value, &stmt->body);
  bool ok = true;
  for (uint32_t i = 0; i < stmt->body.len; i++) {
    if (stmt->body.items[i]->kind == TL_STMT_ROLE) continue;
    ok = fail_form(reader, stmt->body.items[i]->loc, schema, "only roles stand below `specialize`");
  }
  return ok;
}

// "name(a, b)", or "name" for a macro without parameters.
static bool read_use(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value, tl_stmt *stmt) {
  stmt->use = tl_expr_parse(reader->arena, reader->diags, value->text);
  if (!stmt->use) return false;
  if (stmt->use->kind == TL_EXPR_NAME) stmt->use->kind = TL_EXPR_CALL;
  if (stmt->use->kind == TL_EXPR_CALL) return true;
  return fail_form(reader, stmt->use->loc, schema, "`use` names a macro and gives its arguments");
}

// sync, break and continue stand alone.
static bool read_nothing(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value) {
  if (tl_spec_is_empty(value)) return true;
  if (!value->bad) tl_diag_report(reader->diags, TL_DIAG_STMT_FORM, value->loc, "`%s:` takes no value", schema->key);
  return false;
}

// The value behind the statement's key.
static bool read_value(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *value, tl_stmt *stmt) {
  tl_str key = tl_str_from(schema->key);
  bool is_bare = stmt->kind == TL_STMT_SYNC || stmt->kind == TL_STMT_BREAK || stmt->kind == TL_STMT_CONTINUE ||
                 stmt->kind == TL_STMT_COMMIT_GROUP;
  if (stmt->kind == TL_STMT_SYNC && !tl_spec_is_empty(value) && value->kind == TL_YAML_SCALAR)
    return read_barrier(reader, schema, value, stmt);
  if (is_bare) return read_nothing(reader, schema, value);
  if (stmt->kind == TL_STMT_EXIT && tl_spec_is_empty(value)) return true;
  if (stmt->kind == TL_STMT_LET) {
    tl_spec_read_named(reader, value, key, &stmt->lets, &stmt->num_lets);
    return stmt->num_lets > 0;
  }
  if (stmt->kind == TL_STMT_SPECIALIZE) return read_roles(reader, schema, value, stmt);
  if (!tl_spec_want(reader, value, TL_YAML_SCALAR, key)) return false;
  switch (stmt->kind) {
    case TL_STMT_ARRIVE:
    case TL_STMT_WAIT:
    case TL_STMT_EXPECT:
      return read_barrier(reader, schema, value, stmt);
    case TL_STMT_ROLE:
      return read_role(reader, value, stmt);
    case TL_STMT_CLEAR:
    case TL_STMT_FILL:
      return read_target(reader, schema, value, stmt);
    case TL_STMT_COPY:
      return read_copy(reader, schema, value, stmt);
    case TL_STMT_GEMM:
      return read_gemm(reader, schema, value, stmt);
    case TL_STMT_PARALLEL:
    case TL_STMT_PIPELINED:
    case TL_STMT_FOR:
    case TL_STMT_UNROLL:
      return read_loop(reader, schema, value, stmt);
    case TL_STMT_IF:
    case TL_STMT_WHILE:
    case TL_STMT_EXIT:
    case TL_STMT_WAIT_UNTIL:
    case TL_STMT_WAIT_GROUP:
    case TL_STMT_WAIT_GEMM:
    case TL_STMT_PRINT:
    case TL_STMT_ASSERT:
    case TL_STMT_ASSUME:
      return (stmt->condition = tl_expr_parse(reader->arena, reader->diags, value->text)) != NULL;
    case TL_STMT_ATOMIC:
      return read_atomic(reader, schema, value, stmt);
    case TL_STMT_VIEW:
      return read_view(reader, schema, value, stmt);
    case TL_STMT_SCAN:
      return read_scan(reader, schema, value, stmt);
    case TL_STMT_REDUCE:
      return read_reduce(reader, schema, value, stmt);
    case TL_STMT_ASSIGN:
      return tl_expr_parse_assign(reader->arena, reader->diags, value->text, &stmt->assign);
    case TL_STMT_USE:
      return read_use(reader, schema, value, stmt);
    case TL_STMT_LET:
    case TL_STMT_SPECIALIZE:
    case TL_STMT_SYNC:
    case TL_STMT_COMMIT_GROUP:
    case TL_STMT_BREAK:
    case TL_STMT_CONTINUE:
      break;
  }
  return false;
}

// A choice is a word, not an expression: `and` and `or` are words here too.
static tl_expr *read_choice(tl_spec_reader *reader, const tl_schema_option *schema, const tl_yaml_node *value) {
  tl_str text = tl_spec_read_choice(reader, value, schema->option, schema->choices);
  if (!text.len) return NULL;
  tl_expr *word = TL_NEW(reader->arena, tl_expr);
  word->kind = TL_EXPR_NAME;
  word->text = text;
  word->loc = value->loc;
  word->height = 1;
  return word;
}

// Words that are shown as they stand.
static tl_expr *read_text(tl_spec_reader *reader, const tl_schema_option *schema, const tl_yaml_node *value) {
  if (!tl_spec_want(reader, value, TL_YAML_SCALAR, tl_str_from(schema->option))) return NULL;
  tl_expr *text = TL_NEW(reader->arena, tl_expr);
  text->kind = TL_EXPR_STRING;
  text->text = tl_str_trim(value->text.text);
  text->loc = value->loc;
  text->height = 1;
  return text;
}

static bool read_option(tl_spec_reader *reader, const tl_schema_option *schema, const tl_yaml_entry *entry,
                        tl_stmt *stmt) {
  tl_option option = {.name = tl_str_from(schema->option), .loc = entry->key->loc};
  switch (schema->form) {
    case TL_SCHEMA_FORM_BODY:
      tl_spec_read_body(reader, entry->value, tl_str_is(option.name, "else") ? &stmt->else_body : &stmt->body);
      return true;
    case TL_SCHEMA_FORM_TYPE:
      return tl_spec_want(reader, entry->value, TL_YAML_SCALAR, option.name) &&
             tl_expr_parse_view_type(reader->arena, reader->diags, entry->value->text, &stmt->view);
    case TL_SCHEMA_FORM_CHOICE:
      option.value = read_choice(reader, schema, entry->value);
      option.is_word = true;
      break;
    case TL_SCHEMA_FORM_TEXT:
      option.value = read_text(reader, schema, entry->value);
      break;
    case TL_SCHEMA_FORM_EXPR:
      option.value = tl_spec_read_expr(reader, entry->value, option.name);
      break;
  }
  if (option.value) stmt->options[stmt->num_options++] = option;
  return option.value != NULL;
}

// True when it is another statement: what stands behind it belongs to that one.
static bool report_unknown_option(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *key) {
  tl_str name = key->text.text;
  const char *near = tl_schema_suggest_option(schema, name);
  if (tl_schema_find_stmt(name)) {
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_STMT_STRUCTURE, key->loc,
                                   "`%.*s` is a statement of its own and no option of `%s`", tl_expr_shown(name),
                                   name.data, schema->key);
    tl_diag_add_hint(reader->diags, diag, "%s", list_item_hint);
    return true;
  }
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_STMT_OPTION_UNKNOWN, key->loc, "`%s` has no option `%.*s`",
                                 schema->key, tl_expr_shown(name), name.data);
  if (near) tl_diag_add_hint(reader->diags, diag, "did you mean `%s`?", near);
  return false;
}

static bool has_key(const tl_yaml_node *node, const char *key) {
  return tl_yaml_get(node, key) != NULL;
}

static bool validate_required(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *node,
                              tl_loc key_loc) {
  bool ok = true;
  const tl_schema_option *option;
  for (size_t i = 0; (option = tl_schema_required_option(schema, i)); i++) {
    if (has_key(node, option->option)) continue;
    tl_diag_report(reader->diags, TL_DIAG_STMT_OPTION_MISSING, key_loc, "`%s` needs the key `%s` beside it",
                   schema->key, option->option);
    ok = false;
  }
  const tl_yaml_node *view = schema->kind == TL_STMT_VIEW ? tl_yaml_get(node, "view") : NULL;
  bool is_stage = view && view->kind == TL_YAML_SCALAR && tl_str_find(view->text.text, '[') != SIZE_MAX;
  if (view && has_key(node, "type") == is_stage) {
    tl_diag_report(
        reader->diags, TL_DIAG_STMT_OPTION_MISSING, key_loc,
        is_stage ? "a `view` of one of several tiles takes no `type`" : "`view` needs the key `type` beside it");
    return false;
  }
  if (schema->kind != TL_STMT_IF || schema->state != TL_SCHEMA_NOW) return ok;
  bool then = has_key(node, "then"), alone = has_key(node, "do");
  if (then == alone) {
    tl_diag_report(reader->diags, TL_DIAG_STMT_OPTION_MISSING, key_loc,
                   then ? "`if` takes `then` or `do`, not both" : "`if` needs the key `then` (or `do`) beside it");
    return false;
  }
  return ok;
}

// A statement that is compiled later: named, and the statements inside it are checked all the same.
static void refuse_stmt(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *node,
                        tl_loc key_loc) {
  tl_spec_refuse_later(reader, key_loc, schema->key);
  static const char *const bodies[] = {"do", "then", "else"};
  for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
    const tl_yaml_node *value = tl_yaml_get(node, bodies[i]);
    tl_stmt_list ignored;
    if (value) tl_spec_read_body(reader, value, &ignored);
  }
}

// `op` may be left out: it adds.
static void add_default_op(tl_spec_reader *reader, tl_stmt *stmt) {
  for (uint32_t i = 0; i < stmt->num_options; i++)
    if (tl_str_is(stmt->options[i].name, "op")) return;
  tl_expr *word = TL_NEW(reader->arena, tl_expr);
  word->kind = TL_EXPR_NAME;
  word->text = TL_STR("add");
  word->loc = stmt->loc;
  word->height = 1;
  stmt->options[stmt->num_options++] = (tl_option){TL_STR("op"), stmt->loc, word, true};
}

static tl_stmt *read_known(tl_spec_reader *reader, const tl_schema_stmt *schema, const tl_yaml_node *node,
                           uint32_t which) {
  const tl_yaml_entry *main = &node->entries[which];
  tl_stmt *stmt = new_stmt(reader, schema->kind, main->key->loc, main->value->loc);
  stmt->options = TL_NEW_ARRAY(reader->arena, tl_option, node->num_entries + 1);
  bool ok = read_value(reader, schema, main->value, stmt);
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_entry *entry = &node->entries[i];
    if (i == which || entry->key->bad) continue;
    const tl_schema_option *option = tl_schema_find_option(schema, entry->key->text.text);
    if (!option) {
      ok = false;
      if (report_unknown_option(reader, schema, entry->key)) return NULL;
    } else if (option->state == TL_SCHEMA_LATER) {
      tl_spec_refuse_later(reader, entry->key->loc, option->option);
      ok = false;
    } else {
      ok = read_option(reader, option, entry, stmt) && ok;
    }
  }
  ok = validate_required(reader, schema, node, main->key->loc) && ok;
  if (schema->kind == TL_STMT_ATOMIC) add_default_op(reader, stmt);
  return ok ? stmt : NULL;
}

// "x[i: j] = 3" is, to YAML, the key "x[i" with the value "j] = 3"; other keys with `=` or brackets are such slips too.
static bool report_cut_assignment(tl_spec_reader *reader, const tl_yaml_node *key) {
  tl_str name = key->text.text;
  int open = 0;
  bool assigns = false, chooses = false;
  for (size_t i = 0; i < name.len; i++) {
    chooses = chooses || (name.data[i] == '?' && i > 0 && name.data[i - 1] == ' ');
    open += name.data[i] == '[' ? 1 : name.data[i] == ']' ? -1 : 0;
    assigns = assigns || name.data[i] == '=';
  }
  if (open <= 0 && !assigns) return false;
  tl_loc colon = {key->loc.source, key->loc.offset + key->loc.length, 1};
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_YAML_COLON, colon,
                                 open > 0 ? "a slice has no space after its colon: YAML takes this for a key"
                                          : "YAML takes the text before this `: ` for a key");
  if (open > 0) {
    tl_diag_add_hint(reader->diags, diag, "write `lo:hi`");
  } else if (chooses) {
    tl_diag_add_hint(reader->diags, diag, "a choice is written `a if c else b`");
  }
  return true;
}

static tl_stmt *read_mapping(tl_spec_reader *reader, const tl_yaml_node *node) {
  if (!node->num_entries) return NULL;
  for (uint32_t i = 0; i < node->num_entries; i++) {
    const tl_yaml_node *key = node->entries[i].key;
    const tl_schema_stmt *schema = tl_schema_find_stmt(key->text.text);
    if (!schema) continue;
    if (schema->state == TL_SCHEMA_NOW) return read_known(reader, schema, node, i);
    refuse_stmt(reader, schema, node, key->loc);
    return NULL;
  }
  const tl_yaml_node *key = node->entries[0].key;
  if (key->bad || report_cut_assignment(reader, key)) return NULL;
  tl_str name = key->text.text;
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_STMT_UNKNOWN, key->loc, "unknown statement `%.*s`",
                                 tl_expr_shown(name), name.data);
  const char *near = tl_schema_suggest_stmt(name);
  if (near)
    tl_diag_add_hint(reader->diags, diag, "did you mean `%s`?", near);
  else
    tl_diag_add_hint(reader->diags, diag, "an assignment is written `x = value`, the use of a macro `use: name(a, b)`");
  return NULL;
}

static tl_stmt *read_scalar(tl_spec_reader *reader, const tl_yaml_node *node) {
  tl_str text = tl_str_trim(node->text.text);
  if (!text.len) {
    tl_diag_report(reader->diags, TL_DIAG_STMT_STRUCTURE, node->loc, "an empty statement");
    return NULL;
  }
  const tl_schema_stmt *schema = tl_schema_find_stmt(text);
  if (schema) {
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_STMT_FORM, node->loc, "`%s` needs its colon", schema->key);
    tl_diag_add_hint(reader->diags, diag, "it is written `%s`", schema->form);
    return NULL;
  }
  tl_stmt *stmt = new_stmt(reader, TL_STMT_ASSIGN, node->loc, node->loc);
  return tl_expr_parse_assign(reader->arena, reader->diags, node->text, &stmt->assign) ? stmt : NULL;
}

static tl_stmt *read_stmt(tl_spec_reader *reader, const tl_yaml_node *node) {
  if (node->bad) return NULL;
  switch (node->kind) {
    case TL_YAML_SCALAR:
      return read_scalar(reader, node);
    case TL_YAML_MAPPING:
      return read_mapping(reader, node);
    case TL_YAML_SEQUENCE:
      break;
  }
  tl_diag_report(reader->diags, TL_DIAG_STMT_STRUCTURE, node->loc, "a list stands where a statement is expected");
  return NULL;
}

void tl_spec_read_body(tl_spec_reader *reader, const tl_yaml_node *node, tl_stmt_list *out) {
  *out = (tl_stmt_list){0};
  if (node->bad || tl_spec_is_empty(node)) return;
  bool is_list = node->kind == TL_YAML_SEQUENCE;
  uint32_t count = is_list ? node->num_items : 1;
  out->items = TL_NEW_ARRAY(reader->arena, tl_stmt *, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    tl_stmt *stmt = read_stmt(reader, is_list ? node->items[i] : node);
    if (stmt) out->items[out->len++] = stmt;
  }
}
