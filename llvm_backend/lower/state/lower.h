// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// State and helpers of the lowering from scheduled tile IR to LLVM IR. Private to llvm_backend.
//
// Every IR value becomes an array of LLVM values: a scalar is one (or, inside a parallel that runs in groups, one for
// each element of the group), a tile one for each register, a token none. Buffers become tl_buffer.
#ifndef TL_LLVM_BACKEND_LOWER_H
#define TL_LLVM_BACKEND_LOWER_H

#include "ir/index/affine.h"
#include "ir/ir.h"
#include "llvm_backend/device/debug_info.h"
#include "llvm_backend/device/session.h"
#include "support/diag.h"
#include "support/vec.h"

#define TL_MAX_GROUP 32  // elements of one group of a parallel
#define TL_MAX_DIMS TL_MAX_RANK

// Memory behind a buffer value.
enum { TL_ACCESS_ALIGN = 16 };  // bytes of the widest access, and what an alignment is known up to

typedef struct tl_buffer {
  int scope;
  tl_dtype dtype;
  int32_t rank;
  LLVMValueRef base;          // pointer to element 0
  int64_t dims[TL_MAX_DIMS];  // -1: `dim_values` has it
  tl_value *dim_values[TL_MAX_DIMS];
  int64_t strides[TL_MAX_DIMS];  // elements, global buffers; -1: `stride_values` has it
  tl_value *stride_values[TL_MAX_DIMS];
  int64_t stride_divisors[TL_MAX_DIMS];  // what is known to divide them; global buffers
  int64_t align;                         // bytes that `base` is a multiple of; global buffers
  tl_shared_layout shared;               // shared buffers
  int64_t stage_bytes;                   // distance between copies of a staged shared tile
  bool read_only;                        // nothing writes it during the kernel
  int32_t variable;                      // of a local array: its number (tl_debug_variable)
} tl_buffer;

typedef struct tl_lowered {
  const tl_value *key;
  LLVMValueRef *items;
  int32_t len;
  tl_buffer *buffer;
} tl_lowered;

// Where the elements that a distributed op handles lie: the thread's part of the coordinates as LLVM values, the
// register's part as numbers that change from group to group.
typedef struct tl_place {
  const tl_layout *layout;
  int32_t rank;
  LLVMValueRef thread[TL_MAX_DIMS];  // i32
  int32_t thread_max[TL_MAX_DIMS];   // largest value of thread[]
  int32_t divisor[TL_MAX_DIMS];      // what divides thread[]; 0: it is 0
  int32_t reg[TL_MAX_DIMS];          // element 0 of the current group
  LLVMValueRef owner;                // whether this thread is the first of its replicas; NULL: always
} tl_place;

typedef struct tl_place_entry {
  const tl_layout *layout;
  tl_place place;
} tl_place_entry;
typedef TL_VEC(tl_place_entry) tl_place_list;

// How one op reaches a buffer: index d of the buffer = var[d] + constant[d] + sum over loop dims of coeff[d][k] *
// reg[k].
typedef struct tl_mem_access {
  const tl_op *op;
  const tl_buffer *buffer;
  int32_t rank;
  LLVMValueRef var[TL_MAX_DIMS];  // i32 or i64; NULL is 0
  int64_t divisor[TL_MAX_DIMS];   // what is known to divide var[d]; 0: it is 0
  int64_t constant[TL_MAX_DIMS];
  int32_t coeff[TL_MAX_DIMS][TL_MAX_DIMS];
  int64_t check[TL_MAX_DIMS];     // bits: 1 lower bound, 2 upper bound
  tl_value *limits[TL_MAX_DIMS];  // NULL: the buffer's dim
  bool fixed;                     // var is the whole index of this group only; do not reuse
  LLVMValueRef condition;         // of this group, beside the bounds; NULL: none
  // Copies keep the two summands of var apart, so that thread offsets leave the loops that the block's offsets run in.
  bool apart;
  LLVMValueRef uniform[TL_MAX_DIMS], thread[TL_MAX_DIMS];  // NULL is 0
  LLVMValueRef base;                                       // cached pointer for constant part 0
  int32_t num_swizzled;
  struct {
    int64_t row, bytes;  // of the tl_shared_split
    LLVMValueRef pointer;
  } swizzled[64];
} tl_mem_access;

