// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which values of a loop would be parts, if a sum that it carries waited for its end. From the carried tile's next
// value backwards: parts are the carried tile, sums over threads, and elements that add parts up, times what is none.
// Then forwards: nothing but parts may read a part.
#include "passes/analysis/memory_access.h"
#include "passes/layout/waiting_sums.h"

// The first reason is the one that is told.
static void refuse(tl_waiting_sum *self, tl_loc loc, const char *reason) {
  if (self->reason) return;
  self->reason = reason;
  self->reason_loc = loc;
}

static void remember(tl_waiting_sum *self, const tl_value *value, tl_term term) {
  while (self->terms.len <= value->number) tl_vec_push(&self->terms, 0);
  self->terms.items[value->number] = (uint8_t)(term + 1);
}

static bool recall(const tl_waiting_sum *self, const tl_value *value, tl_term *out) {
  if (value->number >= self->terms.len || self->terms.items[value->number] == 0) return false;
  *out = (tl_term)(self->terms.items[value->number] - 1);
  return true;
}

void tl_add_part(tl_waiting_sum *self, tl_value *value) {
  remember(self, value, TL_TERM_PART);
  tl_vec_push(&self->parts, value);
}

bool tl_is_part(const tl_waiting_sum *self, const tl_value *value) {
  tl_term term = TL_TERM_OTHER;
  return recall(self, value, &term) && term == TL_TERM_PART;
}

// Forgets the parts behind the first `count`: what was made of them is no part.
static void forget_parts(tl_waiting_sum *self, size_t count) {
  while (self->parts.len > count) {
    const tl_value *part = tl_vec_pop(&self->parts);
    self->terms.items[part->number] = 0;
    if (part->def && part->def->code == TL_OP_REDUCE) self->num_sums--;
  }
}

static bool becomes_part(tl_waiting_sum *self, tl_value *value);

// ---- elements of a parallel

// Whether the extract reads the element of its tile that the parallel's own indices name.
static bool is_own_element(const tl_op *extract, const tl_op *parallel) {
  const tl_block *body = parallel->regions[0];
  uint32_t rank = tl_op_group_len(extract, TL_GROUP_EXTRACT_index);
  if (rank != body->num_args) return false;
  for (uint32_t d = 0; d < rank; d++)
    if (tl_op_group_at(extract, TL_GROUP_EXTRACT_index, d) != body->args[d]) return false;
  return true;
}

static tl_term term_of_extract(tl_waiting_sum *self, const tl_op *parallel, const tl_op *extract) {
  if (!becomes_part(self, tl_op_arg(extract, TL_GROUP_EXTRACT_tile))) return TL_TERM_OTHER;
  return is_own_element(extract, parallel) ? TL_TERM_PART : TL_TERM_MIXED;
}

// A sum of both: what is no part joins that of one thread.
static tl_term added(tl_term a, tl_term b) {
  if (a == TL_TERM_MIXED || b == TL_TERM_MIXED) return TL_TERM_MIXED;
  return a == TL_TERM_PART || b == TL_TERM_PART ? TL_TERM_PART : TL_TERM_OTHER;
}

static tl_term multiplied(tl_term a, tl_term b) {
  if (a == TL_TERM_OTHER && b == TL_TERM_OTHER) return TL_TERM_OTHER;
  return a != TL_TERM_MIXED && b != TL_TERM_MIXED && (a == TL_TERM_OTHER || b == TL_TERM_OTHER) ? TL_TERM_PART
                                                                                                : TL_TERM_MIXED;
}

// Nothing is rounded and nothing wraps on the way to the other dtype.
static bool widens(tl_dtype from, tl_dtype to) {
  return from == to || (tl_dtype_is_float(from) && tl_dtype_is_float(to) && tl_dtype_bits(to) > tl_dtype_bits(from));
}

