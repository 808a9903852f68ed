// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts of accumulators and operands in registers of every matrix instruction.
#include <check.h>
#include <stdlib.h>

#include "ir/layout/instruction.h"

// Sizes with and without padding, and every partition of 1 to 8 warps.
static void check_layouts(const tl_instruction *inst, int32_t m, int32_t n, int32_t warps_m, int32_t warps_n,
                          int32_t warps) {
  tl_gemm_warps partition = {.m = warps_m, .n = warps_n, .k = 1, .all = warps};
  int32_t shape[2] = {m, n};
  tl_layout acc = tl_instruction_acc_layout(inst, shape, partition);
  const char *problem = tl_layout_verify(&acc, warps * 32);
  ck_assert_msg(!problem, "accumulator: %s", problem ? problem : "");
  tl_layout a = tl_instruction_a_layout(inst, shape, partition);
  problem = tl_layout_verify(&a, warps * 32);
  ck_assert_msg(!problem, "operand: %s", problem ? problem : "");
  ck_assert_int_eq(tl_layout_padded(&a, 0), tl_layout_padded(&acc, 0));
  // Warps side by side hold the same rows of the operand.
  for (int32_t w = 0; w < warps; w++) {
    int32_t first[TL_MAX_RANK], other[TL_MAX_RANK];
    tl_layout_coord(&a, 0, 0, w % warps_m, first);
    tl_layout_coord(&a, 0, 0, w, other);
    ck_assert_int_eq(first[0], other[0]);
    tl_layout_coord(&acc, 0, 0, w, other);
    ck_assert_int_eq(first[0], other[0]);
  }
}

START_TEST(layouts_are_well_formed) {
  static const int32_t sizes[][2] = {{64, 64}, {128, 32}, {33, 20}, {1, 1}, {48, 136}, {7, 300}};
  const tl_instruction mma = tl_instruction_of_mma(tl_mma_inst_of((tl_mma_inst_id)_i)), *inst = &mma;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int32_t warps_m = 1; warps_m <= 4; warps_m++)
      for (int32_t warps_n = 1; warps_n <= 2; warps_n++)
        for (int32_t replicas = 1; replicas <= 3; replicas++)
          check_layouts(inst, sizes[s][0], sizes[s][1], warps_m, warps_n, warps_m * warps_n * replicas);
}
END_TEST

// The swapped accumulator is that of the transposed product, and warps that share columns of it hold the same part of
// B.
START_TEST(swapped_layouts_are_the_transposed_product) {
  static const int32_t sizes[][2] = {{16, 64}, {5, 96}, {8, 40}, {33, 128}};
  const tl_instruction mma = tl_instruction_of_mma(tl_mma_inst_of(TL_MMA_INST_F16)), *inst = &mma;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int32_t warps_n = 1; warps_n <= 4; warps_n *= 2) {
      tl_gemm_warps warps = {.m = 1, .n = warps_n, .k = 1, .all = 4};
      int32_t shape[2] = {sizes[s][0], sizes[s][1]}, transposed[2] = {shape[1], shape[0]}, b_shape[2] = {shape[1], 64};
      tl_layout acc = tl_instruction_swapped_acc_layout(inst, shape, warps);
      tl_layout plain = tl_instruction_acc_layout(inst, transposed, (tl_gemm_warps){warps_n, 1, 1, 4});
      tl_layout b = tl_instruction_b_layout(inst, b_shape, 1, 8, warps);
      ck_assert_ptr_null(tl_layout_verify(&acc, 128));
      ck_assert_ptr_null(tl_layout_verify(&b, 128));
      ck_assert_int_eq(tl_layout_num_registers(&acc), tl_layout_num_registers(&plain));
      for (int32_t lane = 0; lane < 32; lane++)
        for (int32_t w = 0; w < 4; w++)
          for (int32_t r = 0; r < tl_layout_num_registers(&acc); r++) {
            int32_t at[TL_MAX_RANK], other[TL_MAX_RANK];
            tl_layout_coord(&acc, r, lane, w, at);
            tl_layout_coord(&plain, r, lane, w, other);
            ck_assert_int_eq(at[0], other[1]);
            ck_assert_int_eq(at[1], other[0]);
            tl_layout_coord(&b, 0, lane, w, other);
            if (r == 0) ck_assert_int_eq(at[1], other[0]);
          }
    }
}
END_TEST

