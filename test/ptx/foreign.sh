#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# PTX of nvcc (test/ptx/foreign): kernels that are right give their results and no finding; each planted mistake is found, with its
# line. Usage: foreign.sh TL_RUN FOLDER
run=$1
folder=$2
failed=0
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT

# right KERNEL 'what it prints' OPTIONS…
right() {
  kernel=$1 wanted=$2
  shift 2
  for seed in 0 3; do
    "$run" "$folder/right.ptx" --device=emu --kernel="$kernel" --seed="$seed" "$@" >"$out" 2>&1 && grep -qF "$wanted" "$out" && continue
    echo "$kernel, seed $seed: expected '$wanted'"
    cat "$out"
    failed=1
  done
}

# wrong KERNEL 'a pattern of the finding' OPTIONS…
wrong() {
  kernel=$1 wanted=$2
  shift 2
  "$run" "$folder/wrong.ptx" --device=emu --kernel="$kernel" "$@" >"$out" 2>&1
  code=$?
  [ "$code" = 1 ] && grep -qE "$wanted" "$out" && return
  echo "$kernel: exit code $code, expected '$wanted'"
  cat "$out"
  failed=1
}

f='f32[1024]'
right saxpy 'y: f32[1000], min 3, max 3, mean 3' --grid=4 --block=256 --arg 'x=in f32[1000]' --arg 'y=inout f32[1000]' --arg 'a=f32 2' --arg 'n=i32 1000' --in x=ones --in y=ones
right block_sum 'y: f32[4], min 244, max 256, mean 253' --grid=4 --block=256 --arg 'x=in f32[1012]' --arg 'y=out f32[4]' --arg 'n=i32 1012' --in x=ones
right warp_sum 'y: f32[8], min 64, max 64, mean 64' --grid=8 --block=32 --arg 'x=in f32[256]' --arg 'y=out f32[8]' --in x=2
right transpose 'y: f32[40, 20], min 0, max 799, mean 399.5' --grid=3,2 --block=16,16 --arg 'x=in f32[20, 40]' --arg 'y=out f32[40, 20]' --arg 'w=i32 40' --arg 'h=i32 20' --in 'x=arange(0, 1)'
right histogram 'bins: i32[16], min 62, max 63, mean 62.5' --grid=3 --block=64 --arg 'x=in i32[1000]' --arg 'bins=inout i32[16]' --arg 'n=i32 1000' --in 'x=arange(0, 1)' --in bins=zeros
right scan 'y: i32[128], min 1, max 128, mean 64.5' --grid=1 --block=128 --shared=1024 --arg 'x=in i32[128]' --arg 'y=out i32[128]' --in x=ones
right stencil 'y: f32[300], min -300, max 1, mean -0.996667' --grid=2 --block=256 --arg 'x=in f32[300]' --arg 'y=out f32[300]' --arg 'n=i32 300' --in 'x=arange(0, 1)'
right last_block 'y: f32[1], min 64, max 64, mean 64' --grid=8 --block=32 --arg 'x=in f32[64]' --arg 'parts=out f32[8]' --arg 'y=out f32[1]' --in x=ones
right matmul 'c: f32[32, 32], min 32, max 32, mean 32' --grid=2,2 --block=16,16 --arg 'a=in f32[32, 32]' --arg 'b=in f32[32, 32]' --arg 'c=out f32[32, 32]' --arg 'n=i32 32' --in a=ones --in b=ones
right pipeline 'y: f32[3, 64, 4], min 0, max 767, mean 383.5' --grid=1 --block=64 --arg 'x=in f32[3, 64, 4]' --arg 'y=out f32[3, 64, 4]' --arg 'n=i32 3' --in 'x=arange(0, 1)'
right mixed 'y: f32[100], min -2, max 36, mean 7.01' --grid=1 --block=128 --arg 'x=in f32[100]' --arg 'y=out f32[100]' --arg 'n=i32 100' --in x=2

