// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counter-based random numbers: element i of a stream depends on the stream's key and i alone, with integer arithmetic
// and exactly rounded floating-point operations only, so that every machine makes the same numbers.
#ifndef TL_HARNESS_RANDOM_H
#define TL_HARNESS_RANDOM_H

#include <stdint.h>

#include "support/strview.h"

// The key of a named stream.
uint64_t tl_random_key(uint64_t seed, tl_str kernel, tl_str argument);
// 64 random bits.
uint64_t tl_random_bits(uint64_t key, uint64_t index);
// Uniform in [0, 1), a multiple of 2^-53.
double tl_random_uniform(uint64_t key, uint64_t index);
// Uniform in 0 … count - 1; count 0 stands for 2^64.
uint64_t tl_random_below(uint64_t key, uint64_t index, uint64_t count);
// Standard normal, by inversion of the cumulative distribution.
double tl_random_normal(uint64_t key, uint64_t index);
// The quantile function of the standard normal distribution for 0 < p < 1 (Wichura, Algorithm AS 241: relative error
// 1e-16).
double tl_normal_quantile(double p);

#endif
