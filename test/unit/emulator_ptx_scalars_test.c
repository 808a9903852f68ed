// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar instructions of PTX, executed: what the PTX ISA says of saturation, NaN, subnormal numbers, directions of
// rounding, amounts and fields out of range. One kernel runs all cases; each has registers of its own.
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/launch/kernel_ptx.h"

// The result is in %r0 (r), %d0 (d), %h0 (h) or %p0 (p); operands 1 to 3 are in all of them, cut to their width.
typedef struct scalar_case {
  const char *text;
  char result;
  uint64_t expected, operands[3];
} scalar_case;

enum { ONE = 0x3f800000, TWO = 0x40000000, NAN32 = 0x7fffffff, INF = 0x7f800000, LEAST = 0x00800000, TINY = 1 };
#define MINUS UINT64_C(0x80000000)
#define D_ONE UINT64_C(0x3ff0000000000000)

static const scalar_case cases[] = {
    // integers
    {"add.sat.s32 %r0, %r1, %r2;", 'r', 0x7fffffff, {0x7fffffff, 1}},
    {"add.sat.s32 %r0, %r1, %r2;", 'r', 0x80000000, {0x80000000, 0xffffffff}},
    {"sub.sat.s32 %r0, %r1, %r2;", 'r', 0x80000000, {0x80000000, 1}},
    {"add.u32 %r0, %r1, %r2;", 'r', 0, {0xffffffff, 1}},
    {"sub.s16 %h0, %h1, %h2;", 'h', 0xffff, {1, 2}},
    {"mul.hi.s32 %r0, %r1, %r2;", 'r', 0xffffffff, {0xffffffff, 2}},
    {"mul.hi.u32 %r0, %r1, %r2;", 'r', 1, {0xffffffff, 2}},
    {"mul.hi.u64 %d0, %d1, %d2;", 'd', UINT64_MAX - 1, {UINT64_MAX, UINT64_MAX}},
    {"mul.wide.s32 %d0, %r1, %r2;", 'd', UINT64_MAX - 1, {0xffffffff, 2}},
    {"mul.wide.u16 %r0, %h1, %h2;", 'r', 0xfffe0001, {0xffff, 0xffff}},
    {"mad.wide.s16 %r0, %h1, %h2, %r3;", 'r', 9, {0xffff, 1, 10}},
    {"mad.lo.s32 %r0, %r1, %r2, %r3;", 'r', 10, {3, 2, 4}},
    {"mad.hi.sat.s32 %r0, %r1, %r2, %r3;", 'r', 0x7fffffff, {0x7fffffff, 4, 0x7fffffff}},
    {"mul24.lo.s32 %r0, %r1, %r2;", 'r', 0xfffffffe, {0x00ffffff, 2}},
    {"mul24.hi.u32 %r0, %r1, %r2;", 'r', 0xfffffe00, {0xffffff, 0x1ffffff}},
    {"sad.u32 %r0, %r1, %r2, %r3;", 'r', 15, {5, 10, 10}},
    {"sad.s32 %r0, %r1, %r2, %r3;", 'r', 8, {0xfffffffe, 5, 1}},
    {"div.s32 %r0, %r1, %r2;", 'r', 0xfffffffd, {0xfffffff9, 2}},
    {"div.s32 %r0, %r1, %r2;", 'r', 0x80000000, {0x80000000, 0xffffffff}},
    {"rem.s32 %r0, %r1, %r2;", 'r', 0, {0x80000000, 0xffffffff}},
    {"rem.s32 %r0, %r1, %r2;", 'r', 0xffffffff, {0xfffffff9, 2}},
    {"div.u16 %h0, %h1, %h2;", 'h', 0x7fff, {0xffff, 2}},
    {"abs.s32 %r0, %r1;", 'r', 0x80000000, {0x80000000}},
    {"neg.s64 %d0, %d1;", 'd', UINT64_MAX, {1}},
    {"min.s32 %r0, %r1, %r2;", 'r', 0xffffffff, {1, 0xffffffff}},
    {"max.u32 %r0, %r1, %r2;", 'r', 0xffffffff, {1, 0xffffffff}},
    {"max.relu.s32 %r0, %r1, %r2;", 'r', 0, {0xfffffff0, 0xffffffff}},
    {"min.s16x2.relu %r0, %r1, %r2;", 'r', 0x00000002, {0xfffe0003, 0x00050002}},
    {"vabsdiff4.u32.u32.u32 %r0, %r1, %r2, %r3;", 'r', 0x017f0302, {0x00800401, 0x01010103, 7}},
    {"vabsdiff4.u32.s32.s32.add %r0, %r1, %r2, %r3;", 'r', 0x102, {0x80, 0x7f, 3}},
    {"fns.b32 %r0, %r1, %r2, %r3;", 'r', 6, {0x000000d0, 0, 2}},
    {"fns.b32 %r0, %r1, %r2, %r3;", 'r', 4, {0x000000d0, 6, 0xfffffffe}},
    {"fns.b32 %r0, %r1, %r2, %r3;", 'r', 7, {0x000000d0, 7, 0}},
    {"fns.b32 %r0, %r1, %r2, %r3;", 'r', 0xffffffff, {0x000000d0, 0, 4}},
    {"popc.b64 %r0, %d1;", 'r', 64, {UINT64_MAX}},
    {"clz.b32 %r0, %r1;", 'r', 32, {0}},
    {"clz.b64 %r0, %d1;", 'r', 63, {1}},
    {"brev.b32 %r0, %r1;", 'r', 0x80000000, {1}},
    {"bfind.u32 %r0, %r1;", 'r', 0xffffffff, {0}},
    {"bfind.u32 %r0, %r1;", 'r', 4, {0x10}},
    {"bfind.s32 %r0, %r1;", 'r', 3, {0xfffffff0}},
    {"bfind.shiftamt.u32 %r0, %r1;", 'r', 27, {0x10}},
    {"bfe.u32 %r0, %r1, %r2, %r3;", 'r', 0xf, {0xf0, 4, 8}},
    {"bfe.s32 %r0, %r1, %r2, %r3;", 'r', 0xffffffff, {0xf0, 4, 4}},
    {"bfe.s32 %r0, %r1, %r2, %r3;", 'r', 0xffffffff, {0x80000000, 40, 4}},
    {"bfe.u32 %r0, %r1, %r2, %r3;", 'r', 0, {0xffffffff, 3, 0}},
    {"bfe.u64 %d0, %d1, %r2, %r3;", 'd', 0xff, {UINT64_MAX, 56, 200}},
    {"bfi.b32 %r0, %r1, 0xffffffff, %r2, %r3;", 'r', 0xffff0fff, {0, 12, 4}},
    {"bfi.b32 %r0, %r1, 0x55, %r2, %r3;", 'r', 0x55, {0xff, 32, 4}},
    {"bmsk.clamp.b32 %r0, %r1, %r2;", 'r', 0xf0, {4, 4}},
    {"bmsk.clamp.b32 %r0, %r1, %r2;", 'r', 0xffffffff, {0, 99}},
    {"bmsk.wrap.b32 %r0, %r1, %r2;", 'r', 2, {33, 33}},
    {"szext.clamp.s32 %r0, %r1, %r2;", 'r', 0xffffffff, {0xf, 4}},
    {"szext.wrap.u32 %r0, %r1, %r2;", 'r', 0, {0xf, 32}},
    {"dp4a.s32.u32 %r0, %r1, %r2, %r3;", 'r', 0xffffff65, {0xff, 0xff, 100}},
    {"dp2a.hi.u32.u32 %r0, %r1, %r2, %r3;", 'r', 7 * 3 + 2 * 4 + 1, {0x00020007, 0x04030000, 1}},
    {"add.cc.u32 %r0, %r1, %r2; addc.u32 %r0, 0, 0;", 'r', 1, {0xffffffff, 1}},
    {"sub.cc.u32 %r0, %r1, %r2; subc.u32 %r0, 5, 0;", 'r', 4, {0, 1}},
    {"add.cc.u64 %d0, %d1, %d2; addc.cc.u64 %d0, 1, 1;", 'd', 3, {UINT64_MAX, 1}},
    {"mad.lo.cc.u32 %r0, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, 0;",
     'r',
     0xffffffff,
     {0xffffffff, 0xffffffff, 0xffffffff}},
    // bits
    {"lop3.b32 %r0, %r1, %r2, %r3, 0xe8;", 'r', 0xe8, {0xf0, 0xcc, 0xaa}},
    {"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", 'r', 0x96, {0xf0, 0xcc, 0xaa}},
    {"shl.b32 %r0, %r1, %r2;", 'r', 0, {1, 32}},
    {"shl.b16 %h0, %h1, %r2;", 'h', 0, {1, 16}},
    {"shr.s32 %r0, %r1, %r2;", 'r', 0xffffffff, {0x80000000, 99}},
    {"shr.u64 %d0, %d1, %r2;", 'd', 0, {UINT64_MAX, 64}},
    {"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", 'r', 0x00000003, {0x80000000, 1, 33}},
    {"shf.l.clamp.b32 %r0, %r1, %r2, %r3;", 'r', 0x80000000, {0x80000000, 1, 40}},
    {"shf.r.clamp.b32 %r0, %r1, %r2, %r3;", 'r', 1, {0x80000000, 1, 40}},
    {"prmt.b32 %r0, %r1, %r2, %r3;", 'r', 0x44330011, {0x33221100, 0x77665544, 0x4301}},
    {"prmt.b32 %r0, %r1, %r2, %r3;", 'r', 0xff00ff80, {0x80, 0x7f, 0x8c80}},
    {"prmt.b32.rc16 %r0, %r1, %r2, %r3;", 'r', 0x33223322, {0x33221100, 0, 1}},
    {"prmt.b32.f4e %r0, %r1, %r2, %r3;", 'r', 0x55443322, {0x33221100, 0x77665544, 2}},
    {"cnot.b32 %r0, %r1;", 'r', 1, {0}},
    {"selp.b32 %r0, %r1, %r2, %p3;", 'r', 7, {7, 9, 1}},
    {"slct.u32.s32 %r0, %r1, %r2, %r3;", 'r', 9, {7, 9, 0xffffffff}},
    {"slct.u32.f32 %r0, %r1, %r2, %r3;", 'r', 7, {7, 9, MINUS}},
    {"set.lt.u32.s32 %r0, %r1, %r2;", 'r', 0xffffffff, {0xffffffff, 0}},
    {"set.eq.f32.f32 %r0, %r1, %r2;", 'r', ONE, {0, MINUS}},
    {"setp.lt.s32 %p0, %r1, %r2;", 'p', 1, {0xffffffff, 0}},
    {"setp.lo.u32 %p0, %r1, %r2;", 'p', 0, {0xffffffff, 0}},
    {"setp.ne.f32 %p0, %r1, %r2;", 'p', 0, {NAN32, ONE}},
    {"setp.neu.f32 %p0, %r1, %r2;", 'p', 1, {NAN32, ONE}},
    {"setp.num.f32 %p0, %r1, %r2;", 'p', 0, {NAN32, ONE}},
    {"setp.lt.ftz.f32 %p0, %r1, %r2;", 'p', 0, {0, TINY}},
    {"setp.lt.f32 %p0, %r1, %r2;", 'p', 1, {0, TINY}},
    {"setp.eq.and.u32 %p3|%p0, %r1, %r2, %p3;", 'p', 1, {1, 2, 1}},
    {"{ .reg .pred q; setp.ge.xor.s32 %p0|q, %r1, %r2, !%p3; }", 'p', 1, {3, 2, 1}},
    // f32
    {"add.f32 %r0, %r1, %r2;", 'r', NAN32, {INF, INF | MINUS}},
    {"add.f32 %r0, %r1, %r2;", 'r', NAN32, {0xffc12345, ONE}},
    {"add.ftz.f32 %r0, %r1, %r2;", 'r', MINUS, {TINY | MINUS, TINY | MINUS}},
    {"add.f32 %r0, %r1, %r2;", 'r', 2, {TINY, TINY}},
    {"add.sat.f32 %r0, %r1, %r2;", 'r', ONE, {ONE, ONE}},
    {"add.sat.f32 %r0, %r1, %r2;", 'r', 0, {INF, INF | MINUS}},
    {"add.rz.f32 %r0, %r1, %r2;", 'r', ONE, {ONE, 0x337fffff}},
    {"add.rp.f32 %r0, %r1, %r2;", 'r', ONE + 1, {ONE, TINY}},
    {"add.rm.f32 %r0, %r1, %r2;", 'r', ONE - 1, {ONE, TINY | MINUS}},
    {"add.rm.f32 %r0, %r1, %r2;", 'r', MINUS, {ONE, ONE | MINUS}},
    {"add.rp.f32 %r0, %r1, %r2;", 'r', 0, {ONE, ONE | MINUS}},
    {"mul.rz.f32 %r0, %r1, %r2;", 'r', 0x7f7fffff, {0x7f7fffff, TWO}},
    {"mul.rp.f32 %r0, %r1, %r2;", 'r', TINY, {TINY, TINY}},
    {"mul.rn.f32 %r0, %r1, %r2;", 'r', 0, {TINY, TINY}},
    {"div.rn.f32 %r0, %r1, %r2;", 'r', 0x3eaaaaab, {ONE, 0x40400000}},
    {"div.rz.f32 %r0, %r1, %r2;", 'r', 0x3eaaaaaa, {ONE, 0x40400000}},
    {"div.rp.f32 %r0, %r1, %r2;", 'r', 0x3eaaaaab, {ONE, 0x40400000}},
    {"rcp.rm.f32 %r0, %r1;", 'r', 0x3eaaaaaa, {0x40400000}},
    {"rcp.rn.f32 %r0, %r1;", 'r', INF | MINUS, {MINUS}},
    {"sqrt.rn.f32 %r0, %r1;", 'r', 0x3fb504f3, {TWO}},
    {"sqrt.rp.f32 %r0, %r1;", 'r', 0x3fb504f4, {TWO}},
    {"sqrt.rn.f32 %r0, %r1;", 'r', NAN32, {ONE | MINUS}},
    {"fma.rn.f32 %r0, %r1, %r2, %r3;", 'r', 0xa8800000, {0x3f800001, 0x3f7ffffe, ONE | MINUS}},
    {"fma.rz.f32 %r0, %r1, %r2, %r3;", 'r', ONE, {TINY, TINY, ONE}},
    {"fma.rp.f32 %r0, %r1, %r2, %r3;", 'r', ONE + 1, {TINY, TINY, ONE}},
    {"min.f32 %r0, %r1, %r2;", 'r', ONE, {NAN32, ONE}},
    {"min.NaN.f32 %r0, %r1, %r2;", 'r', NAN32, {NAN32, ONE}},
    {"max.f32 %r0, %r1, %r2;", 'r', 0, {MINUS, 0}},
    {"min.f32 %r0, %r1, %r2;", 'r', MINUS, {0, MINUS}},
    {"max.f32 %r0, %r1, %r2;", 'r', NAN32, {0xffc00000, 0xffc00001}},
    {"max.xorsign.abs.f32 %r0, %r1, %r2;", 'r', TWO | MINUS, {ONE, TWO | MINUS}},
    {"abs.ftz.f32 %r0, %r1;", 'r', 0, {TINY | MINUS}},
    {"neg.f32 %r0, %r1;", 'r', MINUS, {0}},
    {"copysign.f32 %r0, %r1, %r2;", 'r', TWO | MINUS, {ONE | MINUS, TWO}},
    {"testp.subnormal.f32 %p0, %r1;", 'p', 1, {TINY}},
    {"testp.finite.f32 %p0, %r1;", 'p', 0, {INF}},
    {"ex2.approx.ftz.f32 %r0, %r1;", 'r', TWO, {ONE}},
    {"rcp.approx.ftz.f32 %r0, %r1;", 'r', INF, {TINY}},
    {"mad.rn.f32 %r0, %r1, %r2, %r3;", 'r', 0x40400000, {ONE, TWO, ONE}},
    // f64
    {"add.rz.f64 %d0, %d1, %d2;", 'd', D_ONE, {D_ONE, 1}},
    {"add.rp.f64 %d0, %d1, %d2;", 'd', D_ONE + 1, {D_ONE, 1}},
    {"add.rm.f64 %d0, %d1, %d2;", 'd', D_ONE - 1, {D_ONE, UINT64_C(1) << 63 | 1}},
    {"mul.rp.f64 %d0, %d1, %d2;", 'd', D_ONE + 3, {D_ONE + 1, D_ONE + 1}},
    {"mul.rz.f64 %d0, %d1, %d2;", 'd', D_ONE + 2, {D_ONE + 1, D_ONE + 1}},
    {"fma.rm.f64 %d0, %d1, %d2, %d3;", 'd', D_ONE - 1, {1, UINT64_C(1) << 63 | 1, D_ONE}},
    {"div.rz.f64 %d0, %d1, %d2;", 'd', 0x3fd5555555555555, {D_ONE, 0x4008000000000000}},
    {"div.rp.f64 %d0, %d1, %d2;", 'd', 0x3fd5555555555556, {D_ONE, 0x4008000000000000}},
    {"sqrt.rp.f64 %d0, %d1;", 'd', 0x3ff6a09e667f3bcd, {0x4000000000000000}},
    {"sqrt.rz.f64 %d0, %d1;", 'd', 0x3ff6a09e667f3bcc, {0x4000000000000000}},
    {"rcp.approx.ftz.f64 %d0, %d1;", 'd', 0x3fd5555500000000, {0x4008000000000000}},
    // halves
    {"add.f16 %h0, %h1, %h2;", 'h', 0x7c00, {0x7bff, 0x7bff}},
    {"add.sat.f16 %h0, %h1, %h2;", 'h', 0x3c00, {0x3c00, 0x3c00}},
    {"add.f16x2 %r0, %r1, %r2;", 'r', 0x40007fff, {0x3c007e01, 0x3c000000}},
    {"fma.rn.f16 %h0, %h1, %h2, %h3;", 'h', 0x4200, {0x3c00, 0x4000, 0x3c00}},
    {"fma.rn.relu.f16x2 %r0, %r1, %r2, %r3;", 'r', 0x00004200, {0x3c003c00, 0xc0004000, 0x3c003c00}},
    {"fma.rn.bf16 %h0, %h1, %h2, %h3;", 'h', 0x4040, {0x3f80, 0x4000, 0x3f80}},
    {"max.bf16x2 %r0, %r1, %r2;", 'r', 0x40003f80, {0x7fc03f80, 0x4000bf80}},
    {"mul.bf16 %h0, %h1, %h2;", 'h', 0x4100, {0x4000, 0x4080}},
    {"neg.f16x2 %r0, %r1;", 'r', 0x80003c00, {0x0000bc00}},
    {"setp.gt.f16 %p0, %h1, %h2;", 'p', 1, {0x3c00, 0xbc00}},
    {"ex2.approx.f16 %h0, %h1;", 'h', 0x4000, {0x3c00}},
    {"tanh.approx.bf16 %h0, %h1;", 'h', 0x3f80, {0x41a0}},
    // conversions
    {"cvt.u32.u16 %r0, %h1;", 'r', 0xffff, {0xffff}},
    {"cvt.s32.s16 %r0, %h1;", 'r', 0xffffffff, {0xffff}},
    {"cvt.s32.s8 %r0, %r1;", 'r', 0xffffff80, {0x80}},
    {"cvt.u8.u32 %r0, %r1;", 'r', 0x34, {0x1234}},
    {"cvt.s8.s32 %r0, %r1;", 'r', 0xffffff80, {0x1280}},
    {"cvt.sat.u8.s32 %r0, %r1;", 'r', 0, {0xffffffff}},
    {"cvt.sat.s8.s32 %r0, %r1;", 'r', 0x7f, {1000}},
    {"cvt.sat.s32.u32 %r0, %r1;", 'r', 0x7fffffff, {0xffffffff}},
    {"cvt.sat.u64.s64 %d0, %d1;", 'd', 0, {UINT64_MAX}},
    {"cvt.sat.s64.u64 %d0, %d1;", 'd', INT64_MAX, {UINT64_MAX}},
    {"cvt.rn.f32.s32 %r0, %r1;", 'r', 0xbf800000, {0xffffffff}},
    {"cvt.rn.f32.u32 %r0, %r1;", 'r', 0x4f800000, {0xffffffff}},
    {"cvt.rz.f32.u32 %r0, %r1;", 'r', 0x4f7fffff, {0xffffffff}},
    {"cvt.rp.f32.s64 %r0, %d1;", 'r', 0x4b800001, {16777217}},
    {"cvt.rm.f64.s64 %d0, %d1;", 'd', 0x4340000000000000, {9007199254740993}},
    {"cvt.rn.f64.u64 %d0, %d1;", 'd', 0x43f0000000000000, {UINT64_MAX}},
    {"cvt.rn.f16.u32 %h0, %r1;", 'h', 0x7c00, {70000}},
    {"cvt.rz.f16.u32 %h0, %r1;", 'h', 0x7bff, {70000}},
    {"cvt.rn.bf16.u32 %h0, %r1;", 'h', 0x4f80, {0xff800001}},
    {"cvt.rn.bf16.s32 %h0, %r1;", 'h', 0x4b80, {16777217}},
    {"cvt.rzi.s32.f32 %r0, %r1;", 'r', 0xffffffff, {0xbfc00000}},
    {"cvt.rmi.s32.f32 %r0, %r1;", 'r', 0xfffffffe, {0xbfc00000}},
    {"cvt.rpi.s32.f32 %r0, %r1;", 'r', 2, {0x3fc00000}},
    {"cvt.rni.s32.f32 %r0, %r1;", 'r', 2, {0x40200000}},
    {"cvt.rzi.s32.f32 %r0, %r1;", 'r', 0x7fffffff, {INF}},
    {"cvt.rzi.s32.f32 %r0, %r1;", 'r', 0, {NAN32}},
    {"cvt.rzi.u32.f32 %r0, %r1;", 'r', 0, {ONE | MINUS}},
    {"cvt.rzi.s64.f32 %d0, %r1;", 'd', UINT64_C(1) << 63, {NAN32}},
    {"cvt.rzi.u32.f64 %r0, %d1;", 'r', 0x80000000, {0x7ff8000000000000}},
    {"cvt.rzi.s16.f32 %h0, %r1;", 'h', 0x7fff, {0x47c35000}},
    {"cvt.rni.ftz.s32.f32 %r0, %r1;", 'r', 0, {TINY}},
    {"cvt.rpi.ftz.s32.f32 %r0, %r1;", 'r', 0, {TINY}},
    {"cvt.rpi.s32.f32 %r0, %r1;", 'r', 1, {TINY}},
    {"cvt.rni.f32.f32 %r0, %r1;", 'r', TWO, {0x40200000}},
    {"cvt.sat.f32.f32 %r0, %r1;", 'r', 0, {NAN32}},
    {"cvt.sat.f32.f32 %r0, %r1;", 'r', ONE, {0x40400000}},
    {"cvt.rn.f16.f32 %h0, %r1;", 'h', 0x7fff, {0xffc00000}},
    {"cvt.rn.f16.f32 %h0, %r1;", 'h', 0x3c00, {0x3f801000}},
    {"cvt.rz.f16.f32 %h0, %r1;", 'h', 0x3c00, {0x3f801fff}},
    {"cvt.rp.f16.f32 %h0, %r1;", 'h', 0x3c01, {0x3f800001}},
    {"cvt.rn.bf16.f32 %h0, %r1;", 'h', 0x3f80, {0x3f808000}},
    {"cvt.rz.bf16.f32 %h0, %r1;", 'h', 0x3f80, {0x3f80ffff}},
    {"cvt.rn.relu.f16.f32 %h0, %r1;", 'h', 0, {ONE | MINUS}},
    {"cvt.f32.f16 %r0, %h1;", 'r', 0x33800000, {1}},
    {"cvt.ftz.f32.f16 %r0, %h1;", 'r', 0x33800000, {1}},
    {"cvt.f32.bf16 %r0, %h1;", 'r', 0x3f810000, {0x3f81}},
    {"cvt.rn.f32.f64 %r0, %d1;", 'r', ONE, {D_ONE + 1}},
    {"cvt.rp.f32.f64 %r0, %d1;", 'r', ONE + 1, {D_ONE + 1}},
    {"cvt.rn.f16.f64 %h0, %d1;", 'h', 0x3c01, {UINT64_C(0x3ff0020000000001)}},
    {"cvt.f64.f32 %d0, %r1;", 'd', D_ONE, {ONE}},
    {"cvt.rn.f16x2.f32 %r0, %r1, %r2;", 'r', 0x40003c00, {TWO, ONE}},
    {"cvt.rna.tf32.f32 %r0, %r1;", 'r', 0x3f802000, {0x3f801000}},
    {"cvt.rn.tf32.f32 %r0, %r1;", 'r', ONE, {0x3f801000}},
    {"cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;", 'h', 0x7e38, {0x44000000, ONE}},
    {"cvt.rn.satfinite.e4m3x2.f16x2 %h0, %r1;", 'h', 0x7e38, {0x64003c00}},
    {"cvt.rn.satfinite.relu.e5m2x2.f16x2 %h0, %r1;", 'h', 0x003c, {0xe4003c00}},
    {"cvt.rz.f16x2.f32 %r0, %r1, %r2;", 'r', 0x3c003bff, {0x3f801fff, 0x3f7fffff}},
    {"cvt.rz.bf16x2.f32 %r0, %r1, %r2;", 'r', 0x3f807f7f, {0x3f80ffff, 0x7f7fffff}},
    {"cvt.rz.relu.f16x2.f32 %r0, %r1, %r2;", 'r', 0x00007fff, {0xbf801fff, 0x7fc00000}},
    {"set.gt.u32.f16x2 %r0, %r1, %r2;", 'r', 0xffff0000, {0x3c003800, 0x38003c00}},
    {"set.neu.s32.bf16x2 %r0, %r1, %r2;", 'r', 0x0000ffff, {0x3f807fc0, 0x3f803f80}},
    {"cvt.pack.sat.u16.s32 %r0, %r1, %r2;", 'r', 0xffff0000, {70000, 0xffffffff}},
    {"cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, %r3;", 'r', 0x12347f80, {1000, 0xfffff000, 0x1234}},
    // moves
    {"mov.b32 %r0, {%h1, %h2};", 'r', 0x00020001, {1, 2}},
    {"mov.b64 {%r3, %r0}, %d1;", 'r', 0x12345678, {UINT64_C(0x1234567800000000)}},
    {"mov.b64 {_, %r0}, %d1;", 'r', 1, {UINT64_C(0x100000000)}},
    {"mov.f32 %r0, 0f3F800000;", 'r', ONE, {0}},
    {"mov.f32 %r0, 1.5;", 'r', 0x3fc00000, {0}},
    {"mov.f64 %d0, 0d3FF0000000000000;", 'd', D_ONE, {0}},
    {"mov.pred %p0, !%p1;", 'p', 1, {0}},
    {"@%p1 mov.u32 %r0, 5;", 'r', 0, {0}},
    {"@!%p1 mov.u32 %r0, 5;", 'r', 5, {0}},
};
enum { NUM_CASES = sizeof cases / sizeof cases[0] };

