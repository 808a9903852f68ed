// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies into the shared memory of a cluster: multicast of tensor and bulk loads, copies and reductions from one block
// to another.
#include "emulator_tma_kernels.h"

enum { MAX_CLUSTER = 4, NUM_PARAMS = 7 };

static const tl_emu_options modes[] = {{.threads = 1},
                                       {.threads = 1, .landing = TL_LANDING_EARLY},
                                       {.threads = 1, .seed = 1},
                                       {.threads = 1, .seed = 6, .landing = TL_LANDING_EARLY},
                                       {.threads = 2, .seed = 3, .resident = 2}};
enum { NUM_MODES = sizeof modes / sizeof modes[0] };

typedef struct cluster_launch {
  tl_emu_tensormap map;
  uint8_t *in, *out;  // global memory: a block's source or fill; TMA_SHARED bytes a block
  uint32_t mask;      // blocks that get something
  uint32_t issuer;    // block that copies
  uint32_t from, bytes;
} cluster_launch;

// Every block fills its shared memory with `in` + its number × TMA_SHARED, arms its mbarrier when its bit in %mask is
// set, and after all have done so thread 0 of block %issuer executes `call`; %dst and %dst7 are byte %from of @sm.
// Blocks of the mask wait. In the end shared memory is written to `out`.
static tl_emu_kernel *create(const char *call, int32_t cluster) {
  tl_strbuf text = {0};
  tma_declare(strstr(call, "call void @"), &text);
  tl_strbuf_appendf(
      &text,
      "\n@sm = internal addrspace(3) global [%d x i8] undef, align 1024\n"
      "@bar = internal addrspace(3) global i64 undef, align 8\n"
      "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\ndeclare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
      "declare i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()\n"
      "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
      "declare void @llvm.nvvm.barrier.cluster.arrive.aligned()\n"
      "declare void @llvm.nvvm.barrier.cluster.wait.aligned()\n"
      "declare ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3), i32)\n"
      "declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)\n"
      "declare void @llvm.nvvm.fence.mbarrier_init.release.cluster()\n"
      "declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)\n"
      "declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)\n"
      "declare void @llvm.nvvm.fence.proxy.async.shared_cta()\n"
      "define ptx_kernel void @k(ptr byval([128 x i8]) align 64 %%map, ptr addrspace(1) %%in, ptr addrspace(1) %%out,"
      " i32 %%mask, i32 %%issuer, i32 %%from, i32 %%bytes) {\nentry:\n"
      " %%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %%first = icmp eq i32 %%tid, 0\n"
      " %%rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()\n"
      " %%block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
      " %%place = mul i32 %%block, %d\n"
      " %%mine = getelementptr i8, ptr addrspace(1) %%in, i32 %%place\n"
      " %%theirs = getelementptr i8, ptr addrspace(1) %%out, i32 %%place\n"
      " %%shifted = lshr i32 %%mask, %%rank\n %%member = trunc i32 %%shifted to i1\n"
      " %%mask16 = trunc i32 %%mask to i16\n"
      " %%dst = getelementptr i8, ptr addrspace(3) @sm, i32 %%from\n"
      " %%dst7 = addrspacecast ptr addrspace(3) %%dst to ptr addrspace(7)\n"
      " br label %%fill.before\nfill.before:\n",
      TMA_SHARED, TMA_SHARED);
  tma_write_move(&text, "fill", "%mine", true);
  tl_strbuf_appendf(
      &text,
      " call void @llvm.nvvm.fence.proxy.async.shared_cta()\n"
      " br i1 %%first, label %%init, label %%armed\ninit:\n"
      " call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)\n"
      " call void @llvm.nvvm.fence.mbarrier_init.release.cluster()\n"
      " br i1 %%member, label %%arm, label %%armed\narm:\n"
      " %%t = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @bar, i32 %%bytes)\n"
      " br label %%armed\narmed:\n"
      " call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n call void @llvm.nvvm.barrier.cluster.wait.aligned()\n"
      " %%is_issuer = icmp eq i32 %%rank, %%issuer\n %%go = and i1 %%is_issuer, %%first\n"
      " br i1 %%go, label %%issue, label %%issued\nissue:\n %s\n br label %%issued\nissued:\n"
      " br i1 %%member, label %%wait, label %%over\nwait:\n"
      " %%ok = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 0)\n"
      " br i1 %%ok, label %%over, label %%wait\nover:\n"
      " call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n call void @llvm.nvvm.barrier.cluster.wait.aligned()\n"
      " br label %%copy.before\ncopy.before:\n",
      call);
  tma_write_move(&text, "copy", "%theirs", false);
  tl_strbuf_append_c(&text, " ret void\n}\n");
  tl_emu_kernel *kernel = NULL;
  tl_status status =
      create_from_text(tl_strbuf_c(&text), "k",
                       (kernel_shape){NUM_PARAMS, TMA_THREADS, .checks = tma_checks, .cluster = cluster}, &kernel);
  ck_assert_msg(!status, "%s\n%s", tl_status_message(status), tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return kernel;
}

static cluster_launch make_launch(uint32_t blocks) {
  cluster_launch launch = {.in = tl_emu_alloc((size_t)blocks * TMA_SHARED, 128),
                           .out = tl_emu_alloc((size_t)blocks * TMA_SHARED, 128)};
  for (uint32_t i = 0; i < blocks * TMA_SHARED; i++) launch.in[i] = (uint8_t)tma_random(256);
  return launch;
}

static tl_status run(tl_emu_kernel *kernel, cluster_launch *l, uint32_t blocks, const tl_emu_options *options) {
  uint32_t grid[3] = {blocks, 1, 1};
  tl_emu_options checked = *options;
  checked.checks = tma_checks;
  return tl_emu_launch(kernel, grid, (void *[]){&l->map, &l->in, &l->out, &l->mask, &l->issuer, &l->from, &l->bytes},
                       &checked, NULL);
}

static void finish(cluster_launch *launch) {
  tl_emu_free(launch->in);
  tl_emu_free(launch->out);
}

// ---- multicast

#define TENSOR                                                                                                      \
  "call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %dst7, ptr addrspace(3) @bar, ptr %map, " \
  "i32 -8, i32 3, i16 %mask16, i64 0, i1 true, i1 false, i32 0)"

START_TEST(tensor_multicast) {
  tma_checks = TL_EMU_SANITIZE_ALL;
  static tma_place places[TMA_MAX_ELEMENTS];
  static uint8_t want[TMA_SHARED];
  int32_t cluster = _i ? 4 : 2;
  uint32_t blocks = 3 * (uint32_t)cluster;
  tl_emu_kernel *kernel = create(TENSOR, cluster);
  uint8_t *tensor = tl_emu_alloc(128 * 12, 128);
  for (int i = 0; i < 128 * 12; i++) tensor[i] = (uint8_t)tma_random(256);
  tma_case c = {.map = {.type = TL_TENSORMAP_F16,
                        .rank = 2,
                        .address = tensor,
                        .dims = {64, 12},
                        .strides = {128},
                        .box = {64, 16},
                        .element_strides = {1, 1},
                        .swizzle = TL_TENSORMAP_SWIZZLE_128B},
                .coords = {-8, 3},
                .shared = 2048};
  uint32_t n = tma_places(&c, places);
  for (uint32_t mask = 1; mask < 1u << cluster; mask++) {
    cluster_launch launch = make_launch(blocks);
    expect_ok(tl_emu_tensormap_encode(&c.map, &launch.map));
    launch.mask = mask;
    launch.issuer = mask % (uint32_t)cluster;
    launch.from = c.shared;
    launch.bytes = 2 * n;
    expect_ok(run(kernel, &launch, blocks, &modes[mask % NUM_MODES]));
    for (uint32_t b = 0; b < blocks; b++) {
      memcpy(want, launch.in + (size_t)b * TMA_SHARED, TMA_SHARED);
      for (uint32_t i = 0; i < n && (mask >> b % (uint32_t)cluster & 1); i++) {
        uint16_t zero = 0;
        memcpy(want + places[i].shared, places[i].global < 0 ? (void *)&zero : tensor + places[i].global, 2);
      }
      ck_assert_msg(!memcmp(want, launch.out + (size_t)b * TMA_SHARED, TMA_SHARED), "mask %x, block %u", mask, b);
    }
    finish(&launch);
  }
  tl_emu_free(tensor);
  tl_emu_kernel_destroy(kernel);
}
END_TEST

START_TEST(bulk_multicast) {
  tma_checks = TL_EMU_SANITIZE_ALL;
  static uint8_t want[TMA_SHARED];
  uint32_t cluster = _i ? 4 : 2;
  tl_emu_kernel *kernel = create(
      "call void @llvm.nvvm.cp.async.bulk.global.to.shared.cluster(ptr addrspace(7) %dst7, ptr addrspace(3) "
      "@bar, ptr addrspace(1) %in, i32 %bytes, i16 %mask16, i64 0, i1 true, i1 false)",
      (int32_t)cluster);
  for (uint32_t mask = 1; mask < 1u << cluster; mask++) {
    cluster_launch launch = make_launch(cluster);
    launch.mask = mask;
    launch.issuer = (mask + 1) % cluster;
    launch.from = 16 * mask;
    launch.bytes = 4000 + 16 * mask;
    expect_ok(run(kernel, &launch, cluster, &modes[mask % NUM_MODES]));
    for (uint32_t b = 0; b < cluster; b++) {
      memcpy(want, launch.in + (size_t)b * TMA_SHARED, TMA_SHARED);
      if (mask >> b & 1) memcpy(want + launch.from, launch.in, launch.bytes);
      ck_assert_msg(!memcmp(want, launch.out + (size_t)b * TMA_SHARED, TMA_SHARED), "mask %x, block %u", mask, b);
    }
    finish(&launch);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

// ---- from block to block: to the one of the mask, 32 KiB further up

#define PEER                                                                                            \
  "%target = call i32 @llvm.cttz.i32(i32 %mask, i1 true)\n"                                             \
  " %up = getelementptr i8, ptr addrspace(3) %dst, i32 32768\n"                                         \
  " %to = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %up, i32 %target)\n"    \
  " %bar7 = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @bar, i32 %target)\n" \
  " %barint = ptrtoint ptr addrspace(7) %bar7 to i64\n %bar3 = inttoptr i64 %barint to ptr addrspace(3)\n "

START_TEST(block_to_block) {
  tma_checks = TL_EMU_SANITIZE_ALL;
  static uint8_t want[TMA_SHARED];
  tl_emu_kernel *kernel = create(PEER
                                 "call void @llvm.nvvm.cp.async.bulk.shared.cta.to.cluster(ptr addrspace(7) %to, ptr "
                                 "addrspace(3) %bar3, ptr addrspace(3) %dst, i32 %bytes)",
                                 4);
  for (uint32_t i = 0; i < 16; i++) {
    uint32_t source = i % 4, target = i / 4;
    cluster_launch launch = make_launch(4);
    launch.mask = 1u << target;
    launch.issuer = source;
    launch.from = 16 * i;
    launch.bytes = 16 * (i + 1);
    expect_ok(run(kernel, &launch, 4, &modes[i % NUM_MODES]));
    for (uint32_t b = 0; b < 4; b++) {
      memcpy(want, launch.in + (size_t)b * TMA_SHARED, TMA_SHARED);
      if (b == target)
        memcpy(want + launch.from + 32768, launch.in + (size_t)source * TMA_SHARED + launch.from, launch.bytes);
      ck_assert_msg(!memcmp(want, launch.out + (size_t)b * TMA_SHARED, TMA_SHARED), "block %u to %u", source, target);
    }
    finish(&launch);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

typedef struct reduction {
  const char *name;
  uint32_t bytes;
  uint64_t a, b, result;  // old value, operand
} reduction;
static const reduction peer_reductions[] = {{"add.u32", 4, 0xfffffff0, 0x20, 0x10},
                                            {"add.s32", 4, 5, 0xfffffff6, 0xfffffffb},
                                            {"add.u64", 8, 0xffffffffffffff00, 0x123, 0x23},
                                            {"min.u32", 4, 0x80000000, 7, 7},
                                            {"min.s32", 4, 0x80000000, 7, 0x80000000},
                                            {"max.u32", 4, 0x80000000, 7, 0x80000000},
                                            {"max.s32", 4, 0x80000000, 7, 7},
                                            {"inc.u32", 4, 6, 6, 0},
                                            {"inc.u32", 4, 5, 6, 6},
                                            {"dec.u32", 4, 0, 6, 6},
                                            {"dec.u32", 4, 5, 6, 4},
                                            {"dec.u32", 4, 9, 6, 6},
                                            {"and.b32", 4, 0xff00ff00, 0x0ff00ff0, 0x0f000f00},
                                            {"or.b32", 4, 0xff00ff00, 0x0ff00ff0, 0xfff0fff0},
                                            {"xor.b32", 4, 0xff00ff00, 0x0ff00ff0, 0xf0f0f0f0}};

START_TEST(block_to_block_reductions) {
  tma_checks = TL_EMU_SANITIZE_ALL;
  const reduction *r = &peer_reductions[_i];
  char call[1200];
  snprintf(
      call, sizeof call,
      "%s call void @tl.cp.reduce.async.bulk.cluster.%s(ptr addrspace(7) %%to, ptr addrspace(3) %%dst, i32 %%bytes, "
      "ptr addrspace(7) %%bar7)",
      PEER, r->name);
  tl_emu_kernel *kernel = create(call, 2);
  for (uint32_t mode = 0; mode < NUM_MODES; mode++) {
    cluster_launch launch = make_launch(2);
    launch.mask = 2;
    launch.bytes = 4096;
    uint8_t *old = launch.in + TMA_SHARED + 32768;
    for (uint32_t at = 0; at < launch.bytes; at += r->bytes) {
      memcpy(old + at, &r->a, r->bytes);
      memcpy(launch.in + at, &r->b, r->bytes);
    }
    expect_ok(run(kernel, &launch, 2, &modes[mode]));
    for (uint32_t at = 0; at < launch.bytes; at += r->bytes)
      ck_assert_mem_eq(launch.out + TMA_SHARED + 32768 + at, &r->result, r->bytes);
    ck_assert_mem_eq(launch.out, launch.in, TMA_SHARED);
    finish(&launch);
  }
  tl_emu_kernel_destroy(kernel);
}
END_TEST

// ---- mistakes

START_TEST(mistakes) {
  tl_emu_kernel *kernel = create(TENSOR, 2);
  cluster_launch launch = make_launch(2);
  uint8_t *tensor = tl_emu_alloc(4096, 128);
  tl_tensormap_params map = {.type = TL_TENSORMAP_U8,
                             .rank = 2,
                             .address = tensor,
                             .dims = {64, 64},
                             .strides = {64},
                             .box = {64, 4},
                             .element_strides = {1, 1}};
  expect_ok(tl_emu_tensormap_encode(&map, &launch.map));
  launch.bytes = 256;
  launch.mask = 0;
  expect_failure(run(kernel, &launch, 2, &modes[0]), TL_STATUS_CHECK_FAILED,
                 "block (0, 0, 0), thread 0 (warp 0, lane 0): llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d (call ",
                 "coordinate 0 is -8, -8 bytes of u8: no multiple of 16", NULL);
  map.type = TL_TENSORMAP_BF16;
  map.dims[0] = map.box[0] = 32;
  expect_ok(tl_emu_tensormap_encode(&map, &launch.map));
  expect_failure(run(kernel, &launch, 2, &modes[0]), TL_STATUS_CHECK_FAILED, "mask 0 for a cluster of 2 blocks", NULL,
                 NULL);
  launch.mask = 7;
  expect_failure(run(kernel, &launch, 2, &modes[0]), TL_STATUS_CHECK_FAILED, "mask 0x7 for a cluster of 2 blocks", NULL,
                 NULL);
  tl_emu_kernel_destroy(kernel);
  // The destination in one block, the mbarrier in another.
  kernel =
      create(PEER
             "call void @llvm.nvvm.cp.async.bulk.shared.cta.to.cluster(ptr addrspace(7) %to, ptr addrspace(3) @bar,"
             " ptr addrspace(3) %dst, i32 %bytes)",
             2);
  launch.mask = 2;
  expect_failure(run(kernel, &launch, 2, &modes[0]), TL_STATUS_CHECK_FAILED,
                 "the destination is in block 1 of the cluster, the mbarrier in block 0", NULL, NULL);
  tl_emu_kernel_destroy(kernel);
  tl_emu_free(tensor);
  finish(&launch);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_loop_test(cases, tensor_multicast, 0, 2);
  tcase_add_loop_test(cases, bulk_multicast, 0, 2);
  tcase_add_test(cases, block_to_block);
  tcase_add_loop_test(cases, block_to_block_reductions, 0, sizeof peer_reductions / sizeof peer_reductions[0]);
  tcase_add_test(cases, mistakes);
}

int main(void) {
  return run_suite("emulator copies in a cluster", add_tests);
}
