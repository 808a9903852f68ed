// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The launcher that follows is the same in every file that tl-llc generates: the driver by dlopen, images loaded once a
// context, checks of pointers, tensor maps. Nothing in it ends the process.
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TLK_UNUSED __attribute__((unused))

enum { TLK_MAX_CONTEXTS = 64, TLK_MAX_MAPS = 4, TLK_SEEN = 256, TLK_LOG_BYTES = 8192 };

// ---- failures

static _Thread_local char tlk_text[1024];  // of the calling thread's last failure

__attribute__((format(printf, 2, 3))) static int tlk_fail(int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(tlk_text, sizeof tlk_text, format, arguments);
  va_end(arguments);
  return code;
}

// ---- the driver (CUDA driver API)

typedef unsigned int tlk_result;
typedef unsigned long long tlk_address;
typedef struct CUctx_st *tlk_context;

typedef struct tlk_launch_attribute {
  unsigned int id;
  char padding[4];
  union {
    unsigned int cluster[3];
    char bytes[64];
  } value;
} tlk_launch_attribute;

typedef struct tlk_launch_config {
  unsigned int grid[3], block[3];
  unsigned int shared_bytes;
  tl_stream stream;
  tlk_launch_attribute *attributes;
  unsigned int num_attributes;
} tlk_launch_config;

static struct {
  tlk_result (*init)(unsigned int);
  tlk_result (*get_error_name)(tlk_result, const char **);
  tlk_result (*get_error_string)(tlk_result, const char **);
  tlk_result (*device_get)(int *, int);
  tlk_result (*device_get_count)(int *);
  tlk_result (*device_get_attribute)(int *, unsigned int, int);
  tlk_result (*primary_ctx_retain)(tlk_context *, int);
  tlk_result (*ctx_push_current)(tlk_context);
  tlk_result (*ctx_pop_current)(tlk_context *);
  tlk_result (*ctx_get_current)(tlk_context *);
  tlk_result (*ctx_get_device)(int *);
  tlk_result (*exchange_capture_mode)(unsigned int *);
  tlk_result (*module_load_data_ex)(void **, const void *, unsigned int, unsigned int *, void **);
  tlk_result (*module_unload)(void *);
  tlk_result (*module_get_function)(void **, void *, const char *);
  tlk_result (*func_set_attribute)(void *, unsigned int, int);
  tlk_result (*occupancy)(int *, void *, int, size_t);
  tlk_result (*pointer_get_attributes)(unsigned int, unsigned int *, void **, tlk_address);
  tlk_result (*launch_kernel)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                              unsigned int, unsigned int, tl_stream, void **, void **);
  tlk_result (*mem_alloc)(tlk_address *, size_t);
  tlk_result (*stream_create)(tl_stream *, unsigned int);
  tlk_result (*stream_destroy)(tl_stream);
  tlk_result (*stream_synchronize)(tl_stream);
  tlk_result (*memset_d8_async)(tlk_address, unsigned char, size_t, tl_stream);
  // Of newer drivers: NULL where there is none.
  tlk_result (*ctx_get_id)(tlk_context, unsigned long long *);
  tlk_result (*launch_kernel_ex)(const tlk_launch_config *, void *, void **, void **);
  tlk_result (*tensor_map_encode_tiled)(void *, unsigned int, uint32_t, void *, const uint64_t *, const uint64_t *,
                                        const uint32_t *, const uint32_t *, unsigned int, unsigned int, unsigned int,
                                        unsigned int);
  tlk_result (*tensor_map_encode_im2col)(void *, unsigned int, uint32_t, void *, const uint64_t *, const uint64_t *,
                                         const int *, const int *, uint32_t, uint32_t, const uint32_t *, unsigned int,
                                         unsigned int, unsigned int, unsigned int);
} tlk_driver;
static pthread_once_t tlk_driver_once = PTHREAD_ONCE_INIT;
static char tlk_no_driver[512];  // why there is none; empty when there is

static const char *tlk_error_text(tlk_result result, const char **name) {
  const char *text = NULL;
  *name = NULL;
  if (tlk_driver.get_error_name(result, name) || !*name) *name = "an unknown error";
  if (tlk_driver.get_error_string(result, &text) || !text) text = "no description";
  return text;
}

