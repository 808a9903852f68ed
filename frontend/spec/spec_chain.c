// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Documents `chain: name`: reading, the kernels behind the steps, printing.
#include "frontend/expr/suggest.h"
#include "frontend/spec/spec_internal.h"
#include "frontend/spec/spec_print_part.h"
#include "support/vec.h"

typedef struct buffer_list {
  TL_VEC(tl_buffer_decl) items;
} buffer_list;

static void read_buffer(tl_spec_reader *reader, const tl_yaml_entry *entry, buffer_list *out) {
  tl_tile_decl type = {0};
  tl_str *names = NULL;
  tl_loc *locs = NULL;
  uint32_t count = 0;
  if (!tl_spec_read_tile_names(reader, entry, &type, &names, &locs, &count)) return;
  if (type.layout) {
    tl_diag_report(reader->diags, TL_DIAG_BAD_TYPE, type.layout->loc, "only a shared tile takes a layout");
    return;
  }
  if (!type.num_dims) {
    tl_diag_report(reader->diags, TL_DIAG_BAD_TYPE, type.type_loc, "a buffer needs dims: `dtype[dims]`");
    return;
  }
  tl_buffer_decl buffer = {
      .dtype = type.dtype, .dims = type.dims, .num_dims = type.num_dims, .type_loc = entry->value->loc};
  for (uint32_t i = 0; i < count; i++) {
    buffer.name = names[i];
    buffer.loc = locs[i];
    tl_vec_push(&out->items, buffer);
  }
}

static void read_buffers(tl_spec_reader *reader, const tl_yaml_node *node, tl_chain_spec *chain) {
  if (tl_spec_is_empty(node) || !tl_spec_want(reader, node, TL_YAML_MAPPING, TL_STR("buffers"))) return;
  buffer_list list = {0};
  for (uint32_t i = 0; i < node->num_entries; i++) read_buffer(reader, &node->entries[i], &list);
  chain->buffers = tl_expr_copy_items(reader->arena, list.items.items, list.items.len, sizeof(tl_buffer_decl));
  chain->num_buffers = (uint32_t)list.items.len;
  tl_vec_fini(&list.items);
}

static void read_steps(tl_spec_reader *reader, const tl_yaml_node *node, tl_chain_spec *chain) {
  bool single = node->kind == TL_YAML_SCALAR && !tl_spec_is_empty(node);
  if (!single && !tl_spec_want(reader, node, TL_YAML_SEQUENCE, TL_STR("steps"))) return;
  uint32_t count = single ? 1 : node->num_items;
  chain->steps = TL_NEW_ARRAY(reader->arena, tl_step, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    tl_expr *call = tl_spec_read_expr(reader, single ? node : node->items[i], TL_STR("steps"));
    if (!call) continue;
    if (call->kind == TL_EXPR_CALL) {
      chain->steps[chain->num_steps++] = (tl_step){.call = call};
      continue;
    }
    tl_diag *diag =
        tl_diag_report(reader->diags, TL_DIAG_CHAIN_STEP, call->loc, "a step is one launch: `kernel(arg, …)`");
    if (call->kind == TL_EXPR_NAME)
      tl_diag_add_hint(reader->diags, diag, "write `%.*s(…)` with its arguments", TL_STR_ARG(call->text));
  }
}

// Views of arguments are seen by the reference too; those of buffers only by the steps.
static void keep_argument_views(tl_spec_reader *reader, tl_kernel_spec *kernel) {
  tl_chain_spec *chain = kernel->chain;
  chain->views = kernel->views;
  chain->num_views = kernel->num_views;
  kernel->views = TL_NEW_ARRAY(reader->arena, tl_view, chain->num_views + 1);
  kernel->num_views = 0;
  for (uint32_t i = 0; i < chain->num_views; i++) {
    bool is_argument = false;
    for (uint32_t a = 0; a < kernel->num_args; a++)
      is_argument = is_argument || tl_str_equal(kernel->args[a].name, chain->views[i].base);
    if (is_argument) kernel->views[kernel->num_views++] = chain->views[i];
  }
}

