// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/bench/cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/cublaslt_types.h"
#include "runtime/device.h"
#include "support/arena.h"
#include "support/strbuf.h"

enum { WORKSPACE_BYTES = 64 << 20, MAX_CHOICES = 8 };

struct tl_cublaslt {
#define TL_CUBLASLT_FN(field, symbol, result, parameters) result(*field) parameters;
#include "harness/bench/cublaslt.def"
  void *library;
  tl_device *device;  // Borrowed.
  void *handle;
  void *workspace;  // Owned. Device memory.
  char version[64];
};

struct tl_cublaslt_plan {
  tl_cublaslt *library;  // Borrowed.
  void *desc, *a_layout, *b_layout, *c_layout;
  tl_cublaslt_choice choices[MAX_CHOICES];
  uint32_t num_choices;
  // 1 and 0 in the type of the computation.
  union {
    float f32;
    double f64;
    int32_t i32;
  } one, zero;
};

static tl_status check(unsigned result, const char *function) {
  if (result == 0) return TL_OK;
  // 15 is CUBLAS_STATUS_NOT_SUPPORTED.
  return tl_status_make(result == 15 ? TL_STATUS_UNSUPPORTED : TL_STATUS_DRIVER, "%s failed: cublasStatus %u", function,
                        result);
}

// ---- the library

static void *open_library(const char *path, tl_strbuf *tried) {
  static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (path && !library) tl_strbuf_appendf(tried, "%s; ", dlerror());
  for (size_t i = 0; !library && i < sizeof names / sizeof names[0]; i++) {
    tl_strbuf name;
    tl_strbuf_init(&name);
    tl_strbuf_appendf(&name, "%s%s%s", path ? path : "", path ? "/" : "", names[i]);
    library = dlopen(tl_strbuf_c(&name), RTLD_NOW | RTLD_LOCAL);
    if (!library) tl_strbuf_appendf(tried, "%s%s", dlerror(), i == 0 ? "; " : "");
    tl_strbuf_fini(&name);
  }
  return library;
}

static tl_status resolve(tl_cublaslt *library) {
  static const struct {
    const char *symbol;
    size_t offset;
  } table[] = {
#define TL_CUBLASLT_FN(field, symbol, result, parameters) {#symbol, offsetof(tl_cublaslt, field)},
#include "harness/bench/cublaslt.def"
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    void *address = dlsym(library->library, table[i].symbol);
    if (!address) return tl_status_make(TL_STATUS_NOT_FOUND, "the cuBLASLt library has no %s", table[i].symbol);
    memcpy((char *)library + table[i].offset, &address, sizeof address);
  }
  return TL_OK;
}

static tl_status start(tl_cublaslt *library) {
  TL_TRY(resolve(library));
  size_t version = library->get_version();
  snprintf(library->version, sizeof library->version, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100,
           version % 100);
  TL_TRY(tl_device_alloc(library->device, WORKSPACE_BYTES, &library->workspace));
  TL_TRY(tl_device_enter(library->device));
  tl_status status = check(library->create(&library->handle), "cublasLtCreate");
  return tl_device_leave(library->device, status);
}

tl_status tl_cublaslt_open(const char *path, tl_device *device, tl_cublaslt **out) {
  *out = NULL;
  tl_strbuf tried;
  tl_strbuf_init(&tried);
  tl_cublaslt *library = tl_xcalloc(1, sizeof *library);
  library->device = device;
  library->library = open_library(path, &tried);
  tl_status status = library->library
                         ? start(library)
                         : tl_status_make(TL_STATUS_NOT_FOUND, "cuBLASLt cannot be loaded: %s", tl_strbuf_c(&tried));
  tl_strbuf_fini(&tried);
  if (status) {
    tl_cublaslt_close(library);
    return status;
  }
  *out = library;
  return TL_OK;
}

void tl_cublaslt_close(tl_cublaslt *library) {
  if (!library) return;
  tl_device *device = library->device;
  tl_status status = tl_device_enter(device);
  if (!status) {
    if (library->handle) status = check(library->destroy(library->handle), "cublasLtDestroy");
    status = tl_device_leave(device, status);
  }
  tl_device_note(device, tl_status_join(status, tl_device_free(device, library->workspace)));
  // The library stays loaded: it keeps state of the process that does not survive unloading.
  free(library);
}

const char *tl_cublaslt_version(const tl_cublaslt *library) {
  return library->version;
}

// ---- one problem

static int type_of(tl_dtype dtype) {
  switch (dtype) {
    case TL_DTYPE_F64:
      return TL_CUBLASLT_TYPE_F64;
    case TL_DTYPE_F32:
    case TL_DTYPE_TF32:
      return TL_CUBLASLT_TYPE_F32;
    case TL_DTYPE_F16:
      return TL_CUBLASLT_TYPE_F16;
    case TL_DTYPE_BF16:
      return TL_CUBLASLT_TYPE_BF16;
    case TL_DTYPE_F8E4M3:
      return TL_CUBLASLT_TYPE_F8E4M3;
    case TL_DTYPE_F8E5M2:
      return TL_CUBLASLT_TYPE_F8E5M2;
    case TL_DTYPE_I8:
      return TL_CUBLASLT_TYPE_I8;
    case TL_DTYPE_I32:
      return TL_CUBLASLT_TYPE_I32;
    default:
      return -1;
  }
}

