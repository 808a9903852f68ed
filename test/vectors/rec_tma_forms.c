// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor copies: im2col, interleaved tensors, within a block, prefetches, reductions in every form, maps of which a
// kernel replaces a field.
#include <string.h>

#include "rec_tma.h"

// Channels of 16-bit numbers, then W, H, D as there are, then N; dense in memory.
static rec_map make_image(uint32_t rank, uint32_t swizzle) {
  static const uint32_t extents[][4] = {{7, 3}, {5, 4, 2}, {4, 3, 3, 2}};
  rec_map m = {
      .type = U16, .rank = rank, .swizzle = swizzle, .is_im2col = true, .dims = {72}, .steps = {1, 1, 1, 1, 1}};
  uint64_t stride = 144;
  for (uint32_t i = 1; i < rank; i++) {
    m.dims[i] = extents[rank - 3][i - 1];
    m.strides[i - 1] = stride;
    stride *= m.dims[i];
  }
  m.channels = swizzle ? 8u << swizzle : 8;
  m.pixels = rank == 3 ? 6 : rank == 4 ? 12 : 20;
  return m;
}

// A filter of 3 in each dimension with its border.
static void add_border(rec_map *m) {
  for (uint32_t i = 0; i + 2 < m->rank; i++) m->lower[i] = m->upper[i] = -1;
}

static void load(const rec_map *m, const int32_t *at, const uint16_t *offsets) {
  rec_tma_load(&(rec_load){.map = m, .at = at, .offsets = offsets});
}

static void record_im2col_loads(void) {
  for (uint32_t rank = 3; rank <= 5; rank++) {
    for (uint32_t swizzle = 0; swizzle < 4; swizzle++) {
      rec_map m = make_image(rank, swizzle);
      add_border(&m);
      load(&m, (int32_t[]){0, -1, rank == 3 ? 0 : -1, rank == 4 ? 0 : -1, 0}, (uint16_t[]){0, 0, 0});
      load(&m, (int32_t[]){8, 1, 0, 1, 1}, (uint16_t[]){2, 1, 2});
      load(&m, (int32_t[]){16, 2, 1, 1, 1}, (uint16_t[]){1, 2, 0});
    }
    rec_map m = make_image(rank, 0);
    add_border(&m);
    for (uint32_t i = 1; i + 1 < rank; i++) m.steps[i] = 2;
    load(&m, (int32_t[]){8, -1, rank == 3 ? 1 : -1, rank == 4 ? 0 : -1, 1}, (uint16_t[]){1, 0, 2});
    for (uint32_t i = 0; i + 2 < rank; i++) m.lower[i] = 0, m.upper[i] = -2, m.steps[i + 1] = 1;
    load(&m, (int32_t[]){0, 0, 0, 0, 0}, (uint16_t[]){2, 2, 2});
    load(&m, (int32_t[]){-8, 1, rank > 3 ? 0 : 1, 0, 0}, (uint16_t[]){0, 1, 0});
    m = make_image(rank, 2);  // rows shorter than the swizzle's span
    m.channels = 16;
    load(&m, (int32_t[]){64, 1, 0, 0, 0}, (uint16_t[]){0, 0, 0});
    rec_tma_load(&(rec_load){
        .map = &m, .at = (int32_t[]){8, 0, 0, 0, 0}, .offsets = (uint16_t[]){1, 1, 1}, .offset = 256, .mask = 3});
    rec_tma_load(
        &(rec_load){.map = &m, .at = (int32_t[]){8, 1, 0, 0, 0}, .offsets = (uint16_t[]){0, 2, 1}, .cta = true});
  }
}

static void record_im2col_stores(void) {
  for (uint32_t rank = 3; rank <= 5; rank++) {
    for (uint32_t swizzle = 0; swizzle < 4; swizzle += 3) {
      rec_map m = make_image(rank, swizzle);
      rec_tma_store(&m, (int32_t[]){0, 0, 0, 0, 0}, 0, NULL, REC_S32);
      rec_tma_store(&m, (int32_t[]){16, 2, 1, 1, 1}, 128, NULL, REC_S32);
      for (uint32_t i = 0; i + 2 < rank; i++) m.upper[i] = -1;
      rec_tma_store(&m, (int32_t[]){8, 1, 0, 1, 0}, 0, NULL, REC_S32);
    }
  }
}

