// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The entry point of a fuzz target, as libFuzzer calls it.
#ifndef TL_TEST_FUZZ_FUZZ_H
#define TL_TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

// Runs the target over one input. Aborts when a property does not hold; returns 0 otherwise.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
