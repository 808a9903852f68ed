// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 32 bytes at once, for sm_100.
extern "C" __global__ void wide(const double *x, double *y, const float *f, float *g) {
  int i = threadIdx.x;
  double a, b, c, d;
  asm volatile("ld.global.v4.f64 {%0,%1,%2,%3}, [%4];" : "=d"(a), "=d"(b), "=d"(c), "=d"(d) : "l"(x + i * 4));
  asm volatile("st.global.v4.f64 [%0], {%1,%2,%3,%4};" ::"l"(y + i * 4), "d"(d), "d"(c), "d"(b), "d"(a) : "memory");
  float v[8];
  asm volatile("ld.global.v8.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7])
               : "l"(f + i * 8));
  asm volatile("st.global.v8.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8};" ::"l"(g + i * 8), "f"(v[7]), "f"(v[6]), "f"(v[5]),
               "f"(v[4]), "f"(v[3]), "f"(v[2]), "f"(v[1]), "f"(v[0])
               : "memory");
}
