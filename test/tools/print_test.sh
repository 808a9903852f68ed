# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# print and assert in the emulator: what is said, by whom, and that nothing else changes.
. "$(dirname "$0")/lib.sh"
run=$bin/tl-run
llc=$bin/tl-llc

# shows [sed expression]: every form of print, and assertions that hold.
shows() {
  sed "$1" <<'EOF'
kernel: shows
params: {n: 4}
args:
  X: in f32[2, n, n]
  Y: out f32[2, n, n]
grid:
  bx: 2
threads: 64
fragment:
  x: f32[n, n]
  h: f16[n]
shared:
  s: i8[n]
local:
  total: f32
body:
  - copy: X[bx, 0, 0] -> x
  - print: x
  - print: x[:, 0:2] * 2
    message: first {two} 100%
  - total = sum(x)
  - print: total
  - h = max(x, axis=1)
  - print: h
  - for: k in 2
    do:
      - parallel: i, j in n, n
        do:
          - if: i == j and i > 2
            then:
              - print: x[i, j] / 8
  - if: thread_id() % 32 == 1
    then:
      - print: thread_id()
  - parallel: i in n
    do:
      - s[i] = i - 2
  - print: s[1] + 1.5
  - assert: s[3] == 1
  - assert: x >= 0
    message: no negatives
  - copy: x -> Y[bx, 0, 0]
check:
  inputs:
    X: arange
  reference:
    - Y[b, i, j] = X[b, i, j]
  tolerance: {rtol: 0, atol: 0}
EOF
}
shows '' >"$work/shows.yaml"
expect 0 "$run" --check --device=emu "$work/shows.yaml"
[ "$(grep -c '^bx=' "$work/out")" = 68 ] || fail "$(grep -c '^bx=' "$work/out") lines, not 68"
for line in 'bx=1: x\[2, 3\] = 27' 'bx=0: first {two} 100% \[3, 1\] = 26' 'bx=0: total = 120' 'bx=1: h\[3\] = 31' \
  'bx=0 k=1 i=3 j=3: x\[i, j\] / 8 = 1.875' 'bx=1: thread_id() = 33' 'bx=0: s\[1\] + 1.5 = 0.5'; do
  [ "$(grep -c "^$line\$" "$work/out")" = 1 ] || fail "not one line: $line"
done
# The same results without them, and the same bytes wherever the spec lies.
mkdir "$work/there"
cp "$work/shows.yaml" "$work/there/shows.yaml"
"$llc" "$work/shows.yaml" -o "$work/one" && (cd "$work/there" && "$llc" shows.yaml -o "$work/two")
cmp -s "$work/one" "$work/two" || fail 'the output depends on the directory'

shows 's/x >= 0/x < 20/' >"$work/fails.yaml"
expect 1 "$run" --check --device=emu "$work/fails.yaml"
says 'block (1, 0, 0), thread [0-9]*.*: fails.yaml:40: assertion `x < 20: no negatives` failed'
shows 's/s\[3\] == 1/s[3] == 2/' >"$work/once.yaml"
expect 1 "$run" --check --device=emu "$work/once.yaml"
says 'block (0, 0, 0), thread 0 .*: once.yaml:39: assertion `s\[3\] == 2` failed'
# All indices stand before a value, however many there are.
{
  printf 'kernel: many\nargs: {A: "out f32[1]"}\nthreads: 32\ngrid:\n' && seq 30 | sed 's/.*/  b&: 1/'
  printf 'body:\n  - parallel: i in 1\n    do:\n      - print: i + 7\n      - A[i] = 1\n'
} >"$work/indices.yaml"
expect 0 "$run" --device=emu "$work/indices.yaml"
says "^$(seq 30 | sed 's/.*/b&=0/' | tr '\n' ' ')i=0: i + 7 = 7\$"
# CUDA's vprintf takes 32 values: 24 indices, 8 of the tile, and the element are one too many.
{
  printf 'kernel: many\nargs: {A: "in f32[1, 1, 1, 1, 1, 1, 1, 1]"}\nthreads: 32\ngrid:\n' && seq 24 | sed 's/.*/  b&: 1/'
  printf 'fragment: {t: "f32[1, 1, 1, 1, 1, 1, 1, 1]"}\nbody:\n  - copy: A -> t\n  - print: t\n'
} >"$work/many.yaml"
expect 1 "$llc" "$work/many.yaml" -Wnone -o "$work/one"
says 'one .print. writes at most 32 values.*TL0660'
finish
