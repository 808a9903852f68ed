; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Blocks that wait for blocks behind them. io: one i32 a block, zero at the start.
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.barrier.cluster.arrive.aligned()
declare void @llvm.nvvm.barrier.cluster.wait.aligned()
declare ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3), i32)
declare void @llvm.nvvm.nanosleep(i32)

@cell = internal addrspace(3) global [64 x i32] undef, align 16

; The last block sets its flag to 1; each other one waits for the next one's flag and sets its own to one more. Thread 0
; spins, the others wait at the barrier.
define ptx_kernel void @chain(ptr addrspace(1) %io) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %mine = getelementptr i32, ptr addrspace(1) %io, i32 %block
  %theirs = getelementptr i32, ptr addrspace(1) %mine, i32 1
  %cell = getelementptr i32, ptr addrspace(3) @cell, i32 %tid
  store i32 %block, ptr addrspace(3) %cell
  %next = add i32 %block, 1
  %last = icmp eq i32 %next, %blocks
  %first = icmp eq i32 %tid, 0
  br i1 %first, label %leader, label %meet
leader:
  br i1 %last, label %set, label %spin
spin:
  %flag = load atomic i32, ptr addrspace(1) %theirs syncscope("device") acquire, align 4
  %ready = icmp ne i32 %flag, 0
  br i1 %ready, label %set, label %spin
set:
  %before = phi i32 [ 0, %leader ], [ %flag, %spin ]
  %value = add i32 %before, 1
  store atomic i32 %value, ptr addrspace(1) %mine syncscope("device") release, align 4
  br label %meet
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ; Shared memory is still this block's own.
  %other = xor i32 %tid, 33
  %place = getelementptr i32, ptr addrspace(3) @cell, i32 %other
  %seen = load i32, ptr addrspace(3) %place
  %right = icmp eq i32 %seen, %block
  br i1 %right, label %done, label %wrong
wrong:
  call void @llvm.trap()
  unreachable
done:
  ret void
}

declare void @llvm.trap()

; The same with a rest between two looks.
define ptx_kernel void @rest(ptr addrspace(1) %io) {
entry:
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %mine = getelementptr i32, ptr addrspace(1) %io, i32 %block
  %theirs = getelementptr i32, ptr addrspace(1) %mine, i32 1
  %next = add i32 %block, 1
  %last = icmp eq i32 %next, %blocks
  br i1 %last, label %set, label %spin
spin:
  %flag = load volatile i32, ptr addrspace(1) %theirs
  %ready = icmp ne i32 %flag, 0
  br i1 %ready, label %set, label %sleep
sleep:
  call void @llvm.nvvm.nanosleep(i32 100)
  br label %spin
set:
  %before = phi i32 [ 0, %entry ], [ %flag, %spin ]
  %value = add i32 %before, 1
  store volatile i32 %value, ptr addrspace(1) %mine
  ret void
}

; The blocks of the grid count each other in and wait until all are there, as persistent kernels do. With a ticket lock
; around a plain counter: io[0] arrivals, io[1] the lock, io[2] the counter.
define ptx_kernel void @grid_barrier(ptr addrspace(1) %io) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %lock = getelementptr i32, ptr addrspace(1) %io, i32 1
  %counter = getelementptr i32, ptr addrspace(1) %io, i32 2
  %first = icmp eq i32 %tid, 0
  br i1 %first, label %arrive, label %join
arrive:
  %old = atomicrmw add ptr addrspace(1) %io, i32 1 syncscope("device") acq_rel, align 4
  br label %wait
wait:
  %count = load atomic i32, ptr addrspace(1) %io syncscope("device") acquire, align 4
  %all = icmp uge i32 %count, %blocks
  br i1 %all, label %join, label %wait
join:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %try
try:
  %pair = cmpxchg ptr addrspace(1) %lock, i32 0, i32 1 syncscope("device") acq_rel acquire, align 4
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %inside, label %try
inside:
  %n = load i32, ptr addrspace(1) %counter
  %n1 = add i32 %n, 1
  store i32 %n1, ptr addrspace(1) %counter
  store atomic i32 0, ptr addrspace(1) %lock syncscope("device") release, align 4
  ret void
}

; Clusters of two that wait for the cluster behind them. Block rank 1 hears it from rank 0 through shared memory.
define ptx_kernel void @clusters(ptr addrspace(1) %io) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %mine = getelementptr i32, ptr addrspace(1) %io, i32 %block
  %theirs = getelementptr i32, ptr addrspace(1) %mine, i32 2
  %next = add i32 %block, 2
  %last = icmp uge i32 %next, %blocks
  call void @llvm.nvvm.barrier.cluster.arrive.aligned()
  call void @llvm.nvvm.barrier.cluster.wait.aligned()
  %thread0 = icmp eq i32 %tid, 0
  %rank0 = icmp eq i32 %rank, 0
  %leader = and i1 %thread0, %rank0
  br i1 %leader, label %lead, label %meet
lead:
  br i1 %last, label %set, label %spin
spin:
  %flag = load atomic i32, ptr addrspace(1) %theirs syncscope("device") acquire, align 4
  %ready = icmp ne i32 %flag, 0
  br i1 %ready, label %set, label %spin
set:
  %before = phi i32 [ 0, %lead ], [ %flag, %spin ]
  %value = add i32 %before, 1
  %peer = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @cell, i32 1)
  store i32 %value, ptr addrspace(7) %peer
  store atomic i32 %value, ptr addrspace(1) %mine syncscope("device") release, align 4
  br label %meet
meet:
  call void @llvm.nvvm.barrier.cluster.arrive.aligned()
  call void @llvm.nvvm.barrier.cluster.wait.aligned()
  %hears = xor i1 %rank0, true
  %writes = and i1 %hears, %thread0
  br i1 %writes, label %write, label %done
write:
  %heard = load i32, ptr addrspace(3) @cell
  store i32 %heard, ptr addrspace(1) %mine
  br label %done
done:
  ret void
}

; Block 0 waits at a barrier for a thread that has left; the others do nothing.
define ptx_kernel void @stuck(ptr addrspace(1) %io) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %late = icmp uge i32 %tid, 32
  br i1 %late, label %done, label %wait
wait:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %done
done:
  ret void
}
