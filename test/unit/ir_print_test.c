// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Building, editing, cloning, printing and parsing.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "ir/target.h"
#include "ir/text/text.h"
#include "ir_layouts.h"
#include "ir_text_util.h"

// ---- tables

START_TEST(op_tables) {
  for (int code = 0; code < TL_OPCODE_COUNT; code++) {
    const tl_op_info *info = tl_op_info_of((tl_opcode)code);
    ck_assert_ptr_nonnull(info->name);
    ck_assert_int_eq(tl_opcode_parse(tl_str_from(info->name)), code);
    ck_assert(strlen(info->doc) > 5);
    ck_assert(info->levels >= TL_LEVEL_T && info->levels <= TL_LEVEL_B);
    for (int g = 0; g < info->num_groups; g++) ck_assert_ptr_nonnull(info->groups[g].name);
    for (int a = 0; a < info->num_attrs; a++) ck_assert_ptr_nonnull(tl_attr_key_text(info->attrs[a].key));
  }
  const tl_op_info *copy = tl_op_info_of(TL_OP_COPY);
  ck_assert_str_eq(copy->groups[TL_GROUP_COPY_src].name, "src");
  ck_assert_str_eq(copy->groups[TL_GROUP_COPY_pad].name, "pad");
  ck_assert_int_eq(copy->num_groups, 11);
  ck_assert_int_eq(copy->groups[TL_GROUP_COPY_dst_limits].count, TL_COUNT_MANY);
  ck_assert_int_eq(copy->attrs[0].key, TL_ATTR_EXTENTS);
  ck_assert(copy->attrs[0].required && !copy->attrs[3].required);
  ck_assert_int_eq(tl_op_info_of(TL_OP_KERNEL)->num_groups, 0);
  ck_assert_int_eq(tl_op_info_of(TL_OP_YIELD)->num_groups, 1);
  ck_assert_int_eq(tl_op_info_of(TL_OP_YIELD)->num_attrs, 0);
  ck_assert_int_eq(tl_opcode_parse(TL_STR("frobnicate")), TL_OPCODE_COUNT);
  for (int key = 0; key < TL_ATTR_COUNT; key++) {
    if (tl_attr_key_kind((tl_attr_key)key) != TL_ATTRKIND_ENUM) continue;
    ck_assert_int_lt(tl_attr_key_enum((tl_attr_key)key), TL_IR_ENUM_COUNT);
  }
  ck_assert_int_eq(tl_attr_key_enum(TL_ATTR_MATH), TL_IR_ENUM_MATH);
  ck_assert_int_eq(tl_ir_enum_parse(TL_IR_ENUM_CMP, TL_STR("le")), TL_CMP_LE);
  ck_assert_int_eq(tl_ir_enum_parse(TL_IR_ENUM_CMP, TL_STR("leq")), -1);
  ck_assert_str_eq(tl_ir_enum_text(TL_IR_ENUM_VIA, TL_VIA_CP_ASYNC), "cp_async");
  ck_assert_ptr_null(tl_ir_enum_text(TL_IR_ENUM_VIA, TL_VIA_COUNT));
}
END_TEST

START_TEST(targets) {
  ck_assert_int_eq(tl_target_find(TL_STR("sm_80"))->sm, 80);
  ck_assert_ptr_null(tl_target_find(TL_STR("sm_70")));
  ck_assert_str_eq(tl_target_for_device(80)->name, "sm_80");
  ck_assert_str_eq(tl_target_for_device(87)->name, "sm_86");
  ck_assert_str_eq(tl_target_for_device(90)->name, "sm_90a");
  ck_assert_str_eq(tl_target_for_device(100)->name, "sm_100a");
  ck_assert_str_eq(tl_target_for_device(103)->name, "sm_100");
  ck_assert_str_eq(tl_target_for_device(121)->name, "sm_120");
  ck_assert_ptr_null(tl_target_for_device(75));
  int count = 0;
  while (tl_target_at(count)) count++;
  ck_assert_int_eq(count, 8);
  ck_assert_ptr_nonnull(strstr(tl_target_refusal(TL_STR("sm_75")), "cp.async"));
  ck_assert_ptr_null(tl_target_refusal(TL_STR("sm_80")));
  ck_assert_int_eq(tl_peak_for_device(90)->f16, 4096);
  ck_assert_int_eq(tl_peak_for_device(87)->sm, 86);
  ck_assert_ptr_null(tl_peak_for_device(75));
}
END_TEST

