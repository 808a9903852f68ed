// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `elementwise`: inputs of any shape and dtype, copied into tiles or read in place; a chain of tile assignments,
// parallels, loops and conditions over tiles; outputs.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test/random/expr.h"
#include "test/random/families.h"
#include "test/random/shape.h"

enum { MAX_TILES = 3, MAX_REDUCED = 2 };

typedef struct tile {
  char name[8];
  uint32_t mask;         // the dims it has
  tl_rspec_value value;  // its dtype, and what is known of the content; `body` is not used
} tile;

typedef struct chain {
  tl_rspec *spec;
  tl_rspec_shape shape;
  tl_rspec_input inputs[TL_RSPEC_MAX_INPUTS];
  int num_inputs;
  tile tiles[MAX_TILES];
  int num_tiles;
  tile reduced[MAX_REDUCED];  // tiles that lack a dim
  int num_reduced;
  int num_results;   // R0 …: intermediate references
  int num_counters;  // loop indices and lets
} chain;

static bool maybe(chain *c, uint32_t percent) {
  return tl_rspec_maybe(c->spec->choices, percent);
}

// What an expression may read: in a tile assignment whole tiles, in a parallel elements.
static void collect(chain *c, bool is_tile_form, bool with_indices, tl_rspec_values *out) {
  out->len = 0;
  for (int i = 0; i < c->num_tiles; i++) {
    tl_rspec_value value = c->tiles[i].value;
    value.body = is_tile_form
                     ? tl_rspec_text(c->spec, "%s", c->tiles[i].name)
                     : tl_rspec_text(c->spec, "%s[%s]", c->tiles[i].name, tl_rspec_tile_element(c->spec, &c->shape));
    tl_rspec_add_value(out, value);
  }
  for (int i = 0; i < c->num_reduced; i++) {
    tile *t = &c->reduced[i];
    tl_rspec_value value = t->value;
    value.body = is_tile_form
                     ? tl_rspec_text(c->spec, "%s%s", t->name, tl_rspec_broadcast(c->spec, &c->shape, t->mask))
                     : tl_rspec_text(c->spec, "%s[%s]", t->name, tl_rspec_tile_places(c->spec, &c->shape, t->mask));
    tl_rspec_add_value(out, value);
  }
  for (int i = 0; i < c->num_inputs; i++) {
    tl_rspec_value value;
    if (tl_rspec_input_value(c->spec, &c->shape, &c->inputs[i], is_tile_form, &value)) tl_rspec_add_value(out, value);
  }
  if (with_indices || out->len == 0) tl_rspec_index_values(c->spec, &c->shape, is_tile_form, out);
}

// Notes the content of a tile as an intermediate of the reference.
static void define(chain *c, tile *t, tl_rspec_value value) {
  int number = c->num_results++;
  tl_rspec_line(c->spec, TL_RSPEC_REFERENCE, "- R%d[%s] = %s", number, tl_rspec_ranges(c->spec, &c->shape),
                value.reference);
  tl_dtype dtype = t->value.dtype;
  t->value = tl_rspec_stored(value, dtype);
  t->value.reference = tl_rspec_text(c->spec, "R%d[%s]", number, tl_rspec_indices(c->spec, &c->shape));
}

// A dtype that holds the value: mostly its own.
static tl_dtype dtype_for(chain *c, const tl_rspec_value *value) {
  if (!tl_dtype_is_float(value->dtype)) {
    if (value->dtype == TL_DTYPE_I64) return TL_DTYPE_I64;
    return TL_DTYPE_I32;
  }
  static const tl_dtype dtypes[] = {TL_DTYPE_F32, TL_DTYPE_F32, TL_DTYPE_F16, TL_DTYPE_BF16};
  tl_dtype dtype = dtypes[tl_rspec_choose(c->spec->choices, 4)];
  return value->dtype == TL_DTYPE_F64 ? TL_DTYPE_F64 : dtype;
}

static tile *new_tile(chain *c, const tl_rspec_value *value) {
  if (c->num_tiles == MAX_TILES) return &c->tiles[tl_rspec_choose(c->spec->choices, MAX_TILES)];
  tile *t = &c->tiles[c->num_tiles++];
  snprintf(t->name, sizeof(t->name), "t%d", c->num_tiles - 1);
  t->value = (tl_rspec_value){.dtype = dtype_for(c, value)};
  bool is_shared = maybe(c, 40) && tl_rspec_take_shared(c->spec, &c->shape, ~0u, t->value.dtype);
  tl_rspec_line(c->spec, is_shared ? TL_RSPEC_SHARED : TL_RSPEC_FRAGMENT, "%s: %s[%s]", t->name,
                tl_dtype_name(t->value.dtype), tl_rspec_tile_dims(c->spec, &c->shape, ~0u));
  return t;
}

