// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Debug locations: every instruction tells the line of the spec that its op came from. Locations survive LLVM's passes,
// and the emulator reads them; PTX that is shipped has none (output/optimize.c). Beside them, what messages need: the
// spec's text, shared tiles, and which lines touch which.
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "llvm_backend/lower/state/lower.h"

// The file of a place. Its directory, of which nothing else makes use, says which uses of macros led to the place, the
// innermost first: "spec.yaml:20, spec.yaml:31".
static LLVMMetadataRef make_file(LLVMDIBuilderRef builder, const tl_sources *sources, const tl_source *source) {
  const char *name = tl_sources_short_name(sources, source);
  tl_strbuf uses;
  tl_strbuf_init(&uses);
  for (const tl_source *at = source; at && at->macro;) {
    const tl_source *user = tl_sources_get(sources, at->used_at.source);
    if (!user) break;
    tl_strbuf_appendf(&uses, "%s%s:%u", uses.len ? ", " : "", tl_sources_short_name(sources, user),
                      tl_source_position(user, at->used_at.offset).line);
    at = user;
  }
  LLVMMetadataRef file = LLVMDIBuilderCreateFile(builder, name, strlen(name), tl_strbuf_c(&uses), uses.len);
  tl_strbuf_fini(&uses);
  return file;
}

static const tl_source *source_of(const tl_lower *l, tl_loc loc) {
  return l->diags && l->diags->sources && loc.source ? tl_sources_get(l->diags->sources, loc.source) : NULL;
}

// .file and .loc, no sections: DICompileUnit::DebugDirectivesOnly, for which the C API has no name.
static const LLVMDWARFEmissionKind directives_only = (LLVMDWARFEmissionKind)3;

void tl_lower_debug_begin(tl_lower *l) {
  const tl_source *source = source_of(l, l->kernel->loc);
  if (!source) return;
  tl_session *s = l->session;
  LLVMDIBuilderRef builder = LLVMCreateDIBuilder(s->module);
  LLVMMetadataRef file = make_file(builder, l->diags->sources, source);
  LLVMDIBuilderCreateCompileUnit(builder, LLVMDWARFSourceLanguageC, file, "tl-llc", 6, 1, "", 0, 0, "", 0,
                                 directives_only, 0, 0, 0, "", 0, "", 0);
  LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(builder, file, NULL, 0, LLVMDIFlagZero);
  size_t len;
  const char *name = LLVMGetValueName2(l->function, &len);
  unsigned line = tl_source_position(source, l->kernel->loc.offset).line;
  LLVMMetadataRef scope =
      LLVMDIBuilderCreateFunction(builder, file, name, len, name, len, file, line, type, 0, 1, line, LLVMDIFlagZero, 1);
  LLVMSetSubprogram(l->function, scope);
  LLVMAddModuleFlag(s->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", strlen("Debug Info Version"),
                    LLVMValueAsMetadata(LLVMConstInt(s->i32, LLVMDebugMetadataVersion(), 0)));
  l->debug_builder = builder;
  l->debug_scope = scope;
  l->debug_source = l->kernel->loc.source;
}

void tl_lower_debug_end(tl_lower *l) {
  if (!l->debug_builder) return;
  LLVMDIBuilderFinalize(l->debug_builder);
  LLVMDisposeDIBuilder(l->debug_builder);
  l->debug_builder = NULL;
}

// Where in the spec `op` is, as a location; NULL when it is nowhere.
static LLVMMetadataRef location_of(tl_lower *l, const tl_op *op, uint32_t *out_line) {
  const tl_source *source = l->debug_builder ? source_of(l, op->loc) : NULL;
  if (!source) return NULL;
  LLVMMetadataRef scope = l->debug_scope;
  if (op->loc.source != l->debug_source)
    scope = LLVMDIBuilderCreateLexicalBlockFile(l->debug_builder, scope,
                                                make_file(l->debug_builder, l->diags->sources, source), 0);
  *out_line = tl_source_position(source, op->loc.offset).line;
  return LLVMDIBuilderCreateDebugLocation(l->session->context, *out_line, 0, scope, NULL);
}