// ---- building and editing

static tl_op *build_kernel(tl_module *module, tl_builder *inner) {
  tl_builder top;
  tl_builder_at_end(&top, module, module->body);
  tl_op *kernel = tl_build(&top, TL_OP_KERNEL, NULL, NULL, 0);
  tl_op_set_str(module, kernel, TL_ATTR_NAME, TL_STR("k"));
  tl_builder_at_end(inner, module, kernel->regions[0]);
  return kernel;
}

static uint32_t count_uses(const tl_value *value) {
  uint32_t count = 0;
  for (const tl_use *use = value->uses; use; use = use->next) {
    ck_assert_ptr_eq(use->value, value);
    ck_assert_ptr_eq(*use->link, use);
    count++;
  }
  return count;
}

START_TEST(editing) {
  tl_module *module = tl_module_create();
  tl_builder b;
  tl_op *kernel = build_kernel(module, &b);
  tl_value *one = tl_build_index(&b, 1), *two = tl_build_index(&b, 2);
  tl_value *sum = tl_build_binary(&b, TL_OP_ADD, one, two);
  tl_value *twice = tl_build_binary(&b, TL_OP_MUL, sum, sum);
  ck_assert_int_eq(count_uses(sum), 2);
  ck_assert_int_eq(count_uses(one), 1);
  tl_value_replace_uses(sum, two);
  ck_assert_int_eq(count_uses(sum), 0);
  ck_assert_int_eq(count_uses(two), 3);
  ck_assert_ptr_eq(tl_op_operand(twice->def, 0), two);
  tl_op_erase(sum->def);
  ck_assert_int_eq(count_uses(two), 2);
  ck_assert_int_eq(count_uses(one), 0);
  tl_op_set_operand(twice->def, 1, one);
  ck_assert_int_eq(count_uses(one), 1);
  // Groups grow and shrink; the values around them stay.
  tl_op *tensor =
      tl_build(&b, TL_OP_TENSOR, (tl_group[]){TL_GROUP_OF(one, two), TL_GROUP_OF(two, one)},
               (const tl_type *[]){tl_type_buffer(module, TL_SCOPE_GLOBAL, TL_DTYPE_F16, (int64_t[]){1, 2}, 2)}, 1);
  ck_assert_int_eq(tl_op_group_len(tensor, TL_GROUP_TENSOR_dims), 2);
  tl_op_set_group(module, tensor, TL_GROUP_TENSOR_dims, (tl_value *[]){twice, one, one}, 3);
  ck_assert_int_eq(tensor->num_operands, 5);
  ck_assert_ptr_eq(tl_op_group_at(tensor, TL_GROUP_TENSOR_dims, 0), twice);
  ck_assert_ptr_eq(tl_op_group_at(tensor, TL_GROUP_TENSOR_strides, 0), two);
  ck_assert_ptr_eq(tl_op_group_at(tensor, TL_GROUP_TENSOR_strides, 1), one);
  tl_op_set_group(module, tensor, TL_GROUP_TENSOR_strides, NULL, 0);
  ck_assert_int_eq(tensor->num_operands, 3);
  ck_assert_int_eq(count_uses(two), 1);
  ck_assert_int_eq(count_uses(one), 3);
  // Attributes are kept sorted and replaced in place.
  tl_op_set_int(module, tensor, TL_ATTR_ALIGN, 16);
  tl_op_set_str(module, tensor, TL_ATTR_NAME, TL_STR("A"));
  tl_op_set_int(module, tensor, TL_ATTR_ARG, 0);
  tl_op_set_int(module, tensor, TL_ATTR_ACCESS, TL_ACCESS_IN);
  tl_op_set_int(module, tensor, TL_ATTR_ALIGN, 8);
  ck_assert_int_eq(tensor->num_attrs, 4);
  for (uint32_t i = 0; i + 1 < tensor->num_attrs; i++) ck_assert_int_lt(tensor->attrs[i].key, tensor->attrs[i + 1].key);
  ck_assert_int_eq(tl_op_int(tensor, TL_ATTR_ALIGN, 0), 8);
  ck_assert_int_eq(tl_op_int(tensor, TL_ATTR_VEC, -7), -7);
  ck_assert_str_eq(tl_op_str(tensor, TL_ATTR_NAME), "A");
  tl_op_remove_attr(tensor, TL_ATTR_ARG);
  ck_assert(!tl_op_has(tensor, TL_ATTR_ARG) && tl_op_has(tensor, TL_ATTR_ACCESS));
  // Moving.
  tl_op_move_before(tensor, twice->def);
  ck_assert_ptr_eq(tensor->next, twice->def);
  tl_op_move_to_end(tensor, kernel->regions[0]);
  ck_assert_ptr_eq(kernel->regions[0]->last, tensor);
  ck_assert_ptr_eq(tl_op_enclosing(tensor, TL_OP_KERNEL), kernel);
  ck_assert(tl_op_is_inside(tensor, kernel) && !tl_op_is_inside(kernel, tensor));
  ck_assert_ptr_eq(tl_module_kernel(module), kernel);
  ck_assert_ptr_null(tl_block_terminator(kernel->regions[0]));
  tl_build_yield(&b, NULL, 0);
  ck_assert_int_eq(tl_block_terminator(kernel->regions[0])->code, TL_OP_YIELD);
  tl_op_erase(kernel);
  ck_assert_ptr_null(tl_module_kernel(module));
  tl_module_destroy(module);
}
END_TEST

