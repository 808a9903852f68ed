// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor copies (cp.async.bulk.tensor): places, fills, steps, types, multicast. A vector holds the parameters of the
// tensor map, never its bits.
#include <string.h>

#include "rec_tma.h"

// A tensor whose innermost extent is odd where rows may be padded, and a box whose rows fill the span of the swizzle.
rec_map rec_make_map(uint32_t type, uint32_t rank, uint32_t swizzle) {
  static const uint32_t extents[] = {0, 9, 3, 2, 2}, boxes[] = {0, 8, 2, 2, 2};
  uint32_t bytes = rec_element_bytes(type), span = swizzle ? 16u << swizzle : 48;
  rec_map m = {.type = type, .rank = rank, .swizzle = swizzle};
  m.dims[0] = rank == 1 ? 4 * span / bytes - 3 : span / bytes + 16 / bytes - 1;
  uint64_t stride = (m.dims[0] * bytes + 31) / 16 * 16;
  for (uint32_t i = 0; i < rank; i++) {
    m.box[i] = i ? boxes[i] : span / bytes;
    m.steps[i] = 1;
    if (i) m.dims[i] = rank > 2 && i == 1 ? 5 : extents[i];
    if (rank > 2 && i == 1) m.box[i] = 4;
    if (i) m.strides[i - 1] = stride, stride *= m.dims[i];
  }
  return m;
}

typedef void visit(const rec_map *m, const int32_t *at, uint32_t offset);

// To a store a negative coordinate is an illegal instruction.
static bool is_negative(const rec_map *m, const int32_t *at) {
  for (uint32_t i = 0; i < m->rank; i++)
    if (at[i] < 0) return true;
  return false;
}

static void load(const rec_map *m, const int32_t *at, uint32_t offset) {
  rec_tma_load(&(rec_load){.map = m, .at = at, .offset = offset});
}

static void store(const rec_map *m, const int32_t *at, uint32_t offset) {
  if (!is_negative(m, at)) rec_tma_store(m, at, offset, NULL, REC_S32);
}

// At the origin, inside, past each side of each dimension, outside altogether; at a place that is not the pattern's
// start.
static void each_place(const rec_map *m, visit *with) {
  int32_t unit = (int32_t)(16 / rec_element_bytes(m->type)), at[REC_MAX_RANK] = {0};
  with(m, at, 0);
  for (uint32_t i = 0; i < m->rank; i++) {
    int32_t step = i ? 1 : unit, extent = (int32_t)m->dims[i];
    at[i] = -step;
    with(m, at, 0);
    at[i] = i ? extent - 1 : extent / unit * unit;
    with(m, at, 0);
    at[i] = step;
  }
  with(m, at, 1024);
  with(m, at, 128 * (1 + m->rank));
  at[m->rank - 1] = ((int32_t)m->dims[m->rank - 1] / unit + 2) * unit;
  with(m, at, 0);
  at[m->rank - 1] = -(int32_t)m->box[m->rank - 1] - unit;
  with(m, at, 0);
}

static void record_places(void) {
  static const uint32_t types[] = {U8, U16, U32, U64, F16, F32, F64, BF16, S32, S64};
  uint32_t turn = 0;
  for (uint32_t rank = 1; rank <= 5; rank++) {
    for (uint32_t swizzle = 0; swizzle < 4; swizzle++) {
      rec_map m = rec_make_map(types[turn++ % 10], rank, swizzle);
      if (rank > 1 || !swizzle) each_place(&m, load), each_place(&m, store);
    }
  }
  for (uint32_t type = 0; type < 4; type++) {  // every element size with every swizzle
    for (uint32_t swizzle = 0; swizzle < 4; swizzle++) {
      rec_map m = rec_make_map(types[type], 2, swizzle);
      load(&m, (int32_t[]){-(int32_t)(16 / rec_element_bytes(types[type])), 2}, 256);
      rec_tma_store(&m, (int32_t[]){(int32_t)(16 / rec_element_bytes(types[type])), 3}, 128, NULL, REC_S32);
    }
  }
}

static void record_fills(void) {
  static const uint32_t types[] = {F16, BF16, F32, F64, F32_FTZ, TF32, TF32_FTZ};
  for (int i = 0; i < 7; i++) {
    rec_map m = rec_make_map(types[i], 2, 2);
    load(&m, (int32_t[]){0, 1}, 0);
    m.fill = 1;
    load(&m, (int32_t[]){-8, 3}, 0);
  }
}

static void record_steps(void) {
  static const uint32_t steps[][3] = {{1, 2, 1}, {1, 3, 1}, {1, 1, 2}, {1, 2, 2}, {2, 1, 1}};
  for (int i = 0; i < 5; i++) {
    rec_map m = rec_make_map(U16, 3, (uint32_t)i % 4);
    memcpy(m.steps, steps[i], sizeof steps[i]);
    load(&m, (int32_t[]){0, 0, 0}, 0);
    load(&m, (int32_t[]){8, -1, 1}, 0);
    rec_tma_store(&m, (int32_t[]){0, 1, 0}, 0, NULL, REC_S32);
  }
}

static void record_reductions(void) {
  static const struct {
    const char *op;
    uint32_t type;
    rec_type data;
  } ops[] = {{"add", U32, REC_S32},   {"add", S32, REC_S32},   {"add", U64, REC_S32}, {"add", F16, REC_F16},
             {"add", BF16, REC_BF16}, {"add", F32, REC_F32},   {"min", U32, REC_S32}, {"min", S32, REC_S32},
             {"min", U64, REC_S32},   {"min", S64, REC_S32},   {"min", F16, REC_F16}, {"min", BF16, REC_BF16},
             {"max", U32, REC_S32},   {"max", S32, REC_S32},   {"max", U64, REC_S32}, {"max", S64, REC_S32},
             {"max", F16, REC_F16},   {"max", BF16, REC_BF16}, {"inc", U32, REC_S32}, {"dec", U32, REC_S32},
             {"and", U32, REC_S32},   {"or", U32, REC_S32},    {"xor", U32, REC_S32}, {"and", U64, REC_S32},
             {"or", U64, REC_S32},    {"xor", U64, REC_S32},   {"add", F64, REC_F64}};
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    rec_map m = rec_make_map(ops[i].type, 1 + (uint32_t)i % 5, 0);
    int32_t unit = (int32_t)(16 / rec_element_bytes(ops[i].type));
    rec_tma_store(&m, (int32_t[]){unit, 1, 1, 0, 1}, 0, ops[i].op, ops[i].data);
  }
}

void rec_all_tma(void) {
  rec_file("tma");
  record_places();
  record_fills();
  record_steps();
  for (uint32_t mask = 1; mask <= 3; mask++) {
    rec_map m = rec_make_map(BF16, 2, 3);
    rec_tma_load(&(rec_load){.map = &m, .at = (int32_t[]){0, 2}, .offset = 1024, .mask = mask});
  }
  rec_file("tma_reduce");
  record_reductions();
}
