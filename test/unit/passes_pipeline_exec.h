// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Symbolic execution of a kernel for tests: a tile's content is a hash of how it came about, so two kernels leave equal
// hashes in global memory when every tile value was computed from the same data. Asynchronous copies land at once or as
// late as the waits allow.
#ifndef TL_TEST_UNIT_PASSES_PIPELINE_EXEC_H
#define TL_TEST_UNIT_PASSES_PIPELINE_EXEC_H

#include "passes/sync/verify_barriers_internal.h"
#include "passes_pipeline_ir.h"

// A shared tile's rows are a part for every 16 of them: copies may fill some only.
enum { EXEC_PARTS = 4, EXEC_PART_ROWS = 16, EXEC_ALL_PARTS = (1 << EXEC_PARTS) - 1 };

typedef struct exec_write {
  int64_t root, slot;
  uint64_t content;
  int parts;
  int64_t group, ring;
} exec_write;

typedef struct exec_state {
  tl_run_env env;
  bool late;
  TL_VEC(const tl_op *) roots;
  uint64_t content[64][32][EXEC_PARTS];  // of root and slot
  TL_VEC(exec_write) flying;
  TL_VEC(const tl_value *) rings;
  TL_VEC(int64_t) commits[16];
  int64_t num_commits;
} exec_state;

static inline uint64_t exec_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

static inline const tl_run_value *exec_cell(exec_state *x, const tl_value *buffer) {
  while (!tl_run_env_at(&x->env, buffer)->known && buffer->def && buffer->def->code == TL_OP_VIEW)
    buffer = tl_op_operand(buffer->def, 0);
  return tl_run_env_at(&x->env, buffer);
}

static inline uint64_t exec_content(exec_state *x, const tl_value *buffer) {
  const tl_run_value *cell = exec_cell(x, buffer);
  uint64_t hash = 17;
  for (int p = 0; p < EXEC_PARTS; p++) hash = exec_mix(hash, x->content[cell->number][cell->slot][p]);
  return hash;
}

static inline void exec_set(exec_state *x, const exec_write *write) {
  for (int p = 0; p < EXEC_PARTS; p++)
    if (write->parts & (1 << p)) x->content[write->root][write->slot][p] = write->content;
}

static inline void exec_write_cell(exec_state *x, const tl_value *buffer, uint64_t content, int parts, bool is_async) {
  const tl_run_value *cell = exec_cell(x, buffer);
  exec_write write = {cell->number, cell->slot, content, parts, -1, -1};
  if (is_async && x->late) {
    tl_vec_push(&x->flying, write);
  } else {
    exec_set(x, &write);
  }
}

static inline uint64_t exec_operand(exec_state *x, const tl_value *value) {
  if (value->type->kind == TL_TYPE_BUFFER) return exec_content(x, value);
  return (uint64_t)tl_run_env_number(&x->env, value);
}

static inline uint64_t exec_inside(exec_state *x, const tl_op *op, const tl_op *parallel, uint64_t hash) {
  hash = exec_mix(hash, op->code);
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_value *value = tl_op_operand(op, i);
    const tl_op *def = value->def ? value->def : value->block->parent;
    bool inner = def && tl_op_is_inside(def, parallel);
    // What a store overwrites does not matter: the parallels of these tests write whole tiles.
    if (op->code == TL_OP_STORE && value == tl_op_arg(op, TL_GROUP_STORE_buffer)) continue;
    hash = exec_mix(hash, inner ? 7 + value->index : exec_operand(x, value));
  }
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *in = op->regions[r]->first; in; in = in->next) hash = exec_inside(x, in, parallel, hash);
  }
  return hash;
}

