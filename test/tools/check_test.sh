# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What a check section can say: scalars, strides, inout, derived inputs, requires, tolerances, a .npy input.
. "$(dirname "$0")/lib.sh"
run=$bin/tl-run
cat >"$work/features.yaml" <<'END'
kernel: features
params:
  M: 24
  N: dynamic
  pitch: 40
  block: 32
  dtype: f16
args:
  alpha: in f32
  count: in i32
  X: in dtype[M, N] strides(pitch, 1)
  idx: in i32[M]
  bias: in f32[N]
  Y: inout f32[M, N]
  Z: out i32[M, N]
requires:
  - N <= pitch
grid:
  bx: ceildiv(N, block)
  by: M
threads: 32
body:
  - parallel: j in block
    do:
      - let:
          c: bx * block + j
      - Y[by, c] = alpha * cast(X[by, c], f32) + bias[c] + Y[by, c]
      - Z[by, c] = idx[by] + count
check:
  inputs:
    alpha: const(0.5)
    count: const(3)
    idx: permutation
    Y: uniform(1, 2)
  derive:
    - bias[n] = sum[m](X[m, n]) / M
  reference:
    - Y[m, n] = alpha * X[m, n] + bias[n] + Y[m, n]
    - Z[m, n] = idx[m] + count
  tolerance:
    rtol: 1e-6
    atol: 1e-6
  cases:
    - {N: 40}
    - {N: 17}
    - {N: 33, pitch: 64, dtype: f32}
END
for landing in late early both; do
  expect 0 "$run" --check --device=emu --landing=$landing "$work/features.yaml"
  says '3 of 3 cases passed'
done

# Another seed makes other inputs; the same seed the same.
expect 0 "$run" --check --device=emu --case=1 --seed=7 "$work/features.yaml"
sed 's/([0-9.]* s)//' "$work/out" >"$work/first"
expect 0 "$run" --check --device=emu --case=1 --seed=7 "$work/features.yaml"
sed 's/([0-9.]* s)//' "$work/out" | cmp -s - "$work/first" || fail "one seed, two results"

# `requires` over a dynamic name is the launcher's.
sed 's/{N: 17}/{N: 50}/' "$work/features.yaml" >"$work/requires.yaml"
expect 1 "$run" --check --device=emu --case=2 "$work/requires.yaml"
says "FAILED: 'features' requires N <= pitch, which does not hold with N = 50"

# A tolerance of its own for one case; a generator that does not fit; a missing one.
sed 's/X\[by, c\], f32) + bias/X[by, c], f32) + 1.01 * bias/' "$work/features.yaml" >"$work/loose.yaml"
expect 1 "$run" --check --device=emu --case=1 "$work/loose.yaml"
cat >"$work/case.awk" <<'END'
{ if ($0 ~ /\{N: 40\}/) print "    - N: 40\n      tolerance: {rtol: 0, atol: 0.5}"; else print }
END
awk -f "$work/case.awk" "$work/loose.yaml" >"$work/loose2.yaml"
expect 0 "$run" --check --device=emu --case=1 "$work/loose2.yaml"
sed 's/idx: permutation/idx: normal(0, 1)/' "$work/features.yaml" >"$work/bad.yaml"
expect 1 "$run" --check --device=emu "$work/bad.yaml"
says 'TL0754'
sed '/idx: permutation/d' "$work/features.yaml" >"$work/bad.yaml"
expect 1 "$run" --check --device=emu "$work/bad.yaml"
says 'TL0755'

# Inputs from files, named relative to the spec.
expect 0 "$run" --device=emu -D N=17 --out "Z=$work/z.npy" --out "Y=$work/y.npy" "$work/features.yaml"
sed 's/Y: uniform(1, 2)/Y: y.npy/' "$work/features.yaml" >"$work/npy.yaml"
expect 0 "$run" --check --device=emu --case=2 "$work/npy.yaml"
expect 1 "$run" --check --device=emu --case=1 "$work/npy.yaml"
says 'expected f32\[24, 40\], the file holds f32\[24, 17\]'

# Integer results: exact, argmax in the reference, recurrences.
cat >"$work/ints.yaml" <<'END'
kernel: ints
params:
  N: 100
args:
  A: in i32[N]
  B: out i64[N]
  C: out bool[N]
grid:
  b: N
threads: 32
body:
  - B[b] = cast(A[b], i64) * 3
  - C[b] = A[b] > 0
check:
  inputs: {A: arange}
  reference:
    - T[i] = T[i - 1] + 3 * (i > 0) + 0 * A[i]
    - B[i] = T[i]
    - C[i] = A[i] != 0
  cases:
    - {N: 100}
    - {N: 1}
