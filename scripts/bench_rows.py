#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times kernels that stream memory beside torch.compile and the device-to-device copy of as many bytes, in one process.

How it times: scripts/bench_peers.py. The work of a row is the bytes that the algorithm must move; the copy reads and writes
half of them each. Every kernel is checked against torch before it is timed.

Usage: scripts/bench_rows.py [--rounds=N] [--target=T] [--burst] [--no-compile] [--compile-only] [--ptx=DIR]... [row ...]
  --burst        bursts only, which stand for both figures
  --no-compile   without torch.compile
  --compile-only runs torch.compile of the rows, so that its cache knows them, and times nothing
  --ptx=DIR      also DIR/ROW.ptx, where it is there, as a contestant with the name of DIR
"""
import os
import sys

import torch
import torch.nn.functional as F

import bench_peers

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


def randn(*shape, dtype=BF16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


class Row:
    """spec and bindings; dynamic params and scalars; make() gives the inputs of a rotation; outputs(inputs) the tensors behind
    them; peer(*inputs) computes the first output (or a tuple of all of them), expected(*inputs) does where the peer's own
    output is another (random numbers); bytes to move."""

    def __init__(self, spec, bindings, make, outputs, peer, work, tolerance=1e-2, dynamic=None, order=None, expected=None):
        self.spec, self.bindings, self.make, self.outputs, self.peer = spec, bindings, make, outputs, peer
        self.work, self.tolerance, self.dynamic, self.expected = work, tolerance, dynamic or {}, expected or peer
        self.order = order or (lambda inputs, outs: [*inputs, *outs])


def transpose(size, dtype, name):
    return Row("transpose", {"M": size, "N": size, "dtype": name}, lambda: [randn(size, size, dtype=dtype)],
               lambda i: [torch.empty_like(i[0])], lambda x: x.T.contiguous(), 2 * size * size * dtype.itemsize)


def embedding(tokens=65536, width=4096, rows=32000):
    return Row("embedding", {"D": width, "V": rows},
               lambda: [torch.randint(0, rows, (tokens,), device="cuda"), randn(rows, width, dtype=F16)],
               lambda i: [torch.empty(tokens, width, device="cuda", dtype=F16)], lambda ids, table: F.embedding(ids, table),
               2 * tokens * width * 2, dynamic={"T": tokens})


def group_norm_silu(b=32, hw=4096, c=320, groups=32):
    def peer(x, w, bias):
        return F.silu(F.group_norm(x.transpose(1, 2), groups, w, bias, 1e-5)).transpose(1, 2)

    return Row("group_norm_silu", {"B": b, "HW": hw, "C": c, "groups": groups},
               lambda: [randn(b, hw, c, dtype=F16), randn(c, dtype=F16), randn(c, dtype=F16)],
               lambda i: [torch.empty_like(i[0])], peer, 2 * b * hw * c * 2)


def rms_norm(m, n, **bindings):
    def peer(x, w):
        wide = x.float()
        return (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)

    return Row("rms_norm", {"M": m, "N": n, **bindings}, lambda: [randn(m, n), randn(n)], lambda i: [torch.empty_like(i[0])],
               peer, 4 * m * n)


def cross_entropy(m=4096, v=32000):
    def peer(x, target):
        p = torch.softmax(x.float(), -1)
        loss = -torch.log(p.gather(1, target[:, None]))[:, 0]
        return loss, ((p - F.one_hot(target, v)) / m).to(x.dtype)

    return Row("cross_entropy", {"M": m, "V": v}, lambda: [randn(m, v), torch.randint(0, v, (m,), device="cuda")],
               lambda i: [torch.empty(m, device="cuda"), torch.empty_like(i[0])], peer, 2 * m * v * 2)


def dropout_layer_norm(m, n):
    def peer(x, residual, mask, w, bias):
        s = residual.float() + x.float() * mask / 0.9
        return s.to(x.dtype), F.layer_norm(s, (n,), w.float(), bias.float(), 1e-5).to(x.dtype)

    return Row("dropout_layer_norm", {"M": m, "N": n},
               lambda: [randn(m, n), randn(m, n), (torch.rand(m, n, device="cuda") < 0.9).to(torch.uint8), randn(n), randn(n)],
               lambda i: [torch.empty_like(i[0]), torch.empty_like(i[0])], peer, m * n * 9)


def adamw(n=1 << 26):
    lr, c1, c2 = 1e-3, 0.1, 0.05

    def peer(g, w, m, v):
        g = g.float()
        m = 0.9 * m + 0.1 * g
        v = 0.95 * v + 0.05 * g * g
        wide = w.float()
        return (wide - lr * (m / c1 / (torch.sqrt(v / c2) + 1e-8) + 0.1 * wide)).to(w.dtype), m, v

    # The moments of the spec are updated in place: a rotation starts from copies.
    return Row("adamw", {}, lambda: [randn(n), randn(n), randn(n, dtype=F32), torch.rand(n, device="cuda")],
               lambda i: [x.clone() for x in i[1:]], peer, 22 * n, dynamic={"N": n, "lr": lr, "correction1": c1, "correction2": c2},
               order=lambda inputs, outs: [inputs[0], *outs])


def depthwise_conv(b=32, size=56, c=256):
    def peer(x, k, bias):
        y = F.conv2d(x.permute(0, 3, 1, 2), k.permute(2, 0, 1)[:, None], bias, padding=1, groups=c)
        return F.silu(y).permute(0, 2, 3, 1)

    return Row("depthwise_conv", {"B": b, "H": size, "W": size, "C": c},
               lambda: [randn(b, size, size, c, dtype=F16), randn(3, 3, c, dtype=F16) * 0.3, randn(c, dtype=F16)],
               lambda i: [torch.empty_like(i[0])], peer, 2 * b * size * size * c * 2)


def philox(seed, counters):
    """The four words of each block of Philox4x32-10, as int64."""
    key, mask = [seed & 0xFFFFFFFF, seed >> 32], 0xFFFFFFFF
    zero = torch.zeros_like(counters)
    words = [counters & mask, counters >> 32, zero, zero]

    def product(a, by):  # lower and upper half of a product of 32 bits, which an int64 does not hold
        low, high = a * (by & 0xFFFF), a * (by >> 16)
        middle = high + (low >> 16)
        return (middle & 0xFFFF) << 16 | low & 0xFFFF, middle >> 16

    for _ in range(10):
        (low0, high0), (low1, high1) = product(words[0], 0xD2511F53), product(words[2], 0xCD9E8D57)
        words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return torch.stack(words, -1)


def dropout(n=1 << 26, keep=0.9, seed=1234567890123):
    def expected(x):
        bits = philox(seed, torch.arange(n // 4, device="cuda")).flatten()
        return torch.where(bits < int(keep * 2**32), x.float() / keep, 0).to(x.dtype)

    return Row("dropout", {}, lambda: [randn(n)], lambda i: [torch.empty_like(i[0])], lambda x: F.dropout(x, 1 - keep), 4 * n,
               dynamic={"N": n, "seed": seed}, expected=expected)


def rope(b=4, s=4096, h=32, d=128):
    def peer(x, cosine, sine):
        a, c = x.float().chunk(2, -1)
        cosine, sine = cosine[None, :, None], sine[None, :, None]
        return torch.cat((a * cosine - c * sine, c * cosine + a * sine), -1).to(x.dtype)

    return Row("rope", {"B": b, "S": s, "H": h, "D": d}, lambda: [randn(b, s, h, d), randn(s, d // 2, dtype=F32), randn(s, d // 2, dtype=F32)],
               lambda i: [torch.empty_like(i[0])], peer, 4 * b * s * h * d + 4 * s * d)


def gated_silu(m=8192, n=14336):
    def peer(x):
        gate, up = x.float().chunk(2, -1)
        return (F.silu(gate) * up).to(x.dtype)

    return Row("gated_silu", {"M": m, "N": n}, lambda: [randn(m, 2 * n)], lambda i: [torch.empty(m, n, device="cuda", dtype=BF16)], peer,
               6 * m * n)


def layer_norm(m, n, **bindings):
    def peer(x, w, bias):
        wide = x.float()
        mean = wide.mean(-1, keepdim=True)
        rstd = torch.rsqrt(((wide - mean) ** 2).mean(-1, keepdim=True) + 1e-5)
        return ((wide - mean) * rstd * w.float() + bias.float()).to(x.dtype), mean[:, 0], rstd[:, 0]

    return Row("layer_norm", {"M": m, "N": n, **bindings}, lambda: [randn(m, n) + 1, randn(n), randn(n)],
               lambda i: [torch.empty_like(i[0]), torch.empty(m, device="cuda"), torch.empty(m, device="cuda")], peer, 4 * m * n)


def layer_norm_backward(m=16384, n=4096, parts=132):
    def peer(x, w, mean, rstd, dy):
        hat = (x.float() - mean[:, None]) * rstd[:, None]
        dy = dy.float()
        g = dy * w.float()
        dx = (g - g.mean(-1, keepdim=True) - hat * (g * hat).mean(-1, keepdim=True)) * rstd[:, None]
        return dx.to(x.dtype), (dy * hat).sum(0).to(x.dtype), dy.sum(0).to(x.dtype)

    return Row("layer_norm_backward", {"kernel": "layer_norm_backward", "M": m, "N": n, "parts": parts},
               lambda: [randn(m, n), randn(n), randn(m, dtype=F32) * 0.01, torch.rand(m, device="cuda") + 0.5, randn(m, n)],
               lambda i: [torch.empty_like(i[0]), torch.empty_like(i[1]), torch.empty_like(i[1])], peer, 6 * m * n)


def quantize(spec, m=16384, n=4096, rows=1, width=None):
    """8-bit floats with a scale for each tile of rows x width."""
    width = width or n

    def peer(x):
        tiles = x.float().view(m // rows, rows, n // width, width)
        scale = tiles.abs().amax((1, 3)).clamp(min=1e-12) / 448
        return (tiles / scale[:, None, :, None]).view(m, n).to(torch.float8_e4m3fn), scale

    shape = (m,) if spec == "quantize_token" else (m // rows, n // width)
    return Row(spec, {"M": m, "N": n}, lambda: [randn(m, n)],
               lambda i: [torch.empty(m, n, device="cuda", dtype=torch.float8_e4m3fn), torch.empty(shape, device="cuda")],
               lambda x: tuple(t.view(s) for t, s in zip(peer(x), ((m, n), shape))), 3 * m * n)


def permute(b=4, s=4096, h=32, d=128):
    return Row("permute", {"B": b, "S": s, "H": h, "D": d}, lambda: [randn(b, s, h, d)],
               lambda i: [torch.empty(b, h, s, d, device="cuda", dtype=BF16)], lambda x: x.permute(0, 2, 1, 3).contiguous(),
               4 * b * s * h * d)


def reduce_axis(axis, a=64, b=1024, c=2048):
    outer, inner = (1, b * c) if axis == 0 else (a, c) if axis == 1 else (a * b, 1)
    return Row("reduce_axis", {"A": a, "B": b, "C": c, "axis": axis}, lambda: [randn(a, b, c)],
               lambda i: [torch.empty(outer, inner, device="cuda")], lambda x: x.float().sum(axis).view(outer, inner), 2 * a * b * c,
               tolerance=1e-4)


def argmax(m=4096, n=32000):
    # Neither value of a row is near another: no two peers differ in which of two equals they take.
    def make():
        return [torch.rand(m, n, device="cuda").argsort(-1).float().add_(-n // 2).to(F32)]

    return Row("argmax", {"M": m, "N": n, "dtype": "f32"}, make,
               lambda i: [torch.empty(m, device="cuda"), torch.empty(m, device="cuda", dtype=torch.int64)],
               lambda x: tuple(x.max(-1)), 4 * m * n, tolerance=1e-7)


def cumsum(n=1 << 27):
    return Row("cumsum", {"kernel": "cumsum", "N": n}, lambda: [randn(n, dtype=F32)], lambda i: [torch.empty_like(i[0])], lambda x: x.cumsum(0), 8 * n,
               expected=lambda x: x.double().cumsum(0).float())


def histogram(n=1 << 26, bins=256):
    return Row("histogram", {"bins": bins}, lambda: [torch.randint(0, bins, (n,), device="cuda", dtype=torch.int32)],
               lambda i: [torch.zeros(bins, device="cuda", dtype=torch.int32)], lambda x: torch.histc(x, bins, 0, bins), 4 * n,
               dynamic={"N": n}, tolerance=1e-7)


def embedding_backward(tokens=32768, width=4096, rows=32000):
    def peer(ids, dy):
        return torch.zeros(rows, width, device="cuda").index_add_(0, ids, dy.float())

    return Row("embedding_backward", {"D": width, "V": rows},
               lambda: [torch.randint(0, rows, (tokens,), device="cuda"), randn(tokens, width)],
               lambda i: [torch.zeros(rows, width, device="cuda")], peer, tokens * width * 10, dynamic={"T": tokens})


def stencil(m=8192, n=8192):
    def peer(x):
        p = F.pad(x, (1, 1, 1, 1))
        return x + 0.2 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x)

    return Row("stencil", {"M": m, "N": n}, lambda: [randn(m, n, dtype=F32)], lambda i: [torch.empty_like(i[0])], peer, 8 * m * n)


def spmv(m=1 << 20, per_row=32):
    def make():
        nnz = m * per_row  # in rows that begin anywhere
        start = torch.randint(0, nnz + 1, (m + 1,), device="cuda", dtype=torch.int32).sort()[0]
        start[0], start[-1] = 0, nnz
        return [start, torch.randint(0, m, (nnz,), device="cuda", dtype=torch.int32), randn(nnz, dtype=F32), randn(m, dtype=F32)]

    def peer(start, column, value, x):
        return torch.sparse_csr_tensor(start, column, value, (m, m)) @ x

    return Row("spmv", {}, make, lambda i: [torch.empty(m, device="cuda")], peer, m * per_row * 8 + 12 * m,
               dynamic={"M": m, "N": m, "nnz": m * per_row})


def top_k(m=65536, n=1024, k=8):
    def make():
        return [torch.rand(m, n, device="cuda").argsort(-1).float()]

    return Row("top_k", {"M": m, "N": n, "K": k, "dtype": "f32"}, make,
               lambda i: [torch.empty(m, k, device="cuda"), torch.empty(m, k, device="cuda", dtype=torch.int32)],
               lambda x: tuple(x.topk(k)), 4 * m * n, tolerance=1e-7)


def sort_rows(m=32768, n=1024):
    return Row("sort_rows", {"M": m, "N": n}, lambda: [randn(m, n, dtype=F32)], lambda i: [torch.empty_like(i[0])],
               lambda x: x.sort(-1)[0], 8 * m * n, tolerance=1e-7)


ROWS = {
    "transpose": lambda: transpose(8192, F16, "f16"),
    "transpose_f32": lambda: transpose(8192, F32, "f32"),
    "embedding": embedding,
    "group_norm_silu": group_norm_silu,
    "rms_norm": lambda: rms_norm(8192, 4096),
    "rms_norm_768": lambda: rms_norm(65536, 768),
    "cross_entropy": cross_entropy,
    "dropout_layer_norm": lambda: dropout_layer_norm(8192, 4096),
    "dropout_layer_norm_1024": lambda: dropout_layer_norm(16384, 1024),
    "adamw": adamw,
    "depthwise_conv": depthwise_conv,
    "dropout": dropout,
    "dropout_1MB": lambda: dropout(1 << 18),
    "rope": rope,
    "rope_1MB": lambda: rope(1, 64),
    "gated_silu": gated_silu,
    "gated_silu_1MB": lambda: gated_silu(12),
    "layer_norm": lambda: layer_norm(16384, 4096),
    "layer_norm_1024": lambda: layer_norm(65536, 1024),
    "layer_norm_1MB": lambda: layer_norm(128, 4096),
    "layer_norm_backward": layer_norm_backward,
    "layer_norm_backward_1MB": lambda: layer_norm_backward(80, parts=40),
    "quantize_token": lambda: quantize("quantize_token"),
    "quantize_token_1MB": lambda: quantize("quantize_token", 128),
    "quantize_group": lambda: quantize("quantize_group", width=128),
    "quantize_group_1MB": lambda: quantize("quantize_group", 128, width=128),
    "quantize_block": lambda: quantize("quantize_block", rows=128, width=128),
    "quantize_block_1MB": lambda: quantize("quantize_block", 128, rows=128, width=128),
    "permute": permute,
    "permute_1MB": lambda: permute(1, 64),
    "reduce_0": lambda: reduce_axis(0),
    "reduce_1": lambda: reduce_axis(1),
    "reduce_2": lambda: reduce_axis(2),
    "reduce_1MB": lambda: reduce_axis(1, 4, 128, 1024),
    "argmax": argmax,
    "argmax_1MB": lambda: argmax(16, 16384),
    "cumsum": cumsum,
    "cumsum_1MB": lambda: cumsum(1 << 17),
    "histogram": histogram,
    "histogram_1MB": lambda: histogram(1 << 18),
    "embedding_backward": embedding_backward,
    "embedding_backward_1MB": lambda: embedding_backward(64, 2048, 1000),
    "stencil": stencil,
    "stencil_1MB": lambda: stencil(512, 256),
    "spmv": spmv,
    "spmv_1MB": lambda: spmv(4096),
    "top_k": top_k,
    "top_k_1MB": lambda: top_k(512),
    "sort_rows": sort_rows,
    "sort_rows_1MB": lambda: sort_rows(128),
}


def compile_only(name):
    torch.manual_seed(1)
    row = ROWS[name]()
    torch.compile(row.peer)(*row.make())


def run(name, compiles, directories):
    torch.manual_seed(1)
    row = ROWS[name]()
    sets = [row.make() for _ in range(2)]
    outs = [row.outputs(inputs) for inputs in sets]
    want = row.expected(*sets[0])
    want = want if isinstance(want, tuple) else (want,)
    half = torch.empty(int(row.work // 2), device="cuda", dtype=torch.uint8), torch.empty(int(row.work // 2), device="cuda", dtype=torch.uint8)
    words = [x[: x.numel() // 4 * 4].view(torch.int32) for x in half]
    contestants = {"memcpy": [lambda: half[1].copy_(half[0])], "copy kernel": [lambda: torch.neg(words[0], out=words[1])]}
    kernels = {"tl-llc": (row.spec, row.bindings)}
    for directory in directories:
        path = os.path.abspath(os.path.join(directory, name + ".ptx"))
        if os.path.exists(path):
            kernels[os.path.basename(os.path.normpath(directory))] = (path, {})
    for label, (spec, bindings) in kernels.items():
        try:
            kernel = bench_peers.Kernel(spec, bench_peers.TARGET, **bindings)
            fresh = row.outputs(sets[0])
            kernel.launch(row.order(sets[0], fresh), row.dynamic)
            for got, expected in zip(fresh, want):
                bench_peers.close(got, expected, row.tolerance)
        except Exception as error:  # the other contestants go on
            print(f"  {name} {label}: {error}", flush=True)
            continue
        contestants[label] = [lambda k=kernel, i=i, o=o: k.launch(row.order(i, o), row.dynamic) for i, o in zip(sets, outs)]
    if compiles:
        compiled = torch.compile(row.peer)
        try:
            compiled(*sets[0])
            contestants["torch.compile"] = [lambda i=i: compiled(*i) for i in sets]
        except Exception as error:  # what it cannot compile is timed as it is
            print(f"  {name} torch.compile: {str(error).splitlines()[0]}", flush=True)
            contestants["torch"] = [lambda i=i: row.peer(*i) for i in sets]
    bench_peers.report(f"{name} {bench_peers.TARGET} {row.bindings}", "MB/s", row.work, bench_peers.race(contestants), "copy")


if __name__ == "__main__":
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; figures are burst / sustained")
    compiles, only, directories, names = True, False, [], []
    for argument in sys.argv[1:]:
        key, _, value = argument.partition("=")
        if key == "--rounds":
            bench_peers.ROUNDS = int(value)
        elif key == "--target":
            bench_peers.TARGET = value
        elif key == "--ptx":
            directories.append(value)
        elif argument == "--no-compile":
            compiles = False
        elif argument == "--compile-only":
            only = True
        elif argument == "--burst":
            bench_peers.SUSTAINED = False
        else:
            names.append(argument)
    for chosen in names or ROWS:
        try:
            if only:
                compile_only(chosen)
            else:
                run(chosen, compiles, directories)
        except Exception as error:  # the other rows go on
            print(f"  {chosen}: {error}", flush=True)
