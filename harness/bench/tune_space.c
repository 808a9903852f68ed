// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <string.h>

#include "harness/bench/tune.h"

static bool is_bound(tl_bindings bound, tl_str name) {
  for (uint32_t i = 0; i < bound.len; i++)
    if (tl_str_equal(bound.items[i].name, name)) return true;
  return false;
}

void tl_tune_space_init(tl_tune_space *space, tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings bound) {
  const tl_tune *tune = &kernel->tune;
  *space = (tl_tune_space){.kernel = kernel, .size = 1};
  space->params = TL_NEW_ARRAY(arena, const tl_tune_param *, tune->num_params + 1);
  for (uint32_t i = 0; i < tune->num_params; i++) {
    if (is_bound(bound, tune->params[i].name)) continue;
    space->params[space->num_params++] = &tune->params[i];
    space->size *= tune->params[i].num_values;
  }
}

// Whether the space sets `name`.
static bool tune_space_has(const tl_tune_space *space, tl_str name) {
  for (uint32_t i = 0; i < space->num_params; i++)
    if (tl_str_equal(space->params[i]->name, name)) return true;
  return false;
}

// The value of each param in configuration `index`: the last param varies fastest.
static void values_of(const tl_tune_space *space, uint64_t index, const tl_expr **out) {
  for (uint32_t i = space->num_params; i-- > 0;) {
    const tl_tune_param *param = space->params[i];
    out[i] = param->values[index % param->num_values];
    index /= param->num_values;
  }
}

tl_bindings tl_tune_space_bindings(const tl_tune_space *space, tl_arena *arena, tl_bindings base, uint64_t index) {
  tl_binding *all = TL_NEW_ARRAY(arena, tl_binding, base.len + space->num_params + 1);
  const tl_expr **values = TL_NEW_ARRAY(arena, const tl_expr *, space->num_params + 1);
  values_of(space, index, values);
  if (base.len) memcpy(all, base.items, base.len * sizeof(tl_binding));
  for (uint32_t i = 0; i < space->num_params; i++)
    all[base.len + i] = (tl_binding){space->params[i]->name, (tl_expr *)values[i], values[i]->loc};
  return (tl_bindings){all, base.len + space->num_params};
}

char *tl_tune_space_text(const tl_tune_space *space, uint64_t index, bool as_flags) {
  tl_arena arena;
  tl_arena_init(&arena);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_bindings values = tl_tune_space_bindings(space, &arena, (tl_bindings){0}, index);
  for (uint32_t i = 0; i < values.len; i++) {
    tl_strbuf value;
    tl_strbuf_init(&value);
    tl_expr_print(values.items[i].value, &value);
    // A shell takes apart what is more than a word.
    bool is_word =
        strspn(tl_strbuf_c(&value), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == value.len;
    const char *quote = as_flags && !is_word ? "'" : "";
    tl_strbuf_appendf(&text, "%s%s%.*s=%s%s%s", i ? " " : "", as_flags ? "-D " : "", TL_STR_ARG(values.items[i].name),
                      quote, tl_strbuf_c(&value), quote);
    tl_strbuf_fini(&value);
  }
  tl_arena_fini(&arena);
  return tl_strbuf_take(&text);
}

static tl_case *filter_cases(const tl_tune_space *space, tl_arena *arena, const tl_case *cases, uint32_t count) {
  tl_case *copies = TL_NEW_ARRAY(arena, tl_case, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    copies[i] = cases[i];
    copies[i].overrides = TL_NEW_ARRAY(arena, tl_named_expr, cases[i].num_overrides + 1);
    copies[i].num_overrides = 0;
    for (uint32_t k = 0; k < cases[i].num_overrides; k++)
      if (!tune_space_has(space, cases[i].overrides[k].name))
        copies[i].overrides[copies[i].num_overrides++] = cases[i].overrides[k];
  }
  return copies;
}

tl_kernel_spec *tl_tune_space_kernel(const tl_tune_space *space, tl_arena *arena) {
  tl_kernel_spec *copy = TL_NEW(arena, tl_kernel_spec);
  *copy = *space->kernel;
  copy->check.cases = filter_cases(space, arena, copy->check.cases, copy->check.num_cases);
  copy->bench.cases = filter_cases(space, arena, copy->bench.cases, copy->bench.num_cases);
  return copy;
}
