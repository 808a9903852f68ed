// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bulk copies without a tensor map, addresses within clusters, and mbarriers: of the latter only what they tell.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

enum { SHARED = 1024, GLOBAL = 1024 };
#define INIT                                                                                                        \
  "@%first mbarrier.init.shared::cta.b64 [bar],1; @%first fence.mbarrier_init.release.cluster; fence.proxy.async; " \
  "bar.sync 0; "
#define MEET "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; "
#define WAIT                                                                                                          \
  "mov.u32 %t0,0; again: mbarrier.try_wait.parity.shared::cta.b64 %p1,[bar],0; @%p1 bra arrived; add.u32 %t0,%t0,1; " \
  "setp.lt.u32 %p2,%t0,1000; @%p2 bra again; arrived: mov.pred $0,%p1;"
#define EXPECT "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _,[bar],$3; "
#define COMMIT " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"

// `arguments` are those of every thread; the last, whether to issue, is 1 in thread 0 only.
static void record(const char *name, const char *signature, const char *body, uint32_t blocks,
                   const uint64_t *arguments, rec_type type) {
  static uint8_t shared[4 * SHARED], global[GLOBAL];
  uint64_t in[128 * 8];
  int count = rec_arguments(signature);
  for (uint32_t thread = 0; thread < 32 * blocks; thread++) {
    memcpy(in + thread * (uint32_t)count, arguments, (size_t)count * 8);
    in[(thread + 1) * (uint32_t)count - 1] = thread == 0;
  }
  rec_set set = type == REC_S32 ? REC_BITS : REC_RANDOM;
  rec_seed("bulk", (uint32_t)type);
  rec_fill(shared, sizeof shared, type, set);
  rec_fill(global, sizeof global, type, set);
  rec_run(&(rec_vector){.name = name,
                        .signature = signature,
                        .body = body,
                        .blocks = blocks,
                        .in = in,
                        .shared_bytes = SHARED,
                        .shared = shared,
                        .global_bytes = GLOBAL,
                        .global = global});
}

static void record_copies(void) {
  static const uint32_t sizes[] = {16, 48, 256, 512};
  for (int i = 0; i < 4; i++) {
    uint64_t to = 16 * (uint64_t)i, from = 512 - 16 * (uint64_t)i, size = sizes[i];
    record("bulk.load", "b(pgib)",
           INIT EXPECT
           "@$4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$1],[$2],$3,[bar]; " WAIT,
           1, (uint64_t[]){to, from, size, 0}, REC_S32);
    record("bulk.store", "(gpib)", "@$3 cp.async.bulk.global.shared::cta.bulk_group [$0],[$1],$2;" COMMIT, 1,
           (uint64_t[]){to, from, size, 0}, REC_S32);
  }
  for (uint64_t mask = 1; mask <= 3; mask++)
    record("bulk.load.multicast", "b(pgisb)",
           INIT EXPECT MEET
           "@$5 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
           "[$1],[$2],$3,[bar],$4; " WAIT,
           2, (uint64_t[]){32, 64, 128, mask, 0}, REC_S32);
  record("bulk.load.cta", "b(pgib)",
         INIT EXPECT "@$4 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [$1],[$2],$3,[bar]; " WAIT, 1,
         (uint64_t[]){48, 128, 80, 0}, REC_S32);
  record("bulk.store.read", "(gpib)",
         "@$3 cp.async.bulk.global.shared::cta.bulk_group [$0],[$1],$2; cp.async.bulk.commit_group; "
         "cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;",
         1, (uint64_t[]){96, 64, 128, 0}, REC_S32);
  record("bulk.prefetch", "(gib)", "@$2 cp.async.bulk.prefetch.L2.global [$0],$1;", 1, (uint64_t[]){64, 256, 0},
         REC_S32);
  // From one block to another: address in the own window, source, bytes, rank of the destination.
  for (uint64_t rank = 0; rank < 2; rank++)
    record("bulk.peer", "b(ppiib)",
           INIT EXPECT MEET
           "mapa.shared::cluster.u32 %t1,$1,$4; mov.u32 %t2,bar; mapa.shared::cluster.u32 %t2,%t2,$4; "
           "@$5 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%t1],[$2],$3,[%t2]; " WAIT,
           2, (uint64_t[]){256, 32, 96, rank, 0}, REC_S32);
}

