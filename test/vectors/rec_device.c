// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The GPU through the CUDA driver library, found at run time; or a directory into which kernels go as PTX text.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

typedef unsigned long long device_pointer;

static struct {
  int (*init)(unsigned);
  int (*device_get)(int *, int);
  int (*context_retain)(void **, int);
  int (*context_set)(void *);
  int (*module_load)(void **, const void *, unsigned, int *, void **);
  int (*get_function)(void **, void *, const char *);
  int (*alloc)(device_pointer *, size_t);
  int (*to_device)(device_pointer, const void *, size_t);
  int (*to_host)(void *, device_pointer, size_t);
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
  int (*synchronize)(void);
  int (*encode_tiled)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                      const uint32_t *, int, int, int, int);
  int (*encode_im2col)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const int *, const int *,
                       uint32_t, uint32_t, const uint32_t *, int, int, int, int);
} cuda;

enum { IN_MAX = 512 * REC_MAX_OPERANDS * 8, MODULES = 4096, LOG = 4096 };
static device_pointer in_at, out_at, shared_at, global_at;
static const char *directory;
static struct {
  uint64_t hash;
  void *function;  // NULL: refused
} modules[MODULES];
static uint32_t num_modules;

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (!found) fprintf(stderr, "record: the driver has no %s\n", name);
  return found;
}

static bool check(int code, const char *what) {
  if (code) fprintf(stderr, "record: %s: CUDA error %d\n", what, code);
  return !code;
}

static bool load_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "record: %s\n", dlerror());
    return false;
  }
  struct {
    void *to;
    const char *name;
  } wanted[] = {{&cuda.init, "cuInit"},
                {&cuda.device_get, "cuDeviceGet"},
                {&cuda.context_retain, "cuDevicePrimaryCtxRetain"},
                {&cuda.context_set, "cuCtxSetCurrent"},
                {&cuda.module_load, "cuModuleLoadDataEx"},
                {&cuda.get_function, "cuModuleGetFunction"},
                {&cuda.alloc, "cuMemAlloc_v2"},
                {&cuda.to_device, "cuMemcpyHtoD_v2"},
                {&cuda.to_host, "cuMemcpyDtoH_v2"},
                {&cuda.launch, "cuLaunchKernel"},
                {&cuda.synchronize, "cuCtxSynchronize"},
                {&cuda.encode_tiled, "cuTensorMapEncodeTiled"},
                {&cuda.encode_im2col, "cuTensorMapEncodeIm2col"}};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    void *found = symbol(library, wanted[i].name);
    if (!found) return false;
    memcpy(wanted[i].to, &found, sizeof found);
  }
  return true;
}

static bool open_context(void) {
  int device = 0;
  void *context = NULL;
  return check(cuda.device_get(&device, 0), "cuDeviceGet") &&
         check(cuda.context_retain(&context, device), "cuDevicePrimaryCtxRetain") &&
         check(cuda.context_set(context), "cuCtxSetCurrent") && check(cuda.alloc(&in_at, IN_MAX), "cuMemAlloc") &&
         check(cuda.alloc(&out_at, IN_MAX), "cuMemAlloc") &&
         check(cuda.alloc(&shared_at, 4 * REC_SHARED_MAX), "cuMemAlloc") &&
         check(cuda.alloc(&global_at, REC_GLOBAL_MAX), "cuMemAlloc");
}

bool rec_device_open(const char *ptx_directory) {
  directory = ptx_directory;
  return directory || (load_driver() && check(cuda.init(0), "cuInit") && open_context());
}

static uint64_t hash_of(const char *text) {
  uint64_t hash = 1469598103934665603u;
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 1099511628211u;
  return hash;
}

static void *compile(const char *ptx) {
  static char log[LOG];
  int options[] = {5, 6};  // CU_JIT_ERROR_LOG_BUFFER and its size
  void *values[] = {log, (void *)(uintptr_t)LOG}, *module = NULL, *function = NULL;
  log[0] = 0;
  if (!check(cuda.module_load(&module, ptx, 2, options, values), "cuModuleLoadDataEx")) {
    fprintf(stderr, "%s\n", log);
    return NULL;
  }
  return check(cuda.get_function(&function, module, "k"), "cuModuleGetFunction") ? function : NULL;
}

static void *find_function(const char *ptx) {
  uint64_t hash = hash_of(ptx);
  for (uint32_t i = 0; i < num_modules; i++)
    if (modules[i].hash == hash) return modules[i].function;
  if (num_modules == MODULES) abort();
  modules[num_modules].hash = hash;
  return modules[num_modules++].function = compile(ptx);
}

static void write_ptx(const char *ptx) {
  char path[512];
  snprintf(path, sizeof path, "%s/%016llx.ptx", directory, (unsigned long long)hash_of(ptx));
  FILE *file = fopen(path, "w");
  if (!file || fputs(ptx, file) < 0 || fclose(file)) {
    perror(path);
    exit(1);
  }
}

static bool encode(const rec_map *map, void *out) {
  if (!map) return memset(out, 0, 128), true;
  if (map->is_im2col)
    return check(cuda.encode_im2col(out, (int)map->type, map->rank, (void *)(uintptr_t)global_at, map->dims,
                                    map->strides, map->lower, map->upper, map->channels, map->pixels, map->steps,
                                    (int)map->interleave, (int)map->swizzle, 0, (int)map->fill),
                 "cuTensorMapEncodeIm2col");
  return check(cuda.encode_tiled(out, (int)map->type, map->rank, (void *)(uintptr_t)global_at, map->dims, map->strides,
                                 map->box, map->steps, (int)map->interleave, (int)map->swizzle, 0, (int)map->fill),
               "cuTensorMapEncodeTiled");
}

bool rec_device_run(const char *ptx, const rec_vector *v, uint64_t *out, uint8_t *shared, uint8_t *global,
                    bool *out_lost) {
  *out_lost = false;
  if (directory) return write_ptx(ptx), true;
  struct {
    _Alignas(64) uint8_t bytes[128];
  } map;
  void *function = find_function(ptx);
  if (!function || !encode(v->map, &map)) return false;
  size_t threads = (size_t)v->threads * v->blocks, in_bytes = threads * (size_t)rec_arguments(v->signature) * 8;
  size_t out_bytes = threads * (size_t)rec_results(v->signature) * 8,
         shared_bytes = (size_t)v->shared_bytes * v->blocks;
  if (in_bytes > IN_MAX || out_bytes > IN_MAX || shared_bytes > 4 * REC_SHARED_MAX || v->global_bytes > REC_GLOBAL_MAX)
    abort();
  bool ok = (!in_bytes || check(cuda.to_device(in_at, v->in, in_bytes), "copy")) &&
            (!out_bytes || check(cuda.to_device(out_at, out, out_bytes), "copy")) &&
            (!shared_bytes || check(cuda.to_device(shared_at, shared, shared_bytes), "copy")) &&
            (!v->global_bytes || check(cuda.to_device(global_at, global, v->global_bytes), "copy"));
  void *params[] = {&in_at, &out_at, &shared_at, &global_at, &map};
  ok = ok && check(cuda.launch(function, v->blocks, 1, 1, v->threads, 1, 1, 0, NULL, params, NULL), "cuLaunchKernel");
  if (ok && !check(cuda.synchronize(), v->name)) return *out_lost = true, false;
  return ok && (!out_bytes || check(cuda.to_host(out, out_at, out_bytes), "copy")) &&
         (!shared_bytes || check(cuda.to_host(shared, shared_at, shared_bytes), "copy")) &&
         (!v->global_bytes || check(cuda.to_host(global, global_at, v->global_bytes), "copy"));
}
