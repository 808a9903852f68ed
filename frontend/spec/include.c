// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Documents of macros, and `include: file.yaml`: the macros of other files. A file is read once for the kernels that it
// is meant for, however often it is named; what is being read already cannot be included again.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "frontend/spec/spec_internal.h"

enum { MAX_FILES = 256, MAX_NESTING = 32 };

// What was found for an `include`.
typedef struct found_file {
  tl_str id;
  const char *name;  // for messages
  tl_str text;       // of a loader; a file is read later
} found_file;

static tl_str copy(tl_spec_reader *reader, const char *text) {
  size_t len = strlen(text);
  return (tl_str){tl_arena_copy_bytes(reader->arena, text, len), len};
}

static void report(tl_spec_reader *reader, tl_loc loc, tl_str path, const char *reason) {
  tl_diag_report(reader->diags, TL_DIAG_INCLUDE, loc, "cannot include `%.*s`: %s", tl_expr_shown(path), path.data,
                 reason);
}

// The canonical path of a file, which the same file has under every name. Empty when there is none.
static tl_str canonical(tl_spec_reader *reader, const char *path) {
  char *real = realpath(path, NULL);
  if (!real) return (tl_str){0};
  tl_str id = copy(reader, real);
  free(real);
  return id;
}

// `path` beside the file that includes it.
static const char *beside(tl_spec_reader *reader, const tl_source *from, tl_str path) {
  const char *slash = strrchr(from->name, '/');
  bool is_absolute = path.len && path.data[0] == '/';
  int directory = slash && !is_absolute ? (int)(slash - from->name) + 1 : 0;
  const char *dot = tl_str_is(path, "-") && !directory ? "./" : "";  // "-" alone would be standard input
  return tl_arena_printf(reader->arena, "%.*s%s%.*s", directory, from->name, dot, TL_STR_ARG(path));
}

static bool find_file(tl_spec_reader *reader, const tl_source *from, tl_str path, tl_loc loc, found_file *out) {
  if (!from->is_file) {
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_INCLUDE, loc,
                                   "cannot include `%.*s`: this spec comes from memory and lies in no directory",
                                   tl_expr_shown(path), path.data);
    tl_diag_add_hint(reader->diags, diag, "compile it from a file, or set a loader with tl_compiler_set_include");
    return false;
  }
  out->name = beside(reader, from, path);
  out->id = canonical(reader, out->name);
  struct stat info;
  if (!out->id.len || stat(out->name, &info) != 0) {
    tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_INCLUDE, loc, "cannot include `%.*s`: %s",
                                   tl_expr_shown(path), path.data, strerror(errno));
    if (!tl_str_is(path, out->name)) tl_diag_add_hint(reader->diags, diag, "looked for `%s`", out->name);
    return false;
  }
  if (S_ISREG(info.st_mode)) return true;
  report(reader, loc, path, S_ISDIR(info.st_mode) ? "it is a directory" : "it is no regular file");
  return false;
}

static bool find_loaded(tl_spec_reader *reader, const tl_source *from, tl_str path, tl_loc loc, found_file *out) {
  tl_spec_include include = {0};
  const char *zero_ended = tl_arena_copy_bytes(reader->arena, path.data, path.len);
  const char *failure = reader->loader->load(reader->loader->user, zero_ended, from->name, &include);
  if (failure) {
    report(reader, loc, path, failure);
    return false;
  }
  out->name = include.name ? include.name : zero_ended;
  out->id = copy(reader, out->name);
  out->text = include.text;
  return true;
}

// Whether `file` is read already where `into` sees its macros. Reports a file that comes back to itself.
static bool is_known(tl_spec_reader *reader, const found_file *file, tl_str path, tl_loc loc,
                     const tl_macro_list *into) {
  for (size_t i = 0; i < reader->files.len; i++) {
    const tl_spec_file *known = &reader->files.items[i];
    if (!tl_str_equal(known->id, file->id)) continue;
    if (known->is_open) {
      report(reader, loc, path, "it is being read already, so it would include itself");
      return true;
    }
    if (known->into == into || known->into == reader->file_macros) return true;
  }
  return false;
}

