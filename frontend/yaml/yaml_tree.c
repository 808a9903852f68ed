// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds the node tree from libyaml's events. No recursion: open collections stand on an explicit stack of limited
// depth, and reading stops at the first limit that is exceeded.
#include "frontend/yaml/yaml_tree.h"

#include <string.h>

#include "frontend/expr/expr_internal.h"
#include "frontend/yaml/yaml_internal.h"
#include "support/intern.h"

enum { LINEAR_KEYS = 16 };  // mappings up to this size look for duplicates without a hash table

typedef struct open_node {
  tl_yaml_node *node;
  TL_VEC(tl_yaml_node *) items;
  TL_VEC(tl_yaml_entry) entries;
  tl_yaml_node *key;  // waits for its value
  bool drop_value;    // the waiting key was refused: its value is not added
  bool in_body;       // a statement or a list of statements
  bool has_index;     // `index` holds all keys
  tl_strmap index;
} open_node;

typedef struct builder {
  tl_arena *arena;
  tl_diags *diags;
  uint32_t source;
  tl_yaml_positions positions;
  tl_str masked;  // what libyaml reads
  open_node frames[TL_YAML_MAX_DEPTH + 1];
  uint32_t depth;
  uint32_t num_nodes;
  bool stopped;
  TL_VEC(tl_yaml_node *) documents;
} builder;

static tl_loc event_loc(const builder *build, const yaml_event_t *event) {
  uint32_t start = tl_yaml_offset(&build->positions, event->start_mark.index);
  uint32_t end = tl_yaml_offset(&build->positions, event->end_mark.index);
  return (tl_loc){build->source, start, end > start ? end - start : 0};
}

static bool is_body_key(const tl_yaml_node *key) {
  static const char *const keys[] = {"body", "do", "then", "else"};
  for (size_t i = 0; key && i < sizeof(keys) / sizeof(keys[0]); i++)
    if (tl_str_is(key->text.text, keys[i])) return true;
  return false;
}

static open_node *top(builder *build) {
  return build->depth ? &build->frames[build->depth - 1] : NULL;
}

static tl_yaml_entry *find_entry(open_node *frame, tl_str key) {
  if (frame->has_index) {
    tl_strmap_entry *found = tl_strmap_find(&frame->index, key);
    return found ? &frame->entries.items[(uintptr_t)found->value] : NULL;
  }
  for (size_t i = 0; i < frame->entries.len; i++)
    if (tl_str_equal(frame->entries.items[i].key->text.text, key)) return &frame->entries.items[i];
  return NULL;
}

static void index_entries(builder *build, open_node *frame) {
  if (!frame->has_index && frame->entries.len < LINEAR_KEYS) return;
  size_t first = frame->has_index ? frame->entries.len - 1 : 0;
  if (!frame->has_index) tl_strmap_init(&frame->index, build->arena);
  frame->has_index = true;
  for (size_t i = first; i < frame->entries.len; i++)
    tl_strmap_put(&frame->index, frame->entries.items[i].key->text.text, (void *)(uintptr_t)i);
}

static void report_duplicate(builder *build, const open_node *frame, const tl_yaml_node *key,
                             const tl_yaml_node *first) {
  tl_str name = key->text.text;
  tl_diag *diag = tl_diag_report(build->diags, TL_DIAG_YAML_DUPLICATE_KEY, key->loc, "the key `%.*s` stands twice",
                                 tl_expr_shown(name), name.data);
  tl_diag_add_note(build->diags, diag, first->loc, "it stands here first");
  if (frame->in_body) tl_diag_add_hint(build->diags, diag, "each statement is its own list item: start it with `- `");
}

static void take_key(builder *build, open_node *frame, tl_yaml_node *node) {
  frame->drop_value = node->bad;
  frame->key = node;
  if (node->kind != TL_YAML_SCALAR) {
    if (!node->bad)
      tl_diag_report(build->diags, TL_DIAG_YAML_FEATURE, node->loc,
                     "a key must be plain text, not a list or a mapping");
    frame->drop_value = true;
  } else if (tl_str_is(node->text.text, "<<")) {
    tl_diag_report(build->diags, TL_DIAG_YAML_FEATURE, node->loc, "merge keys (`<<`) are not part of the language");
    frame->drop_value = true;
  }
}

static void take_value(builder *build, open_node *frame, tl_yaml_node *node) {
  tl_yaml_node *key = frame->key;
  frame->key = NULL;
  if (frame->drop_value) return;
  tl_yaml_entry *first = find_entry(frame, key->text.text);
  if (first) {
    // The end of a text that commas have cut up is told of as that.
    bool is_cut = frame->node->flow && tl_yaml_bracket_balance(key) < 0;
    if (!is_cut) report_duplicate(build, frame, key, first->key);
    return;
  }
  tl_vec_push(&frame->entries, (tl_yaml_entry){key, node});
  index_entries(build, frame);
}

