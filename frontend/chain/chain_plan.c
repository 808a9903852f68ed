// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A chain with values for its params: its memory, and its steps one after the other. Chains that it runs are taken
// apart into their steps.
#include <string.h>

#include "frontend/chain/chain_internal.h"
#include "frontend/expr/expr_internal.h"
#include "frontend/sema/sema.h"

static const char *copied(tl_chain_planner *p, tl_str text) {
  return tl_arena_copy_bytes(p->arena, text.data, text.len);
}

// ---- names

typedef struct names {
  tl_chain_planner *planner;
  const tl_chain_scope *scope;
  tl_chain_symbols *symbols;
} names;

// One namespace, as in a kernel. False when the name was reported.
static bool validate_new(names *n, tl_str name, tl_loc loc) {
  const tl_kernel_spec *unit = n->scope->unit;
  tl_loc first = {0};
  bool found = false;
  for (uint32_t i = 0; !found && i < unit->num_params; i++) {
    found = tl_str_equal(unit->params[i].name, name);
    first = unit->params[i].loc;
  }
  for (uint32_t i = 0; !found && i < unit->num_lets; i++) {
    found = tl_str_equal(unit->lets[i].name, name);
    first = unit->lets[i].loc;
  }
  for (size_t i = 0; !found && i < n->symbols->len; i++) {
    found = tl_str_equal(n->symbols->items[i].name, name);
    first = n->symbols->items[i].loc;
  }
  if (!found) return true;
  tl_diag *diag =
      tl_diag_report(n->planner->diags, TL_DIAG_NAME_REDEFINED, loc, "`%.*s` is defined twice", TL_STR_ARG(name));
  tl_diag_add_note(n->planner->diags, diag, first, "first defined here");
  return false;
}

static bool define_buffer(names *n, const tl_buffer_decl *decl, const char *prefix) {
  enum { BUFFER_ALIGN = 256 };
  tl_chain_planner *p = n->planner;
  tl_chain_symbol symbol = {.name = decl->name, .loc = decl->loc, .is_written = true};
  symbol.memory = (uint32_t)p->memories.len;
  if (!validate_new(n, decl->name, decl->loc) ||
      !tl_chain_dense_type(p->arena, n->scope, decl->dtype, decl->dims, decl->num_dims, p->diags, &symbol.type))
    return false;
  symbol.type.align = BUFFER_ALIGN;
  const tl_mexpr *bytes = tl_chain_type_bytes(p->arena, &symbol.type);
  if (!bytes) {
    tl_diag_report(p->diags, TL_DIAG_NOT_AT_LAUNCH, decl->type_loc, "its size is too large an expression");
    return false;
  }
  const char *name = tl_arena_printf(p->arena, "%s%.*s", prefix, TL_STR_ARG(decl->name));
  tl_vec_push(
      &p->memories,
      (tl_chain_memory){
          .name = name, .loc = decl->loc, .is_buffer = true, .index = (uint32_t)p->buffers.len, .align = BUFFER_ALIGN});
  tl_vec_push(&p->buffers, (tl_manifest_buffer){name, bytes});
  tl_vec_push(n->symbols, symbol);
  return true;
}

