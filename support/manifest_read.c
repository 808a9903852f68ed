// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads a manifest from JSON or from the head of a PTX file. What it does not know it refuses: a newer manifest may ask
// for something (a hidden parameter, a cluster) without which a launch would be wrong.
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/manifest.h"
#include "support/status.h"

enum { MAX_KERNELS = 1024, MAX_PARAMS = 32768, MAX_RANK = 16, MAX_STEPS = 65536 };

// The keys that an object may have, and whether each must be there.
typedef struct key_rule {
  const char *name;
  bool required;
} key_rule;

static tl_status bad(const char *where, const char *what) {
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "manifest: %s: %s", where, what);
}

static tl_status validate_keys(json_t *object, const char *where, const key_rule *rules, size_t count) {
  if (!json_is_object(object)) return bad(where, "expected an object");
  for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
    const char *name = json_object_iter_key(it);
    bool known = false;
    for (size_t i = 0; i < count; i++) known = known || strcmp(rules[i].name, name) == 0;
    if (!known) {
      return tl_status_make(TL_STATUS_UNSUPPORTED, "manifest: %s: unknown key \"%s\"; a newer tl-llc wrote it", where,
                            name);
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (rules[i].required && !json_object_get(object, rules[i].name)) {
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "manifest: %s: the key \"%s\" is missing", where,
                            rules[i].name);
    }
  }
  return TL_OK;
}

static tl_status read_text(tl_arena *arena, json_t *object, const char *where, const char *name, const char **out) {
  json_t *value = json_object_get(object, name);
  if (!json_is_string(value)) return tl_status_annotate(bad(name, "expected a string"), "%s", where);
  *out = tl_arena_copy_bytes(arena, json_string_value(value), json_string_length(value));
  return TL_OK;
}

static tl_status read_int(json_t *object, const char *where, const char *name, int64_t least, int64_t most,
                          int64_t *out) {
  json_t *value = json_object_get(object, name);
  if (!json_is_integer(value)) return tl_status_annotate(bad(name, "expected an integer"), "%s", where);
  *out = json_integer_value(value);
  if (*out < least || *out > most) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "manifest: %s: \"%s\" is %lld, expected %lld to %lld", where,
                          name, (long long)*out, (long long)least, (long long)most);
  }
  return TL_OK;
}

static tl_status read_expr(tl_arena *arena, json_t *value, const char *where, const tl_mexpr **out) {
  if (json_is_integer(value)) {
    *out = tl_mexpr_int(arena, json_integer_value(value));
    return TL_OK;
  }
  if (!json_is_string(value)) return bad(where, "expected an integer or an expression");
  tl_str text = {json_string_value(value), json_string_length(value)};
  return tl_status_annotate(tl_mexpr_parse(arena, text, out), "manifest: %s", where);
}

static tl_status read_exprs(tl_arena *arena, json_t *list, const char *where, const tl_mexpr **out, size_t count) {
  if (!json_is_array(list) || json_array_size(list) != count) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "manifest: %s: expected a list of %zu expressions", where, count);
  }
  for (size_t i = 0; i < count; i++) TL_TRY(read_expr(arena, json_array_get(list, i), where, &out[i]));
  return TL_OK;
}

static tl_status read_dtype(json_t *object, const char *where, tl_dtype *out) {
  json_t *value = json_object_get(object, "dtype");
  if (!json_is_string(value)) return bad(where, "the dtype must be a string");
  *out = tl_dtype_parse((tl_str){json_string_value(value), json_string_length(value)});
  if (*out == TL_DTYPE_NONE) {
    return tl_status_make(TL_STATUS_UNSUPPORTED, "manifest: %s: unknown dtype \"%s\"", where, json_string_value(value));
  }
  return TL_OK;
}

