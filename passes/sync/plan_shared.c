// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// plan-shared: where every shared tile lies in the block's shared memory.
//
// Tiles get offsets in order of alignment and declaration, each the lowest that no tile with an overlapping live range
// occupies. A live range is counted in statements of the kernel's body (of its loop over tiles when it is persistent)
// and of branches that all threads take alike (what stands behind an `exit` is one), a loop being one statement; two
// tiles may share memory when one's last statement comes before the other's first with a barrier between them. A
// barrier in a branch stands between tiles one of which is used in that branch alone. When the block does not fit
// otherwise, barriers are added where a tile's live range begins after another's end. A staged tile takes one copy per
// stage.
//
// In a loop over tiles the tile whose live range comes first is used again after the other's end, in the next
// iteration. Nothing is kept from iteration to iteration, so that only a barrier is needed: the loop begins with one
// when memory is shared and none stands after the last live range and before the first of the next iteration.
//
// What threads left in shared memory the copy engine may only write over behind a proxy fence of each of them. Tiles
// share memory so where that makes the block smaller: then every barrier between statements of the body has a fence in
// front of it.
//
// mbarriers, and tiles that other blocks read, live as long as the kernel and share with nothing.
//
// Of a kernel with roles the statements of the first one count. A tile that another role lets the copy engine fill may
// be written from the kernel's beginning on; its last fill has come when the last wait for one has ended. Whatever else
// another role touches lives as long as the kernel.
//
// Leaves OFFSET on every shared alloc and SHARED_BYTES on the kernel; the target's limit is an error that lists the
// tiles.
#include "ir/index/affine.h"
#include "passes/analysis/effects.h"
#include "passes/analysis/memory_access.h"
#include "passes/manager/passes.h"

enum {
  MBARRIER_BYTES = 8,
  WORD = 4,              // narrower elements are updated by atomics of their word, which must be theirs as a whole
  ALIGN_SMALL = 16,      // one cp.async or vector access
  ALIGN_TILE = 128,      // a row of all 32 banks
  ALIGN_SWIZZLED = 1024  // eight rows of 128 bytes: one period of the widest swizzle
};

typedef struct shared_tile {
  tl_op *alloc;  // or MBARRIER, TILE_QUEUE
  int64_t bytes;
  int64_t align;
  int32_t first, last;  // statements of the kernel's body that touch it; first > last when nothing does
  int64_t offset;
  bool is_placed;
  bool is_filled;  // by the copy engine
  bool
      is_kept;  // for the whole kernel: an mbarrier, or filled by hand or read by others, so that only a run knows when
} shared_tile;

// Statements of a block, those of its branches among them: from the first one to before the last one.
typedef struct statements {
  const tl_block *block;
  int32_t begin, end;
} statements;

typedef struct barrier_place {
  int32_t position;
  uint32_t block;  // of blocks
} barrier_place;

// A tile that another role fills, and what tells that it has.
typedef struct role_fill {
  shared_tile *tile;
  const tl_value *barrier;
} role_fill;

typedef struct shared_plan {
  tl_pass_context *context;
  tl_op *kernel;
  tl_block *body;                  // the statements by which live ranges are counted
  bool is_loop;                    // whether they run again and again
  bool is_fenced;                  // whether threads fence before every barrier of the body
  TL_VEC(shared_tile) tiles;       // order of declaration
  TL_VEC(uint32_t) by_offset;      // placed tiles, lowest offset first
  TL_VEC(statements) blocks;       // the body, and branches of it
  TL_VEC(barrier_place) barriers;  // in the order of their positions
  TL_VEC(role_fill) fills;
  int64_t total;
} shared_plan;

static int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

static tl_shared_layout layout_of(const tl_op *alloc) {
  const tl_attr *attr = tl_op_attr(alloc, TL_ATTR_SHARED_LAYOUT);
  if (attr) return *attr->v.shared;
  const tl_type *type = alloc->results[0].type;
  int64_t row = type->rank > 0 ? type->dims[type->rank - 1] : 1;
  return (tl_shared_layout){.pitch_bytes = (int32_t)tl_dtype_bytes(type->dtype, (uint64_t)row)};
}