static bool define_view(names *n, const tl_view *view) {
  tl_chain_planner *p = n->planner;
  const tl_chain_symbol *base = NULL;
  for (size_t i = 0; i < n->symbols->len; i++)
    if (tl_str_equal(n->symbols->items[i].name, view->base)) base = &n->symbols->items[i];
  if (!base || !base->type.is_tensor) {
    tl_diag_report(p->diags, TL_DIAG_NAME_UNKNOWN, view->base_loc,
                   "a view of a chain is of an argument or a buffer, `%.*s` is neither", TL_STR_ARG(view->base));
    return false;
  }
  tl_chain_symbol symbol = *base;
  symbol.name = view->name;
  symbol.loc = view->loc;
  if (!validate_new(n, view->name, view->loc) ||
      !tl_chain_dense_type(p->arena, n->scope, view->dtype, view->dims, view->num_dims, p->diags, &symbol.type))
    return false;
  symbol.type.align = base->type.align;
  const tl_mexpr *old_bytes = tl_chain_type_bytes(p->arena, &base->type);
  const tl_mexpr *new_bytes = tl_chain_type_bytes(p->arena, &symbol.type);
  for (int32_t i = base->type.rank; i-- > 1;) {
    int64_t dim, inner, outer;
    bool known = tl_mexpr_is_int(base->type.dims[i], &dim) && tl_mexpr_is_int(base->type.strides[i], &inner) &&
                 tl_mexpr_is_int(base->type.strides[i - 1], &outer);
    if (!known || outer == inner * dim) continue;
    tl_diag_report(p->diags, TL_DIAG_VIEW_BASE, view->base_loc, "`%.*s` is not dense and cannot be viewed",
                   TL_STR_ARG(view->base));
    return false;
  }
  if (old_bytes && new_bytes && tl_chain_differ(old_bytes, new_bytes)) {
    tl_diag *diag =
        tl_diag_report(p->diags, TL_DIAG_VIEW_SIZE, view->loc, "`%.*s` is %s, `%.*s` is %s: %s", TL_STR_ARG(view->base),
                       tl_chain_type_text(p->arena, &base->type), TL_STR_ARG(view->name),
                       tl_chain_type_text(p->arena, &symbol.type), "a view has as many bytes as its base");
    tl_diag_add_note(p->diags, diag, base->loc, "`%.*s` is declared here", TL_STR_ARG(view->base));
    return false;
  }
  tl_vec_push(n->symbols, symbol);
  return true;
}

// ---- the signature of the outermost chain

static void make_dynamics(tl_chain_planner *p, tl_chain_scope *scope, tl_manifest_kernel *signature) {
  scope->dynamics = TL_NEW_ARRAY(p->arena, const tl_mexpr *, scope->env.len + 1);
  for (uint32_t i = 0; i < scope->unit->num_params; i++) {
    const tl_param *param = &scope->unit->params[i];
    if (param->kind != TL_PARAM_DYNAMIC) continue;
    tl_manifest_param *out = &signature->params[signature->num_params++];
    *out = (tl_manifest_param){.kind = TL_MPARAM_DYNAMIC, .divisor = 1};
    out->dtype = param->is_wide ? TL_DTYPE_I64 : TL_DTYPE_I32;
    out->name = copied(p, param->name);
    tl_const divisor;
    if (param->divisor && tl_env_eval(&scope->env, param->divisor, p->diags, &divisor) && divisor.kind == TL_CONST_INT)
      out->divisor = divisor.i;
    tl_status_free(tl_mexpr_parse(p->arena, param->name, &scope->dynamics[i]));
  }
}

static bool define_argument(names *n, const tl_arg *arg, tl_manifest_kernel *signature) {
  tl_chain_planner *p = n->planner;
  uint32_t index = signature->num_params++;
  tl_manifest_param *param = &signature->params[index];
  *param = (tl_manifest_param){.kind = arg->is_tensor ? TL_MPARAM_TENSOR : TL_MPARAM_SCALAR, .divisor = 1};
  param->name = copied(p, arg->name);
  tl_chain_symbol symbol = {.name = arg->name, .loc = arg->loc, .is_written = arg->access != TL_ARG_IN};
  symbol.memory = (uint32_t)p->memories.len;
  symbol.scalar = (tl_manifest_given){.kind = TL_MGIVEN_SCALAR, .index = index};
  if (!validate_new(n, arg->name, arg->loc) || !tl_chain_arg_type(p->arena, n->scope, arg, p->diags, &symbol.type))
    return false;
  param->dtype = symbol.type.dtype;
  if (arg->is_tensor) {
    param->access = arg->access;
    param->rank = symbol.type.rank;
    param->dims = symbol.type.dims;
    param->strides = symbol.type.strides;
    param->align = symbol.type.align;
    tl_vec_push(&p->memories, (tl_chain_memory){.name = param->name,
                                                .loc = arg->loc,
                                                .index = index,
                                                .is_written = arg->access != TL_ARG_OUT,
                                                .align = symbol.type.align});
  }
  tl_vec_push(n->symbols, symbol);
  return true;
}

