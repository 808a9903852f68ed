# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tl-llc from Python: compile a tile spec, call it with tensors.

    import tl
    matmul = tl.compile("matmul.yaml", dtype="bf16")
    c = matmul(a, b)            # `c` is allocated; matmul(a, b, c) writes into it

Arrays are those of torch, cupy, numba, jax, …: anything with DLPack or __cuda_array_interface__. A kernel runs on torch's current
stream when torch tensors are given, else on `stream=` (default: the default stream), and is not waited for. Mistakes of a spec
are a CompileError whose text shows the places; arguments that do not fit, and everything else, an Error.
"""

import json
import os
import threading
import weakref

from . import _arrays, _c, _calls, _copies
from ._c import Error

__all__ = ["CompileError", "Device", "Error", "Kernel", "compile", "compile_text", "emulator", "gpu", "load", "version"]


class CompileError(Error):
    """A spec has errors. `diagnostics` is the list that `tl-llc --diagnostics=json` prints; the text shows the places."""

    def __init__(self, text, diagnostics):
        super().__init__("DIAGNOSTICS", text)
        self.diagnostics = diagnostics


def version():
    return _c.tl_version().decode()


# ---- devices


class Device:
    """A GPU or the emulator."""

    def __init__(self, handle, ordinal):
        self._handle, self.ordinal = handle, ordinal
        self.is_emulator = ordinal is None
        self._close = weakref.finalize(self, _c.tl_device_close, handle)

    @property
    def name(self):
        return _c.tl_device_name(self._handle).decode()

    @property
    def compute_capability(self):
        return _c.tl_device_compute_capability(self._handle)

    def __deepcopy__(self, memo):
        return self

    def synchronize(self, stream=None):
        _c.check(_c.tl_stream_synchronize(self._handle, stream))


_gpus = {}
_lock = threading.Lock()


def gpu(ordinal=0):
    """GPU number `ordinal`. Error with the code NO_DEVICE where there is none."""
    with _lock:
        if ordinal not in _gpus:
            _gpus[ordinal] = Device(_c.make("tl_device_open", ordinal), ordinal)
        return _gpus[ordinal]


def emulator(checks="all", landing="late", seed=0, threads=0, timeout_s=0, compute_capability=0, num_sms=0):
    """The emulator, which takes arrays of the host and checks what kernels do: a finding is an Error with the code CHECK_FAILED."""
    options = _c.EmulatorOptions(_c.text("checks", checks), _c.text("landing", landing), seed, threads, timeout_s, compute_capability, num_sms)
    return Device(_c.make("tl_device_open_emulator", options), None)


# ---- compiling


def _text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    # dtypes of torch and numpy, and numpy's classes of numbers
    name = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value).rpartition(".")[2]
    return _arrays.SHORT_NAMES.get(name) or str(value)


def _words(value):
    return [word for word in value.split(",") if word] if isinstance(value, str) else list(value)


def _compile(device, kernel, target, warnings, require, params, start):
    compiler = _c.make("tl_compiler_create")
    compilation = _c.c_void_p()
    try:
        for name, value in params.items():
            _c.check(_c.tl_compiler_bind(compiler, _c.text("the name of a param", name), _c.text(f"the param {name}", _text_of(value))))
        if target:
            _c.check(_c.tl_compiler_set_target(compiler, _c.text("target", target)))
        elif device:
            _c.check(_c.tl_compiler_set_target_for_device(compiler, device.compute_capability))
        if kernel:
            _c.tl_compiler_set_kernel(compiler, _c.text("kernel", kernel))
        if require:
            _c.check(_c.tl_compiler_set_require(compiler, _c.text("require", ",".join(_words(require)))))
        for option in _words(warnings):
            _c.check(_c.tl_compiler_set_warning(compiler, _c.text("an option of warnings", option)))
        status = start(compiler, _c.byref(compilation))
        handle = compilation.value
        if status and handle:
            _c.tl_status_free(status)
            text = _c.tl_compilation_diagnostics(handle, 0).decode(errors="replace")
            raise CompileError(text.rstrip(), json.loads(_c.tl_compilation_diagnostics(handle, 1)))
        _c.check(status)
        diagnostics = json.loads(_c.tl_compilation_diagnostics(handle, 1))
        return Kernel(_c.tl_compilation_ptx(handle, None).decode(), device, diagnostics)
    finally:
        _c.tl_compilation_destroy(compilation)
        _c.tl_compiler_destroy(compiler)


def _default_device(device):
    if isinstance(device, Device):
        return device
    if device is not None:
        ordinal = (device.index or 0) if getattr(device, "type", None) == "cuda" else device  # torch's way to say it
        if not isinstance(ordinal, int):
            raise TypeError(f"device is the number of a GPU, tl.gpu() or tl.emulator(), not {device!r}")
        return gpu(ordinal)
    try:
        return gpu(0)
    except Error as error:
        if error.code != "NO_DEVICE":
            raise
        return None  # it compiles all the same


def compile(path, *, kernel=None, target=None, device=None, warnings=(), require=(), params=None, **more):
    """Compiles the spec in a file. Params are given by name (`dtype="bf16"`, `M=4096`, `threads=256`), or in `params` where a name
    is one of the others here; a dtype may be one of torch or numpy. `target` ("sm_90a") is the device's best one by default; `device`
    is a number of a GPU, gpu(), emulator() or a device of torch. `warnings`: options without their -W. `require` ("tma,wgmma", or a list):
    what every statement that could must have got, as `tl-llc --require`; else it is a CompileError."""
    file = os.fsencode(path)
    if b"\0" in file:
        raise ValueError("the path holds a NUL")
    start = lambda compiler, out: _c.tl_compiler_compile_file(compiler, file, out)
    return _compile(_default_device(device), kernel, target, warnings, require, {**(params or {}), **more}, start)


def compile_text(text, *, name="<text>", kernel=None, target=None, device=None, warnings=(), require=(), params=None, **more):
    """The same for the text of a spec; `name` stands for the file in messages."""
    data, name = text if isinstance(text, bytes) else text.encode(), _c.text("name", name)
    start = lambda compiler, out: _c.tl_compiler_compile(compiler, name, data, len(data), out)
    return _compile(_default_device(device), kernel, target, warnings, require, {**(params or {}), **more}, start)


def load(path_or_ptx, *, device=None):
    """PTX that tl-llc wrote, as text or in a file."""
    text = path_or_ptx.decode(errors="replace") if isinstance(path_or_ptx, bytes) else path_or_ptx
    if not isinstance(text, str) or "\n" not in text:
        with open(path_or_ptx, encoding="utf-8", errors="replace") as file:
            text = file.read()
    return Kernel(text, _default_device(device), [])


# ---- calling


def _manifest_of(ptx):
    """The manifest, and the kernel or chain of it that is called."""
    lines = []
    for line in ptx.split("\n"):
        if not line.startswith("// "):
            break
        lines.append(line[3:])
    try:
        manifest = json.loads("\n".join(lines))
        entry = (manifest.get("chains") or manifest["kernels"])[0]
        return manifest, entry, entry["name"], entry["params"]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise Error("INVALID_ARGUMENT", "this is no PTX of tl-llc: it does not begin with a manifest") from None


_FUNCTIONS = {"__builtins__": {}, "min": min, "max": max, "ceildiv": lambda a, b: -(-a // b)}


def _evaluate(expression, names):
    """An expression of a manifest, whose syntax is a part of Python's."""
    return expression if isinstance(expression, int) else eval(expression, _FUNCTIONS, names)  # noqa: S307


