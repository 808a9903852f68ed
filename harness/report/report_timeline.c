// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pipeline as a timeline: what each role does in the first iterations, what the copy engine and the tensor cores do
// beside it, and which arrival or copy ends which wait. A schedule of the scheduled IR by made-up lengths: its order is
// that of the code and of the barriers, its lengths are not measured.
#include <stdlib.h>

#include "harness/report/report_internal.h"

enum { MAX_EVENTS = 400, MAX_LANES = 10, MAX_BARRIERS = 16, MAX_PHASES = 64, MAX_BARS = 1200, MAX_GROUPS = 128 };

// Lengths, in units of the picture.
static const double ISSUE = 0.25, BOX = 1, LATENCY = 2.5, PRODUCT = 3, COMPUTE = 0.3, COPY = 1.5;

typedef struct event {
  const tl_op *op;
  uint32_t iteration;
} event;

typedef struct lane {
  const char *name;
  int64_t warps;
  event events[MAX_EVENTS];
  uint32_t num_events, next;
  double time, landed;        // of the last copy it issued
  double groups[MAX_GROUPS];  // when its groups of cp.async copies have landed
  uint32_t num_groups;
  double products[MAX_GROUPS];  // when its products in flight end
  uint32_t num_products;
  uint32_t waits[MAX_BARRIERS];  // on each barrier so far
} lane;

typedef struct phase {
  double time;
  uint32_t lane;  // of what completed it
} phase;

typedef struct barrier {
  const tl_op *op;
  bool has_copies;  // bytes count on it: its first phase has to come
  int64_t arrived;
  double ready;
  uint32_t cause;
  phase phases[MAX_PHASES];
  uint32_t num_phases;
} barrier;

typedef enum bar_kind { BAR_COPY, BAR_PRODUCT, BAR_COMPUTE, BAR_WAIT, BAR_ARRIVE } bar_kind;

typedef struct bar {
  bar_kind kind;
  uint32_t lane, iteration;
  double from, to;
  const tl_op *op;
  bool has_cause;
  uint32_t cause_lane;
  double cause_time;
} bar;

typedef struct timeline {
  lane lanes[MAX_LANES];
  uint32_t num_lanes;
  barrier barriers[MAX_BARRIERS];
  uint32_t num_barriers;
  double engine, tensor;  // when they are free
  bool has_engine, has_tensor;
  struct {
    const tl_op *tile;
    uint32_t copies;
  } filled[MAX_BARRIERS];  // how often copies have filled each tile
  bar bars[MAX_BARS + 1];  // the last one for those that are too many
  uint32_t num_bars, iterations;
} timeline;

static bool is_shown(const tl_op *op) {
  switch (op->code) {
    case TL_OP_COPY:
    case TL_OP_GEMM:
    case TL_OP_GEMM_WAIT:
    case TL_OP_ASYNC_COMMIT:
    case TL_OP_ASYNC_WAIT:
    case TL_OP_MBARRIER_ARRIVE:
    case TL_OP_MBARRIER_WAIT:
    case TL_OP_PARALLEL:
    case TL_OP_TILE_STORE:
      return true;
    default:
      return op->num_results && tl_op_result(op, 0)->type->kind == TL_TYPE_TILE && op->code != TL_OP_FOR &&
             op->code != TL_OP_IF;
  }
}

// Whether copies, products or barriers are in it: such loops are what the picture is of.
static bool has_pipeline(const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_GEMM || op->code == TL_OP_MBARRIER_WAIT || op->code == TL_OP_ASYNC_WAIT) return true;
    if (op->code == TL_OP_PARALLEL) continue;
    for (uint32_t r = 0; r < op->num_regions; r++)
      if (has_pipeline(op->regions[r])) return true;
  }
  return false;
}