// Those of inner chains are the launcher's too.
static bool make_requires(tl_chain_planner *p, const tl_chain_scope *scope) {
  const tl_kernel_spec *unit = scope->unit;
  bool ok = true;
  for (uint32_t i = 0; i < unit->num_requires; i++) {
    const tl_expr *condition = unit->requires_[i];
    const tl_mexpr *value = tl_chain_int(p->arena, scope, condition, p->diags);
    int64_t constant = 1;
    ok = ok && value;
    if (!value || (tl_mexpr_is_int(value, &constant) && constant)) continue;
    tl_strbuf text = {0};
    tl_expr_print(condition, &text);
    if (!constant) {
      tl_diag_report(p->diags, TL_DIAG_REQUIREMENT, condition->loc, "the requirement `%s` is violated",
                     tl_strbuf_c(&text));
      ok = false;
    } else {
      tl_vec_push(&p->requirements, (tl_manifest_require){value, copied(p, tl_strbuf_view(&text))});
    }
    tl_strbuf_fini(&text);
  }
  return ok;
}

// ---- kernels

// Kernel and params as text: equal for steps that can share a compiled kernel.
static const char *instance_key(tl_chain_planner *p, const tl_chain_call *call) {
  tl_strbuf text = {0};
  tl_strbuf_append(&text, call->step->kernel->name);
  for (uint32_t i = 0; i < call->kernel->num_params; i++) {
    const tl_param *param = &call->kernel->params[i];
    tl_const divisor = tl_const_int(1);
    tl_strbuf_appendf(&text, " %.*s=", TL_STR_ARG(param->name));
    tl_const_print(&call->scope.env.entries[i].value, &text);
    if (param->kind != TL_PARAM_DYNAMIC) continue;
    if (param->divisor) (void)tl_env_eval(&call->scope.env, param->divisor, p->diags, &divisor);
    tl_strbuf_appendf(&text, "(%lld)%s", (long long)divisor.i, param->is_wide ? "w" : "");
  }
  tl_strbuf_appendf(&text, " threads=%lld fast_math=%d persistent=%d %d", (long long)call->scope.env.threads,
                    call->scope.env.fast_math, (int)call->scope.env.persistent, call->scope.env.takes_tiles);
  const char *key = tl_arena_copy_bytes(p->arena, text.data, text.len);
  tl_strbuf_fini(&text);
  return key;
}

static bool is_entry(const tl_chain_planner *p, tl_str name) {
  for (size_t i = 0; i < p->instances.len; i++)
    if (tl_str_equal(p->instances.items[i].kernel->name, name)) return true;
  return false;
}

// The kernel's own name where it is free; another kernel of the chain may be called `matmul_2` too.
static tl_str entry_name(tl_chain_planner *p, const tl_kernel_spec *kernel) {
  tl_str name = kernel->name;
  for (int number = 2; is_entry(p, name); number++)
    name = tl_str_from(tl_arena_printf(p->arena, "%.*s_%d", TL_STR_ARG(kernel->name), number));
  return name;
}

static uint32_t find_instance(tl_chain_planner *p, const tl_chain_call *call) {
  const char *key = instance_key(p, call);
  for (size_t i = 0; i < p->instance_keys.len; i++)
    if (strcmp(p->instance_keys.items[i], key) == 0) return (uint32_t)i;
  call->kernel->name = entry_name(p, call->step->kernel);
  tl_vec_push(&p->instances, (tl_chain_instance){call->kernel, call->bindings});
  tl_vec_push(&p->instance_keys, key);
  return (uint32_t)p->instances.len - 1;
}

static void mark_written(tl_chain_planner *p, const tl_chain_call *call) {
  for (uint32_t i = 0; i < call->kernel->num_args; i++) {
    const tl_chain_passed *passed = &call->passed[i];
    if (passed->symbol && passed->arg->access != TL_ARG_IN) p->memories.items[passed->symbol->memory].is_written = true;
  }
}

