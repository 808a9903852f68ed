// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Release binaries run where glibc is 2.35 or newer. Debian 12's static libstdc++ asks for arc4random, which glibc has
// only since 2.36; this definition takes its place in static builds (`-u arc4random` in cmake/TlLLVM.cmake pulls it
// in).
#ifdef TL_STATIC_LLVM

#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void);

uint32_t arc4random(void) {
  uint32_t value = 0;
  // getrandom does not fail for 4 bytes once the kernel's pool is ready.
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
  }
  return value;
}

#else
typedef int tl_glibc_compat_unused;
#endif
