// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps of launches: what the recipe of a manifest becomes, what is refused, and that maps are kept.
#include "test/unit/runtime_fake_driver.h"

#include "support/status.h"

// A (16-bit, K wide) by one map for reading, and `other`.
#define PTX_WITH(other)                                                                                             \
  "// {\"abi\": 1, \"generator\": \"test\", \"target\": \"sm_80\", \"ptx_version\": \"7.0\", \"kernels\": [\n"      \
  "// {\"name\": \"k\", \"params\": [\n"                                                                            \
  "//  {\"kind\": \"tensor\", \"name\": \"A\", \"access\": \"in\", \"dtype\": \"bf16\", \"dims\": [\"M\", \"K\"], " \
  "\"strides\": [\"lda\", 1], \"align\": 2},\n"                                                                     \
  "//  {\"kind\": \"tensor\", \"name\": \"C\", \"access\": \"out\", \"dtype\": \"f32\", \"dims\": [\"M\", 8], "     \
  "\"strides\": [8, 1], \"align\": 16},\n"                                                                          \
  "//  {\"kind\": \"dynamic\", \"name\": \"M\", \"divisor\": 1}, {\"kind\": \"dynamic\", \"name\": \"K\", "         \
  "\"divisor\": 1},\n"                                                                                              \
  "//  {\"kind\": \"stride\", \"name\": \"lda\"},\n"                                                                \
  "//  {\"kind\": \"tensor_map\", \"name\": \"A.map\", \"tensor\": \"A\", \"access\": \"in\", \"type\": \"bf16\", " \
  "\"dims\": [\"K\", \"M\"], \"strides\": [\"lda * 2\"], \"box\": [64, 128], \"swizzle\": 128, \"l2\": 256, "       \
  "\"fill\": \"zero\"},\n" other                                                                                    \
  "],\n"                                                                                                            \
  "// \"requires\": [], \"grid\": [\"ceildiv(M, 128)\", 1, 1], \"block_threads\": 128, \"math_threads\": 128,\n"    \
  "// \"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 0, \"cluster\": [1, 1, 1]}]}\n"
// C (M by 8 floats) by one for writing.
static const char ptx[] = PTX_WITH(
    "//  {\"kind\": \"tensor_map\", \"name\": \"C.map\", \"tensor\": \"C\", \"access\": \"out\", \"type\": \"f32\", "
    "\"dims\": [8, \"M\"], \"strides\": [32], \"box\": [8, 64], \"swizzle\": 0, \"l2\": 0, \"fill\": \"zero\"}");
// A by another one.
static const char ptx_of_two[] = PTX_WITH(
    "//  {\"kind\": \"tensor_map\", \"name\": \"A.other\", \"tensor\": \"A\", \"access\": \"in\", \"type\": \"bf16\", "
    "\"dims\": [\"K\", \"M\"], \"strides\": [\"lda * 2\"], \"box\": [64, 32], \"swizzle\": 128, \"l2\": 0, \"fill\": "
    "\"zero\"}");
// Pixels of an image.
static const char ptx_of_pixels[] =
    "// {\"abi\": 1, \"generator\": \"test\", \"target\": \"sm_80\", \"ptx_version\": \"7.0\", \"kernels\": [\n"
    "// {\"name\": \"k\", \"params\": [\n"
    "//  {\"kind\": \"tensor\", \"name\": \"X\", \"access\": \"in\", \"dtype\": \"f16\", \"dims\": [\"N\", 9, 11, 8], "
    "\"strides\": [792, 88, 8, 1], \"align\": 16},\n"
    "//  {\"kind\": \"dynamic\", \"name\": \"N\", \"divisor\": 1},\n"
    "//  {\"kind\": \"tensor_map\", \"name\": \"X.map\", \"tensor\": \"X\", \"access\": \"in\", \"type\": \"f16\", "
    "\"dims\": [8, 11, 9, \"N\"], \"strides\": [16, 176, 1584], \"box\": [8, 64, 1, 1], \"lower\": [-1, -2], "
    "\"upper\": [-3, 1], \"step\": [2, 1], \"swizzle\": 0, \"l2\": 256, \"fill\": \"zero\"}],\n"
    "// \"requires\": [], \"grid\": [\"N + 1\", 1, 1], \"block_threads\": 128, \"math_threads\": 128,\n"
    "// \"static_shared_bytes\": 0, \"dynamic_shared_bytes\": 0, \"cluster\": [1, 1, 1]}]}\n";