class _Prepared:
    """Arguments of one kind of call (dtypes, shapes, strides) as C has them. A call puts pointers and numbers in their places."""

    def __init__(self, arguments):
        self.count = len(arguments)
        self.array = (_c.Argument * max(self.count, 1))()
        self.address = _c.ctypes.addressof(self.array)
        self.keep = []
        self.cells = []
        for i, (name, value) in enumerate(arguments):
            c = self.array[i]
            c.name = name.encode()
            at = self.address + i * _c.ctypes.sizeof(_c.Argument)
            if isinstance(value, _arrays.Array):
                rank = len(value.shape)
                shape, strides = (_c.c_int64 * rank)(*value.shape), (_c.c_int64 * rank)(*value.strides)
                c.kind, c.tensor.dtype, c.tensor.rank = _c.TENSOR, value.dtype.encode(), rank
                c.tensor.shape, c.tensor.strides = shape, strides
                self.keep += [shape, strides]
                self.cells.append(_c.ctypes.c_size_t.from_address(at + _c.Argument.tensor.offset + _c.Tensor.data.offset))
            elif value is None:  # an optional tensor that is not given
                c.kind = _c.TENSOR
                self.cells.append(_c.ctypes.c_size_t.from_address(at + _c.Argument.tensor.offset + _c.Tensor.data.offset))
            elif isinstance(value, float):
                c.kind = _c.FLOAT
                self.cells.append(_c.c_double.from_address(at + _c.Argument.float_value.offset))
            else:
                c.kind = _c.INT
                self.cells.append(_c.c_int64.from_address(at + _c.Argument.int_value.offset))


