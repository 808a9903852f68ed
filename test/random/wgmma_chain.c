// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `wgmma_chain`: loops in which a product needs another one of its iteration, as in attention: scores, masks, a
// running state a row, a second product out of registers, sums that are rescaled. Small integers: exact.
#include "test/random/families.h"
#include "test/random/value.h"

typedef struct chain {
  tl_rspec *spec;
  const char *dtype;
  int64_t bm, bn, d, d2, m, n, threads, stages, trips;
  bool by_tma, is_dynamic, is_causal, skips, has_rows, rescales, in_shared, heads;
} chain;

static bool maybe(chain *c, uint32_t percent) {
  return tl_rspec_maybe(c->spec->choices, percent);
}

static void draw(chain *c) {
  tl_rspec_choices *choices = c->spec->choices;
  c->dtype = maybe(c, 50) ? "bf16" : "f16";
  c->threads = tl_rspec_pick(choices, 128, 256, 256, 384);
  c->bm = tl_rspec_pick(choices, 64, 128, 192, 64);
  c->bn = tl_rspec_pick(choices, 64, 32, 48, 96, 128, 16);
  c->d = tl_rspec_pick(choices, 64, 32, 16, 96, 128);
  c->d2 = tl_rspec_pick(choices, 64, 32, 48, 128, 16);
  while (c->bm * (c->bn + c->d2) / c->threads > 128) c->bm /= 2;
  c->stages = tl_rspec_pick(choices, 2, 3, 1, 4);
  c->trips = 1 + tl_rspec_choose(choices, 6);
  c->n = c->bn * c->trips - (maybe(c, 40) ? tl_rspec_pick(choices, 8, 3, 16 - 1) : 0);
  c->m = c->bm * (1 + tl_rspec_choose(choices, 2)) - (maybe(c, 30) ? 5 : 0);
  c->by_tma = c->stages > 1 && c->trips > 1 && maybe(c, 50);
  c->heads = maybe(c, 50);
  c->is_causal = maybe(c, 40);
  c->skips = c->is_causal && maybe(c, 50);
  c->has_rows = maybe(c, 50);
  c->rescales = maybe(c, 40);
  c->in_shared = maybe(c, 15);
  c->is_dynamic = !c->by_tma && !c->skips && maybe(c, 25);
}

static void write_tensor(chain *c, const char *access, const char *name, const char *rows, const char *columns) {
  tl_rspec_line(c->spec, TL_RSPEC_ARGS, c->heads ? "%s: %s[%s, 2, %s]" : "%s: %s[%s, %s]", name, access, rows, columns);
}

static void write_head(chain *c) {
  tl_rspec *spec = c->spec;
  const char *names[] = {"M", "N", "bm", "bn", "D", "D2"}, *in = tl_rspec_text(spec, "in %s", c->dtype);
  int64_t sizes[] = {c->m, c->n, c->bm, c->bn, c->d, c->d2};
  for (int i = 0; i < 6; i++)
    if (i < 2 && c->is_dynamic)
      tl_rspec_line(spec, TL_RSPEC_PARAMS, "%s: dynamic", names[i]);
    else
      tl_rspec_line(spec, TL_RSPEC_PARAMS, "%s: %lld", names[i], (long long)sizes[i]);
  if (c->is_dynamic) tl_rspec_line(spec, TL_RSPEC_CASES, "- {M: %lld, N: %lld}", (long long)c->m, (long long)c->n);
  tl_rspec_line(spec, TL_RSPEC_HEAD, "target: %s", c->by_tma ? "sm_90a" : "sm_80");
  write_tensor(c, in, "Q", "M", "D");
  write_tensor(c, in, "K", "N", "D");
  write_tensor(c, in, "V", "N", "D2");
  write_tensor(c, "out f32", "O", "M", "D2");
  if (c->has_rows) tl_rspec_line(spec, TL_RSPEC_ARGS, c->heads ? "L: out f32[2, M]" : "L: out f32[M]");
  tl_rspec_line(spec, TL_RSPEC_GRID, "bx: ceildiv(M, bm)");
  if (c->heads) tl_rspec_line(spec, TL_RSPEC_GRID, "by: 2");
  tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %lld", (long long)c->threads);
  tl_rspec_line(spec, TL_RSPEC_SHARED, "Q_s: %s[bm, D]", c->dtype);
  tl_rspec_line(spec, TL_RSPEC_SHARED, "K_s: %s[bn, D]", c->dtype);
  tl_rspec_line(spec, TL_RSPEC_SHARED, "V_s: %s[bn, D2]", c->dtype);
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "S: f32[bm, bn]");
  tl_rspec_line(spec, c->in_shared ? TL_RSPEC_SHARED : TL_RSPEC_FRAGMENT, "P: %s[bm, bn]", c->dtype);
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "acc: f32[bm, D2]");
  if (c->has_rows) tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "l: f32[bm]");
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "Q: ints(-1, 1)");
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "K: ints(-1, 1)");
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "V: ints(-2, 2)");
}