// Hands a finished node to the collection that holds it.
static void attach(builder *build, tl_yaml_node *node) {
  open_node *parent = top(build);
  if (!parent) {
    tl_vec_push(&build->documents, node);
  } else if (parent->node->kind == TL_YAML_SEQUENCE) {
    tl_vec_push(&parent->items, node);
  } else if (!parent->key) {
    take_key(build, parent, node);
  } else {
    take_value(build, parent, node);
  }
}

static bool value_is_dropped(builder *build) {
  open_node *parent = top(build);
  return parent && parent->node->kind == TL_YAML_MAPPING && parent->key && parent->drop_value;
}

static tl_yaml_node *new_node(builder *build, tl_yaml_kind kind, const yaml_event_t *event) {
  tl_yaml_node *node = TL_NEW(build->arena, tl_yaml_node);
  node->kind = kind;
  node->loc = event_loc(build, event);
  if (++build->num_nodes > TL_YAML_MAX_NODES) {
    tl_diag_report(build->diags, TL_DIAG_YAML_LIMIT, node->loc, "the file has more than %d nodes", TL_YAML_MAX_NODES);
    build->stopped = true;
  }
  return node;
}

static void refuse(builder *build, tl_yaml_node *node, tl_loc loc, const char *what, const char *mark,
                   const char *name) {
  if (!node->bad && !value_is_dropped(build))
    tl_diag_report(build->diags, TL_DIAG_YAML_FEATURE, loc, "%s (`%s%.*s`) are not part of the language", what, mark,
                   tl_expr_shown(tl_str_from(name)), name);
  node->bad = true;
}

static void refuse_properties(builder *build, tl_yaml_node *node, const yaml_char_t *anchor, const yaml_char_t *tag) {
  tl_loc loc = {node->loc.source, node->loc.offset, 1};
  if (anchor) {
    loc.length = (uint32_t)strlen((const char *)anchor) + 1;
    refuse(build, node, loc, "YAML anchors", "&", (const char *)anchor);
  }
  if (tag) {
    // Shown as written: libyaml has resolved it to a long name.
    tl_str text = build->positions.text;
    uint32_t start = node->loc.offset, end = start;
    while (end < text.len && !strchr(" \t\r\n,]}", text.data[end])) end++;
    loc.length = end - start;
    char *written = tl_arena_copy_bytes(build->arena, text.data + start, end - start);
    refuse(build, node, loc, "YAML tags", "", written);
  }
}

static void open_collection(builder *build, tl_yaml_kind kind, const yaml_event_t *event) {
  tl_yaml_node *node = new_node(build, kind, event);
  if (build->depth >= TL_YAML_MAX_DEPTH) {
    node->loc.length = 1;
    tl_diag_report(build->diags, TL_DIAG_YAML_LIMIT, node->loc, "nested more than %d levels deep", TL_YAML_MAX_DEPTH);
    build->stopped = true;
    return;
  }
  open_node *parent = top(build);
  bool in_body = parent && (parent->node->kind == TL_YAML_MAPPING ? is_body_key(parent->key) : parent->in_body);
  build->frames[build->depth++] = (open_node){.node = node, .in_body = in_body};
}

static void close_collection(builder *build, const yaml_event_t *event) {
  open_node *done = top(build);
  tl_yaml_node *node = done->node;
  uint32_t end = tl_yaml_offset(&build->positions, event->end_mark.index);
  if (node->flow && end > node->loc.offset) node->loc.length = end - node->loc.offset;
  node->items = tl_expr_copy_items(build->arena, done->items.items, done->items.len, sizeof(tl_yaml_node *));
  node->num_items = (uint32_t)done->items.len;
  node->entries = tl_expr_copy_items(build->arena, done->entries.items, done->entries.len, sizeof(tl_yaml_entry));
  node->num_entries = (uint32_t)done->entries.len;
  tl_vec_fini(&done->items);
  tl_vec_fini(&done->entries);
  if (done->has_index) tl_strmap_fini(&done->index);
  build->depth--;
  if (node->flow && !node->bad && !value_is_dropped(build)) tl_yaml_validate_flow(build->diags, node);
  if (!node->flow && node->num_entries) {
    // A block mapping is shown by its first key: its end is somewhere below.
    node->loc = node->entries[0].key->loc;
  } else if (!node->flow && node->num_items) {
    node->loc.length = 1;
  }
  attach(build, node);
}

// Puts back what was masked in the scalar's source.
static void unmask(const builder *build, char *value, size_t len, const uint32_t *offsets) {
  const char *original = build->positions.text.data + build->positions.bom_bytes;
  if (build->masked.data == original) return;
  for (size_t i = 0; i < len; i++) {
    size_t at = offsets[i] - build->positions.bom_bytes;
    if (at < build->masked.len && build->masked.data[at] != original[at]) value[i] = original[at];
  }
}

