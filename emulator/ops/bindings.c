// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which C function stands for which device op. Every row of llvm_backend/device/device_ops.def must have one here, with
// the same signature (a unit test compares); a few ops that no row names yet are bound as well.
#include <string.h>

#include "emulator/machine/elements.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/tensormap.h"
#include "emulator/sanitize/sanitize.h"
#include "support/dtype.h"

// clang-format off
// Tensor ops of every rank; COORDINATES with and without im2col's offsets.
#define TL_TMA(text, before, coordinates, after, run, param) \
    {"llvm.nvvm.cp.async.bulk.tensor." text, "(" before coordinates after ")", run, param}
#define TL_TMA_TILES(text, before, after, run, param) \
    TL_TMA(text ".tile.1d", before, "i", after, run, (param) | 1), \
    TL_TMA(text ".tile.2d", before, "ii", after, run, (param) | 2), \
    TL_TMA(text ".tile.3d", before, "iii", after, run, (param) | 3), \
    TL_TMA(text ".tile.4d", before, "iiii", after, run, (param) | 4), \
    TL_TMA(text ".tile.5d", before, "iiiii", after, run, (param) | 5)
#define TL_TMA_OFFSETS(text, before, after, run, param) \
    TL_TMA(text ".im2col.3d", before, "iiis", after, run, (param) | TL_EMU_TMA_IM2COL | 3), \
    TL_TMA(text ".im2col.4d", before, "iiiiss", after, run, (param) | TL_EMU_TMA_IM2COL | 4), \
    TL_TMA(text ".im2col.5d", before, "iiiiisss", after, run, (param) | TL_EMU_TMA_IM2COL | 5)
#define TL_TMA_COLUMNS(text, before, after, run, param) \
    TL_TMA(text ".im2col.3d", before, "iii", after, run, (param) | TL_EMU_TMA_IM2COL | 3), \
    TL_TMA(text ".im2col.4d", before, "iiii", after, run, (param) | TL_EMU_TMA_IM2COL | 4), \
    TL_TMA(text ".im2col.5d", before, "iiiii", after, run, (param) | TL_EMU_TMA_IM2COL | 5)
