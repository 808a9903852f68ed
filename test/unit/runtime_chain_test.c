// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chains in manifests, and launching them over the driver of local functions.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/chain.h"
#include "runtime_fake_driver.h"

// a reads X and writes Y (n elements); b scales X in place. The chain: a(X, T); b(T, s, 0.5); a(T, Z).
static const char kernels_text[] =
    "{\"abi\": 1, \"generator\": \"test\", \"target\": \"sm_80\", \"ptx_version\": \"7.0\", \"kernels\": [\n"
    "{\"name\": \"a\", \"params\": [\n"
    " {\"kind\": \"tensor\", \"name\": \"X\", \"access\": \"in\", \"dtype\": \"f32\", \"dims\": [\"n\"], "
    "\"strides\": [1], \"align\": 16},\n"
    " {\"kind\": \"tensor\", \"name\": \"Y\", \"access\": \"out\", \"dtype\": \"f32\", \"dims\": [\"n\"], "
    "\"strides\": [1], \"align\": 16},\n"
    " {\"kind\": \"dynamic\", \"name\": \"n\", \"divisor\": 1}],\n"
    " \"requires\": [], \"grid\": [\"ceildiv(n, 32)\", 1, 1], \"block_threads\": 128, \"math_threads\": 128,\n"
    " \"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 0, \"cluster\": [1, 1, 1]},\n"
    "{\"name\": \"b\", \"params\": [\n"
    " {\"kind\": \"tensor\", \"name\": \"X\", \"access\": \"inout\", \"dtype\": \"f32\", \"dims\": [8, \"n\"], "
    "\"strides\": [\"n\", 1], \"align\": 16},\n"
    " {\"kind\": \"scalar\", \"name\": \"s\", \"dtype\": \"f32\"},\n"
    " {\"kind\": \"scalar\", \"name\": \"t\", \"dtype\": \"f32\"},\n"
    " {\"kind\": \"dynamic\", \"name\": \"n\", \"divisor\": 2}],\n"
    " \"requires\": [], \"grid\": [8, 1, 1], \"block_threads\": 128, \"math_threads\": 128,\n"
    " \"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 0, \"cluster\": [1, 1, 1]}],\n";
static const char chain_text[] =
    "\"chains\": [{\"name\": \"c\", \"doc\": \"\", \"params\": [\n"
    " {\"kind\": \"tensor\", \"name\": \"X\", \"access\": \"in\", \"dtype\": \"f32\", \"dims\": [\"N\"], "
    "\"strides\": [1], \"align\": 16},\n"
    " {\"kind\": \"scalar\", \"name\": \"s\", \"dtype\": \"f32\"},\n"
    " {\"kind\": \"tensor\", \"name\": \"Z\", \"access\": \"out\", \"dtype\": \"f32\", \"dims\": [\"N\"], "
    "\"strides\": [1], \"align\": 16},\n"
    " {\"kind\": \"dynamic\", \"name\": \"N\", \"divisor\": 8}],\n"
    " \"requires\": [{\"condition\": \"N < 1000\", \"text\": \"N < 1000\"}],\n"
    " \"buffers\": [{\"name\": \"T\", \"bytes\": \"4 * N\"}, {\"name\": \"U\", \"bytes\": 16}],\n"
    " \"steps\": [\n"
    "  {\"kernel\": \"a\", \"given\": [\n"
    "   {\"name\": \"X\", \"argument\": \"X\", \"dtype\": \"f32\", \"dims\": [\"N\"], \"strides\": [1]},\n"
    "   {\"name\": \"Y\", \"buffer\": \"T\", \"dtype\": \"f32\", \"dims\": [\"N\"], \"strides\": [1]},\n"
    "   {\"name\": \"n\", \"int\": \"N\"}]},\n"
    "  {\"kernel\": \"b\", \"given\": [\n"
    "   {\"name\": \"X\", \"buffer\": \"T\", \"dtype\": \"f32\", \"dims\": [8, \"N // 8\"], "
    "\"strides\": [\"N // 8\", 1]},\n"
    "   {\"name\": \"s\", \"scalar\": \"s\"},\n"
    "   {\"name\": \"t\", \"float\": \"0.5\"},\n"
    "   {\"name\": \"n\", \"int\": \"N // 8\"}]},\n"
    "  {\"kernel\": \"a\", \"given\": [\n"
    "   {\"name\": \"X\", \"buffer\": \"T\", \"dtype\": \"f32\", \"dims\": [\"N\"], \"strides\": [1]},\n"
    "   {\"name\": \"Y\", \"argument\": \"Z\", \"dtype\": \"f32\", \"dims\": [\"N\"], \"strides\": [1]},\n"
    "   {\"name\": \"n\", \"int\": \"N\"}]}]}]}\n";

// ---- what was launched

typedef struct launch {
  char function;
  void *first, *second;
  float s, t;
  int n;
} launch;
static launch seen[16];