static tl_status read_tensor(tl_arena *arena, json_t *object, tl_manifest_param *param) {
  static const key_rule rules[] = {{"kind", true}, {"name", true},    {"access", true}, {"dtype", true},
                                   {"dims", true}, {"strides", true}, {"align", true},  {"optional", false}};
  const char *where = param->name;
  TL_TRY(validate_keys(object, where, rules, sizeof rules / sizeof rules[0]));
  TL_TRY(read_dtype(object, where, &param->dtype));
  const char *access;
  TL_TRY(read_text(arena, object, where, "access", &access));
  if (strcmp(access, "in") == 0) {
    param->access = 0;
  } else if (strcmp(access, "out") == 0) {
    param->access = 1;
  } else if (strcmp(access, "inout") == 0) {
    param->access = 2;
  } else {
    return bad(where, "access must be in, out or inout");
  }
  json_t *dims = json_object_get(object, "dims");
  if (!json_is_array(dims) || json_array_size(dims) > MAX_RANK) return bad(where, "dims must be a list of at most 16");
  size_t rank = json_array_size(dims);
  param->rank = (int32_t)rank;
  param->dims = TL_NEW_ARRAY(arena, const tl_mexpr *, rank + 1);
  param->strides = TL_NEW_ARRAY(arena, const tl_mexpr *, rank + 1);
  TL_TRY(read_exprs(arena, dims, where, param->dims, rank));
  TL_TRY(read_exprs(arena, json_object_get(object, "strides"), where, param->strides, rank));
  param->is_optional = json_is_true(json_object_get(object, "optional"));
  return read_int(object, where, "align", 1, 1 << 20, &param->align);
}

// -1: there is none.
static int find_type(const char *text) {
  for (int i = 0; i < TL_TENSORMAP_NUM_TYPES; i++)
    if (strcmp(text, tl_tensormap_type_name((tl_tensormap_type)i)) == 0) return i;
  return -1;
}

// The value of an enumeration of which `bytes_of` gives the number under `key`.
static tl_status read_span(json_t *object, const char *where, const char *key, uint32_t (*bytes_of)(int), int *out) {
  int64_t bytes = 0;
  TL_TRY(read_int(object, where, key, 0, 256, &bytes));
  for (*out = 0; *out < 4; ++*out)
    if (bytes_of(*out) == bytes) return TL_OK;
  return tl_status_make(TL_STATUS_UNSUPPORTED, "manifest: %s: \"%s\" is %lld, which is unknown", where, key,
                        (long long)bytes);
}

static uint32_t swizzle_bytes(int swizzle) {
  return tl_tensormap_swizzle_span((tl_tensormap_swizzle)swizzle);
}

static uint32_t l2_bytes(int l2) {
  return tl_tensormap_l2_bytes((tl_tensormap_l2)l2);
}

static tl_status read_map_shape(tl_arena *arena, json_t *object, const char *where, tl_manifest_map *map) {
  json_t *dims = json_object_get(object, "dims"), *box = json_object_get(object, "box");
  size_t rank = json_is_array(dims) ? json_array_size(dims) : 0;
  if (rank < 1 || rank > TL_TENSORMAP_MAX_RANK) return bad(where, "dims must be a list of 1 to 5");
  map->rank = (int32_t)rank;
  TL_TRY(read_exprs(arena, dims, where, map->dims, rank));
  TL_TRY(read_exprs(arena, json_object_get(object, "strides"), where, map->strides, rank - 1));
  if (!json_is_array(box) || json_array_size(box) != rank) return bad(where, "box must be a list as long as dims");
  for (size_t i = 0; i < rank; i++) {
    json_t *item = json_array_get(box, i);
    if (!json_is_integer(item) || json_integer_value(item) < 1 || json_integer_value(item) > 256)
      return bad(where, "box must hold integers of 1 to 256");
    map->box[i] = (uint32_t)json_integer_value(item);
  }
  return TL_OK;
}

static tl_status read_spatial(json_t *object, const char *where, const char *key, int64_t least, int32_t count,
                              int32_t *out) {
  json_t *list = json_object_get(object, key);
  if (!json_is_array(list) || json_array_size(list) != (size_t)count)
    return bad(where, "lower, upper and step must be lists of two less than dims");
  for (int32_t i = 0; i < count; i++) {
    json_t *item = json_array_get(list, (size_t)i);
    if (!json_is_integer(item) || json_integer_value(item) < least || json_integer_value(item) > INT16_MAX)
      return bad(where, "lower, upper and step must hold integers of 16 bits, and step from 1 on");
    out[i] = (int32_t)json_integer_value(item);
  }
  return TL_OK;
}