static void record_forms_of_tiles(void) {
  static const uint32_t types[] = {F32, BF16, U8, U64, U16};
  for (uint32_t rank = 1; rank <= 5; rank++) {
    rec_map m = rec_make_map(types[rank - 1], rank, rank > 1 ? rank % 4 : 0);
    int32_t unit = (int32_t)(16 / rec_element_bytes(m.type)), at[] = {unit, 1, -1, 0, 1};
    rec_tma_load(&(rec_load){.map = &m, .at = at, .offset = 1024, .cta = true});
    rec_tma_prefetch(&m, at, NULL);
  }
  rec_map of_map = rec_make_map(U16, 2, 0);
  uint64_t in[32] = {1};
  rec_run(&(rec_vector){.name = "tma.prefetch_map",
                        .signature = "(b)",
                        .body = "@$0 prefetch.tensormap [%map];",
                        .in = in,
                        .map = &of_map});
  for (uint32_t rank = 3; rank <= 5; rank++) {
    rec_map m = make_image(rank, 0);
    rec_tma_prefetch(&m, (int32_t[]){8, 1, 0, 0, 0}, (uint16_t[]){1, 0, 0});
  }
}

static void record_reductions(void) {
  static const struct {
    const char *op;
    uint32_t type;
    rec_type data;
  } ops[] = {{"add", U32, REC_S32}, {"min", S32, REC_S32}, {"max", F16, REC_F16}, {"inc", U32, REC_S32},
             {"dec", U32, REC_S32}, {"and", U32, REC_S32}, {"or", U64, REC_S32},  {"xor", U32, REC_S32}};
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    for (uint32_t rank = 1; rank <= 5; rank++) {
      rec_map m = rec_make_map(ops[i].type, rank, 0);
      int32_t unit = (int32_t)(16 / rec_element_bytes(ops[i].type));
      rec_tma_store(&m, (int32_t[]){unit, 2, 0, 1, 0}, 0, ops[i].op, ops[i].data);
      if (rank < 3) continue;
      m = make_image(rank, 0);
      m.type = ops[i].type;
      m.dims[0] = 144 / rec_element_bytes(m.type);
      m.channels = 2 * (uint32_t)unit;
      rec_tma_store(&m, (int32_t[]){unit, 1, 0, 0, 0}, 0, ops[i].op, ops[i].data);
    }
  }
}

// Each field, the scopes of the fences in turns, in global and in shared memory.
static void record_replacements(void) {
  rec_map m = rec_make_map(F32, 3, 2);
  m.box[0] = 8;
  const rec_replacement fields[] = {
      {"global_address", "gpu", false, -1, 'g', 64, m},
      {"rank", "gpu", true, -1, 'i', 2, m},
      {"box_dim", "cta", false, 1, 'i', 3, m},
      {"global_dim", "cluster", false, 1, 'i', 2, m},
      {"global_stride", "sys", false, 0, 'l', m.strides[0] + 16, m},
      {"element_stride", "gpu", true, 1, 'i', 2, m},
      {"elemtype", "cta", true, -1, 0, 8, m},
      {"elemtype", "gpu", false, -1, 0, 11, m},
      {"swizzle_mode", "sys", true, -1, 0, 1, m},
      {"fill_mode", "cluster", false, -1, 0, 1, m},
      {"interleave_layout", "gpu", false, -1, 0, 0, m},
      {"global_address", "sys", true, -1, 'g', 128, m},
      {"box_dim", "gpu", true, 2, 'i', 1, m},
      {"global_dim", "gpu", true, 0, 'i', 5, m},
      {"global_stride", "cluster", true, 1, 'l', m.strides[1] + 32, m},
      {"element_stride", "cta", false, 2, 'i', 2, m},
      {"swizzle_mode", "gpu", false, -1, 0, 0, m},
      {"fill_mode", "gpu", true, -1, 0, 1, m},
      {"interleave_layout", "cta", true, -1, 0, 0, m},
      {"rank", "cta", false, -1, 'i', 2, m},
  };
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    rec_replacement r = fields[i];
    if (!strcmp(r.field, "box_dim")) r.after.box[r.ordinal] = (uint32_t)r.value;
    if (!strcmp(r.field, "element_stride")) r.after.steps[r.ordinal] = (uint32_t)r.value;
    rec_tma_load(&(rec_load){.map = &m, .at = (int32_t[]){4, 1, -1}, .offset = 512, .replacement = &r});
  }
}

