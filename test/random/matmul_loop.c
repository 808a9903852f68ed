// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matmul family: sizes, operands and the loop over K.
#include <math.h>

#include "test/random/matmul.h"

static bool maybe(tl_rspec_gemm *g, uint32_t percent) {
  return tl_rspec_maybe(g->spec->choices, percent);
}

double tl_rspec_sum_bound(int64_t count, double each) {
  return fmin((double)count, 8 * sqrt((double)count) + 8) * each;
}

bool tl_rspec_gemm_is_special(const tl_rspec_gemm *g) {
  return g->dtype != TL_DTYPE_F16 && g->dtype != TL_DTYPE_BF16 && g->dtype != TL_DTYPE_F32;
}

bool tl_rspec_gemm_is_int(const tl_rspec_gemm *g) {
  return g->dtype == TL_DTYPE_I8 || g->dtype == TL_DTYPE_U8;
}

static int64_t draw_size(tl_rspec_gemm *g, int64_t block, int64_t most) {
  int64_t whole = tl_rspec_pick(g->spec->choices, 1, 2, 0), rest = tl_rspec_pick(g->spec->choices, 0, 8, 1, 3, 16, 37);
  int64_t size = block * whole + rest % block;
  if (size > most) size = most;
  return size > 0 ? size : block;
}

static void draw_sizes(tl_rspec_gemm *g) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F16, TL_DTYPE_BF16, TL_DTYPE_F16,    TL_DTYPE_F32,
                                    TL_DTYPE_F16, TL_DTYPE_BF16, TL_DTYPE_F16,    TL_DTYPE_TF32,
                                    TL_DTYPE_I8,  TL_DTYPE_U8,   TL_DTYPE_F8E4M3, TL_DTYPE_F8E5M2};
  tl_rspec_choices *choices = g->spec->choices;
  g->dtype = dtypes[tl_rspec_choose(choices, 12)];
  g->bm = tl_rspec_pick(choices, 64, 32, 16, 128, 48, 80, 8, 17, 33);
  g->bn = tl_rspec_pick(choices, 64, 32, 128, 16, 8, 40, 96, 20, 24, 33);
  g->bk = tl_rspec_pick(choices, 32, 16, 64, 8, 24, 40, 48, 128, 12, 7);
  g->threads = tl_rspec_pick(choices, 128, 64, 32, 256, 96, 512, 160);
  while (g->bm * g->bn / g->threads > 64) g->threads *= 2;
  g->stages = tl_rspec_pick(choices, 2, 1, 3, 4, 5);
  int64_t bytes = (g->bm + g->bn) * g->bk * tl_dtype_bits(g->dtype) / 8;
  while (g->stages > 1 && g->stages * bytes > 90000) g->stages--;
  g->m = draw_size(g, g->bm, 160);
  g->n = draw_size(g, g->bn, 200);
  int64_t whole = tl_rspec_pick(choices, 2, 1, 3, 4, 6, 0), rest = tl_rspec_pick(choices, 0, 8, 1, 3, 16);
  g->k = g->bk * whole + rest % g->bk;
  if (g->k > 400) g->k = 400;
  if (g->k < 1) g->k = 1;
}

static void draw_operand(tl_rspec_gemm *g, tl_rspec_operand *o, const char *name, bool is_exact) {
  *o = (tl_rspec_operand){.name = name, .is_whole = is_exact, .max_abs = is_exact ? 2 : 1};
  o->is_transposed = maybe(g, 35);
  o->copy_transposes = o->is_transposed && maybe(g, 20);
  uint32_t kind = tl_rspec_choose(g->spec->choices, 14);
  if (kind == 10) o->load = TL_RSPEC_LOAD_GATHER;
  if (kind == 11) o->load = TL_RSPEC_LOAD_DEQUANT;
  if (kind == 12) o->load = TL_RSPEC_LOAD_CONVERT;
  if (kind == 13) o->load = TL_RSPEC_LOAD_MODIFY;
  if (tl_rspec_gemm_is_special(g)) {
    o->load = TL_RSPEC_LOAD_COPY;
    o->is_whole = true;
    o->max_abs = g->dtype == TL_DTYPE_U8 ? 4 : 2;
  }
  if (o->load == TL_RSPEC_LOAD_DEQUANT) o->max_abs = 2, o->is_whole = false;
}

