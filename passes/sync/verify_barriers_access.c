// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses of verify-barriers: which memory a statement touches, and whether what was before may still be under way.
#include "passes/analysis/memory_access.h"
#include "passes/sync/verify_barriers_internal.h"

// Looking at so many records takes as long as a statement.
enum { RECORDS_A_STATEMENT = 64 };

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

static bool boxes_meet(const tl_run_access *a, const tl_run_access *b) {
  if (a->box_buffer == NULL || a->box_buffer != b->box_buffer) return true;
  for (int32_t d = 0; d < a->box_buffer->type->rank; d++) {
    if (a->hi[d] < b->lo[d] || b->hi[d] < a->lo[d]) return false;
  }
  return true;
}

static bool same_box(const tl_run_access *a, const tl_run_access *b) {
  if (a->box_buffer != b->box_buffer) return false;
  for (int32_t d = 0; a->box_buffer && d < a->box_buffer->type->rank; d++) {
    if (a->lo[d] != b->lo[d] || a->hi[d] != b->hi[d]) return false;
  }
  return true;
}

// Views that are made anew for every run of a loop's or parallel's body: boxes in them do not compare.
static bool moves(const tl_value *buffer) {
  return buffer->def && buffer->def->code == TL_OP_VIEW && buffer->def->parent->parent->code != TL_OP_KERNEL;
}

// One side of a copy, tile load or tile store: which elements of the buffer it covers in this run.
typedef struct box_side {
  int offsets;  // operand group
  tl_attr_key dims, steps;
} box_side;

// The part of a tile that a gemm reads.
static void find_part(tl_barrier_verifier *self, tl_run_access *record, const tl_op *part) {
  const tl_type *type = part->results[0].type;
  const int64_t *dims = tl_op_ints(part, TL_ATTR_SRC_DIMS, NULL);
  record->box_buffer = tl_op_arg(part, TL_GROUP_PART_TILE_tile);
  for (int32_t d = 0; d < record->box_buffer->type->rank; d++) {
    int64_t extent = d == dims[0] ? type->dims[0] : d == dims[1] ? type->dims[1] : 1;
    record->lo[d] = tl_run_env_number(&self->env, tl_op_group_at(part, TL_GROUP_PART_TILE_offsets, (uint32_t)d));
    record->hi[d] = record->lo[d] + extent - 1;
  }
}

