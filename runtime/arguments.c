// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/arguments.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/status.h"

// What a name (a dynamic param or a run-time stride) is bound to, and by whom.
typedef struct bound_name {
  bool is_bound;
  int64_t value;
  const char *from;  // the argument that determined it; NULL: given by name
} bound_name;

typedef struct binder {
  const tl_manifest_kernel *kernel;
  const tl_launch_facts *facts;
  tl_launch_plan *plan;
  const tl_argument **given;  // one a param; NULL where none was given
  bound_name *names;          // one a param; used by DYNAMIC and STRIDE
} binder;

static bool is_visible(const tl_manifest_param *param) {
  return param->kind == TL_MPARAM_TENSOR || param->kind == TL_MPARAM_SCALAR;
}

static bool is_absent(const tl_manifest_param *param, const tl_argument *given) {
  return param->is_optional && (!given || (given->kind == TL_ARGUMENT_TENSOR && !given->tensor.data));
}

static tl_status wrong(const char *name, const char *format, ...) TL_PRINTF_LIKE(2, 3);
static tl_status wrong(const char *name, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "argument '%s': %s", name, text);
}

// "A, B and C": the arguments that the kernel takes.
static void list_arguments(const tl_manifest_kernel *kernel, tl_strbuf *out) {
  bool first = true;
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (!is_visible(&kernel->params[i])) continue;
    tl_strbuf_appendf(out, "%s%s", first ? "" : ", ", kernel->params[i].name);
    first = false;
  }
  if (first) tl_strbuf_append_c(out, "none");
}

static tl_status count_error(const tl_manifest_kernel *kernel, const char *format, ...) TL_PRINTF_LIKE(2, 3);
static tl_status count_error(const tl_manifest_kernel *kernel, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tl_strbuf list;
  tl_strbuf_init(&list);
  list_arguments(kernel, &list);
  tl_status status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "%s; '%s' takes the arguments: %s", text, kernel->name,
                                    tl_strbuf_c(&list));
  tl_strbuf_fini(&list);
  return status;
}

static int find_param(const tl_manifest_kernel *kernel, const char *name) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (strcmp(kernel->params[i].name, name) == 0) return (int)i;
  }
  return -1;
}

// Gives every argument its param: the named ones first, the others what is left in order.
static tl_status match(binder *b, const tl_argument *arguments, size_t num_arguments) {
  const tl_manifest_kernel *kernel = b->kernel;
  for (size_t i = 0; i < num_arguments; i++) {
    if (!arguments[i].name) continue;
    int index = find_param(kernel, arguments[i].name);
    if (index < 0 || kernel->params[index].kind == TL_MPARAM_WORKSPACE ||
        kernel->params[index].kind == TL_MPARAM_TENSOR_MAP) {
      return count_error(kernel, "unknown argument '%s'", arguments[i].name);
    }
    if (b->given[index]) return count_error(kernel, "argument '%s' is given twice", kernel->params[index].name);
    b->given[index] = &arguments[i];
  }
  uint32_t next = 0;
  for (size_t i = 0; i < num_arguments; i++) {
    if (arguments[i].name) continue;
    while (next < kernel->num_params && (!is_visible(&kernel->params[next]) || b->given[next])) next++;
    if (next == kernel->num_params) return count_error(kernel, "too many arguments");
    b->given[next] = &arguments[i];
  }
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (is_visible(&kernel->params[i]) && !b->given[i] && !kernel->params[i].is_optional) {
      return count_error(kernel, "argument '%s' is missing", kernel->params[i].name);
    }
  }
  return TL_OK;
}

