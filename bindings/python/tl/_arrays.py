# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an array of another library is: pointer, dtype, shape, strides in elements, device."""

import ctypes
import functools

HOST, GPU = 1, 2  # kinds of devices, as DLPack numbers them

_NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool",
}  # fmt: skip
_BY_LETTERS = {
    "f8": "f64", "f4": "f32", "f2": "f16", "i8": "i64", "i4": "i32", "i2": "i16", "i1": "i8", "u8": "u64", "u4": "u32", "u2": "u16", "u1": "u8", "b1": "bool",
}  # fmt: skip
LONG_NAMES = {short: long for long, short in _NAMES.items()}
# Names of dtypes of torch, numpy and others, as specs have them.
SHORT_NAMES = _NAMES
_BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "f8e4m3": 8, "f8e5m2": 8, "bool": 8}


def dtype_bytes(dtype):
    return (_BITS.get(dtype) or int(dtype[1:])) // 8


class Array:
    """A borrowed view: `owner` keeps the memory."""

    __slots__ = ("pointer", "dtype", "shape", "strides", "kind", "device", "owner", "memory", "is_readonly")

    def __init__(self, pointer, dtype, shape, strides, kind, device, owner, is_readonly=False):
        self.pointer, self.dtype, self.shape, self.strides = pointer, dtype, tuple(shape), tuple(strides)
        self.kind, self.device, self.owner, self.is_readonly = kind, device, owner, is_readonly


