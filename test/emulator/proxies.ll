; Generic accesses and the asynchronous proxy, in shared memory and in global memory: kernels with and without the fence that
; the two need. Blocks have 64 threads; each kernel gets a buffer of 4096 bytes to read and one of 4096 bytes to write.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [64 x i32] undef, align 128
@bar = internal addrspace(3) global i64 undef, align 8

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.fence.proxy.async.shared_cta()
declare void @llvm.nvvm.fence.proxy.async.global()
declare void @llvm.nvvm.fence.proxy.async()
declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
declare void @llvm.nvvm.fence.mbarrier_init.release.cluster()
declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)
declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)
declare void @llvm.nvvm.cp.async.bulk.global.to.shared.cta(ptr addrspace(3), ptr addrspace(3), ptr addrspace(1), i32, i64, i1 immarg)
declare void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1), ptr addrspace(3), i32, i64, i1 immarg)
declare void @llvm.nvvm.cp.async.bulk.commit.group()
declare void @llvm.nvvm.cp.async.bulk.wait.group(i32 immarg)
declare void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 immarg)

define internal void @meet() alwaysinline {
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}
; Every thread writes its word of the tile.
define internal void @fill(i32 %tid) alwaysinline {
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 %tid
  store i32 %tid, ptr addrspace(3) %p
  ret void
}
; Every thread reads the word of another and writes it to the upper half of %out.
define internal void @take(i32 %tid, ptr addrspace(1) %out) alwaysinline {
  %other = xor i32 %tid, 63
  %p = getelementptr i32, ptr addrspace(3) @tile, i32 %other
  %v = load i32, ptr addrspace(3) %p
  %at = add i32 %tid, 512
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %at
  store i32 %v, ptr addrspace(1) %o
  ret void
}
; Thread 0 makes the mbarrier; all meet.
define internal void @begin(i32 %tid) alwaysinline {
entry:
  %first = icmp eq i32 %tid, 0
  br i1 %first, label %make, label %made
make:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)
  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
  br label %made
made:
  call void @meet()
  ret void
}
; Thread 0 loads the tile, all wait for it: phase of parity %parity.
define internal void @load(i32 %tid, ptr addrspace(1) %from, i32 %parity) alwaysinline {
entry:
  %first = icmp eq i32 %tid, 0
  br i1 %first, label %issue, label %wait
issue:
  %s = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @bar, i32 256)
  call void @llvm.nvvm.cp.async.bulk.global.to.shared.cta(ptr addrspace(3) @tile, ptr addrspace(3) @bar, ptr addrspace(1) %from, i32 256, i64 0, i1 false)
  br label %wait
wait:
  %ok = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 %parity)
  br i1 %ok, label %done, label %wait
done:
  ret void
}
; Thread 0 stores the tile and waits, for the reads alone or for the writes too.
define internal void @store(i32 %tid, ptr addrspace(1) %to, i1 %whole) alwaysinline {
entry:
  %first = icmp eq i32 %tid, 0
  br i1 %first, label %issue, label %done
issue:
  call void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1) %to, ptr addrspace(3) @tile, i32 256, i64 0, i1 false)
  call void @llvm.nvvm.cp.async.bulk.commit.group()
  br i1 %whole, label %all, label %reads
all:
  call void @llvm.nvvm.cp.async.bulk.wait.group(i32 0)
  br label %done
reads:
  call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)
  br label %done
done:
  ret void
}

; ---- generic writes, then the asynchronous proxy reads shared memory
; The fence of every writer, then the barrier.
define ptx_kernel void @written_then_stored(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @fill(i32 %tid)
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @meet()
  call void @store(i32 %tid, ptr addrspace(1) %out, i1 true)
  ret void
}
; No fence.
define ptx_kernel void @written_then_stored_without(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @fill(i32 %tid)
  call void @meet()
  call void @store(i32 %tid, ptr addrspace(1) %out, i1 true)
  ret void
}

; ---- generic writes, then the asynchronous proxy overwrites them
; As above.
define ptx_kernel void @written_then_loaded(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @begin(i32 %tid)
  call void @fill(i32 %tid)
  call void @llvm.nvvm.fence.proxy.async()
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %in, i32 0)
  call void @take(i32 %tid, ptr addrspace(1) %out)
  ret void
}
; No fence.
define ptx_kernel void @written_then_loaded_without(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @begin(i32 %tid)
  call void @fill(i32 %tid)
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %in, i32 0)
  call void @take(i32 %tid, ptr addrspace(1) %out)
  ret void
}

; ---- the asynchronous proxy writes shared memory, then generic accesses: the mbarrier orders, no fence is needed
define ptx_kernel void @loaded_then_read(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @begin(i32 %tid)
  call void @load(i32 %tid, ptr addrspace(1) %in, i32 0)
  call void @take(i32 %tid, ptr addrspace(1) %out)
  ret void
}
; What was read may be overwritten after a barrier.
define ptx_kernel void @loaded_twice(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @begin(i32 %tid)
  call void @load(i32 %tid, ptr addrspace(1) %in, i32 0)
  call void @take(i32 %tid, ptr addrspace(1) %out)
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %in, i32 1)
  call void @take(i32 %tid, ptr addrspace(1) %out)
  ret void
}
; The reads may still be under way when the engine writes.
define ptx_kernel void @loaded_twice_without(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @begin(i32 %tid)
  call void @load(i32 %tid, ptr addrspace(1) %in, i32 0)
  call void @take(i32 %tid, ptr addrspace(1) %out)
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %in, i32 1)
  ret void
}

