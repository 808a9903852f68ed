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
says '^  missing: an order: use `atomic`, or a release by the one block and an acquire by the other$'
says '^  16128 times$'
cat >"$work/expected.json" <<'END'
{"findings": [
  {"kind": "race between blocks", "kernel": "vector_add", "count": 16128, "access": {"op": "store", "call": 0, "action": "writes 8 bytes", "agent": "thread 0 (warp 0, lane 0)", "file": "blocks.yaml", "line": 17, "text": "      - C[i] = A[i] + B[i]", "block": [1, 0, 0], "thread": 0}, "earlier": {"op": "store", "call": 0, "action": "wrote", "agent": "thread 0 (warp 0, lane 0)", "file": "blocks.yaml", "line": 17, "text": "      - C[i] = A[i] + B[i]", "block": [0, 0, 0], "thread": 0}, "place": "C[0], byte 0 of 131072", "missing": "an order: use `atomic`, or a release by the one block and an acquire by the other"}
]}
END
cmp -s "$work/found.json" "$work/expected.json" || fail "the JSON differs: $(diff "$work/found.json" "$work/expected.json")"
# The other checks do not see it; the last block's values are right.
expect 0 "$run" --check --device=emu --case=1 --sanitize=race,bounds,init "$work/blocks.yaml"
expect 0 "$run" --device=emu -D N=4096 --sanitize=none --in A=1 --in B=2 "$work/blocks.yaml"
expect 1 "$run" --device=emu -D N=4096 --sanitize=blocks --in A=1 --in B=2 "$work/blocks.yaml"
# Without --check nothing is checked unless asked for.
expect 0 "$run" --device=emu -D N=4096 --in A=1 --in B=2 "$work/blocks.yaml"

# In the expansion of a macro: its line, and the uses that led to it; two uses are two places.
mkdir "$work/lib"
cat >"$work/lib/pieces.yaml" <<'END'
macros:
  store_block(x):
    - parallel: i in 4
      do:
        - x[i] = b
  hold(x):
    - assert: x < 0
END
cat >"$work/uses.yaml" <<'END'
include: lib/pieces.yaml
---
kernel: uses
args:
  X: inout f32[4]
macros:
  twice(y):
    - use: store_block(y)
    - use: store_block(y)
grid:
  b: 2
threads: 32
body:
  - use: twice(X)
check:
  unchecked: X
END
expect 1 "$run" --check --device=emu --threads=1 --seed=0 --findings="$work/found.json" "$work/uses.yaml"
says '^lib/pieces.yaml:5: race between blocks: '
says '^     5 |         - x\[i\] = b$'
says '^       = expanded from uses.yaml:8, uses.yaml:14$'
says '^       = expanded from uses.yaml:9, uses.yaml:14$'
grep -q '"expanded_from": "uses.yaml:8, uses.yaml:14"' "$work/found.json" || fail "the JSON does not say where from"
sed 's/    - use: store_block(y)/    - use: hold(y[0])/' "$work/uses.yaml" >"$work/asserts.yaml"
expect 1 "$run" --check --device=emu --threads=1 --seed=0 "$work/asserts.yaml"
says ': lib/pieces.yaml:7: assertion `.*` failed$'

# Elements of one parallel: one finding for its line, whatever it does to however many elements.
for what in 's[i] = s[(i + 1) % 128]' 's[i \/\/ 2] += f[i]'; do
  sed "s/WHAT/$what/" >"$work/elements.yaml" <<'END'
kernel: elements
args:
  X: in f32[128]
  Y: out f32[128]
threads: 128
shared:
  s: f32[128]
fragment:
  f: f32[128]
body:
  - copy: X -> f
  - copy: X -> s
  - parallel: i in 128
    do:
      - if: X[i] < 1000
        then:
          - WHAT
  - copy: s -> Y
check:
  unchecked: Y
END
  expect 1 "$run" --check --device=emu --landing=late --threads=1 --seed=0 "$work/elements.yaml"
  says "^  FAILED: emulator: kernel 'elements': 1 finding$"
  says '^elements.yaml:17: race: .* s\['
  says '^  missing: an order: elements of one parallel have none; use `atomic`, or split the parallel in two$'
