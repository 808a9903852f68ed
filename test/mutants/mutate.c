// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/mutants/mutate.h"

#include <stdio.h>
#include <string.h>

#include "ir/layout/layout.h"
#include "ir/text/text.h"

enum { MAX_TEXT = 200 };  // of an operation in a report

// Counts sites while it walks, and changes the one that is wanted.
typedef struct finder {
  tl_module *module;
  tl_mutant_class class;
  int64_t wanted;  // -1: only count
  uint32_t found;
  tl_strbuf *what;
  bool done;
} finder;

static const char *const names[] = {
#define TL_MUTANT(ID, name, doc) name,
#include "test/mutants/mutants.def"
#undef TL_MUTANT
};
static const char *const docs[] = {
#define TL_MUTANT(ID, name, doc) doc,
#include "test/mutants/mutants.def"
#undef TL_MUTANT
};

const char *tl_mutant_name(tl_mutant_class class) {
  return names[class];
}

const char *tl_mutant_doc(tl_mutant_class class) {
  return docs[class];
}

static void append_line(const tl_op *op, tl_strbuf *out) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_op_print(op, &text);
  const char *line = tl_strbuf_c(&text);
  while (*line == ' ') line++;
  int len = (int)strcspn(line, "\n");
  tl_strbuf_appendf(out, "%.*s", len < MAX_TEXT ? len : MAX_TEXT, line);
  tl_strbuf_fini(&text);
}

// One more site. True when it is the one to change: the operation is described before that, and for one that says
// little itself the next, or the one before.
static bool is_wanted(finder *f, const tl_op *op, const char *detail) {
  if ((int64_t)f->found++ != f->wanted) return false;
  f->done = true;
  tl_strbuf_appendf(f->what, "%s%s", detail, detail[0] ? " of " : "");
  append_line(op, f->what);
  const tl_op *next = op->next;
  while (next && next->code == TL_OP_CONST) next = next->next;
  if (op->code == TL_OP_BARRIER && next) {
    tl_strbuf_append_c(f->what, " before ");
    append_line(next, f->what);
  }
  const tl_op *prev = op->prev;
  while (prev && prev->code == TL_OP_CONST) prev = prev->prev;
  if (op->code == TL_OP_FENCE_PROXY && prev) {
    tl_strbuf_append_c(f->what, " behind ");
    append_line(prev, f->what);
  }
  const tl_op *inside = op->code == TL_OP_IF ? op->regions[0]->first : NULL;
  while (inside && tl_op_info_of(inside->code)->flags & TL_OPFLAG_PURE) inside = inside->next;
  if (inside) {
    tl_strbuf_append_c(f->what, " ");
    append_line(inside, f->what);
  }
  return true;
}

static void erase(finder *f, tl_op *op) {
  if (is_wanted(f, op, "")) tl_op_erase(op);
}

// ---- checks of bounds

// Bits of an element of CHECK, SRC_CHECK and DST_CHECK.
enum { CHECK_LOWER = 1, CHECK_UPPER = 2 };

static void drop_checks(finder *f, tl_op *op, tl_attr_key key, int64_t bit) {
  const tl_attr *attr = tl_op_attr(op, key);
  if (!attr) return;
  for (int32_t d = 0; d < attr->v.ints.len; d++) {
    if (!(attr->v.ints.items[d] & bit)) continue;
    char detail[64];
    snprintf(detail, sizeof detail, "%s of dim %d", tl_attr_key_text(key), d);
    if (!is_wanted(f, op, detail)) continue;
    int64_t items[16];
    for (int32_t i = 0; i < attr->v.ints.len && i < 16; i++) items[i] = attr->v.ints.items[i];
    items[d] &= ~bit;
    tl_op_set_ints(f->module, op, key, items, attr->v.ints.len);
    return;
  }
}

// ---- conditions

