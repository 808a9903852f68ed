// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// verify-barriers: an independent check of place-barriers and pipeline. It runs the scheduled kernel concretely,
// statement by statement, over small trip counts and both ways of conditions, and keeps for every copy of every tile
// which accesses were made since the last barrier and which asynchronous copies are still on their way. Two accesses to
// one copy with a write among them, and no barrier between, are a race between two threads; so is an access to a copy
// whose group was not waited for, or was waited for by its own thread only. It shares no code with the passes it
// checks, and understands rings as well as what lower-rings and plan-shared make of them.
//
// The work is bounded: when the budget of statements is spent, what was explored has to do.
#include "ir/index/affine.h"
#include "passes/manager/passes.h"
#include "passes/sync/verify_barriers_internal.h"
#include "support/status.h"

enum {
  STATEMENT_BUDGET = 400000,
  MAX_DEPTH = 16,  // stages of a ring
  NUM_SEEDS = 6,
  MAX_TILES = 3,         // of a persistent kernel: every pair of neighbours, and one that has both
  WHOLE_LOOP_TRIPS = 48  // longer loops jump over a multiple of every ring's depth in their middle
};

typedef enum access_kind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC } access_kind;

// An access that another thread may not have seen yet.
typedef struct access_record {
  access_kind kind;
  int64_t root, slot;
  bool is_async;
  bool has_landed;  // of an async one: its own thread waited for it
  int64_t group;    // of an async one: number of the commit that closed it; -1 before
  int64_t ring;     // the ring of that commit, or -1
  // Of copies, tile loads and tile stores: the buffer that the box is of (else NULL), and its ends, both inclusive.
  const tl_value *box_buffer;
  int64_t lo[TL_MAX_RANK], hi[TL_MAX_RANK];
  const tl_op *op;
} access_record;

typedef struct ring_state {
  const tl_value *ring;
  TL_VEC(int64_t) commits;  // global numbers of this ring's commits
} ring_state;

typedef struct verifier {
  tl_pass_context *context;
  tl_op *kernel;
  tl_run_env env;
  TL_VEC(const tl_op *) roots;  // ALLOC and TENSOR ops; a buffer's number is its position
  TL_VEC(access_record) records;
  TL_VEC(ring_state) rings;
  int64_t num_commits;
  int64_t period;  // product-free common multiple of all depths
  int64_t max_depth;
  int64_t budget;
  TL_VEC(int64_t) least_trips;  // of the loops whose bounds are fixed
  tl_status status;
} verifier;

static void run_block(verifier *self, const tl_block *block);

// ---- reporting

static void describe(verifier *self, const tl_op *op, tl_strbuf *out) {
  const tl_source *source = tl_sources_get(self->context->diags->sources, op->loc.source);
  if (source) {
    tl_strbuf_appendf(out, "%s of line %u", tl_op_info_of(op->code)->name,
                      tl_source_position(source, op->loc.offset).line);
  } else {
    tl_strbuf_appendf(out, "%s", tl_op_info_of(op->code)->name);
  }
}

// Whether the access is of every element of its buffer.
static bool covers_buffer(const access_record *record) {
  const tl_value *buffer = record->box_buffer;
  for (int32_t d = 0; buffer && d < buffer->type->rank; d++) {
    if (record->lo[d] > 0 || buffer->type->dims[d] < 0 || record->hi[d] < buffer->type->dims[d] - 1) return false;
  }
  return buffer != NULL;
}

static const char *root_name(const tl_op *root) {
  const char *name = tl_op_str(root, TL_ATTR_NAME);
  return name ? name : "tile";
}

// The author's own mistake: an access of what an asynchronous copy by hand has under way.
static void report_early(verifier *self, const access_record *before, const access_record *after) {
  static const char *const verbs[] = {"read", "written", "updated"};
  const char *name = root_name(self->roots.items[after->root]);
  const char *why = before->group < 0 ? "in a group that was not committed" : "in a group that was not waited for";
  tl_diag *diag =
      tl_diag_report(self->context->diags, TL_DIAG_ASYNC_EARLY, after->op->loc,
                     before->kind == ACCESS_READ ? "'%s' is %s while an asynchronous copy from it is under way, %s"
                                                 : "'%s' is %s while an asynchronous copy into it is under way, %s",
                     name, verbs[after->kind], why);
  tl_diag_add_note(self->context->diags, diag, before->op->loc, "the copy stands here");
  self->budget = 0;  // once is enough
}

