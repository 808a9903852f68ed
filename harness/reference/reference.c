// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The world of a reference and the run of its statements: each list becomes one function, compiled for the CPU.
#include "harness/reference/reference.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/reference/reference_calls.h"
#include "harness/reference/reference_internal.h"
#include "llvm_backend/jit/reference_jit.h"

// Innermost iterations that take less time without optimisation than optimising takes.
static const double SHORT_WORK = 1e6;

void tl_reference_init(tl_reference *reference, const tl_kernel_spec *kernel, const tl_env *env, tl_diags *diags) {
  *reference = (tl_reference){.kernel = kernel, .env = env, .diags = diags};
}

void tl_reference_fini(tl_reference *reference) {
  for (size_t i = 0; i < reference->buffers.len; i++) {
    if (!reference->buffers.items[i]->is_view) free(reference->buffers.items[i]->values);
    free(reference->buffers.items[i]);
  }
  tl_vec_fini(&reference->buffers);
}

tl_reference_buffer *tl_reference_find(const tl_reference *reference, tl_str name) {
  for (size_t i = 0; name.len > 0 && i < reference->buffers.len; i++) {
    if (tl_str_equal(reference->buffers.items[i]->name, name)) return reference->buffers.items[i];
  }
  return NULL;
}

static tl_status add_buffer(tl_reference *reference, tl_str name, const tl_array *shape) {
  uint64_t bytes = reference->shapes_only ? 0 : shape->count * sizeof(double);
  if (reference->max_bytes && bytes > reference->max_bytes - reference->used_bytes)
    return tl_status_make(TL_STATUS_LIMIT,
                          "the reference takes %llu bytes for the values of `%.*s`, more than is left of %llu "
                          "(--max-memory)",
                          (unsigned long long)bytes, TL_STR_ARG(name), (unsigned long long)reference->max_bytes);
  reference->used_bytes += bytes;
  tl_reference_buffer *buffer = calloc(1, sizeof *buffer);
  void *values = reference->shapes_only ? NULL : calloc(shape->count ? shape->count : 1, sizeof(double));
  if (!buffer || (!values && !reference->shapes_only)) {
    free(buffer);
    free(values);
    return tl_status_make(TL_STATUS_LIMIT, "no memory for a reference of %llu elements",
                          (unsigned long long)shape->count);
  }
  *buffer = (tl_reference_buffer){.name = name,
                                  .dtype = shape->dtype,
                                  .is_float = tl_dtype_is_float(shape->dtype),
                                  .rank = shape->rank,
                                  .count = shape->count,
                                  .values = values};
  memcpy(buffer->dims, shape->shape, sizeof buffer->dims);
  tl_vec_push(&reference->buffers, buffer);
  return TL_OK;
}

tl_status tl_reference_declare(tl_reference *reference, tl_str name, tl_dtype dtype, int32_t rank,
                               const int64_t *dims) {
  tl_array shape;
  TL_TRY(tl_array_init_shape(&shape, dtype, rank, dims));
  return add_buffer(reference, name, &shape);
}

tl_status tl_reference_set(tl_reference *reference, tl_str name, const tl_array *array) {
  tl_reference_buffer *buffer = tl_reference_find(reference, name);
  if (!buffer) {
    TL_TRY(add_buffer(reference, name, array));
    buffer = tl_vec_last(&reference->buffers);
  }
  for (uint64_t i = 0; i < array->count; i++) {
    if (buffer->is_float) {
      ((double *)buffer->values)[i] = tl_dtype_load_float(array->dtype, array->data, i);
    } else {
      ((int64_t *)buffer->values)[i] = tl_dtype_load_int(array->dtype, array->data, i);
    }
  }
  return TL_OK;
}

static bool view_dims(tl_reference *reference, const tl_view *view, tl_reference_buffer *out) {
  out->count = 1;
  for (uint32_t d = 0; d < view->num_dims && d < TL_ARRAY_MAX_RANK; d++) {
    tl_const value;
    if (!tl_env_eval(reference->env, view->dims[d], reference->diags, &value) || value.kind != TL_CONST_INT)
      return false;
    out->dims[d] = value.i;
    out->count *= (uint64_t)value.i;
  }
  out->rank = (int32_t)view->num_dims;
  return true;
}

