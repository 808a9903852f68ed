// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// State of one query of the index analysis: its budget, and what it has answered so far. Nothing that it answers
// depends on addresses: an answer that was kept is always found again, whatever else was asked.
#include <pthread.h>
#include <stdlib.h>

#include "ir/index/affine_internal.h"
#include "support/arena.h"

// Every answer costs a unit of the budget, inner queries spend that of the outer one: no query keeps more answers than
// its budget, and half of the slots of a table stay free.
enum { BUDGET = 4000, MAX_DEPTH = 48, SLOTS = 8192 };
_Static_assert(SLOTS >= 2 * BUDGET && (SLOTS & (SLOTS - 1)) == 0, "slots of the answers of one query");

// Names the answer for one value in one query.
typedef struct answer_key {
  const tl_value *value;
  uint64_t query;
  int from_depth;  // questions from less deep may find more
} answer_key;

// Open addressing; slots of older outer queries count as free.
typedef struct answer_table {
  struct {
    uint64_t outer;  // number of the outer query that filled it
    uint32_t at;     // index of the answer
  } slots[SLOTS];
  answer_key keys[BUDGET];
  uint32_t len;
} answer_table;

// One memory a thread, so that a query need not clear its own: most are small.
struct tl_query_memory {
  uint64_t last;   // number of the latest query
  uint64_t outer;  // number of the latest one that is not inside another
  answer_table forms, ranges;
  tl_affine form_answers[BUDGET];
  tl_range range_answers[BUDGET];
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
  memory->forms.len = 0;
  memory->ranges.len = 0;
}

void tl_query_init_inner(tl_query *inner, const tl_query *outer, const tl_hypothesis *hypothesis) {
  *inner = (tl_query){.budget = outer->budget / 4,
                      .depth = outer->depth,
                      .hypotheses = hypothesis,
                      .num_hypotheses = outer->num_hypotheses + 1,
                      .number = ++outer->memory->last,
                      .memory = outer->memory};
}

void tl_query_end_inner(const tl_query *inner, tl_query *outer) {
  outer->budget -= outer->budget / 4 - inner->budget;
  outer->depth_cuts += inner->depth_cuts;
  outer->budget_cuts += inner->budget_cuts;
}

bool tl_query_enter(tl_query *query) {
  if (query->budget <= 0) {
    query->budget_cuts++;
    return false;
  }
  if (query->depth >= MAX_DEPTH) {
    query->depth_cuts++;
    return false;
  }
  query->budget--;
  query->depth++;
  return true;
}

void tl_query_leave(tl_query *query) {
  query->depth--;
}

tl_query_cuts tl_query_cuts_now(const tl_query *query) {
  return (tl_query_cuts){query->depth_cuts, query->budget_cuts};
}

// ---- answers

// Slot of the value's answer, or the free one where it belongs.
static uint32_t slot_of(const answer_table *table, const tl_query *query, const tl_value *value) {
  uint64_t mixed = (value->number + query->number * 0x100000001B3u) * 0x9E3779B97F4A7C15u;
  uint32_t slot = (uint32_t)(mixed >> 40) & (SLOTS - 1);
  while (table->slots[slot].outer == query->memory->outer) {
    const answer_key *key = &table->keys[table->slots[slot].at];
    if (key->value == value && key->query == query->number) break;
    slot = (slot + 1) & (SLOTS - 1);
  }
  return slot;
}

// Index of the answer, or -1.
static int64_t find_answer(const answer_table *table, tl_query *query, const tl_value *value) {
  uint32_t slot = slot_of(table, query, value);
  if (table->slots[slot].outer != query->memory->outer) return -1;
  uint32_t at = table->slots[slot].at;
  if (query->depth < table->keys[at].from_depth) return -1;
  // Who builds on an answer that was cut short is cut short too.
  if (table->keys[at].from_depth > 0) query->depth_cuts++;
  return at;
}

// Index to keep an answer at, or -1 when it must not be kept.
static int64_t place_answer(answer_table *table, const tl_query *query, const tl_value *value, tl_query_cuts before) {
  if (query->budget_cuts != before.budget) return -1;
  uint32_t slot = slot_of(table, query, value);
  if (table->slots[slot].outer != query->memory->outer) {
    if (table->len == BUDGET) return -1;
    table->slots[slot].outer = query->memory->outer;
    table->slots[slot].at = table->len++;
  }
  int from_depth = query->depth_cuts == before.depth ? 0 : query->depth;
  table->keys[table->slots[slot].at] = (answer_key){value, query->number, from_depth};
  return table->slots[slot].at;
}

bool tl_query_recall_form(tl_query *query, const tl_value *value, tl_affine *out) {
  int64_t at = find_answer(&query->memory->forms, query, value);
  if (at >= 0) *out = query->memory->form_answers[at];
  return at >= 0;
}

void tl_query_keep_form(tl_query *query, const tl_value *value, const tl_affine *form, tl_query_cuts before) {
  int64_t at = place_answer(&query->memory->forms, query, value, before);
  if (at >= 0) query->memory->form_answers[at] = *form;
}

bool tl_query_recall_range(tl_query *query, const tl_value *value, tl_range *out) {
  int64_t at = find_answer(&query->memory->ranges, query, value);
  if (at >= 0) *out = query->memory->range_answers[at];
  return at >= 0;
}

void tl_query_keep_range(tl_query *query, const tl_value *value, tl_range range, tl_query_cuts before) {
  int64_t at = place_answer(&query->memory->ranges, query, value, before);
  if (at >= 0) query->memory->range_answers[at] = range;
}
