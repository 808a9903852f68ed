# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles kernels.py with the Triton at hand, runs what comes out on the first GPU and keeps both.

Usage: record.py INPUTS OUT. INPUTS holds KERNEL.ARGUMENT.npy. Into OUT go KERNEL.sm_80.ptx, KERNEL.sm_90.ptx, what each launch
took (record.txt) and KERNEL.TARGET.npy: what the GPU wrote.
"""
import ctypes
import sys

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import kernels

cuda = ctypes.CDLL("libcuda.so.1")
inputs, out = sys.argv[1:]

# Arguments in order: an array by its name, "=" the one that is written, or (type, value). Constants, grid, output.
KERNELS = {
    "matmul": (["a", "b", "=c", ("M", "i32", 100), ("N", "i32", 80), ("K", "i32", 96)], {"BM": 64, "BN": 64, "BK": 32}, (2, 2, 1), ((100, 80), np.float16)),
    "softmax": (["x", "=y", ("stride", "i32", 781), ("n", "i32", 781)], {"BLOCK": 1024}, (5, 1, 1), ((5, 781), np.float32)),
    "layer_norm": (["x", "w", "b", "=y", ("n", "i32", 500), ("eps", "fp32", 1e-5)], {"BLOCK": 512}, (6, 1, 1), ((6, 500), np.float16)),
    "attention": (["q", "k", "v", "=o", ("scale", "fp32", 0.18033688), ("S", "i32", 128)], {"D": 64, "BM": 64, "BN": 64}, (2, 2, 1), ((2, 128, 64), np.float16)),
}
TYPES = {np.dtype(np.float16): "*fp16", np.dtype(np.float32): "*fp32"}


def check(code, what):
    if code:
        raise SystemExit(f"{what}: CUDA error {code}")


def compile(name, args, constants, arrays, capability):
    signature, attrs, n = {}, {}, 0
    for i, arg in enumerate(args):
        if isinstance(arg, str):
            signature[arg.strip("=")] = TYPES[arrays[arg.strip("=")].dtype]
            attrs[(i,)] = [["tt.divisibility", 16]]
        else:
            signature[arg[0]] = arg[1]
            if arg[1] == "i32" and arg[2] % 16 == 0:
                attrs[(i,)] = [["tt.divisibility", 16]]
    n = len(signature)
    signature.update({key: "constexpr" for key in constants})
    constexprs = {(n + i,): value for i, value in enumerate(constants.values())}
    source = ASTSource(getattr(kernels, name), signature, constexprs=constexprs, attrs=attrs)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4, "num_stages": 3})


def launch(ptx, name, args, arrays, grid, threads, shared):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuModuleLoadData(ctypes.byref(module), ptx.encode() + b"\0"), "cuModuleLoadData")
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), "cuModuleGetFunction")
    if shared > 48 * 1024:
        check(cuda.cuFuncSetAttribute(function, 8, shared), "cuFuncSetAttribute")
    on_device = {key: torch.from_numpy(value).cuda() for key, value in arrays.items()}
    values = []
    for arg in args:
        if isinstance(arg, str):
            values.append(ctypes.c_uint64(on_device[arg.strip("=")].data_ptr()))
        else:
            values.append(ctypes.c_int32(arg[2]) if arg[1] == "i32" else ctypes.c_float(arg[2]))
    params = ptx[ptx.index(".entry"):]
    params = params[: params.index(")")].count(".param")
    values += [ctypes.c_uint64(0)] * (params - len(values))
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values])
    torch.cuda.synchronize()
    check(cuda.cuLaunchKernel(function, *grid, threads, 1, 1, shared, None, pointers, None), "cuLaunchKernel")
    torch.cuda.synchronize()
    written = next(a.strip("=") for a in args if isinstance(a, str) and a[0] == "=")
    return on_device[written].cpu().numpy()


torch.zeros(1, device="cuda")
log = open(f"{out}/record.txt", "w")
print(f"triton {triton.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}", file=log)
for name, (args, constants, grid, (shape, dtype)) in KERNELS.items():
    arrays = {a: np.load(f"{inputs}/{name}.{a}.npy") for a in args if isinstance(a, str) and a[0] != "="}
    arrays[next(a for a in args if isinstance(a, str) and a[0] == "=")[1:]] = np.zeros(shape, dtype)
    for capability in (80, 90):
        try:
            kernel = compile(name, args, constants, arrays, capability)
            ptx, m = kernel.asm["ptx"], kernel.metadata
            open(f"{out}/{name}.sm_{capability}.ptx", "w").write(ptx)
            result = launch(ptx, name, args, arrays, grid, 32 * m.num_warps, m.shared)
            np.save(f"{out}/{name}.sm_{capability}.npy", result)
            print(name, capability, "grid", grid, "threads", 32 * m.num_warps, "shared", m.shared, "sum",
                  float(result.astype(np.float64).sum()), "head", result.ravel()[:4].tolist(), file=log)
        except BaseException as problem:  # the others are still worth having
            print(name, capability, "failed:", repr(problem)[:300], file=log)