// An operand of a matrix product in shared memory: the box of `buffer` whose rows lie along dims[0] and whose columns
// lie along dims[1], the last dim. Along each dim it begins at fixed + moving.
typedef struct tl_lower_matrix {
  const tl_buffer *buffer;
  int32_t dims[2];
  int64_t fixed[TL_MAX_DIMS];
  LLVMValueRef moving[TL_MAX_DIMS];  // i32; NULL is 0
  int64_t column_divisor;            // of where the columns begin; 0: at 0
} tl_lower_matrix;

typedef struct tl_parallel {
  tl_op *op;
  tl_place place;
  int32_t width;           // elements of a group that run together
  int32_t element;         // the first of them: control flow that varies within the group takes them one by one
  int32_t vec_dim;         // loop dim along which a group runs
  int32_t first_register;  // of the group in the loop's layout
  bool cp_async;
  bool marks;  // its accesses are marked (lower_elements.c)
  TL_VEC(tl_mem_access *) accesses;
  TL_VEC(const tl_value *) arrays;  // local, that it uses
} tl_parallel;

typedef struct tl_lower {
  tl_session *session;
  const tl_module *module;
  tl_op *kernel;
  tl_diags *diags;
  tl_arena arena;
  tl_status status;  // first failure; lowering goes on to a safe point
  bool reported;     // diagnostics were reported
  bool persistent;
  bool fast_math;
  bool marks_elements;              // tl_backend_options
  int32_t threads;                  // that statements are spread over: of the role
  int64_t lowered_ops, measure_at;  // code_size.c
  LLVMValueRef function;
  LLVMValueRef shared_base;      // the block's dynamic shared memory
  LLVMBuilderRef builder;        // current place
  LLVMBuilderRef entry;          // in the entry block, before its branch: values that depend on the thread only
  LLVMBuilderRef hoist;          // before the groups of the current parallel; NULL outside
  LLVMValueRef tid, lane, warp;  // in the role
  int32_t role;                  // number of the role that is lowered; -1: none
  struct {
    LLVMValueRef counter, base;  // of the TILE_QUEUE: in device memory, and its places in shared memory
  } queue;
  bool is_elected;         // only the elected thread of the role comes here
  tl_parallel *parallel;   // innermost, NULL outside
  LLVMValueRef copies_if;  // condition of the ifs around that were taken into their asynchronous copies; NULL: none
  LLVMValueRef loads_if;   // condition of single loads around; NULL: none
  LLVMDIBuilderRef debug_builder;  // Owned while the kernel is lowered; NULL: the kernel is nowhere in a spec
  LLVMMetadataRef debug_scope;
  uint32_t debug_source;  // of debug_scope
  TL_VEC(tl_debug_variable) variables;
  struct {
    tl_lowered *slots;
    size_t capacity, len;
  } values;
  tl_place_list places;
} tl_lower;

typedef void tl_lower_fn(tl_lower *l, tl_op *op);
// One function an op: a missing one is a link error.
#define TL_OP(ID, text, levels, flags, regions, results, doc) void tl_lower_op_##ID(tl_lower *l, tl_op *op);
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR

