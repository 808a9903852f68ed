# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs into a temporary prefix and builds the C example against it, by pkg-config and by CMake.
build=$1
source=$2
compiler=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-install.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
command -v pkg-config >/dev/null || exit 77
cmake --install "$build" --prefix "$work/usr" >"$work/log" 2>&1 || {
  # Not everything has been built in this tree.
  grep -q 'cannot find' "$work/log" && exit 77
  cat "$work/log"
  exit 1
}
lib=$(dirname "$(find "$work/usr" -name libtl.so | head -1)")
[ "$(cd "$work/usr/include/tl" && echo *)" = "compiler.h runtime.h status.h tl.h" ] || {
  echo "other headers than the public ones are installed"
  exit 1
}
# The .pc file finds its prefix by itself.
flags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs tl) || exit 1
# shellcheck disable=SC2086
"$compiler" -std=c11 "$source/examples/c11_vector_add/main.c" $flags -lm -o "$work/example" || exit 1
LD_LIBRARY_PATH=$lib "$work/example" || exit 1
mkdir "$work/consumer"
cat >"$work/consumer/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(tl REQUIRED)
add_executable(consumer $source/examples/c11_vector_add/main.c)
target_link_libraries(consumer PRIVATE tl::tl m)
add_executable(kernels kernels.c)
tl_add_kernels(kernels SPECS va=$source/kernels/vector_add.yaml TARGETS sm_80 PTXAS none)
enable_testing()
tl_add_golden_test(NAME pinned LIST goldens.txt UPDATE_TARGET record)
END
echo '#include "va.h"
int main(void) { return va_launch(0, 0, 0, 0, -1) == 0; }' >"$work/consumer/kernels.c"
echo "va $source/kernels/vector_add.yaml targets=sm_80" >"$work/consumer/goldens.txt"
cmake -G Ninja -S "$work/consumer" -B "$work/consumer/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/usr" >"$work/log" 2>&1 &&
  cmake --build "$work/consumer/build" >>"$work/log" 2>&1 &&
  env -u CI cmake --build "$work/consumer/build" --target record >>"$work/log" 2>&1 &&
  (cd "$work/consumer/build" && ctest) >>"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
"$work/consumer/build/kernels" && "$work/consumer/build/consumer"
