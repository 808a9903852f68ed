#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles random specs whose index arithmetic is deeper than the index analysis explores, each several times and in
# processes of their own, so that addresses differ: the bytes at every stage are the same.
# Usage: equal_builds.sh TL_RANDOM_SPEC SPECS RUNS TL_LLC...
set -eu
generator=$1
specs=$2
runs=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$generator" --family=deep --seed=1 --count="$specs" --directory="$work"
compared=0
for spec in "$work"/*.yaml; do
  for emit in tile scheduled llvm llvm-opt ptx manifest; do
    "$1" "$spec" --target=sm_80 --emit="$emit" -o "$work/expected"
    run=0
    while [ "$run" -lt "$runs" ]; do
      for compiler in "$@"; do
        "$compiler" "$spec" --target=sm_80 --emit="$emit" -o "$work/got"
        cmp "$work/expected" "$work/got" || {
          echo "--emit=$emit of $(basename "$spec") differs in $compiler"
          exit 1
        }
        compared=$((compared + 1))
      done
      run=$((run + 1))
    done
  done
done
echo "$compared compilations of $specs specs, identical bytes"