static void set_location(const tl_lower *l, LLVMMetadataRef location) {
  LLVMSetCurrentDebugLocation2(l->builder, location);
  LLVMSetCurrentDebugLocation2(l->entry, location);
  if (l->hoist) LLVMSetCurrentDebugLocation2(l->hoist, location);
}

LLVMMetadataRef tl_lower_debug_op(tl_lower *l, const tl_op *op) {
  LLVMMetadataRef before = LLVMGetCurrentDebugLocation2(l->builder);
  uint32_t line;
  LLVMMetadataRef location = location_of(l, op, &line);
  if (location) set_location(l, location);
  return before;
}

void tl_lower_debug_restore(tl_lower *l, LLVMMetadataRef location) {
  if (l->debug_builder) set_location(l, location);
}

// ---- the side table

typedef struct collector {
  const tl_lower *l;
  tl_arena *arena;
  TL_VEC(const tl_op *) allocs;
  TL_VEC(tl_debug_tile) tiles;
  TL_VEC(tl_debug_use) uses;
  TL_VEC(tl_debug_element) elements;
  uint32_t num_parallels;
} collector;

static void add_tile(collector *c, const tl_op *alloc) {
  const tl_value *result = &alloc->results[0];
  const tl_type *type = result->type;
  const tl_buffer *buffer = tl_lower_buffer((tl_lower *)c->l, result);
  if (!buffer || buffer->scope != TL_SCOPE_SHARED) return;
  tl_debug_tile tile = {.offset = tl_op_int(alloc, TL_ATTR_OFFSET, 0),
                        .depth = (int32_t)tl_op_int(alloc, TL_ATTR_DEPTH, 1),
                        .dtype = type->dtype,
                        .rank = type->rank,
                        .layout = buffer->shared};
  for (int32_t d = 0; d < type->rank; d++) tile.dims[d] = (int32_t)type->dims[d];
  int64_t bytes = tl_shared_layout_bytes(&tile.layout, tile.dims, tile.rank, tl_dtype_bits(tile.dtype));
  // Elements of 4 bits are stored by atomics of their word: the last one is the tile's as a whole (plan-shared).
  if (tl_dtype_bits(tile.dtype) < 8) bytes = (bytes + 3) / 4 * 4;
  tile.stage_bytes = buffer->stage_bytes;
  tile.bytes = tile.depth > 1 ? buffer->stage_bytes * tile.depth : bytes;
  if (result->name) tile.name = tl_arena_copy_bytes(c->arena, result->name, strlen(result->name));
  tl_vec_push(&c->allocs, alloc);
  tl_vec_push(&c->tiles, tile);
}

// One 64-bit word a stage (PTX ISA, "mbarrier"); a queue of tiles has words that are no mbarriers, too.
static void add_mbarrier(collector *c, const tl_op *op) {
  enum { WORD = 8 };
  bool is_queue = op->code == TL_OP_TILE_QUEUE;
  const tl_value *result = &op->results[0];
  tl_debug_tile tile = {.offset = tl_op_int(op, TL_ATTR_OFFSET, 0),
                        .depth = is_queue ? TL_TILE_QUEUE_BYTES / WORD : (int32_t)tl_op_int(op, TL_ATTR_DEPTH, 1),
                        .dtype = TL_DTYPE_U64,
                        .rank = 1,
                        .dims = {1},
                        .layout = {.pitch_bytes = WORD},
                        .stage_bytes = WORD};
  tile.bytes = (int64_t)tile.depth * WORD;
  if (result->name) tile.name = tl_arena_copy_bytes(c->arena, result->name, strlen(result->name));
  tl_vec_push(&c->allocs, op);
  tl_vec_push(&c->tiles, tile);
}

static void add_use(collector *c, uint32_t line, uint32_t tile) {
  for (size_t i = 0; i < c->uses.len; i++)
    if (c->uses.items[i].line == line && c->uses.items[i].tile == tile) return;
  tl_vec_push(&c->uses, (tl_debug_use){line, tile});
}

static uint32_t line_of(const collector *c, const tl_op *op) {
  const tl_source *source = source_of(c->l, op->loc);
  return source ? tl_source_position(source, op->loc.offset).line : 0;
}

