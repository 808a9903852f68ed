; Kernels that must be stopped, and a few that look like it but are right.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [256 x i32] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare void @llvm.trap()

; Threads below 5 leave before the barrier.
define ptx_kernel void @exit_before_barrier(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp ult i32 %tid, 5
  br i1 %c, label %leave, label %stay
stay:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
leave:
  ret void
}

; Lanes below 5 leave before the shuffle.
define ptx_kernel void @exit_before_shuffle(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp ult i32 %tid, 5
  br i1 %c, label %leave, label %stay
stay:
  %x = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, i32 31)
  ret void
leave:
  ret void
}

; The lanes of one warp come to different collectives.
define ptx_kernel void @diverge(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp ult i32 %tid, 5
  br i1 %c, label %a, label %b
a:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ret void
b:
  %x = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, i32 31)
  ret void
}

; The lanes of one warp come to two different barrier instructions of the same barrier.
define ptx_kernel void @divergent_barrier(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp ult i32 %tid, 5
  br i1 %c, label %a, label %b
a:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
b:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}

; Halves of a warp each vote among themselves: right.
define ptx_kernel void @two_halves(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  %bit = and i32 %tid, 1
  %odd = icmp ne i32 %bit, 0
  %c = icmp ult i32 %tid, 16
  br i1 %c, label %a, label %b
a:
  %x = call i32 @llvm.nvvm.vote.ballot.sync(i32 65535, i1 %odd)
  store i32 %x, ptr addrspace(1) %p
  ret void
b:
  %y = call i32 @llvm.nvvm.vote.ballot.sync(i32 -65536, i1 %odd)
  store i32 %y, ptr addrspace(1) %p
  ret void
}

; A lane that is not in its own mask.
define ptx_kernel void @not_in_mask(ptr addrspace(1) %out) {
  %x = call i32 @llvm.nvvm.vote.ballot.sync(i32 65535, i1 true)
  ret void
}

; Reads a lane outside the mask.
define ptx_kernel void @shuffle_from_outside(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp ult i32 %tid, 16
  br i1 %c, label %a, label %b
a:
  %x = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 65535, i32 %tid, i32 20, i32 31)
  ret void
b:
  ret void
}

; Warps disagree about how many threads barrier 1 has.
define ptx_kernel void @count_mismatch(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp ult i32 %tid, 64
  br i1 %c, label %a, label %b
a:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 128)
  ret void
b:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  ret void
}

define ptx_kernel void @odd_count(ptr addrspace(1) %out) {
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 33)
  ret void
}

define ptx_kernel void @barrier_16(ptr addrspace(1) %out) {
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 16)
  ret void
}

; Waits for a flag that nobody sets.
define ptx_kernel void @spin_forever(ptr addrspace(1) %out) {
entry:
  br label %loop
loop:
  %v = load volatile i32, ptr addrspace(1) %out
  %c = icmp eq i32 %v, -1
  br i1 %c, label %loop, label %done
done:
  ret void
}

; Goes round for ever without touching memory, in two nested loops.
define ptx_kernel void @count_forever(ptr addrspace(1) %out) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i1, %inner ]
  %i1 = add i32 %i, 1
  br label %inner
inner:
  %j = phi i32 [ 0, %outer ], [ %j1, %inner ]
  %j1 = add i32 %j, 1
  %again = icmp ult i32 %j1, 7
  br i1 %again, label %inner, label %outer
}

; Barriers for ever.
define ptx_kernel void @barriers_forever(ptr addrspace(1) %out) {
entry:
  br label %loop
loop:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %loop
}

; Warp 0 waits for a flag that the last warp sets with a plain store: right.
define ptx_kernel void @spin_for_other_warp(ptr addrspace(1) %out) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp ult i32 %tid, 32
  br i1 %first, label %wait, label %other
wait:
  %v = load volatile i32, ptr addrspace(1) %out
  %c = icmp eq i32 %v, -1
  br i1 %c, label %wait, label %done
other:
  %last = icmp eq i32 %tid, 127
  br i1 %last, label %set, label %done
set:
  store volatile i32 5, ptr addrspace(1) %out
  br label %done
done:
  ret void
}

; Block 0 waits for block 1: needs two OS threads.
define ptx_kernel void @spin_for_other_block(ptr addrspace(1) %out) {
entry:
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = icmp eq i32 %block, 0
  br i1 %first, label %wait, label %set
wait:
  %v = load atomic i32, ptr addrspace(1) %out syncscope("device") acquire, align 4
  %c = icmp eq i32 %v, -1
  br i1 %c, label %wait, label %done
set:
  store atomic i32 5, ptr addrspace(1) %out syncscope("device") release, align 4
  br label %done
done:
  ret void
}

; out[1024 + tid - 1] = tid: the last thread writes at %index of the caller's choice.
define ptx_kernel void @write_at(ptr addrspace(1) %out, i32 %index) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp eq i32 %tid, 37
  br i1 %c, label %a, label %b
a:
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %index
  store i32 %tid, ptr addrspace(1) %p
  ret void
b:
  ret void
}

define ptx_kernel void @read_at(ptr addrspace(1) %out, i32 %index) {
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %index
  %v = load i32, ptr addrspace(1) %p
  store i32 %v, ptr addrspace(1) %out
  ret void
}

define ptx_kernel void @shared_write_at(ptr addrspace(1) %out, i32 %index) {
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 %index
  store i32 3, ptr addrspace(3) %p
  ret void
}

; Needs 16-byte alignment.
define ptx_kernel void @read_vector_at(ptr addrspace(1) %out, i32 %index) {
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %index
  %v = load <4 x i32>, ptr addrspace(1) %p, align 16
  store <4 x i32> %v, ptr addrspace(1) %out, align 16
  ret void
}

; A pair of halves and a pair of floats, at a byte offset.
define ptx_kernel void @read_pair_at(ptr addrspace(1) %out, i32 %index) {
  %p = getelementptr i8, ptr addrspace(1) %out, i32 %index
  %v = load <2 x half>, ptr addrspace(1) %p, align 4
  store <2 x half> %v, ptr addrspace(1) %out, align 4
  ret void
}

define ptx_kernel void @write_floats_at(ptr addrspace(1) %out, i32 %index) {
  %p = getelementptr i8, ptr addrspace(3) @tile, i32 %index
  store <2 x float> zeroinitializer, ptr addrspace(3) %p, align 8
  ret void
}

define ptx_kernel void @divide(ptr addrspace(1) %out, i32 %index) {
  %q = sdiv i32 7, %index
  store i32 %q, ptr addrspace(1) %out
  ret void
}

define ptx_kernel void @trap_in_block_3(ptr addrspace(1) %out) {
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %c = icmp eq i32 %block, 3
  br i1 %c, label %a, label %b
a:
  call void @llvm.trap()
  unreachable
b:
  ret void
}

; 1 MiB of local memory, all of it touched from the top down.
define ptx_kernel void @large_frame(ptr addrspace(1) %out) {
entry:
  %big = alloca [262144 x i32]
  br label %loop
loop:
  %i = phi i32 [ 262143, %entry ], [ %j, %loop ]
  %p = getelementptr i32, ptr %big, i32 %i
  store volatile i32 %i, ptr %p
  %j = sub i32 %i, 1
  %more = icmp sge i32 %j, 0
  br i1 %more, label %loop, label %done
done:
  ret void
}