done
says '^  128 times$' # each read and each write of a second element
sed 's/s\[i \/\/ 2\] += f\[i\]/s[i] = s[(i + 1) % 128]/' "$work/elements.yaml" >"$work/neighbours.yaml"
expect 1 "$run" --check --device=emu --landing=late --threads=1 --seed=0 "$work/neighbours.yaml"
says '^  also at: s\['

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

# Registers and local memory that nobody wrote: a part of a fragment, the sums of a product, an element of a local array that
# LLVM keeps in a register and one in memory, a local scalar. Reading only what was written is right.
cat >"$work/registers.yaml" <<'END'
kernel: part
args:
  A: in f32[64]
  C: out f32[64]
threads: 32
fragment:
  x: f32[64]
body:
  - parallel: i in 64
    do:
      - if: i < 40
        then:
          - x[i] = A[i]
  - copy: x -> C[0]
check:
  reference:
    - C[i] = A[i]
---
kernel: sums
args:
  A: in f16[64, 64]
  B: in f16[64, 64]
  C: out f32[64, 64]
threads: 128
shared:
  A_s, B_s: f16[64, 64]
fragment:
  acc: f32[64, 64]
body:
  - copy: A[0, 0] -> A_s
  - copy: B[0, 0] -> B_s
  - gemm: acc += A_s @ B_s
  - copy: acc -> C[0, 0]
check:
  reference:
    - C[m, n] = sum[k](A[m, k] * B[k, n])
  tolerance: {rtol: 1.0e-2, atol: 1.0e-2}
---
kernel: array
args:
  A: in f32[64]
  C: out f32[64]
threads: 32
local:
  w: f32[4]
body:
  - parallel: i in 64
    do:
      - w[0] = A[i]
      - if: i < 40
        then:
          - w[1] = A[i]
      - C[i] = w[0] + w[1]
check:
  reference:
    - C[i] = A[i]
---
kernel: chosen
args:
  B: in i32[64]
  C: out f32[64]
threads: 32
local:
  w: f32[4]
body:
  - parallel: i in 64
    do:
      - for: k in 3
        do:
          - w[k] = 1.0
      - C[i] = w[B[i] % 4]
check:
  reference:
    - C[i] = 1.0
  inputs:
    B: ints(3, 3)
---
kernel: scalar
args:
  A: in i32[64]
  C: out i32[64]
threads: 32
local:
  n: i32
body:
  - if: A[0] < 0
    then:
      - n = 3
  - for: k in 2
    do:
      - if: k > 0
        then:
          - n += 1
  - parallel: i in 64
    do:
      - C[i] = n
check:
  reference:
    - C[i] = 1
  inputs:
    A: ints(0, 7)
---
kernel: written
args:
  A: in f32[64]
  C: out f32[64]
threads: 32
fragment:
  x: f32[64]
body:
  - parallel: i in 64
    do:
      - if: i < 40
        then:
          - x[i] = A[i]
  - parallel: i in 64
    do:
      - if: i < 40
        then:
          - C[i] = x[i]
        else:
          - C[i] = A[i]
check:
  reference:
    - C[i] = A[i]
END
# finds KERNEL LINE WHAT PLACE: one finding, of that text; without the check the run is as good as it looks.
finds() {
  expect 1 "$run" --check --device=emu --threads=1 --seed=0 --kernel="$1" -Wnone "$work/registers.yaml"
  says "^  FAILED: emulator: kernel '$1': 1 finding$"
  says "^registers.yaml:$2: uninitialised read: thread [0-9]* (warp [0-9], lane [0-9]*) of block (0, 0, 0) reads what nobody wrote, and $3, at $4, "
  says '^  missing: a write of the element before the read$'
}
finds part 14 'stores it' 'fragment x\[4[0-9]\]'
finds sums 32 'hands it to the operation' 'fragment acc\[[0-9]*, [0-9]*\]'
finds array 53 'stores it' 'local array w\[1\]'
finds chosen 71 'stores it' 'local array w\[3\]'
finds scalar 96 'stores it' 'local n'
expect 0 "$run" --check --device=emu --kernel=scalar --sanitize=race,bounds -Wnone "$work/registers.yaml"
expect 0 "$run" --check --device=emu --kernel=written "$work/registers.yaml"

