# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
. "$(dirname "$0")/lib.sh"
run=$bin/tl-run

expect 0 "$run" --version
says '^tl-run '
expect 2 "$run"
expect 2 "$run" --device=tpu kernels/vector_add.yaml
expect 2 "$run" --landing=never kernels/vector_add.yaml
expect 2 "$run" --case=0 --check kernels/vector_add.yaml
expect 2 "$run" --case=1 kernels/vector_add.yaml
expect 2 "$run" --in A kernels/vector_add.yaml

# Checks in the emulator.
expect 0 "$run" --check --device=emu --case=1 --case=3 --threads=2 kernels/vector_add.yaml
says '^device: the emulator (late landing)$'
says 'vector_add: 2 of 2 cases passed'
expect 2 "$run" --landing=both -D N=9 kernels/vector_add.yaml
expect 1 "$run" "$work/none.ptx"
says 'none.ptx'
expect 0 "$run" --check --device=emu --landing=both --case=2 kernels/matmul.yaml
says '^device: the emulator (late and early landing)$'
says '^  late: C: '
says '^  early: C: '
expect 1 "$run" --check --device=emu --case=9 kernels/vector_add.yaml
says 'there is no such case: the spec has 3'

# A wrong kernel fails, names the worst element and can be dumped.
sed 's/B\[bx \* block + i\]/2 * B[bx * block + i]/' kernels/vector_add.yaml >"$work/wrong.yaml"
expect 1 "$run" --check --device=emu --case=1 --dump-dir="$work" "$work/wrong.yaml"
says 'FAILED C: f32\[1\], 1 of 1 elements wrong, worst error'
[ -s "$work/vector_add.case1.C.reference.npy" ] && [ -s "$work/vector_add.case1.A.in.npy" ] || fail "--dump-dir wrote nothing"
expect 1 "$run" --check --device=emu --case=1 --dump-dir="$work/made" "$work/wrong.yaml"
[ -s "$work/made/vector_add.case1.C.reference.npy" ] || fail "--dump-dir made no directory"
expect 1 "$run" --check --device=emu --case=1 --dump-dir="$work/no/such" "$work/wrong.yaml"
says "^  cannot dump: cannot make the directory '.*/no/such': No such file or directory$"
# Writes out of bounds are caught.
sed 's/C\[bx \* block + i\] = .*/C[bx * block + i] = A[bx * block + i]/' kernels/vector_add.yaml >"$work/copy.yaml"
expect 1 "$run" --check --device=emu --case=2 "$work/copy.yaml"
# Blocks that wait for later ones run when all of them are resident.
sed 's/flag\[t\] == bx/flag[t] == G - 1 - bx/' test/pipeline/waits_for_blocks.yaml >"$work/waits.yaml"
expect 0 "$run" --check --device=emu --threads=1 --resident=4 "$work/waits.yaml"
expect 1 "$run" --check --device=emu --threads=1 --resident=2 --timeout=1.5 --case=1 "$work/waits.yaml"
says 'block (2, 0, 0) is not resident: 2 of 4 blocks were begun'
expect 2 "$run" --check --device=emu --resident=0 "$work/waits.yaml"
# An output without a reference is an error of the spec.
sed 's/^    - C\[i\] = .*/    - T[i] = A[i]/' kernels/vector_add.yaml >"$work/unassigned.yaml"
expect 1 "$run" --check --device=emu "$work/unassigned.yaml"
says 'TL0752'

# One launch; the shape of a .npy input determines a dynamic name.
expect 0 "$run" --device=emu -D N=100 --in A=ones --in 'B=const(2)' --out "C=$work/c.npy" kernels/vector_add.yaml
says '^C: f32\[100\], min 3, max 3, mean 3$'
expect 0 "$run" --device=emu --in "A=$work/c.npy" --in B=arange kernels/vector_add.yaml
says '^C: f32\[100\], min 3, max 102, mean 52.5$'
expect 1 "$run" --device=emu --in A=ones kernels/vector_add.yaml
says "the dynamic param 'N' has no value: give -D N="
expect 1 "$run" --device=emu --in "C=$work/c.npy" --in Q=ones kernels/vector_add.yaml
says 'Q: the kernel has no such argument'
expect 1 "$run" --device=emu --in "A=$work/c.npy" kernels/matmul_dynamic.yaml
says '--in A: the argument has 2 dims, the file has 1'
# A file by its name, which is no .npy, is not read as an expression.
for other in kernels/vector_add.yaml /dev/zero; do
  expect 1 "$run" --device=emu -D N=9 --in "A=$other" kernels/vector_add.yaml
  says "--in A: '$other' is no .npy file by its name"
