// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules and launches of the emulated driver. A module is PTX text of tl-llc: its manifest says what the parameters
// are.
#include <stdlib.h>
#include <string.h>

#include "harness/device/emulated_internal.h"
#include "harness/device/ptx_kernel.h"
#include "support/arena.h"
#include "support/status.h"

struct CUfunc_st {
  tl_cu_module module;             // Borrowed.
  const tl_manifest_kernel *info;  // Borrowed from the module.
  tl_emu_kernel *kernel;           // Owned. NULL until it is asked for
};

struct CUmod_st {
  tl_arena arena;
  tl_manifest manifest;
  char *text;                   // Owned. PTX
  struct CUfunc_st *functions;  // Owned. One a kernel of the manifest
};

typedef struct loading {
  const char *image;
  tl_cu_module module;
  tl_cu_function function;
  uint32_t checks;
  tl_status status;
} loading;

static void load(void *user) {
  loading *l = user;
  static const char elf[] = {0x7f, 'E', 'L', 'F'};
  if (memcmp(l->image, elf, sizeof elf) == 0) {
    l->status = tl_status_make(TL_STATUS_UNSUPPORTED, "the emulator runs PTX, and no cubin");
    return;
  }
  if (strncmp(l->image, "// {", 4) != 0) {
    l->status = tl_status_make(TL_STATUS_UNSUPPORTED, "the emulator runs PTX with the manifest of tl-llc at its head");
    return;
  }
  tl_cu_module module = tl_xcalloc(1, sizeof *module);
  l->module = module;
  size_t bytes = strlen(l->image) + 1;
  module->text = memcpy(tl_xmalloc(bytes), l->image, bytes);
  l->status = tl_manifest_read(&module->arena, tl_str_from(module->text), &module->manifest);
  if (l->status) return;
  module->functions = tl_xcalloc(module->manifest.num_kernels + 1, sizeof *module->functions);
  for (uint32_t i = 0; i < module->manifest.num_kernels; i++)
    module->functions[i] = (struct CUfunc_st){.module = module, .info = &module->manifest.kernels[i]};
}

tl_cu_result tl_emulated_module_load_data_ex(
    tl_cu_module *out, const void *image, unsigned int num_options,
    tl_cu_jit_option *options,  // NOLINT(readability-non-const-parameter): as the driver declares it
    void **values) {
  (void)num_options, (void)options, (void)values;
  *out = NULL;
  if (!tl_emulated_current()) return TL_CU_ERROR_INVALID_CONTEXT;
  if (tl_emulated_is_recording()) return TL_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  loading l = {.image = image};
  if (!tl_memory_guard(load, &l)) return TL_CU_ERROR_OUT_OF_MEMORY;
  if (l.status) {
    tl_emulated_module_unload(l.module);
    return tl_emulated_fail(l.status);
  }
  return *out = l.module, TL_CU_SUCCESS;
}

tl_cu_result tl_emulated_module_unload(tl_cu_module module) {
  if (!module) return TL_CU_ERROR_INVALID_HANDLE;
  for (uint32_t i = 0; module->functions && i < module->manifest.num_kernels; i++)
    if (module->functions[i].kernel) tl_emu_kernel_destroy(module->functions[i].kernel);
  tl_arena_fini(&module->arena);
  free(module->functions);
  free(module->text);
  free(module);
  return TL_CU_SUCCESS;
}

static void make_kernel(void *user) {
  loading *l = user;
  const tl_manifest_kernel *info = l->function->info;
  const tl_emu_ptx_options options = {.block = {(uint32_t)info->block_threads, 1, 1}};
  tl_str text = tl_str_from(l->function->module->text);
  tl_debug_source source = {.name = "kernel.ptx", .text = text};
  const tl_debug_info debug = {.sources = &source, .num_sources = 1};
  l->status = tl_ptx_kernel_create(text, source.name, info, &options, l->checks, &debug, &l->function->kernel);
}

tl_cu_result tl_emulated_module_get_function(tl_cu_function *out, tl_cu_module module, const char *name) {
  tl_cu_context context = tl_emulated_current();
  *out = NULL;
  if (!context) return TL_CU_ERROR_INVALID_CONTEXT;
  for (uint32_t i = 0; i < module->manifest.num_kernels; i++)
    if (strcmp(module->manifest.kernels[i].name, name) == 0) *out = &module->functions[i];
  if (!*out) return TL_CU_ERROR_NOT_FOUND;
  if ((*out)->kernel) return TL_CU_SUCCESS;
  loading l = {.function = *out, .checks = context->gpu.emu.checks};
  if (!tl_memory_guard(make_kernel, &l)) return TL_CU_ERROR_OUT_OF_MEMORY;
  return l.status ? tl_emulated_fail(l.status) : TL_CU_SUCCESS;
}