static void collect(const timeline *t, lane *l, const tl_block *block, uint32_t iteration) {
  for (const tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_ROLES) continue;
    if (is_shown(op)) {
      if (l->num_events < MAX_EVENTS) l->events[l->num_events++] = (event){op, iteration};
      continue;
    }
    if (op->code == TL_OP_FOR) {
      bool repeats = has_pipeline(op->regions[0]) && !tl_op_has(op, TL_ATTR_TILES);
      for (uint32_t i = 0; i < (repeats ? t->iterations : 1); i++)
        collect(t, l, op->regions[0], repeats ? i : iteration);
    } else if (op->num_regions) {
      collect(t, l, op->regions[0], iteration);
    }
  }
}

static const tl_op *find_roles(const tl_block *block) {
  for (const tl_op *op = block->first; op; op = op->next)
    if (op->code == TL_OP_ROLES) return op;
  return NULL;
}

static uint32_t barrier_of(timeline *t, const tl_value *value) {
  for (uint32_t i = 0; i < t->num_barriers; i++)
    if (t->barriers[i].op == value->def) return i;
  if (t->num_barriers == MAX_BARRIERS) return MAX_BARRIERS - 1;
  t->barriers[t->num_barriers] = (barrier){.op = value->def};
  return t->num_barriers++;
}

static const tl_value *copy_barrier(const tl_op *op) {
  return op->code == TL_OP_COPY && tl_op_group_len(op, TL_GROUP_COPY_barrier)
             ? tl_op_group_at(op, TL_GROUP_COPY_barrier, 0)
             : NULL;
}

// Asynchronous: by TMA with a map, or by cp.async with a token.
static bool is_async_copy(const tl_op *op) {
  return copy_barrier(op) || (op->num_results && tl_op_result(op, 0)->type->kind == TL_TYPE_TOKEN);
}

static bar *add_bar(timeline *t, bar_kind kind, uint32_t lane_index, const event *e, double from, double to) {
  bar *b = &t->bars[t->num_bars < MAX_BARS ? t->num_bars++ : MAX_BARS];
  *b = (bar){.kind = kind, .lane = lane_index, .iteration = e->iteration, .from = from, .to = to, .op = e->op};
  return b;
}

// The tile that a copy fills, of whose buffers it names one.
static const tl_op *filled_tile(const tl_op *op) {
  const tl_op *def = tl_op_arg(op, TL_GROUP_COPY_dst)->def;
  while (def && def->code != TL_OP_ALLOC && def->code != TL_OP_TENSOR && def->num_operands)
    def = tl_op_operand(def, 0)->def;
  return def;
}

// The iteration that a copy is for: it runs ahead of the one that issues it.
static uint32_t count_copy(timeline *t, const tl_op *op) {
  const tl_op *tile = filled_tile(op);
  for (uint32_t i = 0; i < MAX_BARRIERS; i++) {
    if (t->filled[i].tile && t->filled[i].tile != tile) continue;
    t->filled[i].tile = tile;
    return t->filled[i].copies++;
  }
  return 0;
}

// ---- running

static double later(double a, double b) {
  return a > b ? a : b;
}

// What the lane does itself, and goes on behind it.
static void do_itself(timeline *t, bar_kind kind, uint32_t index, const event *e, double length) {
  lane *l = &t->lanes[index];
  add_bar(t, kind, index, e, l->time, l->time + length);
  l->time += length;
}

static void run_copy(timeline *t, uint32_t index, const event *e) {
  lane *l = &t->lanes[index];
  if (!is_async_copy(e->op)) {
    do_itself(t, BAR_COMPUTE, index, e, COPY);
    return;
  }
  l->time += ISSUE;
  double start = later(l->time, t->engine);
  t->engine = start + BOX;
  t->has_engine = true;
  l->landed = start + LATENCY;
  add_bar(t, BAR_COPY, MAX_LANES, e, start, l->landed)->iteration = count_copy(t, e->op);
  const tl_value *value = copy_barrier(e->op);
  if (!value) return;
  barrier *b = &t->barriers[barrier_of(t, value)];
  b->ready = later(b->ready, l->landed);
  b->cause = MAX_LANES;
}

