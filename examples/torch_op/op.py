# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A PyTorch operator from tile specs: forward and backward, under autograd, torch.compile and CUDA graphs.

    pip install tl_llc-….whl torch
    python3 op.py

Without a GPU it is an operator of tensors on the CPU, whose kernels run in the emulator.
"""

import functools
import os
import time

import tl
import torch

SPEC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "silu.yaml")
WHERE = "cuda" if torch.cuda.is_available() else "cpu"
DEVICE = None if WHERE == "cuda" else tl.emulator()


@functools.lru_cache(maxsize=None)
def kernel(name, dtype):
    if not dtype.is_floating_point:  # the specs would calculate with integers, too
        raise TypeError(f"silu takes tensors of floats, not of {dtype}")
    return tl.compile(SPEC, kernel=name, device=DEVICE, dtype=dtype, compute="f64" if dtype == torch.float64 else "f32")


# An operator of the library "tl_example": torch traces it as one node, and calls this where it runs.
@torch.library.custom_op("tl_example::silu", mutates_args=(), device_types=WHERE)
def silu(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    kernel("silu", x.dtype)(x.contiguous().view(-1), y.view(-1))
    return y


# What torch.compile needs to know without running it.
@silu.register_fake
def _(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("tl_example::silu_backward", mutates_args=(), device_types=WHERE)
def silu_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    kernel("silu_backward", x.dtype)(dy.contiguous().view(-1), x.contiguous().view(-1), dx.view(-1))
    return dx


@silu_backward.register_fake
def _(dy, x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, dy):
    (x,) = ctx.saved_tensors
    return silu_backward(dy, x)


silu.register_autograd(_backward, setup_context=_keep)


def check(what, given, expected, tolerance=1e-5):
    torch.testing.assert_close(given, expected, rtol=tolerance, atol=tolerance)
    print(f"{what}: right")


def check_operator():
    x = torch.randn(300, 1000, device=WHERE, requires_grad=True)
    y = silu(x)
    y.sum().backward()
    z = x.detach().clone().requires_grad_()
    torch.nn.functional.silu(z).sum().backward()
    check("forward", y, torch.nn.functional.silu(x))
    check("backward", x.grad, z.grad)
    b = x.detach().bfloat16()
    check("bf16", silu(b), torch.nn.functional.silu(b), 1e-2)
    check("a view", silu(x.detach().t()), torch.nn.functional.silu(x.detach().t()))
    try:
        silu(torch.arange(4, device=WHERE))
        raise AssertionError("integers are not refused")
    except TypeError as error:
        print(f"refused: {error}")
    check("nothing", silu(x.detach()[:0]), x.detach()[:0])

    # What torch itself asks of an operator, and the gradient against differences.
    torch.library.opcheck(silu, (torch.randn(3, 40, device=WHERE, requires_grad=True),))
    torch.autograd.gradcheck(silu, (torch.randn(3, 5, dtype=torch.float64, device=WHERE, requires_grad=True),))
    print("opcheck, gradcheck: right")

    # Without a GPU there may be no compiler that inductor needs.
    compiled = torch.compile(lambda v: silu(v * 2) + 1, fullgraph=True, backend="inductor" if WHERE == "cuda" else "aot_eager")
    check("torch.compile", compiled(x), torch.nn.functional.silu(x * 2) + 1)


def check_graph():
    x = torch.randn(300, 1000, device="cuda")
    static = x.clone()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        silu(static)  # compiled and loaded before the recording
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = silu(static)
    static.copy_(x * 3)
    graph.replay()
    check("a CUDA graph", result, torch.nn.functional.silu(static))


def time_calls():
    k, n = kernel("silu", torch.float32), torch.randn(1024, device="cuda")
    out = torch.empty_like(n)
    for _ in range(100):
        k(n, out)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(1000):
        k(n, out)
    print(f"one call of a kernel: {1e3 * (time.perf_counter() - start):.2f} us")


def main():
    torch.manual_seed(1)
    check_operator()
    if WHERE == "cuda":
        check_graph()
        time_calls()


if __name__ == "__main__":
    main()