static void append_case(tl_strbuf *out, unsigned i) {
  tl_strbuf_append_c(out, "{ .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p<4>;\n");
  for (unsigned k = 1; k < 4; k++)
    tl_strbuf_appendf(out,
                      "ld.global.b64 %%d%u, [%%in+%u]; cvt.u32.u64 %%r%u, %%d%u; cvt.u16.u64 %%h%u, %%d%u;\n"
                      "setp.ne.u64 %%p%u, %%d%u, 0;\n",
                      k, 24 * i + 8 * (k - 1), k, k, k, k, k, k);
  tl_strbuf_appendf(out, "%s\n", cases[i].text);
  if (cases[i].result == 'r') tl_strbuf_append_c(out, "cvt.u64.u32 %d0, %r0;\n");
  if (cases[i].result == 'h') tl_strbuf_append_c(out, "cvt.u64.u16 %d0, %h0;\n");
  if (cases[i].result == 'p') tl_strbuf_append_c(out, "selp.u64 %d0, 1, 0, %p0;\n");
  tl_strbuf_appendf(out, "st.global.b64 [%%out+%u], %%d0; }\n", 8 * i);
}

// Runs `text`, a kernel k(in, out), once with one thread.
static void run_kernel(const tl_strbuf *text, void *in, void *out) {
  tl_sources sources;
  tl_diags diags;
  tl_sources_init(&sources);
  tl_diags_init(&diags, &sources);
  tl_ptx_module *module = tl_ptx_parse(&sources, tl_sources_add(&sources, "k.ptx", tl_strbuf_view(text)), &diags);
  tl_strbuf messages = {0};
  bool ok = module && tl_ptx_check(module, TL_STR(""), &diags);
  tl_manifest_kernel manifest = {.name = "k", .num_params = 2, .block_threads = 1};
  const tl_emu_ptx_options options = {.block = {1, 1, 1}};
  tl_emu_kernel *kernel = NULL;
  tl_status status = ok ? tl_emu_kernel_create_ptx(module, &manifest, &options, 0, NULL, &diags, &kernel) : TL_OK;
  tl_diags_print_text(&diags, &messages, false);
  ck_assert_msg(ok && !status, "%s%s", tl_strbuf_c(&messages), status ? tl_status_message(status) : "");
  const uint32_t grid[] = {1, 1, 1};
  void *params[] = {&in, &out};
  status = tl_emu_launch(kernel, grid, params, NULL, NULL);
  ck_assert_msg(!status, "%s", status ? tl_status_message(status) : "");
  tl_emu_kernel_destroy(kernel);
  tl_ptx_destroy(module);
  tl_strbuf_fini(&messages);
  tl_diags_fini(&diags);
  tl_sources_fini(&sources);
}

