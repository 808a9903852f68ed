// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel costs that only streams memory: a block waits for what it reads, meets for its reductions, stores, and
// ends. Meanwhile the others that are there keep the memory busy, or not.
#include <math.h>

#include "ir/index/affine.h"
#include "passes/analysis/memory_access.h"
#include "passes/schedule/cost_internal.h"

// All measured on an H200 (docs/performance.md, "Ordinary code"). Bytes a clock that DRAM gives a multiprocessor while
// all of them read and write; that one block alone reads and writes.
static const double dram_rate = 18.6, read_rate = 60.0, write_rate = 15.6;
// Clocks of a block's start and end, of loads until they are there where little else is under way (what waits for DRAM
// comes on top), and of a reduction: layer_norm of 1024 and 4096 with 128 to 512 threads a block.
static const double start_clocks = 850, latency = 800, meeting_clocks = 225, meeting_clocks_a_warp = 19;
static const double sector = 32.0;  // bytes that memory moves at least
// Pieces of rows shorter than so many bytes are slower, by so much for each halving: sums over the middle dim.
static const double good_piece = 256.0, short_piece = 0.1;
// Rows that lie so far apart are in pages of their own, of which as many are found at once without loss; sums over the
// first dim with 8, 16, 32 and 64 rows at a time take 1.1, 1.6, 1.9 and 2.8 times as long.
static const double page_bytes = 2097152.0, near_pages = 6.0, page_power = 0.45;

// Costs so near are the same: of two such choices the first is as good.
static const double noise = 0.02;

typedef struct stream {
  double read, written;  // bytes that the block reads and writes at places of its own
  double served;         // the same as DRAM serves it
  double rounds;         // loads that wait for others, or for what was computed
  double meetings;       // reductions of the whole block
  bool is_open;          // loads that nobody waited for yet
} stream;

static bool is_own_place(tl_value *const *index, int32_t rank) {
  for (int32_t d = 0; d < rank; d++) {
    tl_affine form = tl_affine_of(index[d]);
    for (int32_t t = 0; t < form.num_terms; t++) {
      const tl_op *def = form.terms[t].symbol->def;
      if (def && def->code == TL_OP_GRID) return true;
    }
  }
  return false;
}

// How much longer memory takes for a box than for as many bytes side by side.
static double slowness(const tl_box *box) {
  double size = tl_dtype_bits(box->buffer->type->dtype) / 8.0, piece = size, stride = 0, rows = 1;
  bool is_whole = true;  // what follows it in memory is the box's own
  for (int32_t d = box->buffer_rank - 1; d >= 0; d--) {
    int64_t lo, hi;
    tl_box_span(box, d, &lo, &hi);
    double extent = (double)(hi - lo + 1);
    if (is_whole) piece *= extent;
    if (!is_whole && stride == 0 && extent > 1) stride = (double)tl_buffer_stride_divisor(box->buffer, d) * size;
    if (!is_whole) rows *= extent;
    is_whole &= box->buffer->type->dims[d] == hi - lo + 1;
  }
  double factor = fmax(sector / piece, 1);
  if (piece < good_piece && rows > 1) factor *= 1 + short_piece * log2(good_piece / fmax(piece, sector));
  if (stride >= page_bytes && rows > near_pages) factor *= pow(rows / near_pages, page_power);
  return factor;
}

static void add_access(stream *self, double bytes, double factor, bool reads, double times) {
  *(reads ? &self->read : &self->written) += bytes * times;
  self->served += bytes * factor * times;
  if (!reads || self->is_open) return;
  self->rounds += times;
  self->is_open = true;
}

static void add_copy(stream *self, tl_op *copy, double times) {
  for (int side = 0; side < 2; side++) {
    tl_box box = side == 0 ? tl_box_source(copy) : tl_box_destination(copy);
    tl_value *index[TL_MAX_RANK];
    if (!tl_buffer_is_global(box.buffer)) continue;
    int64_t elements = 1;
    for (int32_t d = 0; d < box.tile_rank; d++) elements *= box.extents[d];
    for (int32_t d = 0; d < box.buffer_rank; d++) index[d] = tl_box_offset(&box, d);
    double bytes = (double)elements * tl_dtype_bits(box.buffer->type->dtype) / 8.0;
    if (is_own_place(index, box.buffer_rank)) add_access(self, bytes, slowness(&box), side == 0, times);
  }
}

// Loads and stores of elements, each as often as its parallel has iterations.
static void add_elements(stream *self, const tl_op *at, double times) {
  for (uint32_t r = 0; r < at->num_regions; r++) {
    for (tl_op *op = at->regions[r]->first; op; op = op->next) {
      bool loads = op->code == TL_OP_LOAD, stores = op->code == TL_OP_STORE;
      tl_value *index[TL_MAX_RANK];
      uint32_t rank = loads || stores ? tl_element_rank(op) : 0;
      for (uint32_t d = 0; d < rank; d++) index[d] = tl_element_index(op, d);
      bool is_far = rank > 0 && tl_buffer_is_global(tl_element_buffer(op)) && is_own_place(index, (int32_t)rank);
      if (is_far) add_access(self, tl_dtype_bits(tl_element_buffer(op)->type->dtype) / 8.0 * times, 1, loads, 1);
      add_elements(self, op, times);
    }
  }
}

static void add_block(stream *self, const tl_block *block, double times) {
  for (tl_op *op = block->first; op; op = op->next) {
    if (op->code == TL_OP_COPY) add_copy(self, op, times);
    bool uses = op->code == TL_OP_REDUCE || op->code == TL_OP_SCAN || op->code == TL_OP_PARALLEL;
    if (op->code == TL_OP_REDUCE || op->code == TL_OP_SCAN) self->meetings += times;
    if (op->code == TL_OP_PARALLEL) {
      int32_t len = 0;
      const int64_t *extents = tl_op_ints(op, TL_ATTR_EXTENTS, &len);
      double elements = times;
      for (int32_t d = 0; d < len; d++) elements *= (double)extents[d];
      add_elements(self, op, elements);
    } else {
      double inside = op->code == TL_OP_FOR ? times * tl_cost_trips(op) : times;
      for (uint32_t r = 0; r < op->num_regions; r++) add_block(self, op->regions[r], inside);
    }
    if (uses) self->is_open = false;
  }
}

// The larger, and a little more where they are alike: neither is hidden behind the other then.
static double not_beside(double a, double b) {
  return sqrt(sqrt(a * a * a * a + b * b * b * b));
}

double tl_cost_stream(const tl_op *kernel, double at_once, double computing) {
  stream self = {0};
  add_block(&self, kernel->regions[0], 1);
  double share = tl_cost_num_blocks(kernel) / TL_COST_MULTIPROCESSORS;  // blocks of a multiprocessor
  double beside = fmin(at_once, share), served = fmax(self.served / dram_rate, computing);
  double meeting = meeting_clocks + meeting_clocks_a_warp * (double)tl_op_threads(kernel) / 32;
  double alone = start_clocks + self.rounds * latency + self.meetings * meeting + self.read / read_rate +
                 self.written / write_rate;
  double wave = not_beside(beside * served, alone);
  double clocks = share / beside * wave + (share > at_once ? alone / 2 : 0);
  return exp(ceil(log(clocks) / noise) * noise);
}
