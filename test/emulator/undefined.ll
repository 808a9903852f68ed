; Kernels that read what nobody wrote, of registers and variables of a thread. tl.undefined.* (variable, register) stands for
; it: variable 0 is a fragment of 64 elements, one a thread and two registers, variable 1 a local array of 4, variable 2 a
; local scalar. Blocks have 32 threads; each kernel gets a buffer of 4096 zero bytes to read and one to write.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [256 x i32] undef, align 16

declare i32 @tl.undefined.i32(i32, i32)
declare i1 @tl.undefined.i1(i32, i32)
declare i64 @tl.undefined.i64(i32, i32)
declare float @tl.undefined.f32(i32, i32)
declare half @tl.undefined.f16(i32, i32)
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare {i32, i1} @llvm.nvvm.shfl.sync.down.i32p(i32, i32, i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare <2 x half> @llvm.nvvm.ff2f16x2.rn(float, float)
declare i32 @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16.p3(ptr addrspace(3))
declare void @tl.st.global.pred.b32(ptr addrspace(1), i32, i1)
declare float @llvm.nvvm.ex2.approx.f32(float)
declare float @llvm.maxnum.f32(float, float)
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; ---- where it matters

define ptx_kernel void @stored(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %u = call i32 @tl.undefined.i32(i32 0, i32 1)
  %v = add i32 %u, 1
  %t1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to1 = getelementptr i32, ptr addrspace(1) %out, i32 %t1
  store i32 %v, ptr addrspace(1) %to1
  ret void
}
define ptx_kernel void @branched(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %u = call float @tl.undefined.f32(i32 2, i32 0)
  %c = fcmp olt float %u, 1.0
  br i1 %c, label %yes, label %no
yes:
  %t2 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to2 = getelementptr i32, ptr addrspace(1) %out, i32 %t2
  store i32 1, ptr addrspace(1) %to2
  ret void
no:
  ret void
}
define ptx_kernel void @switched(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %u = call i32 @tl.undefined.i32(i32 2, i32 0)
  switch i32 %u, label %no [ i32 3, label %yes
                             i32 5, label %yes ]
yes:
  %t3 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to3 = getelementptr i32, ptr addrspace(1) %out, i32 %t3
  store i32 1, ptr addrspace(1) %to3
  ret void
no:
  ret void
}
define ptx_kernel void @addressed(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %u = call i64 @tl.undefined.i64(i32 2, i32 0)
  %small = and i64 %u, 7
  %p = getelementptr i32, ptr addrspace(1) %in, i64 %small
  %v = load i32, ptr addrspace(1) %p
  %t4 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to4 = getelementptr i32, ptr addrspace(1) %out, i32 %t4
  store i32 %v, ptr addrspace(1) %to4
  ret void
}
define ptx_kernel void @updated(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %u = call i32 @tl.undefined.i32(i32 0, i32 0)
  %old = atomicrmw add ptr addrspace(1) %out, i32 %u monotonic
  ret void
}
define ptx_kernel void @voted(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %u = call i1 @tl.undefined.i1(i32 0, i32 0)
  %v = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %u)
  ret void
}
; Only where the predicate holds.
define ptx_kernel void @predicated(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %u = call i32 @tl.undefined.i32(i32 0, i32 1)
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  %c = icmp ugt i32 %tid, 29
  call void @tl.st.global.pred.b32(ptr addrspace(1) %p, i32 %u, i1 %c)
  ret void
}

; ---- the ways it takes

; Lane 3's register goes to lane 2; the others hold the lane.
define ptx_kernel void @shuffled(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %u = call i32 @tl.undefined.i32(i32 0, i32 1)
  %c = icmp eq i32 %tid, 3
  %mine = select i1 %c, i32 %u, i32 %tid
  %other = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %mine, i32 1, i32 31)
  %t5 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to5 = getelementptr i32, ptr addrspace(1) %out, i32 %t5
  store i32 %other, ptr addrspace(1) %to5
  ret void
}
define ptx_kernel void @shuffled_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %u = call i32 @tl.undefined.i32(i32 0, i32 1)
  %c = icmp eq i32 %tid, 3
  %mine = select i1 %c, i32 %u, i32 %tid
  %both = call {i32, i1} @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %mine, i32 16, i32 31)
  %other = extractvalue {i32, i1} %both, 0
  %lower = icmp ult i32 %tid, 16
  br i1 %lower, label %yes, label %no