static void see(tl_cu_function function, void **params) {
  launch *l = &seen[launches - 1];
  *l = (launch){.function = (char)(uintptr_t)function, .first = *(void **)params[0]};
  if (l->function == 'a') l->second = *(void **)params[1];
  if (l->function == 'b') {
    l->s = *(float *)params[1];
    l->t = *(float *)params[2];
  }
  l->n = *(int *)params[l->function == 'a' ? 2 : 3];
}

static tl_program *program;
static tl_chain *chain;
static float x[1024] __attribute__((aligned(256))), z[1024] __attribute__((aligned(256)));
static char memory[8192] __attribute__((aligned(256)));

static void setup_chain(void) {
  setup();
  seen_launch = see;
  launches = 0;
  tl_strbuf text = {0};
  tl_strbuf_appendf(&text, "%s%s", kernels_text, chain_text);
  tl_status status = tl_program_load_image(device, "", 0, tl_strbuf_c(&text), text.len, &program);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  tl_strbuf_fini(&text);
  ck_assert(!tl_program_chain(program, NULL, &chain));
}
static void teardown_chain(void) {
  tl_program_destroy(program);
  ck_assert_int_eq(allocations, 0);
  seen_launch = NULL;
  teardown();
}

typedef struct arguments {
  int64_t size;
  tl_argument items[3];
} arguments;

static void make_arguments(arguments *out, int64_t size) {
  out->size = size;
  out->items[0] = tl_argument_tensor("X", x, "f32", 1, &out->size);
  out->items[1] = tl_argument_float("s", 3.0);
  out->items[2] = tl_argument_tensor("Z", z, "f32", 1, &out->size);
}

static void expect_failure(tl_status status, const char *text) {
  ck_assert_ptr_nonnull(status);
  ck_assert_msg(strstr(tl_status_message(status), text), "%s", tl_status_message(status));
  tl_status_free(status);
}

START_TEST(launches_the_steps_in_order) {
  arguments a;
  make_arguments(&a, 64);
  ck_assert_uint_eq(tl_program_num_chains(program), 1);
  ck_assert_str_eq(tl_chain_name(chain), "c");
  ck_assert_uint_eq(tl_chain_num_steps(chain), 3);
  tl_status status = tl_chain_launch(chain, a.items, 3, memory, sizeof memory, NULL);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  ck_assert_int_eq(launches, 3);
  ck_assert_int_eq(allocations, 0);
  ck_assert(seen[0].function == 'a' && seen[0].first == x && seen[0].second == memory && seen[0].n == 64);
  ck_assert(seen[1].function == 'b' && seen[1].first == memory && seen[1].n == 8);
  ck_assert(seen[1].s == 3.0f && seen[1].t == 0.5f);
  ck_assert(seen[2].function == 'a' && seen[2].first == memory && seen[2].second == z);
}
END_TEST

START_TEST(keeps_a_workspace_for_each_stream) {
  arguments a;
  void *first[2];
  for (int stream = 0; stream < 2; stream++) {
    // 320 and 64 elements fit into one allocation, 640 need another.
    static const int64_t sizes[] = {320, 64, 640};
    for (int i = 0; i < 3; i++) {
      make_arguments(&a, sizes[i]);
      launches = 0;
      tl_status status = tl_chain_launch(chain, a.items, 3, NULL, 0, (void *)(uintptr_t)(stream + 1));
      ck_assert_msg(!status, "%s", tl_status_message(status));
      ck_assert_int_eq(launches, 3);
      ck_assert_ptr_eq(seen[0].second, seen[2].first);
      if (i == 0) first[stream] = seen[0].second;
      if (i == 1) ck_assert_ptr_eq(seen[0].second, first[stream]);
      ck_assert_int_eq(allocations, stream + 1);
    }
  }
}
END_TEST

START_TEST(says_how_much_memory_it_needs) {
  static const struct {
    int64_t size;
    size_t bytes;
  } cases[] = {{8, 512}, {64, 512}, {72, 768}, {0, 256}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    arguments a;
    size_t bytes = 1;
    make_arguments(&a, cases[i].size);
    a.items[0].tensor.data = a.items[2].tensor.data = NULL;
    tl_status status = tl_chain_workspace_bytes(chain, a.items, 3, &bytes);
    ck_assert_msg(!status, "%s", tl_status_message(status));
    ck_assert_uint_eq(bytes, cases[i].bytes);
  }
}
END_TEST

