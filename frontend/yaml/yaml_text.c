// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From libyaml's view of a text back to bytes of the file: encoding check, character positions, byte maps of scalars.
#include <string.h>

#include "frontend/expr/expr_internal.h"
#include "frontend/yaml/yaml_internal.h"

enum { SAMPLE_CHARS = 64 };

// Length of the UTF-8 sequence at `at`, 0 when it is malformed (overlong forms and surrogates included).
static size_t utf8_length(const unsigned char *at, size_t left, uint32_t *out_code) {
  unsigned char lead = at[0];
  size_t len = lead < 0x80                   ? 1
               : lead >= 0xC2 && lead < 0xE0 ? 2
               : lead >= 0xE0 && lead < 0xF0 ? 3
               : lead >= 0xF0 && lead < 0xF5 ? 4
                                             : 0;
  if (len == 0 || len > left) return 0;
  uint32_t code = len == 1 ? lead : lead & (0x7Fu >> len);
  for (size_t i = 1; i < len; i++) {
    if ((at[i] & 0xC0) != 0x80) return 0;
    code = code << 6 | (at[i] & 0x3F);
  }
  if ((len == 3 && code < 0x800) || (len == 4 && (code < 0x10000 || code > 0x10FFFF)) ||
      (code >= 0xD800 && code < 0xE000))
    return 0;
  *out_code = code;
  return len;
}

// The characters that YAML 1.1 section 5.1 allows in a stream.
static bool is_printable(uint32_t code) {
  if (code < 0x80) return code == '\t' || code == '\n' || code == '\r' || (code >= 0x20 && code < 0x7F);
  return code == 0x85 || (code >= 0xA0 && code != 0xFEFF && code != 0xFFFE && code != 0xFFFF);
}

static bool report_bad_byte(tl_diags *diags, tl_str text, size_t at, size_t len, uint32_t source, uint32_t code) {
  tl_loc loc = {source, (uint32_t)at, (uint32_t)(len ? len : 1)};
  if (!len)
    tl_diag_report(diags, TL_DIAG_YAML_ENCODING, loc, "byte 0x%02X is not valid UTF-8", (unsigned char)text.data[at]);
  else
    tl_diag_report(diags, TL_DIAG_YAML_ENCODING, loc, "control character U+%04X", code);
  return false;
}

// Whether every byte from `at` on the line is plain ASCII; advances to the first that is not, or to the end.
static size_t skip_ascii(tl_str text, size_t at) {
  while (at < text.len) {
    unsigned char c = (unsigned char)text.data[at];
    if (c < 0x20 || c >= 0x7F) break;
    at++;
  }
  return at;
}

static bool validate_characters(tl_diags *diags, tl_str text, uint32_t source, tl_yaml_positions *out) {
  out->ascii = true;
  for (size_t at = out->bom_bytes; (at = skip_ascii(text, at)) < text.len;) {
    uint32_t code = 0;
    size_t len = utf8_length((const unsigned char *)text.data + at, text.len - at, &code);
    if (!len || !is_printable(code)) return report_bad_byte(diags, text, at, len, source, code);
    if (len > 1) out->ascii = false;
    at += len;
    // Directives (%YAML, %TAG) stand at a line's start; libyaml compares all %TAGs with each other.
    if (code == '\n' && at < text.len && text.data[at] == '%') {
      tl_diag_report(diags, TL_DIAG_YAML_FEATURE, (tl_loc){source, (uint32_t)at, 1},
                     "YAML directives (`%%…` at the start of a line) are not part of the language");
      return false;
    }
  }
  return true;
}

// Refuses a file of far too many keys without parsing it. In a text without quotes, block scalars and comments every
// colon before white space ends a key, and a key and its value are two nodes, so the count is a lower bound.
static bool validate_key_count(tl_diags *diags, tl_str text, uint32_t source) {
  static const char may_hide_colons[] = "'\"|>#";
  if (text.len < 2 * TL_YAML_MAX_NODES) return true;
  for (const char *c = may_hide_colons; *c; c++)
    if (memchr(text.data, *c, text.len)) return true;
  const char *end = text.data + text.len, *at = text.data;
  uint32_t nodes = 0;
  while ((at = memchr(at, ':', (size_t)(end - at))) && ++at < end) {
    if (*at != ' ' && *at != '\n' && *at != '\r') continue;
    nodes += 2;
    if (nodes <= TL_YAML_MAX_NODES) continue;
    tl_loc loc = {source, (uint32_t)(at - 1 - text.data), 1};
    tl_diag_report(diags, TL_DIAG_YAML_LIMIT, loc, "the file has more than %d nodes", TL_YAML_MAX_NODES);
    return false;
  }
  return true;
}

