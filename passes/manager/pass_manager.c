// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs passes in order, with the prints, checks and timings that were asked for.
#include <string.h>
#include <time.h>

#include "ir/text/text.h"
#include "passes/manager/passes.h"
#include "support/strbuf.h"

static const tl_pass_info pass_table[] = {
#define TL_PASS(id, name, level_after, doc) {name, doc, tl_pass_##id, level_after},
#include "passes/manager/passes.def"
#undef TL_PASS
};
enum { NUM_PASSES = sizeof pass_table / sizeof pass_table[0] };

const tl_pass_info *tl_pass_at(int index) {
  return index >= 0 && index < NUM_PASSES ? &pass_table[index] : NULL;
}

const tl_pass_info *tl_pass_find(tl_str name) {
  for (int i = 0; i < NUM_PASSES; i++) {
    if (tl_str_is(name, pass_table[i].name)) return &pass_table[i];
  }
  return NULL;
}

// One run of the pipeline.
typedef struct run_state {
  tl_module *module;
  const tl_target *target;
  const tl_pass_options *options;
  tl_diags *diags;
  tl_strbuf before;  // text of the module before the pass, kept for --print-changed and for internal errors
  int num_run;
  double seconds[NUM_PASSES];
} run_state;

// Takes the next name off a comma list; false at its end.
static bool next_name(tl_str *rest, tl_str *out_name) {
  while (rest->len > 0) {
    size_t comma = tl_str_find(*rest, ',');
    size_t len = comma == SIZE_MAX ? rest->len : comma;
    *out_name = tl_str_trim(tl_str_sub(*rest, 0, len));
    *rest = comma == SIZE_MAX ? (tl_str){0} : tl_str_sub(*rest, comma + 1, rest->len - comma - 1);
    if (out_name->len > 0) return true;
  }
  return false;
}

static bool list_names(const char *list, const char *pass) {
  if (!list) return false;
  tl_str rest = tl_str_from(list), name;
  while (next_name(&rest, &name)) {
    if (tl_str_is(name, "all") || tl_str_is(name, pass)) return true;
  }
  return false;
}

static tl_status validate_list(const char *flag, const char *list, bool allow_all) {
  if (!list) return TL_OK;
  tl_str rest = tl_str_from(list), name;
  while (next_name(&rest, &name)) {
    if (tl_pass_find(name) || (allow_all && tl_str_is(name, "all"))) continue;
    const char *nearest = NULL;
    size_t best = 4;
    for (int i = 0; i < NUM_PASSES; i++) {
      size_t distance = tl_str_distance(name, tl_str_from(pass_table[i].name));
      if (distance < best) {
        best = distance;
        nearest = pass_table[i].name;
      }
    }
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s: there is no pass '%.*s'%s%s%s", flag, TL_STR_ARG(name),
                          nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
  }
  return TL_OK;
}

static tl_status validate_options(const tl_pass_options *options) {
  TL_TRY(validate_list("--passes", options->passes, false));
  TL_TRY(validate_list("--print-before", options->print_before, true));
  TL_TRY(validate_list("--print-after", options->print_after, true));
  return validate_list("--stop-after", options->stop_after, false);
}

static void print_module(const run_state *state, const char *when, const char *pass) {
  tl_strbuf *log = state->options->log;
  if (!log) return;
  tl_strbuf_appendf(log, "// IR %s %s\n", when, pass);
  tl_module_print(state->module, log);
}

// Leaves in the log what reproduces a bug of ours: the module before the pass and the command.
static void log_reproducer(const run_state *state, const char *pass, const tl_verify_result *findings) {
  tl_strbuf *log = state->options->log;
  if (!log) return;
  tl_strbuf_appendf(log,
                    "// internal error in pass %s; the IR before it, reproduce with: "
                    "tl-opt --passes=%s --target=%s\n",
                    pass, pass, state->target->name);
  tl_strbuf_append(log, tl_strbuf_view(&state->before));
  tl_strbuf_appendf(log, "// IR after %s\n", pass);
  if (findings) {
    tl_module_print_with_errors(state->module, findings, log);
  } else {
    tl_module_print(state->module, log);
  }
}

static tl_status verify_module(const run_state *state, const char *pass) {
  tl_verify_result result;
  tl_status status = TL_OK;
  if (!tl_module_verify(state->module, &result)) {
    const tl_verify_error *first = result.errors.len > 0 ? &result.errors.items[0] : NULL;
    status = tl_status_make(TL_STATUS_INTERNAL, "pass %s left invalid IR: %s (%s)", pass,
                            first ? first->text : "unknown finding",
                            first && first->op ? tl_op_info_of(first->op->code)->name : "module");
    log_reproducer(state, pass, &result);
  }
  tl_verify_result_fini(&result);
  return status;
}

