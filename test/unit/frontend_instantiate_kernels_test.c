// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel library instantiates with its defaults and with every check and bench case, verified, and fast.
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontend/elaborate/instantiate.h"
#include "ir/text/text.h"
#include "test/unit/auto_params.h"

enum { MAX_KERNELS = 64, MAX_OVERRIDES = 32 };
static char paths[MAX_KERNELS][256];
static int num_paths;

typedef struct loaded {
  tl_sources sources;
  tl_diags diags;
  tl_spec *spec;
} loaded;

static void load(loaded *l, const char *path) {
  uint32_t source;
  tl_sources_init(&l->sources);
  tl_diags_init(&l->diags, &l->sources);
  tl_status status = tl_sources_read(&l->sources, path, TL_SPEC_MAX_BYTES, &source);
  ck_assert_msg(status == TL_OK, "%s", tl_status_message(status));
  l->spec = tl_spec_parse(&l->sources, source, &l->diags);
  ck_assert_ptr_nonnull(l->spec);
}

static void unload(loaded *l) {
  tl_spec_destroy(l->spec);
  tl_diags_fini(&l->diags);
  tl_sources_fini(&l->sources);
}

static void assert_silent(loaded *l, const char *path) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_diags_print_text(&l->diags, &text, false);
  ck_assert_msg(l->diags.list.len == 0, "%s: %s", path, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
}

static void assert_verified(const tl_module *module, const char *path) {
  tl_verify_result result;
  tl_strbuf text;
  tl_strbuf_init(&text);
  bool ok = tl_module_verify(module, &result);
  if (!ok) tl_module_print_with_errors(module, &result, &text);
  ck_assert_msg(ok, "%s: %s", path, tl_strbuf_c(&text));
  tl_verify_result_fini(&result);
  tl_strbuf_fini(&text);
}

// The overrides of a case as bindings, with `auto` params; those of dynamic params only with `with_dynamic`.
static tl_bindings bindings_of(const tl_kernel_spec *kernel, const tl_case *one, bool with_dynamic, tl_binding *out) {
  uint32_t len = 0;
  for (uint32_t i = 0; i < one->num_overrides; ++i) {
    const tl_named_expr *override = &one->overrides[i];
    bool is_dynamic = false;
    for (uint32_t k = 0; k < kernel->num_params; ++k) {
      const tl_param *param = &kernel->params[k];
      if (tl_str_equal(param->name, override->name)) is_dynamic = param->kind == TL_PARAM_DYNAMIC;
    }
    ck_assert_uint_lt(len, MAX_OVERRIDES);
    if (!is_dynamic || with_dynamic) out[len++] = (tl_binding){override->name, override->value, override->loc};
  }
  return (tl_bindings){out, bind_auto_params(kernel, out, len, MAX_OVERRIDES)};
}

static void instantiate_case(loaded *l, const tl_kernel_spec *kernel, const tl_case *one, const char *path) {
  tl_binding storage[MAX_OVERRIDES];
  tl_arena arena;
  tl_env env;
  tl_arena_init(&arena);
  bool ok = tl_env_create(&arena, kernel, bindings_of(kernel, one, true, storage), true, &l->diags, &env);
  assert_silent(l, path);
  ck_assert(ok);
  // A case gives every dynamic param a value; the defaults give none.
  for (uint32_t i = 0; i < env.len && one->num_overrides; ++i) {
    ck_assert_int_ne(env.entries[i].value.kind, TL_CONST_DYNAMIC);
  }
  for (uint32_t i = 0; i < one->num_overrides; ++i) {
    const tl_env_entry *entry = tl_env_find(&env, one->overrides[i].name);
    if (entry && entry->value.kind == TL_CONST_INT) {
      ck_assert_int_eq(entry->value.i, one->overrides[i].value->int_value);
    }
  }
  tl_arena_fini(&arena);
  tl_bindings bindings = bindings_of(kernel, one, false, storage);
  tl_module *module = tl_instantiate(kernel, bindings, tl_target_find(TL_STR("sm_80")), &l->sources, &l->diags);
  assert_silent(l, path);
  ck_assert_ptr_nonnull(module);
  assert_verified(module, path);
  tl_module_destroy(module);
}

START_TEST(kernels_and_cases_instantiate) {
  const char *path = paths[_i];
  loaded l;
  load(&l, path);
  for (uint32_t k = 0; k < l.spec->num_kernels; ++k) {
    const tl_kernel_spec *kernel = &l.spec->kernels[k];
    instantiate_case(&l, kernel, &(tl_case){0}, path);
    for (uint32_t c = 0; c < kernel->check.num_cases; ++c) instantiate_case(&l, kernel, &kernel->check.cases[c], path);
    for (uint32_t c = 0; c < kernel->bench.num_cases; ++c) instantiate_case(&l, kernel, &kernel->bench.cases[c], path);
  }
  unload(&l);
}
END_TEST

START_TEST(instantiate_is_pure) {
  // Twice gives the same text, and the spec is not changed by it.
  loaded l;
  load(&l, paths[_i]);
  tl_strbuf texts[2];
  for (int i = 0; i < 2; ++i) {
    tl_binding storage[MAX_OVERRIDES];
    tl_bindings bindings = {storage, bind_auto_params(&l.spec->kernels[0], storage, 0, MAX_OVERRIDES)};
    tl_module *module = tl_instantiate(&l.spec->kernels[0], bindings, NULL, &l.sources, &l.diags);
    ck_assert_ptr_nonnull(module);
    tl_strbuf_init(&texts[i]);
    tl_module_print(module, &texts[i]);
    tl_module_destroy(module);
  }
  ck_assert_str_eq(tl_strbuf_c(&texts[0]), tl_strbuf_c(&texts[1]));
  for (int i = 0; i < 2; ++i) tl_strbuf_fini(&texts[i]);
  unload(&l);
}
END_TEST

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

START_TEST(instantiate_takes_less_than_a_millisecond) {
  loaded l;
  load(&l, paths[_i]);
  double best = 1;
  for (int i = 0; i < 20; ++i) {
    double start = seconds();
    tl_module *module = tl_instantiate(&l.spec->kernels[0], (tl_bindings){0}, NULL, &l.sources, &l.diags);
    double taken = seconds() - start;
    if (taken < best) best = taken;
    tl_module_destroy(module);
  }
#ifdef TL_SANITIZED
  ck_assert_double_lt(best, 0.1);
#else
  ck_assert_double_lt(best, 0.001);
#endif
  unload(&l);
}
END_TEST

int main(void) {
  DIR *directory = opendir("kernels");
  for (struct dirent *entry; directory && (entry = readdir(directory)) && num_paths < MAX_KERNELS;) {
    if (!tl_str_ends_with(tl_str_from(entry->d_name), ".yaml")) continue;
    snprintf(paths[num_paths++], sizeof(paths[0]), "kernels/%.200s", entry->d_name);
  }
  if (directory) closedir(directory);
  if (num_paths < 8) {
    fprintf(stderr, "%d kernels found: run this from the root of the repository\n", num_paths);
    return EXIT_FAILURE;
  }
  Suite *suite = suite_create("frontend_instantiate_kernels");
  TCase *tcase = tcase_create("kernels");
  tcase_add_loop_test(tcase, kernels_and_cases_instantiate, 0, num_paths);
  tcase_add_loop_test(tcase, instantiate_is_pure, 0, num_paths);
  tcase_add_loop_test(tcase, instantiate_takes_less_than_a_millisecond, 0, num_paths);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