START_TEST(any_number_of_operands) {
  enum { LEN = 70000 };
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_appendf(&text, "module tile\nkernel {name = \"k\"} do {\n  %%c = const {value = 1} : index\n  yield %%c");
  for (int i = 1; i < LEN; i++) tl_strbuf_append_c(&text, ", %c");
  tl_strbuf_append_c(&text, "\n}\n");
  char *errors;
  tl_module *module = parse_text(tl_strbuf_c(&text), &errors);
  ck_assert_msg(module != NULL, "%s", errors);
  const tl_op *yield = tl_module_kernel(module)->regions[0]->last;
  ck_assert_uint_eq(yield->num_operands, LEN);
  ck_assert_uint_eq(tl_op_group_len(yield, TL_GROUP_YIELD_values), LEN);
  free(errors);
  tl_module_destroy(module);
  tl_strbuf_fini(&text);
}
END_TEST

START_TEST(types_are_unique) {
  tl_module *module = tl_module_create(), *other = tl_module_create();
  int64_t dims[] = {128, 32};
  const tl_type *a = tl_type_buffer(module, TL_SCOPE_SHARED, TL_DTYPE_F16, dims, 2);
  ck_assert_ptr_eq(a, tl_type_buffer(module, TL_SCOPE_SHARED, TL_DTYPE_F16, dims, 2));
  ck_assert_ptr_ne(a, tl_type_buffer(module, TL_SCOPE_GLOBAL, TL_DTYPE_F16, dims, 2));
  ck_assert_ptr_ne(a, tl_type_buffer(module, TL_SCOPE_SHARED, TL_DTYPE_F16, dims, 1));
  ck_assert_ptr_eq(tl_type_index(module), tl_type_simple(module, TL_TYPE_INDEX));
  ck_assert_ptr_eq(tl_type_import(module, a), a);
  ck_assert_ptr_ne(tl_type_import(other, a), a);
  ck_assert_ptr_eq(tl_type_import(module, tl_type_import(other, a)), a);
  tl_layout layout = mma_acc_layout((int32_t[]){128, 32}, 2, 2);
  const tl_type *tile = tl_type_tile(module, TL_DTYPE_F32, dims, 2, &layout);
  ck_assert_ptr_eq(tile->layout, tl_module_layout(module, &layout));
  ck_assert_ptr_ne(tile, tl_type_tile(module, TL_DTYPE_F32, dims, 2, NULL));
  ck_assert_int_eq(tl_type_num_elements(tile), 4096);
  ck_assert_int_eq(tl_type_num_elements(tl_type_buffer(module, TL_SCOPE_GLOBAL, TL_DTYPE_F32, (int64_t[]){-5}, 1)), -1);
  ck_assert_ptr_eq(tl_module_intern(module, TL_STR("abc")), tl_module_intern(module, TL_STR("abc")));
  tl_module_destroy(module);
  tl_module_destroy(other);
}
END_TEST

static void erase_constants(tl_op *op, void *user) {
  int *visited = user;
  (*visited)++;
  if (op->code == TL_OP_CONST && op->results[0].uses == NULL) tl_op_erase(op);
}