static void tlk_open_driver(void) {
  static const char *const symbols[] = {"cuInit",
                                        "cuGetErrorName",
                                        "cuGetErrorString",
                                        "cuDeviceGet",
                                        "cuDeviceGetCount",
                                        "cuDeviceGetAttribute",
                                        "cuDevicePrimaryCtxRetain",
                                        "cuCtxPushCurrent_v2",
                                        "cuCtxPopCurrent_v2",
                                        "cuCtxGetCurrent",
                                        "cuCtxGetDevice",
                                        "cuThreadExchangeStreamCaptureMode",
                                        "cuModuleLoadDataEx",
                                        "cuModuleUnload",
                                        "cuModuleGetFunction",
                                        "cuFuncSetAttribute",
                                        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                                        "cuPointerGetAttributes",
                                        "cuLaunchKernel",
                                        "cuMemAlloc_v2",
                                        "cuStreamCreate",
                                        "cuStreamDestroy_v2",
                                        "cuStreamSynchronize",
                                        "cuMemsetD8Async",
                                        "cuCtxGetId",
                                        "cuLaunchKernelEx",
                                        "cuTensorMapEncodeTiled",
                                        "cuTensorMapEncodeIm2col"};
  enum { COUNT = sizeof symbols / sizeof symbols[0], OPTIONAL = 4 };
  _Static_assert(sizeof tlk_driver == COUNT * sizeof(void *), "a symbol for each function");
  const char *path = getenv("TL_CUDA_DRIVER");
  if (!path || !*path) path = "libcuda.so.1";
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *functions[COUNT];
  if (!library) {
    const char *why = dlerror();
    snprintf(tlk_no_driver, sizeof tlk_no_driver, "the NVIDIA driver library cannot be loaded: %s", why ? why : path);
    return;
  }
  for (int i = 0; i < COUNT; i++) {
    functions[i] = dlsym(library, symbols[i]);
    if (functions[i] || i >= COUNT - OPTIONAL) continue;
    snprintf(tlk_no_driver, sizeof tlk_no_driver, "the NVIDIA driver is too old: %s has no %s", path, symbols[i]);
    return;
  }
  memcpy(&tlk_driver, functions, sizeof tlk_driver);
  tlk_result result = tlk_driver.init(0);
  if (!result) return;
  const char *name, *text = tlk_error_text(result, &name);
  snprintf(tlk_no_driver, sizeof tlk_no_driver, "cuInit failed: %u %s (%s)", result, name, text);
}

// 0, or a failure that names the call.
static int tlk_call(tlk_result result, const char *call) {
  if (!result) return 0;
  const char *name, *text = tlk_error_text(result, &name);
  int code = result == 2 ? TL_KERNEL_OUT_OF_MEMORY : TL_KERNEL_DRIVER;
  return tlk_fail(code, "%s failed: %u %s (%s)", call, result, name, text);
}

// ---- images, loaded once a context

typedef struct tlk_kernel {
  const char *name;
  unsigned int block_threads, dynamic_shared_bytes, shared_bytes;  // shared_bytes: all of it
  unsigned int cluster[3];
} tlk_kernel;

typedef struct tlk_variant {
  const char *target;
  int capability;  // major * 10 + minor
  char kind;       // 'a': that capability alone; 'f': its family; ' ': it and newer ones
  const void *ptx, *cubin;
  const tlk_kernel *kernels;
} tlk_variant;

typedef struct tlk_module {
  tlk_context context;
  unsigned long long context_id;
  void *module;
  int variant, device, num_sms;
  _Atomic tlk_address empty;  // memory for tensor maps of tensors without elements: 0 until it is needed
  struct {
    void *function;
    int64_t resident_blocks;  // on the whole device
  } kernels[TLK_NUM_KERNELS];
} tlk_module;

static tlk_module tlk_modules[TLK_MAX_CONTEXTS];
static _Atomic int tlk_num_modules;
static pthread_mutex_t tlk_lock = PTHREAD_MUTEX_INITIALIZER;
static const tlk_variant tlk_variants[TLK_NUM_VARIANTS];

static int tlk_fits(const tlk_variant *variant, int capability) {
  if (variant->kind == 'a') return capability == variant->capability;
  if (variant->kind == 'f' && capability / 10 != variant->capability / 10) return 0;
  return capability >= variant->capability;
}

