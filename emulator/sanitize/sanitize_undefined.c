// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What code with shadows (undefined.h) calls: findings, and the shadow of shared memory, which exists only where a
// value that nobody wrote may be stored there.
#include <stdlib.h>
#include <string.h>

#include "emulator/sanitize/sanitizer.h"

void tl_emu_op_undefined(void *result, const void *args, const tl_emu_site *site) {
  (void)result;
  (void)args;
  tl_emu_fail("%s: left in the module", site->op);  // retargeting replaces every one
}

uint32_t tl_emu_undefined_thread(void) {
  return (uint32_t)tl_emu_self->current->thread << TL_EMU_ORIGIN_THREAD_SHIFT;
}

static void describe_origin(const tl_debug_info *debug, uint32_t origin, tl_strbuf *out) {
  uint32_t variable = origin >> TL_EMU_ORIGIN_VARIABLE_SHIFT, element = origin & TL_EMU_ORIGIN_ELEMENTS;
  uint32_t thread = origin >> TL_EMU_ORIGIN_THREAD_SHIFT & (TL_EMU_MAX_THREADS - 1);
  if (!variable || variable > debug->num_variables || variable == TL_EMU_ORIGIN_VARIABLES)
    tl_strbuf_append_c(out, "a register");
  else
    tl_debug_variable_describe(&debug->variables[variable - 1], element, thread, out);
}

// The finding is the read.
static void tell_read(tl_emu_sanitizer *checker, tl_emu_unwritten *read) {
  if (read->told) return;
  read->told = true;
  tl_emu_actor actor = tl_emu_actor_of_agent(checker, read->agent, read->site);
  tl_emu_found(checker, &(tl_emu_seen){.kind = TL_EMU_FINDING_UNINITIALISED,
                                       .access = TL_EMU_READ,
                                       .actor = &actor,
                                       .address = read->address,
                                       .bytes = read->site->bytes,
                                       .place = read->place});
}

static void tell(tl_emu_sanitizer *checker, const tl_emu_actor *actor, uint32_t origin, const char *what) {
  if (origin && origin <= checker->unwritten.len) {
    tell_read(checker, &checker->unwritten.items[origin - 1]);
    return;
  }
  tl_strbuf place = {0};
  describe_origin(checker->launch->debug, origin, &place);
  tl_emu_found(checker, &(tl_emu_seen){.kind = TL_EMU_FINDING_UNINITIALISED,
                                       .access = TL_EMU_READ,
                                       .actor = actor,
                                       .what = what,
                                       .place = tl_strbuf_c(&place)});
  tl_strbuf_fini(&place);
}

void tl_emu_undefined_use(uint32_t is_undefined, const tl_emu_site *site, uint32_t origin) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  if (__builtin_expect(!is_undefined, 1) || !checker || !(checker->checks & TL_EMU_SANITIZE_INIT)) return;
  tl_emu_actor actor = tl_emu_actor_of_agent(checker, tl_emu_agent_here(tl_emu_self->current->thread), site);
  tell(checker, &actor, origin, site->what);
}

// ---- shared memory

struct tl_emu_undefined {
  uint8_t *bits;      // of the blocks, by rank: set where a bit is undefined
  uint32_t *origins;  // one for each byte
};

tl_emu_undefined *tl_emu_undefined_create(const tl_emu_launch_state *launch) {
  if (!launch->follows_undefined || !(launch->checks & TL_EMU_SANITIZE_INIT)) return NULL;
  tl_emu_undefined *made = tl_xcalloc(1, sizeof *made);
  made->bits = tl_xcalloc(launch->shared_bytes * launch->cluster_size + 1, 1);
  made->origins = tl_xcalloc(launch->shared_bytes * launch->cluster_size + 1, sizeof *made->origins);
  return made;
}

void tl_emu_undefined_destroy(tl_emu_undefined *undefined) {
  if (!undefined) return;
  free(undefined->bits);
  free(undefined->origins);
  free(undefined);
}

void tl_emu_undefined_begin(const tl_emu_sanitizer *checker) {
  const tl_emu_launch_state *launch = checker->launch;
  if (checker->undefined) memset(checker->undefined->bits, 0, launch->shared_bytes * launch->cluster_size);
}

void tl_emu_undefined_access(tl_emu_sanitizer *checker, const tl_emu_actor *actor, size_t at, size_t bytes,
                             tl_emu_access_kind kind) {
  const tl_emu_undefined *undefined = checker->undefined;
  bool reads = kind != TL_EMU_WRITE && kind != TL_EMU_ATOMIC_WRITE;
  bool matters = actor->site->binding || kind >= TL_EMU_ATOMIC;  // else the loaded value has its shadow
  for (size_t i = at; reads && matters && i < at + bytes; i++) {
    if (!undefined->bits[i]) continue;
    tell(checker, actor, undefined->origins[i], "loads it");
    break;
  }
  if (kind != TL_EMU_READ && kind != TL_EMU_ATOMIC_READ) memset(undefined->bits + at, 0, bytes);
}