static tl_status validate_kinds(const binder *b) {
  for (uint32_t i = 0; i < b->kernel->num_params; i++) {
    const tl_manifest_param *param = &b->kernel->params[i];
    const tl_argument *given = b->given[i];
    if (!given || is_absent(param, given)) continue;
    if (param->kind == TL_MPARAM_TENSOR) {
      if (given->kind != TL_ARGUMENT_TENSOR) return wrong(param->name, "expected a tensor, given a number");
      const tl_tensor *tensor = &given->tensor;
      const char *dtype = tensor->dtype ? tensor->dtype : "(none)";
      if (tl_dtype_parse(tl_str_from(dtype)) != param->dtype) {
        return wrong(param->name, "expected dtype %s, given %s", tl_dtype_name(param->dtype), dtype);
      }
      if (tensor->rank != param->rank) {
        return wrong(param->name, "expected %d dimensions, given %d", param->rank, tensor->rank);
      }
      if (param->rank > 0 && !tensor->shape) return wrong(param->name, "the shape is NULL");
      for (int32_t d = 0; d < tensor->rank; d++) {
        if (tensor->shape[d] < 0) {
          return wrong(param->name, "dimension %d is negative: %lld", d, (long long)tensor->shape[d]);
        }
      }
    } else if (given->kind == TL_ARGUMENT_TENSOR) {
      return wrong(param->name, "expected a number, given a tensor");
    } else if (param->kind != TL_MPARAM_SCALAR && given->kind != TL_ARGUMENT_INT) {
      return wrong(param->name, "expected an integer, given a floating-point number");
    }
  }
  return TL_OK;
}

// The stride of dimension `d` in elements; dense where the caller gave none.
static bool stride_of(const tl_tensor *tensor, int32_t d, int64_t *out) {
  if (tensor->strides) {
    *out = tensor->strides[d];
    return true;
  }
  *out = 1;
  for (int32_t i = d + 1; i < tensor->rank; i++) {
    if (__builtin_mul_overflow(*out, tensor->shape[i], out)) return false;
  }
  return true;
}

// Whether the stride of dimension `d` is ever used: not where the dimension has at most one element.
static bool uses_stride(const tl_tensor *tensor, int32_t d) {
  for (int32_t i = 0; i < tensor->rank; i++)
    if (tensor->shape[i] == 0) return false;
  return tensor->shape[d] != 1;
}

static int64_t most_of(const tl_manifest_param *name) {
  return name->dtype == TL_DTYPE_I64 ? TL_WIDE_MAX : INT32_MAX;
}

// A value for a name that only strides tell which nobody uses, and which may be anything (torch gives dimensions of one
// element any): what was given where the name can have it, else what a dense tensor has, rounded up to the divisor.
static int64_t unused_stride(const tl_manifest_param *name, const tl_tensor *tensor, int32_t d, int64_t given) {
  int64_t divisor = name->kind == TL_MPARAM_DYNAMIC && name->divisor > 1 ? name->divisor : 1, dense;
  if (name->kind != TL_MPARAM_DYNAMIC || (given >= 0 && given <= most_of(name) && given % divisor == 0)) return given;
  const tl_tensor copy = {.rank = tensor->rank, .shape = tensor->shape};
  if (!stride_of(&copy, d, &dense) || dense > most_of(name) - divisor) return given;
  return (dense + divisor - 1) / divisor * divisor;
}

// What names are taken from, in this order: a stride that nobody uses tells nothing of a size.
typedef enum name_source { FROM_DIMS, FROM_STRIDES, FROM_UNUSED_STRIDES, NUM_NAME_SOURCES } name_source;

// A bare dynamic name takes its value from the first tensor that has it.
static void bind_name(binder *b, const tl_manifest_param *param, const tl_tensor *tensor, int32_t d,
                      name_source source) {
  const char *name = tl_mexpr_as_name(source == FROM_DIMS ? param->dims[d] : param->strides[d]);
  int index = name ? find_param(b->kernel, name) : -1;
  if (index < 0) return;
  const tl_manifest_param *bound = &b->kernel->params[index];
  if ((bound->kind != TL_MPARAM_DYNAMIC && bound->kind != TL_MPARAM_STRIDE) || b->names[index].is_bound) return;
  int64_t value = tensor->shape[d];
  if (source != FROM_DIMS && (uses_stride(tensor, d) != (source == FROM_STRIDES) || !stride_of(tensor, d, &value)))
    return;
  if (source == FROM_UNUSED_STRIDES) value = unused_stride(bound, tensor, d, value);
  b->names[index] = (bound_name){true, value, param->name};
}

