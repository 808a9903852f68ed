// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses to global memory.
#include "emulator/checker.h"

bool tl_emu_check_global(tl_emu_checker *checker, const tl_emu_actor *actor, const void *address, size_t bytes,
                         tl_emu_access_kind kind) {
  if (!(checker->checks & TL_EMU_CHECK_BOUNDS) || tl_emu_is_buffer(address, bytes)) return true;
  tl_emu_found(checker, &(tl_emu_seen){TL_EMU_FINDING_BOUNDS, kind, actor, 0, address, bytes, 0});
  return false;
}
