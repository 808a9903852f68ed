// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exchanges within a warp: shfl, vote, redux, elect, match.
#include <math.h>
#include <string.h>

#include "emulator/machine/args.h"
#include "emulator/ops/ops.h"

typedef struct shuffle_args {
  uint32_t mask, value, b, c;
} shuffle_args;

typedef struct shuffle_result {
  uint32_t value;
  uint8_t in_range;  // only in the forms with a predicate
} shuffle_result;

// PTX ISA, shfl.sync: c packs the clamp value (bits 0 to 4) and the segment mask (bits 8 to 12).
static uint32_t shuffle_source(tl_emu_shuffle mode, uint32_t lane, uint32_t b, uint32_t c, bool *in_range) {
  uint32_t clamp = c & 31, segment = c >> 8 & 31;
  uint32_t max_lane = (lane & segment) | (clamp & ~segment), min_lane = lane & segment;
  int32_t source = 0;
  switch (mode) {
    case TL_EMU_SHUFFLE_UP:
      source = (int32_t)lane - (int32_t)(b & 31);
      *in_range = source >= (int32_t)max_lane;
      break;
    case TL_EMU_SHUFFLE_DOWN:
      source = (int32_t)(lane + (b & 31));
      *in_range = source <= (int32_t)max_lane;
      break;
    case TL_EMU_SHUFFLE_BFLY:
      source = (int32_t)(lane ^ (b & 31));
      *in_range = source <= (int32_t)max_lane;
      break;
    case TL_EMU_SHUFFLE_IDX:
      source = (int32_t)(min_lane | (b & 31 & ~segment));
      *in_range = source <= (int32_t)max_lane;
      break;
    case TL_EMU_SHUFFLE_PREDICATE:  // no mode
      *in_range = false;
      break;
  }
  return *in_range ? (uint32_t)source : lane;
}

static bool shuffle_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  uint32_t values[TL_EMU_WARP], param = (uint32_t)meeting->site->binding->param;
  bool gives_predicate = param & TL_EMU_SHUFFLE_PREDICATE;
  tl_emu_shuffle mode = (tl_emu_shuffle)(param & ~(uint32_t)TL_EMU_SHUFFLE_PREDICATE);
  TL_EMU_FOR_LANES(lane, meeting->mask) values[lane] = ((const shuffle_args *)meeting->args[lane])->value;
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    const shuffle_args *args = meeting->args[lane];
    bool in_range;
    uint32_t source = shuffle_source(mode, lane, args->b, args->c, &in_range);
    if (!(meeting->mask >> source & 1))
      tl_emu_fail("%s: lane %u of warp %u reads lane %u, which is not in the member mask %08x", meeting->site->op, lane,
                  warp->index, source, meeting->mask);
    shuffle_result *result = meeting->result[lane];
    result->value = values[source];
    if (gives_predicate) result->in_range = in_range;
  }
  return true;
}

void tl_emu_op_shuffle(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet(((const shuffle_args *)args)->mask, result, args, site, shuffle_work);
}

typedef struct vote_args {
  uint32_t mask;
  uint8_t predicate;
} vote_args;

static bool vote_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  (void)warp;
  uint32_t ballot = 0;
  TL_EMU_FOR_LANES(lane, meeting->mask)
  ballot |= (uint32_t)(((const vote_args *)meeting->args[lane])->predicate & 1) << lane;
  tl_emu_vote kind = (tl_emu_vote)meeting->site->binding->param;
  bool yes = kind == TL_EMU_VOTE_ALL   ? ballot == meeting->mask
             : kind == TL_EMU_VOTE_ANY ? ballot != 0
                                       : ballot == 0 || ballot == meeting->mask;
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    if (kind == TL_EMU_VOTE_BALLOT)
      *(uint32_t *)meeting->result[lane] = ballot;
    else
      *(uint8_t *)meeting->result[lane] = yes;
  }
  return true;
}

void tl_emu_op_vote(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet(((const vote_args *)args)->mask, result, args, site, vote_work);
}

typedef struct redux_args {
  uint32_t value, mask;
} redux_args;