yes:
  %t6 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to6 = getelementptr i32, ptr addrspace(1) %out, i32 %t6
  store i32 %other, ptr addrspace(1) %to6
  ret void
no:
  ret void
}
define ptx_kernel void @looped(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %u = call float @tl.undefined.f32(i32 0, i32 0)
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ %u, %entry ], [ %more, %loop ]
  %e = call float @llvm.nvvm.ex2.approx.f32(float 1.0)
  %more = fadd float %sum, %e
  %next = add i32 %i, 1
  %c = icmp ult i32 %next, 4
  br i1 %c, label %loop, label %done
done:
  %m = call float @llvm.maxnum.f32(float %more, float 0.0)
  %bits = bitcast float %m to i32
  %t7 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to7 = getelementptr i32, ptr addrspace(1) %out, i32 %t7
  store i32 %bits, ptr addrspace(1) %to7
  ret void
}
; The first turn writes it before anything reads it.
define ptx_kernel void @looped_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %u = call i32 @tl.undefined.i32(i32 0, i32 0)
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ %u, %entry ], [ %more, %loop ]
  %first = icmp eq i32 %i, 0
  %kept = select i1 %first, i32 7, i32 %sum
  %more = add i32 %kept, %i
  %next = add i32 %i, 1
  %c = icmp ult i32 %next, 4
  br i1 %c, label %loop, label %done
done:
  %t8 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to8 = getelementptr i32, ptr addrspace(1) %out, i32 %t8
  store i32 %more, ptr addrspace(1) %to8
  ret void
}
; Bits that are masked away, shifted out or decided by the other operand do not matter.
define ptx_kernel void @bits_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %u = call i32 @tl.undefined.i32(i32 0, i32 0)
  %high = shl i32 %u, 16
  %word = or i32 %high, %tid
  %low = and i32 %word, 65535
  %byte = trunc i32 %word to i8
  %wide = zext i8 %byte to i32
  %rotated = call i32 @llvm.fshl.i32(i32 %word, i32 %word, i32 16)
  %top = lshr i32 %rotated, 16
  %set = or i32 %u, -1
  %differ = icmp eq i32 %word, 40
  %unequal = or i32 %high, 65535
  %never = icmp eq i32 %unequal, 3
  %n = zext i1 %never to i32
  %a = add i32 %low, %wide
  %b = add i32 %top, %set
  %d = add i32 %a, %b
  %e = add i32 %d, %n
  %t9 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to9 = getelementptr i32, ptr addrspace(1) %out, i32 %t9
  store i32 %e, ptr addrspace(1) %to9
  ret void
}
define ptx_kernel void @bits(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %u = call i32 @tl.undefined.i32(i32 0, i32 0)
  %high = shl i32 %u, 16
  %word = or i32 %high, %tid
  %rotated = call i32 @llvm.fshl.i32(i32 %word, i32 %word, i32 16)
  %byte = and i32 %rotated, 255
  %t10 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to10 = getelementptr i32, ptr addrspace(1) %out, i32 %t10
  store i32 %byte, ptr addrspace(1) %to10
  ret void
}
; The upper half of a pair.
define ptx_kernel void @pair(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %u = call float @tl.undefined.f32(i32 0, i32 1)
  %both = call <2 x half> @llvm.nvvm.ff2f16x2.rn(float %u, float 1.0)
  %low = extractelement <2 x half> %both, i32 0
  %bits = bitcast half %low to i16
  %ok = zext i16 %bits to i32
  %t11 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to11 = getelementptr i32, ptr addrspace(1) %out, i32 %t11
  store i32 %ok, ptr addrspace(1) %to11
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t_half = add i32 %t, 1000
  %swapped = shufflevector <2 x half> %both, <2 x half> poison, <2 x i32> <i32 1, i32 0>
  %first = extractelement <2 x half> %swapped, i32 0
  %more = fadd half %first, 1.0
  %half = getelementptr half, ptr addrspace(1) %out, i32 %t_half
  store half %more, ptr addrspace(1) %half
  ret void
}
define ptx_kernel void @pair_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %u = call half @tl.undefined.f16(i32 0, i32 1)
  %v = insertelement <2 x half> poison, half %u, i32 1
  %w = insertelement <2 x half> %v, half 1.0, i32 0
  %x = fadd <2 x half> %w, %w
  %low = extractelement <2 x half> %x, i32 0
  %bits = bitcast half %low to i16
  %ok = zext i16 %bits to i32
  %t12 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to12 = getelementptr i32, ptr addrspace(1) %out, i32 %t12
  store i32 %ok, ptr addrspace(1) %to12
  ret void
}

