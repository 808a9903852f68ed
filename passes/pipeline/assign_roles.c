// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// assign-roles: warps of their own for what TMA brings.
//
//   %r = ring {signal = barriers, specialize = on}      %r = ring {signal = barriers}
//   for … {                                             roles {
//     %a = ring_acquire %r                                role {name = "math"} {
//     copy … -> ring_tile(%a, %A_s)                         for … { %w = ring_wait %r; gemm …; ring_release %w }
//     ring_commit %r                                  ⇒     copy %acc -> %C
//     %w = ring_wait %r                                   }
//     gemm …                                              role {name = "load"} {
//     ring_release %w                                       for … { %a = ring_acquire %r; copy …; ring_commit %r }
//   }                                                     }
//   copy %acc -> %C                                     }
//
// The load role is a slice of the kernel (assign_roles_slice.c); what computes keeps everything else. A ring whose
// fills cannot be cut out stays with what computes: its elected thread starts the copies, as without roles.
//
// Needs rings (pipeline) and the loop over tiles (loop-tiles); what comes behind knows roles.
#include "passes/pipeline/assign_roles.h"

#include "passes/analysis/memory_access.h"
#include "passes/schedule/choose_schedule.h"
#include "passes/tile/loop_rewrite.h"

enum { WARP_THREADS = 32, WARPGROUP_THREADS = 128, MAX_THREADS = 1024, REGISTER_UNIT = 8, MAX_REGISTERS = 240 };

typedef struct role_assignment {
  tl_pass_context *context;
  tl_module *module;
  tl_op *kernel;
  tl_role_slice slice;
  TL_VEC(tl_value *) rings;  // that the load role fills
} role_assignment;

// Of a ring of mbarriers: whether roles are asked for, left open or refused.
static int64_t wish_of(const tl_op *ring) {
  bool by_engine = ring->code == TL_OP_RING && tl_op_int(ring, TL_ATTR_SIGNAL, TL_SIGNAL_GROUPS) == TL_SIGNAL_BARRIERS;
  return by_engine ? tl_op_int(ring, TL_ATTR_SPECIALIZE, TL_SWITCH_AUTO) : TL_SWITCH_OFF;
}

// ---- the fills of a ring

typedef struct ring_fills {
  const tl_value *ring;
  tl_op_list statements;  // acquires, copies and commits
} ring_fills;

static bool is_acquired_tile(const tl_value *buffer, const tl_value *ring) {
  if (!buffer->def || buffer->def->code != TL_OP_RING_TILE) return false;
  const tl_op *from = tl_op_arg(buffer->def, TL_GROUP_RING_TILE_slot)->def;
  return from->code == TL_OP_RING_ACQUIRE && tl_op_operand(from, 0) == ring;
}

static void find_fills(tl_op *op, void *user) {
  ring_fills *fills = user;
  bool is_end = op->code == TL_OP_RING_ACQUIRE || op->code == TL_OP_RING_COMMIT;
  bool is_fill = is_end && tl_op_operand(op, 0) == fills->ring;
  if (op->code == TL_OP_COPY) is_fill = is_acquired_tile(tl_op_arg(op, TL_GROUP_COPY_dst), fills->ring);
  if (is_fill) tl_vec_push(&fills->statements, op);
}

static const char *copy_obstacle(const role_assignment *self, const tl_op *op) {
  if (op->code != TL_OP_COPY) return NULL;
  const tl_op *root = tl_buffer_root(tl_op_arg(op, TL_GROUP_COPY_src));
  if (!root || tl_effects_write(self->kernel, tl_op_result(root, 0))) return "the kernel writes its source";
  return NULL;
}

static void find_wait(tl_op *op, void *user) {
  bool *found = user;
  *found |= op->code == TL_OP_WAIT_UNTIL;
}

// Adds the fills of a ring to the load role's slice, or says why they stay.
static void add_ring(role_assignment *self, tl_op *ring, const char *obstacle) {
  ring_fills fills = {.ring = tl_op_result(ring, 0)};
  tl_walk(self->kernel, find_fills, &fills);
  size_t ops = self->slice.ops.len, values = self->slice.values.len;
  tl_loc at = ring->loc;
  for (size_t i = 0; i < fills.statements.len && !obstacle; i++) {
    tl_op *op = fills.statements.items[i];
    at = op->loc;
    obstacle = copy_obstacle(self, op);
    if (!obstacle) obstacle = tl_role_slice_add(&self->slice, op);
  }
  if (obstacle) {
    self->slice.ops.len = ops;
    self->slice.values.len = values;
    tl_diag_report(self->context->diags, TL_DIAG_REMARK_ROLES, at, "the warps that compute bring '%s' themselves: %s",
                   tl_op_str(ring, TL_ATTR_NAME), obstacle);
  } else if (fills.statements.len > 0) {
    tl_vec_push(&self->rings, tl_op_result(ring, 0));
  }
  tl_vec_fini(&fills.statements);
}