static void write_sizes(tl_rspec_gemm *g) {
  tl_rspec *spec = g->spec;
  const char *names[] = {"M", "N", "K"};
  int64_t sizes[] = {g->m, g->n, g->k};
  const char *values = "";
  bool any_dynamic = maybe(g, 30);
  for (int i = 0; i < 3; i++) {
    bool is_dynamic = any_dynamic && maybe(g, 60);
    if (!is_dynamic) {
      tl_rspec_line(spec, TL_RSPEC_PARAMS, "%s: %lld", names[i], (long long)sizes[i]);
      continue;
    }
    const char *divisor = sizes[i] % 8 == 0 && maybe(g, 50) ? "(8)" : "";
    tl_rspec_line(spec, TL_RSPEC_PARAMS, "%s: dynamic%s", names[i], divisor);
    values = tl_rspec_text(spec, "%s%s%s: %lld", values, *values ? ", " : "", names[i], (long long)sizes[i]);
  }
  if (*values) tl_rspec_line(spec, TL_RSPEC_CASES, "- {%s}", values);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "bm: %lld", (long long)g->bm);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "bn: %lld", (long long)g->bn);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "bk: %lld", (long long)g->bk);
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "dtype: %s", tl_dtype_name(g->dtype));
}

// The dtype of the operand in global memory.
static const char *tensor_dtype(const tl_rspec_gemm *g, const tl_rspec_operand *o) {
  if (o->load == TL_RSPEC_LOAD_DEQUANT) return "i8";
  if (o->load == TL_RSPEC_LOAD_CONVERT) return g->dtype == TL_DTYPE_F32 ? "f16" : "f32";
  return "dtype";
}

static void write_operand(tl_rspec_gemm *g, const tl_rspec_operand *o, bool is_a) {
  tl_rspec *spec = g->spec;
  const char *outer = is_a ? "M" : "K", *inner = is_a ? "K" : "N";
  const char *tile_outer = is_a ? "bm" : "bk", *tile_inner = is_a ? "bk" : "bn";
  bool swaps_tile = o->is_transposed && !o->copy_transposes;
  const char *lead = g->is_batched ? "2, " : g->is_looped ? "3, " : "";
  tl_rspec_line(spec, TL_RSPEC_ARGS, "%s: in %s[%s%s, %s]", o->name, tensor_dtype(g, o), lead,
                o->is_transposed ? inner : outer, o->is_transposed ? outer : inner);
  const char *tile =
      tl_rspec_text(spec, "%s, %s", swaps_tile ? tile_inner : tile_outer, swaps_tile ? tile_outer : tile_inner);
  tl_rspec_line(spec, TL_RSPEC_SHARED, "%s_s: dtype[%s]", o->name, tile);
  if (o->load == TL_RSPEC_LOAD_DEQUANT || o->load == TL_RSPEC_LOAD_CONVERT) {
    tl_rspec_line(spec, TL_RSPEC_SHARED, "%s_q: %s[%s]", o->name, tensor_dtype(g, o), tile);
  }
  if (o->load == TL_RSPEC_LOAD_DEQUANT) {
    tl_rspec_line(spec, TL_RSPEC_INPUTS, "%s: ints(-8, 7)", o->name);
  } else if (o->is_whole) {
    tl_rspec_line(spec, TL_RSPEC_INPUTS, g->dtype == TL_DTYPE_U8 ? "%s: ints(0, 4)" : "%s: ints(-2, 2)", o->name);
  } else {
    tl_rspec_line(spec, TL_RSPEC_INPUTS, "%s: uniform(-1, 1)", o->name);
  }
}

// The shared tiles of both operands, in one stage, with those that are converted from.
static int64_t operand_bytes(const tl_rspec_gemm *g) {
  const tl_rspec_operand *operands[2] = {&g->a, &g->b};
  int64_t outer[2] = {g->bm, g->bn}, bytes = 0;
  for (int i = 0; i < 2; i++) {
    int64_t size = tl_dtype_bits(g->dtype) / 8;
    if (operands[i]->load == TL_RSPEC_LOAD_DEQUANT) size += 1;
    if (operands[i]->load == TL_RSPEC_LOAD_CONVERT) size += g->dtype == TL_DTYPE_F32 ? 2 : 4;
    bytes += outer[i] * g->bk * size;
  }
  return bytes;
}

