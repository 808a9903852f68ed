// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "harness/bench/bench_internal.h"
#include "harness/check/check.h"
#include "harness/device/device_internal.h"

// What the reference can compute while one waits.
static const double check_max_flops = 2e9, check_max_elements = 8e6;

tl_status tl_bench_report_init(tl_bench_report *report, tl_run_device *device) {
  *report = (tl_bench_report){0};
  if (!device->gpu) return tl_status_make(TL_STATUS_NO_DEVICE, "benchmarks need a GPU; the emulator has no clock");
  tl_device_facts facts;
  TL_TRY(tl_device_query_facts(device->gpu, &facts));
  report->device = strdup(tl_run_device_describe(device));
  tl_bench_machine_init(&report->machine, &facts, tl_device_compute_capability(device->gpu),
                        tl_device_num_sms(device->gpu));
  return TL_OK;
}

// ---- what one case is

static tl_status number_of(const tl_env *env, const tl_expr *expr, tl_diags *diags, double *out) {
  tl_const value;
  *out = 0;
  if (!expr) return TL_OK;
  if (!tl_env_eval(env, expr, diags, &value))
    return tl_status_make(TL_STATUS_DIAGNOSTICS, "the bench section is wrong");
  if (value.kind == TL_CONST_INT) *out = (double)value.i;
  if (value.kind == TL_CONST_FLOAT) *out = value.f;
  if (value.kind == TL_CONST_INT || value.kind == TL_CONST_FLOAT) return TL_OK;
  tl_diag_report(diags, TL_DIAG_CHECK_VALUE, expr->loc, "flops and bytes are numbers");
  return tl_status_make(TL_STATUS_DIAGNOSTICS, "the bench section is wrong");
}

static double bytes_of_args(const tl_run_args *args) {
  double bytes = 0;
  for (uint32_t i = 0; i < args->len; i++) {
    if (args->items[i].is_tensor) bytes += (double)args->items[i].array.bytes * (args->items[i].access == 2 ? 2 : 1);
  }
  return bytes;
}

static char *print_bindings(tl_bindings bindings) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_append_char(&text, '{');
  for (uint32_t i = 0; i < bindings.len; i++) {
    tl_strbuf_appendf(&text, "%s%.*s: ", i ? ", " : "", TL_STR_ARG(bindings.items[i].name));
    tl_expr_print(bindings.items[i].value, &text);
  }
  tl_strbuf_append_char(&text, '}');
  return tl_strbuf_take(&text);
}

// Of a chain the fastest unit that any of its kernels uses: what the roofline promises at most.
static tl_bench_unit unit_of(const tl_bench_machine *machine, const tl_compiled *compiled) {
  if (compiled->tile) return tl_bench_unit_of(compiled->tile);
  tl_bench_unit unit = TL_BENCH_F32;
  for (uint32_t i = 0; i < compiled->num_parts; i++) {
    tl_bench_unit one = tl_bench_unit_of(compiled->parts[i].tile);
    if (machine->flops[one] > machine->flops[unit]) unit = one;
  }
  return unit;
}

// Inputs as check makes them, `derive` included.
static tl_status make_inputs(tl_bench_case *c) {
  const tl_bench_options *options = c->options;
  TL_TRY(tl_run_args_from_spec(c->kernel, &c->env, c->diags, &c->args));
  tl_input_request inputs = {.kernel = c->kernel,
                             .one_case = c->one_case,
                             .inputs = options->inputs,
                             .num_inputs = options->num_inputs,
                             .env = &c->env,
                             .directory = options->directory,
                             .kernel_name = c->kernel->name,
                             .seed = options->seed,
                             .ints_by_default = true};
  TL_TRY(tl_check_make_inputs(&inputs, c->diags, &c->args));
  if (c->kernel->check.num_derive == 0) return TL_OK;
  tl_reference reference;
  tl_reference_init(&reference, c->kernel, &c->env, c->diags);
  tl_status status = tl_check_derive_inputs(&reference, &c->args);
  tl_reference_fini(&reference);
  return status;
}

static tl_status prepare(tl_bench_case *c) {
  const tl_bench_options *options = c->options;
  tl_bindings compile, all;
  tl_check_case_bindings(&c->arena, c->kernel, options->bindings, c->one_case, &compile, &all);
  c->result->bindings = print_bindings(all);
  if (!tl_env_create(&c->arena, c->kernel, all, true, c->diags, &c->env)) {
    return tl_status_make(TL_STATUS_DIAGNOSTICS, "the case has errors");
  }
  tl_compile_request request = tl_compile_request_default(c->kernel);
  request.bindings = compile;
  request.required = options->required;
  request.target = options->target ? options->target : tl_run_device_target(options->device);
  tl_compiled_fini(c->compiled);
  TL_TRY(tl_compile(&request, c->sources, c->diags, c->compiled));
  TL_TRY(tl_run_kernel_load(options->device, c->compiled, &c->loaded));
  c->result->target = strdup(c->compiled->target->name);
  c->result->unit = unit_of(c->machine, c->compiled);
  tl_run_kernel_resources(c->loaded, &c->result->registers, &c->result->local_bytes);
  TL_TRY(make_inputs(c));
  TL_TRY(number_of(&c->env, c->kernel->bench.flops, c->diags, &c->result->flops));
  TL_TRY(number_of(&c->env, c->kernel->bench.bytes, c->diags, &c->result->bytes));
  c->result->bytes_from_args = !c->kernel->bench.bytes;
  if (c->result->bytes_from_args) c->result->bytes = bytes_of_args(&c->args);
  const tl_bench_machine *machine = c->machine;
  c->result->roofline_s = tl_bench_roofline_seconds(machine, c->result->unit, c->result->flops, c->result->bytes);
  c->result->is_dram_bound = tl_bench_is_dram_bound(machine, c->result->unit, c->result->flops, c->result->bytes);
  return TL_OK;
}

