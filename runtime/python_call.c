// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls from Python: tensors are read by the exchange functions of DLPack (dlpack.h 1.3), which give what a tensor is
// without an object in between.
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/program.h"
#include "support/status.h"
#include "tl/python.h"

// ---- dlpack.h

typedef struct exchanged_tensor {
  void *data;
  int32_t device_type, device;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;  // Borrowed from the tensor.
  uint64_t byte_offset;
} exchanged_tensor;

typedef struct exchange_functions {
  uint32_t major, minor;
  const struct exchange_functions *previous;  // of an older major version
  void *allocate, *to_managed, *from_managed;
  int (*tensor_of)(void *object, exchanged_tensor *out);  // may be NULL
  int (*current_stream)(int32_t device_type, int32_t device, void **out_stream);
} exchange_functions;

static const struct {
  uint8_t code, bits;
  const char *dtype;
} element_types[] = {{2, 32, "f32"}, {4, 16, "bf16"}, {2, 16, "f16"}, {0, 32, "i32"},    {0, 64, "i64"},
                     {1, 8, "u8"},   {0, 8, "i8"},    {6, 8, "bool"}, {10, 8, "f8e4m3"}, {12, 8, "f8e5m2"},
                     {2, 64, "f64"}, {0, 16, "i16"},  {1, 16, "u16"}, {1, 32, "u32"},    {1, 64, "u64"}};

static const char *dtype_of(const exchanged_tensor *tensor) {
  if (tensor->lanes != 1) return NULL;
  for (size_t i = 0; i < sizeof element_types / sizeof element_types[0]; i++)
    if (element_types[i].code == tensor->code && element_types[i].bits == tensor->bits) return element_types[i].dtype;
  return NULL;
}

// ---- calls

// One a process. What `self` is can be asked only with its functions.
static _Atomic(const tl_python *) interpreter;

typedef struct call_argument {
  tl_argument_kind kind;
  void *type;  // of a tensor
} call_argument;

struct tl_python_call {
  const tl_python *python;              // Borrowed.
  const exchange_functions *functions;  // Borrowed.
  tl_kernel *kernel;                    // Borrowed, as the chain; one of the two.
  tl_chain *chain;
  int32_t device_type, device;
  size_t num_arguments;
  call_argument arguments[TL_PYTHON_MAX_ARGUMENTS];
};

static const exchange_functions *functions_of(const void *exchange) {
  const exchange_functions *functions = exchange;
  while (functions && functions->major != 1) functions = functions->previous;
  return functions && functions->tensor_of && functions->current_stream ? functions : NULL;
}

tl_status tl_python_call_create(const tl_python_call_options *options, tl_python_call **out_call) {
  TL_TRY(tl_status_not_null(out_call, "out_call"));
  *out_call = NULL;
  TL_TRY(tl_status_not_null(options, "options"));
  TL_TRY(tl_status_not_null(options->python, "python"));
  TL_TRY(tl_status_not_null(options->kernel ? (void *)options->kernel : options->chain, "kernel"));
  const exchange_functions *functions = functions_of(options->exchange);
  if (!functions) return tl_status_make(TL_STATUS_UNSUPPORTED, "tensors without the exchange functions of DLPack 1.3");
  const tl_manifest_kernel *kernel = options->kernel ? options->kernel->manifest : &options->chain->manifest->signature;
  tl_python_call made = {.python = options->python,
                         .functions = functions,
                         .kernel = options->kernel,
                         .chain = options->chain,
                         .device_type = options->device_type,
                         .device = options->device};
  size_t types = 0;
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const tl_manifest_param *param = &kernel->params[i];
    if (param->kind != TL_MPARAM_TENSOR && param->kind != TL_MPARAM_SCALAR) continue;
    if (made.num_arguments == TL_PYTHON_MAX_ARGUMENTS)
      return tl_status_make(TL_STATUS_UNSUPPORTED, "more than %d arguments", TL_PYTHON_MAX_ARGUMENTS);
    call_argument *argument = &made.arguments[made.num_arguments++];
    argument->kind = param->kind == TL_MPARAM_TENSOR   ? TL_ARGUMENT_TENSOR
                     : tl_dtype_is_float(param->dtype) ? TL_ARGUMENT_FLOAT
                                                       : TL_ARGUMENT_INT;
    if (argument->kind != TL_ARGUMENT_TENSOR) continue;
    if (types == options->num_types)
      return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "'%s' has more tensors than types were given", kernel->name);
    argument->type = options->types[types++];
  }
  *out_call = malloc(sizeof **out_call);
  if (!*out_call) return tl_status_out_of_memory();
  **out_call = made;
  atomic_store_explicit(&interpreter, options->python, memory_order_release);
  return TL_OK;
}

void tl_python_call_destroy(tl_python_call *call) {
  free(call);
}

// False: it is no tensor of the call's.
static bool read_tensor(const tl_python_call *call, void *type, void *object, tl_tensor *out) {
  void *given = call->python->object_type(object);
  call->python->dec_ref(given);
  if (given != type) return false;
  exchanged_tensor tensor;
  if (call->functions->tensor_of(object, &tensor) != 0) {
    call->python->error_clear();
    return false;
  }
  if (tensor.device_type != call->device_type || tensor.device != call->device) return false;
  out->dtype = dtype_of(&tensor);
  if (!out->dtype) return false;
  out->data = (char *)tensor.data + tensor.byte_offset;
  out->rank = tensor.rank;
  out->shape = tensor.shape;
  out->strides = tensor.strides;
  return true;
}

static bool read_number(const tl_python_call *call, void *object, tl_argument *out) {
  bool failed;
  if (out->kind == TL_ARGUMENT_FLOAT) {
    out->float_value = call->python->float_as_double(object);
    failed = out->float_value == -1.0 && call->python->error_occurred();
  } else {
    out->int_value = call->python->long_as_long_long(object);
    failed = out->int_value == -1 && call->python->error_occurred();
  }
  if (failed) call->python->error_clear();
  return !failed;
}

// False: the arguments are no such call.
static bool run(const tl_python_call *call, void *const *objects, ptrdiff_t num_objects, tl_status *out_status) {
  tl_argument arguments[TL_PYTHON_MAX_ARGUMENTS];
  if (num_objects != (ptrdiff_t)call->num_arguments) return false;
  for (size_t i = 0; i < call->num_arguments; i++) {
    const call_argument *wanted = &call->arguments[i];
    arguments[i] = (tl_argument){.kind = wanted->kind};
    bool is_read = wanted->kind == TL_ARGUMENT_TENSOR
                       ? read_tensor(call, wanted->type, objects[i], &arguments[i].tensor)
                       : read_number(call, objects[i], &arguments[i]);
    if (!is_read) return false;
  }
  void *stream = NULL;
  if (call->functions->current_stream(call->device_type, call->device, &stream) != 0) {
    call->python->error_clear();
    return false;
  }
  *out_status = call->kernel ? tl_kernel_launch(call->kernel, arguments, call->num_arguments, stream)
                             : tl_chain_launch(call->chain, arguments, call->num_arguments, NULL, 0, stream);
  return true;
}

void *tl_python_call_run(void *self, void *const *arguments, ptrdiff_t num_arguments) {
  const tl_python *python = atomic_load_explicit(&interpreter, memory_order_acquire);
  tl_status status = TL_OK;
  bool is_such = run(python->long_as_pointer(self), arguments, num_arguments, &status);
  if (!is_such || status) return python->long_from_pointer(status);
  python->inc_ref(python->none);
  return python->none;
}