static void find_box(tl_barrier_verifier *self, tl_run_access *record, const tl_op *op, const tl_value *buffer) {
  if (buffer->def && buffer->def->code == TL_OP_PART_TILE) find_part(self, record, buffer->def);
  if (moves(buffer)) return;
  box_side side;
  bool is_write = record->kind == TL_RUN_WRITE;
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

enum { MAX_STEPS = 16 };  // of an index inside a parallel that are looked through

// The least and the largest number that an index inside of the parallel has in this run. False: not known.
static bool find_reach(tl_barrier_verifier *self, const tl_op *parallel, const tl_value *index, int steps, int64_t *lo,
                       int64_t *hi) {
  enum { MOST = INT32_MAX };
  const tl_op *def = index->def;
  if (index->type->kind != TL_TYPE_INDEX || steps == 0) return false;
  if (!def && index->block == parallel->regions[0]) {
    uint32_t place = 0;
    while (parallel->regions[0]->args[place] != index) place++;
    *lo = 0;
    *hi = tl_op_attr(parallel, TL_ATTR_EXTENTS)->v.ints.items[place] - 1;
    return true;
  }
  if (def && def->code == TL_OP_CONST) {
    *lo = *hi = tl_op_attr(def, TL_ATTR_VALUE)->v.i;
    return true;
  }
  if (!def || !tl_op_is_inside(def, parallel)) {
    const tl_run_value *cell = tl_run_env_at(&self->env, index);
    *lo = *hi = cell->number;
    return cell->known;
  }
  int64_t left[2], right[2];
  if (def->code != TL_OP_ADD && def->code != TL_OP_SUB && def->code != TL_OP_MUL) return false;
  if (!find_reach(self, parallel, tl_op_operand(def, 0), steps - 1, &left[0], &left[1])) return false;
  if (!find_reach(self, parallel, tl_op_operand(def, 1), steps - 1, &right[0], &right[1])) return false;
  if (left[0] < -MOST || left[1] > MOST || right[0] < -MOST || right[1] > MOST) return false;
  bool is_product = def->code == TL_OP_MUL;
  if (is_product && (left[0] < 0 || right[0] < 0)) return false;
  bool is_sum = def->code == TL_OP_ADD;
  *lo = is_product ? left[0] * right[0] : is_sum ? left[0] + right[0] : left[0] - right[1];
  *hi = is_product ? left[1] * right[1] : is_sum ? left[1] + right[1] : left[1] - right[0];
  return true;
}

// What elements of a parallel cover together.
static void find_element_box(tl_barrier_verifier *self, tl_run_access *record, const tl_op *op,
                             const tl_value *buffer) {
  if (moves(buffer)) return;
  int group = op->code == TL_OP_LOAD ? TL_GROUP_LOAD_index : TL_GROUP_STORE_index;
  for (int32_t d = 0; d < buffer->type->rank; d++) {
    const tl_value *index = tl_op_group_at(op, group, (uint32_t)d);
    if (!find_reach(self, record->op, index, MAX_STEPS, &record->lo[d], &record->hi[d])) return;
  }
  record->box_buffer = buffer;
}

tl_run_extent tl_run_extent_of(const tl_op *root) {
  if (root->code != TL_OP_ALLOC || !tl_op_has(root, TL_ATTR_OFFSET)) return (tl_run_extent){0};
  int64_t start = tl_op_int(root, TL_ATTR_OFFSET, 0);
  return (tl_run_extent){start, start + root_bytes(root)};
}

bool tl_run_roots_meet(const tl_barrier_verifier *self, int64_t a, int64_t b) {
  const tl_run_extent *left = &self->extents.items[a], *right = &self->extents.items[b];
  return a == b || (left->start < right->end && right->start < left->end);
}

// Whether two copies lie on common memory: the same copy of one tile, or tiles that plan-shared put over one another.
static bool overlaps(const tl_barrier_verifier *self, const tl_run_access *a, const tl_run_access *b) {
  if (a->block != b->block) return false;
  return a->root == b->root ? a->slot == b->slot && boxes_meet(a, b) : tl_run_roots_meet(self, a->root, b->root);
}

static bool conflicts(tl_run_kind a, tl_run_kind b) {
  if (a == TL_RUN_WAITED) return false;
  if (a == TL_RUN_READ && b == TL_RUN_READ) return false;
  return !(a == TL_RUN_ATOMIC && b == TL_RUN_ATOMIC);
}

bool tl_run_is_matrix(const tl_op *op) {
  const tl_instruction *inst = op->code == TL_OP_GEMM ? tl_op_instruction(op) : NULL;
  return inst && inst->family == TL_FAMILY_WGMMA;
}

// Whether `before` may still be under way for who makes `after`: every thread, the matrix unit on behalf of every
// thread, or the copy engine on behalf of the elected one. Those two do not see what threads did without a proxy fence.
static bool is_unordered(const tl_barrier_verifier *self, const tl_run_access *before, const tl_run_access *after) {
  const tl_run_role *role = &self->roles[self->role];
  uint32_t who = after->is_engine ? role->elected : role->all;
  bool crosses = (after->is_engine || after->is_matrix) && !before->is_engine && !before->is_matrix;
  return ((crosses ? before->fenced : before->seen) & who) != who;
}

static bool is_repeated(const tl_run_access *before, const tl_run_access *after) {
  return before->op == after->op && before->role == after->role && before->kind == after->kind &&
         before->root == after->root && before->block == after->block && before->slot == after->slot &&
         same_box(before, after);
}

typedef struct statement_run {
  tl_barrier_verifier *self;
  const tl_op *statement;
  bool is_async, is_engine;
} statement_run;

// Of a copy for a cluster: the rows that the block that runs brings.
static void take_share(tl_run_access *record, const tl_op *copy, const tl_run_peers *peers) {
  int64_t dim = tl_op_ints(copy, TL_ATTR_DST_DIMS, NULL)[0];
  int64_t share = tl_op_ints(copy, TL_ATTR_EXTENTS, NULL)[0] / peers->count;
  record->lo[dim] += share * peers->place;
  record->hi[dim] = record->lo[dim] + share - 1;
}

static void add_record(statement_run *run, const tl_run_access *made);

// Checks an access of the statement against everything before it, and keeps it.
static void add_access(void *user, const tl_op *op, tl_run_kind kind, const tl_value *buffer) {
  statement_run *run = user;
  tl_barrier_verifier *self = run->self;
  if (buffer->type->kind != TL_TYPE_BUFFER || buffer->type->scope == TL_SCOPE_LOCAL) return;
  const tl_value *value = buffer;
  // Views inside a parallel are not run; what they look at is.
  while (!tl_run_env_at(&self->env, value)->known && value->def && value->def->code == TL_OP_VIEW)
    value = tl_op_operand(value->def, 0);
  const tl_run_value *cell = tl_run_env_at(&self->env, value);
  if (!cell->known || !self->is_written[cell->number]) return;
  tl_run_access record = {.kind = kind,
                          .role = self->role,
                          .block = cell->peer ? cell->peer - 1 : self->block,
                          .made = self->num_made,
                          .root = cell->number,
                          .slot = cell->slot,
                          .is_async = run->is_async && kind != TL_RUN_ATOMIC,
                          .is_engine = run->is_engine,
                          .is_matrix = kind == TL_RUN_READ && tl_run_is_matrix(op),
                          .gemm = run->is_async && tl_run_is_matrix(op) ? self->roles[self->role].num_gemms : 0,
                          .group = -1,
                          .ring = -1,
                          .counts_phase = -1,
                          .op = run->statement};
  find_box(self, &record, run->statement, buffer);
  if (run->statement->code == TL_OP_PARALLEL && (op->code == TL_OP_LOAD || op->code == TL_OP_STORE))
    find_element_box(self, &record, op, buffer);
  if (kind != TL_RUN_WRITE || !tl_op_has(run->statement, TL_ATTR_ACROSS)) {
    add_record(run, &record);
    return;
  }
  tl_run_peers peers = tl_run_peers_of(self, run->statement);
  take_share(&record, run->statement, &peers);
  for (int32_t i = 0; i < peers.count; i++) {
    record.block = peers.first + i * peers.stride;
    add_record(run, &record);
  }
}

static void add_record(statement_run *run, const tl_run_access *made) {
  tl_barrier_verifier *self = run->self;
  tl_run_access record = *made;
  tl_run_kind kind = record.kind;
  self->budget -= (int64_t)(self->records.len / RECORDS_A_STATEMENT);
  for (size_t i = 0; i < self->records.len && !self->status; i++) {
    const tl_run_access *before = &self->records.items[i];
    if (before->made == record.made) continue;  // of the statement itself
    if (conflicts(before->kind, kind) && is_unordered(self, before, &record) && overlaps(self, before, &record))
      tl_run_race(self, before, &record);
  }
  for (size_t i = 0; i < self->records.len && !run->is_async; i++) {
    tl_run_access *same = &self->records.items[i];
    if (!is_repeated(same, &record) || (run->is_engine && !(same->seen & self->roles[self->role].elected))) continue;
    // What comes after this one comes after the earlier one too.
    tl_vec_fini(&same->releases);
    *same = record;
    return;
  }
  tl_vec_push(&self->records, record);
}

void tl_run_each_access(tl_barrier_verifier *self, const tl_op *op, tl_run_access_fn *fn, void *user) {
  switch (op->code) {
    case TL_OP_LOAD:
      fn(user, op, TL_RUN_READ, tl_op_arg(op, TL_GROUP_LOAD_buffer));
      break;
    case TL_OP_STORE:
      fn(user, op, TL_RUN_WRITE, tl_op_arg(op, TL_GROUP_STORE_buffer));
      break;
    case TL_OP_ATOMIC:
      fn(user, op, TL_RUN_ATOMIC, tl_op_arg(op, TL_GROUP_ATOMIC_buffer));
      break;
    case TL_OP_WAIT_UNTIL:
      fn(user, op, TL_RUN_ATOMIC, tl_op_arg(op, TL_GROUP_WAIT_UNTIL_buffer));
      break;
    case TL_OP_FILL:
      fn(user, op, TL_RUN_WRITE, tl_op_arg(op, TL_GROUP_FILL_buffer));
      break;
    case TL_OP_COPY:
      fn(user, op, TL_RUN_READ, tl_op_arg(op, TL_GROUP_COPY_src));
      fn(user, op, TL_RUN_WRITE, tl_op_arg(op, TL_GROUP_COPY_dst));
      break;
    case TL_OP_TILE_LOAD:
      fn(user, op, TL_RUN_READ, tl_op_arg(op, TL_GROUP_TILE_LOAD_src));
      break;
    case TL_OP_TILE_STORE:
      fn(user, op, TL_RUN_WRITE, tl_op_arg(op, TL_GROUP_TILE_STORE_dst));
      break;
    case TL_OP_GEMM:
      fn(user, op, TL_RUN_READ, tl_op_arg(op, TL_GROUP_GEMM_a));
      fn(user, op, TL_RUN_READ, tl_op_arg(op, TL_GROUP_GEMM_b));
      if (tl_op_arg(op, TL_GROUP_GEMM_meta)) fn(user, op, TL_RUN_READ, tl_op_arg(op, TL_GROUP_GEMM_meta));
      fn(user, op, TL_RUN_WRITE, tl_op_arg(op, TL_GROUP_GEMM_acc));
      break;
    case TL_OP_PRINT:
    case TL_OP_ASSERT:
    case TL_OP_REDUCE:
    case TL_OP_SCAN:
      break;  // of values and registers
    default:
      if (tl_op_info_of(op->code)->flags & (TL_OPFLAG_READ | TL_OPFLAG_WRITE)) tl_run_unknown(self, op);
      break;
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *inner = op->regions[r]->first; inner; inner = inner->next)
      tl_run_each_access(self, inner, fn, user);
  }
}

