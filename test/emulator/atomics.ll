; Atomic operations of many blocks on a few cells.
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()

; cells[0] += 1; cells[1] = max(tid); float cells[2] += 0.5; cells[3]: half and bfloat += 1; cells[4] ^= 1 << lane, and
; cells[5] counts successful exchanges of a lock-free increment of cells[6].
define ptx_kernel void @counters(ptr addrspace(1) %cells) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %old = atomicrmw add ptr addrspace(1) %cells, i32 1 syncscope("device") monotonic
  %p1 = getelementptr i32, ptr addrspace(1) %cells, i32 1
  %m = atomicrmw max ptr addrspace(1) %p1, i32 %tid syncscope("device") monotonic
  %p2 = getelementptr i32, ptr addrspace(1) %cells, i32 2
  %f = atomicrmw fadd ptr addrspace(1) %p2, float 0.5 syncscope("device") monotonic
  %p3 = getelementptr i32, ptr addrspace(1) %cells, i32 3
  %h = atomicrmw fadd ptr addrspace(1) %p3, half 1.0 syncscope("device") monotonic
  %p3b = getelementptr i16, ptr addrspace(1) %p3, i32 1
  %b = atomicrmw fadd ptr addrspace(1) %p3b, bfloat 1.0 syncscope("device") monotonic
  %p4 = getelementptr i32, ptr addrspace(1) %cells, i32 4
  %lane = and i32 %tid, 31
  %bit = shl i32 1, %lane
  %x = atomicrmw xor ptr addrspace(1) %p4, i32 %bit syncscope("device") monotonic
  %p5 = getelementptr i32, ptr addrspace(1) %cells, i32 5
  %p6 = getelementptr i32, ptr addrspace(1) %cells, i32 6
  %first = load atomic i32, ptr addrspace(1) %p6 syncscope("device") monotonic, align 4
  br label %retry
retry:
  %expected = phi i32 [ %first, %entry ], [ %seen, %retry ]
  %wanted = add i32 %expected, 1
  %pair = cmpxchg ptr addrspace(1) %p6, i32 %expected, i32 %wanted syncscope("device") acq_rel monotonic
  %seen = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %end, label %retry
end:
  fence syncscope("device") seq_cst
  %n = atomicrmw add ptr addrspace(1) %p5, i32 1 syncscope("device") monotonic
  ret void
}

; Two halves at once, as split-K epilogues do.
define ptx_kernel void @vectors(ptr addrspace(1) %cells) {
  %a = atomicrmw fadd ptr addrspace(1) %cells, <2 x half> <half 1.0, half 2.0> syncscope("device") monotonic
  %p1 = getelementptr i32, ptr addrspace(1) %cells, i32 1
  %b = atomicrmw fadd ptr addrspace(1) %p1, <2 x bfloat> <bfloat 1.0, bfloat 2.0> syncscope("device") monotonic
  ret void
}
