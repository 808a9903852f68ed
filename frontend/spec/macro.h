// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The expansion of macros: the statements of a macro are copied for each `use`, with arguments in place of parameters
// and with names of their own where the caller's names would meet them. Shared by the files that do it.
#ifndef TL_FRONTEND_MACRO_H
#define TL_FRONTEND_MACRO_H

#include "frontend/spec/spec_internal.h"
#include "support/intern.h"

enum {
  TL_MACRO_MAX_DEPTH = 64,     // macros that use one another
  TL_MACRO_MAX_NESTING = 100,  // statements inside one another after expansion
  TL_MACRO_MAX_NODES = 250000  // parts of statements and expressions that the uses of one kernel make
};

// A name that a body declares, and what it is called after expansion.
typedef struct tl_macro_name {
  tl_str name, as;
} tl_macro_name;

// One expansion, or the body of the kernel itself.
typedef struct tl_macro_frame {
  const struct tl_macro_frame *outer;  // NULL: the kernel's body
  const tl_macro *macro;               // NULL: the kernel's body
  tl_expr **arguments;                 // one a parameter, as the outer frame means them
  uint32_t source;                     // that places of the macro's text get
  TL_VEC(tl_macro_name) visible;       // declared here, the innermost last
  tl_strmap chosen;                    // name → tl_macro_name, for all scopes of the body
  tl_strmap mentioned;                 // names in the arguments
} tl_macro_frame;

typedef struct tl_macro_expander {
  tl_spec_reader *reader;
  const tl_kernel_spec *kernel;
  tl_strmap document;  // names of the kernel's document: what a macro sees beside its own
  tl_strmap words;     // every name in the kernel and in its macros
  uint32_t num_nodes;
  uint32_t nesting;
  bool full;  // a limit was reported
} tl_macro_expander;

// ---- macro_names.c
// Collects `document` and `words`.
void tl_macro_collect_names(tl_macro_expander *x, const tl_spec *spec);
// Adds every name that the expression mentions.
void tl_macro_mention(tl_strmap *names, const tl_expr *expr);
// Declares a name in the frame until its scope ends; what it is called from now on.
tl_str tl_macro_declare(tl_macro_expander *x, tl_macro_frame *frame, tl_str name, tl_loc loc);
// What a name of the frame's text stands for: an argument (then `*out_argument`), or the name that is returned.
tl_str tl_macro_find_name(tl_macro_expander *x, const tl_macro_frame *frame, tl_str name, tl_loc loc,
                          tl_expr **out_argument);
// Whether `name` stands for something already where the frame is.
bool tl_macro_is_visible(const tl_macro_expander *x, const tl_macro_frame *frame, tl_str name);

// ---- macro_expr.c
// A place of the frame's text.
tl_loc tl_macro_loc(const tl_macro_frame *frame, tl_loc loc);
// A copy with arguments for parameters. `frame` NULL: a copy as it stands. NULL for NULL.
tl_expr *tl_macro_copy_expr(tl_macro_expander *x, tl_macro_frame *frame, const tl_expr *expr);
tl_expr **tl_macro_copy_exprs(tl_macro_expander *x, tl_macro_frame *frame, tl_expr *const *items, uint32_t len);
// Counts a part; false (reported) when there are too many.
bool tl_macro_count(tl_macro_expander *x, const tl_macro_frame *frame, tl_loc loc);

#endif
