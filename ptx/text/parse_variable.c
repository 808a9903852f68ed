// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Declarations of registers and variables (PTX ISA, State Spaces, Types, and Variables).
#include "ptx/text/parser.h"

// Bounds that only malformed text exceeds.
enum { MAX_REGISTERS = 1 << 17, MAX_VALUES = 1 << 24, MAX_ALIGN = 4096 };
#define MAX_ELEMENTS (UINT64_C(1) << 40)

tl_ptx_space tl_ptx_space_of(tl_str word) {
  static const char *const names[] = {
      [TL_PTX_SPACE_REG] = "reg",       [TL_PTX_SPACE_PARAM] = "param",   [TL_PTX_SPACE_LOCAL] = "local",
      [TL_PTX_SPACE_SHARED] = "shared", [TL_PTX_SPACE_GLOBAL] = "global", [TL_PTX_SPACE_CONST] = "const"};
  for (int i = TL_PTX_SPACE_REG; i <= TL_PTX_SPACE_CONST; i++)
    if (tl_str_is(word, names[i])) return (tl_ptx_space)i;
  return TL_PTX_SPACE_NONE;
}

static bool parse_align(ptx_parser *p, tl_ptx_symbol *kind) {
  uint64_t align;
  tl_loc loc = tl_ptx_here(p);
  if (!tl_ptx_take_number(p, "an alignment", &align)) return false;
  if (!align || align > MAX_ALIGN || (align & (align - 1)))
    return tl_ptx_fail(p, loc, "an alignment is a power of two up to %d", MAX_ALIGN);
  // That of what a pointer points at comes behind the type, and is no concern of the parameter.
  if (!kind->type) kind->align = (uint32_t)align;
  return true;
}

// ".attribute(.managed)", ".attribute(.unified(1, 2))": where the memory lies for other processors.
bool tl_ptx_parse_attribute(ptx_parser *p) {
  if (!tl_ptx_expect(p, '(', "an attribute")) return false;
  for (int depth = 1; depth; tl_ptx_next(p)) {
    if (p->token.kind == TL_PTX_TOKEN_END || p->token.kind == TL_PTX_TOKEN_WRONG)
      return tl_ptx_fail(p, tl_ptx_here(p), "an attribute that does not end");
    depth += tl_ptx_is_punct(p, '(') - tl_ptx_is_punct(p, ')');
  }
  return true;
}

// ".align 16 .v2 .b32", and for pointers of kernels ".u64 .ptr .global .align 16": what all variables of a declaration
// share.
static bool parse_kind(ptx_parser *p, tl_ptx_symbol *kind, uint32_t *out_vector) {
  *out_vector = 1;
  while (p->token.kind == TL_PTX_TOKEN_DOT) {
    tl_str word = p->token.text;
    tl_loc loc = tl_ptx_here(p);
    tl_ptx_next(p);
    if (tl_str_is(word, "align")) {
      if (!parse_align(p, kind)) return false;
    } else if (tl_str_is(word, "attribute")) {
      if (!tl_ptx_parse_attribute(p)) return false;
    } else if (tl_str_is(word, "v2") || tl_str_is(word, "v4")) {
      *out_vector = (uint32_t)(word.data[1] - '0');
    } else if (!kind->type && tl_ptx_type_parse(word)) {
      kind->type = tl_ptx_type_parse(word);
    } else if (!kind->type || !(tl_str_is(word, "ptr") || tl_ptx_space_of(word))) {
      return tl_ptx_fail(p, loc, "'.%.*s' is not known in a declaration", TL_STR_ARG(word));
    }
  }
  return kind->type || tl_ptx_fail(p, tl_ptx_here(p), "a declaration names a type");
}

static bool parse_dims(ptx_parser *p, tl_ptx_symbol *symbol) {
  while (tl_ptx_take_punct(p, '[')) {
    symbol->is_array = true;
    if (tl_ptx_take_punct(p, ']')) {
      symbol->is_unsized = true;
      continue;
    }
    uint64_t n;
    tl_loc loc = tl_ptx_here(p);
    if (!tl_ptx_integer(p, &n)) return false;
    if (n > MAX_ELEMENTS || n * symbol->elements > MAX_ELEMENTS)
      return tl_ptx_fail(p, loc, "an array that is too large");
    symbol->elements *= n;
    if (!tl_ptx_expect(p, ']', "an array's size")) return false;
  }
  return true;
}

typedef TL_VEC(tl_ptx_initial) value_vec;

static bool parse_value(ptx_parser *p, const tl_ptx_symbol *of, tl_ptx_initial *out) {
  *out = (tl_ptx_initial){0};
  if (p->token.kind != TL_PTX_TOKEN_WORD || tl_str_is(p->token.text, "WARP_SZ"))
    return tl_ptx_constant(p, of->type, &out->bits);
  tl_loc loc = tl_ptx_here(p);
  out->is_generic = tl_str_is(p->token.text, "generic");
  if (out->is_generic) {
    tl_ptx_next(p);
    if (!tl_ptx_expect(p, '(', "generic")) return false;
  }
  if (p->token.kind != TL_PTX_TOKEN_WORD)
    return tl_ptx_fail(p, loc, "an initialiser names a variable of the module or a number");
  out->symbol = tl_ptx_lookup(p, p->token.text);
  if (!out->symbol) out->function = p->token.text;
  tl_ptx_next(p);
  if (out->is_generic && !tl_ptx_expect(p, ')', "generic")) return false;
  return !tl_ptx_is_punct(p, '+') || tl_ptx_integer(p, &out->bits);
}