// Pixels of 16 or 32 bytes, rows of them, planes, slices of channels, images: dimension rank - 2 counts slices.
static rec_map make_slices(uint32_t type, uint32_t rank, uint32_t interleave, uint32_t swizzle) {
  static const uint32_t extents[][5] = {{21, 3, 4}, {21, 5, 3, 2}, {11, 4, 3, 2, 2}};
  rec_map m = {.type = type, .rank = rank, .interleave = interleave, .swizzle = swizzle, .steps = {1, 1, 1, 1, 1}};
  uint64_t stride = 16 * interleave;
  for (uint32_t i = 0; i < rank; i++) {
    m.dims[i] = extents[rank - 3][i];
    m.box[i] = i ? 2 : 16 / rec_element_bytes(type);
    if (i) m.strides[i - 1] = stride;
    stride *= m.dims[i];
  }
  return m;
}

static void record_slices(uint32_t type, uint32_t rank, uint32_t interleave, uint32_t swizzle) {
  rec_map m = make_slices(type, rank, interleave, swizzle);
  load(&m, (int32_t[]){0, 0, 0, 0, 0}, NULL);
  load(&m, (int32_t[]){3, 1, 1, 1, 1}, NULL);
  load(&m, (int32_t[]){-1, rank > 3 ? -1 : 2, rank > 4 ? -1 : 1, 1, 1}, NULL);
  load(&m, (int32_t[]){(int32_t)m.dims[0] - 1, (int32_t)m.dims[1] - 1, 1, 0, 1}, NULL);
  rec_tma_store(&m, (int32_t[]){2, 1, 0, 1, 0}, 128, NULL, REC_S32);
  rec_tma_store(&m, (int32_t[]){(int32_t)m.dims[0] - 1, (int32_t)m.dims[1] - 1, 1, 0, 1}, 0, NULL, REC_S32);
  m.steps[0] = 2;
  m.steps[rank > 3 ? 1 : 2] = 2;
  m.box[1] = m.box[2] = 3;
  load(&m, (int32_t[]){1, 0, 1, 0, 0}, NULL);
  rec_tma_store(&m, (int32_t[]){1, 0, 1, 0, 0}, 0, NULL, REC_S32);
}

static void record_columns_of_slices(uint32_t type, uint32_t rank, uint32_t interleave, uint32_t swizzle) {
  rec_map m = make_slices(type, rank, interleave, swizzle);
  m.is_im2col = true;
  m.channels = 16;
  m.pixels = 24;
  for (uint32_t i = 0; i < 3 && i + 2 < rank; i++) m.lower[i] = -1, m.upper[i] = i ? 0 : -1;
  load(&m, (int32_t[]){-1, 0, 0, 0, 0}, (uint16_t[]){0, 0, 0});
  load(&m, (int32_t[]){7, 2, 1, 1, 1}, (uint16_t[]){2, 1, 1});
  load(&m, (int32_t[]){4, 1, 0, 0, 1}, (uint16_t[]){1, 2, 0});
  m.steps[0] = 2;
  load(&m, (int32_t[]){2, 1, 1, 0, 0}, (uint16_t[]){0, 1, 1});
  m.steps[0] = 1;
  for (uint32_t i = 0; i + 2 < rank; i++) m.lower[i] = 0;
  rec_tma_store(&m, (int32_t[]){1, 1, 1, 1, 0}, 0, NULL, REC_S32);
}

static void record_interleaved(void) {
  for (uint32_t rank = 3; rank <= 5; rank++) {
    record_columns_of_slices(F16, rank, 1, 0);
    record_columns_of_slices(F16, rank, 1, 3);
    record_columns_of_slices(BF16, rank, 2, 1);
    for (uint32_t swizzle = 0; swizzle < 4; swizzle++) {
      record_slices(U16, rank, 1, swizzle);
      record_slices(U64, rank, 1, swizzle);
    }
    record_slices(F16, rank, 2, 1);
    record_slices(U64, rank, 2, 1);
  }
  rec_map m = make_slices(BF16, 4, 1, 2);
  m.fill = 1;
  load(&m, (int32_t[]){-2, 4, 0, 1}, NULL);
}

void rec_all_tma_forms(void) {
  rec_file("tma_forms");
  record_forms_of_tiles();
  record_reductions();
  record_replacements();
  rec_file("tma_im2col");
  record_im2col_loads();
  record_im2col_stores();
  rec_file("tma_interleaved");
  record_interleaved();
}
