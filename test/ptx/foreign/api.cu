// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What CUDA C++ libraries make: cooperative groups, CUB, wmma, function pointers, virtual functions.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
namespace cg = cooperative_groups;
using namespace nvcuda;

extern "C" __global__ void coop(const int *x, int *sum, int *scan, int *mx) {
  auto b = cg::this_thread_block();
  auto t = cg::tiled_partition<16>(b);
  int v = x[b.thread_rank() + blockIdx.x * b.size()];
  int s = cg::reduce(t, v, cg::plus<int>());
  int m = cg::reduce(t, v, cg::greater<int>());
  int e = cg::inclusive_scan(t, v);
  if (t.thread_rank() == 0) {
    sum[(b.thread_rank() + blockIdx.x * b.size()) / 16] = s;
    mx[(b.thread_rank() + blockIdx.x * b.size()) / 16] = m;
  }
  scan[b.thread_rank() + blockIdx.x * b.size()] = e;
}

extern "C" __global__ void filter(const int *x, int *out, int *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 3) {
    auto g = cg::coalesced_threads();
    int base;
    if (g.thread_rank() == 0) base = atomicAdd(count, g.size());
    base = g.shfl(base, 0);
    out[base + g.thread_rank()] = x[i];
  }
}

extern "C" __global__ void wmma_f16(const half *a, const half *b, float *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.f);
  for (int k = 0; k < 64; k += 16) {
    wmma::load_matrix_sync(fa, a + k, 64);
    wmma::load_matrix_sync(fb, b + k, 64);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 2;
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_i8(const signed char *a, const signed char *b, int *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
  wmma::fill_fragment(fc, 1);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_tf32(const float *a, const float *b, float *c, const __nv_bfloat16 *p,
                                     const __nv_bfloat16 *q, float *r) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
  wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
  wmma::load_matrix_sync(fa, a, 8);
  wmma::load_matrix_sync(fb, b, 8);
  for (int i = 0; i < fa.num_elements; i++) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
  for (int i = 0; i < fb.num_elements; i++) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::col_major> ga;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::row_major> gb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, float> gc;
  wmma::fill_fragment(gc, 0.5f);
  wmma::load_matrix_sync(ga, p, 32);
  wmma::load_matrix_sync(gb, q, 8);
  wmma::mma_sync(gc, ga, gb, gc);
  wmma::store_matrix_sync(r, gc, 32, wmma::mem_col_major);
}

__device__ __noinline__ int f0(int x) {
  return x + 1;
}
__device__ __noinline__ int f1(int x) {
  return x * 2;
}
__device__ __noinline__ int f2(int x) {
  return x ^ 5;
}
__device__ int (*const table[3])(int) = {f0, f1, f2};
extern "C" __global__ void indirect(const int *a, int *c) {
  int i = threadIdx.x;
  c[i] = table[a[i] % 3](a[i]);
}

struct Op {
  __device__ virtual int go(int) const = 0;
};
struct Add : Op {
  int k;
  __device__ Add(int k) : k(k) {}
  __device__ int go(int x) const override { return x + k; }
};
struct Mul : Op {
  int k;
  __device__ Mul(int k) : k(k) {}
  __device__ int go(int x) const override { return x * k; }
};
extern "C" __global__ void virt(const int *a, int *c) {
  int i = threadIdx.x;
  Add x(3);
  Mul y(5);
  const Op *o = (a[i] & 1) ? (const Op *)&x : (const Op *)&y;
  c[i] = o->go(a[i]);
}

extern "C" __global__ void __launch_bounds__(128) cubsort(const int *a, int *c, int *s) {
  using Sort = cub::BlockRadixSort<int, 128, 4>;
  using Scan = cub::BlockScan<int, 128>;
  __shared__ union {
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
  } t;
  int k[4], p[4];
  for (int j = 0; j < 4; j++) k[j] = a[blockIdx.x * 512 + threadIdx.x * 4 + j];
  Sort(t.sort).Sort(k);
  __syncthreads();
  for (int j = 0; j < 4; j++) c[blockIdx.x * 512 + threadIdx.x * 4 + j] = k[j];
  Scan(t.scan).ExclusiveSum(k, p);
  for (int j = 0; j < 4; j++) s[blockIdx.x * 512 + threadIdx.x * 4 + j] = p[j];
}

extern "C" __global__ void aggr(const int *x, int *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int k = x[i];
  unsigned m = __match_any_sync(__activemask(), k);
  int leader = __ffs(m) - 1;
  if ((int)(threadIdx.x & 31) == leader) atomicAdd(&bins[k], __popc(m));
}

extern "C" __global__ void lock(int *l, int *v) {
  for (int done = 0; !done;)
    if (atomicCAS(l, 0, 1) == 0) {
      __threadfence();
      *(volatile int *)v += 1;
      __threadfence();
      atomicExch(l, 0);
      done = 1;
    }
}

extern "C" __global__ void half_masks(const half2 *x, unsigned *y) {
  y[threadIdx.x] =
      __hgt2_mask(x[threadIdx.x], __float2half2_rn(0.5f)) + __vabsdiffu4(threadIdx.x, 3) + __fns(0xd0, 0, 2);
}

extern "C" __global__ void dynamic_stack(const int *x, int *y, int n) {
  int *mine = (int *)alloca(n * sizeof(int));
  for (int i = 0; i < n; i++) mine[i] = x[i] + threadIdx.x;
  y[threadIdx.x] = mine[n - 1 - threadIdx.x];
}