static void add_scalar(builder *build, const yaml_event_t *event) {
  tl_yaml_node *node = new_node(build, TL_YAML_SCALAR, event);
  size_t len = event->data.scalar.length;
  if (len > TL_YAML_MAX_SCALAR_BYTES) {
    node->loc.length = 1;
    tl_diag_report(build->diags, TL_DIAG_YAML_LIMIT, node->loc,
                   "a value of %zu bytes, more than the %d that one may have", len, TL_YAML_MAX_SCALAR_BYTES);
    build->stopped = true;
    return;
  }
  yaml_scalar_style_t style = event->data.scalar.style;
  node->quoted = style != YAML_PLAIN_SCALAR_STYLE;
  char *bytes = tl_arena_copy_bytes(build->arena, event->data.scalar.value, len);
  tl_str value = {bytes, len};
  uint32_t end = node->loc.offset + node->loc.length;
  const uint32_t *offsets =
      tl_yaml_map_scalar(build->arena, build->positions.text, node->loc.offset, end, value, style);
  unmask(build, bytes, len, offsets);
  if (style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE) {
    tl_str trimmed = tl_str_trim(value);
    if (trimmed.len) {
      uint32_t first = (uint32_t)(trimmed.data - value.data);
      node->loc.offset = offsets[first];
      node->loc.length = offsets[first + trimmed.len - 1] + 1 - node->loc.offset;
    } else {
      node->loc.length = 1;
    }
  }
  node->text = (tl_located_text){value, {build->source, offsets}, node->loc};
  refuse_properties(build, node, event->data.scalar.anchor, event->data.scalar.tag);
  attach(build, node);
}

static void add_alias(builder *build, const yaml_event_t *event) {
  tl_yaml_node *node = new_node(build, TL_YAML_SCALAR, event);
  node->text = (tl_located_text){TL_STR(""), {build->source, NULL}, node->loc};
  refuse(build, node, node->loc, "YAML aliases", "*", (const char *)event->data.alias.anchor);
  attach(build, node);
}

// False when the stream ends here.
static bool take_event(builder *build, const yaml_event_t *event) {
  switch (event->type) {
    case YAML_SCALAR_EVENT:
      add_scalar(build, event);
      break;
    case YAML_ALIAS_EVENT:
      add_alias(build, event);
      break;
    case YAML_SEQUENCE_START_EVENT:
      open_collection(build, TL_YAML_SEQUENCE, event);
      if (build->stopped) break;
      top(build)->node->flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
      refuse_properties(build, top(build)->node, event->data.sequence_start.anchor, event->data.sequence_start.tag);
      break;
    case YAML_MAPPING_START_EVENT:
      open_collection(build, TL_YAML_MAPPING, event);
      if (build->stopped) break;
      top(build)->node->flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
      refuse_properties(build, top(build)->node, event->data.mapping_start.anchor, event->data.mapping_start.tag);
      break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
      close_collection(build, event);
      break;
    case YAML_NO_EVENT:
    case YAML_STREAM_END_EVENT:
      return false;
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
      break;
  }
  return !build->stopped;
}

static void free_frames(builder *build) {
  while (build->depth) {
    open_node *open = &build->frames[--build->depth];
    tl_vec_fini(&open->items);
    tl_vec_fini(&open->entries);
    if (open->has_index) tl_strmap_fini(&open->index);
  }
}

static void read_events(builder *build) {
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) tl_out_of_memory(0);
  build->masked = tl_yaml_mask_doc(build->arena, &build->positions);
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser, (const unsigned char *)build->masked.data, build->masked.len);
  for (bool more = true; more;) {
    yaml_event_t event;
    if (!yaml_parser_parse(&parser, &event)) {
      bool ran_out = parser.error == YAML_MEMORY_ERROR;
      if (ran_out) yaml_parser_delete(&parser);
      if (ran_out) tl_out_of_memory(0);
      tl_yaml_report_error(build->diags, &parser, &build->positions, build->source);
      break;
    }
    more = take_event(build, &event);
    yaml_event_delete(&event);
  }
  yaml_parser_delete(&parser);
}

void tl_yaml_parse(tl_arena *arena, tl_diags *diags, const tl_sources *sources, uint32_t source, tl_yaml_tree *out) {
  *out = (tl_yaml_tree){0};
  const tl_source *file = tl_sources_get(sources, source);
  if (!file) return;
  builder build = {.arena = arena, .diags = diags, .source = source};
  if (!tl_yaml_validate_text(arena, diags, file->text, source, &build.positions)) return;
  if (file->text.len > build.positions.bom_bytes) read_events(&build);
  free_frames(&build);
  out->documents = tl_expr_copy_items(arena, build.documents.items, build.documents.len, sizeof(tl_yaml_node *));
  out->num_documents = (uint32_t)build.documents.len;
  tl_vec_fini(&build.documents);
}

const tl_yaml_node *tl_yaml_get(const tl_yaml_node *mapping, const char *key) {
  for (uint32_t i = 0; mapping && mapping->kind == TL_YAML_MAPPING && i < mapping->num_entries; i++)
    if (tl_str_is(mapping->entries[i].key->text.text, key)) return mapping->entries[i].value;
  return NULL;
}