START_TEST(walking) {
  tl_module *module = parse_good(
      "module tile\nkernel {name = \"k\"} do {\n  %c1 = const {value = 1} : index\n  %c2 = const {value = 2} : index\n"
      "  %true = const {value = 1} : bool\n  if %true do {\n    %c3 = const {value = 3} : index\n  } do {\n"
      "    %c4 = const {value = 4} : index\n  }\n}\n");
  int visited = 0;
  tl_walk_module(module, erase_constants, &visited);
  ck_assert_int_eq(visited, 7);
  char *text = print_module(module);
  ck_assert_str_eq(
      text, "module tile\nkernel {name = \"k\"} do {\n  %true = const {value = 1} : bool\n  if %true do {\n  }\n}\n");
  free(text);
  tl_module_destroy(module);
}
END_TEST

// ---- text

START_TEST(names) {
  tl_module *module = tl_module_create();
  tl_builder b;
  build_kernel(module, &b);
  tl_value *a = tl_build_index(&b, 4), *c = tl_build_index(&b, 4), *n = tl_build_index(&b, -1);
  tl_value *sum = tl_build_binary(&b, TL_OP_ADD, a, c);
  sum->name = tl_module_intern(module, TL_STR("c4"));
  tl_value *other = tl_build_binary(&b, TL_OP_ADD, sum, n);
  tl_value *third = tl_build_binary(&b, TL_OP_ADD, sum, other);
  third->name = tl_module_intern(module, TL_STR("x y"));
  tl_value *fourth = tl_build_binary(&b, TL_OP_ADD, sum, other);
  fourth->name = tl_module_intern(module, TL_STR("x_y"));
  tl_value *fifth = tl_build_binary(&b, TL_OP_ADD, fourth, third);
  fifth->name = tl_module_intern(module, TL_STR("4"));
  tl_build_index(&b, 4);
  char *text = print_module(module);
  ck_assert_str_eq(text,
                   "module tile\nkernel {name = \"k\"} do {\n  %c4 = const {value = 4} : index\n"
                   "  %c4_1 = const {value = 4} : index\n  %cm1 = const {value = -1} : index\n"
                   "  %c4_2 = add %c4, %c4_1 : index\n  %0 = add %c4_2, %cm1 : index\n  %x_y = add %c4_2, %0 : index\n"
                   "  %x_y_1 = add %c4_2, %0 : index\n  %_4 = add %x_y_1, %x_y : index\n"
                   "  %c4_3 = const {value = 4} : index\n}\n");
  check_round_trip(text);
  tl_strbuf one;
  tl_strbuf_init(&one);
  tl_op_print(third->def, &one);
  ck_assert_str_eq(tl_strbuf_c(&one), "%x_y = add %c4_2, %0 : index\n");
  tl_strbuf_fini(&one);
  free(text);
  tl_module_destroy(module);
}
END_TEST

START_TEST(locations) {
  const char *text =
      "module tile\nkernel {name = \"k\"} do {\n  %c1 = const {value = 1} : index loc(3:120+7)\n} loc(3:0+200)\n";
  tl_module *module = parse_good(text);
  tl_op *kernel = tl_module_kernel(module);
  ck_assert_int_eq(kernel->loc.source, 3);
  ck_assert_int_eq(kernel->regions[0]->first->loc.offset, 120);
  ck_assert_int_eq(kernel->regions[0]->first->loc.length, 7);
  tl_strbuf out;
  tl_strbuf_init(&out);
  tl_module_print_with_locs(module, &out);
  ck_assert_str_eq(tl_strbuf_c(&out), text);
  tl_strbuf_fini(&out);
  tl_module_destroy(module);
  // Without one, an op's place is its text.
  module = parse_good("module tile\nkernel {name = \"k\"} do {\n}\n");
  ck_assert_int_eq(tl_module_kernel(module)->loc.source, 1);
  ck_assert_int_eq(tl_module_kernel(module)->loc.offset, 12);
  tl_module_destroy(module);
}
END_TEST

START_TEST(float_constants) {
  static const double values[] = {0.0, -0.0, 1.0, 0.1, 1e-6, 1e300, -1.5, INFINITY, -INFINITY, 5e-324, 123456789.0};
  tl_module *module = tl_module_create();
  tl_builder b;
  build_kernel(module, &b);
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
    tl_build_const_float(&b, tl_type_scalar(module, TL_DTYPE_F64), values[i]);
  }
  tl_build_const_float(&b, tl_type_scalar(module, TL_DTYPE_F64), NAN);
  char *text = print_module(module);
  check_round_trip(text);
  tl_module *again = parse_good(text);
  const tl_op *op = tl_module_kernel(again)->regions[0]->first;
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++, op = op->next) {
    const tl_attr *attr = tl_op_attr(op, TL_ATTR_VALUE);
    ck_assert(attr->is_float);
    ck_assert_mem_eq(&attr->v.f, &values[i], sizeof(double));
  }
  ck_assert(isnan(tl_op_attr(op, TL_ATTR_VALUE)->v.f));
  free(text);
  tl_module_destroy(again);
  tl_module_destroy(module);
}
END_TEST

