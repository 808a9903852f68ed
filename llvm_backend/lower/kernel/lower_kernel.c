// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel function: parameters, thread ids, dynamic shared memory, the grid.
#include <stdio.h>
#include <string.h>

#include "llvm_backend/lower/kernel/grid.h"
#include "llvm_backend/lower/kernel/lower_kernel.h"
#include "llvm_backend/lower/state/lower.h"
#include "support/tensormap.h"

void tl_lower_collect_params(tl_lower *l, tl_kernel_params *params) {
  memset(params, 0, sizeof *params);
  for (tl_op *op = l->kernel->regions[0]->first; op; op = op->next) {
    if (op->code == TL_OP_TENSOR || op->code == TL_OP_SCALAR_ARG) tl_vec_push(&params->args, op);
    if (op->code == TL_OP_DYN_PARAM) tl_vec_push(&params->dynamics, op);
    if (op->code == TL_OP_TENSOR_MAP) tl_vec_push(&params->maps, op);
    if (op->code == TL_OP_TILE_QUEUE) params->queue = op;
  }
  // Arguments in the spec's order; insertion sort keeps it simple and stable.
  for (size_t i = 1; i < params->args.len; i++) {
    tl_op *op = params->args.items[i];
    size_t j = i;
    for (; j > 0 && tl_op_int(params->args.items[j - 1], TL_ATTR_ARG, 0) > tl_op_int(op, TL_ATTR_ARG, 0); j--)
      params->args.items[j] = params->args.items[j - 1];
    params->args.items[j] = op;
  }
}

void tl_kernel_params_fini(tl_kernel_params *params) {
  tl_vec_fini(&params->args);
  tl_vec_fini(&params->dynamics);
  tl_vec_fini(&params->maps);
}

// Names that something else in the module goes by: functions of the driver's runtime, and what the lowering adds.
static bool is_reserved(const char *name) {
  if (strcmp(name, "tl_shared") == 0 || strcmp(name, "tl_text") == 0) return true;
  return tl_device_op_find(tl_str_from(name)) != TL_DEVOP_COUNT;
}

const char *tl_kernel_entry_name(tl_arena *arena, const tl_op *kernel) {
  const char *name = tl_op_str(kernel, TL_ATTR_NAME);
  bool digit = name[0] >= '0' && name[0] <= '9';
  // No kernel's name holds a '$': what it makes different is different from all.
  char *entry = tl_arena_printf(arena, "%s%s%s%s", digit ? "_" : "", name, is_reserved(name) ? "$kernel" : "",
                                tl_op_has(kernel, TL_ATTR_ALIGNED) ? "$aligned" : "");
  for (char *c = entry; *c; c++) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_';
    if (!plain && *c != '$') *c = '_';
  }
  return entry;
}

static void add_attributes(tl_lower *l) {
  tl_session *s = l->session;
  char text[32];
  LLVMSetFunctionCallConv(l->function, 71);  // llvm::CallingConv::PTX_Kernel
  tl_session_add_attribute(s, l->function, -1, "nounwind", 0);
  snprintf(text, sizeof text, "%d,1,1", tl_kernel_block_threads(l->kernel));
  tl_session_add_string_attribute(s, l->function, "nvvm.reqntid", text);
  int64_t cluster = tl_kernel_cluster_blocks(l->kernel);
  if (cluster > 1) {
    snprintf(text, sizeof text, "%d,1,1", (int)cluster);
    tl_session_add_string_attribute(s, l->function, "nvvm.cluster_dim", text);
  }
  int64_t min_blocks = tl_op_int(l->kernel, TL_ATTR_MIN_BLOCKS, 0);
  if (min_blocks > 0) {
    snprintf(text, sizeof text, "%d", (int)min_blocks);
    tl_session_add_string_attribute(s, l->function, "nvvm.minctasm", text);
  }
  // Flushed denormals become the .ftz forms of the f32 instructions.
  if (l->fast_math)
    tl_session_add_string_attribute(s, l->function, "denormal-fp-math-f32", "preserve-sign,preserve-sign");
}