static void report_race(verifier *self, const access_record *before, const access_record *after) {
  if (self->status || self->budget <= 0) return;
  if (before->is_async && !before->has_landed && tl_op_has(before->op, TL_ATTR_BY_HAND)) {
    // Where an access of elements is not known to meet the copy's part of the tile, the emulator has the last word.
    bool certain = (before->box_buffer && after->box_buffer) || covers_buffer(before);
    if (certain) report_early(self, before, after);
    return;
  }
  static const char *const verbs[] = {"reads", "writes", "updates"};
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_appendf(&text, "verify-barriers: '%s': ", root_name(self->roots.items[after->root]));
  describe(self, after->op, &text);
  tl_strbuf_appendf(&text, " %s copy %lld, which ", verbs[after->kind], (long long)after->slot);
  describe(self, before->op, &text);
  const char *why = "before it, and no barrier stands between them";
  if (before->is_async && !before->has_landed) {
    why = before->group < 0 ? "asynchronously in a group that was not committed"
                            : "asynchronously in a group that was not waited for";
  } else if (before->is_async) {
    why = "asynchronously, and no barrier follows the wait";
  }
  tl_strbuf_appendf(&text, " %s %s", verbs[before->kind], why);
  self->status = tl_status_make(TL_STATUS_INTERNAL, "%s", tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
}

// ---- accesses

static int64_t root_bytes(const tl_op *alloc) {
  const tl_type *type = alloc->results[0].type;
  const tl_attr *attr = tl_op_attr(alloc, TL_ATTR_SHARED_LAYOUT);
  int64_t depth = tl_op_int(alloc, TL_ATTR_DEPTH, 1);
  int64_t bytes = (int64_t)tl_dtype_bytes(type->dtype, (uint64_t)tl_type_num_elements(type));
  int32_t shape[TL_MAX_RANK];
  for (int32_t d = 0; d < type->rank; d++) shape[d] = (int32_t)type->dims[d];
  if (attr) bytes = tl_shared_layout_bytes(attr->v.shared, shape, type->rank, tl_dtype_bits(type->dtype));
  return (bytes + 15) / 16 * 16 * depth;
}

static bool boxes_meet(const access_record *a, const access_record *b) {
  if (a->box_buffer == NULL || a->box_buffer != b->box_buffer) return true;
  for (int32_t d = 0; d < a->box_buffer->type->rank; d++) {
    if (a->hi[d] < b->lo[d] || b->hi[d] < a->lo[d]) return false;
  }
  return true;
}

static bool same_box(const access_record *a, const access_record *b) {
  if (a->box_buffer != b->box_buffer) return false;
  for (int32_t d = 0; a->box_buffer && d < a->box_buffer->type->rank; d++) {
    if (a->lo[d] != b->lo[d] || a->hi[d] != b->hi[d]) return false;
  }
  return true;
}

// One side of a copy, tile load or tile store: which elements of the buffer it covers in this run.
typedef struct box_side {
  int offsets;  // operand group
  tl_attr_key dims, steps;
} box_side;

static void find_box(verifier *self, access_record *record, const tl_op *op, const tl_value *buffer) {
  box_side side;
  bool is_write = record->kind == ACCESS_WRITE;
  const tl_type *tile = NULL;
  if (op->code == TL_OP_COPY) {
    side = is_write ? (box_side){TL_GROUP_COPY_dst_offsets, TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP}
                    : (box_side){TL_GROUP_COPY_src_offsets, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP};
  } else if (op->code == TL_OP_TILE_LOAD) {
    side = (box_side){TL_GROUP_TILE_LOAD_src_offsets, TL_ATTR_SRC_DIMS, TL_ATTR_SRC_STEP};
    tile = op->results[0].type;
  } else if (op->code == TL_OP_TILE_STORE) {
    side = (box_side){TL_GROUP_TILE_STORE_dst_offsets, TL_ATTR_DST_DIMS, TL_ATTR_DST_STEP};
    tile = tl_op_arg(op, TL_GROUP_TILE_STORE_tile)->type;
  } else {
    return;
  }
  const tl_attr *extents = tl_op_attr(op, TL_ATTR_EXTENTS);
  const tl_attr *dims = tl_op_attr(op, side.dims);
  const tl_attr *steps = tl_op_attr(op, side.steps);
  record->box_buffer = buffer;
  for (int32_t d = 0; d < buffer->type->rank; d++) {
    record->lo[d] = record->hi[d] = tl_run_env_number(&self->env, tl_op_group_at(op, side.offsets, (uint32_t)d));
  }
  for (int32_t t = 0; t < dims->v.ints.len; t++) {
    int64_t extent = tile ? tile->dims[t] : extents->v.ints.items[t];
    int64_t last = (steps ? steps->v.ints.items[t] : 1) * (extent - 1);
    *(last < 0 ? &record->lo[dims->v.ints.items[t]] : &record->hi[dims->v.ints.items[t]]) += last;
  }
}

// Whether two copies lie on common memory: the same copy of one tile, or tiles that plan-shared put over one another.
static bool overlaps(const verifier *self, const access_record *a, const access_record *b) {
  if (a->root == b->root) return a->slot == b->slot && boxes_meet(a, b);
  const tl_op *ra = self->roots.items[a->root];
  const tl_op *rb = self->roots.items[b->root];
  if (ra->code != TL_OP_ALLOC || rb->code != TL_OP_ALLOC) return false;
  if (!tl_op_has(ra, TL_ATTR_OFFSET) || !tl_op_has(rb, TL_ATTR_OFFSET)) return false;
  int64_t start_a = tl_op_int(ra, TL_ATTR_OFFSET, 0);
  int64_t start_b = tl_op_int(rb, TL_ATTR_OFFSET, 0);
  return start_a < start_b + root_bytes(rb) && start_b < start_a + root_bytes(ra);
}

static bool conflicts(access_kind a, access_kind b) {
  if (a == ACCESS_READ && b == ACCESS_READ) return false;
  return !(a == ACCESS_ATOMIC && b == ACCESS_ATOMIC);
}

// Checks an access of `statement` against everything before it, and keeps it. `first` is where the statement's own
// begin.
static void add_access(verifier *self, access_kind kind, const tl_value *buffer, bool is_async, const tl_op *statement,
                       size_t first) {
  if (buffer->type->kind != TL_TYPE_BUFFER || buffer->type->scope == TL_SCOPE_LOCAL) return;
  const tl_value *value = buffer;
  // Views inside a parallel are not run; what they look at is.
  while (!tl_run_env_at(&self->env, value)->known && value->def && value->def->code == TL_OP_VIEW)
    value = tl_op_operand(value->def, 0);
  const tl_run_value *cell = tl_run_env_at(&self->env, value);
  if (!cell->known) return;
  access_record record = {.kind = kind,
                          .root = cell->number,
                          .slot = cell->slot,
                          .is_async = is_async,
                          .group = -1,
                          .ring = -1,
                          .op = statement};
  find_box(self, &record, statement, buffer);
  for (size_t i = 0; i < first && !self->status; i++) {
    const access_record *before = &self->records.items[i];
    if (conflicts(before->kind, kind) && overlaps(self, before, &record)) report_race(self, before, &record);
  }
  for (size_t i = 0; i < self->records.len && !is_async; i++) {
    const access_record *same = &self->records.items[i];
    if (same->op == statement && same->kind == kind && same->root == record.root && same->slot == record.slot &&
        same_box(same, &record)) {
      return;
    }
  }
  tl_vec_push(&self->records, record);
}

static void access_inside(verifier *self, const tl_op *op, const tl_op *statement, bool is_async, size_t first) {
  switch ((int)op->code) {
    case TL_OP_LOAD:
      add_access(self, ACCESS_READ, tl_op_arg(op, TL_GROUP_LOAD_buffer), is_async, statement, first);
      break;
    case TL_OP_STORE:
      add_access(self, ACCESS_WRITE, tl_op_arg(op, TL_GROUP_STORE_buffer), is_async, statement, first);
      break;
    case TL_OP_ATOMIC:
      add_access(self, ACCESS_ATOMIC, tl_op_arg(op, TL_GROUP_ATOMIC_buffer), false, statement, first);
      break;
    case TL_OP_WAIT_UNTIL:
      add_access(self, ACCESS_ATOMIC, tl_op_arg(op, TL_GROUP_WAIT_UNTIL_buffer), false, statement, first);
      break;
    case TL_OP_FILL:
      add_access(self, ACCESS_WRITE, tl_op_arg(op, TL_GROUP_FILL_buffer), false, statement, first);
      break;
    case TL_OP_COPY:
      add_access(self, ACCESS_READ, tl_op_arg(op, TL_GROUP_COPY_src), is_async, statement, first);
      add_access(self, ACCESS_WRITE, tl_op_arg(op, TL_GROUP_COPY_dst), is_async, statement, first);
      break;
    case TL_OP_TILE_LOAD:
      add_access(self, ACCESS_READ, tl_op_arg(op, TL_GROUP_TILE_LOAD_src), false, statement, first);
      break;
    case TL_OP_TILE_STORE:
      add_access(self, ACCESS_WRITE, tl_op_arg(op, TL_GROUP_TILE_STORE_dst), false, statement, first);
      break;
    case TL_OP_GEMM:
      add_access(self, ACCESS_READ, tl_op_arg(op, TL_GROUP_GEMM_a), false, statement, first);
      add_access(self, ACCESS_READ, tl_op_arg(op, TL_GROUP_GEMM_b), false, statement, first);
      add_access(self, ACCESS_WRITE, tl_op_arg(op, TL_GROUP_GEMM_acc), false, statement, first);
      break;
    default:
      break;
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next) {
      access_inside(self, inner, statement, is_async, first);
    }
  }
}

