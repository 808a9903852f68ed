// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mma.sp: of each four units in a row of A (16 bits, or a byte of 8-bit and 4-bit elements; of tf32 a unit is half an
// element) only two are there, and 4 bits of metadata say which. PTX ISA, "Sparse matrix storage". A lane holds words
// of A and of the sums as for mma of half the k, and words p, p + 4, p + 8, p + 12 of a column of B.
#include <string.h>

#include "emulator/ops/mma.h"
#include "emulator/ops/ops.h"
#include "emulator/sanitize/sanitize.h"
#include "llvm_backend/jit/host_libcalls.h"

typedef struct sparse_form {
  int param;
  bool half_k, f16_sums;
  uint32_t unit_bytes, num_groups;  // of a row
  uint32_t a_words, b_words;        // of a row of A as it is there, of a column of B
} sparse_form;

static sparse_form form_of(int param) {
  tl_emu_mma_type type = (tl_emu_mma_type)(param & 15);
  sparse_form f = {.param = param, .half_k = param & TL_EMU_MMA_HALF_K, .f16_sums = param & TL_EMU_MMA_F16_SUMS};
  f.unit_bytes = type <= TL_EMU_MMA_TF32 ? 2 : 1;
  f.a_words = f.half_k ? 4 : 8;
  f.b_words = 2 * f.a_words;
  f.num_groups = f.b_words / f.unit_bytes;
  return f;
}

// The metadata of group `group` of row `row`. With n lanes of each quad that give theirs, beginning with the selected:
// of 16-bit units a lane has four groups of the quad's first row in its lower half, and those of its second row in the
// upper; of bytes it has eight groups of one row.
static uint32_t metadata_of(const sparse_form *f, const uint32_t *words, uint32_t selector, uint32_t row,
                            uint32_t group) {
  uint32_t givers = f->num_groups / 4, quad = row % 8, upper = row / 8, lane, bit;
  if (f->unit_bytes == 2) {
    lane = group / 4;
    bit = upper * 16 + group % 4 * 4;
  } else {
    lane = group / 8 * 2 + upper;
    bit = group % 8 * 4;
  }
  return words[quad * 4 + selector * givers + lane] >> bit & 15;
}

// PTX ISA: the two units are different and come in order; of tf32 they are the halves of one element.
static bool is_metadata(const sparse_form *f, uint32_t bits) {
  uint32_t first = bits & 3, second = bits >> 2;
  if ((f->param & 15) == TL_EMU_MMA_TF32) return bits == 0x4 || bits == 0xe;
  return first < second;
}

typedef struct operands {
  uint32_t a[16][8], b[8][16], metadata[TL_EMU_WARP], selector;
  float c[16][8];
} operands;

static void gather(const tl_emu_meeting *meeting, const sparse_form *f, operands *o) {
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    const uint32_t *words = meeting->args[lane];
    uint32_t g = lane / 4, p = lane % 4;
    for (uint32_t at = p; at < f->a_words; at += 4) {
      o->a[g][at] = *words++;
      o->a[g + 8][at] = *words++;
    }
    for (uint32_t at = p; at < f->b_words; at += 4) o->b[g][at] = *words++;
    for (uint32_t half = 0; half < 2; half++, words += f->f16_sums ? 1 : 2) {
      if (f->f16_sums)
        for (uint32_t i = 0; i < 2; i++)
          o->c[g + 8 * half][2 * p + i] = tl_host_f16_to_f32((uint16_t)(*words >> 16 * i));
      else
        memcpy(&o->c[g + 8 * half][2 * p], words, 8);
    }
    o->metadata[lane] = words[0];
    o->selector = words[1];
  }
}

static void scatter(const tl_emu_meeting *meeting, const sparse_form *f, float (*c)[8]) {
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    uint8_t *result = meeting->result[lane];
    for (uint32_t half = 0; half < 2; half++) {
      const float *pair = &c[lane / 4 + 8 * half][lane % 4 * 2];
      uint16_t halves[2] = {0};
      for (uint32_t i = 0; f->f16_sums && i < 2; i++) halves[i] = tl_host_f32_to_f16(pair[i]);
      memcpy(result + (f->f16_sums ? 4 : 8) * half, f->f16_sums ? (const void *)halves : pair, f->f16_sums ? 4 : 8);
    }
  }
}

// Row `row` of the product, in row 0 of `t`: what of each column of B meets the units that are there makes a dense
// product. (Zeros in the place of the others would not do: zero times infinity is no zero.) False: wrong metadata.
static bool multiply_row(const sparse_form *f, const operands *o, uint32_t row, tl_emu_mma_tiles *t) {
  tl_emu_mma_type type = (tl_emu_mma_type)(f->param & 15);
  uint32_t size = f->unit_bytes;
  bool good = true;
  memcpy(t->a[0], o->a[row], sizeof t->a[0]);
  memcpy(t->c[0], o->c[row], sizeof t->c[0]);
  for (uint32_t group = 0; group < f->num_groups; group++) {
    uint32_t bits = metadata_of(f, o->metadata, o->selector, row, group);
    good = good && is_metadata(f, bits);
    for (uint32_t n = 0; n < 8; n++) {
      const uint8_t *from = (const uint8_t *)o->b[n] + 4 * group * size;
      uint8_t *to = (uint8_t *)t->b[n] + 2 * group * size;
      memcpy(to, from + (bits & 3) * size, size);
      memcpy(to + size, from + (bits >> 2) * size, size);
    }
  }
  if (type <= TL_EMU_MMA_BF16)
    tl_emu_mma_multiply(t, f->half_k, type == TL_EMU_MMA_BF16, false);
  else
    tl_emu_mma_multiply_bytes(t, f->param);
  return good;
}

static bool sparse_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  tl_emu_mma_sanitize_full(warp, meeting);
  sparse_form f = form_of(meeting->site->binding->param);
  operands o;
  tl_emu_mma_tiles t = {0};
  bool good = true;
  gather(meeting, &f, &o);
  for (uint32_t m = 0; m < 16; m++) {
    good &= multiply_row(&f, &o, m, &t);
    memcpy(o.c[m], t.c[0], sizeof o.c[m]);
  }
  if (!good) tl_emu_sanitize_misuse("the metadata names no two units of a group in their order", meeting->site);
  scatter(meeting, &f, o.c);
  return true;
}

void tl_emu_op_mma_sparse(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, sparse_work);
}