// Maps of pixels have all three keys.
static tl_status read_im2col(json_t *object, const char *where, tl_manifest_map *map) {
  int32_t count = map->rank - 2;
  map->is_im2col =
      json_object_get(object, "lower") || json_object_get(object, "upper") || json_object_get(object, "step");
  if (!map->is_im2col) return TL_OK;
  if (count < 1) return bad(where, "a map of pixels has three dims at least");
  TL_TRY(read_spatial(object, where, "lower", INT16_MIN, count, map->lower));
  TL_TRY(read_spatial(object, where, "upper", INT16_MIN, count, map->upper));
  return read_spatial(object, where, "step", 1, count, map->step);
}

// `tensor` is one of the params before it.
static tl_status read_map(tl_arena *arena, json_t *object, const tl_manifest_kernel *kernel, tl_manifest_param *param) {
  static const key_rule rules[] = {{"kind", true},    {"name", true}, {"tensor", true},  {"access", true},
                                   {"type", true},    {"dims", true}, {"strides", true}, {"box", true},
                                   {"swizzle", true}, {"l2", true},   {"fill", true},    {"lower", false},
                                   {"upper", false},  {"step", false}};
  const char *where = param->name, *tensor = "", *access = "", *type = "", *fill = "";
  tl_manifest_map *map = TL_NEW(arena, tl_manifest_map);
  param->map = map;
  TL_TRY(validate_keys(object, where, rules, sizeof rules / sizeof rules[0]));
  TL_TRY(read_text(arena, object, where, "tensor", &tensor));
  TL_TRY(read_text(arena, object, where, "access", &access));
  TL_TRY(read_text(arena, object, where, "type", &type));
  TL_TRY(read_text(arena, object, where, "fill", &fill));
  while (&kernel->params[map->tensor] < param && (kernel->params[map->tensor].kind != TL_MPARAM_TENSOR ||
                                                  strcmp(kernel->params[map->tensor].name, tensor) != 0))
    map->tensor++;
  if (&kernel->params[map->tensor] == param) return bad(where, "no parameter before it is the tensor");
  if (strcmp(access, "in") != 0 && strcmp(access, "out") != 0) return bad(where, "access must be in or out");
  map->is_written = access[0] == 'o';
  int found = find_type(type), swizzle = 0, l2 = 0;
  if (found < 0) return tl_status_make(TL_STATUS_UNSUPPORTED, "manifest: %s: unknown type \"%s\"", where, type);
  map->type = (tl_tensormap_type)found;
  TL_TRY(read_map_shape(arena, object, where, map));
  TL_TRY(read_im2col(object, where, map));
  TL_TRY(read_span(object, where, "swizzle", swizzle_bytes, &swizzle));
  TL_TRY(read_span(object, where, "l2", l2_bytes, &l2));
  map->swizzle = (tl_tensormap_swizzle)swizzle;
  map->l2 = (tl_tensormap_l2)l2;
  if (strcmp(fill, "zero") != 0 && strcmp(fill, "nan") != 0) return bad(where, "fill must be zero or nan");
  map->fill = fill[0] == 'n' ? TL_TENSORMAP_FILL_NAN : TL_TENSORMAP_FILL_ZERO;
  return TL_OK;
}

