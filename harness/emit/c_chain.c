// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The function that runs a chain: its arguments, its buffers, then every step checked before the first is launched.
#include <math.h>
#include <string.h>

#include "harness/emit/c_internal.h"
#include "support/status.h"

// A step and the kernel that it runs.
typedef struct c_step {
  const tl_manifest_chain *chain;
  const tl_manifest_step *step;
  const tl_manifest_kernel *kernel;
  uint32_t number;  // from 1
} c_step;

static const c_scope outer = {.prefix = ""}, inner = {.prefix = "tlk_k_"};

static const tl_manifest_given *find_given(const c_step *s, const char *name) {
  for (uint32_t i = 0; i < s->step->num_given; i++)
    if (strcmp(s->step->given[i].name, name) == 0) return &s->step->given[i];
  return NULL;
}

static bool is_bare(const tl_mexpr *expr, const char *name) {
  const char *have = tl_mexpr_as_name(expr);
  return have && strcmp(have, name) == 0;
}

// What a dynamic name or stride of the kernel is: given, or told by the first tensor that has it. NULL: by nothing.
static const tl_mexpr *value_of(const c_step *s, const char *name) {
  const tl_manifest_given *given = find_given(s, name);
  if (given) return given->kind == TL_MGIVEN_INT ? given->value : NULL;
  for (uint32_t i = 0; i < s->kernel->num_params; i++) {
    const tl_manifest_param *param = &s->kernel->params[i];
    given = param->kind == TL_MPARAM_TENSOR ? find_given(s, param->name) : NULL;
    for (int32_t d = 0; given && d < param->rank && d < given->rank; d++) {
      if (is_bare(param->dims[d], name)) return given->dims[d];
      if (is_bare(param->strides[d], name)) return given->strides[d];
    }
  }
  return NULL;
}

static tl_status unsupported(const c_step *s, const char *name, const char *why) {
  return tl_status_make(TL_STATUS_UNSUPPORTED, "step %u, '%s': argument '%s' %s", s->number, s->kernel->name, name,
                        why);
}

static tl_status write_names(const c_step *s, tl_strbuf *out) {
  for (uint32_t i = 0; i < s->kernel->num_params; i++) {
    const tl_manifest_param *param = &s->kernel->params[i];
    if (!c_is_name(param)) continue;
    const tl_mexpr *value = value_of(s, param->name);
    if (!value) return unsupported(s, param->name, "has no value");
    tl_strbuf_appendf(out, "      const int64_t %s", inner.prefix);
    c_identifier(param->name, out);
    tl_strbuf_append_c(out, " = ");
    c_expr(value, &outer, out);
    tl_strbuf_append_c(out, ";\n");
  }
  return TL_OK;
}

static void write_same(const char *name, const char *what, int32_t d, const char *condition, const tl_mexpr *expected,
                       const tl_mexpr *given, tl_strbuf *out) {
  int64_t a, b;
  if (tl_mexpr_is_int(expected, &a) && tl_mexpr_is_int(given, &b) && a == b) return;
  tl_strbuf_appendf(out, "      if (%s(tlk_code = tlk_same(", condition);
  c_string(name, out);
  tl_strbuf_appendf(out, ", \"%s\", %d, ", what, d);
  c_expr(expected, &inner, out);
  tl_strbuf_append_c(out, ", ");
  c_expr(given, &outer, out);
  tl_strbuf_append_c(out, "))) break;\n");
}

// The stride of a dimension with at most one element is never used.
static void write_shape(const tl_manifest_param *param, const tl_manifest_given *given, tl_strbuf *out) {
  tl_strbuf elements = {0};
  for (int32_t d = 0; d < param->rank; d++) {
    write_same(param->name, "dimension", d, "", param->dims[d], given->dims[d], out);
    c_expr(given->dims[d], &outer, &elements);
    tl_strbuf_append_c(&elements, " > 0 && ");
  }
  for (int32_t d = 0; d < param->rank; d++) {
    tl_strbuf condition = {0};
    tl_strbuf_append_c(&condition, tl_strbuf_c(&elements));
    c_expr(given->dims[d], &outer, &condition);
    tl_strbuf_append_c(&condition, " > 1 && ");
    write_same(param->name, "stride of dimension", d, tl_strbuf_c(&condition), param->strides[d], given->strides[d],
               out);
    tl_strbuf_fini(&condition);
  }
  tl_strbuf_fini(&elements);
}

