// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Family `hazards`: tiles that every thread writes and other threads read, in any order of copies, parallels, atomics
// and global memory, within nested and pipelined loops, conditions and early exits. All values are small integers, so
// that one missing barrier or one wrong stage shows. The statements are drawn as a tree, written once, and executed by
// their meaning into the reference.
#include <stdio.h>

#include "test/random/families.h"

enum { MAX_TILES = 4, MAX_DEPTH = 3, MAX_STATEMENTS = 24, MAX_EXECUTED = 70, ROWS = 3, MODULUS = 1009 };

typedef enum op {
  OP_PERMUTE,  // d[i] = s[place]
  OP_ADD,      // d[i] = (d[i] + s[place]) % 1009
  OP_TILE,     // d = (d * 3 + s) % 1009
  OP_COPY,     // copy: s -> d
  OP_LOAD,     // copy: X[g, row, 0] -> d
  OP_GATHER,   // d[i] = X[g, row, place]
  OP_STORE,    // copy: s -> G[g, 0]
  OP_FETCH,    // copy: G[g, 0] -> d
  OP_REREAD,   // d[i] = G[g, place]
  OP_ATOMIC,   // atomic: s[i] -> d[place of i // 4]
  OP_SCAN,     // scan: d = cumsum(s), or cummax
  OP_WINDOW,   // d[i] = sum of some elements of s from place on
  OP_LOCAL,    // m = max of s, for additions and conditions
  OP_IF,
  OP_FOR
} op;

typedef struct statement {
  op op;
  int d, s;
  int p, c;          // the place: (i * p + c) % N
  int row;           // of a load, added to the loop indices
  int condition;     // of an if: 0 on a loop index, 1 on g, 2 on a loaded flag
  int count, first;  // of a loop
  int kind;          // of a loop: for, pipelined, unroll
  int stages, stop;  // of a pipelined loop; the iteration where a loop breaks, or -1
  int index;         // of a loop: k<index>; -1 outside of loops
  struct statement *body, *next;
} statement;

typedef struct hazards {
  tl_rspec *spec;
  int n, blocks, num_tiles;
  bool is_shared[MAX_TILES], is_narrow[MAX_TILES];
  int left;         // statements that may still be drawn
  int num_loops;    // k0 …
  int num_results;  // R0 …
  int num_executed;
  const char *current[MAX_TILES + 1];  // the reference's name of each tile's content; the last is G
  const char *local;                   // the same of the local scalar m
  int values[MAX_STATEMENTS];          // of the loop indices, while executing
  bool dynamic;
} hazards;

static uint32_t choose(hazards *h, uint32_t n) {
  return tl_rspec_choose(h->spec->choices, n);
}
static bool maybe(hazards *h, uint32_t percent) {
  return tl_rspec_maybe(h->spec->choices, percent);
}

static int gcd(int a, int b) {
  return b == 0 ? a : gcd(b, a % b);
}

static statement *draw_list(hazards *h, int depth, int index);

static statement *draw_statement(hazards *h, int depth, int index) {
  statement *s = TL_NEW(&h->spec->arena, statement);
  *s = (statement){.index = index, .stop = -1};
  s->op = (op)choose(h, depth < MAX_DEPTH ? 21 : OP_IF);
  if (s->op > OP_FOR) s->op = OP_FOR;
  s->d = (int)choose(h, (uint32_t)h->num_tiles);
  s->s = (s->d + 1 + (int)choose(h, (uint32_t)h->num_tiles - 1)) % h->num_tiles;
  s->p = (int)tl_rspec_pick(h->spec->choices, 1, h->n - 1, 5, 7, 3);
  if (s->p < 1 || gcd(s->p, h->n) != 1) s->p = 1;
  s->c = (int)tl_rspec_pick(h->spec->choices, 0, 1, 16, 31, 5);
  s->row = (int)choose(h, ROWS);
  // Atomics add to 32-bit words of memory.
  if (s->op == OP_ATOMIC && (!h->is_shared[s->d] || h->is_narrow[s->d])) s->op = OP_ADD;
  // Elements of fragments are read in parallels only.
  if (s->op == OP_LOCAL && !h->is_shared[s->s]) s->op = OP_PERMUTE;
  h->left--;
  if (s->op == OP_IF) {
    s->condition = (int)choose(h, 4);
    s->body = draw_list(h, depth + 1, index);
  } else if (s->op == OP_FOR) {
    s->kind = (int)tl_rspec_pick(h->spec->choices, 0, 1, 1, 2);
    s->count = (int)tl_rspec_pick(h->spec->choices, 2, 3, 4, 1, 5, 0);
    s->stages = (int)tl_rspec_pick(h->spec->choices, 2, 3, 1, 4);
    if (s->kind == 0 && maybe(h, 15)) s->stop = (int)choose(h, 3);
    s->index = h->num_loops++;
    s->body = draw_list(h, depth + 1, s->index);
  }
  return s;
}

