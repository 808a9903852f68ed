// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A module: its directives, variables and functions (PTX ISA, Directives). The first mistake ends the reading.
#include "ptx/text/parser.h"

#include <string.h>

static bool take_dot(ptx_parser *p, const char *text) {
  if (!tl_ptx_is_dot(p, text)) return false;
  tl_ptx_next(p);
  return true;
}

// ---- directives of a module

// "8.0" comes as a float.
static bool parse_version(ptx_parser *p) {
  tl_str text = p->token.text;
  size_t point = tl_str_find(text, '.');
  if (p->token.kind != TL_PTX_TOKEN_FLOAT64 || point != 1 || text.len != 3)
    return tl_ptx_fail(p, tl_ptx_here(p), "a version such as 8.0 is expected here");
  int version = 10 * (text.data[0] - '0') + text.data[2] - '0';
  // Of versions behind the table's, what instructions mean is looked up all the same.
  if (version < 60)
    return tl_ptx_fail(p, tl_ptx_here(p), "PTX ISA %.*s is not known: 6.0 is the first that is", TL_STR_ARG(text));
  p->module->version = version;
  tl_ptx_next(p);
  return true;
}

// "sm_90a", then options such as texmode_independent or debug.
static bool parse_target(ptx_parser *p) {
  tl_str text = p->token.text;
  int sm = 0;
  size_t at = 3;
  for (; at < text.len && at < 6 && text.data[at] >= '0' && text.data[at] <= '9'; at++)
    sm = 10 * sm + text.data[at] - '0';
  bool is_arch = at + 1 == text.len && (text.data[at] == 'a' || text.data[at] == 'f');
  if (p->token.kind != TL_PTX_TOKEN_WORD || !tl_str_starts_with(text, "sm_") || !sm || (at < text.len && !is_arch))
    return tl_ptx_fail(p, tl_ptx_here(p), "a target such as sm_80 is expected here");
  p->module->target = text;
  p->module->sm = sm;
  p->module->is_arch = is_arch;
  tl_ptx_next(p);
  while (tl_ptx_take_punct(p, ',')) tl_ptx_next(p);
  return true;
}

static bool parse_address_size(ptx_parser *p) {
  uint64_t bits;
  tl_loc loc = tl_ptx_here(p);
  if (!tl_ptx_take_number(p, "32 or 64", &bits)) return false;
  return bits == 64 || tl_ptx_fail(p, loc, "only addresses of 64 bits are supported");
}

// ".file 1 "name", 123, 456"
static bool parse_file(ptx_parser *p) {
  uint64_t number;
  if (!tl_ptx_take_number(p, "a number of a file", &number)) return false;
  if (p->token.kind != TL_PTX_TOKEN_STRING) return tl_ptx_fail(p, tl_ptx_here(p), "a file has a name");
  tl_vec_push(&p->files, (tl_ptx_file){(uint32_t)number, p->token.text});
  tl_ptx_next(p);
  while (tl_ptx_take_punct(p, ',')) tl_ptx_next(p);
  return true;
}

// ".section .debug_str { … }": what debuggers read.
static bool parse_section(ptx_parser *p) {
  tl_ptx_next(p);
  if (!tl_ptx_expect(p, '{', "a section")) return false;
  while (!tl_ptx_take_punct(p, '}')) {
    if (p->token.kind == TL_PTX_TOKEN_END || p->token.kind == TL_PTX_TOKEN_WRONG)
      return tl_ptx_fail(p, tl_ptx_here(p), "a section that does not end");
    tl_ptx_next(p);
  }
  return true;
}

// ---- functions

typedef TL_VEC(tl_ptx_symbol *) symbol_vec;

// "(.param .b32 a, .reg .b32 b)"
static bool parse_parameters(ptx_parser *p, tl_ptx_symbol ***out, uint32_t *out_len) {
  if (!tl_ptx_take_punct(p, '(')) return true;
  symbol_vec symbols = {0};
  bool ok = true;
  while (ok && !tl_ptx_take_punct(p, ')')) {
    bool is_param = take_dot(p, "param");
    ok = is_param || take_dot(p, "reg") || tl_ptx_fail(p, tl_ptx_here(p), ".param or .reg is expected here");
    tl_ptx_symbol *symbol = ok ? tl_ptx_parse_parameter(p, is_param ? TL_PTX_SPACE_PARAM : TL_PTX_SPACE_REG) : NULL;
    ok = symbol != NULL;
    if (ok) tl_vec_push(&symbols, symbol);
    if (ok && !tl_ptx_is_punct(p, ')')) ok = tl_ptx_expect(p, ',', "a list of parameters");
  }
  *out = (tl_ptx_symbol **)(void *)tl_vec_to_arena(&symbols, p->arena);
  *out_len = (uint32_t)symbols.len;
  tl_vec_fini(&symbols);
  return ok;
}

