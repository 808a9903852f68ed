// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/device/require.h"

#include <string.h>

#include "passes/analysis/memory_access.h"
#include "passes/layout/select_copies.h"

// ---- what is required

typedef struct requirement_text {
  const char *name, *missing;
  int feature;  // without which no statement has it
  const char *lacking;
} requirement_text;

static const requirement_text texts[] = {
    {"tma", "this copy does not go by TMA", TL_FEATURE_TMA, "TMA; sm_90 is the first target that has it"},
    {"wgmma", "this gemm does not run on wgmma", TL_FEATURE_WGMMA, "wgmma; sm_90a is the first target that has it"},
    {"roles", "the warps that compute bring the tiles of this loop", TL_FEATURE_TMA,
     "TMA; sm_90 is the first target that has it"},
    {"overlap", "this gemm is waited for where it stands", TL_FEATURE_WGMMA,
     "wgmma; sm_90a is the first target that has it"},
    {"no-spill", "registers are spilled", 0, NULL},
    {"vector", "this access of a parallel moves fewer than 8 bytes at a time", 0, NULL},
    {"no-bank-conflict", "this access of a parallel has bank conflicts", 0, NULL},
};

enum { NUM_TEXTS = sizeof texts / sizeof *texts };

const char *tl_requirement_name(int index) {
  return index < NUM_TEXTS ? texts[index].name : NULL;
}

bool tl_requirements_parse(tl_str list, unsigned *set, tl_str *out_unknown) {
  for (size_t at = 0; at <= list.len;) {
    size_t end = at;
    while (end < list.len && list.data[end] != ',') end++;
    tl_str word = {list.data + at, end - at};
    int index = 0;
    while (index < NUM_TEXTS && !tl_str_is(word, texts[index].name)) index++;
    *out_unknown = word;
    if (index == NUM_TEXTS) return false;
    *set |= 1U << index;
    at = end + 1;
  }
  return true;
}

static const requirement_text *text_of(tl_requirement kind) {
  int index = 0;
  while (1 << index != (int)kind) index++;
  return &texts[index];
}

// ---- the statements

typedef struct collector {
  unsigned required;
  tl_requirements *out;
} collector;

static bool is_load(const tl_op *op) {
  return op->code == TL_OP_COPY && tl_buffer_is_global(tl_op_arg(op, TL_GROUP_COPY_src)) &&
         tl_buffer_is_shared(tl_op_arg(op, TL_GROUP_COPY_dst));
}

static const tl_op *pipelined_around(const tl_op *op) {
  const tl_op *loop = tl_op_enclosing(op, TL_OP_FOR);
  while (loop && !tl_op_has(loop, TL_ATTR_PIPELINED)) loop = tl_op_enclosing(loop, TL_OP_FOR);
  return loop;
}

static bool same_place(tl_loc a, tl_loc b) {
  return a.source == b.source && a.offset == b.offset;
}

static void add(collector *self, tl_requirement kind, tl_loc loc, tl_loc loop) {
  if (!(self->required & kind)) return;
  for (size_t i = 0; i < self->out->statements.len; i++) {
    const tl_required_statement *known = &self->out->statements.items[i];
    if (known->kind == kind && same_place(known->loc, loc)) return;
  }
  tl_vec_push(&self->out->statements, ((tl_required_statement){kind, loc, loop}));
}

// A load or store of a parallel's elements.
static bool is_element(const tl_op *op) {
  return (op->code == TL_OP_LOAD || op->code == TL_OP_STORE) && tl_op_enclosing(op, TL_OP_PARALLEL);
}

static void look_at_statement(tl_op *op, void *user) {
  const tl_op *loop = pipelined_around(op);
  if (is_element(op)) {
    if (tl_buffer_is_global(tl_element_buffer(op))) add(user, TL_REQUIRE_VECTOR, op->loc, (tl_loc){0});
    if (tl_buffer_is_shared(tl_element_buffer(op))) add(user, TL_REQUIRE_NO_BANK_CONFLICT, op->loc, (tl_loc){0});
  } else if (op->code == TL_OP_GEMM) {
    add(user, TL_REQUIRE_WGMMA, op->loc, loop ? loop->loc : (tl_loc){0});
    if (loop) add(user, TL_REQUIRE_OVERLAP, op->loc, loop->loc);
  } else if (loop && is_load(op)) {
    add(user, TL_REQUIRE_TMA, op->loc, loop->loc);
    add(user, TL_REQUIRE_ROLES, op->loc, loop->loc);
  }
}

void tl_requirements_collect(tl_module *module, unsigned required, tl_requirements *out) {
  *out = (tl_requirements){0};
  tl_walk_module(module, look_at_statement, &(collector){required, out});
}

// ---- what became of them

typedef struct outcome {
  const tl_required_statement *statement;
  bool has, lacks;
} outcome;

