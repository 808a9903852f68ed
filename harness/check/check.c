// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/check/check_report.h"
#include "harness/check/repeat.h"
#include "harness/data/file.h"
#include "harness/data/npy.h"
#include "harness/reference/reference.h"

typedef struct checker {
  const tl_kernel_spec *kernel;
  const tl_check_options *options;
  const tl_sources *sources;
  tl_diags *diags;  // of the case
  tl_check_summary *summary;
  tl_compiled *compiled;
  tl_compiled broken;  // Owned. Of the first case that ended in an internal error.
  tl_arena arena;
  // The kernel of the previous case is used again when only run-time values differ.
  char *compiled_key;      // Owned.
  tl_run_kernel *loaded;   // Owned.
  tl_strbuf log, outputs;  // of the case
} checker;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void say(checker *c, tl_strbuf *line) {
  if (c->options->print) c->options->print(c->options->user, tl_strbuf_c(line));
  tl_strbuf_appendf(&c->log, "%s\n", tl_strbuf_c(line));
  tl_strbuf_clear(line);
}

// The next step of a case; NULL: none that this limits.
static void step(const checker *c, const char *what, uint32_t number) {
  if (!c->options->step) return;
  tl_strbuf text;
  tl_strbuf_init(&text);
  if (what) tl_strbuf_appendf(&text, "%s of case %u of '%.*s'", what, number, TL_STR_ARG(c->kernel->name));
  c->options->step(c->options->user, what ? tl_strbuf_c(&text) : NULL);
  tl_strbuf_fini(&text);
}

static void print_bindings(tl_bindings bindings, tl_strbuf *out) {
  tl_strbuf_append_char(out, '{');
  for (uint32_t i = 0; i < bindings.len; i++) {
    tl_strbuf_appendf(out, "%s%.*s: ", i ? ", " : "", TL_STR_ARG(bindings.items[i].name));
    tl_expr_print(bindings.items[i].value, out);
  }
  tl_strbuf_append_char(out, '}');
}

// ---- one case

// Compiles and loads; keeps the kernel of the case before when the compile would be the same.
static tl_status compile_case(checker *c, tl_bindings bindings) {
  tl_strbuf key;
  tl_strbuf_init(&key);
  print_bindings(bindings, &key);
  if (c->compiled_key && strcmp(c->compiled_key, tl_strbuf_c(&key)) == 0) {
    tl_strbuf_fini(&key);
    return TL_OK;
  }
  free(c->compiled_key);
  c->compiled_key = NULL;
  tl_run_kernel_destroy(c->loaded);
  c->loaded = NULL;
  tl_compile_request request = tl_compile_request_default(c->kernel);
  request.bindings = bindings;
  request.scheduled = c->options->scheduled;
  request.required = c->options->required;
  request.target = c->options->target ? c->options->target : tl_run_device_target(c->options->device);
  tl_compiled_fini(c->compiled);
  tl_status status = tl_compile(&request, c->sources, c->diags, c->compiled);
  if (!status) status = tl_run_kernel_load(c->options->device, c->compiled, &c->loaded);
  if (!status) c->compiled_key = strdup(tl_strbuf_c(&key));
  tl_strbuf_fini(&key);
  return status;
}

static tl_status add_argument_values(tl_reference *reference, const tl_run_args *args) {
  for (uint32_t i = 0; i < args->len; i++) {
    // The spec's own text outlives the arguments.
    tl_str name = {0};
    for (uint32_t a = 0; a < reference->kernel->num_args; a++) {
      if (tl_str_is(reference->kernel->args[a].name, args->items[i].name)) name = reference->kernel->args[a].name;
    }
    TL_TRY(tl_reference_set(reference, name, &args->items[i].array));
  }
  return tl_reference_add_views(reference);
}

// What `derive` assigns to arguments is rounded to their dtypes, as every input is.
tl_status tl_check_derive_inputs(tl_reference *reference, tl_run_args *args) {
  TL_TRY(add_argument_values(reference, args));
  const tl_check *check = &reference->kernel->check;
  TL_TRY(tl_reference_run(reference, check->derive, check->num_derive));
  for (size_t i = 0; i < reference->buffers.len; i++) {
    tl_reference_buffer *buffer = reference->buffers.items[i];
    tl_run_arg *arg = buffer->is_assigned ? tl_run_args_find(args, buffer->name) : NULL;
    buffer->is_assigned = false;
    if (!arg) continue;
    tl_reference_get(buffer, &arg->array);
    TL_TRY(tl_reference_set(reference, buffer->name, &arg->array));
  }
  return TL_OK;
}

