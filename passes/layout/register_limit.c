// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The registers that tile values take. What one thread must hold at once can be more than it has. A thread has at most
// 255, and the threads of a block share the multiprocessor's 65536. Far beyond that the kernel would live in local
// memory, and the code for it would grow with the tile: an error. A little beyond it spills: a warning with numbers.
#include <stdlib.h>

#include "ir/target.h"
#include "passes/layout/infer_layouts.h"

// What a thread needs beside its tiles: addresses, loop state, values under way (measured, docs/performance.md).
enum { OTHER_REGISTERS = 12, WARP = 32 };

// Elements of a thread up to which ptxas reads a tile from shared memory one after the other (13.0 for sm_80 and
// sm_90a: softmax with 256 in 40 registers, with 320 in 255 and 2892 bytes of local memory).
enum { MAX_READ_ANEW = 256 };

// A tile value from where it is made to where it is used last, as positions in the kernel's text.
typedef struct tile_range {
  const tl_value *value;
  int64_t registers;
  int32_t from, to;
} tile_range;

// The two positions of an op: where it begins, and behind its regions.
typedef struct op_position {
  const tl_op *op;
  int32_t begin, end;
} op_position;

typedef struct register_count {
  TL_VEC(op_position) ops;     // by address: for look-up only
  TL_VEC(const tl_op *) text;  // by position
  TL_VEC(tile_range) ranges;
} register_count;

// 32-bit registers of one thread, at least: narrow elements are packed.
static int64_t registers_of(const tl_value *value) {
  if (value->type->kind != TL_TYPE_TILE || !value->type->layout) return 0;
  int64_t bits = (int64_t)tl_layout_num_registers(value->type->layout) * tl_dtype_bits(value->type->dtype);
  return (bits + 31) / 32;
}

static const char *name_of(const tl_value *value) {
  return value->name ? value->name : "a tile";
}

// ---- what is alive together

static void number_block(register_count *count, const tl_block *block);

static void number_op(register_count *count, const tl_op *op) {
  op_position position = {.op = op, .begin = (int32_t)count->text.len};
  tl_vec_push(&count->text, op);
  for (uint32_t r = 0; r < op->num_regions; r++) number_block(count, op->regions[r]);
  position.end = (int32_t)count->text.len;
  tl_vec_push(&count->text, op);
  tl_vec_push(&count->ops, position);
}

static void number_block(register_count *count, const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next) number_op(count, op);
}

static int by_address(const void *left, const void *right) {
  const op_position *a = left, *b = right;
  return a->op < b->op ? -1 : a->op > b->op;
}

static const op_position *position_of(const register_count *count, const tl_op *op) {
  op_position key = {.op = op};
  return bsearch(&key, count->ops.items, count->ops.len, sizeof key, by_address);
}

// A use inside of loops that the value was made before is one in every iteration of them; one in a parallel ends as the
// elements go by.
static int32_t end_of_use(const register_count *count, const tl_value *value, const tl_op *user) {
  const tl_op *home = value->def ? value->def->parent->parent : value->block->parent, *at = user;
  const op_position *position = position_of(count, user);
  int32_t end = position ? position->begin : 0;
  for (; at && at != home; at = at->parent ? at->parent->parent : NULL) {
    position = position_of(count, at);
    if (position && at->code == TL_OP_PARALLEL) end = position->begin;
    if (position && at->code == TL_OP_FOR && at != user) end = position->end;
  }
  return end;
}

static void add_range(register_count *count, const tl_value *value, int32_t from) {
  tile_range range = {.value = value, .registers = registers_of(value), .from = from, .to = from};
  if (range.registers == 0) return;
  for (const tl_use *use = value->uses; use; use = use->next) {
    int32_t end = end_of_use(count, value, use->owner);
    if (end > range.to) range.to = end;
  }
  tl_vec_push(&count->ranges, range);
}

static void add_ranges(register_count *count) {
  for (size_t i = 0; i < count->text.len; i++) {
    const tl_op *op = count->text.items[i];
    const op_position *position = position_of(count, op);
    bool begins = position->begin == (int32_t)i;
    for (uint32_t r = 0; begins && r < op->num_regions; r++)
      for (uint32_t a = 0; a < op->regions[r]->num_args; a++)
        add_range(count, op->regions[r]->args[a], position->begin);
    for (uint32_t r = 0; !begins && r < op->num_results; r++) add_range(count, &op->results[r], position->end);
  }
}