static void drop_guard(finder *f, tl_op *op) {
  int64_t known;
  if (tl_value_const_int(tl_op_operand(op, 0), &known)) return;
  if (!is_wanted(f, op, "condition")) return;
  tl_builder builder;
  tl_builder_before(&builder, f->module, op);
  tl_op_set_operand(op, 0, tl_build_bool(&builder, true));
}

// ---- stages

static void shift_stage(finder *f, tl_op *op) {
  const tl_op *alloc = tl_op_operand(op, 0)->def;
  int64_t depth = alloc ? tl_op_int(alloc, TL_ATTR_DEPTH, 1) : 1;
  if (depth < 2 || !is_wanted(f, op, "stage")) return;
  tl_builder builder;
  tl_builder_before(&builder, f->module, op);
  tl_value *stage = tl_op_operand(op, 1), *one = tl_build_index(&builder, 1);
  tl_value *next = tl_build_binary(&builder, TL_OP_ADD, stage, one), *end = tl_build_index(&builder, depth);
  tl_value *is_end = tl_build_cmp(&builder, TL_CMP_EQ, next, end), *zero = tl_build_index(&builder, 0);
  tl_op_set_operand(op, 1, tl_build_select(&builder, is_end, zero, next));
}

// A site for each dim along which the part is not the whole tile.
static void shift_part(finder *f, tl_op *op) {
  const tl_type *part = op->results[0].type, *tile = tl_op_operand(op, 0)->type;
  const int64_t *dims = tl_op_attr(op, TL_ATTR_SRC_DIMS)->v.ints.items;
  for (int32_t d = 0; d < tile->rank; d++) {
    int64_t extent = d == dims[0] ? part->dims[0] : d == dims[1] ? part->dims[1] : 1;
    int64_t most = tile->dims[d] - extent;
    if (most == 0 || !is_wanted(f, op, "part")) continue;
    tl_builder builder;
    tl_builder_before(&builder, f->module, op);
    uint32_t place = (uint32_t)d + 1;
    tl_value *offset = tl_op_operand(op, place), *one = tl_build_index(&builder, 1);
    tl_value *end = tl_build_index(&builder, most), *less = tl_build_binary(&builder, TL_OP_SUB, offset, one);
    tl_value *more = tl_build_binary(&builder, TL_OP_ADD, offset, one);
    tl_value *is_end = tl_build_cmp(&builder, TL_CMP_GE, offset, end);
    tl_op_set_operand(op, place, tl_build_select(&builder, is_end, less, more));
  }
}

// ---- swizzles

// The shared layout that turns other address bits; false when the pitch leaves no room for one.
static bool other_swizzle(const tl_shared_layout *layout, tl_shared_layout *out) {
  *out = *layout;
  if (layout->swizzle_mask) {
    out->swizzle_mask = layout->swizzle_mask >> 1;
    return true;
  }
  out->swizzle_mask = 1;
  out->swizzle_shift = 0;
  return layout->pitch_bytes % 32 == 0;
}

static tl_op *shared_alloc_behind(tl_value *buffer) {
  tl_op *op = buffer->def;
  while (op && op->code == TL_OP_STAGE_TILE) op = tl_op_operand(op, 0)->def;
  return op && op->code == TL_OP_ALLOC && tl_op_attr(op, TL_ATTR_SHARED_LAYOUT) ? op : NULL;
}

// The same memory under another layout: the alloc and what selects its stage, once more.
static tl_value *buffer_again(finder *f, tl_value *buffer, const tl_shared_layout *layout) {
  tl_op *op = buffer->def;
  tl_value_map map = {0};
  if (op->code == TL_OP_STAGE_TILE) {
    tl_value *base = tl_op_operand(op, 0);
    tl_value_map_set(&map, base, buffer_again(f, base, layout));
  }
  tl_builder builder;
  tl_builder_after(&builder, f->module, op);
  tl_op *again = tl_op_clone(&builder, op, &map);
  tl_value_map_fini(&map);
  if (op->code == TL_OP_ALLOC) tl_op_set_shared(f->module, again, TL_ATTR_SHARED_LAYOUT, layout);
  return tl_op_result(again, 0);
}

