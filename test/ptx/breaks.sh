#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Mistakes planted in the PTX that the compiler writes, one at a time: each must give other numbers or a finding under one of the
# seeds. The text as it was gives neither. Usage: breaks.sh BIN SOURCE
bin=$1
source=$2
failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-breaks.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
cat >"$work/narrow.yaml" <<'SPEC'
kernel: narrow
params: {N: 256}
args:
  X: in bf16[N]
  C: inout bf16[2]
threads: 64
body:
  - parallel: i in N
    do:
      - atomic: X[i] -> C[1]
SPEC

# What every run gets; the result is C.
run() { "$bin/tl-run" "$1" --device=emu --sanitize=all --seed="$2" $inputs --out C="$3" >"$work/log" 2>&1; }

# begin NAME SPEC OPTIONS…: the text as it is, and its result.
begin() {
  name=$1 spec=$2
  shift 2
  "$bin/tl-llc" "$spec" "$@" -o "$work/good.ptx" || { echo "$name: it does not compile"; exit 1; }
  for seed in 1 2 3; do
    run "$work/good.ptx" $seed "$work/good.$seed.npy" || { echo "$name, seed $seed: the text as it is:"; cat "$work/log"; failed=1; }
  done
}

# broken 'what is broken' COMMAND…: a filter of the text.
broken() {
  what=$1
  shift
  "$@" <"$work/good.ptx" >"$work/bad.ptx"
  if cmp -s "$work/good.ptx" "$work/bad.ptx"; then
    echo "$name: $what: the text has no such place"
    failed=1
    return
  fi
  for seed in 1 2 3; do
    run "$work/bad.ptx" $seed "$work/bad.npy" || return 0
    cmp -s "$work/good.$seed.npy" "$work/bad.npy" || return 0
  done
  echo "$name: $what: nothing found it"
  failed=1
}
# The line after the first one that matches.
after() { awk -v pattern="$1" -v from="$2" -v to="$3" '{ if (armed && !done && sub(from, to)) done = 1; if ($0 ~ pattern) armed = 1; print }'; }
# Without the Nth line that matches.
without() { awk -v pattern="$1" -v n="$2" '{ if ($0 ~ pattern && ++seen == n) next; print }'; }
# The first match of FROM in a line that matches becomes TO.
first() { awk -v pattern="$1" -v from="$2" -v to="$3" '{ if (!done && $0 ~ pattern && sub(from, to)) done = 1; print }'; }

inputs="--in A=normal(0,1) --in B=normal(0,1)"
begin matmul.sm_80 "$source/kernels/matmul.yaml" -D M=128 -D N=128 -D K=192 --target=sm_80
swap_a() { awk '/mma\.sync/ { left = 2 } left && --left == 0 { } /mma\.sync/ { print; getline; print; getline; if (!done++) { split($0, r, /[{},]+/); $0 = "\t\t{" r[3] ", " r[2] "," r[4] "," r[5] "}," } } { print }'; }
broken 'registers of A swapped in mma' swap_a
broken 'halves swapped in a conversion' sed -E '0,/cvt\.rn\.f16x2\.f32/s/(cvt\.rn\.f16x2\.f32[[:space:]]+%r[0-9]+, )(%r[0-9]+), (%r[0-9]+);/\1\3, \2;/'
broken 'the wait leaves all groups in flight' sed -E 's/cp\.async\.wait_group[[:space:]]+[0-9]+/cp.async.wait_group 7/'
broken 'a fragment of B that is not transposed' first 'ldmatrix' '\.trans' ''
broken 'a copy under the opposite predicate' sed -E '0,/@%p[0-9]+ cp\.async/s/@(%p[0-9]+) cp\.async/@!\1 cp.async/'
broken 'no barrier behind the wait' without 'bar\.sync' 1
broken 'the product of another type' sed 's/mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32/mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32/'
broken 'a store one element off' sed -E '0,/st\.global\.v4/s/(st\.global\.v4\.b32[[:space:]]+\[%rd[0-9]+)/\1+16/'

begin matmul.sm_90a "$source/kernels/matmul.yaml" -D M=128 -D N=128 -D K=192 --target=sm_90a
broken 'the wait leaves all groups in flight' sed 's/wgmma.wait_group.sync.aligned 0/wgmma.wait_group.sync.aligned 7/'
broken 'registers of D swapped in wgmma' sed -E '0,/wgmma\.mma_async/s/(wgmma\.mma_async[^{]*\{)(%r[0-9]+), (%r[0-9]+)/\1\3, \2/'
broken 'no fence before the products' sed '/wgmma.fence/d'
broken 'the coordinates of copies swapped' sed -E 's/(cp\.async\.bulk\.tensor\.2d[^{]*\{)(%r[0-9]+), (%r[0-9]+)\}/\1\3, \2}/'
broken 'fewer bytes expected' sed -E 's/(mov\.b32[[:space:]]+%r[0-9]+, )32768;/\116384;/'
broken 'the wait for the other parity' sed -E 's/(mbarrier\.try_wait\.parity\.shared\.b64 %p[0-9]+, \[%rd[0-9]+\], )%r[0-9]+/\11/'
broken 'an mbarrier that nobody starts' without 'mbarrier\.init' 1
broken 'no barrier behind the start of the mbarriers' without 'bar\.sync' 1

inputs="--in X=ones --in C=zeros"
begin narrow "$work/narrow.yaml"
broken 'the value is computed before the loop of the compare-and-swap' awk '/^\$L__BB0_1:/ { label = $0; next } label && /atom\.relaxed/ { print label; label = "" } { print }'
broken 'the loops do not repeat' sed -E 's/@%p[0-9]+ bra[[:space:]]+\$L__BB0_[0-9]+;//'
broken 'the wrong half of the word' sed -E 's/(shl\.b32[[:space:]]+%r[0-9]+, %r[0-9]+, )16/\18/'
exit $failed