done
expect 1 "$run" --device=emu -D N=9 --in 'A=const' kernels/vector_add.yaml
says 'const takes 1 argument, given 0'
expect 1 "$run" --device=emu -D N=9 --out C=/dev/full kernels/vector_add.yaml
says "^tl-run: cannot write '/dev/full'"
expect 1 "$run" --device=emu -D N=100 --in Q=ones kernels/vector_add.yaml
says 'no such argument'
expect 1 "$run" --device=emu -D N=100 --in "A=$work/none.npy" kernels/vector_add.yaml
expect 1 "$run" --device=emu -D N=99 --in "A=$work/c.npy" kernels/vector_add.yaml
says 'expected f32\[99\], the file holds f32\[100\]'
expect 0 "$run" --device=emu -D N=0 kernels/vector_add.yaml

# PTX with its manifest; PTX that has none, whose launch the options say, and what they lack.
"$bin/tl-llc" kernels/vector_add.yaml -o "$work/v.ptx" || fail "tl-llc"
expect 0 "$run" --device=emu -D N=100 --in A=ones --in B=ones --sanitize=all "$work/v.ptx"
says '^C: f32\[100\], min 2, max 2, mean 2$'
grep -v '^//' "$work/v.ptx" >"$work/bare.ptx"
expect 1 "$run" --device=emu "$work/bare.ptx"
bare() { expect "$1" "$run" --device=emu "$work/bare.ptx" --in A=ones --in B=ones --arg 'A=in f32[100]' --arg 'B=in f32[100]' --arg 'C=out f32[100]' "$2" "$3"; }
bare 0 --grid=1 '--arg=N=i32 100'
says '^C: f32\[100\], min 2, max 2, mean 2$'
bare 1 --grid=1 '--arg=N=i64 100'
says "the kernel's parameter 'vector_add_param_3' has 4 bytes"
bare 1 --grid=1 '--arg=N=i32'
says 'a value is given'
bare 1 --grid=1 --seed=2
says 'the kernel has 4 parameters; 3 arguments were given'
bare 1 --seed=2 '--arg=N=i32 100'
says 'says how many blocks are launched'
bare 1 --grid=1 '--arg=N=x32 100'
says 'there is no such element type'
bare 2 --grid=0 '--arg=N=i32 100'
expect 1 "$run" --device=emu "$work/bare.ptx" --grid=1 --kernel=none --arg A=f32
says "there is no kernel 'none': the PTX has vector_add"
expect 1 "$run" --check "$work/v.ptx"

# One run of a chain, and a step whose result is not finished: what it reads is known to be unwritten.
chains=$2/test/spec/check/chains.yaml
expect 0 "$run" "$chains" --kernel=twice --device=emu -D R=8 --in A=1.5 --out B="$work/b.npy"
says 'B: f32\[8, 24\], min 3.5, max 3.5'
sed '/part(A, B=T/d' "$chains" >"$work/half.yaml"
expect 1 "$run" --check "$work/half.yaml" --kernel=halves --device=emu
says 'step 2, .add_rows.'
expect 1 "$run" "$chains" --kernel=twice --device=emu -D R=4
says 'not a multiple of 8'

# The watchdog ends one long block, and a launch of too many short ones; what went wrong is said without --check too.
endless() {
  printf 'kernel: endless\nargs: {B: "inout i32[128]"}\nthreads: 128\n%s\n' "$1" >"$work/endless.yaml"
  expect 1 timeout 60 "$run" "$work/endless.yaml" --device=emu --timeout=1
}
endless 'body:
  - for: u in 2000000000
    do:
      - parallel: i in 128
        do: B[i] = B[i] * 3 + u'
says 'still running after 1 s'
endless 'grid: {bx: 2**31 - 1}
body:
  - parallel: i in 128
    do: B[i] = i'
says 'blocks were begun within 1 s'
endless 'grid: {bx: 2}
body:
  - wait_until: B[0] == 1 + bx
  - parallel: i in 128
    do: B[i] = i'
says 'still running after 1 s (livelock?)'
says 'warp 0 lanes 1-31 wait at .* (call [0-9]*, endless.yaml:6)'
# --require: what a compile must have got, as of tl-llc; a PTX file has been compiled.
expect 1 "$run" --check --device=emu --case=1 --target=sm_80 --require=tma,wgmma kernels/matmul.yaml
says 'this gemm does not run on wgmma, as --require=wgmma asks \[TL0617\]'
expect 0 "$run" --check --device=emu --case=1 --target=sm_90a --require=tma,wgmma kernels/matmul.yaml
expect 1 "$run" --device=emu --target=sm_80 --require=tma kernels/matmul.yaml -D M=64 -D N=64 -D K=64
says 'this copy does not go by TMA, as --require=tma asks \[TL0617\]'
expect 2 "$run" --check --device=emu --require=speed kernels/matmul.yaml
TL_PTXAS=/no/such/ptxas expect 1 "$run" --check --device=emu --case=1 --require=no-spill kernels/vector_add.yaml
says 'ptxas'
"$bin/tl-llc" kernels/vector_add.yaml -o "$work/required.ptx" || fail "tl-llc"
expect 1 "$run" --device=emu --require=tma "$work/required.ptx"
says '^tl-run: --require needs the spec'
finish
