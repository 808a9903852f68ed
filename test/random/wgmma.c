// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `wgmma`: what sm_90a makes of products in pipelined loops. Copies by TMA out of tensors of 2 to 5 dims, rings
// that warps of their own fill, products of every type in flight, A in registers, conditions, epilogues, stores by TMA.
// All data are small integers: every sum is exact, and so is the comparison.
#include "test/random/families.h"
#include "test/random/value.h"

typedef struct product {
  tl_rspec *spec;
  tl_dtype dtype;
  int64_t bm, bn, bk, m, n, k, threads, stages, tiles_k;
  bool a_turned, b_turned;  // the tensors are [K, M] and [N, K]
  int leads;                // dims of the tensors beside rows and columns
  bool lead_between;        // the last of them stands between both
  bool by_tma;              // demanded
  bool is_dynamic, in_registers, clamps, twice, has_second, is_looped, is_masked;
  bool hands_on;    // the tiles of A go out again, by TMA, in the loop
  uint32_t policy;  // of all: another one would have sums change places. 6 and 7: given
  int remainder;    // of iterations that multiply, by 2; -1: all do
} product;

static uint32_t draw(product *p, uint32_t n) {
  return tl_rspec_choose(p->spec->choices, n);
}

static bool maybe(product *p, uint32_t percent) {
  return tl_rspec_maybe(p->spec->choices, percent);
}

static int64_t bytes_of(const product *p) {
  return tl_dtype_bits(p->dtype) / 8;
}

static bool is_int(const product *p) {
  return tl_dtype_is_int(p->dtype);
}

static int64_t draw_size(product *p, int64_t block, int64_t unit, int64_t most) {
  int64_t size = block * (1 + draw(p, 2)) + tl_rspec_pick(p->spec->choices, 0, 8, 16, 24, 40, 5) / unit * unit;
  return size < most ? size : most;
}

static void draw_sizes(product *p) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F16, TL_DTYPE_BF16, TL_DTYPE_F16,    TL_DTYPE_BF16,  TL_DTYPE_TF32,
                                    TL_DTYPE_I8,  TL_DTYPE_U8,   TL_DTYPE_F8E4M3, TL_DTYPE_F8E5M2};
  tl_rspec_choices *choices = p->spec->choices;
  p->dtype = dtypes[draw(p, 9)];
  p->leads = (int)draw(p, 4);
  p->threads = tl_rspec_pick(choices, 128, 256, 256, 384, 512);
  p->bm = tl_rspec_pick(choices, 64, 128, 64, 128, 192, 256, 32);
  p->bn = tl_rspec_pick(choices, 64, 32, 128, 96, 16, 192, 48, 256, 24);
  while (p->bm * p->bn / p->threads > 96 && p->bn > 32) p->bn = p->bn / 2 / 16 * 16;
  p->bk = tl_rspec_pick(choices, 64, 32, 128, 96, 256) / bytes_of(p);
  p->stages = tl_rspec_pick(choices, 2, 3, 4, 1, 5);
  while (p->stages > 1 && p->stages * (p->bm + 2 * p->bn) * p->bk * bytes_of(p) > 100000) p->stages--;
  // Strides that a tensor map takes, mostly.
  int64_t unit = maybe(p, 85) ? 16 / bytes_of(p) : 1;
  int64_t most = p->leads > 1 ? 100 : 200, iterations = 1 + draw(p, 6);
  p->m = draw_size(p, p->bm, unit, most);
  p->n = draw_size(p, p->bn, unit, most);
  if (iterations * p->bk > 500) iterations = 500 / p->bk + 1;
  p->k = p->bk * iterations + tl_rspec_pick(choices, 0, 0, 16, 8, 3) / unit * unit;
  p->tiles_k = (p->k + p->bk - 1) / p->bk;
  p->a_turned = bytes_of(p) == 2 && maybe(p, 30);
  p->b_turned = bytes_of(p) != 2 || maybe(p, 50);
  bool fits = p->k * bytes_of(p) % 16 == 0 && p->m * bytes_of(p) % 16 == 0 && p->n * bytes_of(p) % 16 == 0;
  p->by_tma = fits && p->stages > 1 && p->tiles_k > 1 && maybe(p, 50);
}

