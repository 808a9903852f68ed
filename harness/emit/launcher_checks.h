// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What follows launcher.h in every generated file: checks, expressions, tensor maps, launches.

// ---- checks

TLK_UNUSED static int tlk_range(const char *name, int64_t value, int64_t most, int64_t divisor) {
  if (value < 0 || value > most)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "'%s' is %lld, expected 0 to %lld", name, (long long)value,
                    (long long)most);
  if (divisor > 1 && value % divisor)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "'%s' is %lld, expected a multiple of %lld", name, (long long)value,
                    (long long)divisor);
  return 0;
}

// A dim that sizes make together.
TLK_UNUSED static int tlk_extent(const char *name, int dim, int64_t extent, const int *bad) {
  if (*bad || extent >= 0) return 0;
  return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': dimension %d is negative: %lld", name, dim,
                  (long long)extent);
}

static int tlk_ask_pointer(const tlk_module *module, const char *name, const void *pointer) {
  unsigned int type = 0, is_managed = 0, attributes[] = {2, 8, 9};  // memory type, managed, device ordinal
  int device = -1;
  void *values[] = {&type, &is_managed, &device};
  int code = tlk_call(tlk_driver.pointer_get_attributes(3, attributes, values, (tlk_address)(uintptr_t)pointer),
                      "cuPointerGetAttributes");
  if (code || is_managed) return code;
  if (type == 0)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT,
                    "argument '%s': expected device memory, given an address (%p) that CUDA does not know", name,
                    pointer);
  if (type == 1)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected device memory, given host memory", name);
  if (device != module->device)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected memory of GPU %d, given memory of GPU %d",
                    name, module->device, device);
  return 0;
}

// Device memory that is aligned. What was found to be device memory before is not asked for again: host memory does
// not get such addresses.
TLK_UNUSED static int tlk_pointer(const tlk_module *module, const char *name, const void *pointer, uintptr_t align) {
  static _Atomic uintptr_t seen[TLK_SEEN];
  uintptr_t address = (uintptr_t)pointer, key = address ^ ((uintptr_t)module->device + 1) << 57;
  if (!pointer)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected a device pointer, given NULL", name);
  if (address % align)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected a pointer aligned to %d bytes, given %p", name,
                    (int)align, pointer);
  _Atomic uintptr_t *slot = &seen[(address >> 8 ^ address >> 16 ^ address >> 24) % TLK_SEEN];
  if (atomic_load_explicit(slot, memory_order_relaxed) == key) return 0;
  int code = tlk_ask_pointer(module, name, pointer);
  if (!code) atomic_store_explicit(slot, key, memory_order_relaxed);
  return code;
}

// Expressions of the manifest: integers of 64 bits, of which an overflow or a division by zero is a failure.
TLK_UNUSED static inline int64_t tlk_add(int64_t a, int64_t b, int *bad) {
  int64_t result;
  *bad |= __builtin_add_overflow(a, b, &result);
  return result;
}
TLK_UNUSED static inline int64_t tlk_sub(int64_t a, int64_t b, int *bad) {
  int64_t result;
  *bad |= __builtin_sub_overflow(a, b, &result);
  return result;
}
TLK_UNUSED static inline int64_t tlk_mul(int64_t a, int64_t b, int *bad) {
  int64_t result;
  *bad |= __builtin_mul_overflow(a, b, &result);
  return result;
}
TLK_UNUSED static inline int64_t tlk_floordiv(int64_t a, int64_t b, int *bad) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return *bad = 1, 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
TLK_UNUSED static inline int64_t tlk_mod(int64_t a, int64_t b, int *bad) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return *bad = 1, 0;
  return a - tlk_floordiv(a, b, bad) * b;
}
TLK_UNUSED static inline int64_t tlk_ceildiv(int64_t a, int64_t b, int *bad) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return *bad = 1, 0;
  return tlk_floordiv(a, b, bad) + (a % b != 0);
}
TLK_UNUSED static inline int64_t tlk_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
TLK_UNUSED static inline int64_t tlk_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// ---- chains

// Where the next buffer begins behind one of `bytes` bytes.
TLK_UNUSED static int64_t tlk_place(int64_t offset, int64_t bytes, int *bad) {
  if (bytes < 0) return *bad = 1, 0;
  return tlk_add(offset, tlk_add(bytes, 255, bad) / 256 * 256, bad);
}

TLK_UNUSED static int tlk_workspace(const tlk_module *module, const void *workspace, size_t given, int64_t needed) {
  if (needed == 0) return 0;
  if (given < (size_t)needed)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "the workspace has %zu bytes, %lld are needed", given,
                    (long long)needed);
  return tlk_pointer(module, "workspace", workspace, 256);
}

TLK_UNUSED static int tlk_zero(void *memory, size_t bytes, tl_stream stream) {
  return tlk_call(tlk_driver.memset_d8_async((tlk_address)(uintptr_t)memory, 0, bytes, stream), "cuMemsetD8Async");
}

