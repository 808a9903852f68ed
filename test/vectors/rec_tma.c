// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor copies (cp.async.bulk.tensor, tiled): loads, stores, reductions, multicast. A vector holds the parameters of
// the tensor map, never its bits.
#include <stdio.h>
#include <string.h>

#include "record.h"

enum { SHARED = 8192, GLOBAL = 12288 };
enum { U8, U16, U32, S32, U64, S64, F16, F32, F64, BF16, F32_FTZ, TF32, TF32_FTZ };  // CUtensorMapDataType

static uint32_t element_bytes(uint32_t type) {
  static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return bytes[type];
}

// What a load transfers: every step-th element of the box.
static uint32_t box_bytes(const rec_map *m) {
  uint32_t bytes = element_bytes(m->type);
  for (uint32_t i = 0; i < m->rank; i++) bytes *= i ? (m->box[i] + m->steps[i] - 1) / m->steps[i] : m->box[i];
  return bytes;
}

static uint32_t tensor_bytes(const rec_map *m) {
  if (m->rank == 1) return (uint32_t)(m->dims[0] * element_bytes(m->type) + 15) / 16 * 16;
  return (uint32_t)(m->strides[m->rank - 2] * m->dims[m->rank - 1]);
}

static void put_place(char *body, uint32_t rank, uint32_t first) {
  strcat(body, "[%map,{");
  for (uint32_t i = 0; i < rank; i++) sprintf(body + strlen(body), "%s$%u", i ? "," : "", first + i);
  strcat(body, "}]");
}

static void describe(char *setting, const rec_map *m, const char *what) {
  sprintf(setting, "%s bytes=%u", what, box_bytes(m));
}

// Result: whether the expected bytes arrived. Arguments: destination, coordinates, (mask of blocks,) whether to issue.
static void record_load(const rec_map *m, const int32_t *at, uint32_t offset, uint32_t mask) {
  static uint8_t shared[2 * SHARED], global[GLOBAL];
  char name[64], signature[32], body[1024], setting[64];
  uint32_t blocks = mask ? 2 : 1, arguments = m->rank + 2 + (mask ? 1 : 0);
  uint64_t in[64 * 8];
  sprintf(name, "tma.load.%ud%s", m->rank, mask ? ".multicast" : "");
  sprintf(signature, "b(p%.*s%sb)", (int)m->rank, "iiiii", mask ? "s" : "");
  sprintf(body,
          "@%%first mbarrier.init.shared::cta.b64 [bar],1; @%%first fence.mbarrier_init.release.cluster; "
          "fence.proxy.async; "
          "bar.sync 0; @%%first mbarrier.arrive.expect_tx.shared::cta.b64 _,[bar],%u; %s"
          "@$%u cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes%s [$1],",
          box_bytes(m), mask ? "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; " : "",
          arguments, m->rank, mask ? ".multicast::cluster" : "");
  put_place(body, m->rank, 2);
  sprintf(body + strlen(body), ",[bar]");
  if (mask) sprintf(body + strlen(body), ",$%u", m->rank + 2);
  strcat(body,
         "; mov.u32 %t0,0; "
         "again: mbarrier.try_wait.parity.shared::cta.b64 %p1,[bar],0; @%p1 bra arrived; add.u32 %t0,%t0,1; "
         "setp.lt.u32 %p2,%t0,1000; @%p2 bra again; arrived: mov.pred $0,%p1;");
  describe(setting, m, "load");
  uint32_t slot = 0;
  for (uint32_t thread = 0; thread < 32 * blocks; thread++) {
    in[slot++] = offset;
    for (uint32_t i = 0; i < m->rank; i++) in[slot++] = (uint32_t)at[i];
    if (mask) in[slot++] = mask;
    in[slot++] = thread == 0;
  }
  rec_seed("tensor", 0);
  rec_fill(global, GLOBAL, REC_S32, REC_BITS);
  for (size_t i = 0; i < sizeof shared; i++) shared[i] = (uint8_t)(i % 251);
  uint32_t used = (offset + box_bytes(m) + 255) / 128 * 128;
  rec_run(&(rec_vector){.name = name,
                        .signature = signature,
                        .body = body,
                        .setting = setting,
                        .blocks = blocks,
                        .in = in,
                        .shared_bytes = used,
                        .shared = shared,
                        .global_bytes = tensor_bytes(m),
                        .global = global,
                        .map = m});
}