static void draw_forms(product *p) {
  p->lead_between = p->leads > 0 && maybe(p, 40);
  p->is_dynamic = !p->by_tma && maybe(p, 30);
  p->in_registers = !p->a_turned && p->bm * p->bk / p->threads <= 64 && maybe(p, 30);
  p->clamps = maybe(p, p->in_registers ? 50 : 10) && (p->in_registers || !p->by_tma);
  p->remainder = maybe(p, 12) ? (int)draw(p, 2) : -1;
  p->twice = maybe(p, 15);
  p->has_second = p->bm * p->bn / p->threads <= 48 && maybe(p, 20);
  p->is_looped = maybe(p, 12);
  // Whole columns a warp would give each all rows of A in registers.
  p->policy = draw(p, p->in_registers ? 7 : 8);
  p->hands_on = p->by_tma && p->n <= p->bn && maybe(p, 50);
  p->is_masked = maybe(p, 20);
}

// "L0, M, L1, K": the dims of a tensor; or what stands in their places.
static const char *places(product *p, const char *const leads[3], const char *outer, const char *inner) {
  const char *text = "";
  for (int i = 0; i < p->leads - p->lead_between; i++) text = tl_rspec_text(p->spec, "%s%s, ", text, leads[i]);
  if (!p->lead_between) return tl_rspec_text(p->spec, "%s%s, %s", text, outer, inner);
  return tl_rspec_text(p->spec, "%s%s, %s, %s", text, outer, leads[p->leads - 1], inner);
}

static const char *const lead_sizes[] = {"2", "2", "2"};
static const char *const lead_blocks[] = {"bz % 2", "bz // 2 % 2", "bz // 4"};
static const char *const lead_indices[] = {"z0", "z1", "z2"};

static const char *tensor(product *p, bool turned, const char *const leads[3], const char *row, const char *column) {
  return places(p, leads, turned ? column : row, turned ? row : column);
}

static void write_sizes(product *p) {
  tl_rspec *spec = p->spec;
  const char *names[] = {"M", "N", "K"}, *values = "";
  int64_t sizes[] = {p->m, p->n, p->k};
  for (int i = 0; i < 3; i++) {
    bool is_dynamic = p->is_dynamic && maybe(p, 60);
    int64_t unit = 16 / bytes_of(p);
    const char *divisor = sizes[i] % unit == 0 && maybe(p, 70) ? tl_rspec_text(spec, "(%lld)", (long long)unit) : "";
    if (is_dynamic)
      values = tl_rspec_text(spec, "%s%s%s: %lld", values, *values ? ", " : "", names[i], (long long)sizes[i]);
    if (is_dynamic)
      tl_rspec_line(spec, TL_RSPEC_PARAMS, "%s: dynamic%s", names[i], divisor);
    else
      tl_rspec_line(spec, TL_RSPEC_PARAMS, "%s: %lld", names[i], (long long)sizes[i]);
  }
  if (*values) tl_rspec_line(spec, TL_RSPEC_CASES, "- {%s}", values);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "bm: %lld", (long long)p->bm);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "bn: %lld", (long long)p->bn);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "bk: %lld", (long long)p->bk);
}

static void write_operand(product *p, const char *name, bool turned, const char *row, const char *column) {
  tl_rspec *spec = p->spec;
  const char *dtype = tl_dtype_name(p->dtype), *block_row = row[0] == 'M' ? "bm" : "bk",
             *block_column = column[0] == 'N' ? "bn" : "bk";
  tl_rspec_line(spec, TL_RSPEC_ARGS, "%s: in %s[%s]", name, dtype, tensor(p, turned, lead_sizes, row, column));
  tl_rspec_line(spec, TL_RSPEC_SHARED, "%s_s: %s[%s, %s]", name, dtype, turned ? block_column : block_row,
                turned ? block_row : block_column);
  tl_rspec_line(spec, TL_RSPEC_INPUTS, p->dtype == TL_DTYPE_U8 ? "%s: ints(0, 3)" : "%s: ints(-2, 2)", name);
}

