// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Single accesses: ldmatrix and stmatrix, cp.async, predicated loads and stores, red and atom.
#include <stdio.h>
#include <string.h>

#include "record.h"

enum { SHARED = 2048, GLOBAL = 2048 };

// A permutation of 0 … count - 1.
static void permute(uint32_t *order, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  for (uint32_t i = count; i > 1; i--) {
    uint32_t j = rec_below(i), keep = order[i - 1];
    order[i - 1] = order[j];
    order[j] = keep;
  }
}

static void record_matrix(bool load, int count, bool transposed) {
  char name[96], signature[16], body[128], registers[32] = "";
  uint8_t shared[SHARED];
  for (int i = 0; i < count; i++) sprintf(registers + strlen(registers), "%s$%d", i ? "," : "", load ? i : i + 1);
  const char *op = load ? "ldmatrix" : "stmatrix", *trans = transposed ? ".trans" : "";
  sprintf(name, "llvm.nvvm.%s.sync.aligned.m8n8.x%d%s.b16.p3", op, count, trans);
  sprintf(signature, load ? "%.*s(p)" : "(p%.*s)", count, "iiii");
  sprintf(body, "%s.sync.aligned.m8n8.x%d%s.shared.b16 ", op, count, trans);
  if (load)
    sprintf(body + strlen(body), "{%s},[$%d];", registers, count);
  else
    sprintf(body + strlen(body), "[$0],{%s};", registers);
  for (uint32_t repeat = 0; repeat < 2; repeat++) {
    rec_seed(name, repeat);
    uint64_t in[32 * 5];
    uint32_t order[SHARED / 16], at = 0;
    permute(order, SHARED / 16);
    rec_fill(shared, SHARED, REC_S32, REC_BITS);
    for (uint32_t lane = 0; lane < 32; lane++) {
      // Rows of a load may coincide, those of a store may not.
      in[at++] = 16 * (load && repeat ? rec_below(SHARED / 16) : order[lane]);
      for (int i = 0; !load && i < count; i++) in[at++] = rec_random() & 0xffffffffu;
    }
    rec_run(&(rec_vector){
        .name = name, .signature = signature, .body = body, .in = in, .shared_bytes = SHARED, .shared = shared});
  }
}

static void record_cp_async(const char *cache, int bytes, bool with_size, bool predicated) {
  char name[64], signature[8], body[128];
  uint8_t shared[SHARED], global[GLOBAL];
  if (predicated)
    sprintf(name, "tl.cp.async.%s.%d%s.pred", cache, bytes, with_size ? ".zfill" : "");
  else
    sprintf(name, "llvm.nvvm.cp.async.%s.shared.global.%d%s", cache, bytes, with_size ? ".s" : "");
  sprintf(signature, "(pg%s%s)", with_size ? "i" : "", predicated ? "b" : "");
  sprintf(body, "%scp.async.%s.shared.global [$0],[$1],%d%s; %s",
          !predicated ? ""
          : with_size ? "@$3 "
                      : "@$2 ",
          cache, bytes, with_size ? ",$2" : "",
          predicated ? "cp.async.commit_group; cp.async.wait_group 0;" : "cp.async.wait_all;");
  for (uint32_t repeat = 0; repeat < 2; repeat++) {
    rec_seed(name, repeat);
    uint64_t in[32 * 4];
    uint32_t order[SHARED / 4], at = 0;
    permute(order, SHARED / (uint32_t)bytes);
    rec_fill(shared, SHARED, REC_S32, REC_BITS);
    rec_fill(global, GLOBAL, REC_S32, REC_BITS);
    for (uint32_t lane = 0; lane < 32; lane++) {
      in[at++] = (uint32_t)bytes * order[lane];
      in[at++] = (uint32_t)bytes * rec_below(GLOBAL / (uint32_t)bytes);
      if (with_size) in[at++] = (lane + repeat * 7) % (uint32_t)(bytes + 1);
      if (predicated) in[at++] = rec_below(3) != 0;
    }
    rec_run(&(rec_vector){.name = name,
                          .signature = signature,
                          .body = body,
                          .setting = predicated ? "then=cp.async.wait.group" : "then=cp.async.wait.all",
                          .in = in,
                          .shared_bytes = SHARED,
                          .global_bytes = GLOBAL,
                          .shared = shared,
                          .global = global});
  }
}

typedef struct access {
  const char *name, *signature, *body;
  uint32_t bytes;  // of the whole access, its alignment
  rec_type type;   // of what is in memory and in the operands
} access;

