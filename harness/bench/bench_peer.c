// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cuBLASLt beside a kernel whose reference is a matrix product.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/bench_internal.h"
#include "harness/bench/bench_product.h"
#include "harness/device/device_internal.h"

enum { COMPARED_ELEMENTS = 1 << 22 };
static const double compared_tolerance = 2e-2;  // relative, of the Euclidean norm

tl_status tl_bench_peer_launch(void *user, uint32_t set, void *stream) {
  tl_bench_case *c = user;
  return tl_cublaslt_launch(c->peer, c->peer_choice, tl_bench_sets_pointer(&c->sets, set, c->peer_args[0]),
                            tl_bench_sets_pointer(&c->sets, set, c->peer_args[1]),
                            tl_bench_sets_pointer(&c->sets, set, c->peer_args[2]), stream);
}

static uint32_t index_of(const tl_run_args *args, tl_str name) {
  return (uint32_t)(tl_run_args_find(args, name) - args->items);
}

static bool is_by_rows(const tl_run_arg *arg) {
  return arg->strides[1] == 1 && arg->strides[0] >= arg->array.shape[1];
}

// NULL and the problem, or why cuBLASLt cannot be asked.
static const char *describe(tl_bench_case *c, tl_cublaslt_problem *out) {
  tl_bench_product product;
  const char *reason = tl_bench_find_product(c->kernel, &product);
  if (reason) return reason;
  const tl_str names[3] = {product.a, product.b, product.c};
  const tl_run_arg *args[3];
  for (int i = 0; i < 3; i++) {
    c->peer_args[i] = index_of(&c->args, names[i]);
    args[i] = &c->args.items[c->peer_args[i]];
    if (!is_by_rows(args[i])) return "an argument is not stored by rows";
  }
  const int64_t *a = args[0]->array.shape, *shape = args[2]->array.shape;
  *out = (tl_cublaslt_problem){.m = shape[0],
                               .n = shape[1],
                               .k = product.a_transposed ? a[0] : a[1],
                               .lda = args[0]->strides[0],
                               .ldb = args[1]->strides[0],
                               .ldc = args[2]->strides[0],
                               .a_transposed = product.a_transposed,
                               .b_transposed = product.b_transposed,
                               .a = args[0]->array.dtype,
                               .b = args[1]->array.dtype,
                               .c = args[2]->array.dtype};
  return out->m > 0 && out->n > 0 && out->k > 0 ? NULL : "the product is empty";
}

static tl_status pick(tl_bench_case *c) {
  double least = INFINITY;
  uint32_t best = 0, num_choices = tl_cublaslt_plan_num_choices(c->peer);
  for (uint32_t i = 0; i < num_choices; i++) {
    const tl_bench_contestant one = {
        .name = "peer", .launch = tl_bench_peer_launch, .user = c, .num_sets = c->sets.num_sets};
    double seconds = 0;
    c->peer_choice = i;
    tl_status status = tl_bench_estimate(c->options->device->gpu, &one, 0.004, &seconds);
    // A choice may turn out not to fit after all; a driver failure is real.
    if (tl_status_code_of(status) == TL_STATUS_UNSUPPORTED) {
      tl_status_free(status);
      continue;
    }
    TL_TRY(status);
    if (seconds < least) {
      least = seconds;
      best = i;
    }
  }
  c->peer_choice = best;
  return isinf(least) ? tl_status_make(TL_STATUS_UNSUPPORTED, "none of cuBLASLt's choices runs") : TL_OK;
}

// Bytes of the beginning of C that one launch of set 0 gives.
static tl_status result_of(tl_bench_case *c, tl_status (*launch)(void *, uint32_t, void *), void *out, size_t bytes) {
  tl_device *gpu = c->options->device->gpu;
  TL_TRY(launch(c, 0, NULL));
  TL_TRY(tl_stream_synchronize(gpu, NULL));
  return tl_device_download(gpu, out, tl_bench_sets_pointer(&c->sets, 0, c->peer_args[2]), bytes);
}

// ||ours - peer|| / ||peer||; gaps between rows are the same in both.
static double difference(tl_dtype dtype, const void *ours, const void *peer, uint64_t count) {
  double error = 0, norm = 0;
  for (uint64_t i = 0; i < count; i++) {
    bool is_float = tl_dtype_is_float(dtype);
    double x = is_float ? tl_dtype_load_float(dtype, ours, i) : (double)tl_dtype_load_int(dtype, ours, i);
    double y = is_float ? tl_dtype_load_float(dtype, peer, i) : (double)tl_dtype_load_int(dtype, peer, i);
    error += (x - y) * (x - y);
    norm += y * y;
  }
  return sqrt(error) / (norm > 0 ? sqrt(norm) : 1);
}

// Each is the other's check.
static tl_status compare(tl_bench_case *c) {
  const tl_run_arg *arg = &c->args.items[c->peer_args[2]];
  // A kernel that adds to C gives something else each time, and rows with gaps hold poison between them.
  if (arg->access != 1 || arg->strides[0] != arg->array.shape[1]) return TL_OK;
  uint64_t count = arg->array.count < COMPARED_ELEMENTS ? arg->array.count : COMPARED_ELEMENTS;
  size_t bytes = (size_t)tl_dtype_bytes(arg->array.dtype, count);
  void *ours = tl_xmalloc(bytes), *peer = tl_xmalloc(bytes);
  tl_status status = result_of(c, tl_bench_case_launch, ours, bytes);
  if (!status) status = result_of(c, tl_bench_peer_launch, peer, bytes);
  if (!status && memcmp(ours, peer, bytes) != 0) {
    double error = difference(arg->array.dtype, ours, peer, count);
    if (!(error < compared_tolerance)) {
      char text[128];
      snprintf(text, sizeof text, "DIFFERS FROM THE PEER by %.3g of the norm", error);
      free(c->result->checked);
      c->result->checked = strdup(text);
      c->is_wrong = true;
    }
  }
  if (!status && !c->is_wrong && strcmp(c->result->checked, "checked") != 0) {
    free(c->result->checked);
    c->result->checked = strdup("agrees with the peer");
  }
  free(ours);
  free(peer);
  return status;
}

tl_status tl_bench_peer_prepare(tl_bench_case *c) {
  if (!c->options->cublaslt) return TL_OK;
  c->result->peer = strdup(tl_cublaslt_version(c->options->cublaslt));
  tl_cublaslt_problem problem;
  const char *reason = describe(c, &problem);
  if (reason) {
    c->result->peer_note = strdup(reason);
    return TL_OK;
  }
  tl_status status = tl_cublaslt_plan_create(c->options->cublaslt, &problem, &c->peer);
  if (!status) status = pick(c);
  if (!status) return compare(c);
  tl_cublaslt_plan_destroy(c->peer);
  c->peer = NULL;
  if (tl_status_code_of(status) != TL_STATUS_UNSUPPORTED) return status;
  c->result->peer_note = strdup(tl_status_message(status));
  tl_status_free(status);
  return TL_OK;
}
