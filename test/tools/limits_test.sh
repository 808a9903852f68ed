# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Inputs that are far too large or too deep are refused with a diagnostic, quickly. The limits here leave room for
# sanitizers and busy machines; docs/performance.md holds the measured times.
. "$(dirname "$0")/lib.sh"
llc=$bin/tl-llc

# refused NAME PATTERN [options]: exit 1 with a line that matches.
refused() {
  name=$1 pattern=$2
  shift 2
  expect 1 timeout 10 "$llc" "$work/$name.yaml" -o /dev/null "$@"
  says "$pattern"
}
repeat() { head -c "$2" /dev/zero | tr '\0' "$1"; }

repeat '[' 1000000 >"$work/brackets.yaml"
refused brackets 'TL0102'
seq 200000 | sed 's/.*/k&: 1/' >"$work/keys.yaml"
refused keys 'TL0102'
{ printf 'kernel: k\ndoc: ' && repeat a 100000000; } >"$work/scalar.yaml"
refused scalar 'TL0102'
rm "$work/scalar.yaml"
{ printf 'kernel: k\nparams:\n  N: ' && repeat '(' 100000 && printf 1 && repeat ')' 100000; } >"$work/parens.yaml"
refused parens 'TL0202'
{ printf 'kernel: k\nparams:\n  N: 1' && repeat - 300000 && printf 1; } >"$work/minus.yaml"
refused minus 'TL0202'

spec() { printf 'kernel: k\nargs: {A: "in f32[%s]", B: "out f32[%s]"}\nthreads: 128\n%s\n' "$1" "$1" "$2"; }
spec '2**48' 'body: [{copy: A -> B}]' >"$work/dim.yaml"
refused dim 'TL0310'
spec '2**40' 'body: [{copy: A -> B}]' >"$work/copy.yaml"
refused copy 'TL0432'
spec '2**31 - 1' 'body: [{copy: A -> B}]' >"$work/elements.yaml"
refused elements 'TL0432'
spec '2**22' 'fragment: {a: "f32[2**22]"}
body: [{copy: A -> a}, {copy: a -> B}]' >"$work/fragment.yaml"
refused fragment 'TL0641'
says "no block has registers for them: make 'a' smaller"
spec 4096 'body:
  - unroll: u in 2**20
    do:
      - B[u % 4096] = A[0]' >"$work/unroll.yaml"
refused unroll 'TL0427'
cp kernels/matmul.yaml "$work/matmul.yaml"
refused matmul 'TL0641' -D block_M=100000
refused matmul 'TL0640' -D block_K=4096
refused matmul 'TL0425' -D stages=1000
refused matmul 'TL0641' -D block_M=256 -D block_N=256 -D block_K=16
refused matmul 'TL0641' -D dtype=f32 -D block_M=1024 -D block_N=1024 -D block_K=1

# Many shared tiles are placed in reasonable time.
{
  spec 4096 'shared:'
  seq 1024 | sed 's/.*/  s&: f32[4]/'
  echo 'body:'
  seq 1024 | sed 's/.*/  - clear: s&/'
  seq 1024 | sed 's/.*/  - copy: s& -> B[4 * (& % 1000)]/'
} >"$work/tiles.yaml"
expect 0 timeout 60 "$llc" "$work/tiles.yaml" --emit=scheduled -o /dev/null

# A value that is used twice by the next one, over and over: the paths through them are not walked one by one.
{
  printf 'kernel: k\nargs: {A: "in i32[4096]", B: "out i32[4096]"}\nthreads: 128\nbody:\n'
  printf '  - parallel: i in 128\n    do:\n    - let: {x0: "A[i]"}\n'
  seq 200 | awk '{ p = $1 - 1; printf "    - let: {x%d: \"x%d * x%d + A[x%d %% 4096]\"}\n", $1, p, p, p }'
  echo '    - B[i] = x200'
} >"$work/paths.yaml"
expect 0 timeout 60 "$llc" "$work/paths.yaml" -Wnone -o /dev/null