#define LOADS(NAME, PTX)                                                                                               \
  {"tl.ld.global." NAME ".b8", "s(gb)", "mov.b16 $0,0; @$2 ld.global" PTX ".u8 $0,[$1];", 1, REC_S8},                  \
      {"tl.ld.global." NAME ".b16", "s(gb)", "mov.b16 $0,0; @$2 ld.global" PTX ".b16 $0,[$1];", 2, REC_S8},            \
      {"tl.ld.global." NAME ".b32", "i(gb)", "mov.b32 $0,0; @$2 ld.global" PTX ".b32 $0,[$1];", 4, REC_S32},           \
      {"tl.ld.global." NAME ".v2.b32", "ii(gb)",                                                                       \
       "mov.b32 $0,0; mov.b32 $1,0; @$3 ld.global" PTX ".v2.b32 {$0,$1},[$2];", 8, REC_S32},                           \
  {                                                                                                                    \
    "tl.ld.global." NAME ".v4.b32", "iiii(gb)",                                                                        \
        "mov.b32 $0,0; mov.b32 $1,0; mov.b32 $2,0; mov.b32 $3,0; @$5 ld.global" PTX ".v4.b32 {$0,$1,$2,$3},[$4];", 16, \
        REC_S32                                                                                                        \
  }
#define STORES(NAME, PTX)                                                                                      \
  {"tl.st.global." NAME ".b8", "(gsb)", "@$2 st.global" PTX ".u8 [$0],$1;", 1, REC_S8},                        \
      {"tl.st.global." NAME ".b16", "(gsb)", "@$2 st.global" PTX ".b16 [$0],$1;", 2, REC_S8},                  \
      {"tl.st.global." NAME ".b32", "(gib)", "@$2 st.global" PTX ".b32 [$0],$1;", 4, REC_S32},                 \
      {"tl.st.global." NAME ".v2.b32", "(giib)", "@$3 st.global" PTX ".v2.b32 [$0],{$1,$2};", 8, REC_S32}, {   \
    "tl.st.global." NAME ".v4.b32", "(giiiib)", "@$5 st.global" PTX ".v4.b32 [$0],{$1,$2,$3,$4};", 16, REC_S32 \
  }
// atomicrmw and cmpxchg of LLVM, which PTX knows as atom.
#define ATOM(OP, LETTER, PTX, BYTES, TYPE) \
  { "atomicrmw " OP, LETTER "(g" LETTER ")", "atom.relaxed.gpu.global." PTX " $0,[$1],$2;", BYTES, TYPE }

