// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static tl_cuda_driver loaded;
static char problem[512];  // why there is no driver; empty when there is
static _Atomic(const tl_cuda_driver *) overridden;

// Names of error codes need the driver itself; without one only the number is known.
static void describe(const tl_cuda_driver *driver, tl_cu_result result, const char **name, const char **text) {
  *name = NULL;
  *text = NULL;
  if (driver->get_error_name && driver->get_error_name(result, name) != TL_CU_SUCCESS) *name = NULL;
  if (driver->get_error_string && driver->get_error_string(result, text) != TL_CU_SUCCESS) *text = NULL;
  if (!*name) *name = "an unknown error";
  if (!*text) *text = "no description";
}

static void load(void) {
  const char *path = getenv("TL_CUDA_DRIVER");
  if (!path || !*path) path = "libcuda.so.1";
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    snprintf(problem, sizeof problem, "the NVIDIA driver library cannot be loaded: %s", why ? why : "unknown reason");
    return;
  }
  static const struct {
    const char *symbol;
    size_t offset;
    bool is_optional;
  } table[] = {
#define TL_CUDA_FN(field, symbol, parameters) {#symbol, offsetof(tl_cuda_driver, field), false},
#define TL_CUDA_OPTIONAL_FN(field, symbol, parameters) {#symbol, offsetof(tl_cuda_driver, field), true},
#include "runtime/cuda_driver.def"
#undef TL_CUDA_FN
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    void *address = dlsym(library, table[i].symbol);
    if (!address && table[i].is_optional) continue;
    if (!address) {
      snprintf(problem, sizeof problem, "the NVIDIA driver is too old: %s has no %s", path, table[i].symbol);
      return;
    }
    memcpy((char *)&loaded + table[i].offset, &address, sizeof address);
  }
  tl_cu_result result = loaded.init(0);
  if (result != TL_CU_SUCCESS) {
    const char *name, *text;
    describe(&loaded, result, &name, &text);
    snprintf(problem, sizeof problem, "cuInit failed: %u %s (%s)", result, name, text);
  }
}

tl_status tl_cuda_driver_get(const tl_cuda_driver **out_driver) {
  *out_driver = atomic_load(&overridden);
  if (*out_driver) return TL_OK;
  pthread_once(&once, load);
  if (problem[0]) return tl_status_make(TL_STATUS_NO_DEVICE, "%s", problem);
  *out_driver = &loaded;
  return TL_OK;
}

void tl_cuda_driver_override(const tl_cuda_driver *driver) {
  atomic_store(&overridden, driver);
}

tl_status tl_cuda_status_of(const tl_cuda_driver *driver, tl_cu_result result, const char *function) {
  if (result == TL_CU_SUCCESS) return TL_OK;
  const char *name, *text;
  describe(driver, result, &name, &text);
  if (result > TL_CU_ERROR_STATUS) return tl_status_make((tl_status_code)(result - TL_CU_ERROR_STATUS), "%s", text);
  tl_status_code code = TL_STATUS_DRIVER;
  if (result == TL_CU_ERROR_OUT_OF_MEMORY) code = TL_STATUS_OUT_OF_MEMORY;
  if (result == TL_CU_ERROR_NO_DEVICE) code = TL_STATUS_NO_DEVICE;
  return tl_status_make(code, "%s failed: %u %s (%s)", function, result, name, text);
}