// ---- synchronisation

static void run_barrier(verifier *self) {
  size_t kept = 0;
  for (size_t i = 0; i < self->records.len; i++) {
    const access_record record = self->records.items[i];
    if (record.is_async && !record.has_landed) self->records.items[kept++] = record;
  }
  self->records.len = kept;
}

static int64_t ring_number(verifier *self, const tl_value *ring) {
  for (size_t i = 0; i < self->rings.len; i++) {
    if (self->rings.items[i].ring == ring) return (int64_t)i;
  }
  ring_state state = {.ring = ring};
  tl_vec_push(&self->rings, state);
  return (int64_t)self->rings.len - 1;
}

static void run_commit(verifier *self, int64_t ring) {
  int64_t number = self->num_commits++;
  for (size_t i = 0; i < self->records.len; i++) {
    access_record *record = &self->records.items[i];
    if (!record->is_async || record->group >= 0) continue;
    record->group = number;
    record->ring = ring;
  }
  if (ring >= 0) tl_vec_push(&self->rings.items[ring].commits, number);
}

// Groups up to number `last` have landed; only those of `ring` count when it is not -1.
static void land(verifier *self, int64_t last, int64_t ring) {
  for (size_t i = 0; i < self->records.len; i++) {
    access_record *record = &self->records.items[i];
    if (!record->is_async || record->group < 0 || record->group > last) continue;
    if (ring < 0 || record->ring == ring) record->has_landed = true;
  }
}

