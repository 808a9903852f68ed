// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/check/repeat_report.h"

#include <stdlib.h>
#include <string.h>

#include "harness/data/compare.h"

enum { SHOWN = 5 };

static tl_compare_element element_of(const tl_array *value, const tl_array *expected, uint64_t index) {
  tl_compare_element element = {.index = index};
  if (tl_dtype_is_float(value->dtype)) {
    element.value = tl_dtype_load_float(value->dtype, value->data, index);
    element.reference = tl_dtype_load_float(value->dtype, expected->data, index);
  } else {
    element.int_value = tl_dtype_load_int(value->dtype, value->data, index);
    element.int_reference = tl_dtype_load_int(value->dtype, expected->data, index);
  }
  return element;
}

// "    [3]: 1.5, expected 1.25 (bits 3fc00000, 3fa00000)"
static void print_element(const tl_array *value, const tl_array *expected, uint64_t index, tl_strbuf *out) {
  const tl_compare_element element = element_of(value, expected, index);
  tl_strbuf_append_c(out, "    ");
  tl_compare_print_index(value, index, out);
  tl_compare_print_element(value, &element, !tl_dtype_is_float(value->dtype), out);
  tl_strbuf_appendf(out, " (bits %llx, %llx)\n",
                    (unsigned long long)tl_dtype_load_bits(value->dtype, value->data, index),
                    (unsigned long long)tl_dtype_load_bits(value->dtype, expected->data, index));
}

static void print_argument(const tl_run_arg *value, const tl_array *expected, tl_strbuf *out) {
  const tl_array *array = &value->array;
  uint64_t differ = 0;
  tl_strbuf elements = {0};
  for (uint64_t i = 0; i < array->count; i++) {
    if (tl_dtype_load_bits(array->dtype, array->data, i) == tl_dtype_load_bits(array->dtype, expected->data, i))
      continue;
    if (differ++ < SHOWN) print_element(array, expected, i, &elements);
  }
  if (differ) {
    char described[160];
    tl_array_describe(array, described, sizeof described);
    tl_strbuf_appendf(out, "  FAILED %s: %s, %llu of %llu elements differ\n%s", value->name, described,
                      (unsigned long long)differ, (unsigned long long)array->count, tl_strbuf_c(&elements));
  }
  tl_strbuf_fini(&elements);
}

// Bytes that belong to no element.
static void print_outside(const tl_repeat_sets *sets, const uint8_t *image, const uint8_t *compared, tl_strbuf *out) {
  for (uint64_t at = 0; at < sets->written; at++) {
    int64_t distance;
    if (!((image[at] ^ sets->expected[at]) & compared[at])) continue;
    uint32_t which = tl_repeat_find(sets, at, &distance);
    if (which == UINT32_MAX) return;
    bool is_inside = distance >= 0 && distance < (int64_t)sets->places[which].bytes;
    tl_strbuf_appendf(out, "  FAILED: byte %lld %s '%s' is %02x, and was %02x\n", (long long)distance,
                      is_inside      ? "between elements of"
                      : distance < 0 ? "before"
                                     : "behind",
                      sets->args->items[which].name, image[at], sets->expected[at]);
    return;
  }
}

void tl_repeat_print_differences(const tl_repeat_sets *sets, const uint8_t *image, const uint8_t *compared,
                                 tl_run_args *values, tl_strbuf *out) {
  for (uint32_t i = 0; i < values->len; i++) {
    const tl_repeat_place *place = &sets->places[i];
    tl_run_arg *value = &values->items[i];
    if (value->access == 0 || !place->bytes || !compared[place->offset]) continue;
    tl_array expected = value->array;
    expected.data = tl_xmalloc(expected.bytes + 1);
    tl_run_arg_read_image(value, sets->expected + place->offset);
    memcpy(expected.data, value->array.data, expected.bytes);
    tl_run_arg_read_image(value, image + place->offset);
    print_argument(value, &expected, out);
    free(expected.data);
  }
  if (!out->len) print_outside(sets, image, compared, out);
}