static void sample_positions(tl_arena *arena, tl_yaml_positions *positions) {
  tl_str text = positions->text;
  uint32_t capacity = (uint32_t)(text.len / SAMPLE_CHARS + 2);
  positions->samples = TL_NEW_ARRAY(arena, uint32_t, capacity);
  size_t chars = 0;
  for (size_t at = positions->bom_bytes; at < text.len; at++) {
    if (((unsigned char)text.data[at] & 0xC0) == 0x80) continue;
    if (chars % SAMPLE_CHARS == 0) positions->samples[positions->num_samples++] = (uint32_t)at;
    chars++;
  }
}

bool tl_yaml_validate_text(tl_arena *arena, tl_diags *diags, tl_str text, uint32_t source, tl_yaml_positions *out) {
  *out = (tl_yaml_positions){.text = text};
  if (text.len > TL_SPEC_MAX_BYTES) {
    tl_diag_report(diags, TL_DIAG_YAML_LIMIT, (tl_loc){source, 0, 0},
                   "the file has %zu bytes, more than the %u that a spec may have", text.len,
                   (unsigned)TL_SPEC_MAX_BYTES);
    return false;
  }
  if (text.len >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0) out->bom_bytes = 3;
  if (text.len > out->bom_bytes && text.data[out->bom_bytes] == '%') {
    tl_diag_report(diags, TL_DIAG_YAML_FEATURE, (tl_loc){source, out->bom_bytes, 1},
                   "YAML directives (`%%…` at the start of a line) are not part of the language");
    return false;
  }
  if (!validate_characters(diags, text, source, out) || !validate_key_count(diags, text, source)) return false;
  if (!out->ascii) sample_positions(arena, out);
  return true;
}

// Masks in `line`, the text behind `doc: `. Quoted and block text is YAML's own business.
static void mask_line(char *line, size_t len) {
  size_t at = 0;
  while (at < len && line[at] == ' ') at++;
  if (at == len || strchr("|>\"'#", line[at])) return;
  if (strchr("&*!{[}]%@`?-,:", line[at])) line[at] = 'x';
  for (; at < len; at++) {
    if (line[at] == '#' && line[at - 1] == ' ') return;  // a comment
    if (line[at] == ':' && (at + 1 == len || line[at + 1] == ' ' || line[at + 1] == '\r')) line[at] = 'x';
  }
}

tl_str tl_yaml_mask_doc(tl_arena *arena, const tl_yaml_positions *positions) {
  tl_str text = tl_str_sub(positions->text, positions->bom_bytes, positions->text.len - positions->bom_bytes);
  char *copy = NULL;
  for (size_t at = 0; at < text.len;) {
    const char *newline = memchr(text.data + at, '\n', text.len - at);
    size_t end = newline ? (size_t)(newline - text.data) : text.len;
    if (end - at > 5 && memcmp(text.data + at, "doc: ", 5) == 0) {
      if (!copy) copy = tl_arena_copy_bytes(arena, text.data, text.len);
      mask_line(copy + at + 5, end - at - 5);
    }
    at = end + 1;
  }
  return copy ? (tl_str){copy, text.len} : text;
}

uint32_t tl_yaml_offset(const tl_yaml_positions *positions, size_t index) {
  size_t len = positions->text.len;
  if (positions->ascii) return (uint32_t)(index + positions->bom_bytes < len ? index + positions->bom_bytes : len);
  size_t sample = index / SAMPLE_CHARS;
  if (sample >= positions->num_samples) return (uint32_t)len;
  size_t at = positions->samples[sample], left = index % SAMPLE_CHARS;
  while (left && at < len) {
    at++;
    while (at < len && ((unsigned char)positions->text.data[at] & 0xC0) == 0x80) at++;
    left--;
  }
  return (uint32_t)at;
}

typedef struct mapper {
  const char *file;
  uint32_t at, end;  // what is left of the source
  tl_str value;
  uint32_t done;  // bytes of the value that are mapped
  uint32_t *offsets;
} mapper;

