// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of one parallel that meet, whoever runs them: the order of a thread's own accesses hides two of its elements
// from the clocks, and elements of half a byte are stored by atomics. While threads are in a parallel the block
// remembers which of its elements accessed what: lists of records by words of memory. Threads run the same parallels in
// the same order, each at its own pace.
#include <stdlib.h>
#include <string.h>

#include "emulator/machine/args.h"
#include "emulator/sanitize/sanitizer.h"

enum { WORD_BYTES = 4, FIRST_SLOTS = 64, BOTH_NIBBLES = 3 };

// Nibbles of a word that an element accesses in one way.
typedef struct element_record {
  const tl_emu_site *site;
  uint32_t agent, element, next;  // index + 1 of the next record of the word; 0: none
  uint8_t nibbles;
  uint8_t kind;  // tl_emu_access_kind
} element_record;

typedef struct element_slot {
  uintptr_t word;
  uint32_t first;  // index + 1 of a record; 0: the slot is free
} element_slot;

// One execution of a parallel by a block.
typedef struct element_table {
  element_slot *slots;  // Owned
  size_t num_slots, used;
  TL_VEC(element_record) records;
  uint32_t number;  // of those that the block has begun, from 1
  uint32_t left;    // threads that are past it
} element_table;

struct tl_emu_elements {
  TL_VEC(element_table) tables;  // of all blocks of the cluster
  TL_VEC(uint32_t) blocks;       // rank of each table's block
  uint32_t *current;             // Owned. By agent: the parallel that it is in; 0: none yet
};

static void free_table(element_table *table) {
  free(table->slots);
  tl_vec_fini(&table->records);
}

void tl_emu_elements_destroy(tl_emu_elements *elements) {
  if (!elements) return;
  for (size_t i = 0; i < elements->tables.len; i++) free_table(&elements->tables.items[i]);
  tl_vec_fini(&elements->tables);
  tl_vec_fini(&elements->blocks);
  free(elements->current);
  free(elements);
}

static element_table *table_of(tl_emu_elements *elements, uint32_t block, uint32_t number) {
  for (size_t i = 0; i < elements->tables.len; i++)
    if (elements->blocks.items[i] == block && elements->tables.items[i].number == number)
      return &elements->tables.items[i];
  return NULL;
}

// A thread is past the parallel, which the last one of the block ends.
static void leave(tl_emu_elements *elements, uint32_t block, uint32_t number, uint32_t num_threads) {
  element_table *table = table_of(elements, block, number);
  if (!table || ++table->left < num_threads) return;
  size_t at = (size_t)(table - elements->tables.items);
  free_table(table);
  elements->tables.items[at] = tl_vec_last(&elements->tables);
  elements->blocks.items[at] = tl_vec_last(&elements->blocks);
  elements->tables.len--;
  elements->blocks.len--;
}

static element_slot *find(const element_table *table, uintptr_t word) {
  size_t at = (size_t)(word / WORD_BYTES * 0x9e3779b97f4a7c15u >> 20) & (table->num_slots - 1);
  while (table->slots[at].first && table->slots[at].word != word) at = (at + 1) & (table->num_slots - 1);
  return &table->slots[at];
}

static void grow(element_table *table) {
  element_table old = *table;
  table->num_slots = old.num_slots ? 2 * old.num_slots : FIRST_SLOTS;
  table->slots = tl_xcalloc(table->num_slots, sizeof *table->slots);
  for (size_t i = 0; i < old.num_slots; i++)
    if (old.slots[i].first) *find(table, old.slots[i].word) = old.slots[i];
  free(old.slots);
}

static bool is_read(uint8_t kind) {
  return kind == TL_EMU_READ || kind == TL_EMU_ATOMIC_READ;
}

// Reads do not disturb each other, nor do atomics.
static bool disturb(uint8_t a, uint8_t b) {
  return !(is_read(a) && is_read(b)) && !(a >= TL_EMU_ATOMIC && b >= TL_EMU_ATOMIC);
}

static tl_emu_epoch flags_of(uint8_t kind) {
  return (kind >= TL_EMU_ATOMIC ? TL_EMU_EPOCH_ATOMIC : 0) | (is_read(kind) ? TL_EMU_EPOCH_READ : 0);
}

