// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules and what they make unique: types, layouts and texts.
#include <stdlib.h>

#include "ir/ir.h"
#include "ir/text/text.h"

tl_module *tl_module_create(void) {
  tl_module *module = tl_xcalloc(1, sizeof(*module));
  tl_arena_init(&module->arena);
  tl_strmap_init(&module->strings, &module->arena);
  tl_strmap_init(&module->types, &module->arena);
  module->body = TL_NEW(&module->arena, tl_block);
  return module;
}

void tl_module_destroy(tl_module *module) {
  if (module == NULL) return;
  tl_strmap_fini(&module->strings);
  tl_strmap_fini(&module->types);
  tl_arena_fini(&module->arena);
  free(module);
}

const char *tl_module_intern(tl_module *module, tl_str text) {
  return tl_strmap_intern(&module->strings, text);
}

// ---- types

static void print_dims(const tl_type *type, tl_strbuf *out) {
  for (int32_t d = 0; d < type->rank; d++) {
    tl_strbuf_append_char(out, d ? 'x' : ' ');
    if (type->dims[d] < 0) {
      tl_strbuf_append_char(out, '?');
    } else {
      tl_strbuf_appendf(out, "%lld", (long long)type->dims[d]);
    }
  }
}

void tl_type_print(const tl_type *type, tl_strbuf *out) {
  if (type == NULL) {
    tl_strbuf_append_c(out, "none");
    return;
  }
  switch (type->kind) {
    case TL_TYPE_NONE:
      tl_strbuf_append_c(out, "none");
      return;
    case TL_TYPE_INDEX:
      tl_strbuf_append_c(out, "index");
      return;
    case TL_TYPE_SCALAR:
      tl_strbuf_append_c(out, tl_dtype_name(type->dtype));
      return;
    case TL_TYPE_BUFFER: {
      const char *scope = tl_ir_enum_text(TL_IR_ENUM_SCOPE, type->scope);
      tl_strbuf_appendf(out, "buffer<%s %s", scope ? scope : "?", tl_dtype_name(type->dtype));
      print_dims(type, out);
      tl_strbuf_append_char(out, '>');
      return;
    }
    case TL_TYPE_FLIGHT:
    case TL_TYPE_TILE:
      tl_strbuf_appendf(out, "%s<%s", type->kind == TL_TYPE_TILE ? "tile" : "flight", tl_dtype_name(type->dtype));
      print_dims(type, out);
      if (type->layout) {
        tl_strbuf_append_c(out, ", ");
        tl_layout_print(type->layout, out);
      }
      tl_strbuf_append_char(out, '>');
      return;
    case TL_TYPE_RING:
      tl_strbuf_append_c(out, "ring");
      return;
    case TL_TYPE_SLOT:
      tl_strbuf_append_c(out, "slot");
      return;
    case TL_TYPE_MBARRIER:
      tl_strbuf_append_c(out, "mbarrier");
      return;
    case TL_TYPE_MAP:
      tl_strbuf_append_c(out, "map");
      return;
    case TL_TYPE_TOKEN:
      tl_strbuf_append_c(out, "token");
      return;
  }
}

// The one type of the module that prints like `type`.
static const tl_type *unique_type(tl_module *module, const tl_type *type) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_type_print(type, &text);
  tl_type *found = tl_strmap_get(&module->types, tl_strbuf_view(&text));
  if (found == NULL) {
    found = TL_NEW(&module->arena, tl_type);
    *found = *type;
    if (type->layout) found->layout = tl_module_layout(module, type->layout);
    tl_strmap_put(&module->types, tl_strbuf_view(&text), found);
  }
  tl_strbuf_fini(&text);
  return found;
}

const tl_type *tl_type_simple(tl_module *module, tl_type_kind kind) {
  if (module->simple_types[kind] == NULL) {
    tl_type type = {.kind = kind};
    module->simple_types[kind] = unique_type(module, &type);
  }
  return module->simple_types[kind];
}

const tl_type *tl_type_index(tl_module *module) {
  return tl_type_simple(module, TL_TYPE_INDEX);
}

