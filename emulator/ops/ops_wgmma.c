// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The life of wgmma.mma_async. The four warps of a warpgroup meet at each one. Landing late: operands are read, and
// sums made, at the first wait of a warp that covers the operation; until its own wait a thread's registers hold
// handles (wgmma_sums.c), which only tl.wgmma.wait exchanges for values. An operation that gets all of another's
// handles as its D goes on with the same sums. Landing early: at once, with values.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/ops/operand.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/wgmma.h"
#include "emulator/sanitize/sanitize.h"
#include "support/vec.h"

enum { GROUP_WARPS = 4, MAX_KEPT = 16, ALL_WARPS = 15 };

typedef struct operation operation;
struct operation {
  operation *next;
  const tl_emu_site *site;
  const tl_wgmma_form *form;  // Borrowed from the site.
  uint64_t a, b;              // descriptors
  bool accumulates;
  bool landed;
  uint32_t awaited;  // warps of the group that waited for it
  uint32_t group;    // number of the wgmma-group that it belongs to
  tl_emu_sums *sums;
  tl_emu_async *async;
  tl_emu_clock *clock;                        // kept from one use to the next
  tl_emu_wgmma_rows a_registers[TL_WGMMA_M];  // A, when it comes in registers
};

// Four warps. PTX ISA: "four contiguous warps such that the warp-rank of the first warp is a multiple of 4".
typedef struct warpgroup {
  uint32_t arrived;  // warps at the operation `site`
  const tl_emu_site *site;
  uint32_t *results[TL_EMU_WARPGROUP];
  const uint32_t *args[TL_EMU_WARPGROUP];
  uint32_t open_group[GROUP_WARPS];
  bool needs_fence[GROUP_WARPS];  // a register that wgmma uses may have been accessed since the last wgmma.fence
  operation *first, *last;        // not awaited by all warps; in order of issue
  operation *free_operations;
  tl_emu_sums *sums;  // in flight, or not handed out to all threads
  tl_emu_sums *kept;  // handed out; the newest first
  uint32_t next_id;
} warpgroup;

struct tl_emu_wgmma {
  warpgroup groups[TL_EMU_MAX_WARPS / GROUP_WARPS];
};

// ---- forms, parsed once a call in the module

typedef struct detail {
  tl_wgmma_form form;
  tl_wgmma_wait wait;
} detail;

void *tl_emu_wgmma_detail(const char *name) {
  detail parsed = {0};
  if (!tl_wgmma_form_parse(tl_str_from(name), &parsed.form) && !tl_wgmma_wait_parse(tl_str_from(name), &parsed.wait))
    return NULL;
  detail *made = tl_xmalloc(sizeof *made);
  *made = parsed;
  return made;
}

// ---- warpgroups

static void drop_sums(tl_emu_sums *list) {
  for (tl_emu_sums *next; list; list = next) {
    next = list->next;
    free(list);
  }
}

static void drop_operations(operation *list) {
  for (operation *next; list; list = next) {
    next = list->next;
    free(list);
  }
}

static void reset_group(warpgroup *group) {
  drop_sums(group->sums);
  drop_sums(group->kept);
  drop_operations(group->first);
  drop_operations(group->free_operations);
  memset(group, 0, sizeof *group);
  for (int i = 0; i < GROUP_WARPS; i++) group->needs_fence[i] = true;
}

static void begin_block(tl_emu_block *block) {
  if (!block->wgmma) return;
  for (int i = 0; i < TL_EMU_MAX_WARPS / GROUP_WARPS; i++) reset_group(&block->wgmma->groups[i]);
}

static void end_block(tl_emu_block *block) {
  if (!block->wgmma) return;
  for (int i = 0; i < TL_EMU_MAX_WARPS / GROUP_WARPS; i++)
    for (operation *o = block->wgmma->groups[i].first; o; o = o->next) tl_emu_async_end(o->async, false);
  begin_block(block);
}