static bool has_unbound(const binder *b) {
  for (uint32_t i = 0; i < b->kernel->num_params; i++) {
    tl_manifest_param_kind kind = b->kernel->params[i].kind;
    if ((kind == TL_MPARAM_DYNAMIC || kind == TL_MPARAM_STRIDE) && !b->names[i].is_bound) return true;
  }
  return false;
}

static void bind_by_tensors(binder *b) {
  for (int source = FROM_DIMS; source < NUM_NAME_SOURCES && has_unbound(b); source++) {
    for (uint32_t i = 0; i < b->kernel->num_params; i++) {
      const tl_manifest_param *param = &b->kernel->params[i];
      if (param->kind != TL_MPARAM_TENSOR || is_absent(param, b->given[i])) continue;
      for (int32_t d = 0; d < param->rank; d++) bind_name(b, param, &b->given[i]->tensor, d, (name_source)source);
    }
  }
}

static tl_status bind_names(binder *b) {
  const tl_manifest_kernel *kernel = b->kernel;
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    bool is_name = kernel->params[i].kind == TL_MPARAM_DYNAMIC || kernel->params[i].kind == TL_MPARAM_STRIDE;
    if (is_name && b->given[i]) b->names[i] = (bound_name){true, b->given[i]->int_value, NULL};
  }
  bind_by_tensors(b);
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    if (param->kind != TL_MPARAM_DYNAMIC && param->kind != TL_MPARAM_STRIDE) continue;
    const bound_name *name = &b->names[i];
    if (!name->is_bound) {
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                            "the dynamic name '%s' has no value: no argument's shape determines it, so give it by name",
                            param->name);
    }
    int64_t most = most_of(param);
    if (param->kind == TL_MPARAM_DYNAMIC && (name->value < 0 || name->value > most)) {
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "the dynamic name '%s' is %lld, expected 0 to %lld",
                            param->name, (long long)name->value, (long long)most);
    }
    if (param->kind == TL_MPARAM_DYNAMIC && param->divisor > 1 && name->value % param->divisor != 0) {
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                            "%s%s%sthe dynamic name '%s' is %lld, expected a multiple of %lld",
                            name->from ? "argument '" : "", name->from ? name->from : "", name->from ? "': " : "",
                            param->name, (long long)name->value, (long long)param->divisor);
    }
  }
  return TL_OK;
}

static void collect_bindings(binder *b) {
  tl_launch_plan *plan = b->plan;
  plan->bindings = TL_NEW_ARRAY(&plan->arena, tl_mbinding, b->kernel->num_params + 2);
  for (uint32_t i = 0; i < b->kernel->num_params; i++) {
    if (!b->names[i].is_bound) continue;
    plan->bindings[plan->num_bindings++] = (tl_mbinding){b->kernel->params[i].name, b->names[i].value};
  }
  plan->bindings[plan->num_bindings++] = (tl_mbinding){"num_sms", b->facts->num_sms};
  plan->bindings[plan->num_bindings++] = (tl_mbinding){"resident_blocks", b->facts->resident_blocks};
}

static tl_status eval(const binder *b, const tl_mexpr *expr, int64_t *out) {
  return tl_mexpr_eval(expr, b->plan->bindings, b->plan->num_bindings, out);
}

// " (K is 64 from argument 'A')" for a bare name; what else an expression is, follows from its text.
static void explain(const binder *b, const tl_mexpr *expr, tl_strbuf *out) {
  int64_t constant;
  if (tl_mexpr_is_int(expr, &constant)) return;
  const char *name = tl_mexpr_as_name(expr);
  int index = name ? find_param(b->kernel, name) : -1;
  tl_strbuf_append_c(out, " (");
  tl_mexpr_print(expr, out);
  if (index >= 0 && b->names[index].from) tl_strbuf_appendf(out, " of argument '%s'", b->names[index].from);
  tl_strbuf_append_c(out, ")");
}

