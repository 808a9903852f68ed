// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exchanges within a warp: shfl, vote, match, redux, elect. Lanes of one warp may use different member masks: a group
// of lanes each, so that masks other than the full one are covered.
#include <stdio.h>
#include <string.h>

#include "record.h"

// The members of each lane's group.
typedef enum grouping { WHOLE, HALVES, QUARTERS, PARITY, SCATTERED, NUM_GROUPINGS } grouping;
static const char *const grouping_names[] = {"whole", "halves", "quarters", "parity", "scattered"};

static uint32_t group_mask(grouping how, uint32_t lane) {
  switch (how) {
    case HALVES:
      return 0xffffu << (lane & 16);
    case QUARTERS:
      return 0xffu << (lane & 24);
    case PARITY:
      return lane & 1 ? 0xaaaaaaaau : 0x55555555u;
    case SCATTERED:
      return 0x9c3b1e57u >> lane & 1 ? 0x9c3b1e57u : ~0x9c3b1e57u;
    default:
      return ~0u;
  }
}

// Arguments: mask, value, b, c. Segments within groups, so that no lane reads one outside its mask.
static void record_shuffle(const char *mode, bool predicate, bool is_float, grouping how, uint32_t variant) {
  char name[64], body[128], setting[64];
  static const char *const signatures[] = {"i(iiii)", "ib(iiii)", "f(ifii)", "fb(ifii)"};
  snprintf(name, sizeof name, "llvm.nvvm.shfl.sync.%s.%s32%s", mode, is_float ? "f" : "i", predicate ? "p" : "");
  if (predicate)
    snprintf(body, sizeof body, "shfl.sync.%s.b32 $0|$1,$3,$4,$5,$2;", mode);
  else
    snprintf(body, sizeof body, "shfl.sync.%s.b32 $0,$2,$3,$4,$1;", mode);
  snprintf(setting, sizeof setting, "groups=%s variant=%u", grouping_names[how], variant);
  rec_seed(name, how * 64 + variant);
  uint64_t in[32 * 4];
  uint32_t segment = how == HALVES ? 0x10 : how == QUARTERS ? 0x18 : 0, same_b = rec_below(32);
  uint32_t usual = strcmp(mode, "up") ? 31 : 0;
  for (uint32_t lane = 0; lane < 32; lane++) {
    uint64_t *slot = in + 4 * lane;
    slot[0] = group_mask(how, lane);
    slot[1] = rec_random() & 0xffffffffu;
    slot[2] = variant == 0 ? same_b : variant == 1 ? rec_below(32) : (uint32_t)rec_random();
    if (!strcmp(mode, "bfly")) slot[2] &= 31 & ~segment;  // it may reach lanes below the segment
    slot[3] = usual | segment << 8;
    if (variant == 3) slot[3] = rec_below(32) | (segment | (rec_below(32) & 0x1c)) << 8;
  }
  rec_run(&(rec_vector){
      .name = name, .signature = signatures[2 * is_float + predicate], .body = body, .setting = setting, .in = in});
}

static void record_masked(const char *name, const char *signature, const char *body, bool mask_first, uint32_t kinds) {
  for (uint32_t how = 0; how < NUM_GROUPINGS; how++) {
    for (uint32_t variant = 0; variant < 4; variant++) {
      char setting[64];
      snprintf(setting, sizeof setting, "groups=%s variant=%u", grouping_names[how], variant);
      rec_seed(name, how * 64 + variant);
      uint64_t in[32 * 2], common = rec_random();
      for (uint32_t lane = 0; lane < 32; lane++) {
        // Values that repeat, often all equal, sometimes the ends of the range.
        uint64_t value = variant == 0 ? common : variant == 1 ? rec_below(4) * 0x1000000000001u : rec_random();
        if (variant == 3) value = rec_value(REC_S32, REC_SPECIAL);
        if (kinds == 1) value = variant == 0 ? common & 1 : variant == 1 ? rec_below(8) != 0 : rec_below(2);
        if (kinds == 32) value &= 0xffffffffu;
        in[2 * lane + (mask_first ? 0 : 1)] = group_mask((grouping)how, lane);
        in[2 * lane + (mask_first ? 1 : 0)] = value;
      }
      rec_run(&(rec_vector){.name = name, .signature = signature, .body = body, .setting = setting, .in = in});
    }
  }
}

static void record_elect(void) {
  for (uint32_t how = 0; how < NUM_GROUPINGS; how++) {
    char setting[64];
    snprintf(setting, sizeof setting, "groups=%s", grouping_names[how]);
    uint64_t in[32];
    for (uint32_t lane = 0; lane < 32; lane++) in[lane] = group_mask((grouping)how, lane);
    rec_run(&(rec_vector){.name = "llvm.nvvm.elect.sync",
                          .signature = "ib(i)",
                          .body = "elect.sync $0|$1,$2;",
                          .setting = setting,
                          .in = in});
  }
}

static void record_votes(void) {
  static const char *const votes[] = {"all", "any", "uni"};
  char name[64], body[64];
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "llvm.nvvm.vote.%s.sync", votes[i]);
    snprintf(body, sizeof body, "vote.sync.%s.pred $0,$2,$1;", votes[i]);
    record_masked(name, "b(ib)", body, true, 1);
  }
  record_masked("llvm.nvvm.vote.ballot.sync", "i(ib)", "vote.sync.ballot.b32 $0,$2,$1;", true, 1);
  record_masked("llvm.nvvm.match.any.sync.i32", "i(ii)", "match.any.sync.b32 $0,$2,$1;", true, 32);
  record_masked("llvm.nvvm.match.any.sync.i64", "i(il)", "match.any.sync.b64 $0,$2,$1;", true, 64);
  record_masked("llvm.nvvm.match.all.sync.i32p", "ib(ii)", "match.all.sync.b32 $0|$1,$3,$2;", true, 32);
  record_masked("llvm.nvvm.match.all.sync.i64p", "ib(il)", "match.all.sync.b64 $0|$1,$3,$2;", true, 64);
}

static void record_redux(void) {
  static const char *const kinds[][2] = {{"add", "add.s32"},  {"min", "min.s32"},  {"max", "max.s32"},
                                         {"umin", "min.u32"}, {"umax", "max.u32"}, {"and", "and.b32"},
                                         {"or", "or.b32"},    {"xor", "xor.b32"}};
  char name[64], body[64];
  for (int i = 0; i < 8; i++) {
    snprintf(name, sizeof name, "llvm.nvvm.redux.sync.%s", kinds[i][0]);
    snprintf(body, sizeof body, "redux.sync.%s $0,$1,$2;", kinds[i][1]);
    record_masked(name, "i(ii)", body, false, 32);
  }
}

void rec_all_warp(void) {
  static const char *const modes[] = {"up", "down", "bfly", "idx"};
  rec_file("warp");
  for (int mode = 0; mode < 4; mode++)
    for (int predicate = 0; predicate < 2; predicate++)
      for (uint32_t how = WHOLE; how <= QUARTERS; how++)
        for (uint32_t variant = 0; variant < 4; variant++)
          record_shuffle(modes[mode], predicate, false, (grouping)how, variant);
  for (int mode = 0; mode < 4; mode++)
    for (int predicate = 0; predicate < 2; predicate++) record_shuffle(modes[mode], predicate, true, HALVES, 1);
  record_votes();
  record_redux();
  record_elect();
}
