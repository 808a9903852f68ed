// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/bench/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/sema/sema_fold.h"
#include "harness/data/random.h"
#include "harness/device/device_internal.h"

enum { NUM_FINALISTS = 3, SCREENING_BURSTS = 3 };
static const uint64_t as_written = UINT64_MAX;

// What the check of a configuration has shown: it does not depend on the bench case.
typedef struct checked_configuration {
  bool is_done, is_checked;
  tl_tune_outcome outcome;
  char *why;  // Owned.
} checked_configuration;

typedef struct tuner {
  const tl_kernel_spec *kernel;  // its cases do not set what is tuned
  const tl_tune_options *options;
  const tl_sources *sources;
  tl_diags *diags;
  tl_tune_report *report;
  tl_compiled *compiled;
  tl_arena arena;
  tl_tune_space space;
  checked_configuration *checked;  // Owned. One a configuration, and one for the spec as written
  tl_tune_result *result;
  uint32_t number;          // of the bench case
  const tl_case *one_case;  // NULL: the params as they stand
} tuner;

const char *tl_tune_outcome_text(tl_tune_outcome outcome) {
  switch (outcome) {
    case TL_TUNE_TIMED:
      return "timed";
    case TL_TUNE_RIGHT:
      return "right";
    case TL_TUNE_COMPILED:
      return "compiled";
    case TL_TUNE_REQUIRES:
      return "requires";
    case TL_TUNE_LIMIT:
      return "limit";
    case TL_TUNE_REFUSED:
      return "refused";
    case TL_TUNE_WRONG:
      return "wrong";
    case TL_TUNE_FAILED:
      return "failed";
    case TL_TUNE_OUTCOME_COUNT:
      break;
  }
  return "";
}

tl_status tl_tune_report_init(tl_tune_report *report, tl_run_device *device) {
  *report = (tl_tune_report){.is_timed = tl_run_device_is_gpu(device)};
  report->device = strdup(tl_run_device_describe(device));
  if (!report->is_timed) return TL_OK;
  tl_bench_report bench;
  TL_TRY(tl_bench_report_init(&bench, device));
  report->machine = bench.machine;
  tl_bench_report_fini(&bench);
  return TL_OK;
}

static void fini_row(tl_tune_row *row) {
  free(row->configuration);
  free(row->flags);
  free(row->why);
  tl_bench_result_fini(&row->result);
}

void tl_tune_report_fini(tl_tune_report *report) {
  for (size_t i = 0; i < report->results.len; i++) {
    tl_tune_result *result = report->results.items[i];
    for (size_t k = 0; k < result->rows.len; k++) fini_row(&result->rows.items[k]);
    tl_vec_fini(&result->rows);
    free(result->kernel);
    free(result->bindings);
    free(result);
  }
  tl_vec_fini(&report->results);
  free(report->device);
  *report = (tl_tune_report){0};
}

// ---- one attempt at a configuration, with diagnostics of its own

static void set_why(tl_tune_row *row, const char *text) {
  free(row->why);
  row->why = strdup(text);
}