static void run_ring_wait(verifier *self, const tl_op *op) {
  int64_t number = ring_number(self, tl_op_operand(op, 0));
  const ring_state *ring = &self->rings.items[number];
  int64_t landed = (int64_t)ring->commits.len - tl_op_int(op, TL_ATTR_PENDING, 0);
  if (landed > 0) land(self, ring->commits.items[landed - 1], number);
  tl_run_env_set(&self->env, &op->results[0], tl_run_env_number(&self->env, tl_op_operand(op, 1)));
}

// ---- running

static void run_buffer(verifier *self, const tl_op *op) {
  const tl_value *base = NULL;
  int64_t slot = -1;
  if (op->code == TL_OP_VIEW) {
    base = tl_op_arg(op, TL_GROUP_VIEW_buffer);
  } else if (op->code == TL_OP_STAGE_TILE) {
    base = tl_op_arg(op, TL_GROUP_STAGE_TILE_tile);
    slot = tl_run_env_number(&self->env, tl_op_arg(op, TL_GROUP_STAGE_TILE_stage));
  } else {
    base = tl_op_arg(op, TL_GROUP_RING_TILE_tile);
    const tl_value *slot_value = tl_op_arg(op, TL_GROUP_RING_TILE_slot);
    int64_t depth = tl_op_int(tl_op_operand(slot_value->def, 0)->def, TL_ATTR_DEPTH, 1);
    int64_t k = tl_run_env_number(&self->env, slot_value);
    slot = ((k % depth) + depth) % depth;
  }
  tl_run_value value = *tl_run_env_at(&self->env, base);
  if (slot >= 0) value.slot = slot;
  *tl_run_env_at(&self->env, &op->results[0]) = value;
}

