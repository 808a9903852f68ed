// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that touch what they may not: the hardware says so, the handler makes the worker leave the fiber as if it had
// switched away, and the worker writes the report.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "emulator/machine/fiber.h"
#include "emulator/machine/machine.h"

#ifdef TL_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

enum { SIGNAL_STACK_BYTES = 64 << 10 };

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { NUM_CAUGHT = sizeof caught / sizeof caught[0] };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int users;                              // under the mutex
static struct sigaction previous[NUM_CAUGHT];  // as they were before the first user

// Not ours: the handler that was there before gets it when the instruction runs again.
static void pass_on(int signal) {
  for (int i = 0; i < NUM_CAUGHT; i++)
    if (caught[i] == signal) sigaction(signal, &previous[i], NULL);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
  tl_emu_worker *worker = tl_emu_self;
  bool sent = info->si_code <= 0;  // by a process: says nothing about the kernel, and no instruction will run again
  if (!worker || !worker->in_fiber || sent) {
    pass_on(signal);
    if (sent) raise(signal);
    return;
  }
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  worker->in_fiber = false;
  worker->fault.signal = signal;
  worker->fault.address = (uintptr_t)info->si_addr;
  worker->fault.wrote = registers[REG_ERR] & 2;  // page-fault error code, bit 1: a write
  worker->fault.no_address = signal == SIGSEGV && info->si_code == SI_KERNEL;
#ifdef TL_SANITIZED
  __sanitizer_start_switch_fiber(NULL, worker->main_bottom, worker->main_size);
#endif
  registers[REG_RSP] = (greg_t)(uintptr_t)worker->main_sp;
  registers[REG_RIP] = (greg_t)(uintptr_t)tl_emu_fiber_restore;
}

void tl_emu_faults_begin(void) {
  pthread_mutex_lock(&mutex);
  if (users++ == 0) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < NUM_CAUGHT; i++) sigaction(caught[i], &action, &previous[i]);
  }
  pthread_mutex_unlock(&mutex);
}

void tl_emu_faults_end(void) {
  pthread_mutex_lock(&mutex);
  if (--users == 0)
    for (int i = 0; i < NUM_CAUGHT; i++) sigaction(caught[i], &previous[i], NULL);
  pthread_mutex_unlock(&mutex);
}

void tl_emu_signal_stack_begin(tl_emu_signal_stack *stack) {
  stack_t old, own;
  memset(&own, 0, sizeof own);
  own.ss_sp = tl_xmalloc(SIGNAL_STACK_BYTES);
  own.ss_size = SIGNAL_STACK_BYTES;
  sigaltstack(&own, &old);
  stack->memory = own.ss_sp;
  stack->previous = tl_xmalloc(sizeof old);
  memcpy(stack->previous, &old, sizeof old);
}

void tl_emu_signal_stack_end(tl_emu_signal_stack *stack) {
  sigaltstack(stack->previous, NULL);
  free(stack->previous);
  free(stack->memory);
}

static void describe_fault_address(const tl_emu_worker *worker, uintptr_t address, tl_strbuf *out) {
  const tl_emu_memory *memory = worker->memory;
  uintptr_t window = (uintptr_t)memory->window;
  long stack = tl_emu_memory_guard_of(memory, address);
  if (stack >= 0) {
    tl_strbuf_appendf(out, "past the stack of thread %ld (%zu bytes): local memory overflow", stack,
                      tl_emu_stack_bytes());
  } else if (address >= window && address - window < (uintptr_t)1 << 32) {
    long long offset = (long long)address - (long long)(uintptr_t)worker->context.shared;
    tl_strbuf_appendf(out, "offset %lld of shared memory, which has %zu bytes", offset, worker->launch->shared_bytes);
  } else if (address < window && window - address <= (uintptr_t)1 << 20) {
    tl_strbuf_appendf(out, "%zu bytes below shared memory", (size_t)(window - address));
  } else {
    tl_emu_describe_address(address, out);
  }
}

void tl_emu_report_fault(tl_emu_worker *worker) {
  tl_emu_fault fault = {worker->fault.signal, worker->fault.wrote, worker->fault.no_address, worker->fault.address};
  const tl_emu_site *site = worker->access_site;
  tl_emu_describe_thread(worker->block, site ? worker->access_thread : worker->current->thread, &worker->report);
  tl_strbuf_append_c(&worker->report, ": ");
  if (site) {
    tl_emu_describe_site(site, &worker->report);
    tl_strbuf_append_c(&worker->report, ": ");
  }
  if (fault.signal == SIGFPE) {
    tl_strbuf_append_c(&worker->report, "integer division by zero or overflow");
  } else if (fault.signal == SIGILL) {
    tl_strbuf_append_c(&worker->report, "reached code that must not be reached");
  } else if (fault.no_address) {
    tl_strbuf_append_c(&worker->report, "misaligned access, or an address that is no address");
  } else {
    tl_strbuf_append_c(&worker->report, fault.wrote ? "invalid write " : "invalid read ");
    describe_fault_address(worker, fault.address, &worker->report);
  }
}
