#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every check case of a spec assembles for a target, whatever its tiles and threads, and without a word of ptxas about
# products that it serialises or register budgets that it ignores, unless it is short of registers (C7511, C7512).
# Usage: cases.sh TL_LLC TARGET SPEC.yaml   (exit 77: there is no ptxas)
set -eu
llc=$1 target=$2 spec=$3
ptxas=${TL_PTXAS:-$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)}
[ -x "$ptxas" ] || exit 77
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-cases.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A line for each kernel as the spec binds it, and for each of its cases: the kernel and its bindings.
awk '/^kernel:/ { kernel = $2; cases = 0; print kernel; next }
     /^ +cases:/ { cases = 1; next }
     /^[a-z-]/ { cases = 0 }
     cases && /^ +- \{.*\}$/ { sub(/^ +- \{/, ""); sub(/\}$/, ""); gsub(/: /, "="); gsub(/, */, " "); print kernel, $0 }' "$spec" |
  sort -u >"$work/list"
failed=0 count=0
while read -r kernel bindings; do
  set --
  for binding in $bindings; do set -- "$@" -D "$binding"; done
  "$llc" "$spec" --kernel="$kernel" --target="$target" -Wnone -o "$work/k.ptx" "$@" 2>"$work/err" || continue # meant to fail
  count=$((count + 1))
  "$ptxas" -arch="$target" "$work/k.ptx" -o "$work/k.cubin" >"$work/log" 2>&1 && ! grep -qE '\(C75(08|10|14|15)\)' "$work/log" && continue
  echo "FAILED: $kernel {$bindings} for $target:"
  head -n 5 "$work/log"
  failed=1
done <"$work/list"
echo "$count assembled"
[ $count -gt 0 ] && [ $failed = 0 ]
