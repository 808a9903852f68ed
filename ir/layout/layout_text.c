// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts as text and back.
#include <string.h>

#include "ir/layout/layout.h"

static const char axis_letters[TL_AXIS_COUNT] = {[TL_AXIS_REGISTER] = 'r', [TL_AXIS_LANE] = 'l', [TL_AXIS_WARP] = 'w'};

void tl_layout_print(const tl_layout *layout, tl_strbuf *out) {
  tl_strbuf_append_c(out, "#layout<");
  for (int32_t d = 0; d < layout->rank; d++) tl_strbuf_appendf(out, d ? "x%d" : "%d", layout->shape[d]);
  tl_strbuf_append_char(out, ':');
  for (int32_t i = 0; i < layout->num_modes; i++) {
    const tl_layout_mode *mode = &layout->modes[i];
    tl_strbuf_appendf(out, " %c%d", axis_letters[mode->axis], mode->size);
    if (mode->dim == TL_DIM_NONE) {
      tl_strbuf_append_c(out, ".*");
    } else {
      tl_strbuf_appendf(out, ".d%ds%d", mode->dim, mode->stride);
    }
  }
  tl_strbuf_append_char(out, '>');
}

void tl_shared_layout_print(const tl_shared_layout *layout, tl_strbuf *out) {
  tl_strbuf_appendf(out, "#shared<pitch %d", layout->pitch_bytes);
  if (layout->panel_bytes != 0) tl_strbuf_appendf(out, ", panel %d", layout->panel_bytes);
  if (layout->swizzle_mask != 0) {
    tl_strbuf_appendf(out, ", xor %d shift %d", layout->swizzle_mask, layout->swizzle_shift);
  }
  tl_strbuf_append_char(out, '>');
}

// ---- parsing

typedef struct cursor {
  const char *at, *end;
} cursor;

static void skip_spaces(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')) c->at++;
}

static bool eat(cursor *c, const char *text) {
  size_t len = strlen(text);
  if ((size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0) return false;
  c->at += len;
  return true;
}

static bool eat_number(cursor *c, int32_t *out) {
  int64_t value = 0;
  const char *start = c->at;
  while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
    value = value * 10 + (*c->at++ - '0');
    if (value > INT32_MAX) return false;
  }
  *out = (int32_t)value;
  return c->at > start;
}

static bool parse_mode(cursor *c, tl_layout_mode *mode) {
  int axis = 0;
  while (axis < TL_AXIS_COUNT && axis_letters[axis] != *c->at) axis++;
  if (axis == TL_AXIS_COUNT) return false;
  c->at++;
  mode->axis = (tl_layout_axis)axis;
  if (!eat_number(c, &mode->size)) return false;
  if (eat(c, ".*")) {
    mode->dim = TL_DIM_NONE;
    mode->stride = 0;
    return true;
  }
  return eat(c, ".d") && eat_number(c, &mode->dim) && eat(c, "s") && eat_number(c, &mode->stride);
}

bool tl_layout_parse(tl_str text, tl_layout *out_layout) {
  tl_layout layout;
  memset(&layout, 0, sizeof(layout));
  if (text.len == 0) return false;
  cursor c = {text.data, text.data + text.len};
  if (!eat(&c, "#layout<")) return false;
  skip_spaces(&c);
  while (!eat(&c, ":")) {
    if (layout.rank == TL_MAX_RANK || (layout.rank > 0 && !eat(&c, "x"))) return false;
    if (!eat_number(&c, &layout.shape[layout.rank])) return false;
    layout.rank++;
  }
  for (;;) {
    skip_spaces(&c);
    if (eat(&c, ">")) break;
    if (c.at == c.end || layout.num_modes == TL_LAYOUT_MAX_MODES) return false;
    if (!parse_mode(&c, &layout.modes[layout.num_modes++])) return false;
  }
  if (c.at != c.end) return false;
  *out_layout = layout;
  return true;
}

bool tl_shared_layout_parse(tl_str text, tl_shared_layout *out_layout) {
  tl_shared_layout layout = {0};
  if (text.len == 0) return false;
  cursor c = {text.data, text.data + text.len};
  if (!eat(&c, "#shared<pitch ") || !eat_number(&c, &layout.pitch_bytes)) return false;
  if (eat(&c, ", panel ") && !eat_number(&c, &layout.panel_bytes)) return false;
  if (eat(&c, ", xor ")) {
    if (!eat_number(&c, &layout.swizzle_mask) || !eat(&c, " shift ") || !eat_number(&c, &layout.swizzle_shift))
      return false;
  }
  if (!eat(&c, ">") || c.at != c.end) return false;
  *out_layout = layout;
  return true;
}
