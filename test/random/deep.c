// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `deep`: long chains of lets of index arithmetic, used as subscripts, bounds and conditions. What the index
// analysis concludes about them is past what it explores, and must be the same every time.
#include "test/random/families.h"

enum { NUM_UNIFORM = 16, NUM_LETS = 60, BLOCK = 128, BLOCKS = 3, MODULUS = 4093 };

typedef struct deep {
  tl_rspec *spec;
  const char *body[NUM_LETS];       // texts of the values in the kernel
  const char *reference[NUM_LETS];  // and in the reference
  int len;
  int num_results;  // R0 …
} deep;

static int choose(deep *d, int n) {
  return (int)tl_rspec_choose(d->spec->choices, (uint32_t)n);
}

// One step of the chain: text with two earlier values in it. Results stay small: whatever grows is taken modulo.
static const char *step(deep *d, int kind, const char *a, const char *b, int c) {
  switch (kind) {
    case 0:
      return tl_rspec_text(d->spec, "(%s + %d)", a, c);
    case 1:
      return tl_rspec_text(d->spec, "((%s * %d + %s) %% %d)", a, c, b, MODULUS);
    case 2:
      return tl_rspec_text(d->spec, "((%s - %s) // %d)", a, b, c);
    case 3:
      return tl_rspec_text(d->spec, "min(%s, %s + %d)", a, b, c);
    case 4:
      return tl_rspec_text(d->spec, "(max(%s, %s) - %d)", a, b, c);
    case 5:
      return tl_rspec_text(d->spec, "(%s * 2 - %s)", a, b);
    case 6:
      return tl_rspec_text(d->spec, "(%s if %s < %d else %s)", a, b, 16 * c, b);
    default:
      return tl_rspec_text(d->spec, "((%s + %s) %% %d + %s // %d)", a, b, 8 * c, a, 4 * c);
  }
}

static int any_of(deep *d, int first, int last) {
  int back = choose(d, 4);
  return last - 1 - back < first ? first : last - 1 - back;
}

// Adds `count` lets; the values from `first` on may be used.
static void add_lets(deep *d, int first, int count) {
  tl_rspec_body(d->spec, "- let:");
  for (int i = 0; i < count; i++) {
    // Mostly the two latest: then what is to be explored doubles with every step.
    bool is_latest = d->len - first >= 2 && choose(d, 4) < 3;
    int a = is_latest ? d->len - 1 : any_of(d, first, d->len), b = is_latest ? d->len - 2 : any_of(d, first, d->len);
    int kind = choose(d, 8), c = 1 + choose(d, 9);
    const char *body = step(d, kind, d->body[a], d->body[b], c);
    const char *reference = step(d, kind, d->reference[a], d->reference[b], c);
    // Every third step bounds what the others let grow.
    if (i % 3 == 2) {
      body = tl_rspec_text(d->spec, "%s %% %d", body, MODULUS);
      reference = tl_rspec_text(d->spec, "%s %% %d", reference, MODULUS);
    }
    tl_rspec_body(d->spec, "    v%d: %s", d->len, body);
    tl_rspec_line(d->spec, TL_RSPEC_REFERENCE, "- R%d[n in 0:%d] = %s", d->num_results, BLOCK * BLOCKS, reference);
    d->body[d->len] = tl_rspec_text(d->spec, "v%d", d->len);
    d->reference[d->len++] = tl_rspec_text(d->spec, "R%d[n]", d->num_results++);
  }
}

// The chain's own names for where an element lies: its block, and its place in the block.
static void add_start(deep *d, const char *body, const char *reference) {
  d->body[d->len] = body;
  d->reference[d->len++] = reference;
}

void tl_rspec_make_deep(tl_rspec *spec) {
  deep d = {.spec = spec};
  tl_rspec_line(spec, TL_RSPEC_ARGS, "X: in i32[%d]", MODULUS);
  tl_rspec_line(spec, TL_RSPEC_ARGS, "Y: out i32[%d]", BLOCK * BLOCKS);
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "X: ints(-1000, 1000)");
  tl_rspec_line(spec, TL_RSPEC_GRID, "g: %d", BLOCKS);
  tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %d", 32 << choose(&d, 3));
  tl_rspec_line(spec, TL_RSPEC_FRAGMENT, "t: i32[%d]", BLOCK);
  // Values of the block first: they may bound a loop.
  add_start(&d, "g", tl_rspec_text(spec, "(n // %d)", BLOCK));
  add_lets(&d, 0, NUM_UNIFORM);
  int bound = d.len - 1;
  tl_rspec_body(spec, "- t = 0");
  tl_rspec_body(spec, "- for: k in 1 + %s %% 4", d.body[bound]);
  tl_rspec_body(spec, "  do:");
  spec->body_indent += 2;
  tl_rspec_body(spec, "- parallel: i in %d", BLOCK);
  tl_rspec_body(spec, "  do:");
  spec->body_indent += 2;
  add_start(&d, "i", tl_rspec_text(spec, "(n %% %d)", BLOCK));
  add_lets(&d, choose(&d, 2) ? bound + 1 : 0, NUM_LETS - d.len);
  int subscript = d.len - 1, condition = any_of(&d, bound + 1, d.len), term = any_of(&d, bound + 1, d.len);
  tl_rspec_body(spec, "- if: %s %% 7 < 4", d.body[condition]);
  tl_rspec_body(spec, "  then: t[i] += X[(%s + k) %% %d] + %s", d.body[subscript], MODULUS, d.body[term]);
  spec->body_indent -= 4;
  tl_rspec_body(spec, "- copy: t -> Y[g * %d]", BLOCK);
  tl_rspec_line(spec, TL_RSPEC_REFERENCE,
                "- Y[n] = sum[k in 0:4](X[(%s + k) %% %d] + %s if k <= %s %% 4 and %s %% 7 < 4 else 0)",
                d.reference[subscript], MODULUS, d.reference[term], d.reference[bound], d.reference[condition]);
  tl_rspec_tolerance(spec, "Y", 0, 0);
}