// What a step gives its kernel fits it.
TLK_UNUSED static int tlk_same(const char *name, const char *what, int dim, int64_t expected, int64_t given) {
  if (expected == given) return 0;
  return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': %s %d: expected %lld, given %lld", name, what, dim,
                  (long long)expected, (long long)given);
}

TLK_UNUSED static int tlk_number(const char *name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return 0;
  return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected %lld to %lld, given %lld", name,
                  (long long)least, (long long)most, (long long)value);
}

TLK_UNUSED static int tlk_step(int code, int number, const char *kernel) {
  char text[sizeof tlk_text];
  memcpy(text, tlk_text, sizeof text);
  snprintf(tlk_text, sizeof tlk_text, "step %d, '%s': %.900s", number, kernel, text);
  return code;
}

// Numbers of 16 bits as a kernel takes them: to nearest, ties to even.
TLK_UNUSED static uint16_t tlk_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
TLK_UNUSED static uint16_t tlk_f16(float value) {
  uint32_t bits, sign, magnitude;
  memcpy(&bits, &value, sizeof bits);
  sign = bits >> 16 & 0x8000;
  magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);  // 65520 and more
  if (magnitude < 0x38800000) {  // below 2^-14: a sum with 0.5 leaves multiples of 2^-24 in the low bits
    float scaled, sum;
    memcpy(&scaled, &magnitude, sizeof scaled);
    sum = scaled + 0.5f;
    memcpy(&bits, &sum, sizeof bits);
    return (uint16_t)(sign | (bits - 0x3f000000));
  }
  magnitude += 0xfff + (magnitude >> 13 & 1);
  return (uint16_t)(sign | ((magnitude - 0x38000000) >> 13));
}

// ---- tensor maps

typedef struct tlk_map {
  const char *tensor;
  unsigned int type, swizzle, l2, fill;
  uint32_t rank, box[5];
  int is_written, is_im2col, lower[3], upper[3];  // corners of W, H, D of im2col
  uint32_t step[5];
} tlk_map;

typedef struct tlk_made_map {
  _Alignas(64) unsigned char bytes[128];
  void *address;
  uint64_t dims[5], strides[4];
} tlk_made_map;
typedef struct tlk_made_maps {
  tlk_made_map made[TLK_MAX_MAPS];
  unsigned int next;
} tlk_made_maps;

// 256 zero bytes, of which the first half is only read.
TLK_UNUSED static int tlk_empty(tlk_module *module, int is_written, void **out) {
  unsigned int mode = 2;
  int code = 0;
  pthread_mutex_lock(&tlk_lock);
  if (!atomic_load(&module->empty)) {
    tl_stream stream = NULL;
    tlk_address memory = 0;
    tlk_driver.exchange_capture_mode(&mode);
    code = tlk_call(tlk_driver.mem_alloc(&memory, 256), "cuMemAlloc");
    if (!code) code = tlk_call(tlk_driver.stream_create(&stream, 1), "cuStreamCreate");
    if (!code) code = tlk_call(tlk_driver.memset_d8_async(memory, 0, 256, stream), "cuMemsetD8Async");
    if (!code) code = tlk_call(tlk_driver.stream_synchronize(stream), "cuStreamSynchronize");
    if (stream) tlk_driver.stream_destroy(stream);
    tlk_driver.exchange_capture_mode(&mode);
    if (!code) atomic_store(&module->empty, memory);
  }
  pthread_mutex_unlock(&tlk_lock);
  *out = (void *)(uintptr_t)(atomic_load(&module->empty) + (is_written ? 128 : 0));
  return code;
}

// What a launch may break of the driver's rules, which says no more than that a value is invalid.
TLK_UNUSED static int tlk_validate_map(const tlk_map *map, const tlk_made_map *wanted) {
  if ((uintptr_t)wanted->address % 16)
    return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': expected a pointer aligned to 16 bytes, given %p",
                    map->tensor, wanted->address);
  for (uint32_t i = 0; i < map->rank; i++)
    if (wanted->dims[i] > (uint64_t)1 << 32)
      return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "argument '%s': a dimension of %llu, expected up to 2^32",
                      map->tensor, (unsigned long long)wanted->dims[i]);
  for (uint32_t i = 0; i + 1 < map->rank; i++) {
    // The driver's documentation: each stride includes those of the dims before it.
    if (!wanted->strides[i])
      return tlk_fail(TL_KERNEL_INVALID_ARGUMENT,
                      "argument '%s': a stride of 0 bytes, which the tensor map that the kernel takes cannot have",
                      map->tensor);
    if (wanted->strides[i] % 16 || wanted->strides[i] >= (uint64_t)1 << 40)
      return tlk_fail(TL_KERNEL_INVALID_ARGUMENT,
                      "argument '%s': a stride of %llu bytes, expected a multiple of 16 below 2^40", map->tensor,
                      (unsigned long long)wanted->strides[i]);
  }
  for (uint32_t i = 0; map->is_im2col && i + 2 < map->rank; i++)
    if ((int64_t)wanted->dims[1 + i] + map->upper[i] <= map->lower[i])
      return tlk_fail(TL_KERNEL_INVALID_ARGUMENT,
                      "argument '%s': a dimension of %llu, too small for the pixels that the kernel takes", map->tensor,
                      (unsigned long long)wanted->dims[1 + i]);
  return 0;
}