static tl_status read_param(tl_arena *arena, json_t *object, const tl_manifest_kernel *kernel,
                            tl_manifest_param *param) {
  static const key_rule scalar_rules[] = {{"kind", true}, {"name", true}, {"dtype", true}};
  static const key_rule dynamic_rules[] = {{"kind", true}, {"name", true}, {"divisor", true}, {"dtype", false}};
  static const key_rule stride_rules[] = {{"kind", true}, {"name", true}};
  static const key_rule workspace_rules[] = {
      {"kind", true}, {"name", true}, {"bytes", true}, {"zero_each_launch", true}};
  if (!json_is_object(object)) return bad("params", "expected objects");
  const char *kind = "";
  TL_TRY(read_text(arena, object, "params", "kind", &kind));
  TL_TRY(read_text(arena, object, "params", "name", &param->name));
  param->divisor = 1;
  if (strcmp(kind, "tensor") == 0) {
    param->kind = TL_MPARAM_TENSOR;
    return read_tensor(arena, object, param);
  }
  if (strcmp(kind, "scalar") == 0) {
    param->kind = TL_MPARAM_SCALAR;
    TL_TRY(validate_keys(object, param->name, scalar_rules, 3));
    return read_dtype(object, param->name, &param->dtype);
  }
  if (strcmp(kind, "dynamic") == 0) {
    param->kind = TL_MPARAM_DYNAMIC;
    param->dtype = TL_DTYPE_I32;
    TL_TRY(validate_keys(object, param->name, dynamic_rules, 4));
    if (json_object_get(object, "dtype")) TL_TRY(read_dtype(object, param->name, &param->dtype));
    if (param->dtype != TL_DTYPE_I32 && param->dtype != TL_DTYPE_I64)
      return bad(param->name, "the dtype of a dynamic name must be i32 or i64");
    return read_int(object, param->name, "divisor", 1, INT32_MAX, &param->divisor);
  }
  if (strcmp(kind, "stride") == 0) {
    param->kind = TL_MPARAM_STRIDE;
    param->dtype = TL_DTYPE_I64;
    return validate_keys(object, param->name, stride_rules, 2);
  }
  if (strcmp(kind, "workspace") == 0) {
    param->kind = TL_MPARAM_WORKSPACE;
    TL_TRY(validate_keys(object, param->name, workspace_rules, 4));
    json_t *zero = json_object_get(object, "zero_each_launch");
    if (!json_is_boolean(zero)) return bad(param->name, "zero_each_launch must be true or false");
    param->zero_each_launch = json_is_true(zero);
    return read_expr(arena, json_object_get(object, "bytes"), param->name, &param->bytes);
  }
  if (strcmp(kind, "tensor_map") == 0) {
    param->kind = TL_MPARAM_TENSOR_MAP;
    return read_map(arena, object, kernel, param);
  }
  return tl_status_make(TL_STATUS_UNSUPPORTED, "manifest: parameter '%s' has the unknown kind \"%s\"", param->name,
                        kind);
}

static tl_status read_requires(tl_arena *arena, json_t *list, const char *where, tl_manifest_kernel *kernel) {
  static const key_rule rules[] = {{"condition", true}, {"text", true}};
  if (!json_is_array(list) || json_array_size(list) > MAX_PARAMS) return bad(where, "requires must be a list");
  kernel->num_requires = (uint32_t)json_array_size(list);
  kernel->requires_ = TL_NEW_ARRAY(arena, tl_manifest_require, kernel->num_requires + 1);
  for (uint32_t i = 0; i < kernel->num_requires; i++) {
    json_t *object = json_array_get(list, i);
    TL_TRY(validate_keys(object, "requires", rules, 2));
    TL_TRY(read_expr(arena, json_object_get(object, "condition"), "requires", &kernel->requires_[i].condition));
    TL_TRY(read_text(arena, object, "requires", "text", &kernel->requires_[i].text));
  }
  return TL_OK;
}

// name, doc, params and requires: what kernels and chains have in common.
static tl_status read_signature(tl_arena *arena, json_t *object, tl_manifest_kernel *kernel) {
  TL_TRY(read_text(arena, object, "kernel", "name", &kernel->name));
  const char *where = kernel->name;
  kernel->doc = "";
  if (json_object_get(object, "doc")) TL_TRY(read_text(arena, object, where, "doc", &kernel->doc));
  json_t *params = json_object_get(object, "params");
  if (!json_is_array(params) || json_array_size(params) > MAX_PARAMS) return bad(where, "params must be a list");
  kernel->num_params = (uint32_t)json_array_size(params);
  kernel->params = TL_NEW_ARRAY(arena, tl_manifest_param, kernel->num_params + 1);
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    TL_TRY(read_param(arena, json_array_get(params, i), kernel, &kernel->params[i]));
  }
  return read_requires(arena, json_object_get(object, "requires"), where, kernel);
}

