// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which C function stands for which device op. Every row of llvm_backend/device_ops.def must have one here, with the
// same signature (a unit test compares); a few ops that no row names yet are bound as well.
#include <string.h>

#include "emulator/ops.h"
#include "support/dtype.h"

// clang-format off
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

    // barriers
    {"llvm.nvvm.barrier.cta.sync.aligned.all", "(i)", tl_emu_op_barrier, 0},
    {"llvm.nvvm.barrier.cta.sync.aligned.count", "(ii)", tl_emu_op_barrier, TL_EMU_BARRIER_COUNT},
    {"llvm.nvvm.barrier.cta.arrive.aligned.count", "(ii)", tl_emu_op_barrier, TL_EMU_BARRIER_COUNT | TL_EMU_BARRIER_ARRIVE},
    {"llvm.nvvm.barrier.cta.sync.all", "(i)", tl_emu_op_barrier, TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.sync.count", "(ii)", tl_emu_op_barrier, TL_EMU_BARRIER_COUNT | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.barrier.cta.arrive.count", "(ii)", tl_emu_op_barrier, TL_EMU_BARRIER_COUNT | TL_EMU_BARRIER_ARRIVE | TL_EMU_BARRIER_ALONE},
    {"llvm.nvvm.bar.warp.sync", "(i)", tl_emu_op_warp_sync, 0},

    // control
    {"llvm.trap", "()", tl_emu_op_trap, 0},
    {"llvm.debugtrap", "()", tl_emu_op_trap, 0},
    {"llvm.nvvm.nanosleep", "(i)", tl_emu_op_nanosleep, 0},
    {"llvm.nvvm.membar.cta", "()", tl_emu_op_nothing, 0},
    {"llvm.nvvm.membar.gl", "()", tl_emu_op_nothing, 0},
    {"llvm.nvvm.membar.sys", "()", tl_emu_op_nothing, 0},
    {"llvm.nvvm.fence.sc.cluster", "()", tl_emu_op_nothing, 0},

    // the device's runtime
    {"vprintf", "i(GG)", tl_emu_op_vprintf, 0},
    {"__assertfail", "(GGiGl)", tl_emu_op_assertfail, 0},

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
    {"llvm.nvvm.match.any.sync.i32", "i(ii)", tl_emu_op_match_any, 0},

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
    {"llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "ffff(EEEEEEffff)", tl_emu_op_mma, TL_EMU_MMA_F16},
    {"llvm.nvvm.mma.m16n8k8.row.col.f32.f32", "ffff(EEEffff)", tl_emu_op_mma, TL_EMU_MMA_F16 | TL_EMU_MMA_HALF},
    {"llvm.nvvm.mma.m16n8k16.row.col.f16.f16", "EE(EEEEEEEE)", tl_emu_op_mma, TL_EMU_MMA_F16_F16},
    {"llvm.nvvm.mma.m16n8k8.row.col.f16.f16", "EE(EEEEE)", tl_emu_op_mma, TL_EMU_MMA_F16_F16 | TL_EMU_MMA_HALF},
    {"llvm.nvvm.mma.m16n8k16.row.col.bf16", "ffff(iiiiiiffff)", tl_emu_op_mma, TL_EMU_MMA_BF16},
    {"llvm.nvvm.mma.m16n8k8.row.col.bf16", "ffff(iiiffff)", tl_emu_op_mma, TL_EMU_MMA_BF16 | TL_EMU_MMA_HALF},
    {"llvm.nvvm.mma.m16n8k8.row.col.tf32", "ffff(iiiiiiffff)", tl_emu_op_mma, TL_EMU_MMA_TF32},
    {"llvm.nvvm.mma.m16n8k4.row.col.tf32", "ffff(iiiffff)", tl_emu_op_mma, TL_EMU_MMA_TF32 | TL_EMU_MMA_HALF},
    {"llvm.nvvm.mma.m16n8k32.row.col.s8", "iiii(iiiiiiiiii)", tl_emu_op_mma, TL_EMU_MMA_S8},
    {"llvm.nvvm.mma.m16n8k16.row.col.s8", "iiii(iiiiiii)", tl_emu_op_mma, TL_EMU_MMA_S8 | TL_EMU_MMA_HALF},
    {"llvm.nvvm.mma.m16n8k32.row.col.s8.u8", "iiii(iiiiiiiiii)", tl_emu_op_mma, TL_EMU_MMA_S8_U8},
    {"llvm.nvvm.mma.m16n8k16.row.col.s8.u8", "iiii(iiiiiii)", tl_emu_op_mma, TL_EMU_MMA_S8_U8 | TL_EMU_MMA_HALF},
    {"llvm.nvvm.mma.m16n8k32.row.col.u8.s8", "iiii(iiiiiiiiii)", tl_emu_op_mma, TL_EMU_MMA_U8_S8},
    {"llvm.nvvm.mma.m16n8k16.row.col.u8.s8", "iiii(iiiiiii)", tl_emu_op_mma, TL_EMU_MMA_U8_S8 | TL_EMU_MMA_HALF},
    {"llvm.nvvm.mma.m16n8k32.row.col.u8", "iiii(iiiiiiiiii)", tl_emu_op_mma, TL_EMU_MMA_U8},
    {"llvm.nvvm.mma.m16n8k16.row.col.u8", "iiii(iiiiiii)", tl_emu_op_mma, TL_EMU_MMA_U8 | TL_EMU_MMA_HALF},
    {"llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32", "ffff(iiiiiiffff)", tl_emu_op_mma, TL_EMU_MMA_E4M3},
    {"llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32", "ffff(iiiiiiffff)", tl_emu_op_mma, TL_EMU_MMA_E4M3_E5M2},
    {"llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e4m3.f32", "ffff(iiiiiiffff)", tl_emu_op_mma, TL_EMU_MMA_E5M2_E4M3},
    {"llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e5m2.f32", "ffff(iiiiiiffff)", tl_emu_op_mma, TL_EMU_MMA_E5M2},
    {"llvm.nvvm.mma.m8n8k4.row.col.f64", "dd(dddd)", tl_emu_op_mma_f64, 0},

    // conversions
    {"llvm.nvvm.ff2f16x2.rn", "E(ff)", tl_emu_op_cvt_pair, 0},
    {"llvm.nvvm.ff2bf16x2.rn", "Y(ff)", tl_emu_op_cvt_pair, TL_EMU_CVT_BF16},
    {"llvm.nvvm.ff2f16x2.rn.relu", "E(ff)", tl_emu_op_cvt_pair, TL_EMU_CVT_RELU},
    {"llvm.nvvm.ff2bf16x2.rn.relu", "Y(ff)", tl_emu_op_cvt_pair, TL_EMU_CVT_BF16 | TL_EMU_CVT_RELU},

    {"llvm.nvvm.ff.to.e4m3x2.rn", "s(ff)", tl_emu_op_cvt_to_f8, TL_DTYPE_F8E4M3},
    {"llvm.nvvm.ff.to.e5m2x2.rn", "s(ff)", tl_emu_op_cvt_to_f8, TL_DTYPE_F8E5M2},
    {"llvm.nvvm.e4m3x2.to.f16x2.rn", "E(s)", tl_emu_op_cvt_from_f8, TL_DTYPE_F8E4M3},
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
    {"tl.red.global.add.pred.f16x2", "(gib)", tl_emu_op_red_pred, TL_EMU_RED_F16X2},
    {"tl.red.global.add.pred.bf16x2", "(gib)", tl_emu_op_red_pred, TL_EMU_RED_BF16X2},
};
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

const tl_emu_binding *tl_emu_find_binding(const char *name) {
  for (size_t i = 0; i < sizeof bindings / sizeof bindings[0]; i++)
    if (matches(bindings[i].name, name)) return &bindings[i];
  return NULL;
}
