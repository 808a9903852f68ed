// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// load, store and in_bounds of single elements, alone or in the groups of a parallel.
#include <string.h>

#include "llvm_backend/lower/address/lower_access.h"
#include "llvm_backend/lower/memory/lower_memory.h"
#include "llvm_backend/lower/state/lower.h"

// Whether no index of the op differs between the elements of a group.
static bool is_uniform(tl_lower *l, const tl_op *op, int index_group) {
  for (uint32_t d = 0; d < tl_op_group_len(op, index_group); d++)
    if (tl_lower_len(l, tl_op_group_at(op, index_group, d)) > 1) return false;
  return true;
}

tl_mem_access *tl_lower_element_access(tl_lower *l, const tl_op *op, int buffer_group, int index_group, int32_t e) {
  tl_parallel *parallel = l->parallel;
  tl_mem_access *access = NULL;
  for (size_t i = 0; parallel && i < parallel->accesses.len; i++)
    if (parallel->accesses.items[i]->op == op) access = parallel->accesses.items[i];
  if (access && !access->fixed) return access;
  tl_buffer *buffer = tl_lower_buffer(l, tl_op_arg(op, buffer_group));
  if (!buffer) {
    tl_lower_internal(l, op, "the buffer has no memory");
    return NULL;
  }
  if (!access) {
    access = TL_NEW(&l->arena, tl_mem_access);
    if (parallel) tl_vec_push(&parallel->accesses, access);
  }
  tl_lower_access_init(l, access, op, buffer);
  tl_lower_access_checks(access, op, TL_ATTR_CHECK);
  if (op->code == TL_OP_IN_BOUNDS)
    for (int32_t d = 0; d < access->rank; d++) access->check[d] = 3;
  for (int32_t d = 0; d < access->rank; d++)
    tl_lower_access_index(l, access, d, tl_op_group_at(op, index_group, (uint32_t)d), e);
  return access;
}

tl_place tl_lower_element_place(const tl_lower *l, int32_t e) {
  tl_place place = {0};
  if (!l->parallel) return place;
  place = l->parallel->place;
  place.reg[l->parallel->vec_dim] += l->parallel->element + e;
  return place;
}

// Elements that one access of the op moves.
static int32_t vector_width(const tl_lower *l, const tl_op *op, tl_dtype dtype) {
  int32_t vec = (int32_t)tl_op_int(op, TL_ATTR_VEC, 1), width = l->parallel ? l->parallel->width : 1;
  vec = tl_lower_raw_count(dtype, vec < width ? vec : width);
  while (vec > 1 && (width % vec != 0 || (vec & (vec - 1)) != 0)) vec--;
  return vec;
}

static bool known_element(tl_lower *l, const tl_op *op, tl_dtype dtype) {
  if (tl_session_type(l->session, dtype)) return true;
  tl_lower_unsupported(l, op, "elements of %s have no lowering", tl_dtype_name(dtype));
  return false;
}

typedef struct write_search {
  const tl_op *memory;
  bool found;
} write_search;

static void find_write(tl_op *op, void *user) {
  write_search *search = user;
  if (op->code != TL_OP_STORE && op->code != TL_OP_ATOMIC) return;
  int group = op->code == TL_OP_STORE ? TL_GROUP_STORE_buffer : TL_GROUP_ATOMIC_buffer;
  search->found |= tl_buffer_root(tl_op_arg(op, group)) == search->memory;
}

// The condition under which a thread may load: threads that handle an element a second time must not read what the
// first one writes. Nobody uses what they would have read (infer-layouts sees to that). NULL: none.
static LLVMValueRef may_load(const tl_lower *l, const tl_op *load) {
  LLVMValueRef owner = l->parallel ? l->parallel->place.owner : NULL;
  if (!owner) return NULL;
  write_search search = {.memory = tl_buffer_root(tl_op_arg(load, TL_GROUP_LOAD_buffer))};
  tl_walk(l->parallel->op, find_write, &search);
  return search.found ? owner : NULL;
}