static void refuse(const tl_diags *diags, tl_tune_row *row) {
  const tl_diag *first = NULL;
  for (size_t i = 0; i < diags->list.len && !first; i++)
    if (diags->list.items[i]->severity == TL_SEVERITY_ERROR) first = diags->list.items[i];
  tl_diag_code code = first ? first->code : TL_DIAG_NONE;
  bool is_limit = code == TL_DIAG_SHARED_LIMIT || code == TL_DIAG_REGISTER_LIMIT;
  row->outcome = code == TL_DIAG_REQUIREMENT ? TL_TUNE_REQUIRES : is_limit ? TL_TUNE_LIMIT : TL_TUNE_REFUSED;
  if (!first) return;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_appendf(&text, "%s [%s]", first->text, tl_diag_code_text(code));
  set_why(row, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
}

// Turns what an attempt came to into the row's outcome. Returns what ends the search: bugs, and a lost device.
static tl_status conclude(const tuner *t, tl_status status, const tl_diags *diags, tl_tune_row *row) {
  bool is_lost = status && tl_run_device_is_lost(t->options->device);
  tl_status_code code = tl_status_code_of(status);
  if (is_lost) return tl_status_annotate(status, "%s", row->configuration);
  switch (code) {
    case TL_STATUS_OK:
      return TL_OK;
    case TL_STATUS_DIAGNOSTICS:
      refuse(diags, row);
      break;
    case TL_STATUS_CHECK_FAILED:
      row->outcome = TL_TUNE_WRONG;
      break;
    case TL_STATUS_DRIVER:
    case TL_STATUS_LIMIT:
    case TL_STATUS_UNSUPPORTED:
    case TL_STATUS_INVALID_ARGUMENT:
      row->outcome = TL_TUNE_FAILED;
      set_why(row, tl_status_message(status));
      break;
    default:
      return tl_status_annotate(status, "%s", row->configuration);
  }
  tl_status_free(status);
  return TL_OK;
}

// Keeps the first line that says what is wrong.
static void keep_failure(void *user, const char *line) {
  tl_tune_row *row = user;
  if (!row->why && strstr(line, "FAILED")) set_why(row, line + strspn(line, " "));
}

// One case of the check section.
static tl_status run_check_case(tuner *t, tl_bindings bindings, uint32_t number, tl_tune_row *row) {
  const tl_tune_options *o = t->options;
  tl_check_options options = {.device = o->device,
                              .target = o->target,
                              .bindings = bindings,
                              .seed = o->seed,
                              .cases = &number,
                              .num_cases = 1,
                              .directory = o->directory,
                              .inputs = o->inputs,
                              .num_inputs = o->num_inputs,
                              .print = keep_failure,
                              .user = row};
  tl_check_summary summary;
  tl_diags diags;
  tl_diags_init_like(&diags, t->diags);
  tl_compiled_fini(t->compiled);
  tl_status status = tl_check_run(t->kernel, &options, t->sources, &diags, &summary, t->compiled);
  if (!status) {
    row->is_checked = true;
    row->outcome = TL_TUNE_RIGHT;
  }
  status = conclude(t, status, &diags, row);
  tl_diags_fini(&diags);
  return status;
}

// The first check case whose sizes the configuration allows. Without one it stays unchecked.
static tl_status compare_row(tuner *t, tl_bindings bindings, tl_tune_row *row) {
  const tl_check *check = &t->kernel->check;
  row->outcome = TL_TUNE_COMPILED;
  if (t->options->no_check || !check->present || !check->num_reference) return TL_OK;
  checked_configuration *known = &t->checked[row->index == as_written ? t->space.size : row->index];
  uint32_t num_cases = check->num_cases ? check->num_cases : 1;
  for (uint32_t i = 0; !known->is_done && i < num_cases; i++) {
    TL_TRY(run_check_case(t, bindings, i + 1, row));
    if (row->outcome != TL_TUNE_REQUIRES) break;
    if (i + 1 == num_cases) row->outcome = TL_TUNE_COMPILED;
  }
  if (!known->is_done)
    *known = (checked_configuration){true, row->is_checked, row->outcome, row->why ? strdup(row->why) : NULL};
  row->is_checked = known->is_checked;
  row->outcome = known->outcome;
  if (known->why) set_why(row, known->why);
  return TL_OK;
}

// ---- sizes of the bench case

static tl_status compile_row(tuner *t, tl_bindings bindings, tl_tune_row *row) {
  tl_bindings compile, all;
  tl_diags diags;
  tl_compile_request request = tl_compile_request_default(t->kernel);
  tl_check_case_bindings(&t->arena, t->kernel, bindings, t->one_case, &compile, &all);
  request.bindings = compile;
  request.required = t->options->required;
  request.target = t->options->target ? t->options->target : tl_run_device_target(t->options->device);
  tl_diags_init_like(&diags, t->diags);
  tl_compiled_fini(t->compiled);
  tl_status status = tl_compile(&request, t->sources, &diags, t->compiled);
  status = conclude(t, status, &diags, row);
  tl_diags_fini(&diags);
  return status;
}

static tl_status time_row(tuner *t, tl_bindings bindings, uint32_t bursts, uint32_t sustained, tl_tune_row *row) {
  const tl_tune_options *o = t->options;
  tl_bench_options options = {.device = o->device,
                              .target = o->target,
                              .bindings = bindings,
                              .seed = o->seed,
                              .cases = &t->number,
                              .num_cases = 1,
                              .directory = o->directory,
                              .inputs = o->inputs,
                              .num_inputs = o->num_inputs,
                              .no_check = true,
                              .only_cold = true,
                              .plan = tl_bench_plan_default()};
  options.plan.seed = o->seed;
  options.plan.burst_rounds = bursts;
  options.plan.sustained_rounds = sustained;
  tl_bench_report report = {.machine = t->report->machine};
  tl_diags diags;
  tl_diags_init_like(&diags, t->diags);
  tl_compiled_fini(t->compiled);
  tl_status status = tl_bench_run(t->kernel, &options, t->sources, &diags, &report, t->compiled);
  if (!status) {
    tl_bench_result_fini(&row->result);
    row->result = report.results.items[0];
    report.results.len = 0;
    row->outcome = TL_TUNE_TIMED;
  }
  status = conclude(t, status, &diags, row);
  tl_diags_fini(&diags);
  tl_bench_report_fini(&report);
  return status;
}

static tl_bindings bindings_of(tuner *t, uint64_t index) {
  if (index == as_written) return t->options->bindings;
  return tl_tune_space_bindings(&t->space, &t->arena, t->options->bindings, index);
}

// The time that decides: sustained, of cold launches.
static double seconds_of(const tl_tune_row *row) {
  const tl_bench_time *cold = &row->result.cold;
  if (row->outcome != TL_TUNE_TIMED) return INFINITY;
  return cold->sustained.count ? cold->sustained.median : cold->burst.median;
}

static tl_status try_row(tuner *t, tl_tune_row *row) {
  tl_bindings bindings = bindings_of(t, row->index);
  TL_TRY(compare_row(t, bindings, row));
  if (row->outcome != TL_TUNE_RIGHT && row->outcome != TL_TUNE_COMPILED) return TL_OK;
  if (t->report->is_timed) return time_row(t, bindings, SCREENING_BURSTS, 1, row);
  return compile_row(t, bindings, row);
}

// ---- which configurations are tried

typedef TL_VEC(uint64_t) index_list;

static bool is_same(const tl_env *a, const tl_env *b) {
  bool same_launch = a->threads == b->threads && a->persistent == b->persistent && a->takes_tiles == b->takes_tiles &&
                     a->fast_math == b->fast_math;
  if (a->len != b->len || !same_launch) return false;
  for (uint32_t i = 0; i < a->len; i++) {
    const tl_const *x = &a->entries[i].value, *y = &b->entries[i].value;
    if (x->kind != y->kind || x->i != y->i || x->dtype != y->dtype || x->f != y->f) return false;
  }
  return true;
}

// Evaluates params and lets of a configuration at the sizes of the case. False: the compiler will say why.
static bool env_of(const tuner *t, tl_arena *arena, tl_bindings bindings, tl_env *out) {
  tl_bindings compile, all;
  tl_diags diags;
  tl_diags_init_like(&diags, t->diags);
  tl_check_case_bindings(arena, t->kernel, bindings, t->one_case, &compile, &all);
  bool ok = tl_env_create(arena, t->kernel, all, true, &diags, out);
  tl_diags_fini(&diags);
  return ok;
}

// Whether all of `where` holds; false with `*out_failed` when one of them cannot be evaluated (reported).
static bool meets_where(const tuner *t, tl_arena *arena, const tl_env *env, bool *out_failed) {
  const tl_tune *tune = &t->kernel->tune;
  for (uint32_t i = 0; i < tune->num_where; i++) {
    bool truth = false;
    if (!tl_check_where(arena, env, tune->where[i], t->diags, &truth)) *out_failed = true;
    if (*out_failed || !truth) return false;
  }
  return true;
}

// Those that `where` allows and that differ from the spec as written.
static tl_status list_configurations(tuner *t, index_list *out) {
  tl_arena scratch;
  tl_arena_init(&scratch);
  tl_env written, env;
  bool failed = false, has_written = env_of(t, &scratch, t->options->bindings, &written);
  for (uint64_t i = 0; !failed && i < t->space.size; i++) {
    tl_arena_marker mark = tl_arena_mark(&scratch);
    bool ok = env_of(t, &scratch, tl_tune_space_bindings(&t->space, &scratch, t->options->bindings, i), &env);
    if (ok && !meets_where(t, &scratch, &env, &failed)) {
      t->result->num_excluded++;
    } else if (!(ok && has_written && is_same(&env, &written))) {
      tl_vec_push(out, i);
    }
    tl_arena_release(&scratch, mark);
  }
  tl_arena_fini(&scratch);
  return failed ? tl_status_make(TL_STATUS_DIAGNOSTICS, "the tune section is wrong") : TL_OK;
}

static void shuffle(const tuner *t, index_list *list) {
  uint64_t key = tl_random_key(t->options->seed, t->kernel->name, TL_STR("tune"));
  for (size_t i = list->len; i > 1; i--) {
    size_t k = (size_t)tl_random_below(key, i, i);
    uint64_t moved = list->items[i - 1];
    list->items[i - 1] = list->items[k];
    list->items[k] = moved;
  }
}

static tl_status budget_of(const tuner *t, uint64_t *out) {
  const tl_expr *expr = t->kernel->tune.budget;
  *out = t->options->budget ? t->options->budget : UINT64_MAX;
  if (t->options->budget || !expr) return TL_OK;
  tl_arena scratch;
  tl_arena_init(&scratch);
  tl_env env = {0};
  tl_const value = {0};
  env_of(t, &scratch, t->options->bindings, &env);
  bool ok = tl_env_eval(&env, expr, t->diags, &value);
  if (ok && (value.kind != TL_CONST_INT || value.i < 1)) {
    tl_diag_report(t->diags, TL_DIAG_TUNE, expr->loc, "`budget` is a number of configurations, at least 1");
    ok = false;
  }
  tl_arena_fini(&scratch);
  if (ok) *out = (uint64_t)value.i;
  return ok ? TL_OK : tl_status_make(TL_STATUS_DIAGNOSTICS, "the tune section is wrong");
}

// ---- one bench case

// What the spec says for `threads`, `persistent` or `fast_math`.
static void print_setting(const tl_env *env, tl_str name, tl_strbuf *out) {
  if (tl_str_is(name, "threads") && env->threads) {
    tl_strbuf_appendf(out, "%lld", (long long)env->threads);
  } else if (tl_str_is(name, "fast_math")) {
    tl_strbuf_append_c(out, env->fast_math ? "true" : "false");
  } else if (tl_str_is(name, "persistent") && env->persistent != TL_SWITCH_AUTO) {
    tl_strbuf_append_c(out, env->takes_tiles ? "dynamic" : env->persistent == TL_SWITCH_ON ? "true" : "false");
  } else {
    tl_strbuf_append_c(out, "auto");
  }
}

static char *written_text(const tuner *t) {
  tl_arena scratch;
  tl_arena_init(&scratch);
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_env env;
  bool ok = env_of(t, &scratch, t->options->bindings, &env);
  tl_strbuf_append_c(&text, "as written:");
  for (uint32_t i = 0; ok && i < t->space.num_params; i++) {
    tl_str name = t->space.params[i]->name;
    const tl_env_entry *entry = tl_env_find(&env, name);
    tl_strbuf_appendf(&text, " %.*s=", TL_STR_ARG(name));
    if (entry) {
      tl_const_print(&entry->value, &text);
    } else {
      print_setting(&env, name, &text);
    }
  }
  tl_arena_fini(&scratch);
  return tl_strbuf_take(&text);
}

static tl_status add_row(tuner *t, uint64_t index, uint64_t done, uint64_t of, tl_tune_outcome *out_outcome) {
  const tl_tune_options *o = t->options;
  tl_tune_row row = {.index = index, .is_written = index == as_written};
  row.configuration = row.is_written ? written_text(t) : tl_tune_space_text(&t->space, index, false);
  row.flags = row.is_written ? strdup("") : tl_tune_space_text(&t->space, index, true);
  if (o->progress) o->progress(o->user, t->result->kernel, done, of, row.configuration);
  tl_status status = try_row(t, &row);
  if (status) {
    fini_row(&row);
    return status;
  }
  *out_outcome = row.outcome;
  t->result->counts[row.outcome]++;
  tl_vec_push(&t->result->rows, row);
  if (o->row) o->row(o->user, t->result, &tl_vec_last(&t->result->rows));
  return TL_OK;
}

// The fastest and the spec as written once more, with as many rounds as a benchmark has; then the best.
static tl_status run_finals(tuner *t) {
  tl_bench_plan plan = tl_bench_plan_default();
  uint32_t bursts = t->options->rounds ? t->options->rounds : plan.burst_rounds;
  tl_tune_row *rows = t->result->rows.items;
  size_t len = t->result->rows.len;
  bool *is_final = tl_xcalloc(len + 1, sizeof(bool));
  for (int n = 0; n < NUM_FINALISTS; n++) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < len; i++)
      if (!is_final[i] && isfinite(seconds_of(&rows[i])) &&
          (best == SIZE_MAX || seconds_of(&rows[i]) < seconds_of(&rows[best])))
        best = i;
    if (best != SIZE_MAX) is_final[best] = true;
  }
  tl_status status = TL_OK;
  t->result->best = UINT32_MAX;
  for (size_t i = 0; i < len && !status; i++) {
    if (rows[i].outcome != TL_TUNE_TIMED || !(is_final[i] || rows[i].is_written)) continue;
    status = time_row(t, bindings_of(t, rows[i].index), bursts, (bursts + 2) / 3, &rows[i]);
    bool is_best = t->result->best == UINT32_MAX || seconds_of(&rows[i]) < seconds_of(&rows[t->result->best]);
    if (rows[i].outcome == TL_TUNE_TIMED && is_best) t->result->best = (uint32_t)i;
  }
  free(is_final);
  return status;
}