static statement *draw_list(hazards *h, int depth, int index) {
  statement *first = NULL, **end = &first;
  uint32_t count = 1 + choose(h, depth == 0 ? 9 : 5);
  for (uint32_t i = 0; i < count && h->left > 0; i++) {
    *end = draw_statement(h, depth, index);
    end = &(*end)->next;
  }
  return first;
}

// ---- the body

static const char *place_of(hazards *h, const statement *s, const char *index) {
  if (s->p == 1 && s->c == 0) return index;
  if (s->p == h->n - 1 && s->c == 0) return tl_rspec_text(h->spec, "(%d - %s) %% %d", h->n, index, h->n);
  return tl_rspec_text(h->spec, "(%s * %d + %d) %% %d", index, s->p, s->c, h->n);
}

static const char *row_of(hazards *h, const statement *s) {
  if (s->index < 0) return tl_rspec_text(h->spec, "%d", s->row);
  return tl_rspec_text(h->spec, "(k%d + %d) %% %d", s->index, s->row, ROWS);
}

static void write_list(hazards *h, const statement *list);

static void write_parallel(hazards *h, const char *assignment) {
  tl_rspec_body(h->spec, "- parallel: i in %d", h->n);
  tl_rspec_body(h->spec, "  do:");
  tl_rspec_body(h->spec, "    - %s", assignment);
}

static const char *condition_of(hazards *h, const statement *s) {
  if (s->condition == 3) return tl_rspec_text(h->spec, "m %% 2 == %d", s->row % 2);
  if (s->condition == 1) return tl_rspec_text(h->spec, "g %% 2 == %d", s->row % 2);
  if (s->condition == 2) return tl_rspec_text(h->spec, "flags[g, %s] > 0", row_of(h, s));
  if (s->index < 0) return tl_rspec_text(h->spec, "g >= 0");
  return tl_rspec_text(h->spec, "k%d %% 2 == %d", s->index, s->row % 2);
}

static void write_block(hazards *h, const statement *s) {
  tl_rspec *spec = h->spec;
  static const char *const words[] = {"for", "pipelined", "unroll"};
  if (s->op == OP_IF) {
    tl_rspec_body(spec, "- if: %s", condition_of(h, s));
    tl_rspec_body(spec, "  then:");
  } else {
    bool is_dynamic = h->dynamic && s->kind != 2;
    tl_rspec_body(spec, "- %s: k%d in %s", words[s->kind], s->index,
                  tl_rspec_text(spec, is_dynamic ? "T%d" : "%d", is_dynamic ? s->count : s->count));
    if (s->kind == 1) tl_rspec_body(spec, "  stages: %d", s->stages);
    tl_rspec_body(spec, "  do:");
  }
  spec->body_indent += 2;
  if (s->op == OP_FOR && s->stop >= 0) {
    tl_rspec_body(spec, "- if: k%d == %d", s->index, s->stop);
    tl_rspec_body(spec, "  then:");
    tl_rspec_body(spec, "    - break:");
  }
  write_list(h, s->body);
  spec->body_indent -= 2;
}

static bool is_max_scan(const hazards *h, const statement *s) {
  return s->row == 2 || h->is_narrow[s->d];
}

