// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Findings as they are made, and their way to records with texts.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/sanitize/sanitizer.h"

// Places (pairs of sites) of a checker that are told; findings elsewhere are only counted.
enum { MAX_PLACES = 1000 };

// ---- recording

static bool same_finding(const tl_emu_raw_finding *a, const tl_emu_raw_finding *b) {
  const tl_emu_epoch site_mask = (tl_emu_epoch)TL_EMU_EPOCH_MAX_SITE << TL_EMU_EPOCH_SITE_SHIFT;
  return a->kind == b->kind && !((a->now ^ b->now) & site_mask) && !((a->before ^ b->before) & site_mask) &&
         !a->before == !b->before && a->what == b->what;
}

// Adds `made`; what is there already is counted, and told of by the first one of the lowest block. With `limit` others
// only `*untold` becomes more.
static void count(tl_emu_raw_list *found, tl_emu_raw_finding *made, size_t limit, uint64_t *untold) {
  for (size_t i = 0; i < found->len; i++) {
    tl_emu_raw_finding *there = &found->items[i];
    if (!same_finding(there, made)) continue;
    uint64_t sum = there->count + made->count;
    if (made->block < there->block) {
      free(there->place);
      *there = *made;
    } else {
      free(made->place);
    }
    there->count = sum;
    return;
  }
  if (found->len >= limit) {
    free(made->place);
    *untold += made->count;
    return;
  }
  tl_vec_push(found, *made);
}

// The thread that is or issued the agent; -1: not known any more.
static int64_t thread_of_epoch(const tl_emu_sanitizer *checker, tl_emu_epoch epoch) {
  uint32_t agent = tl_emu_epoch_agent(epoch);
  if (agent < 2 * checker->num_threads) return agent % checker->num_threads;
  uint32_t slot = agent - 2 * checker->num_threads;
  return checker->slots[slot].clock == tl_emu_epoch_clock(epoch) ? (int64_t)checker->slots[slot].issuer : -1;
}

static void place_of(const tl_emu_seen *seen, tl_emu_raw_finding *made) {
  const tl_emu_worker *worker = tl_emu_self;
  uintptr_t at = (uintptr_t)seen->address;
  made->shared_offset = -1;
  if (seen->place) {
    tl_strbuf place = {0};
    tl_strbuf_append_c(&place, seen->place);
    made->place = tl_strbuf_take(&place);
  } else if (at && at - (uintptr_t)worker->memory->window < (uintptr_t)1 << 32) {
    const tl_emu_block *block = tl_emu_block_at(worker, seen->address);
    made->shared_offset = (int64_t)(at - (uintptr_t)(block ? block->shared : worker->block->shared));
  } else if (at) {
    tl_strbuf place = {0};
    tl_emu_describe_global(worker->launch, seen->address, &place);
    made->place = tl_strbuf_take(&place);
  }
}

uint64_t tl_emu_block_of(const tl_emu_launch_state *launch, uint32_t owner, uint32_t rank) {
  const uint32_t *grid = launch->grid, *size = launch->cluster;
  uint32_t across = grid[0] / size[0], down = grid[1] / size[1];
  uint64_t x = (uint64_t)(owner % across) * size[0] + rank % size[0];
  uint64_t y = (uint64_t)(owner / across % down) * size[1] + rank / size[0] % size[1];
  uint64_t z = (uint64_t)(owner / across / down) * size[2] + rank / size[0] / size[1];
  return x + grid[0] * (y + grid[1] * z);
}

