#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times kernels of the library beside torch (cuBLAS) and the device-to-device copy, in one process.

Needs a GPU, torch and the tools (TL_BIN, default build/release/bin). Every contestant of a row is captured in a CUDA graph
of n launches that rotates over input sets, on random data; the order is shuffled every round. burst: 25 ms idle, then one
replay of about 5 ms, median of 9 rounds. sustained: 60 ms discarded, then 100 ms timed, median of 3 rounds.
Results are checked against torch in float32 before anything is timed.

The copy of the bandwidth rows is the faster of cudaMemcpyAsync from device to device (as torch.Tensor.copy_ calls it on a
stream; in a graph large copies go to a slower engine) and an elementwise kernel of torch, both timed in the same rounds.

Usage: scripts/bench_peers.py [--rounds=N] [--target=sm_80] [row ...]     (default: all rows, 9 rounds, sm_90a)
"""
import functools
import os
import random
import statistics
import sys
import time

import torch

import peers_launch

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("TL_BIN", os.path.join(ROOT, "build/release/bin"))
ROUNDS = 9
SUSTAINED = True  # False: bursts only
TARGET = "sm_90a"


class Kernel(peers_launch.Program):
    """A kernel of the library, or of a .ptx file, that takes tensors of torch, on torch's stream."""

    def __init__(self, spec, target, **bindings):
        torch.cuda.current_stream()  # makes torch's context current
        torch.zeros(1, device="cuda")
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        path = spec if spec.endswith(".ptx") else os.path.join(ROOT, "kernels", spec + ".yaml")
        super().__init__(os.path.join(BIN, "tl-llc"), path, target, sms, **bindings)

    def launch(self, args, dynamic=None):
        """args: tensors in the spec's order; dynamic: name → value."""
        super().launch([tensor.data_ptr() for tensor in args], torch.cuda.current_stream().cuda_stream, dynamic)


