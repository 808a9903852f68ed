// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ir/layout/instruction.h"

#include <stddef.h>
#include <string.h>

// ---- tables

static const tl_mma_inst mma_rows[TL_MMA_INST_COUNT] = {
#define TL_MMA_INST(ID, a, b, acc, m, n, k, half_k, min_sm, rate) \
  [TL_MMA_INST_##ID] = {TL_MMA_INST_##ID, TL_DTYPE_##a, TL_DTYPE_##b, TL_DTYPE_##acc, m, n, k, half_k, min_sm, rate},
#include "ir/layout/instruction.def"
};

static const struct wgmma_row {
  tl_dtype a, b, acc;
  int32_t n_step, rate;
} wgmma_rows[] = {
#define TL_WGMMA_INST(ID, a, b, acc, n_step, rate) {TL_DTYPE_##a, TL_DTYPE_##b, TL_DTYPE_##acc, n_step, rate},
#include "ir/layout/instruction.def"
};
enum { NUM_WGMMA_ROWS = sizeof wgmma_rows / sizeof wgmma_rows[0] };

static const struct wgmma_row *wgmma_row_of(tl_dtype a, tl_dtype b, tl_dtype acc) {
  for (int i = 0; i < NUM_WGMMA_ROWS; i++)
    if (wgmma_rows[i].a == a && wgmma_rows[i].b == b && wgmma_rows[i].acc == acc) return &wgmma_rows[i];
  return NULL;
}

const tl_mma_inst *tl_mma_inst_of(tl_mma_inst_id id) {
  return &mma_rows[id];
}

const tl_mma_inst *tl_instruction_mma(const tl_instruction *inst) {
  for (int i = 0; i < TL_MMA_INST_COUNT && inst->family == TL_FAMILY_MMA; i++)
    if (mma_rows[i].a == inst->a && mma_rows[i].b == inst->b && mma_rows[i].acc == inst->acc) return &mma_rows[i];
  return NULL;
}

tl_instruction tl_instruction_of_mma(const tl_mma_inst *row) {
  return (tl_instruction){TL_FAMILY_MMA, row->a, row->b, row->acc, row->m, row->n, row->k, false, false, false};
}

tl_instruction tl_instruction_find(tl_instruction_family family, tl_dtype a, tl_dtype b, tl_dtype acc) {
  tl_instruction none = {0}, inst = {.family = family, .a = a, .b = b, .acc = acc, .m = 1, .n = 1, .k = 1};
  switch (family) {
    case TL_FAMILY_FMA:
      return inst;
    case TL_FAMILY_MMA: {
      const tl_mma_inst *row = tl_instruction_mma(&inst);
      return row ? tl_instruction_of_mma(row) : none;
    }
    case TL_FAMILY_WGMMA:
      if (!wgmma_row_of(a, b, acc)) return none;
      inst.m = TL_WGMMA_ROWS;
      inst.n = 0;
      inst.k = TL_WGMMA_STEP_BYTES * 8 / tl_dtype_bits(a);
      return inst;
    case TL_FAMILY_NONE:
    case TL_FAMILY_COUNT:
      break;
  }
  return none;
}

static bool n_exists(const struct wgmma_row *row, int32_t n) {
  if (n < 8 || n > TL_WGMMA_MAX_COLUMNS) return false;
  return n % row->n_step == 0 || (row->n_step == 16 && (n == 8 || n == 24));
}

bool tl_instruction_set_n(tl_instruction *inst, int32_t columns) {
  const struct wgmma_row *row = wgmma_row_of(inst->a, inst->b, inst->acc);
  if (!row) return false;
  for (int32_t n = TL_WGMMA_MAX_COLUMNS; n >= 8; n -= 8) {
    if (columns % n != 0 || !n_exists(row, n)) continue;
    inst->n = n;
    return true;
  }
  return false;
}

const char *tl_instruction_problem(const tl_instruction *inst) {
  bool shared_forms = inst->a_in_registers || inst->trans_a || inst->trans_b;
  tl_instruction found = tl_instruction_find(inst->family, inst->a, inst->b, inst->acc);
  if (found.family == TL_FAMILY_NONE) return "there is no such instruction for these dtypes";
  if (found.m != inst->m || found.k != inst->k) return "the instruction has another shape";
  if (inst->family != TL_FAMILY_WGMMA) {
    if (shared_forms) return "only wgmma reads shared memory by itself";
    return found.n == inst->n ? NULL : "the instruction has another shape";
  }
  if (!n_exists(wgmma_row_of(inst->a, inst->b, inst->acc), inst->n)) return "n is none that wgmma has";
  if (inst->trans_a && inst->a_in_registers) return "an operand in registers is not transposed";
  if ((inst->trans_a || inst->trans_b) && tl_dtype_bits(inst->a) != 16)
    return "wgmma transposes operands of 16 bits only";
  return NULL;
}

bool tl_instruction_equal(const tl_instruction *a, const tl_instruction *b) {
  return a->family == b->family && a->a == b->a && a->b == b->b && a->acc == b->acc && a->m == b->m && a->n == b->n &&
         a->k == b->k && a->a_in_registers == b->a_in_registers && a->trans_a == b->trans_a && a->trans_b == b->trans_b;
}

int tl_instruction_min_sm(const tl_instruction *inst) {
  const tl_mma_inst *row = tl_instruction_mma(inst);
  return row ? row->min_sm : inst->family == TL_FAMILY_WGMMA ? 90 : 0;
}

int32_t tl_instruction_rate(const tl_instruction *inst) {
  enum { FMA_RATE = 64 };  // f32 units of one multiprocessor (A100)
  const tl_mma_inst *row = tl_instruction_mma(inst);
  if (row) return row->rate;
  const struct wgmma_row *wgmma = wgmma_row_of(inst->a, inst->b, inst->acc);
  return inst->family == TL_FAMILY_WGMMA && wgmma ? wgmma->rate : FMA_RATE;
}

bool tl_instruction_is_async(const tl_instruction *inst) {
  return inst->family == TL_FAMILY_WGMMA;
}

int32_t tl_instruction_pack(const tl_instruction *inst) {
  int bits = tl_dtype_bits(inst->a);
  return bits < 32 ? 32 / bits : 1;
}

// Warps along m that run one instruction together: 1, or a warpgroup's 4.
static int32_t instruction_warps(const tl_instruction *inst) {
  return inst->family == TL_FAMILY_WGMMA ? TL_WGMMA_WARPS : 1;
}

// ---- text

static const char *const family_names[TL_FAMILY_COUNT] = {"none", "fma", "mma", "wgmma"};

const char *tl_instruction_family_name(tl_instruction_family family) {
  return family_names[family];
}

void tl_instruction_print(const tl_instruction *inst, tl_strbuf *out) {
  tl_strbuf_appendf(out, "%s.m%dn%dk%d.%s.%s.%s", family_names[inst->family], inst->m, inst->n, inst->k,
                    tl_dtype_name(inst->acc), tl_dtype_name(inst->a), tl_dtype_name(inst->b));
  if (inst->family == TL_FAMILY_WGMMA) tl_strbuf_append_c(out, inst->a_in_registers ? ".rs" : ".ss");
  if (inst->trans_a) tl_strbuf_append_c(out, ".ta");
  if (inst->trans_b) tl_strbuf_append_c(out, ".tb");
}

static bool eat(tl_str *text, const char *prefix) {
  size_t len = strlen(prefix);
  if (text->len < len || memcmp(text->data, prefix, len) != 0) return false;
  *text = tl_str_sub(*text, len, text->len);
  return true;
}

static bool eat_number(tl_str *text, int32_t *out) {
  size_t digits = 0;
  for (*out = 0; digits < text->len && digits < 4 && text->data[digits] >= '0' && text->data[digits] <= '9'; digits++)
    *out = *out * 10 + (text->data[digits] - '0');
  *text = tl_str_sub(*text, digits, text->len);
  return digits > 0;
}

static bool eat_dtype(tl_str *text, tl_dtype *out) {
  if (!eat(text, ".")) return false;
  size_t end = tl_str_find(*text, '.');
  if (end > text->len) end = text->len;
  *out = tl_dtype_parse(tl_str_sub(*text, 0, end));
  *text = tl_str_sub(*text, end, text->len);
  return *out != TL_DTYPE_NONE;
}

bool tl_instruction_parse(tl_str text, tl_instruction *out) {
  tl_instruction inst = {0};
  tl_str rest = text;
  for (int f = TL_FAMILY_FMA; f < TL_FAMILY_COUNT && inst.family == TL_FAMILY_NONE; f++)
    if (eat(&rest, family_names[f])) inst.family = (tl_instruction_family)f;
  if (inst.family == TL_FAMILY_NONE || !eat(&rest, ".m") || !eat_number(&rest, &inst.m) || !eat(&rest, "n") ||
      !eat_number(&rest, &inst.n) || !eat(&rest, "k") || !eat_number(&rest, &inst.k))
    return false;
  if (!eat_dtype(&rest, &inst.acc) || !eat_dtype(&rest, &inst.a) || !eat_dtype(&rest, &inst.b)) return false;
  if (inst.family == TL_FAMILY_WGMMA) {
    inst.a_in_registers = eat(&rest, ".rs");
    if (!inst.a_in_registers && !eat(&rest, ".ss")) return false;
    inst.trans_a = eat(&rest, ".ta");
    inst.trans_b = eat(&rest, ".tb");
  }
  if (rest.len || tl_instruction_problem(&inst)) return false;
  *out = inst;
  return true;
}

// ---- layouts

static int32_t ceil_div(int32_t a, int32_t b) {
  return (a + b - 1) / b;
}

static void add_mode(tl_layout *layout, tl_layout_axis axis, int32_t size, int32_t dim, int32_t stride) {
  if (size == 1) return;
  layout->modes[layout->num_modes++] =
      (tl_layout_mode){.axis = axis, .size = size, .dim = dim, .stride = dim == TL_DIM_NONE ? 0 : stride};
}

// 8-row pieces that one warp has of an instruction.
static int32_t halves(const tl_instruction *inst) {
  return inst->family == TL_FAMILY_MMA ? inst->m / 8 : 2;
}

// Instructions of one warp (or warpgroup) along `rows` that `warps` warps share.
static int32_t tiles_along(const tl_instruction *inst, int32_t rows, int32_t warps) {
  return ceil_div(rows, inst->m * (warps / instruction_warps(inst)));
}

// The modes that walk the rows of all instructions, and the warps along them.
static void add_rows(tl_layout *layout, const tl_instruction *inst, int32_t tiles, int32_t warps, int32_t dim) {
  int32_t together = instruction_warps(inst);
  add_mode(layout, TL_AXIS_REGISTER, tiles, dim, inst->m);
  add_mode(layout, TL_AXIS_WARP, together, dim, inst->m / together);
  add_mode(layout, TL_AXIS_WARP, warps / together, dim, inst->m * tiles);
}

tl_layout tl_instruction_acc_layout(const tl_instruction *inst, const int32_t *shape, tl_gemm_warps warps) {
  if (inst->family == TL_FAMILY_FMA) return tl_layout_fma_acc(shape, warps.all * 32);
  tl_layout layout = {.rank = 2, .shape = {shape[0], shape[1]}};
  int32_t tiles_m = tiles_along(inst, shape[0], warps.m);
  // A warp has whole instructions along n; those of mma are the 8 columns that a register pair spans.
  int32_t columns = ceil_div(shape[1], inst->n * warps.n) * inst->n;
  add_mode(&layout, TL_AXIS_REGISTER, 2, 1, 1);
  add_mode(&layout, TL_AXIS_REGISTER, halves(inst), 0, 8);
  add_mode(&layout, TL_AXIS_LANE, 4, 1, 2);
  add_mode(&layout, TL_AXIS_LANE, 8, 0, 1);
  add_mode(&layout, TL_AXIS_REGISTER, columns / 8, 1, 8);
  add_rows(&layout, inst, tiles_m, warps.m, 0);
  add_mode(&layout, TL_AXIS_WARP, warps.n, 1, columns);
  add_mode(&layout, TL_AXIS_WARP, warps.all / (warps.m * warps.n), TL_DIM_NONE, 0);
  return layout;
}

tl_layout tl_instruction_a_layout(const tl_instruction *inst, const int32_t *shape, tl_gemm_warps warps) {
  int32_t pack = tl_instruction_pack(inst), step = 4 * pack;
  tl_layout layout = {.rank = 2, .shape = {shape[0], shape[1]}};
  int32_t tiles_m = tiles_along(inst, shape[0], warps.m);
  // 16-bit operands need whole groups of 8 elements only, like an accumulator's columns: mma has a shorter form.
  int32_t columns = pack == 2 ? ceil_div(shape[1], step) * step : ceil_div(shape[1], inst->k) * inst->k;
  add_mode(&layout, TL_AXIS_REGISTER, pack, 1, 1);
  add_mode(&layout, TL_AXIS_REGISTER, halves(inst), 0, 8);
  add_mode(&layout, TL_AXIS_LANE, 4, 1, pack);
  add_mode(&layout, TL_AXIS_LANE, 8, 0, 1);
  add_mode(&layout, TL_AXIS_REGISTER, columns / step, 1, step);
  add_rows(&layout, inst, tiles_m, warps.m, 0);
  add_mode(&layout, TL_AXIS_WARP, warps.all / warps.m, TL_DIM_NONE, 0);
  return layout;
}

tl_layout tl_instruction_swapped_acc_layout(const tl_instruction *inst, const int32_t *shape, tl_gemm_warps warps) {
  // Dims of rows and columns of the sums: behind the one that counts the warps along K.
  int32_t m = warps.k > 1 ? 1 : 0, n = m + 1;
  tl_layout layout = {.rank = n + 1};
  for (int32_t d = 0; d <= n; d++) layout.shape[d] = shape[d];
  int32_t tiles_m = ceil_div(shape[m], 8 * warps.m), tiles_n = ceil_div(shape[n], inst->m * warps.n);
  add_mode(&layout, TL_AXIS_REGISTER, 2, m, 1);
  add_mode(&layout, TL_AXIS_REGISTER, inst->m / 8, n, 8);
  add_mode(&layout, TL_AXIS_LANE, 4, m, 2);
  add_mode(&layout, TL_AXIS_LANE, 8, n, 1);
  add_mode(&layout, TL_AXIS_REGISTER, tiles_m, m, 8);
  add_mode(&layout, TL_AXIS_REGISTER, tiles_n, n, inst->m);
  add_mode(&layout, TL_AXIS_WARP, warps.m, m, 8 * tiles_m);
  add_mode(&layout, TL_AXIS_WARP, warps.n, n, inst->m * tiles_n);
  add_mode(&layout, TL_AXIS_WARP, warps.k, 0, 1);
  add_mode(&layout, TL_AXIS_WARP, warps.all / (warps.m * warps.n * warps.k), TL_DIM_NONE, 0);
  return layout;
}

tl_layout tl_instruction_b_layout(const tl_instruction *inst, const int32_t *shape, int32_t k_dim, int32_t run,
                                  tl_gemm_warps warps) {
  tl_layout layout = {.rank = 2, .shape = {shape[0], shape[1]}};
  int32_t n_dim = 1 - k_dim, tiles_n = ceil_div(shape[n_dim], inst->m * warps.n);
  int32_t runs = ceil_div(shape[k_dim], 4 * run * warps.k);
  add_mode(&layout, TL_AXIS_REGISTER, run, k_dim, 1);
  add_mode(&layout, TL_AXIS_LANE, 4, k_dim, run);
  add_mode(&layout, TL_AXIS_LANE, 8, n_dim, 1);
  add_mode(&layout, TL_AXIS_REGISTER, runs, k_dim, 4 * run);
  add_mode(&layout, TL_AXIS_REGISTER, tiles_n * (inst->m / 8), n_dim, 8);
  add_mode(&layout, TL_AXIS_WARP, warps.m, TL_DIM_NONE, 0);
  add_mode(&layout, TL_AXIS_WARP, warps.n, n_dim, inst->m * tiles_n);
  add_mode(&layout, TL_AXIS_WARP, warps.k, k_dim, 4 * run * runs);
  add_mode(&layout, TL_AXIS_WARP, warps.all / (warps.m * warps.n * warps.k), TL_DIM_NONE, 0);
  return layout;
}