static tl_term term_of_op(const tl_op *op, const tl_term *terms) {
  bool any = false;
  for (uint32_t i = 0; i < op->num_operands; i++) any |= terms[i] != TL_TERM_OTHER;
  if (!any) return TL_TERM_OTHER;
  switch (op->code) {
    case TL_OP_ADD:
    case TL_OP_SUB:
      return added(terms[0], terms[1]);
    case TL_OP_MUL:
      return multiplied(terms[0], terms[1]);
    case TL_OP_FMA:
      return multiplied(terms[0], terms[1]) == TL_TERM_PART ? added(TL_TERM_PART, terms[2]) : TL_TERM_MIXED;
    case TL_OP_DIV:
      return terms[1] == TL_TERM_OTHER ? terms[0] : TL_TERM_MIXED;
    case TL_OP_NEG:
      return terms[0];
    case TL_OP_SELECT:
      return terms[0] == TL_TERM_OTHER ? added(terms[1], terms[2]) : TL_TERM_MIXED;
    case TL_OP_CAST:
      return widens(tl_op_operand(op, 0)->type->dtype, op->results[0].type->dtype) ? terms[0] : TL_TERM_MIXED;
    default:
      return TL_TERM_MIXED;
  }
}

static tl_term look_at_element(tl_waiting_sum *self, const tl_op *parallel, const tl_op *def) {
  enum { MAX_OPERANDS = 4 };
  if (def->code == TL_OP_EXTRACT) return term_of_extract(self, parallel, def);
  tl_term terms[MAX_OPERANDS] = {TL_TERM_OTHER};
  bool any = false;
  for (uint32_t i = 0; i < def->num_operands; i++) {
    tl_term term = tl_term_of(self, parallel, tl_op_operand(def, i));
    if (i < MAX_OPERANDS) terms[i] = term;
    any |= term != TL_TERM_OTHER;
  }
  if (def->num_operands > MAX_OPERANDS) return any ? TL_TERM_MIXED : TL_TERM_OTHER;
  return term_of_op(def, terms);
}

tl_term tl_term_of(tl_waiting_sum *self, const tl_op *parallel, tl_value *element) {
  const tl_op *def = element->def;
  tl_term term = TL_TERM_OTHER;
  if (!def || def->parent != parallel->regions[0] || recall(self, element, &term)) return term;
  term = look_at_element(self, parallel, def);
  remember(self, element, term);
  return term;
}

// Whether the elements can be computed beside where they are: pure ops and loads, none of them in branches.
static bool is_plain(const tl_op *parallel) {
  for (const tl_op *op = parallel->regions[0]->first; op; op = op->next) {
    bool is_pure = (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) != 0 && op->num_regions == 0;
    if (!is_pure && op->code != TL_OP_LOAD && op->code != TL_OP_EXTRACT && op->code != TL_OP_YIELD) return false;
  }
  return true;
}

static bool maps_identity(const tl_op *parallel, uint32_t index) {
  const int64_t *maps = tl_op_ints(parallel, TL_ATTR_MAPS, NULL);
  int32_t rank = tl_op_result(parallel, index)->type->rank;
  for (uint32_t i = 0; i < index && maps; i++) maps += tl_op_result(parallel, i)->type->rank;
  for (int32_t d = 0; d < rank && maps; d++)
    if (maps[d] != d) return false;
  return rank == (int32_t)parallel->regions[0]->num_args;
}

// ---- tiles

static bool look_at_sum(tl_waiting_sum *self, tl_op *reduce) {
  int reduction = (int)tl_op_int(reduce, TL_ATTR_REDUCTION, 0);
  bool is_sum = reduction == TL_REDUCTION_SUM || reduction == TL_REDUCTION_ABSSUM;
  const tl_layout *source = tl_op_group_at(reduce, TL_GROUP_REDUCE_src, 0)->type->layout;
  if (!is_sum || !source || tl_reduce_within_of(reduce) != TL_WITHIN_BLOCK) return false;
  bool reduced[TL_MAX_RANK], along[TL_MAX_RANK] = {false};
  tl_reduce_axes(reduce, reduced);
  if (tl_layout_parts(source, reduced, TL_WITHIN_THREAD) == 1) return false;
  self->adds_over_threads = true;
  const tl_layout *whole = reduce->results[0].type->layout;
  if (whole->rank == TL_MAX_RANK) {
    refuse(self, reduce->loc, "its tiles have no room for one more dim");
    return false;
  }
  tl_layout part = tl_layout_reduce(source, reduced, tl_op_has(reduce, TL_ATTR_KEEPDIMS), TL_WITHIN_THREAD);
  along[whole->rank] = true;
  tl_layout combined = tl_layout_reduce(&part, along, false, TL_WITHIN_BLOCK);
  if (!tl_layout_equal(&combined, whole) || (self->num_sums > 0 && !tl_layout_equal(&part, &self->part))) {
    refuse(self, reduce->loc, "the threads hold its terms in different ways");
    return false;
  }
  self->part = part;
  self->whole = *whole;
  self->num_sums++;
  self->crosses_warps |= tl_layout_parts(source, reduced, TL_WITHIN_WARP) > 1;
  return true;
}

