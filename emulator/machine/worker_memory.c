// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stacks of fibers and the window of shared memory. Mapping hundreds of stacks with guard pages costs more than running
// a small kernel: what a launch is done with is kept for the next one.
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator/machine/machine.h"

#ifdef TL_SANITIZED
#include <sanitizer/asan_interface.h>
#endif

// Unoptimised host code keeps every value in the frame; only what is touched costs memory.
enum { STACK_BYTES = 512 << 10, GUARD_BYTES = 4096, LOW_GUARD_BYTES = 1 << 20 };
#define SLOT_BYTES ((size_t)1 << 32)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static tl_emu_memory *free_list;  // under the mutex

size_t tl_emu_stack_bytes(void) {
  return STACK_BYTES;
}

uint8_t *tl_emu_memory_stack(const tl_emu_memory *memory, size_t index) {
  return memory->stacks + index * (STACK_BYTES + GUARD_BYTES) + GUARD_BYTES;
}

long tl_emu_memory_guard_of(const tl_emu_memory *memory, uintptr_t address) {
  uintptr_t offset = address - (uintptr_t)memory->stacks;
  if (address < (uintptr_t)memory->stacks || offset >= memory->num_stacks * (STACK_BYTES + GUARD_BYTES)) return -1;
  return offset % (STACK_BYTES + GUARD_BYTES) < GUARD_BYTES ? (long)(offset / (STACK_BYTES + GUARD_BYTES)) : -1;
}

static void *reserve(size_t bytes) {
  void *map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return map == MAP_FAILED ? NULL : map;
}

static tl_status no_memory(const char *what) {
  return tl_status_make(errno == ENOMEM ? TL_STATUS_OUT_OF_MEMORY : TL_STATUS_LIMIT, "emulator: cannot map %s: %s",
                        what, strerror(errno));
}

// The low 32 bits of a shared pointer are then its offset, as on the device, and nothing else is within reach of one:
// below lies a guard, above the rest of the slot.
static tl_status map_window(tl_emu_memory *memory) {
  uint8_t *map = reserve(2 * SLOT_BYTES + LOW_GUARD_BYTES);
  if (!map) return no_memory("a window of shared memory");
  uint8_t *window = map + LOW_GUARD_BYTES;
  window += -(uintptr_t)window & (SLOT_BYTES - 1);
  uint8_t *low = window - LOW_GUARD_BYTES, *end = window + SLOT_BYTES;
  uint8_t *map_end = map + 2 * SLOT_BYTES + LOW_GUARD_BYTES;
  if (low > map) munmap(map, (size_t)(low - map));
  if (map_end > end) munmap(end, (size_t)(map_end - end));
  memory->window = window;
  return TL_OK;
}

static tl_status map_stacks(tl_emu_memory *memory, size_t num_stacks) {
  size_t stride = STACK_BYTES + GUARD_BYTES;
  if (memory->stacks) {
#ifdef TL_SANITIZED
    // Frames of fibers that were abandoned leave poison behind, which would outlive the mapping.
    __asan_unpoison_memory_region(memory->stacks, memory->num_stacks * stride);
#endif
    munmap(memory->stacks, memory->num_stacks * stride);
  }
  memory->num_stacks = 0;
  memory->stacks = reserve(num_stacks * stride);
  if (!memory->stacks) return no_memory("stacks");
  memory->num_stacks = num_stacks;
  for (size_t i = 0; i < num_stacks; i++)
    if (mprotect(tl_emu_memory_stack(memory, i), STACK_BYTES, PROT_READ | PROT_WRITE)) return no_memory("stacks");
  return TL_OK;
}

tl_status tl_emu_memory_acquire(size_t num_stacks, tl_emu_memory **out) {
  pthread_mutex_lock(&mutex);
  tl_emu_memory *memory = free_list;
  if (memory) free_list = memory->next;
  pthread_mutex_unlock(&mutex);
  if (!memory) memory = tl_xcalloc(1, sizeof *memory);
  tl_status status = memory->window ? TL_OK : map_window(memory);
  if (!status && memory->num_stacks < num_stacks) status = map_stacks(memory, num_stacks);
  if (status) {
    tl_emu_memory_release(memory);
    return status;
  }
  *out = memory;
  return TL_OK;
}

void tl_emu_memory_release(tl_emu_memory *memory) {
  if (!memory) return;
  pthread_mutex_lock(&mutex);
  memory->next = free_list;
  free_list = memory;
  pthread_mutex_unlock(&mutex);
}

static int protect_blocks(const tl_emu_memory *memory, uint32_t num_blocks, size_t bytes, int protection) {
  if (!bytes) return 0;
  for (uint32_t i = 0; i < num_blocks; i++)
    if (mprotect(memory->window + (size_t)i * TL_EMU_BLOCK_STRIDE, bytes, protection)) return -1;
  return 0;
}

tl_status tl_emu_memory_set_shared(tl_emu_memory *memory, uint32_t num_blocks, size_t bytes, size_t align,
                                   uint8_t **out_start) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page * page;
  if (pages > TL_EMU_BLOCK_STRIDE)
    return tl_status_make(TL_STATUS_LIMIT, "emulator: %zu bytes of shared memory are more than a block may have",
                          bytes);
  if (pages != memory->block_pages || num_blocks != memory->num_blocks) {
    if (protect_blocks(memory, memory->num_blocks, memory->block_pages, PROT_NONE) ||
        protect_blocks(memory, num_blocks, pages, PROT_READ | PROT_WRITE))
      return no_memory("shared memory");
    memory->block_pages = pages;
    memory->num_blocks = num_blocks;
  }
  *out_start = memory->window + ((pages - bytes) & ~(align - 1));
  return TL_OK;
}