// ---- warps and registers

// Registers of a thread that loads and of one that computes; 0: as the kernel begins. All that the block has is shared
// out, with nothing left over where that is possible.
typedef struct role_plan {
  int64_t load_warps, load_registers, math_registers;
} role_plan;

static role_plan plan_roles(const role_assignment *self) {
  int64_t math = tl_op_threads(self->kernel), blocks = tl_op_int(self->kernel, TL_ATTR_MIN_BLOCKS, 1);
  int64_t all = math + WARPGROUP_THREADS;
  role_plan plan = {.load_warps = 1};
  // setmaxnreg comes with wgmma (PTX ISA: sm_90a).
  const tl_target *target = self->context->target;
  if (!target || !(target->features & TL_FEATURE_WGMMA)) return plan;
  if (math % WARPGROUP_THREADS != 0 || math < 2 * WARPGROUP_THREADS || all > MAX_THREADS || blocks > 1) return plan;
  int64_t begin = 65536 / all / REGISTER_UNIT * REGISTER_UNIT, pool = begin * all, least = pool;
  for (int64_t load = 40; load >= 24; load -= REGISTER_UNIT) {
    int64_t each = (pool - load * WARPGROUP_THREADS) / math / REGISTER_UNIT * REGISTER_UNIT;
    if (each > MAX_REGISTERS) each = MAX_REGISTERS;
    int64_t left = pool - load * WARPGROUP_THREADS - each * math;
    if (left >= least || each <= begin) continue;
    least = left;
    plan = (role_plan){WARPGROUP_THREADS / WARP_THREADS, load, each};
  }
  return plan;
}

int64_t tl_roles_math_registers(tl_pass_context *context, tl_op *kernel) {
  return plan_roles(&(role_assignment){.context = context, .module = context->module, .kernel = kernel}).math_registers;
}

static tl_op *add_role(role_assignment *self, tl_op *roles, const char *name, int64_t first, int64_t warps,
                       int64_t registers) {
  tl_builder builder;
  tl_builder_at_end(&builder, self->module, roles->regions[0]);
  builder.loc = self->kernel->loc;
  tl_op *role = tl_build(&builder, TL_OP_ROLE, NULL, NULL, 0);
  tl_op_set_str(self->module, role, TL_ATTR_NAME, tl_str_from(name));
  tl_op_set_int(self->module, role, TL_ATTR_FIRST_WARP, first);
  tl_op_set_int(self->module, role, TL_ATTR_NUM_WARPS, warps);
  if (registers) tl_op_set_int(self->module, role, TL_ATTR_REGISTERS, registers);
  return role;
}

// ---- cutting

static bool is_loaded(const role_assignment *self, const tl_value *ring) {
  for (size_t i = 0; i < self->rings.len; i++)
    if (self->rings.items[i] == ring) return true;
  return false;
}

static bool is_empty(const tl_block *block) {
  return block->first == NULL || (block->first->code == TL_OP_YIELD && block->first->num_operands == 0);
}

// Takes the fills out of what computes; ifs that held nothing else go with them.
static void erase_fills(const role_assignment *self, tl_block *block, tl_opcode code) {
  for (tl_op *op = block->last, *prev; op; op = prev) {
    prev = op->prev;
    for (uint32_t r = 0; r < op->num_regions; r++) erase_fills(self, op->regions[r], code);
    bool is_end = op->code == TL_OP_RING_ACQUIRE || op->code == TL_OP_RING_COMMIT;
    bool is_fill = is_end && is_loaded(self, tl_op_operand(op, 0));
    for (size_t i = 0; i < self->rings.len && op->code == TL_OP_COPY; i++)
      is_fill |= is_acquired_tile(tl_op_arg(op, TL_GROUP_COPY_dst), self->rings.items[i]);
    if (op->code == TL_OP_RING_TILE) is_fill |= op->results[0].uses == NULL;
    if (is_fill && op->code == code) tl_op_erase(op);
  }
}

static void erase_empty_ifs(tl_block *block) {
  for (tl_op *op = block->first, *next; op; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->num_regions; r++) erase_empty_ifs(op->regions[r]);
    bool empty = op->code == TL_OP_IF && op->num_results == 0;
    for (uint32_t r = 0; r < op->num_regions; r++) empty &= is_empty(op->regions[r]);
    if (empty) tl_op_erase(op);
  }
}

