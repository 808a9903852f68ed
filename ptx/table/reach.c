// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which functions of a module a kernel can come to: a module of many kernels is held against the table only as far as
// one of them runs.
#include "ptx/table/table.h"
#include "support/vec.h"

static bool names_function(const tl_ptx_operand *operands, uint32_t n, tl_str name) {
  for (uint32_t i = 0; i < n; i++) {
    if (operands[i].kind == TL_PTX_FUNCTION && tl_str_equal(operands[i].text, name)) return true;
    if (names_function(operands[i].items, operands[i].num_items, name)) return true;
  }
  return false;
}

static bool is_call(const tl_ptx_statement *s) {
  return s->kind == TL_PTX_INSTRUCTION && tl_str_is(s->words[0], "call");
}

static bool is_direct_call(const tl_ptx_statement *s) {
  for (uint32_t i = 0; is_call(s) && i < s->num_operands; i++)
    if (s->operands[i].kind == TL_PTX_FUNCTION) return true;
  return false;
}

bool tl_ptx_takes_address(const tl_ptx_module *module, tl_str name) {
  for (uint32_t i = 0; i < module->num_variables; i++)
    for (uint32_t k = 0; k < module->variables[i]->num_values; k++)
      if (tl_str_equal(module->variables[i]->values[k].function, name)) return true;
  for (uint32_t f = 0; f < module->num_functions; f++)
    for (uint32_t i = 0; i < module->functions[f]->num_statements; i++) {
      const tl_ptx_statement *s = &module->functions[f]->statements[i];
      if (s->kind == TL_PTX_INSTRUCTION && !is_direct_call(s) && names_function(s->operands, s->num_operands, name))
        return true;
    }
  return false;
}

typedef struct reach {
  const tl_ptx_module *module;
  TL_VEC(tl_ptx_function *) functions;
} reach;

static void add(reach *r, tl_ptx_function *function) {
  if (!function) return;
  for (size_t i = 0; i < r->functions.len; i++)
    if (r->functions.items[i] == function) return;
  tl_vec_push(&r->functions, function);
}

static void add_called(reach *r, const tl_ptx_function *from) {
  for (uint32_t i = 0; i < from->num_statements; i++) {
    const tl_ptx_statement *s = &from->statements[i];
    if (!is_call(s)) continue;
    bool is_direct = is_direct_call(s);
    for (uint32_t k = 0; k < s->num_operands; k++)
      if (s->operands[k].kind == TL_PTX_FUNCTION) add(r, tl_ptx_find_function(r->module, s->operands[k].text));
    for (uint32_t f = 0; !is_direct && f < r->module->num_functions; f++)
      if (tl_ptx_takes_address(r->module, r->module->functions[f]->name)) add(r, r->module->functions[f]);
  }
}

tl_ptx_function **tl_ptx_reached(const tl_ptx_module *module, tl_ptx_function *kernel, size_t *out_count) {
  reach r = {.module = module};
  add(&r, kernel);
  for (size_t i = 0; i < r.functions.len; i++) add_called(&r, r.functions.items[i]);
  *out_count = r.functions.len;
  return r.functions.items;
}
