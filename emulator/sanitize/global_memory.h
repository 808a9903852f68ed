// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffers of global memory and what is remembered of their bytes. Private to the checks of global memory and to those
// who name its elements.
#ifndef TL_EMULATOR_GLOBAL_MEMORY_H
#define TL_EMULATOR_GLOBAL_MEMORY_H

#include "emulator/sanitize/sanitizer.h"

// A granule of global memory: its last write and its last read, each with the owner (+ 1) that did it.
typedef struct tl_emu_global_cell {
  tl_emu_epoch write, read;
  uint32_t writer, reader;
} tl_emu_global_cell;

struct tl_emu_global {
  tl_emu_buffer *buffers;  // Owned. By address.
  size_t num_buffers;
  tl_emu_global_cell **cells;  // of each buffer; NULL: not mapped
  uint32_t granule;
  bool has_cells;
  bool has_tiles;   // owners are tiles of a persistent kernel
  char locks[256];  // of stretches of memory
};

// Cells are counted from an aligned address, as accesses are: how far before the buffer that is.
size_t tl_emu_global_bytes_before(const tl_emu_buffer *buffer);
// The buffer that holds all of the access, by the one that the last access was in; num_buffers: none.
size_t tl_emu_global_find(const tl_emu_global *global, const uint8_t *address, size_t bytes);

#endif