static void write_head(product *p) {
  tl_rspec *spec = p->spec;
  tl_rspec_line(spec, TL_RSPEC_HEAD, "target: %s",
                p->by_tma                        ? "sm_90a"
                : bytes_of(p) == 1 && !is_int(p) ? "sm_89"
                                                 : "sm_80");
  write_sizes(p);
  write_operand(p, "A", p->a_turned, "M", "K");
  write_operand(p, "B", p->b_turned, "K", "N");
  if (p->has_second) write_operand(p, "D", p->b_turned, "K", "N");
  if (p->hands_on) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "Z: out %s[%s]", tl_dtype_name(p->dtype),
                  tensor(p, p->a_turned, lead_sizes, "M", "K"));
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- Z[%s] = A[%s]", tensor(p, p->a_turned, lead_indices, "m", "k"),
                  tensor(p, p->a_turned, lead_indices, "m", "k"));
    tl_rspec_tolerance(spec, "Z", 0, 0);
  }
  tl_rspec_line(spec, TL_RSPEC_GRID, "bx: ceildiv(N, bn)");
  tl_rspec_line(spec, TL_RSPEC_GRID, "by: ceildiv(M, bm)");
  tl_rspec_line(spec, TL_RSPEC_GRID, "bz: %d", 1 << p->leads);
  tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %lld", (long long)p->threads);
  const char *sum = is_int(p) ? "i32" : "f32";
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "acc: %s[bm, bn]", sum);
  if (p->has_second) tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "acc2: %s[bm, bn]", sum);
  if (p->in_registers) tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "A_f: %s[bm, bk]", tl_dtype_name(p->dtype));
}

// A corner walks the last dims of a tensor; where others stand between, slices name those that are walked.
static const char *corner(const product *p, const char *start, const char *block) {
  return p->lead_between ? tl_rspec_text(p->spec, "%s * %s:+%s", start, block, block)
                         : tl_rspec_text(p->spec, "%s * %s", start, block);
}

static void write_copy(product *p, const char *name, bool turned, const char *row, const char *column) {
  tl_rspec_body(p->spec, "- copy: %s[%s] -> %s_s", name, tensor(p, turned, lead_blocks, row, column), name);
  if (p->by_tma) tl_rspec_body(p->spec, "  via: tma");
}

static void write_gemm(product *p, const char *sum, const char *b) {
  static const char *const policies[] = {"full_row", "full_col"};
  const char *a = p->in_registers ? "A_f" : p->a_turned ? "A_s.T" : "A_s";
  tl_rspec_body(p->spec, "- gemm: %s += %s @ %s_s%s", sum, a, b, p->b_turned ? ".T" : "");
  if (p->policy > 5) tl_rspec_body(p->spec, "  policy: %s", policies[p->policy - 6]);
  if (bytes_of(p) == 1 && !is_int(p) && maybe(p, 50)) tl_rspec_body(p->spec, "  accumulate: fast");
}

static void write_iteration(product *p) {
  tl_rspec *spec = p->spec;
  const char *m = corner(p, "by", "bm"), *n = corner(p, "bx", "bn"), *k = corner(p, "ko", "bk");
  write_copy(p, "A", p->a_turned, m, k);
  write_copy(p, "B", p->b_turned, k, n);
  if (p->has_second) write_copy(p, "D", p->b_turned, k, n);
  if (p->hands_on) {
    tl_rspec_body(spec, "- copy: A_s -> Z[%s]", tensor(p, p->a_turned, lead_blocks, m, k));
    tl_rspec_body(spec, "  via: tma");
  }
  if (p->in_registers)
    tl_rspec_body(spec, p->clamps ? "- A_f = max(A_s, 0)" : "- copy: A_s -> A_f");
  else if (p->clamps)
    tl_rspec_body(spec, "- A_s = max(A_s, 0)");
  if (p->remainder >= 0) {
    tl_rspec_body(spec, "- if: ko %% 2 == %d", p->remainder);
    tl_rspec_body(spec, "  then:");
    spec->body_indent += 2;
  }
  write_gemm(p, "acc", "B");
  if (p->has_second) write_gemm(p, "acc2", "D");
  if (p->twice) write_gemm(p, "acc", "B");
  if (p->remainder >= 0) spec->body_indent -= 2;
}

