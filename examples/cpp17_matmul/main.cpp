// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles kernels/matmul_dynamic.yaml for bf16 and runs it for several shapes on its own stream, without a GPU in the
// emulator.
#include <tl/tl.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// A failure of libtl as an exception.
struct Error : std::runtime_error {
  explicit Error(tl_status status) : std::runtime_error(tl_status_message(status)), code(tl_status_code_of(status)) {
    tl_status_free(status);
  }
  tl_status_code code;
};

void check(tl_status status) {
  if (status) throw Error(status);
}

struct Destroy {
  void operator()(tl_compiler *p) const { tl_compiler_destroy(p); }
  void operator()(tl_compilation *p) const { tl_compilation_destroy(p); }
  void operator()(tl_device *p) const { tl_device_close(p); }
  void operator()(tl_program *p) const { tl_program_destroy(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, Destroy>;

Owned<tl_compilation> compile(const char *path, int compute_capability) {
  tl_compiler *made = nullptr;
  check(tl_compiler_create(&made));
  Owned<tl_compiler> compiler(made);
  check(tl_compiler_bind(compiler.get(), "dtype", "bf16"));
  if (compute_capability) check(tl_compiler_set_target_for_device(compiler.get(), compute_capability));
  tl_compilation *result = nullptr;
  tl_status status = tl_compiler_compile_file(compiler.get(), path, &result);
  Owned<tl_compilation> compilation(result);
  if (result) std::fputs(tl_compilation_diagnostics(result, TL_DIAGNOSTICS_TEXT), stderr);
  check(status);
  return compilation;
}

// Small integers are exact in bf16: the top half of the float's bits.
std::uint16_t to_bf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}
float from_bf16(std::uint16_t value) {
  std::uint32_t bits = static_cast<std::uint32_t>(value) << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

class Buffer {
 public:
  Buffer(tl_device *device, const std::vector<std::uint16_t> &values) : device_(device) {
    check(tl_device_alloc(device, values.size() * 2, &pointer_));
    check(tl_device_upload(device, pointer_, values.data(), values.size() * 2));
  }
  ~Buffer() { tl_status_free(tl_device_free(device_, pointer_)); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  void *get() const { return pointer_; }

 private:
  tl_device *device_;
  void *pointer_ = nullptr;
};

void run(tl_device *device, tl_kernel *kernel, void *stream, int64_t m, int64_t n, int64_t k) {
  std::vector<std::uint16_t> a(m * k), b(k * n), c(m * n);
  for (int64_t i = 0; i < m * k; i++) a[i] = to_bf16(static_cast<float>(i % 5 - 2));
  for (int64_t i = 0; i < k * n; i++) b[i] = to_bf16(static_cast<float>(i % 3 - 1));
  Buffer device_a(device, a), device_b(device, b), device_c(device, c);
  const int64_t shape_a[] = {m, k}, shape_b[] = {k, n}, shape_c[] = {m, n};
  const tl_argument arguments[] = {tl_argument_tensor("A", device_a.get(), "bf16", 2, shape_a),
                                   tl_argument_tensor("B", device_b.get(), "bf16", 2, shape_b),
                                   tl_argument_tensor("C", device_c.get(), "bf16", 2, shape_c)};
  check(tl_kernel_launch(kernel, arguments, 3, stream));
  check(tl_stream_synchronize(device, stream));
  check(tl_device_download(device, c.data(), device_c.get(), c.size() * 2));
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      float wanted = 0;
      for (int64_t l = 0; l < k; l++) wanted += from_bf16(a[i * k + l]) * from_bf16(b[l * n + j]);
      float given = from_bf16(c[i * n + j]);
      if (std::fabs(given - wanted) > 0.01f * std::fabs(wanted) + 0.01f) {
        throw std::runtime_error("C[" + std::to_string(i) + ", " + std::to_string(j) + "] is " + std::to_string(given) +
                                 ", expected " + std::to_string(wanted));
      }
    }
  }
  std::printf("%lld x %lld x %lld: right\n", static_cast<long long>(m), static_cast<long long>(n),
              static_cast<long long>(k));
}

void run_all(const char *path) {
  compile(path, 0);  // needs no GPU
  tl_device *opened = nullptr;
  tl_status status = tl_device_open(0, &opened);
  if (tl_status_code_of(status) == TL_STATUS_NO_DEVICE) {  // the emulator checks what the kernel does, and is slow
    tl_status_free(status);
    status = tl_device_open_emulator(nullptr, &opened);
  }
  check(status);
  Owned<tl_device> device(opened);
  auto compilation = compile(path, tl_device_compute_capability(opened));
  std::size_t bytes = 0;
  const char *ptx = tl_compilation_ptx(compilation.get(), &bytes);
  tl_program *loaded = nullptr;
  check(tl_program_load(opened, ptx, bytes, &loaded));
  Owned<tl_program> program(loaded);
  tl_kernel *kernel = nullptr;
  check(tl_program_kernel(loaded, nullptr, &kernel));
  void *stream = nullptr;
  check(tl_stream_create(opened, &stream));
  run(opened, kernel, stream, 256, 128, 64);
  run(opened, kernel, stream, 77, 96, 40);
  run(opened, kernel, stream, 1, 8, 8);
  check(tl_stream_destroy(opened, stream));
}

}  // namespace

int main(int argc, char **argv) {
  try {
    run_all(argc > 1 ? argv[1] : "kernels/matmul_dynamic.yaml");
    return 0;
  } catch (const Error &error) {
    std::fprintf(stderr, "%s: %s\n", tl_status_code_name(error.code), error.what());
    return 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
