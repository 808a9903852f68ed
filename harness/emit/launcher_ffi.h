// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What follows launcher_checks.h in files of --emit=tvm-ffi: values of tvm-ffi (its c_api.h) and DLPack tensors. The
// library libtvm_ffi is not linked: whoever loads a module has it.

typedef struct tlk_any {
  int32_t type_index;
  uint32_t padding;
  union {
    int64_t as_int;
    double as_float;
    void *as_pointer;
  } value;
} tlk_any;

typedef struct tlk_tensor {  // DLTensor
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tlk_tensor;

enum {
  TLK_FFI_NONE = 0,
  TLK_FFI_INT = 1,
  TLK_FFI_BOOL = 2,
  TLK_FFI_FLOAT = 3,
  TLK_FFI_DL_TENSOR = 7,
  TLK_FFI_TENSOR = 70,
  TLK_FFI_OBJECT_BYTES = 24,  // before the DLTensor of a tensor object
  TLK_DL_CUDA = 2,
  TLK_DL_CUDA_MANAGED = 13,
  TLK_FFI_TYPE_ERROR = -1  // of these functions alone
};

static struct {
  void (*raise)(const char *kind, const char *message);
  void *(*get_stream)(int32_t device_type, int32_t device_id);
} tlk_ffi;
static pthread_once_t tlk_ffi_once = PTHREAD_ONCE_INIT;

static void tlk_open_ffi(void) {
  void *everything = dlopen(NULL, RTLD_NOW), *functions[2] = {NULL, NULL};
  if (!everything) return;
  functions[0] = dlsym(everything, "TVMFFIErrorSetRaisedFromCStr");
  functions[1] = dlsym(everything, "TVMFFIEnvGetStream");
  memcpy(&tlk_ffi, functions, sizeof tlk_ffi);
}

// Raises the thread's last failure as an error of the kind that Python has for it.
static int tlk_ffi_failed(int code) {
  const char *kind = code == TLK_FFI_TYPE_ERROR           ? "TypeError"
                     : code == TL_KERNEL_INVALID_ARGUMENT ? "ValueError"
                     : code == TL_KERNEL_OUT_OF_MEMORY    ? "MemoryError"
                                                          : "RuntimeError";
  if (tlk_ffi.raise) tlk_ffi.raise(kind, tlk_text);
  return -1;
}

static int tlk_ffi_count(const char *kernel, int32_t given, int32_t expected) {
  if (given == expected) return 0;
  return tlk_fail(TLK_FFI_TYPE_ERROR, "%s takes %d arguments, %d were given", kernel, (int)expected, (int)given);
}

TLK_UNUSED static const char *tlk_device_kind(int32_t type) {
  return type == 1 ? "the host" : type == 3 ? "the host (pinned)" : type == 10 ? "ROCm" : "another kind of device";
}

TLK_UNUSED static const char *tlk_dtype(uint8_t code, uint8_t bits, char *text, size_t bytes) {
  static const char *const kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  snprintf(text, bytes, "%s%d", code < 7 ? kinds[code] : "float8 of another kind, ", (int)bits);
  return text;
}

TLK_UNUSED static int tlk_ffi_tensor(const tlk_any *given, const char *name, uint8_t code, uint8_t bits, int32_t rank,
                                     const tlk_tensor **out) {
  char had[48], wanted[48];
  const tlk_tensor *t = given->value.as_pointer;
  if (given->type_index == TLK_FFI_TENSOR)
    t = (const tlk_tensor *)(const void *)((const char *)given->value.as_pointer + TLK_FFI_OBJECT_BYTES);
  else if (given->type_index != TLK_FFI_DL_TENSOR || !t)
    return tlk_fail(TLK_FFI_TYPE_ERROR, "argument '%s': expected a tensor", name);
  if (t->device_type != TLK_DL_CUDA && t->device_type != TLK_DL_CUDA_MANAGED)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected memory of a GPU, given memory of %s (%d)",
                    name, tlk_device_kind(t->device_type), (int)t->device_type);
  if (t->code != code || t->bits != bits || t->lanes != 1)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected dtype %s, given %s", name,
                    tlk_dtype(code, bits, wanted, sizeof wanted), tlk_dtype(t->code, t->bits, had, sizeof had));
  if (t->ndim != rank)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected %d dimensions, given %d", name, (int)rank,
                    (int)t->ndim);
  *out = t;
  return 0;
}