START_TEST(every_attribute_kind) {
  tl_module *module = tl_module_create();
  tl_builder b;
  tl_op *kernel = build_kernel(module, &b);
  tl_op_set_str(module, kernel, TL_ATTR_NAME, TL_STR("a \"quoted\" \\ tab\t line\n µ 𝄞"));
  tl_op_set_unit(module, kernel, TL_ATTR_FAST_MATH);
  tl_dict_entry entries[] = {{.name = "stages", .kind = TL_ATTRKIND_INT, .i = -3},
                             {.name = "why not", .kind = TL_ATTRKIND_STR, .s = "it } fits"},
                             {.name = "tile", .kind = TL_ATTRKIND_INTS, .items = (int64_t[]){1, -2, 3}, .len = 3},
                             {.name = "none", .kind = TL_ATTRKIND_INTS}};
  tl_op_set_dict(module, kernel, TL_ATTR_PLAN, entries, 4);
  tl_op_set_dict(module, kernel, TL_ATTR_PLAN, entries, 4);
  tl_op *alloc =
      tl_build(&b, TL_OP_ALLOC, NULL,
               (const tl_type *[]){tl_type_buffer(module, TL_SCOPE_SHARED, TL_DTYPE_F16, (int64_t[]){64, 64}, 2)}, 1);
  tl_op_set_str(module, alloc, TL_ATTR_NAME, TL_STR("A_s"));
  tl_shared_layout swizzle = {128, 7, 0};
  tl_op_set_shared(module, alloc, TL_ATTR_SHARED_LAYOUT, &swizzle);
  tl_op *fill =
      tl_build(&b, TL_OP_FILL, (tl_group[]){TL_GROUP_OF(alloc->results), TL_GROUP_OF(tl_build_index(&b, 0))}, NULL, 0);
  tl_layout layout = tl_layout_blocked((int32_t[]){64, 64}, 2, (int32_t[]){1, 0}, 8, 128);
  tl_op_set_layout(module, fill, TL_ATTR_THREAD_LAYOUT, &layout);
  tl_op_set_int(module, fill, TL_ATTR_VEC, 8);
  ck_assert(tl_layout_equal(tl_op_layout(fill, TL_ATTR_THREAD_LAYOUT), &layout));
  module->level = 1;
  module->target = tl_target_find(TL_STR("sm_90a"));
  char *text = print_module(module);
  check_round_trip(text);
  tl_module *again = parse_good(text);
  ck_assert_int_eq(again->level, 1);
  ck_assert_ptr_eq(again->target, module->target);
  ck_assert(tl_op_same_attrs(kernel, tl_module_kernel(again)));
  ck_assert_str_eq(tl_op_str(tl_module_kernel(again), TL_ATTR_NAME), "a \"quoted\" \\ tab\t line\n µ 𝄞");
  tl_op_set_unit(again, tl_module_kernel(again), TL_ATTR_PANEL);
  ck_assert(!tl_op_same_attrs(kernel, tl_module_kernel(again)));
  free(text);
  tl_module_destroy(again);
  tl_module_destroy(module);
}
END_TEST

// ---- random modules

enum { MAX_GROUPS = 16 };  // of operands of one op

typedef struct random_state {
  uint64_t state;
  tl_module *module;
  TL_VEC(tl_value *) visible;
} random_state;

static uint32_t next_random(random_state *r, uint32_t limit) {
  r->state = r->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(r->state >> 33) % limit;
}

