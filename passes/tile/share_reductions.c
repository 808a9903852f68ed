// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// share-reductions: the threads of a block share the terms of a sum that each of them would compute.
//
//   %t = for lower(%c0) upper(%N) step(%c1) inits(%zero) do(%k, %sum) {reduction = sum, uniform} {
//     %x = load buffer(%s) index(%k); %next = add %sum, %x; yield %next
//   }
//     →   fill %shares, %zero
//         for %n in ceildiv(%N, 2048) {
//           parallel {extents = [2048]} do(%i) {
//             %k = 2048 * %n + %i
//             if %k < %N { %x = load buffer(%s) index(%k); shares[%i] = add shares[%i], %x }
//           }
//         }
//         reduce src(%shares) dst(%combined); result[0] = combined[0]; %t = load result[0]
//
// Where few enough terms are known to be, there is no loop: a `parallel` over the indices of all nested loops stores
// each term. Otherwise one of the loops goes on in strides of the block, and those around it stay.
//
// Needs check-uniform, which marks what is the same in every thread; before choose-schedule, which counts the registers
// of the shares.
#include "ir/reduction.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"
#include "support/vec.h"

enum {
  MAX_SERIAL = 64,   // terms: fewer take no longer than the block needs to meet
  MAX_AT_ONCE = 32,  // terms of a thread without a loop
  MIN_SHARES = 8,    // terms of a thread in one iteration of the loop: two loads of four
  MAX_SHARES = 16,
  VECTOR_BITS = 128
};

typedef TL_VEC(tl_op *) op_list;

typedef struct sharing {
  tl_pass_context *context;
  tl_op *loops[TL_MAX_RANK];  // outermost first
  uint32_t count;
  uint32_t first;     // the loops from here on are the block's, those before stay
  bool is_strided;    // the first of them some of its terms at a time
  int32_t read_bits;  // of the narrowest element that a term reads; 0: it reads none
  tl_op *combine;     // the innermost op that adds the term
  tl_value *term;
  int64_t extents[TL_MAX_RANK];  // of the parallel
  int32_t rank;
  tl_value_map map;
} sharing;

// ---- what is there

static tl_value *yielded(const tl_op *loop, uint32_t index) {
  return tl_op_operand(tl_block_terminator(loop->regions[0]), index);
}

static tl_value *carried(const tl_op *loop) {
  return loop->regions[0]->args[1];
}

static uint32_t count_uses(const tl_value *value) {
  uint32_t count = 0;
  for (const tl_use *use = value->uses; use; use = use->next) count++;
  return count;
}

static bool is_flag(const tl_value *value, const tl_op *inner) {
  int64_t constant;
  return tl_value_const_int(value, &constant) ? constant != 0 : inner && value == tl_op_result(inner, 1);
}

// A sum's loop: it carries the sum, and for an extreme whether there were terms.
static bool is_plain(const tl_op *loop, const tl_op *inner) {
  int64_t step, begin;
  if (!tl_op_has(loop, TL_ATTR_REDUCTION) || loop->num_results == 0 || loop->num_results > 2) return false;
  if (tl_op_has(loop, TL_ATTR_WHILE) || count_uses(carried(loop)) != 1) return false;
  if (!tl_value_const_int(tl_op_arg(loop, TL_GROUP_FOR_step), &step) || step != 1) return false;
  if (loop->num_results == 1) return true;
  if (loop->regions[0]->args[2]->uses && !inner) return false;
  return tl_value_const_int(tl_op_group_at(loop, TL_GROUP_FOR_inits, 1), &begin)
             ? begin == 0 && is_flag(yielded(loop, 1), inner)
             : false;
}

static tl_op *inner_loop(const tl_op *loop) {
  tl_op *op = yielded(loop, 0)->def;
  bool is_inner = op && op->code == TL_OP_FOR && op->parent == loop->regions[0] && tl_op_has(op, TL_ATTR_REDUCTION) &&
                  yielded(loop, 0) == tl_op_result(op, 0) && tl_op_group_at(op, TL_GROUP_FOR_inits, 0) == carried(loop);
  return is_inner ? op : NULL;
}

