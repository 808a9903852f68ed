// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What threads of a block or of a cluster do together: barriers that reduce, special registers, arrivals at mbarriers
// for copies and from other blocks.
#include <stdio.h>
#include <string.h>

#include "record.h"

enum { WARPS = 2, THREADS = 32 * WARPS };
#define WAIT                                                                                                          \
  "mov.u32 %t0,0; again: mbarrier.try_wait.parity.shared::cta.b64 %p1,[bar],0; @%p1 bra arrived; add.u32 %t0,%t0,1; " \
  "setp.lt.u32 %p2,%t0,1000; @%p2 bra again; arrived: mov.pred $0,%p1;"
#define MEET "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; "

// The predicates of a reduction: of nobody, of all, of every third thread, of one.
static bool predicate(uint32_t kind, uint32_t thread) {
  return kind == 1 || (kind == 2 && thread % 3 == 0) || (kind == 3 && thread == 37);
}

// With a count, each warp has a barrier of its own, or all have the one.
static void record_reduction(const char *op, bool aligned, bool counted, uint32_t kind) {
  bool is_count = !strcmp(op, "popc");
  char name[96], signature[8], body[128], setting[64];
  sprintf(name, "llvm.nvvm.barrier.cta.red.%s%s.%s", op, aligned ? ".aligned" : "", counted ? "count" : "all");
  sprintf(signature, "%c(%sb)", is_count ? 'i' : 'b', counted ? "ii" : "i");
  sprintf(body, "barrier.cta.red.%s%s.%s $0,$1,$2%s;", op, aligned ? ".aligned" : "", is_count ? "u32" : "pred",
          counted ? ",$3" : "");
  sprintf(setting, "predicates=%u", kind);
  uint64_t in[THREADS * 3];
  uint32_t at = 0;
  for (uint32_t thread = 0; thread < THREADS; thread++) {
    bool alone = counted && kind >= 2;
    in[at++] = alone ? 1 + thread / 32 : 5;
    if (counted) in[at++] = alone ? 32 : THREADS;
    in[at++] = predicate(kind, thread);
  }
  rec_run(&(rec_vector){
      .name = name, .signature = signature, .body = body, .setting = setting, .threads = THREADS, .in = in});
}

static void record_reductions(void) {
  static const char *const ops[] = {"and", "or", "popc"};
  for (int op = 0; op < 3; op++)
    for (int form = 0; form < 4; form++)
      for (uint32_t kind = 0; kind < 4; kind++) record_reduction(ops[op], form & 1, form & 2, kind);
}

// A word from each thread to the one 32 places further. With an arrival the first warp does not wait, and gets its own.
static void record_barriers(void) {
  static const struct {
    const char *form, *ptx;
  } forms[] = {
      {"sync.all", "barrier.cta.sync 3; "},
      {"sync.count", "barrier.cta.sync 3,64; "},
      {"sync.aligned.count", "barrier.cta.sync.aligned 3,64; "},
      {"arrive.count", "@%p1 barrier.cta.arrive 3,64; @!%p1 barrier.cta.sync 3,64; "},
      {"arrive.aligned.count", "@%p1 barrier.cta.arrive.aligned 3,64; @!%p1 barrier.cta.sync.aligned 3,64; "},
  };
  char name[64], body[512];
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    bool arrives = !strncmp(forms[i].form, "arrive", 6);
    sprintf(name, "barrier.%s", forms[i].form);
    sprintf(body, "st.shared.b32 [$1],$3; mov.u32 %%t0,%%tid.x; setp.lt.u32 %%p1,%%t0,32; %s%sld.shared.b32 $0,[%s];",
            forms[i].ptx, arrives ? "selp.u32 %t1,$1,$2,%p1; " : "", arrives ? "%t1" : "$2");
    uint64_t in[THREADS * 3];
    uint8_t shared[THREADS * 4] = {0};
    rec_seed(name, 0);
    for (uint32_t thread = 0; thread < THREADS; thread++) {
      in[3 * thread] = 4 * thread;
      in[3 * thread + 1] = 4 * (thread ^ 32);
      in[3 * thread + 2] = rec_below(1u << 31);
    }
    rec_run(&(rec_vector){.name = name,
                          .signature = "i(ppi)",
                          .body = body,
                          .threads = THREADS,
                          .in = in,
                          .shared_bytes = sizeof shared,
                          .shared = shared});
  }
}

