// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Texts about the state of a block.
#include "emulator/machine/machine.h"

enum { MAX_DUMP_LINES = 40, MAX_DUMP_BLOCKS = 8 };

void tl_emu_describe_site(const tl_emu_site *site, tl_strbuf *out) {
  tl_strbuf_append_c(out, site->op);
  tl_strbuf_appendf(out, " (call %u", site->ordinal);
  if (site->line && site->file) {
    tl_strbuf_appendf(out, ", %s:%u", site->file, site->line);
  } else if (site->line) {
    tl_strbuf_appendf(out, ", line %u", site->line);
  }
  tl_strbuf_append_char(out, ')');
}

static void describe_block(const tl_emu_block *block, tl_strbuf *out) {
  tl_strbuf_appendf(out, "block (%u, %u, %u)", block->position[0], block->position[1], block->position[2]);
}

void tl_emu_describe_thread(const tl_emu_block *block, uint32_t thread, tl_strbuf *out) {
  describe_block(block, out);
  tl_strbuf_appendf(out, ", thread %u (warp %u, lane %u)", thread, thread / TL_EMU_WARP, thread % TL_EMU_WARP);
}

// "lanes 0-4, 9"
static void describe_lanes(uint32_t mask, tl_strbuf *out) {
  tl_strbuf_append_c(out, "lanes ");
  bool first = true;
  for (uint32_t lane = 0; lane < TL_EMU_WARP; lane++) {
    if (!(mask >> lane & 1)) continue;
    uint32_t last = lane;
    while (last + 1 < TL_EMU_WARP && (mask >> (last + 1) & 1)) last++;
    tl_strbuf_appendf(out, last > lane ? "%s%u-%u" : "%s%u", first ? "" : ", ", lane, last);
    first = false;
    lane = last;
  }
}

static void begin_line(const tl_emu_warp *warp, uint32_t mask, tl_strbuf *out) {
  tl_strbuf_appendf(out, "  warp %u ", warp->index);
  describe_lanes(mask, out);
}

// Lanes that wait for something, those for the same in one line.
static int dump_parked(const tl_emu_block *block, const tl_emu_warp *warp, tl_strbuf *out) {
  const tl_emu_fiber *fibers = &block->fibers[warp->index * TL_EMU_WARP];
  uint32_t rest = warp->exist & ~warp->runnable & ~warp->exited;
  int lines = 0;
  while (rest) {
    const tl_emu_fiber *first = &fibers[__builtin_ctz(rest)];
    uint32_t same = 0;
    TL_EMU_FOR_LANES(lane, rest) {
      if (fibers[lane].waits_for == first->waits_for && fibers[lane].site == first->site) same |= 1u << lane;
    }
    rest &= ~same;
    if (!first->waits_for) continue;
    begin_line(warp, same, out);
    tl_strbuf_append_c(out, " wait at ");
    first->describe_wait(first, out);
    tl_strbuf_append_c(out, ", ");
    tl_emu_describe_site(first->site, out);
    tl_strbuf_append_char(out, '\n');
    lines++;
  }
  return lines;
}

// ", in the loop at spec.yaml:15 (while: n < 1)"
static void describe_loop(const tl_emu_launch_state *launch, const tl_emu_site *loop, tl_strbuf *out) {
  if (!loop->line || !loop->file) return;
  tl_strbuf_appendf(out, ", in the loop at %s:%u", loop->file, loop->line);
  tl_str text = launch->debug ? tl_str_trim(tl_debug_line(launch->debug, loop->file, loop->line)) : (tl_str){0};
  if (text.len > 2 && tl_str_is(tl_str_sub(text, 0, 2), "- ")) text = tl_str_trim(tl_str_sub(text, 2, text.len));
  if (text.len) tl_strbuf_appendf(out, " (%.*s)", TL_STR_ARG(text));
}