static tl_status read_kernel(tl_arena *arena, json_t *object, tl_manifest_kernel *kernel) {
  static const key_rule rules[] = {{"name", true},
                                   {"doc", false},
                                   {"params", true},
                                   {"requires", true},
                                   {"grid", true},
                                   {"block_threads", true},
                                   {"math_threads", true},
                                   {"cluster", true},
                                   {"persistent", false},
                                   {"aligned", false},
                                   {"static_shared_bytes", true},
                                   {"dynamic_shared_bytes", true}};
  TL_TRY(validate_keys(object, "kernel", rules, sizeof rules / sizeof rules[0]));
  TL_TRY(read_signature(arena, object, kernel));
  const char *where = kernel->name;
  TL_TRY(read_exprs(arena, json_object_get(object, "grid"), where, kernel->grid, 3));
  json_t *persistent = json_object_get(object, "persistent");
  if (persistent && !json_is_boolean(persistent)) return bad(where, "persistent must be true or false");
  kernel->persistent = json_is_true(persistent);
  int64_t threads = 1, math = 1;
  TL_TRY(read_int(object, where, "block_threads", 1, 1024, &threads));
  TL_TRY(read_int(object, where, "math_threads", 1, 1024, &math));
  kernel->block_threads = (int32_t)threads;
  kernel->math_threads = (int32_t)math;
  TL_TRY(read_int(object, where, "static_shared_bytes", 0, 1 << 30, &kernel->static_shared_bytes));
  TL_TRY(read_int(object, where, "dynamic_shared_bytes", 0, 1 << 30, &kernel->dynamic_shared_bytes));
  json_t *cluster = json_object_get(object, "cluster");
  if (!json_is_array(cluster) || json_array_size(cluster) != 3) return bad(where, "cluster must be a list of 3");
  for (size_t i = 0; i < 3; i++) {
    json_t *item = json_array_get(cluster, i);
    if (!json_is_integer(item) || json_integer_value(item) < 1 || json_integer_value(item) > 16) {
      return bad(where, "cluster extents must be 1 to 16");
    }
    kernel->cluster[i] = (int32_t)json_integer_value(item);
  }
  return TL_OK;
}

// The version that the kernel names.
static tl_status read_version(tl_arena *arena, json_t *object, tl_manifest *out, uint32_t index) {
  tl_manifest_kernel *kernel = &out->kernels[index];
  const char *name = NULL;
  if (!json_object_get(object, "aligned")) return TL_OK;
  TL_TRY(read_text(arena, object, kernel->name, "aligned", &name));
  uint32_t at = index + 1;
  while (at < out->num_kernels && strcmp(out->kernels[at].name, name) != 0) at++;
  if (kernel->is_version || at >= out->num_kernels || out->kernels[at].is_version)
    return bad(kernel->name, "aligned must name a kernel behind it, which is no other's version");
  kernel->aligned = at;
  out->kernels[at].is_version = true;
  return TL_OK;
}

static tl_status read_kernels(tl_arena *arena, json_t *list, tl_manifest *out) {
  if (!json_is_array(list) || json_array_size(list) > MAX_KERNELS) return bad("kernels", "expected a list");
  out->num_kernels = (uint32_t)json_array_size(list);
  out->kernels = TL_NEW_ARRAY(arena, tl_manifest_kernel, out->num_kernels + 1);
  for (uint32_t i = 0; i < out->num_kernels; i++) TL_TRY(read_kernel(arena, json_array_get(list, i), &out->kernels[i]));
  for (uint32_t i = 0; i < out->num_kernels; i++) TL_TRY(read_version(arena, json_array_get(list, i), out, i));
  for (uint32_t i = tl_manifest_num_kernels(out); i < out->num_kernels; i++)
    if (!out->kernels[i].is_version) return bad(out->kernels[i].name, "it stands behind versions of other kernels");
  return TL_OK;
}

// ---- chains

