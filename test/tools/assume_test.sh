# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# assume: what follows from it is not tested, a false one is told, and the launcher looks at what concerns it.
. "$(dirname "$0")/lib.sh"
run=$bin/tl-run
llc=$bin/tl-llc

# gather [sed expression]
gather() {
  sed "$1" <<'EOF'
kernel: gather
params: {N: 40, M: dynamic, L: dynamic}
args:
  A: in f32[N, 16]
  idx: in i32[M]
  first: in i32[1]
  n: i32
  Y: out f32[M, 16]
assume:
  - 0 <= idx[i] < N
  - n % 4 == 0
  - L % 8 == 0 and 16 <= L < 100
grid: {m: M}
threads: 32
body:
  - let:
      row: idx[m]
      more: first[0] + n
  - assume: 0 <= more < 30
  - parallel: j in 16
    do:
      - Y[m, j] = A[row, j] + A[more, j] + L
check:
  inputs:
    idx: ints(0, 39)
    first: const(1)
    n: const(8)
  reference:
    - Y[m, j] = A[idx[m], j] + A[9, j] + L
  tolerance: {atol: 1.0e-4}
  cases:
    - {M: 7, L: 24}
EOF
}
gather '' >"$work/gather.yaml"
expect 0 "$run" --check --device=emu "$work/gather.yaml"
expect 0 "$llc" "$work/gather.yaml" --remarks -Wnone -o "$work/known.ptx"
if grep -q "TL0802" "$work/err"; then fail 'bounds are tested'; fi
gather '/idx.i. < N/d;/more < 30/d' >"$work/unknown.yaml"
expect 0 "$llc" "$work/unknown.yaml" --remarks -Wnone -o "$work/unknown.ptx"
says "TL0802"
[ "$(grep -c setp "$work/known.ptx")" -lt "$(grep -c setp "$work/unknown.ptx")" ] || fail 'the bounds of A are tested all the same'
if grep -q 'assume\|gather.yaml' "$work/known.ptx"; then fail 'an assumption left something in the PTX'; fi
# A bound that is a param, and what requirements say of params.
gather 's/N: 40/N: dynamic/;s/^  - 0 <= idx/  - N >= 30\n&/;s/{M: 7/{N: 40, M: 7/' >"$work/dynamic.yaml"
expect 0 "$llc" "$work/dynamic.yaml" --remarks -Wnone -o "$work/dynamic.ptx"
if grep -q "TL0802" "$work/err"; then fail 'bounds that are params are tested'; fi
cat >"$work/sixteenths.yaml" <<'EOF'
kernel: sixteenths
params: {N: dynamic}
args:
  A: in f32[16 * N]
  idx: in i32[64]
  Y: out f32[64]
assume:
  - 0 <= idx[i] < N
  - N >= 1
grid: {m: 1}
threads: 64
body:
  - parallel: j in 64
    do:
      - Y[j] = A[16 * idx[j] + j % 16]
EOF
expect 0 "$llc" "$work/sixteenths.yaml" --remarks -Wnone -o "$work/sixteenths.ptx"
if grep -q "TL0802" "$work/err"; then fail 'bounds of what follows from a bound are tested'; fi
expect 0 "$llc" "$work/dynamic.yaml" --emit=tile -Wnone -o "$work/dynamic.tir"
grep -q 'dyn_param {name = "L", divisor = 8, least = 16, most = 99}' "$work/dynamic.tir" || fail 'nothing is known of L'

gather 's/idx: ints(0, 39)/idx: const(40)/' >"$work/large.yaml"
expect 1 "$run" --check --device=emu "$work/large.yaml"
says 'block ([0-9], 0, 0), thread [0-9]*.*: large.yaml:10: the assumption `0 <= idx\[i\] < N` is false'
gather 's/idx: ints(0, 39)/idx: const(-1)/' >"$work/small.yaml"
expect 1 "$run" --check --device=emu "$work/small.yaml"
says 'small.yaml:10: the assumption `0 <= idx\[i\] < N` is false'
gather 's/first: const(1)/first: const(25)/' >"$work/more.yaml"
expect 1 "$run" --check --device=emu "$work/more.yaml"
says 'more.yaml:19: the assumption `0 <= more < 30` is false'
gather 's/n: const(8)/n: const(7)/' >"$work/multiple.yaml"
expect 1 "$run" --check --device=emu "$work/multiple.yaml"
says 'multiple.yaml:11: the assumption `n % 4 == 0` is false'
# Of params the launcher knows.
for value in 20 8 104; do
  gather "s/L: 24/L: $value/" >"$work/launch.yaml"
  expect 1 "$run" --check --device=emu "$work/launch.yaml"
  says "multiple of 8\|requires L % 8 == 0 and 16 <= L < 100, which does not hold"
done
finish