// What arrives is joined with what is there; the mbarrier of the destination's block counts the bytes.
static void record_reductions_to_cluster(void) {
  static const char *const ops[] = {"add.u32", "add.s32", "add.u64", "min.u32", "min.s32", "max.u32",
                                    "max.s32", "inc.u32", "dec.u32", "and.b32", "or.b32",  "xor.b32"};
  char name[64], body[1024];
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    sprintf(name, "bulk.reduce.peer.%s", ops[i]);
    sprintf(
        body,
        "%smapa.shared::cluster.u32 %%t1,$1,$4; mov.u32 %%t2,bar; mapa.shared::cluster.u32 %%t2,%%t2,$4; "
        "@$5 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.%s [%%t1],[$2],$3,[%%t2]; "
        "%s",
        INIT EXPECT MEET, ops[i], WAIT);
    record(name, "b(ppiib)", body, 2, (uint64_t[]){256, 32, 96, (uint64_t)i % 2, 0}, REC_S32);
  }
}

static void record_reductions(void) {
  static const struct {
    const char *op;
    rec_type type;
  } ops[] = {{"add.u32", REC_S32},   {"add.s32", REC_S32},       {"add.u64", REC_S32},         {"add.f32", REC_F32},
             {"add.f64", REC_F64},   {"min.u32", REC_S32},       {"min.s32", REC_S32},         {"min.u64", REC_S32},
             {"min.s64", REC_S32},   {"max.u32", REC_S32},       {"max.s32", REC_S32},         {"max.u64", REC_S32},
             {"max.s64", REC_S32},   {"min.f16", REC_F16},       {"max.f16", REC_F16},         {"min.bf16", REC_BF16},
             {"max.bf16", REC_BF16}, {"add.noftz.f16", REC_F16}, {"add.noftz.bf16", REC_BF16}, {"inc.u32", REC_S32},
             {"dec.u32", REC_S32},   {"and.b32", REC_S32},       {"or.b32", REC_S32},          {"xor.b32", REC_S32},
             {"and.b64", REC_S32},   {"or.b64", REC_S32},        {"xor.b64", REC_S32}};
  char name[64], body[256];
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    sprintf(name, "bulk.reduce.%s", ops[i].op);
    sprintf(body, "@$3 cp.reduce.async.bulk.global.shared::cta.bulk_group.%s [$0],[$1],$2;" COMMIT, ops[i].op);
    record(name, "(gpib)", body, 1, (uint64_t[]){16, 64, 64, 0}, ops[i].type);
  }
}