// ---- results are checked where the reference can be computed

static const char *why_unchecked(const tl_bench_case *c) {
  if (c->options->no_check) return "not checked (as asked)";
  if (!c->kernel->check.present || c->kernel->check.num_reference == 0) return "not checked (no reference)";
  double elements = 0;
  for (uint32_t i = 0; i < c->args.len; i++) elements += (double)c->args.items[i].array.count;
  bool is_small = c->result->flops <= check_max_flops && elements <= check_max_elements;
  return is_small ? NULL : "not checked (too large for the reference)";
}

static tl_status compare_case(tl_bench_case *c) {
  const char *reason = why_unchecked(c);
  if (reason) {
    c->result->checked = strdup(reason);
    return TL_OK;
  }
  // The bench case as the only case of the check section.
  tl_kernel_spec copy = *c->kernel;
  tl_case one_case = c->one_case ? *c->one_case : (tl_case){.loc = c->kernel->loc};
  copy.check.cases = &one_case;
  copy.check.num_cases = 1;
  tl_check_options options = {.device = c->options->device,
                              .target = c->options->target,
                              .bindings = c->options->bindings,
                              .seed = c->options->seed,
                              .directory = c->options->directory,
                              .inputs = c->options->inputs,
                              .num_inputs = c->options->num_inputs};
  tl_check_summary summary;
  tl_compiled compiled;
  tl_status status = tl_check_run(&copy, &options, c->sources, c->diags, &summary, &compiled);
  tl_compiled_fini(&compiled);
  if (tl_status_code_of(status) == TL_STATUS_CHECK_FAILED) {
    tl_status_free(status);
    c->result->checked = strdup("WRONG RESULTS (see --check)");
    c->is_wrong = true;
    return TL_OK;
  }
  if (!status) c->result->checked = strdup("checked");
  return status;
}

// ---- the race

tl_status tl_bench_case_launch(void *user, uint32_t set, void *stream) {
  tl_bench_case *c = user;
  return tl_run_kernel_enqueue(c->loaded, tl_bench_sets_arguments(&c->sets, set), c->sets.num_arguments, stream);
}

static void report_progress(void *user, const char *what, uint32_t done, uint32_t total) {
  const tl_bench_case *c = user;
  const tl_bench_options *options = c->options;
  if (!options->progress) return;
  options->progress(options->user, c->result->kernel, c->result->number, c->result->total, what, done, total);
}

// Copies as large as the case (within bounds that keep launches from mattering), in turn over twice the L2 cache.
static tl_status make_copies(tl_bench_case *c, uint64_t free_bytes) {
  uint64_t least = UINT64_C(128) << 20, most = UINT64_C(1) << 30, bytes = (uint64_t)(c->result->bytes / 2);
  if (bytes < least) bytes = least;
  if (bytes > most) bytes = most;
  if (bytes > free_bytes / 4) bytes = free_bytes / 4;
  bytes = bytes / 256 * 256;
  if (bytes == 0) return TL_OK;  // the arguments take all memory: no copy beside them
  bool is_partly_cold;
  uint32_t num = tl_bench_num_sets(2 * bytes, c->machine->l2_bytes, free_bytes / 2, &is_partly_cold);
  c->result->copy_bytes = 2.0 * (double)bytes;
  return tl_bench_copies_init(&c->copies, c->options->device->gpu, bytes, num);
}