static void pass_values(verifier *self, const tl_value *const *to, const tl_run_value *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) *tl_run_env_at(&self->env, to[i]) = values[i];
}

static void run_if(verifier *self, const tl_op *op) {
  bool taken = tl_run_env_number(&self->env, tl_op_operand(op, 0)) != 0;
  const tl_block *block = op->regions[taken ? 0 : 1];
  run_block(self, block);
  const tl_op *yield = tl_block_terminator(block);
  for (uint32_t i = 0; yield && i < op->num_results && i < yield->num_operands; i++) {
    *tl_run_env_at(&self->env, &op->results[i]) = *tl_run_env_at(&self->env, tl_op_operand(yield, i));
  }
}

// Ends a tile of a persistent kernel: between tiles, as between blocks, nothing is ordered in global memory.
static void end_tile(verifier *self) {
  size_t kept = 0;
  for (size_t i = 0; i < self->records.len; i++) {
    const access_record record = self->records.items[i];
    if (self->roots.items[record.root]->code != TL_OP_TENSOR) self->records.items[kept++] = record;
  }
  self->records.len = kept;
}

// The first tiles of the one block that is run.
static void run_tiles(verifier *self, const tl_op *op) {
  int64_t tiles = tl_run_env_number(&self->env, tl_op_arg(op, TL_GROUP_FOR_upper));
  if (tiles > MAX_TILES) tiles = MAX_TILES;
  for (int64_t i = 0; i < tiles && !self->status && self->budget > 0; i++) {
    tl_run_env_set(&self->env, op->regions[0]->args[0], i);
    run_block(self, op->regions[0]);
    end_tile(self);
  }
}

static void run_for(verifier *self, const tl_op *op) {
  int64_t lower = tl_run_env_number(&self->env, tl_op_operand(op, 0));
  int64_t upper = tl_run_env_number(&self->env, tl_op_operand(op, 1));
  int64_t step = tl_run_env_number(&self->env, tl_op_operand(op, 2));
  if (step == 0) step = 1;
  int64_t trips = step > 0 ? (upper - lower + step - 1) / step : (lower - upper - step - 1) / -step;
  if ((step > 0 && upper <= lower) || (step < 0 && upper >= lower)) trips = 0;
  const tl_block *body = op->regions[0];
  TL_VEC(tl_run_value) carried = {0};
  for (uint32_t i = 3; i < op->num_operands; i++)
    tl_vec_push(&carried, *tl_run_env_at(&self->env, tl_op_operand(op, i)));
  int64_t jump_at = trips > WHOLE_LOOP_TRIPS + 4 * self->period ? 2 * self->period + 8 : -1;
  bool ends_itself = tl_op_has(op, TL_ATTR_WHILE);
  if (ends_itself) {
    // A few iterations show every pair of neighbours.
    jump_at = -1;
    if (trips > WHOLE_LOOP_TRIPS) trips = WHOLE_LOOP_TRIPS;
  }
  for (int64_t i = 0; i < trips && !self->status && self->budget > 0; i++) {
    if (ends_itself && carried.items[0].number == 0) break;
    // The middle of a long loop repeats with the period of its rings.
    if (i == jump_at) i += (trips - 2 * jump_at) / self->period * self->period;
    tl_run_env_set(&self->env, body->args[0], lower + i * step);
    pass_values(self, (const tl_value *const *)body->args + 1, carried.items, (uint32_t)carried.len);
    run_block(self, body);
    const tl_op *yield = tl_block_terminator(body);
    for (uint32_t v = 0; yield && v < carried.len && v < yield->num_operands; v++) {
      carried.items[v] = *tl_run_env_at(&self->env, tl_op_operand(yield, v));
    }
  }
  for (uint32_t v = 0; v < op->num_results && v < carried.len; v++) {
    *tl_run_env_at(&self->env, &op->results[v]) = carried.items[v];
  }
  tl_vec_fini(&carried);
}