static void destroy_block(tl_emu_block *block) {
  begin_block(block);
  free(block->wgmma);
  block->wgmma = NULL;
}

const tl_emu_hooks tl_emu_wgmma_hooks = {
    .begin_block = begin_block, .end_block = end_block, .destroy_block = destroy_block};

static warpgroup *group_of(const tl_emu_warp *warp, const tl_emu_meeting *meeting) {
  tl_emu_block *block = tl_emu_self->block;
  uint32_t first = warp->index / GROUP_WARPS * GROUP_WARPS;
  if (meeting->mask != ~0u || (first + GROUP_WARPS) * TL_EMU_WARP > tl_emu_self->num_threads)
    tl_emu_fail_at(meeting->site, "warp %u is not in a warpgroup of four whole warps", warp->index);
  if (!block->wgmma) {
    block->wgmma = tl_xcalloc(1, sizeof *block->wgmma);
    begin_block(block);
  }
  return &block->wgmma->groups[warp->index / GROUP_WARPS];
}

// ---- operands

// Tells the checker of every piece of an operand, or looks at the bounds itself. `async` NULL: nothing is checked.
static void announce_operand(const operation *o, uint64_t bits, uint32_t extent, bool transposed) {
  tl_emu_descriptor d = tl_emu_descriptor_decode(bits);
  uint32_t offsets[TL_EMU_WGMMA_MAX_PIECES], count = tl_emu_descriptor_pieces(&d, extent, transposed, offsets);
  const uint8_t *base = tl_emu_shared_base();
  if (o->async) {
    const char *problem = tl_emu_descriptor_problem(&d, extent, transposed);
    if (problem) tl_emu_sanitize_misuse(problem, o->site);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (o->async)
      tl_emu_touch_async(o->async, base + offsets[i], 16, 16, TL_EMU_READ);
    else if (__builtin_expect(!tl_emu_is_shared(base + offsets[i], 16), 0))
      tl_emu_fail("%s: the descriptor %016llx reads 16 bytes at offset %lld of shared memory, which has %zu bytes",
                  o->site->op, (unsigned long long)bits,
                  (long long)(base + offsets[i] - (const uint8_t *)tl_emu_self->context.shared),
                  tl_emu_self->launch->shared_bytes);
  }
}

static void read_operand(uint64_t bits, uint32_t extent, bool transposed, tl_emu_wgmma_rows *out) {
  tl_emu_descriptor d = tl_emu_descriptor_decode(bits);
  uint32_t offsets[TL_EMU_WGMMA_MAX_PIECES], count = tl_emu_descriptor_pieces(&d, extent, transposed, offsets);
  uint8_t pieces[TL_EMU_WGMMA_MAX_PIECES][16];
  const uint8_t *base = tl_emu_shared_base();
  for (uint32_t i = 0; i < count; i++) {
    if (__builtin_expect(tl_emu_is_shared(base + offsets[i], 16), 1))
      memcpy(pieces[i], base + offsets[i], 16);
    else
      memset(pieces[i], 0xff, 16);
  }
  tl_emu_wgmma_arrange(pieces[0], extent, transposed, out);
}

static void land(operation *o) {
  const tl_wgmma_form *form = o->form;
  tl_emu_wgmma_rows a[TL_WGMMA_M], b[TL_WGMMA_MAX_N];
  if (!form->a_in_registers) read_operand(o->a, TL_WGMMA_M, form->transpose_a, a);
  read_operand(o->b, (uint32_t)form->n, form->transpose_b, b);
  tl_emu_wgmma_multiply(form, form->a_in_registers ? o->a_registers : a, b, o->accumulates, o->sums->words);
  o->landed = true;
  o->sums->in_flight--;
  tl_emu_async_complete(o->async, &o->clock);
}

// ---- issue

// The struct of arguments: D, A (a descriptor or four registers), the descriptor of B, and scale-d.
static uint32_t words_before_b(const tl_wgmma_form *form) {
  return (uint32_t)tl_wgmma_sum_registers(form) + (form->a_in_registers ? TL_WGMMA_A_REGISTERS : 2);
}