// Warps that share K out: each has its own sum of every element, and its own part of B.
START_TEST(warps_along_k_have_sums_of_their_own) {
  const tl_instruction mma = tl_instruction_of_mma(tl_mma_inst_of(TL_MMA_INST_F16)), *inst = &mma;
  for (int32_t k = 2; k <= 4; k *= 2)
    for (int32_t replicas = 1; replicas <= 2; replicas++) {
      tl_gemm_warps warps = {.m = 1, .n = 2, .k = k, .all = 2 * k * replicas};
      int32_t sums[3] = {k, 16, 64}, plain[2] = {16, 64}, b_shape[2] = {64, 128};
      tl_layout acc = tl_instruction_swapped_acc_layout(inst, sums, warps),
                b = tl_instruction_b_layout(inst, b_shape, 1, 8, warps);
      tl_layout one = tl_instruction_swapped_acc_layout(inst, plain, (tl_gemm_warps){.m = 1, .n = 2, .k = 1, .all = 2});
      ck_assert_ptr_null(tl_layout_verify(&acc, warps.all * 32));
      ck_assert_ptr_null(tl_layout_verify(&b, warps.all * 32));
      for (int32_t w = 0; w < warps.all; w++)
        for (int32_t r = 0; r < tl_layout_num_registers(&acc); r++) {
          int32_t at[TL_MAX_RANK], other[TL_MAX_RANK];
          tl_layout_coord(&acc, r, 5, w, at);
          tl_layout_coord(&one, r, 5, w % 2, other);
          ck_assert_int_eq(at[0], w / 2 % k);
          ck_assert_int_eq(at[1], other[0]);
          ck_assert_int_eq(at[2], other[1]);
          tl_layout_coord(&b, r, 0, w, other);
          ck_assert_int_eq(other[1] / (128 / k), w / 2 % k);
        }
    }
}
END_TEST

// PTX ISA, "Matrix Fragments for mma.m16n8k32": register r of A, byte i.
START_TEST(operands_of_bytes_lie_as_the_manual_says) {
  tl_instruction inst = tl_instruction_of_mma(tl_mma_inst_of(TL_MMA_INST_I8));
  tl_layout a = tl_instruction_a_layout(&inst, (int32_t[]){16, 32}, (tl_gemm_warps){1, 1, 1, 1});
  for (int32_t lane = 0; lane < 32; lane++)
    for (int32_t r = 0; r < 16; r++) {
      int32_t at[TL_MAX_RANK];
      tl_layout_coord(&a, r, lane, 0, at);
      int32_t word = r / 4, byte = r % 4;
      ck_assert_int_eq(at[0], lane / 4 + word % 2 * 8);
      ck_assert_int_eq(at[1], lane % 4 * 4 + byte + word / 2 * 16);
    }
}
END_TEST

START_TEST(sixteen_bit_products_are_operands_as_they_are) {
  const tl_instruction mma = tl_instruction_of_mma(tl_mma_inst_of(TL_MMA_INST_BF16)), *inst = &mma;
  int32_t shape[2] = {64, 72};
  tl_layout acc = tl_instruction_acc_layout(inst, shape, (tl_gemm_warps){4, 1, 1, 8});
  tl_layout a = tl_instruction_a_layout(inst, shape, (tl_gemm_warps){4, 2, 1, 8});
  ck_assert(tl_layout_equal(&acc, &a));
}
END_TEST

START_TEST(instructions_are_found_by_dtype) {
  for (int i = 0; i < TL_MMA_INST_COUNT; i++) {
    const tl_mma_inst *row = tl_mma_inst_of((tl_mma_inst_id)i);
    tl_instruction inst = tl_instruction_find(TL_FAMILY_MMA, row->a, row->b, row->acc);
    ck_assert_ptr_eq(tl_instruction_mma(&inst), row);
  }
  ck_assert_int_eq(tl_instruction_find(TL_FAMILY_MMA, TL_DTYPE_F32, TL_DTYPE_F32, TL_DTYPE_F32).family, TL_FAMILY_NONE);
  ck_assert_int_eq(tl_instruction_find(TL_FAMILY_WGMMA, TL_DTYPE_F16, TL_DTYPE_BF16, TL_DTYPE_F32).family,
                   TL_FAMILY_NONE);
}
END_TEST

static tl_instruction wgmma(tl_dtype a, tl_dtype b, tl_dtype acc, int32_t n) {
  tl_instruction inst = tl_instruction_find(TL_FAMILY_WGMMA, a, b, acc);
  inst.n = n;
  return inst;
}

