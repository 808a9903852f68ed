# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tl-run --bench over the fake driver. Usage: tl_run_bench.sh BIN FAKES
. "$(dirname "$0")/../tools/lib.sh"
run=$bin/tl-run
fakes=$2

# Without a device.
TL_CUDA_DRIVER=$work/none.so
export TL_CUDA_DRIVER
expect 77 "$run" --bench kernels/vector_add.yaml
says 'cannot be loaded'
expect 77 "$run" --bench --device=emu kernels/vector_add.yaml
says 'benchmarks need a GPU'
# Usage.
expect 2 "$run" --json kernels/vector_add.yaml
expect 2 "$run" --bench --check kernels/vector_add.yaml
expect 2 "$run" --bench --fail-below=0.9 kernels/vector_add.yaml
expect 2 "$run" --bench --fail-below=fast --compare=x kernels/vector_add.yaml
expect 2 "$run" --bench --peer=mkl kernels/vector_add.yaml
expect 2 "$run" --bench --cublaslt=x kernels/vector_add.yaml
expect 2 "$run" --bench --rounds=0 kernels/vector_add.yaml

TL_CUDA_DRIVER=$fakes/libfake_cuda.so
sed '/^bench:/,$d' kernels/matmul.yaml >"$work/args.yaml"
printf 'bench:\n  cases:\n    - {M: 512, N: 512, K: 256}\n    - {M: 256, N: 128, K: 64}\n' >>"$work/args.yaml"
sed '/^  cases:$/,/^tune:/{s/{M: 4096, N: 4096, K: 4096}/{M: 512, N: 512, K: 256}/;/8192/d}' kernels/matmul.yaml \
  >"$work/matmul.yaml"

# 10 us a launch: 2 * 512 * 512 * 256 / 10 us is 13.42 TFLOP/s; 786432 bytes are 78.6 GB/s.
expect 0 "$run" --bench --no-check --rounds=3 --json="$work/old.json" "$work/matmul.yaml"
says '^device: Fake GPU (sm_90, 132 SMs)$'
says '^L2 cache 1 MiB; peaks: f16 mma 989.4 TFLOP/s (4096 a clock and SM, 132 SMs, 1830 MHz)'
says '^matmul 1/1 {M: 512, N: 512, K: 256} sm_90a: cold 10.00 / 10.00 us, 13.42 / 13.42 TFLOP/s, 104.9 / 104.9 GB/s'
says 'warm 10.00 / 10.00 us; copy 4000 / 4000 GB/s'
says 'not checked (as asked)'
grep -q '"graph": true' "$work/old.json" || fail "no graphs"
# Without flops and bytes: the bytes of the arguments.
expect 0 "$run" --bench --no-check --rounds=1 --case=2 "$work/args.yaml"
says '^matmul 2/2 .* GB/s of arguments'
expect 1 "$run" --bench --no-check --rounds=1 --case=3 "$work/args.yaml"
says 'there is no such case: the spec has 2'
# The fake computes nothing: a small case is checked and found wrong.
expect 1 "$run" --bench --rounds=1 "$work/matmul.yaml"
says 'WRONG RESULTS'

# Comparison: twice as slow.
TL_FAKE_CUDA_SCALE=2
export TL_FAKE_CUDA_SCALE
expect 0 "$run" --bench --no-check --rounds=1 --compare="$work/old.json" "$work/matmul.yaml"
says '^matmul {M: 512, N: 512, K: 256}: cold x0.500 / x0.500 warm x0.500 / x0.500'
expect 1 "$run" --bench --no-check --rounds=1 --compare="$work/old.json" --fail-below=0.9 "$work/matmul.yaml"
says 'the least ratio is 0.500, below 0.900'
expect 0 "$run" --bench --no-check --rounds=1 --compare="$work/old.json" --fail-below=0.4 "$work/matmul.yaml"
expect 0 "$run" --bench --no-check --rounds=1 --compare="$work/old.json" -D block_K=32 "$work/matmul.yaml"
says 'not in the earlier run'
echo '{' >"$work/bad.json"
expect 1 "$run" --bench --compare="$work/bad.json" "$work/matmul.yaml"
says 'bad.json: line'
# Files that never end.
expect 1 timeout 60 "$run" --bench --compare=/dev/zero "$work/matmul.yaml"
says "'/dev/zero' is larger than the limit of 67108864 bytes"
ln -s /dev/zero "$work/zero.ptx"
expect 1 timeout 60 "$run" "$work/zero.ptx"
says "zero.ptx' is larger than the limit of 67108864 bytes"
unset TL_FAKE_CUDA_SCALE

# JSON alone on standard output.
expect 0 "$run" --bench --no-check --rounds=1 --json "$work/matmul.yaml"
head -c 12 "$work/out" | grep -q '^{"format": 1' || fail "standard output is not JSON only"

# A driver without graphs.
TL_CUDA_DRIVER=$fakes/libfake_cuda_old.so
expect 0 "$run" --bench --no-check --rounds=1 "$work/matmul.yaml"
says 'without graphs'
TL_CUDA_DRIVER=$fakes/libfake_cuda.so

# A chain: its three launches together, with its own bytes.
expect 0 "$run" --bench --rounds=2 --no-check "$(dirname "$0")/../spec/check/chains.yaml" --kernel=mlp
says 'mlp 1/1 {} sm_90a: cold 30.00 / 30.00 us'

# The peer: the best of its choices takes 20 us.
expect 0 "$run" --bench --no-check --rounds=2 --peer=cublaslt --cublaslt="$fakes/libfake_cublaslt.so" "$work/matmul.yaml"
says 'cuBLASLt 13.1.2 20.00 / 20.00 us, x2.000 / x2.000 (warm x2.000)'
# B[n, k].
sed -e 's/A\[m, k\] \* B\[k, n\]/B[n, k] * A[m, k]/' -e 's/B: in dtype\[K, N\]/B: in dtype[N, K]/' \
  -e 's/copy: B\[ko \* block_K, bx \* block_N\]/copy: B[bx * block_N, ko * block_K]/' \
  -e 's/B_s: dtype\[block_K, block_N\]/B_s: dtype[block_N, block_K]/' -e 's/A_s @ B_s/A_s @ B_s.T/' "$work/matmul.yaml" \
  >"$work/nt.yaml"
expect 0 "$run" --bench --no-check --rounds=1 --peer=cublaslt --cublaslt="$fakes/libfake_cublaslt.so" "$work/nt.yaml"
says 'cuBLASLt 13.1.2 20.00 / 20.00 us'
expect 0 "$run" --bench --no-check --rounds=1 --peer=cublaslt --cublaslt="$fakes/libfake_cublaslt.so" -D N=65536 kernels/vector_add.yaml
says 'cuBLASLt 13.1.2: the reference does not assign a matrix'
expect 1 "$run" --bench --peer=cublaslt --cublaslt="$work" "$work/matmul.yaml"
says 'cuBLASLt cannot be loaded'
finish
