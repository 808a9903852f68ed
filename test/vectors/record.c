// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// record DIRECTORY [--ptx] [FILE…]: executes every instruction on the first GPU and writes the vectors there, those of
// the named files or all; with --ptx only the text of the kernels, for an assembler on a machine without a GPU. A GPU
// that refuses an instruction is of no more use to the process: it starts itself again with --from, the number of the
// vector that is next, and how many were refused so far.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"

static const char *directory;
static FILE *file;
static char **arguments;                // names of files, up to NULL
static unsigned number, from, refused;  // vectors so far, the first that is to be recorded
static bool text_only, unwanted;        // unwanted: the file is none of those that were named

static void close_file(void) {
  if (file && fclose(file)) {
    perror("record");
    exit(1);
  }
  file = NULL;
}

void rec_file(const char *name) {
  char path[512];
  close_file();
  unwanted = arguments[0] != NULL;
  for (char **wanted = arguments; *wanted; wanted++)
    if (!strcmp(*wanted, name)) unwanted = false;
  if (text_only || unwanted) return;
  snprintf(path, sizeof path, "%s/%s.vec", directory, name);
  bool again = number < from;
  file = fopen(path, again ? "ab" : "wb");
  if (!file) {
    fprintf(stderr, "record: %s: %s\n", path, strerror(errno));
    exit(1);
  }
  if (!again) fputs("tl-vectors 1\n", file);
}

static void put_bytes(const char *key, const void *bytes, size_t count) {
  fprintf(file, "%s %zu\n", key, count);
  if (count) fwrite(bytes, 1, count, file);
  fputc('\n', file);
}

// Slots lose the bytes that their type does not have.
static void put_slots(const char *key, const rec_vector *v, const uint64_t *slots, int first, int count) {
  size_t bytes = 0, threads = (size_t)v->threads * v->blocks;
  uint8_t *packed = malloc(threads * (size_t)(count ? count : 1) * 8);
  if (!packed) abort();
  for (size_t thread = 0; thread < threads; thread++) {
    for (int i = 0; i < count; i++) {
      size_t size = (size_t)rec_letter_bytes(rec_letter(v->signature, first + i));
      memcpy(packed + bytes, &slots[thread * (size_t)count + (size_t)i], size);
      bytes += size;
    }
  }
  put_bytes(key, packed, bytes);
  free(packed);
}

// Without an "after" where nothing has changed.
static void put_memory(const char *key, const void *before, const void *after, size_t count) {
  char name[32];
  if (!count) return;
  snprintf(name, sizeof name, "%s-before", key);
  put_bytes(name, before, count);
  if (!memcmp(before, after, count)) return;
  snprintf(name, sizeof name, "%s-after", key);
  put_bytes(name, after, count);
}

static void put_map(const rec_map *m) {
  fprintf(file, "map %u %u", m->type, m->rank);
  for (uint32_t i = 0; i < m->rank; i++) fprintf(file, " %llu", (unsigned long long)m->dims[i]);
  for (uint32_t i = 0; i + 1 < m->rank; i++) fprintf(file, " %llu", (unsigned long long)m->strides[i]);
  for (uint32_t i = 0; i < m->rank; i++) fprintf(file, " %u", m->box[i]);
  for (uint32_t i = 0; i < m->rank; i++) fprintf(file, " %u", m->steps[i]);
  fprintf(file, " %u %u %u", m->interleave, m->swizzle, m->fill);
  if (m->is_im2col) {
    fputs(" im2col", file);
    for (uint32_t i = 0; i + 2 < m->rank; i++) fprintf(file, " %d", m->lower[i]);
    for (uint32_t i = 0; i + 2 < m->rank; i++) fprintf(file, " %d", m->upper[i]);
    fprintf(file, " %u %u", m->channels, m->pixels);
  }
  fputc('\n', file);
}

static void put_vector(const rec_vector *v, const uint64_t *out, const uint8_t *shared, const uint8_t *global) {
  int results = rec_results(v->signature);
  fprintf(file, "op %s %s\n", v->name, v->signature);
  fprintf(file, "ptx %s\n", v->body);
  if (v->setting) fprintf(file, "setting %s\n", v->setting);
  fprintf(file, "shape %u %u\n", v->threads, v->blocks);
  if (v->map) put_map(v->map);
  put_slots("in", v, v->in, results, rec_arguments(v->signature));
  put_slots("out", v, out, 0, results);
  put_memory("shared", v->shared, shared, (size_t)v->shared_bytes * v->blocks);
  put_memory("global", v->global, global, v->global_bytes);
  fputs("end\n", file);
}

static void *copy_of(const void *bytes, size_t count) {
  void *copy = malloc(count ? count : 1);
  if (!copy) abort();
  if (count) memcpy(copy, bytes, count);
  return copy;
}

static void start_again(void) {
  enum { MAX_ARGUMENTS = 64 };
  char name[] = "record", option[] = "--from", next[16], so_far[16];
  char *again[MAX_ARGUMENTS] = {name, (char *)(uintptr_t)directory, option, next, so_far};
  close_file();
  snprintf(next, sizeof next, "%u", number);
  snprintf(so_far, sizeof so_far, "%u", refused);
  for (int i = 0; arguments[i] && i < MAX_ARGUMENTS - 6; i++) again[5 + i] = arguments[i];
  execv("/proc/self/exe", again);
  perror("record");
  exit(1);
}

void rec_run(const rec_vector *vector) {
  rec_vector v = *vector;
  if (unwanted || number++ < from) return;
  if (!v.threads) v.threads = 32;
  if (!v.blocks) v.blocks = 1;
  char *ptx = rec_ptx(&v);
  uint64_t *out = calloc((size_t)v.threads * v.blocks * (size_t)rec_results(v.signature) + 1, 8);
  uint8_t *shared = copy_of(v.shared, (size_t)v.shared_bytes * v.blocks), *global = copy_of(v.global, v.global_bytes);
  if (!out) abort();
  bool lost;
  if (rec_device_run(ptx, &v, out, shared, global, &lost)) {
    if (!text_only) put_vector(&v, out, shared, global);
  } else {
    fprintf(stderr, "record: refused: %s (%s) %s\n", v.name, v.setting ? v.setting : "", v.body);
    refused++;
    if (lost) start_again();
  }
  free(out);
  free(shared);
  free(global);
  free(ptx);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: record DIRECTORY [--ptx] [FILE...]\n");
    return 2;
  }
  directory = argv[1];
  text_only = argc > 2 && !strcmp(argv[2], "--ptx");
  bool again = argc > 4 && !strcmp(argv[2], "--from");
  arguments = argv + 2 + text_only + 3 * again;
  if (again) from = (unsigned)strtoul(argv[3], NULL, 10), refused = (unsigned)strtoul(argv[4], NULL, 10);
  if (!rec_device_open(text_only ? directory : NULL)) return 1;
  rec_all_mma();
  rec_all_mma_sparse();
  rec_all_warp();
  rec_all_block();
  rec_all_mbarrier();
  rec_all_math();
  rec_all_memory();
  rec_all_wgmma();
  rec_all_tma();
  rec_all_tma_forms();
  rec_all_bulk();
  rec_all_scalar();
  rec_all_access();
  close_file();
  printf("record: %u vectors, %u of them refused\n", number, refused);
  return refused != 0;
}
