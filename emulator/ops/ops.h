// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The device ops, one function a family; bindings.c says which name and parameter goes where. Private to the emulator.
#ifndef TL_EMULATOR_OPS_H
#define TL_EMULATOR_OPS_H

#include "emulator/machine/hooks.h"
#include "emulator/machine/machine.h"

// The row for a device op; NULL when it has none.
const tl_emu_binding *tl_emu_find_binding(const char *name);
// The LLVM type of a letter of signatures (device_ops.def), "i32", "ptr addrspace(3)"; NULL: there is no such letter.
const char *tl_emu_letter_type(char letter);
const tl_emu_binding *tl_emu_bindings(size_t *out_count);

// Special registers, barriers (ops_barrier.c), traps (ops_control.c). The parameters:
typedef enum tl_emu_sreg {
  TL_EMU_SREG_TID_X,
  TL_EMU_SREG_CTAID_X,
  TL_EMU_SREG_CTAID_Y,
  TL_EMU_SREG_CTAID_Z,
  TL_EMU_SREG_NTID_X,
  TL_EMU_SREG_NCTAID_X,
  TL_EMU_SREG_NCTAID_Y,
  TL_EMU_SREG_NCTAID_Z,
  TL_EMU_SREG_LANEID,
  TL_EMU_SREG_WARPID,
  TL_EMU_SREG_ZERO,  // the second and third thread index: blocks have one dimension
  TL_EMU_SREG_ONE
} tl_emu_sreg;
tl_emu_op_fn tl_emu_op_sreg;
enum {  // bits
  TL_EMU_BARRIER_COUNT = 1,
  TL_EMU_BARRIER_ARRIVE = 2,
  TL_EMU_BARRIER_ALONE = 4,
  TL_EMU_BARRIER_RED_AND = 8,  // one of these three: all threads get what their predicates make together
  TL_EMU_BARRIER_RED_OR = 16,
  TL_EMU_BARRIER_RED_POPC = 32
};
tl_emu_op_fn tl_emu_op_barrier;
extern const tl_emu_hooks tl_emu_barrier_hooks;
tl_emu_op_fn tl_emu_op_warp_sync;
tl_emu_op_fn tl_emu_op_trap;
tl_emu_op_fn tl_emu_op_exit;
tl_emu_op_fn tl_emu_op_nanosleep;
tl_emu_op_fn tl_emu_op_nothing;  // hints
tl_emu_op_fn tl_emu_op_fence;    // parameter: sides. Only the checker minds: the emulator is sequentially consistent

// The device's runtime (ops_runtime.c).
tl_emu_op_fn tl_emu_op_vprintf;
tl_emu_op_fn tl_emu_op_assertfail;
tl_emu_op_fn tl_emu_op_assume;

// Special registers that are no positions, windows of addresses, hints (ops_special.c).
typedef enum tl_emu_special {
  TL_EMU_SPECIAL_CLOCK,  // also the nanoseconds of globaltimer
  TL_EMU_SPECIAL_SMID,
  TL_EMU_SPECIAL_NSMID,
  TL_EMU_SPECIAL_NWARPID,
  TL_EMU_SPECIAL_WARPSIZE,
  TL_EMU_SPECIAL_GRIDID,
  TL_EMU_SPECIAL_DYNAMIC_SHARED,
  TL_EMU_SPECIAL_TOTAL_SHARED,
  TL_EMU_SPECIAL_EXPLICIT_CLUSTER,
  TL_EMU_SPECIAL_ACTIVEMASK,
  TL_EMU_SPECIAL_LANEMASK_EQ,
  TL_EMU_SPECIAL_LANEMASK_LT,
  TL_EMU_SPECIAL_LANEMASK_LE,
  TL_EMU_SPECIAL_LANEMASK_GT,
  TL_EMU_SPECIAL_LANEMASK_GE
} tl_emu_special;
tl_emu_op_fn tl_emu_op_special;
typedef enum tl_emu_space {
  TL_EMU_SPACE_CONST,
  TL_EMU_SPACE_GLOBAL,
  TL_EMU_SPACE_LOCAL,
  TL_EMU_SPACE_SHARED,
  TL_EMU_SPACE_CLUSTER
} tl_emu_space;
tl_emu_op_fn tl_emu_op_isspacep;
tl_emu_op_fn tl_emu_op_discard;