// Every thread reads and changes a word of another block; ranks and sizes of the cluster.
static void record_clusters(void) {
  static const char *const registers[][2] = {
      {"cluster.ctarank", "cluster_ctarank"}, {"cluster.nctarank", "cluster_nctarank"},
      {"cluster.ctaid.x", "cluster_ctaid.x"}, {"cluster.nctaid.x", "cluster_nctaid.x"},
      {"clusterid.x", "clusterid.x"},         {"nclusterid.x", "nclusterid.x"},
      {"clusterid.y", "clusterid.y"},         {"nclusterid.y", "nclusterid.y"},
      {"clusterid.z", "clusterid.z"},         {"nclusterid.z", "nclusterid.z"},
      {"cluster.ctaid.y", "cluster_ctaid.y"}, {"cluster.nctaid.y", "cluster_nctaid.y"},
      {"cluster.ctaid.z", "cluster_ctaid.z"}, {"cluster.nctaid.z", "cluster_nctaid.z"}};
  char name[64], body[64];
  for (uint32_t blocks = 2; blocks <= 4; blocks *= 2) {
    for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++) {
      sprintf(name, "llvm.nvvm.read.ptx.sreg.%s", registers[i][0]);
      sprintf(body, "mov.u32 $0,%%%s;", registers[i][1]);
      rec_run(&(rec_vector){.name = name, .signature = "i()", .body = body, .blocks = blocks});
    }
    uint64_t in[128 * 3];
    uint8_t shared[4 * SHARED];
    rec_seed("cluster", blocks);
    rec_fill(shared, blocks * SHARED, REC_S32, REC_BITS);
    for (uint32_t thread = 0; thread < 32 * blocks; thread++) {
      in[3 * thread] = 4 * thread, in[3 * thread + 1] = rec_below(blocks),
             in[3 * thread + 2] = rec_random() & 0xffffffffu;
    }
    rec_vector v = {.signature = "i(pii)", .blocks = blocks, .in = in, .shared_bytes = SHARED, .shared = shared};
    v.name = "cluster.exchange",
    v.body = "mapa.shared::cluster.u32 %t1,$1,$2; ld.shared::cluster.b32 $0,[%t1]; st.shared::cluster.b32 [%t1],$3;";
    rec_run(&v);
    v.name = "cluster.add",
    v.body = "mapa.shared::cluster.u32 %t1,$1,$2; atom.relaxed.cluster.shared::cluster.add.u32 $0,[%t1],$3;";
    rec_run(&v);
    v.name = "cluster.rank", v.body = "mapa.shared::cluster.u32 %t1,$1,$2; getctarank.shared::cluster.u32 $0,%t1;";
    rec_run(&v);
  }
}

// What a letter of a script does to the barrier, its number for %u. Those with a result: t, s, p, y, r, w, S. Capitals
// take a generic address. States are numbered as they arise.
static const struct {
  char letter;
  const char *ptx;
} steps[] = {
    {'i', "mbarrier.init.shared::cta.b64 [bar],%u; "},
    {'a', "mbarrier.arrive.shared::cta.b64 state,[bar],%u; "},
    {'n', "mbarrier.arrive.noComplete.shared::cta.b64 state,[bar],%u; "},
    {'d', "mbarrier.arrive_drop.shared::cta.b64 state,[bar],%u; "},
    {'e', "mbarrier.arrive.expect_tx.shared::cta.b64 state,[bar],%u; "},
    {'x', "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar],%u; "},
    {'c', "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar],%u; "},
    {'t', "mbarrier.test_wait.parity.shared::cta.b64 %%p1,[bar],%u; selp.u32 $result,1,0,%%p1; "},
    {'s', "mbarrier.test_wait.shared::cta.b64 %%p1,[bar],state%u; selp.u32 $result,1,0,%%p1; "},
    {'p', "mbarrier.pending_count.b64 $result,state%u; "},
    {'v', "mbarrier.inval.shared::cta.b64 [bar]; "},
    {'k', "mbarrier.arrive.shared::cta.b64 state,[bar]; "},
    {'q', "mbarrier.arrive_drop.shared::cta.b64 state,[bar]; "},
    {'m', "mbarrier.arrive_drop.noComplete.shared::cta.b64 state,[bar],%u; "},
    {'w', "mbarrier.test_wait.shared::cta.b64 %%p1,[bar],state%u; selp.u32 $result,1,0,%%p1; "},
    {'y', "mbarrier.try_wait.shared::cta.b64 %%p1,[bar],state%u; selp.u32 $result,1,0,%%p1; "},
    {'r', "mbarrier.try_wait.parity.shared::cta.b64 %%p1,[bar],%u; selp.u32 $result,1,0,%%p1; "},
    {'I', "mbarrier.init.b64 [%%w1],%u; "},
    {'V', "mbarrier.inval.b64 [%%w1]; "},
    {'A', "mbarrier.arrive.b64 state,[%%w1]; "},
    {'N', "mbarrier.arrive.noComplete.b64 state,[%%w1],%u; "},
    {'D', "mbarrier.arrive_drop.b64 state,[%%w1]; "},
    {'M', "mbarrier.arrive_drop.noComplete.b64 state,[%%w1],%u; "},
    {'S', "mbarrier.test_wait.b64 %%p1,[%%w1],state%u; selp.u32 $result,1,0,%%p1; "},
};
static const char results_of[] = "tspywrS";

