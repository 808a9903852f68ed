// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Content of shared memory that no thread may count on, for the checks of accesses and of undefined values.
#include "emulator/sanitize/sanitizer.h"

bool tl_emu_is_of_earlier_tile(const tl_emu_sanitizer *checker, uint32_t index, tl_emu_epoch write) {
  uint32_t agent = tl_emu_epoch_agent(write), clock = tl_emu_epoch_clock(write);
  if (agent >= 2 * checker->num_threads || write == TL_EMU_EPOCH_READ) return false;
  const tl_emu_agent *reader = &checker->agents[index], *writer = &checker->agents[agent % checker->num_threads];
  if (writer->tiles != reader->tiles) return writer->tiles < reader->tiles;
  return agent < checker->num_threads ? clock < writer->tile_start : clock <= writer->tile_copies;
}

bool tl_emu_is_unwritten(const tl_emu_sanitizer *checker, uint32_t agent, const tl_emu_block *block, size_t offset) {
  size_t index = offset >> checker->granule_shift;
  tl_emu_epoch write = checker->cells[block->rank * checker->num_cells + index].write;
  bool unwritten = !write || (checker->has_tiles && tl_emu_is_of_earlier_tile(checker, agent, write));
  return unwritten &&
         !tl_emu_is_padding(checker->launch, checker->followed, index << checker->granule_shift, checker->granule);
}