static void write_copy(chain *c, const char *name, const char *start, const char *block) {
  const char *rest = c->heads ? tl_rspec_text(c->spec, ":+%s, by, :", block) : ", 0";
  tl_rspec_body(c->spec, "- copy: %s[%s * %s%s] -> %s_s", name, start, block, rest, name);
}

static void write_iteration(chain *c) {
  tl_rspec *spec = c->spec;
  bool v_early = maybe(c, 40);
  write_copy(c, "K", "n", "bn");
  if (c->by_tma) tl_rspec_body(spec, "  via: tma");
  if (v_early) write_copy(c, "V", "n", "bn");
  if (v_early && c->by_tma) tl_rspec_body(spec, "  via: tma");
  tl_rspec_body(spec, "- gemm: S = Q_s @ K_s.T");
  if (c->is_causal) {
    tl_rspec_body(spec, "- parallel: i, j in bm, bn");
    tl_rspec_body(spec, "  do: S[i, j] = select(bx * bm + i >= n * bn + j, S[i, j], 0)");
  }
  if (maybe(c, 50)) {
    tl_rspec_body(spec, "- P = min(max(S, -3), 3)");
  } else {
    tl_rspec_body(spec, "- S = min(max(S, -3), 3)");
    tl_rspec_body(spec, "- copy: S -> P");
  }
  if (c->has_rows) tl_rspec_body(spec, "- l += sum(min(max(S, -3), 3), axis=1)");
  if (c->rescales) {
    tl_rspec_body(spec, "- parallel: i, j in bm, D2");
    tl_rspec_body(spec, "  do: acc[i, j] *= 2");
  }
  if (!v_early) write_copy(c, "V", "n", "bn");
  if (!v_early && c->by_tma) tl_rspec_body(spec, "  via: tma");
  tl_rspec_body(spec, "- gemm: acc += P @ V_s");
}

static void write_body(chain *c) {
  static const char *const roles[] = {"auto", "on", "off"};
  tl_rspec *spec = c->spec;
  write_copy(c, "Q", "bx", "bm");
  tl_rspec_body(spec, "- clear: acc");
  if (c->has_rows) tl_rspec_body(spec, "- clear: l");
  tl_rspec_body(spec, c->skips ? "- pipelined: n in min(ceildiv((bx + 1) * bm, bn), ceildiv(N, bn))"
                               : "- pipelined: n in ceildiv(N, bn)");
  tl_rspec_body(spec, "  stages: %lld", (long long)c->stages);
  uint32_t role = tl_rspec_choose(spec->choices, 4);
  if (role > 0 && c->by_tma) tl_rspec_body(spec, "  specialize: %s", roles[role - 1]);
  if (maybe(c, 15)) tl_rspec_body(spec, "  overlap: 0");
  tl_rspec_body(spec, "  do:");
  spec->body_indent += 2;
  write_iteration(c);
  spec->body_indent -= 2;
  tl_rspec_body(spec, c->heads ? "- copy: acc -> O[bx * bm:+bm, by, :]" : "- copy: acc -> O[bx * bm, 0]");
  if (c->has_rows) tl_rspec_body(spec, c->heads ? "- copy: l -> L[by, bx * bm]" : "- copy: l -> L[bx * bm]");
}

static void write_reference(chain *c) {
  tl_rspec *spec = c->spec;
  const char *h = c->heads ? "h, " : "";
  const char *score = tl_rspec_text(spec, "sum[d in 0:D](Q[m, %sd] * K[n, %sd])", h, h);
  if (c->is_causal) score = tl_rspec_text(spec, "select(m >= n, %s, 0)", score);
  const char *range = c->heads ? "h in 0:2, m in 0:M, n in 0:N" : "m in 0:M, n in 0:N";
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- P[%s] = min(max(%s, -3), 3)", range, score);
  // Every iteration behind that of n doubles, those that are left out not.
  const char *last = c->skips ? "min(ceildiv((m // bm + 1) * bm, bn), ceildiv(N, bn))" : "ceildiv(N, bn)";
  const char *each = tl_rspec_text(spec, "P[%sm, n] * V[n, %se]", h, h);
  if (c->rescales) each = tl_rspec_text(spec, "select(n // bn < %s, exp2(%s - 1 - n // bn) * %s, 0)", last, last, each);
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- O[m, %se] = sum[n in 0:N](%s)", h, each);
  tl_rspec_tolerance(spec, "O", 0, 0);
  if (!c->has_rows) return;
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- L[%sm] = sum[n in 0:N](P[%sm, n])", h, h);
  tl_rspec_tolerance(spec, "L", 0, 0);
}

void tl_rspec_make_wgmma_chain(tl_rspec *spec) {
  chain c = {.spec = spec};
  draw(&c);
  write_head(&c);
  write_body(&c);
  write_reference(&c);
}
