// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `sums`: loops that carry sums over threads, under `order: any` and without it: along either axis, scaled,
// under conditions, through loops inside, read on the way or not. All numbers are small whole ones or halves of them:
// exact in any order.
#include <stdio.h>
#include <string.h>

#include "test/random/families.h"

enum { MAX_CARRIED = 3, MAX_STATEMENTS = 6 };

typedef struct sums {
  tl_rspec *spec;
  int64_t kept, reduced, other, threads;
  bool down_columns, is_pipelined;
  int num_carried, num_sums, version[MAX_CARRIED];
} sums;

static int choose(sums *s, int n) {
  return (int)tl_rspec_choose(s->spec->choices, (uint32_t)n);
}

static bool maybe(sums *s, uint32_t percent) {
  return tl_rspec_maybe(s->spec->choices, percent);
}

static void draw(sums *s) {
  tl_rspec_choices *choices = s->spec->choices;
  s->kept = tl_rspec_pick(choices, 4, 1, 2, 16, 5, 33, 64);
  s->reduced = tl_rspec_pick(choices, 64, 32, 256, 7, 100, 512, 16);
  s->other = tl_rspec_pick(choices, 32, 8, 64, 96);
  s->threads = tl_rspec_pick(choices, 64, 32, 128, 256, 96);
  while (s->kept * s->reduced / s->threads > 128) s->threads *= 2;
  s->down_columns = maybe(s, 35);
  s->is_pipelined = maybe(s, 30);
  s->num_carried = 1 + choose(s, MAX_CARRIED);
}

// ---- tiles

static void write_tile(sums *s, const char *tensor, const char *tile, int64_t extent) {
  tl_rspec *spec = s->spec;
  bool rows = !s->down_columns;
  long long kept = s->kept, along = extent;
  tl_rspec_line(spec, TL_RSPEC_ARGS, rows ? "%s: in f32[%lld, %lld * 5]" : "%s: in f32[%lld * 5, %lld]", tensor,
                rows ? kept : along, rows ? along : kept);
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "%s: f32[%lld, %lld]", tile, rows ? kept : along, rows ? along : kept);
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "%s: ints(-2, 2)", tensor);
}

static void write_head(sums *s) {
  tl_rspec *spec = s->spec;
  tl_rspec_line(spec, TL_RSPEC_PARAMS, "T: dynamic");
  tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %lld", (long long)s->threads);
  tl_rspec_line(spec, TL_RSPEC_GRID, "b: 1");
  write_tile(s, "X", "x", s->reduced);
  write_tile(s, "Z", "z", s->other);
  tl_rspec_line(spec, TL_RSPEC_ARGS, "W: in f32[%lld]", (long long)s->kept);
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "W: ints(-1, 1)");
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "w, row: f32[%lld]", (long long)s->kept);
  if (s->is_pipelined)
    tl_rspec_line(spec, TL_RSPEC_SHARED, s->down_columns ? "x_s: f32[%lld, %lld]" : "x_s: f32[%2$lld, %1$lld]",
                  (long long)s->reduced, (long long)s->kept);
  for (int c = 0; c < s->num_carried; c++) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "Y%d: out f32[%lld]", c, (long long)s->kept);
    tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "c%d: f32[%lld]", c, (long long)s->kept);
  }
  tl_rspec_line(spec, TL_RSPEC_CASES, "- {T: %d}", 1 + choose(s, 5));
}

// ---- statements, each with what the reference makes of it

// A sum over threads of the tile: its text, and the name of its values in the reference.
static const char *sum_of(sums *s, const char **reference) {
  static const char *const bodies[] = {"%s", "%s * %s", "abs(%s)", "%s + 1"};
  bool is_z = maybe(s, 15);
  int kind = choose(s, 4);
  const char *tile = is_z ? "z" : "x", *tensor = is_z ? "Z" : "X";
  long long extent = is_z ? s->other : s->reduced;
  char element[64];
  snprintf(element, sizeof element, s->down_columns ? "%s[t * %lld + n, m]" : "%s[m, t * %lld + n]", tensor, extent);
  const char *in_body = tl_rspec_text(s->spec, bodies[kind], tile, tile);
  tl_rspec_line(s->spec, TL_RSPEC_REFERENCE, "- R%d[t in 0:T, m in 0:%lld] = sum[n in 0:%lld](%s)", s->num_sums,
                (long long)s->kept, extent, tl_rspec_text(s->spec, bodies[kind], element, element));
  *reference = tl_rspec_text(s->spec, "R%d[t, m]", s->num_sums++);
  return tl_rspec_text(s->spec, "sum(%s, axis=%d)", in_body, s->down_columns ? 0 : 1);
}

typedef struct statement {
  const char *name, *reference;  // of the carried tile: in the body, and its value before
  const char *sum, *total;       // a sum, and the reference's
} statement;

static const char *value_of(sums *s, int c) {
  if (s->version[c] > 0) return tl_rspec_text(s->spec, "V%d_%d[t, m]", c, s->version[c] - 1);
  return tl_rspec_text(s->spec, "(F%d[t - 1, m] if t > 0 else %d)", c, c);
}