enum { PARAM_A_MAP = 5, PARAM_C_MAP = 6 };

static _Alignas(16) uint8_t memory[256];
static int64_t shape_a[2], stride_a[2], shape_c[2];
static tl_argument arguments[2];

// What the driver was asked for last.
static int encodings;
static struct {
  uint32_t rank, box[5], swizzle, l2;
  uint64_t dims[5], strides[4];
  void *address;
} seen[2];
static uint8_t launched[2][TL_TENSORMAP_BYTES];

static tl_cu_result fake_encode(tl_cu_tensor_map *map, tl_cu_tensor_map_type type, uint32_t rank, void *address,
                                const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                                const uint32_t *element_strides, tl_cu_tensor_map_interleave interleave,
                                tl_cu_tensor_map_swizzle swizzle, tl_cu_tensor_map_l2 l2, tl_cu_tensor_map_fill fill) {
  ck_assert_uint_eq((uintptr_t)map % TL_TENSORMAP_ALIGN, 0);
  ck_assert_uint_eq(interleave, 0);
  ck_assert_uint_eq(fill, 0);
  int at = type == TL_TENSORMAP_F32;
  seen[at].rank = rank;
  seen[at].address = address;
  seen[at].swizzle = swizzle;
  seen[at].l2 = l2;
  for (uint32_t d = 0; d < rank; d++) {
    ck_assert_uint_eq(element_strides[d], 1);
    seen[at].dims[d] = dims[d];
    seen[at].box[d] = box[d];
    if (d + 1 < rank) seen[at].strides[d] = strides[d];
  }
  memset(map, ++encodings, TL_TENSORMAP_BYTES);
  memcpy((uint8_t *)map + 8, strides, sizeof *strides);
  return 0;
}

static struct {
  int lower[2], upper[2];
  uint32_t channels, pixels, step[4];
  uint64_t dims[4];
} seen_pixels;

static tl_cu_result fake_encode_im2col(tl_cu_tensor_map *map, tl_cu_tensor_map_type type, uint32_t rank, void *address,
                                       const uint64_t *dims, const uint64_t *strides, const int *lower,
                                       const int *upper, uint32_t channels, uint32_t pixels,
                                       const uint32_t *element_strides, tl_cu_tensor_map_interleave interleave,
                                       tl_cu_tensor_map_swizzle swizzle, tl_cu_tensor_map_l2 l2,
                                       tl_cu_tensor_map_fill fill) {
  ck_assert_uint_eq(rank, 4);
  ck_assert_uint_eq(type, TL_TENSORMAP_F16);
  ck_assert_ptr_nonnull(address);
  ck_assert_uint_eq(strides[0], 16);
  ck_assert_uint_eq(interleave + swizzle + fill, 0);
  ck_assert_uint_eq(l2, TL_TENSORMAP_L2_256B);
  memcpy(seen_pixels.lower, lower, sizeof seen_pixels.lower);
  memcpy(seen_pixels.upper, upper, sizeof seen_pixels.upper);
  memcpy(seen_pixels.step, element_strides, sizeof seen_pixels.step);
  memcpy(seen_pixels.dims, dims, sizeof seen_pixels.dims);
  seen_pixels.channels = channels;
  seen_pixels.pixels = pixels;
  memset(map, ++encodings, TL_TENSORMAP_BYTES);
  return 0;
}

static void look(tl_cu_function function, void **params) {
  (void)function;
  memcpy(launched[0], params[PARAM_A_MAP], TL_TENSORMAP_BYTES);
  memcpy(launched[1], params[PARAM_C_MAP], TL_TENSORMAP_BYTES);
}

static tl_cuda_driver with_maps;
static tl_program *program;
static tl_kernel *kernel;

static void load(const char *text, size_t len) {
  setup();
  device->driver = &with_maps;
  tl_status status = tl_program_load(device, text, len, &program);
  if (!status) status = tl_program_kernel(program, NULL, &kernel);
  ck_assert_msg(!status, "%s", tl_status_message(status));
  encodings = launches = 0;
}