static bool look_at_parallel(tl_waiting_sum *self, tl_op *parallel, uint32_t index) {
  size_t before = self->parts.len;
  const tl_value *element = tl_op_operand(tl_block_terminator(parallel->regions[0]), index);
  tl_term term = tl_term_of(self, parallel, (tl_value *)element);
  if (term == TL_TERM_MIXED) {
    bool rounds =
        element->def->code == TL_OP_CAST && tl_term_of(self, parallel, tl_op_operand(element->def, 0)) == TL_TERM_PART;
    refuse(
        self, parallel->loc,
        rounds ? "it is rounded in every iteration" : "it is not only added to, and multiplied by what is no such sum");
  } else if (term == TL_TERM_PART && !is_plain(parallel)) {
    refuse(self, parallel->loc, "it is added up beside statements that do more");
  } else if (term == TL_TERM_PART && !maps_identity(parallel, index)) {
    refuse(self, parallel->loc, "its elements change places");
  } else if (term == TL_TERM_PART) {
    return true;
  }
  forget_parts(self, before);
  return false;
}

// The value that a loop inside hands on: parts where it begins with parts.
static bool look_at_inner(tl_waiting_sum *self, tl_op *inner, uint32_t index) {
  if (!becomes_part(self, tl_op_group_at(inner, TL_GROUP_FOR_inits, index))) return false;
  bool may_reorder = tl_op_has(inner, TL_ATTR_ANY_ORDER) || tl_dtype_is_int(tl_op_result(inner, index)->type->dtype);
  size_t before = self->parts.len;
  if (may_reorder) tl_add_part(self, inner->regions[0]->args[index + 1]);
  becomes_part(self, tl_op_operand(tl_block_terminator(inner->regions[0]), index));
  if (may_reorder) return true;
  refuse(self, inner->loc, "a loop inside adds it up as written");
  forget_parts(self, before);
  return false;
}

static bool look_at_branches(tl_waiting_sum *self, tl_op *op, uint32_t index) {
  bool is_part = false;
  for (uint32_t r = 0; r < op->num_regions; r++)
    is_part |= becomes_part(self, tl_op_operand(tl_block_terminator(op->regions[r]), index));
  return is_part;
}

static bool look_at(tl_waiting_sum *self, tl_value *value) {
  tl_op *def = value->def;
  if (!def || !tl_op_is_inside(def, self->loop) || def == self->loop) return false;
  switch (def->code) {
    case TL_OP_REDUCE:
      return look_at_sum(self, def);
    case TL_OP_PARALLEL:
      return look_at_parallel(self, def, value->index);
    case TL_OP_IF:
      return look_at_branches(self, def, value->index);
    case TL_OP_FOR:
      return look_at_inner(self, def, value->index);
    default:
      return false;
  }
}

static bool becomes_part(tl_waiting_sum *self, tl_value *value) {
  tl_term term = TL_TERM_OTHER;
  if (value->type->kind != TL_TYPE_TILE) return false;
  if (recall(self, value, &term)) return term == TL_TERM_PART;
  if (look_at(self, value)) {
    tl_add_part(self, value);
    return true;
  }
  remember(self, value, TL_TERM_OTHER);
  return false;
}

// ---- who reads parts

static bool is_reached(const tl_waiting_sum *self, const tl_value *value) {
  return value->number < self->reached.len && self->reached.items[value->number] == self->search;
}

static void reach(tl_waiting_sum *self, const tl_value *value) {
  while (self->reached.len <= value->number) tl_vec_push(&self->reached, 0);
  self->reached.items[value->number] = self->search;
}