static void run_gemm(timeline *t, uint32_t index, const event *e) {
  lane *l = &t->lanes[index];
  if (!tl_op_int(e->op, TL_ATTR_ASYNC, 0)) {
    do_itself(t, BAR_PRODUCT, index, e, PRODUCT);
    return;
  }
  l->time += ISSUE;
  double start = later(l->time, t->tensor);
  t->tensor = start + PRODUCT;
  t->has_tensor = true;
  add_bar(t, BAR_PRODUCT, MAX_LANES + 1, e, start, t->tensor);
  if (l->num_products < MAX_GROUPS) l->products[l->num_products++] = t->tensor;
}

static void wait_until(timeline *t, uint32_t index, const event *e, double time, const phase *cause) {
  lane *l = &t->lanes[index];
  if (time <= l->time) return;
  bar *b = add_bar(t, BAR_WAIT, index, e, l->time, time);
  if (cause) {
    b->has_cause = true;
    b->cause_lane = cause->lane;
    b->cause_time = cause->time;
  }
  l->time = time;
}

static void run_arrive(timeline *t, uint32_t index, const event *e) {
  lane *l = &t->lanes[index];
  barrier *b = &t->barriers[barrier_of(t, tl_op_operand(e->op, 0))];
  int64_t each = tl_op_int(e->op, TL_ATTR_EACH, TL_EACH_ROLE), count = 1;
  if (each == TL_EACH_WARPGROUP) count = l->warps > 4 ? l->warps / 4 : 1;
  if (each == TL_EACH_WARP) count = l->warps;
  if (each == TL_EACH_THREAD) count = l->warps * 32;
  int64_t wanted = tl_op_int(b->op, TL_ATTR_ARRIVALS, 1);
  // Those of other blocks of a cluster come at the same time.
  if (tl_op_has(e->op, TL_ATTR_ACROSS)) count = wanted;
  add_bar(t, BAR_ARRIVE, index, e, l->time, l->time);
  if (l->time >= b->ready) b->cause = index;
  b->ready = later(b->ready, l->time);
  b->arrived += count;
  if (b->arrived < wanted) return;
  if (b->num_phases < MAX_PHASES) b->phases[b->num_phases++] = (phase){b->ready, b->cause};
  b->arrived = 0;
  b->ready = 0;
}

// False: what it waits for has not come.
static bool run_wait(timeline *t, uint32_t index, const event *e) {
  lane *l = &t->lanes[index];
  uint32_t which = barrier_of(t, tl_op_operand(e->op, 0));
  barrier *b = &t->barriers[which];
  // Buffers are free at first: the wait for the first `depth` of them ends at once.
  int64_t wanted = (int64_t)l->waits[which] - (b->has_copies ? 0 : tl_op_int(b->op, TL_ATTR_DEPTH, 1));
  if (wanted >= (int64_t)b->num_phases) return false;
  l->waits[which]++;
  if (wanted >= 0) wait_until(t, index, e, b->phases[wanted].time, &b->phases[wanted]);
  return true;
}

static void wait_pending(timeline *t, uint32_t index, const event *e, const double *ends, uint32_t len) {
  int64_t pending = tl_op_int(e->op, TL_ATTR_PENDING, 0);
  if ((int64_t)len <= pending) return;
  wait_until(t, index, e, ends[len - 1 - (uint32_t)pending], NULL);
}