static tl_status read_buffers(tl_arena *arena, json_t *list, tl_manifest_chain *chain) {
  static const key_rule rules[] = {{"name", true}, {"bytes", true}};
  const char *where = chain->signature.name;
  if (!json_is_array(list) || json_array_size(list) > MAX_PARAMS) return bad(where, "buffers must be a list");
  chain->num_buffers = (uint32_t)json_array_size(list);
  chain->buffers = TL_NEW_ARRAY(arena, tl_manifest_buffer, chain->num_buffers + 1);
  for (uint32_t i = 0; i < chain->num_buffers; i++) {
    json_t *object = json_array_get(list, i);
    TL_TRY(validate_keys(object, "buffers", rules, 2));
    TL_TRY(read_text(arena, object, where, "name", &chain->buffers[i].name));
    TL_TRY(read_expr(arena, json_object_get(object, "bytes"), where, &chain->buffers[i].bytes));
  }
  return TL_OK;
}

// The memory or scalar of the chain that `key` of a given value names.
static tl_status find_given(tl_arena *arena, json_t *object, const char *key, const tl_manifest_chain *chain,
                            tl_manifest_given *out) {
  const char *name = "";
  TL_TRY(read_text(arena, object, out->name, key, &name));
  for (uint32_t i = 0; out->kind == TL_MGIVEN_BUFFER && i < chain->num_buffers; i++) {
    out->index = i;
    if (strcmp(chain->buffers[i].name, name) == 0) return TL_OK;
  }
  tl_manifest_param_kind wanted = out->kind == TL_MGIVEN_SCALAR ? TL_MPARAM_SCALAR : TL_MPARAM_TENSOR;
  for (uint32_t i = 0; out->kind != TL_MGIVEN_BUFFER && i < chain->signature.num_params; i++) {
    out->index = i;
    if (chain->signature.params[i].kind == wanted && strcmp(chain->signature.params[i].name, name) == 0) return TL_OK;
  }
  return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "manifest: %s: the chain has no %s '%s'", out->name, key, name);
}

static tl_status read_memory(tl_arena *arena, json_t *object, tl_manifest_given *out) {
  json_t *dims = json_object_get(object, "dims");
  TL_TRY(read_dtype(object, out->name, &out->dtype));
  if (!json_is_array(dims) || json_array_size(dims) > MAX_RANK)
    return bad(out->name, "dims must be a list of at most 16");
  size_t rank = json_array_size(dims);
  out->rank = (int32_t)rank;
  out->dims = TL_NEW_ARRAY(arena, const tl_mexpr *, rank + 1);
  out->strides = TL_NEW_ARRAY(arena, const tl_mexpr *, rank + 1);
  TL_TRY(read_exprs(arena, dims, out->name, out->dims, rank));
  return read_exprs(arena, json_object_get(object, "strides"), out->name, out->strides, rank);
}

static tl_status read_given(tl_arena *arena, json_t *object, const tl_manifest_chain *chain, tl_manifest_given *out) {
  static const struct {
    const char *key;
    tl_manifest_given_kind kind;
  } kinds[] = {{"argument", TL_MGIVEN_ARGUMENT},
               {"buffer", TL_MGIVEN_BUFFER},
               {"scalar", TL_MGIVEN_SCALAR},
               {"int", TL_MGIVEN_INT},
               {"float", TL_MGIVEN_FLOAT}};
  if (!json_is_object(object)) return bad(chain->signature.name, "given must be a list of objects");
  TL_TRY(read_text(arena, object, chain->signature.name, "name", &out->name));
  size_t at = 0;
  while (at < sizeof kinds / sizeof kinds[0] && !json_object_get(object, kinds[at].key)) at++;
  if (at == sizeof kinds / sizeof kinds[0])
    return tl_status_make(TL_STATUS_UNSUPPORTED, "manifest: '%s' is given in an unknown way", out->name);
  out->kind = kinds[at].kind;
  const key_rule memory_rules[] = {
      {"name", true}, {kinds[at].key, true}, {"dtype", true}, {"dims", true}, {"strides", true}};
  bool is_memory = out->kind == TL_MGIVEN_ARGUMENT || out->kind == TL_MGIVEN_BUFFER;
  TL_TRY(validate_keys(object, out->name, memory_rules, is_memory ? 5 : 2));
  if (is_memory) TL_TRY(read_memory(arena, object, out));
  if (is_memory || out->kind == TL_MGIVEN_SCALAR) return find_given(arena, object, kinds[at].key, chain, out);
  if (out->kind == TL_MGIVEN_INT) return read_expr(arena, json_object_get(object, "int"), out->name, &out->value);
  const char *text = "";
  TL_TRY(read_text(arena, object, out->name, "float", &text));
  char *end = NULL;
  out->number = strtod(text, &end);
  return end == text || *end ? bad(out->name, "float must be a number as text") : TL_OK;
}

