# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The module over libtl's emulator, with arrays of the standard library. TL_LIBRARY names libtl.so."""

import array
import copy
import ctypes
import os
import pickle
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tl  # noqa: E402

KERNELS = os.path.join(HERE, "..", "..", "kernels")
SPEC = """
kernel: scale
params: {M: dynamic, N: 8}
args:
  X: in f32[M, N]
  by: f32
  Y: out f32[M, N]
  Z: out f32[M]
grid: {bx: M}
threads: 32
body:
  - parallel: i in N
    do:
      - Y[bx, i] = X[bx, i] * by
  - parallel: i in 1
    do:
      - Z[bx] = by
"""

SCALED = """
kernel: scaled
params: {dtype: f32}
args:
  X: inout dtype[32]
threads: 32
body:
  - parallel: i in 32
    do:
      - X[i] = X[i] * 2
"""

OPTIONAL = """
kernel: biased
params: {N: 8}
args:
  X: in f32[N]
  b: in f32[N] optional
  Y: out f32[N]
threads: 32
body:
  - parallel: i in N
    do:
      - Y[i] = X[i] + (b[i] if present(b) else 100)
"""


COUNTED = """
kernel: counted
args:
  X: inout f32[8]
  n: i64
threads: 32
body:
  - parallel: i in 8
    do:
      - X[i] += cast(n, f32)
"""

ROWS = """
kernel: rows
params: {M: dynamic, ld: dynamic}
args:
  X: in f32[M, 4]
  Y: out f32[M, 4] strides(ld, 1)
grid: {bx: M}
threads: 32
body:
  - parallel: i in 4
    do:
      - Y[bx, i] = X[bx, i] + 1
"""


class HostArray:
    """What NumPy's arrays are for the module."""

    def __init__(self, values, shape, strides=None, is_readonly=False, typestr="<f4"):
        self.values = array.array("f", values)
        steps = strides and tuple(4 * s for s in strides)
        self.__array_interface__ = {"shape": shape, "strides": steps, "typestr": typestr, "data": (self.values.buffer_info()[0], is_readonly), "version": 3}