static bool run_event(timeline *t, uint32_t index) {
  lane *l = &t->lanes[index];
  const event *e = &l->events[l->next];
  switch (e->op->code) {
    case TL_OP_COPY:
      run_copy(t, index, e);
      break;
    case TL_OP_GEMM:
      run_gemm(t, index, e);
      break;
    case TL_OP_GEMM_WAIT:
      wait_pending(t, index, e, l->products, l->num_products);
      break;
    case TL_OP_ASYNC_COMMIT:
      if (l->num_groups < MAX_GROUPS) l->groups[l->num_groups++] = l->landed;
      break;
    case TL_OP_ASYNC_WAIT:
      wait_pending(t, index, e, l->groups, l->num_groups);
      break;
    case TL_OP_MBARRIER_ARRIVE:
      run_arrive(t, index, e);
      break;
    case TL_OP_MBARRIER_WAIT:
      if (!run_wait(t, index, e)) return false;
      break;
    default:
      do_itself(t, BAR_COMPUTE, index, e, COMPUTE);
      break;
  }
  l->next++;
  return true;
}

// The lane that is furthest behind goes on; those that wait for what has not come are tried again.
static void run(timeline *t) {
  for (;;) {
    bool blocked[MAX_LANES] = {false};
    bool went_on = false;
    for (uint32_t tries = 0; tries < t->num_lanes && !went_on; tries++) {
      uint32_t best = MAX_LANES;
      for (uint32_t i = 0; i < t->num_lanes; i++) {
        const lane *l = &t->lanes[i];
        if (blocked[i] || l->next == l->num_events) continue;
        if (best == MAX_LANES || l->time < t->lanes[best].time) best = i;
      }
      if (best == MAX_LANES) break;
      went_on = run_event(t, best);
      blocked[best] = !went_on;
    }
    if (!went_on) return;
  }
}

// ---- drawing

static const char *what(const tl_op *op) {
  if (op->code == TL_OP_COPY) return filled_tile(op) ? report_name(filled_tile(op)) : "";
  if (op->code == TL_OP_MBARRIER_ARRIVE || op->code == TL_OP_MBARRIER_WAIT)
    return report_name(tl_op_operand(op, 0)->def);
  if (op->code == TL_OP_GEMM_WAIT) return "a product";
  if (op->code == TL_OP_ASYNC_WAIT) return "a group of copies";
  return "";
}

// The row of a lane: the engine and the tensor cores come last, where they are used.
static double row_of(const timeline *t, uint32_t lane_index) {
  enum { ROW = 46, TOP = 8 };
  uint32_t row = lane_index;
  if (lane_index == MAX_LANES) row = t->num_lanes;
  if (lane_index == MAX_LANES + 1) row = t->num_lanes + t->has_engine;
  return TOP + ROW * (double)row;
}

static void write_bar(const timeline *t, const bar *b, double scale, tl_strbuf *out) {
  enum { LEFT = 130, HEIGHT = 26 };
  static const char *const verbs[] = {"copy of", "product", "", "waits for", "arrives at"};
  double x = LEFT + b->from * scale, y = row_of(t, b->lane), width = (b->to - b->from) * scale;
  if (b->kind == BAR_ARRIVE) {
    tl_strbuf_appendf(out, "<path d=\"M%.1f %.1fl4 8h-8z\" fill=\"#333\">", x, y + HEIGHT);
  } else {
    const char *fill = b->kind == BAR_WAIT ? "#eee" : b->kind == BAR_COMPUTE ? "#ddd" : report_color(b->iteration);
    tl_strbuf_appendf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\" stroke=\"%s\">", x, y,
                      width < 1 ? 1 : width, HEIGHT, fill, b->kind == BAR_WAIT ? "#bbb" : "#555");
  }
  tl_strbuf_appendf(out, "<title>%s%s", verbs[b->kind], *verbs[b->kind] ? " " : "");
  if (b->kind == BAR_COMPUTE && !*what(b->op)) tl_strbuf_append_c(out, tl_op_info_of(b->op->code)->name);
  report_text_c(what(b->op), out);
  tl_strbuf_appendf(out, ", iteration %u</title>%s\n", b->iteration, b->kind == BAR_ARRIVE ? "</path>" : "</rect>");
  bool is_named = b->kind == BAR_COPY || b->kind == BAR_PRODUCT;
  if (is_named && width > 14)
    tl_strbuf_appendf(out, "<text x=\"%.1f\" y=\"%.1f\">%u</text>\n", x + 3, y + 17, b->iteration);
  if (b->has_cause)
    tl_strbuf_appendf(out,
                      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#c55\" stroke-width=\".7\"/>\n",
                      LEFT + b->cause_time * scale, row_of(t, b->cause_lane) + HEIGHT, LEFT + b->to * scale, y);
}

