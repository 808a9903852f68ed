#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# PTX of Triton (test/ptx/triton): results as an H200 gave them, and no finding. Usage: triton.sh TL_RUN FOLDER
run=$1
folder=$2
failed=0
count=0
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT
for ptx in "$folder"/*.ptx; do
  count=$((count + 1))
  for landing in late early; do
    "$run" "$ptx" --device=emu --landing=$landing >"$out" 2>&1 && grep -q 'worst error' "$out" && continue
    echo "$ptx, $landing:"
    cat "$out"
    failed=1
  done
done
[ "$count" -ge 6 ] || failed=1
exit $failed