static void open_text(bool encodes, const char *text) {
  with_maps = fake;
  if (encodes) with_maps.tensor_map_encode_tiled = fake_encode;
  load(text, strlen(text));
  seen_launch = look;
  shape_a[0] = shape_c[0] = 200;
  shape_a[1] = 64;
  shape_c[1] = 8;
  stride_a[0] = 72;
  stride_a[1] = 1;
  arguments[0] = tl_argument_tensor(NULL, memory, "bf16", 2, shape_a);
  arguments[0].tensor.strides = stride_a;
  arguments[1] = tl_argument_tensor(NULL, memory, "f32", 2, shape_c);
}

static void open_with(bool encodes) {
  open_text(encodes, ptx);
}

static void close_all(void) {
  tl_program_destroy(program);
  seen_launch = NULL;
  teardown();
}

static void launch(void) {
  tl_status status = tl_kernel_launch(kernel, arguments, 2, NULL);
  ck_assert_msg(!status, "%s", tl_status_message(status));
}

static void refuse(tl_status_code code, const char *text) {
  tl_status status = tl_kernel_launch(kernel, arguments, 2, NULL);
  ck_assert_msg(tl_status_code_of(status) == code, "expected: %s\ngiven: %s", text, tl_status_message(status));
  ck_assert_msg(strstr(tl_status_message(status), text) != NULL, "expected: %s\ngiven: %s", text,
                tl_status_message(status));
  tl_status_free(status);
  ck_assert_int_eq(launches, 0);
}

START_TEST(makes_what_the_recipe_says) {
  open_with(true);
  launch();
  ck_assert_int_eq(encodings, 2);
  ck_assert_uint_eq(seen[0].rank, 2);
  ck_assert_uint_eq(seen[0].dims[0], 64);
  ck_assert_uint_eq(seen[0].dims[1], 200);
  ck_assert_uint_eq(seen[0].strides[0], 144);
  ck_assert_uint_eq(seen[0].box[0], 64);
  ck_assert_uint_eq(seen[0].box[1], 128);
  ck_assert_uint_eq(seen[0].swizzle, 3);
  ck_assert_uint_eq(seen[0].l2, 3);
  ck_assert_ptr_eq(seen[0].address, memory);
  ck_assert_uint_eq(seen[1].swizzle, 0);
  ck_assert_uint_eq(seen[1].strides[0], 32);
  ck_assert_uint_eq(launched[0][0], 1);
  ck_assert_uint_eq(launched[1][TL_TENSORMAP_BYTES - 1], 2);
  close_all();
}
END_TEST

START_TEST(keeps_maps_for_the_same_memory_and_shape) {
  open_with(true);
  launch();
  launch();
  ck_assert_int_eq(encodings, 2);
  ck_assert_uint_eq(launched[0][0], 1);
  stride_a[0] = 80;  // another stride of A
  launch();
  ck_assert_int_eq(encodings, 3);
  arguments[1].tensor.data = memory + 128;  // another C
  launch();
  ck_assert_int_eq(encodings, 4);
  ck_assert_uint_eq(launched[0][0], 3);
  ck_assert_uint_eq(launched[1][0], 4);
  stride_a[0] = 72;  // both as at first
  arguments[1].tensor.data = memory;
  launch();
  ck_assert_int_eq(encodings, 4);
  ck_assert_uint_eq(launched[0][0], 1);
  ck_assert_uint_eq(launched[1][0], 2);
  for (int64_t k = 0; k < 200; k++) {  // more than are kept
    stride_a[0] = 72 + 8 * (k % 100);
    launch();
    uint64_t stride;
    memcpy(&stride, launched[0] + 8, sizeof stride);
    ck_assert_uint_eq(stride, (uint64_t)stride_a[0] * 2);
  }
  close_all();
}
END_TEST

START_TEST(keeps_maps_of_one_tensor_apart) {
  open_text(true, ptx_of_two);
  launch();
  launch();
  ck_assert_int_eq(encodings, 2);
  ck_assert_uint_eq(seen[0].box[1], 32);
  ck_assert_uint_eq(launched[0][0], 1);
  ck_assert_uint_eq(launched[1][0], 2);
  close_all();
}
END_TEST

START_TEST(names_the_argument_that_has_no_map) {
  open_with(true);
  stride_a[0] = 68;
  refuse(TL_STATUS_INVALID_ARGUMENT, "argument 'A': tensor map: strides[0] is 136, not a multiple of 16");
  stride_a[0] = 72;
  arguments[0].tensor.data = memory + 2;
  refuse(TL_STATUS_INVALID_ARGUMENT, "argument 'A': tensor map: address");
  arguments[0].tensor.data = memory;
  stride_a[0] = (int64_t)1 << 39;
  refuse(TL_STATUS_INVALID_ARGUMENT, "argument 'A': tensor map: strides[0] is 1099511627776, not below 2^40");
  close_all();
}
END_TEST

