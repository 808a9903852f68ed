# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The files of --emit=c: their names, refusals, the driver that is missing, cubins, and the same bytes again.
set -u
bin=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-emit-c.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
  echo "FAILED: $*"
  failed=1
}
refuses() { # text, arguments
  says=$1
  shift
  "$bin/tl-llc" "$@" >"$work/out" 2>&1 && fail "tl-llc $* is not refused"
  grep -qF -- "$says" "$work/out" || fail "tl-llc $*: $(cat "$work/out")"
}
spec=$source/kernels/vector_add.yaml
refuses "--emit=c needs -o NAME.c" "$spec" --emit=c
refuses "--emit=c needs -o NAME.c" "$spec" --emit=c -o "$work/x.ptx"
refuses "'9x.c' is no name" "$spec" --emit=c -o "$work/9x.c"
refuses "'a-b.c' is no name" "$spec" --emit=c -o "$work/a-b.c"
refuses "the target sm_80 is given twice" "$spec" --emit=c --target=sm_80,sm_80 -o "$work/x.c" --ptxas=none
refuses "unknown target 'sm_8'" "$spec" --emit=c --target=sm_80,sm_8 -o "$work/x.c" --ptxas=none
refuses "--depfile needs -o" "$spec" --depfile="$work/d"
cat >"$work/twice.yaml" <<END
kernel: twice
params: {y: 4}
args:
  stream: in f32[y]
  stream_: in f32[y]
  Z: out f32[y]
body:
  - parallel: i in y
    do:
      - Z[i] = stream[i] + stream_[i]
END
refuses "two parameters of 'twice' are stream_ in C" "$work/twice.yaml" --emit=c -o "$work/x.c" --ptxas=none
ls "$work"/x.* >/dev/null 2>&1 && fail "a refused run leaves files"

"$bin/tl-llc" "$spec" --emit=c --target=sm_80,sm_90a --ptxas=none -o "$work/va.c" --depfile="$work/va.d" || fail "it is written"
cp "$work/va.c" "$work/first.c"
"$bin/tl-llc" "$spec" --emit=c --target=sm_80,sm_90a --ptxas=none -o "$work/va.c" || fail "it is written again"
cmp "$work/va.c" "$work/first.c" || fail "other bytes"
[ "$(tr -d '\\\n' <"$work/va.d")" = "$work/va.c:   $spec" ] || fail "the rule: $(cat "$work/va.d")"
cat >"$work/main.c" <<END
#include <stdio.h>
#include "va.h"
int main(void) { int code = va_launch(0, 0, 0, 0, 0); printf("%d %s\n", code, va_error()); return 0; }
END
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -c "$work/va.c" -o "$work/va.o" || fail "C"
cc "$work/main.c" "$work/va.o" -o "$work/main" -ldl -lpthread || fail "a program"
TL_CUDA_DRIVER=$work/none "$work/main" | grep -q "^7 the NVIDIA driver library cannot be loaded" || fail "no driver"
odd=$work/$(printf 'odd\n#error \001\\').yaml # a name that is no part of a line
cp "$spec" "$odd"
"$bin/tl-llc" "$odd" --emit=c --ptxas=none -o "$work/odd.c" || fail "a spec of an odd name"
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$work/odd.c" || fail "C of a spec of an odd name"
"$bin/tl-llc" "$source/test/emit_c/names.yaml" --emit=c --ptxas=none -o "$work/names.c" || fail "a doc of odd lines"
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$work/names.c" || fail "C of a doc of odd lines"
if command -v c++ >/dev/null; then
  "$bin/tl-llc" "$source/test/emit_c/taken.yaml" --emit=c --ptxas=none -o "$work/taken.c" || fail "names that C has"
  printf '#include <climits>\n#include <cstdio>\n#include <complex>\n#include "taken.h"\n' >"$work/taken.cpp"
  c++ -Wall -Wextra -Werror -fsyntax-only "$work/taken.cpp" || fail "C++ of names that C has"
  sed 's/"va.h"/"va.h"\n#include "va.h"/' "$work/main.c" >"$work/main.cpp"
  c++ -Wall -Wextra -Wpedantic -Werror "$work/main.cpp" "$work/va.o" -o "$work/main" -ldl -lpthread || fail "C++"
fi
if "$bin/tl-llc" "$spec" --emit=cubin -o "$work/x.cubin" >/dev/null 2>&1; then
  if ! { "$bin/tl-llc" "$spec" --emit=c -o "$work/va.c" && cc -c "$work/va.c" -o "$work/cubin.o" && grep -q tlk_cubin_0 "$work/va.c"; }; then
    fail "a cubin"
  fi
fi
exit $failed