// Whether a value may be stored in a tile: integers only whole and in range, and no error that grows large.
static bool fits(const tile *t, const tl_rspec_value *value) {
  if (tl_dtype_is_float(t->value.dtype)) return true;
  return !tl_dtype_is_float(value->dtype) && (t->value.dtype == TL_DTYPE_I64 || tl_rspec_max_abs(value) < 0x1p30);
}

static void assign(chain *c) {
  tl_rspec_values leaves;
  bool in_parallel = maybe(c, 50);
  collect(c, !in_parallel, maybe(c, 20), &leaves);
  tl_rspec_value value = tl_rspec_expression(c->spec, &leaves, 4);
  int before = c->num_tiles;
  tile *t = new_tile(c, &value);
  if (c->num_tiles == before && !fits(t, &value)) return;
  const char *subscripts = "";
  if (in_parallel) {
    tl_rspec_body(c->spec, "- parallel: %s", tl_rspec_parallel(c->spec, &c->shape));
    tl_rspec_body(c->spec, "  do:");
    c->spec->body_indent += 2;
    subscripts = tl_rspec_text(c->spec, "[%s]", tl_rspec_tile_element(c->spec, &c->shape));
    if (maybe(c, 25)) {
      tl_rspec_body(c->spec, "- let:");
      tl_rspec_body(c->spec, "    v%d: %s", c->num_counters, value.body);
      tl_rspec_body(c->spec, "- %s%s = v%d", t->name, subscripts, c->num_counters++);
      c->spec->body_indent -= 2;
      define(c, t, value);
      return;
    }
  }
  tl_rspec_body(c->spec, "- %s%s = %s", t->name, subscripts, value.body);
  if (in_parallel) c->spec->body_indent -= 2;
  define(c, t, value);
}

// An existing tile, changed under a condition of each element: `where`, `if` in a parallel.
static void assign_some(chain *c) {
  tl_rspec_values leaves, indices = {.len = 0};
  tl_rspec_value condition, r;
  tile *t = &c->tiles[tl_rspec_choose(c->spec->choices, (uint32_t)c->num_tiles)];
  collect(c, false, maybe(c, 30), &leaves);
  tl_rspec_index_values(c->spec, &c->shape, false, &indices);
  tl_rspec_value value = tl_rspec_expression(c->spec, &leaves, 3);
  bool as_where = tl_rspec_choose(c->spec->choices, 2) == 0;
  bool found = tl_rspec_condition(c->spec, maybe(c, 50) ? &indices : &leaves, &condition);
  if (!fits(t, &value) || !found) return;
  tl_dtype dtype = t->value.dtype;
  tl_rspec_value stored = tl_rspec_stored(value, dtype);
  if (!tl_rspec_choose_between(c->spec, condition, stored, t->value, true, &r)) return;
  const char *element = tl_rspec_tile_element(c->spec, &c->shape);
  tl_rspec_body(c->spec, "- parallel: %s", tl_rspec_parallel(c->spec, &c->shape));
  if (as_where) tl_rspec_body(c->spec, "  where: %s", condition.body);
  tl_rspec_body(c->spec, "  do:");
  c->spec->body_indent += 2;
  if (as_where) {
    tl_rspec_body(c->spec, "- %s[%s] = %s", t->name, element, value.body);
  } else {
    tl_rspec_body(c->spec, "- if: %s", condition.body);
    tl_rspec_body(c->spec, "  then:");
    tl_rspec_body(c->spec, "    - %s[%s] = %s", t->name, element, value.body);
    if (maybe(c, 40)) {
      tl_rspec_value sum;
      if (tl_rspec_add(c->spec, t->value, value, true, &sum) && fits(t, &sum)) {
        tl_rspec_body(c->spec, "  else:");
        tl_rspec_body(c->spec, "    - %s[%s] -= %s", t->name, element, value.body);
        if (!tl_rspec_choose_between(c->spec, condition, stored, tl_rspec_stored(sum, dtype), true, &r)) {
          r.err = fmax(stored.err, sum.err) * 2 + tl_rspec_rounding(dtype, tl_rspec_max_abs(&sum), false);
        }
      }
    }
  }
  c->spec->body_indent -= 2;
  define(c, t, r);
}