static double now_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Modules of which level a pass takes: of the one that the pass before it in the pipeline leaves; what only looks at
// single accesses, or folds, takes both.
static tl_status validate_level(const tl_module *module, const tl_pass_info *pass) {
  static const char *const names[] = {"tile", "scheduled"};
  int level = pass == pass_table ? 0 : pass[-1].level_after;
  if (module->level == level || pass->run == tl_pass_check_bounds || pass->run == tl_pass_canonicalize) return TL_OK;
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "pass %s takes a %s module, not a %s one", pass->name, names[level],
                        names[module->level]);
}

static tl_status call_pass(run_state *state, const tl_pass_info *pass) {
  TL_TRY(validate_level(state->module, pass));
  tl_pass_context context = {.module = state->module, .target = state->target, .diags = state->diags};
  context.explore_limit = state->options->explore_limit;
  context.is_unproven = state->options->is_unproven;
  context.no_engine = state->options->no_engine;
  tl_target plain = *state->target;
  plain.features &= ~(unsigned)TL_FEATURE_TMA;
  if (context.no_engine) context.target = &plain;
  tl_arena_init(&context.scratch);
  double start = now_seconds();
  tl_status status = pass->run(&context);
  state->seconds[pass - pass_table] += now_seconds() - start;
  tl_arena_fini(&context.scratch);
  if (state->options->is_hand_written && tl_status_code_of(status) == TL_STATUS_INTERNAL) {
    const tl_op *kernel = state->module->body->first;
    tl_diag_report(state->diags, TL_DIAG_IR_RULE, kernel ? kernel->loc : (tl_loc){0}, "%s", tl_status_message(status));
    tl_status_free(status);
    return TL_OK;
  }
  if (status) {
    log_reproducer(state, pass->name, NULL);
    return tl_status_annotate(status, "pass %s", pass->name);
  }
  if (state->module->level < pass->level_after) state->module->level = pass->level_after;
  return TL_OK;
}

static tl_status run_pass(run_state *state, const tl_pass_info *pass) {
  const tl_pass_options *options = state->options;
  if (list_names(options->print_before, pass->name)) print_module(state, "before", pass->name);
  if (options->log) {
    tl_strbuf_clear(&state->before);
    tl_module_print(state->module, &state->before);
  }
  TL_TRY(call_pass(state, pass));
  state->num_run++;
  if (list_names(options->print_after, pass->name)) {
    print_module(state, "after", pass->name);
  } else if (options->print_changed && options->log) {
    tl_strbuf after;
    tl_strbuf_init(&after);
    tl_module_print(state->module, &after);
    if (!tl_str_equal(tl_strbuf_view(&after), tl_strbuf_view(&state->before))) print_module(state, "after", pass->name);
    tl_strbuf_fini(&after);
  }
  if (tl_diags_has_errors(state->diags)) {
    return tl_status_make(TL_STATUS_DIAGNOSTICS, "pass %s reported errors", pass->name);
  }
  return options->verify_each ? verify_module(state, pass->name) : TL_OK;
}

static bool may_go_on(const run_state *state, const tl_pass_info *last) {
  const tl_pass_options *options = state->options;
  if (options->pass_limit >= 0 && state->num_run >= options->pass_limit) return false;
  return !(last && options->stop_after && tl_str_is(tl_str_from(options->stop_after), last->name));
}

static tl_status run_all(run_state *state, const tl_pass_info **out_last) {
  const tl_pass_info *last = NULL;
  tl_status status = TL_OK;
  if (state->options->passes) {
    tl_str rest = tl_str_from(state->options->passes), name;
    while (!status && may_go_on(state, last) && next_name(&rest, &name)) {
      last = tl_pass_find(name);
      status = run_pass(state, last);
    }
  } else {
    for (int i = 0; i < NUM_PASSES && !status && may_go_on(state, last); i++) {
      last = &pass_table[i];
      status = run_pass(state, last);
    }
  }
  *out_last = last;
  return status;
}

static void log_timings(const run_state *state) {
  double total = 0;
  for (int i = 0; i < NUM_PASSES; i++) total += state->seconds[i];
  tl_strbuf_appendf(state->options->log, "// time per pass, ms\n");
  for (int i = 0; i < NUM_PASSES; i++) {
    tl_strbuf_appendf(state->options->log, "// %8.3f %s\n", state->seconds[i] * 1e3, pass_table[i].name);
  }
  tl_strbuf_appendf(state->options->log, "// %8.3f total\n", total * 1e3);
}

tl_status tl_passes_run(tl_module *module, const tl_target *target, const tl_pass_options *options, tl_diags *diags) {
  static const tl_pass_options defaults = {.pass_limit = -1};
  run_state state = {.module = module, .target = target, .options = options ? options : &defaults, .diags = diags};
  TL_TRY(validate_options(state.options));
  module->target = target;
  tl_strbuf_init(&state.before);
  const tl_pass_info *last = NULL;
  tl_status status = run_all(&state, &last);
  if (!status && !(state.options->verify_each && last)) status = verify_module(&state, last ? last->name : "(none)");
  if (state.options->time_passes && state.options->log) log_timings(&state);
  tl_strbuf_fini(&state.before);
  return status;
}
