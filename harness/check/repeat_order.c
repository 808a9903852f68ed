// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What makes a kernel's results depend on the order in which its threads come. Sums of integers, and extremes of
// anything, are the same in any order; the queue of tiles is an op of its own and decides only who computes.
#include "harness/check/repeat.h"

typedef struct finder {
  const tl_op *found;
  tl_dtype added;  // NONE: a previous value that is used
} finder;

static bool adds_floats(const tl_op *op, const tl_value *buffer) {
  return tl_op_int(op, TL_ATTR_ATOMIC, TL_ATOMIC_ADD) == TL_ATOMIC_ADD && tl_dtype_is_float(buffer->type->dtype);
}

static bool is_used(const tl_op *op) {
  for (uint32_t i = 0; i < op->num_results; i++) {
    if (tl_op_result(op, i)->uses) return true;
  }
  return false;
}

static void look_at(tl_op *op, void *user) {
  finder *f = user;
  const tl_value *target = NULL;
  if (f->found) return;
  if (op->code == TL_OP_ATOMIC) target = tl_op_arg(op, TL_GROUP_ATOMIC_buffer);
  if (op->code == TL_OP_COPY && tl_op_has(op, TL_ATTR_ATOMIC)) target = tl_op_arg(op, TL_GROUP_COPY_dst);
  if (!target) return;
  bool adds = adds_floats(op, target);
  if (!adds && !is_used(op)) return;
  *f = (finder){op, adds ? target->type->dtype : TL_DTYPE_NONE};
}

static bool find_in(const tl_compiled *compiled, tl_strbuf *out) {
  finder f = {0};
  if (compiled->tile) tl_walk_module(compiled->tile, look_at, &f);
  if (!f.found) return false;
  const tl_source *source = tl_sources_get(compiled->sources, f.found->loc.source);
  if (f.added)
    tl_strbuf_appendf(out, "additions of %s", tl_dtype_name(f.added));
  else
    tl_strbuf_append_c(out, "previous values of atomics");
  if (source)
    tl_strbuf_appendf(out, " at %s:%u", tl_sources_short_name(compiled->sources, source),
                      tl_source_position(source, f.found->loc.offset).line);
  return true;
}

bool tl_compiled_find_order(const tl_compiled *compiled, tl_strbuf *out) {
  if (find_in(compiled, out)) return true;
  for (uint32_t i = 0; i < compiled->num_parts; i++) {
    if (tl_compiled_find_order(&compiled->parts[i], out)) return true;
  }
  return false;
}