class Binding(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = tl.emulator()
        cls.add = tl.compile(os.path.join(KERNELS, "vector_add.yaml"), device=cls.device)
        cls.a = array.array("f", range(1000))
        cls.sum = [2.0 * v for v in cls.a]

    def refuses(self, kind, says, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(says, str(caught.exception))
        return caught.exception

    def test_require(self):
        matmul = os.path.join(KERNELS, "matmul.yaml")
        self.refuses(tl.CompileError, "this gemm does not run on wgmma, as --require=wgmma asks",
                     lambda: tl.compile(matmul, device=self.device, target="sm_80", require="wgmma"))
        kernel = tl.compile(matmul, device=self.device, target="sm_90a", require=["tma", "wgmma"])
        self.assertIn("wgmma.mma_async", kernel.ptx)
        self.refuses(tl.Error, "nothing is called 'speed'", lambda: tl.compile(matmul, device=self.device, require="speed"))

    def test_optional(self):
        kernel = tl.compile_text(OPTIONAL, device=self.device)
        x, b, y = array.array("f", range(8)), array.array("f", [2.0] * 8), array.array("f", bytes(32))
        self.assertEqual(list(kernel(x, b)), [v + 2 for v in x])
        self.assertEqual(list(kernel(x, None)), [v + 100 for v in x])
        kernel(X=x, Y=y)
        self.assertEqual(list(y), [v + 100 for v in x])
        self.refuses(TypeError, "argument 'X' of biased", lambda: kernel(None, b))

    def test_calls(self):
        self.assertEqual(list(self.add(self.a, self.a)), self.sum)
        c = array.array("f", bytes(4000))
        self.assertIsNone(self.add(self.a, self.a, c))
        self.assertEqual(list(c), self.sum)
        self.assertEqual(list(self.add(B=self.a, A=self.a)), self.sum)
        self.assertEqual(len(self.add(array.array("f"), array.array("f"))), 0)
        self.assertIn("vector_add for sm_90a: A, B, C", repr(self.add))
        self.assertIn("C = A + B", self.add.__doc__)

    def test_outputs_scalars_and_strides(self):
        k = tl.compile_text(SPEC, device=self.device)
        x = memoryview(array.array("f", range(24))).cast("B").cast("f", (3, 8))
        y, z = k(x, 2)
        self.assertEqual((y.shape, list(z)), ((3, 8), [2.0] * 3))
        self.assertEqual(y.tolist(), [[2.0 * v for v in row] for row in x.tolist()])
        self.assertEqual(y.tolist(), k(X=x, by=2.0)[0].tolist())
        self.refuses(tl.Error, "dimension 1: expected 8", lambda: k(x.cast("B").cast("f", (4, 6)), 2))

    def test_memory_between_rows(self):
        """What lies between the elements of an output is not the kernel's, and stays."""
        k, x = tl.compile_text(ROWS, device=self.device), HostArray(range(12), (3, 4))
        y = HostArray([7] * 22, (3, 4), (9, 1))
        k(x, y)
        rows = [[1.0 + 4 * m + i for i in range(4)] for m in range(3)]
        self.assertEqual(list(y.values), rows[0] + [7] * 5 + rows[1] + [7] * 5 + rows[2])
        self.assertEqual(tl._arrays.runs((3, 4), (9, 1)), ([0, 9, 18], 4))
        self.assertEqual(tl._arrays.runs((4, 3), (1, 4)), ([0], 12))  # a transpose
        self.assertEqual(tl._arrays.runs((2, 1, 3), (6, 1, 2)), ([0, 2, 4, 6, 8, 10], 1))
        self.refuses(TypeError, "argument 'X' has negative strides", lambda: k(HostArray(range(12), (3, 4), (-4, 1)), y))

    def test_strides_of_one_row(self):
        """They may be anything, as torch has them, and tell no size."""
        k = tl.compile_text(SPEC.replace("N: 8", "N: dynamic").replace("i in N", "i in 32"), device=self.device)
        y, z = HostArray([0] * 8, (1, 8), (1, 1)), HostArray([0], (1,), (7,))
        k(HostArray(range(8), (1, 8), (1, 1)), 2, y, z)
        self.assertEqual(list(y.values), [2.0 * v for v in range(8)])
        self.refuses(tl.Error, "argument 'X': stride of dimension 0: expected 4 (N of argument 'X'), given 1",
                     lambda: k(HostArray(range(8), (2, 4), (1, 2)), 2, y, z))

    def test_arrays_that_cannot_be_written(self):
        k, x = tl.compile_text(ROWS, device=self.device), HostArray(range(12), (3, 4), is_readonly=True)
        for y in (HostArray([0] * 12, (3, 4), is_readonly=True), memoryview(bytes(48)).cast("f", (3, 4))):
            self.refuses(TypeError, "argument 'Y' of rows is written, and the array is read-only", lambda: k(x, y))

    def test_numbers(self):
        k, x = tl.compile_text(COUNTED, device=self.device), array.array("f", range(8))
        for n in (3, 3.0, True):
            k(x, n)
        self.assertEqual(list(x), [i + 7.0 for i in range(8)])
        self.refuses(TypeError, "argument 'n' of counted is a whole number, not 1.5", lambda: k(x, 1.5))
        self.refuses(TypeError, "argument 'n' of counted: cannot convert float NaN", lambda: k(x, float("nan")))
        self.refuses(TypeError, "argument 'n' of counted is a number, not str", lambda: k(x, "3"))
        self.refuses(TypeError, "argument 'n' of counted is a number, not NoneType", lambda: k(x, None))
        error = self.refuses(tl.Error, "argument 'n' of counted: expected i64", lambda: k(x, 2**64 + 1))
        self.assertEqual(error.code, "INVALID_ARGUMENT")
        self.refuses(tl.Error, "argument 'N' of vector_add: expected i64", lambda: self.add(A=self.a, B=self.a, N=2**65 + 1000))
        self.refuses(tl.Error, "argument 'A': dimension 0: expected 1073741824 (N), given 1000", lambda: self.add(A=self.a, B=self.a, N=2**30))
        wide = tl.compile_text(COUNTED.replace("i64", "u64"), device=self.device)
        wide(x, 2**64 - 1)
        self.assertEqual(x[0], 2.0**64)
        self.refuses(tl.Error, "expected u64 (0 to 18446744073709551615), given -1", lambda: wide(x, -1))

    def test_params(self):
        k = tl.compile(os.path.join(KERNELS, "row_sum.yaml"), device=self.device, M=4, N=100, dtype="f32")
        x = memoryview(array.array("f", [1] * 400)).cast("B").cast("f", (4, 100))
        self.assertEqual(list(k(x)), [100.0] * 4)
        self.assertEqual(k.manifest["kernels"][0]["name"], "row_sum")
        again = tl.load(k.ptx, device=self.device)
        self.assertEqual(list(again(x)), [100.0] * 4)

    def test_mistakes_of_calls(self):
        c = array.array("f", bytes(4000))
        self.refuses(TypeError, "takes 3 arguments (A, B, C), 4 were given", lambda: self.add(c, c, c, c))
        self.refuses(TypeError, "argument 'B' of vector_add is missing", lambda: self.add(c))
        self.refuses(TypeError, "has no argument 'Q': it takes A, B, C, N", lambda: self.add(A=c, Q=c))
        self.refuses(TypeError, "argument 'A' of vector_add is given twice", lambda: self.add(c, c, A=c))
        self.refuses(TypeError, "argument 'B' of vector_add: a int is no array", lambda: self.add(c, 3, c))
        error = self.refuses(tl.Error, "argument 'B': expected dtype f32, given f64", lambda: self.add(c, array.array("d", c), c))
        self.assertEqual(error.code, "INVALID_ARGUMENT")
        self.refuses(tl.Error, "argument 'B': dimension 0: expected 1000", lambda: self.add(c, c[:5], c))

    def test_mistakes_of_specs(self):
        wrong = "kernel: x\nargs:\n  A: in f32[M]\n"
        error = self.refuses(tl.CompileError, "spec:3:13: error: unknown name `M`", lambda: tl.compile_text(wrong, name="spec", device=self.device))
        self.assertIn("    A: in f32[M]\n              ^", str(error))
        self.assertEqual((error.code, error.diagnostics[0]["line"], error.diagnostics[0]["code"]), ("DIAGNOSTICS", 3, "TL0250"))
        error = self.refuses(tl.Error, "cannot open none.yaml", lambda: tl.compile("none.yaml", device=self.device))
        self.assertEqual(error.code, "NOT_FOUND")
        self.refuses(tl.Error, "unknown target 'sm_8'", lambda: tl.compile_text(SPEC, target="sm_8", device=self.device))
        self.refuses(tl.Error, "there is no check 'x'", lambda: tl.emulator(checks="x"))

    def test_what_is_given_to_compile(self):
        class Dtype:  # of torch
            itemsize = 2
            __str__ = lambda self: "torch.float16"

        for dtype in ("f16", "float16", Dtype(), type("float16", (), {})):
            k = tl.compile_text(SCALED, device=self.device, dtype=dtype)
            self.assertEqual(k.manifest["kernels"][0]["params"][0]["dtype"], "f16")
        for path in ("a\0b.yaml", b"a\0b"):
            self.refuses(ValueError, "the path holds a NUL", lambda: tl.compile(path, device=self.device))
        self.refuses(ValueError, "target holds a NUL", lambda: tl.compile_text(SPEC, target="sm_80\0", device=self.device))
        self.refuses(TypeError, "target is a text, not int", lambda: tl.compile_text(SPEC, target=90, device=self.device))
        self.refuses(TypeError, "not 'cuda'", lambda: tl.compile_text(SPEC, device="cuda"))
        self.assertEqual(tl.compile_text(SPEC.encode(), device=self.device, warnings="none").name, "scale")

    def test_other_threads_go_on(self):
        """A launch on the emulator takes long, and does not hold the interpreter meanwhile."""
        n = 1 << 19
        a, done, seen = array.array("f", bytes(4 * n)), [], 0
        thread = threading.Thread(target=lambda: (self.add(a, a), done.append(True)))
        thread.start()
        while not done:
            time.sleep(0.001)
            seen += 1
        thread.join()
        self.assertGreater(seen, 10)  # with the interpreter held a few, before and behind the launch

    def test_loading(self):
        class Path(os.PathLike):
            __fspath__ = lambda self: "/nonexistent/x.ptx"

        self.assertEqual(tl.load(self.add.ptx.encode(), device=self.device).name, "vector_add")
        self.refuses(FileNotFoundError, "/nonexistent/x.ptx", lambda: tl.load(Path(), device=self.device))
        for text in (".version 8.0\n", "// {}\n", "// []\n", '// {"kernels": []}\n', '// {"kernels": [1]}\n'):
            error = self.refuses(tl.Error, "this is no PTX of tl-llc", lambda: tl.load(text, device=self.device))
            self.assertEqual(error.code, "INVALID_ARGUMENT")

    def test_copies(self):
        """A module of torch that holds a kernel is copied and sent to other processes."""
        self.assertIs(copy.deepcopy({"k": self.add})["k"], self.add)
        self.refuses(TypeError, "compiled for an emulator", lambda: pickle.dumps(self.add))
        again = pickle.loads(pickle.dumps(tl.Kernel(self.add.ptx, None, [])))
        self.assertEqual((again.ptx, again.name), (self.add.ptx, "vector_add"))

    def test_findings(self):
        """What the emulator finds is an Error, with the report as its text."""
        k = tl.compile_text(SPEC.replace("    do:\n      - Y", "    do:\n      - assert: X[bx, i] < 20\n      - Y"), device=self.device)
        x = memoryview(array.array("f", range(24))).cast("B").cast("f", (3, 8))
        error = self.refuses(tl.Error, "assertion", lambda: k(x, 2))
        self.assertEqual(error.code, "CHECK_FAILED")
        self.assertEqual(list(k(x[:2], 2)[1]), [2.0] * 2)

    def test_arrays(self):
        class Interface:
            __cuda_array_interface__ = {"shape": (2, 3), "typestr": "<f2", "data": (4096, False), "strides": (12, 4), "version": 3}

        found = tl._arrays.describe(Interface())
        self.assertEqual((found.pointer, found.dtype, found.shape, found.strides, found.kind), (4096, "f16", (2, 3), (6, 2), tl._arrays.GPU))
        self.refuses(TypeError, "takes arrays of the host", lambda: self.add(Interface(), self.a, self.a))
        for typestr, says in ((">f4", "elements of type >f4, which are big-endian"), ("<c8", "elements of type <c8")):
            Interface.__cuda_array_interface__ = dict(Interface.__cuda_array_interface__, typestr=typestr)
            self.refuses(TypeError, says, lambda: tl._arrays.describe(Interface()))
        self.assertEqual(tl._arrays.dense((2, 3, 4)), (12, 4, 1))

    def test_tensors_that_no_pointer_leads_to(self):
        class Tensor:
            dtype, shape, is_cuda, is_cpu, layout, device = "torch.float32", (2,), False, True, "torch.strided", "cpu"
            data_ptr, stride, is_neg = lambda self: 0, lambda self: (1,), lambda self: False

        for changes, says in (
            ({"is_cpu": False, "device": "xpu:0"}, "memory of the device 'xpu:0'; expected CUDA"),
            ({"layout": "torch.sparse_coo"}, "a tensor of the layout torch.sparse_coo"),
            ({"is_nested": True}, "a nested tensor"),
            ({"is_neg": lambda self: True}, "a view of negated elements"),
            ({}, "a tensor without memory"),
        ):
            tensor = type("Tensor", (Tensor,), changes)()
            self.refuses(TypeError, f"argument 'A' of vector_add: {says}", lambda: self.add(tensor, tensor, tensor))


class Tensor:
    """What the module asks of a tensor of torch, in memory of the GPU that the driver has (the emulated one)."""

    def __init__(self, values, shape=None, strides=None):
        self.host = array.array("f", values)
        self.shape = tuple(shape or (len(self.host),))
        self.strides = strides or tl._arrays.dense(self.shape)
        self.dtype, self.is_cuda, self.device = "torch.float32", True, type("Device", (), {"index": 0})()
        self.pointer = tl._c.make("tl_device_alloc", tl.gpu(0)._handle, max(self.host.itemsize * len(self.host), 4))
        self.put(values)

    def put(self, values):
        self.host = array.array("f", values)
        tl._c.check(tl._c.tl_device_upload(tl.gpu(0)._handle, self.pointer, self.host.buffer_info()[0], 4 * len(self.host)))

    def get(self):
        tl._c.check(tl._c.tl_device_download(tl.gpu(0)._handle, self.host.buffer_info()[0], self.pointer, 4 * len(self.host)))
        return list(self.host)

    def __bool__(self):
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def __eq__(self, other):
        raise RuntimeError("a comparison of tensors is a tensor")

    __hash__ = object.__hash__

    def data_ptr(self):
        return self.pointer

    def stride(self):
        return self.strides

    def get_device(self):
        return 0

    def is_contiguous(self):
        return self.strides == tl._arrays.dense(self.shape)


def exchange_functions(tensor_of, current_stream, major=1, previous=None):
    """A capsule of DLPack's exchange functions, which stays for ever."""
    tensor_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(tl._arrays._DLTensor))
    stream_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))

    class Functions(ctypes.Structure):
        _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("managed", ctypes.c_void_p * 3),
                    ("tensor_of", tensor_type), ("current_stream", stream_type)]  # fmt: skip

    functions = Functions(major, 3, previous, (ctypes.c_void_p * 3)(), tensor_type(tensor_of), stream_type(current_stream))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    FakeTorch.kept.append(functions)
    return functions, new(ctypes.addressof(functions), b"dlpack_exchange_api", None)