#define TL_TMA_REDUCTION(text, op) \
    TL_TMA_TILES("reduce." text, "pG", "lB", tl_emu_op_tma_store, (TL_EMU_REDUCE_##op + 1) << TL_EMU_TMA_REDUCE_SHIFT), \
    TL_TMA_COLUMNS("reduce." text, "pG", "lB", tl_emu_op_tma_store, (TL_EMU_REDUCE_##op + 1) << TL_EMU_TMA_REDUCE_SHIFT)
#define TL_BULK_REDUCE(text, op, type) \
    {"tl.cp.reduce.async.bulk.global." text, "(gpi)", tl_emu_op_bulk_reduce, \
     TL_EMU_REDUCE_##op | TL_TENSORMAP_##type << TL_EMU_BULK_TYPE_SHIFT}
#define TL_BULK_REDUCE_CLUSTER(text, op, type) \
    {"tl.cp.reduce.async.bulk.cluster." text, "(PpiP)", tl_emu_op_bulk_reduce_cluster, \
     TL_EMU_REDUCE_##op | TL_TENSORMAP_##type << TL_EMU_BULK_TYPE_SHIFT}
#define TL_TENSORMAP_REPLACE(text, operands, field) \
    {"llvm.nvvm.tensormap.replace." text ".p1", "(g" operands ")", tl_emu_op_tensormap_replace, TL_EMU_TENSORMAP_##field}, \
    {"llvm.nvvm.tensormap.replace." text ".p3", "(p" operands ")", tl_emu_op_tensormap_replace, TL_EMU_TENSORMAP_##field}

static const tl_emu_binding bindings[] = {
    // special registers
    {"llvm.nvvm.read.ptx.sreg.tid.x", "i()", tl_emu_op_sreg, TL_EMU_SREG_TID_X},
    {"llvm.nvvm.read.ptx.sreg.tid.y", "i()", tl_emu_op_sreg, TL_EMU_SREG_ZERO},
    {"llvm.nvvm.read.ptx.sreg.tid.z", "i()", tl_emu_op_sreg, TL_EMU_SREG_ZERO},
    {"llvm.nvvm.read.ptx.sreg.ntid.x", "i()", tl_emu_op_sreg, TL_EMU_SREG_NTID_X},
    {"llvm.nvvm.read.ptx.sreg.ntid.y", "i()", tl_emu_op_sreg, TL_EMU_SREG_ONE},
    {"llvm.nvvm.read.ptx.sreg.ntid.z", "i()", tl_emu_op_sreg, TL_EMU_SREG_ONE},
    {"llvm.nvvm.read.ptx.sreg.ctaid.x", "i()", tl_emu_op_sreg, TL_EMU_SREG_CTAID_X},
    {"llvm.nvvm.read.ptx.sreg.ctaid.y", "i()", tl_emu_op_sreg, TL_EMU_SREG_CTAID_Y},
    {"llvm.nvvm.read.ptx.sreg.ctaid.z", "i()", tl_emu_op_sreg, TL_EMU_SREG_CTAID_Z},
    {"llvm.nvvm.read.ptx.sreg.nctaid.x", "i()", tl_emu_op_sreg, TL_EMU_SREG_NCTAID_X},
    {"llvm.nvvm.read.ptx.sreg.nctaid.y", "i()", tl_emu_op_sreg, TL_EMU_SREG_NCTAID_Y},
    {"llvm.nvvm.read.ptx.sreg.nctaid.z", "i()", tl_emu_op_sreg, TL_EMU_SREG_NCTAID_Z},
    {"llvm.nvvm.read.ptx.sreg.laneid", "i()", tl_emu_op_sreg, TL_EMU_SREG_LANEID},
    {"llvm.nvvm.read.ptx.sreg.warpid", "i()", tl_emu_op_sreg, TL_EMU_SREG_WARPID},

    // special registers that are no positions
    {"llvm.nvvm.read.ptx.sreg.clock", "i()", tl_emu_op_special, TL_EMU_SPECIAL_CLOCK},
    {"llvm.nvvm.read.ptx.sreg.clock64", "l()", tl_emu_op_special, TL_EMU_SPECIAL_CLOCK},
    {"llvm.nvvm.read.ptx.sreg.globaltimer", "l()", tl_emu_op_special, TL_EMU_SPECIAL_CLOCK},
    {"llvm.nvvm.read.ptx.sreg.globaltimer.lo", "i()", tl_emu_op_special, TL_EMU_SPECIAL_CLOCK},
    {"llvm.nvvm.read.ptx.sreg.smid", "i()", tl_emu_op_special, TL_EMU_SPECIAL_SMID},
    {"llvm.nvvm.read.ptx.sreg.nsmid", "i()", tl_emu_op_special, TL_EMU_SPECIAL_NSMID},
    {"llvm.nvvm.read.ptx.sreg.nwarpid", "i()", tl_emu_op_special, TL_EMU_SPECIAL_NWARPID},
    {"llvm.nvvm.read.ptx.sreg.warpsize", "i()", tl_emu_op_special, TL_EMU_SPECIAL_WARPSIZE},
    {"llvm.nvvm.read.ptx.sreg.gridid", "l()", tl_emu_op_special, TL_EMU_SPECIAL_GRIDID},
    {"llvm.nvvm.read.ptx.sreg.dynamic_smem_size", "i()", tl_emu_op_special, TL_EMU_SPECIAL_DYNAMIC_SHARED},
    {"llvm.nvvm.read.ptx.sreg.total_smem_size", "i()", tl_emu_op_special, TL_EMU_SPECIAL_TOTAL_SHARED},
    {"llvm.nvvm.read.ptx.sreg.aggr_smem_size", "i()", tl_emu_op_special, TL_EMU_SPECIAL_TOTAL_SHARED},
    {"llvm.nvvm.read.ptx.sreg.lanemask.eq", "i()", tl_emu_op_special, TL_EMU_SPECIAL_LANEMASK_EQ},
    {"llvm.nvvm.read.ptx.sreg.lanemask.lt", "i()", tl_emu_op_special, TL_EMU_SPECIAL_LANEMASK_LT},
    {"llvm.nvvm.read.ptx.sreg.lanemask.le", "i()", tl_emu_op_special, TL_EMU_SPECIAL_LANEMASK_LE},
    {"llvm.nvvm.read.ptx.sreg.lanemask.gt", "i()", tl_emu_op_special, TL_EMU_SPECIAL_LANEMASK_GT},
    {"llvm.nvvm.read.ptx.sreg.lanemask.ge", "i()", tl_emu_op_special, TL_EMU_SPECIAL_LANEMASK_GE},
    {"llvm.nvvm.is_explicit_cluster", "b()", tl_emu_op_special, TL_EMU_SPECIAL_EXPLICIT_CLUSTER},
    {"llvm.nvvm.activemask", "i()", tl_emu_op_special, TL_EMU_SPECIAL_ACTIVEMASK},

    // windows of addresses, hints
    {"llvm.nvvm.isspacep.const", "b(G)", tl_emu_op_isspacep, TL_EMU_SPACE_CONST},
    {"llvm.nvvm.isspacep.global", "b(G)", tl_emu_op_isspacep, TL_EMU_SPACE_GLOBAL},
    {"llvm.nvvm.isspacep.local", "b(G)", tl_emu_op_isspacep, TL_EMU_SPACE_LOCAL},
    {"llvm.nvvm.isspacep.shared", "b(G)", tl_emu_op_isspacep, TL_EMU_SPACE_SHARED},
    {"llvm.nvvm.isspacep.shared.cluster", "b(G)", tl_emu_op_isspacep, TL_EMU_SPACE_CLUSTER},
    {"llvm.nvvm.mapa", "G(Gi)", tl_emu_op_mapa, 0},
    {"llvm.nvvm.getctarank", "i(G)", tl_emu_op_getctarank, 0},
    {"llvm.nvvm.prefetch.global.L1", "(g)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.prefetch.global.L2", "(g)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.prefetch.global.L2.evict.last", "(g)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.prefetch.global.L2.evict.normal", "(g)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.prefetch.local.L1", "(G)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.prefetch.local.L2", "(G)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.prefetch.L1", "(G)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.prefetch.L2", "(G)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.prefetchu.L1", "(G)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.applypriority.global.L2.evict.normal", "(gL)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.applypriority.L2.evict.normal", "(GL)", tl_emu_op_nothing, 0},
    {"llvm.nvvm.discard.global.L2", "(gL)", tl_emu_op_discard, 0},
    {"llvm.nvvm.discard.L2", "(GL)", tl_emu_op_discard, 0},

    // registers, launches that depend on others (the one before has always ended), fences
    {"llvm.nvvm.setmaxnreg.inc.sync.aligned.u32", "(I)", tl_emu_op_setmaxnreg, 1},
    {"llvm.nvvm.setmaxnreg.dec.sync.aligned.u32", "(I)", tl_emu_op_setmaxnreg, 0},
    {"llvm.nvvm.griddepcontrol.wait", "()", tl_emu_op_nothing, 0},
    {"llvm.nvvm.griddepcontrol.launch.dependents", "()", tl_emu_op_nothing, 0},
    {"llvm.nvvm.fence.acquire.sync_restrict.space.cluster.scope.cluster", "()", tl_emu_op_fence, TL_EMU_FENCE_ACQUIRE},
    {"llvm.nvvm.fence.release.sync_restrict.space.cta.scope.cluster", "()", tl_emu_op_fence, TL_EMU_FENCE_RELEASE},
    {"llvm.nvvm.fence.proxy.alias", "()", tl_emu_op_nothing, 0},
    {"llvm.nvvm.fence.proxy.async_generic.acquire.sync_restrict.space.cluster.scope.cluster", "()", tl_emu_op_fence_proxy_async, TL_EMU_PROXY_ALL},
    {"llvm.nvvm.fence.proxy.async_generic.release.sync_restrict.space.cta.scope.cluster", "()", tl_emu_op_fence_proxy_async, TL_EMU_PROXY_ALL},

    // barriers
    {"llvm.nvvm.barrier.cta.sync.aligned.all", "(i)", tl_emu_op_barrier, 0},
    {"llvm.nvvm.barrier.cta.sync.aligned.count", "(ii)", tl_emu_op_barrier, TL_EMU_BARRIER_COUNT},
    {"llvm.nvvm.barrier.cta.arrive.aligned.count", "(ii)", tl_emu_op_barrier, TL_EMU_BARRIER_COUNT | TL_EMU_BARRIER_ARRIVE},
    {"llvm.nvvm.barrier.cta.sync.all", "(i)", tl_emu_op_barrier, TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.sync.count", "(ii)", tl_emu_op_barrier, TL_EMU_BARRIER_COUNT | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.arrive.count", "(ii)", tl_emu_op_barrier, TL_EMU_BARRIER_COUNT | TL_EMU_BARRIER_ARRIVE | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.red.and.aligned.all", "b(ib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_AND},
    {"llvm.nvvm.barrier.cta.red.and.aligned.count", "b(iib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_AND | TL_EMU_BARRIER_COUNT},
    {"llvm.nvvm.barrier.cta.red.and.all", "b(ib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_AND | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.red.and.count", "b(iib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_AND | TL_EMU_BARRIER_COUNT | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.red.or.aligned.all", "b(ib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_OR},
    {"llvm.nvvm.barrier.cta.red.or.aligned.count", "b(iib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_OR | TL_EMU_BARRIER_COUNT},
    {"llvm.nvvm.barrier.cta.red.or.all", "b(ib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_OR | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.red.or.count", "b(iib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_OR | TL_EMU_BARRIER_COUNT | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.red.popc.aligned.all", "i(ib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_POPC},
    {"llvm.nvvm.barrier.cta.red.popc.aligned.count", "i(iib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_POPC | TL_EMU_BARRIER_COUNT},
    {"llvm.nvvm.barrier.cta.red.popc.all", "i(ib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_POPC | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.red.popc.count", "i(iib)", tl_emu_op_barrier, TL_EMU_BARRIER_RED_POPC | TL_EMU_BARRIER_COUNT | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.bar.warp.sync", "(i)", tl_emu_op_warp_sync, 0},

    // control
    {"llvm.trap", "()", tl_emu_op_trap, 0},
    {"llvm.debugtrap", "()", tl_emu_op_trap, 0},
    {"llvm.nvvm.exit", "()", tl_emu_op_exit, 0},
    {"llvm.nvvm.nanosleep", "(i)", tl_emu_op_nanosleep, 0},
    {"llvm.nvvm.membar.cta", "()", tl_emu_op_fence, TL_EMU_FENCE_ACQUIRE | TL_EMU_FENCE_RELEASE},
    {"llvm.nvvm.membar.gl", "()", tl_emu_op_fence, TL_EMU_FENCE_ACQUIRE | TL_EMU_FENCE_RELEASE},
    {"llvm.nvvm.membar.sys", "()", tl_emu_op_fence, TL_EMU_FENCE_ACQUIRE | TL_EMU_FENCE_RELEASE},
    {"llvm.nvvm.fence.sc.cluster", "()", tl_emu_op_fence, TL_EMU_FENCE_ACQUIRE | TL_EMU_FENCE_RELEASE},

    // the device's runtime
    {"vprintf", "i(GG)", tl_emu_op_vprintf, 0},
    {"__assertfail", "(GGiGl)", tl_emu_op_assertfail, 0},
    {"tl.assume", "(GGib)", tl_emu_op_assume, 0},

    // content that nobody wrote: retargeting makes it zero and follows it where that is checked (undefined.c)
    {"tl.undefined.i1", "b(ii)", tl_emu_op_undefined, 0},
    {"tl.undefined.i16", "s(ii)", tl_emu_op_undefined, 0},
    {"tl.undefined.i32", "i(ii)", tl_emu_op_undefined, 0},
    {"tl.undefined.i64", "l(ii)", tl_emu_op_undefined, 0},
    {"tl.undefined.f16", "e(ii)", tl_emu_op_undefined, 0},
    {"tl.undefined.bf16", "y(ii)", tl_emu_op_undefined, 0},
    {"tl.undefined.f32", "f(ii)", tl_emu_op_undefined, 0},
    {"tl.undefined.f64", "d(ii)", tl_emu_op_undefined, 0},

    // exchanges within a warp
    {"llvm.nvvm.shfl.sync.up.i32", "i(iiii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_UP},
    {"llvm.nvvm.shfl.sync.down.i32", "i(iiii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_DOWN},
    {"llvm.nvvm.shfl.sync.bfly.i32", "i(iiii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_BFLY},
    {"llvm.nvvm.shfl.sync.idx.i32", "i(iiii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_IDX},
    {"llvm.nvvm.shfl.sync.up.f32", "f(ifii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_UP},
    {"llvm.nvvm.shfl.sync.down.f32", "f(ifii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_DOWN},
    {"llvm.nvvm.shfl.sync.bfly.f32", "f(ifii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_BFLY},
    {"llvm.nvvm.shfl.sync.idx.f32", "f(ifii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_IDX},
    {"llvm.nvvm.shfl.sync.up.i32p", "ib(iiii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_UP | TL_EMU_SHUFFLE_PREDICATE},
    {"llvm.nvvm.shfl.sync.down.i32p", "ib(iiii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_DOWN | TL_EMU_SHUFFLE_PREDICATE},
    {"llvm.nvvm.shfl.sync.bfly.i32p", "ib(iiii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_BFLY | TL_EMU_SHUFFLE_PREDICATE},
    {"llvm.nvvm.shfl.sync.idx.i32p", "ib(iiii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_IDX | TL_EMU_SHUFFLE_PREDICATE},
    {"llvm.nvvm.shfl.sync.up.f32p", "fb(ifii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_UP | TL_EMU_SHUFFLE_PREDICATE},
    {"llvm.nvvm.shfl.sync.down.f32p", "fb(ifii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_DOWN | TL_EMU_SHUFFLE_PREDICATE},
    {"llvm.nvvm.shfl.sync.bfly.f32p", "fb(ifii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_BFLY | TL_EMU_SHUFFLE_PREDICATE},
    {"llvm.nvvm.shfl.sync.idx.f32p", "fb(ifii)", tl_emu_op_shuffle, TL_EMU_SHUFFLE_IDX | TL_EMU_SHUFFLE_PREDICATE},
    {"llvm.nvvm.vote.all.sync", "b(ib)", tl_emu_op_vote, TL_EMU_VOTE_ALL},
    {"llvm.nvvm.vote.any.sync", "b(ib)", tl_emu_op_vote, TL_EMU_VOTE_ANY},
    {"llvm.nvvm.vote.uni.sync", "b(ib)", tl_emu_op_vote, TL_EMU_VOTE_UNI},
    {"llvm.nvvm.vote.ballot.sync", "i(ib)", tl_emu_op_vote, TL_EMU_VOTE_BALLOT},
    {"llvm.nvvm.redux.sync.add", "i(ii)", tl_emu_op_redux, TL_EMU_REDUX_ADD},
    {"llvm.nvvm.redux.sync.min", "i(ii)", tl_emu_op_redux, TL_EMU_REDUX_MIN},
    {"llvm.nvvm.redux.sync.max", "i(ii)", tl_emu_op_redux, TL_EMU_REDUX_MAX},
    {"llvm.nvvm.redux.sync.umin", "i(ii)", tl_emu_op_redux, TL_EMU_REDUX_UMIN},
    {"llvm.nvvm.redux.sync.umax", "i(ii)", tl_emu_op_redux, TL_EMU_REDUX_UMAX},
    {"llvm.nvvm.redux.sync.and", "i(ii)", tl_emu_op_redux, TL_EMU_REDUX_AND},
    {"llvm.nvvm.redux.sync.or", "i(ii)", tl_emu_op_redux, TL_EMU_REDUX_OR},
    {"llvm.nvvm.redux.sync.xor", "i(ii)", tl_emu_op_redux, TL_EMU_REDUX_XOR},
    {"llvm.nvvm.elect.sync", "ib(i)", tl_emu_op_elect, 0},
    {"llvm.nvvm.match.any.sync.i32", "i(ii)", tl_emu_op_match_any, 4},
    {"llvm.nvvm.match.any.sync.i64", "i(il)", tl_emu_op_match_any, 8},
    {"llvm.nvvm.match.all.sync.i32p", "ib(ii)", tl_emu_op_match_all, 4},
    {"llvm.nvvm.match.all.sync.i64p", "ib(il)", tl_emu_op_match_all, 8},
    {"llvm.nvvm.redux.sync.fmin", "f(fi)", tl_emu_op_redux_f32, 0},
    {"llvm.nvvm.redux.sync.fmin.NaN", "f(fi)", tl_emu_op_redux_f32, TL_EMU_REDUX_NAN},
    {"llvm.nvvm.redux.sync.fmin.abs", "f(fi)", tl_emu_op_redux_f32, TL_EMU_REDUX_ABS},
    {"llvm.nvvm.redux.sync.fmin.abs.NaN", "f(fi)", tl_emu_op_redux_f32, TL_EMU_REDUX_ABS | TL_EMU_REDUX_NAN},
    {"llvm.nvvm.redux.sync.fmax", "f(fi)", tl_emu_op_redux_f32, TL_EMU_REDUX_MAX_F32},
    {"llvm.nvvm.redux.sync.fmax.NaN", "f(fi)", tl_emu_op_redux_f32, TL_EMU_REDUX_MAX_F32 | TL_EMU_REDUX_NAN},
    {"llvm.nvvm.redux.sync.fmax.abs", "f(fi)", tl_emu_op_redux_f32, TL_EMU_REDUX_MAX_F32 | TL_EMU_REDUX_ABS},
    {"llvm.nvvm.redux.sync.fmax.abs.NaN", "f(fi)", tl_emu_op_redux_f32, TL_EMU_REDUX_MAX_F32 | TL_EMU_REDUX_ABS | TL_EMU_REDUX_NAN},

    // asynchronous copies
    {"llvm.nvvm.cp.async.ca.shared.global.4", "(pg)", tl_emu_op_cp_async, 4},
    {"llvm.nvvm.cp.async.ca.shared.global.8", "(pg)", tl_emu_op_cp_async, 8},
    {"llvm.nvvm.cp.async.ca.shared.global.16", "(pg)", tl_emu_op_cp_async, 16},
    {"llvm.nvvm.cp.async.cg.shared.global.16", "(pg)", tl_emu_op_cp_async, 16},
    {"llvm.nvvm.cp.async.ca.shared.global.4.s", "(pgi)", tl_emu_op_cp_async, 4 | TL_EMU_COPY_ZFILL},
    {"llvm.nvvm.cp.async.ca.shared.global.8.s", "(pgi)", tl_emu_op_cp_async, 8 | TL_EMU_COPY_ZFILL},
    {"llvm.nvvm.cp.async.ca.shared.global.16.s", "(pgi)", tl_emu_op_cp_async, 16 | TL_EMU_COPY_ZFILL},
    {"llvm.nvvm.cp.async.cg.shared.global.16.s", "(pgi)", tl_emu_op_cp_async, 16 | TL_EMU_COPY_ZFILL},
    {"tl.cp.async.ca.4.pred", "(pgb)", tl_emu_op_cp_async_pred, 4},
    {"tl.cp.async.ca.4.zfill.pred", "(pgib)", tl_emu_op_cp_async_pred, 4 | TL_EMU_COPY_ZFILL},
    {"tl.cp.async.ca.8.pred", "(pgb)", tl_emu_op_cp_async_pred, 8},
    {"tl.cp.async.ca.8.zfill.pred", "(pgib)", tl_emu_op_cp_async_pred, 8 | TL_EMU_COPY_ZFILL},
    {"tl.cp.async.ca.16.pred", "(pgb)", tl_emu_op_cp_async_pred, 16},
    {"tl.cp.async.ca.16.zfill.pred", "(pgib)", tl_emu_op_cp_async_pred, 16 | TL_EMU_COPY_ZFILL},
    {"tl.cp.async.cg.16.pred", "(pgb)", tl_emu_op_cp_async_pred, 16},
    {"tl.cp.async.cg.16.zfill.pred", "(pgib)", tl_emu_op_cp_async_pred, 16 | TL_EMU_COPY_ZFILL},
    {"llvm.nvvm.cp.async.commit.group", "()", tl_emu_op_cp_async_commit, 0},
    {"llvm.nvvm.cp.async.wait.group", "(I)", tl_emu_op_cp_async_wait, 0},
    {"llvm.nvvm.cp.async.wait.all", "()", tl_emu_op_cp_async_wait_all, 0},

    // matrix fragments
    {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16.p3", "i(p)", tl_emu_op_ldmatrix, 1},
    {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3", "ii(p)", tl_emu_op_ldmatrix, 2},
    {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3", "iiii(p)", tl_emu_op_ldmatrix, 4},
    {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.trans.b16.p3", "i(p)", tl_emu_op_ldmatrix, 1 | TL_EMU_MATRIX_TRANS},
    {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16.p3", "ii(p)", tl_emu_op_ldmatrix, 2 | TL_EMU_MATRIX_TRANS},
    {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3", "iiii(p)", tl_emu_op_ldmatrix, 4 | TL_EMU_MATRIX_TRANS},
    {"llvm.nvvm.stmatrix.sync.aligned.m8n8.x1.b16.p3", "(pi)", tl_emu_op_stmatrix, 1},
    {"llvm.nvvm.stmatrix.sync.aligned.m8n8.x2.b16.p3", "(pii)", tl_emu_op_stmatrix, 2},
    {"llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.b16.p3", "(piiii)", tl_emu_op_stmatrix, 4},
    {"llvm.nvvm.stmatrix.sync.aligned.m8n8.x1.trans.b16.p3", "(pi)", tl_emu_op_stmatrix, 1 | TL_EMU_MATRIX_TRANS},
    {"llvm.nvvm.stmatrix.sync.aligned.m8n8.x2.trans.b16.p3", "(pii)", tl_emu_op_stmatrix, 2 | TL_EMU_MATRIX_TRANS},
    {"llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.trans.b16.p3", "(piiii)", tl_emu_op_stmatrix, 4 | TL_EMU_MATRIX_TRANS},
    // every form: the name is parsed (tl_emu_wgmma_detail)
    {"tl.wgmma.m64*", "", tl_emu_op_wgmma, 0},
    {"tl.wgmma.wait.*", "", tl_emu_op_wgmma_wait, 0},
    {"llvm.nvvm.wgmma.fence.sync.aligned", "()", tl_emu_op_wgmma_fence, 0},
    {"llvm.nvvm.wgmma.commit_group.sync.aligned", "()", tl_emu_op_wgmma_commit, 0},
    {"llvm.nvvm.wgmma.wait_group.sync.aligned", "(L)", tl_emu_op_wgmma_wait_group, 0},
#include "emulator/ops/bindings_mma.def"

    // conversions
    {"llvm.nvvm.ff2f16x2.rn", "E(ff)", tl_emu_op_cvt_pair, 0},
    {"llvm.nvvm.ff2bf16x2.rn", "Y(ff)", tl_emu_op_cvt_pair, TL_EMU_CVT_BF16},
    {"llvm.nvvm.ff2f16x2.rn.relu", "E(ff)", tl_emu_op_cvt_pair, TL_EMU_CVT_RELU},
    {"llvm.nvvm.ff2bf16x2.rn.relu", "Y(ff)", tl_emu_op_cvt_pair, TL_EMU_CVT_BF16 | TL_EMU_CVT_RELU},

    {"llvm.nvvm.ff.to.e4m3x2.rn", "s(ff)", tl_emu_op_cvt_to_f8, TL_DTYPE_F8E4M3},
    {"llvm.nvvm.ff.to.e5m2x2.rn", "s(ff)", tl_emu_op_cvt_to_f8, TL_DTYPE_F8E5M2},
    {"llvm.nvvm.ff.to.e4m3x2.rn.relu", "s(ff)", tl_emu_op_cvt_to_f8, TL_DTYPE_F8E4M3 | TL_EMU_F8_RELU},
    {"llvm.nvvm.ff.to.e5m2x2.rn.relu", "s(ff)", tl_emu_op_cvt_to_f8, TL_DTYPE_F8E5M2 | TL_EMU_F8_RELU},
    {"llvm.nvvm.e4m3x2.to.f16x2.rn", "E(s)", tl_emu_op_cvt_from_f8, TL_DTYPE_F8E4M3},
    {"llvm.nvvm.e5m2x2.to.f16x2.rn", "E(s)", tl_emu_op_cvt_from_f8, TL_DTYPE_F8E5M2},
    {"llvm.nvvm.f2tf32.rn", "i(f)", tl_emu_op_cvt_tf32, 0},

    // approximate arithmetic
    {"llvm.nvvm.ex2.approx.f32", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_EX2},
    {"llvm.nvvm.ex2.approx.ftz.f32", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_EX2 | TL_EMU_APPROX_FTZ},
    {"llvm.nvvm.lg2.approx.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_LG2},
    {"llvm.nvvm.lg2.approx.ftz.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_LG2 | TL_EMU_APPROX_FTZ},
    {"llvm.nvvm.rcp.approx.ftz.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_RCP | TL_EMU_APPROX_FTZ},
    {"llvm.nvvm.rsqrt.approx.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_RSQRT},
    {"llvm.nvvm.rsqrt.approx.ftz.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_RSQRT | TL_EMU_APPROX_FTZ},
    {"llvm.nvvm.sqrt.approx.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_SQRT},
    {"llvm.nvvm.sqrt.approx.ftz.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_SQRT | TL_EMU_APPROX_FTZ},
    {"llvm.nvvm.sin.approx.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_SIN},
    {"llvm.nvvm.sin.approx.ftz.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_SIN | TL_EMU_APPROX_FTZ},
    {"llvm.nvvm.cos.approx.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_COS},
    {"llvm.nvvm.cos.approx.ftz.f", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_COS | TL_EMU_APPROX_FTZ},
    {"llvm.nvvm.div.full", "f(ff)", tl_emu_op_div, 0},
    {"llvm.nvvm.div.full.ftz", "f(ff)", tl_emu_op_div, TL_EMU_APPROX_FTZ},
    {"llvm.nvvm.idp4a.s.s", "i(iii)", tl_emu_op_dp4a, TL_EMU_DP4A_A_SIGNED | TL_EMU_DP4A_B_SIGNED},
    {"llvm.nvvm.idp4a.s.u", "i(iii)", tl_emu_op_dp4a, TL_EMU_DP4A_A_SIGNED},
    {"llvm.nvvm.idp4a.u.s", "i(iii)", tl_emu_op_dp4a, TL_EMU_DP4A_B_SIGNED},
    {"llvm.nvvm.idp4a.u.u", "i(iii)", tl_emu_op_dp4a, 0},
    {"tl.tile", "(l)", tl_emu_op_tile, 0},
    {"tl.elements", "()", tl_emu_op_elements, 0},
    {"tl.element", "(Giiiib)", tl_emu_op_element, 0},
    {"tl.memory.order", "()", tl_emu_op_nothing, 0},
    {"tl.tanh.approx.f32", "f(f)", tl_emu_op_approx, TL_EMU_APPROX_TANH},

    // predicated global accesses; the star is the cache hint
    {"tl.ld.global.*pred.b8", "s(gb)", tl_emu_op_load_pred, 1 * 16 + 1},
    {"tl.ld.global.*pred.b16", "s(gb)", tl_emu_op_load_pred, 2 * 16 + 1},
    {"tl.ld.global.*pred.b32", "i(gb)", tl_emu_op_load_pred, 4 * 16 + 1},
    {"tl.ld.global.*pred.v2.b32", "ii(gb)", tl_emu_op_load_pred, 4 * 16 + 2},
    {"tl.ld.global.*pred.v4.b32", "iiii(gb)", tl_emu_op_load_pred, 4 * 16 + 4},
    {"tl.st.global.*pred.b8", "(gsb)", tl_emu_op_store_pred, 1 * 16 + 1},
    {"tl.st.global.*pred.b16", "(gsb)", tl_emu_op_store_pred, 2 * 16 + 1},
    {"tl.st.global.*pred.b32", "(gib)", tl_emu_op_store_pred, 4 * 16 + 1},
    {"tl.st.global.*pred.v2.b32", "(giib)", tl_emu_op_store_pred, 4 * 16 + 2},
    {"tl.st.global.*pred.v4.b32", "(giiiib)", tl_emu_op_store_pred, 4 * 16 + 4},
    {"tl.red.global.add.pred.f32", "(gfb)", tl_emu_op_red_pred, 1},
    {"tl.red.global.add.pred.v2.f32", "(gffb)", tl_emu_op_red_pred, 2},
    {"tl.red.global.add.pred.v4.f32", "(gffffb)", tl_emu_op_red_pred, 4},
    {"tl.red.global.add.pred.f16x2", "(gib)", tl_emu_op_red_pred, TL_EMU_RED_F16X2 + 1},
    {"tl.red.global.add.pred.v2.f16x2", "(giib)", tl_emu_op_red_pred, TL_EMU_RED_F16X2 + 2},
    {"tl.red.global.add.pred.v4.f16x2", "(giiiib)", tl_emu_op_red_pred, TL_EMU_RED_F16X2 + 4},
    {"tl.red.global.add.pred.bf16x2", "(gib)", tl_emu_op_red_pred, TL_EMU_RED_BF16X2 + 1},
    {"tl.red.global.add.pred.v2.bf16x2", "(giib)", tl_emu_op_red_pred, TL_EMU_RED_BF16X2 + 2},
    {"tl.red.global.add.pred.v4.bf16x2", "(giiiib)", tl_emu_op_red_pred, TL_EMU_RED_BF16X2 + 4},
    {"tl.ld.relaxed.global.part", "i(gi)", tl_emu_op_load_part, 0},
    {"tl.ld.relaxed.shared.part", "i(pi)", tl_emu_op_load_part, 0},
    {"tl.atom.relaxed.global.cas.part", "i(giii)", tl_emu_op_cas_part, 0},
    {"tl.atom.relaxed.shared.cas.part", "i(piii)", tl_emu_op_cas_part, 0},

    // mbarriers
    {"llvm.nvvm.mbarrier.init.shared", "(pi)", tl_emu_op_mbarrier_init, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.pending.count", "i(l)", tl_emu_op_mbarrier_pending_count, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.inval.shared", "(p)", tl_emu_op_mbarrier_inval, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.init", "(Gi)", tl_emu_op_mbarrier_init, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.inval", "(G)", tl_emu_op_mbarrier_inval, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive", "l(G)", tl_emu_op_mbarrier_arrive, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.noComplete", "l(Gi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_NO_COMPLETE, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop", "l(G)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.noComplete", "l(Gi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_NO_COMPLETE, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait", "b(Gl)", tl_emu_op_mbarrier_wait, 0, .on_mbarrier = true},
    {"llvm.nvvm.cp.async.mbarrier.arrive", "(G)", tl_emu_op_cp_async_mbarrier, 0, .on_mbarrier = true},
    {"llvm.nvvm.cp.async.mbarrier.arrive.shared", "(p)", tl_emu_op_cp_async_mbarrier, 0, .on_mbarrier = true},
    {"llvm.nvvm.cp.async.mbarrier.arrive.noinc", "(G)", tl_emu_op_cp_async_mbarrier, 1, .on_mbarrier = true},
    {"llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared", "(p)", tl_emu_op_cp_async_mbarrier, 1, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.shared", "l(p)", tl_emu_op_mbarrier_arrive, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.noComplete.shared", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_NO_COMPLETE, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.shared", "l(p)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.noComplete.shared", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_NO_COMPLETE, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait.shared", "b(pl)", tl_emu_op_mbarrier_wait, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.scope.cta.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.scope.cta.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.expect.tx.scope.cta.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.relaxed.scope.cta.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.relaxed.scope.cta.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.expect.tx.relaxed.scope.cta.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.expect.tx.relaxed.scope.cta.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.expect.tx.scope.cta.space.cta", "(pi)", tl_emu_op_mbarrier_tx, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.complete.tx.scope.cta.space.cta", "(pi)", tl_emu_op_mbarrier_tx, TL_EMU_MBARRIER_COMPLETE, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.expect.tx.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.relaxed.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.relaxed.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.expect.tx.relaxed.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.expect.tx.relaxed.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.expect.tx.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_tx, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.complete.tx.scope.cta.space.cluster", "(Pi)", tl_emu_op_mbarrier_tx, TL_EMU_MBARRIER_COMPLETE, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait.scope.cta.space.cta", "b(pl)", tl_emu_op_mbarrier_wait, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait.parity.scope.cta.space.cta", "b(pi)", tl_emu_op_mbarrier_wait, 0 | TL_EMU_MBARRIER_PARITY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.scope.cta.space.cta", "b(pl)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.tl.scope.cta.space.cta", "b(pli)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta", "b(pi)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_PARITY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.parity.tl.scope.cta.space.cta", "b(pii)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_PARITY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait.relaxed.scope.cta.space.cta", "b(pl)", tl_emu_op_mbarrier_wait, 0 | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait.parity.relaxed.scope.cta.space.cta", "b(pi)", tl_emu_op_mbarrier_wait, 0 | TL_EMU_MBARRIER_PARITY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.relaxed.scope.cta.space.cta", "b(pl)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.tl.relaxed.scope.cta.space.cta", "b(pli)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.parity.relaxed.scope.cta.space.cta", "b(pi)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_PARITY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.parity.tl.relaxed.scope.cta.space.cta", "b(pii)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_PARITY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.scope.cluster.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.scope.cluster.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.expect.tx.scope.cluster.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.expect.tx.scope.cluster.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.relaxed.scope.cluster.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.relaxed.scope.cluster.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.expect.tx.relaxed.scope.cluster.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.expect.tx.relaxed.scope.cluster.space.cta", "l(pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.expect.tx.scope.cluster.space.cta", "(pi)", tl_emu_op_mbarrier_tx, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.complete.tx.scope.cluster.space.cta", "(pi)", tl_emu_op_mbarrier_tx, TL_EMU_MBARRIER_COMPLETE, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.expect.tx.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.expect.tx.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_DROP, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.relaxed.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.relaxed.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_COUNT | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.expect.tx.relaxed.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.arrive.drop.expect.tx.relaxed.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_arrive, TL_EMU_MBARRIER_TX | TL_EMU_MBARRIER_DROP | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.expect.tx.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_tx, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.complete.tx.scope.cluster.space.cluster", "(Pi)", tl_emu_op_mbarrier_tx, TL_EMU_MBARRIER_COMPLETE, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait.scope.cluster.space.cta", "b(pl)", tl_emu_op_mbarrier_wait, 0, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait.parity.scope.cluster.space.cta", "b(pi)", tl_emu_op_mbarrier_wait, 0 | TL_EMU_MBARRIER_PARITY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.scope.cluster.space.cta", "b(pl)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.tl.scope.cluster.space.cta", "b(pli)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta", "b(pi)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_PARITY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.parity.tl.scope.cluster.space.cta", "b(pii)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_PARITY, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait.relaxed.scope.cluster.space.cta", "b(pl)", tl_emu_op_mbarrier_wait, 0 | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.test.wait.parity.relaxed.scope.cluster.space.cta", "b(pi)", tl_emu_op_mbarrier_wait, 0 | TL_EMU_MBARRIER_PARITY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.relaxed.scope.cluster.space.cta", "b(pl)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.tl.relaxed.scope.cluster.space.cta", "b(pli)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.parity.relaxed.scope.cluster.space.cta", "b(pi)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_PARITY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.mbarrier.try.wait.parity.tl.relaxed.scope.cluster.space.cta", "b(pii)", tl_emu_op_mbarrier_wait, TL_EMU_MBARRIER_TRY | TL_EMU_MBARRIER_PARITY | TL_EMU_MBARRIER_RELAXED, .on_mbarrier = true},
    {"llvm.nvvm.fence.mbarrier_init.release.cluster", "()", tl_emu_op_fence_mbarrier_init, 0},
    {"llvm.nvvm.fence.proxy.async", "()", tl_emu_op_fence_proxy_async, TL_EMU_PROXY_ALL},
    {"llvm.nvvm.fence.proxy.async.global", "()", tl_emu_op_fence_proxy_async, TL_EMU_PROXY_GLOBAL},
    {"llvm.nvvm.fence.proxy.async.shared_cta", "()", tl_emu_op_fence_proxy_async, TL_EMU_PROXY_SHARED},
    {"llvm.nvvm.fence.proxy.async.shared_cluster", "()", tl_emu_op_fence_proxy_async, TL_EMU_PROXY_SHARED},

    // clusters
    {"llvm.nvvm.barrier.cluster.arrive", "()", tl_emu_op_cluster_arrive, 0},
    {"llvm.nvvm.barrier.cluster.arrive.aligned", "()", tl_emu_op_cluster_arrive, 0},
    {"llvm.nvvm.barrier.cluster.arrive.relaxed", "()", tl_emu_op_cluster_arrive, 1},
    {"llvm.nvvm.barrier.cluster.arrive.relaxed.aligned", "()", tl_emu_op_cluster_arrive, 1},
    {"llvm.nvvm.barrier.cluster.wait", "()", tl_emu_op_cluster_wait, 0},
    {"llvm.nvvm.barrier.cluster.wait.aligned", "()", tl_emu_op_cluster_wait, 0},
    {"llvm.nvvm.mapa.shared.cluster", "P(pi)", tl_emu_op_mapa, 0},
    {"llvm.nvvm.getctarank.shared.cluster", "i(p)", tl_emu_op_getctarank, 0},
    {"llvm.nvvm.read.ptx.sreg.cluster.ctarank", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_RANK},
    {"llvm.nvvm.read.ptx.sreg.clusterid.x", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_ID_X},
    {"llvm.nvvm.read.ptx.sreg.nclusterid.x", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_NID_X},
    {"llvm.nvvm.read.ptx.sreg.clusterid.y", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_ID_Y},
    {"llvm.nvvm.read.ptx.sreg.nclusterid.y", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_NID_Y},
    {"llvm.nvvm.read.ptx.sreg.clusterid.z", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_ID_Z},
    {"llvm.nvvm.read.ptx.sreg.nclusterid.z", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_NID_Z},
    {"llvm.nvvm.read.ptx.sreg.cluster.nctarank", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_SIZE},
    {"llvm.nvvm.read.ptx.sreg.cluster.ctaid.x", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_CTAID_X},
    {"llvm.nvvm.read.ptx.sreg.cluster.nctaid.x", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_NCTAID_X},
    {"llvm.nvvm.read.ptx.sreg.cluster.ctaid.y", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_CTAID_Y},
    {"llvm.nvvm.read.ptx.sreg.cluster.nctaid.y", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_NCTAID_Y},
    {"llvm.nvvm.read.ptx.sreg.cluster.ctaid.z", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_CTAID_Z},
    {"llvm.nvvm.read.ptx.sreg.cluster.nctaid.z", "i()", tl_emu_op_cluster_sreg, TL_EMU_CLUSTER_NCTAID_Z},

    // tensor copies
    TL_TMA_TILES("g2s", "PpG", "slBBI", tl_emu_op_tma_load, 0),
    TL_TMA_OFFSETS("g2s", "PpG", "slBBI", tl_emu_op_tma_load, 0),
    TL_TMA_TILES("g2s.cta", "ppG", "lB", tl_emu_op_tma_load, TL_EMU_TMA_CTA),
    TL_TMA_OFFSETS("g2s.cta", "ppG", "lB", tl_emu_op_tma_load, TL_EMU_TMA_CTA),
    TL_TMA_TILES("s2g", "pG", "lB", tl_emu_op_tma_store, 0),
    TL_TMA_COLUMNS("s2g", "pG", "lB", tl_emu_op_tma_store, 0),
    TL_TMA_REDUCTION("add", ADD),
    TL_TMA_REDUCTION("min", MIN),
    TL_TMA_REDUCTION("max", MAX),
    TL_TMA_REDUCTION("inc", INC),
    TL_TMA_REDUCTION("dec", DEC),
    TL_TMA_REDUCTION("and", AND),
    TL_TMA_REDUCTION("or", OR),
    TL_TMA_REDUCTION("xor", XOR),
    TL_TMA_TILES("prefetch", "G", "lB", tl_emu_op_tma_prefetch, 0),
    TL_TMA_OFFSETS("prefetch", "G", "lB", tl_emu_op_tma_prefetch, 0),
    {"llvm.nvvm.prefetch.tensormap.p0", "(G)", tl_emu_op_tensormap_use, 0},
    {"llvm.nvvm.fence.proxy.tensormap_generic.acquire.cta", "(GI)", tl_emu_op_tensormap_acquire, 0},
    {"llvm.nvvm.fence.proxy.tensormap_generic.release.cta", "()", tl_emu_op_nothing, 0},
    {"llvm.nvvm.fence.proxy.tensormap_generic.acquire.cluster", "(GI)", tl_emu_op_tensormap_acquire, 0},
    {"llvm.nvvm.fence.proxy.tensormap_generic.release.cluster", "()", tl_emu_op_nothing, 0},
    {"llvm.nvvm.fence.proxy.tensormap_generic.acquire.gpu", "(GI)", tl_emu_op_tensormap_acquire, 0},
    {"llvm.nvvm.fence.proxy.tensormap_generic.release.gpu", "()", tl_emu_op_nothing, 0},
    {"llvm.nvvm.fence.proxy.tensormap_generic.acquire.sys", "(GI)", tl_emu_op_tensormap_acquire, 0},
    {"llvm.nvvm.fence.proxy.tensormap_generic.release.sys", "()", tl_emu_op_nothing, 0},
    TL_TENSORMAP_REPLACE("global.address", "l", GLOBAL_ADDRESS),
    TL_TENSORMAP_REPLACE("rank", "i", RANK),
    TL_TENSORMAP_REPLACE("box.dim", "Ii", BOX_DIM),
    TL_TENSORMAP_REPLACE("global.dim", "Ii", GLOBAL_DIM),
    TL_TENSORMAP_REPLACE("global.stride", "Il", GLOBAL_STRIDE),
    TL_TENSORMAP_REPLACE("element.stride", "Ii", ELEMENT_STRIDE),
    TL_TENSORMAP_REPLACE("elemtype", "I", ELEMTYPE),
    TL_TENSORMAP_REPLACE("interleave.layout", "I", INTERLEAVE_LAYOUT),
    TL_TENSORMAP_REPLACE("swizzle.mode", "I", SWIZZLE_MODE),
    TL_TENSORMAP_REPLACE("fill.mode", "I", FILL_MODE),

    // what translated PTX calls
#include "emulator/ops/bindings_ptx.def"

    // bulk copies
    {"llvm.nvvm.cp.async.bulk.global.to.shared.cluster", "(PpgislBB)", tl_emu_op_bulk_load, 0},
    {"llvm.nvvm.cp.async.bulk.global.to.shared.cta", "(ppgilB)", tl_emu_op_bulk_load, TL_EMU_TMA_CTA},
    {"llvm.nvvm.cp.async.bulk.shared.cta.to.global", "(gpilB)", tl_emu_op_bulk_store, 0},
    {"llvm.nvvm.cp.async.bulk.shared.cta.to.cluster", "(Pppi)", tl_emu_op_bulk_to_cluster, 0},
    {"llvm.nvvm.cp.async.bulk.prefetch.L2", "(gilB)", tl_emu_op_bulk_prefetch, 0},
    {"llvm.nvvm.cp.async.bulk.commit.group", "()", tl_emu_op_bulk_commit, 0},
    {"llvm.nvvm.cp.async.bulk.wait.group", "(I)", tl_emu_op_bulk_wait, 0},
    {"llvm.nvvm.cp.async.bulk.wait.group.read", "(I)", tl_emu_op_bulk_wait, 1},
    TL_BULK_REDUCE("add.u32", ADD, U32),
    TL_BULK_REDUCE("add.u64", ADD, U64),
    TL_BULK_REDUCE("add.f32", ADD, F32),
    TL_BULK_REDUCE("add.f64", ADD, F64),
    TL_BULK_REDUCE("add.noftz.bf16", ADD, BF16),
    TL_BULK_REDUCE("add.noftz.f16", ADD, F16),
    TL_BULK_REDUCE("add.s32", ADD, S32),
    TL_BULK_REDUCE("min.u32", MIN, U32),
    TL_BULK_REDUCE("min.u64", MIN, U64),
    TL_BULK_REDUCE("min.bf16", MIN, BF16),
    TL_BULK_REDUCE("min.f16", MIN, F16),
    TL_BULK_REDUCE("min.s32", MIN, S32),
    TL_BULK_REDUCE("min.s64", MIN, S64),
    TL_BULK_REDUCE("max.u32", MAX, U32),
    TL_BULK_REDUCE("max.u64", MAX, U64),
    TL_BULK_REDUCE("max.bf16", MAX, BF16),
    TL_BULK_REDUCE("max.f16", MAX, F16),
    TL_BULK_REDUCE("max.s32", MAX, S32),
    TL_BULK_REDUCE("max.s64", MAX, S64),
    TL_BULK_REDUCE("inc.u32", INC, U32),
    TL_BULK_REDUCE("dec.u32", DEC, U32),
    TL_BULK_REDUCE("and.b32", AND, U32),
    TL_BULK_REDUCE("and.b64", AND, U64),
    TL_BULK_REDUCE("or.b32", OR, U32),
    TL_BULK_REDUCE("or.b64", OR, U64),
    TL_BULK_REDUCE("xor.b32", XOR, U32),
    TL_BULK_REDUCE("xor.b64", XOR, U64),
    TL_BULK_REDUCE_CLUSTER("add.u32", ADD, U32),
    TL_BULK_REDUCE_CLUSTER("add.u64", ADD, U64),
    TL_BULK_REDUCE_CLUSTER("add.s32", ADD, S32),
    TL_BULK_REDUCE_CLUSTER("min.u32", MIN, U32),
    TL_BULK_REDUCE_CLUSTER("min.s32", MIN, S32),
    TL_BULK_REDUCE_CLUSTER("max.u32", MAX, U32),
    TL_BULK_REDUCE_CLUSTER("max.s32", MAX, S32),
    TL_BULK_REDUCE_CLUSTER("inc.u32", INC, U32),
    TL_BULK_REDUCE_CLUSTER("dec.u32", DEC, U32),
    TL_BULK_REDUCE_CLUSTER("and.b32", AND, U32),
    TL_BULK_REDUCE_CLUSTER("or.b32", OR, U32),
    TL_BULK_REDUCE_CLUSTER("xor.b32", XOR, U32),
};
#undef TL_TENSORMAP_REPLACE
#undef TL_BULK_REDUCE_CLUSTER
#undef TL_BULK_REDUCE
#undef TL_TMA_REDUCTION
#undef TL_TMA_COLUMNS
#undef TL_TMA_OFFSETS
#undef TL_TMA_TILES
#undef TL_TMA
// clang-format on

const tl_emu_binding *tl_emu_bindings(size_t *out_count) {
  *out_count = sizeof bindings / sizeof bindings[0];
  return bindings;
}

static bool matches(const char *pattern, const char *name) {
  const char *star = strchr(pattern, '*');
  if (!star) return !strcmp(pattern, name);
  size_t before = (size_t)(star - pattern), after = strlen(star + 1), len = strlen(name);
  return len >= before + after && !memcmp(pattern, name, before) && !strcmp(star + 1, name + len - after);
}

const char *tl_emu_letter_type(char letter) {
  switch (letter) {
    case 'b':
    case 'B':
      return "i1";
    case 's':
      return "i16";
    case 'i':
    case 'I':
      return "i32";
    case 'l':
    case 'L':
      return "i64";
    case 'e':
      return "half";
    case 'y':
      return "bfloat";
    case 'f':
      return "float";
    case 'd':
      return "double";
    case 'E':
      return "<2 x half>";
    case 'Y':
      return "<2 x bfloat>";
    case 'g':
      return "ptr addrspace(1)";
    case 'p':
      return "ptr addrspace(3)";
    case 'P':
      return "ptr addrspace(7)";
    case 'G':
      return "ptr";
    default:
      return NULL;
  }
}

const tl_emu_binding *tl_emu_find_binding(const char *name) {
  for (size_t i = 0; i < sizeof bindings / sizeof bindings[0]; i++)
    if (matches(bindings[i].name, name)) return &bindings[i];
  return NULL;
}