// try_wait is asked for complete phases only: a thread may execute a later arrival before its answer is there.
static const char *const scripts[] = {
    "i1 t0 t1 a1 t0 t1 a1 t0 t1",
    "i3 a1 p0 t0 a1 p1 t0 a1 p2 t0 t1",
    "i4 a2 p0 a1 p1 t0 a1 t0 a3 p3 t1 a1 t1 t0",
    "i2 a1 s0 a1 s0 s1 a2 s2",
    "i5 n3 p0 n1 p1 t0 a1 p2 t0",
    "i3 d1 p0 a2 p1 t0 a2 p2 t1 a1 p3 t1 t0",
    "i1 e64 t0 c32 t0 c32 t0 t1",
    "i1 x64 a1 t0 c64 t0 x16 a1 t1 c16 t1",
    "i2 e16 e16 p0 p1 t0 c16 t0 c16 t0 t1",
    "i1 e100000 c99999 t0 c1 t0",
    "i2 c16 a1 t0 x16 t0 a1 t0",
    "i1 x16 x16 c32 t0 a1 t0",
    "i1048575 a1048574 p0 t0 a1 p1 t0 t1",
    "i7 a1 a1 a1 a1 a1 a1 p0 p1 p2 p3 p4 p5 t0 a1 p6 t0",
    "i2 k1 w0 t0 k1 w0 w1 t0 v0 i1 t0 a1 t0",
    "i3 q1 p0 w0 k1 k1 w2 t0 p2 k1 p3 k1 p4 t1",
    "i4 m2 p0 w0 k1 p1 k1 w1 t0 k1 p3 k1 w4 t1",
    "i1 a1 y0 r0 a1 y1 r1",
    "i2 a1 a1 y0 y1 r0 a2 r1",
    "I3 A1 p0 S0 N1 p1 A1 S1 p2 t0 t1",
    "I2 D1 p0 S0 A1 S1 A1 p2 S2 t1 V1 I1 t0 A1 S3 t0",
    "I4 M2 p0 S0 N1 A1 p2 S2 t0 A1 a1 p4 t1 V1",
};

static void add_step(char *body, const char *word, uint32_t *results, uint32_t *states) {
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    if (steps[i].letter != word[0]) continue;
    char text[160];
    sprintf(text, steps[i].ptx, (unsigned)strtoul(word + 1, NULL, 10));
    char *at = strstr(text, "$result");
    char *state = strstr(text, "state,");
    if (at)
      sprintf(body + strlen(body), "%.*s$%u%s", (int)(at - text), text, (*results)++, at + 7);
    else if (state)
      sprintf(body + strlen(body), "%.*sstate%u%s", (int)(state - text), text, (*states)++, state + 5);
    else
      strcat(body, text);
  }
}

static void record_script(const char *script) {
  char body[4096] = ".reg .b64 state<16>; mov.u64 %w1,bar; cvta.shared.u64 %w1,%w1; ", words[128], signature[40] = "",
       setting[160];
  uint32_t results = 0, states = 0;
  strcpy(words, script);
  for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
    // The state that is asked for need not exist yet in a script that is wrong: PTX then refuses it.
    if (strchr(results_of, word[0])) strcat(signature, "i");
    add_step(body, word, &results, &states);
  }
  strcat(signature, "()");
  snprintf(setting, sizeof setting, "script %s", script);
  rec_run(
      &(rec_vector){.name = "mbarrier.script", .signature = signature, .body = body, .setting = setting, .threads = 1});
}

void rec_all_bulk(void) {
  rec_file("cluster");
  record_clusters();
  for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) record_script(scripts[i]);
  rec_file("bulk");
  record_copies();
  record_reductions();
  record_reductions_to_cluster();
}