// What a launch of the kernel alone says of a number that its argument's type does not have. Sources are integers: the
// planner of chains gives floats to floats.
static void write_range(const c_step *s, const tl_manifest_param *param, const tl_manifest_given *given,
                        tl_strbuf *out) {
  const tl_manifest_param *source = &s->chain->signature.params[given->index];
  if (tl_dtype_is_float(param->dtype) || tl_dtype_bits(param->dtype) == 64) return;
  if (given->kind == TL_MGIVEN_SCALAR && source->dtype == param->dtype) return;
  tl_strbuf_append_c(out, "      if ((tlk_code = tlk_number(");
  c_string(param->name, out);
  tl_strbuf_append_c(out, ", ");
  if (given->kind == TL_MGIVEN_SCALAR) {
    tl_strbuf_append_c(out, "(int64_t)");
    c_identifier(source->name, out);
  } else {
    c_expr(given->value, &outer, out);
  }
  tl_strbuf_appendf(out, ", %lld, %llu))) break;\n", (long long)tl_dtype_int_min(param->dtype),
                    (unsigned long long)tl_dtype_int_max(param->dtype));
}

static tl_status write_shapes(const c_step *s, tl_strbuf *out) {
  for (uint32_t i = 0; i < s->kernel->num_params; i++) {
    const tl_manifest_param *param = &s->kernel->params[i];
    if (!c_is_argument(param)) continue;
    const tl_manifest_given *given = find_given(s, param->name);
    if (!given) return unsupported(s, param->name, "is not given");
    bool is_memory = given->kind == TL_MGIVEN_ARGUMENT || given->kind == TL_MGIVEN_BUFFER;
    if (is_memory != (param->kind == TL_MPARAM_TENSOR)) return unsupported(s, param->name, "is of another kind");
    if (given->kind == TL_MGIVEN_SCALAR || given->kind == TL_MGIVEN_INT) write_range(s, param, given, out);
    if (!is_memory) continue;
    if (given->dtype != param->dtype || given->rank != param->rank)
      return unsupported(s, param->name, "has another dtype or rank");
    write_shape(param, given, out);
  }
  return TL_OK;
}

static void write_number(double number, tl_strbuf *out) {
  if (isnan(number))
    tl_strbuf_append_c(out, "(0.0 / 0.0)");
  else if (isinf(number))
    tl_strbuf_append_c(out, number < 0 ? "(-1.0 / 0.0)" : "(1.0 / 0.0)");
  else
    tl_strbuf_appendf(out, "%.17g", number);
}

static void write_value(const c_step *s, const tl_manifest_param *param, tl_strbuf *out) {
  if (c_is_name(param)) {
    tl_strbuf_append_c(out, inner.prefix);
    c_identifier(param->name, out);
    return;
  }
  const tl_manifest_given *given = find_given(s, param->name);
  switch (given->kind) {
    case TL_MGIVEN_ARGUMENT:
      tl_strbuf_append_c(out, "(void *)(uintptr_t)");
      c_identifier(s->chain->signature.params[given->index].name, out);
      break;
    case TL_MGIVEN_BUFFER:
      tl_strbuf_appendf(out, "(char *)workspace + tlk_o%u", given->index);
      break;
    case TL_MGIVEN_SCALAR:
      tl_strbuf_appendf(out, "(%s)", c_scalar_type(param->dtype));
      c_identifier(s->chain->signature.params[given->index].name, out);
      break;
    case TL_MGIVEN_INT:
      tl_strbuf_appendf(out, "(%s)", c_scalar_type(param->dtype));
      c_expr(given->value, &outer, out);
      break;
    case TL_MGIVEN_FLOAT:
      tl_strbuf_appendf(out, "(%s)", c_scalar_type(param->dtype));
      write_number(given->number, out);
      break;
  }
}

static tl_status write_step(const c_step *s, uint32_t variant, tl_strbuf *out) {
  tl_strbuf_appendf(out, "    do {  // step %u\n", s->number);
  TL_TRY(write_names(s, out));
  TL_TRY(write_shapes(s, out));
  tl_strbuf_append_c(out,
                     "      if (tlk_bad) {\n        tlk_code = tlk_fail(TL_KERNEL_INVALID_ARGUMENT, \"the sizes "
                     "overflow, or divide by zero\");\n        break;\n      }\n");
  tl_strbuf_appendf(out, "      tlk_code = tlk_run_%u_%u(tlk_m, tlk_stream", variant, s->step->kernel);
  for (uint32_t i = 0; i < s->kernel->num_params; i++) {
    const tl_manifest_param *param = &s->kernel->params[i];
    if (!c_is_argument(param) && !c_is_name(param)) continue;
    tl_strbuf_append_c(out, ", ");
    write_value(s, param, out);
  }
  if (c_workspace(s->kernel)) tl_strbuf_appendf(out, ", (char *)workspace + tlk_w%u", s->number);
  tl_strbuf_appendf(out, ", tlk_pass == 0);\n    } while (0);\n    if (tlk_code) return tlk_step(tlk_code, %u, ",
                    s->number);
  c_string(s->kernel->name, out);
  tl_strbuf_append_c(out, ");\n");
  return TL_OK;
}