void tl_rspec_draw_gemm(tl_rspec *spec, tl_rspec_gemm *g) {
  enum { MOST_OPERAND_BYTES = 147 << 10 };  // sm_80 has 163 KiB; what is left is for padding
  *g = (tl_rspec_gemm){.spec = spec, .split = 1};
  draw_sizes(g);
  bool is_exact = maybe(g, 50);
  draw_operand(g, &g->a, "A", is_exact);
  draw_operand(g, &g->b, "B", is_exact);
  // With the tiles that are converted from, shared memory must still do.
  int64_t size = tl_dtype_bits(g->dtype) / 8 + 4;
  while (g->stages > 1 && g->stages * (g->bm + g->bn) * g->bk * size > 130000) g->stages--;
  while (operand_bytes(g) > MOST_OPERAND_BYTES) g->bk /= 2;
  g->is_batched = maybe(g, 15);
  g->is_looped = !g->is_batched && maybe(g, 12);
  if (maybe(g, 12)) g->split = tl_rspec_pick(spec->choices, 2, 3);
  g->has_flags = maybe(g, 10);
  g->skips_copy = !g->has_flags && g->split == 1 && maybe(g, 8);
  if (g->a.load != TL_RSPEC_LOAD_COPY) g->skips_copy = false;
  write_sizes(g);
  write_operand(g, &g->a, true);
  write_operand(g, &g->b, false);
  if (g->has_flags) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "flags: in i32[64]");
    tl_rspec_line(spec, TL_RSPEC_INPUTS, "flags: ints(-1, 2)");
  }
  tl_rspec_line(spec, TL_RSPEC_GRID, "bx: ceildiv(N, bn)");
  tl_rspec_line(spec, TL_RSPEC_GRID, "by: ceildiv(M, bm)");
  if (g->is_batched) tl_rspec_line(spec, TL_RSPEC_GRID, "bb: 2");
  if (g->split > 1) tl_rspec_line(spec, TL_RSPEC_GRID, "bz: %lld", (long long)g->split);
  tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %lld", (long long)g->threads);
  if (maybe(g, 12)) tl_rspec_line(spec, TL_RSPEC_OPTIONS, "rasterize: {panel: 2, order: row}");
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "acc: %s[bm, bn]", tl_rspec_gemm_is_int(g) ? "i32" : "f32");
  if (tl_dtype_is_float(g->dtype) && tl_dtype_bits(g->dtype) == 8) {
    tl_rspec_line(spec, TL_RSPEC_HEAD, "target: sm_89");
  }
}

// The subscripts of an operand: its corner in iteration `ko`, or (element) of tile place i, j.
static const char *subscripts(tl_rspec_gemm *g, const tl_rspec_operand *o, bool is_a, bool is_element) {
  tl_rspec *spec = g->spec;
  const char *k = g->split > 1 ? tl_rspec_text(spec, "(bz * %lld + ko) * bk",
                                               (long long)((g->k + g->bk - 1) / g->bk + g->split - 1) / g->split)
                               : "ko * bk";
  const char *other = is_a ? "by * bm" : "bx * bn";
  const char *outer = is_a != o->is_transposed ? other : k, *inner = is_a != o->is_transposed ? k : other;
  const char *lead = g->is_batched ? "bb, " : g->is_looped ? "h, " : "";
  if (!is_element) return tl_rspec_text(spec, "%s%s, %s", lead, outer, inner);
  bool swaps = o->copy_transposes;
  return tl_rspec_text(spec, "%s%s + %s, %s + %s", lead, outer, swaps ? "j" : "i", inner, swaps ? "i" : "j");
}

static const char *tile_extents(tl_rspec_gemm *g, const tl_rspec_operand *o, bool is_a) {
  bool swaps = o->is_transposed && !o->copy_transposes;
  const char *outer = is_a ? "bm" : "bk", *inner = is_a ? "bk" : "bn";
  return tl_rspec_text(g->spec, "%s, %s", swaps ? inner : outer, swaps ? outer : inner);
}

