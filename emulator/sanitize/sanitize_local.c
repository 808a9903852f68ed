// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The local variables of a thread of PTX (.local, alloca): they lie in the fiber's stack, and say so when they begin.
// An access to the stack outside of all of them is out of bounds; which of their bytes nobody wrote is followed as in
// shared memory (sanitize_undefined.c).
#include <stdlib.h>
#include <string.h>

#include "emulator/machine/args.h"
#include "emulator/sanitize/sanitizer.h"

// A variable, or where a function began (without a start).
typedef struct local_variable {
  uint8_t *start;
  size_t bytes;
  uint8_t *bits;    // Owned. Set where a bit is undefined
  uint32_t origin;  // of the undefined value that was stored last; 0: nothing was
} local_variable;

struct tl_emu_locals {
  TL_VEC(local_variable) variables;
};

static tl_emu_locals *locals_here(const tl_emu_sanitizer *checker, bool makes) {
  tl_emu_agent *agent = &checker->agents[tl_emu_agent_here(tl_emu_self->current->thread)];
  if (!agent->locals && makes) agent->locals = tl_xcalloc(1, sizeof *agent->locals);
  return agent->locals;
}

void tl_emu_op_local_enter(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  (void)operands;
  (void)site;
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (checker) tl_vec_push(&locals_here(checker, true)->variables, (local_variable){0});
}

void tl_emu_op_local_begin(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  (void)site;
  tl_emu_args args = {operands, 0};
  uint8_t *start = tl_emu_args_pointer(&args);
  size_t bytes = tl_emu_args_i64(&args);
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (!checker) return;
  local_variable variable = {.start = start, .bytes = bytes, .bits = tl_xmalloc(bytes + 1)};
  memset(variable.bits, 0xff, bytes);
  tl_vec_push(&locals_here(checker, true)->variables, variable);
}

// Ends what began since the function was entered. True: it was one.
static bool pop(tl_emu_locals *locals) {
  local_variable last = tl_vec_pop(&locals->variables);
  free(last.bits);
  return !last.start;
}

void tl_emu_op_local_leave(void *result, const void *operands, const tl_emu_site *site) {
  (void)result;
  (void)operands;
  (void)site;
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  tl_emu_locals *locals = checker ? locals_here(checker, false) : NULL;
  while (locals && locals->variables.len && !pop(locals)) {
  }
}

void tl_emu_locals_destroy(tl_emu_locals *locals) {
  if (!locals) return;
  while (locals->variables.len) pop(locals);
  tl_vec_fini(&locals->variables);
  free(locals);
}

static local_variable *find(const tl_emu_locals *locals, const uint8_t *address, size_t bytes) {
  for (size_t i = locals ? locals->variables.len : 0; i-- > 0;) {
    local_variable *variable = &locals->variables.items[i];
    size_t offset = (size_t)(address - variable->start);
    if (variable->start && offset < variable->bytes && bytes <= variable->bytes - offset) return variable;
  }
  return NULL;
}

void tl_emu_describe_local(const tl_emu_sanitizer *checker, const void *address, tl_strbuf *out) {
  const tl_emu_locals *locals = locals_here(checker, false);
  const local_variable *best = NULL;
  int64_t best_away = INT64_MAX;
  for (size_t i = 0; locals && i < locals->variables.len; i++) {
    const local_variable *variable = &locals->variables.items[i];
    int64_t offset = (int64_t)((intptr_t)address - (intptr_t)variable->start), size = (int64_t)variable->bytes;
    int64_t away = offset < 0 ? -offset : offset >= size ? offset - size : 0;
    if (!variable->start || away >= best_away) continue;
    best = variable;
    best_away = away;
  }
  if (!best) {
    tl_strbuf_append_c(out, "local memory");
    return;
  }
  int64_t offset = (int64_t)((intptr_t)address - (intptr_t)best->start);
  tl_strbuf_appendf(out, "byte %lld of a local variable of %zu bytes", (long long)offset, best->bytes);
}

bool tl_emu_locals_access(tl_emu_sanitizer *checker, const tl_emu_actor *actor, const void *address, size_t bytes,
                          tl_emu_access_kind kind) {
  const tl_emu_locals *locals = locals_here(checker, false);
  if (!locals || !locals->variables.len) return true;
  local_variable *variable = find(locals, address, bytes);
  if (!variable) {
    if (!actor->site->is_local || !(checker->checks & TL_EMU_SANITIZE_BOUNDS)) return true;
    tl_strbuf place = {0};
    tl_emu_describe_local(checker, address, &place);
    tl_emu_found(checker, &(tl_emu_seen){.kind = TL_EMU_FINDING_BOUNDS,
                                         .access = kind,
                                         .actor = actor,
                                         .bytes = bytes,
                                         .place = tl_strbuf_c(&place)});
    tl_strbuf_fini(&place);
    return false;
  }
  bool writes = kind != TL_EMU_READ && kind != TL_EMU_ATOMIC_READ;
  if (writes) memset(variable->bits + ((const uint8_t *)address - variable->start), 0, bytes);
  return true;
}

bool tl_emu_locals_load(const tl_emu_sanitizer *checker, const void *address, void *bits, uint32_t bytes,
                        uint32_t *out_origin, bool *out_unwritten) {
  const local_variable *variable = find(locals_here(checker, false), address, bytes);
  if (!variable) return false;
  const uint8_t *from = variable->bits + ((const uint8_t *)address - variable->start);
  memcpy(bits, from, bytes);
  for (uint32_t i = 0; i < bytes; i++) *out_unwritten |= from[i] != 0;
  *out_origin = variable->origin;
  return true;
}

bool tl_emu_locals_store(const tl_emu_sanitizer *checker, const void *address, const void *bits, uint32_t bytes,
                         uint32_t origin) {
  local_variable *variable = find(locals_here(checker, false), address, bytes);
  if (!variable) return false;
  memcpy(variable->bits + ((const uint8_t *)address - variable->start), bits, bytes);
  if (origin) variable->origin = origin;
  return true;
}