class ExchangedTensor(Tensor):
    """One that libtl reads itself."""

    lanes = 1

    def __dlpack_device__(self):
        return 2, 0

    @staticmethod
    def read(value, out):
        rank = len(value.shape)
        if not hasattr(value, "kept"):
            value.kept = [(ctypes.c_int64 * rank)(*numbers) for numbers in (value.shape, value.strides)]
        t = out.contents
        t.data, t.device_type, t.device_id, t.ndim, t.code, t.bits, t.lanes = value.pointer, 2, value.get_device(), rank, 2, 32, value.lanes
        t.shape, t.strides, t.byte_offset = value.kept[0], value.kept[1], 0
        return 0

    @staticmethod
    def stream(kind, device, out):
        FakeTorch.streams += 1
        out[0] = None
        return 0


class FakeTorch:
    kept = []
    float32 = "torch.float32"
    streams = 0

    @staticmethod
    def empty(shape, dtype, device):
        count = 1
        for extent in shape:
            count *= extent
        return FakeTorch.Tensor([0.0] * count, shape)

    class _C:
        @staticmethod
        def _cuda_getCurrentRawStream(index):
            FakeTorch.streams += 1
            return 0


newest, _ = exchange_functions(ExchangedTensor.read, ExchangedTensor.stream)
# A later version of the table, which only leads to the one that is known.
ExchangedTensor.__dlpack_c_exchange_api__ = exchange_functions(lambda *_: 1, lambda *_: 1, 2, ctypes.addressof(newest))[1]