static void sanitize_uniform(const warpgroup *group, const tl_wgmma_form *form) {
  uint32_t b = words_before_b(form), from = form->a_in_registers ? b : b - 2;
  for (uint32_t t = 1; t < TL_EMU_WARPGROUP; t++) {
    bool same_scale = *(const uint8_t *)(group->args[t] + b + 2) == *(const uint8_t *)(group->args[0] + b + 2);
    if (same_scale && !memcmp(group->args[t] + from, group->args[0] + from, (b + 2 - from) * sizeof(uint32_t)))
      continue;
    tl_emu_fail_at(group->site, "thread %u of the warpgroup has another %s than thread 0", t,
                   same_scale ? "descriptor" : "scale-d");
  }
}

// PTX ISA, wgmma, "Register Fragments": register 0 has row lane / 4, 1 the eighth row below, 2 and 3 the upper half of
// K.
static void take_a(operation *o, const warpgroup *group, uint32_t num_sums) {
  for (uint32_t t = 0; t < TL_EMU_WARPGROUP; t++) {
    uint32_t row = t / 32 * 16 + t % 32 / 4, byte = t % 4 * 4;
    for (uint32_t i = 0; i < TL_WGMMA_A_REGISTERS; i++)
      memcpy(&o->a_registers[row + i % 2 * 8][i / 2 * 16 + byte], group->args[t] + num_sums + i, 4);
  }
}

// The sums whose handles are in all registers of D, or NULL.
static tl_emu_sums *find_chain(const warpgroup *group, const tl_wgmma_form *form, uint32_t count) {
  uint32_t index, id = tl_emu_handle_id(form->sum, group->args[0][0], &index);
  tl_emu_sums *sums = id ? group->sums : NULL;
  while (sums && (sums->id != id || sums->type != form->sum || sums->n != (uint32_t)form->n)) sums = sums->next;
  if (!sums) return NULL;
  uint32_t first = tl_emu_handle(form->sum, id, 0);
  for (uint32_t t = 0; t < TL_EMU_WARPGROUP; t++)
    if (!tl_emu_is_sequence(group->args[t], count, first)) return NULL;
  return sums;
}

// Whether D is what a wait handed out, untouched: then no thread has written its registers.
static bool is_untouched(const warpgroup *group, const tl_wgmma_form *form, uint32_t count) {
  uint32_t values[TL_WGMMA_MAX_N / 2];
  for (const tl_emu_sums *sums = group->kept; sums; sums = sums->next) {
    if (sums->type != form->sum || sums->n != (uint32_t)form->n) continue;
    uint32_t t = 0;
    for (; t < TL_EMU_WARPGROUP; t++) {
      tl_emu_sums_get(sums, t, 0, count, values);
      if (memcmp(values, group->args[t], count * sizeof *values) != 0) break;
    }
    if (t == TL_EMU_WARPGROUP) return true;
  }
  return false;
}

// PTX ISA, wgmma.fence: needed before the first wgmma, and where a thread accessed registers of D or A in between.
static void sanitize_fence(const warpgroup *group, const operation *o, bool chained, uint32_t count) {
  bool needed = false;
  for (int i = 0; i < GROUP_WARPS; i++) needed |= group->needs_fence[i];
  if (!needed || !o->async) return;
  if (!o->form->a_in_registers && (chained || is_untouched(group, o->form, count))) return;
  tl_emu_sanitize_misuse("no wgmma.fence since its registers were accessed", o->site);
}

static tl_emu_sums *unlink_sums(tl_emu_sums **list, tl_emu_sums *sums) {
  while (*list != sums) list = &(*list)->next;
  *list = sums->next;
  return sums;
}

static void keep(warpgroup *group, tl_emu_sums *sums) {
  sums->next = group->kept;
  group->kept = sums;
  int kept = 0;
  for (tl_emu_sums **at = &group->kept; *at; at = &(*at)->next) {
    if (++kept < MAX_KEPT) continue;
    drop_sums((*at)->next);
    (*at)->next = NULL;
  }
}

