// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers and variables of a thread that are read before they are written: what is told, word by word, and what is
// not.
#include "emulator/sanitize/findings.h"
#include "emulator_util.h"

enum { BUFFER_BYTES = 4096, THREADS = 32 };

// Element 2 × lane + register of a row of 64.
static tl_debug_variable variables[] = {
    {.name = "f",
     .is_fragment = true,
     .rank = 1,
     .layout =
         {.rank = 1, .shape = {64}, .num_modes = 2, .modes = {{TL_AXIS_REGISTER, 2, 0, 1}, {TL_AXIS_LANE, 32, 0, 2}}}},
    {.name = "w", .rank = 1, .dims = {4}},
    {.name = "n"},
};
static const tl_debug_info debug = {.variables = variables, .num_variables = 3};

static char *run(const char *name, uint32_t checks, tl_emu_options options) {
  kernel_shape shape = {.num_params = 2, .threads = THREADS, .checks = checks, .debug = &debug};
  tl_emu_kernel *kernel = must_create("undefined.ll", name, shape);
  void *in = tl_emu_alloc(BUFFER_BYTES, 16), *out = tl_emu_alloc(BUFFER_BYTES, 16);
  memset(in, 0, BUFFER_BYTES);
  memset(out, 0, BUFFER_BYTES);
  uint32_t grid[3] = {1, 1, 1};
  options.checks = checks;
  tl_status status = tl_emu_launch(kernel, grid, (void *[]){&in, &out}, &options, NULL);
  char *text = strdup(tl_status_message(status));
  tl_status_free(status);
  tl_emu_free(in);
  tl_emu_free(out);
  tl_emu_kernel_destroy(kernel);
  return text;
}

static const struct {
  const char *kernel;
  const char *what;   // NULL: nothing is told
  const char *agent;  // of the first
  const char *place, *op;
  int count;
} cases[] = {
    {"stored", "stores it", "thread 0 (warp 0, lane 0)", "fragment f[1]", "store", 32},
    {"branched", "branches on it", "thread 0 (warp 0, lane 0)", "local n", "branch", 32},
    {"switched", "branches on it", "thread 0 (warp 0, lane 0)", "local n", "switch", 32},
    {"addressed", "reads through it", "thread 0 (warp 0, lane 0)", "local n", "load", 32},
    {"updated", "updates memory with it", "thread 0 (warp 0, lane 0)", "fragment f[0]", "atomic", 32},
    {"voted", "hands it to the operation", "thread 0 (warp 0, lane 0)", "fragment f[0]", "llvm.nvvm.vote.ballot.sync",
     32},
    {"predicated", "hands it to the operation", "thread 30 (warp 0, lane 30)", "fragment f[61]",
     "tl.st.global.pred.b32", 2},
    {"shuffled", "stores it", "thread 2 (warp 0, lane 2)", "fragment f[7]", "store", 1},
    {"shuffled_good"},
    {"looped", "stores it", "thread 0 (warp 0, lane 0)", "fragment f[0]", "store", 32},
    {"looped_good"},
    {"bits_good"},
    {"bits", "stores it", "thread 0 (warp 0, lane 0)", "fragment f[0]", "store", 32},
    {"pair", "stores it", "thread 0 (warp 0, lane 0)", "fragment f[1]", "store", 32},
    {"pair_good"},
    {"array", "stores it", "thread 3 (warp 0, lane 3)", "local array w[3]", "store", 8},
    {"array_copied", "stores it", "thread 0 (warp 0, lane 0)", "local array w[2]", "store", 32},
    {"through_shared", "stores it", "thread 4 (warp 0, lane 4)", "fragment f[11]", "store", 1},
    {"through_shared_good"},
    {"matrix", "loads it", "thread 1 (warp 0, lane 1)", "fragment f[11]",
     "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16.p3", 1},
};
enum { NUM_CASES = sizeof cases / sizeof cases[0] };

START_TEST(texts) {
  char *text = run(cases[_i].kernel, TL_EMU_SANITIZE_INIT, (tl_emu_options){.threads = 1});
  char wanted[600] = "";
  if (cases[_i].what) {
    int len =
        snprintf(wanted, sizeof wanted,
                 "emulator: kernel '%s': 1 finding\n"
                 "%s: uninitialised read: %s of block (0, 0, 0) reads what nobody wrote, and %s, at %s, %s",
                 cases[_i].kernel, cases[_i].kernel, cases[_i].agent, cases[_i].what, cases[_i].place, cases[_i].op);
    len += snprintf(wanted + len, sizeof wanted - (size_t)len, "\n  missing: a write of the element before the read");
    if (cases[_i].count > 1) snprintf(wanted + len, sizeof wanted - (size_t)len, "\n  %d times", cases[_i].count);
  }
  // Device ops are told with their number.
  char *call = strstr(text, " (call ");
  if (call) memmove(call, strchr(call, ')') + 1, strlen(strchr(call, ')') + 1) + 1);
  ck_assert_str_eq(text, wanted);
  free(text);
}
END_TEST

START_TEST(every_order_tells_the_same) {
  for (uint32_t seed = 1; seed < 5; seed++) {
    char *text = run(cases[_i].kernel, TL_EMU_SANITIZE_ALL, (tl_emu_options){.threads = 1, .seed = seed});
    ck_assert_msg(!text[0] == !cases[_i].what, "seed %u: %s", seed, text);
    if (cases[_i].what) ck_assert_msg(strstr(text, cases[_i].what) != NULL, "seed %u: %s", seed, text);
    free(text);
  }
}
END_TEST

// Without the check such content is zero, and nothing is told.
START_TEST(other_checks_are_silent) {
  char *text = run(cases[_i].kernel, TL_EMU_SANITIZE_ALL & ~TL_EMU_SANITIZE_INIT, (tl_emu_options){.threads = 1});
  ck_assert_str_eq(text, "");
  free(text);
  text = run(cases[_i].kernel, 0, (tl_emu_options){.threads = 1});
  ck_assert_str_eq(text, "");
  free(text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_undefined");
  TCase *all = tcase_create("all");
  tcase_set_timeout(all, 60);
  tcase_add_loop_test(all, texts, 0, NUM_CASES);
  tcase_add_loop_test(all, every_order_tells_the_same, 0, NUM_CASES);
  tcase_add_loop_test(all, other_checks_are_silent, 0, NUM_CASES);
  suite_add_tcase(suite, all);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