static tl_status validate_shape(const binder *b, const tl_manifest_param *param, const tl_tensor *tensor) {
  for (int32_t pass = 0; pass < 2; pass++) {
    for (int32_t d = 0; d < param->rank; d++) {
      const tl_mexpr *expr = pass == 0 ? param->dims[d] : param->strides[d];
      if (pass == 1 && !uses_stride(tensor, d)) continue;
      int64_t expected, given = tensor->shape[d];
      tl_status status = eval(b, expr, &expected);
      if (status) return tl_status_annotate(status, "argument '%s'", param->name);
      if (pass == 1 && !stride_of(tensor, d, &given)) return wrong(param->name, "the shape is too large");
      if (given == expected) continue;
      tl_strbuf why;
      tl_strbuf_init(&why);
      explain(b, expr, &why);
      status = wrong(param->name, "%s %d: expected %lld%s, given %lld", pass == 0 ? "dimension" : "stride of dimension",
                     d, (long long)expected, tl_strbuf_c(&why), (long long)given);
      tl_strbuf_fini(&why);
      return status;
    }
  }
  return TL_OK;
}

static tl_status validate_pointer(const binder *b, const tl_manifest_param *param, const tl_tensor *tensor) {
  for (int32_t d = 0; d < param->rank; d++) {
    if (tensor->shape[d] == 0) return TL_OK;  // nothing will be read or written
  }
  if (!tensor->data) return wrong(param->name, "expected a device pointer, given NULL");
  if (param->align > 1 && (uintptr_t)tensor->data % (uintptr_t)param->align != 0) {
    return wrong(param->name, "expected a pointer aligned to %lld bytes, given 0x%llx", (long long)param->align,
                 (unsigned long long)(uintptr_t)tensor->data);
  }
  return b->facts->validate_pointer ? b->facts->validate_pointer(b->facts->user, param->name, tensor->data) : TL_OK;
}

static tl_status store_scalar(const tl_manifest_param *param, const tl_argument *given, void *slot) {
  if (tl_dtype_is_float(param->dtype)) {
    double value = given->kind == TL_ARGUMENT_INT ? (double)given->int_value : given->float_value;
    tl_dtype_store_float(param->dtype, slot, 0, value);
    return TL_OK;
  }
  if (given->kind == TL_ARGUMENT_FLOAT) {
    return wrong(param->name, "expected %s, given the floating-point number %g", tl_dtype_name(param->dtype),
                 given->float_value);
  }
  int64_t least = tl_dtype_int_min(param->dtype), value = given->int_value;
  uint64_t most = tl_dtype_int_max(param->dtype);
  // A u64 beyond int64 travels as its bits.
  bool fits = param->dtype == TL_DTYPE_U64 || (value >= least && (value < 0 || (uint64_t)value <= most));
  if (!fits) {
    return wrong(param->name, "expected %s (%lld to %llu), given %lld", tl_dtype_name(param->dtype), (long long)least,
                 (unsigned long long)most, (long long)value);
  }
  tl_dtype_store_int(param->dtype, slot, 0, value);
  return TL_OK;
}

static tl_status eval_map(const binder *b, const tl_manifest_map *map, tl_tensormap_params *out) {
  int64_t value = 0;
  for (int32_t d = 0; d < map->rank; d++) {
    TL_TRY(eval(b, map->dims[d], &value));
    out->dims[d] = (uint64_t)value;
    out->box[d] = map->box[d];
    out->element_strides[d] = 1;
    if (d + 1 == map->rank) break;
    TL_TRY(eval(b, map->strides[d], &value));
    out->strides[d] = (uint64_t)value;
  }
  if (!map->is_im2col) return TL_OK;
  out->is_im2col = true;
  out->channels_per_pixel = map->box[0];
  out->pixels_per_column = map->box[1];
  for (int32_t d = 0; d < map->rank - 2; d++) {
    out->lower[d] = map->lower[d];
    out->upper[d] = map->upper[d];
    out->element_strides[d + 1] = (uint32_t)map->step[d];
  }
  return TL_OK;
}

// A stride that no second index uses may be anything: the driver still wants it in order.
static void complete_strides(tl_tensormap_params *params) {
  for (uint32_t d = 0; d + 1 < params->rank; d++)
    if (params->dims[d + 1] == 1) params->strides[d] = TL_TENSORMAP_STRIDE_UNIT;
}