static const tl_type *random_type(random_state *r) {
  int64_t dims[TL_MAX_RANK];
  int32_t rank = (int32_t)next_random(r, 4);
  for (int32_t d = 0; d < rank; d++) dims[d] = 1 + next_random(r, 64);
  tl_dtype dtype = (tl_dtype)(1 + next_random(r, TL_DTYPE_COUNT - 1));
  switch (next_random(r, 6)) {
    case 0:
      return tl_type_index(r->module);
    case 1:
      return tl_type_buffer(r->module, (int)next_random(r, TL_SCOPE_COUNT), dtype, dims, rank);
    case 2:
      return tl_type_tile(r->module, dtype, dims, rank, NULL);
    case 3: {
      int32_t shape[TL_MAX_RANK], order[] = {0, 1, 2, 3};
      for (int32_t d = 0; d < rank; d++) shape[d] = (int32_t)dims[d];
      tl_layout layout =
          tl_layout_blocked(shape, rank, order, 1 << next_random(r, 3), 32 * (1 + (int32_t)next_random(r, 8)));
      return tl_type_tile(r->module, dtype, dims, rank, &layout);
    }
    case 4:
      return tl_type_simple(r->module, (tl_type_kind)(TL_TYPE_RING + next_random(r, TL_TYPE_TOKEN - TL_TYPE_RING + 1)));
    default:
      return tl_type_scalar(r->module, dtype);
  }
}

static void random_attr(random_state *r, tl_op *op, tl_attr_key key) {
  static const char *const words[] = {"", "a", "A_s", "two words", "\"", "\\n", "{", "// no", "ä"};
  int64_t ints[5];
  int32_t len = (int32_t)next_random(r, 5);
  for (int32_t i = 0; i < len; i++) ints[i] = (int64_t)next_random(r, 1000) - 500;
  tl_attr attr = {.key = key};
  switch (tl_attr_key_kind(key)) {
    case TL_ATTRKIND_INT:
      attr.v.i = (int64_t)next_random(r, 100000) - 50000;
      break;
    case TL_ATTRKIND_UNIT:
      attr.v.i = 1;
      break;
    case TL_ATTRKIND_VALUE:
      attr.is_float = next_random(r, 2);
      if (attr.is_float) {
        attr.v.f = next_random(r, 1000) / 7.0;
      } else {
        attr.v.i = (int64_t)next_random(r, 9) - 4;
      }
      break;
    case TL_ATTRKIND_STR:
      attr.v.s = words[next_random(r, sizeof(words) / sizeof(words[0]))];
      break;
    case TL_ATTRKIND_INTS:
      tl_op_set_ints(r->module, op, key, ints, len);
      return;
    case TL_ATTRKIND_LAYOUT: {
      tl_layout layout =
          mma_acc_layout((int32_t[]){1 + (int32_t)next_random(r, 200), 64}, 2, 1 + (int32_t)next_random(r, 4));
      tl_op_set_layout(r->module, op, key, &layout);
      return;
    }
    case TL_ATTRKIND_SWIZZLE: {
      tl_shared_layout shared = {16 * (1 + (int32_t)next_random(r, 9)), (int32_t)next_random(r, 2) * 7, 1};
      tl_op_set_shared(r->module, op, key, &shared);
      return;
    }
    case TL_ATTRKIND_INSTRUCTION: {
      tl_instruction inst = tl_instruction_of_mma(tl_mma_inst_of((tl_mma_inst_id)next_random(r, TL_MMA_INST_COUNT)));
      tl_op_set_instruction(r->module, op, &inst);
      return;
    }
    case TL_ATTRKIND_DICT: {
      tl_dict_entry entries[] = {{.name = "n", .kind = TL_ATTRKIND_INT, .i = len},
                                 {.name = "list", .kind = TL_ATTRKIND_INTS, .items = ints, .len = len},
                                 {.name = "s", .kind = TL_ATTRKIND_STR, .s = words[len]}};
      tl_op_set_dict(r->module, op, key, entries, (int32_t)next_random(r, 4));
      return;
    }
    case TL_ATTRKIND_ENUM:
      attr.v.i = 0;
      while (tl_ir_enum_text(tl_attr_key_enum(key), (int)attr.v.i + 1) && next_random(r, 3)) attr.v.i++;
      break;
  }
  tl_op_set_attr(r->module, op, &attr);
}