// `t += e` and the like.
static void compound(chain *c) {
  static const char *const signs[] = {"+=", "-=", "*=", "max=", "min="};
  tl_rspec_values leaves;
  tile *t = &c->tiles[tl_rspec_choose(c->spec->choices, (uint32_t)c->num_tiles)];
  bool in_parallel = maybe(c, 40);
  collect(c, !in_parallel, maybe(c, 20), &leaves);
  tl_rspec_value value = tl_rspec_expression(c->spec, &leaves, 3), r;
  uint32_t kind = tl_rspec_choose(c->spec->choices, 5);
  bool done = kind < 2   ? tl_rspec_add(c->spec, t->value, value, kind == 1, &r)
              : kind < 3 ? tl_rspec_multiply(c->spec, t->value, value, &r)
                         : tl_rspec_min_max(c->spec, t->value, value, kind == 3, &r);
  if (!done || !fits(t, &r)) return;
  if (in_parallel) {
    tl_rspec_body(c->spec, "- parallel: %s", tl_rspec_parallel(c->spec, &c->shape));
    tl_rspec_body(c->spec, "  do: %s[%s] %s %s", t->name, tl_rspec_tile_element(c->spec, &c->shape), signs[kind],
                  value.body);
  } else {
    tl_rspec_body(c->spec, "- %s %s %s", t->name, signs[kind], value.body);
  }
  define(c, t, r);
}

// How a loop is written, and over which of its indices the reference adds up.
typedef struct loop {
  const char *name;
  int first, count, step;
  const char *kept;  // a condition of the reference, or NULL
} loop;

// Opens a loop; the body's indentation is that of its statements then.
static loop open_loop(chain *c) {
  tl_rspec *spec = c->spec;
  loop l = {.name = tl_rspec_text(spec, "k%d", c->num_counters++), .step = 1};
  uint32_t kind = tl_rspec_choose(spec->choices, 7);
  l.count = (int)tl_rspec_pick(spec->choices, 2, 1, 3, 4, 0);
  if (kind < 3) {
    static const char *const words[] = {"for", "unroll", "pipelined"};
    tl_rspec_body(spec, "- %s: %s in %d", words[kind], l.name, l.count);
  } else if (kind == 3) {
    l.step = 2;
    l.first = 1;
    tl_rspec_body(spec, "- for: %s in range(1, %d, 2)", l.name, 1 + l.count * 2);
    l.kept = tl_rspec_text(spec, "%s %% 2 == 1", l.name);
  } else if (kind == 4) {
    tl_rspec_line(spec, TL_RSPEC_LOCAL, "%s: i32", l.name);
    tl_rspec_body(spec, "- %s = 0", l.name);
    tl_rspec_body(spec, "- while: %s < %d", l.name, l.count);
  } else {
    tl_rspec_body(spec, "- for: %s in %d", l.name, l.count + 2);
  }
  tl_rspec_body(spec, "  do:");
  spec->body_indent += 2;
  if (kind == 5) {
    tl_rspec_body(spec, "- if: %s == %d", l.name, l.count);
    tl_rspec_body(spec, "  then:");
    tl_rspec_body(spec, "    - break:");
  } else if (kind == 6) {
    l.count += 2;
    tl_rspec_body(spec, "- if: (%s + g0) %% 2 == 1", l.name);
    tl_rspec_body(spec, "  then:");
    tl_rspec_body(spec, "    - continue:");
    l.kept = tl_rspec_text(spec, tl_rspec_is_tiled(&c->shape, 0) ? "(%s + n0 // B0) %% 2 == 0" : "(%s + n0) %% 2 == 0",
                           l.name);
  }
  return l;
}