// Rows of a shared tile: the swizzle is a function of the row.
static int64_t num_rows(const tl_type *type) {
  int64_t rows = 1;
  for (int32_t d = 0; d + 1 < type->rank; d++) rows *= type->dims[d];
  return rows;
}

// No sites: a tile whose rows all have one XOR value, where any swizzle is the identity or a constant; what a
// convert_layout writes and reads itself; and copies by a tensor map, whose swizzle is the map's: that one changes
// instead.
static void flip_swizzle(finder *f, tl_op *op) {
  if (op->code == TL_OP_STAGE_TILE || op->code == TL_OP_CONVERT_LAYOUT) return;
  if (op->code == TL_OP_COPY && tl_op_group_len(op, TL_GROUP_COPY_map) > 0) return;
  if (op->code == TL_OP_TENSOR_MAP && tl_op_has(op, TL_ATTR_SWIZZLE) && is_wanted(f, op, "swizzle"))
    tl_op_set_int(f->module, op, TL_ATTR_SWIZZLE, 0);
  for (uint32_t i = 0; i < op->num_operands; i++) {
    tl_value *buffer = tl_op_operand(op, i);
    if (buffer->type->kind != TL_TYPE_BUFFER || buffer->type->scope != TL_SCOPE_SHARED) continue;
    tl_op *alloc = shared_alloc_behind(buffer);
    tl_shared_layout layout;
    if (!alloc || !other_swizzle(tl_op_attr(alloc, TL_ATTR_SHARED_LAYOUT)->v.shared, &layout)) continue;
    if (num_rows(buffer->type) <= 1) continue;
    char detail[32];
    snprintf(detail, sizeof detail, "operand %u", i);
    if (!is_wanted(f, op, detail)) continue;
    tl_op_set_operand(op, i, buffer_again(f, buffer, &layout));
    return;
  }
}

// ---- initial content

static void drop_init(finder *f, tl_op *op) {
  if (op->code == TL_OP_FILL) erase(f, op);
  if (op->code != TL_OP_SPLAT || !is_wanted(f, op, "")) return;
  tl_builder builder;
  tl_builder_before(&builder, f->module, op);
  const tl_type *type = tl_op_result(op, 0)->type;
  tl_value *unwritten = tl_op_result(tl_build(&builder, TL_OP_UNDEF_TILE, NULL, &type, 1), 0);
  unwritten->name = tl_op_result(op, 0)->name;
  tl_value_replace_uses(tl_op_result(op, 0), unwritten);
  tl_op_erase(op);
}

// ---- mbarriers

static void flip_phase(finder *f, tl_op *op) {
  if (!is_wanted(f, op, "phase")) return;
  tl_builder builder;
  tl_builder_before(&builder, f->module, op);
  tl_value *phase = tl_op_arg(op, TL_GROUP_MBARRIER_WAIT_phase);
  tl_op_set_operand(op, 2, tl_build_binary(&builder, TL_OP_SUB, tl_build_index(&builder, 1), phase));
}

static void lessen_bytes(finder *f, tl_op *op) {
  enum { CHUNK = 16 };
  const tl_value *bytes = op->code == TL_OP_MBARRIER_EXPECT   ? tl_op_arg(op, TL_GROUP_MBARRIER_EXPECT_bytes)
                          : op->code == TL_OP_MBARRIER_ARRIVE ? tl_op_arg(op, TL_GROUP_MBARRIER_ARRIVE_bytes)
                                                              : NULL;
  int64_t count;
  if (!bytes || !tl_value_const_int(bytes, &count) || !is_wanted(f, op, "bytes")) return;
  tl_builder builder;
  tl_builder_before(&builder, f->module, op);
  tl_op_set_operand(op, op->num_operands - 1, tl_build_index(&builder, count - CHUNK));
}