static bool combines(int reduction, tl_opcode code) {
  switch (reduction) {
    case TL_REDUCTION_SUM:
      return code == TL_OP_ADD;
    case TL_REDUCTION_PROD:
      return code == TL_OP_MUL;
    case TL_REDUCTION_MAX:
      return code == TL_OP_MAX;
    case TL_REDUCTION_MIN:
      return code == TL_OP_MIN;
    case TL_REDUCTION_ANY:
      return code == TL_OP_OR;
    case TL_REDUCTION_ALL:
      return code == TL_OP_AND;
    default:
      return false;
  }
}

// The loops of the sum and the op that adds its terms. A text: why they cannot be shared out.
static const char *collect(sharing *self, tl_op *outermost) {
  int reduction = (int)tl_op_int(outermost, TL_ATTR_REDUCTION, 0);
  if (tl_reduction_is_arg(reduction)) return "a place is found in order";
  if (tl_op_result(outermost, 0)->type->kind != TL_TYPE_SCALAR) return "it is a sum of indices";
  for (tl_op *loop = outermost; loop; loop = inner_loop(loop)) {
    if (self->count == TL_MAX_RANK) return "it has too many indices";
    tl_op *inner = inner_loop(loop);
    if (!is_plain(loop, inner)) return "its loops do more than add terms";
    self->loops[self->count++] = loop;
  }
  const tl_op *last = self->loops[self->count - 1];
  self->combine = yielded(last, 0)->def;
  if (!self->combine || self->combine->parent != last->regions[0] || !combines(reduction, self->combine->code) ||
      count_uses(yielded(last, 0)) != 1)
    return "its loops do more than add terms";
  uint32_t side = tl_op_operand(self->combine, 0) == carried(last);
  self->term = tl_op_operand(self->combine, side);
  return tl_op_operand(self->combine, !side) == carried(last) ? NULL : "its loops do more than add terms";
}

static bool is_before(const tl_value *value, const tl_op *loop) {
  const tl_op *owner = value->def ? value->def : value->block->parent;
  return !tl_op_is_inside(owner, loop);
}

static void note_read(tl_op *op, void *user) {
  sharing *self = user;
  if (op->code != TL_OP_LOAD || tl_element_buffer(op)->type->scope == TL_SCOPE_LOCAL) return;
  int32_t bits = tl_dtype_bits(tl_element_buffer(op)->type->dtype);
  if (self->read_bits == 0 || bits < self->read_bits) self->read_bits = bits;
}

// Trips of a loop: exactly, or at most when only its largest number is known; INT64_MAX: unknown.
static int64_t trips_of(const tl_op *loop, bool *exact) {
  tl_value *lower = tl_op_arg(loop, TL_GROUP_FOR_lower), *upper = tl_op_arg(loop, TL_GROUP_FOR_upper);
  tl_affine from = tl_affine_of(lower), to = tl_affine_of(upper), extent = tl_affine_sub(&to, &from);
  tl_range range = extent.valid ? tl_affine_range(&extent) : (tl_range){INT64_MIN, INT64_MAX};
  *exact = range.lo == range.hi;
  return range.hi < 0 ? 0 : range.hi;
}

// ---- what is chosen

// Terms of the whole sum, at most.
static int64_t most_terms(const sharing *self) {
  int64_t terms = 1;
  for (uint32_t i = 0; i < self->count; i++) {
    bool exact;
    int64_t trips = trips_of(self->loops[i], &exact);
    terms = trips > 0 && terms > INT64_MAX / trips ? INT64_MAX : terms * trips;
  }
  return terms;
}