static void write_statement(hazards *h, const statement *s) {
  tl_rspec *spec = h->spec;
  int d = s->d, from = s->s;
  const char *place = place_of(h, s, "i");
  switch (s->op) {
    case OP_PERMUTE:
      write_parallel(h, tl_rspec_text(spec, "t%d[i] = t%d[%s]", d, from, place));
      break;
    case OP_ADD:
      write_parallel(h, tl_rspec_text(spec, "t%d[i] = (t%d[i] + t%d[%s]) %% %d", d, d, from, place, MODULUS));
      break;
    case OP_TILE:
      tl_rspec_body(spec, "- t%d = (t%d * 3 + t%d) %% %d", d, d, from, MODULUS);
      break;
    case OP_COPY:
      tl_rspec_body(spec, "- copy: t%d -> t%d", from, d);
      break;
    case OP_LOAD:
      tl_rspec_body(spec, "- copy: X[g, %s, 0] -> t%d", row_of(h, s), d);
      break;
    case OP_GATHER:
      write_parallel(h, tl_rspec_text(spec, "t%d[i] = X[g, %s, %s]", d, row_of(h, s), place));
      break;
    case OP_STORE:
      tl_rspec_body(spec, "- copy: t%d -> G[g, 0]", from);
      break;
    case OP_FETCH:
      tl_rspec_body(spec, "- copy: G[g, 0] -> t%d", d);
      break;
    case OP_REREAD:
      write_parallel(h, tl_rspec_text(spec, "t%d[i] = G[g, %s]", d, place));
      break;
    case OP_ATOMIC:
      write_parallel(h, tl_rspec_text(spec, "atomic: t%d[i] -> t%d[%s]", from, d, place_of(h, s, "(i // 4)")));
      tl_rspec_body(spec, "- t%d = t%d %% %d", d, d, MODULUS);
      break;
    case OP_SCAN:
      tl_rspec_body(spec, "- scan: t%d = %s(t%d, axis=0)", d, is_max_scan(h, s) ? "cummax" : "cumsum", from);
      if (s->c % 2) tl_rspec_body(spec, "  reverse: true");
      if (!is_max_scan(h, s)) tl_rspec_body(spec, "- t%d = t%d %% %d", d, d, MODULUS);
      break;
    case OP_WINDOW:
      write_parallel(h, tl_rspec_text(spec, "t%d[i] = sum[j in 0:%d](t%d[(i + j * %d) %% %d]) %% %d", d, s->row + 2,
                                      from, s->c + 1, h->n, MODULUS));
      break;
    case OP_LOCAL:
      tl_rspec_body(spec, "- m = max[j in 0:%d](t%d[j])", h->n, from);
      tl_rspec_body(spec, "- t%d = (t%d + m) %% %d", d, d, MODULUS);
      break;
    default:
      write_block(h, s);
      break;
  }
}

static void write_list(hazards *h, const statement *list) {
  for (const statement *s = list; s; s = s->next) write_statement(h, s);
}

// ---- the reference

// The content of `tile` becomes `value`, where the condition holds (NULL: everywhere).
static void set_content(hazards *h, int tile, const char *value, const char *condition) {
  tl_rspec *spec = h->spec;
  if (condition) value = tl_rspec_text(spec, "select(%s, %s, %s[g, i])", condition, value, h->current[tile]);
  int number = h->num_results++;
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- R%d[g in 0:%d, i in 0:%d] = %s", number, h->blocks, h->n, value);
  h->current[tile] = tl_rspec_text(spec, "R%d", number);
}

static const char *read_content(hazards *h, int tile, const char *place) {
  return tl_rspec_text(h->spec, "%s[g, %s]", h->current[tile], place);
}

static void set_local(hazards *h, int from, const char *condition) {
  const char *value = tl_rspec_text(h->spec, "max[j in 0:%d](%s)", h->n, read_content(h, from, "j"));
  if (condition) value = tl_rspec_text(h->spec, "select(%s, %s, %s[g])", condition, value, h->local);
  int number = h->num_results++;
  tl_rspec_line(h->spec, TL_RSPEC_REFERENCE, "- R%d[g in 0:%d] = %s", number, h->blocks, value);
  h->local = tl_rspec_text(h->spec, "R%d", number);
}

static void execute_list(hazards *h, const statement *list, const char *condition);

