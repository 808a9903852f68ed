// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// YAML documents → the spec model. The sections of a document are read in spec_section.c, chains in spec_chain.c.
#include "frontend/spec/spec.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/spec/spec_internal.h"

static bool names_argument(const tl_kernel_spec *kernel, const tl_expr *expr) {
  if (expr->kind == TL_EXPR_INDEX) return true;
  for (uint32_t i = 0; expr->kind == TL_EXPR_NAME && i < kernel->num_args; i++)
    if (tl_str_equal(kernel->args[i].name, expr->text)) return true;
  for (uint32_t i = 0; i < expr->num_operands; i++)
    if (names_argument(kernel, expr->operands[i])) return true;
  return false;
}

// What is assumed of params and lets alone is required: every launcher looks at it.
static void require_assumptions(tl_spec_reader *reader, tl_kernel_spec *kernel) {
  uint32_t count = kernel->num_assumptions, left = 0;
  if (!count) return;
  tl_expr **all = TL_NEW_ARRAY(reader->arena, tl_expr *, kernel->num_requires + count + 1);
  if (kernel->num_requires) memcpy(all, kernel->requires_, kernel->num_requires * sizeof *all);
  for (uint32_t i = 0; i < count; i++) {
    tl_expr *condition = kernel->assumptions[i];
    if (names_argument(kernel, condition))
      kernel->assumptions[left++] = condition;
    else
      all[kernel->num_requires++] = condition;
  }
  kernel->requires_ = all;
  kernel->num_assumptions = left;
}

// A document that is neither a kernel nor a chain, and holds no macros.
static void refuse_document(tl_spec_reader *reader, const tl_yaml_node *document) {
  tl_diag *diag =
      tl_diag_report(reader->diags, TL_DIAG_DOC_MISSING_KEY, document->loc, "the document has no `kernel` key");
  for (uint32_t k = 0; k < document->num_entries; k++) {
    tl_str key = document->entries[k].key->text.text;
    const char *near = tl_schema_suggest_key(TL_SCHEMA_KERNEL, key);
    if (near && tl_str_is(tl_str_from(near), "kernel"))
      tl_diag_add_hint(reader->diags, diag, "did you mean `kernel` instead of `%.*s`?", TL_STR_ARG(key));
  }
}

static bool read_document(tl_spec_reader *reader, const tl_yaml_node *document, tl_kernel_spec *kernel) {
  if (document->bad) return false;
  if (document->kind != TL_YAML_MAPPING) {
    tl_diag_report(reader->diags, TL_DIAG_DOC_STRUCTURE, document->loc,
                   "a spec is a mapping that starts with `kernel: name`, not %s", tl_spec_kind_text(document->kind));
    return false;
  }
  if (tl_yaml_get(document, "chain") && !tl_yaml_get(document, "kernel"))
    return tl_spec_read_chain(reader, document, kernel);
  if (!tl_yaml_get(document, "kernel")) {
    refuse_document(reader, document);
    return false;
  }
  kernel->raster_order = TL_STR("row");
  size_t errors_before = reader->diags->num_errors;
  for (uint32_t i = 0; i < document->num_entries; i++) {
    const tl_yaml_entry *entry = &document->entries[i];
    if (tl_spec_validate_key(reader, TL_SCHEMA_KERNEL, entry->key, "a kernel"))
      tl_spec_read_section(reader, entry, kernel);
  }
  require_assumptions(reader, kernel);
  if (reader->diags->num_errors == errors_before) tl_spec_validate_names(reader, kernel);
  if (reader->diags->num_errors == errors_before) tl_spec_validate_tune(reader, kernel);
  return kernel->name.len > 0;
}

static bool is_duplicate(tl_spec_reader *reader, const tl_spec *spec, const tl_kernel_spec *kernel) {
  const tl_kernel_spec *first = tl_spec_find(spec, kernel->name);
  if (!first) return false;
  tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_DUPLICATE_KERNEL, kernel->loc,
                                 "a second kernel of the name `%.*s`", TL_STR_ARG(kernel->name));
  tl_diag_add_note(reader->diags, diag, first->loc, "the first stands here");
  return true;
}

static void read_documents(tl_spec_reader *reader, const tl_yaml_tree *tree, tl_spec *spec) {
  // Macros of the file first: kernels may use those that stand behind them, and must not define their names again.
  for (uint32_t i = 0; i < tree->num_documents; i++)
    if (tl_spec_is_macro_document(tree->documents[i]))
      tl_spec_read_macro_document(reader, tree->documents[i], false, &spec->macros);
  for (uint32_t i = 0; i < tree->num_documents; i++) {
    tl_kernel_spec *kernel = &spec->kernels[spec->num_kernels];
    bool skip = tl_spec_is_macro_document(tree->documents[i]) || tl_spec_is_empty(tree->documents[i]);
    if (skip) continue;  // `---` at the end makes an empty one
    if (read_document(reader, tree->documents[i], kernel) && !is_duplicate(reader, spec, kernel))
      spec->num_kernels++;
    else
      *kernel = (tl_kernel_spec){0};
  }
}

tl_spec *tl_spec_parse_with(tl_sources *sources, uint32_t source, const tl_spec_loader *loader, tl_diags *diags) {
  tl_spec *spec = tl_xcalloc(1, sizeof(*spec));
  tl_arena_init(&spec->arena);
  tl_spec_reader reader = {.arena = &spec->arena,
                           .diags = diags,
                           .sources = sources,
                           .loader = loader,
                           .file_macros = &spec->macros,
                           .errors_before = diags->num_errors};
  tl_yaml_tree tree;
  tl_yaml_parse(&spec->arena, diags, sources, source, &tree);
  tl_spec_open_file(&reader, source);
  spec->kernels = TL_NEW_ARRAY(&spec->arena, tl_kernel_spec, tree.num_documents + 1);
  read_documents(&reader, &tree, spec);
  tl_spec_resolve_chains(&reader, spec);
  tl_macros_resolve(&reader, spec);
  if (diags->num_errors == reader.errors_before) tl_macros_expand(&reader, spec);
  tl_vec_fini(&reader.files);
  if (spec->num_kernels) return spec;
  if (diags->num_errors == reader.errors_before) {
    tl_diag *diag = tl_diag_report(diags, TL_DIAG_NO_KERNEL, (tl_loc){source, 0, 0}, "the file holds no kernel");
    if (spec->macros.len) tl_diag_add_hint(diags, diag, "it holds macros: `include` it in a file with kernels");
  }
  tl_spec_destroy(spec);
  return NULL;
}

tl_spec *tl_spec_parse(tl_sources *sources, uint32_t source, tl_diags *diags) {
  return tl_spec_parse_with(sources, source, NULL, diags);
}

tl_status tl_spec_read(tl_sources *sources, const char *path, tl_diags *diags, uint32_t *out_source) {
  tl_status status = tl_sources_read(sources, path, TL_SPEC_MAX_BYTES, out_source);
  if (tl_status_code_of(status) != TL_STATUS_LIMIT) return status;
  tl_diag_report(diags, TL_DIAG_YAML_LIMIT, (tl_loc){0}, "%s", tl_status_message(status));
  tl_status_free(status);
  return tl_status_make(TL_STATUS_DIAGNOSTICS, "the spec has errors");
}

void tl_spec_destroy(tl_spec *spec) {
  if (!spec) return;
  tl_arena arena = spec->arena;
  tl_arena_fini(&arena);
  free(spec);
}
