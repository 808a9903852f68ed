// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor and bulk copies with wrong operands: the report says which and why.
#include "emulator_tma_kernels.h"

static const tl_emu_options options = {.threads = 1};

// A good load of an 8 × 64 box of f16, which each test spoils.
typedef struct good {
  tma_case c;
  tma_launch launch;
  uint8_t *tensor, *io;
} good;

static good make_good(void) {
  good g = {.c = {.map = {.type = TL_TENSORMAP_F16,
                          .rank = 2,
                          .dims = {128, 32},
                          .strides = {256},
                          .element_strides = {1, 1},
                          .box = {64, 8},
                          .swizzle = TL_TENSORMAP_SWIZZLE_128B},
                  .shared = 1024}};
  g.tensor = tl_emu_alloc(256 * 32, 128);
  g.io = tl_emu_alloc(TMA_SHARED, 128);
  memset(g.tensor, 1, 256 * 32);
  g.c.map.address = g.tensor;
  g.launch = tma_launch_of(&g.c, 1024, g.io);
  return g;
}

static void finish(good *g) {
  tl_emu_free(g->tensor);
  tl_emu_free(g->io);
}

static void refused(const char *form, uint32_t rank, bool is_im2col, good *g, const char *text) {
  tl_emu_kernel *kernel = tma_create(form, rank, is_im2col);
  char op[80];
  snprintf(op, sizeof op, "thread 0 (warp 0, lane 0): llvm.nvvm.cp.async.bulk.tensor.%s.%s.%ud (call ", form,
           is_im2col ? "im2col" : "tile", rank);
  expect_failure(tma_run(kernel, &g->launch, &options), TL_STATUS_CHECK_FAILED, text, op, NULL);
  tl_emu_kernel_destroy(kernel);
  // With checks it is a finding.
  tma_checks = TL_EMU_SANITIZE_ASYNC;
  kernel = tma_create(form, rank, is_im2col);
  char finding[300];
  snprintf(finding, sizeof finding, "%s; the launch ends here, %s", text, strstr(op, "llvm."));
  expect_failure(tma_run(kernel, &g->launch, &options), TL_STATUS_CHECK_FAILED, finding,
                 "misused operation: thread 0 (warp 0, lane 0) of block (0, 0, 0) breaks a rule: ", NULL);
  tl_emu_kernel_destroy(kernel);
  tma_checks = 0;
}

START_TEST(the_good_one) {
  good g = make_good();
  tl_emu_kernel *kernel = tma_create("g2s", 2, false);
  expect_ok(tma_run(kernel, &g.launch, &options));
  tl_emu_kernel_destroy(kernel);
  finish(&g);
}
END_TEST

// A map that is passed by value may lie anywhere: the launch copies it.
START_TEST(by_value) {
  good g = make_good();
  static uint8_t odd[2 * TL_TENSORMAP_BYTES];
  tl_emu_kernel *kernel = tma_create("g2s", 2, false);
  for (int shift = 0; shift < 64; shift += 9) {
    memcpy(odd + shift, g.launch.map.bytes, TL_TENSORMAP_BYTES);
    uint32_t grid[3] = {1, 1, 1};
    int32_t *c = g.launch.coords;
    uint16_t none = 0;
    expect_ok(tl_emu_launch(kernel, grid,
                            (void *[]){odd + shift, &g.io, &g.launch.offset, &g.launch.expect, &c[0], &c[1], &c[2],
                                       &c[3], &c[4], &none, &none, &none},
                            &options, NULL));
    ck_assert_mem_eq(g.io + 1024, g.tensor, 1024);
  }
  tl_emu_kernel_destroy(kernel);
  finish(&g);
}
END_TEST

// A map in global memory, which must be aligned there.
START_TEST(in_global_memory) {
  good g = make_good();
  uint8_t *maps = tl_emu_alloc(256, 128);
  memcpy(maps, g.launch.map.bytes, TL_TENSORMAP_BYTES);
  memcpy(maps + 128, "no map", 6);
  char call[300];
  static const char *const places[] = {"0", "128", "16"};
  static const char *const texts[] = {NULL, "are no tensor map", "the tensor map's address is no multiple of 64"};
  static const char *const uses[] = {
      "call void @llvm.nvvm.prefetch.tensormap.p0(ptr %map2)",
      "call void @llvm.nvvm.fence.proxy.tensormap_generic.acquire.gpu(ptr %map2, i32 128)",
      "call void @llvm.nvvm.cp.async.bulk.tensor.prefetch.tile.2d(ptr %map2, i32 0, i32 0, i64 0, i1 false)"};
  for (int i = 0; i < 9; i++) {
    const char *use = uses[i / 3];
    snprintf(call, sizeof call,
             "%%at = getelementptr i8, ptr addrspace(1) %%io, i32 %s\n"
             " %%map2 = addrspacecast ptr addrspace(1) %%at to ptr\n %s",
             places[i % 3], use);
    tl_strbuf declaration = {0};
    tma_declare(use, &declaration);
    char *text = tma_store_kernel(tl_strbuf_c(&declaration), call, "");
    tl_strbuf_fini(&declaration);
    tl_emu_kernel *kernel = tma_compile(text);
    memcpy(g.io, maps, 256);
    tl_status status = tma_run(kernel, &g.launch, &options);
    if (texts[i % 3])
      expect_failure(status, TL_STATUS_CHECK_FAILED, texts[i % 3], NULL, NULL);
    else
      expect_ok(status);
    tl_emu_kernel_destroy(kernel);
  }
  tl_emu_free(maps);
  finish(&g);
}
END_TEST

