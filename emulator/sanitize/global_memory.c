// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The shadow of global memory for one launch: its buffers and their cells. It is mapped when the launch starts and
// costs only the pages that are used; several OS threads share it.
#include "emulator/sanitize/global_memory.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { CELLS_ALIGN = 16 };
size_t tl_emu_global_bytes_before(const tl_emu_buffer *buffer) {
  return (uintptr_t)buffer->start % CELLS_ALIGN;
}

static size_t cells_bytes(const tl_emu_global *global, const tl_emu_buffer *buffer) {
  return (tl_emu_global_bytes_before(buffer) + buffer->bytes + global->granule - 1) / global->granule *
         sizeof(tl_emu_global_cell);
}

tl_emu_global *tl_emu_global_create(uint32_t checks, uint32_t granule) {
  if (!checks) return NULL;
  tl_emu_global *global = tl_xcalloc(1, sizeof *global);
  global->granule = granule;
  global->has_cells = checks & (TL_EMU_SANITIZE_RACE | TL_EMU_SANITIZE_BLOCKS);
  global->buffers = tl_emu_copy_buffers(&global->num_buffers);
  global->cells = tl_xcalloc(global->num_buffers + 1, sizeof *global->cells);
  for (size_t i = 0; i < global->num_buffers && global->has_cells; i++) {
    size_t bytes = cells_bytes(global, &global->buffers[i]);
    void *map = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                      : MAP_FAILED;
    if (map != MAP_FAILED) global->cells[i] = map;
  }
  return global;
}

void tl_emu_global_destroy(tl_emu_global *global) {
  if (!global) return;
  for (size_t i = 0; i < global->num_buffers; i++)
    if (global->cells[i]) munmap(global->cells[i], cells_bytes(global, &global->buffers[i]));
  free(global->cells);
  free(global->buffers);
  free(global);
}

size_t tl_emu_global_find(const tl_emu_global *global, const uint8_t *address, size_t bytes) {
  static _Thread_local size_t last;
  size_t low = 0, high = global->num_buffers;
  if (last >= high || (size_t)(address - global->buffers[last].start) >= global->buffers[last].bytes) {
    while (high - low > 1) {
      size_t middle = (low + high) / 2;
      if (global->buffers[middle].start <= address)
        low = middle;
      else
        high = middle;
    }
    last = low;
  }
  if (!global->num_buffers) return 0;
  size_t offset = (size_t)(address - global->buffers[last].start), size = global->buffers[last].bytes;
  return offset < size && bytes <= size - offset ? last : global->num_buffers;
}

size_t tl_emu_buffer_bytes(const tl_emu_global *global, const void *start) {
  size_t index = tl_emu_global_find(global, start, 1);
  return index < global->num_buffers && global->buffers[index].start == start ? global->buffers[index].bytes : 0;
}

void tl_emu_global_owned_by_tiles(tl_emu_global *global) {
  __atomic_store_n(&global->has_tiles, true, __ATOMIC_RELAXED);
}
