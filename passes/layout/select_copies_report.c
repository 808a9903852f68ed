// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is told of the accesses of a parallel.
#include "passes/analysis/memory_access.h"
#include "passes/layout/memory_traffic.h"
#include "passes/layout/select_copies.h"

enum { VECTOR_BITS = 128 };

typedef struct reporter {
  tl_pass_context *context;
  const tl_op *parallel;
  const tl_layout *layout;
} reporter;

// ---- interleaved accesses

// How far the last subscript of `other`, an access like `op`, lies behind that of `op`. False: that is not known, or
// they differ otherwise.
static bool distance_of(const tl_op *op, const tl_op *other, int64_t *out) {
  uint32_t rank = tl_element_rank(op);
  if (other->code != op->code || tl_element_buffer(other) != tl_element_buffer(op)) return false;
  for (uint32_t d = 0; d < rank; d++) {
    tl_affine a = tl_affine_of(tl_element_index(op, d)), b = tl_affine_of(tl_element_index(other, d));
    if (!a.valid || !b.valid) return false;
    tl_affine difference = tl_affine_sub(&b, &a);
    if (!difference.valid || difference.num_terms > 0) return false;
    if (d + 1 == rank)
      *out = difference.constant;
    else if (difference.constant != 0)
      return false;
  }
  return rank > 0;
}

static bool checks_nothing(const tl_op *op) {
  for (uint32_t d = 0; d < tl_element_rank(op); d++)
    if (tl_element_check(op, (int32_t)d) != 0) return false;
  return true;
}

// Whether groups of `elements` begin at multiples of them: the base of the last subscript, and rows.
static bool begins_at_multiple(const tl_op *op, const tl_value *along, int32_t vec, int64_t elements) {
  const tl_value *buffer = tl_element_buffer(op);
  if (tl_buffer_align(buffer) % (elements * tl_dtype_bits(buffer->type->dtype) / 8) != 0) return false;
  for (int32_t d = 0; d < buffer->type->rank; d++) {
    tl_lane_form form = tl_lane_form_of(tl_element_index(op, (uint32_t)d), along, vec);
    bool is_last = d + 1 == buffer->type->rank;
    if (!form.known || (!is_last && form.scale != 0)) return false;
    int64_t stride = is_last ? 1 : tl_buffer_stride_divisor(buffer, d);
    if (form.divisor != 0 && tl_gcd(stride, elements) * tl_gcd(form.divisor, elements) % elements != 0) return false;
  }
  return true;
}

int32_t tl_interleaved_elements(const tl_op *access, const tl_op *parallel) {
  enum { MOST_APART = 4 };
  const tl_block *body = parallel->regions[0];
  const tl_value *buffer = tl_element_buffer(access);
  int32_t bits = tl_dtype_bits(buffer->type->dtype), held = tl_parallel_vector(parallel);
  if (body->num_args == 0 || buffer->type->rank == 0 || bits < 8 || !tl_buffer_is_row_contiguous(buffer)) return 1;
  const tl_value *along = body->args[body->num_args - 1];
  int32_t vec = held & -held;
  tl_lane_form form = tl_lane_form_of(tl_element_index(access, (uint32_t)buffer->type->rank - 1), along, vec);
  if (!form.known || form.scale < 2 || form.scale > MOST_APART || (form.scale & (form.scale - 1))) return 1;
  // Which of the places between two of its own others access, and which access is the first of a group.
  bool found[MOST_APART] = {false};
  for (const tl_op *op = access->parent->first; op; op = op->next) {
    int64_t distance;
    if (op->num_regions > 0) return 1;  // branches and loops keep accesses apart
    if (op->code != access->code || !checks_nothing(op) || !distance_of(access, op, &distance)) continue;
    int64_t place = ((distance % form.scale) + form.scale) % form.scale;
    found[place] |= distance > -form.scale && distance < form.scale;
    int64_t elements = VECTOR_BITS / bits < vec * form.scale ? VECTOR_BITS / bits : vec * form.scale;
    bool all = true;
    for (int64_t i = 0; i < form.scale; i++) all &= found[i];
    if (!all) continue;
    for (const tl_op *first = access->parent->first; first; first = first->next)
      if (first->code == access->code && distance_of(access, first, &distance) &&
          begins_at_multiple(first, along, vec, elements))
        return (int32_t)elements;
  }
  return 1;
}

// ---- reasons

// The dim along which neighbouring threads, or the elements of one, lie; -1: there is one thread with one element.
static int32_t dim_of_threads(const tl_layout *layout) {
  for (int axis = TL_AXIS_REGISTER; axis <= TL_AXIS_LANE; axis++)
    for (int32_t m = 0; m < layout->num_modes; m++) {
      const tl_layout_mode *mode = &layout->modes[m];
      if (mode->axis != (tl_layout_axis)axis || mode->size == 1 || mode->dim == TL_DIM_NONE) continue;
      if (axis == TL_AXIS_LANE || mode->stride == 1) return mode->dim;
    }
  return -1;
}

// A search for the widest access of global memory that steps by one along a dim.
typedef struct access_search {
  const tl_op *parallel;
  const tl_value *along;
  const tl_op *found;
} access_search;

