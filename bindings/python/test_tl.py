# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The module over libtl's emulator, with arrays of the standard library. TL_LIBRARY names libtl.so."""

import array
import os
import sys
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
        for typestr, says in ((">f4", "elements of type >f4"), ("<c8", "elements of type <c8")):
            Interface.__cuda_array_interface__ = dict(Interface.__cuda_array_interface__, typestr=typestr)
            self.refuses(TypeError, says, lambda: tl._arrays.describe(Interface()))
        self.assertEqual(tl._arrays.dense((2, 3, 4)), (12, 4, 1))


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


class FakeTorch:
    float32 = "torch.float32"
    streams = 0

    @staticmethod
    def empty(shape, dtype, device):
        count = 1
        for extent in shape:
            count *= extent
        return Tensor([0.0] * count, shape)

    class _C:
        @staticmethod
        def _cuda_getCurrentRawStream(index):
            FakeTorch.streams += 1
            return 0


@unittest.skipUnless(os.environ.get("TL_CUDA_DRIVER"), "needs the emulated driver")
class Torch(unittest.TestCase):
    """Calls with tensors of torch: the long way first, then the short one."""

    @classmethod
    def setUpClass(cls):
        sys.modules["torch"] = FakeTorch
        cls.add = tl.compile(os.path.join(KERNELS, "vector_add.yaml"))

    @classmethod
    def tearDownClass(cls):
        del sys.modules["torch"]

    def test_calls(self):
        a, b, c = (Tensor(range(100)) for _ in range(3))
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
        a, b, c, d = (Tensor(range(n)) for n in (100, 100, 100, 50))
        self.add(a, b, c)
        with self.assertRaises(tl.Error) as caught:
            self.add(a, d, c)
        self.assertIn("argument 'B': dimension 0: expected 100", str(caught.exception))
        self.add(a, b, c)
        wide = Tensor(range(200), (100,), (2,))
        with self.assertRaises(tl.Error) as caught:
            self.add(a, wide, c)
        self.assertIn("stride of dimension 0: expected 1", str(caught.exception))
        with self.assertRaises(TypeError):
            self.add(a, b, 3)
        self.add(d, d, Tensor(range(50)))
        self.add(a, b, c)
        self.assertEqual(c.get(), [2.0 * i for i in range(100)])

    def test_outputs(self):
        a = Tensor(range(100))
        for _ in range(3):
            self.assertEqual(self.add(a, a).get(), [2.0 * i for i in range(100)])
        self.assertEqual(len(self.add._allocations), 1)
        k = tl.compile_text(SPEC)
        x = Tensor(range(24), (3, 8))
        for by in (2, 3.5, 2):
            y, z = k(x, by)
            self.assertEqual((z.get(), y.shape), ([float(by)] * 3, (3, 8)))

    def test_memory_of_the_host(self):
        with self.assertRaises(TypeError) as caught:
            self.add(array.array("f", [1]), array.array("f", [1]), array.array("f", [1]))
        self.assertIn("argument 'A' of vector_add is memory of the host; expected memory of a GPU", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
