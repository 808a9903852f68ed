// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element types: rounding, encodings, limits.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/dtype.h"

static const tl_dtype floats[] = {TL_DTYPE_F32,    TL_DTYPE_TF32,   TL_DTYPE_F16,   TL_DTYPE_BF16,
                                  TL_DTYPE_F8E4M3, TL_DTYPE_F8E5M2, TL_DTYPE_F4E2M1};

START_TEST(every_small_encoding_survives_a_round_trip) {
  static const tl_dtype dtypes[] = {TL_DTYPE_F16, TL_DTYPE_BF16, TL_DTYPE_F8E4M3, TL_DTYPE_F8E5M2, TL_DTYPE_F4E2M1};
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
    int bits = tl_dtype_bits(dtypes[d]);
    for (unsigned code = 0; code < 1u << bits; code++) {
      unsigned array = code, back = 0;
      double value = tl_dtype_load_float(dtypes[d], &array, 0);
      tl_dtype_store_float(dtypes[d], &back, 0, value);
      if (isnan(value)) {
        ck_assert(isnan(tl_dtype_load_float(dtypes[d], &back, 0)));
      } else if (isinf(value) && bits == 8) {
        ck_assert(tl_dtype_load_float(dtypes[d], &back, 0) == copysign(tl_dtype_float_max(dtypes[d]), value));
      } else {
        ck_assert_uint_eq(back, code);
      }
    }
  }
}
END_TEST

START_TEST(f32_rounding_agrees_with_the_compiler) {
  srand(1);
  for (int i = 0; i < 200000; i++) {
    double value = ldexp((double)rand() / RAND_MAX - 0.5, rand() % 300 - 150);
    ck_assert(tl_dtype_round(TL_DTYPE_F32, value) == (double)(float)value);
    float stored;
    tl_dtype_store_float(TL_DTYPE_F32, &stored, 0, value);
    ck_assert(stored == (float)value);
  }
}
END_TEST

START_TEST(ties_go_to_even) {
  ck_assert(tl_dtype_round(TL_DTYPE_F16, 2049) == 2048);
  ck_assert(tl_dtype_round(TL_DTYPE_F16, 2051) == 2052);
  ck_assert(tl_dtype_round(TL_DTYPE_BF16, 257) == 256);
  ck_assert(tl_dtype_round(TL_DTYPE_BF16, 259) == 260);
  ck_assert(tl_dtype_round(TL_DTYPE_F8E4M3, 17) == 16);
  ck_assert(tl_dtype_round(TL_DTYPE_F8E4M3, 19) == 20);
}
END_TEST

START_TEST(overflow_saturates_or_becomes_infinite) {
  ck_assert(isinf(tl_dtype_round(TL_DTYPE_F16, 65520)));
  ck_assert(tl_dtype_round(TL_DTYPE_F16, 65519) == 65504);
  ck_assert(tl_dtype_round(TL_DTYPE_F8E4M3, 1e9) == 448);
  ck_assert(tl_dtype_round(TL_DTYPE_F8E4M3, -INFINITY) == -448);
  ck_assert(tl_dtype_round(TL_DTYPE_F8E5M2, 1e9) == 57344);
  ck_assert(tl_dtype_round(TL_DTYPE_F4E2M1, 100) == 6);
  for (size_t d = 0; d < sizeof floats / sizeof *floats; d++) {
    double largest = tl_dtype_float_max(floats[d]);
    ck_assert(tl_dtype_round(floats[d], largest) == largest);
  }
}
END_TEST

START_TEST(subnormals_keep_their_value) {
  ck_assert(tl_dtype_round(TL_DTYPE_F16, ldexp(1, -24)) == ldexp(1, -24));
  ck_assert(tl_dtype_round(TL_DTYPE_F16, ldexp(1, -25)) == 0);
  ck_assert(tl_dtype_round(TL_DTYPE_F16, ldexp(1.5, -25)) == ldexp(1, -24));
  ck_assert(signbit(tl_dtype_round(TL_DTYPE_F16, -ldexp(1, -30))));
}
END_TEST

START_TEST(integers_wrap_and_extend) {
  unsigned char bytes[8] = {0};
  tl_dtype_store_int(TL_DTYPE_I8, bytes, 1, 200);
  ck_assert_int_eq(tl_dtype_load_int(TL_DTYPE_I8, bytes, 1), -56);
  ck_assert_int_eq(tl_dtype_load_int(TL_DTYPE_U8, bytes, 1), 200);
  memset(bytes, 0, sizeof bytes);
  tl_dtype_store_int(TL_DTYPE_U4, bytes, 3, 13);
  ck_assert_int_eq(tl_dtype_load_int(TL_DTYPE_U4, bytes, 3), 13);
  ck_assert_int_eq(tl_dtype_load_int(TL_DTYPE_I4, bytes, 3), -3);
  ck_assert_int_eq(tl_dtype_load_int(TL_DTYPE_U4, bytes, 2), 0);
  ck_assert_int_eq(bytes[1], 13 << 4);
  tl_dtype_store_int(TL_DTYPE_BOOL, bytes, 0, 7);
  ck_assert_int_eq(bytes[0], 1);
}
END_TEST

START_TEST(names_and_limits) {
  ck_assert_int_eq(tl_dtype_parse(TL_STR("bfloat16")), TL_DTYPE_BF16);
  ck_assert_int_eq(tl_dtype_parse(TL_STR("float8_e4m3")), TL_DTYPE_F8E4M3);
  ck_assert_int_eq(tl_dtype_parse(TL_STR("float9")), TL_DTYPE_NONE);
  ck_assert_int_eq(tl_dtype_parse(TL_STR("none")), TL_DTYPE_NONE);
  ck_assert_int_eq(tl_dtype_int_min(TL_DTYPE_I32), INT32_MIN);
  ck_assert_int_eq(tl_dtype_int_min(TL_DTYPE_I64), INT64_MIN);
  ck_assert_uint_eq(tl_dtype_int_max(TL_DTYPE_I8), 127);
  ck_assert_uint_eq(tl_dtype_int_max(TL_DTYPE_U64), UINT64_MAX);
  ck_assert_uint_eq(tl_dtype_bytes(TL_DTYPE_U4, 5), 3);
  ck_assert_uint_eq(tl_dtype_bytes(TL_DTYPE_F64, UINT64_C(1) << 40), UINT64_C(1) << 43);
  for (int d = 1; d < TL_DTYPE_COUNT; d++) ck_assert_int_eq(tl_dtype_parse(tl_str_from(tl_dtype_name(d))), d);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("dtype");
  TCase *cases = tcase_create("core");
  tcase_set_timeout(cases, 30);
  tcase_add_test(cases, every_small_encoding_survives_a_round_trip);
  tcase_add_test(cases, f32_rounding_agrees_with_the_compiler);
  tcase_add_test(cases, ties_go_to_even);
  tcase_add_test(cases, overflow_saturates_or_becomes_infinite);
  tcase_add_test(cases, subnormals_keep_their_value);
  tcase_add_test(cases, integers_wrap_and_extend);
  tcase_add_test(cases, names_and_limits);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