static void look_along(tl_op *op, void *user) {
  access_search *search = user;
  if (op->code != TL_OP_LOAD && op->code != TL_OP_STORE && op->code != TL_OP_ATOMIC) return;
  const tl_value *buffer = tl_element_buffer(op);
  uint32_t rank = tl_element_rank(op);
  if (search->found || rank == 0 || !tl_buffer_is_global(buffer) || !tl_buffer_is_row_contiguous(buffer)) return;
  tl_lane_form form = tl_lane_form_of(tl_element_index(op, rank - 1), search->along, 2);
  if (form.known && form.scale == 1) search->found = op;
}

static const char *name_of(const tl_value *index) {
  return index->name ? index->name : "an earlier index";
}

// Why threads do not hold the neighbours that the access could move.
static void append_reason(const reporter *self, tl_strbuf *text) {
  const tl_block *body = self->parallel->regions[0];
  int32_t dim = self->layout ? dim_of_threads(self->layout) : -1;
  if (dim < 0 || dim == (int32_t)body->num_args - 1) {
    tl_strbuf_append_c(text, "the loop's threads hold no more neighbours");
    return;
  }
  access_search search = {.parallel = self->parallel, .along = body->args[dim]};
  for (tl_op *op = body->first; op; op = op->next) tl_walk(op, look_along, &search);
  tl_strbuf_appendf(text, "the loop's threads run along '%s'", name_of(body->args[dim]));
  if (search.found)
    tl_strbuf_appendf(text, " for '%s', whose rows do", tl_buffer_name(tl_element_buffer(search.found)));
  else
    tl_strbuf_append_c(text, " as the tiles do that they share");
}

// ---- remarks

// Sectors that the warps touch, where that is much more than what they ask for.
static void report_sectors(const reporter *self, const tl_op *op, int32_t vec, int32_t repeat) {
  enum { MUCH = 2, SOME = 4 };
  if (!self->layout || !tl_buffer_is_global(tl_element_buffer(op))) return;
  tl_traffic traffic = tl_element_traffic(op, self->parallel, self->layout, vec, repeat);
  // What a load leaves to the next ones of the warp is in L1 then; stores go to L2 as they are.
  int64_t moved = op->code == TL_OP_LOAD ? traffic.distinct : traffic.units;
  if (traffic.instructions == 0 || moved <= MUCH * traffic.least) return;
  int64_t touched = traffic.units / traffic.instructions;
  int64_t least = (traffic.least + traffic.instructions - 1) / traffic.instructions;
  if (touched < MUCH * least || touched - least < SOME) return;
  tl_diag_report(
      self->context->diags, TL_DIAG_REMARK_SECTORS, op->loc,
      "each %s '%s' touches %lld sectors of 32 bytes a warp, where %lld would hold its elements: its threads' "
      "places lie apart",
      op->code == TL_OP_LOAD ? "load of" : "store to", tl_buffer_name(tl_element_buffer(op)), (long long)touched,
      (long long)least);
}

// The width of an access, and what keeps it below 16 bytes.
static void report_access(tl_op *op, void *user) {
  const reporter *self = user;
  if (op->code != TL_OP_LOAD && op->code != TL_OP_STORE) return;
  const tl_value *buffer = tl_element_buffer(op);
  int bits = tl_dtype_bits(buffer->type->dtype);
  if (buffer->type->scope == TL_SCOPE_LOCAL || buffer->type->rank == 0) return;
  int32_t vec = (int32_t)tl_op_int(op, TL_ATTR_VEC, 1), repeat = (int32_t)tl_op_int(op, TL_ATTR_REPEAT, 1);
  bool is_one = tl_element_is_uniform(op, self->parallel);
  int32_t moved = vec == 1 && repeat == 1 && !is_one ? tl_interleaved_elements(op, self->parallel) : vec;
  tl_strbuf text;
  tl_strbuf_init(&text);
  tl_strbuf_appendf(&text, "'%s' is %s %d element%s at a time", tl_buffer_name(buffer),
                    op->code == TL_OP_LOAD ? "loaded" : "stored", moved, moved == 1 ? "" : "s");
  if (is_one) tl_strbuf_append_c(&text, ", the same for all neighbours");
  if (moved > vec) tl_strbuf_append_c(&text, " together with those between them");
  if (tl_op_has(op, TL_ATTR_SHIFT))
    tl_strbuf_append_c(&text, " out of two aligned vectors, the second of which is the neighbours' first");
  if (moved * bits < VECTOR_BITS && repeat == 1 && !is_one) {
    const char *obstacle = moved > vec ? NULL : tl_element_vector_obstacle(op, self->parallel, vec * 2);
    tl_strbuf_appendf(&text, ", not %d: ", moved * 2);
    if (obstacle)
      tl_strbuf_append_c(&text, obstacle);
    else
      append_reason(self, &text);
  }
  int conflicts = tl_bank_conflicts(op, self->parallel);
  if (conflicts > 1) tl_strbuf_appendf(&text, "; bank conflicts make it %d times as long", conflicts);
  tl_diag_report(self->context->diags, TL_DIAG_REMARK_ACCESS, op->loc, "%s", tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  if (moved == vec) report_sectors(self, op, vec, repeat);
}

void tl_report_accesses(tl_pass_context *context, tl_op *parallel) {
  reporter self = {context, parallel, tl_op_layout(parallel, TL_ATTR_THREAD_LAYOUT)};
  for (tl_op *op = parallel->regions[0]->first; op; op = op->next) tl_walk(op, report_access, &self);
}
