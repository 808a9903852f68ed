// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether results are equal, and the memory as it was before: a kernel that this compiler makes, so that a launch and
// its judgement follow one another on a stream without the host.
#ifndef TL_HARNESS_REPEAT_JUDGE_H
#define TL_HARNESS_REPEAT_JUDGE_H

#include "harness/check/repeat_data.h"

// A word of a result that is not the first launch's.
typedef struct tl_repeat_difference {
  uint32_t launch;  // number as given to tl_repeat_judge_begin, plus the launch's in its batch
  uint32_t word;    // of the set
  uint32_t value;
} tl_repeat_difference;

typedef struct tl_repeat_judge tl_repeat_judge;

// For sets whose `expected` is known. `compared`: a mask of the bits of the written part that count.
TL_MUST_USE tl_status tl_repeat_judge_create(tl_repeat_sets *sets, const uint8_t *compared, const tl_target *target,
                                             tl_repeat_judge **out);
void tl_repeat_judge_destroy(tl_repeat_judge *judge);
// Before a batch of launches, the first of which is number `first`.
TL_MUST_USE tl_status tl_repeat_judge_begin(tl_repeat_judge *judge, uint32_t first);
// Behind launch `index` of the batch on the stream of `set`: keeps what differs and writes the initial image. Can be
// recorded.
TL_MUST_USE tl_status tl_repeat_judge_put(tl_repeat_judge *judge, uint32_t set, uint32_t index);
// After the batch, once its streams have ended: what differs, by launch and word; of many the first that came. The
// array is borrowed until the next call.
TL_MUST_USE tl_status tl_repeat_judge_end(tl_repeat_judge *judge, const tl_repeat_difference **out, size_t *out_len);

#endif
