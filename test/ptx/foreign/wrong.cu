// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels with a mistake each, which the line says. wrong.ptx is made of it (README.md).
#include <cuda_pipeline.h>

extern "C" __global__ void saxpy_unguarded(const float *x, float *y, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i] + y[i];  // beyond the end in the last block
}

extern "C" __global__ void block_sum_unsynchronised(const float *x, float *y) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int o = 128; o > 0; o >>= 1)
    if (t < o) s[t] += s[t + o];  // no barrier between rounds
  if (t == 0) y[0] = s[0];
}

extern "C" __global__ void transpose_unsynchronised(const float *x, float *y, int w) {
  __shared__ float tile[16][17];
  int i = threadIdx.x, j = threadIdx.y;
  tile[j][i] = x[j * w + i];
  y[j * w + i] = tile[i][j];  // no barrier before
}

extern "C" __global__ void histogram_plain(const int *x, int *bins) {
  bins[x[blockIdx.x * blockDim.x + threadIdx.x] & 15] += 1;  // not atomic
}

extern "C" __global__ void scan_single_buffer(const int *x, int *y) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int o = 1; o < 128; o *= 2) {
    if (t >= o) s[t] += s[t - o];  // read and written without a barrier in between
    __syncthreads();
  }
  y[t] = s[t];
}

extern "C" __global__ void stencil_edge(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i - 1] + x[i];  // x[-1]
}

__device__ unsigned int arrived;

extern "C" __global__ void last_block_unfenced(const float *x, float *parts, float *y) {
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = x[blockIdx.x];
    if (atomicAdd(&arrived, 1) == gridDim.x - 1) {  // no fence between
      float total = 0;
      for (unsigned i = 0; i < gridDim.x; i++) total += parts[i];
      y[0] = total;
    }
  }
}

extern "C" __global__ void uninitialised(float *y) {
  __shared__ float s[64];
  if (threadIdx.x < 32) s[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];  // half of it was never written
}

extern "C" __global__ void pipeline_unawaited(const float4 *x, float4 *y) {
  __shared__ float4 s[64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &x[t], 16);
  __pipeline_commit();
  __syncthreads();
  y[t] = s[63 - t];  // nobody waited for the copy
}

extern "C" __global__ void shared_overrun(const int *x, int *y) {
  extern __shared__ int s[];
  s[threadIdx.x * 2] = x[threadIdx.x];  // twice what the launch gives
  __syncthreads();
  y[threadIdx.x] = s[0];
}

extern "C" __global__ void divergent_barrier(int *y) {
  if (threadIdx.x < 40) __syncthreads();  // not all threads come
  y[threadIdx.x] = threadIdx.x;
}

extern "C" __global__ void misaligned(const float *x, float *y) {
  float2 v = *(const float2 *)(x + 1);  // 4 bytes off
  y[threadIdx.x] = v.x + v.y;
}

__device__ int table[8];

extern "C" __global__ void variable_overrun(int *y, int n) {
  table[threadIdx.x % n] = 1;  // table has 8 elements
  y[threadIdx.x] = n;
}