// Of a tensor without elements, whose dims are 1, all base positions may lie outside: the corners meet.
TLK_UNUSED static int tlk_encode_map(const tlk_map *map, int is_empty, tlk_made_map *wanted) {
  if (map->is_im2col && !tlk_driver.tensor_map_encode_im2col)
    return tlk_fail(TL_KERNEL_UNSUPPORTED, "the driver is too old for tensor maps: it has no cuTensorMapEncodeIm2col");
  if (map->is_im2col)
    return tlk_call(
        tlk_driver.tensor_map_encode_im2col(wanted->bytes, map->type, map->rank, wanted->address, wanted->dims,
                                            wanted->strides, map->lower, is_empty ? map->lower : map->upper,
                                            map->box[0], map->box[1], map->step, 0, map->swizzle, map->l2, map->fill),
        "cuTensorMapEncodeIm2col");
  if (!tlk_driver.tensor_map_encode_tiled)
    return tlk_fail(TL_KERNEL_UNSUPPORTED, "the driver is too old for tensor maps: it has no cuTensorMapEncodeTiled");
  return tlk_call(
      tlk_driver.tensor_map_encode_tiled(wanted->bytes, map->type, map->rank, wanted->address, wanted->dims,
                                         wanted->strides, map->box, map->step, 0, map->swizzle, map->l2, map->fill),
      "cuTensorMapEncodeTiled");
}

// The map of a tensor, made once for each memory, dims and strides that the thread used lately.
TLK_UNUSED static int tlk_make_map(tlk_module *module, const tlk_map *map, tlk_made_maps *maps, tlk_made_map *wanted,
                                   void **out) {
  int is_empty = 0, code = 0;
  for (uint32_t i = 0; i < map->rank; i++) is_empty |= wanted->dims[i] == 0;
  for (uint32_t i = 0; is_empty && i < map->rank; i++) wanted->dims[i] = 1;
  // A stride that no second index uses may be anything: the driver still wants it in order.
  for (uint32_t i = 0; i + 1 < map->rank; i++)
    if (wanted->dims[i + 1] == 1) wanted->strides[i] = 16;
  if (is_empty) code = tlk_empty(module, map->is_written, &wanted->address);
  if (code) return code;
  for (int i = 0; i < TLK_MAX_MAPS; i++) {
    tlk_made_map *made = &maps->made[i];
    if (made->address != wanted->address || memcmp(made->dims, wanted->dims, sizeof made->dims) != 0 ||
        memcmp(made->strides, wanted->strides, sizeof made->strides) != 0)
      continue;
    *out = made->bytes;
    return 0;
  }
  if (!is_empty) code = tlk_validate_map(map, wanted);
  if (!code) code = tlk_encode_map(map, is_empty, wanted);
  if (code) return code;
  tlk_made_map *made = &maps->made[maps->next++ % TLK_MAX_MAPS];
  *made = *wanted;
  *out = made->bytes;
  return 0;
}

// ---- launches

static int tlk_grid(const char *kernel, const int64_t grid[3], const unsigned int cluster[3]) {
  static const int64_t most[3] = {INT32_MAX, 65535, 65535};
  for (int i = 0; i < 3; i++) {
    if (grid[i] < 0 || grid[i] > most[i])
      return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "grid of '%s': %c is %lld, expected 0 to %lld", kernel, "xyz"[i],
                      (long long)grid[i], (long long)most[i]);
    if (grid[i] % cluster[i])
      return tlk_fail(TL_KERNEL_INVALID_ARGUMENT, "grid of '%s': %c is %lld, expected a multiple of the cluster's %u",
                      kernel, "xyz"[i], (long long)grid[i], cluster[i]);
  }
  return 0;
}

static int tlk_launch(const tlk_module *module, int index, const int64_t grid[3], void **params, tl_stream stream) {
  const tlk_kernel *kernel = &tlk_variants[module->variant].kernels[index];
  unsigned int x = (unsigned int)grid[0], y = (unsigned int)grid[1], z = (unsigned int)grid[2];
  if (kernel->cluster[0] * kernel->cluster[1] * kernel->cluster[2] == 1)
    return tlk_call(tlk_driver.launch_kernel(module->kernels[index].function, x, y, z, kernel->block_threads, 1, 1,
                                             kernel->dynamic_shared_bytes, stream, params, NULL),
                    "cuLaunchKernel");
  tlk_launch_attribute attribute = {.id = 4};  // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
  memcpy(attribute.value.cluster, kernel->cluster, sizeof kernel->cluster);
  tlk_launch_config config = {.grid = {x, y, z},
                              .block = {kernel->block_threads, 1, 1},
                              .shared_bytes = kernel->dynamic_shared_bytes,
                              .stream = stream,
                              .attributes = &attribute,
                              .num_attributes = 1};
  return tlk_call(tlk_driver.launch_kernel_ex(&config, module->kernels[index].function, params, NULL),
                  "cuLaunchKernelEx");
}
// ---- end of the launcher