static uint32_t redux(tl_emu_redux kind, uint32_t a, uint32_t b) {
  switch (kind) {
    case TL_EMU_REDUX_ADD:
      return a + b;
    case TL_EMU_REDUX_MIN:
      return (int32_t)a < (int32_t)b ? a : b;
    case TL_EMU_REDUX_MAX:
      return (int32_t)a > (int32_t)b ? a : b;
    case TL_EMU_REDUX_UMIN:
      return a < b ? a : b;
    case TL_EMU_REDUX_UMAX:
      return a > b ? a : b;
    case TL_EMU_REDUX_AND:
      return a & b;
    case TL_EMU_REDUX_OR:
      return a | b;
    case TL_EMU_REDUX_XOR:
      return a ^ b;
  }
  return 0;
}

static bool redux_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  (void)warp;
  uint32_t total = 0;
  bool first = true;
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    uint32_t value = ((const redux_args *)meeting->args[lane])->value;
    total = first ? value : redux((tl_emu_redux)meeting->site->binding->param, total, value);
    first = false;
  }
  TL_EMU_FOR_LANES(lane, meeting->mask) * (uint32_t *)meeting->result[lane] = total;
  return true;
}

void tl_emu_op_redux(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet(((const redux_args *)args)->mask, result, args, site, redux_work);
}

// Which lane is elected is left open; it is the same for the same mask. PTX ISA, elect.sync.
static bool elect_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  (void)warp;
  uint32_t leader = (uint32_t)__builtin_ctz(meeting->mask);
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    shuffle_result *result = meeting->result[lane];
    result->value = leader;
    result->in_range = lane == leader;
  }
  return true;
}

void tl_emu_op_elect(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet(*(const uint32_t *)args, result, args, site, elect_work);
}

// The value behind the mask, of the binding's number of bytes.
static uint64_t match_value(const tl_emu_meeting *meeting, uint32_t lane) {
  tl_emu_args args = {meeting->args[lane], 0};
  (void)tl_emu_args_i32(&args);
  return meeting->site->binding->param == 8 ? tl_emu_args_i64(&args) : tl_emu_args_i32(&args);
}

static bool match_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  (void)warp;
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    uint32_t same = 0;
    uint64_t value = match_value(meeting, lane);
    TL_EMU_FOR_LANES(other, meeting->mask) same |= (uint32_t)(match_value(meeting, other) == value) << other;
    *(uint32_t *)meeting->result[lane] = same;
  }
  return true;
}

void tl_emu_op_match_any(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet(*(const uint32_t *)args, result, args, site, match_work);
}

// PTX ISA, match.all.sync: the mask and true if all lanes have the same value, else 0 and false.
static bool match_all_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  (void)warp;
  uint64_t first = match_value(meeting, (uint32_t)__builtin_ctz(meeting->mask));
  bool same = true;
  TL_EMU_FOR_LANES(lane, meeting->mask) same &= match_value(meeting, lane) == first;
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    shuffle_result *result = meeting->result[lane];
    result->value = same ? meeting->mask : 0;
    result->in_range = same;
  }
  return true;
}

void tl_emu_op_match_all(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet(*(const uint32_t *)args, result, args, site, match_all_work);
}

typedef struct redux_f32_args {
  float value;
  uint32_t mask;
} redux_f32_args;

// PTX ISA, redux.sync: a NaN is left out, unless .NaN: then the result is one. +0 is more than -0.
static float redux_f32(int param, float a, float b) {
  if (isnan(a) || isnan(b)) return param & TL_EMU_REDUX_NAN ? NAN : isnan(a) ? b : a;
  bool takes_larger = param & TL_EMU_REDUX_MAX_F32;
  if (a == b) return (signbit(a) != 0) == takes_larger ? b : a;
  return (a > b) == takes_larger ? a : b;
}

static bool redux_f32_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  (void)warp;
  int param = meeting->site->binding->param;
  float total = 0;
  bool first = true;
  TL_EMU_FOR_LANES(lane, meeting->mask) {
    float value = ((const redux_f32_args *)meeting->args[lane])->value;
    if (param & TL_EMU_REDUX_ABS) value = fabsf(value);
    total = first ? value : redux_f32(param, total, value);
    first = false;
  }
  uint32_t bits = 0x7fffffff;  // the canonical NaN
  if (!isnan(total)) memcpy(&bits, &total, sizeof bits);
  TL_EMU_FOR_LANES(lane, meeting->mask) * (uint32_t *)meeting->result[lane] = bits;
  return true;
}

void tl_emu_op_redux_f32(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet(((const redux_f32_args *)args)->mask, result, args, site, redux_f32_work);
}