# The registers of a thread are what its block leaves it: rows of so many elements a thread, held in f32, over all sizes
# of blocks. Hints name blocks that exist and hold the row. Shared memory has no room for those that are too long.
row() {
  "$bin/tl-llc" kernels/softmax.yaml -D dtype=f32 -D threads_per_row=$1 -D N=$(($1 * $2)) -o /dev/null 2>"$work/err"
  grep -o 'TL064[12]' "$work/err" | sort -u | tr '\n' ' '
  more=$(sed -n 's/^hint: \([0-9]*\) threads would hold them.*/\1/p' "$work/err")
  [ -z "$more" ] || [ $((more % 32)) = 0 ] && [ "${more:-1024}" -le 1024 ] || fail "the hint names $more threads"
  if [ -n "$more" ] && ! "$bin/tl-llc" kernels/softmax.yaml -D dtype=f32 -D threads_per_row="$more" -D N=$(($1 * $2)) -o /dev/null 2>"$work/err2"; then
    fail "$more threads do not hold $1 x $2"
  fi
}
for threads in 32 64 128 256 512 1024; do
  case $threads in
    512) wanted='/ /TL0642 /TL0641 ' ;;
    1024) wanted='/TL0642 /TL0642 /TL0641 ' ;;
    *) wanted='/ / /TL0641 ' ;;
  esac
  given="/$(row $threads 64)/$(row $threads 126)/$(row $threads 300)"
  [ "$(echo $given)" = "$(echo $wanted | sed 's#/ /#//#g; s#/ /#//#g')" ] || fail "$threads threads: $given"
done
# A row that one block has shared memory for is read there, up to as many elements of a thread as ptxas reads one after the other.
for row in '65536 1024' '65536 256' '64512 512'; do
  expect 0 "$bin/tl-llc" kernels/softmax.yaml -D N="${row% *}" -D threads_per_row="${row#* }" -o /dev/null
  ! grep -q 'TL064[12]' "$work/err" || fail "a row that shared memory has room for: $row"
done
expect 1 "$bin/tl-llc" kernels/softmax.yaml -D N=81920 -D threads_per_row=256 -o /dev/null
says 'with 256 threads there are 255 \[TL0641\]'
expect 1 "$bin/tl-llc" kernels/softmax.yaml -D N=262144 -D threads_per_row=1024 -o /dev/null
says 'with 1024 threads there are 64 \[TL0641\]'
says '^hint: no block has registers for them: '

# Parameters: 4352 bytes in every version of PTX, 32764 from 8.1 on.
arguments() {
  printf 'kernel: many\nargs:\n' && seq "$1" | sed 's/.*/  a&: in f32[32]/'
  printf '  o: out f32[32]\nthreads: 32\nbody:\n  - parallel: i in 32\n    do:\n      - o[i] = a1[i] + a%d[i]\n' "$1"
  printf 'check:\n  reference:\n    - o[i] = a1[i] + a%d[i]\n' "$1"
}
arguments 543 >"$work/arguments543.yaml"
arguments 545 >"$work/arguments545.yaml"
arguments 4095 >"$work/arguments4095.yaml"
expect 0 "$llc" "$work/arguments543.yaml" -Wnone -o "$work/a.ptx"
grep -q '^.version 7.0' "$work/a.ptx" || fail '544 tensors need no later PTX version'
expect 0 "$llc" "$work/arguments545.yaml" -Wnone -o "$work/a.ptx"
grep -q '^.version 8.1' "$work/a.ptx" || fail '546 tensors need PTX 8.1'
expect 0 timeout 60 "$bin/tl-run" "$work/arguments545.yaml" -Wnone --check --device=emu
refused arguments4095 'TL0662' -Wnone
says 'the 4096 arguments, dynamic params and tensor maps take 32768 bytes, the limit is 32764'

