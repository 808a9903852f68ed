// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `chain`: two products in sequence over blocks of N, P = f(A @ B), C = P @ V, with running row sums or maxima
// and a causal or ragged condition: the skeleton of attention without its rescaling.
#include <math.h>

#include "test/random/expr.h"
#include "test/random/families.h"
#include "test/random/matmul.h"

typedef struct chain {
  tl_rspec *spec;
  int64_t bm, bn, k, d, m, n, threads, stages;
  tl_dtype dtype;
  bool b_transposed, is_whole, is_pipelined, has_sums, has_maxima;
  const char *kept;       // a condition on m and n in the reference, or NULL
  const char *kept_body;  // the same in the body
} chain;

static bool maybe(chain *c, uint32_t percent) {
  return tl_rspec_maybe(c->spec->choices, percent);
}

static void draw(chain *c) {
  tl_rspec *spec = c->spec;
  tl_rspec_choices *choices = spec->choices;
  c->dtype = tl_rspec_choose(choices, 2) ? TL_DTYPE_BF16 : TL_DTYPE_F16;
  c->bm = tl_rspec_pick(choices, 64, 32, 16, 128, 48);
  c->bn = tl_rspec_pick(choices, 32, 64, 16, 40, 128, 24);
  c->k = tl_rspec_pick(choices, 32, 64, 16, 24, 40);
  c->d = tl_rspec_pick(choices, 32, 64, 16, 40, 8);
  c->threads = tl_rspec_pick(choices, 128, 64, 32, 256, 96);
  while (c->bm * (c->bn + c->d) / c->threads > 96) c->threads *= 2;
  c->stages = tl_rspec_pick(choices, 2, 1, 3);
  c->m = c->bm * tl_rspec_pick(choices, 1, 2) - tl_rspec_pick(choices, 0, 1, 5);
  c->n = c->bn * tl_rspec_pick(choices, 2, 1, 3) - tl_rspec_pick(choices, 0, 1, 8, 3);
  c->b_transposed = maybe(c, 60);
  c->is_whole = maybe(c, 40);
  c->is_pipelined = !maybe(c, 20);
  c->has_sums = maybe(c, 50);
  c->has_maxima = maybe(c, 30);
  switch (tl_rspec_choose(choices, 5)) {
    case 3:
      c->kept = "n <= m";
      c->kept_body = "nb * bn + j <= by * bm + i";
      break;
    case 4:
      c->kept = "n < lens[m // bm]";
      c->kept_body = "nb * bn + j < lens[by]";
      tl_rspec_line(spec, TL_RSPEC_ARGS, "lens: in i32[%lld]", (long long)(c->m / c->bm + 1));
      tl_rspec_line(spec, TL_RSPEC_INPUTS, "lens: ints(0, %lld)", (long long)c->n);
      break;
    default:
      break;
  }
}

static void write_head(chain *c) {
  tl_rspec *spec = c->spec;
  const char *generator = c->is_whole ? "ints(-1, 1)" : "uniform(-1, 1)";
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "M: %lld", (long long)c->m);
  if (maybe(c, 30)) {
    tl_rspec_line(spec, TL_RSPEC_PARAMS, "N: dynamic");
    tl_rspec_line(spec, TL_RSPEC_CASES, "- {N: %lld}", (long long)c->n);
  } else {
    tl_rspec_line(spec, TL_RSPEC_PARAMS, "N: %lld", (long long)c->n);
  }
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "K: %lld", (long long)c->k);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "D: %lld", (long long)c->d);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "bm: %lld", (long long)c->bm);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "bn: %lld", (long long)c->bn);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "dtype: %s", tl_dtype_name(c->dtype));
  tl_rspec_line(spec, TL_RSPEC_ARGS, "A: in dtype[M, K]");
  tl_rspec_line(spec, TL_RSPEC_ARGS, "B: in dtype[%s]", c->b_transposed ? "N, K" : "K, N");
  tl_rspec_line(spec, TL_RSPEC_ARGS, "V: in dtype[N, D]");
  tl_rspec_line(spec, TL_RSPEC_ARGS, "C: out f32[M, D]");
  for (const char *name = "ABV"; *name; name++) tl_rspec_line(spec, TL_RSPEC_INPUTS, "%c: %s", *name, generator);
  tl_rspec_line(spec, TL_RSPEC_GRID, "by: ceildiv(M, bm)");
  tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %lld", (long long)c->threads);
  tl_rspec_line(spec, TL_RSPEC_SHARED, "A_s: dtype[bm, K]");
  tl_rspec_line(spec, TL_RSPEC_SHARED, "B_s: dtype[%s]", c->b_transposed ? "bn, K" : "K, bn");
  tl_rspec_line(spec, TL_RSPEC_SHARED, "V_s: dtype[bn, D]");
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "S: f32[bm, bn]");
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "acc: f32[bm, D]");
}

// P from S: scaled, a function, and zero where the condition says so.
static tl_rspec_value draw_probabilities(chain *c) {
  tl_rspec *spec = c->spec;
  double bound = tl_rspec_sum_bound(c->k, 1);
  const char *product = c->b_transposed ? "sum[k in 0:K](A[m, k] * B[n, k])" : "sum[k in 0:K](A[m, k] * B[k, n])";
  tl_rspec_value s = tl_rspec_exact("S[i, j]", product, TL_DTYPE_F32, -bound, bound, c->is_whole), scale = s, p = s;
  if (!c->is_whole) s.err = 0x1p-22 * (double)(c->k + 4) * bound * 0.25;
  scale = tl_rspec_exact("0.0625", "0.0625", TL_DTYPE_F32, 0.0625, 0.0625, false);
  scale.is_const = true;
  if (maybe(c, 60)) tl_rspec_multiply(spec, s, scale, &s);
  p = s;
  if (maybe(c, 60)) tl_rspec_apply(spec, s, &p);
  if (c->kept) {
    // What lies behind N is dropped with the rest, so that sums and maxima may be taken.
    p.body = tl_rspec_text(spec, "(%s if %s else 0)", p.body, c->kept_body);
    p.reference = tl_rspec_text(spec, "(%s if %s else 0)", p.reference, c->kept);
    p.lo = fmin(p.lo, 0);
    p.hi = fmax(p.hi, 0);
  }
  return p;
}

