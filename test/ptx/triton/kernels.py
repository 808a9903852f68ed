# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Four kernels in Triton. See record.py.
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (start + k)[None, :], mask=(m[:, None] < M) & ((start + k)[None, :] < K), other=0.0)
        y = tl.load(b + (start + k)[:, None] * N + n[None, :], mask=((start + k)[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def softmax(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, mask=i < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * stride + i, v / tl.sum(v, axis=0), mask=i < n)


@triton.jit
def layer_norm(x, w, b, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    keep = i < n
    v = tl.load(x + row * n + i, mask=keep, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(keep, v - mean, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
    out = d * r * tl.load(w + i, mask=keep).to(tl.float32) + tl.load(b + i, mask=keep).to(tl.float32)
    tl.store(y + row * n + i, out.to(tl.float16), mask=keep)


@triton.jit
def attention(q, k, v, o, scale, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    base = tl.program_id(1) * S * D
    queries = tl.load(q + base + m[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, S, BN):
        n = start + tl.arange(0, BN)
        keys = tl.load(k + base + n[None, :] * D + d[:, None])
        s = tl.dot(queries, keys) * scale
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        fix = tl.exp2(top - new)
        values = tl.load(v + base + n[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), values, acc * fix[:, None])
        total = total * fix + tl.sum(p, axis=1)
        top = new
    tl.store(o + base + m[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))
