// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every combination of candidates is instantiated and scheduled (not lowered), and costed as a whole kernel. The
// cheapest one that all passes take is chosen.
#include "harness/device/choose_params.h"

#include <math.h>

#include "passes/manager/passes.h"
#include "passes/schedule/cost.h"

enum {
  MAX_TRIALS = 1024,  // the first ones, where there are more combinations
  MAX_COMPILED = 32   // cheapest ones that some pass may refuse
};

typedef struct candidates {
  tl_str name;             // of a param, or `threads`
  tl_expr *const *values;  // Borrowed.
  uint32_t len;
} candidates;

typedef struct chooser {
  tl_arena *arena;
  const tl_kernel_spec *kernel;
  const tl_target *target;
  const tl_sources *sources;
  const tl_diags *diags;
  tl_binding *bindings;  // those of `autos` come first
  uint32_t num_bindings;
  candidates *autos;
  uint32_t num_autos;
} chooser;

static const tl_binding *find_binding(tl_bindings bindings, tl_str name) {
  for (uint32_t i = 0; i < bindings.len; i++)
    if (tl_str_equal(bindings.items[i].name, name)) return &bindings.items[i];
  return NULL;
}

static bool is_auto(const tl_param *param, tl_bindings bindings) {
  return param->kind != TL_PARAM_DYNAMIC && tl_param_is_auto(param, find_binding(bindings, param->name));
}

// ---- candidates

static bool counts_stages(const tl_stmt_list *list, tl_str name) {
  for (uint32_t i = 0; i < list->len; i++) {
    const tl_stmt *stmt = list->items[i];
    for (uint32_t o = 0; o < stmt->num_options; o++) {
      const tl_option *option = &stmt->options[o];
      bool is_it = tl_str_is(option->name, "stages") && option->value && option->value->kind == TL_EXPR_NAME;
      if (is_it && tl_str_equal(option->value->text, name)) return true;
    }
    if (counts_stages(&stmt->body, name) || counts_stages(&stmt->else_body, name)) return true;
  }
  return false;
}

static bool has_product(const tl_stmt_list *list) {
  for (uint32_t i = 0; i < list->len; i++) {
    const tl_stmt *stmt = list->items[i];
    if (stmt->kind == TL_STMT_GEMM || has_product(&stmt->body) || has_product(&stmt->else_body)) return true;
  }
  return false;
}

static tl_expr *number(tl_arena *arena, int64_t value, tl_loc loc) {
  tl_expr *expr = TL_NEW(arena, tl_expr);
  *expr = (tl_expr){.kind = TL_EXPR_INT, .int_value = value, .loc = loc, .height = 1};
  return expr;
}

static candidates candidates_of(const chooser *self, const tl_param *param) {
  static const int64_t sizes[] = {1, 2, 4, 8, 16, 32, 64, 128, 256}, stages[] = {2, 3, 4};
  enum { NUM_SMALL = 4, NUM_SIZES = 9, NUM_STAGES = 3 };  // rows of a product are at least 16
  const tl_tune *tune = &self->kernel->tune;
  for (uint32_t i = 0; i < tune->num_params; i++) {
    const tl_tune_param *listed = &tune->params[i];
    if (tl_str_equal(listed->name, param->name)) return (candidates){param->name, listed->values, listed->num_values};
  }
  bool is_stages = counts_stages(&self->kernel->body, param->name);
  uint32_t skipped = has_product(&self->kernel->body) ? NUM_SMALL : 0;
  uint32_t len = is_stages ? NUM_STAGES : NUM_SIZES - skipped;
  tl_expr **values = TL_NEW_ARRAY(self->arena, tl_expr *, len);
  for (uint32_t i = 0; i < len; i++)
    values[i] = number(self->arena, is_stages ? stages[i] : sizes[skipped + i], param->loc);
  return (candidates){param->name, values, len};
}

// How many threads share a row, and how many rows a block has, is one question: where the latter is open and the former
// is the compiler's choice as well, both are tried together. Products have their threads from choose-schedule.
static bool tries_threads(const chooser *self, tl_bindings bindings) {
  const tl_binding *bound = find_binding(bindings, TL_STR("threads"));
  const tl_expr *threads = bound ? bound->value : self->kernel->threads;
  bool is_open = !threads || (threads->kind == TL_EXPR_NAME && tl_str_is(threads->text, "auto"));
  return is_open && self->num_autos > 0 && !has_product(&self->kernel->body);
}

static candidates threads_of(const chooser *self) {
  static const int64_t counts[] = {128, 256, 512};
  enum { NUM_COUNTS = 3 };
  tl_expr **values = TL_NEW_ARRAY(self->arena, tl_expr *, NUM_COUNTS);
  for (uint32_t i = 0; i < NUM_COUNTS; i++) values[i] = number(self->arena, counts[i], self->kernel->loc);
  return (candidates){TL_STR("threads"), values, NUM_COUNTS};
}

