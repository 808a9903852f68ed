; C[M, N] f32 = A[M, K] times B[K, N], f16: blocks of 64 x 64, steps of 32, 2 x 2 warps, two stages of cp.async, ldmatrix with
; a swizzle, mma.m16n8k16. The test makes the bf16 kernel from this one (its operands are i32), and wrong ones by leaving
; out a line marked "sync".
target triple = "nvptx64-nvidia-cuda"

@tile_a = internal addrspace(3) global [2 x [64 x [32 x i16]]] undef, align 128
@tile_b = internal addrspace(3) global [2 x [32 x [64 x i16]]] undef, align 128

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32 immarg)
declare {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3))
declare {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(ptr addrspace(3))
declare {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, float, float, float, float)

; Byte offset of element (row, col) of a 64 x 32 tile: the chunk of 8 elements is XORed with (row / 2) % 4.
define internal i32 @swizzle_a(i32 %row, i32 %col) alwaysinline {
  %chunk = lshr i32 %col, 3
  %half = lshr i32 %row, 1
  %x = and i32 %half, 3
  %mixed = xor i32 %chunk, %x
  %row_bytes = shl i32 %row, 6
  %chunk_bytes = shl i32 %mixed, 4
  %offset = add i32 %row_bytes, %chunk_bytes
  ret i32 %offset
}

; The same for a 32 x 64 tile: XOR with row % 8.
define internal i32 @swizzle_b(i32 %row, i32 %col) alwaysinline {
  %chunk = lshr i32 %col, 3
  %x = and i32 %row, 7
  %mixed = xor i32 %chunk, %x
  %row_bytes = shl i32 %row, 7
  %chunk_bytes = shl i32 %mixed, 4
  %offset = add i32 %row_bytes, %chunk_bytes
  ret i32 %offset
}

; Issues the copies of k step %s into stage %s % 2.
define internal void @fetch(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %N, i32 %K, i32 %m0, i32 %n0, i32 %arow, i32 %acol, i32 %brow, i32 %bcol, i32 %s) alwaysinline {
  %k0 = shl i32 %s, 5
  %stage = and i32 %s, 1
  %stage_bytes = shl i32 %stage, 12
  %ta = getelementptr i8, ptr addrspace(3) @tile_a, i32 %stage_bytes
  %tb = getelementptr i8, ptr addrspace(3) @tile_b, i32 %stage_bytes

  %ar0 = add i32 %arow, 0
  %am0 = add i32 %ar0, %m0
  %ak0 = add i32 %acol, %k0
  %arow_offset0 = mul i32 %am0, %K
  %ai0 = add i32 %arow_offset0, %ak0
  %ag0 = getelementptr i16, ptr addrspace(1) %A, i32 %ai0
  %ao0 = call i32 @swizzle_a(i32 %ar0, i32 %acol)
  %as0 = getelementptr i8, ptr addrspace(3) %ta, i32 %ao0
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %as0, ptr addrspace(1) %ag0)
  %br0 = add i32 %brow, 0
  %bk0 = add i32 %br0, %k0
  %bn0 = add i32 %bcol, %n0
  %brow_offset0 = mul i32 %bk0, %N
  %bi0 = add i32 %brow_offset0, %bn0
  %bg0 = getelementptr i16, ptr addrspace(1) %B, i32 %bi0
  %bo0 = call i32 @swizzle_b(i32 %br0, i32 %bcol)
  %bs0 = getelementptr i8, ptr addrspace(3) %tb, i32 %bo0
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %bs0, ptr addrspace(1) %bg0)
  %ar1 = add i32 %arow, 32
  %am1 = add i32 %ar1, %m0
  %ak1 = add i32 %acol, %k0
  %arow_offset1 = mul i32 %am1, %K
  %ai1 = add i32 %arow_offset1, %ak1
  %ag1 = getelementptr i16, ptr addrspace(1) %A, i32 %ai1
  %ao1 = call i32 @swizzle_a(i32 %ar1, i32 %acol)
  %as1 = getelementptr i8, ptr addrspace(3) %ta, i32 %ao1
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %as1, ptr addrspace(1) %ag1)
  %br1 = add i32 %brow, 16
  %bk1 = add i32 %br1, %k0
  %bn1 = add i32 %bcol, %n0
  %brow_offset1 = mul i32 %bk1, %N
  %bi1 = add i32 %brow_offset1, %bn1
  %bg1 = getelementptr i16, ptr addrspace(1) %B, i32 %bi1
  %bo1 = call i32 @swizzle_b(i32 %br1, i32 %bcol)
  %bs1 = getelementptr i8, ptr addrspace(3) %tb, i32 %bo1
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %bs1, ptr addrspace(1) %bg1)
  ret void
}