TLK_UNUSED static int tlk_ffi_float(const tlk_any *given, const char *name, double *out) {
  *out = given->type_index == TLK_FFI_FLOAT ? given->value.as_float : (double)given->value.as_int;
  if (given->type_index >= TLK_FFI_INT && given->type_index <= TLK_FFI_FLOAT) return 0;
  return tlk_fail(TLK_FFI_TYPE_ERROR, "argument '%s': expected a number", name);
}

TLK_UNUSED static int tlk_ffi_int(const tlk_any *given, const char *name, int64_t least, int64_t most, int64_t *out) {
  *out = given->value.as_int;
  if (given->type_index != TLK_FFI_INT && given->type_index != TLK_FFI_BOOL)
    return tlk_fail(TLK_FFI_TYPE_ERROR, "argument '%s': expected an integer", name);
  if (*out >= least && *out <= most) return 0;
  return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected %lld to %lld, given %lld", name,
                  (long long)least, (long long)most, (long long)*out);
}

// The stride of dimension `d` in elements; tensors without strides are dense.
TLK_UNUSED static int64_t tlk_stride(const tlk_tensor *t, int32_t d) {
  int64_t step = 1;
  if (t->strides) return t->strides[d];
  for (int32_t i = t->ndim - 1; i > d; i--) step *= t->shape[i];
  return step;
}

// Whether the stride of dimension `d` is of any use.
TLK_UNUSED static int tlk_has_stride(const tlk_tensor *t, int32_t d) {
  for (int32_t i = 0; i < t->ndim; i++)
    if (t->shape[i] == 0) return 0;
  return t->shape[d] > 1;
}

// A value for a name that only strides tell which are of no use, and which may be anything: the given one where the
// name can have it, else a dense one, rounded up to the divisor.
TLK_UNUSED static int64_t tlk_unused_stride(const tlk_tensor *t, int32_t d, int64_t divisor, int64_t most) {
  int64_t given = tlk_stride(t, d), dense = 1;
  if (given >= 0 && given <= most && given % divisor == 0) return given;
  for (int32_t i = t->ndim - 1; i > d; i--) dense *= t->shape[i];
  return (dense + divisor - 1) / divisor * divisor;
}

TLK_UNUSED static int tlk_ffi_device(const tlk_tensor *t, const char *name, int32_t *device) {
  if (*device < 0) *device = t->device_id;
  if (t->device_id == *device) return 0;
  return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected memory of GPU %d, given memory of GPU %d", name,
                  (int)*device, (int)t->device_id);
}

TLK_UNUSED static void *tlk_data(const tlk_tensor *t) {
  return t->data ? (char *)t->data + t->byte_offset : NULL;
}

// Makes a context of the tensors' GPU current; `*pushed` must be taken back.
static int tlk_ffi_enter(int32_t device, int *pushed) {
  static _Atomic(tlk_context) primary[64];
  int current = -1, code = 0;
  *pushed = 0;
  pthread_once(&tlk_driver_once, tlk_open_driver);
  if (tlk_no_driver[0]) return tlk_fail(TL_KERNEL_NO_DEVICE, "%s", tlk_no_driver);
  if (device < 0 || device >= 64 || (!tlk_driver.ctx_get_device(&current) && current == device)) return 0;
  tlk_context context = atomic_load(&primary[device]);
  if (!context) code = tlk_call(tlk_driver.primary_ctx_retain(&context, device), "cuDevicePrimaryCtxRetain");
  if (!code) atomic_store(&primary[device], context);
  if (!code) code = tlk_call(tlk_driver.ctx_push_current(context), "cuCtxPushCurrent");
  *pushed = !code;
  return code;
}

static void tlk_ffi_leave(int pushed) {
  tlk_context context;
  if (pushed) tlk_driver.ctx_pop_current(&context);
}
// ---- end of the launcher for tvm-ffi