static shared_tile measure(tl_op *alloc) {
  const tl_type *type = alloc->results[0].type;
  tl_shared_layout layout = layout_of(alloc);
  int32_t shape[TL_MAX_RANK];
  for (int32_t d = 0; d < type->rank; d++) shape[d] = (int32_t)type->dims[d];
  int64_t bytes = tl_shared_layout_bytes(&layout, shape, type->rank, tl_dtype_bits(type->dtype));
  bytes = round_up(bytes, WORD);
  int64_t depth = tl_op_int(alloc, TL_ATTR_DEPTH, 1);
  shared_tile tile = {.alloc = alloc, .first = INT32_MAX, .last = -1};
  tile.bytes = depth > 1 ? round_up(bytes, ALIGN_SMALL) * depth : bytes;
  tile.align = bytes >= ALIGN_TILE ? ALIGN_TILE : ALIGN_SMALL;
  if (layout.swizzle_mask != 0 && layout.pitch_bytes % 128 == 0) tile.align = ALIGN_SWIZZLED;
  // Hardware swizzles are functions of the address: the pattern starts where the tile does.
  if (layout.panel_bytes != 0) tile.align = ALIGN_SWIZZLED;
  return tile;
}

static bool is_mbarrier(const shared_tile *tile) {
  return tile->alloc->code == TL_OP_MBARRIER || tile->alloc->code == TL_OP_TILE_QUEUE;
}

static shared_tile measure_mbarrier(tl_op *op) {
  int64_t bytes = tl_op_int(op, TL_ATTR_DEPTH, 1) * MBARRIER_BYTES;
  if (op->code == TL_OP_TILE_QUEUE) bytes = TL_TILE_QUEUE_BYTES;
  return (shared_tile){.alloc = op, .bytes = bytes, .align = ALIGN_SMALL, .is_kept = true};
}

// What other blocks read they may read whenever they come to it.
static void note_peers(tl_op *op, void *user) {
  shared_plan *plan = user;
  if (op->code != TL_OP_PEER_TILE) return;
  const tl_op *root = tl_buffer_root(tl_op_arg(op, TL_GROUP_PEER_TILE_tile));
  for (size_t i = 0; i < plan->tiles.len; i++) plan->tiles.items[i].is_kept |= plan->tiles.items[i].alloc == root;
}

static void note_engine(tl_op *op, void *user) {
  shared_plan *plan = user;
  if (op->code != TL_OP_COPY || !tl_op_arg(op, TL_GROUP_COPY_map)) return;
  const tl_op *roots[] = {tl_buffer_root(tl_op_arg(op, TL_GROUP_COPY_src)),
                          tl_buffer_root(tl_op_arg(op, TL_GROUP_COPY_dst))};
  for (size_t i = 0; i < plan->tiles.len; i++) {
    shared_tile *tile = &plan->tiles.items[i];
    if (tile->alloc != roots[0] && tile->alloc != roots[1]) continue;
    tile->is_filled |= tile->alloc == roots[1];
    tile->is_kept |= tile->alloc == roots[1] && tl_op_has(op, TL_ATTR_BY_HAND);
    // Swizzles are functions of the address.
    const tl_attr *layout = tl_op_attr(tile->alloc, TL_ATTR_SHARED_LAYOUT);
    tile->align = layout && layout->v.shared->swizzle_mask ? ALIGN_SWIZZLED : ALIGN_TILE;
  }
}

static shared_tile *find_tile(shared_plan *plan, const tl_value *root) {
  for (size_t i = 0; i < plan->tiles.len; i++) {
    if (tl_op_result(plan->tiles.items[i].alloc, 0) == root) return &plan->tiles.items[i];
  }
  return NULL;
}

static void extend(shared_tile *tile, int32_t position) {
  if (position < tile->first) tile->first = position;
  if (position > tile->last) tile->last = position;
}

