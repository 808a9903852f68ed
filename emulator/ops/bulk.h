// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asynchronous bulk transfers between issue and completion (PTX ISA: Asynchronous Operations, cp.async.bulk,
// cp.async.bulk.tensor, cp.reduce.async.bulk). The ops say which bytes go where, this says when. Private to the
// emulator.
//
// Completion by mbarrier: landing late, the destination is poison from issue on, and source and destination are only
// touched when the transfer lands: when no thread can run. Completion by group: the source is read at the thread's
// wait_group.read, the destination written at its wait_group, the latest moments that PTX allows. Landing early,
// everything happens at issue.
#ifndef TL_EMULATOR_BULK_H
#define TL_EMULATOR_BULK_H

#include "emulator/machine/elements.h"
#include "emulator/machine/hooks.h"
#include "emulator/machine/machine.h"
#include "emulator/sanitize/sanitize.h"

// Bytes that go together from one place to another.
typedef struct tl_emu_run {
  uint8_t *to;
  const uint8_t *from;  // NULL: the fill
  uint32_t bytes;
} tl_emu_run;

struct tl_emu_transfer {
  tl_emu_deferred deferred;  // first
  uint32_t refs;             // the machine's until it has landed, the queue's of its thread until that has waited
  tl_emu_run *runs;          // Owned.
  size_t num_runs, capacity;
  tl_tensormap_type type;  // of the elements
  tl_tensormap_fill fill;
  bool reduces;
  tl_emu_reduce_op op;
  void *mbarrier;  // that tells of the completion; NULL: its group does
  uint32_t tx_bytes;
  tl_emu_async *reader, *writer;  // Owned until they end. With an mbarrier the writer is both.
  // By group:
  uint32_t group;
  bool is_read, has_landed;
  uint8_t *data;                           // Owned. The source as it was when it was read
  tl_emu_clock *read_clock, *write_clock;  // released into when the source was read, the destination written
  tl_emu_transfer *next;                   // of the thread, in order of issue
};

// A transfer of the running thread without runs yet. The caller sets what it is and hands it over by issuing it.
tl_emu_transfer *tl_emu_transfer_create(const tl_emu_site *site);
// Appends a run, or makes the last one longer.
void tl_emu_transfer_add(tl_emu_transfer *transfer, void *to, const void *from, uint32_t bytes);
// Tells the checker that the transfer reads its sources (`side` is TL_EMU_SOURCE) or writes or updates its destinations
// as `async`, from now on. Runs that must not be made are emptied; loads then give 0xff there.
typedef enum tl_emu_side { TL_EMU_SOURCE, TL_EMU_DESTINATION } tl_emu_side;
void tl_emu_transfer_touch(tl_emu_transfer *transfer, tl_emu_async *async, tl_emu_side side);
// Starts it. It belongs to the machine from here on.
void tl_emu_transfer_issue(tl_emu_transfer *transfer);

// cp.async.bulk.commit_group and cp.async.bulk.wait_group of the running thread.
void tl_emu_bulk_commit(void);
void tl_emu_bulk_wait(uint32_t pending, bool only_reads);
// At the end of a thread: transfers whose source it did not wait for are reported; all of them still land.
extern const tl_emu_hooks tl_emu_bulk_hooks;

#endif
