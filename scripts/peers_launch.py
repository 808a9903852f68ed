# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches compiled specs through the CUDA driver, in a process whose context somebody else has made current.

The manifest in the PTX's head says what a launch passes (docs/embedding.md): pointers, dynamic params, and for copies by
TMA tensor maps, made by cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col from their recipe and kept for the memory and sizes that they were made for.
TL_CUDA_DRIVER names another driver library.
"""
import ctypes
import json
import os
import subprocess

MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
MAP_BYTES, MAP_ALIGN, STRIDE_UNIT = 128, 64, 16
# CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion
MAP_TYPES = ["u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"]
MAP_SWIZZLES = [0, 32, 64, 128]
MAP_L2 = [0, 64, 128, 256]
SCALARS = {"f32": ctypes.c_float, "f64": ctypes.c_double, "i32": ctypes.c_int32, "u32": ctypes.c_uint32, "i64": ctypes.c_int64, "u64": ctypes.c_uint64}
MAP_FILLS = ["zero", "nan"]


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL(os.environ.get("TL_CUDA_DRIVER", "libcuda.so.1"))

    def call(self, name, *args):
        code = getattr(self.library, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {text.value.decode()} ({code})")


def manifest_of(ptx):
    head = "\n".join(line[3:] for line in ptx.splitlines() if line.startswith("// "))
    return json.JSONDecoder().raw_decode(head[head.index("{"):])[0]


def evaluate(expression, names):
    """A number, or an expression of the manifest over dynamic names."""
    if isinstance(expression, int):
        return expression
    functions = {"ceildiv": lambda a, b: -(-a // b), "min": min, "max": max}
    return int(eval(str(expression), {"__builtins__": {}}, {**functions, **names}))


class Entry:
    """A kernel of a loaded module."""

    def __init__(self, driver, module, entry, num_sms):
        function, blocks = ctypes.c_void_p(), ctypes.c_int()
        self.driver, self.entry = driver, entry
        self.driver.call("cuModuleGetFunction", ctypes.byref(function), module, entry["name"].encode())
        self.function, self.shared = function, int(entry["dynamic_shared_bytes"])
        self.threads = int(entry["block_threads"])
        self.driver.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, self.shared)
        self.driver.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function, self.threads,
                         ctypes.c_size_t(self.shared))
        self.facts = {"num_sms": num_sms, "resident_blocks": blocks.value * num_sms}
        self.maps = {}

    def encode(self, recipe, address, names):
        """The 128 bytes of a map, in memory of 64 bytes' alignment."""
        dims = [evaluate(d, names) for d in recipe["dims"]]
        strides = [evaluate(s, names) for s in recipe["strides"]]
        # A stride that no second index uses may be anything: the driver still wants it in order.
        strides = [STRIDE_UNIT if dims[d + 1] == 1 else stride for d, stride in enumerate(strides)]
        key = (recipe["name"], address, *dims, *strides)
        if key not in self.maps:
            rank = len(dims)
            memory = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGN)
            offset = -ctypes.addressof(memory) % MAP_ALIGN
            made = (ctypes.c_char * MAP_BYTES).from_buffer(memory, offset)
            step = [1, *recipe.get("step", [1] * (rank - 2)), 1][:rank]
            shape = [(ctypes.c_uint32 * rank)(*recipe["box"])]
            if "lower" in recipe:
                shape = [(ctypes.c_int * 3)(*recipe["lower"]), (ctypes.c_int * 3)(*recipe["upper"]), *recipe["box"][:2]]
            self.driver.call("cuTensorMapEncodeIm2col" if "lower" in recipe else "cuTensorMapEncodeTiled", made,
                             MAP_TYPES.index(recipe["type"]), rank, ctypes.c_void_p(address), (ctypes.c_uint64 * rank)(*dims),
                             (ctypes.c_uint64 * 4)(*strides), *shape, (ctypes.c_uint32 * rank)(*step), 0,
                             MAP_SWIZZLES.index(recipe["swizzle"]), MAP_L2.index(recipe["l2"]), MAP_FILLS.index(recipe["fill"]))
            self.maps[key] = made
        return self.maps[key]

    def launch(self, addresses, stream, given):
        """addresses: tensor → address; given: name → value, of dynamic params and scalars."""
        names, values = {**self.facts, **given}, []
        for param in self.entry["params"]:
            if param["kind"] == "tensor":
                values.append(ctypes.c_uint64(addresses[param["name"]]))
            elif param["kind"] == "dynamic":
                wide = param.get("dtype") == "i64"
                values.append((ctypes.c_int64 if wide else ctypes.c_int32)(names[param["name"]]))
            elif param["kind"] == "tensor_map":
                values.append(self.encode(param, addresses[param["tensor"]], names))
            elif param["kind"] == "scalar" and param["dtype"] in SCALARS:
                values.append(SCALARS[param["dtype"]](names[param["name"]]))
            else:
                raise RuntimeError("only tensors, dynamic params, scalars of 32 and 64 bits and tensor maps are passed")
        grid = [evaluate(extent, names) for extent in self.entry["grid"]]
        params = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        self.driver.call("cuLaunchKernel", self.function, *grid, self.threads, 1, 1, self.shared, ctypes.c_void_p(stream), params, None)


