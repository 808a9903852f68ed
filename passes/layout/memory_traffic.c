// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/layout/memory_traffic.h"

#include <string.h>

// More instructions than these behave like them.
enum { LANES = 32, MOST_INSTRUCTIONS = 16, MOST_VISITS = 64 };

// ---- values

// A prime: neither rows nor vectors begin together where nothing is known that makes them.
enum { TYPICAL_FACTOR = 1021, MIXED_BITS = 20 };

// For a value from outside of the iteration.
static int64_t typical_value(tl_value *value) {
  int64_t constant;
  if (tl_value_const_int(value, &constant)) return constant;
  tl_range range = tl_value_range(value);
  int64_t divisor = value->type->kind == TL_TYPE_INDEX ? tl_value_divisor(value) : 1;
  if (divisor > 0 && divisor < INT32_MAX && divisor * TYPICAL_FACTOR >= range.lo &&
      divisor * TYPICAL_FACTOR <= range.hi)
    return divisor * TYPICAL_FACTOR;
  return range.lo == INT64_MIN ? 0 : range.lo;
}

static uint64_t mix(uint64_t seed, int64_t with) {
  uint64_t mixed = (seed ^ (uint64_t)with) * 0x9E3779B97F4A7C15u;
  return mixed ^ mixed >> 29;
}

// One iteration of a parallel.
typedef struct iteration {
  const tl_op *parallel;
  int32_t at[TL_MAX_RANK];
  int32_t visits;  // left
} iteration;

static int64_t value_at(iteration *it, tl_value *value);

// A value that has another place for everything that it depends on.
static int64_t mixed_value(iteration *it, const tl_op *op) {
  uint64_t mixed = op ? (uint64_t)op->code + 1 : 1;
  for (uint32_t i = 0; op && i < op->num_operands; i++) {
    tl_value *operand = tl_op_operand(op, i);
    if (operand->type->kind == TL_TYPE_BUFFER || operand->type->kind == TL_TYPE_TILE) continue;
    mixed = mix(mixed, value_at(it, operand));
  }
  for (uint32_t d = 0; !op && d < it->parallel->regions[0]->num_args; d++) mixed = mix(mixed, it->at[d]);
  return (int64_t)(mixed >> (64 - MIXED_BITS));
}

static int64_t value_at(iteration *it, tl_value *value) {
  int64_t result;
  if (value->block == it->parallel->regions[0]) return it->at[value->index];
  if (tl_value_const_int(value, &result)) return result;
  tl_op *op = value->def;
  if (!tl_op_is_inside(op ? op : value->block->parent, it->parallel)) return typical_value(value);
  if (--it->visits < 0) return mixed_value(it, NULL);
  if (!op) {
    const tl_op *loop = value->block->parent;
    bool counts = loop->code == TL_OP_FOR && value->index == 0 && !tl_op_has(loop, TL_ATTR_WHILE);
    return counts ? value_at(it, tl_op_arg(loop, TL_GROUP_FOR_lower)) : mixed_value(it, NULL);
  }
  if (op->num_regions > 0) return mixed_value(it, NULL);
  if (op->code == TL_OP_CAST) return value_at(it, tl_op_operand(op, 0));
  if (op->code == TL_OP_SELECT) return value_at(it, tl_op_operand(op, 1));
  if (op->num_operands == 2 &&
      tl_fold_index(op->code, value_at(it, tl_op_operand(op, 0)), value_at(it, tl_op_operand(op, 1)), &result))
    return result;
  return mixed_value(it, op);
}

// ---- places

// Strides of the dims of a buffer, in elements. They wrap: only differences count.
static void find_strides(const tl_value *buffer, uint64_t *out) {
  const tl_op *op = buffer->def;
  int32_t rank = buffer->type->rank;
  bool has_strides = op && op->code == TL_OP_TENSOR && tl_op_group_len(op, TL_GROUP_TENSOR_strides) == (uint32_t)rank;
  uint64_t rows = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    tl_value *size = tl_buffer_dim_value(buffer, d);
    out[d] = rows;
    if (has_strides) out[d] = (uint64_t)typical_value(tl_op_group_at(op, TL_GROUP_TENSOR_strides, (uint32_t)d));
    rows *= size ? (uint64_t)typical_value(size) : (uint64_t)buffer->type->dims[d];
  }
}

// Where the elements of one instruction lie.
typedef struct warp_places {
  const tl_value *buffer;
  int32_t bytes;  // of each lane
  int32_t num_lanes;
  uint64_t at[LANES];  // in bytes
  uint64_t strides[TL_MAX_RANK];
} warp_places;

static void add_lane(warp_places *places, const int64_t *subscripts) {
  uint64_t element = 0;
  for (int32_t d = 0; d < places->buffer->type->rank; d++) element += (uint64_t)subscripts[d] * places->strides[d];
  places->at[places->num_lanes++] = element * (uint64_t)tl_dtype_bits(places->buffer->type->dtype) / 8;
}

// A set of numbers of units. 16 bytes of a lane reach into two.
enum { MOST_OF_ONE = LANES * 2, SET_SLOTS = 4096 };
_Static_assert(SET_SLOTS > MOST_OF_ONE * MOST_INSTRUCTIONS * 2, "the set of units is never crowded");
typedef struct unit_set {
  int64_t count;
  uint64_t slots[SET_SLOTS];  // numbers + 1; 0: free
} unit_set;