// A loop that adds to a tile; the reference is a sum.
static void accumulate(chain *c) {
  tl_rspec *spec = c->spec;
  tl_rspec_values leaves;
  int at = (int)tl_rspec_choose(spec->choices, (uint32_t)c->num_tiles);
  tile copy = c->tiles[at];
  bool in_parallel = maybe(c, 50);
  loop l = open_loop(c);
  bool is_while = strstr(tl_strbuf_c(&spec->sections[TL_RSPEC_LOCAL]), l.name) != NULL;
  // The tile itself changes in the loop: it is no operand.
  c->tiles[at] = c->tiles[--c->num_tiles];
  collect(c, !in_parallel, false, &leaves);
  c->tiles[c->num_tiles++] = c->tiles[at];
  c->tiles[at] = copy;
  double last = fmax(l.first + (l.count - 1) * l.step, 0);
  tl_rspec_add_value(&leaves, tl_rspec_exact(l.name, l.name, TL_DTYPE_I32, 0, last, true));
  tl_rspec_value value = tl_rspec_expression(spec, &leaves, 3), r = copy.value, sum;
  bool fine = fits(&copy, &value);
  for (int i = 0; fine && i < l.count; i++) {
    // An error bound that grows as the sum does.
    fine = tl_rspec_add(spec, r, value, false, &sum) && fits(&copy, &sum);
    if (fine) r = tl_rspec_stored(sum, copy.value.dtype);
  }
  if (!fine) {
    // The loop stands there already: it does nothing that counts.
    value = tl_rspec_exact("0", "0", copy.value.dtype, 0, 0, true);
    r = copy.value;
  } else if (l.count > 0) {
    r.lo = fmin(r.lo, copy.value.lo);
    r.hi = fmax(r.hi, copy.value.hi);
  }
  const char *term = l.kept ? tl_rspec_text(spec, "(%s if %s else 0)", value.reference, l.kept) : value.reference;
  r.reference = tl_rspec_text(spec, "%s + sum[%s in %d:%d](%s)", copy.value.reference, l.name, l.first,
                              l.first + l.count * l.step, term);
  if (in_parallel) {
    tl_rspec_body(spec, "- parallel: %s", tl_rspec_parallel(spec, &c->shape));
    tl_rspec_body(spec, "  do: %s[%s] += %s", copy.name, tl_rspec_tile_element(spec, &c->shape), value.body);
  } else {
    tl_rspec_body(spec, "- %s += %s", copy.name, value.body);
  }
  if (is_while) tl_rspec_body(spec, "- %s += 1", l.name);
  spec->body_indent -= 2;
  define(c, &c->tiles[at], r);
}

// Whether the blocks of a dim cover it exactly in every case.
static bool divides(const tl_rspec_shape *shape, int dim) {
  for (int i = 0; i < shape->num_cases; i++) {
    if (shape->size[i][dim] % shape->block[dim] != 0) return false;
  }
  return true;
}

// `reduce: r = max(t, axis=1)` over the tile's part of a dim.
static void reduce(chain *c) {
  static const char *const kinds[] = {"sum", "max", "min", "absmax", "abssum"};
  tl_rspec *spec = c->spec;
  tl_rspec_shape *shape = &c->shape;
  tile *t = &c->tiles[tl_rspec_choose(spec->choices, (uint32_t)c->num_tiles)];
  uint32_t kind = tl_rspec_choose(spec->choices, 5);
  int axis = (int)tl_rspec_choose(spec->choices, (uint32_t)shape->tile_rank);
  int dim = shape->rank - shape->tile_rank + axis;
  bool is_float = tl_dtype_is_float(t->value.dtype), is_expression = maybe(c, 30);
  if (shape->tile_rank < 2 || c->num_reduced == MAX_REDUCED || !divides(shape, dim)) return;
  tl_rspec_value from = t->value;
  bool is_abs = kind >= 3;
  if (is_abs) {
    from.hi = tl_rspec_max_abs(&from);
    from.lo = 0;
    from.reference = tl_rspec_text(spec, "abs(%s)", from.reference);
  }
  double count = (double)shape->block[dim];
  tl_rspec_value r = from;
  r.dtype = !is_float ? t->value.dtype : t->value.dtype == TL_DTYPE_F64 ? TL_DTYPE_F64 : TL_DTYPE_F32;
  if (kind == 0 || kind == 4) {
    r.lo *= count;
    r.hi *= count;
    r.err = from.err * count;
    if (!r.is_whole || from.err > 0) r.err += count * tl_rspec_rounding(r.dtype, tl_rspec_max_abs(&r), false);
    if (tl_rspec_max_abs(&r) > (is_float ? 1000 : 0x1p30)) return;
  }
  tile *out = &c->reduced[c->num_reduced];
  snprintf(out->name, sizeof(out->name), "r%d", c->num_reduced++);
  out->mask = tl_rspec_tile_mask(shape) & ~(1u << dim);
  out->value.dtype = r.dtype;
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "%s: %s[%s]", out->name, tl_dtype_name(r.dtype),
                tl_rspec_tile_dims(spec, shape, out->mask));
  tl_rspec_body(spec, is_expression ? "- %s = %s(%s, axis=%d)" : "- reduce: %s = %s(%s, axis=%d)", out->name,
                kinds[kind], t->name, axis);
  // The source as an intermediate that can be read at other places.
  int number = c->num_results++;
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- R%d[%s] = %s", number, tl_rspec_ranges(spec, shape), from.reference);
  const char *places = "";
  for (int k = 0; k < shape->rank; k++) {
    places = tl_rspec_text(spec, k == dim ? "%s%sn%d // B%d * B%d + q" : "%s%sn%d", places, k ? ", " : "", k, k, k);
  }
  const char *word = kind == 0 || kind == 4 ? "sum" : kind == 2 ? "min" : "max";
  r.reference = tl_rspec_text(spec, "%s[q in 0:B%d](R%d[%s])", word, dim, number, places);
  define(c, out, r);
}

