// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics: what the user is told about a spec. Codes, default severities and explanations stand in diag.def.
#ifndef TL_SUPPORT_DIAG_H
#define TL_SUPPORT_DIAG_H

#include <stdbool.h>
#include <stdio.h>

#include "support/source.h"
#include "support/strbuf.h"
#include "support/vec.h"

typedef enum tl_severity { TL_SEVERITY_REMARK, TL_SEVERITY_WARNING, TL_SEVERITY_ERROR } tl_severity;

typedef enum tl_diag_code {
  TL_DIAG_NONE,
#define TL_DIAG(id, code, severity, group, summary, explanation) TL_DIAG_##id,
#include "support/diag.def"
#undef TL_DIAG
  TL_DIAG_COUNT
} tl_diag_code;

// A note (another place) or a hint (what to do; loc may be {0}) below a diagnostic.
typedef struct tl_diag_note {
  bool is_hint;
  tl_loc loc;
  const char *text;  // Owned by the engine.
} tl_diag_note;

typedef struct tl_diag {
  tl_diag_code code;
  tl_severity severity;
  tl_loc loc;
  const char *text;     // Owned by the engine.
  tl_diag_note *notes;  // Owned by the engine.
  size_t num_notes;
} tl_diag;

typedef struct tl_diags {
  tl_arena arena;
  const tl_sources *sources;  // Borrowed.
  TL_VEC(tl_diag *) list;
  size_t num_errors;
  size_t num_warnings;
  size_t max_errors;  // further errors are counted, not kept; default 50
  bool warnings_as_errors;
  bool keep_remarks;             // remarks are dropped unless set
  bool disabled[TL_DIAG_COUNT];  // by -Wno-<group>
  bool as_error[TL_DIAG_COUNT];  // by -Werror=<group>
  bool no_error[TL_DIAG_COUNT];  // by -Wno-error=<group>: stays a warning under -Werror, whatever the order of the two
} tl_diags;

void tl_diags_init(tl_diags *diags, const tl_sources *sources);
// With the settings of `settings` (warning options, limits, sources), without its diagnostics.
void tl_diags_init_like(tl_diags *diags, const tl_diags *settings);
void tl_diags_fini(tl_diags *diags);
// Adds copies of what `from` holds; what `to` has already is not said twice.
void tl_diags_append(tl_diags *to, const tl_diags *from);
// Forgets the remarks.
void tl_diags_drop_remarks(tl_diags *diags);
// Forgets what was reported; the settings stay.
void tl_diags_clear(tl_diags *diags);

// Reports `code` at `loc`. Returns the diagnostic so that notes can be added (a scratch object when it is suppressed;
// never NULL). The same code at the same place with the same text is reported once. Where the place came to be by the
// use of a macro or by an include, notes say so.
tl_diag *tl_diag_report(tl_diags *diags, tl_diag_code code, tl_loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void tl_diag_add_note(tl_diags *diags, tl_diag *diag, tl_loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void tl_diag_add_hint(tl_diags *diags, tl_diag *diag, const char *format, ...) __attribute__((format(printf, 3, 4)));

bool tl_diags_has_errors(const tl_diags *diags);
// Handles one -W option without its "-W": "error", "error=group", "no-error=group", "group", "no-group", "none".
// False when the group is unknown.
bool tl_diags_set_warning_option(tl_diags *diags, tl_str option);
// Appends the names of the groups of warnings, "bounds, fma, …", in the order of the codes.
void tl_diag_list_groups(tl_strbuf *out);

// Prints all, in source order within errors as reported: file:line:col: severity: text [TLxxxx], the line, carets.
void tl_diags_print_text(const tl_diags *diags, tl_strbuf *out, bool color);
// One JSON array of objects {file,line,column,end_line,end_column,severity,code,group,message,notes,hints}.
void tl_diags_print_json(const tl_diags *diags, tl_strbuf *out);
// What is inside of that array: nothing, or objects with commas between them.
void tl_diags_print_json_items(const tl_diags *diags, tl_strbuf *out);
// A SARIF 2.1.0 log: its beginning, runs with commas between them, its end. `failure`: what is no diagnostic and ended
// the run, with a code; NULL: nothing did.
void tl_diags_begin_sarif(tl_strbuf *out);
void tl_diags_print_sarif_run(const tl_diags *diags, const char *tool, const char *failure_code, const char *failure,
                              tl_strbuf *out);
void tl_diags_end_sarif(tl_strbuf *out);

// "TL0101". Static.
const char *tl_diag_code_text(tl_diag_code code);
tl_diag_code tl_diag_code_parse(tl_str text);
const char *tl_diag_summary(tl_diag_code code);
const char *tl_diag_explanation(tl_diag_code code);
const char *tl_diag_group(tl_diag_code code);

#endif