void tl_emu_found(tl_emu_sanitizer *checker, const tl_emu_seen *seen) {
  const tl_emu_actor *actor = seen->actor;
  const tl_emu_block *blocks = checker->cluster->blocks;
  uint32_t block_threads = checker->launch->num_threads;
  tl_emu_raw_finding made = {.kind = seen->kind,
                             .access = seen->access,
                             .now = actor->when | actor->flags | tl_emu_site_bits(checker, actor->site),
                             .before = seen->before,
                             .thread = actor->agent % block_threads,
                             .block = blocks[actor->agent / block_threads].index,
                             .before_thread = -1,
                             .address = seen->address,
                             .bytes = (uint32_t)seen->bytes,
                             .align = (uint32_t)seen->align,
                             .what = seen->what,
                             .sequence = checker->num_found++,
                             .count = 1};
  int64_t before = seen->before ? thread_of_epoch(checker, seen->before) : -1;
  made.tile = checker->agents[actor->agent].tile;
  if (before >= 0) {
    made.before_thread = before % block_threads;
    made.before_block = blocks[before / block_threads].index;
  }
  if (before >= 0 && seen->before_owner) {
    const tl_emu_launch_state *launch = checker->launch;
    uint32_t owner = seen->before_owner - 1;
    // The blocks of a persistent kernel, all in x, take turns at its tiles.
    made.before_tile = made.tile ? owner + 1 : 0;
    made.before_block =
        made.tile ? owner % launch->grid[0] : tl_emu_block_of(launch, owner, (uint32_t)before / block_threads);
  }
  // Texts are made for what is told only: some mistakes are made at every access.
  for (size_t i = 0; i < checker->found.len; i++) {
    tl_emu_raw_finding *there = &checker->found.items[i];
    if (!same_finding(there, &made)) continue;
    if (made.block < there->block) break;
    there->count++;
    return;
  }
  place_of(seen, &made);
  count(&checker->found, &made, MAX_PLACES, &checker->untold);
}

void tl_emu_async_unawaited(tl_emu_sanitizer *checker, const tl_emu_async *async) {
  if (!(checker->checks & TL_EMU_SANITIZE_ASYNC)) return;
  tl_emu_actor actor = {
      .when = (tl_emu_epoch)async->slot << TL_EMU_EPOCH_AGENT_SHIFT, .agent = async->issuer, .site = async->site};
  tl_emu_found(checker, &(tl_emu_seen){TL_EMU_FINDING_ASYNC, TL_EMU_WRITE, &actor, 0, NULL, 0, 0});
}

void tl_emu_sanitize_misuse(const char *what, const tl_emu_site *site) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker || !(checker->checks & TL_EMU_SANITIZE_ASYNC)) return;
  tl_emu_actor actor = tl_emu_actor_of_agent(checker, tl_emu_agent_here(tl_emu_self->current->thread), site);
  tl_emu_found(checker, &(tl_emu_seen){.kind = TL_EMU_FINDING_MISUSE, .actor = &actor, .what = what});
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // of every launch's list

bool tl_emu_sanitize_wrong_use(const char *what, const tl_emu_site *site) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker || !(checker->checks & TL_EMU_SANITIZE_ASYNC)) return false;
  tl_strbuf text = {0};
  tl_strbuf_appendf(&text, "%s; the launch ends here", what);
  tl_emu_actor actor = tl_emu_actor_of_agent(checker, tl_emu_agent_here(tl_emu_self->current->thread), site);
  tl_emu_found(checker, &(tl_emu_seen){.kind = TL_EMU_FINDING_MISUSE, .actor = &actor, .place = tl_strbuf_c(&text)});
  tl_strbuf_fini(&text);
  return true;
}

void tl_emu_hand_over(tl_emu_sanitizer *checker) {
  tl_emu_lock(&mutex);
  for (size_t i = 0; i < checker->found.len; i++)
    count(checker->launch->found, &checker->found.items[i], SIZE_MAX, NULL);
  checker->launch->untold += checker->untold;
  tl_emu_unlock(&mutex);
  tl_vec_fini(&checker->found);
}

// Whether the access's line touches the tile, or nothing is known of the line.
static bool is_of_line(const tl_emu_launch_state *launch, const tl_emu_site *site, uint32_t tile) {
  const tl_debug_info *debug = launch->debug;
  bool known = false;
  if (!site || !tl_debug_has_source(debug, site->file)) return true;
  for (uint32_t i = 0; i < debug->num_uses; i++) {
    if (debug->uses[i].line != site->line) continue;
    if (debug->uses[i].tile == tile) return true;
    known = true;
  }
  return !known;
}