define ptx_kernel void @gemm(ptr addrspace(1) %A, ptr addrspace(1) %B, ptr addrspace(1) %C, i32 %M, i32 %N, i32 %K) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %bx = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %warp = lshr i32 %tid, 5
  %lane = and i32 %tid, 31
  %wm = and i32 %warp, 1
  %wn = lshr i32 %warp, 1
  %wm0 = mul i32 %wm, 32
  %wn0 = mul i32 %wn, 32
  %m0 = mul i32 %by, 64
  %n0 = mul i32 %bx, 64
  %arow = lshr i32 %tid, 2
  %acol4 = and i32 %tid, 3
  %acol = shl i32 %acol4, 3
  %brow = lshr i32 %tid, 3
  %bcol8 = and i32 %tid, 7
  %bcol = shl i32 %bcol8, 3
  %steps = lshr i32 %K, 5
  call void @fetch(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %N, i32 %K, i32 %m0, i32 %n0, i32 %arow, i32 %acol, i32 %brow, i32 %bcol, i32 0)
  call void @llvm.nvvm.cp.async.commit.group()
  %l15 = and i32 %lane, 15
  %l16 = lshr i32 %lane, 4
  %l8 = shl i32 %l16, 3
  br label %loop
loop:
  %s = phi i32 [ 0, %entry ], [ %s1, %next ]
  %c0 = phi float [ 0.0, %entry ], [ %d1_0, %next ]
  %c1 = phi float [ 0.0, %entry ], [ %d1_1, %next ]
  %c2 = phi float [ 0.0, %entry ], [ %d1_2, %next ]
  %c3 = phi float [ 0.0, %entry ], [ %d1_3, %next ]
  %c4 = phi float [ 0.0, %entry ], [ %d1_4, %next ]
  %c5 = phi float [ 0.0, %entry ], [ %d1_5, %next ]
  %c6 = phi float [ 0.0, %entry ], [ %d1_6, %next ]
  %c7 = phi float [ 0.0, %entry ], [ %d1_7, %next ]
  %c8 = phi float [ 0.0, %entry ], [ %d1_8, %next ]
  %c9 = phi float [ 0.0, %entry ], [ %d1_9, %next ]
  %c10 = phi float [ 0.0, %entry ], [ %d1_10, %next ]
  %c11 = phi float [ 0.0, %entry ], [ %d1_11, %next ]
  %c12 = phi float [ 0.0, %entry ], [ %d1_12, %next ]
  %c13 = phi float [ 0.0, %entry ], [ %d1_13, %next ]
  %c14 = phi float [ 0.0, %entry ], [ %d1_14, %next ]
  %c15 = phi float [ 0.0, %entry ], [ %d1_15, %next ]
  %c16 = phi float [ 0.0, %entry ], [ %d1_16, %next ]
  %c17 = phi float [ 0.0, %entry ], [ %d1_17, %next ]
  %c18 = phi float [ 0.0, %entry ], [ %d1_18, %next ]
  %c19 = phi float [ 0.0, %entry ], [ %d1_19, %next ]
  %c20 = phi float [ 0.0, %entry ], [ %d1_20, %next ]
  %c21 = phi float [ 0.0, %entry ], [ %d1_21, %next ]
  %c22 = phi float [ 0.0, %entry ], [ %d1_22, %next ]
  %c23 = phi float [ 0.0, %entry ], [ %d1_23, %next ]
  %c24 = phi float [ 0.0, %entry ], [ %d1_24, %next ]
  %c25 = phi float [ 0.0, %entry ], [ %d1_25, %next ]
  %c26 = phi float [ 0.0, %entry ], [ %d1_26, %next ]
  %c27 = phi float [ 0.0, %entry ], [ %d1_27, %next ]
  %c28 = phi float [ 0.0, %entry ], [ %d1_28, %next ]
  %c29 = phi float [ 0.0, %entry ], [ %d1_29, %next ]
  %c30 = phi float [ 0.0, %entry ], [ %d1_30, %next ]
  %c31 = phi float [ 0.0, %entry ], [ %d1_31, %next ]
  %s1 = add i32 %s, 1
  %more = icmp ult i32 %s1, %steps
  br i1 %more, label %prefetch, label %last
prefetch:
  call void @fetch(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %N, i32 %K, i32 %m0, i32 %n0, i32 %arow, i32 %acol, i32 %brow, i32 %bcol, i32 %s1)
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.wait.group(i32 1)  ; sync: wait
  br label %compute