static void load_vector(tl_lower *l, tl_op *op, tl_mem_access *access, int32_t e, int32_t vec, LLVMValueRef allowed,
                        LLVMValueRef *out) {
  tl_dtype dtype = access->buffer->dtype;
  tl_place place = tl_lower_element_place(l, e);
  LLVMValueRef inside = tl_lower_access_inside(l, access, &place);
  LLVMValueRef pointer = tl_lower_access_pointer(l, access, &place);
  LLVMValueRef half = tl_lower_access_half(l, access, &place, vec);
  int32_t bytes = tl_lower_raw_bytes(dtype, vec);
  LLVMValueRef reads = tl_lower_and(l, tl_lower_and(l, inside, allowed), l->loads_if);
  int32_t align = tl_lower_access_align(access, &place, bytes);
  LLVMValueRef raw = tl_lower_load_part(l, access->buffer, pointer, half, bytes, align, reads, TL_EVICT_NORMAL);
  tl_lower_unpack(l, raw, dtype, vec, out);
  tl_value *pad = tl_op_arg(op, TL_GROUP_LOAD_pad);
  if (!pad || !inside) return;
  for (int32_t i = 0; i < vec; i++)
    out[i] = LLVMBuildSelect(l->builder, inside, out[i], tl_lower_get(l, pad, e + i), "");
}

// Whether the store of a loaded value becomes a cp.async.
static bool is_async_store(tl_lower *l, const tl_op *op) {
  if (op->code != TL_OP_STORE || !l->parallel || !l->parallel->cp_async) return false;
  const tl_value *value = tl_op_arg(op, TL_GROUP_STORE_value);
  const tl_op *load = value->def;
  if (!load || load->code != TL_OP_LOAD || load->parent != op->parent || tl_op_arg(load, TL_GROUP_LOAD_pad))
    return false;
  tl_buffer *from = tl_lower_buffer(l, tl_op_arg(load, TL_GROUP_LOAD_buffer));
  tl_buffer *to = tl_lower_buffer(l, tl_op_arg(op, TL_GROUP_STORE_buffer));
  if (!from || !to || from->scope != TL_SCOPE_GLOBAL || to->scope != TL_SCOPE_SHARED || from->dtype != to->dtype)
    return false;
  int32_t bytes = vector_width(l, load, from->dtype) * tl_dtype_bits(from->dtype) / 8;
  return vector_width(l, load, from->dtype) == vector_width(l, op, to->dtype) && bytes >= 4;
}

// Whether the load's value only feeds stores that become asynchronous copies.
static bool is_deferred(tl_lower *l, const tl_op *op) {
  if (!l->parallel || !l->parallel->cp_async) return false;
  const tl_use *use = op->results[0].uses;
  return use && !use->next && is_async_store(l, use->owner);
}

static void load_repeated(tl_lower *l, tl_op *op, int32_t repeat, int32_t width, LLVMValueRef *out) {
  int32_t vec = (int32_t)tl_op_int(op, TL_ATTR_VEC, 1);
  while (width % (vec * repeat) != 0) vec--;
  LLVMValueRef items[TL_MAX_GROUP], allowed = may_load(l, op);
  for (int32_t e = 0; e < width; e += vec * repeat) {
    tl_mem_access *access = tl_lower_element_access(l, op, TL_GROUP_LOAD_buffer, TL_GROUP_LOAD_index, e);
    if (!access) return;
    load_vector(l, op, access, e, vec, allowed, items);
    for (int32_t i = 0; i < vec * repeat; i++) out[e + i] = items[i / repeat];
  }
}

// Neighbours that begin `shift` elements behind an aligned vector, out of that one and the next. Which is the first one
// of the elements behind, and of other loads of the row: the optimiser keeps one of each.
static void load_shifted(tl_lower *l, tl_op *op, tl_mem_access *access, int32_t e, int32_t vec, LLVMValueRef allowed,
                         LLVMValueRef *out) {
  int64_t shift = tl_op_int(op, TL_ATTR_SHIFT, 0), *constant = &access->constant[access->rank - 1];
  LLVMValueRef parts[2 * TL_MAX_GROUP];
  *constant -= shift;
  load_vector(l, op, access, e, vec, allowed, parts);
  *constant += vec;
  load_vector(l, op, access, e, vec, allowed, parts + vec);
  *constant += shift - vec;
  for (int32_t i = 0; i < vec; i++) out[i] = parts[i + shift];
}