@unittest.skipUnless(os.environ.get("TL_CUDA_DRIVER"), "needs the emulated driver")
class Torch(unittest.TestCase):
    """Calls with tensors of torch: the long way first, then the short one."""

    Tensor = Tensor

    @classmethod
    def setUpClass(cls):
        sys.modules["torch"] = FakeTorch
        FakeTorch.Tensor = cls.Tensor
        cls.add = tl.compile(os.path.join(KERNELS, "vector_add.yaml"))

    @classmethod
    def tearDownClass(cls):
        del sys.modules["torch"]

    def test_calls(self):
        a, b, c = (self.Tensor(range(100)) for _ in range(3))
        for factor in (1, 2, 3):
            a.put([factor * i for i in range(100)])
            self.add(a, b, c)
            self.assertEqual(c.get(), [(factor + 1.0) * i for i in range(100)])
            self.assertIsNotNone(self.add._short)
        self.add(c, c, a)  # other memory
        self.assertEqual(a.get(), [8.0 * i for i in range(100)])
        before = FakeTorch.streams
        self.add(a, b, c, stream=0)
        self.assertEqual(FakeTorch.streams, before)
        self.add(a, b, c)
        self.assertEqual(FakeTorch.streams, before + 1)

    def test_other_shapes(self):
        a, b, c, d = (self.Tensor(range(n)) for n in (100, 100, 100, 50))
        self.add(a, b, c)
        with self.assertRaises(tl.Error) as caught:
            self.add(a, d, c)
        self.assertIn("argument 'B': dimension 0: expected 100", str(caught.exception))
        self.add(a, b, c)
        wide = self.Tensor(range(200), (100,), (2,))
        with self.assertRaises(tl.Error) as caught:
            self.add(a, wide, c)
        self.assertIn("stride of dimension 0: expected 1", str(caught.exception))
        with self.assertRaises(TypeError):
            self.add(a, b, 3)
        self.add(d, d, self.Tensor(range(50)))
        self.add(a, b, c)
        self.assertEqual(c.get(), [2.0 * i for i in range(100)])

    def test_outputs(self):
        a = self.Tensor(range(100))
        for _ in range(3):
            self.assertEqual(self.add(a, a).get(), [2.0 * i for i in range(100)])
        self.assertEqual(len(self.add._allocations), 1)
        k = tl.compile_text(SPEC)
        x = self.Tensor(range(24), (3, 8))
        for by in (2, 3.5, 2):
            y, z = k(x, by)
            self.assertEqual((z.get(), y.shape), ([float(by)] * 3, (3, 8)))

    def test_memory_of_the_host(self):
        with self.assertRaises(TypeError) as caught:
            self.add(array.array("f", [1]), array.array("f", [1]), array.array("f", [1]))
        self.assertIn("argument 'A' of vector_add is memory of the host; expected memory of a GPU", str(caught.exception))