static inline void exec_stores(exec_state *x, const tl_op *op, uint64_t hash, bool is_async) {
  if (op->code == TL_OP_STORE) exec_write_cell(x, tl_op_arg(op, TL_GROUP_STORE_buffer), hash, EXEC_ALL_PARTS, is_async);
  for (uint32_t r = 0; r < op->num_regions; r++) {
    for (const tl_op *in = op->regions[r]->first; in; in = in->next) exec_stores(x, in, hash, is_async);
  }
}

static inline int64_t exec_ring(exec_state *x, const tl_value *ring) {
  for (size_t i = 0; i < x->rings.len; i++) {
    if (x->rings.items[i] == ring) return (int64_t)i;
  }
  tl_vec_push(&x->rings, ring);
  return (int64_t)x->rings.len - 1;
}

static inline void exec_commit(exec_state *x, int64_t ring) {
  int64_t number = x->num_commits++;
  for (size_t i = 0; i < x->flying.len; i++) {
    if (x->flying.items[i].group >= 0) continue;
    x->flying.items[i].group = number;
    x->flying.items[i].ring = ring;
  }
  if (ring >= 0) tl_vec_push(&x->commits[ring], number);
}

static inline void exec_land(exec_state *x, int64_t last, int64_t ring) {
  size_t kept = 0;
  for (size_t i = 0; i < x->flying.len; i++) {
    exec_write write = x->flying.items[i];
    if (write.group >= 0 && write.group <= last && (ring < 0 || write.ring == ring)) {
      exec_set(x, &write);
    } else {
      x->flying.items[kept++] = write;
    }
  }
  x->flying.len = kept;
}

static inline void exec_block(exec_state *x, const tl_block *block);

static inline void exec_for(exec_state *x, const tl_op *op) {
  int64_t lower = tl_run_env_number(&x->env, tl_op_operand(op, 0));
  int64_t upper = tl_run_env_number(&x->env, tl_op_operand(op, 1));
  int64_t step = tl_run_env_number(&x->env, tl_op_operand(op, 2));
  tl_run_value carried[16];
  uint32_t count = op->num_operands - 3;
  for (uint32_t i = 0; i < count; i++) carried[i] = *tl_run_env_at(&x->env, tl_op_operand(op, 3 + i));
  const tl_block *body = op->regions[0];
  for (int64_t i = lower; step > 0 ? i < upper : i > upper; i += step) {
    tl_run_env_set(&x->env, body->args[0], i, false);
    for (uint32_t v = 0; v < count; v++) *tl_run_env_at(&x->env, body->args[v + 1]) = carried[v];
    exec_block(x, body);
    const tl_op *yield = tl_block_terminator(body);
    for (uint32_t v = 0; v < count; v++) carried[v] = *tl_run_env_at(&x->env, tl_op_operand(yield, v));
  }
  for (uint32_t v = 0; v < count; v++) *tl_run_env_at(&x->env, &op->results[v]) = carried[v];
}

static inline uint64_t exec_copy_hash(exec_state *x, const tl_op *op, int first_group, const tl_value *src) {
  uint64_t hash = exec_mix(11, exec_content(x, src));
  for (uint32_t i = 0; i < tl_op_group_len(op, first_group); i++) {
    hash = exec_mix(hash, (uint64_t)tl_run_env_number(&x->env, tl_op_group_at(op, first_group, i)));
  }
  return hash;
}

// A write of a box: the old content stays in the hash unless whole parts of a shared tile are written.
static inline void exec_write_box(exec_state *x, const tl_op *op, int offsets, const tl_value *dst, uint64_t hash) {
  const tl_attr *extents = tl_op_attr(op, TL_ATTR_EXTENTS);
  int64_t at[2] = {0, 0};
  int parts = 0;
  for (uint32_t i = 0; i < tl_op_group_len(op, offsets); i++) {
    at[i] = tl_run_env_number(&x->env, tl_op_group_at(op, offsets, i));
    hash = exec_mix(hash, (uint64_t)at[i]);
  }
  bool whole = dst->type->scope == TL_SCOPE_SHARED && extents && at[1] == 0 &&
               extents->v.ints.items[1] == dst->type->dims[1] && extents->v.ints.items[0] % EXEC_PART_ROWS == 0 &&
               at[0] % EXEC_PART_ROWS == 0;
  for (int64_t row = at[0]; whole && row < at[0] + extents->v.ints.items[0]; row += EXEC_PART_ROWS)
    parts |= 1 << (row / EXEC_PART_ROWS);
  exec_write_cell(x, dst, whole ? hash : exec_mix(hash, exec_content(x, dst)), whole ? parts : EXEC_ALL_PARTS,
                  tl_op_has(op, TL_ATTR_ASYNC));
}