tl_status tl_reference_add_views(tl_reference *reference) {
  for (uint32_t i = 0; i < reference->kernel->num_views; i++) {
    const tl_view *view = &reference->kernel->views[i];
    const tl_reference_buffer *base = tl_reference_find(reference, view->base);
    if (!base) continue;
    tl_reference_buffer shape = *base;
    tl_const dtype;
    if (!view_dims(reference, view, &shape) || !tl_env_eval(reference->env, view->dtype, reference->diags, &dtype)) {
      return tl_status_make(TL_STATUS_DIAGNOSTICS, "the view has errors");
    }
    // Views of another element type have no elements in the float64 world; a use of one is an unknown name.
    if (dtype.kind != TL_CONST_DTYPE || dtype.dtype != base->dtype || shape.count != base->count) continue;
    tl_reference_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer) return tl_status_make(TL_STATUS_LIMIT, "out of memory");
    *buffer = shape;
    buffer->name = view->name;
    buffer->is_view = true;
    tl_vec_push(&reference->buffers, buffer);
  }
  return TL_OK;
}

void tl_reference_get(const tl_reference_buffer *buffer, tl_array *array) {
  for (uint64_t i = 0; i < array->count; i++) {
    if (!tl_dtype_is_float(array->dtype)) {
      int64_t value = buffer->is_float ? (int64_t)((double *)buffer->values)[i] : ((int64_t *)buffer->values)[i];
      tl_dtype_store_int(array->dtype, array->data, i, value);
    } else {
      double value = buffer->is_float ? ((double *)buffer->values)[i] : (double)((int64_t *)buffer->values)[i];
      tl_dtype_store_float(array->dtype, array->data, i, value);
    }
  }
}

// ---- running units

typedef struct unit_task {
  tl_reference_fn *run;
  void **buffers;
  long long arguments[3];  // unit, lo, hi
} unit_task;

static void *run_task(void *user) {
  const unit_task *task = user;
  task->run(task->buffers, task->arguments);
  return NULL;
}

enum { MAX_THREADS = 64 };

// Large statements are cut along their outermost index. The results do not depend on how.
static void run_unit(const tl_reference *reference, const tl_ref_unit *unit, long long number, tl_reference_fn *run,
                     void **buffers) {
  long threads = reference->threads > 0 ? reference->threads : sysconf(_SC_NPROCESSORS_ONLN);
  int64_t extent = unit->can_split ? unit->hi - unit->lo : 1;
  if (!unit->can_split || unit->work < 2e7 || threads < 1) threads = 1;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (threads > extent) threads = extent > 0 ? (long)extent : 1;
  unit_task tasks[MAX_THREADS];
  pthread_t ids[MAX_THREADS];
  bool is_started[MAX_THREADS] = {false};
  for (long t = 0; t < threads; t++) {
    tasks[t] =
        (unit_task){run, buffers, {number, unit->lo + extent * t / threads, unit->lo + extent * (t + 1) / threads}};
    if (t + 1 < threads) is_started[t] = pthread_create(&ids[t], NULL, run_task, &tasks[t]) == 0;
    if (!is_started[t]) run_task(&tasks[t]);
  }
  for (long t = 0; t < threads; t++) {
    if (is_started[t]) pthread_join(ids[t], NULL);
  }
}

