#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles every kernel of a spec for every target; with ptxas also assembles, where registers must not spill.
# Usage: assemble.sh TL_LLC SPEC.yaml [-D NAME=VALUE …]   (exit 77: compiled, but there is no ptxas)
# The bindings are used where the spec's own params need more shared memory than the target has (TL0640).
set -eu
llc=$1
spec=$2
shift 2
ptxas=${TL_PTXAS:-$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)}
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-targets.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
for kernel in $(sed -n 's/^kernel: *//p' "$spec"); do
  for target in $("$llc" --list-targets | cut -d' ' -f1); do
    compile() { "$llc" "$spec" --kernel="$kernel" --target="$target" -o "$work/k.ptx" "$@" 2>"$work/err"; }
    if ! compile && ! { [ $# -gt 0 ] && grep -q 'TL0640' "$work/err" && compile "$@"; }; then
      cat "$work/err"
      echo "FAILED: $kernel for $target does not compile"
      failed=1
      continue
    fi
    grep -q "^\.target $target\$" "$work/k.ptx" || { echo "FAILED: $kernel: the PTX is not for $target"; failed=1; }
    [ -x "$ptxas" ] || continue
    if ! "$ptxas" -v -arch="$target" "$work/k.ptx" -o "$work/k.cubin" >"$work/log" 2>&1; then
      # An older ptxas does not know the newest targets.
      grep -qiE 'not defined for option|unsupported \.version' "$work/log" && { echo "$kernel for $target: this ptxas is too old"; continue; }
      echo "FAILED: $kernel for $target does not assemble:"
      head -n 5 "$work/log"
      failed=1
    elif ! grep -q ' 0 bytes spill stores, 0 bytes spill loads' "$work/log"; then
      echo "FAILED: $kernel for $target spills:"
      grep spill "$work/log" || cat "$work/log"
      failed=1
    elif grep -qE '\(C75(08|10|11|12|14|15)\)' "$work/log"; then
      echo "FAILED: $kernel for $target: its products run one after the other:"
      grep C75 "$work/log"
      failed=1
    fi
  done
done
[ $failed = 0 ] || exit 1
[ -x "$ptxas" ] || exit 77