// Any op with any operands: the text must carry it, whether it means something or not.
static void random_block(random_state *r, tl_block *block, int depth) {
  static const char *const hints[] = {"acc", "i", "c4", "true", "x y", "0", "_", "A_s"};
  size_t scope = r->visible.len;
  if (depth > 0) {
    for (uint32_t i = next_random(r, 3); i > 0; i--) {
      tl_vec_push(&r->visible, tl_block_add_arg(r->module, block, random_type(r),
                                                next_random(r, 2) ? hints[next_random(r, 8)] : NULL));
    }
  }
  for (uint32_t n = 2 + next_random(r, 8); n > 0; n--) {
    tl_opcode code = (tl_opcode)next_random(r, TL_OPCODE_COUNT);
    const tl_op_info *info = tl_op_info_of(code);
    if (info->num_regions && depth >= 3) continue;
    tl_value *values[MAX_GROUPS][3];
    tl_group groups[MAX_GROUPS] = {0};
    for (int g = 0; g < info->num_groups; g++) {
      uint32_t len =
          info->groups[g].count == TL_COUNT_ONE ? 1 : next_random(r, info->groups[g].count == TL_COUNT_OPT ? 2 : 4);
      if (r->visible.len == 0) len = 0;
      for (uint32_t i = 0; i < len; i++) values[g][i] = r->visible.items[next_random(r, (uint32_t)r->visible.len)];
      groups[g] = (tl_group){values[g], len};
    }
    bool lacks_operands = false;
    for (int g = 0; g < info->num_groups; g++)
      lacks_operands |= info->groups[g].count == TL_COUNT_ONE && !groups[g].len;
    if (lacks_operands) continue;
    const tl_type *types[3];
    uint32_t num_results = info->num_results < 0 ? next_random(r, 4) : (uint32_t)info->num_results;
    for (uint32_t i = 0; i < num_results; i++) types[i] = random_type(r);
    tl_builder b;
    tl_builder_at_end(&b, r->module, block);
    tl_op *op = tl_build(&b, code, groups, types, num_results);
    for (int a = 0; a < info->num_attrs; a++) {
      if (info->attrs[a].required || next_random(r, 2)) random_attr(r, op, info->attrs[a].key);
    }
    for (int i = 0; i < info->num_regions; i++) random_block(r, op->regions[i], depth + 1);
    for (uint32_t i = 0; i < num_results; i++) {
      if (next_random(r, 2)) op->results[i].name = tl_module_intern(r->module, tl_str_from(hints[next_random(r, 8)]));
      tl_vec_push(&r->visible, &op->results[i]);
    }
  }
  r->visible.len = scope;
}

START_TEST(random_modules) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    random_state r = {.state = seed * 77, .module = tl_module_create()};
    random_block(&r, r.module->body, 0);
    char *text = print_module(r.module);
    tl_module *copy = tl_module_clone(r.module);
    char *cloned = print_module(copy);
    ck_assert_str_eq(cloned, text);
    check_round_trip(text);
    // Senseless, but no reason to crash.
    tl_verify_result result;
    tl_module_verify(r.module, &result);
    tl_verify_result_fini(&result);
    tl_vec_fini(&r.visible);
    tl_module_destroy(copy);
    tl_module_destroy(r.module);
    free(cloned);
    free(text);
  }
}
END_TEST

// Broken text: an error or a module, never a crash.
START_TEST(damaged_text) {
  random_state r = {.state = 5, .module = tl_module_create()};
  random_block(&r, r.module->body, 0);
  random_block(&r, r.module->body, 0);
  char *text = print_module(r.module);
  size_t len = strlen(text);
  static const char junk[] = "{}()%,:#\"<>=x0 \n";
  for (int i = 0; i < 3000; i++) {
    char *broken = strdup(text);
    for (uint32_t n = 1 + next_random(&r, 3); n > 0; n--) {
      broken[next_random(&r, (uint32_t)len)] = junk[next_random(&r, sizeof(junk) - 1)];
    }
    if (next_random(&r, 4) == 0) broken[next_random(&r, (uint32_t)len)] = '\0';
    char *errors;
    tl_module *module = parse_text(broken, &errors);
    if (module) tl_module_destroy(module);
    free(errors);
    free(broken);
  }
  free(text);
  tl_vec_fini(&r.visible);
  tl_module_destroy(r.module);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ir_print");
  TCase *tests = tcase_create("print");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, op_tables);
  tcase_add_test(tests, targets);
  tcase_add_test(tests, editing);
  tcase_add_test(tests, any_number_of_operands);
  tcase_add_test(tests, types_are_unique);
  tcase_add_test(tests, walking);
  tcase_add_test(tests, names);
  tcase_add_test(tests, locations);
  tcase_add_test(tests, float_constants);
  tcase_add_test(tests, every_attribute_kind);
  tcase_add_test(tests, random_modules);
  tcase_add_test(tests, damaged_text);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