def capture(functions, repeats):
    """A graph that runs every function of the rotation in turn, `repeats` launches in all."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for function in functions:
            function()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for i in range(repeats):
            functions[i % len(functions)]()
    return graph


class Eager:
    """Launches without a graph, with the interface of one."""

    def __init__(self, functions, repeats):
        self.functions, self.repeats = functions, repeats

    def replay(self):
        for i in range(self.repeats):
            self.functions[i % len(self.functions)]()


def timed(graph):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def race(contestants):
    """contestants: name → list of functions. Returns name → (burst ms, sustained ms, spread) for one launch; the spread is
    that of the middle half of the bursts."""
    graphs, repeats = {}, {}
    for name, functions in contestants.items():
        make = Eager if name.startswith("memcpy") else capture
        once = min(timed(make(functions, len(functions))) for _ in range(3)) / len(functions)
        repeats[name] = max(len(functions), int(5.0 / max(once, 1e-3)))
        graphs[name] = make(functions, repeats[name])
    burst = {name: [] for name in contestants}
    sustained = {name: [] for name in contestants}
    order = list(contestants)
    for _ in range(ROUNDS):
        random.shuffle(order)
        for name in order:
            torch.cuda.synchronize()
            time.sleep(0.025)
            burst[name].append(timed(graphs[name]) / repeats[name])
    for _ in range(max(3, ROUNDS // 3) if SUSTAINED else 0):
        random.shuffle(order)
        for name in order:
            spent = 0.0
            while spent < 60:
                spent += timed(graphs[name])
            spent, launches = 0.0, 0
            while spent < 100:
                spent += timed(graphs[name])
                launches += repeats[name]
            sustained[name].append(spent / launches)
    out = {}
    for name in contestants:
        low, median, high = statistics.quantiles(burst[name], n=4)
        out[name] = (median, statistics.median(sustained[name]) if SUSTAINED else median, (high - low) / median)
    return out


def report(title, unit, work, results, peer):
    print(f"\n{title}")
    if peer == "copy":
        faster = min(("memcpy", "copy kernel"), key=lambda name: results[name][0])
        results = {"copy": results[faster], **results}
    for name, (burst, sustained, spread) in results.items():
        ratio = f"{results[peer][0] / burst:.3f} / {results[peer][1] / sustained:.3f}"
        print(f"  {name:34s} {work / burst / 1e6:9.1f} / {work / sustained / 1e6:9.1f} {unit}  x{peer}: {ratio}  spread {spread:.1%}",
              flush=True)


def close(got, want, tolerance):
    error = ((got.float() - want.float()).norm() / want.float().norm()).item()
    if not error < tolerance:
        raise RuntimeError(f"wrong result: relative error {error}")


def row_matmul(size, target, dtype="bf16", **bindings):
    torch.manual_seed(1)
    kind = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    sets = [tuple(torch.randn(size, size, device="cuda", dtype=kind) for _ in range(2)) for _ in range(2)]
    outs = [torch.full((size, size), float("nan"), device="cuda", dtype=kind) for _ in sets]
    kernel = Kernel("matmul", target, M=size, N=size, K=size, dtype=dtype, **bindings)
    kernel.launch([*sets[0], outs[0]])
    close(outs[0], sets[0][0].float() @ sets[0][1].float(), 5e-3)
    results = race({
        "cuBLAS": [lambda a=a, b=b, c=c: torch.matmul(a, b, out=c) for (a, b), c in zip(sets, outs)],
        "tl-llc": [lambda a=a, b=b, c=c: kernel.launch([a, b, c]) for (a, b), c in zip(sets, outs)],
    })
    label = " ".join(f"{k}={v}" for k, v in bindings.items())
    report(f"matmul {size}^3 {dtype} [K,N] {target} {label}", "GFLOP/s", 2.0 * size**3 * 1e3 / 1e3, results, "cuBLAS")


def rows_matmul_forms(**bindings):
    """bf16 and f16 with B as K by N; the row `nt` has it as N by K."""
    for size in (8192, 4096):
        for dtype in ("bf16", "f16"):
            row_matmul(size, TARGET, dtype, **bindings)


def rows_matmul_tile():
    """The tile of 128 by 256 by 64 that two warpgroups share, as the author gives it."""
    for size in (8192, 4096):
        for stages in (3, 4):
            row_matmul(size, TARGET, block_N=256, threads=256, stages=stages)


# Rows of matmul_nt: operand and result, torch's types, params, tolerance, peers. 8-bit floats with both ways to add up: cuBLAS
# has them, too.
@functools.cache
def one():
    return torch.ones((), device="cuda")


def scaled(fast):
    def multiply(a, b):
        return torch._scaled_mm(a, b.T, scale_a=one(), scale_b=one(), out_dtype=torch.bfloat16, use_fast_accum=fast)

    return multiply


NT_ROWS = {
    "bf16": (torch.bfloat16, torch.bfloat16, {}, 5e-3, lambda a, b: torch.matmul(a, b.T)),
    "f16": (torch.float16, torch.float16, {}, 5e-3, lambda a, b: torch.matmul(a, b.T)),
    "f8e4m3 fast": (torch.float8_e4m3fn, torch.bfloat16, {"fast": "true"}, 2e-2, scaled(True)),
    "f8e4m3 promoted": (torch.float8_e4m3fn, torch.bfloat16, {}, 5e-3, scaled(False)),
    "i8": (torch.int8, torch.int32, {"acc_dtype": "i32"}, 1e-6, lambda a, b: torch._int_mm(a, b.T)),
}
DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float8_e4m3fn: "f8e4m3", torch.int8: "i8", torch.int32: "i32"}


def random_of(dtype, *shape):
    if dtype == torch.int8:
        return torch.randint(-128, 128, shape, device="cuda", dtype=dtype)
    return torch.randn(*shape, device="cuda").to(dtype)


def row_matmul_nt(size, name, target, variants=({},)):
    """Products with B given as N by K. variants: further params, one contestant each."""
    dtype, result, params, tolerance, peer = NT_ROWS[name]
    torch.manual_seed(1)
    sets = [tuple(random_of(dtype, size, size) for _ in range(2)) for _ in range(2)]
    outs = [torch.empty((size, size), device="cuda", dtype=result) for _ in sets]
    a, b = (x.double() if dtype == torch.int8 else x.float() for x in sets[0])
    want = a @ b.T
    print(f"  relative error of cuBLAS: {((peer(*sets[0]).double() - want).norm() / want.norm()).item():.2e}")
    contestants = {"cuBLAS": [lambda a=a, b=b: peer(a, b) for a, b in sets]}
    for variant in variants:
        kernel = Kernel("matmul_nt", target, M=size, N=size, K=size, dtype=DTYPES[dtype], out_dtype=DTYPES[result], **params, **variant)
        outs[0].fill_(float("nan") if result.is_floating_point else -1)
        kernel.launch([*sets[0], outs[0]])
        print(f"  relative error of tl-llc: {((outs[0].double() - want).norm() / want.norm()).item():.2e}")
        close(outs[0], want, tolerance)
        label = " ".join(["tl-llc", *(f"{k}={v}" for k, v in variant.items())])
        contestants[label] = [lambda a=a, b=b, c=c, k=kernel: k.launch([a, b, c]) for (a, b), c in zip(sets, outs)]
    report(f"matmul_nt {size}^3 {name} {target}", "GFLOP/s", 2.0 * size**3, race(contestants), "cuBLAS")


def row_splitk(target):
    m, n, k = 64, 1024, 8192
    sets = [(torch.randn(m, k, device="cuda", dtype=torch.float16), torch.randn(k, n, device="cuda", dtype=torch.float16))
            for _ in range(4)]
    out, product = torch.zeros(m, n, device="cuda"), torch.empty(m, n, device="cuda", dtype=torch.float16)
    contestants = {"cuBLAS": [lambda a=a, b=b: torch.matmul(a, b, out=product) for a, b in sets]}
    for split in (4, 8, 16):
        kernel = Kernel("matmul_splitk", target, M=m, N=n, K=k, split=split)

        def cleared(a, b, kernel=kernel):
            out.zero_()
            kernel.launch([a, b, out])

        cleared(*sets[0])
        close(out, sets[0][0].float() @ sets[0][1].float(), 5e-3)
        contestants[f"tl-llc split={split}"] = [lambda a=a, b=b, k=kernel: k.launch([a, b, out]) for a, b in sets]
        contestants[f"tl-llc split={split}, C cleared"] = [lambda a=a, b=b, f=cleared: f(a, b) for a, b in sets]
    report(f"matmul_splitk {m}x{n}x{k} f16 {target}", "GFLOP/s", 2.0 * m * n * k * 1e3 / 1e3, race(contestants), "cuBLAS")


def row_persistent(target, spec, work, sets, reference, tolerance, **bindings):
    """A kernel with a block for each tile beside the same with as many blocks as fit. sets: (inputs, output) per rotation."""
    contestants = {}
    for choice in ("false", "true"):
        kernel = Kernel(spec, target, persistent=choice, **bindings)
        inputs, out = sets[0]
        out.fill_(float("nan"))
        kernel.launch([*inputs, out])
        close(out, reference(*inputs), tolerance)
        contestants[f"persistent: {choice}"] = [lambda i=i, o=o, k=kernel: k.launch([*i, o]) for i, o in sets]
    label = " ".join(f"{k}={v}" for k, v in bindings.items())
    report(f"{spec} {target} {label}", "GFLOP/s or MB/s", work, race(contestants), "persistent: false")


def rows_persistent():
    def rms(x, w):
        return x.float() * torch.rsqrt((x.float() ** 2).mean(-1, keepdim=True) + 1e-6) * w.float()

    for m, n, k in ((8192, 8192, 8192), (4096, 4096, 4096), (2304, 2048, 4096)):
        sets = [((torch.randn(m, k, device="cuda", dtype=torch.bfloat16), torch.randn(k, n, device="cuda", dtype=torch.bfloat16)),
                 torch.empty(m, n, device="cuda", dtype=torch.bfloat16)) for _ in range(2)]
        row_persistent("sm_80", "matmul", 2.0 * m * n * k, sets, lambda a, b: a.float() @ b.float(), 5e-3, M=m, N=n, K=k, dtype="bf16")
    for m, n, extra in ((65536, 768, {}), (65536, 768, {"threads": 128}), (65536, 768, {"block_M": 8}), (8192, 4096, {}),
                        (8192, 8192, {})):
        weight = torch.randn(n, device="cuda", dtype=torch.bfloat16)
        xs = [torch.randn(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
        sets = [((x, weight), torch.empty_like(x)) for x in xs]
        row_persistent("sm_90a", "rms_norm", 4.0 * m * n, sets, rms, 1e-2, M=m, N=n, **extra)
    for spec, m, n, extra in (("softmax", 65536, 1024, {}), ("softmax", 65536, 1024, {"threads_per_row": 128}),
                              ("softmax", 8192, 8192, {}), ("online_softmax", 65536, 1024, {})):
        xs = [torch.randn(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
        sets = [((x,), torch.empty_like(x)) for x in xs]
        row_persistent("sm_90a", spec, 4.0 * m * n, sets, lambda x: torch.softmax(x.float(), -1), 1e-2, M=m, N=n, **extra)
    xs = [torch.randn(8192, 8192, device="cuda", dtype=torch.float16) for _ in range(4)]
    sets = [((x,), torch.empty_like(x)) for x in xs]
    row_persistent("sm_80", "softplus", 4.0 * 8192 * 8192, sets, lambda x: torch.nn.functional.softplus(x.float()), 1e-3,
                   M=8192, N=8192)


def row_vector_add(target):
    n = 1 << 28
    a, b = (torch.randn(n, device="cuda") for _ in range(2))
    c = torch.full((n,), float("nan"), device="cuda")
    kernel = Kernel("vector_add", target)
    kernel.launch([a, b, c], {"N": n})
    close(c, a + b, 1e-7)
    results = race({
        "memcpy": [lambda: c.copy_(a)],
        "copy kernel": [lambda: torch.neg(a, out=c)],
        "torch.add": [lambda: torch.add(a, b, out=c)],
        "tl-llc": [lambda: kernel.launch([a, b, c], {"N": n})],
    })
    # Rates, so that a copy (2 streams) compares with an addition (3 streams).
    scale = {"memcpy": 2.0, "copy kernel": 2.0, "torch.add": 3.0, "tl-llc": 3.0}
    results = {name: (t[0] / scale[name], t[1] / scale[name], t[2]) for name, t in results.items()}
    report(f"vector_add f32 2^28 {target}", "MB/s", 4.0 * n * 1e3 / 1e3, results, "copy")


def row_softplus(target):
    size = 8192
    sets = [torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(4)]
    outs = [torch.full_like(x, float("nan")) for x in sets]
    contestants = {
        "memcpy": [lambda x=x, y=y: y.copy_(x) for x, y in zip(sets, outs)],
        "copy kernel": [lambda x=x, y=y: torch.neg(x, out=y) for x, y in zip(sets, outs)],
    }
    for fast in ("true", "false"):
        kernel = Kernel("softplus", target, M=size, N=size, fast_math=fast)
        outs[0].fill_(float("nan"))
        kernel.launch([sets[0], outs[0]])
        close(outs[0], torch.nn.functional.softplus(sets[0].float()), 1e-3)
        contestants[f"tl-llc fast_math={fast}"] = [lambda x=x, y=y, k=kernel: k.launch([x, y]) for x, y in zip(sets, outs)]
    results = race(contestants)
    report(f"softplus 8192^2 f16 {target}", "MB/s", 4.0 * size * size * 1e3 / 1e3, results, "copy")


def row_w4a16(target):
    m, n, k, group = 16, 28672, 8192, 128
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    q = [torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8) for _ in range(2)]
    s = (torch.rand(n, k // group, device="cuda") * 0.09 + 0.01).half()
    full = [torch.stack((x & 15, x >> 4), dim=-1).reshape(n, k).half().sub_(8).mul_(s.repeat_interleave(group, dim=1)) for x in q]
    out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
    kernel = Kernel("matmul_w4a16", target, M=m, N=n, K=k)
    kernel.launch([a, q[0], s, out])
    close(out, a.float() @ full[0].float().T, 5e-3)
    results = race({
        "cuBLAS": [lambda w=w: torch.matmul(a, w.T, out=out) for w in full],
        "tl-llc": [lambda x=x: kernel.launch([a, x, s, out]) for x in q],
    })
    report(f"matmul_w4a16 {m}x{n}x{k} {target}, peer cuBLAS f16", "GFLOP/s", 2.0 * m * n * k * 1e3 / 1e3, results, "cuBLAS")


def rate_rows(title, spec, target, work, sets, peer, reference, tolerance, copies=True, **bindings):
    """One row of a bandwidth kernel beside a copy (where `copies`) and torch.compile. sets: (inputs, output) per rotation."""
    kernel = Kernel(spec, target, **bindings)
    inputs, out = sets[0]
    out.fill_(float("nan"))
    kernel.launch([*inputs, out])
    close(out, reference(*inputs), tolerance)
    compiled = torch.compile(peer)
    compiled(*inputs)
    contestants = {
        "torch.compile": [lambda i=i: compiled(*i) for i, _ in sets],
        "tl-llc": [lambda i=i, o=o: kernel.launch([*i, o]) for i, o in sets],
    }
    if copies:
        contestants["copy kernel"] = [lambda x=i[0]: torch.neg(x) for i, _ in sets]
    results = race(contestants)
    label = " ".join(f"{k}={v}" for k, v in bindings.items())
    report(f"{title} {target} {label}", "MB/s", work, results, "torch.compile")


def row_rms_norm(target):
    def rms(x, w):
        wide = x.float()
        return (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)

    for m, n, extra in ((8192, 4096, {}), (8192, 8192, {}), (65536, 768, {}), (65536, 768, {"block_M": 8})):
        weight = torch.randn(n, device="cuda", dtype=torch.bfloat16)
        xs = [torch.randn(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
        sets = [((x, weight), torch.empty_like(x)) for x in xs]
        rate_rows(f"rms_norm {m}x{n} bf16", "rms_norm", target, 4.0 * m * n, sets, rms, rms, 1e-2, M=m, N=n, **extra)


def row_softmax(target):
    for spec, m, n, extra in (("online_softmax", 8192, 8192, {}),
                              ("online_softmax", 8192, 8192, {"threads": 128, "block_N": 8192}),
                              ("softmax", 8192, 8192, {}),
                              ("online_softmax", 4096, 32768, {}),
                              ("online_softmax", 4096, 32768, {"block_N": 8192}),
                              ("softmax", 4096, 32768, {"threads_per_row": 1024})):
        xs = [torch.randn(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
        sets = [((x,), torch.empty_like(x)) for x in xs]
        rate_rows(f"{spec} {m}x{n} bf16", spec, target, 4.0 * m * n, sets, lambda x: torch.softmax(x, -1),
                  lambda x: torch.softmax(x.float(), -1), 1e-2, M=m, N=n, **extra)


def row_row_sum(target):
    m = n = 8192
    xs = [torch.randn(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(4)]
    sets = [((x,), torch.empty(m, device="cuda")) for x in xs]
    rate_rows(f"row_sum {m}x{n} bf16", "row_sum", target, 2.0 * m * n, sets, lambda x: x.float().sum(-1),
              lambda x: x.float().sum(-1), 1e-3, copies=False, M=m, N=n)


def row_flash_attention(target):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    three = {"block_M": 192, "threads": 384}  # warpgroups that compute
    for b, h, s, d, causal, tiles in ((4, 16, 4096, 128, False, {}), (4, 16, 4096, 128, True, {}), (8, 32, 2048, 64, False, {}),
                                      (8, 32, 2048, 64, False, three)):
        sets = [tuple(torch.randn(b, s, h, d, device="cuda", dtype=torch.bfloat16) for _ in range(3)) for _ in range(2)]
        outs = [(torch.empty_like(q), torch.empty(b, h, s, device="cuda")) for q, _, _ in sets]
        kernel = Kernel("flash_attention", target, B=b, H=h, H_kv=h, S=s, D=d, causal=str(causal).lower(), **tiles)
        kernel.launch([*sets[0], *outs[0]])

        def attention(q, k, v, backend):
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal)

        close(outs[0][0].transpose(1, 2), attention(*sets[0], SDPBackend.CUDNN_ATTENTION), 1e-2)
        results = race({
            "cuDNN": [lambda i=i: attention(*i, SDPBackend.CUDNN_ATTENTION) for i in sets],
            "FA2": [lambda i=i: attention(*i, SDPBackend.FLASH_ATTENTION) for i in sets],
            "tl-llc": [lambda i=i, o=o: kernel.launch([*i, *o]) for i, o in zip(sets, outs)],
        })
        work, label = 4.0 * b * h * s * s * d / (2 if causal else 1), " ".join(f"{k}={v}" for k, v in tiles.items())
        report(f"flash_attention {b},{h},{s},{d} {'causal' if causal else 'full'} bf16 {target} {label}", "GFLOP/s", work, results, "cuDNN")


def row_matmul_bias_relu(target):
    size = 8192
    sets = [tuple(torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2)) for _ in range(2)]
    bias = torch.randn(size, device="cuda", dtype=torch.bfloat16)
    outs = [torch.full((size, size), float("nan"), device="cuda", dtype=torch.bfloat16) for _ in sets]
    kernel = Kernel("matmul_bias_relu", target, M=size, N=size, K=size)
    kernel.launch([*sets[0], bias, outs[0]])
    close(outs[0], (sets[0][0].float() @ sets[0][1].float().T + bias.float()).relu(), 5e-3)
    compiled = torch.compile(lambda a, b: torch.nn.functional.linear(a, b, bias).relu())
    compiled(*sets[0])
    results = race({
        # addmm's epilogue of cuBLASLt: bias and relu in the product's kernel.
        "cuBLASLt": [lambda a=a, b=b, c=c: torch._addmm_activation(bias, a, b.T, out=c) for (a, b), c in zip(sets, outs)],
        "torch.compile": [lambda a=a, b=b: compiled(a, b) for a, b in sets],
        "tl-llc": [lambda a=a, b=b, c=c: kernel.launch([a, b, bias, c]) for (a, b), c in zip(sets, outs)],
    })
    report(f"matmul_bias_relu {size}^3 bf16 {target}", "GFLOP/s", 2.0 * size**3, results, "cuBLASLt")


def row_matmul_dynamic(target):
    kernel = Kernel("matmul_dynamic", target)
    for m, n, k in ((8192, 8192, 8192), (4096, 4096, 4096), (1000, 4096, 4096)):
        sets = [(torch.randn(m, k, device="cuda", dtype=torch.float16), torch.randn(k, n, device="cuda", dtype=torch.float16)) for _ in range(2)]
        outs = [torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16) for _ in sets]
        dims = {"M": m, "N": n, "K": k}
        kernel.launch([*sets[0], outs[0]], dims)
        close(outs[0], sets[0][0].float() @ sets[0][1].float(), 5e-3)
        results = race({
            "cuBLAS": [lambda a=a, b=b, c=c: torch.matmul(a, b, out=c) for (a, b), c in zip(sets, outs)],
            "tl-llc": [lambda a=a, b=b, c=c: kernel.launch([a, b, c], dims) for (a, b), c in zip(sets, outs)],
        })
        report(f"matmul_dynamic {m}x{n}x{k} f16 {target}", "GFLOP/s", 2.0 * m * n * k, results, "cuBLAS")


def row_conv2d(target):
    torch.backends.cudnn.benchmark = True
    for n, c, size, f in ((128, 128, 64, 128), (32, 128, 56, 128)):
        # Channels last: torch's NHWC is X as the spec has it; its weight is F, C, R, R in the order F, R, R, C.
        xs = [torch.randn(n, c, size, size, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last) for _ in range(2)]
        weight = (torch.randn(f, c, 3, 3, device="cuda", dtype=torch.float16) * 0.05).to(memory_format=torch.channels_last)
        ours = weight.permute(2, 3, 1, 0).contiguous()
        outs = [torch.full((n, size, size, f), float("nan"), device="cuda", dtype=torch.float16) for _ in xs]
        kernel = Kernel("conv2d", target, N=n, C=c, H=size, W=size, F=f)
        nhwc = [x.permute(0, 2, 3, 1) for x in xs]
        kernel.launch([nhwc[0], ours, outs[0]])

        def convolve(x):
            return torch.nn.functional.conv2d(x, weight, padding=1)

        close(outs[0].permute(0, 3, 1, 2), torch.nn.functional.conv2d(xs[0].float(), weight.float(), padding=1), 5e-3)
        results = race({
            "cuDNN": [lambda x=x: convolve(x) for x in xs],
            "tl-llc": [lambda x=x, y=y: kernel.launch([x, ours, y]) for x, y in zip(nhwc, outs)],
        })
        report(f"conv2d {n}x{size}x{size}x{c} 3x3 -> {f} f16 {target}", "GFLOP/s", 2.0 * n * size * size * f * c * 9, results, "cuDNN")


def row_linear_attention(target):
    import linear_attention_peers as peers

    for b, s, h, d in ((2, 4096, 8, 128), (8, 4096, 16, 128)):
        sets = [tuple(torch.randn(b, s, h, d, device="cuda", dtype=torch.bfloat16) * scale for scale in (0.5, 0.5, 1.0)) for _ in range(2)]
        outs = [(torch.empty_like(q), torch.empty(b, h, d, d, device="cuda")) for q, _, _ in sets]
        compiled, chunk, fused = torch.compile(peers.torch_chunked), peers.Chunk(sets[0][0], sets[0][2]), peers.Fused()
        want = peers.torch_chunked(*(x.float() for x in sets[0]))
        contestants = {
            "torch.compile": lambda i, o: compiled(*i),
            "Triton, chunks in parallel": lambda i, o: chunk(*i, *o),
            "Triton, fused": lambda i, o: fused(*i, *o),
        }
        for label, given in (("", {}), (" block_V=64 stages=2", {"block_V": 64, "stages": 2})):
            kernel = Kernel("linear_attention", target, B=b, S=s, H=h, D=d, D_v=d, **given)
            contestants["tl-llc" + label] = lambda i, o, k=kernel: k.launch([*i, *o])
        for name, function in contestants.items():
            for out in outs[0]:
                out.fill_(float("nan"))
            got = function(sets[0], outs[0]) or outs[0]
            close(got[0], want[0], 1e-2)
            close(got[1], want[1], 1e-2)
        print(f"  configurations: states and outputs {chunk.configs}, fused {fused.config}")
        results = race({name: [lambda i=i, o=o, f=f: f(i, o) for i, o in zip(sets, outs)] for name, f in contestants.items()})
        chunk_size = peers.CHUNK
        work = b * h * (s // chunk_size) * (2.0 * chunk_size * chunk_size * 2 * d + 4.0 * chunk_size * d * d)
        report(f"linear_attention {b},{s},{h},{d} bf16 {target}", "GFLOP/s", work, results, "Triton, chunks in parallel")


ROWS = {
    "matmul": lambda: row_matmul(8192, TARGET),
    "matmul4096": lambda: row_matmul(4096, TARGET),
    "matmul_tile": lambda: rows_matmul_tile(),
    "matmul_given": lambda: rows_matmul_forms(block_N=256, threads=256, stages=3),
    "matmul_own": lambda: rows_matmul_forms(),
    "matmul_auto": lambda: rows_matmul_forms(block_M="auto", block_N="auto", block_K="auto", stages="auto", threads="auto"),
    "matmul_k32s4": lambda: row_matmul(8192, TARGET, block_K=32, stages=4),
    "nt": lambda: [row_matmul_nt(size, name, TARGET) for size in (8192, 4096) for name in ("bf16", "f16")],
    "fp8": lambda: [row_matmul_nt(8192, name, TARGET) for name in ("f8e4m3 fast", "f8e4m3 promoted")],
    "int8": lambda: row_matmul_nt(8192, "i8", TARGET),
    "splitk": lambda: row_splitk(TARGET),
    "persistent": rows_persistent,
    "vector_add": lambda: row_vector_add(TARGET),
    "softplus": lambda: row_softplus(TARGET),
    "w4a16": lambda: row_w4a16(TARGET),
    "rms_norm": lambda: row_rms_norm(TARGET),
    "softmax": lambda: row_softmax(TARGET),
    "row_sum": lambda: row_row_sum(TARGET),
    "flash_attention": lambda: row_flash_attention(TARGET),
    "matmul_bias_relu": lambda: row_matmul_bias_relu(TARGET),
    "matmul_dynamic": lambda: row_matmul_dynamic(TARGET),
    "conv2d": lambda: row_conv2d(TARGET),
    "linear_attention": lambda: row_linear_attention(TARGET),
}

if __name__ == "__main__":
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; figures are burst / sustained")
    options = [a for a in sys.argv[1:] if a.startswith(("--rounds=", "--target="))]
    for option in options:
        if option.startswith("--rounds="):
            ROUNDS = int(option.removeprefix("--rounds="))
        else:
            TARGET = option.removeprefix("--target=")
    for row in [a for a in sys.argv[1:] if a not in options] or ROWS:
        ROWS[row]()
