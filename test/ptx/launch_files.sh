#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Launch files: each mistake has a message with its place. Usage: launch_files.sh TL_RUN
run=$1
failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-launch.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
cat >"$work/k.ptx" <<'PTX'
.version 8.0
.target sm_80
.address_size 64
.visible .entry double_it(.param .u64 x, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p, %r2, %r1;
  @%p ret;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
  mul.f32 %f2, %f1, %f1;
  add.f32 %f1, %f2, %f1;
  st.global.f32 [%rd1], %f1;
  ret;
}
PTX

# says 'what is printed' EXIT_CODE 'the launch file' OPTIONS…
says() {
  wanted=$1 code=$2 text=$3
  shift 3
  printf '%s\n' "$text" >"$work/k.yaml"
  "$run" "$work/k.ptx" --device=emu "$@" >"$work/log" 2>&1
  got=$?
  [ "$got" = "$code" ] && grep -qF -- "$wanted" "$work/log" && return
  echo "exit code $got, expected $code and '$wanted', of"
  cat "$work/k.yaml" "$work/log"
  failed=1
}
args='args: {x: "inout f32[8]", n: i32 8}'
good="{grid: 1, block: 32, $args, inputs: {x: 2}, expected: {x: 6}}"
says 'x: f32[8], worst error 0' 0 "$good"
says 'x: f32[8], worst error 0' 0 "{grid: 1, block: 32, $args, inputs: {x: [[2, 2], [2, 2], [1, 1], [1, 1]]}, expected: {x: [6, 6, 6, 6, 2, 2, 2, 2]}}"
says 'x: f32[8], worst error 0' 0 "$good" --contract=on
says 'fused where it is open:' 0 "$good" --contract=both
# x · x + x at -(1 + 2^-12): one rounding of two is the difference.
open="grid: 1, block: 32, $args, inputs: {x: -1.000244140625}"
says 'x: f32[8], worst error 0' 0 "{$open, expected: {x: 0.000244140625}}"
says 'x: f32[8], worst error 0' 0 "{$open, expected: {x: 0.000244200229644775390625}}" --contract=on
says '8 of 8 elements wrong' 1 "{$open, expected: {x: 0.000244140625}}" --contract=both
says 'expected 5' 1 "{grid: 1, block: 32, $args, inputs: {x: 2}, expected: {x: 5}}"
says 'x: f32[8], worst error 1' 0 "{grid: 1, block: 32, $args, inputs: {x: 2}, expected: {x: 5}, tolerance: {atol: 1}}"
says 'out of bounds' 1 '{grid: 1, block: 32, args: {x: "inout f32[8]", n: i32 9}, inputs: {x: 2}}'
says "k.yaml:1:2: error: there is no key 'gird'" 1 "{gird: 1, block: 32, $args}"
says 'k.yaml:1:1: error: a launch says its grid' 1 "{block: 32, $args}"
says 'error: grid is a whole number of 0 to 2147483647' 1 "{grid: many, block: 32, $args}"
says 'error: grid is at least 1' 1 "{grid: 0, block: 32, $args}"
says 'error: block has one to three numbers' 1 "{grid: 1, block: [1, 2, 3, 4], $args}"
says 'says how many threads a block has' 1 "{grid: 1, $args}"
says 'error: x: a pointer says how much it points at' 1 '{grid: 1, block: 32, args: {x: inout f32, n: i32 8}}'
says 'error: x: there is no such element type' 1 '{grid: 1, block: 32, args: {x: "inout g32[8]", n: i32 8}}'
says "error: n: the kernel's parameter 'n' has 4 bytes" 1 '{grid: 1, block: 32, args: {x: "inout f32[8]", n: i64 8}}'
says 'error: n: the kernel'"'"'s parameter is an integer' 1 '{grid: 1, block: 32, args: {x: "inout f32[8]", n: f32 8}}'
says 'an array of more than 2^40 elements' 1 '{grid: 1, block: 32, args: {x: "inout f32[99999999999999]", n: i32 8}}'
says "there is no kernel 'doubled': the PTX has double_it" 1 "{kernel: doubled, grid: 1, block: 32, $args}"
says 'the kernel has 2 parameters; 1 arguments were given (--arg, or args of a launch file): .u64 x, .u32 n' 1 '{grid: 1, block: 32, args: {x: "inout f32[8]"}}'
says "error: inputs: there is no argument 'y'" 1 "{grid: 1, block: 32, $args, inputs: {y: 2}}"
says "error: expected: there is no argument 'y'" 1 "{grid: 1, block: 32, $args, inputs: {x: 1}, expected: {y: 2}}"
says "error: expected: 'n' is no output" 1 "{grid: 1, block: 32, $args, inputs: {x: 1}, expected: {n: 2}}"
says 'error: tolerance has rtol and atol' 1 "{grid: 1, block: 32, $args, tolerance: {tol: 1}}"
says 'error: a tolerance is a number that is not negative' 1 "{grid: 1, block: 32, $args, tolerance: {rtol: -1}}"
says 'error: inputs is a mapping from names' 1 "{grid: 1, block: 32, $args, inputs: [1]}"
says 'error: a struct has fields' 1 '{grid: 1, block: 32, args: {x: {}, n: i32 8}}'
says 'error: a launch is a mapping from names' 1 '[1, 2]'
says "no launch of 'other'" 1 "{kernel: double_it, grid: 1, block: 32, $args}" --kernel=other
says '--arg, --grid, --block, --cluster and --shared go without a launch file' 1 "$good" --launch="$work/k.yaml" --grid=2
rm "$work/k.yaml"
# refuses 'what is printed' OPTIONS…
refuses() {
  wanted=$1
  shift
  "$run" "$work/k.ptx" --device=emu "$@" >"$work/log" 2>&1 || { grep -qF -- "$wanted" "$work/log" && return; }
  echo "expected '$wanted' of $*"
  cat "$work/log"
  failed=1
}
for extent in 4,,2 -4 4,0 4, 1,2,3,4 0 x; do refuses 'an extent is X, X,Y or X,Y,Z' --grid="$extent" --block=32; done
refuses 'the kernel has 2 parameters; 0 arguments were given' --block=32
refuses 'says how many blocks are launched' --block=32 --arg 'x=inout f32[8]' --arg 'n=i32 8'
# 64-bit integers are compared as such; a struct's array; the cluster that the kernel says.
cat >"$work/k.ptx" <<'PTX'
.version 8.0
.target sm_90
.address_size 64
.visible .entry fields(.param .u64 y, .param .align 8 .b8 p[16]) .reqnctapercluster 2, 1, 1
{
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [y];
  ld.param.s16 %rd2, [p+10];
  ld.param.u64 %rd3, [p];
  add.u64 %rd2, %rd2, %rd3;
  st.global.u64 [%rd1], %rd2;
  ret;
}
PTX
fields='block: 1, args: {y: "out i64[1]", p: {a: i64 9007199254740993, h: i16 1 7}}'
says 'y: i64[1], worst error 0' 0 "{grid: 2, $fields, expected: {y: 9007199254741000}}" --sanitize=bounds
says '1 of 1 elements wrong' 1 "{grid: 2, $fields, expected: {y: 9007199254741001}}" --sanitize=bounds
says 'the kernel takes clusters of 2,1,1 blocks' 1 "{grid: 4, cluster: 4, $fields}"
says 'has its values one behind the other' 1 '{grid: 2, block: 1, args: {y: "out i64[1]", p: {a: i64 1, h: "i16[2]"}}}'
rm "$work/k.yaml"
"$run" "$work/k.ptx" --device=emu >"$work/log" 2>&1 && { echo 'ran without a launch file'; failed=1; }
exit $failed