static void tell(tl_emu_sanitizer *checker, const element_record *now, const element_record *before,
                 const void *address, size_t bytes) {
  tl_emu_actor actor = tl_emu_actor_of_agent(checker, now->agent, now->site);
  actor.flags |= flags_of(now->kind);
  tl_emu_epoch earlier = (tl_emu_epoch)before->agent << TL_EMU_EPOCH_AGENT_SHIFT | flags_of(before->kind);
  tl_emu_found(checker, &(tl_emu_seen){.kind = TL_EMU_FINDING_RACE,
                                       .access = (tl_emu_access_kind)now->kind,
                                       .actor = &actor,
                                       .before = earlier | tl_emu_site_bits(checker, before->site),
                                       .address = address,
                                       .bytes = bytes,
                                       .what = "for another element of the parallel"});
}

// Adds the access to those of its word. Returns the index + 1 of a record of another element that it disturbs, or 0.
static uint32_t add(element_table *table, uintptr_t word, element_record made) {
  if (2 * (table->used + 1) > table->num_slots) grow(table);
  element_slot *slot = find(table, word);
  uint32_t met = 0, alike = 0;  // of the same kind and nibbles: two elements are as good as all
  bool is_known = false;
  for (uint32_t i = slot->first; i; i = table->records.items[i - 1].next) {
    const element_record *there = &table->records.items[i - 1];
    if (there->element == made.element) {
      is_known = is_known || (there->kind == made.kind && (there->nibbles & made.nibbles) == made.nibbles);
    } else if (there->nibbles & made.nibbles) {
      alike += there->kind == made.kind && there->nibbles == made.nibbles;
      if (!met && disturb(there->kind, made.kind)) met = i;
    }
  }
  if (is_known || alike >= 2) return met;
  if (!slot->first) table->used++;
  slot->word = word;
  made.next = slot->first;
  tl_vec_push(&table->records, made);
  slot->first = (uint32_t)table->records.len;
  return met;
}

// The running thread begins a parallel, and has ended the one before.
void tl_emu_op_elements(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  (void)operands;
  (void)site;
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker || !(checker->checks & TL_EMU_SANITIZE_ELEMENTS)) return;
  if (!checker->elements) {
    checker->elements = tl_xcalloc(1, sizeof *checker->elements);
    checker->elements->current = tl_xcalloc(checker->num_threads, sizeof *checker->elements->current);
  }
  tl_emu_elements *elements = checker->elements;
  uint32_t agent = tl_emu_agent_here(tl_emu_self->current->thread), block = tl_emu_self->block->rank;
  uint32_t *current = &elements->current[agent];
  leave(elements, block, *current, tl_emu_self->num_threads);
  ++*current;
  if (table_of(elements, block, *current)) return;
  tl_vec_push(&elements->tables, (element_table){.number = *current});
  tl_vec_push(&elements->blocks, block);
}

// tl.element: pointer, bytes, mask of nibbles, kind, element, condition.
void tl_emu_op_element(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  tl_emu_args args = {operands, 0};
  uintptr_t at = (uintptr_t)tl_emu_args_pointer(&args);
  uint32_t bytes = tl_emu_args_i32(&args), mask = tl_emu_args_i32(&args);
  element_record made = {.site = site, .kind = (uint8_t)tl_emu_args_i32(&args)};
  made.element = tl_emu_args_i32(&args);
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!tl_emu_args_bool(&args) || !checker || !checker->elements) return;
  made.agent = tl_emu_agent_here(tl_emu_self->current->thread);
  element_table *table = table_of(checker->elements, tl_emu_self->block->rank, checker->elements->current[made.agent]);
  if (!table) return;
  uint32_t met = 0;
  for (uintptr_t from = at, end = at + bytes; from < end;) {
    uintptr_t word = from / WORD_BYTES * WORD_BYTES;
    made.nibbles = 0;
    for (; from < end && from < word + WORD_BYTES; from++)
      made.nibbles |= (uint8_t)((mask & BOTH_NIBBLES) << 2 * (from - word));
    uint32_t one = add(table, word, made);
    if (!met) met = one;
  }
  if (met) tell(checker, &made, &table->records.items[met - 1], (const void *)at, bytes);
}