// Sums that landed long ago and that nobody asked for: results without a use.
static void forget_unused(warpgroup *group) {
  int kept = 0;
  for (tl_emu_sums **at = &group->sums; *at;) {
    if (++kept > MAX_KEPT && !(*at)->in_flight)
      free(unlink_sums(at, *at));
    else
      at = &(*at)->next;
  }
}

static tl_emu_sums *begin_sums(warpgroup *group, const tl_wgmma_form *form, bool accumulates, uint32_t count) {
  tl_emu_sums *sums = tl_emu_sums_create(form->sum, (uint32_t)form->n);
  uint32_t values[TL_WGMMA_MAX_N / 2], index;
  for (uint32_t t = 0; accumulates && t < TL_EMU_WARPGROUP; t++) {
    // A stray handle stays a NaN, but must not be taken for a handle when it comes out again.
    for (uint32_t i = 0; i < count; i++) {
      values[i] = group->args[t][i];
      if (form->sum == TL_WGMMA_SUM_F32 && tl_emu_handle_id(form->sum, values[i], &index)) values[i] = 0x7fffffffu;
    }
    tl_emu_sums_put(sums, t, values);
  }
  sums->next = group->sums;
  group->sums = sums;
  forget_unused(group);
  return sums;
}

// A new operation at the end of the list.
static operation *append_operation(warpgroup *group) {
  operation *o = group->free_operations;
  if (o)
    group->free_operations = o->next;
  else
    o = tl_xcalloc(1, sizeof *o);
  o->next = NULL;
  o->landed = false;
  o->awaited = 0;
  o->async = NULL;
  if (group->last)
    group->last->next = o;
  else
    group->first = o;
  group->last = o;
  return o;
}

// All four warps are there; the running thread is the last.
static void issue(warpgroup *group) {
  const tl_emu_site *site = group->site;
  const tl_wgmma_form *form = &((const detail *)site->detail)->form;
  uint32_t count = (uint32_t)tl_wgmma_sum_registers(form), b = words_before_b(form);
  sanitize_uniform(group, form);
  for (int i = 1; i < GROUP_WARPS; i++)
    if (group->open_group[i] != group->open_group[0])
      tl_emu_fail_at(site, "the warps of the warpgroup have committed different numbers of groups");
  operation *o = append_operation(group);
  o->site = site;
  o->form = form;
  o->group = group->open_group[0];
  if (form->a_in_registers)
    take_a(o, group, count);
  else
    memcpy(&o->a, group->args[0] + count, sizeof o->a);
  memcpy(&o->b, group->args[0] + b, sizeof o->b);
  o->accumulates = *(const uint8_t *)(group->args[0] + b + 2) & 1;
  o->async = tl_emu_async_begin(TL_EMU_PROXY_ASYNC, site);
  if (!form->a_in_registers) announce_operand(o, o->a, TL_WGMMA_M, form->transpose_a);
  announce_operand(o, o->b, (uint32_t)form->n, form->transpose_b);
  tl_emu_sums *chain = find_chain(group, form, count);
  sanitize_fence(group, o, chain != NULL, count);
  o->sums = chain ? chain : begin_sums(group, form, o->accumulates, count);
  group->next_id = group->next_id % (TL_EMU_HANDLE_IDS - 1) + 1;
  o->sums->id = group->next_id;
  o->sums->in_flight++;
  o->sums->left = count * TL_EMU_WARPGROUP;
  if (tl_emu_self->launch->landing == TL_LANDING_EARLY) {
    land(o);
    for (uint32_t t = 0; t < TL_EMU_WARPGROUP; t++) tl_emu_sums_get(o->sums, t, 0, count, group->results[t]);
    keep(group, unlink_sums(&group->sums, o->sums));
    o->sums = NULL;
    return;
  }
  uint32_t first = tl_emu_handle(form->sum, o->sums->id, 0);
  for (uint32_t t = 0; t < TL_EMU_WARPGROUP; t++)
    for (uint32_t i = 0; i < count; i++) group->results[t][i] = first + i;
}