static void dump(checker *c, uint32_t number, const char *what, const char *name, const tl_array *array) {
  tl_strbuf path;
  tl_strbuf_init(&path);
  tl_strbuf_appendf(&path, "%s/%.*s.case%u.%s.%s.npy", c->options->dump_dir, TL_STR_ARG(c->kernel->name), number, name,
                    what);
  tl_status status = tl_npy_write(tl_strbuf_c(&path), array);
  if (status) {
    tl_strbuf_clear(&path);
    tl_strbuf_appendf(&path, "  cannot dump: %s", tl_status_message(status));
    say(c, &path);
  }
  tl_status_free(status);
  tl_strbuf_fini(&path);
}

static void dump_case(checker *c, uint32_t number, const tl_run_args *args, const tl_reference *reference) {
  tl_status made = tl_file_make_directory(c->options->dump_dir);
  if (made) {
    tl_strbuf line;
    tl_strbuf_init(&line);
    tl_strbuf_appendf(&line, "  cannot dump: %s", tl_status_message(made));
    say(c, &line);
    tl_strbuf_fini(&line);
    tl_status_free(made);
    return;
  }
  for (uint32_t i = 0; i < args->len; i++) {
    const tl_run_arg *arg = &args->items[i];
    dump(c, number, arg->access == 0 ? "in" : "out", arg->name, &arg->array);
    const tl_reference_buffer *buffer = arg->access ? tl_reference_find(reference, tl_str_from(arg->name)) : NULL;
    tl_array wanted;
    if (!buffer) continue;
    tl_dtype dtype = buffer->is_float ? TL_DTYPE_F64 : arg->array.dtype == TL_DTYPE_U64 ? TL_DTYPE_U64 : TL_DTYPE_I64;
    tl_status status = tl_array_init(&wanted, dtype, buffer->rank, buffer->dims);
    if (!status) {
      tl_reference_get(buffer, &wanted);
      dump(c, number, "reference", arg->name, &wanted);
      tl_array_fini(&wanted);
    }
    tl_status_free(status);
  }
}

typedef struct case_run {
  uint32_t number;
  const tl_case *one_case;
  tl_bindings compile_bindings, all_bindings;
  tl_env env;
  tl_run_args args;
  tl_reference reference;
} case_run;

// Says what was compared, line by line.
static void report_output(checker *c, const tl_compared_output *output) {
  tl_strbuf lines = {0}, line = {0};
  if (c->outputs.len) tl_strbuf_append_c(&c->outputs, ", ");
  tl_check_report_output(output, &lines, &c->outputs);
  for (tl_str rest = tl_strbuf_view(&lines); rest.len;) {
    size_t end = tl_str_find(rest, '\n');
    tl_strbuf_append(&line, tl_str_sub(rest, 0, end));
    say(c, &line);
    rest = tl_str_sub(rest, end + 1, rest.len);
  }
  tl_strbuf_fini(&line);
  tl_strbuf_fini(&lines);
}

// `label` stands before each output: which of several runs of the case it is of.
static tl_status compare_outputs(checker *c, const case_run *run, const tl_writers *writers, const char *label,
                                 bool *out_failed) {
  for (uint32_t i = 0; i < run->args.len; i++) {
    const tl_run_arg *arg = &run->args.items[i];
    tl_str name = tl_str_from(arg->name);
    if (arg->access == 0 || arg->is_absent || tl_check_is_unchecked(&c->kernel->check, name)) continue;
    const tl_reference_buffer *buffer = tl_reference_find(&run->reference, name);
    tl_compared_output output = {
        .arg = arg, .index = i, .label = label, .reference = buffer ? buffer->values : NULL, .writers = writers};
    TL_TRY(tl_check_tolerance(c->kernel, run->one_case, &run->env, name, c->diags, &output.rtol, &output.atol));
    if (!buffer) break;
    if (buffer->is_float) {
      tl_compare_float(&arg->array, buffer->values, output.rtol, output.atol, &output.result);
    } else {
      tl_compare_int(&arg->array, buffer->values, output.rtol, output.atol, &output.result);
    }
    *out_failed |= output.result.num_failed != 0;
    report_output(c, &output);
  }
  return TL_OK;
}