def dense(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def runs(shape, strides):
    """The elements of an array as runs of neighbours: where they start, and the length of each."""
    dims = sorted((s, n) for n, s in zip(shape, strides) if n != 1)
    length = 1
    while dims and dims[0][0] == length:
        length *= dims.pop(0)[1]
    starts = [0]
    for stride, extent in reversed(dims):
        starts = [start + i * stride for start in starts for i in range(extent)]
    return starts, length


# ---- DLPack (dlpack.h)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
# Codes of dtypes: signed, unsigned, float, …; 8-bit floats since DLPack 1.1.
_CODES = {0: "i", 1: "u", 2: "f", 4: "bf"}
_SPECIAL = {6: "bool", 10: "f8e4m3", 12: "f8e5m2"}


def _from_dlpack(value, stream):
    kind, device = value.__dlpack_device__()
    kind = {3: HOST, 13: GPU}.get(kind, kind)  # pinned and managed memory
    if kind not in (HOST, GPU):
        raise TypeError(f"memory of a device of kind {kind} (DLPack); expected CUDA")
    # The stream on which the data must be ready; of host memory there is none.
    capsule = value.__dlpack__(stream=stream if stream else 1) if kind == GPU else value.__dlpack__()
    t = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    dtype = _SPECIAL.get(t.code) or _CODES.get(t.code, "?") + str(t.bits)
    if t.lanes != 1:
        raise TypeError(f"elements of {t.lanes} lanes")
    shape = t.shape[: t.ndim]
    strides = t.strides[: t.ndim] if t.strides else dense(shape)
    return Array((t.data or 0) + t.byte_offset, dtype, shape, strides, kind, device, (value, capsule))


# ---- __cuda_array_interface__, __array_interface__


def _from_interface(value, interface, kind):
    name = getattr(getattr(value, "dtype", None), "name", None)
    letters, (pointer, is_readonly) = interface["typestr"], interface["data"]
    dtype = _NAMES.get(name) or _BY_LETTERS.get(letters[1:])
    if letters[0] == ">":
        raise TypeError(f"elements of type {letters}, which are big-endian")
    if not dtype:
        raise TypeError(f"elements of type {name or letters}")
    shape, step = interface["shape"], dtype_bytes(dtype)
    strides = interface.get("strides")
    if strides and any(s % step for s in strides):
        raise TypeError("strides that are not multiples of an element")
    strides = [s // step for s in strides] if strides else dense(shape)
    return Array(pointer or 0, dtype, shape, strides, kind, None, value, is_readonly)


# ---- buffers of Python: memory of the host, for the emulator

_FORMATS = {"d": "f64", "f": "f32", "e": "f16", "q": "i64", "l": "i64", "i": "i32", "h": "i16", "b": "i8", "Q": "u64", "L": "u64", "I": "u32", "H": "u16", "B": "u8", "?": "bool"}


def _from_buffer(value):
    view = memoryview(value)
    dtype = _FORMATS.get(view.format)
    if not dtype or (view.format in "lL" and view.itemsize != 8):
        raise TypeError(f"elements of the format '{view.format}'")
    if view.readonly:
        memory = ctypes.create_string_buffer(view.tobytes(), max(view.nbytes, 1))
    else:
        memory = (ctypes.c_char * view.nbytes).from_buffer(view.cast("B")) if view.nbytes else None
    strides = [s // view.itemsize for s in view.strides]
    pointer = ctypes.addressof(memory) if memory is not None else 0
    made = Array(pointer, dtype, view.shape, strides, HOST, None, value, view.readonly)
    made.memory = memory
    return made


@functools.lru_cache(maxsize=None)
def _torch_dtype(dtype):
    return _NAMES.get(str(dtype).rpartition(".")[2])


def is_torch(value):
    return hasattr(value, "data_ptr") and hasattr(value, "is_cuda")


def _from_torch(value):
    """What torch alone has is refused: its pointers do not lead to the elements that it shows."""
    dtype = _torch_dtype(value.dtype)
    if not dtype:
        raise TypeError(f"elements of type {value.dtype}")
    if getattr(value, "is_nested", False):
        raise TypeError("a nested tensor, which has no shape")
    if getattr(value, "layout", None) is not None and str(value.layout) != "torch.strided":
        raise TypeError(f"a tensor of the layout {value.layout}; expected torch.strided, as of to_dense()")
    if not value.is_cuda and not getattr(value, "is_cpu", True):
        raise TypeError(f"memory of the device '{value.device}'; expected CUDA")
    if getattr(value, "is_neg", bool)():
        raise TypeError("a view of negated elements; resolve_neg() gives their values")
    pointer = value.data_ptr()
    if not pointer and 0 not in value.shape:
        raise TypeError("a tensor without memory, as tracing has them: an operator of torch.library is called with real ones")
    return Array(pointer, dtype, value.shape, value.stride(), GPU if value.is_cuda else HOST, value.device.index, value)


def describe(value, stream=None):
    """The Array that `value` is. TypeError: it is none that can be used."""
    if isinstance(value, Array):
        return value
    if is_torch(value):
        return _from_torch(value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(value, interface, GPU)
    interface = getattr(value, "__array_interface__", None)
    if interface is not None:
        return _from_interface(value, interface, HOST)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, stream)
    try:
        return _from_buffer(value)
    except TypeError as error:
        if isinstance(value, (bytes, bytearray, memoryview)) or hasattr(value, "typecode"):
            raise error
    raise TypeError(f"a {type(value).__name__} is no array: it has neither DLPack nor an array interface")


def empty_like(model, dtype, shape):
    """A new array of the library that `model` is of."""
    library = type(model).__module__.partition(".")[0]
    if is_torch(model):
        import torch

        return torch.empty(shape, dtype=getattr(torch, LONG_NAMES[dtype]), device=model.device)
    if library == "cupy":
        import cupy

        return cupy.empty(shape, dtype=LONG_NAMES[dtype])
    if library in ("numpy", "ml_dtypes"):
        import numpy

        return numpy.empty(shape, dtype=getattr(model, "dtype", None) if dtype == "bf16" else LONG_NAMES[dtype])
    formats = {short: letter for letter, short in reversed(_FORMATS.items())}
    if library in ("builtins", "array") and dtype in formats:
        count = 1
        for extent in shape:
            count *= extent
        view = memoryview(bytearray(count * dtype_bytes(dtype)))
        return view.cast(formats[dtype], shape) if count else view.cast(formats[dtype])
    raise TypeError(f"an output must be given: no array of {library} can be made for it")
