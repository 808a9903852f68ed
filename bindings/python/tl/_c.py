# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libtl's C API by ctypes (include/tl)."""

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_void_p


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_char_p), ("rank", c_int32), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64))]


class Argument(Structure):
    _fields_ = [("kind", c_int), ("name", c_char_p), ("tensor", Tensor), ("int_value", c_int64), ("float_value", c_double)]


TENSOR, INT, FLOAT = 0, 1, 2


class EmulatorOptions(Structure):
    _fields_ = [("checks", c_char_p), ("landing", c_char_p), ("seed", c_uint32), ("threads", c_int), ("timeout_s", c_double), ("compute_capability", c_int), ("num_sms", c_int)]


# The interpreter's functions that libtl calls, in the order of tl_python.
PYTHON_FUNCTIONS = ("PyObject_Type", "Py_IncRef", "Py_DecRef", "PyLong_AsLongLong", "PyFloat_AsDouble", "PyLong_AsVoidPtr", "PyLong_FromVoidPtr", "PyErr_Occurred", "PyErr_Clear")


class Python(Structure):
    _fields_ = [(name, c_void_p) for name in (*PYTHON_FUNCTIONS, "none")]


class PythonCallOptions(Structure):
    _fields_ = [("python", POINTER(Python)), ("exchange", c_void_p), ("kernel", c_void_p), ("chain", c_void_p), ("types", POINTER(c_void_p)), ("num_types", c_size_t), ("device_type", c_int32), ("device", c_int32)]


_PLACE = POINTER(c_void_p)
_ARGUMENTS = POINTER(Argument)
# name: (what it returns, what it takes). "status" returns are checked by `check`.
_FUNCTIONS = {
    "tl_version": (c_char_p, []),
    "tl_status_code_of": (c_int, [c_void_p]),
    "tl_status_code_name": (c_char_p, [c_int]),
    "tl_status_message": (c_char_p, [c_void_p]),
    "tl_status_free": (None, [c_void_p]),
    "tl_compiler_create": ("status", [_PLACE]),
    "tl_compiler_destroy": (None, [c_void_p]),
    "tl_compiler_bind": ("status", [c_void_p, c_char_p, c_char_p]),
    "tl_compiler_set_target": ("status", [c_void_p, c_char_p]),
    "tl_compiler_set_target_for_device": ("status", [c_void_p, c_int]),
    "tl_compiler_set_require": ("status", [c_void_p, c_char_p]),
    "tl_compiler_set_kernel": (None, [c_void_p, c_char_p]),
    "tl_compiler_set_warning": ("status", [c_void_p, c_char_p]),
    "tl_compiler_set_remarks": (None, [c_void_p, c_int]),
    "tl_compiler_compile": ("status", [c_void_p, c_char_p, c_char_p, c_size_t, _PLACE]),
    "tl_compiler_compile_file": ("status", [c_void_p, c_char_p, _PLACE]),
    "tl_compilation_destroy": (None, [c_void_p]),
    "tl_compilation_ptx": (c_char_p, [c_void_p, c_void_p]),
    "tl_compilation_diagnostics": (c_char_p, [c_void_p, c_int]),
    "tl_device_count": ("status", [POINTER(c_int)]),
    "tl_device_open": ("status", [c_int, _PLACE]),
    "tl_device_open_emulator": ("status", [POINTER(EmulatorOptions), _PLACE]),
    "tl_device_close": (None, [c_void_p]),
    "tl_device_name": (c_char_p, [c_void_p]),
    "tl_device_compute_capability": (c_int, [c_void_p]),
    "tl_device_num_sms": (c_int, [c_void_p]),
    "tl_device_alloc": ("status", [c_void_p, c_size_t, _PLACE]),
    "tl_device_free": ("status", [c_void_p, c_void_p]),
    "tl_device_upload": ("status", [c_void_p, c_void_p, c_void_p, c_size_t]),
    "tl_device_download": ("status", [c_void_p, c_void_p, c_void_p, c_size_t]),
    "tl_stream_synchronize": ("status", [c_void_p, c_void_p]),
    "tl_program_load": ("status", [c_void_p, c_char_p, c_size_t, _PLACE]),
    "tl_program_destroy": (None, [c_void_p]),
    "tl_program_kernel": ("status", [c_void_p, c_char_p, _PLACE]),
    "tl_program_chain": ("status", [c_void_p, c_char_p, _PLACE]),
    "tl_kernel_registers": (c_int, [c_void_p]),
    "tl_kernel_local_bytes": (c_int, [c_void_p]),
    "tl_kernel_launch": ("status", [c_void_p, c_void_p, c_size_t, c_void_p]),
    "tl_kernel_check": ("status", [c_void_p, _ARGUMENTS, c_size_t]),
    "tl_python_call_create": ("status", [POINTER(PythonCallOptions), _PLACE]),
    "tl_python_call_destroy": (None, [c_void_p]),
    "tl_python_call_run": (c_void_p, [c_void_p, c_void_p, c_size_t]),
    "tl_chain_launch": ("status", [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]),
}


class Error(Exception):
    """A failure of libtl: `code` is the name of its status, "INVALID_ARGUMENT", "NO_DEVICE", "CHECK_FAILED", …"""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def text(what, value):
    """A text for C, which ends at a NUL."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is a text, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{what} holds a NUL")
    return value.encode()


def _path():
    here = os.path.dirname(os.path.abspath(__file__))
    if os.environ.get("TL_LIBRARY"):
        return os.environ["TL_LIBRARY"]
    inside = os.path.join(here, "lib", "libtl.so.0")
    return inside if os.path.exists(inside) else "libtl.so.0"


# PyDLL keeps the GIL: launches are short, and their arguments may be used again by another thread.
_library = ctypes.PyDLL(_path())
_releasing = ctypes.CDLL(_path())
_SLOW = {"tl_compiler_compile", "tl_compiler_compile_file", "tl_program_load", "tl_stream_synchronize", "tl_device_upload", "tl_device_download"}


def check(status):
    """Raises what a status says, and frees it."""
    if not status:
        return
    code = tl_status_code_of(status)
    error = Error(tl_status_code_name(code).decode(), tl_status_message(status).decode(errors="replace"))
    tl_status_free(status)
    raise error


def __getattr__(name):
    """The function `name` of the library, bound when it is first asked for."""
    if name not in _FUNCTIONS:
        raise AttributeError(name)
    returns, takes = _FUNCTIONS[name]
    function = getattr(_releasing if name in _SLOW else _library, name)
    function.argtypes = takes
    function.restype = c_void_p if returns == "status" else returns
    globals()[name] = function
    return function


class _WithoutGIL:
    """The same functions, called without the GIL: for calls that take long, whose arguments nobody else changes."""

    def __getattr__(self, name):
        returns, takes = _FUNCTIONS[name]
        function = getattr(_releasing, name)
        function.argtypes = takes
        function.restype = c_void_p if returns == "status" else returns
        return function


without_gil = _WithoutGIL()


for _name in ("tl_status_code_of", "tl_status_code_name", "tl_status_message", "tl_status_free"):
    globals()[_name] = __getattr__(_name)


def make(name, *arguments):
    """Calls a function whose last parameter is a place for a handle, and returns the handle."""
    out = c_void_p()
    check(__getattr__(name)(*arguments, byref(out)))
    return out.value