static tl_status read_steps(tl_arena *arena, json_t *list, const tl_manifest *manifest, tl_manifest_chain *chain) {
  static const key_rule rules[] = {{"kernel", true}, {"given", true}};
  const char *where = chain->signature.name;
  if (!json_is_array(list) || json_array_size(list) > MAX_STEPS) return bad(where, "steps must be a list");
  chain->num_steps = (uint32_t)json_array_size(list);
  chain->steps = TL_NEW_ARRAY(arena, tl_manifest_step, chain->num_steps + 1);
  for (uint32_t i = 0; i < chain->num_steps; i++) {
    json_t *object = json_array_get(list, i), *given = json_object_get(object, "given");
    tl_manifest_step *step = &chain->steps[i];
    const char *kernel = "";
    TL_TRY(validate_keys(object, "steps", rules, 2));
    TL_TRY(read_text(arena, object, where, "kernel", &kernel));
    while (step->kernel < manifest->num_kernels && strcmp(manifest->kernels[step->kernel].name, kernel) != 0)
      step->kernel++;
    if (step->kernel == manifest->num_kernels)
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "manifest: %s: there is no kernel '%s'", where, kernel);
    if (!json_is_array(given) || json_array_size(given) > MAX_PARAMS) return bad(where, "given must be a list");
    step->num_given = (uint32_t)json_array_size(given);
    step->given = TL_NEW_ARRAY(arena, tl_manifest_given, step->num_given + 1);
    for (uint32_t k = 0; k < step->num_given; k++)
      TL_TRY(read_given(arena, json_array_get(given, k), chain, &step->given[k]));
  }
  return TL_OK;
}

static tl_status read_chain(tl_arena *arena, json_t *object, const tl_manifest *manifest, tl_manifest_chain *chain) {
  static const key_rule rules[] = {{"name", true},     {"doc", false},    {"params", true},
                                   {"requires", true}, {"buffers", true}, {"steps", true}};
  TL_TRY(validate_keys(object, "chain", rules, sizeof rules / sizeof rules[0]));
  TL_TRY(read_signature(arena, object, &chain->signature));
  for (int i = 0; i < 3; i++) chain->signature.grid[i] = tl_mexpr_int(arena, 1);
  TL_TRY(read_buffers(arena, json_object_get(object, "buffers"), chain));
  return read_steps(arena, json_object_get(object, "steps"), manifest, chain);
}

static tl_status read_chains(tl_arena *arena, json_t *list, tl_manifest *out) {
  if (!list) return TL_OK;
  if (!json_is_array(list) || json_array_size(list) > MAX_KERNELS) return bad("chains", "expected a list");
  out->num_chains = (uint32_t)json_array_size(list);
  out->chains = TL_NEW_ARRAY(arena, tl_manifest_chain, out->num_chains + 1);
  for (uint32_t i = 0; i < out->num_chains; i++)
    TL_TRY(read_chain(arena, json_array_get(list, i), out, &out->chains[i]));
  return TL_OK;
}

// "8.0" is 80.
static tl_status parse_ptx_version(const char *text, int *out) {
  const char *dot = strchr(text, '.');
  if (!dot || dot == text || dot[1] < '0' || dot[1] > '9' || dot[2] != '\0' || dot - text > 2) {
    return bad("ptx_version", "expected MAJOR.MINOR");
  }
  int major = 0;
  for (const char *c = text; c < dot; c++) {
    if (*c < '0' || *c > '9') return bad("ptx_version", "expected MAJOR.MINOR");
    major = major * 10 + (*c - '0');
  }
  *out = major * 10 + (dot[1] - '0');
  return TL_OK;
}