static void write_buffers(const tl_manifest *manifest, const tl_manifest_chain *chain, tl_strbuf *out) {
  tl_strbuf_append_c(out, "  int64_t tlk_needed = 0;\n");
  for (uint32_t i = 0; i < chain->num_buffers; i++) {
    tl_strbuf_appendf(out, "  const int64_t tlk_o%u = tlk_needed;  // %s\n  tlk_needed = tlk_place(tlk_needed, ", i,
                      chain->buffers[i].name);
    c_expr(chain->buffers[i].bytes, &outer, out);
    tl_strbuf_appendf(out, ", &tlk_bad);\n  (void)tlk_o%u;\n", i);
  }
  for (uint32_t i = 0; i < chain->num_steps; i++) {
    if (!c_workspace(&manifest->kernels[chain->steps[i].kernel])) continue;
    tl_strbuf_appendf(out,
                      "  const int64_t tlk_w%u = tlk_needed;  // of step %u\n"
                      "  tlk_needed = tlk_place(tlk_needed, %d, &tlk_bad);\n  (void)tlk_w%u;\n",
                      i + 1, i + 1, C_WORKSPACE_BYTES, i + 1);
  }
  c_bad("the buffers", chain->signature.name, out);
}

// Bytes of the workspace for these sizes.
static void write_bytes(const tl_manifest *manifest, const tl_manifest_chain *chain, uint32_t variant, tl_strbuf *out) {
  tl_strbuf_appendf(out, "TLK_UNUSED static int tlk_bytes_%u(", variant);
  for (uint32_t i = 0; i < chain->signature.num_params; i++) {
    if (!c_is_name(&chain->signature.params[i])) continue;
    c_parameter(&chain->signature.params[i], "", out);
    tl_strbuf_append_c(out, ", ");
  }
  tl_strbuf_append_c(out, "int64_t *tlk_out) {\n  int tlk_bad = 0;\n");
  for (uint32_t i = 0; i < chain->signature.num_params; i++) {
    if (!c_is_name(&chain->signature.params[i])) continue;
    tl_strbuf_append_c(out, "  (void)");
    c_identifier(chain->signature.params[i].name, out);
    tl_strbuf_append_c(out, ";\n");
  }
  write_buffers(manifest, chain, out);
  tl_strbuf_append_c(out, "  *tlk_out = tlk_needed;\n  return 0;\n}\n\n");
}

tl_status c_chain(const tl_manifest *manifest, uint32_t variant, const c_signature *signature, tl_strbuf *out) {
  const tl_manifest_chain *chain = &manifest->chains[0];
  if (signature->has_workspace) write_bytes(manifest, chain, variant, out);
  tl_strbuf_appendf(out, "// '%s'\nstatic int tlk_chain_%u(tlk_module *tlk_m, ", chain->signature.name, variant);
  c_parameters(signature, "tlk_stream", out);
  tl_strbuf_append_c(out, ") {\n  int tlk_code = 0, tlk_bad = 0;\n");
  c_checks(&chain->signature, &outer, out);
  if (signature->has_workspace) {
    write_buffers(manifest, chain, out);
    tl_strbuf_append_c(
        out, "  if ((tlk_code = tlk_workspace(tlk_m, workspace, workspace_bytes, tlk_needed))) return tlk_code;\n");
  }
  tl_strbuf_append_c(out, "  for (int tlk_pass = 0; tlk_pass < 2; tlk_pass++) {\n");
  for (uint32_t i = 0; i < chain->num_steps; i++) {
    const c_step step = {chain, &chain->steps[i], &manifest->kernels[chain->steps[i].kernel], i + 1};
    TL_TRY(write_step(&step, variant, out));
  }
  tl_strbuf_append_c(out, "  }\n  return 0;\n}\n\n");
  return TL_OK;
}
