# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How wide the accesses of a kernel's PTX are: `counts FILE KERNEL N INSTRUCTION …` counts instructions without predicate.
. "$(dirname "$0")/lib.sh"
llc=$bin/tl-llc

counts() {
  spec=$1 kernel=$2
  shift 2
  expect 0 "$llc" "$spec" --kernel="$kernel" --target=sm_80 -o "$work/k.ptx"
  while [ $# -gt 1 ]; do
    found=$(grep -c "^	$2 " "$work/k.ptx")
    [ "$found" = "$1" ] || fail "$kernel: $found of $2, expected $1"
    shift 2
  done
}

# What lies interleaved comes in vectors where it is known that rows begin at multiples of 16 bytes.
interleaved=test/semantics/interleaved.yaml
counts $interleaved deinterleave 2 ld.global.nc.v4.b32 0 ld.global.nc.b16 2 st.global.v4.b32
counts $interleaved off_by_one 1 ld.global.nc.v4.b32 2 ld.global.nc.b16
counts $interleaved rotate_pairs 1 st.global.b32
counts $interleaved thirds 2 ld.global.nc.v2.b32
# An optional tensor is asked for before its loads: the bias of an epilogue is read once for each column, not for each element.
optional=test/semantics/optional.yaml
counts $optional epilogue_maybe 40 ld.global.nc.v2.b16
counts $optional pairs_maybe 12 ld.global.nc.v2.b32
# Loops over tiles of a launch's length have four loads of full tiles in flight, and one in the loop for what is left.
counts test/semantics/tile_loops.yaml strided_blocks 12 ld.global.nc.v4.b32
# A sum along a row inside of a parallel reads it in vectors.
rows=test/semantics/rows_of_elements.yaml
counts $rows group_mean 4 ld.global.nc.v4.b32 0 ld.global.nc.b16
counts $rows exchanged 8 ld.global.nc.v4.b32
finish