static tl_status make_map(const binder *b, uint32_t index) {
  const tl_manifest_param *param = &b->kernel->params[index];
  const tl_manifest_map *map = param->map;
  tl_launch_map *made = TL_NEW(&b->plan->arena, tl_launch_map);
  b->plan->maps[index] = made;
  made->params = (tl_tensormap_params){
      .type = map->type, .rank = (uint32_t)map->rank, .swizzle = map->swizzle, .l2 = map->l2, .fill = map->fill};
  const char *name = b->kernel->params[map->tensor].name;
  TL_TRY(tl_status_annotate(eval_map(b, map, &made->params), "argument '%s'", name));
  made->is_empty = is_absent(&b->kernel->params[map->tensor], b->given[map->tensor]);
  for (uint32_t d = 0; d < made->params.rank; d++) made->is_empty = made->is_empty || made->params.dims[d] == 0;
  for (uint32_t d = 0; d < made->params.rank && made->is_empty; d++) made->params.dims[d] = 1;
  // Base positions of a larger image may all lie outside of this one.
  for (uint32_t d = 0; d + 2 < made->params.rank && made->is_empty; d++) made->params.upper[d] = made->params.lower[d];
  complete_strides(&made->params);
  if (made->is_empty) return TL_OK;
  made->params.address = b->given[map->tensor]->tensor.data;
  return tl_launch_plan_validate_map(b->kernel, b->plan, index);
}

tl_status tl_launch_plan_validate_map(const tl_manifest_kernel *kernel, const tl_launch_plan *plan, uint32_t index) {
  const tl_manifest_map *map = kernel->params[index].map;
  return tl_status_annotate(tl_tensormap_validate(&plan->maps[index]->params), "argument '%s'",
                            kernel->params[map->tensor].name);
}

// The value of every param, each in eight bytes of its own.
static tl_status store_values(binder *b) {
  tl_launch_plan *plan = b->plan;
  uint32_t count = b->kernel->num_params;
  uint64_t *slots = TL_NEW_ARRAY(&plan->arena, uint64_t, count + 1);
  plan->params = TL_NEW_ARRAY(&plan->arena, void *, count + 1);
  plan->workspace_bytes = TL_NEW_ARRAY(&plan->arena, int64_t, count + 1);
  plan->maps = TL_NEW_ARRAY(&plan->arena, tl_launch_map *, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    const tl_manifest_param *param = &b->kernel->params[i];
    plan->params[i] = &slots[i];
    plan->workspace_bytes[i] = -1;
    switch (param->kind) {
      case TL_MPARAM_TENSOR:
        if (!is_absent(param, b->given[i])) memcpy(&slots[i], &b->given[i]->tensor.data, sizeof(void *));
        break;
      case TL_MPARAM_SCALAR:
        TL_TRY(store_scalar(param, b->given[i], &slots[i]));
        break;
      case TL_MPARAM_DYNAMIC:
        slots[i] = param->dtype == TL_DTYPE_I64 ? (uint64_t)b->names[i].value : (uint32_t)b->names[i].value;
        break;
      case TL_MPARAM_STRIDE:
        slots[i] = (uint64_t)b->names[i].value;
        break;
      case TL_MPARAM_TENSOR_MAP:
        plan->params[i] = tl_arena_alloc(&plan->arena, TL_TENSORMAP_BYTES, TL_TENSORMAP_ALIGN);
        if (!plan->is_empty) TL_TRY(make_map(b, i));
        break;
      case TL_MPARAM_WORKSPACE:
        TL_TRY(eval(b, param->bytes, &plan->workspace_bytes[i]));
        if (plan->workspace_bytes[i] < 0) {
          return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "the workspace '%s' has the negative size %lld",
                                param->name, (long long)plan->workspace_bytes[i]);
        }
        break;
    }
  }
  return TL_OK;
}

