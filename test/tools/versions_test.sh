# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Which kernels have an aligned version, for which arguments, and who launches it.
. "$(dirname "$0")/lib.sh"
llc=$bin/tl-llc

# spec DIM-OF-N [ALIGN]
spec() {
  cat >"$work/k.yaml" <<END
kernel: k
params: {M: dynamic, N: $1}
args:
  X: in f16[M, N] $2
  Y: out f16[M, N]
grid: {by: M}
threads: 64
body:
  - parallel: i in 512
    where: i < N
    do:
      - Y[by, i] = X[by, i] * 2
END
}

# versions COUNT: entries of the PTX.
versions() {
  found=$($llc "$work/k.yaml" | grep -c '\.entry')
  [ "$found" = "$1" ] || fail "$found entries, expected $1"
}

# remark TEXT: what is said of the version.
remark() {
  $llc "$work/k.yaml" --remarks -o "$work/k.ptx" 2>"$work/remarks"
  grep -q "$1 *; remarks are about the other one \[TL0811\]" "$work/remarks" || fail "no remark '$1'"
}

spec dynamic && versions 2
remark "a second version, 'k\$aligned', is launched where N % 8 == 0"
spec 'dynamic(2)' && remark 'N % 8 == 0'
spec 'dynamic(3)' && remark 'N % 24 == 0'
spec dynamic64 && remark 'N % 8 == 0'
spec dynamic 'align(2)' && remark 'X is aligned to 16 bytes, N % 8 == 0'
spec 512 'align(2)' && remark 'X is aligned to 16 bytes'
# Promised, or not wanted.
spec 'dynamic(8)' && versions 1
spec 'dynamic(1)' && versions 1
spec 512 && versions 1
# A size of which no power of two makes rows of whole vectors.
sed 's/M: dynamic/M: dynamic, P: dynamic(1)/; s/\[M, N\]/[M, N + P]/' "$work/k.yaml" >"$work/p.yaml" && mv "$work/p.yaml" "$work/k.yaml"
sed -i 's/N: 512/N: dynamic/' "$work/k.yaml"
versions 1
# Generated C has the condition.
spec dynamic 'align(2)'
$llc "$work/k.yaml" --emit=c -o "$work/k.c" || fail 'no C'
grep -q 'if ((uintptr_t)X % 16 == 0 && N % 8 == 0) {' "$work/k.c" || fail 'no condition in C'
# A chain has the versions of its kernels.
cat "$work/k.yaml" - >"$work/chain.yaml" <<'END'
---
chain: c
params: {M: dynamic, N: dynamic}
args:
  X: in f16[M, N] align(2)
  Y: out f16[M, N]
buffers:
  H: f16[M, N]
steps:
  - k(X, H)
  - k(H, Y)
check:
  inputs:
    X: ints(-8, 8)
  reference:
    - Y[m, n] = X[m, n] * 4
  cases:
    - {M: 3, N: 264}
    - {M: 3, N: 263}
END
$bin/tl-llc "$work/chain.yaml" --kernel=c -o "$work/c.ptx" || fail 'no chain'
[ "$(grep -c '"aligned": "k\$aligned"' "$work/c.ptx")" = 1 ] || fail 'the chain has no version'
for how in --via=both --via=ptx --landing=both; do
  $bin/tl-run "$work/chain.yaml" --kernel=c --check --device=emu $how >"$work/out" || fail "$how: $(cat "$work/out")"
  grep -q 'unaligned: Y' "$work/out" || fail "$how does not run both versions"
done
# PTX text alone, whichever its sizes and whichever entry is named.
spec dynamic
$llc "$work/k.yaml" -o "$work/k.ptx"
for name in k 'k$aligned'; do
  $bin/tl-run "$work/k.ptx" --kernel="$name" --device=emu -D M=3 -D N=264 >"$work/out" 2>&1 || fail "$name: $(cat "$work/out")"
done
$bin/tl-run "$work/k.ptx" --device=emu -D M=3 -D N=263 >"$work/out" 2>&1 || fail "$(cat "$work/out")"
$bin/tl-run "$work/k.ptx" --kernel='k$aligned' --device=emu -D M=3 -D N=263 >"$work/out" 2>&1 && fail 'the aligned version takes any size'
grep -q "'N' is 263, expected a multiple of 8" "$work/out" || fail "$(cat "$work/out")"
finish
