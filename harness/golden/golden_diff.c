// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The difference of two texts in unified form (Myers, "An O(ND) difference algorithm and its variations").
#include <stdlib.h>

#include "harness/golden/golden.h"
#include "harness/golden/golden_text.h"
#include "support/status.h"

// Texts with more inserted and deleted lines than this are shown as one replaced by the other: memory is quadratic in
// it.
enum { MAX_EDITS = 3000, CONTEXT = 3 };

typedef TL_VEC(tl_str) diff_lines;

typedef struct differ {
  diff_lines a, b;
  size_t head, tail;      // lines that both share at the ends
  TL_VEC(int32_t) trace;  // after d edits, diagonal k reaches line trace[d * d + d + k] of a
  TL_VEC(char) edits;     // ' ' both, '-' only a, '+' only b; backwards until the script is complete
} differ;

static void split_lines(tl_str text, diff_lines *out) {
  while (text.len > 0) tl_vec_push(out, tl_golden_next_line(&text));
}

static int32_t reached(const differ *f, int32_t d, int32_t k) {
  return f->trace.items[(size_t)(d * d + d + k)];
}

// Whether the best way onto diagonal k with edit d is a line of b (from diagonal k + 1), not of a (from k - 1).
static bool is_insertion(const differ *f, int32_t d, int32_t k) {
  return k == -d || (k != d && reached(f, d - 1, k - 1) < reached(f, d - 1, k + 1));
}

static int32_t start_of(const differ *f, int32_t d, int32_t k) {
  if (d == 0) return 0;
  return is_insertion(f, d, k) ? reached(f, d - 1, k + 1) : reached(f, d - 1, k - 1) + 1;
}

// The least number of edits between the middles, n and m lines; -1 when there are more than MAX_EDITS.
static int32_t find_path(differ *f, int32_t n, int32_t m) {
  for (int32_t d = 0; d <= MAX_EDITS; d++) {
    for (int32_t k = -d; k <= d; k++) {
      int32_t x = 0;
      if ((k + d) % 2 == 0) {
        x = start_of(f, d, k);
        while (x < n && x - k < m &&
               tl_str_equal(f->a.items[f->head + (size_t)x], f->b.items[f->head + (size_t)(x - k)]))
          x++;
      }
      tl_vec_push(&f->trace, x);
      if ((k + d) % 2 == 0 && x >= n && x - k >= m) {
        for (int32_t rest = k + 1; rest <= d; rest++) tl_vec_push(&f->trace, 0);
        return d;
      }
    }
  }
  return -1;
}

static void push_edits(differ *f, char edit, size_t count) {
  for (size_t i = 0; i < count; i++) tl_vec_push(&f->edits, edit);
}

static void push_path(differ *f, int32_t d, int32_t x, int32_t y) {
  for (; d >= 0; d--) {
    int32_t k = x - y, start = start_of(f, d, k);
    push_edits(f, ' ', (size_t)(x - start));
    x = start;
    y = x - k;
    if (d == 0) return;
    bool insertion = is_insertion(f, d, k);
    push_edits(f, insertion ? '+' : '-', 1);
    if (insertion) y--;
    if (!insertion) x--;
  }
}

static void make_edits(differ *f) {
  const diff_lines *a = &f->a, *b = &f->b;
  while (f->head < a->len && f->head < b->len && tl_str_equal(a->items[f->head], b->items[f->head])) f->head++;
  while (f->tail < a->len - f->head && f->tail < b->len - f->head &&
         tl_str_equal(a->items[a->len - 1 - f->tail], b->items[b->len - 1 - f->tail]))
    f->tail++;
  size_t n = a->len - f->head - f->tail, m = b->len - f->head - f->tail;
  int32_t d = n > INT32_MAX / 4 || m > INT32_MAX / 4 ? -1 : find_path(f, (int32_t)n, (int32_t)m);
  push_edits(f, ' ', f->tail);
  if (d < 0) {
    push_edits(f, '+', m);
    push_edits(f, '-', n);
  } else {
    push_path(f, d, (int32_t)n, (int32_t)m);
  }
  push_edits(f, ' ', f->head);
  for (size_t i = 0; i < f->edits.len / 2; i++) {
    char first = f->edits.items[i];
    f->edits.items[i] = f->edits.items[f->edits.len - 1 - i];
    f->edits.items[f->edits.len - 1 - i] = first;
  }
}

typedef struct diff_printer {
  tl_strbuf *out;
  size_t max_lines, num_lines;
  size_t at_a, at_b;
} diff_printer;

static void print_line(diff_printer *p, char mark, tl_str line) {
  if (p->max_lines == 0 || p->num_lines < p->max_lines) tl_strbuf_appendf(p->out, "%c%.*s\n", mark, TL_STR_ARG(line));
  p->num_lines++;
}

// Edits [first, end) as a hunk; at_a and at_b are the lines of the first one.
static void print_hunk(diff_printer *p, const differ *f, size_t first, size_t end) {
  size_t num_a = 0, num_b = 0;
  for (size_t i = first; i < end; i++) {
    num_a += f->edits.items[i] != '+';
    num_b += f->edits.items[i] != '-';
  }
  if (p->max_lines == 0 || p->num_lines < p->max_lines)
    tl_strbuf_appendf(p->out, "@@ -%zu,%zu +%zu,%zu @@\n", p->at_a + (num_a > 0), num_a, p->at_b + (num_b > 0), num_b);
  p->num_lines++;
  for (size_t i = first; i < end; i++) {
    char edit = f->edits.items[i];
    print_line(p, edit, edit == '+' ? f->b.items[p->at_b] : f->a.items[p->at_a]);
    p->at_a += edit != '+';
    p->at_b += edit != '-';
  }
}

static void print_edits(diff_printer *p, const differ *f) {
  size_t at = 0, len = f->edits.len;
  while (at < len) {
    size_t first = at;
    while (first < len && f->edits.items[first] == ' ') first++;
    if (first == len) return;
    // A hunk ends where more than twice the context follows unchanged.
    size_t end = first, same = 0;
    for (size_t i = first; i < len && same <= 2 * CONTEXT; i++) {
      same = f->edits.items[i] == ' ' ? same + 1 : 0;
      if (same == 0) end = i + 1;
    }
    size_t begin = first - at > CONTEXT ? first - CONTEXT : at;
    p->at_a += begin - at;
    p->at_b += begin - at;
    at = len - end < CONTEXT ? len : end + CONTEXT;
    print_hunk(p, f, begin, at);
  }
}

void tl_golden_diff(tl_str old_text, tl_str new_text, const char *name, size_t max_lines, tl_strbuf *out) {
  differ f = {0};
  split_lines(old_text, &f.a);
  split_lines(new_text, &f.b);
  make_edits(&f);
  tl_strbuf_appendf(out, "--- %s (recorded)\n+++ %s (now)\n", name, name);
  diff_printer printer = {.out = out, .max_lines = max_lines};
  print_edits(&printer, &f);
  if (max_lines > 0 && printer.num_lines > max_lines)
    tl_strbuf_appendf(out, "… %zu more lines (--full shows them)\n", printer.num_lines - max_lines);
  tl_vec_fini(&f.a);
  tl_vec_fini(&f.b);
  tl_vec_fini(&f.trace);
  tl_vec_fini(&f.edits);
}
