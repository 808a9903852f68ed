#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Scopes of atomics and fences between the blocks of a cluster: .cta orders nothing there. Usage: scopes.sh TL_RUN
run=$1
failed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# kernel 'what block 0 does behind its store' 'what block 1 reads the flag by, and what follows'
kernel() {
  cat >"$work/k.ptx" <<PTX
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag, .param .u64 out) .reqntid 32, 1, 1 .reqnctapercluster 2, 1, 1
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [data];
  ld.param.u64 %d2, [flag];
  ld.param.u64 %d3, [out];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra \$end;
  mov.u32 %r2, %ctaid.x;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra \$second;
  st.global.u32 [%d1], 7;
  $1
  bra \$end;
\$second:
  $2
  setp.ne.u32 %p3, %r3, 1;
  @%p3 bra \$second;
  $3
  ld.global.u32 %r4, [%d1];
  st.global.u32 [%d3], %r4;
\$end:
  ret;
}
PTX
}

launch() {
  "$run" "$work/k.ptx" --device=emu --kernel=k --sanitize=all --grid=2 --block=32 --arg 'data=inout i32[1]' --arg 'flag=inout i32[1]' --arg 'out=out i32[1]' \
    --in flag=zeros --in data=zeros >"$work/out" 2>&1
}

right() {
  kernel "$@"
  launch && grep -q 'out: i32\[1\], min 7, max 7' "$work/out" && return
  echo "expected 7 and no finding of: $*"
  cat "$work/out"
  failed=1
}

wrong() {
  kernel "$@"
  launch && echo "expected a race of: $*" && failed=1 && return
  grep -q ': race' "$work/out" && return
  echo "expected a race of: $*"
  cat "$work/out"
  failed=1
}

right 'st.release.cluster.global.u32 [%d2], 1;' 'ld.acquire.cluster.global.u32 %r3, [%d2];' ''
wrong 'st.release.cta.global.u32 [%d2], 1;' 'ld.acquire.cluster.global.u32 %r3, [%d2];' ''
wrong 'st.release.cluster.global.u32 [%d2], 1;' 'ld.acquire.cta.global.u32 %r3, [%d2];' ''
right 'fence.acq_rel.cluster; st.relaxed.cluster.global.u32 [%d2], 1;' 'ld.relaxed.cluster.global.u32 %r3, [%d2];' 'fence.acq_rel.cluster;'
wrong 'fence.acq_rel.cta; st.relaxed.cluster.global.u32 [%d2], 1;' 'ld.relaxed.cluster.global.u32 %r3, [%d2];' 'fence.acq_rel.cluster;'
wrong 'fence.acq_rel.cluster; st.relaxed.cluster.global.u32 [%d2], 1;' 'ld.relaxed.cluster.global.u32 %r3, [%d2];' 'fence.acq_rel.cta;'
# Of two atomics at one place the scopes of both must hold the other.
right 'atom.release.cluster.global.add.u32 %r5, [%d2], 1;' 'atom.acquire.gpu.global.add.u32 %r3, [%d2], 0;' ''
wrong 'atom.relaxed.cta.global.add.u32 %r5, [%d2], 1;' 'atom.relaxed.cluster.global.add.u32 %r3, [%d2], 0;' ''
grep -q 'a scope that holds both blocks, .cluster, .gpu or .sys' "$work/out" || { cat "$work/out"; failed=1; }
exit $failed
