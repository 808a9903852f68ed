# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tl-run --check --repeat, in the emulator and over its driver as a GPU's, with faults that must be found.
# Usage: tl_run_repeat.sh BIN FAKES
. "$(dirname "$0")/../tools/lib.sh"
run=$bin/tl-run
cuda=$2/libemulated_cuda.so

# Usage.
expect 2 "$run" --repeat=30 kernels/vector_add.yaml
says '--repeat goes with --check'
expect 2 "$run" --check --repeat=2 kernels/vector_add.yaml
expect 2 "$run" --bench --repeat=30 kernels/vector_add.yaml

# Memory that the kernel changes, tiles out of a queue, an argument that nobody compares.
cat >"$work/sums.yaml" <<'SPEC'
kernel: sums
params: {N: 300}
args:
  X: in f32[N]
  Y: inout f32[N]
  Z: out f16[N, 3]
  S: out i32[N]
grid:
  b: ceildiv(N, 64)
persistent: dynamic
threads: 64
body:
  - parallel: i in 64
    do:
      - Y[b * 64 + i] += X[b * 64 + i]
      - Z[b * 64 + i, 1] = X[b * 64 + i]
      - S[b * 64 + i] = i
check:
  unchecked: [S, Z]
  reference:
    - Y[i] = Y[i] + X[i]
  tolerance: {rtol: 1e-6, atol: 1e-6}
SPEC
expect 0 "$run" --check --device=emu --repeat=13 "$work/sums.yaml"
says '^  13 launches more gave the same bits: 5 on one stream, 4 on two streams at once, 4 from a graph ('
expect 0 "$run" --check --device=emu --repeat=200 --landing=both --json="$work/sums.json" "$work/sums.yaml"
says '^  200 launches more gave the same bits: 67 on one stream, 67 on two streams at once, 66 from a graph ('
# Chains, kernels for other targets, both versions of a kernel.
expect 0 "$run" --check --device=emu --repeat=4 test/spec/check/chains.yaml
says '^  4 launches more gave the same bits: 2 on one stream, 1 on two streams at once, 1 from a graph ('
# Memory for a chain's buffers and for maps of nothing, in a recording.
says '^mlp: 3 of 3 cases passed'
expect 0 "$run" --check --device=emu --repeat=6 --case=1 test/pipeline/flights_tma.yaml
says '^  6 launches more gave the same bits: '
expect 0 "$run" --check --device=emu --repeat=3 --target=sm_120 "$work/sums.yaml"
expect 0 "$run" --check --device=emu --repeat=3 --case=1 test/semantics/two_versions.yaml
says '^  unaligned: '
# Sums by atomics are compared with the reference.
cat >"$work/atomics.yaml" <<'SPEC'
kernel: atomics
args:
  X: in f32[4, 64]
  Y: inout f32[4]
grid:
  b: 4
threads: 64
body:
  - parallel: i in 64
    do:
      - atomic: X[b, i] -> Y[b]
check:
  inputs:
    X: ints(0, 7)
    Y: zeros
  reference:
    - Y[b] = sum[i](X[b, i])
  tolerance: {rtol: 1e-4, atol: 1e-4}
SPEC
expect 0 "$run" --check --device=emu --repeat=30 "$work/atomics.yaml"
says '^  30 launches more are right: .*; bits may differ: additions of f32 at atomics.yaml:11 ('
# So are those of the copy engine, and what tickets decide.
expect 0 "$run" --check --device=emu --repeat=3 --case=1 test/pipeline/tma_reductions.yaml
says 'bits may differ: additions of f32 at tma_reductions.yaml:'
expect 0 "$run" --check --device=emu --repeat=3 --kernel=order_lock test/semantics/orders.yaml
says 'bits may differ: previous values of atomics at orders.yaml:'
# Sums of integers are equal in any order.
sed 's/f32/i32/' "$work/atomics.yaml" >"$work/integers.yaml"
expect 0 "$run" --check --device=emu --repeat=30 "$work/integers.yaml"
says '^  30 launches more gave the same bits: '

# Over a driver as of a GPU. Launch 0 is the check's, launch 1 the one that others are compared with.
TL_CUDA_DRIVER=$cuda
export TL_CUDA_DRIVER
fault() { # FAULT SPEC [options]: runs it 30 times with the fault
  TL_EMULATED_FAULT=$1
  export TL_EMULATED_FAULT
  expect 1 "$run" --check --device=cuda --repeat=30 --timeout=20 "$work/$2.yaml"
  unset TL_EMULATED_FAULT
}
expect 0 "$run" --check --device=cuda --repeat=30 "$work/sums.yaml" "$work/atomics.yaml"
says '^device: the emulator (sm_90, 3 SMs)$'
fault 'sums 4 1 40' sums
says '^  FAILED Y: f32\[300\], 1 of 300 elements differ$'
says '^    \[10\]: .*, expected .* (bits [0-9a-f]*, [0-9a-f]*)$'
says '^  FAILED: launch 3 of 30, on one stream, gave another result than the first$'
says '^sums: 0 of 1 cases passed'
fault 'sums 12 1 40' sums
says 'launch 11 of 30, on the first of two streams, gave another result than the first$'
fault 'sums 13 1 1196' sums
says '^    \[299\]: '
says 'launch 12 of 30, on the second of two streams, gave another result than the first$'
fault 'sums 31 1 40' sums
says 'launch 30 of 30, from a graph, gave another result than the first$'
fault 'sums 9 1 1200' sums
says "^  FAILED: byte 1200 behind 'Y' is a4, and was a5$"
fault 'sums 9 1 -1' sums
says "^  FAILED: byte -1 before 'Y' is a4, and was a5$"
fault 'sums 1 1 43' sums
says 'the launch that others are to be compared with is wrong'
# The high byte of a sum is far off, the low one is within the tolerance.
fault 'atomics 25 1 7' atomics
says '^  FAILED Y: f32\[4\], 1 of 4 elements wrong, worst error .* at \[1\]'
says 'launch 24 of 30, from a graph, gave a wrong result$'
TL_EMULATED_FAULT='atomics 25 1 4' expect 0 "$run" --check --device=cuda --repeat=30 "$work/atomics.yaml"
# What is not compared may differ.
TL_EMULATED_FAULT='sums 9 3 40' expect 0 "$run" --check --device=cuda --repeat=30 "$work/sums.yaml"
# A launch that does not end, also the check's own.
TL_EMULATED_FAULT='sums 0 hang' expect 1 "$run" --check --device=cuda --timeout=1 "$work/sums.yaml"
says "^  FAILED: the launch of case 1 of 'sums' did not end within 1 s (--timeout)$"
TL_EMULATED_FAULT='sums 27 hang' expect 1 "$run" --check --device=cuda --repeat=30 --timeout=1 "$work/sums.yaml"
says "^  FAILED: launches 21 to 30 from a graph of case 1 of 'sums' did not end within 1 s (--timeout)$"
finish