wrong saxpy_unguarded 'wrong.cu:7: out of bounds: .* 4 bytes' --grid=4 --block=256 --arg 'x=in f32[1000]' --arg 'y=inout f32[1000]' --arg 'a=f32 2' --in x=ones --in y=ones
wrong block_sum_unsynchronised 'wrong.cu:16: race: ' --grid=1 --block=256 --arg 'x=in f32[256]' --arg 'y=out f32[1]' --in x=ones
wrong transpose_unsynchronised 'wrong.cu:24: race: ' --grid=1 --block=16,16 --arg 'x=in f32[256]' --arg 'y=out f32[256]' --arg 'w=i32 16' --in x=ones
wrong histogram_plain 'wrong.cu:28: race between blocks: ' --grid=4 --block=1 --arg 'x=in i32[4]' --arg 'bins=inout i32[16]' --in x=ones --in bins=zeros
wrong histogram_plain 'wrong.cu:28: race: ' --grid=1 --block=32 --arg 'x=in i32[32]' --arg 'bins=inout i32[16]' --in x=ones --in bins=zeros
wrong scan_single_buffer 'wrong.cu:37: race: ' --grid=1 --block=128 --arg 'x=in i32[128]' --arg 'y=out i32[128]' --in x=ones
wrong stencil_edge 'wrong.cu:45: out of bounds: .* reads 4 bytes' --grid=1 --block=64 --arg 'x=in f32[64]' --arg 'y=out f32[64]' --arg 'n=i32 64' --in x=ones
wrong last_block_unfenced 'wrong.cu:5[0-9]: race between blocks: ' --grid=4 --block=32 --arg 'x=in f32[4]' --arg 'parts=out f32[4]' --arg 'y=out f32[1]' --in x=ones
wrong uninitialised 'wrong.cu:65: uninitialised read: ' --grid=1 --block=64 --arg 'y=out f32[64]'
wrong pipeline_unawaited 'wrong.cu:74: race: ' --grid=1 --block=64 --arg "x=in $f" --arg "y=out $f" --in x=ones
wrong shared_overrun 'wrong.cu:79: out of bounds: .* shared memory' --grid=1 --block=32 --shared=128 --arg 'x=in i32[32]' --arg 'y=out i32[32]' --in x=ones
wrong divergent_barrier 'deadlock|divergence|different' --grid=1 --block=64 --arg 'y=out i32[64]'
wrong misaligned 'wrong.cu:90: misaligned access: ' --grid=1 --block=1 --arg "x=in $f" --arg 'y=out f32[1]' --in x=ones
wrong variable_overrun 'wrong.cu:97: out of bounds: ' --grid=1 --block=16 --arg 'y=out i32[16]' --arg 'n=i32 16'
# The launches of more.yaml, which says what comes out of each.
for seed in 0 3; do
  "$run" "$folder/more.ptx" --device=emu --seed="$seed" >"$out" 2>&1 && [ "$(grep -c 'worst error' "$out")" = 12 ] && continue
  echo "more.yaml, seed $seed:"
  cat "$out"
  failed=1
done
# What libraries make, by their launch files: FILE, and how many outputs are compared.
libraries() {
  for seed in 0 3; do
    "$run" "$folder/$1.ptx" --device=emu --seed="$seed" >"$out" 2>&1 && [ "$(grep -c 'worst error' "$out")" = "$2" ] && continue
    echo "$1.yaml, seed $seed:"
    cat "$out"
    failed=1
  done
}
libraries api 17
libraries hopper 3
libraries wide 2

# wrong_launch KERNEL 'a pattern of the finding': as more_wrong.yaml says
wrong_launch() {
  "$run" "$folder/more_wrong.ptx" --device=emu --kernel="$1" >"$out" 2>&1
  code=$?
  [ "$code" = 1 ] && grep -qE "$2" "$out" && return
  echo "$1: exit code $code, expected '$2'"
  cat "$out"
  failed=1
}
wrong_launch compact_plain 'more_wrong.cu:1[34]: race between blocks: '
wrong_launch sort_unsynchronised 'more_wrong.cu:(28|29|30|31): race: '
wrong_launch scan_without_barrier 'more_wrong.cu:4[67]: race: '
wrong_launch project_unguarded 'more_wrong.cu:53: out of bounds: .* reads 4 bytes'
wrong_launch shuffle_partly 'shfl'
wrong_launch local_overrun 'more_wrong.cu:[67][0-9]: out of bounds: .* of a local variable of 64 bytes'
wrong_launch local_unwritten 'more_wrong.cu:[78][0-9]: uninitialised read: .* byte 0 of a local variable of 64 bytes'
wrong_launch flag_of_block 'a scope that holds both blocks'
wrong_launch last_block_fenced_narrowly 'more_wrong.cu:[0-9]*: race between blocks: .* at parts'
wrong_launch last_above 'race: .* writes 4 bytes at found'
# By the letter the same value from several threads is a race, and the copy engine must be told of an mbarrier.
"$run" "$folder/more.ptx" --device=emu --kernel=any_above --sanitize=all >"$out" 2>&1
[ "$(grep -c ': race' "$out")" -ge 2 ] || { echo 'any_above, --sanitize=all:'; cat "$out"; failed=1; }
"$run" "$folder/hopper.ptx" --device=emu --kernel=memcpy_async --sanitize=all >"$out" 2>&1
grep -q 'does not know of the mbarrier' "$out" || { echo 'memcpy_async, --sanitize=all:'; cat "$out"; failed=1; }
wrong_launch halves_misaligned 'misaligned access: '
exit $failed