static bool is_in_role_of_copies(const tl_op *op) {
  const tl_op *role = tl_op_enclosing(op, TL_OP_ROLE);
  return role && strcmp(tl_op_str(role, TL_ATTR_NAME), "load") == 0;
}

static bool is_vector(const tl_op *op) {
  enum { LEAST_BITS = 64 };
  int64_t bits = tl_op_int(op, TL_ATTR_VEC, 1) * tl_dtype_bits(tl_element_buffer(op)->type->dtype);
  const tl_op *parallel = tl_op_enclosing(op, TL_OP_PARALLEL);
  return bits >= LEAST_BITS || tl_element_is_uniform(op, parallel) ||
         tl_interleaved_elements(op, parallel) * tl_dtype_bits(tl_element_buffer(op)->type->dtype) >= LEAST_BITS;
}

static bool has_it(const tl_op *op, tl_requirement kind) {
  const tl_instruction *inst = tl_op_instruction(op);
  switch (kind) {
    case TL_REQUIRE_TMA:
      return op->code == TL_OP_COPY && tl_op_int(op, TL_ATTR_VIA, TL_VIA_AUTO) == TL_VIA_TMA;
    case TL_REQUIRE_ROLES:
      return is_in_role_of_copies(op);
    case TL_REQUIRE_WGMMA:
      return inst && inst->family == TL_FAMILY_WGMMA;
    case TL_REQUIRE_OVERLAP:
      return tl_op_has(op, TL_ATTR_ASYNC);
    case TL_REQUIRE_VECTOR:
      return is_vector(op);
    case TL_REQUIRE_NO_BANK_CONFLICT:
      return tl_bank_conflicts(op, tl_op_enclosing(op, TL_OP_PARALLEL)) <= 1;
    case TL_REQUIRE_NO_SPILL:
      break;
  }
  return true;
}

static bool of_elements(tl_requirement kind) {
  return kind == TL_REQUIRE_VECTOR || kind == TL_REQUIRE_NO_BANK_CONFLICT;
}

// What a statement became: a copy may have become one into registers, too.
static void look_at_result(tl_op *op, void *user) {
  outcome *self = user;
  if (!same_place(op->loc, self->statement->loc)) return;
  bool is_gemm = self->statement->kind == TL_REQUIRE_WGMMA || self->statement->kind == TL_REQUIRE_OVERLAP;
  if (of_elements(self->statement->kind)) {
    if (is_element(op)) *(has_it(op, self->statement->kind) ? &self->has : &self->lacks) = true;
    return;
  }
  bool reads_tensor =
      is_load(op) || (op->code == TL_OP_TILE_LOAD && tl_buffer_is_global(tl_op_arg(op, TL_GROUP_TILE_LOAD_src)));
  if (is_gemm ? op->code != TL_OP_GEMM : !reads_tensor) return;
  *(has_it(op, self->statement->kind) ? &self->has : &self->lacks) = true;
}

static void add_remarks(const tl_required_statement *statement, tl_diags *diags, tl_diag *diag) {
  for (size_t i = 0; i < diags->list.len; i++) {
    const tl_diag *remark = diags->list.items[i];
    bool is_loop = statement->kind == TL_REQUIRE_ROLES;
    bool of_kernel = is_loop && remark->code == TL_DIAG_REMARK_ROLES;
    bool here = same_place(remark->loc, statement->loc) || (is_loop && same_place(remark->loc, statement->loop));
    if (remark->severity != TL_SEVERITY_REMARK || remark->code == TL_DIAG_SHARED_PLAN || !(of_kernel || here)) continue;
    tl_diag_add_note(diags, diag, remark->loc, "%s", remark->text);
  }
}

void tl_requirements_report(const tl_requirements *requirements, tl_module *module, const tl_target *target,
                            tl_diags *diags) {
  for (size_t i = 0; i < requirements->statements.len; i++) {
    const tl_required_statement *statement = &requirements->statements.items[i];
    const requirement_text *text = text_of(statement->kind);
    outcome result = {.statement = statement};
    tl_walk_module(module, look_at_result, &result);
    // Of accesses with a path for full tiles that one counts.
    if (!result.lacks || (statement->kind == TL_REQUIRE_VECTOR && result.has)) continue;
    tl_loc at = statement->kind == TL_REQUIRE_ROLES ? statement->loop : statement->loc;
    tl_diag *diag = tl_diag_report(diags, TL_DIAG_REQUIRED, at, "%s, as --require=%s asks", text->missing, text->name);
    if (text->feature && !(target->features & (unsigned)text->feature))
      tl_diag_add_hint(diags, diag, "%s has no %s", target->name, text->lacking);
    else if (diag->num_notes == 0)
      add_remarks(statement, diags, diag);
  }
}

void tl_requirements_fini(tl_requirements *requirements) {
  tl_vec_fini(&requirements->statements);
}
