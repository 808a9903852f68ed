// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `loop_bounds`: pipelined loops whose ends follow from the block's index or from a table, reversed and stepped
// ones, and two that share what they go through, with one or two products (attention). Small integers: exact.
#include "test/random/families.h"
#include "test/random/value.h"

typedef struct bounds {
  tl_rspec *spec;
  const char *dtype;
  int64_t bm, bn, d, d2, m, n, threads, stages;
  uint32_t form;
  bool is_dynamic[2];  // M, N
  bool has_scores;     // the product needs another one of its iteration
  bool is_causal, has_flags, is_cut;
  uint32_t role;  // 0: any target
} bounds;

// The blocks of N that block `bx` goes through: from `lower`, up to `upper` or down to it, and what is true of them.
typedef struct loop_form {
  const char *range, *visited;  // `b`: the block's index, `T`: blocks of N; `k`: one of them
} loop_form;

static const loop_form forms[] = {
    {"0, b + 1", "k <= b"},
    {"max(b - 1, 0), b + 1", "k <= b and k >= b - 1"},
    {"b, T", "k >= b"},
    {"lo[b], T", "k >= lo[b]"},
    {"lo[b], hi[b]", "k >= lo[b] and k < hi[b]"},
    {"T - 1, b - 1, -1", "k >= b"},
    {"b, -1, -1", "k <= b"},
    {"b % 2, T, 2", "k % 2 == b % 2"},
    {"0, (b * bm + bm) // bn", "k < (b * bm + bm) // bn"},
    {"max(b * bm - 40, 0) // bn, ceildiv(b * bm + bm, bn)",
     "k >= max(b * bm - 40, 0) // bn and k < ceildiv(b * bm + bm, bn)"},
    {"lo[b], b + 1", "k >= lo[b] and k <= b"},
    {"hi[b] - 1, lo[b] - 1, -1", "k >= lo[b] and k < hi[b]"},
    {"b, T, 3", "k >= b and (k - b) % 3 == 0"},
};

static bool maybe(bounds *s, uint32_t percent) {
  return tl_rspec_maybe(s->spec->choices, percent);
}

static void draw(bounds *s) {
  tl_rspec_choices *choices = s->spec->choices;
  s->form = tl_rspec_choose(choices, sizeof(forms) / sizeof(*forms));
  s->has_scores = maybe(s, 70);
  s->dtype = maybe(s, 50) ? "bf16" : "f16";
  s->threads = tl_rspec_pick(choices, 128, 256);
  s->bm = tl_rspec_pick(choices, 64, 128);
  s->bn = tl_rspec_pick(choices, 64, 32, 128);
  s->d = tl_rspec_pick(choices, 64, 128, 32);
  s->d2 = tl_rspec_pick(choices, 64, 32, 128);
  if (s->bm * (s->bn + s->d2) / s->threads > 128) s->bm = 64;
  s->stages = tl_rspec_pick(choices, 2, 3, 1, 4, 0);
  s->m = s->bm * (1 + tl_rspec_choose(choices, 4)) - (maybe(s, 30) ? 5 : 0);
  s->n = s->bn * (1 + tl_rspec_choose(choices, 5)) - (maybe(s, 30) ? 8 : 0);
  s->is_dynamic[0] = maybe(s, 50);
  s->is_dynamic[1] = maybe(s, 50);
  s->is_causal = s->has_scores && maybe(s, 50);
  s->has_flags = maybe(s, 20);
  s->is_cut = maybe(s, 40);
  s->role =
      s->stages > 1 && !s->has_flags && s->d >= 64 && s->d2 >= 64 && maybe(s, 40) ? 1 + tl_rspec_choose(choices, 2) : 0;
}

// The form with what stands for b and k.
static const char *put(bounds *s, const char *form, const char *b, const char *k) {
  const char *out = "";
  for (const char *at = form; *at; at++) {
    bool is_word = (at > form && (at[-1] == 'b' || at[-1] == 'm' || at[-1] == 'n' || at[-1] == 'l')) || at[1] == 'm' ||
                   at[1] == 'n';
    const char *with = *at == 'b' && !is_word ? b : *at == 'k' && !is_word ? k : *at == 'T' ? "ceildiv(N, bn)" : NULL;
    out = with ? tl_rspec_text(s->spec, "%s%s", out, with) : tl_rspec_text(s->spec, "%s%c", out, *at);
  }
  return out;
}