static void write_loop(product *p) {
  static const char *const roles[] = {"auto", "on", "off"};
  tl_rspec *spec = p->spec;
  tl_rspec_body(spec, "- clear: acc");
  if (p->has_second) tl_rspec_body(spec, "- clear: acc2");
  if (p->is_looped) {
    tl_rspec_body(spec, "- for: h in 2");
    tl_rspec_body(spec, "  do:");
    spec->body_indent += 2;
  }
  tl_rspec_body(spec, "- pipelined: ko in ceildiv(K, bk)");
  if (p->by_tma || maybe(p, 80)) tl_rspec_body(spec, "  stages: %lld", (long long)p->stages);
  uint32_t role = draw(p, 4);
  if (role > 0 && p->by_tma) tl_rspec_body(spec, "  specialize: %s", roles[role - 1]);
  if (maybe(p, 15)) tl_rspec_body(spec, "  overlap: 0");
  tl_rspec_body(spec, "  do:");
  spec->body_indent += 2;
  write_iteration(p);
  spec->body_indent -= p->is_looped ? 4 : 2;
}

// ---- what comes out

static const char *sum_of(product *p, const char *b) {
  tl_rspec *spec = p->spec;
  const char *a = tl_rspec_text(spec, "A[%s]", tensor(p, p->a_turned, lead_indices, "m", "k"));
  if (p->clamps) a = tl_rspec_text(spec, "max(%s, 0)", a);
  const char *each = tl_rspec_text(spec, "%s * %s[%s]", a, b, tensor(p, p->b_turned, lead_indices, "k", "n"));
  if (p->remainder >= 0) each = tl_rspec_text(spec, "select(k // bk %% 2 == %d, %s, 0)", p->remainder, each);
  int factor = (p->twice && *b == 'B' ? 2 : 1) * (p->is_looped ? 2 : 1);
  return tl_rspec_text(spec, "%d * sum[k in 0:K](%s)", factor, each);
}

static void write_result(product *p, const char *name, const char *tile, const char *reference) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F32, TL_DTYPE_BF16, TL_DTYPE_F16};
  tl_rspec *spec = p->spec;
  tl_dtype dtype = is_int(p) ? TL_DTYPE_I32 : dtypes[draw(p, 3)];
  uint32_t way = draw(p, 5);
  tl_rspec_line(spec, TL_RSPEC_ARGS, "%s: out %s[%s]", name, tl_dtype_name(dtype), places(p, lead_sizes, "M", "N"));
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- %s[%s] = %s", name, places(p, lead_indices, "m", "n"), reference);
  tl_rspec_tolerance(spec, name, 0, 0);
  int64_t size = tl_dtype_bits(dtype) / 8, bytes = p->bm * p->bn * size;
  bool staged = way > 2 && bytes <= 30000;
  bool stores = staged && way == 4 && p->by_tma && p->n * size % 16 == 0 && p->bn * size % 16 == 0 && p->bn <= 256;
  if (staged) {
    tl_rspec_line(spec, TL_RSPEC_SHARED, "%s_s: %s[bm, bn]", name, tl_dtype_name(dtype));
    tl_rspec_body(spec, "- copy: %s -> %s_s", tile, name);
    tile = tl_rspec_text(spec, "%s_s", name);
  }
  tl_rspec_body(spec, "- copy: %s -> %s[%s]", tile, name,
                places(p, lead_blocks, corner(p, "by", "bm"), corner(p, "bx", "bn")));
  if (stores) tl_rspec_body(spec, "  via: tma");
}

static const char *write_epilogue(product *p, const char *reference) {
  tl_rspec *spec = p->spec;
  if (maybe(p, 25)) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "bias: in %s[N]", is_int(p) ? "i32" : "f32");
    tl_rspec_line(spec, TL_RSPEC_INPUTS, "bias: ints(-3, 3)");
    tl_rspec_body(spec, "- parallel: i, j in bm, bn");
    tl_rspec_body(spec, "  do: acc[i, j] = max(acc[i, j] + bias[bx * bn + j], 0)");
    reference = tl_rspec_text(spec, "max(%s + bias[n], 0)", reference);
  }
  if (p->is_masked) {
    tl_rspec_body(spec, "- parallel: i, j in bm, bn");
    tl_rspec_body(spec, "  do: acc[i, j] = select(by * bm + i >= bx * bn + j, acc[i, j], 0)");
    reference = tl_rspec_text(spec, "select(m >= n, %s, 0)", reference);
  }
  return reference;
}

void tl_rspec_make_wgmma(tl_rspec *spec) {
  product p = {.spec = spec};
  draw_sizes(&p);
  draw_forms(&p);
  write_head(&p);
  write_loop(&p);
  write_result(&p, "C", "acc", write_epilogue(&p, sum_of(&p, "B")));
  if (p.has_second) write_result(&p, "E", "acc2", sum_of(&p, "D"));
}
