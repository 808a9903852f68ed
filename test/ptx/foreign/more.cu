// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ten more kernels that are right. make.sh compiles them; more.yaml says how they are launched and what comes out.
#include <cuda_fp16.h>

struct Vec {
  float x, y, z;
};

__constant__ float weights[3] = {0.25f, 0.5f, 0.25f};

// Pairs of halves, and a reduction in shared memory.
extern "C" __global__ void dot_half2(const __half2 *a, const __half2 *b, float *y) {
  __shared__ float parts[64];
  __half2 product = __hmul2(a[threadIdx.x], b[threadIdx.x]);
  parts[threadIdx.x] = __low2float(product) + __high2float(product);
  __syncthreads();
  for (int n = 32; n > 0; n /= 2) {
    if (threadIdx.x < n) parts[threadIdx.x] += parts[threadIdx.x + n];
    __syncthreads();
  }
  if (threadIdx.x == 0) *y = parts[0];
}

// A call, loops whose lengths differ, integer remainders.
__device__ __noinline__ int gcd(int a, int b) {
  while (b) {
    int r = a % b;
    a = b;
    b = r;
  }
  return a;
}
extern "C" __global__ void gcds(const int *a, int *y, int m) {
  y[threadIdx.x] = gcd(a[threadIdx.x], m);
}

// Constant memory, loads through the read-only cache.
extern "C" __global__ void filter(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 3; k++) {
    int at = min(max(i + k - 1, 0), n - 1);
    sum += weights[k] * __ldg(x + at);
  }
  y[i] = sum;
}

// A scan by shuffles, then over the sums of warps.
extern "C" __global__ void warp_scan(const int *x, int *y) {
  __shared__ int sums[4];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, value = x[threadIdx.x];
  for (int n = 1; n < 32; n *= 2) {
    int other = __shfl_up_sync(0xffffffff, value, n);
    if (lane >= n) value += other;
  }
  if (lane == 31) sums[warp] = value;
  __syncthreads();
  for (int w = 0; w < warp; w++) value += sums[w];
  y[threadIdx.x] = value;
}

// A loop around a compare-and-swap of 64 bits.
extern "C" __global__ void product_of_all(double *y) {
  unsigned long long *bits = (unsigned long long *)y, old = *(volatile unsigned long long *)bits, seen;
  do {
    seen = old;
    old = atomicCAS(bits, seen, __double_as_longlong(__longlong_as_double(seen) * 2));
  } while (old != seen);
}

// Bitonic sort in shared memory.
extern "C" __global__ void sort(const int *x, int *y) {
  __shared__ int s[128];
  int i = threadIdx.x;
  s[i] = x[i];
  for (int size = 2; size <= 128; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      int other = i ^ step;
      if (other > i && (s[i] > s[other]) == ((i & size) == 0)) {
        int t = s[i];
        s[i] = s[other];
        s[other] = t;
      }
    }
  __syncthreads();
  y[i] = s[i];
}

// Local memory with indices of run time, a branch by number.
extern "C" __global__ void digits(const int *x, int *y) {
  int counts[10] = {0};
  for (int v = x[threadIdx.x]; v; v /= 10) counts[v % 10]++;
  int most = 0;
  for (int d = 1; d < 10; d++)
    if (counts[d] > counts[most]) most = d;
  switch (most) {
    case 0:
      y[threadIdx.x] = 100;
      break;
    case 1:
      y[threadIdx.x] = counts[1] * 7;
      break;
    case 2:
      y[threadIdx.x] = -2;
      break;
    case 3:
      y[threadIdx.x] = most + 30;
      break;
    default:
      y[threadIdx.x] = most;
  }
}

// Compaction by votes.
extern "C" __global__ void compact(const int *x, int *y, int *count) {
  int i = blockIdx.x * 32 + threadIdx.x, value = x[i];
  bool keep = value % 3 == 0;
  unsigned votes = __ballot_sync(0xffffffff, keep);
  int base = 0;
  if (threadIdx.x == 0) base = atomicAdd(count, __popc(votes));
  base = __shfl_sync(0xffffffff, base, 0);
  if (keep) y[base + __popc(votes & ((1u << threadIdx.x) - 1))] = value;
}

// A struct by value, doubles.
extern "C" __global__ void project(const float *points, double *y, Vec axis, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = (double)points[3 * i] * axis.x + (double)points[3 * i + 1] * axis.y + (double)points[3 * i + 2] * axis.z;
}

// Tensor cores by inline assembly: one product of 16 × 16 by 16 × 8.
extern "C" __global__ void tensor(const __half *a, const __half *b, float *c) {
  int lane = threadIdx.x, row = lane / 4, column = lane % 4 * 2;
  unsigned fa[4], fb[2];
  for (int i = 0; i < 4; i++) fa[i] = *(const unsigned *)(a + (row + i % 2 * 8) * 16 + column + i / 2 * 8);
  for (int i = 0; i < 2; i++) fb[i] = *(const unsigned *)(b + row * 16 + column + i * 8);
  float d[4] = {0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; i++) c[(row + i / 2 * 8) * 8 + column + i % 2] = d[i];
}

// Barriers that count.
extern "C" __global__ void counted(const int *x, int *y) {
  int positive = __syncthreads_count(x[threadIdx.x] > 0), any = __syncthreads_or(x[threadIdx.x] == 77);
  y[threadIdx.x] = positive + 1000 * (any != 0);
}

// A flag that every thread that finds something sets: the same value, from all blocks.
extern "C" __global__ void any_above(const int *x, int *found, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int here;
  if (x[i] > 10) here = 1;
  if (i < n && x[i] > 10) *found = 1;
}
