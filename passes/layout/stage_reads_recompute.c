// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles that are made anew for each op that reads them, so that nothing of them is held in between.
//
//   %m = reduce %x; %e = parallel { exp(%x - %m) }; %z = reduce %e; %y = parallel { %e / %z }; tile_store %y
//   → %m = reduce (load); %z = reduce parallel { exp((load) - %m) }; tile_store parallel { parallel { … } / %z }
//
// The op that reads a tile and stays (a reduce, a tile_store, a parallel of another shape) is a reader; a parallel that
// makes a tile of the same shape from one of the tiles, element by element and purely, is cloned.
#include "passes/layout/stage_reads.h"

enum { MAX_READERS = 8, MAX_STEPS = 8 };

typedef struct recomputing {
  tl_module *module;
  tl_op *load;
  const tl_op *kernel;
  TL_VEC(tl_op *) steps;    // parallels to clone, in program order
  TL_VEC(tl_op *) readers;  // in program order
} recomputing;

static bool is_step(const recomputing *self, const tl_op *op) {
  for (size_t i = 0; i < self->steps.len; i++) {
    if (self->steps.items[i] == op) return true;
  }
  return false;
}

static bool is_anew(const recomputing *self, const tl_value *value) {
  return value->def == self->load || (value->def && is_step(self, value->def));
}

// A parallel over the whole tile without effects and without memory: its results depend on tiles and scalars only.
static bool can_be_step(const recomputing *self, const tl_op *op) {
  const tl_type *tile = tl_op_result(self->load, 0)->type;
  int32_t rank = 0;
  if (op->code != TL_OP_PARALLEL || op->num_results == 0) return false;
  const int64_t *extents = tl_op_ints(op, TL_ATTR_EXTENTS, &rank);
  if (rank != tile->rank) return false;
  for (int32_t d = 0; d < rank; d++) {
    if (extents[d] != tile->dims[d]) return false;
  }
  for (const tl_op *inner = op->regions[0]->first; inner; inner = inner->next) {
    bool pure = (tl_op_info_of(inner->code)->flags & TL_OPFLAG_PURE) != 0 || inner->code == TL_OP_YIELD;
    if (!pure || inner->num_regions > 0) return false;
  }
  return true;
}

static bool reads_anew(const recomputing *self, const tl_op *op) {
  for (uint32_t i = 0; i < op->num_operands; i++) {
    if (is_anew(self, tl_op_operand(op, i))) return true;
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r] ? op->regions[r]->first : NULL; inner; inner = inner->next) {
      if (reads_anew(self, inner)) return true;
    }
  }
  return false;
}

// Sorts what follows the load into steps and readers; false where one of them does not fit the scheme.
static bool sort_ops(recomputing *self) {
  for (tl_op *op = self->load->next; op; op = op->next) {
    if (!reads_anew(self, op)) continue;
    if (can_be_step(self, op)) {
      tl_vec_push(&self->steps, op);
    } else {
      if (op->num_regions > 0 && op->code != TL_OP_PARALLEL) return false;
      tl_vec_push(&self->readers, op);
    }
  }
  return self->readers.len >= 2 && self->readers.len <= MAX_READERS && self->steps.len <= MAX_STEPS;
}

static void fini(recomputing *self) {
  tl_vec_fini(&self->steps);
  tl_vec_fini(&self->readers);
}

bool tl_can_recompute(tl_op *load) {
  recomputing self = {.load = load, .kernel = load->parent->parent};
  bool result = self.kernel->code == TL_OP_KERNEL && sort_ops(&self);
  fini(&self);
  return result;
}

static tl_value *make_anew(recomputing *self, tl_value *value, tl_op *before, tl_value_map *map);

// Points the op's operands, and those inside of it, at tiles made anew before `before`.
static void replace_operands(recomputing *self, tl_op *op, tl_op *before, tl_value_map *map) {
  for (uint32_t i = 0; i < op->num_operands; i++) {
    tl_value *value = tl_op_operand(op, i);
    if (is_anew(self, value)) tl_op_set_operand(op, i, make_anew(self, value, before, map));
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (tl_op *inner = op->regions[r]->first; inner; inner = inner->next) replace_operands(self, inner, before, map);
  }
}

