// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/data/generate.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/sema/sema_fold.h"
#include "harness/data/npy.h"
#include "harness/data/random.h"
#include "support/strbuf.h"

typedef struct generation {
  const tl_generate_request *request;
  tl_diags *diags;
  tl_array *out;
  const tl_expr *call;
} generation;

static bool report(const generation *g, const tl_expr *at, const char *format, ...) TL_PRINTF_LIKE(3, 4);
static bool report(const generation *g, const tl_expr *at, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tl_diag_report(g->diags, TL_DIAG_CHECK_INPUT, at ? at->loc : g->request->loc, "input `%.*s`: %s",
                 TL_STR_ARG(g->request->name), text);
  return false;
}

// Argument `index` as a number; `fallback` when there are fewer.
static bool number(const generation *g, uint32_t index, double fallback, double *out) {
  *out = fallback;
  if (!g->call || index >= g->call->num_operands) return true;
  tl_const value;
  if (!tl_env_eval(g->request->env, g->call->operands[index], g->diags, &value)) return false;
  switch (value.kind) {
    case TL_CONST_INT:
    case TL_CONST_BOOL:
      *out = (double)value.i;
      return true;
    case TL_CONST_FLOAT:
      *out = value.f;
      return true;
    case TL_CONST_DTYPE:
    case TL_CONST_DYNAMIC:
      break;
  }
  return report(g, g->call->operands[index], "expected a number");
}

// An integer; also a float that is one.
static bool integer(const generation *g, uint32_t index, int64_t fallback, int64_t *out) {
  *out = fallback;
  if (!g->call || index >= g->call->num_operands) return true;
  tl_const value;
  if (!tl_env_eval(g->request->env, g->call->operands[index], g->diags, &value)) return false;
  bool is_whole = value.kind == TL_CONST_FLOAT && value.f == floor(value.f) && fabs(value.f) < 0x1p62;
  if (is_whole) value = tl_const_int((int64_t)value.f);
  if (value.kind != TL_CONST_INT && value.kind != TL_CONST_BOOL) {
    return report(g, g->call->operands[index], "expected an integer");
  }
  *out = value.i;
  return true;
}

// Of a float dtype.
static void store(const generation *g, uint64_t i, double value) {
  if (!g->out->data) return;
  tl_dtype_store_float(g->out->dtype, g->out->data, i, value);
}

static void store_int(const generation *g, uint64_t i, int64_t value) {
  if (!g->out->data) return;
  tl_dtype dtype = g->out->dtype;
  if (tl_dtype_is_float(dtype)) {
    tl_dtype_store_float(dtype, g->out->data, i, (double)value);
  } else {
    tl_dtype_store_int(dtype, g->out->data, i, value);
  }
}

// Whether the integers lo … hi are values of the dtype.
static bool validate_int_range(const generation *g, int64_t lo, int64_t hi) {
  tl_dtype dtype = g->out->dtype;
  if (tl_dtype_is_float(dtype)) return true;
  if (lo >= tl_dtype_int_min(dtype) && (hi < 0 || (uint64_t)hi <= tl_dtype_int_max(dtype))) return true;
  return report(g, g->call, "the values %lld to %lld do not fit %s", (long long)lo, (long long)hi,
                tl_dtype_name(dtype));
}

static bool need_float(const generation *g, const char *what) {
  if (tl_dtype_is_float(g->out->dtype)) return true;
  return report(g, g->call, "%s makes floating-point numbers, the argument is %s (use ints(lo, hi))", what,
                tl_dtype_name(g->out->dtype));
}

// ---- generators whose elements do not depend on each other: large arrays are made by several threads

typedef struct span {
  const generation *g;
  void (*fill)(const struct span *span);
  double a, b;          // of the generator
  int64_t lo;           // ints
  uint64_t num_values;  // ints; 0 stands for 2^64
  uint64_t from, to;    // elements
} span;

static void *run_span(void *user) {
  const span *part = user;
  part->fill(part);
  return NULL;
}

// Elements of one thread; a multiple of what shares a byte.
enum { SPAN_ELEMENTS = 1 << 18, MAX_SPAN_THREADS = 32 };