static void write_head(bounds *s) {
  tl_rspec *spec = s->spec;
  const char *names[] = {"M", "N", "bm", "bn", "D", "D2"}, *in = tl_rspec_text(spec, "in %s", s->dtype), *values = "";
  int64_t sizes[] = {s->m, s->n, s->bm, s->bn, s->d, s->d2};
  for (int i = 0; i < 6; i++) {
    bool is_dynamic = i < 2 && s->is_dynamic[i];
    tl_rspec_line(spec, TL_RSPEC_PARAMS, is_dynamic ? "%s: dynamic" : "%s: %lld", names[i], (long long)sizes[i]);
    if (is_dynamic)
      values = tl_rspec_text(spec, "%s%s%s: %lld", values, *values ? ", " : "", names[i], (long long)sizes[i]);
  }
  if (*values) tl_rspec_line(spec, TL_RSPEC_CASES, "- {%s}", values);
  tl_rspec_line(spec, TL_RSPEC_HEAD, "target: %s", s->role ? "sm_90a" : "sm_80");
  tl_rspec_line(spec, TL_RSPEC_ARGS, "Q: %s[M, %s]", in, s->has_scores ? "D" : "bn");
  if (s->has_scores) tl_rspec_line(spec, TL_RSPEC_ARGS, "K: %s[N, D]", in);
  tl_rspec_line(spec, TL_RSPEC_ARGS, "V: %s[N, D2]", in);
  tl_rspec_line(spec, TL_RSPEC_ARGS, "lo: in i32[8]");
  tl_rspec_line(spec, TL_RSPEC_ARGS, "hi: in i32[8]");
  tl_rspec_line(spec, TL_RSPEC_ARGS, "flags: in i32[32]");
  tl_rspec_line(spec, TL_RSPEC_ARGS, "O: out f32[M, D2]");
  tl_rspec_line(spec, TL_RSPEC_GRID, "bx: ceildiv(M, bm)");
  tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %lld", (long long)s->threads);
  tl_rspec_line(spec, TL_RSPEC_SHARED, "Q_s: %s[bm, %s]", s->dtype, s->has_scores ? "D" : "bn");
  if (s->has_scores) tl_rspec_line(spec, TL_RSPEC_SHARED, "K_s: %s[bn, D]", s->dtype);
  tl_rspec_line(spec, TL_RSPEC_SHARED, "V_s: %s[bn, D2]", s->dtype);
  if (s->has_scores) {
    tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "S: f32[bm, bn]");
    tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "P: %s[bm, bn]", s->dtype);
  }
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "acc: f32[bm, D2]");
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "Q: ints(-1, 1)");
  if (s->has_scores) tl_rspec_line(spec, TL_RSPEC_INPUTS, "K: ints(-1, 1)");
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "V: ints(-2, 2)");
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "lo: ints(0, 4)");
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "hi: ints(0, 5)");
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "flags: ints(0, 1)");
}

static void write_products(bounds *s, bool is_masked) {
  tl_rspec *spec = s->spec;
  bool v_early = maybe(s, 40), is_whole = s->has_flags && maybe(s, 50);
  if (is_whole) {
    tl_rspec_body(spec, "- if: flags[n] == 0");
    tl_rspec_body(spec, "  then:");
    spec->body_indent += 2;
  }
  if (s->has_scores) tl_rspec_body(spec, "- copy: K[n * bn, 0] -> K_s");
  if (v_early) tl_rspec_body(spec, "- copy: V[n * bn, 0] -> V_s");
  if (s->has_scores) tl_rspec_body(spec, "- gemm: S = Q_s @ K_s.T");
  if (is_masked) {
    tl_rspec_body(spec, "- parallel: i, j in bm, bn");
    tl_rspec_body(spec, "  do: S[i, j] = select(bx * bm + i >= n * bn + j, S[i, j], 0)");
  }
  if (s->has_scores) tl_rspec_body(spec, "- P = min(max(S, -3), 3)");
  if (!v_early) tl_rspec_body(spec, "- copy: V[n * bn, 0] -> V_s");
  if (s->has_flags && !is_whole) {
    tl_rspec_body(spec, "- if: flags[n] == 0");
    tl_rspec_body(spec, "  then:");
    spec->body_indent += 2;
  }
  tl_rspec_body(spec, "- gemm: acc += %s @ V_s", s->has_scores ? "P" : "Q_s");
  if (s->has_flags) spec->body_indent -= 2;
}

static void write_loop(bounds *s, const char *range, bool is_masked) {
  tl_rspec *spec = s->spec;
  tl_rspec_body(spec, "- pipelined: n in range(%s)", put(s, range, "bx", "n"));
  if (s->stages) tl_rspec_body(spec, "  stages: %lld", (long long)s->stages);
  if (s->role) tl_rspec_body(spec, "  specialize: %s", s->role == 1 ? "on" : "off");
  if (maybe(s, 10)) tl_rspec_body(spec, "  overlap: 0");
  tl_rspec_body(spec, "  do:");
  spec->body_indent += 2;
  write_products(s, is_masked);
  spec->body_indent -= 2;
}

static void write_body(bounds *s) {
  tl_rspec *spec = s->spec;
  tl_rspec_body(spec, "- copy: Q[bx * bm, 0] -> Q_s");
  tl_rspec_body(spec, "- clear: acc");
  write_loop(s, forms[s->form].range, s->is_causal);
  // What the first one leaves.
  if (s->is_cut) write_loop(s, "b + 1, T", false);
  tl_rspec_body(spec, "- copy: acc -> O[bx * bm, 0]");
}

static void write_reference(bounds *s) {
  tl_rspec *spec = s->spec;
  const char *each = "Q[m, n % bn] * V[n, e]", *range = "m in 0:M, n in 0:N";
  if (s->has_scores) {
    const char *score = "sum[d in 0:D](Q[m, d] * K[n, d])";
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- R[%s] = min(max(%s, -3), 3)", range, score);
    each = "R[m, n] * V[n, e]";
  }
  const char *visited = put(s, forms[s->form].visited, "(m // bm)", "(n // bn)");
  const char *first = tl_rspec_text(spec, "select(%s%s%s, %s, 0)", visited, s->is_causal ? " and m >= n" : "",
                                    s->has_flags ? " and flags[n // bn] == 0" : "", each);
  const char *second = put(s, "k >= b + 1", "(m // bm)", "(n // bn)");
  second = tl_rspec_text(spec, "select(%s%s, %s, 0)", second, s->has_flags ? " and flags[n // bn] == 0" : "", each);
  const char *sum = s->is_cut ? tl_rspec_text(spec, "%s + %s", first, second) : first;
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- O[m, e] = sum[n in 0:N](%s)", sum);
  tl_rspec_tolerance(spec, "O", 0, 0);
}

void tl_rspec_make_loop_bounds(tl_rspec *spec) {
  bounds s = {.spec = spec};
  draw(&s);
  write_head(&s);
  write_body(&s);
  write_reference(&s);
}