// Outputs hold zeros and inout arguments their inputs again, for another run of the same case.
static tl_status run_and_compare(checker *c, case_run *run, const char *label, bool *out_failed) {
  tl_mbinding *dynamics;
  size_t num_dynamics;
  tl_check_dynamics(&c->arena, &run->env, &dynamics, &num_dynamics);
  // An emulated launch has a limit of its own; one of a GPU that hangs cannot be ended but with the process.
  step(c, tl_run_device_is_gpu(c->options->device) ? "the launch" : NULL, run->number);
  tl_writers writers;
  tl_writers_begin(c->options->device, &run->args, &writers);
  tl_status status = tl_run_launch(c->options->device, c->loaded, &run->args, dynamics, num_dynamics);
  tl_writers_end(c->options->device);
  step(c, "the comparison", run->number);
  if (!status) status = compare_outputs(c, run, &writers, label, out_failed);
  tl_writers_fini(&writers);
  if (status) return status;
  if (*out_failed && c->options->dump_dir) dump_case(c, run->number, &run->args, &run->reference);
  return TL_OK;
}

static tl_status copy_args(const tl_run_args *from, tl_run_args *to) {
  for (uint32_t i = 0; i < from->len; i++) {
    if (from->items[i].access == 2)
      memcpy(to->items[i].array.data, from->items[i].array.data, from->items[i].array.bytes);
  }
  return TL_OK;
}

// Whether an access is in bounds depends on the case's params: says which case the warnings are about.
static void name_case(const checker *c, const tl_case *one_case) {
  if (!one_case || !one_case->num_overrides) return;
  for (size_t i = 0; i < c->diags->list.len; i++) {
    tl_diag *diag = c->diags->list.items[i];
    if (!strcmp(tl_diag_group(diag->code), "bounds"))
      tl_diag_add_note(c->diags, diag, one_case->loc, "with the params of this case");
  }
}

static tl_status prepare(checker *c, case_run *run) {
  if (!tl_env_create(&c->arena, c->kernel, run->all_bindings, true, c->diags, &run->env)) {
    return tl_status_make(TL_STATUS_DIAGNOSTICS, "the case has errors");
  }
  step(c, "the compile", run->number);
  TL_TRY(compile_case(c, run->compile_bindings));
  name_case(c, run->one_case);
  step(c, "making the inputs", run->number);
  TL_TRY(tl_run_validate_memory(c->kernel, &run->env, c->options->device, true, c->options->max_memory, c->diags));
  TL_TRY(tl_run_args_from_spec(c->kernel, &run->env, c->diags, &run->args));
  tl_input_request inputs = {.kernel = c->kernel,
                             .one_case = run->one_case,
                             .inputs = c->options->inputs,
                             .num_inputs = c->options->num_inputs,
                             .env = &run->env,
                             .directory = c->options->directory,
                             .kernel_name = c->kernel->name,
                             .seed = c->options->seed};
  TL_TRY(tl_check_make_inputs(&inputs, c->diags, &run->args));
  for (uint32_t i = 0; i < run->args.len; i++) TL_TRY(tl_run_arg_share_elements(&run->args.items[i]));
  tl_reference_init(&run->reference, c->kernel, &run->env, c->diags);
  run->reference.max_bytes = c->options->max_memory;
  step(c, "the reference", run->number);
  TL_TRY(tl_check_derive_inputs(&run->reference, &run->args));
  return tl_reference_run(&run->reference, c->kernel->check.reference, c->kernel->check.num_reference);
}

// ---- many launches more

typedef struct repeated_case {
  checker *checker;
  uint32_t number;
} repeated_case;

static void repeat_step(void *user, const char *what) {
  const repeated_case *one = user;
  step(one->checker, what, one->number);
}

static void repeat_say(void *user, const char *text) {
  const repeated_case *one = user;
  tl_strbuf line = {0};
  tl_strbuf_append_c(&line, text);
  say(one->checker, &line);
  tl_strbuf_fini(&line);
}

// Of a run that passed; `before` as in run_versions.
static tl_status repeat_run(checker *c, const case_run *run, const tl_run_args *before, bool has_failed) {
  if (!c->options->repeat || has_failed) return TL_OK;
  repeated_case one = {c, run->number};
  tl_repeat_request request = {.device = c->options->device,
                               .loaded = c->loaded,
                               .compiled = c->compiled,
                               .kernel = c->kernel,
                               .one_case = run->one_case,
                               .env = &run->env,
                               .reference = &run->reference,
                               .diags = c->diags,
                               .args = &run->args,
                               .before = before,
                               .launches = c->options->repeat,
                               .step = repeat_step,
                               .say = repeat_say,
                               .user = &one};
  tl_mbinding *dynamics;
  tl_check_dynamics(&c->arena, &run->env, &dynamics, &request.num_dynamics);
  request.dynamics = dynamics;
  return tl_repeat_run(&request);
}

