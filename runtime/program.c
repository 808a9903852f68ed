// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading: manifest first, then the driver's JIT with its logs.
#include "runtime/program.h"

#include <stdlib.h>
#include <string.h>

#include "support/status.h"
#include "support/strbuf.h"

enum { LOG_BYTES = 16 * 1024 };

// "sm_90a" runs on 9.0 only (PTX ISA, "PTX Module Directives: .target"); "sm_80" on 8.0 and later.
static tl_status validate_target(const tl_manifest *manifest, const tl_device *device) {
  const char *text = manifest->target;
  char *end = NULL;
  long sm = strncmp(text, "sm_", 3) == 0 ? strtol(text + 3, &end, 10) : 0;
  if (!end || end == text + 3 || sm <= 0) {
    return tl_status_make(TL_STATUS_UNSUPPORTED, "manifest: unknown target \"%s\"", text);
  }
  int have = device->compute_capability;
  bool is_specific = *end == 'a';
  bool is_family = *end == 'f';
  bool fits = is_specific ? have == sm : is_family ? have / 10 == sm / 10 && have >= sm : have >= sm;
  if (fits) return TL_OK;
  return tl_status_make(TL_STATUS_UNSUPPORTED, "the kernel was compiled for %s, the device '%s' is sm_%d", text,
                        device->name, have);
}

// Calls the JIT; its error and info logs become part of a failure's message.
static tl_status load_module(const tl_device *device, const void *image, tl_cu_module *out_module) {
  char *info_log = calloc(2, LOG_BYTES), *error_log = info_log + LOG_BYTES;
  if (!info_log) return tl_status_out_of_memory();
  tl_cu_jit_option options[] = {TL_CU_JIT_INFO_LOG_BUFFER, TL_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                                TL_CU_JIT_ERROR_LOG_BUFFER, TL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                TL_CU_JIT_LOG_VERBOSE};
  // Each value is a pointer or a number in the place of one.
  const uintptr_t numbers[] = {(uintptr_t)info_log, LOG_BYTES, (uintptr_t)error_log, LOG_BYTES, 1};
  void *values[sizeof numbers / sizeof numbers[0]];
  memcpy(values, numbers, sizeof values);
  tl_status status = TL_CUDA_CALL(device->driver, module_load_data_ex, out_module, image,
                                  (unsigned)(sizeof options / sizeof options[0]), options, values);
  if (status) {
    info_log[LOG_BYTES - 1] = error_log[LOG_BYTES - 1] = '\0';
    tl_status with_log = tl_status_make(tl_status_code_of(status), "%s%s%s%s%s", tl_status_message(status),
                                        error_log[0] ? "\nJIT error log:\n" : "", error_log,
                                        info_log[0] ? "\nJIT info log:\n" : "", info_log);
    tl_status_free(status);
    status = with_log;
  }
  free(info_log);
  return status;
}

static tl_status init_kernel(tl_program *program, tl_kernel *kernel) {
  const tl_device *device = program->device;
  const tl_cuda_driver *driver = device->driver;
  const tl_manifest_kernel *manifest = kernel->manifest;
  // A launch follows the `.reqnctapercluster` of the kernel by itself (PTX ISA).
  bool has_clusters = manifest->cluster[0] != 1 || manifest->cluster[1] != 1 || manifest->cluster[2] != 1;
  if (has_clusters && device->compute_capability < 90)
    return tl_status_make(TL_STATUS_UNSUPPORTED, "it has clusters of blocks, which the device has not");
  int64_t shared = manifest->static_shared_bytes + manifest->dynamic_shared_bytes;
  if (shared > device->max_shared_bytes) {
    return tl_status_make(TL_STATUS_UNSUPPORTED, "it needs %lld bytes of shared memory, the device has %d",
                          (long long)shared, device->max_shared_bytes);
  }
  TL_TRY(TL_CUDA_CALL(driver, module_get_function, &kernel->function, program->module, manifest->name));
  if (manifest->dynamic_shared_bytes > 0) {
    TL_TRY(TL_CUDA_CALL(driver, func_set_attribute, kernel->function,
                        TL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)manifest->dynamic_shared_bytes));
  }
  TL_TRY(TL_CUDA_CALL(driver, func_get_attribute, &kernel->registers, TL_CU_FUNC_ATTRIBUTE_NUM_REGS, kernel->function));
  TL_TRY(TL_CUDA_CALL(driver, func_get_attribute, &kernel->local_bytes, TL_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                      kernel->function));
  int blocks = 0;
  TL_TRY(TL_CUDA_CALL(driver, occupancy, &blocks, kernel->function, manifest->block_threads,
                      (size_t)manifest->dynamic_shared_bytes));
  kernel->resident_blocks = (int64_t)blocks * device->num_sms;
  return TL_OK;
}