static void note_write(void *user, const tl_op *op, tl_run_kind kind, const tl_value *buffer) {
  tl_barrier_verifier *self = user;
  (void)op;
  if (kind == TL_RUN_READ || buffer->type->kind != TL_TYPE_BUFFER || buffer->type->scope == TL_SCOPE_LOCAL) return;
  int64_t root = tl_run_root_of(self, buffer);
  if (root >= 0) self->is_written[root] = true;
}

void tl_run_find_written(tl_barrier_verifier *self) {
  self->is_written = TL_NEW_ARRAY(&self->context->scratch, bool, self->roots.len + 1);
  // Tiles may lie over one another: all of them are kept.
  for (size_t i = 0; i < self->roots.len; i++) self->is_written[i] = self->roots.items[i]->code != TL_OP_TENSOR;
  for (const tl_op *op = self->kernel->regions[0]->first; op; op = op->next)
    tl_run_each_access(self, op, note_write, self);
}

typedef struct use_search {
  tl_barrier_verifier *self;
  const tl_run_role *role;
} use_search;

static void note_use(void *user, const tl_op *op, tl_run_kind kind, const tl_value *buffer) {
  use_search *search = user;
  (void)kind;
  if (buffer->type->kind != TL_TYPE_BUFFER || buffer->type->scope == TL_SCOPE_LOCAL) return;
  int64_t root = tl_run_root_of(search->self, buffer);
  if (root < 0) return;
  tl_run_use *use = &search->self->uses[root];
  bool is_engine = op->code == TL_OP_COPY && tl_op_arg(op, TL_GROUP_COPY_map);
  use->threads |= is_engine ? search->role->elected : search->role->all;
  use->is_proxied |= is_engine || tl_run_is_matrix(op);
}