// An assignment under a condition that is the same for the whole block.
static void assign_if(chain *c) {
  tl_rspec_values leaves, indices = {.len = 0};
  tl_rspec_value condition, r;
  tile *t = &c->tiles[tl_rspec_choose(c->spec->choices, (uint32_t)c->num_tiles)];
  collect(c, true, false, &leaves);
  tl_rspec_index_values(c->spec, &c->shape, true, &indices);
  bool found = tl_rspec_condition(c->spec, &indices, &condition);
  tl_rspec_value value = tl_rspec_expression(c->spec, &leaves, 3);
  if (!found || !fits(t, &value)) return;
  if (!tl_rspec_choose_between(c->spec, condition, tl_rspec_stored(value, t->value.dtype), t->value, true, &r)) return;
  tl_rspec_body(c->spec, "- if: %s", condition.body);
  tl_rspec_body(c->spec, "  then:");
  tl_rspec_body(c->spec, "    - %s = %s", t->name, value.body);
  define(c, t, r);
}

static void write_output(chain *c, int number, const tile *t) {
  tl_rspec_value value = t->value;
  tl_dtype dtype = dtype_for(c, &value);
  value = tl_rspec_stored(value, dtype);
  const char *strides = "";
  if (c->shape.rank == 2 && maybe(c, 10)) strides = " strides(D1 + 3, 1)";
  tl_rspec_line(c->spec, TL_RSPEC_ARGS, "Y%d: out %s[%s]%s", number, tl_dtype_name(dtype),
                tl_rspec_dims(c->spec, &c->shape, ~0u), strides);
  tl_rspec_line(c->spec, TL_RSPEC_REFERENCE, "- Y%d[%s] = %s", number, tl_rspec_indices(c->spec, &c->shape),
                value.reference);
  // The bound holds for the worst case; what the last rounding adds is relative.
  tl_rspec_tolerance(c->spec, tl_rspec_text(c->spec, "Y%d", number), value.err > 0 ? 1e-6 : 0, value.err);
  if (maybe(c, 40)) {
    tl_rspec_body(c->spec, "- parallel: %s", tl_rspec_parallel(c->spec, &c->shape));
    tl_rspec_body(c->spec, "  do: Y%d[%s] = %s[%s]", number, tl_rspec_element(c->spec, &c->shape, false), t->name,
                  tl_rspec_tile_element(c->spec, &c->shape));
  } else {
    tl_rspec_body(c->spec, "- copy: %s -> Y%d[%s]", t->name, number, tl_rspec_element(c->spec, &c->shape, true));
  }
}

void tl_rspec_make_elementwise(tl_rspec *spec) {
  chain c = {.spec = spec};
  tl_rspec_make_shape(spec, &c.shape);
  tl_rspec_make_options(spec, &c.shape);
  c.num_inputs = 1 + (int)tl_rspec_choose(spec->choices, 4);
  for (int i = 0; i < c.num_inputs; i++) {
    tl_rspec_make_input(spec, &c.shape, i, &c.inputs[i]);
    if (maybe(&c, 60)) tl_rspec_load_input(spec, &c.shape, &c.inputs[i]);
  }
  assign(&c);
  uint32_t stages = tl_rspec_choose(spec->choices, 7);
  for (uint32_t i = 0; i < stages; i++) {
    switch (tl_rspec_choose(spec->choices, 8)) {
      case 0:
        assign(&c);
        break;
      case 1:
        compound(&c);
        break;
      case 2:
        assign_some(&c);
        break;
      case 3:
        accumulate(&c);
        break;
      case 4:
        assign_if(&c);
        break;
      case 5:
      case 6:
        reduce(&c);
        break;
      default:
        assign(&c);
        break;
    }
  }
  for (int i = 0; i < c.num_tiles; i++) write_output(&c, i, &c.tiles[i]);
}