static tl_status read_root(tl_arena *arena, json_t *root, tl_manifest *out) {
  static const key_rule rules[] = {{"abi", true},         {"generator", true}, {"target", true},
                                   {"ptx_version", true}, {"kernels", true},   {"chains", false}};
  // The ABI first: with another one no other key means anything.
  json_t *abi = json_is_object(root) ? json_object_get(root, "abi") : NULL;
  if (!json_is_integer(abi)) return bad("abi", "expected an integer");
  if (json_integer_value(abi) != TL_MANIFEST_ABI) {
    return tl_status_make(TL_STATUS_UNSUPPORTED, "manifest: ABI %lld is unknown; this version reads ABI %d",
                          (long long)json_integer_value(abi), TL_MANIFEST_ABI);
  }
  TL_TRY(validate_keys(root, "manifest", rules, sizeof rules / sizeof rules[0]));
  *out = (tl_manifest){.arena = arena, .abi = TL_MANIFEST_ABI};
  TL_TRY(read_text(arena, root, "manifest", "generator", &out->generator));
  TL_TRY(read_text(arena, root, "manifest", "target", &out->target));
  const char *version = "";
  TL_TRY(read_text(arena, root, "manifest", "ptx_version", &version));
  TL_TRY(parse_ptx_version(version, &out->ptx_version));
  TL_TRY(read_kernels(arena, json_object_get(root, "kernels"), out));
  return read_chains(arena, json_object_get(root, "chains"), out);
}

// The leading "//" lines without their marks. The manifest ends at the first other line.
static void strip_comment_head(tl_str text, tl_strbuf *out) {
  size_t at = 0;
  while (at + 1 < text.len && text.data[at] == '/' && text.data[at + 1] == '/') {
    tl_str rest = tl_str_sub(text, at + 2, text.len - at - 2);
    size_t end = tl_str_find(rest, '\n');
    tl_str content = end == SIZE_MAX ? rest : tl_str_sub(rest, 0, end);
    tl_strbuf_append(out, content);
    tl_strbuf_append_char(out, '\n');
    if (end == SIZE_MAX) break;
    at += 2 + end + 1;
  }
}

// jansson says of memory that ran out what it says of malformed text, so its allocator notes it.
static _Thread_local bool json_ran_out;

static void *allocate_json(size_t size) {
  void *pointer = malloc(size);
  json_ran_out |= !pointer;
  return pointer;
}

static void set_json_allocator(void) {
  json_malloc_t given;
  json_free_t freed;
  json_get_alloc_funcs(&given, &freed);
  // A program that shares jansson with us may have set its own.
  if (given == malloc && freed == free) json_set_alloc_funcs(allocate_json, free);
}

static json_t *load_json(tl_str text, json_error_t *out_error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, set_json_allocator);
  json_ran_out = false;
  json_t *root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, out_error);
  if (json_ran_out) {
    json_decref(root);
    tl_out_of_memory(text.len);
  }
  return root;
}

tl_status tl_manifest_read(tl_arena *arena, tl_str text, tl_manifest *out) {
  tl_strbuf head;
  tl_strbuf_init(&head);
  tl_str json_text = tl_str_trim(text);
  if (tl_str_starts_with(json_text, "//")) {
    strip_comment_head(json_text, &head);
    json_text = tl_str_trim(tl_strbuf_view(&head));
  }
  if (!tl_str_starts_with(json_text, "{")) {
    tl_strbuf_fini(&head);
    return tl_status_make(
        TL_STATUS_INVALID_ARGUMENT,
        "no manifest: the text begins neither with '{' nor with the '// ' lines of a tl-llc PTX file");
  }
  json_error_t error;
  json_t *root = load_json(json_text, &error);
  tl_strbuf_fini(&head);
  if (!root) {
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "manifest: line %d, column %d: %s", error.line, error.column,
                          error.text);
  }
  tl_status status = read_root(arena, root, out);
  json_decref(root);
  return status;
}
