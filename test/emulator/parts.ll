; Atomics on bytes of a word, and loops around a compare-and-swap. Each kernel gets a buffer of 4096 zero bytes to read and
; one to write; a block has 64 threads.
target triple = "nvptx64-nvidia-cuda"

@word = internal addrspace(3) global [1 x i32] undef, align 4

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare i32 @tl.ld.relaxed.global.part(ptr addrspace(1), i32)
declare i32 @tl.atom.relaxed.global.cas.part(ptr addrspace(1), i32, i32, i32)
declare i32 @tl.ld.relaxed.shared.part(ptr addrspace(3), i32)
declare i32 @tl.atom.relaxed.shared.cas.part(ptr addrspace(3), i32, i32, i32)

; Thread 1 sets the upper half of out[0] to 5, thread 40 stores 7 to the half that %byte says.
define internal void @halves(ptr addrspace(1) %out, i64 %byte) alwaysinline {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  switch i32 %tid, label %end [ i32 1, label %update
                                i32 40, label %store ]
update:
  %first = call i32 @tl.ld.relaxed.global.part(ptr addrspace(1) %out, i32 -65536)
  br label %loop
loop:
  %old = phi i32 [ %first, %update ], [ %seen, %loop ]
  %low = and i32 %old, 65535
  %new = or i32 %low, 327680
  %seen = call i32 @tl.atom.relaxed.global.cas.part(ptr addrspace(1) %out, i32 %old, i32 %new, i32 -65536)
  %done = icmp eq i32 %seen, %old
  br i1 %done, label %end, label %loop
store:
  %half = getelementptr i8, ptr addrspace(1) %out, i64 %byte
  store i16 7, ptr addrspace(1) %half, align 2
  br label %end
end:
  ret void
}
define ptx_kernel void @other_half(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @halves(ptr addrspace(1) %out, i64 0)
  ret void
}
define ptx_kernel void @same_half(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @halves(ptr addrspace(1) %out, i64 2)
  ret void
}
; What the operations give: out[tid] = what word tid % 2 of shared memory held, exchanged if it was 9.
define ptx_kernel void @results(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %one, label %end
one:
  store i32 9, ptr addrspace(3) @word
  %a = call i32 @tl.ld.relaxed.shared.part(ptr addrspace(3) @word, i32 255)
  %b = call i32 @tl.atom.relaxed.shared.cas.part(ptr addrspace(3) @word, i32 8, i32 20, i32 255)
  %c = call i32 @tl.atom.relaxed.shared.cas.part(ptr addrspace(3) @word, i32 9, i32 21, i32 255)
  %d = call i32 @tl.ld.relaxed.shared.part(ptr addrspace(3) @word, i32 255)
  store i32 %a, ptr addrspace(1) %out
  %q1 = getelementptr i32, ptr addrspace(1) %out, i32 1
  store i32 %b, ptr addrspace(1) %q1
  %q2 = getelementptr i32, ptr addrspace(1) %out, i32 2
  store i32 %c, ptr addrspace(1) %q2
  %q3 = getelementptr i32, ptr addrspace(1) %out, i32 3
  store i32 %d, ptr addrspace(1) %q3
  br label %end
end:
  ret void
}
define ptx_kernel void @misaligned(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %p = getelementptr i8, ptr addrspace(1) %out, i32 2
  %a = call i32 @tl.ld.relaxed.global.part(ptr addrspace(1) %p, i32 255)
  ret void
}

; The maximum of all thread numbers, mixed, in out[0], by a loop that reads, computes and exchanges: right; as LLVM expanded
; 16-bit floats, with what is stored computed once from the first read; and with one attempt only.
define internal void @maximum(ptr addrspace(1) %out, i1 %recomputes, i1 %retries) alwaysinline {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %mixed = mul i32 %tid, 37
  %value = and i32 %mixed, 63
  %first = load i32, ptr addrspace(1) %out
  %larger = icmp ugt i32 %value, %first
  %once = select i1 %larger, i32 %value, i32 %first
  br label %loop
loop:
  %old = phi i32 [ %first, %0 ], [ %seen, %loop ]
  %more = icmp ugt i32 %value, %old
  %again = select i1 %more, i32 %value, i32 %old
  %new = select i1 %recomputes, i32 %again, i32 %once
  %pair = cmpxchg ptr addrspace(1) %out, i32 %old, i32 %new syncscope("device") monotonic monotonic
  %seen = extractvalue { i32, i1 } %pair, 0
  %stored = extractvalue { i32, i1 } %pair, 1
  %never = xor i1 %retries, true
  %done = or i1 %stored, %never
  br i1 %done, label %end, label %loop
end:
  ret void
}
define ptx_kernel void @maximum_right(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @maximum(ptr addrspace(1) %out, i1 true, i1 true)
  ret void
}
define ptx_kernel void @maximum_computed_once(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @maximum(ptr addrspace(1) %out, i1 false, i1 true)
  ret void
}
define ptx_kernel void @maximum_tried_once(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  call void @maximum(ptr addrspace(1) %out, i1 true, i1 false)
  ret void
}
; A read and a write of their own in the place of an update, volatile: each thread adds 1 to out[0].
define ptx_kernel void @counted_apart(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %old = load volatile i32, ptr addrspace(1) %out
  %new = add i32 %old, 1
  store volatile i32 %new, ptr addrspace(1) %out
  ret void
}
