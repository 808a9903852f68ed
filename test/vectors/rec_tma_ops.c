// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <stdio.h>
#include <string.h>

#include "rec_tma.h"

enum { SHARED = 16384, GLOBAL = 20480, GLOBAL_OF_REPLACED = 12288 };

uint32_t rec_element_bytes(uint32_t type) {
  static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return bytes[type];
}

static uint32_t taken(const rec_map *m, uint32_t i) {
  return (m->box[i] + m->steps[i] - 1) / m->steps[i];
}

// What a load transfers: every step-th element of the box; of an interleaved tensor pixels of one slice, 16 or 32 bytes
// each.
static uint32_t box_bytes(const rec_map *m) {
  uint32_t bytes = m->interleave ? 8u << m->interleave : rec_element_bytes(m->type);
  if (m->is_im2col) return bytes * (m->interleave ? 1 : m->channels) * m->pixels;
  bytes *= m->interleave ? taken(m, 0) : m->box[0];
  for (uint32_t i = 1; i < m->rank; i++) bytes *= m->interleave && i + 2 == m->rank ? 1 : taken(m, i);
  return bytes;
}

// Of shared memory, where rows that are shorter than the span of the swizzle may be a span apart.
static uint32_t rows_bytes(const rec_map *m, uint32_t bytes) {
  return m->is_im2col || m->interleave ? bytes * (m->swizzle ? 1u << m->swizzle : 1) : bytes;
}

static uint32_t tensor_bytes(const rec_map *m) {
  if (m->rank == 1) return (uint32_t)(m->dims[0] * rec_element_bytes(m->type) + 15) / 16 * 16;
  return (uint32_t)(m->strides[m->rank - 2] * m->dims[m->rank - 1]);
}

static uint32_t num_offsets(const rec_map *m) {
  return m->is_im2col ? m->rank - 2 : 0;
}

static void put_list(char *body, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) sprintf(body + strlen(body), "%s$%u", i ? "," : "{", first + i);
  strcat(body, "}");
}

static void put_place(char *body, const char *map, uint32_t rank, uint32_t first) {
  sprintf(body + strlen(body), "[%s,", map);
  put_list(body, first, rank);
  strcat(body, "]");
}

// The map's copy %w2 with one field replaced, by thread 0. `operand`: that of the value.
static void put_replacement(char *body, const rec_replacement *r, uint32_t operand) {
  const char *in_space = r->in_shared ? "shared" : "global", *place = r->in_shared ? "%t1" : "%w1";
  strcat(body, "mov.u64 %w1,map_copy; cvta.global.u64 %w2,%w1; mov.u32 %t1,shared_map; @!%first bra copied; ");
  for (int i = 0; i < 128; i += 16)
    sprintf(body + strlen(body), "ld.v2.b64 {%%w3,%%w4},[%%map+%d]; st.%s.v2.b64 [%s+%d],{%%w3,%%w4}; ", i, in_space,
            place, i);
  bool wide = !strcmp(r->field, "global_address") || !strcmp(r->field, "global_stride");
  sprintf(body + strlen(body), "tensormap.replace.tile.%s.%s.b1024.b%d [%s],", r->field,
          r->in_shared ? "shared::cta" : "global", wide ? 64 : 32, place);
  if (r->ordinal >= 0) sprintf(body + strlen(body), "%d,", r->ordinal);
  sprintf(body + strlen(body), r->letter ? "$%u; " : "%u; ", r->letter ? operand : (uint32_t)r->value);
  for (int i = 0; r->in_shared && i < 128; i += 16)
    sprintf(body + strlen(body), "ld.shared.v2.b64 {%%w3,%%w4},[%%t1+%d]; st.global.v2.b64 [%%w1+%d],{%%w3,%%w4}; ", i,
            i);
  sprintf(body + strlen(body),
          "fence.proxy.tensormap::generic.release.%s; fence.proxy.tensormap::generic.acquire.%s [%%w2],128; copied: ",
          r->scope, r->scope);
}

static void put_load(char *body, const rec_load *load, uint32_t bytes, uint32_t arguments) {
  const rec_map *m = load->map;
  const rec_replacement *r = load->replacement;
  uint32_t value = r && r->letter ? 1 : 0, offsets = 2 + m->rank + value;
  sprintf(body,
          "@%%first mbarrier.init.shared::cta.b64 [bar],1; @%%first fence.mbarrier_init.release.cluster; "
          "fence.proxy.async; "
          "bar.sync 0; @%%first mbarrier.arrive.expect_tx.shared::cta.b64 _,[bar],%u; ",
          bytes);
  if (load->mask) strcat(body, "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; ");
  if (r) put_replacement(body, r, 2 + m->rank);
  sprintf(body + strlen(body),
          "@$%u cp.async.bulk.tensor.%ud.shared::%s.global.%s.mbarrier::complete_tx::bytes%s [$1],", arguments, m->rank,
          load->cta ? "cta" : "cluster", m->is_im2col ? "im2col" : "tile", load->mask ? ".multicast::cluster" : "");
  put_place(body, r ? "%w2" : "%map", m->rank, 2);
  strcat(body, ",[bar]");
  if (m->is_im2col) strcat(body, ","), put_list(body, offsets, num_offsets(m));
  if (load->mask) sprintf(body + strlen(body), ",$%u", offsets + num_offsets(m));
  strcat(body,
         "; mov.u32 %t0,0; "
         "again: mbarrier.try_wait.parity.shared::cta.b64 %p1,[bar],0; @%p1 bra arrived; add.u32 %t0,%t0,1; "
         "setp.lt.u32 %p2,%t0,1000; @%p2 bra again; arrived: mov.pred $0,%p1;");
}

