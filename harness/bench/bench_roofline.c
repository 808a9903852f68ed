// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/bench/bench_roofline.h"

void tl_bench_machine_init(tl_bench_machine *machine, const tl_device_facts *facts, int compute_capability,
                           int num_sms) {
  const tl_peak *peak = tl_peak_for_device(compute_capability);
  *machine = (tl_bench_machine){.l2_bytes = facts->l2_bytes,
                                .num_sms = num_sms,
                                .clock_mhz = facts->clock_khz / 1000,
                                .peak = peak,
                                // Both edges of the memory clock carry data.
                                .dram_bytes = 2e3 * facts->memory_clock_khz * facts->bus_bits / 8};
  if (!peak) return;
  int boost = machine->clock_mhz;
  machine->tensor_clock_mhz =
      peak->tensor_clock_mhz > 0 && peak->tensor_clock_mhz < boost ? peak->tensor_clock_mhz : boost;
  double vector = 1e6 * boost * num_sms, tensor = 1e6 * machine->tensor_clock_mhz * num_sms;
  machine->flops[TL_BENCH_F32] = vector * peak->f32;
  machine->flops[TL_BENCH_F16] = tensor * peak->f16;
  machine->flops[TL_BENCH_F8] = tensor * peak->f8;
  machine->flops[TL_BENCH_TF32] = tensor * peak->tf32;
  machine->flops[TL_BENCH_F64] = vector * peak->f64;
}

const char *tl_bench_unit_name(tl_bench_unit unit) {
  static const char *const names[TL_BENCH_UNIT_COUNT] = {"f32", "f16 mma", "f8 mma", "tf32 mma", "f64 mma"};
  return names[unit];
}

static void visit(tl_op *op, void *user) {
  tl_bench_unit *unit = user;
  if (op->code != TL_OP_GEMM) return;
  switch (tl_op_arg(op, TL_GROUP_GEMM_a)->type->dtype) {
    case TL_DTYPE_F16:
    case TL_DTYPE_BF16:
      *unit = TL_BENCH_F16;
      break;
    case TL_DTYPE_TF32:
      *unit = TL_BENCH_TF32;
      break;
    case TL_DTYPE_F64:
      *unit = TL_BENCH_F64;
      break;
    case TL_DTYPE_F8E4M3:
    case TL_DTYPE_F8E5M2:
    case TL_DTYPE_I8:
    case TL_DTYPE_U8:
    case TL_DTYPE_I4:
    case TL_DTYPE_U4:
      *unit = TL_BENCH_F8;
      break;
    default:  // f32 is computed without mma
      break;
  }
}

tl_bench_unit tl_bench_unit_of(tl_module *tile) {
  tl_bench_unit unit = TL_BENCH_F32;
  tl_walk_module(tile, visit, &unit);
  return unit;
}

static double compute_seconds(const tl_bench_machine *machine, tl_bench_unit unit, double flops) {
  return machine->flops[unit] > 0 && flops > 0 ? flops / machine->flops[unit] : 0;
}

static double memory_seconds(const tl_bench_machine *machine, double bytes) {
  return machine->dram_bytes > 0 && bytes > 0 ? bytes / machine->dram_bytes : 0;
}

double tl_bench_roofline_seconds(const tl_bench_machine *machine, tl_bench_unit unit, double flops, double bytes) {
  double compute = compute_seconds(machine, unit, flops), memory = memory_seconds(machine, bytes);
  return compute > memory ? compute : memory;
}

bool tl_bench_is_dram_bound(const tl_bench_machine *machine, tl_bench_unit unit, double flops, double bytes) {
  return memory_seconds(machine, bytes) > compute_seconds(machine, unit, flops);
}