static bool read_text(tl_spec_reader *reader, const found_file *file, tl_str path, tl_loc loc, uint32_t *out_source) {
  size_t left = TL_SPEC_MAX_BYTES - reader->include_bytes;
  if (reader->loader) {
    if (file->text.len > left) {
      report(reader, loc, path, "the included files have more than 16 MiB");
      return false;
    }
    *out_source = tl_sources_add(reader->sources, file->name, file->text);
  } else {
    tl_status status = tl_sources_read(reader->sources, file->name, left, out_source);
    if (status) {
      bool is_limit = tl_status_code_of(status) == TL_STATUS_LIMIT;
      report(reader, loc, path, is_limit ? "the included files have more than 16 MiB" : tl_status_message(status));
      tl_status_free(status);
      return false;
    }
  }
  reader->include_bytes += tl_sources_get(reader->sources, *out_source)->text.len;
  tl_sources_set_used_at(reader->sources, *out_source, loc);
  return true;
}

bool tl_spec_is_macro_document(const tl_yaml_node *document) {
  if (document->bad || document->kind != TL_YAML_MAPPING) return false;
  if (tl_yaml_get(document, "kernel") || tl_yaml_get(document, "chain")) return false;
  return tl_yaml_get(document, "macros") || tl_yaml_get(document, "include");
}

// Kernels and chains of an included file are not this spec's.
static void read_documents(tl_spec_reader *reader, uint32_t source, tl_str path, tl_loc loc, tl_macro_list *out) {
  tl_yaml_tree tree;
  size_t errors_before = reader->diags->num_errors;
  bool any = false;
  tl_yaml_parse(reader->arena, reader->diags, reader->sources, source, &tree);
  for (uint32_t i = 0; i < tree.num_documents; i++) {
    if (!tl_spec_is_macro_document(tree.documents[i])) continue;
    any = true;
    tl_spec_read_macro_document(reader, tree.documents[i], true, out);
  }
  if (!any && reader->diags->num_errors == errors_before)
    report(reader, loc, path, "it has no document of macros (one with `macros` and without `kernel`)");
}

static void include_one(tl_spec_reader *reader, const tl_yaml_node *node, tl_macro_list *out) {
  if (!tl_spec_want(reader, node, TL_YAML_SCALAR, TL_STR("include"))) return;
  tl_str path = tl_str_trim(node->text.text);
  const tl_source *from = tl_sources_get(reader->sources, node->loc.source);
  found_file file = {0};
  bool ok = reader->loader ? find_loaded(reader, from, path, node->loc, &file)
                           : find_file(reader, from, path, node->loc, &file);
  if (!ok || is_known(reader, &file, path, node->loc, out)) return;
  if (reader->files.len >= MAX_FILES || reader->num_open >= MAX_NESTING) {
    report(reader, node->loc, path, "more than 256 files, or more than 32 that include one another");
    return;
  }
  uint32_t source;
  if (!read_text(reader, &file, path, node->loc, &source)) return;
  size_t index = reader->files.len;
  tl_vec_push(&reader->files, (tl_spec_file){.id = file.id, .into = out, .is_open = true});
  reader->num_open++;
  read_documents(reader, source, path, node->loc, out);
  reader->num_open--;
  reader->files.items[index].is_open = false;
}

void tl_spec_read_include(tl_spec_reader *reader, const tl_yaml_node *node, tl_macro_list *out) {
  if (node->kind != TL_YAML_SEQUENCE) {
    include_one(reader, node, out);
    return;
  }
  for (uint32_t i = 0; i < node->num_items; i++) include_one(reader, node->items[i], out);
}

void tl_spec_read_macro_document(tl_spec_reader *reader, const tl_yaml_node *document, bool is_included,
                                 tl_macro_list *out) {
  for (uint32_t i = 0; i < document->num_entries; i++) {
    const tl_yaml_entry *entry = &document->entries[i];
    if (entry->key->bad) continue;
    tl_str key = entry->key->text.text;
    if (tl_str_is(key, "macros")) {
      tl_spec_read_macros(reader, entry->value, is_included, out);
    } else if (tl_str_is(key, "include")) {
      tl_spec_read_include(reader, entry->value, out);
    } else if (!tl_str_is(key, "doc")) {
      tl_diag *diag = tl_diag_report(reader->diags, TL_DIAG_DOC_UNKNOWN_KEY, entry->key->loc,
                                     "`%.*s` in a document without `kernel`", tl_expr_shown(key), key.data);
      tl_diag_add_hint(reader->diags, diag, "such a document holds `macros`, `include` and `doc`, for the whole file");
    }
  }
}

void tl_spec_open_file(tl_spec_reader *reader, uint32_t source) {
  const tl_source *file = tl_sources_get(reader->sources, source);
  tl_str id = reader->loader ? copy(reader, file->name) : file->is_file ? canonical(reader, file->name) : (tl_str){0};
  if (id.len) tl_vec_push(&reader->files, (tl_spec_file){.id = id, .is_open = true});
}