static bool is_white(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void map_bytes(mapper *map, uint32_t count, uint32_t offset) {
  while (count-- && map->done < map->value.len) map->offsets[map->done++] = offset;
}

// Maps a run of white space of the value to the run of the source at the same place. Folding shortens runs and
// indentation lengthens them, so runs of different lengths are lined up at their ends except that the first byte keeps
// the run's start.
static void map_white(mapper *map) {
  uint32_t run_start = map->at, first = map->done;
  while (map->at < map->end && is_white(map->file[map->at])) map->at++;
  while (map->done < map->value.len && is_white(map->value.data[map->done])) map->done++;
  uint32_t source_len = map->at - run_start, value_len = map->done - first;
  for (uint32_t i = 0; i < value_len; i++) {
    uint32_t from_end = value_len - i;
    map->offsets[first + i] = from_end <= source_len && i ? map->at - from_end : run_start;
  }
}

// Plain, single-quoted and block scalars: outside white space the source is the value, but for doubled quotes.
static void map_verbatim(mapper *map, bool single_quoted) {
  while (map->done < map->value.len) {
    char c = map->value.data[map->done];
    bool source_white = map->at < map->end && is_white(map->file[map->at]);
    if (is_white(c) || source_white) {
      map_white(map);
      if (!is_white(c) && !source_white) break;
      continue;
    }
    map_bytes(map, 1, map->at);
    if (map->at < map->end) map->at += single_quoted && c == '\'' ? 2 : 1;
  }
}

// Bytes of UTF-8 that a code point takes.
static uint32_t utf8_bytes(uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

static uint32_t hex_digits(const char *at, uint32_t count) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < count; i++) {
    char c = at[i];
    value = value * 16 + (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return value;
}

// One escape of a double-quoted scalar (YAML 1.1 section 5.7).
static void map_escape(mapper *map) {
  uint32_t start = map->at;
  char c = map->at + 1 < map->end ? map->file[map->at + 1] : '\0';
  if (c == '\n' || c == '\r') {  // An escaped line break vanishes together with the next line's indentation.
    map->at++;
    while (map->at < map->end && is_white(map->file[map->at])) map->at++;
    return;
  }
  uint32_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  uint32_t bytes = 1;
  if (digits && map->at + 2 + digits <= map->end) bytes = utf8_bytes(hex_digits(map->file + map->at + 2, digits));
  if (c == 'N' || c == '_') bytes = 2;
  if (c == 'L' || c == 'P') bytes = 3;
  map->at += 2 + digits;
  if (map->at > map->end) map->at = map->end;
  map_bytes(map, bytes, start);
}

static void map_double_quoted(mapper *map) {
  while (map->done < map->value.len && map->at < map->end) {
    if (map->file[map->at] == '\\') {
      map_escape(map);
      continue;
    }
    if (!is_white(map->file[map->at])) {
      map_bytes(map, 1, map->at++);
      continue;
    }
    uint32_t run = map->at, breaks = 0;
    while (map->at < map->end && is_white(map->file[map->at])) breaks += map->file[map->at++] == '\n';
    if (!breaks)
      for (uint32_t i = run; i < map->at; i++) map_bytes(map, 1, i);
    else
      map_bytes(map, breaks == 1 ? 1 : breaks - 1, run);
  }
}

const uint32_t *tl_yaml_map_scalar(tl_arena *arena, tl_str file, uint32_t start, uint32_t end, tl_str value,
                                   yaml_scalar_style_t style) {
  mapper map = {.file = file.data, .at = start, .end = end, .value = value};
  map.offsets = TL_NEW_ARRAY(arena, uint32_t, value.len + 1);
  bool in_quotes = style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
  if (in_quotes && end - start >= 2) {
    map.at++;
    map.end--;
  }
  if (style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE) {
    while (map.at < map.end && map.file[map.at] != '\n') map.at++;  // the header: | or > with indicators and a comment
    while (map.at < map.end && is_white(map.file[map.at])) map.at++;
    while (map.done < value.len && is_white(value.data[map.done])) map.offsets[map.done++] = map.at;
  }
  if (style == YAML_DOUBLE_QUOTED_SCALAR_STYLE)
    map_double_quoted(&map);
  else
    map_verbatim(&map, style == YAML_SINGLE_QUOTED_SCALAR_STYLE);
  while (map.done < value.len) map.offsets[map.done++] = map.at;
  map.offsets[value.len] = map.at;
  return map.offsets;
}
