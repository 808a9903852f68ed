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
[ "$(cd "$work/usr/include/tl" && echo *)" = "compiler.h python.h runtime.h status.h tl.h" ] || {
  echo "other headers than the public ones are installed"
  exit 1
}
# One program under four names, and what belongs to it.
for tool in tl-llc tl-run tl-opt tl-golden; do
  [ "$("$work/usr/bin/$tool" --version | awk 'NR == 1 { print $1 }')" = "$tool" ] || {
    echo "bin/$tool is not $tool"
    exit 1
  }
  grep -q "^.TH $(echo $tool | tr a-z A-Z) 1" "$work/usr/share/man/man1/$tool.1" || exit 1
  [ -s "$work/usr/share/bash-completion/completions/$tool" ] && [ -s "$work/usr/share/fish/vendor_completions.d/$tool.fish" ] || exit 1
  [ "$tool" = tl-llc ] || [ "$(readlink "$work/usr/bin/$tool")" = tl-llc ] || exit 1
done
if ln -s "$work/usr/bin/tl-llc" "$work/other" && "$work/other" --version >/dev/null 2>&1; then
  echo "an unknown name is a tool"
  exit 1
fi
[ "$("$work/other" run --version | awk 'NR == 1 { print $1 }')" = tl-run ] || exit 1
[ -s "$work/usr/share/zsh/vendor-completions/_tl-llc" ] && [ -s "$work/usr/share/doc/tl-llc/docs/cli.md" ] && [ -s "$work/usr/share/doc/tl-llc/LICENSE" ] || exit 1
# What users' pages lead to is there, too.
pages=$work/usr/share/doc/tl-llc
for page in README.md docs/tutorial.md docs/python.md docs/embedding.md docs/cli.md docs/language.md docs/goldens.md docs/from-triton.md docs/from-tilelang.md; do
  grep -o '](\(\.\./\)*[A-Za-z0-9_/-]*\(/[A-Za-z0-9_]*\|\.[a-z]*\)[)#]' "$pages/$page" | tr -d '](#)' | sort -u >"$work/links"
  while read -r link; do
    [ -e "$pages/$(dirname $page)/$link" ] || { echo "$page leads to $link, which is not installed"; exit 1; }
  done <"$work/links"
done
if command -v bash >/dev/null; then
  bash -c '. "$1"; complete() { :; }; compopt() { :; }; COMP_WORDS=(tl-llc --emit = p); COMP_CWORD=3; _tl_llc; [ "${COMPREPLY[*]}" = ptx ]' \
    - "$work/usr/share/bash-completion/completions/tl-llc" || {
    echo "bash does not complete --emit=p"
    exit 1
  }
fi
grep -q '"title": "tl-llc tile kernels"' "$work/usr/share/tl-llc/tl-llc.schema.json" || exit 1
# The .pc file finds its prefix by itself.
flags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs tl) || exit 1
# shellcheck disable=SC2086
"$compiler" -std=c11 "$source/examples/c11_vector_add/main.c" $flags -lm -o "$work/example" || exit 1
"$work/example" || exit 1
mkdir "$work/consumer"
cat >"$work/consumer/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(tl REQUIRED)
add_executable(consumer $source/examples/c11_vector_add/main.c)
target_link_libraries(consumer PRIVATE tl::tl m)
add_executable(kernels kernels.c)
add_executable(three $source/examples/c_kernels/main.c)
target_link_libraries(three PRIVATE m)
tl_add_kernels(three SPECS $source/kernels/vector_add.yaml PTXAS none)
tl_add_kernels(three SPECS $source/kernels/matmul_dynamic.yaml TARGETS sm_80 sm_90a DEFINES dtype=bf16 PTXAS none)
tl_add_kernels(three SPECS $source/kernels/row_sum.yaml DEFINES M=16 N=1000 PTXAS none)
tl_add_kernels(kernels SPECS va=$source/kernels/vector_add.yaml TARGETS sm_80 PTXAS none)
enable_testing()
add_test(NAME emulated COMMAND three)
set_tests_properties(emulated PROPERTIES ENVIRONMENT TL_CUDA_DRIVER=\${TL_EMULATED_CUDA})
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
# The driver that it names says why it has no GPU.
TL_CUDA_DRIVER=$lib/libtl_emulated_cuda.so TL_EMULATED_CHECKS=speed "$work/consumer/build/three" >"$work/log" 2>&1
[ $? = 77 ] && grep -q "^libtl_emulated_cuda.so: checks: there is no check 'speed'" "$work/log" || {
  cat "$work/log"
  exit 1
}
