#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A kernel that really writes outside of its tensor on a GPU is found by the canaries around it.
# Usage: canaries.sh BIN, the directory of the tools. Exit 77 without a GPU.
set -u
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/writes.yaml" <<'SPEC'
kernel: writes
params:
  N: 160
args:
  x: out f32[N]
grid:
  b: 1
threads: 32
body:
  - parallel: i in N
    do:
      - x[i] = 1
SPEC
"$bin/tl-llc" "$work/writes.yaml" --target=sm_80 --emit=ptx -o "$work/writes.ptx" || exit 1
# The launcher believes what the manifest says about a tensor; the kernel writes all 160 elements.
sed 's/"dims": \[160\]/"dims": [150]/' "$work/writes.ptx" >"$work/behind.ptx"
# The last quarter of the elements goes to the place before the first.
sed 's/\[\(%rd[0-9]*\)+512\]/[\1+-128]/' "$work/writes.ptx" >"$work/before.ptx"
failed=0
expect() { # FILE MESSAGE, empty: no complaint
  output=$("$bin/tl-run" "$work/$1.ptx" --device=cuda 2>&1)
  code=$?
  [ $code = 77 ] && exit 77
  if [ -z "$2" ] && [ $code = 0 ]; then return; fi
  case $output in
    *"$2"*) [ -n "$2" ] && [ $code != 0 ] && return ;;
  esac
  echo "$1.ptx: expected '$2', got exit $code: $output"
  failed=1
}
expect writes ""
expect behind "wrote behind 'x': byte 600"
expect before "wrote before 'x': byte -1"
[ $failed = 0 ] && echo "canaries: 3 passed"
exit $failed