START_TEST(scalars_mean_what_the_isa_says) {
  tl_strbuf text = {0};
  tl_strbuf_append_c(
      &text,
      ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n"
      ".reg .b64 %in, %out;\nld.param.u64 %in, [a];\nld.param.u64 %out, [b];\n");
  uint64_t *in = tl_emu_alloc(NUM_CASES * 24, 16), *out = tl_emu_alloc(NUM_CASES * 8, 16);
  for (unsigned i = 0; i < NUM_CASES; i++) {
    append_case(&text, i);
    memcpy(&in[3 * i], cases[i].operands, sizeof cases[i].operands);
  }
  tl_strbuf_append_c(&text, "ret;\n}\n");
  run_kernel(&text, in, out);
  unsigned failed = 0;
  for (unsigned i = 0; i < NUM_CASES; i++) {
    if (out[i] == cases[i].expected) continue;
    failed++;
    fprintf(stderr, "%s with %" PRIx64 ", %" PRIx64 ", %" PRIx64 ": %" PRIx64 ", expected %" PRIx64 "\n", cases[i].text,
            in[3 * i], in[3 * i + 1], in[3 * i + 2], out[i], cases[i].expected);
  }
  ck_assert_uint_eq(failed, 0);
  tl_emu_free(in);
  tl_emu_free(out);
  tl_strbuf_fini(&text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_ptx_scalars");
  TCase *tcase = tcase_create("scalars");
  tcase_add_test(tcase, scalars_mean_what_the_isa_says);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