// Addresses of global memory, of shared memory of the own and of the other block, of local memory.
static void record_windows(void) {
  static const char *const spaces[] = {"const", "global", "local", "shared", "shared.cluster"};
  static const char *const ptx[] = {"const", "global", "local", "shared::cta", "shared::cluster"};
  uint64_t in[64];
  char name[64], body[640];
  for (uint32_t thread = 0; thread < 64; thread++) in[thread] = thread % 4;
  for (int i = 0; i < 5; i++) {
    sprintf(name, "isspacep.%s", spaces[i]);
    sprintf(body,
            ".local .align 8 .b8 own[8]; mov.u64 %%w1,%%global; cvta.global.u64 %%w1,%%w1; setp.eq.u32 %%p1,$1,1; "
            "mov.u64 %%w2,bar; cvta.shared.u64 %%w2,%%w2; selp.b64 %%w1,%%w2,%%w1,%%p1; setp.eq.u32 %%p1,$1,2; "
            "mov.u32 %%t1,%%cluster_ctarank; xor.b32 %%t1,%%t1,1; mapa.u64 %%w3,%%w2,%%t1; "
            "selp.b64 %%w1,%%w3,%%w1,%%p1; setp.eq.u32 %%p1,$1,3; mov.u64 %%w4,own; cvta.local.u64 %%w4,%%w4; "
            "selp.b64 %%w1,%%w4,%%w1,%%p1; isspacep.%s $0,%%w1;",
            ptx[i]);
    rec_run(&(rec_vector){.name = name, .signature = "b(i)", .body = body, .blocks = 2, .in = in});
  }
  rec_run(&(rec_vector){.name = "cluster.rank.generic",
                        .signature = "i(i)",
                        .body = "mov.u64 %w2,bar; cvta.shared.u64 %w2,%w2; and.b32 %t1,$1,1; mapa.u64 %w3,%w2,%t1; "
                                "getctarank.u64 $0,%w3;",
                        .blocks = 2,
                        .in = in});
  for (uint32_t blocks = 1; blocks <= 2; blocks++)
    rec_run(&(rec_vector){.name = "llvm.nvvm.is_explicit_cluster",
                          .signature = "b()",
                          .body = "mov.pred $0,%is_explicit_cluster;",
                          .blocks = blocks});
}

// Hints about addresses of global memory: nothing changes.
static void record_hints(void) {
  static const char *const hints[][2] = {
      {"llvm.nvvm.prefetch.global.L1", "prefetch.global.L1 [$0];"},
      {"llvm.nvvm.prefetch.global.L2", "prefetch.global.L2 [$0];"},
      {"llvm.nvvm.prefetch.global.L2.evict.last", "prefetch.global.L2::evict_last [$0];"},
      {"llvm.nvvm.prefetch.global.L2.evict.normal", "prefetch.global.L2::evict_normal [$0];"}};
  uint8_t global[1024];
  uint64_t in[32];
  rec_seed("hints", 0);
  rec_fill(global, sizeof global, REC_S32, REC_BITS);
  for (uint32_t lane = 0; lane < 32; lane++) in[lane] = 4 * rec_below(256);
  for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
    rec_run(&(rec_vector){.name = hints[i][0],
                          .signature = "(g)",
                          .body = hints[i][1],
                          .in = in,
                          .global_bytes = sizeof global,
                          .global = global});
}

// Those whose value follows from the launch alone.
static void record_registers(void) {
  static const char *const registers[] = {"tid.x",       "tid.y",       "tid.z",      "ntid.x",      "ntid.y",
                                          "ntid.z",      "ctaid.x",     "ctaid.y",    "ctaid.z",     "nctaid.x",
                                          "nctaid.y",    "nctaid.z",    "laneid",     "lanemask.eq", "lanemask.lt",
                                          "lanemask.le", "lanemask.gt", "lanemask.ge"};
  char name[64], body[64];
  for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++) {
    sprintf(name, "llvm.nvvm.read.ptx.sreg.%s", registers[i]);
    sprintf(body, "mov.u32 $0,%%%s;", registers[i]);
    if (!strncmp(registers[i], "lanemask", 8)) *strrchr(body, '.') = '_';
    rec_run(&(rec_vector){.name = name, .signature = "i()", .body = body, .threads = THREADS, .blocks = 2});
  }
}

