// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every device op, as the PTX that the compiler writes of it: the table knows the text, and translated it is the same
// op again, or what the row below says. A new op without a row in ptx/table/instructions.def fails here.
#include <check.h>
#include <stdio.h>

#include "emulator/launch/kernel_ptx.h"
#include "test/unit/backend_rows.h"

// Ops that are something else in PTX: a comment, an ordinary access under a guard, an instruction that LLVM has too.
static const struct {
  const char *op, *becomes;
} others[] = {{"tl.element", ""},
              {"tl.assume", ""},
              {"tl.memory.order", ""},
              {"tl.undefined.", ""},
              {"tl.cp.async.", "call void @\"llvm.nvvm.cp.async.c"},
              {"tl.ld.global.", "= load "},
              {"tl.st.global.", "store "},
              {"tl.red.global.add.", "atomicrmw fadd"},
              {"llvm.nvvm.griddepcontrol.", ""},
              {"llvm.nvvm.mbarrier.expect.tx.", "llvm.nvvm.mbarrier.expect.tx.scope.cta.space.cta"}};

static const char *expected_text(const tl_device_op *op) {
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (!strncmp(op->name, others[i].op, strlen(others[i].op))) return others[i].becomes;
  return op->name;
}

START_TEST(op_comes_back) {
  const tl_device_op *op = tl_device_op_of((tl_device_op_id)_i);
  char *ptx = compile_row((tl_device_op_id)_i);
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_ptx_module *module = tl_ptx_parse(&sources, tl_sources_add(&sources, "k.ptx", tl_str_from(ptx)), &diags);
  bool ok = module && tl_ptx_check(module, TL_STR(""), &diags);
  tl_strbuf text = {0}, messages = {0};
  const tl_emu_ptx_options options = {.block = {32, 1, 1}};
  const void *none[64] = {0};
  tl_status status = ok ? tl_emu_ptx_translate(module, TL_STR("k"), &options, none, &diags, &text) : TL_OK;
  tl_diags_print_text(&diags, &messages, false);
  ck_assert_msg(ok && !status, "%s\n%s", op->name, tl_strbuf_c(&messages));
  ck_assert_msg(strstr(tl_strbuf_c(&text), expected_text(op)) != NULL, "%s:\n%s\n%.3000s", op->name, ptx,
                tl_strbuf_c(&text));
  void *made = NULL;
  status = tl_emu_ptx_module(tl_strbuf_view(&text), &made);
  ck_assert_msg(!status, "%s: %s", op->name, status ? tl_status_message(status) : "");
  tl_emu_ptx_dispose(made);
  free(ptx);
  tl_ptx_destroy(module);
  tl_strbuf_fini(&text);
  tl_strbuf_fini(&messages);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_ptx_ops");
  TCase *tcase = tcase_create("ops");
  tcase_add_loop_test(tcase, op_comes_back, 0, TL_DEVOP_COUNT);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