bool tl_spec_read_chain(tl_spec_reader *reader, const tl_yaml_node *document, tl_kernel_spec *kernel) {
  size_t errors_before = reader->diags->num_errors;
  kernel->chain = TL_NEW(reader->arena, tl_chain_spec);
  for (uint32_t i = 0; i < document->num_entries; i++) {
    const tl_yaml_entry *entry = &document->entries[i];
    if (!tl_spec_validate_key(reader, TL_SCHEMA_CHAIN, entry->key, "a chain")) continue;
    if (tl_str_is(entry->key->text.text, "buffers"))
      read_buffers(reader, entry->value, kernel->chain);
    else if (tl_str_is(entry->key->text.text, "steps"))
      read_steps(reader, entry->value, kernel->chain);
    else
      tl_spec_read_section(reader, entry, kernel);
  }
  keep_argument_views(reader, kernel);
  for (uint32_t i = 0; i < kernel->num_args; i++)
    if (kernel->args[i].is_optional)
      tl_diag_report(reader->diags, TL_DIAG_OPTIONAL, kernel->args[i].loc,
                     "an argument of a chain is always there: its kernels are planned with it");
  if (reader->diags->num_errors == errors_before) tl_spec_validate_names(reader, kernel);
  return kernel->name.len > 0;
}

// ---- the kernels behind the steps

static const tl_kernel_spec *find_kernel(tl_spec_reader *reader, const tl_spec *spec, const tl_expr *call) {
  const tl_kernel_spec *found = tl_spec_find(spec, call->text);
  if (found) return found;
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_CHAIN_KERNEL, call->loc, "the file has no kernel `%.*s`",
                                 tl_expr_shown(call->text), call->text.data);
  tl_str *names = TL_NEW_ARRAY(reader->arena, tl_str, spec->num_kernels + 1);
  for (uint32_t i = 0; i < spec->num_kernels; i++) names[i] = spec->kernels[i].name;
  size_t nearest = tl_suggest_index(call->text, names, spec->num_kernels);
  if (nearest != SIZE_MAX)
    tl_diag_add_hint(reader->diags, diag, "did you mean `%.*s`?", TL_STR_ARG(spec->kernels[nearest].name));
  return NULL;
}

enum { UNSEEN, OPEN, DONE };

// Depth first; a chain that is still open when it is met again runs itself.
static void find_recursion(tl_spec_reader *reader, tl_spec *spec, uint32_t index, int *states) {
  tl_chain_spec *chain = spec->kernels[index].chain;
  states[index] = OPEN;
  for (uint32_t i = 0; chain && i < chain->num_steps; i++) {
    tl_step *step = &chain->steps[i];
    if (!step->kernel) continue;
    uint32_t next = (uint32_t)(step->kernel - spec->kernels);
    if (states[next] == UNSEEN) find_recursion(reader, spec, next, states);
    if (states[next] != OPEN) continue;
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_CHAIN_RECURSION, step->call->loc,
                                   "the chain `%.*s` would run itself without end", TL_STR_ARG(step->kernel->name));
    tl_diag_add_note(reader->diags, diag, step->kernel->loc, "it is defined here");
    step->kernel = NULL;
  }
  states[index] = DONE;
}

void tl_spec_resolve_chains(tl_spec_reader *reader, tl_spec *spec) {
  for (uint32_t i = 0; i < spec->num_kernels; i++) {
    tl_chain_spec *chain = spec->kernels[i].chain;
    for (uint32_t k = 0; chain && k < chain->num_steps; k++)
      chain->steps[k].kernel = find_kernel(reader, spec, chain->steps[k].call);
  }
  int *states = TL_NEW_ARRAY(reader->arena, int, spec->num_kernels + 1);
  for (uint32_t i = 0; i < spec->num_kernels; i++)
    if (states[i] == UNSEEN) find_recursion(reader, spec, i, states);
}

// ---- printing

void tl_spec_print_chain(const tl_chain_spec *chain, tl_strbuf *out) {
  if (chain->num_buffers) tl_strbuf_append_c(out, "buffers:\n");
  for (uint32_t i = 0; i < chain->num_buffers; i++) {
    const tl_buffer_decl *buffer = &chain->buffers[i];
    tl_strbuf_appendf(out, "  %.*s: ", TL_STR_ARG(buffer->name));
    tl_expr_print(buffer->dtype, out);
    tl_strbuf_append_char(out, '[');
    tl_spec_print_list(buffer->dims, buffer->num_dims, out);
    tl_strbuf_append_c(out, "]\n");
  }
  if (chain->num_steps) tl_strbuf_append_c(out, "steps:\n");
  for (uint32_t i = 0; i < chain->num_steps; i++) {
    tl_strbuf text = {0};
    tl_expr_print(chain->steps[i].call, &text);
    tl_strbuf_append_c(out, "  - ");
    tl_spec_print_value(tl_strbuf_view(&text), out);
    tl_strbuf_append_char(out, '\n');
    tl_strbuf_fini(&text);
  }
}
