// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "llvm_backend/device/debug_info.h"

#include <string.h>

static const char *copy_name(tl_arena *arena, const char *name) {
  return name ? tl_arena_copy_bytes(arena, name, strlen(name)) : NULL;
}

tl_debug_info tl_debug_info_copy(const tl_debug_info *info, tl_arena *arena) {
  tl_debug_info copy = *info;
  copy.sources = TL_NEW_ARRAY(arena, tl_debug_source, info->num_sources + 1);
  for (uint32_t i = 0; i < info->num_sources; i++) {
    tl_str text = info->sources[i].text;
    copy.sources[i].name = copy_name(arena, info->sources[i].name);
    copy.sources[i].text = (tl_str){tl_arena_copy_bytes(arena, text.data, text.len), text.len};
  }
  copy.tiles = TL_NEW_ARRAY(arena, tl_debug_tile, info->num_tiles + 1);
  for (uint32_t i = 0; i < info->num_tiles; i++) {
    copy.tiles[i] = info->tiles[i];
    copy.tiles[i].name = copy_name(arena, info->tiles[i].name);
  }
  copy.uses = TL_NEW_ARRAY(arena, tl_debug_use, info->num_uses + 1);
  for (uint32_t i = 0; i < info->num_uses; i++) copy.uses[i] = info->uses[i];
  copy.elements = TL_NEW_ARRAY(arena, tl_debug_element, info->num_elements + 1);
  for (uint32_t i = 0; i < info->num_elements; i++) copy.elements[i] = info->elements[i];
  copy.variables = TL_NEW_ARRAY(arena, tl_debug_variable, info->num_variables + 1);
  for (uint32_t i = 0; i < info->num_variables; i++) {
    copy.variables[i] = info->variables[i];
    copy.variables[i].name = copy_name(arena, info->variables[i].name);
  }
  return copy;
}

bool tl_debug_in_one_parallel(const tl_debug_info *info, uint32_t line, uint32_t other) {
  for (uint32_t i = 0; i < info->num_elements; i++) {
    if (info->elements[i].line != line) continue;
    for (uint32_t k = 0; k < info->num_elements; k++)
      if (info->elements[k].line == other && info->elements[k].parallel == info->elements[i].parallel) return true;
  }
  return false;
}

bool tl_debug_has_source(const tl_debug_info *info, const char *name) {
  for (uint32_t i = 0; name && i < info->num_sources; i++)
    if (!strcmp(info->sources[i].name, name)) return true;
  return false;
}

tl_str tl_debug_line(const tl_debug_info *info, const char *name, uint32_t line) {
  for (uint32_t i = 0; i < info->num_sources; i++) {
    if (strcmp(info->sources[i].name, name) != 0) continue;
    tl_str rest = info->sources[i].text;
    for (uint32_t at = 1; rest.len > 0; at++) {
      const char *end = memchr(rest.data, '\n', rest.len);
      size_t len = end ? (size_t)(end - rest.data) : rest.len;
      if (at == line) return tl_str_sub(rest, 0, len);
      if (!end) break;
      rest = tl_str_sub(rest, len + 1, rest.len - len - 1);
    }
  }
  return (tl_str){0};
}

// The next element in row-major order; false after the last.
static bool next_element(const tl_debug_tile *tile, int32_t *coord) {
  for (int32_t d = tile->rank - 1; d >= 0; d--) {
    if (++coord[d] < tile->dims[d]) return true;
    coord[d] = 0;
  }
  return false;
}

// The element and stage that byte `offset` belongs to. False: none; *out_stage is -1 when it is not even in the tile.
static bool find_element(const tl_debug_tile *tile, int64_t offset, int64_t *out_stage, int32_t *coord) {
  int64_t within = offset - tile->offset;
  *out_stage = -1;
  if (within < 0 || within >= tile->bytes) return false;
  *out_stage = tile->depth > 1 ? within / tile->stage_bytes : 0;
  within -= *out_stage * (tile->depth > 1 ? tile->stage_bytes : 0);
  int32_t bits = tl_dtype_bits(tile->dtype);
  int64_t bytes = bits < 8 ? 1 : bits / 8;
  for (int32_t d = 0; d < tile->rank; d++) coord[d] = 0;
  do {
    int64_t at = tl_shared_layout_offset(&tile->layout, tile->dims, tile->rank, bits, coord);
    if (within >= at && within < at + bytes) return true;
  } while (next_element(tile, coord));
  return false;
}

bool tl_debug_tile_has_element(const tl_debug_tile *tile, int64_t offset) {
  int32_t coord[TL_MAX_RANK];
  int64_t stage;
  return find_element(tile, offset, &stage, coord);
}

static void append_coordinates(const int32_t *coord, int32_t rank, tl_strbuf *out) {
  for (int32_t d = 0; d < rank; d++) tl_strbuf_appendf(out, "%s%d", d ? ", " : "[", (int)coord[d]);
  if (rank) tl_strbuf_append_char(out, ']');
}

bool tl_debug_tile_describe(const tl_debug_tile *tile, int64_t offset, tl_strbuf *out) {
  int32_t coord[TL_MAX_RANK];
  int64_t stage;
  bool found = find_element(tile, offset, &stage, coord);
  if (stage < 0) return false;
  tl_strbuf_append_c(out, tile->name ? tile->name : "a tile");
  if (found) {
    append_coordinates(coord, tile->rank, out);
  } else {
    tl_strbuf_append_c(out, ", padding");
  }
  if (tile->depth > 1) tl_strbuf_appendf(out, " (stage %d)", (int)stage);
  return true;
}

void tl_debug_variable_describe(const tl_debug_variable *variable, uint32_t element, uint32_t thread, tl_strbuf *out) {
  enum { WARP = 32 };
  const char *kind = variable->is_fragment ? "fragment" : variable->rank ? "local array" : "local";
  tl_strbuf_appendf(out, "%s%s%s", kind, variable->name ? " " : "", variable->name ? variable->name : "");
  int32_t coord[TL_MAX_RANK] = {0};
  if (!variable->is_fragment) {
    for (int32_t d = variable->rank - 1; d >= 0; d--) {
      coord[d] = (int32_t)(element % (uint32_t)variable->dims[d]);
      element /= (uint32_t)variable->dims[d];
    }
    append_coordinates(coord, variable->rank, out);
  } else if (tl_layout_coord(&variable->layout, (int32_t)element, (int32_t)(thread % WARP), (int32_t)(thread / WARP),
                             coord)) {
    append_coordinates(coord, variable->rank, out);
  } else {
    tl_strbuf_append_c(out, ", padding");
  }
}