// One that only adds up and scales.
static const char *write_linear(sums *s, const statement *at, int kind) {
  tl_rspec *spec = s->spec;
  const char *old = at->reference, *sum = at->sum, *total = at->total, *name = at->name;
  switch (kind) {
    case 0:
      tl_rspec_body(spec, "- %s += %s", name, sum);
      return tl_rspec_text(spec, "%s + %s", old, total);
    case 1:
      tl_rspec_body(spec, "- %s = %s * w + %s", name, name, sum);
      return tl_rspec_text(spec, "%s * W[m] + %s", old, total);
    case 2:
      tl_rspec_body(spec, "- %s = 1 - %s / 2 - %s", name, sum, name);
      return tl_rspec_text(spec, "1 - %s / 2 - %s", total, old);
    default:
      tl_rspec_body(spec, "- row = %s", sum);
      tl_rspec_body(spec, "- parallel: i in %lld", (long long)s->kept);
      tl_rspec_body(spec, "  do: %s[i] = select(w[i] > 0, %s[i] + row[i], 4)", name, name);
      return tl_rspec_text(spec, "(%s + %s if W[m] > 0 else 4)", old, total);
  }
}

static const char *write_control(sums *s, const statement *at, int kind) {
  tl_rspec *spec = s->spec;
  const char *old = at->reference, *sum = at->sum, *total = at->total, *name = at->name;
  if (kind == 0) {
    int rest = choose(s, 2);
    tl_rspec_body(spec, "- if: t %% 2 == %d", rest);
    tl_rspec_body(spec, "  then: %s += %s", name, sum);
    tl_rspec_body(spec, "  else: %s = %d - %s", name, rest, name);
    return tl_rspec_text(spec, "(%s + %s if t %% 2 == %d else %d - %s)", old, total, rest, rest, old);
  }
  if (kind == 1) {
    tl_rspec_body(spec, "- for: k in 3");
    if (maybe(s, 80)) tl_rspec_body(spec, "  order: any");
    tl_rspec_body(spec, "  do: %s = %s - %s", name, sum, name);
    return tl_rspec_text(spec, "%s - %s", total, old);
  }
  if (kind == 2) {
    tl_rspec_body(spec, "- %s = max(%s, %s)", name, name, sum);
    return tl_rspec_text(spec, "max(%s, %s)", old, total);
  }
  int from = choose(s, s->num_carried);
  const char *other = value_of(s, from);
  tl_rspec_body(spec, "- %s = c%d + %s", name, from, sum);
  return tl_rspec_text(spec, "%s + %s", other, total);
}

static void write_statement(sums *s, tl_strbuf *recurrence) {
  int c = choose(s, s->num_carried), kind = choose(s, 8);
  statement at = {.name = tl_rspec_text(s->spec, "c%d", c), .reference = value_of(s, c)};
  at.sum = sum_of(s, &at.total);
  const char *next = kind < 4 ? write_linear(s, &at, kind) : write_control(s, &at, kind - 4);
  tl_strbuf_appendf(recurrence, "V%d_%d[t, m in 0:%lld] = %s\n", c, s->version[c]++, (long long)s->kept, next);
}

static void write_copies(sums *s) {
  const char *place = s->down_columns ? "t * %lld, 0" : "0, t * %lld";
  const char *x = tl_rspec_text(s->spec, place, (long long)s->reduced);
  const char *z = tl_rspec_text(s->spec, place, (long long)s->other);
  tl_rspec_body(s->spec, s->is_pipelined ? "- copy: X[%s] -> x_s" : "- copy: X[%s] -> x", x);
  if (s->is_pipelined) tl_rspec_body(s->spec, "- copy: x_s -> x");
  tl_rspec_body(s->spec, "- copy: Z[%s] -> z", z);
}

static void write_reference(sums *s, const tl_strbuf *recurrence) {
  tl_rspec *spec = s->spec;
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- recur: t in 0:T");
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "  do:");
  for (const char *line = recurrence->data; line && *line;) {
    const char *end = strchr(line, '\n');
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "    - %.*s", (int)(end - line), line);
    line = end + 1;
  }
  for (int c = 0; c < s->num_carried; c++)
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "    - F%d[t, m in 0:%lld] = %s", c, (long long)s->kept, value_of(s, c));
  for (int c = 0; c < s->num_carried; c++) {
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- Y%d[m] = F%d[T - 1, m]", c, c);
    tl_rspec_tolerance(spec, tl_rspec_text(spec, "Y%d", c), 0, 0);
  }
}

void tl_rspec_make_sums(tl_rspec *spec) {
  sums s = {.spec = spec};
  tl_strbuf recurrence = {0};
  draw(&s);
  write_head(&s);
  tl_rspec_body(spec, "- copy: W[0] -> w");
  for (int c = 0; c < s.num_carried; c++) tl_rspec_body(spec, "- c%d = %d", c, c);
  tl_rspec_body(spec, s.is_pipelined ? "- pipelined: t in T" : "- for: t in T");
  if (s.is_pipelined) tl_rspec_body(spec, "  stages: 2");
  if (maybe(&s, 90)) tl_rspec_body(spec, "  order: any");
  tl_rspec_body(spec, "  do:");
  spec->body_indent += 2;
  write_copies(&s);
  int count = 1 + choose(&s, MAX_STATEMENTS);
  for (int i = 0; i < count; i++) write_statement(&s, &recurrence);
  spec->body_indent -= 2;
  for (int c = 0; c < s.num_carried; c++) tl_rspec_body(spec, "- copy: c%d -> Y%d[0]", c, c);
  write_reference(&s, &recurrence);
  tl_strbuf_fini(&recurrence);
}