// The loop over the tiles of a persistent kernel.
static tl_op *find_tile_loop(const tl_block *body) {
  for (tl_op *op = body->first; op; op = op->next) {
    if (op->code == TL_OP_FOR && tl_op_has(op, TL_ATTR_TILES)) return op;
  }
  return NULL;
}

// What the other roles touch.
static void look_at_roles(shared_plan *plan) {
  const tl_op *roles = tl_kernel_roles(plan->kernel);
  tl_effect_list effects = {0};
  tl_vec_clear(&plan->fills);
  for (tl_op *role = roles ? roles->regions[0]->first->next : NULL; role; role = role->next)
    tl_effects_inside(role, &effects);
  for (size_t i = 0; i < effects.len; i++) {
    const tl_effect *effect = &effects.items[i];
    shared_tile *tile = find_tile(plan, effect->root);
    if (!tile) continue;
    const tl_value *barrier = effect->op->code == TL_OP_COPY && effect->kind == TL_EFFECT_WRITE
                                  ? tl_op_arg(effect->op, TL_GROUP_COPY_barrier)
                                  : NULL;
    extend(tile, -1);  // before all branches
    if (!barrier) extend(tile, INT32_MAX);
    role_fill fill = {tile, barrier};
    if (barrier) tl_vec_push(&plan->fills, fill);
  }
  tl_vec_fini(&effects);
}

typedef struct wait_search {
  shared_plan *plan;
  int32_t position;
} wait_search;

static void look_at_wait(tl_op *op, void *user) {
  const wait_search *search = user;
  if (op->code != TL_OP_MBARRIER_WAIT) return;
  for (size_t i = 0; i < search->plan->fills.len; i++)
    if (search->plan->fills.items[i].barrier == tl_op_operand(op, 0))
      extend(search->plan->fills.items[i].tile, search->position);
}

static bool is_engine_store(const tl_op *op) {
  return op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map) &&
         tl_op_arg(op, TL_GROUP_COPY_src)->type->scope == TL_SCOPE_SHARED;
}

// Whether a store by the copy engine inside is not waited for inside.
static void find_open_store(tl_op *op, void *user) {
  bool *is_open = user;
  if (is_engine_store(op)) *is_open = true;
  if (op->code == TL_OP_BULK_WAIT && tl_op_int(op, TL_ATTR_PENDING, 0) == 0) *is_open = false;
}

typedef struct flight {
  shared_tile *tile;
  const tl_block *block;  // where it began
} flight;

typedef TL_VEC(flight) flight_list;

// What is under way at a statement.
typedef struct live_search {
  shared_plan *plan;
  int32_t position;
  flight_list in_flight, by_hand, multiplied, stored;
  tl_effect_list effects;
} live_search;

static bool is_inside(const tl_block *block, const tl_block *of) {
  while (block && block != of) block = block->parent ? block->parent->parent : NULL;
  return block != NULL;
}

// A wait that comes now: what it is for lived until here. A wait in a branch ends what began there.
static void land(live_search *self, flight_list *flights, const tl_op *wait, bool ends) {
  size_t kept = 0;
  for (size_t i = 0; i < flights->len; i++) {
    flight one = flights->items[i];
    extend(one.tile, self->position);
    if (!ends || !is_inside(one.block, wait->parent)) flights->items[kept++] = one;
  }
  flights->len = kept;
}

static void look_at_waits(live_search *self, tl_op *op) {
  bool for_all = tl_op_int(op, TL_ATTR_PENDING, 0) == 0;
  if (op->code == TL_OP_BULK_WAIT) land(self, &self->stored, op, for_all);
  if (op->code == TL_OP_ASYNC_WAIT) land(self, &self->in_flight, op, true);
  if (op->code == TL_OP_ASYNC_WAIT) land(self, &self->by_hand, op, for_all);
  if (op->code == TL_OP_GEMM_WAIT && for_all) land(self, &self->multiplied, op, true);
  if (self->plan->fills.len > 0) tl_walk(op, look_at_wait, &(wait_search){self->plan, self->position});
}

