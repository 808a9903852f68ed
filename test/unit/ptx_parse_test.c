// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The PTX reader: what is shipped reads, is known to the table and prints back; what is wrong is refused with its
// place.
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/table/table.h"

typedef struct reading {
  tl_sources sources;
  tl_diags diags;
  tl_ptx_module *module;
} reading;

static void begin(reading *r) {
  tl_sources_init(&r->sources);
  tl_diags_init(&r->diags, &r->sources);
  r->module = NULL;
}

static void end(reading *r) {
  tl_ptx_destroy(r->module);
  tl_diags_fini(&r->diags);
  tl_sources_fini(&r->sources);
}

// Parses and checks; the messages as text when there are any, free().
static char *read_text(reading *r, const char *name, tl_str text) {
  begin(r);
  r->module = tl_ptx_parse(&r->sources, tl_sources_add(&r->sources, name, text), &r->diags);
  bool ok = r->module && tl_ptx_check(r->module, TL_STR(""), &r->diags);
  ck_assert_int_eq(ok, !tl_diags_has_errors(&r->diags));
  tl_strbuf out = {0};
  tl_diags_print_text(&r->diags, &out, false);
  return tl_strbuf_take(&out);
}

static void check_prints_back(const reading *r) {
  tl_strbuf once = {0}, twice = {0};
  tl_ptx_print(r->module, &once);
  reading again;
  char *messages = read_text(&again, "printed.ptx", tl_strbuf_view(&once));
  ck_assert_msg(!messages || !*messages, "%s", messages);
  tl_ptx_print(again.module, &twice);
  ck_assert_str_eq(tl_strbuf_c(&once), tl_strbuf_c(&twice));
  free(messages);
  end(&again);
  tl_strbuf_fini(&once);
  tl_strbuf_fini(&twice);
}

static int read_directory(const char *path) {
  DIR *directory = opendir(path);
  ck_assert_ptr_nonnull(directory);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(directory));) {
    if (!tl_str_ends_with(tl_str_from(entry->d_name), ".ptx")) continue;
    tl_strbuf name = {0};
    tl_strbuf_appendf(&name, "%s/%s", path, entry->d_name);
    tl_sources files;
    tl_sources_init(&files);
    uint32_t source;
    tl_status status = tl_sources_read(&files, tl_strbuf_c(&name), 1 << 26, &source);
    ck_assert(!status);
    reading r;
    char *messages = read_text(&r, tl_strbuf_c(&name), tl_sources_get(&files, source)->text);
    ck_assert_msg(!messages || !*messages, "%s", messages);
    check_prints_back(&r);
    free(messages);
    end(&r);
    tl_sources_fini(&files);
    tl_strbuf_fini(&name);
    count++;
  }
  closedir(directory);
  return count;
}

START_TEST(goldens_read) {
  ck_assert_int_ge(read_directory("test/golden"), 30);
}
END_TEST

// ---- what is wrong

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define BODY(text)                                                                                              \
  HEAD ".visible .entry k(.param .u64 a)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n.reg .b64 " \
       "%rd<9>;\n" text "\nret;\n}\n"

