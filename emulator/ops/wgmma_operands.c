// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where wgmma's operands lie. PTX ISA, wgmma, "Shared Memory Matrix Layout", "Strides" and "Matrix Descriptor Format".
// Everything moves in pieces of 16 bytes. Eight rows of pieces under one another make a core matrix; a swizzle of span
// s lays s / 16 core matrices side by side and permutes the pieces of each row of s bytes.
#include <string.h>

#include "emulator/ops/wgmma.h"

enum { PIECE = 16 };

tl_emu_descriptor tl_emu_descriptor_decode(uint64_t bits) {
  static const uint32_t spans[4] = {16, 128, 64, 32};  // bits 62 and 63
  // 0-13 start, 16-29 leading, 32-45 stride (each >> 4), 49-51 base offset
  const uint64_t used = 0x3fffull | 0x3fffull << 16 | 0x3fffull << 32 | 7ull << 49 | 3ull << 62;
  return (tl_emu_descriptor){.start = (uint32_t)(bits & 0x3fff) << 4,
                             .leading = (uint32_t)(bits >> 16 & 0x3fff) << 4,
                             .stride = (uint32_t)(bits >> 32 & 0x3fff) << 4,
                             .base_offset = (uint32_t)(bits >> 49 & 7),
                             .span = spans[bits >> 62],
                             .reserved = bits & ~used};
}

// Address bits 7 to 9, less the base offset, are exclusive-ored into bits 4 to 6: all three for a span of 128, the
// lower two for 64, the lowest for 32.
static uint32_t swizzled(const tl_emu_descriptor *d, uint32_t address) {
  uint32_t phase = ((address >> 7) - d->base_offset) & (d->span / PIECE - 1);
  return address ^ phase << 4;
}

uint32_t tl_emu_descriptor_pieces(const tl_emu_descriptor *d, uint32_t extent, bool transposed, uint32_t *out) {
  uint32_t count = 0, across = d->span / PIECE;
  bool plain = d->span == PIECE;
  if (!transposed) {
    // Rows go down core matrices `stride` apart; the halves of K are neighbours in the span, or `leading` apart.
    for (uint32_t row = 0; row < extent; row++)
      for (uint32_t half = 0; half < 2; half++)
        out[count++] =
            swizzled(d, d->start + row % 8 * d->span + row / 8 * d->stride + half * (plain ? d->leading : PIECE));
    return count;
  }
  // k goes down core matrices; rows of the matrix lie across. Without a swizzle the two strides change places.
  uint32_t next_across = plain ? d->stride : d->leading, next_down = plain ? d->leading : d->stride;
  for (uint32_t column = 0; column < extent / 8; column++)
    for (uint32_t k = 0; k < 16; k++)
      out[count++] = swizzled(
          d, d->start + column % across * PIECE + column / across * next_across + k % 8 * d->span + k / 8 * next_down);
  return count;
}

const char *tl_emu_descriptor_problem(const tl_emu_descriptor *d, uint32_t extent, bool transposed) {
  uint32_t pattern = 8 * d->span;  // bytes after which the permutation repeats
  if (d->reserved) return "reserved bits are set";
  if (d->span == PIECE) return d->base_offset ? "a base offset without a swizzle" : NULL;
  if (((d->start >> 7) - d->base_offset) & (d->span / PIECE - 1))
    return "the start address is not where the swizzle's pattern starts";
  uint32_t inside = d->start % d->span, width = transposed ? d->span : TL_WGMMA_K_BYTES;
  if (inside + width > d->span) return "the rows go over the end of the swizzle's span";
  if (extent > 8 && !transposed && d->stride % pattern) return "the stride is no multiple of the swizzle's pattern";
  if (transposed && d->stride % pattern) return "the stride is no multiple of the swizzle's pattern";
  if (transposed && extent * 2 > d->span && d->leading % pattern)
    return "the leading offset is no multiple of the swizzle's pattern";
  return NULL;
}

void tl_emu_wgmma_arrange(const uint8_t *pieces, uint32_t extent, bool transposed, tl_emu_wgmma_rows *out) {
  if (!transposed) {
    memcpy(out, pieces, (size_t)extent * TL_WGMMA_K_BYTES);
    return;
  }
  for (uint32_t column = 0; column < extent / 8; column++)
    for (uint32_t k = 0; k < 16; k++, pieces += PIECE)
      for (uint32_t i = 0; i < 8; i++) memcpy(&out[8 * column + i][2 * k], pieces + 2 * i, 2);
}