static void set_tensor_param(tl_lower *l, tl_op *op, LLVMValueRef param, int index) {
  const tl_type *type = tl_op_result(op, 0)->type;
  tl_buffer *buffer = TL_NEW(&l->arena, tl_buffer);
  buffer->scope = TL_SCOPE_GLOBAL;
  buffer->dtype = type->dtype;
  buffer->rank = type->rank;
  buffer->base = param;
  buffer->align = tl_op_int(op, TL_ATTR_ALIGN, 16);
  buffer->read_only = tl_op_int(op, TL_ATTR_ACCESS, TL_ACCESS_IN) == TL_ACCESS_IN;
  tl_lower_set_buffer(l, tl_op_result(op, 0), buffer);
  // Only what nobody writes is noalias: for LLVM no barrier could change it, so that a load would take over what the
  // thread loaded before other threads' stores.
  if (buffer->read_only) {
    tl_session_add_attribute(l->session, l->function, index, "noalias", 0);
    tl_session_add_attribute(l->session, l->function, index, "readonly", 0);
  }
  tl_session_add_attribute(l->session, l->function, index, "align", (uint64_t)tl_op_int(op, TL_ATTR_ALIGN, 16));
}

// A tensor map comes by value and stays where it is: a copy in local memory would be no map any more (PTX ISA,
// "Tensor-map": parameters, constant and global memory).
static void set_map_param(tl_lower *l, tl_op *op, LLVMValueRef param, int index) {
  tl_session *s = l->session;
  unsigned byval = LLVMGetEnumAttributeKindForName("byval", strlen("byval"));
  LLVMTypeRef type = LLVMArrayType2(s->i8, TL_TENSORMAP_BYTES);
  static const char grid_constant[] = "nvvm.grid_constant";
  LLVMAddAttributeAtIndex(l->function, (unsigned)index, LLVMCreateTypeAttribute(s->context, byval, type));
  LLVMAddAttributeAtIndex(l->function, (unsigned)index,
                          LLVMCreateStringAttribute(s->context, grid_constant, strlen(grid_constant), "", 0));
  tl_session_add_attribute(s, l->function, index, "align", TL_TENSORMAP_ALIGN);
  tl_lower_set_one(l, tl_op_result(op, 0), param);
}

// PTX ISA, Kernel Function Parameters: "32,764 bytes" from version 8.1 on.
static void validate_parameter_limit(tl_lower *l, LLVMTypeRef const *types, size_t n) {
  uint64_t bytes = tl_session_parameter_bytes(types, n);
  if (bytes <= TL_MAX_PARAMETER_BYTES) return;
  l->reported = true;
  tl_diag *diag = tl_diag_report(l->diags, TL_DIAG_PARAMETER_LIMIT, l->kernel->loc,
                                 "the %zu arguments, dynamic params and tensor maps take %llu bytes, the limit is %d",
                                 n, (unsigned long long)bytes, TL_MAX_PARAMETER_BYTES);
  tl_diag_add_hint(l->diags, diag, "one tensor with a further dim takes the place of many of the same shape");
}

// Declares the function and binds its parameters: args in order, then dynamic params (i32, wide ones i64), then tensor
// maps, then the counter of a queue of tiles.
static void make_function(tl_lower *l) {
  tl_session *s = l->session;
  tl_kernel_params params;
  tl_lower_collect_params(l, &params);
  size_t maps = params.args.len + params.dynamics.len, queue = maps + params.maps.len;
  size_t n = params.queue ? queue + 1 : queue;
  LLVMTypeRef *types = TL_NEW_ARRAY(&l->arena, LLVMTypeRef, n + 1);
  for (size_t i = 0; i < params.args.len; i++) {
    tl_op *op = params.args.items[i];
    types[i] = op->code == TL_OP_TENSOR ? s->global_ptr : tl_session_memory_type(s, tl_op_result(op, 0)->type->dtype);
    if (!types[i]) tl_lower_unsupported(l, op, "a scalar argument of this dtype has no lowering");
  }
  for (size_t i = 0; i < params.dynamics.len; i++)
    types[params.args.len + i] = tl_op_has(params.dynamics.items[i], TL_ATTR_WIDE) ? s->i64 : s->i32;
  for (size_t i = maps; i < queue; i++) types[i] = s->generic_ptr;
  if (params.queue) types[queue] = s->global_ptr;
  if (!tl_lower_failed(l)) validate_parameter_limit(l, types, n);
  if (!tl_lower_failed(l)) {
    const char *name = tl_kernel_entry_name(&l->arena, l->kernel);
    l->function = LLVMAddFunction(s->module, name, LLVMFunctionType(s->void_type, types, (unsigned)n, 0));
    add_attributes(l);
    for (size_t i = 0; i < params.args.len; i++) {
      LLVMValueRef param = LLVMGetParam(l->function, (unsigned)i);
      if (params.args.items[i]->code == TL_OP_TENSOR)
        set_tensor_param(l, params.args.items[i], param, (int)i + 1);
      else
        tl_lower_set_one(l, tl_op_result(params.args.items[i], 0), param);
    }
    for (size_t i = 0; i < params.dynamics.len; i++) {
      LLVMValueRef param = LLVMGetParam(l->function, (unsigned)(params.args.len + i));
      tl_value *result = tl_op_result(params.dynamics.items[i], 0);
      tl_lower_set_one(l, result, tl_lower_index_as(l, l->builder, param, tl_lower_value_type(l, result)));
    }
    if (params.queue) l->queue.counter = LLVMGetParam(l->function, (unsigned)queue);
    for (size_t i = maps; i < queue; i++)
      set_map_param(l, params.maps.items[i - maps], LLVMGetParam(l->function, (unsigned)i), (int)i + 1);
  }
  tl_kernel_params_fini(&params);
}