static const access accesses[] = {
    LOADS("pred", ""),
    LOADS("nc.pred", ".nc"),
    LOADS("nc.first.pred", ".nc.L1::no_allocate"),
    LOADS("nc.last.pred", ".nc.L1::evict_last"),
    STORES("pred", ""),
    STORES("first.pred", ".L1::evict_first"),
    {"tl.red.global.add.pred.f32", "(gfb)", "@$2 red.relaxed.gpu.global.add.f32 [$0],$1;", 4, REC_F32},
    {"tl.red.global.add.pred.f16x2", "(gib)", "@$2 red.relaxed.gpu.global.add.noftz.f16x2 [$0],$1;", 4, REC_F16},
    {"tl.red.global.add.pred.bf16x2", "(gib)", "@$2 red.relaxed.gpu.global.add.noftz.bf16x2 [$0],$1;", 4, REC_BF16},
    {"tl.red.global.add.pred.v2.f16x2", "(giib)", "@$3 red.relaxed.gpu.global.add.noftz.v2.f16x2 [$0],{$1,$2};", 8,
     REC_F16},
    {"tl.red.global.add.pred.v4.f16x2", "(giiiib)", "@$5 red.relaxed.gpu.global.add.noftz.v4.f16x2 [$0],{$1,$2,$3,$4};",
     16, REC_F16},
    {"tl.red.global.add.pred.v2.bf16x2", "(giib)", "@$3 red.relaxed.gpu.global.add.noftz.v2.bf16x2 [$0],{$1,$2};", 8,
     REC_BF16},
    {"tl.red.global.add.pred.v4.bf16x2", "(giiiib)",
     "@$5 red.relaxed.gpu.global.add.noftz.v4.bf16x2 [$0],{$1,$2,$3,$4};", 16, REC_BF16},
    {"tl.red.global.add.pred.v2.f32", "(gffb)", "@$3 red.relaxed.gpu.global.add.v2.f32 [$0],{$1,$2};", 8, REC_F32},
    {"tl.red.global.add.pred.v4.f32", "(gffffb)", "@$5 red.relaxed.gpu.global.add.v4.f32 [$0],{$1,$2,$3,$4};", 16,
     REC_F32},
    ATOM("add", "i", "add.u32", 4, REC_S32),
    ATOM("add", "l", "add.u64", 8, REC_S32),
    ATOM("and", "i", "and.b32", 4, REC_S32),
    ATOM("and", "l", "and.b64", 8, REC_S32),
    ATOM("or", "i", "or.b32", 4, REC_S32),
    ATOM("or", "l", "or.b64", 8, REC_S32),
    ATOM("xor", "i", "xor.b32", 4, REC_S32),
    ATOM("xor", "l", "xor.b64", 8, REC_S32),
    ATOM("xchg", "i", "exch.b32", 4, REC_S32),
    ATOM("xchg", "l", "exch.b64", 8, REC_S32),
    ATOM("min", "i", "min.s32", 4, REC_S32),
    ATOM("min", "l", "min.s64", 8, REC_S32),
    ATOM("max", "i", "max.s32", 4, REC_S32),
    ATOM("max", "l", "max.s64", 8, REC_S32),
    ATOM("umin", "i", "min.u32", 4, REC_S32),
    ATOM("umin", "l", "min.u64", 8, REC_S32),
    ATOM("umax", "i", "max.u32", 4, REC_S32),
    ATOM("umax", "l", "max.u64", 8, REC_S32),
    ATOM("uinc_wrap", "i", "inc.u32", 4, REC_S32),
    ATOM("udec_wrap", "i", "dec.u32", 4, REC_S32),
    ATOM("fadd", "f", "add.f32", 4, REC_F32),
    ATOM("fadd", "d", "add.f64", 8, REC_F64),
    ATOM("fadd", "e", "add.noftz.f16", 2, REC_F16),
    ATOM("fadd", "y", "add.noftz.bf16", 2, REC_BF16),
    ATOM("fadd", "E", "add.noftz.f16x2", 4, REC_F16),
    ATOM("fadd", "Y", "add.noftz.bf16x2", 4, REC_BF16),
    {"cmpxchg", "i(gii)", "atom.relaxed.gpu.global.cas.b32 $0,[$1],$2,$3;", 4, REC_S32},
    {"cmpxchg", "l(gll)", "atom.relaxed.gpu.global.cas.b64 $0,[$1],$2,$3;", 8, REC_S32},
};

static uint64_t operand(char letter, rec_type type, rec_set set) {
  uint64_t low = rec_word(type, set);
  if (letter == 'l') return low | rec_word(type, set) << 32;
  return rec_letter_bytes(letter) == 2 ? low & 0xffff : low;
}

// Every lane has an address of its own: the order of lanes makes no difference.
static void record_access(const access *a, rec_set set) {
  uint8_t global[GLOBAL];
  char setting[32];
  uint64_t in[32 * 8];
  uint32_t order[GLOBAL], at = 0;
  int results = rec_results(a->signature), arguments = rec_arguments(a->signature);
  sprintf(setting, "data=%s", rec_set_names[set]);
  rec_seed(a->name, (uint32_t)set * 8 + (uint32_t)a->signature[0]);
  permute(order, 512 / a->bytes);
  rec_fill(global, GLOBAL, a->type, set);
  for (uint32_t lane = 0; lane < 32; lane++) {
    uint32_t offset = a->bytes * order[lane];
    for (int i = 0; i < arguments; i++) {
      char letter = rec_letter(a->signature, results + i);
      in[at++] = letter == 'g' ? offset : letter == 'b' ? rec_below(4) != 0 : operand(letter, a->type, set);
    }
    // Half of the compared values are those in memory.
    if (!strcmp(a->name, "cmpxchg") && lane % 2) in[at - 2] = 0, memcpy(&in[at - 2], global + offset, a->bytes);
  }
  rec_run(&(rec_vector){.name = a->name,
                        .signature = a->signature,
                        .body = a->body,
                        .setting = setting,
                        .in = in,
                        .global_bytes = 512,
                        .global = global});
}

void rec_all_memory(void) {
  rec_file("memory");
  for (int count = 1; count <= 4; count *= 2)
    for (int form = 0; form < 4; form++) record_matrix(form & 1, count, form & 2);
  for (int form = 0; form < 4; form++) {
    for (int bytes = 4; bytes <= 16; bytes *= 2) record_cp_async("ca", bytes, form & 1, form & 2);
    record_cp_async("cg", 16, form & 1, form & 2);
  }
  for (size_t i = 0; i < sizeof accesses / sizeof accesses[0]; i++) {
    record_access(&accesses[i], REC_RANDOM);
    record_access(&accesses[i], REC_SPECIAL);
  }
}