// Whether one op of the value's own block, or what is inside of it, has all of its uses.
static bool is_used_once(const tl_value *value) {
  const tl_block *home = value->def ? value->def->parent : value->block;
  const tl_op *only = NULL;
  for (const tl_use *use = value->uses; use; use = use->next) {
    const tl_op *user = use->owner;
    while (user->parent != home && user->parent->parent) user = user->parent->parent;
    if (only && user != only) return false;
    only = user;
  }
  return only != NULL;
}

static bool is_read_anew(const tl_value *value);

// Whether every tile of many registers that the loop takes elements of is read anew, and there is one.
static bool takes_read_anew(const tl_block *block, bool *found) {
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_EXTRACT && registers_of(tl_op_arg(op, TL_GROUP_EXTRACT_tile)) > OTHER_REGISTERS) {
      *found = true;
      if (!is_read_anew(tl_op_arg(op, TL_GROUP_EXTRACT_tile))) return false;
    }
    for (uint32_t r = 0; r < op->num_regions; r++)
      if (!takes_read_anew(op->regions[r], found)) return false;
  }
  return true;
}

// Whether the tile is used once and comes from shared memory (stage-reads), itself or the tiles that it is made of: its
// elements are read there one after the other rather than held.
static bool is_read_anew(const tl_value *value) {
  bool found = false;
  if (!value->def || registers_of(value) > MAX_READ_ANEW || !is_used_once(value)) return false;
  if (value->def->code == TL_OP_TILE_LOAD)
    return tl_op_arg(value->def, TL_GROUP_TILE_LOAD_src)->type->scope == TL_SCOPE_SHARED;
  return value->def->code == TL_OP_PARALLEL && takes_read_anew(value->def->regions[0], &found) && found;
}

// The largest sum of registers over all positions, and where. Without the values that `passes` says go by one element
// after the other.
typedef bool passes_by(const tl_value *value);
static int64_t most_registers(const register_count *count, passes_by *passes, int32_t *out_at) {
  int64_t *change = tl_xcalloc(count->text.len + 1, sizeof *change), sum = 0, most = 0;
  for (size_t i = 0; i < count->ranges.len; i++) {
    if (passes(count->ranges.items[i].value)) continue;
    change[count->ranges.items[i].from] += count->ranges.items[i].registers;
    change[count->ranges.items[i].to] -= count->ranges.items[i].registers;
  }
  *out_at = 0;
  for (size_t i = 0; i < count->text.len; i++) {
    sum += change[i];
    if (sum <= most) continue;
    most = sum;
    *out_at = (int32_t)i;
  }
  free(change);
  return most;
}

// ---- what is told

// The fewest threads, more than there are, whose registers hold tiles that take `total` of a block. 0: none do.
static int32_t threads_that_hold(int64_t total, int32_t threads) {
  for (int32_t more = threads + WARP; more <= TL_MAX_THREADS_PER_BLOCK; more += WARP)
    if ((total + more - 1) / more + OTHER_REGISTERS <= tl_target_registers(more, 1)) return more;
  return 0;
}

static void add_hint(tl_layout_graph *graph, tl_diag *diag, int64_t registers, const tl_value *largest) {
  tl_diags *diags = graph->context->diags;
  int32_t more = threads_that_hold(registers * graph->threads, graph->threads);
  if (more)
    tl_diag_add_hint(diags, diag, "%d threads would hold them, or make '%s' smaller", more, name_of(largest));
  else
    tl_diag_add_hint(
        diags, diag,
        "no block has registers for them: make '%s' smaller, keep it in a narrower dtype, or go through it in parts",
        name_of(largest));
}

static void report_limit(tl_layout_graph *graph, const tl_op *op, const tl_value *const *held, size_t num_held,
                         int64_t registers) {
  tl_diags *diags = graph->context->diags;
  tl_diag *diag =
      tl_diag_report(diags, TL_DIAG_REGISTER_LIMIT, op->loc,
                     "the tiles held here take %lld registers of a thread, but with %d threads there are %d",
                     (long long)registers, graph->threads, tl_target_registers(graph->threads, 1));
  const tl_value *largest = held[0];
  for (size_t i = 0; i < num_held; i++) {
    if (registers_of(held[i]) > registers_of(largest)) largest = held[i];
    tl_diag_add_note(diags, diag, op->loc, "'%s' takes %lld registers in each of %d threads", name_of(held[i]),
                     (long long)registers_of(held[i]), graph->threads);
  }
  add_hint(graph, diag, registers, largest);
  graph->over_registers = true;
}