bool tl_emu_is_padding(const tl_emu_launch_state *launch, const tl_emu_site *site, size_t offset, size_t bytes) {
  bool in_tile = false;
  for (size_t at = offset; at < offset + bytes; at++) {
    for (uint32_t i = 0; i < launch->debug->num_tiles; i++) {
      if (!is_of_line(launch, site, i)) continue;
      int64_t within = (int64_t)(at - launch->dynamic_offset);
      if (tl_debug_tile_has_element(&launch->debug->tiles[i], within)) return false;
      in_tile |= within >= launch->debug->tiles[i].offset &&
                 within < launch->debug->tiles[i].offset + launch->debug->tiles[i].bytes;
    }
  }
  return in_tile;
}

// ---- texts

static char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *format_text(const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tl_strbuf out = {0};
  tl_strbuf_append_c(&out, text);
  return tl_strbuf_take(&out);
}

static bool is_copy(const tl_emu_launch_state *launch, tl_emu_epoch epoch) {
  uint32_t agent = tl_emu_epoch_agent(epoch);
  uint32_t num_threads = launch->num_threads * launch->cluster_size;
  return agent >= num_threads && agent < 2 * num_threads;
}

static bool is_async(const tl_emu_launch_state *launch, tl_emu_epoch epoch) {
  return tl_emu_epoch_agent(epoch) >= launch->num_threads * launch->cluster_size;
}

static char *describe_agent(const tl_emu_launch_state *launch, tl_emu_epoch epoch, int64_t thread) {
  if (thread < 0) return format_text("an asynchronous operation");
  return format_text("%sthread %d (warp %d, lane %d)",
                     is_copy(launch, epoch)    ? "the copy of "
                     : is_async(launch, epoch) ? "the asynchronous operation of "
                                               : "",
                     (int)thread, (int)thread / TL_EMU_WARP, (int)thread % TL_EMU_WARP);
}

// A mark stands for the access before it (sanitize_elements.c).
static const char *op_name(const tl_emu_site *site, tl_emu_epoch epoch) {
  if (!site) return "access";
  if (strcmp(site->op, "tl.element") != 0) return site->op;
  if (epoch & TL_EMU_EPOCH_ATOMIC) return "atomic";
  return epoch & TL_EMU_EPOCH_READ ? "load" : "store";
}

static void fill_side(const tl_emu_launch_state *launch, tl_emu_epoch epoch, int64_t thread, uint64_t block,
                      uint32_t tile, tl_emu_finding_side *side) {
  const tl_emu_site *site = tl_emu_site_of(launch, epoch);
  side->op = format_text("%s", op_name(site, epoch));
  side->call = site && strcmp(site->op, side->op) == 0 ? site->ordinal : 0;
  side->line = site ? site->line : 0;
  if (site && site->file) {
    tl_str text = tl_debug_line(launch->debug, site->file, site->line);
    side->file = format_text("%s", site->file);
    if (text.data) side->text = format_text("%.*s", TL_STR_ARG(text));
    if (site->uses) side->uses = format_text("%s", site->uses);
  }
  side->agent = describe_agent(launch, epoch, thread);
  side->thread = (int32_t)thread;
  side->block[0] = (uint32_t)(block % launch->grid[0]);
  side->block[1] = (uint32_t)(block / launch->grid[0] % launch->grid[1]);
  side->block[2] = (uint32_t)(block / launch->grid[0] / launch->grid[1]);
  side->tile = (int64_t)tile - 1;
}

static bool same_words(const char *a, const char *b) {
  return a && b ? !strcmp(a, b) : a == b;
}

static bool same_line(const tl_emu_site *a, const tl_emu_site *b) {
  return a->line == b->line && same_words(a->file, b->file) && same_words(a->uses, b->uses);
}