def _make_short(kernel, values, prepared, handle, index):
    """A function that launches for arguments like `values`, returning None or a status, and returns 0 for others: for tensors that libtl
    cannot read itself (_calls.py). It is written out for them: a loop, a key and a lookup would take longer than the launch."""
    names = {"cells": prepared.cells, "launch": _c.tl_kernel_launch, "handle": handle, "lock": kernel._lock}
    if index is not None:
        names["stream"] = _torch_streams()
    if kernel._is_chain:
        names["launch"] = lambda h, a, n, s: _c.tl_chain_launch(h, a, n, None, 0, s)
    tests, stores = [], []
    for i, value in enumerate(values):
        names[f"c{i}"] = prepared.cells[i]
        if value is None:
            tests.append(f"a{i} is None")
            continue
        if kernel._args[i]["kind"] == "scalar":
            if type(value) not in (int, float, bool):
                return None  # what gives a number when it is asked: the long way asks
            names[f"t{i}"] = type(value)
            tests.append(f"type(a{i}) is t{i}")
            if type(value) is int:  # a place of C would take what is left of a longer one
                tests.append(f"{-(2**63)} <= a{i} < {2**63}")
            stores.append(f"c{i}.value = a{i}")
            continue
        names[f"d{i}"], names[f"s{i}"] = value.dtype, value.shape
        tests.append(f"a{i}.dtype is d{i} and a{i}.shape == s{i}")
        if value.is_contiguous():
            tests.append(f"a{i}.is_contiguous()")
        else:
            names[f"r{i}"] = value.stride()
            tests.append(f"a{i}.stride() == r{i}")
        if index is not None and "here" not in names:  # of the others the launch says where they are
            names["here"] = i
            tests.append(f"a{i}.get_device() == {index}")
        stores.append(f"c{i}.value = a{i}.data_ptr()")
    lines = ["def short(*args):", "    with lock:", "        try:"]  # the lock keeps the places of pointers to one thread
    lines += [f"            {', '.join(f'a{i}' for i in range(len(values)))}, = args"] if values else []
    lines += [f"            if not ({' and '.join(tests) or 'not args'}):", "                return 0"]
    lines += [f"            {store}" for store in stores]
    lines += ["        except (AttributeError, ValueError, TypeError, OverflowError):", "            return 0  # no tensors, or not as many: the long way tells"]
    where = f"stream({index})" if index is not None else "None"
    lines += [f"        return launch(handle, {prepared.address}, {prepared.count}, {where})"]
    exec("\n".join(lines), names)  # noqa: S102
    names["short"].prepared = prepared  # which owns what the address is of
    return names["short"]


def _raise_unless_argument(status):
    """Raises what a status of a launch says; of arguments that do not fit the long way tells."""
    try:
        _c.check(status)
    except Error as error:
        if error.code != "INVALID_ARGUMENT":
            raise


