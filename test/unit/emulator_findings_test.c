// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the checks tell of kernels with a mistake, word by word, and that they tell nothing of kernels without one.
#include "emulator/sanitize/findings.h"
#include "emulator_util.h"

enum { BUFFER_BYTES = 4096, THREADS = 64 };

typedef struct run {
  const char *kernel;
  uint32_t blocks, checks;
  tl_emu_options options;
  bool unwritten;  // nothing of the output counts as written before
} run;

// The findings as text; the output in `out` (NULL: not wanted). free() the text.
static char *find(run r, uint32_t out[BUFFER_BYTES / 4], tl_emu_findings *findings) {
  tl_emu_kernel *kernel =
      must_create("findings.ll", r.kernel, (kernel_shape){.num_params = 2, .threads = THREADS, .checks = r.checks});
  void *in = tl_emu_alloc(BUFFER_BYTES, 16), *result = tl_emu_alloc(BUFFER_BYTES, 16);
  memset(in, 0, BUFFER_BYTES);
  memset(result, 0, BUFFER_BYTES);
  if (r.unwritten) tl_emu_mark_unwritten(result);
  r.options.checks = TL_EMU_SANITIZE_ALL;
  r.options.findings = findings;
  uint32_t grid[3] = {r.blocks, 1, 1};
  tl_status status = tl_emu_launch(kernel, grid, (void *[]){&in, &result}, &r.options, NULL);
  tl_status_code code = tl_status_code_of(status);
  ck_assert_msg(code == TL_STATUS_OK || code == TL_STATUS_CHECK_FAILED, "%s", tl_status_message(status));
  if (out) memcpy(out, result, BUFFER_BYTES);
  char *text = strdup(tl_status_message(status));
  tl_status_free(status);
  tl_emu_free(in);
  tl_emu_free(result);
  tl_emu_kernel_destroy(kernel);
  return text;
}

static const struct {
  const char *kernel;
  uint32_t blocks;
  const char *text;  // "": nothing is found
} expected[] = {
#include "emulator_findings.def"
};
enum { NUM_EXPECTED = sizeof expected / sizeof expected[0] };

START_TEST(texts) {
  char *text = find((run){.kernel = expected[_i].kernel,
                          .blocks = expected[_i].blocks,
                          .checks = TL_EMU_SANITIZE_ALL,
                          .options = {.threads = 1},
                          .unwritten = !strcmp(expected[_i].kernel, "reads_output")},
                    NULL, NULL);
  ck_assert_msg(!strcmp(text, expected[_i].text), "%s: got\n%s\ninstead of\n%s", expected[_i].kernel, text,
                expected[_i].text);
  free(text);
}
END_TEST

// The kinds do not depend on the order of threads, on when copies land, or on how many OS threads there are.
START_TEST(orders) {
  tl_emu_findings first = {0};
  free(find((run){.kernel = expected[_i].kernel,
                  .blocks = expected[_i].blocks,
                  .checks = TL_EMU_SANITIZE_ALL,
                  .options = {.threads = 1}},
            NULL, &first));
  for (uint32_t seed = 1; seed < 8; seed++) {
    tl_emu_findings again = {0};
    tl_emu_options options = {.threads = 1 + (int)seed % 2,
                              .seed = seed,
                              .landing = seed & 2 ? TL_LANDING_EARLY : TL_LANDING_LATE,
                              .resident = 2};
    free(find((run){.kernel = expected[_i].kernel,
                    .blocks = expected[_i].blocks,
                    .checks = TL_EMU_SANITIZE_ALL,
                    .options = options},
              NULL, &again));
    ck_assert_msg(!first.list.len == !again.list.len, "%s: seed %u", expected[_i].kernel, seed);
    if (first.list.len) ck_assert_int_eq(first.list.items[0].kind, again.list.items[0].kind);
    tl_emu_findings_fini(&again);
  }
  tl_emu_findings_fini(&first);
}
END_TEST

START_TEST(nothing_without_checks) {
  if (strncmp(expected[_i].kernel, "beyond", 6) == 0 || !strcmp(expected[_i].kernel, "misaligned")) return;
  char *text =
      find((run){.kernel = expected[_i].kernel, .blocks = expected[_i].blocks, .options = {.threads = 1}}, NULL, NULL);
  ck_assert_str_eq(text, "");
  free(text);
}
END_TEST

// A launch goes on with safe values.
START_TEST(safe_values) {
  uint32_t out[BUFFER_BYTES / 4];
  free(find((run){.kernel = "beyond_global", .blocks = 1, .checks = TL_EMU_SANITIZE_BOUNDS, .options = {.threads = 1}},
            out, NULL));
  for (int i = 0; i < THREADS; i++) ck_assert_uint_eq(out[i], 0xffffffffu);
  free(find((run){.kernel = "beyond_shared", .blocks = 1, .checks = TL_EMU_SANITIZE_BOUNDS, .options = {.threads = 1}},
            out, NULL));
  for (int i = 0; i < THREADS; i++) ck_assert_uint_eq(out[i], 3);
}
END_TEST