last:
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  br label %compute
compute:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)  ; sync: barrier after wait
  %stage = and i32 %s, 1
  %sa = mul i32 %stage, 4096
  %sb = mul i32 %stage, 4096
  %pa = getelementptr i8, ptr addrspace(3) @tile_a, i32 %sa
  %pb = getelementptr i8, ptr addrspace(3) @tile_b, i32 %sb
  %ar00 = add i32 %wm0, 0
  %arr00 = add i32 %ar00, %l15
  %ac00 = add i32 %l8, 0
  %ao00 = call i32 @swizzle_a(i32 %arr00, i32 %ac00)
  %ap00 = getelementptr i8, ptr addrspace(3) %pa, i32 %ao00
  %af00 = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %ap00)
  %a00_0 = extractvalue {i32, i32, i32, i32} %af00, 0
  %A00_0 = bitcast i32 %a00_0 to <2 x half>
  %a00_1 = extractvalue {i32, i32, i32, i32} %af00, 1
  %A00_1 = bitcast i32 %a00_1 to <2 x half>
  %a00_2 = extractvalue {i32, i32, i32, i32} %af00, 2
  %A00_2 = bitcast i32 %a00_2 to <2 x half>
  %a00_3 = extractvalue {i32, i32, i32, i32} %af00, 3
  %A00_3 = bitcast i32 %a00_3 to <2 x half>
  %ar01 = add i32 %wm0, 16
  %arr01 = add i32 %ar01, %l15
  %ac01 = add i32 %l8, 0
  %ao01 = call i32 @swizzle_a(i32 %arr01, i32 %ac01)
  %ap01 = getelementptr i8, ptr addrspace(3) %pa, i32 %ao01
  %af01 = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %ap01)
  %a01_0 = extractvalue {i32, i32, i32, i32} %af01, 0
  %A01_0 = bitcast i32 %a01_0 to <2 x half>
  %a01_1 = extractvalue {i32, i32, i32, i32} %af01, 1
  %A01_1 = bitcast i32 %a01_1 to <2 x half>
  %a01_2 = extractvalue {i32, i32, i32, i32} %af01, 2
  %A01_2 = bitcast i32 %a01_2 to <2 x half>
  %a01_3 = extractvalue {i32, i32, i32, i32} %af01, 3
  %A01_3 = bitcast i32 %a01_3 to <2 x half>
  %br00 = add i32 %l15, 0
  %bc00 = add i32 %wn0, 0
  %bcc00 = add i32 %bc00, %l8
  %bo00 = call i32 @swizzle_b(i32 %br00, i32 %bcc00)
  %bp00 = getelementptr i8, ptr addrspace(3) %pb, i32 %bo00
  %bf00 = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(ptr addrspace(3) %bp00)
  %b00_0 = extractvalue {i32, i32, i32, i32} %bf00, 0
  %B00_0 = bitcast i32 %b00_0 to <2 x half>
  %b00_1 = extractvalue {i32, i32, i32, i32} %bf00, 1
  %B00_1 = bitcast i32 %b00_1 to <2 x half>
  %b00_2 = extractvalue {i32, i32, i32, i32} %bf00, 2
  %B00_2 = bitcast i32 %b00_2 to <2 x half>
  %b00_3 = extractvalue {i32, i32, i32, i32} %bf00, 3
  %B00_3 = bitcast i32 %b00_3 to <2 x half>
  %br01 = add i32 %l15, 0
  %bc01 = add i32 %wn0, 16
  %bcc01 = add i32 %bc01, %l8
  %bo01 = call i32 @swizzle_b(i32 %br01, i32 %bcc01)
  %bp01 = getelementptr i8, ptr addrspace(3) %pb, i32 %bo01
  %bf01 = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(ptr addrspace(3) %bp01)
  %b01_0 = extractvalue {i32, i32, i32, i32} %bf01, 0
  %B01_0 = bitcast i32 %b01_0 to <2 x half>
  %b01_1 = extractvalue {i32, i32, i32, i32} %bf01, 1
  %B01_1 = bitcast i32 %b01_1 to <2 x half>
  %b01_2 = extractvalue {i32, i32, i32, i32} %bf01, 2
  %B01_2 = bitcast i32 %b01_2 to <2 x half>
  %b01_3 = extractvalue {i32, i32, i32, i32} %bf01, 3
  %B01_3 = bitcast i32 %b01_3 to <2 x half>
  %m0_00 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A00_0, <2 x half> %A00_1, <2 x half> %A00_2, <2 x half> %A00_3, <2 x half> %B00_0, <2 x half> %B00_1, float %c0, float %c1, float %c2, float %c3)
  %d0_0 = extractvalue {float, float, float, float} %m0_00, 0
  %d0_1 = extractvalue {float, float, float, float} %m0_00, 1
  %d0_2 = extractvalue {float, float, float, float} %m0_00, 2
  %d0_3 = extractvalue {float, float, float, float} %m0_00, 3
  %m0_01 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A00_0, <2 x half> %A00_1, <2 x half> %A00_2, <2 x half> %A00_3, <2 x half> %B00_2, <2 x half> %B00_3, float %c4, float %c5, float %c6, float %c7)
  %d0_4 = extractvalue {float, float, float, float} %m0_01, 0
  %d0_5 = extractvalue {float, float, float, float} %m0_01, 1
  %d0_6 = extractvalue {float, float, float, float} %m0_01, 2
  %d0_7 = extractvalue {float, float, float, float} %m0_01, 3
  %m0_02 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A00_0, <2 x half> %A00_1, <2 x half> %A00_2, <2 x half> %A00_3, <2 x half> %B01_0, <2 x half> %B01_1, float %c8, float %c9, float %c10, float %c11)
  %d0_8 = extractvalue {float, float, float, float} %m0_02, 0
  %d0_9 = extractvalue {float, float, float, float} %m0_02, 1
  %d0_10 = extractvalue {float, float, float, float} %m0_02, 2
  %d0_11 = extractvalue {float, float, float, float} %m0_02, 3
  %m0_03 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A00_0, <2 x half> %A00_1, <2 x half> %A00_2, <2 x half> %A00_3, <2 x half> %B01_2, <2 x half> %B01_3, float %c12, float %c13, float %c14, float %c15)
  %d0_12 = extractvalue {float, float, float, float} %m0_03, 0
  %d0_13 = extractvalue {float, float, float, float} %m0_03, 1
  %d0_14 = extractvalue {float, float, float, float} %m0_03, 2
  %d0_15 = extractvalue {float, float, float, float} %m0_03, 3
  %m0_10 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A01_0, <2 x half> %A01_1, <2 x half> %A01_2, <2 x half> %A01_3, <2 x half> %B00_0, <2 x half> %B00_1, float %c16, float %c17, float %c18, float %c19)
  %d0_16 = extractvalue {float, float, float, float} %m0_10, 0
  %d0_17 = extractvalue {float, float, float, float} %m0_10, 1
  %d0_18 = extractvalue {float, float, float, float} %m0_10, 2
  %d0_19 = extractvalue {float, float, float, float} %m0_10, 3
  %m0_11 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A01_0, <2 x half> %A01_1, <2 x half> %A01_2, <2 x half> %A01_3, <2 x half> %B00_2, <2 x half> %B00_3, float %c20, float %c21, float %c22, float %c23)
  %d0_20 = extractvalue {float, float, float, float} %m0_11, 0
  %d0_21 = extractvalue {float, float, float, float} %m0_11, 1
  %d0_22 = extractvalue {float, float, float, float} %m0_11, 2
  %d0_23 = extractvalue {float, float, float, float} %m0_11, 3
  %m0_12 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A01_0, <2 x half> %A01_1, <2 x half> %A01_2, <2 x half> %A01_3, <2 x half> %B01_0, <2 x half> %B01_1, float %c24, float %c25, float %c26, float %c27)
  %d0_24 = extractvalue {float, float, float, float} %m0_12, 0
  %d0_25 = extractvalue {float, float, float, float} %m0_12, 1
  %d0_26 = extractvalue {float, float, float, float} %m0_12, 2
  %d0_27 = extractvalue {float, float, float, float} %m0_12, 3
  %m0_13 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A01_0, <2 x half> %A01_1, <2 x half> %A01_2, <2 x half> %A01_3, <2 x half> %B01_2, <2 x half> %B01_3, float %c28, float %c29, float %c30, float %c31)
  %d0_28 = extractvalue {float, float, float, float} %m0_13, 0
  %d0_29 = extractvalue {float, float, float, float} %m0_13, 1
  %d0_30 = extractvalue {float, float, float, float} %m0_13, 2
  %d0_31 = extractvalue {float, float, float, float} %m0_13, 3
  %ar10 = add i32 %wm0, 0
  %arr10 = add i32 %ar10, %l15
  %ac10 = add i32 %l8, 16
  %ao10 = call i32 @swizzle_a(i32 %arr10, i32 %ac10)
  %ap10 = getelementptr i8, ptr addrspace(3) %pa, i32 %ao10
  %af10 = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %ap10)
  %a10_0 = extractvalue {i32, i32, i32, i32} %af10, 0
  %A10_0 = bitcast i32 %a10_0 to <2 x half>
  %a10_1 = extractvalue {i32, i32, i32, i32} %af10, 1
  %A10_1 = bitcast i32 %a10_1 to <2 x half>
  %a10_2 = extractvalue {i32, i32, i32, i32} %af10, 2
  %A10_2 = bitcast i32 %a10_2 to <2 x half>
  %a10_3 = extractvalue {i32, i32, i32, i32} %af10, 3
  %A10_3 = bitcast i32 %a10_3 to <2 x half>
  %ar11 = add i32 %wm0, 16
  %arr11 = add i32 %ar11, %l15
  %ac11 = add i32 %l8, 16
  %ao11 = call i32 @swizzle_a(i32 %arr11, i32 %ac11)
  %ap11 = getelementptr i8, ptr addrspace(3) %pa, i32 %ao11
  %af11 = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %ap11)
  %a11_0 = extractvalue {i32, i32, i32, i32} %af11, 0
  %A11_0 = bitcast i32 %a11_0 to <2 x half>
  %a11_1 = extractvalue {i32, i32, i32, i32} %af11, 1
  %A11_1 = bitcast i32 %a11_1 to <2 x half>
  %a11_2 = extractvalue {i32, i32, i32, i32} %af11, 2
  %A11_2 = bitcast i32 %a11_2 to <2 x half>
  %a11_3 = extractvalue {i32, i32, i32, i32} %af11, 3
  %A11_3 = bitcast i32 %a11_3 to <2 x half>
  %br10 = add i32 %l15, 16
  %bc10 = add i32 %wn0, 0
  %bcc10 = add i32 %bc10, %l8
  %bo10 = call i32 @swizzle_b(i32 %br10, i32 %bcc10)
  %bp10 = getelementptr i8, ptr addrspace(3) %pb, i32 %bo10
  %bf10 = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(ptr addrspace(3) %bp10)
  %b10_0 = extractvalue {i32, i32, i32, i32} %bf10, 0
  %B10_0 = bitcast i32 %b10_0 to <2 x half>
  %b10_1 = extractvalue {i32, i32, i32, i32} %bf10, 1
  %B10_1 = bitcast i32 %b10_1 to <2 x half>
  %b10_2 = extractvalue {i32, i32, i32, i32} %bf10, 2
  %B10_2 = bitcast i32 %b10_2 to <2 x half>
  %b10_3 = extractvalue {i32, i32, i32, i32} %bf10, 3
  %B10_3 = bitcast i32 %b10_3 to <2 x half>
  %br11 = add i32 %l15, 16
  %bc11 = add i32 %wn0, 16
  %bcc11 = add i32 %bc11, %l8
  %bo11 = call i32 @swizzle_b(i32 %br11, i32 %bcc11)
  %bp11 = getelementptr i8, ptr addrspace(3) %pb, i32 %bo11
  %bf11 = call {i32, i32, i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(ptr addrspace(3) %bp11)
  %b11_0 = extractvalue {i32, i32, i32, i32} %bf11, 0
  %B11_0 = bitcast i32 %b11_0 to <2 x half>
  %b11_1 = extractvalue {i32, i32, i32, i32} %bf11, 1
  %B11_1 = bitcast i32 %b11_1 to <2 x half>
  %b11_2 = extractvalue {i32, i32, i32, i32} %bf11, 2
  %B11_2 = bitcast i32 %b11_2 to <2 x half>
  %b11_3 = extractvalue {i32, i32, i32, i32} %bf11, 3
  %B11_3 = bitcast i32 %b11_3 to <2 x half>
  %m1_00 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A10_0, <2 x half> %A10_1, <2 x half> %A10_2, <2 x half> %A10_3, <2 x half> %B10_0, <2 x half> %B10_1, float %d0_0, float %d0_1, float %d0_2, float %d0_3)
  %d1_0 = extractvalue {float, float, float, float} %m1_00, 0
  %d1_1 = extractvalue {float, float, float, float} %m1_00, 1
  %d1_2 = extractvalue {float, float, float, float} %m1_00, 2
  %d1_3 = extractvalue {float, float, float, float} %m1_00, 3
  %m1_01 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A10_0, <2 x half> %A10_1, <2 x half> %A10_2, <2 x half> %A10_3, <2 x half> %B10_2, <2 x half> %B10_3, float %d0_4, float %d0_5, float %d0_6, float %d0_7)
  %d1_4 = extractvalue {float, float, float, float} %m1_01, 0
  %d1_5 = extractvalue {float, float, float, float} %m1_01, 1
  %d1_6 = extractvalue {float, float, float, float} %m1_01, 2
  %d1_7 = extractvalue {float, float, float, float} %m1_01, 3
  %m1_02 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A10_0, <2 x half> %A10_1, <2 x half> %A10_2, <2 x half> %A10_3, <2 x half> %B11_0, <2 x half> %B11_1, float %d0_8, float %d0_9, float %d0_10, float %d0_11)
  %d1_8 = extractvalue {float, float, float, float} %m1_02, 0
  %d1_9 = extractvalue {float, float, float, float} %m1_02, 1
  %d1_10 = extractvalue {float, float, float, float} %m1_02, 2
  %d1_11 = extractvalue {float, float, float, float} %m1_02, 3
  %m1_03 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A10_0, <2 x half> %A10_1, <2 x half> %A10_2, <2 x half> %A10_3, <2 x half> %B11_2, <2 x half> %B11_3, float %d0_12, float %d0_13, float %d0_14, float %d0_15)
  %d1_12 = extractvalue {float, float, float, float} %m1_03, 0
  %d1_13 = extractvalue {float, float, float, float} %m1_03, 1
  %d1_14 = extractvalue {float, float, float, float} %m1_03, 2
  %d1_15 = extractvalue {float, float, float, float} %m1_03, 3
  %m1_10 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A11_0, <2 x half> %A11_1, <2 x half> %A11_2, <2 x half> %A11_3, <2 x half> %B10_0, <2 x half> %B10_1, float %d0_16, float %d0_17, float %d0_18, float %d0_19)
  %d1_16 = extractvalue {float, float, float, float} %m1_10, 0
  %d1_17 = extractvalue {float, float, float, float} %m1_10, 1
  %d1_18 = extractvalue {float, float, float, float} %m1_10, 2
  %d1_19 = extractvalue {float, float, float, float} %m1_10, 3
  %m1_11 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A11_0, <2 x half> %A11_1, <2 x half> %A11_2, <2 x half> %A11_3, <2 x half> %B10_2, <2 x half> %B10_3, float %d0_20, float %d0_21, float %d0_22, float %d0_23)
  %d1_20 = extractvalue {float, float, float, float} %m1_11, 0
  %d1_21 = extractvalue {float, float, float, float} %m1_11, 1
  %d1_22 = extractvalue {float, float, float, float} %m1_11, 2
  %d1_23 = extractvalue {float, float, float, float} %m1_11, 3
  %m1_12 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A11_0, <2 x half> %A11_1, <2 x half> %A11_2, <2 x half> %A11_3, <2 x half> %B11_0, <2 x half> %B11_1, float %d0_24, float %d0_25, float %d0_26, float %d0_27)
  %d1_24 = extractvalue {float, float, float, float} %m1_12, 0
  %d1_25 = extractvalue {float, float, float, float} %m1_12, 1
  %d1_26 = extractvalue {float, float, float, float} %m1_12, 2
  %d1_27 = extractvalue {float, float, float, float} %m1_12, 3
  %m1_13 = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %A11_0, <2 x half> %A11_1, <2 x half> %A11_2, <2 x half> %A11_3, <2 x half> %B11_2, <2 x half> %B11_3, float %d0_28, float %d0_29, float %d0_30, float %d0_31)
  %d1_28 = extractvalue {float, float, float, float} %m1_13, 0
  %d1_29 = extractvalue {float, float, float, float} %m1_13, 1
  %d1_30 = extractvalue {float, float, float, float} %m1_13, 2
  %d1_31 = extractvalue {float, float, float, float} %m1_13, 3
  br label %next
next:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)  ; sync: barrier at end
  br i1 %more, label %loop, label %done
done:
  %g = lshr i32 %lane, 2
  %p = and i32 %lane, 3
  %p2 = shl i32 %p, 1
  %r000 = add i32 %g, 0
  %rw000 = add i32 %r000, %wm0
  %rg000 = add i32 %rw000, %m0
  %cc000 = add i32 %p2, 0
  %cw000 = add i32 %cc000, %wn0
  %cg000 = add i32 %cw000, %n0
  %ro000 = mul i32 %rg000, %N
  %ix000 = add i32 %ro000, %cg000
  %px000 = getelementptr float, ptr addrspace(1) %C, i32 %ix000
  store float %d1_0, ptr addrspace(1) %px000
  %py000 = getelementptr float, ptr addrspace(1) %px000, i32 1
  store float %d1_1, ptr addrspace(1) %py000
  %r001 = add i32 %g, 8
  %rw001 = add i32 %r001, %wm0
  %rg001 = add i32 %rw001, %m0
  %cc001 = add i32 %p2, 0
  %cw001 = add i32 %cc001, %wn0
  %cg001 = add i32 %cw001, %n0
  %ro001 = mul i32 %rg001, %N
  %ix001 = add i32 %ro001, %cg001
  %px001 = getelementptr float, ptr addrspace(1) %C, i32 %ix001
  store float %d1_2, ptr addrspace(1) %px001
  %py001 = getelementptr float, ptr addrspace(1) %px001, i32 1
  store float %d1_3, ptr addrspace(1) %py001
  %r010 = add i32 %g, 0
  %rw010 = add i32 %r010, %wm0
  %rg010 = add i32 %rw010, %m0
  %cc010 = add i32 %p2, 8
  %cw010 = add i32 %cc010, %wn0
  %cg010 = add i32 %cw010, %n0
  %ro010 = mul i32 %rg010, %N
  %ix010 = add i32 %ro010, %cg010
  %px010 = getelementptr float, ptr addrspace(1) %C, i32 %ix010
  store float %d1_4, ptr addrspace(1) %px010
  %py010 = getelementptr float, ptr addrspace(1) %px010, i32 1
  store float %d1_5, ptr addrspace(1) %py010
  %r011 = add i32 %g, 8
  %rw011 = add i32 %r011, %wm0
  %rg011 = add i32 %rw011, %m0
  %cc011 = add i32 %p2, 8
  %cw011 = add i32 %cc011, %wn0
  %cg011 = add i32 %cw011, %n0
  %ro011 = mul i32 %rg011, %N
  %ix011 = add i32 %ro011, %cg011
  %px011 = getelementptr float, ptr addrspace(1) %C, i32 %ix011
  store float %d1_6, ptr addrspace(1) %px011
  %py011 = getelementptr float, ptr addrspace(1) %px011, i32 1
  store float %d1_7, ptr addrspace(1) %py011
  %r020 = add i32 %g, 0
  %rw020 = add i32 %r020, %wm0
  %rg020 = add i32 %rw020, %m0
  %cc020 = add i32 %p2, 16
  %cw020 = add i32 %cc020, %wn0
  %cg020 = add i32 %cw020, %n0
  %ro020 = mul i32 %rg020, %N
  %ix020 = add i32 %ro020, %cg020
  %px020 = getelementptr float, ptr addrspace(1) %C, i32 %ix020
  store float %d1_8, ptr addrspace(1) %px020
  %py020 = getelementptr float, ptr addrspace(1) %px020, i32 1
  store float %d1_9, ptr addrspace(1) %py020
  %r021 = add i32 %g, 8
  %rw021 = add i32 %r021, %wm0
  %rg021 = add i32 %rw021, %m0
  %cc021 = add i32 %p2, 16
  %cw021 = add i32 %cc021, %wn0
  %cg021 = add i32 %cw021, %n0
  %ro021 = mul i32 %rg021, %N
  %ix021 = add i32 %ro021, %cg021
  %px021 = getelementptr float, ptr addrspace(1) %C, i32 %ix021
  store float %d1_10, ptr addrspace(1) %px021
  %py021 = getelementptr float, ptr addrspace(1) %px021, i32 1
  store float %d1_11, ptr addrspace(1) %py021
  %r030 = add i32 %g, 0
  %rw030 = add i32 %r030, %wm0
  %rg030 = add i32 %rw030, %m0
  %cc030 = add i32 %p2, 24
  %cw030 = add i32 %cc030, %wn0
  %cg030 = add i32 %cw030, %n0
  %ro030 = mul i32 %rg030, %N
  %ix030 = add i32 %ro030, %cg030
  %px030 = getelementptr float, ptr addrspace(1) %C, i32 %ix030
  store float %d1_12, ptr addrspace(1) %px030
  %py030 = getelementptr float, ptr addrspace(1) %px030, i32 1
  store float %d1_13, ptr addrspace(1) %py030
  %r031 = add i32 %g, 8
  %rw031 = add i32 %r031, %wm0
  %rg031 = add i32 %rw031, %m0
  %cc031 = add i32 %p2, 24
  %cw031 = add i32 %cc031, %wn0
  %cg031 = add i32 %cw031, %n0
  %ro031 = mul i32 %rg031, %N
  %ix031 = add i32 %ro031, %cg031
  %px031 = getelementptr float, ptr addrspace(1) %C, i32 %ix031
  store float %d1_14, ptr addrspace(1) %px031
  %py031 = getelementptr float, ptr addrspace(1) %px031, i32 1
  store float %d1_15, ptr addrspace(1) %py031
  %r100 = add i32 %g, 16
  %rw100 = add i32 %r100, %wm0
  %rg100 = add i32 %rw100, %m0
  %cc100 = add i32 %p2, 0
  %cw100 = add i32 %cc100, %wn0
  %cg100 = add i32 %cw100, %n0
  %ro100 = mul i32 %rg100, %N
  %ix100 = add i32 %ro100, %cg100
  %px100 = getelementptr float, ptr addrspace(1) %C, i32 %ix100
  store float %d1_16, ptr addrspace(1) %px100
  %py100 = getelementptr float, ptr addrspace(1) %px100, i32 1
  store float %d1_17, ptr addrspace(1) %py100
  %r101 = add i32 %g, 24
  %rw101 = add i32 %r101, %wm0
  %rg101 = add i32 %rw101, %m0
  %cc101 = add i32 %p2, 0
  %cw101 = add i32 %cc101, %wn0
  %cg101 = add i32 %cw101, %n0
  %ro101 = mul i32 %rg101, %N
  %ix101 = add i32 %ro101, %cg101
  %px101 = getelementptr float, ptr addrspace(1) %C, i32 %ix101
  store float %d1_18, ptr addrspace(1) %px101
  %py101 = getelementptr float, ptr addrspace(1) %px101, i32 1
  store float %d1_19, ptr addrspace(1) %py101
  %r110 = add i32 %g, 16
  %rw110 = add i32 %r110, %wm0
  %rg110 = add i32 %rw110, %m0
  %cc110 = add i32 %p2, 8
  %cw110 = add i32 %cc110, %wn0
  %cg110 = add i32 %cw110, %n0
  %ro110 = mul i32 %rg110, %N
  %ix110 = add i32 %ro110, %cg110
  %px110 = getelementptr float, ptr addrspace(1) %C, i32 %ix110
  store float %d1_20, ptr addrspace(1) %px110
  %py110 = getelementptr float, ptr addrspace(1) %px110, i32 1
  store float %d1_21, ptr addrspace(1) %py110
  %r111 = add i32 %g, 24
  %rw111 = add i32 %r111, %wm0
  %rg111 = add i32 %rw111, %m0
  %cc111 = add i32 %p2, 8
  %cw111 = add i32 %cc111, %wn0
  %cg111 = add i32 %cw111, %n0
  %ro111 = mul i32 %rg111, %N
  %ix111 = add i32 %ro111, %cg111
  %px111 = getelementptr float, ptr addrspace(1) %C, i32 %ix111
  store float %d1_22, ptr addrspace(1) %px111
  %py111 = getelementptr float, ptr addrspace(1) %px111, i32 1
  store float %d1_23, ptr addrspace(1) %py111
  %r120 = add i32 %g, 16
  %rw120 = add i32 %r120, %wm0
  %rg120 = add i32 %rw120, %m0
  %cc120 = add i32 %p2, 16
  %cw120 = add i32 %cc120, %wn0
  %cg120 = add i32 %cw120, %n0
  %ro120 = mul i32 %rg120, %N
  %ix120 = add i32 %ro120, %cg120
  %px120 = getelementptr float, ptr addrspace(1) %C, i32 %ix120
  store float %d1_24, ptr addrspace(1) %px120
  %py120 = getelementptr float, ptr addrspace(1) %px120, i32 1
  store float %d1_25, ptr addrspace(1) %py120
  %r121 = add i32 %g, 24
  %rw121 = add i32 %r121, %wm0
  %rg121 = add i32 %rw121, %m0
  %cc121 = add i32 %p2, 16
  %cw121 = add i32 %cc121, %wn0
  %cg121 = add i32 %cw121, %n0
  %ro121 = mul i32 %rg121, %N
  %ix121 = add i32 %ro121, %cg121
  %px121 = getelementptr float, ptr addrspace(1) %C, i32 %ix121
  store float %d1_26, ptr addrspace(1) %px121
  %py121 = getelementptr float, ptr addrspace(1) %px121, i32 1
  store float %d1_27, ptr addrspace(1) %py121
  %r130 = add i32 %g, 16
  %rw130 = add i32 %r130, %wm0
  %rg130 = add i32 %rw130, %m0
  %cc130 = add i32 %p2, 24
  %cw130 = add i32 %cc130, %wn0
  %cg130 = add i32 %cw130, %n0
  %ro130 = mul i32 %rg130, %N
  %ix130 = add i32 %ro130, %cg130
  %px130 = getelementptr float, ptr addrspace(1) %C, i32 %ix130
  store float %d1_28, ptr addrspace(1) %px130
  %py130 = getelementptr float, ptr addrspace(1) %px130, i32 1
  store float %d1_29, ptr addrspace(1) %py130
  %r131 = add i32 %g, 24
  %rw131 = add i32 %r131, %wm0
  %rg131 = add i32 %rw131, %m0
  %cc131 = add i32 %p2, 24
  %cw131 = add i32 %cc131, %wn0
  %cg131 = add i32 %cw131, %n0
  %ro131 = mul i32 %rg131, %N
  %ix131 = add i32 %ro131, %cg131
  %px131 = getelementptr float, ptr addrspace(1) %C, i32 %ix131
  store float %d1_30, ptr addrspace(1) %px131
  %py131 = getelementptr float, ptr addrspace(1) %px131, i32 1
  store float %d1_31, ptr addrspace(1) %py131
  ret void
}