static void execute_block(hazards *h, const statement *s, const char *condition) {
  if (s->op == OP_FOR) {
    for (int k = 0; k < s->count && k != s->stop; k++) {
      h->values[s->index] = k;
      execute_list(h, s->body, condition);
    }
    return;
  }
  if (s->condition == 0) {
    if (s->index < 0 || h->values[s->index] % 2 == s->row % 2) execute_list(h, s->body, condition);
    return;
  }
  int row = s->index < 0 ? s->row : (h->values[s->index] + s->row) % ROWS;
  const char *own = s->condition == 3   ? tl_rspec_text(h->spec, "%s[g] %% 2 == %d", h->local, s->row % 2)
                    : s->condition == 1 ? tl_rspec_text(h->spec, "g %% 2 == %d", s->row % 2)
                                        : tl_rspec_text(h->spec, "flags[g, %d] > 0", row);
  execute_list(h, s->body, condition ? tl_rspec_text(h->spec, "%s and %s", condition, own) : own);
}

static void execute(hazards *h, const statement *s, const char *condition) {
  tl_rspec *spec = h->spec;
  const char *place = place_of(h, s, "i");
  int d = s->d, from = s->s, g = MAX_TILES;
  int row = s->index < 0 ? s->row : (h->values[s->index] + s->row) % ROWS;
  const char *value = NULL;
  switch (s->op) {
    case OP_PERMUTE:
      value = read_content(h, from, place);
      break;
    case OP_ADD:
      value = tl_rspec_text(spec, "(%s + %s) %% %d", read_content(h, d, "i"), read_content(h, from, place), MODULUS);
      break;
    case OP_TILE:
      value = tl_rspec_text(spec, "(%s * 3 + %s) %% %d", read_content(h, d, "i"), read_content(h, from, "i"), MODULUS);
      break;
    case OP_COPY:
      value = read_content(h, from, "i");
      break;
    case OP_LOAD:
      value = tl_rspec_text(spec, "X[g, %d, i]", row);
      break;
    case OP_GATHER:
      value = tl_rspec_text(spec, "X[g, %d, %s]", row, place);
      break;
    case OP_STORE:
      d = g;
      value = read_content(h, from, "i");
      break;
    case OP_FETCH:
      value = read_content(h, g, "i");
      break;
    case OP_REREAD:
      value = read_content(h, g, place);
      break;
    case OP_ATOMIC:
      value = tl_rspec_text(spec, "(%s + sum[j in 0:%d](%s if %s == i else 0)) %% %d", read_content(h, d, "i"), h->n,
                            read_content(h, from, "j"), place_of(h, s, "(j // 4)"), MODULUS);
      break;
    case OP_SCAN:
      if (!(s->c % 2)) {
        value =
            tl_rspec_text(spec, "%s[j in 0:i + 1](%s)", is_max_scan(h, s) ? "max" : "sum", read_content(h, from, "j"));
      } else {
        value = tl_rspec_text(spec, "%s[j in i:%d](%s)", is_max_scan(h, s) ? "max" : "sum", h->n,
                              read_content(h, from, "j"));
      }
      value = tl_rspec_text(spec, "%s %% %d", value, MODULUS);
      break;
    case OP_WINDOW:
      value = tl_rspec_text(spec, "sum[j in 0:%d](%s) %% %d", s->row + 2,
                            read_content(h, from, tl_rspec_text(spec, "(i + j * %d) %% %d", s->c + 1, h->n)), MODULUS);
      break;
    case OP_LOCAL:
      set_local(h, from, condition);
      value = tl_rspec_text(spec, "(%s + %s[g]) %% %d", read_content(h, d, "i"), h->local, MODULUS);
      break;
    default:
      execute_block(h, s, condition);
      return;
  }
  h->num_executed++;
  set_content(h, d, value, condition);
}

static void execute_list(hazards *h, const statement *list, const char *condition) {
  for (const statement *s = list; s; s = s->next) execute(h, s, condition);
}