// What `op` touches counts for its own line and for those of the ops around it, which may do the access for it.
static void add_uses(collector *c, const tl_op *op) {
  for (uint32_t i = 0; i < op->num_operands; i++) {
    const tl_value *operand = tl_op_operand(op, i);
    const tl_op *root = operand->type->kind == TL_TYPE_MBARRIER ? operand->def : tl_buffer_root(operand);
    for (uint32_t t = 0; root && t < c->allocs.len; t++) {
      if (c->allocs.items[t] != root) continue;
      for (const tl_op *around = op; around; around = around->parent ? around->parent->parent : NULL)
        add_use(c, line_of(c, around), t);
    }
  }
}

// A loop that takes its tiles from a queue names none.
static void add_queue_use(collector *c, const tl_op *loop) {
  for (uint32_t t = 0; t < c->allocs.len; t++)
    if (c->allocs.items[t]->code == TL_OP_TILE_QUEUE) add_use(c, line_of(c, loop), t);
}

// The line of `op` is run by the elements of parallel number `parallel`, the last so far.
static void add_element(collector *c, const tl_op *op, uint32_t parallel) {
  uint32_t line = line_of(c, op);
  for (size_t i = c->elements.len; i-- > 0 && c->elements.items[i].parallel == parallel;)
    if (c->elements.items[i].line == line) return;
  if (line) tl_vec_push(&c->elements, (tl_debug_element){line, parallel});
}

// `parallel`: number, from 1, of the parallel around the block; 0: none.
static void collect(collector *c, const tl_block *block, uint32_t parallel) {
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_ALLOC) add_tile(c, op);
    if (op->code == TL_OP_MBARRIER || op->code == TL_OP_TILE_QUEUE) add_mbarrier(c, op);
    add_uses(c, op);
    if (tl_op_has(op, TL_ATTR_DYNAMIC)) add_queue_use(c, op);
    if (parallel) add_element(c, op, parallel);
    uint32_t inner = !parallel && op->code == TL_OP_PARALLEL ? ++c->num_parallels : parallel;
    for (uint32_t r = 0; r < op->num_regions; r++) collect(c, op->regions[r], inner);
  }
}

void tl_lower_debug_info(tl_lower *l, tl_arena *arena, tl_debug_info *out) {
  *out = (tl_debug_info){.num_variables = (uint32_t)l->variables.len};
  for (size_t i = 0; i < l->variables.len; i++) {
    const char *name = l->variables.items[i].name;
    if (name) l->variables.items[i].name = tl_arena_copy_bytes(arena, name, strlen(name));
  }
  out->variables = (tl_debug_variable *)(void *)tl_vec_to_arena(&l->variables, arena);
  if (!l->diags || !l->diags->sources) return;
  const tl_sources *sources = l->diags->sources;
  out->sources = TL_NEW_ARRAY(arena, tl_debug_source, sources->count + 1);
  for (uint32_t i = 0; i < sources->count; i++) {
    const tl_source *source = sources->items[i];
    if (source->macro) continue;  // the text stands under its own name already
    const char *name = tl_sources_short_name(sources, source);
    tl_debug_source *shown = &out->sources[out->num_sources++];
    shown->name = tl_arena_copy_bytes(arena, name, strlen(name));
    shown->text = (tl_str){tl_arena_copy_bytes(arena, source->text.data, source->text.len), source->text.len};
  }
  collector c = {.l = l, .arena = arena};
  collect(&c, l->kernel->regions[0], 0);
  out->num_tiles = (uint32_t)c.tiles.len;
  out->tiles = (tl_debug_tile *)(void *)tl_vec_to_arena(&c.tiles, arena);
  out->num_uses = (uint32_t)c.uses.len;
  out->uses = (tl_debug_use *)(void *)tl_vec_to_arena(&c.uses, arena);
  tl_vec_fini(&c.allocs);
  tl_vec_fini(&c.tiles);
  out->num_elements = (uint32_t)c.elements.len;
  out->elements = (tl_debug_element *)(void *)tl_vec_to_arena(&c.elements, arena);
  tl_vec_fini(&c.uses);
  tl_vec_fini(&c.elements);
}