// Running results of each row, over all blocks.
static void write_row(chain *c, const tl_rspec_value *p, bool is_sum) {
  tl_rspec *spec = c->spec;
  const char *name = is_sum ? "l" : "x", *output = is_sum ? "L" : "X";
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "%s: f32[bm]", name);
  tl_rspec_line(spec, TL_RSPEC_ARGS, "%s: out f32[M]", output);
  double count = (double)c->n, err = p->err;
  if (is_sum) {
    bool is_exact = p->is_whole && p->err == 0;
    err = count * p->err + (is_exact ? 0 : count * tl_rspec_rounding(TL_DTYPE_F32, tl_rspec_max_abs(p) * count, false));
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- L[m] = sum[n in 0:N](P[m, n])");
  } else {
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- X[m] = max(max[n in 0:N](P[m, n]), -100)");
  }
  tl_rspec_tolerance(spec, output, 0, err);
}

static void write_body(chain *c, const tl_rspec_value *p, bool through_shared) {
  tl_rspec *spec = c->spec;
  tl_rspec_body(spec, "- copy: A[by * bm, 0] -> A_s");
  tl_rspec_body(spec, "- clear: acc");
  if (c->has_sums) tl_rspec_body(spec, "- l = 0");
  if (c->has_maxima) tl_rspec_body(spec, "- x = -100");
  tl_rspec_body(spec, "- %s: nb in ceildiv(N, bn)", c->is_pipelined ? "pipelined" : "for");
  if (c->is_pipelined) tl_rspec_body(spec, "  stages: %lld", (long long)c->stages);
  tl_rspec_body(spec, "  do:");
  spec->body_indent += 2;
  tl_rspec_body(spec, "- copy: B[%s] -> B_s", c->b_transposed ? "nb * bn, 0" : "0, nb * bn");
  bool early = maybe(c, 50);
  if (early) tl_rspec_body(spec, "- copy: V[nb * bn, 0] -> V_s");
  tl_rspec_body(spec, "- gemm: S = A_s @ B_s%s", c->b_transposed ? ".T" : "");
  tl_rspec_body(spec, "- parallel: i, j in bm, bn");
  tl_rspec_body(spec, "  do: S[i, j] = %s", p->body);
  if (!c->kept && (c->has_sums || c->has_maxima)) {
    // Columns behind N count as nothing.
    tl_rspec_body(spec, "- parallel: i, j in bm, bn");
    tl_rspec_body(spec, "  where: nb * bn + j >= N");
    tl_rspec_body(spec, "  do: S[i, j] = %s", c->has_sums ? "0" : "-100");
  }
  if (c->has_sums) tl_rspec_body(spec, "- %s", maybe(c, 50) ? "reduce: l += sum(S, axis=1)" : "l = l + sum(S, axis=1)");
  if (c->has_maxima) tl_rspec_body(spec, "- reduce: x max= max(S, axis=1)");
  tl_rspec_line(spec, through_shared ? TL_RSPEC_SHARED : TL_RSPEC_FRAGMENT, "P_t: dtype[bm, bn]");
  tl_rspec_body(spec, maybe(c, 50) ? "- copy: S -> P_t" : "- P_t = S");
  if (!early) tl_rspec_body(spec, "- copy: V[nb * bn, 0] -> V_s");
  tl_rspec_body(spec, "- gemm: acc += P_t @ V_s");
  spec->body_indent -= 2;
  tl_rspec_body(spec, "- copy: acc -> C[by * bm, 0]");
  if (c->has_sums) tl_rspec_body(spec, "- copy: l -> L[by * bm]");
  if (c->has_maxima) tl_rspec_body(spec, "- copy: x -> X[by * bm]");
}

void tl_rspec_make_chain(tl_rspec *spec) {
  chain c = {.spec = spec};
  draw(&c);
  // Maxima over columns behind N, or sums beside maxima, need the condition to drop nothing else.
  if (c.has_sums || c.kept) c.has_maxima = false;
  write_head(&c);
  bool through_shared = maybe(&c, 50);
  tl_rspec_value p = draw_probabilities(&c);
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- P[m in 0:M, n in 0:N] = %s", p.reference);
  if (c.kept && c.has_sums) c.kept = NULL, c.kept_body = NULL;
  write_body(&c, &p, through_shared);
  tl_rspec_value rounded = tl_rspec_stored(p, c.dtype);
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- C[m, d] = sum[n in 0:N](P[m, n] * V[n, d])");
  double size = tl_rspec_max_abs(&rounded), bound = tl_rspec_sum_bound(c.n, size);
  bool is_exact = rounded.is_whole && rounded.err == 0;
  double err = tl_rspec_sum_bound(c.n, rounded.err) + (is_exact ? 0 : 0x1p-22 * (double)(c.n + 4) * bound * 0.5);
  tl_rspec_tolerance(spec, "C", 0, err);
  if (c.has_sums) write_row(&c, &p, true);
  if (c.has_maxima) write_row(&c, &p, false);
}