static int tlk_choose(tlk_module *made, int capability) {
  made->variant = -1;
  for (int i = 0; i < TLK_NUM_VARIANTS; i++) {
    if (!tlk_fits(&tlk_variants[i], capability)) continue;
    int had = made->variant < 0 ? 0 : 2 * tlk_variants[made->variant].capability;
    int is_specific = tlk_variants[i].kind != ' ';
    if (2 * tlk_variants[i].capability + is_specific > had) made->variant = i;
  }
  if (made->variant >= 0) return 0;
  char targets[256] = "";
  for (int i = 0; i < TLK_NUM_VARIANTS; i++)
    snprintf(targets + strlen(targets), sizeof targets - strlen(targets), "%s%s", i ? ", " : "",
             tlk_variants[i].target);
  return tlk_fail(TL_KERNEL_UNSUPPORTED, "compiled for %s: nothing of it runs on a GPU of sm_%d", targets, capability);
}

// The cubin where it is of the GPU's architecture and the driver takes it, else the PTX.
static int tlk_load_image(tlk_module *made, int capability) {
  const tlk_variant *variant = &tlk_variants[made->variant];
  int has_cubin = variant->cubin && variant->capability / 10 == capability / 10;
  if (has_cubin && !tlk_driver.module_load_data_ex(&made->module, variant->cubin, 0, NULL, NULL)) return 0;
  char *log = calloc(1, TLK_LOG_BYTES);
  if (!log) return tlk_fail(TL_KERNEL_OUT_OF_MEMORY, "out of memory");
  unsigned int options[] = {5, 6};  // CU_JIT_ERROR_LOG_BUFFER, …_SIZE_BYTES
  void *values[2] = {log};
  const uintptr_t bytes = TLK_LOG_BYTES;
  memcpy(&values[1], &bytes, sizeof bytes);
  tlk_result result = tlk_driver.module_load_data_ex(&made->module, variant->ptx, 2, options, values);
  int code = tlk_call(result, "cuModuleLoadDataEx");
  log[TLK_LOG_BYTES - 1] = '\0';
  if (code && log[0]) {
    size_t used = strlen(tlk_text);
    snprintf(tlk_text + used, sizeof tlk_text - used, "\n%s", log);
  }
  free(log);
  return code;
}

