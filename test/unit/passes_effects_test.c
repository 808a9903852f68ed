// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every op that reads, writes or orders is known to the passes that care: one without a case is an internal error.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir_text_util.h"
#include "passes/analysis/effects.h"
#include "passes/manager/passes.h"

enum { EFFECT_FLAGS = TL_OPFLAG_READ | TL_OPFLAG_WRITE | TL_OPFLAG_SYNC };
static bool seen[TL_OPCODE_COUNT];

// Ops that the passes refuse for now: nothing that comes from a spec has them.
static const tl_opcode refused[] = {TL_OP_MBARRIER_INIT, TL_OP_MBARRIER_ARRIVE, TL_OP_MBARRIER_EXPECT,
                                    TL_OP_MBARRIER_WAIT, TL_OP_FENCE_PROXY,     TL_OP_BULK_COMMIT,
                                    TL_OP_BULK_WAIT};

static void mark_op(tl_op *op, void *user) {
  seen[op->code] = true;
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) *(bool *)user |= op->code == refused[i];
}

static void run_passes(tl_module *module, const char *path) {
  static tl_pass_fn *const passes[] = {tl_pass_check_init, tl_pass_place_barriers, tl_pass_verify_barriers};
  for (size_t p = 0; p < sizeof passes / sizeof passes[0]; p++) {
    // check-init reads buffers, the others what promote-fragments leaves.
    if ((module->level == 0) != (passes[p] == tl_pass_check_init)) continue;
    tl_module *copy = tl_module_clone(module);
    tl_sources sources;
    tl_diags diags;
    tl_sources_init(&sources);
    tl_diags_init(&diags, &sources);
    tl_pass_context context = {.module = copy, .target = tl_target_find(tl_str_from("sm_80")), .diags = &diags};
    tl_arena_init(&context.scratch);
    tl_status status = passes[p](&context);
    // The cases of test/ir are valid but no sensible programs: races and copies that nobody waits for are their right.
    const char *text = status ? tl_status_message(status) : "";
    ck_assert_msg(strstr(text, "does not know") == NULL, "%s: %s", path, text);
    tl_status_free(status);
    tl_arena_fini(&context.scratch);
    tl_diags_fini(&diags);
    tl_sources_fini(&sources);
    tl_module_destroy(copy);
  }
}

static void try_case(const char *path) {
  tl_sources sources;
  tl_sources_init(&sources);
  uint32_t source;
  tl_status status = tl_sources_read(&sources, path, 1 << 20, &source);
  ck_assert_msg(status == NULL, "%s", tl_status_message(status));
  tl_diags diags;
  tl_diags_init(&diags, &sources);
  tl_module *module = tl_module_parse(&sources, source, &diags);
  tl_diags_fini(&diags);
  tl_verify_result result;
  if (module) {
    bool valid = tl_module_verify(module, &result);
    bool is_refused = false;
    if (valid) tl_walk_module(module, mark_op, &is_refused);
    if (valid && !is_refused) run_passes(module, path);
    tl_verify_result_fini(&result);
  }
  tl_module_destroy(module);
  tl_sources_fini(&sources);
}

START_TEST(every_op_is_known) {
  for_each_ir_case(try_case);
  for (int code = 0; code < TL_OPCODE_COUNT; code++) {
    if (tl_op_info_of((tl_opcode)code)->flags & EFFECT_FLAGS)
      ck_assert_msg(seen[code], "no file of test/ir shows '%s'", tl_op_info_of((tl_opcode)code)->name);
  }
}
END_TEST

static const char gemm_text[] =
    "module tile sm_80\n"
    "kernel {name = \"k\", threads = 128} do {\n"
    "  %a = alloc {name = \"a\"} : buffer<shared f16 16x16>\n"
    "  %c = alloc {name = \"c\"} : buffer<fragment f32 16x16>\n"
    "  gemm %c, %a, %a\n"
    "}\n";

START_TEST(effects_are_the_rows) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  uint32_t source = tl_sources_add(&sources, "gemm.tir", tl_str_from(gemm_text));
  tl_module *module = tl_module_parse(&sources, source, &diags);
  ck_assert_ptr_nonnull(module);
  tl_op *kernel = module->body->first;
  tl_effect_list effects = {0};
  tl_effects_inside(kernel, &effects);
  static const tl_effect_kind wanted[] = {TL_EFFECT_READ, TL_EFFECT_READ, TL_EFFECT_READ, TL_EFFECT_WRITE};
  ck_assert_uint_eq(effects.len, 4);
  for (size_t i = 0; i < effects.len; i++) ck_assert_int_eq(effects.items[i].kind, wanted[i]);
  ck_assert_ptr_eq(effects.items[3].root, tl_op_result(kernel->regions[0]->first->next, 0));
  tl_vec_fini(&effects);
  tl_module_destroy(module);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("effects");
  TCase *tests = tcase_create("effects");
  tcase_add_test(tests, every_op_is_known);
  tcase_add_test(tests, effects_are_the_rows);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
