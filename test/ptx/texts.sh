#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Short kernels in PTX for what compilers rarely write. Usage: texts.sh TL_RUN
run=$1
failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-texts.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT

# gives 'what is printed' EXIT_CODE 'x of every thread' 'x afterwards' 'statements that change %f1' OPTIONS…
gives() {
  wanted=$1 code=$2 input=$3 output=$4 statements=$5
  shift 5
  cat >"$work/k.ptx" <<PTX
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x)
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
$statements
  st.global.f32 [%rd1], %f1;
  ret;
}
PTX
  printf '{grid: 1, block: 32, args: {x: "inout f32[32]"}, inputs: {x: %s}, expected: {x: %s}}\n' "$input" "$output" >"$work/k.yaml"
  "$run" "$work/k.ptx" --device=emu "$@" >"$work/log" 2>&1
  got=$?
  [ "$got" = "$code" ] && grep -qF -- "$wanted" "$work/log" && return
  echo "exit code $got, expected $code and '$wanted', of"
  cat "$work/k.ptx" "$work/k.yaml" "$work/log"
  failed=1
}
exact='x: f32[32], worst error 0'

# Differences that are contracted: x · x - x and x - x · x at 1 + 2^-12, which one rounding of two changes.
x=1.000244140625
gives "$exact" 0 $x 0.0002441406250 '  mul.f32 %f2, %f1, %f1;  sub.f32 %f1, %f2, %f1;' --contract=off
gives "$exact" 0 $x 0.000244200229644775390625 '  mul.f32 %f2, %f1, %f1;  sub.f32 %f1, %f2, %f1;' --contract=on
gives "$exact" 0 $x -0.000244200229644775390625 '  mul.f32 %f2, %f1, %f1;  sub.f32 %f1, %f1, %f2;' --contract=on
# A product that flushes and a sum that does not are no fma: 2^-130, and then not 2^-130 · 1 but 0.
tiny=7.346839692639297e-40
flushes='  mov.f32 %f2, 0f3F800000;  mul.ftz.f32 %f3, %f1, %f2;'
gives "$exact" 0 $tiny 1e-30 "$flushes  mov.f32 %f2, 0f0DA24260;  add.f32 %f1, %f3, %f2;" --contract=on
gives "$exact" 0 $tiny $tiny "$flushes  add.f32 %f1, %f3, %f1;" --contract=on

# An index outside of the list is a trap.
jump='  cvt.rzi.u32.f32 %r1, %f1;
  list: .branchtargets zero, one;
  brx.idx %r1, list;
zero: mov.f32 %f1, 0f40000000;  bra.uni end;
one: mov.f32 %f1, 0f40400000;
end:'
gives "$exact" 0 0 2 "$jump"
gives "$exact" 0 1 3 "$jump"
gives 'trap' 1 2 2 "$jump"
exit $failed