// Registers and local memory are the assembler's.
tl_cu_result tl_emulated_func_get_attribute(int *value, tl_cu_function_attribute attribute, tl_cu_function function) {
  (void)attribute, (void)function;
  return *value = 0, TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_func_set_attribute(tl_cu_function function, tl_cu_function_attribute attribute, int value) {
  (void)attribute;
  return value < function->info->dynamic_shared_bytes ? TL_CU_ERROR_INVALID_VALUE : TL_CU_SUCCESS;
}
tl_cu_result tl_emulated_occupancy(int *blocks, tl_cu_function function, int block_threads,
                                   size_t dynamic_shared_bytes) {
  (void)function, (void)block_threads, (void)dynamic_shared_bytes;
  return *blocks = 1, TL_CU_SUCCESS;
}

// ---- launches

// Bytes of a parameter's value (PTX ISA, Kernel Function Parameters).
static size_t value_bytes(const tl_manifest_param *param) {
  switch (param->kind) {
    case TL_MPARAM_TENSOR_MAP:
      return TL_TENSORMAP_BYTES;
    case TL_MPARAM_SCALAR:
      return tl_dtype_bits(param->dtype) < 8 ? 1 : tl_dtype_bits(param->dtype) / 8;
    case TL_MPARAM_DYNAMIC:
      return param->dtype == TL_DTYPE_I64 ? 8 : 4;
    case TL_MPARAM_TENSOR:
    case TL_MPARAM_STRIDE:
    case TL_MPARAM_WORKSPACE:
      return 8;
  }
  return 8;
}

// A copy of the parameters, the pointers first: the caller's are free when the launch call returns.
static void **copy_params(const tl_manifest_kernel *info, void *const *params) {
  size_t slot = TL_TENSORMAP_BYTES, head = (info->num_params * sizeof(void *) + slot) / slot * slot;
  void **copy = NULL;
  if (posix_memalign((void **)&copy, TL_TENSORMAP_ALIGN, head + slot * info->num_params)) return NULL;
  for (uint32_t i = 0; i < info->num_params; i++) {
    copy[i] = (char *)copy + head + i * slot;
    memset(copy[i], 0, slot);
    memcpy(copy[i], params[i], value_bytes(&info->params[i]));
  }
  return copy;
}

typedef struct emulated_launch {
  tl_emu_kernel *kernel;
  const uint32_t *grid;
  void **params;
  const tl_emu_options *options;
  tl_status status;
} emulated_launch;

static void run_guarded(void *user) {
  emulated_launch *l = user;
  tl_emu_stats stats = {0};
  l->status = tl_emu_launch(l->kernel, l->grid, l->params, l->options, &stats);
}

tl_cu_result tl_emulated_run(tl_cu_function function, const uint32_t grid[3], void **params) {
  tl_cu_context context = tl_emulated_current();
  if (!context) return TL_CU_ERROR_INVALID_CONTEXT;
  tl_emu_options options = context->gpu.emu;
  // The blocks of a persistent kernel may wait for each other, as on a GPU where all of them fit.
  if (function->info->persistent && options.resident == 0) options.resident = context->gpu.num_sms;
  emulated_launch l = {function->kernel, grid, params, &options, TL_OK};
  if (!tl_memory_guard(run_guarded, &l)) return TL_CU_ERROR_OUT_OF_MEMORY;
  if (l.status) return tl_emulated_fail(l.status);
  if (context->gpu.ran) context->gpu.ran(function->info, params);
  return TL_CU_SUCCESS;
}

static tl_cu_result launch(tl_cu_function function, const tl_cu_launch_layout *config, void **params) {
  const tl_manifest_kernel *info = function ? function->info : NULL;
  if (!tl_emulated_current()) return TL_CU_ERROR_INVALID_CONTEXT;
  if (!info || !function->kernel) return TL_CU_ERROR_INVALID_HANDLE;
  if (!config->grid[0] || !config->grid[1] || !config->grid[2]) return TL_CU_ERROR_INVALID_VALUE;
  bool fits = config->block[0] == (unsigned)info->block_threads && config->block[1] == 1 && config->block[2] == 1 &&
              config->shared_bytes == info->dynamic_shared_bytes;
  if (!fits)
    return tl_emulated_fail(tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                                           "'%s' was launched with %u x %u x %u threads and %u bytes of shared memory: "
                                           "its manifest says %d and %lld",
                                           info->name, config->block[0], config->block[1], config->block[2],
                                           config->shared_bytes, info->block_threads,
                                           (long long)info->dynamic_shared_bytes));
  emulated_work work = {.function = function, .params = copy_params(info, params)};
  if (!work.params) return TL_CU_ERROR_OUT_OF_MEMORY;
  memcpy(work.grid, config->grid, sizeof work.grid);
  return tl_emulated_put(config->stream, work);
}

tl_cu_result tl_emulated_launch_kernel(tl_cu_function function, unsigned int grid_x, unsigned int grid_y,
                                       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared_bytes, tl_cu_stream stream,
                                       void **params, void **extra) {
  (void)extra;
  const tl_cu_launch_layout config = {.grid = {grid_x, grid_y, grid_z},
                                      .block = {block_x, block_y, block_z},
                                      .shared_bytes = shared_bytes,
                                      .stream = stream};
  return launch(function, &config, params);
}

// Clusters are those of the manifest, as on a GPU those of `.reqnctapercluster`; another one is refused there too.
tl_cu_result tl_emulated_launch_kernel_ex(const tl_cu_launch_config *given, tl_cu_function function, void **params,
                                          void **extra) {
  (void)extra;
  const tl_cu_launch_layout *config = (const tl_cu_launch_layout *)(const void *)given;
  for (unsigned i = 0; function && i < config->num_attributes; i++) {
    const tl_cu_launch_attribute *attribute = &config->attributes[i];
    if (attribute->id != TL_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    for (int axis = 0; axis < 3; axis++)
      if ((int)attribute->value.cluster[axis] != function->info->cluster[axis]) return TL_CU_ERROR_INVALID_VALUE;
  }
  return launch(function, config, params);
}
