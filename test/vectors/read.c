// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads a file of vectors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vector.h"

__attribute__((noreturn)) static void fail(const char *path, const char *problem) {
  fprintf(stderr, "%s: %s\n", path, problem);
  exit(2);
}

tv_file tv_open(const char *path) {
  FILE *stream = fopen(path, "rb");
  if (!stream || fseek(stream, 0, SEEK_END)) fail(path, "cannot be read");
  long size = ftell(stream);
  tv_file file = {.data = malloc((size_t)size + 1)};
  rewind(stream);
  if (!file.data || fread(file.data, 1, (size_t)size, stream) != (size_t)size) fail(path, "cannot be read");
  fclose(stream);
  file.data[size] = 0;
  file.end = file.data + size;
  static const char magic[] = "tl-vectors 1\n";
  if (strncmp(file.data, magic, strlen(magic))) fail(path, "is no file of vectors");
  file.at = file.data + strlen(magic);
  return file;
}

void tv_close(tv_file *file) {
  free(file->data);
  *file = (tv_file){0};
}

// The next line, cut into its first word and the rest.
static char *next_line(tv_file *file, char **rest) {
  char *line = file->at, *end = memchr(line, '\n', (size_t)(file->end - line));
  if (!end) fail("vectors", "a line has no end");
  *end = 0;
  file->at = end + 1;
  char *space = strchr(line, ' ');
  *rest = space ? space + 1 : end;
  if (space) *space = 0;
  return line;
}

static const uint8_t *bytes(tv_file *file, const char *count, size_t *out_count) {
  const uint8_t *start = (const uint8_t *)file->at;
  *out_count = strtoull(count, NULL, 10);
  if (*out_count >= (size_t)(file->end - file->at)) fail("vectors", "bytes are missing");
  file->at += *out_count + 1;
  return start;
}

static void read_map(char *text, tl_tensormap_params *map) {
  *map = (tl_tensormap_params){.type = (tl_tensormap_type)strtoul(text, &text, 10),
                               .rank = (uint32_t)strtoul(text, &text, 10)};
  if (map->rank < 1 || map->rank > TL_TENSORMAP_MAX_RANK) fail("vectors", "a tensor map's rank");
  for (uint32_t i = 0; i < map->rank; i++) map->dims[i] = strtoull(text, &text, 10);
  for (uint32_t i = 0; i + 1 < map->rank; i++) map->strides[i] = strtoull(text, &text, 10);
  for (uint32_t i = 0; i < map->rank; i++) map->box[i] = (uint32_t)strtoul(text, &text, 10);
  for (uint32_t i = 0; i < map->rank; i++) map->element_strides[i] = (uint32_t)strtoul(text, &text, 10);
  map->interleave = (tl_tensormap_interleave)strtoul(text, &text, 10);
  map->swizzle = (tl_tensormap_swizzle)strtoul(text, &text, 10);
  map->fill = (tl_tensormap_fill)strtoul(text, &text, 10);
  map->is_im2col = !strncmp(text, " im2col", 7);
  if (!map->is_im2col) return;
  text += 7;
  for (uint32_t i = 0; i + 2 < map->rank; i++) map->lower[i] = (int32_t)strtol(text, &text, 10);
  for (uint32_t i = 0; i + 2 < map->rank; i++) map->upper[i] = (int32_t)strtol(text, &text, 10);
  map->channels_per_pixel = (uint32_t)strtoul(text, &text, 10);
  map->pixels_per_column = (uint32_t)strtoul(text, &text, 10);
}

static void read_op(char *rest, tv_vector *v) {
  char *last = strrchr(rest, ' ');
  if (!last) fail("vectors", "an op has no signature");
  *last = 0;
  v->name = rest;
  v->signature = last + 1;
}

bool tv_next(tv_file *file, tv_vector *v) {
  *v = (tv_vector){.setting = ""};
  if (file->at == file->end) return false;
  for (;;) {
    char *rest, *key = next_line(file, &rest);
    if (!strcmp(key, "end")) return true;
    if (!strcmp(key, "op")) {
      read_op(rest, v);
    } else if (!strcmp(key, "ptx")) {
      v->ptx = rest;
    } else if (!strcmp(key, "setting")) {
      v->setting = rest;
    } else if (!strcmp(key, "shape")) {
      v->threads = (uint32_t)strtoul(rest, &rest, 10);
      v->blocks = (uint32_t)strtoul(rest, NULL, 10);
    } else if (!strcmp(key, "map")) {
      v->has_map = true;
      read_map(rest, &v->map);
    } else if (!strcmp(key, "in")) {
      v->in = bytes(file, rest, &v->in_bytes);
    } else if (!strcmp(key, "out")) {
      v->out = bytes(file, rest, &v->out_bytes);
    } else if (!strcmp(key, "shared-before")) {
      v->shared_before = bytes(file, rest, &v->shared_bytes);
    } else if (!strcmp(key, "shared-after")) {
      v->shared_after = bytes(file, rest, &v->shared_bytes);
    } else if (!strcmp(key, "global-before")) {
      v->global_before = bytes(file, rest, &v->global_bytes);
    } else if (!strcmp(key, "global-after")) {
      v->global_after = bytes(file, rest, &v->global_bytes);
    } else {
      fail("vectors", key);
    }
  }
}

int tv_results(const char *signature) {
  return (int)(strchr(signature, '(') - signature);
}

int tv_arguments(const char *signature) {
  return (int)strlen(signature) - tv_results(signature) - 2;
}

char tv_letter(const char *signature, int operand) {
  return signature[operand < tv_results(signature) ? operand : operand + 1];
}

int tv_letter_bytes(char letter) {
  return letter == 'b' ? 1 : strchr("sey", letter) ? 2 : strchr("ldg", letter) ? 8 : 4;
}

static const char *find_setting(const tv_vector *v, const char *key) {
  size_t length = strlen(key);
  for (const char *at = v->setting; (at = strstr(at, key)); at++)
    if ((at == v->setting || at[-1] == ' ') && at[length] == '=') return at + length + 1;
  return NULL;
}

long tv_setting(const tv_vector *v, const char *key, long missing) {
  const char *value = find_setting(v, key);
  return value ? strtol(value, NULL, 10) : missing;
}

bool tv_setting_is(const tv_vector *v, const char *key, const char *value) {
  const char *found = find_setting(v, key);
  size_t length = strlen(value);
  return found && !strncmp(found, value, length) && (found[length] == ' ' || !found[length]);
}