static tl_status validate_requires(const binder *b) {
  for (uint32_t i = 0; i < b->kernel->num_requires; i++) {
    const tl_manifest_require *require = &b->kernel->requires_[i];
    int64_t holds;
    TL_TRY(eval(b, require->condition, &holds));
    if (holds) continue;
    tl_strbuf values;
    tl_strbuf_init(&values);
    for (size_t n = 0; n + 2 < b->plan->num_bindings; n++) {
      tl_strbuf_appendf(&values, "%s%s = %lld", n ? ", " : " with ", b->plan->bindings[n].name,
                        (long long)b->plan->bindings[n].value);
    }
    tl_status status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "'%s' requires %s, which does not hold%s",
                                      b->kernel->name, require->text, tl_strbuf_c(&values));
    tl_strbuf_fini(&values);
    return status;
  }
  return TL_OK;
}

// Hardware limits of a grid (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
static tl_status make_grid(const binder *b) {
  static const int64_t limits[3] = {INT32_MAX, 65535, 65535};
  for (int axis = 0; axis < 3; axis++) {
    int64_t extent;
    TL_TRY(tl_status_annotate(eval(b, b->kernel->grid[axis], &extent), "grid of '%s'", b->kernel->name));
    if (extent < 0 || extent > limits[axis]) {
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "grid of '%s': %c is %lld, expected 0 to %lld", b->kernel->name,
                            "xyz"[axis], (long long)extent, (long long)limits[axis]);
    }
    int32_t cluster = b->kernel->cluster[axis];  // 0: of a chain's signature
    if (cluster > 1 && extent % cluster != 0)
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                            "grid of '%s': %c is %lld, expected a multiple of the cluster's %d", b->kernel->name,
                            "xyz"[axis], (long long)extent, (int)cluster);
    b->plan->grid[axis] = (uint32_t)extent;
    if (extent == 0) b->plan->is_empty = true;
  }
  return TL_OK;
}

static tl_status make_plan(binder *b, const tl_argument *arguments, size_t num_arguments) {
  TL_TRY(match(b, arguments, num_arguments));
  TL_TRY(validate_kinds(b));
  TL_TRY(bind_names(b));
  collect_bindings(b);
  for (uint32_t i = 0; i < b->kernel->num_params; i++) {
    const tl_manifest_param *param = &b->kernel->params[i];
    if (param->kind != TL_MPARAM_TENSOR || is_absent(param, b->given[i])) continue;
    TL_TRY(validate_shape(b, param, &b->given[i]->tensor));
    TL_TRY(validate_pointer(b, param, &b->given[i]->tensor));
  }
  TL_TRY(validate_requires(b));
  TL_TRY(make_grid(b));
  return store_values(b);
}

// A copy that lives as long as the plan.
static void keep_arguments(binder *b, const tl_argument *arguments, size_t num_arguments) {
  tl_launch_plan *plan = b->plan;
  plan->arguments = TL_NEW_ARRAY(&plan->arena, tl_argument, num_arguments + 1);
  plan->param_of = TL_NEW_ARRAY(&plan->arena, uint32_t, num_arguments + 1);
  plan->num_arguments = num_arguments;
  for (uint32_t i = 0; i < b->kernel->num_params; i++)
    if (b->given[i]) plan->param_of[b->given[i] - arguments] = i;
  for (size_t i = 0; i < num_arguments; i++) {
    tl_argument *copy = &plan->arguments[i];
    *copy = arguments[i];
    if (copy->name) copy->name = tl_arena_copy_bytes(&plan->arena, copy->name, strlen(copy->name));
    if (copy->kind != TL_ARGUMENT_TENSOR) continue;
    tl_tensor *tensor = &copy->tensor;
    size_t bytes = (size_t)tensor->rank * sizeof(int64_t);
    if (tensor->dtype) tensor->dtype = tl_arena_copy_bytes(&plan->arena, tensor->dtype, strlen(tensor->dtype));
    int64_t *numbers = TL_NEW_ARRAY(&plan->arena, int64_t, 2 * tensor->rank + 1);
    if (bytes) memcpy(numbers, tensor->shape, bytes);
    if (bytes && tensor->strides) memcpy(numbers + tensor->rank, tensor->strides, bytes);
    tensor->shape = numbers;
    if (tensor->strides) tensor->strides = numbers + tensor->rank;
  }
}

typedef struct planning {
  binder *b;
  const tl_argument *arguments;
  size_t num_arguments;
  tl_status status;
} planning;