static bool parse_extent(ptx_parser *p, uint32_t extent[3]) {
  for (int i = 0; i < 3; i++) {
    uint64_t n = 1;
    if ((!i || tl_ptx_take_punct(p, ',')) && !tl_ptx_take_number(p, "a number", &n)) return false;
    if (n > INT32_MAX) return tl_ptx_fail(p, tl_ptx_here(p), "a number that is too large");
    extent[i] = (uint32_t)n;
  }
  return true;
}

// One of the directives between the parameters and the body; NULL text: none comes next.
static bool parse_limit(ptx_parser *p, tl_ptx_function *f) {
  tl_str word = p->token.text;
  uint32_t ignored[3], *single = NULL;
  uint32_t *extent = NULL;
  tl_loc loc = tl_ptx_here(p);
  tl_ptx_next(p);
  if (tl_str_is(word, "maxntid")) extent = f->maxntid;
  if (tl_str_is(word, "reqntid")) extent = f->reqntid;
  if (tl_str_is(word, "reqnctapercluster")) extent = f->cluster;
  if (tl_str_is(word, "minnctapersm")) single = &f->minnctapersm;
  if (tl_str_is(word, "maxnctapersm")) single = &f->maxnctapersm;
  if (tl_str_is(word, "maxnreg")) single = &f->maxnreg;
  if (tl_str_is(word, "maxclusterrank")) single = &f->maxclusterrank;
  if (extent) return parse_extent(p, extent);
  if (single) {
    if (!parse_extent(p, ignored)) return false;
    *single = ignored[0];
    return true;
  }
  if (tl_str_is(word, "noreturn")) return f->is_noreturn = true;
  if (tl_str_is(word, "explicitcluster")) return f->is_explicit_cluster = true;
  if (tl_str_is(word, "attribute")) return tl_ptx_parse_attribute(p);
  if (tl_str_is(word, "pragma")) {
    tl_ptx_next(p);
    return tl_ptx_expect(p, ';', "a pragma");
  }
  return tl_ptx_fail(p, loc, "'.%.*s' is not known before the body of a function", TL_STR_ARG(word));
}

static bool parse_head(ptx_parser *p, tl_ptx_function *f) {
  if (take_dot(p, "attribute") && !tl_ptx_parse_attribute(p)) return false;
  if (!f->is_entry && !parse_parameters(p, &f->returns, &f->num_returns)) return false;
  f->name = p->token.text;
  f->loc = tl_ptx_here(p);
  if (p->token.kind != TL_PTX_TOKEN_WORD) return tl_ptx_fail(p, f->loc, "a function has a name");
  tl_ptx_next(p);
  if (!parse_parameters(p, &f->params, &f->num_params)) return false;
  while (p->token.kind == TL_PTX_TOKEN_DOT)
    if (!parse_limit(p, f)) return false;
  return true;
}

static bool parse_function(ptx_parser *p, bool is_entry, tl_str linkage) {
  tl_ptx_function *f = TL_NEW(p->arena, tl_ptx_function);
  f->is_entry = is_entry;
  f->is_extern = tl_str_is(linkage, "extern");
  f->linkage = linkage;
  tl_vec_clear(&p->registers);
  tl_ptx_open_scope(p);  // of the parameters
  bool ok = parse_head(p, f);
  if (ok && !tl_ptx_take_punct(p, ';')) ok = tl_ptx_expect(p, '{', "a function") && tl_ptx_parse_body(p, f);
  if (!ok) return false;
  tl_ptx_close_scope(p);
  f->registers = (const tl_ptx_symbol **)(void *)tl_vec_to_arena(&p->registers, p->arena);
  f->num_registers = (uint32_t)p->registers.len;
  for (size_t i = 0; i < p->functions.len; i++)
    if (f->has_body && p->functions.items[i]->has_body && tl_str_equal(p->functions.items[i]->name, f->name))
      return tl_ptx_fail(p, f->loc, "'%.*s' is defined twice", TL_STR_ARG(f->name));
  tl_vec_push(&p->functions, f);
  return true;
}

// ---- the whole