static const struct {
  const char *text, *message;
} wrong[] = {
    {"", "a module begins with .version and .target"},
    {".version 8.0\n", "a module begins with .version and .target"},
    {".version 5.0\n", "6.0 is the first that is"},
    {".version 8.0\n.target compute_80\n", "a target such as sm_80"},
    {HEAD ".address_size 32\n", "only addresses of 64 bits"},
    {HEAD "/* never", "a comment that does not end"},
    {HEAD ".section .debug { .b8 1", "a section that does not end"},
    {HEAD ".global .align 3 .b8 x[4];\n", "a power of two"},
    {HEAD ".global .b32 x[2] = {1, 2, 3};\n", "3 values for 2 elements"},
    {HEAD ".shared .b32 x = 4;\n", "only variables in .global and .const have initialisers"},
    {HEAD ".global .b32 x; .global .b32 x;\n", "'x' is declared twice"},
    {HEAD ".global .b32 x = y;\n", "an initialiser names a variable or a function of the module"},
    {HEAD ".reg .b32 %r1;\n", "'.reg' is not known in a module"},
    {HEAD ".visible .entry k() { ret; } .visible .entry k() { ret; }", "'k' is defined twice"},
    {BODY("$"), "a character that PTX does not know"},
    {BODY("mov.u32 %r1, 99999999999999999999;"), "does not fit into 64 bits"},
    {BODY("mov.f32 %f1, 0f3F;"), "8 (0f) or 16 (0d) hexadecimal digits"},
    {BODY("mov.u32 %r1, 1 / 0;"), "a division that has no result"},
    {BODY("mov.u32 %r1, (1;"), "')' is expected here"},
    {BODY("bra NOWHERE;"), "'NOWHERE' is not declared here, nor a label"},
    {BODY("{ L: } bra L;"), "'L' is not declared here, nor a label"},
    {BODY("L: L: bra L;"), "the label 'L' stands here twice"},
    {BODY("@%r1 bra L; L:"), "a predicate register is expected behind '@'"},
    {BODY("ld.global.u32 %r1, [%nothing];"), "'%nothing' is not declared"},
    {BODY("mov.u32 %r1, %r2.x;"), "vector registers are not supported"},
    {BODY("{ .reg .b32 t; } mov.b32 t, 1;"), "'t' is not declared here"},
    {BODY("mov.u32 %r9, 0;"), "a register is expected here"},
    {BODY("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];"), "textures and surfaces are not supported"},
    {BODY("ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];"), "needs PTX ISA 8.8"},
    {BODY("ld.shared.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%r1];"), "four values of 64 bits are there in global memory"},
    {BODY("atom.global.cta.gpu.add.u32 %r1, [%rd1], 1;"), "no known form of 'atom'"},
    {BODY("wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r1, %r2}, [%rd1];"), "no known form of 'wmma'"},
    {HEAD ".global .attribute(.managed .b32 x;\n", "an attribute that does not end"},
    {HEAD ".visible .entry k() { p: .callprototype _", "a prototype that does not end"},
    {BODY("frobnicate.u32 %r1;"), "the instruction 'frobnicate.u32' is not known"},
    {BODY("add.sat.u32 %r1, %r2, %r3;"), "'add.sat.u32' is no known form of 'add'"},
    {BODY("add.u32 %r1, %r2;"), "another number of operands"},
    {BODY("add.u32 %r1, %r2, %rd3;"), "'%rd3' is a register of type .b64; the instruction takes .u32 here"},
    {BODY("add.f32 %f1, %f2, 1;"), "an integer stands here for a value of type .f32"},
    {BODY("and.b32 %r1, %r2, %p1;"), "'%p1' is a register of type .pred"},
    {BODY("add.u32 %f1, %r2, %r3;"), "'%f1' is a register of type .f32"},
    {BODY("add.u32 5, %r2, %r3;"), "a register is expected here"},
    {BODY("mov.u32 %r1, %nothing;"), "neither declared nor a known special register"},
    {BODY("mov.b64 {%r1, %r2, %r3}, %rd1;"), "has no 3 parts"},
    {BODY("ld.global.v4.b32 {%r1, %r2}, [%rd1];"), "4 values in braces are expected here"},
    {BODY("ld.global.b32 %r1, %rd1;"), "an address in brackets is expected here"},
    {BODY("ld.global.b64 %r1, [%rd1];"), "'%r1' is a register of type .b32"},
    {BODY("cp.async.wait_group %r1;"), "a constant is expected here"},
    {BODY("cvt.f32.s32 %f1, %r1;"), "a rounding modifier is missing"},
    {BODY("cvt.rn.s32.f32 %r1, %f1;"), "a rounding modifier such as .rzi is missing"},
    {BODY("cvt.rn.f64.f32 %rd1, %f1;"), "nothing is rounded here"},
    {BODY("cvt.rz.f32.f32 %f1, %f2;"), "between equal types only .rni"},
    {BODY("cvt.rni.f16.f32 %r1, %f2;"), "a whole number is made of the type itself only"},
    {BODY("cvt.sat.s64.u32 %rd1, %r1;"), ".sat would do nothing here"},
    {BODY("cvt.ftz.u32.u16 %r1, %r2;"), ".ftz belongs to f32"},
    {BODY("cvt.rn.sat.bf16.f32 %r1, %f1;"), ".sat is not there for bf16"},
    {BODY("setp.lo.s32 %p1, %r1, %r2;"), "that comparison is one of unsigned numbers"},
    {BODY("setp.lt.b32 %p1, %r1, %r2;"), "bits are equal or not"},
    {BODY("setp.num.u32 %p1, %r1, %r2;"), "that comparison is one of floats"},
    {BODY("set.lt.ftz.u32.f64 %r1, %rd1, %rd2;"), ".ftz belongs to f32 and f16"},
    {BODY("slct.ftz.b32.s32 %r1, %r2, %r3, %r4;"), ".ftz belongs to f32"},
    {BODY("ld.shared.L1::evict_last.b32 %r1, [%r2];"), "hints for caches belong to global memory"},
    {BODY("ld.global.ca.L1::evict_last.b32 %r1, [%rd1];"), "exclude each other"},
    {BODY("wgmma.fence.sync.aligned;"), "the instruction needs sm_90a"},
    {HEAD ".entry k() { .reg .b32 %r<200000>; }", "more than 131072 registers"},
};

START_TEST(wrong_text_is_refused) {
  reading r;
  char *messages = read_text(&r, "wrong.ptx", tl_str_from(wrong[_i].text));
  ck_assert_msg(messages && strstr(messages, wrong[_i].message), "%s\nsays\n%s\nnot\n%s", wrong[_i].text,
                messages ? messages : "", wrong[_i].message);
  free(messages);
  end(&r);
}
END_TEST

