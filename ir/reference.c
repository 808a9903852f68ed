// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference of ops, attributes and enumerations as Markdown, from the same tables that printer and verifier use.
#include "ir/scalar/scalar.h"
#include "ir/text/text.h"

static const char *level_text(int levels) {
  switch (levels) {
    case TL_LEVEL_T:
      return "tile";
    case TL_LEVEL_S:
      return "scheduled";
    default:
      return "both";
  }
}

static void print_flags(int flags, tl_strbuf *out) {
  static const struct {
    int flag;
    const char *text;
  } names[] = {{TL_OPFLAG_PURE, "pure"},
               {TL_OPFLAG_READ, "reads"},
               {TL_OPFLAG_WRITE, "writes"},
               {TL_OPFLAG_CONTROL, "control"},
               {TL_OPFLAG_SYNC, "synchronises"},
               {TL_OPFLAG_TERMINATOR, "terminator"},
               {TL_OPFLAG_ONCE, "only directly in a kernel"}};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (flags & names[i].flag) tl_strbuf_appendf(out, "; %s", names[i].text);
  }
}

static const char *const kind_texts[] = {"index", "scalar", "bool",     "buffer", "tile",  "flight",
                                         "ring",  "slot",   "mbarrier", "map",    "token", "any"};
static const char *const count_texts[] = {"", "?", "*"};

static void print_op_reference(tl_opcode code, tl_strbuf *out) {
  const tl_op_info *info = tl_op_info_of(code);
  tl_strbuf_appendf(out, "#### `%s`\n\n%s\n\n", info->name, info->doc);
  tl_strbuf_appendf(out, "- Level: %s", level_text(info->levels));
  print_flags(info->flags, out);
  tl_strbuf_append_char(out, '\n');
  if (info->num_groups) tl_strbuf_append_c(out, "- Operands: ");
  for (int g = 0; g < info->num_groups; g++) {
    const tl_operand_info *group = &info->groups[g];
    tl_strbuf_appendf(out, "%s`%s: %s%s`", g ? ", " : "", group->name, kind_texts[group->kind],
                      count_texts[group->count]);
  }
  if (info->num_groups) tl_strbuf_append_char(out, '\n');
  if (info->num_attrs) tl_strbuf_append_c(out, "- Attributes: ");
  for (int a = 0; a < info->num_attrs; a++) {
    tl_strbuf_appendf(out, "%s`%s%s`", a ? ", " : "", tl_attr_key_text(info->attrs[a].key),
                      info->attrs[a].required ? "" : "?");
  }
  if (info->num_attrs) tl_strbuf_append_char(out, '\n');
  if (info->num_results < 0) {
    tl_strbuf_append_c(out, "- Results: any number\n");
  } else if (info->num_results > 0) {
    tl_strbuf_appendf(out, "- Results: %d\n", info->num_results);
  }
  if (info->num_regions) tl_strbuf_appendf(out, "- Regions: %d\n", info->num_regions);
  tl_strbuf_append_char(out, '\n');
}

static void print_enum_values(tl_ir_enum which, tl_strbuf *out) {
  const char *text;
  for (int value = 0; (text = tl_ir_enum_text(which, value)) != NULL; value++) {
    tl_strbuf_appendf(out, "%s`%s`", value ? " " : "", text);
  }
}

static void print_range(tl_attr_key key, tl_strbuf *out) {
  int64_t least, most;
  tl_attr_key_range(key, &least, &most);
  if (least > INT64_MIN) tl_strbuf_appendf(out, " from %lld", (long long)least);
  if (most < INT32_MAX) tl_strbuf_appendf(out, " to %lld", (long long)most);
}

static void print_attr_reference(tl_attr_key key, tl_strbuf *out) {
  static const char *const kinds[] = {[TL_ATTRKIND_UNIT] = "present or not",
                                      [TL_ATTRKIND_INT] = "integer",
                                      [TL_ATTRKIND_STR] = "string",
                                      [TL_ATTRKIND_INTS] = "list of integers",
                                      [TL_ATTRKIND_LAYOUT] = "layout",
                                      [TL_ATTRKIND_SWIZZLE] = "shared layout",
                                      [TL_ATTRKIND_INSTRUCTION] = "matrix instruction",
                                      [TL_ATTRKIND_DICT] = "names with integers, strings or lists of integers",
                                      [TL_ATTRKIND_VALUE] = "integer or float",
                                      [TL_ATTRKIND_ENUM] = ""};
  tl_attr_kind kind = tl_attr_key_kind(key);
  tl_strbuf_appendf(out, "| `%s` | %s", tl_attr_key_text(key), kinds[kind]);
  if (kind == TL_ATTRKIND_ENUM) print_enum_values(tl_attr_key_enum(key), out);
  if (kind == TL_ATTRKIND_INT || kind == TL_ATTRKIND_INTS) print_range(key, out);
  tl_strbuf_append_c(out, " |\n");
}

static void print_math_reference(tl_strbuf *out) {
  static const char head[] = "| function | value | f32, ulp | f64, ulp | how |\n| --- | --- | --- | --- | --- |\n";
  tl_strbuf_appendf(out, "\n### Functions of `math`\n\n%s", head);
  for (int function = 0; function < TL_MATH_COUNT; function++) {
    int f32_ulp, f64_ulp;
    tl_scalar_math_ulp(function, &f32_ulp, &f64_ulp);
    tl_strbuf_appendf(out, "| `%s` | %s | %d | %d | %s |\n", tl_ir_enum_text(TL_IR_ENUM_MATH, function),
                      tl_scalar_math_doc(function), f32_ulp, f64_ulp, tl_scalar_math_how(function));
  }
  tl_strbuf_appendf(out, "\n### Functions of `math2`\n\n%s", head);
  for (int function = 0; function < TL_MATH2_COUNT; function++) {
    int f32_ulp, f64_ulp;
    tl_scalar_math2_ulp(function, &f32_ulp, &f64_ulp);
    tl_strbuf_appendf(out, "| `%s` | %s | %d | %d | %s |\n", tl_ir_enum_text(TL_IR_ENUM_MATH2, function),
                      tl_scalar_math2_doc(function), f32_ulp, f64_ulp, tl_scalar_math2_how(function));
  }
  tl_strbuf_append_c(out, "\n0 ulp is the correctly rounded result; no bound is stated for `fast_math`.\n");
}

void tl_ir_print_reference(tl_strbuf *out) {
  tl_strbuf_append_c(out, "### Attributes\n\n| key | value |\n| --- | --- |\n");
  for (int key = 0; key < TL_ATTR_COUNT; key++) print_attr_reference((tl_attr_key)key, out);
  print_math_reference(out);
  tl_strbuf_append_c(
      out, "\n### Operations\n\nOf operands and attributes, `?` marks what may be absent and `*` any number.\n\n");
  for (int code = 0; code < TL_OPCODE_COUNT; code++) print_op_reference((tl_opcode)code, out);
}