static void look_at_effects(live_search *self, tl_op *op) {
  bool is_open = false;
  tl_walk(op, find_open_store, &is_open);
  tl_vec_clear(&self->effects);
  tl_effects_inside(op, &self->effects);
  for (size_t i = 0; i < self->effects.len; i++) {
    const tl_effect *effect = &self->effects.items[i];
    shared_tile *tile = find_tile(self->plan, effect->root);
    if (tile == NULL) continue;
    extend(tile, self->position);
    flight one = {tile, op->parent};
    if (is_open && is_engine_store(effect->op)) tl_vec_push(&self->stored, one);
    if (!effect->is_async) continue;
    bool is_counted = tl_op_has(effect->op, TL_ATTR_BY_HAND) || tl_op_has(effect->op, TL_ATTR_COUNTED);
    flight_list *flights = effect->op->code == TL_OP_GEMM ? &self->multiplied
                           : is_counted                   ? &self->by_hand
                                                          : &self->in_flight;
    tl_vec_push(flights, one);
  }
}

static bool is_branch(const tl_op *op) {
  return op->code == TL_OP_IF && tl_op_has(op, TL_ATTR_UNIFORM);
}

static void look_at_block(live_search *self, const tl_block *block) {
  uint32_t number = (uint32_t)self->plan->blocks.len;
  tl_vec_push(&self->plan->blocks, (statements){block, self->position, 0});
  for (tl_op *op = block->first; op; op = op->next) {
    for (uint32_t r = 0; is_branch(op) && r < op->num_regions; r++) look_at_block(self, op->regions[r]);
    if (is_branch(op)) continue;
    if (op->code == TL_OP_BARRIER) tl_vec_push(&self->plan->barriers, (barrier_place){self->position, number});
    look_at_waits(self, op);
    look_at_effects(self, op);
    self->position++;
  }
  self->plan->blocks.items[number].end = self->position;
}

// Lives, and where barriers stand. A gemm in flight keeps its operands until the wait for all of them. A copy in flight
// keeps its tile until the next wait of the body; one by hand until the next that waits for all groups, else to the
// end. A store by the copy engine keeps it until the wait for all groups; in a loop over tiles that may be one of the
// next iteration, and then it is kept all the time.
static void find_live_ranges(shared_plan *plan) {
  for (size_t i = 0; i < plan->tiles.len; i++) {
    plan->tiles.items[i].first = INT32_MAX;
    plan->tiles.items[i].last = -1;
    plan->tiles.items[i].is_placed = false;
    if (!plan->tiles.items[i].is_kept) continue;
    plan->tiles.items[i].first = 0;
    plan->tiles.items[i].last = INT32_MAX;
  }
  tl_vec_clear(&plan->barriers);
  tl_vec_clear(&plan->blocks);
  look_at_roles(plan);
  live_search self = {.plan = plan};
  look_at_block(&self, plan->body);
  for (size_t i = 0; i < self.by_hand.len; i++) extend(self.by_hand.items[i].tile, self.position);
  for (size_t i = 0; i < self.stored.len; i++) {
    extend(self.stored.items[i].tile, 0);
    extend(self.stored.items[i].tile, self.position);
  }
  tl_vec_fini(&self.stored);
  tl_vec_fini(&self.effects);
  tl_vec_fini(&self.in_flight);
  tl_vec_fini(&self.by_hand);
  tl_vec_fini(&self.multiplied);
}

// Whether the tile is used between the beginning and the end of the block alone.
static bool is_used_in(const statements *block, const shared_tile *tile) {
  return tile->first >= block->begin && tile->last < block->end;
}

// Whether everybody who comes from one tile's statements to the other's, the one up to position `after` and the other
// from `before` on, passes a barrier. The positions ascend.
static bool barrier_between(const shared_plan *plan, const shared_tile *a, int32_t after, const shared_tile *b,
                            int32_t before) {
  size_t low = 0, high = plan->barriers.len;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (plan->barriers.items[middle].position > after) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  for (; low < plan->barriers.len && plan->barriers.items[low].position < before; low++) {
    uint32_t block = plan->barriers.items[low].block;
    if (block == 0 || is_used_in(&plan->blocks.items[block], a) || is_used_in(&plan->blocks.items[block], b))
      return true;
  }
  return false;
}

