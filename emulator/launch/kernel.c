// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/launch/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/ops/ops.h"
#include "emulator/ptx/translate.h"
#include "emulator/sanitize/sanitizer.h"
#include "support/vec.h"

static void *context_of_worker(void) {
  return &tl_emu_self->context;
}

// What retargeted code calls: one symbol a device op, named "emu:" and the pattern of its row, and two of the machine.
static tl_status compile(tl_emu_kernel *kernel) {
  size_t num_bindings;
  const tl_emu_binding *bindings = tl_emu_bindings(&num_bindings);
  TL_VEC(tl_host_symbol) symbols = {0};
  TL_VEC(char *) names = {0};
  for (size_t i = 0; i < num_bindings; i++) {
    tl_strbuf name = {0};
    tl_strbuf_appendf(&name, "emu:%s", bindings[i].name);
    tl_vec_push(&names, tl_strbuf_take(&name));
    tl_vec_push(&symbols, (tl_host_symbol){tl_vec_last(&names), (void *)bindings[i].run});
  }
  tl_vec_push(&symbols, (tl_host_symbol){"emu:context", (void *)context_of_worker});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:poll", (void *)tl_emu_poll});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:interleave", (void *)tl_emu_interleave});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:touch", (void *)tl_emu_touch_plain});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:touch_store", (void *)tl_emu_touch_store});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:acquired", (void *)tl_emu_acquired});
  void *module = kernel->code.module;
  kernel->code.module = NULL;
  tl_vec_push(&symbols, (tl_host_symbol){"emu:observed", (void *)tl_emu_observed});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:fence", (void *)tl_emu_fence});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:undefined", (void *)tl_emu_undefined_use});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:undefined_thread", (void *)tl_emu_undefined_thread});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:undefined_load", (void *)tl_emu_undefined_load});
  tl_vec_push(&symbols, (tl_host_symbol){"emu:undefined_store", (void *)tl_emu_undefined_store});
  // The module has been through the whole device pipeline: more optimisation here costs more time than it saves.
  tl_status status = tl_host_jit_create(module, "always-inline", 0, symbols.items, symbols.len, &kernel->jit);
  for (size_t i = 0; i < names.len; i++) free(names.items[i]);
  tl_vec_fini(&names);
  tl_vec_fini(&symbols);
  return status;
}

// Tells each site the tiles of its line. The array of uses is in no order; lines have few.
static void find_tiles(tl_emu_kernel *kernel) {
  const tl_debug_info *debug = &kernel->debug;
  for (size_t i = 0; i < kernel->code.num_sites; i++) {
    tl_emu_site *site = &kernel->code.sites[i];
    if (!site->line || !tl_debug_has_source(debug, site->file)) continue;
    for (size_t k = i; k-- > 0 && !site->tiles;)
      if (kernel->code.sites[k].line == site->line && kernel->code.sites[k].tiles) {
        site->tiles = kernel->code.sites[k].tiles;
        site->num_tiles = kernel->code.sites[k].num_tiles;
        break;
      }
    if (site->tiles) continue;
    tl_emu_range *ranges = TL_NEW_ARRAY(&kernel->arena, tl_emu_range, debug->num_tiles + 1);
    for (uint32_t u = 0; u < debug->num_uses; u++) {
      const tl_debug_tile *tile = &debug->tiles[debug->uses[u].tile];
      size_t from = kernel->code.dynamic_offset + (size_t)tile->offset;
      if (debug->uses[u].line == site->line)
        ranges[site->num_tiles++] = (tl_emu_range){from, from + (size_t)tile->bytes};
    }
    site->tiles = ranges;
  }
}

tl_status tl_emu_kernel_create(const char *bitcode, size_t len, const tl_manifest_kernel *manifest,
                               tl_emu_kernel **out) {
  return tl_emu_kernel_create_sanitized(bitcode, len, manifest, 0, NULL, out);
}