; ---- global memory: generic writes, then the asynchronous proxy reads
; The fence for global memory.
define ptx_kernel void @global_then_loaded(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @begin(i32 %tid)
  %mine = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %tid, ptr addrspace(1) %mine
  call void @llvm.nvvm.fence.proxy.async.global()
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %out, i32 0)
  call void @take(i32 %tid, ptr addrspace(1) %out)
  ret void
}
; No fence.
define ptx_kernel void @global_then_loaded_without(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @begin(i32 %tid)
  %mine = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %tid, ptr addrspace(1) %mine
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %out, i32 0)
  call void @take(i32 %tid, ptr addrspace(1) %out)
  ret void
}

; ---- global memory: the asynchronous proxy writes, then generic reads
; The store is complete when its thread meets the others.
define ptx_kernel void @stored_then_read(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @fill(i32 %tid)
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @meet()
  call void @store(i32 %tid, ptr addrspace(1) %out, i1 true)
  call void @meet()
  %other = xor i32 %tid, 63
  %theirs = getelementptr i32, ptr addrspace(1) %out, i32 %other
  %v = load volatile i32, ptr addrspace(1) %theirs
  ret void
}
; Only its reads of shared memory are.
define ptx_kernel void @stored_then_read_early(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @fill(i32 %tid)
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @meet()
  call void @store(i32 %tid, ptr addrspace(1) %out, i1 false)
  call void @meet()
  %other = xor i32 %tid, 63
  %theirs = getelementptr i32, ptr addrspace(1) %out, i32 %other
  %v = load volatile i32, ptr addrspace(1) %theirs
  ret void
}

; ---- global memory between two blocks: the first one writes and releases, the second one acquires and loads
; Who acquired fences.
define ptx_kernel void @blocks_reader_fences(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %flag = getelementptr i32, ptr addrspace(1) %out, i32 1000
  call void @begin(i32 %tid)
  %first = icmp eq i32 %block, 0
  br i1 %first, label %write, label %wait
write:
  %mine = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %tid, ptr addrspace(1) %mine
  call void @meet()
  %leads = icmp eq i32 %tid, 0
  br i1 %leads, label %release, label %end
release:
  store atomic i32 1, ptr addrspace(1) %flag syncscope("device") release, align 4
  br label %end
wait:
  %seen = load atomic i32, ptr addrspace(1) %flag syncscope("device") acquire, align 4
  %is_set = icmp eq i32 %seen, 1
  br i1 %is_set, label %go, label %wait
go:
  call void @llvm.nvvm.fence.proxy.async.global()
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %out, i32 0)
  br label %end
end:
  ret void
}
; Who wrote fences before the release.
define ptx_kernel void @blocks_writer_fences(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %flag = getelementptr i32, ptr addrspace(1) %out, i32 1000
  call void @begin(i32 %tid)
  %first = icmp eq i32 %block, 0
  br i1 %first, label %write, label %wait
write:
  %mine = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %tid, ptr addrspace(1) %mine
  call void @llvm.nvvm.fence.proxy.async.global()
  call void @meet()
  %leads = icmp eq i32 %tid, 0
  br i1 %leads, label %release, label %end
release:
  store atomic i32 1, ptr addrspace(1) %flag syncscope("device") release, align 4
  br label %end
wait:
  %seen = load atomic i32, ptr addrspace(1) %flag syncscope("device") acquire, align 4
  %is_set = icmp eq i32 %seen, 1
  br i1 %is_set, label %go, label %wait
go:
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %out, i32 0)
  br label %end
end:
  ret void
}
; No fence.
define ptx_kernel void @blocks_without(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %flag = getelementptr i32, ptr addrspace(1) %out, i32 1000
  call void @begin(i32 %tid)
  %first = icmp eq i32 %block, 0
  br i1 %first, label %write, label %wait
write:
  %mine = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %tid, ptr addrspace(1) %mine
  call void @meet()
  %leads = icmp eq i32 %tid, 0
  br i1 %leads, label %release, label %end
release:
  store atomic i32 1, ptr addrspace(1) %flag syncscope("device") release, align 4
  br label %end
wait:
  %seen = load atomic i32, ptr addrspace(1) %flag syncscope("device") acquire, align 4
  %is_set = icmp eq i32 %seen, 1
  br i1 %is_set, label %go, label %wait
go:
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %out, i32 0)
  br label %end
end:
  ret void
}
; Fences of shared memory only.
define ptx_kernel void @blocks_other_fences(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %flag = getelementptr i32, ptr addrspace(1) %out, i32 1000
  call void @begin(i32 %tid)
  %first = icmp eq i32 %block, 0
  br i1 %first, label %write, label %wait
write:
  %mine = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %tid, ptr addrspace(1) %mine
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @meet()
  %leads = icmp eq i32 %tid, 0
  br i1 %leads, label %release, label %end
release:
  store atomic i32 1, ptr addrspace(1) %flag syncscope("device") release, align 4
  br label %end
wait:
  %seen = load atomic i32, ptr addrspace(1) %flag syncscope("device") acquire, align 4
  %is_set = icmp eq i32 %seen, 1
  br i1 %is_set, label %go, label %wait
go:
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @meet()
  call void @load(i32 %tid, ptr addrspace(1) %out, i32 0)
  br label %end
end:
  ret void
}