static inline void exec_op(exec_state *x, const tl_op *op) {
  tl_run_value *result = op->num_results ? tl_run_env_at(&x->env, &op->results[0]) : NULL;
  switch (op->code) {
    case TL_OP_ALLOC:
    case TL_OP_TENSOR:
    case TL_OP_RING:
    case TL_OP_BARRIER:
    case TL_OP_RING_RELEASE:
    case TL_OP_YIELD:
      return;
    case TL_OP_RING_COMMIT:
      exec_commit(x, exec_ring(x, tl_op_operand(op, 0)));
      return;
    case TL_OP_ASYNC_COMMIT:
      exec_commit(x, -1);
      return;
    case TL_OP_ASYNC_WAIT:
      exec_land(x, x->num_commits - 1 - tl_op_int(op, TL_ATTR_PENDING, 0), -1);
      return;
    case TL_OP_RING_WAIT: {
      int64_t ring = exec_ring(x, tl_op_operand(op, 0));
      int64_t landed = (int64_t)x->commits[ring].len - tl_op_int(op, TL_ATTR_PENDING, 0);
      if (landed > 0) exec_land(x, x->commits[ring].items[landed - 1], ring);
      tl_run_env_set(&x->env, &op->results[0], tl_run_env_number(&x->env, tl_op_operand(op, 1)), false);
      return;
    }
    case TL_OP_RING_ACQUIRE:
      tl_run_env_set(&x->env, &op->results[0], tl_run_env_number(&x->env, tl_op_operand(op, 1)), false);
      return;
    case TL_OP_VIEW:
      *result = *exec_cell(x, tl_op_operand(op, 0));
      return;
    case TL_OP_STAGE_TILE:
      *result = *exec_cell(x, tl_op_operand(op, 0));
      result->slot = tl_run_env_number(&x->env, tl_op_operand(op, 1));
      return;
    case TL_OP_RING_TILE: {
      int64_t depth = tl_op_int(tl_op_operand(tl_op_operand(op, 0)->def, 0)->def, TL_ATTR_DEPTH, 1);
      *result = *exec_cell(x, tl_op_operand(op, 1));
      result->slot = tl_run_env_number(&x->env, tl_op_operand(op, 0)) % depth;
      return;
    }
    case TL_OP_FOR:
      exec_for(x, op);
      return;
    case TL_OP_IF: {
      const tl_block *block = op->regions[tl_run_env_number(&x->env, tl_op_operand(op, 0)) ? 0 : 1];
      exec_block(x, block);
      for (uint32_t i = 0; i < op->num_results; i++) {
        *tl_run_env_at(&x->env, &op->results[i]) =
            *tl_run_env_at(&x->env, tl_op_operand(tl_block_terminator(block), i));
      }
      return;
    }
    case TL_OP_FILL:
      exec_write_cell(x, tl_op_operand(op, 0), 5, EXEC_ALL_PARTS, false);
      return;
    case TL_OP_COPY: {
      uint64_t hash = exec_copy_hash(x, op, TL_GROUP_COPY_src_offsets, tl_op_arg(op, TL_GROUP_COPY_src));
      const tl_value *dst = tl_op_arg(op, TL_GROUP_COPY_dst);
      exec_write_box(x, op, TL_GROUP_COPY_dst_offsets, dst, hash);
      return;
    }
    case TL_OP_TILE_LOAD:
      *result = (tl_run_value){.number = (int64_t)exec_copy_hash(x, op, TL_GROUP_TILE_LOAD_src_offsets,
                                                                 tl_op_arg(op, TL_GROUP_TILE_LOAD_src)),
                               .known = true};
      return;
    case TL_OP_TILE_STORE: {
      uint64_t hash = exec_mix(13, exec_operand(x, tl_op_operand(op, 0)));
      const tl_value *dst = tl_op_arg(op, TL_GROUP_TILE_STORE_dst);
      exec_write_box(x, op, TL_GROUP_TILE_STORE_dst_offsets, dst, hash);
      return;
    }
    case TL_OP_GEMM:
    case TL_OP_SPLAT:
    case TL_OP_UNDEF_TILE: {
      uint64_t hash = op->code;
      for (uint32_t i = 0; i < op->num_operands; i++) hash = exec_mix(hash, exec_operand(x, tl_op_operand(op, i)));
      *result = (tl_run_value){.number = (int64_t)hash, .known = true};
      return;
    }
    case TL_OP_PARALLEL: {
      uint64_t hash = exec_inside(x, op, op, 3);
      exec_stores(x, op, hash, tl_op_has(op, TL_ATTR_ASYNC));
      for (uint32_t i = 0; i < op->num_results; i++) {
        *tl_run_env_at(&x->env, &op->results[i]) = (tl_run_value){.number = (int64_t)exec_mix(hash, i), .known = true};
      }
      return;
    }
    default:
      break;
  }
  if (op->num_results == 1 && op->num_regions == 0) tl_run_scalar(&x->env, op);
}