// Whether two tiles may share memory as far as the copy engine goes: it writes over nothing that threads left there
// without fences.
static bool engine_permits(const shared_plan *plan, const shared_tile *a, const shared_tile *b) {
  if (plan->is_fenced || (!a->is_filled && !b->is_filled)) return true;
  if (plan->is_loop) return false;
  return a->last < b->first ? !b->is_filled : !a->is_filled;
}

static bool may_share(const shared_plan *plan, const shared_tile *a, const shared_tile *b) {
  if (is_mbarrier(a) || is_mbarrier(b) || !engine_permits(plan, a, b)) return false;
  if (a->last < 0 || b->last < 0) return true;
  return barrier_between(plan, a, a->last, b, b->first) || barrier_between(plan, b, b->last, a, a->first);
}

// Lowest free offset. The placed tiles are visited from the lowest offset on, so one that does not fit behind what was
// passed only moves the candidate up.
static int64_t lowest_offset(const shared_plan *plan, const shared_tile *tile) {
  int64_t offset = 0;
  for (size_t i = 0; i < plan->by_offset.len; i++) {
    const shared_tile *other = &plan->tiles.items[plan->by_offset.items[i]];
    if (offset + tile->bytes <= other->offset) break;
    int64_t behind = round_up(other->offset + other->bytes, tile->align);
    if (behind > offset && !may_share(plan, tile, other)) offset = behind;
  }
  return offset;
}

static void place(shared_plan *plan, uint32_t index) {
  shared_tile *tile = &plan->tiles.items[index];
  tile->offset = lowest_offset(plan, tile);
  tile->is_placed = true;
  if (tile->offset + tile->bytes > plan->total) plan->total = tile->offset + tile->bytes;
  tl_vec_push(&plan->by_offset, index);
  for (size_t at = plan->by_offset.len - 1; at > 0; at--) {
    uint32_t *here = &plan->by_offset.items[at];
    if (plan->tiles.items[here[-1]].offset <= tile->offset) break;
    *here = here[-1];
    here[-1] = index;
  }
}

static void place_tiles(shared_plan *plan) {
  static const int64_t aligns[] = {ALIGN_SWIZZLED, ALIGN_TILE, ALIGN_SMALL};
  plan->total = 0;
  tl_vec_clear(&plan->by_offset);
  for (size_t a = 0; a < sizeof(aligns) / sizeof(aligns[0]); a++) {
    for (size_t i = 0; i < plan->tiles.len; i++) {
      shared_tile *tile = &plan->tiles.items[i];
      if (tile->align != aligns[a]) continue;
      tile->offset = 0;
      if (tile->last >= 0) place(plan, (uint32_t)i);
    }
  }
}

static const statements *statements_of(const shared_plan *plan, const tl_block *block) {
  size_t i = 0;
  while (plan->blocks.items[i].block != block) i++;
  return &plan->blocks.items[i];
}

// Whether a tile's live range begins in the statement at the position after another's has ended, no barrier stands
// between, and one in front of the statement would.
static bool wants_barrier(const shared_plan *plan, const tl_op *op, int32_t position, int32_t end) {
  const statements *around = statements_of(plan, op->parent);
  for (size_t i = 0; i < plan->tiles.len; i++) {
    const shared_tile *tile = &plan->tiles.items[i];
    bool begins = tile->first >= position && tile->first < end;
    for (uint32_t r = 0; is_branch(op) && r < op->num_regions && begins; r++)
      begins = !is_used_in(statements_of(plan, op->regions[r]), tile);
    for (size_t j = 0; j < plan->tiles.len && begins; j++) {
      const shared_tile *before = &plan->tiles.items[j];
      bool counts = around->block == plan->body || is_used_in(around, tile) || is_used_in(around, before);
      if (before->last < 0 || before->last >= position || !counts) continue;
      if (!barrier_between(plan, before, before->last, tile, position)) return true;
    }
  }
  return false;
}

