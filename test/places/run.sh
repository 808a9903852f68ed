#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A new elementary function takes four places, which docs/adding-an-op.md names. This applies logb.patch to a copy of the
# tree, counts what it touches, builds the copy, lets the documentation be made, and runs the function: measured over all
# bit patterns, folded as it runs, and in a kernel with a reference.
# Usage: run.sh COPY   (a directory for the copy, which is kept for the next time: then only what changed is built)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
copy=$1
patch=$root/test/places/logb.patch
touched=$(sed -n 's/^+++ b\///p' "$patch")
count=$(echo "$touched" | wc -l)
[ "$count" -le 4 ] || { echo "a new function touches $count files, more than 4"; exit 1; }
hunks=$(grep -c '^@@' "$patch")
[ "$hunks" -le 4 ] || { echo "a new function touches $hunks places, more than 4"; exit 1; }
for file in $touched; do
  grep -q "$file" "$root/docs/adding-an-op.md" || grep -q "$(dirname "$file")/" "$root/docs/adding-an-op.md" ||
    { echo "docs/adding-an-op.md does not name $file"; exit 1; }
done

mkdir -p "$copy"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
for file in $touched; do
  mkdir -p "$stage/$(dirname "$file")"
  cp "$root/$file" "$stage/$file"
done
patch -s -p1 -d "$stage" <"$patch" || { echo "the patch no longer applies"; exit 1; }
# Only what differs is written, so that the build system sees no more changes than there are.
[ -f "$copy/CMakeLists.txt" ] || (cd "$root" && tar cf - --exclude=./build --exclude=./.git .) | tar xf - -C "$copy"
(cd "$root" && diff -rq -x build -x .git -x log . "$copy") >"$stage/differences" || true
sed -n 's/^Files \.\/\(.*\) and .* differ$/\1/p; s/^Only in \.\/*\(.*\): \(.*\)$/.\/\1\/\2/p' "$stage/differences" | while read -r file; do
  [ -f "$stage/$file" ] || cp -r "$root/$file" "$copy/$file"
done
for file in $touched; do
  cmp -s "$stage/$file" "$copy/$file" || cp "$stage/$file" "$copy/$file"
done

cmake -S "$copy" -B "$copy/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 >"$copy/log" 2>&1 ||
  { tail -n 20 "$copy/log"; exit 1; }
cmake --build "$copy/build" --target tl-run fold_cases emulator_elementary_test frontend_functions_doc_test ir_reference_test schema_test fake_cuda \
  >"$copy/log" 2>&1 || { grep -E 'error|undefined' "$copy/log" | head -n 20; exit 1; }
cd "$copy"
bin=build/bin
env -u CI TL_UPDATE_DOCS=1 $bin/frontend_functions_doc_test >/dev/null
env -u CI TL_UPDATE_DOCS=1 $bin/ir_reference_test >/dev/null
grep -q '`logb(x)` | the exponent of x' docs/language.md
grep -q '`logb` | the exponent of x' docs/ir.md
$bin/schema_test test/schema $bin/tl-run build/test/fake_cuda/libfake_cuda.so
CK_RUN_CASE=functions $bin/emulator_elementary_test | tail -n 3
for dtype in f32 f16 i32; do
  $bin/fold_cases spec $dtype | grep -q 'logb(' || { echo "the test of folding does not know logb"; exit 1; }
  sh test/fold/run.sh $bin/fold_cases $bin/tl-run $dtype
done
cat >logb.yaml <<'EOF'
kernel: exponents
params: {dtype: f32}
args:
  X: in dtype[1024]
  Y: out dtype[1024]
body:
  - parallel: i in 1024
    do:
      - Y[i] = logb(X[i]) + logb(8)
check:
  inputs:
    X: normal(0, 100)
  reference:
    - Y[i] = logb(X[i]) + 3
  tolerance: {rtol: 1.0e-6, atol: 1.0e-6}
  cases:
    - {dtype: f32}
    - {dtype: f64}
EOF
$bin/tl-run logb.yaml --check --device=emu | tail -n 1
echo "logb: $count files, $hunks places"