static bool fill_all(span whole) {
  if (!whole.g->out->data) return true;
  uint64_t count = whole.g->out->count;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t threads = count / SPAN_ELEMENTS;
  if (cores > 0 && threads > (uint64_t)cores) threads = (uint64_t)cores;
  if (threads > MAX_SPAN_THREADS) threads = MAX_SPAN_THREADS;
  if (threads < 1) threads = 1;
  uint64_t each = (count / threads / SPAN_ELEMENTS + 1) * SPAN_ELEMENTS;
  span parts[MAX_SPAN_THREADS];
  pthread_t ids[MAX_SPAN_THREADS];
  bool is_running[MAX_SPAN_THREADS] = {false};
  for (uint64_t i = 0; i < threads; i++) {
    parts[i] = whole;
    parts[i].from = i * each < count ? i * each : count;
    parts[i].to = i + 1 < threads && (i + 1) * each < count ? (i + 1) * each : count;
    // The last one is made here, as are all for which there is no thread.
    is_running[i] = i + 1 < threads && pthread_create(&ids[i], NULL, run_span, &parts[i]) == 0;
    if (!is_running[i]) run_span(&parts[i]);
  }
  for (uint64_t i = 0; i < threads; i++) {
    if (is_running[i]) pthread_join(ids[i], NULL);
  }
  return true;
}

static void fill_normal(const span *s) {
  for (uint64_t i = s->from; i < s->to; i++) store(s->g, i, s->a + s->b * tl_random_normal(s->g->request->key, i));
}

// A number of a generator that would make the whole array meaningless when it is none.
static bool finite_number(const generation *g, uint32_t index, double fallback, double *out) {
  if (!number(g, index, fallback, out)) return false;
  return isfinite(*out) || report(g, g->call->operands[index], "expected a finite number");
}

static bool gen_normal(const generation *g) {
  span whole = {.g = g, .fill = fill_normal};
  if (!need_float(g, "normal") || !finite_number(g, 0, 0, &whole.a) || !finite_number(g, 1, 1, &whole.b)) return false;
  if (whole.b < 0) return report(g, g->call, "normal(%g, %g) has a negative deviation", whole.a, whole.b);
  return fill_all(whole);
}

static void fill_uniform(const span *s) {
  for (uint64_t i = s->from; i < s->to; i++) {
    store(s->g, i, s->a + (s->b - s->a) * tl_random_uniform(s->g->request->key, i));
  }
}

static bool gen_uniform(const generation *g) {
  span whole = {.g = g, .fill = fill_uniform};
  if (!need_float(g, "uniform") || !finite_number(g, 0, 0, &whole.a) || !finite_number(g, 1, 1, &whole.b)) return false;
  if (whole.a > whole.b) return report(g, g->call, "uniform(%g, %g) is empty", whole.a, whole.b);
  return fill_all(whole);
}

static void fill_ints(const span *s) {
  for (uint64_t i = s->from; i < s->to; i++) {
    store_int(s->g, i, (int64_t)((uint64_t)s->lo + tl_random_below(s->g->request->key, i, s->num_values)));
  }
}

static bool gen_ints(const generation *g) {
  int64_t lo, hi;
  if (!integer(g, 0, 0, &lo) || !integer(g, 1, 0, &hi)) return false;
  if (lo > hi) return report(g, g->call, "ints(%lld, %lld) is empty", (long long)lo, (long long)hi);
  if (!validate_int_range(g, lo, hi)) return false;
  return fill_all((span){.g = g, .fill = fill_ints, .lo = lo, .num_values = (uint64_t)hi - (uint64_t)lo + 1});
}

// arange and const of integers are exact, and every value is one of the dtype.
static bool gen_int_steps(const generation *g, int64_t start, int64_t step) {
  int64_t last = start, steps = g->out->count ? (int64_t)g->out->count - 1 : 0;
  if (__builtin_mul_overflow(steps, step, &last) || __builtin_add_overflow(start, last, &last))
    return report(g, g->call, "the values are too large");
  if (!validate_int_range(g, start < last ? start : last, start < last ? last : start)) return false;
  if (!g->out->data) return true;
  for (uint64_t i = 0; i < g->out->count; i++) store_int(g, i, start + step * (int64_t)i);
  return true;
}

static bool gen_arange(const generation *g) {
  if (!tl_dtype_is_float(g->out->dtype)) {
    int64_t first, by;
    return integer(g, 0, 0, &first) && integer(g, 1, 1, &by) && gen_int_steps(g, first, by);
  }
  double start, step;
  if (!finite_number(g, 0, 0, &start) || !finite_number(g, 1, 1, &step)) return false;
  if (!g->out->data) return true;
  for (uint64_t i = 0; i < g->out->count; i++) store(g, i, start + step * (double)i);
  return true;
}

