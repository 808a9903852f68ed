// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a vector in the emulator: as LLVM IR of its own, or as the PTX text that the recorder ran. Operands go into
// slots of 8 bytes, thread by thread.
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/launch/kernel_ptx.h"
#include "emulator/ops/tensormap.h"
#include "record.h"
#include "vector.h"

enum { NUM_PARAMS = 6, NUM_PTX_PARAMS = 5 };

bool tv_via_ptx;

static struct {
  tl_strbuf text;
  tl_emu_kernel *kernel;
} kept;

void tv_execute_end(void) {
  tl_emu_kernel_destroy(kept.kernel);
  kept.kernel = NULL;
  tl_strbuf_fini(&kept.text);
}

static tl_manifest_kernel manifest_of(const tv_vector *v, tl_manifest_param *params, uint32_t num_params) {
  return (tl_manifest_kernel){.name = "k",
                              .params = params,
                              .num_params = num_params,
                              .block_threads = (int32_t)v->threads,
                              .cluster = {(int32_t)v->blocks, 1, 1}};
}

static tl_status compile(const char *text, const tv_vector *v, tl_emu_kernel **out) {
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = NULL;
  char *message = NULL;
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRange(text, strlen(text), "vector", true);
  bool failed = LLVMParseIRInContext2(context, buffer, &module, &message);
  LLVMDisposeMemoryBuffer(buffer);
  if (failed) {
    tl_status status = tl_status_make(TL_STATUS_INTERNAL, "%s\n%s", message, text);
    LLVMDisposeMessage(message);
    LLVMContextDispose(context);
    return status;
  }
  LLVMMemoryBufferRef bitcode = LLVMWriteBitcodeToMemoryBuffer(module);
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
  tl_manifest_param params[NUM_PARAMS] = {{0}};
  tl_manifest_kernel manifest = manifest_of(v, params, NUM_PARAMS);
  tl_status status = tl_emu_kernel_create(LLVMGetBufferStart(bitcode), LLVMGetBufferSize(bitcode), &manifest, out);
  LLVMDisposeMemoryBuffer(bitcode);
  return status;
}

static tl_status compile_ptx(const char *text, const tv_vector *v, tl_emu_kernel **out) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_manifest_param params[NUM_PTX_PARAMS] = {{0}};
  tl_manifest_kernel manifest = manifest_of(v, params, NUM_PTX_PARAMS);
  // Maps with replaced fields write behind the buffer, where a block of the GPU still has memory.
  manifest.dynamic_shared_bytes = strstr(v->name, "tma.replace") ? 1024 : 0;
  const tl_emu_ptx_options options = {.block = {v->threads, 1, 1}};
  tl_ptx_module *module = tl_ptx_parse(&sources, tl_sources_add(&sources, "k.ptx", tl_str_from(text)), &diags);
  tl_status status = TL_OK;
  if (module && tl_ptx_check(module, TL_STR(""), &diags))
    status = tl_emu_kernel_create_ptx(module, &manifest, &options, 0, NULL, &diags, out);
  if (tl_diags_has_errors(&diags)) {
    tl_strbuf messages = {0};
    tl_diags_print_text(&diags, &messages, false);
    tl_status_free(status);
    status = tl_status_make(TL_STATUS_UNSUPPORTED, "%s", tl_strbuf_c(&messages));
    tl_strbuf_fini(&messages);
  }
  tl_ptx_destroy(module);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
  return status;
}

// The kernel that the GPU ran.
static bool write_recorded(const tv_vector *v, tl_strbuf *out) {
  rec_vector recorded = {.name = v->name,
                         .signature = v->signature,
                         .body = v->ptx,
                         .threads = v->threads,
                         .blocks = v->blocks,
                         .shared_bytes = (uint32_t)(v->shared_bytes / v->blocks)};
  char *text = rec_ptx(&recorded);
  tl_strbuf_append_c(out, text);
  free(text);
  return true;
}

// The kernel of the last vector, when that of this one is the same.
static tl_status find_kernel(const tv_vector *v) {
  tl_strbuf text = {0};
  if (!(tv_via_ptx ? write_recorded(v, &text) : tv_write_kernel(v, &text))) {
    tl_strbuf_fini(&text);
    return tl_status_make(TL_STATUS_UNSUPPORTED, "no operation for %s", v->name);
  }
  if (kept.kernel && !strcmp(tl_strbuf_c(&kept.text), tl_strbuf_c(&text))) {
    tl_strbuf_fini(&text);
    return TL_OK;
  }
  tv_execute_end();
  kept.text = text;
  return (tv_via_ptx ? compile_ptx : compile)(tl_strbuf_c(&kept.text), v, &kept.kernel);
}

// Between packed operands and slots; `first` is the first operand.
static void move_slots(const tv_vector *v, int first, int count, uint8_t *packed, uint64_t *slots, bool pack) {
  for (size_t thread = 0; thread < (size_t)v->threads * v->blocks; thread++) {
    for (int i = 0; i < count; i++, slots++) {
      size_t bytes = (size_t)tv_letter_bytes(tv_letter(v->signature, first + i));
      if (pack)
        memcpy(packed, slots, bytes);
      else
        *slots = 0, memcpy(slots, packed, bytes);
      packed += bytes;
    }
  }
}

static void *copied(const uint8_t *bytes, size_t count) {
  void *buffer = tl_emu_alloc(count ? count : 16, 1024);
  if (count) memcpy(buffer, bytes, count);
  return buffer;
}

tl_status tv_execute(const tv_vector *v, const uint8_t *in, tv_result *result) {
  tl_status status = find_kernel(v);
  if (status) return status;
  size_t threads = (size_t)v->threads * v->blocks;
  int results = tv_results(v->signature), arguments = tv_arguments(v->signature);
  uint64_t *in_slots = tl_emu_alloc(threads * (size_t)arguments * 8 + 16, 16);
  uint64_t *out_slots = tl_emu_alloc(threads * (size_t)results * 8 + 16, 16);
  uint8_t *packed = copied(in, v->in_bytes);
  move_slots(v, results, arguments, packed, in_slots, false);
  void *shared = copied(v->shared_before, v->shared_bytes), *global = copied(v->global_before, v->global_bytes);
  tl_emu_tensormap map = {0};
  if (v->has_map) {
    tl_tensormap_params params = v->map;
    params.address = global;
    status = tl_emu_tensormap_encode(&params, &map);
  }
  uint32_t grid[3] = {v->blocks, 1, 1};
  tl_emu_options options = {.threads = 1, .landing = TL_LANDING_LATE};
  void *map_copy = tl_emu_alloc(sizeof map, 128);
  void *params[NUM_PARAMS] = {&in_slots, &out_slots, &shared, &global, &map, &map_copy};
  if (!status) status = tl_emu_launch(kept.kernel, grid, params, &options, NULL);
  if (!status) {
    move_slots(v, 0, results, result->out, out_slots, true);
    memcpy(result->shared, shared, v->shared_bytes);
    memcpy(result->global, global, v->global_bytes);
  }
  void *buffers[] = {in_slots, out_slots, packed, shared, global, map_copy};
  for (int i = 0; i < 6; i++) tl_emu_free(buffers[i]);
  return status;
}