# Shared memory that nobody wrote is told where its value matters: a side of a ternary that is not chosen may be read, since
# the load is made for both. The finding is the read.
cat >"$work/unwritten.yaml" <<'END'
kernel: chosen
params:
  more: 1
args:
  X: in f32[4, 16]
  count: in i32[1]
  Z: out f32[4, 16]
threads: 32
shared:
  s: f32[4, 16]
local:
  m: i32
body:
  - m = count[0]
  - for: r in m
    do:
      - copy: X[r, :] -> s[r, :]
  - parallel: i, j in 4, 16
    do:
      - Z[i, j] = s[i, j] if i < m + more else -1
check:
  inputs:
    count: const(2)
  reference:
    - Z[i, j] = X[i, j] if i < 2 else -1
---
kernel: branched
params:
  more: 1
args:
  X: in f32[64]
  Z: out f32[64]
threads: 32
shared:
  s: f32[64]
body:
  - parallel: i in 64
    where: i < 40
    do:
      - s[i] = X[i]
  - parallel: i in 64
    do:
      - Z[i] = 1 if i > 24 - more and s[63 - i] > 0 else 0
check:
  reference:
    - Z[i] = 1 if i > 23 and X[63 - i] > 0 else 0
END
expect 1 "$run" --check --device=emu --threads=1 --seed=0 --kernel=chosen -Wnone "$work/unwritten.yaml"
says '^unwritten.yaml:20: uninitialised read: thread [0-9]* (warp 0, lane [0-9]*) of block (0, 0, 0) reads [0-9]* bytes at s\[2, [0-9]*\].*, load$'
says '^    20 |       - Z\[i, j\] = s\[i, j\] if i < m + more else -1$'
expect 1 "$run" --check --device=emu --threads=1 --seed=0 --kernel=branched -D more=2 -Wnone "$work/unwritten.yaml"
says '^unwritten.yaml:43: uninitialised read: thread [0-9]* (warp 0, lane [0-9]*) of block (0, 0, 0) reads [0-9]* bytes at s\[40\].*, load$'
expect 0 "$run" --check --device=emu --kernel=chosen -D more=0 -Wnone "$work/unwritten.yaml"
expect 0 "$run" --check --device=emu --kernel=branched -Wnone "$work/unwritten.yaml"

# No findings, an empty list.
expect 0 "$run" --check --device=emu --case=1 --findings="$work/none.json" kernels/matmul.yaml
[ "$(cat "$work/none.json")" = '{"findings": []}' ] || fail "the list of no findings is not empty"
expect 2 "$run" --check --device=emu --sanitize=races kernels/matmul.yaml
says "there is no check 'races'"
expect 1 "$run" --check --device=emu --case=1 --findings="$work/no/such/directory" kernels/vector_add.yaml
# --findings=- : the JSON is alone on standard output, whatever is printed, by the kernel too.
expect 1 "$run" --check --device=emu --case=3 --threads=1 --seed=0 --findings=- "$work/blocks.yaml"
cmp -s "$work/out" "$work/expected.json" || fail "standard output holds more than the findings: $(head -3 "$work/out")"
grep -q 'cases passed on' "$work/err" || fail 'the report is not on standard error'
cat >"$work/prints.yaml" <<'END'
kernel: prints
args: {X: "inout f32[32]"}
threads: 32
body:
  - print: X[0]
  - X[0] = 1
END
expect 0 "$run" --device=emu --findings=- "$work/prints.yaml"
[ "$(cat "$work/out")" = '{"findings": []}' ] || fail "a kernel prints among the findings: $(cat "$work/out")"
grep -q '^X\[0\]' "$work/err" || fail 'what the kernel prints is lost'
finish