// Terms of a thread in one iteration: two loads of the widest kind, of the narrowest element.
static int64_t shares_of_thread(const sharing *self) {
  int64_t each = self->read_bits ? 2 * VECTOR_BITS / self->read_bits : MIN_SHARES;
  return each < MIN_SHARES ? MIN_SHARES : each > MAX_SHARES ? MAX_SHARES : each;
}

// As many of the innermost loops as have few enough terms at once, and of the loop around them some of its terms at a
// time.
static void choose(sharing *self, int32_t threads) {
  int64_t at_once = 1, limit = (int64_t)threads * MAX_AT_ONCE, extents[TL_MAX_RANK];
  self->first = self->count;
  bool exact;
  while (self->first > 0) {
    int64_t trips = trips_of(self->loops[self->first - 1], &exact);
    if (!exact || trips == 0 || trips > limit / at_once) break;
    at_once *= trips;
    self->first--;
    extents[self->first] = trips;
  }
  int64_t each = shares_of_thread(self);
  if (self->first > 0 && at_once * 2 <= threads * each) {
    int64_t trips = trips_of(self->loops[self->first - 1], &exact);
    while (each > 1 && trips <= threads * each / at_once / 2) each /= 2;
    self->is_strided = true;
    self->first--;
    extents[self->first] = (threads * each + at_once - 1) / at_once;
  }
  for (uint32_t i = self->first; i < self->count; i++) self->extents[self->rank++] = extents[i];
}

static int64_t shares(const sharing *self) {
  int64_t count = 1;
  for (int32_t d = 0; d < self->rank; d++) count *= self->extents[d];
  return count;
}

// ---- what is built

static tl_value *build_tile(sharing *self, int scope, const char *name, tl_dtype dtype, const int64_t *dims,
                            int32_t rank, tl_loc loc) {
  tl_module *module = self->context->module;
  tl_builder builder;
  tl_builder_before(&builder, module, tl_module_kernel(module)->regions[0]->first);
  builder.loc = loc;
  const tl_type *type = tl_type_buffer(module, scope, dtype, dims, rank);
  tl_op *op = tl_build(&builder, TL_OP_ALLOC, NULL, &type, 1);
  tl_op_set_str(module, op, TL_ATTR_NAME, tl_str_from(name));
  tl_op_result(op, 0)->name = tl_module_intern(module, tl_str_from(name));
  return tl_op_result(op, 0);
}

static void set_inside(sharing *self, tl_op *op, int32_t rank) {
  static const int64_t inside[TL_MAX_RANK] = {0};
  tl_op_set_ints(self->context->module, op, TL_ATTR_CHECK, inside, rank);
}

static tl_value *build_load(sharing *self, tl_builder *builder, tl_value *tile, tl_value *const *indices) {
  const tl_type *type = tl_type_scalar(self->context->module, tile->type->dtype);
  tl_group groups[3] = {TL_GROUP_OF(tile), {indices, (uint32_t)tile->type->rank}, TL_GROUP_EMPTY};
  tl_op *op = tl_build(builder, TL_OP_LOAD, groups, &type, 1);
  set_inside(self, op, tile->type->rank);
  return tl_op_result(op, 0);
}

static void build_store(sharing *self, tl_builder *builder, tl_value *value, tl_value *tile, tl_value *const *indices) {
  tl_group groups[3] = {TL_GROUP_OF(value), TL_GROUP_OF(tile), {indices, (uint32_t)tile->type->rank}};
  set_inside(self, tl_build(builder, TL_OP_STORE, groups, NULL, 0), tile->type->rank);
}

static tl_value *mapped(const sharing *self, const tl_op *loop, int group) {
  return tl_value_map_get(&self->map, tl_op_arg(loop, group));
}

// What stands in a loop of the sum beside the loop in it, or beside the op that adds.
static void clone_body(sharing *self, tl_builder *builder, uint32_t index) {
  const tl_op *loop = self->loops[index], *skipped = index + 1 < self->count ? self->loops[index + 1] : self->combine;
  for (const tl_op *op = loop->regions[0]->first; op; op = op->next) {
    if (op != skipped && op->code != TL_OP_YIELD) tl_op_clone(builder, op, &self->map);
  }
}