// Where the bytes of shared memory of the running cluster have their shadow; SIZE_MAX: they are no such bytes.
static size_t shadow_of(const tl_emu_sanitizer *checker, const uint8_t *address, uint32_t bytes) {
  const tl_emu_block *block = tl_emu_block_at(tl_emu_self, address);
  size_t size = checker->launch->shared_bytes;
  if (!block || block->cluster != checker->cluster) return SIZE_MAX;
  size_t offset = (size_t)(address - block->shared);
  return offset < size && bytes <= size - offset ? block->rank * size + offset : SIZE_MAX;
}

// The origin of a read that nobody wrote at `address`.
static uint32_t remember(tl_emu_sanitizer *checker, uint32_t agent, const uint8_t *address) {
  enum { MAX_READS = 1 << 20 };
  tl_emu_unwritten read = {.site = checker->followed, .address = address, .agent = agent};
  if (checker->unwritten.len < MAX_READS) {
    tl_vec_push(&checker->unwritten, read);
    return (uint32_t)checker->unwritten.len;
  }
  size_t at = checker->next_unwritten++ % MAX_READS;
  free(checker->unwritten.items[at].place);
  checker->unwritten.items[at] = read;
  return (uint32_t)at + 1;
}

void tl_emu_undefined_forget(tl_emu_sanitizer *checker) {
  for (size_t i = 0; i < checker->unwritten.len; i++) free(checker->unwritten.items[i].place);
  checker->unwritten.len = checker->next_unwritten = 0;
}

// The same of local memory, whose variable may be gone when it is told.
static uint32_t remember_local(tl_emu_sanitizer *checker, const uint8_t *address) {
  tl_strbuf place = {0};
  uint32_t origin = remember(checker, tl_emu_agent_here(tl_emu_self->current->thread), address);
  tl_emu_describe_local(checker, address, &place);
  checker->unwritten.items[origin - 1].place = tl_strbuf_take(&place);
  return origin;
}

static uint32_t load_local(tl_emu_sanitizer *checker, const uint8_t *address, uint8_t *bits, uint32_t bytes,
                           bool *out_is_local) {
  uint32_t origin = 0;
  bool unwritten = false;
  *out_is_local = tl_emu_locals_load(checker, address, bits, bytes, &origin, &unwritten);
  if (!unwritten) return 0;
  return origin || !checker->followed ? origin : remember_local(checker, address);
}

// Sets the bits of what nobody wrote; returns the origin, or 0.
static uint32_t load_unwritten(tl_emu_sanitizer *checker, const uint8_t *address, uint8_t *bits, uint32_t bytes) {
  const tl_emu_block *block = tl_emu_block_at(tl_emu_self, address);
  uint32_t agent = tl_emu_agent_here(tl_emu_self->current->thread), origin = 0;
  size_t offset = (size_t)(address - block->shared);
  for (uint32_t i = 0, step; i < bytes; i += step) {
    step = checker->granule - (uint32_t)((offset + i) & (checker->granule - 1));
    if (step > bytes - i) step = bytes - i;
    if (!tl_emu_is_unwritten(checker, agent, block, offset + i)) continue;
    memset(bits + i, 0xff, step);
    if (!origin) origin = remember(checker, agent, address + i);
  }
  return origin;
}

uint32_t tl_emu_undefined_load(const void *address, void *bits, uint32_t bytes) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  memset(bits, 0, bytes);
  bool follows = checker && (checker->checks & TL_EMU_SANITIZE_INIT);
  bool is_local = false;
  uint32_t local = follows ? load_local(checker, address, bits, bytes, &is_local) : 0;
  if (is_local) return local;
  size_t at = follows ? shadow_of(checker, address, bytes) : SIZE_MAX;
  if (at == SIZE_MAX) return 0;
  const tl_emu_undefined *undefined = checker->undefined;
  uint32_t origin = 0;
  if (undefined) {
    memcpy(bits, undefined->bits + at, bytes);
    for (uint32_t i = 0; i < bytes && !origin; i++)
      if (undefined->bits[at + i]) origin = undefined->origins[at + i];
  }
  uint32_t unwritten = checker->followed ? load_unwritten(checker, address, bits, bytes) : 0;
  return origin ? origin : unwritten;
}

void tl_emu_undefined_store(const void *address, const void *bits, uint32_t bytes, uint32_t origin) {
  tl_emu_sanitizer *checker = tl_emu_sanitizer_here();
  const tl_emu_undefined *undefined = checker ? checker->undefined : NULL;
  if (checker && tl_emu_locals_store(checker, address, bits, bytes, origin)) return;
  size_t at = undefined ? shadow_of(checker, address, bytes) : SIZE_MAX;
  if (at == SIZE_MAX) return;
  memcpy(undefined->bits + at, bits, bytes);
  for (uint32_t i = 0; i < bytes; i++) undefined->origins[at + i] = origin;
}