// setmaxnreg (ops_registers.c). Parameter: 1 if it takes registers.
tl_emu_op_fn tl_emu_op_setmaxnreg;
// Registers of a thread when a kernel begins, from its .maxnreg or, with 0, its .minnctapersm. 0: ptxas knows none.
uint32_t tl_emu_entry_registers(uint32_t maxnreg, uint32_t blocks_of_sm, uint32_t threads);
// At the end of a block: tells of warpgroups that did not execute it together.
extern const tl_emu_hooks tl_emu_registers_hooks;

// Exchanges within a warp (ops_warp.c).
typedef enum tl_emu_shuffle {
  TL_EMU_SHUFFLE_UP,
  TL_EMU_SHUFFLE_DOWN,
  TL_EMU_SHUFFLE_BFLY,
  TL_EMU_SHUFFLE_IDX,
  TL_EMU_SHUFFLE_PREDICATE = 8  // bit: also gives whether the source lane is in range
} tl_emu_shuffle;
tl_emu_op_fn tl_emu_op_shuffle;
typedef enum tl_emu_vote { TL_EMU_VOTE_ALL, TL_EMU_VOTE_ANY, TL_EMU_VOTE_UNI, TL_EMU_VOTE_BALLOT } tl_emu_vote;
tl_emu_op_fn tl_emu_op_vote;
typedef enum tl_emu_redux {
  TL_EMU_REDUX_ADD,
  TL_EMU_REDUX_MIN,
  TL_EMU_REDUX_MAX,
  TL_EMU_REDUX_UMIN,
  TL_EMU_REDUX_UMAX,
  TL_EMU_REDUX_AND,
  TL_EMU_REDUX_OR,
  TL_EMU_REDUX_XOR
} tl_emu_redux;
tl_emu_op_fn tl_emu_op_redux;
tl_emu_op_fn tl_emu_op_elect;
tl_emu_op_fn tl_emu_op_match_any;  // parameter: bytes of the value
tl_emu_op_fn tl_emu_op_match_all;
enum { TL_EMU_REDUX_MAX_F32 = 1, TL_EMU_REDUX_ABS = 2, TL_EMU_REDUX_NAN = 4 };  // bits
tl_emu_op_fn tl_emu_op_redux_f32;

// Matrix fragments (ops_matrix.c, mma.c, mma_sparse.c). Parameter of ldmatrix and stmatrix: number of matrices, plus a
// bit.
enum { TL_EMU_MATRIX_TRANS = 8 };
tl_emu_op_fn tl_emu_op_ldmatrix;
tl_emu_op_fn tl_emu_op_stmatrix;
// Parameter of mma: type of A, type of B × 16, and bits.
typedef enum tl_emu_mma_type {
  TL_EMU_MMA_F16,
  TL_EMU_MMA_BF16,
  TL_EMU_MMA_TF32,
  TL_EMU_MMA_S8,
  TL_EMU_MMA_U8,
  TL_EMU_MMA_S4,
  TL_EMU_MMA_U4,
  TL_EMU_MMA_E4M3,
  TL_EMU_MMA_E5M2,
  TL_EMU_MMA_AND,  // single bits: what joins the two of a product, which are counted
  TL_EMU_MMA_XOR
} tl_emu_mma_type;
enum {
  TL_EMU_MMA_HALF_K = 256,     // rows of A and columns of B are 16 bytes, not 32
  TL_EMU_MMA_8_ROWS = 512,     // A has 8 rows, not 16 (and half of k)
  TL_EMU_MMA_F16_SUMS = 1024,  // the sums are f16
  TL_EMU_MMA_SATURATE = 2048
};
tl_emu_op_fn tl_emu_op_mma;
tl_emu_op_fn tl_emu_op_mma_f64;     // parameter: rows × 32 + k
tl_emu_op_fn tl_emu_op_mma_sparse;  // parameter as of mma; the rows of A that its lanes hold have 16 or 32 bytes
// m8n8k4 of f16 (mma_quads.c). Parameter: bits.
enum {
  TL_EMU_QUADS_COL_A = 1,
  TL_EMU_QUADS_ROW_B = 2,
  TL_EMU_QUADS_F16_ADDED = 4,  // else f32
  TL_EMU_QUADS_F16_SUMS = 8
};
tl_emu_op_fn tl_emu_op_mma_quads;