class Program:
    """One kernel of a spec, or a chain of them, compiled by `compiler` (or of a .ptx file, as it is) and loaded."""

    def __init__(self, compiler, spec, target, num_sms, kernel=None, **bindings):
        command = [compiler, spec, "--emit=ptx", "--target=" + target]
        if kernel:
            command.append("--kernel=" + kernel)
        for name, value in bindings.items():
            command += ["-D", f"{name}={value}"]
        if spec.endswith(".ptx"):
            command = ["cat", spec]
        self.driver = Driver()
        self.ptx = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        manifest, module = manifest_of(self.ptx), ctypes.c_void_p()
        self.driver.call("cuModuleLoadDataEx", ctypes.byref(module), self.ptx.encode(), 0, None, None)
        self.entries = {entry["name"]: Entry(self.driver, module, entry, num_sms) for entry in manifest["kernels"]}
        self.entry = manifest["kernels"][0]
        self.chain = manifest["chains"][0] if manifest.get("chains") else None
        self.buffers = {}

    @property
    def maps(self):
        return self.entries[self.entry["name"]].maps

    def buffer(self, name, names):
        """The address of a buffer of the chain; sizes must not grow."""
        if name not in self.buffers:
            size = next(buffer["bytes"] for buffer in self.chain["buffers"] if buffer["name"] == name)
            address = ctypes.c_uint64()
            self.driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(1, evaluate(size, names))))
            self.buffers[name] = address.value
        return self.buffers[name]

    def launch_step(self, step, addresses, stream, names):
        tensors, values = {}, {}
        for given in step["given"]:
            if "argument" in given:
                tensors[given["name"]] = addresses[given["argument"]]
            elif "buffer" in given:
                tensors[given["name"]] = self.buffer(given["buffer"], names)
            elif "scalar" in given:
                values[given["name"]] = names[given["scalar"]]
            else:
                values[given["name"]] = evaluate(given["int"], names)
        self.entries[step["kernel"]].launch(tensors, stream, values)

    def launch(self, pointers, stream=0, dynamic=None):
        """pointers: addresses in the spec's order of tensors; dynamic: name → value, of dynamic params and scalars."""
        params, names = (self.chain or self.entry)["params"], dynamic or {}
        addresses = dict(zip([param["name"] for param in params if param["kind"] == "tensor"], pointers))
        if not self.chain:
            self.entries[self.entry["name"]].launch(addresses, stream, names)
            return
        for step in self.chain["steps"]:
            self.launch_step(step, addresses, stream, names)