// The whole module: entry block, a switch over the units, their code.
static void assemble(tl_ref_code *code, tl_strbuf *out) {
  tl_strbuf_append_c(out, "define void @run(ptr %buffers, ptr %ints) {\nentry:\n");
  tl_strbuf_append(out, tl_strbuf_view(&code->allocas));
  tl_strbuf_appendf(out,
                    "  %%round_helper = load ptr, ptr %%buffers\n"
                    "  %%bitcast_slot = getelementptr ptr, ptr %%buffers, i64 %d\n"
                    "  %%bitcast_helper = load ptr, ptr %%bitcast_slot\n"
                    "  %%cast_slot = getelementptr ptr, ptr %%buffers, i64 %d\n"
                    "  %%cast_helper = load ptr, ptr %%cast_slot\n"
                    "  %%lo_slot = getelementptr i64, ptr %%ints, i64 1\n"
                    "  %%hi_slot = getelementptr i64, ptr %%ints, i64 2\n"
                    "  %%arg_unit = load i64, ptr %%ints\n"
                    "  %%arg_lo = load i64, ptr %%lo_slot\n"
                    "  %%arg_hi = load i64, ptr %%hi_slot\n",
                    TL_REF_SLOT_BITCAST, TL_REF_SLOT_CAST);
  for (size_t i = 0; i < code->reference->buffers.len; i++) {
    tl_strbuf_appendf(out,
                      "  %%slot%zu = getelementptr ptr, ptr %%buffers, i64 %zu\n  %%buf%zu = load ptr, ptr %%slot%zu\n",
                      i, i + TL_REF_SLOT_BUFFERS, i, i);
  }
  tl_strbuf_append_c(out, "  switch i64 %arg_unit, label %none [");
  for (size_t i = 0; i < code->units.len; i++) tl_strbuf_appendf(out, " i64 %zu, label %%unit%zu", i, i);
  tl_strbuf_append_c(out, " ]\nnone:\n  ret void\n");
  tl_strbuf_append(out, tl_strbuf_view(&code->body));
  tl_strbuf_append_c(out, "}\n");
  tl_ref_declare_functions(out);
}

static tl_status run_code(tl_ref_code *code) {
  tl_reference *reference = code->reference;
  tl_strbuf text;
  tl_strbuf_init(&text);
  assemble(code, &text);
  tl_reference_fn *run = NULL;
  void *handle = NULL;
  double work = 0;
  for (size_t i = 0; i < code->units.len; i++) work += code->units.items[i].work;
  tl_status status = tl_reference_jit_compile(tl_strbuf_view(&text), work < SHORT_WORK, &run, &handle);
  tl_strbuf_fini(&text);
  if (status) return status;
  void **buffers = tl_xcalloc(reference->buffers.len + TL_REF_SLOT_BUFFERS, sizeof *buffers);
  double (*round_helper)(int32_t, double) = tl_ref_helper_round;
  uint64_t (*bitcast_helper)(int32_t, int32_t, uint64_t) = tl_ref_helper_bitcast;
  double (*cast_helper)(int32_t, int32_t, double, uint32_t) = tl_ref_helper_cast;
  memcpy(&buffers[TL_REF_SLOT_CAST], &cast_helper, sizeof cast_helper);
  memcpy(&buffers[TL_REF_SLOT_ROUND], &round_helper, sizeof round_helper);
  memcpy(&buffers[TL_REF_SLOT_BITCAST], &bitcast_helper, sizeof bitcast_helper);
  for (size_t i = 0; i < reference->buffers.len; i++)
    buffers[i + TL_REF_SLOT_BUFFERS] = reference->buffers.items[i]->values;
  for (size_t i = 0; i < code->units.len; i++) run_unit(reference, &code->units.items[i], (long long)i, run, buffers);
  free(buffers);
  tl_reference_jit_destroy(handle);
  return TL_OK;
}

tl_status tl_reference_run(tl_reference *reference, const tl_reference_stmt *stmts, uint32_t num_stmts) {
  if (num_stmts == 0) return TL_OK;
  tl_ref_code code = {.reference = reference};
  tl_strbuf_init(&code.allocas);
  tl_strbuf_init(&code.body);
  bool ok = true;
  for (uint32_t i = 0; ok && i < num_stmts; i++) ok = tl_ref_emit_stmt(&code, &stmts[i]);
  tl_status status = TL_OK;
  if (!ok)
    status = tl_status_make(TL_STATUS_DIAGNOSTICS, "the reference has errors");
  else if (!reference->shapes_only)
    status = run_code(&code);
  tl_strbuf_fini(&code.allocas);
  tl_strbuf_fini(&code.body);
  tl_vec_fini(&code.scope);
  tl_vec_fini(&code.units);
  tl_vec_fini(&code.hoisted);
  return status;
}
