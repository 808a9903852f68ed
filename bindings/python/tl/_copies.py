# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of the host on their way to the emulator and back."""

import ctypes

from . import _arrays, _c


class HostCopy:
    """Memory of the emulator for an array of the host: what lies between its first and its last element."""

    def __init__(self, device, name, host):
        self.device, self.host = device, host
        if any(s < 0 for s in host.strides):
            raise TypeError(f"argument '{name}' has negative strides: the emulator takes none")
        last = sum((n - 1) * s for n, s in zip(host.shape, host.strides))
        self.element = _arrays.dtype_bytes(host.dtype)
        self.bytes = 0 if 0 in host.shape else (last + 1) * self.element
        pointer = _c.make("tl_device_alloc", device._handle, self.bytes) if self.bytes else 0
        self.array = _arrays.Array(pointer, host.dtype, host.shape, host.strides, _arrays.GPU, None, None)

    def upload(self):
        _c.check(_c.tl_device_upload(self.device._handle, self.array.pointer, self.host.pointer, self.bytes))

    def download(self):
        """Brings the elements. What lies between them is not the array's: it stays as it is."""
        starts, length = _arrays.runs(self.host.shape, self.host.strides)
        if length * self.element >= self.bytes:
            _c.check(_c.tl_device_download(self.device._handle, self.host.pointer, self.array.pointer, self.bytes))
            return
        buffer = ctypes.create_string_buffer(self.bytes)
        address = ctypes.addressof(buffer)
        _c.check(_c.tl_device_download(self.device._handle, address, self.array.pointer, self.bytes))
        for start in starts:
            at = start * self.element
            ctypes.memmove(self.host.pointer + at, address + at, length * self.element)

    def free(self):
        _c.check(_c.tl_device_free(self.device._handle, self.array.pointer))
