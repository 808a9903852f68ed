; Kernels with one mistake each that the checks must tell of, and kernels without one. Blocks have 64 threads; each kernel gets
; a buffer of 4096 bytes to read and one of 4096 bytes to write.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [64 x i32] undef, align 16
@bytes = internal addrspace(3) global [1024 x i8] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)
declare void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32, i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.nanosleep(i32)
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32 immarg)
declare {i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3(ptr addrspace(3))

; ---- order in shared memory

define internal void @put(i32 %index, i32 %value) alwaysinline {
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 %index
  store i32 %value, ptr addrspace(3) %p
  ret void
}
define internal void @get(ptr addrspace(1) %out, i32 %tid, i32 %index) alwaysinline {
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 %index
  %v = load i32, ptr addrspace(3) %p
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %v, ptr addrspace(1) %o
  ret void
}

; Each thread reads what its neighbour wrote.
define ptx_kernel void @neighbour(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %other = xor i32 %tid, 1
  call void @put(i32 %tid, i32 %tid)
  call void @get(ptr addrspace(1) %out, i32 %tid, i32 %other)
  ret void
}
define ptx_kernel void @neighbour_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %other = xor i32 %tid, 1
  call void @put(i32 %tid, i32 %tid)
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  call void @get(ptr addrspace(1) %out, i32 %tid, i32 %other)
  ret void
}

; The halves exchange; a barrier of each half alone (ids 1 and 2) does not order them.
define ptx_kernel void @halves(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %warp = lshr i32 %tid, 5
  %id = add i32 %warp, 1
  %other = xor i32 %tid, 32
  call void @put(i32 %tid, i32 %tid)
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %id, i32 32)
  call void @get(ptr addrspace(1) %out, i32 %tid, i32 %other)
  ret void
}

; The second half produces and arrives, the first waits and reads; then the second writes again too early.
define ptx_kernel void @producer(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp ult i32 %tid, 32
  %other = xor i32 %tid, 32
  br i1 %first, label %consume, label %produce
produce:
  call void @put(i32 %tid, i32 %tid)
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 1, i32 64)
  call void @put(i32 %tid, i32 0)
  ret void
consume:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  call void @get(ptr addrspace(1) %out, i32 %tid, i32 %other)
  ret void
}

; All threads write one element.
define ptx_kernel void @same_element(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @put(i32 7, i32 %tid)
  ret void
}
; With atomics they may; reading afterwards needs a barrier.
define ptx_kernel void @atomic_sum(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %clear, label %go
clear:
  call void @put(i32 7, i32 0)
  br label %go
go:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 7
  %old = atomicrmw add ptr addrspace(3) %p, i32 1 monotonic
  call void @get(ptr addrspace(1) %out, i32 %tid, i32 7)
  ret void
}

; Thread 0 releases a flag, the others acquire it: right.
define ptx_kernel void @flag(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %flag = getelementptr i32, ptr addrspace(3) @tile, i32 0
  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %clear, label %start
clear:
  store i32 0, ptr addrspace(3) %flag
  br label %start
start:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %zero, label %set, label %wait
set:
  call void @put(i32 1, i32 5)
  store atomic i32 1, ptr addrspace(3) %flag release, align 4
  ret void
wait:
  %v = load atomic i32, ptr addrspace(3) %flag acquire, align 4
  %is = icmp eq i32 %v, 1
  br i1 %is, label %read, label %wait
read:
  call void @get(ptr addrspace(1) %out, i32 %tid, i32 1)
  ret void
}

; ---- asynchronous copies

define internal void @copy(ptr addrspace(1) %in, i32 %tid) alwaysinline {
  %offset = shl i32 %tid, 4
  %to = getelementptr i8, ptr addrspace(3) @bytes, i32 %offset
  %from = getelementptr i8, ptr addrspace(1) %in, i32 %offset
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  call void @llvm.nvvm.cp.async.commit.group()
  ret void
}
define internal void @look(ptr addrspace(1) %out, i32 %tid, i32 %row) alwaysinline {
  %offset = shl i32 %row, 4
  %p = getelementptr i8, ptr addrspace(3) @bytes, i32 %offset
  %v = load i32, ptr addrspace(3) %p
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %v, ptr addrspace(1) %o
  ret void
}
define ptx_kernel void @copy_read_before_wait(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @copy(ptr addrspace(1) %in, i32 %tid)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 %tid)
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  ret void
}
define ptx_kernel void @copy_without_barrier(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %other = xor i32 %tid, 32
  call void @copy(ptr addrspace(1) %in, i32 %tid)
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 %other)
  ret void
}
define ptx_kernel void @copy_without_wait(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @copy(ptr addrspace(1) %in, i32 %tid)
  call void @llvm.nvvm.cp.async.wait.group(i32 1)
  ret void
}
define ptx_kernel void @copy_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %other = xor i32 %tid, 32
  call void @copy(ptr addrspace(1) %in, i32 %tid)
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 %other)
  ret void
}