// Values that are certainly alive together: what a loop carries, else each result of an op for itself.
static void validate_op(tl_op *op, void *user) {
  tl_layout_graph *graph = user;
  if (graph->over_registers) return;
  bool is_loop = op->code == TL_OP_FOR;
  uint32_t count = is_loop ? op->regions[0]->num_args : op->num_results;
  TL_VEC(const tl_value *) held = {0};
  int64_t registers = 0;
  for (uint32_t i = 0; i < count; i++) {
    const tl_value *value = is_loop ? op->regions[0]->args[i] : &op->results[i];
    if (registers_of(value) == 0 || is_read_anew(value)) continue;
    tl_vec_push(&held, value);
    registers += registers_of(value);
  }
  if (registers > TL_MAX_REGISTERS_PER_THREAD) report_limit(graph, op, held.items, held.len, registers);
  tl_vec_fini(&held);
}

static void warn_of_spills(tl_layout_graph *graph, const register_count *count, int32_t at, int64_t registers) {
  enum { MAX_NOTES = 4 };
  tl_diags *diags = graph->context->diags;
  const tl_op *op = count->text.items[at];
  int32_t blocks = (int32_t)tl_op_int(graph->kernel, TL_ATTR_MIN_BLOCKS, 1);
  tl_diag *diag = tl_diag_report(diags, TL_DIAG_REGISTERS_SPILL, op->loc,
                                 "tiles take %lld registers of a thread here, and about %d more are needed beside "
                                 "them; with %d threads there are %d, so that some may live in local memory",
                                 (long long)registers, OTHER_REGISTERS, graph->threads,
                                 tl_target_registers(graph->threads, blocks));
  if (blocks > 1) tl_diag_add_note(diags, diag, op->loc, "%d blocks shall be on a multiprocessor at a time", blocks);
  const tile_range *largest = NULL;
  for (size_t i = 0, notes = 0; i < count->ranges.len; i++) {
    const tile_range *range = &count->ranges.items[i];
    if (range->from > at || range->to <= at) continue;
    if (!largest || range->registers > largest->registers) largest = range;
    if (range->registers * 8 < registers || notes++ >= MAX_NOTES) continue;
    tl_diag_add_note(diags, diag, op->loc, "'%s' takes %lld registers", name_of(range->value),
                     (long long)range->registers);
  }
  add_hint(graph, diag, registers, largest->value);
}

// Whether fewer blocks on a multiprocessor, at least three quarters of those that are asked for, leave each thread the
// registers; then so many are asked for.
static bool make_room(tl_layout_graph *graph, int64_t registers) {
  if (tl_op_has(graph->kernel, TL_ATTR_OCCUPANCY)) return false;
  int64_t wanted = tl_op_int(graph->kernel, TL_ATTR_MIN_BLOCKS, 1);
  for (int64_t blocks = wanted - 1; blocks >= 1 && 4 * blocks >= 3 * wanted; blocks--) {
    if (registers > tl_target_registers(graph->threads, blocks)) continue;
    tl_op_set_int(graph->context->module, graph->kernel, TL_ATTR_MIN_BLOCKS, blocks);
    return true;
  }
  return false;
}

static void validate_spills(tl_layout_graph *graph) {
  register_count count = {0};
  number_op(&count, graph->scope);
  qsort(count.ops.items, count.ops.len, sizeof *count.ops.items, by_address);
  add_ranges(&count);
  int64_t blocks = tl_op_int(graph->kernel, TL_ATTR_MIN_BLOCKS, 1);
  int32_t limit = tl_target_registers(graph->threads, blocks), at, held_at;
  int64_t registers = most_registers(&count, is_read_anew, &at);
  bool fits = registers + OTHER_REGISTERS <= limit || make_room(graph, registers + OTHER_REGISTERS);
  // What is used once can go by, too, where registers are fewer so that more blocks fit.
  if (!fits && blocks > 1) fits = most_registers(&count, is_used_once, &held_at) + OTHER_REGISTERS <= limit;
  if (!fits && registers > 0) warn_of_spills(graph, &count, at, registers);
  tl_vec_fini(&count.ops);
  tl_vec_fini(&count.text);
  tl_vec_fini(&count.ranges);
}

void tl_validate_registers(tl_layout_graph *graph) {
  tl_walk(graph->scope, validate_op, graph);
  if (!graph->over_registers) validate_spills(graph);
}
