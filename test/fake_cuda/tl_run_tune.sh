# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tl-run --tune over the fake driver and in the emulator. Usage: tl_run_tune.sh BIN FAKES
. "$(dirname "$0")/../tools/lib.sh"
run=$bin/tl-run
fakes=$2

# A kernel that writes what it has read: right also where nothing is computed. `where`, `requires` and shared memory
# each exclude some of its 48 configurations.
cat >"$work/rows.yaml" <<'EOF'
kernel: rows
params:
  M: 64
  N: 192
  rows: 8
  width: 32
  repeat: 1
let:
  elements: rows * width
args:
  X: inout f32[M, N]
requires:
  - N % width == 0
grid:
  bx: ceildiv(N, width)
  by: ceildiv(M, rows)
threads: 64
shared:
  s: f32[rows * repeat, width]
body:
  - copy: X[by * rows, bx * width] -> s[0:+rows, :]
  - copy: s[0:+rows, :] -> X[by * rows, bx * width]
check:
  inputs:
    X: normal(0, 1)
  reference:
    - X[m, n] = X[m, n]
  cases:
    - {M: 16, N: 32, width: 64}
    - {M: 48}
bench:
  cases:
    - {M: 1024, N: 192}
    - {M: 512, N: 384}
tune:
  rows: [4, 8, 16]
  width: [16, 32, 64, 128]
  repeat: [1, 1000]
  threads: [64, 128]
  where:
    - elements <= 1024
    - repeat == 1 or rows > 4
  budget: 100
EOF
# Mistakes and usage.
TL_CUDA_DRIVER=$work/none.so
export TL_CUDA_DRIVER
expect 77 "$run" --tune --device=cuda "$work/rows.yaml"
expect 2 "$run" --tune --check "$work/rows.yaml"
expect 2 "$run" --tune --bench "$work/rows.yaml"
expect 2 "$run" --tune --peer=cublaslt "$work/rows.yaml"
expect 2 "$run" --tune --budget=0 "$work/rows.yaml"
expect 2 "$run" --budget=3 "$work/rows.yaml"
expect 1 "$run" --tune kernels/vector_add.yaml
says 'has no tune section'
expect 1 "$run" --tune --case=3 "$work/rows.yaml"
says 'there is no such case: the spec has 2'
sed 's/elements <= 1024/X/; s/budget: 100/budget: 0/' "$work/rows.yaml" >"$work/wrong.yaml"
expect 1 "$run" --tune "$work/wrong.yaml"
says 'wrong.yaml:.*TL0706'
sed 's/elements <= 1024/elemnts <= 1024/' "$work/rows.yaml" >"$work/wrong.yaml"
expect 1 "$run" --tune "$work/wrong.yaml"
says 'wrong.yaml:[0-9]*:7: error: unknown param or let `elemnts`'

# Without a GPU: compiled and checked. `where` leaves 36, one of them as written.
expect 0 "$run" --tune --case=1 --json="$work/emu.json" "$work/rows.yaml"
says '^device: the emulator'
says '^rows 1/2 {M: 1024, N: 192}: up to 35 of 48 configurations$'
says '^  as written: rows=8 width=32 repeat=1 threads=64  right$'
says '^  rows=4 width=16 repeat=1 threads=64  right$'
says 'rows=4 width=128 repeat=1 threads=64  excluded by `requires`: '
says 'rows=8 width=32 repeat=1000 threads=128  needs more than the target has: .*\[TL0640\]'
says '48 configurations, 18 right, 12 excluded by `where`, 6 excluded by `requires`, 12 that need more than the target has$'
says '^nothing was timed: there is no GPU$'
grep -q '"left_out": 0, ' "$work/emu.json" || fail "JSON counts"
grep -q '"best": null' "$work/emu.json" || fail "nothing is best"

# With a clock: ten nanoseconds a block, so the fewest blocks win: 64 by 3 of 16 by 64.
TL_CUDA_DRIVER=$fakes/libfake_cuda.so
TL_FAKE_CUDA_BLOCK_NS=10
export TL_FAKE_CUDA_BLOCK_NS
expect 0 "$run" --tune --rounds=2 --json="$work/gpu.json" "$work/rows.yaml"
says '^device: Fake GPU'
says '^  as written: rows=8 width=32 repeat=1 threads=64  7.680 / 7.680 us'
says '^  rows=4 width=16 repeat=1 threads=64  30.72 / 30.72 us'
says '^  1. 1.920 / 1.920 us, x4.000  rows=16 width=64 repeat=1 threads=64$'
says '^best: -D rows=16 -D width=64 -D repeat=1 -D threads=64$'
says '^rows 2/2 {M: 512, N: 384}: 48 configurations'
grep -q '"best": "-D rows=16 -D width=64 -D repeat=1 -D threads=64"' "$work/gpu.json" || fail "the best in JSON"
grep -q '"outcome": "limit"' "$work/gpu.json" || fail "limits in JSON"
# A -D fixes a value; the budget chooses, the same ones each time.
expect 0 "$run" --tune --case=1 -D width=64 -D threads=128 --budget=1 "$work/rows.yaml"
says '^rows 1/2 .*: up to 1 of 6 configurations$'
says '^  as written: rows=8 repeat=1  '
says 'left out by the budget$'
says '^best: '
cp "$work/out" "$work/first"
expect 0 "$run" --tune --case=1 -D width=64 -D threads=128 --budget=1 "$work/rows.yaml"
cmp -s "$work/out" "$work/first" || fail "another run chooses otherwise"
# `persistent` and `fast_math` are configurations of their own: 8, one of them as written.
sed '/^tune:/,$d' "$work/rows.yaml" >"$work/keys.yaml"
printf 'tune:\n  persistent: [auto, true]\n  fast_math: [false, true]\n  threads: [64, 128]\n' >>"$work/keys.yaml"
expect 0 "$run" --tune --case=1 --no-check --rounds=1 "$work/keys.yaml"
says '^rows 1/2 .*: up to 7 of 8 configurations$'
says '^  as written: persistent=auto fast_math=false threads=64  .* us'
says '^  persistent=true fast_math=false threads=64  .* us'
says '^  persistent=auto fast_math=true threads=64  .* us'
# Alone too: the spec as written is one of the two.
sed '/^tune:/,$d' "$work/rows.yaml" >"$work/alone.yaml"
printf 'tune:\n  persistent: [auto, true]\n' >>"$work/alone.yaml"
expect 0 "$run" --tune --case=1 --no-check --rounds=1 "$work/alone.yaml"
says '^rows 1/2 .*: up to 1 of 2 configurations$'
says '^  as written: persistent=auto  .* us'
says '^  persistent=true  .* us'

# JSON alone on standard output.
expect 0 "$run" --tune --case=1 --budget=1 --json "$work/rows.yaml"
head -c 12 "$work/out" | grep -q '^{"format": 1' || fail "standard output is not JSON only"

# Wrong results are not timed, and are told.
sed 's/X\[m, n\] = X\[m, n\]$/X[m, n] = X[m, n] + 1/' "$work/rows.yaml" >"$work/off.yaml"
expect 1 "$run" --tune --case=1 --budget=1 "$work/off.yaml"
says '  as written: .*  WRONG RESULTS: FAILED X: '
says 'with WRONG RESULTS'
expect 0 "$run" --tune --case=1 --budget=1 --no-check "$work/off.yaml"
says '(not checked)$'

# The library's matmul as it is.
TL_CUDA_DRIVER=$work/none.so
expect 0 "$run" --tune --case=1 --budget=1 --no-check kernels/matmul.yaml
says '^matmul 1/3 .*: up to 1 of 216 configurations$'
finish