static void run_statement(verifier *self, const tl_op *op) {
  switch ((int)op->code) {
    case TL_OP_BARRIER:
      run_barrier(self);
      return;
    case TL_OP_RING_COMMIT:
      run_commit(self, ring_number(self, tl_op_operand(op, 0)));
      return;
    case TL_OP_ASYNC_COMMIT:
      run_commit(self, -1);
      return;
    case TL_OP_ASYNC_WAIT:
      land(self, self->num_commits - 1 - tl_op_int(op, TL_ATTR_PENDING, 0), -1);
      return;
    case TL_OP_RING_WAIT:
      run_ring_wait(self, op);
      return;
    case TL_OP_RING_ACQUIRE:
      tl_run_env_set(&self->env, &op->results[0], tl_run_env_number(&self->env, tl_op_operand(op, 1)));
      return;
    case TL_OP_VIEW:
    case TL_OP_STAGE_TILE:
    case TL_OP_RING_TILE:
      run_buffer(self, op);
      return;
    case TL_OP_ALLOC:
    case TL_OP_TENSOR:
      return;  // known before the run
    case TL_OP_FOR:
      if (tl_op_has(op, TL_ATTR_TILES))
        run_tiles(self, op);
      else
        run_for(self, op);
      return;
    case TL_OP_IF:
      run_if(self, op);
      return;
    case TL_OP_GRID:
      for (uint32_t i = 0; i < op->num_results; i++)
        tl_run_env_set(&self->env, &op->results[i], (int64_t)(self->env.seed % 3));
      return;
    case TL_OP_TILE_INDEX: {
      int64_t tile = tl_run_env_number(&self->env, tl_op_arg(op, TL_GROUP_TILE_INDEX_tile));
      for (uint32_t i = 0; i < op->num_results; i++)
        tl_run_env_set(&self->env, &op->results[i], (tile + (int64_t)self->env.seed) % 3);
      return;
    }
    default:
      break;
  }
  access_inside(self, op, op, tl_op_has(op, TL_ATTR_ASYNC), self->records.len);
  if (op->num_results == 1 && op->num_regions == 0 && op->results[0].type->kind != TL_TYPE_TILE)
    tl_run_scalar(&self->env, op);
}

static void run_block(verifier *self, const tl_block *block) {
  for (const tl_op *op = block->first; op && !self->status && self->budget-- > 0; op = op->next)
    run_statement(self, op);
}

static void run_once(verifier *self, uint64_t seed) {
  tl_run_env_clear(&self->env);
  self->env.seed = seed;
  tl_vec_clear(&self->records);
  for (size_t i = 0; i < self->rings.len; i++) tl_vec_fini(&self->rings.items[i].commits);
  tl_vec_clear(&self->rings);
  self->num_commits = 0;
  for (size_t i = 0; i < self->roots.len; i++) {
    *tl_run_env_at(&self->env, &self->roots.items[i]->results[0]) = (tl_run_value){.number = (int64_t)i, .known = true};
  }
  run_block(self, self->kernel->regions[0]);
}

// ---- exploration

typedef struct shape {
  verifier *self;
  bool has_branch;
} shape;

// Whether the value's computation uses one of the fixed values.
static bool depends_on_fixed(const tl_run_env *env, const tl_value *value, int depth) {
  for (size_t i = 0; i < env->fixed_keys.len; i++) {
    if (env->fixed_keys.items[i] == value) return true;
  }
  if (value->def == NULL || depth == 0) return false;
  for (uint32_t i = 0; i < value->def->num_operands; i++) {
    if (depends_on_fixed(env, tl_op_operand(value->def, i), depth - 1)) return true;
  }
  return false;
}