// ---- trials

// The combination `trial`, whose last param counts fastest; false past the end.
static bool bind_trial(chooser *self, uint32_t trial) {
  for (uint32_t i = self->num_autos; i-- > 0;) {
    const candidates *of = &self->autos[i];
    self->bindings[i].value = of->values[trial % of->len];
    trial /= of->len;
  }
  return trial == 0;
}

// Of the combination that is bound, by the passes up to `stop_after` (NULL: all); INFINITY when one of them refuses it.
static double cost_of(const chooser *self, const char *stop_after) {
  tl_diags diags;
  tl_diags_init_like(&diags, self->diags);
  double cost = INFINITY;
  tl_bindings bindings = {self->bindings, self->num_bindings};
  tl_module *module = tl_instantiate(self->kernel, bindings, self->target, self->sources, &diags);
  tl_pass_options options = {.stop_after = stop_after, .pass_limit = -1};
  bool is_scheduled = module && !tl_diags_has_errors(&diags) &&
                      tl_passes_run(module, self->target, &options, &diags) == TL_OK && !tl_diags_has_errors(&diags);
  for (tl_op *op = is_scheduled ? module->body->first : NULL; op; op = op->next)
    if (op->code == TL_OP_KERNEL) cost = tl_cost_kernel(self->target, op);
  if (module) tl_module_destroy(module);
  tl_diags_fini(&diags);
  return cost;
}

static void remark(const chooser *self, tl_diags *diags, double cost) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  for (uint32_t i = 0; i < self->num_autos; i++)
    tl_strbuf_appendf(&text, "%s%.*s = %lld", i ? ", " : "", TL_STR_ARG(self->bindings[i].name),
                      (long long)self->bindings[i].value->int_value);
  tl_diag_report(diags, TL_DIAG_REMARK_SCHEDULE, self->kernel->loc, "%s: %.3g clocks by the cost model, the fewest",
                 tl_strbuf_c(&text), cost);
  tl_strbuf_fini(&text);
}

static void collect(chooser *self, tl_bindings bindings) {
  self->autos = TL_NEW_ARRAY(self->arena, candidates, self->kernel->num_params + 2);
  self->bindings = TL_NEW_ARRAY(self->arena, tl_binding, self->kernel->num_params + bindings.len + 2);
  for (uint32_t i = 0; i < self->kernel->num_params; i++) {
    const tl_param *param = &self->kernel->params[i];
    if (!is_auto(param, bindings)) continue;
    self->autos[self->num_autos++] = candidates_of(self, param);
    self->bindings[self->num_bindings++] = (tl_binding){.name = param->name, .loc = param->loc};
  }
  if (tries_threads(self, bindings)) {
    self->autos[self->num_autos++] = threads_of(self);
    self->bindings[self->num_bindings++] = (tl_binding){.name = TL_STR("threads"), .loc = self->kernel->loc};
  }
  for (uint32_t i = 0; i < bindings.len; i++) {
    bool is_chosen = false;
    for (uint32_t a = 0; a < self->num_autos; a++)
      is_chosen |= tl_str_equal(self->autos[a].name, bindings.items[i].name);
    if (!is_chosen) self->bindings[self->num_bindings++] = bindings.items[i];
  }
}

// The first of the cheapest trials; `len`: all are infinite.
static uint32_t cheapest(const double *costs, uint32_t len) {
  uint32_t best = len;
  for (uint32_t i = 0; i < len; i++)
    if (!isinf(costs[i]) && (best == len || costs[i] < costs[best])) best = i;
  return best;
}

tl_bindings tl_choose_params(tl_arena *arena, const tl_kernel_spec *kernel, tl_bindings bindings,
                             const tl_target *target, const tl_sources *sources, tl_diags *diags) {
  chooser self = {.arena = arena, .kernel = kernel, .target = target, .sources = sources, .diags = diags};
  collect(&self, bindings);
  if (self.num_autos == 0) return bindings;
  double *costs = TL_NEW_ARRAY(arena, double, MAX_TRIALS);
  uint32_t num_trials = 0;
  for (; num_trials < MAX_TRIALS && bind_trial(&self, num_trials); num_trials++)
    costs[num_trials] = cost_of(&self, "choose-schedule");
  for (int tried = 0; tried < MAX_COMPILED; tried++) {
    uint32_t best = cheapest(costs, num_trials);
    if (best == num_trials) break;
    bind_trial(&self, best);
    if (isinf(cost_of(&self, NULL))) {
      costs[best] = INFINITY;
      continue;
    }
    remark(&self, diags, costs[best]);
    return (tl_bindings){self.bindings, self.num_bindings};
  }
  return bindings;
}