static void do_plan(void *user) {
  planning *p = user;
  p->b->given = TL_NEW_ARRAY(&p->b->plan->arena, const tl_argument *, p->b->kernel->num_params + 1);
  p->b->names = TL_NEW_ARRAY(&p->b->plan->arena, bound_name, p->b->kernel->num_params + 1);
  p->status = make_plan(p->b, p->arguments, p->num_arguments);
  if (!p->status) keep_arguments(p->b, p->arguments, p->num_arguments);
}

tl_status tl_launch_plan_create(const tl_manifest_kernel *kernel, const tl_argument *arguments, size_t num_arguments,
                                const tl_launch_facts *facts, tl_launch_plan *out_plan) {
  *out_plan = (tl_launch_plan){0};
  tl_arena_init(&out_plan->arena);
  binder b = {.kernel = kernel, .facts = facts, .plan = out_plan};
  planning p = {&b, arguments, num_arguments, TL_OK};
  if (!tl_memory_guard(do_plan, &p)) {
    *out_plan = (tl_launch_plan){0};
    return tl_status_out_of_memory();
  }
  if (p.status) {
    tl_launch_plan_fini(out_plan);
    *out_plan = (tl_launch_plan){0};
  }
  return p.status;
}

static bool is_same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_tensor(const tl_tensor *a, const tl_tensor *b) {
  if (a->rank != b->rank || !is_same_text(a->dtype, b->dtype) || !a->strides != !b->strides || !b->shape) return false;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->shape[d] != b->shape[d] || (a->strides && a->strides[d] != b->strides[d])) return false;
  return true;
}

bool tl_launch_plan_is_of(const tl_manifest_kernel *kernel, const tl_launch_plan *plan, const tl_argument *arguments,
                          size_t num_arguments) {
  if (!plan->arguments || plan->num_arguments != num_arguments) return false;
  for (size_t i = 0; i < num_arguments; i++) {
    const tl_argument *had = &plan->arguments[i], *given = &arguments[i];
    if (had->kind != given->kind || !is_same_text(had->name, given->name)) return false;
    bool may_be_absent = kernel->params[plan->param_of[i]].is_optional && had->kind == TL_ARGUMENT_TENSOR;
    if (may_be_absent && !had->tensor.data != !given->tensor.data) return false;
    if (had->kind == TL_ARGUMENT_TENSOR && !is_same_tensor(&had->tensor, &given->tensor)) return false;
    bool is_scalar = kernel->params[plan->param_of[i]].kind == TL_MPARAM_SCALAR;
    if (had->kind == TL_ARGUMENT_INT && !is_scalar && had->int_value != given->int_value) return false;
  }
  return true;
}

// Maps of tensors without elements have memory of their own.
static tl_status renew_maps(const tl_manifest_kernel *kernel, const binder *b) {
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    tl_launch_map *map = b->plan->maps[i];
    if (!map || map->is_empty) continue;
    map->params.address = *(void **)b->plan->params[kernel->params[i].map->tensor];
    TL_TRY(tl_launch_plan_validate_map(kernel, b->plan, i));
  }
  return TL_OK;
}

tl_status tl_launch_plan_renew(const tl_manifest_kernel *kernel, const tl_argument *arguments, size_t num_arguments,
                               const tl_launch_facts *facts, tl_launch_plan *plan) {
  const binder b = {.kernel = kernel, .facts = facts, .plan = plan};
  for (size_t i = 0; i < num_arguments; i++) {
    const tl_manifest_param *param = &kernel->params[plan->param_of[i]];
    if (param->kind == TL_MPARAM_SCALAR) TL_TRY(store_scalar(param, &arguments[i], plan->params[plan->param_of[i]]));
    if (param->kind != TL_MPARAM_TENSOR || is_absent(param, &arguments[i])) continue;
    TL_TRY(validate_pointer(&b, param, &arguments[i].tensor));
    memcpy(plan->params[plan->param_of[i]], &arguments[i].tensor.data, sizeof(void *));
  }
  return renew_maps(kernel, &b);
}

void tl_launch_plan_fini(tl_launch_plan *plan) {
  tl_arena_fini(&plan->arena);
}