static int tlk_load_kernels(tlk_module *made) {
  const tlk_variant *variant = &tlk_variants[made->variant];
  int code, most = 0;
  code = tlk_call(tlk_driver.device_get_attribute(&most, 97, made->device), "cuDeviceGetAttribute");
  for (int i = 0; !code && i < TLK_NUM_KERNELS && variant->kernels[i].name; i++) {
    const tlk_kernel *kernel = &variant->kernels[i];
    void *function = NULL;
    int blocks = 0;
    if (kernel->shared_bytes > (unsigned int)most)
      return tlk_fail(TL_KERNEL_UNSUPPORTED, "%s needs %u bytes of shared memory, the GPU has %d", kernel->name,
                      kernel->shared_bytes, most);
    int is_cluster = kernel->cluster[0] * kernel->cluster[1] * kernel->cluster[2] > 1;
    if (is_cluster && !tlk_driver.launch_kernel_ex)
      return tlk_fail(TL_KERNEL_UNSUPPORTED, "the driver is too old for clusters: it has no cuLaunchKernelEx");
    code = tlk_call(tlk_driver.module_get_function(&function, made->module, kernel->name), "cuModuleGetFunction");
    if (!code && kernel->dynamic_shared_bytes)
      code =
          tlk_call(tlk_driver.func_set_attribute(function, 8, (int)kernel->dynamic_shared_bytes), "cuFuncSetAttribute");
    if (!code)
      code = tlk_call(tlk_driver.occupancy(&blocks, function, (int)kernel->block_threads, kernel->dynamic_shared_bytes),
                      "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    made->kernels[i].function = function;
    made->kernels[i].resident_blocks = (int64_t)blocks * made->num_sms;
  }
  return code;
}

static int tlk_load(tlk_module *made) {
  int major = 0, minor = 0, code = tlk_call(tlk_driver.ctx_get_device(&made->device), "cuCtxGetDevice");
  if (!code) code = tlk_call(tlk_driver.device_get_attribute(&major, 75, made->device), "cuDeviceGetAttribute");
  if (!code) code = tlk_call(tlk_driver.device_get_attribute(&minor, 76, made->device), "cuDeviceGetAttribute");
  if (!code) code = tlk_call(tlk_driver.device_get_attribute(&made->num_sms, 16, made->device), "cuDeviceGetAttribute");
  if (!code) code = tlk_choose(made, major * 10 + minor);
  if (!code) code = tlk_load_image(made, major * 10 + minor);
  if (code) return code;
  code = tlk_load_kernels(made);
  if (code) tlk_driver.module_unload(made->module);
  return code;
}

static tlk_module *tlk_find(tlk_context context, unsigned long long id) {
  int count = atomic_load_explicit(&tlk_num_modules, memory_order_acquire);
  for (int i = 0; i < count; i++)
    if (tlk_modules[i].context == context && tlk_modules[i].context_id == id) return &tlk_modules[i];
  return NULL;
}

// Loading allocates and may wait, which the recording of a graph forbids unless this thread says that it knows.
static int tlk_load_for(tlk_context context, unsigned long long id, tlk_module **out) {
  unsigned int mode = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
  int code = 0;
  pthread_mutex_lock(&tlk_lock);
  *out = tlk_find(context, id);
  int count = atomic_load(&tlk_num_modules);
  if (!*out && count == TLK_MAX_CONTEXTS) {
    code = tlk_fail(TL_KERNEL_UNSUPPORTED, "more than %d contexts", TLK_MAX_CONTEXTS);
  } else if (!*out) {
    tlk_module *made = &tlk_modules[count];
    memset(made, 0, sizeof *made);
    made->context = context;
    made->context_id = id;
    tlk_driver.exchange_capture_mode(&mode);
    code = tlk_load(made);
    tlk_driver.exchange_capture_mode(&mode);
    if (!code) {
      *out = made;
      atomic_store_explicit(&tlk_num_modules, count + 1, memory_order_release);
    }
  }
  pthread_mutex_unlock(&tlk_lock);
  return code;
}

// A thread without a context gets the primary one of GPU 0, as from the CUDA runtime.
static int tlk_default_context(tlk_context *out) {
  int count = 0, device = 0, code = tlk_call(tlk_driver.device_get_count(&count), "cuDeviceGetCount");
  if (!code && count == 0) code = tlk_fail(TL_KERNEL_NO_DEVICE, "the driver finds no GPU");
  if (!code) code = tlk_call(tlk_driver.device_get(&device, 0), "cuDeviceGet");
  if (!code) code = tlk_call(tlk_driver.primary_ctx_retain(out, device), "cuDevicePrimaryCtxRetain");
  return code ? code : tlk_call(tlk_driver.ctx_push_current(*out), "cuCtxPushCurrent");
}

// What is loaded in the current context.
static int tlk_enter(tlk_module **out) {
  tlk_context context = NULL;
  unsigned long long id = 0;
  pthread_once(&tlk_driver_once, tlk_open_driver);
  if (tlk_no_driver[0]) return tlk_fail(TL_KERNEL_NO_DEVICE, "%s", tlk_no_driver);
  int code = tlk_call(tlk_driver.ctx_get_current(&context), "cuCtxGetCurrent");
  if (!code && !context) code = tlk_default_context(&context);
  // A context that was destroyed and another one may have the same address.
  if (!code && tlk_driver.ctx_get_id) code = tlk_call(tlk_driver.ctx_get_id(context, &id), "cuCtxGetId");
  if (code) return code;
  *out = tlk_find(context, id);
  return *out ? 0 : tlk_load_for(context, id, out);
}

static void tlk_unload(void) {
  pthread_mutex_lock(&tlk_lock);
  int count = atomic_exchange(&tlk_num_modules, 0);
  for (int i = 0; i < count; i++) {
    tlk_context context = NULL;
    tlk_driver.ctx_get_current(&context);
    if (context == tlk_modules[i].context) tlk_driver.module_unload(tlk_modules[i].module);
  }
  pthread_mutex_unlock(&tlk_lock);
}