// Arguments: source, coordinates, whether to issue. reduction: NULL or one of the operations.
static void record_store(const rec_map *m, const int32_t *at, uint32_t offset, const char *reduction, rec_type type) {
  static uint8_t shared[SHARED], global[GLOBAL];
  char name[64], signature[32], body[512], setting[64];
  uint64_t in[32 * 8];
  if (reduction)
    sprintf(name, "tma.reduce.%s.%ud", reduction, m->rank);
  else
    sprintf(name, "tma.store.%ud", m->rank);
  sprintf(signature, "(p%.*sb)", (int)m->rank, "iiiii");
  sprintf(body, "@$%u cp.%sasync.bulk.tensor.%ud.global.shared::cta%s%s.tile.bulk_group ", m->rank + 1,
          reduction ? "reduce." : "", m->rank, reduction ? "." : "", reduction ? reduction : "");
  put_place(body, m->rank, 1);
  strcat(body, ",[$0]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
  describe(setting, m, "store");
  uint32_t slot = 0;
  for (uint32_t thread = 0; thread < 32; thread++) {
    in[slot++] = offset;
    for (uint32_t i = 0; i < m->rank; i++) in[slot++] = (uint32_t)at[i];
    in[slot++] = thread == 0;
  }
  rec_seed("tensor", reduction ? 100 + (uint32_t)type : 0);
  rec_fill(global, GLOBAL, type, reduction ? REC_RANDOM : REC_BITS);
  rec_seed("tile", reduction ? 100 + (uint32_t)type : 0);
  rec_fill(shared, SHARED, type, reduction ? REC_RANDOM : REC_BITS);
  uint32_t used = (offset + box_bytes(m) + 127) / 128 * 128;
  rec_run(&(rec_vector){.name = name,
                        .signature = signature,
                        .body = body,
                        .setting = setting,
                        .in = in,
                        .shared_bytes = used,
                        .shared = shared,
                        .global_bytes = tensor_bytes(m),
                        .global = global,
                        .map = m});
}

// A tensor whose innermost extent is odd where rows may be padded, and a box whose rows fill the span of the swizzle.
static rec_map make_map(uint32_t type, uint32_t rank, uint32_t swizzle) {
  static const uint32_t extents[] = {0, 9, 3, 2, 2}, boxes[] = {0, 8, 2, 2, 2};
  uint32_t bytes = element_bytes(type), span = swizzle ? 16u << swizzle : 48;
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
  record_load(m, at, offset, 0);
}

static void store(const rec_map *m, const int32_t *at, uint32_t offset) {
  if (!is_negative(m, at)) record_store(m, at, offset, NULL, REC_S32);
}

// At the origin, inside, past each side of each dimension, outside altogether; at a place that is not the pattern's
// start.
static void each_place(const rec_map *m, visit *with) {
  int32_t unit = (int32_t)(16 / element_bytes(m->type)), at[REC_MAX_RANK] = {0};
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
      rec_map m = make_map(types[turn++ % 10], rank, swizzle);
      if (rank > 1 || !swizzle) each_place(&m, load), each_place(&m, store);
    }
  }
  for (uint32_t type = 0; type < 4; type++) {  // every element size with every swizzle
    for (uint32_t swizzle = 0; swizzle < 4; swizzle++) {
      rec_map m = make_map(types[type], 2, swizzle);
      record_load(&m, (int32_t[]){-(int32_t)(16 / element_bytes(types[type])), 2}, 256, 0);
      record_store(&m, (int32_t[]){(int32_t)(16 / element_bytes(types[type])), 3}, 128, NULL, REC_S32);
    }
  }
}

static void record_fills(void) {
  static const uint32_t types[] = {F16, BF16, F32, F64, F32_FTZ, TF32, TF32_FTZ};
  for (int i = 0; i < 7; i++) {
    rec_map m = make_map(types[i], 2, 2);
    record_load(&m, (int32_t[]){0, 1}, 0, 0);
    m.fill = 1;
    record_load(&m, (int32_t[]){-8, 3}, 0, 0);
  }
}

static void record_steps(void) {
  static const uint32_t steps[][3] = {{1, 2, 1}, {1, 3, 1}, {1, 1, 2}, {1, 2, 2}, {2, 1, 1}};
  for (int i = 0; i < 5; i++) {
    rec_map m = make_map(U16, 3, (uint32_t)i % 4);
    memcpy(m.steps, steps[i], sizeof steps[i]);
    record_load(&m, (int32_t[]){0, 0, 0}, 0, 0);
    record_load(&m, (int32_t[]){8, -1, 1}, 0, 0);
    record_store(&m, (int32_t[]){0, 1, 0}, 0, NULL, REC_S32);
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
    rec_map m = make_map(ops[i].type, 1 + (uint32_t)i % 5, 0);
    int32_t unit = (int32_t)(16 / element_bytes(ops[i].type));
    record_store(&m, (int32_t[]){unit, 1, 1, 0, 1}, 0, ops[i].op, ops[i].data);
  }
}

void rec_all_tma(void) {
  rec_file("tma");
  record_places();
  record_fills();
  record_steps();
  for (uint32_t mask = 1; mask <= 3; mask++) {
    rec_map m = make_map(BF16, 2, 3);
    record_load(&m, (int32_t[]){0, 2}, 1024, mask);
  }
  rec_file("tma_reduce");
  record_reductions();
}