static tl_status race(tl_bench_case *c) {
  tl_device *gpu = c->options->device->gpu;
  tl_bench_plan plan = c->options->plan;
  plan.progress = report_progress;
  plan.user = c;
  enum { COLD, WARM, COPY, PEER_COLD, PEER_WARM, COUNT };
  tl_bench_contestant all[COUNT] = {
      {.name = "cold", .launch = tl_bench_case_launch, .user = c, .num_sets = c->sets.num_sets},
      {.name = "warm", .launch = tl_bench_case_launch, .user = c, .num_sets = 1},
      // In a graph large copies go to an engine that is slower than what a stream uses.
      {.name = "copy",
       .launch = tl_bench_copies_launch,
       .user = &c->copies,
       .num_sets = c->copies.num,
       .no_graph = true},
      {.name = "peer, cold", .launch = tl_bench_peer_launch, .user = c, .num_sets = c->sets.num_sets},
      {.name = "peer, warm", .launch = tl_bench_peer_launch, .user = c, .num_sets = 1}};
  tl_bench_time *times[COUNT] = {&c->result->cold, &c->result->warm, &c->result->copy, &c->result->peer_cold,
                                 &c->result->peer_warm};
  const bool runs[COUNT] = {true, !c->options->only_cold, c->copies.num > 0, c->peer != NULL, c->peer != NULL};
  tl_bench_contestant racing[COUNT];
  uint32_t len = 0;
  for (int i = 0; i < COUNT; i++) {
    if (runs[i]) racing[len++] = all[i];
  }
  TL_TRY(tl_bench_race(gpu, &plan, racing, len));
  len = 0;
  for (int i = 0; i < COUNT; i++) {
    if (!runs[i]) continue;
    *times[i] = (tl_bench_time){racing[len].burst, racing[len].sustained};
    len++;
  }
  c->result->used_graph = racing[COLD].used_graph;
  c->result->batch_launches = racing[COLD].batch_launches;
  return TL_OK;
}

static tl_status run_case(tl_bench_case *c) {
  report_progress(c, "compiling", 0, 1);
  TL_TRY(prepare(c));
  report_progress(c, "checking", 0, 1);
  TL_TRY(compare_case(c));
  tl_device_facts facts;
  TL_TRY(tl_device_query_facts(c->options->device->gpu, &facts));
  size_t free_bytes = facts.free_bytes ? facts.free_bytes : (size_t)4 << 30;
  tl_mbinding *dynamics;
  size_t num_dynamics;
  tl_check_dynamics(&c->arena, &c->env, &dynamics, &num_dynamics);
  TL_TRY(tl_bench_sets_init(&c->sets, c->options->device->gpu, c->loaded->info, &c->args, dynamics, num_dynamics,
                            c->machine->l2_bytes, free_bytes / 2));
  c->result->num_sets = c->sets.num_sets;
  c->result->is_partly_cold = c->sets.is_partly_cold;
  if (c->options->only_cold) return race(c);
  uint64_t used = (uint64_t)c->sets.num_sets * c->sets.stride;
  TL_TRY(make_copies(c, free_bytes > used ? free_bytes - used : 0));
  report_progress(c, "choosing the peer", 0, 1);
  TL_TRY(tl_bench_peer_prepare(c));
  return race(c);
}

static void fini_case(tl_bench_case *c) {
  tl_cublaslt_plan_destroy(c->peer);
  tl_bench_copies_fini(&c->copies);
  tl_bench_sets_fini(&c->sets);
  tl_run_kernel_destroy(c->loaded);
  tl_run_args_fini(&c->args);
  tl_arena_fini(&c->arena);
}

static bool is_wanted(const tl_bench_options *options, uint32_t number) {
  for (uint32_t i = 0; i < options->num_cases; i++) {
    if (options->cases[i] == number) return true;
  }
  return options->num_cases == 0;
}

tl_status tl_bench_run(const tl_kernel_spec *kernel, const tl_bench_options *options, const tl_sources *sources,
                       tl_diags *diags, tl_bench_report *report, tl_compiled *out_compiled) {
  *out_compiled = (tl_compiled){0};
  if (!options->device->gpu) return tl_status_make(TL_STATUS_NO_DEVICE, "benchmarks need a GPU");
  uint32_t total = kernel->bench.num_cases > 0 ? kernel->bench.num_cases : 1, num_run = 0, num_wrong = 0;
  for (uint32_t i = 0; i < total; i++) {
    if (!is_wanted(options, i + 1)) continue;
    tl_bench_result result = {.kernel = strndup(kernel->name.data, kernel->name.len), .number = i + 1, .total = total};
    tl_bench_case one = {.kernel = kernel,
                         .one_case = kernel->bench.num_cases > 0 ? &kernel->bench.cases[i] : NULL,
                         .options = options,
                         .sources = sources,
                         .diags = diags,
                         .machine = &report->machine,
                         .compiled = out_compiled,
                         .result = &result};
    tl_arena_init(&one.arena);
    tl_status status = run_case(&one);
    fini_case(&one);
    if (status) {
      tl_bench_result_fini(&result);
      return tl_status_annotate(status, "%.*s, bench case %u", TL_STR_ARG(kernel->name), i + 1);
    }
    num_run++;
    num_wrong += one.is_wrong;
    tl_vec_push(&report->results, result);
    if (options->done) options->done(options->user, &tl_vec_last(&report->results));
  }
  if (num_run == 0) return tl_status_make(TL_STATUS_NOT_FOUND, "there is no such case: the spec has %u", total);
  if (num_wrong > 0) return tl_status_make(TL_STATUS_CHECK_FAILED, "%u of %u cases are wrong", num_wrong, num_run);
  return TL_OK;
}
