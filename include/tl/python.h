// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launching from Python without reading tensors in Python: for bindings/python, which reaches libtl by ctypes. libtl
// does not link Python: what it needs of the interpreter it is given as addresses. The interpreter's lock is held in
// every call.
#ifndef TL_PYTHON_H
#define TL_PYTHON_H

#include "tl/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// Functions of the interpreter's C API (its stable ABI), by the names that they have there. Objects are PyObject *.
typedef struct tl_python {
  void *(*object_type)(void *object);            // PyObject_Type
  void (*inc_ref)(void *object);                 // Py_IncRef
  void (*dec_ref)(void *object);                 // Py_DecRef
  long long (*long_as_long_long)(void *object);  // PyLong_AsLongLong
  double (*float_as_double)(void *object);       // PyFloat_AsDouble
  void *(*long_as_pointer)(void *object);        // PyLong_AsVoidPtr
  void *(*long_from_pointer)(void *pointer);     // PyLong_FromVoidPtr
  void *(*error_occurred)(void);                 // PyErr_Occurred
  void (*error_clear)(void);                     // PyErr_Clear
  void *none;                                    // Py_None
} tl_python;

// Calls of one kernel or chain with tensors of one library by position.
typedef struct tl_python_call tl_python_call;

enum { TL_PYTHON_MAX_ARGUMENTS = 32 };

typedef struct tl_python_call_options {
  const tl_python *python;  // Borrowed; one a process, for ever.
  // The library's functions: the DLPackExchangeAPI behind `__dlpack_c_exchange_api__` of its tensors' type (dlpack.h
  // 1.3). Borrowed.
  const void *exchange;
  tl_kernel *kernel;  // either this
  tl_chain *chain;    // or this; the other one NULL. Borrowed.
  // The exact type of each tensor of the arguments in order, whose `exchange` it is. `num_types` of them. Borrowed.
  void *const *types;
  size_t num_types;
  int32_t device_type, device;  // where all of them are, as DLPack numbers it: 2 and the number of the GPU
} tl_python_call_options;

// UNSUPPORTED: the library lacks what is needed, or there are too many arguments.
TL_API TL_MUST_USE tl_status tl_python_call_create(const tl_python_call_options *options, tl_python_call **out_call);
TL_API void tl_python_call_destroy(tl_python_call *call);
// The function of a PyMethodDef with METH_FASTCALL, whose self is the call's address as an int. Checks and launches on
// the library's current stream as tl_kernel_launch and tl_chain_launch do. Returns None; the int 0 where the arguments
// are no such call (other types, another device, another number of them), and nothing was done; else the tl_status as
// an int, which the caller owns.
TL_API void *tl_python_call_run(void *self, void *const *arguments, ptrdiff_t num_arguments);

#ifdef __cplusplus
}
#endif
#endif