static void add_step(tl_chain_planner *p, const tl_chain_call *call) {
  const tl_kernel_spec *kernel = call->kernel;
  tl_manifest_step step = {.kernel = find_instance(p, call)};
  step.given = TL_NEW_ARRAY(p->arena, tl_manifest_given, kernel->num_args + kernel->num_params + 1);
  for (uint32_t i = 0; i < kernel->num_args; i++) step.given[step.num_given++] = call->passed[i].given;
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    if (kernel->params[i].kind != TL_PARAM_DYNAMIC) continue;
    step.given[step.num_given++] = (tl_manifest_given){
        .kind = TL_MGIVEN_INT, .name = copied(p, kernel->params[i].name), .value = call->scope.dynamics[i]};
  }
  tl_vec_push(&p->steps, step);
  mark_written(p, call);
}

// ---- steps

static bool plan_steps(tl_chain_planner *p, const tl_chain_scope *scope, tl_chain_symbols *symbols, const char *prefix);

// The arguments of a chain that is run by another are what it was passed, under their names there.
static bool plan_inner(tl_chain_planner *p, const tl_chain_call *call, const char *prefix) {
  tl_chain_symbols symbols = {0};
  names n = {p, &call->scope, &symbols};
  bool ok = make_requires(p, &call->scope);
  for (uint32_t i = 0; i < call->kernel->num_args; i++) {
    const tl_chain_passed *passed = &call->passed[i];
    tl_chain_symbol symbol = {.name = passed->arg->name,
                              .loc = passed->arg->loc,
                              .is_written = passed->arg->access != TL_ARG_IN,
                              .type = passed->symbol ? passed->symbol->type : passed->type,
                              .memory = passed->symbol ? passed->symbol->memory : 0,
                              .scalar = passed->given};
    ok = validate_new(&n, symbol.name, symbol.loc) && ok;
    tl_vec_push(&symbols, symbol);
  }
  ok = ok && plan_steps(p, &call->scope, &symbols, prefix);
  tl_vec_fini(&symbols);
  return ok;
}

// What a step with errors may have been meant to write counts as written, so that later steps say nothing of it.
static void assume_written(tl_chain_planner *p, const tl_chain_frame *frame, const tl_expr *expr) {
  for (uint32_t i = 0; i < expr->num_operands; i++) assume_written(p, frame, expr->operands[i]);
  for (uint32_t i = 0; i < expr->num_keywords; i++) assume_written(p, frame, expr->keywords[i].value);
  for (size_t i = 0; expr->kind == TL_EXPR_NAME && i < frame->symbols->len; i++) {
    const tl_chain_symbol *symbol = &frame->symbols->items[i];
    if (symbol->type.is_tensor && tl_str_equal(symbol->name, expr->text))
      p->memories.items[symbol->memory].is_written = true;
  }
}

static bool plan_step(tl_chain_planner *p, const tl_chain_frame *frame, const tl_step *step, const char *prefix) {
  tl_chain_call call;
  if (!step->kernel || !tl_chain_call_make(p, frame, step, &call)) {
    assume_written(p, frame, step->call);
    return false;
  }
  if (!step->kernel->chain) {
    add_step(p, &call);
    return true;
  }
  // Buffers of a chain that runs twice are two.
  prefix = tl_arena_printf(p->arena, "%s%.*s%zu.", prefix, TL_STR_ARG(step->kernel->name), p->steps.len + 1);
  bool ok = plan_inner(p, &call, prefix);
  mark_written(p, &call);
  return ok;
}

static bool plan_steps(tl_chain_planner *p, const tl_chain_scope *scope, tl_chain_symbols *symbols,
                       const char *prefix) {
  const tl_chain_spec *chain = scope->unit->chain;
  names n = {p, scope, symbols};
  uint32_t first = (uint32_t)p->memories.len;
  bool ok = true;
  for (uint32_t i = 0; i < chain->num_buffers; i++) ok = define_buffer(&n, &chain->buffers[i], prefix) && ok;
  for (uint32_t i = 0; i < chain->num_views; i++) ok = define_view(&n, &chain->views[i]) && ok;
  uint32_t last = (uint32_t)p->memories.len;
  if (!ok) return false;
  const tl_chain_frame frame = {scope, symbols};
  for (uint32_t i = 0; i < chain->num_steps; i++) ok = plan_step(p, &frame, &chain->steps[i], prefix) && ok;
  for (uint32_t i = first; ok && i < last; i++) {
    const tl_chain_memory *memory = &p->memories.items[i];
    if (!memory->is_read)
      tl_diag_report(p->diags, TL_DIAG_CHAIN_UNUSED, memory->loc, "no step reads the buffer `%s`", memory->name);
  }
  return ok;
}