static int compare_rows(const void *a, const void *b) {
  const tl_tune_row *x = a, *y = b;
  if (x->is_written != y->is_written) return x->is_written ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static tl_status tune_case(tuner *t) {
  const tl_tune_options *o = t->options;
  index_list list = {0};
  uint64_t budget, used = 0;
  size_t next = 0;
  tl_tune_outcome outcome = TL_TUNE_REFUSED;
  tl_status status = budget_of(t, &budget);
  if (!status) status = list_configurations(t, &list);
  if (!status && budget < list.len) shuffle(t, &list);
  uint64_t of = budget < list.len ? budget : list.len;
  if (!status && o->begin) o->begin(o->user, t->result, of);
  if (!status) status = add_row(t, as_written, 0, of, &outcome);
  while (!status && next < list.len && used < budget) {
    status = add_row(t, list.items[next++], used + 1, of, &outcome);
    used += outcome != TL_TUNE_REQUIRES && outcome != TL_TUNE_LIMIT && outcome != TL_TUNE_REFUSED;
  }
  t->result->num_left_out = list.len - next;
  tl_vec_fini(&list);
  if (status) return status;
  qsort(t->result->rows.items, t->result->rows.len, sizeof(tl_tune_row), compare_rows);
  if (t->report->is_timed) TL_TRY(run_finals(t));
  if (o->end) o->end(o->user, t->report, t->result);
  return TL_OK;
}

static char *print_bindings(tuner *t) {
  tl_bindings compile, all;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_check_case_bindings(&t->arena, t->kernel, t->options->bindings, t->one_case, &compile, &all);
  tl_strbuf_append_char(&text, '{');
  for (uint32_t i = 0; i < all.len; i++) {
    tl_strbuf_appendf(&text, "%s%.*s: ", i ? ", " : "", TL_STR_ARG(all.items[i].name));
    tl_expr_print(all.items[i].value, &text);
  }
  tl_strbuf_append_char(&text, '}');
  return tl_strbuf_take(&text);
}

static bool is_wanted(const tl_tune_options *options, uint32_t number) {
  for (uint32_t i = 0; i < options->num_cases; i++)
    if (options->cases[i] == number) return true;
  return options->num_cases == 0;
}

// What the cases came to together.
static tl_status verdict(const tl_tune_report *report, size_t first, uint32_t total) {
  uint64_t wrong = 0, usable = 0;
  if (report->results.len == first)
    return tl_status_make(TL_STATUS_NOT_FOUND, "there is no such case: the spec has %u", total);
  for (size_t i = first; i < report->results.len; i++) {
    const uint64_t *counts = report->results.items[i]->counts;
    wrong += counts[TL_TUNE_WRONG];
    usable += counts[TL_TUNE_TIMED] + counts[TL_TUNE_RIGHT] + counts[TL_TUNE_COMPILED];
  }
  if (wrong) return tl_status_make(TL_STATUS_CHECK_FAILED, "%llu configurations are wrong", (unsigned long long)wrong);
  return usable ? TL_OK : tl_status_make(TL_STATUS_CHECK_FAILED, "no configuration could be run");
}

static tl_status tune_cases(tuner *t) {
  uint32_t total = t->kernel->bench.num_cases ? t->kernel->bench.num_cases : 1;
  size_t first = t->report->results.len;
  for (uint32_t i = 0; i < total; i++) {
    if (!is_wanted(t->options, i + 1)) continue;
    t->number = i + 1;
    t->one_case = t->kernel->bench.num_cases ? &t->kernel->bench.cases[i] : NULL;
    t->result = tl_xcalloc(1, sizeof(*t->result));
    t->result->kernel = strndup(t->kernel->name.data, t->kernel->name.len);
    t->result->bindings = print_bindings(t);
    t->result->number = i + 1;
    t->result->total = total;
    t->result->num_configurations = t->space.size;
    t->result->best = UINT32_MAX;
    tl_vec_push(&t->report->results, t->result);
    TL_TRY(tl_status_annotate(tune_case(t), "%s, bench case %u", t->result->kernel, i + 1));
  }
  return verdict(t->report, first, total);
}

tl_status tl_tune_run(const tl_kernel_spec *kernel, const tl_tune_options *options, const tl_sources *sources,
                      tl_diags *diags, tl_tune_report *report, tl_compiled *out_compiled) {
  *out_compiled = (tl_compiled){0};
  if (!kernel->tune.present)
    return tl_status_make(TL_STATUS_NOT_FOUND, "'%.*s' has no tune section", TL_STR_ARG(kernel->name));
  tuner t = {.options = options, .sources = sources, .diags = diags, .report = report, .compiled = out_compiled};
  tl_arena_init(&t.arena);
  tl_tune_space_init(&t.space, &t.arena, kernel, options->bindings);
  t.kernel = tl_tune_space_kernel(&t.space, &t.arena);
  t.checked = tl_xcalloc(t.space.size + 1, sizeof(*t.checked));
  tl_status status = tune_cases(&t);
  for (uint64_t i = 0; i <= t.space.size; i++) free(t.checked[i].why);
  free(t.checked);
  tl_arena_fini(&t.arena);
  return status;
}
