# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls whose tensors libtl reads itself, by DLPack's exchange functions (include/tl/python.h): a builtin function of the
interpreter, made over libtl's, so that no tensor is looked at in Python and ctypes is not on the way."""

import ctypes
import functools
import sys
import weakref

from . import _c

_METH_FASTCALL = 0x80


class _Method(ctypes.Structure):  # PyMethodDef
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def _address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


@functools.lru_cache(maxsize=None)
def _interpreter():
    """What libtl needs of the interpreter, and the method: kept for ever. None: another one than CPython."""
    if sys.implementation.name != "cpython":
        return None
    python = _c.Python(*(_address(getattr(ctypes.pythonapi, name)) for name in _c.PYTHON_FUNCTIONS), id(None))
    return python, _Method(b"launch", _address(_c.tl_python_call_run), _METH_FASTCALL, None)


@functools.lru_cache(maxsize=None)
def _exchange(kind):
    """The address of the exchange functions for tensors of the type `kind`, or None."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if type(capsule).__name__ != "PyCapsule":
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, b"dlpack_exchange_api")


def make(handle, is_chain, tensors):
    """A function that launches what `handle` is for arguments with `tensors` (in order) like these. It returns None, 0 where the
    arguments are no such call, else a status. None: not for such tensors."""
    interpreter, kinds = _interpreter(), [type(t) for t in tensors]
    exchanges = {_exchange(kind) for kind in kinds}
    if not interpreter or len(exchanges) != 1 or None in exchanges:
        return None
    types = (ctypes.c_void_p * len(kinds))(*(id(kind) for kind in kinds))
    device_type, device = tensors[0].__dlpack_device__()
    options = _c.PythonCallOptions(ctypes.pointer(interpreter[0]), exchanges.pop(), None if is_chain else handle, handle if is_chain else None, types, len(kinds), int(device_type), device)
    try:
        call = _c.make("tl_python_call_create", options)
    except _c.Error as error:
        if error.code != "UNSUPPORTED":
            raise
        return None
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function = new(ctypes.addressof(interpreter[1]), call, None)
    # The types must stay, too: libtl compares addresses.
    weakref.finalize(function, _destroy, call, kinds).atexit = False
    return function


def _destroy(call, kinds):
    _c.tl_python_call_destroy(call)