// "{1, 2, {3, 4}}": nested braces follow the dimensions.
static bool parse_values(ptx_parser *p, const tl_ptx_symbol *of, int depth, value_vec *out) {
  if (depth > 8 || out->len > MAX_VALUES) return tl_ptx_fail(p, tl_ptx_here(p), "an initialiser that is too large");
  if (!tl_ptx_take_punct(p, '{')) {
    tl_ptx_initial value;
    if (!parse_value(p, of, &value)) return false;
    tl_vec_push(out, value);
    return true;
  }
  while (!tl_ptx_take_punct(p, '}')) {
    if (!parse_values(p, of, depth + 1, out)) return false;
    if (!tl_ptx_is_punct(p, '}') && !tl_ptx_expect(p, ',', "an initialiser")) return false;
  }
  return true;
}

static bool parse_initialiser(ptx_parser *p, tl_ptx_symbol *symbol) {
  if (!tl_ptx_take_punct(p, '=')) return true;
  tl_loc loc = tl_ptx_here(p);
  if (symbol->space != TL_PTX_SPACE_GLOBAL && symbol->space != TL_PTX_SPACE_CONST)
    return tl_ptx_fail(p, loc, "only variables in .global and .const have initialisers");
  value_vec values = {0};
  bool ok = parse_values(p, symbol, 0, &values);
  if (ok && symbol->is_unsized) {
    symbol->elements = values.len;
    symbol->is_unsized = false;
  }
  if (ok && values.len > symbol->elements)
    ok = tl_ptx_fail(p, loc, "%zu values for %llu elements", values.len, (unsigned long long)symbol->elements);
  if (ok) {
    symbol->values = (tl_ptx_initial *)(void *)tl_vec_to_arena(&values, p->arena);
    symbol->num_values = (uint32_t)values.len;
  }
  tl_vec_fini(&values);
  return ok;
}

// "%r<100>"
static bool parse_range(ptx_parser *p, tl_ptx_symbol *symbol) {
  if (!tl_ptx_take_punct(p, '<')) return true;
  tl_loc loc = tl_ptx_here(p);
  uint64_t n;
  if (!tl_ptx_take_number(p, "a number of registers", &n)) return false;
  if (n > MAX_REGISTERS) return tl_ptx_fail(p, loc, "more than %d registers", MAX_REGISTERS);
  symbol->is_range = true;
  symbol->elements = n;
  symbol->slots = TL_NEW_ARRAY(p->arena, tl_ptx_symbol *, n + 1);
  return tl_ptx_expect(p, '>', "a range of registers");
}

static void add_symbol(ptx_parser *p, tl_ptx_symbol *symbol) {
  if (symbol->space == TL_PTX_SPACE_REG) {
    if (symbol->is_range) return;
    symbol->id = (uint32_t)p->registers.len;
    tl_vec_push(&p->registers, symbol);
  } else {
    symbol->id = (uint32_t)p->variables.len;
    tl_vec_push(&p->variables, symbol);
  }
}

static tl_ptx_symbol *parse_variable(ptx_parser *p, const tl_ptx_symbol *kind, uint32_t vector) {
  tl_ptx_symbol *symbol = TL_NEW(p->arena, tl_ptx_symbol);
  *symbol = *kind;
  symbol->name = p->token.text;
  symbol->loc = tl_ptx_here(p);
  symbol->elements = vector;
  if (p->token.kind != TL_PTX_TOKEN_WORD) {
    tl_ptx_fail(p, symbol->loc, "a declaration names a variable");
    return NULL;
  }
  tl_ptx_next(p);
  bool is_register = symbol->space == TL_PTX_SPACE_REG;
  if (is_register && vector > 1) {
    tl_ptx_fail(p, symbol->loc, "vector registers are not supported");
    return NULL;
  }
  if (is_register ? !parse_range(p, symbol) : !parse_dims(p, symbol) || !parse_initialiser(p, symbol)) return NULL;
  if (!is_register && symbol->type == TL_PTX_PRED) {
    tl_ptx_fail(p, symbol->loc, "predicates live in registers only");
    return NULL;
  }
  if (!symbol->align) symbol->align = tl_ptx_type_bytes(symbol->type) * vector;
  return symbol;
}

bool tl_ptx_parse_variables(ptx_parser *p, tl_ptx_space space, tl_str linkage, bool in_function) {
  tl_ptx_symbol kind = {.space = space,
                        .is_extern = tl_str_is(linkage, "extern") || tl_str_is(linkage, "common"),
                        .is_of_function = in_function};
  uint32_t vector;
  if (!parse_kind(p, &kind, &vector)) return false;
  do {
    tl_ptx_symbol *symbol = parse_variable(p, &kind, vector);
    if (!symbol || !tl_ptx_declare(p, symbol)) return false;
    add_symbol(p, symbol);
    if (in_function) {
      tl_ptx_statement statement = {
          .kind = TL_PTX_DECLARATION, .loc = symbol->loc, .line = p->token.line, .symbol = symbol};
      tl_vec_push(&p->statements, statement);
      tl_vec_push(&p->statement_scopes, p->scope);
    }
  } while (tl_ptx_take_punct(p, ','));
  return tl_ptx_expect(p, ';', "a declaration");
}

tl_ptx_symbol *tl_ptx_parse_parameter(ptx_parser *p, tl_ptx_space space) {
  tl_ptx_symbol kind = {.space = space, .is_of_function = true};
  uint32_t vector;
  if (!parse_kind(p, &kind, &vector)) return NULL;
  tl_ptx_symbol *symbol = parse_variable(p, &kind, vector);
  if (!symbol || !tl_ptx_declare(p, symbol)) return NULL;
  add_symbol(p, symbol);
  return symbol;
}