// Copies of 16 bytes a lane that an mbarrier is told of. Those without noinc count one arrival more and take it back.
static void record_copies(bool noinc, bool shared_form) {
  enum { SHARED = 512, GLOBAL = 1024 };
  char name[64], body[768];
  uint8_t shared[SHARED], global[GLOBAL];
  uint64_t in[32 * 2];
  sprintf(name, "cp.async.mbarrier%s%s", noinc ? ".noinc" : "", shared_form ? ".shared" : "");
  sprintf(body,
          "@%%first mbarrier.init.shared::cta.b64 [bar],32; bar.sync 0; cp.async.ca.shared.global [$1],[$2],16; "
          "mov.u32 %%t1,bar; mov.u64 %%w1,bar; cvta.shared.u64 %%w1,%%w1; cp.async.mbarrier.arrive%s%s.b64 [%s]; %s%s",
          noinc ? ".noinc" : "", shared_form ? ".shared::cta" : "", shared_form ? "%t1" : "%w1",
          noinc ? "" : "mbarrier.arrive.shared::cta.b64 _,[bar]; ", WAIT);
  rec_seed(name, 0);
  rec_fill(shared, SHARED, REC_S32, REC_BITS);
  rec_fill(global, GLOBAL, REC_S32, REC_BITS);
  for (uint32_t lane = 0; lane < 32; lane++) in[2 * lane] = 16 * lane, in[2 * lane + 1] = 16 * rec_below(GLOBAL / 16);
  rec_run(&(rec_vector){.name = name,
                        .signature = "b(pg)",
                        .body = body,
                        .in = in,
                        .shared_bytes = SHARED,
                        .shared = shared,
                        .global_bytes = GLOBAL,
                        .global = global});
}

// Every thread arrives at the mbarrier of the other block of its cluster, all wait for their own.
static void record_remote_arrivals(void) {
  static const struct {
    const char *form, *ptx;
  } forms[] = {
      {"arrive", "mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%t1],1; "},
      {"arrive.relaxed", "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _,[%t1],1; "},
      {"arrive.expect.tx",
       "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _,[%t1],16; "
       "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%t1],16; "},
  };
  char name[64], body[768];
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    sprintf(name, "mbarrier.remote.%s", forms[i].form);
    sprintf(body,
            "@%%first mbarrier.init.shared::cta.b64 [bar],32; @%%first fence.mbarrier_init.release.cluster; " MEET
            "mov.u32 %%t1,bar; mapa.shared::cluster.u32 %%t1,%%t1,$1; %s%s",
            forms[i].ptx,
            "mov.u32 %t0,0; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1,[bar],0; "
            "@%p1 bra arrived; add.u32 %t0,%t0,1; setp.lt.u32 %p2,%t0,1000; @%p2 bra again; arrived: mov.pred $0,%p1;");
    uint64_t in[64];
    for (uint32_t thread = 0; thread < 64; thread++) in[thread] = thread < 32;
    rec_run(&(rec_vector){.name = name, .signature = "b(i)", .body = body, .blocks = 2, .in = in});
  }
}

// A word to the other block, one of the barriers of clusters, and what the other one has left.
static void record_meetings(void) {
  static const struct {
    const char *form, *ptx;
  } forms[] = {
      {"aligned", "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; "},
      {"alone", "barrier.cluster.arrive.release; barrier.cluster.wait.acquire; "},
      {"relaxed",
       "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned; "
       "barrier.cluster.wait.acquire.aligned; "},
      {"relaxed.alone", "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire; "},
  };
  char name[64], body[512];
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    sprintf(name, "cluster.meet.%s", forms[i].form);
    sprintf(body, "mapa.shared::cluster.u32 %%t1,$1,$2; st.shared::cluster.b32 [%%t1],$3; %sld.shared.b32 $0,[$1];",
            forms[i].ptx);
    uint64_t in[64 * 3];
    uint8_t shared[2 * 256] = {0};
    rec_seed(name, 0);
    for (uint32_t thread = 0; thread < 64; thread++)
      in[3 * thread] = 4 * (thread % 32), in[3 * thread + 1] = thread < 32, in[3 * thread + 2] = rec_below(1u << 31);
    rec_run(&(rec_vector){.name = name,
                          .signature = "i(pii)",
                          .body = body,
                          .blocks = 2,
                          .in = in,
                          .shared_bytes = 256,
                          .shared = shared});
  }
}

void rec_all_block(void) {
  rec_file("block");
  record_reductions();
  record_barriers();
  record_registers();
  record_windows();
  record_hints();
  for (int form = 0; form < 4; form++) record_copies(form & 1, form & 2);
  record_remote_arrivals();
  record_meetings();
}