// A release that stands behind a wait for products comes before it.
static void release_early(finder *f, tl_op *op) {
  if (op->code != TL_OP_MBARRIER_ARRIVE || tl_op_arg(op, TL_GROUP_MBARRIER_ARRIVE_bytes)) return;
  tl_op *wait = op->prev;
  while (wait && wait->code != TL_OP_GEMM_WAIT) wait = wait->prev;
  if (wait && is_wanted(f, op, "place")) tl_op_move_before(op, wait);
}

static void visit_mbarrier(finder *f, tl_op *op) {
  switch (f->class) {
    case TL_MUTANT_DROP_ARRIVE:
      if (op->code == TL_OP_MBARRIER_ARRIVE) erase(f, op);
      break;
    case TL_MUTANT_DROP_MBARRIER_WAIT:
      if (op->code == TL_OP_MBARRIER_WAIT) erase(f, op);
      break;
    case TL_MUTANT_FLIP_PHASE:
      if (op->code == TL_OP_MBARRIER_WAIT) flip_phase(f, op);
      break;
    case TL_MUTANT_WRONG_BYTES:
      lessen_bytes(f, op);
      break;
    case TL_MUTANT_WRONG_ARRIVALS:
      if (op->code == TL_OP_MBARRIER && is_wanted(f, op, ""))
        tl_op_set_int(f->module, op, TL_ATTR_ARRIVALS, tl_op_int(op, TL_ATTR_ARRIVALS, 1) + 1);
      break;
    case TL_MUTANT_EARLY_RELEASE:
      release_early(f, op);
      break;
    case TL_MUTANT_DROP_ACROSS:
      if (op->code == TL_OP_MBARRIER_ARRIVE && tl_op_has(op, TL_ATTR_ACROSS) && is_wanted(f, op, "across"))
        tl_op_remove_attr(op, TL_ATTR_ACROSS);
      break;
    case TL_MUTANT_DROP_NAMED:
      if (op->code == TL_OP_NAMED_SYNC || op->code == TL_OP_NAMED_ARRIVE) erase(f, op);
      break;
    default:
      break;
  }
}

// ---- the walk