// No tensor map has a dim of 0, and a stride that nothing uses needs not be one of a map.
START_TEST(takes_tensors_without_elements) {
  open_with(true);
  int before = allocations;
  shape_a[1] = 0;
  arguments[0].tensor.data = NULL;
  launch();
  ck_assert_uint_eq(seen[0].dims[0], 1);
  ck_assert_uint_eq(seen[0].dims[1], 1);
  ck_assert_uint_eq(seen[0].strides[0], 16);
  ck_assert_ptr_nonnull(seen[0].address);
  ck_assert_uint_eq(*(uint64_t *)seen[0].address, 0);
  ck_assert_int_eq(allocations, before + 1);
  launch();
  ck_assert_int_eq(allocations, before + 1);
  ck_assert_int_eq(encodings, 2);
  shape_a[0] = shape_c[0] = 1;
  shape_a[1] = 64;
  stride_a[0] = 3;
  arguments[0].tensor.data = memory;
  launch();
  ck_assert_uint_eq(seen[0].strides[0], 16);
  close_all();
}
END_TEST

static void launch_pixels(int64_t images, tl_status_code code, const char *text) {
  const int64_t shape[] = {images, 9, 11, 8};
  tl_argument image = tl_argument_tensor(NULL, images ? memory : NULL, "f16", 4, shape);
  tl_status status = tl_kernel_launch(kernel, &image, 1, NULL);
  ck_assert_msg(tl_status_code_of(status) == code, "%s", tl_status_message(status));
  if (text) ck_assert_msg(strstr(tl_status_message(status), text) != NULL, "%s", tl_status_message(status));
  tl_status_free(status);
}

START_TEST(makes_maps_of_pixels) {
  with_maps = fake;
  with_maps.tensor_map_encode_im2col = fake_encode_im2col;
  load(ptx_of_pixels, sizeof ptx_of_pixels - 1);
  launch_pixels(3, TL_STATUS_OK, NULL);
  launch_pixels(3, TL_STATUS_OK, NULL);
  ck_assert_int_eq(encodings, 1);
  ck_assert_int_eq(seen_pixels.lower[0], -1);
  ck_assert_int_eq(seen_pixels.lower[1], -2);
  ck_assert_int_eq(seen_pixels.upper[0], -3);
  ck_assert_int_eq(seen_pixels.upper[1], 1);
  ck_assert_uint_eq(seen_pixels.channels, 8);
  ck_assert_uint_eq(seen_pixels.pixels, 64);
  ck_assert_uint_eq(seen_pixels.step[0], 1);
  ck_assert_uint_eq(seen_pixels.step[1], 2);
  ck_assert_uint_eq(seen_pixels.step[2], 1);
  ck_assert_uint_eq(seen_pixels.dims[3], 3);
  // Of no image: base positions must lie in what stands for it.
  launch_pixels(0, TL_STATUS_OK, NULL);
  ck_assert_int_eq(encodings, 2);
  ck_assert_uint_eq(seen_pixels.dims[1], 1);
  ck_assert_int_ge(seen_pixels.upper[0], seen_pixels.lower[0]);
  with_maps.tensor_map_encode_im2col = NULL;
  launch_pixels(2, TL_STATUS_UNSUPPORTED, "it has no cuTensorMapEncodeIm2col");
  close_all();
}
END_TEST

START_TEST(needs_a_driver_that_makes_maps) {
  open_with(false);
  refuse(TL_STATUS_UNSUPPORTED, "argument 'A': the driver is too old for tensor maps");
  close_all();
}
END_TEST

int main(void) {
  Suite *suite = suite_create("runtime_tensor_maps");
  TCase *tests = tcase_create("maps");
  tcase_add_test(tests, makes_what_the_recipe_says);
  tcase_add_test(tests, keeps_maps_for_the_same_memory_and_shape);
  tcase_add_test(tests, keeps_maps_of_one_tensor_apart);
  tcase_add_test(tests, names_the_argument_that_has_no_map);
  tcase_add_test(tests, takes_tensors_without_elements);
  tcase_add_test(tests, makes_maps_of_pixels);
  tcase_add_test(tests, needs_a_driver_that_makes_maps);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
