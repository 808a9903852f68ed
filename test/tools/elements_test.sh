# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Two elements of one parallel that meet in one place are found also where one thread has both.
. "$(dirname "$0")/lib.sh"
run=$bin/tl-run

# spec NAME THREADS ELEMENTS TYPE DIM SETUP STATEMENTS…: a parallel over i with an inout tensor Y and a shared tile s.
spec() {
  cat >"$work/$1.yaml" <<END
kernel: $1
args:
  P: in i32[$3]
  X: in $4[$3]
  Y: inout $4[$5]
threads: $2
shared: {s: "$4[$5]"}
body:
$6
  - parallel: i in $3
    do:
$7
  - copy: s -> Y
check:
  inputs: {P: arange}
  unchecked: Y
END
}
meets() {
  spec "$@"
  expect 1 "$run" --check --device=emu --threads=1 "$work/$1.yaml"
  says 'for another element of the parallel at '
  says '^  missing: an order: elements of one parallel have none; use `atomic`, or split the parallel in two$'
}
apart() {
  spec "$@"
  expect 0 "$run" --check --device=emu "$work/$1.yaml"
}
fill='  - copy: Y -> s'

# One thread has two neighbours, as a vector, in registers of an unrolled body, and in a loop over many registers.
meets pair 128 256 f32 128 "$fill" '      - s[i // 2] = X[i]'
meets pair_global 128 256 f32 128 "$fill" '      - Y[i // 2] = X[i]'
meets quads 32 1024 f16 256 "$fill" '      - s[i // 4] = X[i]'
meets looped 32 16384 f32 8192 "$fill" '      - s[i // 2] = sqrt(abs(X[i])) + sin(X[i])'
# What one element reads and another one writes, in both orders of the two.
meets read_first 32 64 f32 64 "$fill" '      - s[i] = s[P[i] // 2 * 2] + X[i]'
meets write_first 32 64 f32 64 "$fill" '
      - s[P[i]] = X[i]
      - if: P[i] % 2 == 1
        do:
          - Y[i] = s[P[i] - 1] + 1'
# Places that the data choose; under a condition; in a loop of the body.
meets gather 32 64 f32 64 "$fill" '      - s[P[i] // 2] = X[i]'
meets condition 32 64 f32 64 "$fill" '
      - if: P[i] // 2 == 15
        do:
          - s[7 + P[i] // 64] = X[i]'
meets loop 32 64 f32 128 "$fill" '
      - for: k in 2
        do:
          - s[P[i] // 2 * 2 + (P[i] + k) % 2] = X[i]'
# An atomic and an ordinary access.
meets atomic_and_store 32 64 f32 64 "$fill" '
      - if: P[i] % 2 == 0
        do:
          - atomic: X[i] -> s[P[i]]
        else:
          - s[P[i] - 1] = X[i]'

# Right: every place is one element's, though no proof of that may be known.
apart own 32 64 f32 64 "$fill" '      - s[i] = s[i] + X[i]'
apart permuted 32 64 f32 64 "$fill" '      - s[P[i]] = X[i]'
apart digits 32 64 f16 64 "$fill" '      - s[(i // 8) * 8 + (i + 3) % 8] = X[i]'
apart reversed 32 1024 f32 1024 "$fill" '      - s[1023 - i] = X[i]'
apart fewer 256 64 f32 64 "$fill" '      - s[P[63 - i]] = s[P[63 - i]] * 2 + X[i]'
apart atomics 32 64 f32 64 "$fill" '      - atomic: X[i] -> s[P[i] // 8]'
apart one_reads 32 64 f32 64 "$fill" '
      - if: P[i] == 3
        do:
          - s[i] = s[P[i] + 1]
          - s[P[i] + 1] = 5
        else:
          - if: P[i] > 4
            do:
              - s[i] = 1'

# Elements of half a byte: neighbours share it and do not meet; the same half is one place.
for form in '63 - i' 'i // 2'; do
  cat >"$work/nibbles.yaml" <<END
kernel: nibbles
args:
  Y: inout i4[64]
threads: 32
shared: {s: "i4[64]"}
body:
  - copy: Y -> s
  - parallel: i in 64
    do:
      - s[$form] = i % 7
  - copy: s -> Y
check:
  inputs: {Y: "ints(0, 7)"}
  unchecked: Y
END
  case $form in
    63*) expect 0 "$run" --check --device=emu "$work/nibbles.yaml" ;;
    *)
      expect 1 "$run" --check --device=emu --threads=1 "$work/nibbles.yaml"
      says 'for another element of the parallel at '
      ;;
  esac
done

# The check belongs to `race`; the launch that looks for it leaves no trace in the results.
spec pair 128 256 f32 128 "$fill" '      - s[i // 2] = X[i]'
expect 0 "$run" --check --device=emu --sanitize=bounds,init,blocks "$work/pair.yaml"
cat >"$work/counts.yaml" <<'END'
kernel: counts
args:
  P: in i32[64]
  C: inout i32[64]
threads: 32
body:
  - parallel: i in 64
    do:
      - C[P[i]] += 1
check:
  inputs: {P: arange, C: arange}
  reference:
    - C[i] = i + 1
END
expect 0 "$run" --check --device=emu --landing=both "$work/counts.yaml"
finish
