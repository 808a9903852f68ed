// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A room of a room that knows a higher one: meta.rooms.finds.
#include "llvm_backend/lower/flow/high.h"
