// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every row of the device-op table is bound, and the ops of single threads do what the PTX ISA says.
#include <math.h>

#include "emulator/ops/ops.h"
#include "emulator_op_runner.h"
#include "llvm_backend/device/device_ops.h"
#include "support/dtype.h"

START_TEST(every_row_is_bound) {
  tl_strbuf missing = {0};
  for (int i = 0; i < TL_DEVOP_COUNT; i++) {
    const tl_device_op *op = tl_device_op_of((tl_device_op_id)i);
    const tl_emu_binding *binding = tl_emu_find_binding(op->name);
    if (!binding)
      tl_strbuf_appendf(&missing, "%s has no binding\n", op->name);
    else if (strcmp(binding->signature, op->signature) != 0)
      tl_strbuf_appendf(&missing, "%s is bound as %s, not %s\n", op->name, binding->signature, op->signature);
  }
  ck_assert_msg(!missing.len, "%s", tl_strbuf_c(&missing));
}
END_TEST

START_TEST(no_two_rows_for_one_name) {
  size_t count;
  const tl_emu_binding *bindings = tl_emu_bindings(&count);
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < i; k++) ck_assert_str_ne(bindings[i].name, bindings[k].name);
}
END_TEST

START_TEST(registers) {
  static const struct {
    const char *name;
    uint32_t of_thread_40;
  } cases[] = {{"tid.x", 40},   {"tid.y", 0},    {"tid.z", 0},   {"ntid.x", 64}, {"ntid.y", 1},
               {"ntid.z", 1},   {"ctaid.x", 0},  {"ctaid.y", 0}, {"ctaid.z", 0}, {"nctaid.x", 1},
               {"nctaid.y", 1}, {"nctaid.z", 1}, {"laneid", 8},  {"warpid", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char name[80];
    snprintf(name, sizeof name, "llvm.nvvm.read.ptx.sreg.%s", cases[i].name);
    op_run run = {.name = name, .signature = "i()", .threads = 64};
    op_must(&run);
    ck_assert_msg((uint32_t)run.out[40][0] == cases[i].of_thread_40, "%s: %u", name, (uint32_t)run.out[40][0]);
  }
}
END_TEST

static const float interesting[] = {
    0.0f,          -0.0f, 1.0f,    -1.0f, 0.1f,    65504.0f, 65519.9f, 65520.0f, -70000.0f, 1e-8f,       5.9604645e-8f,
    2.9802322e-8f, 3e-8f, 6.1e-5f, 1e38f, 3.4e38f, 1e-40f,   3.0f,     2049.0f,  2051.0f,   1.00390625f, 1.01171875f};
enum { NUM_INTERESTING = sizeof interesting / sizeof interesting[0] };

START_TEST(conversions) {
  static const struct {
    const char *name, *signature;
    tl_dtype dtype;
    bool relu;
  } cases[] = {{"llvm.nvvm.ff2f16x2.rn", "E(ff)", TL_DTYPE_F16, false},
               {"llvm.nvvm.ff2bf16x2.rn", "Y(ff)", TL_DTYPE_BF16, false},
               {"llvm.nvvm.ff2f16x2.rn.relu", "E(ff)", TL_DTYPE_F16, true},
               {"llvm.nvvm.ff2bf16x2.rn.relu", "Y(ff)", TL_DTYPE_BF16, true}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    op_run run = {.name = cases[c].name, .signature = cases[c].signature, .threads = 64};
    float values[64][2];
    for (int t = 0; t < 64; t++) {
      for (int k = 0; k < 2; k++) {
        values[t][k] = t < NUM_INTERESTING ? interesting[(t + 5 * k) % NUM_INTERESTING]
                                           : ((float)(op_random() >> 8) / 65536.0f - 128.0f);
        run.in[t][k] = op_bits(values[t][k]);
      }
    }
    op_must(&run);
    for (int t = 0; t < 64; t++) {
      for (int k = 0; k < 2; k++) {
        uint16_t want;
        float value = cases[c].relu && values[t][k] <= 0 ? 0 : values[t][k];  // -0 too
        tl_dtype_store_float(cases[c].dtype, &want, 0, (double)value);
        uint16_t got = (uint16_t)(run.out[t][0] >> (k ? 0 : 16));  // the first operand is in the upper half
        ck_assert_msg(got == want, "%s of %a: %04x, wanted %04x", cases[c].name, (double)value, got, want);
      }
    }
  }
}
END_TEST

static double exact(const char *op, double x) {
  if (strstr(op, "ex2")) return exp2(x);
  if (strstr(op, "lg2")) return log2(x);
  if (strstr(op, "rcp")) return 1 / x;
  if (strstr(op, "rsqrt")) return 1 / sqrt(x);
  if (strstr(op, "sqrt")) return sqrt(x);
  if (strstr(op, "tanh")) return tanh(x);
  if (strstr(op, "sin")) return sin(x);
  return cos(x);
}

START_TEST(approximations) {
  static const char *const names[] = {"llvm.nvvm.ex2.approx.f32",     "llvm.nvvm.ex2.approx.ftz.f32",
                                      "llvm.nvvm.lg2.approx.f",       "llvm.nvvm.lg2.approx.ftz.f",
                                      "llvm.nvvm.rcp.approx.ftz.f",   "llvm.nvvm.rsqrt.approx.f",
                                      "llvm.nvvm.rsqrt.approx.ftz.f", "llvm.nvvm.sqrt.approx.f",
                                      "llvm.nvvm.sqrt.approx.ftz.f",  "llvm.nvvm.sin.approx.f",
                                      "llvm.nvvm.sin.approx.ftz.f",   "llvm.nvvm.cos.approx.f",
                                      "llvm.nvvm.cos.approx.ftz.f",   "tl.tanh.approx.f32"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    op_run run = {.name = names[i], .signature = "f(f)", .threads = 64};
    float values[64];
    for (int t = 0; t < 64; t++) {
      values[t] = t == 0 ? 1e-40f : t == 1 ? INFINITY : (float)(op_random() >> 8) / (float)(1 << 20);
      run.in[t][0] = op_bits(values[t]);
    }
    op_must(&run);
    bool ftz = strstr(names[i], "ftz");
    for (int t = 0; t < 64; t++) {
      double want = exact(names[i], t == 0 && ftz ? 0.0 : (double)values[t]), got = (double)op_float(run.out[t][0]);
      if (ftz && fabs(want) < 0x1p-126) want = 0;
      bool good = isnan(want)   ? isnan(got)
                  : isinf(want) ? got == want
                                : fabs(got - want) <= 2e-7 * fabs(want) + (t == 0 && !ftz ? 1e-45 : 0);
      if (isfinite(want) && fabs(want) > 3.4e38) good = isinf(got);
      ck_assert_msg(good, "%s(%a): %a, wanted %a", names[i], (double)values[t], got, want);
    }
  }
}
END_TEST

START_TEST(divisions) {
  static const char *const names[] = {"llvm.nvvm.div.full", "llvm.nvvm.div.full.ftz"};
  for (int i = 0; i < 2; i++) {
    op_run run = {.name = names[i], .signature = "f(ff)"};
    for (int t = 0; t < 32; t++) {
      run.in[t][0] = op_bits((float)t - 7);
      run.in[t][1] = op_bits(t ? 3.0f : 1e-40f);
    }
    op_must(&run);
    for (int t = 1; t < 32; t++) ck_assert(op_float(run.out[t][0]) == ((float)t - 7) / 3.0f);
    ck_assert(op_float(run.out[0][0]) == -INFINITY);
  }
}
END_TEST

// Elements of a predicated access: bytes, count, and bytes of the register of one.
static void access_shape(const char *name, uint32_t *bytes, uint32_t *count) {
  *bytes = tl_str_ends_with(tl_str_from(name), ".b8") ? 1 : tl_str_ends_with(tl_str_from(name), ".b16") ? 2 : 4;
  *count = strstr(name, ".v2.") ? 2 : strstr(name, ".v4.") ? 4 : 1;
}

START_TEST(predicated_loads) {
  for (int i = 0; i < TL_DEVOP_COUNT; i++) {
    const tl_device_op *op = tl_device_op_of((tl_device_op_id)i);
    if (op->family != TL_DEVICE_FAMILY_LD_PRED) continue;
    uint32_t bytes, count;
    access_shape(op->name, &bytes, &count);
    uint8_t *data = tl_emu_alloc(16 * bytes * count, 16);
    for (uint32_t k = 0; k < 16 * bytes * count; k++) data[k] = (uint8_t)(k * 7 + 1);
    op_run run = {.name = op->name, .signature = op->signature};
    for (uint32_t t = 0; t < 32; t++) {
      // Even threads load up to the very end of the buffer; odd ones must not touch their address.
      run.in[t][0] = t & 1 ? 16 : (uintptr_t)(data + t / 2 * bytes * count);
      run.in[t][1] = !(t & 1);
    }
    op_must(&run);
    for (uint32_t t = 0; t < 32; t++) {
      for (uint32_t e = 0; e < count; e++) {
        uint32_t want = 0, mask = bytes < 4 ? 0xffff : 0xffffffffu;
        if (!(t & 1)) memcpy(&want, data + (t / 2 * count + e) * bytes, bytes);
        ck_assert_msg(((uint32_t)run.out[t][e] & mask) == want, "%s: thread %u element %u: %x, wanted %x", op->name, t,
                      e, (uint32_t)run.out[t][e], want);
      }
    }
    if (bytes * count > 1) {
      run.in[0][0] += 1;
      expect_failure(op_try(&run), TL_STATUS_CHECK_FAILED, op->name, "thread 0", "the address is no multiple of");
      run.in[0][0] -= 1;
    }
    run.in[2][0] = (uintptr_t)(data + 16 * bytes * count);
    expect_failure(op_try(&run), TL_STATUS_CHECK_FAILED, op->name, "thread 2", "0 bytes past the end of a buffer of");
    tl_emu_free(data);
  }
}
END_TEST

START_TEST(predicated_stores) {
  for (int i = 0; i < TL_DEVOP_COUNT; i++) {
    const tl_device_op *op = tl_device_op_of((tl_device_op_id)i);
    if (op->family != TL_DEVICE_FAMILY_ST_PRED) continue;
    uint32_t bytes, count;
    access_shape(op->name, &bytes, &count);
    uint8_t *data = tl_emu_alloc(16 * bytes * count, 16);
    op_run run = {.name = op->name, .signature = op->signature};
    for (uint32_t t = 0; t < 32; t++) {
      run.in[t][0] = t & 1 ? 16 : (uintptr_t)(data + t / 2 * bytes * count);
      for (uint32_t e = 0; e < count; e++) run.in[t][1 + e] = 0x01020304u * (t + 1) + e;
      run.in[t][1 + count] = !(t & 1);
    }
    op_must(&run);
    for (uint32_t t = 0; t < 32; t += 2)
      for (uint32_t e = 0; e < count; e++)
        ck_assert_mem_eq(data + (t / 2 * count + e) * bytes, &run.in[t][1 + e], bytes);
    run.in[4][0] = (uintptr_t)data - (1 << 16);
    expect_failure(op_try(&run), TL_STATUS_CHECK_FAILED, op->name, "thread 4", "invalid write 65536 bytes before");
    tl_emu_free(data);
  }
}
END_TEST

START_TEST(predicated_reductions) {
  for (int i = 0; i < TL_DEVOP_COUNT; i++) {
    const tl_device_op *op = tl_device_op_of((tl_device_op_id)i);
    if (op->family != TL_DEVICE_FAMILY_RED_PRED) continue;
    uint32_t count = strstr(op->name, ".v2.") ? 2 : strstr(op->name, ".v4.") ? 4 : 1;
    tl_dtype dtype = strstr(op->name, "bf16x2")  ? TL_DTYPE_BF16
                     : strstr(op->name, "f16x2") ? TL_DTYPE_F16
                                                 : TL_DTYPE_F32;
    uint32_t elements = dtype == TL_DTYPE_F32 ? count : 2;
    void *cells = tl_emu_alloc(4 * (size_t)count, 16);
    memset(cells, 0, 4 * (size_t)count);
    op_run run = {.name = op->name, .signature = op->signature, .threads = 64};
    for (uint32_t t = 0; t < 64; t++) {
      run.in[t][0] = t % 3 == 0 ? 16 : (uintptr_t)cells;
      if (dtype == TL_DTYPE_F32)
        for (uint32_t e = 0; e < count; e++) run.in[t][1 + e] = op_bits((float)(e + 1));
      else
        for (uint32_t e = 0; e < 2; e++) tl_dtype_store_float(dtype, &run.in[t][1], e, e + 1);
      run.in[t][1 + count] = t % 3 != 0;
    }
    op_must(&run);
    for (uint32_t e = 0; e < elements; e++)
      ck_assert_msg(tl_dtype_load_float(dtype, cells, e) == 42.0 * (e + 1), "%s: element %u is %g", op->name, e,
                    tl_dtype_load_float(dtype, cells, e));
    tl_emu_free(cells);
  }
}
END_TEST

START_TEST(atomics) {
  tl_emu_kernel *kernel = must_create("atomics.ll", "counters", (kernel_shape){1, 96, 0});
  for (int threads = 1; threads < 4; threads++) {
    uint32_t grid[3] = {20, 1, 1}, *cells = tl_emu_alloc(7 * 4, 4);
    memset(cells, 0, 7 * 4);
    tl_emu_options options = {.threads = threads, .seed = (uint32_t)threads};
    expect_ok(tl_emu_launch(kernel, grid, (void *[]){&cells}, &options, NULL));
    ck_assert_uint_eq(cells[0], 1920);
    ck_assert_uint_eq(cells[1], 95);
    ck_assert(op_float(cells[2]) == 960.0f);
    ck_assert(tl_dtype_load_float(TL_DTYPE_F16, &cells[3], 0) == 1920.0);
    ck_assert(tl_dtype_load_float(TL_DTYPE_BF16, &cells[3], 1) == 256.0);  // 256 + 1 rounds to 256
    ck_assert_uint_eq(cells[4], 0);
    ck_assert_uint_eq(cells[5], 1920);
    ck_assert_uint_eq(cells[6], 1920);
    tl_emu_free(cells);
  }
  tl_emu_kernel_destroy(kernel);
  kernel = must_create("atomics.ll", "vectors", (kernel_shape){1, 64, 0});
  uint32_t grid[3] = {2, 1, 1}, *cells = tl_emu_alloc(8, 4);
  memset(cells, 0, 8);
  expect_ok(tl_emu_launch(kernel, grid, (void *[]){&cells}, NULL, NULL));
  ck_assert(tl_dtype_load_float(TL_DTYPE_F16, cells, 0) == 128.0 &&
            tl_dtype_load_float(TL_DTYPE_F16, cells, 1) == 256.0);
  ck_assert(tl_dtype_load_float(TL_DTYPE_BF16, cells, 2) == 128.0 &&
            tl_dtype_load_float(TL_DTYPE_BF16, cells, 3) == 256.0);
  tl_emu_free(cells);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_test(cases, every_row_is_bound);
  tcase_add_test(cases, no_two_rows_for_one_name);
  tcase_add_test(cases, registers);
  tcase_add_test(cases, conversions);
  tcase_add_test(cases, approximations);
  tcase_add_test(cases, divisions);
  tcase_add_test(cases, predicated_loads);
  tcase_add_test(cases, predicated_stores);
  tcase_add_test(cases, predicated_reductions);
  tcase_add_test(cases, atomics);
}

int main(void) {
  return run_suite("emulator ops", add_tests);
}