static bool add_barriers_to(shared_plan *plan, const tl_block *block, int32_t *position) {
  bool changed = false;
  for (tl_op *op = block->first; op; op = op->next) {
    int32_t begin = *position;
    for (uint32_t r = 0; is_branch(op) && r < op->num_regions; r++)
      changed |= add_barriers_to(plan, op->regions[r], position);
    *position += !is_branch(op);
    if (!wants_barrier(plan, op, begin, *position)) continue;
    tl_builder builder;
    tl_builder_before(&builder, plan->context->module, op);
    builder.loc = op->loc;
    tl_build(&builder, TL_OP_BARRIER, NULL, NULL, 0);
    changed = true;
  }
  return changed;
}

// A barrier before every statement where a tile's live range begins after another's has ended.
static bool add_barriers(shared_plan *plan) {
  int32_t position = 0;
  return add_barriers_to(plan, plan->body, &position);
}

static bool overlaps(const shared_tile *a, const shared_tile *b) {
  return a->is_placed && b->is_placed && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

// Whether two tiles share memory, and no barrier ends the iteration of the one before the next iteration of the other.
static bool needs_barrier_between_iterations(const shared_plan *plan) {
  for (size_t i = 0; i < plan->tiles.len; i++) {
    for (size_t j = 0; j < plan->tiles.len; j++) {
      const shared_tile *early = &plan->tiles.items[i], *late = &plan->tiles.items[j];
      if (i == j || early->last >= late->first || !overlaps(early, late)) continue;
      bool ends = barrier_between(plan, late, late->last, early, INT32_MAX),
           begins = barrier_between(plan, late, -1, early, early->first);
      if (!ends && !begins) return true;
    }
  }
  return false;
}

static void begin_with_barrier(shared_plan *plan) {
  tl_builder builder;
  tl_builder_before(&builder, plan->context->module, plan->body->first);
  builder.loc = plan->body->parent->loc;
  tl_build(&builder, TL_OP_BARRIER, NULL, NULL, 0);
}

// Places the tiles with fences, where the block is smaller so than without. A role's barriers and fences say nothing of
// what the copy engine does for another one.
static void try_fences(shared_plan *plan) {
  int64_t without = plan->total;
  if (tl_kernel_roles(plan->kernel)) return;
  plan->is_fenced = true;
  place_tiles(plan);
  if (plan->total < without) return;
  plan->is_fenced = false;
  place_tiles(plan);
}

static void insert_fences(shared_plan *plan, const tl_block *block) {
  for (tl_op *op = block->first; op; op = op->next) {
    for (uint32_t r = 0; is_branch(op) && r < op->num_regions; r++) insert_fences(plan, op->regions[r]);
    bool is_fenced = op->prev && op->prev->code == TL_OP_FENCE_PROXY &&
                     tl_op_int(op->prev, TL_ATTR_SPACE, TL_SCOPE_SHARED) == TL_SCOPE_SHARED;
    if (op->code != TL_OP_BARRIER || is_fenced) continue;
    tl_builder builder;
    tl_builder_before(&builder, plan->context->module, op);
    builder.loc = op->loc;
    tl_build(&builder, TL_OP_FENCE_PROXY, NULL, NULL, 0);
  }
}

// What messages call it.
static const char *name_of(const shared_tile *tile) {
  if (!is_mbarrier(tile)) return tl_buffer_name(tl_op_result(tile->alloc, 0));
  const char *name = tl_op_str(tile->alloc, TL_ATTR_NAME);
  return name ? name : "mbarriers";
}

static void report_limit(shared_plan *plan, const tl_target *target) {
  const shared_tile *largest = NULL;
  for (size_t i = 0; i < plan->tiles.len; i++) {
    const shared_tile *tile = &plan->tiles.items[i];
    if (tile->is_placed && (largest == NULL || tile->bytes > largest->bytes)) largest = tile;
  }
  tl_diags *diags = plan->context->diags;
  tl_diag *diag = tl_diag_report(diags, TL_DIAG_SHARED_LIMIT, largest->alloc->loc,
                                 "the block needs %lld bytes of shared memory, but %s allows %d",
                                 (long long)plan->total, target->name, (int)target->shared_max_bytes);
  for (size_t i = 0; i < plan->tiles.len; i++) {
    const shared_tile *tile = &plan->tiles.items[i];
    if (!tile->is_placed) continue;
    int64_t depth = tl_op_int(tile->alloc, TL_ATTR_DEPTH, 1);
    tl_strbuf stages;
    tl_strbuf_init(&stages);
    if (depth > 1) {
      tl_strbuf_appendf(&stages, ": %lld in each of %lld stages", (long long)(tile->bytes / depth), (long long)depth);
    }
    tl_diag_add_note(diags, diag, tile->alloc->loc, "'%s' takes %lld bytes%s", name_of(tile), (long long)tile->bytes,
                     tl_strbuf_c(&stages));
    tl_strbuf_fini(&stages);
  }
  bool is_staged = tl_op_int(largest->alloc, TL_ATTR_DEPTH, 1) > 1;
  tl_diag_add_hint(diags, diag, is_staged ? "use fewer stages, or make '%s' smaller" : "make '%s' smaller",
                   name_of(largest));
}

static void finish(shared_plan *plan) {
  tl_module *module = plan->context->module;
  tl_op_set_int(module, plan->kernel, TL_ATTR_SHARED_BYTES, plan->total);
  for (size_t i = 0; i < plan->tiles.len; i++) {
    const shared_tile *tile = &plan->tiles.items[i];
    tl_op_set_int(module, tile->alloc, TL_ATTR_OFFSET, tile->offset);
    if (!tile->is_placed) continue;
    tl_diag_report(plan->context->diags, TL_DIAG_SHARED_PLAN, tile->alloc->loc,
                   "'%s' lies at byte %lld of shared memory and takes %lld of %lld bytes", name_of(tile),
                   (long long)tile->offset, (long long)tile->bytes, (long long)plan->total);
  }
}

static void plan_kernel(tl_pass_context *context, tl_op *kernel) {
  const tl_op *roles = tl_kernel_roles(kernel);
  tl_block *body = roles ? roles->regions[0]->first->regions[0] : kernel->regions[0];
  tl_op *loop = find_tile_loop(body);
  shared_plan plan = {
      .context = context, .kernel = kernel, .body = loop ? loop->regions[0] : body, .is_loop = loop != NULL};
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code == TL_OP_MBARRIER || op->code == TL_OP_TILE_QUEUE) tl_vec_push(&plan.tiles, measure_mbarrier(op));
    if (op->code != TL_OP_ALLOC || tl_op_result(op, 0)->type->scope != TL_SCOPE_SHARED) continue;
    tl_vec_push(&plan.tiles, measure(op));
  }
  tl_walk(kernel, note_engine, &plan);
  tl_walk(kernel, note_peers, &plan);
  find_live_ranges(&plan);
  place_tiles(&plan);
  try_fences(&plan);
  const tl_target *target = context->target;
  if (target && plan.total > target->shared_max_bytes && add_barriers(&plan)) {
    find_live_ranges(&plan);
    place_tiles(&plan);
    try_fences(&plan);
  }
  if (plan.is_loop && needs_barrier_between_iterations(&plan)) begin_with_barrier(&plan);
  if (plan.is_fenced) insert_fences(&plan, plan.body);
  finish(&plan);
  if (target && plan.total > target->shared_max_bytes) report_limit(&plan, target);
  tl_vec_fini(&plan.tiles);
  tl_vec_fini(&plan.by_offset);
  tl_vec_fini(&plan.barriers);
  tl_vec_fini(&plan.blocks);
  tl_vec_fini(&plan.fills);
}

tl_status tl_pass_plan_shared(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) plan_kernel(context, op);
  }
  return TL_OK;
}