void tl_lower_op_LOAD(tl_lower *l, tl_op *op) {
  if (tl_op_arg(op, TL_GROUP_LOAD_buffer)->type->scope == TL_SCOPE_LOCAL) {
    tl_lower_local_load(l, op);
    return;
  }
  tl_value *result = tl_op_result(op, 0);
  if (!known_element(l, op, result->type->dtype)) return;
  tl_lower_mark_element(l, op);
  if (is_deferred(l, op)) return;
  bool uniform = is_uniform(l, op, TL_GROUP_LOAD_index);
  int32_t width = l->parallel && !uniform ? l->parallel->width : 1;
  LLVMValueRef out[TL_MAX_GROUP];
  // Packed data: `repeat` neighbours of the group read one element.
  int32_t repeat = (int32_t)tl_op_int(op, TL_ATTR_REPEAT, 1);
  if (repeat > 1 && width % repeat == 0) {
    load_repeated(l, op, repeat, width, out);
    tl_lower_set(l, result, out, width);
    return;
  }
  int32_t vec = uniform ? 1 : vector_width(l, op, result->type->dtype);
  LLVMValueRef allowed = may_load(l, op);
  bool is_shifted = tl_op_has(op, TL_ATTR_SHIFT);
  // Narrower than it was planned it begins anywhere.
  if (is_shifted && vec != tl_op_int(op, TL_ATTR_VEC, 1)) {
    is_shifted = false;
    vec = 1;
  }
  // Registers take no part of a vector.
  if (tl_op_has(op, TL_ATTR_PARTIAL)) vec = 1;
  for (int32_t e = 0; e < width; e += vec) {
    tl_mem_access *access = tl_lower_element_access(l, op, TL_GROUP_LOAD_buffer, TL_GROUP_LOAD_index, e);
    if (!access) return;
    if (is_shifted)
      load_shifted(l, op, access, e, vec, allowed, &out[e]);
    else
      load_vector(l, op, access, e, vec, allowed, &out[e]);
  }
  tl_lower_set(l, result, out, width);
}

// A gather from global to shared memory by cp.async. Only an element's owner issues the copy, as for ordinary stores:
// the copy of a replica could land behind the owner's wait, on what was written there since.
static void async_store(tl_lower *l, tl_op *op) {
  tl_op *load = tl_op_arg(op, TL_GROUP_STORE_value)->def;
  tl_dtype dtype = load->results[0].type->dtype;
  int32_t vec = vector_width(l, op, dtype), bytes = vec * tl_dtype_bits(dtype) / 8;
  for (int32_t e = 0; e < l->parallel->width; e += vec) {
    tl_mem_access *from = tl_lower_element_access(l, load, TL_GROUP_LOAD_buffer, TL_GROUP_LOAD_index, e);
    tl_mem_access *to = tl_lower_element_access(l, op, TL_GROUP_STORE_buffer, TL_GROUP_STORE_index, e);
    if (!from || !to) return;
    tl_place place = tl_lower_element_place(l, e);
    bool is_partial = tl_op_has(load, TL_ATTR_PARTIAL);
    LLVMValueRef reads =
        is_partial ? tl_lower_access_bytes(l, from, &place, bytes) : tl_lower_access_inside(l, from, &place);
    LLVMValueRef target = tl_lower_access_pointer(l, to, &place);
    LLVMValueRef source = tl_lower_access_pointer(l, from, &place);
    LLVMValueRef active = tl_lower_and(l, l->parallel->place.owner, tl_lower_access_inside(l, to, &place));
    if (!is_partial && reads) reads = tl_lower_bytes_if(l, reads, bytes);
    tl_lower_cp_async(l, target, source, bytes, reads, active);
  }
}

LLVMValueRef tl_lower_bytes_if(tl_lower *l, LLVMValueRef inside, int32_t bytes) {
  return LLVMBuildSelect(l->builder, inside, tl_session_i32(l->session, bytes), tl_session_i32(l->session, 0), "");
}

