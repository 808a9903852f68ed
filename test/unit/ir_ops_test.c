// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every op has a case in test/ir, and ops can be copied with replacements.
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir_text_util.h"

static bool seen[TL_OPCODE_COUNT];

static void mark_op(tl_op *op, void *user) {
  (void)user;
  seen[op->code] = true;
}

static tl_module *parse(tl_sources *sources, uint32_t source) {
  tl_diags diags;
  tl_diags_init(&diags, sources);
  tl_module *module = tl_module_parse(sources, source, &diags);
  tl_diags_fini(&diags);
  return module;
}

// Counted where it stands in a module that the verifier accepts.
static void mark_case(const char *path) {
  tl_sources sources;
  tl_sources_init(&sources);
  uint32_t source;
  tl_status status = tl_sources_read(&sources, path, 1 << 20, &source);
  ck_assert_msg(status == NULL, "%s", tl_status_message(status));
  tl_module *module = parse(&sources, source);
  tl_verify_result result;
  if (module) {
    if (tl_module_verify(module, &result)) tl_walk_module(module, mark_op, NULL);
    tl_verify_result_fini(&result);
  }
  tl_module_destroy(module);
  tl_sources_fini(&sources);
}

START_TEST(every_op_has_a_case) {
  for_each_ir_case(mark_case);
  for (int code = 0; code < TL_OPCODE_COUNT; code++) {
    ck_assert_msg(seen[code], "no file of test/ir shows '%s'", tl_op_info_of((tl_opcode)code)->name);
  }
}
END_TEST

static tl_op *find_op(tl_block *block, tl_opcode code) {
  tl_op *op = block->first;
  while (op && op->code != code) op = op->next;
  ck_assert_ptr_nonnull(op);
  return op;
}

START_TEST(clone_with_replacements) {
  static const char text[] =
      "module tile\n"
      "kernel {name = \"k\"} do {\n"
      "  %c0 = const {value = 0} : index\n"
      "  %c8 = const {value = 8} : index\n"
      "  %c1 = const {value = 1} : index\n"
      "  %s = alloc {name = \"s\"} : buffer<shared f32 8>\n"
      "  for lower(%c0) upper(%c8) step(%c1) do(%i: index) {\n"
      "    %x = load buffer(%s) index(%i) : f32\n"
      "    if %true do {\n"
      "      store value(%x) buffer(%s) index(%i)\n"
      "    }\n"
      "  }\n"
      "}\n";
  char *with_true = NULL;
  ck_assert_int_gt(asprintf(&with_true, "%.*s  %%true = const {value = 1} : bool\n%s",
                            (int)(strstr(text, "  for") - text), text, strstr(text, "  for")),
                   0);
  tl_sources sources;
  tl_sources_init(&sources);
  tl_module *module = parse(&sources, tl_sources_add(&sources, "t", tl_str_from(with_true)));
  ck_assert_ptr_nonnull(module);
  tl_block *body = tl_module_kernel(module)->regions[0];
  tl_op *loop = find_op(body, TL_OP_FOR);
  // The loop's body once more behind it, for the iteration c0.
  tl_value_map map = {0};
  tl_value_map_set(&map, loop->regions[0]->args[0], body->first->results);
  tl_builder b;
  tl_builder_after(&b, module, loop);
  for (tl_op *op = loop->regions[0]->first; op; op = op->next) tl_op_clone(&b, op, &map);
  tl_value *load = find_op(loop->regions[0], TL_OP_LOAD)->results;
  ck_assert_ptr_eq(tl_value_map_get(&map, load), find_op(body, TL_OP_LOAD)->results);
  ck_assert_ptr_eq(tl_value_map_get(&map, body->first->results), body->first->results);
  tl_value_map_fini(&map);
  tl_strbuf out;
  tl_strbuf_init(&out);
  tl_module_print(module, &out);
  const char *copied = strstr(tl_strbuf_c(&out), "\n  }\n") + 5;
  ck_assert_str_eq(copied,
                   "  %x_1 = load buffer(%s) index(%c0) : f32\n"
                   "  if %true do {\n"
                   "    store value(%x_1) buffer(%s) index(%c0)\n"
                   "  }\n"
                   "}\n");
  tl_verify_result result;
  ck_assert(tl_module_verify(module, &result));
  tl_verify_result_fini(&result);
  // A use before the definition and a use past its region are found.
  tl_op_set_operand(find_op(body, TL_OP_LOAD), 1, loop->regions[0]->args[0]);
  tl_op_move_before(find_op(body, TL_OP_IF), loop);
  ck_assert(!tl_module_verify(module, &result));
  ck_assert_uint_eq(result.errors.len, 2);
  ck_assert_str_eq(result.errors.items[0].text, "'value' uses a value that is not defined before it");
  ck_assert_str_eq(result.errors.items[1].text, "'index' uses a value that is not defined before it");
  tl_verify_result_fini(&result);
  tl_strbuf_fini(&out);
  tl_module_destroy(module);
  tl_sources_fini(&sources);
  free(with_true);
}
END_TEST

// What only an assert finds ends the program: the builds that the tests are run in have them.
START_TEST(asserts_run) {
  tl_module *module = tl_module_create();
  tl_builder builder;
  tl_builder_at_end(&builder, module, module->body);
  tl_op_operand(tl_build_index(&builder, 0)->def, 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir_ops");
  TCase *tests = tcase_create("ops");
  tcase_add_test(tests, every_op_has_a_case);
  tcase_add_test(tests, clone_with_replacements);
  tcase_add_test_raise_signal(tests, asserts_run, SIGABRT);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