static void add_unit(unit_set *set, uint64_t unit) {
  uint64_t slot = mix(0, (int64_t)unit) % SET_SLOTS;
  while (set->slots[slot] != 0 && set->slots[slot] != unit + 1) slot = (slot + 1) % SET_SLOTS;
  set->count += set->slots[slot] == 0;
  set->slots[slot] = unit + 1;
}

// Units that one instruction touches; adds them to `all`.
static int64_t count_units(const warp_places *places, uint64_t unit, unit_set *all) {
  uint64_t seen[MOST_OF_ONE];
  int64_t count = 0;
  for (int32_t lane = 0; lane < places->num_lanes; lane++) {
    uint64_t last = (places->at[lane] + (uint64_t)places->bytes - 1) / unit;
    for (uint64_t at = places->at[lane] / unit; at <= last; at++) {
      int64_t i = 0;
      while (i < count && seen[i] != at) i++;
      if (i < count) continue;
      seen[count++] = at;
      add_unit(all, at);
    }
  }
  return count;
}

// Bytes that the lanes ask for, each place once.
static int64_t count_bytes(const warp_places *places) {
  int64_t bytes = 0;
  for (int32_t lane = 0; lane < places->num_lanes; lane++) {
    bool is_new = true;
    for (int32_t other = 0; other < lane; other++) is_new &= places->at[other] != places->at[lane];
    bytes += is_new ? places->bytes : 0;
  }
  return bytes;
}

static uint64_t hash_of(const warp_places *places) {
  uint64_t hash = (uint64_t)places->num_lanes;
  for (int32_t lane = 0; lane < places->num_lanes; lane++) hash = mix(hash, (int64_t)places->at[lane]);
  return hash;
}

// ---- instructions

// Writes the subscripts of the element at `coord` of the layout.
typedef void subscripts_fn(const void *access, const int32_t *coord, int64_t *out);

static tl_traffic scaled(tl_traffic traffic, int32_t by, int32_t over) {
  traffic.instructions = (traffic.instructions * by + over - 1) / over;
  traffic.units = (traffic.units * by + over - 1) / over;
  traffic.distinct = (traffic.distinct * by + over - 1) / over;
  traffic.least = (traffic.least * by + over - 1) / over;
  return traffic;
}

static tl_traffic count_traffic(const tl_value *buffer, const tl_layout *layout, int32_t vec, int32_t step,
                                subscripts_fn *subscripts_of, const void *access) {
  int32_t groups = tl_layout_num_registers(layout) / step,
          some = groups < MOST_INSTRUCTIONS ? groups : MOST_INSTRUCTIONS;
  int32_t bits = vec * tl_dtype_bits(buffer->type->dtype);
  int64_t unit = tl_buffer_is_shared(buffer) ? TL_LINE_BYTES : TL_SECTOR_BYTES;
  warp_places places = {.buffer = buffer, .bytes = bits < 8 ? 1 : bits / 8};
  find_strides(buffer, places.strides);
  uint64_t seen[MOST_INSTRUCTIONS];
  unit_set all = {0};
  tl_traffic traffic = {0};
  for (int32_t g = 0; g < some; g++) {
    places.num_lanes = 0;
    for (int32_t lane = 0; lane < LANES; lane++) {
      int32_t coord[TL_MAX_RANK];
      int64_t subscripts[TL_MAX_RANK];
      if (!tl_layout_coord(layout, g * step, lane, 0, coord)) continue;
      subscripts_of(access, coord, subscripts);
      add_lane(&places, subscripts);
    }
    if (places.num_lanes == 0) continue;
    uint64_t hash = hash_of(&places);
    int64_t i = 0;
    while (i < traffic.instructions && seen[i] != hash) i++;
    if (i < traffic.instructions) continue;
    seen[traffic.instructions++] = hash;
    traffic.units += count_units(&places, (uint64_t)unit, &all);
    traffic.least += (count_bytes(&places) + unit - 1) / unit;
  }
  traffic.distinct = all.count;
  return some < groups ? scaled(traffic, groups, some) : traffic;
}

typedef struct element_access {
  const tl_op *op, *parallel;
} element_access;

static void element_subscripts(const void *access, const int32_t *coord, int64_t *out) {
  const element_access *element = access;
  iteration it = {.parallel = element->parallel};
  memcpy(it.at, coord, sizeof(int32_t) * element->parallel->regions[0]->num_args);
  for (uint32_t d = 0; d < tl_element_rank(element->op); d++) {
    it.visits = MOST_VISITS;
    out[d] = value_at(&it, tl_element_index(element->op, d));
  }
}

tl_traffic tl_element_traffic(const tl_op *access, const tl_op *parallel, const tl_layout *layout, int32_t vec,
                              int32_t repeat) {
  element_access element = {access, parallel};
  return count_traffic(tl_element_buffer(access), layout, vec, vec * repeat, element_subscripts, &element);
}

static void box_subscripts(const void *access, const int32_t *coord, int64_t *out) {
  const tl_box *box = access;
  for (int32_t d = 0; d < box->buffer_rank; d++) {
    int32_t t = box->tile_dim[d];
    out[d] = t < 0 ? 0 : coord[t] * box->steps[t];
  }
}

tl_traffic tl_box_traffic(const tl_box *box, const tl_layout *layout, int32_t vec) {
  return count_traffic(box->buffer, layout, vec, vec, box_subscripts, box);
}