static void describe_wait(const tl_emu_fiber *fiber, tl_strbuf *out) {
  (void)fiber;
  tl_strbuf_append_c(out, "the other warps of its warpgroup");
}

static bool mma_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  warpgroup *group = group_of(warp, meeting);
  uint32_t own = warp->index % GROUP_WARPS, first = warp->index - own;
  if (group->arrived && group->site != meeting->site) {
    tl_strbuf here = {0}, there = {0};
    tl_emu_describe_site(meeting->site, &here);
    tl_emu_describe_site(group->site, &there);
    char text[400];
    snprintf(text, sizeof text, "the warps of a warpgroup diverged: warp %u is at %s, others wait at %s", warp->index,
             tl_strbuf_c(&here), tl_strbuf_c(&there));
    tl_strbuf_fini(&here);
    tl_strbuf_fini(&there);
    tl_emu_fail("%s", text);
  }
  group->site = meeting->site;
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    group->results[own * TL_EMU_WARP + lane] = meeting->result[lane];
    group->args[own * TL_EMU_WARP + lane] = meeting->args[lane];
  }
  group->arrived |= 1u << own;
  tl_emu_block *block = tl_emu_self->block;
  tl_emu_fiber *fibers = &block->fibers[(size_t)first * TL_EMU_WARP];
  if (group->arrived != ALL_WARPS) {
    for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++)
      tl_emu_set_wait(&fibers[own * TL_EMU_WARP + lane], group, describe_wait);
    return false;
  }
  group->arrived = 0;
  issue(group);
  for (uint32_t t = 0; t < TL_EMU_WARPGROUP; t++) tl_emu_set_wait(&fibers[t], NULL, NULL);
  for (uint32_t i = 0; i < GROUP_WARPS; i++) block->warps[first + i].runnable = ~0u;
  return true;
}

void tl_emu_op_wgmma(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, mma_work);
}

// ---- fence, commit, wait

static bool fence_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  group_of(warp, meeting)->needs_fence[warp->index % GROUP_WARPS] = false;
  return true;
}

void tl_emu_op_wgmma_fence(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, fence_work);
}

static bool commit_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  group_of(warp, meeting)->open_group[warp->index % GROUP_WARPS]++;
  return true;
}

void tl_emu_op_wgmma_commit(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, commit_work);
}

// Registers of a warp's threads that a wait holds until then: operands of `wait`; NULL: none.
typedef struct held_registers {
  const tl_wgmma_wait *wait;
  const tl_emu_meeting *meeting;
} held_registers;

static bool is_held(const held_registers *held, uint32_t lane, uint32_t word) {
  const uint32_t *registers = held->wait ? held->meeting->args[lane] : NULL;
  for (int r = 0; registers && r < held->wait->num_runs; registers += held->wait->runs[r++].count)
    for (int i = 0; held->wait->runs[r].type == TL_WGMMA_OPERAND_B32 && i < held->wait->runs[r].count; i++)
      if (registers[i] == word) return true;
  return false;
}

// PTX ISA, wgmma.mma_async: accessing the registers of A before the operation has ended is undefined. Of which nothing
// is to be seen but that the wait holds what the operation took.
static void sanitize_held(const operation *o, const held_registers *held, uint32_t warp_in_group) {
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++)
    for (uint32_t i = 0; i < TL_WGMMA_A_REGISTERS; i++) {
      uint32_t word;
      memcpy(&word, &o->a_registers[warp_in_group * 16 + lane / 4 + i % 2 * 8][i / 2 * 16 + lane % 4 * 4], sizeof word);
      if (is_held(held, lane, word)) continue;
      tl_emu_sanitize_misuse("the first wait for it does not hold its A in registers", o->site);
      return;
    }
}