// How many statements will be executed, so that references stay short.
static int count_executed(const statement *list) {
  int total = 0;
  for (const statement *s = list; s; s = s->next) {
    total += s->op == OP_FOR ? s->count * count_executed(s->body) : s->op == OP_IF ? count_executed(s->body) : 1;
  }
  return total;
}

static void shorten(statement *list) {
  for (statement *s = list; s; s = s->next) {
    if (s->op == OP_FOR && s->count > 2) s->count = 2;
    if (s->body) shorten(s->body);
  }
}

static void write_head(hazards *h) {
  tl_rspec *spec = h->spec;
  tl_rspec_line(spec, TL_RSPEC_ARGS, "X: in i32[%d, %d, %d]", h->blocks, ROWS, h->n);
  tl_rspec_line(spec, TL_RSPEC_ARGS, "flags: in i32[%d, %d]", h->blocks, ROWS);
  tl_rspec_line(spec, TL_RSPEC_ARGS, "G: inout i32[%d, %d]", h->blocks, h->n);
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "X: ints(0, %d)", MODULUS - 1);
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "flags: ints(-1, 2)");
  tl_rspec_line(spec, TL_RSPEC_INPUTS, "G: ints(0, %d)", MODULUS - 1);
  tl_rspec_line(spec, TL_RSPEC_GRID, "g: %d", h->blocks);
  tl_rspec_line(spec, TL_RSPEC_OPTIONS, "threads: %d", (int)tl_rspec_pick(spec->choices, 64, 32, 128, 96, 256));
  for (int i = 0; i < h->num_tiles; i++) {
    h->is_shared[i] = !maybe(h, 35);
    h->is_narrow[i] = maybe(h, 15);
    tl_rspec_line(spec, h->is_shared[i] ? TL_RSPEC_SHARED : TL_RSPEC_FRAGMENT, "t%d: %s[%d]", i,
                  h->is_narrow[i] ? "i16" : "i32", h->n);
  }
}

void tl_rspec_make_hazards(tl_rspec *spec) {
  hazards h = {.spec = spec, .left = MAX_STATEMENTS};
  h.n = (int)tl_rspec_pick(spec->choices, 64, 32, 128, 100, 33, 256, 40);
  h.blocks = 1 + (int)choose(&h, 3);
  h.num_tiles = 2 + (int)choose(&h, MAX_TILES - 1);
  h.dynamic = maybe(&h, 30);
  write_head(&h);
  for (int i = 0; i < h.num_tiles; i++) {
    const char *value = tl_rspec_text(spec, "(g * 7 + i * %d) %% %d", 3 + i, MODULUS);
    write_parallel(&h, tl_rspec_text(spec, "t%d[i] = %s", i, value));
    set_content(&h, i, value, NULL);
  }
  h.current[MAX_TILES] = "G";
  tl_rspec_line(spec, TL_RSPEC_LOCAL, "m: i32");
  tl_rspec_body(spec, "- m = g");
  h.local = "R_m";
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- R_m[g in 0:%d] = g", h.blocks);
  statement *list = draw_list(&h, 0, -1);
  if (count_executed(list) > MAX_EXECUTED) shorten(list);
  if (h.dynamic) {
    tl_rspec_line(spec, TL_RSPEC_CASES, "- {T0: 0, T1: 1, T2: 2, T3: 3, T4: 4, T5: 5}");
    for (int i = 0; i < 6; i++) tl_rspec_line(spec, TL_RSPEC_PARAMS, "T%d: dynamic", i);
  }
  write_list(&h, list);
  execute_list(&h, list, NULL);
  for (int i = 0; i < h.num_tiles; i++) {
    tl_rspec_line(spec, TL_RSPEC_ARGS, "Y%d: out i32[%d, %d]", i, h.blocks, h.n);
    tl_rspec_body(spec, "- copy: t%d -> Y%d[g, 0]", i, i);
    tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- Y%d[g, i] = %s", i, read_content(&h, i, "i"));
  }
  tl_rspec_line(spec, TL_RSPEC_REFERENCE, "- G[g, i] = %s", read_content(&h, MAX_TILES, "i"));
  for (int i = 0; i < h.num_tiles; i++) tl_rspec_tolerance(spec, tl_rspec_text(spec, "Y%d", i), 0, 0);
}