// Whether an op of the kernel's body stays in front of the roles: declarations, and scalars that follow from what the
// launch gives. Asked in order, of what is left.
static bool is_of_block(const tl_op *op) {
  int flags = tl_op_info_of(op->code)->flags;
  if (flags & TL_OPFLAG_ONCE) return true;
  bool is_of_thread = op->code == TL_OP_THREAD_ID || op->code == TL_OP_LANE_ID || op->code == TL_OP_WARP_ID;
  if (!(flags & TL_OPFLAG_PURE) || is_of_thread) return false;
  for (uint32_t i = 0; i < op->num_results; i++)
    if (op->results[i].type->kind == TL_TYPE_TILE) return false;
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (tl_op_operand(op, i)->def->parent != op->parent) return false;
  return true;
}

// Everything else of the kernel becomes its first role.
static tl_op *begin_roles(role_assignment *self) {
  tl_block *body = self->kernel->regions[0];
  tl_builder builder;
  tl_builder_before(&builder, self->module, tl_region_yield(self->module, body, self->kernel->loc));
  builder.loc = self->kernel->loc;
  tl_op *roles = tl_build(&builder, TL_OP_ROLES, NULL, NULL, 0);
  tl_op *math = add_role(self, roles, "math", 0, tl_op_threads(self->kernel) / WARP_THREADS, 0);
  for (tl_op *op = body->first, *next; op != roles; op = next) {
    next = op->next;
    if (!is_of_block(op)) tl_op_move_to_end(op, math->regions[0]);
  }
  return roles;
}

static void take_back(tl_op *roles) {
  tl_block *math = roles->regions[0]->first->regions[0];
  while (math->first) tl_op_move_before(math->first, roles);
  tl_op_erase(roles);
}

// How threads would have copied; the engine does without.
static void forget_threads(tl_op *op, void *user) {
  (void)user;
  if (op->code != TL_OP_COPY) return;
  tl_op_remove_attr(op, TL_ATTR_THREAD_LAYOUT);
  tl_op_remove_attr(op, TL_ATTR_VEC);
}

static void cut(role_assignment *self, tl_op *roles) {
  role_plan plan = plan_roles(self);
  tl_op *math = roles->regions[0]->first;
  int64_t warps = tl_op_int(math, TL_ATTR_NUM_WARPS, 0);
  tl_op *load = add_role(self, roles, "load", warps, plan.load_warps, plan.load_registers);
  if (plan.load_registers) {
    tl_op_set_int(self->module, math, TL_ATTR_REGISTERS, plan.math_registers);
    tl_op_set_int(self->module, self->kernel, TL_ATTR_MIN_BLOCKS, 1);
  }
  tl_role_slice_clone(self->module, &self->slice, math->regions[0], load->regions[0]);
  tl_walk(load, forget_threads, NULL);
  // Commits use copies, copies tiles, tiles slots.
  static const tl_opcode order[] = {TL_OP_RING_COMMIT, TL_OP_COPY, TL_OP_RING_TILE, TL_OP_RING_ACQUIRE};
  for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) erase_fills(self, math->regions[0], order[i]);
  tl_prune_unused(self->module, math->regions[0]);
  erase_empty_ifs(math->regions[0]);
  tl_prune_unused(self->module, math->regions[0]);
  tl_diag_report(self->context->diags, TL_DIAG_REMARK_ROLES, self->kernel->loc,
                 "%lld warp%s bring%s tiles, %lld compute", (long long)plan.load_warps, plan.load_warps == 1 ? "" : "s",
                 plan.load_warps == 1 ? "s" : "", (long long)warps);
}

static void find_wanted(tl_op *op, void *user) {
  bool *found = user;
  *found |= wish_of(op) != TL_SWITCH_OFF;
}

static void find_demanded(tl_op *op, void *user) {
  bool *found = user;
  *found |= wish_of(op) == TL_SWITCH_ON;
}

typedef struct role_choice {
  bool is_wanted, is_demanded;  // some ring may, or must, be filled by warps of their own
  const char *obstacle;         // to roles at all, or NULL
  const char *does_not_pay;     // where nobody demands them, or NULL
} role_choice;

static bool has_hand_barriers(const tl_op *kernel) {
  for (const tl_op *op = kernel->regions[0]->first; op; op = op->next)
    if (op->code == TL_OP_NAMED_BARRIER || (op->code == TL_OP_MBARRIER && tl_op_has(op, TL_ATTR_BY_HAND))) return true;
  return false;
}