// ---- failures. Both keep the first; l->status (INTERNAL) or l->reported is set.
void tl_lower_internal(tl_lower *l, const tl_op *op, const char *format, ...) __attribute__((format(printf, 3, 4)));
void tl_lower_unsupported(tl_lower *l, const tl_op *op, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool tl_lower_failed(const tl_lower *l);

// ---- values (lower.c)
void tl_lower_set(tl_lower *l, const tl_value *value, LLVMValueRef const *items, int32_t len);
void tl_lower_set_one(tl_lower *l, const tl_value *value, LLVMValueRef item);
void tl_lower_set_buffer(tl_lower *l, const tl_value *value, tl_buffer *buffer);
// Element `e` of the value (its only one when it is the same for the whole group).
LLVMValueRef tl_lower_get(tl_lower *l, const tl_value *value, int32_t e);
int32_t tl_lower_len(tl_lower *l, const tl_value *value);
tl_buffer *tl_lower_buffer(tl_lower *l, const tl_value *value);
// Where an operand of a product lies in shared memory; false when it does not, or has another rank.
bool tl_lower_matrix_of(tl_lower *l, tl_value *operand, tl_lower_matrix *out);
// LLVM type of a scalar or index value.
LLVMTypeRef tl_lower_value_type(tl_lower *l, const tl_value *value);
// Index as i32 (truncating) or i64 (extending).
LLVMValueRef tl_lower_index_as(tl_lower *l, LLVMBuilderRef b, LLVMValueRef index, LLVMTypeRef type);
void tl_lower_block(tl_lower *l, const tl_block *block);
// The ops from `first` to the one before `end` (NULL: the block's last).
void tl_lower_ops(tl_lower *l, tl_op *first, const tl_op *end);
// Now and then, after an op was lowered: refuses a kernel that has become too much code (TL0645).
void tl_lower_watch_size(tl_lower *l, const tl_op *op);
// The same for the whole kernel; a large one lowers the session's effort, and says so.
void tl_lower_finish_size(tl_lower *l);
LLVMBasicBlockRef tl_lower_new_block(tl_lower *l);
// The builder for values that every group of the current parallel shares.
LLVMBuilderRef tl_lower_outer(tl_lower *l);

// ---- content that nobody wrote (lower_undefined.c)
// Numbers of variables: of a fragment, and of a local array or scalar.
int32_t tl_lower_fragment_variable(tl_lower *l, const tl_value *tile);
int32_t tl_lower_local_variable(tl_lower *l, const tl_value *value);
// What a register of a fragment, or an element of a local array, holds before it is written. For the emulator a value
// that must not matter, zero in PTX.
LLVMValueRef tl_lower_undefined(tl_lower *l, tl_dtype dtype, int32_t variable, LLVMValueRef element);

// ---- arithmetic
LLVMValueRef tl_lower_zero(tl_lower *l, tl_dtype dtype);
LLVMValueRef tl_lower_intrinsic1(tl_lower *l, const char *name, LLVMValueRef a);
LLVMValueRef tl_lower_intrinsic2(tl_lower *l, const char *name, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_lower_intrinsic3(tl_lower *l, const char *name, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
LLVMValueRef tl_lower_and(tl_lower *l, LLVMValueRef a, LLVMValueRef b);  // either may be NULL (true)

// ---- guarded code (lower_guard.c): runs `emit` under a condition; NULL runs it straight.
typedef struct tl_guard {
  LLVMBasicBlockRef from, then, after;
} tl_guard;
tl_guard tl_lower_guard_begin(tl_lower *l, LLVMValueRef condition);
void tl_lower_guard_end(tl_lower *l, tl_guard *guard);
// After tl_lower_guard_end: `value` from inside the guard, `otherwise` when it did not run.
LLVMValueRef tl_lower_guard_phi(tl_lower *l, const tl_guard *guard, LLVMValueRef value, LLVMValueRef otherwise);

// Says how the loop behind `branch` is to be unrolled: 0 not, -1 completely, else by a factor.
void tl_lower_set_unroll(tl_lower *l, LLVMValueRef branch, int64_t unroll);
// Starts and ends a stretch of groups: values added with tl_lower_outer lie in front of all of them.
void tl_lower_begin_groups(tl_lower *l);
void tl_lower_end_groups(tl_lower *l);

// ---- debug locations (lower_debug.c)
void tl_lower_debug_begin(tl_lower *l);  // once the function is there
void tl_lower_debug_end(tl_lower *l);
// What is built from now on comes from `op`. Returns what to restore.
LLVMMetadataRef tl_lower_debug_op(tl_lower *l, const tl_op *op);
void tl_lower_debug_restore(tl_lower *l, LLVMMetadataRef location);
// After the lowering. The info lies in `arena`.
void tl_lower_debug_info(tl_lower *l, tl_arena *arena, tl_debug_info *out);

// The condition of the first thread of the block or role, for things done once; NULL where no other comes.
LLVMValueRef tl_lower_is_first_thread(tl_lower *l);

#endif