static void visit_sync(finder *f, tl_op *op) {
  switch (f->class) {
    case TL_MUTANT_DROP_BARRIER:
      if (op->code == TL_OP_BARRIER) erase(f, op);
      break;
    case TL_MUTANT_DROP_WAIT:
      if (op->code == TL_OP_ASYNC_WAIT) erase(f, op);
      break;
    case TL_MUTANT_WEAKEN_WAIT:
      if (op->code == TL_OP_ASYNC_WAIT && is_wanted(f, op, ""))
        tl_op_set_int(f->module, op, TL_ATTR_PENDING, tl_op_int(op, TL_ATTR_PENDING, 0) + 1);
      break;
    case TL_MUTANT_DROP_COMMIT:
      if (op->code == TL_OP_ASYNC_COMMIT) erase(f, op);
      break;
    case TL_MUTANT_DROP_FENCE:
      if (op->code == TL_OP_FENCE_PROXY) erase(f, op);
      break;
    case TL_MUTANT_DROP_GEMM_WAIT:
      if (op->code == TL_OP_GEMM_WAIT && op->num_results == 0) erase(f, op);
      break;
    case TL_MUTANT_WEAKEN_GEMM_WAIT:
      if (op->code == TL_OP_GEMM_WAIT && op->num_results == 0 && is_wanted(f, op, ""))
        tl_op_set_int(f->module, op, TL_ATTR_PENDING, tl_op_int(op, TL_ATTR_PENDING, 0) + 1);
      break;
    case TL_MUTANT_DROP_TURN:
      // Nobody waits for what the last turn hands on, but for the next tile of a persistent kernel.
      if (op->code == TL_OP_TURN && tl_op_int(op, TL_ATTR_TURN, TL_TURN_TAKE) != TL_TURN_CLOSE) erase(f, op);
      break;
    case TL_MUTANT_EARLY_GEMM_WAIT:
      if (op->code == TL_OP_GEMM_WAIT && op->num_results > 0 && is_wanted(f, op, ""))
        tl_op_set_int(f->module, op, TL_ATTR_PENDING, tl_op_int(op, TL_ATTR_PENDING, 0) + 1);
      break;
    case TL_MUTANT_DROP_PINS:
      if (op->code == TL_OP_GEMM_WAIT && tl_op_group_len(op, TL_GROUP_GEMM_WAIT_pins) > 0 && is_wanted(f, op, "pins"))
        tl_op_set_group(f->module, op, TL_GROUP_GEMM_WAIT_pins, NULL, 0);
      break;
    case TL_MUTANT_DROP_BULK_WAIT:
      if (op->code == TL_OP_BULK_WAIT) erase(f, op);
      break;
    case TL_MUTANT_WEAKEN_BULK_WAIT:
      if (op->code == TL_OP_BULK_WAIT && is_wanted(f, op, ""))
        tl_op_set_int(f->module, op, TL_ATTR_PENDING, tl_op_int(op, TL_ATTR_PENDING, 0) + 1);
      break;
    case TL_MUTANT_DROP_WAIT_UNTIL:
      if (op->code == TL_OP_WAIT_UNTIL) erase(f, op);
      break;
    case TL_MUTANT_RELAX_ORDER:
      if (op->code == TL_OP_ATOMIC &&
          tl_op_int(op, TL_ATTR_MEMORY_ORDER, TL_MEMORY_ORDER_RELAXED) != TL_MEMORY_ORDER_RELAXED &&
          is_wanted(f, op, ""))
        tl_op_remove_attr(op, TL_ATTR_MEMORY_ORDER);
      break;
    default:
      visit_mbarrier(f, op);
      break;
  }
}

static void visit(tl_op *op, void *user) {
  finder *f = user;
  if (f->done) return;
  switch (f->class) {
    case TL_MUTANT_DROP_LOWER_CHECK:
    case TL_MUTANT_DROP_UPPER_CHECK: {
      static const tl_attr_key keys[] = {TL_ATTR_CHECK, TL_ATTR_SRC_CHECK, TL_ATTR_DST_CHECK};
      int64_t bit = f->class == TL_MUTANT_DROP_LOWER_CHECK ? CHECK_LOWER : CHECK_UPPER;
      for (size_t k = 0; k < sizeof keys / sizeof keys[0] && !f->done; k++) drop_checks(f, op, keys[k], bit);
      break;
    }
    case TL_MUTANT_DROP_GUARD:
      if (op->code == TL_OP_IF) drop_guard(f, op);
      break;
    case TL_MUTANT_SHIFT_STAGE:
      if (op->code == TL_OP_STAGE_TILE) shift_stage(f, op);
      break;
    case TL_MUTANT_SHIFT_PART:
      if (op->code == TL_OP_PART_TILE) shift_part(f, op);
      break;
    case TL_MUTANT_FLIP_SWIZZLE:
      flip_swizzle(f, op);
      break;
    case TL_MUTANT_DROP_INIT:
      drop_init(f, op);
      break;
    default:
      visit_sync(f, op);
      break;
  }
}

uint32_t tl_mutant_sites(tl_module *module, tl_mutant_class class) {
  finder f = {.module = module, .class = class, .wanted = -1};
  tl_walk_module(module, visit, &f);
  return f.found;
}

bool tl_mutant_apply(tl_module *module, tl_mutant_class class, uint32_t site, tl_strbuf *what) {
  finder f = {.module = module, .class = class, .wanted = site, .what = what};
  tl_walk_module(module, visit, &f);
  return f.done;
}