// What stands in no role all of them are together for.
static void find_uses_in(use_search *search, const tl_op *op) {
  const tl_barrier_verifier *self = search->self;
  if (op->code != TL_OP_ROLES) {
    search->role = &self->roles[0];
    tl_run_each_access(search->self, op, note_use, search);
    return;
  }
  for (int32_t r = 1; r <= self->num_roles; r++) {
    search->role = &self->roles[r];
    tl_run_each_access(search->self, self->roles[r].op, note_use, search);
  }
}

void tl_run_find_uses(tl_barrier_verifier *self) {
  use_search search = {.self = self};
  size_t count = self->roots.len;
  tl_run_use *own = TL_NEW_ARRAY(&self->context->scratch, tl_run_use, count + 1);
  self->uses = own;
  for (const tl_op *op = self->kernel->regions[0]->first; op; op = op->next) find_uses_in(&search, op);
  self->uses = TL_NEW_ARRAY(&self->context->scratch, tl_run_use, count + 1);
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < count; j++) {
      if (!tl_run_roots_meet(self, (int64_t)i, (int64_t)j)) continue;
      self->uses[i].threads |= own[j].threads;
      self->uses[i].is_proxied |= own[j].is_proxied;
    }
  }
}

// Whether no warp is left out of a gemm.
static bool takes_all_warps(const tl_op *gemm) {
  enum { WARP = 32 };
  int64_t count = 1;
  int32_t len = 0;
  const int64_t *warps = tl_op_ints(gemm, TL_ATTR_WARPS, &len);
  for (int32_t i = 0; i < len; i++) count *= warps[i];
  return warps && count * WARP == tl_op_threads(gemm);
}

void tl_run_accesses(tl_barrier_verifier *self, const tl_op *statement) {
  statement_run run = {.self = self, .statement = statement};
  run.is_engine = statement->code == TL_OP_COPY && tl_op_arg(statement, TL_GROUP_COPY_map) != NULL;
  run.is_async = !run.is_engine && tl_op_has(statement, TL_ATTR_ASYNC);
  int64_t *num_gemms = &self->roles[self->role].num_gemms;
  if (run.is_async && tl_run_is_matrix(statement)) ++*num_gemms;
  if (tl_run_is_matrix(statement) && takes_all_warps(statement)) tl_run_meet(self, run.is_async ? *num_gemms : 0);
  self->num_made++;
  tl_run_each_access(self, statement, add_access, &run);
  if (run.is_engine) tl_run_engine_copy(self, statement);
}

void tl_run_forget(tl_barrier_verifier *self) {
  for (size_t i = 0; i < self->records.len; i++) tl_vec_fini(&self->records.items[i].releases);
  tl_vec_clear(&self->records);
}
