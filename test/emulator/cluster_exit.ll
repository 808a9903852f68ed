; Clusters of two blocks of 32 threads, of which block 0 reaches into the shared memory of block 1. Each kernel gets a
; buffer of 4096 zero bytes to read and one to write.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [32 x i32] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
declare ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3), i32)
declare void @llvm.nvvm.barrier.cluster.arrive()
declare void @llvm.nvvm.barrier.cluster.wait()

define internal void @reach(ptr addrspace(1) %out, i1 %writes, i1 %arrives, i1 %waits) alwaysinline {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %mine = getelementptr i32, ptr addrspace(3) @tile, i32 %tid
  store i32 %tid, ptr addrspace(3) %mine
  call void @llvm.nvvm.barrier.cluster.arrive()
  call void @llvm.nvvm.barrier.cluster.wait()
  %first = icmp eq i32 %rank, 0
  br i1 %first, label %access, label %end
access:
  %theirs = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %mine, i32 1)
  br i1 %writes, label %write, label %read
write:
  store i32 7, ptr addrspace(7) %theirs
  br label %end
read:
  %v = load i32, ptr addrspace(7) %theirs
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %v, ptr addrspace(1) %o
  br label %end
end:
  br i1 %arrives, label %arrive, label %over
arrive:
  call void @llvm.nvvm.barrier.cluster.arrive()
  br i1 %waits, label %wait, label %over
wait:
  call void @llvm.nvvm.barrier.cluster.wait()
  br label %over
over:
  ret void
}
define ptx_kernel void @read_good(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @reach(ptr addrspace(1) %out, i1 false, i1 true, i1 true)
  ret void
}
define ptx_kernel void @read_late(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @reach(ptr addrspace(1) %out, i1 false, i1 false, i1 false)
  ret void
}
; Arriving alone keeps no block.
define ptx_kernel void @write_late(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @reach(ptr addrspace(1) %out, i1 true, i1 true, i1 false)
  ret void
}