static void write_load(tl_rspec_gemm *g, const tl_rspec_operand *o, bool is_a) {
  tl_rspec *spec = g->spec;
  const char *corner = subscripts(g, o, is_a, false);
  const char *turn = o->copy_transposes ? ".T" : "";
  // With a leading index the copy drops a dim, which the transpose of a 2-D side does not know: slices say it.
  if (o->copy_transposes && (g->is_batched || g->is_looped)) {
    tl_rspec_body(spec, "- parallel: i, j in %s", tile_extents(g, o, is_a));
    tl_rspec_body(spec, "  do: %s_%s[i, j] = %s[%s]", o->name,
                  o->load == TL_RSPEC_LOAD_DEQUANT || o->load == TL_RSPEC_LOAD_CONVERT ? "q" : "s", o->name,
                  subscripts(g, o, is_a, true));
  } else if (o->load == TL_RSPEC_LOAD_GATHER) {
    tl_rspec_body(spec, "- parallel: i, j in %s", tile_extents(g, o, is_a));
    tl_rspec_body(spec, "  do: %s_s[i, j] = %s[%s] * 0.5", o->name, o->name, subscripts(g, o, is_a, true));
    return;
  } else {
    bool to_q = o->load == TL_RSPEC_LOAD_DEQUANT || o->load == TL_RSPEC_LOAD_CONVERT;
    tl_rspec_body(spec, "- copy: %s[%s]%s -> %s_%s", o->name, corner, turn, o->name, to_q ? "q" : "s");
  }
  if (o->load == TL_RSPEC_LOAD_GATHER) {
    tl_rspec_body(spec, "- %s_s = %s_s * 0.5", o->name, o->name);
  } else if (o->load == TL_RSPEC_LOAD_DEQUANT) {
    tl_rspec_body(spec, "- parallel: i, j in %s", tile_extents(g, o, is_a));
    tl_rspec_body(spec, "  do: %s_s[i, j] = cast(%s_q[i, j], dtype) * 0.25", o->name, o->name);
  } else if (o->load == TL_RSPEC_LOAD_CONVERT) {
    tl_rspec_body(spec, "- %s_s = %s_q", o->name, o->name);
  } else if (o->load == TL_RSPEC_LOAD_MODIFY) {
    tl_rspec_body(spec, "- %s_s = max(%s_s, -0.5)", o->name, o->name);
  }
}

void tl_rspec_write_gemm_loop(tl_rspec_gemm *g) {
  tl_rspec *spec = g->spec;
  static const char *const policies[] = {"square", "full_row", "full_col"};
  long long tiles = ((g->k + g->bk - 1) / g->bk + g->split - 1) / g->split;
  bool in_order = maybe(g, 15);
  uint32_t policy = tl_rspec_choose(spec->choices, 6);
  if (g->skips_copy) tl_rspec_body(spec, "- clear: A_s");
  tl_rspec_body(spec, "- clear: acc");
  if (g->is_looped) {
    tl_rspec_body(spec, "- for: h in 3");
    tl_rspec_body(spec, "  do:");
    spec->body_indent += 2;
  }
  const char *count = g->split > 1 ? tl_rspec_text(spec, "%lld", tiles) : "ceildiv(K, bk)";
  tl_rspec_body(spec, "- %s: ko in %s", in_order ? "for" : "pipelined", count);
  if (!in_order) tl_rspec_body(spec, "  stages: %lld", (long long)g->stages);
  tl_rspec_body(spec, "  do:");
  spec->body_indent += 2;
  if (g->has_flags) {
    tl_rspec_body(spec, "- if: flags[%s] > 0", g->split > 1 ? tl_rspec_text(spec, "bz * %lld + ko", tiles) : "ko");
    tl_rspec_body(spec, "  then:");
    spec->body_indent += 2;
  }
  bool b_first = maybe(g, 25);
  if (b_first) write_load(g, &g->b, false);
  if (g->skips_copy) {
    tl_rspec_body(spec, "- if: ko %% 2 == 0");
    tl_rspec_body(spec, "  then:");
    spec->body_indent += 2;
    write_load(g, &g->a, true);
    spec->body_indent -= 2;
  } else {
    write_load(g, &g->a, true);
  }
  if (!b_first) write_load(g, &g->b, false);
  const char *a_turn = g->a.is_transposed && !g->a.copy_transposes ? ".T" : "";
  const char *b_turn = g->b.is_transposed && !g->b.copy_transposes ? ".T" : "";
  const char *a_tile = "A_s";
  // One warp along M may have to hold all of it.
  if (!*a_turn && g->bm * g->bk <= 32 * 128 && maybe(g, 10)) {
    a_tile = "A_f";
    tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "A_f: dtype[bm, bk]");
    tl_rspec_body(spec, "- copy: A_s -> A_f");
  }
  tl_rspec_body(spec, "- gemm: acc += %s%s @ B_s%s", a_tile, a_turn, b_turn);
  if (policy > 2) tl_rspec_body(spec, "  policy: %s", policies[policy - 3]);
  if (g->has_flags) spec->body_indent -= 2;
  spec->body_indent -= 2;
  if (g->is_looped) spec->body_indent -= 2;
}