// Whether both accesses are made by elements of one parallel of the spec, which nothing orders.
static bool in_one_parallel(const tl_emu_launch_state *launch, const tl_emu_raw_finding *raw) {
  const tl_emu_site *now = tl_emu_site_of(launch, raw->now), *before = tl_emu_site_of(launch, raw->before);
  if (!now || !before || !now->line || !same_words(now->file, before->file) || !same_words(now->uses, before->uses))
    return false;
  if (!tl_debug_has_source(launch->debug, now->file)) return false;
  return tl_debug_in_one_parallel(launch->debug, now->line, before->line);
}

// Whether both are atomics, and one of them is of a scope that may not hold the other.
static bool has_narrow_scope(const tl_emu_launch_state *launch, const tl_emu_raw_finding *raw) {
  const tl_emu_site *now = tl_emu_site_of(launch, raw->now), *before = tl_emu_site_of(launch, raw->before);
  bool are_atomic = raw->access >= TL_EMU_ATOMIC && (raw->before & TL_EMU_EPOCH_ATOMIC);
  return are_atomic && ((now && now->scope) || (before && before->scope));
}

static char *order_text(const tl_emu_launch_state *launch, const tl_emu_raw_finding *raw) {
  if (is_copy(launch, raw->before)) {
    if (raw->before_thread == (int64_t)raw->thread)
      return format_text("a wait (cp.async.wait_group) of the thread that covers the copy");
    return format_text("a wait (cp.async.wait_group) of thread %d that covers the copy, and a barrier after it",
                       (int)raw->before_thread);
  }
  if (is_async(launch, raw->before))
    return format_text("a wait for the completion of the operation that the other side started");
  if (is_async(launch, raw->now))
    return format_text("a barrier between the earlier access and the start of the operation");
  if (in_one_parallel(launch, raw))
    return format_text("an order: elements of one parallel have none; use `atomic`, or split the parallel in two");
  if (has_narrow_scope(launch, raw)) return format_text("a scope that holds both blocks, .cluster, .gpu or .sys");
  bool one_warp =
      raw->block == raw->before_block && raw->before_thread / TL_EMU_WARP == (int64_t)raw->thread / TL_EMU_WARP;
  return format_text(one_warp ? "a barrier between the two, or bar.warp.sync" : "a barrier between the two");
}

static char *inside_text(const tl_emu_launch_state *launch, const tl_emu_raw_finding *raw) {
  const tl_emu_site *site = tl_emu_site_of(launch, raw->now);
  if (raw->shared_offset < 0 && site && site->is_local) return format_text("an access inside a local variable");
  if (raw->shared_offset < 0) return format_text("an access inside a buffer");
  if (!site || !site->num_tiles) return format_text("an access inside shared memory");
  tl_strbuf text = {0};
  tl_strbuf_append_c(&text, "an access inside");
  for (uint32_t i = 0, n = 0; i < launch->debug->num_tiles; i++) {
    const tl_debug_tile *tile = &launch->debug->tiles[i];
    if (!is_of_line(launch, site, i)) continue;
    tl_strbuf_appendf(&text, "%s %s (bytes %lld to %lld)", n++ ? " or" : "", tile->name ? tile->name : "a tile",
                      (long long)tile->offset, (long long)(tile->offset + tile->bytes - 1));
  }
  return tl_strbuf_take(&text);
}

static char *missing_text(const tl_emu_launch_state *launch, const tl_emu_raw_finding *raw) {
  switch (raw->kind) {
    case TL_EMU_FINDING_RACE:
      return order_text(launch, raw);
    case TL_EMU_FINDING_PROXY:
      if (raw->block != raw->before_block)
        return format_text(
            "fence.proxy.async between the acquire and the operation, or between the write and the release");
      return format_text("fence.proxy.async of thread %d after its %s, before what orders the two",
                         (int)raw->before_thread, raw->before & TL_EMU_EPOCH_READ ? "read" : "write");
    case TL_EMU_FINDING_UNINITIALISED:
      if (raw->what) return format_text("a write of the element before the read");
      return format_text(raw->shared_offset >= 0 ? "a write by this block before the read" : "a write before the read");
    case TL_EMU_FINDING_BOUNDS:
      if (raw->what) return format_text("a barrier of the cluster between the access and the end of that block");
      return inside_text(launch, raw);
    case TL_EMU_FINDING_ALIGNMENT:
      return format_text("an address that is a multiple of %u; this one is %u past one", raw->align,
                         (uint32_t)((uintptr_t)raw->address & (raw->align - 1)));
    case TL_EMU_FINDING_BLOCKS:
      if (in_one_parallel(launch, raw))
        return format_text("an order: use `atomic`, or a release by the one %s and an acquire by the other",
                           raw->tile ? "tile" : "block");
      if (has_narrow_scope(launch, raw)) return format_text("a scope that holds both blocks, .gpu or .sys");
      return format_text(raw->tile ? "a release by the one tile and an acquire by the other, between the two"
                                   : "a release by the one block and an acquire by the other, between the two");
    case TL_EMU_FINDING_ASYNC:
      return format_text("a wait for it before the end of the block");
    case TL_EMU_FINDING_MISUSE:
    case TL_EMU_FINDING_COUNT:
      break;
  }
  return NULL;
}

