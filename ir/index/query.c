// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// State of one query of the index analysis: the values that it looks at, what it has answered so far, and its budget.
// Nothing that it answers depends on addresses, and every value has one answer, whoever asks for it first.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "ir/index/affine_internal.h"
#include "ir/op_internal.h"
#include "support/arena.h"

// A query looks at the LOOKED_AT values nearest to those that it is about. That bounds the nesting as well: each level
// of it goes on to another value, and starts anew only inside a hypothesis. MAX_DEPTH keeps the stack below 2 MiB where
// hypotheses about long chains are nested.
enum { BUDGET = 4000, LOOKED_AT = 256, SLOTS = 1024, LEVELS = TL_QUERY_MAX_HYPOTHESES + 1, MAX_DEPTH = 4 * LOOKED_AT };
_Static_assert(SLOTS >= 2 * LOOKED_AT && (SLOTS & (SLOTS - 1)) == 0, "slots of the values of one query");

// One memory a thread, so that a query need not clear its own: most are small.
struct tl_query_memory {
  uint64_t last;   // number of the latest query
  uint64_t outer;  // number of the latest one that is not inside another
  const tl_value *values[LOOKED_AT];
  uint32_t num_values;
  uint32_t num_expanded;  // those whose operands are among the values as well
  // Open addressing; slots of older outer queries count as free.
  struct {
    uint64_t outer;
    uint32_t at;  // index of the value
  } slots[SLOTS];
  tl_query_answers answers[LEVELS][LOOKED_AT];  // by the number of hypotheses
};

static pthread_key_t memory_key;  // frees the memory when its thread ends
static pthread_once_t memory_key_once = PTHREAD_ONCE_INIT;

static void make_memory_key(void) {
  // Without a key the memory of a thread that ends is lost; queries work all the same.
  (void)pthread_key_create(&memory_key, free);
}

static tl_query_memory *memory_of_thread(void) {
  static _Thread_local tl_query_memory *memory;
  if (memory == NULL) {
    pthread_once(&memory_key_once, make_memory_key);
    memory = tl_xcalloc(1, sizeof(*memory));
    pthread_setspecific(memory_key, memory);
  }
  return memory;
}

void tl_query_init(tl_query *query) {
  tl_query_memory *memory = memory_of_thread();
  *query = (tl_query){.budget = BUDGET, .number = ++memory->last, .memory = memory};
  memory->outer = query->number;
  memory->num_values = 0;
  memory->num_expanded = 0;
}

void tl_query_init_inner(tl_query *inner, const tl_query *outer, const tl_hypothesis *hypothesis) {
  *inner = (tl_query){.budget = outer->budget / 4,
                      .depth = outer->depth,
                      .hypotheses = hypothesis,
                      .num_hypotheses = outer->num_hypotheses + 1,
                      .number = ++outer->memory->last,
                      .memory = outer->memory};
  assert(inner->num_hypotheses < LEVELS);
}

void tl_query_end_inner(const tl_query *inner, tl_query *outer) {
  outer->budget -= outer->budget / 4 - inner->budget;
  outer->cuts += inner->cuts;
}

bool tl_query_enter(tl_query *query) {
  if (query->budget <= 0 || query->depth >= MAX_DEPTH) {
    query->cuts++;
    return false;
  }
  query->budget--;
  query->depth++;
  return true;
}

void tl_query_leave(tl_query *query) {
  query->depth--;
}

// ---- the values that a query looks at

// Slot of the value, or the free one where it belongs.
static uint32_t slot_of(const tl_query_memory *memory, const tl_value *value) {
  uint32_t slot = (value->number * 0x9E3779B1u) >> 16 & (SLOTS - 1);
  while (memory->slots[slot].outer == memory->outer && memory->values[memory->slots[slot].at] != value) {
    slot = (slot + 1) & (SLOTS - 1);
  }
  return slot;
}

static void look_at(tl_query_memory *memory, const tl_value *value) {
  if (value == NULL || memory->num_values == LOOKED_AT) return;
  bool is_bool = value->type->kind == TL_TYPE_SCALAR && value->type->dtype == TL_DTYPE_BOOL;
  if (!is_bool && !tl_type_is_integral(value->type)) return;
  int64_t constant;
  if (tl_value_const_int(value, &constant)) return;  // known anyway
  uint32_t slot = slot_of(memory, value);
  if (memory->slots[slot].outer == memory->outer) return;
  memory->slots[slot].outer = memory->outer;
  memory->slots[slot].at = memory->num_values;
  memory->values[memory->num_values++] = value;
}

static void look_at_yielded(tl_query_memory *memory, const tl_op *op, uint32_t index) {
  for (uint32_t r = 0; r < op->num_regions; r++) {
    const tl_op *yield = tl_block_terminator(op->regions[r]);
    if (yield && index < yield->num_operands) look_at(memory, yield->operands[index].value);
  }
}

// What a loop carries in its argument `index`, from 1.
static void look_at_carried(tl_query_memory *memory, const tl_op *loop, uint32_t index) {
  if (index > tl_op_group_len(loop, TL_GROUP_FOR_inits)) return;
  look_at(memory, tl_op_group_at(loop, TL_GROUP_FOR_inits, index - 1));
  look_at_yielded(memory, loop, index - 1);
}

// The values that what is known of this one may come from.
static void look_behind(tl_query_memory *memory, const tl_value *value) {
  const tl_op *op = value->def;
  if (op == NULL) {
    const tl_op *around = value->block ? value->block->parent : NULL;
    if (around == NULL || around->code != TL_OP_FOR) return;
    if (value->index > 0) {
      look_at_carried(memory, around, value->index);
      return;
    }
    look_at(memory, tl_op_arg(around, TL_GROUP_FOR_lower));
    look_at(memory, tl_op_arg(around, TL_GROUP_FOR_upper));
    look_at(memory, tl_op_arg(around, TL_GROUP_FOR_step));
    return;
  }
  if (op->code == TL_OP_FOR) {
    look_at_carried(memory, op, value->index + 1);
  } else if (op->code == TL_OP_IF) {
    look_at_yielded(memory, op, value->index);
  } else if (op->code == TL_OP_GRID || op->code == TL_OP_TILE_INDEX) {
    if (value->index < op->num_operands) look_at(memory, op->operands[value->index].value);
  } else if (tl_op_info_of(op->code)->flags & TL_OPFLAG_PURE) {
    for (uint32_t i = 0; i < op->num_operands; i++) look_at(memory, op->operands[i].value);
  }
}

void tl_query_about(tl_query *query, const tl_value *value) {
  assert(query->memory->outer == query->number && query->memory->num_expanded == 0);
  look_at(query->memory, value);
}

void tl_query_about_form(tl_query *query, const tl_affine *form) {
  for (int32_t i = 0; form->valid && i < form->num_terms; i++) tl_query_about(query, form->terms[i].symbol);
}

tl_query_answers *tl_query_answers_of(tl_query *query, const tl_value *value) {
  tl_query_memory *memory = query->memory;
  assert(query->number >= memory->outer);
  // Breadth first: the nearest ones.
  while (memory->num_expanded < memory->num_values) look_behind(memory, memory->values[memory->num_expanded++]);
  uint32_t slot = slot_of(memory, value);
  if (memory->slots[slot].outer != memory->outer) return NULL;
  return &memory->answers[query->num_hypotheses][memory->slots[slot].at];
}