; ---- memory

; Element tid % 4 of an array of which 0 to 2 were written.
define ptx_kernel void @array(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %w = alloca [4 x i32], align 16
  %u = call i32 @tl.undefined.i32(i32 1, i32 3)
  %p1 = getelementptr i32, ptr %w, i32 1
  %p2 = getelementptr i32, ptr %w, i32 2
  %p3 = getelementptr i32, ptr %w, i32 3
  store i32 %u, ptr %p3
  store i32 0, ptr %w
  store i32 1, ptr %p1
  store i32 2, ptr %p2
  %i = and i32 %tid, 3
  %p = getelementptr i32, ptr %w, i32 %i
  %v = load i32, ptr %p
  %t13 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to13 = getelementptr i32, ptr addrspace(1) %out, i32 %t13
  store i32 %v, ptr addrspace(1) %to13
  ret void
}
; Copied and then filled.
define ptx_kernel void @array_copied(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %w = alloca [4 x i32], align 16
  %x = alloca [4 x i32], align 16
  %u = call i32 @tl.undefined.i32(i32 1, i32 2)
  call void @llvm.memset.p0.i64(ptr %w, i8 0, i64 16, i1 false)
  %p2 = getelementptr i32, ptr %w, i32 2
  store i32 %u, ptr %p2
  call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %w, i64 16, i1 false)
  call void @llvm.memset.p0.i64(ptr %w, i8 1, i64 16, i1 false)
  %good = load i32, ptr %p2
  %t14 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to14 = getelementptr i32, ptr addrspace(1) %out, i32 %t14
  store i32 %good, ptr addrspace(1) %to14
  %v = load <4 x i32>, ptr %x
  %e = extractelement <4 x i32> %v, i32 1
  %t15 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to15 = getelementptr i32, ptr addrspace(1) %out, i32 %t15
  store i32 %e, ptr addrspace(1) %to15
  %f = extractelement <4 x i32> %v, i32 2
  %t16 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to16 = getelementptr i32, ptr addrspace(1) %out, i32 %t16
  store i32 %f, ptr addrspace(1) %to16
  ret void
}
; Through shared memory: lane 5's word is undefined, lane 4 reads it.
define ptx_kernel void @through_shared(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %u = call i32 @tl.undefined.i32(i32 0, i32 1)
  %c = icmp eq i32 %tid, 5
  %mine = select i1 %c, i32 %u, i32 %tid
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 %tid
  store i32 %mine, ptr addrspace(3) %p
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %other = xor i32 %tid, 1
  %q = getelementptr i32, ptr addrspace(3) @tile, i32 %other
  %v = load i32, ptr addrspace(3) %q
  %t17 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to17 = getelementptr i32, ptr addrspace(1) %out, i32 %t17
  store i32 %v, ptr addrspace(1) %to17
  ret void
}
; The word is written before anybody reads it.
define ptx_kernel void @through_shared_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %u = call i32 @tl.undefined.i32(i32 0, i32 1)
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 %tid
  store i32 %u, ptr addrspace(3) %p
  store i32 %tid, ptr addrspace(3) %p
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %other = xor i32 %tid, 1
  %q = getelementptr i32, ptr addrspace(3) @tile, i32 %other
  %v = load i32, ptr addrspace(3) %q
  %t18 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to18 = getelementptr i32, ptr addrspace(1) %out, i32 %t18
  store i32 %v, ptr addrspace(1) %to18
  ret void
}
define ptx_kernel void @matrix(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %u = call i32 @tl.undefined.i32(i32 0, i32 1)
  %c = icmp eq i32 %tid, 5
  %mine = select i1 %c, i32 %u, i32 %tid
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 %tid
  store i32 %mine, ptr addrspace(3) %p
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %r = and i32 %tid, 7
  %o = mul i32 %r, 4
  %row = getelementptr i32, ptr addrspace(3) @tile, i32 %o
  %v = call i32 @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16.p3(ptr addrspace(3) %row)
  %t19 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %to19 = getelementptr i32, ptr addrspace(1) %out, i32 %t19
  store i32 %v, ptr addrspace(1) %to19
  ret void
}
