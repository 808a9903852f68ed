// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as an expression and as each clause: the parsers survive, report what they refuse, and what they accept
// prints to a text that parses to an equal tree.
#include <stdio.h>
#include <stdlib.h>

#include "frontend/expr/expr.h"
#include "fuzz.h"
#include "support/diag.h"

typedef struct input {
  tl_arena arena;
  tl_sources sources;
  tl_diags diags;
  tl_located_text text;
} input;

static void input_init(input *in, tl_str text) {
  tl_arena_init(&in->arena);
  tl_sources_init(&in->sources);
  tl_diags_init(&in->diags, &in->sources);
  uint32_t source = tl_sources_add(&in->sources, "fuzz", text);
  uint32_t *offsets = TL_NEW_ARRAY(&in->arena, uint32_t, text.len + 1);
  for (size_t i = 0; i <= text.len; i++) offsets[i] = (uint32_t)i;
  tl_loc loc = {source, 0, (uint32_t)text.len};
  in->text = (tl_located_text){tl_sources_get(&in->sources, source)->text, {source, offsets}, loc};
}

static void input_fini(input *in) {
  tl_diags_fini(&in->diags);
  tl_sources_fini(&in->sources);
  tl_arena_fini(&in->arena);
}

static void check_round_trip(const tl_expr *expr) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_expr_print(expr, &text);
  input again;
  input_init(&again, tl_strbuf_view(&text));
  tl_expr *parsed = tl_expr_parse(&again.arena, &again.diags, again.text);
  if (!parsed || !tl_expr_equal(expr, parsed)) {
    fprintf(stderr, "does not parse back: %s\n", tl_strbuf_c(&text));
    abort();
  }
  input_fini(&again);
  tl_strbuf_fini(&text);
}

// A parser must report exactly when it refuses.
static void check_reported(const input *in, bool accepted, size_t errors_before) {
  if (accepted == (in->diags.num_errors > errors_before)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in;
  input_init(&in, (tl_str){(const char *)data, size});
  in.diags.max_errors = 100;
  tl_expr *expr = tl_expr_parse(&in.arena, &in.diags, in.text);
  check_reported(&in, expr != NULL, 0);
  if (expr) check_round_trip(expr);
  input_fini(&in);

  input_init(&in, (tl_str){(const char *)data, size});
  tl_assign assign;
  bool assigned = tl_expr_parse_assign(&in.arena, &in.diags, in.text, &assign);
  check_reported(&in, assigned, 0);
  if (assigned) check_round_trip(assign.value);
  input_fini(&in);

  input_init(&in, (tl_str){(const char *)data, size});
  tl_expr *from, *to;
  check_reported(&in, tl_expr_parse_arrow(&in.arena, &in.diags, in.text, &from, &to), 0);
  input_fini(&in);

  input_init(&in, (tl_str){(const char *)data, size});
  tl_in_clause clause;
  check_reported(&in, tl_expr_parse_in(&in.arena, &in.diags, in.text, &clause), 0);
  input_fini(&in);
  return 0;
}