static tl_op *build_loop(sharing *self, tl_builder *builder, tl_value *lower, tl_value *upper) {
  tl_value *one = tl_build_index(builder, 1);
  tl_group groups[4] = {TL_GROUP_OF(lower), TL_GROUP_OF(upper), TL_GROUP_OF(one), TL_GROUP_EMPTY};
  tl_op *loop = tl_build(builder, TL_OP_FOR, groups, NULL, 0);
  tl_block_add_arg(self->context->module, loop->regions[0], tl_type_index(self->context->module), NULL);
  return loop;
}

// The builder enters the op's first region, which ends in a yield from now on.
static tl_builder enter(sharing *self, tl_builder *builder, tl_op *op) {
  tl_builder outer = *builder;
  tl_builder_at_end(builder, self->context->module, op->regions[0]);
  builder->loc = outer.loc;
  tl_op *yield = tl_build_yield(builder, NULL, 0);
  tl_builder_before(builder, self->context->module, yield);
  builder->loc = outer.loc;
  return outer;
}

static void add_term(sharing *self, tl_builder *builder, tl_value *tile, tl_value *const *indices, bool adds) {
  tl_value *term = tl_value_map_get(&self->map, self->term);
  if (adds) term = tl_build_binary(builder, self->combine->code, build_load(self, builder, tile, indices), term);
  build_store(self, builder, term, tile, indices);
}

// What is the same in every thread is no longer so where each computes another term.
static void forget_uniform(tl_op *op, void *user) {
  (void)user;
  if (op->code == TL_OP_LOAD || op->code == TL_OP_IF || op->code == TL_OP_FOR) tl_op_remove_attr(op, TL_ATTR_UNIFORM);
}

// The terms of one iteration, each at its place of `tile`.
static void build_share(sharing *self, tl_builder *builder, tl_value *tile, tl_value *base, bool adds) {
  tl_module *module = self->context->module;
  tl_op *parallel = tl_build(builder, TL_OP_PARALLEL, NULL, NULL, 0);
  tl_op_set_ints(module, parallel, TL_ATTR_EXTENTS, self->extents, self->rank);
  tl_value *indices[TL_MAX_RANK];
  for (int32_t d = 0; d < self->rank; d++)
    indices[d] = tl_block_add_arg(module, parallel->regions[0], tl_type_index(module), NULL);
  enter(self, builder, parallel);
  for (uint32_t i = self->first; i < self->count; i++) {
    tl_value *index = tl_index_add(builder, mapped(self, self->loops[i], TL_GROUP_FOR_lower), indices[i - self->first]);
    if (base && i == self->first) index = tl_index_add(builder, base, index);
    tl_value *upper = mapped(self, self->loops[i], TL_GROUP_FOR_upper);
    tl_value_map_set(&self->map, self->loops[i]->regions[0]->args[0], index);
    if (base && i == self->first && !tl_prove_lt(index, upper)) {
      tl_group group = TL_GROUP_OF(tl_build_cmp(builder, TL_CMP_LT, index, upper));
      enter(self, builder, tl_build(builder, TL_OP_IF, &group, NULL, 0));
    }
    clone_body(self, builder, i);
  }
  add_term(self, builder, tile, indices, adds);
  tl_walk(parallel, forget_uniform, NULL);
}

