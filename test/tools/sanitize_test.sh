# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The checks of the emulator from the command line: what they print, and their JSON.
. "$(dirname "$0")/lib.sh"
run=$bin/tl-run

# Every block writes the same elements.
sed 's/C\[bx \* block + i\] = .*/C[i] = A[i] + B[i]/' kernels/vector_add.yaml >"$work/blocks.yaml"
expect 1 "$run" --check --device=emu --case=3 --threads=1 --seed=0 --findings="$work/found.json" "$work/blocks.yaml"
says "^  FAILED: emulator: kernel 'vector_add': 1 finding$"
says '^blocks.yaml:17: race between blocks: thread 0 (warp 0, lane 0) of block (1, 0, 0) writes 8 bytes at C\[0\], byte 0 of 131072, store$'
says '^    17 |       - C\[i\] = A\[i\] + B\[i\]$'
says '^blocks.yaml:17: note: thread 0 (warp 0, lane 0) of block (0, 0, 0) wrote it before, store$'
says '^  missing: a release by the one block and an acquire by the other, between the two$'
says '^  16128 times$'
cat >"$work/expected.json" <<'END'
{"findings": [
  {"kind": "race between blocks", "kernel": "vector_add", "count": 16128, "access": {"op": "store", "call": 0, "action": "writes 8 bytes", "agent": "thread 0 (warp 0, lane 0)", "file": "blocks.yaml", "line": 17, "text": "      - C[i] = A[i] + B[i]", "block": [1, 0, 0], "thread": 0}, "earlier": {"op": "store", "call": 0, "action": "wrote", "agent": "thread 0 (warp 0, lane 0)", "file": "blocks.yaml", "line": 17, "text": "      - C[i] = A[i] + B[i]", "block": [0, 0, 0], "thread": 0}, "place": "C[0], byte 0 of 131072", "missing": "a release by the one block and an acquire by the other, between the two"}
]}
END
cmp -s "$work/found.json" "$work/expected.json" || fail "the JSON differs: $(diff "$work/found.json" "$work/expected.json")"
# The other checks do not see it; the last block's values are right.
expect 0 "$run" --check --device=emu --case=1 --sanitize=race,bounds,init "$work/blocks.yaml"
expect 0 "$run" --device=emu -D N=4096 --sanitize=none --in A=1 --in B=2 "$work/blocks.yaml"
expect 1 "$run" --device=emu -D N=4096 --sanitize=blocks --in A=1 --in B=2 "$work/blocks.yaml"
# Without --check nothing is checked unless asked for.
expect 0 "$run" --device=emu -D N=4096 --in A=1 --in B=2 "$work/blocks.yaml"

# An output is read before it is written.
cat >"$work/reads.yaml" <<'END'
kernel: reads
args:
  A: in f32[8, 8]
  C: out f32[8, 8]
threads: 32
body:
  - parallel: i, j in 8, 8
    do:
      - C[i, j] = C[i, j] + A[i, j]
check:
  reference:
    - C[i, j] = A[i, j]
END
expect 1 "$run" --check --device=emu --threads=1 --seed=0 --findings=- "$work/reads.yaml"
says '^reads.yaml:9: uninitialised read: thread 0 (warp 0, lane 0) of block (0, 0, 0) reads [48]* bytes at C\[0, 0\], byte 0 of 256, load$'
says '^{"findings": \[$'

# No findings, an empty list.
expect 0 "$run" --check --device=emu --case=1 --findings="$work/none.json" kernels/matmul.yaml
[ "$(cat "$work/none.json")" = '{"findings": []}' ] || fail "the list of no findings is not empty"
expect 2 "$run" --check --device=emu --sanitize=races kernels/matmul.yaml
says "there is no check 'races'"
expect 1 "$run" --check --device=emu --case=1 --findings="$work/no/such/directory" kernels/vector_add.yaml
finish