static void make_entry(tl_lower *l) {
  tl_session *s = l->session;
  LLVMBasicBlockRef entry = tl_lower_new_block(l), body = tl_lower_new_block(l);
  LLVMPositionBuilderAtEnd(l->builder, entry);
  LLVMValueRef branch = LLVMBuildBr(l->builder, body);
  LLVMPositionBuilderBefore(l->entry, branch);
  LLVMPositionBuilderAtEnd(l->builder, body);
  l->tid = tl_session_call_device(s, l->entry, TL_DEVOP_TID_X, NULL, 0);
  l->lane = LLVMBuildAnd(l->entry, l->tid, tl_session_i32(s, 31), "");
  l->warp = LLVMBuildLShr(l->entry, l->tid, tl_session_i32(s, 5), "");
  LLVMTypeRef bytes = LLVMArrayType2(s->i8, 0);
  l->shared_base = LLVMAddGlobalInAddressSpace(s->module, bytes, "tl_shared", TL_ADDRSPACE_SHARED);
  LLVMSetAlignment(l->shared_base, 1024);
}

// A block whose shared memory others reach stays until they are done.
static void end_cluster(tl_lower *l) {
  for (tl_op *op = l->kernel->regions[0]->first; op && !tl_lower_failed(l); op = op->next)
    if (op->code == TL_OP_CLUSTER_BARRIER) {
      tl_lower_op_CLUSTER_BARRIER(l, op);
      return;
    }
}

void tl_lower_kernel(tl_lower *l) {
  l->role = -1;
  l->threads = tl_op_threads(l->kernel);
  l->persistent = tl_op_int(l->kernel, TL_ATTR_PERSISTENT, TL_SWITCH_OFF) == TL_SWITCH_ON;
  l->fast_math = tl_op_has(l->kernel, TL_ATTR_FAST_MATH);
  l->builder = LLVMCreateBuilderInContext(l->session->context);
  l->entry = LLVMCreateBuilderInContext(l->session->context);
  make_function(l);
  if (!tl_lower_failed(l)) {
    tl_lower_debug_begin(l);
    make_entry(l);
    LLVMMetadataRef outside = tl_lower_debug_op(l, l->kernel);
    tl_lower_block(l, l->kernel->regions[0]);
    end_cluster(l);
    LLVMBuildRetVoid(l->builder);
    tl_lower_debug_restore(l, outside);
    tl_lower_debug_end(l);
    if (!tl_lower_failed(l)) tl_lower_finish_size(l);
  }
  LLVMDisposeBuilder(l->builder);
  LLVMDisposeBuilder(l->entry);
}

// ---- ops of the kernel's head. Parameters were bound with the function.
void tl_lower_op_KERNEL(tl_lower *l, tl_op *op) {
  tl_lower_internal(l, op, "a kernel inside a kernel");
}
void tl_lower_op_DYN_PARAM(tl_lower *l, tl_op *op) {
  (void)l;
  (void)op;
}
void tl_lower_op_REQUIRE(tl_lower *l, tl_op *op) {
  (void)l;
  (void)op;
}
void tl_lower_op_SCALAR_ARG(tl_lower *l, tl_op *op) {
  tl_value *result = tl_op_result(op, 0);
  LLVMValueRef param = tl_lower_get(l, result, 0);
  if (result->type->dtype == TL_DTYPE_BOOL && LLVMTypeOf(param) == l->session->i8)
    tl_lower_set_one(l, result, LLVMBuildICmp(l->builder, LLVMIntNE, param, LLVMConstNull(l->session->i8), ""));
}

