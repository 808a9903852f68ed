# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Peers of kernels/linear_attention.yaml: causal linear attention in chunks, with the final state.

O_t = (sum over u <= t of (q_t . k_u) v_u) * D^-0.5 over tensors [B, S, H, D], final = sum over u of k_u v_u^T in float32.
`torch_chunked` is for torch.compile. The two Triton forms follow flash-linear-attention: `Chunk` keeps the state before every
chunk in memory, so that all chunks of O are computed in parallel (chunk_linear_attn); `Fused` walks the chunks with the state
in registers (fused_chunk_linear_attn), as the spec does. S must be a multiple of the chunk, D and D_v of their tiles.
"""
import torch
import triton
import triton.language as tl

CHUNK = 64
# (tile of D, tile of D_v, warps, stages)
STATE_CONFIGS = [(64, 64, 4, 2), (64, 64, 4, 3), (128, 64, 4, 3), (64, 32, 2, 3), (32, 32, 1, 4), (32, 64, 2, 4), (128, 32, 4, 3)]
OUTPUT_CONFIGS = [(64, 64, 4, 2), (128, 64, 4, 2), (128, 128, 4, 2), (128, 128, 8, 2), (64, 128, 4, 3), (64, 128, 8, 3)]
FUSED_CONFIGS = [(128, 32, 4, 1), (128, 32, 4, 2), (128, 64, 4, 1), (128, 64, 4, 2), (128, 64, 8, 2), (128, 16, 4, 2)]


def torch_chunked(q, k, v):
    b, s, h, d = q.shape
    q, k, v = (x.transpose(1, 2).reshape(b, h, s // CHUNK, CHUNK, -1) for x in (q, k, v))
    states = (k.transpose(-1, -2) @ v).float().cumsum(2)
    before = torch.nn.functional.pad(states[:, :, :-1], (0, 0, 0, 0, 1, 0)).to(q.dtype)
    scores = (q @ k.transpose(-1, -2)).tril()
    o = ((scores @ v + q @ before) * d**-0.5).reshape(b, h, s, -1).transpose(1, 2)
    return o.contiguous(), states[:, :, -1].contiguous()


@triton.jit
def tile(base, rows, columns, H: tl.constexpr, D: tl.constexpr):
    return base + rows[:, None] * (H * D) + columns[None, :]


@triton.jit
def state_kernel(K, V, states, final, S, H: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
                 C: tl.constexpr):
    ik, iv, ibh = tl.program_id(0) * BK, tl.program_id(1) * BV, tl.program_id(2)
    k_base = K + (ibh // H).to(tl.int64) * S * H * D + ibh % H * D
    v_base = V + (ibh // H).to(tl.int64) * S * H * DV + ibh % H * DV
    ks, vs, rows = ik + tl.arange(0, BK), iv + tl.arange(0, BV), tl.arange(0, C)
    place = ks[:, None] * DV + vs[None, :]
    state = tl.zeros((BK, BV), tl.float32)
    for c in range(0, S // C):
        tl.store(states + (ibh.to(tl.int64) * (S // C) + c) * D * DV + place, state.to(states.dtype.element_ty))
        k = tl.load(tile(k_base, c * C + rows, ks, H, D))
        v = tl.load(tile(v_base, c * C + rows, vs, H, DV))
        state = tl.dot(tl.trans(k), v, state)
    tl.store(final + ibh * D * DV + place, state)


@triton.jit
def output_kernel(Q, K, V, states, O, S, scale, H: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, BK: tl.constexpr,
                  BV: tl.constexpr, C: tl.constexpr):
    iv, c, ibh = tl.program_id(0) * BV, tl.program_id(1), tl.program_id(2)
    qk_at = (ibh // H).to(tl.int64) * S * H * D + ibh % H * D
    v_at = (ibh // H).to(tl.int64) * S * H * DV + ibh % H * DV
    vs, rows = iv + tl.arange(0, BV), c * C + tl.arange(0, C)
    state_at = states + (ibh.to(tl.int64) * (S // C) + c) * D * DV
    o = tl.zeros((C, BV), tl.float32)
    scores = tl.zeros((C, C), tl.float32)
    for ik in range(0, D, BK):
        ks = ik + tl.arange(0, BK)
        q = tl.load(tile(Q + qk_at, rows, ks, H, D))
        k = tl.load(tile(K + qk_at, rows, ks, H, D))
        state = tl.load(state_at + ks[:, None] * DV + vs[None, :])
        o = tl.dot(q, state, o)
        scores = tl.dot(q, tl.trans(k), scores)
    at = tl.arange(0, C)
    scores = tl.where(at[:, None] >= at[None, :], scores, 0.0)
    v = tl.load(tile(V + v_at, rows, vs, H, DV))
    o = tl.dot(scores.to(v.dtype), v, o) * scale
    tl.store(tile(O + v_at, rows, vs, H, DV), o.to(O.dtype.element_ty))


@triton.jit
def fused_kernel(Q, K, V, O, final, S, scale, H: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):
    iv, ibh = tl.program_id(0) * BV, tl.program_id(1)
    qk_at = (ibh // H).to(tl.int64) * S * H * D + ibh % H * D
    v_at = (ibh // H).to(tl.int64) * S * H * DV + ibh % H * DV
    ks, vs, at = tl.arange(0, D), iv + tl.arange(0, BV), tl.arange(0, C)
    state = tl.zeros((D, BV), tl.float32)
    for c in range(0, S // C):
        rows = c * C + at
        q = tl.load(tile(Q + qk_at, rows, ks, H, D))
        k = tl.load(tile(K + qk_at, rows, ks, H, D))
        v = tl.load(tile(V + v_at, rows, vs, H, DV))
        scores = tl.where(at[:, None] >= at[None, :], tl.dot(q, tl.trans(k)), 0.0)
        o = tl.dot(scores.to(v.dtype), v)
        o = tl.dot(q, state.to(q.dtype), o) * scale
        state = tl.dot(tl.trans(k), v, state)
        tl.store(tile(O + v_at, rows, vs, H, DV), o.to(O.dtype.element_ty))
    tl.store(final + ibh * D * DV + ks[:, None] * DV + vs[None, :], state)


def milliseconds(function):
    return triton.testing.do_bench(function, warmup=5, rep=20)


def fastest(launch, configs):
    """The fastest of the configurations that compile and fit; launch(config) runs one."""
    times = {}
    for config in configs:
        try:
            times[config] = milliseconds(lambda: launch(config))
        except Exception as error:  # too much shared memory: another configuration serves
            if "out of resource" not in str(error):
                raise
    return min(times, key=times.get)


class Chunk:
    """Two launches: the states before all chunks, then all chunks of O in parallel."""

    def __init__(self, q, v):
        b, s, h, d = q.shape
        self.states = torch.empty(b * h, s // CHUNK, d, v.shape[-1], device=q.device, dtype=q.dtype)
        self.configs = None

    def __call__(self, q, k, v, o, final):
        b, s, h, d = q.shape
        dv = v.shape[-1]

        def state(config):
            bk, bv, warps, stages = config
            state_kernel[d // bk, dv // bv, b * h](k, v, self.states, final, s, h, d, dv, bk, bv, CHUNK, num_warps=warps, num_stages=stages)

        def output(config):
            bk, bv, warps, stages = config
            output_kernel[dv // bv, s // CHUNK, b * h](q, k, v, self.states, o, s, d**-0.5, h, d, dv, bk, bv, CHUNK, num_warps=warps,
                                                       num_stages=stages)

        if not self.configs:
            self.configs = fastest(state, STATE_CONFIGS), fastest(output, OUTPUT_CONFIGS)
        state(self.configs[0])
        output(self.configs[1])


class Fused:
    """One launch; the state stays in registers from chunk to chunk."""

    def __init__(self):
        self.config = None

    def __call__(self, q, k, v, o, final):
        b, s, h, d = q.shape
        dv = v.shape[-1]

        def launch(config):
            _, bv, warps, stages = config
            fused_kernel[dv // bv, b * h](q, k, v, o, final, s, d**-0.5, h, d, dv, bv, CHUNK, num_warps=warps, num_stages=stages)

        self.config = self.config or fastest(launch, FUSED_CONFIGS)
        launch(self.config)