// PTX ISA, "Register Fragments for wgmma": d[i] of thread t, and A's registers, for two warpgroups of two blocks each.
START_TEST(wgmma_lies_as_the_manual_says) {
  tl_instruction inst = wgmma(TL_DTYPE_BF16, TL_DTYPE_BF16, TL_DTYPE_F32, 96);
  tl_gemm_warps warps = {.m = 8, .n = 1, .k = 1, .all = 8};
  tl_layout acc = tl_instruction_acc_layout(&inst, (int32_t[]){256, 192}, warps);
  ck_assert_ptr_null(tl_layout_verify(&acc, 256));
  ck_assert_int_eq(tl_layout_num_registers(&acc), 2 * 96);
  for (int32_t t = 0; t < 256; t++)
    for (int32_t r = 0; r < 192; r++) {
      int32_t at[TL_MAX_RANK], block = r / 96, i = r % 96;
      tl_layout_coord(&acc, r, t % 32, t / 32, at);
      ck_assert_int_eq(at[0], t / 128 * 128 + block * 64 + t / 32 % 4 * 16 + t % 32 / 4 + 8 * (i / 2 % 2));
      ck_assert_int_eq(at[1], 8 * (i / 4) + 2 * (t % 4) + i % 2);
    }
  tl_layout a = tl_instruction_a_layout(&inst, (int32_t[]){256, 192}, warps);
  ck_assert(tl_layout_equal(&acc, &a));
  inst = wgmma(TL_DTYPE_I8, TL_DTYPE_U8, TL_DTYPE_I32, 64);
  a = tl_instruction_a_layout(&inst, (int32_t[]){64, 64}, (tl_gemm_warps){4, 1, 1, 8});
  ck_assert_ptr_null(tl_layout_verify(&a, 256));
  for (int32_t t = 0; t < 256; t++)
    for (int32_t r = 0; r < 32; r++) {
      int32_t at[TL_MAX_RANK], word = r / 4;
      tl_layout_coord(&a, r, t % 32, t / 32, at);
      ck_assert_int_eq(at[0], t / 32 % 4 * 16 + t % 32 / 4 + 8 * (word % 2));
      ck_assert_int_eq(at[1], t % 4 * 4 + r % 4 + 16 * (word / 2));
    }
}
END_TEST

START_TEST(wgmma_takes_the_widest_n) {
  static const struct {
    int32_t columns, n, n_of_bytes;  // 0: none
  } cases[] = {{256, 256, 256}, {512, 256, 256}, {192, 192, 192}, {320, 160, 160}, {72, 72, 24},
               {8, 8, 8},       {24, 24, 24},    {40, 40, 8},     {20, 0, 0}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    tl_instruction half = wgmma(TL_DTYPE_F16, TL_DTYPE_F16, TL_DTYPE_F32, 0);
    tl_instruction bytes = wgmma(TL_DTYPE_I8, TL_DTYPE_I8, TL_DTYPE_I32, 0);
    ck_assert_int_eq(tl_instruction_set_n(&half, cases[c].columns), cases[c].n > 0);
    ck_assert_int_eq(half.n, cases[c].n);
    tl_instruction_set_n(&bytes, cases[c].columns);
    ck_assert_int_eq(bytes.n, cases[c].n_of_bytes);
  }
}
END_TEST

START_TEST(instructions_have_texts) {
  static const char *const good[] = {
      "fma.m1n1k1.f32.f16.f16",       "mma.m16n8k16.f32.bf16.bf16",           "mma.m16n8k32.i32.u8.i8",
      "mma.m8n8k4.f64.f64.f64",       "wgmma.m64n256k16.f32.bf16.bf16.ss.tb", "wgmma.m64n8k8.f32.tf32.tf32.rs",
      "wgmma.m64n24k32.i32.u8.i8.ss", "wgmma.m64n128k16.f16.f16.f16.ss.ta.tb"};
  static const char *const bad[] = {"",
                                    "mma",
                                    "none.m1n1k1.f32.f32.f32",
                                    "mma.m16n8k8.f32.f16.f16",
                                    "mma.m16n8k16.f32.f16.bf16",
                                    "mma.m16n8k16.f32.f16.f16.rs",
                                    "mma.m16n8k16.f32.f16",
                                    "wgmma.m64n256k16.f32.bf16.bf16",
                                    "wgmma.m64n260k16.f32.bf16.bf16.ss",
                                    "wgmma.m64n264k16.f32.bf16.bf16.ss",
                                    "wgmma.m64n40k32.i32.i8.i8.ss",
                                    "wgmma.m64n64k32.i32.i8.i8.ss.tb",
                                    "wgmma.m64n64k16.f32.f16.f16.rs.ta",
                                    "wgmma.m64n64k16.f32.f16.f16.ss.tb.ta"};
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_instruction inst;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    ck_assert_msg(tl_instruction_parse(tl_str_from(good[i]), &inst), "%s", good[i]);
    tl_strbuf_clear(&text);
    tl_instruction_print(&inst, &text);
    ck_assert_str_eq(tl_strbuf_c(&text), good[i]);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_msg(!tl_instruction_parse(tl_str_from(bad[i]), &inst), "%s", bad[i]);
  tl_strbuf_fini(&text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir instruction");
  TCase *cases = tcase_create("mma");
  tcase_add_loop_test(cases, layouts_are_well_formed, 0, TL_MMA_INST_COUNT);
  tcase_add_test(cases, swapped_layouts_are_the_transposed_product);
  tcase_add_test(cases, warps_along_k_have_sums_of_their_own);
  tcase_add_test(cases, operands_of_bytes_lie_as_the_manual_says);
  tcase_add_test(cases, sixteen_bit_products_are_operands_as_they_are);
  tcase_add_test(cases, instructions_are_found_by_dtype);
  tcase_add_test(cases, wgmma_lies_as_the_manual_says);
  tcase_add_test(cases, wgmma_takes_the_widest_n);
  tcase_add_test(cases, instructions_have_texts);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}