static char *place_text(const tl_emu_launch_state *launch, const tl_emu_raw_finding *raw) {
  if (raw->kind == TL_EMU_FINDING_MISUSE) return NULL;  // its text is in the action
  if (raw->place) return format_text("%s", raw->place);
  if (!raw->address) return NULL;
  bool outside = raw->shared_offset < 0 || (size_t)raw->shared_offset + raw->bytes > launch->shared_bytes;
  if (raw->kind == TL_EMU_FINDING_BOUNDS && outside)
    return format_text("offset %lld of shared memory, which has %zu bytes", (long long)raw->shared_offset,
                       launch->shared_bytes);
  tl_strbuf place = {0};
  bool first = true;
  for (uint32_t i = 0; i < launch->debug->num_tiles; i++) {
    const tl_debug_tile *tile = &launch->debug->tiles[i];
    if (raw->kind != TL_EMU_FINDING_BOUNDS && !is_of_line(launch, tl_emu_site_of(launch, raw->now), i)) continue;
    tl_strbuf one = {0};
    if (tl_debug_tile_describe(tile, raw->shared_offset - (int64_t)launch->dynamic_offset, &one))
      tl_strbuf_appendf(&place, "%s%s", first ? "" : " or ", tl_strbuf_c(&one));
    first &= !one.len;
    tl_strbuf_fini(&one);
  }
  tl_strbuf_appendf(&place, first ? "shared memory, byte %lld" : " (shared memory, byte %lld)",
                    (long long)raw->shared_offset);
  return tl_strbuf_take(&place);
}

static const char *verb_of(tl_emu_access_kind kind) {
  return kind == TL_EMU_READ || kind == TL_EMU_ATOMIC_READ ? "reads" : kind == TL_EMU_WRITE ? "writes" : "updates";
}

static char *action_text(const tl_emu_raw_finding *raw) {
  switch (raw->kind) {
    case TL_EMU_FINDING_ASYNC:
      return format_text("starts what nobody waits for");
    case TL_EMU_FINDING_MISUSE:
      return format_text("breaks a rule: %s", raw->what ? raw->what : raw->place);
    case TL_EMU_FINDING_UNINITIALISED:
      if (raw->what) return format_text("reads what nobody wrote, and %s,", raw->what);
      break;
    case TL_EMU_FINDING_BOUNDS:
      if (raw->what) return format_text("%s", raw->what);
      break;
    case TL_EMU_FINDING_RACE:
    case TL_EMU_FINDING_PROXY:
    case TL_EMU_FINDING_ALIGNMENT:
    case TL_EMU_FINDING_BLOCKS:
    case TL_EMU_FINDING_COUNT:
      break;
  }
  return format_text("%s %u bytes%s%s", verb_of(raw->access), raw->bytes, raw->what ? " " : "",
                     raw->what ? raw->what : "");
}