// Whether all that the parallel makes of this element of a part are parts.
static bool is_read_as_part(tl_waiting_sum *self, const tl_op *parallel, tl_op *extract) {
  if (!is_plain(parallel)) return false;
  self->search++;
  reach(self, tl_op_result(extract, 0));
  for (tl_op *op = extract->next; op; op = op->next) {
    bool reads = false;
    for (uint32_t i = 0; i < op->num_operands; i++) {
      if (!is_reached(self, tl_op_operand(op, i))) continue;
      reads = true;
      if (op->code != TL_OP_YIELD) continue;
      tl_value *result = tl_op_result(parallel, i);
      if (result->uses && !becomes_part(self, result)) return false;
    }
    for (uint32_t i = 0; reads && i < op->num_results; i++) reach(self, tl_op_result(op, i));
  }
  return true;
}

static bool is_handed_on_as_part(tl_waiting_sum *self, tl_op *yield, uint32_t index) {
  tl_op *around = yield->parent->parent;
  if (around == self->loop) return index == self->index;
  if (around->code == TL_OP_IF) return becomes_part(self, tl_op_result(around, index));
  return around->code == TL_OP_FOR && tl_is_part(self, around->regions[0]->args[index + 1]);
}

static bool is_use_of_part(tl_waiting_sum *self, const tl_use *use) {
  tl_op *owner = use->owner;
  uint32_t index = (uint32_t)(use - owner->operands);
  if (owner->code == TL_OP_YIELD) return is_handed_on_as_part(self, owner, index);
  if (owner->code == TL_OP_EXTRACT) {
    tl_op *parallel = tl_op_enclosing(owner, TL_OP_PARALLEL);
    return parallel && owner->parent == parallel->regions[0] && is_read_as_part(self, parallel, owner);
  }
  return owner->code == TL_OP_FOR && index >= 3 && becomes_part(self, tl_op_result(owner, index - 3));
}

static bool lies_as_sum(const tl_waiting_sum *self, const tl_value *value) {
  return value->type->layout && tl_layout_equal(value->type->layout, &self->whole);
}

static void report_use(tl_waiting_sum *self, const tl_op *reader) {
  const char *reason = reader->code == TL_OP_FOR ? "a loop inside adds it up as written" : "it is read in the loop";
  self->reason = reason;
  self->reason_loc = reader->loc;
}

// Every part that was found lies as the sums do, and only parts read it. New parts are found on the way.
static void validate_parts(tl_waiting_sum *self) {
  for (size_t i = 0; i < self->parts.len && !self->reason; i++) {
    tl_value *value = self->parts.items[i];
    tl_loc loc = value->def ? value->def->loc : self->loop->loc;
    if (!lies_as_sum(self, value)) refuse(self, loc, "the threads hold its terms in different ways");
    for (const tl_use *use = value->uses; use && !self->reason; use = use->next) {
      bool is_part = is_use_of_part(self, use);
      self->reason = NULL;
      if (!is_part) report_use(self, use->owner);
    }
  }
}

static void find_flight(tl_op *op, void *user) {
  const tl_instruction *inst = op->code == TL_OP_GEMM ? tl_op_instruction(op) : NULL;
  if (inst && inst->family == TL_FAMILY_WGMMA) *(bool *)user = true;
}

// Shuffles within a warp cost nothing beside products that run meanwhile, and loops that do without them were slower
// (H200, attention by tiles of 128 by 128: 1.3 %).
static bool runs_beside_products(const tl_waiting_sum *self) {
  bool found = false;
  if (!self->crosses_warps) tl_walk(self->loop, find_flight, &found);
  return found;
}

void tl_find_waiting_sum(tl_waiting_sum *self) {
  tl_value *carried = self->loop->regions[0]->args[self->index + 1];
  tl_value *next = tl_op_operand(tl_block_terminator(self->loop->regions[0]), self->index);
  tl_add_part(self, carried);
  if (!becomes_part(self, next)) {
    refuse(self, self->loop->loc, "its next value is no sum");
    return;
  }
  // What was said of values on the way does not keep this one from being parts.
  self->reason = NULL;
  if (self->num_sums == 0) refuse(self, self->loop->loc, "no sum over threads is added to it");
  validate_parts(self);
  if (!self->reason && runs_beside_products(self))
    refuse(self, self->loop->loc, "only the lanes of a warp share it, and they combine it while products run");
}