// Asynchronous multiplications by a warpgroup (ops_wgmma.c).
tl_emu_op_fn tl_emu_op_wgmma;
tl_emu_op_fn tl_emu_op_wgmma_fence;
tl_emu_op_fn tl_emu_op_wgmma_commit;
tl_emu_op_fn tl_emu_op_wgmma_wait;
tl_emu_op_fn tl_emu_op_wgmma_wait_group;
// What a name says, for tl_emu_site; to be freed. NULL when it is none of llvm_backend/device/wgmma.h.
void *tl_emu_wgmma_detail(const char *name);
// At the end of a block: tells what nobody waited for.
extern const tl_emu_hooks tl_emu_wgmma_hooks;

// Asynchronous copies (ops_async.c). Parameter: bytes, plus a bit for the forms with a source size.
enum { TL_EMU_COPY_ZFILL = 64 };
tl_emu_op_fn tl_emu_op_cp_async;
tl_emu_op_fn tl_emu_op_cp_async_pred;  // the same, with a predicate as last operand
tl_emu_op_fn tl_emu_op_cp_async_commit;
// Lands the copies among the first `num_issued` of the thread that have not landed.
void tl_emu_copies_land(tl_emu_fiber *fiber, uint32_t num_issued, const tl_emu_site *site);
tl_emu_op_fn tl_emu_op_cp_async_wait;
tl_emu_op_fn tl_emu_op_cp_async_wait_all;
extern const tl_emu_hooks tl_emu_cp_async_hooks;

// mbarriers (ops_mbarrier.c) and fence.proxy.async. Parameter: bits.
enum {
  TL_EMU_MBARRIER_COUNT = 1,  // the arrival has a count operand
  TL_EMU_MBARRIER_TX = 2,     // … and one of bytes
  TL_EMU_MBARRIER_DROP = 4,
  TL_EMU_MBARRIER_NO_COMPLETE = 8,
  TL_EMU_MBARRIER_RELAXED = 16,
  TL_EMU_MBARRIER_PARITY = 32,
  TL_EMU_MBARRIER_TRY = 64,  // the thread may be suspended
  TL_EMU_MBARRIER_COMPLETE = 128
};
tl_emu_op_fn tl_emu_op_mbarrier_init;
tl_emu_op_fn tl_emu_op_fence_mbarrier_init;
tl_emu_op_fn tl_emu_op_mbarrier_inval;
tl_emu_op_fn tl_emu_op_mbarrier_arrive;
tl_emu_op_fn tl_emu_op_mbarrier_tx;
tl_emu_op_fn tl_emu_op_mbarrier_wait;
tl_emu_op_fn tl_emu_op_cp_async_mbarrier;  // parameter: 1 for .noinc
tl_emu_op_fn tl_emu_op_mbarrier_pending_count;
tl_emu_op_fn tl_emu_op_fence_proxy_async;

