# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Where products do not stay in flight, or no warps of their own bring tiles, a remark says why: one spec for each reason.
. "$(dirname "$0")/lib.sh"
llc=$bin/tl-llc

# spec ITERATION [LOOP-OPTION…]: a product of 128 by 256 for two warpgroups; lines of the iteration come from standard input.
spec() {
  cat <<END
kernel: product
target: sm_90a
params: {M: 1024, N: 1024, K: 2048, bm: 128, bn: 256, bk: 64, threads: 256, D: 0}
args:
  A: in f16[M, K]
  B: in f16[K, N]
  C: out f32[M, N]
grid: {bx: N // bn, by: M // bm}
threads: threads
shared:
  A_s: f16[bm, bk]
  B_s: f16[bk, bn]
fragment:
  A_f: f16[bm, bk]
  acc: f32[bm, bn]
  other: f32[bm, bn]
body:
  - clear: acc
  - clear: other
  - pipelined: ko in ceildiv(K, bk)
    stages: 3
    do:
      - copy: A[by * bm, ko * bk] -> A_s
      - copy: B[ko * bk, bx * bn] -> B_s
$(sed 's/^/      /')
  - copy: acc -> C[by * bm, bx * bn]
  - if: D > 0
    then:
      - copy: other -> C[by * bm, bx * bn]
END
}
# why WORDS [OPTION…]: the spec on standard input is compiled, and a remark says so.
why() {
  words=$1
  shift
  spec >"$work/k.yaml"
  expect 0 "$llc" "$work/k.yaml" --remarks -Wnone -o /dev/null "$@"
  says "$words"
}

# Nothing in the way.
why 'remark: the gemm is waited for one iteration later' <<END
- gemm: acc += A_s @ B_s
END
says 'remark: 4 warps bring tiles, 8 compute'
# Products that are waited for where they stand.
why 'the gemm is waited for at once: it stands under a condition or in an inner loop' <<END
- if: ko % 2 == 0
  then:
    - gemm: acc += A_s @ B_s
END
why 'the gemm is waited for at once: something else uses its accumulator' <<END
- gemm: acc = A_s @ B_s
END
why 'the gemm is waited for at once: something else in the loop uses its result' <<END
- gemm: acc += A_s @ B_s
- parallel: i, j in bm, bn
  do: acc[i, j] = acc[i, j] * 2
END
why 'the gemm is waited for at once: copies would start 512 clocks of the tensor cores before they are read, and take 1340' -D bn=128 <<END
- copy: A_s -> A_f
- gemm: acc += A_f @ B_s
END
says "'A' to 'A_s' by cp.async, 16 bytes at a time: not by TMA, threads read its tile, not only wgmma"
# With warps of their own the tiles that threads read come by TMA, too.
why "'A' to 'A_s' by TMA" <<END
- copy: A_s -> A_f
- gemm: acc += A_f @ B_s
END
says 'remark: 4 warps bring tiles, 8 compute'
sed 's/-> A_s$/&\n        via: cp_async/' "$work/k.yaml" >"$work/threads.yaml"
expect 0 "$llc" "$work/threads.yaml" --remarks -Wnone -o /dev/null
says 'no warps of their own bring tiles by TMA: some copies do not come by TMA'
expect 0 "$llc" "$work/k.yaml" --remarks -Wnone -o /dev/null -D threads=225
says 'k.yaml:.*: remark: 225 threads are rounded up to 256, whole warps .TL0813.'
# A product of 8-bit floats by itself, of one part of K, has nothing to promote.
sed 's/f16\[/f8e4m3[/;s/B: in f8e4m3\[K, N\]/B: in f8e4m3[N, K]/;s/B_s: f8e4m3\[bk, bn\]/B_s: f8e4m3[bn, bk]/;s/B\[ko \* bk, bx \* bn\]/B[bx * bn, ko * bk]/;s/A_f @ B_s/A_s @ B_s.T/' "$work/k.yaml" >"$work/f8.yaml"
expect 0 "$llc" "$work/f8.yaml" -D bn=64 -D bk=128 --remarks -Wnone -o /dev/null
says 'the gemm is waited for at once: its sums are promoted'
sed 's/acc += A_s @/other = A_s @/' "$work/f8.yaml" >"$work/f8_alone.yaml"
expect 0 "$llc" "$work/f8_alone.yaml" -D bn=64 -D bk=128 -D D=1 --remarks -Wnone -o /dev/null
says 'the gemm is waited for at once: something else uses its accumulator'
# Nothing but a maximum stands between the two products.
cat >"$work/chain.yaml" <<END
kernel: chain
target: sm_90a
args:
  X: in f16[4096, 128]
  W: in f16[128, 1024]
  V: in f16[1024, 128]
  Y: out f16[4096, 128]
grid: {bx: 32}
threads: 256
shared:
  X_s: f16[128, 128]
  W_s: f16[128, 64]
  V_s: f16[64, 128]
fragment:
  h: f32[128, 64]
  p: f16[128, 64]
  y: f32[128, 128]
body:
  - copy: X[bx * 128, 0] -> X_s
  - y = 0
  - pipelined: k in 16
    stages: 2
    do:
      - copy: W[0, k * 64] -> W_s
      - copy: V[k * 64, 0] -> V_s
      - gemm: h = X_s @ W_s
      - p = relu(h)
      - gemm: y += p @ V_s
  - copy: y -> Y[bx * 128, 0]
END
expect 0 "$llc" "$work/chain.yaml" --remarks -o /dev/null
says 'iterations do not overlap: that would gain less than 5 %'
# Roles.
why 'no warps of their own bring tiles by TMA: one warpgroup computes, or several blocks share a multiprocessor' -D bn=128 -D threads=128 <<END
- gemm: acc += A_s @ B_s
END
# Where they are demanded their block has the multiprocessor to itself, and stays for several tiles.
sed 's/    stages: 3/&\n    specialize: on/' "$work/k.yaml" >"$work/on.yaml"
expect 0 "$llc" "$work/on.yaml" -D bn=128 -D M=8192 -D N=8192 --remarks -Wnone -o /dev/null
says ': 1 block on a multiprocessor'
says 'blocks take one tile of the grid after the other'
says 'remark: 4 warps bring tiles, 8 compute'
# Left to the compiler, too, where as many stages fit as copies need.
sed '/    stages: 3/d' "$work/k.yaml" >"$work/left.yaml"
expect 0 "$llc" "$work/left.yaml" -D bn=128 -D M=8192 -D N=8192 --remarks -Wnone -o /dev/null
says 'remark: 4 stages of 32768 bytes'
says 'remark: 4 warps bring tiles, 8 compute'
why 'no warps of their own bring tiles by TMA: their loop has few iterations' -D K=512 <<END
- gemm: acc += A_s @ B_s
END
why 'no warps of their own bring tiles by TMA: tiles need more registers' -D bn=224 -D N=1120 -D D=1 <<END
- gemm: acc += A_s @ B_s
- gemm: other += A_s @ B_s
END
# with SED [OPTION…]: as `why`, of the spec changed by sed.
with() {
  change=$1
  words=$2
  shift 2
  spec | sed "$change" >"$work/k.yaml"
  expect "${status:-0}" "$llc" "$work/k.yaml" --remarks -Wnone -o /dev/null "$@"
  says "$words"
}
why 'the gemm is waited for at once: there are more than 7 in the loop' -D bm=64 -D bn=32 -D threads=128 <<END
- gemm: acc += A_s @ B_s
- gemm: acc += A_s @ B_s
- gemm: acc += A_s @ B_s
- gemm: acc += A_s @ B_s
- gemm: acc += A_s @ B_s
- gemm: acc += A_s @ B_s
- gemm: acc += A_s @ B_s
- gemm: acc += A_s @ B_s
END
why 'the gemm is waited for at once: an operand is written in the loop, and not by copies that run ahead' -D bn=128 <<END
- parallel: i, j in bm, bk
  do: A_s[i, j] = A_s[i, j] * 2
- gemm: acc += A_s @ B_s
END
why 'the gemm is waited for at once: A is in registers' -D bn=128 <<END
- parallel: i, j in bm, bk
  do: A_f[i, j] = ko
- gemm: acc += A_f @ B_s
END
says "'A' to 'A_s' by cp.async, 16 bytes at a time: not by TMA, nothing reads its tile"
roles='s/stages: 3/stages: 3\n    specialize: on/'
with "$roles; s/^  - clear: acc/  - wait_until: flag[0] == by\n  - clear: acc/; s/  C: out/  flag: inout i32[64]\n  C: out/" \
  "the warps that compute bring 'A_s+B_s' themselves: the kernel waits for other blocks" <<END
- gemm: acc += A_s @ B_s
END
with "$roles; s/^threads: threads/threads: 1024/" \
  "the warps that compute bring 'A_s+B_s' themselves: the block has no room for another warp" -D bm=256 -D bn=128 <<END
- gemm: acc += A_s @ B_s
END
with "$roles; s/^body:/barriers:\n  here: named arrivals(8)\nbody:\n  - sync: here/" \
  "the warps that compute bring 'A_s+B_s' themselves: the kernel has barriers of its author" <<END
- gemm: acc += A_s @ B_s
END
status=1 with 's/stages: 3/stages: 3\n    overlap: 1/' \
  'iterations of this loop cannot overlap: no product needs another one of its iteration' <<END
- gemm: other = A_s @ B_s
- acc += other
END
# Tiles of the grid one after the other.
why 'blocks take one tile of the grid after the other' -D M=8192 -D N=8192 <<END
- gemm: acc += A_s @ B_s
END
why 'each block takes one tile of the grid: there are no more tiles than multiprocessors' <<END
- gemm: acc += A_s @ B_s
END
with 's/ko in ceildiv(K, bk)/ko in 4 * by + 16/' 'each block takes one tile of the grid: tiles take different times' -D M=8192 -D N=8192 <<END
- gemm: acc += A_s @ B_s
END
# wgmma.
why 'no wgmma: M of the tiles is no multiple of 64' -D bm=32 <<END
- gemm: acc += A_s @ B_s
END
why 'no wgmma: an operand.s rows are no multiple of 32 bytes, or not in groups of 8' -D bk=24 -D K=2040 <<END
- gemm: acc += A_s @ B_s
END
why 'no wgmma: K of the tiles is no multiple of the instruction.s' -D bk=24 -D K=2040 -D bn=128 <<END
- copy: A_s -> A_f
- gemm: acc += A_f @ B_s
END
finish
