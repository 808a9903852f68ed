; Special registers, parameters, global and shared memory, barriers.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [64 x i32] undef, align 16
@dynamic = external addrspace(3) global [0 x i32], align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)
declare void @llvm.nvvm.bar.warp.sync(i32)

; out[linear block][thread] = { tid, lane, ntid, ctaid.x, y, z, nctaid.x, y, z }
define ptx_kernel void @registers(ptr addrspace(1) %out) #0 {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %x = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %z = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %nx = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %ny = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %nz = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.z()
  %zy = mul i32 %z, %ny
  %zy1 = add i32 %zy, %y
  %zyx = mul i32 %zy1, %nx
  %block = add i32 %zyx, %x
  %first = mul i32 %block, %ntid
  %index = add i32 %first, %tid
  %place = mul i32 %index, 9
  %p0 = getelementptr i32, ptr addrspace(1) %out, i32 %place
  store i32 %tid, ptr addrspace(1) %p0
  %p1 = getelementptr i32, ptr addrspace(1) %p0, i32 1
  store i32 %lane, ptr addrspace(1) %p1
  %p2 = getelementptr i32, ptr addrspace(1) %p0, i32 2
  store i32 %ntid, ptr addrspace(1) %p2
  %p3 = getelementptr i32, ptr addrspace(1) %p0, i32 3
  store i32 %x, ptr addrspace(1) %p3
  %p4 = getelementptr i32, ptr addrspace(1) %p0, i32 4
  store i32 %y, ptr addrspace(1) %p4
  %p5 = getelementptr i32, ptr addrspace(1) %p0, i32 5
  store i32 %z, ptr addrspace(1) %p5
  %p6 = getelementptr i32, ptr addrspace(1) %p0, i32 6
  store i32 %nx, ptr addrspace(1) %p6
  %p7 = getelementptr i32, ptr addrspace(1) %p0, i32 7
  store i32 %ny, ptr addrspace(1) %p7
  %p8 = getelementptr i32, ptr addrspace(1) %p0, i32 8
  store i32 %nz, ptr addrspace(1) %p8
  ret void
}

; out = { f, d, l, h as float, b }
define ptx_kernel void @parameters(ptr addrspace(1) noalias writeonly %out, float %f, double %d, i64 %l, half %h, i8 %b) memory(argmem: write) {
  store float %f, ptr addrspace(1) %out
  %p1 = getelementptr i8, ptr addrspace(1) %out, i32 8
  store double %d, ptr addrspace(1) %p1
  %p2 = getelementptr i8, ptr addrspace(1) %out, i32 16
  store i64 %l, ptr addrspace(1) %p2
  %p3 = getelementptr i8, ptr addrspace(1) %out, i32 24
  %hf = fpext half %h to float
  store float %hf, ptr addrspace(1) %p3
  %p4 = getelementptr i8, ptr addrspace(1) %out, i32 28
  %bi = sext i8 %b to i32
  store i32 %bi, ptr addrspace(1) %p4
  ret void
}

; Reverses the 64 numbers of each block through shared memory: a constant-expression address, a select of two, a phi.
define ptx_kernel void @reverse(ptr addrspace(1) %out) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %low = icmp ult i32 %tid, 32
  br i1 %low, label %a, label %b
a:
  br label %join
b:
  br label %join
join:
  %base = phi ptr addrspace(3) [ @tile, %a ], [ getelementptr (i8, ptr addrspace(3) @tile, i32 128), %b ]
  %lane = and i32 %tid, 31
  %s = getelementptr i32, ptr addrspace(3) %base, i32 %lane
  %first = mul i32 %block, 64
  %value = add i32 %first, %tid
  store i32 %value, ptr addrspace(3) %s
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %other = sub i32 63, %tid
  %t = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @tile to ptr), i32 %other
  %got = load i32, ptr %t
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %value
  store i32 %got, ptr addrspace(1) %o
  ret void
}

; The same without the barrier.
define ptx_kernel void @reverse_without_barrier(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %s = getelementptr i32, ptr addrspace(3) @tile, i32 %tid
  store i32 %tid, ptr addrspace(3) %s
  %other = sub i32 63, %tid
  %t = getelementptr i32, ptr addrspace(3) @tile, i32 %other
  %got = load i32, ptr addrspace(3) %t
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %got, ptr addrspace(1) %o
  ret void
}

; out = { low 32 bits of @dynamic - @tile, value read from uninitialised shared memory }
define ptx_kernel void @shared_layout(ptr addrspace(1) %out) {
  %a = ptrtoint ptr addrspace(3) @tile to i32
  %b = ptrtoint ptr addrspace(3) @dynamic to i32
  %c = sub i32 %b, %a
  store i32 %c, ptr addrspace(1) %out
  %v = load i32, ptr addrspace(3) @dynamic
  %p = getelementptr i32, ptr addrspace(1) %out, i32 1
  store i32 %v, ptr addrspace(1) %p
  %q = getelementptr i32, ptr addrspace(3) @dynamic, i32 24
  store i32 7, ptr addrspace(3) %q
  ret void
}

; 128 threads. Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2, each group sums its numbers in turn.
define ptx_kernel void @named_barriers(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %group = lshr i32 %tid, 6
  %in = and i32 %tid, 63
  %id = add i32 %group, 1
  %low = icmp ult i32 %in, 32
  %offset = mul i32 %group, 128
  %base = getelementptr i8, ptr addrspace(3) @tile, i32 %offset
  %lane = and i32 %tid, 31
  %s = getelementptr i32, ptr addrspace(3) %base, i32 %lane
  br i1 %low, label %producer, label %consumer
producer:
  store i32 %tid, ptr addrspace(3) %s
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %id, i32 64)
  ret void
consumer:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %id, i32 64)
  %v = load i32, ptr addrspace(3) %s
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %v, ptr addrspace(1) %o
  ret void
}

; A loop with 100 barriers; each thread adds its left neighbour's number and passes it on.
define ptx_kernel void @many_barriers(ptr addrspace(1) %out) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %left = add i32 %tid, 63
  %left_in = and i32 %left, 63
  %s = getelementptr i32, ptr addrspace(3) @tile, i32 %tid
  %t = getelementptr i32, ptr addrspace(3) @tile, i32 %left_in
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %v = phi i32 [ %tid, %entry ], [ %got, %loop ]
  store i32 %v, ptr addrspace(3) %s
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %got = load i32, ptr addrspace(3) %t
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %j = add i32 %i, 1
  %more = icmp ult i32 %j, 100
  br i1 %more, label %loop, label %done
done:
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %got, ptr addrspace(1) %o
  ret void
}

; Exchange between lanes of a warp through shared memory, with bar.warp.sync.
define ptx_kernel void @warp_exchange(ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %s = getelementptr i32, ptr addrspace(3) @tile, i32 %tid
  store i32 %tid, ptr addrspace(3) %s
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %other = xor i32 %tid, 31
  %t = getelementptr i32, ptr addrspace(3) @tile, i32 %other
  %got = load i32, ptr addrspace(3) %t
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %got, ptr addrspace(1) %o
  ret void
}

attributes #0 = { convergent "nvvm.reqntid"="64" "target-cpu"="sm_80" "target-features"="+ptx70" }
