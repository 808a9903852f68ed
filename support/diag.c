// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct diag_info {
  const char *code;
  tl_severity severity;
  const char *group;
  const char *summary;
  const char *explanation;
} diag_info;

#define ERROR TL_SEVERITY_ERROR
#define WARNING TL_SEVERITY_WARNING
#define REMARK TL_SEVERITY_REMARK
static const diag_info infos[TL_DIAG_COUNT] = {
    [TL_DIAG_NONE] = {"TL0000", TL_SEVERITY_ERROR, "", "", ""},
#define TL_DIAG(id, code, severity, group, summary, explanation) \
  [TL_DIAG_##id] = {code, severity, group, summary, explanation},
#include "support/diag.def"
#undef TL_DIAG
};
#undef ERROR
#undef WARNING
#undef REMARK

void tl_diags_init(tl_diags *diags, const tl_sources *sources) {
  memset(diags, 0, sizeof *diags);
  tl_arena_init(&diags->arena);
  diags->sources = sources;
  diags->max_errors = 50;
}

void tl_diags_init_like(tl_diags *diags, const tl_diags *settings) {
  *diags = *settings;
  diags->list.items = NULL;
  diags->list.len = diags->list.capacity = 0;
  diags->num_errors = diags->num_warnings = 0;
  tl_arena_init(&diags->arena);
}

void tl_diags_fini(tl_diags *diags) {
  tl_vec_fini(&diags->list);
  tl_arena_fini(&diags->arena);
}

void tl_diags_clear(tl_diags *diags) {
  tl_vec_clear(&diags->list);
  diags->num_errors = diags->num_warnings = 0;
  tl_arena_fini(&diags->arena);
  tl_arena_init(&diags->arena);
}

static char *vprintf_to_arena(tl_arena *arena, const char *format, va_list args) {
  va_list measure;
  va_copy(measure, args);
  int len = vsnprintf(NULL, 0, format, measure);
  va_end(measure);
  char *text = tl_arena_alloc(arena, (size_t)len + 1, 1);
  vsnprintf(text, (size_t)len + 1, format, args);
  return text;
}

static bool same_loc(tl_loc a, tl_loc b) {
  return a.source == b.source && a.offset == b.offset && a.length == b.length;
}

static bool already_reported(const tl_diags *diags, const tl_diag *diag) {
  for (size_t i = 0; i < diags->list.len; i++) {
    const tl_diag *other = diags->list.items[i];
    if (other->code == diag->code && same_loc(other->loc, diag->loc) && strcmp(other->text, diag->text) == 0) {
      return true;
    }
  }
  return false;
}

static bool is_suppressed(const tl_diags *diags, const tl_diag *diag) {
  switch (diag->severity) {
    case TL_SEVERITY_REMARK:
      return !diags->keep_remarks;
    case TL_SEVERITY_WARNING:
      return diags->disabled[diag->code];
    case TL_SEVERITY_ERROR:
      return false;
  }
  return false;
}

static void add_note(tl_diags *diags, tl_diag *diag, tl_diag_note note) {
  tl_diag_note *notes = TL_NEW_ARRAY(&diags->arena, tl_diag_note, diag->num_notes + 1);
  if (diag->num_notes) memcpy(notes, diag->notes, diag->num_notes * sizeof *notes);
  notes[diag->num_notes++] = note;
  diag->notes = notes;
}

// How the place of `diag` came to be, from the innermost use outwards.
static void add_origins(tl_diags *diags, tl_diag *diag) {
  const tl_source *source = diags->sources ? tl_sources_get(diags->sources, diag->loc.source) : NULL;
  while (source && source->used_at.source) {
    if (source->macro) {
      tl_diag_add_note(diags, diag, source->used_at, "`%s` is expanded from here", source->macro);
    } else {
      tl_diag_add_note(diags, diag, source->used_at, "included from here");
    }
    source = tl_sources_get(diags->sources, source->used_at.source);
  }
}

tl_diag *tl_diag_report(tl_diags *diags, tl_diag_code code, tl_loc loc, const char *format, ...) {
  tl_diag *diag = TL_NEW(&diags->arena, tl_diag);
  diag->code = code;
  diag->severity = infos[code].severity;
  diag->loc = loc;
  va_list args;
  va_start(args, format);
  diag->text = vprintf_to_arena(&diags->arena, format, args);
  va_end(args);
  if (is_suppressed(diags, diag) || already_reported(diags, diag)) return diag;
  if (diag->severity == TL_SEVERITY_WARNING &&
      (diags->as_error[code] || (diags->warnings_as_errors && !diags->no_error[code]))) {
    diag->severity = TL_SEVERITY_ERROR;
  }
  if (diag->severity == TL_SEVERITY_ERROR && diags->num_errors++ >= diags->max_errors) return diag;
  diags->num_warnings += diag->severity == TL_SEVERITY_WARNING;
  tl_vec_push(&diags->list, diag);
  add_origins(diags, diag);
  return diag;
}

void tl_diags_append(tl_diags *to, const tl_diags *from) {
  for (size_t i = 0; i < from->list.len; i++) {
    const tl_diag *diag = from->list.items[i];
    if (already_reported(to, diag)) continue;
    if (diag->severity == TL_SEVERITY_ERROR && to->num_errors++ >= to->max_errors) continue;
    to->num_warnings += diag->severity == TL_SEVERITY_WARNING;
    tl_diag *copy = TL_NEW(&to->arena, tl_diag);
    *copy = *diag;
    copy->text = tl_arena_copy_bytes(&to->arena, diag->text, strlen(diag->text));
    copy->notes = TL_NEW_ARRAY(&to->arena, tl_diag_note, diag->num_notes + 1);
    for (size_t n = 0; n < diag->num_notes; n++) {
      copy->notes[n] = diag->notes[n];
      copy->notes[n].text = tl_arena_copy_bytes(&to->arena, diag->notes[n].text, strlen(diag->notes[n].text));
    }
    tl_vec_push(&to->list, copy);
  }
}

void tl_diag_add_note(tl_diags *diags, tl_diag *diag, tl_loc loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add_note(diags, diag, (tl_diag_note){false, loc, vprintf_to_arena(&diags->arena, format, args)});
  va_end(args);
}

void tl_diag_add_hint(tl_diags *diags, tl_diag *diag, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add_note(diags, diag, (tl_diag_note){true, (tl_loc){0}, vprintf_to_arena(&diags->arena, format, args)});
  va_end(args);
}

void tl_diags_drop_remarks(tl_diags *diags) {
  size_t kept = 0;
  for (size_t i = 0; i < diags->list.len; i++) {
    tl_diag *diag = diags->list.items[i];
    if (diag->severity != TL_SEVERITY_REMARK) diags->list.items[kept++] = diag;
  }
  diags->list.len = kept;
}

bool tl_diags_has_errors(const tl_diags *diags) {
  return diags->num_errors > 0;
}

bool tl_diags_set_warning_option(tl_diags *diags, tl_str option) {
  if (tl_str_is(option, "error")) {
    diags->warnings_as_errors = true;
    return true;
  }
  bool as_error = tl_str_starts_with(option, "error=");
  bool no_error = tl_str_starts_with(option, "no-error=");
  bool disable = !no_error && tl_str_starts_with(option, "no-");
  bool all = tl_str_is(option, "none");
  size_t skip = as_error ? 6 : no_error ? 9 : disable ? 3 : 0;
  tl_str group = tl_str_sub(option, skip, SIZE_MAX);
  bool known = false;
  for (int code = 1; code < TL_DIAG_COUNT; code++) {
    if (infos[code].severity != TL_SEVERITY_WARNING) continue;
    if (!all && !tl_str_is(group, infos[code].group)) continue;
    known = true;
    if (as_error || no_error) {
      diags->as_error[code] = as_error;
      diags->no_error[code] = no_error;
    }
    if (!no_error) diags->disabled[code] = disable || all;
  }
  return known || all;
}

void tl_diag_list_groups(tl_strbuf *out) {
  for (int code = 1; code < TL_DIAG_COUNT; code++) {
    bool is_new = infos[code].severity == TL_SEVERITY_WARNING;
    for (int before = 1; before < code && is_new; before++)
      is_new = infos[before].severity != TL_SEVERITY_WARNING || strcmp(infos[before].group, infos[code].group) != 0;
    if (is_new) tl_strbuf_appendf(out, "%s%s", out->len ? ", " : "", infos[code].group);
  }
}

const char *tl_diag_code_text(tl_diag_code code) {
  return infos[code].code;
}
const char *tl_diag_summary(tl_diag_code code) {
  return infos[code].summary;
}
const char *tl_diag_explanation(tl_diag_code code) {
  return infos[code].explanation;
}
const char *tl_diag_group(tl_diag_code code) {
  return infos[code].group;
}

tl_diag_code tl_diag_code_parse(tl_str text) {
  for (int code = 1; code < TL_DIAG_COUNT; code++) {
    if (tl_str_is(text, infos[code].code)) return (tl_diag_code)code;
  }
  return TL_DIAG_NONE;
}