static void make_finding(const tl_emu_launch_state *launch, const tl_emu_raw_finding *raw, tl_emu_finding *out) {
  *out = (tl_emu_finding){.kind = raw->kind, .count = raw->count};
  out->kernel = format_text("%s", launch->kernel_name);
  fill_side(launch, raw->now, raw->thread, raw->block, raw->tile, &out->now);
  out->now.action = action_text(raw);
  if (raw->before) {
    fill_side(launch, raw->before, raw->before_thread, raw->before_block, raw->before_tile, &out->before);
    const char *verb = raw->before & TL_EMU_EPOCH_READ     ? "read"
                       : raw->before & TL_EMU_EPOCH_ATOMIC ? "updated"
                                                           : "wrote";
    out->before.action = format_text("%s", verb);
  }
  out->place = place_text(launch, raw);
  out->missing = missing_text(launch, raw);
}

static int by_block(const void *left, const void *right) {
  const tl_emu_raw_finding *a = left, *b = right;
  if (a->block != b->block) return a->block < b->block ? -1 : 1;
  return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

// Whether `raw` is told of by `told`: the same kind at the same lines of the spec, of which each becomes many
// instructions and touches many elements.
static bool is_told(const tl_emu_launch_state *launch, const tl_emu_raw_finding *raw, const tl_emu_raw_finding *told) {
  if (told->kind != raw->kind || told->what != raw->what || raw->kind == TL_EMU_FINDING_MISUSE) return false;
  const tl_emu_site *now = tl_emu_site_of(launch, raw->now), *other = tl_emu_site_of(launch, told->now);
  if (!now || !other || !now->line || !same_line(now, other)) return false;
  if (raw->kind == TL_EMU_FINDING_UNINITIALISED && strcmp(now->op, other->op) != 0) return false;
  if (is_async(launch, raw->now) != is_async(launch, told->now)) return false;
  if (!raw->before || !told->before) return !raw->before == !told->before;
  if (is_async(launch, raw->before) != is_async(launch, told->before)) return false;
  now = tl_emu_site_of(launch, raw->before), other = tl_emu_site_of(launch, told->before);
  return now && other && same_line(now, other);
}

// Adds what `raw` touches to the places of `told`, of which the first few are named.
static void add_place(const tl_emu_launch_state *launch, const tl_emu_raw_finding *raw, tl_emu_finding *told) {
  enum { MAX_MORE = 3 };
  char *place = told->num_more < MAX_MORE ? place_text(launch, raw) : NULL;
  bool known = !place || same_words(place, told->place) || (told->more && strstr(told->more, place));
  if (!known) {
    tl_strbuf more = {0};
    tl_strbuf_appendf(&more, "%s%s%s", told->more ? told->more : "", told->more ? ", " : "", place);
    free(told->more);
    told->more = tl_strbuf_take(&more);
    told->num_more++;
  }
  free(place);
}

// Whether a finding that is told of already counts this one too.
static bool is_counted(const tl_emu_launch_state *launch, const tl_emu_raw_list *found, size_t which,
                       tl_emu_findings *out) {
  const tl_emu_raw_finding *raw = &found->items[which];
  for (size_t i = 0; i < which; i++) {
    const tl_emu_raw_finding *there = &found->items[i];
    if (there->sequence == UINT32_MAX || !is_told(launch, raw, there)) continue;
    tl_emu_finding *told = &out->list.items[there->sequence];
    told->count += raw->count;
    add_place(launch, raw, told);
    return true;
  }
  return false;
}

void tl_emu_report_found(tl_emu_launch_state *launch, tl_emu_findings *out) {
  out->untold += launch->untold;
  tl_emu_raw_list *found = launch->found;
  if (found->len) qsort(found->items, found->len, sizeof *found->items, by_block);
  for (size_t i = 0; i < found->len; i++) {
    tl_emu_raw_finding *raw = &found->items[i];
    if (is_counted(launch, found, i, out)) {
      raw->sequence = UINT32_MAX;
      free(raw->place);
      continue;
    }
    raw->sequence = (uint32_t)out->list.len;  // from now on: its number among what is told
    tl_emu_finding made;
    make_finding(launch, raw, &made);
    tl_vec_push(&out->list, made);
    free(raw->place);
  }
  tl_vec_fini(found);
}