START_TEST(launches_nothing_when_something_does_not_fit) {
  arguments a;
  make_arguments(&a, 64);
  expect_failure(tl_chain_launch(chain, a.items, 3, memory, 511, NULL), "the workspace has 511 bytes, 512 are needed");
  expect_failure(tl_chain_launch(chain, a.items, 3, memory + 16, 4096, NULL), "not aligned to 256 bytes");
  expect_failure(tl_chain_launch(chain, a.items, 2, memory, 4096, NULL),
                 "launching 'c': argument 'Z' is missing; 'c' takes the arguments: X, s, Z");
  make_arguments(&a, 65);
  expect_failure(tl_chain_launch(chain, a.items, 3, memory, 4096, NULL), "is 65, expected a multiple of 8");
  make_arguments(&a, 1000);
  expect_failure(tl_chain_check(chain, a.items, 3), "'c' requires N < 1000");
  // Only the second step finds it: 72 // 8 is odd.
  make_arguments(&a, 72);
  launches = 0;
  expect_failure(tl_chain_launch(chain, a.items, 3, memory, 4096, NULL), "step 2, 'b': ");
  expect_failure(tl_chain_check(chain, a.items, 3), "step 2, 'b': ");
  ck_assert_int_eq(launches, 0);
  make_arguments(&a, 64);
  ck_assert(!tl_chain_check(chain, a.items, 3));
  expect_failure(tl_program_chain(program, "d", &(tl_chain *){NULL}), "no chain 'd': the program has the chains: c");
}
END_TEST

START_TEST(reads_what_it_writes) {
  tl_arena arena;
  tl_manifest manifest, again;
  tl_strbuf text = {0}, written = {0}, rewritten = {0};
  tl_arena_init(&arena);
  tl_strbuf_appendf(&text, "%s%s", kernels_text, chain_text);
  ck_assert(!tl_manifest_read(&arena, tl_strbuf_view(&text), &manifest));
  tl_manifest_write(&manifest, "// ", &written);
  ck_assert(!tl_manifest_read(&arena, tl_strbuf_view(&written), &again));
  tl_manifest_write(&again, "// ", &rewritten);
  ck_assert_str_eq(tl_strbuf_c(&written), tl_strbuf_c(&rewritten));
  ck_assert_uint_eq(again.chains[0].steps[1].kernel, 1);
  ck_assert_int_eq(again.chains[0].steps[1].given[2].kind, TL_MGIVEN_FLOAT);
  tl_strbuf_fini(&text);
  tl_strbuf_fini(&written);
  tl_strbuf_fini(&rewritten);
  tl_arena_fini(&arena);
}
END_TEST

START_TEST(refuses_what_it_does_not_know) {
  static const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"\"buffer\": \"T\"", "\"buffer\": \"V\"", "the chain has no buffer 'V'"},
      {"\"argument\": \"Z\"", "\"argument\": \"s\"", "the chain has no argument 's'"},
      {"\"scalar\": \"s\"", "\"scalar\": \"X\"", "the chain has no scalar 'X'"},
      {"\"kernel\": \"b\"", "\"kernel\": \"x\"", "there is no kernel 'x'"},
      {"\"float\": \"0.5\"", "\"float\": \"half\"", "float must be a number"},
      {"\"float\": \"0.5\"", "\"double\": \"0.5\"", "given in an unknown way"},
      {"\"int\": \"N\"", "\"int\": \"N\", \"more\": 1", "unknown key \"more\""},
      {"\"bytes\": 16", "\"bytes\": 16, \"align\": 1", "unknown key \"align\""},
      {"\"steps\"", "\"step\"", "unknown key \"step\""},
      {"\"strides\": [\"N // 8\", 1]", "\"strides\": [1]", "expected a list of 2 expressions"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tl_arena arena;
    tl_manifest manifest;
    tl_strbuf text = {0};
    tl_arena_init(&arena);
    const char *at = strstr(chain_text, cases[i].from);
    ck_assert_ptr_nonnull(at);
    tl_strbuf_appendf(&text, "%s%.*s%s%s", kernels_text, (int)(at - chain_text), chain_text, cases[i].to,
                      at + strlen(cases[i].from));
    tl_status status = tl_manifest_read(&arena, tl_strbuf_view(&text), &manifest);
    ck_assert_msg(status && strstr(tl_status_message(status), cases[i].message), "%zu: %s", i,
                  status ? tl_status_message(status) : "accepted");
    tl_status_free(status);
    tl_strbuf_fini(&text);
    tl_arena_fini(&arena);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("runtime_chain");
  TCase *launching = tcase_create("launch"), *reading = tcase_create("manifest");
  tcase_add_checked_fixture(launching, setup_chain, teardown_chain);
  tcase_add_test(launching, launches_the_steps_in_order);
  tcase_add_test(launching, keeps_a_workspace_for_each_stream);
  tcase_add_test(launching, says_how_much_memory_it_needs);
  tcase_add_test(launching, launches_nothing_when_something_does_not_fit);
  tcase_add_test(reading, reads_what_it_writes);
  tcase_add_test(reading, refuses_what_it_does_not_know);
  suite_add_tcase(suite, launching);
  suite_add_tcase(suite, reading);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
