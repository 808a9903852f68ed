// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/mutants/equivalent.h"

#include <string.h>

// One argument for a class of survivors of one kernel. It holds for every input, not only for those of the checks.
typedef struct argument {
  const char *kernel;  // end of the spec's path
  tl_mutant_class class;
  const char *change;  // part of the description
  const char *reason;
} argument;

// What columns of B beyond N bring into shared memory reaches only columns of the product that are not stored; and as
// long as a row of B follows, reading them stays inside the tensor. Only copies that reach the last row need the test,
// so that those of the first iterations, which stand before the loop, do not where K is larger than block_K (with a
// smaller K the copy has no such guard).
static const char columns[] =
    "columns past N of rows that are not the last are inside of the tensor, and are not stored";
// A barrier stands between the last read of Q and K and the end of the loop, and the staged tile takes their place, not
// that of V.
static const char staged[] = "the staged tile lies where tiles lay whose last read is before the loop's last barrier";

// The scales are copied before the first tiles, and groups land in order: the wait and the barrier with which every
// iteration begins, the first one too, are for groups behind that of the scales.
static const char older[] = "the loop's own first wait and barrier are for younger copies";

// The assertion on the same token stands before the load and ends the launch.
static const char asserted[] = "tokens outside of the table end the launch before";
// The gradient's loop reads what no iteration of it writes, and writes other elements in each.
static const char apart[] = "the iterations of this loop share nothing that one of them writes";
// The second read of the target's logit: the only use of the value is a store by the same subscripts, behind whose
// check the code generator reads it.
static const char stored_alike[] = "what is read out of bounds is for a store that is out of bounds alike";

// Fences that by_hand_roles.yaml could do without: the same threads make another one before the copy engine gets the
// tile again, or it never does.
static const char fenced_again[] = "the scratch of the sum is fenced by the same threads before the next copy";
static const char both_sides[] =
    "the block that wrote fences before its release, and the one that acquires before its copy";
static const char no_copy[] = "no copy by the engine follows in this block";

// What a thread computes for a point past the last column is not stored; the column before a point that is inside is
// so.
static const char own_column[] =
    "the column is that of the point which is stored behind the same check, or the one before";
// The row above the second of the rows that a thread computes together is the first of them.
static const char second_row[] = "the row above is one of the thread's own";

// Partial sums of one result: they are added up whatever their order in the row is.
static const char any_order[] = "each row of partial sums is read whole, only their order differs";

// A block looks at places before its own only, which are there, and waits for one of them that has told nothing yet.
static const char before_it[] = "the place is that of a block before this one";
// Behind the wait in the loop the block reads by atomics, and writes scratch that nobody reads but behind further
// barriers.
static const char waited[] = "what follows the wait are atomics, and barriers of their own";

// A row in parts: a thread reads what it has copied itself, and the iterations of the first loop wait for every part.
static const char own_parts[] = "a thread reads what it copied, and has waited for each part in the loop before";