static role_choice choose_roles(tl_pass_context *context, tl_op *kernel) {
  role_assignment self = {.context = context, .module = context->module, .kernel = kernel};
  role_choice choice = {0};
  bool waits = false;
  tl_walk(kernel, find_wanted, &choice.is_wanted);
  tl_walk(kernel, find_demanded, &choice.is_demanded);
  tl_walk(kernel, find_wait, &waits);
  if (waits) choice.obstacle = "the kernel waits for other blocks";
  if (has_hand_barriers(kernel)) choice.obstacle = choice.does_not_pay = "the kernel has barriers of its author";
  if (tl_op_threads(kernel) + WARP_THREADS > MAX_THREADS) choice.obstacle = "the block has no room for another warp";
  if (!choice.does_not_pay) choice.does_not_pay = tl_roles_choice_obstacle(kernel, plan_roles(&self).math_registers);
  // The loads of the next tile run beside the end of this one: no tile takes another one's place.
  bool is_persistent = tl_op_int(kernel, TL_ATTR_PERSISTENT, TL_SWITCH_OFF) == TL_SWITCH_ON;
  if (is_persistent && context->target && !tl_schedule_fits_apart(context->target, kernel, 1))
    choice.does_not_pay = "the tiles do not fit beside each other";
  return choice;
}

bool tl_roles_expected(tl_pass_context *context, tl_op *kernel) {
  role_choice choice = choose_roles(context, kernel);
  return choice.is_wanted && !choice.obstacle && (choice.is_demanded || !choice.does_not_pay);
}

// ---- roles of the author

static void elect_waiter(tl_op *op, void *user) {
  if (op->code == TL_OP_MBARRIER_WAIT) tl_op_set_int(user, op, TL_ATTR_EACH, TL_EACH_ROLE);
}

// Where one thread does all there is to do, the others need not wait.
static void elect_waiters(tl_module *module, const tl_op *roles) {
  for (tl_op *role = roles->regions[0]->first; role; role = role->next)
    if (role->code == TL_OP_ROLE && tl_block_is_elected(role->regions[0], true)) tl_walk(role, elect_waiter, module);
}

static void assign_kernel(tl_pass_context *context, tl_op *kernel) {
  if (tl_kernel_roles(kernel)) {
    elect_waiters(context->module, tl_kernel_roles(kernel));
    return;
  }
  role_assignment self = {.context = context, .module = context->module, .kernel = kernel};
  role_choice choice = choose_roles(context, kernel);
  if (!choice.is_wanted) return;
  if (choice.does_not_pay && !choice.is_demanded) {
    tl_diag_report(context->diags, TL_DIAG_REMARK_ROLES, kernel->loc, "no warps of their own bring tiles by TMA: %s",
                   choice.does_not_pay);
    return;
  }
  tl_op *roles = begin_roles(&self);
  for (tl_op *op = kernel->regions[0]->first; op != roles; op = op->next) {
    int64_t wish = wish_of(op);
    if (wish == TL_SWITCH_ON || (wish == TL_SWITCH_AUTO && !choice.does_not_pay)) add_ring(&self, op, choice.obstacle);
    if (op->code == TL_OP_RING) tl_op_remove_attr(op, TL_ATTR_SPECIALIZE);
  }
  if (self.rings.len > 0)
    cut(&self, roles);
  else
    take_back(roles);
  tl_role_slice_fini(&self.slice);
  tl_vec_fini(&self.rings);
}

// ---- turns

typedef struct turn_ends {
  tl_block *block;
  tl_op *first, *last;  // statements of the block that hold turns
} turn_ends;

static void find_turns(tl_op *op, void *user) {
  turn_ends *ends = user;
  if (op->code != TL_OP_TURN) return;
  while (op->parent != ends->block) op = op->parent->parent;
  if (!ends->first) ends->first = op;
  ends->last = op;
}

static void add_turn(tl_module *module, tl_op *at, tl_op *beside, int step) {
  tl_builder builder;
  tl_builder_before(&builder, module, beside);
  builder.loc = at->loc;
  tl_op_set_int(module, tl_build(&builder, TL_OP_TURN, NULL, NULL, 0), TL_ATTR_TURN, step);
}

// Turns go on from one loop or tile to the next. Were they opened in each, a warpgroup that is through with one could
// open the next before the others have closed theirs: the barrier counts warps, whichever they are.
static void open_turns(tl_module *module, tl_op *kernel) {
  const tl_op *roles = tl_kernel_roles(kernel);
  turn_ends ends = {.block = (roles ? roles->regions[0]->first : kernel)->regions[0]};
  tl_walk(kernel, find_turns, &ends);
  if (!ends.first) return;
  add_turn(module, ends.first, ends.first, TL_TURN_OPEN);
  tl_op *behind = ends.last->next ? ends.last->next : tl_region_yield(module, ends.last->parent, kernel->loc);
  add_turn(module, ends.last, behind, TL_TURN_CLOSE);
}

tl_status tl_pass_assign_roles(tl_pass_context *context) {
  for (tl_op *op = context->module->body->first; op; op = op->next) {
    if (op->code != TL_OP_KERNEL) continue;
    assign_kernel(context, op);
    open_turns(context->module, op);
  }
  return TL_OK;
}
