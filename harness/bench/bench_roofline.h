// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the hardware could do at best, from its attributes and the table of ir/target.def.
#ifndef TL_HARNESS_BENCH_ROOFLINE_H
#define TL_HARNESS_BENCH_ROOFLINE_H

#include <stdbool.h>

#include "ir/ir.h"
#include "ir/target.h"
#include "runtime/device.h"

// The unit that bounds a kernel's arithmetic.
typedef enum tl_bench_unit {
  TL_BENCH_F32,  // arithmetic without mma
  TL_BENCH_F16,  // mma of f16 and bf16
  TL_BENCH_F8,   // mma of 8-bit types
  TL_BENCH_TF32,
  TL_BENCH_F64,
  TL_BENCH_UNIT_COUNT
} tl_bench_unit;

typedef struct tl_bench_machine {
  double flops[TL_BENCH_UNIT_COUNT];  // a second; 0: unknown
  double dram_bytes;                  // a second; 0: unknown
  int64_t l2_bytes;
  int num_sms, clock_mhz, tensor_clock_mhz;
  const tl_peak *peak;  // NULL: unknown architecture
} tl_bench_machine;

void tl_bench_machine_init(tl_bench_machine *machine, const tl_device_facts *facts, int compute_capability,
                           int num_sms);
// "f16 mma".
const char *tl_bench_unit_name(tl_bench_unit unit);
// The unit of a compiled kernel: that of its gemms' operands, or f32 arithmetic.
tl_bench_unit tl_bench_unit_of(tl_module *tile);
// The least time of `flops` operations and `bytes` of DRAM traffic, either of which may be 0 (unknown). 0 when nothing
// is known.
double tl_bench_roofline_seconds(const tl_bench_machine *machine, tl_bench_unit unit, double flops, double bytes);
// Whether DRAM is what bounds it.
bool tl_bench_is_dram_bound(const tl_bench_machine *machine, tl_bench_unit unit, double flops, double bytes);

#endif