static const argument arguments[] = {
    {"by_hand_roles.yaml", TL_MUTANT_DROP_FENCE, "behind parallel {extents = [32, 64]", fenced_again},
    {"by_hand_roles.yaml", TL_MUTANT_DROP_FENCE, "behind parallel {extents = [64]", no_copy},
    {"by_hand_roles.yaml", TL_MUTANT_DROP_FENCE, "fence_proxy behind fence_proxy {space = global}", no_copy},
    {"by_hand_roles.yaml", TL_MUTANT_DROP_FENCE, "fence_proxy {space = global} behind copy src(%y)", both_sides},
    {"by_hand_roles.yaml", TL_MUTANT_DROP_FENCE, "fence_proxy {space = global} behind barrier", both_sides},
    {"cross_entropy.yaml", TL_MUTANT_DROP_BARRIER, "before parallel {extents = [1, 512]", apart},
    {"cross_entropy.yaml", TL_MUTANT_DROP_LOWER_CHECK, "%56 = load buffer(%X)", stored_alike},
    {"cumsum.yaml", TL_MUTANT_DROP_BARRIER, "barrier before yield %true", waited},
    {"cumsum.yaml", TL_MUTANT_DROP_LOWER_CHECK, "wait_until buffer(%told)", before_it},
    {"cumsum.yaml", TL_MUTANT_DROP_UPPER_CHECK, "wait_until buffer(%told)", before_it},
    {"cumsum.yaml", TL_MUTANT_DROP_UPPER_CHECK, "atomic value(%c0_3) buffer(%told)", before_it},
    {"embedding.yaml", TL_MUTANT_DROP_LOWER_CHECK, "load buffer(%E)", asserted},
    {"embedding.yaml", TL_MUTANT_DROP_UPPER_CHECK, "load buffer(%E)", asserted},
    {"matmul.yaml", TL_MUTANT_DROP_GUARD, "copy src(%B)", columns},
    {"conv2d.yaml", TL_MUTANT_DROP_GUARD, "copy src(%Wf) src_offsets(%c64", columns},
    {"matmul_splitk.yaml", TL_MUTANT_DROP_GUARD, "copy src(%B)", columns},
    {"matmul_w4a16.yaml", TL_MUTANT_DROP_WAIT, "async_wait {pending = 2}", older},
    {"matmul_w4a16.yaml", TL_MUTANT_WEAKEN_WAIT, "async_wait {pending = 2}", older},
    {"matmul_w4a16.yaml", TL_MUTANT_DROP_BARRIER, "for lower(", older},
    {"matmul_w4a16.yaml", TL_MUTANT_DROP_COMMIT, "async_commit %6", older},
    {"flash_attention.yaml", TL_MUTANT_DROP_BARRIER, "before tile_store", staged},
    {"layer_norm_backward.yaml", TL_MUTANT_FLIP_SWIZZLE,
     "{src_dims = [0, 1], src_check = [0, 0], via = vector, vec = 4}", any_order},
    {"layer_norm_backward.yaml", TL_MUTANT_FLIP_SWIZZLE, "tile_store tile(", any_order},
    {"permute.yaml", TL_MUTANT_DROP_UPPER_CHECK, "src_check of dim 1", stored_alike},
    {"reduce_axis.yaml", TL_MUTANT_FLIP_SWIZZLE, "{src_dims = [0, 1], src_check = [0, 0], via = vector, vec = 4}",
     any_order},
    {"reduce_axis.yaml", TL_MUTANT_FLIP_SWIZZLE, "tile_store tile(", any_order},
    {"stencil.yaml", TL_MUTANT_DROP_LOWER_CHECK, "check of dim 0 of %50 = load", second_row},
    {"stencil.yaml", TL_MUTANT_DROP_UPPER_CHECK, "check of dim 1 of %126 = load", own_column},
    {"stencil.yaml", TL_MUTANT_DROP_UPPER_CHECK, "check of dim 1 of %130 = load", own_column},
    {"stencil.yaml", TL_MUTANT_DROP_UPPER_CHECK, "check of dim 1 of %131 = load", own_column},
    {"stencil.yaml", TL_MUTANT_DROP_UPPER_CHECK, "check of dim 1 of %137 = load", own_column},
    {"stencil.yaml", TL_MUTANT_DROP_UPPER_CHECK, "check of dim 1 of %138 = load", own_column},
    {"stencil.yaml", TL_MUTANT_DROP_UPPER_CHECK, "check of dim 1 of %140 = load", own_column},
    {"online_softmax.yaml", TL_MUTANT_DROP_BARRIER, "barrier before %7 = splat", own_parts},
    {"online_softmax.yaml", TL_MUTANT_DROP_BARRIER, "barrier before for lower(%c0) upper(%c2)", own_parts},
    {"online_softmax.yaml", TL_MUTANT_DROP_WAIT, "async_wait {pending = 0}", own_parts},
    {"online_softmax.yaml", TL_MUTANT_WEAKEN_WAIT, "async_wait {pending = 0}", own_parts},
};

static bool ends_with(const char *text, const char *end) {
  size_t len = strlen(text), end_len = strlen(end);
  return len >= end_len && !strcmp(text + len - end_len, end);
}

static bool contains(const char *text, size_t len, const char *part) {
  size_t part_len = strlen(part);
  for (size_t i = 0; i + part_len <= len; i++)
    if (!memcmp(text + i, part, part_len)) return true;
  return false;
}

const char *tl_mutant_equivalence(const char *path, tl_mutant_class class, const char *change, size_t len) {
  for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
    const argument *a = &arguments[i];
    if (a->class == class && ends_with(path, a->kernel) && contains(change, len, a->change)) return a->reason;
  }
  return NULL;
}