// Lines that say where the lanes of one warp are; returns how many.
static int dump_warp(const tl_emu_block *block, const tl_emu_warp *warp, tl_strbuf *out) {
  int lines = 0;
  for (int i = 0; i < TL_EMU_MAX_MEETINGS; i++) {
    const tl_emu_meeting *meeting = &warp->meetings[i];
    if (!meeting->arrived) continue;
    begin_line(warp, meeting->arrived, out);
    tl_strbuf_append_c(out, " wait at ");
    tl_emu_describe_site(meeting->site, out);
    tl_strbuf_append_c(out, " for ");
    describe_lanes(meeting->mask & ~meeting->arrived, out);
    tl_strbuf_append_char(out, '\n');
    lines++;
  }
  for (uint32_t id = 0; id < TL_EMU_NUM_BARRIERS; id++) {
    const tl_emu_barrier *barrier = &block->barriers[id];
    uint32_t waiting = barrier->waiting[warp->index];
    if (!waiting) continue;
    begin_line(warp, waiting, out);
    tl_strbuf_appendf(out, " wait at barrier %u, %u of %u threads arrived, ", id, barrier->arrived, barrier->expected);
    tl_emu_describe_site(block->fibers[warp->index * TL_EMU_WARP + (uint32_t)__builtin_ctz(waiting)].site, out);
    tl_strbuf_append_char(out, '\n');
    lines++;
  }
  lines += dump_parked(block, warp, out);
  if (warp->runnable) {
    begin_line(warp, warp->runnable, out);
    tl_strbuf_append_c(out, " run");
    const tl_emu_fiber *fiber = &block->fibers[warp->index * TL_EMU_WARP + (uint32_t)__builtin_ctz(warp->runnable)];
    const tl_emu_site *site = fiber->site;
    if (fiber->loop) describe_loop(block->worker->launch, fiber->loop, out);
    if (site) {
      tl_strbuf_append_c(out, ", last at ");
      tl_emu_describe_site(site, out);
    }
    tl_strbuf_append_char(out, '\n');
    lines++;
  }
  if (warp->exited) {
    begin_line(warp, warp->exited, out);
    tl_strbuf_append_c(out, " exited\n");
    lines++;
  }
  return lines;
}

// Who waits where, one line a group of lanes.
static void dump_block(const tl_emu_block *block, tl_strbuf *out) {
  uint32_t num_warps = block->worker->num_warps;
  int lines = 0;
  for (uint32_t w = 0; w < num_warps; w++) {
    if (lines > MAX_DUMP_LINES) {
      tl_strbuf_appendf(out, "  … and %u more warps\n", num_warps - w);
      return;
    }
    lines += dump_warp(block, &block->warps[w], out);
  }
}

// The blocks of a worker that still run, one after the other, and what the launch has not begun.
static void dump_worker(const tl_emu_worker *worker, tl_strbuf *out) {
  const tl_emu_launch_state *launch = worker->launch;
  const tl_emu_block *first = worker->block;
  dump_block(first, out);
  for (uint32_t i = 1, shown = 1; i < worker->num_blocks; i++) {
    const tl_emu_block *block = &worker->blocks[(first->slot + i) % worker->num_blocks];
    if (!block->num_live) continue;
    if (++shown > MAX_DUMP_BLOCKS) {
      tl_strbuf_append_c(out, "… and more blocks\n");
      break;
    }
    describe_block(block, out);
    tl_strbuf_append_c(out, "\n");
    dump_block(block, out);
  }
  // Threads that only wait for others of their cluster do not miss a block; those that go round a loop may.
  bool loops = worker->num_given_up != 0;
  for (uint32_t i = 0; i < worker->num_blocks; i++)
    for (uint32_t w = 0; w < worker->num_warps; w++) loops |= worker->blocks[i].warps[w].runnable != 0;
  if (!loops) return;
  uint64_t begun = __atomic_load_n(&launch->next_cluster, __ATOMIC_RELAXED);
  if (begun >= launch->num_clusters) return;
  uint32_t position[3];
  tl_emu_cluster_position(launch, begun, position);
  tl_strbuf_appendf(out,
                    "block (%u, %u, %u) is not resident: %llu of %llu blocks were begun. Blocks that wait for later "
                    "ones must be resident with them (resident is %u)\n",
                    position[0] * launch->cluster[0], position[1] * launch->cluster[1],
                    position[2] * launch->cluster[2], (unsigned long long)begun * launch->cluster_size,
                    (unsigned long long)launch->num_clusters * launch->cluster_size, launch->resident);
}

void tl_emu_report_deadlock(tl_emu_worker *worker) {
  describe_block(worker->block, &worker->report);
  tl_strbuf_append_c(&worker->report, ": deadlock, no thread can go on\n");
  dump_worker(worker, &worker->report);
}

void tl_emu_report_livelock(tl_emu_worker *worker) {
  describe_block(worker->block, &worker->report);
  tl_strbuf_appendf(&worker->report, ": still running after %g s (livelock?)\n", worker->launch->timeout_s);
  dump_worker(worker, &worker->report);
}