; ---- single accesses

define ptx_kernel void @unwritten(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @get(ptr addrspace(1) %out, i32 %tid, i32 %tid)
  ret void
}
define ptx_kernel void @unwritten_matrix(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = and i32 %tid, 15
  %offset = shl i32 %lane, 4
  %p = getelementptr i8, ptr addrspace(3) @bytes, i32 %offset
  %r = call {i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3(ptr addrspace(3) %p)
  ret void
}
; The tile ends at 256, shared memory at 1280.
define ptx_kernel void @beyond_shared(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %index = add i32 %tid, 257
  call void @put(i32 %index, i32 1)
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 3, ptr addrspace(1) %o
  ret void
}
; The value of a read beyond the buffer is all ones, a write is dropped.
define ptx_kernel void @beyond_global(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr addrspace(1) %in, i32 1024
  %v = load i32, ptr addrspace(1) %p
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %v, ptr addrspace(1) %o
  %q = getelementptr i32, ptr addrspace(1) %out, i32 1024
  store i32 %v, ptr addrspace(1) %q
  ret void
}
define ptx_kernel void @misaligned(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %p = getelementptr i8, ptr addrspace(1) %in, i32 6
  %v = load i32, ptr addrspace(1) %p, align 4
  ret void
}

; ---- blocks

define ptx_kernel void @blocks_write(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 1, ptr addrspace(1) %o
  ret void
}
define ptx_kernel void @blocks_add(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  %old = atomicrmw add ptr addrspace(1) %o, i32 1 monotonic
  ret void
}
define internal void @hand_over(ptr addrspace(1) %out, i1 %ordered) alwaysinline {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %flag = getelementptr i32, ptr addrspace(1) %out, i32 1000
  %mine = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  %zero = icmp eq i32 %tid, 0
  %giver = icmp eq i32 %block, 0
  br i1 %giver, label %give, label %take
give:
  store i32 %tid, ptr addrspace(1) %mine
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %zero, label %set, label %done
set:
  br i1 %ordered, label %set_ordered, label %set_relaxed
set_ordered:
  store atomic i32 1, ptr addrspace(1) %flag release, align 4
  ret void
set_relaxed:
  store atomic i32 1, ptr addrspace(1) %flag monotonic, align 4
  ret void
take:
  br i1 %zero, label %wait, label %taken
wait:
  call void @llvm.nvvm.nanosleep(i32 100)
  %v = load atomic i32, ptr addrspace(1) %flag acquire, align 4
  %is = icmp eq i32 %v, 1
  br i1 %is, label %taken, label %wait
taken:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 1)
  %from = xor i32 %tid, 63
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %from
  %x = load i32, ptr addrspace(1) %p
  %far = add i32 %tid, 100
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %far
  store i32 %x, ptr addrspace(1) %q
  ret void
done:
  ret void
}
define ptx_kernel void @hand_over_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @hand_over(ptr addrspace(1) %out, i1 true)
  ret void
}
define ptx_kernel void @hand_over_relaxed(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @hand_over(ptr addrspace(1) %out, i1 false)
  ret void
}
; Threads of one block write the same element of global memory.
define ptx_kernel void @threads_write(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %half = lshr i32 %tid, 1
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %half
  store i32 %tid, ptr addrspace(1) %o
  ret void
}
; Reads what nobody wrote, then writes it.
define ptx_kernel void @reads_output(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  %x = load i32, ptr addrspace(1) %o
  store i32 %x, ptr addrspace(1) %o
  %y = load i32, ptr addrspace(1) %o
  ret void
}