// The versions of the kernel that its arguments allow: what is launched, and where that is the aligned one, the other.
// `again` are arguments as they were before.
static tl_status run_versions(checker *c, case_run *run, const tl_run_args *again, const char *label,
                              bool *out_failed) {
  TL_TRY(run_and_compare(c, run, label, out_failed));
  bool took_version = tl_run_kernel_took_version(c->loaded);
  TL_TRY(repeat_run(c, run, again, *out_failed));
  if (!took_version) return TL_OK;
  TL_TRY(copy_args(again, &run->args));
  tl_run_device_set_plain(c->options->device, true);
  tl_status status = run_and_compare(c, run, tl_arena_printf(&c->arena, "%sunaligned: ", label), out_failed);
  if (!status) status = repeat_run(c, run, again, *out_failed);
  tl_run_device_set_plain(c->options->device, false);
  return status;
}

static tl_status run_case(checker *c, case_run *run, bool *out_failed) {
  TL_TRY(prepare(c, run));
  bool twice = c->options->both_landings && !tl_run_device_is_gpu(c->options->device);
  tl_run_args again;
  TL_TRY(tl_run_args_from_spec(c->kernel, &run->env, c->diags, &again));
  tl_status status = copy_args(&run->args, &again);
  if (twice) tl_run_device_set_landing(c->options->device, TL_LANDING_LATE);
  if (!status) status = run_versions(c, run, &again, twice ? "late: " : "", out_failed);
  if (twice) tl_run_device_set_landing(c->options->device, TL_LANDING_EARLY);
  if (!status && twice) status = copy_args(&again, &run->args);
  if (!status && twice) status = run_versions(c, run, &again, "early: ", out_failed);
  tl_run_args_fini(&again);
  return status;
}

// Failures that say something about the case; others end the whole check.
static bool is_case_failure(tl_status_code code) {
  return code == TL_STATUS_CHECK_FAILED || code == TL_STATUS_DRIVER || code == TL_STATUS_INVALID_ARGUMENT;
}

// What keeps a case from running, but not those behind it.
static bool is_case_obstacle(tl_status_code code) {
  return code == TL_STATUS_DIAGNOSTICS || code == TL_STATUS_LIMIT || code == TL_STATUS_UNSUPPORTED ||
         code == TL_STATUS_NOT_FOUND || code == TL_STATUS_IO || code == TL_STATUS_OUT_OF_MEMORY ||
         code == TL_STATUS_INTERNAL;
}

// Keeps what a bug left for the report; the next case begins anew.
static void put_aside(checker *c) {
  tl_run_kernel_destroy(c->loaded);
  free(c->compiled_key);
  c->loaded = NULL;
  c->compiled_key = NULL;
  if (c->broken.target) {
    tl_compiled_fini(c->compiled);
    return;
  }
  c->broken = *c->compiled;
  *c->compiled = (tl_compiled){0};
}

static void print_outcome(checker *c, tl_status status, tl_check_record *record) {
  tl_status_code code = tl_status_code_of(status);
  tl_strbuf line;
  tl_strbuf_init(&line);
  if (status) record->outcome = is_case_failure(code) ? TL_CHECK_WRONG : TL_CHECK_ERROR;
  record->message = status ? tl_status_message(status) : NULL;
  if (code == TL_STATUS_DIAGNOSTICS) {
    tl_strbuf_append_c(&line, "  FAILED: it has errors");
  } else if (code == TL_STATUS_INTERNAL) {
    tl_strbuf_append_c(&line, "  FAILED: internal error");
  } else if (is_case_failure(code) || is_case_obstacle(code)) {
    tl_strbuf_appendf(&line, "  FAILED: %s", tl_status_message(status));
  } else if (status) {
    tl_strbuf_append_c(&line, "  stopped");
  } else {
    tl_strbuf_appendf(&line, "  %s (%.2f s)", record->outcome == TL_CHECK_PASSED ? "passed" : "FAILED",
                      record->seconds);
  }
  say(c, &line);
  tl_strbuf_fini(&line);
}

static void begin_case(checker *c, tl_bindings bindings, tl_strbuf *shown, tl_check_record *record) {
  tl_strbuf_clear(&c->log);
  tl_strbuf_clear(&c->outputs);
  print_bindings(bindings, shown);
  record->bindings = tl_strbuf_c(shown);
  if (c->options->begin) c->options->begin(c->options->user, record);
  tl_strbuf line = {0};
  tl_strbuf_appendf(&line, "case %u of %u %s", record->number, record->total, record->bindings);
  say(c, &line);
  tl_strbuf_fini(&line);
}