def _unpickle(ptx, ordinal, diagnostics):
    return Kernel(ptx, None if ordinal is None else gpu(ordinal), diagnostics)


class Kernel:
    """A compiled kernel or chain. Call it with the arguments of the spec, by position or by name; `out` arguments may be left out and are
    then allocated and returned: one alone, several as a tuple. Dynamic params that no shape tells are given by name. For an `optional` tensor
    stands None, or nothing where it is given by name.

    `ptx` and `manifest` are what was compiled, `diagnostics` the warnings."""

    def __init__(self, ptx, device, diagnostics):
        self.ptx, self.diagnostics = ptx, diagnostics
        self.manifest, entry, self.name, self._params = _manifest_of(ptx)
        self._is_chain = bool(self.manifest.get("chains"))
        self._args = [p for p in self._params if p["kind"] in ("tensor", "scalar")]
        self._dynamic = [p["name"] for p in self._params if p["kind"] in ("dynamic", "stride")]
        self._device = device
        self._loaded = {}
        self._short = None
        self._allocations = {}
        self._lock = threading.Lock()
        self.__name__ = self.name
        self.__doc__ = entry.get("doc", "")

    def __repr__(self):
        return f"<tl.Kernel {self.name} for {self.manifest['target']}: {', '.join(p['name'] for p in self._args)}>"

    def __deepcopy__(self, memo):
        return self  # modules of torch that hold one are copied

    def __reduce__(self):
        where = self._device and self._device.ordinal
        if self._device and self._device.is_emulator:
            raise TypeError(f"{self.name} was compiled for an emulator, which stays in its process")
        return _unpickle, (self.ptx, where, self.diagnostics)

    def _load(self, device):
        handles = self._loaded.get(device)
        if handles is None:
            data = self.ptx.encode()
            program = _c.make("tl_program_load", device._handle, data, len(data))
            weakref.finalize(self, _destroy, program, device)
            handles = _c.make("tl_program_chain" if self._is_chain else "tl_program_kernel", program, None)
            self._loaded[device] = handles
        return handles

    def _launch(self, handle, prepared, stream, library=_c):
        if self._is_chain:
            status = library.tl_chain_launch(handle, prepared.address, prepared.count, None, 0, stream)
        else:
            status = library.tl_kernel_launch(handle, prepared.address, prepared.count, stream)
        if status:
            _c.check(status)

    def __call__(self, *args, **named):
        if not named:
            short = self._short  # the short way: tensors as in the last call
            if short is not None:
                status = short(*args)
                if status is None:
                    return None
                if status:
                    _raise_unless_argument(status)
            made = self._outputs(args)
            if made is not None:
                return made
        return self._call(args, named, named.pop("stream", None))

    def _outputs(self, args):
        """Allocates the outputs of a call with inputs as before, and calls with all."""
        try:
            plan = self._allocations.get(tuple((a.dtype, a.shape, a.stride(), a.device) if hasattr(a, "data_ptr") else type(a) for a in args))
        except (AttributeError, TypeError):
            return None
        if plan is None:
            return None
        import torch

        full, made, rest = [], [], iter(args)
        for entry in plan:
            if entry is None:
                full.append(next(rest))
            else:
                made.append(torch.empty(entry[0], dtype=entry[1], device=entry[2]))
                full.append(made[-1])
        self(*full)
        return made[0] if len(made) == 1 else tuple(made)

    def _remember(self, args, given, arrays, made, prepared, handle, index):
        """The short way for calls as this one, where all arrays are torch tensors."""
        if not all(_arrays.is_torch(a.owner) for a in arrays.values()):
            return
        names = [p["name"] for p in self._args]
        values = [given[n] for n in names]
        if len(prepared.cells) == len(names):  # no dynamic name was given
            tensors = [given[p["name"]] for p in self._args if p["kind"] == "tensor"]
            self._short = tensors and _calls.make(handle, self._is_chain, tensors) or _make_short(self, values, prepared, handle, index)
        if made is not None and not any(n in self._dynamic for n in given):
            key = tuple((a.dtype, a.shape, a.stride(), a.device) if hasattr(a, "data_ptr") else type(a) for a in args)
            missing = {id(m) for m in (made if isinstance(made, tuple) else (made,))}
            if len(self._allocations) > 256:
                self._allocations.clear()
            if len(args) + len(missing) == len(names):
                self._allocations[key] = [(tuple(v.shape), v.dtype, v.device) if id(v) in missing else None for v in values]

    # ---- the long way

    def _given(self, args, named):
        given = {}
        names = [p["name"] for p in self._args]
        if len(args) > len(names):
            raise TypeError(f"{self.name} takes {len(names)} arguments ({', '.join(names)}), {len(args)} were given")
        # By position `out` arguments may be left out: then the others are in order.
        required = [p["name"] for p in self._args if p.get("access") != "out" or p.get("optional")]
        positions = names if len(args) > len(required) or len(names) == len(required) else required
        for name, value in list(zip(positions, args)) + list(named.items()):
            if name not in names and name not in self._dynamic:
                raise TypeError(f"{self.name} has no argument '{name}': it takes {', '.join(names + self._dynamic)}")
            if name in given:
                raise TypeError(f"argument '{name}' of {self.name} is given twice")
            given[name] = self._number(name, "i64", value) if name in self._dynamic else value
        return given

    def _describe(self, given, stream):
        arrays = {}
        for p in self._args:
            if p["kind"] != "tensor" or p["name"] not in given or (p.get("optional") and given[p["name"]] is None):
                continue
            try:
                arrays[p["name"]] = _arrays.describe(given[p["name"]], stream)
            except TypeError as error:
                raise TypeError(f"argument '{p['name']}' of {self.name}: {error}") from None
            if arrays[p["name"]].is_readonly and p["access"] != "in":
                raise TypeError(f"argument '{p['name']}' of {self.name} is written, and the array is read-only")
        return arrays

    def _names(self, given, arrays):
        """Dynamic names: from the shapes, which a launch compares with what was given."""
        names = {}
        told = [(p, arrays[p["name"]]) for p in self._args if p["name"] in arrays and len(arrays[p["name"]].shape) == len(p["dims"])]
        for key, values in (("dims", lambda a: a.shape), ("strides", lambda a: a.strides)):  # sizes first: a stride of one row may be anything
            for p, array in told:
                for expression, value in zip(p[key], values(array)):
                    if expression in self._dynamic:
                        names.setdefault(expression, value)
        return {**{n: given[n] for n in self._dynamic if n in given}, **names}

    def _allocate(self, given, arrays, stream):
        made = []
        missing = [p for p in self._args if p["name"] not in given]
        for p in missing:
            if p.get("optional"):
                given[p["name"]] = None
                continue
            if p.get("access") != "out":
                raise TypeError(f"argument '{p['name']}' of {self.name} is missing")
            if not arrays:
                raise TypeError(f"argument '{p['name']}' of {self.name} is missing, and there is no other array to make it like")
            names = self._names(given, arrays)
            try:
                shape = [_evaluate(d, names) for d in p["dims"]]
                strides = [_evaluate(s, names) for s in p["strides"]]
            except NameError as error:
                raise TypeError(f"argument '{p['name']}' of {self.name} is missing, and its shape is not known: {error}") from None
            if tuple(strides) != _arrays.dense(shape):
                raise TypeError(f"argument '{p['name']}' of {self.name} is missing: arrays that are not dense must be given")
            given[p["name"]] = _arrays.empty_like(next(iter(arrays.values())).owner, p["dtype"], shape)
            arrays[p["name"]] = _arrays.describe(given[p["name"]], stream)
            made.append(given[p["name"]])
        return made[0] if len(made) == 1 else tuple(made) if made else None

    def _device_of(self, arrays):
        """Where the call runs, and whether arrays of the host must be copied there."""
        kinds = {a.kind for a in arrays.values()}
        if self._device is not None and self._device.is_emulator:
            if _arrays.GPU in kinds:
                raise TypeError(f"{self.name} was compiled for the emulator, which takes arrays of the host")
            return self._device
        for name, array in arrays.items():
            if array.kind == _arrays.HOST:
                raise TypeError(f"argument '{name}' of {self.name} is memory of the host; expected memory of a GPU")
        ordinals = {a.device for a in arrays.values()} - {None}
        if len(ordinals) > 1:
            raise TypeError(f"arguments of {self.name} are on several GPUs: {sorted(ordinals)}")
        return gpu(ordinals.pop()) if ordinals else self._device or gpu(0)

    def _arguments(self, given, arrays):
        arguments = []
        for p in self._args:
            name, value = p["name"], arrays.get(p["name"], given.get(p["name"]))
            if p["kind"] == "scalar":
                value = self._number(name, p["dtype"], value)
            arguments.append((name, value))
        return arguments + [(n, given[n]) for n in self._dynamic if n in given]

    def _number(self, name, dtype, value):
        """A number as C takes it."""
        is_float = dtype[0] in "ft" or dtype == "bf16"
        if isinstance(value, (str, bytes)) or value is None:
            raise TypeError(f"argument '{name}' of {self.name} is a number, not {type(value).__name__}")
        try:
            if is_float:
                return float(value)
            number = int(value)
            is_whole = number == value
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"argument '{name}' of {self.name}: {error}") from None
        if not is_whole:
            raise TypeError(f"argument '{name}' of {self.name} is a whole number, not {value}")
        bits, signed = (1, False) if dtype == "bool" else (int(dtype[1:]), dtype[0] == "i")
        least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if not least <= number <= most:
            raise Error("INVALID_ARGUMENT", f"argument '{name}' of {self.name}: expected {dtype} ({least} to {most}), given {number}")
        return number if number < 2**63 else number - 2**64  # the bits

    def _call(self, args, named, stream):
        given = self._given(args, named)
        arrays = self._describe(given, stream)
        results = self._allocate(given, arrays, stream)
        device = self._device_of(arrays)
        handle = self._load(device)
        arguments = self._arguments(given, arrays)
        if device.is_emulator:
            self._emulate(device, handle, arguments)
            return results
        prepared = _Prepared(arguments)
        for cell, (_, value) in zip(prepared.cells, arguments):
            cell.value = value.pointer if isinstance(value, _arrays.Array) else value or 0
        index = next((a.device for a in arrays.values() if _arrays.is_torch(a.owner)), None)
        if stream is None and index is not None:
            stream = _torch_stream(index)
        self._launch(handle, prepared, stream)
        if not named:
            self._remember(args, given, arrays, results, prepared, handle, index)
        return results

    def _emulate(self, device, handle, arguments):
        """Copies arrays of the host to the emulator and back."""
        copies = []
        placed = []
        try:
            for name, value in arguments:
                if isinstance(value, _arrays.Array):
                    copy = _copies.HostCopy(device, name, value)
                    copies.append((copy, next(p["access"] for p in self._args if p["name"] == name)))
                    if copies[-1][1] != "out":
                        copy.upload()
                    value = copy.array
                placed.append((name, value))
            prepared = _Prepared(placed)
            for cell, (_, value) in zip(prepared.cells, placed):
                cell.value = value.pointer if isinstance(value, _arrays.Array) else value or 0
            self._launch(handle, prepared, None, _c.without_gil)  # it may take seconds
            for copy, access in copies:
                if access != "in":
                    copy.download()
        finally:
            for copy, _ in copies:
                copy.free()


def _destroy(program, device):
    # The device must outlive the program.
    if device._close.alive:
        _c.tl_program_destroy(program)


_raw_stream = None


def _torch_streams():
    """The function that gives the current stream of a GPU, as a number."""
    global _raw_stream
    if _raw_stream is None:
        import torch

        _raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda i: torch.cuda.current_stream(i).cuda_stream)
    return _raw_stream


def _torch_stream(index):
    return _torch_streams()(index)
