// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The GPU behind the seam: libtl's runtime and nothing else.
#include "harness/device/device_internal.h"
#include "runtime/device.h"

static tl_status cuda_close(tl_run_device *device) {
  return tl_device_end(device->gpu);
}

static tl_status cuda_alloc(tl_run_device *device, uint64_t bytes, uint64_t align, void **out) {
  // The driver aligns to 256 bytes, which is also the size of the canary before the buffer.
  if (align > 256)
    return tl_status_make(TL_STATUS_UNSUPPORTED, "an alignment of %llu bytes", (unsigned long long)align);
  return tl_device_alloc(device->gpu, bytes, out);
}
static tl_status cuda_free(tl_run_device *device, void *pointer) {
  return tl_device_free(device->gpu, pointer);
}
static tl_status cuda_write(tl_run_device *device, void *to, const void *from, uint64_t bytes) {
  return tl_device_upload(device->gpu, to, from, bytes);
}
static tl_status cuda_read(tl_run_device *device, void *to, const void *from, uint64_t bytes) {
  return tl_device_download(device->gpu, to, from, bytes);
}

static tl_status load_text(tl_run_kernel *kernel, tl_str ptx, const char *name) {
  TL_TRY(tl_program_load(kernel->device->gpu, ptx.data, ptx.len, &kernel->program));
  if (kernel->chain) return tl_program_chain(kernel->program, name, &kernel->gpu_chain);
  return tl_program_kernel(kernel->program, name, &kernel->gpu_kernel);
}

static tl_status cuda_load_ptx(tl_run_kernel *kernel, const tl_run_ptx *ptx, const char *name) {
  if (!ptx->manifest.len) return load_text(kernel, ptx->text, name);
  if (ptx->fields) return tl_status_make(TL_STATUS_UNSUPPORTED, "structs as parameters run in the emulator only");
  if (ptx->block[1] * ptx->block[2] > 1)
    return tl_status_make(TL_STATUS_UNSUPPORTED, "blocks of several dimensions run in the emulator only");
  tl_strbuf text = {0};
  tl_manifest_write(&kernel->manifest, "// ", &text);
  tl_strbuf_append_char(&text, '\n');
  tl_strbuf_append(&text, ptx->text);
  tl_status status = load_text(kernel, tl_strbuf_view(&text), name);
  tl_strbuf_fini(&text);
  return status;
}

static tl_status cuda_load(tl_run_kernel *kernel, const tl_compiled *compiled) {
  tl_strbuf ptx;
  tl_strbuf_init(&ptx);
  tl_status status = tl_backend_emit_ptx(compiled->backend, &ptx);
  if (!status) status = load_text(kernel, tl_strbuf_view(&ptx), kernel->info->name);
  tl_strbuf_fini(&ptx);
  return status;
}

static void cuda_unload(tl_run_kernel *kernel) {
  tl_program_destroy(kernel->program);
}

// With a workspace of its own, so that what no step has written is poison (NaN as a float) and not what was there.
static tl_status launch_chain(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments) {
  enum { POISON = 0xff };
  tl_run_device *device = kernel->device;
  size_t bytes;
  TL_TRY(tl_chain_workspace_bytes(kernel->gpu_chain, arguments, num_arguments, &bytes));
  tl_run_buffer workspace = {0};
  tl_status status = bytes ? tl_run_device_alloc(device, bytes, 256, &workspace) : TL_OK;
  if (!status && bytes) status = tl_device_fill(device->gpu, workspace.pointer, POISON, bytes, NULL);
  if (!status) status = tl_chain_launch(kernel->gpu_chain, arguments, num_arguments, workspace.pointer, bytes, NULL);
  if (!status)
    status = tl_status_annotate(tl_stream_synchronize(device->gpu, NULL), "running '%s'", kernel->info->name);
  bool ran = !status;
  return tl_status_join(status, tl_run_device_release(device, &workspace, ran ? "the chain's buffers" : NULL));
}

static tl_status cuda_launch(tl_run_kernel *kernel, const tl_argument *arguments, size_t num_arguments) {
  if (kernel->gpu_chain) return launch_chain(kernel, arguments, num_arguments);
  TL_TRY(tl_kernel_launch(kernel->gpu_kernel, arguments, num_arguments, NULL));
  return tl_status_annotate(tl_stream_synchronize(kernel->device->gpu, NULL), "running '%s'", kernel->info->name);
}

const tl_run_device_ops tl_run_cuda_ops = {.close = cuda_close,
                                           .alloc = cuda_alloc,
                                           .free = cuda_free,
                                           .write = cuda_write,
                                           .read = cuda_read,
                                           .load = cuda_load,
                                           .load_ptx = cuda_load_ptx,
                                           .unload = cuda_unload,
                                           .launch = cuda_launch};