// The terms of all loops into `tile`.
static void build_terms(sharing *self, tl_builder builder, tl_value *tile) {
  bool adds = self->first > 0 || self->is_strided;
  if (adds) {
    tl_group groups[2] = {TL_GROUP_OF(tile), TL_GROUP_OF(tl_op_group_at(self->loops[0], TL_GROUP_FOR_inits, 0))};
    tl_build(&builder, TL_OP_FILL, groups, NULL, 0);
  }
  for (uint32_t i = 0; i < self->first; i++) {
    tl_value *lower = mapped(self, self->loops[i], TL_GROUP_FOR_lower);
    tl_op *loop = build_loop(self, &builder, lower, mapped(self, self->loops[i], TL_GROUP_FOR_upper));
    tl_value_map_set(&self->map, self->loops[i]->regions[0]->args[0], loop->regions[0]->args[0]);
    enter(self, &builder, loop);
    clone_body(self, &builder, i);
  }
  tl_value *base = NULL;
  if (self->is_strided) {
    const tl_op *last = self->loops[self->first];
    tl_value *each = tl_build_index(&builder, self->extents[0]), *rest = tl_build_index(&builder, self->extents[0] - 1);
    tl_value *lower = mapped(self, last, TL_GROUP_FOR_lower);
    tl_value *extent = tl_index_sub(&builder, mapped(self, last, TL_GROUP_FOR_upper), lower);
    tl_value *iterations = tl_index_floordiv(&builder, tl_index_add(&builder, extent, rest), each);
    tl_op *loop = build_loop(self, &builder, tl_build_index(&builder, 0), iterations);
    enter(self, &builder, loop);
    base = tl_index_mul(&builder, loop->regions[0]->args[0], tl_build_index(&builder, self->extents[0]));
  }
  build_share(self, &builder, tile, base, adds);
}

// What the shares come to, in every thread.
static tl_value *build_result(sharing *self, tl_builder *builder, tl_value *tile) {
  tl_module *module = self->context->module;
  int reduction = (int)tl_op_int(self->loops[0], TL_ATTR_REDUCTION, 0);
  tl_dtype dtype = tl_reduction_dtype(reduction, tile->type->dtype);
  int64_t one = 1, axes[TL_MAX_RANK];
  for (int32_t d = 0; d < self->rank; d++) axes[d] = d;
  tl_value *combined = build_tile(self, TL_SCOPE_FRAGMENT, "combined", dtype, &one, 1, builder->loc);
  tl_value *result = build_tile(self, TL_SCOPE_SHARED, "result", dtype, &one, 1, builder->loc);
  tl_group groups[2] = {TL_GROUP_OF(tile), TL_GROUP_OF(combined)};
  tl_op *reduce = tl_build(builder, TL_OP_REDUCE, groups, NULL, 0);
  tl_op_set_int(module, reduce, TL_ATTR_REDUCTION, reduction);
  tl_op_set_ints(module, reduce, TL_ATTR_AXES, axes, self->rank);
  tl_op *parallel = tl_build(builder, TL_OP_PARALLEL, NULL, NULL, 0);
  tl_op_set_ints(module, parallel, TL_ATTR_EXTENTS, &one, 1);
  tl_value *index = tl_block_add_arg(module, parallel->regions[0], tl_type_index(module), NULL);
  tl_builder outer = enter(self, builder, parallel);
  build_store(self, builder, build_load(self, builder, combined, &index), result, &index);
  *builder = outer;
  tl_value *zero = tl_build_index(builder, 0), *value = build_load(self, builder, result, &zero);
  tl_op_set_unit(module, value->def, TL_ATTR_UNIFORM);
  return tl_build_cast(builder, value, tl_op_result(self->loops[0], 0)->type);
}

// Whether there are terms at all.
static tl_value *build_has_terms(const sharing *self, tl_builder *builder) {
  tl_value *all = NULL;
  for (uint32_t i = 0; i < self->count; i++) {
    const tl_op *loop = self->loops[i];
    tl_value *some =
        tl_build_cmp(builder, TL_CMP_LT, tl_op_arg(loop, TL_GROUP_FOR_lower), tl_op_arg(loop, TL_GROUP_FOR_upper));
    all = all ? tl_build_binary(builder, TL_OP_AND, all, some) : some;
  }
  return all;
}