// The status is that of a case that could not be run.
static tl_status check_case(checker *c, uint32_t number, const tl_case *one_case, uint32_t total) {
  case_run run = {.number = number, .one_case = one_case};
  tl_check_record record = {.kernel = c->kernel->name, .number = number, .total = total};
  tl_strbuf bindings = {0};
  double start = now();
  bool failed = false;
  tl_check_case_bindings(&c->arena, c->kernel, c->options->bindings, one_case, &run.compile_bindings,
                         &run.all_bindings);
  begin_case(c, run.all_bindings, &bindings, &record);
  tl_status status = run_case(c, &run, &failed);
  step(c, NULL, 0);
  record.seconds = now() - start;
  if (failed) record.outcome = TL_CHECK_WRONG;
  print_outcome(c, status, &record);
  record.log = tl_strbuf_c(&c->log);
  record.outputs = tl_strbuf_c(&c->outputs);
  record.diags = c->diags;
  if (c->options->end) c->options->end(c->options->user, &record);
  c->summary->num_cases++;
  c->summary->num_failed += failed || status;
  if (is_case_failure(tl_status_code_of(status))) {
    tl_status_free(status);
    status = TL_OK;
  }
  tl_strbuf_fini(&bindings);
  tl_reference_fini(&run.reference);
  tl_run_args_fini(&run.args);
  return status;
}

static bool is_wanted(const tl_check_options *options, uint32_t number) {
  for (uint32_t i = 0; i < options->num_cases; i++) {
    if (options->cases[i] == number) return true;
  }
  return options->num_cases == 0;
}

tl_status tl_check_run(const tl_kernel_spec *kernel, const tl_check_options *options, const tl_sources *sources,
                       tl_diags *diags, tl_check_summary *out, tl_compiled *out_compiled) {
  *out = (tl_check_summary){0};
  *out_compiled = (tl_compiled){0};
  checker c = {.kernel = kernel, .options = options, .sources = sources, .summary = out, .compiled = out_compiled};
  if (!kernel->check.present) {
    return tl_status_make(TL_STATUS_NOT_FOUND, "'%.*s' has no check section", TL_STR_ARG(kernel->name));
  }
  tl_diags own;
  tl_diags_init_like(&own, diags);
  tl_check_coverage(kernel, &own);
  bool has_errors = tl_diags_has_errors(&own);
  tl_diags_append(diags, &own);
  tl_diags_fini(&own);
  if (has_errors) return tl_status_make(TL_STATUS_DIAGNOSTICS, "the check section has errors");
  tl_arena_init(&c.arena);
  // Without cases the params as they stand are the one case.
  uint32_t total = kernel->check.num_cases > 0 ? kernel->check.num_cases : 1;
  tl_status status = TL_OK;
  for (uint32_t i = 0; (!status || is_case_obstacle(tl_status_code_of(status))) && i < total; i++) {
    if (!is_wanted(options, i + 1)) continue;
    // Errors of one case are none of the next.
    tl_diags_init_like(&own, diags);
    c.diags = &own;
    tl_status one = check_case(&c, i + 1, kernel->check.num_cases > 0 ? &kernel->check.cases[i] : NULL, total);
    tl_status_code code = tl_status_code_of(one);
    if (code == TL_STATUS_INTERNAL) put_aside(&c);
    bool comes_first = code == TL_STATUS_INTERNAL || !is_case_obstacle(code);
    status = comes_first ? tl_status_join(one, status) : tl_status_join(status, one);
    tl_diags_append(diags, &own);
    tl_diags_fini(&own);
  }
  if (!status && out->num_cases == 0)
    status = tl_status_make(TL_STATUS_NOT_FOUND, "there is no such case: the spec has %u", total);
  tl_run_kernel_destroy(c.loaded);
  free(c.compiled_key);
  if (c.broken.target) {
    tl_compiled_fini(out_compiled);
    *out_compiled = c.broken;
  }
  tl_strbuf_fini(&c.log);
  tl_strbuf_fini(&c.outputs);
  tl_arena_fini(&c.arena);
  if (!status && out->num_failed) {
    status = tl_status_make(TL_STATUS_CHECK_FAILED, "%u of %u cases failed", out->num_failed, out->num_cases);
  }
  return status;
}
