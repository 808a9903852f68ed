#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Random specs, and the kernels of this tree, under the settings that no other test gives them: other targets, persistent
# and with fast_math, each spec with one of them in its turn. Only bugs of ours fail: an instruction that no row of
# llvm_backend/output/constructs.def allows is one.
# Usage: compile.sh BIN-DIR SOURCE-DIR FIRST-SEED COUNT
bin=$1 source=$2 first=$3 count=$4
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"$bin/tl-random-spec" --seed="$first" --count="$count" --directory="$work" || exit 1
turn=0 compiled=0 failed=0
for spec in "$work"/*.yaml "$source"/kernels/*.yaml "$source"/test/pipeline/*.yaml; do
  turn=$((turn + 1))
  case $((turn % 3)) in
    0) target=sm_80 ;;
    1) target=sm_90 ;;
    *) target=sm_90a ;;
  esac
  set -- "-Dpersistent=$([ $((turn / 3 % 2)) = 0 ] && echo true || echo false)" "-Dfast_math=$([ $((turn / 2 % 2)) = 0 ] && echo true || echo false)"
  timeout 60 "$bin/tl-llc" "$spec" --target=$target "$@" -Wnone -o /dev/null >"$work/out" 2>&1
  status=$?
  [ $status = 0 ] && compiled=$((compiled + 1))
  # 0, or 1: mistakes of the spec, such as an instruction that the target lacks.
  [ $status -le 1 ] && ! grep -q 'internal error' "$work/out" && continue
  failed=$((failed + 1))
  echo "FAIL tl-llc $spec --target=$target $*: exit status $status"
  head -n 5 "$work/out"
done
echo "$compiled of $turn specs compiled, $failed failed"
[ $failed = 0 ] && [ $compiled -gt $((turn / 2)) ]
