// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names and the scopes that hold them (PTX ISA, Syntax: identifiers; braces open a scope).
#include <string.h>

#include "ptx/text/parser.h"

static uint32_t bucket_of(tl_str name) {
  return (uint32_t)(tl_str_hash(name) % PTX_NAME_BUCKETS);
}

static void push(ptx_parser *p, tl_str name, tl_ptx_symbol *symbol) {
  uint32_t bucket = bucket_of(name);
  tl_vec_push(&p->names, (ptx_name){name, symbol, p->scope, p->buckets[bucket]});
  p->buckets[bucket] = (uint32_t)p->names.len;
}

static ptx_name *find(ptx_parser *p, tl_str name) {
  for (uint32_t i = p->buckets[bucket_of(name)]; i; i = p->names.items[i - 1].next)
    if (tl_str_equal(p->names.items[i - 1].name, name)) return &p->names.items[i - 1];
  return NULL;
}

// A register of a range gets its symbol, and its number, when it is first named; in the scope of its range, since inner
// scopes come and go.
static tl_ptx_symbol *register_of_range(ptx_parser *p, tl_str name, const ptx_name *range) {
  tl_ptx_symbol *symbol = TL_NEW(p->arena, tl_ptx_symbol);
  *symbol = (tl_ptx_symbol){.name = name,
                            .space = TL_PTX_SPACE_REG,
                            .type = range->symbol->type,
                            .elements = 1,
                            .id = (uint32_t)p->registers.len,
                            .loc = range->symbol->loc};
  tl_vec_push(&p->registers, symbol);
  return symbol;
}

// "%r12": of the range %r<100>, when that has so many. Leading zeros name another register, or none.
static tl_ptx_symbol *find_in_range(ptx_parser *p, tl_str name) {
  size_t prefix = name.len;
  while (prefix && name.data[prefix - 1] >= '0' && name.data[prefix - 1] <= '9') prefix--;
  for (; prefix < name.len; prefix++) {
    uint64_t number = 0;
    if (name.len - prefix > 9 || (name.data[prefix] == '0' && name.len - prefix > 1)) continue;
    for (size_t i = prefix; i < name.len; i++) number = 10 * number + (uint64_t)(name.data[i] - '0');
    const ptx_name *range = find(p, tl_str_sub(name, 0, prefix));
    if (!range || !range->symbol->is_range || number >= range->symbol->elements) continue;
    tl_ptx_symbol **slots = range->symbol->slots;
    if (!slots[number]) slots[number] = register_of_range(p, name, range);
    return slots[number];
  }
  return NULL;
}

tl_ptx_symbol *tl_ptx_lookup(ptx_parser *p, tl_str name) {
  const ptx_name *found = find(p, name);
  if (found && !found->symbol->is_range) return found->symbol;
  return find_in_range(p, name);
}

bool tl_ptx_declare(ptx_parser *p, tl_ptx_symbol *symbol) {
  const ptx_name *found = find(p, symbol->name);
  if (found && found->scope == p->scope) {
    // A declaration of the module may be repeated (.extern, then the variable itself).
    if (!p->depth && found->symbol->is_extern && found->symbol->space == symbol->space) return true;
    return tl_ptx_fail(p, symbol->loc, "'%.*s' is declared twice", TL_STR_ARG(symbol->name));
  }
  push(p, symbol->name, symbol);
  return true;
}

void tl_ptx_open_scope(ptx_parser *p) {
  tl_vec_push(&p->parents, p->scope);
  p->scope = (uint32_t)p->parents.len;
  p->depth++;
}

void tl_ptx_close_scope(ptx_parser *p) {
  while (p->names.len && tl_vec_last(&p->names).scope == p->scope) {
    ptx_name name = tl_vec_pop(&p->names);
    p->buckets[bucket_of(name.name)] = name.next;
  }
  p->scope = p->parents.items[p->scope - 1];
  p->depth--;
}

// ---- labels

typedef struct label_index {
  uint32_t *buckets, *next;  // + 1
} label_index;

static bool resolve(ptx_parser *p, const label_index *index, tl_ptx_operand *operand, uint32_t from) {
  for (uint32_t scope = from;; scope = p->parents.items[scope - 1]) {
    for (uint32_t i = index->buckets[bucket_of(operand->text)]; i; i = index->next[i - 1]) {
      const ptx_label *label = &p->labels.items[i - 1];
      if (label->scope != scope || !tl_str_equal(label->name, operand->text)) continue;
      operand->label = label->statement;
      return true;
    }
    if (!scope)
      return tl_ptx_fail(p, operand->loc, "'%.*s' is not declared here, nor a label", TL_STR_ARG(operand->text));
  }
}

static bool resolve_operands(ptx_parser *p, const label_index *index, tl_ptx_operand *operands, uint32_t n,
                             uint32_t scope) {
  for (uint32_t i = 0; i < n; i++) {
    if (operands[i].kind == TL_PTX_LABEL && !resolve(p, index, &operands[i], scope)) return false;
    if (!resolve_operands(p, index, operands[i].items, operands[i].num_items, scope)) return false;
  }
  return true;
}

bool tl_ptx_resolve_labels(ptx_parser *p) {
  label_index index = {TL_NEW_ARRAY(p->arena, uint32_t, PTX_NAME_BUCKETS),
                       TL_NEW_ARRAY(p->arena, uint32_t, p->labels.len + 1)};
  for (size_t i = 0; i < p->labels.len; i++) {
    const ptx_label *label = &p->labels.items[i];
    uint32_t bucket = bucket_of(label->name);
    for (uint32_t k = index.buckets[bucket]; k; k = index.next[k - 1])
      if (p->labels.items[k - 1].scope == label->scope && tl_str_equal(p->labels.items[k - 1].name, label->name))
        return tl_ptx_fail(p, p->statements.items[label->statement].loc, "the label '%.*s' stands here twice",
                           TL_STR_ARG(label->name));
    index.next[i] = index.buckets[bucket];
    index.buckets[bucket] = (uint32_t)i + 1;
  }
  for (size_t i = 0; i < p->statements.len; i++) {
    tl_ptx_statement *statement = &p->statements.items[i];
    if (!resolve_operands(p, &index, statement->operands, statement->num_operands, p->statement_scopes.items[i]))
      return false;
  }
  return true;
}
