// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// "Did you mean …": the candidate nearest to a misspelt word.
#ifndef TL_FRONTEND_SUGGEST_H
#define TL_FRONTEND_SUGGEST_H

#include "support/strview.h"

// The candidate nearest to `word`, or NULL when none is near enough to be meant: at most a third of the word's letters
// (at least one) may differ, case counting half. The first of equals wins.
const char *tl_suggest(tl_str word, const char *const *candidates, size_t num_candidates);

// The same over views; SIZE_MAX when none is near enough.
size_t tl_suggest_index(tl_str word, const tl_str *candidates, size_t num_candidates);

// What a name from NumPy, PyTorch or C is called here, as the text of a hint: for a function that the language does not
// have, for the keyword of a reduction, for the key of a tolerance. Static; NULL when nothing is known of it.
const char *tl_suggest_for_function(tl_str name);
const char *tl_suggest_for_keyword(tl_str name);
const char *tl_suggest_for_tolerance(tl_str name);
const char *tl_suggest_for_dtype(tl_str name);

// The same for `name.something`, and for a character (its UTF-8) that no expression has.
const char *tl_suggest_for_attribute(tl_str name);
const char *tl_suggest_for_character(const char *text, size_t len);

#endif