const tl_type *tl_type_scalar(tl_module *module, tl_dtype dtype) {
  if (module->scalar_types[dtype] == NULL) {
    tl_type type = {.kind = TL_TYPE_SCALAR, .dtype = dtype};
    module->scalar_types[dtype] = unique_type(module, &type);
  }
  return module->scalar_types[dtype];
}

const tl_type *tl_type_buffer(tl_module *module, int scope, tl_dtype dtype, const int64_t *dims, int32_t rank) {
  tl_type type = {.kind = TL_TYPE_BUFFER, .dtype = dtype, .scope = scope, .rank = rank};
  for (int32_t d = 0; d < rank; d++) type.dims[d] = dims[d] < 0 ? -1 : dims[d];
  return unique_type(module, &type);
}

const tl_type *tl_type_tile(tl_module *module, tl_dtype dtype, const int64_t *dims, int32_t rank,
                            const tl_layout *layout) {
  tl_type type = {.kind = TL_TYPE_TILE, .dtype = dtype, .rank = rank, .layout = layout};
  for (int32_t d = 0; d < rank; d++) type.dims[d] = dims[d];
  return unique_type(module, &type);
}

const tl_type *tl_type_flight(tl_module *module, const tl_type *tile) {
  tl_type type = *tile;
  type.kind = TL_TYPE_FLIGHT;
  return unique_type(module, &type);
}

const tl_type *tl_type_landed(tl_module *module, const tl_type *flight) {
  return tl_type_tile(module, flight->dtype, flight->dims, flight->rank, flight->layout);
}

int64_t tl_type_num_elements(const tl_type *type) {
  int64_t count = 1;
  for (int32_t d = 0; d < type->rank; d++) {
    if (type->dims[d] < 0 || __builtin_mul_overflow(count, type->dims[d], &count)) return -1;
  }
  return count;
}

const tl_type *tl_type_import(tl_module *module, const tl_type *type) {
  switch (type->kind) {
    case TL_TYPE_SCALAR:
      return tl_type_scalar(module, type->dtype);
    case TL_TYPE_BUFFER:
    case TL_TYPE_FLIGHT:
    case TL_TYPE_TILE:
      return unique_type(module, type);
    case TL_TYPE_NONE:
    case TL_TYPE_INDEX:
    case TL_TYPE_RING:
    case TL_TYPE_SLOT:
    case TL_TYPE_MBARRIER:
    case TL_TYPE_MAP:
    case TL_TYPE_TOKEN:
      return tl_type_simple(module, type->kind);
  }
  return NULL;
}

// ---- layouts: shared under their text, which no type's text equals ("#…")

const tl_layout *tl_module_layout(tl_module *module, const tl_layout *layout) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_layout_print(layout, &text);
  tl_layout *found = tl_strmap_get(&module->types, tl_strbuf_view(&text));
  if (found == NULL) {
    found = TL_NEW(&module->arena, tl_layout);
    *found = *layout;
    tl_strmap_put(&module->types, tl_strbuf_view(&text), found);
  }
  tl_strbuf_fini(&text);
  return found;
}

const tl_shared_layout *tl_module_shared_layout(tl_module *module, const tl_shared_layout *layout) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_shared_layout_print(layout, &text);
  tl_shared_layout *found = tl_strmap_get(&module->types, tl_strbuf_view(&text));
  if (found == NULL) {
    found = TL_NEW(&module->arena, tl_shared_layout);
    *found = *layout;
    if (found->swizzle_mask == 0) found->swizzle_shift = 0;
    tl_strmap_put(&module->types, tl_strbuf_view(&text), found);
  }
  tl_strbuf_fini(&text);
  return found;
}

const tl_instruction *tl_module_instruction(tl_module *module, const tl_instruction *inst) {
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_instruction_print(inst, &text);
  tl_instruction *found = tl_strmap_get(&module->types, tl_strbuf_view(&text));
  if (found == NULL) {
    found = TL_NEW(&module->arena, tl_instruction);
    *found = *inst;
    tl_strmap_put(&module->types, tl_strbuf_view(&text), found);
  }
  tl_strbuf_fini(&text);
  return found;
}