static void replace(sharing *self) {
  tl_op *outermost = self->loops[0];
  tl_builder builder;
  tl_builder_before(&builder, self->context->module, outermost);
  tl_dtype dtype = tl_op_result(outermost, 0)->type->dtype;
  tl_value *tile = build_tile(self, TL_SCOPE_FRAGMENT, "shares", dtype, self->extents, self->rank, outermost->loc);
  build_terms(self, builder, tile);
  tl_value *has_terms = outermost->num_results == 2 ? build_has_terms(self, &builder) : NULL;
  tl_value_replace_uses(tl_op_result(outermost, 0), build_result(self, &builder, tile));
  if (has_terms) tl_value_replace_uses(tl_op_result(outermost, 1), has_terms);
  tl_op_erase(outermost);
}

// Whether all bounds that the block needs at once are known before the sum.
static bool has_plain_bounds(const sharing *self) {
  bool needs_all = self->loops[0]->num_results == 2, plain = true;
  for (uint32_t i = 0; i < self->count; i++) {
    bool needed = needs_all || i >= self->first + self->is_strided;
    const tl_op *loop = self->loops[i];
    plain = plain && (!needed || (is_before(tl_op_arg(loop, TL_GROUP_FOR_lower), self->loops[0]) &&
                                  is_before(tl_op_arg(loop, TL_GROUP_FOR_upper), self->loops[0])));
  }
  return plain;
}

// A text: why the threads cannot share the terms of the sum. NULL: they do, or there are too few.
static const char *share(sharing *self, tl_op *loop) {
  tl_walk(loop, note_read, self);
  const char *reason = collect(self, loop);
  if (reason) return reason;
  if (!tl_op_has(loop, TL_ATTR_UNIFORM)) return "its terms, or whether it runs, differ between threads";
  int32_t threads = tl_op_threads(loop);
  choose(self, threads);
  if (!has_plain_bounds(self)) return "its bounds depend on its own indices";
  if (shares(self) * 2 < threads) return "its innermost index has few terms";
  const char *name = tl_ir_enum_text(TL_IR_ENUM_REDUCTION, (int)tl_op_int(loop, TL_ATTR_REDUCTION, 0));
  tl_diag_report(self->context->diags, TL_DIAG_REMARK_SHARED_SUM, loop->loc,
                 "the %d threads share the terms of this `%s`, %lld %s", threads, name, (long long)shares(self),
                 self->is_strided || self->first > 0 ? "at a time" : "in all");
  replace(self);
  return NULL;
}

static void collect_loops(tl_op *op, void *user) {
  op_list *loops = user;
  if (op->code != TL_OP_FOR || !tl_op_has(op, TL_ATTR_REDUCTION) || tl_op_enclosing(op, TL_OP_PARALLEL)) return;
  for (const tl_op *around = op->parent->parent; around; around = around->parent ? around->parent->parent : NULL) {
    if (around->code == TL_OP_FOR && tl_op_has(around, TL_ATTR_REDUCTION)) return;
  }
  tl_vec_push(loops, op);
}

tl_status tl_pass_share_reductions(tl_pass_context *context) {
  op_list loops = {0};
  tl_walk_module(context->module, collect_loops, &loops);
  for (size_t i = 0; i < loops.len; i++) {
    sharing self = {.context = context};
    tl_op *loop = loops.items[i];
    for (tl_op *inner = loop; inner && self.count < TL_MAX_RANK; inner = inner_loop(inner))
      self.loops[self.count++] = inner;
    int64_t terms = most_terms(&self);
    self.count = 0;
    const char *reason = terms > MAX_SERIAL ? share(&self, loop) : NULL;
    if (reason) {
      tl_diag_report(context->diags, TL_DIAG_REMARK_SERIAL_SUM, loop->loc,
                     "every thread computes all terms of this `%s`: %s",
                     tl_ir_enum_text(TL_IR_ENUM_REDUCTION, (int)tl_op_int(loop, TL_ATTR_REDUCTION, 0)), reason);
    }
    tl_value_map_fini(&self.map);
  }
  tl_vec_fini(&loops);
  return TL_OK;
}