static bool parse_item(ptx_parser *p) {
  if (p->token.kind != TL_PTX_TOKEN_DOT) return tl_ptx_fail(p, tl_ptx_here(p), "a directive is expected here");
  tl_str linkage = TL_STR("");
  tl_loc loc = tl_ptx_here(p);
  tl_str word = p->token.text;
  tl_ptx_next(p);
  if (tl_str_is(word, "version")) return parse_version(p);
  if (tl_str_is(word, "target")) return parse_target(p);
  if (tl_str_is(word, "address_size")) return parse_address_size(p);
  if (tl_str_is(word, "file")) return parse_file(p);
  if (tl_str_is(word, "section")) return parse_section(p);
  if (tl_str_is(word, "extern") || tl_str_is(word, "visible") || tl_str_is(word, "weak") || tl_str_is(word, "common")) {
    linkage = word;
    loc = tl_ptx_here(p);
    if (p->token.kind != TL_PTX_TOKEN_DOT) return tl_ptx_fail(p, loc, "a declaration is expected here");
    word = p->token.text;
    tl_ptx_next(p);
  }
  if (!p->module->version || !p->module->target.len)
    return tl_ptx_fail(p, loc, "a module begins with .version and .target");
  if (tl_str_is(word, "entry") || tl_str_is(word, "func")) return parse_function(p, word.data[0] == 'e', linkage);
  tl_ptx_space space = tl_ptx_space_of(word);
  if (space >= TL_PTX_SPACE_SHARED) return tl_ptx_parse_variables(p, space, linkage, false);
  return tl_ptx_fail(p, loc, "'.%.*s' is not known in a module", TL_STR_ARG(word));
}

// Functions that initialisers name may stand behind them.
static bool resolve_initialisers(ptx_parser *p) {
  for (uint32_t i = 0; i < p->module->num_variables; i++) {
    const tl_ptx_symbol *symbol = p->module->variables[i];
    for (uint32_t k = 0; k < symbol->num_values; k++) {
      tl_str name = symbol->values[k].function;
      if (name.len && !tl_ptx_function_address(p->module, name))
        return tl_ptx_fail(p, symbol->loc, "an initialiser names a variable or a function of the module: not '%.*s'",
                           TL_STR_ARG(name));
    }
  }
  return true;
}

static void finish(ptx_parser *p) {
  tl_ptx_module *m = p->module;
  m->variables = (tl_ptx_symbol **)(void *)tl_vec_to_arena(&p->variables, p->arena);
  m->num_variables = (uint32_t)p->variables.len;
  m->functions = (tl_ptx_function **)(void *)tl_vec_to_arena(&p->functions, p->arena);
  m->num_functions = (uint32_t)p->functions.len;
  m->files = (tl_ptx_file *)(void *)tl_vec_to_arena(&p->files, p->arena);
  m->num_files = (uint32_t)p->files.len;
}

static void fini(ptx_parser *p) {
  tl_vec_fini(&p->names);
  tl_vec_fini(&p->parents);
  tl_vec_fini(&p->labels);
  tl_vec_fini(&p->statement_scopes);
  tl_vec_fini(&p->statements);
  tl_vec_fini(&p->registers);
  tl_vec_fini(&p->variables);
  tl_vec_fini(&p->functions);
  tl_vec_fini(&p->files);
}

tl_ptx_module *tl_ptx_parse(const tl_sources *sources, uint32_t source, tl_diags *diags) {
  tl_ptx_module *module = tl_xcalloc(1, sizeof *module);
  tl_arena_init(&module->arena);
  ptx_parser *p = tl_xcalloc(1, sizeof *p);
  p->module = module;
  p->arena = &module->arena;
  p->source = source;
  p->diags = diags;
  tl_ptx_lexer_init(&p->lexer, tl_sources_get(sources, source)->text);
  tl_ptx_next(p);
  bool ok = !p->failed;
  while (ok && p->token.kind != TL_PTX_TOKEN_END) ok = parse_item(p) && !p->failed;
  if (ok && (!module->version || !module->target.len))
    ok = tl_ptx_fail(p, tl_ptx_here(p), "a module begins with .version and .target");
  finish(p);
  ok = ok && resolve_initialisers(p);
  fini(p);
  free(p);
  if (ok) return module;
  tl_ptx_destroy(module);
  return NULL;
}

void tl_ptx_destroy(tl_ptx_module *module) {
  if (!module) return;
  tl_arena_fini(&module->arena);
  free(module);
}

tl_ptx_function *tl_ptx_find_function(const tl_ptx_module *module, tl_str name) {
  tl_ptx_function *found = NULL;
  for (uint32_t i = 0; i < module->num_functions; i++)
    if (tl_str_equal(module->functions[i]->name, name) && (!found || module->functions[i]->has_body))
      found = module->functions[i];
  return found;
}

uint64_t tl_ptx_function_address(const tl_ptx_module *module, tl_str name) {
  enum { STEP = 16 };  // as instructions are aligned
  for (uint32_t i = 0; i < module->num_functions; i++)
    if (tl_str_equal(module->functions[i]->name, name)) return STEP * ((uint64_t)i + 1);
  return 0;
}

bool tl_ptx_has(const tl_ptx_statement *statement, const char *word) {
  for (uint32_t i = 1; i < statement->num_words; i++)
    if (tl_str_is(statement->words[i], word)) return true;
  return false;
}