END
expect 0 "$run" --check --device=emu "$work/ints.yaml"
says 'C: bool\[100\], worst error 0'

# Mistakes in `tune` are found by the compiler, as those in `check` and `bench` are.
tuned() {
  { sed '/^check:/,$d' "$work/ints.yaml"; printf 'tune:\n%s\n' "$1"; } >"$work/tuned.yaml"
  expect "$2" "$bin/tl-llc" "$work/tuned.yaml" -o /dev/null
}
tuned '  N: [16, 32]
  threads: [auto, 64]
  where: N > 16 or N == 3
  budget: N // 50' 0
tuned '  N: [16, M]' 1
says 'tuned.yaml:[0-9]*:11: error: unknown param or let `M`'
tuned '  where: N' 0
tuned '  where: f16' 1
says '`where` takes conditions \[TL0706\]'
# What a launch is given has a name there too; a condition on what is auto holds.
tuned '  threads: [auto, 64]
  where: threads >= 64 and fast_math == false and persistent' 0
tuned '  where: threads_of_a_block > 3' 1
says 'unknown param or let `threads_of_a_block`'
tuned '  budget: N - 100' 1
says '`budget` is a number of configurations, at least 1 \[TL0706\]'
tuned '  budget: 0.5' 1
says '`budget` is a number'

# The hint of an index without a range makes sense whatever the index is called.
sed 's/- T\[i\] = .*/- U[n] = n * 2/; s/B\[i\] = T\[i\]$/B[n] = U[n]/' "$work/ints.yaml" >"$work/range.yaml"
expect 1 "$bin/tl-llc" "$work/range.yaml" -o /dev/null
says 'the range of index `n` is unknown \[TL0750\]'
says 'say how far it goes where it stands first, as in `n in 0:16`'

# A case that does not compile, or takes too much, is no obstacle for the others, and the summary is always printed.
cat >"$work/some.yaml" <<'END'
kernel: some
params: {n: 128, m: 4}
args: {X: "inout f32[128, n]", Z: "in u8[m]"}
threads: 32
fragment: {x: "f32[128, n]"}
body:
  - copy: X -> x
  - x = x * 2
  - copy: x -> X
check:
  inputs: {Z: "ints(0, 255)"}
  reference:
    - X[i, j] = X[i, j] * 2
  cases:
    - {n: 128}
    - {n: 8}
    - {n: 8, m: 2000000000}
    - {n: 128}
    - {n: 4}
END
expect 1 "$run" --check --device=emu --max-memory=1G "$work/some.yaml"
says 'case 5 of 5 {n: 4}'
says '^some: 2 of 5 cases passed on the emulator'
says 'FAILED: it has errors'
says "FAILED: the run takes .* for 'Z'"
[ "$(grep -c 'TL0641' "$work/err")" = 1 ] || fail 'the error of two cases is not said once'
# Several specs in one process: each has its own diagnostics, one that fails does not keep the others from running.
sed 's/T\[i\] = T\[i - 1\] + 3/T[i] = T[i - 1] + 4/' "$work/ints.yaml" >"$work/wrong.yaml"
sed 's/B\[i\] = T\[i\]$/B[i] = U[i]/' "$work/ints.yaml" >"$work/unknown.yaml"
expect 1 "$run" --check --device=emu "$work/ints.yaml" "$work/wrong.yaml" "$work/unknown.yaml" "$work/ints.yaml"
[ "$(grep -c '2 of 2 cases passed' "$work/out")" = 2 ] || fail 'the right ones did not pass'
says '1 of 2 cases passed\|0 of 2 cases passed'
says 'unknown.yaml:.*error: '
expect 0 "$run" --check --device=emu "$work/ints.yaml" "$work/ints.yaml"
expect 2 "$run" --device=emu "$work/ints.yaml" "$work/ints.yaml"

# A warning that depends on the params names the case.
cat >"$work/past.yaml" <<'END'
kernel: past
params: {T: 2}
args:
  X: in f32[64]
  Y: out f32[32]
fragment:
  x, y: f32[32]
body:
  - clear: y
  - for: k in T
    do:
      - copy: X[k * 32] -> x
      - y = y + x
  - copy: y -> Y
check:
  unchecked: Y
  cases:
    - {T: 2}
    - {T: 4}
END
expect 0 "$bin/tl-run" --check --device=emu "$work/past.yaml"
says 'past.yaml:12:.*warning: .* from k = 2 on .*\[TL0503\]$'
says 'past.yaml:19:.*note: with the params of this case$'
finish