// `from_call`: the value is the call's operand. Of floats infinities and NaN too.
static bool gen_const(const generation *g, bool from_call, int64_t fallback) {
  if (!tl_dtype_is_float(g->out->dtype)) {
    int64_t whole = fallback;
    return (!from_call || integer(g, 0, 0, &whole)) && gen_int_steps(g, whole, 0);
  }
  double value = (double)fallback;
  if (from_call && !number(g, 0, 0, &value)) return false;
  if (!g->out->data) return true;
  for (uint64_t i = 0; i < g->out->count; i++) store(g, i, value);
  return true;
}

static bool gen_permutation(const generation *g) {
  uint64_t count = g->out->count;
  if (count > 0 && !validate_int_range(g, 0, (int64_t)count - 1)) return false;
  if (!g->out->data) return true;
  int64_t *order = tl_xmalloc((count + 1) * sizeof *order);
  for (uint64_t i = 0; i < count; i++) order[i] = (int64_t)i;
  for (uint64_t i = count; i > 1; i--) {  // Fisher-Yates
    uint64_t other = tl_random_below(g->request->key, i, i);
    int64_t kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
  for (uint64_t i = 0; i < count; i++) store_int(g, i, order[i]);
  free(order);
  return true;
}

static int compare_int64(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// 0, non-decreasing, total. About one in four repeats its predecessor (an empty group).
static bool gen_offsets(const generation *g) {
  int64_t total;
  if (!integer(g, 0, 0, &total)) return false;
  uint64_t count = g->out->count;
  if (g->out->rank != 1 || count < 2)
    return report(g, g->call, "offsets fill a one-dimensional argument of at least 2");
  if (total < 0) return report(g, g->call, "the total is negative");
  if (!validate_int_range(g, 0, total)) return false;
  if (!g->out->data) return true;
  int64_t *values = tl_xmalloc(count * sizeof *values);
  for (uint64_t i = 0; i < count; i++) {
    values[i] = (int64_t)tl_random_below(g->request->key, i, (uint64_t)total + 1);
  }
  values[0] = 0;
  values[count - 1] = total;
  qsort(values, count, sizeof *values, compare_int64);
  for (uint64_t i = 1; i + 1 < count; i++) {
    if (tl_random_below(g->request->key, count + i, 4) == 0) values[i] = values[i - 1];
  }
  for (uint64_t i = 0; i < count; i++) store_int(g, i, values[i]);
  free(values);
  return true;
}

static bool gen_list(const generation *g) {
  if (g->call->num_operands != g->out->count) {
    return report(g, g->call, "the list has %u values, the argument %llu elements, row by row in one flat list",
                  g->call->num_operands, (unsigned long long)g->out->count);
  }
  for (uint32_t i = 0; i < g->call->num_operands; i++) {
    if (tl_dtype_is_float(g->out->dtype)) {
      double value;
      if (!number(g, i, 0, &value)) return false;
      store(g, i, value);
    } else {
      int64_t value;
      if (!integer(g, i, 0, &value) || !validate_int_range(g, value, value)) return false;
      store_int(g, i, value);
    }
  }
  return true;
}

// A file that holds the argument has at most 8 bytes an element.
enum { MAX_NPY_HEADER_BYTES = 1 << 20 };

static bool read_npy(const generation *g, tl_str path) {
  if (!g->out->data) return true;
  tl_strbuf full;
  tl_strbuf_init(&full);
  bool is_absolute = path.len > 0 && path.data[0] == '/';
  if (g->request->directory && g->request->directory[0] && !is_absolute)
    tl_strbuf_appendf(&full, "%s/", g->request->directory);
  tl_strbuf_append(&full, path);
  tl_array file = {0}, converted = {0};
  tl_status status = tl_npy_read(tl_strbuf_c(&full), 8 * g->out->count + MAX_NPY_HEADER_BYTES, &file);
  if (!status) status = tl_array_convert(&file, g->request->dtype, &converted);
  bool ok = !status;
  if (status) report(g, g->request->generator, "%s", tl_status_message(status));
  tl_status_free(status);
  if (ok && (converted.rank != g->out->rank ||
             memcmp(converted.shape, g->out->shape, sizeof(int64_t) * (size_t)converted.rank) != 0)) {
    char expected[128], given[128];
    tl_array_describe(g->out, expected, sizeof expected);
    tl_array_describe(&converted, given, sizeof given);
    ok = report(g, g->request->generator, "expected %s, the file holds %s", expected, given);
  }
  if (ok) memcpy(g->out->data, converted.data, converted.bytes);
  tl_array_fini(&file);
  tl_array_fini(&converted);
  tl_strbuf_fini(&full);
  return ok;
}

typedef enum generator_id {
#define TL_GENERATOR(ID, name, min_args, max_args) GENERATOR_##ID,
#include "frontend/spec/generators.def"
#undef TL_GENERATOR
} generator_id;

static const struct {
  const char *name;
  uint32_t min_args, max_args;
} generators[] = {
#define TL_GENERATOR(ID, name, min_args, max_args) {name, min_args, max_args},
#include "frontend/spec/generators.def"
#undef TL_GENERATOR
};
enum { NUM_GENERATORS = sizeof generators / sizeof generators[0] };

static bool run_generator(const generation *g, generator_id id) {
  switch (id) {
    case GENERATOR_NORMAL:
      return gen_normal(g);
    case GENERATOR_UNIFORM:
      return gen_uniform(g);
    case GENERATOR_INTS:
      return gen_ints(g);
    case GENERATOR_ARANGE:
      return gen_arange(g);
    case GENERATOR_ONES:
      return gen_const(g, false, 1);
    case GENERATOR_ABSENT:  // what a reference reads of it
    case GENERATOR_ZEROS:
      return gen_const(g, false, 0);
    case GENERATOR_CONST:
      return gen_const(g, true, 0);
    case GENERATOR_PERMUTATION:
      return gen_permutation(g);
    case GENERATOR_OFFSETS:
      return gen_offsets(g);
  }
  return false;
}

static bool report_unknown(const generation *g, tl_str name) {
  tl_strbuf names;
  tl_strbuf_init(&names);
  for (size_t i = 0; i < NUM_GENERATORS; i++) tl_strbuf_appendf(&names, "%s, ", generators[i].name);
  report(g, g->request->generator, "unknown generator `%.*s` (there are %sa list and .npy files)", TL_STR_ARG(name),
         tl_strbuf_c(&names));
  tl_strbuf_fini(&names);
  return false;
}

static bool run_named(const generation *g, tl_str name) {
  uint32_t given = g->call ? g->call->num_operands : 0;
  if (tl_str_is(name, "list")) return gen_list(g);
  for (size_t i = 0; i < NUM_GENERATORS; i++) {
    if (!tl_str_is(name, generators[i].name)) continue;
    uint32_t least = generators[i].min_args, most = generators[i].max_args;
    if (given >= least && given <= most) return run_generator(g, (generator_id)i);
    char range[32];
    snprintf(range, sizeof range, least == most ? "%u" : "%u to %u", least, most);
    return report(g, g->request->generator, "%s takes %s argument%s, given %u", generators[i].name, range,
                  most == 1 ? "" : "s", given);
  }
  return tl_str_ends_with(name, ".npy") ? read_npy(g, name) : report_unknown(g, name);
}

static bool run(generation *g) {
  const tl_expr *generator = g->request->generator;
  if (!generator) {
    if (tl_dtype_is_float(g->request->dtype)) return gen_normal(g);
    tl_diag *diag = tl_diag_report(g->diags, TL_DIAG_CHECK_NO_GENERATOR, g->request->loc,
                                   "the %s argument `%.*s` needs a generator", tl_dtype_name(g->request->dtype),
                                   TL_STR_ARG(g->request->name));
    tl_diag_add_hint(g->diags, diag, "for example `%.*s: ints(0, %d)` under `check: inputs:`",
                     TL_STR_ARG(g->request->name), g->request->dtype == TL_DTYPE_BOOL ? 1 : 7);
    return false;
  }
  if (generator->kind == TL_EXPR_STRING) return read_npy(g, generator->text);
  if (generator->kind == TL_EXPR_CALL) {
    g->call = generator;
    return run_named(g, generator->text);
  }
  if (generator->kind == TL_EXPR_NAME) return run_named(g, generator->text);
  return report(g, generator, "expected a generator, a list or a .npy path");
}

tl_status tl_generate(const tl_generate_request *request, tl_diags *diags, tl_array *out) {
  TL_TRY(tl_array_init(out, request->dtype, request->rank, request->shape));
  generation g = {.request = request, .diags = diags, .out = out};
  if (run(&g)) return TL_OK;
  tl_array_fini(out);
  return tl_status_make(TL_STATUS_DIAGNOSTICS, "the input '%.*s' cannot be made", TL_STR_ARG(request->name));
}

bool tl_generate_validate(const tl_generate_request *request, tl_diags *diags) {
  tl_array shape;
  tl_status status = tl_array_init_shape(&shape, request->dtype, request->rank, request->shape);
  generation g = {.request = request, .diags = diags, .out = &shape};
  bool ok = !status && run(&g);
  if (status) report(&g, request->generator, "%s", tl_status_message(status));
  tl_status_free(status);
  return ok;
}