static tl_status validate_shape(const tl_manifest_kernel *manifest) {
  if (manifest->block_threads < 1 || manifest->block_threads > TL_EMU_MAX_THREADS)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "kernel '%s': %d threads a block; the limit is %d",
                          manifest->name, manifest->block_threads, TL_EMU_MAX_THREADS);
  int64_t cluster_size = 1;
  for (int i = 0; i < 3; i++) {
    if (manifest->cluster[i] < 0 || manifest->cluster[i] > TL_EMU_MAX_CLUSTER) cluster_size = INT32_MAX;
    if (manifest->cluster[i] > 0) cluster_size *= manifest->cluster[i];
  }
  if (cluster_size > TL_EMU_MAX_CLUSTER)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "kernel '%s': a cluster of %d × %d × %d blocks; the limit is %d",
                          manifest->name, manifest->cluster[0], manifest->cluster[1], manifest->cluster[2],
                          TL_EMU_MAX_CLUSTER);
  return TL_OK;
}

// Of `module`, which is the callee's, else of the bitcode.
static tl_status create(void *module, const char *bitcode, size_t len, const tl_manifest_kernel *manifest,
                        uint32_t checks, const tl_debug_info *debug, tl_emu_kernel **out) {
  uint64_t start = tl_emu_now_ns();
  tl_emu_kernel *kernel = tl_xcalloc(1, sizeof *kernel);
  kernel->name = tl_xmalloc(strlen(manifest->name) + 1);
  strcpy(kernel->name, manifest->name);
  kernel->checks = checks;
  tl_arena_init(&kernel->arena);
  if (checks) {
    kernel->num_params = manifest->num_params;
    tl_emu_copy_params(manifest, &kernel->arena, &kernel->params);
  }
  if (debug && checks) kernel->debug = tl_debug_info_copy(debug, &kernel->arena);
  kernel->block_threads = (uint32_t)manifest->block_threads;
  for (int i = 0; i < 3; i++) kernel->cluster[i] = manifest->cluster[i] > 0 ? (uint32_t)manifest->cluster[i] : 1;
  tl_status status = module ? tl_emu_retarget_module(module, manifest, checks, &kernel->code)
                            : tl_emu_retarget(bitcode, len, manifest, checks, &kernel->code);
  if (!status) status = compile(kernel);
  if (status) {
    tl_emu_kernel_destroy(kernel);
    return tl_status_annotate(status, "emulator: kernel '%s'", manifest->name);
  }
  kernel->entry = (tl_emu_entry_fn *)tl_host_jit_lookup(kernel->jit, "tl_emu_entry");
  if (kernel->debug.num_uses) find_tiles(kernel);
  kernel->shared_bytes = kernel->code.shared_bytes;
  kernel->shared_align = kernel->code.shared_align;
  kernel->jit_seconds = (double)(tl_emu_now_ns() - start) * 1e-9;
  *out = kernel;
  return TL_OK;
}

tl_status tl_emu_kernel_create_sanitized(const char *bitcode, size_t len, const tl_manifest_kernel *manifest,
                                         uint32_t checks, const tl_debug_info *debug, tl_emu_kernel **out) {
  *out = NULL;
  TL_TRY(validate_shape(manifest));
  return create(NULL, bitcode, len, manifest, checks, debug, out);
}

tl_status tl_emu_kernel_create_module(void *module, const tl_manifest_kernel *manifest, uint32_t checks,
                                      const tl_debug_info *debug, tl_emu_kernel **out) {
  *out = NULL;
  tl_status status = validate_shape(manifest);
  if (!status) return create(module, NULL, 0, manifest, checks, debug, out);
  tl_emu_ptx_dispose(module);
  return status;
}

void tl_emu_kernel_destroy(tl_emu_kernel *kernel) {
  if (!kernel) return;
  tl_host_jit_destroy(kernel->jit);
  tl_emu_retargeted_fini(&kernel->code);
  tl_arena_fini(&kernel->arena);
  for (uint32_t i = 0; i < kernel->num_variables; i++) tl_emu_free(kernel->variables[i]);
  free(kernel->variables);
  free(kernel->name);
  free(kernel);
}