// One factor in the reference.
static const char *factor(tl_rspec_gemm *g, const tl_rspec_operand *o, bool is_a) {
  tl_rspec *spec = g->spec;
  const char *lead = g->is_batched ? "b0, " : g->is_looped ? "h, " : "";
  const char *k = is_a && g->skips_copy ? "k // (2 * bk) * (2 * bk) + k % bk" : "k";
  const char *outer = is_a ? "m" : k, *inner = is_a ? k : "n";
  const char *text = tl_rspec_text(spec, "%s[%s%s, %s]", o->name, lead, o->is_transposed ? inner : outer,
                                   o->is_transposed ? outer : inner);
  if (o->load == TL_RSPEC_LOAD_GATHER) text = tl_rspec_text(spec, "%s * 0.5", text);
  if (o->load == TL_RSPEC_LOAD_DEQUANT) text = tl_rspec_text(spec, "%s * 0.25", text);
  if (o->load == TL_RSPEC_LOAD_MODIFY) text = tl_rspec_text(spec, "max(%s, -0.5)", text);
  return text;
}

tl_rspec_value tl_rspec_gemm_value(tl_rspec_gemm *g) {
  tl_rspec *spec = g->spec;
  int64_t count = g->k * (g->is_looped ? 3 : 1);
  const char *product = tl_rspec_text(spec, "%s * %s", factor(g, &g->a, true), factor(g, &g->b, false));
  if (g->has_flags) product = tl_rspec_text(spec, "select(flags[k // bk] > 0, %s, 0)", product);
  const char *reference = tl_rspec_text(spec, "sum[%sk in 0:K](%s)", g->is_looped ? "h in 0:3, " : "", product);
  double each = g->a.max_abs * g->b.max_abs, bound = tl_rspec_sum_bound(count, each);
  // Modified values are no longer centred at zero.
  if (g->a.load == TL_RSPEC_LOAD_MODIFY || g->b.load == TL_RSPEC_LOAD_MODIFY) bound = (double)count * each;
  tl_rspec_value value =
      tl_rspec_exact("acc", reference, tl_rspec_gemm_is_int(g) ? TL_DTYPE_I32 : TL_DTYPE_F32, -bound, bound, false);
  bool is_exact = g->a.is_whole && g->b.is_whole;
  is_exact = is_exact && g->a.load != TL_RSPEC_LOAD_MODIFY && g->b.load != TL_RSPEC_LOAD_MODIFY;
  is_exact = is_exact && g->a.load != TL_RSPEC_LOAD_GATHER && g->b.load != TL_RSPEC_LOAD_GATHER;
  value.is_whole = is_exact;
  if (!is_exact) {
    // Each addition and product rounds in f32; tensor cores may cut off instead.
    value.err = 0x1p-22 * (double)(count + 4) * bound * 0.25 + 0x1p-22 * bound;
    for (int i = 0; i < 2; i++) {
      const tl_rspec_operand *o = i ? &g->b : &g->a;
      bool rounds = o->load == TL_RSPEC_LOAD_CONVERT || o->load == TL_RSPEC_LOAD_GATHER;
      if (rounds) value.err += tl_rspec_rounding(g->dtype, 1, false) * bound;
    }
  }
  return value;
}