START_TEST(each_check_alone) {
  static const struct {
    const char *kernel;
    uint32_t blocks, check;
  } cases[] = {{"same_element", 1, TL_EMU_SANITIZE_RACE},   {"beyond_global", 1, TL_EMU_SANITIZE_BOUNDS},
               {"unwritten", 1, TL_EMU_SANITIZE_INIT},      {"misaligned", 1, TL_EMU_SANITIZE_ALIGN},
               {"blocks_write", 2, TL_EMU_SANITIZE_BLOCKS}, {"copy_without_wait", 1, TL_EMU_SANITIZE_ASYNC}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    run r = {.kernel = cases[i].kernel, .blocks = cases[i].blocks, .checks = cases[i].check, .options = {.threads = 1}};
    char *text = find(r, NULL, NULL);
    ck_assert_msg(strstr(text, ": 1 finding") || strstr(text, ": 2 findings"), "%s: %s", cases[i].kernel, text);
    free(text);
    if (cases[i].check & (TL_EMU_SANITIZE_BOUNDS | TL_EMU_SANITIZE_ALIGN)) continue;  // the hardware tells then
    r.checks = TL_EMU_SANITIZE_ALL & ~cases[i].check;
    text = find(r, NULL, NULL);
    ck_assert_str_eq(text, "");
    free(text);
  }
}
END_TEST

START_TEST(parsing) {
  uint32_t checks;
  tl_str unknown;
  ck_assert(tl_emu_sanitize_parse(TL_STR("all"), &checks, &unknown) && checks == TL_EMU_SANITIZE_ALL);
  ck_assert(tl_emu_sanitize_parse(TL_STR("none"), &checks, &unknown) && checks == 0);
  ck_assert(tl_emu_sanitize_parse(TL_STR("race,async"), &checks, &unknown));
  ck_assert_uint_eq(checks, TL_EMU_SANITIZE_RACE | TL_EMU_SANITIZE_ASYNC);
  ck_assert(!tl_emu_sanitize_parse(TL_STR("race,,init"), &checks, &unknown) && unknown.len == 0);
  ck_assert(!tl_emu_sanitize_parse(TL_STR("init,races"), &checks, &unknown) && tl_str_is(unknown, "races"));
}
END_TEST

START_TEST(merging) {
  tl_emu_findings all = {0};
  for (int i = 0; i < 2; i++) {
    tl_emu_findings found = {0};
    free(find((run){.kernel = "same_element", .blocks = 3, .checks = TL_EMU_SANITIZE_ALL, .options = {.threads = 1}},
              NULL, &found));
    tl_emu_findings_merge(&all, &found);
    tl_emu_findings_fini(&found);
  }
  ck_assert_uint_eq(all.list.len, 1);
  ck_assert_uint_eq(all.list.items[0].count, 2 * 3 * (THREADS - 1));
  tl_strbuf json;
  tl_strbuf_init(&json);
  tl_emu_findings_print_json(&all, &json);
  ck_assert_str_eq(
      tl_strbuf_c(&json),
      "{\"findings\": [\n  {\"kind\": \"race\", \"kernel\": \"same_element\", \"count\": 378, \"access\": "
      "{\"op\": \"store\", \"call\": 0, \"action\": \"writes 4 bytes\", \"agent\": \"thread 1 (warp 0, lane "
      "1)\", \"file\": null, \"line\": 0, \"text\": null, \"block\": [0, 0, 0], \"thread\": 1}, \"earlier\": "
      "{\"op\": \"store\", \"call\": 0, \"action\": \"wrote\", \"agent\": \"thread 0 (warp 0, lane 0)\", "
      "\"file\": null, \"line\": 0, \"text\": null, \"block\": [0, 0, 0], \"thread\": 0}, \"place\": "
      "\"shared memory, byte 28\", \"missing\": \"a barrier between the two, or bar.warp.sync\"}\n]}\n");
  tl_strbuf_fini(&json);
  tl_emu_findings_fini(&all);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_loop_test(cases, texts, 0, NUM_EXPECTED);
  tcase_add_loop_test(cases, orders, 0, NUM_EXPECTED);
  tcase_add_loop_test(cases, nothing_without_checks, 0, NUM_EXPECTED);
  tcase_add_test(cases, safe_values);
  tcase_add_test(cases, each_check_alone);
  tcase_add_test(cases, parsing);
  tcase_add_test(cases, merging);
}

int main(void) {
  return run_suite("emulator findings", add_tests);
}