// Trips that a loop certainly makes: pipeline starts copies of that many without asking.
static int64_t least_trips(const tl_op *loop) {
  tl_value *lower = tl_op_operand(loop, 0), *upper = tl_op_operand(loop, 1);
  int64_t step, trips = 0;
  if (!tl_value_const_int(tl_op_operand(loop, 2), &step) || step != 1 || tl_op_has(loop, TL_ATTR_WHILE)) return 0;
  while (trips < MAX_DEPTH && tl_prove_lt_offset(lower, trips, upper)) trips++;
  return trips;
}

static void look_at(tl_op *op, void *user) {
  shape *found = user;
  verifier *self = found->self;
  int64_t depth = tl_op_int(op, TL_ATTR_DEPTH, 1);
  if (op->code == TL_OP_ALLOC || op->code == TL_OP_TENSOR) tl_vec_push(&self->roots, op);
  if (depth > 1 && depth <= MAX_DEPTH && self->period % depth != 0) self->period *= depth;
  if (depth > self->max_depth) self->max_depth = depth;
  bool decides = op->code == TL_OP_IF || tl_op_has(op, TL_ATTR_WHILE);
  if (decides && tl_op_enclosing(op, TL_OP_PARALLEL) == NULL) found->has_branch = true;
  if (op->code != TL_OP_FOR || tl_op_enclosing(op, TL_OP_PARALLEL)) return;
  const tl_value *upper = tl_op_operand(op, 1);
  int64_t constant;
  if (tl_value_const_int(upper, &constant) || depends_on_fixed(&self->env, upper, 32)) return;
  tl_vec_push(&self->env.fixed_keys, upper);
  tl_vec_push(&self->env.fixed_values, 0);
  tl_vec_push(&self->least_trips, tl_op_has(op, TL_ATTR_TILES) ? 0 : least_trips(op));
}

static void run_seeds(verifier *self, bool has_branch) {
  for (uint64_t seed = 0; seed < (has_branch ? NUM_SEEDS : 1) && !self->status && self->budget > 0; seed++)
    run_once(self, seed);
}

// Trip counts 0 … S + 2 of every dynamic loop, or from what it certainly makes on: all combinations for up to two
// loops, else one loop at a time.
static void explore(verifier *self, bool has_branch) {
  size_t loops = self->env.fixed_keys.len;
  int64_t *trips = self->env.fixed_values.items, *least = self->least_trips.items;
  int64_t most = self->max_depth + 2;
  for (size_t i = 0; i < loops; i++) {
    if (least[i] + 2 > most) most = least[i] + 2;
  }
  if (loops == 0) {
    run_seeds(self, has_branch);
    return;
  }
  for (size_t focus = 0; focus < loops; focus++) {
    for (size_t i = 0; i < loops; i++) trips[i] = least[i] > self->max_depth ? least[i] : self->max_depth;
    for (trips[focus] = least[focus]; trips[focus] <= most; trips[focus]++) run_seeds(self, has_branch);
  }
  for (int64_t a = loops == 2 ? least[0] : 0; loops == 2 && a <= most; a++) {
    for (int64_t b = least[1]; b <= most; b++) {
      trips[0] = a;
      trips[1] = b;
      run_seeds(self, has_branch);
    }
  }
}

static tl_status verify_kernel(tl_pass_context *context, tl_op *kernel) {
  verifier self = {.context = context, .kernel = kernel, .period = 1, .max_depth = 1, .budget = STATEMENT_BUDGET};
  tl_run_env_init(&self.env, kernel);
  shape found = {.self = &self};
  tl_walk(kernel, look_at, &found);
  explore(&self, found.has_branch);
  for (size_t i = 0; i < self.rings.len; i++) tl_vec_fini(&self.rings.items[i].commits);
  tl_vec_fini(&self.rings);
  tl_vec_fini(&self.records);
  tl_vec_fini(&self.roots);
  tl_vec_fini(&self.least_trips);
  tl_run_env_fini(&self.env);
  return self.status;
}

tl_status tl_pass_verify_barriers(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code == TL_OP_KERNEL) TL_TRY(verify_kernel(context, op));
  }
  return TL_OK;
}