START_TEST(maps) {
  good g = make_good();
  refused("g2s", 3, false, &g, "the op takes 3 coordinates, the tensor map has 2 dimensions");
  refused("s2g", 1, false, &g, "the op takes 1 coordinates, the tensor map has 2 dimensions");
  g.launch.map.bytes[40] ^= 4;
  refused("g2s", 2, false, &g, "are no tensor map");
  refused("s2g", 2, false, &g, "are no tensor map");
  memset(g.launch.map.bytes, 0, sizeof g.launch.map.bytes);
  refused("g2s.cta", 2, false, &g, "are no tensor map");
  finish(&g);
  g = make_good();
  g.c.map.rank = 3;
  g.c.map.dims[2] = g.c.map.box[2] = g.c.map.element_strides[2] = 1;
  g.c.map.strides[1] = 256 * 32;
  g.launch = tma_launch_of(&g.c, 1024, g.io);
  refused("g2s", 3, true, &g, "the tensor map is made for tiles");
  g.c.map.is_im2col = true;
  g.c.map.channels_per_pixel = 64;
  g.c.map.pixels_per_column = 8;
  g.launch = tma_launch_of(&g.c, 1024, g.io);
  refused("g2s", 3, false, &g, "the tensor map is made for im2col");
  g.launch.coords[1] = -1;
  refused("g2s", 3, true, &g, "coordinate 1 is -1, outside of the bounding box of 0 to 31");
  finish(&g);
}
END_TEST

START_TEST(coordinates) {
  good g = make_good();
  g.launch.coords[0] = 4;
  refused("g2s", 2, false, &g, "coordinate 0 is 4, 8 bytes of f16: no multiple of 16");
  refused("s2g", 2, false, &g, "coordinate 0 is 4, 8 bytes of f16: no multiple of 16");
  refused("reduce.add", 2, false, &g, "coordinate 0 is 4, 8 bytes of f16: no multiple of 16");
  g.launch.coords[0] = -8;
  refused("s2g", 2, false, &g, "coordinate 0 is -8: stores cannot start before the tensor");
  g.launch.coords[0] = 0;
  g.launch.coords[1] = -1;
  refused("s2g", 2, false, &g, "coordinate 1 is -1: stores cannot start before the tensor");
  refused("reduce.add", 2, false, &g, "coordinate 1 is -1: stores cannot start before the tensor");
  g.launch.coords[1] = 0;
  g.launch.coords[0] = -3;
  refused("g2s.cta", 2, false, &g, "coordinate 0 is -3, -6 bytes of f16: no multiple of 16");
  finish(&g);
}
END_TEST

START_TEST(shared_memory) {
  good g = make_good();
  g.launch.offset = 1024 + 64;
  refused("g2s", 2, false, &g, "the destination, offset 1088 of shared memory, is no multiple of 128");
  refused("s2g", 2, false, &g, "the source, offset 1088 of shared memory, is no multiple of 128");
  // The box ends behind what the kernel has: the buffer and, behind it, the mbarrier.
  g.launch.offset = TMA_SHARED - 896;
  refused("g2s", 2, false, &g,
          "the destination, 1024 bytes at offset 64640 of shared memory, is not within its 65544 bytes");
  g.launch.offset = (uint32_t)-128;
  refused("g2s", 2, false, &g,
          "the destination, 1024 bytes at offset -128 of shared memory, is not within its 65544 bytes");
  finish(&g);
}
END_TEST

START_TEST(tensor_outside_its_buffer) {
  good g = make_good();
  g.c.map.dims[1] = 64;
  g.launch = tma_launch_of(&g.c, 1024, g.io);
  g.launch.coords[1] = 30;
  tl_emu_kernel *kernel = tma_create("g2s", 2, false);
  expect_failure(tma_run(kernel, &g.launch, &options), TL_STATUS_CHECK_FAILED, "invalid read",
                 "0 bytes past the end of a buffer of 8192 bytes", "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d");
  tl_emu_kernel_destroy(kernel);
  kernel = tma_create("s2g", 2, false);
  expect_failure(tma_run(kernel, &g.launch, &options), TL_STATUS_CHECK_FAILED, "invalid write",
                 "past the end of a buffer of 8192 bytes", "llvm.nvvm.cp.async.bulk.tensor.s2g.tile.2d");
  tl_emu_kernel_destroy(kernel);
  finish(&g);
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_test(cases, the_good_one);
  tcase_add_test(cases, by_value);
  tcase_add_test(cases, in_global_memory);
  tcase_add_test(cases, maps);
  tcase_add_test(cases, coordinates);
  tcase_add_test(cases, shared_memory);
  tcase_add_test(cases, tensor_outside_its_buffer);
}

int main(void) {
  return run_suite("emulator mistakes in tensor copies", add_tests);
}