// The warp waits until at most `pending` of the groups that it committed are in flight.
static void await(warpgroup *group, const tl_emu_warp *warp, uint32_t pending, const held_registers *held) {
  uint32_t own = warp->index % GROUP_WARPS, limit = group->open_group[own];
  if (pending >= limit) return;
  limit -= pending;
  operation **at = &group->first, *before = NULL;
  while (*at && (*at)->group < limit) {
    operation *o = *at;
    if (!o->landed) land(o);
    if (o->async && o->form->a_in_registers && !(o->awaited >> own & 1)) sanitize_held(o, held, own);
    if (o->async && !(o->awaited >> own & 1))
      for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) tl_emu_acquire(warp->index * TL_EMU_WARP + lane, &o->clock);
    o->awaited |= 1u << own;
    if (o->awaited != ALL_WARPS) {
      before = o;
      at = &o->next;
      continue;
    }
    tl_emu_async_end(o->async, true);
    tl_emu_clock_reset(&o->clock);
    *at = o->next;
    if (group->last == o) group->last = before;
    o->next = group->free_operations;
    group->free_operations = o;
  }
}

// Values for the handles of sums that have landed, in `count` registers. Returns how many there were.
static uint32_t exchange(warpgroup *group, tl_wgmma_register type, uint32_t thread, uint32_t *registers,
                         uint32_t count) {
  uint32_t exchanged = 0;
  for (uint32_t i = 0; i < count;) {
    uint32_t index = 0, id = tl_emu_handle_id(type, registers[i], &index);
    tl_emu_sums *sums = id ? group->sums : NULL;
    while (sums && (sums->id != id || sums->type != type)) sums = sums->next;
    if (!sums || sums->in_flight || index >= tl_emu_sums_registers(sums)) {
      i++;
      continue;
    }
    uint32_t run = tl_emu_sums_registers(sums) - index;
    if (run > count - i) run = count - i;
    if (!tl_emu_is_sequence(registers + i, run, registers[i])) run = 1;
    tl_emu_sums_get(sums, thread, index, run, registers + i);
    sums->left -= run < sums->left ? run : sums->left;
    if (!sums->left) keep(group, unlink_sums(&group->sums, sums));
    i += run;
    exchanged += run;
  }
  return exchanged;
}

static bool wait_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  warpgroup *group = group_of(warp, meeting);
  const tl_wgmma_wait *wait = &((const detail *)meeting->site->detail)->wait;
  uint32_t own = warp->index % GROUP_WARPS, total = (uint32_t)tl_wgmma_wait_results(wait), exchanged = 0;
  await(group, warp, (uint32_t)wait->pending, &(held_registers){wait, meeting});
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    uint32_t *registers = meeting->result[lane];
    if (total) memcpy(registers, meeting->args[lane], total * sizeof *registers);
    for (int r = 0; r < wait->num_runs && wait->runs[r].type != TL_WGMMA_OPERAND_B32;
         registers += wait->runs[r++].count)
      exchanged +=
          exchange(group, wait->runs[r].type, own * TL_EMU_WARP + lane, registers, (uint32_t)wait->runs[r].count);
  }
  // Values can be read and written again. (Landing early there is nothing to see; nothing in flight says the same.)
  if (exchanged || (tl_emu_self->launch->landing == TL_LANDING_EARLY && !wait->pending)) group->needs_fence[own] = true;
  return true;
}

void tl_emu_op_wgmma_wait(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, wait_work);
}

static bool wait_group_work(tl_emu_warp *warp, tl_emu_meeting *meeting) {
  uint64_t pending;
  memcpy(&pending, meeting->args[0], sizeof pending);
  await(group_of(warp, meeting), warp, pending < UINT32_MAX ? (uint32_t)pending : UINT32_MAX, &(held_registers){0});
  return true;
}

void tl_emu_op_wgmma_wait_group(void *result, const void *args, const tl_emu_site *site) {
  tl_emu_meet_warp(result, args, site, wait_group_work);
}
