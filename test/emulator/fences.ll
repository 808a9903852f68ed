; Order by fences and relaxed atomics (PTX ISA, Memory Consistency Model, release and acquire patterns). Blocks have 64
; threads; each kernel gets a buffer of 4096 zero bytes to read and one to write.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [64 x i32] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.membar.gl()
declare void @llvm.nvvm.membar.cta()
declare void @llvm.nvvm.nanosleep(i32)
declare void @tl.red.global.add.pred.f32(ptr addrspace(1), float, i1)

; Thread 0 writes tile[1] and then a flag, tile[0]; the others wait for the flag and read tile[1].
define internal void @flag(ptr addrspace(1) %out, i1 %before, i1 %after) alwaysinline {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %data = getelementptr i32, ptr addrspace(3) @tile, i32 1
  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %clear, label %start
clear:
  store i32 0, ptr addrspace(3) @tile
  br label %start
start:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %zero, label %write, label %wait
write:
  store i32 5, ptr addrspace(3) %data
  br i1 %before, label %release, label %set
release:
  fence syncscope("block") acq_rel
  br label %set
set:
  store atomic i32 1, ptr addrspace(3) @tile monotonic, align 4
  ret void
wait:
  %v = load atomic i32, ptr addrspace(3) @tile monotonic, align 4
  %is = icmp eq i32 %v, 1
  br i1 %is, label %seen, label %wait
seen:
  br i1 %after, label %acquire, label %read
acquire:
  call void @llvm.nvvm.membar.cta()
  br label %read
read:
  %x = load i32, ptr addrspace(3) %data
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %x, ptr addrspace(1) %o
  ret void
}
define ptx_kernel void @flag_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @flag(ptr addrspace(1) %out, i1 true, i1 true)
  ret void
}
define ptx_kernel void @flag_without_release(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @flag(ptr addrspace(1) %out, i1 false, i1 true)
  ret void
}
define ptx_kernel void @flag_without_acquire(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @flag(ptr addrspace(1) %out, i1 true, i1 false)
  ret void
}
; A release fence orders only what is before it.
define ptx_kernel void @flag_fence_too_early(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  fence syncscope("block") release
  call void @flag(ptr addrspace(1) %out, i1 false, i1 true)
  ret void
}
; An acquire operation reads from a relaxed one behind a fence.
define ptx_kernel void @mixed_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %data = getelementptr i32, ptr addrspace(3) @tile, i32 1
  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %clear, label %start
clear:
  store i32 0, ptr addrspace(3) @tile
  br label %start
start:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %zero, label %write, label %wait
write:
  store i32 5, ptr addrspace(3) %data
  fence syncscope("device") seq_cst
  %old = atomicrmw add ptr addrspace(3) @tile, i32 1 monotonic
  ret void
wait:
  %v = load atomic i32, ptr addrspace(3) @tile acquire, align 4
  %is = icmp eq i32 %v, 1
  br i1 %is, label %read, label %wait
read:
  %x = load i32, ptr addrspace(3) %data
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %x, ptr addrspace(1) %o
  ret void
}

; Block 0 hands out[0 … 63] to block 1, by a counter that its threads add to.
define internal void @hand_over(ptr addrspace(1) %out, i1 %before, i1 %after) alwaysinline {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %counter = getelementptr i32, ptr addrspace(1) %out, i32 1000
  %mine = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  %giver = icmp eq i32 %block, 0
  br i1 %giver, label %give, label %wait
give:
  store i32 %tid, ptr addrspace(1) %mine
  br i1 %before, label %release, label %add
release:
  call void @llvm.nvvm.membar.gl()
  br label %add
add:
  call void @tl.red.global.add.pred.f32(ptr addrspace(1) %counter, float 1.0, i1 true)
  ret void
wait:
  call void @llvm.nvvm.nanosleep(i32 100)
  %v = load atomic float, ptr addrspace(1) %counter syncscope("device") monotonic, align 4
  %is = fcmp oeq float %v, 64.0
  br i1 %is, label %seen, label %wait
seen:
  br i1 %after, label %acquire, label %read
acquire:
  fence syncscope("device") acquire
  br label %read
read:
  %from = xor i32 %tid, 63
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %from
  %x = load i32, ptr addrspace(1) %p
  %far = add i32 %tid, 100
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %far
  store i32 %x, ptr addrspace(1) %q
  ret void
}
define ptx_kernel void @blocks_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @hand_over(ptr addrspace(1) %out, i1 true, i1 true)
  ret void
}
define ptx_kernel void @blocks_without_release(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @hand_over(ptr addrspace(1) %out, i1 false, i1 true)
  ret void
}
define ptx_kernel void @blocks_without_acquire(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @hand_over(ptr addrspace(1) %out, i1 true, i1 false)
  ret void
}