// The type of the sums, and the values 1 and 0 in the scale type.
static unsigned set_compute(tl_cublaslt_plan *plan, const tl_cublaslt_problem *problem, unsigned *out_scale) {
  if (problem->a == TL_DTYPE_F64) {
    plan->one.f64 = 1;
    *out_scale = TL_CUBLASLT_TYPE_F64;
    return TL_CUBLASLT_COMPUTE_F64;
  }
  if (problem->a == TL_DTYPE_I8) {
    plan->one.i32 = 1;
    *out_scale = TL_CUBLASLT_TYPE_I32;
    return TL_CUBLASLT_COMPUTE_I32;
  }
  plan->one.f32 = 1;
  *out_scale = TL_CUBLASLT_TYPE_F32;
  return problem->a == TL_DTYPE_TF32 ? TL_CUBLASLT_COMPUTE_TF32 : TL_CUBLASLT_COMPUTE_F32;
}

// cuBLASLt stores matrices by columns: a row-major X[r, c] is its c x r matrix. So it computes the transposed product
// C' = B' A', and a stored B[n, k] is the one that it must transpose.
static tl_status describe(tl_cublaslt_plan *plan, const tl_cublaslt_problem *p) {
  tl_cublaslt *l = plan->library;
  unsigned scale, compute = set_compute(plan, p, &scale);
  TL_TRY(check(l->desc_create(&plan->desc, compute, scale), "cublasLtMatmulDescCreate"));
  int32_t first = p->b_transposed, second = p->a_transposed;
  TL_TRY(
      check(l->desc_set(plan->desc, TL_CUBLASLT_DESC_TRANSA, &first, sizeof first), "cublasLtMatmulDescSetAttribute"));
  TL_TRY(check(l->desc_set(plan->desc, TL_CUBLASLT_DESC_TRANSB, &second, sizeof second),
               "cublasLtMatmulDescSetAttribute"));
  uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
  TL_TRY(check(l->layout_create(&plan->b_layout, (unsigned)type_of(p->b), first ? k : n, first ? n : k, p->ldb),
               "cublasLtMatrixLayoutCreate"));
  TL_TRY(check(l->layout_create(&plan->a_layout, (unsigned)type_of(p->a), second ? m : k, second ? k : m, p->lda),
               "cublasLtMatrixLayoutCreate"));
  return check(l->layout_create(&plan->c_layout, (unsigned)type_of(p->c), n, m, p->ldc), "cublasLtMatrixLayoutCreate");
}

static tl_status choose(tl_cublaslt_plan *plan) {
  tl_cublaslt *l = plan->library;
  void *preference = NULL;
  uint64_t bytes = WORKSPACE_BYTES;
  int given = 0;
  TL_TRY(check(l->preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
  tl_status status = check(l->preference_set(preference, TL_CUBLASLT_PREFERENCE_MAX_WORKSPACE, &bytes, sizeof bytes),
                           "cublasLtMatmulPreferenceSetAttribute");
  if (!status) {
    status = check(l->get_heuristic(l->handle, plan->desc, plan->b_layout, plan->a_layout, plan->c_layout,
                                    plan->c_layout, preference, MAX_CHOICES, plan->choices, &given),
                   "cublasLtMatmulAlgoGetHeuristic");
  }
  l->preference_destroy(preference);
  TL_TRY(status);
  for (int i = 0; i < given; i++) {
    if (plan->choices[i].state == 0) plan->choices[plan->num_choices++] = plan->choices[i];
  }
  if (plan->num_choices > 0) return TL_OK;
  return tl_status_make(TL_STATUS_UNSUPPORTED, "cuBLASLt has no algorithm for this product");
}

tl_status tl_cublaslt_plan_create(tl_cublaslt *library, const tl_cublaslt_problem *problem, tl_cublaslt_plan **out) {
  *out = NULL;
  if (type_of(problem->a) < 0 || type_of(problem->b) < 0 || type_of(problem->c) < 0) {
    return tl_status_make(TL_STATUS_UNSUPPORTED, "cuBLASLt does not multiply %s by %s", tl_dtype_name(problem->a),
                          tl_dtype_name(problem->b));
  }
  tl_cublaslt_plan *plan = tl_xcalloc(1, sizeof *plan);
  plan->library = library;
  tl_status status = tl_device_enter(library->device);
  if (!status) {
    status = describe(plan, problem);
    if (!status) status = choose(plan);
    status = tl_device_leave(library->device, status);
  }
  if (status) {
    tl_cublaslt_plan_destroy(plan);
    return status;
  }
  *out = plan;
  return TL_OK;
}

void tl_cublaslt_plan_destroy(tl_cublaslt_plan *plan) {
  if (!plan) return;
  tl_cublaslt *l = plan->library;
  if (plan->a_layout) l->layout_destroy(plan->a_layout);
  if (plan->b_layout) l->layout_destroy(plan->b_layout);
  if (plan->c_layout) l->layout_destroy(plan->c_layout);
  if (plan->desc) l->desc_destroy(plan->desc);
  free(plan);
}

uint32_t tl_cublaslt_plan_num_choices(const tl_cublaslt_plan *plan) {
  return plan->num_choices;
}

tl_status tl_cublaslt_launch(tl_cublaslt_plan *plan, uint32_t choice, const void *a, const void *b, void *c,
                             void *stream) {
  tl_cublaslt *l = plan->library;
  TL_TRY(tl_device_enter(l->device));
  unsigned result =
      l->matmul(l->handle, plan->desc, &plan->one, b, plan->b_layout, a, plan->a_layout, &plan->zero, c, plan->c_layout,
                c, plan->c_layout, &plan->choices[choice].algorithm, l->workspace, WORKSPACE_BYTES, stream);
  return tl_device_leave(l->device, check(result, "cublasLtMatmul"));
}