START_TEST(places_are_lines_of_the_text) {
  reading r;
  char *messages = read_text(&r, "wrong.ptx", TL_STR(BODY("mov.u32 %r1, 0;\nfrob;")));
  ck_assert_msg(strstr(messages, "wrong.ptx:11:1: error"), "%s", messages);
  free(messages);
  end(&r);
}
END_TEST

// The operand `operand` of the first instruction of that opcode, from statement `from` on.
static const tl_ptx_operand *find_operand(const reading *r, uint32_t from, const char *opcode, uint32_t operand) {
  const tl_ptx_function *f = r->module->functions[0];
  for (uint32_t i = from; i < f->num_statements; i++)
    if (f->statements[i].kind == TL_PTX_INSTRUCTION && tl_str_is(f->statements[i].words[0], opcode))
      return &f->statements[i].operands[operand];
  ck_abort_msg("no %s", opcode);
}

// PTX ISA, Constants.
START_TEST(constants_fold) {
  static const struct {
    const char *text;
    uint64_t value;
  } cases[] = {{"1 + 2 * 3", 7},
               {"(1 + 2) * 3", 9},
               {"-4", (uint64_t)-4},
               {"0x10 | 1", 17},
               {"1 << 4 >> 1", 8},
               {"010", 8},
               {"0b101", 5},
               {"~0", UINT64_MAX},
               {"7 % 4", 3},
               {"WARP_SZ", 32},
               {"0xffffffffffffffff", UINT64_MAX},
               {"-8 / 2", (uint64_t)-4}};
  tl_strbuf text = {0};
  tl_strbuf_append_c(&text, HEAD ".entry k() { .reg .b64 %rd1; mov.u64 %rd1, ");
  tl_strbuf_append_c(&text, cases[_i].text);
  tl_strbuf_append_c(&text, "; }");
  reading r;
  char *messages = read_text(&r, "k.ptx", tl_strbuf_view(&text));
  ck_assert_msg(r.module != NULL, "%s", messages);
  ck_assert_uint_eq(find_operand(&r, 0, "mov", 1)->value, cases[_i].value);
  free(messages);
  end(&r);
  tl_strbuf_fini(&text);
}
END_TEST

START_TEST(names_find_the_innermost_scope) {
  reading r;
  char *messages = read_text(
      &r, "k.ptx", TL_STR(BODY("{ .reg .b32 %r1; add.u32 %r1, %r2, 0; L: bra L; } sub.u32 %r1, %r2, 0; L: ret;")));
  ck_assert_msg(!messages || !*messages, "%s", messages);
  ck_assert_ptr_ne(find_operand(&r, 0, "add", 0)->symbol, find_operand(&r, 0, "sub", 0)->symbol);
  ck_assert_ptr_eq(find_operand(&r, 0, "add", 1)->symbol, find_operand(&r, 0, "sub", 1)->symbol);
  const tl_ptx_operand *label = find_operand(&r, 0, "bra", 0);
  ck_assert_int_eq(r.module->functions[0]->statements[label->label + 1].kind, TL_PTX_INSTRUCTION);
  ck_assert(tl_str_is(r.module->functions[0]->statements[label->label + 1].words[0], "bra"));
  free(messages);
  end(&r);
}
END_TEST

// Every row of the table can be matched: by the instruction that its own pattern spells.
START_TEST(rows_match_themselves) {
  size_t n;
  const tl_ptx_row *rows = tl_ptx_rows(&n);
  for (size_t i = 0; i < n; i++) {
    tl_str words[TL_PTX_MAX_WORDS] = {tl_str_from(rows[i].opcode)};
    tl_ptx_statement statement = {.kind = TL_PTX_INSTRUCTION, .words = words, .num_words = 1};
    for (const char *at = rows[i].modifiers; *at;) {
      at += strspn(at, " .{*");
      size_t len = strcspn(at, " .}?");
      if (len) words[statement.num_words++] = (tl_str){at, len};
      const char *close = strchr(at, '}'), *open = strpbrk(at, " {");
      at = close && (!open || *open == ' ') && strcspn(at, "{}") == (size_t)(close - at) ? close + 1 : at + len;
      while (*at == '?') at++;
    }
    tl_str terms[TL_PTX_MAX_TERMS];
    ck_assert_msg(tl_ptx_match(&rows[i], &statement, terms), "%s %s", rows[i].opcode, rows[i].modifiers);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ptx");
  TCase *tcase = tcase_create("parse");
  tcase_add_test(tcase, goldens_read);
  tcase_add_loop_test(tcase, wrong_text_is_refused, 0, sizeof wrong / sizeof wrong[0]);
  tcase_add_test(tcase, places_are_lines_of_the_text);
  tcase_add_loop_test(tcase, constants_fold, 0, 12);
  tcase_add_test(tcase, names_find_the_innermost_scope);
  tcase_add_test(tcase, rows_match_themselves);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