# Statements of a kernel, and what they become: refused at once, and what is allowed takes no square of the time (two
# orders of magnitude are between the time limit here and what it takes).
tiles() {  # tiles COUNT KEY: so many shared tiles with copies into and out of them, in a loop KEY
  printf 'kernel: tiles\nargs: {A: "in f32[16, 65536]", B: "out f32[16, 65536]"}\nthreads: 128\nshared:\n'
  seq "$1" | sed 's/.*/  s&: f32[4]/'
  printf 'body:\n  - %s: k in 16\n    do:\n' "$2"
  seq "$1" | sed 's/.*/      - copy: A[k, & * 4] -> s&/'
  seq "$1" | sed 's/.*/      - copy: s& -> B[k, & * 4]/'
}
tiles 5000 for >"$work/tiles5000.yaml"
refused tiles5000 'TL0644'
says 'statement 2049 on the kernel.s memory, the limit is 2048'
tiles 1024 for >"$work/tiles1024.yaml"
expect 0 timeout 100 "$llc" "$work/tiles1024.yaml" -Wnone --remarks -o "$work/a.ptx"
says 'LLVM makes the effort of -O0'
tiles 400 pipelined >"$work/tiles400.yaml"
expect 0 timeout 100 "$llc" "$work/tiles400.yaml" -Wnone -o "$work/a.ptx"
large() {  # large COUNT: a loop of so many statements over 64 elements a thread
  printf 'kernel: large\nargs: {X: "in f32[64, 32]", Y: "out f32[64, 32]"}\nthreads: 32\nbody:\n  - parallel: i, j in 64, 32\n    do:\n'
  seq "$1" | sed 's/.*/      - Y[i, j] = exp(X[i, j] * &) + j/'
}
large 1100 >"$work/large1100.yaml"
expect 1 timeout 100 "$llc" "$work/large1100.yaml" -Wnone -o "$work/a.ptx"
says 'instructions, the limit is 65536 \[TL0645\]'

# Loops, carried values and copies of a commit have no limit of their own.
{
  printf 'kernel: loops\nargs: {X: "in f32[20, 256]", Y: "out f32[20, 32]"}\nthreads: 32\nshared: {s: "f32[32]"}\n'
  printf 'fragment: {t: "f32[32]"}\nbody:\n  - unroll: a in 20\n    do:\n      - clear: t\n      - pipelined: k in 8\n        do:\n'
  printf '          - copy: X[a, k * 32] -> s\n          - parallel: i in 32\n            do: t[i] += s[i]\n      - copy: t -> Y[a, 0]\n'
} >"$work/loops.yaml"
expect 0 timeout 60 "$llc" "$work/loops.yaml" -o "$work/a.ptx"
[ "$(grep -c 'cp.async.wait_group' "$work/a.ptx")" -ge 20 ] || fail 'not all of 20 pipelined loops have copies in flight'
{
  printf 'kernel: carried\nargs: {X: "in i32[8]", Y: "out i32[70]"}\nthreads: 32\nlocal:\n'
  seq 70 | sed 's/.*/  v&: i32/'
  printf 'body:\n' && seq 70 | sed 's/.*/  - v& = &/'
  printf '  - unroll: k in 4\n    do:\n' && seq 70 | sed 's/.*/      - v& = v& * 3 + X[k]/'
  seq 70 | awk '{ printf "  - Y[%d] = v%d\n", $1 - 1, $1 }'
  printf 'check:\n  inputs: {X: "ints(-9, 9)"}\n  reference:\n'
  echo '    - Y[i] = 81 * (i + 1) + 27 * X[0] + 9 * X[1] + 3 * X[2] + X[3]'
} >"$work/carried.yaml"
expect 0 timeout 60 "$llc" "$work/carried.yaml" -o "$work/a.ptx"
! grep -q 'bra' "$work/a.ptx" || fail 'a loop that carries 70 values is not unrolled'
expect 0 timeout 60 "$bin/tl-run" "$work/carried.yaml" --check --device=emu
# All of the copies end past the tensor in the last block: those of full tiles take a branch of their own.
{
  printf 'kernel: copies\nargs: {X: "in f32[70, 100]", Y: "out f32[100]"}\ngrid: {b: 2}\nthreads: 32\nshared:\n'
  seq 70 | sed 's/.*/  s&: f32[64]/'
  printf 'fragment: {t: "f32[64]"}\nbody:\n'
  seq 70 | awk '{ printf "  - {copy: \"X[%d, b * 64] -> s%d\", async: true}\n", $1 - 1, $1 }'
  printf '  - commit_group:\n  - wait_group: 0\n  - parallel: i in 64\n    do: t[i] = 0'
  seq 70 | sed 's/.*/ + s&[i]/' | tr -d '\n'
  printf '\n  - copy: t -> Y[b * 64]\ncheck:\n  inputs: {X: "ints(-9, 9)"}\n  reference:\n    - Y[i] = sum[k in 0:70](X[k, i])\n'
} >"$work/copies.yaml"
expect 0 timeout 60 "$bin/tl-run" "$work/copies.yaml" --check --device=emu --landing=both
finish