class ExchangedTorch(Torch):
    """The same calls with tensors that libtl reads itself."""

    Tensor = ExchangedTensor

    def test_short_way(self):
        a, b, c, d = (self.Tensor(range(n)) for n in (100, 100, 100, 50))
        self.add(a, b, c)
        short = self.add._short
        self.assertEqual(type(short).__name__, "builtin_function_or_method")
        self.assertIsNone(short(a, b, c))
        self.assertIsNone(short(d, d, d))  # other shapes are the same call
        self.assertEqual(d.get(), [2.0 * i for i in range(50)])
        self.assertEqual((short(a, b), short(a, b, c, c), short(a, b, 3), short(a, b, Tensor(range(100)))), (0, 0, 0, 0))
        status = short(a, d, c)
        self.assertEqual(tl._c.tl_status_code_name(tl._c.tl_status_code_of(status)), b"INVALID_ARGUMENT")
        tl._c.tl_status_free(status)
        b.lanes = 2
        self.assertEqual(short(a, b, c), 0)
        b.lanes = 1
        b.get_device = lambda: 1
        self.assertEqual(short(a, b, c), 0)

    def test_numbers(self):
        k = tl.compile_text(SPEC)
        x, y, z = self.Tensor(range(24), (3, 8)), self.Tensor(range(24), (3, 8)), self.Tensor(range(3))
        k(x, 2, y, z)
        self.assertIsNone(k._short(x, 3.5, y, z))
        self.assertEqual(z.get(), [3.5] * 3)
        self.assertIsNone(k._short(x, -1, y, z))
        self.assertEqual(z.get(), [-1.0] * 3)
        self.assertEqual(k._short(x, "2", y, z), 0)
        with self.assertRaises(TypeError):
            k(x, "2", y, z)

    def test_long_numbers(self):
        """A number that C has no place for is refused in every way, never cut off."""
        k = tl.compile_text(COUNTED)
        x = self.Tensor(range(8))
        for n in (1, 2):
            k(x, n)
        for n in (2**64 + 1, -(2**63) - 1):
            with self.assertRaises(tl.Error) as caught:
                k(x, n)
            self.assertIn("argument 'n' of counted: expected i64 (-9223372036854775808 to 9223372036854775807), given", str(caught.exception))
        self.assertEqual(x.get(), [i + 3.0 for i in range(8)])

    def test_scalars_of_other_kinds(self):
        """What is a number when it is asked, such as a tensor of one element, is asked at every call."""
        k, made = tl.compile_text(COUNTED), []

        class Number:
            __int__ = lambda self: 5
            __eq__ = lambda self, other: other == 5
            data_ptr = lambda self: made.append(self)
            is_cuda, dtype, shape = True, "torch.int64", ()

        x = self.Tensor(range(8))
        for _ in range(3):
            k(x, Number())
        self.assertEqual((x.get(), made), ([i + 15.0 for i in range(8)], []))

    def test_others_stay_on_the_old_way(self):
        class Older(self.Tensor):
            __dlpack_c_exchange_api__ = exchange_functions(lambda *_: 1, lambda *_: 1, 0)[1]

        class Numbered(self.Tensor):
            __dlpack_c_exchange_api__ = 4096  # an address, as before DLPack 1.3

        for kind in (Older, Numbered):
            a = kind(range(100))
            self.add(a, a, a)
            self.assertEqual(type(self.add._short).__name__, "function")
            self.add(a, a, a)
            self.assertEqual(a.get(), [4.0 * i for i in range(100)])


if __name__ == "__main__":
    unittest.main()