static inline void exec_block(exec_state *x, const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next) exec_op(x, op);
}

static inline void exec_collect(tl_op *op, void *user) {
  exec_state *x = user;
  if (op->code == TL_OP_ALLOC || op->code == TL_OP_TENSOR) tl_vec_push(&x->roots, op);
}

// Runs the kernel with every dynamic param set to `dynamic`; returns the hash of all global memory.
static inline uint64_t exec_kernel(tl_module *module, int64_t dynamic, uint64_t seed, bool late) {
  exec_state x = {.late = late};
  tl_op *kernel = tl_module_kernel(module);
  tl_run_env_init(&x.env, kernel);
  x.env.seed = seed;
  tl_walk(kernel, exec_collect, &x);
  for (tl_op *op = kernel->regions[0]->first; op; op = op->next) {
    if (op->code != TL_OP_DYN_PARAM) continue;
    tl_run_env_fix(&x.env, &op->results[0], x.env.fixed.len);
    tl_vec_push(&x.env.fixed, (tl_run_fixed){.number = dynamic});
  }
  for (size_t i = 0; i < x.roots.len; i++) {
    *tl_run_env_at(&x.env, &x.roots.items[i]->results[0]) = (tl_run_value){.number = (int64_t)i, .known = true};
    const tl_op *root = x.roots.items[i];
    for (int p = 0; p < EXEC_PARTS; p++)
      x.content[i][0][p] = root->code == TL_OP_TENSOR ? 1000 + (uint64_t)tl_op_int(root, TL_ATTR_ARG, 0) : 0;
  }
  exec_block(&x, kernel->regions[0]);
  uint64_t hash = 0;
  for (size_t i = 0; i < x.roots.len; i++) {
    if (x.roots.items[i]->code == TL_OP_TENSOR) hash = exec_mix(hash, x.content[i][0][0]);
  }
  tl_run_env_fini(&x.env);
  tl_vec_fini(&x.roots);
  tl_vec_fini(&x.flying);
  tl_vec_fini(&x.rings);
  for (int i = 0; i < 16; i++) tl_vec_fini(&x.commits[i]);
  return hash;
}

#endif
