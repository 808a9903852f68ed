// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Texts about the state of a block.
#include "emulator/machine.h"
#include "emulator/ops.h"

enum { MAX_DUMP_LINES = 40 };

void tl_emu_describe_site(const tl_emu_site *site, tl_strbuf *out) {
  tl_strbuf_append_c(out, site->op);
  tl_strbuf_appendf(out, " (call %u", site->ordinal);
  if (site->line) tl_strbuf_appendf(out, ", line %u", site->line);
  tl_strbuf_append_char(out, ')');
}

void tl_emu_describe_thread(const tl_emu_worker *worker, uint32_t thread, tl_strbuf *out) {
  tl_strbuf_appendf(out, "block (%u, %u, %u), thread %u (warp %u, lane %u)", worker->block[0], worker->block[1],
                    worker->block[2], thread, thread / TL_EMU_WARP, thread % TL_EMU_WARP);
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

// Lines that say where the lanes of one warp are; returns how many.
static int dump_warp(const tl_emu_worker *worker, const tl_emu_warp *warp, tl_strbuf *out) {
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
    const tl_emu_barrier *barrier = &worker->barriers[id];
    uint32_t waiting = barrier->waiting[warp->index];
    if (!waiting) continue;
    begin_line(warp, waiting, out);
    tl_strbuf_appendf(out, " wait at barrier %u, %u of %u threads arrived, ", id, barrier->arrived, barrier->expected);
    tl_emu_describe_site(worker->fibers[warp->index * TL_EMU_WARP + (uint32_t)__builtin_ctz(waiting)].site, out);
    tl_strbuf_append_char(out, '\n');
    lines++;
  }
  if (warp->runnable) {
    begin_line(warp, warp->runnable, out);
    tl_strbuf_append_c(out, " run");
    const tl_emu_site *site = worker->fibers[warp->index * TL_EMU_WARP + (uint32_t)__builtin_ctz(warp->runnable)].site;
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

void tl_emu_dump_block(const tl_emu_worker *worker, tl_strbuf *out) {
  int lines = 0;
  for (uint32_t w = 0; w < worker->num_warps; w++) {
    if (lines > MAX_DUMP_LINES) {
      tl_strbuf_appendf(out, "  … and %u more warps\n", worker->num_warps - w);
      return;
    }
    lines += dump_warp(worker, &worker->warps[w], out);
  }
}