static uint32_t put_operands(uint64_t *in, const rec_load *load, bool issue) {
  const rec_map *m = load->map;
  const rec_replacement *r = load->replacement;
  uint32_t slot = 0;
  in[slot++] = load->offset;
  for (uint32_t i = 0; i < m->rank; i++) in[slot++] = (uint32_t)load->at[i];
  if (r && r->letter) in[slot++] = r->value;
  for (uint32_t i = 0; i < num_offsets(m); i++) in[slot++] = load->offsets[i];
  if (load->mask) in[slot++] = load->mask;
  in[slot++] = issue;
  return slot;
}

void rec_tma_load(const rec_load *load) {
  static uint8_t shared[2 * SHARED], global[GLOBAL];
  const rec_map *m = load->map;
  const rec_replacement *r = load->replacement;
  char name[64], signature[32], body[4096], setting[160], value[2] = {r ? r->letter : 0, 0};
  uint64_t in[64 * 12];
  uint32_t blocks = load->mask ? 2 : 1, slots = put_operands(in, load, true);
  uint32_t bytes = box_bytes(r ? &r->after : m);
  sprintf(name, "tma.%s.%ud%s%s%s", r ? "replace" : "load", m->rank, m->is_im2col ? ".im2col" : "",
          load->cta ? ".cta" : "", load->mask ? ".multicast" : "");
  sprintf(signature, "b(p%.*s%s%.*s%sb)", (int)m->rank, "iiiii", value, (int)num_offsets(m), "sss",
          load->mask ? "s" : "");
  put_load(body, load, bytes, slots);
  sprintf(setting, "load bytes=%u", bytes);
  if (r)
    sprintf(setting + strlen(setting), " field=%s ordinal=%d value=%llu space=%s scope=%s", r->field, r->ordinal,
            r->letter ? 0 : (unsigned long long)r->value, r->in_shared ? "shared" : "global", r->scope);
  for (uint32_t thread = 0; thread < 32 * blocks; thread++) put_operands(in + thread * slots, load, thread == 0);
  rec_seed("tensor", 0);
  rec_fill(global, GLOBAL, REC_S32, REC_BITS);
  for (size_t i = 0; i < sizeof shared; i++) shared[i] = (uint8_t)(i % 251);
  rec_run(&(rec_vector){.name = name,
                        .signature = signature,
                        .body = body,
                        .setting = setting,
                        .blocks = blocks,
                        .in = in,
                        .shared_bytes = (load->offset + rows_bytes(r ? &r->after : m, bytes) + 255) / 128 * 128,
                        .shared = shared,
                        .global_bytes = r ? GLOBAL_OF_REPLACED : tensor_bytes(m),
                        .global = global,
                        .map = m});
}

void rec_tma_store(const rec_map *m, const int32_t *at, uint32_t offset, const char *reduction, rec_type type) {
  static uint8_t shared[SHARED], global[GLOBAL];
  char name[64], signature[32], body[512], setting[64];
  uint64_t in[32 * 8];
  const char *mode = m->is_im2col ? ".im2col" : "";
  if (reduction)
    sprintf(name, "tma.reduce.%s.%ud%s", reduction, m->rank, mode);
  else
    sprintf(name, "tma.store.%ud%s", m->rank, mode);
  sprintf(signature, "(p%.*sb)", (int)m->rank, "iiiii");
  sprintf(body, "@$%u cp.%sasync.bulk.tensor.%ud.global.shared::cta%s%s.%s.bulk_group ", m->rank + 1,
          reduction ? "reduce." : "", m->rank, reduction ? "." : "", reduction ? reduction : "",
          m->is_im2col ? "im2col_no_offs" : "tile");
  put_place(body, "%map", m->rank, 1);
  strcat(body, ",[$0]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
  sprintf(setting, "store bytes=%u", box_bytes(m));
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
  rec_run(&(rec_vector){.name = name,
                        .signature = signature,
                        .body = body,
                        .setting = setting,
                        .in = in,
                        .shared_bytes = (offset + rows_bytes(m, box_bytes(m)) + 127) / 128 * 128,
                        .shared = shared,
                        .global_bytes = tensor_bytes(m),
                        .global = global,
                        .map = m});
}

void rec_tma_prefetch(const rec_map *m, const int32_t *at, const uint16_t *offsets) {
  static uint8_t global[GLOBAL];
  char name[64], signature[32], body[256];
  uint64_t in[32 * 9];
  sprintf(name, "tma.prefetch.%ud%s", m->rank, m->is_im2col ? ".im2col" : "");
  sprintf(signature, "(%.*s%.*sb)", (int)m->rank, "iiiii", (int)num_offsets(m), "sss");
  sprintf(body, "@$%u cp.async.bulk.prefetch.tensor.%ud.L2.global.%s ", m->rank + num_offsets(m), m->rank,
          m->is_im2col ? "im2col" : "tile");
  put_place(body, "%map", m->rank, 0);
  if (m->is_im2col) strcat(body, ","), put_list(body, m->rank, num_offsets(m));
  strcat(body, ";");
  uint32_t slot = 0;
  for (uint32_t thread = 0; thread < 32; thread++) {
    for (uint32_t i = 0; i < m->rank; i++) in[slot++] = (uint32_t)at[i];
    for (uint32_t i = 0; i < num_offsets(m); i++) in[slot++] = offsets[i];
    in[slot++] = thread == 0;
  }
  rec_seed("tensor", 0);
  rec_fill(global, GLOBAL, REC_S32, REC_BITS);
  rec_run(&(rec_vector){.name = name,
                        .signature = signature,
                        .body = body,
                        .in = in,
                        .global_bytes = tensor_bytes(m),
                        .global = global,
                        .map = m});
}