static bool plan_chain(tl_chain_planner *p, tl_bindings bindings, tl_manifest_kernel *signature) {
  const tl_kernel_spec *unit = p->unit;
  tl_chain_scope scope = {.unit = unit};
  tl_chain_symbols symbols = {0};
  if (!tl_env_create(p->arena, unit, bindings, false, p->diags, &scope.env)) return false;
  signature->name = copied(p, unit->name);
  signature->doc = copied(p, unit->doc);
  signature->params = TL_NEW_ARRAY(p->arena, tl_manifest_param, unit->num_args + unit->num_params + 1);
  for (int i = 0; i < 3; i++) signature->grid[i] = tl_mexpr_int(p->arena, 1);
  // Arguments come first, dynamic names behind them; the shapes need the names.
  tl_manifest_kernel dynamics = {.params = TL_NEW_ARRAY(p->arena, tl_manifest_param, unit->num_params + 1)};
  make_dynamics(p, &scope, &dynamics);
  names n = {p, &scope, &symbols};
  bool ok = true;
  for (uint32_t i = 0; i < unit->num_args; i++) ok = define_argument(&n, &unit->args[i], signature) && ok;
  for (uint32_t i = 0; i < dynamics.num_params; i++) signature->params[signature->num_params++] = dynamics.params[i];
  ok = make_requires(p, &scope) && ok;
  uint32_t num_arguments = (uint32_t)p->memories.len;
  ok = ok && plan_steps(p, &scope, &symbols, "");
  for (uint32_t i = 0; ok && i < num_arguments; i++) {
    const tl_chain_memory *memory = &p->memories.items[i];
    if (!memory->is_written)
      tl_diag_report(p->diags, TL_DIAG_OUT_NEVER_WRITTEN, memory->loc, "no step writes the `out` tensor `%s`",
                     memory->name);
  }
  if (ok) tl_sema_warn_unused(p->arena, unit, p->diags);
  tl_vec_fini(&symbols);
  return ok;
}

bool tl_chain_plan_create(tl_arena *arena, const tl_kernel_spec *unit, tl_bindings bindings, tl_diags *diags,
                          tl_chain_plan *out) {
  *out = (tl_chain_plan){0};
  tl_chain_planner p = {.arena = arena, .diags = diags, .unit = unit};
  size_t errors_before = diags->num_errors;
  bool ok = plan_chain(&p, bindings, &out->chain.signature) && diags->num_errors == errors_before;
  out->instances = tl_expr_copy_items(arena, p.instances.items, p.instances.len, sizeof *p.instances.items);
  out->num_instances = (uint32_t)p.instances.len;
  out->chain.signature.requires_ =
      tl_expr_copy_items(arena, p.requirements.items, p.requirements.len, sizeof *p.requirements.items);
  out->chain.signature.num_requires = (uint32_t)p.requirements.len;
  out->chain.buffers = tl_expr_copy_items(arena, p.buffers.items, p.buffers.len, sizeof *p.buffers.items);
  out->chain.num_buffers = (uint32_t)p.buffers.len;
  out->chain.steps = tl_expr_copy_items(arena, p.steps.items, p.steps.len, sizeof *p.steps.items);
  out->chain.num_steps = (uint32_t)p.steps.len;
  tl_vec_fini(&p.memories);
  tl_vec_fini(&p.requirements);
  tl_vec_fini(&p.buffers);
  tl_vec_fini(&p.steps);
  tl_vec_fini(&p.instances);
  tl_vec_fini(&p.instance_keys);
  return ok;
}