static void write_picture(const timeline *t, tl_strbuf *out) {
  enum { WIDTH = 1250, LEFT = 130 };
  double end = 1;
  for (uint32_t i = 0; i < t->num_bars; i++) end = later(end, t->bars[i].to);
  double scale = (WIDTH - LEFT - 10) / end;
  uint32_t rows = t->num_lanes + t->has_engine + t->has_tensor;
  tl_strbuf_appendf(out,
                    "<figure class=\"wide\" id=\"timeline\"><svg width=\"%d\" height=\"%.0f\" role=\"img\" "
                    "aria-label=\"timeline\">\n",
                    WIDTH, row_of(t, 0) + 46.0 * rows);
  for (uint32_t i = 0; i < t->num_lanes; i++) {
    tl_strbuf_appendf(out, "<text x=\"0\" y=\"%.1f\">", row_of(t, i) + 17);
    report_text_c(t->lanes[i].name, out);
    tl_strbuf_appendf(out, ", %lld warps</text>\n", (long long)t->lanes[i].warps);
  }
  if (t->has_engine) tl_strbuf_appendf(out, "<text x=\"0\" y=\"%.1f\">copies</text>\n", row_of(t, MAX_LANES) + 17);
  if (t->has_tensor)
    tl_strbuf_appendf(out, "<text x=\"0\" y=\"%.1f\">tensor cores</text>\n", row_of(t, MAX_LANES + 1) + 17);
  for (uint32_t i = 0; i < t->num_bars; i++) write_bar(t, &t->bars[i], scale, out);
  tl_strbuf_appendf(out,
                    "</svg><figcaption>The first %u iterations, by the order of the code and its barriers; lengths are "
                    "not measured. Numbers and colours are iterations, pale bars wait, grey ones compute, triangles "
                    "arrive at barriers, red lines lead from what ends a wait to its end.</figcaption></figure>\n",
                    t->iterations);
}

static void add_lane(timeline *t, const char *name, int64_t warps, const tl_block *block) {
  if (t->num_lanes == MAX_LANES) return;
  lane *l = &t->lanes[t->num_lanes++];
  l->name = name;
  l->warps = warps;
  collect(t, l, block, 0);
}

void report_timeline(const tl_report *report, int64_t depth, tl_strbuf *out) {
  const tl_op *kernel = tl_module_kernel(report->module);
  const tl_op *roles = find_roles(kernel->regions[0]);
  if (!has_pipeline(kernel->regions[0])) return;
  timeline *t = tl_xcalloc(1, sizeof *t);
  t->iterations = depth > 4 ? 8 : depth > 1 ? 2 * (uint32_t)depth : 4;
  for (const tl_op *role = roles ? roles->regions[0]->first : NULL; role; role = role->next)
    if (role->code == TL_OP_ROLE)
      add_lane(t, tl_op_str(role, TL_ATTR_NAME), tl_op_int(role, TL_ATTR_NUM_WARPS, 1), role->regions[0]);
  if (!roles) add_lane(t, "block", tl_op_int(kernel, TL_ATTR_THREADS, 32) / 32, kernel->regions[0]);
  for (uint32_t i = 0; i < t->num_lanes; i++) {
    for (uint32_t k = 0; k < t->lanes[i].num_events; k++) {
      const tl_value *value = copy_barrier(t->lanes[i].events[k].op);
      if (value) t->barriers[barrier_of(t, value)].has_copies = true;
    }
  }
  run(t);
  write_picture(t, out);
  free(t);
}