typedef struct manifest_reading {
  tl_program *program;
  tl_str text;
  tl_status status;
} manifest_reading;

static void read_manifest(void *user) {
  manifest_reading *reading = user;
  reading->status = tl_manifest_read(&reading->program->arena, reading->text, &reading->program->manifest);
}

static tl_status load(tl_program *program, const void *image, tl_str manifest_text) {
  manifest_reading reading = {program, manifest_text, TL_OK};
  if (!tl_memory_guard(read_manifest, &reading)) {
    tl_arena_init(&program->arena);  // what it had is gone
    program->manifest = (tl_manifest){0};
    return tl_status_out_of_memory();
  }
  TL_TRY(reading.status);
  TL_TRY(validate_target(&program->manifest, program->device));
  program->kernels = calloc(program->manifest.num_kernels + 1, sizeof *program->kernels);
  if (!program->kernels) return tl_status_out_of_memory();
  for (uint32_t i = 0; i < program->manifest.num_kernels; i++) {
    program->kernels[i].program = program;
    program->kernels[i].manifest = &program->manifest.kernels[i];
    pthread_mutex_init(&program->kernels[i].lock, NULL);
    uint32_t aligned = program->manifest.kernels[i].aligned;
    if (aligned) program->kernels[i].aligned = &program->kernels[aligned];
  }
  program->chains = calloc(program->manifest.num_chains + 1, sizeof *program->chains);
  if (!program->chains) return tl_status_out_of_memory();
  for (uint32_t i = 0; i < program->manifest.num_chains; i++) {
    program->chains[i].program = program;
    program->chains[i].manifest = &program->manifest.chains[i];
    pthread_mutex_init(&program->chains[i].lock, NULL);
  }
  TL_TRY(tl_device_enter(program->device));
  tl_status status = load_module(program->device, image, &program->module);
  for (uint32_t i = 0; !status && i < program->manifest.num_kernels; i++) {
    status = tl_status_annotate(init_kernel(program, &program->kernels[i]), "kernel '%s'",
                                program->manifest.kernels[i].name);
  }
  return tl_device_leave(program->device, status);
}

static tl_status load_program(tl_device *device, const void *image, tl_str manifest_text, tl_program **out_program) {
  tl_program *program = calloc(1, sizeof *program);
  if (!program) return tl_status_out_of_memory();
  program->device = device;
  tl_arena_init(&program->arena);
  tl_status status = load(program, image, manifest_text);
  if (status) {
    tl_program_destroy(program);
    program = NULL;
  }
  *out_program = program;
  return status;
}

tl_status tl_program_load(tl_device *device, const char *ptx, size_t ptx_bytes, tl_program **out_program) {
  TL_TRY(tl_status_not_null(out_program, "out_program"));
  *out_program = NULL;
  TL_TRY(tl_status_not_null(device, "device"));
  TL_TRY(tl_status_not_null(ptx, "ptx"));
  // The driver takes PTX as a C string.
  char *image = malloc(ptx_bytes + 1);
  if (!image) return tl_status_out_of_memory();
  memcpy(image, ptx, ptx_bytes);
  image[ptx_bytes] = '\0';
  tl_status status = load_program(device, image, (tl_str){image, ptx_bytes}, out_program);
  free(image);
  return status;
}

