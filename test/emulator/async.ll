; Groups of cp.async. Each kernel runs with one warp; thread t copies 16 bytes of in to tile + 16 t and looks at the first word.
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [4 x [512 x i8]] undef, align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32 immarg)
declare void @llvm.nvvm.cp.async.wait.all()

define internal void @copy(ptr addrspace(1) %in, i32 %tid, i32 %stage) alwaysinline {
  %to = getelementptr [512 x i8], ptr addrspace(3) @tile, i32 %stage
  %offset = shl i32 %tid, 4
  %to_own = getelementptr i8, ptr addrspace(3) %to, i32 %offset
  %stage_offset = shl i32 %stage, 9
  %all = add i32 %offset, %stage_offset
  %from = getelementptr i8, ptr addrspace(1) %in, i32 %all
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to_own, ptr addrspace(1) %from)
  ret void
}

; out[column][tid] = first word of what this thread copied into the stage
define internal void @look(ptr addrspace(1) %out, i32 %tid, i32 %stage, i32 %column) alwaysinline {
  %at = getelementptr [512 x i8], ptr addrspace(3) @tile, i32 %stage
  %offset = shl i32 %tid, 4
  %own = getelementptr i8, ptr addrspace(3) %at, i32 %offset
  %word = load i32, ptr addrspace(3) %own
  %base = mul i32 %column, 32
  %index = add i32 %base, %tid
  %place = getelementptr i32, ptr addrspace(1) %out, i32 %index
  store i32 %word, ptr addrspace(1) %place
  ret void
}

; Three groups, the second with two copies. Columns: stage 0 and 1 after wait 2, 1 and 2 after wait 1, 3 after wait 0.
define ptx_kernel void @groups(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @copy(ptr addrspace(1) %in, i32 %tid, i32 0)
  call void @llvm.nvvm.cp.async.commit.group()
  call void @copy(ptr addrspace(1) %in, i32 %tid, i32 1)
  call void @copy(ptr addrspace(1) %in, i32 %tid, i32 2)
  call void @llvm.nvvm.cp.async.commit.group()
  call void @copy(ptr addrspace(1) %in, i32 %tid, i32 3)
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.wait.group(i32 2)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 0, i32 0)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 1, i32 1)
  call void @llvm.nvvm.cp.async.wait.group(i32 1)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 1, i32 2)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 2, i32 3)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 3, i32 4)
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 3, i32 5)
  ret void
}

; A copy that is not committed: wait_group 0 does not cover it, wait_all does.
define ptx_kernel void @uncommitted(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @copy(ptr addrspace(1) %in, i32 %tid, i32 0)
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 0, i32 0)
  call void @llvm.nvvm.cp.async.wait.all()
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 0, i32 1)
  ret void
}

; The source changes between the copy and its wait.
define ptx_kernel void @source_changes(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @copy(ptr addrspace(1) %in, i32 %tid, i32 0)
  call void @llvm.nvvm.cp.async.commit.group()
  %offset = shl i32 %tid, 4
  %from = getelementptr i8, ptr addrspace(1) %in, i32 %offset
  store i32 -5, ptr addrspace(1) %from
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 0, i32 0)
  ret void
}

; No wait at all, and an early exit with copies in flight.
define ptx_kernel void @never_waits(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @copy(ptr addrspace(1) %in, i32 %tid, i32 0)
  call void @llvm.nvvm.cp.async.commit.group()
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 0, i32 0)
  ret void
}

; More copies in flight than any queue starts with.
define ptx_kernel void @many(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %stage = and i32 %i, 3
  call void @copy(ptr addrspace(1) %in, i32 %tid, i32 %stage)
  %j = add i32 %i, 1
  %more = icmp ult i32 %j, 200
  br i1 %more, label %loop, label %done
done:
  call void @llvm.nvvm.cp.async.wait.all()
  call void @look(ptr addrspace(1) %out, i32 %tid, i32 3, i32 0)
  ret void
}
