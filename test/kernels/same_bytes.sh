#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The same spec gives the same bytes in every process: addresses differ (ASLR), the directory, the time and the environment too.
# Usage: same_bytes.sh TL-LLC SPEC
set -eu
tool=$(realpath "$1")
spec=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$tool" "$spec" --emit=ptx -o "$work/first.ptx"
# Under its own name, which assertions say.
name=$(basename "$spec")
cp "$spec" "$work/$name"
for i in 1 2 3 4 5; do
  (cd "$work" && env -i PATH="$PATH" RUN="$i" HOME="/nowhere/$i" TZ="UTC$i" "$tool" "$name" --emit=ptx -o "again.ptx")
  cmp "$work/first.ptx" "$work/again.ptx"
done