// Clusters (ops_cluster.c). Parameter of the arrival: 1 if it is relaxed.
tl_emu_op_fn tl_emu_op_cluster_arrive;
tl_emu_op_fn tl_emu_op_cluster_wait;
tl_emu_op_fn tl_emu_op_mapa;
tl_emu_op_fn tl_emu_op_getctarank;
typedef enum tl_emu_cluster_sreg {
  TL_EMU_CLUSTER_RANK,
  TL_EMU_CLUSTER_SIZE,
  TL_EMU_CLUSTER_CTAID_X,
  TL_EMU_CLUSTER_CTAID_Y,
  TL_EMU_CLUSTER_CTAID_Z,
  TL_EMU_CLUSTER_NCTAID_X,
  TL_EMU_CLUSTER_NCTAID_Y,
  TL_EMU_CLUSTER_NCTAID_Z,
  TL_EMU_CLUSTER_ID_X,
  TL_EMU_CLUSTER_ID_Y,
  TL_EMU_CLUSTER_ID_Z,
  TL_EMU_CLUSTER_NID_X,
  TL_EMU_CLUSTER_NID_Y,
  TL_EMU_CLUSTER_NID_Z
} tl_emu_cluster_sreg;
tl_emu_op_fn tl_emu_op_cluster_sreg;
// At the end of a thread: the cluster's barrier no longer waits for it.
extern const tl_emu_hooks tl_emu_cluster_hooks;

// Tensor copies (ops_tma.c). Parameter: rank, bits, for stores a tl_emu_reduce_op + 1 above the shift.
enum {
  TL_EMU_TMA_RANK = 7,    // mask
  TL_EMU_TMA_IM2COL = 8,  // bit
  TL_EMU_TMA_CTA = 16,    // bit: the form that stays within the block, also of bulk loads
  TL_EMU_TMA_REDUCE_SHIFT = 5
};
tl_emu_op_fn tl_emu_op_tma_load;
tl_emu_op_fn tl_emu_op_tma_store;
tl_emu_op_fn tl_emu_op_tma_prefetch;

// Tensor maps in memory (ops_tensormap.c).
tl_emu_op_fn tl_emu_op_tensormap_use;
tl_emu_op_fn tl_emu_op_tensormap_acquire;
tl_emu_op_fn tl_emu_op_tensormap_replace;  // parameter: a tl_emu_tensormap_field
extern const tl_emu_hooks tl_emu_tensormap_hooks;

// Bulk copies and the groups of all bulk operations (ops_bulk.c). Parameter of reductions: tl_emu_reduce_op, and the
// tl_tensormap_type above the shift; of the wait: 1 if only reads are waited for.
enum { TL_EMU_BULK_OP = 15, TL_EMU_BULK_TYPE_SHIFT = 4 };
tl_emu_op_fn tl_emu_op_bulk_load;
tl_emu_op_fn tl_emu_op_bulk_store;
tl_emu_op_fn tl_emu_op_bulk_to_cluster;
tl_emu_op_fn tl_emu_op_bulk_reduce;
tl_emu_op_fn tl_emu_op_bulk_reduce_cluster;
tl_emu_op_fn tl_emu_op_bulk_prefetch;
tl_emu_op_fn tl_emu_op_bulk_commit;
tl_emu_op_fn tl_emu_op_bulk_wait;

// Conversions and approximate arithmetic (ops_math.c).
enum { TL_EMU_CVT_BF16 = 1, TL_EMU_CVT_RELU = 2 };
enum { TL_EMU_F8_RELU = 0x100 };  // beside a dtype
tl_emu_op_fn tl_emu_op_cvt_pair;
tl_emu_op_fn tl_emu_op_cvt_to_f8;  // parameter: the tl_dtype
tl_emu_op_fn tl_emu_op_cvt_from_f8;
tl_emu_op_fn tl_emu_op_cvt_tf32;
typedef enum tl_emu_approx {
  TL_EMU_APPROX_EX2,
  TL_EMU_APPROX_LG2,
  TL_EMU_APPROX_RCP,
  TL_EMU_APPROX_RSQRT,
  TL_EMU_APPROX_SQRT,
  TL_EMU_APPROX_TANH,
  TL_EMU_APPROX_SIN,
  TL_EMU_APPROX_COS,
  TL_EMU_APPROX_FTZ = 16  // bit: subnormal operands and results become zero of the same sign
} tl_emu_approx;
tl_emu_op_fn tl_emu_op_approx;
enum { TL_EMU_DP4A_A_SIGNED = 1, TL_EMU_DP4A_B_SIGNED = 2 };
tl_emu_op_fn tl_emu_op_dp4a;  // parameter: which operands' bytes are signed
tl_emu_op_fn tl_emu_op_div;   // parameter: TL_EMU_APPROX_FTZ or 0