bool tl_grid_folds(const tl_op *grid) {
  uint32_t rank = tl_op_group_len(grid, TL_GROUP_GRID_extents);
  if (tl_kernel_cluster_blocks(tl_op_enclosing(grid, TL_OP_KERNEL)) > 1) return true;
  if (rank > 3 || (rank > 1 && tl_op_has(grid, TL_ATTR_PANEL))) return true;
  for (uint32_t d = 1; d < rank; d++)
    if (tl_value_range(tl_op_group_at(grid, TL_GROUP_GRID_extents, d)).hi > TL_GRID_MAX_YZ) return true;
  return false;
}

// Blocks along a dim, or clusters where neighbours form such.
static LLVMValueRef extent(tl_lower *l, const tl_op *op, uint32_t d, LLVMTypeRef type) {
  LLVMValueRef blocks = tl_lower_index_as(l, l->builder, tl_lower_get(l, tl_op_operand(op, d), 0), type);
  int64_t size = tl_kernel_cluster_size(l->kernel, d, NULL);
  if (size == 1) return blocks;
  return LLVMBuildUDiv(l->builder, blocks, LLVMConstInt(type, (unsigned long long)size, 0), "");
}

// Panels of `panel` rows (order row) or columns: inside one, the rows vary fastest, so that blocks that run together
// share both operands in L2. `at` counts the blocks of the first two dims; rows are dim 1, columns dim 0.
static void rasterize(tl_lower *l, const tl_op *op, LLVMValueRef at, LLVMValueRef *index) {
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef type = LLVMTypeOf(at);
  bool by_column = tl_op_int(op, TL_ATTR_ORDER, TL_ORDER_ROW) == TL_ORDER_COLUMN;
  LLVMValueRef across = extent(l, op, by_column ? 1 : 0, type), along = extent(l, op, by_column ? 0 : 1, type);
  LLVMValueRef panel = LLVMConstInt(type, (unsigned long long)tl_op_int(op, TL_ATTR_PANEL, 1), 0);
  LLVMValueRef per_panel = LLVMBuildNUWMul(b, across, panel, "");
  LLVMValueRef first = LLVMBuildNUWMul(b, LLVMBuildUDiv(b, at, per_panel, ""), panel, "");
  LLVMValueRef within = LLVMBuildURem(b, at, per_panel, "");
  LLVMValueRef rows = tl_lower_intrinsic2(l, "llvm.umin", LLVMBuildSub(b, along, first, ""), panel);
  index[by_column ? 0 : 1] = LLVMBuildNUWAdd(b, first, LLVMBuildURem(b, within, rows, ""), "");
  index[by_column ? 1 : 0] = LLVMBuildUDiv(b, within, rows, "");
}

// The indices of block or tile number `rest` of a GRID or TILE_INDEX op, whose first operands are the extents.
static void unfold_grid(tl_lower *l, tl_op *op, LLVMValueRef rest, LLVMValueRef *index) {
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef type = LLVMTypeOf(rest);
  uint32_t rank = op->num_results, d = 0;
  if (rank > 1 && tl_op_has(op, TL_ATTR_PANEL)) {
    LLVMValueRef at = rest;
    if (rank > 2) {
      LLVMValueRef width = extent(l, op, 0, type), height = extent(l, op, 1, type);
      LLVMValueRef plane = LLVMBuildNUWMul(b, width, height, "");
      at = LLVMBuildURem(b, rest, plane, "");
      rest = LLVMBuildUDiv(b, rest, plane, "");
    }
    rasterize(l, op, at, index);
    d = 2;
  }
  for (; d < rank; d++) {
    if (d + 1 == rank) {
      index[d] = rest;
      break;
    }
    LLVMValueRef size = extent(l, op, d, type);
    index[d] = LLVMBuildURem(b, rest, size, "");
    rest = LLVMBuildUDiv(b, rest, size, "");
  }
}