tl_status tl_program_load_image(tl_device *device, const void *image, size_t image_bytes, const char *manifest,
                                size_t manifest_bytes, tl_program **out_program) {
  TL_TRY(tl_status_not_null(out_program, "out_program"));
  *out_program = NULL;
  TL_TRY(tl_status_not_null(device, "device"));
  TL_TRY(tl_status_not_null(image, "image"));
  TL_TRY(tl_status_not_null(manifest, "manifest"));
  char *copy = malloc(image_bytes + 1);
  if (!copy) return tl_status_out_of_memory();
  memcpy(copy, image, image_bytes);
  copy[image_bytes] = '\0';
  tl_status status = load_program(device, copy, (tl_str){manifest, manifest_bytes}, out_program);
  free(copy);
  return status;
}

static void free_workspaces(const tl_program *program, tl_workspaces *workspaces) {
  for (size_t w = 0; w < workspaces->len; w++) {
    tl_cu_pointer memory = (tl_cu_pointer)(uintptr_t)workspaces->items[w].memory;
    if (memory) tl_device_note(program->device, TL_CUDA_CALL(program->device->driver, mem_free, memory));
  }
  tl_vec_fini(workspaces);
}

void tl_program_destroy(tl_program *program) {
  if (!program) return;
  tl_status status = tl_device_enter(program->device);
  bool is_entered = !status;
  tl_device_note(program->device, status);
  for (uint32_t i = 0; program->kernels && i < program->manifest.num_kernels; i++) {
    free_workspaces(program, &program->kernels[i].workspaces);
    tl_vec_fini(&program->kernels[i].maps);
    tl_launch_plan_fini(&program->kernels[i].plan);
    pthread_mutex_destroy(&program->kernels[i].lock);
  }
  for (uint32_t i = 0; program->chains && i < program->manifest.num_chains; i++) {
    free_workspaces(program, &program->chains[i].workspaces);
    pthread_mutex_destroy(&program->chains[i].lock);
  }
  if (program->module)
    tl_device_note(program->device, TL_CUDA_CALL(program->device->driver, module_unload, program->module));
  if (is_entered) tl_device_note(program->device, tl_device_leave(program->device, TL_OK));
  free(program->kernels);
  free(program->chains);
  tl_arena_fini(&program->arena);
  free(program);
}

size_t tl_program_num_kernels(const tl_program *program) {
  return program ? tl_manifest_num_kernels(&program->manifest) : 0;
}

tl_kernel *tl_program_kernel_at(tl_program *program, size_t index) {
  return index < tl_program_num_kernels(program) ? &program->kernels[index] : NULL;
}

tl_status tl_program_kernel(tl_program *program, const char *name, tl_kernel **out_kernel) {
  TL_TRY(tl_status_not_null(out_kernel, "out_kernel"));
  *out_kernel = NULL;
  TL_TRY(tl_status_not_null(program, "program"));
  if (!name && tl_program_num_kernels(program) == 1) {
    *out_kernel = &program->kernels[0];
    return TL_OK;
  }
  tl_strbuf list;
  tl_strbuf_init(&list);
  for (uint32_t i = 0; i < program->manifest.num_kernels; i++) {
    const char *have = program->manifest.kernels[i].name;
    if (name && strcmp(have, name) == 0) *out_kernel = &program->kernels[i];
    if (program->manifest.kernels[i].is_version) continue;
    tl_strbuf_appendf(&list, "%s%s", i ? ", " : "", have);
  }
  tl_status status = TL_OK;
  if (!*out_kernel) {
    status = tl_status_make(TL_STATUS_NOT_FOUND, "%s%s%s: the program has the kernels: %s", name ? "no kernel '" : "",
                            name ? name : "a kernel must be named", name ? "'" : "", tl_strbuf_c(&list));
  }
  tl_strbuf_fini(&list);
  return status;
}

const char *tl_kernel_name(const tl_kernel *kernel) {
  return kernel ? kernel->manifest->name : "";
}
int tl_kernel_registers(const tl_kernel *kernel) {
  return kernel ? kernel->registers : 0;
}
int tl_kernel_local_bytes(const tl_kernel *kernel) {
  return kernel ? kernel->local_bytes : 0;
}

void tl_kernel_set_plain(tl_kernel *kernel, bool is_plain) {
  kernel->is_plain = is_plain;
}

bool tl_kernel_took_version(const tl_kernel *kernel) {
  return kernel->took_version;
}
