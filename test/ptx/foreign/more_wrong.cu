// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels of more.cu with a mistake each.
struct Vec {
  float x, y, z;
};

extern "C" __global__ void compact_plain(const int *x, int *y, int *count) {
  int i = blockIdx.x * 32 + threadIdx.x, value = x[i];
  bool keep = value % 3 == 0;
  unsigned votes = __ballot_sync(0xffffffff, keep);
  int base = 0;
  if (threadIdx.x == 0) {
    base = *count;
    *count = base + __popc(votes);  // no atomic
  }
  base = __shfl_sync(0xffffffff, base, 0);
  if (keep) y[base + __popc(votes & ((1u << threadIdx.x) - 1))] = value;
}

extern "C" __global__ void sort_unsynchronised(const int *x, int *y) {
  __shared__ int s[128];
  int i = threadIdx.x;
  s[i] = x[i];
  for (int size = 2; size <= 128; size *= 2) {
    __syncthreads();  // one a size, not one a step
    for (int step = size / 2; step > 0; step /= 2) {
      int other = i ^ step;
      if (other > i && (s[i] > s[other]) == ((i & size) == 0)) {
        int t = s[i];
        s[i] = s[other];
        s[other] = t;
      }
    }
  }
  __syncthreads();
  y[i] = s[i];
}

extern "C" __global__ void scan_without_barrier(const int *x, int *y) {
  __shared__ int sums[4];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, value = x[threadIdx.x];
  for (int n = 1; n < 32; n *= 2) {
    int other = __shfl_up_sync(0xffffffff, value, n);
    if (lane >= n) value += other;
  }
  if (lane == 31) sums[warp] = value;
  for (int w = 0; w < warp; w++) value += sums[w];
  y[threadIdx.x] = value;
}

extern "C" __global__ void project_unguarded(const float *points, double *y, Vec axis) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = (double)points[3 * i] * axis.x + (double)points[3 * i + 1] * axis.y + (double)points[3 * i + 2] * axis.z;
}

// A warp that skips a shuffle which the mask names it in.
extern "C" __global__ void shuffle_partly(const int *x, int *y) {
  int value = x[threadIdx.x];
  if (threadIdx.x < 16) value += __shfl_xor_sync(0xffffffff, value, 1);
  y[threadIdx.x] = value;
}

// A bin past the end of a local array.
extern "C" __global__ void local_overrun(const int *x, int *y, int n) {
  int bins[16];
  for (int i = 0; i < 16; i++) bins[i] = 0;
  for (int i = 0; i < n; i++) bins[x[threadIdx.x * n + i] & 31]++;
  int best = 0;
  for (int i = 1; i < 16; i++)
    if (bins[i] > bins[best]) best = i;
  y[threadIdx.x] = best;
}

// The first element of a local array is never set.
extern "C" __global__ void local_unwritten(const int *x, int *y, int n) {
  int bins[16];
  for (int i = 1; i < 16; i++) bins[i] = 0;
  for (int i = 0; i < n; i++) bins[x[threadIdx.x * n + i] & 15]++;
  y[threadIdx.x] = bins[x[threadIdx.x] & 15];
}

// A flag between blocks with the scope of one block.
extern "C" __global__ void flag_of_block(int *data, int *flag, int *y) {
  if (blockIdx.x == 0) {
    *data = 42;
    asm volatile("st.release.cta.global.b32 [%0], 1;" ::"l"(flag) : "memory");
    return;
  }
  int seen;
  do asm volatile("ld.acquire.cta.global.b32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  while (!seen);
  *y = *data;
}

// The last block reads what the others wrote, behind a fence for one block.
extern "C" __global__ void last_block_fenced_narrowly(const int *x, int *parts, int *count, int *y) {
  parts[blockIdx.x] = x[blockIdx.x];
  __threadfence_block();
  if (atomicAdd(count, 1) != gridDim.x - 1) return;
  __threadfence_block();
  int sum = 0;
  for (int i = 0; i < gridDim.x; i++) sum += parts[i];
  *y = sum;
}

#include <cuda_fp16.h>

// Two halves that do not begin at a multiple of four bytes.
extern "C" __global__ void halves_misaligned(half *y) {
  atomicAdd((half2 *)(y + 1), __floats2half2_rn(1, 2));
}

// Each thread its own value.
extern "C" __global__ void last_above(const int *x, int *found) {
  if (x[threadIdx.x] > 10) *found = threadIdx.x;
}