// The hardware counts blocks in x with 31 bits; a persistent kernel counts its tiles with 62.
static void validate_grid_limit(tl_lower *l, tl_op *op) {
  int64_t blocks = 1, extent_value, limit = l->persistent ? TL_GRID_MAX_TILES : TL_GRID_MAX_X;
  bool folds = l->persistent || tl_grid_folds(op);
  for (uint32_t d = 0; d < tl_op_group_len(op, TL_GROUP_GRID_extents); d++) {
    if (!tl_value_const_int(tl_op_group_at(op, TL_GROUP_GRID_extents, d), &extent_value)) continue;
    if (!folds && d > 0) continue;
    if (__builtin_mul_overflow(blocks, extent_value, &blocks)) blocks = INT64_MAX;
  }
  if (blocks <= limit) return;
  l->reported = true;
  tl_diag *diag = tl_diag_report(l->diags, TL_DIAG_GRID_LIMIT, op->loc, "the grid has %s%lld %s, the limit is %lld",
                                 blocks == INT64_MAX ? "at least " : "", (long long)blocks,
                                 l->persistent ? "tiles" : "blocks", (long long)limit);
  if (!l->persistent) tl_diag_add_hint(l->diags, diag, "with `persistent: true` blocks loop over more");
}

static void set_indices(tl_lower *l, tl_op *op, LLVMValueRef *index) {
  for (uint32_t d = 0; d < op->num_results; d++) {
    tl_value *result = tl_op_result(op, d);
    tl_lower_set_one(l, result, tl_lower_index_as(l, l->builder, index[d], tl_lower_value_type(l, result)));
  }
}

// Blocks of one cluster follow each other: of the number the rest tells which it is, the quotient where the cluster is.
static void unfold_clusters(tl_lower *l, tl_op *op, LLVMValueRef number, LLVMValueRef *index) {
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef type = LLVMTypeOf(number);
  LLVMValueRef blocks = LLVMConstInt(type, (unsigned long long)tl_kernel_cluster_blocks(l->kernel), 0);
  LLVMValueRef rest = LLVMBuildURem(b, number, blocks, "");
  unfold_grid(l, op, LLVMBuildUDiv(b, number, blocks, ""), index);
  for (uint32_t d = 0; d < op->num_results && d < TL_MAX_CLUSTER_DIMS; d++) {
    int64_t along = tl_kernel_cluster_size(l->kernel, d, NULL);
    LLVMValueRef size = LLVMConstInt(type, (unsigned long long)along, 0);
    if (along == 1) continue;
    LLVMValueRef first = LLVMBuildNUWMul(b, index[d], size, "");
    index[d] = LLVMBuildNUWAdd(b, first, LLVMBuildURem(b, rest, size, ""), "");
    rest = LLVMBuildUDiv(b, rest, size, "");
  }
}

void tl_lower_op_GRID(tl_lower *l, tl_op *op) {
  static const tl_device_op_id ids[] = {TL_DEVOP_CTAID_X, TL_DEVOP_CTAID_Y, TL_DEVOP_CTAID_Z};
  validate_grid_limit(l, op);
  if (l->persistent) return;  // nothing uses the results
  uint32_t rank = tl_op_group_len(op, TL_GROUP_GRID_extents);
  LLVMValueRef *index = TL_NEW_ARRAY(&l->arena, LLVMValueRef, rank + 1);
  if (tl_kernel_cluster_blocks(l->kernel) > 1)
    unfold_clusters(l, op, tl_session_call_device(l->session, l->builder, TL_DEVOP_CTAID_X, NULL, 0), index);
  else if (tl_grid_folds(op))
    unfold_grid(l, op, tl_session_call_device(l->session, l->builder, TL_DEVOP_CTAID_X, NULL, 0), index);
  else
    for (uint32_t d = 0; d < rank && d < 3; d++)
      index[d] = tl_session_call_device(l->session, l->builder, ids[d], NULL, 0);
  set_indices(l, op, index);
}

void tl_lower_op_TILE_INDEX(tl_lower *l, tl_op *op) {
  LLVMValueRef *index = TL_NEW_ARRAY(&l->arena, LLVMValueRef, op->num_results + 1);
  LLVMValueRef tile = tl_lower_get(l, tl_op_arg(op, TL_GROUP_TILE_INDEX_tile), 0);
  LLVMValueRef number = LLVMBuildZExt(l->builder, tile, l->session->i64, "");
  tl_session_call_device(l->session, l->builder, TL_DEVOP_TILE, &number, 1);
  unfold_grid(l, op, tile, index);
  set_indices(l, op, index);
}