void tl_lower_cp_async(tl_lower *l, LLVMValueRef to, LLVMValueRef from, int32_t bytes, LLVMValueRef reads,
                       LLVMValueRef active) {
  // Rows of device_ops.def, in their order: plain, with zero fill, and both once more with a predicate.
  tl_device_op_id id = bytes == 16  ? TL_DEVOP_CP_ASYNC_CG_16
                       : bytes == 8 ? TL_DEVOP_CP_ASYNC_CA_8
                                    : TL_DEVOP_CP_ASYNC_CA_4;
  LLVMValueRef args[4] = {to, from};
  unsigned n = 2;
  // With 0 bytes to read the address is not touched.
  if (reads) args[n++] = reads;
  active = tl_lower_and(l, active, l->copies_if);
  if (active) args[n++] = active;
  tl_session_call_device(l->session, l->builder, (tl_device_op_id)(id + (reads ? 1 : 0) + (active ? 2 : 0)), args, n);
}

static void store_vector(tl_lower *l, tl_op *op, tl_mem_access *access, int32_t e, int32_t vec,
                         LLVMValueRef condition) {
  tl_dtype dtype = access->buffer->dtype;
  tl_place place = tl_lower_element_place(l, e);
  LLVMValueRef inside = tl_lower_and(l, condition, tl_lower_access_inside(l, access, &place));
  LLVMValueRef pointer = tl_lower_access_pointer(l, access, &place), items[TL_MAX_GROUP];
  tl_value *value = tl_op_arg(op, TL_GROUP_STORE_value);
  for (int32_t i = 0; i < vec; i++) items[i] = tl_lower_get(l, value, e + i);
  LLVMValueRef raw = tl_lower_pack(l, items, dtype, vec);
  LLVMValueRef half = tl_lower_access_half(l, access, &place, vec);
  int32_t bytes = tl_lower_raw_bytes(dtype, vec);
  int32_t align = tl_lower_access_align(access, &place, bytes);
  tl_lower_store_part(l, access->buffer, pointer, half, raw, bytes, align, inside, TL_EVICT_NORMAL);
}

void tl_lower_op_STORE(tl_lower *l, tl_op *op) {
  if (tl_op_arg(op, TL_GROUP_STORE_buffer)->type->scope == TL_SCOPE_LOCAL) {
    tl_lower_local_store(l, op);
    return;
  }
  tl_value *value = tl_op_arg(op, TL_GROUP_STORE_value);
  if (!known_element(l, op, value->type->dtype)) return;
  tl_lower_mark_element(l, op);
  if (is_async_store(l, op)) {
    async_store(l, op);
    return;
  }
  int32_t width = l->parallel ? l->parallel->width : 1, vec = vector_width(l, op, value->type->dtype);
  // Outside a parallel the block stores once; inside, replicas leave it to the first.
  LLVMValueRef condition = l->parallel ? l->parallel->place.owner : tl_lower_is_first_thread(l);
  for (int32_t e = 0; e < width; e += vec) {
    tl_mem_access *access = tl_lower_element_access(l, op, TL_GROUP_STORE_buffer, TL_GROUP_STORE_index, e);
    if (!access) return;
    store_vector(l, op, access, e, vec, condition);
  }
}

void tl_lower_op_IN_BOUNDS(tl_lower *l, tl_op *op) {
  int32_t width = l->parallel && !is_uniform(l, op, TL_GROUP_IN_BOUNDS_index) ? l->parallel->width : 1;
  LLVMValueRef out[TL_MAX_GROUP];
  for (int32_t e = 0; e < width; e++) {
    tl_mem_access *access = tl_lower_element_access(l, op, TL_GROUP_IN_BOUNDS_buffer, TL_GROUP_IN_BOUNDS_index, e);
    if (!access) return;
    tl_place place = tl_lower_element_place(l, e);
    LLVMValueRef inside = tl_lower_access_inside(l, access, &place);
    out[e] = inside ? inside : tl_session_bool(l->session, true);
  }
  tl_lower_set(l, tl_op_result(op, 0), out, width);
}