// Scalars of PTX (ops_ptx.c). Parameter: what is done, how it is rounded, to and from which type, at these bits.
typedef enum tl_emu_ptx_arithmetic {
  TL_EMU_PTX_ADD,
  TL_EMU_PTX_SUB,
  TL_EMU_PTX_MUL,
  TL_EMU_PTX_DIV,
  TL_EMU_PTX_FMA,
  TL_EMU_PTX_RCP,
  TL_EMU_PTX_SQRT,
  TL_EMU_PTX_CVT
} tl_emu_ptx_arithmetic;
typedef enum tl_emu_ptx_round { TL_EMU_PTX_RN, TL_EMU_PTX_RZ, TL_EMU_PTX_RM, TL_EMU_PTX_RP } tl_emu_ptx_round;
typedef enum tl_emu_ptx_type {
  TL_EMU_PTX_F16,
  TL_EMU_PTX_BF16,
  TL_EMU_PTX_F32,
  TL_EMU_PTX_F64,
  TL_EMU_PTX_S64,
  TL_EMU_PTX_U64
} tl_emu_ptx_type;
enum { TL_EMU_PTX_OP = 0, TL_EMU_PTX_ROUND = 4, TL_EMU_PTX_TO = 8, TL_EMU_PTX_FROM = 12, TL_EMU_PTX_PART = 15 };
tl_emu_op_fn tl_emu_op_ptx_arithmetic, tl_emu_op_ptx_cvt;
tl_emu_op_fn tl_emu_op_ptx_cvt_tf32_away;
tl_emu_op_fn tl_emu_op_ptx_approx_f64;
tl_emu_op_fn tl_emu_op_ptx_find_set;

// wmma.mma (ops_wmma.c). Parameter: shape, then from bit 4, 8 and 12 on the types of A and B, of C and of D, and bit 16
// for .satfinite.
typedef enum tl_emu_wmma_shape {
  TL_EMU_WMMA_16_16_16,
  TL_EMU_WMMA_8_32_16,
  TL_EMU_WMMA_32_8_16,
  TL_EMU_WMMA_16_16_8,
  TL_EMU_WMMA_8_8_4
} tl_emu_wmma_shape;
typedef enum tl_emu_wmma_type {
  TL_EMU_WMMA_F16,
  TL_EMU_WMMA_BF16,
  TL_EMU_WMMA_TF32,
  TL_EMU_WMMA_F32,
  TL_EMU_WMMA_F64,
  TL_EMU_WMMA_S8,
  TL_EMU_WMMA_U8,
  TL_EMU_WMMA_S32
} tl_emu_wmma_type;
tl_emu_op_fn tl_emu_op_wmma;

// Predicated global accesses (ops_memory.c). Parameter: bytes of one element × 16 + number of elements.
tl_emu_op_fn tl_emu_op_load_pred;
tl_emu_op_fn tl_emu_op_store_pred;
typedef enum tl_emu_red_type { TL_EMU_RED_F32 = 0, TL_EMU_RED_F16X2 = 16, TL_EMU_RED_BF16X2 = 32 } tl_emu_red_type;
tl_emu_op_fn tl_emu_op_red_pred;  // parameter: type + number of words
// Relaxed atomics on some bytes of a word (ops_part.c).
tl_emu_op_fn tl_emu_op_load_part;
tl_emu_op_fn tl_emu_op_cas_part;

#endif