static tl_value *make_anew(recomputing *self, tl_value *value, tl_op *before, tl_value_map *map) {
  tl_value *known = tl_value_map_get(map, value);
  if (known != value) return known;
  tl_builder builder;
  tl_builder_before(&builder, self->module, before);
  tl_value_map inner = {0};
  tl_op *copy = tl_op_clone(&builder, value->def, &inner);
  tl_value_map_fini(&inner);
  for (uint32_t i = 0; i < copy->num_results; i++) tl_value_map_set(map, &value->def->results[i], &copy->results[i]);
  // The copy still reads the old tiles: those go before it.
  replace_operands(self, copy, copy, map);
  return tl_value_map_get(map, value);
}

tl_op *tl_recompute(tl_module *module, tl_op *load) {
  recomputing self = {.module = module, .load = load, .kernel = load->parent->parent};
  sort_ops(&self);
  tl_op *first = load->next;
  for (size_t i = 0; i < self.readers.len; i++) {
    tl_op *reader = self.readers.items[i];
    tl_value_map map = {0};
    tl_op *previous = reader->prev;
    replace_operands(&self, reader, reader, &map);
    tl_value_map_fini(&map);
    if (i == 0) first = previous->next;
  }
  for (size_t i = self.steps.len; i > 0; i--) tl_op_erase(self.steps.items[i - 1]);
  if (first == load) first = load->next;
  tl_op_erase(load);
  fini(&self);
  return first;
}

// ---- elements

// Whether parallels without results alone read the tile.
static bool is_for_parallels(const tl_value *tile) {
  for (const tl_use *use = tile->uses; use; use = use->next) {
    const tl_op *parallel = use->owner->code == TL_OP_EXTRACT ? tl_op_enclosing(use->owner, TL_OP_PARALLEL) : NULL;
    if (!parallel || parallel->num_results > 0) return false;
  }
  return tile->uses != NULL;
}

static tl_value *load_element(tl_module *module, const tl_op *tile_load, const tl_op *extract, tl_builder *builder) {
  tl_box box = tl_box_source((tl_op *)tile_load);
  tl_value *index[TL_MAX_RANK], *pad = tl_op_arg(tile_load, TL_GROUP_TILE_LOAD_pad);
  int64_t checks[TL_MAX_RANK];
  for (int32_t d = 0; d < box.buffer_rank; d++) {
    index[d] = tl_box_offset(&box, d);
    checks[d] = tl_box_check(&box, d);
    if (box.tile_dim[d] < 0) continue;
    tl_value *along = tl_op_group_at(extract, TL_GROUP_EXTRACT_index, (uint32_t)box.tile_dim[d]);
    index[d] = tl_index_add(builder, index[d], along);
  }
  tl_group groups[] = {TL_GROUP_OF(box.buffer), {index, (uint32_t)box.buffer_rank}, TL_GROUP_EMPTY};
  if (pad) groups[2] = (tl_group)TL_GROUP_OF(pad);
  const tl_type *type = tl_type_scalar(module, box.buffer->type->dtype);
  tl_op *load = tl_build(builder, TL_OP_LOAD, groups, &type, 1);
  tl_op_set_ints(module, load, TL_ATTR_CHECK, checks, box.buffer_rank);
  tl_value *element = tl_op_result(load, 0);
  const tl_type *wanted = tl_op_result(extract, 0)->type;
  if (wanted->dtype == type->dtype) return element;
  return tl_op_result(tl_build(builder, TL_OP_CAST, (tl_group[]){TL_GROUP_OF(element)}, &wanted, 1), 0);
}

bool tl_read_by_elements(tl_module *module, tl_op *tile_load) {
  tl_value *tile = tl_op_result(tile_load, 0);
  if (!is_for_parallels(tile)) return false;
  while (tile->uses) {
    tl_op *extract = tile->uses->owner;
    tl_builder builder;
    tl_builder_before(&builder, module, extract);
    builder.loc = extract->loc;
    tl_value *element = load_element(module, tile_load, extract, &builder);
    tl_value_replace_uses(tl_op_result(extract, 0), element);
    tl_op_erase(extract);
  }
  tl_op_erase(tile_load);
  return true;
}
