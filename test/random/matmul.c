// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `matmul`: products in every layout, with epilogues, second products, split K and other ways out.
#include "test/random/matmul.h"

#include <math.h>

#include "test/random/expr.h"
#include "test/random/families.h"

static bool maybe(tl_rspec_gemm *g, uint32_t percent) {
  return tl_rspec_maybe(g->spec->choices, percent);
}

// Something that an epilogue adds or multiplies: a vector along one dim, a matrix or a scalar.
static tl_rspec_value draw_extra(tl_rspec_gemm *g, int number, bool is_parallel) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F32, TL_DTYPE_F16, TL_DTYPE_BF16};
  tl_rspec *spec = g->spec;
  uint32_t kind = tl_rspec_choose(spec->choices, 4);
  tl_dtype dtype = dtypes[tl_rspec_choose(spec->choices, 3)];
  const char *name = tl_dtype_name(dtype);
  const char *tensor = tl_rspec_text(spec, "E%d", number), *tile = tl_rspec_text(spec, "e%d", number);
  static const char *const dims[] = {"N", "M", "M, N", ""}, *const blocks[] = {"bn", "bm", "bm, bn", ""};
  static const char *const corners[] = {"bx * bn", "by * bm", "by * bm, bx * bn", ""};
  static const char *const elements[] = {"bx * bn + j", "by * bm + i", "by * bm + i, bx * bn + j", ""};
  static const char *const forms[] = {"", "[:, None]", "", ""}, *const indices[] = {"n", "m", "m, n", ""};
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "%s: ints(-3, 3)", tensor);
  if (kind == 3) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "%s: %s", tensor, name);
    return tl_rspec_exact(tensor, tensor, dtype, -3, 3, true);
  }
  tl_rspec_line(spec, TL_RSPEC_ARGS, "%s: in %s[%s]", tensor, name, dims[kind]);
  const char *reference = tl_rspec_text(spec, "%s[%s]", tensor, indices[kind]);
  if (is_parallel && maybe(g, 60)) {
    return tl_rspec_exact(tl_rspec_text(spec, "%s[%s]", tensor, elements[kind]), reference, dtype, -3, 3, true);
  }
  tl_rspec_line(spec, maybe(g, 50) ? TL_RSPEC_FRAGMENT : TL_RSPEC_SHARED, "%s: %s[%s]", tile, name, blocks[kind]);
  tl_rspec_body(spec, "- copy: %s[%s] -> %s", tensor, corners[kind], tile);
  static const char *const places[] = {"j", "i", "i, j"};
  const char *body =
      is_parallel ? tl_rspec_text(spec, "%s[%s]", tile, places[kind]) : tl_rspec_text(spec, "%s%s", tile, forms[kind]);
  return tl_rspec_exact(body, reference, dtype, -3, 3, true);
}

// Changes `acc` in place: bias, residual, scale, activation, in an assignment or a parallel.
static void write_epilogue(tl_rspec_gemm *g, tl_rspec_value *acc) {
  tl_rspec *spec = g->spec;
  uint32_t steps = tl_rspec_choose(spec->choices, 4);
  bool is_parallel = maybe(g, 40);
  if (steps == 0) return;
  tl_rspec_value value = *acc;
  if (is_parallel) value.body = "acc[i, j]";
  for (uint32_t i = 0; i < steps; i++) {
    switch (tl_rspec_choose(spec->choices, 5)) {
      case 0:
        tl_rspec_add(spec, value, draw_extra(g, (int)i, is_parallel), maybe(g, 30), &value);
        break;
      case 1:
        tl_rspec_multiply(spec, value, tl_rspec_constant(spec, 2, false), &value);
        break;
      case 2:
        tl_rspec_multiply(spec, value, draw_extra(g, (int)i, is_parallel), &value);
        break;
      case 3:
        tl_rspec_min_max(spec, value, draw_extra(g, (int)i, is_parallel), maybe(g, 50), &value);
        break;
      default:
        tl_rspec_apply(spec, value, &value);
        break;
    }
  }
  if (is_parallel) {
    tl_rspec_body(spec, "- parallel: i, j in bm, bn");
    tl_rspec_body(spec, "  do: acc[i, j] = %s", value.body);
  } else {
    tl_rspec_body(spec, "- acc = %s", value.body);
  }
  *acc = tl_rspec_stored(value, TL_DTYPE_F32);
}

// The output C, from tile `tile` with reference `value`.
static void write_result(tl_rspec_gemm *g, const char *tile, tl_rspec_value value) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F32, TL_DTYPE_F16, TL_DTYPE_BF16};
  tl_rspec *spec = g->spec;
  const char *lead = g->is_batched ? "2, " : "", *at = g->is_batched ? "bb, " : "";
  const char *index = g->is_batched ? "b0, " : "";
  if (g->split > 1) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "C: inout %s[%sM, N]", tl_rspec_gemm_is_int(g) ? "i32" : "f32", lead);
    tl_rspec_line(spec, TL_RSPEC_INPUTS, "C: %s", maybe(g, 50) ? "zeros" : "ints(-3, 3)");
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- C[%sm, n] = C[%sm, n] + %s", index, index, value.reference);
    tl_rspec_tolerance(spec, "C", 0, value.is_whole ? 0 : value.err * 2 + 1e-6);
    tl_rspec_body(spec, "- atomic: %s -> C[%sby * bm, bx * bn]", tile, at);
    return;
  }
  tl_dtype dtype = dtypes[tl_rspec_choose(spec->choices, 3)];
  if (tl_rspec_gemm_is_int(g)) dtype = TL_DTYPE_I32;
  const char *name = tl_dtype_name(dtype);
  uint32_t road = tl_rspec_choose(spec->choices, 6);
  bool transposes = road == 4 && !g->is_batched;
  tl_rspec_line(spec, TL_RSPEC_ARGS, "C: out %s[%s%s]", name, lead, transposes ? "N, M" : "M, N");
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- C[%s%s] = %s", index, transposes ? "n, m" : "m, n", value.reference);
  value = tl_rspec_stored(value, dtype);
  // A sum's typical value is far below its bound, so its last rounding is relative.
  tl_rspec_tolerance(spec, "C", 0, value.err);
  const char *from = tile;
  if (road == 2 || road == 4 || road == 5) {
    tl_rspec_line(spec, road == 5 ? TL_RSPEC_FRAGMENT : TL_RSPEC_SHARED, "C_s: %s[bm, bn]", name);
    tl_rspec_body(spec, "- copy: %s -> C_s", tile);
    from = "C_s";
  }
  if (road == 3) {
    tl_rspec_body(spec, "- parallel: i, j in bm, bn");
    tl_rspec_body(spec, "  do: C[%sby * bm + i, bx * bn + j] = %s[i, j]", at, tile);
  } else if (transposes) {
    tl_rspec_body(spec, "- copy: %s.T -> C[bx * bn, by * bm]", from);
  } else {
    tl_rspec_body(spec, "- copy: %s -> C[%sby * bm, bx * bn]", from, at);
  }
}

void tl_rspec_make_matmul(tl_rspec *spec) {
  tl_rspec_gemm g;
  tl_rspec_draw_gemm(spec, &g);
  tl_rspec_write_gemm_loop(&g);
  tl_rspec_value value = tl_rspec_gemm_value(&g);
  if (g.split == 1 && !tl_rspec_gemm_is_int(&g)) write_epilogue(&g, &value);
  write_result(&g, "acc", value);
}
